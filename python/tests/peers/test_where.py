"""The language of filters against pandas: random expressions over columns of all kinds."""

import math
import os
import random
import shutil
import tempfile
import unittest
import warnings

import numpy as np
import pandas as pd

import penstock
from tests import data
from tests.peers import cases

RECORDS = 150
CLASSES = ("cat", "dog", "crow", "it's", "Äpfel")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
LETTERS = "aAbBcäß0 .'\""
PATTERNS = ("^a", "b+", "[a-cä]$", "a.*b", r"\.", "(?i)ä", "^$", "^[^a]*$", r"\d", "a|ß")
RELATIONS = ("=", "==", "!=", "<", "<=", ">", ">=")


class Refused(Exception):
    """The expression has no value for a record."""


class Part:
    """A part of an expression: its text, its kind, and a function of the active records that returns its values.

    Values are a Series, of lists a list of lists: of Python's integers, which compare exactly with floats, and of float64.
    """

    def __init__(self, text, kind, of, *, many=False, dtype=None, constant=None):
        self.text, self.kind, self.of, self.many, self.dtype, self.constant = text, kind, of, many, dtype, constant


def column(name, rng):
    """Return random values of a type, with those at its edges."""
    if name == "bool":
        return rng.integers(0, 2, RECORDS).astype(bool)
    if name in INTEGERS:
        info = np.iinfo(name)
        small = rng.integers(max(info.min, -9), 10, RECORDS).astype(name)
        edges = np.array([info.min, info.min + 1, info.max, info.max - 1, min(info.max, 2**53 + 1)], name)
        return np.where(rng.random(RECORDS) < 0.15, rng.choice(edges, RECORDS), small).astype(name)
    values = np.where(rng.random(RECORDS) < 0.5, rng.integers(-9, 10, RECORDS), rng.normal(0, 3, RECORDS).round(1)).astype(name)
    return np.where(rng.random(RECORDS) < 0.15, rng.choice(np.array([np.nan, np.inf, -np.inf, 0, -0.0], name), RECORDS), values).astype(name)


