"""Batches as JAX arrays."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._base.errors import Error
from ._base.values import kind_of
from ._engine.batch import BatchDict
from ._read.field import Field
from ._read.ragged import Ragged


def _plain(names: tuple[str, ...], values: Any) -> Any:
    return dict(zip(names, values))


# JAX takes only what it knows apart, which named tuples are; what comes out of tree_map is a dict.
jax.tree_util.register_pytree_node(BatchDict, lambda b: (tuple(b[k] for k in sorted(b)), tuple(sorted(b))), _plain)


@jax.tree_util.register_pytree_node_class
class Jagged:
    """A batch of records of a field of variable length: what ``penstock.Ragged`` is in NumPy.

    ``b[i]`` are the rows of record i; ``len(b)`` is the number of records, and iteration goes over
    them. ``values`` are all rows, and the rows of record i are ``values[offsets[i]:offsets[i+1]]``. It
    is a pytree of the two.
    """

    __slots__ = ("offsets", "values")

    def __init__(self, values: jax.Array, offsets: jax.Array) -> None:
        self.values, self.offsets = values, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<{len(self)} jagged records: {self.values.dtype} {self.values.shape}>"

    def __getitem__(self, i: int) -> jax.Array:
        n, i = len(self), operator.index(i)
        if not -n <= i < n:
            raise IndexError(f"record {i} is out of range: there are {n}")
        return self.values[int(self.offsets[i % n]) : int(self.offsets[i % n + 1])]

    def __iter__(self) -> Iterator[jax.Array]:
        ends = np.asarray(self.offsets).tolist()
        return (self.values[a:b] for a, b in zip(ends, ends[1:]))

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        """Return the arrays, as JAX asks for."""
        return (self.values, self.offsets), None

    @classmethod
    def tree_unflatten(cls, _: None, arrays: tuple[Any, Any]) -> Jagged:
        """Return the batch of other arrays."""
        return cls(*arrays)


#: Batches that are put on a device before the loop asks for them.
AHEAD = 2

_log = logging.getLogger("penstock")
_said: set[str] = set()


def converter(device: Any) -> Callable[[Mapping[str, Field], Mapping[str, Any]], dict[str, Any]]:
    """Return what makes JAX arrays of the fields of a batch, on a device or by a Sharding; text stays lists of str.

    JAX copies while the loop goes on, and keeps the memory of a batch until that is done.
    """
    place = _resolve(device)
    return lambda fields, batch: {name: _value(fields.get(name), values, place) for name, values in batch.items()}


def placed(batches: Iterator[Any], device: Any) -> Iterator[Any]:
    """Yield batches of NumPy arrays, in lists, tuples and dicts, as JAX arrays on a device or by a Sharding; other values stay as they are."""
    place = _resolve(device)

    def value(v: Any) -> Any:
        return _array(None, np.array(v), place) if isinstance(v, (np.ndarray, np.generic)) and kind_of(v.dtype) in "biufc" else v

    for batch in batches:
        yield jax.tree_util.tree_map(value, batch)


def check(device: Any, batch_size: int, last: int) -> None:
    """Refuse a value that is no device, and a Sharding whose devices cannot take equal parts of each batch, whose sizes are
    batch_size and last.
    """
    if not isinstance(device, (str, jax.Device, jax.sharding.Sharding)):
        raise TypeError(
            f'device is {device!r:.80}; with output="jax" it is a jax.Device, a name such as "cuda:0", or a Sharding: '
            'of several devices, NamedSharding(Mesh(devices, ("data",)), PartitionSpec("data"))'
        )
    if not isinstance(device, jax.sharding.NamedSharding) or not device.spec or device.spec[0] is None:
        return
    axes = device.spec[0] if isinstance(device.spec[0], tuple) else (device.spec[0],)
    parts = math.prod(device.mesh.shape[axis] for axis in axes)
    if batch_size % parts:
        raise ValueError(f"batch_size is {batch_size}, and device divides batches over {parts} devices: give a multiple of {parts}")
    if last % parts:
        raise ValueError(f"the last batch of an epoch has {last} records, and device divides batches over {parts} devices: give drop_last=True")


def _resolve(device: Any) -> Any:
    """Return the device of a name; if no device has the name, JAX's own choice, with a warning the first time."""
    if not isinstance(device, str):
        return device
    kind, _, index = device.partition(":")
    try:
        return jax.local_devices(backend=kind)[int(index or 0)]
    except RuntimeError:
        if device not in _said:
            _said.add(device)
            _log.warning("device is %s, and JAX finds none: batches go to %s", device, jax.local_devices()[0])
        return None


def _value(f: Field | None, values: Any, place: Any) -> Any:
    if isinstance(values, Ragged):
        if values.is_text or values.is_images:
            return list(values)
        return Jagged(_array(f, values.values, place), _array(None, values.offsets, place))
    return _array(f, values, place)


def _fit(values: np.ndarray, narrow: np.dtype) -> bool:
    limits = np.iinfo(narrow)
    return bool(limits.min <= values.min() and values.max() <= limits.max)


def _array(f: Field | None, values: np.ndarray, place: Any) -> jax.Array:
    narrow = jax.dtypes.canonicalize_dtype(values.dtype)
    if narrow != values.dtype and values.dtype.kind in "iu" and values.size and not _fit(values, narrow):
        name = f"field {f.name!r}" if f is not None else "a batch"
        raise Error(
            f"{name} has integers that {narrow} does not hold, and JAX takes {values.dtype} for it; use jax.config.update('jax_enable_x64', True)"
        )
    return jnp.asarray(values) if place is None else jax.device_put(values, place)
