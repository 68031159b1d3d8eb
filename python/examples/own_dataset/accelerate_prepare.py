"""A loop of Accelerate over a dataset of your own.

pip install accelerate torch && python accelerate_prepare.py
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

import penstock


class Points(torch.utils.data.Dataset):
    """Stands for yours: samples are dicts."""

    def __len__(self):
        return 60

    def __getitem__(self, i):
        x = torch.linspace(0, 1, 8) * (i % 7) + 0.1 * torch.rand(8)
        return {"x": x, "y": x.sum()}


def train(loader=penstock.DataLoader, epochs=2, workers=2):
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Linear(8, 1)
    # loader = torch.utils.data.DataLoader(Points(), batch_size=8, shuffle=True, num_workers=workers)
    made = loader(Points(), batch_size=8, shuffle=True, num_workers=workers)
    model, optimizer, made = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.001), made)
    losses = []
    for _ in range(epochs):
        for batch in made:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(train())
