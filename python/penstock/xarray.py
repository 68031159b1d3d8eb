"""Datasets in xarray: ``xarray.open_dataset("data/train", engine="penstock")``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from ._base.errors import Error
from ._base.files import open_in
from ._base.urls import redacted
from ._read.dask import Lazy
from ._read.dataset import Dataset
from ._read.field import Field
from ._read.source import absolute


class _Array(BackendArray):
    """A field that is read when its values are asked for."""

    def __init__(self, lazy: Lazy) -> None:
        self.lazy, self.shape, self.dtype = lazy, lazy.shape, lazy.dtype

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self.lazy.__getitem__)


class PenstockBackend(BackendEntrypoint):
    """Opens datasets that penstock made: flat folders, and HDF5 files where ``engine="penstock"`` says so.

    Each field is a variable over the dimension "record"; ``chunks={}`` has dask read it. Classes, layout and
    normalization are attributes. Records of variable length are objects.
    """

    description = "Datasets that penstock made"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "fields", "split")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        fields: Iterable[str] | None = None,
        split: str | None = None,
    ) -> xarray.Dataset:
        """Open a dataset, or the fields or the split of it that are named."""
        ds = Dataset(absolute(os.fspath(filename_or_obj)), fields, split)
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        variables = {}
        for name, field in ds.fields.items():
            if name not in dropped:
                lazy = Lazy(ds, name)
                chunks = {"preferred_chunks": {"record": tuple(ds.parts())}}
                data = indexing.LazilyIndexedArray(_Array(lazy))
                variables[name] = xarray.Variable(_dimensions(field, lazy.ndim), data, _attributes(field), chunks)
        out = xarray.Dataset(variables, attrs={"id": ds.id, "path": redacted(ds.path)})
        out.set_close(ds.close)
        return out

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Report whether it is the folder of a dataset."""
        try:
            folder = os.fspath(filename_or_obj)
            with open_in(folder, os.path.join(folder, "manifest.json")) as f:
                return b"penstock" in f.read(4096)
        except (OSError, TypeError, Error):
            return False


def _dimensions(field: Field, ndim: int) -> tuple[str, ...]:
    names = {"C": "channel", "H": "y", "W": "x"}
    if field.dims:
        return (field.dims[0] or "record", *(axis or f"{field.name}_dim_{i}" for i, axis in enumerate(field.dims[1:], 1)))
    axes = [names[axis] for axis in field.layout] if len(field.layout) == ndim - 1 else [f"dim_{i}" for i in range(1, ndim)]
    return ("record", *(f"{field.name}_{axis}" for axis in axes))


def _attributes(field: Field) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    if field.classes:
        attributes["classes"] = list(field.classes)
    if field.layout:
        attributes["layout"] = field.layout
    if field.normalization is not None:
        n = field.normalization
        attributes["normalization"] = json.dumps({"applied": n.applied, "scale": n.scale, "mean": n.mean, "std": n.std})
    return attributes


__all__ = ["PenstockBackend"]
