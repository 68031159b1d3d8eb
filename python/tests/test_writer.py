import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import numpy as np

import penstock
import penstock._code.digest
import penstock._write.preprocess_command
from penstock import Field

from . import data

PYTHON = os.path.join(data.HERE, "..")

#: A sample of every kind of field, and a moment of work.
MAKE = """
import hashlib, struct, time
import numpy as np

def make(i):
    r = np.random.default_rng(i)
    time.sleep(0.0005)
    return {
        "pixels": r.integers(0, 256, (8, 8, 3), np.uint8), "label": i % 7, "score": i / 3,
        "tokens": list(range(i, i + i % 5)) or np.zeros(0, np.int64), "text": f"sample {i}", "file": bytes(r.integers(0, 256, i % 3000, np.uint8)),
    }

def first(i):
    return make(i + 1)
"""

exec(MAKE)

MAP = (
    MAKE
    + """
import sys, penstock
path, workers, rank, world, total = sys.argv[1], *map(int, sys.argv[2:])
ranks = {} if world == 0 else {"rank": rank, "world_size": world}
print("go", flush=True)
penstock.map(first, range(total), path, workers=workers, resume=True, checkpoint=0.05, chunksize=8, shard_size="100KB", **ranks)
"""
)

WRITE = (
    MAKE
    + """
import sys, penstock
path, _, _, _, total = sys.argv[1], *map(int, sys.argv[2:])
w = penstock.Writer(path, resume=True, checkpoint=0.05, shard_size="100KB")
print("go", w._process._child.pid, flush=True)
with w:
    for i in range(w.start, total):
        w.append(first(i))
"""
)


def files(folder):
    """Return the bytes of all files below a folder."""
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(base, name), "rb") as f:
                found[os.path.relpath(os.path.join(base, name), folder)] = f.read()
    return found


def without_inputs(found):
    """Return the files of a dataset, with a manifest that does not say of which inputs map made it, as Writer's does not."""
    manifest = json.loads(found["manifest.json"])
    manifest["source"].pop("inputs", None)
    manifest.pop("crc32c")
    return {**found, "manifest.json": manifest}


def photo(i, size=(40, 30)):
    """Return a small BMP, which any decoder reads."""
    w, h = size
    pixels = np.random.default_rng(i).integers(0, 256, (h, w, 3), np.uint8).tobytes()
    stride = (3 * w + 3) // 4 * 4
    rows = b"".join(pixels[y * 3 * w : (y + 1) * 3 * w].ljust(stride, b"\0") for y in range(h))
    head = b"BM" + (54 + len(rows)).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    info = (40).to_bytes(4, "little") + w.to_bytes(4, "little") + h.to_bytes(4, "little") + b"\1\0\x18\0" + bytes(24)
    return head + info + rows


@unittest.skipUnless(sys.platform == "linux", "the processes of these tests are killed by signals of Linux")
def one_more(x):
    return {"v": x, "y": "a", "t": [x]}


class Writing(unittest.TestCase):
    def setUp(self):
        os.environ["PENSTOCK_PREPROCESS"] = data.preprocess()
        self.folder = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def whole(self, n, name="whole", **options):
        penstock.map(first, range(n), self.path(name), workers=0, shard_size="100KB", **options)  # noqa: F821
        return files(self.path(name))


