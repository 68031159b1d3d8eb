"""bfloat16, the upper half of a float32, in a NumPy that has no such type."""

from __future__ import annotations

import numpy as np


def to_float32(bits: np.ndarray) -> np.ndarray:
    """Return the exact values of bfloat16 numbers that are given as uint16."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def from_float32(values: np.ndarray) -> np.ndarray:
    """Return the nearest bfloat16 numbers as uint16, ties to even; a NaN stays a quiet NaN."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    nan = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), nan, rounded).astype(np.uint16)
