"""Columns that are added, set, dropped and renamed, and the generations that this makes."""

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import unittest

import numpy as np

import penstock
from penstock import Field
from penstock._read import generations

from . import data

setUpModule = data.name_programs


def total(record):
    return record["images"].sum(dtype=np.int64)


def unlucky(record):
    if record["labels"] == 2:
        raise ValueError("no such class")
    return 1.5


def process(record):
    return str(os.getpid())


def processes(batch):
    return [str(os.getpid())] * len(batch["labels"])


class ChangingTest(data.Copied):
    def setUp(self):
        self.path = self.copy("images")

    def test_values_of_all_kinds(self):
        ds = penstock.open(self.path)
        n, want = len(ds), [total(r) for r in ds]
        files = {name: os.stat(os.path.join(self.path, name)).st_ino for name in os.listdir(self.path) if name.endswith(".npy")}
        for name, values, options in (
            ("array", np.array(want), {}),
            ("list", [int(x) for x in want], {}),
            ("iterator", iter(want), {}),
            ("batches", (np.array(want[i : i + 100]) for i in range(0, n, 100)), {"batched": True}),
            ("function", total, {}),
            ("workers", total, {"workers": 2}),
            ("batched", lambda b: b["images"].reshape(len(b["images"]), -1).sum(axis=1, dtype=np.int64), {"batched": True, "batch_size": 64}),
        ):
            ds = ds.add_column(name, values, **options)
            np.testing.assert_array_equal(ds[name][:], want, name)
            self.assertEqual(ds.fields[name].dtype, "int64")
        ds = ds.add_column("caption", (f"record {i}" for i in range(n)))
        ds = ds.add_column("tokens", [[i] * (i % 3 + 1) for i in range(n)])
        self.assertEqual((ds[4]["caption"], ds[4]["tokens"].tolist()), ("record 4", [4, 4]))
        self.assertEqual(ds.generation, 10)
        self.assertGreater(ds.verify(), 0)
        for name, inode in files.items():
            self.assertEqual(os.stat(os.path.join(self.path, name)).st_ino, inode, name)
        self.assertEqual([f for f in os.listdir(os.path.dirname(self.path)) if f.startswith(".")], [])

    def test_texts_by_workers(self):
        ds = penstock.open(self.path)
        for options in ({}, {"batched": True, "batch_size": 64}):
            made = penstock.open(self.path).add_column("pid", process if not options else processes, workers=2, **options)
            pids = {made[i]["pid"] for i in range(len(ds))}
            self.assertTrue(pids and str(os.getpid()) not in pids, pids)
            made.drop_columns("pid")

    def test_functions_get_the_records_of_the_dataset(self):
        for name in ("types", "ragged", "images"):
            ds, got = penstock.open(self.copy(name)), []
            ds.add_column("seen", lambda r, got=got: got.append(r) or 1)
            self.assertEqual(len(got[1:]), len(ds))  # the first is also that which says the type
            for i, record in enumerate(got[1:]):
                want = ds[i]
                self.assertEqual(list(record), list(want))
                for field, value in want.items():
                    self.assertIs(type(record[field]), type(value), field)
                    self.assertEqual(*(v if isinstance(v, str) else (v.dtype, v.shape, v.tobytes()) for v in (record[field], value)), field)

    def test_a_field_that_set_column_would_not_keep(self):
        ds = penstock.open(self.path)
        values, classes = ds["labels"][:], ds.fields["labels"].classes
        for given in (
            Field("labels", "int64"),
            Field("labels", "int64", classes=("x", "y", "z")),
            Field("labels", "uint8", classes=classes),
        ):
            with self.subTest(field=given), self.assertRaisesRegex(penstock.Error, "which set_column keeps, .*drop the column and add it"):
                ds.set_column("labels", values, field=given)
        more = ds.set_column("labels", values, field=Field("labels", "int64", classes=(*classes, "new")))
        self.assertEqual(more.fields["labels"].classes, (*classes, "new"))
        plain = more.set_column("labels", values.astype("float32"), field=Field("labels", "float32"))
        self.assertEqual((plain.fields["labels"].dtype, plain.fields["labels"].classes), ("float32", ()))

    def test_set_column_keeps_the_type(self):
        ds = penstock.open(self.path)
        n = len(ds)
        ds = ds.add_column("byte", np.zeros(n, np.uint8)).add_column("real", np.zeros(n, np.float32))
        for name, value, text in (
            ("byte", 300, "record 1: 300 does not fit uint8"),
            ("byte", -1, "record 1: -1 does not fit uint8"),
            ("byte", 0.5, "'byte' is uint8, and the values are float64; give values of its type, or field=penstock.Field.'byte', 'float64'"),
            ("labels", float("nan"), "'labels' is a class of 3, and the values are float64"),
            ("byte", "text", "'byte' is uint8, and the values are text"),
            ("labels", "nothing", '"nothing" is not a class'),
            ("real", 1e300, "record 1: 1e.300 does not fit float32"),
            ("byte", [1, 2], "'byte' is uint8, and the values are int64 of different lengths"),
        ):
            first = value if isinstance(value, str) else type(value)() if not isinstance(value, list) else value
            if value == "nothing":
                first = "cat"
            values = [first, value, *[first] * (n - 2)]
            with self.subTest(name=name, value=value), self.assertRaisesRegex((penstock.Error, ValueError, OverflowError), text):
                ds.set_column(name, values if isinstance(value, (str, list)) else np.array(values))
        with self.assertRaisesRegex(penstock.Error, "record 1: .*float"):
            ds.set_column("byte", [1, 0.5, *[1] * (n - 2)])
        for name, value in (("byte", 255), ("real", 0.5), ("real", 3), ("labels", 1)):
            for values in (np.full(n, value), [value] * n):
                made = ds.set_column(name, values)
                self.assertEqual(made.fields[name], ds.fields[name])
                np.testing.assert_array_equal(made[name][:], np.full(n, value))

    def test_only_the_newest_generation_changes(self):
        n = len(penstock.open(self.path))
        penstock.open(self.path).add_column("byte", np.zeros(n, np.uint8))
        for change in (
            lambda ds: ds.add_column("more", np.zeros(n)),
            lambda ds: ds.set_column("labels", ds["labels"][:]),
            lambda ds: ds.drop_columns("labels"),
            lambda ds: ds.rename_column("labels", "kind"),
            lambda ds: ds.delete([1]),
            lambda ds: ds.restore_records(),
        ):
            with self.assertRaisesRegex(penstock.Error, "@1: only the newest generation can be changed; .* run: penstock restore .*@1"):
                change(penstock.open(f"{self.path}@1"))

    def test_a_series_is_taken_by_position(self):
        class Series(dict):
            """Values by label, as pandas has them, in an order of their own."""

            iloc = None

            def to_numpy(self):
                return np.array(list(self.values()), object)

        n = len(penstock.open(self.path))
        made = penstock.open(self.path).add_column("text", Series((i, str(i)) for i in reversed(range(n))))
        self.assertEqual([r["text"] for r in made], [str(i) for i in reversed(range(n))])

    def test_set_drop_rename_restore(self):
        first = penstock.open(self.path)
        set_ = first.set_column("labels", np.zeros(len(first), np.int64))
        self.assertEqual((set_.fields["labels"].classes, set(set_["labels"][:])), (first.fields["labels"].classes, {0}))
        renamed = set_.rename_column("labels", "species")
        dropped = renamed.drop_columns("species")
        self.assertNotIn("species", dropped.fields)
        renamed.tag("named")
        back = first.restore()
        self.assertEqual((back.generation, back.id), (5, first.id))
        np.testing.assert_array_equal(back["labels"][:], first["labels"][:])
        self.assertEqual([e.get("change", {}).get("operation") for e in back.log()], ["restore", "drop column", "rename column", "set column", None])
        self.assertIn("species", penstock.open(f"{self.path}@named").fields)
        self.assertEqual(penstock.open(self.path, generation=4).id, dropped.id)
        for wrong, error, text in (
            ({"generation": 9}, penstock.Error, "keeps no generation 9; it has 1 to 5"),
            ({"generation": "best"}, penstock.Error, "has no tag 'best'; it has named"),
            ({"generation": 0}, ValueError, "the first one is 1"),
            ({"generation": 1.5}, TypeError, "the number of a generation, or a tag"),
        ):
            with self.assertRaisesRegex(error, text):
                penstock.open(self.path, **wrong)

    def test_a_reader_keeps_its_generation(self):
        ds = penstock.open(self.path)
        copy = pickle.dumps(ds)
        ds.drop_columns("labels")
        self.assertEqual(pickle.loads(copy).generation, 1)
        self.assertEqual(next(iter(penstock.DataLoader(ds, 8, output="numpy"))).keys(), ("images", "labels"))
        held = penstock.open(self.path, generation=1)
        prune = [data.penstock(), "prune", "--json", self.path]
        self.assertEqual(json.loads(subprocess.run(prune, check=True, stdout=subprocess.PIPE).stdout)["in_use"], [1])
        self.assertEqual(len(held[0]["images"]), len(ds[0]["images"]))
        del held, ds, copy
        self.assertEqual(json.loads(subprocess.run(prune, check=True, stdout=subprocess.PIPE).stdout)["generations"], [1])

    def test_states_of_other_generations(self):
        def loader(path, fields):
            return penstock.DataLoader(path, 16, shuffle=True, seed=1, fields=fields, output="numpy")

        first = loader(self.path, ["labels"])
        batches = iter(first)
        next(batches)
        state, want = first.state_dict(), next(batches)[0]
        ds = penstock.open(self.path)
        ds.add_column("score", np.arange(len(ds))).set_column("score", np.zeros(len(ds), np.int8))
        again = loader(self.path, ["labels"])
        again.load_state_dict(state)
        np.testing.assert_array_equal(next(iter(again))[0], want)
        scores = loader(f"{self.path}@2", ["score"]).state_dict()
        with self.assertRaisesRegex(penstock.Error, "it is of generation 2, whose records or fields differ from those of generation 3; open .*@2"):
            loader(self.path, ["score"]).load_state_dict(scores)

    def test_records_are_deleted_and_restored(self):
        first = penstock.open(self.path)
        first.add_column("number", np.arange(len(first)))
        ds = penstock.open(self.path).delete("number < 10 or labels = 1 and number > 50")
        kept = [i for i in range(len(first)) if i >= 10 and (first["labels"][i] != 1 or i <= 50)]
        self.assertEqual((len(ds), ds.generation, ds.stored.tolist()), (len(kept), 3, kept))
        np.testing.assert_array_equal(ds["number"][:], kept)
        np.testing.assert_array_equal(ds["images"][:], first["images"][kept])
        self.assertEqual(ds[4]["number"], kept[4])
        for shuffle in (False, True):
            batches = penstock.DataLoader(ds, 16, shuffle=shuffle, fields=["number"], output="numpy")
            self.assertEqual(sorted(np.concatenate([b[0] for b in batches]).tolist()), kept)
        self.assertEqual(pickle.loads(pickle.dumps(ds)).stored.tolist(), kept)
        for name, ranges in ds.splits.items():
            numbers = [i for a, b in ranges for i in range(a, b)]
            np.testing.assert_array_equal(penstock.open(self.path, split=name)["number"][:], ds["number"][:][numbers])
        self.assertGreater(ds.verify(), 0)
        self.assertEqual(len(ds.filter("number < 20")), sum(i < 20 for i in kept))
        scored = ds.add_column("score", np.array(kept) * 2)
        np.testing.assert_array_equal(scored["score"][:], np.array(kept) * 2)
        with self.assertRaisesRegex(
            penstock.Error, "have no values in columns ..score.., .*stored at 0, .* more; restore others, drop these columns first"
        ):
            scored.restore_records()
        numbered = scored.drop_columns("score").set_column("number", np.array(kept) * 3)
        np.testing.assert_array_equal(numbered.restore_records()["number"][:], [i * 3 if i in kept else i for i in range(len(first))])
        some = penstock.open(self.path, generation=scored.generation - 1).restore().restore_records("number < 5")
        self.assertEqual(some.stored.tolist(), [*range(5), *kept])
        self.assertEqual(some.log()[0]["change"]["records"], 5)
        self.assertEqual(some.restore_records().id, penstock.open(self.path, generation=2).id)
        for wrong, error, text in (
            ("number < 0", penstock.Error, "no record of it is to be deleted"),
            ("number >= 0", penstock.Error, "all records"),
            ("nothing = 1", penstock.Error, "column 1: there is no field"),
            (" ", TypeError, "a condition as text"),
            (3, TypeError, "numbers of records such as .3, 7., .* and not 3"),
        ):
            with self.assertRaisesRegex(error, text):
                some.delete(wrong)

    def test_a_missing_generation_is_said_with_the_ranges_of_the_others(self):
        for kept, text in (([1], "1"), ([1, 2], "1, 2"), ([1, 3, 4, 5, 7, 8], "1, 3 to 5, 7, 8"), ([1, 2, 3], "1 to 3")):
            self.assertTrue(str(generations.missing("ds", 99, kept)).endswith(f"ds: it keeps no generation 99; it has {text}"))

    def test_records_are_deleted_by_number(self):
        first = penstock.open(self.path)
        n = len(first)
        ds = first.delete([3, 7])
        kept = [i for i in range(n) if i not in (3, 7)]
        self.assertEqual((ds.stored.tolist(), ds.log()[0]["change"]["records"]), (kept, 2))
        self.assertIn("--records 3,7", ds.log()[0]["change"]["by"])
        self.assertEqual(ds.delete(np.array([3, 0], np.uint8)).stored.tolist(), kept[1:3] + kept[4:])
        self.assertEqual(ds.delete(range(2, n - 2)).stored.tolist(), [1], "of the generation that it is called on")
        back = penstock.open(self.path).restore_records()
        self.assertEqual(back.delete(back.stored % 2 == 1).stored.tolist(), list(range(0, n, 2)))
        back = penstock.open(self.path).restore_records()
        before = back.generation
        wrongs = (
            ([0, n], IndexError, f"record {n}: the dataset has {n} records, numbered from 0 to {n - 1}"),
            ([-1], IndexError, "record -1"),
            ([4, 4], penstock.Error, "record 4 is given twice"),
            ([], ValueError, "no record is chosen"),
            ([1.0], TypeError, "not .1.0"),
            ([True], TypeError, "a bool for each"),
            ([[1]], TypeError, "numbers of records"),
            (None, TypeError, "not None"),
            (range(n), penstock.Error, "all records"),
            ({"a": 1}, TypeError, "numbers of records"),
            (np.zeros(n, bool), ValueError, "no record"),
            ([2**63], IndexError, f"record {2**63}"),
        )
        for wrong, error, text in wrongs:
            with self.subTest(f"{wrong!r:.40}"), self.assertRaisesRegex(error, text):
                back.delete(wrong)
        back.split = "train"
        with self.assertRaisesRegex(penstock.Error, "open the dataset without split"):
            back.delete([0])
        self.assertEqual(penstock.open(self.path).generation, before)

    def test_deleted_records_are_restored_by_number(self):
        first = penstock.open(self.path)
        n = len(first)
        first.delete(range(5))
        some = penstock.open(self.path, generation=1).restore_records([3, 1])
        self.assertEqual((some.stored.tolist(), some.log()[0]["change"]["records"]), ([1, 3, *range(5, n)], 2))
        self.assertIn("--deleted", some.log()[0]["change"]["by"])
        mask = np.arange(n) < 2  # also of a record that is not deleted
        self.assertEqual(first.restore_records(mask).stored.tolist(), [0, 1, 3, *range(5, n)])
        newest = first.restore_records([2])
        before = newest.generation
        for ds, wrong, error, text in (
            (newest, [0], penstock.Error, "none of these records is deleted"),
            (first, [n], IndexError, f"record {n}"),
            (first, [4, 4], penstock.Error, "given twice"),
            (first, 4, TypeError, "restore_records takes a condition"),
            (first, [], ValueError, "no record is chosen"),
            (first, " ", TypeError, "condition as text"),
        ):
            with self.subTest(f"{wrong!r}"), self.assertRaisesRegex(error, text):
                ds.restore_records(wrong)
        self.assertEqual(penstock.open(self.path).generation, before)
        self.assertEqual(newest.restore_records("true").id, first.id)

    def test_numpy_reads_what_is_left(self):
        penstock.open(self.path).add_column("number", np.arange(len(penstock.open(self.path)))).delete("number < 9")
        with open(os.path.join(data.HERE, "..", "..", "docs", "format.md")) as f:
            lines = next(part for part in f.read().split("```") if part.startswith("python\nimport base64"))
        names = {}
        exec(lines.removeprefix("python").replace('"ds/', f'"{self.path}/'), names)
        self.assertEqual(names["left"][:2].tolist(), [9, 10])

    def test_two_calls_of_one_column(self):
        ds, inner = penstock.open(self.path), []

        def texts():
            yield "a"  # the type is inferred from it
            with self.assertRaisesRegex(penstock.Error, "another call writes the column 'caption'"):
                penstock.open(self.path).add_column("caption", ["b"] * len(ds))
            inner.append(True)
            yield from ("a" for _ in range(len(ds) - 1))

        self.assertEqual(ds.add_column("caption", texts())[7]["caption"], "a")
        self.assertTrue(inner)
        self.assertEqual([f for f in os.listdir(os.path.dirname(self.path)) if f.startswith(".")], [])

    def test_errors(self):
        ds = penstock.open(self.path)
        bad = ds["labels"][:].tolist().index(2)
        for name, values, options, error, text in (
            ("labels", np.zeros(len(ds)), {}, penstock.Error, "has a column .labels. already"),
            ("x", [1, 2], {}, penstock.Error, f"there are 2 values, and the dataset has {len(ds)} records"),
            ("x", iter([1, 2]), {}, penstock.Error, f"there are 2 values, and the dataset has {len(ds)} records"),
            ("x", unlucky, {}, penstock.Error, f"record {bad}: ValueError: no such class"),
            ("x", unlucky, {"workers": 2}, penstock.Error, f"record {bad}: ValueError: no such class"),
            ("x", [1] * len(ds), {"workers": 2}, ValueError, "give one as values"),
            ("x", np.zeros(len(ds)), {"batched": True}, ValueError, "an array has all values"),
            ("x", 5, {}, TypeError, "it must be an array"),
            ("x", np.array(3), {}, TypeError, "it must be an array"),
            ("x", dict.fromkeys(range(len(ds)), 1), {}, TypeError, "it must be an array"),
            ("x", "a" * len(ds), {}, TypeError, "it must be an array"),
            ("x", lambda r: str(unlucky(r)), {}, penstock.Error, f"^{self.path}: column 'x': record {bad}: ValueError: no such class"),
            ("x", lambda r: str(unlucky(r)), {"workers": 2}, penstock.Error, f"record {bad}: ValueError: no such class"),
            ("x", ["a"] * 7 + [1] * (len(ds) - 7), {}, penstock.Error, f"^{self.path}: column 'x': record 7: .*1 is not text"),
            ("x", itertools.repeat("a"), {}, penstock.Error, f"there are more than {len(ds)} values"),
            ("x", iter("ab"), {}, penstock.Error, f"^{self.path}: there are 2 values, and the dataset has {len(ds)} records"),
            ("x", np.zeros(len(ds)), {"field": penstock.Field("y", "float64")}, ValueError, "give them one name"),
            ("a//b", np.zeros(len(ds)), {}, penstock.Error, "a name is"),
            ("", np.zeros(len(ds)), {}, TypeError, "it must be a str that is not empty"),
            ("x", np.zeros(len(ds)), {"field": "float32"}, TypeError, "it must be a Field"),
            ("x", [1] * 7 + ["a"] * (len(ds) - 7), {}, penstock.Error, "column 'x': record 7: 'a' is not int64"),
            (
                "x",
                (300 * (i == 7) for i in range(len(ds))),
                {"field": penstock.Field("x", "uint8")},
                penstock.Error,
                "record 7: 300 does not fit uint8",
            ),
            (
                "x",
                np.full(len(ds), 0.5),
                {"field": penstock.Field("x", "int32")},
                penstock.Error,
                r"record 0: .* say so: field=penstock.Field\('x', 'float64'\);",
            ),
            ("x", [[]] * len(ds), {}, penstock.Error, r"record 0: .* field=penstock.Field\('x', 'int64', ragged=True\), or of lists of image files"),
            (
                "x",
                lambda batch: 1.0,
                {"batched": True},
                penstock.Error,
                "the function returned 1.0; with batched=True, it returns a value for each record",
            ),
        ):
            with self.subTest(name=name, values=values), self.assertRaisesRegex(error, text):
                ds.add_column(name, values, **options)
        for change, text in (
            (lambda: ds.drop_columns(), "takes names of columns"),
            (lambda: ds.drop_columns(["labels"]), "the name of a column is .'labels'"),
            (lambda: ds.rename_column("labels", ""), "the name of a column is ''"),
            (lambda: ds.tag(7), "the name of a tag is 7"),
        ):
            with self.assertRaisesRegex(TypeError, text):
                change()
        self.assertEqual(penstock.open(self.path).generation, 1)

    def test_a_killed_call_is_resumed(self):
        script = """
            import os, signal, sys
            import numpy as np
            import penstock

            def score(record):
                with open(sys.argv[2], "a") as f:
                    f.write("x")
                if os.path.getsize(sys.argv[2]) == 700:
                    os.kill(os.getpid(), signal.SIGKILL)
                return record["images"].mean(dtype=np.float32)

            penstock.open(sys.argv[1]).add_column("score", score, batch_size=16, resume=True)
        """
        calls = os.path.join(os.path.dirname(self.path), "calls")
        arguments = [sys.executable, "-c", textwrap.dedent(script), self.path, calls]
        self.assertEqual(subprocess.run(arguments).returncode, -signal.SIGKILL)
        subprocess.run(arguments, check=True)
        ds = penstock.open(self.path)
        np.testing.assert_array_equal(ds["score"][:], [r["images"].mean(dtype=np.float32) for r in ds])
        self.assertLess(os.path.getsize(calls), len(ds) + 100)


