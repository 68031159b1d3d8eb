"""The feeding process: how it is started, found and ended."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence

from ._program import commands
from .errors import Error

#: How many seconds a feed has to take a connection where many wait.
_BUSY = 60


def start(
    datasets: Sequence[str], flags: Sequence[str], command: str | None, functions: Sequence[int] = ()
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a feeding process for this process alone, and return it with the socket to it.

    It inherits the descriptors of functions: of their memory, and of a socket to each worker. It does not get the signals of
    a terminal: they are for the trainer, which may want a last batch.
    """
    if sys.platform != "linux":
        raise Error("a DataLoader needs Linux; here, use penstock.open, or penstock.torch.TorchDataset with torch's DataLoader")
    named = command or os.environ.get("PENSTOCK_FEED")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    fd = theirs.fileno()
    try:
        for program in [[named]] if named else commands("feed"):
            shared = ["--functions", ",".join(map(str, functions))] if functions else []
            arguments = [*program, "--fd", str(fd), *shared, *flags, "--", *datasets]
            try:
                return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, pass_fds=[fd, *functions], start_new_session=True), ours
            except FileNotFoundError:
                continue
            except OSError as e:
                raise Error(f"{program[0]}: cannot be started: {e.strerror}; command= names the program feed") from None
        raise Error(
            f"there is no command {named or 'feed'!r}, which loads the data: install the wheel, which has it (make wheel, in a clone), or build it "
            "(make build) and put it in PATH, name it in PENSTOCK_FEED or with command="
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()


def connect(path: str) -> socket.socket:
    """Connect to a feed that listens at a path."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _BUSY, 0))
        connection.connect(path)
    except OSError as e:
        connection.close()
        raise Error(f"{path}: no feed serves there: {e.strerror}; start one: penstock feed DATASET --socket {path}") from None
    return connection


def wait(child: subprocess.Popen[bytes], seconds: float = 10) -> None:
    """Wait for a feeding process whose socket was closed to end, and kill it if it does not."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
