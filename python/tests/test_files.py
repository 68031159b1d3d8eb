"""Files as other programs write them, beside the library that people read them with."""

import io
import os
import tarfile
import unittest

import numpy as np

import penstock
from penstock import transforms

from . import data
from .test_writer import Writing

try:
    import h5py
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch
    import torchvision
    from PIL import Image

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"

setUpModule = data.name_programs


def loaded(path, **options):
    """Return the fields of a source as DataLoader gives them, all records in one batch."""
    with penstock.DataLoader(path, 1000, **options) as loader:
        return {name: np.asarray(values) for name, values in next(iter(loader)).items()}


@unittest.skipIf(MISSING, MISSING)
class TestFiles(Writing):
    def setUp(self):
        super().setUp()
        os.environ["PENSTOCK_FEED"] = data.feed()
        os.environ["PENSTOCK_PREPROCESS"] = data.preprocess()

    def prepared(self, source, **options):
        dest = self.path("prepared")
        penstock.preprocess(source, dest, overwrite=True, **options)
        return penstock.open(dest)

    def test_polars(self):
        frame = pl.DataFrame({"x": [3, 1, 2], "y": [0.5, None, 2.0], "s": ["a", "bc", ""]}).with_columns(pl.col("y").fill_null(7))
        for compression in "uncompressed", "lz4", "zstd":
            with self.subTest(compression):
                frame.write_ipc(self.path("x.arrow"), compression=compression)
                got = loaded(self.path("x.arrow"), fields=["x", "y"])
                for name in "x", "y":
                    np.testing.assert_array_equal(got[name], frame[name].to_numpy())
                self.assertEqual(list(self.prepared(self.path("x.arrow"))["s"][:]), frame["s"].to_list())

    def test_names_in_other_scripts(self):
        frame = pd.DataFrame({"年龄": [1, 2], "身高": [3, 4], "größe": [5, 6], "x" * 120 + "a": [7, 8], "x" * 120 + "b": [9, 10]})
        frame.to_csv(self.path("x.csv"), index=False)
        frame.to_parquet(self.path("x.parquet"))
        want = [list(column) for _, column in frame.items()]
        for source in "x.csv", "x.parquet":
            got = loaded(self.path(source))
            self.assertEqual([v.tolist() for v in got.values()], want)
            self.assertEqual(list(got), list(frame))

    def test_tables_with_versions(self):
        """A partition of a Delta table has the rows of files that are not of its newest version."""
        folder = self.path("delta")
        os.makedirs(os.path.join(folder, "_delta_log"))
        pq.write_table(pa.table({"x": [1]}), os.path.join(folder, "0.parquet"))
        pq.write_table(pa.table({"x": [2]}), os.path.join(folder, "1.parquet"))
        for read in loaded, self.prepared, penstock.open:
            with self.assertRaisesRegex(penstock.Error, r"Delta table.*deltalake\.DeltaTable"):
                read(folder)

    def test_groups_of_one_record(self):
        path = self.path("x.h5")
        with h5py.File(path, "w") as f:
            for i in range(5):
                g = f.create_group(f"data/demo_{i}")
                g["obs/image"], g["label"] = np.full((4 + i % 2, 4, 3), i, "u1"), i
        for got in penstock.open(path), self.prepared(path):
            self.assertEqual(got["label"][:].tolist(), [0, 1, 2, 3, 4])
            self.assertEqual([int(v.mean()) for v in got["obs/image"][:]], [0, 1, 2, 3, 4])
        self.assertEqual(loaded(path, fields=["data/demo_3/obs/image"])["data/demo_3/obs/image"].mean(), 3)

    def test_columns_of_tables_of_pandas(self):
        """A block of the table format is an array whose columns have names, as pandas pickles them."""
        rows = np.zeros(4, [("index", "i8"), ("values_block_0", "f4", (5,)), ("values_block_1", "i8", (2,))])
        rows["values_block_0"] = np.arange(20).reshape(4, 5)
        with h5py.File(self.path("t.h5"), "w") as f:
            d = f.create_dataset("df/table", data=rows)
            names = "(lp0\nVa\np1\naV\xe9\\u005cx\np2\naV\\u65e5\\U0001f600\np3\naI7\naVb\np4\na."
            d.attrs["values_block_0_kind"] = np.bytes_(names.encode("latin-1"))
            d.attrs["values_block_1_kind"] = np.bytes_(b"(lp0\nVa\np1\nag1\na.")  # twice the same
        with penstock.open(self.path("t.h5")) as ds:
            self.assertEqual(ds.fields["df/table/values_block_0"].features, ("a", "é\\x", "日😀", "7", "b"))
            self.assertFalse(ds.fields["df/table/values_block_1"].features)
        chosen = {"df/table/values_block_0": [transforms.SelectFeatures(["b", "日😀"])]}
        with penstock.DataLoader(self.path("t.h5"), 4, output="numpy", transforms=chosen) as loader:
            np.testing.assert_array_equal(next(iter(loader))["df/table/values_block_0"], rows["values_block_0"][:, [4, 2]])

    def test_enumerations(self):
        path, values = self.path("x.h5"), np.array([0, 5, 255, 5, 7], "u1")
        with h5py.File(path, "w") as f:
            f.create_dataset("y", data=values, dtype=h5py.enum_dtype({"background": 0, "car": 5, "ignore": 255}, "u1"))
        for got in loaded(path)["y"], self.prepared(path)["y"][:]:
            np.testing.assert_array_equal(got, values)

    def test_enumerations_as_labels(self):
        """The names are the classes by ascending number, whatever the numbers are; one without a name is a bad value."""
        rng = np.random.default_rng(3)
        for k, base in enumerate(["i1", "u1", ">i2", "u4", "i8"]):
            info = np.iinfo(np.dtype(base))
            numbers = np.unique(
                np.append(rng.integers(info.min, info.max, 4, endpoint=True, dtype=np.dtype(base).newbyteorder("=")), [info.max, info.min])
            )
            names = dict(zip(rng.permutation([f"é{i}" for i in range(len(numbers))]).tolist(), (int(n) for n in numbers)))
            values = rng.choice(numbers, 20)
            path = self.path(f"{k}.h5")
            with h5py.File(path, "w") as f:
                f.create_dataset("y", data=values.astype(base), dtype=h5py.enum_dtype(names, base))
            got = self.prepared(path, fields="y=class:label")["class"]
            self.assertEqual([got.field.classes[i] for i in got[:]], [{n: name for name, n in names.items()}[int(v)] for v in values])
            self.assertEqual(got[:].tolist(), np.searchsorted(numbers, values).tolist())
        path = self.path("without.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("y", data=np.array([5, 9, 7]), dtype=h5py.enum_dtype({"b": 5, "a": 9}, "i4"))
        with self.assertRaisesRegex(penstock.Error, r"7 has no name in its enumeration; read the numbers: fields=\[\"y:int32\"\]"):
            self.prepared(path, fields="y:label")

    def test_padded_strings(self):
        path, words = self.path("x.h5"), [b"ab\0\0 ", b"c d", b"", b"abcdef"]
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(6)
        kind.set_strpad(h5py.h5t.STR_SPACEPAD)
        with h5py.File(path, "w") as f:
            d = h5py.h5d.create(f.id, b"s", kind, h5py.h5s.create_simple((4,)))
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(words, "S6"), mtype=kind)
        self.assertEqual(list(self.prepared(path)["s"][:]), [w.rstrip(b" \0").decode() for w in words])

    def test_hard_links(self):
        image = io.BytesIO()
        Image.new("RGB", (4, 4)).save(image, "PNG")
        with tarfile.open(self.path("x.tar"), "w") as archive:
            for name, link in ("a/1.png", ""), ("b/2.png", "a/1.png"):
                info = tarfile.TarInfo(name)
                info.type, info.linkname = (tarfile.LNKTYPE, link) if link else (tarfile.REGTYPE, "")
                info.size = 0 if link else len(image.getvalue())
                archive.addfile(info, io.BytesIO(image.getvalue()))
        for read in loaded, self.prepared:
            with self.assertRaisesRegex(penstock.Error, r"b/2.png.*hard link to a/1.png.*--hard-dereference"):
                read(self.path("x.tar"))

    def test_dots_in_keys(self):
        with tarfile.open(self.path("x.tar"), "w") as archive:
            for name in "a_0.5.cls", "a_0.5.txt", "a_0.7.cls", "a_0.7.txt":
                info = tarfile.TarInfo(name)
                info.size = 1
                archive.addfile(info, io.BytesIO(b"1"))
        with self.assertRaisesRegex(penstock.Error, r"first dot, as in WebDataset, so \.5\.cls is one; replace the dots"):
            self.prepared(self.path("x.tar"))

    def test_images_of_one_size(self):
        """ToTensor alone keeps sizes, as in torchvision."""
        rng = np.random.default_rng(1)
        for i in range(6):
            os.makedirs(self.path("photos", f"c{i % 2}"), exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (24, 32, 3), np.uint8)).save(self.path("photos", f"c{i % 2}", f"{i}.png"))
        want = torchvision.datasets.ImageFolder(self.path("photos"), torchvision.transforms.ToTensor())
        with penstock.DataLoader(self.path("photos"), 6, transforms=transforms.ToTensor()) as loader:
            images, labels = next(iter(loader))
        self.assertTrue(torch.equal(images, torch.stack([x for x, _ in want])))
        self.assertEqual(labels.tolist(), want.targets)
        Image.new("RGB", (24, 32)).save(self.path("photos", "c1", "9.png"))  # as many pixels
        with penstock.DataLoader(self.path("photos"), 7, transforms=transforms.ToTensor()) as loader:
            with self.assertRaisesRegex(penstock.Error, r"c1/9\.png.*24x32 pixels, but c0/0\.png has 32x24"):
                next(iter(loader))

    def test_premultiplied_colors(self):
        pixels = np.array([[[10, 20, 30, 0], [100, 50, 25, 128], [255, 0, 7, 255], [3, 3, 3, 3]]], "u1")
        b = io.BytesIO()
        Image.fromarray(pixels).save(b, "TIFF")
        b = bytearray(b.getvalue())
        extra = b.index(b"\x52\x01\x03\x00\x01\x00\x00\x00")  # ExtraSamples, one SHORT
        b[extra + 8] = 1
        os.makedirs(self.path("photos", "a"))
        with open(self.path("photos", "a", "x.tif"), "wb") as f:
            f.write(b)
        got = self.prepared(self.path("photos"))["images"][0]
        np.testing.assert_array_equal(got.transpose(1, 2, 0), np.asarray(Image.open(io.BytesIO(b)).convert("RGB")))

    def test_windows_of_one_record(self):
        with penstock.Writer(self.path("one")) as w:
            w.append({"x": np.float32(3), "g": 1})
        one = penstock.open(self.path("one"))
        with self.assertRaisesRegex(penstock.Error, "no window fits"):
            one.windows({0: 2}, group="g")
        self.assertEqual(one.windows({0: 1}, group="g")[0]["x"].tolist(), [3])


if __name__ == "__main__":
    unittest.main()
