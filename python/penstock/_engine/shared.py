"""Memory that a feeding process shares with this one, and arrays over it.

A Slot is the place of one batch. It is free again when no array over it is left, which a weak reference notices.
"""

from __future__ import annotations

import bisect
import math
import mmap
import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._base.forks import hold
from .sharedfile import SharedFile
from .wire import Malformed

if TYPE_CHECKING:
    from .pinned import Pinning, Unpinned

#: Offsets of arrays are multiples of it.
_ALIGNMENT = 64

_BYTE = np.dtype(np.uint8)


class SharedMemory:
    """A file that a feeding process writes batches to, and that may grow. It is this object's from then on."""

    def __init__(self, file: SharedFile, pinning: Pinning | Unpinned | None = None) -> None:
        self._file, self._pinning = file, pinning
        self._areas = Areas()

    def used(self) -> list[int]:
        """Return the numbers of the slots that something refers to."""
        return [number for number, lent in list(self._areas.lent.items()) if lent() is not None]

    def mapped(self, size: int) -> Areas:
        """Map what is not mapped yet of the first size bytes, and return all that is. Nothing is mapped, or page-locked, twice."""
        start = self._areas.size
        if size > start:
            try:
                memory = self._file.map(start, size - start)
            except (OSError, ValueError, OverflowError) as e:
                raise Malformed(f"{size} bytes of shared memory that cannot be mapped ({e})") from None
            self._areas.add(Mapping(memory, self._pinning))
        return self._areas

    def close(self) -> None:
        """Forget the file. Memory is given back once no array over it is left."""
        self._file.close()
        self._areas = Areas()


class Areas:
    """Mapped parts of a file that follow each other, for as long as something refers to this."""

    __slots__ = ("__weakref__", "_mappings", "_starts", "lent", "size")

    def __init__(self) -> None:
        self._mappings: list[Mapping] = []
        self._starts: list[int] = []
        self.size = 0
        #: The slots that are lent, by number, and the slots that were lent before.
        self.lent: dict[int, Lent] = {}
        hold(self)

    def used(self) -> list[tuple[int, int]]:
        """Return where bytes are that arrays of batches have, and how many: a forked child keeps them."""
        slots = [lent() for lent in list(self.lent.values())]
        return [place for slot in slots if slot is not None for place in slot.addresses()]

    def add(self, mapping: Mapping) -> None:
        self._mappings.append(mapping)
        self._starts.append(self.size)
        self.size += mapping.size

    def bytes(self) -> memoryview:
        """Return the memory if it has a single part, else nothing."""
        return self._mappings[0].bytes.data if len(self._mappings) == 1 else memoryview(b"")

    def part(self, at: int, n: int) -> tuple[int, Mapping]:
        """Return where the part begins that has n bytes at an offset, and the part. Memory is never added by halves."""
        i = bisect.bisect_right(self._starts, at) - 1
        if i < 0 or at - self._starts[i] > self._mappings[i].size - n:
            raise Malformed(f"{n} bytes at byte {at} of {self.size} of the shared memory")
        return self._starts[i], self._mappings[i]

    def address(self, at: int, n: int) -> int:
        """Return where n bytes at an offset are, which must be in one part."""
        start, mapping = self.part(at, n)
        return mapping.address + at - start


class Mapping:
    """Mapped memory, for as long as something refers to this."""

    __slots__ = ("_unpin", "address", "bytes", "memory", "size")

    def __init__(self, memory: mmap.mmap, pinning: Pinning | Unpinned | None = None) -> None:
        self._unpin = None
        self.memory, self.bytes = memory, np.frombuffer(memory, np.uint8)
        self.address: int = self.bytes.__array_interface__["data"][0]
        self.size = len(memory)
        self._unpin = None if pinning is None else pinning.register(self.address, self.size)

    def __del__(self) -> None:
        if self._unpin is not None:
            self._unpin()  # before bytes is let go, which unmaps


class Rows:
    """Type and shape of the rows of an array, as they are for every batch."""

    __slots__ = ("dtype", "nbytes", "shape")

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...] = ()) -> None:
        self.dtype, self.shape = dtype, shape
        self.nbytes: int = dtype.itemsize * math.prod(shape)


def _check(at: int, count: int) -> None:
    """Raise Malformed for a place that no array of that many rows has."""
    if at < 0 or at % _ALIGNMENT or count < 0:
        raise Malformed(f"an array of {count} rows at byte {at} of the shared memory")


