"""Filters: conditions on the records of a DataLoader."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any, Union

import numpy as np

_MANY = ("in", "not in")
_OPERATORS = ("==", "!=", "<", "<=", ">", ">=", *_MANY)

#: A value as docs/feed.md has it.
_Value = Union[int, float, str, dict[str, str]]


def to_json(filters: Any) -> list[list[Any]]:
    """Return filters as the options of a feed have them. An expression is another option."""
    if filters is None or isinstance(filters, str):
        return []
    if isinstance(filters, (bytes, Mapping)) or not isinstance(filters, Iterable):
        raise TypeError(
            f"filters is {filters!r:.100}; it is an expression, such as 'labels in (1, 2)', or a list of (field, op, value), such as [('labels', "
            "'in', [1, 2])]"
        )
    filters = list(filters)
    if len(filters) == 3 and all(isinstance(part, str) for part in filters[:2]):
        raise ValueError(f"filters is {tuple(filters)!r:.100}; it is a list of such: filters=[{tuple(filters)!r:.100}]")
    return [_filter(f) for f in filters]


def _filter(f: Any) -> list[Any]:
    if not isinstance(f, (tuple, list)) or len(f) != 3 or not isinstance(f[0], str):
        raise ValueError(f"filters: {f!r:.100}; each is (field, op, value), such as ('labels', 'in', [1, 2])")
    name, op, value = f
    if not isinstance(op, str) or op not in _OPERATORS:
        raise ValueError(f"filters: {f!r:.100}: there is no comparison {op!r:.20}; take {', '.join(_OPERATORS[:-1])} or not in")
    if op in _MANY and (isinstance(value, (str, bytes)) or not isinstance(value, Iterable)):
        raise ValueError(f"filters: {f!r:.100}: {op!r} takes a list of values")
    try:
        return [name, op, [_value(v) for v in (value if op in _MANY else [value])]]
    except TypeError as e:
        raise TypeError(f"filters: {f!r:.100}: {e}") from None


def _value(value: Any) -> _Value:
    """Return a value that compares exactly: an int of any size, a float, or the name of a class."""
    if getattr(value, "shape", None) == () and hasattr(value, "item") and getattr(value, "dtype", None) is not None:
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "biufU":
            raise TypeError(f"{value!r} is not a number, nor the name of a class")
        value = value.item()  # of NumPy, and tensors
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{value!r:.100} is not a number, nor the name of a class") from None
