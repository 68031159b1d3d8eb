"""Messages to and from a feeding process: a length, and that many bytes of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
from typing import Any

from .errors import Error

_LENGTH = struct.Struct("<I")
_encode = json.JSONEncoder(separators=(",", ":")).encode

#: The most bytes of a message. No feeding process sends one that is longer.
_LONGEST = 1 << 24


class Wire:
    """A connection to a feeding process, which may be a child of this process."""

    def __init__(self, connection: socket.socket, name: str, child: subprocess.Popen[bytes] | None) -> None:
        self._connection, self._name, self._child = connection, name, child
        self._buffer = bytearray()
        self._descriptors: list[int] = []
        self._greeted = False
        self._process = os.getpid()

    def send(self, message: dict[str, Any], descriptor: int | None = None) -> None:
        """Send a message, and a descriptor with it."""
        body = _encode(message).encode()
        text = _LENGTH.pack(len(body)) + body
        try:
            if descriptor is not None:
                text = text[socket.send_fds(self._connection, [text], [descriptor]) :]
            self._connection.sendall(text)
        except (BrokenPipeError, ConnectionResetError):
            pass  # what it said before it went is still to be read
        except OSError as e:
            raise self._lost(e.strerror) from None

    def receive(self) -> dict[str, Any]:
        """Wait for a message, and return it."""
        while True:
            if len(self._buffer) >= _LENGTH.size:
                (n,) = _LENGTH.unpack_from(self._buffer)
                if n > _LONGEST:
                    raise Error(f"{self._name}: a message of {n} bytes: what answers there is not a feed")
                if len(self._buffer) >= _LENGTH.size + n:
                    return self._cut(n)
            self._fill()

    def take_descriptor(self) -> int:
        """Return the descriptor that came with a message."""
        if not self._descriptors:
            raise Error(f"{self._name}: the feeding process passed no memory; may the two share descriptors?")
        self._greeted = True
        return self._descriptors.pop()

    def close(self) -> None:
        """End the connection. Children that were forked from this process may have it open too."""
        if os.getpid() == self._process and self._connection.fileno() >= 0:
            with contextlib.suppress(OSError):  # the other end went first
                self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _cut(self, n: int) -> dict[str, Any]:
        body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + n])
        del self._buffer[: _LENGTH.size + n]
        message = json.loads(body)
        if not isinstance(message, dict):
            raise Error(f"{self._name}: a message that is not JSON of an object: what answers there is not a feed")
        return message

    def _fill(self) -> None:
        try:
            if self._greeted:
                data = self._connection.recv(1 << 16)
            else:
                data, passed, _, _ = socket.recv_fds(self._connection, 1 << 16, 1, socket.MSG_CMSG_CLOEXEC)
                self._descriptors += passed
        except ConnectionResetError:
            data = b""
        except OSError as e:
            raise self._lost(e.strerror) from None
        if not data:
            raise self._lost()
        self._buffer += data

    def _lost(self, why: str | None = None) -> Error:
        """Return the error of a connection that is no more."""
        if self._connection.fileno() < 0:
            return Error(f"{self._name}: the feeding process was closed")
        if self._child is not None:
            try:
                why = _ending(self._child.wait(5))
            except subprocess.TimeoutExpired:
                why = "it closed the connection"
        why = why or "it closed the connection"
        return Error(f"{self._name}: the feeding process has ended: {why}; make a new DataLoader, and load_state_dict to continue where this one was")


def _ending(code: int) -> str:
    """Say in words how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
