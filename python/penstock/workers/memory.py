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
import tempfile
from collections import deque
from collections.abc import Iterable
from multiprocessing import context, reduction
from typing import Any, Optional

import numpy as np

from ..shared import Areas, Lent, Mapping, Rows, Slot

#: Where the stack of a worker is written, and where slots begin: a dump has 100 lines for a thread, and pages without text take no memory.
DUMP = mmap.ALLOCATIONGRANULARITY
_SLOTS = 2 << 20
_ALIGNMENT = 64
_BYTES = Rows(np.dtype(np.uint8))


class MemoryFile:
    """An anonymous file, which can be given to a process that is started."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self.fd = os.memfd_create("penstock-worker")
        else:
            with tempfile.TemporaryFile(prefix="penstock-") as file:
                self.fd = os.dup(file.fileno())
        self.resize(_SLOTS)

    def __reduce__(self) -> tuple[Any, ...]:
        context.assert_spawning(self)
        return _received, (reduction.DupFd(self.fd),)

    def resize(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def map(self, start: int, size: int) -> mmap.mmap:
        return mmap.mmap(self.fd, size, offset=start)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def _received(descriptor: Any) -> MemoryFile:
    file = MemoryFile.__new__(MemoryFile)
    file.fd = descriptor.detach()
    return file


class Board:
    """Where a worker says what it does: numbers that the loader can read at any time, also when the worker has ended.

    ``task`` and ``place`` are the batch and the place in it that are being made, ``phase`` one of the names below. The loader
    writes ``stop``, after which no further record is begun.
    """

    PHASES = ("waiting", "worker_init_fn", "dataset", "collate", "copy")
    _TASK, _PLACE, _PHASE, _STOP = range(4)

    def __init__(self, file: MemoryFile) -> None:
        self._map = file.map(0, DUMP)
        #: The numbers, by the constants of this class.
        self.numbers = memoryview(self._map).cast("q")

    task, place, phase, stop = _TASK, _PLACE, _PHASE, _STOP

    def read(self) -> tuple[int, int, str]:
        """Return the task, the place in it, and the phase."""
        phase = self.numbers[self.phase]
        return self.numbers[self.task], self.numbers[self.place], self.PHASES[phase] if 0 <= phase < len(self.PHASES) else "?"


class _Free:
    """A slot of a worker that has no batch: where it is in the file, and how long."""

    __slots__ = ("at", "lent", "number", "size")

    def __init__(self, number: int, at: int, size: int) -> None:
        self.number, self.at, self.size = number, at, size
        self.lent: Optional[Lent] = None


class Room:
    """A slot that is being filled: bytes are taken from it, one array after the other."""

    __slots__ = ("_slot", "_used", "at", "number", "size", "start")

    def __init__(self, slot: Slot, free: _Free, address: int) -> None:
        self._slot, self._used = slot, 0
        self.number, self.at, self.size = free.number, free.at, free.size
        #: The address of its first byte.
        self.start = address

    def take(self, nbytes: int) -> Optional[np.ndarray]:
        """Return as many bytes of it, as an array of uint8; None if there is no room for them."""
        if nbytes > self.size - self._used:
            return None
        at = self._used
        self._used += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        return self._slot.array(self.at - _SLOTS + at, _BYTES, nbytes)

    @property
    def used(self) -> int:
        return min(self._used, self.size)


class Writer:
    """The worker's side of its file."""

    def __init__(self, file: MemoryFile) -> None:
        self._file, self._areas, self._freed = file, Areas(), deque[Lent]()
        self._slots: dict[int, _Free] = {}
        self._free: list[_Free] = []  # those that the loader does not refer to; this process may
        self._end, self._maps = _SLOTS, dict[int, mmap.mmap]()
        self._next = 0

    def give_back(self, numbers: list[int]) -> None:
        """Take slots back that the loader has no use for any more."""
        self._free.extend(self._slots[number] for number in numbers if number in self._slots)

    def room(self, nbytes: int) -> Room:
        """Return a slot of at least that many bytes."""
        self._freed.clear()
        usable = [f for f in self._free if f.lent is None or f.lent() is None]
        fitting = [f for f in usable if f.size >= nbytes]
        if fitting:
            chosen = min(fitting, key=lambda f: f.size)
            self._free.remove(chosen)
        else:
            for small in usable:
                self._drop(small)
            chosen = self._grow(nbytes)
        slot = Slot(self._areas, chosen.number, self._freed)
        chosen.lent = self._areas.lent[chosen.number]
        return Room(slot, chosen, self._areas.address(chosen.at - _SLOTS, 1))

    def _grow(self, nbytes: int) -> _Free:
        """Make the file longer by a slot, of a size that others may have too."""
        step = max(mmap.ALLOCATIONGRANULARITY, 1 << max(0, nbytes.bit_length() - 4))
        size = -(-max(nbytes, 1) // step) * step
        self._file.resize(self._end + size)
        memory = self._file.map(self._end, size)
        self._areas.add(Mapping(np.frombuffer(memory, np.uint8)))
        made = _Free(self._next, self._end, size)
        self._slots[made.number], self._maps[made.number] = made, memory
        self._end, self._next = self._end + size, self._next + 1
        return made

    def _drop(self, small: _Free) -> None:
        """Give the memory of a slot that is too small back to the system, where it can."""
        self._free.remove(small)
        del self._slots[small.number]
        memory = self._maps.pop(small.number)
        with contextlib.suppress(OSError, ValueError, AttributeError):
            memory.madvise(mmap.MADV_REMOVE)


class Reader:
    """The loader's side of the file of a worker."""

    def __init__(self, file: MemoryFile) -> None:
        self._file, self._areas, self._freed = file, Areas(), deque[Lent]()
        self._unused: list[int] = []

    def slot(self, number: int, at: int, size: int) -> Lease:
        """Return a slot that a worker has filled."""
        missing = at - _SLOTS + size - self._areas.size
        if missing > 0:
            memory = self._file.map(_SLOTS + self._areas.size, missing)
            self._areas.add(Mapping(np.frombuffer(memory, np.uint8)))
        return Lease(Slot(self._areas, number, self._freed), at - _SLOTS)

    def unused(self, numbers: Iterable[int]) -> None:
        """Take note of slots with batches that nobody wants."""
        self._unused.extend(numbers)

    def freed(self) -> list[int]:
        """Return the numbers of slots that nothing refers to any more, each once."""
        unused, self._unused = self._unused, []
        return unused + [self._freed.popleft().number for _ in range(len(self._freed))]

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
        """Forget the file. Memory is given back once no array over it is left."""
        self._file.close()
        self._areas = Areas()


class Lease:
    """A slot of a worker, in the loader: for as long as this, or an array of it, is there."""

    __slots__ = ("_at", "_slot")

    def __init__(self, slot: Slot, at: int) -> None:
        self._slot, self._at = slot, at

    def array(self, at: int, nbytes: int) -> np.ndarray:
        """Return bytes of the slot."""
        return self._slot.array(self._at + at, _BYTES, nbytes)
