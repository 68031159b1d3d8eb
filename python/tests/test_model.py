"""Random programs with penstock, compared with the model in plain Python: see tests.model.

PENSTOCK_MODEL=FIRST:COUNT runs the programs of other numbers: a failure names the number that reproduces it.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import penstock
from penstock import samplers
from penstock import transforms as t

from . import data

try:
    from .model import order, program, views

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"


def setUpModule():
    data.name_programs()


def sampler_of(s, world=1):
    """Return the sampler of penstock that a sampler of the model is."""
    inner = None if s.get("inner") is None else sampler_of(s["inner"])
    return {
        "sequential": lambda: samplers.Sequential(),
        "shuffle": lambda: samplers.Shuffle(),
        "block": lambda: samplers.Block(s["size"]),
        "subset": lambda: samplers.Subset(s.get("indices"), s.get("ranges"), inner),
        "split": lambda: samplers.Split(s["start"], s["stop"], s["seed"], inner),
        "weighted": lambda: samplers.Weighted(s["weights"], s["num_samples"], not s["once"]),
        "regions": lambda: samplers.Regions(s["count"], inner),
        "mix": lambda: samplers.Mix(
            s["schedule"], s["num_samples"], interpolate=s["interpolate"], temperature=s["temperature"], per_batch=s["per_batch"], ends=s["ends"]
        ),
        "bucket": lambda: samplers.Bucket(s["bounds"] or s["buckets"], s["field"], s["budget"] and s["budget"] / world, s["multiple"]),
    }[s["kind"]]()


def transforms_of(steps):
    made = []
    for s in steps:
        made.append(
            {
                "CenterCrop": lambda s=s: t.CenterCrop(s["size"]),
                "Pad": lambda s=s: t.Pad(s["padding"], s["fill"], s["mode"]),
                "HorizontalFlip": lambda: t.RandomHorizontalFlip(1.0),
                "VerticalFlip": lambda: t.RandomVerticalFlip(1.0),
                "Invert": lambda: t.RandomInvert(1.0),
                "Posterize": lambda s=s: t.RandomPosterize(s["argument"], 1.0),
                "Solarize": lambda s=s: t.RandomSolarize(s["argument"], 1.0),
                "Equalize": lambda: t.RandomEqualize(1.0),
                "Autocontrast": lambda: t.RandomAutocontrast(1.0),
                "Grayscale": lambda s=s: t.Grayscale(s["channels"]),
                "ToTensor": lambda: t.ToTensor(),
                "Normalize": lambda s=s: t.Normalize(s["mean"], s["std"]),
            }[s["name"]]()
        )
    return t.Compose(made)


class Own:
    """A dataset of a user's own class: a dict a record."""

    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return views.size(self.columns)

    def __getitem__(self, i):
        return {name: c.values[i] for name, c in self.columns.items()}


