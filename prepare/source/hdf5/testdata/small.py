"""Writes small-fields.h5, which the tests read and corrupt.

usage: small.py (in this folder)
"""
import h5py
import numpy as np

N = 12
with h5py.File("small-fields.h5", "w", libver="v110") as f:
    x = np.arange(N)
    words = ["w%d" % (i * i) for i in range(N)]
    f.create_dataset("numbers", data=x.astype(">i2"), chunks=(5,), compression="gzip")
    f.create_dataset("text", data=words, chunks=(5,))
    f.create_dataset("fixed", data=np.array(words, "S6"))
    f.create_dataset("letters", data=np.array([list(w.ljust(5, "\0")) for w in words], "S1"))
    f.create_dataset("kind", data=(x % 2 * 3).astype("i1"), dtype=h5py.enum_dtype({"a": 0, "b": 3}, "i1"))
    inner = np.dtype([("x", ">f4"), ("y", "<f8")])
    t = np.dtype([("n", "<i4"), ("pos", inner), ("m", "<u2", (2,)), ("t", h5py.string_dtype()), ("many", inner, (2,))])
    d = f.create_dataset("c", (N,), t, chunks=(7,))
    for i in range(N):
        d[i] = (i, (i / 2, i / 4), (i, i + 1), words[i], [(i, 1), (2, i)])
    l = f.create_dataset("list", (N,), h5py.vlen_dtype("<i2"))
    for i in range(N):
        l[i] = np.arange(i % 4)
    v = h5py.VirtualLayout((N,), "i2")
    v[0:6] = h5py.VirtualSource(".", "numbers", shape=(N,))[6:12]
    v[6::2] = h5py.VirtualSource(".", "numbers", shape=(N,))[0:3]
    f.create_virtual_dataset("virtual", v, fillvalue=9)
    f.create_dataset("outside", (N,), "u1", external=[("small.py", 0, N)])
    f.attrs["encoding-type"] = "anndata"
    obs, var = f.create_group("obs"), f.create_group("var")
    obs["_index"] = words
    var["_index"] = ["g%d" % i for i in range(5)]
    g = obs.create_group("kind")
    g.attrs["encoding-type"] = "categorical"
    g["codes"] = (x % 3).astype("i1")
    g["categories"] = ["p", "q", "r"]
    g = obs.create_group("n")
    g.attrs["encoding-type"] = "nullable-integer"
    g["values"] = x.astype("i2")
    g["mask"] = x < 0
    m = f.create_group("X")
    m.attrs["encoding-type"] = "csr_matrix"
    m.attrs["shape"] = [N, 5]
    m["indptr"] = np.concatenate([[0], np.cumsum(x % 3)]).astype("i4")
    m["data"] = np.arange((x % 3).sum(), dtype="f4")
    m["indices"] = np.arange((x % 3).sum(), dtype="i4") % 5
