"""A detection and a segmentation model of torchvision, trained by torchvision's own datasets and loader, and by penstock.

    python python/examples/torchvision_references.py -h

Its argument is a folder of COCO, with annotations/instances_train2017.json and train2017/. The loops are
those of torchvision's references, short. `loaders` has both loaders side by side: what changes for penstock are the lines
of the dataset, of the transforms and of the DataLoader, and one in the loop.
"""

import argparse
import contextlib
import itertools
import os
import statistics

import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
from torchvision.transforms import v2

import penstock.torch
from penstock import transforms as T

SIZE = (320, 320)


def model_of(task, classes):
    """Return a light model of torchvision without weights, which needs no network."""
    if task == "detection":
        return torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=classes)
    return torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=classes)


class Segmentation(torch.utils.data.Dataset):
    """Images with a class for each pixel, as torchvision's reference for segmentation draws them from COCO's outlines."""

    def __init__(self, images, transforms):
        self.images, self.transforms = images, transforms

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image, target = self.images[i]
        mask = torch.zeros(image.size[::-1], dtype=torch.uint8)
        if "masks" in target:
            labels = target["labels"][:, None, None].to(torch.uint8)
            mask, _ = (target["masks"] * labels).max(0)
            mask[target["masks"].sum(0) > 1] = 255
        return self.transforms(image, torchvision.tv_tensors.Mask(mask))


def theirs(folder, task, batch, workers, seed):
    """Return torchvision's dataset and torch's DataLoader."""
    path = os.path.join(folder, "annotations", "instances_train2017.json")
    moves = [v2.ToImage(), v2.RandomHorizontalFlip(), v2.Resize(SIZE, antialias=True), v2.ToDtype(torch.float32, scale=True)]
    order = torch.Generator().manual_seed(seed)
    if task == "detection":
        with contextlib.redirect_stdout(None):
            images = CocoDetection(os.path.join(folder, "train2017"), path, transforms=v2.Compose([*moves, v2.SanitizeBoundingBoxes()]))
        images = wrap_dataset_for_transforms_v2(images, target_keys=("boxes", "labels"))
        return DataLoader(
            images, batch, shuffle=True, generator=order, num_workers=workers, drop_last=True, collate_fn=lambda rows: tuple(zip(*rows))
        )
    with contextlib.redirect_stdout(None):
        images = CocoDetection(os.path.join(folder, "train2017"), path)
    masks = Segmentation(wrap_dataset_for_transforms_v2(images, target_keys=("labels", "masks")), v2.Compose(moves))
    return DataLoader(masks, batch, shuffle=True, generator=order, num_workers=workers, drop_last=True)


def ours(folder, task, batch, workers, seed):
    """Return penstock's DataLoader, of a dataset that is prepared once."""
    dataset = f"{os.path.normpath(folder)}-{task}"
    if not os.path.exists(dataset):
        penstock.preprocess(folder, dataset, keep_encoded=True, fields="images,boxes,labels" if task == "detection" else "images,mask")
    moves = [T.RandomHorizontalFlip(), T.Resize(SIZE), T.SanitizeBoundingBoxes(), T.ToTensor()]
    if task == "segmentation":
        moves.pop(2)
    return penstock.DataLoader(dataset, batch, shuffle=True, seed=seed, num_workers=workers, drop_last=True, transforms=moves)


def losses(folder, task, kind, seed, steps=20, batch=4, workers=2, classes=91):
    """Train, and return the loss of each step."""
    torch.manual_seed(seed)
    model = model_of(task, classes).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader, curve = (ours if kind == "penstock" else theirs)(folder, task, batch, workers, seed), []
    batches = itertools.chain.from_iterable(loader for _ in range(steps))
    for batch in itertools.islice(batches, steps):
        if task == "detection":
            images, targets = penstock.torch.detection(batch) if kind == "penstock" else batch
            loss = sum(model(list(images), [t if "boxes" in t else EMPTY for t in targets]).values())
        else:
            images, mask = batch[0], batch[1]
            loss = torch.nn.functional.cross_entropy(model(images)["out"], mask.long(), ignore_index=255)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve


#: The target of an image without objects, for which the wrapper of torchvision has none.
EMPTY = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--task", choices=("detection", "segmentation"), default="detection")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    for kind in ("torchvision", "penstock"):
        curves = [losses(options.folder, options.task, kind, seed, options.steps, workers=options.workers) for seed in range(options.seeds)]
        means = [statistics.mean(values) for values in zip(*curves)]
        spread = [statistics.pstdev(values) for values in zip(*curves)]
        print(kind, " ".join(f"{m:.3f}±{s:.3f}" for m, s in zip(means, spread)), flush=True)


if __name__ == "__main__":
    main()
