"""Raw samples that nobody prepared, as the dataset of a DataLoader."""

import contextlib
import functools
import glob
import http.server
import io
import os
import random
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
import unittest
import zipfile
import zlib
from unittest import mock

import numpy as np

import penstock
from penstock.transforms import RandomCrop, RandomHorizontalFlip, RandomResizedCrop, Resize, ToTensor

from . import data
from .test_writer import Writing, files, photo

setUpModule = data.name_programs


def commands():
    """Return the words of all processes, where the system shows them."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as f:
            yield f.read()


class Raw(Writing):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.settle)
        os.environ["PENSTOCK_FEED"] = data.feed()
        os.environ["PENSTOCK_PREPROCESS"] = data.preprocess()

    def settle(self):
        """Wait for the processes that prepare in the background: they end a little after their loader."""
        end = time.monotonic() + 60
        while any(self.folder.encode() in words and b"\0cache\0" in words for words in commands()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def photos(self, n=20, root="photos"):
        for i in range(n):
            folder = self.path(root, ("cat", "dog")[i % 2])
            os.makedirs(folder, exist_ok=True)
            with open(self.path("written"), "wb") as f:
                f.write(photo(i, (40 + i, 30)))
            os.replace(self.path("written"), os.path.join(folder, f"{i:04}.bmp"))  # at once, as loaders may read it
        return self.path(root)

    @contextlib.contextmanager
    def notebook(self):
        """Have progress and warnings shown as in a notebook without tqdm, and yield where."""
        modules = mock.patch.dict("sys.modules", {"ipykernel": mock.Mock(), "tqdm": None})
        with modules, mock.patch("importlib.util.find_spec", return_value=None), contextlib.redirect_stderr(io.StringIO()) as shown:
            yield shown

    def loader(self, dataset, **options):
        given = {
            "prepare": "off",
            "transforms": [RandomResizedCrop(16), RandomHorizontalFlip(), ToTensor()],
            "shuffle": True,
            "seed": 7,
            "output": "numpy",
        }
        return penstock.DataLoader(dataset, 6, **{**given, **options})

    def batches(self, dataset, epochs=2, **options):
        loader = self.loader(dataset, **options)
        return [(images.copy(), labels.copy()) for _ in range(epochs) for images, labels in loader]

    def shows(self, shown, pattern):
        """Wait for what a thread shows of the feeding process's progress, perhaps after the last batch."""
        end = time.monotonic() + 30
        while not re.search(pattern, shown.getvalue()) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertRegex(shown.getvalue(), pattern)

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

    def test_classes_need_no_dataset(self):
        loader = self.loader(self.photos(), prepare="auto", cache_dir=self.path("cache"))
        with mock.patch("penstock._engine.dataloader.open_dataset", side_effect=AssertionError("it was prepared in this process")):
            self.assertEqual(loader.classes(), ("cat", "dog"))
            self.assertEqual(loader.classes("images"), ())
            with self.assertRaisesRegex(KeyError, "batches have no field 'label'; they have images, labels"):
                loader.classes("label")
        loader.close()

    def test_classes_of_other_datasets(self):
        class Own(list):
            classes = ["cat", "dog"]

        class Unnamed(Own):
            classes = None

        for dataset, want in (([0, 1], ()), (Own([0, 1]), ("cat", "dog")), (Unnamed([0, 1]), ())):
            self.assertEqual(penstock.DataLoader(dataset, 2, output="numpy").classes(), want)

    def test_open_waits_for_a_process_that_prepares(self):
        photos, command = self.photos(), self.path("busy")
        with open(command, "w", encoding="utf-8") as f:
            f.write(
                f'#!/bin/sh\n[ -e {self.path("waited")} ] && exec {data.preprocess()} "$@"\n'
                f"touch {self.path('waited')}; echo 'preprocess: ds is busy: another process is building it in .ds' >&2; exit 1\n"
            )
        os.chmod(command, 0o755)
        with mock.patch.dict(os.environ, {"PENSTOCK_PREPROCESS": command}), penstock.open(photos, cache_dir=self.path("cache")) as ds:
            self.assertEqual((len(ds), ds.classes()), (20, ("cat", "dog")))

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
        with self.assertRaisesRegex(ValueError, "splits is.*split is None.*give split="):
            self.loader(photos, splits={"train": 0.8, "val": 0.2})
        with self.assertRaisesRegex(penstock.Error, "samples that are not prepared have no checksums"):
            self.loader(photos, verify="always")

    def test_a_table(self):
        with open(self.path("rows.csv"), "w") as f:
            f.write("x,label\n" + "".join(f"{i / 4},{'ab'[i % 2]}\n" for i in range(50)))
        got = [(x.tolist(), y.tolist()) for x, y in penstock.DataLoader(self.path("rows.csv"), 25, output="numpy", prepare="off")]
        self.assertEqual(got, [([i / 4 for i in range(k, k + 25)], [i % 2 for i in range(k, k + 25)]) for k in (0, 25)])


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the files of a folder, in ranges."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        try:
            with open(self.translate_path(self.path), "rb") as f:
                content = f.read()
        except OSError:
            return self.send_error(404)
        first, _, last = self.headers.get("Range", "bytes=0-").partition("=")[2].partition("-")
        part = content[int(first) : int(last) + 1 if last else None]
        self.send_response(206)
        self.send_header("ETag", f'"{zlib.crc32(content):08x}"')
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(part)


