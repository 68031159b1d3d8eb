"""What checkers know of penstock. mypy and pyright read this file, and nothing runs it.

A line with ``type: ignore`` is a mistake: both checkers fail if they do not find it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.utils.data

import penstock
import penstock.torch
from penstock._engine.batch import Batch, BatchDict, BatchTuple

if TYPE_CHECKING:
    from typing_extensions import assert_type


def steps(loader: torch.utils.data.DataLoader[Any]) -> int:
    return len(loader)


def train(loader: penstock.DataLoader) -> None:
    for batch in loader:
        assert_type(batch, Any)


def loss(batch: penstock.LoaderBatch[torch.Tensor]) -> torch.Tensor:
    return batch["images"].mean()


def counts_of(batch: penstock.LoaderBatch[torch.Tensor | penstock.torch.Jagged]) -> int:
    """Fields of variable length and text are no tensors, which an annotation says."""
    boxes = batch["boxes"]
    return len(boxes.offsets) if isinstance(boxes, penstock.torch.Jagged) else len(boxes)


def tensors() -> None:
    loader = penstock.DataLoader("photos", 256, shuffle=True, num_workers=4, on_error="backfill", rank="auto")
    assert_type(loader, penstock.DataLoader[BatchTuple[torch.Tensor]])
    steps(loader)
    train(loader)
    for batch in loader:
        assert_type(batch["images"], torch.Tensor)
        assert_type(batch.images, torch.Tensor)
        assert_type(batch[0], torch.Tensor)
        assert_type(batch.indices, np.ndarray)
        assert_type(batch.to("cuda"), BatchTuple[torch.Tensor])
        loss(batch)
    for images, labels in loader:
        assert_type(images, torch.Tensor)
        assert_type(labels, torch.Tensor)
    for named in penstock.DataLoader("photos", batch_type=dict):
        assert_type(named, BatchDict[torch.Tensor])
        for name, values in named.items():
            assert_type(name, str)
            assert_type(values, torch.Tensor)
        loss(named)


def arrays() -> None:
    with penstock.DataLoader(["a", "b"], 256, output="numpy", split="train") as loader:
        assert_type(loader, penstock.DataLoader[BatchTuple[np.ndarray]])
        for images, _ in loader:
            assert_type(images, np.ndarray)
    with penstock.DataLoader(penstock.open("a"), output="numpy", batch_type=dict) as named:
        assert_type(next(iter(named))["images"], np.ndarray)
        steps(named)


def of_functions(samples: torch.utils.data.Dataset[int]) -> None:
    def collate(records: list[dict[str, torch.Tensor]]) -> list[int]:
        return [len(records)]

    for counts in penstock.DataLoader("photos", 8, collate_fn=collate):
        assert_type(counts, list[int])
    for batch in penstock.DataLoader(samples, 8, True, num_workers=2):
        assert_type(batch, Any)
    for objects in penstock.DataLoader("objects", 8):
        counts_of(objects)


def datasets() -> None:
    ds = penstock.open("photos")
    assert_type(ds[7], dict[str, np.ndarray])
    assert_type(ds["images"], penstock.Records)
    assert_type(ds["images"][0:64], np.ndarray)
    assert_type(ds[0:64], Batch[np.ndarray])
    assert_type(ds[[3, 1, 2]]["images"], np.ndarray)
    assert_type(ds.filter("label = 'cat'")[0]["images"], np.ndarray)
    text: dict[str, Any] = ds[7]
    text["caption"].upper()


def mistakes(ds: penstock.Dataset) -> None:
    penstock.DataLoader("photos")[0]  # type: ignore[index]
    penstock.DataLoader("photos", output="tensorflow")  # type: ignore[call-overload]
    penstock.DataLoader("photos", on_error="skip")  # type: ignore[call-overload]
    penstock.DataLoader("photos", prepare="always")  # type: ignore[call-overload]
    penstock.DataLoader("photos", verify="on")  # type: ignore[call-overload]
    penstock.DataLoader("photos", rank="all")  # type: ignore[call-overload]
    penstock.DataLoader("photos", batch_type=list)  # type: ignore[arg-type]
    penstock.DataLoader("photos", shufle=True)  # type: ignore[call-overload]
    penstock.DataLoader("photos", collate_fn=3)  # type: ignore[call-overload]
    penstock.open("photos", mode="w")  # type: ignore[arg-type]
    penstock.Pack(2048, overflow="cut")  # type: ignore[arg-type]
    ds.join(ds, "id", how="outer")  # type: ignore[arg-type]
    ds.windows({"time": 3}, pad="zero")  # type: ignore[arg-type]
    ds["images"].upper()  # type: ignore[attr-defined]
    ds[0]["images"].upper()  # type: ignore[attr-defined]
    for images, _ in penstock.DataLoader("photos"):
        images.upper()  # type: ignore[attr-defined]
