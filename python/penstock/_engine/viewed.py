"""Arrays over the files of a dataset, in place of copies: batches whose records follow each other there.

The feeding process passes the descriptor of a file, and says where a batch is in it; both are checked before memory
is mapped.
"""

from __future__ import annotations

import mmap
import os
import select
import stat
import weakref

import numpy as np

from .._base.errors import CorruptError
from .shared import Rows
from .wire import Malformed

#: About as many bytes are mapped at once, for batches that follow each other.
_WINDOW = 32 << 20

#: Mappings in use at most: each may have a descriptor. Beyond them somebody collects batches, which are copies then.
_MOST = 64


class Files:
    """The files that a feeding process passed, and arrays over them.

    Arrays may be written to: mappings are private, so the file stays as it is. Each byte of a mapping is in one array
    only, so what is written there is seen in no other batch.
    """

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._used: dict[int, int] = {}  # by field: the number of its file
        self._mappings: list[weakref.ref[mmap.mmap]] = []  # no WeakSet: an interrupt in its code at the end of a mapping would be lost
        #: Arrays that were copied.
        self.copied = 0

    def add(self, number: int, path: str, descriptor: int) -> None:
        """Take a file, and close its descriptor in time."""
        file = _File(path, descriptor)
        if number in self._files or not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Malformed(f"{path} as file {number}, which is another one or no plain file")
        self._files[number] = file

    def array(self, field: int, number: int, at: int, rows: Rows, count: int) -> np.ndarray:
        """Return count rows at an offset of a file. It is a copy where too many mappings are in use."""
        file = self._files.get(number)
        if file is None or at < 0:
            raise Malformed(f"{count} rows at byte {at} of file {number}, which is not there")
        if self._used.get(field) != number:
            self._files.pop(self._used.get(field, 0), None)
            self._used[field] = number
        n = count * rows.nbytes
        size = os.fstat(file.descriptor).st_size
        if n > size - at:  # a read beyond the end of the file would end this process
            raise CorruptError(f"{file.path}: it was truncated to {size} bytes, and a batch has {n} bytes from byte {at} on")
        if n == 0:
            return np.empty((count, *rows.shape), rows.dtype)
        if not ((file._next <= at and at + n <= file._end) or self._map(file, at, n, size)):
            self.copied += 1
            return file.read(at, rows, count)
        return file.view(at, n, rows, count)

    def _map(self, file: _File, at: int, n: int, size: int) -> bool:
        """Map bytes of a file, and return False where too many mappings are in use, or the system has no room for one more."""
        self._mappings = [mapping for mapping in self._mappings if mapping() is not None]
        if len(self._mappings) >= _MOST:
            return False
        try:
            self._mappings.append(weakref.ref(file.map(at, n, size)))
        except OSError:
            return False
        return True

    def clear(self) -> None:
        """Forget all files. Arrays stay as they are."""
        self._files.clear()
        self._used.clear()


class _File:
    """A file, and the part of it that is mapped."""

    __slots__ = ("_end", "_mapping", "_next", "_open", "_start", "descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        # It closes the descriptor with this object, as FileIO does, but without a warning. No code of Python runs then, in which
        # an interrupt (Ctrl-C) would be lost.
        self._open = select.epoll.fromfd(descriptor)
        self.path, self.descriptor = path, descriptor
        self._mapping: mmap.mmap | None = None
        # The bytes of the file that it maps, and the first that no array has yet.
        self._start = self._end = self._next = 0

    def map(self, at: int, n: int, size: int) -> mmap.mmap:
        """Map n bytes at an offset, and what follows them."""
        start = at - at % mmap.ALLOCATIONGRANULARITY
        end = min(size, max(at + n, start + _WINDOW))
        mapping = mmap.mmap(self.descriptor, end - start, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=start)
        self._mapping, self._start, self._end, self._next = mapping, start, end, at
        return mapping

    def view(self, at: int, n: int, rows: Rows, count: int) -> np.ndarray:
        """Return rows that are mapped. Nobody gets them again."""
        self._next = at + n
        return np.ndarray((count, *rows.shape), rows.dtype, self._mapping, at - self._start)

    def read(self, at: int, rows: Rows, count: int) -> np.ndarray:
        """Return a copy of rows."""
        data = bytearray(count * rows.nbytes)
        if os.preadv(self.descriptor, [data], at) != len(data):
            raise CorruptError(f"{self.path}: it was truncated, and a batch has {len(data)} bytes from byte {at} on")
        return np.ndarray((count, *rows.shape), rows.dtype, data)
