"""Fields of which every record holds another number of rows: tokens, boxes, text, files.

Ragged is a batch of such records, and RaggedRecords the field: records.py with an array of offsets more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, overload

import numpy as np

from .._base.errors import CorruptError
from .._base.values import full
from .column import Column
from .field import IMAGES, SPARSE, Field
from .records import Piece, Places, Rows, by_part, numbers_of, spans


class Ragged:
    """A batch of records of a ragged field: all their rows, and where each record's end.

    Record i is ``values[offsets[i]:offsets[i+1]]``. ``offsets`` are int64, one more than there
    are records, from 0 on: the cumulative lengths (cu_seqlens) that attention kernels for
    variable lengths want. ``len`` is the number of records, and iteration goes over them.

    A record of content "images" is a list of image files, as uint8 arrays. In ``values`` there is the length before each
    file, as a uint32, little endian.

    Args:
        values: The rows of all records, one after the other.
        offsets: The first row of each record, and the end of the last: int64, of shape (records + 1,).
        content: "utf-8" for text; otherwise as in ``Field``.
    """

    __slots__ = ("_numbers", "content", "offsets", "values")

    def __init__(self, values: np.ndarray, offsets: np.ndarray, content: str = "") -> None:
        self.values, self.offsets, self.content = values, offsets, content
        self._numbers: tuple[str, Sequence[int] | np.ndarray] = "", ()

    @property
    def is_text(self) -> bool:
        """Whether records are str."""
        return self.content in ("utf-8", "source-name")

    @property
    def is_images(self) -> bool:
        """Whether records are lists of image files."""
        return self.content == IMAGES

    def files(self) -> list[list[np.ndarray]]:
        """Return the image files of each record of content "images"."""
        return cast("list[list[np.ndarray]]", list(self))

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<{len(self)} ragged records: {self.values.dtype} {self.values.shape}>"

    @overload
    def __getitem__(self, i: int) -> np.ndarray | str | list[np.ndarray]: ...

    @overload
    def __getitem__(self, i: slice | Sequence[int] | np.ndarray) -> Ragged: ...

    def __getitem__(self, i: Any) -> np.ndarray | str | list[np.ndarray] | Ragged:
        """Return the rows of record i, its text if the field's content is utf-8, or a list of its image files.

        A slice, or an array or list of numbers, makes a batch of these records; the batch of a slice of step 1 is a view.
        """
        if isinstance(i, slice) or np.ndim(i) > 0:
            return self._some(np.arange(len(self))[i])
        if not -len(self) <= i < len(self):
            raise IndexError(f"record {i} is out of range: there are {len(self)}")
        i = i + len(self) if i < 0 else i
        field, numbers = self._numbers
        return present(self.values[self.offsets[i] : self.offsets[i + 1]], self.content, field, numbers[i] if len(numbers) else i)

    def __iter__(self) -> Iterator[np.ndarray | str | list[np.ndarray]]:
        return (self[i] for i in range(len(self)))

    def copy(self) -> Ragged:
        """Return a copy of the records in new memory."""
        return numbered(self._like(self.values.copy(), self.offsets.copy()), *self._numbers)

    def _like(self, values: np.ndarray, offsets: np.ndarray) -> Ragged:
        """Return a batch of the same content."""
        return Ragged(values, offsets, self.content)

    def _some(self, records: np.ndarray) -> Ragged:
        """Return the records of these numbers, all of which there are."""
        starts, lengths = self.offsets[records], self.lengths[records]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if len(records) and (np.diff(records) == 1).all():
            values = self.values[starts[0] : starts[-1] + lengths[-1]]
        else:
            values = self.values[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])]
        field, numbers = self._numbers
        return numbered(self._like(values, offsets), field, np.asarray(numbers)[records] if len(numbers) else records)

    def padded(self, fill: Any = 0, length: int | None = None) -> np.ndarray:
        """Return an array of shape (records, longest, ...), filled up at the end of each.

        With ``length``, records are that long: longer ones are cut. Raise ValueError for a ``fill`` that the type of the
        values does not hold, and for a negative length.
        """
        if length is None:
            length = int(self.lengths.max()) if len(self) else 0
        if length < 0:
            raise ValueError(f"length is {length}; it must be 0 or more, or None for the longest record")
        dtype = self.values.dtype
        if dtype.kind in "biu" and not (fill == int(fill) and (dtype.kind == "b" or np.iinfo(dtype).min <= fill <= np.iinfo(dtype).max)):
            raise ValueError(f"fill is {fill!r}, which {dtype} does not hold")
        out = full((len(self), length, *self.values.shape[1:]), fill, dtype)
        for i in range(len(self)):
            rows = self.values[self.offsets[i] : min(self.offsets[i + 1], self.offsets[i] + length)]
            out[i, : len(rows)] = rows
        return out


class Sparse(Ragged):
    """A batch of rows that are mostly zero, as cells of ``.h5ad`` files are: a matrix that is compressed by rows.

    ``values`` are pairs of a column and the value in it. ``indptr``, ``indices`` and ``data`` are what SciPy and torch
    make matrices of, as ``scipy()`` and ``torch()`` do.

    Args:
        values: The pairs of all rows, of shape (n, 2).
        offsets: Where each row begins, and the end of the last.
        width: The number of columns.
    """

    __slots__ = ("width",)

    def __init__(self, values: np.ndarray, offsets: np.ndarray, width: int) -> None:
        super().__init__(values, offsets, SPARSE)
        self.width = width

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), self.width

    @property
    def indptr(self) -> np.ndarray:
        """Where each row begins, and the end of the last: ``offsets``."""
        return self.offsets

    @property
    def indices(self) -> np.ndarray:
        """The columns, as int32, or int64 if there are more than that has."""
        return self.values[:, 0].astype(np.int32 if self.width < 1 << 31 else np.int64)

    @property
    def data(self) -> np.ndarray:
        """The values."""
        return self.values[:, 1].copy()

    def _like(self, values: np.ndarray, offsets: np.ndarray) -> Sparse:
        return Sparse(values, offsets, self.width)

    def scipy(self) -> Any:
        """Return a scipy.sparse.csr_matrix."""
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

        return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)

    def torch(self) -> Any:
        """Return a tensor of layout torch.sparse_csr."""
        import torch

        indices = torch.from_numpy(self.indices)
        ends = torch.from_numpy(self.indptr.astype(self.indices.dtype))
        return torch.sparse_csr_tensor(ends, indices, torch.from_numpy(self.data), size=self.shape, check_invariants=True)


def numbered(batch: Ragged, field: str, numbers: Sequence[int] | np.ndarray) -> Ragged:
    """Return a batch, whose errors name the field, and records by these numbers."""
    batch._numbers = field, numbers
    return batch


def batch_of(field: Field, values: np.ndarray, offsets: np.ndarray) -> Ragged:
    """Return a batch of records of a field."""
    return Sparse(values, offsets, field.width) if field.content == SPARSE else Ragged(values, offsets, field.content)


class RaggedRecords:
    """A ragged field over all shards.

    ``a[i]`` is an array of the record's rows, a view of the file, or a str where the field's
    content is utf-8 or source-name; ``a[i:j]`` and ``a[[3, 1, 2]]`` are a Ragged.
    """

    def __init__(self, field: Field, values: Column, offsets: Column, places: Places) -> None:
        self.field = field
        self.dtype = values.dtype
        self._values, self._offsets, self._places = values, offsets, places

    def __len__(self) -> int:
        return self._places.count

    def __repr__(self) -> str:
        return f"<penstock ragged field {self.field.name!r}: {len(self)} records of {self.field.dtype} {self.field.shape}>"

    def __iter__(self) -> Iterator[np.ndarray | str | list[np.ndarray]]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1 and stop > start and self._places.one(start)[0] == self._places.one(stop - 1)[0]:
                return numbered(self._run(start, stop), self.field.name, range(start, stop))
            key = np.arange(start, stop, step, dtype=np.int64)
        elif isinstance(key, (int, np.integer)) or (hasattr(key, "__index__") and np.ndim(key) == 0):
            return self._one(self._places.index(key))
        numbers = self._places.indices(key)
        return numbered(self._many(numbers), self.field.name, numbers)

    def _one(self, record: int) -> np.ndarray | str | list[np.ndarray]:
        return present(self._rows(*self._places.one(record)), self.field.content, self.field.name, record)

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record, as int64."""
        spans = [self._span(k) for k in range(len(self._places.pieces))]
        return np.concatenate([np.diff(s) for s in spans]) if spans else np.zeros(0, np.int64)

    def take(self, indices: Any) -> Ragged:
        """Return the records with these numbers, which may repeat, in memory of their own."""
        return self._many(self._places.indices(indices))

    def _many(self, records: np.ndarray) -> Ragged:
        """Do what take does, for numbers that Places.indices returned."""
        pieces, places = self._places.many(records)
        return self._joined([self._rows(k, at) for k, at in zip(pieces.tolist(), places.tolist())])  # all reads are started before one is waited for

    def _joined(self, rows: Sequence[np.ndarray]) -> Ragged:
        """Return the rows of several records as a batch."""
        values = np.concatenate(rows) if rows else np.empty((0, *self.field.shape), self.dtype)
        return batch_of(self.field, values, np.cumsum([0, *map(len, rows)], dtype=np.int64))

    def _run(self, start: int, stop: int) -> Ragged:
        k, at = self._places.one(start)
        offsets = self._span(k)[at : at + stop - start + 1]
        values = self._between(k, offsets[0], offsets[-1])
        if (np.diff(offsets) < 0).any():
            raise CorruptError(f"{self._offsets.extents[self._places.pieces[k].part].path}: offsets that go back")
        return batch_of(self.field, values, offsets - offsets[0])

    def _rows(self, k: int, at: int) -> np.ndarray:
        return self._between(k, *self._span(k)[at : at + 2])

    def _between(self, k: int, first: int, end: int) -> np.ndarray:
        part = self._places.pieces[k].part
        count = self._values.extents[part].count
        if not 0 <= first <= end <= count:
            raise CorruptError(f"{self._offsets.extents[part].path}: offsets {first} and {end} are none of {count} rows")
        return self._values.touched(part, first, end - first)[first:end]

    def _span(self, k: int) -> np.ndarray:
        """Return the offsets of a piece: one more than it has records."""
        piece = self._places.pieces[k]
        return self._offsets.part(piece.part)[piece.start : piece.start + piece.count + 1]


