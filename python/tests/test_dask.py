"""Datasets as dask arrays and in xarray."""

import contextlib
import importlib.util
import os
import pickle
import shutil
import sys
import unittest
import warnings
from unittest import mock

import numpy as np

import penstock

from . import data

setUpModule = data.name_programs


def need(*libraries):
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise unittest.SkipTest(f"no {library}: pip install {library}")


@contextlib.contextmanager
def quiet():
    """Leave out the warnings of libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def names():
    """Return the datasets of the tests that can be opened here."""
    for name in sorted(os.listdir(data.folder())):
        path = data.path(name)
        if os.path.isdir(path) and os.path.exists(os.path.join(path, "manifest.json")):
            yield name
        if name.endswith(".h5"):
            yield name


def equal(a, b):
    """Whether two arrays of a field are equal, those of objects too."""
    if a.dtype != object:
        return a.shape == b.shape and a.tobytes() == b.tobytes()
    return len(a) == len(b) and all(type(x) is type(y) and np.shape(x) == np.shape(y) and _bytes(x) == _bytes(y) for x, y in zip(a, b))


def _bytes(value):
    return value if isinstance(value, str) else value.tobytes()


def values(ds, name):
    """Return all records of a field, as NumPy has them."""
    records = ds[name]
    if not ds.fields[name].ragged:
        return records[:]
    out = np.empty(len(ds), object)
    for i in range(len(ds)):
        out[i] = records[i]
    return out


class DaskTest(data.Copied):
    def setUp(self):
        need("dask")
        with quiet():
            import dask.array  # noqa: F401

    def test_all_fields(self):
        count = 0
        for name in names():
            ds = penstock.open(data.path(name))
            for chunks in (None, 7):
                for field, x in ds.to_dask(chunks).items():
                    want = values(ds, field)
                    self.assertEqual((x.shape, x.dtype), (want.shape, want.dtype), (name, field))
                    self.assertTrue(chunks is None or max(x.chunks[0]) <= chunks)
                    with quiet():
                        self.assertTrue(equal(x.compute(scheduler="threads"), want), (name, field))
                        self.assertTrue(equal(x[3:11:2].compute(scheduler="sync"), want[3:11:2]), (name, field))
                    count += 1
        self.assertGreater(count, 10)

    def test_reductions_in_processes(self):
        path = os.path.relpath(data.path("images"))
        ds = penstock.open(path)
        x = ds.to_dask(100)["images"]
        with quiet():
            self.assertEqual(
                int(pickle.loads(pickle.dumps(x)).astype("i8").sum().compute(scheduler="processes")), int(ds["images"].numpy().astype("i8").sum())
            )

    def test_chunks_are_views(self):
        ds = penstock.open(data.path("images"))
        x = ds.to_dask(100)["images"]
        with quiet():
            from dask import compute, delayed

            flags = compute(*(delayed(lambda b: (b.flags.owndata, b.flags.writeable))(chunk) for chunk in x.to_delayed().ravel()), scheduler="sync")
        self.assertEqual(set(flags), {(False, False)})

    def test_replaced(self):
        path = self.copy("images")
        x = penstock.open(path).to_dask()["images"]
        text = pickle.dumps(x)
        shutil.rmtree(path)
        shutil.copytree(data.path("tokens") if os.path.isdir(data.path("tokens")) else data.path("ragged"), path)
        with quiet(), self.assertRaisesRegex(penstock.Error, "another dataset has taken its place"):
            pickle.loads(text).compute(scheduler="sync")

    def test_wrong_chunks(self):
        with self.assertRaisesRegex(ValueError, "chunks is 0"):
            penstock.open(data.path("images")).to_dask(0)


class WithoutDaskTest(unittest.TestCase):
    def test_what_is_missing(self):
        ds = penstock.open(data.path("images"))
        with mock.patch.dict(sys.modules, {"dask": None, "dask.array": None}), self.assertRaisesRegex(penstock.Error, "pip install 'dask"):
            ds.to_dask()


class XarrayTest(unittest.TestCase):
    def setUp(self):
        need("xarray")
        with quiet():
            import xarray

            from penstock.xarray import PenstockBackend
        self.xarray, self.engine = xarray, PenstockBackend

    def test_all_fields(self):
        for name in names():
            ds = penstock.open(data.path(name))
            with quiet(), self.xarray.open_dataset(data.path(name), engine=self.engine) as x:
                self.assertEqual((set(x), x.attrs["id"]), (set(ds.fields), ds.id))
                for field in ds.fields:
                    want = values(ds, field)
                    self.assertTrue(equal(x[field].values, want), (name, field))
                for field, f in ds.fields.items():
                    self.assertEqual(x[field].attrs.get("classes", []), list(f.classes))

    def test_indexing(self):
        ds = penstock.open(data.path("images"))
        want = ds["images"].numpy()
        with quiet(), self.xarray.open_dataset(data.path("images"), engine=self.engine, drop_variables=["labels"]) as x:
            self.assertEqual(set(x), set(ds.fields) - {"labels"})
            images = x["images"]
            self.assertEqual(images.dims[0], "record")
            for key in (5, slice(3, 40, 4), [9, 2, 2, 7]):
                self.assertTrue(np.array_equal(images[key].values, want[key]))
                self.assertTrue(np.array_equal(images[key, 1].values, want[key][..., 1, :, :] if not isinstance(key, int) else want[key][1]))
                self.assertTrue(np.array_equal(images[key, :, [2, 0], 1:3].values, want[key][..., [2, 0], 1:3]))
            self.assertTrue(np.array_equal(images.isel(record=-1).values, want[-1]))

    def test_engine_by_name_and_dask(self):
        need("dask")
        self.assertTrue(self.engine().guess_can_open(data.path("images")))
        self.assertFalse(self.engine().guess_can_open(data.folder()))
        with quiet(), self.xarray.open_dataset(data.path("images"), engine=self.engine, chunks={}) as x:
            self.assertEqual(int(x["labels"].sum().compute()), int(penstock.open(data.path("images"))["labels"][:].sum()))
        with open(os.path.join(data.HERE, "..", "pyproject.toml"), encoding="utf-8") as f:
            self.assertIn('[project.entry-points."xarray.backends"]\npenstock = "penstock.xarray:PenstockBackend"\n', f.read())


if __name__ == "__main__":
    unittest.main()
