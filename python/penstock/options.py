"""Checks of options."""

from __future__ import annotations

import operator
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


def flag(name: str, value: Any) -> bool:
    """Return an option that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; it must be True or False")
    return bool(value)
