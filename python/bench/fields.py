"""Compare batches of many fields with numpy.take of each field and with torch's DataLoader over memory maps.

    python3 fields.py [ROUNDS]

A record has 1, 100, 1,000 or 5,000 fields of one float32; a batch has 256 shuffled records. Contenders take turns; shown are
milliseconds a batch by the clock, as medians of the rounds, and the median of the rounds' ratios to numpy.take.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from typing import Any

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

import penstock

RECORDS, BATCH = 8192, 256


class Maps:
    """A dataset of torch whose batches are taken from memory maps of the fields."""

    def __init__(self, maps: dict[str, Any]) -> None:
        self.maps = maps

    def __len__(self) -> int:
        return RECORDS

    def __getitems__(self, indices: list[int]) -> dict[str, Any]:
        import torch

        return {name: torch.from_numpy(np.take(m, indices, 0)) for name, m in self.maps.items()}


def seconds(loader: Any) -> float:
    """Return the seconds a batch of one epoch."""
    start = time.perf_counter()
    batches = sum(1 for _ in loader)
    return (time.perf_counter() - start) / batches


def takes(maps: dict[str, Any]) -> Any:
    order = np.random.permutation(RECORDS)
    for at in range(0, RECORDS, BATCH):
        yield {name: np.take(m, order[at : at + BATCH], 0) for name, m in maps.items()}


def compare(fields: int, rounds: int) -> None:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data")
        names = [f"f{i}" for i in range(fields)]
        column = np.random.default_rng(fields).random(RECORDS, np.float32)
        with penstock.Writer(path, [penstock.Field(name, "float32", ()) for name in names]) as w:
            w.extend(dict.fromkeys(names, value) for value in column)
        maps = {name: np.load(os.path.join(path, f"{name}-00000.npy"), mmap_mode="r") for name in names}
        own = penstock.DataLoader(path, BATCH, shuffle=True, output="numpy")
        theirs = torch.utils.data.DataLoader(Maps(maps), BATCH, shuffle=True, collate_fn=lambda batch: batch)
        contenders = {
            "numpy.take of each field": lambda: seconds(takes(maps)),
            "penstock": lambda: seconds(own),
            "torch over memory maps": lambda: seconds(theirs),
        }
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for at in range(rounds + 1):
            for name, run in contenders.items():
                took = run()
                if at > 0:  # the first round warms caches
                    times[name].append(took)
        base = times["numpy.take of each field"]
        for name, values in times.items():
            ratio = statistics.median(b / v for b, v in zip(base, values, strict=True))
            print(f"{fields:6} fields  {name:26} {1e3 * statistics.median(values):9.3f} ms a batch  {ratio:5.2f} of take")
        own.close()


if __name__ == "__main__":
    for fields in (1, 100, 1000, 5000):
        compare(fields, int(sys.argv[1]) if len(sys.argv) > 1 else 5)
