"""Raw samples whose cache stores the results of fixed transforms, and how that is chosen."""

import glob
import json
import os
import random
import subprocess
import time
import unittest

import numpy as np

import penstock
from penstock.transforms import (  # fmt: skip
    CenterCrop,
    ColorJitter,
    Grayscale,
    Normalize,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    Resize,
    ToTensor,
)

from . import data, test_raw
from .test_writer import files, photo

try:
    import h5py
except ImportError:
    h5py = None

setUpModule = data.name_programs

MODES = ("encoded", "pixels", "auto")
FIXED = [Resize(24), CenterCrop(20), RandomCrop(16), RandomHorizontalFlip(), ToTensor()]


class Pixels(test_raw.Raw):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")

    def run_of(self, dataset, mode, epochs=1, **options):
        return self.batches(dataset, epochs, **{"transforms": FIXED, "cache_dir": None if mode == "off" else self.cache, "prepare": mode, **options})

    def entries(self):
        """Return what `penstock cache list --json` prints."""
        listed = subprocess.run([data.penstock(), "cache", "list", "--json", "--cache-dir", self.cache], check=True, stdout=subprocess.PIPE)
        return json.loads(listed.stdout)

    def run_until(self, n, dataset, **options):
        """Run an epoch with prepare="auto" until n datasets are complete; return the batches and these datasets."""
        loader = self.loader(dataset, **{"transforms": FIXED, "prepare": "auto", "cache_dir": self.cache, **options})
        got = [(a.copy(), b.copy()) for a, b in loader]
        found = self.wait(n)
        loader.close()
        return got, found

    def wait(self, n=1):
        """Wait until n datasets are complete, and return them."""
        end = time.monotonic() + 60
        while sum(e["ready"] for e in self.entries()) < n:
            self.assertLess(time.monotonic(), end, self.entries())
            time.sleep(0.02)
        self.settle()
        return [e for e in self.entries() if e["ready"]]


