"""Datasets of Python code: batches, order, states, failures and what is left, without torch."""

import collections
import dataclasses
import gc
import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
from functools import partial

import numpy as np

from penstock import get_worker_info, order, samplers
from penstock._base.errors import Error, UnsupportedError
from penstock._code.loader import UserLoader
from penstock._engine.signature import Signature

LINUX = sys.platform == "linux"
Pair = collections.namedtuple("Pair", "image label")


class Squares:
    """Records of several types; those with noise draw random numbers."""

    def __init__(self, n=20, noise=False):
        self.n, self.noise, self.epoch = n, noise, 0

    def __len__(self):
        return self.n

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, i):
        noise = [random.random(), float(np.random.rand())] if self.noise else [0.0, 0.0]
        return {
            "image": np.full((4, 3), i % 256, np.uint8), "square": i * i, "half": i / 2, "name": f"r{i}",
            "pair": Pair(np.int16(i), (i % 2 == 0, b"x")),
            "noise": noise, "epoch": self.epoch,
        }  # fmt: skip


class Lists(Squares):
    """A dataset that is asked for whole batches."""

    def __getitems__(self, indices):
        return [self[i] for i in indices]


class Stream:
    """Numbers, divided over workers."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.n, step):
            yield i, random.random()


class Resumable:
    """Numbers; its state says where it is, and how often it was asked for one."""

    def __init__(self, n):
        self.n, self.at, self.asked = n, 0, 0

    def __iter__(self):
        while self.at < self.n:
            self.at, self.asked = self.at + 1, self.asked + 1
            yield self.at - 1
        self.at = 0

    def state_dict(self):
        return {"at": self.at, "asked": self.asked}

    def load_state_dict(self, state):
        self.at, self.asked = state["at"], state["asked"]


class Stately:
    """A sampler with a state, which is that of its next epoch once it has given its last record."""

    def __init__(self, n):
        self.n, self.order, self.at = n, None, 0

    def __len__(self):
        return self.n

    def __iter__(self):
        if self.order is None:
            self.order, self.at = random.sample(range(self.n), self.n), 0
        while self.at < self.n:
            self.at += 1
            yield self.order[self.at - 1]
        self.order = None

    def state_dict(self):
        return {"order": self.order, "at": self.at}

    def load_state_dict(self, state):
        self.order, self.at = state["order"], state["at"]


class Fails(Squares):
    """Records some of which do something else."""

    def __init__(self, n, at, do):
        super().__init__(n)
        self.at, self.do = at, do

    def __getitem__(self, i):
        if i in self.at:
            self.do(i)
        return np.full(3, i + 1.0), i


def fail(i):
    raise KeyError(f"no record {i}")


def end(i):
    raise StopIteration


def fail_strangely(i):
    class Strange(Exception):
        def __init__(self, one, two):
            super().__init__(one)

    raise Strange(i, 2)


def die(i):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(i):
    os._exit(7)


def fault(i):
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(i):
    time.sleep(60)


def to_generator(samples):
    return (s for s in samples)


def as_they_are(samples):
    return samples


def loader(dataset, seed=None, rank=0, world_size=1, on_error="fail", **arguments):
    return UserLoader(
        Signature.of({"dataset": dataset, **arguments}), seed=seed, rank=rank, world_size=world_size, on_error=on_error, output="numpy"
    )  # fmt: skip


def plain(value):
    """Return a batch as lists and numbers, to be compared."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    return value


def everything(of):
    return [plain(b) for b in of]


def seed_all(number):
    random.seed(number)
    np.random.seed(number)


def processes():
    return {p.pid for p in multiprocessing.active_children()}


def descriptors():
    return len(os.listdir("/proc/self/fd")) if LINUX else 0


