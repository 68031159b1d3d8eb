"""Train with torchrun on any number of processes, which may change: the data continue where they were, each record once an epoch.

    torchrun --nproc-per-node 2 torchrun_elastic.py DATASET CHECKPOINT [CACHE] [EPOCHS]
    torchrun --nnodes 2:3 --max-restarts 9 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \\
        torchrun_elastic.py s3://lab/photos /shared/run.pt /nvme/cache

torchrun starts all processes again when a node comes or goes. (torch 2.15 waits in vain for a node that comes later, unless
all nodes have TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.) A global batch has GLOBAL records in any world, so that
the step is the same, and state_dict is a place in the epoch that every world understands. CHECKPOINT is on a disk that
all nodes share. CACHE is a folder of each host, which its processes share; with REGIONS a host reads its regions of a
dataset in a bucket, and no others.
"""

from __future__ import annotations

import json
import os
import sys

import torch
import torch.distributed as dist

import penstock
from penstock.transforms import Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop, ToTensor

GLOBAL = 60  # records of a step: a multiple of every number of processes
REGIONS = 6  # a multiple of every number of hosts
EVERY = 4  # steps between checkpoints


def train(path: str, checkpoint: str, cache: str | None = None, epochs: int = 3) -> None:
    """Train, and print a line of JSON for each step and process."""
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    loader = penstock.DataLoader(
        path,
        GLOBAL // world,
        sampler=penstock.samplers.Regions(REGIONS),
        transforms=Compose([RandomResizedCrop(8), RandomHorizontalFlip(), ToTensor(), Normalize([0.5] * 3, [0.25] * 3)]),
        rank=rank,
        world_size=world,
        seed=1,
        cache_dir=cache,
    )
    torch.manual_seed(1)
    # Replace the model. In float64, so that losses of different worlds can be compared.
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 100)).double().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["data"])
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    while loader.epoch < epochs:
        for batch in loader:
            loss = step(parallel, optimizer, batch, device)
            records = batch.indices[batch.mask].tolist()
            line = {"epoch": batch.epoch, "step": batch.step, "world": world, "loss": loss, "records": records}
            sys.stdout.write(json.dumps(line) + "\n")  # one write, as processes share a pipe
            sys.stdout.flush()
            if batch.step % EVERY == EVERY - 1 and rank == 0:
                save(checkpoint, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "data": loader.state_dict()})
    dist.destroy_process_group()


def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: penstock.LoaderBatch, device: torch.device) -> float:
    """Make one step, and return the mean loss over the global batch. Records that only fill it up do not count."""
    images, labels = batch["images"].to(device).double(), batch["labels"].to(device)
    mask = torch.from_numpy(batch.mask).to(device)
    count = mask.sum()
    dist.all_reduce(count)
    losses = torch.nn.functional.cross_entropy(model(images), labels, reduction="none")
    loss = (losses * mask).sum() / count
    optimizer.zero_grad()
    torch.autograd.backward(loss * dist.get_world_size())  # DistributedDataParallel divides by it
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    return float(total)


def save(checkpoint: str, state: dict[str, object]) -> None:
    """Save a checkpoint; the previous one stays until it is complete."""
    torch.save(state, checkpoint + ".new")
    os.replace(checkpoint + ".new", checkpoint)


if __name__ == "__main__":
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    train(sys.argv[1], sys.argv[2], folder, int(sys.argv[4]) if len(sys.argv) > 4 else 3)
