"""The loop of torchvision's references/classification/train.py, over a dataset of your own.

pip install torch torchvision && python classification.py
"""

import torch
from torch.utils.data import default_collate
from torchvision.transforms import v2

import penstock


class Photos(torch.utils.data.Dataset):
    """Stands for yours: images as uint8, and their class."""

    def __init__(self, transform, n=96):
        self.transform, self.n = transform, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        image = torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(i))
        return self.transform(image), i % 4


def train(loader=penstock.DataLoader, epochs=2, workers=2):
    torch.manual_seed(0)
    transform = v2.Compose([v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])])
    dataset, mix = Photos(transform), v2.MixUp(num_classes=4)

    def collate_fn(batch):
        return mix(*default_collate(batch))

    sampler = torch.utils.data.RandomSampler(dataset)
    # data_loader = torch.utils.data.DataLoader(
    data_loader = loader(dataset, batch_size=16, sampler=sampler, num_workers=workers, collate_fn=collate_fn)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 24 * 24, 4))
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _ in range(epochs):
        for image, target in data_loader:
            loss = criterion(model(image), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(train())
