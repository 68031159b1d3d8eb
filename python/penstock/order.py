"""The order in which penstock's loader visits records: the same permutations as in Go.

``shuffle(n, seed, epoch)`` is ``sampler.Shuffle`` and, with ``run``, ``sampler.Block``;
``regions`` is ``sampler.Regions``, and ``split`` ``sampler.Split``. A permutation is computed where it
is asked for, so that one of 1e9 records takes no memory::

    order = penstock.order.shuffle(len(ds), seed=42, epoch=3)
    for k in range(0, len(order), 64):
        batch = ds[order[k:k+64]]
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator
from typing import Any, overload

import numpy as np

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_ROUNDS = 8
_MAX_TABLE = 4096
_TABLE_KEY = 1 << 16
_RUN_KEY = (1 << 16) + 1
_SPLIT_EPOCH = -1 << 62


def mix64(x: int) -> int:
    """The finaliser of SplitMix64."""
    x &= _MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def shuffle(n: int, seed: int, epoch: int, run: int = 1) -> Permutation:
    """Return the order of one epoch over n records.

    Every seed (64 bits) and epoch has a different order. With ``run`` above 1, runs of that many consecutive records are
    shuffled, and stay together; the records that are left over are one shorter run at the end.

    Args:
        n: The number of records, below 2**62.
        seed: The seed, an unsigned number of 64 bits.
        epoch: The number of the epoch, from 0.
        run: The records of a run.

    Example:
        >>> shuffle(10, seed=1, epoch=0)[0:4].shape
        (4,)
    """
    if n < 0 or n >= 1 << 62:
        raise ValueError(f"a permutation of {n} records; there may be 0 to 2**62 - 1")
    if not 0 <= seed <= _MASK:
        raise ValueError(f"seed {seed} is not an unsigned number of 64 bits")
    if run <= 1:
        return _Table(n, seed, epoch) if n <= _MAX_TABLE else _Bijection(n, seed, epoch)
    return _Runs(n, seed, epoch, run)


def regions(n: int, seed: int, epoch: int, count: int, batch: int, run: int = 1) -> Permutation:
    """Return the order of one epoch that is ``sampler.Regions`` in Go: a shuffle whose reads stay near.

    The dataset is cut into ``count`` regions, each shuffled separately (with ``run``, in runs), and
    every ``batch`` consecutive places, a global batch, have the same number of records of each.

    Args:
        n: The number of records.
        seed: The seed, an unsigned number of 64 bits.
        epoch: The number of the epoch, from 0.
        count: The number of regions, at most ``n``.
        batch: The records of a global batch, ``batch_size`` times ``world_size``: a multiple of ``count``.
        run: The records of a run.
    """
    if not 1 <= count <= n:
        raise ValueError(f"{count} regions; there may be 1 to the number of records, {n}")
    if batch < count or batch % count:
        raise ValueError(f"global batches of {batch} records; it must be batch_size times world_size, and a multiple of the regions, {count}")
    return _Regions(n, seed, epoch, count, batch, run)


def split(n: int, seed: int, start: float, stop: float) -> Permutation:
    """Return a random part of n records: ``sampler.Split`` in Go, the same in every epoch.

    It has the records whose places in a permutation by seed are in [start, stop) of its length, so that 0 to 0.9 and 0.9 to 1
    are a training and a validation set. In an order of an epoch they are ``part[shuffle(len(part), seed, epoch)[k : k + 64]]``.

    Args:
        n: The number of records.
        seed: The seed, an unsigned number of 64 bits.
        start: Where the part begins, as a share from 0 to 1.
        stop: Where it ends, above ``start``.

    Example:
        >>> len(split(1000, 1, 0, 0.9)), len(split(1000, 1, 0.9, 1))
        (900, 100)
    """
    if not 0 <= start < stop <= 1:
        raise ValueError(f"start is {start} and stop is {stop}; they must be shares, 0 <= start < stop <= 1")
    first, end = round(n * start), round(n * stop)
    if first == end and n > 0:
        raise ValueError(f"[{start}, {stop}) of {n} records is empty")
    return _Split(n, seed, first, end)


class Permutation:
    """A permutation of the numbers below its length, or a part of a longer one.

    It is indexed with an integer, a slice, or an array of positions, and gives an int or an
    array of int64. Without more, each number is in its own place.
    """

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, key: int) -> int: ...
    @overload
    def __getitem__(self, key: slice | np.ndarray | list[int]) -> np.ndarray: ...
    def __getitem__(self, key: int | slice | np.ndarray | list[int]) -> int | np.ndarray:
        if isinstance(key, slice):
            return self._at(np.arange(*key.indices(self._n), dtype=np.int64))
        positions = np.asarray(key)
        if positions.size and not np.issubdtype(positions.dtype, np.integer):
            raise TypeError(f"positions are integers, not {positions.dtype}")
        positions = positions.astype(np.int64)
        if positions.size and (positions.min() < -self._n or positions.max() >= self._n):
            raise IndexError(f"position out of range: there are {self._n}")
        found = self._at(np.atleast_1d(np.where(positions < 0, positions + self._n, positions)))
        return int(found[0]) if positions.ndim == 0 else found

    def __iter__(self) -> Iterator[int]:
        for start in range(0, self._n, 4096):
            yield from self[start : start + 4096].tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or np.int64, copy=False)

    def _at(self, positions: np.ndarray) -> np.ndarray:
        return positions


class _Table(Permutation):
    """A permutation of few records, shuffled after Fisher and Yates."""

    def __init__(self, n: int, seed: int, epoch: int) -> None:
        super().__init__(n)
        self._table = _fisher_yates(n, seed, epoch)

    def _at(self, positions: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._table[positions]
        return found


class _Bijection(Permutation):
    """A Feistel network over Z_a x Z_b, with a*b the least product that covers n.

    See Black and Rogaway, "Ciphers with arbitrary finite domains", 2002, section 5. A value
    outside [0, n) goes through again.
    """

    def __init__(self, n: int, seed: int, epoch: int) -> None:
        super().__init__(n)
        a = int(math.sqrt(n))
        self._a, self._b = np.uint64(a), np.uint64((n + a - 1) // a)
        self._keys = [np.uint64(_epoch_key(seed, epoch, i)) for i in range(_ROUNDS)]

    def _at(self, positions: np.ndarray) -> np.ndarray:
        x = self._once(positions.astype(np.uint64))
        outside = np.flatnonzero(x >= np.uint64(self._n))
        while outside.size:
            x[outside] = self._once(x[outside])
            outside = outside[x[outside] >= np.uint64(self._n)]
        return x.astype(np.int64)

    def _once(self, x: np.ndarray) -> np.ndarray:
        a, b, keys = self._a, self._b, self._keys
        high = x // b
        low = x - high * b
        scratch = np.empty_like(x), np.empty_like(x)
        for i in range(0, _ROUNDS, 2):
            _feistel(high, low, keys[i], a, *scratch)
            _feistel(low, high, keys[i + 1], b, *scratch)
        high *= b
        high += low
        return high


class _Runs(Permutation):
    """Shuffled runs of consecutive records."""

    def __init__(self, n: int, seed: int, epoch: int, run: int) -> None:
        super().__init__(n)
        count, self._tail = divmod(n, run)
        self._run, self._count = run, count
        self._runs = shuffle(count, seed, epoch)
        self._cut = _SplitMix(_epoch_key(seed, epoch, _RUN_KEY)).below(count + 1) * run

    def _at(self, positions: np.ndarray) -> np.ndarray:
        k, within = np.divmod(positions, self._run)
        first = np.full(positions.shape, self._cut, np.int64)
        whole = k < self._count
        start = self._runs[k[whole]] * self._run
        first[whole] = start + np.where(start >= self._cut, self._tail, 0)
        return first + within


class _Regions(Permutation):
    """Shuffled regions, a share of each in every global batch; the records that the regions do not divide come last."""

    def __init__(self, n: int, seed: int, epoch: int, count: int, batch: int, run: int) -> None:
        super().__init__(n)
        self._count, self._size, self._each = count, n // count, batch // count
        self._full = self._size // self._each * self._each  # records of a region that are in full shares
        seeds = (mix64((seed + (i + 1) * _GOLDEN) & _MASK) for i in range(count))
        self._inner = [shuffle(self._size, s, epoch, run) for s in seeds]

    def _at(self, positions: np.ndarray) -> np.ndarray:
        region, within = self._places(positions)
        found = positions.copy()  # what belongs to no region stays where it is
        for r in np.unique(region[region < self._count]).tolist():
            here = region == r
            found[here] = r * self._size + self._inner[r][within[here]]
        return found

    def _places(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return regions, and places in their orders. Those in none have the number after the last."""
        count, each, left = self._count, self._each, self._size - self._full
        step, share = np.divmod(positions, count * each)
        region, within = share // each, step * each + share % each
        beyond = positions - self._full * count
        rest = beyond >= 0
        last, place = np.divmod(beyond[rest], max(left, 1))
        region[rest] = np.minimum(last, count) if left else count
        within[rest] = self._full + place
        return region, within


