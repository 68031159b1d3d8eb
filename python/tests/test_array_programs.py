"""Random programs over arrays in files, against NumPy: windows, partitions, assembled results, transforms and rechunking.

PENSTOCK_ARRAY_PROGRAMS is how many of each there are, and PENSTOCK_TEST_SEED the first of their seeds.
"""

import itertools
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest
import zlib

import numpy as np

import penstock
from penstock import samplers
from penstock import transforms as T

from . import data

setUpModule = data.name_programs

try:
    import h5py
except ImportError:
    h5py = None

PROGRAMS = int(os.environ.get("PENSTOCK_ARRAY_PROGRAMS", "6"))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", "0"))
PER_FILE = 25  # programs that share a file
DTYPES = ["|u1", "<i2", "<u2", "<i4", "<i8", "<f2", "<f4", "<f8"]
NAMES = ("t", "y", "x")


def values_of(r, shape, dtype):
    rng = np.random.default_rng(r.randrange(1 << 30))
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def write_zarr2(r, path, arrays):
    """Write arrays as Zarr 2: in chunks of zlib or plain, some of which are missing where they are zeros, in any byte order."""
    os.makedirs(path)
    with open(os.path.join(path, ".zgroup"), "w") as f:
        json.dump({"zarr_format": 2}, f)
    for name, values in arrays.items():
        folder = os.path.join(path, name)
        os.makedirs(folder)
        chunks = [r.randrange(1, n + 2) for n in values.shape]
        dtype = values.dtype.newbyteorder(">") if r.random() < 0.2 else values.dtype
        compressor = r.choice([None, {"id": "zlib", "level": 1}])
        order, separator = r.choice(["C", "C", "F"]), r.choice([".", "/"])
        meta = {
            "zarr_format": 2, "shape": values.shape, "chunks": chunks, "dtype": dtype.str, "compressor": compressor, "filters": None,
            "fill_value": 0, "order": order, "dimension_separator": separator,
        }  # fmt: skip
        for file, value in ((".zarray", meta), (".zattrs", {"_ARRAY_DIMENSIONS": NAMES[: values.ndim]})):
            with open(os.path.join(folder, file), "w") as f:
                json.dump(value, f)
        for at in itertools.product(*(range(-(-n // c)) for n, c in zip(values.shape, chunks))):
            part = values[tuple(slice(k * c, (k + 1) * c) for k, c in zip(at, chunks))]
            if r.random() < 0.1:
                part[...] = 0  # and is not stored
                continue
            chunk = np.zeros(chunks, dtype)
            chunk[tuple(slice(n) for n in part.shape)] = part
            file = os.path.join(folder, separator.join(map(str, at)))
            os.makedirs(os.path.dirname(file), exist_ok=True)
            content = chunk.tobytes(order)
            with open(file, "wb") as f:
                f.write(zlib.compress(content, 1) if compressor else content)


def write_hdf5(r, path, arrays):
    """Write arrays as HDF5: contiguous, or in chunks with filters, in any byte order."""
    with h5py.File(path, "w") as f:
        for axis, length in zip(NAMES, next(iter(arrays.values())).shape):
            f[axis] = np.arange(length)
            f[axis].make_scale(axis)
        for name, values in arrays.items():
            options = {}
            if r.random() < 0.8:
                options = {"chunks": tuple(r.randrange(1, n + 1) for n in values.shape), "compression": r.choice([None, "gzip"])}
                options.update(shuffle=r.random() < 0.5, fletcher32=r.random() < 0.3)
            dtype = values.dtype.newbyteorder(">") if options and r.random() < 0.2 else values.dtype
            d = f.create_dataset(name, data=values.astype(dtype), **options)
            for axis, label in zip(d.dims, NAMES):
                axis.attach_scale(f[label])


def write_flat(path, arrays):
    fields = [penstock.Field(name, v.dtype.name, v.shape[1:], dims=NAMES[: v.ndim]) for name, v in arrays.items()]
    with penstock.Writer(path, fields, shard_size="2KiB") as w:
        w.extend(dict(zip(arrays, row)) for row in zip(*arrays.values()))


class File:
    """A file with arrays: a(t, y, x), b(t, y) and the group g(t)."""

    def __init__(self, r, folder):
        shape = [r.randrange(6, 24), r.randrange(3, 12), r.randrange(2, 10)]
        self.arrays = {
            "a": values_of(r, shape, r.choice(DTYPES)),
            "b": values_of(r, shape[:2], r.choice(DTYPES)),
            "g": np.sort(np.random.default_rng(r.randrange(1 << 30)).integers(0, 3, shape[0])).astype("<i8"),
        }
        self.form = r.choice(["flat", "npy", "zarr2"] + ["hdf5"] * 2 * (h5py is not None))
        self.path = os.path.join(folder, {"npy": "a.npy", "hdf5": "f.h5", "zarr2": "f.zarr", "flat": "f"}[self.form])
        if self.form == "npy":
            self.arrays = {"a": self.arrays["a"]}
            np.save(self.path, self.arrays["a"])
        elif self.form == "zarr2":
            write_zarr2(r, self.path, self.arrays)
        elif self.form == "hdf5":
            write_hdf5(r, self.path, self.arrays)
        else:
            write_flat(self.path, self.arrays)
        self.names = ["0", "1", "2"] if self.form == "npy" else list(NAMES)


class Model:
    """Windows in the plainest form: a list of origins, and one index list for each axis."""

    def __init__(self, file, axes, by, outputs, runs):
        self.file, self.axes, self.by, self.outputs = file, axes, by, outputs
        self.runs = runs  # of the first axis
        shape = file.arrays["a"].shape
        order = []  # as fields have them
        for out in outputs.values():
            order += [k for k in range(file.arrays[out["of"]].ndim) if k in axes and k not in order]
        self.order = order
        lists = []
        for k in order:
            reach = [self.reach(out, k) for out in outputs.values() if k < file.arrays[out["of"]].ndim]
            least, most = min(a for a, _ in reach), max(b for _, b in reach)
            found = []
            for lo, hi in self.runs if k == 0 and runs else [(0, shape[k])]:
                first, end = (lo, hi) if by["pad"].get(k) else (lo + max(0, -least), hi - max(0, most))
                found += range(first + by["offset"].get(k, 0), end, by["stride"].get(k, 1))
            lists.append(found)
        self.origins = list(itertools.product(*lists))

    def reach(self, out, k):
        lead = out.get("lead", {}).get(k, 0)
        return lead, lead + (self.size(out, k) - 1) * self.dilation(out, k)

    def size(self, out, k):
        return out.get("sizes", {}).get(k, self.by["sizes"][k])

    def dilation(self, out, k):
        return out.get("dilation", {}).get(k, self.by["dilation"].get(k, 1))

    def window(self, name, record):
        out, origin = self.outputs[name], self.origins[record]
        a = self.file.arrays[out["of"]]
        index, missing = [], []
        for k in range(a.ndim):
            n = a.shape[k]
            if k not in self.axes:
                index.append(np.arange(n))
                missing.append(np.zeros(n, bool))
                continue
            at = origin[self.order.index(k)]
            lo, hi = next((lo, hi) for lo, hi in self.runs if lo <= at < hi) if k == 0 and self.runs else (0, n)
            i = at + out.get("lead", {}).get(k, 0) + np.arange(self.size(out, k)) * self.dilation(out, k)
            outside, pad = (i < lo) | (i >= hi), self.by["pad"].get(k)
            if pad == "wrap":
                i = lo + (i - lo) % (hi - lo)
            elif pad == "edge":
                i = np.clip(i, lo, hi - 1)
            elif pad == "reflect":
                i = np.pad(np.arange(lo, hi), 200, mode="reflect" if hi - lo > 1 else "edge")[i - lo + 200]
            missing.append(outside if pad == "constant" else np.zeros(len(i), bool))
            index.append(np.clip(i, 0, n - 1))
        found = a[np.ix_(*index)].copy()
        for k in range(a.ndim):
            found[(*[slice(None)] * k, missing[k])] = self.by["fill"]
        return found


def program(r, file):
    """Draw windows: axes, their options, the fields, and the runs of the first axis."""
    axes = sorted({0, *(k for k in (1, 2) if r.random() < 0.6)}) if r.random() < 0.9 else [1]
    shape = file.arrays["a"].shape
    some = lambda p, draw: {k: draw(k) for k in axes if r.random() < p}  # noqa: E731
    by = {
        "sizes": {k: r.randrange(1, max(2, shape[k] // 2)) for k in axes},
        "stride": some(0.6, lambda k: r.randrange(1, 5)),
        "dilation": some(0.3, lambda k: r.randrange(1, 4)),
        "offset": some(0.2, lambda k: r.randrange(3)),
        "pad": some(0.3, lambda k: r.choice(["constant", "edge", "reflect", "wrap"])),
        "fill": 0,
    }
    if "constant" in by["pad"].values():
        by["fill"] = r.choice([0, 7])
    outputs = {"p": {"of": "a"}}
    if "b" in file.arrays and (0 in axes or 1 in axes) and r.random() < 0.5:
        outputs["q"] = {"of": "b"}
    if r.random() < 0.5:
        own = {"sizes": some(0.5, lambda k: r.randrange(1, 3)), "lead": some(0.7, lambda k: r.randrange(-3, 5)), "dilation": some(0.2, lambda k: 2)}
        outputs["f"] = {"of": "a", **own}
    runs, options = [], {}
    if 0 in axes and "g" in file.arrays and r.random() < 0.3:
        g = file.arrays["g"]
        cuts = [0, *(np.flatnonzero(g[1:] != g[:-1]) + 1).tolist(), len(g)]
        runs, options = list(zip(cuts, cuts[1:])), {"group": g if file.form == "zarr2" else r.choice(["g", g])}
    elif 0 in axes and r.random() < 0.3:
        cut = r.randrange(1, shape[0])
        runs = [(0, cut), (cut, shape[0])] if r.random() < 0.5 else [(cut - 1, shape[0])]
        options = {"ranges": runs}
    return axes, by, outputs, runs, options


def opened(file, by, outputs, options):
    """Return a view of the windows of a program."""
    named = lambda found: {file.names[k]: v for k, v in found.items()}  # noqa: E731
    each = {name: {key: v if key == "of" else named(v) for key, v in out.items()} for name, out in outputs.items()}
    fill = {"fill": by["fill"]} if "constant" in by["pad"].values() else {}
    given = {key: named(by[key]) for key in ("stride", "dilation", "offset", "pad") if by[key]}
    return penstock.open(file.path).windows(named(by["sizes"]), **given, **fill, outputs=each, **options)


class ArrayProgramsTest(unittest.TestCase):
    def folder(self):
        """Return a folder for the files of a test."""
        base = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, base, ignore_errors=True)
        return base

    def files(self, programs):
        """Yield seeds, their random numbers, and a file that some of them share."""
        for first in range(SEED, SEED + programs, PER_FILE):
            base = tempfile.mkdtemp()
            try:
                for seed in range(first, min(first + PER_FILE, SEED + programs)):
                    r = random.Random(seed)
                    if (seed - first) % 5 == 0:
                        shutil.rmtree(base)
                        os.makedirs(base)
                        file = File(r, base)
                    yield r, file, {"seed": seed, "form": file.form, "shape": file.arrays["a"].shape}
            finally:
                shutil.rmtree(base)

    def test_windows(self):
        """Windows over files of all formats, in orders of all kinds, in several ranks, and resumed."""
        found = 0
        for r, file, named in self.files(PROGRAMS):
            with self.subTest(**named):
                axes, by, outputs, runs, options = program(r, file)
                model = Model(file, axes, by, outputs, runs)
                if not model.origins:
                    with self.assertRaisesRegex(penstock.Error, "no window fits"):
                        opened(file, by, outputs, options)
                    continue
                with opened(file, by, outputs, options) as view:
                    found += 1
                    self.assertEqual(view.origins(range(len(view))).tolist(), [list(o) for o in model.origins])
                    self.check_orders(r, view, model)
        self.assertGreater(found, PROGRAMS // 3)

    def check_orders(self, r, view, model):
        n, world = len(view), r.choice([1, 1, 2, 3])
        kind = r.choice(["sequential", "shuffle", "chunks"])
        o = {"batch_size": r.randrange(1, 12), "num_workers": r.choice([0, 1, 2]), "seed": r.randrange(99), "output": "numpy"}
        o.update({"sampler": samplers.ChunkShuffle("1MiB", lanes=r.choice([None, 2]))} if kind == "chunks" else {"shuffle": kind == "shuffle"})
        seen, stop = [], r.random() < 0.5
        ranks = [{**o, "rank": rank, "world_size": min(world, n)} for rank in range(min(world, n))]
        try:
            for options in ranks:
                with penstock.DataLoader(view, **options) as loader:
                    batches = list(self.batches(loader, model))
                    seen += [i for b in batches for i in b]
                    if stop and batches:
                        self.check_resumed(r, view, model, batches, options)
        except penstock.Error as e:
            if kind != "chunks" or "no field of the windows is stored in chunks" not in str(e):
                raise
            return
        self.assertEqual(set(seen), set(range(n)))

    def batches(self, loader, model):
        """Yield the records of batches, each of which is compared with the model."""
        for batch in loader:
            for name in model.outputs:
                want = np.stack([model.window(name, i) for i in batch.indices.tolist()])
                self.assertEqual(batch[name].dtype, want.dtype)
                np.testing.assert_array_equal(batch[name], want)
            yield batch.indices.tolist()

    def check_resumed(self, r, view, model, batches, options):
        step = r.randrange(len(batches))
        with penstock.DataLoader(view, **options) as loader:
            for _ in zip(range(step), loader):
                pass
            state = json.loads(json.dumps(loader.state_dict()))
        with penstock.DataLoader(view, **options) as loader:
            loader.load_state_dict(state)
            self.assertEqual(list(self.batches(loader, model)), batches[step:])

    def test_partitions(self):
        """Parts share no element, and have all windows that are in their ranges."""
        for r, file, named in self.files(PROGRAMS):
            with self.subTest(**named):
                axes, by, outputs, _, _ = program(r, file)
                by["pad"], by["offset"], by["fill"] = {}, {}, 0
                model = Model(file, axes, by, outputs, [])
                if not model.origins or axes[0] != 0:
                    continue
                n = file.arrays["a"].shape[0]
                how = r.choice([{}, {"gap": r.randrange(4)}, {"block": r.randrange(1, 9), "seed": r.randrange(99)}, {"block": 3, "gap": 1}])
                shares = r.choice([{"a": 0.5, "b": 0.5}, {"a": 0.6, "b": 0.2}, {"a": 0.2, "b": 0.3, "c": 0.5}])
                with opened(file, by, outputs, {}) as view:
                    try:
                        parts = view.partition(shares, **how)
                    except penstock.Error as e:
                        self.assertRegex(str(e), "no window fits")
                        continue
                    elements = []
                    for part in parts.values():
                        ranges = part.to_json(str)["by"]["within"]
                        want = Model(file, axes, by, outputs, [tuple(x) for x in ranges])
                        self.assertEqual(part.origins(range(len(part))).tolist(), [list(o) for o in want.origins])
                        inside = {i for a, b in ranges for i in range(a, b)}
                        steps = {
                            step
                            for out in outputs.values()
                            for step in range(want.reach(out, 0)[0], want.reach(out, 0)[1] + 1, want.dilation(out, 0))
                        }
                        used = {o[0] + step for o in want.origins for step in steps}
                        self.assertLessEqual(used, inside)
                        elements.append(inside)
                    self.assertEqual(sum(map(len, elements)), len(set().union(*elements)))
                    self.assertLessEqual(max(max(e) for e in elements), n - 1)

    def test_assembled(self):
        """Results are the weighted mean of NumPy's add.at."""
        for r, file, named in self.files(PROGRAMS):
            with self.subTest(**named):
                axes, by, outputs, runs, options = program(r, file)
                model = Model(file, axes, by, outputs, runs)
                if not model.origins:
                    continue
                with opened(file, by, outputs, options) as view:
                    name = r.choice(list(outputs))
                    a = file.arrays[outputs[name]["of"]]
                    shape = view.fields[name].shape
                    rng = np.random.default_rng(r.randrange(99))
                    extra = r.choice([(), (2,)])
                    results = rng.normal(size=(len(view), *shape, *extra))
                    weights = r.choice([None, rng.random(shape), {file.names[k]: rng.random(shape[k]) for k in axes if k < a.ndim}])
                    weight = np.ones(shape)
                    if isinstance(weights, dict):
                        for k in axes:
                            if k < a.ndim:
                                weight = weight * weights[file.names[k]].reshape([-1 if i == k else 1 for i in range(a.ndim)])
                    elif weights is not None:
                        weight = weights
                    numbers = Numbered(file, outputs[name]["of"])
                    places = Model(numbers, axes, {**by, "fill": -1}, {name: {**outputs[name]}}, runs)
                    places.origins, places.order = model.origins, model.order
                    total, seen = np.zeros((a.size, *extra)), np.zeros(a.size)
                    for i in range(len(view)):
                        at = places.window(name, i)
                        ok = at >= 0
                        np.add.at(total, at[ok], results[i][ok] * weight[ok].reshape(-1, *[1] * len(extra)))
                        np.add.at(seen, at[ok], weight[ok])
                    made = view.assemble(name, weights=weights, fill=r.choice([np.nan, -5.0]))
                    order = rng.permutation(len(view))
                    for part in np.array_split(order, r.randrange(1, 4)):
                        made.add(part, results[part])
                    with np.errstate(all="ignore"):
                        want = np.where((seen > 0).reshape(-1, *[1] * len(extra)), total / seen.reshape(-1, *[1] * len(extra)), made._fill)
                    self.assertEqual(made.missing, int((seen == 0).sum()))
                    np.testing.assert_allclose(made.numpy(np.float64), want.reshape(*a.shape, *extra), rtol=1e-9, atol=1e-12)

    def test_transforms(self):
        """Pipelines of array transforms that are not random, of all types of numbers."""
        base = self.folder()
        for seed in range(SEED, SEED + PROGRAMS):
            r = random.Random(seed)
            shape = (5, *(r.randrange(1, 6) for _ in range(r.randrange(4))))
            values = values_of(r, shape, r.choice(DTYPES))
            if values.dtype.kind == "f" and r.random() < 0.5:
                values[np.random.default_rng(seed).random(shape) < 0.2] = np.nan
            path = os.path.join(base, f"{seed}.npy")
            np.save(path, values)
            steps, want = pipeline(r, values)
            with self.subTest(seed=seed, shape=shape, dtype=values.dtype, steps=steps):
                with penstock.DataLoader(path, 3, transforms={str(seed): steps}, output="numpy") as loader:
                    got = np.concatenate([b[str(seed)].copy() for b in loader])
                self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                if want.dtype.kind == "f":
                    eps = float(np.finfo(want.dtype).eps)
                    np.testing.assert_allclose(got, want, rtol=4 * eps, atol=4 * eps)
                else:
                    np.testing.assert_array_equal(got, want)
            os.remove(path)

    def test_rechunked(self):
        """Arrays in other chunks have the same values, also after a run that was killed."""
        for r, file, named in self.files(max(2, PROGRAMS // 3)):
            with self.subTest(**named):
                dest = file.path + ".out.zarr"
                shape = file.arrays["a"].shape
                chunks = {file.names[k]: r.randrange(1, shape[k] + 2) for k in range(3) if r.random() < 0.7 or k == 0}
                names = r.choice([None, ["a"]])
                options = {"memory": r.choice(["64KiB", "1MiB"]), "workers": r.randrange(1, 4), "fields": names}
                if r.random() < 0.3:
                    self.kill(file.path, dest, chunks, options)
                    options["resume"] = True
                try:
                    made = penstock.rechunk(file.path, dest, chunks, **options)
                except penstock.Error as e:
                    self.assertRegex(str(e), "is too little")
                    continue
                self.assertTrue(any(a["name"] == "a" for a in made["arrays"]))
                with open(os.path.join(dest, "a", "zarr.json")) as f:
                    grid = json.load(f)["chunk_grid"]["configuration"]["chunk_shape"]
                self.assertEqual(grid, [min(chunks.get(file.names[k], n), n) for k, n in enumerate(shape)])
                with penstock.DataLoader(dest, 7, output="numpy") as loader:
                    got = np.concatenate([b["a"].copy() for b in loader])
                np.testing.assert_array_equal(got, file.arrays["a"])
                shutil.rmtree(dest)

    def kill(self, source, dest, chunks, options):
        """Start a run, and kill it soon."""
        sizes = ",".join(f"{k}={n}" for k, n in chunks.items())
        given = [f"--memory={options['memory']}", f"--workers={options['workers']}", *(["--fields=a"] if options["fields"] else [])]
        command = [data.preprocess(), source, dest, f"--rechunk={sizes}", *given]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            try:
                run.wait(random.random() * 0.1)
            except subprocess.TimeoutExpired:
                run.kill()
        if os.path.exists(dest):  # it was complete
            shutil.rmtree(dest)


class Numbered:
    """A file whose array has the number of each element."""

    def __init__(self, file, of):
        self.arrays = {"a": file.arrays["a"], of: np.arange(file.arrays[of].size).reshape(file.arrays[of].shape)}


def pipeline(r, values):
    """Draw array transforms, and return them with NumPy's results: in float64, and rounded after each."""
    x, dtype, steps = values.astype("f8"), values.dtype, []
    for _ in range(r.randrange(1, 6)):
        kinds = ["crop", "clip", "cast"]
        if dtype.kind == "f":
            kinds += ["standardize", "standardize", "scale", "fill", "log"]
        kind, rank = r.choice(kinds), x.ndim - 1
        if kind == "standardize":
            form = [r.choice([1, n]) for n in x.shape[1:]][r.randrange(rank + 1) :]
            mean, std = np.random.default_rng(r.randrange(99)).random((2, *form))
            steps.append(T.Standardize(mean, std + 0.5))
            x = (x - mean) / (std + 0.5)
        elif kind == "scale":
            steps.append(T.Scale(0.25, -3))
            x = x * 0.25 - 3
        elif kind == "clip":
            steps.append(T.Clip(2, 8) if r.random() < 0.5 else T.Clip(max=5))
            x = np.clip(x, 2, 8) if steps[-1].min else np.minimum(x, 5)
        elif kind == "fill":
            steps.append(T.FillNaN(2))
            x = np.where(np.isnan(x), 2, x)
        elif kind == "log":
            steps.append(T.Log(0.5))
            with np.errstate(all="ignore"):
                x = np.log(x + 0.5)
        elif kind == "cast":
            to = r.choice(["float32", "float64", "float16", "int16"])
            if to == "int16" and dtype.kind == "f":
                steps += [T.FillNaN(0), T.Clip(-100, 100)]
                x = np.clip(np.where(np.isnan(x), 0, x), -100, 100)
            steps.append(T.Cast(to))
            dtype = np.dtype(to)
        elif rank:
            axis = r.randrange(rank)
            size = r.randrange(1, x.shape[axis + 1] + 1)
            steps.append(T.CenterSpatialCrop((size,), (axis - r.choice([0, rank]),)))
            first = (x.shape[axis + 1] - size) // 2
            x = x[(slice(None),) * (axis + 1) + (slice(first, first + size),)]
        with np.errstate(over="ignore"):
            x = x.astype(dtype).astype("f8")
    if dtype.kind == "f" and r.random() < 0.2:
        return [*steps, T.IsFinite()], np.isfinite(x)
    with np.errstate(over="ignore"):
        return steps, x.astype(dtype)


if __name__ == "__main__":
    unittest.main()
