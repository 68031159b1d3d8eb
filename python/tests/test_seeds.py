"""Random numbers of the user's code: who draws is noticed, states are those of the generators, and seeds differ where they should."""

import itertools
import random
import unittest

import numpy as np

from penstock._code import randomness


class SeedsTest(unittest.TestCase):
    """The generators of random and numpy.random, whose memory is looked at."""

    def setUp(self):
        self.addCleanup(randomness.restore, randomness.state())

    def test_the_memory_is_found(self):
        self.assertEqual([g.words.found for g in randomness.generators()[:2]], [True, True])

    def test_who_draws(self):
        draws = (lambda: random.getrandbits(32), lambda: np.random.randint(1 << 32, dtype=np.uint32))
        for (which, draw), n in itertools.product(enumerate(draws), (0, 1, 2, 623, 624, 625, 1248)):
            with self.subTest(which=which, draws=n):
                seeds = randomness.Seeds()
                seeds.all(n)
                for _ in range(n):
                    draw()
                self.assertEqual(seeds.drawn(), n > 0)
                self.assertFalse(seeds.drawn())
                self.assertFalse(seeds.certain)
                draws[1 - which]()
                self.assertTrue(seeds.drawn())
                self.assertEqual(seeds.certain, n > 0)
                seeds.next(7)  # both are seeded now, if they are drawn from
                got = random.random(), np.random.rand()
                seeds.all(7)
                want = random.random(), np.random.rand()
                self.assertEqual([g for k, g in enumerate(got) if n or k != which], [w for k, w in enumerate(want) if n or k != which])

    def test_states(self):
        rng = random.Random(3)
        changes = (
            lambda k: random.seed(k), lambda k: random.random(), lambda k: random.gauss(0, 1), lambda k: np.random.seed(k),
            lambda k: np.random.rand(k), lambda k: np.random.randn(), lambda k: randomness.seed_random(k),
        )  # fmt: skip
        before = randomness.state()
        for k in range(400):
            rng.choice(changes)(k % 5)
            python, numpy, _ = now = randomness.state()
            self.assertEqual(python, random.getstate())
            name, keys, *rest = np.random.get_state()
            self.assertEqual(numpy, (name, keys.tobytes(), *rest))
            if k % 7 == 0:
                randomness.restore(before)
                self.assertEqual(randomness.state(), before)
                before = now

    def test_seeds_differ(self):
        places = (0, 1, 1 << 16, randomness.OF_BATCH, randomness.OF_OTHER, randomness.OF_WORKER)
        made = [
            randomness.record_seed(seed, epoch, record, position, place=place)
            for seed, epoch, record, position, place in itertools.product((0, 1, 2, 10), range(3), range(3), (None, 0, 1), places)
        ]
        self.assertEqual(len(set(made)), len(made))
        workers = [randomness.worker_seed(seed, epoch, rank) for seed, epoch, rank in itertools.product((0, 1, 2, 10), range(3), range(3))]
        self.assertEqual(len(set(workers)), len(workers))
        self.assertLess(max(workers), 1 << 63)  # as torch's generators take it


if __name__ == "__main__":
    unittest.main()
