"""Ctrl-C at random instants of a loader's life, from its start to its end: no process, zombie or file is left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

from . import data

#: How many interrupts each kind of loader gets.
COUNT = int(os.environ.get("PENSTOCK_TEST_INTERRUPTS", "4"))

SCRIPT = """
import gc, glob, os, random, signal, sys, threading, time, warnings
import numpy as np, penstock

class Own:
    def __len__(self): return 100
    def __getitem__(self, i): return np.float32(i)

def same(x): return x

def load():
    loader = {
        "prepared": lambda: penstock.DataLoader(PATH, 100, output="numpy"),
        "view": lambda: penstock.DataLoader(penstock.open(PATH).select([5, 3]), 2, output="numpy"),
        "functions": lambda: penstock.DataLoader(PATH, 100, output="numpy", transforms={"images": [same]}, num_workers=2),
        "own": lambda: penstock.DataLoader(Own(), 10, output="numpy", num_workers=2),
    }[KIND]()
    try:
        next(iter(loader))
    finally:
        loader.close()

def children():
    found = []
    for path in glob.glob("/proc/self/task/*/children"):
        with open(path) as f:
            found += f.read().split()
    return sorted(found)

def interrupt(at, done):
    time.sleep(at)
    os.kill(os.getpid(), signal.SIGINT)
    done.set()

PATH, KIND, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
load()
begun = time.monotonic()
load()
span, before, rng, came = time.monotonic() - begun, children(), random.Random(KIND), 0
for number in range(COUNT):
    at, done = span * rng.random(), threading.Event()
    thread = threading.Thread(target=interrupt, args=(at, done))
    try:
        thread.start()
        load()
        done.wait(60)
        time.sleep(0.01)
    except KeyboardInterrupt:
        came += 1
    thread.join()
    gc.collect()
    end = time.monotonic() + 20
    while children() != before and time.monotonic() < end:
        time.sleep(0.01)
    for child in set(children()) - set(before):
        with open(f"/proc/{child}/stat") as f:
            print("left after", at / span, f.read())
            before.append(child)
print("interrupted", came)
"""


@unittest.skipUnless(os.path.exists("/proc/self/task"), "it looks at processes in /proc, which Linux has")
class InterruptTest(unittest.TestCase):
    def test_too_little_address_space(self) -> None:
        script = (
            "import resource, sys, penstock; resource.setrlimit(resource.RLIMIT_AS, (700 << 20, resource.RLIM_INFINITY))\n"
            "penstock.DataLoader(sys.argv[1], 2, output='numpy')"
        )
        env = {**os.environ, "PENSTOCK_FEED": data.feed(), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, "-c", script, data.path("images")], env=env, capture_output=True, text=True)
        self.assertRegex(done.stderr, "it needs 800 MiB of address space, and each process may have 700 MiB: run ulimit -v unlimited")
        self.assertNotIn("goroutine", done.stderr)

    def test_nothing_is_left(self) -> None:
        came = 0  # the others came in a finalizer, where Python prints an exception and goes on
        for kind in ("prepared", "view", "functions", "own"):
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as folder:
                env = {**os.environ, "TMPDIR": folder, "PENSTOCK_FEED": data.feed()}
                command = [sys.executable, "-W", "ignore", "-c", SCRIPT, data.path("images"), kind, str(COUNT)]
                done = subprocess.run(command, env=env, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.split("\n")[:-2], [], done.stdout)
                came += int(done.stdout.split()[-1])
                self.assertEqual([files for _, _, files in os.walk(folder) if files], [])
        self.assertGreater(came, 2 * COUNT, "of four times as many interrupts")
