"""Messages to and from a feeding process: a length, and that many bytes of JSON.

A feeding process is not trusted: each of its messages is checked before it is used.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .._base.errors import Error
from .._base.urls import bounded, printable

_LENGTH = struct.Struct("<I")
_INT = struct.Struct("i")
_encode = json.JSONEncoder(separators=(",", ":")).encode

#: The most bytes of a message. No feeding process sends one that is longer.
_LONGEST = 1 << 24

#: How many seconds a message may wait until the feeding process reads it.
_UNREAD = 60.0

#: The largest number in a message: Go reads numbers as int64.
_MAX_NUMBER = (1 << 63) - 1


#: Of send: not to wait; 0 where the system has no such flag.
_NOW: int = getattr(socket, "MSG_DONTWAIT", 0)

#: The errors of a connection whose other end has ended.
_LOST = (BrokenPipeError, ConnectionResetError, ConnectionAbortedError)


#: The bytes that are received at once.
_PIECE = 1 << 16

#: The part of a message that is the descriptor that came with it.
DESCRIPTOR = "descriptor"

#: Descriptors that may have come before their messages are complete. No piece has more than one descriptor, and few messages
#: are cut.
_MOST_DESCRIPTORS = 2


class Malformed(Error):
    """A message that no feeding process sends."""


def number(message: Any, name: str, least: int = 0, most: int = _MAX_NUMBER) -> int:
    """Return an integer of a message, which must be within the given limits."""
    value = part(message, name, int)
    if isinstance(value, bool) or not least <= value <= most:
        raise Malformed(f"{name} is {shown(value)}, and not from {least} to {most}")
    return int(value)


def part(message: Any, name: str, kind: type) -> Any:
    """Return a part of a message, which must be of that type."""
    value = message.get(name) if isinstance(message, dict) else None
    if not isinstance(value, kind):
        raise Malformed(f"{name} is {shown(value)}, and not of type {kind.__name__}")
    return value


def text(message: Any, name: str) -> str:
    """Return a text of a message without control characters that a terminal would obey, and not longer than an error may be."""
    return printable(bounded(part(message, name, str)))


def shown(value: Any) -> str:
    """Return a value for an error: short, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    return (
        ascii(value[:60] if isinstance(value, str) else value)[:60]
        if isinstance(value, (int, float, str, type(None)))
        else f"a {type(value).__name__}"
    )


