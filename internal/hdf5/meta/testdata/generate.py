"""Writes HDF5 files of every kind into a folder, and answers.json with what h5py says of them.

usage: generate.py OUTDIR
"""
import ctypes
import itertools
import json
import os
import sys
import zlib

import h5py
import numpy as np

out = sys.argv[1]


def bf16():
    t = h5py.h5t.IEEE_F32LE.copy()
    t.set_fields(15, 7, 8, 0, 7)
    t.set_size(2)
    t.set_ebias(127)
    return t


def raw(parent, name, tid, shape, data):
    """A dataset of a low-level type, written as bytes."""
    space = h5py.h5s.create_simple(shape)
    d = h5py.h5d.create(parent.id, name.encode(), tid, space)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, data, mtype=tid)


def fixed_utf8(parent, name, values, size, pad):
    t = h5py.h5t.C_S1.copy()
    t.set_size(size)
    t.set_strpad(pad)
    t.set_cset(h5py.h5t.CSET_UTF8)
    a = np.array([v.encode().ljust(size, b" " if pad == h5py.h5t.STR_SPACEPAD else b"\0") for v in values], dtype="S%d" % size)
    space = h5py.h5s.create_simple((len(values),))
    aid = h5py.h5a.create(parent.id, name.encode(), t, space)
    aid.write(a, mtype=t)


NUMBERS = ["u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8", ">u2", ">i4", ">i8", ">f4", ">f8", ">f2", "?"]


def contiguous(f):
    rng = np.random.default_rng(1)
    for t in NUMBERS:
        dt = np.dtype(t)
        a = rng.integers(0, 2 if t == "?" else 100, size=(5, 3, 2)).astype(dt)
        f.create_dataset("num_" + t.replace("<", "le_").replace(">", "be_").replace("?", "bool"), data=a)
    f.create_dataset("scalar", data=np.float32(1.5))
    f.create_dataset("empty", data=h5py.Empty("f4"))
    f.create_dataset("zero", shape=(0, 3), dtype="f4")
    f.create_dataset("late", shape=(4, 4), dtype="i4")
    f.create_dataset("fill", data=np.full((4, 4), 7, "i4"), fillvalue=-3)
    f.create_dataset("big", data=np.zeros((10, 1000), "u1"))
    raw(f, "bf16", bf16(), (4,), np.array([0x3F80, 0x4000, 0xC040, 0x0001], "u2"))
    f.create_dataset("fixed", data=np.array([b"cat", b"dog", b"mouse"], dtype="S6"))
    f.create_dataset("names", data=["cat", "h\u00e9", "", "mouse" * 20], dtype=h5py.string_dtype())
    f.create_dataset("compound", data=np.array([(1, 2.0, b"x")], dtype=[("a", "i4"), ("b", "<f8"), ("c", "S3")]))
    f.create_dataset("nested", shape=(2,), dtype=[("p", [("x", "f4"), ("y", "f4")]), ("m", "f4", (2, 3))])
    f.create_dataset("opaque", data=np.zeros(3, "V5"))
    f.create_dataset("enum", data=np.array([0, 2], "u2"), dtype=h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, basetype="u2"))
    f.create_dataset("vlen", shape=(3,), dtype=h5py.vlen_dtype("i4"))
    f.create_dataset("ref", shape=(1,), dtype=h5py.ref_dtype)
    f.create_dataset("regref", shape=(1,), dtype=h5py.regionref_dtype)
    f.create_dataset("array", shape=(2,), dtype=np.dtype(("i4", (3,))))
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_layout(h5py.h5d.COMPACT)
    d = h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((5,)), dcpl)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(5, dtype="i4"))
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    dcpl.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    h5py.h5d.create(f.id, b"early", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((64, 7)), dcpl)


