"""The format of the dataset at a path.

``locate`` looks at the names of files, has flat.py or containers.py read what is there, and returns a Layout.
``stamp`` tells a dataset from one that has replaced it at its path.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Optional

from .._base.errors import Error, NotFoundError, UnsupportedError
from .._base.files import open_in
from .._base.options import Align, choice
from . import flat, generations
from .layout import ZARR_MANIFEST, Layout

#: A folder of Zarr has one of these files.
_ZARR = ("zarr.json", ".zmetadata", ".zgroup", ".zarray")

#: How the names of files end that have arrays, and no dataset of penstock.
_ARRAYS = (".npz", ".safetensors", ".h5", ".hdf5", ".h5ad")

#: Which file a path leads to, and when that was written: it is another after any replacement.
Stamp = Optional[tuple[int, int, int, int]]


def file_of(path: str) -> str:
    """Return the path of the file alone: demos.hdf5 for demos.hdf5::data/*[:], whose end says where the records are."""
    return path if os.path.lexists(path) else path.rpartition("::")[0] or path


def exists(path: str) -> bool:
    """Return whether a path leads somewhere: without its generation and where the records are, or as a glob; URLs do."""
    path = generations.split(file_of(path))[0]
    return "://" in path or "{" in path or os.path.lexists(path) or bool(glob.glob(path))


def with_records(path: Any, records: str | None, align: str | None) -> Any:
    """Return a path or URL, or each of a list, that says where the records are in the file: ``demos.hdf5::data/*[:]``, as programs take it."""
    if records is None and align is None:
        return path
    joins = align in ("intersection", "union")
    if joins and isinstance(path, (list, tuple)) and all(isinstance(p, (str, os.PathLike)) for p in path):
        words = [os.fspath(p) for p in path]
        if not any(c in word for word in words for c in "{},"):
            path = "{" + ",".join(words) + "}" if len(words) > 1 else words[0]
    if joins and records is None:
        records = "*[:]"
    if isinstance(path, (list, tuple)) and path and not joins:
        return [with_records(p, records, align) for p in path]
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"records and align are for the path of a file or folder, and the dataset is a {type(path).__name__}; leave them out")
    if not isinstance(records, str) or not records:
        raise ValueError(f"records is {records!r}; it is the groups that have the records, such as 'data/*', or 'data/*[:]' for their rows")
    if align is not None:
        choice("align", align, Align)
        if not records.endswith("[:]"):
            raise ValueError(f"align is {align!r}, which is for records that are rows, and records is {records!r}; write {records + '[:]'!r}")
        records = f"{records[:-1]}{align}]"
    return f"{os.fspath(path)}::{records}"


def stamp(path: str) -> Stamp:
    """Return the stamp of the dataset at path: the stamp of its manifest or of its HDF5 file; None if the path has no dataset."""
    path = file_of(path)
    try:
        s = os.stat(path if _is_folder_of_arrays(path) else _stamped(path))
    except OSError:
        return None
    return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns


def _stamped(path: str) -> str:
    if not os.path.isdir(path):
        return path
    for name in ("manifest.json", ZARR_MANIFEST, *_ZARR):
        if os.path.exists(os.path.join(path, name)):
            return os.path.join(path, name)
    return os.path.join(path, "manifest.json")


def is_dataset(path: str) -> bool:
    """Return whether a local path leads to a dataset or a view, and not to raw samples. It looks at the files."""
    path, _ = generations.split(path)
    if os.path.isdir(path):
        return os.path.exists(_stamped(path))
    if path.endswith((".npy", ".view.json")):
        return True
    try:
        with open_in(None, file_of(path)) as f:
            return f.read(8) == b"\x89HDF\r\n\x1a\n"
    except (Error, OSError):
        return True  # its error is reported by the one who opens it


def may_be_raw(path: str) -> bool:
    """Return whether a local path may lead to raw samples, as HDF5 and Zarr of other programs are: it has no manifest of penstock."""
    path, _ = generations.split(path)
    if os.path.isdir(path):
        return not any(os.path.exists(os.path.join(path, name)) for name in ("manifest.json", ZARR_MANIFEST))
    return not path.endswith((".npy", ".view.json"))


def _is_folder_of_arrays(path: str) -> bool:
    """Return whether files of a folder have arrays each, and there is no dataset."""
    if not os.path.isdir(path) or os.path.exists(_stamped(path)):
        return False
    with os.scandir(path) as entries:
        names = [e.name for e in entries if e.name.endswith((*_ARRAYS, ".npy"))]
    return bool(names) and not any(re.search(r"-\d{5}\.npy$", name) for name in names)  # what may be left of a dataset


#: How many files of a folder are mapped here: Linux lets a process have 65,530 mappings. The program reads the records of more.
_MOST_MAPPED = 1 << 15


def locate(path: str, fields: Sequence[str] | None = None, generation: int | str | None = None) -> Layout:
    """Find out what the dataset at path is and where its records are. No record is read.

    Of an HDF5 file that another program wrote, only these fields have to be mappable.
    """
    if generation is not None and not os.path.exists(path):
        raise NotFoundError(f"{path}: there is no such file or folder")
    if generation is not None and generations.newest_name(path) is None and (os.path.isdir(path) or path.endswith(".npy")):
        raise UnsupportedError(
            f"{path}: it keeps no generations: datasets that penstock wrote do; to convert it, run: penstock preprocess {path} FOLDER"
        )
    if os.path.isdir(path):
        if _stamped(path) == os.path.join(path, "manifest.json") and not _is_folder_of_arrays(path):
            layout = flat.locate(path, generation)
            if sum(map(len, layout.columns.values())) <= _MOST_MAPPED:
                return layout
            from .reader import OpenedDataset, named, shared

            opened = OpenedDataset(shared(), {**named(generations.at(path, layout.manifest["generation"]), fields), "read": True})
            return replace(layout, columns={}, counts=[layout.records], opened=opened)
    elif not os.path.exists(file_of(path)) and not any(c in file_of(path) for c in "*?[{"):
        raise NotFoundError(f"{path}: no such file or folder")
    from . import containers

    return containers.locate(path, fields, generation)
