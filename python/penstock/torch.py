"""Datasets as torch tensors.

::

    ds = penstock.torch.TorchDataset("data/train", normalize=True)
    batches = penstock.order.Batches(len(ds), 256, seed=42)
    loader = DataLoader(ds, batch_sampler=batches, collate_fn=penstock.torch.collate, num_workers=2)
    for epoch in range(10):
        batches.set_epoch(epoch)
        for batch in loader:
            x, y = batch["images"], batch["labels"]

A whole batch is fetched by one call, and its records are copied once: straight into the memory
that a worker shares with the training process. A TorchDataset that is handed to a worker is
only a path; the maps are the worker's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.utils.data

from .batch import Batch
from .dataset import Dataset
from .feeder import FedBatch
from .field import Field
from .ragged import Ragged, RaggedRecords
from .records import Records


class Jagged(NamedTuple):
    """A batch of a ragged field: record i is ``values[offsets[i]:offsets[i+1]]``."""

    values: torch.Tensor
    offsets: torch.Tensor

    def record(self, i: int) -> torch.Tensor:
        """Return the rows of record i, which counts from 0: a view of the values."""
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def nested(self) -> torch.Tensor:
        """Return the same as a nested tensor of jagged layout (torch 2.4 and newer)."""
        return torch.nested.nested_tensor_from_jagged(self.values, self.offsets)


class TorchDataset(torch.utils.data.Dataset[dict[str, Any]]):
    """A map-style dataset of dicts of tensors.

    Tensors have the type of the field, bfloat16 included; text is str. With ``normalize``,
    fields of bytes that the dataset has a normalisation for come as float32, normalised.
    """

    def __init__(
        self,
        path: Any,
        fields: Iterable[str] | None = None,
        split: str | None = None,
        normalize: bool = False,
    ) -> None:
        # Copy on write, as torch has no tensors that cannot be written to.
        self.dataset = Dataset(path, fields, split, mode="c")
        self.normalize = normalize

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {name: self._one(self.dataset.fields[name], value) for name, value in self.dataset[int(i)].items()}

    def __getitems__(self, indices: Any) -> Batch:
        arrays = {name: self._many(f, self.dataset[name], indices) for name, f in self.dataset.fields.items()}
        return Batch(arrays, len(indices))

    def _one(self, f: Field, value: Any) -> torch.Tensor | str:
        if isinstance(value, str):
            return value
        if self.normalize and f.pending:
            return torch.from_numpy(f.float32(value))
        return tensor(f, np.array(value))

    def _many(self, f: Field, records: Records | RaggedRecords, indices: Any) -> Any:
        if isinstance(records, RaggedRecords):
            return _ragged(f, records.take(indices))
        shape = (len(indices), *f.shape)
        if self.normalize and f.pending:
            out = _empty(shape, torch.float32)
            f.float32(records.take(indices), out=out.numpy())
            return out
        out = _empty(shape, tensor(f, np.empty(0, f.storage)).dtype)
        view = out.view(torch.int16) if f.dtype == "bfloat16" else out
        records.take(indices, out=view.numpy().view(f.storage))
        return out


def collate(batch: Any) -> Any:
    """Return the tensors of a batch that a TorchDataset fetched: nothing is left to be stacked."""
    return batch.arrays if isinstance(batch, Batch) else torch.utils.data.default_collate(batch)


def tensors(batch: FedBatch) -> dict[str, Any]:
    """Return the tensors of a batch of a Feeder, over the memory that is shared with it.

    That is the feeder's again when nothing refers to the batch or to its tensors any more. A
    copy to a device that does not block has to be awaited before.
    """
    return {name: _fed(batch.fields[name], values) for name, values in batch.arrays.items()}


def _fed(f: Field, values: Any) -> Any:
    return _ragged(f, values) if f.ragged else tensor(f, values)


def tensor(f: Field, values: np.ndarray) -> torch.Tensor:
    """Return values of a field as a tensor over the same memory."""
    if f.dtype == "bfloat16":
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def _ragged(f: Field, batch: Ragged) -> Jagged | list[str]:
    if f.content == "utf-8":
        return list(batch)  # type: ignore[arg-type]
    return Jagged(tensor(f, batch.values), torch.from_numpy(batch.offsets))


def _empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a new tensor; in a DataLoader's worker, one in memory that it shares."""
    if torch.utils.data.get_worker_info() is None:
        return torch.empty(shape, dtype=dtype)
    size = int(np.prod(shape, dtype=np.int64)) * torch.empty(0, dtype=dtype).element_size()
    storages: Any = torch.UntypedStorage  # torch has no types for these two calls
    empty: Any = torch.empty(0, dtype=dtype)
    shared: torch.Tensor = empty.set_(storages._new_shared(size), 0, shape)
    return shared
