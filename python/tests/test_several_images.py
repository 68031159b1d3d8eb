"""Records of any number of images, by every source that has them, beside a loop in PIL.

PENSTOCK_TEST_SEED is the first seed, and PENSTOCK_TEST_TREES how many there are.
"""

import io
import json
import os
import random
import shutil
import tarfile
import tempfile
import unittest
import zipfile

import numpy as np

import penstock
from penstock import transforms as t

from . import data

setUpModule = data.name_programs

try:
    import PIL.Image as pillow
except ImportError:
    pillow = None
try:
    import h5py
except ImportError:
    h5py = None
try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = None

FIRST = int(os.environ.get("PENSTOCK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("PENSTOCK_TEST_TREES", "2")))
SIDE = 8


def drawn(r, kinds=("JPEG", "PNG", "WEBP")):
    """Return an image file of at least SIDE by SIDE pixels."""
    g, (h, w) = np.random.default_rng(r.randrange(1 << 30)), (r.randrange(SIDE, 40), r.randrange(SIDE, 40))
    made = io.BytesIO()
    pillow.fromarray(g.integers(0, 256, (h, w, 3), np.uint8)).save(made, r.choice(kinds), lossless=True)
    return made.getvalue()


def ending(file):
    return {b"\xff\xd8": "jpg", b"\x89P": "png", b"RI": "webp"}[file[:2]]


def cropped(file):
    """Return the middle of an image as CenterCrop and ToTensor make it."""
    a = np.asarray(pillow.open(io.BytesIO(file)).convert("RGB"))
    y, x = (round((n - SIDE) / 2.0) for n in a.shape[:2])
    return a[y : y + SIDE, x : x + SIDE].transpose(2, 0, 1).astype(np.float32) / np.float32(255)


@unittest.skipIf(pillow is None, "no Pillow")
class SeveralImages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def sources(self, records, texts):
        """Yield paths of sources with these records."""
        for name in "a.tar", "a.zip":
            yield self.archive(name, records, texts), {}
        lists = []
        for i, files in enumerate(records):
            lists.append([])
            for k, file in enumerate(files):
                lists[-1].append(f"files/{i}_{k}.{ending(file)}")
                os.makedirs(self.path("files"), exist_ok=True)
                with open(self.path(lists[-1][-1]), "wb") as f:
                    f.write(file)
        rows = [{"images": list, "text": text} for list, text in zip(lists, texts)]
        with open(self.path("a.json"), "w") as f:
            json.dump(rows, f)
        alone = any(len(list) != 1 for list in lists)  # a list of one is a path beside lists
        with open(self.path("a.jsonl"), "w") as f:
            for row in rows:
                f.write(json.dumps(row | {"images": row["images"][0]} if alone and len(row["images"]) == 1 else row) + "\n")
        yield self.path("a.json"), {}
        yield self.path("a.jsonl"), {}
        if pa is not None:
            of = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            structs = pa.array([[{"bytes": file, "path": None} for file in files] for files in records], pa.list_(of))
            plain = pa.array(records, pa.list_(pa.binary()))
            for name, column in ("struct", structs), ("plain", plain), ("paths", pa.array(lists, pa.list_(pa.string()))):
                table = pa.table({"images": column, "text": texts})
                options = {"fields": "images:images,text"} if name == "paths" else {}
                pq.write_table(table, self.path(name + ".parquet"), row_group_size=3)
                yield self.path(name + ".parquet"), options
                with pa.OSFile(self.path(name + ".arrow"), "wb") as f, pa.ipc.new_file(f, table.schema) as writer:
                    writer.write_table(table)
                yield self.path(name + ".arrow"), options

        if h5py is not None:
            yield from self.hdf5_sources(records, texts)

    def hdf5_sources(self, records, texts):
        """Yield files with a list of bytes for each image, with rows that zeros fill up, and with a group for each record."""
        most, longest = max(map(len, records)), max(len(file) for files in records for file in files)
        padded = np.zeros((len(records), most, longest), np.uint8)
        for i, files in enumerate(records):
            for k, file in enumerate(files):
                padded[i, k, : len(file)] = np.frombuffer(file, np.uint8)
        with h5py.File(self.path("lists.h5"), "w") as f:
            lists = f.create_dataset("images", (len(records), most), h5py.vlen_dtype(np.uint8))
            for i, files in enumerate(records):
                for k, file in enumerate(files):
                    lists[i, k] = np.frombuffer(file, np.uint8)
            f["text"] = texts
        with h5py.File(self.path("padded.h5"), "w") as f:
            f["images"], f["text"] = padded, texts
        for name in "groups", "padded_groups":
            with h5py.File(self.path(name + ".h5"), "w") as f:
                for i, (files, text) in enumerate(zip(records, texts)):
                    f[f"data/{i}/text"] = text
                    if name == "groups":
                        images = f.create_dataset(f"data/{i}/images", (len(files),), h5py.vlen_dtype(np.uint8))
                        for k, file in enumerate(files):
                            images[k] = np.frombuffer(file, np.uint8)
                    else:
                        f[f"data/{i}/images"] = padded[i, : len(files), : max(map(len, files), default=1)]
        yield self.path("lists.h5"), {}
        yield self.path("groups.h5"), {"records": "data/*"}
        if "webp" not in {ending(file) for files in records for file in files}:
            yield self.path("padded.h5"), {}
            yield self.path("padded_groups.h5"), {"records": "data/*"}

    def archive(self, name, records, texts):
        with tarfile.open(self.path(name), "w") if name.endswith("tar") else zipfile.ZipFile(self.path(name), "w") as archive:
            for i, (files, text) in enumerate(zip(records, texts)):
                members = {f"{i:03d}.{k}.{ending(file)}": file for k, file in enumerate(files)} | {f"{i:03d}.txt": text.encode()}
                for member, content in sorted(members.items()):  # 10 comes before 2
                    if name.endswith("zip"):
                        archive.writestr(member, content)
                        continue
                    info = tarfile.TarInfo(member)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
        return self.path(name)

    def test_as_a_loop(self):
        for seed in SEEDS:
            r = random.Random(seed)
            kinds = ["JPEG", "PNG", "WEBP"][: 3 - seed % 2]  # a file of WebP can end in zeros, so rows that zeros fill up have none
            records = [[drawn(r, kinds) for _ in range(r.choice([0, 1, 1, 2, 3, 11]))] for _ in range(r.randrange(4, 9))]
            records[r.randrange(len(records))] = [drawn(r, kinds)]
            texts = [f"text {i} ü" for i in range(len(records))]
            for path, options in self.sources(records, texts):
                with self.subTest(seed=seed, source=os.path.basename(path)):
                    self.check(path, options, records, texts, r)

    def check(self, path, options, records, texts, r):
        made = self.path(r.choice(["made", "made.h5", "made.zarr"]))
        penstock.preprocess(path, made, overwrite=True, progress=False, **options)
        for source in [made] if "fields" in options else [path, made]:
            where = options if source == path else {}
            with penstock.open(source, **where) as ds:
                self.assertEqual(ds.fields["images"].content, "images")
                self.assertEqual([[file.tobytes() for file in ds[i]["images"]] for i in range(len(ds))], records)
                self.assertEqual([[file.tobytes() for file in record] for record in ds["images"][::-1]], records[::-1])
                self.assertEqual([ds[i]["text"] for i in range(len(ds))], texts)
                several = [i for i, files in enumerate(records) if len(files) > 1]
                self.assertEqual(len(ds.filter("len(images) > 1")), len(several))
            with penstock.DataLoader(source, 3, output="numpy", num_workers=r.randrange(3), **where) as loader:
                self.assertEqual([[f.tobytes() for f in files] for b in loader for files in b["images"][: int(b.mask.sum())]], records)
            pipeline = [t.CenterCrop(SIDE), t.ToTensor()]
            with penstock.DataLoader(source, 3, shuffle=True, seed=5, output="numpy", transforms=pipeline, **where) as loader:
                seen = []
                for b in loader:
                    for i, rows in zip(b.indices[b.mask], b["images"]):
                        seen.append(int(i))
                        want = np.stack([cropped(file) for file in records[i]]) if records[i] else np.zeros((0, 3, SIDE, SIDE), np.float32)
                        np.testing.assert_array_equal(rows, want)
            self.assertEqual(sorted(seen), list(range(len(records))))

    def test_numbers_of_members(self):
        """00 is a number, too, and a number of two images is refused."""
        files = [drawn(random.Random(i)) for i in range(12)]
        for names, want in (
            ([f"a.{i:02d}.{ending(file)}" for i, file in enumerate(files)], files),
            (["a.0.png", "a.00.png"], "a.0.png and a.00.png have one number"),
            (["a.0.png", "a.0.jpg"], "a.0.png and a.0.jpg have one number"),
            (["a.9999999999999999999999.png", "a.1.png"], [files[1], files[0]]),
        ):
            with tarfile.open(self.path("a.tar"), "w") as archive:
                for name, file in zip(names, files):
                    info = tarfile.TarInfo(name)
                    info.size = len(file)
                    archive.addfile(info, io.BytesIO(file))
            with self.subTest(names):
                options = {"fields": "images:images", "overwrite": True, "progress": False}
                if isinstance(want, str):
                    with self.assertRaisesRegex(penstock.Error, want):
                        penstock.preprocess(self.path("a.tar"), self.path("made"), **options)
                    continue
                penstock.preprocess(self.path("a.tar"), self.path("made"), **options)
                with penstock.open(self.path("made")) as ds:
                    self.assertEqual([file.tobytes() for file in ds[0]["images"]], want)

    def test_functions_get_pixels(self):
        r = random.Random(1)
        records = [[drawn(r) for _ in range(n)] for n in (2, 0, 1)]
        path = self.archive("a.tar", records, ["a", "b", "c"])

        def both(images, text):
            return np.array([image.shape for image in images], np.int64).reshape(-1, 3), text * len(images)

        with penstock.DataLoader(path, 3, output="numpy", transforms=[t.Record(both, takes=("images", "text"))]) as loader:
            (b,) = loader
            for shapes, files in zip(b["images"], records):
                self.assertEqual(shapes.tolist(), [list(np.asarray(pillow.open(io.BytesIO(file))).shape) for file in files])
            self.assertEqual(b["text"], ["aa", "", "c"])

    def test_writers(self):
        r = random.Random(2)
        records = [[drawn(r) for _ in range(n)] for n in (2, 0, 1, 3)]
        with open(self.path("one"), "wb") as f:
            f.write(records[2][0])
        given = [records[0], [], [self.path("one")], [np.frombuffer(file, np.uint8) for file in records[3]]]
        with penstock.Writer(self.path("w")) as writer:
            for files in given:
                writer.append({"images": files})
        schema = [penstock.Field("images", "uint8", content="images")]
        penstock.map(lambda i: {"images": given[i]}, range(4), self.path("m"), schema=schema)
        for name in "w", "m":
            with penstock.open(self.path(name)) as ds:
                self.assertEqual([[file.tobytes() for file in ds[i]["images"]] for i in range(4)], records)
                self.assertEqual(ds.to_arrow(["images"]).to_pydict()["images"] if pa else records, records)
        with self.assertRaisesRegex(penstock.Error, "images: image 1: "), penstock.Writer(self.path("bad")) as writer:
            writer.append({"images": [records[0][0], b"\xff\xd8\xff none"]})
        with self.assertRaisesRegex(penstock.Error, "list of image files"), penstock.Writer(self.path("bad"), schema=schema) as writer:
            writer.append({"images": records[0][0]})

    @unittest.skipIf(h5py is None, "no h5py")
    def test_hdf5(self):
        """An empty row before an image is an error, and lists of bytes that are no images are refused."""
        file = np.frombuffer(drawn(random.Random(1)), np.uint8)
        for name, content in ("lists", file), ("other", file[4:]):
            with h5py.File(self.path(name + ".h5"), "w") as f:
                images = f.create_dataset("images", (2, 2), h5py.vlen_dtype(np.uint8))
                images[0, 0] = images[1, 1] = content
                f["label"] = [0, 1]
        with self.assertRaisesRegex(penstock.Error, "record 1 .*image 0 of the record is empty, and image 1 is not"):
            list(penstock.DataLoader(self.path("lists.h5"), 1, output="numpy"))
        with self.assertRaisesRegex(penstock.Error, "/images: .*several lists cannot become a field"):
            penstock.DataLoader(self.path("other.h5"), 1, output="numpy")

    def test_set_column(self):
        files = [drawn(random.Random(i)) for i in range(3)]
        with penstock.Writer(self.path("w")) as writer:
            for k in 2, 3, 0:
                writer.append({"images": files[:k]})
        with penstock.open(self.path("w")) as ds:
            ds.set_column("images", lambda record: record["images"][:0:-1])
        with penstock.open(self.path("w")) as ds:
            self.assertEqual(ds.fields["images"].content, "images")
            self.assertEqual([[file.tobytes() for file in record] for record in ds["images"]], [[files[1]], [files[2], files[1]], []])

    def test_errors_name_the_record(self):
        """A length that lies beyond the record is an error that says where, by every way to the files."""
        files = [drawn(random.Random(i)) for i in range(5)]
        with penstock.Writer(self.path("w")) as writer:
            for part in files[:1], [], files[1:4], files[4:]:
                writer.append({"images": part})
        path = self.path("w/images.values-00000.npy")
        with open(path, "rb") as f:
            content = f.read()
        length = len(files[2]).to_bytes(4, "little")
        with open(path, "wb") as f:
            f.write(content.replace(length + files[2], b"\xff\xff\xff\x7f" + files[2]))
        ways = {
            "record": lambda ds: ds[2]["images"],
            "item": lambda ds: ds["images"][-2],
            "slice": lambda ds: list(ds["images"][1:]),
            "steps": lambda ds: list(ds["images"][::2]),
            "list": lambda ds: ds["images"][[3, 2]].files(),
            "view": lambda ds: ds.concat(ds)["images"][2],
            "copy": lambda ds: list(ds["images"][1:].copy()),
            "batch": lambda ds: list(penstock.DataLoader(ds, 4, output="numpy")),
            "last batch": lambda ds: list(penstock.DataLoader(ds, 2, output="numpy")),
            "function": lambda ds: list(penstock.DataLoader(ds, 2, output="numpy", transforms=[t.Record(len, takes=["images"])])),
        }
        with penstock.open(self.path("w")) as ds:
            for name, way in ways.items():
                with self.subTest(name), self.assertRaisesRegex(penstock.CorruptError, "'images': record 2: image 1: .* of 2147483647 bytes"):
                    way(ds)

    def test_what_takes_one_image_refuses(self):
        path = self.archive("a.tar", [[drawn(random.Random(3))]], ["a"])
        for options, words in (
            ({"transforms": [t.ToTensor()]}, "Resize to height and width"),
            ({"transforms": [t.ToTensor()], "batch_transforms": [t.PadToLargest()]}, "Resize to height and width"),
            ({"transforms": {"images": [lambda image: image]}}, r"Record\(f, takes=\[\"images\"\]\)"),
        ):
            with self.assertRaisesRegex(penstock.Error, words):
                penstock.DataLoader(path, 1, output="numpy", **options)

    def test_one_image_or_none(self):
        """LLaVA's records have the path of an image or no such member; a table has nulls. The error of type image names the type images."""
        files = [drawn(random.Random(i)) for i in range(2)]
        for i, file in enumerate(files):
            with open(self.path(f"{i}.jpg"), "wb") as f:
                f.write(file)
        with open(self.path("a.json"), "w") as f:
            json.dump([{"id": 0, "image": "0.jpg"}, {"id": 1}, {"id": 2, "image": "1.jpg"}], f)
        sources = ["a.json"]
        for name, values in ("paths", ["0.jpg", None, "1.jpg"]), ("bytes", [files[0], None, files[1]]):
            if pa is not None:
                table = pa.table({"id": range(3), "image": values})
                pq.write_table(table, self.path(name + ".parquet"))
                with pa.OSFile(self.path(name + ".arrow"), "wb") as f, pa.ipc.new_file(f, table.schema) as writer:
                    writer.write_table(table)
                sources += [name + ".parquet", name + ".arrow"]
        for name in sources:
            with self.subTest(name):
                advice = r'of the type images, a record may have none: fields=\["id", "image:images"\]'
                with self.assertRaisesRegex(penstock.Error, advice):
                    penstock.preprocess(self.path(name), self.path("refused"), fields="id,image:image", progress=False)
                options = {"prepare": "off", "output": "numpy"}
                with (
                    self.assertRaisesRegex(penstock.Error, advice),
                    penstock.DataLoader(self.path(name), 3, fields=["id", "image:image"], **options) as loader,
                ):
                    next(iter(loader))
                with penstock.DataLoader(self.path(name), 3, fields=["image=image:images", "id"], **options) as loader:
                    (batch,) = loader
                    self.assertEqual(([len(files) for files in batch["image"]], batch["id"].tolist()), ([1, 0, 1], [0, 1, 2]))
                ds = penstock.open(self.path(name), fields=["image=image:images"], cache_dir=self.path("cache"))
                self.assertEqual((list(ds.fields), [len(ds[i]["image"]) for i in range(3)]), (["image"], [1, 0, 1]))
                penstock.preprocess(self.path(name), self.path("made"), fields="id,image=pictures:images", progress=False, overwrite=True)
                with penstock.open(self.path("made")) as ds:
                    got = [[file.tobytes() for file in ds[i]["pictures"]] for i in range(3)]
                    self.assertEqual(got, [[files[0]], [], [files[1]]])

    def test_a_missing_file(self):
        with open(self.path("a.jsonl"), "w") as f:
            f.write('{"images": ["none.jpg"]}\n')
        with self.assertRaisesRegex(penstock.Error, "a.jsonl:1.*image 0: file .*none.jpg: no such file"):
            penstock.preprocess(self.path("a.jsonl"), self.path("made"), progress=False)

    def test_a_null_in_a_list(self):
        for item in "null", '""':
            with open(self.path("a.jsonl"), "w") as f:
                f.write(f'{{"images": [{item}]}}\n')
            with self.assertRaisesRegex(penstock.Error, "a.jsonl:1: .*image 0: null or an empty path in a list"):
                penstock.preprocess(self.path("a.jsonl"), self.path("made"), fields="images:images", progress=False)


if __name__ == "__main__":
    unittest.main()
