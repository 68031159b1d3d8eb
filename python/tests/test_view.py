"""Views: select, zip, concat, their files, and DataLoaders of them, against plain NumPy."""

import json
import os
import pickle
import random
import tempfile
import unittest
from unittest import mock

import numpy as np

import penstock

from . import data

PROGRAMS = int(os.environ.get("PENSTOCK_VIEWS", "60"))


class Model:
    """A dataset as lists: the records of each field, and whether these are ragged."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(next(iter(self.records.values())))


class TestView(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        for name, program in (("PENSTOCK_PREPROCESS", data.preprocess()), ("PENSTOCK_FEED", os.environ["PENSTOCK_TEST_FEED"])):
            patch = mock.patch.dict(os.environ, {name: program})
            patch.start()
            cls.addClassCleanup(patch.stop)
        cls.bases = []
        for k, n in enumerate((7, 23, 40)):
            rng = np.random.default_rng(k)
            fields = [penstock.Field("x", "float32", (3, 2)), penstock.Field("y", "int64"), penstock.Field("t", "int32", (2,), ragged=True)]
            records = {
                "x": list(rng.normal(size=(n, 3, 2)).astype(np.float32)),
                "y": list(rng.integers(0, 99, n)),
                "t": [rng.integers(0, 99, (rng.integers(0, 4), 2)).astype(np.int32) for _ in range(n)],
            }
            path = os.path.join(cls.folder.name, f"ds{k}")
            with penstock.Writer(path, fields, shard_size="1KiB" if k == 2 else "1GiB") as w:
                for i in range(n):
                    w.append({name: values[i] for name, values in records.items()})
            cls.bases.append((penstock.open(path), Model(records)))

    def random_view(self, r, depth):
        """Return a view of the fields x, y and t, and its model."""
        kind = r.choice(["base", *3 * ["select", "concat", "zip"], "filter"])
        if depth == 0 or kind == "base":
            return r.choice(self.bases)
        base, m = self.random_view(r, depth - 1)
        if kind == "concat":
            other, more = self.random_view(r, depth - 1)
            if r.random() < 0.5:
                return self.filled(r, base, m, other, more)
            return base.concat(other), Model({name: m.records[name] + more.records[name] for name in m.records})
        n = len(m)
        if kind == "filter":
            k = r.randrange(99)
            where = [i for i in range(n) if m.records["y"][i] < k or len(m.records["t"][i]) == 2]
            return base.filter(f"y < {k} or len(t) = 2"), Model({name: [values[i] for i in where] for name, values in m.records.items()})
        if kind == "zip":
            order = [r.randrange(n) for _ in range(n)] if n else []
            left, right = base.select(fields=["x"]), base.select(order, fields=["y", "t"], rename={"y": "z"})
            out = left.zip(right).select(rename={"z": "y"})
            return out, Model({"x": m.records["x"], "y": [m.records["y"][i] for i in order], "t": [m.records["t"][i] for i in order]})
        chosen = r.choice([
            lambda: slice(r.randrange(-n - 1, n + 1), r.randrange(-n - 1, n + 1), r.choice([None, 1, 2, -1])),
            lambda: [r.randrange(-n, n) for _ in range(r.randrange(9))] if n else [],
            lambda: np.array([r.random() < 0.5 for _ in range(n)], bool),
        ])()  # fmt: skip
        where = np.arange(n)[chosen] if not isinstance(chosen, list) else np.arange(n)[np.array(chosen, int)]
        return base.select(chosen), Model({name: [values[i] for i in where] for name, values in m.records.items()})

    def filled(self, r, base, m, other, more):
        """Return the concat of parts that lack fields of each other, in fields of any order, and its model."""
        lacks = dict(zip(r.sample("xyt", 2), r.sample([0, 1], 2)))  # a field, and the part that lacks it
        values = {"x": (0.5, np.full((3, 2), 0.5, np.float32)), "y": (-7, np.int64(-7)), "t": ([], np.zeros((0, 2), np.int32))}
        fields = [r.sample([name for name in "xyt" if lacks.get(name) != k], 3 - sum(part == k for part in lacks.values())) for k in (0, 1)]
        view = base.select(fields=fields[0]).concat(other.select(fields=fields[1]), fill={name: values[name][0] for name in lacks})
        records = [
            {name: [values[name][1]] * len(part) if lacks.get(name) == k else part.records[name] for name in m.records}
            for k, part in enumerate((m, more))
        ]
        return view.select(fields=["x", "y", "t"]), Model({name: records[0][name] + records[1][name] for name in m.records})

    def compare(self, batch, m, records):
        for name, want in m.records.items():
            got = batch[name]
            self.assertEqual(len(got), len(records))
            for i, k in enumerate(records):
                np.testing.assert_array_equal(got[i], want[k])

    def test_random_views(self):
        for seed in range(PROGRAMS):
            with self.subTest(seed=seed):
                r = random.Random(seed)
                v, m = self.random_view(r, 1 + r.randrange(4))
                self.check(r, v, m)
                if isinstance(v, penstock.View):
                    path = os.path.join(self.folder.name, *["sub"] * (seed % 2), f"{seed}.view.json")
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    v.save(path)
                    with penstock.open(path) as again:
                        self.check(r, again, m)
                    self.check(r, pickle.loads(pickle.dumps(v)), m)

    def check(self, r, v, m):
        n = len(m)
        self.assertEqual(len(v), n)
        a, b = sorted((r.randrange(n + 1), r.randrange(n + 1)))
        self.compare(v[a:b], m, range(a, b))
        some = [r.randrange(n) for _ in range(r.randrange(6))] if n else []
        self.compare(v[some], m, some)
        for i in some[:2]:
            record = v[i]
            for name in m.records:
                np.testing.assert_array_equal(record[name], m.records[name][i])
        if n:
            x = np.array(m.records["x"])
            for key in (np.s_[:, 1], np.s_[..., 0], np.s_[::2, 0, :], np.s_[[0, n - 1], [1, 2]], -1, np.s_[::-1]):
                np.testing.assert_array_equal(v["x"][key], x[key])
            np.testing.assert_array_equal(v["x"].numpy(), x)
            np.testing.assert_array_equal(v["t"].lengths, [len(t) for t in m.records["t"]])

    def test_a_file_is_a_dataset(self):
        ds, m = self.bases[1]
        path = os.path.join(self.folder.name, "some.view.json")
        ds.select(slice(3, 20)).select([5, 1, 1], rename={"y": "z"}).save(path)
        with open(path) as f:
            node = json.load(f)
        self.assertEqual(node["select"]["select"]["dataset"], "ds1")
        self.assertEqual(node["select"]["ranges"], [[3, 20]])
        self.assertEqual(node["records"], [5, 1, 1])
        with penstock.DataLoader(path, 3, output="numpy") as loader:
            batch = next(iter(loader))
            np.testing.assert_array_equal(batch["z"], [m.records["y"][i] for i in (8, 4, 4)])
            state = loader.state_dict()
        ds.select(slice(3, 20)).select([5, 1, 2], rename={"y": "z"}).save(path)
        with penstock.DataLoader(path, 3, output="numpy") as loader, self.assertRaisesRegex(penstock.Error, "dataset"):
            loader.load_state_dict(state)

    def test_filters_resume_as_numbers(self):
        """A loader of some records resumes on these, however they were chosen, in each rank."""
        ds, m = self.bases[2]
        path = os.path.join(self.folder.name, "some.view.json")
        view = ds.filter("y between 20 and 80 and not sample(0.1, 3)")
        view.save(path)
        numbers = [int(i) for i in view._kind._rows]
        self.assertEqual({m.records["y"][i] for i in numbers} - set(range(20, 81)), set())
        for rank in range(2):
            options = {"batch_size": 3, "shuffle": True, "rank": rank, "world_size": 2, "output": "numpy", "seed": 5}
            with penstock.DataLoader(path, **options) as loader:
                batches = iter(loader)
                next(batches)
                state = loader.state_dict()
                want = [batch.indices.tolist() for batch in batches]
            with penstock.DataLoader(ds.select(numbers), **options) as loader:
                loader.load_state_dict(state)
                self.assertEqual([batch.indices.tolist() for batch in loader], want)
            with penstock.DataLoader(ds.select(numbers[1:]), **options) as loader, self.assertRaisesRegex(penstock.Error, "dataset"):
                loader.load_state_dict(state)

    def test_joins(self):
        """A join has the values of both sides, resumes, and is a file."""
        ds, m = self.bases[2]
        keys, order = np.arange(len(m)), np.random.default_rng(3).permutation(len(m))[:25]
        left = ds.zip(self.column("k", keys))
        table = {"k": order, "z": order * 3, "note": [f"n{i}" for i in order]}
        for how, fill in (("inner", None), ("left", {"z": -1, "note": "none"})):
            view = left.join(table, on="k", how=how, fill=fill)
            kept = [i for i in keys if how == "left" or i in order]
            want = {
                "y": [m.records["y"][i] for i in kept],
                "z": [i * 3 if i in order else -1 for i in kept],
                "note": [f"n{i}" if i in order else "none" for i in kept],
            }
            path = os.path.join(self.folder.name, f"{how}.view.json")
            view.save(path)
            with penstock.open(path) as again:
                for v in (view, again, pickle.loads(pickle.dumps(view))):
                    self.assertEqual(v["y"].numpy().tolist(), want["y"])
                    self.assertEqual(v["z"].numpy().tolist(), want["z"])
                    self.assertEqual(list(v["note"][:]), want["note"])
                    self.assertEqual(v[3]["note"], want["note"][3])
                    self.assertEqual(sorted(set(keys) - set(order)), v.unmatched[0].tolist())
            for rank in range(2):
                options = {"batch_size": 4, "shuffle": True, "rank": rank, "world_size": 2, "output": "numpy"}
                with penstock.DataLoader(path, **options) as loader, penstock.DataLoader(view, **options) as other:
                    batches = iter(loader)
                    next(batches)
                    other.load_state_dict(loader.state_dict())
                    for batch, same in zip(batches, other):
                        self.assertEqual(batch["z"].tolist(), [want["z"][i] for i in batch.indices])
                        self.assertEqual(same["z"].tolist(), batch["z"].tolist())
        with self.assertRaisesRegex(penstock.Error, "records 0 and 1 of the right side have the same k, 2"):
            left.join({"k": [2, 2], "z": [1, 2]}, on="k")
        with self.assertRaisesRegex(TypeError, "join with a list"):
            left.join([1, 2], on="k")
        for values, message in (
            (np.ma.masked_array([1, 2], [0, 1]), "'z' is a masked array"),
            ([2**53 + 1, 0.5], "'z': 9007199254740993 would be 9007199254740992.0"),
            (["a", 1], "join: the table: record 1: field 'z': 1 is not text"),
        ):
            with self.assertRaisesRegex((TypeError, penstock.Error), message):
                left.join({"k": [1, 2], "z": values}, on="k")

    def column(self, name, values):
        path = os.path.join(self.folder.name, name)
        with penstock.Writer(path) as w:
            w.extend({name: v} for v in values)
        return penstock.open(path)

    def test_filters_are_refused(self):
        ds, _ = self.bases[0]
        for where, message in (
            ("y = ", r"filter: column 5: a value was expected, not the end\n  y = \n      \^"),
            ("z = 1", 'there is no field "z"; known are x, y, t'),
            ("t[3, 0] = 1", "record 0: index 3 of [0-3] rows of t"),
            ("", "the expression is empty"),
        ):
            with self.subTest(where), self.assertRaisesRegex(penstock.Error, message):
                ds.filter(where)
        with self.assertRaisesRegex(TypeError, "the expression is a str"):
            ds.filter(lambda record: True)

    def test_an_expression_of_any_length(self):
        ds, m = self.bases[0]
        wanted = [*range(2_000_000, 2_040_000), m.records["y"][3]]
        view = ds.filter(f"y in ({', '.join(map(str, wanted))})")
        self.assertEqual(set(view["y"].numpy()), {m.records["y"][3]})
        with self.assertRaisesRegex(penstock.Error, "column 5: "):
            ds.filter("y = \0")

    def test_values_of_fill(self):
        left = self.column("kf", np.arange(4)).select(rename={"kf": "k"})
        table = {"k": [1], "i": np.array([5]), "u": np.array([5], np.uint64), "f": np.array([5], np.float32), "h": np.array([5], np.float16)}
        fill = {"i": np.int64(2**53 + 1), "u": 2**64 - 1, "f": np.float32("nan"), "h": -np.inf}
        path = os.path.join(self.folder.name, "filled.view.json")
        view = left.join(table, on="k", how="left", fill=fill)
        view.save(path)
        with penstock.open(path) as again, penstock.DataLoader(path, 4, output="numpy") as loader:
            for batch in (view[0:4], again[0:4], next(iter(loader))):
                for name, value in fill.items():
                    np.testing.assert_array_equal(batch[name], np.array([value, 5, value, value], table[name].dtype))
        for value, error in ((None, "null is not a value"), (2**63, "9223372036854775808 is not a number that int64 holds")):
            with self.assertRaisesRegex(penstock.Error, error):
                left.join(table, on="k", how="left", fill={**fill, "i": value})
        for error, message, values in (
            (penstock.Error, "field 'i': nan is for fields of floats", {**fill, "i": np.nan}),
            (penstock.Error, "16777217 is not a number that float32 holds", {**fill, "f": 2**24 + 1}),
            (penstock.Error, "18446744073709551616 is beyond the numbers of 64 bits", {**fill, "f": 2**64}),
            (penstock.Error, "characters that UTF-8 has not", {**fill, "i": "\ud800"}),
            (TypeError, "field 'i': b'x' is not a value; give a number", {**fill, "i": b"x"}),
            (TypeError, "fill is 7; it is a dict of values by field", 7),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                left.join(table, on="k", how="left", fill=values)

    def test_many_numbers_are_in_a_file(self):
        ds, m = self.bases[2]
        order = np.random.default_rng(5).integers(0, len(m), 70_000)
        path = os.path.join(self.folder.name, "many.view.json")
        ds.select(order).save(path)
        self.assertLess(os.path.getsize(path), 1000)
        with penstock.open(path) as v:
            np.testing.assert_array_equal(v["y"].numpy(), np.array(m.records["y"])[order])
        with penstock.DataLoader(path, 10_000, output="numpy") as loader:
            np.testing.assert_array_equal(next(iter(loader))["y"], np.array(m.records["y"])[order[:10_000]])

    def test_slices_are_views(self):
        ds, _ = self.bases[1]
        v = ds.select(slice(4, 20)).concat(ds)
        self.assertFalse(v["x"][2:9].flags.owndata)
        self.assertFalse(v["x"][2:9].flags.writeable)

    def test_concat_of_other_classes(self):
        parts = []
        for k, (dtype, classes) in enumerate((("int64", ("a", "b")), ("int64", ("b", "a")), ("int8", ("a", "b")))):
            path = os.path.join(self.folder.name, f"classes{k}")
            with penstock.Writer(path, [penstock.Field("c", dtype, classes=classes)]) as w:
                w.append({"c": "a"})
            parts.append(penstock.open(path))
        for part, message in (
            (parts[1], "field 'c' has the classes 'b', 'a', and in the first part 'a', 'b', so that a number is not the same class"),
            (parts[2], "field 'c' has dtype 'int8', and in the first part dtype 'int64'; preprocess both alike"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                parts[0].concat(part)

    def test_refused(self):
        ds, other = self.bases[0][0], self.bases[1][0]
        path = os.path.join(self.folder.name, "bad.view.json")
        for error, message, make in (
            (IndexError, "record 7 is out of range: there are 7", lambda: ds.select([7])),
            (KeyError, "no field 'z'", lambda: ds.select(fields=["z"])),
            (KeyError, "rename has the field 'z'", lambda: ds.select(rename={"z": "q"})),
            (ValueError, "part 1 has 23 records, and the first one has 7", lambda: ds.zip(other)),
            (ValueError, "two fields have the name 'x'", lambda: ds.zip(ds)),
            (ValueError, "choose some: ds.select", lambda: ds.concat(other.select(fields=["x"]))),
            (penstock.Error, 'source 1 has no field "y"', lambda: ds.concat(other.select(fields=["x", "t"]), fill={})),
            (penstock.Error, "0.5 is not a number that int64", lambda: ds.concat(other.select(fields=["x", "t"]), fill={"y": 0.5})),
            (penstock.Error, 'no source lacks a field "x"', lambda: ds.concat(other, fill={"x": 0})),
            (TypeError, "is not a value; give a number", lambda: ds.concat(other.select(fields=["x", "t"]), fill={"y": object()})),
            (TypeError, "is not a dataset", lambda: ds.concat("ds1")),
            (ValueError, "ends with .view.json", lambda: ds.select([1]).save("x.json")),
            (penstock.NotFoundError, "no such file", lambda: penstock.open(path)),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                make()
        for text, message in (
            ("[]", "the root cannot be of type array"),
            ('{"penstock": "view", "version": 9}', "version 9"),
            ('{"penstock": "view", "version": 1}', "not 0"),
            ('{"penstock": "view", "version": 1, "dataset": "ds0", "ranges": [[0, 1]]}', '"ranges" belongs to select, and not to dataset'),
            ('{"penstock": "view", "version": 1, "dataset": "ds0", "id": "00"}', "had '00'"),
            ('{"penstock": "view", "version": 1, "select": {"dataset": "ds0"}, "ranges": [[0, 8]]}', "do not exist"),
            ('{"penstock": "view", "version": 1, "select": {"dataset": "ds0"}, "records": [-1, 9]}', "record -1 is out of range"),
            ('{"penstock": "view", "version": 1, "dataset": "bad.view.json"}', "more than 8 views"),
        ):
            with open(path, "w") as f:
                f.write(text)
            with self.subTest(text), self.assertRaisesRegex(penstock.Error, message):
                penstock.open(path)


class TestWindows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        TestView.setUpClass.__func__(cls)

    def test_random_windows(self):
        """Windows of a field and of another one, against NumPy's pad and plain indexing."""
        rng = np.random.default_rng(7)
        path = os.path.join(self.folder.name, "grid")
        data = {"a": rng.normal(size=(17, 5, 6)).astype(np.float32), "g": np.sort(rng.integers(0, 3, 17))}
        with penstock.Writer(path, [penstock.Field("a", "float32", (5, 6)), penstock.Field("g", "int64")]) as w:
            for i in range(17):
                w.append({name: values[i] for name, values in data.items()})
        ds = penstock.open(path)
        found = 0
        for seed in range(PROGRAMS):
            r = random.Random(seed)
            axes = [k for k in range(3) if k == 0 or r.random() < 0.6]
            sizes = {k: r.randrange(1, 5) for k in axes}
            stride = {k: r.randrange(1, 4) for k in axes}
            pad = {k: r.choice(["constant", "edge", "reflect", "wrap"]) for k in axes if r.random() < 0.3}
            fill = {"fill": 7} if "constant" in pad.values() else {}
            lead = {k: r.randrange(-3, 4) for k in axes if r.random() < 0.5}
            outputs = {"x": {"of": "a"}, "y": {"of": "a", "lead": lead, "sizes": {0: 2}}}
            group = r.choice([None, None, "g", data["g"]])
            with self.subTest(seed=seed):
                try:
                    v = ds.windows(sizes, stride=stride, pad=pad, **fill, outputs=outputs, group=group)
                except penstock.Error as e:
                    self.assertRegex(str(e), "no window fits")
                    continue
                found += 1
                saved = os.path.join(self.folder.name, f"w{seed}.view.json")
                v.save(saved)
                origins = v.origins(np.arange(len(v)))
                self.assertEqual(len(origins), len(v))
                want = {}
                for name, out in outputs.items():
                    size = {**sizes, **out.get("sizes", {})}
                    want[name] = [window(data, axes, size, out.get("lead", {}), pad, o, group is not None) for o in origins]
                for name in outputs:
                    np.testing.assert_array_equal(v[name].numpy(), np.stack(want[name]))
                    np.testing.assert_array_equal(v[name].take(np.arange(len(v))[::-1]), np.stack(want[name])[::-1])
                if seed % 4 == 0:
                    with penstock.DataLoader(saved, 7, shuffle=True, output="numpy") as loader:
                        for batch in loader:
                            for name in outputs:
                                np.testing.assert_array_equal(batch[name], np.stack(want[name])[batch.indices])
        self.assertGreater(found, PROGRAMS // 2)

    def test_windows_in_order_are_views(self):
        ds, m = self.bases[1]
        v = ds.select(fields=["x", "y"]).windows({0: 5})
        self.assertEqual((len(v), v.axes, v["x"].shape), (19, ["0"], (19, 5, 3, 2)))
        np.testing.assert_array_equal(v["x"][4:9], np.stack([np.array(m.records["x"])[i : i + 5] for i in range(4, 9)]))
        self.assertFalse(v["x"][4:9].flags.owndata)
        self.assertFalse(v["x"][4:9].flags.writeable)

    def test_an_array_file(self):
        path = os.path.join(self.folder.name, "field.npy")
        a = np.random.default_rng(1).normal(size=(30, 8, 9)).astype(np.float32)
        np.save(path, a)
        view = os.path.join(self.folder.name, "field.view.json")
        with open(view, "w") as f:
            json.dump({"penstock": "view", "version": 1, "window": {"dataset": "field.npy"}, "by": {"sizes": {"0": 4, "1": 3}}}, f)
        with penstock.DataLoader(view, 16, output="numpy", shuffle=True) as loader:
            seen = 0
            for batch in loader:
                for record, got in zip(batch.indices.tolist(), batch["field"]):
                    t, y = divmod(record, 6)
                    np.testing.assert_array_equal(got, a[t : t + 4, y : y + 3])
                    seen += 1
            self.assertEqual(seen, 27 * 6)


def window(data, axes, size, lead, pad, origin, grouped):
    """Return a window of the array a in the plainest form."""
    a, index, missing = data["a"], [], []
    for k in range(3):
        n = a.shape[k]
        if k not in axes:
            index.append(np.arange(n))
            missing.append(np.zeros(n, bool))
            continue
        lo, hi = 0, n
        if k == 0 and grouped:
            same = np.flatnonzero(data["g"] == data["g"][origin[0]])
            lo, hi = same[0], same[-1] + 1
        i = origin[axes.index(k)] + lead.get(k, 0) + np.arange(size[k])
        outside = (i < lo) | (i >= hi)
        if pad.get(k) == "wrap":
            i = lo + (i - lo) % (hi - lo)
        elif pad.get(k) == "edge":
            i = np.clip(i, lo, hi - 1)
        elif pad.get(k) == "reflect":
            far = np.pad(np.arange(lo, hi), 40, mode="reflect")
            i = far[i - lo + 40]
        missing.append(outside if pad.get(k) == "constant" else np.zeros(len(i), bool))
        index.append(np.clip(i, 0, n - 1))
    out = a[np.ix_(*index)].copy()
    for k in range(3):
        out[(*[slice(None)] * k, missing[k])] = 7
    return out
