"""Batches that are ready, and slots that are given back, as numbers in memory that a feeding process shares.

docs/feed.md has the layout. A ticket's word is written last and read first; a ``_fence`` between two accesses keeps their order on every CPU.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Any

from .wire import Malformed, number

#: Numbers of a header that say which batch it is, and those before the fields' of where it is: each field has a place, and a file.
_WHICH, FIXED = 6, 3

# Places of words of 8 bytes; the rings follow.
_CLIENT_WAITS, _SLOTS_GIVEN, _FEED_WAITS, _READY = 0, 8, 16, 24
_SLOT_BITS, _SLOT_MASK = 8, 255


class Positions:
    """The client's end. One thread uses it."""

    def __init__(self, memory: memoryview, where: Any, slots: int, fields: int) -> None:
        """Take ``positions`` of a welcome; memory maps the shared file from its first byte on."""
        at, room = number(where, "at"), number(where, "slots", slots, 1 << _SLOT_BITS)
        headers, stride = number(where, "headers", 8 * (_READY + 2 * room)), number(where, "stride", 8 * (_WHICH + FIXED + 2 * fields))
        if room & (room - 1) or at % 64 or headers % 64 or stride % 64 or at + headers + stride * slots > len(memory):
            raise Malformed(f"positions {where!r:.100} in {len(memory)} bytes")
        self._memory = memory[at : at + headers + stride * slots]
        self._words = self._memory[:headers].cast("Q")
        self._room, self._slots, self._headers, self._stride = room, slots, headers, stride
        self._unpack = struct.Struct(f"{_WHICH}q{8 * (FIXED + 2 * fields)}s").unpack_from
        self.numbers = struct.Struct(f"{FIXED + 2 * fields}q").unpack
        self._order = threading.Lock()
        #: Of the batch that comes next.
        self.ticket = 0

    def _fence(self) -> None:
        """Complete all earlier reads and writes before later ones: no CPU reorders a release of a lock and a later acquire.

        An interrupt (Ctrl-C) may end it anywhere, and leave the lock in either state.
        """
        self._order.acquire(False)
        self._order.release()
        self._order.acquire(False)

    def ready(self) -> bool:
        """Return whether the next batch has arrived."""
        return self._words[_READY + self.ticket % self._room] >> _SLOT_BITS == self.ticket + 1

    def header(self) -> tuple[int, tuple[Any, ...]]:
        """Return the slot of the next batch, which must be ready, and its numbers; where it is are the bytes of ``numbers``."""
        slot = self._words[_READY + self.ticket % self._room] & _SLOT_MASK
        if slot >= self._slots:
            raise Malformed(f"a batch in slot {slot} of {self._slots}")
        self._fence()
        return slot, self._unpack(self._memory, self._headers + slot * self._stride)

    def sleep(self) -> bool:
        """Announce that this end waits for a message, and return whether it has to: else the next batch came meanwhile."""
        self._words[_CLIENT_WAITS] = self.ticket + 1
        self._fence()
        return not self.ready()

    def give_back(self, slots: Sequence[int]) -> bool:
        """Give slots back, and return whether the other end is to be woken."""
        words, first = self._words, self._words[_SLOTS_GIVEN]
        for given, slot in enumerate(slots, first):
            words[_READY + self._room + given % self._room] = slot
        self._fence()
        words[_SLOTS_GIVEN] = first + len(slots)
        self._fence()
        return bool(words[_FEED_WAITS] == first + 1)
