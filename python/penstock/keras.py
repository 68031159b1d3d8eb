"""A DataLoader as data of Keras 3, on each of its backends."""

from __future__ import annotations

import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, Union

import keras
import numpy as np
from keras.src.trainers.data_adapters.data_adapter import DataAdapter  # which get_data_adapter of Keras takes as it is
from keras.src.trainers.data_adapters.data_adapter_utils import class_weight_to_sample_weights

from ._base.errors import Error
from ._engine.dataloader import DataLoader

#: A field of a batch, by its name or position, or several, which become a dict.
Fields = Union[str, int, Sequence[str]]


class Data(DataAdapter):
    """What ``fit``, ``evaluate`` and ``predict`` of a Keras model take for a DataLoader.

    ::

        loader = penstock.DataLoader("data/train", 64, shuffle=True, output="numpy", transforms=train)
        data = penstock.keras.Data(loader, inputs="images", targets="labels")
        model.fit(data, epochs=10, callbacks=[data.callback])

    Each epoch of Keras is an epoch of the loader. ``data.callback`` tells which batches were trained, so put it before
    callbacks that save a state: Keras fetches batches ahead, which ``state_dict`` leaves out. Without it, ``fit`` trains the
    same batches, and there is no state. Give validation data a Data of its own.

    Give ``y``, ``sample_weight`` and ``class_weight`` here: ``fit`` refuses them.

    Args:
        loader: A DataLoader with output="numpy", or with "torch" or "jax" on that backend.
        inputs, targets, weights: The fields of x, y and sample_weight; a list of names becomes a dict of arrays.
        class_weight: The weight of each class of targets, one field, as ``fit`` takes it; 1 for classes that are not in it. Not
            together with weights.
    """

    def __init__(
        self,
        loader: DataLoader[Any],
        inputs: Fields,
        targets: Fields | None = None,
        weights: str | int | None = None,
        class_weight: Mapping[int, float] | None = None,
    ) -> None:
        backend, output = keras.backend.backend(), loader.output  # type: ignore[attr-defined]
        if output not in ("numpy", backend):
            raise ValueError(f'the backend of Keras is {backend}, and the DataLoader has output="{output}"; give it output="numpy"')
        if weights is not None and targets is None:
            raise ValueError("weights are of targets; give targets, too")
        if class_weight is not None and (weights is not None or not isinstance(targets, (str, int))):
            raise ValueError("class_weight is for targets of one field, without weights")
        self._class_weight = class_weight
        self._loader = loader
        self._names = [names for names in (inputs, targets, weights) if names is not None]
        self._lock, self._pass = threading.Lock(), object()
        self._trained: Mapping[str, Any] = loader.state_dict()
        self._fetched: deque[Mapping[str, Any]] = deque()  # the states after batches that were not trained yet
        self._ahead: Mapping[str, Any] | None = None  # after a pass outside of training
        self._followed = self._training = False
        self._resumed = True  # the first epoch may be the rest of an epoch
        #: The callback that ``fit`` needs for a state.
        self.callback = _Follow(self)

    def state_dict(self) -> Mapping[str, Any]:
        """Return the state of the loader after the step that was trained last."""
        if self._ahead is not None and not self._followed:
            raise Error("there is no state of batches that nobody counted; give fit callbacks=[data.callback]")
        return self._trained

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue where state_dict was taken: the first epoch of the next ``fit`` is the rest of that epoch. Give ``fit`` its initial_epoch."""
        with self._lock:
            self._loader.load_state_dict(state_dict)
            self._trained, self._ahead, self._pass, self._resumed = dict(state_dict), None, object(), True

    def _batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield the batches of an epoch, or of its rest.

        Keras leaves passes unfinished: passes that find shapes, whose batches come again, and passes that tf.data still reads
        in threads. A new pass begins after the step that was trained last, and ends older passes.
        """
        with self._lock:
            self._pass = this = object()
            self._fetched.clear()
            self._loader.load_state_dict(self._ahead or self._trained)
            step, total = self._loader.step, self.num_batches
            batches = iter(self._loader)
            first = next(batches, None)
            if first is None:  # the state is that after the last step of an epoch
                step, batches = 0, iter(self._loader)
            else:
                batches = chain((first,), batches)
            del first
        while True:
            with self._lock:
                if self._pass is not this:
                    return
                batch = next(batches, None)
                step += 1
                if not self._training and (batch is None or step == total):  # Keras does not ask for more than there is
                    self._ahead = self._loader.state_dict()
                if batch is None:
                    return
                self._fetched.append(self._loader.state_dict())
            values = tuple(self._value(batch, names) for names in self._names)
            yield values if self._class_weight is None else (*values, class_weight_to_sample_weights(values[1], self._class_weight))

    def _value(self, batch: Any, names: Fields) -> Any:
        if not isinstance(names, (str, int)):
            return {name: self._value(batch, name) for name in names}
        fields: Any = self._loader.fields
        value = batch[names]
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            raise Error(f"field {names!r} has records of variable length or text, which Keras does not take; leave it out, or transform it")
        if isinstance(value, np.ndarray) and fields and getattr(fields.get(names), "dtype", "") == "bfloat16":
            raise Error(f"field {names!r} is bfloat16, which NumPy does not have; prepare it as float32")
        return value

    get_numpy_iterator = get_jax_iterator = _batches  # as Keras asks for them

    def get_torch_dataloader(self) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over an epoch, of tensors on Keras' device."""
        return (keras.tree.map_structure(keras.ops.convert_to_tensor, batch) for batch in self._batches())

    def get_tf_dataset(self) -> Any:
        """Return a tf.data.Dataset, each iteration of which is an epoch."""
        import tensorflow as tf

        def spec(*arrays: np.ndarray) -> Any:
            shape = [sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*(a.shape[1:] for a in arrays))]
            return tf.TensorSpec([None, *shape], arrays[0].dtype)

        signature = keras.tree.map_structure(spec, *islice(self._batches(), 2))
        return tf.data.Dataset.from_generator(self._batches, output_signature=signature).prefetch(tf.data.AUTOTUNE)

    @property
    def num_batches(self) -> int | None:
        """The batches of a whole epoch; None if the dataset has no length.

        Keras asks for it where it takes an adapter and leaves out the other data that ``fit`` was given, which would be a silent loss.
        """
        caller = sys._getframe(1).f_locals
        for name in ("y", "sample_weight", "class_weight"):
            if caller.get("x") is self and caller.get(name) is not None:
                here = {"y": "targets", "sample_weight": "weights"}.get(name, name)
                raise ValueError(f"{name}: Keras does not pass it to this data; give it there: penstock.keras.Data(loader, ..., {here}=...)")
        try:
            return len(self._loader)
        except TypeError:
            return None

    @property
    def batch_size(self) -> int | None:
        """The records of a full batch."""
        return self._loader.batch_size


class _Follow(keras.callbacks.Callback):
    """Counts the steps that were trained."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        self._data, self._quiet, self._last = data, ExitStack(), -1

    def on_train_begin(self, logs: Any = None) -> None:
        self._data._followed = self._data._training = True
        self._data._ahead = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._last = -1
        self._quiet.close()
        if self._data._resumed:  # Keras warns of an epoch that ends before its last step, as the rest of one does
            self._quiet.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "Your input ran out of data")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        for _ in range(min(batch - self._last, len(self._data._fetched))):
            self._data._trained = self._data._fetched.popleft()
        self._last = batch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._data._resumed = False
        self._quiet.close()

    def on_train_end(self, logs: Any = None) -> None:
        self._data._training = False
