"""collate_fn and batch_size=None over prepared datasets with transforms, beside torch's DataLoader over a Dataset of the same records."""

import random
import unittest

import numpy as np

import penstock
from penstock import transforms as T
from penstock._engine.batch import BatchDict, BatchTuple

from . import data
from .test_dataloader import loader

try:
    import torch
except ImportError:
    torch = None


class Kept(torch.utils.data.Dataset if torch else object):
    """Records that penstock has made: what a Dataset of the user would return."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, i):
        return self.records[i]


def pairs(records):
    return [(r["labels"].item(), r["images"]) for r in records]


def noise(records):
    return [np.random.rand(), random.random(), float(torch.rand(())) if torch else 0.0], [int(r[1]) for r in records]


def labels_of(records):
    return [int(r["labels"]) for r in records]


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def plain(value):
    """Return a value without tensors and classes of batches, to be compared."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if not hasattr(value, "dtype"):
        return value
    array = np.asarray(value)
    return array.dtype.name, array.shape, array.tobytes()


@unittest.skipIf(torch is None, "no torch")
class TestBesideTorch(unittest.TestCase):
    """The loop of torch's DataLoader over these records yields the same."""

    def setUp(self):
        self.flips = [T.RandomHorizontalFlip(), T.ToTensor()]
        self.options = {"transforms": self.flips, "seed": 7, "output": "torch"}
        with loader(data.path("images"), 1500, **self.options) as dl:
            (batch,) = dl
            self.records = [type(batch)(*(x[i] for x in batch)) for i in range(1500)]

    def test_collate_fn(self):
        rng, collates = random.Random(3), [pairs, list, len, torch.utils.data.default_collate, None]
        for k in range(10):
            size, collate, workers, drop = rng.choice([1, 7, 64, None]), collates[k % 5], k % 3, k % 2 == 1
            if collate is None:
                size = None
            drop = drop and size is not None
            chosen = rng.sample(range(1500), rng.randrange(40, 90))
            if size is None:
                collate = None if k % 2 else list  # of one record
            want = [plain(b) for b in torch.utils.data.DataLoader(Kept(self.records), size, sampler=chosen, collate_fn=collate, drop_last=drop)]
            options = {**self.options, "sampler": chosen, "collate_fn": collate, "drop_last": drop, "num_workers": workers}
            with self.subTest(size=size, collate=collate, workers=workers), loader(data.path("images"), size, **options) as dl:
                self.assertEqual(len(dl), len(want))
                step, got = rng.randrange(len(want)), []
                for at, batch in enumerate(dl):
                    got.append(plain(batch))
                    if at == step:
                        state = dl.state_dict()
                self.assertTrue(got == want)
                dl.load_state_dict(state)
                self.assertTrue([plain(b) for b in dl] == want[step + 1 :])

    def test_the_order_is_that_of_a_loader_without_it(self):
        """A prepared dataset has one order, whatever makes its batches, also for a rank and after a resume."""
        for options in ({"shuffle": True}, {"shuffle": True, "seed": 7}, {"shuffle": True, "rank": 1, "world_size": 2}, {}):
            with loader(data.path("images"), 50, **options) as dl:
                want = [batch.labels.tolist() for batch in dl]
            with loader(data.path("images"), 50, collate_fn=labels_of, num_workers=0, **options) as dl, self.subTest(options):
                got = []
                for batch in dl:
                    got.append(batch)
                    if len(got) == 3:
                        state = dl.state_dict()
                self.assertEqual(got, want)
                dl.load_state_dict(state)
                self.assertEqual(list(dl), want[3:])

    def test_batch_sampler(self):
        """Lists of any length, drawn anew for each epoch, also after a resume at any step with another number of workers."""

        class Lists:
            def __iter__(self):
                for _ in range(9):
                    yield [int(np.random.randint(-1500, 1500)), *(random.randrange(1500) for _ in range(random.randrange(5)))]

            def __len__(self):
                return 9

        u = torch.utils.data
        makers = [
            Lists,
            lambda: u.BatchSampler(u.RandomSampler(range(1500)), 200, True),
            lambda: [[5, 3], [0], [7, -1, 5]],
            lambda: u.BatchSampler(u.WeightedRandomSampler(np.arange(1500.0), 20), 7, False),
        ]
        for k, collate in enumerate([pairs, list, None]):
            workers = (0, 1, 2)[k]
            for make in makers:
                seed_all(k)
                want = [[plain(b) for b in u.DataLoader(Kept(self.records), batch_sampler=make(), collate_fn=collate)]]
                options = {**self.options, "collate_fn": collate, "num_workers": workers}
                seed_all(k)
                with loader(data.path("images"), 1, batch_sampler=make(), **options) as dl, self.subTest(k=k, sampler=type(make()).__name__):
                    self.assertEqual((len(dl), len(dl.dataset), dl.batch_size), (len(want[0]), 1500, None))
                    got, at = [], k % len(want[0])
                    for step, batch in enumerate(dl):
                        got.append(plain(batch))
                        if step == at:
                            state = dl.state_dict()
                    self.assertTrue(got == want[0])
                    self.assertFalse(list(dl) == got and not isinstance(make(), list))
                seed_all(99)
                with loader(data.path("images"), 1, batch_sampler=make(), **options) as dl, self.subTest(resumed=type(make()).__name__, k=k):
                    dl.load_state_dict(state)
                    self.assertTrue([plain(b) for b in dl] == got[at + 1 :])

    def test_batch_sampler_of_some_records(self):
        some = torch.utils.data.Subset(penstock.open(data.path("images")), range(1400, 10, -3))
        with penstock.DataLoader(some, batch_sampler=[[0, 2], [-1]], command=data.feed(), num_workers=0, **self.options) as dl:
            self.assertTrue([plain(b["images"]) for b in dl] == [plain(torch.stack([self.records[i][0] for i in r])) for r in ([1400, 1394], [11])])
        kept = np.flatnonzero(penstock.open(data.path("images"))["labels"][:] == 1)
        options = {**self.options, "filters": "labels == 1", "num_workers": 0}
        with loader(data.path("images"), 1, batch_sampler=[[0, 2], [-1]], **options) as dl:
            self.assertTrue([plain(b[0]) for b in dl] == [plain(torch.stack([self.records[kept[i]][0] for i in r])) for r in ([0, 2], [-1])])
        with loader(data.path("images"), 1, batch_sampler=[[0], [1500]], **self.options) as dl, self.assertRaisesRegex(IndexError, "record 1500"):
            list(dl)
        with self.assertRaisesRegex(ValueError, "have it yield the lists of this rank"):
            loader(data.path("images"), 1, batch_sampler=[[0]], rank=0, world_size=2, **self.options)

    def test_mixup_of_torchvision(self):
        """Its own recipe: collate_fn=lambda batch: mixup(*default_collate(batch))."""
        try:
            from torchvision.transforms import v2
        except ImportError:
            self.skipTest("no torchvision")
        mix = v2.RandomChoice([v2.MixUp(num_classes=10), v2.CutMix(num_classes=10)])

        def collate(batch):
            return mix(*torch.utils.data.default_collate(batch))

        for workers in (0, 2):
            with loader(data.path("images"), 64, collate_fn=collate, num_workers=workers, **self.options) as dl:
                first = list(dl)
                dl.set_epoch(0)
                for (images, labels), (again, others) in zip(first, dl):
                    self.assertTrue(torch.equal(images, again) and torch.equal(labels, others))
                self.assertEqual((tuple(images.shape[1:]), labels.shape[1], labels.dtype), ((3, 10, 16), 10, torch.float32))


