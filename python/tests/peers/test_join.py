"""Joins against merge of pandas: random keys of numbers, strings and labels."""

import math
import os
import random
import shutil
import tempfile
import unittest

import numpy as np
import pandas as pd

import penstock
from tests import data
from tests.peers import cases

WORDS = [a + b for a in ("", "a", "b", "ä") for b in ("", "x", "yy", "z z", "0", "00")]


class Joins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["PENSTOCK_FEED"], os.environ["PENSTOCK_PREPROCESS"] = data.feed(), data.preprocess()

    @cases(20)
    def test_as_pandas(self, rng: random.Random) -> None:
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        many, how, kind = rng.random() < 0.5, rng.choice(("inner", "left")), rng.choice(("int", "float", "text", "label"))
        words = {"int": [3 * i - 20 for i in range(24)], "float": [*(1.5 * i - 9 for i in range(22)), math.nan, math.inf]}.get(kind) or sorted(WORDS)
        right = pd.DataFrame({"k": rng.sample(words, rng.randrange(1, 20))})
        chosen = [rng.choice(words) for _ in range(rng.randrange(1, 50))] if many else rng.sample(words, rng.randrange(1, 20))
        left = pd.DataFrame({"k": chosen})
        left["x"], right["y"] = np.arange(len(left)), np.arange(len(right)) * 1.5
        right["note"] = [rng.choice(WORDS) for _ in range(len(right))]
        types = {
            "int": (rng.choice(("int8", "int32", "int64")), rng.choice(("int16", "int64"))),
            "float": (rng.choice(("float16", "float32", "float64")), rng.choice(("float16", "float32", "float64"))),
            "text": ("text", "text"),
            "label": ("label", rng.choice(("text", "label"))),
        }
        sides = [self.dataset(os.path.join(folder, name), frame, t, rng) for name, frame, t in zip("lr", (left, right), types[kind])]
        fill = {"y": -1, "note": "none"} if how == "left" else None
        view = sides[0].join(sides[1], on="k", how=how, many=many, fill=fill)
        want = left.merge(right, on="k", how=how, validate="m:1" if many else "1:1").fillna(fill or {})
        self.assertEqual(view["x"].numpy().tolist(), want["x"].tolist())
        self.assertEqual(view["y"].numpy().tolist(), want["y"].tolist())
        self.assertEqual(list(view["note"][:]), want["note"].tolist())
        both = left.merge(right, on="k", how="outer", indicator=True)
        self.assertEqual(view.unmatched[0].tolist(), sorted(both["x"][both["_merge"] == "left_only"].astype(int)))
        self.assertEqual(sorted(right["y"][view.unmatched[1]]), sorted(both["y"][both["_merge"] == "right_only"]))

    def test_duplicates(self) -> None:
        """Keys that a side has twice are refused, as by validate= of pandas, NaN too; and 2**53 + 1 is not 2**53."""
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for n, (keys, kind, refused) in enumerate([
            ([2**53, 2**53 + 1], "int64", None), ([3, 3], "uint64", "the same k, 3"), ([math.nan, math.nan], "float32", "the same k, NaN"),
            ([0.0, -0.0], "float64", "the same k, 0"), ([True, True], "bool", "the same k, true"),
        ]):  # fmt: skip
            right = pd.DataFrame({"k": keys, "y": [1.0, 2.0]})
            sides = [self.dataset(os.path.join(folder, f"{side}{n}"), right.rename(columns={"y": side}), kind, None) for side in "zy"]
            with self.subTest(kind, keys=keys):
                merged = lambda right=right: right.rename(columns={"y": "z"}).merge(right, on="k", validate="1:1")  # noqa: E731
                if refused is None:
                    self.assertEqual(sides[0].join(sides[1], on="k")["y"].numpy().tolist(), merged()["y"].tolist())
                    continue
                with self.assertRaisesRegex(penstock.Error, refused):
                    sides[0].join(sides[1], on="k")
                with self.assertRaises(pd.errors.MergeError):
                    merged()

    def dataset(self, path, frame, kind, rng):
        """Write a table, with its key as one of several types."""
        classes = tuple(rng.sample(WORDS, len(WORDS))) if rng else ()
        key = {
            "text": penstock.Field("k", "uint8", ragged=True, content="utf-8"),
            "label": penstock.Field("k", "int64", classes=classes),
        }.get(kind) or penstock.Field("k", kind)
        others = {
            "x": penstock.Field("x", "int64"),
            "y": penstock.Field("y", "float64"),
            "z": penstock.Field("z", "float64"),
            "note": penstock.Field("note", "uint8", ragged=True, content="utf-8"),
        }
        with penstock.Writer(path, [key, *(others[name] for name in frame.columns[1:])]) as w:
            w.extend(dict(zip(frame.columns, row)) for row in frame.itertuples(index=False))
        return penstock.open(path)


if __name__ == "__main__":
    unittest.main()
