import copy
import json
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import penstock

from . import data
from .test_chunk_shuffle import write_zarr
from .test_dataloader import loader

try:
    import torch

    import penstock.torch
except ImportError:
    torch = None

FOUR = ("epoch", "step", "indices", "mask")


class BatchesTest(unittest.TestCase):
    """Batches that are copied, moved, and taken to other processes."""

    def assert_same(self, got, want):
        self.assertIsInstance(got, penstock.LoaderBatch)
        self.assertEqual((got.epoch, got.step, got.indices.tolist(), got.mask.tolist()), want["four"])
        self.assertEqual(list(got.keys()), list(want["values"]))
        for name, value in want["values"].items():
            self.assertEqual(bytes_of(got[name]), value, name)

    def test_copies_have_memory_of_their_own(self):
        for output in ("numpy", "torch") if torch else ("numpy",):
            for name, fields in (("images", None), ("ragged", ["tokens", "boxes", "caption"])):  # torch cannot pickle uint64
                with self.subTest(output=output, name=name), loader(name, 64, True, output=output, fields=fields) as dl:
                    batches = iter(dl)
                    next(batches)
                    batch = next(batches)
                    want = {
                        "four": (0, 1, batch.indices.tolist(), batch.mask.tolist()),
                        "values": {name: bytes_of(v) for name, v in batch.items()},
                    }
                    pickled = pickle.dumps(batch)
                    copies = [
                        copy.deepcopy(batch),
                        pickle.loads(pickled),
                        copy.deepcopy(copy.copy(batch)),
                        batch.holding(copy.deepcopy(dict(batch.items()))),
                    ]
                    kept = [copy.copy(batch), batch.copy()]  # of the same memory, which they keep
                    if output == "torch":
                        copies.append(copy.deepcopy(batch.to("cpu")))
                        kept.append(batch.to(torch.device("cpu"), non_blocking=True))
                    self.assertLess(len(pickled), 2 * sum(map(len, want["values"].values())) + 20_000)
                    del batch
                    for _ in range(3):
                        for other in dl:
                            del other
                    for got in copies + kept:
                        self.assert_same(got, want)
                    dl.close()
                    for got in copies + kept:
                        self.assert_same(got, want)

    def test_within_memory(self):
        for name, batch_size, options in (("images", 200, {}), ("images", 200, {"num_workers": 8, "prefetch_factor": 9}), ("ragged", 50, {})):
            with loader(name, batch_size, True, seed=3, **options) as dl:
                want = [bytes_of(batch) for batch in dl]
            for memory, most in (("1MiB", 1 << 20), (3 << 19, 3 << 19), ("100MB", 10**8)):
                with self.subTest(name=name, options=options, memory=memory), loader(name, batch_size, True, seed=3, memory=memory, **options) as dl:
                    held, got = [], []
                    for batch in dl:
                        held = [*held[-1:], batch]  # as a step that still copies the batch before
                        got.append(bytes_of(batch))
                    self.assertEqual(got, want)
                    self.assertLessEqual(dl.stats()["shared"], most + (1 << 16))  # of positions
        with self.assertRaisesRegex(penstock.Error, "batches of 200 records .* room for 0 of them, where 4 are the least that works; lower"):
            loader("images", 200, memory=1000)
        with self.assertRaisesRegex(ValueError, "memory is '4 gigs'; it must be bytes"):
            loader("images", 200, memory="4 gigs")

    def test_a_pickled_batch_in_another_process(self):
        code = (
            "import pickle, sys; b = pickle.load(sys.stdin.buffer); print(b.epoch, b.step, b.indices.tolist(), b.mask.tolist(), b['labels'].tolist())"
        )
        env = {**os.environ, "PYTHONPATH": os.path.join(data.HERE, "..")}
        with loader("images", 8, True) as dl:
            batch = next(iter(dl))
            out = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(batch), env=env, capture_output=True, check=True)
            want = f"0 0 {batch.indices.tolist()} {batch.mask.tolist()} {batch['labels'].tolist()}"
        self.assertEqual(out.stdout.decode().strip(), want)

    def test_a_named_tuple(self):
        with loader("images", 8) as dl:
            for k, (images, labels) in enumerate(dl):
                self.assertEqual(
                    (images.shape[0], labels.tolist()),
                    (len(labels), penstock.open(data.path("images"))["labels"][8 * k : 8 * k + len(labels)].tolist()),
                )
            batch = next(iter(dl))
        self.assertIsInstance(batch, tuple)
        self.assertEqual((batch._fields, batch.keys(), len(batch)), (("images", "labels"), ("images", "labels"), 2))
        for name, place in (("images", 0), ("labels", -1)):
            for got in (
                batch[name],
                batch[place],
                getattr(batch, name),
                batch.values()[place],
                dict(batch)[name],
                dict(batch.items())[name],
                {**batch}[name],
            ):
                self.assertIs(got, batch[place])
        self.assertEqual((batch[:1], "images" in batch, "mask" in batch), ((batch.images,), True, False))
        match = (lambda images, labels: (images, labels))(**batch)
        self.assertIs(match[1], batch.labels)
        changed = batch._replace(labels=3)
        self.assertEqual((changed.labels, changed.step, changed.mask.tolist()), (3, 0, [True] * 8))
        self.assertIs(type(changed), type(batch))
        self.assertEqual(batch._asdict().keys(), {"images", "labels"})
        self.assertRegex(repr(batch), r"<penstock batch 0 of epoch 0: images uint8\[8, 3, 10, 16\], labels int32\[8\]>|labels")
        with self.assertRaisesRegex(KeyError, "no field 'image'; there are: images, labels"):
            batch["image"]
        with self.assertRaisesRegex(AttributeError, "no attribute 'image'; its fields are: images, labels"):
            _ = batch.image
        with self.assertRaisesRegex(ValueError, "no field 'image'; there are: images, labels"):
            batch._replace(image=3)
        with self.assertRaisesRegex(TypeError, r"a batch of 2 fields \(images, labels\) of 3 values"):
            type(batch)(1, 2, 3)

    def test_names_of_fields(self):
        from penstock._engine.batch import BatchTuple

        values = {"a b": 1, "class": 2, "mask": 3, "step": 4, "index": 5, "_x": 6, "keys": 7, "x": 8}
        batch = BatchTuple._of(values)
        self.assertEqual({name: batch[name] for name in values}, values)
        self.assertEqual((batch.index, batch.x, batch.keys()), (5, 8, tuple(values)))
        for name in ("mask", "step"):
            with self.assertRaisesRegex(AttributeError, f"a batch built from other items.*has no {name}"):
                getattr(batch, name)
        with loader("images", 8, fields=["labels"]) as dl:
            (labels,) = batch = next(iter(dl))
            self.assertEqual(labels.tolist(), batch["labels"].tolist())
            for again in (type(batch)(labels), type(batch)(x for x in batch), type(batch)(batch), type(batch)({"labels": labels})):
                self.assertEqual((type(again), len(again), again.labels.tolist()), (type(batch), 1, labels.tolist()))

    def test_arrays_in_groups(self):
        """A file of another program has fields that are called by their paths."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.zarr")
            write_zarr(path, "train/x", np.arange(20, dtype=np.float32).reshape(5, 4), (2, 4))
            shutil.copy(os.path.join(path, ".zgroup"), os.path.join(path, "train"))
            with penstock.DataLoader(path, 2, output="numpy", command=data.feed()) as dl:
                batches = list(dl)
            self.assertEqual(batches[0].keys(), ("train/x",))
            self.assertEqual(np.concatenate([batch["train/x"] for batch in batches]).ravel().tolist(), list(range(20)))

    def test_a_dict(self):
        with loader("images", 8, batch_type=dict) as dl:
            batch = next(iter(dl))
            self.assertIsInstance(batch, dict)
            self.assertIsInstance(batch, penstock.LoaderBatch)
            self.assertEqual((list(batch), batch.indices.tolist()), (["images", "labels"], list(range(8))))
            with self.assertRaisesRegex(KeyError, "no field 'image'; there are: images, labels"):
                batch["image"]
            for other in (copy.copy(batch), copy.deepcopy(batch), pickle.loads(pickle.dumps(batch)), batch.holding(batch)):
                self.assertIs(type(other), type(batch))
                self.assertEqual((other.indices.tolist(), other["labels"].tolist()), (list(range(8)), batch["labels"].tolist()))

    def test_a_batch_of_other_items(self):
        for kind in (tuple, dict):
            with loader("images", 8, batch_type=kind) as dl:
                batch = next(iter(dl))
            made = [type(batch)(dict(batch.items()))]
            if kind is tuple:
                made += [type(batch)(*batch), type(batch)._make(batch), type(batch)(list(batch)), type(batch)(x for x in batch)]
            for rebuilt in made:
                self.assertEqual(dict(rebuilt.items()).keys(), dict(batch.items()).keys())
                self.assertIs(rebuilt["labels"], batch["labels"])
                for b in (rebuilt, copy.copy(rebuilt), copy.deepcopy(rebuilt), pickle.loads(pickle.dumps(rebuilt)), type(batch)(dict(batch.items()))):
                    for name in FOUR:
                        with self.assertRaisesRegex(AttributeError, rf"a batch built from other items.*has no {name};.*batch.to\(device\)"):
                            getattr(b, name)
            with self.assertRaises(AttributeError):
                batch.epoch = 3

    def test_a_forked_child_keeps_its_batch(self):
        for name in ("images", "ragged"):
            with self.subTest(name=name), loader(name, 64, True, num_workers=1) as dl, loader(name, 64, True) as twin:
                batches = iter(dl)
                batch = next(batches)
                order = next(iter(twin)).indices.tolist()  # nobody asks this batch for its own before the fork
                view = next(batches)
                view = view["images"][5:] if name == "images" else view["tokens"].values
                want = bytes_of(batch), order, view.tobytes()
                go, done = os.pipe(), os.pipe()
                child = os.fork()
                if child == 0:
                    signal.alarm(300)
                    try:
                        os.read(go[0], 1)
                        same = (bytes_of(batch), batch.indices.tolist(), view.tobytes()) == want
                        view[...] = 1  # it is the child's
                        os.write(done[1], b"x")
                        os._exit(0 if same else 2)
                    finally:
                        os._exit(3)
                os.close(done[1])  # so that its end is seen
                kept = batch["labels"] if name == "images" else batch["boxes"]
                before = bytes_of(kept)
                del batch
                parents = view.tobytes()
                for _ in range(3):
                    for other in dl:
                        del other
                os.write(go[1], b"x")
                os.read(done[0], 1)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
                self.assertEqual((bytes_of(kept), view.tobytes()), (before, parents))
                for fd in (*go, done[0]):
                    os.close(fd)

    def test_copies_at_random_points(self):
        """Loops in which batches are copied, pickled, taken to forks, threads and other processes, and loaders pickled."""
        points = int(os.environ.get("PENSTOCK_TEST_POINTS", "150"))
        rng = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", "1")))
        count = 0
        while count < points:
            name = rng.choice(("images", "ragged"))
            with penstock.open(data.path(name)) as ds:
                count += Points(self, rng, ds, name).run(min(200, points - count))

    def test_records_of_variable_length(self):
        ds = penstock.open(data.path("ragged"))
        for output in ("numpy", "torch") if torch else ("numpy",):
            with self.subTest(output=output), loader("ragged", 50, True, output=output) as dl:
                for batch in dl:
                    boxes, want = batch["boxes"], ds["boxes"].take(batch.indices)
                    self.assertEqual(len(boxes), len(batch.indices))
                    for got in (list(boxes), [boxes[i] for i in range(len(boxes))], [boxes[i - len(boxes)] for i in range(len(boxes))]):
                        self.assertEqual([bytes_of(g) for g in got], [w.tobytes() for w in want])
                        self.assertEqual([tuple(g.shape) for g in got], [w.shape for w in want])
                    self.assertEqual(np.asarray(boxes.lengths).tolist(), want.lengths.tolist())
                    self.assertEqual(np.asarray(boxes.offsets).tolist(), want.offsets.tolist())
                    self.assertEqual(len(list(zip(batch["labels"], boxes))), len(batch.indices))
                    for wrong in (len(boxes), -len(boxes) - 1):
                        with self.assertRaisesRegex(IndexError, "out of range: there are"):
                            boxes[wrong]
                    with self.assertRaises(TypeError):
                        boxes["x"]
                    self.assertIs(type(batch["caption"]), list)
                    self.assertEqual(batch["caption"], list(ds["caption"].take(batch.indices)))
                    del batch, boxes, got

    @unittest.skipIf(torch is None, "no torch")
    def test_jagged(self):
        b = penstock.torch.Jagged(torch.arange(10.0), torch.tensor([0, 3, 3, 10]))
        self.assertEqual([r.tolist() for r in b], [[0, 1, 2], [], [3, 4, 5, 6, 7, 8, 9]])
        self.assertEqual(repr(b), "<3 jagged records: torch.float32 (10,) on cpu>")
        self.assertEqual((b.to(torch.float64).values.dtype, b.to(torch.float64).offsets.dtype), (torch.float64, torch.int64))
        self.assertEqual(b.to("meta", non_blocking=True).offsets.device.type, "meta")
        for again in (pickle.loads(pickle.dumps(b)), copy.deepcopy(b)):
            self.assertEqual([r.tolist() for r in again], [r.tolist() for r in b])
        self.assertEqual([r.tolist() for r in b.nested().unbind()], [r.tolist() for r in b])

    @unittest.skipIf(torch is None, "no torch")
    def test_through_torch(self):
        """torch.save, a queue of torch.multiprocessing, and pin_memory's way to rebuild a dict."""
        with loader("images", 16, True, output="torch", batch_type=dict) as dl, tempfile.TemporaryDirectory() as folder:
            batch = next(iter(dl))
            four = (batch.epoch, batch.step, batch.indices.tolist(), batch.mask.tolist())
            labels = batch["labels"].tolist()
            file = os.path.join(folder, "batch.pt")
            torch.save(batch, file)
            self.assertLess(os.path.getsize(file), 2 * sum(v.nbytes for v in batch.values()) + 20_000)
            queue = torch.multiprocessing.get_context("spawn").Queue()
            queue.put(batch)
            clone = copy.copy(batch)
            clone.update({name: v.clone() for name, v in batch.items()})
            for got in (torch.load(file, weights_only=False), queue.get(), clone):
                self.assertEqual(((got.epoch, got.step, got.indices.tolist(), got.mask.tolist()), got["labels"].tolist()), (four, labels))
            queue.close()
            queue.join_thread()


