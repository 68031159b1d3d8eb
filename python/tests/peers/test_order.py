"""penstock.order against torch's samplers over the same records."""

import random
import unittest

from torch.utils.data import BatchSampler

from penstock import order
from tests.peers import cases


class Batches(unittest.TestCase):
    @cases(200)
    def test_as_batch_sampler(self, rng: random.Random) -> None:
        n, size, drop = rng.randrange(1, 300), rng.randrange(1, 40), rng.random() < 0.5
        seed, epoch = rng.randrange(1 << 32), rng.randrange(5)
        shuffled = [int(i) for i in order.shuffle(n, seed, epoch)]
        self.assertEqual(sorted(shuffled), list(range(n)))
        batches = order.Batches(n, size, seed, drop_last=drop)
        batches.set_epoch(epoch)
        self.assertEqual([list(map(int, b)) for b in batches], list(BatchSampler(shuffled, size, drop)))
