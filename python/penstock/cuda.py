"""Batches on a CUDA device that a Go process gave: the other side of loader/cuda's Batch.IPC.

::

    with penstock.cuda.Imports(0) as imports:
        for line in connection:                                # JSON of cuda.IPC, by whatever the two processes have
            x = torch.as_tensor(imports.open(json.loads(line)), device="cuda:0")
            train_step(x)
            torch.cuda.current_stream().synchronize()
            ...                                                # signal the Go process that it may continue

Nothing is copied: the tensor is the memory of the Go process. It needs the driver's library and
nothing else of CUDA; torch, CuPy and Numba take what ``open`` returns.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from ._base.errors import Error
from ._base.forks import Owner, finalize

#: The driver's library, and where WSL has it.
LIBRARIES = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")

_PORTABLE = 1  # for all devices of the process: CU_MEMHOSTREGISTER_PORTABLE
_LAZY_PEER_ACCESS = 1  # the only flag of cuIpcOpenMemHandle, which has to be set


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_ubyte * 64),)


class DeviceArray:
    """A field of a batch in the memory of a device, which another process gave.

    ``torch.as_tensor(x, device=...)``, ``cupy.asarray(x)`` and ``numba.cuda.as_cuda_array(x)`` work
    on it in place, by the CUDA array interface; so it keeps the memory mapped for as long as
    something refers to it. bfloat16, which that interface does not know, appears as int16:
    ``torch.as_tensor(x, device=...).view(torch.bfloat16)``.
    """

    __slots__ = ("__cuda_array_interface__", "__weakref__", "_mapping", "dtype", "shape")

    def __init__(self, mapping: _Mapping, address: int, dtype: str, shape: tuple[int, ...]) -> None:
        self._mapping = mapping
        #: The type of the field, by the name that it has in the dataset.
        self.dtype = dtype
        self.shape = shape
        typestr = np.dtype(np.int16 if dtype == "bfloat16" else dtype).str
        self.__cuda_array_interface__ = {
            "version": 3, "shape": shape, "typestr": typestr, "data": (address, False), "strides": None, "stream": None,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<penstock device array of {self.dtype}{list(self.shape)}>"


class Imports:
    """Memory of other processes that this one has mapped, on the device of that ordinal.

    Each handle is mapped once, however often its slot comes round. After ``close``, memory is
    unmapped when nothing refers to an array over it any more; the giving process closes its
    Prefetcher after that, or after this process has ended. It may be used by several threads.
    """

    def __init__(self, device: int = 0) -> None:
        self.device = device
        self._context = Context(device)
        self._mapped: dict[bytes, _Mapping] | None = {}
        self._lock = threading.Lock()

    def open(self, given: Mapping[str, Any]) -> DeviceArray:
        """Return the field that ``given``, the JSON of a Go cuda.IPC, describes.

        It is on the device already. It is valid until this process reports to the giving process
        that it is not needed any more; work on it has to be done by then, and not only queued.
        """
        handle, offset = bytes(given["handle"]), int(given["offset"])
        shape = tuple(int(n) for n in given["shape"])
        if len(handle) != ctypes.sizeof(_Handle) or offset < 0 or min(shape, default=0) < 0:
            raise ValueError("not what Batch.IPC returned")
        if given["uuid"] != self._context.uuid:
            raise Error(
                f"the memory is on the device with the UUID {given['uuid']}, and device {self.device} has {self._context.uuid}: "
                "give Imports the ordinal of that device; CUDA_VISIBLE_DEVICES must name it in both processes"
            )
        with self._lock:
            if self._mapped is None:
                raise Error("these Imports are closed")
            if handle not in self._mapped:
                self._mapped[handle] = _Mapping(self._context, handle)
            mapping = self._mapped[handle]
        return DeviceArray(mapping, mapping.address + offset, given["dtype"], shape)

    def close(self) -> None:
        """Unmap what nothing refers to any more, and the rest when that is so."""
        with self._lock:
            self._mapped = None

    def __enter__(self) -> Imports:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Mapping:
    """Mapped memory, for as long as something refers to this."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, context: Context, handle: bytes) -> None:
        address = ctypes.c_uint64()
        try:
            context.call("cuIpcOpenMemHandle_v2", ctypes.byref(address), _Handle.from_buffer_copy(handle), ctypes.c_uint(_LAZY_PEER_ACCESS))
        except Error as e:
            raise Error(
                f"{e}; has the giving process ended, or closed its Prefetcher, or is it this one? between containers, "
                "both need the host's IPC and PID namespaces (docker run --ipc=host --pid=host)"
            ) from None
        self.address = address.value
        finalize(self, _unmap, context, address.value).atexit = False


def _release(driver: ctypes.CDLL, device: ctypes.c_int) -> None:
    driver.cuDevicePrimaryCtxRelease_v2(device)


def _unmap(context: Context, address: int) -> None:
    context.call("cuCtxSynchronize")
    context.call("cuIpcCloseMemHandle", ctypes.c_uint64(address))


class Context:
    """The primary context of a device: the one that torch, CuPy and Numba use."""

    def __init__(self, ordinal: int) -> None:
        self._owner = Owner()
        self._driver = _load()
        self._check("cuInit", ctypes.c_uint(0))
        device, context, uuid = ctypes.c_int(), ctypes.c_void_p(), (ctypes.c_ubyte * 16)()
        self._check("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
        self._check("cuDeviceGetUuid_v2", ctypes.byref(uuid), device)
        text = bytes(uuid).hex()
        #: The identifier of the device, the same in every process.
        self.uuid = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
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


def _load() -> ctypes.CDLL:
    for name in LIBRARIES:
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise Error(f"NVIDIA's driver cannot be opened: there is no {LIBRARIES[0]}; install it, in a container run with --gpus")
