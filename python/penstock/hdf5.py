"""HDF5 files. h5py says where the records are, and reads those that cannot be mapped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from .chunked import ChunkedExtent, coordinates, is_other_axis
from .column import Extent, check_inside
from .errors import CorruptError, Error, NotFoundError, UnsupportedError
from .field import STORAGE, Field
from .flat import decode_manifest, fields_of
from .layout import Layout, column_names

#: Added where a URL is given for a path.
FROM_BUCKET = "; what is in a bucket is fetched by feed: penstock.DataLoader takes the URL"

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def locate(path: str, wanted: Sequence[str] | None = None) -> Layout:
    """Find the arrays of an HDF5 file: of one that penstock wrote, or of any whose datasets are contiguous."""
    if not os.path.exists(path):
        raise NotFoundError(f"{path}: no such file or folder" + (FROM_BUCKET if "://" in path else ""))
    with open(path, "rb") as f:
        if not is_hdf5(f):
            f.seek(0)
            begin = f.read(16)
            what = f"begins with {begin!r}" if begin else "is empty"
            raise UnsupportedError(f"{path}: neither a folder nor an HDF5 file: it {what}; to make a dataset, run: penstock preprocess SOURCE FOLDER")
    try:
        import h5py
    except ImportError as e:
        raise Error(
            f"{path}: h5py is needed to find the records of an HDF5 file: pip install h5py, or make a flat dataset: penstock preprocess SOURCE FOLDER"
        ) from e
    try:
        with h5py.File(path, "r") as file:
            if "penstock/manifest" in file:
                return _ours(path, file)
            return _foreign(path, file, h5py.Dataset, wanted)
    except OSError as e:
        raise UnsupportedError(f"{path}: not an HDF5 file that h5py reads: {e}") from e


def is_hdf5(file: BinaryIO) -> bool:
    """Return whether a file has HDF5's signature: at its start, or after a user block of 512 bytes times a power of two."""
    size = file.seek(0, os.SEEK_END)
    at = 0
    while at + len(_SIGNATURE) <= size:
        file.seek(at)
        if file.read(len(_SIGNATURE)) == _SIGNATURE:
            return True
        at = max(512, 2 * at)
    return False


def _ours(path: str, file: Any) -> Layout:
    where = f"{path}: /penstock/manifest"
    manifest = decode_manifest(file["penstock/manifest"][()], where)
    try:
        fields = fields_of(manifest, where)
        records = manifest["records"]
        if file.attrs.get("complete") != 1:
            raise CorruptError(f"{path}: the file is not complete; make it again")
        columns = {name: [_extent(path, file, f, name, records)] for f in fields.values() for name in column_names(f)}
    except (KeyError, TypeError, AttributeError) as e:
        raise CorruptError(f"{where}: {type(e).__name__} {e}: not a manifest as docs/format.md has it") from e
    return Layout(path, "hdf5", records, fields, columns, [records], manifest)


def _extent(path: str, file: Any, f: Field, name: str, records: int) -> Extent:
    dataset = file[name.replace(".", "/")] if f.ragged else file[name]
    offsets = f.ragged and name.endswith(".offsets")
    dtype = np.dtype("<i8") if offsets else f.storage
    rows = records + 1 if offsets else dataset.shape[0] if f.ragged else records
    shape = (rows,) if offsets else (rows, *f.shape)
    if dataset.shape != shape or dataset.dtype != dtype:
        raise CorruptError(f"{path}: dataset {dataset.name}: {dataset.dtype} {dataset.shape}, but the manifest says {dtype} {shape}")
    sums = file.get(f"penstock/crc/{name}")
    return Extent(
        path=path,
        offset=_offset(path, dataset),
        first=0,
        count=rows,
        sums=None if sums is None or sums.size == 0 else (path, _offset(path, sums)),
    )


#: Names of types that are not numbers, by their kind.
_KINDS = {"O": "strings, lists or references", "S": "strings", "V": "compounds", "c": "complex numbers"}