class TestURL(Raw):
    def test_an_archive_on_a_web_server(self):
        photos = self.photos()
        with tarfile.open(self.path("photos.tar"), "w") as tar:
            tar.add(photos, "photos")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=self.folder))
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever).start()
        url, cache = f"http://127.0.0.1:{server.server_port}/photos.tar", self.path("cache")
        want = self.batches(self.path("photos.tar"))
        self.same(self.batches(url), want)
        self.same(self.batches(url, prepare="encoded", cache_dir=cache), want)
        ds = penstock.open(url, cache_dir=cache)
        self.assertEqual((len(ds), bytes(ds["images"][3])[:2]), (20, b"BM"))
        self.assertEqual([n for n in os.listdir(os.path.join(cache, os.listdir(cache)[0])) if n.endswith(".objects")], [])
        with self.assertRaisesRegex(penstock.Error, "none.tar"):
            self.batches(url.replace("photos.tar", "none.tar"))


class TestCache(Raw):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")

    def cached(self):
        """Return the names of complete datasets in the cache."""
        found = glob.glob(os.path.join(self.cache, "penstock-*", "*", "manifest.json"))
        return sorted(os.path.basename(os.path.dirname(p)) for p in found if ".building" not in p and ".new" not in p)

    def wait(self, n):
        """Wait until there are n datasets in the cache."""
        end = time.monotonic() + 60
        while len(self.cached()) < n:
            self.assertLess(time.monotonic(), end, f"{self.cached()} in the cache")
            time.sleep(0.02)

    def generations(self):
        """Return how many generations the dataset in the cache has."""
        return len(glob.glob(os.path.join(self.cache, "penstock-*", "*", "generations", "*.json"))) or 1

    def test_batches_while_and_after_it_is_prepared(self):
        photos = self.photos()
        want = self.batches(photos, epochs=3)
        loader = self.loader(photos, prepare="auto", cache_dir=self.cache)
        got = [(a.copy(), b.copy()) for a, b in loader]
        self.wait(1)
        got += [(a.copy(), b.copy()) for _ in range(2) for a, b in loader]
        self.same(got, want)
        penstock.preprocess(photos, self.path("ds"), keep_encoded=True, progress=False)
        made = glob.glob(os.path.join(self.cache, "penstock-*", self.cached()[0]))
        self.assertEqual(files(made[0]), files(self.path("ds")))
        shares = {"train": 0.5, "val": 0.5}
        self.assertEqual(
            sum(len(b) for split in shares for _, b in self.batches(photos, 1, prepare="encoded", cache_dir=self.cache, splits=shares, split=split)),
            20,
        )
        loader = self.loader(photos, prepare="auto", cache_dir=self.cache)
        for name in os.listdir(os.path.join(photos, "cat")):  # it reads the dataset, and no file
            path = os.path.join(photos, "cat", name)
            with open(path, "r+b") as f:
                f.write(bytes(os.stat(path).st_size))
        self.same([(a.copy(), b.copy()) for _ in range(3) for a, b in loader], want)

    def test_a_source_that_changed(self):
        photos = self.photos()
        self.batches(photos, 1, prepare="encoded", cache_dir=self.cache)
        self.assertEqual(len(self.cached()), 1)
        with open(os.path.join(photos, "cat", "0000.bmp"), "wb") as f:
            f.write(photo(99, (50, 50)))
        want = self.batches(photos, 1)
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache), want)
        self.assertEqual((len(self.cached()), self.generations()), (1, 2))
        ds = penstock.open(photos, cache_dir=self.cache)
        with open(os.path.join(photos, "cat", "0000.bmp"), "rb") as f:
            self.assertEqual((len(ds), ds.source_name(0), bytes(ds["images"][0])), (20, "cat/0000.bmp", f.read()))
        self.photos(30)  # which writes all files again
        want = self.batches(photos, 1)
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache), want)
        self.assertEqual((len(self.cached()), self.generations()), (1, 1))  # that of the earlier states is removed

    def test_changes_of_the_dataset_in_the_cache(self):
        photos = self.photos()
        ds = penstock.open(photos, cache_dir=self.cache)
        for change in (lambda: ds.delete("labels = 'cat'"), lambda: ds.add_column("q", np.zeros(20)), lambda: ds.drop_columns("labels")):
            with self.assertRaisesRegex(penstock.Error, "run: penstock preprocess --keep-encoded .*photos DEST"):
                change()
        penstock.open(ds.path).delete("labels = 'cat'")  # which nobody should do
        with open(os.path.join(photos, "cat", "new.bmp"), "wb") as f:
            f.write(photo(99, (50, 50)))
        ds = penstock.open(photos, cache_dir=self.cache)
        with open(os.path.join(photos, "cat", "newer.bmp"), "wb") as f:
            f.write(photo(98, (50, 50)))
        view = penstock.open(photos, cache_dir=self.cache)  # of the next generation
        self.assertEqual((len(ds), len(view), type(view).__name__ == "Dataset"), (21, 22, False))
        for change in (lambda: view.delete("labels = 'cat'"), lambda: view.add_column("q", values=np.zeros(22)), lambda: view.restore()):
            with self.assertRaisesRegex(penstock.Error, "run: penstock preprocess --keep-encoded .*photos DEST"):
                change()
        self.assertFalse(hasattr(view, "nothing") or hasattr(view.select(slice(3)), "delete"))

    def test_splits_of_a_source_that_changed(self):
        for split in ("train", "val"):
            self.photos(10, f"photos/{split}")
        photos, options = self.path("photos"), {"prepare": "encoded", "cache_dir": self.cache, "split": "val"}
        self.batches(photos, 1, **options)
        os.remove(os.path.join(photos, "train", "dog", "0001.bmp"))
        with open(os.path.join(photos, "val", "cat", "new.bmp"), "wb") as f:
            f.write(photo(99, (50, 50)))
        self.same(self.batches(photos, 1, **options), self.batches(photos, 1, split="val"))
        ds = penstock.open(photos, split="val", cache_dir=self.cache)
        self.assertEqual((len(ds), ds.source_name(0), ds.source_name(5), self.generations()), (11, "val/cat/0000.bmp", "val/cat/new.bmp", 2))
        with self.assertRaisesRegex(KeyError, "no splits"):
            penstock.open(photos, split="test", cache_dir=self.cache)

    def test_kills_of_a_source_that_changes(self):
        """Four processes make a generation, and are killed at random moments; $PENSTOCK_TEST_KILLS says how often."""
        photos, random_ = self.photos(60), random.Random(2)
        command = [data.preprocess(), "cache", "--quiet", "--cache-dir", self.cache, "--", photos]
        subprocess.run(command, check=True)
        left, generations, renewed = int(os.environ.get("PENSTOCK_TEST_KILLS", "6")), 1, 0
        while left > 0:
            for _ in range(random_.randint(0, 3)):
                self.change(photos, random_)
            four = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
            time.sleep(random_.uniform(0, random_.choice([0.1, 0.5])))
            if random_.random() < 0.3:
                self.change(photos, random_)
            for process in random_.sample(four, 4):
                left -= process.poll() is None
                process.kill()
                process.wait()
            if random_.random() < 0.2:
                self.same(self.batches(photos, 1, prepare="auto", cache_dir=self.cache), self.batches(photos, 1))
                self.settle()
            renewed += self.generations() > generations
            generations = self.generations()
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache), self.batches(photos, 1))
        self.change(photos, random_)
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache), self.batches(photos, 1))
        self.assertEqual(len(self.cached()), 1)
        if "PENSTOCK_TEST_KILLS" in os.environ:
            print(f"{renewed} times there were new generations when the processes were killed")

    def change(self, photos, random_):
        """Change, add, remove or rename a file."""
        path = os.path.join(photos, random_.choice(["cat", "dog"]), f"{random_.randrange(60):04}.bmp")
        if not os.path.exists(path) or random_.random() < 0.5:
            with open(self.path("written"), "wb") as f:
                f.write(photo(random_.randrange(1000), (40 + random_.randrange(9), 30)))
            os.replace(self.path("written"), path)
        elif random_.random() < 0.5:
            os.remove(path)
        else:
            os.rename(path, path[: -len(".bmp")] + "x.bmp")

    def test_a_table_of_images_next_to_its_cache(self):
        photos = self.photos()
        names = sorted(os.path.relpath(p, self.folder) for p in glob.glob(os.path.join(photos, "*", "*.bmp")))
        with open(self.path("photos.csv"), "w") as f:
            f.write("image,label\n" + "".join(f"{name},{i % 3}\n" for i, name in enumerate(names)))
        want = self.batches(self.path("photos.csv"), 1)
        self.same(self.batches(self.path("photos.csv"), 1, prepare="encoded", cache_dir=self.cache), want)
        before = self.cached()
        self.assertEqual(len(before), 1)
        with open(self.path("notes.txt"), "w"):
            pass  # a file that the table does not name
        self.batches(self.path("photos.csv"), 1, prepare="encoded", cache_dir=self.cache)
        self.assertEqual(self.cached(), before)
        with open(os.path.join(self.folder, names[0]), "wb") as f:
            f.write(photo(99, (50, 50)))
        want = self.batches(self.path("photos.csv"), 1)
        self.same(self.batches(self.path("photos.csv"), 1, prepare="encoded", cache_dir=self.cache), want)
        self.assertEqual((self.cached(), self.generations()), (before, 2))
        with open(self.path("photos.csv"), "w") as f:  # rows in another order, one twice, one without its file before
            f.write("image,label\n" + "".join(f"{name},{i % 3}\n" for i, name in reversed([*enumerate(names), (1, names[1])])))
        want = self.batches(self.path("photos.csv"), 1)
        self.same(self.batches(self.path("photos.csv"), 1, prepare="encoded", cache_dir=self.cache), want)
        ds = penstock.open(self.path("photos.csv"), cache_dir=self.cache)
        self.assertEqual([ds.source_name(i) for i in (0, 20)], ["photos.csv:2", "photos.csv:22"])

    def test_a_source_that_changes_during_an_epoch(self):
        photos = self.photos(60)
        slow = self.loader(photos, prepare="auto", cache_dir=self.cache)
        it = iter(slow)
        next(it)
        self.photos(62)  # with two more files, and newer times of all
        rest = [b.copy() for _, b in it]
        self.assertEqual(sum(map(len, rest)), 54)
        want = self.batches(photos, 1)
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache), want)

    def test_a_cache_that_is_deleted_under_a_loader(self):
        photos = self.photos(60)
        want = self.batches(photos)
        self.batches(photos, 1, prepare="encoded", cache_dir=self.cache)
        for before in (True, False):  # it is complete, or being made
            loader = self.loader(photos, prepare="auto", cache_dir=self.cache)
            it = iter(loader)
            got = [tuple(x.copy() for x in next(it))]
            shutil.rmtree(self.cache, ignore_errors=not before)
            got += [(a.copy(), b.copy()) for a, b in it]
            got += [(a.copy(), b.copy()) for a, b in loader]
            self.same(got, want)
            self.settle()
        self.same(self.batches(photos, prepare="encoded", cache_dir=self.cache), want)

    def test_a_full_disk(self):
        photos = self.photos(60)
        want = self.batches(photos, 1)
        os.mkdir(self.cache)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.cache], stderr=subprocess.DEVNULL).returncode:
            print("not tested: a full disk, as a small file system cannot be mounted here")
            return
        self.addCleanup(subprocess.run, ["umount", "-l", self.cache], check=True)
        self.same(self.batches(photos, 1, prepare="auto", cache_dir=self.cache), want)
        with self.assertRaisesRegex(penstock.Error, "no space left on device"):
            self.loader(photos, prepare="encoded", cache_dir=self.cache)

    def test_records_of_the_cache_are_verified(self):
        photos = self.photos()
        for verify in ("first", "always"):
            self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache, verify=verify), self.batches(photos, 1))
        (values,) = glob.glob(os.path.join(self.cache, "*", "*", "images.values-00000.npy"))
        with open(values, "r+b") as f:
            f.seek(-100, os.SEEK_END)
            f.write(b"other bytes")
        with self.assertRaisesRegex(penstock.Error, "CRC32C"):
            self.batches(photos, 1, prepare="auto", cache_dir=self.cache, verify="always")

    def test_a_link_that_leads_nowhere(self):
        photos = self.photos()
        os.symlink("missing.bmp", os.path.join(photos, "dog", "0003a.bmp"))
        with self.assertRaisesRegex(penstock.Error, "dog/0003a.bmp.*leads nowhere"):
            self.loader(photos, prepare="encoded", cache_dir=self.cache)
        for mode in ("auto", "encoded"):
            got = self.batches(photos, 1, prepare=mode, cache_dir=self.cache, on_error="backfill")
            self.assertEqual(sum(len(b) for _, b in got), 21)

    def test_a_small_cache(self):
        photos = self.photos()
        want = self.batches(photos, 1)
        with self.assertRaisesRegex(penstock.Error, "raise the cache size"):
            self.loader(photos, prepare="encoded", cache_dir=self.cache, cache_size=1000)
        self.same(self.batches(photos, 1, prepare="auto", cache_dir=self.cache, cache_size=1000), want)
        self.loader(photos, prepare="encoded", cache_dir=self.cache, cache_size="300kB").close()
        self.loader(self.photos(30, "others"), prepare="encoded", cache_dir=self.cache, cache_size="220kB").close()
        self.assertRegex(" ".join(self.cached()), "^others-[0-9a-f]+$")

    def test_progress_in_a_notebook(self):
        photos, head = self.photos(), [Resize((20, 20)), RandomCrop(16), ToTensor()]
        for options in ({"prepare": "encoded"}, {"prepare": "pixels", "transforms": head}, {"prepare": "encoded", "on_error": "backfill"}):
            with self.notebook() as shown:
                self.assertEqual(len(self.batches(photos, 1, cache_dir=self.cache, **options)), 4)
                self.shows(shown, r"penstock: writing: 20 of 20 images \(100 %\), .*/s\n")
            shutil.rmtree(self.cache)
        os.symlink("missing.bmp", os.path.join(photos, "dog", "0003a.bmp"))
        with self.notebook() as shown:
            self.batches(photos, 1, prepare="encoded", cache_dir=self.cache, on_error="backfill")
            self.shows(shown, "penstock: .*is read as it is, as it could not be prepared.*leads nowhere")

    def test_what_cannot_be_prepared(self):
        photos = self.photos()
        with open(os.path.join(photos, "dog", "0001.bmp"), "r+b") as f:
            f.truncate(20)
        with self.assertRaisesRegex(penstock.Error, "dog/0001.bmp"):
            self.loader(photos, prepare="encoded", cache_dir=self.cache)
        self.assertEqual(sum(len(b) for _, b in self.batches(photos, 1, prepare="auto", cache_dir=self.cache, on_error="backfill")), 20)
        for policy in ("backfill", "blank"):
            self.assertEqual(sum(len(b) for _, b in self.batches(photos, 1, prepare="encoded", cache_dir=self.cache, on_error=policy)), 20)
        with self.assertRaisesRegex(penstock.Error, "0001.bmp.*every sample: repair or remove this one"):
            penstock.open(photos, cache_dir=self.cache)
        with open(self.path("file"), "w"):
            pass
        self.assertEqual(len(self.batches(self.photos(6, "good"), 1, prepare="auto", cache_dir=self.path("file"))), 1)
        penstock.preprocess(self.path("good"), self.path("ds"), keep_encoded=True, progress=False)
        for options in ({"cache_size": 1000}, {"cache_dir": self.cache}):
            with self.assertRaisesRegex(ValueError, "cache_dir and cache_size are for"):
                self.loader(self.path("ds"), **options)
            with self.assertRaises(penstock.NotFoundError):
                self.loader(self.path("dss"), **options)

    def test_the_cache_is_not_inside_the_source(self):
        photos = self.photos(6)
        for folder in ("cache", ".cache"):
            inside = os.path.join(photos, folder)
            for prepare in ("auto", "encoded", "pixels"):
                with self.assertRaisesRegex(penstock.Error, "is inside the source; choose one outside"):
                    self.loader(photos, prepare=prepare, cache_dir=inside)
            with self.assertRaisesRegex(penstock.Error, "is inside the source; choose one outside"):
                penstock.open(photos, cache_dir=inside)
            self.assertFalse(os.path.exists(inside))
        self.assertEqual(len(self.batches(photos, 1, prepare="encoded", cache_dir=photos + "-cache")), 1)

    def test_processes_share_one(self):
        photos = self.photos(60)
        loaders = [self.loader(photos, prepare="auto", cache_dir=self.cache, rank=r, world_size=4, drop_last=True) for r in range(4)]
        self.assertEqual([sum(len(b) for _, b in loader) for loader in loaders], [12, 12, 12, 12])
        self.wait(1)
        self.assertEqual(len(self.cached()), 1)

    def test_a_run_that_was_killed_is_continued(self):
        photos = self.photos(200)
        want = self.batches(photos, 1)
        for delay in (0, 0.02, 0.05, 0.1):
            loader = self.loader(photos, prepare="auto", cache_dir=self.cache)
            next(iter(loader))
            time.sleep(delay)
            loader._engine.session.child.kill()
            del loader
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache), want)
        self.assertEqual(len(self.cached()), 1)

    def test_kills(self):
        """Four processes make one dataset, and are killed at random moments; $PENSTOCK_TEST_KILLS says how often."""
        photos, random_ = self.photos(60), random.Random(1)
        want = self.batches(photos, 1)
        penstock.preprocess(photos, self.path("ds"), keep_encoded=True, progress=False)
        made = files(self.path("ds"))
        command = [data.preprocess(), "cache", "--quiet", "--cache-dir", self.cache, "--", photos]
        left, complete = int(os.environ.get("PENSTOCK_TEST_KILLS", "6")), 0
        while left > 0:
            four = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
            time.sleep(random_.uniform(0, 0.1))
            for process in random_.sample(four, 4):
                left -= process.poll() is None
                process.kill()
                process.wait()
            if self.cached():
                complete += 1
                self.assertEqual(files(glob.glob(os.path.join(self.cache, "*", self.cached()[0]))[0]), made)
                shutil.rmtree(self.cache)
            if random_.random() < 0.1:
                self.same(self.batches(photos, 1, prepare="auto", cache_dir=self.cache), want)
                self.settle()
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=self.cache), want)
        self.assertEqual(files(glob.glob(os.path.join(self.cache, "*", self.cached()[0]))[0]), made)
        left_over = [n for n in os.listdir(os.path.join(self.cache, os.listdir(self.cache)[0])) if ".new" in n and not n.endswith(".lock")]
        self.assertEqual(left_over, [])
        if "PENSTOCK_TEST_KILLS" in os.environ:
            print(f"{complete} datasets were complete when their processes were killed")

    def test_a_hostile_cache_folder(self):
        photos = self.photos()
        want = self.batches(photos, 1)
        penstock.open(photos, cache_dir=self.cache)
        folder = os.path.join(self.cache, os.listdir(self.cache)[0])
        self.assertEqual(os.stat(folder).st_mode & 0o077, 0)  # no other user reads it
        name = self.cached()[0]
        folders = ("", ".new", ".objects", ".states")
        for ending in (*folders, ".source.json", ".used", ".changing"):
            shutil.rmtree(folder)
            os.mkdir(folder, 0o700)
            outside = self.path("outside")
            os.makedirs(outside, exist_ok=True)
            with open(os.path.join(outside, "precious"), "w") as f:
                f.write("precious")
            os.symlink(outside if ending in folders else os.path.join(outside, "precious"), os.path.join(folder, name + ending))
            self.same(self.batches(photos, 1, prepare="auto", cache_dir=self.cache), want)
            self.settle()
            penstock_cache = subprocess.run(
                [data.preprocess(), "cache", "--quiet", "--cache-dir", self.cache, photos], stderr=subprocess.PIPE, text=True
            )
            self.assertIn(penstock_cache.returncode, (0, 1))
            with open(os.path.join(outside, "precious")) as f:
                self.assertEqual((ending, f.read()), (ending, "precious"))
            self.assertEqual((ending, os.listdir(outside)), (ending, ["precious"]))
        shutil.rmtree(folder)
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        with self.assertRaisesRegex(penstock.Error, "others may use it"):
            self.loader(photos, prepare="encoded", cache_dir=self.cache)

    def test_a_second_user_of_the_host(self):
        """Another user reads nothing of a shared cache folder, has a cache there, too, and gains nothing by planted folders and links."""
        if not hasattr(os, "geteuid") or os.geteuid() != 0:
            print("not tested: a second user of the host, as only root can run programs for others")
            return
        other = 65534  # nobody
        shared = tempfile.mkdtemp(prefix="penstock-shared-")
        self.addCleanup(shutil.rmtree, shared)
        os.chmod(shared, 0o1777)
        photos = shutil.copytree(self.photos(), os.path.join(shared, "photos"))
        program = shutil.copy(data.preprocess(), os.path.join(shared, "preprocess"))
        os.chmod(program, 0o755)

        def theirs(*words):
            return subprocess.run(
                words, user=other, group=other, extra_groups=[], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )

        want, cache = self.batches(photos, 1), os.path.join(shared, "cache")
        os.mkdir(cache)
        os.chmod(cache, 0o1777)
        self.same(self.batches(photos, 1, prepare="encoded", cache_dir=cache), want)
        mine = os.path.join(cache, "penstock-0")
        for path, _, names in os.walk(mine):
            for name in ("", *names):
                self.assertNotEqual(theirs("cat" if name else "ls", os.path.join(path, name)).returncode, 0, os.path.join(path, name))
        made = theirs(program, "cache", "--quiet", "--cache-dir", cache, photos)
        self.assertEqual((made.returncode, sorted(os.listdir(cache))), (0, ["penstock-0", f"penstock-{other}"]), made.stdout)

        secret = os.path.join(shared, "secret")
        os.mkdir(secret, 0o700)
        for planted in (("mkdir", "-m", "700"), ("mkdir", "-m", "777"), ("ln", "-s", secret), ("ln", "-s", f"{cache}/penstock-{other}")):
            shutil.rmtree(mine)
            self.assertEqual(theirs(*planted, mine).returncode, 0)
            self.same(self.batches(photos, 1, prepare="auto", cache_dir=cache), want)
            with self.assertRaisesRegex(penstock.Error, "another user|symbolic link"):
                self.loader(photos, prepare="encoded", cache_dir=cache)
            self.assertEqual(os.listdir(secret), [])
            self.assertEqual(theirs("rm", "-r", mine).returncode, 0)
            os.mkdir(mine, 0o700)

    def test_open(self):
        photos = self.photos()
        ds = penstock.open(photos, cache_dir=self.cache)
        self.assertEqual((len(ds), ds.source_name(0)), (20, "cat/0000.bmp"))
        with open(os.path.join(photos, "cat", "0000.bmp"), "rb") as f:
            self.assertEqual(bytes(ds["images"][0]), f.read())
        self.assertEqual(ds[19]["labels"], 1)
        self.assertEqual(len(self.cached()), 1)
        listed = subprocess.run([data.penstock(), "cache", "list", "--cache-dir", self.cache], check=True, text=True, stdout=subprocess.PIPE).stdout
        want = rf"photos-\w+\n  {re.escape(photos)}\n  fields: images, labels\n  20 records, [\d.]+ KiB, files, complete, used 2\S+ \S+\n"
        self.assertRegex(listed, f"^{want}$")
        os.mkdir(self.path("empty"))
        with self.assertRaisesRegex(penstock.Error, "holds no images"):
            penstock.open(self.path("empty"), cache_dir=self.cache)
        with open(self.path("words.h5"), "w") as f:
            f.write("words")
        with self.assertRaises(penstock.Error):
            penstock.open(self.path("words.h5"), cache_dir=self.cache)
        for name, want in (
            ("none.h5::data/*", "none.h5::data/*: no such file or folder"),
            ("none*.h5", "source none*.h5: no file matches"),
            ("word*.h5", "source words.h5: not an HDF5 file: it has no HDF5 signature at byte 0, 512, 1024, ..."),
        ):
            with self.assertRaises(penstock.Error) as e:
                penstock.open(self.path(name), cache_dir=self.cache)
            self.assertEqual(str(e.exception).replace(self.path(""), ""), want)


if __name__ == "__main__":
    unittest.main()
