"""Arrays on disk, mapped: what flat folders and HDF5 files have in common.

A Column is one array of a dataset, and has an Extent for each shard: rows back to back in one file. An extent is checked against
the true size of its file before anything is mapped, because a touch of mapped memory beyond the end of a file ends the process (SIGBUS)
where a read would raise an exception.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import sys
import weakref

import numpy as np

from .._base.dataclass import dataclass
from .._base.errors import CorruptError, Error
from .._base.files import open_in
from .._base.forks import MAP_FIXED, NORESERVE
from ..bfloat16 import is_bfloat16
from .field import STORAGE

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

HEADER_BYTES = 4096

_WILLNEED: int | None = getattr(mmap, "MADV_WILLNEED", None)
_PAGE_SHIFT = mmap.PAGESIZE.bit_length() - 1

#: The size up to which rows are read as a whole. Of larger rows only a part may be touched.
_LARGE = 16 << 20


@dataclass(frozen=True)
class Extent:
    """Where consecutive rows are: back to back in one file, from ``offset`` on."""

    path: str
    offset: int
    count: int
    folder: str | None = None  #: of the dataset, see _files.open_in
    npy: bool = False


class Column:
    """One array of a dataset, in one extent a shard.

    ``mode`` is "r" for arrays that cannot be written to, or "c" for copy on write: writes
    stay in this process. All files are mapped at once, so later reads see the data as it was when
    opened, even if the files are replaced meanwhile. The first mappings of a process keep descriptors, by which a file
    that was truncated is found also where another one has its name.

    Raise CorruptError if the header or size of a file differs from the extent's.
    """

    def __init__(self, name: str, dtype: np.dtype, shape: tuple[int, ...], extents: list[Extent], mode: str = "r") -> None:
        self.name, self.dtype, self.shape, self.extents, self.mode = name, dtype, shape, extents, mode
        self.row_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        self._mapped: list[_Mapped] = [_Mapped(self, extent) for extent in extents]
        self.nbytes = sum(extent.count for extent in extents) * self.row_bytes
        self.scarce = False  #: pages do not stay in memory, as the files are larger

    def part(self, k: int) -> np.ndarray:
        """Return the rows of extent k as an array over the file.

        Raise CorruptError if the file was truncated since it was opened.
        """
        mapped = self._extent(k)
        mapped.check()
        return mapped.array

    def check(self, k: int) -> None:
        """Raise CorruptError if the file of extent k was truncated since it was opened."""
        self._extent(k).check()

    def touched(self, k: int, first: int, count: int) -> np.ndarray:
        """Return the array of extent k, as part does. Some of its rows are about to be touched.

        They begin to be read, unless they follow the last rows or were read before. Otherwise the system would read around each
        touched page, as much as it does for files that are read in their order: up to megabytes.
        """
        mapped = self._mapped[k] if self._mapped else self._extent(k)
        mapped.check()
        size = count * self.row_bytes
        start = mapped.skip + first * self.row_bytes
        if not mapped.seen[start + size // 2 >> _PAGE_SHIFT] or self.scarce:  # small rows share that page, and larger ones do not
            mapped.start(start, size)
        return mapped.array

    def prefetch(self, k: int, rows: np.ndarray) -> None:
        """Start to read rows of extent k from disk, and do not wait."""
        self._extent(k).prefetch(rows * self.row_bytes, self.row_bytes)

    def close(self) -> None:
        """Forget the maps. Memory is given back when the last array over it is gone."""
        self._mapped = []

    def _extent(self, k: int) -> _Mapped:
        if not self._mapped:
            raise Error(f"{self.extents[k].path}: the dataset was closed")
        return self._mapped[k]


class _Mapped:
    """An extent in memory."""

    def __init__(self, column: Column, extent: Extent) -> None:
        size = extent.count * column.row_bytes
        start = extent.offset - extent.offset % mmap.ALLOCATIONGRANULARITY
        try:
            self._map, self._file = _map(extent, column, size, start)
        except OSError as e:
            raise explained(extent.path, e) from e
        self._path, self._end, self.skip = extent.path, extent.offset + size, extent.offset - start
        flat = np.frombuffer(self._map, column.dtype, size // column.dtype.itemsize, self.skip)
        self.array = flat.reshape((extent.count, *column.shape))
        self.seen = bytearray((self.skip + size >> _PAGE_SHIFT) + 1)  # 1 for each page that was read once
        self._next = -1  # the byte after the rows that were touched last

    def check(self) -> None:
        """Raise CorruptError if the file has become too short: to read its memory would end the process."""
        size = self._map.size() if self._file is None else self._size()  # of the file, by its descriptor or its name
        if size < self._end:
            raise CorruptError(f"{self._path}: it was truncated to {size} bytes while it was open; make the dataset again")

    def _size(self) -> int:
        try:
            found = os.stat(self._path)
        except OSError:
            return self._end  # it was removed, and is as it was
        return found.st_size if (found.st_dev, found.st_ino) == self._file else self._end

    def start(self, start: int, size: int) -> None:
        """Start to read bytes of the map, unless they follow the last bytes that were read: there the system reads ahead."""
        follows, self._next = start == self._next, start + size
        if size <= 0 or size > _LARGE:
            return
        first, end = start >> _PAGE_SHIFT, (start + size - 1 >> _PAGE_SHIFT) + 1
        self.seen[first:end] = b"\1" * (end - first)
        if not follows and _WILLNEED is not None:
            self._map.madvise(_WILLNEED, first << _PAGE_SHIFT, end - first << _PAGE_SHIFT)

    def prefetch(self, starts: np.ndarray, size: int) -> None:
        """Start to read pieces of a size, in their order and each page once."""
        if _WILLNEED is None or size <= 0 or not len(starts):
            return
        starts = np.sort(starts) + self.skip
        first, end = starts >> _PAGE_SHIFT, (starts + size - 1 >> _PAGE_SHIFT) + 1
        gaps = np.flatnonzero(first[1:] > end[:-1]) + 1
        for a, b in zip(first[[0, *gaps]].tolist(), end[[*(gaps - 1), -1]].tolist()):
            self._map.madvise(_WILLNEED, a << _PAGE_SHIFT, b - a << _PAGE_SHIFT)


#: How many mappings of this process keep a descriptor, which Python's mmap does. There are few, where a view may be of 10,000 datasets.
_MOST_DESCRIPTORS = 256
_with_descriptors = 0


def _map(extent: Extent, column: Column, size: int, start: int) -> tuple[mmap.mmap, tuple[int, int] | None]:
    """Check the file of an extent, and map its bytes from start on; of a mapping without a descriptor, say which file it is."""
    global _with_descriptors
    with open_in(extent.folder, extent.path) as f:
        if hasattr(os, "posix_fadvise"):  # else the system marks a page after those read, and its touch reads ahead
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        reserve(f.fileno())
        status = os.fstat(f.fileno())
        check_inside(extent.path, extent.offset, size, status.st_size)
        if extent.npy:
            _check_header(extent, column, f.read(HEADER_BYTES))
        length = max(1, extent.offset + size - start)
        reads, file = column.mode == "r", f.fileno()
        if sys.platform == "linux" and _with_descriptors >= _MOST_DESCRIPTORS:
            return _map_without(file, length, start, reads), (status.st_dev, status.st_ino)
        # Only pages that are written to need memory, so that there need not be room for the whole map.
        if reads or sys.platform != "linux":
            made = mmap.mmap(file, length, access=mmap.ACCESS_READ if reads else mmap.ACCESS_COPY, offset=start)
        else:
            made = mmap.mmap(file, length, flags=mmap.MAP_PRIVATE | NORESERVE, prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=start)
        _with_descriptors += 1
        weakref.finalize(made, _closed)
        return made, None


def reserve(descriptor: int) -> None:
    """Let this process have as many files open as the system allows it, if it comes near to its own limit."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in (hard, resource.RLIM_INFINITY) and descriptor > soft // 2:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _closed() -> None:
    global _with_descriptors
    _with_descriptors -= 1


