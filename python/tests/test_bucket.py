"""Datasets in a bucket: records that are fetched, and changes by conditional writes."""

import io
import multiprocessing
import os
import pickle
import tarfile
import tempfile
import unittest
from unittest import mock

import numpy as np

import penstock
from penstock._engine import request
from penstock._read import generations

from . import data
from .s3 import Bucket

setUpModule = data.name_programs


forked = None


def label(record):
    return int(forked["labels"][record])


def total(record):
    return np.int64(record["labels"]) * 2


def named(record):
    return f"class {record['labels']}"


class BucketTest(unittest.TestCase):
    def setUp(self):
        data.folder()  # before the cache of Go and the folder of temporary files are others
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}
        patch = mock.patch.dict(os.environ, {**keys, "XDG_CACHE_HOME": os.path.join(folder.name, "cache"), "TMPDIR": folder.name})
        patch.start()
        self.addCleanup(patch.stop)
        tempfile.tempdir, before = folder.name, tempfile.tempdir
        self.addCleanup(setattr, tempfile, "tempdir", before)
        self.bucket = Bucket()
        self.addCleanup(self.bucket.close)

    def put(self, name, key=None):
        """Send a dataset to the bucket, and return its URL."""
        path = data.path(name)
        if os.path.isfile(path):
            with open(path, "rb") as f:
                self.bucket.objects[key or name] = f.read()
        for folder, _, files in os.walk(path):
            for file in files:
                with open(os.path.join(folder, file), "rb") as f:
                    self.bucket.objects[f"{key or name}/{os.path.relpath(os.path.join(folder, file), path)}"] = f.read()
        return self.bucket.url(key or name)

    def web(self, name):
        """Send a dataset to the bucket, and return its URL as that of a web server, which programs without the SDKs of the clouds read, too."""
        self.put(name)
        return self.bucket.web(name)

    def open(self, url, *args, **options):
        try:
            ds = penstock.open(url, *args, **options)
        except penstock.Error as e:
            if "nocloud" in str(e):
                self.skipTest("the programs of the tests were built without the SDKs of the clouds")
            raise
        self.addCleanup(ds.close)
        return ds

    def same(self, value, want):
        if isinstance(want, penstock.Ragged):
            self.same(value.offsets, want.offsets)
            value, want = value.values, want.values
        if isinstance(want, str):
            self.assertEqual(value, want)
        else:
            self.assertEqual((np.asarray(value).dtype, np.shape(value)), (np.asarray(want).dtype, np.shape(want)))
            self.assertEqual(np.asarray(value).tobytes(), np.asarray(want).tobytes())  # signalling NaN too

    def test_records_are_those_of_the_folder(self):
        for name in ("images", "ragged", "ragged.zarr", "ragged.h5"):
            there, here = self.open(self.web(name)), penstock.open(data.path(name))
            self.assertEqual(
                (len(there), there.fields, there.id, there.splits, there.format), (len(here), here.fields, here.id, here.splits, here.format)
            )
            self.assertEqual((there.manifest, there.generation), (here.manifest, here.generation))
            n = len(here)
            for f in here.fields:
                for key in (0, -1, slice(3, 9), slice(None, None, -7), slice(5, 5), [4, 1, 4], np.array([n - 1, 0]), []):
                    with self.subTest(name=name, field=f, key=key):
                        self.same(there[f][key], here[f][key])
                        if not isinstance(key, int):
                            self.same(there[key][f], here[key][f])
                with self.assertRaises(IndexError):
                    there[f][n]
            for i in (0, n - 1):
                for f, want in here[i].items():
                    self.same(there[i][f], want)
                self.assertEqual(there.source_name(i), here.source_name(i))
            with self.assertRaises(IndexError):
                there[n]
        self.same(there["tokens"].lengths, here["tokens"].lengths)

    def test_arrays_work_by_reading(self):
        url = self.web("images")
        there, here = self.open(url), penstock.open(data.path("images"))
        images, want = there["images"], here["images"]
        self.assertEqual((images.shape, images.dtype, images.ndim), (want.shape, want.dtype, want.ndim))
        self.same(images[2, 0], want[2, 0])
        self.same(images[[1, 2], ..., 3], want[[1, 2], ..., 3])
        self.same(np.asarray(there["labels"]), np.asarray(here["labels"]))
        out = np.empty((2, *images.shape[1:]), images.dtype)
        self.same(images.take([7, 3], out), want.take([7, 3]))
        self.assertEqual(there.filter("labels = 1")._kind._rows.tolist(), here.filter("labels = 1")._kind._rows.tolist())
        self.same(there.select([5, 2])[:]["images"], here.select([5, 2])[:]["images"])
        again = pickle.loads(pickle.dumps(there))
        self.addCleanup(again.close)
        self.same(again["images"][9], want[9])
        for source in (url, there, there.select([8, 3])):
            with penstock.DataLoader(source, 64, output="numpy") as loader:
                batch = next(iter(loader))
                self.same(batch["images"], want[batch.indices] if not hasattr(source, "parts_of") else want[[8, 3]])
        kept = os.path.join(os.environ["TMPDIR"], "kept")
        subset = self.open(url, ["labels"], cache_dir=kept)
        self.assertEqual(list(subset[3]), ["labels"])
        self.assertEqual(request._cache_dir([subset.select([1]), subset]), kept)
        self.assertTrue(os.listdir(kept))

    def test_processes_and_programs(self):
        there, here = self.open(self.web("images")), penstock.open(data.path("images"))
        if "fork" in multiprocessing.get_all_start_methods():
            global forked
            forked = there
            with multiprocessing.get_context("fork").Pool(2) as pool:
                self.assertEqual(pool.map(label, range(0, 1500, 100)), here["labels"][:1500:100].tolist())
            self.same(there[3]["images"], here[3]["images"])
        there._opened._reader._process.kill()
        with self.assertRaisesRegex(penstock.Error, "the program that reads it ended; read it again"):
            there[5]
        self.same(there[5]["images"], here[5]["images"])
        there.close()
        with self.assertRaisesRegex(penstock.Error, "it was closed; open it again"):
            there[5]

    def test_raw_samples(self):
        self.open(self.put("images"))
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for i in range(4):
                name, content = f"{'ab'[i % 2]}/{i}.ppm", b"P6 4 4 255\n" + bytes([i]) * 48
                self.bucket.objects[f"photos/{name}"] = content
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        self.bucket.objects["photos.tar"] = archive.getvalue()
        for key in ("photos", "photos.tar"):
            ds = self.open(self.bucket.url(key))
            self.assertEqual(len(ds), 4)
            with self.assertRaisesRegex(penstock.Error, "is opened through a dataset in the cache"):
                ds.delete([0])

    def test_what_cannot_be_opened(self):
        url = self.put("images")
        self.open(url)
        for error, text, args, options in (
            (KeyError, "nothing", (url, ["nothing"]), {}),
            (KeyError, "nothing", (url,), {"split": "nothing"}),
            (penstock.Error, "open it with mode='r'", (url,), {"mode": "c"}),
            (penstock.NotFoundError, "it keeps no generation 9", (url,), {"generation": 9}),
            (penstock.NotFoundError, "it has no tag .best.", (generations.at(url, "best"),), {}),
            (ValueError, "names another generation", (generations.at(url, 1),), {"generation": 2}),
            (penstock.Error, "it is not a penstock dataset", (self.bucket.url("none"),), {}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                penstock.open(*args, **options)
        with self.assertRaisesRegex(penstock.UnsupportedError, "penstock inspect verify 's3://"):
            self.open(url).verify()
        self.bucket.objects["images/manifest.json"] = b"{}"
        with self.assertRaisesRegex(penstock.Error, "format"):
            penstock.open(url)

    def test_zarr_changes(self):
        ds = first = self.open(self.put("ragged.zarr"))
        ds = ds.add_column("number", np.arange(len(ds))).delete([0, 5])
        self.same(ds["number"][:3], np.array([1, 2, 3]))
        self.assertEqual((len(ds), len(first), list(first.fields)), (698, 700, list(ds.fields)[:-1]))

    def test_changes(self):
        url = self.put("images")
        ds = first = self.open(url)
        n, want = len(ds), [total(r) for r in penstock.open(data.path("images"))]
        before = dict(self.bucket.objects)
        ds = ds.add_column("array", np.array(want))
        ds = ds.add_column("text", (f"record {i}" for i in range(n)))
        ds = ds.add_column("function", total, workers=2)
        ds = ds.set_column("array", np.arange(n)).rename_column("array", "number").drop_columns("function")
        ds = ds.add_column("kind", named, batch_size=100)
        self.assertEqual(ds.generation, 8)
        self.same(ds["number"][:], np.arange(n))
        self.assertEqual((ds[7]["text"], ds[7]["kind"]), ("record 7", f"class {ds[7]['labels']}"))
        few = ds.delete("number < 10").delete([0, 5])
        self.assertEqual((len(few), few[0]["number"], few.stored[:5].tolist()), (n - 12, 11, [11, 12, 13, 14, 16]))
        ds.tag("before")
        self.assertEqual(len(few.restore_records()), n)
        self.assertEqual(len(self.open(generations.at(url, "before"))), n)
        old = self.open(url, generation=4)
        self.same(old["function"][:], np.array(want))
        self.assertEqual((old.generation, old.restore().generation), (4, 12))
        self.assertEqual([e["generation"] for e in first.log()], list(range(12, 0, -1)))
        self.assertEqual(list(first[0]), ["images", "labels"])
        for key, value in before.items():
            if not key.endswith("manifest.json"):
                self.assertEqual(self.bucket.objects[key], value, key)
        for refused, text in (
            (lambda: old.drop_columns("text"), "only the newest generation can be changed"),
            (lambda: first.add_column("text", ["x"] * n), "it has a column .text. already"),
        ):
            with self.assertRaisesRegex(penstock.Error, text):
                refused()


if __name__ == "__main__":
    unittest.main()
