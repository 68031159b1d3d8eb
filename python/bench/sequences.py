"""Windows of a long table of float32: penstock against NumPy, torch's DataLoader, xbatcher, tsai and PyTorch Forecasting.

    python3 sequences.py FOLDER [--rows 100000000] [--window 128] [--stride 1] [--seconds 5] [--rounds 3]

The table is a .npy file with holes, in FOLDER, whose first rows are random numbers: it takes little of the disk, and up to
its size of the page cache. Each way reads windows for some seconds, in turn, several rounds. xbatcher, tsai and PyTorch
Forecasting get the first --peer-rows alone: they build lists of all windows, or tables of pandas. A row is left out, with a
line that says so, where a package is not installed: pip install xbatcher xarray tsai pytorch-forecasting. The first line has
the memory of penstock's processes that is not of the page cache.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Iterator

try:
    import numpy as np
    import torch
except ImportError as e:
    sys.exit(f"needs numpy and torch: {e}")

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

from ways import Way, compare

import penstock


def table(path: str, rows: int, features: int, filled: int) -> np.ndarray:
    """Return the table, mapped; make it if it is not there."""
    if not os.path.exists(path):
        made = np.lib.format.open_memmap(path + ".part", "w+", np.float32, (rows, features))
        made[:filled] = np.random.default_rng(0).normal(size=(min(rows, filled), features))
        made.flush()
        del made
        os.rename(path + ".part", path)
    return np.load(path, mmap_mode="r")


class Sequences:
    """The windows of a table, and the ways to read them."""

    def __init__(self, path: str, options: argparse.Namespace) -> None:
        self.path, self.o = path, options
        self.values = table(path, options.rows, options.features, options.peer_rows)
        self.count = (options.rows - options.window) // options.stride + 1
        self.few = self.values[: options.peer_rows]

    def penstock(self, shuffle: bool) -> Iterator[np.ndarray]:
        windows = penstock.open(self.path).windows({0: self.o.window}, stride=self.o.stride)
        with penstock.DataLoader(windows, self.o.batch, shuffle=shuffle, output="numpy", num_workers=self.o.workers) as loader:
            for batch in loader:
                yield batch["table"]
                self.memory = memory()

    def loop(self, shuffle: bool) -> Iterator[np.ndarray]:
        """A loop over NumPy's sliding_window_view, into one buffer."""
        seen = np.lib.stride_tricks.sliding_window_view(self.values, self.o.window, axis=0)[:: self.o.stride]
        out, rng = np.empty((self.o.batch, self.o.window, self.o.features), np.float32), np.random.default_rng(0)
        for first in range(0, self.count - self.o.batch, self.o.batch):
            records = rng.integers(0, self.count, self.o.batch) if shuffle else range(first, first + self.o.batch)
            for k, i in enumerate(records):
                out[k] = seen[i].T
            yield out

    def torch(self) -> Iterator[torch.Tensor]:
        """torch's DataLoader, with two workers, over the mapped file."""
        yield from self.loaded(Mapped(self.values, self.o.window, self.o.stride))

    def loaded(self, dataset: object) -> Iterator[torch.Tensor]:
        rng = np.random.default_rng(0)
        batches = [rng.integers(0, len(dataset), self.o.batch).tolist() for _ in range(20_000)]  # type: ignore[arg-type]
        for batch in torch.utils.data.DataLoader(dataset, batch_sampler=batches, num_workers=2):  # type: ignore[arg-type]
            yield batch[0]["encoder_cont"] if isinstance(batch[0], dict) else batch[0] if isinstance(batch, (tuple, list)) else batch

    def xbatcher(self) -> Iterator[np.ndarray]:
        import xarray
        import xbatcher

        patches = xbatcher.BatchGenerator(
            xarray.DataArray(self.few, dims=("time", "feature")), {"time": self.o.window}, input_overlap={"time": self.o.window - self.o.stride}
        )
        found = (p.values for p in patches)
        while batch := list(itertools.islice(found, self.o.batch)):
            yield np.stack(batch)

    def tsai(self) -> Iterator[torch.Tensor]:
        from tsai.data.unwindowed import TSUnwindowedDataset

        yield from self.loaded(Shown(TSUnwindowedDataset(np.array(self.few.T), window_size=self.o.window, stride=self.o.stride, seq_first=False)))

    def forecasting(self) -> Iterator[torch.Tensor]:
        import pandas
        from pytorch_forecasting import TimeSeriesDataSet

        names = [f"f{k}" for k in range(self.o.features)]
        frame = pandas.DataFrame(np.array(self.few), columns=names).assign(time=np.arange(len(self.few)), group="one")
        dataset = TimeSeriesDataSet(
            frame, time_idx="time", target=names[0], group_ids=["group"], max_encoder_length=self.o.window - 1, min_encoder_length=self.o.window - 1,
            max_prediction_length=1, time_varying_unknown_reals=names, target_normalizer=None, scalers=dict.fromkeys(names[1:]),
        )  # fmt: skip
        for x, _ in dataset.to_dataloader(batch_size=self.o.batch, num_workers=2, shuffle=True):
            yield x["encoder_cont"]

    def ways(self) -> dict[str, Way]:
        found: dict[str, Way] = {
            "penstock, shuffled": lambda: self.penstock(True),
            "NumPy loop, shuffled": lambda: self.loop(True),
            "torch, 2 workers, shuffled": self.torch,
            "penstock, in order": lambda: self.penstock(False),
            "NumPy loop, in order": lambda: self.loop(False),
            "xbatcher, in order": self.xbatcher,
            "tsai, 2 workers, shuffled": self.tsai,
            "PyTorch Forecasting, 2 workers": self.forecasting,
        }
        out = {}
        for name, way in found.items():
            try:
                batch = next(batches := way())
                batches.close()  # type: ignore[attr-defined]
            except ImportError as e:
                print(f"{name}: left out: {e}")
                continue
            if "order" in name and not np.array_equal(np.asarray(batch)[3], self.values[3 * self.o.stride :][: self.o.window]):
                sys.exit(f"{name}: window 3 has other values than the table")
            out[name] = way
        return out