def _foreign(path: str, file: Any, kind: type[Any], wanted: Sequence[str] | None) -> Layout:
    """Take the datasets of numbers, by their paths. One of as many records that is not numbers is an error, unless fields were chosen without it.

    Without such a choice, the coordinates of other axes than that of the records are left out.
    """
    datasets: dict[str, Any] = {}
    file.visititems(lambda name, d: datasets.__setitem__(name, d) if isinstance(d, kind) and d.ndim > 0 and not _without_values(d) else None)
    for name in wanted or ():
        if name not in datasets:
            raise KeyError(f"{path}: no field {name!r}; there are: {', '.join(datasets)}")
    numbers = {name: d for name, d in datasets.items() if d.dtype.kind in "biuf" and name in (wanted or datasets)}
    dims = {name: _dims(d) for name, d in datasets.items()}
    if not wanted:
        numbers = {name: d for name, d in numbers.items() if not is_other_axis(name, dims, {n: x.shape[0] for n, x in numbers.items()})}
    counts = {d.shape[0] for d in numbers.values()}
    others = [name for name in wanted or datasets if datasets[name].dtype.kind not in "biuf" and (wanted or not numbers or datasets[name].shape[0] in counts)]
    if others:
        rest = "" if wanted or not numbers else f"; open the others with fields={list(numbers)}"
        dtype = datasets[others[0]].dtype
        raise UnsupportedError(
            f"{path}: dataset /{others[0]} holds {_KINDS.get(dtype.kind, dtype)}, which cannot be mapped; rewrite it: penstock preprocess {path} DEST{rest}"
        )
    if len(counts) != 1 or 0 in counts:
        shapes = ", ".join(f"/{name} {d.shape}" for name, d in numbers.items()) or "none"
        raise UnsupportedError(f"{path}: the datasets of numbers must have one common number of records; choose some with fields=[...]: {shapes}")
    fields = {name: _foreign_field(path, name, d, dims[name]) for name, d in numbers.items()}
    records = counts.pop()
    columns = {name: [_foreign_extent(path, name, d, records)] for name, d in numbers.items()}
    return Layout(path, "hdf5", records, fields, columns, [records], coordinates=coordinates(dims))


def _foreign_extent(path: str, name: str, dataset: Any, records: int) -> Extent:
    if dataset.chunks is not None or dataset.dtype.newbyteorder("<") != dataset.dtype:
        return ChunkedExtent(path, 0, 0, records, node=name, program="h5py")
    return Extent(path, _offset(path, dataset), 0, records)


def _without_values(dataset: Any) -> bool:
    """Report whether a dataset is an axis without coordinates, as netCDF-4 has them."""
    name = dataset.attrs.get("NAME", b"") if _is_scale(dataset) else b""
    return isinstance(name, bytes) and name.startswith(b"This is a netCDF dimension but not a netCDF variable")


def _is_scale(dataset: Any) -> bool:
    return bool(dataset.attrs.get("CLASS", b"") == b"DIMENSION_SCALE")


def _dims(dataset: Any) -> tuple[str, ...]:
    """Return the names of the axes: the label of each, or the name of its first scale. A scale has its own."""
    if _is_scale(dataset):
        names = [dataset.dims[k].label for k in range(dataset.ndim)]
        return tuple(names) if any(names) else (os.path.basename(dataset.name),) if dataset.ndim == 1 else ()
    names = [axis.label or (os.path.basename(axis[0].name or "") if len(axis) else "") for axis in dataset.dims]
    return tuple(names) if any(names) else ()


def _foreign_field(path: str, name: str, dataset: Any, dims: tuple[str, ...]) -> Field:
    dtype = next((t for t, storage in STORAGE.items() if np.dtype(storage) == dataset.dtype.newbyteorder("<") and t != "bfloat16"), None)
    if dtype is None:
        raise UnsupportedError(f"{path}: dataset {dataset.name}: type {dataset.dtype} cannot be mapped; rewrite it: penstock preprocess {path} DEST")
    return Field(name=name, dtype=dtype, shape=tuple(dataset.shape[1:]), dims=dims)


def _external(path: str, dataset: Any) -> str:
    """Return the folder of the first other file that a dataset is in: of a view, the flat dataset."""
    return os.path.dirname(os.path.join(os.path.dirname(path), dataset.external[0][0])) or "."


def _offset(path: str, dataset: Any) -> int:
    """Return where the bytes of a dataset begin, if they are in this file back to back."""
    offset: int | None = dataset.id.get_offset()
    if dataset.size == 0:
        return 0
    if dataset.external:
        raise UnsupportedError(f"{path}: dataset {dataset.name}: its data is in {_external(path, dataset)}: open that dataset instead")
    if dataset.chunks is not None or offset is None:
        how = "chunked" if dataset.chunks is not None else "not contiguous"
        raise UnsupportedError(f"{path}: dataset {dataset.name}: {how}, so it cannot be mapped; rewrite it: penstock preprocess {path} DEST")
    check_inside(path, offset, dataset.size * dataset.dtype.itemsize, os.stat(path).st_size)
    return offset
