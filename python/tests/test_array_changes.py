"""Datasets in memory that change between loops, odd indices, and resumes with samplers of any kind, beside torch's DataLoader."""

import random
import unittest
import warnings
from unittest import mock

import numpy as np

import penstock

try:
    import torch
    import torch.utils.data as u
except ImportError:
    torch = None


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return (str(value.dtype), value.tolist()) if hasattr(value, "tolist") else value


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def epoch(loader):
    """Return the batches of an epoch, or the kind of the error."""
    try:
        return [plain(batch) for batch in loader]
    except Exception as e:
        return type(e)


class Drawing:
    """A sampler that draws each record from generators of the program, or from one of its own."""

    def __init__(self, generator=None):
        if generator is not None:
            self.generator = generator

    def __iter__(self):
        for _ in range(23):
            yield int(torch.randint(40, (), generator=self.generator)) if hasattr(self, "generator") else random.randrange(20) + np.random.randint(20)

    def __len__(self):
        return 23


class Stateful:
    """A sampler with a state, which says where it is in an order that it draws for each epoch."""

    def __init__(self):
        self.order, self.at = [], 0

    def __iter__(self):
        if not self.at:
            self.order = [random.randrange(40) for _ in range(23)]
        while self.at < 23:
            self.at += 1
            yield self.order[self.at - 1]
        self.at = 0

    def __len__(self):
        return 23

    def state_dict(self):
        return {"order": self.order, "at": self.at}

    def load_state_dict(self, state):
        self.order, self.at = list(state["order"]), state["at"]


