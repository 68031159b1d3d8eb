"""bfloat16, the upper half of a float32, which NumPy has no type for.

Arrays of bfloat16 have the type of ``dtype()``, wherever penstock returns them: ``ml_dtypes.bfloat16`` where that package is installed,
as it is with JAX, and otherwise a structured type with one member called bfloat16. NumPy refuses to calculate with the latter, so that
nobody takes the bits for numbers: ``to_float32`` decodes them, and ``x.view("u2")`` shows them.
"""

from __future__ import annotations

import functools

import numpy as np

#: The type where ml_dtypes is not installed.
_BITS = np.dtype([("bfloat16", "V2")])


@functools.cache
def dtype() -> np.dtype:
    """Return the NumPy type of arrays of bfloat16 in this process."""
    try:
        import ml_dtypes
    except ImportError:
        return _BITS
    found: np.dtype = np.dtype(ml_dtypes.bfloat16)
    return found


def is_bfloat16(of: np.dtype) -> bool:
    """Return whether a NumPy type is bfloat16, as ml_dtypes or this module has it."""
    return of.kind == "V" and (of == _BITS or of.name == "bfloat16")


def to_float32(values: np.ndarray) -> np.ndarray:
    """Return the exact values of bfloat16 numbers, of any shape, as float32.

    Raise TypeError for an array of another type, such as the bits as uint16: ``bits.view(penstock.bfloat16.dtype())`` are the numbers.
    """
    values = np.asarray(values)
    if not is_bfloat16(values.dtype):
        raise TypeError(f"values are {values.dtype}, and not bfloat16; of bits as uint16, give bits.view(penstock.bfloat16.dtype())")
    return (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def from_float32(values: np.ndarray) -> np.ndarray:
    """Return the nearest bfloat16 numbers, of the same shape and the type ``dtype()``: ties to even, and a NaN stays a quiet NaN."""
    values = np.asarray(values, np.float32)
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    nan = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), nan, rounded).astype(np.uint16).view(dtype())
