"""penstock.DataLoader against torch's, on the same dataset and with the same work.

    python3 dataloader.py DATASET [BATCH] [ROUNDS] [FEED]

Every way shuffles the images, normalizes them and mirrors half: an epoch of each in turn, several
rounds, after one that does not count. There are two datasets for torch's, which make one
record at a time, as most do: one with hand-written NumPy, and one with torchvision's transforms, if
that is installed. Shown are the medians, how many times as fast penstock's is, the faster of two (the median of the
ratios of the rounds), what a record costs all processes together, which depends less on what else the
machine does, and how much of its time the training process itself computes.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import warnings

try:
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    sys.exit("needs torch and numpy: pip install torch numpy")

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

import penstock
from penstock import transforms as T

try:
    from torchvision.transforms import v2
except ImportError:
    v2 = None


PIPELINE = [T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize()]


class PerItem(Dataset):
    """Maps the files, and does with NumPy what there is to do, as little as there can be."""

    name = "NumPy"

    def __init__(self, path: str, field: str) -> None:
        self.path, self.field = path, field
        ds = penstock.open(path)
        self.count = len(ds)
        n = ds.fields[field].normalization
        self.scale = np.float32(1 / n.scale)
        self.mean, self.std = (np.array(x, np.float32).reshape(-1, 1, 1) for x in (n.mean, n.std))
        shards = range(len(ds.manifest["shards"]))
        self.shards = [np.load(f"{path}/{field}-{k:05d}.npy", mmap_mode="r") for k in shards]
        self.labels = np.concatenate([np.load(f"{path}/labels-{k:05d}.npy") for k in shards])
        self.ends = np.cumsum([len(s) for s in self.shards])

    def __len__(self) -> int:
        return self.count

    def stored(self, i: int) -> np.ndarray:
        k = int(np.searchsorted(self.ends, i, side="right"))
        return self.shards[k][i - self.ends[k]]

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        x = self.stored(i)
        if np.random.random() < 0.5:
            x = x[..., ::-1]
        x = x * self.scale
        x -= self.mean
        x /= self.std
        return torch.from_numpy(x), int(self.labels[i])


class Torchvision(PerItem):
    """Does it as torchvision's documentation says."""

    name = "torchvision"

    def __init__(self, path: str, field: str) -> None:
        super().__init__(path, field)
        self.transform = v2.Compose(
            [
                v2.RandomHorizontalFlip(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(self.mean.ravel().tolist(), self.std.ravel().tolist()),
            ]
        )

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return self.transform(torch.from_numpy(np.array(self.stored(i)))), int(self.labels[i])


def ways(path: str, batch: int, command: str):
    """Yield names and functions that iterate one epoch."""
    for workers in (1, 2):
        ours = penstock.DataLoader(path, batch, shuffle=True, transforms=PIPELINE, num_workers=workers, command=command)
        yield f"penstock, {counted(workers)}", lambda ours=ours: ours
    field = next(iter(ours.fields))
    for kind in (PerItem,) if v2 is None else (PerItem, Torchvision):
        for workers in (0, 2, 4):
            loader = DataLoader(kind(path, field), batch_size=batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
            yield f"DataLoader, {kind.name}, {counted(workers)}", lambda loader=loader: loader


def counted(workers: int) -> str:
    return {0: "no workers", 1: "1 worker"}.get(workers, f"{workers} workers")


def started() -> float:
    """Return the CPU seconds of all processes that this one started and that still run."""
    children, own = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                rest = f.read().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(rest[1]), []).append(int(pid))
        own[int(pid)] = (int(rest[11]) + int(rest[12])) / os.sysconf("SC_CLK_TCK")
    family = list(children.get(os.getpid(), []))
    for pid in family:
        family += children.get(pid, [])
    return sum(own[pid] for pid in family)


def main() -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")
    torch.set_num_threads(1)  # as DataLoader's workers do: threads that spin for others are slow on a busy machine
    path = sys.argv[1]
    batch = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    ds = penstock.open(path)
    if ds.format != "flat" or "labels" not in ds.fields or not next(iter(ds.fields.values())).pending:
        sys.exit(
            f"{path}: needs a flat dataset whose first field is images with a mean and std, and with labels; "
            f"to store a mean and std, run: preprocess normalize {path} imagenet"
        )
    n, first = len(ds), next(iter(ds.fields.values()))
    all_ways = list(ways(path, batch, sys.argv[4] if len(sys.argv) > 4 else "feed"))
    rates: dict[str, list[float]] = {name: [] for name, _ in all_ways}
    took, mine, others = (dict.fromkeys(rates, 0.0) for _ in range(3))
    print(f"{n} records of {first.row_bytes} bytes, batches of {batch}, {rounds} rounds on {os.cpu_count()} cores")
    print(f"load of the machine {os.getloadavg()[0]:.1f} at the beginning")
    for k in range(rounds + 1):
        for name, epoch in all_ways:
            before = started()
            began, busy = time.perf_counter(), time.process_time()
            for _ in epoch():
                pass
            seconds, busy = time.perf_counter() - began, time.process_time() - busy
            if k > 0:
                rates[name].append(n / seconds)
                took[name] += seconds
                mine[name] += busy
                others[name] += started() - before
    print(f"load of the machine {os.getloadavg()[0]:.1f} at the end\n")
    ours = max(list(rates)[:2], key=lambda name: statistics.median(rates[name]))
    table = [[f"{first.row_bytes}-byte records", "records/s", "penstock's speed, times", "CPU, us a record", "of the trainer, %"]]
    for name, got in rates.items():
        ratio = statistics.median(a / b for a, b in zip(rates[ours], got))
        cost, share = (mine[name] + others[name]) / n / rounds * 1e6, 100 * mine[name] / took[name]
        table.append([name, f"{statistics.median(got):,.0f}", f"{ratio:.1f}", f"{cost:.1f}", f"{share:.0f}"])
    show(table)


def show(rows: list[list[str]]) -> None:
    """Print a table as Markdown."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in (rows[0], ["-" * w for w in widths], *rows[1:]):
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |")
    print()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