class TestCollate(unittest.TestCase):
    def test_random_numbers_follow_the_seed(self):
        def run(workers, epoch=0, seed=3):
            np.random.seed(1)
            before = np.random.get_state()[1].tolist()
            with loader(data.path("images"), 100, transforms=T.ToTensor(), collate_fn=noise, num_workers=workers, seed=seed) as dl:
                dl.set_epoch(epoch)
                found = list(dl)
            self.assertEqual(np.random.get_state()[1].tolist(), before)
            return found

        want = run(0)
        self.assertEqual(len({tuple(numbers) for numbers, _ in want}), 15)
        self.assertEqual(run(2), want)
        for other in (run(0, epoch=1), run(0, seed=4)):
            self.assertFalse({tuple(numbers) for numbers, _ in want} & {tuple(numbers) for numbers, _ in other})

    def test_kinds_of_records(self):
        for kind, want in ((tuple, BatchTuple), (dict, BatchDict)):
            with loader(data.path("ragged"), 4, verify="first", collate_fn=list, batch_type=kind, num_workers=0) as dl:
                (first, *_), ds = next(iter(dl)), penstock.open(data.path("ragged"))
                self.assertIsInstance(first, want)
                self.assertEqual(list(first.keys()), list(ds.fields))
                for name in ds.fields:
                    self.assertTrue(plain(first[name]) == plain(ds[0][name]), name)

    def test_records_that_fail_are_replaced(self):
        def fails(record: dict):
            if record["labels"] == 2:
                raise ValueError("a two")
            return record

        for on_error in ("backfill", "blank"):
            options = {"transforms": [fails], "collate_fn": noise, "on_error": on_error}
            with loader(data.path("images"), 100, num_workers=1, **options) as dl, self.assertLogs("penstock", "WARNING"):
                labels = [label for _, some in dl for label in some]
                self.assertGreater(dl.stats()["skipped"], 0)
            self.assertNotIn(2, labels)
        with loader(data.path("images"), 100, transforms=[fails], collate_fn=noise) as dl, self.assertRaisesRegex(Exception, "a two"):
            list(dl)
