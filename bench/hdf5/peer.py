"""The h5py side of the comparison.

usage: peer.py make FOLDER [RECORDS.npy]    writes the files, unless they exist
       peer.py serve FOLDER                 one measure.Request a line in, one measure.Answer a line out
"""
import json
import os
import sys
import time
import zlib

import h5py
import numpy as np

try:
    import hdf5plugin
except ImportError:
    hdf5plugin = None

IMAGES, SMALL, INDEX = 256, 65536, 65536


def images():
    """Images that deflate makes as small as photographs: smooth, with noise."""
    if len(sys.argv) > 3:
        return np.load(sys.argv[3])[:IMAGES]
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:224, 0:224] / 224.0
    out = np.empty((IMAGES, 3, 224, 224), "u1")
    for i in range(IMAGES):
        a, b, c, d = rng.uniform(1, 9, 4)
        plane = 118 + 60 * np.sin(a * x + b * y) + 40 * np.cos(c * x * y + d)
        for k in range(3):
            out[i, k] = np.clip(plane + 8 * k + rng.normal(0, 9, plane.shape), 0, 255)
    return out


def make(folder):
    done = os.path.join(folder, "done")
    if os.path.exists(done):
        return
    a = images()
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
    if hdf5plugin:
        counts = rng.poisson(np.exp(2 + 2 * np.sin(t[:, :32768] / 3))).astype("u2").reshape(IMAGES, 128, 256)
        for name, kw in {"zstd": hdf5plugin.Zstd(), "bitshuffle": hdf5plugin.Bitshuffle(), "blosc": hdf5plugin.Blosc(cname="lz4")}.items():
            with h5py.File(os.path.join(folder, name + ".h5"), "w") as f:
                f.create_dataset("x", data=counts, chunks=(1, 128, 256), compression=kw)
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
    n = 0

    def count(info):
        nonlocal n
        n += 1
    d.id.chunk_iter(count)
    return n


def describe():
    """Return the ways that exist. Listing chunks one by one takes minutes and is left out."""
    ways = [{"name": "read", "text": "a record at a time, or sorted lists"}]
    if hasattr(h5py.h5d.DatasetID, "chunk_iter"):
        ways.append({"name": "index", "text": "list all chunks"})
    text = f"h5py {h5py.__version__} on libhdf5 {h5py.version.hdf5_version}"
    if hdf5plugin:
        text += " with hdf5plugin " + hdf5plugin.version
    return {"text": text, "ways": ways}


def serve(folder):
    files = {}
    for line in sys.stdin:
        q = json.loads(line)
        if not q["do"]:
            print(json.dumps(describe()), flush=True)
            continue
        path = os.path.join(folder, q["set"] + ".h5")
        if path not in files:
            files[path] = h5py.File(path, "r")
        d = files[path]["x"]
        answer, order = {}, np.array(q.get("order", []), int)
        if q["do"] == "sum":
            answer["sum"] = zlib.crc32(d[()].tobytes())
        wall, cpu = time.perf_counter(), time.process_time()
        if q["do"] == "read":
            read(d, order, q["batch"])
        elif q["do"] == "index":
            answer["sum"] = index(d)
        answer["wall"], answer["cpu"] = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps(answer), flush=True)


{"make": make, "serve": serve}[sys.argv[1]](sys.argv[2])
