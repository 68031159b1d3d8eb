"""Packing: several records of variable length in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .samplers import Arrays, Sampler


@dataclass(frozen=True)
class Pack:
    """How records of variable length are put into rows of ``length`` elements, each record in one piece.

    A batch then has rows: the packed fields with shape (length, ...), "positions" (which count the
    elements of each record from 0) and "segments" (which number the records of a row from 1; 0 is
    padding), both int32, and "cu_seqlens": where the records of all rows start, if rows are one
    after the other, and where the last one ends. Attention kernels for variable lengths take it.

    ``fields`` go together, such as tokens and their targets; None means all of variable length.
    ``pad`` fills rows up, by field; 0 without it. ``overflow`` says what becomes of records longer
    than a row: "fail", "truncate" (at their end) or "split" (into rows, and the rest).
    ``max_open_rows`` are filled at a time: more pad less. ``sampler`` is the order in which records are packed, by
    ``seed`` and ``epoch``; rows are then ordered by the DataLoader's sampler.
    """

    length: int
    fields: Sequence[str] | None = None
    pad: Mapping[str, float] = field(default_factory=dict)
    overflow: str = "fail"
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
