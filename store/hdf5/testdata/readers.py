"""Prints what a library of LIBRARY reads in the HDF5 files of FOLDER, as JSON: by file and path, the SHA-256 of the values.

Booleans count as bytes and texts as UTF-8, as libraries have types of their own for them."""

import hashlib
import json
import os
import sys

import h5py
import numpy as np


def digest(a):
    a = np.ascontiguousarray(a)
    if a.dtype.kind in "SUO":
        data = b"\n".join(x if isinstance(x, bytes) else x.encode() for x in a.ravel().tolist())
    else:
        data = a.tobytes()
    return hashlib.sha256(data).hexdigest()


def names(path):
    """All datasets, and those of them that have half precision."""
    found, half = [], []
    with h5py.File(path, "r") as f:
        f.visititems(lambda name, o: found.append(name) if isinstance(o, h5py.Dataset) else None)
        half = [name for name in found if f[name].dtype == np.float16]
    return found, half


def variables(group, prefix=""):
    for name, v in group.variables.items():
        yield prefix + name, v
    for name, sub in group.groups.items():
        yield from variables(sub, prefix + name + "/")


def by_h5py(path):
    with h5py.File(path, "r") as f:
        return {name: digest(f[name][()]) for name in names(path)[0]}


def by_tables(path):
    import tables

    with tables.open_file(path) as f:
        return {leaf._v_pathname[1:]: digest(leaf.read()) for leaf in f.walk_nodes("/", "Leaf")}


def by_netcdf4(path):
    import netCDF4

    half = names(path)[1]  # which this library takes for texts, and crashes, with files of h5py too
    with netCDF4.Dataset(path) as f:
        f.set_auto_maskandscale(False)
        return {name: digest(v[...]) for name, v in variables(f) if name not in half}


def by_h5netcdf(path):
    import h5netcdf

    with h5netcdf.File(path, "r", phony_dims="sort") as f:
        return {name: digest(v[...]) for name, v in variables(f)}


def by_hdf5storage(path):
    import hdf5storage

    return {name: digest(hdf5storage.read("/" + name, filename=path)) for name in names(path)[0]}


read = {"h5py": by_h5py, "tables": by_tables, "netCDF4": by_netcdf4, "h5netcdf": by_h5netcdf, "hdf5storage": by_hdf5storage}
library, folder = sys.argv[1:]
json.dump({name: read[library](os.path.join(folder, name)) for name in sorted(os.listdir(folder))}, sys.stdout)
