"""The random numbers of random, numpy.random and torch: seeds of workers and of records, and states that can be gone back to."""

from __future__ import annotations

import ctypes
import pickle
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

import numpy as np

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_WORDS = 624


def torch_generator() -> Any:
    """Return torch's default generator; None if torch has not been imported."""
    return getattr(sys.modules.get("torch"), "default_generator", None)


def seed_worker(base_seed: int, worker_id: int) -> int:
    """Seed a worker as torch's DataLoader does, and return its seed."""
    seed = base_seed + worker_id
    random.seed(seed)
    # Four words of the SeedSequence of these are what torch calls _generate_state.
    np.random.seed(np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)
    return seed


def key(*numbers: int) -> int:
    """Return 64 bits that are a function of some numbers."""
    mixed = 0
    for number in numbers:
        mixed = _mix((mixed + _mix((number + _GOLDEN) & _MASK)) * 3 & _MASK)
    return mixed


def _mix(x: int) -> int:
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _MASK
    return x ^ x >> 31


class _Python:
    """The generator of module random."""

    @staticmethod
    def seed(number: int) -> None:
        random.seed(number)

    @staticmethod
    def state() -> Any:
        return random.getstate()

    @staticmethod
    def restore(state: Any) -> None:
        random.setstate(state)


class _NumPy:
    """The generator of numpy.random, as functions of the module use it.

    get_state copies 624 words one by one, so whether a state is another one is seen in memory.
    """

    def __init__(self) -> None:
        self._seen: Any = None
        self._words: Optional[ctypes.Array[ctypes.c_uint32]] = None
        self._state: Any = None
        generator: Any = getattr(np.random.mtrand, "_rand", None)
        bits = getattr(generator, "_bit_generator", None)
        if type(bits).__name__ == "MT19937":
            self._bits = bits
            words = (ctypes.c_uint32 * (_WORDS + 1)).from_address(bits.ctypes.state_address)
            kind, keys, position, *_ = np.random.get_state()
            if bytes(words) == np.asarray(keys, np.uint32).tobytes() + np.uint32(position).tobytes():
                self._words = words

    @staticmethod
    def seed(number: int) -> None:
        np.random.seed(number & 0xFFFFFFFF)

    def state(self) -> Any:
        if self._words is None:
            return _plain(np.random.get_state())
        seen = bytes(self._words)
        if seen != self._seen or self._state[3]:  # a number that was drawn in advance may have been taken
            self._seen, self._state = seen, _plain(np.random.get_state())
        return self._state

    @staticmethod
    def restore(state: Any) -> None:
        name, keys, *rest = state
        np.random.set_state((name, np.frombuffer(keys, np.uint32), *rest))


def _plain(state: Any) -> tuple[Any, ...]:
    name, keys, position, has_gauss, cached = state
    return name, keys.tobytes(), int(position), int(has_gauss), float(cached)


class _Torch:
    """torch's default generator, once torch has been imported."""

    @staticmethod
    def seed(number: int) -> None:
        generator = torch_generator()
        if generator is not None:
            generator.manual_seed(number)

    @staticmethod
    def state() -> Any:
        generator = torch_generator()
        return None if generator is None else generator.get_state().numpy().tobytes()

    @staticmethod
    def restore(state: Any) -> None:
        if state is not None:
            import torch

            torch.default_generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


_generators: Optional[tuple[Any, ...]] = None


def generators() -> tuple[Any, ...]:
    """Return the generators whose functions user code calls: each has seed, state and restore."""
    global _generators
    if _generators is None:
        _generators = (_Python(), _NumPy(), _Torch())
    return _generators


def state() -> tuple[Any, ...]:
    """Return the states of all generators, which compare equal if they are the same."""
    return tuple(g.state() for g in generators())


def restore(states: tuple[Any, ...]) -> None:
    for generator, value in zip(generators(), states):
        generator.restore(value)


def seed(number: int) -> None:
    for generator in generators():
        generator.seed(number)


def encode(states: tuple[Any, ...]) -> bytes:
    return pickle.dumps(states, 5)


def decode(data: bytes) -> tuple[Any, ...]:
    found: tuple[Any, ...] = pickle.loads(data)
    return found


@contextmanager
def undisturbed() -> Iterator[None]:
    """Leave the generators as they were."""
    before = state()
    try:
        yield
    finally:
        restore(before)
