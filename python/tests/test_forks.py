"""Forks at random instants, while loaders of all kinds are read: whatever the children do, the parent's batches stay as they are.

A program has several loops under way, one inside the other, and forks between any two instructions. This module is that program, too.
"""

import contextlib
import faulthandler
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
import warnings

import numpy as np

import penstock

from . import data

#: How many forks there are in all.
FORKS = int(os.environ.get("PENSTOCK_FORKS", "30"))
_EACH = 100  # forks of one program, at most
_PATIENCE = 30.0

# Exit codes of children.
_WRONG, _HUNG = 97, 98


class Squares:
    """Records of a page each, which take different times."""

    def __init__(self, n=48):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i % 16 == 3:
            time.sleep(0.002)
        return np.full(4096, i, np.int32), i * i


class Counted:
    """An iterable dataset, of which each worker has a part."""

    def __iter__(self):
        from penstock import get_worker_info

        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return (np.full(4096, i, np.int32) for i in range(first, 48, step))


class Forking(Squares):
    """Its records fork, too: children of workers that make batches, end, or go on as their parent would."""

    def __getitem__(self, i):
        if i % 12 == 5:
            fork_here(("exit", "collate", "raise", "go on")[i // 12 % 4])
        return super().__getitem__(i)


def fork_here(action):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    quiet()
    if action == "exit":
        os._exit(0)
    if action == "collate":
        from penstock._code import collate

        collate.default_collate([np.full(4096, -1, np.int32)] * 8)
        os._exit(0)
    if action == "raise":
        raise KeyError("a child")


def negative(x):
    return 255 - x


def of_record(record):
    record["images"] = record["images"][::-1].copy()
    return record


def kinds(folder):
    """Return what makes each kind of loader: with the same batches each time."""
    images, zarr = data.path("images"), data.path("ragged.zarr")
    raw = os.path.join(folder, "raw.npy")
    if not os.path.exists(raw):
        np.save(raw, np.random.default_rng(5).integers(0, 255, (256, 4096), np.uint8))
    arrays = (np.arange(400 * 64).reshape(400, 64), np.arange(400))
    fork = {"multiprocessing_context": "fork"}

    def of(dataset, size=4, **more):
        return lambda: penstock.DataLoader(dataset, size, output="numpy", **more)

    return {
        "own": of(Squares(), num_workers=2, seed=1, shuffle=True, **fork),
        "persistent": of(Squares(), num_workers=2, persistent_workers=True, **fork),
        "iterable": of(Counted(), num_workers=2, **fork),
        "serial": of(Squares(), num_workers=0, seed=2, shuffle=True),
        "forking": of(Forking(), num_workers=2, seed=3, **fork),
        "arrays": of(arrays, shuffle=True, seed=4),
        "prepared": of(images, shuffle=True, seed=5),
        "ragged": of(data.path("ragged"), 2, shuffle=True, seed=5),
        "functions": of(images, transforms=[negative], num_workers=2, seed=6, **fork),
        "functions here": of(images, transforms=[negative], num_workers=0, seed=6),
        "records": of(images, transforms=[penstock.transforms.Record(of_record)], num_workers=2, seed=7, **fork),
        "raw": of(raw, 8, shuffle=True, seed=8, prepare="off"),
        "zarr": of(zarr, 2, seed=9),
    }  # fmt: skip


def values(batch):
    """Return the bytes of a batch."""
    if isinstance(batch, np.ndarray):
        return batch.tobytes()
    if hasattr(batch, "offsets"):
        return batch.values.tobytes() + batch.offsets.tobytes()
    if hasattr(batch, "items"):
        return b"".join(values(v) for v in batch.values()) if isinstance(batch, dict) else b"".join(values(v) for _, v in batch.items())
    return b"".join(map(values, batch)) if isinstance(batch, (list, tuple)) else repr(batch).encode()


def quiet():
    """Have a child print nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with contextlib.suppress(Exception):
        signal.setitimer(signal.ITIMER_REAL, 0)


class Run:
    """Loops, one inside the other, and their forks."""

    def __init__(self, seed, forks, folder):
        self.random, self.left, self.errors = random.Random(seed), forks, os.dup(2)
        self.kinds = kinds(folder)
        self.names = sorted(self.kinds)
        self.expected = {}
        self.loops = []  # of name, loader, iterator, and how many batches it gave
        self.held = []  # batches, and their bytes
        self.children = {}  # what they do, by number
        self.owner = os.getpid()
        self.between = False  # whether this is a child that was forked between any two instructions

    def run(self):
        for name in self.names:
            with self.kinds[name]() as loader:
                self.expected[name] = [values(batch) for batch in loader]
        signal.signal(signal.SIGALRM, self.alarm)
        while self.left > 0 and os.getpid() == self.owner:
            self.epoch(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if os.getpid() == self.owner:
            self.reap(True)

    def epoch(self, depth):
        """Read a loader, or two at the same time, to the end; in between there are forks, and other loaders."""
        name = self.random.choice(self.names)
        loader = self.kinds[name]()
        loop = [name, loader, iter(loader), 0]
        self.loops.append(loop)
        while True:
            batch = next(loop[2], None)
            if batch is None:
                break
            self.take(loop, batch)
            if os.getpid() == self.owner:
                if self.left > 0 and self.random.random() < 0.6:
                    self.fork(False)
                if self.left > 0 and self.random.random() < 0.7:
                    signal.setitimer(signal.ITIMER_REAL, self.random.uniform(1e-5, 3e-3))
                if depth < 2 and self.random.random() < 0.04:
                    self.epoch(depth + 1)
        assert self.between or loop[3] == len(self.expected[name]), f"{name}: {loop[3]} of {len(self.expected[name])} batches"
        self.loops.remove(loop)
        self.check()
        loader.close()

    def take(self, loop, batch):
        name, k = loop[0], loop[3]
        found = values(batch)
        if self.between and found == self.expected[name][min(k + 1, len(self.expected[name]) - 1)]:
            loop[3] = k = k + 1  # the parent had got a batch, and not counted it yet
        assert found == self.expected[name][k], f"{name}: batch {k} is another one"
        loop[3] += 1
        if self.random.random() < 0.1:
            self.held.append((batch, found))
            del self.held[:-6]
            self.check()

    def check(self):
        for batch, found in self.held:
            assert values(batch) == found, "a batch that was held is another one"

    def alarm(self, _, frame):
        """Fork where this process is, but not within another fork: there, hooks of Python have locks."""
        while frame is not None and frame.f_code.co_name not in ("_launch", "fork", "_execute_child"):
            frame = frame.f_back
        if os.getpid() == self.owner and self.left > 0 and frame is None:
            self.fork(True)

    def fork(self, anywhere):
        """Fork, and have the child do something; ``anywhere`` is within code of penstock, perhaps."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.left -= 1
        action = self.random.choice(ACTIONS if not anywhere else [a for a in ACTIONS if a not in ("process", "pool", "subprocess")])
        chosen = self.random.random()
        if action in ("process", "pool", "subprocess"):
            getattr(self, action)(chosen)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child:
            self.children[child] = action
            self.reap(len(self.children) > 3)
            return
        faulthandler.dump_traceback_later(_PATIENCE / 3, exit=True, file=self.errors)
        quiet()
        self.between = anywhere
        getattr(self, f"do_{action}")()

    def reap(self, wait):
        """Take the children that ended."""
        deadline = time.monotonic() + _PATIENCE
        while self.children:
            for child in list(self.children):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    action = self.children.pop(child)
                    assert status >> 8 != _WRONG, f"a child that did {action!r} had wrong batches"
            if not wait:
                return
            if time.monotonic() > deadline:
                for child in self.children:
                    os.kill(child, signal.SIGKILL)
                raise AssertionError(f"children that do {list(self.children.values())} do not end")
            time.sleep(0.005)

    # What children do.

    def do_exit(self):
        os._exit(0)

    def do_sys_exit(self):
        sys.exit(3)

    def do_raise(self):
        raise KeyboardInterrupt

    def do_killed(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def do_collect(self):
        self.loops.clear()
        self.held.clear()
        gc.collect()
        os._exit(0)

    def do_close(self):
        for _, loader, _, _ in self.loops:
            loader.close()
        sys.exit(0)

    def do_overwrite(self):
        for batch, _ in self.held:
            for part in batch if isinstance(batch, (tuple, list)) else (batch,):
                with contextlib.suppress(Exception):
                    part[...] = 0
        os._exit(0)

    def do_iterate(self):
        """Go on with the loops of the parent: errors, or right batches."""
        for loop in self.loops:
            with contextlib.suppress(penstock.Error, StopIteration, RuntimeError, ValueError, OSError):
                self.check()
                while True:
                    self.take(loop, next(loop[2]))
        sys.exit(0)

    def do_again(self):
        for _, loader, _, _ in self.loops:
            for ask in (loader.state_dict, loader.stats, lambda of=loader: next(iter(of)), lambda of=loader: of.load_state_dict(of.state_dict())):
                with contextlib.suppress(penstock.Error, StopIteration, RuntimeError):
                    ask()
        gc.collect()
        sys.exit(0)

    def do_new(self):
        """Read a loader of its own."""
        name = self.random.choice(self.names)
        loader = self.kinds[name]()
        for k, batch in enumerate(loader):
            if values(batch) != self.expected[name][k]:
                os._exit(_WRONG)
        loader.close()
        sys.exit(0)

    def do_fork(self):
        faulthandler.cancel_dump_traceback_later()  # whose thread a grandchild would wait for
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            self.do_close()
        faulthandler.dump_traceback_later(_PATIENCE / 6, exit=True, file=self.errors)
        self.do_iterate()

    def do_return(self):
        """Go on as if nothing were."""

    def process(self, chosen):
        method = "fork" if chosen < 0.8 else "forkserver" if chosen < 0.9 else "spawn"
        process = multiprocessing.get_context(method).Process(target=in_process, args=(self if method == "fork" else None,))
        process.start()
        process.join(_PATIENCE)
        assert process.exitcode is not None, "a process of multiprocessing does not end"

    def pool(self, chosen):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]

    def subprocess(self, chosen):
        before = (lambda: None) if chosen < 0.5 else None
        subprocess.run(["true"], check=True, preexec_fn=before)


def in_process(run):
    quiet()
    if run is not None:
        run.loops[0:0] = []
        with contextlib.suppress(penstock.Error, RuntimeError):
            for loop in run.loops:
                next(loop[2])
        gc.collect()


ACTIONS = [name.removeprefix("do_") for name in dir(Run) if name.startswith("do_")] + ["process", "pool", "subprocess"]


def main():
    seed, forks = map(int, sys.argv[1:3])
    run = Run(seed, forks, sys.argv[3])
    try:
        run.run()
    except AssertionError:
        if os.getpid() != run.owner:
            os.write(run.errors, f"a child: {traceback.format_exc()}".encode())
            os._exit(_WRONG)
        raise
    if os.getpid() == run.owner:
        print(f"{forks} forks", flush=True)


@unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
class Forks(unittest.TestCase):
    def setUp(self):
        data.name_programs()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_a_child_that_collects_a_loader_says_nothing(self):
        """What is left of a loader that failed is collected in a worker, or at its exit, or there before penstock knows of the fork."""
        program = (
            "import gc, os, sys\n"
            "early = []\n"
            "os.register_at_fork(after_in_child=lambda: early and gc.collect())\n"
            "import penstock\n"
            "def fails(x):\n    if x[0, 0, 0] % 4 == 3: raise KeyError('a record')\n    return x\n"
            "gc.disable()\n"
            "def failed():\n"
            "    loader = penstock.DataLoader(sys.argv[1], 4, output='numpy', transforms=[fails], num_workers=2, multiprocessing_context='fork')\n"
            "    cycle = [loader]\n    cycle.append(cycle)\n"
            "    try: list(loader)\n    except penstock.Error as e: return e\n"
            "kept = failed()\n"
            "for collect in (True, False, None):\n"
            "    if collect is None: kept = None; early.append(1)\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        if collect: kept = None; gc.collect()\n"
            "        sys.exit(5)\n"
            "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)"
        )
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, data.path("images")], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "5\n5\n5\n", ""))

    def test_a_loader_within_a_loader(self):
        """The workers of the inner one are forked while batches of the outer one are on their way."""
        made = kinds(self.folder)
        with made["own"]() as outer, made["persistent"]() as inner:
            want, within = [values(b) for b in outer], [values(b) for b in inner]
        with made["own"]() as outer:
            for k, batch in enumerate(outer):
                self.assertEqual(values(batch), want[k], k)
                if k % 4 == 1:
                    with made["persistent"]() as inner:
                        self.assertEqual([values(b) for b in inner], within)

    def test_batches_stay(self):
        seed, programs = int(os.environ.get("PENSTOCK_SEED", "1")), -(-FORKS // _EACH)
        for k in range(programs):
            done = subprocess.run(
                [sys.executable, "-m", "tests.test_forks", str(seed + k), str(min(_EACH, FORKS)), self.folder],
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
            )
            with self.subTest(seed=seed + k):
                self.assertEqual((done.returncode, done.stdout), (0, f"{min(_EACH, FORKS)} forks\n"), done.stderr[-4000:])
                self.assertNotIn("Exception ignored", done.stderr)


if __name__ == "__main__":
    main()
