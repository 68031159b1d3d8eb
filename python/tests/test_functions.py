import functools
import gc
import io
import logging
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import numpy as np

import penstock
from penstock import transforms as T
from penstock._code.randomness import record_seed, seed_random
from penstock.functions import costs

from . import data

RECORDS = 90
#: Random programs of test_random_programs.
PROGRAMS = int(os.environ.get("PENSTOCK_PROGRAMS", "3"))


def half(x):
    return x // 2


def noisy(x):
    """Return bytes that depend on all random numbers."""
    return x ^ np.uint8(random.randrange(256)) ^ np.random.randint(0, 256, x.shape, np.uint8)


def to_float(x):
    return x.astype(np.float32)


def corner(x):
    return np.ascontiguousarray(x[:5, :6])


def mean(x):
    return x.mean((0, 1))


def fails(x, every=7):
    if x.flat[0] % every == 3:
        raise LookupError(f"a byte of {x.flat[0]}")
    return x


class Unpicklable(Exception):
    def __init__(self, number, lock):
        super().__init__(number, lock)
        self.lock = lock


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids, seconds=20):
    """Return whether processes end in time."""
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class FunctionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="penstock-functions-")
        cls.path = os.path.join(cls.base, "ds")
        rng = np.random.default_rng(1)
        schema = [
            penstock.Field("image", "uint8", (8, 9, 3), layout="HWC"),
            penstock.Field("signal", "float32", (6,)),
            penstock.Field("tokens", "int32", ragged=True),
            penstock.Field("text", "uint8", ragged=True, content="utf-8"),
            penstock.Field("label", "int64"),
        ]
        with penstock.Writer(cls.path, schema=schema, command=data.preprocess()) as w:
            for i in range(RECORDS):
                image = rng.integers(0, 256, (8, 9, 3), np.uint8)
                image[0, 0, 0] = 0 if i == 0 else image[0, 0, 0]
                w.append(
                    {
                        "image": image,
                        "signal": rng.random(6).astype(np.float32),
                        "tokens": rng.integers(0, 99, i % 11).astype(np.int32),
                        "text": f"text {i}",
                        "label": i,
                    }
                )
        cls.ds = penstock.open(cls.path)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.base)

    def loader(self, transforms, batch_size=16, fields=("image", "label"), **options):
        made = penstock.DataLoader(
            self.path, batch_size, output="numpy", transforms=transforms, fields=list(fields), command=data.feed(), **{"num_workers": 2, **options}
        )
        self.addCleanup(made.close)
        return made

    def records(self, loader, field="image"):
        """Return the values of an epoch by record."""
        return {int(r): b[field][i].copy() for b in loader for i, r in enumerate(b.indices)}

    def seeded(self, record, seed=0, epoch=0, place=0):
        seed_random(record_seed(seed, epoch, record, place=place))


