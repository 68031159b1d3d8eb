"""A loop that is copied, pickled, forked, spawned from, shared with threads and interrupted at random points."""

import copy
import gc
import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import time
import unittest

import numpy as np

import penstock

from . import data
from .test_dataloader import loader

CASES = int(os.environ.get("PENSTOCK_TEST_POINTS", "400"))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
RECORDS = 1500

IMAGES = np.frombuffer(data.expected("images", "images"), np.uint8).reshape(RECORDS, -1)
LABELS = np.frombuffer(data.expected("images", "labels"), np.uint8).reshape(RECORDS, -1)


def wrong(batch, want):
    """Say what of a batch is not that of the records that want lists, or return None."""
    indices = batch.indices.tolist()
    if indices != want:
        return f"indices {indices[:5]}, not {want[:5]}"
    for name, values in (("images", IMAGES), ("labels", LABELS)):
        got = np.ascontiguousarray(batch[name]).reshape(len(want), -1).view(np.uint8)
        if not np.array_equal(got, values[want]):
            return f"other {name}"
    return None


def judge(pipe):
    """Answer the errors of the batches that are pickled to this process."""
    while (message := pipe.recv()) is not None:
        pipe.send(wrong(pickle.loads(message[0]), message[1]))


class Loop:
    """A DataLoader in the middle of an epoch, the order that it must have, and batches that were kept."""

    def __init__(self, rng, spawned):
        self.rng, self.spawned = rng, spawned
        self.size = rng.choice((7, 100, 499, 500))
        self.shuffle = rng.random() < 0.7
        self.dl = loader(
            "images", self.size, self.shuffle, seed=rng.randrange(9), num_workers=rng.choice((1, 2)), prefetch_factor=rng.choice((1, 2)), timeout=300
        )
        self.kept = []
        self.begin(0)

    def begin(self, epoch):
        self.epoch, self.step = epoch, 0
        self.want = self.order(epoch)
        self.batches = iter(self.dl)

    def order(self, epoch):
        if not self.shuffle:
            return [list(range(i, min(i + self.size, RECORDS))) for i in range(0, RECORDS, self.size)]
        batches = penstock.order.Batches(RECORDS, self.size, seed=self.dl.state_dict()["seed"])
        batches.set_epoch(epoch)
        return [b.tolist() for b in batches]

    def next(self):
        batch = next(self.batches, None)
        while batch is None:
            if self.step != len(self.want):
                raise AssertionError(f"the epoch ends after {self.step} of {len(self.want)} batches")
            self.begin(self.epoch + 1)
            batch = next(self.batches, None)
        self.step += 1
        want = self.want[self.step - 1]
        if said := wrong(batch, want):
            raise AssertionError(f"batch {self.step - 1} of epoch {self.epoch}: {said}")
        return batch, want

    def rebegin(self):
        """Begin where the state says, after an iterator was ended."""
        state = self.dl.state_dict()
        epoch, step = state["epoch"], state["step"]
        self.dl.load_state_dict(state)
        self.begin(epoch)
        self.step = step

    # Actions at a point.

    def do_copy(self, batch, want):
        self.kept.append((self.rng.choice((copy.copy, copy.deepcopy))(batch), want))

    def do_keep(self, batch, want):
        self.kept.append((batch, want))

    def do_pickle(self, batch, want):
        self.kept.append((pickle.loads(pickle.dumps(batch)), want))

    def do_pickle_loader(self, batch, want):
        state = self.dl.state_dict()
        with pickle.loads(pickle.dumps(self.dl)) as other:
            if other.state_dict() != state:
                raise AssertionError("the copy of a DataLoader is elsewhere")
            left = self.want[self.step :]  # as after load_state_dict with that state
            first = next(iter(other), None)
            got = first and first.indices.tolist()
            if got != (left[0] if left else None):
                raise AssertionError(f"the copy of a DataLoader is elsewhere: {state} {got and got[:5]}")

    def do_spawn(self, batch, want):
        self.spawned.send((pickle.dumps(batch), want))
        if said := self.spawned.recv():
            raise AssertionError(f"in a spawned process: {said}")

    def do_fork(self, batch, want):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            code = 3
            try:
                os.close(write)
                os.read(read, 1)  # the parent has continued by then
                code = 0 if wrong(batch, want) is None else 1
                try:
                    next(self.batches)
                    code = 2
                except penstock.Error:
                    pass
                except StopIteration:
                    code = code if self.step == len(self.want) else 2
            finally:
                os._exit(code)
        try:
            batch = None
            if self.rng.random() < 0.5 and self.step < len(self.want):
                self.next()
        finally:
            os.close(write)
            os.close(read)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            raise AssertionError(f"a forked child: code {code}")

    def do_thread(self, batch, want):
        said, others = [], []
        for _ in range(self.rng.randrange(1, 4)):
            others.append(threading.Thread(target=lambda: said.append(wrong(batch, want))))
            others[-1].start()
        if self.step < len(self.want):
            self.next()
        for t in others:
            t.join()
        if any(said):
            raise AssertionError(f"in a thread: {said}")

    def do_interrupt(self, batch, want):
        before = self.dl.state_dict()
        old = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            # Again after a while: Python ignores an exception of a __del__, in which an interrupt may come.
            signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(1e-6, 0.002), 0.5)
            for b in self.batches:
                del b
            while True:
                time.sleep(0.001)
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        after = self.dl.state_dict()
        if (after["epoch"], after["step"]) < (before["epoch"], before["step"]):
            raise AssertionError(f"an interrupt moves a DataLoader back: {before} {after}")
        self.rebegin()

    def do_leave(self, batch, want):
        del batch
        self.batches = None
        self.rebegin()

    def close(self):
        self.dl.close()


DOES = sorted(name for name in vars(Loop) if name.startswith("do_"))


class PointsTest(data.Copied):
    def test_random_points(self):
        here, there = multiprocessing.get_context("spawn").Pipe()
        other = multiprocessing.get_context("spawn").Process(target=judge, args=(there,))
        other.start()
        done, failed = dict.fromkeys(DOES, 0), []
        rng, loop = random.Random(SEED), None
        try:
            for case in range(CASES):
                if loop is None or case % 50 == 0:
                    loop and loop.close()
                    loop = Loop(random.Random(f"{SEED} {case}"), here)
                what = rng.choice(DOES)
                try:
                    for _ in range(rng.randrange(1, 4)):
                        batch, want = loop.next()
                    getattr(loop, what)(batch, want)
                    batch = None
                    if loop.kept and rng.random() < 0.5:
                        kept, of = loop.kept.pop(rng.randrange(len(loop.kept)))
                        if said := wrong(kept, of):
                            raise AssertionError(f"a batch that was kept: {said}")
                    del loop.kept[:-1]
                except Exception as e:
                    failed.append(f"case {case}, {what}: {type(e).__name__}: {e}")
                    loop.close()
                    loop = None
                else:
                    done[what] += 1
        finally:
            loop and loop.close()
            here.send(None)
            other.join()
        if CASES > 1000:
            print(f"{sum(done.values())} points, {len(failed)} failed, PENSTOCK_TEST_SEED={SEED}: {done}", file=sys.stderr)
        self.assertEqual(failed[:5], [], f"{len(failed)} of {CASES}, PENSTOCK_TEST_SEED={SEED}")
        gc.collect()


if __name__ == "__main__":
    unittest.main()
