"""Page-locked memory, which CUDA devices read while the CPU continues.

It calls NVIDIA's driver by ctypes: so torch, JAX and CuPy all know of the memory, and none of these packages has to be
installed.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .._base.errors import Error
from .._base.forks import Owner, finalize

#: The driver's library, and where WSL has it.
LIBRARIES = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")

_PORTABLE = 1  # for all devices of the process: CU_MEMHOSTREGISTER_PORTABLE

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
        """Page-lock memory, and return the function to call before it is unmapped; None if it cannot be locked."""
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


class Context:
    """The primary context of a device: the context that torch, CuPy and Numba use."""

    def __init__(self, ordinal: int) -> None:
        self._owner = Owner()
        self._driver = _load()
        self._check("cuInit", ctypes.c_uint(0))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._check("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
        self._check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._handle = context
        # At the end of the process the driver may be gone, and gives everything back itself.
        finalize(self, _release, self._driver, device).atexit = False

    def call(self, name: str, *args: Any) -> None:
        """Call a function of the driver in this context, and leave the thread's own as it was.

        CUDA does not work in a child of fork: there this raises an error, and calls nothing.
        """
        if not self._owner.here:
            raise Error("CUDA cannot be used in a child of fork: start the process with spawn")
        with self._current():
            self._check(name, *args)

    def register(self, address: int, size: int) -> None:
        """Page-lock memory of the host."""
        self.call("cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_uint(_PORTABLE))

    def unregister(self, address: int) -> None:
        """Undo register, when no copies are under way."""
        with suppress(Error):  # of work that failed earlier
            self.call("cuCtxSynchronize")
        with suppress(Error):  # of a child of fork, where it is not registered
            self.call("cuMemHostUnregister", ctypes.c_void_p(address))

    @contextmanager
    def _current(self) -> Iterator[None]:
        self._check("cuCtxPushCurrent_v2", self._handle)
        try:
            yield
        finally:
            self._check("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def _check(self, name: str, *args: Any) -> None:
        code = getattr(self._driver, name)(*args)
        if code != 0:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(code, ctypes.byref(text))
            raise Error(f"{name}: {(text.value or b'error').decode()} ({code})")


def _release(driver: ctypes.CDLL, device: ctypes.c_int) -> None:
    driver.cuDevicePrimaryCtxRelease_v2(device)


def _load() -> ctypes.CDLL:
    for name in LIBRARIES:
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise Error(f"NVIDIA's driver cannot be opened: there is no {LIBRARIES[0]}; install it, in a container run with --gpus")