def _map_without(file: int, length: int, start: int, reads: bool) -> mmap.mmap:
    """Map bytes of a file, and keep no descriptor of it: they take the place of memory that Python unmaps."""
    if reads:
        made = mmap.mmap(-1, length, access=mmap.ACCESS_READ)
        prot, flags = mmap.PROT_READ, mmap.MAP_SHARED
    else:
        prot, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | NORESERVE
        made = mmap.mmap(-1, length, flags=flags | mmap.MAP_ANONYMOUS, prot=prot)
    address = np.frombuffer(made, np.uint8).__array_interface__["data"][0]
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype, call.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    if call(address, length, prot, flags | MAP_FIXED, file, start) != address:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return made


def explained(path: str, e: OSError) -> Error:
    """Return the error for a file that the system does not open or map."""
    if e.errno == errno.EMFILE:
        return Error(f"{path}: {e.strerror}: raise the limit (ulimit -n)")
    if e.errno == errno.ENOMEM:
        return Error(f"{path}: {e.strerror}: each file is mapped; raise the limit (sysctl vm.max_map_count), or make larger shards")
    return Error(f"{path}: {e.strerror or e}")


def check_inside(path: str, offset: int, size: int, file_size: int) -> None:
    """Raise CorruptError if size bytes at offset are not in a file of file_size."""
    if offset < 0 or size < 0 or offset > file_size or size > file_size - offset:
        raise CorruptError(
            f"{path}: bytes [{offset}, +{size}) are not in a file of {file_size} bytes: the file was cut short; make the dataset again"
        )


def npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return the first 4096 bytes of a .npy file, as docs/format.md has them."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {tuple(int(n) for n in shape)!r}, }}"
    size = HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text.ljust(size - 1).encode("ascii") + b"\n"


def _check_header(extent: Extent, column: Column, header: bytes) -> None:
    dtype = np.dtype(STORAGE["bfloat16"]) if is_bfloat16(column.dtype) else column.dtype
    want = npy_header(dtype, (extent.count, *column.shape))
    if header != want:
        at = next((i for i, (a, b) in enumerate(zip(header, want)) if a != b), len(header))
        raise CorruptError(f"{extent.path}: header differs at byte {at:#x} from a header of {extent.count} records of {column.dtype} {column.shape}")
