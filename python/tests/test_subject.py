import os
import pickle
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

import numpy as np

import penstock
from penstock import samplers
from penstock import transforms as T
from penstock._engine import launcher, subject

from . import data
from .test_dataloader import indices, loader, records

try:
    import torch
except ImportError:
    torch = None

LAUNCHERS = [name for pair in launcher._VARIABLES for name in pair]


def environment(**variables):
    """Return a patch of the environment: these variables of launchers, and no others."""
    rest = {name: value for name, value in os.environ.items() if name not in LAUNCHERS}
    return mock.patch.dict(os.environ, {**rest, **variables}, clear=True)


class Imitations(types.ModuleType):
    """The classes of torch.utils.data, where there is no torch."""

    class Subset:
        def __init__(self, dataset, indices):
            self.dataset, self.indices = dataset, indices

        def __getitem__(self, i):
            return self.dataset[self.indices[i]]

        def __len__(self):
            return len(self.indices)

    class ConcatDataset:
        def __init__(self, datasets):
            self.datasets = list(datasets)

    class SequentialSampler:
        def __init__(self, data_source):
            self.data_source = data_source

    class RandomSampler:
        def __init__(self, data_source, generator=None):
            self.data_source, self.generator, self.replacement, self.num_samples = data_source, generator, False, len(data_source)

    class SubsetRandomSampler:
        def __init__(self, indices):
            self.indices = indices

    class WeightedRandomSampler:
        def __init__(self, weights, num_samples):
            self.weights, self.num_samples, self.replacement = weights, num_samples, True

    class DistributedSampler:
        def __init__(self, dataset, num_replicas, rank, shuffle=True, seed=0, drop_last=False):
            self.dataset, self.num_replicas, self.rank, self.shuffle, self.seed, self.drop_last, self.epoch = (
                dataset,
                num_replicas,
                rank,
                shuffle,
                seed,
                drop_last,
                0,
            )

        def set_epoch(self, epoch):
            self.epoch = epoch


for _class in vars(Imitations).copy().values():
    if isinstance(_class, type):
        _class.__module__ = "torch.utils.data"


class TorchTest(unittest.TestCase):
    def setUp(self):
        self.u = Imitations("torch.utils.data") if torch is None else torch.utils.data
        if torch is None:
            patch = mock.patch.dict(sys.modules, {"torch.utils.data": self.u})
            patch.start()
            self.addCleanup(patch.stop)
        self.ds = penstock.open(data.path("images"))


