"""Page-locked memory, which CUDA devices read while the processor goes on."""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable
from contextlib import suppress

from .cuda import Context
from .errors import Error

_log = logging.getLogger("penstock")

_PORTABLE = 1  # for all devices of the process: CU_MEMHOSTREGISTER_PORTABLE


class Unpinned:
    """Page-locks nothing."""

    def __init__(self, why: str) -> None:
        self.state = f"no: {why}"

    def register(self, address: int, size: int) -> None:
        return None


class Pinning:
    """Page-locks memory by NVIDIA's driver: for torch, JAX and CuPy, which all know of it then."""

    def __init__(self, device: int) -> None:
        self._context: Context | None = None
        #: Whether memory is page-locked, or why not.
        self.state = "yes"
        try:
            self._context = Context(device)
        except Error as e:
            self.state = f"no: {e}"

    def register(self, address: int, size: int) -> Callable[[], None] | None:
        """Page-lock memory, and return what has to be called before it is unmapped; None if it cannot be."""
        context = self._context
        if context is None:
            return None
        try:
            context.call("cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_uint(_PORTABLE))
        except Error as e:
            self.state = f"no: {size} bytes: {e}; is the limit of locked memory too low (ulimit -l)?"
            _log.warning("pin_memory: %s", self.state)
            self._context = None  # one half of a batch in such memory would gain nothing
            return None

        def unregister() -> None:
            if sys.is_finalizing():
                return  # the driver, which may be gone, gives it back
            with suppress(Error):  # of a child of fork, where it is not registered; of work that failed earlier
                context.call("cuCtxSynchronize")  # copies may be under way whose batches were dropped
            with suppress(Error):
                context.call("cuMemHostUnregister", ctypes.c_void_p(address))

        return unregister
