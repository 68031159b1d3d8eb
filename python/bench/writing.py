"""penstock.map and Writer against litdata's optimize and MosaicML's MDSWriter: a folder of photos to a dataset of their files and labels.

    python3 writing.py FOLDER [ROUNDS]

FOLDER has one folder a class. Every way stores the bytes of the files, in turn, in several rounds, to an empty folder. For the
peers there is also their documented way, which opens an image with Pillow; both then copy the file. penstock's datasets are on disk when
the time ends, with checksums; the peers leave that to the system. OUT=/dev/shm leaves out the disk for all. ONLY="a,b" chooses ways whose names have
one of these. Needs litdata and mosaicml-streaming where they are compared; PENSTOCK_PREPROCESS names preprocess.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # after an installed wheel

try:
    import penstock
except ImportError as e:
    sys.exit(f"needs {e.name}: pip install {e.name}")

WORKERS = 2


def by_path(labels, path):
    return {"images": path, "labels": labels[path.parent.name]}


def by_bytes(labels, path):
    return {"images": path.read_bytes(), "labels": labels[path.parent.name]}


def by_pillow(labels, path):
    from PIL import Image

    return {"images": Image.open(path), "labels": labels[path.parent.name]}


def map_(sample, files, labels, out):
    penstock.map(partial(sample, labels), files, out, workers=WORKERS, keep_encoded=True)


def writer(sample, files, labels, out):
    with penstock.Writer(out, keep_encoded=True) as w:
        for path in files:
            w.append(sample(labels, path))


def optimize(sample, files, labels, out):
    import litdata

    litdata.optimize(partial(sample, labels), files, out, num_workers=WORKERS, chunk_bytes="64MB", start_method="fork", verbose=False)


def mds(sample, files, labels, out):
    from streaming import MDSWriter

    kind = "jpeg" if sample is by_pillow else "bytes"
    with MDSWriter(out=out, columns={"images": kind, "labels": "int"}) as w:
        for path in files:
            w.write(sample(labels, path))


WAYS = {
    "penstock.map, paths, 2 workers": (map_, by_path, None), "penstock.map, bytes, 2 workers": (map_, by_bytes, None),
    "penstock.Writer, paths": (writer, by_path, None), "penstock.Writer, bytes": (writer, by_bytes, None),
    "litdata.optimize, bytes, 2 workers": (optimize, by_bytes, "litdata"), "litdata.optimize, Pillow, 2 workers": (optimize, by_pillow, "litdata"),
    "MDSWriter, bytes": (mds, by_bytes, "streaming"), "MDSWriter, Pillow": (mds, by_pillow, "streaming"),
}  # fmt: skip


def processor():
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(r.ru_utime + r.ru_stime for r in both)


def once(name, folder, base):
    """Run one way in its own process; print the seconds by the clock and of CPU time."""
    files = sorted(p for p in Path(folder).rglob("*") if p.is_file())
    labels = {name: i for i, name in enumerate(sorted({p.parent.name for p in files}))}
    way, sample, module = WAYS[name]
    if module:
        __import__(module)
    out = os.path.join(base, "out")
    begin, used = time.perf_counter(), processor()
    way(sample, files, labels, out)
    print("RESULT", len(files), time.perf_counter() - begin, processor() - used)


def main():
    folder, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    only = os.environ.get("ONLY", "").split(",")
    times = {name: [] for name in WAYS if any(o in name for o in only)}
    for _ in range(rounds):
        for name in times:
            base = tempfile.mkdtemp(prefix="penstock-bench-", dir=os.environ.get("OUT"))
            try:
                run = subprocess.run([sys.executable, __file__, "--once", name, folder, base], capture_output=True, text=True, check=False)
                line = [text for text in run.stdout.splitlines() if text.startswith("RESULT")]
                if not line:
                    print(f"{name}: left out: {(run.stderr.strip() or 'nothing was printed').splitlines()[-1]}")
                    continue
                times[name].append([float(x) for x in line[0].split()[1:]])
            finally:
                shutil.rmtree(base)
    print(f"{rounds} rounds, medians\n\n| way | photos/s | CPU us a photo |\n|---|---|---|")
    for name, rows in times.items():
        if rows:
            n, took, used = (statistics.median(column) for column in zip(*rows))
            print(f"| {name} | {n / took:.0f} | {used / n * 1e6:.0f} |")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with contextlib.suppress(KeyboardInterrupt):
        once(*sys.argv[2:]) if sys.argv[1] == "--once" else main()
