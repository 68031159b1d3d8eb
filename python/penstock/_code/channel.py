"""Messages between this process and a worker, over a pair of sockets.

A worker reads and writes blocking. The loader's end never blocks on a write: what the socket does not take waits here, so that
a worker that waits for room to write in cannot stop a loader that writes to it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from collections import deque

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 16


class ChannelClosed(Exception):
    """The other end is closed, or its process has ended."""


class Channel:
    """One end of a pair of sockets. Messages are bytes, in order, each after its length."""

    def __init__(self, end: socket.socket, length: struct.Struct = _LENGTH) -> None:
        self._socket: socket.socket | None = end
        self._length = length
        self._received = bytearray()
        self._unsent: deque[memoryview] = deque()

    def fileno(self) -> int:
        return -1 if self._socket is None else self._socket.fileno()

    def send(self, message: bytes) -> None:
        """Send a message: the whole message, or, if this end does not block, the bytes that the socket takes now. ``flush``
        sends the rest.
        """
        length = self._length.pack(len(message))
        self._unsent.extend(map(memoryview, (length + message,) if len(message) < _CHUNK else (length, message)))
        self.flush()

    def flush(self) -> bool:
        """Send the bytes that wait, and return whether all of them were sent."""
        while self._unsent:
            try:
                sent = self._open().send(self._unsent[0])
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as e:
                raise ChannelClosed from e
            if sent == len(self._unsent[0]):
                self._unsent.popleft()
            else:
                self._unsent[0] = self._unsent[0][sent:]
        return True

    def waits(self) -> bool:
        """Send the bytes that wait, and return whether some have to wait longer."""
        try:
            return not self.flush()
        except ChannelClosed:
            self._unsent.clear()  # what the worker sent before it ended is still there to be read
            return False

    def receive(self) -> bytes | None:
        """Return the next message; None if this end does not block and none has arrived."""
        while not self.complete:
            try:
                data = self._open().recv(_CHUNK)
            except (BlockingIOError, InterruptedError):
                return None
            except OSError as e:
                raise ChannelClosed from e
            if not data:
                raise ChannelClosed
            self._received += data
        end = self._length.size + self._length.unpack_from(self._received)[0]
        message = bytes(memoryview(self._received)[self._length.size : end])
        del self._received[:end]
        return message

    @property
    def complete(self) -> bool:
        """Whether a whole message has been received."""
        got, size = len(self._received), self._length.size
        return got >= size and got >= size + self._length.unpack_from(self._received)[0]

    def ready(self) -> bool:
        """Return whether a message, or a part of a message, has arrived."""
        return bool(self._received) or bool(select.select([self._open()], [], [], 0)[0])

    def close(self) -> None:
        """End the connection, also if a fork of this process has it open."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # the other end went first
                self._socket.shutdown(socket.SHUT_RDWR)
        self.leave()

    def leave(self) -> None:
        """Close the descriptor, in a fork of this process."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise ChannelClosed
        return self._socket


def pair() -> tuple[Channel, socket.socket]:
    """Return the loader's end, and the worker's, which goes to its process."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return Channel(ours), theirs


def wait(channels: list[Channel], seconds: float) -> list[Channel]:
    """Send what waits to be sent, and return the channels with something to read, or that are closed; none after some seconds."""
    blocked = [c for c in channels if c.waits()]
    if os.name != "posix":
        return list(select.select(channels, blocked, [], max(0, seconds))[0])
    poll, at = select.poll(), {c.fileno(): c for c in channels}
    for fd, channel in at.items():
        poll.register(fd, select.POLLIN | (select.POLLOUT if channel in blocked else 0))
    return [at[fd] for fd, event in poll.poll(max(0, seconds) * 1000) if event & ~select.POLLOUT]