class ResultsTest(FunctionsTest):
    def check(self, transforms, want, field="image", fields=("image", "label"), **options):
        got = self.records(self.loader(transforms, fields=fields, **options), field)
        self.assertEqual(len(got), RECORDS)
        for r, value in got.items():
            expected = want(r)
            self.assertEqual((value.dtype, value.shape), (expected.dtype, expected.shape))
            np.testing.assert_array_equal(value, expected)

    def test_random_numbers_that_are_drawn_late(self):
        """Generators are seeded for a record only where a function draws from them, which most records of a task may not."""

        def drawn(label, way):
            found = np.array([int(label) + 1, 0.0])
            if label % 20 == 17:
                found[1] = way()
                label[...] = 0  # from which the record is computed again
            return found

        for way in (random.random, np.random.standard_normal, lambda: random.gauss(0, 1), lambda: np.random.randint(1 << 30)):

            def want(r, way=way):
                self.seeded(r)
                return drawn(np.array(r), way)

            for workers in (0, 1, 3):
                with self.subTest(workers=workers):
                    self.check({"label": functools.partial(drawn, way=way)}, want, "label", ["label"], num_workers=workers, batch_size=40)

    def test_between_steps_of_the_engine(self):
        def want(r):
            x = half(self.ds[r]["image"][2:7, 2:7]).astype(np.float32) / np.float32(255)
            return ((x - np.float32(0.5)) / np.float32(0.25)).transpose(2, 0, 1)

        self.check([T.CenterCrop(5), half, T.ToTensor(), T.Normalize([0.5], [0.25])], want)

    def test_floats_go_on(self):
        def want(r):
            return ((to_float(self.ds[r]["image"]) - np.float32(0.5)) / np.float32(0.25)).transpose(2, 0, 1)

        self.check([to_float, T.ToTensor(), T.Normalize([0.5], [0.25])], want)

    def test_several_functions(self):
        def want(r):
            x = half(self.ds[r]["image"][2:7, 2:7])
            self.seeded(r, place=1)
            return noisy(np.ascontiguousarray(x[1:4, 1:4])).astype(np.float32)

        self.check([T.CenterCrop(5), half, T.CenterCrop(3), noisy, to_float], want)

    def test_what_it_returns_can_be_stated(self):
        called = os.path.join(self.base, "called")

        def noted(x):
            with open(called, "a") as f:
                f.write("x")
            return x[0, 0]

        self.loader([T.Function(noted, output=("uint8", (3,)))])
        self.assertFalse(os.path.exists(called))
        self.loader([noted])
        self.assertTrue(os.path.exists(called))
        got = self.records(self.loader([T.Function(noted, output=(np.uint8, 3))]))
        np.testing.assert_array_equal(got[5], self.ds[5]["image"][0, 0])

    def test_variable_lengths_become_one(self):
        def padded(tokens):
            return np.pad(tokens, (0, 12 - len(tokens)))

        def want(r):
            return np.pad(self.ds[r]["tokens"], (0, 12 - r % 11))

        self.check({"tokens": padded}, want, "tokens", ["tokens"])
        self.check(
            {"text": lambda text: np.frombuffer(text.encode().ljust(9), np.uint8)},
            lambda r: np.frombuffer(f"text {r}".encode().ljust(9), np.uint8),
            "text",
            ["text"],
        )

    def test_layout(self):
        def planes(x):
            assert x.shape == (3, 8, 9), x.shape
            return x[:, 1:3]

        self.check([T.Function(planes, layout="CHW")], lambda r: self.ds[r]["image"].transpose(2, 0, 1)[:, 1:3])
        self.check([T.ToImage(), planes], lambda r: self.ds[r]["image"].transpose(2, 0, 1)[:, 1:3])

    def test_a_function_may_change_its_input_and_return_it(self):
        def changed(x):
            x[0] = 7
            return x

        def want(r):
            x = self.ds[r]["image"].copy()
            x[0] = 7
            return x

        self.check([changed], want)

    def test_a_function_that_keeps_its_inputs(self):
        kept = []

        def keeps(x):
            kept.append(x)
            return kept[max(0, len(kept) - 2)] * 0 + x

        self.check([keeps], lambda r: self.ds[r]["image"])
        calls = []

        def keeps_later(x):
            calls.append(x if len(calls) == 3 else None)
            return x

        with self.assertRaisesRegex(penstock.Error, "keeps a reference to its input"):
            self.records(self.loader([keeps_later]))

    def test_annotations(self):
        def stored(x: bytes):
            return np.frombuffer(x[:10], np.uint8)

        self.check([stored], lambda r: self.ds[r]["image"].reshape(-1)[:10])

    def test_pickled(self):
        again = pickle.loads(pickle.dumps(self.loader([half])))
        self.addCleanup(again.close)
        np.testing.assert_array_equal(self.records(again)[4], half(self.ds[4]["image"]))


