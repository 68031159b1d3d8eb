"""Writes HDF5 files with the filters of hdf5plugin, and with szip and nbit of HDF5 itself, into a folder, and
answers.json with what h5py reads from them.

usage: plugins.py OUTDIR

Needs hdf5plugin. Writes small-plugins.h5 and small-bits.h5 into OUTDIR with --small, for the tests to corrupt.
"""
import json
import os
import sys

import h5py
import hdf5plugin as hp
import numpy as np

from answers import describe

rng = np.random.default_rng(5)
KINDS = ["<u1", "<i2", ">u4", "<f4", "<f8", ">i8"]


def filters():
    """Names and keyword arguments of create_dataset."""
    yield "bzip2-1", hp.BZip2(blocksize=1)
    yield "bzip2-9", hp.BZip2()
    for n in (0, 16, 1024, 1 << 20):
        yield "lz4-%d" % n, hp.LZ4(nbytes=n)
    for level in (-5, 1, 3, 9, 19, 22):
        yield "zstd%d" % level, hp.Zstd(clevel=level)
    for cname in ("none", "lz4", "zstd"):
        for n in (0, 8, 64, 2048):
            yield "bitshuffle-%s-%d" % (cname, n), hp.Bitshuffle(nelems=n, cname=cname)
    for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            for level in (0, 1, 9):
                yield "blosc-%s-%d-%d" % (cname, shuffle, level), hp.Blosc(cname=cname, clevel=level, shuffle=shuffle)
    for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for f in (hp.Blosc2.NOFILTER, hp.Blosc2.SHUFFLE, hp.Blosc2.BITSHUFFLE, hp.Blosc2.DELTA):
            for level in (0, 1, 9):
                yield "blosc2-%s-%d-%d" % (cname, f, level), hp.Blosc2(cname=cname, clevel=level, filters=f)


def numbers(shape, dtype):
    return (rng.normal(size=shape) * 20).astype(dtype)