@unittest.skipIf(torch is None, "no torch")
class TestBesideTorch(unittest.TestCase):
    def test_a_dataset_that_changes(self):
        """Each loop has the records that there are when it begins."""

        def tensors():
            d = u.TensorDataset(torch.arange(20), torch.arange(20) * 2)
            yield d
            d.tensors = (torch.arange(30, 47), torch.arange(17))

        def grown():
            d = u.TensorDataset(torch.arange(20))
            yield d
            d.tensors = (torch.arange(33),)

        def indices():
            d = u.Subset(u.TensorDataset(torch.arange(20)), [1, 2, 3])
            yield d
            d.indices = [7, 8, 9, 4, 4]

        def part():
            d, _ = u.random_split(u.TensorDataset(torch.arange(20)), [12, 8])
            yield d
            d.indices = d.indices[3:]

        def stacked():
            d = u.StackDataset(a=torch.arange(9), b=torch.arange(9))
            yield d
            d.datasets["a"] = torch.arange(9) * 5

        def data():
            d = u.TensorDataset(torch.arange(20.0))
            yield d
            d.tensors[0].data = torch.arange(100.0, 120.0)

        def of_another_type():
            d = u.TensorDataset(torch.arange(20))
            yield d
            d.tensors = (torch.arange(20.0)[:, None].expand(20, 3),)

        for make in (tensors, grown, indices, part, stacked, data, of_another_type):
            for options in ({}, {"shuffle": True}, {"shuffle": True, "num_workers": 2}):
                found = []
                for kind in (u.DataLoader, penstock.DataLoader):
                    seed_all(3)
                    changes = make()
                    loader = kind(next(changes), 4, **options)
                    before = epoch(loader)
                    for _ in changes:
                        pass
                    found.append((before, epoch(loader), len(loader)))
                with self.subTest(make=make.__name__, options=options):
                    self.assertEqual(found[1], found[0])

    def test_an_iterator_for_workers(self):
        """Each worker would yield all of its items."""
        for make in (lambda: (i for i in range(6)), lambda: map(abs, range(6)), lambda: zip(range(6))):
            self.assertEqual(sum(len(batch) if torch.is_tensor(batch) else len(batch[0]) for batch in penstock.DataLoader(make(), 4)), 6)
            with self.assertRaisesRegex(ValueError, "each of 2 workers would yield all items: give num_workers=0"):
                penstock.DataLoader(make(), 4, num_workers=2)

    def test_single_elements_with_strides_from_a_worker(self):
        x = torch.arange(8.0)
        samples = [x[::8], x[3::5], x.as_strided((1, 1), (3, 5)), torch.arange(4)[1:].as_strided((1,), (0,))]
        got = list(penstock.DataLoader(samples, batch_size=None, num_workers=1))
        self.assertEqual([plain(t) for t in got], [plain(t) for t in samples])

    def test_a_dataset_that_grows_with_a_seed(self):
        d = u.TensorDataset(torch.arange(20))
        own = [0, 1, 2]
        for dataset, grow, last in ((d, lambda: setattr(d, "tensors", (torch.arange(33),)), 32), (own, lambda: own.extend([3, 4]), 4)):
            with penstock.DataLoader(dataset, 4, shuffle=True, seed=2, num_workers=0) as loader:
                list(loader)
                grow()
                got = [i for batch in loader for i in (batch if torch.is_tensor(batch) else batch[0]).tolist()]
                self.assertEqual(sorted(got), list(range(last + 1)))

    def test_odd_indices(self):
        """What torch makes of an index, or its kind of error."""
        x, y = torch.arange(40.0).reshape(10, 4), torch.arange(10)
        datasets = [x, x.numpy(), u.TensorDataset(x, y), u.Subset(u.TensorDataset(x, y), [3, 5, 7, 9, 1, 2]), u.StackDataset(a=x, b=y)]
        lists = [
            [1.0, 2.0], [True, False], [2, True], ["a"], [slice(0, 2), slice(3, 5)], [[1, 2], [0, 1]], [(0, 1), (2, 3)], [None], [-1, 2], [99],
            [np.int64(3), np.uint8(1)], [torch.tensor(2), torch.tensor(4)], [torch.tensor(1.5)], [np.float64(1)], [np.bool_(True)],
            torch.tensor([1, 2]),
            np.array([2, 3]), np.array([True, False]), range(3), (1, 2), [], [torch.tensor([1, 2]), torch.tensor([0, 3])],
        ]  # fmt: skip
        ignored = warnings.catch_warnings()
        ignored.__enter__()
        self.addCleanup(ignored.__exit__)
        warnings.simplefilter("ignore")  # of torch, on indices that are lists
        for d in datasets:
            for chosen in lists:
                with self.subTest(dataset=type(d).__name__, chosen=chosen):
                    got, want = (epoch(kind(d, batch_sampler=[chosen])) for kind in (penstock.DataLoader, u.DataLoader))
                    if isinstance(want, type):
                        self.assertIsInstance(got, type)
                    else:
                        self.assertEqual(got, want)

    def test_functions_in_the_map_of_default_collate(self):
        from torch.utils.data._utils.collate import default_collate_fn_map

        def negative(batch, *, collate_fn_map=None):
            return -torch.stack(batch)

        d = u.TensorDataset(torch.arange(12.0), torch.arange(12))
        with mock.patch.dict(default_collate_fn_map, {torch.Tensor: negative}):
            want = epoch(u.DataLoader(d, 5))
            self.assertEqual(epoch(penstock.DataLoader(d, 5)), want)
        self.assertNotEqual(epoch(penstock.DataLoader(d, 5)), want)

    def test_resumes(self):
        """The rest of an epoch, and the next one, are the same after a resume at any step, with samplers of any kind."""
        n = 40
        arrays = u.TensorDataset(torch.arange(n), torch.arange(n) ** 2)
        own = [(i, i * i) for i in range(n)]
        makers = {
            "global": lambda: {"sampler": Drawing()},
            "own generator": lambda: {"sampler": Drawing(torch.Generator().manual_seed(5))},
            "batches of global": lambda: {"batch_sampler": u.BatchSampler(Drawing(), 4, False)},
            "batches of own": lambda: {"batch_sampler": u.BatchSampler(Drawing(torch.Generator().manual_seed(5)), 4, True)},
            "random with generator": lambda: {"sampler": u.RandomSampler(range(n), generator=torch.Generator().manual_seed(5))},
            "weighted": lambda: {"sampler": u.WeightedRandomSampler([1.0] * n, 30, generator=torch.Generator().manual_seed(5))},
            "subset": lambda: {"sampler": u.SubsetRandomSampler(range(30))},
            "replacement": lambda: {"sampler": u.RandomSampler(range(n), True, 50)},
            "stateful": lambda: {"sampler": Stateful()},
            "shuffle": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(5)},
        }
        for name, make in makers.items():
            for dataset in (arrays, own):
                for workers in (0, 2) if dataset is arrays else (0,):
                    options = {"num_workers": workers}
                    at = len(name) % 5
                    with self.subTest(sampler=name, dataset=type(dataset).__name__, workers=workers):
                        seed_all(7)
                        given = make()
                        with penstock.DataLoader(dataset, 1 if "batch_sampler" in given else 4, **given, **options) as loader:
                            want = []
                            for step, batch in enumerate(loader):
                                want.append(plain(batch))
                                if step == at:
                                    state = loader.state_dict()
                        seed_all(8)
                        given = make()
                        with penstock.DataLoader(dataset, 1 if "batch_sampler" in given else 4, **given, **options) as loader:
                            loader.load_state_dict(state)
                            self.assertEqual(epoch(loader), want[at + 1 :])
