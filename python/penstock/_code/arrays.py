"""Datasets of arrays and tensors in memory, recognized by their columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Columns:
    """Arrays with as many rows each, and what a batch of their rows is."""

    arrays: list[Any]  # of NumPy, or tensors
    build: Callable[[list[Any]], Any]  # makes a batch of an array for each
    indices: np.ndarray | None = None  # the rows that count, by number; None means all
    dataset: Any = None  # of torch, which makes samples itself; None indexes each array

    def samples(self, indices: Any) -> Any:
        """Return the samples of indices of any kind, or raise what indexing raises."""
        if getattr(self.dataset, "__getitems__", None):
            return self.dataset.__getitems__(indices)
        if self.dataset is not None:
            return [self.dataset[i] for i in indices]
        return [self.build([a[i] for a in self.arrays]) for i in indices]

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.indices is None else len(self.indices)


def columns(dataset: Any) -> Columns | None:
    """Return the columns of a dataset in memory; None if the dataset does not consist of arrays alone.

    The arrays are an array of NumPy or a tensor; a tuple, a named tuple or a dict of these; a TensorDataset or a StackDataset;
    a Subset of one of them; or a table of pandas, polars or Arrow whose columns are all numbers.
    """
    kind = type(dataset)
    if _is_array(dataset):
        return Columns([dataset], lambda values: values[0])
    if kind is tuple:
        return _several(list(dataset), list)
    if isinstance(dataset, tuple) and hasattr(kind, "_make"):
        return _several(list(dataset), kind._make)
    if kind is dict:
        return _named(dataset)
    utils = sys.modules.get("torch.utils.data")
    if kind is getattr(utils, "TensorDataset", None):
        return _sampled(_several(list(dataset.tensors), list), dataset)
    if kind is getattr(utils, "StackDataset", None):
        return _sampled(_named(dataset.datasets) if isinstance(dataset.datasets, dict) else _several(list(dataset.datasets), list), dataset)
    if kind is getattr(utils, "Subset", None):
        return _sampled(_subset(columns(dataset.dataset), dataset.indices), dataset)
    table = _table(dataset)
    return None if table is None else _named(table)


def _several(arrays: list[Any], build: Callable[[list[Any]], Any]) -> Columns | None:
    if not arrays or not all(map(_is_array, arrays)):
        return None
    lengths = [len(a) for a in arrays]
    if len(set(lengths)) != 1:
        raise ValueError(
            f"dataset has arrays of {', '.join(map(str, lengths[:8]))}{', ...' if len(lengths) > 8 else ''} records; give arrays of one length, or, "
            "if each array is a sample, a list of them"
        )
    return Columns(arrays, build)


def _named(arrays: Mapping[Any, Any]) -> Columns | None:
    names = list(arrays)
    return _several(list(arrays.values()), lambda values: dict(zip(names, values)))


def _sampled(found: Columns | None, dataset: Any) -> Columns | None:
    """Return the columns with the samples of a torch dataset, or None if no columns were found."""
    return None if found is None else replace(found, dataset=dataset)


def _subset(of: Columns | None, indices: Any) -> Columns | None:
    if of is None or not len(indices):
        return None
    chosen = np.asarray(indices)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        return None
    n = len(of)
    if (chosen < -n).any() or (chosen >= n).any():
        return None  # its error is raised where it is indexed
    chosen = np.where(chosen < 0, chosen + n, chosen).astype(np.int64)
    return Columns(of.arrays, of.build, chosen if of.indices is None else of.indices[chosen])


def _is_array(value: Any) -> bool:
    """Return whether a value is an array or a tensor whose rows NumPy can gather and torch collates to the same type."""
    if type(value) in (np.ndarray, np.memmap):
        return bool(value.ndim and value.dtype.isnative and (value.dtype.kind in "biu" or value.dtype in _FLOATS))
    torch = sys.modules.get("torch")
    if torch is None or type(value) is not torch.Tensor:
        return False
    return bool(
        value.ndim and value.device.type == "cpu" and value.layout is torch.strided and not value.requires_grad and not value.is_quantized
        and not value.is_conj() and not value.is_neg() and value.dtype.itemsize <= 16
    )  # fmt: skip


_FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128")]


def _table(dataset: Any) -> dict[str, np.ndarray] | None:
    """Return the columns of a table of numbers; None if it is not one."""
    kind, module = type(dataset).__name__, type(dataset).__module__.partition(".")[0]
    if (module, kind) == ("pandas", "DataFrame") and dataset.columns.is_unique:
        found = {name: dataset[name].to_numpy() if isinstance(dataset[name].dtype, np.dtype) else None for name in dataset.columns}
    elif (module, kind) == ("polars", "DataFrame"):
        found = {s.name: s.to_numpy() if not s.null_count() else None for s in dataset.get_columns()}
    elif (module, kind) == ("pyarrow", "Table"):
        found = {name: _arrow(dataset.column(i)) for i, name in enumerate(dataset.column_names)}
    else:
        return None
    return {name: values for name, values in found.items() if values is not None} if all(v is not None for v in found.values()) else None


def _arrow(column: Any) -> np.ndarray | None:
    """Return a column of Arrow: of numbers or of lists of as many numbers each, without nulls."""
    import pyarrow as pa

    width, rows = 0, len(column)
    if pa.types.is_fixed_size_list(column.type) and not column.null_count:
        width, column = column.type.list_size, column.combine_chunks().flatten()
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        return None
    values: np.ndarray = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    return values.reshape(rows, width) if width else values