class Layout:
    """Where the arrays of a batch are: checked once for all batches that have it."""

    __slots__ = ("areas", "arrays", "count", "indices", "mapping", "mask", "offsets", "places", "start")

    def __init__(self, areas: Areas, count: int, fields: Sequence[tuple[int, Rows]], indices: int, mask: int) -> None:
        """Take the offset of each field with its rows, and the offsets of the numbers and of the mask of ``count`` records."""
        for at, _ in fields:
            _check(at, count)
        self.areas, self.count, self.indices, self.mask = areas, count, indices, mask
        self.offsets = [at for at, _ in fields]
        #: Offsets and lengths, which a forked child keeps.
        self.arrays = {*((at, count * rows.nbytes) for at, rows in fields), (indices, 8 * count), (mask, count)}
        for at, n in self.arrays:
            areas.part(at, n)
        self.start, self.mapping = areas.part((*self.offsets, indices)[0], 1)
        #: The shape, the type and the offset in that part of each field; None if they are in several parts.
        self.places: list[tuple[tuple[int, ...], np.dtype, int]] | None = None
        if all(self.start <= at <= self.start + self.mapping.size - count * rows.nbytes for at, rows in fields):
            self.places = [((count, *rows.shape), rows.dtype, at - self.start) for at, rows in fields]


class Slot(np.ndarray):
    """The place of one batch. When nothing refers to it any more, it is free again.

    Arrays over it refer to it, and so do arrays and tensors made from those. It is itself an array, of the bytes of the part of
    the memory that it is in: NumPy makes an array over another one twenty times as fast as from an object with an interface.
    """

    __slots__ = ("_areas", "_start", "arrays")

    _areas: Areas
    _start: int
    arrays: set[tuple[int, int]]  # offsets and lengths

    def __new__(cls, areas: Areas, number: int, freed: deque[Lent], at: int) -> Slot:
        """Lend a slot, which has a byte at an offset."""
        start, mapping = areas.part(at, 1)
        return cls._over(areas, start, mapping, set(), number, freed)

    @classmethod
    def of(cls, layout: Layout, number: int, freed: deque[Lent]) -> Slot:
        """Lend a slot whose batch has a layout."""
        return cls._over(layout.areas, layout.start, layout.mapping, layout.arrays, number, freed)

    @classmethod
    def _over(cls, areas: Areas, start: int, mapping: Mapping, arrays: set[tuple[int, int]], number: int, freed: deque[Lent]) -> Slot:
        slot = np.ndarray.__new__(cls, (mapping.size,), _BYTE, mapping.memory)
        slot._areas, slot._start, slot.arrays = areas, start, arrays
        areas.lent[number] = _lent(slot, number, freed)
        return slot

    def array(self, at: int, rows: Rows, count: int) -> np.ndarray:
        """Return count rows at an offset. They are writable: the batch is the trainer's."""
        _check(at, count)
        n, start = count * rows.nbytes, self._start
        part: np.ndarray = self
        if not start <= at <= start + self.size - n:
            start, part = self._other(at, n)
        self.arrays.add((at, n))
        return np.ndarray((count, *rows.shape), rows.dtype, part, at - start)

    def _other(self, at: int, n: int) -> tuple[int, _Part]:
        """Return where another part of the memory begins that has n bytes at an offset, and the part, which keeps this slot."""
        start, mapping = self._areas.part(at, n)
        part = _Part((mapping.size,), np.uint8, mapping.memory)
        part.slot = self
        return start, part

    def addresses(self) -> list[tuple[int, int]]:
        """Return where bytes are that arrays have, and how many."""
        return [(self._areas.address(at, n), n) for at, n in list(self.arrays)]


class _Part(np.ndarray):
    """The bytes of a part of the memory, for arrays of a slot that is in several."""

    __slots__ = ("slot",)

    slot: Slot


class Lent(weakref.ref[Slot]):
    """A reference to a slot that adds itself to ``freed`` once nothing else refers to the slot.

    No code of Python runs then, which an interrupt could end.
    """

    __slots__ = ("number",)

    number: int


def _lent(slot: Slot, number: int, freed: deque[Lent]) -> Lent:
    """Return the reference to a slot of the caller, which outlives one that an interrupt leaves without a number."""
    lent = Lent(slot, freed.append)
    lent.number = number
    return lent
