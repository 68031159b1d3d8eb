"""Writes the small files that the tests corrupt.

usage: small.py (in this folder)

small-v5.h5, whose layout messages have version 5, needs libhdf5 2.0.
"""
import h5py
import numpy as np

kinds = [("old", "earliest"), ("new", "v110")]
if h5py.version.hdf5_version_tuple >= (2, 0):
    kinds.append(("v5", "v200"))
for name, libver in kinds:
    with h5py.File("small-%s.h5" % name, "w", libver=libver) as f:
        a = (np.arange(20 * 30) // 4 % 50).reshape(20, 30)
        f.create_dataset("gzip", data=a.astype("u1"), chunks=(4, 30), compression="gzip")
        f.create_dataset("all", data=a.astype(">u2"), chunks=(6, 7), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("lzf", data=a.astype("<f4"), chunks=(5, 30), compression="lzf", shuffle=True, maxshape=(None, 30))
        f.create_dataset("plain", data=a.astype("<i4"), chunks=(3, 11), maxshape=(None, None))
        f.create_dataset("sum", data=a[:8].astype("<i8"), chunks=(2, 30), fletcher32=True)
        f.create_dataset("flat", data=a[:5].astype(">f8"))
        f.create_dataset("rest", shape=(50, 4), dtype="u2", chunks=(5, 4), compression="gzip", fillvalue=7)[7:9] = 3

with h5py.File("small-scaled.h5", "w") as f:
    a = (np.arange(20 * 30) // 4 % 50).reshape(20, 30)
    f.create_dataset("ints", data=a.astype("<i4"), chunks=(4, 30), scaleoffset=0)
    f.create_dataset("floats", data=a.astype(">f4") / 8, chunks=(6, 7), scaleoffset=2)
    f.create_dataset("fill", shape=(20, 30), dtype="i2", chunks=(4, 30), scaleoffset=0, fillvalue=-3)[5:7] = a[:2]
    f.create_dataset("packed", data=a.astype("u2"), chunks=(4, 30), scaleoffset=0, compression="gzip")
