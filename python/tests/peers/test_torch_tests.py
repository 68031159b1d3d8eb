"""Tests after those of torch's own test_dataloader.py, by their names there, over penstock.DataLoader: with and without persistent workers.

Left out: DataPipes, which are refused; limits of descriptors and of storages that torch shares, as there are none; worker_init_fn over arrays,
which no worker gathers; CUDA.
"""

import collections
import gc
import itertools
import math
import os
import subprocess
import sys
import time
import unittest
import warnings

import numpy as np
import torch
from torch.utils import data as tud

from penstock import DataLoader
from tests import data

CONTEXTS = (None, "fork", "spawn")


class Counting(tud.Dataset):
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        return i

    def __len__(self):
        return self.n


class Stream(tud.IterableDataset):
    """As many numbers in each worker as ``sizes`` says."""

    def __init__(self, *sizes):
        self.sizes = sizes

    def __iter__(self):
        info = tud.get_worker_info()
        return iter(range(self.sizes[info.id if info and len(self.sizes) > 1 else 0]))

    def __len__(self):
        return sum(self.sizes)


class Failing(Counting):
    def __getitem__(self, i):
        raise NotImplementedError


class Sleeping(Counting):
    def __getitem__(self, i):
        time.sleep(3)


class Seeds(Counting):
    def __getitem__(self, i):
        return torch.initial_seed()


class Infos(Counting):
    def __getitem__(self, i):
        info = tud.get_worker_info()
        return torch.tensor([info.id, info.num_workers, os.getpid(), self.noted])


class Lists(Counting):
    """Takes lists of indices."""

    def __getitem__(self, i):
        assert isinstance(i, list)
        return torch.as_tensor(i)


class FailsInIter(tud.IterableDataset):
    def __iter__(self):
        raise RuntimeError("Error in __iter__")


class Epochs(Counting):
    """Fails if a worker sees what was assigned after it began."""

    start = 0

    def __getitem__(self, i):
        assert self.start == 0
        return i


Sample = collections.namedtuple("Sample", "place label noise")
Point = collections.namedtuple("Point", "positive negative")


class Named(Counting):
    def __getitem__(self, i):
        return Sample(Point(i, -i), str(i), torch.randn(3))


class Dicts(Counting):
    def __getitem__(self, i):
        return {"a": torch.full((4, 2), float(i)), "b": {"n": i}}


def fixed_seed(_):
    torch.manual_seed(12345)


def noting(worker_id):
    info = tud.get_worker_info()
    assert worker_id == info.id and info.seed == torch.initial_seed()
    info.dataset.noted = 10 + worker_id


def failing(_):
    raise RuntimeError("Error in worker_init_fn")


