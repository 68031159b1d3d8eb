"""Random mixtures, buckets and packed rows: interrupted and continued on other ranks and workers, beside a run in one piece.

PENSTOCK_MIXTURES=FIRST:COUNT runs the programs of other numbers: a failure names the number that reproduces it.
"""

import json
import math
import os
import random
import tempfile
import unittest
from collections import Counter

import numpy as np

import penstock
from penstock.samplers import Bucket, ClassBalanced, Mix, Regions, Shuffle, Split, Subset, Weighted
from penstock.transforms import PadToLargest, RandomHorizontalFlip, Resize, ToTensor

from . import data
from .test_labels import gray_png

setUpModule = data.name_programs

FIRST, COUNT = map(int, os.environ.get("PENSTOCK_MIXTURES", "0:24").split(":"))
SIZES = {"a": 90, "b": 31, "c": 7, "d": 160, "e": 1}


def doubled(values):
    return values * 2


def doubled_record(record: dict):
    record["x"] = record["x"] * 2
    return record


def noisy_record(record: dict):
    record["x"] = np.random.randint(1 << 30)
    return record


class Program:
    """Datasets, an order, packing, a function, and weights that are set on the way."""

    def __init__(self, number, folder):
        r = self.random = random.Random(number)
        self.names = r.sample(list(SIZES), r.randint(2, 4))
        self.sources = [os.path.join(folder, name) for name in self.names]
        self.sizes = [SIZES[name] for name in self.names]
        self.view = None
        if r.random() < 0.3:
            views = [penstock.open(s) for s in self.sources]
            self.view = views[0].concat(*views[1:])
        self.batch, self.set = 24, {}
        self.options = {"seed": r.randrange(9), "output": "numpy"}
        kind = r.choice(["mix"] * 6 + ["bucket", "balanced", "once"])
        self.mix = kind == "mix"
        self.sampler = getattr(self, f"_{kind}")(r)
        if self.mix and r.random() < 0.4:
            self.options["pack"] = penstock.Pack(
                r.choice([16, 40]), ["tokens"], overflow="split", max_open_rows=r.choice([1, 8]), sampler=r.choice([None, Shuffle()]), seed=3
            )
        elif r.random() < 0.1:
            self.options["transforms"] = {"x": doubled}

    def _weights(self, r):
        weights = [r.choice([0, 1, 2, 5.5]) for _ in self.sizes]
        weights[r.randrange(len(weights))] = 1
        return weights

    def _mix(self, r):
        self.share = self._weights(r)
        if r.random() < 0.25:
            self.share = [w or 1 for w in self.share]
            return Mix(self.share, ends="rescale")
        if r.random() < 0.4:
            self.set = {r.randrange(2, 12): self._weights(r)}
        weights, options = self.share, {"per_batch": r.random() < 0.2, "num_samples": r.choice([None, 100, 240])}
        if r.random() < 0.4:
            weights, options["interpolate"], self.share = {0: self.share, r.randrange(1, 9): self._weights(r)}, r.random() < 0.5, None
        if options["per_batch"] or self.set:
            self.share = None
        return Mix(weights, **options)

    def _bucket(self, r):
        return Bucket(r.randint(1, 5), "tokens", budget=r.choice([None, 1300]), multiple=24)

    def _balanced(self, r):
        return ClassBalanced("kind", r.choice([None, 100]))

    def _once(self, r):
        return Weighted([r.choice([1, 3]) for _ in range(sum(self.sizes))], min(60, sum(self.sizes)), replacement=False)

    def loader(self, ranks=1, rank=0, workers=0):
        sources, sampler = self.view or self.sources, self.sampler
        if isinstance(sampler, Bucket) and sampler.budget:
            sampler = Bucket(sampler.buckets, sampler.field, sampler.budget / ranks, sampler.multiple)
        of = {"rank": rank, "world_size": ranks, "num_workers": workers, **self.options}
        return penstock.DataLoader(sources, self.batch // ranks, sampler=sampler, **of)

    def records(self, batch):
        """Return what a batch has: of each row of the mixture, all its values."""
        names = [n for n, _ in batch.items() if n in ("x", "tokens", "segments")]
        rows = [tuple(np.asarray(v).tobytes() for v in row) for row in zip(*[list(batch[n]) for n in names])]
        return [row for row, real in zip(rows, batch.mask) if real]


def values(batch):
    """Return the rows that a batch has, as bytes of all fields. Padding to the largest image of a rank's batch is left out."""
    names, sizes = sorted(n for n, _ in batch.items() if n not in ("cu_seqlens", "image_sizes")), batch.get("image_sizes")
    rows = zip(*[list(batch[n]) for n in names])
    if sizes is not None:
        at = names.index("image")
        rows = ([*row[:at], row[at][:, : size[0], : size[1]], *row[at + 1 :]] for row, size in zip(rows, sizes))
    return [tuple(np.asarray(v).tobytes() for v in row) for row, real in zip(rows, batch.mask) if real]


class MixturesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        r = np.random.default_rng(7)
        fields = [penstock.Field("x", "int32"), penstock.Field("kind", "int64", classes=["u", "v"]), penstock.Field("tokens", "int32", ragged=True)]
        for k, (name, size) in enumerate(SIZES.items()):
            with penstock.Writer(os.path.join(self.folder, name), fields) as w:
                for i in range(size):
                    x = 1000 * k + i
                    w.append({"x": x, "kind": i % 3 // 2, "tokens": np.full(r.integers(1, 50), x)})

    def test_random(self):
        for number in range(FIRST, FIRST + COUNT):
            with self.subTest(number=number):
                self.one(Program(number, self.folder))

    def test_workloads(self):
        """Text, fine-tuning, images with text and images by aspect ratio go on exactly with 2, 3 and 8 ranks."""
        for name, (source, options) in self.workloads().items():
            with self.subTest(name):
                self.elastic(source, options)

    def elastic(self, source, options):
        """Check that every rank of a run on 2, then 3, then 8 ranks gets what it gets in a run on as many ranks that is not interrupted."""

        def make(ranks, rank):
            return penstock.DataLoader(source, 24 // ranks, rank=rank, world_size=ranks, seed=4, output="numpy", **options)

        with make(1, 0) as dl:
            state, steps = dl.state_dict(), len(dl)
            whole = [sorted(values(batch)) for batch in dl]
        self.assertGreater(steps, 5)
        for ranks, first, end in ((2, 0, steps // 3), (3, steps // 3, steps // 2), (8, steps // 2, steps)):
            parts = [[] for _ in range(steps)]
            for rank in range(ranks):
                with make(ranks, rank) as dl:
                    alone = [values(batch) for batch in dl]
                with make(ranks, rank) as dl:
                    dl.load_state_dict(state)
                    got = [values(batch) for _, batch in zip(range(end - first), dl)]
                    after = dl.state_dict()
                self.assertEqual(got, alone[first:end])
                for part, more in zip(parts, alone):
                    part += more
            self.assertEqual([sorted(part) for part in parts], whole)
            state = after

    def workloads(self):
        """Return sources and options of loaders of four kinds of training."""
        r = np.random.default_rng(3)
        paths = {name: os.path.join(self.folder, name) for name in ("web", "code", "chats", "pairs", "pictures")}

        def lengths(mean, n):
            return np.minimum(np.exp(r.normal(np.log(mean), 0.8, n)).astype(int) + 1, 500)

        def write(name, fields, records):
            with penstock.Writer(paths[name], fields) as w:
                w.extend(records)

        tokens, image = penstock.Field("tokens", "int32", ragged=True), penstock.Field("image", "uint8", (8, 8, 3))
        for name, n in (("web", 300), ("code", 90)):
            write(name, [tokens], [{"tokens": r.integers(1, 50_000, m)} for m in lengths(90, n)])
        mask = penstock.Field("loss_mask", "uint8", ragged=True)
        write("chats", [tokens, mask], [{"tokens": r.integers(1, 50_000, m), "loss_mask": np.arange(m) >= m // 3} for m in lengths(40, 500)])
        write("pairs", [tokens, image], [{"tokens": r.integers(1, 9, m), "image": r.integers(0, 256, (8, 8, 3))} for m in lengths(20, 120)])
        with penstock.Writer(paths["pictures"], keep_encoded=True) as w:
            for height, width in np.maximum(r.normal((24, 30), 8, (150, 2)).astype(int), 8):
                w.append({"image": gray_png(r.integers(0, 256, (height, width), np.uint8)), "aspect": width / height})
        text = [paths["web"], paths["code"]]
        mix = Mix({0: [0.9, 0.1], 6: [0.5, 0.5]}, interpolate=True)
        pairs = penstock.open(paths["pairs"]).concat(penstock.open(paths["web"]), fill={"image": 0})
        shapes = {"transforms": [Resize(12), RandomHorizontalFlip(), ToTensor()], "batch_transforms": PadToLargest()}
        return {
            "text": (text, {"sampler": mix, "pack": penstock.Pack(128, overflow="split")}),
            "fine-tuning": (paths["chats"], {"shuffle": True, "pack": penstock.Pack(128, overflow="split")}),
            "images with text": (pairs, {"sampler": Mix([3, 1])}),
            "aspect ratios": (paths["pictures"], {"sampler": Bucket([0.8, 1.25], "aspect"), **shapes}),
        }

    def test_weights_within_a_loop(self):
        """Weights that are set between two batches hold from the next one on, also where workers have made more; a loaded state's do so too."""
        sources, runs = [os.path.join(self.folder, name) for name in "abd"], []
        for workers, transforms in ((0, None), (2, {"x": doubled}), (0, doubled_record), (2, doubled_record)):
            run, options = [], {"sampler": Mix([1, 2, 3]), "seed": 5, "output": "numpy"}
            with penstock.DataLoader(sources, 24, num_workers=workers, transforms=transforms, **options) as dl:
                for batch in dl:
                    run.append(batch.indices.tolist())
                    if len(run) == 3:
                        before = dl.state_dict()
                        dl.set_weights([3, 1, 0], step=3)
                dl.load_state_dict(before)
                run += [batch.indices.tolist() for batch in dl]
            runs.append(run)
        self.assertTrue(runs[0] == runs[1] == runs[2] == runs[3], [[sum(a == b for a, b in zip(run, runs[0]))] for run in runs])

    def test_random_functions(self):
        """Random numbers of a function of records are the same on other numbers of ranks, and others each time that an epoch has a record."""
        sources, n = [os.path.join(self.folder, name) for name in "abc"], 128
        weights = [1 + i % 3 for i in range(n)]
        weighted = Weighted(weights, 100), Weighted(weights, 100, replacement=False)
        for order in (ClassBalanced("kind", 100), *weighted, Mix(ends="rescale"), Mix([1, 2, 3])):
            with self.subTest(order=order):
                runs = []
                for ranks in (1, 3):
                    steps = {}
                    for rank in range(ranks):
                        options = {"sampler": order, "rank": rank, "world_size": ranks, "num_workers": 0, "seed": 3, "output": "numpy"}
                        for step, batch in enumerate(penstock.DataLoader(sources, 24 // ranks, transforms=noisy_record, **options)):
                            steps.setdefault(step, []).extend((int(i), int(x)) for i, x, real in zip(batch.indices, batch["x"], batch.mask) if real)
                    runs.append(steps)
                self.assertEqual(*runs)
                drawn = [each for step in runs[0].values() for each in step]
                self.assertGreater(len(set(drawn)), 0.95 * len(drawn))

    def test_parts(self):
        """A mixture, buckets or classes within a part of the records have the part's records alone."""
        sources, each = [os.path.join(self.folder, name) for name in "ad"], {"seed": 1, "output": "numpy", "filters": "len(tokens) > 5"}

        def records(sampler):
            with penstock.DataLoader(sources, 8, sampler=sampler, **each) as dl:
                return [batch["x"][batch.mask] for batch in dl]

        def drawn(sampler):
            return {int(x) for batch in records(sampler) for x in batch}

        train, test = [Split(*part, seed=5, inner=Mix([1, 3], num_samples=400)) for part in ((0, 0.7), (0.7, 1))]
        self.assertEqual({(batch >= 3000).sum() for batch in records(train)}, {6})
        self.assertEqual(drawn(train), drawn(Split(0, 0.7, seed=5)))
        self.assertEqual(drawn(train) & drawn(test), set())
        for inner in (Bucket(3, "tokens"), ClassBalanced("kind", 3000), Split(0, 1, inner=Mix([1, 2], num_samples=400))):
            with self.subTest(inner=inner):
                self.assertEqual(drawn(Split(0, 0.7, seed=5, inner=inner)), drawn(train))
        some = Subset([3, 70, 71, 100], inner=Mix([1, 1]))
        self.assertEqual(drawn(some), drawn(Subset(some.indices)))
        for wrong, why in (
            (Subset([70, 3, 100], inner=Mix([1, 1])), r"Subset\(sorted\(indices\)"),
            (Regions(2, Mix([1, 1])), "Mix cannot be within Regions"),
        ):
            with self.assertRaisesRegex(penstock.Error, why):
                records(wrong)

    def test_seen_refuses(self):
        with penstock.DataLoader(os.path.join(self.folder, "a"), 8, seed=1, output="numpy") as dl:
            state = dl.state_dict()
        for wrong, why in ((state, "no mixture"), ({**state, "mix": {"sizes": [3, -1], "batch": 4}}, "source 1 has -1 records"), ({}, "state_dict")):
            with self.assertRaisesRegex(penstock.Error, why):
                penstock.seen(wrong)

    def one(self, p):
        with p.loader() as dl:
            for step, weights in p.set.items():
                dl.set_weights(weights, step=step)
            start, whole, steps = dl.state_dict(), [], len(dl)
            for _ in range(2):
                whole += [p.records(b) for b in dl]
            mixed = dl.stats().get("mixed")
            if p.mix:
                self.assertEqual(penstock.seen({"functions": ["doubled"], **json.loads(json.dumps(dl.state_dict()))}), mixed)
        self.assertEqual(len(whole), 2 * steps)
        if p.mix:
            self.counts(p, whole, mixed)
        state, at, r = start, 0, p.random
        while at < len(whole):
            ranks, workers = r.choice([1, 2, 3, 4, 6, 8]), r.choice([0, 1, 3, 5])
            n = min(r.randint(1, steps), steps - at % steps)
            looked = range(ranks) if r.random() < 0.2 else sorted(r.sample(range(ranks), min(2, ranks)))  # each is a process
            parts = [[] for _ in range(n)]
            for rank in looked:
                with p.loader(ranks, rank, workers) as dl:
                    dl.load_state_dict(state)
                    batches = iter(dl)
                    for part in parts:
                        part.append(p.records(next(batches)))
                    if (at + n) % steps == 0:
                        self.assertIsNone(next(batches, None))
                    after = dl.state_dict()
            for step, part in enumerate(parts, at):
                want, got = whole[step], [row for rows in part for row in rows]
                if len(want) == p.batch:
                    each = p.batch // ranks
                    same = part == [want[rank * each : (rank + 1) * each] for rank in looked]
                else:  # the parts of ranks are not one after the other
                    same = not Counter(got) - Counter(want) and (len(looked) < ranks or len(got) == len(want))
                self.assertTrue(same, f"step {step}: {len(got)} records of ranks {list(looked)} of {ranks} differ from a run in one piece")
            state, at = after, at + n

    def counts(self, p, whole, mixed):
        """The records of each dataset are those that stats() counts, and of each batch what the weights promise."""
        order = [list(SIZES).index(name) for name in p.names]
        of = [[np.frombuffer(row[0], np.int32)[0] // 1000 // (2 if "transforms" in p.options else 1) for row in batch] for batch in whole]
        counts = [[batch.count(k) for k in order] for batch in of]
        self.assertEqual(np.sum(counts, 0).tolist(), [m["Drawn"] for m in mixed])
        if p.share is not None and p.sampler.ends == "repeat":
            for batch in counts:
                for n, w in zip(batch, p.share):
                    want = w / sum(p.share) * p.batch
                    self.assertTrue(math.floor(want - 1e-6) <= n <= math.ceil(want + 1e-6), (n, want))


if __name__ == "__main__":
    unittest.main()
