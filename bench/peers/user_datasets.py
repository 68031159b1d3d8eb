"""penstock.DataLoader of a dataset of Python code compared with torch's DataLoader, SPDL and Grain: records per second, and CPU time.

    PYTHONPATH=python python bench/peers/user_datasets.py [--runs 5] [--workers 2] [--only NAME] [--peers spdl,grain]

SPDL and Grain run with processes and with threads, and the faster of the two counts. The ways run in turn, in one process; medians are
printed. The rate is from the first batch on; CPU time is of this process and all workers, from iter() until they have ended. --pinned runs
torch and penstock with pin_memory=True, and needs a device.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np
import penstock
import torch
from torch.utils.data import DataLoader, Dataset, default_collate


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


def torch_loader(dataset, size, given):
    return DataLoader(dataset, batch_size=size, shuffle=True, num_workers=given.workers, pin_memory=given.pinned)


def penstock_loader(dataset, size, given):
    return penstock.DataLoader(dataset, batch_size=size, shuffle=True, num_workers=given.workers, pin_memory=given.pinned)


def spdl_processes(dataset, size, given):
    from spdl.dataloader import get_pytorch_dataloader

    return get_pytorch_dataloader(dataset, size, shuffle=True, num_workers=given.workers, multiprocessing_context="fork")


def spdl_threads(dataset, size, given):
    from spdl.pipeline import PipelineBuilder

    order = np.random.permutation(len(dataset)).tolist()
    steps = (order[i : i + size] for i in range(0, len(order), size))

    def batch(indices):
        return default_collate([dataset[i] for i in indices])

    pipeline = PipelineBuilder().add_source(steps).pipe(batch, concurrency=given.workers).add_sink(4).build(num_threads=given.workers)
    with pipeline.auto_stop():
        yield from pipeline


def grain_threads(dataset, size, given, processes=0):
    import grain.python as grain

    batches = grain.MapDataset.source(dataset).shuffle(seed=1).batch(size, batch_fn=default_collate)
    if not processes:
        return batches.to_iter_dataset(grain.ReadOptions(num_threads=given.workers, prefetch_buffer_size=4))
    return batches.to_iter_dataset().mp_prefetch(grain.MultiprocessingOptions(num_workers=processes, per_worker_buffer_size=2))


def grain_processes(dataset, size, given):
    return grain_threads(dataset, size, given, given.workers)


PEERS = {"torch": [torch_loader], "spdl": [spdl_processes, spdl_threads], "grain": [grain_processes, grain_threads]}


def run(make, dataset, batch_size, given):
    """Return records per second, and CPU microseconds a record."""
    began = cpu()
    loader = make(dataset, batch_size, given)
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
    flags.add_argument("--peers", default="", help="besides torch: spdl, grain")
    flags.add_argument("--pinned", action="store_true")
    given = flags.parse_args()
    peers = ["torch", *filter(None, given.peers.split(","))]
    print(f"torch {torch.__version__}, Python workers: {given.workers}, CPUs: {os.cpu_count()}, medians of {given.runs} runs in turn")
    for name, (dataset, size) in CASES.items():
        if given.only not in name:
            continue
        ways = [(peer, way) for peer in peers for way in PEERS[peer]] + [("penstock", penstock_loader)]
        rows = [[run(way, dataset, size, given) for _, way in ways] for _ in range(given.runs)]
        ours = [row[-1] for row in rows]
        print(f"{name:24} penstock {median(ours, 0):9.0f}/s {median(ours, 1):7.1f} us CPU", flush=True)
        for peer in peers:
            found = [[row[k] for row in rows] for k, (of, _) in enumerate(ways) if of == peer]
            theirs = max(found, key=lambda r: median(r, 0))
            ratio = statistics.median(o[0] / t[0] for o, t in zip(ours, theirs, strict=True))
            print(
                f"{'':24} {peer:8} {median(theirs, 0):9.0f}/s {median(theirs, 1):7.1f} us CPU: penstock has {ratio:.2f} times the rate, "
                f"{median(theirs, 1) / median(ours, 1):.2f} times less CPU",
                flush=True,
            )


def median(rows, column):
    return statistics.median(r[column] for r in rows)


if __name__ == "__main__":
    main()
