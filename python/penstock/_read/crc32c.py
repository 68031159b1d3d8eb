"""CRC32C (RFC 3720), which NumPy and the standard library do not have.

The checksum of a manifest is compared with it. NumPy sums pieces at once, at some hundred MB/s.
"""

from __future__ import annotations

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78


def of_bytes(data: bytes) -> int:
    """Return the CRC32C of some bytes."""
    if len(data) < 1 << 16:  # less work than the tables below
        return _bytewise(data)
    return int(of_blocks(np.frombuffer(data, np.uint8).reshape(1, -1))[0])


def of_blocks(blocks: np.ndarray) -> np.ndarray:
    """Return the CRC32C of every row of a two-dimensional array of bytes, as uint32, with nothing but NumPy.

    A CRC is the remainder of a polynomial, so the CRC of two halves is the first half's CRC, moved by
    the length of the second, plus the second half's CRC. Beginning with words of 4 bytes, which are
    their own remainders, each round joins all neighbors of all blocks.
    """
    count, size = blocks.shape
    if size < 4:
        return np.array([_bytewise(row.tobytes()) for row in blocks], np.uint32)
    # Zeros in front change nothing, once the initial value is added to the first four bytes.
    front = -size % 4
    padded = np.zeros((count, front + size), np.uint8)
    padded[:, front:] = blocks
    padded[:, front : front + 4] ^= 0xFF
    rest = padded.view("<u4").astype(np.uint32, copy=False)
    moved = 4
    while rest.shape[1] > 1:
        if rest.shape[1] % 2:
            rest = np.concatenate([np.zeros((count, 1), np.uint32), rest], axis=1)
        rest = _move(rest[:, 0::2], moved) ^ rest[:, 1::2]
        moved *= 2
    return _move(rest[:, 0], 4) ^ np.uint32(0xFFFFFFFF)


def _move(remainders: np.ndarray, count: int) -> np.ndarray:
    low, high = _tables(count)
    halves = np.ascontiguousarray(remainders).view("<u2")
    moved: np.ndarray = low[halves[..., 0::2].reshape(remainders.shape)] ^ high[halves[..., 1::2].reshape(remainders.shape)]
    return moved


@functools.lru_cache(maxsize=64)
def _tables(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for both halves of a remainder, what it becomes count zero bytes later."""
    factor, square = 1 << 31, 1 << 23  # 1 and x^8: bit 31 is x^0 here
    while count:
        if count & 1:
            factor = _multiply(factor, square)
        square = _multiply(square, square)
        count >>= 1
    columns = [_multiply(1 << bit, factor) for bit in range(32)]
    return _sums(columns[:16]), _sums(columns[16:])


def _sums(columns: list[int]) -> np.ndarray:
    """Return, for every number of that many bits, the sum of the columns of its bits."""
    table = np.zeros(1, np.uint32)
    for column in columns:
        table = np.concatenate([table, table ^ np.uint32(column)])
    return table


def _multiply(a: int, b: int) -> int:
    """Return the product of two remainders, modulo the polynomial."""
    product = 0
    for bit in range(31, -1, -1):
        if b >> bit & 1:
            product ^= a
        a = _times_x(a)
    return product


def _times_x(a: int) -> int:
    return a >> 1 ^ (_POLYNOMIAL if a & 1 else 0)


@functools.lru_cache(maxsize=1)
def _by_byte() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [_times_x(a) for a in table]
    return table


def _bytewise(data: bytes) -> int:
    table, crc = _by_byte(), 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
