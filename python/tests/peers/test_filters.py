"""Filters against pandas: the records that a mask of a Series keeps."""

import math
import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest
import warnings

import numpy as np
import pandas as pd

import penstock
from tests import data
from tests.peers import cases

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]

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


def condition(rng, a):
    """Return a random operator and its value."""
    op = rng.choice([*COMPARISONS, "in", "not in"])
    if op in COMPARISONS:
        return op, value(rng, a)
    values = [value(rng, a) for _ in range(rng.randrange(1, 5))]
    return op, values


RECORDS = 200


class Filters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["PENSTOCK_PREPROCESS"] = data.preprocess()
        cls.folder = tempfile.mkdtemp(prefix="penstock-peers-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        path, cls.socket = os.path.join(cls.folder, "ds"), os.path.join(cls.folder, "feed.sock")
        cls.columns = {name: column(name, RECORDS, 100 + k) for k, name in enumerate(TYPES)}
        with penstock.Writer(path) as w:
            for i in range(RECORDS):
                w.append({name: a[i] for name, a in cls.columns.items()})
        cls.feed = subprocess.Popen([data.feed(), path, "--socket", cls.socket], stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.feed.wait)
        cls.addClassCleanup(cls.feed.kill)
        while not os.path.exists(cls.socket):
            time.sleep(0.01)

    def kept(self, conditions):
        try:
            with penstock.DataLoader(socket=self.socket, batch_size=RECORDS, filters=conditions, output="numpy", num_workers=1) as dl:
                return next(iter(dl)).indices.tolist()
        except penstock.Error as e:
            self.assertIn("the filters keep none", str(e))
            return []

    @cases(500)
    def test_as_pandas(self, rng: random.Random) -> None:
        """One to three conditions that must all hold."""
        conditions, mask = [], pd.Series([True] * RECORDS)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            name = rng.choice(TYPES)
            op, value = condition(rng, self.columns[name])
            conditions.append((name, op, value))
            mask &= of_pandas(self.columns[name], op, value)
        self.assertEqual(self.kept(conditions), np.flatnonzero(mask).tolist(), conditions)


def becomes_infinite(value, dtype):
    try:
        with np.errstate(over="ignore"):
            return bool(np.isinf(np.array(float(value)).astype(dtype)))
    except OverflowError:
        return True


def of_pandas(a, op, value):
    """Return the mask of pandas.

    Integers with floats are compared as Python's numbers, as pandas rounds integers to float64 and penstock does not.
    """
    s = pd.Series(a)
    if op in COMPARISONS:
        value = value.item() if hasattr(value, "item") else value  # Python's numbers, for which NumPy decides the type
        if (a.dtype.kind in "iub" and isinstance(value, float)) or (a.dtype == bool and abs(value) >= 2**63):  # which pandas does not compare
            s = s.astype(object)
        if a.dtype.kind == "f" and abs(value) != math.inf and becomes_infinite(value, a.dtype):
            s = s.astype(object)  # NumPy makes an infinity of the value, with a warning
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return COMPARISONS[op](s, value).astype(bool)
    found = pd.Series([False] * len(a))
    for v in value:
        v = v.item() if hasattr(v, "item") else v
        found |= s.isna() if v != v else of_pandas(a, "==", v)
    return found if op == "in" else ~found


if __name__ == "__main__":
    unittest.main()
