"""A .npy file as a dataset of one field, whose records are along the first axis. store.OpenNPY has the same in Go."""

from __future__ import annotations

import hashlib
import os
import re
from typing import BinaryIO

import numpy as np

from .column import Extent, check_inside, read_as_asked
from .errors import CorruptError, Error, UnsupportedError
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
        with open(path, "rb", buffering=0) as f:
            read_as_asked(f)
            return f.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def locate(path: str) -> Layout:
    """Read the header of an array, and check that the file has all of it."""
    with open(path, "rb") as f:
        read_as_asked(f)
        try:
            version = np.lib.format.read_magic(f)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError(f"format version {version[0]}.{version[1]}; known are 1 to 3")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(f)
        except ValueError as e:
            raise CorruptError(f"{path}: not a .npy file that NumPy reads: {e}") from e
        offset, size = f.seek(0, os.SEEK_CUR), os.fstat(f.fileno()).st_size
        digest = _digest(f, size)
    convert = f"make a dataset of it: penstock preprocess {path} FOLDER"
    if not shape:
        raise UnsupportedError(f"{path}: it is a single number, and no records")
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
    check_inside(path, offset, shape[0] * field.row_bytes, size)
    return Layout(path, "npy", shape[0], {name: field}, {name: [Extent(path, offset, 0, shape[0])]}, [shape[0]], digest=digest)


def _digest(f: BinaryIO, size: int) -> str:
    """Return what identifies a file, as docs/format.md has it: 32 hex digits over its size and samples of its bytes."""
    found = hashlib.sha256(b"%d\n" % size)
    blocks, each = (_BLOCKS, _BLOCK_BYTES) if size > _BLOCKS * _BLOCK_BYTES else (1, size)
    for i in range(blocks):
        f.seek(size - each if i == blocks - 1 else i * ((size - each) // (blocks - 1)))
        found.update(f.read(each))
    return found.hexdigest()[:32]