class Where(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["PENSTOCK_FEED"], os.environ["PENSTOCK_PREPROCESS"] = data.feed(), data.preprocess()
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        cls.addClassCleanup(shutil.rmtree, folder)
        rng = np.random.default_rng(7)
        scalars = {name: column(name, rng) for name in ("bool", *INTEGERS, *FLOATS)}
        cls.label = rng.integers(0, len(CLASSES), RECORDS)
        cls.texts = ["".join(rng.choice(list(LETTERS), rng.integers(0, 6))) for _ in range(RECORDS)]
        cls.lists = {
            "tokens": [rng.integers(-5, 6, rng.integers(0, 4)).astype(np.int64) for _ in range(RECORDS)],
            "weights": [column("float32", rng)[: rng.integers(0, 4)] for _ in range(RECORDS)],
            "box": list(rng.integers(-5, 6, (RECORDS, 4)).astype(np.int16)),
            "boxes": [rng.normal(0, 2, (rng.integers(0, 3), 4)).round(1).astype(np.float32) for _ in range(RECORDS)],
            "kinds": [rng.integers(0, len(CLASSES), rng.integers(0, 4)) for _ in range(RECORDS)],
        }
        fields = [
            *(penstock.Field(name, name) for name in scalars),
            penstock.Field("label", "int64", classes=CLASSES),
            penstock.Field("caption", "uint8", ragged=True, content="utf-8"),
            penstock.Field("tokens", "int64", ragged=True),
            penstock.Field("weights", "float32", ragged=True),
            penstock.Field("box", "int16", (4,)),
            penstock.Field("boxes", "float32", (4,), ragged=True),
            penstock.Field("kinds", "int64", ragged=True, classes=CLASSES),
            penstock.Field("record", "int64"),
        ]
        path = os.path.join(folder, "ds")
        with penstock.Writer(path, fields, shard_size="4KiB") as w:
            for i in range(RECORDS):
                record = {name: a[i] for name, a in scalars.items()} | {name: a[i] for name, a in cls.lists.items()}
                w.append(record | {"record": i, "label": cls.label[i], "caption": cls.texts[i]})
        cls.frame = pd.DataFrame(scalars)
        cls.frame["label"] = pd.Series([CLASSES[i] for i in cls.label])
        cls.frame["caption"] = pd.Series(cls.texts)
        cls.ds = penstock.open(path)

    @cases(150)
    def test_as_pandas(self, rng: random.Random) -> None:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            part = self.condition(rng, rng.choice((1, 2, 3)))
            try:
                want = np.flatnonzero(np.array(part.of(np.ones(RECORDS, bool)), bool)).tolist()
            except Refused as e:
                with self.assertRaisesRegex(penstock.Error, str(e), msg=part.text):
                    self.ds.filter(part.text)
                return
            try:
                view = self.ds.filter(part.text)
            except penstock.Error as e:
                self.fail(str(e))
            self.assertEqual(view["record"][:].tolist(), want, part.text)

    # Conditions

    def condition(self, rng, depth):
        if depth > 0 and rng.random() < 0.5:
            return self.logic(rng, depth)
        return rng.choice((
            self.comparison, self.comparison, self.comparison, self.member, self.between, self.truth, self.text, self.text, self.named, self.named,
            self.quantified, self.quantified, self.nan, self.empty,
        ))(rng, depth)  # fmt: skip

    def logic(self, rng, depth):
        left = self.condition(rng, depth - 1)
        if rng.random() < 0.25:
            return Part(f"not ({left.text})", "truth", lambda active: ~pd.Series(left.of(active)).astype(bool))
        right, word = self.condition(rng, depth - 1), rng.choice(("and", "or"))

        def of(active):
            x = np.array(left.of(active), bool)
            y = np.array(right.of(active & (x if word == "and" else ~x)), bool)
            return x & y if word == "and" else x | y

        return Part(f"({left.text}) {word} ({right.text})", "truth", of)

    def comparison(self, rng, depth):
        left, right, relation = self.number(rng, depth), self.number(rng, depth), rng.choice(RELATIONS)
        return Part(f"{left.text} {relation} {right.text}", "truth", lambda active: compared(relation, left, right, active))

    def between(self, rng, depth):
        x, low, high = self.number(rng, depth), constant(rng), constant(rng)
        word = rng.choice(("between", "not between"))

        def of(active):
            inside = compared(">=", x, low, active)
            inside &= compared("<=", x, high, active & inside)
            return inside if word == "between" else ~inside

        return Part(f"{x.text} {word} {low.text} and {high.text}", "truth", of)

    def member(self, rng, depth):
        x, values, word = self.number(rng, depth), [constant(rng) for _ in range(rng.randrange(5))], rng.choice(("in", "not in"))
        if values and rng.random() < 0.3:
            values.append(Part("nan", "float", lambda active: pd.Series([math.nan] * RECORDS, dtype=object), constant=math.nan))

        def of(active):
            found = np.zeros(RECORDS, bool)
            for v in values:
                found |= compared("=", x, v, active) if v.text != "nan" else np.array(pd.Series(x.of(active)).isna())
            return (found if word == "in" else ~found) if values else np.full(RECORDS, (x.of(active) is None) or word == "not in")

        return Part(f"{x.text} {word} ({', '.join(v.text for v in values)})", "truth", of)

    def truth(self, rng, _depth):
        s, relation, value = self.frame["bool"], rng.choice(("", "=", "!=")), rng.random() < 0.5
        if rng.random() < 0.3:
            number = rng.choice((0, 1, 0.5, -1, 1.0, 2**64))
            return Part(f"bool {(r := rng.choice(RELATIONS))} {number}", "truth", lambda active: relate(r, s.astype("int64"), float(number)))
        if not relation:
            return Part("bool", "truth", lambda active: s)
        return Part(f"bool {relation} {str(value).lower()}", "truth", lambda active: (s == value) == (relation == "="))

    def text(self, rng, _depth):
        s, some = self.frame["caption"], "".join(rng.choice(LETTERS) for _ in range(rng.randrange(4)))
        one = rng.choice([*self.texts, some])
        return rng.choice((
            lambda: Part(f"caption {(r := rng.choice(RELATIONS))} {quoted(rng, one)}", "truth", lambda active: relate(r, s, one)),
            lambda: Part(f"starts_with(caption, {quoted(rng, some)})", "truth", lambda active: s.str.startswith(some)),
            lambda: Part(f"ends_with(caption, {quoted(rng, some)})", "truth", lambda active: s.str.endswith(some)),
            lambda: Part(f"contains(caption, {quoted(rng, some)})", "truth", lambda active: s.str.contains(some, regex=False)),
            lambda: Part(f"matches(caption, {quoted(rng, (p := rng.choice(PATTERNS)))})", "truth", lambda active: s.str.contains(p, regex=True)),
            lambda: Part(f"caption in ({quoted(rng, one)}, {quoted(rng, some)})", "truth", lambda active: s.isin([one, some])),
            lambda: Part(f"caption {(r := rng.choice(RELATIONS))} label", "truth", lambda active: relate(r, s, self.frame["label"])),
        ))()  # fmt: skip

    def named(self, rng, _depth):
        s, name = self.frame["label"], rng.choice(CLASSES)
        several = rng.sample(CLASSES, rng.randrange(1, 4))
        return rng.choice((
            lambda: Part(f"label {(r := rng.choice(RELATIONS))} {quoted(rng, name)}", "truth", lambda active: relate(r, s, name)),
            lambda: Part(f"{quoted(rng, name)} {(r := rng.choice(RELATIONS))} label", "truth",
                lambda active: relate(r, pd.Series([name] * RECORDS), s)),
            lambda: Part(f"label not in [{', '.join(quoted(rng, n) for n in several)}]", "truth", lambda active: ~s.isin(several)),
            lambda: Part(f"starts_with(label, {quoted(rng, name[:2])})", "truth", lambda active: s.str.startswith(name[:2])),
            lambda: Part(f"label {(r := rng.choice(RELATIONS))} {(k := rng.randrange(-1, 5))}", "truth",
                lambda active: relate(r, pd.Series(self.label), k)),
        ))()  # fmt: skip

    def nan(self, rng, depth):
        x = self.number(rng, depth)
        return Part(f"is_nan({x.text})", "truth", lambda active: pd.Series(x.of(active)).isna())

    def empty(self, rng, _depth):
        name = rng.choice(("tokens", "weights", "boxes", "kinds", "caption"))
        values = self.texts if name == "caption" else self.lists[name]
        return Part(f"is_empty({name})", "truth", lambda active: pd.Series([len(v) == 0 for v in values]))

    def quantified(self, rng, depth):
        word = rng.choice(("any", "all"))
        test = any if word == "any" else all
        if rng.random() < 0.3:
            name = rng.choice(CLASSES)
            relation = rng.choice(("=", "!="))
            kinds = [[(CLASSES[k] == name) == (relation == "=") for k in row] for row in self.lists["kinds"]]
            return Part(f"{word}(kinds {relation} {quoted(rng, name)})", "truth", lambda active: pd.Series([test(row) for row in kinds]))
        left, right, relation = self.list(rng, depth), self.number(rng, 0), rng.choice(RELATIONS)

        def of(active):
            rows, others = left.of(active), right.of(active)
            return pd.Series([bool(test(relate_rounded(relation, row, y, left, right))) for row, y in zip(rows, others)])

        return Part(f"{word}({left.text} {relation} {right.text})", "truth", of)

    # Numbers

    def number(self, rng, depth):
        if depth > 0 and rng.random() < 0.4:
            return self.computed(rng, depth)
        return rng.choice((self.scalar, self.scalar, self.scalar, lambda *_: constant(rng), self.reduced, self.length, self.element))(rng, depth)

    def scalar(self, rng, _depth):
        name = rng.choice((*INTEGERS, *FLOATS))
        s = self.frame[name]
        if name in FLOATS:
            return Part(name, "float", lambda active: s.astype("float64"), dtype=name)
        return Part(name, "integer", lambda active: s.astype(object))

    def computed(self, rng, depth):
        if rng.random() < 0.4:
            return self.function(rng, depth)
        left, right, op = self.number(rng, depth - 1), self.number(rng, depth - 1), rng.choice("+-*/")
        if left.constant is not None and right.constant is not None:
            left = self.scalar(rng, 0)
        kind = "float" if op == "/" or "float" in (left.kind, right.kind) else "integer"

        def of(active):
            x, y = left.of(active), right.of(active)
            if kind == "float":
                x, y = (np.array(v, object).astype(np.float64) for v in (x, y))
                return pd.Series(x + y if op == "+" else x - y if op == "-" else x * y if op == "*" else x / y)
            out = [a + b if op == "+" else a - b if op == "-" else a * b for a, b in zip(x, y)]
            for i in np.flatnonzero(active):
                if not -(2**63) <= out[i] < 2**63 or max(x[i], y[i]) >= 2**63:
                    raise Refused(f"record {i}: .* overflows 64 bits")
            return pd.Series([v if -(2**63) <= v < 2**63 else 0 for v in out], dtype=object)

        return Part(f"({left.text} {op} {right.text})", kind, of)

    def function(self, rng, depth):
        """Return a function of NumPy; a power that rounds once, so that each of Go and C has it."""
        x = self.number(rng, depth - 1)
        while x.constant is not None:
            x = self.number(rng, depth - 1)
        low, high = constant(rng, small=True), constant(rng, small=True)
        kind = "float" if "float" in (x.kind, low.kind, high.kind) else "integer"

        def clip(active):
            out = [one(one(v, low.constant, max), high.constant, min) for v in x.of(active)]
            for i in np.flatnonzero(active):
                if kind == "integer" and x.of(active)[i] >= 2**63:
                    raise Refused(f"record {i}: .* overflows 64 bits")
            return pd.Series([float(v) for v in out] if kind == "float" else out, dtype=object)

        def absolute(active):
            values = x.of(active)
            for i in np.flatnonzero(active):
                if x.kind == "integer" and (values[i] >= 2**63 or values[i] == -(2**63)):
                    raise Refused(f"record {i}: .* overflows 64 bits")
            return pd.Series([abs(v) for v in values], dtype=object)

        def power(exponent):
            def of(active):
                v = np.array(x.of(active), object).astype(np.float64)
                return pd.Series(v**exponent)

            return of

        return rng.choice((
            lambda: Part(f"clip({x.text}, {low.text}, {high.text})", kind, clip),
            lambda: Part(f"abs({x.text})", x.kind, absolute),
            lambda: Part(f"({x.text}) ** 2", "float", power(2)),
            lambda: Part(f"-({x.text}) ** 0.5", "float", lambda active: -power(0.5)(active)),
            lambda: Part(f"sqrt({x.text})", "float", lambda active: pd.Series(np.sqrt(np.array(x.of(active), object).astype(np.float64)))),
        ))()  # fmt: skip

    def length(self, rng, _depth):
        name = rng.choice(("tokens", "weights", "boxes", "caption", "box"))
        values = self.texts if name == "caption" else self.lists[name]
        return Part(f"len({name})", "integer", lambda active: pd.Series([len(v) for v in values], dtype=object))

    def element(self, rng, _depth):
        name = rng.choice(("tokens", "weights", "box", "boxes"))
        i, k = rng.randrange(-2, 2), rng.randrange(-4, 4)
        values = self.lists[name]

        def of(active):
            out = []
            for r, row in enumerate(values):
                if not -len(row) <= i < len(row):
                    if active[r]:
                        raise Refused(f"record {r}: index {i} of {len(row)} rows")
                    out.append(0)
                else:
                    out.append(plain(row[i][k] if name == "boxes" else row[i]))
            return pd.Series(out, dtype=object)

        text = f"{name}[{i}, {k}]" if name == "boxes" else f"{name}[{i}]"
        return Part(text, "integer" if name in ("tokens", "box") else "float", of, dtype=None if name in ("tokens", "box") else "float32")

    def reduced(self, rng, depth):
        x, word = self.list(rng, depth), rng.choice(("min", "max", "mean"))

        def of(active):
            out = []
            for i, row in enumerate(x.of(active)):
                if not row:
                    if active[i]:
                        raise Refused(f"record {i}: {word} of no values")
                    out.append(0)
                elif word == "mean":
                    total = 0.0
                    for v in row:
                        total += float(v)
                    out.append(total / len(row))
                else:
                    out.append(next((v for v in row if v != v), None) or (min if word == "min" else max)(row))
            return pd.Series(out, dtype=object)

        kind = "float" if word == "mean" else x.kind
        return Part(f"{word}({x.text})", kind, of, dtype=None if word == "mean" else x.dtype)

    def list(self, rng, depth):
        """Return an expression with a list of numbers a record."""
        if depth > 0 and rng.random() < 0.4:
            x, y, op = self.list(rng, 0), constant(rng, small=True), rng.choice("+-*")
            kind = "float" if "float" in (x.kind, y.kind) else "integer"

            def of(active):
                v = y.constant
                rows = [[float(a) if kind == "float" else a for a in row] for row in x.of(active)]
                return [[a + v if op == "+" else a - v if op == "-" else a * v for a in row] for row in rows]

            return Part(f"({x.text} {op} {y.text})", kind, of, many=True)
        name = rng.choice(("tokens", "weights", "box", "boxes", "boxes[:, 2]"))
        values = [row[:, 2] for row in self.lists["boxes"]] if ":" in name else self.lists[name]
        rows = [[plain(v) for v in np.ravel(row)] for row in values]
        whole = name in ("tokens", "box")
        return Part(name, "integer" if whole else "float", lambda active: rows, many=True, dtype=None if whole else "float32")


def one(a, b, choose):
    """Return the smaller or larger of two numbers, or NaN if one is."""
    return math.nan if a != a or b != b else choose(a, b)


def plain(v):
    """Return a number of NumPy as one of Python."""
    return int(v) if isinstance(v, np.integer) else float(v)


def constant(rng, small=False):
    """Return a literal."""
    if rng.random() < 0.5:
        v = rng.choice((rng.randrange(-9, 10), rng.randrange(-9, 10), 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1)[: 2 if small else 7])
    else:
        v = rng.choice((round(rng.uniform(-9, 9), 1), float(rng.randrange(-9, 10)), 1e300, -1e300, 9007199254740992.0, 1.8e19)[: 2 if small else 6])
    kind = "integer" if isinstance(v, int) else "float"
    return Part(repr(v), kind, lambda active: pd.Series([v] * RECORDS, dtype=object), constant=v)


def quoted(rng, text):
    quote = rng.choice("'\"")
    return quote + text.replace(quote, 2 * quote) + quote


def relate(relation, x, y):
    return {"=": x == y, "==": x == y, "!=": x != y}.get(relation) if relation[0] in "=!" else (
        x < y if relation == "<" else x <= y if relation == "<=" else x > y if relation == ">" else x >= y)  # fmt: skip


def rounded(v, dtype):
    """Return a fraction as NumPy makes it a number of a type, unless that is infinite."""
    if dtype is None or not isinstance(v, float):
        return v
    near = float(np.dtype(dtype).type(v))
    return v if math.isinf(near) else near


def relate_rounded(relation, row, y, left, right):
    y = rounded(y, left.dtype) if right.constant is not None else y
    return [relate(relation, v, y) for v in row]


def compared(relation, left, right, active):
    """Compare as pandas does with Python's numbers, one of which is a literal that has no type of its own."""
    x, y = left.of(active), right.of(active)
    if right.constant is not None:
        y = pd.Series([rounded(v, left.dtype) for v in y], dtype=object)
    elif left.constant is not None:
        x = pd.Series([rounded(v, right.dtype) for v in x], dtype=object)
    x, y = (pd.Series([v if isinstance(v, int) else float(v) for v in s], dtype=object) for s in (x, y))
    return relate(relation, x, y).astype(bool)


if __name__ == "__main__":
    unittest.main()
