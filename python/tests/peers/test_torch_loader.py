"""penstock.DataLoader against torch's, over the same random programs of samplers, Subset, random_split and ConcatDataset."""

import collections
import json
import os
import random
import shutil
import tempfile
import unittest
from unittest import mock

import numpy as np
import torch
from torch.utils import data as tud

import penstock
import penstock.torch
from penstock._engine import dataloader
from tests import data
from tests.peers import cases

SIZES = (1, 7, 40, 101)


class Ids(tud.Dataset):
    """The numbers of the records of one dataset among those of all."""

    def __init__(self, n):
        self.n, self.first = n, 0

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not -self.n <= i < self.n:
            raise IndexError(i)
        return self.first + i % self.n


class Asked(Exception):
    """Stops a DataLoader before it starts a process."""


class Program:
    """A random dataset, sampler and options, once over datasets of penstock and once over their numbers."""

    def __init__(self, rng, datasets, ranks):
        self.rng, self.datasets = rng, datasets
        self.leaves = []
        self.ours, self.theirs = self.tree(rng.choice((0, 1, 1, 2, 3)))
        self.number(self.theirs, 0)
        self.n = sum(leaf.n for leaf in self.leaves)
        self.refusals = ()  # why penstock may refuse it
        self.kind = "order"  # the order is specified; or a permutation, or draws
        self.options = {"batch_size": rng.choice((1, 2, 3, 5, 8, 13, 40))}
        if rng.random() < 0.5:
            self.options["drop_last"] = rng.random() < 0.6
        self.draw(ranks)

    def tree(self, depth):
        rng = self.rng
        if depth == 0:
            at = rng.randrange(len(SIZES))
            leaf = Ids(SIZES[at])
            ours = self.datasets[at]
            if rng.random() < 0.3:
                ours = penstock.torch.TorchDataset(ours.path)
            return ours, leaf
        kind = rng.choice(("subset", "subset", "split", "concat"))
        if kind == "concat":
            parts = [self.tree(rng.randrange(depth)) for _ in range(rng.randint(1, 3))]
            ours = [o for o, _ in parts]
            return (ours if depth == 3 and rng.random() < 0.3 else tud.ConcatDataset(ours)), tud.ConcatDataset([t for _, t in parts])
        ours, theirs = self.tree(depth - 1)
        if isinstance(ours, list):  # of which torch has no Subset
            ours = tud.ConcatDataset(ours)
        n = len(theirs)
        if kind == "split" and n:
            first = rng.randint(0, n)
            seed = rng.randrange(100)
            at = rng.randrange(2)
            return tuple(tud.random_split(d, [first, n - first], torch.Generator().manual_seed(seed))[at] for d in (ours, theirs))
        indices = [rng.randrange(-n, n) for _ in range(rng.randint(0, n))] if rng.random() < 0.3 else rng.sample(range(n), rng.randint(0, n))
        if rng.random() < 0.1:
            indices = range(0, n, rng.randint(1, 4))
        form = rng.choice((list, np.array, torch.tensor)) if len(indices) else list
        return tud.Subset(ours, form(indices)), tud.Subset(theirs, [int(i) for i in indices])

    def number(self, theirs, first):
        """Say where each dataset begins among all, and return where they end."""
        if isinstance(theirs, Ids):
            theirs.first = first
            self.leaves.append(theirs)
            return first + theirs.n
        for part in theirs.datasets if isinstance(theirs, tud.ConcatDataset) else [theirs.dataset]:
            first = self.number(part, first)
        return first

    def draw(self, ranks):
        rng, n = self.rng, len(self.theirs)
        over = rng.choice((n, n, n, rng.randint(0, n), n + rng.randint(1, 3)))
        if over > n:
            self.refusals += ("and the dataset has", "is out of range", "; there are")
        source = range(over)
        kind = rng.choice(("distributed",) if ranks else ("none", "shuffle", "sequential", "random", "subset", "weighted", "list", "batch"))
        if kind == "none":
            self.refusals = ()
            self.sampler = None
        elif kind == "shuffle":
            self.refusals = ()
            self.sampler, self.kind = None, "permutation"
            self.options["shuffle"] = rng.choice((True, False))
            if not self.options["shuffle"]:
                self.kind = "order"
        elif kind == "sequential":
            self.sampler = tud.SequentialSampler(source)
        elif kind == "random":
            self.kind = "permutation"
            options = {}
            if rng.random() < 0.2:
                options["replacement"], self.refusals = True, (*self.refusals, "draws in Python")
            if rng.random() < 0.2:
                options["num_samples"] = rng.randint(1, 2 * over + 1)
                if options["num_samples"] != over:
                    self.refusals += ("draws in Python",)
            if rng.random() < 0.2:
                options["generator"], self.refusals = torch.Generator(), (*self.refusals, "has a generator")
            if over == 0 and "num_samples" not in options:
                options["num_samples"], self.refusals = 1, (*self.refusals, "draws in Python")
            self.sampler = tud.RandomSampler(source, **options)
        elif kind == "subset":
            self.kind = "permutation"
            self.sampler = tud.SubsetRandomSampler(rng.sample(source, rng.randint(0, over)))
        elif kind == "weighted":
            self.kind = "draws"
            weights = [rng.choice((0.0, 1.0, 2.5)) for _ in source]
            if not any(weights):
                weights = [1.0] * max(over, 1)
                if over == 0:
                    self.refusals += ("and the dataset has",)
            replacement = rng.random() < 0.8
            draws = rng.randint(1, 50) if replacement else rng.randint(1, max(1, np.count_nonzero(weights)))
            self.sampler = tud.WeightedRandomSampler(weights, draws, replacement)
            self.weighted = [i for i, w in enumerate(weights) if w]
        elif kind == "list":
            self.sampler = [rng.randrange(over) for _ in range(rng.randint(0, 30))] if over else []
            if rng.random() < 0.3:
                self.sampler = range(0, over, 2)
        elif kind == "batch":
            self.refusals += ("draws in Python",)
            self.sampler = tud.BatchSampler(tud.SequentialSampler(source), 3, False)
        else:
            if over == 0:
                over, source = 1, range(1)
                self.refusals += ("and the dataset has",) if n == 0 else ()
            self.replicas = rng.randint(1, 4)
            shuffled, last, seed = rng.random() < 0.5, rng.random() < 0.4, rng.randrange(3)
            self.kind = "permutation" if shuffled else "order"
            if last and shuffled and over % self.replicas and not self.options.get("drop_last"):
                self.refusals += ("leaves out",)
            self.over = over
            self.sampler = [tud.DistributedSampler(source, self.replicas, r, shuffled, seed, last) for r in range(self.replicas)]

    def torchs(self, sampler):
        loader = tud.DataLoader(self.theirs, sampler=sampler, collate_fn=list, **self.options)
        return [[int(i) for i in batch] for batch in loader]


