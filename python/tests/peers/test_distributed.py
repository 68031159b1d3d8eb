"""torch's DistributedSampler as the sampler of a penstock.DataLoader, compared with torch's own DataLoader.

test_torch_loader has prepared datasets.
"""

import os
import random
import tempfile
import unittest

import torch
from torch.utils import data as tud

import penstock
from tests import data
from tests.peers import cases


class Noisy(tud.Dataset):
    """Records with random numbers of the worker, or of this process."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i, torch.rand(2)


def dataset_of(rng, n):
    kind = rng.choice(("own", "own", "arrays", "subset"))
    if kind == "own":
        return Noisy(n)
    if kind == "arrays":
        return tud.TensorDataset(torch.arange(n), torch.arange(2 * n).reshape(n, 2) / 3)
    return tud.Subset(Noisy(n + 5), rng.sample(range(n + 5), n))


def epochs(module, ds, ranks, program):
    """Return the batches of each rank in some epochs."""
    out = []
    for rank in range(ranks):
        sampler = tud.DistributedSampler(ds, ranks, rank, **program["sampler"])
        torch.manual_seed(program["torch"])
        loader = module.DataLoader(ds, sampler=sampler, **program["options"])
        part = [len(loader)]
        for epoch in program["epochs"]:
            if epoch is not None:
                sampler.set_epoch(epoch)
            part.append([tuple(x.clone() for x in batch) for batch in loader])
        out.append(part)
    return out


class Distributed(unittest.TestCase):
    @cases(6)
    def test_without_a_seed_as_torch(self, rng: random.Random) -> None:
        n, ranks = rng.choice((1, 3, 10, 31)), rng.randint(1, 4)
        workers = rng.choice((0, 0, 1, 2))
        options = {"batch_size": rng.randint(1, 5), "drop_last": rng.random() < 0.5, "num_workers": workers}
        if workers:
            options["persistent_workers"] = rng.random() < 0.5
        sampler = {"shuffle": rng.random() < 0.7, "seed": rng.randrange(9), "drop_last": rng.random() < 0.5}
        epochs_of = rng.choice(([0, 1], [None, 3], [None, None], [5, None]))
        program = {"options": options, "sampler": sampler, "epochs": epochs_of, "torch": rng.randrange(1 << 30)}
        ds = dataset_of(rng, n)
        want, got = epochs(tud, ds, ranks, program), epochs(penstock, ds, ranks, program)
        for (length, *of_torch), (ours, *mine) in zip(want, got):
            self.assertEqual(ours, length)
            for a, b in zip(of_torch, mine):
                self.assertEqual(len(b), len(a))
                for x, y in zip(a, b):
                    self.assertTrue(all(torch.equal(s, t) for s, t in zip(x, y)), f"{x} {y}")

    @cases(6)
    def test_with_a_seed(self, rng: random.Random) -> None:
        """penstock's order: the records of torch's batches, in each rank as many, and others in another epoch."""
        n, ranks = rng.choice((4, 10, 31)), rng.randint(1, 4)
        options = {"shuffle": rng.random() < 0.7, "drop_last": rng.random() < 0.5}
        ds, size, seed, workers = dataset_of(rng, n), rng.randint(1, 5), rng.choice((0, 6)), rng.choice((0, 1))
        parts = []
        for rank in range(ranks):
            sampler = tud.DistributedSampler(ds, ranks, rank, **options)
            left = n % ranks if options["drop_last"] else 0
            if left and options["shuffle"]:  # which records those are, no other world size could repeat
                with self.assertRaisesRegex(penstock.Error, "leaves out .* give drop_last=True to the DataLoader"):
                    penstock.DataLoader(ds, size, sampler=sampler, seed=seed)
                return
            loader = penstock.DataLoader(ds, size, sampler=sampler, seed=seed, num_workers=workers)
            parts.append([])
            for epoch in (0, 1):
                sampler.set_epoch(epoch)
                parts[-1].append([batch[0].tolist() for batch in loader])
            self.assertEqual([len(batches) for batches in parts[-1]], 2 * [-(-len(sampler) // size)])
        there = {int(ds[i][0]) for i in range(n - left)}
        for epoch in (0, 1):
            self.assertEqual({i for part in parts for batch in part[epoch] for i in batch}, there)
            self.assertEqual(len({tuple(map(len, part[epoch])) for part in parts}), 1)

    def test_raw_samples(self):
        """Lightning makes a DistributedSampler of the loader's dataset, which is a path here."""
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table.csv")
            with open(table, "w") as f:
                f.write("x\n" + "".join(f"{i}\n" for i in range(51)))
            seen = []
            for rank in range(2):
                with penstock.DataLoader(table, 4, shuffle=True, seed=5, prepare="off", command=data.feed()) as whole:
                    sampler = tud.DistributedSampler(whole.dataset, 2, rank)
                with penstock.DataLoader(table, 4, sampler=sampler, seed=5, prepare="off", command=data.feed(), batch_type=dict) as part:
                    seen += [x for batch in part for x in batch["x"][torch.from_numpy(batch.mask)].tolist()]
            self.assertEqual(sorted(seen), list(range(51)))

    def test_the_epoch_of_a_prepared_dataset(self):
        ds = penstock.open(data.path("images"))
        sampler = tud.DistributedSampler(ds, 2, 0, seed=3)
        with penstock.DataLoader(ds, 100, sampler=sampler, command=data.feed()) as loader:
            first = {}
            for epoch in (0, 4, 0):
                sampler.set_epoch(epoch)
                order = [i for batch in loader for i in batch.indices.tolist()]
                self.assertEqual(first.setdefault(epoch, order), order)
            self.assertNotEqual(first[0], first[4])


if __name__ == "__main__":
    unittest.main()
