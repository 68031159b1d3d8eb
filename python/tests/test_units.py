"""Files whose records are groups, or rows of groups, beside walks with h5py."""

import io
import json
import os
import random
import re
import shlex
import subprocess
import tempfile
import unittest
import warnings

import numpy as np

import penstock

from . import data
from .test_trees import Trees, values_of

try:
    import h5py
    import zarr
    from PIL import Image
    from safetensors.numpy import save_file

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"

try:
    import h5netcdf  # noqa: F401
    import xarray
except ImportError:
    xarray = None

setUpModule = data.name_programs

FIRST = int(os.environ.get("PENSTOCK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("PENSTOCK_TEST_TREES", "12")))


def natural(names):
    """Sort names with digits as numbers."""
    return sorted(names, key=lambda n: [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D", n)])


@unittest.skipIf(MISSING, MISSING)
class UnitsTest(Trees):
    def test_random(self):
        """Groups with members of random types and lengths, at random depths."""
        for seed in SEEDS:
            r = random.Random(seed)
            with self.subTest(seed=seed):
                path = os.path.join(self.folder, f"{seed}.h5")
                above = r.choice(["", "data", "a/b"])
                names = [f"{r.choice(['demo_', 'x'])}{i}" for i in r.sample(range(200), r.randrange(2, 9))]
                members = r.sample(["actions", "obs/x", "obs/deep/y", "z"], r.randrange(1, 5))
                types = {
                    m: (r.choice(["<f4", "<f8", "<i2", ">i4", "u1", "?", ">f8"]), tuple(r.randrange(1, 4) for _ in range(r.randrange(3))))
                    for m in members
                }
                rows = r.random() < 0.6
                with h5py.File(path, "w") as f:
                    for name in names:
                        length = r.randrange(1, 9)
                        for m in members:
                            n = length if rows else r.randrange(1, 9)
                            dtype, shape = types[m]
                            chunked = {"chunks": True, "compression": "gzip"} if r.random() < 0.3 else {}
                            f.create_dataset(f"{above}/{name}/{m}", data=values_of(r, (n, *shape), dtype), **chunked)
                        if not rows:
                            f[f"{above}/{name}/label"] = np.int64(r.randrange(5))
                            f[f"{above}/{name}/text"] = f"é {name}"
                want = []
                with h5py.File(path) as f:
                    for k, name in enumerate(natural(names)):
                        g = f[f"{above}/{name}"] if above else f[name]
                        found = {m: g[m] for m in sorted(members)}
                        if not rows:
                            record = {n: d[()] for n, d in found.items()} | {"label": g["label"][()], "text": g["text"].asstr()[()]}
                            want.append({n: record[n] for n in sorted(record)})
                            continue
                        for i in range(len(g[members[0]])):
                            want.append({n: d[i] for n, d in found.items()} | {"episode": np.int64(k), "step": np.int64(i)})
                where = f"{above}/*".lstrip("/") + ("[:]" if rows else "")
                self.same(path, want, records=where)
                os.remove(path)

    def test_zarr(self):
        """Groups of Zarr of both versions, beside the library."""
        for seed in SEEDS:
            r = random.Random(seed)
            path, rows = os.path.join(self.folder, f"{seed}.zarr"), r.random() < 0.6
            above = r.choice(["", "data/", "a/b/"])
            names = [f"{r.choice(['demo_', 'x'])}{i}" for i in r.sample(range(200), r.randrange(2, 6))]
            members = r.sample(["actions", "obs/x", "obs/deep/y", "z"], r.randrange(1, 5))
            types = {m: (r.choice(["<f4", "<f8", "<i2", ">i4", "u1", "?"]), tuple(r.randrange(1, 4) for _ in range(r.randrange(3)))) for m in members}
            with self.subTest(seed=seed), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about consolidated metadata, which version 3 does not specify
                version = r.choice([2, 3])
                root = zarr.open_group(path, mode="w", zarr_format=version)
                for k, name in enumerate(names):
                    length = r.randrange(1, 9)
                    group = root.create_group(above + name, attributes={"n": k, "task": f"é{k}"})
                    for m in members:
                        dtype, shape = types[m]
                        x = values_of(r, (length if rows else r.randrange(1, 9), *shape), dtype)
                        group.create_array(m, data=x, chunks=tuple(r.randrange(1, n + 1) for n in x.shape))
                    group.create_array("label", data=np.array(k))
                if r.random() < 0.5:
                    zarr.consolidate_metadata(path)
                want = []
                for k, name in enumerate(natural(names)):
                    g = root[above + name]
                    found = {m: g[m][...] for m in sorted([*members, "label"])}
                    if not rows:
                        want.append(found)
                    for i in range(len(found[members[0]]) if rows else 0):
                        want.append({m: found[m][i] for m in sorted(members)} | {"episode": np.int64(k), "step": np.int64(i)})
            where = above + ("*[:]" if rows else "*")
            self.same(path, want, records=where)
            with penstock.DataLoader(path, 99, output="numpy", records=above + "*", fields=["label", "@n", "@task"]) as loader:
                (batch,) = loader
            with penstock.DataLoader([path, path], 99, output="numpy", records=above + "*", fields=["label"]) as loader:
                self.assertEqual(next(iter(loader))["label"].tolist(), 2 * batch["label"].tolist())
            self.assertEqual((batch["n"].tolist(), [f"é{n}" for n in batch["n"].tolist()]), (batch["label"].tolist(), list(batch["task"])))
            lengths = [[root[f"{above}{name}/{m}"].shape[0] for m in members] for name in names]
            if all(len(set(of)) < len(of) for of in lengths) and len({max(of) for of in lengths}) > 1:  # rows, or groups with a label
                with self.assertRaisesRegex(penstock.Error, re.escape(f'records="{above}*[:]", or each of them: records="{above}*"')):
                    penstock.open(path)
            elif rows:
                with penstock.open(path) as ds:
                    self.assertEqual(len(ds), len(names))
            else:
                self.same(path, want)

    def test_align(self):
        path = os.path.join(self.folder, "maniskill.h5")
        with h5py.File(path, "w") as f:
            for i, n in enumerate((3, 5, 4)):
                f[f"traj_{i}/actions"] = np.arange(n) + 10 * i
                f[f"traj_{i}/obs"] = np.arange(n + 1) + 100 * i
        for align, at in (("start", 0), ("end", 1)):
            want = [
                {"actions": np.int64(j + 10 * i), "obs": np.int64(j + at + 100 * i), "episode": np.int64(i), "step": np.int64(j)}
                for i, n in enumerate((3, 5, 4))
                for j in range(n)
            ]
            self.same(path, want, records="*[:]", align=align)
        with self.assertRaisesRegex(penstock.Error, r"traj_0, obs has 4 rows and actions has 3, .*align.*start.*align.*end.*fields") as e:
            penstock.open(path, records="*[:]")
        fields = json.loads(re.search(r"fields=(\[.*?\])", str(e.exception))[1])
        penstock.preprocess(path, path + ".fields", records="*[:]", fields=fields, progress=False)
        with self.assertRaisesRegex(penstock.Error, r'is a record each row of them: records="\*\[:\]", or each of them: records="\*"'):
            penstock.DataLoader(path)
        alike = os.path.join(self.folder, "alike")
        os.mkdir(alike)
        for name in "ab":
            np.savez(os.path.join(alike, name), x=np.arange(3))
        with self.assertRaisesRegex(penstock.Error, "is a record each row of them") as e:
            penstock.open(alike)
        self.assertEqual(str(e.exception).count("is a record each row"), 1)

    def run_command(self, *arguments):
        subprocess.run([data.penstock(), *arguments], check=True, capture_output=True)

    def test_guesses(self):
        """What is found out, and what people are asked."""
        path = os.path.join(self.folder, "robomimic.hdf5")
        with h5py.File(path, "w") as f:
            for i, n in enumerate((3, 5)):
                f[f"data/demo_{i}/actions"], f[f"data/demo_{i}/rewards"] = np.zeros((n, 7)), np.zeros(n)
                f[f"data/demo_{i}"].attrs["num_samples"] = n
            f["mask/train"] = np.array([b"demo_0"])
        with penstock.open(path) as ds:
            self.assertEqual((len(ds), list(ds.fields), ds.source_name(4)), (8, ["actions", "rewards", "episode", "step"], "data/demo_1[1]"))
            windows = ds.windows({0: 3}, group="episode")
            self.assertEqual([windows[i]["step"].tolist() for i in range(len(windows))], [[0, 1, 2], [0, 1, 2], [1, 2, 3], [2, 3, 4]])
        done = penstock.preprocess(path, path + ".flat", progress=False)
        with penstock.open(done.dest) as ds:
            self.assertEqual(ds.manifest["recipe"]["options"]["records"], "data/*[:]")
        with h5py.File(path, "w") as f:
            for i in range(3):
                f[f"s{i}/image"], f[f"s{i}/label"] = np.full((4, 4), i, "u1"), i
        with penstock.open(path) as ds:
            self.assertEqual((len(ds), ds[2]["label"].tolist(), ds[2]["image"].shape), (3, 2, (4, 4)))

    def test_no_records(self):
        """A file whose arrays have no rows is a dataset without records, for open as for DataLoader."""
        path = os.path.join(self.folder, "none.h5")
        with h5py.File(path, "w") as f:
            f["x"], f["y"] = np.zeros((0, 3), ">f2"), np.zeros(0, "?")
        with penstock.open(path) as ds:
            self.assertEqual((len(ds), list(ds), ds[::-1]["x"].shape, ds["x"].numpy().dtype, ds[[]]["y"].shape), (0, [], (0, 3), "float16", (0,)))
            with self.assertRaisesRegex(IndexError, "there are 0"):
                ds[-1]
        with penstock.DataLoader(path, 2) as loader:
            self.assertEqual(list(loader), [])

    def test_splits(self):
        path = os.path.join(self.folder, "mnist.h5")
        with h5py.File(path, "w") as f:
            for name, n in (("test", 2), ("train", 5)):
                f[f"{name}/images"], f[f"{name}/labels"] = np.full((n, 4, 4), n, "u1"), np.arange(n)
        for split, want in (("train", [0, 1, 2, 3, 4]), ("test", [0, 1]), (None, [0, 1, 2, 3, 4, 0, 1])):
            with penstock.DataLoader(path, 7, output="numpy", split=split) as loader:
                (batch,) = loader
            self.assertEqual((list(batch.keys()), batch["labels"][batch.mask].tolist()), (["images", "labels"], want))
            with penstock.open(path, split=split) as ds:
                self.assertEqual(ds["labels"][:].tolist(), want)
        done = penstock.preprocess(path, path + ".flat", progress=False)
        self.assertEqual(dict(done.splits), {"train": 5, "test": 2})

    def test_odd_groups(self):
        """Of groups that are not all alike, the message names the group at fault and what to type; fields change no guess of records."""

        def write(name, change):
            path = os.path.join(self.folder, name + ".hdf5")
            with h5py.File(path, "w") as f:
                for i, n in enumerate((4, 5, 3, 6)):
                    f[f"data/demo_{i}/actions"], f[f"data/demo_{i}/dones"], f[f"data/demo_{i}/obs/eef"] = (
                        np.zeros((n, 7)),
                        np.zeros(n),
                        np.zeros((n, 3)),
                    )
                change(f)
            return path

        def shorten(f):
            del f["data/demo_2/actions"]
            f["data/demo_2/actions"] = np.zeros((3, 7), "f4")

        cases = (
            (lambda f: f.__delitem__("data/demo_2/obs/eef"), "data/demo_2 has no obs/eef, which data/demo_0 has", "actions,dones"),
            (
                lambda f: f.__setitem__("data/demo_1/obs/more", np.zeros(5)),
                "data/demo_1 has obs/more, which data/demo_0 does not have",
                "actions,dones,obs/eef",
            ),
            (shorten, r"data/demo_2/actions is 3 rows of float32\[7\], so they are not one field", "dones,obs/eef"),
        )
        for i, (change, fault, left) in enumerate(cases):
            fields = [*left.split(","), "episode", "step"]
            path = write(f"odd{i}", change)
            for more in ({}, {"records": "data/*[:]"}):
                with self.assertRaisesRegex(penstock.Error, f"{fault}; leave it out: ") as e:
                    penstock.open(path, **more)
                self.assertIn(f"fields={json.dumps(fields)}", str(e.exception))
            with penstock.open(path, fields=fields) as ds:
                self.assertEqual((len(ds), list(ds.fields)), (18, fields))
        for change in (lambda f: f.create_group("data/demo_4"), lambda f: f.__setitem__("data/meta", np.arange(3))):
            path = write("beside", change)
            with penstock.open(path) as ds:
                self.assertEqual((len(ds), list(ds.fields)), (18, ["actions", "dones", "obs/eef", "episode", "step"]))
            for name in ("actions", "step"):
                with penstock.open(path, fields=[name]) as ds, penstock.DataLoader(path, 4, fields=[name], output="numpy") as loader:
                    self.assertEqual((len(ds), sum(len(b[name]) for b in loader)), (18, 18))
        path = write("short", lambda f: [f.__setitem__(f"data/demo_{i}/sizes", np.zeros(1)) for i in range(4)])
        with self.assertRaisesRegex(penstock.Error, r'leave arrays out: fields=\["actions", "step"\]; or take the first rows'):
            penstock.open(path, records="data/*[:]", fields=["actions", "sizes", "step"])

    def test_lists(self):
        """Lists of groups are splits of what preprocess writes, as they are of the file; a list with a name that is missing says which."""
        path = os.path.join(self.folder, "masks.hdf5")
        with h5py.File(path, "w") as f:
            for i in range(4):
                f[f"data/demo_{i}/actions"], f[f"data/demo_{i}/rewards"] = np.full((i + 2, 7), i), np.zeros(i + 2)
            for name, demos in {"train": (0, 3), "valid": (1,), "20_percent_train": (3,), "odd": (0, 9)}.items():
                f[f"mask/{name}"] = [f"demo_{i}".encode() for i in demos]
            f["mask/none"] = np.array([], "S")
        for dest, split, want in (
            ("auto", None, {"mask/train": 7, "mask/valid": 3, "others": 4}),
            ("auto.h5", None, {"mask/train": 7, "mask/valid": 3, "others": 4}),
            ("named", "mask/20_percent_train", {"mask/20_percent_train": 5, "others": 9}),
        ):
            done = penstock.preprocess(path, os.path.join(self.folder, dest), split=split, progress=False)
            self.assertEqual(dict(done.splits), want)
            for name in set(want) - {"others"}:
                with penstock.open(path, split=name) as a, penstock.open(done.dest, split=name) as b:
                    self.assertEqual((len(a), a["episode"][:].tolist()), (want[name], b["episode"][:].tolist()))
                    rows = [f"data/demo_{e}[{s}]" for e, s in zip(a["episode"], a["step"])]
                    self.assertEqual([a.source_name(i) for i in range(-len(a), 0)], rows)
        with self.assertRaisesRegex(penstock.Error, "split: mask/train and mask/20_percent_train have units in common"):
            penstock.preprocess(path, os.path.join(self.folder, "both"), split="mask/train,mask/20_percent_train", progress=False)
        with self.assertRaisesRegex(penstock.Error, "split 'mask/odd' names 'demo_9', which the file does not have"):
            penstock.open(path, split="mask/odd")
        with self.assertRaisesRegex(penstock.Error, "the list mask/odd names demo_9, which the file does not have"):
            penstock.DataLoader(path, split="mask/odd")
        for of in penstock.open, penstock.DataLoader:
            with self.assertRaisesRegex(penstock.Error, "mask/none'? is (an )?empty"):
                of(path, split="mask/none")
        shown = subprocess.run([data.penstock(), "inspect", path], check=True, capture_output=True, text=True).stdout
        self.assertIn("mask/20_percent_train, mask/train, mask/valid", shown)

    def test_folders_of_files(self):
        """A file for each sample, or for rows: npz, npy, safetensors, HDF5 and files without a header, beside NumPy."""
        for seed in SEEDS:
            r = random.Random(seed)
            kind = r.choice(["npz", "npy", "safetensors", "h5", "bin", "bin"])
            rows, n = r.random() < 0.5, r.randrange(1, 7)
            with self.subTest(seed=seed, kind=kind, rows=rows):
                folder, most = os.path.join(self.folder, f"{seed}-{kind}"), r.choice([1, 6])
                names = natural(f"{r.choice(['', '', 'é '])}e{i}.{kind}" for i in r.sample(range(50), n))
                members = ["data"] if kind in ("npy", "bin") else r.sample(["action", "obs", "z"], r.randrange(1, 4))
                numbers = ["<f4", "<f8", "<i2", "|u1", "<i8"] + ([">f4", ">i2", "|b1"] if kind == "bin" else [])
                types = {m: (r.choice(numbers), tuple(r.randrange(1, 4) for _ in range(r.randrange(3)))) for m in members}
                below = r.choice(["", "*/"])
                for i, name in enumerate(names):  # folders of each, in the order of the files
                    os.makedirs(os.path.join(folder, f"{i}" if below else ""), exist_ok=True)
                    names[i] = os.path.join(f"{i}" if below else "", name)
                open(os.path.join(folder, os.path.dirname(names[0]), f"._hidden.{kind}"), "wb").close()
                want = []
                for k, name in enumerate(names):
                    length = r.randrange(k < n - 1 or n == 1, most + 1) if kind == "bin" else r.randrange(1, 6)
                    arrays = {m: values_of(r, (length if rows else r.randrange(1, 6), *types[m][1]), types[m][0]) for m in members}
                    if not rows and kind not in ("npy", "bin"):
                        arrays["label"] = np.array(k, "<i8")
                    self.write(os.path.join(folder, name), arrays, r)
                    fields = sorted(arrays) if kind in ("safetensors", "h5") else list(arrays)
                    if rows:
                        want += [{m: arrays[m][i] for m in fields} | {"episode": np.int64(k), "step": np.int64(i)} for i in range(length)]
                    else:
                        want.append({m: arrays[m] for m in fields})
                declared = "*"
                if kind == "bin":
                    dtype, shape = np.dtype(types["data"][0]), types["data"][1]
                    axes = ",".join(map(str, ("*", *shape)))
                    declared = f"*.bin:{'>' if dtype.byteorder == '>' else ''}{dtype.name}[{axes}]"
                where = os.path.join(folder, f"{below}*.{kind}") if below or r.random() < 0.5 else folder
                self.same(where, want, records=declared + "[:]" * rows)
                with penstock.open(where, records=declared) as ds:
                    self.assertEqual([ds.source_name(k) for k in range(n)], [name if n > 1 else os.path.basename(name) for name in names])
                    if kind == "bin":
                        self.assertTrue(ds.fields["data"].ragged)

    def test_texts(self):
        """Texts of NumPy are texts, and several a record their JSON, in an npz file, a folder of fields, and a value of each file."""
        words = np.array(["a", "", "zw\u00f6lf", "\u6f22 \x00b", "\U0001f642 ", "tail\x00"])
        x = {"u": words, "big": words.astype(">U9"), "s": np.array([b"a", b"bc\x00d", b"", b"z" * 7, b"q ", b"\xc3\xa9"])}
        x["list"], x["n"] = np.stack([words, words[::-1]], 1), np.arange(6)
        np.savez(f"{self.folder}/stored.npz", **x)
        np.savez_compressed(f"{self.folder}/packed.npz", **x)
        os.mkdir(f"{self.folder}/fields")
        os.mkdir(f"{self.folder}/files")
        for name, values in x.items():
            np.save(f"{self.folder}/fields/{name}.npy", values)
        for i in range(6):
            np.savez(f"{self.folder}/files/{i}.npz", **{name: values[i] for name, values in x.items() if name != "list"})

        def text(value):
            return value.decode() if isinstance(value, bytes) else str(value)

        for name in "stored.npz", "packed.npz", "fields", "files", "fields/u.npy":
            penstock.preprocess(f"{self.folder}/{name}", dest := f"{self.folder}/dataset", overwrite=True, progress=False)
            for path in f"{self.folder}/{name}", dest:
                with self.subTest(name=name, path=path), penstock.open(path) as ds:
                    self.assertEqual(set(ds.fields), {"u"} if name == "fields/u.npy" else set(x) - {"list"} if name == "files" else set(x))
                    for i in range(6):
                        got = {f: json.loads(v) if f == "list" else v for f, v in ds[i].items()}
                        want = {f: list(map(text, x[f][i])) if f == "list" else x[f][i] if f == "n" else text(x[f][i]) for f in got}
                        self.assertEqual(got, want)

    def write(self, path, arrays, r):
        if path.endswith(".npz"):
            r.choice([np.savez, np.savez_compressed])(path, **arrays)
        elif path.endswith(".npy"):
            np.save(path, arrays["data"])
        elif path.endswith(".bin"):
            arrays["data"].tofile(path)
        elif path.endswith(".h5"):
            with h5py.File(path, "w") as f:
                for name, x in arrays.items():
                    f[name] = x
        else:
            save_file({name: np.array(x) for name, x in arrays.items()}, path)

    def test_one_file(self):
        """A folder or a glob of one file is that file; with a declaration, its file is the unit, also where it is named."""
        x = np.arange(12, dtype="f4").reshape(4, 3)
        for kind in "npz", "npy", "safetensors", "h5":
            folder = os.path.join(self.folder, kind)
            os.mkdir(folder)
            path = os.path.join(folder, f"a.{kind}")
            self.write(path, {"data": x} if kind == "npy" else {"x": x, "y": x[:, 0]}, random.Random(0))
            field = "a" if kind == "npy" else "x"
            for where in folder, folder + "/*." + kind, path:
                with self.subTest(where=where):
                    with penstock.open(where) as ds:
                        np.testing.assert_array_equal(ds[field][:], x)
                    with penstock.DataLoader(where, 4, output="numpy") as loader:
                        np.testing.assert_array_equal(next(iter(loader))[field], x)
                    if where == path and kind == "h5":
                        continue  # whose units are its groups
                    name = "data" if kind == "npy" else "x"
                    for door in lambda p: penstock.open(p, records="*"), lambda p: penstock.DataLoader(p, 1, output="numpy", records="*"):
                        with door(where) as records:
                            self.assertEqual(len(records), 1)
                    with penstock.open(where, records="*") as ds:
                        np.testing.assert_array_equal(ds[0][name], x)

    def test_files_without_a_header(self):
        """What is refused says the file, its bytes and those of a row, and a flag that runs."""
        folder = os.path.join(self.folder, "velodyne")
        os.mkdir(folder)
        x = np.arange(20, dtype="f4").reshape(5, 4)
        for i in range(3):
            x[i:].tofile(f"{folder}/{i:06}.bin")
        for records, words in (
            ("*:float32[*,3]", "000000.bin: has 80 bytes, and a row of float32[*,3] has 12, so the last row is cut short"),
            ("*:float32[5,4]", "000001.bin: has 64 bytes, and float32[5,4] has 80"),
            ("*:f4[*,4]", 'unknown type "f4[*,4]"'),
            ("*:text[*]", 'unknown type "text[*]"'),
            ("*[:]:float32[*,4]", "[:] is written at the end"),
            ("*", "files without a header have the type that is declared: records '*:float32[*,4]'"),
            ("*/x:float32", "have no groups"),
        ):
            for door in penstock.open, penstock.DataLoader, lambda p, records: penstock.preprocess(p, p + "-ds", records=records):
                with self.subTest(records=records), self.assertRaises(penstock.Error) as raised:
                    door(folder, records=records)
                self.assertNotIsInstance(raised.exception, penstock.NotFoundError)
                said = re.sub(r'records="([^"]*)"', r"records '\1'", str(raised.exception))  # as preprocess's messages are written in Python
                self.assertIn(words, said.replace("--records", "records"))
        for where in folder, folder + "/*.bin":
            with self.assertRaisesRegex(penstock.Error, "has no header") as raised:
                penstock.DataLoader(where)
            records = re.search(r'records="([^"]*)"', str(raised.exception))[1]
            penstock.preprocess(where, folder + "-ds", records=records, overwrite=True, progress=False)
        for i in range(3):
            x.tofile(f"{folder}/{i:06}.bin")
        with penstock.open(folder, records="*:float32[5,4]") as ds:
            self.assertEqual((ds.fields["data"].shape, ds.fields["data"].ragged), ((5, 4), False))
            np.testing.assert_array_equal(ds["data"][:], [x] * 3)
        said = subprocess.run([data.penstock(), "inspect", f"{folder}::*:float32[*,4]"], check=True, capture_output=True, text=True).stdout
        self.run_command(*shlex.split(said.split("run: penstock ")[1].splitlines()[0])[:-1], folder + "-ds", "--overwrite")

    def test_attributes_and_values_of_units(self):
        path = os.path.join(self.folder, "a.h5")
        with h5py.File(path, "w") as f:
            f.attrs["rate"] = 30.5
            for i, n in enumerate((2, 3)):
                g = f.create_group(f"data/d{i}")
                g["x"], g["task"] = np.arange(n), f"task {i}"
                g.attrs["n"], g.attrs["name"] = n, f"é{i}"
        with penstock.DataLoader(path, 5, output="numpy", records="data/*[:]", fields=["x", "task", "@n", "@name", "/@rate", "step"]) as loader:
            (batch,) = loader
        self.assertEqual(list(batch["task"]), ["task 0"] * 2 + ["task 1"] * 3)
        self.assertEqual((batch["n"].tolist(), list(batch["name"])), ([2, 2, 3, 3, 3], ["é0"] * 2 + ["é1"] * 3))
        self.assertEqual((batch["rate"].tolist(), batch["step"].tolist()), ([30.5] * 5, [0, 1, 0, 1, 2]))
        with penstock.open(path, records="data/*[:]", fields=["x", "@n", "/@rate"]) as ds:
            self.assertEqual((list(ds.fields), ds[4]["n"].tolist(), ds[0]["rate"].tolist()), (["x", "n", "rate"], 3, 30.5))

    def test_differences_are_refused(self):
        path = os.path.join(self.folder, "odd.h5")
        for odd, words in (
            ({"y": np.zeros(4)}, r"d1 has no x, which d0 has"),
            ({"x": np.zeros((4, 2))}, r"d0/x is 4 rows of .*d1/x is 4 rows of"),
            ({"x": np.zeros(4, "f4")}, r"so they are not one field"),
        ):
            with h5py.File(path, "w") as f:
                f["d0/x"] = np.zeros(4)
                for name, x in odd.items():
                    f[f"d1/{name}"] = x
            for door in (penstock.open, penstock.DataLoader, lambda p, records: penstock.preprocess(p, p + ".flat", records=records)):
                with self.assertRaisesRegex(penstock.Error, words):
                    door(path, records="*[:]")
        with h5py.File(path, "w") as f:
            f["x"], f["y"] = np.zeros((4, 2)), np.zeros(4)
        with self.assertRaisesRegex(
            penstock.Error, "y is 4 rows of float64: they are arrays and no groups that are alike; leave the declaration out"
        ):
            penstock.open(path, records="*[:]")
        with penstock.open(path) as ds:
            self.assertEqual((len(ds), list(ds.fields)), (4, ["x", "y"]))

    def write_day(self, path, day, hours, **changes):
        """Write a file of netCDF, as h5netcdf and the C library do."""
        with h5py.File(path, "w") as f:
            values = {"time": np.arange(hours) + 24 * day, "lat": np.arange(3.0), "lon": np.arange(4.0)} | changes
            since = values.pop("since", "2020-01-01")
            for name, x in values.items():
                d = f.create_dataset(name, data=x, maxshape=(None,) if name == "time" else None)
                d.make_scale(name)
            f["time"].attrs["units"] = f"hours since {since}"
            for name, axes in {"t2m": ("time", "lat", "lon"), "p": ("time",), "mask": ("lat", "lon")}.items():
                shape = tuple(len(f[a]) for a in axes)
                x = np.random.default_rng(day).normal(size=shape).astype("f4") if name != "mask" else np.ones(shape, "i1")
                d = f.create_dataset(name, data=x, maxshape=(None, *shape[1:]) if axes[0] == "time" else None)
                for i, a in enumerate(axes):
                    d.dims[i].attach_scale(f[a])

    def test_a_file_of_netcdf_for_each_day(self):
        """The rows of files along their unlimited axis, beside xarray.open_mfdataset where it can read them."""
        for seed in SEEDS:
            r = random.Random(seed)
            folder = os.path.join(self.folder, f"era5-{seed}")
            os.mkdir(folder)
            days = [r.randrange(1, 5) for _ in range(r.randrange(2, 13))]
            for day, hours in enumerate(days):
                self.write_day(f"{folder}/x_{day}.nc", day, hours)
            want = []
            for day, hours in enumerate(days):
                with h5py.File(f"{folder}/x_{day}.nc") as f:
                    for i in range(hours):
                        want.append({n: f[n][i] for n in ("p", "t2m", "time")} | {"episode": np.int64(day), "step": np.int64(i)})
            if xarray is not None:
                files = natural(os.listdir(folder))
                with xarray.open_mfdataset(
                    [f"{folder}/{f}" for f in files], combine="nested", concat_dim="time", data_vars="minimal", engine="h5netcdf", decode_times=False
                ) as ds:
                    for i, record in enumerate(want):
                        for name in ("p", "t2m", "time"):
                            np.testing.assert_array_equal(record[name], ds[name].values[i])
            self.same(f"{folder}/x_*.nc", want)
            self.same(folder, want, records="*[:]")
            with penstock.open(folder, fields=["lat", "mask"], records="*") as ds:
                self.assertEqual((len(ds), ds[1]["mask"].shape, ds[1]["lat"].tolist()), (len(days), (3, 4), [0, 1, 2]))

    def test_files_of_netcdf_that_differ(self):
        for changes, words in (
            (
                {"lat": np.arange(3.0) + 1},
                "x_1.nc: lat has other values than in x_0.nc; if their records belong together all the same, make a dataset of each",
            ),
            ({"since": "2021-01-01"}, 'x_0.nc/time is in units "hours since 2020-01-01", and x_1.nc/time in units "hours since 2021-01-01"'),
        ):
            folder = tempfile.mkdtemp(dir=self.folder)
            self.write_day(f"{folder}/x_0.nc", 0, 3)
            self.write_day(f"{folder}/x_1.nc", 1, 2, **changes)
            with self.assertRaisesRegex(penstock.Error, re.escape(words)) as e:
                penstock.DataLoader(folder, 2)
            files, fields = [f"{folder}/x_{i}.nc" for i in range(2)], ["time", "t2m"]
            alone = [penstock.open(file, fields=fields) for file in files]
            words = r'"t2m" has other values of lat' if "lat" in changes else r'"time" is in units "hours since 2020-01-01" there, and'
            with self.assertRaisesRegex(penstock.Error, words):
                penstock.DataLoader(files, 2, fields=fields)
            with self.assertRaisesRegex(penstock.Error, words):
                alone[0].concat(alone[1])
            self.assertEqual(len(alone[0].concat(alone[0])), 6)
            if "since" in changes:
                fields = json.loads(re.search(r"fields=(\[.*?\])", str(e.exception))[1])
                penstock.preprocess(folder, folder + ".fields", records="*[:]", fields=fields, progress=False)
                continue
            with self.assertRaisesRegex(penstock.Error, "lat has other values than in x_0.nc"):
                penstock.open(folder, fields=["t2m"])
            for i in range(2):
                self.run_command("preprocess", f"{folder}/x_{i}.nc", f"{folder}/{i}", "--fields", "t2m")
            with penstock.DataLoader([f"{folder}/{i}" for i in range(2)], 5, output="numpy") as loader:
                self.assertEqual(next(iter(loader))["t2m"].shape, (5, 3, 4))

    def test_windows_of_files_of_netcdf(self):
        """A glob has the axes and coordinates that each of its files has."""
        folder = tempfile.mkdtemp(dir=self.folder)
        for i in range(2):
            self.write_day(f"{folder}/x_{i}.nc", i + 1, 3)
        for path in (f"{folder}/x_0.nc", f"{folder}/x_*.nc"):
            for fields in (None, ["t2m"]):
                with penstock.open(path, fields=fields) as ds, ds.windows({"time": 2, "lat": 2}, coords=True) as w:
                    self.assertEqual(ds.fields["t2m"].dims, ("time", "lat", "lon"))
                    last = {name: w[len(w) - 1][name].tolist() for name in ("time", "lat")}
                    self.assertEqual(last, {"time": [25, 26] if path.endswith("_0.nc") else [49, 50], "lat": [1, 2]})
        self.write_day(f"{folder}/x_1.nc", 0, 3)
        with self.assertRaisesRegex(penstock.Error, "x_1.nc: time begins at 0, which does not follow 26, the last in x_0.nc"):
            penstock.open(f"{folder}/x_*.nc")

    def test_encoded_images(self):
        """Files in rows: of any length, or filled up with zeros, as robots write them."""

        def jpeg(i):
            b = io.BytesIO()
            Image.fromarray(np.random.default_rng(i).integers(0, 255, (9, 12, 3), np.uint8)).save(b, "JPEG")
            return b.getvalue()

        files = [jpeg(i) for i in range(5)]
        path, most = os.path.join(self.folder, "i.h5"), max(map(len, files))
        with h5py.File(path, "w") as f:
            vlen = f.create_dataset("vlen", (5,), h5py.vlen_dtype("u1"))
            for i, b in enumerate(files):
                vlen[i] = np.frombuffer(b, "u1")
            f["padded"] = np.stack([np.frombuffer(b.ljust(most, b"\0"), "u1") for b in files])
        folder = os.path.join(self.folder, "aloha")
        os.mkdir(folder)
        for i, part in enumerate((files[:3], files[3:])):  # each fills up to its own longest
            with h5py.File(os.path.join(folder, f"episode_{i}.hdf5"), "w") as f:
                f["cam"] = np.stack([np.frombuffer(b.ljust(max(map(len, part)) + i, b"\0"), "u1") for b in part])
                f["qpos"] = np.arange(len(part))
        want = np.stack([np.asarray(Image.open(io.BytesIO(b))) for b in files])
        transforms = [penstock.transforms.ToImage()]
        with penstock.DataLoader(folder, 5, output="numpy", transforms=transforms, prepare="off") as loader:
            batch = next(iter(loader))
        np.testing.assert_array_equal(batch["cam"].transpose(0, 2, 3, 1), want)
        self.assertEqual((batch["qpos"].tolist(), batch["episode"].tolist()), ([0, 1, 2, 0, 1], [0, 0, 0, 1, 1]))
        for name in "vlen", "padded":
            with penstock.open(path, fields=[name]) as ds, penstock.DataLoader(ds, 5, output="numpy", transforms=transforms) as loader:
                self.assertEqual(ds.fields[name].content, "image")
                np.testing.assert_array_equal(next(iter(loader))[name].transpose(0, 2, 3, 1), want)


if __name__ == "__main__":
    unittest.main()
