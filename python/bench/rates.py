"""How many records a second reach the training process.

    python3 rates.py DATASET [BATCH]

for the ways to read a field at random and in order, with this package and with a DataLoader as it is
usually written. The second of two epochs counts, so that everything is in memory.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

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


def measure(name: str, n: int, epoch) -> None:
    """Print the rate of the second run of epoch, which returns something to iterate."""
    for _ in range(2):
        began = time.perf_counter()
        for _ in epoch():
            pass
        took = time.perf_counter() - began
    print(f"{name:>48} {n / took:14,.0f} records/s")


def main() -> None:
    ds = penstock.open(sys.argv[1])
    batch = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    field = next(iter(ds.fields))
    a, n, batches = ds[field], len(ds), penstock.order.Batches(len(ds), batch, seed=1)
    out = np.empty((batch, *a.shape[1:]), a.dtype)
    print(f"{ds}, batches of {batch} of {field!r}")
    measure("in order: views", n, lambda: (a[k : k + batch] for k in range(0, n, batch)))
    measure("shuffled: take", n, lambda: (a[i] for i in batches))
    measure("shuffled: take into the same memory", n, lambda: (a.take(i, out=out[: len(i)]) for i in batches))
    for workers in (0, 2, 4):
        how = {"num_workers": workers, "persistent_workers": workers > 0}
        ours = DataLoader(pt.TorchDataset(ds.path, fields=[field]), batch_sampler=batches, collate_fn=pt.collate, **how)
        measure(f"TorchDataset, {workers} workers", n, lambda loader=ours: loader)
        usual = DataLoader(PerItem(ds, field), batch_size=batch, shuffle=True, **how)
        measure(f"DataLoader of mapped records, {workers} workers", n, lambda loader=usual: loader)
        del ours, usual


if __name__ == "__main__":
    main()
