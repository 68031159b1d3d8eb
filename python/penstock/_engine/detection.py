"""Batches as torchvision's detection models take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from .jagged import Jagged


def detection(
    batch: Any, images: str = "images", fields: Mapping[str, str] | None = None, first_label: int = 1, tv_tensors: bool = False
) -> tuple[list[torch.Tensor], list[dict[str, Any]]]:
    """Return the images of a batch as a list, and a list of dicts with what lies on each.

    ::

        for batch in loader:
            images, targets = penstock.torch.detection(batch)
            losses = model(images, targets)                 # fasterrcnn_resnet50_fpn, maskrcnn, keypointrcnn

    Tensors are views of the batch, but for labels, and flags as int64. For images that ``PadToLargest`` has padded, and
    their masks, they cover the part without padding.

    Args:
        batch: A batch of a DataLoader with output="torch", or a penstock.Batch of tensors.
        images: The field of images.
        fields: The fields of the targets by their names there: ``{"boxes": "bbox", "labels": "category"}``. None is every other
            field, by its own name.
        first_label: The number of the first class: torchvision's models take 0 for the background.
        tv_tensors: Wrap images, boxes, masks and keypoints in ``torchvision.tv_tensors``, for transforms of torchvision.

    Raise KeyError for a field that the batch does not have, TypeError for one that is not a tensor.
    """
    names = [name for name, _ in batch.items()] if hasattr(batch, "items") else list(batch.arrays)
    sizes = f"{images}_sizes"
    chosen = {name: name for name in names if name not in (images, sizes)} if fields is None else dict(fields)
    for name in [images, *chosen.values()]:
        if name not in names:
            raise KeyError(f"no field {name!r}; there are: {', '.join(names)}")
    pictures = batch[images]
    if not isinstance(pictures, torch.Tensor) or pictures.ndim != 4:
        wanted = 'a tensor of images of one size, or padded to one, is expected, as output="torch" and transforms make it'
        raise TypeError(f"field {images!r} is {_kind(pictures)}; {wanted}")
    columns: dict[str, list[Any]] = {}
    for key, name in chosen.items():
        values = batch[name]
        if isinstance(values, (torch.Tensor, Jagged)):
            columns[key] = _target(key, values, first_label)
        elif fields is not None:
            raise TypeError(f"field {name!r} is {_kind(values)}, not a tensor")
    whole = (int(pictures.shape[-2]), int(pictures.shape[-1]))
    of = [(int(h), int(w)) for h, w in batch[sizes]] if sizes in names else [whole] * len(pictures)
    if sizes in names:
        for key in columns.keys() & {"mask", "masks"}:
            columns[key] = [mask[..., :h, :w] for mask, (h, w) in zip(columns[key], of)]
    wraps: list[Mapping[str, Callable[[torch.Tensor], Any]]] = [_wrappers(size) if tv_tensors else {} for size in of]
    listed = [_wrapped(wrap, "image", picture[..., :h, :w]) for wrap, picture, (h, w) in zip(wraps, pictures, of)]
    return listed, [{key: _wrapped(wrap, key, values[i]) for key, values in columns.items()} for i, wrap in enumerate(wraps)]


def padding_mask(batch: Any, images: str = "images") -> torch.Tensor:
    """Return which pixels of images that ``PadToLargest`` has padded are not theirs, as a bool of shape (records, height, width).

    It is the mask of DETR's NestedTensor; ``~padding_mask(batch)`` is the pixel_mask of transformers.
    """
    pictures, sizes = batch[images], batch[f"{images}_sizes"]
    height, width = torch.arange(pictures.shape[-2]), torch.arange(pictures.shape[-1])
    within = (height < sizes[:, :1].cpu())[:, :, None] & (width < sizes[:, 1:].cpu())[:, None, :]
    return torch.logical_not(within).to(pictures.device)


def _target(key: str, values: torch.Tensor | Jagged, first_label: int) -> list[Any]:
    """Return the value of each record, with the type that torchvision's models have for it."""
    if key == "labels" and first_label:
        values = Jagged(values.values + first_label, values.offsets) if isinstance(values, Jagged) else values + first_label
    if key == "iscrowd":
        values = values.to(torch.int64)
    return list(values) if isinstance(values, Jagged) else list(values.unbind())


def _wrappers(size: tuple[int, int]) -> dict[str, Callable[[torch.Tensor], Any]]:
    """Return functions that wrap an image of that height and width, and its boxes and masks, as tv_tensors."""
    from torchvision import tv_tensors as tv  # which few need

    def keypoints(values: torch.Tensor) -> Any:
        return tv.KeyPoints(values[..., :2], canvas_size=size)

    return {
        "image": tv.Image, "mask": tv.Mask, "masks": tv.Mask, "keypoints": keypoints,
        "boxes": lambda values: tv.BoundingBoxes(values, format="XYXY", canvas_size=size),
    }  # fmt: skip


def _wrapped(wrap: Mapping[str, Callable[[torch.Tensor], Any]], key: str, value: Any) -> Any:
    return wrap[key](value) if key in wrap else value


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" + (f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else "")
