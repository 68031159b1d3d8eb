"""A dataset has the values that Writer and map were given, for every type and odd value, or they refuse it."""

import array
import json
import math
import os
import random
import unittest
import warnings

import numpy as np

import penstock
from penstock import Field
from penstock._write import codec

from .test_writer import Writing

CASES = int(os.environ.get("PENSTOCK_TEST_GIVEN", "2000"))
PER_DATASET = 100

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]
INTEGERS = [
    0,
    1,
    -1,
    127,
    128,
    255,
    256,
    -128,
    -129,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**24 + 1,
    2049,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63),
    -(2**63) - 1,
    10**400,
]
FLOATS = [0.0, -0.0, 1.0, 1.5, 0.1, -2.5, math.nan, math.inf, -math.inf, 1e300, 65504.0, 65520.0, 3.5e38, 5e-324, 2.0**53, 1.9]
OTHERS = [
    None,
    "1",
    b"1",
    1j,
    np.complex64(1),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
    np.float128(1) if hasattr(np, "float128") else None,
    object(),
    {},
    {"a": 1},
    {1},
    Ellipsis,
    np.void(b"ab"),
    np.str_("x"),
]


def numbers(rng, dtype, shape):
    """Return an array of a type, with values at the ends of its range."""
    t = np.dtype(dtype)
    size = math.prod(shape)
    if t.kind == "b":
        flat = [rng.random() < 0.5 for _ in range(size)]
    elif t.kind == "f":
        flat = [rng.choice(FLOATS) if rng.random() < 0.5 else rng.gauss(0, 100) for _ in range(size)]
    else:
        low, high = int(np.iinfo(t).min), int(np.iinfo(t).max)
        flat = [rng.choice([low, high, 0, 1, rng.randint(low, high)]) for _ in range(size)]
    with np.errstate(over="ignore"):
        return np.array(flat, t).reshape(shape)


def odd_array(rng, dtype, shape):
    """Return an array of a type in some layout of memory."""
    a = numbers(rng, dtype, shape)
    kind = rng.randrange(9)
    if kind == 0 and a.ndim:
        wide = np.repeat(a, 2, axis=-1)
        a = wide[..., ::2]
    elif kind == 1:
        a = np.asfortranarray(a)
    elif kind == 2 and a.ndim:
        a = a[::-1]
    elif kind == 3:
        a = a.astype(a.dtype.newbyteorder(">"))
    elif kind == 4 and a.ndim:
        a = np.ma.MaskedArray(a, mask=np.array([rng.random() < 0.2 for _ in range(a.size)], bool).reshape(a.shape))
    elif kind == 5:
        a.flags.writeable = False
    elif kind == 6 and not a.ndim:
        a = a[()]
    return a


def nested(rng, shape):
    """Return lists of Python's numbers, some of more than one type."""
    if not shape:
        pool = rng.choice(
            [INTEGERS, FLOATS, [True, False], [*INTEGERS, *FLOATS], [np.int64(3), np.float32(0.1), np.uint64(2**63), 5], [1, 2, 3], OTHERS]
        )
        return rng.choice(pool)
    out = [nested(rng, shape[1:]) for _ in range(shape[0])]
    return tuple(out) if rng.random() < 0.2 else out


def value(rng, f):
    """Return a value that may be one of a field."""
    shape = (*((rng.randrange(4),) if f.ragged else ()), *f.shape)
    if rng.random() < 0.1:  # of another shape
        shape = rng.choice([(0,), (), (1,), (2, 2), (0, 2), (2, 0), (*shape, 1)])
    dtype = f.dtype if rng.random() < 0.5 else rng.choice(TYPES)
    kind = rng.randrange(10)
    if kind < 4:
        return odd_array(rng, dtype, shape)
    if kind < 6:
        return numbers(rng, dtype, shape).tolist()
    if kind == 6 and len(shape) == 1:
        kinds = [
            bytes,
            bytearray,
            lambda a: memoryview(bytes(a)),
            lambda a: array.array("i", a),
            lambda a: memoryview(array.array("i", a)),
            lambda a: range(len(a)),
        ]
        return rng.choice(kinds)([rng.randrange(256) for _ in range(shape[0])])
    if kind == 7:
        return rng.choice(OTHERS)
    return nested(rng, shape)


def label(rng, f):
    return rng.choice(
        [
            *f.classes,
            "none",
            "",
            1.9,
            0.99,
            1.0,
            np.float32(0.99),
            True,
            np.bool_(True),
            np.str_(f.classes[1]),
            np.array(1),
            np.array([1]),
            np.uint8(1),
            -1,
            len(f.classes),
            2**70,
            None,
            b"cat",
            *range(len(f.classes)),
        ]
    )


