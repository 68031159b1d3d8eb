import multiprocessing
import unittest

import numpy as np

from penstock._engine.signature import Signature, is_iterable


class Stream:
    def __iter__(self):
        return iter(range(3))


class Refused(unittest.TestCase):
    """The words are torch's; tests/peers compares them with torch itself."""

    def test_words(self):
        exclusive = "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        for options, text in (
            ({"num_workers": -1}, "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."),
            ({"timeout": -1}, "timeout option should be non-negative"),
            (
                {"prefetch_factor": 2},
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, "
                "otherwise set prefetch_factor to None.",
            ),
            ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor option should be non-negative"),
            ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
            (
                {"multiprocessing_context": "fork"},
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers=0",
            ),
            ({"shuffle": True, "sampler": [1]}, "sampler option is mutually exclusive with shuffle"),
            ({"batch_sampler": [[1]], "batch_size": 2}, exclusive),
            ({"batch_sampler": [[1]], "batch_size": None}, exclusive),
            ({"batch_sampler": [[1]], "shuffle": True}, exclusive),
            ({"batch_sampler": [[1]], "sampler": [1]}, exclusive),
            ({"batch_sampler": [[1]], "drop_last": True}, exclusive),
            ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"),
            ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
            ({"batch_size": True}, "batch_size should be a positive integer value, but got batch_size=True"),
            ({"batch_size": 2.0}, "batch_size should be a positive integer value, but got batch_size=2.0"),
            ({"drop_last": 1}, "drop_last should be a boolean value, but got drop_last=1"),
        ):
            with self.subTest(options), self.assertRaises(ValueError) as raised:
                Signature.of({"dataset": [1, 2], **options})
            self.assertEqual(str(raised.exception), text)
        with self.assertRaisesRegex(ValueError, "should specify a valid start method in .*, but got multiprocessing_context='no'$"):
            Signature.of({"dataset": [1], "num_workers": 1, "multiprocessing_context": "no"})
        with self.assertRaisesRegex(TypeError, "a valid context object or a string specifying the start method, but got multiprocessing_context=3$"):
            Signature.of({"dataset": [1], "num_workers": 1, "multiprocessing_context": 3})
        for options in ({"num_workers": "2"}, {"num_workers": 1.5}, {"num_workers": 1, "prefetch_factor": "2"}):
            with self.subTest(options), self.assertRaises(TypeError):
                Signature.of({"dataset": [1], **options})

    def test_an_order_of_what_is_iterated_over(self):
        for name, value in (("shuffle", True), ("sampler", [1]), ("batch_sampler", [[1]])):
            with self.assertRaises(ValueError) as raised:
                Signature.of({"dataset": Stream(), name: value})
            self.assertEqual(str(raised.exception), f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")
        for shuffle in (False, None, 0):
            self.assertFalse(Signature.of({"dataset": Stream(), "shuffle": shuffle}).shuffle)


class Taken(unittest.TestCase):
    def test_defaults(self):
        self.assertEqual(Signature.of({"dataset": None}), Signature(None))
        s = Signature.of({"dataset": None, "num_workers": None})
        self.assertEqual((s.num_workers, s.prefetch_factor, s.batched), (None, None, True))
        self.assertEqual(Signature.of({"dataset": None, "num_workers": None, "prefetch_factor": 4, "persistent_workers": True}).prefetch_factor, 4)
        with self.assertRaisesRegex(ValueError, "persistent_workers option needs"):
            Signature.of({"dataset": None, "num_workers": None, "persistent_workers": True}, found=0)

    def test_what_torch_changes(self):
        s = Signature.of({"dataset": [1], "batch_sampler": [[0]], "num_workers": np.int64(2), "shuffle": "", "multiprocessing_context": "spawn"})
        self.assertEqual((s.batch_size, s.drop_last, s.shuffle, s.prefetch_factor, s.batched), (None, False, False, 2, True))
        self.assertIsInstance(s.multiprocessing_context, multiprocessing.context.BaseContext)
        self.assertFalse(Signature.of({"dataset": [1], "batch_size": None}).batched)
        self.assertTrue(Signature.of({"dataset": [1], "shuffle": "yes"}).shuffle)
        self.assertEqual(Signature.of({"dataset": [1], "batch_size": np.int64(2)}).batch_size, 2)

    def test_what_is_iterated_over(self):
        for dataset in (Stream(), iter([1]), {1, 2}, (x for x in "ab")):
            self.assertTrue(is_iterable(dataset), dataset)
        for dataset in ([1], {0: 1}, np.zeros(3), "ab", range(3), object()):
            self.assertFalse(is_iterable(dataset), dataset)
