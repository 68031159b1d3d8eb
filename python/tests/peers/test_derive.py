"""Derived fields against NumPy: random expressions, which Python's own parser reads, over arrays of the types in which they are computed."""

import os
import random
import re
import shutil
import tempfile
import unittest
import warnings

import numpy as np

import penstock
from tests import data
from tests.peers import cases
from tests.test_derive import SHAPES, TYPES, N

SMALL = ["i1", "u1", "i2", "u2", "h", "f", "b"]  # types that float32 has exactly

#: Expressions of one case, which are fields of one view.
TOGETHER = 20
#: Functions whose last bits differ between Go and C.
INEXACT = re.compile(r"exp|log|\*\*")
#: Where such a bit may choose another value.
CHOICE = re.compile(r"[<>=!]|where|and|or|not")
WORDS = {"and": "&", "or": "|"}


class Numbers(np.ndarray):
    """Arrays whose comparisons are 1 or 0, and whose powers are computed in float64 and rounded."""

    def __pow__(self, other):
        x, y = np.asarray(self, np.float64), np.asarray(other, np.float64)
        return np.where(y == 0.5, np.sqrt(x), np.power(x, y)).astype(self.dtype).view(Numbers)

    def __and__(self, other):
        return self._number((np.asarray(self) != 0) & (np.asarray(other) != 0))

    def __or__(self, other):
        return self._number((np.asarray(self) != 0) | (np.asarray(other) != 0))

    def __invert__(self):
        return self._number(np.asarray(self) == 0)

    def _number(self, mask):
        return mask.astype(self.dtype).view(Numbers)


def _comparison(name):
    how = getattr(np.ndarray, name)
    return lambda self, other: self._number(how(np.asarray(self), np.asarray(other)))


for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(Numbers, _name, _comparison(_name))


def rounded(function):
    """Return a function that is computed in float64."""
    return lambda x: function(np.asarray(x, np.float64)).astype(x.dtype).view(Numbers)


FUNCTIONS = {
    "sqrt": np.sqrt, "abs": np.abs, "minimum": np.minimum, "maximum": np.maximum,
    "exp": rounded(np.exp), "log": rounded(np.log), "log1p": rounded(np.log1p),
    "where": lambda c, x, y: np.where(np.asarray(c) != 0, x, y).view(Numbers),
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
}  # fmt: skip


def expression(rng, names, depth):
    """Return a random expression, with as few parentheses as chance has it, and its text for Python."""
    kind = rng.randrange(13) if depth else rng.randrange(2)
    (a, pa), (b, pb), (c, pc) = [expression(rng, names, depth - 1) for _ in range(3)] if kind > 1 else [("", "")] * 3
    if kind == 0:
        text = rng.choice(("0", "1", "2.5", ".5", "3.", "1e3", "0.1", "2E-2", "inf", "nan"))
        return text, f"number({text})"
    if kind == 1:
        name = rng.choice(names)
        return rng.choice((name, f"`{name}`")), name
    if kind <= 5:
        op = rng.choice(("+", "-", "*", "/", "**"))
        return f"{a} {op} {b}", f"{pa} {op} {pb}"
    if kind == 6:
        sign = rng.choice("+-")
        return f"{sign}{a}", f"{sign}{pa}"
    if kind == 7:
        op = rng.choice(("<", "<=", ">", ">=", "==", "!=", "="))
        return f"({a} {op} {b})", f"({pa} {op.replace('=', '==') if op == '=' else op} {pb})"
    if kind == 8:
        return f"({a})", f"({pa})"
    if kind == 9:
        word = rng.choice(("and", "or"))
        return f"(({a}) {word} ({b}))", f"(({pa}) {WORDS[word]} ({pb}))"
    if kind == 10:
        return f"(not ({a}))", f"(~({pa}))"
    if kind == 11:
        if rng.random() < 0.5:
            return f"(({a}) between ({b}) and ({c}))", f"((({pa}) >= ({pb})) & (({pa}) <= ({pc})))"
        same = f"(({pa}) == ({{0}})) | ((({pa}) != ({pa})) & (({{0}}) != ({{0}})))"
        return f"(({a}) in (({b}), ({c})))", f"(({same.format(pb)}) | ({same.format(pc)}))"
    name = rng.choice(list(FUNCTIONS))
    n = {"minimum": 2, "maximum": 2, "where": 3, "clip": 3}.get(name, 1)
    return f"{name}({', '.join((a, b, c)[:n])})", f"{name}({', '.join((pa, pb, pc)[:n])})"


class Derive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["PENSTOCK_FEED"], os.environ["PENSTOCK_PREPROCESS"] = data.feed(), data.preprocess()
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.path, rng = os.path.join(folder, "ds"), np.random.default_rng(3)
        cls.values = {}
        for name, shape in SHAPES.items():
            t = np.dtype(TYPES[name])
            if t.kind == "f":
                x = rng.normal(0, 4, (N, *shape)).astype(t)
                x[rng.random(x.shape) < 0.1] = rng.choice([0, np.nan, np.inf])
            elif t.kind == "b":
                x = rng.integers(0, 2, (N, *shape)).astype(bool)
            else:
                x = rng.integers(np.iinfo(t).min // 2, np.iinfo(t).max // 2, (N, *shape)).astype(t)
            cls.values[name] = x
        with penstock.Writer(cls.path, [penstock.Field(n, TYPES[n], s) for n, s in SHAPES.items()]) as w:
            w.extend({n: x[i] for n, x in cls.values.items()} for i in range(N))

    def want(self, text, names):
        dtype = np.float32 if all(n in SMALL for n in names) else np.float64
        known = {n: self.values[n].astype(dtype).reshape(N, *[1] * (2 - len(SHAPES[n])), *SHAPES[n]).view(Numbers) for n in names}
        number = {"number": lambda x: np.array([[[x]]], dtype).view(Numbers), "inf": np.inf, "nan": np.nan}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, {"__builtins__": {}}, {**FUNCTIONS, **known, **number}), dtype

    @cases(10)
    def test_as_numpy(self, rng: random.Random) -> None:
        expressions, python = {}, {}
        while len(expressions) < TOGETHER:
            names = SMALL if rng.random() < 0.5 else list(SHAPES)
            text, other = expression(rng, names, 3)
            used = [n for n in SHAPES if n in re.findall(r"\w+", text)]
            if used and not (INEXACT.search(text) and CHOICE.search(text)):
                expressions[f"x{len(expressions)}"], python[f"x{len(python)}"] = text, (other, used)
        with penstock.open(self.path) as ds, ds.derive(**expressions) as view, penstock.DataLoader(view, N, output="numpy") as loader:
            batch = next(iter(loader))
            for name, text in expressions.items():
                want, dtype = self.want(*python[name])
                tolerance = {"rtol": 1e-5, "atol": 1e-6} if INEXACT.search(text) else {"rtol": 0}
                got = batch[name]
                self.assertIn(got.dtype, (dtype, np.dtype(bool)), text)
                shaped = np.broadcast_to(np.asarray(want, np.float64), (N, *[1] * (3 - got.ndim), *got.shape[1:])).reshape(got.shape)
                np.testing.assert_allclose(np.float64(got), shaped, err_msg=text, **tolerance)
                for read in (view[name][:], view[:][name], view[list(range(N))][name], np.stack([view[i][name] for i in range(N)])):
                    self.assertEqual((read.dtype, read.tobytes()), (got.dtype, got.tobytes()), text)


if __name__ == "__main__":
    unittest.main()
