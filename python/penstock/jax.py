"""Batches as JAX arrays."""

from __future__ import annotations

from collections.abc import Mapping
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


def arrays(fields: Mapping[str, Field], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a batch as JAX arrays, text as lists of str."""
    return {name: _value(fields.get(name), values) for name, values in batch.items()}


def _value(f: Field | None, values: Any) -> Any:
    if isinstance(values, Ragged):
        if values.content == "utf-8":
            return list(values)
        return Jagged(_array(f, values.values), jnp.asarray(values.offsets))
    return _array(f, values)


def _array(f: Field | None, values: np.ndarray) -> jax.Array:
    if f is not None and f.dtype == "bfloat16":
        values = values.view(jnp.bfloat16)
    return jnp.asarray(values)
