"""CRC32C (RFC 3720), which NumPy and the standard library do not have.

``google_crc32c`` is used where it is installed; otherwise many blocks are summed at once by
NumPy, at some hundred MB/s.
"""

from __future__ import annotations

import functools

import numpy as np

try:
    from google_crc32c import value as _value
except ImportError:
    _value = None

_POLYNOMIAL = 0x82F63B78


def of_blocks(blocks: np.ndarray) -> np.ndarray:
    """Return the CRC32C of every row of a two-dimensional array of bytes, as uint32."""
    if _value is not None:
        return np.array([_value(block.tobytes()) for block in blocks], np.uint32)
    return of_blocks_numpy(blocks)


def of_bytes(data: bytes) -> int:
    """Return the CRC32C of some bytes."""
    return int(of_blocks(np.frombuffer(data, np.uint8).reshape(1, -1))[0])


def of_blocks_numpy(blocks: np.ndarray) -> np.ndarray:
    """Do what of_blocks does, with nothing but NumPy.

    A CRC is the remainder of a polynomial, so that of two halves is the first one's, moved by
    the length of the second, plus the second one's. Beginning with words of 4 bytes, which are
    their own remainders, each round joins all neighbours of all blocks.
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
    return low[halves[..., 0::2].reshape(remainders.shape)] ^ high[halves[..., 1::2].reshape(remainders.shape)]


@functools.lru_cache(maxsize=64)
def _tables(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for both halves of a remainder, what it becomes count zero bytes later."""
    columns = [_zeros(1 << bit, count) for bit in range(32)]
    tables = []
    for half in (columns[:16], columns[16:]):
        table = np.zeros(1, np.uint32)
        for column in half:
            table = np.concatenate([table, table ^ np.uint32(column)])
        tables.append(table)
    return tables[0], tables[1]


def _zeros(remainder: int, count: int) -> int:
    """Return a remainder after count further zero bytes."""
    factor, square = 1 << 31, 1 << 23  # 1 and x^8: bit 31 is x^0 here
    while count:
        if count & 1:
            factor = _multiply(factor, square)
        square = _multiply(square, square)
        count >>= 1
    return _multiply(remainder, factor)


def _multiply(a: int, b: int) -> int:
    """Return the product of two remainders, modulo the polynomial."""
    product = 0
    for bit in range(31, -1, -1):
        if b >> bit & 1:
            product ^= a
        a = a >> 1 ^ (_POLYNOMIAL if a & 1 else 0)
    return product


def _bytewise(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
