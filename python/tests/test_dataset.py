import itertools
import json
import os
import pickle
import random
import shutil
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

import penstock
from penstock._read import column, crc32c, dataset

from . import data

setUpModule = data.name_programs


def random_key(rng, shape):
    """Return a random index of an array, one in ten of them out of range."""
    elements, axes, lists = [], list(shape), None
    for _ in range(rng.integers(1, len(shape) + 1)):
        n = axes.pop(0)
        kind = rng.choice(
            ["int", "slice", "list", "array", "mask", "none", "...", "bool", "table", "scalar"],
            p=[0.15, 0.2, 0.2, 0.15, 0.08, 0.05, 0.07, 0.02, 0.05, 0.03],
        )
        far = n + 1 if rng.random() < 0.01 else n
        if kind in ("list", "array", "table"):
            lists = lists or int(rng.integers(0, 4))
            a = rng.integers(-far, far, lists if kind != "table" else (2, lists))
            if kind == "array" and rng.random() < 0.5:
                a = a.astype(rng.choice(["int16", "int32", "int64"]))
            elements.append(a.tolist() if kind == "list" else a)
        elif kind == "int":
            elements.append([int, np.int64, np.int16][rng.integers(3)](rng.integers(-far, far)))
        elif kind == "scalar":
            elements.append(np.array(rng.integers(-far, far)))
        elif kind == "slice":
            ends = [None if rng.random() < 0.3 else int(rng.integers(-n - 2, n + 2)) for _ in range(2)]
            elements.append(slice(*ends, None if rng.random() < 0.5 else int(rng.choice([1, 2, 3, 50, -1, -7]))))
        elif kind == "mask":
            mask = np.zeros(far, bool)
            mask[rng.integers(0, far, lists or 3)] = True
            elements.append(mask.tolist() if rng.random() < 0.5 else mask)
        else:
            axes.insert(0, n)
            elements.append({"none": None, "...": Ellipsis, "bool": bool(rng.integers(2))}[kind])
        if not axes:
            break
    return tuple(elements) if len(elements) > 1 or rng.random() < 0.5 else elements[0]


class RecordsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ds = penstock.open(data.path("images"))
        cls.images = cls.ds["images"]
        cls.whole = np.concatenate(cls.images.parts)

    def test_indexing_is_that_of_an_array(self):
        n, r = len(self.whole), random.Random(1)
        keys = [0, -1, n - 1, np.int64(5), slice(None), slice(0, 0), slice(9, 3), slice(None, None, -1), slice(-100, None, -7), Ellipsis]
        keys += [slice(r.randrange(-n, n), r.randrange(-n, n), r.choice([1, 1, 1, 2, -1, 300])) for _ in range(100)]
        keys += [[r.randrange(-n, n) for _ in range(r.randrange(50))] or [0] for _ in range(30)]
        keys += [np.arange(n) % 3 == 0, np.array([3, 3, 1000], np.uint16), (slice(3, 900), 1), (5, 2, slice(None), 4), ([1, 1400], 0), (Ellipsis, 0)]
        for key in keys:
            np.testing.assert_array_equal(self.images[key], self.whole[key], str(key))
        self.assertEqual(self.images[[]].shape, (0, 3, 10, 16))

    def test_indexing_of_several_axes_is_that_of_an_array(self):
        """Random keys of every kind give what NumPy gives, or IndexError where it raises that."""
        rng = np.random.default_rng(3)
        for field, whole in ((self.images, self.whole), (self.ds["labels"], np.concatenate(self.ds["labels"].parts))):
            for case in range(int(os.environ.get("PENSTOCK_TEST_INDEXING", "500"))):
                key = random_key(rng, whole.shape)
                try:
                    want = whole[key]
                except IndexError:
                    with self.assertRaises(IndexError, msg=(case, key)):
                        field[key]
                    continue
                got = field[key]
                self.assertEqual((type(got), got.dtype, got.shape), (type(want), want.dtype, want.shape), (case, key))
                np.testing.assert_array_equal(got, want, err_msg=repr((case, key)))

    def test_lists_of_two_axes_are_pairs(self):
        np.testing.assert_array_equal(self.images[[0, 700], [2, 1]], self.whole[[0, 700], [2, 1]])
        rows, columns = np.array([5, 900, 7]), np.array([1, 0, 2])
        np.testing.assert_array_equal(self.images[rows, :, columns], self.whole[rows, :, columns])

    def test_keys_that_are_refused(self):
        n = len(self.whole)
        for key in (
            1.5,
            "x",
            np.zeros(0),
            [0.5],
            np.array([2**64 - 1], np.uint64),
            np.zeros(n + 1, bool),
            [True],
            (0, 0, 0, 0, 0),
            (..., ...),
            {1},
            {"a": 1},
        ):
            for indexed in (self.images, self.ds) if not isinstance(key, (str, tuple)) else (self.images,):
                with self.subTest(repr(key)[:60]), self.assertRaises(IndexError):
                    indexed[key]
        with self.assertRaisesRegex(IndexError, "not by True"):
            self.ds[True]

    def test_out_of_range(self):
        n = len(self.images)
        for key in (n, -n - 1, [0, n], [-n - 1], [0.5], np.ones(3, bool)):
            with self.assertRaises(IndexError, msg=str(key)):
                self.images[key]
        for of in (self.images, self.ds):
            for record in (n, -n - 1):
                with self.assertRaisesRegex(IndexError, f"record {record} is out of range: there are {n}$"):
                    of[record]
        with self.assertRaisesRegex(IndexError, r"not by an array of shape \(1, 2\)"):
            self.ds[[[0, 1]]]

    def test_views_are_the_file(self):
        parts = self.images.parts
        self.assertGreater(len(parts), 2)
        first = len(parts[0])
        for view in (self.images[5], self.images[2:first], self.images[first : first + 3], self.images[0:first:2]):
            self.assertTrue(any(np.shares_memory(view, p) for p in parts))
            self.assertFalse(view.flags.writeable)
        for copy in (self.images[first - 1 : first + 1], self.images[[1, 2]], self.images.numpy()):
            self.assertFalse(any(np.shares_memory(copy, p) for p in parts))
            self.assertTrue(copy.flags.writeable)
        one = penstock.open(data.path("pixels"))["images"]
        self.assertTrue(np.shares_memory(one.numpy(), one.parts[0]))
        self.assertEqual(one.numpy().ctypes.data % 4096, 0)

    def test_take_into_memory_that_is_there(self):
        for name, field in (("images", "images"), ("images", "labels"), ("large", "rows"), ("pixels", "labels")):
            a = penstock.open(data.path(name))[field]
            indices = np.random.default_rng(1).integers(0, len(a), 40)
            out = np.empty((40, *a.shape[1:]), a.dtype)
            self.assertIs(a.take(indices, out=out), out)
            np.testing.assert_array_equal(out, a.numpy()[indices])
            for bad in (out[:39], np.empty(out.shape, np.float16), np.empty((80, *a.shape[1:]), a.dtype)[::2]):
                with self.assertRaises(ValueError):
                    a.take(indices, out=bad)

    def test_what_an_array_has(self):
        self.assertEqual((self.images.shape, self.images.ndim, self.images.dtype), (self.whole.shape, 4, np.uint8))
        self.assertEqual((self.images.size, self.images.nbytes), (self.whole.size, self.whole.nbytes))
        np.testing.assert_array_equal(np.asarray(self.images), self.whole)
        np.testing.assert_array_equal(np.array(self.images, np.float32), self.whole.astype(np.float32))
        self.assertEqual(sum(1 for _ in self.images), len(self.whole))

    def test_many_threads(self):
        ds, failures = penstock.open(data.path("images")), []

        def read(seed):
            for _ in range(20):
                i = np.random.default_rng(seed).integers(0, len(ds), 64)
                if not np.array_equal(ds["images"][i], self.whole[i]):
                    failures.append(seed)

        threads = [threading.Thread(target=read, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])


