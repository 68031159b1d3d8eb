"""Random numbers of functions: they depend on seed, epoch and record alone."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
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
    """
    if position is not None:
        record ^= _mix64(position + 1)
    state = _mix(_mix(_mix(_mix64(seed + _FUNCTION + place)) ^ epoch) ^ record)
    return _mix(state)


def seed_random(key: int) -> None:
    """Seed ``random``, ``numpy.random`` and, if it was imported, ``torch``."""
    random.seed(key)
    np.random.seed(key & 0xFFFFFFFF)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(key & (_MASK >> 1))


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
