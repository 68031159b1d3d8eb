"""HDF5 files, Zarr and .npy files: the program says what they are, and where their rows lie as they are.

Arrays whose rows lie back to back in a file are mapped here. What is compressed or chunked the program reads: see
fetched.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.errors import Error
from . import generations
from .column import Extent
from .field import Field, from_json
from .layout import Layout, column_names
from .reader import OpenedDataset, named, shared


def locate(path: str, wanted: Sequence[str] | None = None, generation: int | str | None = None) -> Layout:
    """Find the arrays of an HDF5 file, a .npy file or a folder of Zarr: Zarr that penstock wrote in a generation, by default in the newest."""
    opened = OpenedDataset(shared(), named(path if generation is None else generations.at(path, generation), wanted))
    found = opened.found
    mapped = found.get("columns", {})
    manifest = found.get("manifest") or {}
    fields = {f.name: f for f in map(from_json, found["fields"])}
    # All columns of a field are mapped, or none.
    places = {f.name: [mapped.get(name) for name in column_names(f)] for f in fields.values()}
    folder = generations.split(path)[0] if found["format"] == "zarr" else None
    columns, counts = _cut({name: fields[name] for name, at in places.items() if None not in at}, mapped, found["records"], folder)
    unread = None if len(columns) == sum(map(len, places.values())) else opened
    return Layout(
        path, found["format"], found["records"], fields, columns, counts, manifest, found.get("digest", ""),
        coordinates=found.get("coordinates") or {}, found_splits=found.get("splits"),
        broken_splits=found.get("broken_splits") or (), opened=unread,
    )  # fmt: skip


def numbers(path: str) -> np.ndarray:
    """Return record numbers that are in a .npy file: mapped, and not looked at."""
    layout = locate(path)
    field = next(iter(layout.fields.values()))
    if layout.format != "npy" or field.shape or field.dtype not in ("int32", "int64", "uint32", "uint64"):
        raise Error(f"{path}: it is not one list of int32, int64, uint32 or uint64, as record numbers are")
    return np.memmap(path, field.storage, "r", layout.columns[field.name][0].offset, (layout.records,))


def _cut(fields: dict[str, Field], places: dict[str, Any], records: int, folder: str | None) -> tuple[dict[str, list[Extent]], list[int]]:
    """Return the extents of columns, cut where an extent of any column begins, and the records of each extent.

    The extents of values are whole, as offsets count the rows of the whole column.
    """
    firsts = {name: [0, *itertools.accumulate(p["count"] for p in places[name])] for f in fields.values() for name in column_names(f)}
    edges = sorted({0, records}.union(*(firsts[f.name] for f in fields.values() if not f.ragged)))
    parts = list(zip(edges, edges[1:]))
    columns: dict[str, list[Extent]] = {}
    for f in fields.values():
        for name in column_names(f):
            if f.ragged and name.endswith(".values"):
                columns[name] = [Extent(p["path"], p["offset"], p["count"], folder) for p in places[name]] * len(parts)
                continue
            size, more = (8, 1) if f.ragged else (f.row_bytes, 0)
            cuts, k = [], 0
            for first, end in parts:
                while first >= firsts[name][k + 1]:
                    k += 1
                p = places[name][k]
                cuts.append(Extent(p["path"], p["offset"] + (first - firsts[name][k]) * size, end - first + more, folder))
            columns[name] = cuts
    return columns, [end - first for first, end in parts]
