"""Datasets as dask arrays: see ``Dataset.to_dask``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import Error
from .ragged import RaggedRecords
from .source import absolute

if TYPE_CHECKING:
    import dask.array

#: The bytes of a chunk, about, where none are asked for.
CHUNK_BYTES = 64 << 20


class Lazy:
    """A field as an array whose records are read when they are indexed. It may be pickled: each process maps the files itself.

    Records of variable length are objects: arrays or strings.
    """

    def __init__(self, dataset: Any, name: str) -> None:
        self.dataset, self.name = dataset, name
        field = dataset[name]
        ragged = isinstance(field, RaggedRecords)
        self.dtype = np.dtype(object) if ragged else field.dtype
        self.shape: tuple[int, ...] = (len(dataset),) if ragged else field.shape
        self.ndim = len(self.shape)

    def __getitem__(self, key: Any) -> np.ndarray:
        first, *rest = key if isinstance(key, tuple) else (key,)
        records = self.dataset[self.name]
        if isinstance(records, RaggedRecords):
            if isinstance(first, (int, np.integer)):
                one = np.empty((), object)
                one[()] = records[first]
                return one
            chosen = records[first]
            many = np.empty(len(chosen), object)
            for i, value in enumerate(chosen):
                many[i] = value
            return many
        out: np.ndarray = records[first]
        kept = 0 if isinstance(first, (int, np.integer)) else 1
        for part in rest:  # each chooses of its own axis
            out = out[(*(slice(None),) * kept, part)]
            kept += not isinstance(part, (int, np.integer))
        return out


def to_dask(dataset: Any, chunks: int | None = None) -> dict[str, dask.array.Array]:
    """Return the fields of a dataset as dask arrays, by name: see ``Dataset.to_dask``."""
    try:
        import dask.array
        from dask.base import tokenize
    except ImportError as e:
        raise Error("to_dask needs dask: pip install 'dask[array]'") from e
    if chunks is not None and chunks < 1:
        raise ValueError(f"chunks is {chunks}; it is the number of records of a chunk, 1 or more")
    shared = dataset.__getstate__()
    shared["path"] = absolute(dataset.path)  # workers may be in other folders
    whole = object.__new__(type(dataset))
    whole.__setstate__(shared)
    arrays = {}
    for name, field in whole.fields.items():
        x = Lazy(whole, name)
        size = chunks or max(1, CHUNK_BYTES // max(1, 1024 if field.ragged else field.row_bytes))
        axes = (tuple(_split(whole.parts(), size)), *((n,) for n in x.shape[1:]))
        token = tokenize(whole.id, whole.split, shared["path"], name, axes)
        of: Any = dask.array.from_array  # which has no types
        arrays[name] = of(x, axes, name=f"penstock-{name}-{token}", asarray=False, fancy=False, meta=np.empty((0,) * x.ndim, x.dtype))
    return arrays


def _split(parts: list[int], size: int) -> Iterator[int]:
    """Return chunks of at most size records, each in one part, in which records are views."""
    for count in parts:
        n = -(-count // size)
        yield from (count * (i + 1) // n - count * i // n for i in range(n))
