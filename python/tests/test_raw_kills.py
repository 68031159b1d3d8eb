"""Loaders that fill one cache, killed at random moments of their first epoch."""

import contextlib
import glob
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

import penstock

from . import data, test_raw
from .test_writer import PYTHON, files, photo

setUpModule = data.name_programs

RANKS = 4

#: An epoch of a rank, which prints the digests of the records of each batch.
EPOCH = """
import hashlib, sys, time
import penstock
from penstock.transforms import RandomHorizontalFlip, RandomResizedCrop, ToTensor
photos, cache, rank, ranks, pause = *sys.argv[1:3], *map(int, sys.argv[3:5]), float(sys.argv[5])
loader = penstock.DataLoader(
    photos, 6, shuffle=True, seed=7, transforms=[RandomResizedCrop(16), RandomHorizontalFlip(), ToTensor()], output="numpy",
    rank=rank, world_size=ranks, drop_last=True, cache_dir=cache,
)
for images, labels in loader:
    print(*(hashlib.sha256(a.tobytes() + b.tobytes()).hexdigest()[:16] for a, b in zip(images, labels)), flush=True)
    time.sleep(pause)
print("end", flush=True)
"""


def children(of):
    """Return the numbers of the processes that those of a set started, and their children; none where the system does not show them."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path) as f:
            text = f.read()
            parents[int(path.split("/")[2])] = int(text[text.rindex(")") + 1 :].split()[1])
    found = set(of)
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - set(of)


def kill(pid):
    """Kill a process, and return whether there was one."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class TestKills(test_raw.Raw):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")
        self.random = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", "3")))
        self.versions = 0

    def epochs(self, photos):
        """Return the digests of the records of each batch of each rank, as a run without a cache reads them."""
        found = []
        for rank in range(RANKS):
            loader = self.loader(photos, rank=rank, world_size=RANKS, drop_last=True)
            found.append([[hashlib.sha256(a.tobytes() + b.tobytes()).hexdigest()[:16] for a, b in zip(*batch)] for batch in loader])
        return found

    def rewrite(self, photos):
        """Put another photograph into a file."""
        self.versions += 1
        with open(self.path("written"), "wb") as f:
            f.write(photo(1000 + self.versions, (40 + self.random.randrange(9), 30)))
        os.replace(self.path("written"), self.random.choice(sorted(glob.glob(os.path.join(photos, "*", "*.bmp")))))

    def add_and_remove(self, photos):
        """Rename a file, which removes one and adds one."""
        path = self.random.choice(sorted(glob.glob(os.path.join(photos, "*", "*.bmp"))))
        os.rename(path, path[: -len(".bmp")] + "x.bmp")

    def start(self, photos):
        """Start an epoch of each rank; return the processes, and the files that they print to."""
        pause, started, printed = self.random.uniform(0, 0.03), [], []
        for rank in range(RANKS):
            printed.append(self.path(f"printed{rank}"))
            words = [sys.executable, "-c", EPOCH, photos, self.cache, str(rank), str(RANKS), str(pause)]
            with open(printed[-1], "w") as out, open(self.path(f"errors{rank}"), "w") as errors:
                started.append(subprocess.Popen(words, env={**os.environ, "PYTHONPATH": PYTHON}, stdout=out, stderr=errors))
        return started, printed

    def lines(self, path):
        with open(path) as f:
            return [line.split() for line in f.read().splitlines(True) if line.endswith("\n")]

    def kill(self, started, pause):
        """Kill the trainers, what they started, or all of it; return the trainers that die of it."""
        time.sleep(pause)
        running = [p for p in started if p.poll() is None]
        what = self.random.choice(["trainers", "loaders", "preparations", "all"])
        victims = [p for p in running if self.random.random() < 0.8]
        below = {p.pid: children([p.pid]) for p in victims}
        for p in victims:
            if what in ("trainers", "all"):
                p.kill()
            if what != "trainers":
                for pid in below[p.pid]:
                    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                        if what == "all" or (b"\0cache\0" in f.read()) == (what == "preparations"):
                            kill(pid)
        return [] if what == "preparations" else victims

    def compare(self, started, printed, killed, before, after):
        """Compare what was printed with runs before and after a change."""
        for rank, (process, path) in enumerate(zip(started, printed)):
            got, ended = self.lines(path), False
            if got and got[-1] == ["end"]:
                got, ended = got[:-1], True
            with open(self.path(f"errors{rank}")) as f:
                errors = f.read()
            if process not in killed:
                self.assertTrue(ended, errors)
            if ended:
                self.assertEqual(len(got), len(before[rank]))
            for batch, old, new in zip(got, before[rank], after[rank]):
                for a, b, c in zip(batch, old, new):
                    self.assertIn(a, (b, c), errors)

    def test_loaders(self):
        """Four trainers with a loader each, which prepare one dataset; $PENSTOCK_TEST_KILLS says how many are killed.

        Between epochs and during them, files of the source change, and the cache is removed.
        """
        photos = self.photos(144)
        left, complete, counts = int(os.environ.get("PENSTOCK_TEST_KILLS", "4")), 0, {}
        want, made, begun_with = self.epochs(photos), None, None
        while left > 0:
            if self.random.random() < 0.3:
                self.random.choice([self.rewrite, self.add_and_remove])(photos)
                want, made = self.epochs(photos), None
            if not os.path.isdir(self.cache):
                begun_with = want
            started, printed = self.start(photos)
            moment = self.random.randrange(len(want[0]))
            while len(self.lines(printed[0])) < moment and started[0].poll() is None:
                time.sleep(0.002)
            before, event = want, self.random.choice(["", "", "", "rewrite", "remove the cache"])
            if event == "rewrite":
                self.rewrite(photos)
                want, made = self.epochs(photos), None
            elif event == "remove the cache":
                shutil.rmtree(self.cache, ignore_errors=True)
            killed = self.kill(started, self.random.uniform(0, 0.05))
            left -= len(killed) or 1
            counts[event] = counts.get(event, 0) + 1
            for process in started:
                process.wait(60)
            self.compare(started, printed, killed, before, want)
            self.settle()
            found = glob.glob(os.path.join(self.cache, "penstock-*", "*", "manifest.json"))
            found = [os.path.dirname(path) for path in found if ".new" not in path and ".building" not in path]
            if found and begun_with == want and event != "remove the cache":
                if made is None:
                    penstock.preprocess(photos, self.path("ds"), keep_encoded=True, overwrite=True, progress=False)
                    made = files(self.path("ds"))
                self.assertEqual([files(path) for path in found], [made])
                complete += 1
                shutil.rmtree(self.cache)
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache), self.batches(photos, 1))
        if "PENSTOCK_TEST_KILLS" in os.environ:
            print(f"{complete} datasets of the first state were complete; events: {counts}")


if __name__ == "__main__":
    unittest.main()