class TestKills(Writing):
    kills = int(os.environ.get("PENSTOCK_TEST_KILLS", "8"))

    def script(self, text, *arguments):
        return subprocess.Popen([sys.executable, "-c", text, *map(str, arguments)], cwd=PYTHON, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def killed(self, text, n, seconds, *arguments, demand=True):
        """Run a script; kill it n times at random times, every second time the program too; then run it to its end.

        A run that ended before its kill is repeated with less time, and one that had not begun with more, so that there are kills to count.
        """
        random.seed(n)
        resumed, k = 0, -1
        while (k := k + 1) < n or (demand and not resumed and k < n + 20):
            if demand and os.path.isdir(arguments[0]):
                shutil.rmtree(arguments[0])
                seconds /= 2
            process = self.script(text, *arguments)
            answer = process.stdout.readline().split()
            self.assertTrue(answer, process.stderr.read)
            time.sleep(random.uniform(0, seconds))
            process.kill()
            if len(answer) > 1 and k % 2:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(answer[1]), signal.SIGKILL)
            process.communicate()
            stage = os.path.join(os.path.dirname(arguments[0]), "." + os.path.basename(arguments[0]) + ".building")
            resumed += os.path.isdir(stage)
            if demand and not resumed and not os.path.isdir(arguments[0]):
                seconds = min(2 * seconds, 30)
        process = self.script(text, *arguments)
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors.decode())
        return resumed

    def test_map(self):
        want = self.whole(1000)
        resumed = self.killed(MAP, self.kills // 2, 0.25, self.path("ds"), 2, 0, 0, 1000)
        self.assertGreater(resumed, 0)
        self.assertEqual(files(self.path("ds")), want)
        self.assertEqual(sorted(os.listdir(self.folder)), ["ds", "whole"])

    def test_writer(self):
        want = self.whole(1000)
        resumed = self.killed(WRITE, self.kills - self.kills // 2, 0.25, self.path("ds"), 0, 0, 0, 1000)
        self.assertGreater(resumed, 0)
        self.assertEqual(without_inputs(files(self.path("ds"))), without_inputs(want))
        self.assertEqual(sorted(os.listdir(self.folder)), ["ds", "whole"])

    def test_ranks(self):
        want = self.whole(301)
        for rank in range(2):
            self.killed(MAP, 2, 0.2, self.path("ds"), 2 - rank, rank, 2, 301, demand=False)
        penstock.merge(self.path("ds"), remove_parts=True)
        self.assertEqual(files(self.path("ds")), want)
        self.assertEqual(sorted(os.listdir(self.folder)), ["ds", "whole"])

    def test_the_program_is_killed(self):
        with self.assertRaisesRegex(penstock.Error, "exit code -9"), penstock.Writer(self.path("ds")) as w:
            w.append(make(1))  # noqa: F821
            w._process._child.kill()
            w._process._child.wait()
            for _ in range(10000):
                w.append(make(2))  # noqa: F821


class TestLabels(Writing):
    def write(self, name, dtype, classes, values, **options):
        with penstock.Writer(self.path(name), [Field("x", dtype, classes=classes)], **options) as w:
            w.extend({"x": x} for x in values)

    def test_append_with_other_classes(self):
        """Labels of each integer type get the numbers of the classes that the dataset has."""
        for dtype in ("uint8", "int8", "int16", "uint32", "int64"):
            with self.subTest(dtype):
                self.write(dtype, dtype, ("a", "b"), [0, 1])
                self.write(dtype, dtype, ("b", "c"), [0, 1], append=True)
                with penstock.open(self.path(dtype)) as ds:
                    self.assertEqual((ds["x"][:].tolist(), ds.fields["x"].classes), ([0, 1, 1, 2], ("a", "b", "c")))

    def test_append_takes_the_fields_of_the_dataset(self):
        schema = [Field("t", "int32", ragged=True), Field("y", "int16", classes=("a", "b")), Field("v", "float32")]
        with penstock.Writer(self.path("ds"), schema) as w:
            w.append({"t": [1], "y": "b", "v": 0.5})
        with penstock.Writer(self.path("ds"), append=True) as w:
            w.append({"v": 1, "y": "b", "t": []})
        with penstock.Writer(self.path("ds"), schema[::-1], append=True, resume=True) as w:
            w.append({"t": [2, 3], "y": "a", "v": 2})
        penstock.map(one_more, [7], self.path("ds"), workers=0, append=True, resume=True)
        done = penstock.map(one_more, [7], self.path("ds"), workers=0, append=True, resume=True)
        self.assertEqual(done["records"], 4)
        with penstock.open(self.path("ds")) as ds:
            got = [(r["t"].tolist(), int(r["y"]), float(r["v"])) for r in (ds[i] for i in range(4))]
        self.assertEqual(got, [([1], 1, 0.5), ([], 1, 1), ([2, 3], 0, 2), ([7], 0, 7)])
        for record, missing in (
            ({"t": [], "y": 0}, r'do not have its fields \["v"\]'),
            ({"t": [], "y": 0, "v": 1, "n": 1}, r'not have their fields \["n"\]'),
        ):
            with penstock.Writer(self.path("ds"), append=True) as w:
                with self.assertRaisesRegex(penstock.Error, f"record 0: .*{missing}"):
                    w.append(record)  # and the Writer goes on
                w.append({"t": [], "y": 0, "v": 1})

    def test_more_classes_than_numbers(self):
        names = [f"c{i}" for i in range(200)]
        self.write("many", "int8", names[:100], [99])
        with self.assertRaisesRegex(penstock.Error, "it would have 200 classes, and int8 holds 128 numbers"):
            self.write("many", "int8", names[100:], [0], append=True)
        with self.assertRaisesRegex(penstock.Error, "class 2 of 2: give a number from 0 to 1"):
            self.write("few", "uint8", ("a", "b"), [0, 2])
        with penstock.Writer(self.path("lists"), [Field("y", "uint8", ragged=True, classes=("a", "b"))]) as w:
            w.append({"y": [0, 1]})
            for wrong, number in (([1, 2], 2), (b"\x01\x03", 3), (np.array([7], np.uint8), 7)):
                with self.assertRaisesRegex(penstock.Error, f"record 1: field 'y': class {number} of 2: give numbers from 0 to 1"):
                    w.append({"y": wrong})


class TestWriter(Writing):
    def test_workers_and_formats(self):
        want = self.whole(100)
        for workers in (1, 3):
            penstock.map(first, range(100), self.path(f"w{workers}"), workers=workers, chunksize=7, shard_size="100KB")  # noqa: F821
            self.assertEqual(files(self.path(f"w{workers}")), want)
        summary = penstock.map(first, range(100), self.path("ds.h5"), workers=2)  # noqa: F821
        self.assertEqual((summary["format"], summary["records"]), ("hdf5", 100))

    def test_values(self):
        records = [first(i) for i in range(20)]  # noqa: F821
        with penstock.Writer(self.path("ds")) as w:
            w.extend(records)
        ds = penstock.open(self.path("ds"))
        self.assertEqual([(f.name, f.dtype, f.shape, f.layout, f.ragged, f.content) for f in ds.fields.values()], [
            ("pixels", "uint8", (8, 8, 3), "HWC", False, ""), ("label", "int64", (), "", False, ""), ("score", "float64", (), "", False, ""),
            ("tokens", "int64", (), "", True, ""), ("text", "uint8", (), "", True, "utf-8"), ("file", "uint8", (), "", True, ""),
        ])  # fmt: skip
        for i, want in enumerate(records):
            got = ds[i]
            for name in ("pixels", "label", "score", "tokens"):
                np.testing.assert_array_equal(got[name], want[name])
            self.assertEqual((got["text"], got["file"].tobytes()), (want["text"], want["file"]))

    def test_ends_of_the_types(self):
        """The smallest and the largest integer of each type is stored, and the next ones are refused."""
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
            low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
            with penstock.Writer(self.path(dtype), schema=[penstock.Field("x", dtype)]) as w:
                for value in (low, high):
                    w.append({"x": value})
                for value in (low - 1, high + 1):
                    with self.assertRaises((OverflowError, ValueError, penstock.Error)):
                        w.append({"x": value})
            with penstock.open(self.path(dtype)) as ds:
                self.assertEqual(ds["x"].numpy().tolist(), [low, high])

    def test_schema(self):
        schema = [
            Field("x", "float16", (2,)), Field("y", "int64", classes=("cat", "dog")), Field("rows", "int32", (2,), ragged=True),
            Field("b", "bfloat16", (2,)), Field("s", "uint8", content="utf-8"),
        ]  # fmt: skip
        with penstock.Writer(self.path("ds"), schema, splits=["train", "val"]) as w:
            w.append({"x": [1, 2], "y": "dog", "rows": [], "b": [1, 2], "s": "a"}, "val")
            w.append(
                {"x": np.ones(2, np.float16), "y": 0, "rows": [[1, 2], [3, 4]], "b": penstock.bfloat16.from_float32(np.zeros(2)), "s": "b"}, "train"
            )
        ds = penstock.open(self.path("ds"), split="val")
        self.assertEqual((len(ds), ds[0]["y"], ds[0]["s"], ds[0]["rows"].shape, ds.classes("y")), (1, 1, "a", (0, 2), ("cat", "dog")))

    def test_stratify(self):
        order = np.random.default_rng(3).permutation(400)
        records = [{"x": np.float32([i % 200, -i % 7]), "y": i % 200 % 4, "group": i % 200 % 3} for i in order]  # each content twice
        for by, field, share in ((True, "y", 10), ("group", "group", 13.4)):
            path = self.path(f"ds-{field}")
            with penstock.Writer(path, split={"train": 0.8, "val": 0.2}, stratify=by) as w:
                for r in records:
                    w.append({**r, "x": r["x"][:1]})
            self.assertEqual(w.summary["stratified"], {"field": field, "classes": 4 if by is True else 3})
            train, val = penstock.open(path, split="train"), penstock.open(path, split="val")
            self.assertEqual(set(train["x"][:].ravel()) & set(val["x"][:].ravel()), set())
            kept = np.bincount(val[field][:][np.unique(val["x"][:], return_index=True)[1]])
            self.assertTrue((abs(kept - share) <= 1).all(), kept)
        for by, message in ((True, 'several fields hold classes, y, label; choose one: stratify="y"'), ("z", 'stratify="z": there is no field')):
            with self.assertRaisesRegex(penstock.Error, message):
                with penstock.Writer(self.path("two"), split={"train": 0.5, "val": 0.5}, stratify=by) as w:
                    for i in range(10):
                        w.append({"x": i / 2, "y": i % 2, "label": i % 3})

    def test_bytes_of_preprocess(self):
        os.mkdir(self.path("photos"))
        names = []
        for i in range(12):
            names.append(self.path("photos", f"{i:02d}.bmp"))
            with open(names[-1], "wb") as f:
                f.write(photo(i))
        for i, options in enumerate([{"keep_encoded": True}, {"resize": 24, "crop": 16, "normalize": "imagenet", "dtype": "float32"}]):
            flags = penstock._write.preprocess_command.flags(options)
            subprocess.run([data.preprocess(), "--quiet", "--names", "off", *flags, self.path("photos"), self.path(f"go{i}")], check=True)
            for kind, value in (("path", _path), ("bytes", _bytes)):
                penstock.map(value, names, self.path(f"{kind}{i}"), workers=2, **options)
                got, want = (files(self.path(f"{kind}{i}")), files(self.path(f"go{i}")))
                got.pop("manifest.json"), want.pop("manifest.json")
                self.assertEqual(got, want)

    def test_errors(self):
        good = {"x": np.zeros((2, 3), np.float32), "n": 1}
        for bad, words in [
            ({"x": np.zeros((3, 2), np.float32), "n": 1}, r"record 1: field 'x': shape \(3, 2\) instead of \(2, 3\); where shapes differ"),
            ({"x": np.full((2, 3), 0.1), "n": 1}, r"field 'x': 0.1 does not fit float32, which .*; to have it rounded, give .astype\('float32'\)"),
            (
                {"x": good["x"], "n": 1.5},
                r"field 'n': 1.5 of float64 is not int64; where records have fractions, say so: schema=\[penstock.Field\('n', 'float64'\)",
            ),
            ({"x": np.ma.masked_less(good["x"], 1), "n": 1}, "field 'x': a masked array"),
            ({"x": [[1, 2, 3], [2**24 + 1, 5, 6]], "n": 1}, "field 'x': .* does not fit float32, which would make another number of it"),
            ({"x": [[1e39, 2, 3], [4, 5, 6]], "n": 1}, "field 'x': .* does not fit float32, whose largest number is"),
            ({"x": good["x"], "n": 1 << 70}, "field 'n'"),
            ({"x": good["x"], "n": None}, "field 'n': None is not int64"),
            ({"x": good["x"]}, "no field 'n'"),
            ({"x": good["x"], "n": 1, "m": 2}, "does not have: 'm'"),
            ([good], "a record is a dict"),
        ]:
            with penstock.Writer(self.path("ds"), overwrite=True) as w:
                w.append(good)
                with self.assertRaisesRegex(penstock.Error, words):
                    w.append(bad)
                w.append(good)
            self.assertEqual(len(penstock.open(self.path("ds"))), 2)

    def test_labels_and_large_integers(self):
        schema = [Field("y", "int64", classes=("cat", "dog", "emu")), Field("f", "float64")]
        with penstock.Writer(self.path("ds"), schema) as w:
            for y, f in (
                (1.9, 0),
                (np.float32(0.99), 0),
                (1.0, 0),
                (3, 0),
                (np.array([1]), 0),
                (1, 2**53 + 1),
                (1, np.uint64(2**63 + 1)),
                (1, [0.5, 1]),
            ):
                with self.subTest(y=y, f=f), self.assertRaisesRegex(penstock.Error, "field '[yf]'"):
                    w.append({"y": y, "f": f})
            for y, f in ((True, 2**53), ("emu", -(2**63)), (np.uint8(0), np.float32(0.1))):
                w.append({"y": y, "f": f})
        ds = penstock.open(self.path("ds"))
        self.assertEqual((ds["y"][:].tolist(), ds["f"][:].tolist()), ([1, 2, 0], [2.0**53, -(2.0**63), float(np.float32(0.1))]))
        for bad in (
            Field("y", "float32", classes=("a",)),
            Field("y", "uint8", classes=tuple(map(str, range(300)))),
            Field("y", "int64", classes=("a", "b", "a")),
        ):
            with self.assertRaisesRegex(ValueError, "classes need integers|classes have 'a' twice"):
                penstock.Writer(self.path("no"), [bad])
        for empty in (np.zeros(0), [], np.zeros((0, 4)), [[]]):
            with (
                self.subTest(repr(empty)),
                self.assertRaisesRegex(penstock.Error, "name it: schema="),
                penstock.Writer(self.path("no")) as w,
            ):
                w.append({"x": empty})

    def test_mistakes(self):
        with self.assertRaisesRegex(penstock.Error, "no record was appended"), penstock.Writer(self.path("ds")):
            pass
        with self.assertRaisesRegex(penstock.Error, "an empty list has no type; name it.*content=.images."), penstock.Writer(self.path("ds")) as w:
            w.append({"x": []})
        for record, text in (({}, "the record has no fields"), ({1: 2}, "field 1: names of fields are of type str")):
            with self.assertRaisesRegex(penstock.Error, text), penstock.Writer(self.path("ds")) as w:
                w.append(record)
        with (
            self.assertRaisesRegex(penstock.Error, "no field 'y', only 'x'; each must have x, y"),
            penstock.Writer(self.path("xy"), overwrite=True) as w,
        ):
            w.append({"x": 1, "y": 2})
            w.append({"x": 1})
        shutil.rmtree(self.path(".xy.building"))
        with self.assertRaisesRegex(ValueError, "dtype is 'flaot32'; it must be one of bool, .*; did you mean 'float32'"):
            penstock.Field("x", "flaot32")
        with self.assertRaisesRegex(TypeError, "name is 3; it must be a str"):
            penstock.Field(3, "float32")
        with self.assertRaisesRegex(TypeError, r"function is \[1\]; it must be a function of an input: map\(function, inputs, path\)"):
            penstock.map([1], make, self.path("ds"))  # noqa: F821
        with self.assertRaisesRegex(penstock.Error, "engine is 'sparkk'; it must be one of ray"):
            penstock.map(make, [1], self.path("ds"), engine="sparkk")  # noqa: F821
        with self.assertRaisesRegex(penstock.Error, "unknown flag frobnicate"):
            penstock.Writer(self.path("ds"), frobnicate=True)
        with self.assertRaisesRegex(penstock.Error, "no command '/nowhere'"):
            penstock.Writer(self.path("ds"), command="/nowhere")
        with self.assertRaisesRegex(ValueError, "give all three"):
            penstock.Writer(self.path("ds"), rank=0, world_size=2)
        self.assertEqual(os.listdir(self.folder), [])

    def test_exists_resume_append(self):
        self.whole(10, "ds")
        with self.assertRaisesRegex(penstock.Error, "exists already; choose another name, or use overwrite=True"):
            penstock.Writer(self.path("ds"))
        with penstock.Writer(self.path("ds"), resume=True, shard_size="100KB") as w:
            self.assertEqual((w.complete, w.start), (True, 10))
            with self.assertRaisesRegex(penstock.Error, "complete already"):
                w.append(make(1))  # noqa: F821
        with penstock.Writer(self.path("ds"), append=True, shard_size="100KB") as w:
            w.append(make(11))  # noqa: F821
        self.assertEqual(penstock.open(self.path("ds"))["label"][10], 4)

    def test_an_exception_keeps_records(self):
        want = self.whole(30)
        with self.assertRaises(KeyboardInterrupt), penstock.Writer(self.path("ds"), shard_size="100KB") as w:
            for i in range(20):
                w.append(first(i))  # noqa: F821
            raise KeyboardInterrupt
        with self.assertRaisesRegex(penstock.Error, "stopped; continue it with resume=True"):
            penstock.Writer(self.path("ds"))
        with self.assertRaisesRegex(penstock.Error, "other fields"):
            penstock.Writer(self.path("ds"), [Field("x", "uint8")], resume=True)
        with penstock.Writer(self.path("ds"), resume=True, shard_size="100KB") as w:
            self.assertEqual(w.start, 20)
            w.extend(first(i) for i in range(20, 30))  # noqa: F821
        self.assertEqual(w.summary["resumed"], 20)
        self.assertEqual(without_inputs(files(self.path("ds"))), without_inputs(want))

    def test_an_end_between_the_last_record_and_the_commit(self):
        labels = [Field("x", "int64", classes=("a", "b"))]
        for name, schema, records, options in (
            ("numbers", labels, [{"x": i % 2} for i in range(9)], {"split": {"train": 0.5, "val": 0.5}, "stratify": True}),
            ("photos", None, [{"images": photo(i)} for i in range(3)], {}),  # pixels, of the size of the first
            ("part", None, [{"images": photo(i)} for i in range(3)], {"rank": 0, "world_size": 1, "total": 3}),
        ):
            for at, resume in ("whole", False), (name, False), (name, True):
                w = penstock.Writer(self.path(at), schema, resume=resume, **options)
                self.assertEqual(w.start, len(records) * resume)
                w.extend(records[w.start :])
                if (at, resume) == (name, False):
                    w.close()
                else:
                    w.commit()
                    if "rank" in options:
                        penstock.merge(self.path(at))
            self.assertEqual(without_inputs(files(self.path(name))), without_inputs(files(self.path("whole"))))
            shutil.rmtree(self.path("whole"))

    def test_total(self):
        w = penstock.Writer(self.path("ds"), total=2)
        w.append({"x": 1})
        with self.assertRaisesRegex(penstock.Error, "1 records were appended, and not the 2"):
            w.commit()
        w.append({"x": 2})
        with self.assertRaisesRegex(penstock.Error, "has all of its records"):
            w.append({"x": 3})
        self.assertEqual(w.commit()["records"], 2)

    def test_a_function_that_fails(self):
        for workers in (0, 2):
            with self.assertRaisesRegex(penstock.Error, r"inputs\[7\], 7: ValueError: no seven(.|\n)*in fails"):
                penstock.map(fails, range(20), self.path("ds"), workers=workers, chunksize=3, overwrite=True)
            summary = penstock.map(fails, range(20), self.path("ds"), workers=workers, chunksize=3, overwrite=True, on_error="skip")
            self.assertEqual((summary["records"], summary["skipped"][0]["sample"]), (19, "7"))
        for function, how in ((dies, "was killed by signal 9"), (leaves, "ended with exit code 0")):
            with self.assertRaisesRegex(penstock.Error, rf"a worker process {how}.*, at inputs\[6\] or one of those after"):
                penstock.map(function, range(20), self.path("ds"), workers=2, chunksize=3, overwrite=True)
        with self.assertRaisesRegex(penstock.Error, "there are no inputs"):
            penstock.map(fails, [], self.path("ds"))

    def test_files_that_cannot_be_decoded(self):
        good, bad, gone = self.path("good.bmp"), self.path("bad.bmp"), self.path("gone.bmp")
        for name, content in ((good, photo(1)), (bad, photo(1)[:100])):
            with open(name, "wb") as f:
                f.write(content)
        names = [good, bad, gone, good]
        with self.assertRaisesRegex(penstock.Error, "bad.bmp.*truncated.*use on_error=.skip."):
            penstock.map(_path, names[:2], self.path("ds"), workers=0, resize=(8, 8))
        with self.assertRaisesRegex(penstock.Error, r'inputs\[0\].*gone.bmp: .*no such file.*; on_error="skip" leaves'):
            penstock.map(
                _path,
                names[2:1:-1] * 2,
                self.path("ds"),
                workers=0,
                resize=(8, 8),
                overwrite=True,
                schema=[Field("images", "uint8", content="image")],
            )
        summary = penstock.map(_path, names, self.path("ds"), workers=0, resize=(8, 8), on_error="skip", overwrite=True)
        self.assertEqual((summary["records"], [s["sample"].split("/")[-1] for s in summary["skipped"]]), (2, ["bad.bmp", "gone.bmp"]))

    def test_a_file_is_read_when_it_is_appended(self):
        name = self.path("frame.bmp")
        with penstock.Writer(self.path("ds"), resize=(8, 8)) as w:
            for i in range(200):
                with open(name + ".part", "wb") as f:
                    f.write(photo(i, (8, 8)))
                os.replace(name + ".part", name)
                w.append({"images": name if i % 2 else _path(name)["images"], "n": i} if i else {"images": _path(name)["images"], "n": i})
        images = penstock.open(self.path("ds"))["images"]
        for i in range(200):
            want = np.frombuffer(photo(i, (8, 8))[54:], np.uint8).reshape(8, 8, 3)[::-1, :, ::-1].transpose(2, 0, 1)
            np.testing.assert_array_equal(images[i], want, err_msg=str(i))

    def test_a_file_that_cannot_be_read(self):
        os.mkfifo(self.path("pipe"))
        with open(self.path("good"), "wb") as f:
            f.write(photo(1))
        for name, words in (("gone", "no such file"), ("pipe", "is not a file"), (".", "is a directory"), ("a\0b", "not the path of a file")):
            with penstock.Writer(self.path("ds"), overwrite=True, resize=(8, 8)) as w:
                w.append({"images": _path(self.path("good"))["images"]})
                with self.assertRaisesRegex(penstock.Error, f"record 1: .*{words}"):
                    w.append({"images": self.path(name)})
            self.assertEqual(len(penstock.open(self.path("ds"))), 1)
        with penstock.Writer(self.path("ds"), overwrite=True, on_error="skip", resize=(8, 8)) as w:
            for name in ("good", "gone", "good"):
                w.append({"images": _path(self.path(name))["images"]})
        self.assertEqual([s["sample"] for s in w.summary["skipped"]], ["1 " + self.path("gone")])
        self.assertEqual((w.next, len(penstock.open(self.path("ds")))), (3, 2))

    def test_options_with_a_value_that_is_none_of_theirs(self):
        for options, words in (
            ({"names": True}, "names true: must be one of auto, on, off"), ({"names": False}, "names false: must be one of auto, on, off"),
            ({"compress": True, "world_size": 3, "rank": 0, "total": 3}, "compress.*true"),
            ({"stratify": 3}, "stratify"), ({"keep_encoded": "yes"}, "keep.encoded"),
        ):  # fmt: skip
            with self.subTest(options), self.assertRaisesRegex(penstock.Error, words):
                penstock.Writer(self.path("ds"), **options)
        with self.assertRaisesRegex(penstock.Error, "true"):
            penstock.merge(self.path("ds"), command=data.preprocess(), workers=True)
        with self.assertRaisesRegex(TypeError, r"splits is 'train'; it is a list of names"):
            penstock.Writer(self.path("ds"), splits="train")
        with penstock.Writer(self.path("ds"), keep_encoded=False, stratify=False, dedup=np.bool_(False)) as w:
            w.append({"x": 1})

    def test_a_forked_child(self):
        with penstock.Writer(self.path("ds")) as w:
            w.append({"x": 1})
            child = os.fork()
            if child == 0:
                try:
                    w.append({"x": 5})
                except penstock.Error:
                    os._exit(7)
                finally:
                    os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            w.append({"x": 2})
        self.assertEqual(penstock.open(self.path("ds"))["x"][:].tolist(), [1, 2])

    def test_rows_that_differ_in_the_first_records(self):
        tokens = {0: 2, 1: 2, 9: 5}

        def record(i):
            if i == 3:
                raise KeyError(i)
            return {
                "ids": np.arange(tokens.get(i, 2), dtype=np.int16),
                "boxes": np.zeros(((i + 1) % 3, 4), np.float32),
                "same": np.full(3, i),
                "x": i,
            }

        @penstock.batched
        def batch(records: list):
            return [record(i) for i in records]

        for name, function in ("one", record), ("many", batch):
            with self.assertRaisesRegex(penstock.Error, "KeyError: 3"):
                penstock.map(function, range(40), self.path(name), workers=0)
            penstock.map(function, range(40), self.path(name), workers=0, on_error="skip", overwrite=True)
            ds = penstock.open(self.path(name))
            self.assertEqual([(f.dtype, f.shape, f.ragged) for f in ds.fields.values()], [
                ("int16", (), True), ("float32", (4,), True), ("int64", (3,), False), ("int64", (), False)])  # fmt: skip
            self.assertEqual([len(ids) for ids in ds["ids"]], [tokens.get(i, 2) for i in range(40) if i != 3])
        with penstock.DataLoader(self.path("one"), 2, pack=penstock.Pack(8), fields=["ids"], output="numpy", command=data.feed()) as loader:
            self.assertEqual(next(iter(loader))["ids"].shape, (2, 8))

    def test_a_first_record_without_rows(self):
        def record(i):
            return {
                "list": [i] * i, "array": np.zeros(i, np.float32), "rows": [[1, 2]] * (i % 2), "boxes": np.zeros((3 * (i % 2), 4)),
                "texts": ["a"] * (i % 3),
            }  # fmt: skip

        penstock.map(record, range(20), self.path("ds"), workers=0)
        ds = penstock.open(self.path("ds"))
        self.assertEqual([(f.dtype, f.shape, f.ragged, f.content) for f in ds.fields.values()], [
            ("int64", (), True, ""), ("float32", (), True, ""), ("int64", (2,), True, ""), ("float64", (4,), True, ""),
            ("uint8", (), True, "utf-8")])  # fmt: skip
        self.assertEqual(([len(x) for x in ds["boxes"]], ds["texts"][2]), ([0, 3] * 10, '["a","a"]'))
        for f, text in (
            (lambda i: {"x": []}, "x': an empty list has no type; name it: schema="),
            (lambda i: {"x": None if i else 1}, r"inputs\[1\], 1: field 'x': None is not int64; on_error=\"skip\" leaves such inputs out"),
        ):
            with self.assertRaisesRegex(penstock.Error, text):
                penstock.map(f, range(20), self.path("no"), workers=0)
        self.assertEqual(penstock.map(f, range(20), self.path("no"), workers=0, on_error="skip", overwrite=True)["records"], 1)

    def test_inputs_in_another_order(self):
        for n, (given, other) in enumerate(
            ((list(range(40)), list(range(40))[::-1]), ([f"p{i}" for i in range(40)], [f"p{i}" for i in range(1, 41)]))
        ):
            name = self.path(f"ds{n}")
            penstock.map(_of, given, name, workers=0, rank=0, world_size=2)
            penstock.map(_of, other, name, workers=0, rank=1, world_size=2)
            with self.assertRaisesRegex(penstock.Error, "the samples, or their order, by the digests of their lists"):
                penstock.merge(name)
            with self.assertRaisesRegex(penstock.Error, "is of other inputs, or of these in another order; remove it, or replace it with overwrite"):
                penstock.map(_of, given, name, workers=0, rank=1, world_size=2)
            penstock.map(_of, tuple(given), name, workers=0, rank=1, world_size=2, overwrite=True)
            penstock.merge(name)
            self.assertEqual(penstock.open(name)["x"][:].tolist(), [_of(v)["x"] for v in given])

    def test_a_rank_whose_inputs_are_all_bad(self):
        """Also one that has no inputs."""
        with open(self.path("good.bmp"), "wb") as f:
            f.write(photo(1))
        sized = {"resize": (8, 8)}
        for n, (function, schema, given, size, options, kept) in enumerate((
            (_of, [Field("x", "int64")], ["pq", "pr", "p3", "p4"], 2, {}, [3, 4]), (_of, [Field("x", "int64")], ["p3", "p4"], 4, {}, [3, 4]),
            (_path, [Field("images", "uint8", content="image")], ["none", "gone", self.path("good.bmp"), self.path("good.bmp")], 2, sized, 2),
            (_path, [Field("images", "uint8", content="image")], ["none", "gone", *2 * [self.path("good.bmp")]], 2, {"keep_encoded": True}, 2),
        )):  # fmt: skip
            name = self.path(f"ds{n}")
            for rank in range(size):
                summary = penstock.map(function, given, name, schema=schema, workers=0, rank=rank, world_size=size, on_error="skip", **options)
            summary = penstock.merge(name)
            ds = penstock.open(name)
            self.assertEqual((ds["x"][:].tolist(), len(given) - len(kept)) if function is _of else (len(ds), 2), (kept, len(summary["skipped"])))
        with self.assertRaisesRegex(
            penstock.Error, "no sample of this rank can be used, and the images' size follows from the first one; give resize and crop"
        ):
            penstock.map(_path, ["none", "gone"], self.path("ds"), schema=schema, workers=0, rank=0, world_size=2, on_error="skip")

    def test_resumed_with_inputs_in_another_order(self):
        def stops(v):
            if v == 23 and not resumed:
                raise KeyboardInterrupt
            return {"x": v}

        resumed = False
        with self.assertRaises(KeyboardInterrupt):
            penstock.map(stops, range(40), self.path("ds"), workers=0, chunksize=1)
        resumed = True
        for other in (list(range(40))[::-1], list(range(41)), [float(i) for i in range(40)]):
            with self.assertRaisesRegex(penstock.Error, "cannot resume: it was begun with other inputs, or with these in another order"):
                penstock.map(stops, other, self.path("ds"), workers=0, resume=True)
        summary = penstock.map(stops, range(40), self.path("ds"), workers=0, resume=True)
        self.assertGreater(summary["resumed"], 0)
        self.assertEqual(penstock.map(stops, range(40), self.path("ds"), workers=0, resume=True)["records"], 40)
        for other in (range(39), range(41), range(39, -1, -1)):
            with self.assertRaisesRegex(penstock.Error, "already, built from other inputs, or of these in another order"):
                penstock.map(stops, other, self.path("ds"), workers=0, resume=True)
        self.assertEqual(penstock.open(self.path("ds"))["x"][:].tolist(), list(range(40)))

    def test_inputs_of_other_kinds(self):
        for k, given in enumerate(
            (iter("dbac"), {"d": 1, "b": 2, "a": 3, "c": 4}.keys(), np.array(list("dbac")), Labelled("dbac"), Indexed("dbac"), (c for c in "dbac"))
        ):
            penstock.map(_ord, given, self.path(f"ds{k}"), workers=0)
            self.assertEqual("".join(map(chr, penstock.open(self.path(f"ds{k}"))["x"][:])), "dbac")
        for given, words in (
            ({"a": 1}, r"give list\(inputs\), list\(inputs.values"),
            ({"a", "b"}, "sorted"),
            ("abc", r"it is a list of inputs: \['abc'\]"),
            (3, "must be a list"),
            (np.array(3), "without axes"),
        ):
            with self.assertRaisesRegex(TypeError, words):
                penstock.map(_ord, given, self.path("ds"), workers=0)

    def test_digests_are_those_of_every_process(self):
        script = "import sys; sys.path.insert(0, sys.argv[1]); from tests import test_writer as t; print(t.penstock._code.digest.of(t.odd_inputs()))"
        seen = set()
        for seed in ("0", "1", "2"):
            done = subprocess.run(
                [sys.executable, "-c", script, PYTHON], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, stdout=subprocess.PIPE
            )
            seen.add(done.stdout)
        self.assertEqual(len(seen), 1)
        one = [
            [1, "a"],
            [True, "a"],
            [1.0, "a"],
            ["1", "a"],
            ["a", 1],
            [[1], "a"],
            [b"1", "a"],
            [np.int64(1), "a"],
            [np.int32(1), "a"],
            [Indexed("1"), "a"],
            [Labelled("1"), "a"],
            [{1}, "a"],
            [{1: 2}, "a"],
            [os, "a"],
        ]
        self.assertEqual(len({penstock._code.digest.of(v) for v in one}), len(one))
        a, b = Indexed([1]), Indexed([2])
        a.other, b.other = b, a  # a cycle
        self.assertNotEqual(penstock._code.digest.of([a, b]), penstock._code.digest.of([b, a]))

    def test_spawned_workers(self):
        script = textwrap.dedent("""
            import multiprocessing, sys, penstock
            def double(i):
                return {"x": 2 * i}
            if __name__ == "__main__":
                multiprocessing.set_start_method("spawn")
                penstock.map(double, range(50), sys.argv[1], workers=2)
        """)
        with open(self.path("run.py"), "w") as f:
            f.write(script)
        env = {**os.environ, "PYTHONPATH": PYTHON}
        subprocess.run([sys.executable, self.path("run.py"), self.path("ds")], check=True, env=env)
        self.assertEqual(penstock.open(self.path("ds"))["x"][:].tolist(), list(range(0, 100, 2)))


def _of(v):
    return {"x": v if isinstance(v, int) else int(v[1:])}


def _ord(c):
    return {"x": ord(c)}


class Labelled:
    """A sequence that is indexed by labels, as a Series of pandas is."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, label):
        return sorted(self.items)[label]


class Indexed:
    """A dataset as torch has it: no Sequence, but indexed by place."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def odd_inputs():
    from datetime import datetime
    from fractions import Fraction
    from pathlib import Path

    return [
        1, 2**100, 1.5, float("nan"), "ü", "\ud800", b"x", None, Path("a/b"), (1, [2, {"k": {"x", "y", "z"}}]),
        np.arange(6).reshape(2, 3)[:, ::2], np.float32(1),
        np.array([{"a", "b"}, "c"], object), datetime(2020, 1, 1), Fraction(1, 3), Indexed(["p", "q"]),
        threading.Lock(), object(), lambda: 1, frozenset("abcdefgh"),
    ]  # fmt: skip


def fails(i):
    if i == 7:
        raise ValueError("no seven")
    return {"x": i}


def leaves(i):
    if i == 7:
        sys.exit()
    return {"x": i}


def dies(i):
    if i == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"x": i}


def _path(name):
    from pathlib import Path

    return {"images": Path(name)}


def _bytes(name):
    with open(name, "rb") as f:
        return {"images": f.read()}
