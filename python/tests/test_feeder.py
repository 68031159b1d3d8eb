import gc
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np

import penstock

from . import data

try:
    import torch

    import penstock.torch as pt
except ImportError:
    torch = None


def feeder(name, batch_size, **options):
    return penstock.Feeder(data.path(name), batch_size, command=data.feed(), **options)


def maps(pid, what):
    """Return the mappings of a process that name something."""
    gc.collect()  # another test's, in cycles
    with open(f"/proc/{pid}/maps") as f:
        return [line for line in f if what in line]


def memfds(pid):
    """Return the shared memories that a process has mapped."""
    return maps(pid, "memfd:penstock")


def gone(pid, seconds=300.0):
    """Wait until there is no such process, or only its exit code is left of it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


@unittest.skipIf(sys.platform != "linux", "a Feeder needs Linux")
class FeederTest(data.Copied):
    def assert_equal(self, batch, want):
        for name, values in want.arrays.items():
            got = batch[name]
            if isinstance(values, penstock.Ragged):
                np.testing.assert_array_equal(got.offsets, values.offsets)
                got, values = got.values, values.values
            self.assertEqual((got.dtype, got.shape), (values.dtype, values.shape))
            self.assertEqual(got.tobytes(), values.tobytes(), name)

    def test_every_type_in_the_order_of_go(self):
        for name, batch_size in (("types", 700), ("ragged", 64), ("large", 7)):
            ds = penstock.open(data.path(name))
            with feeder(name, batch_size, shuffle=True, seed=5, epochs=2) as f:
                self.assertEqual(list(f.fields), list(ds.fields))
                self.assertEqual(f.records, len(ds))
                for epoch in range(2):
                    batches = penstock.order.Batches(len(ds), batch_size, seed=5)
                    batches.set_epoch(epoch)
                    self.assertEqual(len(f), len(batches))
                    steps = 0
                    for batch, indices in zip(f, batches):
                        self.assertEqual((batch.epoch, batch.step), (epoch, steps))
                        np.testing.assert_array_equal(batch.indices, indices)
                        self.assertTrue(batch.valid.all())
                        self.assert_equal(batch, ds[indices])
                        steps += 1
                    self.assertEqual(steps, len(batches))
                self.assertEqual(list(f), [])

    def test_text_and_splits(self):
        ds = penstock.open(data.path("ragged"), split="val", fields=["caption", "labels"])
        with feeder("ragged", 50, split="val", fields=["caption", "labels"], epochs=1) as f:
            texts = [text for batch in f for text in batch["caption"]]
        self.assertEqual(texts, list(ds["caption"]))

    def test_normalised(self):
        for name in ("images", "pixels"):
            want = data.expected_floats(name, "images")
            with feeder(name, 64, normalize=True, epochs=1) as f:
                self.assertTrue(f.fields["images"].normalization.applied)
                got = np.concatenate([batch["images"].copy() for batch in f])
            np.testing.assert_array_equal(got.ravel(), want)

    def test_flipped(self):
        for name, axis in (("images", 3), ("pixels", 2)):
            ds = penstock.open(data.path(name))
            flips = []
            with feeder(name, 64, flip=True, seed=3, epochs=1) as f:
                for batch in f:
                    plain = ds["images"][batch.indices]
                    mirrored = np.flip(plain, axis)
                    for k, image in enumerate(batch["images"]):
                        flips.append(np.array_equal(image, mirrored[k]))
                        self.assertTrue(flips[-1] or np.array_equal(image, plain[k]))
            self.assertGreater(sum(flips), len(ds) // 4)
            self.assertLess(sum(flips), len(ds) * 3 // 4)

    def test_ranks(self):
        ds = penstock.open(data.path("images"))
        with feeder("images", 128, epochs=1) as f:
            whole = [batch.indices.copy() for batch in f]
        parts = []
        for rank in range(2):
            with feeder("images", 64, epochs=1, rank=rank, world=2) as f:
                parts.append([(batch.indices[batch.valid], batch["labels"][batch.valid]) for batch in f])
        for step, want in enumerate(whole):
            np.testing.assert_array_equal(np.concatenate([p[step][0] for p in parts]), want)
            np.testing.assert_array_equal(np.concatenate([p[step][1] for p in parts]), ds["labels"][want])

    def test_resume_at_every_batch(self):
        options = {"shuffle": True, "seed": 9, "flip": True, "normalize": True, "epochs": 2}
        states, batches = [], []
        with feeder("images", 400, **options) as f:
            states.append(f.state())
            for _ in range(2):
                for batch in f:
                    batches.append((batch.epoch, batch.step, batch["images"].tobytes()))
                    states.append(json.loads(json.dumps(f.state())))
        self.assertEqual(len(batches), 8)
        for k, state in enumerate(states):
            with feeder("images", 400, state=state, workers=2, ahead=2, **options) as f:
                rest = [(b.epoch, b.step, b["images"].tobytes()) for _ in range(2) for b in f]
            self.assertEqual(rest, batches[k:])
        with self.assertRaisesRegex(penstock.Error, "another seed: 9, now 8"):
            feeder("images", 400, state=states[1], **{**options, "seed": 8})

    def test_a_loop_that_was_left_goes_on(self):
        with feeder("images", 100, epochs=1) as f:
            for batch in f:
                if batch.step == 4:
                    break
            self.assertEqual([b.step for b in f], list(range(5, 15)))

    def test_memory_is_not_reused_while_referred_to(self):
        with feeder("images", 50, shuffle=True, ahead=3) as f:
            batch = next(iter(f))
            kept, want = batch["images"][3], batch["images"][3].copy()
            del batch
            for epoch in range(2):
                for batch in f:
                    batch["images"][...] = 1  # it is the trainer's
                np.testing.assert_array_equal(kept, want)
            del batch
            seen = [b["images"][0] for _, b in zip(range(2), f)]
            with self.assertRaisesRegex(penstock.Error, "all 3 batches .* raise ahead"):
                for batch in f:
                    seen.append(batch["images"])
            before = kept.copy()
        np.testing.assert_array_equal(kept, before)  # also after the feeder

    def test_no_more_than_asked_for(self):
        with feeder("images", 50, ahead=4) as f:
            batch = next(iter(f))
            end = time.monotonic() + 300
            while f.stats()["loader"]["Batches"] < 5 and time.monotonic() < end:
                time.sleep(0.01)
            for _ in range(20):  # four are here, and one waits for its place
                stats = f.stats()
                self.assertEqual((stats["loader"]["Batches"], stats["loader"]["Kept"]), (5, 4))
            shared = stats["shared"]
            self.assertTrue(stats["direct"] and stats["watched"])
            self.assertEqual((batch.epoch, batch.step), (0, 0))
            for _ in range(3):
                for batch in f:
                    pass
            self.assertEqual(f.stats()["shared"], shared)

    def test_the_feeder_is_killed(self):
        f = feeder("images", 50, shuffle=True)
        batch = next(iter(f))
        want, child = batch["images"].copy(), f._child
        child.send_signal(signal.SIGKILL)
        with self.assertRaisesRegex(penstock.Error, "images: the feeder has ended: killed by SIGKILL; make a new one, with state="):
            for _ in range(1000):
                for batch_2 in f:
                    del batch_2
        np.testing.assert_array_equal(batch["images"], want)
        f.close()
        self.assertIsNotNone(child.returncode)
        del batch, f
        self.assertEqual(memfds(os.getpid()), [])

    def test_the_feeder_is_stopped(self):
        f = feeder("images", 50, shuffle=True)
        f._child.terminate()
        with self.assertRaisesRegex(penstock.Error, "feed: interrupted"):
            for _ in range(1000):
                for _ in f:
                    pass
        f.close()

    def test_the_trainer_is_killed(self):
        # A grandchild inherits the trainer's socket, so that the feeder sees no end of it.
        code = f"""if True:
            import os, sys, time, penstock
            f = penstock.Feeder({data.path("images")!r}, 50, command={data.feed()!r})
            batch = next(iter(f))
            grandchild = os.fork()
            if grandchild:
                print(f.pid, grandchild, flush=True)
            time.sleep(600)
        """
        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, "..")}
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env) as trainer:
            child, grandchild = map(int, trainer.stdout.readline().split())
            try:
                self.assertTrue(memfds(child))
                named = [line for line in maps(child, "/dev/shm/") if data.path("") not in line]
                self.assertEqual(named, [])  # a name would stay
                trainer.kill()
                self.assertTrue(gone(child), "the feeder outlives the trainer")
            finally:
                os.kill(grandchild, signal.SIGKILL)

    def test_the_feeder_ends_with_its_object(self):
        f = feeder("images", 50)
        child = f._child
        batch = next(iter(f))
        del f
        self.assertEqual(child.returncode, 0)
        self.assertEqual(len(batch["labels"]), 50)
        del batch
        self.assertEqual(memfds(os.getpid()), [])

    def test_open_descriptors_do_not_grow(self):
        def count():
            gc.collect()  # what other tests left in cycles
            return len(os.listdir("/proc/self/fd"))

        feeder("images", 50).close()
        before = count()
        for _ in range(3):
            with feeder("ragged", 50, epochs=1) as f:
                for batch in f:
                    del batch
        self.assertEqual(count(), before)

    def test_a_feed_that_listens(self):
        base = tempfile.mkdtemp(prefix="penstock-python-")
        path = os.path.join(base, "feed")
        server = subprocess.Popen([data.feed(), data.path("images"), "--socket", path, "--quiet"])
        try:
            end = time.monotonic() + 300
            while not os.path.exists(path) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            ranks = [penstock.Feeder(socket=path, batch_size=250, epochs=1, rank=rank, world=2) for rank in range(2)]
            got = [i for pair in zip(*ranks) for b in pair for i in b.indices.tolist()]
            self.assertEqual(got, list(range(1500)))
            for f in ranks:
                f.close()
            with self.assertRaisesRegex(penstock.Error, 'split "none"'):
                penstock.Feeder(socket=path, batch_size=2, split="none")
            f = penstock.Feeder(socket=path, batch_size=250)
            server.kill()
            server.wait()
            with self.assertRaisesRegex(penstock.Error, "feeder has ended: it closed the connection"):
                for _ in range(1000):
                    for _ in f:
                        pass
            f.close()
            with self.assertRaisesRegex(penstock.Error, "no feed serves there: Connection refused; start one"):
                penstock.Feeder(socket=path, batch_size=2)
        finally:
            server.kill()
            server.wait()
            if os.path.exists(path):
                os.unlink(path)
            os.rmdir(base)

    def test_a_dataset_behind_a_url(self):
        cache = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, cache)
        ds = penstock.open(data.path("images"))
        url = "file://" + data.path("images")
        for size in ("64MiB", 1 << 26):
            with penstock.Feeder(url, 500, command=data.feed(), epochs=1, cache_dir=cache, cache_size=size) as f:
                for batch in f:
                    self.assert_equal(batch, ds[batch.indices])
            self.assertTrue(any("images-00000.npy" in files for _, _, files in os.walk(cache)))
        for kind, options, text in (
            (ValueError, {"cache_size": "much"}, "cache_size is 'much'; it must be bytes"),
            (ValueError, {"cache_size": "0GiB"}, "cache_size is '0GiB'"),
            (ValueError, {"cache_size": 0}, "cache_size is 0; it must be from 1"),
            (TypeError, {"cache_size": 1.5}, "cache_size is 1.5; it must be an integer"),
        ):
            with self.assertRaisesRegex(kind, text):
                penstock.Feeder(url, 2, command=data.feed(), **options)
        with self.assertRaisesRegex(ValueError, "belong to the feed that listens"):
            penstock.Feeder(socket="x", batch_size=2, cache_dir=cache)

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "either the path of a dataset or the socket"):
            penstock.Feeder()
        with self.assertRaisesRegex(penstock.Error, "there is no command 'no-such-feed'"):
            penstock.Feeder(data.path("images"), 2, command="no-such-feed")
        for options, text in (
            ({"batch_size": 2, "fields": ["nothing"]}, "nothing"),
            ({"batch_size": 1501, "drop_last": True}, "^feed: options: drop_last leaves no batch: .* 1500 records, .* 1501"),
            ({"batch_size": 2, "state": {"what": 1, "epoch": 0, "step": 0}}, "what"),
        ):
            with self.assertRaisesRegex(penstock.Error, text):
                feeder("images", **options)
        for kind, options, text in (
            (TypeError, {"batch_size": "2"}, "batch_size is '2'; it must be an integer"),
            (TypeError, {"batch_size": 2.5}, "batch_size is 2.5"),
            (TypeError, {"batch_size": True}, "batch_size is True; it must be an integer"),
            (ValueError, {"batch_size": 0}, "batch_size is 0; it must be from 1 to 1073741824"),
            (ValueError, {"batch_size": 2, "ahead": 1}, "ahead is 1; it must be from 2 to 256"),
            (ValueError, {"batch_size": 2, "rank": 2, "world": 2}, "rank is 2; it must be from 0 to 1, as world is 2"),
            (ValueError, {"batch_size": 2, "world": 0}, "world is 0; it must be from 1 to 1048576"),
            (ValueError, {"batch_size": 2, "epochs": 0}, "epochs is 0; .*; None means no end"),
            (TypeError, {"batch_size": 2, "epochs": "3"}, "epochs is '3'; it must be an integer"),
            (ValueError, {"batch_size": 2, "workers": -1}, "workers is -1; it must be from 0 to 4096"),
            (ValueError, {"batch_size": 2, "seed": -1}, "seed is -1; it must be from 0 to 18446744073709551615"),
            (ValueError, {"batch_size": 2, "seed": 2**70}, "seed is 1180591620717411303424; it must be from 0"),
            (TypeError, {"batch_size": 2, "flip": "yes"}, "flip is 'yes'; it must be True or False"),
            (TypeError, {"batch_size": 2, "shuffle": 1}, "shuffle is 1; it must be True or False"),
            (TypeError, {"batch_size": 2, "state": "x"}, r"state is 'x'; it must be the dict that state\(\) returned"),
            (TypeError, {"batch_size": 2, "fields": "images"}, r"it is a list of names: \['images'\]"),
            (ValueError, {"batch_size": 2, "state": {"what": 1}}, r"state has no 'epoch' and no 'step'; it must be the dict that state\(\) returned"),
        ):
            with self.assertRaisesRegex(kind, text):
                feeder("images", **options)
        with self.assertRaisesRegex(penstock.Error, "cannot be started: Permission denied; command="):
            penstock.Feeder(data.path("images"), 2, command=__file__)
        with self.assertRaisesRegex(penstock.Error, "flip: no field has images"):
            feeder("types", 2, flip=True)
        with self.assertRaisesRegex(penstock.Error, "no such file"):
            feeder("not-there", 2)
        with feeder("images", 2) as f, self.assertRaisesRegex(TypeError, "cannot be sent"):
            pickle.dumps(f)
        with self.assertRaisesRegex(penstock.Error, "was closed"):
            next(iter(f))
        with feeder("images", np.int64(2), seed=np.uint8(1), shuffle=np.bool_(True)) as f:
            batch = next(iter(f))
            self.assertIn("batch 1 of", repr(f))
            f.stats()  # which waits until batches have come
        with self.assertRaisesRegex(penstock.Error, "was closed; make a new one"):
            next(iter(f))
        with self.assertRaisesRegex(KeyError, "no field 'image'; there are: images"):
            batch["image"]
        with mock.patch.object(sys, "platform", "darwin"), self.assertRaisesRegex(penstock.Error, "needs Linux"):
            feeder("images", 2)

    def test_a_fork_gets_an_error_at_once(self):
        with feeder("images", 50, shuffle=True, seed=3, epochs=1) as f:
            want = [b.indices.tolist() for b in feeder("images", 50, shuffle=True, seed=3, epochs=1)]
            batches = iter(f)
            got = [next(batches).indices.tolist()]
            for use in (lambda: next(batches), lambda: next(iter(f)), f.stats):
                child = os.fork()
                if child == 0:
                    signal.alarm(60)
                    try:
                        use()
                    except penstock.Error as e:
                        os._exit(0 if f"belongs to process {os.getppid()}" in str(e) else 2)
                    except BaseException:
                        os._exit(3)
                    os._exit(4)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            child = os.fork()
            if child == 0:
                f.close()
                os._exit(0)
            os.waitpid(child, 0)
            got += [b.indices.tolist() for b in batches]
            self.assertEqual(got, want)

    @unittest.skipIf(torch is None, "no torch")
    def test_a_data_loader_is_not_needed(self):
        with feeder("images", 50) as f, self.assertRaisesRegex(TypeError, "needs no DataLoader: for batch in feeder"):
            next(iter(torch.utils.data.DataLoader(f)))

    def test_a_truncated_file_is_named(self):
        for name, options in (
            ("images", {"flip": True}),
            ("images", {"normalize": True, "shuffle": True}),
            ("ragged", {}),
            ("ragged", {"shuffle": True}),
        ):
            with self.subTest(name=name, **options):
                copied = self.copy(name)
                column = "images" if name == "images" else "tokens.values"
                with penstock.Feeder(copied, 10, command=data.feed(), **options) as f:
                    next(iter(f))
                    os.truncate(os.path.join(copied, f"{column}-00001.npy"), 4096)
                    with self.assertRaisesRegex(penstock.Error, rf"record \d+.*{column}-00001.npy.*truncated") as caught:
                        for _ in range(3):
                            for _ in f:
                                pass
                    self.assertNotIn("goroutine", str(caught.exception))

    @unittest.skipIf(torch is None, "no torch")
    def test_tensors(self):
        ds = penstock.open(data.path("types"))
        with feeder("types", 300, epochs=1) as f:
            for batch in f:
                tensors = pt.tensors(batch)
                for name in ds.fields:
                    self.assertEqual(str(tensors[name].dtype), f"torch.{ds.fields[name].dtype}")
                    self.assertEqual(tensors[name].data_ptr(), batch[name].__array_interface__["data"][0])
        with feeder("ragged", 64, fields=["tokens", "labels"], ahead=3) as f:
            tokens = pt.tensors(next(iter(f)))["tokens"].values
            want = tokens.clone()
            for _, batch in zip(range(5), f):
                del batch
            self.assertTrue(torch.equal(tokens, want))
