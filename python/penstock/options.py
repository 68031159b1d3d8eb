"""Checks of options."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np


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


_SIZE = re.compile(r"\s*[1-9][0-9]*(\.[0-9]+)?\s*([KMGTP]i?)?B?\s*", re.IGNORECASE)


def size(name: str, value: Any) -> str:
    """Return an option that is a number of bytes, or a text like "64MiB", as text."""
    if not isinstance(value, str):
        return str(count(name, value, 1))
    if not _SIZE.fullmatch(value):
        raise ValueError(f'{name} is {value!r}; it must be bytes, as a number or like "500GiB"')
    return value


def flag(name: str, value: Any) -> bool:
    """Return an option that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; it must be True or False")
    return bool(value)
