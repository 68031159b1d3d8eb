"""The six configurations of PyTorch's tutorial "Data Loading Optimization", by torch's DataLoader and by penstock's, with one import changed.

    python tutorial.py [--size 512] [--delay 0.005] [--epochs 3] [--rounds 1]

The dataset sleeps and draws random numbers for each record, as the tutorial's does; the batched one pays once per batch
(``__getitems__``). Both loaders train the same model from the same seed, row by row, one after the other. The losses have to be
equal to the last bit; the program ends with 1 if they are not. It needs torch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import torch
import torch.utils.data

import penstock


class Synthetic(torch.utils.data.Dataset[Any]):
    """Records that cost a sleep and some random numbers each."""

    def __init__(self, size: int, delay: float) -> None:
        self.size, self.delay = size, delay

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        time.sleep(self.delay)
        return torch.randn(3, 224, 224), i % 10


class Batched(Synthetic):
    """The same records, whose cost is paid once a batch."""

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, int]]:
        time.sleep(self.delay)
        images = torch.randn(len(indices), 3, 224, 224)
        return [(images[k], i % 10) for k, i in enumerate(indices)]


WORKERS: dict[str, Any] = {"num_workers": 2, "prefetch_factor": 2}
ROWS: list[tuple[str, type[Synthetic], dict[str, Any]]] = [
    ("baseline", Synthetic, {"num_workers": 0}),
    ("+ workers, prefetch", Synthetic, WORKERS),
    ("+ pin_memory", Synthetic, {**WORKERS, "pin_memory": True}),
    ("+ persistent_workers", Synthetic, {**WORKERS, "pin_memory": True, "persistent_workers": True}),
    ("+ batched fetch", Batched, {**WORKERS, "pin_memory": True, "persistent_workers": True}),
    ("+ more workers", Batched, {"num_workers": 4, "prefetch_factor": 4, "pin_memory": True, "persistent_workers": True}),
]


def train(kind: type, dataset: Synthetic, options: dict[str, Any], epochs: int) -> tuple[float, list[float]]:
    """Return the seconds of a training run, and its losses."""
    torch.manual_seed(42)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, stride=8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
    model(torch.zeros(1, 3, 224, 224))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = kind(dataset, batch_size=32, shuffle=True, **options)
    begin, losses = time.perf_counter(), []
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return time.perf_counter() - begin, losses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=512, help="records (default %(default)s)")
    parser.add_argument("--delay", type=float, default=0.005, help="seconds of a record (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of a row (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each row; medians are printed (default %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    different, first = 0, 0.0
    print(f"{'row':22s} {'torch, s':>9s} {'penstock, s':>12s} {'times':>6s} {'of the first':>13s}  losses")
    for name, dataset, options in ROWS:
        seconds: dict[type, list[float]] = {torch.utils.data.DataLoader: [], penstock.DataLoader: []}
        losses = []
        for _ in range(args.rounds):
            for kind, times in seconds.items():
                took, found = train(kind, dataset(args.size, args.delay), options, args.epochs)
                times.append(took)
                losses.append(found)
        theirs, ours = (statistics.median(times) for times in seconds.values())
        first = first or theirs
        same = all(found == losses[0] for found in losses)
        different += not same
        print(f"{name:22s} {theirs:9.2f} {ours:12.2f} {theirs / ours:6.2f} {first / ours:13.2f}  {'equal' if same else 'DIFFERENT'}", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
