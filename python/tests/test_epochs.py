"""The epochs of all kinds of loaders beside a model of a few lines: loops that end or are left, set_epoch, states, in any order."""

import itertools
import random
import unittest

import numpy as np

import penstock

from .test_loops import data, loader, of

N, SIZE = 1500, 500


class Own:
    """As many records as in the prepared dataset."""

    def __init__(self):
        self.epochs = []

    def __len__(self):
        return N

    def __getitem__(self, i):
        return i

    def set_epoch(self, epoch):
        self.epochs.append(epoch)


def make(kind):
    """Return a loader, and what its batches say of their records."""
    if kind == "prepared":
        return loader("images", SIZE, True, seed=1), lambda b: b.indices.tolist()
    if kind == "records":  # by functions of whole records
        steps = [penstock.functions.Record(lambda x: x, takes=["labels"])]
        return loader("images", SIZE, True, seed=1, transforms=steps, num_workers=0), lambda b: b.indices.tolist()
    given = (np.arange(N),) if kind == "arrays" else Own()
    options = {"num_workers": 1, "persistent_workers": True} if kind == "persistent" else {}
    return penstock.DataLoader(given, SIZE, True, seed=1, output="numpy", **options), lambda b: (b[0] if kind == "arrays" else b).tolist()


class Model:
    """Where a run is."""

    def __init__(self):
        self.at = self.next = (0, 0)
        self.loaded = False

    def say(self, epoch, under_way=False):
        if not (self.loaded and self.at[0] == epoch):
            self.next, self.loaded = (epoch, 0), False
            self.at = self.at if under_way else self.next

    def load(self, at):
        self.at = self.next = at
        self.loaded = True

    def loop(self, batches):
        """Return the first and the last step of a loop that takes some batches, or all."""
        epoch, first = self.next
        last = min(first + batches, N // SIZE)
        self.at, self.next, self.loaded = (epoch, last) if first + batches <= N // SIZE else (epoch + 1, 0), (epoch + 1, 0), False
        return epoch, first, last


class EpochsTest(data.Copied):
    """Programs of what a training script does between batches."""

    def program(self, kind, rng, steps):
        dl, records = make(kind)
        model, saved = Model(), []
        with dl:
            for _ in range(steps):
                what = rng.choice(("loop", "loop", "say", "save", "load", "load"))
                if what == "say":
                    dl.set_epoch(epoch := rng.choice((model.at[0], model.next[0], model.at[0] + 2)))
                    model.say(epoch, kind == "persistent" and model.at[1] > 0 and not model.loaded)
                elif what == "save":
                    saved.append((model.at, dl.state_dict()))
                elif what == "load" and saved:
                    at, state = rng.choice(saved)
                    if rng.random() < 0.3:
                        dl.close()
                        dl, records = make(kind)
                    dl.load_state_dict(state)
                    model.load(at)
                elif what == "loop":
                    said = rng.choice((None, None, 4, 5))
                    epoch, first, last = model.loop(take := rng.choice((1, 2, 9)))
                    got = []
                    for batch in itertools.islice(iter(dl), take):
                        if said is not None and not got:
                            dl.set_epoch(said)
                        got.append(records(batch))
                        if len(got) + first < N // SIZE:
                            self.assertEqual(dl.epoch, epoch, "within the loop")
                    self.assertEqual(got, of(epoch)[first:last])
                    if said is not None and got:
                        model.say(said, kind == "persistent" and model.at[1] > 0)
                self.assertEqual((dl.epoch, dl.step), (model.at[0], model.next[1] if model.loaded else 0), (what, model.__dict__))
                state = dl.state_dict()
                self.assertEqual((state["epoch"] + state.get("finished", False), 0 if state.get("finished") else state["step"]), model.at)
            dl.close()

    def test_programs(self):
        for kind, programs in (("arrays", 25), ("own", 8), ("prepared", 4), ("records", 2), ("persistent", 4)):
            for seed in range(programs):
                with self.subTest(kind, seed=seed):
                    self.program(kind, random.Random(seed), 20)

    def test_an_epoch_that_is_said_goes_to_the_dataset(self):
        given = Own()
        with penstock.DataLoader(given, SIZE, True, seed=1, output="numpy") as dl:
            dl.set_epoch(3)
            self.assertEqual([b.tolist() for b in dl], of(3))
            self.assertEqual(given.epochs, [3])
            for wrong in (-1, 0.5, "1"):
                with self.assertRaisesRegex((TypeError, ValueError), "epoch"):
                    dl.set_epoch(wrong)
            self.assertEqual([b.tolist() for b in dl], of(4))

    def test_an_order_that_the_program_draws_goes_on_after_set_epoch(self):
        """The state has the random numbers of the last loop, whatever epoch was said since."""

        class Sampler:
            def __init__(self):
                self.generator = np.random.default_rng(5)

            def __len__(self):
                return N

            def __iter__(self):
                return iter(self.generator.permutation(N).tolist())

        def made():
            return penstock.DataLoader(Own(), SIZE, sampler=Sampler(), output="numpy")

        one, other = made(), made()
        list(one)
        one.set_epoch(1)
        other.load_state_dict(one.state_dict())
        self.assertEqual(np.concatenate(list(other)).tolist(), np.concatenate(list(one)).tolist())


if __name__ == "__main__":
    unittest.main()