class Batches(unittest.TestCase):
    def test_types(self):
        for workers in (0, 2):
            with self.subTest(workers=workers):
                batches = list(loader(Squares(5), batch_size=3, num_workers=workers))
                self.assertEqual([len(b["name"]) for b in batches], [3, 2])
                b = batches[0]
                self.assertEqual([b[k].dtype for k in ("image", "square", "half")], [np.uint8, np.int64, np.float64])
                self.assertEqual(b["image"].shape, (3, 4, 3))
                self.assertEqual(b["square"].tolist(), [0, 1, 4])
                self.assertEqual(b["name"], ["r0", "r1", "r2"])
                self.assertIsInstance(b["pair"], Pair)
                self.assertEqual((b["pair"].image.dtype, b["pair"].label[0].dtype), (np.int16, np.bool_))
                self.assertEqual(b["pair"].label[1], (b"x",) * 3)
                b["image"] += 1  # the batch is the caller's

    def test_kept_batches_are_not_overwritten(self):
        for size in (1, 7):
            kept = list(loader(Squares(50), batch_size=size, num_workers=2))
            self.assertEqual(np.concatenate([b["square"] for b in kept]).tolist(), [i * i for i in range(50)])
            self.assertEqual(np.concatenate([b["image"][:, 0, 0] for b in kept]).tolist(), list(range(50)))

    def test_slots_are_used_again(self):
        of = loader([np.zeros(100_000, np.uint8)] * 100, batch_size=2, num_workers=1)
        places = [b.__array_interface__["data"][0] for b in of]
        self.assertLess(len(set(places)), 12)

    def test_slots_grow(self):
        sizes = [int(2 ** (i % 17)) for i in range(60)]
        of = loader([np.full(n, n, np.int32) for n in sizes], batch_size=None, num_workers=2)
        for n, b in zip(sizes, of):
            self.assertEqual((b.shape, int(b.min()), int(b.max())), ((n,), n, n))

    def test_shuffle_draws_from_numpy(self):
        of = loader(Squares(9), batch_size=4, shuffle=True, num_workers=2)
        seed_all(1)
        first = everything(of)
        second = everything(of)
        seed_all(1)
        self.assertEqual(everything(of), first)
        self.assertNotEqual(second, first)

    def test_whole_batches_are_asked_for(self):
        self.assertEqual(everything(loader(Lists(7), batch_size=3, num_workers=2)), everything(loader(Squares(7), batch_size=3)))

    def test_arrays_of_all_kinds(self):
        arrays = [
            np.zeros((0, 3)), np.full((), 2, np.float32), np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(10)[::-3], np.array(["a", "bc"]),
            np.array([None, {}], object), np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]), np.array(["2020-01-01"], "M8[D]"),
            np.arange(4, dtype=">i4"),
            np.broadcast_to(np.arange(3), (4, 3)), np.ma.masked_array([1, 2], [True, False]), np.array(b"abc", "V3"), np.zeros(3, "S0"),
        ]  # fmt: skip
        arrays[1].flags.writeable = False
        for got in loader(arrays, num_workers=1, batch_size=4, collate_fn=as_they_are, sampler=[*range(len(arrays)), 0, 5, 0]):
            for a in got:
                want = next(w for w in arrays if w.dtype == a.dtype and w.shape == a.shape)
                np.testing.assert_array_equal(a, want)
                self.assertIs(type(a), type(want))
                if want.flags.contiguous:
                    self.assertEqual(a.flags.f_contiguous, want.flags.f_contiguous)
                self.assertTrue(a.flags.writeable or isinstance(a, np.ma.MaskedArray))

    def test_long_results(self):
        texts = ["x" * (1 << k) for k in range(22)]
        for workers in (1, 3):
            got = [b[0] for b in loader(texts, num_workers=workers, prefetch_factor=11)]
            self.assertEqual(got, texts)

    def test_many_messages(self):
        """More messages wait in both directions than sockets take."""
        of = loader(range(3000), num_workers=1, prefetch_factor=3000, batch_sampler=[list(range(k % 1000)) or [0] for k in range(3000)])
        self.assertEqual(sum(len(b) for b in of), sum(k % 1000 or 1 for k in range(3000)))

    def test_spawned(self):
        for method in ("spawn", "forkserver"):
            if method in multiprocessing.get_all_start_methods():
                got = everything(loader(Squares(7), batch_size=3, num_workers=2, multiprocessing_context=method))
                self.assertEqual(got, everything(loader(Squares(7), batch_size=3)))