def chunked(f):
    rng = np.random.default_rng(2)
    a = rng.integers(0, 9, size=(33, 20)).astype("i4")

    def add(name, **kw):
        f.create_dataset(name, data=a, **kw)

    add("plain", chunks=(10, 7))
    add("gzip", chunks=(10, 7), compression="gzip", compression_opts=4)
    add("all", chunks=(8, 8), compression="gzip", shuffle=True, fletcher32=True)
    add("lzf", chunks=(8, 8), compression="lzf")
    add("single", chunks=(33, 20))
    add("single_gzip", chunks=(33, 20), compression="gzip")
    add("ones", chunks=(1, 1))
    add("grow1", chunks=(4, 5), maxshape=(None, 20))
    add("grow1_gzip", chunks=(1, 5), maxshape=(None, 20), compression="gzip")
    add("grow1_tiny", chunks=(1, 1), maxshape=(None, 20))
    add("grow2", chunks=(4, 5), maxshape=(None, None))
    add("grow2_gzip", chunks=(1, 2), maxshape=(None, None), compression="gzip", shuffle=True)
    add("limit", chunks=(4, 5), maxshape=(100, 50))
    add("col", chunks=(4, 5), maxshape=(33, None))
    add("col_gzip", chunks=(4, 5), maxshape=(40, None), compression="gzip")
    f.create_dataset("mid", data=rng.random((6, 5, 4)).astype("f4"), chunks=(2, 2, 3), maxshape=(9, None, 4))
    f.create_dataset("none", shape=(33, 20), dtype="f4", chunks=(5, 5))
    f.create_dataset("none_gzip", shape=(33, 20), dtype="f4", chunks=(5, 5), compression="gzip")
    f.create_dataset("none_grow", shape=(0, 20), dtype="f4", chunks=(5, 5), maxshape=(None, 20))
    s = f.create_dataset("sparse", shape=(40, 40), dtype="u2", chunks=(4, 4), fillvalue=9)
    s[5:7, 9] = 1
    s[30:, 30:] = 2
    s = f.create_dataset("sparse_gzip", shape=(40, 40), dtype="u2", chunks=(4, 4), compression="gzip", maxshape=(None, 40))
    s[30:, 30:] = 2
    d = f.create_dataset("paged", shape=(3000,), dtype="u1", chunks=(2,))
    d[10:30] = 1
    d[2500:2700] = 2
    d = f.create_dataset("paged_full", data=np.arange(2500, dtype="u2"), chunks=(2,))
    d = f.create_dataset("grow_many", data=np.arange(1800, dtype="u2"), chunks=(1,), maxshape=(None,))
    d = f.create_dataset("grow_sparse", shape=(300000,), dtype="u1", chunks=(10,), maxshape=(None,))
    d[5] = 1
    d[200000:200100] = 3
    d = f.create_dataset("bt2_many", data=np.arange(1500, dtype="u2").reshape(30, 50), chunks=(1, 1), maxshape=(None, None))
    d = f.create_dataset("bt2_many_gzip", data=np.arange(1000, dtype="u2").reshape(20, 50), chunks=(1, 1), maxshape=(None, None), compression="gzip")
    d = f.create_dataset("shrunk", data=np.arange(200, dtype="u2").reshape(20, 10), chunks=(3, 3), maxshape=(None, 10))
    d.resize((7, 10))
    f.create_dataset("cube", data=rng.random((6, 5, 4, 3)).astype("f4"), chunks=(2, 2, 3, 3), compression="gzip")
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((7, 6))
    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    d = h5py.h5d.create(f.id, b"implicit", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((33, 20)), dcpl)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, a)
    d = f.create_dataset("masked", shape=(4, 10), dtype="u1", chunks=(1, 10), compression="gzip", shuffle=True)
    for i in range(4):
        d.id.write_direct_chunk((i, 0), bytes(range(10)), filter_mask=3 if i % 2 else 1)


def groups(f):
    f.create_group("none")
    few = f.create_group("few")
    for i in range(3):
        few.create_dataset("d%d" % i, data=np.arange(i + 1))
    some = f.create_group("some")
    for i in range(20):
        some.create_dataset("d%02d" % i, data=np.arange(i + 1, dtype="u1"))
    many = f.create_group("many")
    for i in range(600):
        many.create_group("group_with_a_long_name_%04d" % i)
    many.create_dataset("x" * 300, data=np.arange(3))
    for i in range(1200):
        f.create_group("lots/%d" % i)
    deep = f
    for i in range(20):
        deep = deep.create_group("level%d" % i)
    deep.create_dataset("bottom", data=np.arange(4.0))
    ordered = f.create_group("ordered", track_order=True)
    for n in ["z", "a", "m"]:
        ordered.create_dataset(n, data=1)
    ordered = f.create_group("ordered_many", track_order=True)
    for i in range(50):
        ordered.create_dataset("n%d" % (97 * i % 50), data=i)
    f["twice"] = f["few/d1"]
    f["few/again"] = f["some"]
    f["few/up"] = f["few"]
    f["few/root"] = f["/"]
    f["soft"] = h5py.SoftLink("/few/d2")
    f["few/relative"] = h5py.SoftLink("d1")
    f["dangling"] = h5py.SoftLink("/not/there")
    f["ext"] = h5py.ExternalLink("other.h5", "/a/b")
    f["type"] = np.dtype("<i8")
    f.create_dataset("typed", shape=(2,), dtype=f["type"])
    f["ctype"] = np.dtype([("a", "i4"), ("b", "f8")])
    f.create_dataset("ctyped", shape=(2,), dtype=f["ctype"])
    f["\u00e9t\u00e9 \u2603"] = 1


