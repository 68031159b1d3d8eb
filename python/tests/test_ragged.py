import os
import tempfile
import unittest

import numpy as np

import penstock

from . import data

setUpModule = data.name_programs


def _bits(value):
    """Return the bits of numbers, among which NaN is equal to itself, and text as it is."""
    return value if isinstance(value, str) else np.ascontiguousarray(value).view(np.uint8)


class RaggedTest(data.Copied):
    def test_buckets_with_fewer_records_than_a_batch(self):
        """A budget makes batches smaller, so that some are full where there are fewer records than batch_size."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ds")
            with penstock.Writer(path) as w:
                w.extend({"cost": 4, "n": i} for i in range(10))
            order = penstock.samplers.Bucket(1, "cost", budget=16)
            with penstock.DataLoader(path, 16, sampler=order, drop_last=True, output="numpy") as loader:
                self.assertEqual([len(b["n"]) for b in loader], [4, 4])
            with self.assertRaisesRegex(penstock.Error, "drop_last leaves no batch"):
                penstock.DataLoader(path, 16, sampler=penstock.samplers.Bucket(1, "cost"), drop_last=True, output="numpy")

    def test_values_are_those_of_go(self):
        for split in (None, "train", "val"):
            name = "ragged" if split is None else f"ragged.{split}"
            ds = penstock.open(data.path("ragged"), split=split)
            self.assertEqual(ds["labels"].numpy().tobytes(), data.expected(name, "labels"))
            for field in ("tokens", "boxes", "caption", "file"):
                offsets = data.expected_rows(name, field)
                a = ds[field]
                self.assertEqual(len(a), len(offsets) - 1)
                for batch in (a[:], a.take(range(len(a)))):
                    self.assertEqual(batch.values.tobytes(), data.expected(name, field), (name, field))
                    np.testing.assert_array_equal(batch.offsets, offsets)
                np.testing.assert_array_equal(a.lengths, np.diff(offsets))

    def test_hdf5(self):
        if not os.path.exists(data.path("ragged.h5")):
            self.skipTest("no HDF5 file: Go was built without libhdf5")
        for split in (None, "train", "val"):
            name = "ragged" if split is None else f"ragged.{split}"
            ds = penstock.open(data.path("ragged.h5"), split=split)
            for field in ("tokens", "boxes", "caption", "file"):
                self.assertEqual(ds[field][:].values.tobytes(), data.expected(name, field))
                np.testing.assert_array_equal(ds[field][:].offsets, data.expected_rows(name, field))
        flat = penstock.open(data.path("ragged"))
        more = len(flat.manifest["shards"]) - 1  # offsets of each of four fields
        self.assertEqual(ds.verify(), flat.verify() - 8 * 4 * more)

    def test_records(self):
        ds = penstock.open(data.path("ragged"))
        whole = ds["tokens"][:]
        self.assertGreater(len(ds.manifest["shards"]), 2)
        for i in (0, 1, 350, -1):
            k = i % len(ds)
            want = whole.values[whole.offsets[k] : whole.offsets[k + 1]]
            np.testing.assert_array_equal(ds["tokens"][i], want)
            record = ds[i]
            np.testing.assert_array_equal(record["tokens"], want)
            self.assertIsInstance(record["caption"], str)
            self.assertEqual(len(record["boxes"]), ds["boxes"].lengths[k])
            self.assertEqual(record["boxes"].shape[1:], (4,))
        self.assertTrue("aß€𐍈".startswith(ds["caption"][next(i for i in range(50) if ds["caption"].lengths[i] == 3)][:2]))
        for key in (700, -701, [0, 700]):
            with self.assertRaises(IndexError):
                ds["tokens"][key]

    def test_batches(self):
        ds = penstock.open(data.path("ragged"))
        for key in (slice(3, 9), slice(100, 500), slice(None, None, -50), slice(5, 5), [699, 0, 0, 12], np.arange(700) % 9 == 0):
            batch = ds[key]
            records = np.arange(700)[key]
            self.assertEqual(len(batch["tokens"]), len(records))
            self.assertEqual(batch["tokens"].offsets[0], 0)
            for i, r in enumerate(records.tolist()):
                np.testing.assert_array_equal(batch["tokens"][i], ds["tokens"][r])
                self.assertEqual(batch[i]["caption"], ds["caption"][r])
                for name, values in batch[i - len(records)].items():
                    np.testing.assert_array_equal(_bits(values), _bits(ds[r][name]))

    def test_padded(self):
        ds = penstock.open(data.path("ragged"))
        batch = ds["tokens"][0:20]
        padded = batch.padded(-1)
        self.assertEqual(padded.shape, (20, batch.lengths.max()))
        for i, rows in enumerate(batch):
            self.assertEqual(padded[i, : len(rows)].tolist(), rows.tolist())
            self.assertTrue((padded[i, len(rows) :] == -1).all())
        self.assertEqual(ds["boxes"][0:5].padded(length=3).shape, (5, 3, 4))
        self.assertEqual(ds["boxes"][0:5].padded(length=0).shape, (5, 0, 4))
        none = penstock.Ragged(np.empty(0, np.uint16), np.zeros(1, np.int64))
        self.assertEqual(none.padded().shape, (0, 0))
        one = penstock.Ragged(np.arange(3, dtype=np.uint16), np.array([0, 3, 3]))
        self.assertEqual(one.padded(65535).tolist(), [[0, 1, 2], [65535] * 3])
        for fill in (-1, 65536, 0.5):
            with self.assertRaisesRegex(ValueError, f"fill is {fill}, which uint16 does not hold"):
                one.padded(fill)
        with self.assertRaisesRegex(ValueError, "length is -1; it must be 0 or more"):
            one.padded(length=-1)

    def test_parts_of_batches(self):
        ds = penstock.open(data.path("ragged"))
        batch = ds["tokens"][0:20]
        batches = [batch, ds["caption"][0:20]]
        try:
            import torch

            from penstock.torch import Jagged

            batches.append(Jagged(torch.from_numpy(batch.values.astype(np.int64)), torch.from_numpy(batch.offsets)))
        except ImportError:
            pass
        for b in batches:
            whole = list(b)
            slices = slice(3, 9), slice(9, 3), slice(None, None, 4), slice(-5, None), slice(None, None, -1), slice(-2, 3, -3)
            arrays = [4, 4, 0, -1], np.arange(20) % 3 == 0, np.array([7]), np.ones(20, np.uint8), np.array([-1, 2], ">i4"), range(5, 2, -1), []
            for key in *slices, *arrays:
                key = np.array(key, np.int64) if isinstance(key, list) and not key else key
                some = b[key]
                self.assertIs(type(some), type(b))
                want = [whole[i] for i in np.arange(20)[key]]
                self.assertEqual([str(x) for x in some], [str(x) for x in want], key)
                self.assertEqual(len(some), len(want))
            for wrong in [20], [-21], np.array([0.5, 1]), [True, False]:
                with self.assertRaises(IndexError):
                    b[wrong]
        self.assertTrue(np.shares_memory(batch[3:9].values, batch.values))

    def test_no_rows_at_all(self):
        ds = penstock.open(data.path("empty"))
        self.assertEqual(ds["nothing"][:].values.shape, (0, 2))
        self.assertEqual(ds["nothing"].lengths.tolist(), [0] * 10)
        ds.verify()

    def test_verify(self):
        ds = penstock.open(data.path("ragged"))
        self.assertGreater(ds.verify(), ds["tokens"][:].values.nbytes)
        name = self.copy("ragged")
        with open(f"{name}/tokens.values-00002.npy", "r+b") as f:
            f.seek(4100)
            f.write(b"\xaa\xaa\xaa")
        with self.assertRaisesRegex(penstock.CorruptError, "tokens.values-00002.npy"):
            penstock.open(name).verify()

    def test_offsets_that_lead_elsewhere(self):
        name = self.copy("ragged")
        with open(f"{name}/tokens.offsets-00000.npy", "r+b") as f:
            f.seek(4096 + 8)
            f.write((1 << 40).to_bytes(8, "little"))
        ds = penstock.open(name)
        for use in (lambda: ds["tokens"][0], lambda: ds["tokens"][1], lambda: ds["tokens"][0:3], lambda: ds["tokens"].take([0])):
            with self.assertRaisesRegex(penstock.CorruptError, "tokens.offsets-00000.npy"):
                use()


class SplitTest(unittest.TestCase):
    def test_splits(self):
        ds = penstock.open(data.path("ragged"))
        self.assertEqual(list(ds.splits), ["train", "val", "none"])
        parts = {name: penstock.open(data.path("ragged"), split=name) for name in ("train", "val")}
        self.assertEqual({name: len(p) for name, p in parts.items()}, {"train": 560, "val": 140})
        joined = np.concatenate([p["labels"].numpy() for p in parts.values()])
        np.testing.assert_array_equal(joined, ds["labels"].numpy())
        self.assertEqual(parts["val"][3]["labels"], joined[563])
        with self.assertRaises(IndexError):
            parts["val"][140]
        with self.assertRaisesRegex(penstock.Error, "no records"):
            penstock.open(data.path("ragged"), split="none")
        with self.assertRaisesRegex(KeyError, "train, val, none"):
            penstock.open(data.path("ragged"), split="test")
