"""Several records at once."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


class Batch:
    """Records of a dataset: an array for every field.

    ``b["images"]`` is the array of a field, and ``b.arrays`` are all of them. ``b[i]``, and
    iteration, give single records as dicts: what ``dataset[i]`` gives. So a Batch is what a
    collate function of torch takes for a list of samples, while penstock's own collate uses its
    arrays as they are. In a Batch of ``penstock.torch``, tensors stand for arrays.
    """

    __slots__ = ("_count", "arrays")

    def __init__(self, arrays: Mapping[str, Any], count: int) -> None:
        #: The fields by name: np.ndarray or Ragged; torch.Tensor, Jagged or a list of str.
        self.arrays: dict[str, Any] = dict(arrays)
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, str):
            if key not in self.arrays:
                raise KeyError(f"no field {key!r}; there are: {', '.join(self.arrays)}")
            return self.arrays[key]
        if not isinstance(key, (int, np.integer)):
            raise TypeError(f"a batch is indexed by the name of a field or the number of a record, not by {key!r}")
        if not -self._count <= key < self._count:
            raise IndexError(f"record {key} is out of range: there are {self._count}")
        record = operator.index(key) % self._count
        return {name: _record(values, record) for name, values in self.arrays.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(self._count))

    def __repr__(self) -> str:
        return f"<penstock batch of {self._count} records: {', '.join(self.arrays)}>"


def _record(values: Any, i: int) -> Any:
    """Return record i of a field of a batch."""
    return values.record(i) if hasattr(values, "record") else values[i]
