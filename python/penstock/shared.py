"""Memory that a feeding process shares with this one, and arrays over it."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
from collections import deque
from typing import Any, Protocol

import numpy as np

from .wire import Malformed

#: What offsets of arrays are multiples of.
_ALIGNMENT = 64


class Pinning(Protocol):
    """Page-locks memory."""

    def register(self, address: int, size: int) -> Any:
        """Page-lock memory, and return what has to be called before it is unmapped; None if it cannot be."""


class SharedMemory:
    """The mapping of an anonymous file that a feeding process passed, which may grow.

    It must be sealed against shrinking: a read of what is no longer there would end this process.
    The descriptor is this object's from then on, also where it is refused.
    """

    def __init__(self, fd: int, pinning: Pinning | None = None) -> None:
        self._fd, self._pinning = fd, pinning
        self._mapping = Mapping(np.empty(0, np.uint8))
        import fcntl  # which Windows does not have

        seals = 0
        with contextlib.suppress(OSError):  # other files have no seals
            seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
        if not seals & fcntl.F_SEAL_SHRINK:
            self.close()
            raise Malformed("memory that is not a memfd sealed against shrinking")

    def mapped(self, size: int) -> Mapping:
        """Return a mapping of at least size bytes: the one there is, if it is large enough.

        An older one is given back once no array over it is left.
        """
        if size > self._mapping.size:
            try:
                memory = mmap.mmap(self._fd, size)
            except (OSError, ValueError) as e:
                raise Malformed(f"{size} bytes of shared memory that cannot be mapped ({e})") from None
            self._mapping = Mapping(np.frombuffer(memory, np.uint8), self._pinning)
        return self._mapping

    def close(self) -> None:
        """Forget the file. Memory is given back once no array over it is left."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._mapping = Mapping(np.empty(0, np.uint8))


class Mapping:
    """Mapped memory, for as long as something refers to this."""

    __slots__ = ("_bytes", "_unpin", "address", "size")

    def __init__(self, memory: np.ndarray, pinning: Pinning | None = None) -> None:
        self._bytes = memory
        self.address: int = memory.__array_interface__["data"][0]
        self.size = memory.nbytes
        self._unpin = None if pinning is None else pinning.register(self.address, self.size)

    def __del__(self) -> None:
        if self._unpin is not None:
            self._unpin()


class Rows:
    """Type and shape of the rows of an array, as they are for every batch."""

    __slots__ = ("nbytes", "shape", "typestr")

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...] = ()) -> None:
        self.typestr, self.shape = dtype.str, shape
        self.nbytes: int = dtype.itemsize * math.prod(shape)


class Slot:
    """The place of one batch. When nothing refers to it any more, it is free again.

    Arrays over it refer to it, and so do arrays and tensors made of those.
    """

    __slots__ = ("_freed", "_mapping", "_number")

    def __init__(self, mapping: Mapping, number: int, freed: deque[int]) -> None:
        self._mapping, self._number, self._freed = mapping, number, freed

    def array(self, at: int, rows: Rows, count: int) -> np.ndarray:
        """Return so many rows at an offset. They can be written to: the batch is the trainer's."""
        mapping = self._mapping
        if at < 0 or at % _ALIGNMENT or count < 0 or count * rows.nbytes > mapping.size - at:
            raise Malformed(f"an array of {count} rows at byte {at} of {mapping.size} of the shared memory")
        return np.asarray(_View(self, mapping.address + at, rows.typestr, (count, *rows.shape)))

    def __del__(self) -> None:
        self._freed.append(self._number)


class _View:
    """Shows NumPy an array, which then keeps the slot."""

    __slots__ = ("__array_interface__", "_slot")

    def __init__(self, slot: Slot, address: int, typestr: str, shape: tuple[int, ...]) -> None:
        self._slot = slot
        self.__array_interface__ = {"version": 3, "typestr": typestr, "shape": shape, "data": (address, False)}