def plugins(out):
    for name, kw in filters():
        with h5py.File(os.path.join(out, name + ".h5"), "w") as f:
            for k in KINDS:
                smooth = (np.arange(50 * 33) // 5 % 60).reshape(50, 33).astype(k)
                key = k[1:]
                f.create_dataset("whole_" + key, data=smooth, chunks=(7, 33), compression=kw)
                f.create_dataset("parts_" + key, data=numbers((23, 19), k), chunks=(6, 5), compression=kw)
                f.create_dataset("after_" + key, data=smooth, chunks=(10, 33), shuffle=True, fletcher32=True, compression=kw)
            f.create_dataset("large", data=(np.arange(1 << 16) // 9 % 251).astype("i4").reshape(256, 256), chunks=(256, 256), compression=kw)
            f.create_dataset("noise", data=rng.integers(0, 256, (16, 1024), "u1"), chunks=(16, 1024), compression=kw)
            f.create_dataset("zeros", data=np.zeros((64, 4096), "f4"), chunks=(16, 4096), compression=kw)
            f.create_dataset("one", data=np.arange(3, dtype="i2"), chunks=(1,), compression=kw)
            f.create_dataset("pairs", data=np.zeros(30, [("a", "i4"), ("b", "S5"), ("c", "f8")]), chunks=(7,), compression=kw)


def szip(out):
    for method in ("nn", "ec"):
        for n in (2, 8, 16, 32):
            with h5py.File(os.path.join(out, "szip-%s-%d.h5" % (method, n)), "w") as f:
                for k in KINDS:
                    data = numbers((40, 37), k)
                    f.create_dataset("n" + k[1:], data=data, chunks=(11, 37), compression="szip", compression_opts=(method, n))
                    f.create_dataset("s" + k[1:], data=np.sort(data.ravel()).reshape(data.shape), chunks=(9, 20), compression="szip", compression_opts=(method, n))
                f.create_dataset("zeros", data=np.zeros((300, 256), "u2"), chunks=(150, 256), compression="szip", compression_opts=(method, n))
                f.create_dataset("small", data=rng.integers(0, 3, (300, 256)).astype("u2"), chunks=(150, 256), compression="szip", compression_opts=(method, n))
                sparse = np.zeros((300, 256), "i4")
                sparse[::37, ::11] = rng.integers(0, 1 << 30, sparse[::37, ::11].shape)
                f.create_dataset("sparse", data=sparse, chunks=(150, 256), compression="szip", compression_opts=(method, n))
                f.create_dataset("noise", data=rng.integers(0, 256, (64, 1024), "u1"), chunks=(16, 1024), compression="szip", compression_opts=(method, n))
                f.create_dataset("sum", data=sparse, chunks=(150, 256), fletcher32=True, compression="szip", compression_opts=(method, n))


def dataset(f, name, dtype, data, chunks, *ids):
    """A dataset of a type that h5py does not make, with filters by their numbers."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunks)
    for i in ids:
        if i == h5py.h5z.FILTER_DEFLATE:
            plist.set_deflate(5)
        else:
            plist.set_filter(i, h5py.h5z.FLAG_MANDATORY)
    d = h5py.h5d.create(f.id, name.encode(), dtype, h5py.h5s.create_simple(data.shape), plist)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, data)


def some_bits(base, precision, offset):
    t = base.copy()
    t.set_offset(0)
    t.set_precision(precision)
    t.set_offset(offset)
    return t


def nbit(out):
    h = h5py.h5t
    bases = {"u1": h.STD_U8LE, "i2": h.STD_I16LE, "big_i2": h.STD_I16BE, "u4": h.STD_U32LE, "big_u4": h.STD_U32BE, "i8": h.STD_I64LE}
    for behind in ((), (h5py.h5z.FILTER_DEFLATE,), (h5py.h5z.FILTER_FLETCHER32,)):
        with h5py.File(os.path.join(out, "-".join(["nbit"] + [str(i) for i in behind]) + ".h5"), "w") as f:
            for name, base in bases.items():
                bits = 8 * base.get_size()
                for precision, offset in ((bits, 0), (bits - 3, 0), (bits - 3, 2), (bits // 2 + 1, bits // 4 + 1)):
                    t = some_bits(base, precision, offset)
                    most = 1 << (precision - (name[-2] == "i"))
                    low = -most if name[-2] == "i" else 0
                    data = rng.integers(low, max(low + 1, min(most, 1 << 62)), (25, 9)).astype(name[-2:])
                    dataset(f, "%s_%d_%d" % (name, precision, offset), t, data, (4, 9), h5py.h5z.FILTER_NBIT, *behind)
            dataset(f, "floats", h.IEEE_F32BE, numbers((25, 9), "f4"), (4, 5), h5py.h5z.FILTER_NBIT, *behind)
            dtype = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3"), ("d", "<u2", (2, 3))])
            dataset(f, "compound", h.py_create(dtype), np.frombuffer(rng.bytes(31 * dtype.itemsize), dtype), (8,), h5py.h5z.FILTER_NBIT, *behind)
        with h5py.File(os.path.join(out, "bits-%d.h5" % len(behind) if behind else os.path.join(out, "bits.h5")), "w") as f:
            dataset(f, "plain", some_bits(h.STD_I16LE, 11, 3), rng.integers(-1024, 1024, (25, 9)).astype("i2"), (4, 9))
            f.create_dataset("whole", data=np.arange(5))


def small(out):
    a = (np.arange(20 * 30) // 4 % 50).reshape(20, 30)
    with h5py.File(os.path.join(out, "small-plugins.h5"), "w", libver="v110") as f:
        for name, kw in {
            "bzip2": hp.BZip2(), "lz4": hp.LZ4(nbytes=256), "zstd": hp.Zstd(), "bitshuffle": hp.Bitshuffle(cname="none"), "bitshuffle_lz4": hp.Bitshuffle(nelems=64),
            "bitshuffle_zstd": hp.Bitshuffle(cname="zstd"), "blosc": hp.Blosc(cname="blosclz", shuffle=2), "blosc_lz4": hp.Blosc(cname="lz4"),
            "blosc_zlib": hp.Blosc(cname="zlib"), "blosc_zstd": hp.Blosc(cname="zstd", shuffle=0), "blosc2": hp.Blosc2(cname="lz4"),
            "blosc2_bits": hp.Blosc2(cname="zstd", filters=hp.Blosc2.BITSHUFFLE), "blosc2_delta": hp.Blosc2(cname="blosclz", filters=hp.Blosc2.DELTA),
        }.items():
            f.create_dataset(name, data=a.astype("<i4"), chunks=(9, 30), compression=kw)
            f.create_dataset(name + "_u2", data=a.astype(">u2"), chunks=(20, 17), shuffle=True, compression=kw)
    with h5py.File(os.path.join(out, "small-bits.h5"), "w") as f:
        for n in (8, 32):
            for method in ("nn", "ec"):
                f.create_dataset("szip_%s%d" % (method, n), data=a.astype("<i4"), chunks=(9, 30), compression="szip", compression_opts=(method, n))
                f.create_dataset("szip_%s%d_u2" % (method, n), data=a.astype(">u2"), chunks=(20, 17), compression="szip", compression_opts=(method, n))
        for behind in ((), (h5py.h5z.FILTER_DEFLATE,)):
            dataset(f, "nbit%d" % len(behind), some_bits(h5py.h5t.STD_I16LE, 11, 3), a.astype("i2"), (4, 30), h5py.h5z.FILTER_NBIT, *behind)
        dataset(f, "bits", some_bits(h5py.h5t.STD_U32BE, 7, 9), a.astype("u4"), (4, 30))


out = sys.argv[-1]
if "--small" in sys.argv:
    small(out)
    sys.exit()
plugins(out)
szip(out)
nbit(out)
answers = {}
for name in sorted(os.listdir(out)):
    with h5py.File(os.path.join(out, name), "r") as f:
        answers[name] = describe(f)
with open(os.path.join(out, "answers.json"), "w") as f:
    json.dump(answers, f)
print(len(answers), "files,", sum(map(len, answers.values())), "datasets")
