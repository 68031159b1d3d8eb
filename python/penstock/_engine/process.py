"""The feeding process: how it is started, found and ended.

It is the command ``penstock feed``, a child of this process, or one that others started and that listens at a socket.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from .._base.errors import Error
from .._base.program import start as start_program
from .._base.progress import display, follow, in_notebook
from .sharedfile import TRANSPORT, SharedFile, transport

#: How many seconds a feed has to take a connection where many wait.
_BUSY = 60


def start(
    datasets: Sequence[str], flags: Sequence[str], command: str | None, files: Mapping[str, SharedFile], functions: Sequence[int] = ()
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a feeding process for this process alone, and return it with the socket to it.

    It inherits files, by the names that the protocol has for them, and the descriptors of functions: of their memory, and of
    a socket to each worker. It does not get the signals of a terminal: they are for the trainer, which may want a last batch.
    """
    ours, theirs = socket.socketpair()
    try:
        if ours.family == socket.AF_INET:  # on Windows
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        memory, workers = functions[:1], functions[1:]
        with inherited([theirs.fileno(), *workers], [*(file.fd for file in files.values()), *memory]) as (numbers, how):
            connection, opened = numbers[0], numbers[1 + len(workers) :]
            passed = ["--inherit", ",".join(f"{name}={number}" for name, number in zip(files, opened))] if files else []
            if functions:
                passed += ["--functions", ",".join(map(str, [opened[-1], *numbers[1 : 1 + len(workers)]]))]
            notebook = in_notebook()  # which has a bar of its own, and may not show what others print
            shown = ["--progress=json"] if notebook else []
            arguments = ["--fd", str(connection), *passed, *shown, *flags, "--", *datasets]
            stderr = subprocess.PIPE if notebook else None
            child = start_program("feed", arguments, "loads the data", command, "command=", stdin=subprocess.DEVNULL, stderr=stderr, **how)
            if child.stderr is not None:
                threading.Thread(target=_show, args=(child.stderr,), daemon=True).start()
            return child, ours
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()


def _show(stderr: IO[bytes]) -> None:
    """Show what a feeding process prints in the notebook, until it ends."""
    shown = display(True)
    assert shown is not None
    try:
        with stderr:
            follow(stderr, shown, lambda line: shown.say(line.decode(errors="replace")), shown.say)
    finally:
        shown.close()


@contextmanager
def inherited(sockets: Sequence[int], fds: Sequence[int]) -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Let a child process that is started inside inherit sockets and files, given by their descriptors.

    Yield the numbers that they have in the child, and the arguments of subprocess.Popen by which it gets them and is not
    sent the signals of a terminal.
    """
    if sys.platform != "win32":
        numbers = [*sockets, *fds]
        yield numbers, {"pass_fds": numbers, "start_new_session": True}
        return
    import msvcrt

    handles = [*sockets, *map(msvcrt.get_osfhandle, fds)]
    try:
        for handle in handles:
            os.set_handle_inheritable(handle, True)
        listed = subprocess.STARTUPINFO(lpAttributeList={"handle_list": handles})
        yield handles, {"startupinfo": listed, "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    finally:
        for handle in handles:
            os.set_handle_inheritable(handle, False)


def connect(path: str) -> socket.socket:
    """Connect to a feed that listens at a path."""
    if transport() != "native":
        unset = f"unset {TRANSPORT}" if sys.platform == "linux" else "name the dataset in place of it, and this process has a feed of its own"
        raise Error(f"{path}: socket= needs the native transport of Linux, which passes memory over the socket; {unset}")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _BUSY, 0))
        connection.connect(path)
    except OSError as e:
        connection.close()
        raise Error(f"{path}: no feed serves there: {e.strerror}; start one: penstock feed DATASET --socket {path}") from None
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if uid not in (0, os.geteuid()):
        connection.close()
        raise Error(f"{path}: the feed there belongs to user {_user(uid)}, and this process to {_user(os.geteuid())}; start your own at another path")
    return connection


def _user(uid: int) -> str:
    import pwd

    with contextlib.suppress(KeyError):
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    return str(uid)


def version_of(child: subprocess.Popen[bytes]) -> str:
    """Return what the program of a feeding process started here prints for --version, and its command; the command alone if that fails."""
    import shlex

    assert isinstance(child.args, list)
    program = [str(a) for a in child.args[: child.args.index("--fd")]]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([*program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=True)
        return f"{said.stdout.decode(errors='replace').strip():.200} ({shlex.join(program)})"
    return shlex.join(program)


def wait(child: subprocess.Popen[bytes], seconds: float = 10) -> None:
    """Wait for a feeding process whose socket was closed to end, and kill it if it does not."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
