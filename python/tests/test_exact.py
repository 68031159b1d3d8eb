"""Values come out of every door of Python as they went in, or are refused.

PENSTOCK_VALUES is the number of random values that the properties are tried with, and PENSTOCK_SEED what they are drawn from.
"""

import datetime
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import penstock
from penstock import Field
from penstock import transforms as T
from penstock._base.values import fitted

from . import data

try:
    import torch
except ImportError:
    torch = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import pandas
except ImportError:
    pandas = None

VALUES = int(os.environ.get("PENSTOCK_VALUES", "3000"))
SEED = int(os.environ.get("PENSTOCK_SEED", "20"))

INTEGERS = {f"{sign}int{bits}": (0 if sign else -(1 << bits - 1), (1 << bits - (not sign)) - 1) for bits in (8, 16, 32, 64) for sign in ("", "u")}
FLOATS = ("float16", "bfloat16", "float32", "float64")
TYPES = ("bool", *INTEGERS, *FLOATS)
_CODES = {"float16": "<e", "float32": "<f", "float64": "<d"}


def setUpModule():
    data.name_programs()


def number(rng, dtype):
    """Return a random number that a type has: small, at an end of a type, or of any bits."""
    if dtype == "bool":
        return bool(rng.integers(2))
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        ends = [x for low_, high_ in INTEGERS.values() for x in (low_, low_ + 1, high_ - 1, high_) if low <= x <= high]
        kind = rng.integers(3)
        if kind == 0:
            return ends[rng.integers(len(ends))]
        return (
            int(rng.integers(max(low, -300), min(high, 300), endpoint=True))
            if kind == 1
            else int(rng.integers(low, high, dtype=dtype, endpoint=True))
        )
    if rng.integers(2):
        return rounded(float(rng.integers(-400, 400)) / 4, dtype)
    size = 2 if dtype.endswith("16") else 4 if dtype == "float32" else 8
    raw = rng.bytes(size)
    return struct.unpack("<f", b"\0\0" + raw)[0] if dtype == "bfloat16" else struct.unpack(_CODES[dtype], raw)[0]


def rounded(x, dtype):
    """Return a float as a type of floats has it, by the struct module and not by NumPy."""
    if dtype != "bfloat16":
        try:
            return struct.unpack(_CODES[dtype], struct.pack(_CODES[dtype], x))[0]
        except OverflowError:
            return math.copysign(math.inf, x)
    if not math.isfinite(x):
        return x
    x = rounded(x, "float32")
    if math.isinf(x):
        return x
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def numbers(value):
    """Return the numbers of an array, a tensor or a scalar, in lists: those of bfloat16 by their bits."""
    if torch is not None and isinstance(value, torch.Tensor):
        return (value.double() if value.is_floating_point() else value).tolist()
    a = np.asarray(value)
    if a.dtype.kind == "V":
        a = (a.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return a.tolist()


def type_of(value):
    """Return the element type of an array or a tensor."""
    if torch is not None and isinstance(value, torch.Tensor):
        return str(value.dtype).rpartition(".")[2]
    return "bfloat16" if value.dtype.kind == "V" else value.dtype.name


def same(got, want):
    """Return whether numbers, in lists of lists, are the same: NaN is NaN, -0.0 is not 0.0, and 1 is not True."""
    if isinstance(want, (list, tuple)):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, float):
        return isinstance(got, float) and (got == want or (math.isnan(got) and math.isnan(want))) and math.copysign(1, got) == math.copysign(1, want)
    return type(got) is type(want) and got == want


def made(rng, dtype, listed):
    """Return an array or a tensor of numbers of a type, in any form that has this type."""
    if dtype == "bfloat16":
        bits = np.array([struct.unpack("<I", struct.pack("<f", x))[0] >> 16 for x in np.ravel(listed)], np.uint16).reshape(np.shape(listed))
        forms = [bits.view(penstock.bfloat16.dtype())]
        if torch is not None:
            forms.append(torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16))
        if ml_dtypes is not None:
            forms.append(bits.view(ml_dtypes.bfloat16))
        return forms[rng.integers(len(forms))]
    a = np.array(listed, dtype)
    form = rng.integers(7)
    if form == 0 and torch is not None:
        return torch.from_numpy(a.copy())
    if form == 1:
        return a.astype(a.dtype.newbyteorder(">"))
    if form == 2 and a.ndim:
        return np.repeat(a, 2, axis=-1)[..., ::2]
    if form == 3 and a.ndim:
        return np.ascontiguousarray(a[::-1])[::-1]
    if form == 4:
        a.flags.writeable = False
    if form == 5:
        return np.ma.masked_array(a, mask=np.zeros(a.shape, bool))
    return a[()] if form == 6 else a