class HereTest(FunctionsTest):
    """num_workers=0 calls functions in this process."""

    def test_results(self):
        state = random.getstate(), np.random.get_state()[1].tolist()
        with_workers = self.records(self.loader([T.CenterCrop(5), noisy, T.ToTensor()]))
        here = self.records(self.loader([T.CenterCrop(5), noisy, T.ToTensor()], num_workers=0))
        for r in range(RECORDS):
            np.testing.assert_array_equal(here[r], with_workers[r])
        self.assertEqual((random.getstate(), np.random.get_state()[1].tolist()), state)

    def test_it_is_this_process(self):
        called = []

        def f(x):
            called.append(os.getpid())
            return x

        made = self.loader([f], num_workers=0)
        self.records(made)
        self.assertEqual(set(called), {os.getpid()})

    def test_exceptions_have_their_own_traceback(self):
        with self.assertRaises(LookupError) as caught:
            self.records(self.loader([fails], num_workers=0))
        self.assertIs(type(caught.exception.__cause__), LookupError)
        self.assertIsNotNone(caught.exception.__cause__.__traceback__)


class CostsTest(FunctionsTest):
    def test_explain(self):
        made = self.loader({"image": [T.CenterCrop(5), half, T.ToTensor()], "signal": half}, fields=["image", "signal"])
        for _ in made:
            pass
        text = made.explain()
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        for said in (
            r"image +engine +\d+ +CenterCrop",
            r"image +2 Python workers +\d+ +half",
            r"image +engine +\d+ +ToTensor",
            r"signal +2 Python workers",
        ):
            self.assertRegex(text, said)

    def test_diagnose(self):
        def slow(x):
            time.sleep(0.01)  # and not less, as workers share the cores with others
            return x

        made = self.loader([slow], 4)
        for _ in made:
            pass
        text = costs.diagnose({**made.stats(), "diagnose": ""}, 2)  # whatever other programs do
        self.assertRegex(text, r"user code: slow takes \d+ us a record, and 2 worker processes are busy for .*penstock.map\(lambda r.*times as fast")

    def test_diagnose_from_numbers(self):
        """Functions that wait, that compute, and that other programs hold up."""
        second = 10**9
        report = {"field": "x", "functions": ["nap"], "records": 1000, "worker": 16 * second, "function": 16 * second, "head": 0, "after": 0}
        loader = {"Batches": 100, "Wait": 6 * second, "Body": 2 * second, "CPU": second, "Cores": 4, "Workers": 2}
        for said, cpu, want in (
            (
                "transforms wait: ...",
                1,
                r"user code: nap .*; it used 0\.1 of 4 cores, so .* waits .*: num_workers=9 would make the loop up to 3\.7 times",
            ),
            ("transforms wait: ...", 15, r"user code: nap .*; num_workers=4 would use all cores; if it"),
            ("other programs: ...", 1, "other programs: ...$"),
        ):
            self.assertRegex(costs.diagnose({"diagnose": said, "loader": {**loader, "CPU": cpu * second}, "functions": [report]}, 2), want)


def letters(text):
    return [ord(c) for c in text]


def drawn(text: str):
    return np.random.rand(len(text) % 4, 2).astype(np.float32)