class SubjectTest(TorchTest):
    """Datasets and samplers that are torch's."""

    def load(self, dataset, batch_size=64, **options):
        return penstock.DataLoader(dataset, batch_size, output="numpy", command=data.feed(), **options)

    def test_indices_and_weights_that_change(self):
        """As active learning and pseudo labels change them: torch reads them at each iter()."""
        subset = self.u.Subset(self.ds, list(range(100)))
        both = self.u.ConcatDataset([subset, self.ds])
        with self.load(subset) as dl, self.load(both) as of_both, self.load(subset, shuffle=True, seed=1) as shuffled:
            self.assertEqual((len(dl), records(dl), len(records(of_both)), len(records(shuffled))), (2, list(range(100)), 1600, 100))
            subset.indices.append(700)
            subset.indices[0] = 9
            want = [9, *range(1, 100), 700]
            self.assertEqual((len(dl), records(dl), records(of_both)[:101]), (2, want, want))
            self.assertEqual((dl.epoch, sorted(records(shuffled)), shuffled.epoch), (2, sorted(want), 2))
            subset.indices = list(range(200))
            self.assertEqual((len(dl), records(dl)), (4, list(range(200))))
            state = dl.state_dict()
            subset.indices = [1, 2]
            self.assertEqual((records(dl), dl.epoch), ([1, 2], 4))
            subset.indices = list(range(200))
            for _ in zip(range(2), dl):
                state = dl.state_dict()
            subset.indices = list(range(300))
            with self.load(self.u.Subset(self.ds, list(range(200)))) as again:
                again.load_state_dict(state)
                again.dataset.indices[0] = 5
                with self.assertRaisesRegex(penstock.Error, "indices or weights have changed since"):
                    iter(again)
        if torch is not None:
            weights = torch.zeros(1500)
            weights[3] = 1
            sampler = self.u.WeightedRandomSampler(weights, 40)
            with self.load(self.ds, sampler=sampler) as dl:
                self.assertEqual(records(dl), [3] * 40)
                sampler.weights[3], sampler.weights[8] = 0, 1
                self.assertEqual(records(dl), [8] * 40)

    def test_a_subset_is_loaded_alone(self):
        order = np.random.default_rng(1).permutation(1500)
        train, val = self.u.Subset(self.ds, order[:1200].tolist()), self.u.Subset(self.ds, order[1200:])
        nested = self.u.Subset(val, [5, -1, 7, 5, -300, 299])
        for dataset, want in (
            (train, order[:1200]),
            (val, order[1200:]),
            (nested, order[1200:][[5, -1, 7, 5, -300, 299]]),
            (self.u.Subset(self.ds, []), []),
        ):
            with self.load(dataset) as dl:
                self.assertEqual((records(dl), len(dl), dl.dataset), (list(want), -(-len(want) // 64), dataset))
                for batch in dl:
                    self.assertEqual(batch["labels"].tolist(), self.ds["labels"].take(batch.indices).tolist())
            with self.load(dataset, shuffle=True, seed=3) as dl:
                got, again = records(dl), records(dl)
                self.assertEqual((sorted(got), sorted(again)), (sorted(want), sorted(want)))
                self.assertTrue(got != again or len(want) < 9)
                if torch is not None:  # the imitations are in no module
                    copied = pickle.loads(pickle.dumps(dl))
                    self.assertEqual(indices(copied), indices(dl))
                    copied.close()
        with self.load(val, sampler=[3, 0, -1]) as dl:
            self.assertEqual(records(dl), order[1200:][[3, 0, -1]].tolist())
        with self.load(val, sampler=samplers.Subset([3, 0, 8], inner=samplers.Shuffle())) as dl:
            self.assertEqual(sorted(records(dl)), sorted(order[1200:][[3, 0, 8]].tolist()))
        with self.load(val, sampler=samplers.Split(0, 0.5)) as dl:
            self.assertEqual(len(set(records(dl)) & set(order[1200:].tolist())), 150)

    def test_a_split_that_is_divided(self):
        ds = penstock.open(data.path("ragged"), split="val", fields=["labels"])
        with self.load(self.u.Subset(ds, [4, 2])) as dl:
            (batch,) = dl
            self.assertEqual((list(batch.keys()), batch["labels"].tolist()), (["labels"], ds["labels"].take([4, 2]).tolist()))
        with self.assertRaisesRegex(ValueError, r"split is 'val', and the Subset numbers .*penstock.open\(path, split='val'\)"):
            self.load(self.u.Subset(penstock.open(data.path("ragged")), [1]), split="val")

    def test_several(self):
        both = self.u.ConcatDataset([self.u.Subset(self.ds, [7, 9]), self.ds, self.u.Subset(self.ds, [1499, 0])])
        want = [7, 9, *range(1500, 3000), 4499, 3000]
        for dataset in (both, list(both.datasets)):
            with self.load(dataset) as dl:
                self.assertEqual(records(dl), want)
        with self.load(self.u.Subset(both, [0, 1, 2, 1503]), shuffle=True) as dl:
            self.assertEqual(sorted(records(dl)), [7, 9, 1500, 3000])
        train, val, whole = (penstock.open(data.path("ragged"), split=s) for s in ("train", "val", None))
        for wrong in ([train, val], [train, whole], [whole, train], [train, data.path("ragged")], self.u.ConcatDataset([train, val])):
            with self.assertRaisesRegex(ValueError, "was opened with split=.*, and .* with split=.*; open all of them with the same"):
                self.load(wrong)
        with self.assertRaisesRegex(ValueError, r"with fields=\['labels'\], and .* with fields=\['tokens'\]"):
            self.load([penstock.open(data.path("ragged"), fields=[f]) for f in ("labels", "tokens")])
        with self.assertRaisesRegex(TypeError, "a list of a Subset and a path; give penstock.open of the path"):
            self.load([self.u.Subset(self.ds, [1]), data.path("images")])

    def test_what_is_refused(self):
        class Own(self.u.Subset):
            pass

        class Relabeled(penstock.Dataset):
            def __getitem__(self, index):
                return {**super().__getitem__(index), "labels": 7}

        for dataset, options, kind, why in (
            (
                Own(self.ds, [1]),
                {"transforms": T.ToTensor()},
                ValueError,
                "transforms is for the path of .* do it in the code of this Own",
            ),
            (Relabeled(data.path("images")), {"filters": []}, ValueError, "filters is for the path of a dataset"),
            (penstock.open(data.path("images"), mode="c"), {"verify": "first"}, ValueError, "verify is for .* penstock.open of it with mode='r'"),
            (self.ds, {"collate_fn": list, "pack": penstock.Pack(8)}, ValueError, "pack comes before collate_fn"),
            (self.ds, {"collate_fn": list, "fields": ["labels"]}, ValueError, r"give penstock.open\(path, fields=...\) as the dataset"),
            (
                [data.path("images")] * 2,
                {"collate_fn": list},
                ValueError,
                "a list of 2 paths with a function of Python; give torch.utils.data.ConcatDataset",
            ),
            (self.u.Subset(data.path("images"), [1]), {}, TypeError, "take a Subset of penstock.open"),
            (self.u.Subset(self.ds, [1, 1500]), {}, IndexError, "Subset: record 1500 is out of range: there are 1500"),
            (self.u.Subset(self.ds, [0.5]), {}, TypeError, "indices are whole numbers"),
            (self.u.Subset(self.ds, [[1]]), {}, TypeError, "indices are whole numbers"),
            (self.u.Subset(self.ds, [1]), {"filters": [("labels", "==", 1)]}, ValueError, "filters and pack renumber the records"),
            (self.u.Subset(self.ds, [1]), {"sampler": [1]}, IndexError, "sampler: record 1 is out of range: there are 1"),
            (self.ds, {"sampler": [[1, 2], [3, 4]]}, TypeError, "of batches, give batch_size"),
            (
                self.ds,
                {"sampler": samplers.Weighted(np.ones((750, 2)))},
                TypeError,
                r"Weighted: weights are numbers, one a record, and not float64 of shape \(750, 2\)",
            ),
            (self.ds, {"sampler": samplers.Weighted(["1"] * 1500)}, TypeError, "Weighted: weights are numbers, one a record, and not <U1"),
            (
                self.ds,
                {"sampler": samplers.Weighted(np.ones(1500, np.complex64))},
                TypeError,
                "Weighted: weights are numbers, one a record, and not complex64",
            ),
        ):
            with self.subTest(why=why), self.assertRaisesRegex(kind, why):
                self.load(dataset, **options)

    def test_functions_of_python(self):
        """A prepared dataset is one of records then, which worker processes read."""

        def longest(samples):
            samples.sort(key=lambda r: -len(r["tokens"]))  # a list, as functions expect it
            return [(len(r["tokens"]), r["caption"]) for r in samples]

        path, ds = data.path("ragged"), penstock.open(data.path("ragged"))
        for dataset in (path, ds):
            for workers in (0, 1):
                with self.load(dataset, 50, collate_fn=longest, num_workers=workers) as dl:
                    self.assertEqual((len(dl), len(dl.dataset), dl.records), (-(-len(ds) // 50), len(ds), len(ds)))
                    got = next(iter(dl))
                    self.assertEqual(sorted(got), sorted((len(ds[i]["tokens"]), ds[i]["caption"]) for i in range(50)))
                    self.assertEqual(got, sorted(got, key=lambda x: -x[0]))
        (batch,) = self.load(data.path("images"), batch_size=1, batch_sampler=[[5, 3]])
        self.assertEqual(batch["labels"].tolist(), self.ds["labels"][[5, 3]].tolist())
        first = next(iter(self.load(data.path("images"), batch_size=None, sampler=[7])))
        self.assertEqual(first["images"].tolist(), self.ds["images"][7].tolist())
        (first, *_) = self.load(data.path("ragged"), 2, split="val", fields=["labels"], collate_fn=list)
        self.assertEqual([r["labels"] for r in first], penstock.open(data.path("ragged"), split="val")["labels"][:2].tolist())
        with self.load(data.path("images"), 100, collate_fn=len, shuffle=True, seed=3) as dl:
            self.assertEqual(list(dl), [100] * 15)
            self.assertIs(dl.collate_fn, len)

    def test_lengths_of_some_records(self):
        ds = penstock.open(data.path("ragged"))
        some = list(range(len(ds) - 1, 0, -3))
        field = next(name for name, f in ds.fields.items() if f.ragged)
        by_length = samplers.Bucket(99, field)
        for dataset, sampler, want in (
            (self.u.Subset(ds, some), by_length, some),
            (ds, samplers.Subset(some, inner=by_length), some),
            (ds, samplers.Subset(some, inner=samplers.Subset(range(8), inner=by_length)), some[:8]),
        ):
            with self.load(dataset, 4, sampler=sampler) as dl:
                batches = [b.indices.tolist() for b in dl]
            self.assertEqual(sorted(i for batch in batches for i in batch), sorted(want))
            spans = sorted((min(lengths), max(lengths)) for batch in batches if len(batch) == 4 for lengths in [[len(ds[field][i]) for i in batch]])
            for (_, longest), (shortest, _) in zip(spans, spans[1:]):
                self.assertLessEqual(longest, shortest)

    def test_a_dataset_that_was_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ds")

            def write(first):
                with penstock.Writer(path, command=data.preprocess(), overwrite=True) as w:
                    w.extend({"x": first + i} for i in range(10))

            write(0)
            old = penstock.open(path)
            write(0)  # the same records: the same dataset
            for dataset in (old, self.u.Subset(old, [3])):
                with self.load(dataset) as dl:
                    self.assertEqual(next(iter(dl))["x"].tolist(), [old[i]["x"] for i in ([3] if dataset is not old else range(10))])
            write(100)
            for dataset in (old, self.u.Subset(old, [3]), [old, old]):
                with self.assertRaisesRegex(penstock.Error, "another dataset has taken its place since it was opened: .*; open it again"):
                    self.load(dataset).close()
            with self.load(penstock.open(path)) as dl:
                self.assertEqual(next(iter(dl))["x"][0], 100)

    def test_a_dataset_that_has_grown(self):
        with mock.patch.object(penstock.Dataset, "__len__", lambda _: 1400):
            small = penstock.open(data.path("images"))
            for options in ({"dataset": self.u.Subset(small, [1])}, {"dataset": small, "sampler": self.u.SequentialSampler(small)}):
                with self.assertRaisesRegex(penstock.Error, "has 1500 records, and had 1400 when it was opened here; open it again"):
                    self.load(**options)

    @unittest.skipIf(torch is None, "no torch")
    def test_a_torch_dataset(self):
        from penstock.torch import TorchDataset

        with self.load(TorchDataset(data.path("images"))) as dl:
            self.assertEqual(next(iter(dl))["images"].dtype, np.uint8)
        for name, normalize in (("images", True), ("images", ([0.5], [0.25])), ("pixels", True)):  # CHW, and HWC
            tds = TorchDataset(data.path(name), normalize=normalize)
            with self.load(self.u.Subset(tds, [3, 1])) as dl:
                (batch,) = dl
                self.assertEqual(batch["images"].shape[1:], tuple(tds[0]["images"].shape))
                self.assertEqual(batch["images"].tobytes(), b"".join(tds[i]["images"].numpy().tobytes() for i in (3, 1)))
            with self.assertRaisesRegex(ValueError, "the TorchDataset normalizes, and transforms= are given"):
                self.load(tds, transforms=T.ToTensor())

    def test_normalization_of_a_torch_dataset(self):
        """As transforms: ToTensor for images in CHW; images in HWC stay so."""
        normalization = types.SimpleNamespace(mean=[0.5], std=[0.25], scale=255)
        for layout, first in (("CHW", "ToTensor"), ("HWC", "ConvertImageDtype")):
            f = types.SimpleNamespace(pending=True, normalization=normalization, layout=layout)
            rest = types.SimpleNamespace(pending=False, normalization=normalization, layout=layout)
            part = subject._of_torch(types.SimpleNamespace(dataset=self.ds, fields={"images": f, "others": rest}))
            self.assertEqual(list(part.transforms), ["images"])
            self.assertEqual([step["op"] for step in T.translate(part.transforms["images"])], [first, "Normalize"])

    def test_an_empty_list_is_a_dataset_without_records(self):
        """As for torch, and not several datasets."""
        self.assertFalse(subject.is_prepared([]))
        with self.load([]) as dl:
            self.assertEqual((len(dl), list(dl)), (0, []))

    def test_samplers_over_fewer_records(self):
        u = self.u
        for sampler, want in (
            (u.SequentialSampler(range(20)), list(range(20))),
            (u.RandomSampler(range(20)), None),
            (u.DistributedSampler(range(20), 1, 0), None),
            (u.DistributedSampler(range(21), 2, 1, shuffle=False, drop_last=True), None),
            (u.SubsetRandomSampler(range(20)), None),
            (u.WeightedRandomSampler([1.0] * 20, 300), None),
        ):
            for dataset in (data.path("images"), self.ds, u.Subset(self.ds, range(1500))):
                if isinstance(dataset, str) and isinstance(sampler, u.WeightedRandomSampler):
                    continue  # whose weights must be as many as the records, which only the feeding process knows
                with self.subTest(sampler=type(sampler).__name__), self.load(dataset, 8, sampler=sampler) as dl:
                    got = records(dl)
                    self.assertEqual(got, want or got)
                    self.assertLessEqual(set(got), set(range(20)))
                    self.assertIs(dl.sampler, sampler)
        for sampler in (
            u.SequentialSampler(range(1501)),
            u.RandomSampler(range(1501)),
            u.DistributedSampler(range(1501), 2, 0),
            u.WeightedRandomSampler([1.0] * 1501, 3),
        ):
            with self.assertRaisesRegex(IndexError, "150[01].*, and the dataset has 1500"):
                self.load(self.ds, sampler=sampler)
        with self.assertRaisesRegex(penstock.UnsupportedError, "has a generator.*seed=generator.initial_seed"):
            sampler = u.RandomSampler(range(20))
            sampler.generator = object()
            self.load(self.ds, sampler=sampler)
        with self.assertRaisesRegex(penstock.UnsupportedError, "leaves out 1 of 21 records.*drop_last=True to the DataLoader"):
            self.load(self.ds, sampler=u.DistributedSampler(range(21), 2, 0, drop_last=True))
        with self.assertRaisesRegex(penstock.UnsupportedError, "is over 20 records, and filters and pack renumber them"):
            self.load(self.ds, sampler=u.RandomSampler(range(20)), filters=[("labels", "==", 1)])
        with self.load(self.ds, sampler=u.RandomSampler(self.ds), filters=[("labels", "==", 1)]) as dl:
            self.assertEqual(sorted(records(dl)), np.flatnonzero(self.ds["labels"][:] == 1).tolist())

    def test_a_distributed_sampler(self):
        def sampler(seed=0, **options):
            return self.u.DistributedSampler(self.ds, 2, 1, seed=seed, **options)

        def of(seed):
            with loader("images", 64, True, rank=1, world_size=2, seed=seed) as dl:
                return indices(dl)

        for own, seed, want in ((0, None, 0), (7, None, 7), (0, 5, 5), (5, 5, 5)):
            with self.load(self.ds, sampler=sampler(own), seed=seed) as dl:
                self.assertEqual((indices(dl), dl.seed, dl.rank, dl.world_size), (of(want), want, 1, 2))
        for options, why in (
            ({"seed": 5}, "seed is 5, and seed of the DistributedSampler is 7; leave one"),
            ({"rank": 0}, "rank is 0, and rank of the DistributedSampler is 1; leave one"),
            ({"world_size": 3}, "world_size is 3, and world_size of the DistributedSampler is 2; leave one"),
        ):
            with self.assertRaisesRegex(ValueError, why):
                self.load(self.ds, sampler=sampler(7), **options)
        given, plain = sampler(3), loader("images", 64, True, rank=1, world_size=2, seed=3)
        with self.load(self.ds, sampler=given) as dl, plain:
            for epoch in (0, 1, 5, 2):
                given.set_epoch(epoch)
                plain.set_epoch(epoch)
                self.assertEqual(indices(dl), indices(plain))
            self.assertEqual(indices(dl), indices(plain))  # they count up
            again = indices(dl)  # epoch 4
            given.set_epoch(4)
            self.assertEqual([indices(dl), indices(dl)][0], again)  # the number of the last epoch is an epoch too
            self.assertNotEqual(indices(dl), again)

    def test_a_distributed_sampler_of_several_loaders(self):
        given = self.u.DistributedSampler(self.ds, 2, 1, seed=3)
        with self.load(self.ds, sampler=given) as one, self.load(self.ds, sampler=given) as other:
            first = [indices(one), indices(other)]
            self.assertEqual(*first)
            given.set_epoch(0)
            self.assertEqual([indices(one), indices(other)], first)
            self.assertNotEqual(indices(one), first[0])

    def test_a_distributed_sampler_of_a_user_dataset(self):
        for batch_size in (3, 4):
            sampler = self.u.DistributedSampler(range(21), 2, 1)
            with self.code(sampler=sampler, seed=5, batch_size=batch_size) as dl:
                self.assertEqual((dl.rank, dl.world_size), (1, 2))
                with self.code(shuffle=True, seed=5, rank=1, world_size=2, batch_size=batch_size) as plain:
                    for epoch in (0, 1, 1, 4):
                        sampler.set_epoch(epoch)
                        plain.set_epoch(epoch)
                        self.assertEqual([b.tolist() for b in dl], [b.tolist() for b in plain])
        with self.assertRaisesRegex(ValueError, "rank is 0, and rank of the DistributedSampler is 1"):
            self.code(sampler=self.u.DistributedSampler(range(21), 2, 1), seed=5, rank=0, world_size=2)
        with self.assertRaisesRegex(ValueError, "seed is 5, and seed of the DistributedSampler is 7"):
            self.code(sampler=self.u.DistributedSampler(range(21), 2, 1, seed=7), seed=5)

    def test_samplers_of_penstock_for_user_datasets(self):
        for options in ({}, {"seed": 1}):
            for sampler, how in (
                (samplers.Weighted([1.0] * 21), "WeightedRandomSampler"), (samplers.Mix([1.0]), "ConcatDataset"),
                (samplers.Regions(2), "Subset for each rank"),
                (samplers.Bucket(2), "batch_sampler"),
            ):  # fmt: skip
                with self.subTest(sampler), self.assertRaisesRegex(penstock.UnsupportedError, how):
                    self.code(sampler=sampler, **options)
        with self.assertRaisesRegex(penstock.UnsupportedError, "needs seed=.*shuffle=True"):
            self.code(sampler=samplers.Shuffle())
        with self.assertRaisesRegex(penstock.UnsupportedError, "needs seed=.*shuffle=True"):
            penstock.DataLoader(np.zeros(4), sampler=samplers.Shuffle(), output="numpy")
        self.assertEqual(sorted(i for b in self.code(sampler=samplers.Shuffle(), seed=1) for i in b.tolist()), list(range(21)))

    def code(self, **options):
        """Return a DataLoader of a dataset of Python."""

        class Numbers:
            def __len__(self):
                return 21

            def __getitem__(self, i):
                return i

        return penstock.DataLoader(Numbers(), output="numpy", num_workers=0, **options)


class RanksTest(unittest.TestCase):
    def test_automatic(self):
        for variables, want in (
            ({"RANK": "1", "WORLD_SIZE": "3"}, (1, 3)),
            ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, (0, 2)),
            ({"SLURM_PROCID": "5", "SLURM_NTASKS": "6"}, (5, 6)),
            ({"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "5", "SLURM_NTASKS": "6"}, (1, 2)),
            ({}, (0, 1)),
            ({"SLURM_NTASKS": "6"}, (0, 1)),  # of a batch script, which is not a task
            ({"SLURM_NTASKS": "6", "JOB_COMPLETION_INDEX": "1", "JOB_COMPLETIONS": "2"}, (1, 2)),
        ):
            with self.subTest(variables), environment(**variables), warnings.catch_warnings():
                warnings.simplefilter("error")
                with loader("images", 60, True, rank="auto", seed=1) as dl:
                    self.assertEqual((dl.rank, dl.world_size), want)
                    self.assertEqual(dl._arguments["rank"], want[0])
        for variables, options, why in (
            ({}, {"world_size": 2}, "torch.distributed is not initialized.*, and world_size is 2; leave world_size out"),
            ({"RANK": "1"}, {}, "RANK is set, but not WORLD_SIZE; set both"),
            ({"WORLD_SIZE": "2"}, {}, "WORLD_SIZE is set, but not RANK; set both"),
            ({"RANK": "2", "WORLD_SIZE": "2"}, {}, "RANK=2 WORLD_SIZE=2: a rank is a number from 0"),
            ({"RANK": "x", "WORLD_SIZE": "2"}, {}, "RANK=x WORLD_SIZE=2: a rank is a number from 0"),
            ({"RANK": "1", "WORLD_SIZE": "2"}, {"world_size": 4}, "and world_size is 4; leave world_size out"),
        ):
            with self.subTest(variables), environment(**variables), self.assertRaisesRegex(penstock.Error, why):
                loader("images", 60, rank="auto", **options)
        with self.assertRaisesRegex(ValueError, "rank is 'x'; it must be an integer or"):
            loader("images", 60, rank="x")
        with self.assertRaisesRegex(ValueError, 'world_size is 2: give rank, too, or rank="auto"'):
            loader("images", 60, world_size=2)

    def test_the_variables_of_go(self):
        with open(os.path.join(data.HERE, "..", "..", "internal", "sys", "rank", "rank.go")) as f:
            text = f.read()
        for rank, size in launcher._VARIABLES:
            self.assertIn(f'rank: "{rank}", size: "{size}"', text)

    def test_a_process_group(self):
        class Group:
            is_available = is_initialized = staticmethod(lambda: True)
            get_rank, get_world_size = staticmethod(lambda: 2), staticmethod(lambda: 4)

        with (
            environment(RANK="1", WORLD_SIZE="3"),
            mock.patch.dict(sys.modules, {"torch.distributed": Group}),
            loader("images", 60, rank="auto") as dl,
        ):
            self.assertEqual((dl.rank, dl.world_size), (2, 4))

    def test_all_the_data_in_each_process(self):
        with environment(RANK="1", WORLD_SIZE="2"):
            with self.assertWarnsRegex(UserWarning, 'RANK=1 WORLD_SIZE=2, and a DataLoader without rank= .*rank="auto"') as warned:
                for _ in loader("images", 600):
                    pass
            self.assertTrue(warned.filename.endswith("test_subject.py"), warned.filename)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                loader("images", 60).close()  # which nobody iterates over: a framework makes another one of it
                list(loader("images", 600, rank=0, world_size=1))
        for variables in ({}, {"RANK": "0", "WORLD_SIZE": "1"}, {"RANK": "3"}, {"SLURM_NTASKS": "8"}):
            with environment(**variables), warnings.catch_warnings():
                warnings.simplefilter("error")
                list(loader("images", 600))


class FrameworksTest(unittest.TestCase):
    """The questions of frameworks to a DataLoader, without the frameworks: peers/test_frameworks.py has them."""

    def test_questions(self):
        with loader("images", 60, True) as dl:
            self.assertIsNone(dl.batch_sampler)
            self.assertEqual(len(dl.dataset), 1500)
            self.assertEqual(dl.sampler, samplers.Shuffle())
            self.assertFalse(callable(getattr(dl.sampler, "set_epoch", None)))
            self.assertIsNone(dl.collate_fn)
            self.assertTrue(hasattr(dl, "__iter__") and hasattr(dl, "__len__"))
            batch = next(iter(dl))
            moved = batch.to("cpu") if torch else batch  # as Lightning and Accelerate do with what has a method to
            self.assertEqual(moved.mask.tolist(), batch.mask.tolist())
        with loader(["images", "images"], 60) as dl:
            self.assertEqual(len(dl.dataset), 3000)
            self.assertEqual(records(penstock.DataLoader(dl.dataset, 60, output="numpy", command=data.feed())), list(range(3000)))
        dl._paths = ["s3://bucket/ds"]
        self.assertEqual(len(dl.dataset), 3000)


if __name__ == "__main__":
    unittest.main()
