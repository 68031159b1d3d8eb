"""Several records at once: of a dataset, and of a DataLoader."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .shared import Rows, Slot

_INT64 = Rows(np.dtype(np.int64))
_BOOL = Rows(np.dtype(np.bool_))


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
        return {name: values[record] for name, values in self.arrays.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(self._count))

    def __repr__(self) -> str:
        return f"<penstock batch of {self._count} records: {', '.join(self.arrays)}>"


class LoaderBatch(dict[str, Any]):
    """A batch of a DataLoader: its fields by name, as torch tensors, NumPy or JAX arrays.

    Arrays are over memory that is shared with the feeding process, and may be written to. The
    memory is theirs for as long as something refers to it: the batch, an array or a tensor over
    it. Copies (``copy.deepcopy``, pickle, a forked child's) have memory of their own.

    ``epoch`` and ``step`` number the batch. They, ``indices`` and ``mask`` are those of the
    DataLoader's batch also in copies and after ``to``. A batch that was made of other items, as
    ``type(batch)(items)`` is, has none of the four.
    """

    __slots__ = ("_message", "_slot")

    _message: Mapping[str, Any]  # epoch, step, indices, mask: the last two as arrays, or where they are in the slot
    _slot: Slot | None

    @property
    def epoch(self) -> int:
        """The number of the epoch."""
        epoch: int = self._known("epoch")
        return epoch

    @property
    def step(self) -> int:
        """The number of the batch in its epoch."""
        step: int = self._known("step")
        return step

    @property
    def indices(self) -> np.ndarray:
        """The numbers of the records in the dataset or its split, or of the rows that were packed."""
        return self._array("indices", _INT64)

    @property
    def mask(self) -> np.ndarray:
        """False for records that only fill up a batch: see drop_last, and on_error. Evaluations leave them out."""
        return self._array("mask", _BOOL)

    def to(self, device: Any, non_blocking: bool = False) -> LoaderBatch:
        """Return the same batch with its tensors on a device; other values stay as they are."""
        moved = {name: v.to(device, non_blocking=non_blocking) if hasattr(v, "to") else v for name, v in self.items()}
        return self.holding(moved)

    def holding(self, values: Mapping[str, Any]) -> LoaderBatch:
        """Return the same batch with other values, and no part of the shared memory."""
        batch = LoaderBatch(values)
        if hasattr(self, "_message"):
            batch._slot = None
            batch._message = {"epoch": self.epoch, "step": self.step, "indices": self.indices.copy(), "mask": self.mask.copy()}
        return batch

    def copy(self) -> LoaderBatch:
        """Return a batch with the same arrays, over the same memory."""
        batch = LoaderBatch(self)
        if hasattr(self, "_message"):
            batch._slot, batch._message = self._slot, self._message
        return batch

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> LoaderBatch:
        return self.holding({name: copy.deepcopy(v, memo) for name, v in self.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        plain = self.holding(self)
        return _unpickled, (dict(plain), getattr(plain, "_message", None))

    def __missing__(self, name: object) -> Any:
        raise KeyError(f"no field {name!r}; there are: {', '.join(self)}")

    def _known(self, name: str) -> Any:
        try:
            return self._message[name]
        except AttributeError:
            raise AttributeError(
                f"{name} is not known of a batch that was made of other items, as by type(batch)(items); take {name} of the DataLoader's batch. "
                "batch.to(device) and copies keep it"
            ) from None

    def _array(self, name: str, rows: Rows) -> np.ndarray:
        value = self._known(name)
        if self._slot is None:
            values: np.ndarray = value
            return values
        return self._slot.array(value, rows, self._message["count"])


def _unpickled(values: dict[str, Any], message: Mapping[str, Any] | None) -> LoaderBatch:
    batch = LoaderBatch(values)
    if message is not None:
        batch._slot, batch._message = None, message
    return batch
