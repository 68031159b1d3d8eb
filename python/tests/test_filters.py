"""Filters keep what an exact comparison keeps, for every type of numbers."""

import math
import os
import random
import unittest

import numpy as np

import penstock
from penstock._read import filters

from . import data
from .test_writer import Writing

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]
CASES = int(os.environ.get("PENSTOCK_TEST_FILTERS", "150"))

COMPARISONS = {
    "==": lambda x, v: x == v, "!=": lambda x, v: x != v, "<": lambda x, v: x < v, "<=": lambda x, v: x <= v, ">": lambda x, v: x > v,
    ">=": lambda x, v: x >= v,
}  # fmt: skip


def column(dtype, n, seed):
    """Return numbers of a type, many of them at the ends of its range."""
    r = np.random.default_rng(seed)
    t = np.dtype(dtype)
    if dtype == "bool":
        return r.integers(0, 2, n).astype(bool)
    a = np.frombuffer(r.bytes(n * t.itemsize), t).copy()
    if t.kind == "f":
        ends = [0.0, -0.0, 1, -1, 0.1, np.inf, -np.inf, np.nan, np.finfo(t).max, np.finfo(t).tiny]
    else:
        low, high = int(np.iinfo(t).min), int(np.iinfo(t).max)
        ends = [low, low + 1, high, high - 1, 0, 1, 2, *[x for k in (24, 53) for x in (2**k - 1, 2**k, 2**k + 1) if x <= high]]
    for i in r.choice(n, n // 2, replace=False):
        a[i] = np.array(ends[r.integers(len(ends))]).astype(t)
    return a


def value(rng, a):
    """Return a value for a filter: often one of the column, or next to it."""
    x = a[rng.randrange(len(a))]
    python = x.item()
    if rng.random() < 0.2:
        return rng.choice([x, np.array(x), np.float64(0.1), 0.1, math.nan, math.inf, -math.inf, 0, -1, True, 2**70, -(2**70), 0.5, 1e300, -0.0])
    if isinstance(python, bool):
        return rng.choice([python, int(python), float(python), 0.5])
    if isinstance(python, int):
        return rng.choice([x, python, python + rng.choice((-1, 0, 1)), float(python), python + 0.5])
    if not math.isfinite(python):
        return python
    return rng.choice([x, python, math.nextafter(python, math.inf), python * (1 + 1e-5), int(python)])


def exact(v, dtype):
    """Return a value as the number that is compared with a column: a float is rounded to the column's type, and a whole number is not."""
    v = v.item() if hasattr(v, "item") else v
    if np.dtype(dtype).kind != "f" or not isinstance(v, float):
        return v
    with np.errstate(over="ignore"):
        rounded = float(np.array(v).astype(dtype))
    return rounded if math.isfinite(rounded) or not math.isfinite(v) else v


def want(a, op, values):
    """Return the records that a filter keeps."""
    values = [exact(v, a.dtype) for v in values]
    if op in COMPARISONS:
        return [i for i, x in enumerate(a.tolist()) if COMPARISONS[op](x, values[0])]
    found = [any(x == v or (x != x and v != v) for v in values) for x in a.tolist()]
    return [i for i, f in enumerate(found) if f == (op == "in")]


def condition(rng, a):
    """Return a random operator and its value."""
    op = rng.choice([*COMPARISONS, "in", "not in"])
    if op in COMPARISONS:
        return op, value(rng, a)
    values = [value(rng, a) for _ in range(rng.randrange(1, 5))]
    return op, values


class TestFilters(Writing):
    def write(self):
        columns = {dtype: column(dtype, 120, k) for k, dtype in enumerate(TYPES)}
        with penstock.Writer(self.path("ds")) as w:
            for i in range(120):
                w.append({name: a[i] for name, a in columns.items()})
        return columns

    def kept(self, conditions):
        try:
            with penstock.DataLoader(self.path("ds"), 120, filters=conditions, output="numpy", command=data.feed()) as dl:
                return next(iter(dl)).indices.tolist()
        except penstock.Error as e:
            self.assertIn("the filters keep none of 120 records", str(e))
            return []

    def test_random(self):
        columns, rng = self.write(), random.Random(1)
        for case in range(CASES):
            name = rng.choice(TYPES)
            op, v = condition(rng, columns[name])
            self.assertEqual(self.kept([(name, op, v)]), want(columns[name], op, v if op in ("in", "not in") else [v]), (case, name, op, v))

    def test_values(self):
        for given, text in [
            (1, "1"), (True, "1"), (np.bool_(True), "1"), (np.uint64(2**64 - 1), str(2**64 - 1)), (np.array(3), "3"), (2**100, str(2**100)),
            (1.0, "1.0"), (np.str_("it's"), "'it''s'"), (np.float32(0.5), "0.5"), (math.nan, "nan"), (-np.float64("inf"), "-inf"),
        ]:  # fmt: skip
            self.assertEqual(filters.to_text([("x`y", "==", given)]), f"`x``y` == {text}")
        self.assertEqual(filters.to_text([["x", "in", {3: 4}.keys()], ("x", "not in", (i for i in range(2)))]), "`x` in (3) and `x` not in (0, 1)")
        self.assertEqual((filters.to_text(None), filters.to_text([]), filters.to_text("x = 1")), ("", "", "x = 1"))

    def test_refused(self):
        for error, words, given in [
            (TypeError, "1j is not a number, nor a text", [("x", "==", 1j)]),
            (TypeError, "None is not a number", [("x", "==", None)]),
            (TypeError, r"\[1\] is not a number", [("x", "==", [1])]),
            (TypeError, r"array\(\[1\]\) is not a number", [("x", "==", np.array([1]))]),
            (TypeError, "datetime64.* is not a number", [("x", "<", np.datetime64("2020-01-01", "ns"))]),
            (TypeError, "None is not a number", [("x", "in", [1, None])]),
            (ValueError, "'in' takes a list", [("x", "in", b"ab")]),
            (ValueError, "there is no comparison '='", [("x", "=", 1)]),
            (ValueError, r"filters is \('x', '==', 1\); it is a list of such: filters=\[", ("x", "==", 1)),
            (ValueError, r"each is \(field, op, value\)", [3]),
            (TypeError, "or a list of", {"x": 1}),
            (TypeError, "or a list of", 3),
        ]:
            with self.subTest(given), self.assertRaisesRegex(error, words):
                filters.to_text(given)


if __name__ == "__main__":
    unittest.main()
