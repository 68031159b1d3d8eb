"""Random HDF5 files and Zarr groups: penstock.open, DataLoader and preprocess beside h5py and zarr.

PENSTOCK_TEST_TREES is the number of files of each kind, and PENSTOCK_TEST_SEED that of the first one.
"""

import os
import random
import shutil
import subprocess
import tempfile
import unittest
import warnings

import numpy as np

import penstock

from . import data

setUpModule = data.name_programs

try:
    import h5py
except ImportError:
    h5py = None
try:
    import zarr
except ImportError:
    zarr = None

FIRST = int(os.environ.get("PENSTOCK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("PENSTOCK_TEST_TREES", "12")))

NUMBERS = ["?", "i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">i8", "<u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]


def values_of(r, shape, dtype):
    """Return an array with values of all sizes, and those at the ends."""
    g, dtype = np.random.default_rng(r.randrange(1 << 30)), np.dtype(dtype)
    if dtype.kind == "b":
        return g.random(shape) < 0.5
    if dtype.kind == "c":
        return (g.normal(size=shape) + 1j * g.normal(size=shape)).astype(dtype)
    if dtype.kind == "f":
        return np.where(g.random(shape) < 0.1, np.inf, g.normal(size=shape) * 100).astype(dtype)
    ends = np.iinfo(dtype)
    return g.integers(ends.min, ends.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)


def equal(test, got, want, *what):
    got, want = np.asarray(got), np.asarray(want)
    test.assertEqual(got.shape, want.shape, what)
    if want.dtype.kind in "biu" and got.dtype.kind in "biu":
        test.assertTrue((got.astype(object) == want.astype(object)).all(), what)
    else:
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64), str(what))


