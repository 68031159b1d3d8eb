"""States that were changed: refused with an Error, or the run that they say; never code that runs, another exception, or a loop without end."""

import contextlib
import copy
import os
import pickle
import random
import signal
import tempfile
import unittest
import warnings

import numpy as np

import penstock
from penstock import samplers

from . import data

#: How many changed states there are.
STATES = int(os.environ.get("PENSTOCK_STATES", "240"))
_SECONDS = 60
_LONGEST = 1000  # characters of an error
_USERS = ("iterator", "dataset", "sampler")  # what objects of users said of themselves


class Squares:
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return np.array([i, i * i])


class Counted:
    def __iter__(self):
        return (np.array([i, i * i]) for i in range(40))


class Stateful:
    """An iterator of its own, with a state."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= 40:
            self.at = 0
            raise StopIteration
        self.at += 1
        return np.array([self.at])

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def negative(x):
    return 255 - x


def of_record(record):
    return {"labels": record["labels"]}


def kinds(folder):
    images, ragged = data.path("images"), data.path("ragged")
    fork = {"num_workers": 2, "multiprocessing_context": "fork"}
    arrays = np.arange(80).reshape(40, 2), np.arange(40)

    def of(dataset, size=4, **more):
        return lambda: penstock.DataLoader(dataset, size, output="numpy", **more)

    with penstock.open(images) as opened:
        n = len(opened)
    path = os.path.join(folder, "windows")
    if not os.path.exists(path):
        with penstock.Writer(path, [penstock.Field("x", "float32", (4,), dims=("time", "lat"))]) as w:
            w.extend({"x": np.full(4, i, np.float32)} for i in range(60))
    windowed = penstock.open(path)
    found = {
        "own": of(Squares(), shuffle=True, num_workers=0),
        "own, workers": of(Squares(), shuffle=True, **fork),
        "own, snapshots": of(Squares(), shuffle=True, snapshot_every_n_steps=3, **fork),
        "own, generator": of(Squares(), shuffle=True, generator=np.random.default_rng(3), num_workers=0),
        "own, seed": of(Squares(), shuffle=True, seed=4, num_workers=0),
        "iterable": of(Counted(), num_workers=0),
        "iterable, seed": of(Counted(), num_workers=0, seed=3),
        "iterable, workers": of(Counted(), **fork),
        "stateful": lambda: of(Stateful(), num_workers=0)(),
        "arrays": of(arrays, shuffle=True, seed=3),
        "prepared": of(images, shuffle=True, seed=1),
        "prepared, as ready": of(images, 2, shuffle=True, seed=1, in_order=False),
        "mix": of([images, images], sampler=samplers.Mix([0.5, 0.5], n), seed=2),
        "pack": of(ragged, 2, fields=["tokens"], pack=penstock.Pack(64), seed=2),
        "windows": of(windowed.windows({"time": 3}), 8, shuffle=True, seed=2),
        "functions": of(images, transforms=[negative], num_workers=0, seed=1),
        "records": of(images, transforms=[penstock.transforms.Record(of_record)], num_workers=0, seed=1),
    }  # fmt: skip
    with contextlib.suppress(ImportError):
        import torch

        x = torch.arange(80).reshape(40, 2)
        found["tensors"] = lambda: penstock.DataLoader(torch.utils.data.TensorDataset(x), 4, shuffle=True)
        found["tensors, generator"] = lambda: penstock.DataLoader(
            torch.utils.data.TensorDataset(x), 4, shuffle=True, generator=torch.Generator().manual_seed(1)
        )
        found["own, torch"] = lambda: penstock.DataLoader(Squares(), 4, shuffle=True, num_workers=0, generator=torch.Generator().manual_seed(1))
    return found


class Evil:
    """Runs code where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def places(value, at=()):
    """Return where values are in a state, without those of objects of users."""
    found = [at] if at else []
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in _USERS:
                found += places(part, (*at, name))
    elif isinstance(value, list):
        for k in range(min(len(value), 4)):
            found += places(value[k], (*at, k))
    return found


def plain(value):
    if type(value) in (dict, list):
        return all(map(plain, value.values() if isinstance(value, dict) else value))
    return value is None or type(value) in (bool, int, float, str, bytes)