class StaleTest(data.Copied):
    """Changes through a Dataset of an earlier generation, and between the calls that write a column."""

    def setUp(self):
        self.path = os.path.join(os.path.dirname(self.copy("images")), "numbers")
        with penstock.Writer(self.path, [Field("k", "int64")]) as w:
            for k in range(10):
                w.append({"k": k})
        self.first = penstock.open(self.path)

    def test_values_are_of_the_records_that_were_opened(self):
        stale = self.first.delete("k = 1")
        stale.restore_records().delete("k = 7")
        for values in (stale["k"][:], lambda r: int(r["k"]), [str(k) for k in stale["k"][:]], lambda r: str(r["k"])):
            with self.assertRaisesRegex(penstock.Error, "records were restored since the column was begun, in generation 2"):
                stale.add_column("y", values)
        self.first.add_column("y", lambda r: int(r["k"])).add_column("text", [""] * 9)
        newest = self.first.set_column("y", lambda r: int(r["k"])).set_column("text", lambda r: str(r["k"]))
        self.assertEqual(newest["y"][:].tolist(), newest["k"][:].tolist())
        self.assertEqual([r["text"] for r in newest], [str(k) for k in newest["k"][:]])

    def test_values_of_an_earlier_generation_fit(self):
        self.first.delete("k = 1")
        self.first.add_column("y", lambda r: int(r["k"]))
        newest = self.first.add_column("text", (str(k) for k in range(10)))
        self.assertEqual(newest["y"][:].tolist(), newest["k"][:].tolist())
        self.assertEqual([r["text"] for r in newest], [str(k) for k in newest["k"][:]])
        self.assertEqual(newest.restore_records()[1], {"k": 1, "y": 1, "text": "1"})

    def test_records_are_restored_while_texts_are_written(self):
        ds = self.first.delete("k = 1")

        def texts():
            for i, k in enumerate(ds["k"][:]):
                if i == 5:
                    penstock.open(self.path).restore_records().delete("k = 3")
                yield str(k)

        with self.assertRaisesRegex(penstock.Error, "records were restored since the column was begun, in generation 2"):
            ds.add_column("y", texts())

    def test_a_column_of_other_records_is_not_resumed(self):
        for kind in (int, str):
            ds = penstock.open(self.path).delete("k = 1")

            def stop(record, kind=kind):
                if record["k"] == 6:
                    raise RuntimeError("stopped")
                return kind(record["k"])

            with self.assertRaises((penstock.Error, RuntimeError)):
                ds.add_column("y", stop)
            ds = ds.restore_records()
            with self.assertRaisesRegex(penstock.Error, "begun with (another set of deleted records|other inputs)"):
                ds.add_column("y", lambda r, kind=kind: kind(r["k"]), resume=True)
            ds = ds.add_column("y", lambda r, kind=kind: kind(r["k"])).drop_columns("y")

    def test_a_column_of_records_in_the_same_places_is_not_resumed(self):
        for first, generation in (100, None), (200, 1):
            if generation:
                with self.assertRaisesRegex(penstock.Error, "record 11"):
                    penstock.open(self.path).add_column("text", lambda record: str(1 // int(101 - record["k"])), resume=True)
                penstock.open(self.path, generation=generation).restore()
            with penstock.Writer(self.path, append=True) as w:
                w.extend({"k": first + i} for i in range(3))
        with self.assertRaisesRegex(penstock.Error, "cannot resume"):  # values of the records that were there before
            penstock.open(self.path).add_column("text", lambda record: str(record["k"]), resume=True)

    def test_an_earlier_generation_is_not_changed(self):
        self.first.delete("k = 1")
        old = penstock.open(self.path, generation=1)
        for change in (
            lambda: old.delete("k = 7"),
            lambda: old.restore_records(),
            lambda: old.restore_records("k = 1"),
            lambda: old.drop_columns("k"),
            lambda: old.rename_column("k", "n"),
            lambda: old.add_column("y", old["k"][:]),
        ):
            with self.assertRaisesRegex(penstock.Error, "(only|changes) the newest generation"):
                change()
        self.assertEqual(penstock.open(self.path).generation, 2)


class ZarrTest(data.Copied):
    def test_columns_and_generations(self):
        path = os.path.join(os.path.dirname(self.copy("images")), "images.zarr")
        penstock.preprocess(self.copy("images"), path, format="zarr")
        ds = first = penstock.open(path)
        n = len(ds)
        ds = ds.add_column("score", np.arange(n, dtype=np.float32))
        ds = ds.add_column("caption", (f"record {i}" for i in range(n)))
        ds = ds.set_column("score", lambda r: int(r["labels"]) * 2, workers=2)
        ds = ds.rename_column("caption", "words").drop_columns("images")
        self.assertEqual((ds.generation, list(ds.fields)), (6, ["labels", "score", "words"]))
        self.assertEqual(ds["words"][n - 1], f"record {n - 1}")
        np.testing.assert_array_equal(ds["score"][:], 2 * first["labels"][:])
        np.testing.assert_array_equal(penstock.open(path, generation=2)["score"][:], np.arange(n))
        self.assertEqual(penstock.open(f"{path}@3")[4]["caption"], "record 4")
        self.assertGreater(ds.verify(), 0)
        self.assertEqual(pickle.loads(pickle.dumps(penstock.open(path, generation=5))).generation, 5)
        self.assertEqual(len(list(penstock.DataLoader(penstock.open(path, generation=2), 100, output="numpy"))), -(-n // 100))
        with open(os.path.join(path, "zarr.json"), "rb") as f:
            root = json.load(f)
        arrays = root["attributes"]["arrays"]
        self.assertEqual(sorted(arrays), ["score", "words"])
        self.assertTrue({"labels", arrays["score"], arrays["words"] + "/values"} <= set(root["consolidated_metadata"]["metadata"]))
        left = ds.delete("score < 2")
        np.testing.assert_array_equal(left["score"][:], ds["score"][:][ds["score"][:] >= 2])
        self.assertGreater(left.verify(), 0)
        for generation, text in ((70, "keeps no generation 70; the newest is 7"), ("best", "it has no tag .best.")):
            with self.assertRaisesRegex(penstock.NotFoundError, f"^{path}: .*{text}"):
                penstock.open(path, generation=generation)
        penstock.open(path, generation=2).tag("scored")
        restored = penstock.open(f"{path}@scored").restore()
        self.assertEqual((restored.generation, restored.id), (8, penstock.open(f"{path}@2").id))
        self.assertEqual(first["images"][5].tolist(), restored["images"][5].tolist())


class HDF5Test(data.Copied):
    def setUp(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        self.h5py = h5py
        self.path = os.path.join(os.path.dirname(self.copy("images")), "images.h5")
        penstock.preprocess(self.copy("images"), self.path)

    def test_columns_and_records(self):
        ds = first = penstock.open(self.path)
        n, inode = len(ds), os.stat(self.path).st_ino
        images = first["images"][5].tolist()
        ds = ds.add_column("score", np.arange(n, dtype=np.float32))
        ds = ds.add_column("caption", (f"record {i}" for i in range(n)))
        ds = ds.set_column("score", lambda r: int(r["labels"]) * 2, workers=2)
        ds = ds.rename_column("caption", "words").drop_columns("images")
        self.assertEqual((ds.generation, list(ds.fields)), (6, ["labels", "score", "words"]))
        self.assertNotEqual(os.stat(self.path).st_ino, inode)
        self.assertEqual(ds["words"][n - 1], f"record {n - 1}")
        np.testing.assert_array_equal(ds["score"][:], 2 * first["labels"][:])
        self.assertEqual(pickle.loads(pickle.dumps(ds)).generation, 6)
        with self.assertRaisesRegex(penstock.Error, "it was changed, which replaces an HDF5 file"):
            len(pickle.loads(pickle.dumps(first)))
        self.assertEqual((first.place, ds.place), (self.path, self.path))
        self.assertGreater(ds.verify(), 0)
        self.assertEqual(len(list(penstock.DataLoader(ds, 100, output="numpy"))), -(-n // 100))
        with self.h5py.File(self.path) as f:
            self.assertEqual(sorted(f), ["labels", "penstock", "score", "words"])
            np.testing.assert_array_equal(f["score"][:], ds["score"][:])
        left = ds.delete("score < 2")
        np.testing.assert_array_equal(left["score"][:], ds["score"][:][ds["score"][:] >= 2])
        self.assertGreater(left.verify(), 0)
        left = left.delete([0, 2])
        self.assertEqual((len(left), left.generation), (int((ds["score"][:] >= 2).sum()) - 2, 8))
        self.assertEqual(first["images"][5].tolist(), images)  # of the file that it opened
        self.assertEqual([f for f in os.listdir(os.path.dirname(self.path)) if f.startswith(".")], [])

    def test_a_view_of_the_old_file(self):
        saved = os.path.join(os.path.dirname(self.path), "few.view.json")
        penstock.open(self.path).filter("labels = 1").save(saved)
        penstock.open(self.path).rename_column("images", "photos")
        for opening in (penstock.open, lambda path: penstock.DataLoader(path, 10, output="numpy").records):
            with self.assertRaisesRegex(penstock.Error, "replaced or changed after the view was made; make the view again"):
                opening(saved)

    def test_states_of_the_old_file(self):
        loader = penstock.DataLoader(self.path, 100, fields=["images", "labels"], output="numpy")
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        penstock.open(self.path).delete([0])
        self.assertEqual(sum(len(labels) for _, labels in batches), loader.records - 100)  # of the file that it opened
        again = penstock.DataLoader(self.path, 100, fields=["images", "labels"], output="numpy")
        with self.assertRaisesRegex(penstock.Error, "it is of generation 1, and generation 2 is open: .*HDF5 has one generation"):
            again.load_state_dict(state)

    def test_a_column_is_resumed(self):
        ds = penstock.open(self.path)
        n = len(ds)

        def stopping(record):
            if record["labels"] is not None and stopping.calls == n // 2:
                raise RuntimeError("no more")
            stopping.calls += 1
            return np.float32(stopping.calls)

        stopping.calls = 0
        with self.assertRaisesRegex(penstock.Error, "no more"):
            ds.add_column("score", stopping, field=penstock.Field("score", "float32"))
        ds = ds.add_column("score", lambda r: np.float32(-1), field=penstock.Field("score", "float32"), resume=True)
        kept = int((ds["score"][:] > 0).sum())
        self.assertGreater(kept, 0)
        self.assertEqual(ds["score"][:].tolist(), [*range(1, kept + 1), *[-1] * (n - kept)])
        self.assertEqual([f for f in os.listdir(os.path.dirname(self.path)) if f.startswith(".")], [])

    def test_changes_are_made_while_h5py_has_the_file_open(self):
        n = len(penstock.open(self.path))
        with self.h5py.File(self.path) as f:
            ds = penstock.open(self.path).add_column("score", np.arange(n))
            self.assertEqual((ds.generation, ds["score"][n - 1], sorted(f)), (2, n - 1, ["images", "labels", "penstock"]))
            self.assertGreater(ds.verify(), 0)

    def test_errors(self):
        ds = penstock.open(self.path)
        ds = ds.add_column("score", np.arange(len(ds), dtype=np.float32))
        one = "HDF5 has one generation; flat datasets keep several, and this makes one: "
        for generation in (1, "best"):
            with self.assertRaisesRegex(penstock.UnsupportedError, one):
                penstock.open(self.path, generation=generation)
        named = penstock.open(f"{self.path}@2")
        for refused in (ds.log, ds.restore, ds.restore_records, lambda: ds.tag("best"), lambda: named.drop_columns("labels")):
            with self.assertRaisesRegex(penstock.Error, one):
                refused()
        other = os.path.join(os.path.dirname(self.path), "other.h5")
        with self.h5py.File(other, "w") as f:
            f["x"] = np.arange(5)
        with self.assertRaisesRegex(penstock.Error, "has no generations"):
            penstock.open(other, generation=1)
        with self.assertRaisesRegex(penstock.Error, "keeps no generations and cannot be changed"):
            penstock.open(other).add_column("y", np.arange(5))
        os.chmod(self.path, 0o644)
        with self.h5py.File(self.path, "r+") as f:
            f["more"] = [0] * 1000
        with self.assertRaisesRegex(penstock.Error, "another program has changed the file"):
            ds.drop_columns("score")
        self.assertEqual(penstock.open(self.path).id, ds.id)


if __name__ == "__main__":
    unittest.main()