class DatasetTest(data.Copied):
    def test_records_and_batches(self):
        ds = penstock.open(data.path("images"))
        images, labels = ds["images"].numpy(), ds["labels"].numpy()
        self.assertEqual(len(ds), 1500)
        record = ds[-1]
        self.assertEqual(list(record), ["images", "labels"])
        np.testing.assert_array_equal(record["images"], images[-1])
        self.assertEqual(record["labels"], labels[-1])
        for key in (slice(700, 1300), [5, 1400, 5], np.array([1, 2])):
            batch = ds[key]
            np.testing.assert_array_equal(batch["images"], images[key])
            np.testing.assert_array_equal(batch["labels"], labels[key])
            self.assertEqual(len(batch), len(labels[key]))
            self.assertEqual([r["labels"] for r in batch], labels[key].tolist())
        self.assertTrue(ds.__getitems__([1, 2, 3])["images"].flags.writeable)
        with self.assertRaises(IndexError):
            ds[1500]
        with self.assertRaises(IndexError):
            ds[0:3][3]

    def test_what_is_known_of_it(self):
        ds = penstock.open(data.path("images"))
        self.assertEqual(ds.classes(), ("cat", "dög", "\u2028"))
        self.assertEqual((ds.fields["images"].layout, ds.fields["images"].pending), ("CHW", True))
        self.assertEqual(ds.manifest["records"], 1500)
        self.assertIn("1500 records", repr(ds))
        html = ds._repr_html_()
        self.assertIn("<tr><td>labels</td><td>int64</td><td>()</td><td></td><td>cat, dög, \\u2028</td></tr></table>", html)
        self.assertIn("1500 records</p>", html)
        Field = penstock.Field
        for field in (*ds.fields.values(), Field("x<b>", "int32", (2,), ragged=True)):
            self.assertEqual(eval(repr(field), {"Field": Field, "Normalization": type(ds.fields["images"].normalization)}), field)
        self.assertRegex(
            repr(Field("y", "int8", classes=tuple("abcdefghij"))), r"classes=\('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', \.\.\. 10 in all\)"
        )
        self.assertEqual(ds.splits, {})

    def test_some_fields(self):
        ds = penstock.open(data.path("types"), fields=["float32", "bool"])
        self.assertEqual(list(ds[0]), ["float32", "bool"])
        for use in (lambda: ds["uint8"], lambda: penstock.open(ds.path, fields=["nothing"]), lambda: penstock.open(ds.path, split="train")):
            with self.assertRaisesRegex(KeyError, "no (field|split)"):
                use()

    def test_more_files_than_are_mapped(self):
        """The program reads a dataset in more files than Linux lets a process map."""
        base = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, base)
        path = os.path.join(base, "shards")
        with penstock.Writer(path, [penstock.Field("x", "int32", (512,)), penstock.Field("t", "int64", ragged=True)], shard_size=4096) as w:
            w.extend({"x": np.full(512, i, np.int32), "t": np.arange(i % 5)} for i in range(40))
        with penstock.open(path) as ds, mock.patch("penstock._read.formats._MOST_MAPPED", 30), penstock.open(path) as many:
            some = np.random.default_rng(0).integers(0, 40, 20)
            self.assertEqual(repr(many.fields), repr(ds.fields))
            for at in (some, slice(3, 30, 4)):
                self.assertEqual(many[at]["x"].tolist(), ds[at]["x"].tolist())
                self.assertEqual(list(map(list, many[at]["t"])), list(map(list, ds[at]["t"])))
            self.assertEqual(many[-1]["x"].tolist(), ds[39]["x"].tolist())
            with self.assertRaisesRegex(penstock.Error, "read, and not mapped.*open it with mode='r'"):
                penstock.open(path, mode="c")

    def test_copy_on_write_stays_here(self):
        before = data.expected("images", "images")
        ds = penstock.open(data.path("images"), mode="c")
        ds["images"][0:4][:] = 7
        self.assertTrue((ds["images"][0:4] == 7).all())
        self.assertEqual(penstock.open(data.path("images"))["images"].numpy().tobytes(), before)
        with self.assertRaises(ValueError):
            penstock.open(data.path("images"), mode="r+")

    def test_pickled_is_its_path(self):
        ds = penstock.open(data.path("images"), fields=["labels"])
        ds["labels"].numpy()
        pickled = pickle.dumps(ds)
        self.assertLess(len(pickled), 1000)
        again = pickle.loads(pickled)
        np.testing.assert_array_equal(again["labels"].numpy(), ds["labels"].numpy())
        self.assertEqual(list(again.fields), ["labels"])

    def test_arrays_outlive_close(self):
        with penstock.open(data.path("pixels")) as ds:
            images = ds["images"][0:10]
        self.assertEqual(images.tobytes(), data.expected("pixels", "images")[: 10 * 480])

    @unittest.skipUnless(os.path.isdir("/proc/self/fd"), "no /proc here")
    def test_files_are_closed(self):
        def maps():
            with open("/proc/self/maps") as f:
                return sum("pixels" in line for line in f)

        before = len(os.listdir("/proc/self/fd"))
        ds = penstock.open(data.path("pixels"))
        self.assertEqual(maps(), 2)
        ds.close()
        self.assertEqual(maps(), 0)
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)
        large = penstock.open(data.path("large"))
        large.close()
        for use in (lambda: ds["images"][0], lambda: ds[0], lambda: ds[[1, 2]], lambda: large[[1, 2]], lambda: large["rows"].prefetch([1])):
            with self.assertRaisesRegex(penstock.Error, "was closed"):
                use()

    @unittest.skipUnless(os.path.exists("/proc/self/status"), "no /proc here")
    def test_memory_is_flat_over_epochs(self):
        def anonymous():
            with open("/proc/self/status") as f:
                return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))

        ds = penstock.open(data.path("images"))
        batches = penstock.order.Batches(len(ds), 64)
        sizes = []
        for epoch in range(40):
            batches.set_epoch(epoch)
            for indices in batches:
                ds.__getitems__(indices)
            sizes.append(anonymous())
        self.assertLess(sizes[-1] - sizes[9], 1024, f"RssAnon in KiB: {sizes}")


