import gc
import http.server
import importlib.util
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import h5py
import numpy as np

import penstock
from penstock import samplers
from penstock import transforms as T
from penstock._engine import request

from . import data

try:
    import torch
except ImportError:
    torch = None


# A feed that answers each client with one message.
_OLD_FEED = """import socket, struct, sys
if "--version" in sys.argv:
    print("feed 0.0.9")
else:
    body = {answer!r}.encode()
    connection = socket.socket(fileno=int(sys.argv[sys.argv.index("--fd") + 1]))
    connection.recv(1)
    connection.sendall(struct.pack("<I", len(body)) + body)
"""


def loader(name, batch_size, *arguments, output="numpy", **options):
    dataset = [data.path(n) for n in name] if isinstance(name, list) else data.path(name)
    return penstock.DataLoader(dataset, batch_size, *arguments, output=output, command=data.feed(), **options)


def indices(batches):
    return [batch.indices.tolist() for batch in batches]


def records(batches):
    return [i for batch in batches for i in batch.indices.tolist()]


NORMALIZE = [T.ToTensor(), T.Normalize()]


def maps(pid, what):
    """Return the mappings of a process that name something."""
    gc.collect()  # another test's, in cycles
    with open(f"/proc/{pid}/maps") as f:
        return [line for line in f if what in line]


def memories(pid):
    """Return the shared memories that a process has mapped: none has a name any more."""
    if data.NATIVE:
        return maps(pid, "memfd:penstock")
    ours = (os.path.join(tempfile.gettempdir(), "#"), os.path.join(tempfile.gettempdir(), "penstock-"))  # with O_TMPFILE, and without
    paths = [(line, line.rstrip().removesuffix(" (deleted)").split(None, 5)[-1]) for line in maps(pid, " (deleted)")]
    return [line for line, path in paths if path.startswith(ours) and os.path.dirname(path) == tempfile.gettempdir()]


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


