"""Lists of filters as the text of an expression; tests/peers compares the records that they keep with those of pandas."""

import math
import unittest

import numpy as np

from penstock._read import filters


class TestFilters(unittest.TestCase):
    def test_values(self):
        for given, text in [
            (1, "1"), (True, "1"), (np.bool_(True), "1"), (np.uint64(2**64 - 1), str(2**64 - 1)), (np.array(3), "3"), (2**100, str(2**100)),
            (1.0, "1.0"), (np.str_("it's"), "'it''s'"), (np.float32(0.5), "0.5"), (math.nan, "nan"), (-np.float64("inf"), "-inf"),
        ]:  # fmt: skip
            self.assertEqual(filters.to_text([("x`y", "==", given)]), f"`x``y` == {text}")
        self.assertEqual(filters.to_text([["x", "in", {3: 4}.keys()], ("x", "not in", (i for i in range(2)))]), "`x` in (3) and `x` not in (0, 1)")
        self.assertEqual((filters.to_text(None), filters.to_text([]), filters.to_text("x = 1")), ("", "", "x = 1"))

    def test_refused(self):
        for error, words, given in [
            (TypeError, "1j is not a number, nor a text", [("x", "==", 1j)]),
            (TypeError, "None is not a number", [("x", "==", None)]),
            (TypeError, r"\[1\] is not a number", [("x", "==", [1])]),
            (TypeError, r"array\(\[1\]\) is not a number", [("x", "==", np.array([1]))]),
            (TypeError, "datetime64.* is not a number", [("x", "<", np.datetime64("2020-01-01", "ns"))]),
            (TypeError, "None is not a number", [("x", "in", [1, None])]),
            (ValueError, "'in' takes a list", [("x", "in", b"ab")]),
            (ValueError, "there is no comparison '='", [("x", "=", 1)]),
            (ValueError, r"filters is \('x', '==', 1\); it is a list of such: filters=\[", ("x", "==", 1)),
            (ValueError, r"each is \(field, op, value\)", [3]),
            (TypeError, "or a list of", {"x": 1}),
            (TypeError, "or a list of", 3),
        ]:
            with self.subTest(given), self.assertRaisesRegex(error, words):
                filters.to_text(given)


if __name__ == "__main__":
    unittest.main()
