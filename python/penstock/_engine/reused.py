"""Memory that is used again: new memory of many MB costs more than what is written to it, as the system clears each page.

It is for the batches of a TorchDataset.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np

#: Smaller blocks the C library keeps itself: it asks the system for each block from this size on.
_LEAST = 32 << 20

#: Arrays begin at multiples of it: a cache line.
_ALIGNMENT = 64

#: Blocks that wait to be used again.
_MOST = 2


class Memory:
    """Makes arrays, in blocks that nothing refers to any more where there are such."""

    def __init__(self) -> None:
        self._free: deque[np.ndarray] = deque(maxlen=_MOST)

    def __reduce__(self) -> tuple[Any, ...]:
        return Memory, ()  # each process has its own

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an array of any values. It keeps its memory, and so do arrays and tensors over it."""
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if size < _LEAST:
            return np.empty(shape, dtype)
        try:
            block: np.ndarray | None = self._free.pop()
        except IndexError:  # or another thread took it
            block = None
        if block is None or not size + _ALIGNMENT <= len(block) <= 2 * size:
            block = np.empty(size + _ALIGNMENT, np.uint8)
        lease = _Lease(block, shape, dtype)
        weakref.finalize(lease, self._free.append, block).atexit = False
        return np.asarray(lease)


class _Lease:
    """Shows NumPy an array in a block, which then keeps this."""

    __slots__ = ("__array_interface__", "__weakref__")

    def __init__(self, block: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> None:
        start = -(-block.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        self.__array_interface__ = {"version": 3, "typestr": dtype.str, "shape": shape, "data": (start, False)}
