"""The memory that a worker shares with the loader: one anonymous file for each, with slots, one for a batch.

The worker writes, and makes the file longer when no slot is free: a slot is a part of the file, from a multiple of the page size
on. It is free when nothing refers to it on either side: the loader gives a number back once no array or tensor over the slot is
left there, and the worker looks at its own. So nothing that a batch refers to is ever overwritten, and nobody waits for memory.

The first pages are not a slot: there a worker keeps where it is, for when it does not answer, and is dumped its stack.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from .._engine.shared import Areas, Lent, Mapping, Rows, Slot
from .._engine.sharedfile import SharedFile

#: Offsets of a worker's stack dump and of the slots: a dump has 100 lines for each thread, and unused pages take no memory.
DUMP = mmap.ALLOCATIONGRANULARITY
_SLOTS = 2 << 20
_ALIGNMENT = 64
_KEPT = 16  # slots that are free, and keep their memory
_AT_ONCE = 16  # slots by which the file grows, at least
_LONGEST = 4 << 30  # by which it is doubled, at most
_LONGEST_ON_DISK = 256 << 20  # by which it grows by half, at most
_BYTES = Rows(np.dtype(np.uint8))


def memory_file() -> SharedFile:
    """Make the file of a worker."""
    file = SharedFile.create()
    file.grow(_SLOTS)
    return file


class Board:
    """Where a worker says what it does: numbers that the loader can read at any time, also when the worker has ended.

    ``task`` and ``place`` are the batch and the place in it that are being made, ``phase`` one of the names below. The loader
    writes ``stop``, after which no further record is begun.
    """

    PHASES = ("waiting", "worker_init_fn", "dataset", "collate", "copy")
    task, place, phase, stop = range(4)

    def __init__(self, file: SharedFile) -> None:
        self._map = file.map(0, DUMP)
        #: The numbers, by the constants of this class.
        self.numbers = memoryview(self._map).cast("q")

    def read(self) -> tuple[int, int, str]:
        """Return the task, the place in it, and the phase."""
        phase = self.numbers[self.phase]
        return self.numbers[self.task], self.numbers[self.place], self.PHASES[phase] if 0 <= phase < len(self.PHASES) else "?"


@dataclass(eq=False)
class _Place:
    """Where a slot of a worker is in the file, and how long it is."""

    number: int
    at: int
    size: int
    lent: Lent | None = None  # the batch that it had last in this process


class Room:
    """A slot that is being filled: bytes are taken from it, one array after the other."""

    __slots__ = ("_slot", "_used", "at", "number", "size", "start")

    def __init__(self, slot: Slot, place: _Place, address: int) -> None:
        self._slot, self._used = slot, 0
        self.number, self.at, self.size = place.number, place.at, place.size
        #: The address of its first byte.
        self.start = address

    def take(self, nbytes: int) -> np.ndarray | None:
        """Return that many bytes of the memory, as an array of uint8; None if there is no room for them."""
        if nbytes > self.size - self._used:
            return None
        at = self._used
        self._used += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        return self._slot.array(self.at - _SLOTS + at, _BYTES, nbytes)

    @property
    def used(self) -> int:
        return min(self._used, self.size)


class _Maps:
    """Parts of the file that follow each other, as one process maps them."""

    def __init__(self, file: SharedFile) -> None:
        self._file, self.areas = file, Areas()
        self._parts: list[tuple[int, mmap.mmap]] = []

    @property
    def end(self) -> int:
        """The offset up to which the file is mapped."""
        return _SLOTS + self.areas.size

    def reach(self, end: int) -> None:
        """Map the file up to an offset, which must be the end of a slot: no slot is in two parts."""
        start = self.end
        if end > start:
            memory = self._file.map(start, end - start)
            self.areas.add(Mapping(memory))
            self._parts.append((start, memory))

    def vacate(self, first: int, end: int) -> None:
        """Give memory back to the system, where it takes it. Its place in the file stays."""
        for start, memory in self._parts:
            a, b = max(first, start) - start, min(end, start + len(memory)) - start
            if a < b:
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    memory.madvise(mmap.MADV_REMOVE, a, b - a)


class Writer:
    """The worker's side of its file."""

    def __init__(self, file: SharedFile) -> None:
        self._file, self._maps, self._freed = file, _Maps(file), deque[Lent]()
        self._slots: list[_Place] = []
        self._free: dict[int, _Place] = {}  # the slots that the loader does not refer to, by number; this process may
        self._vacant: list[_Place] = []  # more such slots, whose memory was given back to the system
        self._end = _SLOTS

    @property
    def end(self) -> int:
        """The end of the last slot that there may be in what is mapped: up to it, the loader can map the file."""
        return self._maps.end

    def give_back(self, numbers: list[int]) -> None:
        """Take slots back that the loader has no use for any more."""
        self._free.update((number, self._slots[number]) for number in numbers)

    def room(self, nbytes: int) -> Room:
        """Return a slot of at least that many bytes."""
        self._freed.clear()
        usable = [p for p in self._free.values() if p.lent is None or p.lent() is None]
        fitting = [p for p in usable if p.size >= nbytes]
        if fitting:
            chosen = min(fitting, key=lambda p: p.size)
            del self._free[chosen.number]
            if len(usable) > _KEPT:
                self._trim([p for p in usable if p is not chosen], _KEPT)
        else:
            self._trim(usable, 0)
            chosen = self._from_vacant(nbytes) or self._grow(nbytes)
        areas = self._maps.areas
        slot = Slot(areas, chosen.number, self._freed, chosen.at - _SLOTS)
        chosen.lent = areas.lent[chosen.number]
        return Room(slot, chosen, areas.address(chosen.at - _SLOTS, 1))

    def _trim(self, usable: list[_Place], kept: int) -> None:
        """Give the memory of slots that are free back to the system, but for some."""
        for place in usable[kept:]:
            del self._free[place.number]
            self._vacant.append(place)
            self._maps.vacate(place.at, place.at + place.size)

    def _from_vacant(self, nbytes: int) -> _Place | None:
        fitting = [p for p in self._vacant if p.size >= nbytes]
        if not fitting:
            return None
        chosen = min(fitting, key=lambda p: p.size)
        self._vacant.remove(chosen)
        return chosen

    def _grow(self, nbytes: int) -> _Place:
        """Return a new slot, of a size that others may have, too; make the file longer if it has no room for it."""
        step = max(mmap.ALLOCATIONGRANULARITY, 1 << max(0, nbytes.bit_length() - 4))
        size = -(-max(nbytes, 1) // step) * step
        if self._end + size > self._maps.end:
            self._end = self._maps.end
            end = self._end + self._room_for_more(size)
            self._file.grow(end)
            self._maps.reach(end)
        made = _Place(len(self._slots), self._end, size)
        self._slots.append(made)
        self._end += size
        return made

    def _room_for_more(self, size: int) -> int:
        """Return by how many bytes the file grows for a slot: mappings should be few, as each may keep a descriptor."""
        if not self._file.on_disk:  # pages that nobody writes take no memory
            return max(_AT_ONCE * size, min(self._end, _LONGEST))
        half = self._end // 2 // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        return max(size, min(half, _LONGEST_ON_DISK))


class Reader:
    """The loader's side of the file of a worker."""

    def __init__(self, file: SharedFile) -> None:
        self._file, self._maps, self._freed = file, _Maps(file), deque[Lent]()
        self._unused: list[int] = []
        self._places: dict[int, tuple[int, int]] = {}

    def slot(self, number: int, at: int, size: int, end: int) -> Callable[[int, int], np.ndarray]:
        """Return the object that makes arrays of a slot that a worker has filled. The slot is lent as long as the object or an
        array exists.

        ``end`` is the end of the worker's mapped memory.

        The file may be longer while the worker adds to it, by a part of a slot.
        """
        self._maps.reach(end)
        self._places[number] = at, at + size
        slot = Slot(self._maps.areas, number, self._freed, at - _SLOTS)
        return lambda offset, nbytes: slot.array(at - _SLOTS + offset, _BYTES, nbytes)

    def unused(self, numbers: Iterable[int]) -> None:
        """Take note of slots with batches that nobody wants."""
        self._unused.extend(numbers)

    def freed(self) -> list[int]:
        """Return the numbers of slots that nothing refers to any more, each once."""
        unused, self._unused = self._unused, []
        return unused + [self._freed.popleft().number for _ in range(len(self._freed))]

    def leave(self) -> None:
        """Close the descriptor, in a fork of the loader's process."""
        self._file.close()

    def clear_dump(self) -> None:
        """Have the next dump of the worker begin at the start."""
        os.lseek(self._file.fd, DUMP, os.SEEK_SET)

    def dump(self) -> str:
        """Return what the worker dumped: as far as the position of the file, which both processes share, says."""
        with contextlib.suppress(OSError, AttributeError):  # which Windows does not have
            end = os.lseek(self._file.fd, 0, os.SEEK_CUR)
            return os.pread(self._file.fd, max(0, end - DUMP), DUMP).decode(errors="replace")
        return ""

    def close(self) -> None:
        """Forget the file. Only slots that something refers to keep their memory, until nothing does."""
        if self._file.fd >= 0:
            in_use = sorted(self._places[number] for number, lent in list(self._maps.areas.lent.items()) if lent() is not None)
            at = 0
            for first, end in [*in_use, (self._file.size, 0)]:
                self._maps.vacate(at, first)
                at = end
        self._file.close()
        self._maps = _Maps(self._file)
