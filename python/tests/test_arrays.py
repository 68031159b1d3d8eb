"""DataLoaders over arrays in memory; tests/peers compares them with torch's."""

import collections
import copy
import gc
import importlib.util
import pickle
import unittest

import numpy as np

import penstock
from penstock._code.arrays import columns
from penstock._code.gather import _MAX_BUFFERS

try:
    import torch
except ImportError:
    torch = None

X, Y = np.arange(206.0).reshape(103, 2), np.arange(103)


def loader(dataset=(X, Y), batch_size=10, **options):
    return penstock.DataLoader(dataset, batch_size, output="numpy", **options)


def rows(batches):
    return [y for _, labels in batches for y in labels.tolist()]


class Kinds(unittest.TestCase):
    def test_what_batches_are(self):
        Pair = collections.namedtuple("Pair", "x y")
        for dataset, kind in (((X, Y), list), (Pair(X, Y), Pair)):
            (first, *_, last) = loader(dataset)
            self.assertIs(type(first), kind)
            self.assertEqual((first[0].tolist(), last[1].tolist()), (X[:10].tolist(), [100, 101, 102]))
        first = next(iter(loader({"x": X, 3: Y})))
        self.assertEqual({name: v.tolist() for name, v in first.items()}, {"x": X[:10].tolist(), 3: list(range(10))})
        first = next(iter(loader(X)))
        self.assertEqual((type(first), first.tolist()), (np.ndarray, X[:10].tolist()))
        self.assertEqual([len(loader(X, 10, drop_last=d)) for d in (False, True)], [11, 10])

    def test_what_is_not_arrays_alone(self):
        for dataset in (
            [X, Y],
            (X, [1, 2]),
            {},
            (),
            np.array(3),
            np.array(["a"]),
            np.array([None]),
            np.zeros(3, ">f8"),
            np.zeros(3, "M8[s]"),
            "x",
        ):
            self.assertIsNone(columns(dataset))
        self.assertEqual([b.tolist() for b in loader([3, 1, 2], 2)], [[3, 1], [2]])  # a list is a dataset of its items

    def test_different_lengths(self):
        """Two arrays would be the two samples of a dataset, and with one length more or less its columns."""
        for dataset in ((X, Y[:5]), {"x": X, "y": Y[:5]}):
            with self.assertRaisesRegex(
                ValueError, rf"arrays of {len(X)}, 5 records; give arrays of one length, or, if each array is a sample, a list"
            ):
                loader(dataset, 1)

    def test_layouts(self):
        wide = np.arange(60).reshape(10, 6)
        for a in (wide[:, ::2], wide[::-1], np.asfortranarray(wide), wide.T[:6], wide[:, :0], np.broadcast_to(np.arange(3), (10, 3))):
            got = np.concatenate(list(loader(a, 4, seed=3, shuffle=True)))
            order = penstock.order.shuffle(len(a), 3, 0)[:]
            self.assertEqual(got.tolist(), a[order].tolist())

    def test_options_of_prepared_datasets(self):
        for name, value in (
            ("transforms", []),
            ("filters", [("x", "==", 1)]),
            ("pack", penstock.Pack(3)),
            ("verify", "first"),
            ("cache_dir", "x"),
            ("batch_transforms", []),
        ):
            with self.assertRaisesRegex(ValueError, f"^{name} is for the path of a dataset"):
                loader(**{name: value})
        with self.assertRaisesRegex(ValueError, "fields is for the path of a dataset"):
            loader(fields=["x"])
        with self.assertRaisesRegex(ValueError, "output is 'np'"):
            penstock.DataLoader((X, Y), output="np")
        with self.assertRaisesRegex(ValueError, "device is for output="):
            loader(device="cuda")


