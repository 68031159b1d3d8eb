"""Train with Accelerate, killed and continued: the data continue in the middle of an epoch.

    python3 accelerate_loop.py DATASET CHECKPOINT [WORKERS] [EPOCHS]

Accelerate divides a prepared DataLoader among processes. With use_stateful_dataloader, save_state and
load_state keep its place in the epoch, for any number of workers.
"""

from __future__ import annotations

import os
import shutil
import sys

import accelerate
import torch

import penstock
from penstock.transforms import Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop, ToTensor


def train(path: str, checkpoint: str, num_workers: int = 2, epochs: int = 2) -> None:
    """Train, save after every fourth batch, and print a line for each batch."""
    stateful = accelerate.DataLoaderConfiguration(use_stateful_dataloader=True)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=stateful)
    transforms = Compose([RandomResizedCrop(8), RandomHorizontalFlip(), ToTensor(), Normalize([0.5] * 3, [0.25] * 3)])
    loader = penstock.DataLoader(path, 64, shuffle=True, transforms=transforms, num_workers=num_workers)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, len(penstock.open(path).classes())))
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
    if os.path.isdir(checkpoint):
        accelerator.load_state(checkpoint)
    for epoch in range(loader.epoch, epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            images, labels = batch["images"].to(accelerator.device), batch["labels"].to(accelerator.device)
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            print(batch.epoch, batch.step, images.sum().item(), labels.sum().item(), flush=True)
            if batch.step % 4 == 3:
                save(accelerator, checkpoint)


def save(accelerator: accelerate.Accelerator, checkpoint: str) -> None:
    """Save a checkpoint; the previous one stays until it is complete."""
    new = f"{checkpoint}-{os.getpid()}"
    accelerator.save_state(new)
    if accelerator.is_main_process:
        if os.path.isdir(checkpoint):
            os.rename(checkpoint, f"{new}-old")
        os.rename(new, checkpoint)
        shutil.rmtree(f"{new}-old", ignore_errors=True)


if __name__ == "__main__":
    train(sys.argv[1], sys.argv[2], *(int(a) for a in sys.argv[3:]))
