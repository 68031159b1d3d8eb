"""penstock.DataLoader in Lightning and Accelerate, as their users use it."""

import inspect
import json
import logging
import os
import subprocess
import sys
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
    return penstock.DataLoader(
        data.path("images"), 100, transforms=[T.ToTensor(), T.Normalize()], command=data.feed(), rank=0, world_size=1, **options
    )


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
        accelerator="cpu",
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
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

    def test_the_launcher_of_several(self):
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
            with self.assertWarnsRegex(UserWarning, 'give rank="auto"'):
                list(penstock.DataLoader(data.path("images"), 100, command=data.feed()))
            with penstock.DataLoader(data.path("images"), 100, command=data.feed(), rank="auto") as dl:
                self.assertEqual((dl.rank, dl.world_size, len(dl)), (1, 2, 8))

    def test_hooks_and_predictions(self):
        class Hooked(Model):
            def train_dataloader(self):
                return loader(shuffle=True, seed=4)

            def val_dataloader(self):
                return [loader(), torch_arrays()]

            def validation_step(self, batch, _, dataloader_idx=0):
                self.validated.append((dataloader_idx, len(batch[0])))

            def predict_step(self, batch, _):
                return batch.indices.tolist()

        model = Hooked(self.inputs)
        trainer(self.folder, max_epochs=1, num_sanity_val_steps=0).fit(model)
        self.assertEqual([b[2] for b in model.trained], self.order(0))
        self.assertEqual(model.validated, [(0, 100)] * 15 + [(1, 10)] * 10 + [(1, 3)])
        with loader() as dl:
            got = trainer(self.folder).predict(model, dl)
        self.assertEqual([i for batch in got for i in batch], list(range(1500)))

    def test_samplers_that_lightning_puts_in(self):
        """Of several devices: the loader is rebuilt with a DistributedSampler."""
        from lightning.pytorch.trainer.connectors.data_connector import _get_distributed_sampler
        from lightning.pytorch.utilities.data import _is_dataloader_shuffled, _update_dataloader

        orders = (
            {"shuffle": True},
            {"shuffle": False},
            {"sampler": penstock.samplers.Block(10)},
            {"sampler": torch.utils.data.RandomSampler(range(1500))},
        )
        for options in orders:
            got = []
            for rank in range(2):
                with penstock.DataLoader(data.path("images"), 100, seed=3, output="torch", batch_type=dict, command=data.feed(), **options) as dl:
                    shuffled = _is_dataloader_shuffled(dl)
                    self.assertEqual(
                        shuffled, options.get("shuffle", "sampler" in options and not isinstance(options["sampler"], penstock.samplers.Sampler))
                    )
                    with mock.patch.dict(os.environ, {"PL_GLOBAL_SEED": "42"}):
                        sampler = _get_distributed_sampler(dl, shuffled, 0, num_replicas=2, rank=rank)
                        with warnings.catch_warnings(), _update_dataloader(dl, sampler) as part:
                            self.assertIs(type(part), type(dl))
                            self.assertEqual((part.rank, part.world_size, len(part), part.seed), (rank, 2, 8, 3))
                            self.assertIsInstance(part.sampler, torch.utils.data.DistributedSampler)
                            batches = list(part)
                            got += [i for b in batches for i in b.indices[b.mask]]
                            self.assertIsInstance(batches[0], dict)
            self.assertEqual(sorted(got), list(range(1500)), options)
        for rank in range(2):  # and of arrays, as of torch's own
            whole = torch_arrays(shuffle=True)
            part = _update_dataloader(whole, torch.utils.data.DistributedSampler(whole.dataset, 2, rank, shuffle=False))
            self.assertIs(type(part), type(whole))
            self.assertEqual([i for _, y in part for i in y.tolist()], [*range(rank, 103, 2), *[0] * rank])


def of_json(folder, name):
    with open(os.path.join(folder, name)) as f:
        return json.load(f)


def torch_arrays(**options):
    return penstock.DataLoader(torch.utils.data.TensorDataset(torch.arange(103.0), torch.arange(103)), 10, **options)


class Rebuilt(unittest.TestCase):
    """Frameworks make another DataLoader of the attributes of one."""

    def test_of_its_attributes(self):
        for make in (
            lambda: loader(shuffle=True, seed=4, batch_type=dict),
            torch_arrays,
            lambda: torch_arrays(batch_sampler=None, num_workers=1, shuffle=False),
        ):
            with make() as dl:
                mine = {name: value for name, value in vars(dl).items() if not name.startswith("_")}
                self.assertLess(mine.keys(), set(inspect.signature(penstock.DataLoader).parameters))
                torchs = {name for name in vars(torch.utils.data.DataLoader([1])) if not name.startswith("_")}
                self.assertLessEqual(torchs, mine.keys())
                if mine["batch_sampler"] is not None:  # as ignite does, and every framework has to
                    mine |= {"batch_size": 1, "drop_last": False, "sampler": None}
                with type(dl)(**mine) as again:
                    for a, b in zip(dl, again):
                        self.assertTrue(all(torch.equal(x, y) for x, y in zip(*(v.values() if isinstance(v, dict) else v for v in (a, b)))))

    def test_as_ray_does(self):
        names = ["dataset", "num_workers", "collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn", "generator"]
        with loader(shuffle=True) as dl:
            other = torch.utils.data.DataLoader(
                **{name: getattr(dl, name) for name in names}, batch_size=100, sampler=torch.utils.data.DistributedSampler(dl.dataset, 2, 0)
            )
            other.num_workers = 0
            with self.assertRaisesRegex(penstock.Error, 'made torch.s DataLoader of a penstock.DataLoader.*rank="auto"'):
                next(iter(other))
        with penstock.DataLoader(data.path("images"), 100, command=data.feed(), rank=1, world_size=2) as dl:  # then Ray leaves it alone
            self.assertIsInstance(dl.sampler, torch.utils.data.DistributedSampler)
            dl.sampler.set_epoch(3)
            self.assertEqual(dl.epoch, 3)


