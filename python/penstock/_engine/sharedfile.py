"""A file without a name, which processes share as memory.

On Linux it is anonymous memory, elsewhere a file in the temporary folder that nobody else can open.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
from typing import Any

from .._base.errors import Error
from .._base.forks import shared
from .wire import Malformed

#: The variable that chooses how processes share files: "native" or "portable".
TRANSPORT = "PENSTOCK_TRANSPORT"

_UNTRACKED: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) and os.name == "posix" else {}


def transport() -> str:
    """Return how this process shares files with others.

    "native" is anonymous memory, whose descriptor is passed over a unix socket: on Linux. "portable" is a file in the
    temporary folder, which a child process inherits: elsewhere, and where the environment says so.
    """
    able = sys.platform == "linux" and hasattr(os, "memfd_create") and hasattr(socket, "recv_fds")
    chosen = os.environ.get(TRANSPORT) or ("native" if able else "portable")
    if chosen not in ("native", "portable"):
        raise Error(f"environment: {TRANSPORT}={chosen}: must be native or portable")
    if chosen == "native" and not able:
        raise Error(f"environment: {TRANSPORT}=native needs Linux; unset it")
    return chosen


class SharedFile:
    """A file without a name, which several processes map. It may grow, and what was mapped stays as it is.

    It is gone when no process has it open or mapped. A child process gets it by inheritance: see process.Inherited. One that
    multiprocessing starts gets it as an argument. A file in the temporary folder has room for all that it has grown to, so
    that a full disk is an OSError of ``grow``, and not the end of a process that writes to the memory.
    """

    __slots__ = ("fd", "on_disk")

    def __init__(self, fd: int, on_disk: bool = False) -> None:
        #: The descriptor. This object closes it.
        self.fd = fd
        #: Whether it takes room for bytes that nobody has written.
        self.on_disk = on_disk

    @classmethod
    def create(cls) -> SharedFile:
        """Make an empty file, as ``transport`` says."""
        if transport() == "native":
            return cls(os.memfd_create("penstock"))
        import tempfile  # 3 ms, and on Linux not needed

        if sys.platform != "win32":
            with tempfile.TemporaryFile(prefix="penstock-", buffering=0) as file:
                return cls(os.dup(file.fileno()), True)
        path = os.path.join(tempfile.gettempdir(), f"penstock-{os.urandom(16).hex()}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_BINARY | os.O_NOINHERIT
        return cls(os.open(path, flags | os.O_TEMPORARY | os.O_SHORT_LIVED, 0o600), True)  # removed at the end, in memory until then

    @classmethod
    def passed(cls, fd: int) -> SharedFile:
        """Return the memory that a feeding process passed.

        It must be sealed against shrinking: a read beyond the end of the file would end this process. If the memory is refused,
        the descriptor is closed.
        """
        import fcntl  # which Windows does not have

        try:
            sealed = bool(fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
        except OSError:  # other files have no seals
            sealed = False
        if not sealed:
            os.close(fd)
            raise Malformed("memory that is not a memfd sealed against shrinking")
        return cls(fd)

    @property
    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def grow(self, size: int) -> None:
        """Make it at least that long. Bytes that are added are zero."""
        at = self.size
        if not self.on_disk:
            os.ftruncate(self.fd, max(at, size))
        else:
            while at < size:
                at += _write(self.fd, bytes(min(size - at, 1 << 20)), at)

    def append(self, data: memoryview) -> None:
        """Write bytes at its end."""
        while data:
            data = data[_write(self.fd, data[: 1 << 30], self.size) :]

    def map(self, start: int, size: int) -> mmap.mmap:
        """Map bytes of the file, from a multiple of mmap.ALLOCATIONGRANULARITY on. The file must have these bytes."""
        if size > self.size - start:  # which Windows would add
            raise ValueError(f"{size} bytes from byte {start} on of a file of {self.size}")
        # A mapping keeps a descriptor before Python 3.13, so there should be few mappings.
        return shared(mmap.mmap(self.fd, size, offset=start, **_UNTRACKED))

    def copy(self) -> SharedFile:
        """Return the same file with another descriptor."""
        return SharedFile(os.dup(self.fd), self.on_disk)

    def close(self) -> None:
        """Close it. Mapped memory stays."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing import context, reduction

        context.assert_spawning(self)
        if sys.platform == "win32":
            import _winapi
            import msvcrt

            access = _winapi.GENERIC_READ | _winapi.GENERIC_WRITE
            return _spawned, (reduction.DupHandle(msvcrt.get_osfhandle(self.fd), access), self.on_disk)
        return _spawned, (reduction.DupFd(self.fd), self.on_disk)


def _write(fd: int, data: bytes | memoryview, at: int) -> int:
    """Write some bytes at an offset, and return how many. On Unix, the position, which processes share, stays as it is."""
    if sys.platform != "win32":
        return os.pwrite(fd, data, at)
    os.lseek(fd, at, os.SEEK_SET)
    return os.write(fd, data)


def _spawned(duplicate: Any, on_disk: bool) -> SharedFile:
    """Return the file in a process that multiprocessing has started."""
    number: int = duplicate.detach()
    if sys.platform == "win32":
        import msvcrt

        number = msvcrt.open_osfhandle(number, os.O_RDWR | os.O_BINARY | os.O_NOINHERIT)
    return SharedFile(number, on_disk)
