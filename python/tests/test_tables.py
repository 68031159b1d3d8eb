"""Tables and frames beside the libraries that wrote them: json, pandas, polars, pyarrow."""

import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import unittest

import numpy as np

import penstock

from . import data
from .test_trees import Trees

try:
    import pandas
    import polars
    import pyarrow
    import pyarrow.dataset
    import pyarrow.parquet

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"

setUpModule = data.name_programs

WORDS = ["a", "x, y", 'say "hi"', "\n", "é", "日本", "\\", "}", "[{", "1.5.2", "</s>", " lead", "😀"]


class ImagePaths(Trees):
    @unittest.skipIf(MISSING, MISSING)
    def test_as_csv(self):
        """Columns that name images: a table of Parquet or Arrow has the records of the same table as CSV, whose images Pillow reads."""
        from PIL import Image

        for seed in range(3):
            rng = np.random.default_rng(seed)
            folder = os.path.join(self.folder, f"t{seed}")
            os.makedirs(os.path.join(folder, "pics", "a b"))
            images, names = rng.integers(0, 256, (9, 6, 5, 3), dtype=np.uint8), []
            for i, pixels in enumerate(images):
                names.append(f"pics/a b/é{i}.png" if rng.random() < 0.5 else f"pics/{i}.png")
                Image.fromarray(pixels).save(os.path.join(folder, names[i]))
            table = pandas.DataFrame({"y": np.arange(9), "path": names})
            bad = rng.choice(9, 3, replace=False)
            wrong = table.copy()
            wrong["path"] = [{bad[0]: "pics/none.png", bad[1]: None, bad[2]: "../../etc/passwd"}.get(i, name) for i, name in enumerate(names)]
            for kind, write in self.formats():
                path, lacking = os.path.join(folder, f"t.{kind}"), os.path.join(folder, f"u.{kind}")
                write(table, path)
                write(wrong, lacking)
                dest = os.path.join(self.folder, f"{seed}-{kind}")
                penstock.preprocess(path, dest, fields="path=images:image,y")
                with penstock.open(dest) as ds:
                    np.testing.assert_array_equal(ds["images"].numpy().transpose(0, 2, 3, 1), images)
                with self.assertRaisesRegex(penstock.Error, r"file .*pics/none.png: no such file|it is missing|outside of the source's folder"):
                    penstock.preprocess(lacking, dest + "-no", fields="path=images:image,y")
                made = penstock.preprocess(lacking, dest + "-some", fields="path=images:image,y", on_error="skip")
                self.assertEqual(len(made.skipped), 3)
                with penstock.open(dest + "-some") as ds:
                    np.testing.assert_array_equal(ds["y"].numpy(), np.delete(np.arange(9), bad))

    @unittest.skipIf(MISSING, MISSING)
    def test_masks_lists_and_frames(self):
        """Masks are paths as images are; a list of paths, an image that is missing and a path without a folder are refused."""
        from PIL import Image

        Image.fromarray(np.arange(30, dtype=np.uint8).reshape(6, 5)).save(os.path.join(self.folder, "m.png"))
        image = os.path.join(self.folder, "i.png")
        Image.fromarray(np.zeros((6, 5, 3), np.uint8)).save(image)
        table = pandas.DataFrame({"i": ["i.png"], "m": ["m.png"]})
        dest = os.path.join(self.folder, "masks")
        for kind, write in self.formats():
            for name, t in ("one", table), ("list", pandas.DataFrame({"i": [["i.png"]]})), ("none", pandas.DataFrame({"i": ["i.png", None]})):
                write(t, os.path.join(self.folder, f"{name}.{kind}"))
            penstock.preprocess(os.path.join(self.folder, f"one.{kind}"), dest, fields="i:image,m:mask", overwrite=True)
            with penstock.open(dest) as ds:
                np.testing.assert_array_equal(ds["m"][0].ravel(), np.arange(30))
            lists = "no such file" if kind == "csv" else "write :images in place of :image"
            for name, message in ("list", lists), ("none", "missing; use missing=.skip."):
                with self.assertRaisesRegex(penstock.Error, message):
                    penstock.preprocess(os.path.join(self.folder, f"{name}.{kind}"), dest, fields="i:image", missing="nan", overwrite=True)
        with self.assertRaisesRegex(penstock.Error, r"file i.png: a table in memory has no folder .*absolute, .*outside=True"):
            penstock.preprocess(table, dest, fields="i:image", overwrite=True)
        penstock.preprocess(pandas.DataFrame({"i": [image]}), dest, fields="i:image", outside=True, overwrite=True)

    def formats(self):
        def arrow(table, path):
            with pyarrow.OSFile(path, "wb") as f, pyarrow.ipc.new_file(f, (rows := pyarrow.Table.from_pandas(table)).schema) as w:
                w.write_table(rows)

        return ("csv", lambda t, p: t.to_csv(p, index=False)), ("parquet", lambda t, p: t.to_parquet(p)), ("arrow", arrow)


