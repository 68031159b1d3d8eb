"""Fields that are computed by expressions, in Python and by the program, against NumPy."""

import json
import os
import pickle
import shutil
import tempfile
import unittest

import numpy as np

import penstock

from . import data

setUpModule = data.name_programs

N = 7
SHAPES = {
    "i1": (3, 4),
    "u1": (4,),
    "i2": (3, 1),
    "u2": (),
    "h": (3, 4),
    "f": (3, 4),
    "b": (1, 4),
    "i4": (3, 4),
    "u4": (),
    "i8": (4,),
    "u8": (3, 1),
    "d": (3, 4),
}
TYPES = {
    "i1": "int8",
    "u1": "uint8",
    "i2": "int16",
    "u2": "uint16",
    "h": "float16",
    "f": "float32",
    "b": "bool",
    "i4": "int32",
    "u4": "uint32",
    "i8": "int64",
    "u8": "uint64",
    "d": "float64",
}


class DeriveTest(unittest.TestCase):
    def setUp(self):
        self.base = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.base)
        self.path = os.path.join(self.base, "ds")
        rng = np.random.default_rng(3)
        self.values = {}
        for name, shape in SHAPES.items():
            t = np.dtype(TYPES[name])
            if t.kind == "f":
                x = rng.normal(0, 4, (N, *shape)).astype(t)
                x[rng.random(x.shape) < 0.1] = rng.choice([0, np.nan, np.inf])
            else:
                x = (
                    rng.integers(0, 2, (N, *shape)).astype(bool)
                    if t.kind == "b"
                    else rng.integers(np.iinfo(t).min // 2, np.iinfo(t).max // 2, (N, *shape)).astype(t)
                )
            self.values[name] = x
        with penstock.Writer(self.path, [penstock.Field(n, TYPES[n], s) for n, s in SHAPES.items()]) as w:
            w.extend({n: x[i] for n, x in self.values.items()} for i in range(N))

    def test_root(self):
        """A power of 0.5 is a square root, as of NumPy, so that of -inf is NaN."""
        path = os.path.join(self.base, "roots")
        values = np.array([-np.inf, -0.0, np.inf, 4, np.nan, -4], "f8")
        with penstock.Writer(path, [penstock.Field("x", "float64"), penstock.Field("h", "float64")]) as w:
            w.extend({"x": x, "h": 0.5} for x in values)
        with np.errstate(all="ignore"):
            want = values**0.5
        with penstock.open(path) as ds:
            view = ds.derive(a="x ** 0.5", b="x ** h")
            with penstock.DataLoader(view, len(values), output="numpy") as loader:
                batch = next(iter(loader))
            for name in ("a", "b"):
                np.testing.assert_array_equal(view[name][:], want)
                np.testing.assert_array_equal(batch[name], want)

    def test_written_and_in_views(self):
        """Windows, selections, pickles and preprocess have the same values."""
        with penstock.open(self.path) as ds:
            view = ds.derive(s="sqrt(f * f + i1)", t="f > 0")
            want = view["s"][:]
            picked = view.select([5, 0], fields=["s", "t"])
            np.testing.assert_array_equal(picked["s"][:], want[[5, 0]])
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(picked))["s"][:], want[[5, 0]])
            of = view.windows({0: 3}, outputs={"s": {}})
            np.testing.assert_array_equal(of["s"][2], want[2:5])
            over = ds.windows({0: 3}, outputs={"f": {}, "i1": {}}).derive(s="sqrt(f * f + i1)")
            np.testing.assert_array_equal(over["s"][2], want[2:5])
            for v in (of, over):
                with penstock.DataLoader(v, 5, shuffle=True, seed=1, output="numpy") as loader:
                    for batch in loader:
                        for i, got in zip(batch.indices, batch["s"]):
                            np.testing.assert_array_equal(got, want[i : i + 3])
                        state = loader.state_dict()
                        break
                with penstock.DataLoader(v, 5, shuffle=True, seed=1, output="numpy") as loader:
                    loader.load_state_dict(state)
            file = os.path.join(self.base, "p.view.json")
            picked.save(file)
            other = os.path.join(self.base, "other.view.json")
            ds.derive(s="sqrt(f * f - i1)", t="f > 0").select([5, 0], fields=["s", "t"]).save(other)
            with penstock.DataLoader(file, 1, output="numpy") as loader:
                next(iter(loader))
                state = loader.state_dict()
            with self.assertRaises(penstock.Error), penstock.DataLoader(other, 1, output="numpy") as loader:
                loader.load_state_dict(state)
                next(iter(loader))
            penstock.preprocess(file, os.path.join(self.base, "out"))
            with penstock.open(os.path.join(self.base, "out")) as out:
                np.testing.assert_array_equal(out["s"][:], want[[5, 0]])
                self.assertEqual(out.fields["t"].dtype, "bool")

    def test_refused(self):
        """Python and the program refuse the same."""
        cases = {
            "nri + 1": 'column 1: there is no field "nri"; there are: .*\n  nri \\+ 1\n  \\^', "f +": "column 4: a value was expected",
            "1 + 2": "it names no field", "é + f": 'there is no field "é"', "foo(f)": "there is no function foo of formulas",
        }  # fmt: skip
        file = os.path.join(self.base, "bad.view.json")
        with penstock.open(self.path) as ds:
            for text, reason in cases.items():
                with self.subTest(text), self.assertRaisesRegex(penstock.Error, f'derive: "y": .*{reason}'):
                    ds.derive(y=text)
                with open(file, "w") as f:
                    json.dump(
                        {"penstock": "view", "version": 1, "derive": {"dataset": self.path}, "expressions": [{"name": "y", "expression": text}]}, f
                    )
                with self.subTest(text), self.assertRaisesRegex(penstock.Error, "derive"):
                    penstock.DataLoader(file, output="numpy").close()
            for options, text in (
                ({}, "no expressions"),
                ({"": "f"}, "the name of a field is ''"),
                ({"y": 3}, "it is an expression"),
                ({"f": "f + 1"}, 'two fields have the name "f"; choose another name'),
                ({"y": "wide + f"}, "cannot be broadcast"),
            ):
                with self.assertRaisesRegex((ValueError, TypeError), text):
                    (ds.zip(self.wide()) if "wide" in str(options) else ds).derive(**options)

    def wide(self):
        path = os.path.join(self.base, "wide")
        with penstock.Writer(path, [penstock.Field("wide", "float32", (5,))]) as w:
            w.extend({"wide": np.zeros(5, "f4")} for _ in range(N))
        ds = penstock.open(path)
        self.addCleanup(ds.close)
        return ds
