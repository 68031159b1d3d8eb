"""Train and evaluate with the Trainer of Hugging Face Transformers, from a dataset of images.

    python3 huggingface_trainer.py DATASET OUTPUT

A Trainer asks get_train_dataloader and get_eval_dataloader for its batches: dicts of tensors with the names that the model expects.
Its accelerator divides them among processes, and skips those that were trained on when a run continues in the middle of an epoch.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import transformers

import penstock
from penstock.transforms import Compose, Normalize, RandomHorizontalFlip, Resize, ToTensor

_TENSORS = [Resize((32, 32)), ToTensor(), Normalize([0.5] * 3, [0.25] * 3)]


class Trainer(transformers.Trainer):
    def get_train_dataloader(self) -> torch.utils.data.DataLoader[Any]:
        return self._loader(self.train_dataset, self.args.train_batch_size, True)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> torch.utils.data.DataLoader[Any]:
        return self._loader(eval_dataset or self.eval_dataset, self.args.eval_batch_size, False)

    get_test_dataloader = get_eval_dataloader

    def _loader(self, dataset: Any, batch_size: int, train: bool) -> torch.utils.data.DataLoader[Any]:
        transforms = Compose([*([RandomHorizontalFlip()] if train else []), *_TENSORS])
        workers = self.args.dataloader_num_workers
        loader = penstock.DataLoader(dataset, batch_size, shuffle=train, num_workers=workers, transforms=transforms, batch_type=dict)
        prepared: torch.utils.data.DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared


def trainer(path: str, output: str, steps: int = 30, num_workers: int = 2, save_steps: int = 500) -> Trainer:
    """Return the Trainer of a small vision transformer."""
    dataset = penstock.open(path)
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        num_labels=len(dataset.classes()),
    )  # fmt: skip
    arguments = transformers.TrainingArguments(
        output, max_steps=steps, per_device_train_batch_size=64, logging_steps=10, save_steps=save_steps, report_to=[], use_cpu=True,
        disable_tqdm=True, dataloader_num_workers=num_workers,
    )  # fmt: skip
    named = dataset.select(rename={"images": "pixel_values"})
    return Trainer(transformers.ViTForImageClassification(config), arguments, train_dataset=named, eval_dataset=named)


def train(path: str, output: str, steps: int = 30, checkpoint: str | None = None, num_workers: int = 2, save_steps: int = 500) -> Any:
    """Train, from a checkpoint if there is one, and return what Trainer.train does."""
    return trainer(path, output, steps, num_workers, save_steps).train(resume_from_checkpoint=checkpoint)


if __name__ == "__main__":
    run = trainer(sys.argv[1], sys.argv[2])
    print(run.train().metrics)
    print(run.evaluate())
