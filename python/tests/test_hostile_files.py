# ruff: noqa: E501  # tables of views
"""Manifests, views, headers and metadata with changes: each is a dataset, or a penstock.Error that names the file, soon and in little memory.

PENSTOCK_TEST_HOSTILE is how many of each kind are opened.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib
from typing import Any, Callable

import h5py
import numpy as np

import penstock
from penstock._read import crc32c

from . import data

MANY = int(os.environ.get("PENSTOCK_TEST_HOSTILE", "60"))

#: Values that take the place of others.
WORDS: list[Any] = [
    None, True, 0, 1, -1, 2, 5, 1 << 31, 1 << 46, 1 << 62, 1 << 63, -(1 << 63), 10**30, 1e30, 0.5, float("nan"), float("inf"), "", "x", "a", "../a", "\x00",
    "other.view.json", "long " * 2000, [], [[]], [None], {}, {"x": 1}, [0, 1], [[0, 1 << 40]], "float32", "bfloat16",
]  # fmt: skip

#: Views of the datasets a and b, with 6 and 4 records.
VIEWS: list[dict[str, Any]] = [
    {"concat": [{"dataset": "a"}, {"select": {"dataset": "b", "fields": ["x", "text"]}, "records": [3, 0]}]},
    {"select": {"dataset": "a"}, "ranges": [[4, 6], [0, 1]], "fields": ["x"], "rename": {"x": "y"}},
    {"select": {"dataset": "other.view.json"}, "records": [0, 5, 3]},
    {"select": {"dataset": "a"}, "records": "n.npy"},
    {"zip": [{"dataset": "a"}, {"select": {"dataset": "a", "fields": ["x"]}, "rename": {"x": "y"}}]},
    {"derive": {"derive": {"dataset": "a"}, "expressions": [{"name": "y", "expression": "x * 2 + 1"}]}, "expressions": [{"name": "z", "expression": "where(y > x, sqrt(y), 0)"}]},
    {"window": {"dataset": "a", "fields": ["x"]}, "by": {"sizes": {"0": 3}, "stride": {"0": 2}, "dilation": {"0": 1}, "offset": {"0": 0}, "pad": {"0": "constant"},
     "fill": 1, "keep": "partial", "dims": {"x": ["0"]}, "within": [[0, 4]], "outputs": [{"name": "x", "of": "x", "sizes": {"0": 2}, "lead": {"0": 1}}]}},
    {"window": [{"dataset": "a", "fields": ["x"]}, {"select": {"dataset": "a", "fields": ["x"]}, "rename": {"x": "y"}}],
     "by": {"sizes": {"0": 2}}, "origins": [0, 3]},
    {"select": {"dataset": "a"}, "where": "x > 2"},
    {"join": [{"dataset": "a"}, {"select": {"dataset": "b", "fields": ["x", "z"]}, "rename": {"x": "k", "z": "w"}}],
     "match": {"on": "x", "right_on": "k", "how": "left", "many": True, "fill": {"k": 3, "w": 0}}},
]  # fmt: skip

#: What a child does with each path of its input: it prints what went wrong.
CHILD = """
import resource, sys, time, signal
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import penstock
def use(ds):
    n = len(ds)
    repr(ds), ds.fields
    if n == 0:
        return
    for i in (0, n - 1, n // 2):
        ds[i]
    ds[[n // 3, 0, n - 1]]
    ds[0:min(n, 5)]
    for i, _ in zip(range(min(n, 20)), (ds[k] for k in range(min(n, 20)))):
        pass
def late(*_):
    raise SystemError("it takes more than 20 s")
signal.signal(signal.SIGALRM, late)
for line in sys.stdin:
    path = line.rstrip("\\n")
    signal.alarm(20)
    result = "read"
    try:
        with penstock.open(path) as ds:
            use(ds)
    except penstock.Error as e:
        known = path.rpartition("/")[0] + "/" in str(e)  # a file of the case, or one that its view names
        result = "refused" if known and len(str(e)) < 1 << 14 else f"FAILED without a name, or long: {str(e)[:300]}"
    except BaseException as e:
        import traceback
        result = "FAILED " + "; ".join(traceback.format_exception_only(type(e), e))[:300].replace("\\n", " ") + str(traceback.extract_tb(e.__traceback__)[-1])[:200]
    signal.alarm(0)
    print(result, flush=True)
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def setUpModule() -> None:
    data.name_programs()


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the containers and keys of all values in a value."""
    for key, inner in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        found.append((value, key))
        if isinstance(inner, (dict, list)):
            places(inner, found)
    return found


def changed(rng: random.Random, value: Any) -> bytes:
    """Return the JSON of a value with a change or two."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        every = places(value, [])
        numbers = [p for p in every if type(p[0][p[1]]) is int]
        container, key = rng.choice(numbers if numbers and rng.random() < 0.4 else every)
        what = rng.randrange(8)
        if what == 0:
            del container[key]
        elif what == 1:
            other, of = rng.choice(places(value, []))
            container[key] = json.loads(json.dumps(other[of]))
        elif what == 2 and isinstance(container, list):
            container += [container[key]] * rng.choice((1, 3, 1000))
        elif what == 3:
            for _ in range(rng.choice((1, 40))):
                container[key] = [container[key]] if rng.random() < 0.5 else {"select": container[key]}
        elif type(container[key]) is int and what < 6:
            container[key] += rng.choice((-2, -1, 1, 2, 1 << 20, 1 << 40))
        else:
            container[key] = rng.choice(WORDS)
    text = json.dumps(value, indent=2).encode()
    if rng.random() < 0.1:
        at = rng.randrange(len(text))
        text = rng.choice(
            (text[:at], text[:at] + b"[" * 30000 + text[at:], text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1 :], text + text)
        )
    if rng.random() < 0.1 and b":" in text:
        line = rng.choice(text.split(b"\n"))
        text = text.replace(line, line.rstrip(b",") + b", " + line, 1)  # a key twice
    return text


def sealed(text: bytes) -> bytes:
    """Return a manifest with the checksum that it should have."""
    if not text.endswith(b"\n}"):
        return text
    text = text[:-2] + b',\n  "crc32c": "'
    return text + b'%08x"\n}\n' % crc32c.of_bytes(text)


def _of_h5py(path: str, libver: str) -> bytes:
    """Return a file with each kind of index of chunks, many links, strings in a heap and attributes."""
    with h5py.File(path, "w", libver=libver) as f:
        x = np.arange(60, dtype="f4").reshape(20, 3)
        f["plain"] = x
        f.create_dataset("compact", data=x[:, 0].astype("i2"))
        f.create_dataset("gzip", data=x, chunks=(4, 3), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("grows", data=x, chunks=(3, 3), maxshape=(None, 3))
        f.create_dataset("both", data=x, chunks=(5, 2), maxshape=(None, None))
        f.create_dataset("labels", data=np.arange(20) % 2, dtype=h5py.enum_dtype({"cat": 0, "dog": 1}, "u1"))
        for i in range(40):
            f["plain"].attrs[f"attribute {i}"] = "value " * i
            f[f"group/member {i}"] = i
    with open(path, "rb") as file:
        return file.read()


class HostileFilesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.root = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.root)
        fields = [penstock.Field("x", "int64"), penstock.Field("z", "float32"), penstock.Field("text", "uint8", ragged=True, content="utf-8")]
        for name, n in (("a", 6), ("b", 4)):
            with penstock.Writer(os.path.join(cls.root, name), fields) as w:
                for i in range(n):
                    w.append({"x": i, "z": i / 2, "text": "word" * i})
        np.save(os.path.join(cls.root, "n.npy"), np.array([3, 1], np.int64))
        with open(os.path.join(cls.root, "other.view.json"), "w") as f:
            json.dump({"penstock": "view", "version": 1, **VIEWS[0]}, f)

    def open_all(self, kind: str, cases: list[Callable[[], str]]) -> None:
        """Have a child open cases, which are made one by one; another one goes on after one that ended it."""
        env = dict(os.environ, PYTHONPATH=os.path.dirname(data.HERE))
        done: list[str] = []
        child = None
        for make in cases:
            if child is None:
                child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, bufsize=1)
            assert child.stdin is not None and child.stdout is not None
            path = make()
            child.stdin.write(path + "\n")
            child.stdin.flush()
            result = child.stdout.readline().strip() or "FAILED: the child ended"
            if result.startswith("FAILED"):
                kept = shutil.copytree(self.root, tempfile.mkdtemp() + "/kept") if os.environ.get("PENSTOCK_TEST_KEEP") else ""
                done.append(f"{result} {kept}")
            else:
                done.append(result)
            if result == "FAILED: the child ended":
                child.communicate()
                child = None
        out = child.communicate()[0] if child else ""
        failures = [r for r in done if r.startswith("FAILED")]
        print(f"{kind}: {len(done)} cases: {done.count('read')} read, {done.count('refused')} refused, {len(failures)} failed; {out.strip()} MB")
        self.assertEqual(failures[:20], [], f"{len(failures)} of {len(done)} {kind}")
        self.assertTrue(0 < done.count("refused") < len(done), f"{done.count('refused')} of {len(done)} were refused")

    def put(self, path: str, text: bytes) -> None:
        if os.path.exists(path):
            os.remove(path)
        with open(path, "wb") as f:
            f.write(text)

    def test_views(self) -> None:
        rng = random.Random(1)

        def case(i: int) -> str:
            path = os.path.join(self.root, "case.view.json")
            view = VIEWS[i % len(VIEWS)] if i % 8 == 0 or i % len(VIEWS) < 8 else VIEWS[0]  # those that start programs are few
            self.put(path, changed(rng, {"penstock": "view", "version": 1, **view}))
            return path

        self.open_all("views", [lambda i=i: case(i) for i in range(MANY)])

    def test_manifests(self) -> None:
        rng = random.Random(2)
        case = os.path.join(self.root, "case")
        shutil.copytree(os.path.join(self.root, "a"), case)
        self.addCleanup(shutil.rmtree, case)
        with open(os.path.join(case, "manifest.json"), "rb") as f:
            good = json.load(f)
        del good["crc32c"]
        good["deleted"] = {"records": 2, "bits": base64.b64encode(zlib.compress(b"\x05")).decode()}
        good["version"], good["splits"] = 4, [{"name": "train", "ranges": [[0, 4]]}, {"name": "val", "ranges": [[4, 6]]}]

        def make() -> str:
            self.put(os.path.join(case, "manifest.json"), sealed(changed(rng, good)))
            return case

        self.open_all("manifests", [make] * MANY)

    def test_headers_of_npy_files(self) -> None:
        rng = random.Random(3)
        path = os.path.join(self.root, "case.npy")
        np.save(path, np.arange(24, dtype=np.float32).reshape(6, 4))
        with open(path, "rb") as f:
            good = f.read()
        self.addCleanup(os.remove, path)
        words = [b"<f4", b"(6, 4)", b"False", b"'shape'", b"6", b"4", b"{", b"}", b"descr"]
        news = [
            b"",
            b">f4",
            b"<f9",
            b"|O",
            b"(" * 2000,
            b"99999999999999999999",
            b"-1",
            b"(0, 4)",
            b"()",
            b"True",
            b"[" * 90,
            b"9" * 5000,
            b"4,",
            b"[('a', '<f4')]",
            b"'",
        ]

        def make() -> str:
            text = good
            for _ in range(rng.choice((0, 1, 1, 2))):
                at = rng.randrange(10, 128)
                text = rng.choice((text.replace(rng.choice(words), rng.choice(news), 1), text[: rng.randrange(len(text) + 1)],
                                   text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :], text[:6] + bytes([rng.randrange(4), rng.randrange(2)]) + text[8:]))  # fmt: skip
            self.put(path, text)
            return path

        self.open_all("npy headers", [make] * MANY)

    def test_zarr(self) -> None:
        rng = random.Random(4)
        case = os.path.join(self.root, "case.zarr")
        subprocess.run([data.preprocess(), os.path.join(self.root, "a"), case, "--quiet"], check=True)
        self.addCleanup(shutil.rmtree, case)
        with open(os.path.join(case, "penstock", "manifest", "c.0"), "rb") as f:
            good = json.load(f)
        del good["crc32c"]
        node = os.path.join(case, "x", "zarr.json")
        with open(node, "rb") as f:
            text = f.read()

        def make() -> str:
            manifest = json.loads(json.dumps(good))
            array = changed(rng, json.loads(text)) if rng.random() < 0.5 else text
            self.put(node, array)
            manifest["metadata"]["x/zarr.json"] = f"{crc32c.of_bytes(array):08x}"
            self.put(
                os.path.join(case, "penstock", "manifest", "c.0"),
                sealed(changed(rng, manifest) if array is text else json.dumps(manifest, indent=2).encode()),
            )
            return case

        self.open_all("zarr", [make] * MANY)

    def test_hdf5(self) -> None:
        """Bytes of superblocks, object headers, B-trees, heaps and indexes of chunks are changed, and those of a manifest."""
        rng = random.Random(5)
        good = [_of_h5py(os.path.join(self.root, f"good-{libver}.h5"), libver) for libver in ("earliest", "latest")]
        manifest = os.path.join(self.root, "good.h5")
        subprocess.run([data.preprocess(), os.path.join(self.root, "a"), manifest, "--quiet"], check=True)
        with open(manifest, "rb") as f:
            good.append(f.read())
        path = os.path.join(self.root, "case.h5")
        self.addCleanup(os.remove, path)

        def make() -> str:
            text = bytearray(rng.choice(good))
            used = [i for i in range(0, len(text), 8) if any(text[i : i + 8])]
            for _ in range(rng.choice((0, 1, 1, 2, 4, 16))):
                at = min(len(text) - 1, (rng.choice(used) if rng.random() < 0.8 else rng.randrange(256)) + rng.randrange(8))
                size = rng.choice((1, 1, 2, 4, 8))
                text[at : at + size] = rng.choice((bytes([text[at] ^ 1 << rng.randrange(8)]), b"\xff" * size, bytes(size), rng.randbytes(size)))
            if rng.random() < 0.05:
                del text[rng.randrange(len(text)) :]
            self.put(path, bytes(text))
            return path

        self.open_all("hdf5", [make] * MANY)