class Order(unittest.TestCase):
    def test_without_a_seed(self):
        self.assertEqual(rows(loader(shuffle=True)), rows(loader(shuffle=True, seed=0)))
        drawn = [rows(loader(shuffle=True, generator=np.random.default_rng(k))) for k in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def test_of_a_sampler(self):
        for order in (range(102, -1, -1), [5, -1, 7], np.array([3, 3])):
            want = [i % 103 for i in order]
            self.assertEqual(rows(loader(sampler=order)), want)
            self.assertEqual(rows(loader(sampler=order, drop_last=True)), want[: len(want) // 10 * 10])
        self.assertEqual([y.tolist() for _, y in loader(batch_size=1, batch_sampler=[[1, 2], np.array([3]), (4, -1)])], [[1, 2], [3], [4, 102]])
        self.assertEqual(rows(loader(sampler=(i for i in (3, 4)))), [3, 4])
        self.assertEqual([y.tolist() for _, y in loader(batch_size=1, batch_sampler=[[slice(0, 2), slice(5, 7)]])], [[[0, 1], [5, 6]]])
        with self.assertRaisesRegex(IndexError, "index 103 is out of bounds for 103 records"):
            rows(loader(sampler=[1, 103]))
        self.assertEqual([rows(loader(sampler=[5, 9, 7, 6], batch_size=1, rank=r, world_size=2, seed=1)) for r in (0, 1)], [[5, 7], [9, 6]])
        half = penstock.samplers.Subset(ranges=[(0, 50)], inner=penstock.samplers.Shuffle())
        whole, dl = rows(loader(sampler=half, seed=4)), loader(sampler=half, seed=4)
        self.assertEqual(sorted(whole), list(range(50)))
        for _, _ in zip(range(2), dl):
            state = dl.state_dict()
        again = loader(sampler=half, seed=4)
        again.load_state_dict(state)
        self.assertEqual(rows(again), whole[20:])
        with self.assertRaisesRegex(ValueError, "seed= with batch_sampler"):
            loader(batch_size=1, batch_sampler=[[1, 2]], seed=1)

    @unittest.skipIf(importlib.util.find_spec("jax") is None, "no jax")
    def test_jax(self):
        import jax

        batches = list(penstock.DataLoader({"x": X.astype(np.float32), "y": Y.astype(np.int32)}, 10, output="jax"))
        self.assertTrue(all(isinstance(v, jax.Array) for b in batches for v in b.values()))
        self.assertEqual([i for b in batches for i in b["y"].tolist()], list(range(103)))


class State(unittest.TestCase):
    def test_of_another_run(self):
        state = loader(seed=3, shuffle=True).state_dict()
        for options, what in (
            ({"seed": 4, "shuffle": True}, "seed 3, and this one has 4"),
            ({"seed": 3}, "sampler 'Shuffle of 103"),
            ({"seed": 3, "batch_size": 9, "shuffle": True}, "global_batch 10"),
        ):
            with self.assertRaisesRegex(penstock.Error, f"the state is of a DataLoader with {what}"):
                loader(**options).load_state_dict(state)
        loader(seed=3, shuffle=True, batch_size=5, rank=1, world_size=2).load_state_dict(state)
        for wrong, kind in (({"what": 1}, ValueError), ("x", penstock.Error), ({**state, "step": 99}, ValueError)):
            with self.assertRaises(kind):
                loader(seed=3, shuffle=True).load_state_dict(wrong)

    def test_of_a_sampler_with_a_state(self):
        class Counting:
            def __init__(self):
                self.at = 0

            def __iter__(self):
                while self.at < 103:
                    self.at += 1
                    yield self.at - 1
                self.at = 0

            def __len__(self):
                return 103

        dl = loader(sampler=Counting())
        batches = iter(dl)
        got = rows([next(batches), next(batches)])
        again = loader(sampler=Counting())
        again.load_state_dict(dl.state_dict())  # without a state of its own, what was yielded is passed over
        self.assertEqual(got + rows(again), list(range(103)))


class Memory(unittest.TestCase):
    def test_batches_that_are_kept(self):
        for output in ("numpy", "torch") if torch else ("numpy",):
            for n, size in ((5000, 3), (5000, 300)):
                data = np.random.default_rng(1).integers(0, 1 << 60, (n, 40))
                dl = penstock.DataLoader(data, size, shuffle=True, seed=1, output=output)
                order = penstock.order.shuffle(n, 1, 0)[:]
                kept = list(dl)
                views = [b[:2].reshape(-1) for b in kept[::2]]
                del kept[::2]
                gc.collect()
                for epoch in range(1, 3):
                    for b in dl:
                        del b
                for k, b in enumerate(kept):
                    at = (2 * k + 1) * size
                    self.assertTrue((np.asarray(b) == data[order[at : at + size]]).all())
                for k, b in enumerate(views):
                    self.assertTrue((np.asarray(b) == data[order[2 * k * size : 2 * k * size + 2]].reshape(-1)).all())

    def test_memory_is_used_again(self):
        data = np.zeros((4000, 1000), np.uint8)
        dl = loader(data, 100, shuffle=True, seed=1)
        for _ in range(3):
            for b in dl:
                b[:] = 1  # it is the loop's
        self.assertEqual(data.max(), 0)
        stats = dl.stats()
        self.assertLessEqual(stats["buffers"], 3)
        self.assertEqual((stats["unpooled"], stats["batches"]), (0, 120))
        kept = [b for _ in range(3) for b in dl]
        self.assertLessEqual(dl.stats()["buffers"], _MAX_BUFFERS)
        self.assertGreater(dl.stats()["unpooled"], 0)
        self.assertEqual(len(kept), 120)
        self.assertIn("gathered", dl.diagnose())
        dl.close()
        self.assertEqual(len(list(dl)), 40)

    def test_copies(self):
        dl = loader(seed=3, shuffle=True)
        next(iter(dl))
        for again in (copy.copy(dl), copy.deepcopy(dl), pickle.loads(pickle.dumps(dl))):
            self.assertEqual(again.state_dict(), dl.state_dict())


class Attributes(unittest.TestCase):
    def test_they_are_those_of_the_parameters(self):
        dl = loader(seed=3, shuffle=True, drop_last=True)
        self.assertEqual(
            (dl.batch_size, dl.drop_last, dl.num_workers, dl.seed, dl.rank, dl.world_size, dl.shuffle, dl.records), (10, True, 0, 3, 0, 1, True, 103)
        )
        for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset", "persistent_workers"):
            with self.assertRaises(ValueError) as raised:
                setattr(dl, name, 3)
            self.assertEqual(str(raised.exception), f"{name} attribute should not be set after DataLoader is initialized")
        dl.timeout = 3
        self.assertEqual((dl.timeout, len(list(dl))), (3, 10))
        with self.assertRaisesRegex(TypeError, "has no items"):
            dl[0]
        self.assertIn("DataLoader of a tuple", repr(dl))

    def test_refusals_of_python(self):
        with self.assertRaisesRegex(ValueError, "collate_fn of a DataLoader over arrays cannot be set"):
            loader().collate_fn = len
        with self.assertRaisesRegex(ValueError, "on_error is 'blank'"):
            loader(on_error="blank")

    def test_a_subclass(self):
        class Mine(penstock.DataLoader):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, output="numpy", **options)
                self.mine = 3

        dl = Mine(X, 10, seed=1, shuffle=True)
        self.assertEqual((type(dl).__name__, dl.mine, len(list(dl))), ("Mine", 3, 11))
        again = copy.copy(dl)
        self.assertEqual((type(again), again.mine, [b.tolist() for b in again]), (Mine, 3, [b.tolist() for b in dl]))


if __name__ == "__main__":
    unittest.main()
