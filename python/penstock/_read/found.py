"""Records that a program finds: the records for which an expression is true, and the records with the same key.

The program reads files, so a table in memory that is joined is written to a temporary dataset first.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base import files
from .._base.dataclass import dataclass
from .._base.errors import Error
from .._base.forks import finalize
from .reader import shared

#: The folders of tables that were written for joins.
_tables: set[str] = set()


@dataclass(frozen=True)
class Matches:
    """Which records of two datasets belong together."""

    of: np.ndarray  # by record of the join: the record of the right side; -1 for none
    left: np.ndarray  # records without a match
    right: np.ndarray


def found(view: Mapping[str, Any], records: int, where: str) -> np.ndarray:
    """Return the numbers of the records of a view, in JSON, for which an expression holds, in ascending order."""
    answer = shared().ask({"find": {"view": view, "where": where}})
    bits = np.frombuffer(base64.b64decode(answer["bits"] or ""), np.uint8)
    return np.flatnonzero(np.unpackbits(bits, count=records, bitorder="little"))


def joined(views: Sequence[Mapping[str, Any]], match: Mapping[str, Any]) -> Matches:
    """Return which records of two views, in JSON, have the same key."""
    answer = shared().ask({"join": {"views": views, "match": match}})
    return Matches(*(np.frombuffer(base64.b64decode(answer[name]), "<i8") for name in ("of", "left", "right")))


def of_table(table: Any, like: Any) -> Any:
    """Return the dataset of a path, or one that is written for a table: columns by name."""
    from .._write.writer import Writer
    from . import frames

    opener = like.datasets()[0].opener
    if isinstance(table, (str, os.PathLike)):
        return opener(table)
    if frames.is_table(table):
        rows: Any = table
    else:
        columns = {str(name): _column(name, values) for name, values in table.items()} if isinstance(table, Mapping) else {}
        if len({len(column) for column in columns.values()}) != 1:
            raise TypeError(f"join with a {type(table).__name__}; give a dataset, its path, or a table: columns of one length by name")
        rows = (dict(zip(columns, values)) for values in zip(*columns.values()))
    folder = files.temporary("table-")
    path = os.path.join(folder, "table")
    try:
        with Writer(path) as w:
            w.extend(rows)
    except Error as e:
        _forget(path, folder)
        raise Error(f"join: {str(e).replace(path, 'the table')}") from None
    _tables.add(path)
    dataset = opener(path)
    finalize(dataset, _forget, path, folder)
    return dataset


def _column(name: Any, values: Any) -> Any:
    """Return a column of a table as a sequence of the values that were given.

    NumPy makes strings of ["a", 1], and floats of [1 << 63, -1].
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise TypeError(f"join: column {name!r} is a masked array, some values of which are masked: give .filled(x) of it")
    if not isinstance(values, (list, tuple)):
        column = np.asarray(values)
        if not column.ndim:
            raise TypeError(f"join: column {name!r} is {values!r:.60}; give a value for each row")
        return column
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):  # rows of several lengths, or an integer beyond 64 bits
        return values
    if array.dtype.kind not in "biuf":
        return values
    for given, stored in zip(values, array.tolist() if array.ndim == 1 else ()):
        if stored != given and given == given:
            raise TypeError(
                f"join: column {name!r}: {given!r} would be {stored!r} next to its other values: give an array, of the type that it is to have"
            )
    return array


def is_temporary(path: str) -> bool:
    """Report whether a dataset is a table that goes with the object that has it."""
    return path in _tables


def _forget(path: str, folder: str) -> None:
    _tables.discard(path)
    files.remove(folder)
