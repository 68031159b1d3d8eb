"""Python reads the values that Go reads."""

import os
import tempfile
import unittest

import numpy as np

import penstock
from penstock import bfloat16
from penstock._base import values
from penstock._read import reader

from . import data

setUpModule = data.name_programs

DATASETS = ("types", "images", "pixels", "large")


class ValuesTest(unittest.TestCase):
    def test_every_field(self):
        for name in DATASETS:
            ds = penstock.open(data.path(name))
            for field in ds.fields:
                a = ds[field]
                want = np.frombuffer(data.expected(name, field), a.dtype).reshape(a.shape)
                self.same(a.numpy(), want, name, field)
                self.same(np.concatenate(a.parts), want, name, field)
                self.same(a.take(np.arange(len(ds))), want, name, field)

    def test_hdf5(self):
        if not os.path.exists(data.path("types.h5")):
            self.skipTest("no HDF5 file: Go was built without libhdf5")
        ds = penstock.open(data.path("types.h5"))
        for field in ds.fields:
            want = np.frombuffer(data.expected("types", field), ds[field].dtype).reshape(ds[field].shape)
            self.same(ds[field].numpy(), want, "types.h5", field)
        self.assertEqual(ds.verify(), penstock.open(data.path("types")).verify())
        self.assertEqual(ds.manifest["id"], penstock.open(data.path("types")).manifest["id"])

    def test_zarr(self):
        for name in ("types", "ragged"):
            flat, ds = penstock.open(data.path(name)), penstock.open(data.path(name + ".zarr"))
            for field, f in ds.fields.items():
                if f.ragged:
                    got, want = (d[list(range(len(d)))][field] for d in (ds, flat))
                    self.same(got.offsets, want.offsets, name, field)
                    self.same(got.values, want.values, name, field)
                else:
                    self.same(ds[field].numpy(), flat[field].numpy(), name, field)
            self.assertGreater(ds.verify(), 0)
            self.assertEqual((ds.format, ds.id), ("zarr", flat.id))

    def test_too_large_for_int64(self) -> None:
        for value in ([1 << 63], [True, 1 << 63], [1, (1 << 64) - 1], np.array([1 << 63], np.uint64)):  # NumPy 1 compares them as floats
            with self.assertRaises(OverflowError):
                values.fitted(value, "int64")

    def test_versions_of_npy(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, values = os.path.join(folder, "x.npy"), np.arange(12, dtype=np.float32).reshape(4, 3)
            for version in ((1, 0), (2, 0), (3, 0)):
                with open(path, "wb") as f:
                    np.lib.format.write_array(f, values, version=version)
                with penstock.open(path) as ds:
                    np.testing.assert_array_equal(ds["x"][:], values)
                    self.assertTrue((ds["x"][2] == values[2]).all())

    def test_foreign_hdf5(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        with tempfile.TemporaryDirectory() as base:
            name = os.path.join(base, "a.h5")
            with h5py.File(name, "w") as f:
                f["x"] = np.arange(5)
                f["names"] = np.array([b"a", b"b"])  # not of the records, as there are five
            self.same(penstock.open(name)["x"].numpy(), np.arange(5), name, "x")
            with h5py.File(name, "a") as f:
                f["texts"] = np.array([b"a"] * 5)
            with penstock.open(name) as ds:  # read by the program, as texts cannot be mapped
                self.assertEqual((ds[2]["texts"], ds[2]["x"].tolist()), ("a", 2))
            self.same(penstock.open(name, fields=["x"])["x"].numpy(), np.arange(5), name, "x")
            with h5py.File(name, "w") as f:
                f.create_dataset("x", (5,), "i8", external=[(os.path.join("ds", "x.npy"), 0, 40)])
            with self.assertRaisesRegex(penstock.NotFoundError, "external file ds/x.npy: no such file"):
                penstock.open(name)
            with h5py.File(name, "w") as f:
                f.create_dataset("outside", (5,), ">i8", external=[("x.raw", 0, 40)])
                layout = h5py.VirtualLayout((5,), ">i8")
                layout[:] = h5py.VirtualSource("missing.h5", "x", (5,))  # h5py reads 0
                f.create_virtual_dataset("virtual", layout)
            for field, says in ("outside", "external file x.raw: no such file"), ("virtual", "missing.h5"):
                with self.assertRaisesRegex(penstock.Error, says):
                    penstock.open(name, fields=[field])
            with h5py.File(name, "w") as f:
                f.create_dataset("x", data=np.arange(10, dtype=">i4").reshape(5, 2), chunks=(2, 1), compression="gzip")
            with penstock.open(name) as ds:  # decoded by the program
                self.same(ds["x"].numpy(), np.arange(10, dtype="i4").reshape(5, 2), name, "x")
                self.same(ds["x"].take([4, 0, 4, 1]), np.array([[8, 9], [0, 1], [8, 9], [2, 3]], "i4"), name, "x")
                self.same(ds[[3, 1]]["x"], np.array([[6, 7], [2, 3]], "i4"), name, "x")
                self.same(ds["x"][1:5:2], np.array([[2, 3], [6, 7]], "i4"), name, "x")
                self.same(ds["x"][2], np.array([4, 5], "i4"), name, "x")
                self.assertEqual(int(ds["x"][4, 1]), 9)
                taken = ds["x"].take([2])
                taken += 1
                self.same(ds["x"][2], np.array([4, 5], "i4"), name, "x")
            with self.assertRaisesRegex(penstock.Error, "closed"):
                ds["x"][0]

    def test_foreign_hdf5_replaced_while_open(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        with tempfile.TemporaryDirectory() as base:
            name, other = os.path.join(base, "a.h5"), os.path.join(base, "b.h5")
            for path, value in ((name, 1), (other, 2)):
                with h5py.File(path, "w") as f:
                    f.create_dataset("x", data=np.full((8, 3), value), chunks=(2, 3), compression="gzip")
            ds = penstock.open(name)
            os.replace(other, name)
            self.assertEqual(ds["x"][[5]].tolist(), [[1, 1, 1]])
            process = reader.shared()._process
            process.kill()
            process.wait()
            with self.assertRaisesRegex(penstock.Error, "ended; read it again"):
                ds["x"][[5]]
            with self.assertRaisesRegex(penstock.Error, "another dataset has taken its place"):
                ds["x"][[5]]

    def test_bfloat16(self):
        ds = penstock.open(data.path("types"))
        want = data.expected_floats("types", "bfloat16")
        got = bfloat16.to_float32(ds["bfloat16"].numpy()).reshape(-1)
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
        np.testing.assert_array_equal(ds.fields["bfloat16"].float32(ds["bfloat16"].numpy()).reshape(-1), want)

    def test_normalization(self):
        for name in ("images", "pixels"):
            ds = penstock.open(data.path(name))
            f = ds.fields["images"]
            got = f.float32(ds["images"].numpy())
            want = data.expected_floats(name, "images").reshape(got.shape)
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
            np.testing.assert_array_equal(f.float32(ds["images"][3]), want[3])
            out = np.empty(got.shape, np.float32)
            self.assertIs(f.float32(ds["images"].numpy(), out), out)
            np.testing.assert_array_equal(out, want)

    def same(self, got, want, *where):
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), where)
        self.assertEqual(got.tobytes(), want.tobytes(), where)


class BFloat16Test(unittest.TestCase):
    def test_rounds_to_nearest_even(self):
        bits = np.array([0x3F800000, 0x3F808000, 0x3F808001, 0x3F818000, 0x7F7FFFFF, 0x7FC00000, 0x7F800001, 0xFF800000, 0x80000000], np.uint32)
        want = [0x3F80, 0x3F80, 0x3F81, 0x3F82, 0x7F80, 0x7FC0, 0x7FC0, 0xFF80, 0x8000]
        self.assertEqual(bfloat16.from_float32(bits.view(np.float32)).view(np.uint16).tolist(), want)

    def test_there_and_back(self):
        every = np.arange(1 << 16, dtype=np.uint16)
        floats = bfloat16.to_float32(every.view(bfloat16.dtype()))
        number = ~np.isnan(floats)
        np.testing.assert_array_equal(bfloat16.from_float32(floats).view(np.uint16)[number], every[number])
        with self.assertRaisesRegex(TypeError, r"uint16, and not bfloat16; .*bits.view\(penstock.bfloat16.dtype\(\)\)"):
            bfloat16.to_float32(every)
