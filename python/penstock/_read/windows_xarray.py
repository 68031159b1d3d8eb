"""Windows in xarray: see ``Windowed.to_xarray``."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray


def of_windows(view: Any, records: Any) -> xarray.Dataset:
    """Return windows as a Dataset: see ``Windowed.to_xarray``."""
    batch = records if hasattr(records, "indices") and hasattr(records, "keys") else None
    one = batch is None and np.ndim(records) == 0 and not isinstance(records, slice)
    if batch is not None:
        numbers = np.asarray(batch.indices)
    elif isinstance(records, slice):
        numbers = np.arange(*records.indices(len(view)))
    else:
        numbers = view.indices([records] if one else records)
    values = view.__getitems__(numbers) if batch is None else batch
    coords: dict[str, Any] = {} if one else {"record": numbers}
    variables: dict[str, Any] = {}
    for name, field in view.fields.items():
        if name in view.axes:  # the coordinates themselves
            continue
        dims, places = [], view.coords(numbers, name)
        for k, axis in enumerate(field.dims[1:] or [f"{name}_dim_{k + 1}" for k in range(len(field.shape))]):
            known = places.get(axis, places.get(str(k)))
            label = axis or f"{name}_dim_{k + 1}"
            if known is not None:
                label = _coordinate(coords, label if axis else f"axis_{k}", name, known[0] if one else known, one)
            dims.append(label)
        data = _objects(values[name]) if field.ragged else np.asarray(values[name])
        variables[name] = (dims, data[0]) if one else (["record", *dims], data)
    return xarray.Dataset(variables, coords)


def _objects(records: Any) -> np.ndarray:
    """Return records of variable length as an array of objects."""
    out = np.empty(len(records), object)
    for i, record in enumerate(records):
        out[i] = record
    return out


def _coordinate(coords: dict[str, Any], axis: str, field: str, values: np.ndarray, one: bool) -> str:
    """Add the coordinates of an axis, under a name of the field if another field has other coordinates for the axis. Return the
    dimension.
    """
    for name in (axis, f"{field}_{axis}"):
        dim = name if one else f"{name}_step"
        if name not in coords or np.array_equal(coords[name][1], values):
            break
    coords[name] = (dim if one else ("record", dim), values)
    return dim
