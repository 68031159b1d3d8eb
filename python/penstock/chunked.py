"""Arrays in chunks that other programs wrote: HDF5, read by h5py, and Zarr, read by the zarr package. They are read, and not mapped."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._dataclass import dataclass
from ._expected import checked, parse
from .column import Extent
from .errors import Error, MissingError, NotFoundError, UnsupportedError
from .field import STORAGE, Field
from .layout import Layout
from .records import Derived, Places

#: A folder of Zarr has one of these files.
NODES = ("zarr.json", ".zmetadata", ".zgroup", ".zarray")

_MOST_DEPTH = 32

#: The most bytes of the metadata of a node.
_MAX_METADATA = 1 << 24

_LENGTHS = {"shape": [range(1 << 47)]}


@dataclass(frozen=True)
class ChunkedExtent(Extent):
    """An array of a file that the package ``program`` reads; ``node`` is its path there."""

    node: str = ""
    program: str = ""


class ChunkedColumn:
    """An array that is read by another package. The file is opened by the first read in each process."""

    def __init__(self, name: str, dtype: np.dtype, shape: tuple[int, ...], extent: ChunkedExtent) -> None:
        self.name, self.dtype, self.shape, self.extents = name, dtype, shape, [extent]
        self.row_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        self._opened: tuple[int, Any, Any] | None = None
        self._closed = False

    def array(self) -> Any:
        """Return the array of h5py or zarr. Raise Error if the package is missing."""
        extent = self.extents[0]
        if self._closed:
            raise Error(f"{extent.path}: the dataset was closed")
        if self._opened is None or self._opened[0] != os.getpid():
            try:
                file, array = _open(extent)
            except ImportError as e:
                raise Error(
                    f"{extent.path}: {extent.program} is needed to read field {self.name!r}, which is in chunks: pip install {extent.program}; "
                    "penstock.DataLoader reads it without"
                ) from e
            except (OSError, KeyError) as e:
                raise Error(f"{extent.path}: field {self.name!r}: {e}") from e
            self._opened = os.getpid(), file, array
        return self._opened[2]

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None and self._opened[0] == os.getpid() and hasattr(self._opened[1], "close"):
            self._opened[1].close()
        self._opened, self._closed = None, True


def _open(extent: ChunkedExtent) -> tuple[Any, Any]:
    if extent.program == "h5py":
        import h5py

        file = h5py.File(extent.path, "r")
        return file, file[extent.node]
    import zarr

    return None, zarr.open_array(os.path.join(extent.path, extent.node), mode="r")


class ChunkedRecords(Derived):
    """A field that is read from its chunks. Each index decodes the chunks that it needs; a slice of records is not a view."""

    mapped = False

    def __init__(self, field: Field, column: ChunkedColumn, places: Places) -> None:
        super().__init__(field, column.dtype, column.shape, places.count)
        self._of = column

    def region(self, box: tuple[slice, ...]) -> np.ndarray:
        """Return a box of the array: a slice with a start and an end for each axis."""
        return np.ascontiguousarray(self._of.array()[box], self.dtype)

    def _range(self, start: int, stop: int) -> np.ndarray:
        return self.region((slice(start, stop),))

    def _fill(self, records: np.ndarray, out: np.ndarray) -> None:
        order = np.argsort(records, kind="stable")
        ascending = records[order]
        for run in np.split(np.arange(len(order)), np.flatnonzero(np.diff(ascending) > 1) + 1):  # records next to each other are read at once
            if len(run):
                first = int(ascending[run[0]])
                out[order[run]] = self._range(first, int(ascending[run[-1]]) + 1)[ascending[run] - first]


def is_coordinate(name: str, dims: Sequence[str]) -> bool:
    """Report whether an array is the coordinates of an axis: it has this axis alone, and its name."""
    return len(dims) == 1 and dims[0] == name.rsplit("/", 1)[-1]


def coordinates(dims: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the arrays that are coordinates, by the name of the axis."""
    return {names[0]: name for name, names in dims.items() if is_coordinate(name, names)}


def other_axes(dims: Mapping[str, Sequence[str]], records: Mapping[str, int]) -> set[str]:
    """Return which of the arrays in records are coordinates of an axis that is not the first one of the arrays that are not coordinates."""
    found = {name for name in records if is_coordinate(name, dims[name])}
    lengths = {n for name, n in records.items() if name not in found}
    return {name for name in found if records[name] not in lengths} if lengths else set()


