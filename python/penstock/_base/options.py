"""Checks of options."""

from __future__ import annotations

import operator
import re
from typing import Any, Literal, Union, get_args

import numpy as np

#: What a DataLoader's batches are made of.
Output = Literal["torch", "numpy", "jax"]

#: Treatment of a record that cannot be read.
OnError = Literal["fail", "backfill", "blank"]

#: Whether raw samples are made a dataset.
Prepare = Literal["auto", "pixels", "encoded", "off"]

#: Which records are compared with their checksums.
Verify = Union[Literal["off", "first", "always"], float]

#: What is beyond the edges of an array.
Pad = Literal["constant", "edge", "reflect", "wrap"]

#: Which rows of arrays of several lengths are records, or which genes files of cells have together.
Align = Literal["start", "end", "intersection", "union"]

#: Whether the arrays of a dataset can be written to.
Mode = Literal["r", "c"]


def choice(name: str, value: object, of: Any) -> None:
    """Raise ValueError for an option that is not a value of a Literal."""
    known = get_args(of)
    if value not in known:
        *first, last = (f'"{known_value}"' for known_value in known)
        raise ValueError(f"{name} is {value!r}; it is {', '.join(first)} or {last}")


def finite(name: str, value: Any) -> float:
    """Return an option that is a number, of any type, and not NaN or infinite, which the messages of programs cannot have."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r:.60}; it must be a number") from None
    if x - x != 0:
        raise ValueError(f"{name} is {x}; it must be finite")
    return x


def count(name: str, value: Any, least: int = 0, most: int = (1 << 63) - 1, note: str = "") -> int:
    """Return an option that is an integer in [least, most], of any integer type."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        n: int = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an integer") from None
    if not least <= n <= most:
        raise ValueError(f"{name} is {n}; it must be from {least} to {most}{note}")
    return n


_SIZE = re.compile(r"\s*([1-9][0-9]*(?:\.[0-9]+)?)\s*(?:([KMGTP])(i?))?(B?)\s*", re.IGNORECASE)


def size(name: str, value: Any) -> int:
    """Return an option that is a number of bytes, or a text like "64MiB" or "64MB"; "64M" is 64 MiB."""
    if not isinstance(value, str):
        return count(name, value, 1)
    m = _SIZE.fullmatch(value)
    if m is None:
        raise ValueError(f'{name} is {value!r}; it must be bytes, as a number or like "500GiB"')
    base = 1000 if m[4] and not m[3] else 1024
    return int(float(m[1]) * base ** (" KMGTP".index((m[2] or " ").upper())))


def flag(name: str, value: Any) -> bool:
    """Return an option that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; it must be True or False")
    return bool(value)
