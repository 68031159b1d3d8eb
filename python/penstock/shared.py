"""Memory that a feeder shares with this process, and arrays over it."""

from __future__ import annotations

import mmap
import os
from collections import deque

import numpy as np


class SharedMemory:
    """The mapping of an anonymous file that a feeder passed, which may grow."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._bytes = np.empty(0, np.uint8)

    def mapped(self, size: int) -> np.ndarray:
        """Return a mapping of at least size bytes: the one there is, if it is large enough.

        An older one is given back once no array over it is left.
        """
        if size > self._bytes.nbytes:
            self._bytes = np.frombuffer(mmap.mmap(self._fd, size), np.uint8)
        return self._bytes

    def close(self) -> None:
        """Forget the file. Memory is given back once no array over it is left."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._bytes = np.empty(0, np.uint8)


class Slot:
    """The place of one batch. When nothing refers to it any more, it is free again.

    Arrays over it refer to it, and so do arrays and tensors made of those.
    """

    __slots__ = ("_memory", "_number", "_freed", "_interface")

    def __init__(self, memory: np.ndarray, number: int, freed: deque[int]) -> None:
        self._memory, self._number, self._freed = memory, number, freed

    def array(self, at: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """Return the array at an offset. It can be written to: the batch is the trainer's."""
        return np.asarray(_View(self, self._memory[at:], dtype, shape))

    def __del__(self) -> None:
        self._freed.append(self._number)


class _View:
    """Shows NumPy an array, which then keeps the slot."""

    __slots__ = ("_slot", "__array_interface__")

    def __init__(self, slot: Slot, memory: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        need = dtype.itemsize
        for n in shape:
            need *= n
        if need > memory.nbytes:
            raise ValueError("a batch that ends beyond the shared memory")
        self._slot = slot
        address = memory.__array_interface__["data"][0]
        self.__array_interface__ = {"version": 3, "typestr": dtype.str, "shape": shape, "data": (address, False)}
