"""Whether the memory of DataLoader's workers grows over the epochs.

    python3 memory.py DATASET [EPOCHS] [FEED]

prints, for each epoch, the private memory of two workers: with a TorchDataset, which holds a path, and
with a common pattern, a dataset that holds a list of a million names. It also prints the memory of a
DataLoader's feeding process, including the memory that it shares with this process, and of this process.
Each access to an element of the list changes its reference count, and so copies a page that the
worker shared with the process that it was forked from.
"""

from __future__ import annotations

import os
import sys

try:
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    sys.exit("needs torch and numpy: pip install torch numpy")

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

import penstock
import penstock.torch as pt


class Part(penstock.order.Batches):
    """The first batches of every epoch: enough to see it, and soon done."""

    def __len__(self) -> int:
        return min(200, super().__len__())


class Named(Dataset):
    """A dataset as tutorials have it: a list of files, and a label for each."""

    def __init__(self) -> None:
        self.samples = [(f"train/{i % 1000:04d}/{i:08d}.jpg", i % 1000) for i in range(1_000_000)]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> int:
        name, label = self.samples[i]
        return label + len(name)


def private(pid: int) -> int:
    """Return the bytes that a process has for itself, pages of mapped files aside."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return sum(1024 * int(line.split()[1]) for line in f if line.startswith("Private_Dirty"))


def grow(name: str, dataset: Dataset, epochs: int, **how) -> None:
    batches = Part(len(dataset), 256)
    loader = DataLoader(dataset, batch_sampler=batches, num_workers=2, persistent_workers=True, multiprocessing_context="fork", **how)
    sizes = []
    for epoch in range(epochs):
        batches.set_epoch(epoch)
        iterator = iter(loader)
        for _ in iterator:
            pass
        sizes.append(sum(private(w.pid) for w in iterator._workers) / 2**20)
    print(f"{name:>16}: {' '.join(f'{s:6.1f}' for s in sizes)}  MiB in two workers, epoch by epoch")
    del iterator, loader


def feed(path: str, epochs: int, command: str) -> None:
    feeding, trainers = [], []
    with penstock.DataLoader(path, 256, shuffle=True, output="numpy", command=command) as loader:
        for _ in range(epochs):
            for batch in loader:
                for values in batch.values():
                    values.sum()
            feeding.append(private(loader.pid) + loader.stats()["shared"])
            trainers.append(private(os.getpid()))
    for name, sizes in (("feeding process", feeding), ("its trainer", trainers)):
        print(f"{name:>16}: {' '.join(f'{s / 2**20:6.1f}' for s in sizes)}  MiB, epoch by epoch")


def main() -> None:
    path, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6
    feed(path, epochs, sys.argv[3] if len(sys.argv) > 3 else "feed")
    grow("TorchDataset", pt.TorchDataset(path), epochs, collate_fn=pt.collate)
    grow("a list of names", Named(), epochs)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