class LimitsTest(HostileFilesTest):
    """Small files that ask for much."""

    test_views = test_manifests = test_headers_of_npy_files = test_zarr = test_hdf5 = None  # type: ignore[assignment]

    def view(self, name: str, node: dict[str, Any]) -> str:
        path = os.path.join(self.root, name + ".view.json")
        self.put(path, json.dumps({"penstock": "view", "version": 1, **node}).encode())
        return path

    def test_limits_are_those_of_the_format(self) -> None:
        from penstock._read import flat, view

        with open(os.path.join(data.HERE, "..", "..", "docs", "format.md"), encoding="utf-8") as f:
            text = f.read()
        for row, limit in (
            ("views nested in each other, with the views in files that they name", view.MAX_DEPTH),
            ("datasets, each as often as it is named", view.MAX_DATASETS),
            ("records", flat.MAX_RECORDS),
        ):
            self.assertIn(f"\n| {row} | {limit} |\n", text)

    def test_files_that_name_each_other(self) -> None:
        from penstock._read import view

        name, opened = "a", []
        for i in range(7):
            name = os.path.basename(self.view(f"n{i}", {"concat": [{"dataset": name}] * 8}))
        with self.assertRaisesRegex(penstock.Error, "n6.view.json.*more than 16384 datasets"):
            view.read(os.path.join(self.root, name), None, lambda *a, **k: opened.append(a))
        self.assertEqual(opened, [])

    def test_ranges_take_no_memory(self) -> None:
        node: dict[str, Any] = {"dataset": "a"}
        for n in (6, 6000, 6000000):
            node = {"select": node, "ranges": [[0, n]] * 1000}
        with penstock.open(self.view("case", node)) as ds:
            self.assertEqual(len(ds), 6 * 10**9)
            self.assertEqual((ds[6 * 10**8 + 1]["x"], ds[-1]["x"], ds[[6, 8399, 17]]["x"].tolist()), (1, 5, [0, 5, 5]))
        more = {"select": {"select": node, "ranges": [[0, 6 * 10**9]] * 1000}, "ranges": [[0, 6 * 10**12]] * 1000}
        with self.assertRaisesRegex(penstock.Error, "records"):
            penstock.open(self.view("more", more))

    def test_depth_is_refused_when_a_view_is_made(self) -> None:
        with penstock.open(os.path.join(self.root, "a")) as ds:
            v = ds
            for i in range(32):
                v = v.derive(**{f"y{i}": "x + 1" if i == 0 else f"y{i - 1} + 1"})
            self.assertEqual(v[2]["y31"], 34)
            with self.assertRaisesRegex(penstock.Error, "nested deeper than 32"):
                v.derive(last="x + 1")
            v.save(os.path.join(self.root, "deep.view.json"))
            with penstock.open(os.path.join(self.root, "deep.view.json")) as again:
                self.assertEqual(again[3]["y31"], 35)
            v, x, y = ds, "x", "x"
            with self.assertRaisesRegex(penstock.Error, "more than 4096 expressions"):
                for i in range(31):
                    v, x, y = v.derive(**{f"p{i}": f"{x} + {y}", f"q{i}": f"{x} - {y}"}), f"p{i}", f"q{i}"

    def test_concat_of_many(self) -> None:
        """Work for a record does not grow with the parts: searches and part look-ups are counted, not timed."""
        from penstock._read import records

        with penstock.open(os.path.join(self.root, "a"), fields=["x"]) as ds:
            asked = []
            for n in (10, 5000):
                v = ds.concat(*[ds] * (n - 1))
                self.assertEqual([v[6 * k + 2]["x"] for k in (0, n // 2, n - 1)], [2, 2, 2])
                spans = records.spans(6 * n - 8, 6 * n - 1, v._kind._ends)
                asked.append(len(spans))
            self.assertEqual(asked, [2, 2])

    @unittest.skipUnless(os.path.isdir("/proc/self/fd"), "no /proc here")
    def test_few_descriptors(self) -> None:
        before = len(os.listdir("/proc/self/fd"))
        some = [penstock.open(os.path.join(self.root, "a"), mode=mode) for mode in ("r", "c") for _ in range(150)]
        self.addCleanup(lambda: [ds.close() for ds in some])
        self.assertLess(len(os.listdir("/proc/self/fd")) - before, 300 + 256 + 10)  # a lock each, and the first mappings
        self.assertEqual({int(ds[4]["x"]) for ds in some}, {4})
        some[-1]["x"][2:3][0] = 9
        self.assertEqual((some[-1][2]["x"], some[-2][2]["x"]), (9, 2))


if __name__ == "__main__":
    unittest.main()