class FittedTest(unittest.TestCase):
    """The rule for a number of one type in a field of another."""

    def test_random_values(self):
        rng = np.random.default_rng(SEED)
        accepted = 0
        for i in range(VALUES):
            source, target = (TYPES[k] for k in rng.integers(len(TYPES), size=2))
            listed = [number(rng, source) for _ in range(rng.integers(1, 4))]
            if rng.integers(2):
                listed = listed[0]
            python = rng.integers(3) == 0
            value = listed if python else made(rng, source, listed)
            with self.subTest(seed=SEED, i=i, source=source, target=target, value=listed, kind=type(value).__name__):
                want = self.expected(source, target, np.ravel(np.array(listed, object)).tolist(), python)
                try:
                    got = fitted(value, target)
                except (TypeError, OverflowError) as e:
                    self.assertIsNone(want, f"it was refused: {e}")
                    self.assertRegex(str(e), f"(does not fit|is not) {target}")
                else:
                    self.assertIsNotNone(want, f"it was taken, as {got}")
                    self.assertEqual(got.dtype, Field("x", target).numpy)
                    self.assertTrue(same(numbers(got.ravel()), want), (got, want))
                    accepted += 1
        self.assertGreater(accepted, VALUES // 10)

    def expected(self, source, target, listed, python):
        """Return the numbers as a type has them; None if it has not."""
        if target == "bool" or (source in FLOATS and target in INTEGERS):
            return listed if source == target else None
        if target in INTEGERS:
            low, high = INTEGERS[target]
            return [int(x) for x in listed] if all(low <= x <= high for x in listed) else None
        if (source, target, python) == ("uint16", "bfloat16", False):  # which may be bits
            return None
        found = []
        for x in listed:
            if source in FLOATS:
                y = rounded(x, target)
                exact = y == x or math.isnan(x)
                if not exact and (not python or math.isinf(y)):
                    return None
            else:
                y = rounded(float(x), target) if abs(x) < 1 << 63 or float(x) == x else math.inf
                if not (math.isfinite(y) and int(y) == x):
                    return None
            found.append(y)
        return found

    def test_what_no_field_has(self):
        cases = [
            (np.complex64(1 + 2j), ".real"),
            (np.datetime64("2020-01-01"), "astype.'int64'"),
            (np.timedelta64(3, "s"), "astype.'int64'"),
            (np.array(["a", "b"]), "class numbers"),
            (np.array([b"a"]), "class numbers"),
            (np.array([1, None], object), "numbers"),
            (np.zeros(2, [("a", "i4"), ("b", "f4")]), "a field of each of its members"),
            (np.ma.masked_array([1, 2], [False, True]), "filled"),
            ([np.ma.masked_array([1, 2], [False, True])], "filled"),
            ([(1, np.ma.masked)], "filled"),
            (datetime.date(2020, 1, 1), "is not"),
        ]
        if np.dtype(np.longdouble).itemsize > 8:
            cases.append((np.longdouble(1), "astype.'float64'"))
        if torch is not None:
            cases += [
                (torch.zeros(2, dtype=torch.complex64), ".real"),
                (torch.zeros(2, dtype=torch.float32).to_sparse(), "to_dense"),
                (torch.zeros(2).to(torch.float8_e4m3fn), "float8_e4m3fn.*float"),
                (torch.empty(2, dtype=torch.int4), "int4.*torch.int8"),
                (torch.nested.nested_tensor([torch.zeros(2)], layout=torch.jagged), "each of its tensors"),
            ]
        if ml_dtypes is not None:
            cases += [(np.zeros(2, ml_dtypes.float8_e4m3fn), "astype.'float32'"), (np.zeros(2, ml_dtypes.int4), "'int8'")]
        if pandas is not None:
            cases += [
                (pandas.Series([1, None], dtype="Int64"), "missing.*fillna"),
                (pandas.array([True, None], dtype="boolean"), "missing.*fillna"),
                (pandas.Series(pandas.Categorical(["a", "b"])), ".codes"),
                ([pandas.Series([1, None], dtype="Int64")], "missing.*fillna"),
                ([pandas.Series(pandas.Categorical([1, 2]))], ".codes"),
                (pandas.NA, "is not"),
            ]
        for value, advice in cases:
            for target in ("int64", "float32", "bfloat16"):
                with self.subTest(kind=type(value), dtype=getattr(value, "dtype", None), target=target), self.assertRaisesRegex(TypeError, advice):
                    fitted(value, target)

    def test_what_a_field_has(self):
        cases = [((1, 2, 3), "int8", [1, 2, 3]), ([], "float32", []), (np.zeros((2, 0), "i4"), "int32", [[], []]), (range(3), "int64", [0, 1, 2])]
        if torch is not None:
            cases += [
                ([torch.tensor(1.5, dtype=torch.bfloat16), torch.tensor(2.0, dtype=torch.bfloat16)], "bfloat16", [1.5, 2.0]),
                ([[torch.tensor(1.5, dtype=torch.bfloat16)]], "bfloat16", [[1.5]]),
                ([[torch.ones(1, requires_grad=True)]], "float32", [[[1.0]]]),
                (torch.arange(4).to(torch.uint16)[::2], "uint16", [0, 2]),
                (torch.ones(2, requires_grad=True), "float64", [1.0, 1.0]),
                (torch.tensor([1 + 2j]).conj().imag, "float32", [-2.0]),
            ]
        if pandas is not None:
            cases += [
                (pandas.Series([1 << 60, (1 << 60) + 1], dtype="Int64"), "int64", [1 << 60, (1 << 60) + 1]),
                (pandas.Series([3, 4], index=[7, 8], dtype="uint8"), "uint8", [3, 4]),
            ]
        for value, target, want in cases:
            with self.subTest(value=repr(value), target=target):
                self.assertEqual(numbers(fitted(value, target)), want)


class DoorsTest(unittest.TestCase):
    """What goes in by one door comes out by all others."""

    N = 24

    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.TemporaryDirectory(prefix="penstock-exact-")
        rng = np.random.default_rng(SEED)
        cls.rng, cls.path = rng, os.path.join(cls.base.name, "ds")
        shapes = {name: tuple(rng.integers(1, 4, rng.integers(0, 3)).tolist()) for name in TYPES}
        cls.fields = [Field(name, name, shapes[name]) for name in TYPES] + [Field(f"{name}s", name, ragged=True) for name in TYPES]
        cls.want = [{f.name: cls.values(f) for f in cls.fields} for _ in range(cls.N)]
        with penstock.Writer(cls.path, cls.fields) as w:
            w.extend({f.name: made(rng, f.dtype, record[f.name]) for f in cls.fields} for record in cls.want)

    @classmethod
    def tearDownClass(cls):
        cls.base.cleanup()

    @classmethod
    def values(cls, f):
        shape = (int(cls.rng.integers(1, 5)),) if f.ragged else f.shape
        flat = [number(cls.rng, f.dtype) for _ in range(math.prod(shape))]
        for n in reversed(shape):
            flat = [flat[i : i + n] for i in range(0, len(flat), n)]
        return flat[0]

    def check(self, record, i, *where, dtype=True):
        for f in self.fields:
            with self.subTest(seed=SEED, record=i, field=f.name, where=where):
                self.assertTrue(same(numbers(record[f.name]), self.want[i][f.name]), (record[f.name], self.want[i][f.name]))
                if dtype:
                    self.assertEqual(type_of(record[f.name]), f.dtype)

    def test_records(self):
        ds = penstock.open(self.path)
        for i in range(self.N):
            self.check(ds[i], i, "ds[i]")
            self.check({f.name: ds[f.name][i] for f in self.fields}, i, "ds[name][i]")
        for key in (slice(3, 9), [5, 2, 2]):
            batch = ds[key]
            for place, i in enumerate(np.arange(self.N)[key].tolist()):
                self.check(batch[place], i, "ds[key]")
        taken = {f.name: ds[f.name].take([7, 1]) for f in self.fields}
        self.check({name: x[1] for name, x in taken.items()}, 1, "take")

    def test_containers(self):
        for name in ("ds.zarr", "copy"):
            path = os.path.join(self.base.name, name)
            penstock.preprocess(self.path, path)
            with penstock.open(path) as ds:
                for i in (0, self.N - 1):
                    self.check(ds[i], i, name)

    @unittest.skipIf(torch is None, "no torch")
    def test_loaders(self):
        from penstock.torch import TorchDataset

        def listed(samples):
            return {f.name: [s[f.name] for s in samples] for f in self.fields}

        opened = penstock.open(self.path)
        fixed = penstock.open(self.path, fields=TYPES)
        for i in range(self.N):
            self.check(TorchDataset(self.path)[i], i, "TorchDataset[i]")
        for output in ("torch", "numpy"):
            for what, dataset, more in (
                ("path", self.path, {}), ("opened", opened, {}), ("collate_fn", opened, {"collate_fn": listed}),
                ("collate_fn of a path", self.path, {"collate_fn": listed}), ("collate_fn, worker", opened, {"collate_fn": listed, "num_workers": 1}),
            ):  # fmt: skip
                with penstock.DataLoader(dataset, 5, output=output, batch_type=dict, **more) as loader:
                    i = 0
                    for batch in loader:
                        for place in range(len(batch["bool"])):
                            self.check({f.name: batch[f.name][place] for f in self.fields}, i, output, what)
                            i += 1
                    self.assertEqual(i, self.N)
            self.fields, everything = self.fields[: len(TYPES)], self.fields  # of fixed size, which default_collate stacks
            for what, dataset, more in (
                ("batch_sampler", fixed, {"batch_sampler": [[3, 1], [2, 2]]}),
                ("batch_sampler in a worker", fixed, {"batch_sampler": [[3, 1], [2, 2]], "num_workers": 1}),
                ("batch_sampler of a Subset", torch.utils.data.Subset(fixed, range(self.N)), {"batch_sampler": [[3, 1], [2, 2]]}),
                ("batch_size=None", fixed, {"batch_size": None, "sampler": [3, 1, 2, 2]}),
            ):
                with penstock.DataLoader(dataset, output=output, **more) as loader:
                    found = list(loader)
                records = found if "batch_size" in more else [{k: v[p] for k, v in batch.items()} for batch in found for p in (0, 1)]
                for i, record in zip((3, 1, 2, 2), records):
                    self.check(record, i, output, what)
                self.assertEqual(len(records), 4)
            self.fields = everything

    def test_columns(self):
        """map, add_column and set_column, in which each form of values is the same numbers."""
        path = os.path.join(self.base.name, "columns")
        rng = self.rng

        def record(i):
            return {"n": i, **{f.name: made(rng, f.dtype, self.want[i][f.name]) for f in self.fields}}

        penstock.map(record, range(self.N), path, workers=0, schema=[Field("n", "int64"), *self.fields])
        ds = penstock.open(path)
        for i in range(self.N):
            self.check(ds[i], i, "map")
        for f in self.fields[:: 1 if VALUES > 3000 else 3] + [f for f in self.fields if f.dtype == "bfloat16"]:
            column = [made(rng, f.dtype, r[f.name]) for r in self.want]
            ways = [column, iter(column), lambda r, column=column: column[int(r["n"])]]
            if not f.ragged and f.dtype != "bfloat16":
                ways.append(np.array([r[f.name] for r in self.want], f.dtype))
            if not f.ragged and f.dtype == "bfloat16" and torch is not None:
                ways.append(torch.tensor([r[f.name] for r in self.want], dtype=torch.bfloat16))
            way = int(rng.integers(len(ways)))
            done = ds.set_column(f.name, ways[way], field=f)
            for i in range(self.N):
                got = done[f.name][i]
                with self.subTest(seed=SEED, field=f.name, record=i, way=way):
                    self.assertTrue(same(numbers(got), self.want[i][f.name]), (got, self.want[i][f.name]))
            ds = done

    def test_functions(self):
        """Functions of records give back what they took, and the value of a field that a function takes has its type."""
        seen = []

        def whole(record):
            seen.extend((name, type_of(x)) for name, x in record.items())
            return record

        for output in ("numpy", "torch") if torch is not None else ("numpy",):
            with penstock.DataLoader(self.path, 4, output=output, batch_type=dict, transforms=[T.Record(whole)], num_workers=0) as loader:
                for step, batch in enumerate(loader):
                    for place in range(4):
                        self.check({f.name: batch[f.name][place] for f in self.fields}, step * 4 + place, output)
            self.assertEqual(set(seen), {(f.name, f.dtype) for f in self.fields})
            for kind in ("array", "tensor") if torch is not None else ("array",):
                of = [f for f in self.fields[: len(TYPES)] if f.dtype in ("bfloat16", "float16", "uint16", "int64")]
                steps = {f.name: [T.Function(_same, takes=kind)] for f in of}
                with penstock.DataLoader(
                    self.path, 4, output=output, batch_type=dict, transforms=steps, fields=[f.name for f in of], num_workers=1
                ) as loader:
                    batch = next(iter(loader))
                    for f in of:
                        with self.subTest(output=output, kind=kind, field=f.name):
                            self.assertEqual(type_of(batch[f.name]), f.dtype)
                            self.assertTrue(same(numbers(batch[f.name]), [r[f.name] for r in self.want[:4]]))

    def test_statistics(self):
        path = os.path.join(self.base.name, "statistics")
        halves = np.arange(40, dtype=np.float32) / 2
        with penstock.Writer(path, [Field("b", "bfloat16"), Field("g", "bfloat16")]) as w:
            w.extend({"b": penstock.bfloat16.from_float32(x), "g": penstock.bfloat16.from_float32(i % 2)} for i, x in enumerate(halves))
        with penstock.open(path) as ds:
            found = ds.statistics("b")
            self.assertEqual((found.mean, found.std, found.min, found.max), (halves.mean(), halves.astype("f8").std(), 0, 19.5))
            self.assertEqual(found.standardize().mean, halves.mean())
            by = ds.statistics("b", group="g")
            self.assertEqual((by.groups.tolist(), by.max.ravel().tolist()), ([0.0, 1.0], [19.0, 19.5]))
            one = ds["b"][3]
            self.assertEqual(len(ds.filter("b >= 1.5")), 37)
            with penstock.DataLoader(path, 64, filters=[("b", "==", one)], output="numpy") as loader:
                self.assertEqual([numbers(b["b"]) for b in loader], [[1.5]])

    @unittest.skipIf(ml_dtypes is None, "it has been tried: ml_dtypes is not installed")
    def test_without_ml_dtypes(self):
        doors = ["records", "loaders", "columns", "statistics"]
        tests = ["tests.test_exact.FittedTest", *(f"tests.test_exact.DoorsTest.test_{door}" for door in doors)]
        code = f"import sys, unittest; sys.modules['ml_dtypes'] = None; sys.argv[1:] = {tests}; unittest.main(None)"
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        run = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr[-4000:])


