"""The loop of timm's train.py over a dataset of your own: fast_collate in the workers, normalization by its PrefetchLoader.

pip install timm torch && python timm_prefetcher.py
"""

import numpy as np
import timm
import torch
from timm.data.loader import PrefetchLoader, fast_collate

import penstock


class Photos(torch.utils.data.Dataset):
    """Stands for yours: images as uint8, channels first, and their class."""

    def __len__(self):
        return 24

    def __getitem__(self, i):
        return np.random.default_rng(i).integers(0, 256, (3, 32, 32), np.uint8), i % 4


def train(loader=penstock.DataLoader, epochs=1, workers=2):
    torch.manual_seed(0)
    model = timm.create_model("test_vit", num_classes=4, img_size=32)
    # loader = torch.utils.data.DataLoader(
    made = loader(Photos(), batch_size=8, shuffle=True, num_workers=workers, collate_fn=fast_collate, drop_last=True)
    made = PrefetchLoader(made, device=torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    losses = []
    for _ in range(epochs):
        for input, target in made:
            loss = torch.nn.functional.cross_entropy(model(input), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(train())