class DerivedRagged(RaggedRecords):
    """A field of variable length of a view: a subclass has ``lengths`` and ``_many``, and may have ``_run``, which returns consecutive records."""

    def __init__(self, field: Field, dtype: np.dtype, count: int) -> None:
        self.field, self.dtype = field, dtype
        self._places = Places([Piece(0, 0, count)])

    def _one(self, record: int) -> np.ndarray | str | list[np.ndarray]:
        return numbered(self._many(np.array([record])), self.field.name, [record])[0]

    def _run(self, start: int, stop: int) -> Ragged:
        return self._many(np.arange(start, stop, dtype=np.int64))


class SelectedRagged(DerivedRagged):
    """Some of the records of a field of variable length."""

    def __init__(self, base: RaggedRecords, field: Field, rows: Rows) -> None:
        super().__init__(field, base.dtype, len(rows))
        self._base, self._chosen = base, rows

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record, as int64."""
        lengths: np.ndarray = self._base.lengths
        if isinstance(self._chosen, range):
            return lengths[self._chosen.start : self._chosen.stop]
        found: np.ndarray = lengths[numbers_of(self._chosen, np.arange(len(self)))]
        return found

    def _many(self, records: np.ndarray) -> Ragged:
        return self._base.take(numbers_of(self._chosen, records))

    def _run(self, start: int, stop: int) -> Ragged:
        if isinstance(self._chosen, range):
            out: Ragged = self._base[self._chosen.start + start : self._chosen.start + stop]
            return out
        return super()._run(start, stop)


class ConcatenatedRagged(DerivedRagged):
    """The records of several fields of variable length, one after the other."""

    def __init__(self, parts: Sequence[RaggedRecords], field: Field, ends: np.ndarray) -> None:
        super().__init__(field, parts[0].dtype, int(ends[-1]))
        self._bases, self._ends = parts, ends

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every record, as int64."""
        return np.concatenate([b.lengths for b in self._bases])

    def _many(self, records: np.ndarray) -> Ragged:
        rows: list[np.ndarray] = [np.empty((0, *self.field.shape), self.dtype)] * len(records)
        for k, here, local in by_part(records, self._ends):
            some = self._bases[k].take(local)
            for i, at in enumerate(here.tolist()):
                rows[at] = some.values[some.offsets[i] : some.offsets[i + 1]]
        return self._joined(rows)

    def _run(self, start: int, stop: int) -> Ragged:
        parts = spans(start, stop, self._ends)
        if len(parts) == 1:
            k, a, b = parts[0]
            out: Ragged = self._bases[k][a:b]
            return out
        return super()._run(start, stop)


