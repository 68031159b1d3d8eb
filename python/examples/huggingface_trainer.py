"""Train with the Trainer of Hugging Face Transformers from a dataset of images.

    python3 huggingface_trainer.py DATASET OUTPUT

A Trainer asks get_train_dataloader for its batches: dicts of tensors with the names that the model
expects. Its checkpoints get the place of the DataLoader, so that training that resumes sees the batches
that come next, in the middle of an epoch too; Trainer itself need not skip any (ignore_data_skip).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
import transformers

import penstock
from penstock.transforms import Compose, Normalize, RandomHorizontalFlip, Resize, ToTensor


class Renamed:
    """The batches of a DataLoader, with other names for their fields."""

    def __init__(self, loader: penstock.DataLoader, names: dict[str, str]) -> None:
        self.loader, self.names = loader, names

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in self.loader:
            yield {self.names.get(name, name): values for name, values in batch.items()}

    def __getattr__(self, name: str) -> Any:  # set_epoch, state_dict, load_state_dict, dataset, batch_size
        return getattr(self.loader, name)


class Trainer(transformers.Trainer):
    def get_train_dataloader(self) -> Renamed:
        rank, world_size = self.args.process_index, self.args.world_size
        transforms = Compose([Resize((32, 32)), RandomHorizontalFlip(), ToTensor(), Normalize([0.5] * 3, [0.25] * 3)])
        loader = penstock.DataLoader(
            self.train_dataset, self.args.train_batch_size, shuffle=True, transforms=transforms, num_workers=self.args.dataloader_num_workers,
            rank=rank, world_size=world_size,
        )  # fmt: skip
        if self.resume_data_from:
            with open(os.path.join(self.resume_data_from, "loader.json")) as f:
                loader.load_state_dict(json.load(f))
        self.loader = loader
        return Renamed(loader, {"images": "pixel_values"})

    def train(self, resume_from_checkpoint: str | None = None, **options: Any) -> Any:
        self.resume_data_from = resume_from_checkpoint
        return super().train(resume_from_checkpoint, **options)


class SaveLoader(transformers.TrainerCallback):
    """Writes the place of the Trainer's DataLoader into each checkpoint."""

    def __init__(self) -> None:
        self.trainer: Trainer | None = None

    def on_save(self, args: transformers.TrainingArguments, state: transformers.TrainerState, control: Any, **_: Any) -> None:
        assert self.trainer is not None
        with open(os.path.join(args.output_dir, f"checkpoint-{state.global_step}", "loader.json"), "w") as f:
            json.dump(self.trainer.loader.state_dict(), f)


def train(path: str, output: str, steps: int = 30, checkpoint: str | None = None, num_workers: int = 2, save_steps: int = 500) -> Any:
    """Train a small vision transformer, and return what Trainer.train does."""
    classes = penstock.open(path).classes()
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, num_labels=len(classes)
    )
    arguments = transformers.TrainingArguments(
        output, max_steps=steps, per_device_train_batch_size=64, logging_steps=10, save_steps=save_steps, report_to=[], use_cpu=True,
        disable_tqdm=True, remove_unused_columns=False, ignore_data_skip=True, dataloader_num_workers=num_workers,
    )  # fmt: skip
    saver = SaveLoader()
    saver.trainer = Trainer(transformers.ViTForImageClassification(config), arguments, train_dataset=path, callbacks=[saver])
    return saver.trainer.train(checkpoint)


if __name__ == "__main__":
    print(train(sys.argv[1], sys.argv[2]).metrics)
