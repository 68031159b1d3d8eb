"""A field of fixed size over all shards of a dataset, or of a view.

Places says in which extent of which file a record is. Records are mapped: a slice is a view of a file where that has
it in one piece. Derived fields have the same methods, and take their values from other fields: Selected and Concatenated are
the records of views.
"""

from __future__ import annotations

import bisect
import operator
import time
from collections.abc import Iterator, Sequence
from typing import Any, Union

import numpy as np

from .._base.dataclass import dataclass
from .column import Column
from .field import Field

#: Records of this size and more are copied one by one.
_LARGE = 4096

#: Bytes a second, above which a copy came from memory and not from a disk, and seconds that no disk needs.
_MEMORY_SPEED, _MEMORY_TIME = 2e9, 2e-5

#: Bytes that are read ahead of a copy.
_AHEAD = 32 << 20


@dataclass
class Piece:
    """Records that are back to back: ``count`` of extent ``part``, from ``start`` on."""

    part: int
    start: int
    count: int


class Places:
    """Which piece a record is in. Records are numbered through all pieces."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)
        firsts = np.concatenate([[0], np.cumsum([p.count for p in self.pieces], dtype=np.int64)])
        self.firsts = firsts[:-1].astype(np.int64)
        self.count = int(firsts[-1])
        self._list: list[int] = self.firsts.tolist()
        self._parts = np.array([p.part for p in self.pieces], np.int64)
        self._starts = np.array([p.start for p in self.pieces], np.int64)

    def one(self, record: int) -> tuple[int, int]:
        """Return the piece of a record, and its place there."""
        k = bisect.bisect_right(self._list, record) - 1
        return k, record - self._list[k]

    def many(self, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Do what one does, for an array of records."""
        k = np.searchsorted(self.firsts, records, side="right") - 1
        return k, records - self.firsts[k]

    def rows(self, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the extent of each record, and its row there. Extents are few where pieces are many, as after deletes."""
        k, at = self.many(records)
        return self._parts[k], self._starts[k] + at

    def index(self, key: Any) -> int:
        """Return a record number that counts from 0, for a number that may count from the end."""
        if isinstance(key, (bool, np.bool_)):
            raise IndexError(f"a record is chosen by its number, not by {key!r}")
        record = operator.index(key)
        if not -self.count <= record < self.count:
            raise IndexError(f"record {record} is out of range: there are {self.count}")
        return record + self.count if record < 0 else record

    def indices(self, key: Any) -> np.ndarray:
        """Return record numbers from 0 on, for a list, an array, or a mask."""
        records = np.asarray(key)
        if records.dtype == np.int64 and records.ndim == 1 and records.size and int(records.view(np.uint64).max()) < self.count:
            return records  # the usual case, and fast: a negative number is a very large one there
        if records.size == 0 and not isinstance(key, np.ndarray):
            return np.zeros(0, np.int64)  # of no type, as an empty list has none
        if records.ndim != 1:
            what = repr(key) if records.ndim == 0 else f"an array of shape {records.shape}"
            raise IndexError(f"records are chosen by one list of numbers, not by {what}")
        if records.dtype == bool:
            if len(records) != self.count:
                raise IndexError(f"a mask of {len(records)} for {self.count} records")
            return np.flatnonzero(records)
        if not np.issubdtype(records.dtype, np.integer):
            raise IndexError(f"records are chosen by integers, not by {records.dtype}")
        low, high = (int(records.min()), int(records.max())) if records.size else (0, -1)
        if low < -self.count or high >= self.count:
            raise IndexError(f"record {low if low < -self.count else high} is out of range: there are {self.count}")
        records = records.astype(np.int64, copy=False)
        return np.where(records < 0, records + self.count, records) if low < 0 else records


def as_they_are(records: np.ndarray) -> np.ndarray:
    """Return record numbers where a dataset, or a view, and what the program has open count records alike."""
    return records


class Records:
    """A field of fixed size: an array of shape (records, ...) that is in one file a shard.

    ``a[i]`` and ``a[i:j]`` are views of the files where they are in one shard, and a copy where
    a slice crosses shards; ``a[[3, 1, 2]]``, or with an array, is a batch in memory of its own.
    All else that indexes an array of NumPy indexes it alike: ``a[[0, 1], [2, 3]]`` pairs its lists.
    Views are read-only, unless the dataset was opened with mode="c". It may be used by several threads.
    """

    mapped = True  #: whether slices may be views

    def __init__(self, field: Field, column: Column, places: Places) -> None:
        self.field = field
        self.dtype = column.dtype
        self.shape = (places.count, *column.shape)
        self._column, self._places = column, places
        self._in_memory = False  # the last take was that fast: the next take needs no hints

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def parts(self) -> list[np.ndarray]:
        """The arrays of the shards. No bytes are copied."""
        return [self._part(k) for k in range(len(self._places.pieces))]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<penstock field {self.field.name!r}: {self.field.dtype} {self.shape} in {len(self._places.pieces)} parts>"

    def __iter__(self) -> Iterator[np.ndarray]:
        for part in self.parts:
            yield from part

    def __getitem__(self, key: Any) -> np.ndarray:
        if isinstance(key, slice):
            return self._slice(*key.indices(self.shape[0]))
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            if type(key) is not int or not 0 <= key < self.shape[0]:
                key = self._places.index(key)
            k, at = self._places.one(key)
            piece = self._places.pieces[k]
            at += piece.start
            record: np.ndarray = self._column.touched(piece.part, at, 1)[at]
            return record
        if isinstance(key, (list, np.ndarray)) and np.ndim(key) == 1:
            return self.take(key)
        return self._indexed(key if isinstance(key, tuple) else (key,))

    def region(self, box: tuple[slice, ...]) -> np.ndarray:
        """Return a box of the array: a slice with a start and an end for each axis."""
        rows: np.ndarray = self[box[0]]
        return rows[(slice(None), *box[1:])]

    def _indexed(self, key: tuple[Any, ...]) -> np.ndarray:
        """Return what NumPy does for indices of several axes, of the records that they need alone."""
        elements = list(map(_element, key))
        free = self.ndim - sum(map(_axes, elements))
        if free < 0 or sum(e is Ellipsis for e in elements) > 1:
            raise IndexError(f"field {self.field.name!r} has {self.ndim} axes, and not {self.ndim - free}; one ... is allowed")
        elements = self._without_masks(elements, free)
        first = next((i for i, e in enumerate(elements) if _axes(e) or (e is Ellipsis and free)), None)
        if first is None or elements[first] is Ellipsis:
            everything: np.ndarray = self.numpy()[tuple(elements)]
            return everything
        chosen, records = elements[first], self._places
        if isinstance(chosen, slice):
            rows, elements[first] = self[chosen], slice(None)
        elif np.ndim(chosen) == 0:
            at = records.index(chosen)
            rows, elements[first] = self._slice(at, at + 1, 1), 0
        else:
            there, places = np.unique(records.indices(np.ravel(chosen)), return_inverse=True)
            rows, elements[first] = self.take(there), places.reshape(np.shape(chosen))
        found: np.ndarray = rows[tuple(elements)]
        return found

    def _without_masks(self, elements: list[Any], free: int) -> list[Any]:
        """Put the places where a mask is true in its stead. ``...`` stands for free axes."""
        axis = 0
        out: list[Any] = []
        for e in elements:
            n = _axes(e)
            if isinstance(e, np.ndarray) and e.dtype == bool and n:
                if e.shape != self.shape[axis : axis + n]:
                    raise IndexError(f"a mask of shape {e.shape} for axes of shape {self.shape[axis : axis + n]}")
                out += e.nonzero()
            else:
                out.append(e)
            axis += free if e is Ellipsis else n
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False and (len(self._places.pieces) > 1 or (dtype is not None and np.dtype(dtype) != self.dtype)):
            raise ValueError(
                f"field {self.field.name!r}: an array of {dtype or self.dtype} over {len(self._places.pieces)} parts cannot be had without a copy"
            )
        a = self.numpy()
        if dtype is not None and np.dtype(dtype) != a.dtype:
            return a.astype(dtype)
        return a.copy() if copy else a

    def numpy(self) -> np.ndarray:
        """Return all records: a view of the file if there is one shard, else a copy in memory."""
        return self._slice(0, len(self), 1)

    def take(self, indices: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return the records with these numbers, which may repeat, as a new array.

        With ``out``, a C-contiguous array of that shape and type, they are written there. If the last records came from a disk,
        all reads are started before the first is waited for.
        """
        records = self._places.indices(indices)
        shape = (len(records), *self.shape[1:])
        if out is None:
            out = np.empty(shape, self.dtype)
        elif out.shape != shape or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise ValueError(f"out is {out.dtype} {out.shape}; it must be C-contiguous {self.dtype} {shape}")
        self.fill(records, out)
        return out

    def fill(self, records: np.ndarray, out: np.ndarray) -> None:
        """Do what take does, for numbers that Places.indices returned, into memory that fits."""
        began = time.perf_counter()
        step = len(records) if self._in_memory else max(1, _AHEAD // max(1, self._column.row_bytes))
        self.announce(records)
        for first in range(0, len(records), max(1, step)):
            self.announce(records[first + step :])
            self._copy(records[first : first + step], out[first : first + step])
        took = time.perf_counter() - began
        self._in_memory = not self._column.scarce and took < out.nbytes / _MEMORY_SPEED + _MEMORY_TIME

    def _copy(self, records: np.ndarray, out: np.ndarray) -> None:
        if len(self._places.pieces) == 1:
            np.take(self._part(0), records, axis=0, out=out, mode="clip")
            self._check(0)
        else:
            self._take_across(records, out)

    def announce(self, records: np.ndarray) -> None:
        """Start to read the first of the records, for numbers that Places.indices returned, unless the last records were in
        memory.
        """
        if not self._in_memory:
            self._prefetch(records[: max(1, _AHEAD // max(1, self._column.row_bytes))])

    def prefetch(self, indices: Any) -> None:
        """Start to read records from disk, and do not wait."""
        self._prefetch(self._places.indices(indices))

    def _prefetch(self, records: np.ndarray) -> None:
        parts, rows = self._places.rows(records)
        for k in np.unique(parts).tolist():
            self._column.prefetch(k, rows[parts == k])

    def _take_across(self, records: np.ndarray, out: np.ndarray) -> None:
        """Take records of several pieces: large records one by one, and small records piece by piece."""
        parts, rows = self._places.rows(records)
        there = np.unique(parts).tolist()
        if self._column.row_bytes < _LARGE:
            for k in there:
                here = parts == k
                out[here] = self._column.part(k)[rows[here]]
        else:
            arrays = {k: self._column.part(k) for k in there}
            for i, (k, at) in enumerate(zip(parts.tolist(), rows.tolist())):
                out[i] = arrays[k][at]
        for k in there:
            self._column.check(k)

    def _check(self, k: int) -> None:
        """Raise CorruptError if what was just copied may not have been in the file any more."""
        self._column.check(self._places.pieces[k].part)

    def _part(self, k: int) -> np.ndarray:
        piece = self._places.pieces[k]
        rows = self._column.part(piece.part)
        return rows if len(rows) == piece.count else rows[piece.start : piece.start + piece.count]

    def _slice(self, start: int, stop: int, step: int) -> np.ndarray:
        if step < 0:
            return self.take(np.arange(start, stop, step, dtype=np.int64))
        if stop <= start:
            return np.empty((0, *self.shape[1:]), self.dtype)
        (first, a), (last, b) = self._places.one(start), self._places.one(stop - 1)
        if first == last:
            piece = self._places.pieces[first]
            a, b = piece.start + a, piece.start + b + 1
            return self._column.touched(piece.part, a, b - a)[a:b:step]
        if step > 1:
            return self.take(np.arange(start, stop, step, dtype=np.int64))
        middle = [self._part(k) for k in range(first + 1, last)]
        return np.concatenate([self._part(first)[a:], *middle, self._part(last)[: b + 1]])


class Derived(Records):
    """A field of fixed size of a view: a subclass has ``fill``, and may have ``_range``, which returns consecutive records."""

    def __init__(self, field: Field, dtype: np.dtype, shape: tuple[int, ...], count: int) -> None:
        self.field, self.dtype, self.shape = field, dtype, (count, *shape)
        self._places = Places([Piece(0, 0, count)])

    def __getitem__(self, key: Any) -> np.ndarray:
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            at = self._places.index(key)
            record: np.ndarray = self._range(at, at + 1)[0]
            return record
        return super().__getitem__(key)

    def announce(self, records: np.ndarray) -> None:
        """Do nothing, as prefetch."""

    def prefetch(self, indices: Any) -> None:
        """Do nothing: what the view is of reads ahead."""

    def _part(self, k: int) -> np.ndarray:
        return self._range(0, len(self))

    def _slice(self, start: int, stop: int, step: int) -> np.ndarray:
        if step < 0:
            return self.take(np.arange(start, stop, step, dtype=np.int64))
        return self._range(start, max(start, stop))[::step]

    def _range(self, start: int, stop: int) -> np.ndarray:
        return self.take(np.arange(start, stop, dtype=np.int64))


class Runs:
    """Runs of records, one after the other: they take memory for each run, and not for each record."""

    __slots__ = ("ends", "firsts", "shifts")

    def __init__(self, ranges: np.ndarray) -> None:
        """Take ranges [first, end), as an array of two columns of int64."""
        ranges = ranges[ranges[:, 0] < ranges[:, 1]]
        self.firsts, lengths = ranges[:, 0], ranges[:, 1] - ranges[:, 0]
        self.ends = np.cumsum(lengths)
        self.shifts = self.firsts - (self.ends - lengths)  # from a record of the view to that there

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def at(self, records: np.ndarray) -> np.ndarray:
        """Return the numbers of records there."""
        found: np.ndarray = records + self.shifts[np.searchsorted(self.ends, records, side="right")]
        return found

    def ranges(self) -> list[list[int]]:
        """Return the ranges [first, end)."""
        found: list[list[int]] = np.stack([self.firsts, self.firsts + np.diff(self.ends, prepend=0)], 1).tolist()
        return found


#: The records of a view by their numbers in another view or dataset.
Rows = Union[range, Runs, np.ndarray]


def numbers_of(rows: Rows, records: np.ndarray) -> np.ndarray:
    """Return the numbers that records of a view have in the dataset or view that it is of."""
    if isinstance(rows, Runs):
        return rows.at(records)
    return records + rows.start if isinstance(rows, range) else rows[records]


class Selected(Derived):
    """Some of the records of a field."""

    def __init__(self, base: Records, field: Field, rows: Rows) -> None:
        super().__init__(field, base.dtype, base.shape[1:], len(rows))
        self._base, self._rows, self.mapped = base, rows, base.mapped

    def region(self, box: tuple[slice, ...]) -> np.ndarray:
        """Return a box of the array: a slice with a start and an end for each axis."""
        if isinstance(self._rows, range):
            return self._base.region((slice(self._rows.start + box[0].start, self._rows.start + box[0].stop), *box[1:]))
        return super().region(box)

    def fill(self, records: np.ndarray, out: np.ndarray) -> None:
        self._base.take(numbers_of(self._rows, records), out)

    def _range(self, start: int, stop: int) -> np.ndarray:
        if isinstance(self._rows, range):
            rows: np.ndarray = self._base[self._rows.start + start : self._rows.start + stop]
            return rows
        return self._base.take(numbers_of(self._rows, np.arange(start, stop)))


def by_part(records: np.ndarray, ends: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the parts that some of the records are of: its number, the places of its records, and their numbers there."""
    parts = np.searchsorted(ends, records, side="right")
    order = np.argsort(parts, kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1) if len(order) else ():
        k = int(parts[here[0]])
        yield k, here, records[here] - (ends[k - 1] if k else 0)


def spans(start: int, stop: int, ends: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the ranges that consecutive records are: part, first, end."""
    found = []
    k = int(np.searchsorted(ends, start, side="right"))
    while start < stop:
        first, end = int(ends[k - 1]) if k else 0, int(ends[k])
        if start < end:
            found.append((k, start - first, min(stop, end) - first))
        start, k = max(start, end), k + 1
    return found


class Concatenated(Derived):
    """The records of several fields, one after the other."""

    def __init__(self, parts: Sequence[Records], field: Field, ends: np.ndarray) -> None:
        super().__init__(field, parts[0].dtype, parts[0].shape[1:], int(ends[-1]))
        self._bases, self._ends = parts, ends

    def fill(self, records: np.ndarray, out: np.ndarray) -> None:
        for k, here, local in by_part(records, self._ends):
            out[here] = self._bases[k].take(local)

    def _range(self, start: int, stop: int) -> np.ndarray:
        pieces = [self._bases[k][a:b] for k, a, b in spans(start, stop, self._ends)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.empty((0, *self.shape[1:]), self.dtype)


def _element(index: Any) -> Any:
    """Return an index of an axis or several: None, ``...``, a bool, an int, a slice, or an array of integers or of bool."""
    if index is None or index is Ellipsis or isinstance(index, (slice, bool, np.bool_)):
        return index
    if isinstance(index, (int, np.integer)):
        return int(index)
    a = np.asarray(index)
    if a.size == 0 and not isinstance(index, np.ndarray):
        return a.astype(np.int64)  # an empty list has no type
    if a.dtype != bool and not np.issubdtype(a.dtype, np.integer):
        raise IndexError(f"only integers, slices, ..., None, and arrays or lists of integers or of bool are indices, not {index!r:.80}")
    return a


def _axes(element: Any) -> int:
    """Return how many axes an index uses; None, True and False make new axes."""
    if element is None or element is Ellipsis or isinstance(element, (bool, np.bool_)):
        return 0
    return element.ndim if isinstance(element, np.ndarray) and element.dtype == bool else 1