class Trees(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def of_doors(self, path, **where):
        """Yield the records by each door."""
        with penstock.open(path, **where) as ds:
            yield "open", [dict(ds[i].items()) for i in range(len(ds))]
        with penstock.DataLoader(path, 3, output="numpy", prepare="off", **where) as loader:
            records = []
            for batch in loader:
                records += [{n: v[i] for n, v in batch.items()} for i in range(int(batch.mask.sum()))]
            yield "DataLoader", records
        with penstock.open(path, **where) as ds, penstock.DataLoader(ds, 3, output="numpy") as loader:
            self.assertEqual(sum(int(b.mask.sum()) for b in loader), len(ds))
        for name in "prepared", "prepared.h5":
            dest = os.path.join(self.folder, name)
            penstock.preprocess(path, dest, overwrite=True, progress=False, **where)
            with penstock.open(dest) as ds:
                yield f"preprocess {name}", [dict(ds[i].items()) for i in range(len(ds))]

    def same(self, path, want, **where):
        for door, got in self.of_doors(path, **where):
            self.assertEqual(len(got), len(want), door)
            for i, (a, b) in enumerate(zip(got, want)):
                self.assertEqual(list(a), list(b), (door, i))
                for name in b:
                    x, y = a[name], b[name]
                    if isinstance(y, (str, bytes)):
                        x = x if isinstance(x, (str, bytes)) else np.asarray(x).tobytes()
                        self.assertEqual(x.encode() if isinstance(x, str) else x, y.encode() if isinstance(y, str) else y, (door, i, name))
                    else:
                        x, y = np.asarray(x), np.asarray(y)
                        self.assertEqual((x.shape, x.tobytes()), (y.shape, y.astype(y.dtype.newbyteorder("<")).tobytes()), (door, i, name))

    def check(self, path, want, fields=None, ordered=False):
        """Have every door show the fields of a file with their values, which ``want`` has by name, perhaps in order."""
        inorder = list if ordered else sorted
        with penstock.open(path, fields=fields) as ds:
            self.assertEqual(inorder(ds.fields), inorder(want), path)
            n = len(ds)
            order = np.random.default_rng(n).integers(0, n, 5)
            for name, a in want.items():
                what = path, name, ds.fields[name]
                numbers = penstock.bfloat16.to_float32 if ds.fields[name].dtype == "bfloat16" else np.asarray
                equal(self, numbers(ds[name][:]), a, *what)
                equal(self, numbers(ds[name].take(order)), a[order], *what)
                equal(self, numbers(ds[int(order[0])][name]), a[order[0]], *what)
                equal(self, numbers(ds[order.tolist()][name]), a[order], *what)
                equal(self, numbers(ds[1:n:2][name]), a[1:n:2], *what)
                box = tuple(slice(k // 3, k // 3 + max(1, k // 2)) for k in a.shape)
                equal(self, numbers(ds[name].region(box)), a[box], *what)
            dtypes = {name: f.dtype for name, f in ds.fields.items()}
        with penstock.DataLoader(path, 3, fields=fields, output="numpy") as loader:
            batches = [{name: np.array(batch[name]) for name in inorder(batch.keys())} for batch in loader]
        self.assertEqual(inorder(batches[0]), inorder(want), path)
        for name, a in want.items():
            got = np.concatenate([b[name] for b in batches])
            got = penstock.bfloat16.to_float32(got) if penstock.bfloat16.is_bfloat16(got.dtype) else got
            equal(self, got, a, path, name, "DataLoader")
        dest = path + ".flat"
        penstock.preprocess(path, dest, **({} if fields is None else {"fields": fields}), progress=False)
        with penstock.open(dest) as ds:
            self.assertEqual(inorder(ds.fields), inorder(want))
            for name, values in want.items():
                self.assertEqual(ds.fields[name].dtype, dtypes[name], (path, name))
                got = ds[name][:]
                equal(self, penstock.bfloat16.to_float32(got) if dtypes[name] == "bfloat16" else got, values, path, name, "preprocess")
        shutil.rmtree(dest)


@unittest.skipIf(h5py is None, "no h5py, which writes the files")
class HDF5TreesTest(Trees):
    def test_trees(self):
        for seed in SEEDS:
            r = random.Random(seed)
            with self.subTest(seed=seed):
                path = os.path.join(self.folder, f"{seed}.h5")
                want = self.write(r, path)
                self.check(path, want, ordered=True)
                os.remove(path)

    def write(self, r, path):
        n, want = r.randrange(2, 12), {}
        with h5py.File(path, "w", libver=r.choice(["earliest", "latest"]), track_order=r.random() < 0.5) as f:
            if r.random() < 0.5:
                f.create_group("g/h", track_order=True)
            names = r.sample(["x", "y", "g/z", "g/h/label", "q"], r.randrange(1, 5))
            for name in names:
                shape = (n, *(r.randrange(1, 6) for _ in range(r.randrange(4))))
                self.dataset(r, f, name, shape)
            if r.random() < 0.3:
                f["hard"] = f[names[0]]
            if r.random() < 0.3:
                f["soft"] = h5py.SoftLink("/" + names[-1])
            if r.random() < 0.2:
                f["nowhere"] = h5py.SoftLink("/none")
            if r.random() < 0.3:
                f["scalar"] = 3.0
            if r.random() < 0.3:
                f["words"] = [b"a"] * (n + 1)
            for name in names:
                f[name].attrs["units"] = r.choice(["m", 3, [1.0, 2.0]])
        with h5py.File(path) as f:
            for name in self.names(f):
                if name in [*names, "hard", "soft"]:
                    want[name] = f[name][()]
        return want

    def names(self, group):
        """Yield the names of datasets, as h5py iterates over groups and what links lead to."""
        opened, links = group["."].id, []  # older h5py iterates over the root of an opened file by name, whatever its order
        ordered = opened.get_create_plist().get_link_creation_order()
        opened.links.iterate(links.append, idx_type=h5py.h5.INDEX_CRT_ORDER if ordered else h5py.h5.INDEX_NAME)
        for name in map(bytes.decode, links):
            if isinstance(group.get(name), h5py.Group):
                yield from (f"{name}/{inner}" for inner in self.names(group[name]))
            else:
                yield name

    def dataset(self, r, f, name, shape):
        kind = r.randrange(8)
        if kind == 0:  # bits that do not count, or begin within a byte
            dtype = r.choice(["<i2", "<u2", ">i2", "<i4", "<u4"])
            t = h5py.h5t.py_create(np.dtype(dtype)).copy()
            bits = r.randrange(3, 8 * np.dtype(dtype).itemsize)
            t.set_precision(bits)
            half = 4 * np.dtype(dtype).itemsize  # HDF5 2 makes no number that fits in a type of half its size
            t.set_offset(r.randrange(max(0, half + 1 - bits), 2 * half - bits + 1))
            low = -(1 << bits - 1) if np.dtype(dtype).kind == "i" else 0
            values = np.random.default_rng(r.randrange(1 << 30)).integers(low, low + (1 << bits), shape).astype(np.dtype(dtype).newbyteorder("="))
            self.low_level(r, f, name, t, values)
        elif kind == 1:  # bfloat16
            t = h5py.h5t.IEEE_F32LE.copy()
            t.set_fields(15, 7, 8, 0, 7)
            t.set_size(2)
            t.set_ebias(127)
            values = (np.random.default_rng(r.randrange(1 << 30)).normal(size=shape).astype("<f4").view("<u4") & 0xFFFF0000).view("<f4")
            self.low_level(r, f, name, t, values)
        elif kind == 2:
            values = values_of(r, shape, r.choice(NUMBERS))
            if values.nbytes < 60000:
                plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plist.set_layout(h5py.h5d.COMPACT)
                self.low_level(r, f, name, h5py.h5t.py_create(values.dtype, logical=True), values, plist)
        elif kind == 3:  # never written
            dtype = np.dtype(r.choice(NUMBERS[1:]))
            options = {"chunks": True} if r.random() < 0.5 else {}
            f.create_dataset(name, shape, dtype, fillvalue=r.choice([None, 0, 5]), **options)
        else:
            values, options = values_of(r, shape, r.choice(NUMBERS)), {}
            if r.random() < 0.6:
                options = {"chunks": tuple(r.randrange(1, k + 1) for k in shape), **r.choice([{}, {"compression": "gzip"}, {"compression": "lzf"}])}
                options |= r.choice([{}, {"shuffle": True}, {"fletcher32": True}, {"maxshape": (None, *shape[1:])}])
            f.create_dataset(name, data=values, **options)

    def low_level(self, r, f, name, dtype, values, plist=None):
        if "/" in name:
            f.require_group(name.rpartition("/")[0])
        made = h5py.h5d.create(f.id, name.encode(), dtype, h5py.h5s.create_simple(values.shape), plist)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))

    def test_a_soft_link_is_a_field_where_it_is_named(self):
        path = os.path.join(self.folder, "soft.h5")
        with h5py.File(path, "w") as f:
            f["g/x"] = np.arange(4)
            f["y"] = np.arange(4) * 2
            f["soft"] = h5py.SoftLink("/g/x")
        with penstock.open(path, fields=["soft", "y"]) as ds, penstock.DataLoader(path, 4, fields=["soft", "y"], output="numpy") as loader:
            self.assertEqual(list(ds.fields), ["soft", "y"])
            for batch in (ds[:], next(iter(loader))):
                self.assertEqual((batch["soft"].tolist(), batch["y"].tolist()), ([0, 1, 2, 3], [0, 2, 4, 6]))

    def test_an_odd_object_leaves_the_other_fields(self):
        path = os.path.join(self.folder, "odd.h5")
        with h5py.File(path, "w") as f:
            f["x"] = np.arange(4)
            f["refs"] = np.array([f["x"].ref] * 4, h5py.ref_dtype)
            f["type"] = np.dtype("f4")
            f["there"] = h5py.ExternalLink("none.h5", "/x")
        with penstock.open(path, fields=["x"]) as ds:
            self.assertEqual(ds["x"][:].tolist(), [0, 1, 2, 3])

    def test_what_cannot_be_read_leaves_the_other_fields(self):
        path = os.path.join(self.folder, "filter.h5")
        with h5py.File(path, "w") as f:
            f["x"], f["y"] = np.arange(8).reshape(4, 2), np.arange(4)
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((1, 3))
            plist.set_filter(40000, h5py.h5z.FLAG_OPTIONAL, (1,))
            odd = h5py.h5d.create(f.id, b"odd", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((4, 3)), plist)
            for i in range(4):
                odd.write_direct_chunk((i, 0), b"abcd", 0)
        with h5py.File(path) as f:
            self.assertRaises(OSError, lambda: f["odd"][0])
            self.check(path, {name: f[name][()] for name in ("x", "y")}, ["x", "y"])
        for door in (penstock.open, lambda p: penstock.DataLoader(p, output="numpy")):
            with door(path) as found:
                self.assertEqual(list(found.fields), ["x", "y"])
        with self.assertRaisesRegex(penstock.Error, r'odd.*filter .*40000.* fields=\["x", "y"\]'):  # it writes what it is not told to leave out
            penstock.preprocess(path, path + ".flat", progress=False)
        for read in (
            penstock.open,
            lambda p, fields: penstock.DataLoader(p, fields=fields, output="numpy"),
            lambda p, fields: penstock.preprocess(p, path + ".flat", fields=fields, progress=False),
        ):
            with self.assertRaisesRegex(penstock.Error, "odd.*filter .*40000"):
                read(path, fields=["odd", "y"])
        text = subprocess.run([data.penstock(), "inspect", path], capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, "odd .*is not read: filter .*40000")


@unittest.skipIf(zarr is None, "no zarr, which writes the groups")
class ZarrTreesTest(Trees):
    def test_trees(self):
        for seed in SEEDS:
            r = random.Random(seed)
            with self.subTest(seed=seed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                path = os.path.join(self.folder, f"{seed}.zarr")
                want = self.write(r, path)
                words = os.path.exists(os.path.join(path, "words"))
                for door in (penstock.open, penstock.DataLoader, lambda p: penstock.preprocess(p, p + ".flat", progress=False)) if words else ():
                    with self.assertRaisesRegex(penstock.Error, "words"):
                        door(path)
                self.check(path, want, sorted(want) if words else None)
                shutil.rmtree(path)

    def write(self, r, path):
        version, n, want = r.choice([2, 3]), r.randrange(2, 12), {}
        root = zarr.open_group(path, mode="w", zarr_format=version)
        for name in r.sample(["x", "y", "g/z", "g/h/label", "q"], r.randrange(1, 5)):
            shape = (n, *(r.randrange(1, 6) for _ in range(r.randrange(4))))
            dtype = np.dtype(r.choice([*NUMBERS, "<c8", "<c16"]))
            values = values_of(r, shape, dtype if version == 2 else dtype.newbyteorder("="))
            chunks = tuple(r.randrange(1, k + 1) for k in shape) if r.random() < 0.6 else (r.randrange(1, n + 1), *shape[1:])
            options = {"chunks": chunks, "fill_value": r.choice([0, 1])}
            if r.random() < 0.5:
                options["compressors"] = None
            elif version == 3 and r.random() < 0.3:
                options["shards"] = tuple(k * r.randrange(1, 3) for k in chunks)
            a = root.create_array(name, shape=shape, dtype=values.dtype, **options)
            if r.random() < 0.8:
                a[...] = values
            got = a[...]
            want[name] = np.stack([got.real, got.imag], -1) if got.dtype.kind == "c" else got
        if r.random() < 0.3:
            words = root.create_array("words", shape=(n,), chunks=(n,), dtype=r.choice(["M8[s]", "U4"]))
            words[...] = np.zeros(n, words.dtype)
        if r.random() < 0.3:
            zarr.consolidate_metadata(path)
        return want

    def test_stale_consolidated_metadata(self):
        path = os.path.join(self.folder, "stale.zarr")
        root = zarr.open_group(path, mode="w", zarr_format=2)
        a = root.create_array("x", shape=(4,), chunks=(2,), dtype="i4")
        a[...] = np.arange(4)
        zarr.consolidate_metadata(path)
        a.resize((8,))
        with penstock.open(path) as ds:
            self.assertEqual(len(ds), zarr.open_group(path)["x"].shape[0])


if __name__ == "__main__":
    unittest.main()