class Mapped(torch.utils.data.Dataset):
    """Windows of a mapped array, as they are usually written."""

    def __init__(self, values: np.ndarray, window: int, stride: int) -> None:
        self.values, self.window, self.stride = values, window, stride

    def __len__(self) -> int:
        return (len(self.values) - self.window) // self.stride + 1

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.from_numpy(np.array(self.values[i * self.stride : i * self.stride + self.window]))


class Shown(torch.utils.data.Dataset):
    """The windows of a dataset of tsai as plain tensors."""

    def __init__(self, of: object) -> None:
        self.of = of

    def __len__(self) -> int:
        return len(self.of)  # type: ignore[arg-type]

    def __getitem__(self, i: int) -> torch.Tensor:
        x = self.of[i]  # type: ignore[index]
        return torch.as_tensor(np.asarray(x[0] if isinstance(x, tuple) else x))


def memory() -> float:
    """Return the MB of this process and its children that are not of files. Shared memory is counted once."""
    own, shared, pids = 0, 0, [os.getpid()]
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        pids += map(int, f.read().split())
    for pid in pids:
        with open(f"/proc/{pid}/status") as f:
            found = {line.split(":")[0]: int(line.split()[1]) for line in f if line.startswith("Rss")}
        own, shared = own + found["RssAnon"], max(shared, found["RssShmem"])
    return (own + shared) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--peer-rows", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    sequences = Sequences(os.path.join(options.folder, "table.npy"), options)
    before = memory()
    for _ in zip(range(200), batches := sequences.penstock(True)):
        pass
    batches.close()  # type: ignore[attr-defined]
    print(f"penstock has {sequences.memory - before:.0f} MB more than before, without the page cache ({before:.0f} MB with numpy and torch)")
    ways = sequences.ways()
    compare({n: w for n, w in ways.items() if "shuffled" in n or "2 workers" in n}, "penstock, shuffled", options.seconds, options.rounds)
    compare({n: w for n, w in ways.items() if "order" in n}, "penstock, in order", options.seconds, options.rounds)


if __name__ == "__main__":
    main()