class Files(http.server.BaseHTTPRequestHandler):
    """Serves files by ranges, also as the Hub does, and refuses a request now and then."""

    commit, token = "0123456789abcdef0123456789abcdef01234567", "hf_thesecretofthistest"
    asked = 0

    def log_message(self, *args):
        pass

    def do_GET(self):
        Files.asked += 1
        path, hub, name = self.path.partition(f"/datasets/lab/birds/resolve/{Files.commit}/")
        if (hub or path.startswith("/api/")) and self.headers.get("Authorization") != f"Bearer {Files.token}":
            return self.answer(401, b"")
        if Files.asked % 3 == 0:
            return self.answer(503, b"")
        if path.startswith("/api/"):
            return self.answer(200, json.dumps({"sha": Files.commit}).encode())
        try:
            with open(data.path((name if hub else path).strip("/")), "rb") as f:
                content = f.read()
        except OSError:
            return self.answer(404, b"")
        first, _, last = self.headers.get("Range", "bytes=0-").partition("=")[2].partition("-")
        part = content[int(first) : int(last) + 1 if last else None]
        self.answer(206, part, f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")

    def answer(self, status, body, span=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if span:
            self.send_header("Content-Range", span)
        self.end_headers()
        self.wfile.write(body)


class DataLoaderTest(data.Copied):
    def assert_equal(self, batch, want):
        for name, values in want.arrays.items():
            got = batch[name]
            if isinstance(got, list):
                self.assertEqual(got, list(values))
                continue
            if isinstance(values, penstock.Ragged):
                np.testing.assert_array_equal(got.offsets, values.offsets)
                got, values = got.values, values.values
            self.assertEqual((got.dtype, got.shape), (values.dtype, values.shape))
            self.assertEqual(got.tobytes(), values.tobytes(), name)

    def test_metrics(self):
        with loader("images", 100) as dl:
            with self.assertRaisesRegex(ValueError, "label 'é'"):
                dl.metrics(é="x")
            for name in ("", "a-b", "9a", "a:b", "__a", "field"):
                with self.assertRaisesRegex(ValueError, "a name is of ASCII"):
                    dl.metrics(**{name: "x"})
            batches = len(list(dl))
            lines = dict(line.rsplit(" ", 1) for line in dl.metrics(job='a "b"', rank="0").splitlines() if line[0] != "#")
            with_labels = r'{job="a \"b\"",rank="0"}'
            self.assertGreaterEqual(float(lines["penstock_loader_batches_total" + with_labels]), batches)  # some of the next epoch are made
            self.assertGreater(float(lines["penstock_loader_ring_bytes" + with_labels]), 0)
            self.assertIn("penstock_loader_batches_total{} ", dl.metrics())
            self.assertNotIn("metrics", dl.stats())
        with penstock.DataLoader([1, 2, 3], 1, output="numpy") as own, self.assertRaisesRegex(penstock.Error, "metrics is for a prepared dataset"):
            own.metrics()

    def test_every_type_in_the_order_of_go(self):
        for name, batch_size in (("types", 700), ("ragged", 64), ("large", 7)):
            ds = penstock.open(data.path(name))
            with loader(name, batch_size, True, seed=5) as dl:
                self.assertEqual(list(dl.fields), list(ds.fields))
                self.assertEqual((dl.records, len(dl.dataset)), (len(ds), len(ds)))
                for epoch in range(2):
                    batches = penstock.order.Batches(len(ds), batch_size, seed=5)
                    batches.set_epoch(epoch)
                    self.assertEqual(len(dl), len(batches))
                    steps = 0
                    for batch, want in zip(dl, batches):
                        self.assertEqual((batch.epoch, batch.step), (epoch, steps))
                        np.testing.assert_array_equal(batch.indices, want)
                        self.assertTrue(batch.mask.all())
                        self.assert_equal(batch, ds[want])
                        steps += 1
                    self.assertEqual(steps, len(batches))

    def test_more_than_a_thousand_fields(self):
        path = os.path.join(os.path.dirname(self.copy("types")), "wide")
        columns = {f"f{i}": np.arange(24, dtype=("int32", "float32", "uint8")[i % 3]) + i % 100 for i in range(1200)}
        with penstock.Writer(path, command=data.preprocess()) as w:
            for i in range(24):
                w.append({name: c[i] for name, c in columns.items()})
        self.assertLess(len(repr(penstock.open(path))), 1000)
        for output in ("numpy", "torch") if torch else ("numpy",):
            with penstock.DataLoader(path, 8, shuffle=True, seed=2, output=output, command=data.feed()) as dl:
                for batch in dl:
                    self.assertEqual(list(batch.keys()), list(columns))
                    for name, c in columns.items():
                        np.testing.assert_array_equal(batch[name], c[batch.indices])
        with self.assertRaisesRegex(penstock.Error, "10001 fields: a dataset has at most 10000"):
            with penstock.Writer(path + "r", command=data.preprocess()) as w:
                w.append(dict.fromkeys(map(str, range(10001)), 1))

    def test_text_and_splits(self):
        ds = penstock.open(data.path("ragged"), split="val", fields=["caption", "labels"])
        for options in ({"split": "val", "fields": ["caption", "labels"]}, {"ds": ds}):
            dataset = options.pop("ds", data.path("ragged"))
            with penstock.DataLoader(dataset, 50, output="numpy", command=data.feed(), **options) as dl:
                texts = [text for batch in dl for text in batch["caption"]]
                self.assertEqual(len(dl.dataset), len(ds))
            self.assertEqual(texts, list(ds["caption"]))

    def test_normalized_by_the_dataset(self):
        for name in ("images", "pixels"):
            want = data.expected_floats(name, "images")
            ops = NORMALIZE if name == "images" else [T.ConvertImageDtype(), T.Normalize()]
            with loader(name, 64, transforms=ops) as dl:
                self.assertIsNone(dl.fields["images"].normalization)
                self.assertEqual(dl.fields["images"].layout, "CHW" if name == "images" else "HWC")
                got = np.concatenate([batch["images"].copy() for batch in dl])
            np.testing.assert_array_equal(got.ravel(), want)

    def test_the_pixels_of_go(self):
        crop = T.Compose([T.RandomResizedCrop(8), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize([0.5] * 3, [0.25] * 3)])
        for workers in (1, 3):
            with loader("images", 100, True, seed=3, transforms=crop, num_workers=workers, fields=["images"]) as dl:
                got = b"".join(batch["images"].tobytes() for batch in dl)
            with open(data.path("loaded.bin"), "rb") as f:
                self.assertEqual(got, f.read())

    def test_samplers_of_zero(self):
        for sampler in (
            samplers.Weighted(np.ones(1500), 0), samplers.Mix([3, 1], 0), samplers.Block(0), samplers.Bucket(0, "tokens"), samplers.Regions(0),
        ):  # fmt: skip
            with self.subTest(sampler), self.assertRaisesRegex(ValueError, r"(num_samples|size|buckets|count) is 0; it must be from 1"):
                loader(["ragged", "ragged"], 60, sampler=sampler)

    def test_samplers_of_numbers_that_are_none(self):
        for sampler in (
            samplers.Mix([1, np.nan]), samplers.Mix({0: [1, 1], 5: [np.inf, 1]}), samplers.Mix([1, 1], temperature=np.nan),
            samplers.Bucket([3, np.nan], "tokens"), samplers.Bucket(3, "tokens", budget=np.inf), samplers.Split(0, np.nan),
        ):  # fmt: skip
            with self.subTest(sampler), self.assertRaisesRegex(ValueError, "(weight|temperature|bound|budget|stop) is (nan|inf); it must be finite"):
                loader(["ragged", "ragged"], 60, sampler=sampler)
        with self.assertRaisesRegex(ValueError, "temperature is 0.0; it must be positive"):
            loader(["ragged", "ragged"], 60, sampler=samplers.Mix([1, 1], temperature=0))

    def test_weights_that_cannot_be_set(self):
        with loader(["images", "images"], 60, sampler=samplers.Mix([1, 1], 600), seed=4, output="numpy") as dl:
            next(iter(dl))
            with self.assertRaisesRegex(ValueError, "step is 0; batches up to 0 were made: set weights for step 1 or a later one"):
                dl.set_weights([1, 2], step=0)
            with self.assertRaisesRegex(penstock.Error, "3 weights for 2 sources"):
                dl.set_weights([1, 2, 3], step=1)
            with self.assertRaisesRegex(ValueError, "a weight is nan; it must be finite"):  # which ended the feeding process
                dl.set_weights([1, float("nan")], step=1)
            with self.assertRaisesRegex(penstock.Error, "weights have .* bytes in a state"):
                for step in range(1000):
                    dl.set_weights([0.123456789, 0.987654321], step=1000 + step)
        with loader("images", 60, True, seed=4, output="numpy") as dl, self.assertRaisesRegex(penstock.Error, "take a Mix"):
            dl.set_weights([1], step=1)

    def test_samplers_of_torch(self):
        if torch is None:
            self.skipTest("no torch")
        u = torch.utils.data
        ds = range(1500)
        for sampler, want in (
            (u.SequentialSampler(ds), samplers.Sequential()),
            (u.RandomSampler(ds), samplers.Shuffle()),
            (u.SubsetRandomSampler([3, 5]), samplers.Subset([3, 5], inner=samplers.Shuffle())),
            ([3, 5], samplers.Subset([3, 5])),
        ):
            self.assertEqual(samplers.translate(sampler, 1500), (want, {}))
        weighted, _ = samplers.translate(u.WeightedRandomSampler([1.0, 3.0], 10))
        self.assertEqual((weighted.weights.tolist(), weighted.num_samples), ([1.0, 3.0], 10))
        for sampler in (u.RandomSampler(ds, replacement=True), iter([1])):
            with self.assertRaisesRegex(penstock.UnsupportedError, "sampler=list"):
                samplers.translate(sampler)
        sampler = u.DistributedSampler(ds, num_replicas=2, rank=1, seed=7, drop_last=True)
        with loader("images", 50, sampler=sampler) as a, loader("images", 50, True, rank=1, world_size=2, seed=7, drop_last=True) as b:
            self.assertEqual(indices(a), indices(b))

    def test_records_of_rare_classes(self):
        labels = np.array(penstock.open(data.path("images"))["labels"][:])
        rare = np.flatnonzero(labels == 1)[:9].tolist()
        some = [*rare, *np.flatnonzero(labels == 0).tolist()]
        for options in ({"sampler": samplers.Subset(some, inner=samplers.ClassBalanced("labels", 2000))},):
            with loader("images", 100, seed=3, **options) as dl:
                drawn = labels[records(dl)]
            self.assertTrue(850 < np.count_nonzero(drawn == 1) < 1150)
        weights = np.where(np.arange(1500) < 40, 1000.0, 1e-3)
        weights[7] = 0
        sampler = samplers.Weighted(weights, 100, replacement=False)
        if torch is not None:
            sampler = torch.utils.data.WeightedRandomSampler(weights, 100, replacement=False)
        with loader("images", 10, sampler=sampler, seed=3) as dl:
            drawn = records(dl)
        self.assertEqual(len(set(drawn)), 100)
        self.assertEqual(sorted(drawn[:39]), [i for i in range(40) if i != 7])
        with self.assertRaisesRegex(penstock.Error, "1500 draws without replacement"):
            loader("images", 10, sampler=samplers.Weighted(weights, replacement=False))

    def test_packed(self):
        ds = penstock.open(data.path("ragged"))
        pack = penstock.Pack(24, fields=["tokens"], pad={"tokens": -1})
        with loader("ragged", 16, pack=pack) as dl:
            self.assertEqual(list(dl.fields), ["tokens", "positions", "segments"])
            pieces = []
            for batch in dl:
                tokens, ends = batch["tokens"].ravel(), batch["cu_seqlens"]
                self.assertEqual((ends[0], ends[-1], ends.dtype), (0, tokens.size, np.int32))
                for a, b in zip(ends, ends[1:]):
                    segments = batch["segments"].ravel()[a:b]
                    self.assertEqual(len(set(segments.tolist())), 1)
                    if segments[0] == 0:
                        self.assertTrue((tokens[a:b] == -1).all())
                        continue
                    np.testing.assert_array_equal(batch["positions"].ravel()[a:b], np.arange(b - a))
                    pieces.append(tokens[a:b].tobytes())
        self.assertEqual(sorted(pieces), sorted(t.tobytes() for t in ds["tokens"] if len(t)))

    def test_padded_and_arrays(self):
        ds = penstock.open(data.path("ragged"))
        ops = {"tokens": T.PadTo(8, -2), "labels": [{"op": "OneHot", "classes": 3}]}
        with loader("ragged", 64, fields=["tokens", "labels"], transforms=ops) as dl:
            for batch in dl:
                np.testing.assert_array_equal(batch["tokens"], ds["tokens"].take(batch.indices).padded(-2, 8))
                np.testing.assert_array_equal(batch["labels"].argmax(1), ds["labels"].take(batch.indices))

    def test_mixed_batches(self):
        eye = np.eye(3, dtype=np.float32)
        with loader("images", 64, True, transforms=NORMALIZE, drop_last=True) as dl:
            plain = {b.step: (b["images"].copy(), eye[b["labels"]]) for b in dl}
        choice = T.RandomChoice([T.CutMix(alpha=0.5), T.MixUp(alpha=0.4)])
        for mix in (T.MixUp(alpha=0.4), choice, [T.CutMix(), T.LabelSmoothing(0.2)], T.LabelSmoothing(0.3)):
            runs = []
            for workers in (1, 2):
                with loader("images", 64, True, transforms=NORMALIZE, batch_transforms=mix, drop_last=True, num_workers=workers) as dl:
                    self.assertEqual((dl.fields["labels"].dtype, dl.fields["labels"].shape), ("float32", (3,)))
                    runs.append([(b["images"].copy(), b["labels"].copy()) for b in dl])
            kinds = set()
            for step, ((x, y), (x2, y2)) in enumerate(zip(*runs)):
                self.assertEqual((x.tobytes(), y.tobytes()), (x2.tobytes(), y2.tobytes()))
                np.testing.assert_allclose(y.sum(1), 1, atol=1e-5)
                px, py = plain[step]
                smoothing = mix.smoothing if isinstance(mix, T.LabelSmoothing) else 0.2 if isinstance(mix, list) else 0
                y = (y - smoothing / 3) / (1 - smoothing)
                other, label = np.roll(px, 1, 0), np.roll(py, 1, 0)
                differ = (py != label).any(1)
                keep = np.median((y * py).sum(1)[differ])
                np.testing.assert_allclose(y, keep * py + (1 - keep) * label, atol=1e-4)
                if isinstance(mix, T.LabelSmoothing):
                    np.testing.assert_array_equal(x, px)
                elif np.isin(x, np.stack([px, other])).all() and ((x == px) | (x == other)).all():
                    kinds.add("CutMix")
                    self.assertAlmostEqual(((x == px) | (px == other)).mean(), keep, delta=0.02)
                else:
                    kinds.add("MixUp")
                    np.testing.assert_allclose(x, keep * px + (1 - keep) * other, atol=1e-4)
            if mix is choice:
                self.assertEqual(kinds, {"CutMix", "MixUp"})

    def test_unreadable_records_are_not_mixed_into_others(self):
        options = {"transforms": [T.Resize((12, 10)), T.ToTensor()], "on_error": "blank"}
        for mix in (T.MixUp(num_classes=9), [T.LabelSmoothing(0.1, 9), T.RandomChoice([T.CutMix(num_classes=9)])]):
            with self.assertRaisesRegex(penstock.Error, 'zeros of class 0 for a record that cannot be read; take on_error "backfill"'):
                loader("photos", 8, batch_transforms=mix, **options).close()

    def test_files_of_images(self):
        with (
            loader("photos", 8, transforms=[T.Resize((12, 10)), T.ToImage()], on_error="blank") as dl,
            self.assertLogs("penstock", "WARNING") as logs,
        ):
            images = [(b.indices.tolist(), b["image"].copy(), b.mask.tolist()) for b in dl]
            stats = dl.stats()
        self.assertEqual(images[0][1].shape, (8, 3, 12, 10))
        bad = [i for numbers, _, valid in images for i, v in zip(numbers, valid) if not v]
        self.assertEqual(bad, [5])
        self.assertGreaterEqual(stats["skipped"], 1)  # in epochs that are read ahead, too: the more, the more cores there are
        self.assertIn("record 5", logs.output[0])
        for numbers, pixels, _ in images:
            for i, image in zip(numbers, pixels):
                want = 0 if i == 5 else 12 * i
                self.assertLess(abs(image.astype(int) - want).max(), 3)
        with loader("photos", 8, transforms=[T.Resize((12, 10))]) as dl:
            for _ in range(2):  # an error ends a loop, and not the DataLoader
                with self.assertRaisesRegex(penstock.Error, "record 5"):
                    for _ in dl:
                        pass

    def test_resume_after_a_kill(self):
        code = """if True:
            import json, os, sys, zlib, penstock
            from penstock import transforms as T
            path, feed, file, workers = sys.argv[1:]
            ops = [T.RandomResizedCrop(6), T.ToTensor()]
            loader = penstock.DataLoader(path, 100, True, transforms=ops, output="numpy", num_workers=int(workers), command=feed)
            with open(file) as f:
                if state := f.read():
                    loader.load_state_dict(json.loads(state))
            while loader.epoch < 3:
                for batch in loader:
                    with open(file + ".new", "w") as f:
                        json.dump(loader.state_dict(), f)
                    os.replace(file + ".new", file)
                    print(batch.epoch, batch.step, zlib.crc32(batch["images"]), flush=True)
        """

        def run(file, workers, kill_after=None):
            arguments = [sys.executable, "-c", code, data.path("images"), data.feed(), file, str(workers)]
            with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=env) as trainer:
                lines = []
                for line in trainer.stdout:
                    if not line.endswith("\n"):
                        break  # it was killed while it printed
                    lines.append(line)
                    if len(lines) == kill_after:
                        trainer.kill()  # it may print more until then
            kills.append(trainer.returncode == -signal.SIGKILL)
            return lines

        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, "..")}
        with tempfile.TemporaryDirectory(prefix="penstock-python-") as folder:
            files = [os.path.join(folder, name) for name in ("whole", "killed")]
            for file in files:
                with open(file, "w"):
                    pass
            kills = []
            whole = run(files[0], 1)
            self.assertEqual(len(whole), 45)
            got = []
            for workers, kill_after in ((2, 4), (1, 9), (3, 7), (2, 1)):
                got += run(files[1], workers, kill_after)
            got += run(files[1], 1)
            # A batch whose state was saved may have died before it was printed; none comes twice.
            self.assertEqual([line for line in whole if line in set(got)], got)
            self.assertLessEqual(len(whole) - len(got), 4)
            self.assertTrue(any(kills), "no trainer was killed before its end")

    def test_verified(self):
        copied = self.copy("images")
        with open(os.path.join(copied, "images-00001.npy"), "r+b") as f:
            f.seek(5000)
            byte = f.read(1)
            f.seek(5000)
            f.write(bytes([byte[0] ^ 1]))
        for verify in ("first", "always", 1.0):
            with (
                penstock.DataLoader(copied, 10, output="numpy", command=data.feed(), verify=verify) as dl,
                self.assertRaisesRegex(penstock.Error, "(?i)crc|checksum"),
            ):
                for _ in dl:
                    pass
        with penstock.DataLoader(copied, 10, output="numpy", command=data.feed()) as dl:
            self.assertEqual(len(list(dl)), 150)

    def test_batches_that_are_kept(self):
        with loader("images", 50, True, prefetch_factor=1) as dl:
            batches = list(dl)  # more than there are slots
            self.assertEqual(dl.stats()["copied"], len(batches) - 2)
            ds = penstock.open(data.path("images"))
            for _ in dl:
                pass
            for batch in batches:
                self.assertTrue(batch.mask.all())
                np.testing.assert_array_equal(batch["images"], ds["images"].take(batch.indices))

    def test_ragged_batches_that_are_kept(self):
        ds = penstock.open(data.path("ragged"))
        with loader("ragged", 50, True) as dl:
            for batch in list(dl):
                self.assert_equal(batch, ds[batch.indices])

    def test_memory_is_not_reused_while_referred_to(self):
        with loader("images", 50, True) as dl:
            batch = next(iter(dl))
            kept, want = batch["images"][3], batch["images"][3].copy()
            del batch
            for epoch in range(2):
                for batch in dl:
                    batch["images"][...] = 1  # it is the trainer's
                np.testing.assert_array_equal(kept, want)
            self.assertEqual(dl.stats()["copied"], 0)
        np.testing.assert_array_equal(kept, want)  # also after the DataLoader

    def test_small_batches_have_more_slots(self):
        for batch_size, prefetch, want in ((50, None, 16), (500, None, 8), (1500, None, 4), (50, 3, 5)):
            with loader("images", batch_size, num_workers=1, prefetch_factor=prefetch) as dl:
                self.assertEqual(dl._engine.session._slots, want)

    def test_no_more_than_asked_for(self):  # a number of workers that is found may need more
        with loader("images", 50, num_workers=1, prefetch_factor=2) as dl:
            batch = next(iter(dl))
            end = time.monotonic() + 300
            while dl.stats()["loader"]["Batches"] < 5 and time.monotonic() < end:
                time.sleep(0.01)
            for _ in range(20):  # four are here, and one waits for its place
                stats = dl.stats()
                self.assertEqual((stats["loader"]["Batches"], stats["loader"]["Kept"]), (5, 4))
            shared = stats["shared"]
            self.assertTrue(stats["direct"] and stats["watched"])
            self.assertEqual((batch.epoch, batch.step), (0, 0))
            for _ in range(3):
                for batch in dl:
                    pass
                for batch in dl:
                    break
            self.assertEqual(dl.stats()["shared"], shared)
            self.assertIsInstance(dl.diagnose(), str)

    def test_the_process_is_killed(self):
        dl = loader("images", 50, True)
        batch = next(iter(dl))
        want, child = batch["images"].copy(), dl._engine.session.child
        child.send_signal(signal.SIGKILL)
        with self.assertRaisesRegex(penstock.Error, "images: the feeding process has ended: killed by SIGKILL; make a new DataLoader"):
            for _ in range(1000):
                for other in dl:
                    del other
        np.testing.assert_array_equal(batch["images"], want)
        dl.close()
        self.assertIsNotNone(child.returncode)
        del batch, dl
        self.assertEqual(memories(os.getpid()), [])

    def test_the_process_is_stopped(self):
        dl = loader("images", 50, True)
        dl._engine.session.child.terminate()
        for text in ("feed: interrupted|feeding process has ended", "was closed|has ended"):
            with self.assertRaisesRegex(penstock.Error, text):
                for _ in range(1000):
                    for _ in dl:
                        pass
        dl.close()

    def test_the_trainer_is_killed(self):
        # A grandchild inherits the trainer's socket, so that the feeding process sees no end of it.
        code = f"""if True:
            import os, sys, time, penstock
            f = penstock.DataLoader({data.path("images")!r}, 50, output="numpy", command={data.feed()!r})
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
                self.assertTrue(memories(child))
                named = [line for line in maps(child, "/dev/shm/") if data.path("") not in line]
                self.assertEqual(named, [])  # a name would stay
                trainer.kill()
                self.assertTrue(gone(child), "the feeding process outlives the trainer")
            finally:
                trainer.kill()
                os.kill(grandchild, signal.SIGKILL)

    def test_the_process_ends_with_its_object(self):
        f = loader("images", 50)
        child = f._engine.session.child
        batch = next(iter(f))
        del f
        self.assertEqual(child.returncode, 0)
        self.assertEqual(len(batch["labels"]), 50)
        del batch
        self.assertEqual(memories(os.getpid()), [])

    def test_open_descriptors_do_not_grow(self):
        def count():
            gc.collect()  # what other tests left in cycles
            return len(os.listdir("/proc/self/fd"))

        loader("images", 50).close()
        before = count()
        for _ in range(3):
            with loader("ragged", 50) as f:
                for batch in f:
                    del batch
        self.assertEqual(count(), before)

    def test_length_of_an_epoch(self):
        with loader("images", 100) as dl:
            epoch = iter(dl)
            self.assertEqual(len(epoch), 15)
            next(epoch)
            self.assertEqual((len(epoch), len(list(epoch))), (15, 14))

    def test_a_dataset_behind_a_url(self):
        cache = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, cache)
        ds = penstock.open(data.path("images"))
        url = self.serve_files() + "/images"
        options = {"output": "numpy", "command": data.feed()}
        for size in ("64MiB", 1 << 26):
            with penstock.DataLoader(url, 500, cache_dir=cache, cache_size=size, **options) as dl:
                for batch in dl:
                    self.assert_equal(batch, ds[batch.indices])
            self.assertTrue(any("images-00000.npy" in files for _, _, files in os.walk(cache)))
        for kind, more, text in (
            (ValueError, {"cache_size": "much"}, "cache_size is 'much'; it must be bytes"),
            (ValueError, {"cache_size": "0GiB"}, "cache_size is '0GiB'"),
            (ValueError, {"cache_size": 0}, "cache_size is 0; it must be from 1"),
            (TypeError, {"cache_size": 1.5}, "cache_size is 1.5; it must be an integer"),
            (penstock.Error, {"verify": "always"}, "compared with their checksums when they are fetched; leave verify out"),
        ):
            with self.assertRaisesRegex(kind, text):
                penstock.DataLoader(url, 2, **more, **options)
        with self.assertRaisesRegex(ValueError, "belong to the feed that listens"):
            penstock.DataLoader(socket="x", batch_size=2, output="numpy", cache_dir=cache)
        for more in ({"cache_dir": cache}, {"cache_size": "1GiB"}):
            with self.assertRaisesRegex(ValueError, "are for the URL of a dataset: nothing of .*images is fetched"):
                penstock.DataLoader(data.path("images"), batch_size=2, output="numpy", **more)
            with tempfile.TemporaryDirectory() as base:
                plain = os.path.join(base, "plain.h5")
                with h5py.File(plain, "w") as f:  # which the feeding process maps
                    f["x"] = np.arange(5)
                with self.assertRaisesRegex(penstock.Error, "cache_dir and cache_size are for .*: nothing of .*plain.h5 is fetched; leave them out"):
                    penstock.DataLoader(plain, batch_size=2, output="numpy", command=data.feed(), **more)

    def serve_files(self):
        """Start a server of Files and return its URL."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever).start()
        return f"http://127.0.0.1:{server.server_port}"

    def test_a_dataset_of_a_web_server_and_of_the_hub(self):
        cache = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, cache)
        endpoint = self.serve_files()
        ds = penstock.open(data.path("images"))
        with mock.patch.dict(os.environ, {"HF_ENDPOINT": endpoint, "HF_TOKEN": Files.token}):
            for url in (endpoint + "/images", "hf://datasets/lab/birds@main/images"):
                with penstock.DataLoader(url, 500, shuffle=True, cache_dir=os.path.join(cache, url[:4]), output="numpy", command=data.feed()) as dl:
                    count = 0
                    for batch in dl:
                        self.assert_equal(batch, ds[batch.indices])
                        count += len(batch.indices)
                self.assertEqual(count, len(ds))
        with mock.patch.dict(os.environ, {"HF_ENDPOINT": endpoint, "HF_TOKEN": "hf_anotherwrongtoken"}):
            with self.assertRaisesRegex(penstock.Error, "the token of HF_TOKEN was sent") as caught:
                penstock.DataLoader("hf://datasets/lab/birds@main/images", 5, cache_dir=cache, output="numpy", command=data.feed())
            self.assertNotIn("wrong", str(caught.exception))

    def listens(self, path):
        """Report whether a feed listens at path, which is there a moment before."""
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(path) == 0

    @data.needs_native
    def test_a_feed_that_listens(self):
        base = tempfile.mkdtemp(prefix="penstock-python-")
        path = os.path.join(base, "feed")
        server = subprocess.Popen([data.feed(), data.path("images"), "--socket", path, "--quiet"])
        try:
            end = time.monotonic() + 300
            while not self.listens(path) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            ranks = [penstock.DataLoader(socket=path, batch_size=250, rank=rank, world_size=2, output="numpy") for rank in range(2)]
            got = [i for pair in zip(*ranks) for b in pair for i in b.indices.tolist()]
            self.assertEqual(got, list(range(1500)))
            for f in ranks:
                f.close()
            with self.assertRaisesRegex(penstock.Error, 'split "none"'):
                penstock.DataLoader(socket=path, batch_size=2, split="none", output="numpy")
            f = penstock.DataLoader(socket=path, batch_size=250, output="numpy")
            server.kill()
            server.wait()
            with self.assertRaisesRegex(penstock.Error, "feeding process has ended: it closed the connection"):
                for _ in range(1000):
                    for _ in f:
                        pass
            f.close()
            with self.assertRaisesRegex(penstock.Error, "no feed serves there: Connection refused; start one"):
                penstock.DataLoader(socket=path, batch_size=2, output="numpy")
        finally:
            server.kill()
            server.wait()
            if os.path.exists(path):
                os.unlink(path)
            os.rmdir(base)

    @unittest.skipIf(sys.platform == "win32", "the feed of another release is a script of sh")
    def test_feed_of_another_release(self):
        answer = json.dumps({"error": 'feed: a message that is none: json: unknown field "positions"'})
        with tempfile.TemporaryDirectory() as base:
            old = os.path.join(base, "old feed")
            with open(old, "w", encoding="utf-8") as f:
                f.write(f"#!{sys.executable}\n{_OLD_FEED.format(answer=answer)}")
            os.chmod(old, 0o700)
            with self.assertRaisesRegex(penstock.Error, "unknown field") as caught:
                penstock.DataLoader(data.path("images"), 2, output="numpy", command=old)
        for part in (penstock.__version__, "version 4 of the protocol", "feed 0.0.9 (", "old feed", "from the same release", "PENSTOCK_FEED"):
            self.assertIn(part, str(caught.exception))
        with (
            mock.patch("penstock._engine.session.VERSION", 5),
            self.assertRaisesRegex(penstock.Error, r"version 5 of the protocol, .*its feed is feed "),
        ):
            loader("images", 2)

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "either a dataset or the socket"):
            penstock.DataLoader()
        with self.assertRaisesRegex(penstock.Error, "there is no command 'no-such-feed'"):
            penstock.DataLoader(data.path("images"), 2, output="numpy", command="no-such-feed")
        with self.assertRaisesRegex(penstock.Error, "cannot be started: Permission denied; command="):
            penstock.DataLoader(data.path("images"), 2, output="numpy", command=__file__)
        with self.assertRaisesRegex(TypeError, "dataset is a int; it must be the path or URL of .* an object with __getitem__ and __len__"):
            penstock.DataLoader(3, 2, output="numpy")
        with self.assertRaisesRegex(
            penstock.NotFoundError, r"^a text: no such file .* a list of strings is a list of the paths .* numpy.array\(strings\)"
        ):
            penstock.DataLoader(["a text", "another"], 2, output="numpy")
        with self.assertRaisesRegex(FileNotFoundError, "no such file") as missing:
            loader("not-there", 2)
        self.assertIsInstance(missing.exception, penstock.NotFoundError)
        with self.assertRaisesRegex(penstock.Error, "holds .h5 files, and also .*it is not a dataset: there is no manifest.json in it"):
            penstock.DataLoader(os.path.dirname(data.path("images")), 2, output="numpy", command=data.feed())
        with self.assertRaisesRegex(penstock.Error, "neither a folder nor an HDF5 file; .*, run: (penstock )?preprocess SOURCE"):
            penstock.DataLoader(__file__, 2, output="numpy", command=data.feed())
        with penstock.DataLoader(os.fsencode(data.path("images")), 2, output="numpy", command=data.feed()) as dl:
            self.assertEqual(len(next(iter(dl))["labels"]), 2)
            with self.assertRaisesRegex(penstock.Error, "v is 'x', and not of type int"):
                dl.load_state_dict({**dl.state_dict(), "v": "x"})
        with self.assertRaisesRegex(TypeError, r"a list of transforms, and not ToTensor: Compose\(\[...\]\)"):
            T.Compose(T.ToTensor())
        with loader("images", 2) as dl, self.assertRaisesRegex(penstock.Error, "the state is 'x'; it must be what state_dict"):
            dl.load_state_dict("x")
        for text, options in (
            ("nothing", {"fields": ["nothing"]}),
            ("^feed: options: drop_last leaves no batch: .* 1500 records, .* 1501", {"batch_size": 1501, "drop_last": True}),
            ('there is no field "image"; did you mean "images"', {"transforms": {"image": T.ToTensor()}}),
            ("size is a string; it must be a list, each a whole number", {"transforms": T.RandomResizedCrop("a")}),
            ("Resize: .*size", {"transforms": T.Resize([1, 2, 3])}),
            ("on_error is", {"on_error": "ignore"}),
            ('filter: column 1: there is no field "label"; did you mean "labels"', {"filters": [("label", "==", 1)]}),
            ("index 1 is record 1500; there are 1500 records", {"sampler": [0, 1500]}),
            ("put ToTensor or ConvertDType before it", {"transforms": T.Normalize([0.5], [0.5])}),
        ):
            with self.assertRaisesRegex(penstock.Error, text):
                loader("images", **{"batch_size": 2, **options})
        for kind, text, options in (
            (ValueError, "batch_size should be a positive integer value, but got batch_size=2.5", {"batch_size": 2.5}),
            (ValueError, f"batch_size is {2**40}; it must be from 1 to 1073741824", {"batch_size": 2**40}),
            (ValueError, "prefetch_factor is 0; it must be from 1 to 256", {"prefetch_factor": 0}),
            (
                ValueError,
                "worker_init_fn is called in worker processes of Python, and this dataset is read by a feeding process",
                {"worker_init_fn": print},
            ),
            (ValueError, "seed and generator are two sources of the order", {"seed": 1, "generator": np.random.default_rng(1)}),
            (TypeError, "generator is a int; it must be a torch.Generator or a numpy.random.Generator", {"generator": 7}),
            (TypeError, "batch_type is <class 'list'>; it is tuple, whose batches unpack and have names, or dict", {"batch_type": list}),
            (ValueError, "rank is 2; it must be from 0 to 1, as world_size is 2", {"rank": 2, "world_size": 2}),
            (ValueError, "world_size is 0; it must be from 1 to 1048576", {"world_size": 0}),
            (ValueError, "num_workers option should be non-negative", {"num_workers": -1}),
            (ValueError, "num_workers is 5000; it must be from 0 to 4096", {"num_workers": 5000}),
            (ValueError, "seed is -1; it must be from 0 to 18446744073709551615", {"seed": -1}),
            (ValueError, "seed is 1180591620717411303424; it must be from 0", {"seed": 2**70}),
            (TypeError, "split is 0; it must be the name of a split", {"split": 0}),
            (TypeError, r"it is a list of names: \['images'\]", {"fields": "images"}),
            (TypeError, r"shuffle is Block\(size=9\); it is True or False, and an order is sampler=", {"shuffle": samplers.Block(9)}),
            (ValueError, "sampler option is mutually exclusive with shuffle", {"shuffle": True, "sampler": samplers.Shuffle()}),
            (ValueError, "output is 'np'; it is", {"output": "np"}),
            (ValueError, "verify is 'on'; it is", {"verify": "on"}),
            (ValueError, r"each is \(field, op, value\)", {"filters": ["labels == 1"]}),
            (ValueError, "'in' takes a list", {"filters": [("labels", "in", 1)]}),
            (ValueError, "filters is an empty expression", {"filters": " "}),
            (penstock.Error, 'column 1: there is no field "label"; did you mean "labels"', {"filters": "label == 1"}),
            (TypeError, "pack is 512; it must be a penstock.Pack, such as penstock.Pack", {"pack": 512}),
            (TypeError, "inner is 'x'", {"sampler": samplers.Subset([1], inner="x")}),
            (ValueError, "give indices or ranges", {"sampler": samplers.Subset()}),
            (TypeError, "indices are whole numbers, not float64", {"sampler": [1.5]}),
            (penstock.UnsupportedError, "MixUp works on batches: give it to batch_transforms=", {"transforms": T.MixUp()}),
            (penstock.UnsupportedError, "Resize works on single records: give it to transforms=", {"batch_transforms": T.Resize(3)}),
        ):
            with self.assertRaisesRegex(kind, text):
                loader("images", **{"batch_size": 2, **options})
        with loader("images", 2) as dl:
            with self.assertRaisesRegex(ValueError, r"not what state_dict\(\) returned: it has 'what'"):
                dl.load_state_dict({"what": 1})
            with self.assertRaisesRegex(ValueError, "epoch is -1"):
                dl.set_epoch(-1)
            with self.assertRaisesRegex(TypeError, "has no items"):
                dl[0]
        for use in (lambda: next(iter(dl)), dl.stats, lambda: dl.load_state_dict(dl.state_dict())):
            with self.assertRaisesRegex(penstock.Error, "was closed; make a new one"):
                use()
        with loader("images", np.int64(2), np.bool_(True), seed=np.uint8(1)) as dl:
            batch = next(iter(dl))
            self.assertIn("batch 1 of", repr(dl))
            dl.stats()  # which waits until batches have come
        with self.assertRaisesRegex(penstock.Error, "was closed; make a new one"):
            next(iter(dl))
        with self.assertRaisesRegex(KeyError, "no field 'image'; there are: images"):
            batch["image"]

    def test_a_generator(self):
        """The seed is drawn from it once, as torch draws the seed of its workers."""
        drawn = [loader("images", 100, True, generator=np.random.default_rng(k)) for k in (1, 1, 2)]
        orders = [[records(dl) for _ in range(2)] for dl in drawn]
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])
        copied = pickle.loads(pickle.dumps(drawn[0]))
        self.assertEqual((copied.seed, copied.generator), (drawn[0].seed, None))
        if torch is not None:
            generator = torch.Generator().manual_seed(7)
            want = int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
            drawn.append(loader("images", 100, True, generator=torch.Generator().manual_seed(7), output="torch"))
            self.assertEqual(drawn[-1].seed, want)
        for dl in (*drawn, copied):
            dl.close()

    def test_workers(self):
        orders = []
        for workers in (None, 0, 1, 3):
            with loader(
                "images", 100, True, seed=1, num_workers=workers, persistent_workers=workers != 0, multiprocessing_context="fork" if workers else None
            ) as dl:
                orders.append(records(dl))
                self.assertEqual(dl.stats()["loader"]["Workers"] if workers else 1, workers or 1)
                self.assertGreaterEqual(dl.num_workers, 1 if workers is None else workers)
        self.assertEqual(orders, 4 * orders[:1])
        with self.assertWarnsRegex(DeprecationWarning, "pin_memory_device is deprecated"):
            loader("images", 100, pin_memory_device="cuda").close()

    def test_pinned_memory_of_arrays(self):
        """Is NVIDIA's driver's, where there is one, and not torch's: it is asked of the first device."""
        for asked in (False, True):
            with loader("images", 100, output="numpy", pin_memory=asked) as dl:
                (self.assertNotEqual if asked else self.assertEqual)(dl.stats()["pinned"], "not asked for")
        with mock.patch("penstock._engine.pinned.Context") as context:
            pinning, copies = request._pinning(True, "numpy", None)
        context.assert_called_once_with(0)
        self.assertEqual((pinning.state, copies, request._pinning(False, "numpy", None)), ("yes", None, (None, None)))

    def test_a_fork_gets_an_error_at_once(self):
        with loader("images", 50, True, seed=3) as f:
            want = indices(loader("images", 50, True, seed=3))
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

    def test_a_truncated_file_is_named(self):
        for name, options in (
            ("images", {"transforms": T.RandomHorizontalFlip()}),
            ("images", {"transforms": NORMALIZE, "shuffle": True}),
            ("ragged", {}),
            ("ragged", {"shuffle": True}),
        ):
            with self.subTest(name=name, **options):
                copied = self.copy(name)
                column = "images" if name == "images" else "tokens.values"
                with penstock.DataLoader(copied, 10, output="numpy", command=data.feed(), **options) as dl:
                    next(iter(dl))
                    os.truncate(os.path.join(copied, f"{column}-00001.npy"), 4096)
                    with self.assertRaisesRegex(penstock.Error, rf"record \d+.*{column}-00001.npy.*truncated") as caught:
                        for _ in range(3):
                            for _ in dl:
                                pass
                    self.assertNotIn("goroutine", str(caught.exception))

    @unittest.skipIf(torch is None, "no torch")
    def test_tensors(self):
        ds = penstock.open(data.path("types"))
        with loader("types", 300, output="torch") as dl, loader("types", 300) as arrays:
            for batch, want in zip(dl, arrays):
                for name in ds.fields:
                    self.assertEqual(str(batch[name].dtype), f"torch.{ds.fields[name].dtype}")
                    self.assertEqual(bytes(batch[name].contiguous().view(torch.uint8).numpy()), want[name].tobytes())
        with loader("ragged", 64, fields=["tokens", "labels", "caption"], output="torch") as dl:
            batch = next(iter(dl))
            tokens, texts = batch["tokens"].values, batch["caption"]
            self.assertEqual(texts, list(penstock.open(data.path("ragged"))["caption"][0:64]))
            want = tokens.clone()
            del batch
            for _, batch in zip(range(5), dl):
                del batch
            self.assertTrue(torch.equal(tokens, want))
        with loader("images", 64, output="torch", pin_memory=True) as dl:
            next(iter(dl))
            self.assertEqual(dl.stats()["pinned"] == "yes", torch.cuda.is_available())

    def test_torch_is_not_imported(self):
        code = f"""if True:
            import sys, penstock
            from penstock import transforms as T
            next(iter(penstock.DataLoader({data.path("images")!r}, 50, transforms=T.ToTensor(), output="numpy", command={data.feed()!r})))
            sys.exit("torch" in sys.modules)
        """
        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, "..")}
        subprocess.run([sys.executable, "-c", code], env=env, check=True)

    @unittest.skipIf(importlib.util.find_spec("jax") is None, "no jax")
    def test_sharding(self):
        code = """if 1:
            import sys, numpy as np, jax, penstock
            from jax.sharding import Mesh, NamedSharding, PartitionSpec
            rows = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
            for given in (sys.argv[1], {"x": np.arange(1000)}):
                fields = None if isinstance(given, dict) else ["uint8"]
                made = lambda n, device=rows, **more: penstock.DataLoader(given, n, output="jax", device=device, fields=fields, **more)
                for size, device, text in ((6, rows, "batch_size is 6"), (14, rows, "give drop_last=True"), (7, jax.devices(), "it is a jax.Device")):
                    try:
                        raise SystemExit(f"{size} is taken: {made(size, device)}")
                    except (TypeError, ValueError) as e:
                        assert text in str(e), e
                shapes = {b["x" if "x" in b.keys() else "uint8"].shape[0] for b in made(14, drop_last=True)}
                assert shapes == {14}, shapes
        """
        env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=7", "PENSTOCK_FEED": data.feed(), "JAX_PLATFORMS": "cpu"}
        done = subprocess.run([sys.executable, "-c", code, data.path("types")], env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])

    @unittest.skipIf(importlib.util.find_spec("jax") is None, "no jax")
    def test_jax(self):
        import jax

        ds = penstock.open(data.path("types"))
        with loader("types", 300, True, output="jax", fields=["bfloat16", "float32", "uint8"]) as dl:
            kept = []
            for batch in dl:
                self.assertEqual(str(batch["bfloat16"].dtype), "bfloat16")
                kept.append((batch.indices.copy(), jax.tree.map(lambda x: x, batch)))
        for numbers, batch in kept:
            self.assertEqual(np.asarray(batch["float32"]).tobytes(), ds["float32"].take(numbers).tobytes())
        with (
            loader("types", 300, output="jax", fields=["int64"]) as dl,
            self.assertRaisesRegex(penstock.Error, "field 'int64' has integers that int32 does not hold"),
        ):
            list(dl)
        with loader("ragged", 64, output="jax", fields=["tokens"]) as dl:
            self.assertEqual(next(iter(dl))["tokens"].offsets.shape, (65,))
        cpu = jax.local_devices(backend="cpu")[0]
        for place in (cpu, "cpu:0", jax.sharding.SingleDeviceSharding(cpu)):
            with loader("images", 50, True, output="jax", device=place, pin_memory=True) as dl, loader("images", 50, True) as plain:
                for batch, want in zip(dl, plain):
                    self.assertEqual(batch["images"].devices(), {cpu})
                    self.assertEqual(np.asarray(batch["images"]).tobytes(), want["images"].tobytes())
                    self.assertEqual(batch.indices.tolist(), want.indices.tolist())
        with self.assertLogs("penstock", "WARNING") as logged:
            for _ in range(2):
                loader("images", 50, output="jax", device="cuda").close()
        self.assertRegex(logged.output[0], "device is cuda, and JAX finds none: batches go to .*(?i:cpu)")
        self.assertEqual(len(logged.output), 1)