class Points:
    """One loader, in whose loops something happens at random points. Whatever has been kept or copied stays as the dataset has it."""

    def __init__(self, test, rng, ds, name):
        self.test, self.rng, self.ds = test, rng, ds
        self.kept = []  # batches, views of arrays and copies, each with what it has to be
        self.outputs = ("numpy", "torch") if torch and name == "images" else ("numpy",)
        self.batch_size, self.seed = rng.choice((7, 64, 200, 500)), rng.randrange(100)
        workers = rng.randrange(3)
        self.options = {"num_workers": workers, "prefetch_factor": rng.choice((None, 1, 3)) if workers else None, "seed": self.seed}
        self.name, self.output = name, rng.choice(self.outputs)

    def run(self, points):
        """Loop until something has happened at points batches. Return their number."""
        order = penstock.order.Batches(len(self.ds), self.batch_size, seed=self.seed)
        done, epoch = 0, -1
        with loader(self.name, self.batch_size, True, output=self.output, **self.options) as dl:
            while done < points:
                epoch += 1
                order.set_epoch(epoch)
                want = list(order)
                for step, batch in enumerate(dl):
                    self.test.assertEqual((batch.epoch, batch.step, batch.indices.tolist()), (epoch, step, want[step].tolist()))
                    if done < points and self.rng.random() < 0.6:
                        done += 1
                        self.something(dl, batch, want[step + 1 :])
                    elif self.rng.random() < 0.02:
                        break
                del batch
                self.check()
        self.check(all_of_them=True)
        return done

    def something(self, dl, batch, rest):
        what = self.rng.choices(
            (self.keep, self.view, self.copies, self.pickles, self.fork, self.thread, self.drop, self.pickled_loader, self.spawn),
            (10, 10, 15, 15, 12, 10, 15, 1, 0.03),
        )[0]
        what(dl, batch, rest)

    def truth(self, batch):
        """Return the bytes of a batch's values, from the dataset."""
        record = self.ds[batch.indices.tolist()]
        return {f: bytes_of(list(record[f])) if isinstance(batch[f], list) else bytes_of(record[f]) for f in batch.keys()}  # noqa: SIM118 - a batch that is a tuple has its values

    def keep(self, dl, batch, rest):
        self.kept.append((self.rng.choice((batch, copy.copy(batch), batch.copy())), self.truth(batch)))

    def view(self, dl, batch, rest):
        values = batch["labels"][len(batch.indices) // 2 :]
        self.kept.append(({"labels": values}, {"labels": bytes_of(self.ds["labels"][batch.indices.tolist()][len(batch.indices) // 2 :])}))

    def copies(self, dl, batch, rest):
        self.kept.append((copy.deepcopy(batch), self.truth(batch)))

    def pickles(self, dl, batch, rest):
        again = pickle.loads(pickle.dumps(batch, protocol=self.rng.randrange(2, 6)))
        self.test.assertEqual([getattr(again, f) for f in FOUR[:2]] + [again.indices.tolist(), again.mask.tolist()],
                              [batch.epoch, batch.step, batch.indices.tolist(), batch.mask.tolist()])  # fmt: skip
        self.kept.append((again, self.truth(batch)))

    def fork(self, dl, batch, rest):
        child = os.fork()
        if child == 0:
            signal.alarm(300)
            code = 3
            try:
                self.check(all_of_them=True)
                code = 0 if {f: bytes_of(v) for f, v in batch.items()} == self.truth(batch) else 2
            finally:
                os._exit(code)
        self.test.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def thread(self, dl, batch, rest):
        """Another thread copies batches while the loop goes on."""
        truth, copied, ended = self.truth(batch), copy.copy(batch), []

        def work():
            self.kept.append((copy.deepcopy(copied), truth))
            self.kept.append((pickle.loads(pickle.dumps(copied)), truth))
            ended.append(True)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads:
            t.start()
        if self.rng.random() < 0.5:
            dl.stats()
        for t in threads:
            t.join()
        self.test.assertEqual(ended, [True, True])

    def drop(self, dl, batch, rest):
        for _ in range(min(3, len(self.kept))):
            self.same(self.kept.pop(self.rng.randrange(len(self.kept))))

    def pickled_loader(self, dl, batch, rest):
        """A copy of the loader goes on where the loop is, and leaves it alone."""
        with pickle.loads(pickle.dumps(dl)) if self.rng.random() < 0.7 else copy.deepcopy(dl) as again:
            self.test.assertEqual(again.state_dict(), dl.state_dict())
            self.test.assertEqual([b.indices.tolist() for b in again], [b.tolist() for b in rest])

    def spawn(self, dl, batch, rest):
        got = multiprocessing.get_context("spawn").Queue()
        other = multiprocessing.get_context("spawn").Process(target=_send, args=(got, batch))
        other.start()
        self.test.assertEqual(got.get(timeout=300), {f: bytes_of(v) for f, v in batch.items()})
        other.join()

    def check(self, all_of_them=False):
        while self.kept and (all_of_them or len(self.kept) > 20):
            self.same(self.kept.pop(self.rng.randrange(len(self.kept))))

    def same(self, entry):
        values, want = entry
        self.test.assertEqual({f: bytes_of(v) for f, v in values.items()}, want)


def _send(queue, batch):
    queue.put({f: bytes_of(v) for f, v in batch.items()})


def bytes_of(value):
    """Return all that a value has."""
    if isinstance(value, (dict, penstock.LoaderBatch)):
        return b"".join(bytes_of(v) for _, v in value.items())
    if isinstance(value, list):
        return json.dumps(value).encode()
    if hasattr(value, "values") and hasattr(value, "offsets"):
        return bytes_of(value.values) + bytes_of(value.offsets)
    if torch is not None and isinstance(value, torch.Tensor):  # NumPy has no bfloat16
        value = value.contiguous().view(torch.uint8)
    return np.asarray(value).tobytes()


if __name__ == "__main__":
    unittest.main()
