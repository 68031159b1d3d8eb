"""DataLoaders of user datasets against torch's: the same batches to the bit, the same exceptions, the same random numbers."""

import collections
import gc
import multiprocessing
import os
import pickle
import random
import signal
import sys
import time
import unittest
import warnings

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SubsetRandomSampler, WeightedRandomSampler, get_worker_info

from penstock._code.loader import UserLoader
from penstock._engine.signature import Signature
from tests.peers import SEED, cases, chosen

Point = collections.namedtuple("Point", "x y")


class Attributed(dict):
    """A dict with an attribute, which collating keeps."""


class Broken(ValueError):
    def __init__(self, one, two):
        super().__init__(one, two)


class Messaged(Exception):
    message = "yes"

    def __init__(self, message):
        super().__init__(message)


def leaf(kind, i, draws):
    """Return one value of a record: draws are random numbers of this record."""
    return {
        "array": lambda: np.full((3, 2), i, np.float32) + np.float32(draws[0]),
        "uint8": lambda: np.full((5,), (i + int(draws[1] * 100)) % 256, np.uint8),
        "image": lambda: np.random.randint(0, 256, (8, 8, 3)).astype(np.uint8),
        "fortran": lambda: np.asfortranarray(np.full((4, 3), i, np.int16)),
        "zero": lambda: np.array(i),
        "empty": lambda: np.zeros((0, 3)),
        "tensor": lambda: torch.full((2, 3), float(i)) + torch.rand(2, 3),
        "transposed": lambda: torch.arange(6).view(2, 3).t() + i,
        "half": lambda: torch.full((3,), i % 7, dtype=torch.bfloat16),
        "bool": lambda: torch.tensor([i % 2 == 0, draws[2] > 0.5]),
        "complex": lambda: torch.full((2,), complex(i, draws[0])),
        "scalar": lambda: torch.tensor(i),
        "int": lambda: i,
        "flag": lambda: i % 3 == 0,
        "float": lambda: i + draws[0],
        "np.float32": lambda: np.float32(draws[1]),
        "np.int8": lambda: np.int8(i % 100),
        "np.bool": lambda: np.bool_(i % 2),
        "str": lambda: f"record {i} {draws[2]:.6f}",
        "bytes": lambda: bytes([i % 256]) * 5,
    }[kind]()


LEAVES = ["array", "uint8", "image", "fortran", "zero", "empty", "tensor", "transposed", "half", "bool", "complex", "scalar", "int", "flag", "float",
          "np.float32", "np.int8", "np.bool", "str", "bytes"]  # fmt: skip


def shape(rng, depth=0):
    """Return a description of records: nested containers of leaves."""
    kind = rng.choice(["leaf", "leaf", "tuple", "list", "dict", "named", "attributed", "ordered"] if depth < 2 else ["leaf"])
    if kind == "leaf":
        return rng.choice(LEAVES)
    if kind == "named":
        return (kind, [shape(rng, depth + 1) for _ in range(2)])
    return (kind, [shape(rng, depth + 1) for _ in range(rng.randint(1, 4))])


def made(form, i, draws):
    if isinstance(form, str):
        return leaf(form, i, draws)
    kind, parts = form
    values = [made(part, i, draws) for part in parts]
    if kind == "tuple":
        return tuple(values)
    if kind == "list":
        return values
    if kind == "named":
        return Point(*values)
    members = {f"k{n}": v for n, v in enumerate(values)}
    if kind == "attributed":
        found = Attributed(members)
        found.note = "kept"
        return found
    return collections.OrderedDict(members) if kind == "ordered" else members


class Records:
    """A dataset that is indexed, whose records have random numbers of random, numpy and torch."""

    def __init__(self, n, form, fails=(), kind=ValueError):
        self.n, self.form, self.fails, self.kind, self.epoch = n, form, set(fails), kind, 0

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i in self.fails:
            if self.kind is Broken:
                raise Broken(i, "two")
            raise self.kind(f"no record {i}")
        draws = [random.random(), float(np.random.rand()), torch.rand(1).item()]
        return made(self.form, i + 1000 * self.epoch, draws)