def seal(name, manifest):
    """Write a manifest with its checksum."""
    del manifest["crc32c"]
    text = json.dumps(manifest)[:-1].encode() + b',\n  "crc32c": "'
    with open(name, "wb") as f:
        f.write(text + b'%08x"\n}\n' % crc32c.of_bytes(text))


class RefusedTest(data.Copied):
    def manifest(self, change):
        ds = self.copy("images")
        name = os.path.join(ds, "manifest.json")
        with open(name) as f:
            m = json.load(f)
        change(m)
        seal(name, m)
        return ds

    def test_a_manifest_is_sealed(self):
        ds = self.copy("images")
        name = os.path.join(ds, "manifest.json")
        with open(name, "rb") as f:
            text = f.read()
        for changed in (text.replace(b'"generation": 1', b'"generation": 2'), text.replace(b'"crc32c": "', b'"crc32c":  "'), text + b"\n"):
            self.assertNotEqual(changed, text)
            with open(name, "wb") as f:
                f.write(changed)
            with self.assertRaisesRegex(penstock.CorruptError, "checksum"):
                penstock.open(ds)

    def test_manifests(self):
        def put(*keys, value):
            def change(m):
                for k in keys[:-1]:
                    m = m[k]
                m[keys[-1]] = value

            return change

        cases = [
            (put("format", value="other"), penstock.UnsupportedError, "format"),
            (put("version", value=6), penstock.UnsupportedError, "version 6"),
            (put("version", value="1"), penstock.UnsupportedError, "version"),
            (put("records", value=0), penstock.CorruptError, "'records': 0 is not"),
            (put("records", value=1501), penstock.CorruptError, "1501"),
            (put("fields", value=[]), penstock.CorruptError, "no fields"),
            (put("fields", value=3), penstock.CorruptError, "manifest"),
            (put("fields", 0, "name", value="../x"), penstock.CorruptError, "a name is"),
            (put("fields", 0, "dtype", value="complex"), penstock.CorruptError, "complex"),
            (put("fields", 0, "storage", value="<f4"), penstock.CorruptError, "storage"),
            (put("fields", 0, "shape", value=[0]), penstock.CorruptError, "shape"),
            (put("fields", 0, "shape", value=[3, 10, 17]), penstock.CorruptError, "bytes"),
            (put("fields", 1, "name", value="images"), penstock.CorruptError, "two of one name"),
            (put("shards", 1, "first", value=5), penstock.CorruptError, "shard 1"),
            (put("shards", 0, "count", value=1), penstock.CorruptError, "bytes"),
            (put("shards", 0, "files", 0, "name", value="../../x.npy"), penstock.CorruptError, "is not a file of column"),
            (put("shards", 0, "files", 0, "bytes", value=1), penstock.CorruptError, "1 bytes"),
            (put("shards", value={}), penstock.CorruptError, "'shards': {} is not a list"),
            (lambda m: m.pop("shards"), penstock.CorruptError, "shards"),
            *(
                (put("splits", value=v), penstock.CorruptError, "splits?.*")
                for v in (
                    3,
                    "train",
                    {"a": 1},
                    [3],
                    ["train"],
                    [{}],
                    [{"name": 3, "ranges": []}],
                    [{"name": ["a"], "ranges": []}],
                    2 * [{"name": "a", "ranges": []}],
                )
            ),
            *(
                (put("splits", value=[{"name": "a", "ranges": v}]), penstock.CorruptError, "split")
                for v in (
                    3,
                    "ab",
                    {"0": 1},
                    [3],
                    ["ab"],
                    [[1]],
                    [[1, 2, 3]],
                    [["1", "2"]],
                    [[0.5, 2]],
                    [[None, 1]],
                    [[True, 2]],
                    [[2, 1]],
                    [[-1, 1]],
                    [[0, 1501]],
                    [[0, 10**30]],
                    [[[0], [1]]],
                )
            ),
        ]
        for change, kind, text in cases:
            ds = self.manifest(change)
            with self.assertRaisesRegex(kind, text) as caught:
                penstock.open(ds)
            self.assertIn(ds, str(caught.exception))

    def test_no_dataset(self):
        base = os.path.dirname(self.copy("pixels"))
        for path, text in (
            (base, "no manifest.json.*preprocess .* OUT"),
            (os.path.join(base, "nothing"), "no such file"),
            (__file__, "neither a folder nor an HDF5 file; it has no HDF5 signature"),
        ):
            with self.assertRaisesRegex(penstock.Error, text):
                penstock.open(path)
        with self.assertRaises(FileNotFoundError):
            penstock.open(os.path.join(base, "nothing"))
        self.assertEqual(len(penstock.open(os.fsencode(os.path.join(base, "pixels")))), len(penstock.open(os.path.join(base, "pixels"))))
        ds = os.path.join(base, "pixels")
        with open(os.path.join(ds, "manifest.json"), "w") as f:
            f.write('{"format": "penstock", ')
        with self.assertRaisesRegex(penstock.CorruptError, "not a manifest"):
            penstock.open(ds)

    def test_files(self):
        for name in ("images-00000.npy", "images-00000.crc.npy", "labels-00001.npy"):
            ds = self.copy("images")
            file = os.path.join(ds, name)
            os.truncate(file, os.path.getsize(file) - 1)
            with self.assertRaisesRegex(penstock.CorruptError, name):
                penstock.open(ds)
            os.remove(file)
            with self.assertRaisesRegex(penstock.CorruptError, "missing"):
                penstock.open(ds)

    def test_file_that_is_cut_short_later(self):
        name = self.copy("images")
        ds = penstock.open(name)
        os.truncate(os.path.join(name, "images-00000.npy"), 5000)
        for use in (lambda: ds["images"][0], lambda: ds[0], lambda: ds[[1, 2]], lambda: ds["images"].parts, ds.verify):
            with self.assertRaisesRegex(penstock.CorruptError, "images-00000.npy: (it was truncated to )?5000 bytes"):
                use()

    def test_header(self):
        name = self.copy("images")
        with open(os.path.join(name, "images-00000.npy"), "r+b") as f:
            f.seek(0x40)
            f.write(b"x")
        with self.assertRaisesRegex(penstock.CorruptError, "byte 0x40"):
            penstock.open(name)["images"][0]


