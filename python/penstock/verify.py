"""Comparing records with their checksums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from . import crc32c
from .chunked import ChunkedColumn
from .column import Column, Extent
from .errors import CorruptError, Corruption
from .layout import block_rows, blocks

#: About as many bytes are summed at once.
_STEP = 4 << 20


def verify(columns: Iterable[Column | ChunkedColumn]) -> tuple[int, list[Corruption], list[str]]:
    """Return the bytes that were compared, what is corrupt, and the columns without checksums."""
    compared, corruptions, unchecked = 0, [], []
    for column in columns:
        for k, extent in enumerate(column.extents):
            sums = None if isinstance(column, ChunkedColumn) else _sums(column, extent)
            if sums is None or isinstance(column, ChunkedColumn):
                unchecked.append(column.name)
                continue
            compared += extent.count * column.row_bytes
            corruptions += _joined(Corruption(column.name, extent.path, a, b) for a, b in _compare(column, k, sums))
    return compared, corruptions, unchecked


def _sums(column: Column, extent: Extent) -> np.ndarray | None:
    if extent.sums is None:
        return None
    path, offset = extent.sums
    with open(path, "rb") as f:
        head = f.read(offset) if extent.sums_crc32c else b""
        f.seek(offset)
        count = blocks(extent.count, column.row_bytes)
        data = f.read(4 * count)
    if len(data) != 4 * count or (extent.sums_crc32c and count and _hex(head + data) != extent.sums_crc32c):
        raise CorruptError(f"{path}: the checksums themselves are not what was written")
    return np.frombuffer(data, "<u4")


def _hex(data: bytes) -> str:
    return f"{crc32c.of_bytes(data):08x}"


def _compare(column: Column, k: int, sums: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the rows of every block of an extent that has another checksum."""
    rows, size = block_rows(column.row_bytes), column.row_bytes
    data = column.part(k).reshape(-1).view(np.uint8)
    whole = len(data) // (rows * size)
    step = max(1, _STEP // (rows * size))
    for start in range(0, whole, step):
        end = min(whole, start + step)
        got = crc32c.of_blocks(data[start * rows * size : end * rows * size].reshape(end - start, -1))
        for b in (np.flatnonzero(got != sums[start:end]) + start).tolist():
            yield b * rows, (b + 1) * rows
    if whole < len(sums):
        rest = data[whole * rows * size :].reshape(1, -1)
        if crc32c.of_blocks(rest)[0] != sums[whole]:
            yield whole * rows, len(data) // size


def _joined(corruptions: Iterator[Corruption]) -> list[Corruption]:
    """Join corruptions that follow each other."""
    joined: list[Corruption] = []
    for d in corruptions:
        if joined and joined[-1].end == d.first:
            d = Corruption(d.column, d.path, joined.pop().first, d.end)
        joined.append(d)
    return joined