class _Split(Permutation):
    """A stretch of the permutation that divides."""

    def __init__(self, n: int, seed: int, first: int, end: int) -> None:
        super().__init__(end - first)
        self._places, self._first = shuffle(n, seed, _SPLIT_EPOCH), first

    def _at(self, positions: np.ndarray) -> np.ndarray:
        return self._places[self._first + positions]


@functools.lru_cache(maxsize=8)
def _fisher_yates(n: int, seed: int, epoch: int) -> np.ndarray:
    table = [0] * n
    random = _SplitMix(_epoch_key(seed, epoch, _TABLE_KEY))
    for i in range(n):
        j = random.below(i + 1)
        table[i], table[j] = table[j], i
    result = np.array(table, np.int64)
    result.setflags(write=False)
    return result


class _SplitMix:
    """The SplitMix64 generator (Steele, Lea and Flood, 2014)."""

    def __init__(self, state: int) -> None:
        self._state = state

    def below(self, m: int) -> int:
        """Return a number in [0, m), each with equal probability (Lemire, 2019)."""
        while True:
            self._state = (self._state + _GOLDEN) & _MASK
            product = mix64(self._state) * m
            if product & _MASK >= (1 << 64) % m:
                return product >> 64


def _epoch_key(seed: int, epoch: int, i: int) -> int:
    s = mix64((seed + (2 * i + 1) * _GOLDEN) & _MASK)
    e = mix64((epoch + (2 * i + 2) * _GOLDEN) & _MASK)
    return mix64((s + (e << 32 | e >> 32) + _GOLDEN) & _MASK)


