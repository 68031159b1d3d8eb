"""Functions of users with random results, beside the same functions called in a loop of plain Python over the same records."""

import os
import random
import shutil
import tempfile
import unittest

import numpy as np

import penstock
from penstock._code.randomness import record_seed, seed_random
from penstock.functions import PLACE, Record, WrongOutput

from . import data

try:
    import torch
except ImportError:
    torch = None

RECORDS, FIRST = 40, 16
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", "0"))
FUNCTIONS = int(os.environ.get("PENSTOCK_TEST_FUNCTIONS", "12"))
DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64")
KINDS = ("list", "floats", "pairs", "array", "rows", "fixed", "number", "scalar", "text", "bytes", "image", "drawn")
if torch:
    KINDS += ("tensor", "bfloat16")
OUTPUTS = ("numpy", "torch") if torch else ("numpy",)


def a_result(kind, of, size, dtype):
    """Return a result of a kind, whose numbers are those of a generator of random.Random."""
    n = of.randrange(size + 1)
    if kind == "text":
        return "é" * n + "x"
    if kind == "bytes":
        return bytes(of.randrange(256) for _ in range(n))
    if kind in ("list", "floats", "pairs"):
        numbers = [of.randrange(100) for _ in range(n)]
        return numbers if kind == "list" else tuple(i / 4 for i in numbers) if kind == "floats" else [[i, -i] for i in numbers]
    if kind == "number":
        return of.randrange(1000)
    if kind == "scalar":
        return np.dtype(dtype).type(of.randrange(2))
    if kind == "fixed":
        return np.full((size % 7 + 1, 2), of.randrange(100), dtype)
    if kind == "drawn":
        return np.random.rand(n) + random.random()
    if kind == "image":
        from PIL import Image

        return Image.new("RGB", (size % 5 + 1, 3), (of.randrange(256), 1, 2))
    if kind in ("tensor", "bfloat16"):
        numbers = torch.tensor([of.randrange(100) for _ in range(n)], dtype=torch.int64)
        return numbers.to(torch.bfloat16 if kind == "bfloat16" else getattr(torch, dtype))
    return np.array([of.randrange(100) for _ in range(n)], dtype) if kind == "array" else np.full((n, 3), of.randrange(100), dtype)


class Results:
    """A function of one value, whose results follow from a seed and the value."""

    def __init__(self, r):
        self.kind, self.size, self.dtype = r.choice(KINDS), r.choice([0, 1, 3, 30, 300, 10_000 if r.random() < 0.1 else 5]), r.choice(DTYPES)
        self.seed, self.fails = r.randrange(1 << 30), r.random() < 0.1

    def __call__(self, value):
        of = random.Random(f"{self.seed} {value if isinstance(value, str) else np.asarray(value).tolist()}")
        if self.fails and of.random() < 0.1:
            raise LookupError(f"no result for {value!r}")
        return a_result(self.kind, of, self.size, self.dtype)

    def together(self, values):
        return [self(value) for value in values]

    def __repr__(self):
        return f"{self.kind} {self.dtype} up to {self.size}{' or fails' * self.fails}"


class OfRecord:
    """A function of a record: some of its fields, and new ones."""

    def __init__(self, r):
        self.kept = [name for name in ("text", "label", "x") if r.random() < 0.6]
        self.made = {f"new{i}": Results(r) for i in range(r.randrange(0 if self.kept else 1, 4))}

    def __call__(self, record: dict):
        return {**{name: record[name] for name in self.kept}, **{name: f(int(record["label"])) for name, f in self.made.items()}}

    def __repr__(self):
        return f"{self.kept} and {self.made}"


