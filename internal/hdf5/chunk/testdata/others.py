"""Writes HDF5 files as netCDF-4, PyTables and MATLAB 7.3 write them into a folder, and answers.json with what h5py
reads from them.

usage: others.py OUTDIR

A library that is not installed is named on stdout, and left out.
"""
import importlib
import itertools
import json
import os
import sys
import warnings

import h5py
import numpy as np

from answers import describe

out = sys.argv[1]
warnings.simplefilter("ignore")
rng = np.random.default_rng(3)


def path(*parts):
    return os.path.join(out, "-".join(str(p) for p in parts) + ".h5")


def numbers(shape, dtype):
    return (rng.normal(size=shape) * 50).astype(dtype)


def netcdf4(nc):
    for fmt, zlib, shuffle, fletcher, endian in itertools.product(["NETCDF4", "NETCDF4_CLASSIC"], [0, 1, 9], [0, 1], [0, 1], ["little", "big"]):
        with nc.Dataset(path("nc", fmt, zlib, shuffle, fletcher, endian), "w", format=fmt) as f:
            f.title = "text \u00e9"
            f.createDimension("time", None)
            f.createDimension("x", 17)
            f.createDimension("y", 9)
            kw = dict(endian=endian, shuffle=bool(shuffle), fletcher32=bool(fletcher))
            if zlib:
                kw.update(compression="zlib", complevel=zlib)
            for k in ("f4", "f8", "i2", "i4", "i1"):
                v = f.createVariable("fixed_" + k, k, ("x", "y"), **kw)
                v[:] = numbers((17, 9), k)
                v.units = "m"
            v = f.createVariable("grows", "f4", ("time", "y", "x"), fill_value=-1.5, **kw)
            v[:5] = numbers((5, 9, 17), "f4")
            v = f.createVariable("chunked", "i2", ("time", "x"), chunksizes=(3, 5), **kw)
            v[4:8] = numbers((4, 17), "i2")
            f.createVariable("never", "i4", ("time", "x"), **kw)
            f.createVariable("scalar", "f8")[...] = 2.5
            f.createVariable("chars", "S1", ("x",))[:] = np.array(list("abcdefghijklmnopq"), "S1")
            if fmt == "NETCDF4":
                g = f.createGroup("deep").createGroup("er")
                v = g.createVariable("text", str, ("x",))
                v[0] = "one"
                g.createVariable("quantized", "f4", ("x", "y"), compression="zlib", significant_digits=2)[:] = numbers((17, 9), "f4")
                kind = f.createEnumType(np.int8, "kind", {"a": 0, "b": 3})
                g.createVariable("enum", kind, ("x",), fill_value=0)[:] = rng.integers(0, 2, 17) * 3
                pair = f.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair")
                g.createVariable("pairs", pair, ("x",))[:] = np.zeros(17, [("a", "i4"), ("b", "f8")])
                for k in ("u1", "u2", "u4", "u8", "i8"):
                    g.createVariable("more_" + k, k, ("x",))[:] = rng.integers(0, 100, 17)


def tables(tb):
    filters = [dict(complevel=0)] + [dict(complevel=5, complib=c, shuffle=s, fletcher32=x) for c in ("zlib", "lzo", "bzip2", "blosc") for s in (0, 1) for x in (0, 1)]
    for i, kw in enumerate(filters):
        with tb.open_file(path("tables", i), "w", title="a title", filters=tb.Filters(**kw)) as f:
            g = f.create_group("/", "group", "words")
            for k in ("u1", "i4", "f2", "f8", "bool"):
                f.create_array(g, "array_" + k, numbers((6, 5), "f8").astype(k), "title")
                c = f.create_carray(g, "carray_" + k, tb.Atom.from_dtype(np.dtype(k)), (23, 7), chunkshape=(4, 5))
                c[:20] = numbers((20, 7), "f8").astype(k)
                e = f.create_earray(g, "earray_" + k, tb.Atom.from_dtype(np.dtype(k)), (0, 7))
                for _ in range(3):
                    e.append(numbers((9, 7), "f8").astype(k))
            f.create_array(g, "big", numbers((6, 5), ">f4"), byteorder="big")
            f.create_array(g, "texts", np.array([b"one", b"three"]))
            t = f.create_table(g, "table", {"a": tb.Int32Col(), "name": tb.StringCol(8), "x": tb.Float64Col(shape=(2,))})
            for n in range(40):
                t.append([(n, b"row", (n, n + 0.5))])
            t.cols.a.create_index()
            v = f.create_vlarray(g, "ragged", tb.Int32Atom(), filters=tb.Filters(0))
            v.append([1, 2, 3])
            t.attrs.words = {"pickled": 1}


def hdf5storage(hs):
    for i, kw in enumerate([dict(), dict(compress=True, compress_size_threshold=0), dict(compress=True, compress_size_threshold=0, shuffle_filter=True, compressed_fletcher32_filter=True, gzip_compression_level=9)]):
        data = {"image": numbers((16, 12, 3), "u1"), "x": numbers((30, 4), "f8"), "single": numbers((5, 6), "f4"), "flag": np.array([[True, False]]),
                "text": "words \u00e9", "cells": np.array([numbers((2, 2), "i4"), "a"], dtype=object), "empty": np.zeros((0, 3)), "complex": np.array([[1 + 2j, 3]]),
                "fields": {"a": 1.5, "b": numbers((3,), "i8")}}
        hs.writes({"/" + k: v for k, v in data.items()}, filename=path("mat", i), matlab_compatible=True, **kw)


def h5netcdf(hn):
    with hn.File(path("h5netcdf"), "w") as f:
        f.dimensions = {"x": 10, "t": None}
        f.create_variable("x", ("x",), "f4", data=np.arange(10, dtype="f4"))
        f.create_variable("/deep/y", ("t", "x"), ">i4", chunks=(4, 10), compression="gzip", shuffle=True)
        f.resize_dimension("t", 6)


for name, make in (("netCDF4", netcdf4), ("tables", tables), ("hdf5storage", hdf5storage), ("h5netcdf", h5netcdf)):
    try:
        library = importlib.import_module(name)
    except ImportError as e:
        print("without", name, "(%s)" % e)
        continue
    make(library)

answers = {}
for name in sorted(os.listdir(out)):
    with h5py.File(os.path.join(out, name), "r") as f:
        answers[name] = describe(f)
with open(os.path.join(out, "answers.json"), "w") as f:
    json.dump(answers, f)
print(len(answers), "files,", sum(map(len, answers.values())), "datasets")