_30, _27, _31, _32 = map(np.uint64, (30, 27, 31, 32))
_FIRST, _SECOND, _LOW = map(np.uint64, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xFFFFFFFF))


def _feistel(x: np.ndarray, other: np.ndarray, key: np.uint64, m: np.uint64, h: np.ndarray, t: np.ndarray) -> None:
    """Add to x a hash of other below m, modulo m: a round, in place, with h and t for scratch.

    The hash is the upper 64 bits of mix64(other + key) * m. NumPy's unsigned numbers are modulo
    2**64, and m is below 2**32, as n is below 2**62.
    """
    np.add(other, key, out=h)
    h ^= np.right_shift(h, _30, out=t)
    h *= _FIRST
    h ^= np.right_shift(h, _27, out=t)
    h *= _SECOND
    h ^= np.right_shift(h, _31, out=t)
    np.bitwise_and(h, _LOW, out=t)
    t *= m
    t >>= _32
    h >>= _32
    h *= m
    h += t
    h >>= _32
    x += h
    np.minimum(x, np.subtract(x, m, out=t), out=x)  # below m, x - m is a very large number


#: About as many positions of an order are computed at once: in NumPy, a few take as long as thousands.
_AT_ONCE = 16384


class Batches:
    """The record numbers of every batch of an epoch: the numbers that penstock's loader has in Go.

    It is a ``batch_sampler`` for torch's DataLoader, and needs no torch. Epoch and step say where
    it is; as the order is a function of both, a training run goes on after ``set_epoch(epoch, step)`` with the very batch that
    comes next.

    Args:
        n: The number of records.
        batch_size: Records of a batch of this process.
        seed: Of the order: 64 bits.
        shuffle: False yields records in the order of the dataset.
        run: Records that stay together, see ``shuffle``.
        drop_last: Leave out a last batch that is not full.
        rank, world_size: A global batch of ``world_size * batch_size`` records is divided; the last
            one of an epoch, where it cannot be divided evenly, repeats records from the start of the
            epoch, so that all take as many steps.
    """

    def __init__(
        self,
        n: int,
        batch_size: int,
        seed: int = 0,
        *,
        shuffle: bool = True,
        run: int = 1,
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        n, batch_size, seed, run, rank, world_size = map(operator.index, (n, batch_size, seed, run, rank, world_size))
        if batch_size < 1 or not 0 <= rank < world_size:
            raise ValueError(f"batch_size {batch_size}, rank {rank} of {world_size}: batches have 1 record or more, ranks count from 0")
        self.n, self.batch_size, self.seed = n, batch_size, seed
        self.shuffle, self.run, self.drop_last = shuffle, run, drop_last
        self.rank, self.world_size = rank, world_size
        #: How the last global batch is divided: "equal", "full" or "uneven", as loader.Last in Go.
        self.last = "equal"
        self.set_epoch(0)

    def set_epoch(self, epoch: int, step: int = 0) -> None:
        """Say which epoch comes next, and which of its batches is the first."""
        epoch, step = operator.index(epoch), operator.index(step)
        self.epoch, self.step = epoch, 0
        if not 0 <= step <= len(self):
            raise ValueError(f"step is {step}; an epoch has {len(self)} batches")
        self.step = step

    def permutation(self) -> Any:
        """Return the order of the epoch; None if it is the dataset's own."""
        return shuffle(self.n, self.seed, self.epoch, self.run) if self.shuffle else None

    def __repr__(self) -> str:
        return f"<penstock batches of {self.batch_size} of {self.n} records: {len(self)} of epoch {self.epoch}>"

    def __len__(self) -> int:
        whole, rest = divmod(self.n, self.batch_size * self.world_size)
        left_out = self.drop_last or (self.last == "uneven" and rest <= self.rank * self.batch_size)
        return whole + (1 if rest and not left_out else 0) - self.step

    def __iter__(self) -> Iterator[np.ndarray]:
        return self._batches(self.permutation(), self.step, self.step + len(self))

    def _batches(self, order: Any, step: int, end: int) -> Iterator[np.ndarray]:
        size = self.batch_size
        whole = self.n // (size * self.world_size)  # batches that can be divided evenly
        while step < end:
            steps = max(1, min(end, whole) - step) if step < whole else 1
            steps = min(steps, max(1, _AT_ONCE // size))
            count = size if step < whole or self.last != "equal" else -(-(self.n - whole * size * self.world_size) // self.world_size)
            first = np.arange(step, step + steps, dtype=np.int64) * (size * self.world_size) + self.rank * count
            if self.last == "uneven":
                count = min(count, self.n - int(first[0]))
            positions = (first[:, np.newaxis] + np.arange(count)).reshape(-1) % self.n
            records = positions if order is None else order[positions]
            for at in range(0, steps * count, count):
                yield records[at : at + count]
            step += steps
