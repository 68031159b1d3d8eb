"""The random numbers of random, numpy.random and torch: seeds of workers and of records, and states that can be gone back to.

Those of functions and of own datasets with a seed depend on seed, epoch and record alone.
"""

from __future__ import annotations

import contextvars
import ctypes
import random
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._base.errors import Error
from .._engine.wire import Malformed, number, part
from ..order import mix64

MASK = (1 << 64) - 1
_WORDS = 624  # of the state of a Mersenne Twister

#: The first place of the random numbers of user code, as in package cmd/internal/feed/external.
_FUNCTION = 0x510E527FADE682D1

#: Places of random numbers that are no function's of a pipeline: of the batches of a rank, of records that replace other
#: records, and of workers.
OF_BATCH, OF_OTHER, OF_WORKER = (1 << 32) + 1, (1 << 32) + 2, (1 << 32) + 3


def torch_generator() -> Any:
    """Return torch's default generator; None if torch has not been imported."""
    return getattr(sys.modules.get("torch"), "default_generator", None)


def seed_worker(base_seed: int, worker_id: int) -> int:
    """Seed a worker as torch's DataLoader does, and return its seed."""
    seed = base_seed + worker_id
    random.seed(seed)
    # torch's _generate_state returns four words of the SeedSequence of these.
    np.random.seed(np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)
    return seed


def worker_seed(seed: int, epoch: int, rank: int) -> int:
    """Return the seed that the workers of a rank have in an epoch, as ``base_seed``."""
    return record_seed(seed, epoch, rank, place=OF_WORKER) >> 1


def record_seed(seed: int, epoch: int, record: int, position: int | None = None, *, place: int = 0) -> int:
    """Return the seed, of 64 bits, that the random numbers of user code have for a record in an epoch.

    ``position`` is the record's place in the order of the epoch, for samplers that may draw a record more than once in
    an epoch; leave it out for other samplers. ``place`` numbers the groups of functions of a pipeline that steps of the engine separate.

    Args:
        seed: The seed of the DataLoader.
        epoch: The number of the epoch, from 0.
        record: The number of the record in the dataset.
        position: The place of the record in the order of the epoch, if it may come more than once.
        place: The place of the function in its pipeline, or one of OF_BATCH, OF_OTHER and OF_WORKER.
    """
    if position is not None:
        record ^= mix64(position + 1)
    of_place = mix64(_mix(seed) ^ (_FUNCTION + place))
    state = _mix(_mix(_mix(of_place) ^ epoch) ^ record)
    return _mix(state)


#: The seed of the record that user code makes in this thread or task, or what finds it.
_record: contextvars.ContextVar[int | Callable[[], int] | None] = contextvars.ContextVar("penstock_record", default=None)

#: Say which record is made.
making = _record.set


def rng() -> np.random.Generator:
    """Return a generator of random numbers for the record that ``__getitem__`` of a dataset makes in a DataLoader.

    Its numbers are a function of the seed, the epoch and the record, so that they are the same in any thread, and after a resume.
    Each call returns a new generator, with the same numbers.

    Raises:
        Error: No such record is made by this thread.
    """
    seed = _record.get()
    if seed is None:
        raise Error("penstock.rng() is for __getitem__ of a dataset in a DataLoader; here, take numpy.random.default_rng()")
    return np.random.default_rng(seed if isinstance(seed, int) else seed())


def _mix(x: int) -> int:
    """A step of SplitMix64, and its finaliser."""
    return mix64(x + 0x9E3779B97F4A7C15)


class _Words:
    """The memory in which a Mersenne Twister has its words and its place in them, to see quickly whether its state has changed.

    The memory is searched for, not assumed: memory without the words is not used, and then each state counts as changed.
    """

    def __init__(self, address: int, size: int, words: Any) -> None:
        data = np.asarray(words, np.uint32).tobytes()
        at = ctypes.string_at(address, size).find(data) if size else -1
        self._numbers: Any = None if at < 0 else (ctypes.c_uint32 * (_WORDS + 1)).from_address(address + at)
        self._seen: bytes | None = None

    @property
    def found(self) -> bool:
        return self._numbers is not None

    def changed(self) -> bool:
        """Return whether the memory has changed since the last call, or is not known."""
        if not self.found:
            return True
        seen = bytes(self._numbers)
        same, self._seen = seen == self._seen, seen
        return not same

    def mark(self) -> tuple[int, int]:
        """Return the place and a word, in the order of the memory: a draw changes the place, or, at the end of the words, all
        words.
        """
        return self._numbers[0], self._numbers[_WORDS]


class _Python:
    """The generator of module random."""

    def __init__(self) -> None:
        owner: Any = getattr(random, "_inst", None)
        self._owner = owner  # whose memory it is
        state: tuple[Any, ...] = random.getstate()
        size = object.__sizeof__(owner) if type(owner) is random.Random and sys.implementation.name == "cpython" else 0
        self.words = _Words(id(owner), size, [state[1][_WORDS], *state[1][:_WORDS]])
        self._state: tuple[Any, ...] = ()

    @staticmethod
    def seed(number: int) -> None:
        random.seed(number)

    def state(self) -> Any:
        # One that gauss drew in advance is not in that memory: it is taken without another change.
        if self.words.changed() or self._state[2] is not None:
            self._state = random.getstate()
        return self._state

    @staticmethod
    def restore(state: Any) -> None:
        random.setstate(state)


