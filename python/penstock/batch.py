"""Several records at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .ragged import Ragged


class Batch:
    """Records of a dataset: an array for every field.

    ``b["images"]`` is the array of a field, and ``b.arrays`` are all of them; ``b[i]``, and
    iteration, give single records as dicts. So a Batch is what torch's default_collate takes
    for a list of samples, while penstock's own collate uses its arrays as they are.
    """

    __slots__ = ("_count", "arrays")

    def __init__(self, arrays: Mapping[str, np.ndarray | Ragged], count: int) -> None:
        self.arrays = dict(arrays)
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, str):
            if key not in self.arrays:
                raise KeyError(f"no field {key!r}; there are: {', '.join(self.arrays)}")
            return self.arrays[key]
        if not -self._count <= key < self._count:
            raise IndexError(f"record {key} is out of range: there are {self._count}")
        return {name: values[key] for name, values in self.arrays.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(self._count))

    def __repr__(self) -> str:
        return f"<penstock batch of {self._count} records: {', '.join(self.arrays)}>"
