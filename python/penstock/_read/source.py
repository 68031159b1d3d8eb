"""Source: fields, and records by number, which a Dataset and a View have in common; view.py adds the methods that make views of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

import numpy as np

from .._base import urls
from .._base.errors import Error, MissingError
from .._engine.batch import Batch
from .fetched import JointRead, Numbers, is_fetched
from .field import Field, listed
from .ragged import RaggedRecords
from .reader import OpenedDataset
from .records import Places, Records

if TYPE_CHECKING:
    from .statistics import Statistics

#: Which records of a dataset ``select`` takes.
Chosen = Union[slice, range, Sequence[int], np.ndarray]


def absolute(path: str) -> str:
    """Return the absolute path of a dataset, or its URL."""
    return path if "://" in path else os.path.abspath(path)


class Source:
    """Records with fields: a Dataset or a View.

    It has ``fields`` and, in ``_records``, the values of each; ``_places`` numbers the records.
    """

    depth, size = 0, 1  # how deep views are nested, and the datasets that they are of
    fields: dict[str, Field]
    path: str
    _records: Mapping[str, Records | RaggedRecords]
    _places: Places

    def classes(self, field: str = "labels") -> tuple[str, ...]:
        """Return the names of the values 0, 1, ... of a label field."""
        return self.fields[field].classes

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the records, and a table of the fields."""
        from html import escape

        title = repr(self).partition(" records of ")[0].lstrip("<")
        rows = [("field", "type", "shape", "content", "classes")]
        for f in self.fields.values():
            shape = f"({', '.join([*(['rows'] if f.ragged else []), *map(str, f.shape)])})"
            named = ", ".join(f.classes[:5]) + (f", ... {len(f.classes)} in all" if len(f.classes) > 5 else "")
            rows.append((f.name, f.dtype, shape, f.content or f.layout, named))
        table = "".join(f"<tr>{''.join(f'<td>{escape(urls.line(cell))}</td>' for cell in row)}</tr>" for row in rows)
        return f"<p>{escape(title)} records</p><table>{table}</table>"

    def __len__(self) -> int:
        return self._places.count

    @overload
    def __getitem__(self, key: str) -> Records: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, np.ndarray]: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | np.ndarray) -> Batch[np.ndarray]: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._field(key)
        if isinstance(key, (int, np.integer)) or (hasattr(key, "__index__") and np.ndim(key) == 0):  # also a tensor
            return self._one(self._places.index(key))
        return self._range(key) if isinstance(key, slice) else self.__getitems__(key)

    def _one(self, record: int) -> dict[str, Any]:
        return {name: self._records[name][record] for name in self.fields}

    def _range(self, key: slice) -> Batch[Any]:
        count = len(range(*key.indices(len(self))))
        return Batch({name: self._records[name][key] for name in self.fields}, count)

    def __getitems__(self, indices: Any) -> Batch[Any]:
        """Return the records with these numbers, in memory of their own."""
        return self._many(self.indices(indices))

    def _many(self, records: np.ndarray) -> Batch[Any]:
        return Batch({name: self._records[name].take(records) for name in self.fields}, len(records))

    def _read_together(self, opened: OpenedDataset | None, numbers: Numbers) -> None:
        """Have the fields of records that are read, if there are some, be one request."""
        if opened is not None and any(is_fetched(self._records[name]) for name in self.fields):
            together = JointRead(opened, self._records, list(self.fields), self._places, numbers)
            self._one, self._many, self._range = together.one, together.many, together.range  # type: ignore[method-assign]

    def indices(self, key: Any) -> np.ndarray:
        """Return the record numbers, from 0 on, that a list, an array or a mask chooses. Raise IndexError for a record that
        does not exist.
        """
        return self._places.indices(key)

    def source_name(self, record: int) -> str:
        """Return what the source called a record; "" if that is not known."""
        raise NotImplementedError

    def datasets(self) -> list[Any]:
        """Return the datasets that it is of."""
        return [self]

    def check_place(self) -> None:
        """Raise Error if another dataset has taken the place of a dataset of the Source at its path."""
        raise NotImplementedError

    def to_json(self, path: Callable[[str], str], found: bool = False) -> dict[str, Any]:
        """Return the source as JSON, with its paths as ``path`` writes them.

        With ``found``, the records of filters are numbers, so that no program finds them again.
        """
        raise NotImplementedError

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates that the files have of axes: functions that open a dataset of them, by the name of the axis."""
        return {}

    def statistics(
        self,
        field: str,
        *,
        keep: Any = (),
        group: Any = None,
        ranges: Iterable[tuple[int, int]] | None = None,
        workers: int | None = None,
    ) -> Statistics:
        """Return mean, std, min and max of a field in one pass, without NaN and infinities, which are counted.

        ``ds.statistics("z", keep=["level"]).standardize()`` is the transform of each level to mean 0 and std 1.

        Args:
            field: The name of a field of numbers of one shape.
            keep: The axes of a record that have statistics of their own: names, or numbers such as -1 for the last. Nothing is one
                number for all, and all axes are one number for each element.
            group: A field, or an array with a value for each record, such as its month: each value has statistics of its own, along a first
                axis more, in the order of ``Statistics.groups``.
            ranges: Ranges [first, end) of records, such as the training set; None means all.
            workers: The number of threads; None means one per core, up to 8.
        """
        from .statistics import statistics

        values = self._field(field)
        if isinstance(values, RaggedRecords):
            raise Error(f"statistics: records of {field!r} have lengths of their own")
        groups = np.asarray(self._field(group) if isinstance(group, str) else group) if group is not None else None
        return statistics(values, self.fields[field].dims, keep, groups, ranges, workers)

    def to_arrow(self, fields: Iterable[str] | None = None) -> Any:
        """Return small fields of all records as a ``pyarrow.Table``, in memory.

        A label with classes is a dictionary, a field of variable length a list, and one with axes a list of fixed size.

        Args:
            fields: The names of fields; None is all, which must have at most 4 KiB a record and no image files.

        Raises:
            Error: A field is large and not named, or there is no pyarrow.
        """
        from .frames import to_arrow

        return to_arrow(self, fields)

    def to_pandas(self, fields: Iterable[str] | None = None) -> Any:
        """Return small fields of all records as a ``pandas.DataFrame``: ``to_arrow(fields).to_pandas()``."""
        return self.to_arrow(fields).to_pandas()

    def _field(self, name: str) -> Records | RaggedRecords:
        if name not in self.fields:
            raise MissingError(f"{urls.redacted(self.path)}: no field {name!r:.100}; there are: {listed(self.fields)}")
        return self._records[name]


def check_source(part: Any) -> None:
    """Raise TypeError for an object that is neither a dataset nor a view."""
    if not isinstance(part, Source):
        raise TypeError(f"{urls.redacted(repr(part))[:60]} is not a dataset; give penstock.open(path), or a view of such")


def check_shared(base: Source) -> None:
    """Raise Error if a dataset may have been written to in the memory of this process, which no other process reads."""
    for part in base.datasets():
        if part.mode == "c":
            raise Error(f"{part.path} was opened with mode='c'; a view that another process reads needs datasets with mode='r'")


def asked(base: Source, reads: bool = True) -> dict[str, Any]:
    """Return a dataset or a view as the program is asked for it, which reads its records or only says where they are."""
    if reads:
        check_shared(base)
    base.check_place()
    return base.to_json(absolute, found=True)
