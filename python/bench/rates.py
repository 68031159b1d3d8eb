"""How many records a second reach the training process.

    python3 rates.py DATASET [BATCH] [ROUNDS]

for the ways to read a field at random and in order, with this package and with two DataLoaders
over the same files, mapped by NumPy: one that takes a record at a time, as it is usually written,
and one that takes whole batches with numpy.take(out=), which is the fastest there is. The ways
take turns, an epoch each, after a round that does not count, so that everything is in memory.
Shown are the medians of the rates, and of the ratios to the DataLoader of whole batches: by the
clock, and by the CPU time of this process, which depends less on other programs on the machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

try:
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    sys.exit("needs torch and numpy: pip install torch numpy")

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

import penstock
import penstock.torch as pt


class PerItem(Dataset):
    """Maps the same files with NumPy, and returns one record at a time."""

    def __init__(self, ds: penstock.Dataset, field: str) -> None:
        count = len(ds.manifest["shards"])
        self.shards = [np.load(f"{ds.path}/{field}-{k:05d}.npy", mmap_mode="r") for k in range(count)]
        self.ends = np.cumsum([len(s) for s in self.shards])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, i: int) -> torch.Tensor:
        k = int(np.searchsorted(self.ends, i, side="right"))
        return torch.from_numpy(np.array(self.shards[k][i - self.ends[k]]))


class Whole(PerItem):
    """Takes whole batches: what __getitems__ returns is the batch."""

    def __getitems__(self, indices: list[int]) -> torch.Tensor:
        records = np.asarray(indices)
        out = torch.empty((len(records), *self.shards[0].shape[1:]), dtype=torch.uint8)
        if len(self.shards) == 1:
            np.take(self.shards[0], records, axis=0, out=out.numpy(), mode="clip")
            return out
        shards, view = np.searchsorted(self.ends, records, side="right"), out.numpy()
        places = records - np.concatenate([[0], self.ends])[shards]
        for i, (k, at) in enumerate(zip(shards.tolist(), places.tolist())):
            view[i] = self.shards[k][at]
        return out


def same(batch: torch.Tensor) -> torch.Tensor:
    return batch


def ways(ds: penstock.Dataset, field: str, batch: int):
    """Yield names, and functions that iterate one epoch."""
    a, n, batches = ds[field], len(ds), penstock.order.Batches(len(ds), batch, seed=1)
    out = np.empty((batch, *a.shape[1:]), a.dtype)
    whole = DataLoader(Whole(ds, field), batch_size=batch, shuffle=True, collate_fn=same)
    yield WHOLE, lambda: whole
    yield "in order: views", lambda: (a[k : k + batch] for k in range(0, n, batch))
    yield "shuffled: take", lambda: (a[i] for i in batches)
    yield "shuffled: take into the same memory", lambda: (a.take(i, out=out[: len(i)]) for i in batches)
    ours = pt.TorchDataset(ds.path, fields=[field])
    for workers in (0, 2):
        how = {"num_workers": workers, "persistent_workers": workers > 0}
        loader = DataLoader(ours, batch_sampler=batches, collate_fn=pt.collate, **how)
        yield f"TorchDataset, {workers} workers", lambda loader=loader: loader
        usual = DataLoader(PerItem(ds, field), batch_size=batch, shuffle=True, **how)
        yield f"DataLoader of single records, {workers} workers", lambda loader=usual: loader


WHOLE = "DataLoader of whole batches, numpy.take(out=)"


def main() -> None:
    torch.set_num_threads(1)
    ds = penstock.open(sys.argv[1])
    batch = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    field = next(iter(ds.fields))
    if ds.format != "flat" or ds[field].dtype != np.uint8:
        sys.exit(f"{sys.argv[1]}: needs a flat dataset whose first field is of uint8; {field!r} of this {ds.format} dataset is {ds[field].dtype}")
    all_ways, rates, work = list(ways(ds, field, batch)), {}, {}
    print(f"{ds}, batches of {batch} of {field!r}, {rounds} rounds")
    for k in range(rounds + 1):
        for name, epoch in all_ways:
            began, busy = time.perf_counter(), time.process_time()
            for _ in epoch():
                pass
            if k > 0:
                rates.setdefault(name, []).append(len(ds) / (time.perf_counter() - began))
                work.setdefault(name, []).append(len(ds) / (time.process_time() - busy))
    for name, got in rates.items():
        clock, cpu = (statistics.median(a / b for a, b in zip(of[name], of[WHOLE])) for of in (rates, work))
        print(f"{name:>48} {statistics.median(got):14,.0f} records/s {clock:8.2f} by the clock, {cpu:8.2f} by CPU time")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
