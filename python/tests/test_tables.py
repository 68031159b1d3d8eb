"""Tables and frames beside the libraries that wrote them: json, pandas, polars, pyarrow."""

import json
import os
import random

import numpy as np

from . import data
from .test_trees import Trees

setUpModule = data.name_programs

WORDS = ["a", "x, y", 'say "hi"', "\n", "é", "日本", "\\", "}", "[{", "1.5.2", "</s>", " lead", "😀"]


class ArraysOfObjects(Trees):
    def rows(self, r):
        """Make records as instructions and conversations have them."""
        return [
            {
                "id": f"r{i}",
                "n": r.randrange(-9, 9),
                "score": r.choice([0.5, 2.25, -1.0]),
                "text": r.choice(WORDS),
                "conversations": [{"from": r.choice(["human", "gpt"]), "value": r.choice(WORDS)} for _ in range(r.randrange(1, 4))],
                "meta": {"source": r.choice(WORDS), "size": [r.randrange(9), i]},
            }
            for i in range(r.randrange(1, 9))
        ]

    def test_as_json(self):
        for seed in range(6):
            r = random.Random(seed)
            rows = self.rows(r)
            path = os.path.join(self.folder, f"{seed}.json")
            ascii = r.random() < 0.5
            with open(path, "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=r.choice([None, 0, 2, "\t"]), ensure_ascii=ascii)
            want = [
                {
                    "id": row["id"],
                    "n": np.int64(row["n"]),
                    "score": np.float32(row["score"]),
                    "text": row["text"],
                    "conversations": json.dumps(row["conversations"], ensure_ascii=ascii),
                    "meta_source": row["meta"]["source"],
                    "meta_size": np.array(row["meta"]["size"]),
                }
                for row in rows
            ]
            with self.subTest(seed=seed):
                self.same(path, want)
