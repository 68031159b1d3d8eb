"""penstock.DataLoader in Lightning and Accelerate, as their users use it."""

import logging
import os
import tempfile
import unittest
import warnings
from unittest import mock

import accelerate
import lightning
import torch

import penstock
from penstock import transforms as T
from tests import data


def loader(**options):
    return penstock.DataLoader(data.path("images"), 100, transforms=[T.ToTensor(), T.Normalize()], command=data.feed(), rank=0, world_size=1, **options)


class Model(lightning.LightningModule):
    def __init__(self, inputs):
        super().__init__()
        self.net = torch.nn.Linear(inputs, 3)
        self.trained, self.validated = [], []

    def training_step(self, batch, _):
        self.trained.append((batch.epoch, batch.step, batch.indices.tolist(), bool(batch.mask.all())))
        return torch.nn.functional.cross_entropy(self.net(batch["images"].flatten(1)), batch["labels"])

    def validation_step(self, batch, _, dataloader_idx=0):
        self.validated.append((dataloader_idx, batch.indices[batch.mask].tolist()))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def trainer(folder, **options):
    return lightning.Trainer(
        accelerator="cpu", default_root_dir=folder, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, **options
    )


class Lightning(unittest.TestCase):
    def setUp(self):
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        patch = warnings.catch_warnings()
        patch.__enter__()
        self.addCleanup(patch.__exit__, None, None, None)
        warnings.simplefilter("ignore")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.inputs = penstock.open(data.path("images"))["images"][0].size

    def order(self, epoch):
        batches = penstock.order.Batches(1500, 100, seed=4)
        batches.set_epoch(epoch)
        return [b.tolist() for b in batches]

    def test_fit_with_a_validation_loader(self):
        for several in (False, True):
            with loader(shuffle=True, seed=4) as train, loader() as val, loader(split=None) as more:
                model = Model(self.inputs)
                trainer(self.folder, max_epochs=2).fit(model, train, [val, more] if several else val)
                self.assertEqual([b[:3] for b in model.trained], [(e, s, r) for e in range(2) for s, r in enumerate(self.order(e))])
                self.assertTrue(all(b[3] for b in model.trained))
                for k in range(1 + several):
                    seen = [r for i, batch in model.validated if i == k for r in batch]
                    self.assertEqual(seen, [*range(200), *range(1500), *range(1500)], "two batches to look, and two epochs")

    def test_validate_and_test(self):
        with loader() as val:
            model = Model(self.inputs)
            model.test_step = model.validation_step
            for run in (trainer(self.folder).validate, trainer(self.folder).test):
                model.validated.clear()
                run(model, val, verbose=False)
                self.assertEqual([r for _, batch in model.validated for r in batch], list(range(1500)))

    def test_a_subset_each(self):
        ds = penstock.open(data.path("images"))
        train, val = torch.utils.data.random_split(ds, [1200, 300])
        options = {"transforms": [T.ToTensor(), T.Normalize()], "command": data.feed(), "rank": 0, "world_size": 1}
        with penstock.DataLoader(train, 100, shuffle=True, **options) as a, penstock.DataLoader(val, 100, **options) as b:
            model = Model(self.inputs)
            trainer(self.folder, max_epochs=1, num_sanity_val_steps=0).fit(model, a, b)
            trained = [r for batch in model.trained for r in batch[2]]
            self.assertEqual(sorted(trained), sorted(train.indices))
            self.assertEqual([r for _, batch in model.validated for r in batch], list(val.indices))

    def test_a_checkpoint_in_the_middle(self):
        file = os.path.join(self.folder, "x.ckpt")
        with loader(shuffle=True, seed=4) as train, loader() as val:
            model = Model(self.inputs)
            first = trainer(self.folder, max_steps=20, num_sanity_val_steps=0)
            first.fit(model, train, val)
            first.save_checkpoint(file)
        with loader(shuffle=True, seed=4) as train, loader() as val:
            again = Model(self.inputs)
            trainer(self.folder, max_steps=30).fit(again, train, val, ckpt_path=file, weights_only=False)
        self.assertEqual([b[2] for b in model.trained + again.trained], self.order(0) + self.order(1))

    def test_the_launcher_of_several(self):
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
            with self.assertWarnsRegex(UserWarning, 'give rank="auto"'):
                penstock.DataLoader(data.path("images"), 100, command=data.feed()).close()
            with penstock.DataLoader(data.path("images"), 100, command=data.feed(), rank="auto") as dl:
                self.assertEqual((dl.rank, dl.world_size, len(dl)), (1, 2, 8))


class Accelerate(unittest.TestCase):
    def test_prepare(self):
        accelerator = accelerate.Accelerator(cpu=True)
        with loader(shuffle=True, seed=4) as train, loader() as val:
            model = torch.nn.Linear(3, 3)
            model, ours, theirs = accelerator.prepare(model, train, val)
            self.assertIs(ours, train)
            seen = []
            for batch in ours:
                moved = accelerate.utils.send_to_device(batch, accelerator.device)
                self.assertIsInstance(moved, penstock.LoaderBatch)
                self.assertEqual((moved.mask.tolist(), moved.indices.tolist()), (batch.mask.tolist(), batch.indices.tolist()))
                self.assertEqual(accelerate.utils.find_batch_size(moved), 100)
                seen += moved.indices.tolist()
                self.assertTrue(torch.equal(accelerator.gather_for_metrics(moved["labels"]), batch["labels"]))
            self.assertEqual(sorted(seen), list(range(1500)))
            self.assertEqual(sum(len(batch["labels"]) for batch in theirs), 1500)
            self.assertEqual(sorted(r for batch in ours for r in batch.indices.tolist()), list(range(1500)))


if __name__ == "__main__":
    unittest.main()
