"""Single cells: files as AnnData and Cell Ranger write them, beside the matrices that they were written from."""

import json
import os
import shlex
import types
import unittest
import warnings

import numpy as np

import penstock
from penstock import transforms as T

from . import data
from .test_trees import Trees

try:
    import h5py
    import pandas
    import scipy.sparse as sp
    import torch
    import zarr

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"

try:
    import anndata
except ImportError:
    anndata = None

setUpModule = data.name_programs

FIRST = int(os.environ.get("PENSTOCK_TEST_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("PENSTOCK_TEST_TREES", "12")))


def encoded(item, kind, **attrs):
    """Note AnnData's encoding of an HDF5 object."""
    old = kind in ("anndata", "csr_matrix", "csc_matrix", "dict", "raw", "nullable-integer", "nullable-boolean")
    item.attrs["encoding-type"], item.attrs["encoding-version"] = kind, "0.1.0" if old else "0.2.0"
    for name, value in attrs.items():
        item.attrs[name] = value
    return item


def write_matrix(parent, name, x, layout="csr", index="i4", **options):
    """Write a matrix as AnnData does: dense, or compressed by rows or columns."""
    if layout == "dense":
        encoded(parent.create_dataset(name, data=x, **options), "array")
        return
    m = sp.csr_matrix(x) if layout == "csr" else sp.csc_matrix(x)
    g = encoded(parent.create_group(name), f"{layout}_matrix", shape=np.array(x.shape))
    for part, values in ("data", m.data), ("indices", m.indices.astype(index)), ("indptr", m.indptr.astype(index)):
        g.create_dataset(part, data=values, **({"chunks": (max(1, len(values) // 3),), **options} if len(values) else {}))


def write_frame(parent, name, index, columns):
    """Write a data frame; a column is an array, (codes, categories), or (values, mask) of nullable numbers."""
    g = encoded(parent.create_group(name), "dataframe", _index="_index", **{"column-order": np.array(list(columns), h5py.string_dtype())})
    encoded(g.create_dataset("_index", data=list(index), dtype=h5py.string_dtype()), "string-array")
    for column, values in columns.items():
        if isinstance(values, tuple) and isinstance(values[1], list):
            inner = encoded(g.create_group(column), "categorical", ordered=False)
            inner["codes"], inner["categories"] = values[0].astype("i1"), values[1]
        elif isinstance(values, tuple):
            kinds = {"i": "nullable-integer", "b": "nullable-boolean", "O": "nullable-string-array"}
            inner = encoded(g.create_group(column), kinds[values[0].dtype.kind])
            inner["values"], inner["mask"] = values
        elif isinstance(values, list):
            encoded(g.create_dataset(column, data=values, dtype=h5py.string_dtype()), "string-array")
        else:
            encoded(g.create_dataset(column, data=values), "array")
    return g


def write_cells(path, x, obs=None, layers=None, raw=None, genes=None, index="i4", layout="csr", obsm=None, **options):
    """Write a file as AnnData does."""
    n, width = x.shape
    with h5py.File(path, "w") as f:
        encoded(f, "anndata")
        write_matrix(f, "X", x, layout, index, **options)
        write_frame(f, "obs", [f"cell{i}" for i in range(n)], obs or {})
        write_frame(f, "var", genes or [f"g{i}" for i in range(width)], {})
        for name, y in (layers or {}).items():
            write_matrix(f.require_group("layers"), name, y, **options)
        for name, y in (obsm or {}).items():
            encoded(f.require_group("obsm").create_dataset(name, data=y), "array")
        if raw is not None:
            write_matrix(f.create_group("raw"), "X", raw, **options)
            write_frame(f["raw"], "var", [f"r{i}" for i in range(raw.shape[1])], {})


def as_zarr(path, version):
    """Write the groups and arrays of an HDF5 file as AnnData writes them in a version of Zarr, and return the path."""
    dest = os.path.splitext(path)[0] + ".zarr"
    root = zarr.open_group(dest, mode="w", zarr_format=version)

    def put(name, item):
        if isinstance(item, h5py.Group):
            made = root.require_group(name)
        else:
            text = h5py.check_string_dtype(item.dtype)
            made = root.create_array(name, shape=item.shape, dtype=str if text else item.dtype, chunks=[max(1, n // 2) for n in item.shape])
            made[...] = item.asstr()[()] if text else item[()]
        made.attrs.update({k: v.tolist() if hasattr(v, "tolist") else v for k, v in item.attrs.items()})

    with h5py.File(path) as f:
        root.attrs.update(f.attrs)
        f.visititems(put)
    return dest


def by_hand(parts, align, layout):
    """Return the genes of parts, whose first two values are genes and a matrix, and the joined matrix."""
    lists = [set(genes) for genes, *_ in parts]
    known = set.intersection(*lists) if align == "intersection" else set.union(*lists)
    genes = [g for g in dict.fromkeys(g for part in parts for g in part[0]) if g in known]
    absent = 0 if layout == "csr" else np.nan
    rows = [np.stack([x[:, own.index(g)] if g in own else np.full(len(x), absent) for g in genes], 1) for own, x, *_ in parts]
    return genes, np.concatenate(rows)


def counts(r, n, width, dtype):
    """Return a random matrix; some of its rows are empty."""
    x = r.poisson(r.choice([0.05, 0.5, 2.0]), (n, width)).astype(dtype)
    x[r.random(n) < 0.2] = 0
    return x


def plain(values):
    return values.scipy().toarray() if isinstance(values, penstock.Sparse) else values


@unittest.skipIf(MISSING, MISSING)
class CellsTest(Trees):
    def doors(self, path, n, **options):
        """Yield the fields as whole arrays, by each door."""
        with penstock.open(path, **options) as ds:
            yield "open", {name: plain(ds[name][:]) for name in ds.fields}
            order = np.random.default_rng(n).permutation(n)
            taken = {name: ds[name][order.tolist()] for name in ds.fields}
            whole = {name: plain(v) if isinstance(v, penstock.Sparse) else v for name, v in taken.items()}
            back = np.argsort(order)
            yield "take", {name: [v[i] for i in back] if isinstance(v, penstock.Ragged) and v.is_text else v[back] for name, v in whole.items()}
        with penstock.DataLoader(path, 5, shuffle=True, output="numpy", **options) as loader:
            at, parts = [], {}
            for batch in loader:
                k = int(batch.mask.sum())
                at += batch.indices[:k].tolist()
                for name, v in batch.items():
                    parts.setdefault(name, []).append(plain(v)[:k] if not isinstance(v, penstock.Ragged) or not v.is_text else list(v)[:k])
            back = np.argsort(at)
            rows = {name: [row for p in v for row in p] for name, v in parts.items()}
            yield "DataLoader", {name: [v[i] for i in back] if isinstance(v[0], str) else np.stack(v)[back] for name, v in rows.items()}
        if "fields" not in options:
            for name in "prepared", "prepared.h5", "prepared.zarr":
                dest = os.path.join(self.folder, name)
                penstock.preprocess(path, dest, format="zarr" if name.endswith("zarr") else None, overwrite=True, progress=False, **options)
                with penstock.open(dest) as ds:
                    yield name, {f: plain(ds[f][:]) for f in ds.fields}

    def same(self, path, n, want, **options):
        for door, got in self.doors(path, n, **options):
            self.assertEqual(set(got), set(want), door)
            for name, y in want.items():
                x = list(got[name]) if isinstance(y, list) else got[name]
                if isinstance(y, list):
                    self.assertEqual(x, y, (door, name))
                else:
                    self.assertEqual(x.shape, y.shape, (door, name))
                    self.assertTrue(np.array_equal(x, y), (door, name))

    def test_several_files(self):
        """Genes are joined by name, and categories, beside a join by hand and that of anndata where it is installed."""
        for seed in SEEDS:
            r = np.random.default_rng(seed)
            folder, layout = os.path.join(self.folder, str(seed)), str(r.choice(["csr", "csr", "dense"]))
            os.mkdir(folder)
            parts, files, pool = [], [], [f"g{i}" for i in range(30)]
            kind = str(r.choice(["f4", "i4"])) if layout == "dense" else "f4"
            for k in range(r.integers(1, 5)):
                genes, n = r.permutation(pool)[: r.integers(17, 30)].tolist(), int(r.integers(1, 12))
                x, kinds = counts(r, n, len(genes), kind), r.permutation(list("ABCDE"))[: r.integers(1, 5)].tolist()
                obs = {"type": (r.integers(0, len(kinds), n), kinds), "n": r.normal(size=n)}
                files.append(os.path.join(folder, f"part{k}.h5ad"))
                write_cells(files[-1], x, obs, {"counts": x * 2}, genes=genes, layout=layout, obsm={"pca": r.normal(size=(n, 2))})
                parts.append((genes, x, [kinds[i] for i in obs["type"][0]], obs["n"]))
            listed = r.permutation(len(parts)).tolist()
            for align in ("intersection", "union")[: 2 if kind == "f4" or len(parts) == 1 else 1]:
                genes, want = by_hand(parts, align, layout)
                self.joined(files, want, genes, align, layout)
                for where in (folder, folder + "/*.h5ad") if seed % 2 else (folder,):
                    with self.subTest(seed=seed, align=align, where=where), penstock.open(where, align=align) as ds:
                        self.assertEqual(list(ds.fields["X"].features), genes)
                        names = [f"part{k}.h5ad/cell{i}" for k, part in enumerate(parts) for i in range(len(part[1]))]
                        self.assertTrue(len(parts) == 1 or [ds.source_name(i) for i in range(len(ds))] == names)
                    for door, got in self.doors(where, len(want), align=align):
                        classes = ds.fields["obs/type"].classes
                        np.testing.assert_array_equal(got["X"], want.astype("f4"), door)
                        self.assertEqual([classes[i] for i in got["obs/type"]], [kind for part in parts for kind in part[2]], door)
                        np.testing.assert_array_equal(got["obs/n"], np.concatenate([part[3] for part in parts]), door)
                with penstock.open(folder, align=align, fields=["layers/counts", "episode"]) as ds:
                    np.testing.assert_array_equal(plain(ds["layers/counts"][:]), np.nan_to_num(want).astype("f4") * 2)
                    self.assertEqual(ds["episode"][:].tolist(), [k for k, part in enumerate(parts) for _ in part[1]])
                genes, want = by_hand([parts[k] for k in listed], align, layout)  # a list has its order
                select = {"X": [T.SelectFeatures(genes[3:1:-1])]}
                options = {"align": align, "output": "numpy"}
                with penstock.DataLoader([files[k] for k in listed], 99, transforms=select, **options) as loader:
                    batch = next(iter(loader))
                    np.testing.assert_array_equal(plain(batch["X"])[: len(want)], want[:, 3:1:-1].astype("f4"))
            for where in (folder, files) if len(parts) > 1 else ():
                for door in (penstock.open, penstock.DataLoader) if where is folder else (penstock.DataLoader,):
                    with self.assertRaisesRegex(penstock.Error, 'align="intersection"'):
                        door(where)

    def joined(self, files, want, genes, align, layout):
        """Have anndata join files to the same values, where it is installed."""
        if anndata is None:
            return
        how = {"intersection": "inner", "union": "outer"}[align]
        got = anndata.concat([anndata.read_h5ad(f) for f in files], join=how)[:, genes].X
        np.testing.assert_array_equal(got.toarray() if layout == "csr" else got, want)

    def test_zarr(self):
        """Several hierarchies of Zarr are joined as files are, and a matrix by columns has the program that writes it by rows."""
        x = counts(np.random.default_rng(4), 9, 5, "f4")
        for i in range(2):
            write_cells(f"{self.folder}/{i}.h5ad", x[4 * i : 4 + 5 * i], genes=list("abcde"))
            as_zarr(f"{self.folder}/{i}.h5ad", 2 + i)
        self.same(self.folder + "/*.zarr", 9, {"X": x})
        os.mkdir(stores := self.folder + "/stores")
        for i in range(2):
            os.rename(f"{self.folder}/{i}.zarr", f"{stores}/{i}.zarr")
        self.same(stores, 9, {"X": x})
        write_cells(self.folder + "/c.h5ad", x, layout="csc")
        with self.assertRaisesRegex(penstock.Error, "by columns.*read_zarr.*write_zarr") as raised:
            penstock.open(as_zarr(self.folder + "/c.h5ad", 3))
        compile(shlex.split(str(raised.exception).split("python -c ")[1])[0], "program", "exec")

    def test_files_that_cannot_be_joined(self):
        folder = os.path.join(self.folder, "several")
        os.mkdir(folder)
        for genes, words in (
            (["a", "a", "b"], "two columns called .a.; give each a name of its own"),
            (["x", "y", "z"], 'have no name that all units have.*align="union"'),
        ):
            write_cells(folder + "/0.h5ad", np.eye(3, dtype="f4"), genes=list("abc"))
            write_cells(folder + "/1.h5ad", np.eye(3, dtype="f4"), genes=genes)
            with self.assertRaisesRegex(penstock.Error, words):
                penstock.DataLoader(folder, align="intersection")
        parts = [penstock.open(f"{folder}/{i}.h5ad") for i in range(2)]
        with self.assertRaisesRegex(penstock.Error, 'other names of its columns, such as genes.*align="intersection"'):
            parts[0].concat(parts[1])
        write_cells(folder + "/1.h5ad", np.eye(3, dtype="f8"), genes=list("abc"))
        with self.assertRaisesRegex(penstock.Error, "so they are not one field; correct it, as there is no other array"):
            penstock.DataLoader(folder, align="union")
        write_cells(folder + "/1.h5ad", np.eye(3, dtype="f4"), genes=list("abc"))
        with penstock.DataLoader(folder, 6, output="numpy") as loader:  # the same genes
            np.testing.assert_array_equal(plain(next(iter(loader))["X"]), np.concatenate([np.eye(3)] * 2))
        np.savez(folder + "/x.npz", x=np.arange(3))
        with self.assertRaisesRegex(penstock.Error, "no array has columns with names"):
            penstock.DataLoader(folder + "/*.npz", align="union")

    def test_random(self):
        """Matrices, columns of obs and arrays of obsm by default; layers, raw and text by name; in HDF5 and both versions of Zarr."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                r = np.random.default_rng(seed)
                n, width = int(r.integers(1, 30)), int(r.integers(1, 40))
                x = counts(r, n, width, r.choice(["f4", "f8", "i8", "i4", "u2"]))
                obs = {
                    "number": r.normal(size=n),
                    "type": (r.integers(0, 3, n), ["a", "b", "c"]),
                    "count": (r.integers(0, 9, n), np.zeros(n, bool)),
                    "flag": (r.random(n) < 0.5, np.zeros(n, bool)),
                    "words": [f"w{i}" for i in r.integers(0, 99, n)],
                    "lost": (np.r_[-1, r.integers(-1, 2, n - 1)], ["a", "b"]),
                    "holes": (r.integers(0, 9, n), np.r_[True, r.random(n - 1) < 0.5]),
                }
                layers, raw = {"counts": x * 2}, counts(r, n, 2 * width, "f4")
                path = os.path.join(self.folder, f"{seed}.h5ad")
                pca = r.normal(size=(n, 3)).astype("f4")
                options = r.choice([{}, {"compression": "gzip"}, {"compression": "lzf"}])
                layout = str(r.choice(["csr", "csr", "dense"]))
                write_cells(path, x, obs, layers, raw, index=str(r.choice(["i4", "i8"])), layout=layout, obsm={"X_pca": pca}, **options)
                if seed % 3:
                    path = as_zarr(path, 1 + seed % 3)
                want = {
                    "X": x, "obs/number": obs["number"], "obs/type": obs["type"][0], "obs/count": obs["count"][0],
                    "obs/flag": obs["flag"][0], "obsm/X_pca": pca,
                }  # fmt: skip
                self.same(path, n, want)
                named = {"layers/counts": x * 2, "raw/X": raw, "obs/words": obs["words"], "obs/_index": [f"cell{i}" for i in range(n)]}
                self.same(path, n, named, fields=list(named))
                with penstock.open(path) as ds:
                    self.assertEqual(ds.fields["obs/type"].classes, ("a", "b", "c"))
                    self.assertEqual(ds.fields["X"].features, tuple(f"g{i}" for i in range(width)))
                    self.assertEqual(ds.fields["X"].width, width if layout == "csr" else 0)
                    self.assertEqual(ds.source_name(n - 1), f"cell{n - 1}")
                with penstock.open(path, fields=["raw/X"]) as ds:
                    self.assertEqual(ds.fields["raw/X"].features[-1], f"r{2 * width - 1}")

    def test_names_of_two_axes(self):
        """Names and categories are one text each: rows of texts are refused, and not taken for names."""
        for array in "obs/_index", "obs/type/categories":
            path = os.path.join(self.folder, "a.h5ad")
            write_cells(path, np.eye(3, dtype="f4"), {"type": (np.array([0, 1, 0]), ["a", "b"])})
            with h5py.File(path, "a") as f:
                words = f[array].asstr()[:]
                del f[array]
                f.create_dataset(array, data=np.stack([words, words], 1), dtype=h5py.string_dtype())
            with self.assertRaisesRegex(penstock.Error, f"{array} is not one axis of values"):
                penstock.open(path)

    def test_filters(self):
        """Conditions are of the values of a cell: pairs of a column and a value are no numbers."""
        path = os.path.join(self.folder, "a.h5ad")
        x = counts(np.random.default_rng(5), 30, 200, "i4")
        write_cells(path, x, layers={"counts": x})
        with penstock.open(path, fields=["X", "layers/counts"]) as ds:
            for field in "X", "`layers/counts`":
                some = ds.filter(f"len({field}) > 0 and max({field}[:, 1]) > 1")
                np.testing.assert_array_equal(plain(some["X"][:]), x[x.max(1) > 1])
                np.testing.assert_array_equal(plain(ds.filter(f"len({field}) = 0")["X"][:]), x[(x == 0).all(1)])
                for wrong in f"max({field}) > 1", f"any({field} > 1)", f"any({field}[0, :] > 1)":
                    with self.assertRaisesRegex(penstock.Error, r"holds pairs of a column and a value; ask for .*\[:, 1\]"):
                        ds.filter(f"len({field}) > 0 and {wrong}")

    def test_missing(self):
        """A column with missing values is refused by name in HDF5 and Zarr, without a copy in the cache, and the program of the message fills it."""
        path, mask, words = os.path.join(self.folder, "a.h5ad"), np.array([True, False, True]), np.array(["a", "b", "c"], h5py.string_dtype())
        columns = {"n": (np.arange(3), mask), "on": (np.array([True, False, True]), mask), "word": (words, mask)}
        write_cells(path, np.eye(3, dtype="f4"), {"type": (np.array([0, -1, 0]), ["a"]), **columns})
        frame = {
            "type": pandas.Series(pandas.Categorical(["a", None, "a"])),
            "n": pandas.Series([None, 1, None], dtype="Int64"),
            "on": pandas.Series([None, False, None], dtype="boolean"),
            "word": pandas.Series([None, "b", None], dtype="string"),
        }
        for file in path, as_zarr(path, 2), as_zarr(path, 3):
            for name, missing in ("type", 1), ("n", 2), ("on", 2), ("word", 2):
                with self.assertRaisesRegex(penstock.Error, f"{missing} values are missing") as raised:
                    penstock.open(file, fields=[f"obs/{name}"], cache_dir=os.path.join(self.folder, "cache"))
                program = shlex.split(str(raised.exception).split("python -c ")[1])[0]
                compile(program, "program", "exec")
                cells = types.SimpleNamespace(obs=dict(frame))
                exec(program.split("; ")[2], {"a": cells})
                self.assertFalse(cells.obs[name].isna().any())
        self.assertFalse(os.path.exists(os.path.join(self.folder, "cache")))

    def test_by_columns(self):
        """A matrix that is compressed by columns is refused, with the program that writes it by rows; it is not needed by others."""
        path = os.path.join(self.folder, "a.h5ad")
        write_cells(path, np.eye(3, dtype="f4"), {"n": np.arange(3)}, layout="csc")
        for door in penstock.open, lambda p: next(iter(penstock.DataLoader(p, 2))), lambda p: penstock.preprocess(p, p + ".ds", progress=False):
            with self.assertRaisesRegex(penstock.Error, "by columns") as raised:
                door(path)
            compile(shlex.split(str(raised.exception).split("python -c ")[1])[0], "program", "exec")
        with penstock.open(path, fields=["obs/n"]) as ds:
            self.assertEqual(ds["obs/n"][:].tolist(), [0, 1, 2])

    def test_cell_ranger(self):
        """The columns of 10x's matrix are cells."""
        path = os.path.join(self.folder, "10x.h5")
        x = counts(np.random.default_rng(1), 9, 20, "i4")
        m = sp.csr_matrix(x)
        with h5py.File(path, "w") as f:
            g = f.create_group("matrix")
            g["data"], g["indices"], g["indptr"], g["shape"] = m.data, m.indices.astype("i8"), m.indptr.astype("i8"), np.array([20, 9], "i4")
            g["barcodes"] = np.array([f"AAAC{i}-1" for i in range(9)], "S18")
            g["features/name"] = np.array([f"G{i % 15}" for i in range(20)], "S9")
            g["features/id"] = np.array([f"E{i}" for i in range(20)], "S9")
        self.same(path, 9, {"X": x})
        with penstock.open(path) as ds:
            self.assertEqual(ds.source_name(3), "AAAC3-1")
            self.assertEqual(ds.fields["X"].features[:2], ("G0", "G1"))

    def test_forms(self):
        """A batch is a matrix of SciPy and of torch, with the same memory as a tensor."""
        caught = warnings.catch_warnings()  # of torch, that its sparse tensors are in beta
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore", UserWarning)
        for dtype in "float32", "int32", "int64":
            path = os.path.join(self.folder, dtype + ".h5ad")
            x = counts(np.random.default_rng(2), 12, 30, dtype)
            write_cells(path, x)
            with penstock.DataLoader(path, 12) as loader:
                batch = next(iter(loader))["X"]
            self.assertIsInstance(batch, penstock.torch.Sparse)
            self.assertEqual(batch.shape, (12, 30))
            self.assertEqual(batch.torch().layout, torch.sparse_csr)
            self.assertTrue(torch.equal(batch.to("cpu").torch().to_dense(), torch.from_numpy(x)))
            self.assertTrue(torch.equal(batch[::-2].torch().to_dense(), torch.from_numpy(x[::-2].copy())))
            self.assertTrue(np.array_equal(batch.scipy().toarray(), x))
            with penstock.open(path) as ds:
                rows = ds["X"][2:7]
                self.assertEqual((rows.indptr[-1], rows.indices.dtype, rows.data.dtype), (np.count_nonzero(x[2:7]), "int32", dtype))
                self.assertTrue(torch.equal(rows.torch().to_dense(), torch.from_numpy(x[2:7])))
                self.assertTrue(np.array_equal(rows.copy().scipy().toarray(), x[2:7]))

    def test_transforms(self):
        """The numbers of scanpy's normalize_total and log1p, of chosen genes, in rows and in arrays, loaded and written."""
        x = counts(np.random.default_rng(3), 40, 30, "f4")
        total = x.sum(1, keepdims=True, dtype="f8")
        want = np.log1p(x / np.where(total > 0, total, 1) * 1e4)[:, [7, 3, 20]].astype("f4")
        steps = [T.NormalizeTotal(1e4), T.Log1p(), T.SelectFeatures(["g7", "g3", "g20"])]
        for layout in "csr", "dense":
            path = os.path.join(self.folder, f"{layout}.h5ad")
            write_cells(path, x, layout=layout)
            for ends in ([], [T.ToDense()]) if layout == "csr" else ([],):
                with penstock.DataLoader(path, 7, transforms={"X": [*steps, *ends]}, output="numpy") as loader:
                    self.assertEqual(loader.fields["X"].features, ("g7", "g3", "g20"))
                    got = [plain(b["X"])[: int(b.mask.sum())] for b in loader]
                np.testing.assert_allclose(np.concatenate(got), want, rtol=1e-6)
                dest = os.path.join(self.folder, "prepared")
                pipeline = os.path.join(self.folder, "pipeline.json")
                with open(pipeline, "w") as f:
                    json.dump({"transforms": [{"field": "X", **entry} for entry in T.Compose([*steps, *ends]).to_json()]}, f)
                penstock.preprocess(path, dest, pipeline=pipeline, overwrite=True, progress=False)
                with penstock.open(dest) as ds:
                    np.testing.assert_allclose(plain(ds["X"][:]), want, rtol=1e-6)
                    self.assertEqual(ds.fields["X"].features, ("g7", "g3", "g20"))
        with self.assertRaisesRegex(penstock.Error, "put ToDense before it"):
            penstock.DataLoader(os.path.join(self.folder, "csr.h5ad"), 7, transforms={"X": [T.Scale(2)]})

    def test_corrupt(self):
        """A column beyond the matrix, and rows that go back, are errors."""
        for part, values in ("indices", [0, 99]), ("indptr", [0, 2, 1]), ("indptr", [0, 1, 3]):
            path = os.path.join(self.folder, "a.h5ad")
            write_cells(path, np.eye(2, dtype="f4"))
            with h5py.File(path, "r+") as f:
                f["X"][part][...] = values
            with self.subTest(part=part, values=values), self.assertRaises(penstock.Error):
                with penstock.open(path) as ds:
                    ds["X"][:]


if __name__ == "__main__":
    unittest.main()