def attributes(f):
    d = f.create_dataset("few", data=np.arange(3))
    fill(d)
    fill(f)
    g = f.create_group("many")
    for i in range(40):
        g.attrs["a%02d" % i] = i
    fill(g)
    g = f.create_group("tracked", track_order=True)
    for i in range(30):
        g.attrs["z%d" % (29 - i)] = "text %d" % i
    g = f.create_group("large")
    g.attrs["bigtext"] = "x" * 100000
    if not f.filename.split("/")[-1].startswith("earliest"):
        g.attrs["big"] = np.arange(20000, dtype="i8")
    f["type"] = np.dtype("<f4")
    f["type"].attrs["on_type"] = 5
    g.attrs.create("committed", 2.5, dtype=f["type"])
    f["many2"] = f["many"]


def fill(o):
    o.attrs["text"] = "h\u00e9llo"
    o.attrs["empty_text"] = ""
    o.attrs["bytes"] = np.bytes_("abc")
    o.attrs["texts"] = ["a", "bb", "c" * 50]
    o.attrs["fixed"] = np.array([b"x", b"yy"], dtype="S4")
    for t in NUMBERS:
        o.attrs["n" + t] = np.array([[0, 1, 1], [1, 0, 1]]).astype(t)
    for t in ["i1", ">i2", "<i4", ">i8"]:
        o.attrs["neg" + t] = np.array([-1, -2, 5], dtype=t)
    o.attrs["u8max"] = np.uint64(2**64 - 1)
    o.attrs["scalar"] = 3.25
    o.attrs["int"] = -7
    o.attrs["flag"] = True
    o.attrs["mean"] = np.array([0.485, 0.456, 0.406], dtype="f4")
    o.attrs["null"] = h5py.Empty("f4")
    o.attrs["ref"] = o.ref
    o.attrs["compound"] = np.array((1, 2.0), dtype=[("a", "i4"), ("b", "f8")])
    o.attrs.create("sub", np.arange(6).reshape(2, 3), dtype=np.dtype(("i4", (3,))), shape=(2, 3))
    fixed_utf8(o, "utf8_null", ["h\u00e9", "b"], 5, h5py.h5t.STR_NULLPAD)
    fixed_utf8(o, "utf8_space", ["h\u00e9", "b"], 5, h5py.h5t.STR_SPACEPAD)
    fixed_utf8(o, "utf8_term", ["h\u00e9", "b"], 5, h5py.h5t.STR_NULLTERM)


def others(f):
    f.create_dataset("ext", shape=(4,), dtype="i4", external=[(os.path.join(out, "payload.bin"), 0, 16)])
    lay = h5py.VirtualLayout(shape=(4,), dtype="i4")
    lay[:] = h5py.VirtualSource("other.h5", "x", shape=(4,))
    f.create_virtual_dataset("virtual", lay)


def number(dt):
    order = "big-endian " if dt.byteorder == ">" else ""
    return order + ("bool" if dt == np.bool_ else dt.name)


def typename(o):
    tid = o.get_type() if hasattr(o, "get_type") else o
    dt = tid.dtype if not isinstance(tid, h5py.h5t.TypeFloatID) or tid.get_size() != 2 or tid.get_fields()[1] == 10 else None
    if dt is None:
        return "bfloat16"
    s = h5py.check_string_dtype(dt)
    if s is not None:
        cs = {"utf-8": "utf-8", "ascii": "ascii"}[s.encoding]
        return "string " + cs if s.length is None else "string[%d] %s" % (s.length, cs)
    if dt.kind in "biuf" and h5py.check_enum_dtype(dt) is None:
        return number(dt)
    names = {
        h5py.h5t.COMPOUND: "compound", h5py.h5t.ENUM: "enum", h5py.h5t.ARRAY: "array", h5py.h5t.VLEN: "vlen",
        h5py.h5t.OPAQUE: "opaque", h5py.h5t.REFERENCE: "reference",
    }
    return names[tid.get_class()]


