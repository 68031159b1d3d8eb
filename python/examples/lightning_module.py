"""Train with Lightning from a dataset of images, and continue in the middle of an epoch.

    python3 lightning_module.py DATASET CHECKPOINT

A LightningDataModule returns a penstock.DataLoader as it would return torch's. Lightning divides it among
processes, keeps its state_dict in checkpoints, and gives it back when training continues from one.
"""

from __future__ import annotations

import os
import sys

import lightning
import torch

import penstock
from penstock.transforms import Compose, Normalize, RandomHorizontalFlip, ToTensor


class Images(lightning.LightningDataModule):
    def __init__(self, path: str, batch_size: int = 64, num_workers: int = 2) -> None:
        super().__init__()
        self.path, self.batch_size, self.num_workers = path, batch_size, num_workers

    def train_dataloader(self) -> penstock.DataLoader:
        transforms = Compose([RandomHorizontalFlip(), ToTensor(), Normalize([0.5] * 3, [0.25] * 3)])
        return penstock.DataLoader(self.path, self.batch_size, shuffle=True, transforms=transforms, num_workers=self.num_workers)


class Model(lightning.LightningModule):
    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.net = torch.nn.Linear(inputs, classes)
        self.seen: list[tuple[float, int]] = []  # of each batch, for those who compare runs

    def training_step(self, batch: dict[str, torch.Tensor], step: int) -> torch.Tensor:
        x, y = batch["images"], batch["labels"]
        self.seen.append((float(x.double().sum()), int(y.sum())))
        return torch.nn.functional.cross_entropy(self.net(x.flatten(1)), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.01)


def train(path: str, steps: int, checkpoint: str | None = None, save: str | None = None, **options: int) -> Model:
    """Train up to a number of steps, from a checkpoint if there is one, and return the model."""
    data = Images(path, **options)
    first = penstock.open(path)
    model = Model(first["images"][0].size, len(first.classes()))
    trainer = lightning.Trainer(
        max_steps=steps, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.fit(model, data, ckpt_path=checkpoint, weights_only=False)
    if save:
        trainer.save_checkpoint(save)
    return model


if __name__ == "__main__":
    dataset, file = sys.argv[1:3]
    train(dataset, 100, file if os.path.exists(file) else None, file)
