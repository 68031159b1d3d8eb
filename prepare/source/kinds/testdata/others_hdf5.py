"""Writes HDF5 files as h5py, netCDF4, PyTables, pandas and AnnData write them, and prints as JSON what the fields of each hold:
a list of [file, fields to select, {field: [type, sha256 of all values]}].

usage: others_hdf5.py OUTDIR

A library that is not installed is left out, and named on stderr.
"""
import hashlib
import importlib
import json
import os
import sys
import warnings

import h5py
import numpy as np

out = sys.argv[1]
warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
cases = []
N = 53
WORDS = ["", "a", "two words", "\u00fcber \u4e16\u754c", "x" * 300, " padded "]


def path(name):
    return os.path.join(out, name)


def texts(n=N):
    return [WORDS[i] for i in rng.integers(0, len(WORDS), n)]


def digest(values):
    """Values of any length: the length of each as 8 bytes, and its bytes."""
    h = hashlib.sha256()
    for v in values:
        b = v.encode() if isinstance(v, str) else v if isinstance(v, bytes) else np.ascontiguousarray(v).tobytes()
        h.update(len(b).to_bytes(8, "little") + b)
    return h.hexdigest()


def native(a):
    return a.astype(a.dtype.newbyteorder("<")) if a.dtype.byteorder == ">" else a


def case(name, fields, select=""):
    cases.append([path(name), select, {k: digest([native(np.asarray(x)) if not isinstance(x, (str, bytes)) else x for x in v]) for k, v in fields.items()}])


def create(name, write, fields, select="", **kw):
    with h5py.File(path(name), "w", **kw) as f:
        write(f)
    case(name, fields, select)


def strings():
    t = texts()
    ascii_ = ["%d" % (i * i) for i in range(N)]
    for layout, kw in {"contiguous": {}, "gzip": dict(chunks=(7,), compression="gzip"), "grows": dict(chunks=(50,), maxshape=(None,))}.items():
        create("vlen-%s.h5" % layout, lambda f: f.create_dataset("t", data=t, **kw), {"t": t})
        create("vlen-ascii-%s.h5" % layout, lambda f: f.create_dataset("t", data=ascii_, dtype=h5py.string_dtype("ascii"), **kw), {"t": ascii_})
        fixed = np.array([x.encode() for x in t], "S300")
        create("fixed-%s.h5" % layout, lambda f: f.create_dataset("t", data=fixed, **kw), {"t": t})
    create("fixed-utf8.h5", lambda f: f.create_dataset("t", data=np.array([x.encode() for x in t], h5py.string_dtype("utf-8", 310))), {"t": t})

    def space(f):
        k = h5py.h5t.C_S1.copy()
        k.set_size(8)
        k.set_strpad(h5py.h5t.STR_SPACEPAD)
        d = h5py.h5d.create(f.id, b"t", k, h5py.h5s.create_simple((N,)))
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([x.ljust(8) for x in ascii_], "S8"), k)

    create("space-padded.h5", space, {"t": ascii_})
    x = np.arange(N)
    create("names-of-another-length.h5", lambda f: (f.create_dataset("x", data=x), f.create_dataset("names", data=["a", "b"])), {"x": x})
    lists = [np.arange(n % 5, dtype="i4") for n in range(N)]

    def ragged(f):
        d = f.create_dataset("l", (N,), h5py.vlen_dtype("i4"), chunks=(9,))
        b = f.create_dataset("b", (N,), h5py.vlen_dtype(">f8"))
        for i, v in enumerate(lists):
            d[i], b[i] = v, v

    create("lists.h5", ragged, {"l": lists, "b": [v.astype("f8") for v in lists]})


def enums():
    v = rng.integers(0, 3, N)
    for base in ("u1", ">i2", "i8"):
        t = h5py.enum_dtype({"cat": 7, "dog": 1, "emu": 100}, base)
        create("enum%s.h5" % base.strip(">"), lambda f: f.create_dataset("e", data=np.array([1, 7, 100])[v].astype(base), dtype=t, chunks=(8,), compression="gzip"), {"e": np.array([1, 7, 100])[v].astype(base.strip(">"))})
    t = h5py.enum_dtype({"emu": 2, "cat": 0, "dog": 1}, "u1")
    create("enum-classes.h5", lambda f: f.create_dataset("e", data=v.astype("u1"), dtype=t), {"e": v.astype("i8")})
    unnamed = np.where(v == 2, 255, v).astype("u1")
    create("enum-unnamed.h5", lambda f: f.create_dataset("e", data=unnamed, dtype=t), {"e": unnamed}, "e:uint8")
    t = h5py.enum_dtype({"a": 0, "b": 1}, "i4")
    m = rng.integers(0, 2, (N, 3)).astype("i4")
    create("enum-array.h5", lambda f: f.create_dataset("e", data=m, dtype=t), {"e": m})
    b = rng.integers(0, 2, N).astype(bool)
    create("bool.h5", lambda f: f.create_dataset("b", data=b, chunks=(5,)), {"b": b})


