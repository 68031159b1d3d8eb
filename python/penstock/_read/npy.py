"""A .npy file as a dataset of one field, whose records are along the first axis. store.OpenNPY has the same in Go."""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
from typing import BinaryIO

import numpy as np

from .._base.errors import CorruptError, Error, UnsupportedError
from .._base.files import open_in
from .column import Extent, check_inside, explained, read_as_asked
from .field import STORAGE, Field
from .layout import Layout

#: The samples of a file that identify it, and their bytes.
_BLOCKS, _BLOCK_BYTES = 64, 4096
_MAGIC = b"\x93NUMPY"
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_DTYPES = {np.dtype(stored): name for name, stored in STORAGE.items() if name != "bfloat16"}


def is_npy(path: str) -> bool:
    """Return whether a file begins as .npy files do."""
    try:
        with open_in(None, path) as f:
            read_as_asked(f)
            return f.read(len(_MAGIC)) == _MAGIC
    except (Error, OSError):
        return False


def locate(path: str) -> Layout:
    """Read the header of an array, and check that the file has all of it."""
    try:
        with io.BufferedReader(open_in(None, path)) as f:
            read_as_asked(f)
            shape, fortran, dtype = _header(path, f)
            offset, size = f.seek(0, os.SEEK_CUR), os.fstat(f.fileno()).st_size
            digest = _digest(f, size)
    except OSError as e:
        raise explained(path, e) from e
    convert = f"make a dataset of it: penstock preprocess {path} FOLDER"
    if not shape:
        raise UnsupportedError(f"{path}: it is a single number, and no records")
    if dtype is None:
        raise UnsupportedError(f"{path}: its elements are not numbers; readable are {', '.join(_DTYPES.values())}")
    if dtype not in _DTYPES and dtype.newbyteorder("<") not in _DTYPES:
        raise UnsupportedError(f"{path}: it has elements of type {dtype.str!r}; readable are {', '.join(_DTYPES.values())}")
    if fortran and len(shape) > 1:
        raise UnsupportedError(f"{path}: it is in Fortran order; {convert}")
    if dtype not in _DTYPES:
        raise UnsupportedError(f"{path}: its numbers are big endian; {convert}")
    if offset % dtype.itemsize:
        raise UnsupportedError(f"{path}: its numbers start at byte {offset}, which is no multiple of their size; {convert}")
    name = _NOT_IN_NAME.sub("_", os.path.basename(path).removesuffix(".npy")).strip("-") or "array"
    try:
        field = Field(name, _DTYPES[dtype], tuple(shape[1:]))
    except ValueError as e:
        raise UnsupportedError(f"{path}: {e}") from e
    if not all(shape):
        raise Error(f"{path}: it has the shape {shape}, and no elements")
    check_inside(path, offset, math.prod(shape) * dtype.itemsize, size)
    return Layout(path, "npy", shape[0], {name: field}, {name: [Extent(path, offset, 0, shape[0])]}, [shape[0]], digest=digest)


#: A header without its spaces, and an entry of it.
_HEADER = re.compile(rb"\{(?:'\w+':(?:'[^']*'|True|False|\([0-9L,]*\)),?){3}\}")
_ENTRY = re.compile(rb"'(descr|fortran_order|shape)':('[^']*'|True|False|\([0-9L,]*\))")

#: The most bytes of a header, and the most digits of a number there.
_MAX_HEADER, _MAX_DIGITS = 1 << 16, 19


def _header(path: str, f: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype | None]:
    """Read a header: the shape, whether it is in Fortran order, and the type; None for one that is not of numbers.

    NumPy's own reader compiles the text as Python, which deep brackets end with any of five exceptions.
    """
    start = f.read(8)
    version = start[6] if len(start) == 8 and start[:6] == _MAGIC and start[7] == 0 else 0
    if version not in (1, 2, 3):
        raise CorruptError(f"{path}: not a .npy file of version 1 to 3")
    length = int.from_bytes(f.read(2 if version == 1 else 4), "little")
    text = b"".join(f.read(min(length, _MAX_HEADER)).split())
    if b"'descr':[" in text:
        raise UnsupportedError(f"{path}: it has elements of type {text[:80]!r}; readable are {', '.join(_DTYPES.values())}")
    entries = dict(_ENTRY.findall(text)) if _HEADER.fullmatch(text) else {}
    if length > _MAX_HEADER or len(entries) < 3:
        raise CorruptError(f"{path}: not a .npy file: its header is not one of a type, an order and a shape: {text[:100]!r}")
    numbers = re.findall(rb"\d+", entries[b"shape"])
    if not entries[b"shape"].startswith(b"(") or any(len(n) > _MAX_DIGITS for n in numbers) or entries[b"fortran_order"] not in (b"True", b"False"):
        raise CorruptError(f"{path}: not a .npy file: its header has the shape {entries[b'shape'][:100]!r}")
    descr = entries[b"descr"].strip(b"'").decode("latin-1")
    kind = _KIND.fullmatch(descr)
    return tuple(map(int, numbers)), entries[b"fortran_order"] == b"True", np.dtype(descr) if kind else None


#: A type of one number: a byte order, a kind and a size.
_KIND = re.compile(r"[<>|=](?:b1|[iu][1248]|f[248]|c8|c16)")


def numbers(path: str) -> np.ndarray:
    """Return record numbers that are in a file: mapped, and not looked at."""
    layout = locate(path)
    (field,), (extents,) = layout.fields.values(), layout.columns.values()
    if field.shape or field.dtype not in ("int32", "int64", "uint32", "uint64"):
        raise Error(f"{path}: it is not one list of int32, int64, uint32 or uint64, as record numbers are")
    return np.memmap(path, field.storage, "r", extents[0].offset, (layout.records,))


def _digest(f: BinaryIO, size: int) -> str:
    """Return what identifies a file, as docs/format.md has it: 32 hex digits over its size and samples of its bytes."""
    found = hashlib.sha256(b"%d\n" % size)
    blocks, each = (_BLOCKS, _BLOCK_BYTES) if size > _BLOCKS * _BLOCK_BYTES else (1, size)
    for i in range(blocks):
        f.seek(size - each if i == blocks - 1 else i * ((size - each) // (blocks - 1)))
        found.update(f.read(each))
    return found.hexdigest()[:32]