class _NumPy:
    """The generator of numpy.random, as functions of the module use it."""

    def __init__(self) -> None:
        bits: Any = getattr(getattr(np.random.mtrand, "_rand", None), "_bit_generator", None)
        self._owner = bits
        self._state: Any = None
        known = type(bits).__name__ == "MT19937"
        state: Any = np.random.get_state()
        self.words = _Words(bits.ctypes.state_address if known else 0, 4 * (_WORDS + 1) if known else 0, [*state[1], state[2]])

    @staticmethod
    def seed(number: int) -> None:
        np.random.seed(number & 0xFFFFFFFF)

    def state(self) -> Any:
        if self.words.changed() or self._state[3]:  # has_gauss, as above
            self._state = _plain(np.random.get_state())
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
            generator.manual_seed(number & MASK >> 1)

    @staticmethod
    def state() -> Any:
        generator = torch_generator()
        return None if generator is None else generator.get_state().numpy().tobytes()

    @staticmethod
    def restore(state: Any) -> None:
        if state is not None:
            import torch

            torch.default_generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


_generators: tuple[Any, ...] | None = None


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


def seed_random(number: int) -> None:
    """Seed ``random``, ``numpy.random`` and, if it was imported, ``torch``."""
    for generator in generators():
        generator.seed(number)


#: The words of module random's state, of which the last is a place among the other words.
_PYTHON = struct.Struct(f"<{_WORDS + 1}I")


def encode(states: tuple[Any, ...]) -> dict[str, Any]:
    """Return the states of all generators as plain values: what a state of a loader holds."""
    (version, words, gauss), numpy, torch = states
    return {"python": [version, _PYTHON.pack(*words), gauss], "numpy": list(numpy), "torch": torch}


def decode(encoded: Any) -> tuple[Any, ...]:
    """Return the states that ``encode`` was given; raise Error for values that ``encode`` does not return, which could crash a
    generator.
    """
    python, numpy = part(encoded, "python", list), part(encoded, "numpy", list)
    if len(python) != 3 or python[0] != 3 or not _is_bytes(python[1], _PYTHON.size) or not (python[2] is None or isinstance(python[2], float)):
        raise Malformed("python is not a state of module random")
    words = _PYTHON.unpack(python[1])
    if words[_WORDS] > _WORDS:
        raise Malformed("python is not a state of module random")
    if len(numpy) != 5 or numpy[0] != "MT19937" or not _is_bytes(numpy[1], 4 * _WORDS) or not isinstance(numpy[4], float):
        raise Malformed("numpy is not a state of numpy.random")
    number({"numpy": numpy[2]}, "numpy", 0, _WORDS)
    number({"numpy": numpy[3]}, "numpy", 0, 1)
    if encoded.get("torch") is not None:
        check_torch(encoded["torch"])
    return (3, words, python[2]), tuple(numpy), encoded.get("torch")


def check_torch(state: Any) -> None:
    """Raise Error if this is not a state of a generator of torch, as bytes."""
    try:
        import torch
    except ImportError:
        raise Malformed("it has a state of torch, which cannot be imported") from None
    if not _is_bytes(state, len(torch.Generator().get_state())):
        raise Malformed("torch is not a state of a generator of torch")
    try:
        torch.Generator().set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    except RuntimeError:
        raise Malformed("torch is not a state of a generator of torch") from None


def _is_bytes(value: Any, n: int) -> bool:
    return isinstance(value, bytes) and len(value) == n


@contextmanager
def undisturbed() -> Iterator[None]:
    """Leave the generators as they were."""
    before = state()
    try:
        yield
    finally:
        restore(before)


class Seeds:
    """Random numbers of the records of a task: the generators that functions draw from are seeded for each, the others once.

    ``all`` seeds all of them, for the first record. A generator that is drawn from later has another mark then: ``drawn`` says so,
    after which that record must be made again, with ``all``.
    """

    def __init__(self) -> None:
        self._watched = generators()[:2]
        self._drawn = [not g.words.found for g in self._watched]
        self._before: list[tuple[int, int] | None] = []

    @property
    def certain(self) -> bool:
        """Whether all generators that can be watched are known to be drawn from."""
        return all(self._drawn)

    def all(self, key: int) -> None:
        """Seed all generators for a record."""
        seed_random(key)
        self._before = self._now()

    def next(self, key: int) -> None:
        """Seed the generators that are drawn from for another record."""
        for generator, drawn in zip(self._watched, self._drawn):
            if drawn:
                generator.seed(key)
        _Torch.seed(key)

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
        return [None if drawn else g.words.mark() for g, drawn in zip(self._watched, self._drawn)]
