"""Train with the Trainer of Hugging Face Transformers from a dataset of images.

    python3 huggingface_trainer.py DATASET OUTPUT

A Trainer asks get_train_dataloader for its batches: dicts of tensors with the names that the model
expects.
"""

from __future__ import annotations

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
            self.train_dataset, self.args.train_batch_size, shuffle=True, transforms=transforms, num_workers=2, rank=rank, world_size=world_size
        )
        return Renamed(loader, {"images": "pixel_values"})


def train(path: str, output: str, steps: int = 30) -> Any:
    """Train a small vision transformer, and return what Trainer.train does."""
    classes = penstock.open(path).classes()
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, num_labels=len(classes)
    )
    arguments = transformers.TrainingArguments(
        output, max_steps=steps, per_device_train_batch_size=64, logging_steps=10, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
        remove_unused_columns=False,
    )  # fmt: skip
    return Trainer(transformers.ViTForImageClassification(config), arguments, train_dataset=path).train()


if __name__ == "__main__":
    print(train(*sys.argv[1:3]).metrics)