class Ignite(unittest.TestCase):
    def test_engine(self):
        from ignite.engine import Engine

        rows = [(torch.tensor([float(i)]), i) for i in range(50)]
        ours = torch.utils.data.TensorDataset(torch.arange(50))
        for make in (
            lambda: loader(shuffle=True, seed=4, output="torch"),
            lambda: penstock.DataLoader(ours, 8, shuffle=True, seed=4),
            lambda: penstock.DataLoader(rows, 8, shuffle=True, seed=4),
        ):
            with make() as dl, make() as plain:
                seen = []
                Engine(lambda _, batch, seen=seen: seen.append(batch[-1].tolist())).run(dl, max_epochs=3)
                self.assertEqual(seen, [batch[-1].tolist() for _ in range(3) for batch in plain])
        made = [c(rows, 8) for c in (penstock.DataLoader, torch.utils.data.DataLoader)]
        both = [[], []]
        for dl, seen in zip(made, both):
            Engine(lambda _, batch, seen=seen: seen.append(batch[-1].tolist())).run(dl, max_epochs=2)
        self.assertEqual(*both)


#: A program with Accelerate alone, as Lightning looks at batch samplers too.
SKIPS = """
import sys, accelerate, penstock, torch

accelerator = accelerate.Accelerator(cpu=True)
dl = accelerator.prepare(penstock.DataLoader(sys.argv[1], 100, shuffle=True, seed=4, command=sys.argv[2]))
whole = [b.indices.tolist() for b in dl]
for skip in (accelerate.skip_first_batches, accelerator.skip_first_batches):
    dl.set_epoch(0)
    print([b.indices.tolist() for b in skip(dl, 4)] == whole[4:])
dl.set_epoch(0)
dl.load_state_dict({**dl.state_dict(), "step": 4})
print([b.indices.tolist() for b in dl] == whole[4:])
own = penstock.DataLoader(torch.utils.data.TensorDataset(torch.arange(103)), 10)
print([x.tolist() for x, in accelerate.skip_first_batches(own, 3)] == [x.tolist() for x, in own][3:])
"""


class Accelerate(unittest.TestCase):
    def test_gradient_accumulation(self):
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
        net = torch.nn.Linear(1, 1)
        net, _ = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1))
        for dl, batches, last in ((loader(), 15, 0), (torch_arrays(), 11, 3), (torch_arrays(drop_last=True), 10, -1)):
            self.assertIs(accelerator.prepare(dl), dl)
            steps, seen = [], 0
            for _ in range(2):
                for k, batch in enumerate(dl):
                    with accelerator.accumulate(net):
                        steps.append(
                            (k, accelerator.sync_gradients, accelerator.gradient_state.end_of_dataloader, accelerator.gradient_state.remainder)
                        )
                        seen += len(accelerator.gather_for_metrics(batch[1]))
                self.assertFalse(accelerator.gradient_state.in_dataloader)
            self.assertEqual(steps, 2 * [(k, (k + 1) % 4 == 0 or k + 1 == batches, k + 1 == batches, last) for k in range(batches)])
            self.assertEqual(seen, 2 * {15: 1500, 11: 103, 10: 100}[batches])
            dl.close()

    def test_two_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = data.path("images"), data.feed(), folder
            code = f"import accelerate; from tests.peers import test_frameworks as t; accelerate.debug_launcher(t._part, {arguments!r}, 2)"
            env = {**os.environ, "PYTHONPATH": os.path.dirname(data.HERE)}
            out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
            self.assertEqual(out.returncode, 0, out.stderr)
            got = [of_json(folder, str(rank)) for rank in range(2)]
            self.assertEqual([g["world"] for g in got], [[0, 2], [1, 2]])
            self.assertEqual(sorted(got[0]["records"] + got[1]["records"]), list(range(1500)))
            self.assertEqual(got[0]["metrics"], 1500)
            self.assertEqual(sorted(got[0]["arrays"] + got[1]["arrays"]), sorted([*range(103), *range(17)]))  # even batches, by Accelerate's own

    def test_skip_first_batches(self):
        out = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SKIPS, data.path("images"), data.feed()], capture_output=True, text=True, timeout=120,
            env={**os.environ, "PYTHONPATH": os.path.dirname(data.HERE)},
        )  # fmt: skip
        self.assertEqual((out.returncode, out.stdout), (0, "True\n" * 4), out.stderr)

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


def _part(path, feed, folder):
    """Load the part of one of two processes."""
    accelerator = accelerate.Accelerator(cpu=True)
    with penstock.DataLoader(path, 110, shuffle=True, command=feed) as made:
        dl = accelerator.prepare(made)
        records = [i for batch in dl for i in batch.indices[batch.mask].tolist()]
        metrics = sum(len(accelerator.gather_for_metrics(batch["labels"])) for batch in dl)
        arrays = accelerator.prepare(torch_arrays())
        seen = [i for _, y in arrays for i in y.tolist()]
        with open(os.path.join(folder, str(accelerator.process_index)), "w") as f:
            json.dump({"world": [made.rank, made.world_size], "records": records, "metrics": metrics, "arrays": seen}, f)


if __name__ == "__main__":
    unittest.main()