def plain(v):
    """A JSON value with its kind; floats by repr so that NaN and precision survive."""
    a = np.asarray(v)
    if isinstance(v, h5py.Empty):
        return {"kind": "null"}
    if isinstance(v, str) or a.dtype.kind in "SO" or isinstance(v, bytes):
        if a.dtype.kind == "O" and a.size and isinstance(a.flat[0], (h5py.Reference,)):
            return {"kind": "raw"}
        flat = [x.decode() if isinstance(x, bytes) else str(x) for x in np.atleast_1d(a).ravel().tolist()]
        return {"kind": "strings", "dims": list(a.shape), "strings": flat}
    if a.dtype.kind == "b":
        return {"kind": "bools", "dims": list(a.shape), "bools": a.ravel().tolist()}
    if a.dtype.kind == "u":
        return {"kind": "uints", "dims": list(a.shape), "uints": [str(x) for x in a.ravel().tolist()]}
    if a.dtype.kind == "i":
        return {"kind": "ints", "dims": list(a.shape), "ints": a.ravel().tolist()}
    if a.dtype.kind == "f":
        return {"kind": "floats", "dims": list(a.shape), "floats": a.astype("f8").ravel().tolist()}
    return {"kind": "raw"}


def attrs(o):
    names = {}
    for k in o.attrs:
        names[k] = plain(o.attrs[k])
    return names


def chunks(d):
    """Coordinates, filter mask, offset, size and CRC-32 of every stored chunk.

    libhdf5 1.10 gives offsets of the wrong chunks where only an axis other than the first is
    unlimited: its iterator takes the array's order for that of the coordinates. There
    the offset is left out, and the bytes, which come by another way, must do.
    """
    found = []
    base = d.file.userblock_size if h5py.version.hdf5_version_tuple < (1, 14, 4) else 0  # newer ones count it in
    if d.maxshape[0] is not None and d.maxshape.count(None) == 1:
        for c in itertools.product(*(range(0, n, k) for n, k in zip(d.shape, d.chunks))):
            mask, data = d.id.read_direct_chunk(c)
            found.append([c, mask, -1, len(data), zlib.crc32(data)])
        return found
    for i in range(d.id.get_num_chunks()):
        c = d.id.get_chunk_info(i)
        data = d.id.read_direct_chunk(c.chunk_offset)[1]
        found.append([c.chunk_offset, c.filter_mask, c.byte_offset + base, c.size, zlib.crc32(data)])
    return found


def dataset(d):
    p = d.id.get_create_plist()
    lay = {h5py.h5d.COMPACT: "compact", h5py.h5d.CONTIGUOUS: "contiguous", h5py.h5d.CHUNKED: "chunked"}.get(p.get_layout(), "virtual")
    off = d.id.get_offset()
    if off == d.file.userblock_size - 1:
        off = None  # not allocated: the undefined address plus the user block
    filters = [[f[0], list(f[2])] for f in (p.get_filter(i) for i in range(p.get_nfilters()))]
    r = {
        "kind": "dataset", "type": typename(d.id), "layout": lay, "offset": -1 if off is None else off, "filters": filters,
        "header": h5py.h5o.get_info(d.id).addr, "attrs": attrs(d), "external": p.get_external_count(),
        "space": "null" if d.shape is None else "simple", "dims": list(d.shape or ()),
        "max": [-1 if m is None else m for m in (d.maxshape or ())], "chunks": list(d.chunks or ()),
    }
    if lay == "chunked":
        r["index"] = chunks(d)
    if lay in ("compact", "contiguous") and d.shape is not None and r["external"] == 0 and not r["type"].startswith("bfloat"):
        if r["type"] != "vlen":
            v = d.asstr()[()] if h5py.check_string_dtype(d.dtype) else d[()]
            r["value"] = plain(v)
    return r


def describe(f):
    """Every path that leads somewhere without going round in circles."""
    found = {}

    def visit(g, path, trail):
        for name in sorted(g, key=lambda n: n.encode()):
            full = path.rstrip("/") + "/" + name
            link = g.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                found[full] = {"kind": "soft", "target": link.path}
                continue
            if isinstance(link, h5py.ExternalLink):
                found[full] = {"kind": "external", "target": link.path, "file": link.filename}
                continue
            o = g[name]
            addr = h5py.h5o.get_info(o.id).addr
            if isinstance(o, h5py.Dataset):
                found[full] = dataset(o)
            elif isinstance(o, h5py.Datatype):
                found[full] = {"kind": "type", "type": typename(o.id), "attrs": attrs(o)}
            elif addr in trail:
                found[full] = {"kind": "loop"}
            else:
                found[full] = {"kind": "group", "header": addr, "attrs": attrs(o)}
                visit(o, full, trail + [addr])

    found["/"] = {"kind": "group", "header": h5py.h5o.get_info(f.id).addr, "attrs": attrs(f)}
    visit(f, "/", [h5py.h5o.get_info(f.id).addr])
    return found