class TestDataLoader(unittest.TestCase):
    persistent = False

    def setUp(self):
        self.data, self.labels = torch.randn(100, 2, 3, 5), torch.randperm(50).repeat(2)
        self.dataset = tud.TensorDataset(self.data, self.labels)
        self.own = tud.ConcatDataset([self.dataset])  # which no engine gathers

    def get(self, dataset, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return DataLoader(dataset, **{"persistent_workers": self.persistent and options.get("num_workers", 0) > 0, **options})

    def sequential(self, loader, size):
        seen = list(loader)
        self.assertEqual(len(seen), math.ceil(100 / size))
        for k, (x, y) in enumerate(seen):
            self.assertTrue(torch.equal(x, self.data[k * size : (k + 1) * size]) and torch.equal(y, self.labels[k * size : (k + 1) * size]))

    def shuffled(self, loader):
        x, y = (torch.cat(parts) for parts in zip(*loader))
        places = [next(k for k, d in enumerate(self.data) if torch.equal(d, one)) for one in x]
        self.assertEqual(sorted(places), list(range(100)))
        self.assertTrue(torch.equal(y, self.labels[places]))

    def test_sequential_and_shuffle(self):
        for dataset, workers, size in itertools.product((self.dataset, self.own), (0, 3), (1, 2, 7)):
            self.sequential(self.get(dataset, num_workers=workers, batch_size=size), size)
            self.shuffled(self.get(dataset, num_workers=workers, batch_size=size, shuffle=True))

    def test_shuffle_reproducibility(self):
        for workers in (0, 2):
            seen = [
                [x.tolist() for x in self.get(Counting(20), shuffle=True, num_workers=workers, generator=torch.Generator().manual_seed(42))]
                for _ in "ab"
            ]
            self.assertEqual(seen[0], seen[1])

    def test_error_in_init(self):
        for workers in (0, 2):
            with self.assertRaisesRegex(RuntimeError, "Error in __iter__"):
                list(self.get(FailsInIter(), num_workers=workers))
        with self.assertRaisesRegex(RuntimeError, "Error in worker_init_fn"):
            list(self.get(self.own, num_workers=2, worker_init_fn=failing))

    def test_error(self):
        for workers in (0, 3):
            batches, failed = iter(self.get(Failing(41), batch_size=2, shuffle=True, num_workers=workers)), 0
            while True:
                try:
                    next(batches)
                except NotImplementedError:
                    failed += 1
                except StopIteration:
                    break
            self.assertEqual(failed, 21)

    def test_invalid_assign_after_init(self):
        loader = self.get(self.dataset)
        for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset"):
            self.assertRaises(ValueError, setattr, loader, name, {})

    def test_bulk_loading_nobatch(self):
        for workers in (0, 2):
            sampler = tud.BatchSampler(tud.RandomSampler(range(35)), 4, False)
            loader = self.get(Lists(35), num_workers=workers, batch_size=None, sampler=sampler)
            self.assertFalse(loader._auto_collation)
            self.assertEqual(sorted(torch.cat(list(loader)).tolist()), list(range(35)))

    def test_growing_dataset(self):
        dataset = [torch.ones(4) for _ in range(4)]
        loaders = [self.get(dataset, shuffle=shuffle) for shuffle in (False, True)]
        dataset.append(torch.ones(4))
        self.assertEqual([len(loader) for loader in loaders], [5, 5])

    def test_multiple_dataloaders(self):
        for context in CONTEXTS:
            first, second = iter(self.get(self.own, num_workers=1)), iter(self.get(self.own, num_workers=2, multiprocessing_context=context))
            for batches in (first, first, second, second, first, second):
                next(batches)

    def test_timeout(self):
        with self.assertRaisesRegex(RuntimeError, r"DataLoader timed out after \d+ seconds"):
            next(iter(self.get(Sleeping(10), batch_size=2, num_workers=2, timeout=1)))

    def test_invalid_ctor_args_combinations(self):
        own, stream = self.dataset, Stream(20)
        sampler = tud.SequentialSampler(own)
        batches = tud.BatchSampler(sampler, 3, False)
        for kind, text, dataset, options in (
            (ValueError, "num_workers option should be non-negative", own, {"num_workers": -1}),
            (ValueError, "timeout option should be non-negative", own, {"timeout": -1}),
            (ValueError, "batch_size=None option disables auto-batching", own, {"batch_size": None, "drop_last": True}),
            (ValueError, r"multi-process loading \(num_workers > 0\), but got", own, {"num_workers": 0, "multiprocessing_context": "spawn"}),
            (ValueError, "should specify a valid start method in", own, {"num_workers": 1, "multiprocessing_context": "bad"}),
            (TypeError, "should be a valid context ", own, {"num_workers": 1, "multiprocessing_context": object()}),
            (ValueError, "sampler option is mutually exclusive with shuffle", own, {"sampler": sampler, "shuffle": True}),
            (ValueError, "batch_sampler option is mutually exclusive with", own, {"batch_size": 11, "batch_sampler": batches}),
            (ValueError, "batch_sampler option is mutually exclusive with", own, {"drop_last": True, "batch_sampler": batches}),
            (ValueError, "expected unspecified shuffle", stream, {"shuffle": True}),
            (ValueError, "expected unspecified sampler", stream, {"sampler": sampler}),
            (ValueError, "expected unspecified batch_sampler", stream, {"batch_sampler": batches}),
        ):
            with self.subTest(options), self.assertRaisesRegex(kind, text):
                self.get(dataset, **options)

    def test_builtin_collection_conversion(self):
        for kind, workers, dataset in itertools.product((list, tuple), (0, 1), (Counting(20), Stream(20))):
            self.assertEqual(kind(self.get(dataset, batch_size=None, num_workers=workers)), kind(range(20)))
            self.assertEqual([x.tolist() for x in self.get(dataset, batch_size=2, num_workers=workers)], [[i, i + 1] for i in range(0, 20, 2)])

    def test_iterable_style_dataset(self):
        sizes = (0, 4, 20)
        for factor in (2, 3):
            loader = self.get(Stream(*sizes), num_workers=3, batch_size=None, prefetch_factor=factor)
            self.assertEqual(sorted(loader), sorted(i for n in sizes for i in range(n)))
            for drop, rest in ((False, [range(4), range(14, 20)]), (True, [])):
                loader = self.get(Stream(*sizes), num_workers=3, batch_size=7, drop_last=drop, prefetch_factor=factor)
                self.assertEqual(sorted(x.tolist() for x in loader), sorted(map(list, [range(7), range(7, 14), *rest])))
        loader = self.get(Stream(20), num_workers=3)
        self.assertEqual(len(loader), 20)
        with self.assertWarnsRegex(UserWarning, r"but 21 samples have been fetched\. For multiprocessing data-loading, this"):
            self.assertEqual(len(list(loader)), 60)

    def test_chain_iterable_style_dataset(self):
        for workers in (0, 1):
            for chain in (Stream(20) + Stream(15), tud.ChainDataset([Stream(20), Stream(15)])):
                self.assertEqual([int(x) for x in self.get(chain, num_workers=workers)], [*range(20), *range(15)])

    def test_multiprocessing_contexts(self):
        for context in CONTEXTS:
            loader = self.get(Counting(11), multiprocessing_context=context, num_workers=2, batch_size=3)
            self.assertEqual([x.tolist() for x in loader], [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]])

    def test_worker_seed(self):
        options = {"batch_size": 1, "num_workers": 3}
        self.assertEqual(len({int(x) for x in self.get(Seeds(6), **options)}), 3)
        again = [[int(x) for x in self.get(Seeds(6), generator=torch.Generator().manual_seed(42), **options)] for _ in "ab"]
        self.assertEqual(again[0], again[1])

    def test_worker_init_fn(self):
        for x in self.get(Seeds(4), batch_size=2, num_workers=2, worker_init_fn=fixed_seed):
            self.assertEqual(x.tolist(), [12345] * 2)

    def test_get_worker_info(self):
        dataset = Infos(8)
        batches = iter(self.get(dataset, batch_size=2, num_workers=2, worker_init_fn=noting))
        pids = [w.pid for w in batches._workers]
        for number, workers, pid, noted in torch.cat(list(batches)).tolist():
            self.assertEqual((workers, pid, noted), (2, pids[number], 10 + number))
        self.assertIsNone(tud.get_worker_info())
        self.assertFalse(hasattr(dataset, "noted"))

    def test_random_sampler_len(self):
        for replacement in (True, False):
            sampler = tud.RandomSampler(self.dataset, replacement=replacement, num_samples=105)
            self.assertEqual([len(self.get(self.dataset, batch_size=size, sampler=sampler)) for size in (1, 6)], [105, 18])

    def test_duplicating_data_with_drop_last(self):
        dataset = torch.arange(9)
        seen = [
            i
            for rank in range(4)
            for x in self.get(dataset, batch_size=2, drop_last=True, sampler=tud.DistributedSampler(dataset, 4, rank))
            for i in x.tolist()
        ]
        self.assertEqual(len(seen), len(set(seen)))

    def test_samplers(self):
        batches = [[0, 1], (2, 3, 4), [5, 6]]
        for dataset, workers in itertools.product((self.dataset, self.own), (0, 2)):
            loader = self.get(dataset, sampler=range(2, 12), batch_size=2, num_workers=workers)
            self.assertEqual(len(loader), 5)
            self.assertTrue(torch.equal(torch.cat([x for x, _ in loader]), self.data[2:12]))
            loader = self.get(dataset, batch_sampler=batches, num_workers=workers)
            self.assertEqual([len(x) for x, _ in loader], [2, 3, 2])
            self.assertTrue(torch.equal(torch.cat([x for x, _ in loader]), self.data[:7]))

    def test_numpy_scalars(self):
        for kind, name in ((np.float64, "float64"), (np.float16, "float16"), (np.int64, "int64"), (np.int8, "int8"), (np.uint8, "uint8")):
            self.assertEqual(next(iter(self.get([kind(3)] * 4, batch_size=2))).dtype, getattr(torch, name))

    def test_partial_workers(self):
        batches = iter(self.get(self.own, batch_size=2, num_workers=3))
        workers = batches._workers
        for _ in range(10):
            next(batches)
        del batches
        gc.collect()
        for w in () if self.persistent else workers:
            w.join(60)
            self.assertFalse(w.is_alive())

    def test_len(self):
        for size, n in ((2, 50), (3, 34)):
            loader = self.get(self.dataset, batch_size=size)
            self.assertEqual((len(loader), sum(1 for _ in loader)), (n, n))
        for size, whole, dropped in ((1, 10, 10), (2, 5, 5), (3, 4, 3)):
            self.assertEqual([len(self.get(Stream(10), batch_size=size, drop_last=drop)) for drop in (False, True)], [whole, dropped])

    def test_excessive_thread_creation_warning(self):
        with self.assertWarnsRegex(UserWarning, "excessive worker creation might get DataLoader running slow or even freeze"):
            DataLoader(self.own, batch_size=2, num_workers=1000)

    def test_dict_and_named_tuple(self):
        for i, batch in enumerate(self.get(Dicts(4), batch_size=2, num_workers=1)):
            self.assertEqual((list(batch), batch["a"].shape, batch["b"]["n"].tolist()), (["a", "b"], (2, 4, 2), [2 * i, 2 * i + 1]))
        for batch in self.get(Named(4), batch_size=2):
            self.assertIsInstance(batch, Sample)
            self.assertIsInstance(batch.place.positive, torch.Tensor)
        for batch in self.get(Named(4), batch_size=None):
            self.assertIsInstance(batch.place, Point)
            self.assertNotIsInstance(batch.place.positive, torch.Tensor)

    def test_random_split_index_types(self):
        for lengths in ([5], [1.0]):
            split = tud.random_split(Counting(5), lengths)[0]
            self.assertEqual({type(i) for i in split.indices}, {int})
            self.assertEqual(sorted(int(i) for i in self.get(split)), list(range(5)))

    @unittest.skipUnless(os.path.isdir("/proc"), "it looks at processes in /proc, which Linux has")
    def test_proper_exit(self):
        for end, raised in (("pass", ""), ("raise RuntimeError('Loader error')", "Loader error"), ("os.kill(os.getpid(), 9)", "")):
            code = f"""
import os
from penstock import DataLoader
batches = iter(DataLoader(list(range(20)), num_workers=2, persistent_workers={self.persistent}))
print(*[w.pid for w in batches._workers], flush=True)
next(batches)
{end}
"""
            env = {**os.environ, "PYTHONPATH": os.path.dirname(data.HERE)}
            out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=env, capture_output=True, text=True, timeout=120)
            self.assertEqual(out.returncode == 0, end == "pass", out.stderr)
            self.assertIn(raised, out.stderr)
            deadline = time.monotonic() + 30
            while any(os.path.exists(f"/proc/{pid}") for pid in out.stdout.split()):
                self.assertLess(time.monotonic(), deadline, "workers are left")
                time.sleep(0.05)


class TestDataLoaderPersistentWorkers(TestDataLoader):
    persistent = True

    def test_dataset_not_reset(self):
        dataset = Epochs(10)
        loader = self.get(dataset, num_workers=2)
        for epoch in range(3):
            self.assertEqual(len(list(loader)), 10)
            dataset.start = epoch


if __name__ == "__main__":
    unittest.main()
