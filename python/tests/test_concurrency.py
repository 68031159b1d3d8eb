"""Own datasets whose records wait, with several of them under way: as with one at a time."""

import asyncio
import os
import random
import threading
import time
import unittest

import numpy as np

import penstock

WAIT = 0.004


class Waits:
    """Records wait, some longer, and come back in another order."""

    def __init__(self, n=60, fail=()):
        self.n, self.fail = n, set(fail)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(WAIT * (1 + i % 3))
        if i in self.fail:
            raise LookupError(f"no record {i}")
        return np.full(3, i, "f4"), i


class Async(Waits):
    async def __getitem__(self, i):
        await asyncio.sleep(WAIT * (1 + i % 3))
        if i in self.fail:
            raise LookupError(f"no record {i}")
        return np.full(3, i, "f4"), i


class Random(Waits):
    def __getitem__(self, i):
        time.sleep(WAIT * (i % 3))
        return i, penstock.rng().integers(0, 1 << 40, 2), threading.current_thread().name


class Ends(Async):
    async def __getitem__(self, i):
        if i in self.fail:
            raise SystemExit(i)
        return i


class Global(Waits):
    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def __getitem__(self, i):
        return i, self.draw()


def plain(batches):
    return [[np.asarray(x).tolist() for x in b] for b in batches]


class ConcurrencyTest(unittest.TestCase):
    def test_as_one_at_a_time(self):
        for kind in Waits, Async:
            for workers in 0, 2:
                for options in (
                    {"batch_size": 7},
                    {"batch_size": 7, "seed": 3, "shuffle": True},
                    {"batch_size": None},
                    {"batch_size": None, "seed": 3},
                    {"batch_sampler": [[3, 1], [], [59, 0, 4]] if workers == 0 else [[3, 1], [59, 0, 4]]},
                ):
                    with self.subTest(kind=kind, workers=workers, options=options):
                        if [] in options.get("batch_sampler", ()):
                            options = {"batch_sampler": [[3, 1], [59, 0, 4]]}
                        want = plain(penstock.DataLoader(Waits(), num_workers=workers, output="numpy", **options))
                        with penstock.DataLoader(kind(), num_workers=workers, concurrency=8, output="numpy", **options) as loader:
                            self.assertEqual(plain(loader), want)
                            self.assertEqual(len(plain(loader)), len(want))  # a second epoch

    def test_time(self):
        for kind in Waits, Async:
            for workers, batch in (0, 60), (1, 6):
                with penstock.DataLoader(
                    kind(), batch, num_workers=workers, concurrency=30, prefetch_factor=5 if workers else None, output="numpy"
                ) as loader:
                    next(iter(loader))
                    began = time.perf_counter()
                    self.assertEqual(len(list(loader)), 60 // batch)
                    took = time.perf_counter() - began
                self.assertLess(took, 60 * 2 * WAIT, "no faster than one record at a time")

    def test_errors(self):
        for kind in Waits, Async:
            for workers in 0, 1:
                with penstock.DataLoader(kind(fail=[12, 14]), 5, num_workers=workers, concurrency=8, output="numpy") as loader:
                    it = iter(loader)
                    self.assertEqual(plain([next(it), next(it)])[1][1], [5, 6, 7, 8, 9])
                    with self.assertRaisesRegex(LookupError, "no record 12"):
                        next(it)
        with self.assertRaisesRegex(LookupError, r"\(record 12, batch 0\)"):
            list(penstock.DataLoader(Waits(fail=[12]), 60, num_workers=1, concurrency=8, seed=1, output="numpy"))
        with self.assertRaisesRegex(SystemExit, "12"):  # which would end the event loop
            list(penstock.DataLoader(Ends(fail=[12]), 5, concurrency=8, output="numpy"))
        with self.assertRaisesRegex(ValueError, "concurrency is for own datasets that are indexed"):
            penstock.DataLoader(iter([1, 2]), 2, concurrency=2, output="numpy")
        with self.assertRaisesRegex(ValueError, "leave concurrency out"):
            penstock.DataLoader(os.devnull, 2, concurrency=2, output="numpy")

    def test_random_numbers(self):
        """Of a record, in any thread, on any number of workers, and after a resume; others in another epoch."""
        for seed in None, 5:
            runs = []
            for workers, concurrency in (0, 2), (2, 9), (1, 16), (0, 1), (2, 1):
                if seed is None and concurrency != 9:
                    continue
                with penstock.DataLoader(
                    Random(), 4, num_workers=workers, concurrency=concurrency, seed=seed, shuffle=True, output="numpy"
                ) as loader:
                    it = iter(loader)
                    first = [next(it) for _ in range(5)]
                    state = loader.state_dict()
                    rest = list(it)
                    again = list(loader)
                with penstock.DataLoader(Random(), 4, num_workers=workers, concurrency=3, seed=seed, shuffle=True, output="numpy") as loader:
                    loader.load_state_dict(state)
                    self.assertEqual([x[:2] for x in plain(b[:2] for b in loader)], plain(b[:2] for b in rest))
                numbers = {int(i): tuple(x) for b in first + rest for i, x in zip(b[0], b[1].tolist())}
                self.assertEqual(len(set(numbers.values())), 60)
                self.assertFalse(set(numbers.values()) & {tuple(x) for b in again for x in b[1].tolist()})
                self.assertEqual(len({name for b in rest for name in b[2]}) > 1, concurrency > 1)
                runs.append(numbers)
            self.assertEqual(runs, [runs[0]] * len(runs))
        with self.assertRaisesRegex(penstock.Error, r"penstock.rng\(\) is for"):
            penstock.rng()

    def test_global_generators(self):
        for draw in random.random, np.random.rand:
            for workers in 0, 1:
                with penstock.DataLoader(Global(draw), 8, num_workers=workers, concurrency=4, output="numpy") as loader:
                    with self.assertRaisesRegex(penstock.Error, r"take penstock.rng\(\)"):
                        list(loader)

    def test_stop(self):
        """A loop that ends early leaves no process that waits, and a fork has threads of its own."""
        with penstock.DataLoader(Waits(), 4, num_workers=1, concurrency=4, persistent_workers=True, output="numpy") as loader:
            for _ in range(3):
                self.assertEqual(plain([next(iter(loader))])[0][1], [0, 1, 2, 3])
        loader = penstock.DataLoader(Waits(), 20, concurrency=4, output="numpy")
        it = iter(loader)
        next(it)
        if (pid := os.fork()) == 0:
            os._exit(0 if next(it)[1].tolist() == list(range(20, 40)) else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(next(it)[1].tolist(), list(range(20, 40)))


if __name__ == "__main__":
    unittest.main()
