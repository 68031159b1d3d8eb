"""penstock.DataLoader compared with torch's: its errors to the letter, and arrays in memory, whose batches, draws and states are torch's."""

import collections
import random
import unittest
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler, StackDataset, Subset, TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

import penstock

from . import cases

Pair = collections.namedtuple("Pair", "x y")


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


def outcome(make, arguments):
    """Return what a constructor does: nothing, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            make(**arguments)
        except (ValueError, TypeError) as e:
            return type(e), str(e)
    return None


class Signature(unittest.TestCase):
    @cases(600)
    def test_errors(self, rng: random.Random) -> None:
        n = rng.choice([0, 1, 7])
        values = {
            "dataset": [list(range(n)), TensorDataset(torch.zeros(n, 2)), Stream(), {k: k for k in range(n)}, np.zeros((n, 2))],
            "batch_size": [1, 2, 0, -3, None, True, 2.0, 2.5, "2"],
            "shuffle": [None, False, True, 0, 1, "yes", ""],
            "sampler": [None, [0], range(n), RandomSampler(range(max(n, 1)))],
            "batch_sampler": [None, [[0]], BatchSampler(SequentialSampler(range(n)), 2, False)],
            "num_workers": [0, 1, 2, -1],
            "drop_last": [False, True, 0, 1, None],
            "timeout": [0, 1, 0.5, -1],
            "multiprocessing_context": [None, "fork", "spawn", "no", 3],
            "generator": [None, torch.Generator()],
            "prefetch_factor": [None, 2, 0, -1],
            "persistent_workers": [False, True, 1],
            "in_order": [True, False],
            "pin_memory": [False, True],
            "worker_init_fn": [None, print],
            "collate_fn": [None, list],
        }
        names = ["dataset", *rng.sample([k for k in values if k != "dataset"], rng.randint(1, 5))]
        arguments = {name: rng.choice(values[name]) for name in names}
        if arguments.get("batch_size") == "2" or (isinstance(arguments["dataset"], dict) and arguments.get("shuffle")):
            return
        self.assertEqual(outcome(penstock.DataLoader, arguments), outcome(DataLoader, arguments), arguments)

    @cases(60)
    def test_attributes(self, rng: random.Random) -> None:
        dataset = rng.choice([TensorDataset(torch.zeros(7, 2)), list(range(7)), Stream()])
        arguments = {"num_workers": rng.choice([0, 1]), "batch_size": rng.choice([1, 3, None])}
        if not isinstance(dataset, Stream):
            arguments |= rng.choice([{}, {"shuffle": True}, {"sampler": [1, 2]}])
        ours, theirs = penstock.DataLoader(dataset, **arguments), DataLoader(dataset, **arguments)
        for name, value in vars(theirs).items():
            if name.startswith("__"):
                continue
            mine = getattr(ours, name)
            if isinstance(value, (bool, int, float, str, type(None))):
                self.assertEqual(mine, value, name)
            else:
                self.assertIs(type(mine), type(value), name)
        for name in ("multiprocessing_context", "_auto_collation"):
            self.assertEqual(getattr(ours, name), getattr(theirs, name))
        self.assertIs(type(ours._index_sampler), type(theirs._index_sampler))
        for name in ("batch_size", "sampler", "dataset", "drop_last", "batch_sampler", "persistent_workers", "num_workers", "timeout", "collate_fn"):
            errors = [outcome(lambda loader=loader, name=name: setattr(loader, name, 0), {}) for loader in (ours, theirs)]
            if name == "collate_fn" and isinstance(dataset, TensorDataset) and arguments["batch_size"] is not None:  # whole batches are gathered
                self.assertIs(errors[0][0], ValueError)
                continue
            self.assertEqual(*errors)


def array(rng, n):
    """Return rows of some type, as an array or a tensor."""
    shape = (n, *(rng.randint(0, 5) for _ in range(rng.randint(0, 2))))
    if rng.random() < 0.5:
        dtype = rng.choice(
            ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "complex64"]
        )
        a = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 100, shape).astype(dtype)
        return rng.choice([a, np.asfortranarray(a), np.repeat(a, 2, 0)[::2]])
    dtype = rng.choice([torch.uint8, torch.int64, torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.complex64, torch.float64])
    t = torch.randint(0, 100, shape, generator=torch.Generator().manual_seed(rng.randrange(1 << 30))).to(dtype)
    return rng.choice([t, torch.stack([t, t], 1)[:, 0]])


class Rows:
    """A dataset of the rows of a tuple or a dict of arrays, for torch."""

    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return len(next(iter(self.columns.values() if isinstance(self.columns, dict) else self.columns)))

    def __getitem__(self, i):
        if isinstance(self.columns, dict):
            return {k: v[i] for k, v in self.columns.items()}
        rows = (v[i] for v in self.columns)
        return Pair(*rows) if isinstance(self.columns, Pair) else tuple(rows)


def dataset(rng):
    """Return a dataset of arrays for penstock, and the same for torch."""
    n = rng.choice([1, 5, 64, 300])
    kind = rng.randrange(7)
    columns = [array(rng, n) for _ in range(rng.randint(1, 3))]
    if kind == 0:
        return columns[0], columns[0]
    if kind == 1:
        return tuple(columns), Rows(tuple(columns))
    if kind == 2:
        named = {f"c{k}": c for k, c in enumerate(columns)}
        return named, Rows(named)
    if kind == 3:
        both = TensorDataset(*(torch.as_tensor(c) for c in columns))
        return both, both
    if kind == 4:
        both = StackDataset(*columns) if rng.random() < 0.5 else StackDataset(**{f"c{k}": c for k, c in enumerate(columns)})
        return both, both
    if kind == 5:
        of = TensorDataset(torch.arange(n), *(torch.as_tensor(c) for c in columns))
        both = Subset(of, [rng.randrange(-n, n) for _ in range(rng.randint(1, 50))])
        if rng.random() < 0.5:
            both = Subset(both, [rng.randrange(len(both)) for _ in range(rng.randint(1, 50))])
        return both, both
    pair = Pair(array(rng, n), array(rng, n))
    return pair, Rows(pair)


def of_rows(dataset):
    """Return the arrays of a dataset."""
    if isinstance(dataset, Subset):
        return of_rows(dataset.dataset)
    found = getattr(dataset, "columns", getattr(dataset, "datasets", getattr(dataset, "tensors", dataset)))
    return found.values() if isinstance(found, dict) else found if isinstance(found, tuple) else [found]


def same(a, b):
    """Return whether two batches are the same, to types and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return (
            a.dtype == b.dtype
            and a.shape == b.shape
            and torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8))
        )
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return len(a) == len(b) and all(map(same, a, b))


