"""Raw samples that nobody prepared, as the dataset of a DataLoader."""

import os
import unittest
import zipfile

import numpy as np

import penstock
from penstock.transforms import RandomHorizontalFlip, RandomResizedCrop, ToTensor

from . import data
from .test_writer import Writing, photo


class Raw(Writing):
    def setUp(self):
        super().setUp()
        os.environ["PENSTOCK_FEED"] = data.feed()

    def photos(self, n=20, root="photos"):
        for i in range(n):
            folder = self.path(root, ("cat", "dog")[i % 2])
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{i:04}.bmp"), "wb") as f:
                f.write(photo(i, (40 + i, 30)))
        return self.path(root)

    def loader(self, dataset, **options):
        given = {"transforms": [RandomResizedCrop(16), RandomHorizontalFlip(), ToTensor()], "shuffle": True, "seed": 7, "output": "numpy"}
        return penstock.DataLoader(dataset, 6, **{**given, **options})

    def batches(self, dataset, epochs=2, **options):
        loader = self.loader(dataset, **options)
        return [(images.copy(), labels.copy()) for _ in range(epochs) for images, labels in loader]

    def same(self, got, want):
        self.assertEqual(len(got), len(want))
        for (a, b), (c, d) in zip(got, want):
            np.testing.assert_array_equal(a, c)
            np.testing.assert_array_equal(b, d)


class TestRawSamples(Raw):
    def test_batches_are_those_of_the_prepared_dataset(self):
        photos = self.photos()
        penstock.preprocess(photos, self.path("ds"), keep_encoded=True, progress=False)
        want = self.batches(self.path("ds"))
        self.assertEqual((len(want), want[0][0].shape), (8, (6, 3, 16, 16)))
        self.same(self.batches(photos), want)
        with zipfile.ZipFile(self.path("photos.zip"), "w") as z:
            for i in range(20):
                name = os.path.join(("cat", "dog")[i % 2], f"{i:04}.bmp")
                z.write(os.path.join(photos, name), name)
        self.same(self.batches(self.path("photos.zip")), want)

    def test_resume_and_ranks(self):
        photos = self.photos()
        whole = self.batches(photos, epochs=1, drop_last=True)
        loader = self.loader(photos, drop_last=True)
        it = iter(loader)
        next(it)
        state = loader.state_dict()
        again = self.loader(photos, drop_last=True)
        again.load_state_dict(state)
        self.same([(a.copy(), b.copy()) for a, b in again], whole[1:])
        parts = [self.batches(photos, epochs=1, rank=r, world_size=2, drop_last=True) for r in (0, 1)]
        self.assertEqual([len(labels) for part in parts for _, labels in part], [6, 6])
        seen = {image.tobytes() for part in parts for images, _ in part for image in images}
        self.assertEqual(len(seen), 12)

    def test_splits(self):
        photos = self.photos(40)
        shares = {"train": 0.7, "val": 0.3}
        found = {s: len(np.concatenate([b for _, b in self.batches(photos, 1, splits=shares, split=s)])) for s in shares}
        self.assertEqual(sum(found.values()), 40)
        self.assertGreater(found["train"], found["val"])
        with self.assertRaisesRegex(penstock.Error, "the splits are train, val"):
            self.loader(photos, splits=shares, split="test")
        with self.assertRaisesRegex(penstock.Error, "it has no splits; give their shares"):
            self.loader(photos, split="val")
        with self.assertRaisesRegex(TypeError, "splits is 'train=1'; it is a dict of shares"):
            self.loader(photos, splits="train=1")
        for name in ("train", "val"):
            self.photos(6, os.path.join("sets", name))
        self.assertEqual(len(np.concatenate([b for _, b in self.batches(self.path("sets"), 1, split="val")])), 6)
        penstock.preprocess(photos, self.path("ds"), keep_encoded=True, progress=False)
        with self.assertRaisesRegex(penstock.Error, "the splits of a dataset are made with it"):
            self.loader(self.path("ds"), splits=shares, split="val")

    def test_errors_say_which_file_and_what_to_do(self):
        photos = self.photos()
        with open(os.path.join(photos, "dog", "0001.bmp"), "r+b") as f:
            f.truncate(100)
        with self.assertRaisesRegex(penstock.Error, "dog/0001.bmp"):
            self.batches(photos)
        self.assertEqual(sum(len(b) for _, b in self.batches(photos, 1, on_error="backfill")), 20)
        with self.assertRaisesRegex(penstock.Error, "crop|RandomResizedCrop|one size"):
            self.batches(photos, transforms=[ToTensor()])
        with self.assertRaisesRegex(penstock.Error, "raw samples have no checksums"):
            self.loader(photos, verify="always")

    def test_a_table(self):
        with open(self.path("rows.csv"), "w") as f:
            f.write("x,label\n" + "".join(f"{i / 4},{'ab'[i % 2]}\n" for i in range(50)))
        got = [(x.tolist(), y.tolist()) for x, y in penstock.DataLoader(self.path("rows.csv"), 25, output="numpy")]
        self.assertEqual(got, [([i / 4 for i in range(k, k + 25)], [i % 2 for i in range(k, k + 25)]) for k in (0, 25)])


if __name__ == "__main__":
    unittest.main()
