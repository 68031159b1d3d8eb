"""Lightning over a penstock.DataLoader that continues on another number of processes, beside torch's own loader in the same programs.

Prepared data go from one process to two, raw data from two to one. This module is that program, too.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, Dataset

import penstock
from penstock import order
from tests import data

RECORDS, SIZE, SEED = 50, 8, 5
STEPS = -(-RECORDS // SIZE)
MIDDLE = STEPS + 3  # of the second of three epochs
VALUES = [(i * 7 % RECORDS, i % 3) for i in range(RECORDS)]


class Own(Dataset):
    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        return {"x": torch.tensor(VALUES[i][0]), "y": torch.tensor(VALUES[i][1])}


class Parts(order.Batches):
    """The batches of a process, in penstock's order, for torch's loader: each time those of the next epoch."""

    begun = 0

    def __iter__(self):
        self.set_epoch(self.begun)
        self.begun += 1
        return super().__iter__()


class Model(lightning.LightningModule):
    """A model of two weights that keeps the records and the losses of its steps."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.1, 0.2]))
        self.seen = []

    def training_step(self, batch, number):
        x, y = batch["x"], batch["y"]
        loss = torch.nn.functional.mse_loss(x / RECORDS * self.weight[0] + self.weight[1], y.float())
        self.seen.append((self.current_epoch, number, x.tolist(), y.tolist(), loss.item()))
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Saved(lightning.Callback):
    """Writes a checkpoint in the middle of an epoch: at the end of fit, Lightning counts the epoch as done."""

    def __init__(self, path):
        self.path = path

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == MIDDLE:
            trainer.save_checkpoint(self.path)


def run(loader, checkpoint, steps=-1, **options):
    """Train on a loader, from a checkpoint if it is there, which is written if it is not; return what each step saw."""
    torch.manual_seed(0)
    model = Model()
    there = checkpoint and os.path.exists(checkpoint)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy="ddp", max_epochs=3, max_steps=steps, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[Saved(checkpoint)] if checkpoint and not there else [], **options,
    )  # fmt: skip
    trainer.fit(model, loader, ckpt_path=checkpoint if there else None, weights_only=False)
    return model.seen


def main(folder):
    """Print what torch's loader and those of penstock give this process, as the world has it."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    size = SIZE // world
    parts = Parts(RECORDS, size, SEED, rank=rank, world_size=world)
    seen = {"torch": run(DataLoader(Own(), batch_sampler=parts), None, use_distributed_sampler=False)}
    for name, begins, options in (("ds", 1, {}), ("table.csv", 2, {"prepare": "off"})):
        checkpoint = os.path.join(folder, f"{name}.ckpt")
        there = os.path.exists(checkpoint)
        if there or world == begins:
            with penstock.DataLoader(os.path.join(folder, name), size, shuffle=True, seed=SEED, **options) as loader:
                seen[name] = run(loader, checkpoint, -1 if there else MIDDLE)
    with open(os.path.join(folder, f"{rank}.json"), "w") as f:
        json.dump(seen, f)


setUpModule = data.name_programs


class Devices(unittest.TestCase):
    def world(self, count, folder):
        """Start processes as torchrun does, and return what each of them saw."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        environ = {
            **os.environ, "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "test", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
        }  # fmt: skip
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.peers.test_lightning", folder], cwd=os.path.dirname(data.HERE), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, env={**environ, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            )
            for rank in range(count)
        ]  # fmt: skip
        for process in started:
            said = process.communicate(timeout=600)[0]
            self.assertEqual(process.returncode, 0, said)
        found = []
        for rank in range(count):
            with open(os.path.join(folder, f"{rank}.json")) as f:
                found.append(json.load(f))
        return found

    def test_a_checkpoint_continues_on_another_number(self):
        with tempfile.TemporaryDirectory() as folder:
            with penstock.Writer(os.path.join(folder, "ds")) as w:
                for x, y in VALUES:
                    w.append({"x": x, "y": y})
            with open(os.path.join(folder, "table.csv"), "w") as f:
                f.write("x,y\n" + "".join(f"{x},{y}\n" for x, y in VALUES))
            one, two, again = (self.world(count, folder) for count in (1, 2, 1))
        for world, name, part in (
            (one, "ds", slice(0, MIDDLE)), (two, "ds", slice(MIDDLE, None)),
            (two, "table.csv", slice(0, MIDDLE)), (again, "table.csv", slice(MIDDLE, None)),
        ):  # fmt: skip
            for seen in world:
                wanted = seen["torch"][part]
                self.assertEqual(len(seen["torch"]), 3 * STEPS)
                self.assertEqual([step[:4] for step in seen[name]], [step[:4] for step in wanted])
                for step, other in zip(seen[name], wanted):
                    self.assertAlmostEqual(step[4], other[4], places=5)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