class Whole(Records):
    """One that is asked for whole batches."""

    def __getitems__(self, indices):
        return [self[i] for i in indices]


class Stream(IterableDataset):
    """A dataset that is iterated over; each worker has its own part, of another length."""

    def __init__(self, n, form, sized=False):
        self.n, self.form = n, form
        if sized:
            self.__class__ = SizedStream

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.n, step):
            yield made(self.form, i, [random.random(), float(np.random.rand()), torch.rand(1).item()])


class SizedStream(Stream):
    def __len__(self):
        return max(1, self.n - 3)


class Counter:
    """A sampler that says when it is iterated over, and draws from the global generators."""

    def __init__(self, n):
        self.n, self.calls = n, 0

    def __iter__(self):
        self.calls += 1
        order = list(range(self.n))
        random.shuffle(order)
        return iter(order)

    def __len__(self):
        return self.n


def collate_lists(samples):
    return {"n": len(samples), "samples": samples, "first": samples[0], "r": random.random(), "t": torch.rand(2)}


def collate_padded(samples):
    longest = max(len(str(s)) for s in samples)
    out = torch.zeros(len(samples), longest, dtype=torch.int32)
    return out, out[:, :2], out.t(), np.zeros((2, 3), order="F"), torch.ones(3).expand(4, 3)


def collate_default_and_more(samples):
    batch = torch.utils.data.default_collate(samples)
    return batch, len(samples), np.arange(len(samples))


def set_seed(worker_id):
    random.seed(100 + worker_id)


