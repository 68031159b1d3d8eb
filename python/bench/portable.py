"""The rates of the portable transport, by which macOS and Windows get batches, against Linux's native one.

    PATH=$PWD/bin:$PATH python3 python/bench/portable.py [SECONDS] [ROUNDS]

Records of 784 and of 150,528 bytes, of a prepared dataset, of one with a function, and of a dataset of Python in two workers. The
transports take turns, each in a process of its own, for SECONDS each time. Shown are the medians of the rates and of the ratios,
which are 1 where the portable one is as fast.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

import penstock

SIZES = {784: 20_000, 150_528: 1_000}  # bytes of a record, and records
SUBJECTS = ("prepared", "function", "python")


class Arrays:
    """A dataset of Python."""

    def __init__(self, size: int) -> None:
        self.record, self.n = np.arange(size, dtype=np.uint8), SIZES[size]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> np.ndarray:
        return self.record


def plus_one(x: np.ndarray) -> np.ndarray:
    return x + np.uint8(1)


def loader(subject: str, size: int, folder: str) -> penstock.DataLoader:
    options = {"shuffle": True, "seed": 1, "output": "numpy", "num_workers": 2}
    if subject == "python":
        return penstock.DataLoader(Arrays(size), 64, persistent_workers=True, **options)
    more = {"transforms": {"x": plus_one}} if subject == "function" else {}
    return penstock.DataLoader(os.path.join(folder, str(size)), 64, **more, **options)


def rate(subject: str, size: int, folder: str, seconds: float) -> float:
    """Return records a second, after an epoch that does not count."""
    with loader(subject, size, folder) as dl:
        for _ in dl:
            pass
        began, records = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            for batch in dl:
                records += len(batch if subject == "python" else batch.x)
        return records / (time.perf_counter() - began)


def main() -> None:
    seconds, rounds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0, int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        for size, n in SIZES.items():
            with penstock.Writer(os.path.join(folder, str(size)), [penstock.Field("x", "uint8", (size,))]) as w:
                for _ in range(n):
                    w.append({"x": np.arange(size, dtype=np.uint8)})
        print(f"{'records':10}{'bytes':>10}{'native/s':>12}{'portable/s':>12}{'ratio':>8}")
        for subject in SUBJECTS:
            for size in SIZES:
                found: dict[str, list[float]] = {"native": [], "portable": []}
                for _ in range(rounds):
                    for transport, rates in found.items():
                        command = [sys.executable, __file__, "one", subject, str(size), folder, str(seconds)]
                        environment = {**os.environ, "PENSTOCK_TRANSPORT": transport}
                        rates.append(float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout))
                ratio = statistics.median(p / n for n, p in zip(found["native"], found["portable"]))
                native, portable = (statistics.median(found[t]) for t in ("native", "portable"))
                print(f"{subject:10}{size:10,}{native:12,.0f}{portable:12,.0f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        print(rate(sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5])))
    else:
        main()
