"""Batches as JAX arrays."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .dataloader import LoaderBatch
from .field import Field
from .ragged import Ragged


def _plain(names: tuple[str, ...], values: Any) -> Any:
    return dict(zip(names, values))


# JAX takes only what it knows apart; what comes out of tree_map is a dict.
jax.tree_util.register_pytree_node(LoaderBatch, lambda b: (tuple(b[k] for k in sorted(b)), tuple(sorted(b))), _plain)


class Jagged(NamedTuple):
    """A batch of a field of variable length: record i is ``values[offsets[i]:offsets[i+1]]``."""

    values: jax.Array
    offsets: jax.Array


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


def _resolve(device: Any) -> Any:
    """Return the device of a name; JAX's own choice, and say so once, where there is none."""
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
        if values.content == "utf-8":
            return list(values)
        return Jagged(_array(f, values.values, place), _array(None, values.offsets, place))
    return _array(f, values, place)


def _array(f: Field | None, values: np.ndarray, place: Any) -> jax.Array:
    if f is not None and f.dtype == "bfloat16":
        values = values.view(jnp.bfloat16)
    return jnp.asarray(values) if place is None else jax.device_put(values, place)
