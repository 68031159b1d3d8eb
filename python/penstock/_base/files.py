"""Files under names that other users of the machine know, may write to or have planted: the twin of Go's package private.

A file that is complete takes its name by a rename, from a name beside it that nobody can guess. Temporary files are in a folder
of this process, inside a folder of this user.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import time
from collections.abc import Iterator
from typing import IO, Any

from .errors import Error, UnsupportedError
from .forks import Owner, finalize, lock

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY
for _name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
    _READ |= getattr(os, _name, 0)


def open_in(folder: str | None, path: str) -> io.FileIO:
    """Open a regular file of a finished dataset for reading, without a buffer: the twin of Go's vfs.OpenIn.

    A stranger may have made the dataset. A link in the path is followed as long as it stays in the folder of the dataset; in the
    cache of the Hugging Face Hub, in the folder of the repository. Of a dataset that is one file, which the user named, the
    folder is None and links are followed.

    Raises:
        Error: It is a link out of the folder, or a pipe, socket, device or folder.
        OSError: The system does not open it.
    """
    try:
        if folder is None:
            fd = os.open(path, _READ)
        elif os.path.dirname(path) == folder.rstrip(os.sep):
            fd = os.open(path, _READ | _NOFOLLOW)
        else:
            fd = _open_beneath(folder, path)
    except OSError as e:
        if e.errno == errno.ENXIO:
            raise Error(f"{path}: it is a socket, not a file") from None
        if folder is None or e.errno not in (errno.ELOOP, errno.EMLINK):
            raise
        fd = _open_beneath(folder, path)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Error(f"{path}: it is a pipe, a device or a folder, not a file")
    return open(fd, "rb", buffering=0)


def read_in(folder: str | None, path: str, most: int) -> bytes:
    """Return the bytes of a file that ``open_in`` opens.

    Raises:
        UnsupportedError: It has more bytes than ``most``.
    """
    with io.BufferedReader(open_in(folder, path)) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise UnsupportedError(f"{path}: it is too large: {size} bytes, more than {most}")
        return file.read(size)


def _open_beneath(folder: str, path: str) -> int:
    """Open what a path leads to in a folder, by each folder on the way: none can be exchanged for a link meanwhile."""
    root, real = os.path.realpath(folder), os.path.realpath(path)
    root = _repository(root) or root
    if os.path.commonpath([root, real]) != root:
        raise Error(
            f"{path}: it is a link out of the dataset's folder; if you trust the dataset, copy it: penstock preprocess {folder} COPY --outside"
        )
    if os.open not in os.supports_dir_fd:
        return os.open(real, _READ)
    *folders, name = os.path.relpath(real, root).split(os.sep)
    at = os.open(root, _READ | os.O_DIRECTORY)
    try:
        for below in folders:
            above, at = at, os.open(below, _READ | os.O_DIRECTORY | _NOFOLLOW, dir_fd=at)
            os.close(above)
        return os.open(name, _READ | _NOFOLLOW, dir_fd=at)
    finally:
        os.close(at)


def _repository(folder: str) -> str | None:
    """Return the repository whose snapshot a folder in the cache of the Hugging Face Hub is in."""
    parts = folder.split(os.sep)
    for i in range(len(parts) - 3, -1, -1):
        if parts[i].startswith(("datasets--", "models--", "spaces--")) and parts[i + 1] == "snapshots":
            repository = os.sep.join(parts[: i + 1])
            blobs = os.path.join(repository, "blobs")
            if os.path.isdir(blobs) and not os.path.islink(blobs):
                return repository
    return None


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb", **how: Any) -> Iterator[IO[Any]]:
    """Yield a new file that takes the place of the file at path when it is complete; after an error it is removed.

    Other users get the permissions of the umask. A pipe or a device, such as /dev/stdout, is written to in place.
    """
    path = os.fsdecode(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, mode, **how) as file:
            yield file
        return
    temporary = _beside(path)
    with open(temporary, mode, opener=lambda name, _: os.open(name, _NEW, 0o666), **how) as file:
        try:
            yield file
            file.close()
            os.replace(temporary, path)
        except BaseException:
            file.close()
            with contextlib.suppress(FileNotFoundError):  # an interrupt came when it had taken its place
                os.remove(temporary)
            raise


def copy_folder(source: str, dest: str) -> None:
    """Copy a folder, whose copy takes the place of the folder at dest when it is complete."""
    import shutil

    temporary = _beside(dest)
    os.mkdir(temporary, 0o777)
    try:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
        if os.path.isdir(dest) and not os.path.islink(dest):
            shutil.rmtree(dest)
        elif os.path.lexists(dest):
            os.remove(dest)
        os.rename(temporary, dest)
    except BaseException:
        shutil.rmtree(temporary)
        raise


def _beside(path: str) -> str:
    """Return a name in the same folder that cannot be guessed."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.urandom(8).hex()}")


