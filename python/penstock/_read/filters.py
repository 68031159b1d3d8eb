"""Filters: conditions on the records of a DataLoader, as text in the language of ``Dataset.filter``."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from .._base.values import number

_MANY = ("in", "not in")
_OPERATORS = ("==", "!=", "<", "<=", ">", ">=", *_MANY)


def to_text(filters: Any) -> str:
    """Return filters as an expression; an empty expression if there are no filters.

    Raises:
        TypeError: They are neither an expression nor a list, or a value is neither a number nor a text.
        ValueError: An expression is empty, or an entry of the list is not (field, op, value).
    """
    if filters is None:
        return ""
    if isinstance(filters, str):
        if not filters.strip():
            raise ValueError("filters is an empty expression; it is one such as 'labels in (1, 2)', or None for all records")
        return filters
    if isinstance(filters, (bytes, Mapping)) or not isinstance(filters, Iterable):
        raise TypeError(
            f"filters is {filters!r:.100}; it is an expression, such as 'labels in (1, 2)', or a list of (field, op, value), such as [('labels', "
            "'in', [1, 2])]"
        )
    filters = list(filters)
    if len(filters) == 3 and all(isinstance(part, str) for part in filters[:2]):
        raise ValueError(f"filters is {tuple(filters)!r:.100}; it is a list of such: filters=[{tuple(filters)!r:.100}]")
    return " and ".join(map(_condition, filters))


def _condition(f: Any) -> str:
    if not isinstance(f, (tuple, list)) or len(f) != 3 or not isinstance(f[0], str):
        raise ValueError(f"filters: {f!r:.100}; each is (field, op, value), such as ('labels', 'in', [1, 2])")
    name, op, value = f
    if not isinstance(op, str) or op not in _OPERATORS:
        raise ValueError(f"filters: {f!r:.100}: there is no comparison {op!r:.20}; take {', '.join(_OPERATORS[:-1])} or not in")
    if op in _MANY and (isinstance(value, (str, bytes)) or not isinstance(value, Iterable)):
        raise ValueError(f"filters: {f!r:.100}: {op!r} takes a list of values")
    try:
        text = f"({', '.join(map(_literal, value))})" if op in _MANY else _literal(value)
    except TypeError as e:
        raise TypeError(f"filters: {f!r:.100}: {e}") from None
    return f"{_quoted(name, '`')} {op} {text}"


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, 2 * quote) + quote


def _literal(value: Any) -> str:
    """Return a number or a text as the language writes it, so that it compares exactly."""
    value = number(value)
    if isinstance(value, str):
        return _quoted(value, "'")
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else str(float(value))
    try:
        return str(operator.index(value))
    except TypeError:
        raise TypeError(f"{value!r:.100} is not a number, nor a text") from None