def special(f, grow):
    """A bit of everything, for files with unusual sizes of addresses and tree nodes.

    libhdf5 cannot open what it writes if an axis is unlimited and lengths have 4 bytes: grow
    is False there.
    """
    for i in range(30):
        d = f.create_dataset("d%d" % i, data=np.arange(50, dtype="i4"), chunks=(5,), maxshape=(None if i % 2 and grow else 50,))
        d.attrs["text"] = "t%d" % i
        d.attrs["number"] = i
    f.create_dataset("tree", data=np.arange(50, dtype="i4").reshape(5, 10), chunks=(1, 2), maxshape=(None, None) if grow else None)
    f.create_dataset("flat", data=np.arange(50, dtype="i4"))
    for i in range(20):
        f.attrs["a%d" % i] = [i, i]


def library():
    """The libhdf5 that h5py uses, for the calls that it does not wrap; None if not found."""
    try:
        with open("/proc/self/maps") as maps:
            return ctypes.CDLL(next(line.split()[-1] for line in maps if "libhdf5" in line and "_hl" not in line))
    except (OSError, StopIteration):
        return None


def creation(sizes=None, sym=None, istore=None, sohm=None, page=False):
    p = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    lib, hid = library(), ctypes.c_int64(p.id)
    if sizes:
        p.set_sizes(*sizes)
    if sym and lib:
        lib.H5Pset_sym_k(hid, ctypes.c_uint(sym[0]), ctypes.c_uint(sym[1]))
    if istore and lib:
        lib.H5Pset_istore_k(hid, ctypes.c_uint(istore))
    if sohm and lib:
        lib.H5Pset_shared_mesg_nindexes(hid, ctypes.c_uint(1))
        lib.H5Pset_shared_mesg_index(hid, ctypes.c_uint(0), ctypes.c_uint(sohm), ctypes.c_uint(8))
    if page:
        p.set_file_space_strategy(h5py.h5f.FSPACE_STRATEGY_PAGE if hasattr(h5py.h5f, "FSPACE_STRATEGY_PAGE") else 1, True, 1)
    return p


SPECIAL = {
    "sizes44": dict(sizes=(4, 4)), "sizes48": dict(sizes=(4, 8)), "sizes84": dict(sizes=(8, 4)), "symk": dict(sym=(2, 1)),
    "istore": dict(istore=3), "both": dict(sym=(3, 3), istore=3), "page": dict(page=True), "sohm": dict(sohm=0x182A),
}
PARTS = [contiguous, chunked, groups, attributes, others]
VERSIONS = {"earliest": ("earliest", "latest"), "v108": ("v108", "v108"), "v110": ("v110", "v110"), "latest": ("latest", "latest")}


def main():
    answers = {}
    with open(os.path.join(out, "payload.bin"), "wb") as f:
        f.write(bytes(16))
    for label, libver in VERSIONS.items():
        for part in PARTS:
            for block in (0, 512, 2048):
                if block and part not in (contiguous, chunked) or block == 2048 and label != "latest":
                    continue
                if part is others and label in ("earliest", "v108"):
                    continue
                name = "%s-%s-%d.h5" % (label, part.__name__, block)
                file = os.path.join(out, name)
                with h5py.File(file, "w", libver=libver, userblock_size=block or None) as f:
                    part(f)
                with h5py.File(file, "r") as f:
                    answers[name] = {"userblock": block, "objects": describe(f)}
    for label, how in SPECIAL.items():
        for libver in ("earliest", "latest"):
            name = "%s-%s.h5" % (libver, label)
            file = os.path.join(out, name)
            fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
            if libver == "latest":
                fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
            with h5py.File(h5py.h5f.create(file.encode(), h5py.h5f.ACC_TRUNC, creation(**how), fapl)) as f:
                special(f, how.get("sizes", (8, 8))[1] == 8)
            with h5py.File(file, "r") as f:
                answers[name] = {"userblock": 0, "objects": describe(f)}
    with open(os.path.join(out, "answers.json"), "w") as f:
        json.dump(answers, f)


main()