class ExtensionTypes(Trees):
    @unittest.skipIf(MISSING, MISSING)
    def test_arrow_and_parquet(self):
        """Tensors have their shape and bool8 is bool, in a file of Arrow and in one of Parquet."""
        from pyarrow import parquet

        def tensors(shape, permutation=None, rows=((0, 1, 2, 3, 4, 5), (6, 7, 8, 9, 10, 11))):
            of = pyarrow.fixed_shape_tensor(pyarrow.int32(), shape, permutation=permutation)
            return pyarrow.ExtensionArray.from_storage(of, pyarrow.array(rows, pyarrow.list_(pyarrow.int32(), 6)))

        def arrow(table, path):
            with pyarrow.OSFile(path, "wb") as f, pyarrow.ipc.new_file(f, table.schema) as w:
                w.write_table(table)

        bools = pyarrow.ExtensionArray.from_storage(pyarrow.bool8(), pyarrow.array([0, -128], pyarrow.int8()))
        want = np.arange(12, dtype=np.int32).reshape(2, 2, 3)
        for kind, write in ("arrow", arrow), ("parquet", parquet.write_table):
            with self.subTest(kind):
                folder, dest = os.path.join(self.folder, kind), os.path.join(self.folder, f"{kind}-out")
                os.mkdir(folder)
                path = os.path.join(folder, f"0.{kind}")
                write(pyarrow.table({"x": tensors([2, 3]), "b": bools, "l": pyarrow.ListArray.from_arrays([0, 0, 2], bools)}), path)
                penstock.preprocess(path, dest)
                with penstock.open(dest) as ds:
                    np.testing.assert_array_equal(ds["x"].numpy(), want, strict=True)
                    np.testing.assert_array_equal(ds["b"].numpy(), [False, True], strict=True)
                    self.assertEqual([row.tolist() for row in ds["l"]], [[], [False, True]])
                for table, message in (
                    (pyarrow.table({"x": tensors([2, 3], permutation=[1, 0])}), "another order of axes"),
                    (pyarrow.table({"x": tensors([2, 3], rows=(range(6), None))}), "it is missing"),
                ):
                    write(table, path)
                    with self.assertRaisesRegex(penstock.Error, message):
                        penstock.preprocess(path, dest, overwrite=True)
                penstock.preprocess(path, dest, missing=-1, overwrite=True)
                with penstock.open(dest) as ds:
                    np.testing.assert_array_equal(ds["x"][1], np.full((2, 3), -1))
                write(pyarrow.table({"x": tensors([3, 2])}), os.path.join(folder, f"1.{kind}"))
                with self.assertRaisesRegex(penstock.Error, "another type than in .*0\\."):
                    penstock.preprocess(folder, dest, missing=-1, overwrite=True)