class Workers(unittest.TestCase):
    def test_persistent(self):
        data = Squares(8)
        of = loader(data, batch_size=2, num_workers=2, persistent_workers=True)
        loop = iter(of)
        pids = loop.pids
        self.assertEqual(len(list(loop)), 4)
        data.epoch = 5
        again = iter(of)
        self.assertIs(again, loop)
        next(again)
        self.assertEqual(iter(of).pids, pids)  # the epoch that was left is finished by them, and dropped
        self.assertEqual([b["epoch"].tolist() for b in again], [[0, 0]] * 4)  # they have their copy of the dataset
        of._iterator = None
        self.assertFalse(processes() & set(pids))

    def test_left_epochs_leave_no_memory(self):
        class Uneven(Squares):
            def __getitem__(self, i):
                time.sleep(0.01 * (i % 2 == 0))  # so that batches of the second worker come, and wait for those of the first
                return np.full(1 << 16, 7, np.uint8)

        of = loader(Uneven(30), batch_size=1, num_workers=2, persistent_workers=True, prefetch_factor=4)
        for _ in range(20):
            loop = iter(of)
            for _ in range(3):
                next(loop)
        self.assertLess(max(max(w.reader._places) for w in loop._pool._workers), 20)

    @unittest.skipUnless(LINUX, "a kill")
    def test_persistent_worker_is_killed(self):
        of = loader(Squares(8), batch_size=2, num_workers=2, persistent_workers=True)
        first = [b["square"].tolist() for b in of]
        loop = of._persistent
        os.kill(loop.pids[0], signal.SIGKILL)
        os.waitid(os.P_PID, loop.pids[0], os.WEXITED | os.WNOWAIT)
        with self.assertRaisesRegex(RuntimeError, str(loop.pids[0])):  # as torch does
            list(of)
        self.assertEqual([b["square"].tolist() for b in of], first)  # by new workers
        self.assertFalse(set(loop.pids) & set(of._persistent.pids))
        of.close()

    def test_not_persistent(self):
        data = Squares(8)
        of = loader(data, batch_size=2, num_workers=2)
        self.assertEqual(next(iter(of))["epoch"].tolist(), [0, 0])
        data.epoch = 5
        self.assertEqual(next(iter(of))["epoch"].tolist(), [5, 5])

    def test_left_loops_end_their_workers(self):
        before, open_before = processes(), descriptors()
        of = loader(Squares(100), batch_size=2, num_workers=2)
        for _ in of:
            break
        self.assertFalse(processes() - before)
        loop = iter(of)
        batch = next(loop)
        del loop
        self.assertFalse(processes() - before)
        self.assertEqual(batch["square"].tolist(), [0, 1])
        del batch, _
        gc.collect()
        self.assertEqual(descriptors(), open_before)

    def test_kept_batches_take_few_descriptors(self):
        before = descriptors()
        kept = list(loader([np.zeros(50_000, np.uint8)] * 300, batch_size=None, num_workers=2))
        self.assertEqual(len(kept), 300)
        self.assertLess(descriptors() - before, 20)

    def test_init_function(self):
        def init(worker_id):
            get_worker_info().dataset.epoch = 100 + worker_id

        got = [b["epoch"].tolist() for b in loader(Squares(4), num_workers=2, worker_init_fn=init)]
        self.assertEqual(got, [[100], [101], [100], [101]])

        def broken(worker_id):
            raise OSError("no such disk")

        with self.assertRaisesRegex(OSError, "no such disk"):
            next(iter(loader(Squares(4), num_workers=2, worker_init_fn=broken)))

    def test_threads_share_an_iterator(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        for workers in (0, 2):
            loop, got = iter(loader(Squares(400), batch_size=2, num_workers=workers)), [[] for _ in range(4)]
            threads = [threading.Thread(target=lambda mine, loop: mine.extend(b["square"].tolist() for b in loop), args=(mine, loop)) for mine in got]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(sorted(n for mine in got for batch in mine for n in batch), [i * i for i in range(400)])

    def test_memory_of_kept_batches(self):
        of = loader([np.full(1 << 20, 7, np.uint8)] * 30, batch_size=None, num_workers=2)
        kept = list(of)
        self.assertEqual({int(k[::4096].sum()) for k in kept}, {7 * 256})


class Memory(unittest.TestCase):
    """memory= bounds what is made ahead."""

    def test_batches_ahead(self):
        made = multiprocessing.Value("q", 0)
        big = Big(made)
        for workers, memory, most in ((2, "1MiB", 3), (3, 8 << 20, 9), (2, None, 9), (1, "2MB", 7)):  # batches have 256 KiB
            with self.subTest(workers=workers, memory=memory):
                made.value = 0
                of = loader(big, batch_size=4, num_workers=workers, prefetch_factor=9 // workers, memory=memory)
                batches, seen = iter(of), []
                for step, batch in enumerate(batches):
                    time.sleep(0.05)
                    self.assertLessEqual(made.value, 4 * (step + 1 + most))
                    seen += [int(x[0]) for x in batch]
                self.assertEqual(seen, list(range(80)))
        with self.assertRaisesRegex(Error, "memory is 300000 bytes, and a batch has .* the least that works"):
            list(loader(big, batch_size=4, num_workers=2, memory=300000))


class Big:
    """Records of 64 KiB, which are counted."""

    def __init__(self, made):
        self.made = made

    def __len__(self):
        return 80

    def __getitem__(self, i):
        with self.made.get_lock():
            self.made.value += 1
        return np.full(8192, i)


class Failures(unittest.TestCase):
    def test_exceptions(self):
        of = loader(Fails(8, [3], fail), batch_size=2, num_workers=2)
        loop, got = iter(of), []
        with self.assertRaises(KeyError) as caught:
            while True:
                got.append(next(loop)[1].tolist())
        self.assertRegex(
            str(caught.exception), r"(?s)^Caught KeyError in DataLoader worker process 1\.\nOriginal Traceback.*no record 3.*record 3, batch 1"
        )
        self.assertNotIn("fetch.py", str(caught.exception))
        got += [b[1].tolist() for b in loop]
        self.assertEqual(got, [[0, 1], [4, 5], [6, 7]])
        with self.assertRaises(KeyError) as caught:
            list(loader(Fails(8, [3], fail), batch_size=2))
        self.assertEqual(caught.exception.args, ("no record 3",))

    def test_stop_iteration_does_not_end_the_epoch(self):
        for options in ({}, {"num_workers": 2}, {"seed": 1}, {"seed": 1, "num_workers": 2}):
            with self.subTest(options), self.assertRaisesRegex(RuntimeError, "raised StopIteration, which would end the epoch"):
                list(loader(Fails(8, [3], end), batch_size=2, **options))

    def test_exceptions_that_cannot_be_pickled(self):
        with self.assertRaisesRegex(RuntimeError, "Caught Strange in DataLoader worker process 0"):
            list(loader(Fails(4, [1], fail_strangely), batch_size=2, num_workers=1))

    def test_results_that_cannot_be_pickled(self):
        with self.assertRaisesRegex(TypeError, r"(?s)cannot pickle.*batch 0.*goes from a worker to this process by pickle"):
            list(loader(Squares(4), batch_size=2, num_workers=1, collate_fn=to_generator))

    def test_killed(self):
        for do, text in (
            (die, r"is killed by signal: Killed\. It was in dataset, record 3 of batch 1\."),
            (leave, r"exited unexpectedly with exit code 7\..* It was in dataset, record 3 of batch 1"),
            (fault, r"(?s)is killed by signal: Segmentation fault.*record 3.*test_workers.py.* in fault"),
        ):
            before = processes()
            with self.subTest(do=do.__name__), self.assertRaisesRegex(RuntimeError, text):
                list(loader(Fails(8, [3], do), batch_size=2, num_workers=2))
            gc.collect()
            self.assertFalse(processes() - before)

    def test_timeout(self):
        of = loader(Fails(8, [3], hang), batch_size=2, num_workers=2, timeout=4)
        began = time.monotonic()
        with self.assertRaisesRegex(
            RuntimeError, r"(?s)^DataLoader timed out after 4 seconds\nworker 1 .* record 3 of batch 1\n.*test_workers.py.* in hang"
        ):
            list(of)
        self.assertLess(time.monotonic() - began, 60)
        del of
        gc.collect()
        self.assertFalse(processes())

    def test_forked_loader(self):
        if not hasattr(os, "fork"):
            self.skipTest("there is no fork")

        class Late(Squares):
            def __getitem__(self, i):
                time.sleep(0.3 * (i == 0))  # so that the second batch comes before the first
                return super().__getitem__(i)

        for kind in (Squares, Late):
            of = loader(kind(100), batch_size=2, num_workers=2)
            loop = iter(of)
            first = next(loop)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads, from Python 3.12 on
                pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    next(loop)
                except Error as e:
                    code = 0 if first["square"].tolist() == [0, 1] and "this is process" in str(e) else 2
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertEqual(len(list(loop)), 49)

    def test_ends_with_its_parent(self):
        if not LINUX:
            self.skipTest("processes are looked up in /proc")
        for end in ("os.kill(os.getpid(), 9)", "sys.exit(0)", "raise KeyError('step')"):
            program = (
                "import os, sys, numpy\nfrom penstock._engine.signature import Signature\nfrom penstock._code.loader import UserLoader\n"
                "of = UserLoader(Signature.of(dict(dataset=[numpy.zeros(3)] * 1000, num_workers=2)), output='numpy')\n"
                f"loop = iter(of)\nnext(loop)\nprint(*loop.pids, flush=True)\n{end}\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ".."}, check=False
            )
            with self.subTest(end=end):
                self.assertNotIn("Exception ignored", done.stderr)
                pids = done.stdout.split()
                self.assertEqual(len(pids), 2, done.stderr)
                deadline = time.monotonic() + 20
                while any(running(pid) for pid in pids):
                    self.assertLess(time.monotonic(), deadline, "workers outlive their parent")
                    time.sleep(0.05)


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Seeded(unittest.TestCase):
    def test_order_and_randomness(self):
        want = None
        for workers, kind in ((0, Squares), (1, Squares), (3, Squares), (2, Lists)):
            of = loader(kind(23, noise=True), seed=9, batch_size=4, shuffle=True, num_workers=workers)
            epochs = [everything(of), everything(of)]
            want = want or epochs
            self.assertEqual(epochs, want)
        self.assertNotEqual(want[0], want[1])
        records = [int(s**0.5) for b in want[0] for s in b["square"][1]]
        self.assertEqual(records, order.shuffle(23, 9, 0)[:].tolist())

    def test_own_generators_are_left_alone(self):
        seed_all(3)
        before = random.getstate(), np.random.get_state()[1].tolist()
        list(loader(Squares(9, noise=True), seed=9, batch_size=4))
        self.assertEqual((random.getstate(), np.random.get_state()[1].tolist()), before)

    def test_randomness_that_begins_late(self):
        class Late(Squares):
            def __getitem__(self, i):
                return i, random.random() if i >= 10 else 0.0

        want = None
        for workers in (0, 1, 2):
            got = everything(loader(Late(24), seed=1, batch_size=3, num_workers=workers))
            want = want or got
            self.assertEqual(got, want)
        self.assertEqual(len(set(np.concatenate([b[2][1] for b in want]).tolist())), 15)

    def test_resume(self):
        arguments = {"seed": 4, "shuffle": True}
        of = loader(Squares(41, noise=True), batch_size=4, **arguments)
        whole = [everything(of) for _ in range(2)]
        for step in (0, 3, 11):
            for workers, in_order in ((0, True), (2, True), (3, False)):
                left = loader(Squares(41, noise=True), batch_size=4, num_workers=workers, in_order=in_order, **arguments)
                list(left)
                loop = iter(left)
                seen = [plain(next(loop)) for _ in range(step)]
                state = left.state_dict()
                del loop
                resumed = loader(Squares(41, noise=True), batch_size=4, num_workers=1, **arguments)
                resumed.load_state_dict(state)
                rest = everything(resumed)
                ordered = sorted(seen + rest, key=str) if not in_order else seen + rest
                self.assertEqual(ordered, sorted(whole[1], key=str) if not in_order else whole[1])
        other = loader(Squares(40), batch_size=4, **arguments)
        with self.assertRaisesRegex(Error, "records"):
            other.load_state_dict(state)

    def test_epochs(self):
        of = loader(Squares(8), seed=1, batch_size=4, shuffle=True, num_workers=2, persistent_workers=True)
        epochs = [everything(of) for _ in range(3)]
        self.assertEqual([b["epoch"][1][0] for e in epochs for b in e], [0, 0, 1, 1, 2, 2])  # set_epoch reaches persistent workers
        of.set_epoch(1)
        self.assertEqual([b["square"] for b in everything(of)], [b["square"] for b in epochs[1]])
        self.assertEqual(of.epoch, 2)

    def test_on_error(self):
        with self.assertLogs("penstock", logging.WARNING):
            for workers in (0, 2):
                of = loader(Fails(12, [3, 7], fail), seed=1, batch_size=4, num_workers=workers, on_error="backfill")
                got = np.concatenate([b[1] for b in of]).tolist()
                self.assertEqual(len(got), 12)
                self.assertFalse({3, 7} & set(got))
                self.assertGreaterEqual(of.stats()["skipped"], 2)
            of = loader(Fails(12, [0, 7], fail), seed=1, batch_size=4, num_workers=2, on_error="blank")
            got = np.concatenate([b[0][:, 0] for b in of]).tolist()
            self.assertEqual([i for i, v in enumerate(got) if v == 0], [0, 7])

    def test_samplers(self):
        for sampler, n in ((samplers.Block(4), 20), (samplers.Split(0, 0.5), 10), (samplers.Subset([3, 1, 4], inner=samplers.Shuffle()), 3)):
            got = np.concatenate([b["square"] for b in loader(Squares(20), seed=1, batch_size=4, sampler=sampler)])
            self.assertEqual((len(got), len(set(got.tolist()))), (n, n))
        with self.assertRaisesRegex(UnsupportedError, "without seed="):
            loader(Squares(20), seed=1, sampler=samplers.Weighted([1] * 20))


class States(unittest.TestCase):
    def check(self, make, workers, step, every=1, **arguments):
        arguments = {"num_workers": workers, "batch_size": 3, "snapshot_every_n_steps": every, **arguments}

        def made():
            return {k: v() if k == "sampler" else v for k, v in arguments.items()}

        seed_all(5)
        of = loader(make(), **made())
        list(of)
        loop = iter(of)
        for _ in range(step):
            next(loop)
        state = of.state_dict()
        want = everything(loop)
        seed_all(77)
        resumed = loader(make(), **made())
        resumed.load_state_dict(state)
        before = random.getstate()
        self.assertEqual(everything(resumed), want)
        if workers:
            self.assertEqual(random.getstate(), before)
        self.assertEqual(len(everything(resumed)), len(want) + step)  # and then a whole epoch

    def test_iterable(self):
        for workers, step, every in ((0, 2, 1), (1, 0, 1), (2, 3, 1), (3, 5, 4)):
            if workers:
                self.check(lambda: Stream(40), workers, step, every)
            self.check(lambda: Resumable(40), workers, step, every)

    def test_samplers_with_a_state(self):
        """In the last step, too: the end of the sampler was seen by a batch that it could not fill, and not by others."""
        for workers in (0, 2):
            for n, drop_last in ((20, False), (21, False), (20, True)):
                for step in range(not workers, n // 3 + (n % 3 > 0 and not drop_last) + 1):  # 0 workers draw in the first step
                    with self.subTest(workers=workers, n=n, drop_last=drop_last, step=step):
                        self.check(partial(Squares, n), workers, step, sampler=partial(Stately, n), drop_last=drop_last)

    def test_state_of_the_dataset_is_loaded(self):
        data = Resumable(10)
        of = loader(data, batch_size=2)
        next(iter(of))
        fresh = Resumable(10)
        resumed = loader(fresh, batch_size=2)
        resumed.load_state_dict(of.state_dict())
        self.assertEqual(next(iter(resumed)).tolist(), [2, 3])
        self.assertEqual(fresh.asked, 4)  # nothing was skipped

    def test_other_number_of_workers(self):
        of = loader(Squares(40, noise=True), num_workers=2)
        loop = iter(of)
        next(loop)
        with self.assertRaisesRegex(Error, "num_workers=2, or"):
            loader(Squares(40, noise=True), num_workers=1).load_state_dict(of.state_dict())

    def test_more_workers_than_the_state_says_something_of(self):
        """Without workers there is nothing to say of them, and at the begin nothing yet."""
        for had, step, have in ((0, 3, 3), (0, 1, 2), (1, 0, 2), (3, 0, 2)):
            with self.subTest(had=had, step=step, have=have):
                loop = iter(of := loader(Squares(40), batch_size=4, num_workers=had))
                for _ in range(step):
                    next(loop)
                state = of.state_dict()
                resumed = loader(Squares(40), batch_size=4, num_workers=have)
                resumed.load_state_dict(state)
                self.assertEqual(everything(resumed), everything(loop))

    def test_workers_set_after_loading(self):
        of = loader(Squares(40, noise=True), num_workers=1)
        next(iter(of))
        resumed = loader(Squares(40, noise=True), num_workers=1)
        resumed.load_state_dict(of.state_dict())
        resumed.signature = dataclasses.replace(resumed.signature, num_workers=2)
        with self.assertRaisesRegex(Error, "num_workers=1, or"):
            iter(resumed)

    def test_other_shuffle(self):
        of = loader(Squares(40))
        next(iter(of))
        with self.assertRaisesRegex(Error, "shuffle False, and this one has True; make it with the same"):
            loader(Squares(40), shuffle=True).load_state_dict(of.state_dict())

    def test_not_a_state(self):
        of = loader(Squares(40))
        with self.assertRaises(ValueError):
            of.load_state_dict({"epoch": 1})
        with self.assertRaises(Error):
            of.load_state_dict([1])
        of.load_state_dict({})

    def test_refused(self):
        for arguments in ({"on_error": "blank"}, {"rank": 1, "world_size": 2}, {"seed": 1, "batch_sampler": [[0]]}, {"on_error": "other"}):
            with self.subTest(arguments=arguments), self.assertRaises(ValueError):
                loader(Squares(4), **arguments)
        with self.assertRaises(ValueError):
            loader(Stream(4), seed=1, rank=0, world_size=2)


class Measured(unittest.TestCase):
    def test_stats(self):
        for workers in (0, 2):
            of = loader(Squares(40), batch_size=2, num_workers=workers)
            list(of)
            stats = of.stats()
            self.assertEqual((stats["batches"], stats["workers"]), (20, workers))
            self.assertGreater(stats["dataset_ns"], 0)
            self.assertGreater(stats["wait_ns"], 0)
            self.assertRegex(of.diagnose(), "^(user code|the training step) limits the loop")


if __name__ == "__main__":
    unittest.main()