def modelled(options, arrays, records, epoch=0):
    """Return the feeding process's answer to options: the batches of an epoch, and which of their records count."""
    sequence = ordered(options["sampler"], arrays, records, options["seed"], epoch)
    size, world, rank = options["batch_size"], options["world_size"], options["rank"]
    n, out = len(sequence), []
    whole, rest = divmod(n, size * world)
    for step in range(whole + (rest > 0 and not options["drop_last"])):
        count = size if step < whole else -(-rest // world)
        places = [step * size * world + rank * count + i for i in range(count)]
        out.append(([sequence[p % n] for p in places], [p < n for p in places]))
    return out


def ordered(sampler, arrays, n, seed, epoch):
    kind = sampler["kind"]
    if kind == "sequential":
        return list(range(n))
    if kind == "shuffle":
        return penstock.order.shuffle(n, seed, epoch)[:].tolist()
    if kind == "weighted":
        weights = arrays[sampler["weights"]["at"]]
        assert len(weights) == n, (len(weights), n)
        return [("draw", int(i)) for i in np.flatnonzero(weights)][:1] * sampler["num_samples"]
    assert kind == "subset", sampler
    ranges = sampler.get("ranges")
    named = arrays[sampler["indices"]["at"]].tolist() if ranges is None else [i for a, b in ranges for i in range(a, b)]
    if any(not 0 <= i < n for i in named):
        raise penstock.Error("is out of range: of feed")
    inner = ordered(sampler["inner"], arrays, len(named), seed, epoch) if "inner" in sampler else range(len(named))
    return [("draw", named[i[1]]) if isinstance(i, tuple) else named[i] for i in inner]


class Kept:
    """The arrays that would go to the feeding process."""

    def __init__(self):
        self.values = []

    def add(self, values):
        self.values.append(values)
        return {"at": len(self.values) - 1, "count": values.size}


class Loaders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="penstock-peers-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.datasets = []
        with mock.patch.dict(os.environ, {"PENSTOCK_PREPROCESS": data.preprocess()}):
            for n in SIZES:
                path = os.path.join(cls.folder, str(n))
                with penstock.Writer(path) as w:
                    for i in range(n):
                        w.append({"x": i})
                cls.datasets.append(penstock.open(path))

    def asked(self, program, sampler):
        """Return the batches that penstock asks the feeding process for, without a process."""
        arrays = Kept()
        with mock.patch.object(dataloader, "FeedLoader", mock.Mock(side_effect=Asked)) as feed, self.assertRaises(Asked):
            penstock.DataLoader(program.ours, sampler=sampler, output="numpy", **program.options)
        (request,) = feed.call_args.args
        options = {**request.options, "sampler": request.order.to_json(arrays)}
        return modelled(json.loads(json.dumps(options)), arrays.values, program.n)

    def run_program(self, rng, batches, ranks=False):
        program = Program(rng, self.datasets, ranks)
        try:
            want = [program.torchs(s) for s in program.sampler] if ranks else program.torchs(program.sampler)
        except Exception as e:
            want = e
        try:
            got = [batches(program, s) for s in program.sampler] if ranks else batches(program, program.sampler)
        except (penstock.Error, ValueError, IndexError, TypeError) as e:
            for why in program.refusals:
                if why in str(e):
                    return None
            if isinstance(want, ValueError) and "num_samples" in str(want):
                return None
            if want == [] and "drop_last leaves no batch" in str(e):
                return None
            raise
        if isinstance(want, Exception):
            if "num_samples" in str(want) and not got:
                return None  # torch shuffles no records with an error, and penstock yields none
            self.fail(f"torch raises {want!r}, and penstock yields {got}")
        return program, want, got

    def compare(self, rng, batches):
        found = self.run_program(rng, batches)
        if found is None:
            return
        program, want, got = found
        records = [r for r, mask in got]
        self.assertTrue(all(all(mask) for _, mask in got))
        self.assertEqual([len(b) for b in records], [len(b) for b in want])
        flat, wanted = [r for b in records for r in b], [r for b in want for r in b]
        if program.kind == "order":
            self.assertEqual(records, want)
        elif program.kind == "permutation" and not program.options.get("drop_last"):
            self.assertEqual(sorted(flat), sorted(wanted))
        elif program.kind == "permutation":
            source = program.sampler if program.sampler is not None else range(len(program.theirs))
            there = collections.Counter(program.theirs[i] for i in source)
            self.assertFalse(collections.Counter(flat) - there)
        else:
            there = {program.theirs[i] for i in program.weighted}
            self.assertLessEqual({r[1] if isinstance(r, tuple) else r for r in flat}, there)

    @cases(2000)
    def test_programs(self, rng: random.Random) -> None:
        self.compare(rng, self.asked)

    @cases(1000)
    def test_ranks(self, rng: random.Random) -> None:
        found = self.run_program(rng, self.asked, ranks=True)
        if found is None:
            return
        program, want, got = found
        self.assertEqual([[len(r) for r, _ in rank] for rank in got], [[len(b) for b in rank] for rank in want])
        steps = [sorted(r for rank in got for r in rank[step][0]) for step in range(len(got[0]))]
        if program.kind == "order":
            self.assertEqual(steps, [sorted(r for rank in want for r in rank[step]) for step in range(len(want[0]))])
        else:
            there = collections.Counter(program.theirs[i] for i in range(program.over))
            counted = collections.Counter(r for rank in got for batch, mask in rank for r, m in zip(batch, mask) if m)
            self.assertFalse(counted - there)
            if not program.options.get("drop_last"):
                self.assertEqual(counted, there)

    @cases(40)
    def test_with_a_process(self, rng: random.Random) -> None:
        """The same with batches that are loaded, and a state that is taken and loaded on the way."""

        def loaded(program, sampler):
            def make():
                return penstock.DataLoader(
                    program.ours, sampler=sampler, output="numpy", command=data.feed(), num_workers=rng.randint(1, 2), seed=seed, **program.options
                )

            seed = rng.randrange(1 << 40)
            first = np.cumsum([0, *(leaf.n for leaf in program.leaves)]).tolist()
            with make() as dl:
                out, states = [], [dl.state_dict()]
                for batch in dl:
                    at = np.searchsorted(first, batch.indices, "right") - 1
                    self.assertEqual(batch["x"].tolist(), (batch.indices - np.array(first)[at]).tolist())
                    out.append((batch.indices.tolist(), batch.mask.tolist()))
                    states.append(json.loads(json.dumps(dl.state_dict())))
                self.assertEqual(len(dl), len(out))
            k = rng.randrange(len(states))
            with make() as dl:
                dl.load_state_dict(states[k])
                self.assertEqual([(b.indices.tolist(), b.mask.tolist()) for b in dl], out[k:])
            return out

        self.compare(rng, loaded)
