"""Writes hierarchies of Zarr to the folder of the first argument, for TestArrays, which knows their values from
their names: LIBRARY-FORMAT-DTYPE-WHAT.zarr or .zip. "some" as the second argument: zip files of those that are
committed."""
import itertools
import os
import sys
import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

OUT, SOME = sys.argv[1], sys.argv[2:] == ["some"]
SHAPE = (23, 6, 5)
WHOLE, PARTS, DEEP = (4, 6, 5), (4, 4, 3), (5, 2, 5)
DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()

def values(dtype):
    i = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    if dtype == "bool":
        return i % 3 == 0
    v = (i * 37 % 120).astype(dtype)
    return v + v / 2 * 1j if dtype.startswith("complex") else v

def store(name):
    if SOME:
        return zarr.storage.ZipStore(f"{OUT}/{name}.zip", mode="w")
    return f"{OUT}/{name}.zarr"

def write(name, fmt, dtype="float32", chunks=WHOLE, part=False, stored=None, **more):
    s = store(f"zarr-{fmt}-{dtype}-{name}")
    a = zarr.create_array(s, shape=SHAPE, dtype=stored or dtype, chunks=chunks, zarr_format=fmt, **more)
    v = values(dtype)
    if part:
        a[4:12] = v[4:12]
    else:
        a[...] = v
    if SOME:
        s.close()

def everything():
    for fmt in 2, 3:
        for dtype in DTYPES:
            write("dtype", fmt, dtype, PARTS, compressors=None)
        for name, chunks in ("whole", WHOLE), ("parts", PARTS), ("deep", DEEP), ("one", SHAPE), ("large", (64, 64, 64)), ("single", (1, 1, 1)):
            write(name, fmt, chunks=chunks, compressors=None)
            write(name + ",defaults", fmt, chunks=chunks)
        write("fill", fmt, part=True, fill_value=7)
        write("nan", fmt, part=True, fill_value=float("nan"))
        write("fill", fmt, "int64", part=True, fill_value=-2**62 - 1)
        write("fill", fmt, "bool", part=True, fill_value=True)
        write("fill", fmt, "complex64", part=True, fill_value=7)
    for c in numcodecs.Zlib(), numcodecs.GZip(), numcodecs.Zstd(), numcodecs.LZ4(), numcodecs.BZ2(), numcodecs.CRC32C(), numcodecs.CRC32(), numcodecs.Adler32():
        write(c.codec_id, 2, chunks=DEEP, compressors=c)
    for cname, shuffle in itertools.product(("lz4", "lz4hc", "zstd", "zlib", "blosclz"), (0, 1, 2)):
        write(f"blosc,{cname},{shuffle}", 2, "int32", compressors=numcodecs.Blosc(cname, 5, shuffle))
        write(f"blosc,{cname},{shuffle}", 3, "int32", compressors=BloscCodec(cname=cname, shuffle=("noshuffle", "shuffle", "bitshuffle")[shuffle], typesize=4))
    write("filter,shuffle", 2, filters=[numcodecs.Shuffle(4)], compressors=numcodecs.Zstd())
    write("order,F", 2, chunks=PARTS, order="F")
    write("order,F,plain", 2, chunks=WHOLE, order="F", compressors=None)
    write("big", 2, chunks=PARTS, stored=">f4")
    write("big", 2, "int16", stored=">i2", compressors=None)
    write("big", 2, "complex128", stored=">c16", part=True, fill_value=7)
    write("slash", 2, chunk_key_encoding={"name": "v2", "separator": "/"})
    write("slash", 3, chunk_key_encoding={"name": "v2", "separator": "/"})
    write("dot", 3, chunk_key_encoding={"name": "default", "separator": "."})
    for c in GzipCodec(), ZstdCodec(), ZstdCodec(checksum=True), Crc32cCodec():
        write(type(c).__name__ + str(len(repr(c))), 3, chunks=DEEP, compressors=c)
    write("two", 3, chunks=DEEP, compressors=[ZstdCodec(), Crc32cCodec()])
    write("two,other", 3, chunks=DEEP, compressors=[Crc32cCodec(), ZstdCodec(), Crc32cCodec()])
    write("transpose", 3, chunks=PARTS, filters=[TransposeCodec(order=(2, 0, 1))])
    write("transpose,plain", 3, "uint8", WHOLE, filters=[TransposeCodec(order=(1, 2, 0))], compressors=None)
    write("transpose,twice", 3, "int16", PARTS, filters=[TransposeCodec(order=(1, 2, 0)), TransposeCodec(order=(0, 2, 1))])
    write("big", 3, "int16", PARTS, serializer=BytesCodec(endian="big"))
    write("big", 3, "complex64", PARTS, serializer=BytesCodec(endian="big"), compressors=None)
    for where in "start", "end":
        for comp in None, ZstdCodec(), BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4):
            for chunks, shards in (WHOLE, (8, 6, 5)), (PARTS, (8, 8, 6)), (DEEP, (25, 6, 5)):
                inner = [BytesCodec()] + ([comp] if comp else [])
                codec = ShardingCodec(chunk_shape=chunks, codecs=inner, index_location=where)
                write(f"shards,{where},{type(comp).__name__},{chunks[0]}x{chunks[1]}", 3, chunks=shards, serializer=codec, compressors=None)
    write("shards", 3, chunks=PARTS, shards=(12, 8, 6))
    write("shards,part", 3, chunks=(2, 6, 5), shards=(8, 6, 5), part=True, fill_value=7)
    write("shards,transpose", 3, chunks=(8, 6, 5), compressors=None, serializer=ShardingCodec(
        chunk_shape=(2, 3, 5), codecs=[TransposeCodec(order=(1, 0, 2)), BytesCodec(endian="big"), GzipCodec(), Crc32cCodec()]))
    for c in "zlib", "lz4", "bz2", "shuffle":
        conf = {"elementsize": 4} if c == "shuffle" else {}
        old(c, conf)
    groups()
    tensorstore()

