"""Arrays on disk, mapped: what flat folders and HDF5 files have in common."""

from __future__ import annotations

import mmap
import os
import sys
from dataclasses import dataclass

import numpy as np

from .errors import CorruptError, Error

HEADER_BYTES = 4096

_WILLNEED: int | None = getattr(mmap, "MADV_WILLNEED", None)
_UNTRACKED = {"trackfd": False} if sys.version_info >= (3, 13) else {}


@dataclass(frozen=True)
class Extent:
    """Where consecutive rows lie: back to back in one file, from ``offset`` on.

    ``first`` is the number of the first row in the whole array. ``sums`` says in which file, and
    from which byte on, the CRC32Cs of the rows' blocks lie, and ``sums_crc32c`` is the checksum
    of that whole file, where there are some.
    """

    path: str
    offset: int
    first: int
    count: int
    npy: bool = False
    sums: tuple[str, int] | None = None
    sums_crc32c: str = ""


class Column:
    """One array of a dataset, in one extent a shard.

    ``mode`` is "r" for arrays that cannot be written to, or "c" for copy on write: what is
    written stays in this process. Files are opened when their first byte is asked for.
    """

    def __init__(self, name: str, dtype: np.dtype, shape: tuple[int, ...], extents: list[Extent], mode: str = "r") -> None:
        self.name, self.dtype, self.shape, self.extents, self.mode = name, dtype, shape, extents, mode
        self.row_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        self._mapped: list[_Mapped | None] = [None] * len(extents)

    def part(self, k: int) -> np.ndarray:
        """Return the rows of extent k as an array over the file."""
        return self._map(k).array

    def prefetch(self, k: int, first: int, count: int) -> None:
        """Start to read rows of extent k from disk, and do not wait."""
        self._map(k).prefetch(first * self.row_bytes, count * self.row_bytes)

    def close(self) -> None:
        """Forget the maps. Memory is given back when the last array over it is gone."""
        self._mapped = [None] * len(self.extents)

    def _map(self, k: int) -> _Mapped:
        mapped = self._mapped[k]
        if mapped is None:
            mapped = self._mapped[k] = _Mapped(self, self.extents[k])
        return mapped


class _Mapped:
    """An extent in memory."""

    def __init__(self, column: Column, extent: Extent) -> None:
        size = extent.count * column.row_bytes
        start = extent.offset - extent.offset % mmap.ALLOCATIONGRANULARITY
        access = mmap.ACCESS_COPY if column.mode == "c" else mmap.ACCESS_READ
        try:
            with open(extent.path, "rb") as f:
                check_inside(extent.path, extent.offset, size, os.fstat(f.fileno()).st_size)
                if extent.npy:
                    _check_header(extent, column, f.read(HEADER_BYTES))
                length = max(1, extent.offset + size - start)
                self._map = mmap.mmap(f.fileno(), length, access=access, offset=start, **_UNTRACKED)
        except OSError as e:
            raise Error(f"{extent.path}: {e.strerror or e}") from e
        self._skip = extent.offset - start
        elements = size // column.dtype.itemsize
        flat = np.frombuffer(self._map, column.dtype, elements, self._skip)
        self.array = flat.reshape((extent.count, *column.shape))

    def prefetch(self, start: int, size: int) -> None:
        if _WILLNEED is None or size <= 0:
            return
        start += self._skip
        page = start - start % mmap.PAGESIZE
        self._map.madvise(_WILLNEED, page, start + size - page)


def check_inside(path: str, offset: int, size: int, file_size: int) -> None:
    """Raise CorruptError if size bytes at offset do not lie in a file of file_size."""
    if offset < 0 or size < 0 or offset > file_size or size > file_size - offset:
        raise CorruptError(
            f"{path}: bytes [{offset}, +{size}) do not lie in a file of {file_size} bytes: the file was cut short; make the dataset again"
        )


def npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return the first 4096 bytes of a .npy file, as docs/format.md has them."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {tuple(int(n) for n in shape)!r}, }}"
    size = HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text.ljust(size - 1).encode("ascii") + b"\n"


def _check_header(extent: Extent, column: Column, header: bytes) -> None:
    want = npy_header(column.dtype, (extent.count, *column.shape))
    if header != want:
        at = next((i for i, (a, b) in enumerate(zip(header, want)) if a != b), len(header))
        raise CorruptError(f"{extent.path}: header differs at byte {at:#x} from that of {extent.count} records of {column.dtype} {column.shape}")
