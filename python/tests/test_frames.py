"""Tables of pandas, polars, Arrow and DuckDB as sources, and datasets as tables."""

import os
import shutil
import tempfile
import unittest

import numpy as np

import penstock

from . import data

try:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"

setUpModule = data.name_programs


def frame(r, n):
    """Return columns of many types, with names that are no identifiers."""
    return {
        "sepal length (cm)": r.normal(size=n),
        "i8": r.integers(-128, 128, n).astype("i1"),
        "u64": r.integers(0, 2**64, n, dtype=np.uint64),
        "half/年": r.normal(size=n).astype("f2"),
        "flag": r.integers(0, 2, n).astype(bool),
        "name": [f"é{i}" * int(r.integers(0, 3)) for i in range(n)],
    }


@unittest.skipIf(MISSING, MISSING)
class FramesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="penstock-frames-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "ds")

    def same(self, path, columns, n):
        with penstock.open(path) as ds:
            self.assertEqual((len(ds), sorted(ds.fields)), (n, sorted(columns)))
            for name, want in columns.items():
                got = ds[name][:]
                if ds.fields[name].content:
                    self.assertEqual(list(got), list(want))
                else:
                    self.assertEqual(got.dtype, want.dtype, name)
                    np.testing.assert_array_equal(got, want)

    def tables(self, columns):
        arrow = pa.table(columns)
        half = arrow.num_rows // 2
        yield "pandas", pd.DataFrame(columns)
        yield "polars", pl.DataFrame({k: v for k, v in columns.items() if k != "half/年"})  # which has no float16
        yield "table", arrow
        yield "batch", arrow.combine_chunks().to_batches()[0]
        yield "batches", pa.RecordBatchReader.from_batches(arrow.schema, [*arrow[:half].to_batches(), *arrow[half:].to_batches()])

    def test_sources(self):
        columns = frame(np.random.default_rng(1), 50)
        for door in "preprocess", "Writer":
            for kind, table in self.tables(columns):
                with self.subTest(door=door, kind=kind):
                    if door == "preprocess":
                        penstock.preprocess(table, self.path, overwrite=True, progress=False)
                    else:
                        with penstock.Writer(self.path, overwrite=True) as w:
                            w.extend(table)
                    self.same(self.path, {k: v for k, v in columns.items() if kind != "polars" or k != "half/年"}, 50)
        self.assertEqual(os.listdir(self.folder), ["ds"])

    def test_missing_values(self):
        """NaN of pandas stays what it is; a null is refused, or filled as asked for."""
        a = np.array([1.5, np.nan, 3])
        penstock.preprocess(pd.DataFrame({"a": a}), self.path, progress=False)
        self.same(self.path, {"a": a}, 3)
        nulls = pa.table({"a": pa.array([1.5, None, 3])})
        with self.assertRaisesRegex(penstock.Error, "missing"):
            penstock.preprocess(nulls, self.path, overwrite=True, progress=False)
        with self.assertRaisesRegex(penstock.Error, "row 1 of the table has no value in column 'a'"), penstock.Writer(self.path, overwrite=True) as w:
            w.extend(nulls)
        penstock.preprocess(nulls, self.path, overwrite=True, progress=False, missing="nan")
        self.same(self.path, {"a": a}, 3)
        self.assertEqual(os.listdir(self.folder), ["ds"])

    def test_lists_and_categories(self):
        tokens = [[1, 2], [], [3]]
        table = pa.table(
            {
                "tokens": pa.array(tokens, pa.list_(pa.int32())),
                "box": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype="f4")), 4),
                "kind": pa.array(["b", "a", "b"]).dictionary_encode(),
            }
        )
        for door in "preprocess", "Writer":
            with self.subTest(door=door):
                if door == "preprocess":
                    penstock.preprocess(table, self.path, overwrite=True, progress=False)
                else:
                    with penstock.Writer(self.path, overwrite=True) as w:
                        w.extend(table[1:])
                        w.extend(table[:1])
                with penstock.open(self.path) as ds:
                    order = [0, 1, 2] if door == "preprocess" else [1, 2, 0]
                    self.assertEqual([v.tolist() for v in ds["tokens"][:]], [tokens[i] for i in order])
                    np.testing.assert_array_equal(ds["box"][:], np.arange(12, dtype="f4").reshape(3, 4)[order])
                    classes = ds.fields["kind"].classes
                    got = [classes[v] for v in ds["kind"][:]] if classes else list(ds["kind"][:])
                    self.assertEqual(got, [["b", "a", "b"][i] for i in order])

    def test_tensors(self):
        """Columns of Arrow's fixed_shape_tensor keep their shape, from memory and from a file."""
        r = np.random.default_rng(7)
        for k, (shape, dtype) in enumerate([((2, 3), "f4"), ((4,), "u1"), ((2, 1, 3), "i8"), ((1, 1), "f8")]):
            values = r.integers(0, 100, (9, *shape)).astype(dtype)
            table = pa.table({"x": pa.FixedShapeTensorArray.from_numpy_ndarray(values), "y": np.arange(9)})
            path = os.path.join(self.folder, f"{k}.arrow")
            with pa.OSFile(path, "wb") as f, pa.ipc.new_file(f, table.schema) as w:
                w.write_table(table)
            for j, source in enumerate((table, path)):
                dest = os.path.join(self.folder, f"tensors{k}{j}")
                penstock.preprocess(source, dest)
                with penstock.open(dest) as ds:
                    np.testing.assert_array_equal(ds["x"].numpy(), values)
        kind = pa.fixed_shape_tensor(pa.float32(), [3, 2], permutation=[1, 0])
        table = pa.table({"x": pa.ExtensionArray.from_storage(kind, pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(6, "f4")), 6))})
        with self.assertRaisesRegex(penstock.Error, r"^the table: column x: its tensors are stored in another order of axes, \[1 0\]"):
            penstock.preprocess(table, os.path.join(self.folder, "no"))
        with self.assertRaisesRegex(penstock.Error, r"^row 1: x: it is missing"):
            penstock.preprocess(pa.table({"x": pa.array([1, None], pa.int8())}), os.path.join(self.folder, "no"))

    def test_odd_tables(self):
        """Categories of polars, numbers for names, chunks without rows and an index without a name are what the table says."""
        kinds = ["b", "a", "b"]
        numbered = pd.DataFrame({0: [1.0, np.nan, 3.0], 1: [1, 2, 3]})
        chunks = pa.table({"x": pa.chunked_array([[1, 2], [], [3]]), "s": pa.chunked_array([["a"], ["b", "c"], []])})
        for table, want in (
            (pl.DataFrame({"c": pl.Series(kinds, dtype=pl.Categorical), "e": pl.Series(kinds, dtype=pl.Enum(["a", "b"]))}), {"c": kinds, "e": kinds}),
            (numbered, {"0": numbered[0], "1": numbered[1]}),
            (chunks, {"x": [1, 2, 3], "s": ["a", "b", "c"]}),
            (pd.DataFrame({"x": [1, 2, 3, 4]}).drop(index=[1]), {"x": [1, 3, 4]}),
            (pd.DataFrame({"x": [1.5, 2.5]}, index=pd.RangeIndex(2, name="id")), {"x": [1.5, 2.5], "id": [0, 1]}),
        ):
            for door in "preprocess", "Writer":
                with self.subTest(door=door, want=want):
                    if door == "preprocess":
                        penstock.preprocess(table, self.path, overwrite=True, progress=False)
                    else:
                        with penstock.Writer(self.path, overwrite=True) as w:
                            w.extend(table)
                    with penstock.open(self.path) as ds:
                        self.assertEqual(sorted(ds.fields), sorted(want))
                        for name, values in want.items():
                            np.testing.assert_array_equal(list(ds[name][:]), list(values))

    def test_refused_tables(self):
        """What Arrow has no type for, and what is no table, is an Error that names it, and not one of pyarrow."""
        for table, message in (
            (pd.DataFrame({"x": np.arange(3) * 1j}), "pandas.DataFrame cannot be read.*column x"),
            (pl.DataFrame({"x": pl.Series([object(), 1], dtype=pl.Object)}), "column 'x' has Python objects"),
            (pl.Series("x", [1, 2]), "polars.Series cannot be read"),
        ):
            with self.assertRaisesRegex(penstock.Error, message):
                penstock.preprocess(table, self.path, progress=False)
            with self.assertRaisesRegex(penstock.Error, message), penstock.Writer(self.path) as w:
                w.extend(table)
        for column, what in (pa.array([["a"]]), "list<.*string>"), (pa.array([[]], pa.list_(pa.int32(), 0)), r"fixed_size_list<.*>\[0\]"):
            with self.assertRaisesRegex(penstock.Error, f"column 'x' has the type {what}"), penstock.Writer(self.path) as w:
                w.extend(pa.table({"x": column}))

    def test_joins(self):
        """A table of any library is a side of a join; a null in it is not NaN."""
        with penstock.Writer(self.path) as w:
            w.extend({"id": i} for i in (10, 20, 30))
        with penstock.open(self.path) as ds:
            for kind, table in self.tables({"id": np.array([30, 10], "u4"), "v": np.array([3.5, 1.5])}):
                with self.subTest(kind=kind):
                    self.assertEqual(ds.join(table, on="id").to_arrow().to_pydict(), {"id": [10, 30], "v": [1.5, 3.5]})
            with self.assertRaisesRegex(penstock.Error, "row 0 of the table has no value in column 'v'"):
                ds.join(pd.DataFrame({"id": [30, 10], "v": pd.Series([None, 1], dtype="Int64")}), on="id")
            for value in 7, pd.Series([1, 2]):
                with self.assertRaises((TypeError, penstock.Error)):
                    ds.join({"id": 30, "v": value}, on="id")

    def test_to_tables(self):
        columns = frame(np.random.default_rng(2), 20)
        table = pa.table(
            {**columns, "tokens": pa.array([[i] * (i % 3) for i in range(20)], pa.list_(pa.int16())), "box": list(np.ones((20, 3), "f4"))}
        )
        table = table.set_column(table.num_columns - 1, "box", pa.FixedSizeListArray.from_arrays(pa.array(np.arange(60, dtype="f4")), 3))
        penstock.preprocess(table, self.path, progress=False)
        with penstock.open(self.path) as ds:
            for chosen, rows in (ds, slice(None)), (ds.select(range(5, 20, 2)), slice(5, 20, 2)):
                got = chosen.to_arrow()
                want = table.take(list(range(20))[rows])
                for name in table.column_names:
                    self.assertEqual(got[name].to_pylist(), want[name].to_pylist(), name)
                f = chosen.to_pandas(fields=["u64", "name"])
                pd.testing.assert_frame_equal(
                    f, pd.DataFrame({k: columns[k] for k in ("u64", "name")})[rows].reset_index(drop=True), check_dtype=False
                )
            with self.assertRaisesRegex(penstock.Error, "no field 'nothing'"):
                ds.to_arrow(["nothing"])
        with penstock.Writer(self.path, overwrite=True) as w:
            w.append({"image": np.zeros((64, 64, 3), "u1"), "n": 1})
        with penstock.open(self.path) as ds:
            with self.assertRaisesRegex(penstock.Error, r"image is large.*fields=\['n'\]"):
                ds.to_pandas()
            self.assertEqual(ds.to_arrow(["image"])["image"].type, pa.list_(pa.list_(pa.list_(pa.uint8(), 3), 64), 64))

    def test_columns_by_key(self):
        for name in "ds", "ds.h5":
            path = os.path.join(self.folder, name)
            penstock.preprocess(pd.DataFrame({"id": [30, 10, 20], "x": [1.0, 2.0, 3.0]}), path, progress=False)
            with penstock.open(path) as ds:
                ages = pl.DataFrame({"id": [10, 20, 40], "age": [7, 8, 9]})
                with self.assertRaisesRegex(penstock.Error, "missing"):
                    ds.add_column("age", ages, on="id")
                ds = ds.add_column("age", ages, on="id", missing=-1)
                self.assertEqual(ds["age"][:].tolist(), [-1, 7, 8])
                ds = ds.set_column("x", {"id": np.array([20]), "x": np.array([9.5])}, on="id")
                self.assertEqual(ds["x"][:].tolist(), [1, 2, 9.5])
                ds = ds.add_column("a,b=c", {"id": np.array([30, 20, 10], "u1"), "a,b=c": [1, 2, 3]}, on="id")
                self.assertEqual(ds["a,b=c"][:].tolist(), [1, 3, 2])
                ds = ds.add_column("note", {"id": [10], "note": ["good"]}, on="id", missing="")
                self.assertEqual(list(ds["note"][:]), ["", "good", ""])
                with self.assertRaisesRegex(penstock.Error, "dict cannot be read.*1-dimensional"):
                    ds.add_column("y", {"id": [10], "y": np.ones((1, 2))}, on="id")
                with self.assertRaisesRegex(TypeError, "a table, a dict of columns"):
                    ds.set_column("x", [1, 2, 3], on="id")
                with self.assertRaisesRegex(TypeError, "missing goes with on"):
                    ds.add_column("y", [1, 2, 3], missing=0)


if __name__ == "__main__":
    unittest.main()
