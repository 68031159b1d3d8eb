"""A DataLoader under the Trainer of Transformers, beside torch's own loader in the same program, over each kind of data."""

import os
import tempfile
import unittest
import warnings

import penstock
from penstock import order

from . import data

try:
    import torch
    import transformers
    from torch.utils.data import DataLoader, Dataset, Sampler

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"

RECORDS, SIZE, SEED = 50, 8, 5
STEPS = -(-RECORDS // SIZE)
VALUES = [(i * 7 % RECORDS, i % 3) for i in range(RECORDS)]


if not MISSING:

    class Own(Dataset):
        def __len__(self):
            return RECORDS

        def __getitem__(self, i):
            return {"x": torch.tensor(VALUES[i][0]), "y": torch.tensor(VALUES[i][1])}

    class Order(Sampler):
        """The order of penstock, for torch's loader."""

        epoch = 0

        def set_epoch(self, epoch):
            self.epoch = epoch

        def __len__(self):
            return RECORDS

        def __iter__(self):
            return iter(order.shuffle(RECORDS, SEED, self.epoch)[:].tolist())

    class Model(torch.nn.Module):
        """A model that keeps the records that it is given."""

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([0.1, 0.2]))
            self.seen = []

        def forward(self, x, y):
            self.seen.append(list(zip(x.tolist(), y.tolist())))
            logits = x / RECORDS * self.weight[0] + self.weight[1]
            return {"loss": torch.nn.functional.mse_loss(logits, y.float()), "logits": logits}

    class Trainer(transformers.Trainer):
        """A Trainer over the loaders of a function."""

        def __init__(self, make, output, **options):
            arguments = transformers.TrainingArguments(
                output, per_device_train_batch_size=SIZE, num_train_epochs=2, logging_steps=1, report_to=[], use_cpu=True,
                disable_tqdm=True, label_names=["y"], **options
            )  # fmt: skip
            self.make = make
            super().__init__(Model(), arguments)

        def get_train_dataloader(self):
            return self.accelerator.prepare(self.make(True))

        def get_eval_dataloader(self, eval_dataset=None):
            return self.accelerator.prepare(self.make(False))

        get_test_dataloader = get_eval_dataloader

        def losses(self):
            return [line["loss"] for line in self.state.log_history if "loss" in line]


def kinds(folder):
    """Return a function for each kind of data, which makes a DataLoader that shuffles or not."""
    prepared, table = os.path.join(folder, "ds"), os.path.join(folder, "table.csv")
    with penstock.Writer(prepared) as w:
        for x, y in VALUES:
            w.append({"x": x, "y": y})
    with open(table, "w", encoding="utf-8") as f:
        f.write("x,y\n" + "".join(f"{x},{y}\n" for x, y in VALUES))
    arrays = {name: torch.tensor(column) for name, column in zip("xy", zip(*VALUES))}

    def of(dataset, **options):
        return lambda shuffle, size=SIZE: penstock.DataLoader(dataset, size, shuffle=shuffle, seed=SEED, **options)

    return {
        "torch": lambda shuffle, size=SIZE: DataLoader(Own(), size, sampler=Order() if shuffle else None),
        "prepared": of(prepared, batch_type=dict),
        "raw": of(table, batch_type=dict, prepare="off"),
        "arrays": of(arrays),
        "own": of(Own(), num_workers=1),
    }


setUpModule = data.name_programs


@unittest.skipIf(MISSING, MISSING)
class TrainerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="penstock-python-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_train_evaluate_predict_and_resume(self):
        wanted = None
        for kind, make in kinds(self.folder).items():
            with self.subTest(kind), warnings.catch_warnings():
                warnings.simplefilter("error", category=UserWarning)
                warnings.filterwarnings("ignore", module="torch|accelerate|transformers")
                output, middle = os.path.join(self.folder, kind), STEPS + 3
                trainer = Trainer(make, output, save_steps=middle)
                self.assertEqual(trainer.train().global_step, 2 * STEPS)
                trained = list(trainer.model.seen)
                evaluated = trainer.evaluate()["eval_loss"]
                predicted = trainer.predict(None).predictions.tolist()
                found = trained, trainer.losses(), evaluated, predicted, trainer.model.seen[len(trained) :]
                wanted = wanted or found
                self.assertEqual(found, wanted)

                again = Trainer(make, output)
                again.train(resume_from_checkpoint=os.path.join(output, f"checkpoint-{middle}"))
                self.assertEqual(again.model.seen, trained[middle:])
                self.assertEqual(again.losses(), trainer.losses())
