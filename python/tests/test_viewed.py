import contextlib
import copy
import gc
import mmap
import os
import pickle
import random
import shutil
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import penstock
from penstock import samplers
from penstock._engine import viewed
from penstock._engine.shared import Rows

from . import data
from .test_dataloader import indices, loader
from .test_loops import Interrupt

try:
    import torch
except ImportError:
    torch = None

setUpModule = data.name_programs

#: Records of 480 bytes and a label, in several shards: batches of 200 are worth a mapping.
NAME, RECORDS, BATCH = "images", 1500, 200


def copying():
    """Have loaders that are made get copies of all batches."""
    return mock.patch.dict(os.environ, {"PENSTOCK_TRANSPORT": "portable"})


def contents(batches):
    return [(b.epoch, b.step, b.indices.tolist(), b.mask.tolist(), {name: (v.dtype, v.shape, v.tobytes()) for name, v in b.items()}) for b in batches]


def viewed_of(dl):
    return dl.stats()["viewed"]


@unittest.skipUnless(data.NATIVE, "only the native transport passes files")
class ViewedTest(data.Copied):
    """Batches over the files of a dataset."""

    def test_in_order_nothing_is_copied(self):
        whole = self.whole()
        for output in ("numpy", "torch") if torch else ("numpy",):
            with self.subTest(output=output), penstock.DataLoader(whole, BATCH, output=output, command=data.feed()) as dl:
                for _ in range(3):
                    for batch in dl:
                        np.asarray(batch["images"])[:] = 7  # which nobody else sees
                stats = dl.stats()
                self.assertEqual((stats["viewed"], stats["copied"], stats["loader"]["CopiedBytes"]), (3 * len(dl), 0, 0))
                self.assertLessEqual(stats["shared"], 17 * 4096)  # positions, and a page of each of at most 16 slots
        with penstock.DataLoader(whole, BATCH, output="numpy", command=data.feed()) as dl:
            got = contents(dl)
        with copying(), penstock.DataLoader(whole, BATCH, output="numpy", command=data.feed()) as dl:
            self.assertTrue(got == contents(dl))
            self.assertEqual(viewed_of(dl), 0)

    def whole(self):
        """Return the dataset in one shard, so that no batch is in two, with the numbers of records as labels."""
        path = os.path.join(tempfile.mkdtemp(prefix="penstock-python-"), "whole")
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        ds = penstock.open(data.path(NAME))
        with penstock.Writer(path, [ds.fields["images"], penstock.Field("labels", "int32", ())]) as w:
            w.extend({**ds[i], "labels": i} for i in range(RECORDS))
        return path

    def test_as_copies(self):
        """The same batches, whatever is asked for."""
        n = int(os.environ.get("PENSTOCK_TEST_VIEWED", "5"))
        choose = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", "5")))
        changed = self.whole()
        penstock.open(changed).delete("labels >= 300 and labels < 310")
        views = 0
        for k in range(n):
            world = choose.choice((1, 1, 3))
            options = {
                "drop_last": choose.random() < 0.5, "rank": choose.randrange(world), "world_size": world, "seed": k,
                "verify": choose.choice(("off", "first", 0.3)), "prefetch_factor": choose.choice((None, 1, 4)),
                "num_workers": choose.choice((None, 1, 3)), "on_error": choose.choice(("fail", "backfill", "blank")),
                "sampler": choose.choice((
                    None, None, samplers.Shuffle(), samplers.Block(choose.randrange(100, 400)),
                    samplers.Subset(range(choose.randrange(500), 1400)), samplers.Sequential(),
                )),
            }  # fmt: skip
            name = choose.choice((data.path(NAME), data.path(NAME), changed, [data.path(NAME), data.path(NAME)]))
            if options["sampler"] is None and choose.random() < 0.3:
                options["filters"] = [("labels", ">=", 0)]
            batch_size, stop = choose.randrange(140, 400), choose.randrange(6)
            with self.subTest(k=k, name=name, batch_size=batch_size, stop=stop, **options):
                got = []
                with penstock.DataLoader(name, batch_size, output="numpy", command=data.feed(), **options) as dl:
                    for i, batch in enumerate(dl):
                        got += contents([batch])
                        for v in batch.values():
                            v[...] = 1
                        if i == stop:
                            break
                    state = dl.state_dict()
                    views += viewed_of(dl)
                with penstock.DataLoader(name, batch_size, output="numpy", command=data.feed(), **options) as dl:
                    dl.load_state_dict(state)
                    got += contents(dl)
                    if state["epoch"] == 0:
                        got += contents(dl)
                    views += viewed_of(dl)
                with copying(), penstock.DataLoader(name, batch_size, output="numpy", command=data.feed(), **options) as dl:
                    want = contents(dl) + contents(dl)
                self.assertEqual([b[:3] for b in got], [b[:3] for b in want])
                self.assertTrue(got == want, "other values")
        self.assertGreater(views, n)

    def test_what_is_written_stays_there(self):
        """Not in the file, nor in the next batch on the same page, nor in the next epoch."""
        want = penstock.open(data.path(NAME))["images"][:]
        with loader(NAME, BATCH) as dl:
            held = []
            for _ in range(2):
                for batch in dl:
                    np.testing.assert_array_equal(batch["images"], want[batch.indices])
                    batch["images"][...] = batch.step
                    held.append(batch)
            for batch in held:
                self.assertEqual(np.unique(batch["images"]).tolist(), [batch.step])
        np.testing.assert_array_equal(penstock.open(data.path(NAME))["images"][:], want)

    def test_batches_that_are_kept(self):
        """They outlive the loader, and take neither slots nor a descriptor each."""
        want = penstock.open(data.path(NAME))["images"][:]
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        with mock.patch.object(viewed, "_WINDOW", 1 << 16), mock.patch.object(viewed, "_MOST", 8), loader(NAME, BATCH) as dl:
            batches = [b for _ in range(5) for b in dl]
            self.assertLess(len(os.listdir("/proc/self/fd")), before + 24)
            copied = sum(isinstance(b["images"].base, bytearray) for b in batches)
            self.assertGreater(copied, 0)
            self.assertGreaterEqual(dl.stats()["copied"], copied)
            self.assertEqual(dl.stats()["viewed"], sum(isinstance(b["images"].base, mmap.mmap) for b in batches))
        first = batches[0]
        copies = [copy.deepcopy(first), pickle.loads(pickle.dumps(first)), copy.copy(first)]
        for batch in (*batches, *copies):
            np.testing.assert_array_equal(batch["images"], want[batch.indices])
        child = os.fork()
        if child == 0:
            os._exit(0 if (first["images"] == want[:BATCH]).all() and first.indices[3] == 3 and first.mask.all() else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        del batches, batch, first, copies
        gc.collect()
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before)

    def test_no_room_for_a_mapping(self):
        want = penstock.open(data.path(NAME))["images"][:]
        with loader(NAME, BATCH) as dl, mock.patch.object(viewed._File, "map", side_effect=OSError) as tried:
            for batch in dl:
                np.testing.assert_array_equal(batch["images"], want[batch.indices])
            self.assertEqual(dl.stats()["viewed"], 0)
            self.assertGreater(dl.stats()["copied"], 0)
        self.assertGreater(tried.call_count, 0)

    def test_a_file_is_closed_without_code_of_python(self):
        """An interrupt (Ctrl-C) in such code would be lost."""
        files = viewed.Files()
        descriptor = os.open(os.path.join(data.path(NAME), "images-00000.npy"), os.O_RDONLY)
        files.add(1, "f", descriptor)
        array = files.array(0, 1, 4096, Rows(np.dtype(np.uint8)), 100)
        ran = []
        sys.setprofile(lambda frame, event, _: ran.append(frame.f_code.co_name) if event == "call" else None)
        del files, array
        sys.setprofile(None)
        self.assertEqual(ran, [])
        with self.assertRaises(OSError):
            os.fstat(descriptor)

    def test_a_pickled_loader_continues(self):
        with loader(NAME, BATCH) as dl:
            batches = iter(dl)
            next(batches)
            next(batches)
            with pickle.loads(pickle.dumps(dl)) as again:
                self.assertEqual(again.state_dict(), dl.state_dict())
                self.assertEqual(indices(again), indices(batches))
                self.assertEqual([b.epoch for b in again], [1] * len(again))

    def test_a_truncated_file(self):
        copied = self.copy(NAME)
        file = os.path.join(copied, "images-00000.npy")
        with penstock.DataLoader(copied, BATCH, output="numpy", command=data.feed()) as dl:
            batches = iter(dl)
            next(batches)
            os.truncate(file, 4096 + 480 * BATCH)
            with self.assertRaisesRegex(penstock.Error, "images-00000.npy.*truncated") as caught:
                for _ in batches:
                    pass
                for _ in dl:
                    pass
            self.assertNotIn("goroutine", str(caught.exception))

    def test_a_file_that_another_program_rewrites(self):
        """Batches of it are copies, which stay as they are."""
        folder = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, folder)
        file, values = os.path.join(folder, "x.npy"), np.arange(60 * 4096, dtype=np.float32).reshape(60, 4096)
        np.save(file, values)
        with penstock.DataLoader(file, 8, output="numpy", command=data.feed()) as dl:
            held = list(dl)
            stats = dl.stats()
        self.assertEqual(stats["viewed"], 0)
        np.save(file, -values)
        for batch in held:
            np.testing.assert_array_equal(batch["x"], values[batch.indices])
        np.save(file, values[:1])
        for batch in held:
            np.testing.assert_array_equal(batch["x"], values[batch.indices])

    def test_a_removed_dataset(self):
        """Its files stay as long as they are in use, as of any reader."""
        copied = self.copy(NAME)
        with penstock.DataLoader(copied, BATCH, output="numpy", command=data.feed()) as dl:
            want = contents(dl)
            shutil.rmtree(copied)
            os.mkdir(copied)
            dl.load_state_dict({**dl.state_dict(), "epoch": 0, "step": 0})
            self.assertTrue(contents(dl) == want)

    def test_who_gets_copies(self):
        with loader(NAME, 20) as dl:  # as small ones cost less
            list(dl)
            self.assertEqual(viewed_of(dl), 0)
        with loader(NAME, BATCH, transforms=[penstock.transforms.ToTensor()]) as dl:
            list(dl)
            self.assertEqual(viewed_of(dl), 0)
        with loader(NAME, BATCH, in_order=False) as dl:
            list(dl)
            self.assertEqual(viewed_of(dl), 0)
        with loader(NAME, BATCH, pin_memory=True) as dl, contextlib.suppress(ImportError):
            list(dl)
            self.assertEqual(viewed_of(dl), 0)

    def test_an_interrupt_at_each_line(self):
        want = [list(range(first, min(first + BATCH, RECORDS))) for first in range(0, RECORDS, BATCH)]
        values = penstock.open(data.path(NAME))["images"][:]
        with loader(NAME, BATCH, num_workers=1, timeout=200) as dl:
            k = 0
            while True:
                dl.load_state_dict({**dl.state_dict(), "epoch": k, "step": 0})
                interrupt = Interrupt(k)
                with interrupt:
                    for _, batch in zip(range(5), dl):
                        pass
                at = dl.state_dict()
                with self.subTest(at=k, where=interrupt.where):
                    got = list(dl)
                    self.assertEqual(indices(got), want[at["step"] if got[0].epoch == k else 0 :])
                    for batch in got:
                        np.testing.assert_array_equal(batch["images"], values[batch.indices])
                if interrupt.where is None:
                    break
                k += 31
            self.assertGreater(k, 100)


if __name__ == "__main__":
    unittest.main()
