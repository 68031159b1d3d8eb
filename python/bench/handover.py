"""Measure the CPU time and the system calls that a batch costs the process that trains.

    python3 handover.py [SECONDS] [--in-order] [--calls]

Each row is a dataset of plain records, a batch size and an output. Shown are microseconds a batch: of CPU time of the
training process, of CPU time of the feeding process, and by the clock. Other rows are numpy.take into one buffer and
torch's DataLoader over a dataset that takes whole batches, in the same loop. ``--calls`` counts system calls per 1,000 batches of both processes
by strace, which has to be installed: those of two runs of different lengths, subtracted, so that the start is left out. The CPU time of a
process depends little on its neighbors. Rows take turns, and medians of five rounds are shown.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

import penstock

#: Bytes of a record, records of a batch, and batches of an epoch.
SHAPES = ((784, 256, 400), (784, 4096, 25), (150_528, 64, 32))
ROUNDS = 5


def dataset(folder: str, size: int, records: int) -> str:
    """Make a dataset of random records once, and return its path."""
    path = os.path.join(folder, str(size))
    if not os.path.exists(path):
        rng = np.random.default_rng(size)
        with penstock.Writer(path, [penstock.Field("x", "uint8", (size,))]) as w:
            w.extend({"x": rng.integers(0, 256, size, np.uint8)} for _ in range(records))
    return path


def child_time(pid: int | None) -> float:
    """Return the seconds of CPU time of a process, by the clock that Linux has of each."""
    return 0.0 if pid is None else time.clock_gettime((~pid << 3) | 2)


def ours(path: str, batch: int, output: str, shuffle: bool) -> tuple[Any, int | None]:
    loader = penstock.DataLoader(path, batch, shuffle=shuffle, output=output)
    return loader, loader.pid


def by_numpy(path: str, batch: int, shuffle: bool) -> Any:
    a = np.load(f"{path}/x-00000.npy", mmap_mode="r")
    out = np.empty((batch, *a.shape[1:]), a.dtype)

    class Epochs:
        def __iter__(self) -> Iterator[np.ndarray]:
            order = np.random.permutation(len(a)) if shuffle else np.arange(len(a))
            for k in range(0, len(a), batch):
                yield np.take(a, order[k : k + batch], axis=0, out=out[: len(order[k : k + batch])], mode="clip")

    return Epochs()


def by_torch(path: str, batch: int, shuffle: bool) -> Any:
    import torch

    a = np.load(f"{path}/x-00000.npy", mmap_mode="r")

    class Taken(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(a)

        def __getitems__(self, indices: list[int]) -> torch.Tensor:
            out = torch.empty((len(indices), *a.shape[1:]), dtype=torch.uint8)
            np.take(a, indices, axis=0, out=out.numpy(), mode="clip")
            return out

    return torch.utils.data.DataLoader(Taken(), batch, shuffle=shuffle, collate_fn=lambda batch: batch)


def measure(batches: Any, pid: int | None, seconds: float) -> list[float]:
    """Run epochs for a time, and return microseconds a batch: of this process, of the other one, and by the clock."""
    count, began = 0, (time.process_time(), child_time(pid), time.perf_counter())
    while time.perf_counter() - began[2] < seconds:
        for _ in batches:
            count += 1
    ended = (time.process_time(), child_time(pid), time.perf_counter())
    return [1e6 * (b - a) / count for a, b in zip(began, ended)]


def rows(path: str, batch: int, shuffle: bool) -> Iterator[tuple[str, Callable[[], tuple[Any, int | None]]]]:
    yield "penstock, NumPy", lambda: ours(path, batch, "numpy", shuffle)
    try:
        import torch

        torch.set_num_threads(1)
        yield "penstock, torch", lambda: ours(path, batch, "torch", shuffle)
        yield "DataLoader by take", lambda: (by_torch(path, batch, shuffle), None)
    except ImportError:
        print("torch is not installed: its rows are left out", file=sys.stderr)
    try:
        import jax  # noqa: F401

        yield "penstock, JAX", lambda: ours(path, batch, "jax", shuffle)
    except ImportError:
        print("jax is not installed: its row is left out", file=sys.stderr)
    yield "numpy.take(out=)", lambda: (by_numpy(path, batch, shuffle), None)


def calls(path: str, batch: int, shuffle: bool) -> str:
    """Return system calls per 1,000 batches of both processes, the most frequent first."""
    counted = []
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(penstock.__file__))}
    for epochs in (2, 12):
        code = (
            f"import penstock; loader = penstock.DataLoader({path!r}, {batch}, shuffle={shuffle}, output='numpy'); "
            f"n = sum(1 for _ in range({epochs}) for _ in loader); print(n)"
        )
        with tempfile.NamedTemporaryFile() as log:
            command = ["strace", "-f", "-c", "-o", log.name, sys.executable, "-c", code]
            run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            found = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", log.read().decode(), re.M)
        counted.append((int(run.stdout), {name: int(n) for n, name in found if name != "total"}))
    (few, before), (many, after) = counted
    each = {name: 1000 * (n - before.get(name, 0)) / (many - few) for name, n in after.items()}
    shown = ", ".join(f"{name} {n:,.0f}" for name, n in sorted(each.items(), key=lambda item: -item[1])[:6] if n >= 1)
    return f"{sum(each.values()):,.0f} ({shown})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--in-order", action="store_true")
    parser.add_argument("--calls", action="store_true")
    args = parser.parse_args()
    shuffle = not args.in_order
    if args.calls and shutil.which("strace") is None:
        sys.exit("--calls needs strace")
    with tempfile.TemporaryDirectory() as folder:
        for size, batch, steps in SHAPES:
            path = dataset(folder, size, batch * steps)
            print(f"{size:,} bytes, batches of {batch:,}, {'shuffled' if shuffle else 'in order'}: microseconds a batch")
            made = [(name, *make()) for name, make in rows(path, batch, shuffle)]
            found: dict[str, list[list[float]]] = {name: [] for name, _, _ in made}
            for k in range(ROUNDS + 1):
                for name, batches, pid in made:
                    got = measure(batches, pid, args.seconds)
                    if k > 0:
                        found[name].append(got)
            for name, got in found.items():
                mine, other, clock = (statistics.median(column) for column in zip(*got))
                print(f"  {name:<20} {mine:9,.1f} trainer {other:9,.1f} feed {clock:9,.1f} clock {1e6 / clock * batch:14,.0f} records/s")
            for _, batches, pid in made:
                if pid is not None:
                    batches.close()
            if args.calls:
                print(f"  system calls per 1,000 batches: {calls(path, batch, shuffle)}")


if __name__ == "__main__":
    main()
