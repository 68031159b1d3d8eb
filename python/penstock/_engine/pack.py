"""Packing: several records of variable length in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from .._base.dataclass import dataclass
from ..samplers import Arrays, Sampler


@dataclass(frozen=True)
class Pack:
    """How records of variable length are put into rows of ``length`` elements, each record in one piece.

    With ``samplers.Mix``, a row has records of one dataset, and the weights are the shares of rows.

    A batch then has rows: the packed fields with shape (length, ...), "positions" (which count the
    elements of each record from 0) and "segments" (which number the records of a row from 1; 0 is
    padding), both int32, and "cu_seqlens": where the records of all rows start, if rows are one
    after the other, and where the last one ends. Attention kernels for variable lengths take it.

    Fields that functions of ``transforms`` make are packed, too: their results are computed once, and kept in the cache.

    Args:
        length: Elements of a row.
        fields: The fields that are packed together, such as tokens and their targets; None means all of variable length.
        pad: The number that fills a row up, by field: ``{"targets": -100}``. It is 0 for others.
        overflow: A record longer than a row is an error ("fail"), cut at its end ("truncate"), or spread over rows ("split").
        max_open_rows: Rows that are filled at the same time; more of them pad less.
        sampler: The order in which records are packed; None is the dataset's. The DataLoader's sampler then orders the rows.
        seed: Seed of ``sampler``.
        epoch: Epoch of ``sampler``.

    Example:
        ``penstock.DataLoader("corpus", 8, pack=penstock.Pack(2048, overflow="split"))``
    """

    length: int
    fields: Sequence[str] | None = None
    pad: Mapping[str, float] = field(default_factory=dict)
    overflow: Literal["fail", "truncate", "split"] = "fail"
    max_open_rows: int = 64
    sampler: Sampler | None = None
    seed: int = 0
    epoch: int = 0

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        out: dict[str, Any] = {
            "length": self.length, "fields": list(self.fields or ()), "pad": dict(self.pad), "overflow": self.overflow,
            "max_open_rows": self.max_open_rows, "seed": self.seed, "epoch": self.epoch,
        }  # fmt: skip
        if self.sampler is not None:
            out["sampler"] = self.sampler.to_json(arrays)
        return out