#: The size of the length before each image file of a record of content "images".
IMAGE_HEAD = 4


def framed(files: Ragged) -> np.ndarray:
    """Return the image files of records of content "image", with the length before each that content "images" has."""
    heads = files.lengths.astype("<u4").view(np.uint8)
    return np.insert(files.values, np.repeat(files.offsets[:-1], IMAGE_HEAD), heads)


def files_of(record: np.ndarray, field: str, number: int) -> list[np.ndarray]:
    """Return the image files of a record of content "images", as parts of the record. Errors name the field and the record's
    number.
    """
    found: list[np.ndarray] = []
    while len(record):
        end = IMAGE_HEAD + int.from_bytes(record[:IMAGE_HEAD].tobytes(), "little")
        if len(record) < end:
            where = f"field {field!r}: record {number}: image {len(found)}"
            raise CorruptError(f"{where}: an image file of {end - IMAGE_HEAD} bytes, of which there are {max(0, len(record) - IMAGE_HEAD)}")
        found.append(record[IMAGE_HEAD:end])
        record = record[end:]
    return found


def present(rows: np.ndarray, content: str, field: str = "", number: int = 0) -> np.ndarray | str | list[np.ndarray]:
    """Return rows as the user wants them: text as a str. Names of files keep bytes that are not UTF-8, as os.fsdecode does."""
    if content == IMAGES:
        return files_of(rows, field, number)
    if content == "source-name":
        return rows.tobytes().decode("utf-8", "surrogateescape")
    return rows.tobytes().decode("utf-8", "replace") if content == "utf-8" else rows
