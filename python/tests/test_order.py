import unittest

import numpy as np

import penstock
from penstock import order

from .model import order as model

SEEDS = (0, 42, (1 << 64) - 1)


class OrderTest(unittest.TestCase):
    """Beside the model of orders, in tests.model, which the engine is compared with, too."""

    def test_is_the_models(self):
        for n in (1, 2, 17, 4096, 4097, 5000):
            for seed in SEEDS:
                for epoch in (0, 1, 1 << 40):
                    for run in (1, 256):
                        self.assertEqual(order.shuffle(n, seed, epoch, run)[:].tolist(), model.block(run, n, seed, epoch), (n, seed, epoch, run))

    def test_of_many_records_is_the_models(self):
        for n in (65536, 1_000_003, 1_000_000_000, 1 << 40):
            for seed in SEEDS:
                image, places = model.feistel(n, seed, 3), [0, 1, n // 2, n - 2, n - 1]
                self.assertEqual(order.shuffle(n, seed, 3)[places].tolist(), [image(x) for x in places], (n, seed))

    def test_is_a_permutation(self):
        for n in (0, 1, 2, 3, 4095, 4096, 4097, 4098, 4225, 65537, 100_003):
            for run in (1, 7, 64, 200_000):
                p = order.shuffle(n, 3, 4, run)
                self.assertEqual(np.sort(np.asarray(p)).tolist(), list(range(n)), (n, run))

    def test_indexing_is_that_of_an_array(self):
        for n in (10, 5000):
            p = order.shuffle(n, 1, 1)
            a = np.asarray(p)
            self.assertEqual(list(p), a.tolist())
            for key in (slice(3, 9), slice(None, None, -3), slice(-4, None), slice(7, 2), [2, 2, -1], np.array([0, n - 1], np.uint64), []):
                np.testing.assert_array_equal(p[key], a[key if len(np.atleast_1d(key)) else slice(0, 0)] if not isinstance(key, slice) else a[key])
            self.assertIsInstance(p[3], int)
            self.assertEqual(p[-n], a[0])
            for key in (n, -n - 1, [0, n]):
                with self.assertRaises(IndexError):
                    p[key]
            with self.assertRaises(TypeError):
                p[[0.5]]

    def test_what_cannot_be(self):
        for n, seed in ((-1, 0), (1 << 62, 0), (5, -1), (5, 1 << 64)):
            with self.assertRaises(ValueError):
                order.shuffle(n, seed, 0)


class PartsTest(unittest.TestCase):
    def test_are_the_models(self):
        for n, count, batch, run in ((1, 1, 1, 1), (1000, 7, 70, 1), (1000, 7, 7, 16), (5003, 16, 4096, 1), (20, 19, 38, 1), (64, 4, 16, 3)):
            for seed in SEEDS:
                wanted = {"kind": "regions", "count": count, "inner": {"kind": "block", "size": run}}
                p = order.regions(n, seed, 4, count, batch, run)
                self.assertEqual(p[:].tolist(), model.epoch_of(wanted, n, seed, 4, batch))
                self.assertEqual([p[i] for i in range(n)], p[:].tolist())
        for n, seed, start, stop in ((10, 0, 0, 0.25), (1001, 8, 0.3, 0.9), (5001, 7, 0.5, 1)):
            wanted = {"kind": "split", "start": start, "stop": stop, "seed": seed}
            self.assertEqual(order.split(n, seed, start, stop)[:].tolist(), model.epoch_of(wanted, n, 0, 0, 1))

    def test_what_cannot_be(self):
        for n, count, batch in ((10, 0, 4), (10, 11, 22), (10, 4, 3), (10, 4, 6)):
            with self.assertRaises(ValueError):
                order.regions(n, 0, 0, count, batch)
        for start, stop in ((-0.1, 1), (0.5, 0.5), (0, 1.1), (0.5, 0.50001)):
            with self.assertRaises(ValueError):
                order.split(10, 0, start, stop)


class BatchesTest(unittest.TestCase):
    def test_are_the_models(self):
        for n in (24, 25, 29, 3):
            for world in (1, 2, 3):
                for rank in range(world):
                    for drop in (False, True):
                        b = order.Batches(n, 4, 5, drop_last=drop, rank=rank, world_size=world)
                        b.set_epoch(6)
                        want = [records for records, _ in model.steps_of(model.permutation(n, 5, 6), 4, rank, world, drop)]
                        self.assertEqual([x.tolist() for x in b], want, (n, world, rank, drop))
                        self.assertEqual(len(b), len(want))

    def test_last_one_can_be_left_out(self):
        b = order.Batches(1000, 64, drop_last=True, shuffle=False)
        self.assertEqual(np.concatenate(list(b)).tolist(), list(range(960)))
        self.assertEqual(len(b), 15)

    def test_go_on_where_they_were(self):
        b = order.Batches(1000, 64, seed=9)
        b.set_epoch(3)
        whole = list(b)
        b.set_epoch(3, step=11)
        self.assertEqual(len(b), len(whole) - 11)
        for x, y in zip(b, whole[11:]):
            np.testing.assert_array_equal(x, y)

    def test_a_step_beyond_the_epoch(self):
        batches = penstock.order.Batches(100, 30)
        batches.set_epoch(3, 4)
        self.assertEqual((len(batches), list(batches)), (0, []))
        for step in (5, -1):
            with self.assertRaisesRegex(ValueError, f"step is {step}; an epoch has 4 batches"):
                batches.set_epoch(3, step)

    def test_what_cannot_be(self):
        for kwargs in ({"batch_size": 0}, {"batch_size": 1, "rank": 1}, {"batch_size": 1, "rank": -1, "world_size": 2}):
            with self.assertRaises(ValueError):
                order.Batches(10, **kwargs)
