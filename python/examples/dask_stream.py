"""Stream a Dask pipeline into a dataset, and train from what is committed meanwhile.

    python3 dask_stream.py write DATASET [GENERATIONS]     in one terminal
    python3 dask_stream.py train DATASET [GENERATIONS]     in another one, or in several

The writer computes chunks, some at a time in parallel, and appends them: each commit is a generation of the
dataset. A trainer keeps the generation that it opened for whole epochs, and then opens the next one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import dask
import dask.array as da
import numpy as np

import penstock

FEATURES, CHUNK, CHUNKS = 16, 500, 4  # values of a record, records of a chunk, chunks of a generation


def write(path: str, generations: int, committed: Callable[[int], None] = print) -> None:
    """Make records by Dask and append them, a commit for each few chunks."""
    x = da.random.RandomState(7).normal(size=(generations * CHUNKS * CHUNK, FEATURES), chunks=(CHUNK, FEATURES))
    x = ((x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)).astype("f4")
    y = (x[:, : FEATURES // 2].sum(axis=1) > 0).astype("i8")
    chunks = list(zip(x.to_delayed().ravel(), y.to_delayed()))
    for generation in range(1, generations + 1):
        blocks = dask.compute(*chunks[(generation - 1) * CHUNKS : generation * CHUNKS])
        with penstock.Writer(path, append=os.path.exists(path)) as w:
            for features, labels in blocks:
                w.extend({"x": a, "label": b} for a, b in zip(features, labels))
        committed(generation)


def train(path: str, generations: int) -> None:
    """Train epoch by epoch, and print a line for each, until that many generations were seen."""
    weights, seen, epoch = np.zeros(FEATURES, "f4"), set[int](), 0
    while len(seen) < generations:
        if not os.path.exists(path):
            time.sleep(0.05)
            continue
        with penstock.open(path) as ds:
            generation = ds.manifest["generation"]
        loader = penstock.DataLoader(path, 50, shuffle=True, output="numpy")
        right = count = 0
        for batch in loader:
            guess = batch["x"] @ weights
            right, count = right + int(((guess > 0) == batch["label"]).sum()), count + len(guess)
            error = 1 / (1 + np.exp(-guess)) - batch["label"]
            weights -= np.float32(0.5) * (error @ batch["x"] / len(guess)).astype("f4")
        loader.close()
        if generation not in seen:
            seen.add(generation)
        epoch += 1
        print(f"epoch {epoch}: generation {generation}, {count} records, {right / count:.2f} right", flush=True)


if __name__ == "__main__":
    what, path, generations = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2
    {"write": write, "train": train}[what](path, generations)