def same(test, a, b, where=""):
    """Fail unless two batches are the same, in types, shapes, strides' order and bits."""
    test.assertIs(type(a), type(b), where)
    if isinstance(a, torch.Tensor):
        test.assertEqual((a.dtype, a.shape, a.requires_grad), (b.dtype, b.shape, b.requires_grad), where)
        x, y = a.detach().contiguous(), b.detach().contiguous()
        if x.numel():
            test.assertEqual(x.reshape(-1).view(torch.uint8).tolist(), y.reshape(-1).view(torch.uint8).tolist(), where)
    elif isinstance(a, np.ndarray):
        test.assertEqual((a.dtype, a.shape), (b.dtype, b.shape), where)
        test.assertTrue(a.flags.writeable or not b.flags.writeable, where)
        np.testing.assert_array_equal(a, b, where)
    elif isinstance(a, dict):
        test.assertEqual(list(a), list(b), where)
        test.assertEqual(getattr(a, "note", None), getattr(b, "note", None), where)
        for key in a:
            same(test, a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        test.assertEqual(len(a), len(b), where)
        for n, (x, y) in enumerate(zip(a, b)):
            same(test, x, y, f"{where}[{n}]")
    else:
        test.assertEqual(a, b, where)


def seed_all(number):
    random.seed(number)
    np.random.seed(number % 1000)
    torch.manual_seed(number)


def ours(arguments):
    return UserLoader(Signature.of(arguments))


def program(rng):
    """Return the arguments of a DataLoader, built again at each call, and how to loop over it."""
    form, workers = shape(rng), rng.choice([0, 0, 1, 2, 2, 3, 5])
    iterable = rng.random() < 0.25
    n = rng.randint(1, 40)
    base = {"num_workers": workers}
    make_extra = dict
    mode = rng.random()
    if mode < 0.8:
        base["batch_size"] = rng.choice([1, 2, 3, 4, 7, 50])
        if rng.random() < 0.3:
            base["drop_last"] = True
    elif mode < 0.9 or iterable:
        base["batch_size"] = None
    if not iterable:
        order = rng.random()
        if mode >= 0.9:
            make_extra = rng.choice([
                lambda: {"batch_sampler": BatchSampler(RandomSampler(range(n)), 3, False)},
                lambda: {"batch_sampler": [[0], [n - 1, 0, 0], list(range(n))]},
                lambda: {"batch_sampler": BatchSampler(Counter(n), 2, True)},
            ])  # fmt: skip
        elif order < 0.4:
            base["shuffle"] = True
        elif order < 0.7:
            make_extra = rng.choice([
                lambda: {"sampler": Counter(n)},
                lambda: {"sampler": SubsetRandomSampler(range(0, n, 2))},
                lambda: {"sampler": WeightedRandomSampler([1.0] * n, n + 3)},
                lambda: {"sampler": RandomSampler(range(n), replacement=True, num_samples=2 * n)},
                lambda: {"sampler": range(n - 1, -1, -1)},
            ])  # fmt: skip
    if workers:
        if rng.random() < 0.3:
            base["persistent_workers"] = True
        if rng.random() < 0.5:
            base["prefetch_factor"] = rng.randint(1, 5)
        if rng.random() < 0.2:
            base["worker_init_fn"] = set_seed
    if rng.random() < 0.3:
        base["collate_fn"] = rng.choice([collate_lists, collate_padded] + ([collate_default_and_more] if mode < 0.8 else []))
    with_generator = rng.random() < 0.2
    fails, kind = ([], ValueError)
    if not iterable and rng.random() < 0.25:
        # No StopIteration: it ends torch's epoch without a word, and is a RuntimeError here.
        fails, kind = rng.sample(range(n), min(n, rng.randint(1, 3))), rng.choice([ValueError, KeyError, IndexError, Broken, Messaged])
    dataset = rng.choice([Records, Records, Whole])
    sized = rng.random() < 0.5

    def arguments():
        found = {**base, **make_extra()}
        found["dataset"] = Stream(n, form, sized) if iterable else dataset(n, form, fails, kind)
        if with_generator:
            found["generator"] = torch.Generator().manual_seed(7)
        return found

    epochs = rng.randint(1, 3)
    leave = [rng.randint(0, 6) if rng.random() < 0.3 else None for _ in range(epochs)]
    return arguments, leave, rng.randrange(1 << 30), sized and iterable and rng.random() < 0.5


def looped(make, arguments, leave, seed, ask_len):
    """Return all that a program sees: batches, exceptions, warnings, and the random numbers that it draws itself."""
    seed_all(seed)
    given = arguments()
    seen = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            loader = make(given)
        except Exception as e:
            return [(type(e), str(e))]
        if ask_len:
            seen.append(len(loader))
        for stop in leave:
            try:
                iterator = iter(loader)
            except Exception as e:
                seen.append((type(e), str(e)))
                continue
            n, failures = 0, 0
            while stop is None or n < stop:
                try:
                    batch = next(iterator)
                except StopIteration:
                    break
                except Exception as e:
                    failures += 1
                    seen.append((type(e), str(e).splitlines()[0][:60]))
                    if failures > 50:
                        break
                    continue
                n += 1
                seen.append(copied(batch))
            seen.append((random.random(), float(np.random.rand()), torch.rand(1).item()))
            given["dataset"].epoch = getattr(given["dataset"], "epoch", 0) + 1
            del iterator
        getattr(loader, "close", lambda: None)()
        del loader
    seen.append([(w.category, str(w.message)[:60]) for w in warned if "Length of" in str(w.message)])
    return seen


def copied(batch):
    return pickle.loads(pickle.dumps(batch))


class AsTorch(unittest.TestCase):
    @cases(300)
    def test_random_programs(self, rng):
        program_of = program(rng)
        theirs = looped(lambda a: DataLoader(**a), *program_of)
        mine = looped(ours, *program_of)
        self.assertEqual(len(mine), len(theirs), (mine[-2:], theirs[-2:]))
        for n, (a, b) in enumerate(zip(mine, theirs)):
            same(self, a, b, f"seen {n} of {program_of[0]()}")


class Counted(IterableDataset):
    """A dataset that is iterated over with a state of its own, in one worker or several."""

    def __init__(self, n, form):
        self.n, self.form, self.at = n, form, 0

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        while first + self.at * step < self.n:
            self.at += 1
            yield made(self.form, first + (self.at - 1) * step, [random.random(), float(np.random.rand()), torch.rand(1).item()])
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Stately(Counter):
    """A sampler with a state."""

    def __init__(self, n):
        super().__init__(n)
        self.order, self.at = None, 0

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


class Resumed(unittest.TestCase):
    @cases(200)
    def test_as_without_interruption(self, rng):
        """Leave a loop at a random step, and go on from its state in another loader: it yields the rest and later epochs, random numbers included."""
        form, workers, n = shape(rng), rng.choice([0, 1, 2, 3]), rng.randint(4, 40)
        seed = rng.choice([None, None, rng.randrange(1 << 40)])
        kind = rng.choice([Records, Records, Whole, Stream, Counted])
        iterable = issubclass(kind, IterableDataset)
        options = {"batch_size": rng.choice([1, 2, 3, 5]), "drop_last": rng.random() < 0.2, "snapshot_every_n_steps": rng.choice([1, 1, 2, 5])}
        if workers:
            options["prefetch_factor"] = rng.randint(1, 4)
            options["persistent_workers"] = rng.random() < 0.3
        if not iterable:
            how = rng.choice(["shuffle", "sequential"] + ([] if seed is not None else ["counter", "subset", "stately", "generator"]))
        else:
            how = "sequential"
        ranks = rng.choice([1, 1, 2]) if seed is not None and not iterable else 1
        others = workers if seed is None or iterable else rng.choice([0, 1, 2, 3])

        def make(num_workers, rank=0, world_size=1, factor=1):
            given = {"dataset": kind(n, form), **options, "num_workers": num_workers, "batch_size": options["batch_size"] * factor}
            if not num_workers:
                given = {k: v for k, v in given.items() if k not in ("prefetch_factor", "persistent_workers")}
            if how in ("shuffle", "generator"):
                given["shuffle"] = True
            if how == "generator":
                given["generator"] = torch.Generator().manual_seed(3)
            if how == "counter":
                given["sampler"] = Counter(n)
            if how == "stately":
                given["sampler"] = Stately(n)
            if how == "subset":
                given["sampler"] = SubsetRandomSampler(range(n))
            return UserLoader(Signature.of(given), seed=seed, rank=rank, world_size=world_size)

        number = rng.randrange(1 << 30)
        seed_all(number)
        loader = make(workers, factor=ranks)
        for _ in range(rng.randint(0, 1)):
            for _ in loader:
                pass
        loop, want, states = iter(loader), [], []
        for k in range(rng.randint(0, 6)):
            if next(loop, loop) is loop:
                break
        states = (random.getstate(), np.random.get_state(), torch.get_rng_state())  # which a program restores itself, for num_workers=0
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        want = [copied(b) for b in loop]
        left = len(want)
        # Workers that stay have random numbers which a state after the last batch, with which an epoch of new workers begins, does not have.
        later = 0 if state["finished"] and (seed is None or iterable) and options.get("persistent_workers") else rng.randint(0, 2)
        for _ in range(later):
            want += [copied(b) for b in loader]
        del loop
        seed_all(number + 1)
        if ranks == 1:
            resumed = make(others)
            resumed.load_state_dict(state)
            random.setstate(states[0])
            np.random.set_state(states[1])
            torch.set_rng_state(states[2])
            epochs = (not state["finished"]) + later  # a state after the last batch is that of the next epoch
            got = [copied(b) for _ in range(epochs) for b in resumed]
            self.assertEqual(len(got), len(want), (make, state["step"]))
            for k, (a, b) in enumerate(zip(got, want)):
                same(self, a, b, f"batch {k} of {kind.__name__} {how} {workers} {others} {options} {seed}")
            return
        parts = [make(others, rank, ranks) for rank in range(ranks)]
        for part in parts:
            part.load_state_dict(state)
        whole = [[copied(b) for b in part] for part in parts]
        if state["finished"]:
            return  # they have begun the next epoch
        self.assertEqual({len(p) for p in whole}, {left})
        for k, step in enumerate(zip(*whole)):  # of the rest of the epoch
            got = [r for part in step for r in unstacked(part)]
            expected = unstacked(want[k])
            same(self, got[: len(expected)], expected, f"step {k} of ranks")


def unstacked(batch):
    """Return the records of a collated batch, as lists of leaves."""
    if isinstance(batch, torch.Tensor):
        return list(batch)
    if isinstance(batch, dict):
        return [list(r) for r in zip(*map(unstacked, batch.values()))]
    if isinstance(batch, (list, tuple)) and batch and isinstance(batch[0], (str, bytes)):
        return list(batch)
    return [list(r) for r in zip(*map(unstacked, batch))]


class Odd(Records):
    """A dataset one record of which does something else."""

    def __init__(self, do):
        super().__init__(64, ("tuple", ["image", "tensor", "str"]))
        self.do = do

    def __getitem__(self, i):
        if i == 40:
            self.do()
        return super().__getitem__(i)


def error():
    raise LookupError("a record")


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def hung():
    time.sleep(100)


def nothing():
    pass


def resources():
    """Return what this process has: children, descriptors, maps of shared memory, and MiB of memory."""
    gc.collect()
    with open("/proc/self/maps") as file:
        maps = sum("penstock-worker" in line for line in file)
    with open("/proc/self/status") as file:
        resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    return len(multiprocessing.active_children()), len(os.listdir("/proc/self/fd")), maps, resident / 1024


class LeavesNothing(unittest.TestCase):
    """Loops that end in another way than they should: `PEERS_CASES=1000` of each."""

    def loops(self, do, step, rng, **more):
        options = {
            "num_workers": rng.randint(1, 3),
            "batch_size": 4,
            "prefetch_factor": rng.randint(1, 4),
            "persistent_workers": rng.random() < 0.3,
            **more,
        }
        loader = UserLoader(Signature.of({"dataset": Odd(do), **options}), seed=rng.choice([None, 3]))
        for k, batch in enumerate(loader):
            if k == step:
                return batch
        return None

    def measured(self, what, times, loop):
        for _ in range(3):
            loop(0)
        before = resources()
        for k in range(times):
            loop(k)
        after = resources()
        print(f"{what}: {times} loops; children, descriptors, maps, MiB before {before} and after {after}", file=sys.stderr)
        self.assertEqual(after[:3], before[:3], what)
        self.assertLess(after[3] - before[3], 20 + times * 0.02, what)

    def raising(self, kind, do, rng, step=None, **more):
        with self.assertRaises(kind):
            self.loops(do, step, rng, **more)

    def test_all(self):
        rng = random.Random(SEED)

        def in_step(k):
            with self.assertRaises(ZeroDivisionError):
                for n, _ in enumerate(UserLoader(Signature.of({"dataset": Odd(nothing), "num_workers": 2}))):
                    1 // (k % 5 - n if k % 5 - n > 0 else 0)

        def interrupted(k):
            with self.assertRaises(KeyboardInterrupt):
                for n, _ in enumerate(UserLoader(Signature.of({"dataset": Odd(nothing), "num_workers": 2}))):
                    if n == k % 7:
                        os.kill(os.getpid(), signal.SIGINT)

        def forked(k):
            loader = UserLoader(Signature.of({"dataset": Odd(nothing), "num_workers": 1}))
            loop = iter(loader)
            kept = next(loop)
            pid = os.fork()
            if pid == 0:
                del loop, loader, kept
                os._exit(0)
            os.waitpid(pid, 0)
            self.assertEqual(len(list(loop)), 63)

        times = len(chosen(10))
        self.measured("left", times, lambda k: self.loops(nothing, rng.randint(0, 12), rng))
        self.measured("whole", times, lambda k: self.loops(nothing, None, rng))
        self.measured("exception in the dataset", times, lambda k: self.raising(LookupError, error, rng))
        self.measured("exception in the step", times, in_step)
        self.measured("worker killed", times, lambda k: self.raising(RuntimeError, killed, rng))
        self.measured("Ctrl-C", times, interrupted)
        self.measured("fork", times, forked)
        self.measured("timeout", max(2, times // 10), lambda k: self.raising(RuntimeError, hung, rng, timeout=0.5))