def compounds():
    inner = np.dtype([("x", ">f4"), ("y", "<f8")])
    t = np.dtype([("id", "<i8"), ("name", "S6"), ("pos", inner), ("m", "<u2", (2, 3)), ("ok", "?"), ("big", ">i4"), ("many", inner, (2,))], align=True)
    a = np.zeros(N, t)
    for i in range(N):
        a[i] = (i, b"n%d" % i, (i / 2, i / 4), np.arange(6).reshape(2, 3) + i, i % 2, -i, [(i, 1), (2, i)])
    fields = {"c/id": a["id"], "c/name": ["n%d" % i for i in range(N)], "c/pos/x": a["pos"]["x"], "c/pos/y": a["pos"]["y"], "c/m": a["m"], "c/ok": a["ok"], "c/big": a["big"],
              "c/many/x": a["many"]["x"], "c/many/y": a["many"]["y"]}
    for name, kw in {"contiguous": {}, "gzip": dict(chunks=(10,), compression="gzip", shuffle=True)}.items():
        create("compound-%s.h5" % name, lambda f: f.create_dataset("c", data=a, **kw), fields)
    create("compound-member.h5", lambda f: f.create_dataset("g/c", data=a), {"id": a["id"], "where_x": a["pos"]["x"], "where_y": a["pos"]["y"]}, "g/c/id=id,g/c/pos/x=where_x,g/c/pos/y=where_y")
    create("compound-all.h5", lambda f: (f.create_dataset("g/c", data=a[["id", "ok"]]), f.create_dataset("other", data=np.arange(3))), {"r/id": a["id"], "r/ok": a["ok"]}, "g/c=r")
    create("compound-rows.h5", lambda f: f.create_dataset("c", data=a[:50].reshape(10, 5)[["id", "m"]]), {"c/id": a["id"][:50].reshape(10, 5), "c/m": a["m"][:50].reshape(10, 5, 2, 3)})
    z = rng.normal(size=(N, 2)).astype("c8")
    create("complex.h5", lambda f: f.create_dataset("z", data=z), {"z": z.view("f4").reshape(N, 2, 2)})
    create("opaque.h5", lambda f: f.create_dataset("o", data=np.arange(7 * N, dtype="u1").view("V7")), {"o": np.arange(7 * N, dtype="u1").reshape(N, 7)})
    t = np.dtype([("n", "i4"), ("t", h5py.string_dtype()), ("l", h5py.vlen_dtype("i2"))])
    words = texts()

    def write(f):
        d = f.create_dataset("c", (N,), t, chunks=(6,))
        for i, w in enumerate(words):
            d[i] = (i, w, np.arange(i % 4, dtype="i2"))

    create("compound-vlen.h5", write, {"c/n": np.arange(N, dtype="i4"), "c/t": words, "c/l": [np.arange(i % 4, dtype="i2") for i in range(N)]})


def external():
    a = rng.normal(size=(N, 3)).astype(">f4")
    a[:20].tofile(path("one.raw"))
    with open(path("two.raw"), "wb") as f:
        f.write(b"head" + a[20:].tobytes())
    os.chdir(out)
    create("external.h5", lambda f: f.create_dataset("x", shape=a.shape, dtype=a.dtype, external=[("one.raw", 0, 240), ("two.raw", 4, h5py.h5f.UNLIMITED)]), {"x": a})


