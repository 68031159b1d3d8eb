"""Writes HDF5 files of every kind into a folder, and answers.json with what h5py reads from them.

usage: conform.py OUTDIR

Files are libver x layout x filters, each with datasets of several types in nested groups.
"""
import itertools
import json
import os
import sys
import zlib

import h5py
import numpy as np

from answers import describe

out = sys.argv[1]
rng = np.random.default_rng(7)

TYPES = ["u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8",
         ">u2", ">i2", ">u4", ">i4", ">u8", ">i8", ">f2", ">f4", ">f8", "?", "enum", "S5", "array", "compound"]

FILTERS = {
    "none": [],
    "gzip1": [("deflate", 1)],
    "gzip9": [("deflate", 9)],
    "shuffle": [("shuffle",)],
    "shuffle-gzip": [("shuffle",), ("deflate", 4)],
    "gzip-shuffle": [("deflate", 4), ("shuffle",)],
    "fletcher": [("fletcher",)],
    "shuffle-gzip-fletcher": [("shuffle",), ("deflate", 6), ("fletcher",)],
    "fletcher-gzip": [("fletcher",), ("deflate", 6)],
    "lzf": [("lzf",)],
    "shuffle-lzf-fletcher": [("shuffle",), ("lzf",), ("fletcher",)],
}

# Shape, chunk shape, maximal shape.
U = h5py.h5s.UNLIMITED
CHUNKS = {
    "one": ((23, 6, 10), (1, 6, 10), None),            # a record a chunk
    "many": ((23, 6, 10), (5, 6, 10), (U, 6, 10)),     # whole records, the last chunk is cut
    "parts": ((23, 6, 10), (4, 4, 3), (U, U, 10)),     # parts of records, cut at every edge
    "wide": ((23, 6, 10), (8, 9, 10), (40, 9, U)),     # chunks wider than the shape
    "columns": ((23, 6, 10), (23, 2, 10), None),       # all records, parts of them
    "single": ((23, 6, 10), (23, 6, 10), None),
    "line": ((203,), (16,), (U,)),
    "sparse": ((203, 3), (16, 2), (U, 3)),             # most chunks were never written
    "shrunk": ((40, 6), (7, 4), (U, 6)),
}


def file_type(name):
    if name == "enum":
        return h5py.h5t.py_create(h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 500}, basetype=">i2"), logical=True)
    if name == "array":
        return h5py.h5t.py_create(np.dtype((">i4", (3,))), logical=True)
    if name == "compound":
        return h5py.h5t.py_create(np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S3")]), logical=True)
    return h5py.h5t.py_create(np.dtype(name), logical=True)


def values(name, shape):
    """Numbers that compress somewhat, in the type of the file."""
    n = int(np.prod(shape))
    ramp = np.arange(n) // 3 % 97 + rng.integers(0, 3, n)
    if name == "?":
        return (ramp % 2 == 0).reshape(shape)
    if name == "enum":
        return np.array([0, 1, 500], ">i2")[ramp % 3].reshape(shape)
    if name == "S5":
        return np.array([b"%d" % x for x in ramp], "S5").reshape(shape)
    if name == "array":
        return np.stack([ramp, -ramp, ramp * 7], -1).astype(">i4").reshape(shape + (3,))
    if name == "compound":
        a = np.zeros(n, [("a", "<i4"), ("b", ">f8"), ("c", "S3")])
        a["a"], a["b"], a["c"] = ramp, ramp / 7, b"xyz"
        return a.reshape(shape)
    if name[-2] == "f":
        return ((ramp - 40) / 8).astype(name).reshape(shape)
    return ramp.astype(name).reshape(shape)


def set_filters(dcpl, steps):
    for name, *level in steps:
        if name == "deflate":
            dcpl.set_deflate(*level)
        elif name == "shuffle":
            dcpl.set_shuffle()
        elif name == "fletcher":
            dcpl.set_fletcher32()
        else:
            dcpl.set_filter(h5py.h5z.FILTER_LZF, h5py.h5z.FLAG_OPTIONAL)


def add(group, name, typ, layout, steps):
    shape, chunk, top = CHUNKS.get(layout, ((9, 4, 5), None, None))
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if layout == "compact":
        dcpl.set_layout(h5py.h5d.COMPACT)
    elif layout == "implicit":
        chunk = (4, 3, 5)
        dcpl.set_chunk(chunk)
        dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    elif chunk:
        dcpl.set_chunk(chunk)
        set_filters(dcpl, steps)
    if layout in ("sparse", "shrunk", "late") and typ in ("u1", "<u2", "<i4", ">i4", ">f8", "<f8"):
        dcpl.set_fill_value(np.array(77, typ))
    tid = file_type(typ)
    space = h5py.h5s.create_simple(() if layout == "scalar" else shape, top) if layout != "scalar" else h5py.h5s.create(h5py.h5s.SCALAR)
    did = h5py.h5d.create(group.id, name.encode(), tid, space, dcpl)
    d = h5py.Dataset(did)
    data = values(typ, () if layout == "scalar" else shape)
    if layout == "sparse":
        part = values(typ, (9,) + shape[1:])
        d[30:39] = part
        d[200:202] = part[:2]
    elif layout == "shrunk":
        did.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data), mtype=tid)
        d.resize((19, 6))
    elif layout != "late":
        did.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data), mtype=tid)
    return d