def plain(value):
    """Return a result as a record of a batch should have it: text, or an array."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    if hasattr(value, "detach"):
        return value.view(value.dtype).float().numpy().astype(penstock.bfloat16.dtype()) if "bfloat16" in str(value.dtype) else value.numpy()
    return np.array(value)


class RandomFunctionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="penstock-random-functions-")
        cls.path = os.path.join(cls.base, "ds")
        fields = [
            penstock.Field("text", "uint8", ragged=True, content="utf-8"),
            penstock.Field("label", "int64"),
            penstock.Field("x", "float32", (3,)),
        ]
        with penstock.Writer(cls.path, schema=fields, command=data.preprocess()) as w:
            for i in range(RECORDS):
                w.append({"text": "word " * (i % 5) + str(i), "label": i, "x": np.arange(3, dtype="f4") * i})
        cls.ds = penstock.open(cls.path)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.base)

    def wanted(self, order, functions, of_record, seed):
        """Return the records that plain Python makes, by number; an exception in the place of one that fails."""
        found = {}
        for i in order:
            record = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in self.ds[i].items()}
            try:
                for name, f in functions.items():
                    seed_random(record_seed(seed, 0, i))
                    record[name] = f(record[name])
                seed_random(record_seed(seed, 0, i, place=PLACE))
                record = record if of_record is None else of_record(record)
                found[i] = record, {name: plain(x) for name, x in record.items()}
            except LookupError as e:
                found[i] = e, None
        return found

    def kinds(self, first, functions, of_record):
        """Return the type, the shape of a row and whether a record has any number of rows, by field, that the first records say; None for text."""
        found = {}
        for name in first[0][1]:
            values = [(given[name], x[name]) for given, x in first]
            arrays = [x for _, x in values if not isinstance(x, str)]
            if not arrays:
                found[name] = None
                continue
            listed = any(isinstance(given, (list, tuple, bytes)) for given, _ in values)
            rows = listed or (arrays[0].ndim > 0 and (len({len(x) for x in arrays}) > 1 or not len(arrays[0])))
            of = next((x for x in arrays if x.size), arrays[0])
            found[name] = (
                of.dtype,
                of.shape[1:] if rows else of.shape,
                rows,
                listed and not any(x.size or isinstance(given, bytes) for given, x in values),
            )
        return found

    def check(self, batches, cut, order, want, kinds, size, output):
        at = iter(order[cut * size :])
        for b in batches:
            for k in range(int(b.mask.sum())):
                i = next(at)
                self.assertEqual(list(b.keys()), list(kinds))
                for name, x in want[i][1].items():
                    got = b[name][k]
                    if isinstance(x, str):
                        self.assertEqual(got, x)
                        continue
                    dtype, row, rows, _ = kinds[name]
                    if output == "torch":
                        self.assertEqual(str(got.dtype), f"torch.{dtype}")
                        got = got.float().numpy().astype(dtype) if str(dtype) == "bfloat16" else got.numpy()
                    self.assertEqual((got.dtype, got.shape), (dtype, x.shape if x.size or not rows else (0, *row)), (name, i))
                    self.assertEqual(got.tobytes(), x.tobytes(), (name, i))
        self.assertIsNone(next(at, None))

    def test_beside_a_loop(self):
        for seed in range(SEED, SEED + FUNCTIONS):
            r = random.Random(seed)
            of_record = OfRecord(r) if r.random() < 0.5 else None
            functions = {name: Results(r) for name in ("text", "label", "x") if r.random() < (0.2 if of_record else 0.6)}
            if not functions and of_record is None:
                functions = {"text": Results(r)}
            batched = [name for name, f in functions.items() if r.random() < 0.3 and f.kind != "drawn"]
            if of_record is not None:  # which keys its results by the label
                functions.pop("label", None)
            size, workers, output = r.choice([1, 3, 16, 64]), 2 if r.random() < 0.15 else 0, r.choice(OUTPUTS)
            shuffled, of_order, cut = r.random() < 0.5, r.randrange(1000), r.randrange(3)
            with self.subTest(
                seed=seed, functions=functions, of_record=of_record, batched=batched, size=size, workers=workers, output=output, shuffled=shuffled
            ):
                self.one(functions, of_record, batched, {"shuffle": shuffled, "seed": of_order, "batch_size": size}, workers, output, cut)

    def one(self, functions, of_record, batched, options, workers, output, cut):
        size = options["batch_size"]
        with penstock.DataLoader(self.path, fields=["label"], output="numpy", command=data.feed(), **options) as loader:
            order = [int(i) for b in loader for i in b.indices[b.mask]]
        want = self.wanted(order, functions, of_record, options["seed"])
        steps = {name: penstock.batched(f.together) if name in batched else f for name, f in functions.items()}
        transforms = {**{name: [f] for name, f in steps.items()}, **({"": [Record(of_record)]} if of_record else {})}
        good = [want[i] for i in order[:FIRST] if want[i][1] is not None]
        failing = [i for i in order if want[i][1] is None]
        kinds = self.kinds(good, functions, of_record) if good else None
        odd = kinds is None or any(k is not None and k[3] for k in kinds.values())
        if not odd:
            for i in order:
                for name, x in (want[i][1] or {}).items():
                    k = kinds[name]
                    odd = odd or (k is not None and not k[2] and x.shape != k[1])
        said = "the first records have|an empty list|number of rows|it has returned|empty list in"
        try:
            with penstock.DataLoader(self.path, output=output, transforms=transforms, num_workers=workers, command=data.feed(), **options) as loader:
                batches, state = [], loader.state_dict()
                for b in loader:
                    batches.append(b)
                    if len(batches) == cut:
                        state = loader.state_dict()
            self.assertFalse(failing or odd, "a function failed, and no error came")
            self.check(batches, 0, order, want, kinds, size, output)
            cut = min(cut, len(batches)) if state["step"] else 0
            with penstock.DataLoader(
                self.path, output=output, transforms=transforms, num_workers=2 - workers if workers else 0, command=data.feed(), **options
            ) as loader:
                loader.load_state_dict(state)
                self.check(list(loader), cut, order, want, kinds, size, output)
        except LookupError as e:
            self.assertTrue(failing, e)
            self.assertRegex(str(e), "no result for")
        except (WrongOutput, penstock.Error) as e:
            self.assertTrue(odd, e)
            self.assertRegex(str(e), said)


if __name__ == "__main__":
    unittest.main()