def old(name, conf):
    import zarr.codecs.numcodecs as n
    cls = {"zlib": n.Zlib, "lz4": n.LZ4, "bz2": n.BZ2, "shuffle": n.Shuffle}[name]
    write("numcodecs," + name, 3, compressors=cls(**conf))

def groups():
    for fmt in 2, 3:
        for consolidated in False, True:
            path = f"{OUT}/zarr-{fmt}-float32-group,{consolidated}.zarr"
            g = zarr.open_group(path, mode="w", zarr_format=fmt)
            g.create_array("a", shape=SHAPE, dtype="float32", chunks=WHOLE)[...] = values("float32")
            h = g.create_group("deeper").create_group("still")
            h.create_array("b", shape=SHAPE, dtype="float32", chunks=PARTS)[...] = values("float32")
            if consolidated:
                zarr.consolidate_metadata(path)
        s = zarr.storage.ZipStore(f"{OUT}/zarr-{fmt}-float32-zip.zip", mode="w")
        zarr.create_array(s, shape=SHAPE, dtype="float32", chunks=PARTS, zarr_format=fmt)[...] = values("float32")
        s.close()

def tensorstore():
    import tensorstore as ts
    def write(name, fmt, kind, **meta):
        driver = {2: "zarr", 3: "zarr3"}[fmt]
        a = ts.open({"driver": driver, "kvstore": {"driver": "file", "path": f"{OUT}/tensorstore-{fmt}-{kind}-{name}.zarr"}, "metadata": {"shape": SHAPE, **meta}}, create=True).result()
        a[...] = values("float32").astype(a.dtype.numpy_dtype) if kind == "bfloat16" else values(kind)
    for dtype in DTYPES + ["bfloat16"]:
        write("dtype", 3, dtype, data_type=dtype)
    for dtype in "<i2", ">u4", "<f8", "|b1", ">f2", "bfloat16":
        name = dtype if dtype == "bfloat16" else np.dtype(dtype).name
        write("dtype", 2, name, dtype=dtype, chunks=PARTS, compressor=None)
    grid = {"name": "regular", "configuration": {"chunk_shape": (8, 6, 6)}}
    for name, codecs in (
        ("gzip", [{"name": "gzip", "configuration": {"level": 6}}]),
        ("zstd", [{"name": "zstd", "configuration": {"level": 3}}]),
        ("blosc", [{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "bitshuffle"}}]),
        ("crc32c", [{"name": "crc32c"}]),
        ("transpose", [{"name": "transpose", "configuration": {"order": [2, 1, 0]}}, {"name": "bytes", "configuration": {"endian": "big"}}]),
        ("shards", [{"name": "sharding_indexed", "configuration": {"chunk_shape": (4, 3, 6), "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}], "index_location": "start"}}]),
        ("shards,order", [{"name": "sharding_indexed", "configuration": {"chunk_shape": (2, 6, 6), "codecs": [{"name": "transpose", "configuration": {"order": [2, 0, 1]}}, {"name": "gzip"}]}}]),
    ):
        write(name, 3, "uint16", data_type="uint16", chunk_grid=grid, codecs=codecs)
    for name, c in ("zlib", {"id": "zlib", "level": 5}), ("blosc", {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1}), ("zstd", {"id": "zstd", "level": 2}), ("bz2", {"id": "bz2", "level": 1}):
        write(name, 2, "int32", dtype="<i4", chunks=DEEP, compressor=c, order="F")

def some():
    write("defaults", 2)
    write("order,F", 2, chunks=PARTS, order="F", stored=">f4", compressors=numcodecs.Zlib())
    write("filter,shuffle", 2, filters=[numcodecs.Shuffle(4)], compressors=numcodecs.LZ4())
    write("fill", 2, "int64", part=True, fill_value=-2**62 - 1, compressors=numcodecs.BZ2())
    write("plain", 3, "uint8", compressors=None)
    write("defaults", 3, chunks=PARTS)
    write("gzip", 3, "complex64", PARTS, compressors=[GzipCodec(), Crc32cCodec()])
    write("blosc", 3, "int32", PARTS, compressors=BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4))
    write("transpose", 3, "int16", PARTS, filters=[TransposeCodec(order=(2, 0, 1))], serializer=BytesCodec(endian="big"))
    write("nan", 3, "float16", part=True, fill_value=float("nan"))
    write("shards", 3, chunks=PARTS, shards=(12, 8, 6))
    write("shards,start", 3, "bool", chunks=(8, 6, 5), compressors=None, serializer=ShardingCodec(chunk_shape=(2, 6, 5), codecs=[BytesCodec()], index_location="start"))

some() if SOME else everything()