def check_shared(folder: str) -> None:
    """Refuse a folder in which other users may rename files that are not theirs."""
    mode = os.stat(folder).st_mode
    if hasattr(os, "geteuid") and mode & 0o022 and not mode & stat.S_ISVTX:
        raise Error(f"{folder}: others may rename what is in it; run chmod +t on it, or take a folder that only you can write to")


def user_folder(shared: str | None = None) -> str:
    """Return the folder of this user alone, which Go's programs have as well, in a folder, by default for temporary files."""
    import tempfile

    if not hasattr(os, "geteuid"):  # on Windows both are the user's own
        return tempfile.gettempdir() if shared is None else os.path.join(shared, "penstock")
    shared = shared or tempfile.gettempdir()
    check_shared(shared)
    folder = os.path.join(shared, f"penstock-{os.geteuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise Error(f"{folder}: it is not a folder of this user alone; remove it, or name another one, for temporary files in TMPDIR")
    return folder


#: The folder of a process within its user's folder begins with _PREFIX; the process holds a lock on the file _LOCK in it.
_PREFIX, _LOCK = "process-", "lock"

#: Seconds after which a folder without a lock is taken for abandoned.
_ABANDONED = 3600

#: The folder of a process, and the process: a fork has no folder.
_own: tuple[Owner, str, Any] | None = None
_making = lock()


def temporary(prefix: str) -> str:
    """Return a new folder of this process. It is removed when the process ends; if the process is killed, another process
    removes it.
    """
    import tempfile

    global _own
    with _making:
        if _own is None or not _own[0].here or not os.path.isdir(_own[1]):
            _own = _process_folder(user_folder())
        return tempfile.mkdtemp(prefix=prefix, dir=_own[1])


def _process_folder(parent: str) -> tuple[Owner, str, Any]:
    import tempfile

    _sweep(parent)
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    lock_file = open(os.path.join(folder, _LOCK), "x")  # noqa: SIM115  # it stays open as long as this process lives
    if fcntl is not None:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finalize(remove, remove, folder, lock_file)
    return Owner(), folder, lock_file


def remove(folder: str, lock: Any = None) -> None:
    """Remove a temporary folder, and let go of its lock."""
    import shutil

    if lock is not None:
        lock.close()
    shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: str) -> None:
    """Remove the folders of processes that have ended without doing so."""
    import shutil

    if fcntl is None:
        return
    for entry in os.scandir(parent):
        if entry.name.startswith(_PREFIX):
            with contextlib.suppress(OSError):
                if _abandoned(entry.path, entry.stat(follow_symlinks=False).st_mtime):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _abandoned(folder: str, changed: float) -> bool:
    """Report whether no process has the lock of a folder. A folder that has just been made may not have a lock yet."""
    if time.time() - changed > _ABANDONED and not os.path.exists(os.path.join(folder, _LOCK)):
        return True
    with open(os.path.join(folder, _LOCK)) as lock:
        if time.time() - changed < 1:
            return False  # it is locked next
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True


@contextlib.contextmanager
def alone(path: str, busy: str) -> Iterator[None]:
    """Hold a lock, which ends with the process, or raise Error if another call has it."""
    if fcntl is None:
        yield
        return
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as e:
        raise Error(f"{path}: the lock cannot be made: {e.strerror}; remove what has its name, or write to a folder of your own") from None
    with open(fd) as lock:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise Error(f"{path}: it is not a file of this user; remove it, or write to a folder of your own")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Error(busy) from None
        if not os.path.exists(path) or not os.path.samestat(os.lstat(path), found):
            raise Error(busy)  # its owner has just removed it
        try:
            yield
        finally:
            os.unlink(path)