def is_zarr(path: str) -> bool:
    """Report whether a folder is one of Zarr."""
    return any(os.path.exists(os.path.join(path, name)) for name in NODES)


def locate_zarr(path: str, wanted: Sequence[str] | None = None) -> Layout:
    """Find the arrays of a folder of Zarr, version 2 or 3, that another program wrote. No chunk is read."""
    if not os.path.isdir(path):
        raise NotFoundError(f"{path}: no such folder")
    found: dict[str, tuple[tuple[int, ...], np.dtype, tuple[str, ...]]] = {}
    unread: list[str] = []
    for node, meta in _nodes(path):
        name = node or os.path.splitext(os.path.basename(os.path.abspath(path)))[0]
        array = _array(path, node, meta)
        if array is None or not array[0]:
            unread.append(name)
        else:
            found[name] = array
    for name in wanted or ():
        if name in unread:
            raise UnsupportedError(f"{path}: array {name!r} is not one of numbers with an axis of records")
        if name not in found:
            raise MissingError(f"{path}: no field {name!r:.100}; there are: {', '.join(found)}")
    dims = {name: a[2] for name, a in found.items()}
    lengths = {name: a[0][0] for name, a in found.items()}
    left_out = {n for n in found if n not in wanted} if wanted else other_axes(dims, lengths)
    chosen = [n for n in found if n not in left_out]
    counts = {lengths[n] for n in chosen}
    if len(counts) != 1 or 0 in counts:
        shapes = ", ".join(f"{n} {found[n][0]}" for n in chosen) or "none"
        raise UnsupportedError(f"{path}: the arrays of numbers must have one common number of records; choose some with fields=[...]: {shapes}")
    records = counts.pop()
    fields: dict[str, Field] = {}
    columns: dict[str, list[Extent]] = {}
    for name in chosen:
        shape, dtype, names = found[name]
        kind = next(t for t, storage in STORAGE.items() if np.dtype(storage) == dtype and t != "bfloat16")
        fields[name] = Field(name, kind, shape[1:], dims=names)
        node = "" if name not in dict(_nodes(path)) else name
        columns[name] = [ChunkedExtent(path, 0, 0, records, node=node, program="zarr")]
    return Layout(path, "zarr", records, fields, columns, [records], coordinates=coordinates(dims))


def _nodes(root: str, at: str = "", depth: int = 0) -> list[tuple[str, dict[str, Any]]]:
    """Return the arrays below a folder: their paths, and their metadata."""
    folder = os.path.join(root, at)
    for name in ("zarr.json", ".zarray"):
        meta = _json(os.path.join(folder, name))
        if meta is not None and (name == ".zarray" or meta.get("node_type") == "array"):
            return [(at, meta)]
    if depth > _MOST_DEPTH:
        raise UnsupportedError(f"{root}: groups are nested deeper than {_MOST_DEPTH}")
    below = sorted(e.name for e in os.scandir(folder) if e.is_dir())
    return [found for name in below for found in _nodes(root, f"{at}/{name}" if at else name, depth + 1)]


def _json(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as f:
            text = f.read(_MAX_METADATA)
    except FileNotFoundError:
        return None
    found: dict[str, Any] = parse(text, {"node_type?": object}, path, "metadata of Zarr")
    return found


#: Types of numbers by their names in Zarr 3, and in Zarr 2 in both byte orders. zarr decodes to that of this machine.
_TYPES = {name: np.dtype(stored) for kind, stored in STORAGE.items() if kind != "bfloat16" for name in (kind, stored, ">" + stored[1:])}


def _array(root: str, node: str, meta: Mapping[str, Any]) -> tuple[tuple[int, ...], np.dtype, tuple[str, ...]] | None:
    """Return the shape, the type and the names of the axes of an array; None if it is not one of numbers."""
    shape = checked(meta, _LENGTHS, f"{root}: array {node!r}")["shape"]
    kind = meta.get("data_type", meta.get("dtype"))
    dtype = _TYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None:
        return None
    attributes = {} if "data_type" in meta else _json(os.path.join(root, node, ".zattrs")) or {}
    names = meta.get("dimension_names") if "data_type" in meta else attributes.get("_ARRAY_DIMENSIONS")
    known = [n if isinstance(n, str) else "" for n in names] if isinstance(names, list) and len(names) == len(shape) else []
    return tuple(shape), dtype, tuple(known) if any(known) else ()
