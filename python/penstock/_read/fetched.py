"""Records that the program reads: records of a bucket, and of local files that cannot be mapped.

FetchedRecords and FetchedRagged are fields like Records and RaggedRecords; JointRead has one request for all fields
of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._engine.batch import Batch
from .field import Field
from .ragged import DerivedRagged, Ragged, batch_of
from .reader import OpenedDataset
from .records import Derived, Places

#: About how many bytes of records are asked for at a time.
_CHUNK = 32 << 20

#: The bytes of a record of variable length, as long as it is not known.
_RAGGED = 8192

#: Turns record numbers into numbers of the opened dataset, which counts records of all splits and deleted records.
Numbers = Callable[[np.ndarray], np.ndarray]


def is_fetched(records: Any) -> bool:
    """Report whether records of a field are read, and not mapped; no records are to be read."""
    return records is None or isinstance(records, (FetchedRecords, FetchedRagged))


class JointRead:
    """The records of a Dataset or a View some fields of which are read: all of these are one request."""

    def __init__(self, opened: OpenedDataset, records: Mapping[str, Any], shown: Sequence[str], places: Places, numbers: Numbers) -> None:
        self._opened, self._records, self._shown, self._places, self._numbers = opened, records, shown, places, numbers
        self._asked = [records[name].field for name in shown if is_fetched(records[name])]
        self._mapped = [name for name in shown if all(name != f.name for f in self._asked)]

    def one(self, record: int) -> dict[str, Any]:
        """Return a record."""
        found = self._opened.take(self._asked, self._numbers(np.array([record])))
        values = {f.name: value[0] for f, value in zip(self._asked, found)}
        return {name: values[name] if name in values else self._records[name][record] for name in self._shown}

    def many(self, records: np.ndarray) -> Batch[Any]:
        """Return the records with these numbers."""
        for name in self._mapped:
            if hasattr(self._records[name], "announce"):
                self._records[name].announce(records)
        return self._batch(records, records)

    def range(self, key: slice) -> Batch[Any]:
        """Return the records of a slice."""
        return self._batch(np.arange(*key.indices(self._places.count), dtype=np.int64), key)

    def _batch(self, records: np.ndarray, key: Any) -> Batch[Any]:
        few = len(records) <= _rows(self._asked)
        values = {f.name: found for f, found in zip(self._asked, self._opened.take(self._asked, self._numbers(records)))} if few else {}
        return Batch({name: values[name] if name in values else self._records[name][key] for name in self._shown}, len(records))


def _rows(fields: Sequence[Field]) -> int:
    """Return how many records are asked for at a time."""
    return max(1, _CHUNK // max(1, sum(_RAGGED if f.ragged else f.row_bytes for f in fields)))


class FetchedRecords(Derived):
    """A field of fixed size that is read when it is indexed. A slice is no view."""

    mapped = False

    def __init__(self, opened: OpenedDataset, field: Field, places: Places, numbers: Numbers) -> None:
        super().__init__(field, field.numpy, field.shape, places.count)
        self._opened, self._numbers = opened, numbers

    def region(self, box: tuple[slice, ...]) -> np.ndarray:
        """Return a box of the array: a slice with a start and an end for each axis."""
        first, end = (int(n) for n in self._numbers(np.array([box[0].start, box[0].stop - 1])))
        if box[0].stop <= box[0].start or end - first != box[0].stop - 1 - box[0].start:  # others lie between
            return super().region(box)
        sides = [(first, end + 1), *((int(s.start), int(s.stop)) for s in box[1:])]
        return self._opened.box(self.field, [*sides, *((0, n) for n in self.shape[len(sides) :])])

    def fill(self, records: np.ndarray, out: np.ndarray) -> None:
        step = _rows([self.field])
        for at in range(0, len(records), step):
            self._opened.fill(self.field, self._numbers(records[at : at + step]), out[at : at + step])


class FetchedRagged(DerivedRagged):
    """A field of variable length that is read when it is indexed."""

    def __init__(self, opened: OpenedDataset, field: Field, places: Places, numbers: Numbers) -> None:
        super().__init__(field, field.numpy, places.count)
        self._opened, self._numbers = opened, numbers

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record, as int64."""
        return self._opened.lengths(self.field, self._numbers(np.arange(len(self))))

    def _many(self, records: np.ndarray) -> Ragged:
        step, records = _rows([self.field]), self._numbers(records)
        parts: list[Ragged] = [self._opened.take([self.field], records[at : at + step])[0] for at in range(0, max(1, len(records)), step)]
        if len(parts) == 1:
            return parts[0]
        offsets = np.cumsum(np.concatenate([[0], *(part.lengths for part in parts)]), dtype=np.int64)
        return batch_of(self.field, np.concatenate([part.values for part in parts]), offsets)
