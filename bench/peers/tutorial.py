"""The six steps of PyTorch's tutorial "Data Loading Optimization", by torch's DataLoader and by penstock's.

usage: tutorial.py [BATCHES [SIZE]]

A record is 3 x SIZE x SIZE random floats and 5 ms of sleep, a batch 32 records, an epoch 16 batches: BATCHES is 160 and SIZE 224 in
the tutorial. Each step is measured alone, and with the tutorial's training step after each batch. The bound is the time of the training
steps by themselves, without which no loader can be: no speed-up with the step is larger than the baseline over it. Without CUDA,
page-locked memory and the prefetcher of the device have nothing to do.
"""

import statistics
import sys
import time
import warnings

import penstock
import torch
from torch.utils.data import DataLoader, Dataset

BATCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 160
SIZE = int(sys.argv[2]) if len(sys.argv) > 2 else 224
RECORDS, BATCH, DELAY = 512, 32, 0.005
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


class Records(Dataset):
    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        time.sleep(DELAY)
        return torch.randn(3, SIZE, SIZE), int(torch.randint(0, 10, (1,)))


class Batches(Records):
    def __getitems__(self, numbers):
        time.sleep(DELAY)
        return list(zip(torch.randn(len(numbers), 3, SIZE, SIZE), torch.randint(0, 10, (len(numbers),)).tolist()))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        n = torch.nn
        self.pixels = n.Sequential(n.Conv2d(3, 32, 7, 4, 3), n.ReLU(), n.Conv2d(32, 64, 3, 2, 1), n.ReLU(), n.AdaptiveAvgPool2d(7))
        self.tokens = n.TransformerEncoder(n.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
        self.classes = n.Linear(64, 10)

    def forward(self, x):
        return self.classes(self.tokens(self.pixels(x).flatten(2).transpose(1, 2)).mean(1))


def training():
    model, loss = Model().to(DEVICE), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(x, y):
        found = loss(model(x.to(DEVICE, non_blocking=True)), y.to(DEVICE, non_blocking=True))
        optimizer.zero_grad()
        found.backward()
        optimizer.step()
        found.item()

    return step


def measure(make, dataset, options, step):
    """Return the seconds of BATCHES batches, from making the loader on."""
    torch.manual_seed(42)
    begin, left = time.perf_counter(), BATCHES
    loader = make(dataset, BATCH, shuffle=True, **options)
    while left > 0:
        for x, y in loader:
            if step is not None:
                step(x, y)
            left -= 1
            if left == 0:
                break
    took = time.perf_counter() - begin
    if hasattr(loader, "close"):
        loader.close()
    return took


def main():
    warnings.simplefilter("ignore")  # torch's, of more workers than cores, which the tutorial has
    workers = {"num_workers": 4, "prefetch_factor": 2}
    kept = {**workers, "pin_memory": CUDA, "persistent_workers": True}
    rows = [
        ("baseline", Records(), {}),
        ("+ workers, prefetch", Records(), workers),
        ("+ page-locked", Records(), {**workers, "pin_memory": CUDA}),
        ("+ persistent", Records(), kept),
        ("+ batched fetch", Batches(), kept),
    ]
    if CUDA:
        rows.insert(4, ("+ device prefetch", Records(), kept))
    else:
        rows.pop(2)
    step = training()
    x, y = torch.randn(BATCH, 3, SIZE, SIZE), torch.randint(0, 10, (BATCH,))
    took = []
    for _ in range(max(3, BATCHES // 4)):
        begin = time.perf_counter()
        step(x, y)
        took.append(time.perf_counter() - begin)
    bound = statistics.median(took) * BATCHES
    print(f"{BATCHES} batches; the training steps alone take {bound:.2f} s; {torch.get_num_threads()} threads of torch, {DEVICE}\n")
    print("| python-tutorial | torch | penstock | torch with step | penstock with step |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    first = {}
    for name, dataset, options in rows:
        cells = []
        for on in (None, step):
            for library, make in (("torch", DataLoader), ("penstock", penstock.DataLoader)):
                more = {"device": "cuda"} if library == "penstock" and name == "+ device prefetch" else {}
                took = measure(make, dataset, {**options, **more}, on)
                base = first.setdefault((on is None, "torch"), took)
                cells.append(f"{took:.2f} s {base / took:.2f}x")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
