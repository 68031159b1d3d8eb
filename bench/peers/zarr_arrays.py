"""The side of zarr-python and tensorstore.

usage: zarr_arrays.py make FOLDER             writes the arrays
       zarr_arrays.py serve LIBRARY FOLDER    one measure.Request a line in, one measure.Answer a line out
"""
import os
import sys
import zlib
from collections import deque

import numpy as np
from served import serve, timed

RECORDS, CHUNK, SHAPE = 8192, 16, (64, 64)
CACHE = 64 << 20


def make(folder):
    import zarr
    from zarr.codecs import BloscCodec, ZstdCodec
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:64, 0:64] / 64.0
    codecs = {
        "plain": None, "zstd": ZstdCodec(level=3), "lz4-shuffle": BloscCodec(cname="lz4", shuffle="shuffle", typesize=4),
        "lz4-bitshuffle": BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4),
        "zstd-shuffle": BloscCodec(cname="zstd", shuffle="shuffle", typesize=4),
    }
    arrays = [zarr.create_array(os.path.join(folder, name + ".zarr"), shape=(RECORDS, *SHAPE), chunks=(CHUNK, *SHAPE), dtype="f4",
                                compressors=c, overwrite=True)
              for name, c in codecs.items()]
    for k in range(0, RECORDS, 512):  # a field as of a model of the weather: smooth, in steps of an eighth of a degree, some noise
        a = rng.uniform(1, 9, (512, 4, 1, 1)).astype("f4")
        field = 280 + 20 * np.sin(a[:, 0] * x + a[:, 1] * y) + 5 * np.cos(a[:, 2] * x * y + a[:, 3]) + rng.normal(0, 0.1, (512, *SHAPE))
        for out in arrays:
            out[k:k + 512] = (np.round(field * 8) / 8).astype("f4")


def opener(library):
    if library == "zarr-python":
        import zarr
        return f"zarr-python {zarr.__version__}", lambda path: zarr.open_array(path, mode="r"), lambda a, i: a.oindex[i]
    from importlib.metadata import version

    import tensorstore as ts
    context = ts.Context({"cache_pool": {"total_bytes_limit": CACHE}})

    def open(path):
        return ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}, "recheck_cached_data": "open"}, context=context).result()
    return "tensorstore {}".format(version("tensorstore")), open, lambda a, i: a[i].read().result()


def serve_arrays(library, folder):
    name, open_array, gather = opener(library)
    arrays = {}

    def answer(q):
        if not q["do"]:
            return {"text": name, "ways": [{"name": "read", "text": "batches"}]}
        if q["set"] not in arrays:
            arrays[q["set"]] = open_array(os.path.join(folder, q["set"] + ".zarr"))
        a, order, batch = arrays[q["set"]], np.array(q["order"], int), q["batch"]
        last = deque(maxlen=1)
        cost = timed(lambda: last.extend(gather(a, order[k:k + batch]) for k in range(0, len(order), batch)))
        return {**cost, "sum": zlib.crc32(np.ascontiguousarray(last[0]).tobytes())}
    serve(answer)


{"make": make, "serve": serve_arrays}[sys.argv[1]](*sys.argv[2:])