class TestPixels(Pixels):
    def test_batches_are_those_of_any_preparation(self):
        """$PENSTOCK_TEST_PIPELINES says how many random pipelines are tried."""
        photos, random_ = self.photos(20), random.Random(3)
        fixed = [lambda: Grayscale(3), lambda: Pad(2), lambda: Resize(30), lambda: RandomHorizontalFlip()]
        sized = [lambda: Resize((24, 28)), lambda: CenterCrop(26), lambda: Resize(26)]
        tails = [
            lambda: RandomCrop(16),
            lambda: RandomResizedCrop(16),
            lambda: RandomRotation(20),
            lambda: ColorJitter(0.4),
            lambda: RandomHorizontalFlip(),
        ]
        pixels = 0
        for _ in range(int(os.environ.get("PENSTOCK_TEST_PIPELINES", "3"))):
            steps = [random_.choice(fixed)() for _ in range(random_.randrange(2))] + [
                random_.choice(sized)(),
                *random_.sample([f() for f in tails], 2),
                RandomCrop(12),
            ]
            steps += random_.choice([[], [ToTensor()], [ToTensor(), Normalize([0.5] * 3, [0.2] * 3)]])
            want = self.run_of(photos, "off", transforms=steps)
            for mode in MODES:
                with self.subTest(str(steps), mode=mode):
                    try:
                        self.same(self.run_of(photos, mode, transforms=steps), want)
                        pixels += mode == "pixels"
                    except penstock.Error as e:
                        self.assertEqual(mode, "pixels", e)
                        self.assertRegex(str(e), "put a Resize to height and width")
            self.settle()
        self.assertGreater(pixels, 0)

    def test_the_dataset_is_that_of_preprocess(self):
        photos = self.photos()
        want = self.run_of(photos, "off", epochs=2)
        self.same(self.run_of(photos, "pixels", epochs=2), want)
        penstock.preprocess(photos, self.path("ds"), resize=24, crop=20, progress=False)
        (entry,) = self.entries()
        self.assertEqual(files(entry["path"]), files(self.path("ds")))
        self.same(self.run_of(photos, "encoded", epochs=2), want)
        self.assertEqual(len(self.entries()), 2)  # neither takes the place of the other
        steps = json.dumps([{"op": "Resize", "size": 24}, {"op": "CenterCrop", "size": 20}])
        subprocess.run([data.preprocess(), "cache", "--quiet", "--cache-dir", self.cache, "--head", steps, photos], check=True)
        self.assertEqual(len(self.entries()), 2)

    def test_a_source_that_changed(self):
        photos = self.photos()
        self.run_of(photos, "pixels")
        with open(os.path.join(photos, "cat", "0000.bmp"), "wb") as f:
            f.write(photo(99, (50, 50)))
        os.remove(os.path.join(photos, "dog", "0001.bmp"))
        self.same(self.run_of(photos, "pixels"), self.run_of(photos, "off"))
        (entry,) = self.entries()
        self.assertEqual(len(glob.glob(os.path.join(entry["path"], "generations", "*.json"))), 2)
        self.photos(30)  # which writes all files again
        self.same(self.run_of(photos, "pixels"), self.run_of(photos, "off"))
        self.assertEqual(len(self.entries()), 1)

    def test_states_do_not_depend_on_the_preparation(self):
        photos = self.photos()
        whole = self.run_of(photos, "off", drop_last=True)
        loader = self.loader(photos, transforms=FIXED, drop_last=True)
        next(iter(loader))
        state = loader.state_dict()
        for mode in MODES:
            again = self.loader(photos, transforms=FIXED, drop_last=True, prepare=mode, cache_dir=self.cache)
            self.assertEqual(again.state_dict(), self.loader(photos, transforms=FIXED, drop_last=True).state_dict())
            again.load_state_dict(state)
            self.same([(a.copy(), b.copy()) for a, b in again], whole[1:])
        self.settle()

    def test_refusals(self):
        photos = self.photos()
        for steps, said in (
            ([RandomResizedCrop(16), ToTensor()], 'begins with RandomResizedCrop, which draws at random; put a Resize.*prepare="encoded"'),
            ([Resize(24), RandomCrop(16)], "images have several sizes before RandomCrop.*put a Resize to height and width"),
            ([Resize((24, 24)), lambda x: x], "have a function of yours"),
        ):
            with self.assertRaisesRegex(penstock.Error, said):
                self.run_of(photos, "pixels", transforms=steps)
        with self.assertRaisesRegex(penstock.Error, "has no transforms"):
            self.run_of(photos, "pixels", transforms=None)
        with self.assertRaisesRegex(ValueError, 'it is "auto", "pixels", "encoded" or "off"'):
            self.run_of(photos, "smaller")
        penstock.preprocess(photos, self.path("ds"), keep_encoded=True, progress=False)
        with self.assertRaisesRegex(penstock.Error, "for raw samples, and .*ds is a dataset; leave prepare out"):
            penstock.DataLoader(self.path("ds"), 6, transforms=FIXED, prepare="pixels", output="numpy")
        with self.assertRaisesRegex(penstock.Error, "raise the cache size"):
            self.run_of(photos, "pixels", cache_size=1000)

    def test_orders_and_errors_that_depend_on_files(self):
        photos = self.photos()
        order = {"sampler": penstock.samplers.Bucket(4), "shuffle": None}
        self.same(self.run_of(photos, "auto", **order), self.run_of(photos, "off", **order))
        with self.assertRaisesRegex(penstock.Error, 'depend on the lengths of records of the field "images"'):
            self.run_of(photos, "pixels", **order)
        with open(os.path.join(photos, "dog", "0001.bmp"), "r+b") as f:
            f.truncate(2000)
        with self.assertRaisesRegex(penstock.Error, "dog/0001.bmp"):
            self.run_of(photos, "auto")
        for policy in ("backfill", "blank"):
            self.same(self.run_of(photos, "auto", on_error=policy), self.run_of(photos, "off", on_error=policy))

    def test_kills(self):
        """Four processes make one dataset, and are killed at random moments; $PENSTOCK_TEST_KILLS says how often."""
        photos, random_ = self.photos(60), random.Random(1)
        want = self.run_of(photos, "off")
        penstock.preprocess(photos, self.path("ds"), resize=24, crop=20, progress=False)
        made = files(self.path("ds"))
        steps = json.dumps([{"op": "Resize", "size": [24]}, {"op": "CenterCrop", "size": [20]}])
        command = [data.preprocess(), "cache", "--quiet", "--cache-dir", self.cache, "--head", steps, "--", photos]
        left = int(os.environ.get("PENSTOCK_TEST_KILLS", "6"))
        while left > 0:
            four = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
            time.sleep(random_.uniform(0, 0.1))
            for process in random_.sample(four, 4):
                left -= process.poll() is None
                process.kill()
                process.wait()
            if random_.random() < 0.2:
                self.same(self.run_of(photos, "auto"), want)
                self.settle()
        self.same(self.run_of(photos, "pixels"), want)
        (entry,) = [e for e in self.entries() if e["ready"]]
        self.assertEqual(files(entry["path"]), made)


