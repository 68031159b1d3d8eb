"""Arrays that are put together from windows: see ``Windowed.assemble``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._base.errors import Error


class Assembled:
    """An array that is put together from results for windows, such as predictions: their weighted mean where windows overlap.

    ``add`` takes results in any order, and ``numpy`` returns the array. It is in memory, with the sum of weights of each element.
    """

    def __init__(self, view: Any, field: str | None, weights: Any, fill: float) -> None:
        self._view, self._fill, self._out = view, fill, view.output(field)
        self._window = tuple(c.size for c in self._out.cuts)
        self.shape = tuple(c.length for c in self._out.cuts)
        self._weights = self._weight(weights)
        self._seen = np.zeros(self.shape, np.float64)
        self._sum: np.ndarray | None = None

    def _weight(self, weights: Any) -> np.ndarray:
        out = np.ones(self._window)
        if isinstance(weights, Mapping):
            names = {self._view.axes[c.axis]: k for k, c in enumerate(self._out.cuts) if c.axis is not None}
            for axis, values in ((str(axis), values) for axis, values in weights.items()):
                if axis not in names:
                    raise Error(f"assemble: weights have the axis {axis!r}, which windows do not cut; there are: {', '.join(names)}")
                k = names[axis]
                if np.shape(values) != (self._window[k],):
                    raise ValueError(
                        f"assemble: weights of axis {axis!r} have shape {np.shape(values)}; a window has {self._window[k]} elements there"
                    )
                out = out * np.asarray(values, np.float64).reshape([-1 if i == k else 1 for i in range(out.ndim)])
        elif weights is not None:
            try:
                out = out * np.asarray(weights, np.float64)
            except ValueError:  # they do not broadcast
                out = np.zeros(0)
            if out.shape != self._window:
                raise ValueError(f"assemble: weights have shape {np.shape(weights)}, and a window has {self._window}")
        if not (out >= 0).all() or not np.isfinite(out).all():
            raise ValueError("assemble: weights must be finite, and not negative")
        return out

    def add(self, records: Any, values: Any) -> None:
        """Add results for windows.

        Args:
            records: The numbers of the windows, such as the ``indices`` of a batch.
            values: An array, of NumPy or torch, with a result for each. Each has the shape of a window, and may have more axes after it.
        """
        values = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
        if values.dtype.kind not in "biuf":
            raise TypeError(f"assemble: results are {values.dtype}; they must be real numbers")
        numbers = self._view.indices(records)
        rank = len(self._window)
        if values.shape[: rank + 1] != (len(numbers), *self._window):
            raise ValueError(f"assemble: {len(numbers)} results for windows of shape {self._window} do not have shape {values.shape}")
        if self._sum is None:
            self._sum = np.zeros((*self.shape, *values.shape[rank + 1 :]), np.float64)
        if values.shape[rank + 1 :] != self._sum.shape[rank:]:
            raise ValueError(f"assemble: results have the shape {values.shape[1:]}, and those before had {(*self._window, *self._sum.shape[rank:])}")
        places = [self._view._windows.elements(self._out, k, self._view.origins(numbers)) for k in range(rank)]
        extra = (1,) * (self._sum.ndim - rank)
        for i, value in enumerate(values):
            at = [p[i] for p in places]
            inside = np.ix_(*(np.flatnonzero(a >= 0) for a in at))
            index = np.ix_(*(a[a >= 0] for a in at))
            weight = self._weights[inside]
            np.add.at(self._sum, index, value[inside] * weight.reshape(weight.shape + extra))  # a window may have an element twice, by its pad
            np.add.at(self._seen, index, weight)

    @property
    def missing(self) -> int:
        """The number of elements that no window has had, or only with a weight of 0."""
        return int((self._seen == 0).sum())

    def numpy(self, dtype: Any = np.float32) -> np.ndarray:
        """Return the array. Elements that no window has had are the fill.

        Args:
            dtype: The type of its elements.
        """
        if self._sum is None:
            raise Error("assemble: no results were added")
        if np.dtype(dtype).kind in "biu" and not np.isfinite(self._fill) and self.missing:
            raise Error(f"assemble: {self.missing} elements are missing, and {np.dtype(dtype)} has no {self._fill} for them; give a fill")
        seen = self._seen.reshape(self._seen.shape + (1,) * (self._sum.ndim - self._seen.ndim))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(seen > 0, self._sum / seen, self._fill).astype(dtype)
