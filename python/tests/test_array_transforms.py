"""Transforms and statistics of arrays, compared with NumPy."""

import os
import shutil
import tempfile
import unittest

import h5py
import numpy as np

import penstock
from penstock import transforms as T
from penstock._read.statistics import Statistics

from . import data

setUpModule = data.name_programs

SEED = int(os.environ.get("PENSTOCK_TEST_SEED", "0"))


class ArrayTransformsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.base)
        rng = np.random.default_rng(SEED)
        cls.z = rng.gamma(2.0, 3.0, (40, 3, 6, 6)).astype("f4")
        cls.z[rng.random(cls.z.shape) < 0.1] = np.nan
        cls.mask = rng.integers(0, 5, (40, 6, 6)).astype("u1")
        fields = [
            penstock.Field("z", "float32", (3, 6, 6), dims=("time", "level", "lat", "lon")),
            penstock.Field("mask", "uint8", (6, 6), dims=("time", "lat", "lon")),
        ]
        with penstock.Writer(os.path.join(cls.base, "ds"), fields) as w:
            w.extend({"z": z, "mask": m} for z, m in zip(cls.z, cls.mask))
        cls.ds = penstock.open(os.path.join(cls.base, "ds"))
        cls.addClassCleanup(cls.ds.close)

    def made(self, epochs=1, **transforms):
        """Return the fields of all records in their order, for each epoch."""
        out = []
        with penstock.DataLoader(self.ds, 8, transforms=transforms, output="numpy", seed=5) as loader:
            for _ in range(epochs):
                batches = [{name: np.array(b[name]) for name in ("z", "mask")} for b in loader]
                out.append({name: np.concatenate([b[name] for b in batches]) for name in batches[0]})
        return out

    def test_standardize_by_arrays(self):
        level, grid = np.array([1.0, 2, 3])[:, None, None], np.linspace(1, 4, 36).reshape(6, 6)
        for mean, std in ((level, level + 1), (grid, grid + 1), (level * grid, grid + level)):
            want = (self.z.astype("f8") - mean) / std
            np.testing.assert_array_equal(self.made(z=[T.Standardize(mean, std)])[0]["z"], want.astype("f4"))

    def test_steps_of_images(self):
        pixels = np.random.default_rng(SEED).integers(0, 255, (20, 24, 32, 3)).astype("u1")
        np.savez(os.path.join(self.base, "pixels.npz"), x=pixels, y=np.zeros((20, 1, 1, 1), "u1"), s=pixels[:, :3])
        steps, path = [T.Resize((16, 12)), T.ToTensor()], os.path.join(self.base, "pixels.npz")
        penstock.preprocess(path, os.path.join(self.base, "made"), fields=["x:hwc"], resize=(16, 12), progress=False)
        want = penstock.open(os.path.join(self.base, "made"))["x"][:].astype("f4") / 255
        for options in (
            {"transforms": steps, "fields": ["x", "y"]},
            {"transforms": {"x": steps}},
            {"transforms": {"x": steps}, "contents": {"x": "hwc"}},
        ):
            with penstock.DataLoader(path, 20, output="numpy", **options) as loader:
                (batch,) = loader
                np.testing.assert_allclose(batch["x"], want if want.shape[1] == 3 else want.transpose(0, 3, 1, 2), atol=1e-6)
        coloured = want if want.shape[1] == 3 else want.transpose(0, 3, 1, 2)
        gray = os.path.join(self.base, "gray.npz")  # as the digits of MNIST
        np.savez(gray, x=pixels[..., 0], y=np.arange(20))
        penstock.preprocess(gray, os.path.join(self.base, "gray"), fields=["x:hwc", "y"], resize=(16, 12), progress=False)
        want = penstock.open(os.path.join(self.base, "gray"))["x"][:].astype("f4") / 255
        for options in (
            {"transforms": {"x": steps}},
            {"transforms": steps, "contents": {"x": "chw"}},
            {"transforms": steps, "fields": ["x:hwc", "y"]},
        ):
            with self.subTest(options=options), penstock.DataLoader(gray, 20, output="numpy", **options) as loader:
                np.testing.assert_allclose(next(iter(loader))["x"], want.transpose(0, 3, 1, 2), atol=1e-6)
        with h5py.File(mapped := os.path.join(self.base, "mapped.h5"), "w") as f:
            f["x"], f["y"] = pixels, np.arange(20)
        for fields, name in (["x:hwc"], "x"), (["y", "x=pixels:hwc"], "pixels"):
            with penstock.DataLoader(mapped, 20, output="numpy", fields=fields, transforms=steps) as loader, penstock.open(mapped, fields) as ds:
                self.assertEqual((list(ds.fields), ds.fields[name].layout), ([*fields[:-1], name], "HWC"))
                np.testing.assert_allclose(next(iter(loader))[name], coloured, atol=1e-6)
        windows = penstock.open(mapped, ["x"]).windows({0: 1})
        with self.assertRaisesRegex(penstock.Error, r"takes the only image: lambda images: images\[0\]"):
            penstock.DataLoader(windows, 20, output="numpy", transforms={"x": steps})
        with penstock.DataLoader(windows, 20, output="numpy", transforms={"x": [lambda images: images[0], *steps]}) as loader:
            np.testing.assert_allclose(next(iter(loader))["x"], coloured, atol=1e-6)
        with self.assertRaisesRegex(penstock.Error, "no field has images; name the field"):
            penstock.DataLoader(gray, 20, output="numpy", transforms=steps)
        with self.assertRaisesRegex(penstock.Error, r'pixels of shape \(3, 32, 3\) may be .*; say contents={"s": "hwc"}, or chw'):
            penstock.DataLoader(path, 20, output="numpy", transforms={"s": steps})
        with penstock.DataLoader(path, 20, output="numpy", transforms={"s": steps}, contents={"s": "hwc"}) as loader:
            self.assertEqual(next(iter(loader))["s"].shape, (20, 3, 16, 12))

    def test_refused(self):
        for steps, text in (
            ([T.RandomFlip(["depth"])], "none of the axes"),
            ([T.RandomFlip([7])], "axis 7 does not exist"),
            ([T.RandomFlip([])], "axes is empty|axes are missing"),
            ([T.RandomRot90(("level", "lat"))], "two lengths"),
            ([T.RandomSpatialCrop(9, "lat")], "a crop of 9 of axis lat, which has 6"),
            ([T.Standardize(np.ones((2, 1, 1)), np.ones((2, 1, 1)))], "cannot be broadcast"),
            ([T.FillNaN(), T.IsFinite(), T.RandomNoise(1)], "put Cast to a float type before it"),
            ([T.RandomNoise(-1)], "std -1 must be positive"),
            ([T.RandomFlip(["lat"], p=2)], "p 2 must be 0 to 1"),
        ):
            with self.subTest(steps), self.assertRaisesRegex(Exception, text):
                self.made(z=steps)
        with self.assertRaisesRegex(ValueError, "must be alike"):
            T.Standardize([1, 2], [1]).to_json()

    def test_statistics(self):
        z = self.z.astype("f8")
        for keep, over in (((), None), (["level"], (0, 2, 3)), ([0], (0, 2, 3)), (["lat", "lon"], (0, 1)), (["level", -2, -1], (0,))):
            for workers in (1, 3):
                s = self.ds.statistics("z", keep=keep, workers=workers)
                for name, f in (("mean", np.nanmean), ("std", np.nanstd), ("min", np.nanmin), ("max", np.nanmax)):
                    want = f(z, axis=over, keepdims=True)[0]
                    np.testing.assert_allclose(getattr(s, name), want, rtol=1e-12, err_msg=f"{name} {keep}")
                np.testing.assert_array_equal(s.missing, np.isnan(z).sum(axis=over, keepdims=True)[0])
                np.testing.assert_array_equal(s.count, np.isfinite(z).sum(axis=over, keepdims=True)[0])
        train = self.ds.statistics("z", keep="level", ranges=[(0, 10), (20, 25)])
        chosen = np.concatenate([z[:10], z[20:25]])
        np.testing.assert_allclose(train.mean, np.nanmean(chosen, axis=(0, 2, 3), keepdims=True)[0], rtol=1e-12)
        path = os.path.join(self.base, "z.npz")
        train.save(path)
        again = Statistics.load(path)
        np.testing.assert_array_equal(again.std, train.std)
        got = self.made(z=[again.standardize()])[0]["z"]
        np.testing.assert_array_equal(got, ((z - train.mean) / train.std).astype("f4"))
        month = np.arange(40) % 12 // 2
        for group, ranges in ((month, None), (month.astype("U2"), [(3, 20), (30, 40)])):
            s = self.ds.statistics("z", keep="level", group=group, ranges=ranges)
            used = np.concatenate([np.arange(a, b) for a, b in ranges or [(0, 40)]])
            self.assertEqual(s.groups.tolist(), sorted(set(group[used].tolist())))
            for k, value in enumerate(s.groups):
                chosen = z[used[group[used] == value]]
                np.testing.assert_allclose(s.mean[k], np.nanmean(chosen, axis=(0, 2, 3), keepdims=True)[0], rtol=1e-12)
                np.testing.assert_allclose(s.of_group(value).standardize().std, np.nanstd(chosen, axis=(0, 2, 3), keepdims=True)[0], rtol=1e-12)
            s.save(path)
            np.testing.assert_array_equal(Statistics.load(path).groups, s.groups)
        with self.assertRaisesRegex(ValueError, "choose one"):
            s.standardize()
        with self.assertRaisesRegex(KeyError, "no group 77"):
            s.of_group(77)

        class NA:  # as pandas' own
            __hash__ = None
            __repr__ = __str__ = lambda self: "<NA>"
            __eq__ = __ne__ = lambda self, other: self

            def __bool__(self):
                raise TypeError("boolean value of NA is ambiguous")

        for value, dtype in (("nan", "f4"), ("-inf", "f8"), (None, object), (float("nan"), object), (NA(), object), ("NaT", "M8[D]")):
            group = np.zeros(40, dtype)
            group[12] = value
            with self.assertRaisesRegex(ValueError, "the group of record 12 is (nan|-inf|None|<NA>|NaT); each record needs a group"):
                self.ds.statistics("z", group=group)
            self.assertEqual(len(self.ds.statistics("z", group=group, ranges=[(0, 12), (13, 40)]).groups), 1)
        with self.assertRaisesRegex(TypeError, "groups are of the types int, str, which have no order"):
            self.ds.statistics("z", group=np.array([1, "a"] * 20, object))
        with self.assertRaisesRegex(ValueError, "one value for each of the 40 records"):
            self.ds.statistics("z", group=[1, 2])
        for options, text in (
            ({"keep": "depth"}, "no axis 'depth'"),
            ({"keep": 3}, "axis 3 does not exist"),
            ({"ranges": [(0, 99)]}, "is not of the 40 records"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                self.ds.statistics("z", **options)
        masks = self.ds.statistics("mask")
        self.assertAlmostEqual(masks.mean.item(), self.mask.mean())


if __name__ == "__main__":
    unittest.main()