class TestChoice(Pixels):
    def test_it_is_reported(self):
        photos = self.photos()
        want = self.run_of(photos, "off", epochs=2)
        loader = self.loader(photos, transforms=FIXED, prepare="auto", cache_dir=self.cache)
        got = [(a.copy(), b.copy()) for a, b in loader]
        self.wait()
        got += [(a.copy(), b.copy()) for a, b in loader]
        self.same(got, want)  # it is used from the middle on
        (prepared,) = loader.stats()["prepared"]
        self.assertEqual((prepared["source"], prepared["field"], prepared["stored"]), (photos, "images", "pixels"))
        self.assertRegex(loader.diagnose(), "stores pixels: all pixels take 23.4 KiB, and stay in memory")

    @unittest.skipIf(h5py is None, "there is no h5py")
    def test_image_files_in_an_array(self):
        path, rng = self.path("photos.h5"), np.random.default_rng(0)
        with h5py.File(path, "w") as f:
            images = f.create_dataset("images", (20,), h5py.vlen_dtype("u1"))
            for i in range(20):
                images[i] = np.frombuffer(photo(i, (40 + i, 30)), "u1")
            f["labels"] = rng.integers(0, 5, 20)
            f["other"] = rng.random(7)  # of another length, so that only named fields can be loaded
        fields = {"fields": ["images", "labels"], "split": "a", "splits": {"a": 0.5, "b": 0.5}}
        want = self.run_of(path, "off", epochs=2, **fields)
        got, (entry,) = self.run_until(1, path, **fields)
        self.same(got, want[: len(got)])
        self.assertEqual((entry["source"], entry["fields"]), (path, "images,labels"))
        loader = self.loader(path, transforms=FIXED, prepare="auto", cache_dir=self.cache, **fields)
        self.same([(a.copy(), b.copy()) for _ in range(2) for a, b in loader], want)
        self.assertEqual(loader.stats()["prepared"][0]["stored"], "pixels")
        for mode in ("encoded", "pixels"):
            self.same(self.run_of(path, mode, epochs=2, **fields), want)
        self.assertEqual(sorted(bool(e.get("transforms")) for e in self.entries()), [False, True])

    def test_processes_choose_the_same(self):
        photos = self.photos(40)
        loaders = [
            self.loader(photos, transforms=FIXED, prepare="auto", cache_dir=self.cache, rank=r, world_size=3, drop_last=True) for r in range(3)
        ]
        prepared = [loader.stats()["prepared"] for loader in loaders]
        self.assertEqual(prepared, [prepared[0]] * 3)
        self.wait()

    def test_pixels_without_room(self):
        photos = self.photos()
        for size, stored in (
            ("1MB", "files: pixels would take 2.3 MiB, more than the size of the cache"),
            ("100MB", "pixels: all pixels take 2.3 MiB"),
        ):
            loader = self.loader(photos, transforms=[Resize((200, 200)), RandomCrop(16)], prepare="auto", cache_dir=self.cache, cache_size=size)
            self.assertIn("stores " + stored, loader.diagnose())
            loader.close()
            self.settle()

    def test_pixels_that_cannot_be_made(self):
        photos = self.photos()
        with open(os.path.join(photos, "dog", "deep.pgm"), "wb") as f:  # which preprocess does not mix with images of 8 bits
            f.write(b"P5 40 30 65535\n" + bytes(range(240)) * 10)
        want = self.run_of(photos, "off")
        with self.notebook() as shown:
            loader = self.loader(photos, transforms=FIXED, prepare="auto", cache_dir=self.cache)
            self.shows(shown, r'dog/deep.pgm: has 1 channel of uint16.*prepare="encoded" stores files')
            self.same([(a.copy(), b.copy()) for a, b in loader], want)
        self.same(self.run_of(photos, "encoded"), want)


if __name__ == "__main__":
    unittest.main()
