"""penstock.DataLoader of a dataset of Python code beside torch's DataLoader: records per second, and CPU time.

    PYTHONPATH=python python bench/peers/user_datasets.py [--runs 5] [--workers 2] [--only NAME]

Each run of one is followed by a run of the other, in one process; medians are printed. The rate is from the first batch on; CPU time
is of this process and all workers, from iter() until they have ended. pinned runs with pin_memory=True, and needs a device.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np
import penstock
import torch
from torch.utils.data import DataLoader, Dataset


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Images(Dataset):
    """Records of bytes, each a copy, by a function that takes some time."""

    def __init__(self, shape, length, seconds=0.0, tensors=False):
        data = np.random.randint(0, 256, (256, *shape), np.uint8)
        self.data, self.length, self.seconds = torch.from_numpy(data) if tensors else data, length, seconds

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if self.seconds:
            spin(self.seconds)
        return self.data[i % 256], i % 10


class Dicts(Images):
    """Ten small arrays by name."""

    def __getitem__(self, i):
        return {f"field{k}": self.data[(i + k) % 256] for k in range(10)}


class Texts(Images):
    """A text and its class."""

    def __getitem__(self, i):
        return "a text of some length, as captions of images are " * 3, i % 10


CASES = {
    "150528 bytes, 20 us": (Images((224, 224, 3), 12800, 20e-6), 256),
    "150528 bytes": (Images((224, 224, 3), 12800), 256),
    "150528 bytes, tensors": (Images((3, 224, 224), 12800, 0.0, True), 256),
    "784 bytes": (Images((784,), 256_000), 256),
    "784 bytes, tensors": (Images((784,), 256_000, 0.0, True), 256),
    "784 bytes, 20 us": (Images((784,), 128_000, 20e-6), 256),
    "784 bytes, 500 us": (Images((784,), 6400, 500e-6), 64),
    "ten arrays of 64 bytes": (Dicts((64,), 64_000), 256),
    "texts": (Texts((1,), 256_000), 256),
}


def cpu():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def run(make, dataset, batch_size, options):
    """Return records per second, and CPU microseconds a record."""
    began = cpu()
    loader = make(dataset, batch_size=batch_size, shuffle=True, **options)
    loop = iter(loader)
    next(loop)
    start = time.perf_counter()
    n = sum(1 for _ in loop)
    seconds = time.perf_counter() - start
    del loop, loader
    return n * batch_size / seconds, (cpu() - began) / len(dataset) * 1e6


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--runs", type=int, default=5)
    flags.add_argument("--workers", type=int, default=2)
    flags.add_argument("--only", default="")
    flags.add_argument("--pinned", action="store_true")
    given = flags.parse_args()
    options = {"num_workers": given.workers, "pin_memory": given.pinned}
    print(f"torch {torch.__version__}, Python workers: {given.workers}, CPUs: {os.cpu_count()}, medians of {given.runs} runs in turn")
    for name, (dataset, size) in CASES.items():
        if given.only not in name:
            continue
        rows = [(run(DataLoader, dataset, size, options), run(penstock.DataLoader, dataset, size, options)) for _ in range(given.runs)]
        theirs, ours = ([statistics.median(r[k][j] for r in rows) for j in range(2)] for k in range(2))
        ratio = statistics.median(o[0] / t[0] for t, o in rows)
        print(
            f"{name:24} torch {theirs[0]:9.0f}/s {theirs[1]:7.1f} us CPU, penstock {ours[0]:9.0f}/s {ours[1]:7.1f} us CPU: {ratio:.2f} times "
            f"the rate, {theirs[1] / ours[1]:.2f} times less CPU",
            flush=True,
        )


if __name__ == "__main__":
    main()