def virtual():
    os.makedirs(path("parts"), exist_ok=True)
    a = rng.normal(size=(4, 10, 6)).astype("f4")
    for i in range(4):
        with h5py.File(path("parts/%d.h5" % i), "w") as f:
            f.create_dataset("x", data=a[i], chunks=(3, 6), compression="gzip")
            f.create_dataset("big", data=a[i].astype(">f4"))
            f.create_dataset("row", data=a[i, 0])
            f.create_dataset("names", data=["n%d" % (10 * i + k) for k in range(10)])

    def source(i, name="x"):
        return h5py.VirtualSource("parts/%d.h5" % i, name, shape=(10, 6))

    def concat(f, name="x", dtype="f4"):
        l = h5py.VirtualLayout((40, 6), dtype)
        for i in range(4):
            l[10 * i:10 * i + 10] = source(i, name)
        f.create_virtual_dataset("x", l, fillvalue=-1)

    def stack(f):
        l = h5py.VirtualLayout((4, 10, 6), "f4")
        for i in range(4):
            l[i] = source(i)
        f.create_virtual_dataset("x", l)

    def interleave(f):
        l = h5py.VirtualLayout((40, 6), "f4")
        for i in range(4):
            l[i::4] = source(i)
        f.create_virtual_dataset("x", l)

    def columns(f):
        l = h5py.VirtualLayout((10, 24), "f4")
        for i in range(4):
            l[:, 6 * i:6 * i + 6] = source(i)
        f.create_virtual_dataset("x", l)

    def pieces(f):
        l = h5py.VirtualLayout((12, 9), "f4")
        l[1:6, 2:8:2] = source(0)[0:10:2, 0:3]
        l[7:9, :5] = source(1)[3:5, 1:6]
        f.create_virtual_dataset("x", l, fillvalue=7.5)

    def swapped(f):
        l = h5py.VirtualLayout((6, 10), "f4")
        for k in range(6):
            l[k] = source(2)[:, k]
        f.create_virtual_dataset("x", l)

    def rows(f):
        l = h5py.VirtualLayout((24,), "f4")
        for i in range(4):
            l[6 * i:6 * i + 6] = h5py.VirtualSource("parts/%d.h5" % i, "row", shape=(6,))
        f.create_virtual_dataset("x", l)

    def nested(f):
        l = h5py.VirtualLayout((20, 6), "f4")
        l[:10] = h5py.VirtualSource("concat.h5", "x", shape=(40, 6))[5:15]
        l[10:] = h5py.VirtualSource(".", "here", shape=(10, 6))
        f.create_dataset("here", data=a[3])
        f.create_virtual_dataset("x", l)

    p = np.full((12, 9), 7.5, "f4")
    p[1:6, 2:8:2] = a[0][0:10:2, 0:3]
    p[7:9, :5] = a[1][3:5, 1:6]
    for libver in ("earliest", "latest"):
        s = "" if libver == "earliest" else "-" + libver
        create("concat%s.h5" % s, concat, {"x": a.reshape(40, 6)}, libver=libver)
        create("stack%s.h5" % s, stack, {"x": a}, libver=libver)
        create("interleave%s.h5" % s, interleave, {"x": a.transpose(1, 0, 2).reshape(40, 6)}, libver=libver)
        create("columns%s.h5" % s, columns, {"x": a.transpose(1, 0, 2).reshape(10, 24)}, libver=libver)
        create("pieces%s.h5" % s, pieces, {"x": p}, libver=libver)
        create("swapped%s.h5" % s, swapped, {"x": a[2].T}, libver=libver)
        create("rows%s.h5" % s, rows, {"x": a[:, 0].ravel()}, libver=libver)
        create("nested%s.h5" % s, nested, {"x": np.concatenate([a.reshape(40, 6)[5:15], a[3]])}, "x", libver=libver)
    create("concat-big.h5", lambda f: concat(f, "big", ">f4"), {"x": a.reshape(40, 6)})
    create("concat-mixed.h5", lambda f: concat(f, "big", "f4"), {"x": a.reshape(40, 6)})


def netcdf(nc):
    with nc.Dataset(path("nc.nc"), "w") as f:
        f.createDimension("time", None)
        f.createDimension("x", 4)
        f.createDimension("len", 7)
        t = f.createVariable("t", "f4", ("time", "x"), compression="zlib")
        t[:] = a = rng.normal(size=(N, 4)).astype("f4")
        c = f.createVariable("chars", "S1", ("time", "len"))
        words = ["w%d" % i for i in range(N)]
        c[:] = nc.stringtochar(np.array(words, "S7"))
        s = f.createVariable("text", str, ("time",))
        v = f.createVariable("ragged", f.createVLType(np.int16, "list"), ("time",))
        e = f.createVariable("kind", f.createEnumType(np.int8, "kinds", {"a": 0, "b": 3}), ("time",), fill_value=0)
        e[:] = np.arange(N) % 2 * 3
        lists = [np.arange(i % 3 + 1, dtype="i2") for i in range(N)]
        for i in range(N):
            s[i], v[i] = words[i], lists[i]
        pair = f.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair")
        d = np.zeros(N, [("a", "i4"), ("b", "f8")])
        d["a"], d["b"] = np.arange(N), np.arange(N) / 3
        f.createVariable("pairs", pair, ("time",))[:] = d
    fields = {"t": a, "chars": words, "text": words, "ragged": lists, "kind": np.arange(N) % 2, "pairs_a": d["a"], "pairs_b": d["b"]}
    case("nc.nc", fields, "t,chars,text,ragged,kind,pairs")
    for kw in (dict(compression="zstd"), dict(compression="bzip2"), dict(compression="blosc_lz4", blosc_shuffle=2), dict(compression="szip", szip_coding="nn")):
        name = "nc-%s.nc" % kw["compression"]
        try:
            with nc.Dataset(path(name), "w") as f:
                f.createDimension("n", N)
                f.createDimension("x", 4)
                f.createVariable("t", "f4", ("n", "x"), **kw)[:] = np.round(a)
        except Exception as e:
            print("netCDF4 without", kw, e, file=sys.stderr)
            continue
        case(name, {"t": np.round(a)})


