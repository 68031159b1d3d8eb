"""A PyDataset of Keras 3, whose items are batches, read by workers.

pip install keras torch && KERAS_BACKEND=torch python keras_pydataset.py
"""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch

import penstock


class Batches(keras.utils.PyDataset):
    """Stands for yours."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        x = np.random.default_rng(i).random((8, 6)).astype(np.float32)
        return x, x.sum(1, keepdims=True)


def train(loader=penstock.DataLoader, epochs=2, workers=2):
    keras.utils.set_random_seed(0)
    torch.manual_seed(0)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse")
    losses = []
    callback = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: losses.append(float(logs["loss"])))
    # model.fit(Batches(workers=workers, use_multiprocessing=True), shuffle=True,
    model.fit(loader(Batches(), batch_size=None, shuffle=True, num_workers=workers), epochs=epochs, verbose=0, callbacks=[callback])
    return losses


if __name__ == "__main__":
    print(train())
