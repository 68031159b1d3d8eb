"""The h5py side of the comparison.

usage: hdf5_files.py make FOLDER [RECORDS.npy]     writes the files, unless they exist
       hdf5_files.py serve FOLDER [RECORDS.npy]    one measure.Request a line in, one measure.Answer a line out

The way "write" writes records [from, to) of RECORDS.npy at the level of gzip that the set names; "sum" is the size of the file.
"""
import os
import sys
import zlib

import h5py
import numpy as np
from served import serve, timed

IMAGES, SMALL, INDEX = 256, 65536, 65536


def images(records):
    """Images that deflate makes as small as photographs: smooth, with noise."""
    if records:
        return np.load(records)[:IMAGES]
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:224, 0:224] / 224.0
    out = np.empty((IMAGES, 3, 224, 224), "u1")
    for i in range(IMAGES):
        a, b, c, d = rng.uniform(1, 9, 4)
        plane = 118 + 60 * np.sin(a * x + b * y) + 40 * np.cos(c * x * y + d)
        for k in range(3):
            out[i, k] = np.clip(plane + 8 * k + rng.normal(0, 9, plane.shape), 0, 255)
    return out


def make(folder, records=None):
    done = os.path.join(folder, "done")
    if os.path.exists(done):
        return
    a = images(records)
    gz = {"compression": "gzip", "compression_opts": 4}
    kinds = {
        "flat": {}, "one": dict(chunks=(1, *a.shape[1:]), **gz), "many": dict(chunks=(32, *a.shape[1:]), **gz), "auto": dict(chunks=True, **gz),
    }
    for name, kw in kinds.items():
        with h5py.File(os.path.join(folder, name + ".h5"), "w") as f:
            f.create_dataset("x", data=a, **kw)
    rng = np.random.default_rng(2)
    with h5py.File(os.path.join(folder, "small.h5"), "w") as f:
        f.create_dataset("x", data=rng.integers(0, 256, (SMALL, 28, 28), "u1"))
    t = np.linspace(0, 400, IMAGES * 37632, dtype="f4").reshape(IMAGES, 37632)
    with h5py.File(os.path.join(folder, "float.h5"), "w") as f:
        f.create_dataset("x", data=(np.sin(t) + rng.normal(0, 1e-3, t.shape)).astype("f4"), chunks=(1, 37632), shuffle=True, **gz)
    for libver in ("earliest", "latest"):
        with h5py.File(os.path.join(folder, f"index-{libver}.h5"), "w", libver=libver) as f:
            f.create_dataset("x", data=np.zeros((INDEX, 16), "u1"), chunks=(1, 16))
    open(done, "w").close()


def read(d, order, batch):
    """Reads records; in batches by sorted lists, as h5py wants them."""
    if batch == 1:
        for i in order:
            d[i]
        return
    for k in range(0, len(order), batch):
        d[np.sort(order[k:k + batch])]


def index(d):
    d.id.chunk_iter(lambda info: None)


def describe():
    """Return the ways that exist. Listing chunks one by one takes minutes and is left out."""
    ways = [{"name": "read", "text": "a record at a time, or sorted lists"}]
    if hasattr(h5py.h5d.DatasetID, "chunk_iter"):
        ways.append({"name": "index", "text": "list all chunks"})
    return {"text": f"h5py {h5py.__version__} on libhdf5 {h5py.version.hdf5_version}", "ways": ways}


def write(path, records, level):
    """Writes records, one a chunk."""
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=records, chunks=(1, *records.shape[1:]), compression="gzip", compression_opts=int(level), shuffle=False)


def serve_files(folder, records=None):
    files, written = {}, os.path.join(folder, "h5py.h5")
    data = records and np.load(records)

    def answer(q):
        if not q["do"]:
            return describe()
        if q["do"] == "write":
            cost = timed(lambda: write(written, data[q["from"]:q["to"]], q["set"]))
            return {**cost, "sum": os.path.getsize(written)}
        path = os.path.join(folder, q["set"] + ".h5")
        if path not in files:
            files[path] = h5py.File(path, "r")
        d = files[path]["x"]
        if q["do"] == "sum":
            return {"sum": zlib.crc32(d[()].tobytes())}
        if q["do"] == "index":
            return timed(lambda: index(d))
        order = np.array(q["order"], int)
        return timed(lambda: read(d, order, q["batch"]))
    serve(answer)


if __name__ == "__main__":
    {"make": make, "serve": serve_files}[sys.argv[1]](*sys.argv[2:])