class Counted:
    """A sampler of a user."""

    def __init__(self, n, seed):
        self.n, self.random = n, random.Random(seed)

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter([self.random.randrange(self.n) for _ in range(self.n)])


def options(rng, n):
    """Return options of both loaders, made by a function: samplers and generators are not shared."""
    seed, size, workers = rng.randrange(100), rng.choice([1, 3, 64, 1000]), rng.choice([0, 0, 0, 1])
    kind, generated, drop_last, replacement, factor = (
        rng.randrange(6),
        rng.random() < 0.3,
        rng.random() < 0.3,
        rng.random() < 0.5,
        rng.choice([None, 1, 5]),
    )

    def make():
        found = {"batch_size": size, "drop_last": drop_last, "num_workers": workers}
        if workers and factor:
            found["prefetch_factor"] = factor
        if generated:
            found["generator"] = torch.Generator().manual_seed(seed)
        if kind in (1, 2):
            found["shuffle"] = True
        elif kind == 3:
            found["sampler"] = RandomSampler(range(n), replacement=replacement, num_samples=n + 3 if replacement else None)
        elif kind == 4:
            found["sampler"] = Counted(n, seed)
        elif kind == 5:
            del found["batch_size"], found["drop_last"]
            found["batch_sampler"] = BatchSampler(RandomSampler(range(n)), size, drop_last)
        return found

    return make


