"""Writes the small HDF5 files beside this script, which tests corrupt in every way.

usage: small.py OUTDIR
"""
import os
import sys

import h5py
import numpy as np

out = sys.argv[1]


def basic(f):
    g = f.create_group("g")
    d = g.create_dataset("u1", data=np.arange(12, dtype="u1").reshape(4, 3))
    d.attrs["mean"] = np.array([0.5, 0.25], "f4")
    d.attrs["name"] = np.bytes_("abc")
    f.create_dataset("i8be", data=np.arange(3, dtype=">i8"))
    f.create_dataset("flag", data=np.array([True, False]))
    f.create_dataset("c", data=np.zeros(2, [("a", "i4"), ("b", "f8", (2,))]))
    f["soft"] = h5py.SoftLink("/g/u1")
    f["ext"] = h5py.ExternalLink("o.h5", "/x")
    g["up"] = f["/"]
    f["again"] = g["u1"]
    f["type"] = np.dtype("<f4")
    f.create_dataset("typed", shape=(2,), dtype=f["type"], fillvalue=2)


def strings(f):
    f.attrs["text"] = "h\u00e9llo"
    f.attrs["texts"] = ["a", "bb"]
    f.create_dataset("classes", data=["cat", "dog"], dtype=h5py.string_dtype())


def dense(f):
    for i in range(12):
        f.create_group("g%02d" % i)
    g = f["g00"]
    for i in range(10):
        g.attrs["a%d" % i] = i


def chunks(f):
    a = np.arange(24, dtype="u2").reshape(6, 4)
    f.create_dataset("fixed", data=a, chunks=(2, 3))
    f.create_dataset("single", data=a, chunks=(6, 4), compression="gzip")
    f.create_dataset("grow", data=a, chunks=(2, 4), maxshape=(None, 4))
    f.create_dataset("tree", data=a, chunks=(3, 2), maxshape=(None, None), compression="gzip", shuffle=True)


def paged(name):
    """Array indexes with pages, in a file with addresses of 4 bytes."""
    fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    fcpl.set_sizes(4, 8)
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    with h5py.File(h5py.h5f.create(name.encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl)) as f:
        d = f.create_dataset("fixed", shape=(1030,), dtype="u1", chunks=(1,))
        d[1026:1028] = 1
        d = f.create_dataset("grow", shape=(140000,), dtype="u1", chunks=(1,), maxshape=(None,))
        d[3:6] = 1
        d[131070] = 1
        d[132100:132103] = 1


def scales(f):
    """Write scales as netCDF-4 does for t2m(time, lat, lon) and for an axis without coordinates, and labels of h5py."""
    for name, values in (("time", np.arange(6) * 6), ("lat", np.linspace(90, -90, 4)), ("lon", np.arange(5) * 72.0)):
        f[name] = values
        f[name].make_scale(name)
    f["bands"] = np.zeros(2, ">f4")
    f["bands"].make_scale("This is a netCDF dimension but not a netCDF variable.         2")
    t2m = f.create_dataset("t2m", data=np.arange(120, dtype="f4").reshape(6, 4, 5), chunks=(2, 3, 3))
    flag = f.create_dataset("g/flag", data=np.arange(12, dtype="i2").reshape(6, 2))
    for d, names in ((t2m, ("time", "lat", "lon")), (flag, ("time", "bands"))):
        for axis, name in zip(d.dims, names):
            axis.attach_scale(f[name])
    labeled = f.create_dataset("labeled", data=np.arange(48, dtype="u1").reshape(6, 4, 2))
    labeled.dims[0].label = "step"
    labeled.dims[1].attach_scale(f["lat"])


paged(os.path.join(out, "small-new-paged.h5"))
VERSIONS = {"old": ("earliest", "latest"), "new": ("latest", "latest")}

for label, libver in VERSIONS.items():
    for part in (basic, strings, dense, chunks):
        name = os.path.join(out, "small-%s-%s.h5" % (label, part.__name__))
        with h5py.File(name, "w", libver=libver, userblock_size=512 if part is basic else None) as f:
            part(f)

for label, libver in VERSIONS.items():
    with h5py.File(os.path.join(out, "scales-%s.h5" % label), "w", libver=libver, userblock_size=512) as f:
        scales(f)

with h5py.File(os.path.join(out, "small-new-virtual.h5"), "w", libver="latest") as f:
    f.create_dataset("here", data=np.arange(4))
    lay = h5py.VirtualLayout((6, 4), "i8")
    for i, source in enumerate([(".", "here"), ("a.h5", "x"), ("b.h5", "x"), ("a.h5", "x"), ("b.h5", "g/y")]):
        lay[i] = h5py.VirtualSource(*source, shape=(4,))
    f.create_virtual_dataset("rows", lay)
    lay = h5py.VirtualLayout((20, 4), "i8")
    rows = h5py.VirtualSource("a.h5", "long", shape=(40, 4))
    lay[::2], lay[[1, 3, 7, 8]] = rows[:20:2], rows[:4]
    f.create_virtual_dataset("mixed", lay)
