"""Statistics of arrays: see ``Dataset.statistics``."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .. import bfloat16
from .._base import files
from .._base.errors import Error
from .._base.values import floats
from ..transforms import Standardize
from .groups import are_missing

#: The bytes of records that are read at once, about, as float64.
_STEP = 32 << 20


@dataclass(frozen=True)
class Statistics:
    """Statistics of a field, over all its axes but the kept axes: arrays that are broadcast to a record.

    Args:
        mean: The mean of finite values; NaN where there is no finite value.
        std: Their standard deviation, divided by their number as ``numpy.std``.
        min: The least.
        max: The largest.
        count: How many there are.
        missing: How many are NaN or infinite.
        groups: The values of groups, which arrays have along a first axis more; None without groups.
    """

    mean: np.ndarray
    std: np.ndarray
    min: np.ndarray
    max: np.ndarray
    count: np.ndarray
    missing: np.ndarray
    groups: np.ndarray | None = None

    def of_group(self, value: Any) -> Statistics:
        """Return the statistics of one group, such as a month."""
        if self.groups is None:
            raise ValueError("statistics: there are no groups; compute them with group=")
        at = [k for k, group in enumerate(self.groups.tolist()) if group == value]
        if len(at) != 1:
            raise KeyError(f"statistics: no group {value!r}; there are: {', '.join(map(str, self.groups[:20]))}")
        return Statistics(*(getattr(self, name)[at[0]] for name in _ARRAYS))

    def standardize(self) -> Standardize:
        """Return the transform to mean 0 and std 1. If std is 0, or there is no value, it divides by 1."""
        if self.groups is not None:
            raise ValueError("statistics: each group has its own mean and std; choose one: statistics.of_group(value).standardize()")
        mean, std = np.nan_to_num(self.mean), np.nan_to_num(self.std)
        return Standardize(mean, np.where(std > 0, std, 1.0))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays to a .npz file of NumPy."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        path = os.fsdecode(path)
        with files.replacing(path if path.endswith(".npz") else f"{path}.npz") as file:  # as NumPy names it
            np.savez(file, **{name: a for name, a in arrays.items() if a is not None})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Statistics:
        """Read what ``save`` wrote."""
        with np.load(path) as arrays:
            missing = [name for name in _ARRAYS if name not in arrays]
            if missing:
                raise Error(f"{os.fspath(path)}: not statistics: there is no {', '.join(missing)}")
            return cls(**{f.name: arrays[f.name] for f in fields(cls) if f.name in arrays})


_ARRAYS = [f.name for f in fields(Statistics) if f.name != "groups"]


def statistics(
    values: Any, dims: Sequence[str], keep: Iterable[Any], groups: np.ndarray | None, ranges: Iterable[tuple[int, int]] | None, workers: int | None
) -> Statistics:
    """Return the statistics of a field in one pass. The result does not depend on the number of threads."""
    if groups is not None and bfloat16.is_bfloat16(groups.dtype):
        groups = bfloat16.to_float32(groups)
    kept = {_axis(a, values.ndim, dims) for a in ([keep] if isinstance(keep, (str, int)) else keep)}
    over = tuple(k for k in range(values.ndim) if k not in kept)
    step = max(1, _STEP // max(1, 8 * int(np.prod(values.shape[1:], dtype=np.int64))))
    whole = [(0, len(values))] if ranges is None else [(int(a), int(b)) for a, b in ranges]
    for a, b in whole:
        if not 0 <= a < b <= len(values):
            raise ValueError(f"statistics: range [{a}, {b}) is not of the {len(values)} records")
    if not whole:
        raise ValueError("statistics: there are no records in ranges")
    if workers is not None and workers < 1:
        raise ValueError(f"statistics: workers is {workers}; it must be at least 1")
    blocks = [(k, min(k + step, b)) for a, b in whole for k in range(a, b, step)]
    threads = workers or min(8, os.cpu_count() or 1)
    if groups is not None and groups.shape != (len(values),):
        raise ValueError(f"statistics: group has the shape {groups.shape}; it has one value for each of the {len(values)} records")
    known = [None] if groups is None else _known(groups, whole)

    def parts(block: tuple[int, int]) -> list[list[np.ndarray] | None]:
        x = values[block[0] : block[1]]
        if groups is None:
            return [_part(x, over)]
        own = groups[block[0] : block[1]]
        return [_part(x[own == g], over) if (own == g).any() else None for g in known]

    totals: list[Any] = [None] * len(known)
    with ThreadPoolExecutor(threads) as pool:
        for at in range(0, len(blocks), threads):  # in their order, and few at a time
            for found in pool.map(parts, blocks[at : at + threads]):
                totals = [_joined(total, part) for total, part in zip(totals, found)]
    made = [_made(total) for total in totals]
    if groups is None:
        return Statistics(*made[0])
    return replace(Statistics(*(np.stack(arrays) for arrays in zip(*made))), groups=np.array(known))


def _known(groups: np.ndarray, ranges: Iterable[tuple[int, int]]) -> list[Any]:
    """Return the values of groups in some ranges of records, in ascending order."""
    for a, b in ranges:
        for k in np.flatnonzero(are_missing(groups[a:b]) | _are_infinite(groups[a:b]))[:1]:
            raise ValueError(
                f"statistics: the group of record {a + k} is {groups[a + k]}; each record needs a group: "
                "give the record a value, or leave it out of ranges"
            )
    try:
        return list(np.unique(np.concatenate([groups[a:b] for a, b in ranges])))
    except TypeError:
        kinds = sorted({type(g).__name__ for a, b in ranges for g in groups[a:b]})
        raise TypeError(f"statistics: groups are of the types {', '.join(kinds)}, which have no order; give all of them one type") from None


def _are_infinite(groups: np.ndarray) -> np.ndarray:
    if groups.dtype.kind == "O":
        return np.array([isinstance(g, float) and math.isinf(g) for g in groups], bool)
    return np.isinf(groups) if groups.dtype.kind in "fc" else np.zeros(len(groups), bool)


def _joined(total: Any, part: Any) -> Any:
    return part if total is None else total if part is None else _merged(total, part)


def _made(total: list[np.ndarray]) -> list[np.ndarray]:
    """Return mean, std, min, max, count and missing."""
    n, mean, squares, low, high, missing = (a[0] for a in total)
    with np.errstate(invalid="ignore", divide="ignore"):
        std = np.sqrt(squares / n)
    return [np.where(n > 0, mean, np.nan), np.where(n > 0, std, np.nan), low, high, n, missing]


def _axis(axis: Any, ndim: int, dims: Sequence[str]) -> int:
    """Return the number of an axis in an array of records, whose first axis is always left out."""
    if isinstance(axis, str) and not axis.lstrip("-").isdecimal():
        if axis not in dims[1:]:
            raise Error(
                f"statistics: there is no axis {axis!r} of records to keep; there are: {', '.join(filter(None, dims[1:])) or 'none with a name'}"
            )
        return list(dims).index(axis, 1)
    k = int(axis)
    if not -ndim + 1 <= k < ndim - 1:
        raise Error(f"statistics: axis {k} does not exist in records of {ndim - 1} axes")
    return k + 1 if k >= 0 else k + ndim


def _part(x: np.ndarray, over: tuple[int, ...]) -> list[np.ndarray]:
    """Return count, mean, sum of squares around it, least, largest and missing of some records."""
    x = floats(x, np.dtype(np.float64))
    good = np.isfinite(x)
    n = good.sum(axis=over, keepdims=True)
    total = x.size // max(1, n.size)
    if good.all():
        mean = x.mean(axis=over, keepdims=True)
        return [n, mean, ((x - mean) ** 2).sum(axis=over, keepdims=True), x.min(axis=over, keepdims=True), x.max(axis=over, keepdims=True), total - n]
    mean = np.where(good, x, 0).sum(axis=over, keepdims=True) / np.maximum(n, 1)
    squares = np.where(good, x - np.where(good, mean, x), 0)
    low, high = np.where(good, x, np.inf).min(axis=over, keepdims=True), np.where(good, x, -np.inf).max(axis=over, keepdims=True)
    return [n, mean, (squares**2).sum(axis=over, keepdims=True), low, high, total - n]


def _merged(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    """Join two parts, after Chan, Golub and LeVeque."""
    n = a[0] + b[0]
    delta, some = b[1] - a[1], np.maximum(n, 1)
    return [
        n,
        a[1] + delta * (b[0] / some),
        a[2] + b[2] + delta**2 * (a[0] * (b[0] / some)),
        np.minimum(a[3], b[3]),
        np.maximum(a[4], b[4]),
        a[5] + b[5],
    ]


__all__ = ["Statistics"]
