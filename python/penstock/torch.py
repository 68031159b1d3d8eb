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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.utils.data
from torch.utils.data import get_worker_info

from ._base.errors import Error
from ._base.options import count
from ._base.urls import redacted
from ._base.values import tensor
from ._engine.batch import Batch
from ._engine.detection import detection, padding_mask
from ._engine.device import Prefetcher
from ._engine.jagged import Jagged, Sparse
from ._engine.reused import Memory
from ._engine.threads import divided
from ._read.dataset import Dataset
from ._read.field import Field, Normalization
from ._read.ragged import Ragged, RaggedRecords
from ._read.ragged import Sparse as SparseRows
from ._read.records import Records

#: Bytes of stored records that are normalized together.
_CACHED = 64 << 10

__all__ = ["Jagged", "Prefetcher", "Sparse", "TorchDataset", "collate", "convert", "detection", "padding_mask", "tensor"]


class TorchDataset(torch.utils.data.Dataset[dict[str, Any]]):
    """A map-style dataset of dicts of tensors.

    Tensors have the type of the field, bfloat16 included; text is str. Fields of different
    lengths come as Jagged, and text as a list, in a batch.

    Args:
        path: The folder or the .h5 file.
        fields: The names of the fields that are wanted; None is all.
        split: Open that part of the dataset alone.
        normalize: True converts images to float32, ``(x/255 - mean) / std`` by channel, with the mean
            and std that the dataset stores; it is an error if an image field has none. ``(mean, std)``
            uses yours instead, in torchvision's units: of x/255, one for each channel or one for
            all.
        transform: A function that is called with a record, a dict of tensors, and returns the sample;
            or a dict of functions by field, each called with that field's tensor. It is called record
            by record, after the normalization. ``penstock.torch.collate`` stacks the samples.
    """

    def __init__(
        self,
        path: Any,
        fields: Iterable[str] | None = None,
        split: str | None = None,
        normalize: bool | tuple[Sequence[float], Sequence[float]] = False,
        transform: Callable[[dict[str, Any]], Any] | Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> None:
        # Copy on write, as torch has no tensors that cannot be written to. Records of a URL are in memory of their own.
        self.dataset = Dataset(path, fields, split, mode="r" if "://" in str(path) else "c")
        #: The fields by name. A ``pending`` field is normalized when it is read.
        self.fields = _normalized(self.dataset, normalize)
        self._memory = Memory()
        self._dtypes = {name: tensor(np.empty(0, f.numpy)).dtype for name, f in self.fields.items()}
        if transform is not None and not callable(transform) and not isinstance(transform, Mapping):
            raise TypeError(f"transform is {transform!r}; it must be a function of a record, or a dict of functions by field")
        self.transform = transform
        for name in transform if isinstance(transform, Mapping) else ():
            if name not in self.fields:
                raise KeyError(f"{redacted(self.dataset.path)}: transform: no field {name!r}; there are: {', '.join(self.fields)}")

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> Any:
        return self._sample({name: self._one(self.fields[name], value) for name, value in self.dataset[count("index", i, -(1 << 63))].items()})

    def __getitems__(self, indices: Any) -> Any:
        """Return a Batch of the records with these numbers or, with a transform, a list of samples."""
        records = self.dataset.indices(indices)
        batch = Batch({name: self._many(f, self.dataset[name], records) for name, f in self.fields.items()}, len(records))
        return batch if self.transform is None else [self._sample(record) for record in batch]

    def _empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor of any values; in a DataLoader's worker, one in memory that it shares."""
        like: Any = torch.empty(0, dtype=dtype)
        size = int(np.prod(shape, dtype=np.int64)) * like.element_size()
        if get_worker_info() is None:
            return torch.from_numpy(self._memory.empty((size,), np.uint8)).view(dtype).reshape(shape)
        storages: Any = torch.UntypedStorage  # torch has no types for these two calls
        shared: torch.Tensor = like.set_(storages._new_shared(size), 0, shape)
        return shared

    def _sample(self, record: dict[str, Any]) -> Any:
        if self.transform is None:
            return record
        if not isinstance(self.transform, Mapping):
            return self.transform(record)
        for name, function in self.transform.items():
            record[name] = function(record[name])
        return record

    def _one(self, f: Field, value: Any) -> torch.Tensor | str:
        if isinstance(value, str):
            return value
        if f.pending:
            return torch.from_numpy(f.float32(value))
        return tensor(np.array(value))

    def _many(self, f: Field, values: Records | RaggedRecords, records: np.ndarray) -> Any:
        if isinstance(values, RaggedRecords):
            return _ragged(values.take(records))
        shape = (len(records), *f.shape)
        if f.pending:
            out = self._empty(shape, torch.float32)
            _normalize(f, values, records, out.numpy())
            return out
        out = self._empty(shape, self._dtypes[f.name])
        view = (out.view(torch.int16) if f.dtype == "bfloat16" else out).numpy()
        values.fill(records, view if view.dtype == values.dtype else view.view(values.dtype))
        return out


def _normalized(ds: Dataset, normalize: bool | tuple[Sequence[float], Sequence[float]]) -> dict[str, Field]:
    """Return the fields of ds; exactly the fields that are to be normalized are pending."""
    if normalize is False:
        return {name: replace(f, normalization=None) if f.pending else f for name, f in ds.fields.items()}
    given = None if normalize is True else _figures(normalize)
    fields = {}
    for name, f in ds.fields.items():
        if f.is_image and given is not None:
            f = replace(f, normalization=given(f))
        elif f.is_image and f.normalization is None:
            raise Error(
                f"{ds.path}: field {name!r}: normalize=True, and the dataset has no mean and std for it: give normalize=(mean, std), "
                f"or note them in the dataset: penstock preprocess normalize {ds.path} imagenet"
            )
        fields[name] = f
    if not any(f.is_image or f.normalization for f in fields.values()):
        raise Error(f"{ds.path}: normalize is {normalize!r}, and there is no field of uint8 images to be normalized: {', '.join(fields)}")
    return fields


def _figures(normalize: Any) -> Callable[[Field], Normalization]:
    """Return what makes a normalization of a pair of means and standard deviations."""
    try:
        mean, std = (tuple(float(x) for x in figures) for figures in normalize)
    except (TypeError, ValueError):
        raise TypeError(f"normalize is {normalize!r}; it must be True, False or a pair of lists of numbers, (mean, std)") from None
    if len(mean) != len(std) or not all(s > 0 for s in std):
        raise ValueError(f"normalize is {normalize!r}; it must have as many means as standard deviations, and these must be positive")

    def of(f: Field) -> Normalization:
        channels = f.shape[0] if f.layout == "CHW" else f.shape[-1]
        if len(mean) not in (1, channels):
            raise ValueError(
                f"normalize has {len(mean)} means; the images of field {f.name!r} have {channels} channels, so it must have {channels} or 1"
            )
        return Normalization(False, 255.0, mean, std)

    return of


def collate(batch: Any) -> Any:
    """Return the tensors of a batch that a TorchDataset fetched: nothing is left to be stacked."""
    return batch.arrays if isinstance(batch, Batch) else torch.utils.data.default_collate(batch)


def convert(fields: Mapping[str, Field], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a batch as tensors over the same memory, text as lists of str."""
    ragged = {name for name, f in fields.items() if f.ragged}
    return {name: _ragged(values) if name in ragged else tensor(values) for name, values in batch.items()}


def converter_of(f: Field) -> Callable[[np.ndarray], torch.Tensor]:
    """Return what converts an array of a field of fixed size."""
    return tensor if f.dtype == "bfloat16" else torch.from_numpy


def _ragged(batch: Ragged) -> Jagged | list[str] | list[list[torch.Tensor]]:
    if batch.is_images:
        return [[tensor(file) for file in record] for record in batch.files()]
    if batch.is_text:
        return [str(text) for text in batch]
    values, offsets = tensor(batch.values), torch.from_numpy(batch.offsets)
    return Sparse(values, offsets, batch.width) if isinstance(batch, SparseRows) else Jagged(values, offsets)


def _normalize(f: Field, values: Records, records: np.ndarray, out: np.ndarray) -> None:
    """Write normalized records to out, a few at a time: all steps find them in the CPU's cache. There are as many threads as torch has."""
    values.announce(records)
    few = max(1, _CACHED // f.row_bytes)

    def some(begin: int, end: int) -> None:
        stored = np.empty((min(few, end - begin), *f.shape), values.dtype)
        for first in range(begin, end, few):
            n = min(few, end - first)
            values.fill(records[first : first + n], stored[:n])
            f.float32(stored[:n], out=out[first : first + n])

    divided(some, len(records), max(1, min(torch.get_num_threads(), len(records) // few)))
