"""The steps that may follow a function of records: the conversion of an image to a tensor, with the engine's numbers.

Functions of records come after all that the engine does, so these steps are done again here, to the last bit as in
Go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base.errors import UnsupportedError
from .._base.values import floats, kind_of
from .._read.field import Field, standardized

_FLOATS = ("float32", "float16")
_CHANNELS = ("ToImage", "PILToTensor", "ToTensor")


class Ends:
    """Steps at the end of a pipeline."""

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self._entries = entries
        for entry in entries:
            if entry["op"] not in (*_CHANNELS, "ToDtype", "ConvertImageDtype", "Normalize"):
                raise UnsupportedError(
                    f"{entry['op']} follows a function of whole records, and runs in the engine; put it before the function, or do it there: "
                    f"{', '.join(_CHANNELS)}, ToDtype, ConvertImageDtype and Normalize may follow"
                )
            dtype = entry.get("dtype", "float32")
            if dtype not in (*_FLOATS, "uint8"):
                raise UnsupportedError(f"{entry['op']} to {dtype} follows a function of whole records; {', '.join(_FLOATS)} may follow")

    @property
    def names(self) -> list[str]:
        return [entry["op"] for entry in self._entries]

    def __call__(self, x: np.ndarray, layout: str, f: Field | None) -> np.ndarray:
        """Return an image after the steps. ``f`` is the field, whose mean and std Normalize takes if it has none of its own."""
        dtype: Any = None
        for entry in self._entries:
            op = entry["op"]
            if op in _CHANNELS and layout == "HWC":
                x, layout = np.ascontiguousarray(x.transpose(2, 0, 1)), "CHW"
            if op == "ToTensor" or ((op == "ConvertImageDtype" or entry.get("scale")) and entry.get("dtype", "float32") in _FLOATS):
                x = np.divide(x, np.float32(255), dtype=np.float32) if x.dtype == np.uint8 else x
            if "dtype" in entry or op == "ConvertImageDtype":
                dtype = np.dtype(entry.get("dtype", "float32"))
                if dtype.kind == "u" and x.dtype != np.uint8:
                    raise UnsupportedError(f"{op} to uint8 follows a function that returns {x.dtype}; have it return uint8")
                x = floats(x, np.dtype(np.float32)) if dtype.kind == "f" else x
            if op == "Normalize":
                x = _normalized(x, layout, entry, f)
        return x if dtype is None else x.astype(dtype, copy=False)


def _normalized(x: np.ndarray, layout: str, entry: Mapping[str, Any], f: Field | None) -> np.ndarray:
    mean, std = entry.get("mean"), entry.get("std")
    if mean is None or std is None:
        if f is None or f.normalization is None:
            raise UnsupportedError("Normalize has no mean and std, and neither has the dataset; give Normalize(mean, std)")
        mean, std = f.normalization.mean, f.normalization.std
    if kind_of(x.dtype) != "f":
        raise UnsupportedError(
            f"Normalize is for floats, and this image is {x.dtype}; put ToTensor() or ToDtype(torch.float32, scale=True) before it"
        )
    return standardized(np.array(floats(x, np.dtype(np.float32))), mean, std, layout)