class Run:
    """A program, run with penstock."""

    def __init__(self, p, folder):
        self.program, self.folder, self.close = p, folder, []
        self.dataset = self._dataset()

    def _dataset(self):
        p = self.program
        if p.source == "memory":
            return {name: np.stack(c.values) for name, c in p.columns.items()}
        if p.source == "own":
            return Own(p.columns)
        if p.container == "raw":
            return p.path
        made = os.path.join(self.folder, "made" + {"flat": "", "hdf5": ".h5", "zarr": ".zarr"}[p.container])
        subprocess.run([data.preprocess(), p.path, made, "--quiet"], check=True, capture_output=True)
        if not p.views:
            return made
        found = penstock.open(made)
        self.close.append(found)
        for step in p.views:
            found = self._view(found, step)
        return found

    @staticmethod
    def _view(ds, step):
        kind = step["kind"]
        if kind == "slice":
            return ds.select(slice(*step["slice"]))
        if kind == "numbers":
            return ds.select(step["numbers"])
        if kind == "mask":
            return ds.select(np.array(step["mask"]))
        if kind == "fields":
            return ds.select(fields=step["fields"])
        if kind == "rename":
            return ds.select(rename=step["rename"])
        if kind == "filter":
            return ds.filter(views.written(step["where"]))
        if kind == "concat":
            fill = step.get("fill")
            fields = [name for name in ds.fields if name not in fill] if fill else None
            return ds.concat(ds.select(slice(*step["slice"]), fields=fields), fill=fill)
        return ds.derive(derived=views.expression(step))

    def loader(self, rank, world, workers):
        p = self.program
        options = {"sampler": sampler_of(p.sampler, world), "seed": p.seed, "drop_last": p.drop_last, "num_workers": workers, "output": "numpy"}
        if world > 1 or p.container != "python":
            options |= {"rank": rank, "world_size": world}
        if p.container != "python":
            options |= {"batch_type": dict, "prepare": "off" if p.container == "raw" else "auto"}
            if p.transforms:
                options["transforms"] = transforms_of(p.transforms)
            if p.where:
                options["filters"] = views.written(p.where)
        return penstock.DataLoader([self.dataset] * p.parts if p.parts > 1 else self.dataset, p.batch * p.world // world, **options)

    def batches(self, loader, count=None):
        found = []
        iterator = iter(loader)
        while count is None or len(found) < count:
            b = next(iterator, None)
            if b is None:
                break
            found.append(self._plain(b))
        return found

    def _plain(self, b):
        """Return a batch as plain values, with its records and mask where it has them."""
        own = self.program.container == "python"
        return program.Step(None if own else b.indices.tolist(), None if own else b.mask.tolist(), plain(b))


def difference(got, want):
    """Return how batches differ from those of the model, or None."""
    if len(got) != len(want):
        return f"{len(got)} batches, not {len(want)}"
    for i, (g, w) in enumerate(zip(got, want)):
        if g.records is not None and (g.records != w.records or g.mask != w.mask):
            return f"batch {i}: records {g.records} {g.mask}, not {w.records} {w.mask}"
        if list(g.fields) != list(w.fields):
            return f"batch {i}: fields {list(g.fields)}, not {list(w.fields)}"
        for name, a in g.fields.items():
            b = w.fields[name]
            pairs = zip(a, b) if isinstance(b, tuple) else [(a, b)]
            for x, y in pairs:
                same = x == y if isinstance(y, list) else (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())
                if not same:
                    return f"batch {i}, {name}: {x!r}, not {y!r}"
    return None


def trial(number):
    """Run a program with penstock and in the model; return how they differ, or None."""
    folder = tempfile.mkdtemp(prefix="penstock-model-")
    try:
        p = program.draw(number, folder)
        try:
            want = [program.expect(p, e, p.rank, p.world) for e in (p.epoch, p.epoch + 1)]
        except order.Refused:
            want = None
        run = Run(p, folder)
        try:
            return read(p, run) or check(p, run, want)
        finally:
            for ds in run.close:
                ds.close()
    finally:
        shutil.rmtree(folder)


def read(p, run):
    """Read records through penstock.open; return how they differ from the model's, or None."""
    if p.container in ("python", "raw"):
        return None
    columns = program.picked(p)
    n = views.size(columns)
    ds = run.dataset
    if not p.views:
        ds = penstock.open(ds)
        run.close.append(ds)
    if len(ds) != n or list(ds.fields) != list(columns):
        return f"open: {len(ds)} records of {list(ds.fields)}, not {n} of {list(columns)}"
    numbers = [(p.number * 7 + 3 * i) % n for i in range(5)]
    for key, records in ((slice(None), range(n)), (slice(1, None, 2), range(1, n, 2)), (numbers, numbers), (-1, [n - 1])):
        want = views.batch(columns, list(records))
        got = ds[key] if key != -1 else ds[-1:]
        if wrong := difference([program.Step(None, None, plain(got))], [program.Step(None, None, want)]):
            return f"open[{key}]: {wrong}"
    one = ds[numbers[0]]
    for name, c in columns.items():
        value = c.values[numbers[0]]
        same = one[name] == value if c.kind == "text" else np.asarray(one[name]).tobytes() == np.asarray(value).tobytes()
        if not same or (c.kind != "text" and one[name].dtype != c.dtype):
            return f"open[{numbers[0]}], {name}: {one[name]!r}, not {value!r}"
    return None


def plain(b):
    """Return the fields of a batch as the model has them."""
    fields = {}
    for name, v in (b.arrays if isinstance(b, penstock.Batch) else b).items():
        if isinstance(v, penstock.Ragged):
            fields[name] = [v[i] for i in range(len(v))] if v.is_text else (np.array(v.values), np.array(v.offsets))
        else:
            fields[name] = list(v) if isinstance(v, list) else np.array(v)
    return fields


def check(p, run, want):
    if want is None:
        try:
            with run.loader(p.rank, p.world, p.workers) as loader:
                run.batches(loader)
        except (penstock.Error, ValueError, IndexError) as e:
            return f"the engine fails: {e}" if "goroutine" in str(e) or "ended" in str(e) else None
        return "no error"
    with run.loader(p.rank, p.world, p.workers) as loader:
        loader.set_epoch(p.epoch)
        if p.stop is None:
            return difference(run.batches(loader), want[0]) or difference(run.batches(loader), want[1])
        first = run.batches(loader, p.stop)
        later = p.sampler
        if p.sampler.get("set") is not None:
            after, weights = p.sampler["set"]
            later = {**p.sampler, "set": (p.epoch * len(want[0]) + min(p.stop, len(want[0])) + after, weights)}
            loader.set_weights(weights, step=later["set"][0])
        state = json.loads(json.dumps(loader.state_dict())) if p.container != "python" else loader.state_dict()
    if wrong := difference(first, want[0][: p.stop]):
        return wrong
    rank, world, workers = p.again
    if p.container == "python":
        rank, world = p.rank, p.world
    with run.loader(rank, world, workers) as loader:
        loader.load_state_dict(state)
        rest = run.batches(loader)
        following = run.batches(loader)
    steps, upcoming = len(want[0]), program.expect(p, p.epoch + 1, rank, world, sampler=later)
    if p.stop > steps:  # the loop over the epoch had ended
        return difference(rest, upcoming)
    continued = program.expect(p, p.epoch, rank, world, p.stop, later)  # empty after the last batch, as in torchdata
    return difference(rest, continued) or difference(following, upcoming)


@unittest.skipIf(MISSING, MISSING)
class ModelTest(unittest.TestCase):
    def test_programs(self):
        first, count = map(int, os.environ.get("PENSTOCK_MODEL", "0:100").split(":"))
        for number in range(first, first + count):
            with self.subTest(program=number):
                wrong = trial(number)
                self.assertIsNone(wrong, f"program {number}: PENSTOCK_MODEL={number}:1 python -m unittest tests.test_model")
