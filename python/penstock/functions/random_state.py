"""Random numbers of functions: they depend on seed, epoch and record alone."""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_MASK = (1 << 64) - 1

#: Distinguishes the random numbers of functions from those of the engine: as in package cmd/internal/feed/external.
_FUNCTION = 0x510E527FADE682D1


def record_seed(seed: int, epoch: int, record: int, position: int | None = None, *, place: int = 0) -> int:
    """Return the seed, of 64 bits, that a function's random numbers have for a record in an epoch.

    ``position`` is the record's place in the order of the epoch, for samplers that may draw a record more than once in
    an epoch; leave it out for others. ``place`` is that of the function among those of a pipeline between which the engine has steps.

    Args:
        seed: The seed of the DataLoader.
        epoch: The number of the epoch, from 0.
        record: The number of the record in the dataset.
        position: The place of the record in the order of the epoch, if it may come more than once.
        place: The place of the function in its pipeline.
    """
    if position is not None:
        record ^= _mix64(position + 1)
    state = _mix(_mix(_mix(_mix64(seed + _FUNCTION + place)) ^ epoch) ^ record)
    return _mix(state)


def seed_random(key: int) -> None:
    """Seed ``random``, ``numpy.random`` and, if it was imported, ``torch``."""
    random.seed(key)
    _seed_numpy(key)
    _seed_torch(key)


class Seeds:
    """Random numbers of the records of a task: the generators that functions draw from are seeded for each, the others once.

    ``begin`` seeds all of them, so that those of its first record are right. A generator that is drawn from later has another mark
    then: ``drawn`` says so, after which that record must be made again, with ``all``.
    """

    def __init__(self) -> None:
        self._marks = _marks()
        self._drawn = [mark is None for mark in self._marks]
        self._before: list[tuple[int, int] | None] = []

    @property
    def certain(self) -> bool:
        """Whether all generators that can be watched are known to be drawn from."""
        return all(self._drawn)

    def begin(self, key: int) -> None:
        """Begin a task, with its first record."""
        seed_random(key)
        self._before = self._now()

    def all(self, key: int) -> None:
        """Seed all generators for a record."""
        seed_random(key)
        self._before = self._now()

    def next(self, key: int) -> None:
        """Seed the generators that are drawn from for another record."""
        for seed, drawn in zip(_SEEDS, self._drawn):
            if drawn:
                seed(key)
        _seed_torch(key)

    def drawn(self) -> bool:
        """Return whether a generator that was not known for it was drawn from since it was seeded."""
        now = self._now()
        if now == self._before:
            return False
        fresh = [not drawn and before != after for drawn, before, after in zip(self._drawn, self._before, now)]
        self._drawn = [drawn or new for drawn, new in zip(self._drawn, fresh)]
        self._before = self._now()
        return any(fresh)

    def _now(self) -> list[tuple[int, int] | None]:
        return [None if mark is None or drawn else (mark[0], mark[1]) for mark, drawn in zip(self._marks, self._drawn)]


def _seed_numpy(key: int) -> None:
    np.random.seed(key & 0xFFFFFFFF)


def _seed_torch(key: int) -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(key & (_MASK >> 1))


#: Of the generators that have marks: those of random and of numpy.random.
_SEEDS: tuple[Callable[[int], object], ...] = (random.seed, _seed_numpy)
_WORDS = 624  # of the state of a Mersenne Twister


def _marks() -> list[Any]:
    """Return, for random and for numpy.random, the place in the words of its state and the first of them, in its memory.

    A draw changes the place; one that comes to the end of the words changes them all. None is for a generator whose memory is
    not as it is known.
    """
    owner: Any = getattr(random, "_inst", None)
    python = None
    if type(owner) is random.Random and sys.implementation.name == "cpython":
        words = np.array(random.getstate()[1], np.uint64).astype(np.uint32)
        held = ctypes.string_at(id(owner), object.__sizeof__(owner))
        at = held.find(words[:_WORDS].tobytes())
        if at >= 4 and held[at - 4 : at] == words[_WORDS:].tobytes():
            python = (ctypes.c_uint32 * 2).from_address(id(owner) + at - 4)
    bits: Any = getattr(getattr(np.random.mtrand, "_rand", None), "_bit_generator", None)
    numpy = None
    if type(bits).__name__ == "MT19937":
        state: Any = np.random.get_state()
        held = ctypes.string_at(bits.ctypes.state_address, 4 * (_WORDS + 1))
        if held == np.append(np.asarray(state[1], np.uint32), np.uint32(state[2])).tobytes():
            numpy = _Pair(bits.ctypes.state_address + 4 * _WORDS, bits.ctypes.state_address)
    return [python, numpy]


class _Pair:
    """Two numbers in memory."""

    def __init__(self, first: int, second: int) -> None:
        self._numbers = ctypes.c_uint32.from_address(first), ctypes.c_uint32.from_address(second)

    def __getitem__(self, i: int) -> int:
        return self._numbers[i].value


@contextmanager
def kept() -> Iterator[None]:
    """Restore the random numbers of this process afterwards."""
    torch: Any = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state(), None if torch is None else torch.default_generator.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if torch is not None:
            torch.default_generator.set_state(states[2])


def _mix(x: int) -> int:
    """A step of SplitMix64, and its finaliser."""
    return _mix64(x + 0x9E3779B97F4A7C15)


def _mix64(x: int) -> int:
    x &= _MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31
