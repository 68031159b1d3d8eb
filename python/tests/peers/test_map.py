"""penstock.map over Series of pandas: by position, as iteration gives them."""

import os
import random
import shutil
import tempfile
import unittest

import pandas as pd

import penstock
from tests import data
from tests.peers import cases


class Series(unittest.TestCase):
    @cases(20)
    def test_by_position(self, rng: random.Random) -> None:
        os.environ["PENSTOCK_PREPROCESS"] = data.preprocess()
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        self.addCleanup(shutil.rmtree, folder)
        n = rng.randrange(1, 60)
        series = pd.DataFrame({"x": rng.sample(range(1000), n)}).sample(frac=rng.choice((0.5, 1)), random_state=rng.randrange(99))["x"]
        series = series if len(series) else pd.Series([1], index=[7])
        inputs = rng.choice((series, series.index, series.array, series.astype(str)))
        penstock.map(record, inputs, os.path.join(folder, "ds"), workers=0)
        self.assertEqual(penstock.open(os.path.join(folder, "ds"))["x"][:].tolist(), [int(x) for x in inputs])
        with self.assertRaisesRegex(TypeError, "a table of pandas"):
            penstock.map(record, pd.DataFrame({"x": [1]}), os.path.join(folder, "no"), workers=0)


def record(x):
    return {"x": int(x)}


if __name__ == "__main__":
    unittest.main()