def tables(tb):
    for lib in (None, "zlib", "blosc", "blosc2", "bzip2"):
        filters = tb.Filters(complevel=5 if lib else 0, complib=lib or "zlib")
        name = "tables-%s.h5" % lib
        with tb.open_file(path(name), "w", filters=filters) as f:
            kind = tb.Enum(["red", "green"])
            t = f.create_table("/", "t", {"a": tb.Int32Col(), "name": tb.StringCol(8), "x": tb.Float64Col(shape=(2,)), "b": tb.BoolCol(), "k": tb.EnumCol(kind, "red", "uint8")})
            for i in range(N):
                t.append([(i, i % 2 == 0, i % 2, b"row%d" % i, (i, i + 0.5))])
            v = f.create_vlarray("/", "ragged", tb.Int32Atom(), filters=tb.Filters(0))
            for i in range(N):
                v.append(list(range(i % 4)))
        with tb.open_file(path(name)) as f:
            a = f.root.t.read()
        fields = {"t/a": a["a"], "t/name": [x.decode() for x in a["name"]], "t/x": a["x"], "t/b": a["b"].astype("u1"), "t/k": a["k"].astype("i8"), "ragged": [np.arange(i % 4, dtype="i4") for i in range(N)]}
        case(name, fields, "t,ragged")


def pandas(pd):
    d = pd.DataFrame({"a": np.arange(N), "b": np.arange(N) / 2, "c": np.arange(N) / 3, "s": ["s%d" % i for i in range(N)]})
    for lib in (None, "zlib", "blosc:zstd"):
        name = "pandas-%s.h5" % str(lib).replace(":", "-")
        d.to_hdf(path(name), key="df", format="table", data_columns=True, complib=lib, complevel=5 if lib else 0)
        case(name, {"a": d["a"], "b": d["b"], "s": list(d["s"])}, "df/table/a=a,df/table/b=b,df/table/s=s")
    d[["b", "c"]].to_hdf(path("pandas-blocks.h5"), key="df", format="table")
    case("pandas-blocks.h5", {"index": np.arange(N), "v": d[["b", "c"]].values}, "df/table/index=index,df/table/values_block_0=v")
    d[["b", "c"]].to_hdf(path("pandas-fixed.h5"), key="df", format="fixed")
    case("pandas-fixed.h5", {"v": d[["b", "c"]].values}, "df/block0_values=v")


def anndata(ad):
    import pandas as pd
    import scipy.sparse as sp
    dense = rng.poisson(0.5, (N, 11)).astype("f4")
    obs = pd.DataFrame({"kind": pd.Categorical(["k%d" % (i % 3) for i in range(N)]), "n": np.arange(N), "batch": pd.Categorical(np.arange(N) % 2)}, index=["c%d" % i for i in range(N)])
    var = pd.DataFrame(index=["g%d" % i for i in range(11)])
    more = {"obs/kind": "kind", "obs/n": "n", "obs/_index": "id", "obs/batch": "batch"}
    fields = {"kind": np.arange(N) % 3, "n": np.arange(N), "id": ["c%d" % i for i in range(N)], "batch": np.arange(N) % 2}
    chosen = ",".join("%s=%s" % kv for kv in more.items())
    m = sp.csr_matrix(dense)
    rows = {"X": [np.stack([m[i].indices, m[i].data], 1).astype("f4") for i in range(N)]}
    for kw in ({}, dict(compression="gzip"), dict(compression="lzf")):
        name = "-".join(["ad"] + list(kw.values()))
        ad.AnnData(dense, obs, var).write_h5ad(path(name + "-dense.h5ad"), **kw)
        case(name + "-dense.h5ad", {"X": dense, **fields}, "X," + chosen)
        ad.AnnData(m, obs, var).write_h5ad(path(name + "-csr.h5ad"), **kw)
        case(name + "-csr.h5ad", {**rows, **fields}, "X," + chosen)


for make in (strings, enums, compounds, external, virtual):
    make()
for name, make in (("netCDF4", netcdf), ("tables", tables), ("pandas", pandas), ("anndata", anndata)):
    try:
        library = importlib.import_module(name)
        if name == "pandas":
            importlib.import_module("tables")
    except ImportError as e:
        print("without", name, "(%s)" % e, file=sys.stderr)
        continue
    make(library)
print(json.dumps(cases))