def changed(rng, state, evil):
    """Return a state with one to three values changed."""
    state = copy.deepcopy(state)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.choice(places(state))
        holder = state
        for step in at[:-1]:
            holder = holder[step]
        value, last = holder[at[-1]], at[-1]
        action = rng.randrange(6)
        if action == 0 and isinstance(holder, dict):
            del holder[last]
        elif action == 1 and isinstance(holder, dict):
            holder[rng.choice(["x", "taken", "given", "since", "done", 3, "x" * 100_000])] = rng.choice([1, evil, "x", 10**18])
        elif action == 2 and isinstance(value, bytes) and value:
            k = rng.randrange(len(value))
            holder[last] = value[:k] + bytes([value[k] ^ (1 << rng.randrange(8))]) + value[k + 1 :]
        elif action == 3 and isinstance(value, int) and not isinstance(value, bool):
            holder[last] = value + rng.choice([-1, 1, -(10**6), 10**6, 1 << 40, 1 << 62, 1 << 70, -(1 << 63), 10**5000])
        else:
            holder[last] = rng.choice(
                [
                    None, True, False, 0, 1, -1, 2, 1 << 63, 1.5, float("nan"), float("inf"), "", "begun", "x" * 1_000_000, b"", evil, evil * 50_000,
                    [], [[]], [evil], {}, {"at": evil}, (1, 2), np.arange(3), np.int64(1), {1: 2}, [0] * 10_000, {"python": evil},
                ]
            )  # fmt: skip
    return state


class States(unittest.TestCase):
    def setUp(self):
        data.name_programs()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.loaders = kinds(folder.name)
        self.ran = os.path.join(folder.name, "ran")

    def states(self, name):
        """Return states of a loader at several places, with the batches that follow."""
        found = []
        loader = self.loaders[name]()
        found.append((loader.state_dict(), None))
        loop = iter(loader)
        for k in range(1, 8):
            if next(loop, None) is None:
                break
            if k in (1, 3, 7):
                found.append((copy.deepcopy(loader.state_dict()), None))
        loader.close()
        return [state for state, _ in found]

    def test_they_are_plain(self):
        for name in self.loaders:
            for state in self.states(name):
                with self.subTest(name):
                    self.assertTrue(plain(state), state)

    def test_no_code_runs(self):
        evil = pickle.dumps(Evil(self.ran))
        loader = self.loaders["own"]()
        next(iter(loader))
        state = loader.state_dict()
        for change in ({"begun": evil}, {"first": evil}, {"begun": evil, "first": evil}):
            with contextlib.suppress(penstock.Error):
                loader.load_state_dict({**state, "order": {**state["order"], **change}})
                next(iter(loader))
        for name in ("random", "begun"):
            with contextlib.suppress(penstock.Error):
                loader.load_state_dict({**state, "workers": [{name: evil}]})
                next(iter(loader))
        self.assertFalse(os.path.exists(self.ran))

    def test_changed_states(self):
        rng, evil = random.Random(int(os.environ.get("PENSTOCK_SEED", "1"))), pickle.dumps(Evil(self.ran))
        signal.signal(signal.SIGALRM, self.late)
        self.addCleanup(signal.alarm, 0)
        refused = accepted = 0
        for name, make in self.loaders.items():
            states, loader = self.states(name), make()
            for _ in range(-(-STATES // len(self.loaders))):
                state = changed(rng, rng.choice(states), evil)
                signal.alarm(_SECONDS)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        loader.load_state_dict(state)
                        accepted += 1
                        loop = iter(loader)
                        for _ in range(2):
                            next(loop, None)
                        del loop
                except penstock.Error as e:
                    refused += 1
                    self.assertLess(len(str(e)), _LONGEST, name)
                except BaseException as e:
                    e.add_note(f"{name}: {shown(state)}") if hasattr(e, "add_note") else None
                    raise
                finally:
                    signal.alarm(0)
            with self.subTest(name):
                self.resumes(loader, make, states[-1])
            loader.close()
        self.assertFalse(os.path.exists(self.ran))
        self.assertGreater(refused, STATES // 2)
        if "PENSTOCK_STATES" in os.environ:
            print(f"{refused} refused, {accepted - (refused + accepted - STATES)} or more accepted", flush=True)

    def resumes(self, loader, make, state):
        """Check that a loader which refused states goes on from a right one as a new loader does."""
        with make() as other:
            other.load_state_dict(state)
            loader.load_state_dict(state)
            want = [flat(batch) for _, batch in zip(range(3), other)]
            np.testing.assert_equal([flat(batch) for _, batch in zip(range(3), loader)], want)

    def late(self, *_):
        raise TimeoutError(f"a changed state takes more than {_SECONDS} s")


def flat(batch):
    if hasattr(batch, "offsets"):
        return batch.values.tolist(), batch.offsets.tolist()
    if isinstance(batch, dict):
        return {name: flat(value) for name, value in batch.items()}
    return [flat(v) for v in batch] if isinstance(batch, (list, tuple)) else batch.tolist() if hasattr(batch, "tolist") else repr(batch)


def shown(state):
    text = repr(state)
    return text if len(text) < 3000 else text[:1500] + " ... " + text[-1500:]


if __name__ == "__main__":
    unittest.main()
