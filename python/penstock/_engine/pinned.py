"""Page-locked memory, which CUDA devices read while the CPU continues."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from .._base.errors import Error
from ..cuda import Context

_log = logging.getLogger("penstock")


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
            context.register(address, size)
        except Error as e:
            self.state = f"no: {size} bytes: {e}; is the limit of locked memory too low (ulimit -l)?"
            _log.warning("pin_memory: %s", self.state)
            self._context = None  # one half of a batch in such memory would gain nothing
            return None

        def unregister() -> None:
            if not sys.is_finalizing():  # then the driver, which may be gone, gives it back
                context.unregister(address)  # copies may be under way whose batches were dropped

        return unregister