class Arrays(unittest.TestCase):
    @cases(300)
    def test_as_torch(self, rng: random.Random) -> None:
        """Batches, lengths, and the state of torch's generators, over epochs of which some are left early."""
        ours, theirs = dataset(rng)
        n = len(theirs)
        make, leave, seed = options(rng, n), [rng.choice([None, None, rng.randint(0, 5)]) for _ in range(3)], rng.randrange(1000)
        found = []
        if any(isinstance(c, np.ndarray) and c.dtype.kind == "u" and c.ndim == 1 and c.itemsize > 1 for c in of_rows(theirs)):
            return  # torch makes no batches of such numbers
        for kind, of in ((penstock.DataLoader, ours), (DataLoader, theirs)):
            torch.manual_seed(seed)
            arguments = make()
            if kind is DataLoader and arguments["num_workers"]:  # its order and draws are those of workers; the values need none
                arguments["multiprocessing_context"] = "fork"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loader = kind(of, **arguments)
                got = []
                for end in leave:
                    batches = iter(loader)
                    got.append([])
                    for k, batch in enumerate(batches):
                        if k == end:
                            break
                        got[-1].append(batch)
                    del batches
                    state = arguments["generator"].get_state() if "generator" in arguments else torch.get_rng_state()
                    got.append(state)
                found.append((len(loader), got))
        self.assertEqual(found[0][0], found[1][0])
        for mine, other in zip(found[0][1], found[1][1]):
            self.assertTrue(same(mine, other), (ours, make()))

    @cases(150)
    def test_states(self, rng: random.Random) -> None:
        """A run that stops and continues sees what comes next, as with StatefulDataLoader, also where the loop is at its end."""
        ours, _ = dataset(rng)
        n = len(ours) if not isinstance(ours, (tuple, dict)) else len(Rows(ours))
        make, seed = options(rng, n), rng.randrange(1000)
        if isinstance(make().get("sampler"), Counted):
            return  # it has no state, and draws other numbers
        torch.manual_seed(seed)
        whole = penstock.DataLoader(ours, **make())
        batches = [b for _ in range(2) for b in whole]
        stop = rng.randint(0, len(batches))
        torch.manual_seed(seed)
        first = penstock.DataLoader(ours, **make())
        got = []
        while len(got) < stop:
            for b in first:
                got.append(b)
                if len(got) == stop:
                    break
        state, random_state = first.state_dict(), torch.get_rng_state()
        torch.manual_seed(seed + 1)
        again = penstock.DataLoader(ours, **make())
        again.load_state_dict(state)
        torch.set_rng_state(random_state)
        if first._signature.generator is not None:
            again._signature.generator.set_state(first._signature.generator.get_state())
            for sampler in (again.sampler,):
                if getattr(sampler, "generator", None) is not None:
                    sampler.generator.set_state(first.sampler.generator.get_state())
        for _ in range(3):
            got += list(again)
        self.assertGreaterEqual(len(got), len(batches))
        self.assertTrue(same(got[: len(batches)], batches), (stop, len(batches), make()))

    @cases(40)
    def test_beside_stateful_dataloader(self, rng: random.Random) -> None:
        """Both continue in the middle of an epoch with the rest of it."""
        n, size = rng.choice([10, 57]), rng.choice([1, 4, 10])
        stop = rng.randint(1, -(-n // size) - 1) if n > size else 0
        rest = []
        for kind in (penstock.DataLoader, StatefulDataLoader):
            torch.manual_seed(4)
            loader = kind(TensorDataset(torch.arange(n)), size, shuffle=True)
            batches = iter(loader)
            seen = [next(batches)[0].tolist() for _ in range(stop)]
            again = kind(TensorDataset(torch.arange(n)), size, shuffle=True)
            again.load_state_dict(loader.state_dict())
            rest.append(sorted(i for b in [*(b[0].tolist() for b in again), *seen] for i in b))
        self.assertEqual(rest[0], list(range(n)))
        self.assertEqual(rest[0], rest[1])

    @cases(60)
    def test_tables(self, rng: random.Random) -> None:
        n = rng.choice([1, 40])
        columns = {f"c{k}": np.random.default_rng(k).integers(0, 99, n).astype(rng.choice(["int64", "float32", "bool", "uint8"])) for k in range(3)}
        order = penstock.order.shuffle(n, 5, 0)[:]
        for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
            got = list(penstock.DataLoader(table, 7, shuffle=True, seed=5))
            for name, values in columns.items():
                joined = torch.cat([b[name] for b in got]).numpy()
                self.assertEqual((joined.dtype, joined.tolist()), (values.dtype, values[order].tolist()), type(table))
        vectors = pa.table(
            {
                "x": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(3.0 * n)), 3),
                "y": pa.chunked_array([np.arange(n // 2), np.arange(n // 2, n)]),
            }
        )
        got = list(penstock.DataLoader(vectors, 7))
        self.assertEqual(torch.cat([b["x"] for b in got]).tolist(), np.arange(3.0 * n).reshape(n, 3).tolist())
        self.assertEqual(torch.cat([b["y"] for b in got]).tolist(), list(range(n)))


if __name__ == "__main__":
    unittest.main()