def text(rng, _):
    return rng.choice(
        [
            "",
            "plain",
            "Grüße \U0001f600",
            "\ud800",
            "nul\0nul",
            "\r\n",
            b"bytes",
            "ü".encode(),
            b"\xff",
            np.str_("s"),
            np.bytes_(b"b"),
            3,
            None,
            ["a"],
            bytearray(b"x"),
        ]
    )


def same(given, stored, python=True):
    """Whether a nested value equals the given one, number by number. Floats of Python are rounded to the type that is stored."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        given = list(given)
    if isinstance(given, np.ma.MaskedArray) and given.mask.any():
        return False
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        return (given.shape == stored.shape or given.shape == (0,) == stored.shape[:1]) and all(
            same_number(x, y, stored.dtype, False) for x, y in zip(given.ravel().tolist(), stored.ravel().tolist())
        )
    if isinstance(given, (list, tuple, range, array.array)):
        return len(given) == len(stored) and all(same(x, y) for x, y in zip(given, stored))
    return np.ndim(stored) == 0 and same_number(
        given.item() if isinstance(given, np.generic) else given, stored.item(), stored.dtype, not isinstance(given, np.generic) or python
    )


def same_number(x, y, dtype, rounded):
    if isinstance(x, bool) or type(x) is int:
        return math.isfinite(y) and int(y) == x
    if type(x) is not float:
        return False
    if math.isnan(x):
        return math.isnan(y)
    if x == y:
        return math.copysign(1, x) == math.copysign(1, y)
    if not rounded or dtype.kind != "f" or math.isinf(x):
        return False
    with np.errstate(over="ignore"):
        nearest = float(np.array(x).astype(dtype))
    return math.isfinite(nearest) and nearest == y


def fields(rng):
    """Return a random field, and what makes values for it."""
    kind = rng.randrange(8)
    if kind == 0:
        return Field("x", rng.choice(["uint8", "int16", "int64", "bool"]), classes=("cat", "dog")), label
    if kind == 1:
        return Field("x", "uint8", ragged=True, content="utf-8"), text
    shape = rng.choice([(), (), (2,), (2, 3)])
    return Field("x", rng.choice(TYPES), shape, ragged=rng.random() < 0.4), value


class TestGiven(Writing):
    def setUp(self):
        super().setUp()
        catch = warnings.catch_warnings()
        catch.__enter__()
        self.addCleanup(catch.__exit__, None, None, None)
        warnings.simplefilter("ignore")  # of NumPy, about values that are refused

    def check(self, f, given, path):
        ds = penstock.open(path)
        self.assertEqual(len(ds), len(given))
        for i, v in enumerate(given):
            stored = ds["x"][i]
            if f.classes:
                self.assertFalse(isinstance(v, (float, np.floating)), repr(v))
                v = f.classes.index(v) if isinstance(v, str) else v
                self.assertEqual(int(v), int(stored), repr(v))
            elif f.content == "utf-8":
                self.assertEqual(v.decode() if isinstance(v, bytes) else v, json.loads(stored) if isinstance(v, list) else stored)
            else:
                self.assertTrue(same(v, stored), (f, v, stored))

    def test_writer(self):
        rng, refused = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", "1"))), 0
        for k in range(CASES // PER_DATASET):
            f, make = fields(rng)
            infer = not f.classes and rng.random() < 0.3
            accepted = []
            w = penstock.Writer(self.path(f"ds{k}"), None if infer else [f])
            for _ in range(PER_DATASET):
                v = make(rng, f)
                try:
                    w.append({"x": v})
                except penstock.Error as e:
                    self.assertIn("record", str(e))
                    refused += 1
                    continue
                if w.schema[0].content == "image" or (w.schema[0].content == "utf-8" and not isinstance(v, (str, bytes, list))):
                    self.fail((w.schema, v))
                accepted.append(v)
            if accepted:
                w.commit()
                self.check(w.schema[0], accepted, self.path(f"ds{k}"))
            w.close()
        self.assertGreater(refused, 0)

    def test_map(self):
        rng = random.Random(7 + int(os.environ.get("PENSTOCK_TEST_SEED", "1")))
        for k in range(max(2, CASES // PER_DATASET // 4)):
            f, make = fields(rng)
            given = [v for v in (make(rng, f) for _ in range(PER_DATASET)) if not isinstance(v, memoryview)]  # which cannot be pickled
            summary, path = None, self.path(f"map{k}")
            encoder = codec.Codec(codec.check([f]))
            good = []
            for i, v in enumerate(given):
                try:
                    encoder.encode({"x": v})
                except penstock.Error:
                    continue
                good.append(i)
            if not good:
                continue
            summary = penstock.map(_record, given, path, schema=[f], workers=k % 2 * 2, chunksize=rng.choice([1, 7, 50]), on_error="skip")
            self.assertEqual((summary["records"], len(summary["skipped"])), (len(good), min(len(given) - len(good), len(summary["skipped"]))))
            self.check(f, [given[i] for i in good], path)


def _record(v):
    return {"x": v}


if __name__ == "__main__":
    unittest.main()
