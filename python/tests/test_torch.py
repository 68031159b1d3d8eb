import json
import os
import pickle
import unittest

import numpy as np

import penstock

from . import data
from .test_dataset import seal

try:
    import torch
    from torch.utils.data import DataLoader

    import penstock.torch as pt
except ImportError:
    torch = None


def bits(tensor):
    """Return the bytes of a tensor, of a type that NumPy lacks too."""
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy().tobytes()


def _halved(image):
    return image // 2


def _swapped(record):
    return record["labels"], record["images"]


@unittest.skipIf(torch is None, "no torch")
class TorchTest(data.Copied):
    def test_every_type(self):
        ds = pt.TorchDataset(data.path("types"))
        raw = penstock.open(data.path("types"))
        batch = pt.collate(ds.__getitems__([5, 8000, 5]))
        for name in raw.fields:
            got, want = batch[name], raw[name][[5, 8000, 5]]
            self.assertEqual(str(got.dtype), f"torch.{raw.fields[name].dtype}")
            if name == "bfloat16":
                got, want = got.view(torch.int16), want.view(np.int16)
            np.testing.assert_array_equal(np.asarray(got), want)
            one = ds[8000][name]
            self.assertEqual((one.dtype, one.shape), (batch[name].dtype, batch[name].shape[1:]))

    def test_normalized(self):
        ds = pt.TorchDataset(data.path("images"), normalize=True)
        want = data.expected_floats("images", "images").reshape(1500, 3, 10, 16)
        np.testing.assert_array_equal(ds.__getitems__([3, 1499])["images"].numpy(), want[[3, 1499]])
        np.testing.assert_array_equal(ds[77]["images"].numpy(), want[77])

    def test_in_a_loader(self):
        raw = penstock.open(data.path("images"))
        ds = pt.TorchDataset(data.path("images"))
        for workers in (0, 2):
            batches = penstock.order.Batches(len(ds), 128, seed=5)
            loader = DataLoader(ds, batch_sampler=batches, collate_fn=pt.collate, num_workers=workers)
            for epoch in (0, 1):
                batches.set_epoch(epoch)
                order = penstock.order.shuffle(len(ds), 5, epoch)
                seen = 0
                for batch in loader:
                    indices = order[seen : seen + len(batch["labels"])]
                    np.testing.assert_array_equal(batch["images"].numpy(), raw["images"][indices])
                    np.testing.assert_array_equal(batch["labels"].numpy(), raw["labels"][indices])
                    seen += len(indices)
                self.assertEqual(seen, len(ds))

    def test_default_collate_and_sampler(self):
        ds = penstock.open(data.path("images"))
        for dataset in (ds, pt.TorchDataset(data.path("images"))):
            loader = DataLoader(dataset, batch_size=100, num_workers=0)
            images = torch.cat([batch["images"] for batch in loader])
            np.testing.assert_array_equal(images.numpy(), ds["images"].numpy())

    def test_normalized_by_figures_that_are_given(self):
        raw = penstock.open(data.path("pixels"))
        for mean, std in (((0.5, 0.25, 0), (0.5, 1, 2)), ([0.5], [0.25])):
            for name in ("pixels", "images"):  # HWC and CHW
                raw = penstock.open(data.path(name))["images"][[3, 77]]
                shape = (-1, 1, 1) if name == "images" else (-1,)
                want = (raw / np.float32(255) - np.reshape(mean, shape).astype(np.float32)) / np.reshape(std, shape).astype(np.float32)
                ds = pt.TorchDataset(data.path(name), normalize=(mean, std))
                np.testing.assert_array_equal(ds.__getitems__([3, 77])["images"].numpy(), want)
                np.testing.assert_array_equal(ds[77]["images"].numpy(), want[1])
                many = np.random.default_rng(1).integers(0, len(ds), 700)  # more than are normalized together
                one_by_one = np.stack([ds[int(i)]["images"].numpy() for i in many])
                np.testing.assert_array_equal(ds.__getitems__(many)["images"].numpy(), one_by_one)
                self.assertEqual(ds[77]["labels"].dtype, torch.int64)

    def test_figures_that_are_missing_or_wrong(self):
        path = self.copy("images")
        name = os.path.join(path, "manifest.json")
        with open(name) as f:
            m = json.load(f)
        del m["fields"][0]["normalization"]
        seal(name, m)
        with self.assertRaisesRegex(
            penstock.Error, f"{path}: field 'images': normalize=True, and .* no mean and std.*preprocess normalize {path} imagenet"
        ):
            pt.TorchDataset(path, normalize=True)
        self.assertEqual(pt.TorchDataset(path, normalize=([0.5], [0.5]))[0]["images"].dtype, torch.float32)
        self.assertEqual(pt.TorchDataset(path)[0]["images"].dtype, torch.uint8)
        with self.assertRaisesRegex(penstock.Error, "no field of uint8 images to be normalized"):
            pt.TorchDataset(data.path("types"), normalize=True)
        for kind, normalize, text in (
            (TypeError, "imagenet", r"it must be True, False or a pair of lists of numbers, \(mean, std\)"),
            (TypeError, 1, "a pair of lists"),
            (TypeError, (0.5, 0.5), "a pair of lists"),
            (ValueError, ([0.5, 0.5], [0.5, 0.5]), "2 means; the images of field 'images' have 3 channels, so it must have 3 or 1"),
            (ValueError, ([0.5], [0]), "must be positive"),
            (ValueError, ([0.5], [1, 1]), "as many means"),
        ):
            with self.assertRaisesRegex(kind, text):
                pt.TorchDataset(path, normalize=normalize)

    def test_a_transform_that_is_not_one(self):
        with self.assertRaisesRegex(TypeError, "the path is 3; it must be a str or a Path"):
            pt.TorchDataset(3)
        with self.assertRaisesRegex(TypeError, "transform is 3; it must be a function of a record, or a dict"):
            pt.TorchDataset(data.path("images"), transform=3)

    def test_transform(self):
        plain = pt.TorchDataset(data.path("images"))
        by_field = pt.TorchDataset(data.path("images"), transform={"images": _halved})
        by_record = pt.TorchDataset(data.path("images"), transform=_swapped)
        for workers in (0, 1):
            loader = DataLoader(by_field, batch_size=100, collate_fn=pt.collate, num_workers=workers)
            for k, batch in enumerate(loader):
                want = plain.__getitems__(range(100 * k, 100 * k + 100))
                self.assertTrue(torch.equal(batch["images"], want["images"] // 2))
                self.assertTrue(torch.equal(batch["labels"], want["labels"]))
        self.assertTrue(torch.equal(by_field[7]["images"], plain[7]["images"] // 2))
        label, image = by_record[7]
        self.assertTrue(torch.equal(image, plain[7]["images"]) and label == plain[7]["labels"])
        labels, images = next(iter(DataLoader(by_record, batch_size=5)))
        self.assertEqual((labels.shape, images.shape), ((5,), (5, 3, 10, 16)))
        with self.assertRaisesRegex(KeyError, "transform: no field 'image'; there are: images, labels"):
            pt.TorchDataset(data.path("images"), transform={"image": _halved})

    def assert_same(self, got, want):
        self.assertEqual(list(got), list(want))
        for name in want:
            self.assertIs(type(got[name]), type(want[name]), name)
            if isinstance(want[name], str):
                self.assertEqual(got[name], want[name])
            else:
                self.assertEqual((got[name].dtype, got[name].shape), (want[name].dtype, want[name].shape), name)
                self.assertEqual(bits(got[name]), bits(want[name]), name)

    def test_records_of_a_batch_are_those_of_the_dataset(self):
        indices = [5, 0, 5, 9, 7]
        for name, normalize in (("types", False), ("images", False), ("images", True), ("ragged", False), ("empty", False)):
            ds = pt.TorchDataset(data.path(name), normalize=normalize)
            batch = ds.__getitems__(indices)
            records = list(batch)
            self.assertEqual(len(records), len(indices))
            for k, i in enumerate(indices):
                self.assert_same(records[k], ds[i])
                self.assert_same(batch[k - len(indices)], ds[i])
            with self.assertRaisesRegex(TypeError, "index is 'a'; it must be an integer"):
                ds["a"]
            with self.assertRaises(IndexError):
                batch[len(indices)]
            with self.assertRaisesRegex(TypeError, "name of a field or the number of a record"):
                batch[0:2]
        ds = pt.TorchDataset(data.path("ragged"))
        batch = next(iter(DataLoader(ds, batch_size=7, collate_fn=list)))
        for i, record in enumerate(batch):
            self.assert_same(record, ds[i])

    def test_a_worker_gets_a_path(self):
        ds = pt.TorchDataset(data.path("images"), normalize=True)
        ds[0]
        self.assertLess(len(pickle.dumps(ds)), 1000)
        again = pickle.loads(pickle.dumps(ds))
        self.assertTrue(torch.equal(again[3]["images"], ds[3]["images"]))

    def test_a_worker_that_finds_another_dataset_says_so(self):
        path = self.copy("images")
        ds = pt.TorchDataset(path)
        name = os.path.join(path, "manifest.json")
        with open(name) as f:
            m = json.load(f)
        seal(name, {**m, "id": 32 * "0"})
        loader = DataLoader(ds, batch_size=100, num_workers=1, multiprocessing_context="spawn")
        with self.assertRaisesRegex(penstock.Error, "(?s)worker process 0.*another dataset has taken its place"):
            next(iter(loader))
        self.assertEqual(len(DataLoader(ds, batch_size=100)), 15)

    def test_fields_of_variable_length(self):
        raw = penstock.open(data.path("ragged"), split="train")
        ds = pt.TorchDataset(data.path("ragged"), split="train")
        for workers in (0, 1):
            batches = penstock.order.Batches(len(ds), 200, seed=3)
            loader = DataLoader(ds, batch_sampler=batches, collate_fn=pt.collate, num_workers=workers)
            for batch, indices in zip(loader, batches):
                want = raw[indices]
                np.testing.assert_array_equal(batch["tokens"].values.numpy(), want["tokens"].values)
                np.testing.assert_array_equal(batch["tokens"].offsets.numpy(), want["tokens"].offsets)
                self.assertEqual(batch["boxes"].values.dtype, torch.bfloat16)
                self.assertEqual(batch["caption"], list(want["caption"]))
        one = ds[5]
        self.assertEqual(one["caption"], raw[5]["caption"])
        np.testing.assert_array_equal(one["tokens"].numpy(), raw[5]["tokens"])
        if not hasattr(torch.nested, "nested_tensor_from_jagged"):
            self.skipTest("this torch has no nested tensors of jagged layout")
        nested = ds.__getitems__([3, 4, 5])["tokens"].nested()
        self.assertEqual([len(x) for x in nested.unbind()], raw["tokens"].lengths[3:6].tolist())
