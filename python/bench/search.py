"""Compare the number of workers that DataLoader finds with fixed ones.

    python3 search.py [--rounds 8] [--seconds 0.6] [--only idle,beside] [--match TEXT] [--folder FOLDER]

Loads are plain records of three sizes, shuffled, and photographs that are decoded. In each round, the default and num_workers of 1, 2
and 3 take turns: each makes a new DataLoader, has 100 batches and 0.6 seconds for its search, 1.2 seconds at most, and is measured then.
Each load runs twice: alone, and beside as many processes that compute as there are cores. Every second round chooses the best fixed
number, and the other rounds compare the default with it, by the clock: of three that are equal the luckiest is faster than any. The
ratios are a median and the worst; "itself" is the worst of the ratios of the best fixed number to itself, one measurement to the next,
as equal settings differ on this machine. Eight rounds of all take about seven minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import scenes
from handover import dataset

import penstock
from penstock import transforms as T

SETTINGS: tuple[int | None, ...] = (None, 1, 2, 3)
#: Batches and seconds that a search has before it is measured.
SEARCH = (100, 0.6)


def loads(folder: str) -> dict[str, dict[str, Any]]:
    """Make the datasets, and return the arguments of a DataLoader for each load."""
    scenes.photographs(os.path.join(folder, "jpeg"), 96)
    photos = os.path.join(folder, "photos")
    if not os.path.exists(photos):
        penstock.preprocess(os.path.join(folder, "jpeg"), photos, keep_encoded=True)
    shapes = ((784, 256, 200), (12_288, 128, 100), (150_528, 64, 32))
    plain = {f"{size:,} bytes": {"dataset": dataset(folder, size, batch * steps), "batch_size": batch} for size, batch, steps in shapes}
    return {**plain, "photographs": {"dataset": photos, "batch_size": 16, "transforms": [T.RandomResizedCrop(112)]}}


def rate(arguments: dict[str, Any], workers: int | None, seconds: float) -> tuple[float, int]:
    """Return records a second after the search, and the number of workers at the end."""
    with penstock.DataLoader(**arguments, shuffle=True, output="numpy", num_workers=workers) as loader:
        batches, records, begun = 0, 0, time.perf_counter()
        measured = 0.0  # since when
        while True:
            for batch in loader:
                now = time.perf_counter()
                if measured:
                    records += len(batch.indices)
                    if now - measured >= seconds:
                        return records / (now - measured), loader.stats()["loader"]["Workers"]
                batches += 1
                if not measured and ((batches >= SEARCH[0] and now - begun >= SEARCH[1]) or now - begun >= 2 * SEARCH[1]):
                    measured = now


def compare(arguments: dict[str, Any], rounds: int, seconds: float) -> str:
    """Return a row of the table: the medians of all settings, the default over the best fixed one, and what was found."""
    rates: dict[int | None, list[float]] = {s: [] for s in SETTINGS}
    found: dict[int, int] = {}
    for k in range(rounds):
        for setting in SETTINGS[k % 4 :] + SETTINGS[: k % 4]:
            got, workers = rate(arguments, setting, seconds)
            rates[setting].append(got)
            if setting is None:
                found[workers] = found.get(workers, 0) + 1
    best = max(SETTINGS[1:], key=lambda s: statistics.median(rates[s][::2]))
    ratios = [a / b for a, b in zip(rates[None][1::2], rates[best][1::2])]
    again = rates[best][1::2]
    itself = [a / b for a, b in zip(again, again[1:] + again[:1])]
    middle = "  ".join(f"{statistics.median(rates[s]):12,.0f}" for s in SETTINGS)
    worst = f"worst {min(ratios):.2f} (itself {min(itself):.2f})"
    return f"{middle}   over {best}: {statistics.median(ratios):.2f}, {worst}   found {dict(sorted(found.items()))}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8, help="at least 2")
    parser.add_argument("--seconds", type=float, default=0.6, help="of each measurement")
    parser.add_argument("--only", default="idle,beside")
    parser.add_argument("--match", default="", help="only loads whose name has this")
    parser.add_argument("--folder", help="where datasets are kept for the next run")
    args = parser.parse_args()
    folder = args.folder or tempfile.mkdtemp(prefix="penstock-search-")
    try:
        os.makedirs(folder, exist_ok=True)
        print(f"{'records/s':28}" + "  ".join(f"{'default' if s is None else f'{s} workers':>12}" for s in SETTINGS))
        for name, arguments in loads(folder).items():
            for place in args.only.split(","):
                if args.match not in name:
                    continue
                busy = os.cpu_count() or 1 if place == "beside" else 0
                others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
                try:
                    print(f"{name + ', ' + place:28}" + compare(arguments, max(2, args.rounds), args.seconds), flush=True)
                finally:
                    for o in others:
                        o.kill()
                        o.wait()
    finally:
        if not args.folder:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
