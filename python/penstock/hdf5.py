"""HDF5 files. h5py says where the records are, and reads those that cannot be mapped."""

from __future__ import annotations

import base64
import contextlib
import io
import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from . import generations
from ._expected import WHOLE, parse
from .chunked import ChunkedExtent, coordinates, other_axes
from .column import Extent, check_inside
from .errors import CorruptError, Error, MissingError, NotFoundError, UnsupportedError
from .field import STORAGE, Field
from .flat import decode_manifest, fields_of
from .layout import Layout, column_names

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


#: The dataset with the earlier generations of a file that was changed, and how its seal begins, at that many bytes before its end.
_GENERATIONS, _SEAL, _SEAL_BYTES = "penstock/generations", b"penstock", 16


_HISTORY = {
    "newest": WHOLE,
    "generations?": [{"generation": WHOLE, "head": str, "size": range(16, 1 << 62)}],
    "tags?": [{"name": str, "generation": WHOLE}],
}


def locate(path: str, wanted: Sequence[str] | None = None, generation: int | str | None = None) -> Layout:
    """Find the arrays of an HDF5 file: of one that penstock wrote, by default in its newest generation, or of any whose datasets are contiguous."""
    if not os.path.exists(path):
        raise NotFoundError(f"{path}: no such file or folder")
    with open(path, "rb") as f:
        if not is_hdf5(f):
            f.seek(0)
            begin = f.read(16)
            what = f"begins with {begin!r}" if begin else "is empty"
            raise UnsupportedError(f"{path}: neither a folder nor an HDF5 file: it {what}; to make a dataset, run: penstock preprocess SOURCE FOLDER")
    h5py = _h5py(path)
    with _opened(path, generation) as file:
        if "penstock/manifest" in file:
            return _ours(path, file)
        return _foreign(path, file, h5py.Dataset, wanted)


def _h5py(path: str) -> Any:
    try:
        import h5py
    except ImportError as e:
        raise Error(
            f"{path}: h5py is needed to find the records of an HDF5 file: pip install h5py, or make a flat dataset: penstock preprocess SOURCE FOLDER"
        ) from e
    return h5py


@contextlib.contextmanager
def _opened(path: str, generation: int | str | None = None) -> Iterator[Any]:
    """Open a file by h5py, as it was in a generation; None is the newest."""
    h5py = _h5py(path)
    try:
        with _newest(path) as file:
            begin = None if generation is None else _begin(path, file, generation)
            if begin is None:
                yield file
                return
        with open(path, "rb") as f, h5py.File(_Earlier(path, f, *begin), "r") as file:
            yield file
    except Error:  # some are kinds of OSError
        raise
    except OSError as e:
        raise UnsupportedError(f"{path}: not an HDF5 file that h5py reads: {e}") from e


@contextlib.contextmanager
def _newest(path: str) -> Iterator[Any]:
    """Open a file by h5py, as it is now: libhdf5 shares the superblock with each h5py.File of this process, which a change may have replaced."""
    h5py = _h5py(path)
    with h5py.File(path, "r") as file:
        if "penstock/manifest" not in file or _root(path) in (None, h5py.h5o.get_info(file.id).addr):
            yield file
            return
    with open(path, "rb") as f, h5py.File(f, "r") as file:  # a file of Python is not shared
        yield file


def _root(path: str) -> int | None:
    """Return the address of the root group of a file that was changed, by its superblock of version 2; None of another one."""
    with open(path, "rb") as f:
        head = f.read(48)
    return int.from_bytes(head[36:44], "little") if head[:9] == _SIGNATURE + b"\x02" else None


def _begin(path: str, file: Any, generation: int | str) -> tuple[bytes, int] | None:
    """Return the superblock and the size that a file had in a generation; None of the newest."""
    if "penstock/manifest" not in file:
        raise generations.none(path)
    newest, earlier, tags = _history(path, file)
    digits = isinstance(generation, int) or generation.isdecimal()
    number = int(generation) if digits else generations.tagged(path, str(generation), tags)
    if number != newest and number not in earlier:
        raise generations.missing(path, number, sorted([*earlier, newest]))
    return earlier.get(number)


def _history(path: str, file: Any) -> tuple[int, dict[int, tuple[bytes, int]], dict[str, int]]:
    """Return the number of the newest generation, the superblocks and sizes of the earlier ones, and the generations by tag."""
    where = f"{path}: /{_GENERATIONS}"
    if _GENERATIONS not in file:
        return decode_manifest(_bytes(path, file, "penstock/manifest"), f"{path}: /penstock/manifest").get("generation") or 0, {}, {}
    found = parse(_bytes(path, file, _GENERATIONS), _HISTORY, where, "the generations of a file")
    try:
        earlier = {g["generation"]: (base64.b64decode(g["head"], validate=True), g["size"]) for g in found.get("generations") or ()}
    except ValueError as e:
        raise CorruptError(f"{where}: 'head': {e}") from e
    return found["newest"], earlier, {t["name"]: t["generation"] for t in found.get("tags") or ()}


def _bytes(path: str, file: Any, name: str) -> bytes:
    """Return the text in a dataset of one string."""
    dataset = file[name]
    if not hasattr(dataset, "dtype") or dataset.dtype.kind != "S" or dataset.shape != () or dataset.dtype.itemsize > os.stat(path).st_size:
        raise CorruptError(f"{path}: /{name} is not a text")
    return bytes(dataset[()])


