import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import numpy as np

import penstock
from penstock import samplers
from penstock import transforms as T

from . import data
from .test_dataloader import indices, loader

PACKAGE = os.path.dirname(penstock.__file__)

#: No interrupt comes between these lines and what they do: CPython looks for one at calls and jumps.
AT_ONCE = ("yield batch",)


def of(epoch, batch_size=500, n=1500, seed=1):
    batches = penstock.order.Batches(n, batch_size, seed=seed)
    batches.set_epoch(epoch)
    return [b.tolist() for b in batches]


class Interrupt:
    """Raises KeyboardInterrupt before a line of the package, by its number in the order of execution."""

    def __init__(self, at):
        self._left = at
        self.where = None

    def __enter__(self):
        sys.settrace(self._call)

    def __exit__(self, kind, *_):
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def _call(self, frame, event, _):
        return self._line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _line(self, frame, event, _):
        if event == "line" and self.where is None:
            self._left -= 1
            if self._left < 0:
                with open(frame.f_code.co_filename) as f:
                    text = f.read().splitlines()[frame.f_lineno - 1].strip()
                if text not in AT_ONCE and frame.f_code.co_name != "__del__":  # from which nothing is raised
                    self.where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}: {text}"
                    raise KeyboardInterrupt
        return self._line


class LoopsTest(data.Copied):
    """Loops that are begun, left and interrupted."""

    def test_iter_alone_moves_nothing(self):
        with loader("images", 500, True, seed=1) as dl:
            self.assertEqual(next(iter(dl)).indices.tolist(), of(0)[0])
            state = dl.state_dict()
            dl.load_state_dict(state)
            for _ in range(3):
                iter(dl)  # as frameworks do to see that it is iterable
            self.assertEqual(dl.state_dict(), state)
            self.assertEqual(indices(dl), of(0)[1:])
            iter(dl)
            self.assertEqual(indices(dl), of(1))
            dl.set_epoch(7)
            iter(dl)
            self.assertEqual(indices(dl), of(7))

    def test_two_threads_at_the_same_time(self):
        with loader("images", 500, True, seed=1) as dl:
            waits, goes_on = threading.Event(), threading.Event()
            receive, got = dl._engine.session._wire.receive, []

            def slow(deadline):
                waits.set()
                goes_on.wait(60)
                return receive(deadline)

            with mock.patch.object(dl._engine.session._wire, "receive", slow):
                other = threading.Thread(target=lambda: got.extend(b.indices.tolist() for b in [next(iter(dl))]))
                other.start()
                self.assertTrue(waits.wait(60))
                for use in (lambda: next(iter(dl)), dl.stats, lambda: dl.load_state_dict(dl.state_dict())):
                    try:
                        with self.assertRaisesRegex(penstock.Error, "another thread uses this DataLoader now, which is for one thread"):
                            use()
                    except BaseException:
                        goes_on.set()
                        raise
                goes_on.set()
                other.join()
            self.assertEqual(got, of(0)[:1])
            self.assertEqual(indices(dl), of(1))

    def test_iterators_that_begin_late(self):
        with loader("images", 500, True, seed=1) as dl:
            first, second = iter(dl), iter(dl)
            self.assertEqual([next(second).indices.tolist() for _ in range(2)], of(0)[:2])
            self.assertEqual(next(first).indices.tolist(), of(1)[0])  # a loop begins here
            with self.assertRaisesRegex(penstock.Error, "ended by a new one"):
                next(second)
            self.assertEqual([b.indices.tolist() for b in first], of(1)[1:])
            self.assertEqual([b.indices.tolist() for b in first], [])

    def test_a_state_of_batches_out_of_order_in_order(self):
        with loader("images", 10, True, seed=1, in_order=False) as dl, loader("images", 10, True, seed=1) as ordered:
            want = of(0, 10)
            for done in ("", "2", "5a", "fffe"):
                state = {**dl.state_dict(), "epoch": 0, "step": 3, **({"done": done} if done else {})}
                state.pop("done", None) if not done else None
                rest = [b for i, b in enumerate(want) if i >= 3 and not int(done or "0", 16) >> (i - 3) & 1]
                ordered.load_state_dict(state)
                got = []
                for batch in ordered:
                    got.append(batch.indices.tolist())
                    ordered.state_dict()
                self.assertEqual(got, rest, done)
                self.assertEqual(ordered.state_dict()["epoch"], 1)
                dl.load_state_dict(state)
                self.assertEqual(sorted(indices(dl)), sorted(rest))

    def test_the_first_loop_begins_in_a_state_of_batches_out_of_order(self):
        want = of(0, 10)
        with loader("images", 10, True, seed=1, in_order=False) as dl:
            state = {**dl.state_dict(), "epoch": 0, "step": 3, "done": "5a"}
        with loader("images", 10, True, seed=1) as ordered:
            ordered.load_state_dict(state)
            self.assertEqual(indices(ordered), [b for i, b in enumerate(want) if i >= 3 and not 0x5A >> (i - 3) & 1])

    def test_interrupted_starts_in_a_state_of_batches_out_of_order(self):
        with loader("images", 10, True, seed=1, num_workers=1) as dl:
            next(iter(dl))
            state = {**dl.state_dict(), "epoch": 0, "step": 3, "done": "aaaa"}
            for _ in range(6):
                with mock.patch.object(dl._engine.session._wire, "receive", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
                    dl.load_state_dict(state)
                time.sleep(0.1)  # for the feed to show batches
            dl.load_state_dict(state)
            self.assertEqual(indices(dl), [b for i, b in enumerate(of(0, 10)) if i >= 3 and not 0xAAAA >> (i - 3) & 1])

    def check(self, dl, before):
        """Make sure that a DataLoader that was interrupted is where it says, and is as good as new."""
        state = json.loads(json.dumps(dl.state_dict()))
        epoch, step = state["epoch"], state["step"]
        resumed = dl._engine.epochs.loaded is not None
        if not resumed and (epoch, step) != (before["epoch"], before["step"]):
            self.assertGreaterEqual((epoch, step), (before["epoch"], before["step"]))
        want = of(epoch)[step:] if resumed else of(epoch + (step > 0))
        self.assertEqual([len(b) for b in want], [500] * len(want))
        self.assertEqual(indices(dl), want)
        dl.load_state_dict(state)
        self.assertEqual(indices(dl), of(epoch)[step:])
        self.assertIsInstance(dl.diagnose(), str)

    def interrupted(self, what, dl):
        """Interrupt a function before each line of the package that it runs, in turn."""
        k = 0
        while True:
            dl.load_state_dict({**dl.state_dict(), "epoch": k, "step": 1} if k % 2 else {**dl.state_dict(), "epoch": k, "step": 0})
            if k % 3 == 0:
                next(iter(dl))
            before = dl.state_dict()
            interrupt = Interrupt(k)
            with interrupt:
                what(dl)
            with self.subTest(at=k, where=interrupt.where):
                self.check(dl, before)
            if interrupt.where is None:
                return k
            k += 1

    def test_an_interrupt_at_each_line(self):
        kept = []

        def loop(dl):
            for batch in dl:
                kept[:] = [batch["labels"]]

        def loop_with_statistics(dl):
            for _ in dl:
                dl.stats()

        def load(dl):
            dl.load_state_dict({**dl.state_dict(), "epoch": 3, "step": 2})

        for what in (loop, loop_with_statistics, load):
            with self.subTest(what.__name__), loader("images", 500, True, seed=1, num_workers=1, timeout=200, prefetch_factor=1) as dl:
                self.assertGreater(self.interrupted(what, dl), 50)
                kept.clear()
                gc.collect()
                list(dl)
                self.assertLessEqual(len(dl._engine.session._freed) + len(dl._engine.session._pending), dl._engine.session._slots)
                self.assertEqual(dl._engine.session._slots_in_use - len(dl._engine.session._freed), 0)

    def test_interrupts_at_random_times(self):
        """SIGINT comes from a timer, wherever the process is."""
        n = int(os.environ.get("PENSTOCK_TEST_INTERRUPTS", "60"))
        choose = random.Random(3)
        interrupts = 0
        with loader("images", 500, True, seed=1, timeout=200, prefetch_factor=1) as dl:
            seconds = 0.001
            for k in range(n):
                dl.load_state_dict({**dl.state_dict(), "epoch": k, "step": choose.randrange(3)})
                before = dl.state_dict()
                old = signal.signal(signal.SIGALRM, signal.default_int_handler)
                try:
                    signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-6, seconds))
                    for _ in range(4):
                        for _ in dl:
                            dl.stats() if choose.random() < 0.2 else None
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    interrupts += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    signal.signal(signal.SIGALRM, old)
                self.check(dl, before)
        self.assertGreater(interrupts, 0)

    def test_requests_in_the_middle_of_a_loop(self):
        with loader("images", 100, True, seed=1) as dl:
            got = []
            for batch in dl:
                got.append(batch.indices.tolist())
                with Interrupt(7 * len(got)):
                    dl.stats()
                with Interrupt(5 * len(got)):
                    dl.load_state_dict({**dl.state_dict(), "seed": 9})
            self.assertEqual(got, of(0, 100))

    def test_a_constructor_that_fails_leaves_nothing(self):
        weights = samplers.Weighted(np.ones(1500))
        gc.collect()  # what earlier tests left
        before = sorted(os.listdir("/proc/self/fd"))
        for options in (
            {"transforms": 3},
            {"verify": "x"},
            {"filters": ["x"]},
            {"pack": 3},
            {"command": "no-such-feed"},
            {"batch_transforms": 3},
            {"cache_size": 0},
            {"world_size": 0},
        ):
            for _ in range(5):
                with self.subTest(options=options), self.assertRaises((ValueError, TypeError, AttributeError)):
                    penstock.DataLoader(data.path("images"), 2, sampler=weights, output="numpy", **{"command": data.feed(), **options})
        gc.collect()
        self.assertEqual(sorted(os.listdir("/proc/self/fd")), before)

    def test_first_loaders_of_several_threads(self):
        code = """if True:
            import sys, threading
            import penstock
            from penstock._base import program
            barrier, failures = threading.Barrier(8), []
            def make():
                barrier.wait()
                try:
                    program.find()
                except BaseException as e:
                    failures.append(repr(e))
            threads = [threading.Thread(target=make) for _ in range(8)]
            sys.setswitchinterval(1e-6)
            for t in threads: t.start()
            for t in threads: t.join()
            sys.exit(", ".join(failures) or 0)
        """
        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, "..")}
        for _ in range(10):
            done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_loaders_of_several_threads(self):
        got, failures = [], []

        def load(k):
            try:
                with loader("images", 100, True, seed=k) as dl:
                    got.append((k, indices(dl)))
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=load, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])
        for k, batches in got:
            self.assertEqual(batches, of(0, 100, seed=k))
        self.assertEqual(len(got), 8)

    def test_attributes_cannot_be_set(self):
        with loader("images", 50, True, seed=3) as dl:
            self.assertEqual(
                (dl.batch_size, dl.shuffle, dl.sampler, dl.seed, dl.rank, dl.world_size, dl.batch_sampler),
                (50, True, samplers.Shuffle(), 3, 0, 1, None),
            )
            for name in (
                "batch_size",
                "sampler",
                "batch_sampler",
                "drop_last",
                "dataset",
                "num_workers",
                "shuffle",
                "seed",
                "timeout",
                "transforms",
                "collate_fn",
            ):
                with self.assertRaisesRegex(ValueError, f"^{name} attribute should not be set after DataLoader is initialized"):
                    setattr(dl, name, 7)
            for name in ("collate_fn", "generator", "worker_init_fn"):
                self.assertIsNone(getattr(dl, name))
            dl.of_the_user = 1
            self.assertEqual(len(indices(dl)), 30)

    def test_states_of_other_transforms(self):
        def of(normalize, mix):
            ops = [T.ToTensor(), T.Normalize([normalize], [0.5])]
            return loader("images", 500, True, transforms=ops, batch_transforms=mix, drop_last=True)

        with of(0.5, T.MixUp(alpha=0.2)) as dl:
            state = dl.state_dict()
        for normalize, mix, why in (
            (0.5, T.MixUp(alpha=0.2), None),
            (0.1, T.MixUp(alpha=0.2), "another pipeline of transforms"),
            (0.5, T.MixUp(alpha=0.8), r"another collate function \(batch transforms\)"),
            (0.5, T.CutMix(alpha=0.2), r"another collate function \(batch transforms\)"),
            (0.5, None, r"another collate function \(batch transforms\)"),
        ):
            with self.subTest(normalize=normalize, mix=mix), of(normalize, mix) as dl:
                if why is None:
                    dl.load_state_dict(state)
                else:
                    with self.assertRaisesRegex(penstock.Error, why):
                        dl.load_state_dict(state)
                self.assertEqual(len(list(dl)), 3)

    def test_numbers_that_are_none(self):
        for timeout, text in ((float("nan"), "timeout is nan; it must be 0 or more"), (-1, "timeout option should be non-negative")):
            with self.assertRaisesRegex(ValueError, text):
                loader("images", 2, timeout=timeout)


if __name__ == "__main__":
    unittest.main()
