"""penstock.keras on each backend of Keras, in a process each, beside train_on_batch in a plain loop."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import penstock

from . import data

RECORDS, SIZE, STEPS = 50, 8, 7


class KerasTest(unittest.TestCase):
    def check(self, backend):
        for library in ("keras", backend):
            if importlib.util.find_spec(library) is None:
                raise unittest.SkipTest(f"no {library}")
        env = {
            **os.environ,
            "KERAS_BACKEND": backend,
            "PENSTOCK_FEED": data.feed(),
            "PENSTOCK_PREPROCESS": data.preprocess(),
            "CUDA_VISIBLE_DEVICES": "",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        ran = subprocess.run([sys.executable, "-m", "tests.test_keras"], cwd=os.path.dirname(data.HERE), env=env, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout[-2000:] + ran.stderr[-4000:])

    def test_tensorflow(self):
        self.check("tensorflow")

    def test_jax(self):
        self.check("jax")

    def test_torch(self):
        self.check("torch")


def program():
    """Check all on the backend of this process."""
    import keras

    rng = np.random.default_rng(0)
    x, y = rng.random((RECORDS, SIZE), np.float32), rng.random((RECORDS, 1), np.float32)

    def made(weights=None):
        model = keras.Sequential([keras.Input((SIZE,)), keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
        if weights is not None:
            model.set_weights(weights)
        return model

    class Stop(Exception):
        """Stands for a process that ends."""

    class Watch(keras.callbacks.Callback):
        def __init__(self, given, after=None):
            super().__init__()
            self.given, self.after, self.steps = given, after, []

        def on_train_batch_end(self, batch, logs=None):
            self.steps.append(batch)
            self.state = self.given.state_dict()
            if len(self.steps) == self.after:
                self.weights = self.model.get_weights()
                raise Stop

    def check(dataset, inputs, targets, stops):
        def loader(**options):
            return penstock.DataLoader(dataset, 8, output="numpy", num_workers=0, **options)

        def given(**options):
            return penstock.keras.Data(loader(seed=1, shuffle=True, **options), inputs, targets)

        def equal(a, b):
            for v, w in zip(a.get_weights(), b.get_weights()):
                np.testing.assert_allclose(v, w, rtol=1e-5, atol=1e-6)

        whole, plain = given(), made()
        watch, model = Watch(whole), made()
        model.fit(whole, epochs=3, verbose=0, callbacks=[whole.callback, watch])
        assert watch.steps == [*range(STEPS)] * 3, watch.steps
        shuffled = loader(seed=1, shuffle=True)
        for _ in range(3):
            for batch in shuffled:
                plain.train_on_batch(batch[inputs], batch[targets])
        equal(model, plain)
        for name in ("y", "sample_weight", "class_weight"):
            try:
                made().fit(given(), verbose=0, **{name: {0: 2.0} if name == "class_weight" else y})
                raise AssertionError(f"{name} is left out")
            except ValueError as e:
                assert f"{name}: Keras does not pass it" in str(e), e
        for after in stops:
            stopped = given()
            watch = Watch(stopped, after)
            try:
                made().fit(stopped, epochs=3, verbose=0, callbacks=[stopped.callback, watch])
                raise AssertionError("not stopped")
            except Stop:
                pass
            epoch, step = divmod(after, STEPS)
            assert (watch.state["epoch"], watch.state["step"]) in ((epoch, step), (epoch - 1, step + STEPS)), watch.state
            rest = given()
            rest.load_state_dict(watch.state)
            again, model = Watch(rest), made(watch.weights)
            model.fit(rest, epochs=3, initial_epoch=epoch, verbose=0, callbacks=[rest.callback, again])
            assert again.steps == [*range(STEPS - step), *list(range(STEPS)) * (2 - epoch)], again.steps
            equal(model, plain)

        data = given()
        model = made()
        model.fit(data, epochs=3, verbose=0)
        equal(model, plain)
        try:
            data.state_dict()
            raise AssertionError("a state of steps that nobody counted")
        except penstock.Error as e:
            assert "callbacks=[data.callback]" in str(e), e

    def check_passes(dataset, inputs, targets):
        model = made()
        once = penstock.keras.Data(penstock.DataLoader(dataset, 8, output="numpy", num_workers=0), inputs, targets)
        for _ in range(2):
            np.testing.assert_allclose(model.evaluate(once, verbose=0), model.evaluate(x, y, batch_size=8, verbose=0), rtol=1e-5)
            np.testing.assert_allclose(model.predict(once, verbose=0), model.predict(x, verbose=0), rtol=1e-5)

    with tempfile.TemporaryDirectory(prefix="penstock-python-") as folder, warnings.catch_warnings():
        warnings.filterwarnings("error", "Your input ran out of data")
        path = os.path.join(folder, "ds")
        with penstock.Writer(path) as w:
            for record, target in zip(x, y):
                w.append({"x": record, "y": target})
        check(path, "x", "y", (3, STEPS + 6, 2 * STEPS))  # tf.data looks at two batches, and one remains
        check_passes(path, "x", "y")
        labels, weights = np.arange(RECORDS) % 3, {0: 2.0, 2: 0.5}
        ours, plain = made(), made()
        batches = penstock.DataLoader((x, labels), 8, output="numpy", num_workers=0)
        ours.fit(penstock.keras.Data(batches, 0, 1, class_weight=weights), verbose=0)
        plain.fit(x, labels, batch_size=8, shuffle=False, class_weight=weights, verbose=0)
        np.testing.assert_allclose(ours.get_weights()[0], plain.get_weights()[0], rtol=1e-5)
        check((x, y), 0, 1, (STEPS + 2,))
        check([*zip(x, y)], 0, 1, (STEPS + 2,))
        with penstock.DataLoader(path, 8, output="torch" if keras.backend.backend() == "jax" else "jax", num_workers=0) as other:
            try:
                penstock.keras.Data(other, "x")
                raise AssertionError("not refused")
            except ValueError as e:
                assert 'give it output="numpy"' in str(e), e


if __name__ == "__main__":
    program()