def kept(path: str) -> list[int]:
    """Return the generations of a file that was changed, in ascending order; none of another one."""
    with _opened(path) as file:
        if _GENERATIONS not in file:
            return []
        newest, earlier, _ = _history(path, file)
        return sorted([*earlier, newest])


def find(path: str, known: str) -> int | None:
    """Return the newest generation of a file that has this id; None if the file has only ever had one."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        if not is_hdf5(f):
            return None
    for number in reversed(kept(path)):
        try:
            with _opened(path, number) as file:
                if decode_manifest(_bytes(path, file, "penstock/manifest"), path).get("id") == known:
                    return number
        except (CorruptError, UnsupportedError, KeyError):
            continue
    return None


class _Earlier(io.RawIOBase):
    """A file as it was in an earlier generation: with the superblock of then in front, and cut to the size of then."""

    def __init__(self, path: str, file: BinaryIO, head: bytes, size: int) -> None:
        self._file, self._head, self._size, self._at = file, head, size, 0
        file.seek(size - _SEAL_BYTES)
        if file.read(len(_SEAL)) != _SEAL:
            raise CorruptError(f"{path}: another program has rewritten the file, which has its newest generation only")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer).cast("B")
        self._file.seek(self._at)
        data = self._file.read(max(0, min(len(room), self._size - self._at)))
        data = self._head[self._at : self._at + len(data)] + data[max(0, min(len(self._head) - self._at, len(data))) :]
        room[: len(data)] = data
        self._at += len(data)
        return len(data)


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
    manifest = decode_manifest(_bytes(path, file, "penstock/manifest"), where)
    fields = fields_of(manifest, where)
    records = manifest["records"]
    if file.attrs.get("complete") != 1:
        raise CorruptError(f"{path}: the file is not complete; make it again")
    columns = {name: [_extent(path, file, f, name, records)] for f in fields.values() for name in column_names(f)}
    return Layout(path, "hdf5", records, fields, columns, [records], manifest)


def _extent(path: str, file: Any, f: Field, name: str, records: int) -> Extent:
    node = name.replace(".", "/") if f.ragged else name
    dataset = file.get(node)
    if not hasattr(dataset, "dtype") or (f.ragged and dataset.ndim == 0):
        raise CorruptError(f"{path}: the manifest has a field {f.name!r}, and the file has no dataset /{node} of rows")
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
            raise MissingError(f"{path}: no field {name!r:.100}; there are: {', '.join(datasets)}")
    numbers = {name: d for name, d in datasets.items() if d.dtype.kind in "biuf" and name in (wanted or datasets)}
    dims = {name: _dims(d) for name, d in datasets.items()}
    if not wanted:
        axes = other_axes(dims, {name: d.shape[0] for name, d in numbers.items()})
        numbers = {name: d for name, d in numbers.items() if name not in axes}
    counts = {d.shape[0] for d in numbers.values()}
    others = [
        name
        for name in wanted or datasets
        if datasets[name].dtype.kind not in "biuf" and (wanted or not numbers or datasets[name].shape[0] in counts)
    ]
    if others:
        rest = "" if wanted or not numbers else f"; open the others with fields={list(numbers)}"
        dtype = datasets[others[0]].dtype
        raise UnsupportedError(
            f"{path}: dataset /{others[0]} holds {_KINDS.get(dtype.kind, dtype)}, which cannot be mapped; rewrite it: "
            f"penstock preprocess {path} DEST{rest}"
        )
    if len(counts) != 1 or 0 in counts:
        shapes = ", ".join(f"/{name} {d.shape}" for name, d in numbers.items()) or "none"
        raise UnsupportedError(f"{path}: the datasets of numbers must have one common number of records; choose some with fields=[...]: {shapes}")
    fields = {name: _foreign_field(path, name, d, dims[name]) for name, d in numbers.items()}
    records = counts.pop()
    columns = {name: [_foreign_extent(path, name, d, records)] for name, d in numbers.items()}
    return Layout(path, "hdf5", records, fields, columns, [records], coordinates=coordinates(dims))


def _foreign_extent(path: str, name: str, dataset: Any, records: int) -> Extent:
    _check_inside(path, dataset)
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


def _check_inside(path: str, dataset: Any) -> None:
    """Refuse data of other files or datasets: h5py would read fill values in place of a virtual dataset's files that are not there."""
    outside = dataset.external[0][0] if dataset.external else ""
    if outside.endswith(".npy"):  # a view of a flat dataset
        folder = os.path.dirname(os.path.join(os.path.dirname(path), outside)) or "."
        raise UnsupportedError(f"{path}: dataset {dataset.name}: its data is in {folder}: open that dataset instead")
    if outside or dataset.is_virtual:
        where = f"the file {outside!r:.100}" if outside else "other datasets, as it is virtual"
        raise UnsupportedError(
            f"{path}: dataset {dataset.name}: its data is in {where}, so it cannot be mapped; rewrite it: penstock preprocess {path} DEST"
        )


def _offset(path: str, dataset: Any) -> int:
    """Return where the bytes of a dataset begin, if they are in this file back to back."""
    offset: int | None = dataset.id.get_offset()
    if dataset.size == 0:
        return 0
    _check_inside(path, dataset)
    if dataset.chunks is not None or offset is None:
        how = "chunked" if dataset.chunks is not None else "not contiguous"
        raise UnsupportedError(f"{path}: dataset {dataset.name}: {how}, so it cannot be mapped; rewrite it: penstock preprocess {path} DEST")
    check_inside(path, offset, dataset.size * dataset.dtype.itemsize, os.stat(path).st_size)
    return offset
