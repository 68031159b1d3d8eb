"""Train with JAX on several devices, and on several hosts: batches as sharded global arrays.

    python3 jax_sharded.py DATASET

Each process loads its slice of the global batch, and jax.make_array_from_process_local_data makes
one array of them, divided over all devices.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import penstock
from penstock.transforms import Compose, Normalize, ToTensor


@jax.jit
def step(weights: jax.Array, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return the weights of a linear model after a step, and its loss."""

    def loss(w: jax.Array) -> jax.Array:
        logits = batch["images"].reshape(len(batch["images"]), -1) @ w
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch["labels"][:, None], 1).mean()

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.01 * gradient, value


def train(path: str, epochs: int = 2, batch_size: int = 64) -> list[float]:
    """Return the loss of every step."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    loader = penstock.DataLoader(
        path, batch_size // jax.process_count(), shuffle=True, drop_last=True, output="numpy",
        transforms=Compose([ToTensor(), Normalize([0.5] * 3, [0.25] * 3)]), rank=jax.process_index(), world_size=jax.process_count(),
    )  # fmt: skip
    images = loader.fields["images"]
    weights = jnp.zeros((int(np.prod(images.shape)), len(loader.fields["labels"].classes)))
    losses = []
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            arrays = {name: jax.make_array_from_process_local_data(sharding, values) for name, values in batch.items()}
            weights, loss = step(weights, arrays)
            losses.append(float(loss))  # waits for the step, and so for the copy of the batch
    return losses


if __name__ == "__main__":
    print(" ".join(f"{loss:.3f}" for loss in train(sys.argv[1])))