class AnyRowsTest(FunctionsTest):
    """Functions of fields that return any number of rows run as functions of records do."""

    def test_results(self):
        for function, want in (
            (letters, lambda r: np.array(letters(self.ds[r]["text"]))),
            (str.upper, lambda r: self.ds[r]["text"].upper()),
            (str.encode, lambda r: np.frombuffer(self.ds[r]["text"].encode(), np.uint8)),
            (drawn, lambda r: (self.seeded(r, 7), drawn(self.ds[r]["text"]))[1]),
        ):
            for workers in (0, 2):
                with self.subTest(function=function, workers=workers):
                    made = self.loader({"text": [function]}, fields=["text", "label"], num_workers=workers, shuffle=True, seed=7)
                    got = {int(r): (b["text"][i], b["label"][i]) for b in made for i, r in enumerate(b.indices)}
                    self.assertEqual(len(got), RECORDS)
                    for r, (value, label) in got.items():
                        np.testing.assert_array_equal(value, want(r))
                        self.assertEqual((label, getattr(value, "dtype", str)), (r, getattr(want(r), "dtype", str)))

    def test_beside_functions_of_the_engine_and_of_records(self):
        def rows(image):
            return np.ones((image.shape[0] * int(image[0, 0, 0]) % 3, 4), np.float32)

        def both(record: dict):
            return {**record, "twice": 2 * len(record["image"])}

        transforms = {"": [T.CenterCrop(6), half, rows, both], "signal": [half], "text": [letters]}
        made = self.loader(transforms, fields=["image", "signal", "text", "label"])
        for b in made:
            for i, r in enumerate(b.indices):
                want = rows(self.ds[int(r)]["image"][1:7, 1:7] // 2)
                np.testing.assert_array_equal(b["image"][i], want)
                self.assertEqual((b["text"][i].tolist(), b["twice"][i]), (letters(f"text {r}"), 2 * len(want)))
                np.testing.assert_array_equal(b["signal"][i], self.ds[int(r)]["signal"] // 2)
        self.assertRegex(made.explain(), "records +2 Python workers .*letters")

    def test_declared(self):
        def same(x):
            return np.zeros((3, 2), np.float32)

        for output, said in (
            (("float32", (None, 2)), ""),
            (("float32", (None, 3)), r"record 0: same: signal is float32 \(3, 2\), and makes says float32 \(3,\) of any"),
        ):
            made = self.loader({"signal": [T.Function(same, output=output)]}, fields=["signal"], num_workers=0)
            if said:
                with self.assertRaisesRegex(TypeError, said):
                    next(iter(made))
            else:
                self.assertEqual(next(iter(made))["signal"].offsets.tolist(), list(range(0, 49, 3)))

    def test_a_later_record_of_another_shape(self):
        def odd(x):
            return np.zeros(4 + (x == 50), np.float32)

        def other(text):
            return [0.5] if text.endswith("50") else np.zeros((len(text) % 4, 2), np.int32)

        with self.assertRaisesRegex(
            TypeError, r"record 50 .*odd .*float32 \(5,\) for this record, and float32 \(4,\).* output=\('float32', \(None,\)\)"
        ):
            list(self.loader({"label": [odd]}, fields=["label"]))
        with self.assertRaisesRegex(
            TypeError, r"record 50: other: text: 0.5 of float64 is not int32, and the first records have int32 \(2,\) of any number of rows"
        ):
            list(self.loader({"text": [other]}, fields=["text"]))

    def test_none(self):
        def rows(text):
            return None if text.endswith("3") else [1] * len(text)

        def number(text):
            return None if text.endswith("3") else len(text)

        for function in (rows, number):
            with self.subTest(function=function):
                with self.assertRaisesRegex(
                    TypeError, rf'record 3\b.*{function.__name__}.* None, which is no value; on_error="backfill" puts another'
                ):
                    list(self.loader({"text": [function]}, fields=["text"], num_workers=0))
                with self.assertLogs("penstock", logging.WARNING):
                    left = [int(b.mask.sum()) for b in self.loader({"text": [function]}, fields=["text"], num_workers=0, on_error="backfill")]
                self.assertEqual(sum(left), RECORDS - 9)

    def test_states(self):
        options = {"fields": ["text", "label"], "shuffle": True, "seed": 7}
        want = [b["text"].values.tolist() for b in self.loader({"text": [drawn]}, **options)]
        for step in (0, 1, 4):
            first = self.loader({"text": [drawn]}, **options)
            for _ in zip(range(step), first):
                pass
            again = self.loader({"text": [drawn]}, num_workers=step % 3, **options)
            again.load_state_dict(first.state_dict())
            self.assertEqual([b["text"].values.tolist() for b in again], want[step:])
        for wrong in ({"text": ["int3", [], True, ""]}, {"text": ["int32", [-1], True, ""]}, {"text": 3}, 4):
            with self.assertRaises(penstock.Error):
                again.load_state_dict({**first.state_dict(), "results": wrong})

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, r"batch_transforms comes before functions that make any number of rows \(letters\)"):
            self.loader({"text": [letters]}, batch_transforms=T.LabelSmoothing(0.1, RECORDS), fields=["text", "label"])
        with self.assertRaisesRegex(
            penstock.Error, "<lambda> returns a list, a text or no elements, and other steps follow; have it return an array"
        ):
            self.loader({"label": [lambda x: [1, 2], T.Cast("float32")]}, fields=["label"])


@penstock.batched
def letters_of_all(texts: list[str]):
    return [letters(text) for text in texts]


@penstock.batched
def records_of_all(records: "list[dict]"):
    return [{"label": record["label"], "ids": np.arange(record["label"] % 5)} for record in records]


@penstock.batched
def pairs_of_all(texts, labels):
    return [(text.upper(), label + 1) for text, label in zip(texts, labels)]


class BatchedTest(FunctionsTest):
    """A function that gets several records at a time is equal to the one that gets one."""

    def rows(self, transforms, **options):
        made = self.loader(transforms, fields=["text", "label"], shuffle=True, seed=3, **options)
        return [
            {k: b[k][i] if isinstance(b[k][i], str) else b[k][i].tolist() for k in dict(b.items())} for b in made for i in range(int(b.mask.sum()))
        ]

    def test_as_one_by_one(self):
        def record(record: dict):
            return records_of_all([record])[0]

        def pair(text, label):
            return pairs_of_all([text], [label])[0]

        for together, alone in (
            ({"text": [letters_of_all]}, {"text": [letters]}),
            ({"text": [str.upper, letters_of_all]}, {"text": [str.upper, letters]}),
            ([records_of_all], [record]),
            ({"text": [drawn], "": [records_of_all]}, {"text": [drawn], "": [record]}),
            ([T.Record(pairs_of_all, takes=["text", "label"])], [T.Record(pair, takes=["text", "label"])]),
        ):
            for options in ({"num_workers": 0}, {"batch_size": 80}):
                with self.subTest(together=together, **options):
                    self.assertEqual(self.rows(together, **options), self.rows(alone, **options))

    def test_how_many_at_a_time(self):
        sizes = []

        @penstock.batched
        def counted(texts):
            sizes.append(len(texts))
            return [len(text) for text in texts]

        self.rows({"text": [counted]}, num_workers=0, batch_size=80)
        self.assertEqual(sizes, [64, 64, 16, 10])  # the first records are looked at
        self.assertEqual(counted(["a"]), [1])

    def test_errors(self):
        @penstock.batched
        def fails(texts):
            return [1 // (text != "text 7") for text in texts]

        with self.assertRaisesRegex(ZeroDivisionError, r"\(record 7, batch \d+\)"):
            self.rows({"text": [fails]})
        with self.assertLogs("penstock", logging.WARNING) as logs:
            self.assertEqual(len(self.rows({"text": [fails]}, on_error="backfill")), RECORDS - 1)
        self.assertEqual(["record 7: ZeroDivisionError" in line for line in logs.output], [True])
        for wrong, said in ((lambda texts: 3, "returned int for"), (lambda texts: texts[1:], "returned list of")):
            with self.assertRaisesRegex(TypeError, rf"<lambda> is batched, and has {said} .*a list of one result for each"):
                self.rows({"text": [penstock.batched(wrong)]}, num_workers=0)
        with self.assertRaisesRegex(penstock.Error, "<lambda> takes several records at a time, or makes any number of rows; put it at the end"):
            self.rows({"label": [penstock.batched(lambda x: x), T.Cast("float32")]})

    def test_map(self):
        def record(i):
            return {"ids": list(range(i % 5 + 1)), "text": str(i)}

        @penstock.batched
        def records(numbers):
            return [record(i) for i in numbers]

        @penstock.batched
        def fails(numbers):
            return [{"n": 1 // (i != 70)} for i in numbers]

        def made(function, name, **options):
            return penstock.map(function, range(150), os.path.join(self.base, name), command=data.preprocess(), **options)

        ids = {made(f, f"mapped {i}", workers=workers)["id"] for i, (f, workers) in enumerate(((record, 0), (records, 0), (records, 2)))}
        self.assertEqual(len(ids), 1)
        self.assertEqual(made(fails, "skipped", workers=0, on_error="skip")["records"], 149)
        with self.assertRaisesRegex(penstock.Error, r"inputs\[70\], 70: ZeroDivisionError"):
            made(fails, "failed", workers=2)


class SameResultsTest(FunctionsTest):
    """Results depend on seed, epoch and record, and on nothing else."""

    def test_random_programs(self):
        rng = random.Random(int(os.environ.get("PENSTOCK_PROGRAMS_SEED", "3")))
        heads = [[], [T.CenterCrop(6)], [T.RandomHorizontalFlip()], [T.RandomCrop(5), T.RandomInvert()]]
        functions = [half, noisy, corner, functools.partial(np.rot90, k=2)]
        tails = [[], [T.ToImage()], [T.RandomVerticalFlip(), T.ToTensor()], [T.ToTensor(), T.Normalize([0.5], [0.5])]]
        for _ in range(PROGRAMS):
            pipeline = [*rng.choice(heads), *rng.choices(functions, k=rng.randint(1, 2)), *rng.choice(tails)]
            options = {"shuffle": rng.random() < 0.7, "seed": rng.randrange(99), "batch_size": rng.choice([3, 12, 30])}
            with self.subTest(pipeline=pipeline, **options):
                first = self.loader(pipeline, num_workers=rng.randint(1, 3), **options)
                epochs = [[{**dict(b.items()), "indices": b.indices} for b in first] for _ in range(2)]
                want = [{n: np.copy(v) for n, v in b.items()} for epoch in epochs for b in epoch]
                cut = rng.randrange(len(epochs[0]))
                other = self.loader(pipeline, num_workers=rng.randint(1, 5), **options)
                for b in other:
                    if b.step == cut:
                        break
                state = other.state_dict()
                resumed = self.loader(pipeline, num_workers=rng.randint(1, 5), prefetch_factor=rng.randint(1, 4), **options)
                resumed.load_state_dict(state)
                got = [{n: np.copy(v) for n, v in {**dict(b.items()), "indices": b.indices}.items()} for _ in range(2) for b in resumed][
                    : len(want) - cut - 1
                ]
                for a, b in zip(want[cut + 1 :], got):
                    for name in a:
                        np.testing.assert_array_equal(a[name], b[name])
                for made in (first, other, resumed):
                    made.close()

    def test_ranks(self):
        whole = self.records(self.loader([noisy], shuffle=True, seed=3))
        for rank in range(2):
            for r, value in self.records(self.loader([noisy], 8, shuffle=True, seed=3, rank=rank, world_size=2)).items():
                np.testing.assert_array_equal(value, whole[r])

    def test_a_state_of_other_functions(self):
        state = self.loader([half]).state_dict()
        with self.assertRaisesRegex(penstock.Error, "transforms"):
            self.loader([noisy]).load_state_dict(state)


class FailuresTest(FunctionsTest):
    def test_exceptions(self):
        with self.assertRaises(LookupError) as caught:
            self.records(self.loader([fails]))
        e = caught.exception
        self.assertIsInstance(e, penstock.Error)
        r = next(i for i in range(RECORDS) if self.ds[i]["image"].flat[0] % 7 == 3)
        self.assertRegex(str(e), rf'record {r} .*field "image": transform: fails in worker \d \(process \d+\): LookupError: a byte of')
        self.assertIn('raise LookupError(f"a byte of {x.flat[0]}")', str(e))
        self.assertNotIn("worker.py", str(e))

    def test_a_loop_after_an_exception(self):
        made = self.loader([fails])
        for _ in range(2):
            with self.assertRaises(LookupError):
                self.records(made)

    def test_exceptions_that_cannot_be_pickled(self):
        def raises(x):
            raise Unpicklable(3, io.StringIO())

        with self.assertRaisesRegex(penstock.Error, r"record 0: raises in worker \d .*Unpicklable: \(3, <_io.StringIO"):
            self.loader([raises])

    def test_records_that_fail_are_replaced(self):
        bad = {i for i in range(RECORDS) if self.ds[i]["image"].flat[0] % 7 == 3}
        for on_error in ("backfill", "blank"):
            with self.assertLogs("penstock", logging.WARNING) as logs:
                made = self.loader([fails], on_error=on_error)
                for b in made:
                    for i, r in enumerate(b.indices):
                        if b.mask[i]:
                            np.testing.assert_array_equal(b["image"][i], self.ds[int(r)]["image"])
                            self.assertNotIn(int(r), bad)
                        elif on_error == "blank":
                            self.assertFalse(b["image"][i].any() or b["label"][i].any())
                self.assertGreaterEqual(made.stats()["skipped"], len(bad))  # and those of the next epoch's first batches
                made.close()
            self.assertTrue(all("LookupError" in line for line in logs.output))

    def test_shapes_that_change(self):
        def changes(x):
            return x[: 3 + x.flat[0] % 2]

        with self.assertRaisesRegex(
            penstock.Error, r"record \d+ .*changes in worker .* it has returned uint8 \(., 9, 3\) for this record, and uint8 .*one type and shape"
        ):
            self.records(self.loader([changes]))

    def test_what_cannot_be_in_a_batch(self):
        for wrong, said in (
            (lambda x: None, "it has returned None"),
            (lambda x: x[:0], "no elements"),
            (lambda x: x.astype(complex), "complex"),
        ):
            with self.assertRaisesRegex(penstock.Error, f"record 0: .*WrongOutput: .*{said}"):
                self.loader([wrong])

        with self.assertRaisesRegex(TypeError, r"record \d+: rows: its rows differ in shape, which no field has; pad them"):
            next(iter(self.loader([T.Record(lambda record: {"rows": [[1, 2], [3]]})], num_workers=0)))

    def test_what_follows_must_fit(self):
        with self.assertRaisesRegex(penstock.Error, r"mean makes float64\(3,\): what follows it works on uint8 pixels"):
            self.loader([mean, T.CenterCrop(3)])
        with self.assertRaisesRegex(penstock.Error, "to_float makes float32"):
            self.loader([to_float, T.RandomHorizontalFlip()])

    def test_boxes_beside(self):
        path = os.path.join(self.base, "boxes")
        schema = [penstock.Field("image", "uint8", (8, 9, 3), layout="HWC"), penstock.Field("boxes", "float32", (4,), ragged=True)]
        with penstock.Writer(path, schema=schema, command=data.preprocess()) as w:
            w.append({"image": np.zeros((8, 9, 3), np.uint8), "boxes": np.zeros((1, 4), np.float32)})
        with self.assertRaisesRegex(penstock.Error, 'half moves the field "image", and the field "boxes" .*independent'):
            penstock.DataLoader(path, 1, output="numpy", transforms=[half], command=data.feed())

    def test_a_worker_that_ends(self):
        def ends(x):
            if x.flat[0] % 7 == 3:
                os._exit(5)
            return x

        def killed(x):
            if x.flat[0] % 7 == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return x

        for f, said in ((ends, "exit code 5"), (killed, "killed by SIGKILL")):
            made = self.loader([T.Function(f, output=("uint8", (8, 9, 3)))], on_error="backfill")
            with self.assertRaisesRegex(penstock.Error, rf"worker \d \(process \d+\) has ended while a function of it worked on record \d+: {said}"):
                self.records(made)

    def test_a_function_that_hangs(self):
        def hangs(x):
            if x.flat[0] % 7 == 3:
                time.sleep(1000)
            return x

        made = self.loader([T.Function(hangs, output=("uint8", (8, 9, 3)))], timeout=1)
        bad = "|".join(str(i) for i in range(RECORDS) if self.ds[i]["image"].flat[0] % 7 == 3)
        with self.assertRaisesRegex(
            penstock.Error, rf"record ({bad}) .*timeout: not there after 1s: hangs in worker \d \(process \d+\) has not returned"
        ):
            self.records(made)

    def test_parameters(self):
        for wrong in ({"takes": "tuple"}, {"layout": "NCHW"}, {"takes": "pil", "layout": "HWC"}):
            with self.assertRaises(ValueError):
                T.Function(half, **wrong)
        with self.assertRaises(TypeError):
            T.Function(3)
        with self.assertRaisesRegex(penstock.UnsupportedError, "3 is neither a transform nor a function"):
            self.loader([3])
        with self.assertRaisesRegex(penstock.UnsupportedError, r"write CenterCrop\(\.\.\.\)"):
            self.loader([T.CenterCrop])
        with self.assertRaisesRegex(ValueError, "in place of socket"):
            penstock.DataLoader(socket="/nowhere", transforms=[half], output="numpy")


class EndsTest(FunctionsTest):
    def workers(self, loader):
        """Return the processes of a DataLoader: feed, and those that call its functions."""
        return [loader.pid, *(p.pid for p in loader._engine.session._workers._processes)]

    def test_close(self):
        made = self.loader([half])
        next(iter(made))
        pids = self.workers(made)
        before = len(os.listdir("/proc/self/fd"))
        made.close()
        self.assertFalse(any(map(alive, pids)))
        self.assertLess(len(os.listdir("/proc/self/fd")), before)

    def test_a_loader_that_is_dropped(self):
        made = penstock.DataLoader(self.path, 8, output="numpy", transforms=[half], fields=["image"], command=data.feed())
        pids = self.workers(made)
        del made
        gc.collect()
        self.assertTrue(gone(pids))

    def test_a_function_that_hangs_at_the_end(self):
        def hangs(x):
            time.sleep(1000)

        made = self.loader([T.Function(hangs, output=("uint8", (3,)))])
        made._engine.session.start(made.state_dict())
        pids = self.workers(made)
        made.close()
        self.assertFalse(any(map(alive, pids)))

    def test_many_loaders_leave_nothing(self):
        def once():
            made = self.loader([half])
            next(iter(made))
            made.close()

        once()
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            once()
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def run_program(self, text, kill=None):
        program = textwrap.dedent(
            f"""
            import os, signal, sys, time
            import numpy as np
            import penstock
            def f(x):
                if HANG: time.sleep(1000)
                return x
            HANG = {kill == "hang"}
            from penstock.transforms import Function
            made = penstock.DataLoader({self.path!r}, 8, output="numpy", fields=["image"], transforms=[Function(f, output=("uint8", (8, 9, 3)))],
                                       command={data.feed()!r}, num_workers=2)
            print(made.pid, *(p.pid for p in made._engine.session._workers._processes), flush=True)
            """
        ) + textwrap.dedent(text)
        return subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, text=True
        )

    def test_the_end_of_the_process(self):
        killed = "os.kill(os.getpid(), signal.SIGKILL)"
        hanging = f"made._engine.session.start({{**made.state_dict()}}); time.sleep(0.3); {killed}"
        first = "next(iter(made))"
        for text, kill in ((first, None), (f"{first}; os._exit(0)", None), (f"{first}; {killed}", None), (hanging, "hang")):
            with self.run_program(text, kill) as child:
                pids = [int(p) for p in child.stdout.readline().split()]
                self.assertEqual(len(pids), 3)
                child.wait(30)
            self.assertTrue(gone(pids), text)

    def test_the_end_of_feed(self):
        made = self.loader([half])
        next(iter(made))
        pids = self.workers(made)
        os.kill(pids[0], signal.SIGKILL)
        with self.assertRaisesRegex(penstock.Error, "the feeding process has ended"):
            for _ in range(99):
                self.records(made)
        self.assertTrue(gone(pids[1:]))


if __name__ == "__main__":
    unittest.main()