def _same(x):
    return x


class ChangedTest(unittest.TestCase):
    """Values of another type than the field's, through the doors that name the record."""

    def setUp(self):
        base = tempfile.TemporaryDirectory(prefix="penstock-exact-")
        self.addCleanup(base.cleanup)
        self.path = os.path.join(base.name, "ds")
        fields = [Field("ids", "uint16", ragged=True), Field("w", "float32"), Field("n", "int32"), Field("boxes", "float32", (4,), ragged=True)]
        with penstock.Writer(self.path, fields) as w:
            for i in range(8):
                w.append({"ids": range(i % 3 + 1), "w": i / 2, "n": i, "boxes": np.ones((i % 2 + 1, 4), "f4")})

    def rows(self, function):
        with penstock.DataLoader(self.path, 4, transforms=[T.Record(function, takes=["ids"])], output="numpy", num_workers=0) as loader:
            return [b["ids"] for b in loader]

    def test_rows_of_another_type(self):
        for dtype, change in (("int64", 50257 + 40000), ("float64", 0.1), ("int32", -7), ("float32", 0.5)):
            got = self.rows(lambda ids, dtype=dtype, change=change: ids.astype(dtype) + np.dtype(dtype).type(change))
            want = [np.arange(i % 3 + 1).astype(dtype) + np.dtype(dtype).type(change) for i in range(8)]
            self.assertEqual([(r.dtype.name, r.tolist()) for batch in got for r in batch], [(dtype, r.tolist()) for r in want])

    def test_lists_of_a_function(self):
        got = self.rows(lambda ids: [int(x) for x in ids if x])  # some have none
        self.assertEqual([(r.dtype.name, r.tolist()) for batch in got for r in batch], [("uint16", list(range(1, i % 3 + 1))) for i in range(8)])
        for wrong, said in (([0.9, 0.1], "0.9 of float64"), ([1, 70000], "70000"), ([1, -1], "-1")):
            with self.assertRaisesRegex(TypeError, rf"record \d: <lambda>: ids: .*({said}).*not.* uint16.*numpy.asarray\(x, 'float64'\)"):
                self.rows(lambda ids, wrong=wrong: wrong)

    def test_rows_without_a_number_take_the_type_of_others(self):
        got = self.rows(lambda ids: ids.astype(np.int64) if len(ids) > 1 else np.array([]))
        self.assertEqual({batch.values.dtype.name for batch in got}, {"int64"})

    def test_set_column(self):
        ds, n = penstock.open(self.path), 8
        for name, value, said in (
            ("w", (1 << 24) + 1, "16777217 does not fit float32"),
            ("w", 0.1, "0.1 does not fit float32.*astype.'float32'"),
            ("n", 1 << 40, "1099511627776 does not fit int32"),
            ("n", np.uint64(1 << 63), "9223372036854775808 does not fit int32"),
        ):
            column = np.array([0] * 5 + [value] + [0] * 2, getattr(value, "dtype", None))
            for values in (column, lambda r, column=column: column[int(r["n"])], iter(column)):
                with self.subTest(name=name, value=value), self.assertRaisesRegex(penstock.Error, f"column '{name}': record 5: .*{said}"):
                    ds.set_column(name, values)
        exact = np.array([0.5] * n)
        self.assertEqual(ds.set_column("w", exact)["w"].numpy().tolist(), exact.tolist())

    @unittest.skipIf(torch is None, "no torch")
    def test_bfloat16_in_other_fields(self):
        values = torch.tensor([1.5, -2.0, 0.25, 3, 4, 5, 6, 7], dtype=torch.bfloat16)
        ds = penstock.open(self.path)
        ds = ds.set_column("w", values)
        self.assertEqual(ds["w"].numpy().tolist(), values.tolist())
        ds = ds.set_column("w", list(values), field=Field("w", "float64"))
        self.assertEqual((ds["w"].dtype.name, ds["w"].numpy().tolist()), ("float64", values.tolist()))
        with self.assertRaisesRegex(penstock.Error, "column 'n': record 0: .*bfloat16 is not int32"):
            ds.set_column("n", values, field=Field("n", "int32"))
        ds = ds.add_column("b", lambda r: torch.tensor(float(r["n"]) / 4, dtype=torch.bfloat16))
        self.assertEqual((ds.fields["b"].dtype, numbers(ds["b"].numpy())), ("bfloat16", [i / 4 for i in range(8)]))
        with self.assertRaisesRegex(penstock.Error, r"record 0: .*uint16 is not bfloat16: of bits, give bits.view\(penstock.bfloat16.dtype\(\)\)"):
            ds.set_column("b", np.zeros(8, np.uint16), field=Field("b", "bfloat16"))

    @unittest.skipIf(torch is None, "no torch")
    def test_functions_that_return_bfloat16(self):
        def function(record):
            return {"w": torch.tensor(float(record["n"]) / 4, dtype=torch.bfloat16), "boxes": record["boxes"]}

        for output in ("torch", "numpy"):
            with penstock.DataLoader(
                self.path,
                4,
                transforms=[T.Record(function)],
                output=output,
                batch_type=dict,
                num_workers=0,
                fields=["n", "boxes"],
            ) as loader:
                found = [b["w"] for b in loader]
            self.assertEqual([type_of(x) for x in found], ["bfloat16"] * 2)
            self.assertEqual([x for batch in found for x in numbers(batch)], [i / 4 for i in range(8)])

    def test_errors_name_the_record(self):
        with penstock.Writer(self.path + "2", [Field("x", "float32")]) as w:
            w.append({"x": 1})
            for value, said in (
                (1j, "complex"),
                (np.complex64(1), "its .real"),
                (np.float64(0.1), "0.1 does not fit float32"),
                (None, "None is not"),
            ):
                with self.assertRaisesRegex(penstock.Error, f"record 1: field 'x': .*{said}"):
                    w.append({"x": value})
        with self.assertRaisesRegex(penstock.Error, r"inputs\[1\], 1: .*field 'x': .*16777217 does not fit float32"):
            penstock.map(lambda i: {"x": i * ((1 << 24) + 1)}, range(3), self.path + "3", workers=0, schema=[Field("x", "float32")])


if __name__ == "__main__":
    unittest.main()
