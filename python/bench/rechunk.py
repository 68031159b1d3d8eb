"""Rechunking in bounded memory: penstock against rechunker with dask, and a copy of the files; then a run that is killed.

    python3 rechunk.py FOLDER [--gigabytes 4] [--memory 1GiB] [--kills 50]

An array of float32 (time, 721, 1440) in chunks of one time step, zstd, is made in FOLDER if it is not there, and written
in chunks of (--target). Shown are the seconds, the most memory that the processes had, and whether values are the same. Then a run is
killed --kills times at random moments and continued, and all files are compared with those of the run that was not. FOLDER
needs three times the size of the array. It needs zarr and dask. rechunker works with Zarr of version 2 alone, which --packages
has: pip install --no-deps --target PACKAGES zarr==2.18.7 numcodecs==0.15.1 rechunker asciitree fasteners mypy_extensions deprecated wrapt.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import shutil
import subprocess
import sys
import time

try:
    import numpy as np
    import zarr
except ImportError as e:
    sys.exit(f"needs numpy and zarr: {e}")

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPE = (721, 1440)

PENSTOCK = """
import sys; sys.path.insert(0, {package!r})
import penstock
penstock.rechunk({source!r}, {dest!r}, {chunks!r}, memory={memory!r}, resume={resume!r})
"""

RECHUNKER = """
import sys; sys.path[:0] = {packages!r}
import zarr, rechunker
source = zarr.open({source!r}, mode="r")["t2m"]
plan = rechunker.rechunk(source, {target!r}, {memory!r}, {dest!r}, temp_store={dest!r} + ".temp")
plan.execute()
"""

COPY = "import shutil; shutil.copytree({source!r}, {dest!r})"


def write(path: str, steps: int) -> None:
    group = zarr.open_group(path + ".part", mode="w", zarr_format=2)
    import numcodecs

    array = group.create_array("t2m", shape=(steps, *SHAPE), chunks=(1, *SHAPE), dtype="f4", compressors=numcodecs.Zstd(level=1))
    array.attrs["_ARRAY_DIMENSIONS"] = ["time", "lat", "lon"]
    rng, waves = np.random.default_rng(0), 273 + 30 * np.cos(np.linspace(-1.5, 1.5, SHAPE[0]))[:, None]
    noise = np.round(rng.normal(0, 0.3, (64, *SHAPE)), 2)
    for t in range(steps):
        array[t] = np.round(waves + noise[t % 64] + t % 97, 2).astype("f4")
    os.rename(path + ".part", path)


def run(text: str, kill_after: float | None = None) -> tuple[float, int, int]:
    """Run a program of Python, and return the seconds, the bytes of memory of its largest process, and the exit status."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", text], start_new_session=True)
    if kill_after is not None:
        try:
            child.wait(kill_after)
        except subprocess.TimeoutExpired:
            for pid in (*children(child.pid), child.pid):
                os.kill(pid, 9)
    most = 0
    while child.poll() is None:
        most = max(most, *(resident(pid) for pid in (child.pid, *children(child.pid))))
        time.sleep(0.02)
    return time.perf_counter() - start, most, child.returncode


def children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def resident(pid: int) -> int:
    """Return the most memory that a process has had, without the page cache."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return sum(int(line.split()[1]) for line in f if line.startswith(("RssAnon", "RssShmem"))) * 1024
    except OSError:
        return 0


def same_files(a: str, b: str) -> bool:
    found = [{os.path.relpath(os.path.join(at, n), top) for at, _, names in os.walk(top) for n in names} for top in (a, b)]
    return found[0] == found[1] and all(filecmp.cmp(os.path.join(a, n), os.path.join(b, n), shallow=False) for n in found[0])


def same_values(a: str, b: str, name: str | None) -> bool:
    x, y = zarr.open(a, mode="r")["t2m"], zarr.open(b, mode="r")
    y = y[name] if name else y
    return x.shape == y.shape and all(np.array_equal(x[t : t + 24], y[t : t + 24]) for t in range(0, x.shape[0], 24))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--target", default="240,64,64")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--packages", nargs="*", default=[], help="folders of packages for rechunker")
    parser.add_argument("--kills", type=int, default=50)
    o = parser.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    steps = max(1, int(o.gigabytes * 1e9 / 4 / SHAPE[0] / SHAPE[1]))
    source, dest = os.path.join(o.folder, f"source-{steps}.zarr"), os.path.join(o.folder, "dest.zarr")
    if not os.path.exists(source):
        write(source, steps)
    target = tuple(min(int(n), m) for n, m in zip(o.target.split(","), (steps, *SHAPE)))
    given = {
        "source": source, "dest": dest, "package": os.path.dirname(HERE), "memory": o.memory, "target": target, "resume": False,
        "packages": o.packages,
        "chunks": dict(zip(("time", "lat", "lon"), target)),
    }  # fmt: skip
    size = steps * SHAPE[0] * SHAPE[1] * 4
    print(f"{size / 1e9:.1f} GB, chunks of (1, 721, 1440) to {target}, {o.memory}")
    print(f"{'way':12} {'seconds':>8} {'MB/s':>6} {'memory':>10}  values")
    for name, text, array in (("copy", COPY, "t2m"), ("rechunker", RECHUNKER, None), ("penstock", PENSTOCK, "t2m")):
        for old in (dest, dest + ".temp"):
            shutil.rmtree(old, ignore_errors=True)
        took, most, status = run(text.format(**given))
        if status:
            print(f"{name:12} failed with exit status {status}")
            continue
        print(
            f"{name:12} {took:8.1f} {size / took / 1e6:6.0f} {most / 1e6:7.0f} MB  {'same' if same_values(source, dest, array) else 'OTHER VALUES'}",
            flush=True,
        )
    whole, kills = dest, 0
    again = os.path.join(o.folder, "killed.zarr")
    shutil.rmtree(again, ignore_errors=True)
    while kills < o.kills:
        _, _, status = run(
            PENSTOCK.format(**{**given, "dest": again, "resume": True}), kill_after=0.3 + random.random() * max(0.5, took / max(1, o.kills) * 2)
        )
        kills += status != 0
        if os.path.exists(again):  # it was complete
            if not same_files(whole, again):
                sys.exit("a run that was killed made other files")
            shutil.rmtree(again)
    if run(PENSTOCK.format(**{**given, "dest": again, "resume": True}))[2] or not same_files(whole, again):
        sys.exit("a run that was killed made other files")
    print(f"killed {kills} times: the same files")
    for old in (dest, again):
        shutil.rmtree(old)


if __name__ == "__main__":
    main()