def masked(group, name):
    """Chunks that skipped some of their filters."""
    d = group.create_dataset(name, shape=(6, 32), dtype="<u4", chunks=(1, 32), compression="gzip", shuffle=True)
    rows = rng.integers(0, 1000, (6, 32)).astype("<u4")
    for i, row in enumerate(rows):
        shuffled = np.frombuffer(row.tobytes(), "u1").reshape(32, 4).T.tobytes()
        mask, data = [(0, zlib.compress(shuffled)), (1, zlib.compress(row.tobytes())), (2, shuffled), (3, row.tobytes())][i % 4]
        d.id.write_direct_chunk((i, 0), data, filter_mask=mask)


def scaled(group):
    """Numbers behind scaleoffset: of every type, of one value, of all bits, with fill values and gzip."""
    for typ in ["u1", "i1", "<u2", ">i2", "<i4", ">u4", "<i8", ">u8", "<f4", ">f4", "<f8", ">f8"]:
        a = values(typ, (23, 12))
        steps = 3 if "f" in typ else 0
        name = typ.replace("<", "le_").replace(">", "be_")
        group.create_dataset(name, data=a, chunks=(5, 7), scaleoffset=steps)
        group.create_dataset(name + "_fill", data=a, chunks=(5, 7), scaleoffset=steps, fillvalue=a[3, 3])
        group.create_dataset(name + "_part", (23, 12), typ, chunks=(5, 7), scaleoffset=steps, fillvalue=9)[6:8] = a[:2]
    group.create_dataset("constant", data=np.full((23, 12), -7), chunks=(5, 12), scaleoffset=0)
    group.create_dataset("wide", data=rng.integers(-2**62, 2**62, (23, 12)), chunks=(5, 12), scaleoffset=0)
    group.create_dataset("all", data=rng.integers(-2**31, 2**31, (23, 12), "i4"), chunks=(5, 12), scaleoffset=32)
    for typ, bits in (("u1", 9), ("u1", 200), ("<i2", 20), (">i2", 20), ("<i4", 33)):  # more than a number has: chunks are stored as they are
        group.create_dataset(f"beyond_{typ}_{bits}", data=values(typ, (23, 12)), chunks=(5, 12), scaleoffset=bits)
        group.create_dataset(f"beyond_{typ}_{bits}_gzip", data=values(typ, (23, 12)), chunks=(5, 12), scaleoffset=bits, compression="gzip")
    group.create_dataset("fixed", data=rng.integers(0, 15, (23, 12)), chunks=(5, 12), scaleoffset=5)
    group.create_dataset("packed", data=values("<i4", (23, 12)), chunks=(5, 12), scaleoffset=0, compression="gzip")


def attributes(f, k):
    f.attrs["text"] = "h\u00e9"
    f.attrs["numbers"] = np.arange(4, dtype=">i4")
    for i in range(12 if k % 2 else 3):
        f.attrs["a%02d" % i] = i


answers = {}
turn = itertools.count()
layouts = ["contiguous", "compact", "implicit", "late", "scalar"] + list(CHUNKS)
for k, libver in enumerate(["earliest", "v108", "v110", "latest"]):
    for layout in layouts:
        for kind, steps in FILTERS.items():
            if layout not in CHUNKS and kind != "none" or kind != "none" and layout in ("line", "shrunk", "wide") and len(steps) == 1 and kind != "gzip1":
                continue
            name = "%s-%s-%s.h5" % (libver, layout, kind)
            path = os.path.join(out, name)
            with h5py.File(path, "w", libver=libver, userblock_size=512 if layout == "many" and kind == "gzip1" else 0) as f:
                attributes(f, k)
                g = f
                for i in range(7):
                    typ = TYPES[next(turn) % len(TYPES)]
                    if i % 3 == 2:
                        g = g.create_group("g%d" % i)
                    add(g, "d%d_%s" % (i, typ.replace("<", "le_").replace(">", "be_").replace("?", "bool")), typ, layout, steps)
                if layout == "one" and kind == "shuffle-gzip":
                    masked(f, "masked")
                if layout == "one" and kind == "none":
                    scaled(f.create_group("scaled"))
            with h5py.File(path, "r") as f:
                answers[name] = describe(f)

with open(os.path.join(out, "answers.json"), "w") as f:
    json.dump(answers, f)
print(len(answers), "files,", sum(map(len, answers.values())), "datasets")