class Wire:
    """A connection to a feeding process, which may be a child of this process.

    With ``passes``, descriptors come with some messages: "welcome" and "file", which have them as "descriptor" then.
    """

    def __init__(self, connection: socket.socket, name: str, child: subprocess.Popen[bytes] | None, passes: bool) -> None:
        self._connection, self.name, self._child = connection, name, child
        # An interrupt (Ctrl-C) may come between any two steps. Bytes are sent and received by one call that also notes
        # them, and each of these is set by one assignment: no message is cut in two, and none is lost.
        self._outgoing: tuple[bytes, list[int]] = (b"", [])  # a message, and how many of its bytes were sent, part by part
        # The bytes that come next, the parts after them, how many messages came before, without messages that only wake, and
        # the descriptors that came with those bytes.
        self._incoming: tuple[bytes, list[Any], int, list[int]] = (b"", [], 0, [])
        self._ended: dict[str, Any] | None = None  # the message that is the last
        self._passes = passes
        self._seconds: float | None = -1.0  # the timeout of the connection
        #: Called while this process waits, until something can be received or a time of time.monotonic.
        self.meanwhile: Callable[[socket.socket, float | None], None] | None = None

    def send(self, message: dict[str, Any], descriptor: int | None = None) -> None:
        """Send a message, and a descriptor with it."""
        body = _encode(message).encode()
        self._flush()
        self._outgoing = (_LENGTH.pack(len(body)) + body, [])
        self._flush(descriptor)

    def _flush(self, descriptor: int | None = None) -> None:
        """Send what is left of a message."""
        frame, sent = self._outgoing
        try:
            if descriptor is None and _NOW and not sent:  # most often there is room
                with contextlib.suppress(BlockingIOError):
                    sent.extend(map(self._connection.send, (frame,), (_NOW,)))
            if sum(sent) == len(frame):
                return
            self._limit(_UNREAD)
            if descriptor is not None:
                sent.append(socket.send_fds(self._connection, [frame], [descriptor]))
            while (at := sum(sent)) < len(frame):
                sent.extend(map(self._connection.send, (memoryview(frame)[at:],)))
        except _LOST:
            pass  # what it said before it went is still to be read
        except socket.timeout:
            raise Error(f"{self.name}: the feeding process has not read a request in {_UNREAD:g} s; end it, and start it again") from None
        except OSError as e:
            raise self._lost(e.strerror) from None

    def receive(self, deadline: float | None = None) -> dict[str, Any]:
        """Wait for a message, until a time of time.monotonic if a time is given, and return it."""
        need = _LENGTH.size
        while self._ended is None:
            data, parts, before, descriptors = self._incoming
            if len(data) + sum(map(len, map(_bytes, parts))) >= need:
                data = b"".join((data, *map(_bytes, parts)))
                self._incoming = (data, [], before, descriptors := [*descriptors, *_descriptors(parts)])
                if len(descriptors) > _MOST_DESCRIPTORS:
                    raise Error(f"{self.name}: it passed several descriptors: what answers there is not a feed")
                (n,) = _LENGTH.unpack_from(data)
                if n > _LONGEST:
                    raise Error(f"{self.name}: a message of {n} bytes: what answers there is not a feed")
                need = _LENGTH.size + n
                if len(data) >= need:
                    return self._cut(need)
            self._fill(deadline)
        return self._ended

    @property
    def received(self) -> int:
        """How many messages were received, without messages that only wake."""
        return self._incoming[2]

    def ready(self) -> bool:
        """Return whether something can be received without waiting."""
        if any(self._incoming[:2]):
            return True
        try:
            self._limit(0)
            self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass  # which a receive reports
        return True

    def descriptor(self, message: dict[str, Any]) -> int:
        """Return the descriptor that came with a message."""
        if DESCRIPTOR not in message:
            raise Error(f"{self.name}: the feeding process passed no memory, and no file; may the two share descriptors?")
        return int(message[DESCRIPTOR])

    def close(self) -> None:
        """End the connection. Children that were forked from this process may have it open too."""
        if self._connection.fileno() >= 0:
            with contextlib.suppress(OSError):  # the other end went first
                self._connection.shutdown(socket.SHUT_RDWR)
        self.leave()

    def leave(self) -> None:
        """Close the descriptors, in a fork of this process."""
        self._connection.close()
        _, parts, _, descriptors = self._incoming
        self._incoming = (b"", [], 0, [])
        for descriptor in (*descriptors, *_descriptors(parts)):
            os.close(descriptor)

    def _limit(self, seconds: float | None) -> None:
        """Set the timeout of the connection: a system call, if it has changed."""
        if seconds != self._seconds:
            self._seconds = -1.0
            self._connection.settimeout(seconds)
            self._seconds = seconds

    def _cut(self, end: int) -> dict[str, Any]:
        data, _, before, descriptors = self._incoming
        try:
            message = json.loads(data[_LENGTH.size : end])
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise Error(f"{self.name}: a message that is not JSON of an object: what answers there is not a feed")
        if "error" in message:
            self._ended = message
        message.pop(DESCRIPTOR, None)
        if descriptors and ("file" in message or "welcome" in message):
            message[DESCRIPTOR], *descriptors = descriptors
        self._incoming = (data[end:], [], before + ("awake" not in message), descriptors)
        return message

    def _fill(self, deadline: float | None) -> None:
        try:
            if self.meanwhile is not None:
                self.meanwhile(self._connection, deadline)
            self._limit(_longest_wait(deadline))
            _, parts, _, _ = self._incoming
            before = len(parts)
            if not self._passes:
                parts.extend(map(self._connection.recv, (_PIECE,)))
            else:
                parts.extend(map(self._connection.recvmsg, (_PIECE,), (socket.CMSG_SPACE(_INT.size),), (socket.MSG_CMSG_CLOEXEC,)))
                if sum(1 for _ in _descriptors(parts)) > _MOST_DESCRIPTORS:
                    raise Error(f"{self.name}: it passed several descriptors: what answers there is not a feed")
        except _LOST:
            parts.append(b"")
        except socket.timeout:
            if deadline is None or time.monotonic() < deadline:
                return
            raise Error(f"{self.name}: no answer of the feeding process in time; is it stopped? End it, and start it again") from None
        except OSError as e:
            raise self._lost(e.strerror) from None
        if not _bytes(parts[before]):
            raise self._lost()

    def _lost(self, why: str | None = None) -> Error:
        """Return the error of a connection that is no more."""
        if self._connection.fileno() < 0:
            return Error(f"{self.name}: the feeding process was closed")
        if self._child is not None:
            try:
                why = _ending(self._child.wait(5))
            except subprocess.TimeoutExpired:
                why = "it closed the connection"
        why = why or "it closed the connection"
        return Error(f"{self.name}: the feeding process has ended: {why}; make a new DataLoader, and load_state_dict to continue where this one was")


def _bytes(part: Any) -> bytes:
    """Return the bytes in the result of recv or recvmsg."""
    found: bytes = part if isinstance(part, bytes) else part[0]
    return found


def _descriptors(parts: list[Any]) -> Iterator[int]:
    """Yield the descriptors that came with parts."""
    for part in parts:
        for level, kind, data in () if isinstance(part, bytes) else part[1]:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                yield from (fd for (fd,) in _INT.iter_unpack(data[: len(data) // _INT.size * _INT.size]))


def _longest_wait(deadline: float | None) -> float | None:
    """Return how many seconds a receive may wait. On Windows it is short, as an interrupt (Ctrl-C) does not end it."""
    left = None if deadline is None else max(1e-3, deadline - time.monotonic())
    return left if sys.platform != "win32" else min(0.5, left or 0.5)


def _ending(code: int) -> str:
    """Say in words how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
