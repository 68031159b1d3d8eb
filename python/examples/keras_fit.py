"""Train with Keras 3 on TensorFlow, JAX or PyTorch, and continue in the middle of an epoch.

    KERAS_BACKEND=jax python3 keras_fit.py DATASET [FOLDER]

FOLDER keeps the model and the state of the data after each tenth step; a run that finds them goes on from there.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import keras

import penstock.keras
from penstock.transforms import Compose, RandomHorizontalFlip, ToTensor


class Save(keras.callbacks.Callback):
    """Saves the model with the state of the data: one is of the same step as the other."""

    def __init__(self, data: penstock.keras.Data, folder: str) -> None:
        super().__init__()
        self.data, self.folder = data, folder

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch % 10 == 9:
            os.makedirs(self.folder, exist_ok=True)
            self.model.save(os.path.join(self.folder, "model.keras"))
            with open(os.path.join(self.folder, "data.json"), "w") as f:
                json.dump(self.data.state_dict(), f)


def train(path: str, folder: str | None = None, epochs: int = 3) -> list[float]:
    """Return the loss of each epoch."""
    loader = penstock.DataLoader(
        path, 64, shuffle=True, seed=1, output="numpy", transforms=Compose([RandomHorizontalFlip(), ToTensor()])
    )  # fmt: skip
    data = penstock.keras.Data(loader, inputs="images", targets="labels")
    first, callbacks = 0, [data.callback]
    if folder and os.path.exists(os.path.join(folder, "data.json")):
        model = keras.models.load_model(os.path.join(folder, "model.keras"))
        with open(os.path.join(folder, "data.json")) as f:
            state = json.load(f)
        data.load_state_dict(state)
        first = state["epoch"]
    else:
        shape, classes = loader.fields["images"].shape, len(loader.classes())
        model = keras.Sequential([keras.Input(shape), keras.layers.Flatten(), keras.layers.Dense(classes)])
        model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    if folder:
        callbacks.append(Save(data, folder))
    history = model.fit(data, epochs=epochs, initial_epoch=first, callbacks=callbacks, verbose=0)
    return [float(loss) for loss in history.history["loss"]]


if __name__ == "__main__":
    print(" ".join(f"{loss:.3f}" for loss in train(*sys.argv[1:3])))
