"""Values of groups, such as the station of each record."""

from __future__ import annotations

from typing import Any

import numpy as np


def are_missing(groups: np.ndarray) -> np.ndarray:
    """Return which values are NaN, NaT, None, pandas' NA, or masked: such a value equals no other, and so belongs to no group."""
    if groups.dtype.kind == "O":
        found = np.fromiter((_is_missing(g) for g in groups.flat), bool, groups.size).reshape(groups.shape)
    else:
        found = np.isnan(groups) if groups.dtype.kind in "fc" else np.isnat(groups) if groups.dtype.kind in "mM" else np.zeros(groups.shape, bool)
    return found | np.ma.getmaskarray(groups)


def _is_missing(group: Any) -> bool:
    try:
        return group is None or bool(group != group)
    except TypeError:  # pandas' NA is neither true nor false
        return True


def borders(values: np.ndarray) -> np.ndarray:
    """Return the records whose value, a number or an array of numbers, differs from the record before."""
    differ = values[1:] != values[:-1]
    return np.flatnonzero(differ.any(axis=tuple(range(1, values.ndim)))) + 1