def relabel(ds, label):
    """Make another dataset of a copy of "images": the same fields and sizes, one label for all, and an id of its own."""
    for k in range(100):
        name = os.path.join(ds, f"labels-{k:05d}.npy")
        if not os.path.exists(name):
            break
        labels = np.load(name, mmap_mode="r+")
        labels[:] = label
    name = os.path.join(ds, "manifest.json")
    with open(name) as f:
        m = json.load(f)
    m["id"] = f"{label:032x}"
    seal(name, m)


class ReplacedTest(data.Copied):
    """A dataset whose place another takes, as preprocess --overwrite does it."""

    def setUp(self):
        self.path, self.other = self.copy("images"), self.copy("images")
        relabel(self.path, 7)
        relabel(self.other, 8)

    def replace(self):
        os.rename(self.path, self.path + ".old")
        os.rename(self.other, self.path)
        shutil.rmtree(self.path + ".old")

    def test_what_was_opened_stays(self):
        for mode in ("r", "c"):
            with self.subTest(mode):
                ds = penstock.open(self.path, mode=mode)
                was = ds["images"].numpy()
                self.replace()
                self.assertEqual(set(ds["labels"].numpy().tolist()), {7})
                np.testing.assert_array_equal(ds[np.arange(1500)]["images"], was)
                self.assertEqual(penstock.open(self.path)[3]["labels"], 8)
                with self.assertRaisesRegex(penstock.Error, f"{self.path}: another dataset has taken its place .*: {7:032x} then, {8:032x} now"):
                    len(pickle.loads(pickle.dumps(ds)))
                self.setUp()

    def test_verify_tells_a_replaced_dataset_from_a_corrupt_one(self):
        ds = penstock.open(self.path)
        self.replace()
        with self.assertRaisesRegex(penstock.Error, "another dataset has taken its place"):
            ds.verify()

    def test_opening_while_it_is_replaced(self):
        real, at = dataset.locate, []

        def locate(path, *rest):
            layout = real(path, *rest)
            if not at:
                at.append(path)
                self.replace()  # between the manifest and the files
            return layout

        with mock.patch.object(dataset, "locate", locate):
            ds = penstock.open(self.path)
        self.assertEqual((ds.id, set(ds["labels"].numpy().tolist())), (f"{8:032x}", {8}))
        with mock.patch.object(dataset, "stamp", lambda path: object()), self.assertRaisesRegex(penstock.Error, "replaced 16 times"):
            penstock.open(self.path)

    def test_hdf5(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        path, other = (os.path.join(self.path, f"{k}.h5") for k in range(2))
        for k, file in enumerate((path, other)):
            with h5py.File(file, "w") as f:
                f["x"] = np.full(50, k)
                f["y"] = np.full((50, 3), k, np.uint8)
            os.utime(file, ns=(1, 1 + k))
        ds = penstock.open(path)
        os.replace(other, path)
        self.assertEqual(set(ds["x"].numpy().tolist()) | set(ds["y"].numpy().ravel().tolist()), {0})
        with self.assertRaisesRegex(penstock.Error, "another dataset has taken its place"):
            pickle.loads(pickle.dumps(ds))[0]
        self.assertEqual(penstock.open(path)[0]["x"], 1)

    def test_hdf5_of_another_program(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        path = os.path.join(self.path, "other.h5")
        with h5py.File(path, "w") as f:
            f["x"] = np.arange(12, dtype="f4").reshape(6, 2)
            f["g/y"] = np.arange(6)
            f["scale"] = 3.0
        with penstock.open(path) as ds:
            self.assertEqual((list(ds.fields), len(ds), ds["g/y"][4]), (["g/y", "x"], 6, 4))
        with h5py.File(path, "r+") as f:
            f["names"] = [b"a"] * 6
            f["long"] = np.arange(7)
        for fields in (None, ["g/y", "long"]):
            with self.assertRaisesRegex(penstock.Error, r"of several lengths: g/y has 6, long has 7.*fields="):
                penstock.open(path, fields=fields)
        with penstock.open(path, fields=["x", "names"]) as ds:
            self.assertEqual((list(ds.fields), ds[5]["x"].tolist(), ds[5]["names"]), (["x", "names"], [10, 11], "a"))
        with self.assertRaisesRegex(KeyError, 'no field "z".*g/y, long, x'):
            penstock.open(path, fields=["z"])
        with penstock.open(path, fields=["x", "g/y"]) as ds:
            self.assertEqual((list(ds.fields), ds[5]["x"].tolist(), ds[5]["g/y"]), (["x", "g/y"], [10, 11], 5))

    def test_hdf5_of_our_own(self):
        if not os.path.exists(data.path("types.h5")):
            self.skipTest("no HDF5 file: Go was built without libhdf5")
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        path, other = self.copy("types.h5"), self.copy("types.h5")
        was = penstock.open(path)
        with h5py.File(other, "r+") as f:
            text = f["penstock/manifest"][()]
            m = json.loads(text)
            name = os.path.join(self.path, "other.json")
            seal(name, {**m, "id": 32 * "5"})
            with open(name, "rb") as sealed:
                new = sealed.read()
            del f["penstock/manifest"]
            f["penstock/manifest"] = np.bytes_(new)
            f["int64"][:] = 5
        os.replace(other, path)
        self.assertEqual(was["int64"].numpy().tobytes(), data.expected("types", "int64"))
        self.assertEqual(penstock.open(path)["int64"][77], 5)
        with self.assertRaisesRegex(penstock.Error, f"{was.id} then, {32 * '5'} now"):
            len(pickle.loads(pickle.dumps(was)))
        for values in (was["int64"].numpy()[1:], was["int64"].numpy().astype("<f8")):  # a record less, another type
            path = self.copy("types.h5")
            with h5py.File(path, "r+") as f:
                del f["int64"]
                f["int64"] = values
            with self.assertRaisesRegex(penstock.Error, 'dataset "int64": .* but the manifest says .* int64'):
                penstock.open(path)

    @unittest.skipUnless(os.path.isdir("/proc/self/fd"), "no /proc here")
    def test_more_files_than_this_process_may_have_open(self):
        try:
            import resource
        except ImportError:
            self.skipTest("this system has no limit of open files")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

        def limit_for(more: int) -> int:  # it is one of their numbers, and some may be free
            open_now = set(map(int, os.listdir("/proc/self/fd")))
            return next(n for n in itertools.count() if n - sum(fd < n for fd in open_now) == more)

        resource.setrlimit(resource.RLIMIT_NOFILE, (limit_for(4), hard))
        self.assertEqual(len(penstock.open(self.path)["images"].numpy()), 1500)
        few = limit_for(4)
        with mock.patch.object(column.resource, "getrlimit", lambda _: (few, few)):
            resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
            with self.assertRaisesRegex(penstock.Error, r"Too many open files.*ulimit -n"):
                penstock.open(self.path)


# Together they take as long to import as a third of the package.
_LATER = (
    "difflib", "fractions", "hashlib", "importlib.util", "logging", "multiprocessing",
    "penstock.transforms", "random", "secrets", "shlex", "shutil", "tempfile",
)  # fmt: skip


class NumPyOnlyTest(unittest.TestCase):
    def test_nothing_else_is_imported(self):
        import subprocess

        code = "import sys, penstock; penstock.open, penstock.DataLoader; print([m for m in ('torch', 'h5py') if m in sys.modules])"
        root = os.path.dirname(data.HERE)
        out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
        self.assertEqual(out.stdout.strip(), "[]")

    def test_modules_that_few_programs_need_are_imported_when_they_are_used(self):
        import subprocess

        asked = "import penstock; penstock.open, penstock.DataLoader, penstock.Dataset"
        code = f"import sys, numpy; had = set(sys.modules); {asked}; print([m for m in {_LATER} if m in sys.modules and m not in had])"
        root = os.path.dirname(data.HERE)
        out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
        self.assertEqual(out.stdout.strip(), "[]")