class ArraysOfObjects(Trees):
    def rows(self, r):
        """Make records as instructions and conversations have them."""
        return [
            {
                "id": f"r{i}",
                "n": r.randrange(-9, 9),
                "score": r.choice([0.5, 2.25, -1.0]),
                "text": r.choice(WORDS),
                "conversations": [{"from": r.choice(["human", "gpt"]), "value": r.choice(WORDS)} for _ in range(r.randrange(1, 4))],
                "meta": {"source": r.choice(WORDS), "size": [r.randrange(9), i]},
            }
            for i in range(r.randrange(1, 9))
        ]

    def test_as_json(self):
        for seed in range(6):
            r = random.Random(seed)
            rows = self.rows(r)
            path = os.path.join(self.folder, f"{seed}.json")
            ascii = r.random() < 0.5
            with open(path, "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=r.choice([None, 0, 2, "\t"]), ensure_ascii=ascii)
            want = [
                {
                    "id": row["id"],
                    "n": np.int64(row["n"]),
                    "score": np.float32(row["score"]),
                    "text": row["text"],
                    "conversations": json.dumps(row["conversations"], ensure_ascii=ascii),
                    "meta.source": row["meta"]["source"],
                    "meta.size": np.array(row["meta"]["size"]),
                }
                for row in rows
            ]
            with self.subTest(seed=seed):
                self.same(path, want)

    def test_in_an_object(self):
        """The command of the error writes a file of the array, whose records are its objects."""
        path = os.path.join(self.folder, "it's.json")
        for whole in {"data": [{"a": 1}, {"a": 2}]}, {"info": {"a": []}, "data": [{"a": 1}, {"a": 2}], "more": [{"b": 1}]}:
            with open(path, "w", encoding="utf-8-sig") as f:
                json.dump(whole, f, indent=1)
            with self.assertRaisesRegex(penstock.Error, r"arrays of objects are in it \(data(, more)?\)") as e:
                penstock.open(path)
            command = re.search("and give it's-rows.json: python (-c .*)", str(e.exception))
            subprocess.run(f"{shlex.quote(sys.executable)} {command[1]}", shell=True, check=True)
            with penstock.open(path.replace(".json", "-rows.json")) as ds:
                self.assertEqual([plain(ds[i]) for i in range(len(ds))], whole["data"])


def plain(record):
    """Return the values of a record as Python's."""
    return {n: v if isinstance(v, (str, bytes)) else np.asarray(v).tolist() for n, v in record.items()}


@unittest.skipIf(MISSING, MISSING)
class Partitions(Trees):
    def check(self, folder, want):
        for door, got in self.of_doors(folder):
            self.assertEqual([plain(g) for g in got], want, door)

    def test_as_pyarrow(self):
        """Folders as pyarrow writes them: keys of one or several levels, odd values, numbers with zeros in front, files whose
        columns are in another order."""
        for seed in range(6):
            r = random.Random(seed)
            n = r.randrange(3, 30)
            keys = r.sample(["kind", "year", "a b", "month"], r.randrange(1, 4))
            values = {
                "kind": r.sample(["a", "b/c", "d=e", "é", "x y", "%41", "0.5"], 3),
                "year": [1999, 2020, 7],
                "a b": ["1", "x", "2"],
                "month": ["01", "02", "12"],
            }
            frame = pandas.DataFrame(
                {"row": np.arange(n), "x": np.arange(n) / 4, "text": [f"t{i}" for i in range(n)]}
                | {k: [r.choice(values[k]) for _ in range(n)] for k in keys}
            )
            form = r.choice(["parquet", "csv", "feather"])
            folder = os.path.join(self.folder, f"hive{seed}")
            types = pyarrow.schema([(k, pyarrow.int64() if k == "year" else pyarrow.string()) for k in keys])
            pyarrow.dataset.write_dataset(
                pyarrow.Table.from_pandas(frame), folder, format=form, partitioning=pyarrow.dataset.partitioning(types, flavor="hive")
            )
            for path in pathlib.Path(folder).glob(f"**/*.{form}"):
                table = pyarrow.dataset.dataset(path, format=form).to_table()  # some files have the columns in another order
                part = table.select(r.sample(table.column_names, table.num_columns))
                pyarrow.dataset.write_dataset(
                    part, path.parent, format=form, basename_template="{i}-" + path.name, existing_data_behavior="overwrite_or_ignore"
                )
                path.unlink()
            if r.random() < 0.5:
                open(os.path.join(folder, "_SUCCESS"), "w").close()
            want = pyarrow.dataset.dataset(folder, format=form, partitioning="hive").to_table().to_pylist()
            with self.subTest(seed=seed, form=form, keys=keys):
                self.check(folder, want)

    def test_as_polars(self):
        """Labels of folders are classes, and a folder without a value has bad samples, or empty text."""
        frame = polars.DataFrame({"label": ["dog", "cat", "owl", None], "fold": [1, 2, None, 1], "x": [1.5, 2.5, 3.5, 4.5]})
        folder = os.path.join(self.folder, "hive")
        frame.write_parquet(folder, partition_by=["fold"])
        done = penstock.preprocess(folder, folder + ".flat", on_error="skip", fields="x,fold", progress=False)
        want = polars.read_parquet(folder, hive_partitioning=True).drop_nulls("fold")
        with penstock.open(done.dest) as ds:
            self.assertEqual([plain(ds[i]) for i in range(len(ds))], want.select("x", "fold").to_dicts())
            self.assertEqual(ds.fields["fold"].dtype, "int64")
        with self.assertRaisesRegex(penstock.Error, "it is missing; use missing=.nan."):
            penstock.preprocess(folder, folder + ".failed", fields="x,fold", progress=False)
        folder = os.path.join(self.folder, "labels")
        frame.drop_nulls().write_parquet(folder, partition_by=["label"])
        with penstock.open(folder, fields=["x", "label"]) as ds:
            self.assertEqual(ds.fields["label"].classes, ("cat", "dog"))
            self.assertEqual([ds.fields["label"].classes[int(i)] for i in ds["label"][:]], ["cat", "dog"])

    def test_list_of_paths(self):
        """A list of paths has the records of DataLoader over the list: of each path, one after the other."""
        frame, paths = pandas.DataFrame({"x": [1, 2], "w": ["a", "b"]}), [pathlib.Path(self.folder) / f"{i}.parquet" for i in range(2)]
        for columns in ["x", "w"], ["w", "x"]:
            frame.to_parquet(paths[0])
            frame.assign(x=[3, 4])[columns].to_parquet(paths[1])
            fields = None
            if columns != ["x", "w"]:
                with self.assertRaisesRegex(penstock.Error, r"part 1 has the fields w, x, .*choose some: ds.select\(fields=\[") as e:
                    penstock.open(paths)
                fields = json.loads(re.search(r"fields=(\[.*?\])", str(e.exception))[1])
                with self.assertRaisesRegex(penstock.Error, r'name those to load: fields=\["x", "w"\]'):
                    penstock.DataLoader([str(p) for p in paths], 4)
            with penstock.open(paths, fields) as ds, penstock.DataLoader([str(p) for p in paths], 4, fields=fields, output="numpy") as loader:
                rows = [plain(ds[i]) for i in range(len(ds))]
                self.assertEqual(rows, [{"x": i + 1, "w": "ab"[i % 2]} for i in range(4)])
                batch = next(iter(loader))
                self.assertEqual([batch["x"].tolist(), list(batch["w"])], [[r[n] for r in rows] for n in "xw"])
        with penstock.open(paths[:1]) as ds:
            self.assertEqual(len(ds), 2)
        with self.assertRaisesRegex(TypeError, r"the path is \[\]; it must be a str or a Path"):
            penstock.open([])

    def test_refused(self):
        frame = pandas.DataFrame({"kind": ["a"], "x": [1]})
        for key in "kind=a", "kind=b/year=1":
            os.makedirs(os.path.join(self.folder, "mixed", key))
            frame.to_parquet(os.path.join(self.folder, "mixed", key, "0.parquet"))
        with self.assertRaisesRegex(penstock.Error, "name the columns kind, and the folders of .* name kind, year"):
            penstock.open(os.path.join(self.folder, "mixed"))
        os.makedirs(os.path.join(self.folder, "twice", "kind=a"))
        frame.to_parquet(os.path.join(self.folder, "twice", "kind=a", "0.parquet"))
        with self.assertRaisesRegex(penstock.Error, "a glob reads the files without the columns of folders: '(.*)'") as e:
            penstock.open(os.path.join(self.folder, "twice"))
        with penstock.open(str(e.exception).split("'")[-2]) as ds:
            self.assertEqual(list(ds.fields), ["kind", "x"])
        first = pandas.DataFrame({"x": [1, 2], "y": [3.0, 4.0], "z": [[1], [2, 3]]})
        for kind, write in ("parquet", pandas.DataFrame.to_parquet), ("feather", pandas.DataFrame.to_feather):
            for i, (other, how) in enumerate(
                (
                    (first.drop(columns="y"), r'1\.\w+: column "y" is missing, and is in .*0'),
                    (first.assign(y=first.y.astype("int64")), r'1\.\w+: column "y" has another type than in .*0'),
                    (first.assign(a=1, y=[3.5, 1.5]), r'1\.\w+: column "a" is not in .*0'),
                )
            ):
                folder = os.path.join(self.folder, f"columns-{kind}{i}")
                os.makedirs(folder)
                write(first, os.path.join(folder, f"0.{kind}"))
                write(other[other.columns[::-1]], os.path.join(folder, f"1.{kind}"))
                with self.subTest(kind=kind, how=how), self.assertRaisesRegex(penstock.Error, how) as e:
                    penstock.open(folder)
                fields = json.loads(re.search(r"leave them out: fields=(\[.*?\])", str(e.exception))[1])
                with penstock.open(folder, fields=fields) as ds:
                    want = [*first[fields].to_dict("records"), *other[fields].to_dict("records")]
                    self.assertEqual([plain(ds[k]) for k in range(4)], [plain(w) for w in want])
                with penstock.DataLoader(folder, 4, fields=fields, output="numpy") as loader:
                    self.assertEqual(next(iter(loader))["x"].tolist(), [w["x"] for w in want])


@unittest.skipIf(MISSING, MISSING)
class MissingValues(Trees):
    def made(self, path, **options):
        done = penstock.preprocess(path, path + ".flat", overwrite=True, progress=False, **options)
        with penstock.open(done.dest) as ds:
            return done, pandas.DataFrame({n: list(ds[n][:]) for n in ds.fields})

    def test_as_pandas(self):
        """Each kind of file, with as many nulls as values, as fillna and dropna have them."""
        for seed in range(3):
            r = random.Random(seed)
            n = r.randrange(4, 40)
            frame = pandas.DataFrame(
                {
                    "f": pandas.array([r.choice([None, 0.5, -2.25]) for _ in range(n)], "Float64"),
                    "i": pandas.array([r.choice([None, 3, -4]) for _ in range(n)], "Int64"),
                    "target": [r.choice([None, "a", "b"]) for _ in range(n)],
                }
            )
            frame.loc[0] = [1.5, 1, "a"]
            for ending in "csv", "parquet", "arrow", "jsonl":
                path = os.path.join(self.folder, f"t{seed}.{ending}")
                if ending == "csv":
                    frame.to_csv(path, index=False)
                elif ending == "parquet":
                    frame.to_parquet(path)
                elif ending == "arrow":
                    frame.to_feather(path)
                else:
                    frame.to_json(path, orient="records", lines=True)
                with self.subTest(seed=seed, ending=ending):
                    done, got = self.made(path, fields="f", missing="nan")
                    np.testing.assert_array_equal(got["f"], frame["f"].astype("float64"))
                    _, got = self.made(path, fields="i,f", missing=-7)
                    self.assertEqual(got.values.tolist(), frame[["i", "f"]].fillna(-7).values.tolist())
                    _, got = self.made(path, fields="target", missing="a")
                    names = sorted({str(c) for c in frame["target"].dropna()})
                    self.assertEqual([names[int(k)] for k in got["target"]], frame["target"].fillna("a").tolist())
                    done, got = self.made(path, missing="skip")
                    want = frame.dropna()
                    self.assertEqual(got[["f", "i"]].values.tolist(), want[["f", "i"]].values.tolist())
                    self.assertEqual(len(done.skipped), n - len(want))
                    if frame["i"].isna().any():
                        for missing, words in [("nan", "int64 has no NaN"), ("0.5", "is not a value of type int64")]:
                            with self.assertRaisesRegex(penstock.Error, words):
                                self.made(path, fields="i", missing=missing)
                        with self.assertRaisesRegex(penstock.Error, "it is missing; use missing=.nan., a value or skip"):
                            self.made(path, fields="i")
                    if frame["target"].isna().any():
                        with self.assertRaisesRegex(penstock.Error, "no class has that name; the classes are a, b|the classes are a"):
                            self.made(path, fields="target", missing="c")

    def test_refused_of_other_sources(self):
        np.save(os.path.join(self.folder, "x.npy"), np.zeros(3))
        with self.assertRaisesRegex(penstock.Error, "a source of kind npy has no missing values"):
            self.made(os.path.join(self.folder, "x.npy"), missing="nan")


@unittest.skipIf(MISSING, MISSING)
class LeRobot(Trees):
    def test_as_pyarrow(self):
        """Folders of versions 2.1 and 3.0, with files in several chunks."""
        for version, name in ("v2.1", "episode_{:06d}.parquet"), ("v3.0", "file-{:03d}.parquet"):
            folder = os.path.join(self.folder, version)
            os.makedirs(os.path.join(folder, "meta"))
            features = {"observation.images.top": {"dtype": "video"}, "action": {"dtype": "float32", "shape": [2]}}
            with open(os.path.join(folder, "meta", "info.json"), "w") as f:
                json.dump({"codebase_version": version, "video_path": "videos/{video_key}.mp4", "features": features}, f)
            for e in range(12):
                chunk = os.path.join(folder, "data", f"chunk-{e // 5:03d}")
                os.makedirs(chunk, exist_ok=True)
                n = 1 + e % 3
                table = {
                    "action": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.arange(2 * n, dtype="f4") + e), 2),
                    "timestamp": pyarrow.array(np.arange(n, dtype="f4") / 30),
                    "episode_index": pyarrow.array([e] * n),
                }
                pyarrow.parquet.write_table(pyarrow.table(table), os.path.join(chunk, name.format(e)))
            want = pyarrow.parquet.ParquetDataset(os.path.join(folder, "data")).read().to_pydict()
            with penstock.open(folder) as ds:
                for column, values in want.items():
                    self.assertEqual([np.asarray(x).tolist() for x in ds[column][:]], values)
                self.assertEqual(len(ds.windows({0: 2}, group="episode_index")), sum(e % 3 for e in range(12)))
            done = subprocess.run(
                [os.environ["PENSTOCK_PREPROCESS"], folder, os.path.join(self.folder, "ds"), "--overwrite"],
                capture_output=True,
                text=True,
                check=True,
            )
            self.assertIn("videos are no fields: observation.images.top", done.stdout + done.stderr)
