"""Forks: a child has copies of the objects of its parent, and shares with it the processes, sockets, files and memory behind them.

Whatever a child does with its copies, also when they are collected and when it exits, its parent must not see. So what acts on something
outside of the memory of this process is registered here, and one hook lets go of it in the child, before any other code runs there: memory
that processes share becomes the child's own, descriptors are closed, locks that other threads of the parent held are free, and finalizers
are dead.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    import subprocess

#: Of mmap(2); Python has no name for it.
MAP_FIXED = 0x10
#: So that memory which nobody writes to needs no room.
NORESERVE: int = getattr(mmap, "MAPNORESERVE", 0x4000 if sys.platform == "linux" else 0)


class Owner:
    """The process that made an object. It is told apart by the number of forks up to it: the system uses numbers of processes again."""

    __slots__ = ("_forks", "pid")

    def __init__(self) -> None:
        self._forks, self.pid = _forks, os.getpid()

    @property
    def here(self) -> bool:
        """Whether this process is the owner."""
        return self._forks == _forks


class Finalizer(weakref.finalize):  # type: ignore[type-arg]
    """A weakref.finalize of the process that made it. A child of a fork calls ``leave`` in its place, at once."""

    __slots__ = ("leave", "pid")

    leave: Callable[[], object] | None
    #: The process that made it.
    pid: int
    #: The hooks that are alive, and the hooks that are being called.
    known: ClassVar[set[Finalizer]] = set()

    def __call__(self, _: object = None) -> Any:
        if self not in self.known:
            return None
        if os.getpid() != self.pid:  # the child of a fork collects garbage before its hook has come to this object
            self.let_go()
            return None
        try:
            return super().__call__(_)
        finally:  # not before: a signal may come meanwhile, whose handler forks
            self.known.discard(self)

    def detach(self) -> Any:
        self.known.discard(self)
        return super().detach()

    def let_go(self) -> None:
        """Do in a child of a fork what is done there in place of the end."""
        self.known.discard(self)
        self._registry.pop(self, None)  # type: ignore[attr-defined] # detach leaves it there if the thing is collected already
        if self.leave is not None:
            with contextlib.suppress(OSError):
                self.leave()


def finalize(thing: Any, end: Callable[..., object], *args: Any, leave: Callable[..., object] | None = None) -> Finalizer:
    """Have ``end(*args)`` called once ``thing`` is collected, or at the exit of this process, or when the finalizer is called.

    In a child of a fork, it is not called; ``leave(*args)`` is, which closes descriptors, and does nothing that other processes see.
    """
    made = Finalizer(thing, end, *args)
    made.leave, made.pid = None if leave is None else partial(leave, *args), os.getpid()
    made.known.add(made)
    return made


def leaving(thing: Any, leave: Callable[..., object], *args: Any) -> Finalizer:
    """Have a child of a fork call ``leave(*args)`` at once, if ``thing`` exists and the finalizer was not called."""
    return finalize(thing, _do_nothing, *args, leave=leave)


def _do_nothing(*_: object) -> None:
    pass


def lock() -> Any:
    """Return a lock that is free in a child of a fork."""
    made = threading.RLock()
    _locks.add(made)
    return made


def shared(memory: mmap.mmap) -> mmap.mmap:
    """Return memory that other processes write to: a child of a fork has memory of its own in its place, with the contents that
    ``Holder`` names.
    """
    import ctypes  # noqa: F401  # before a fork, which has no time for it

    _memory.add(memory)
    return memory


class Holder(Protocol):
    """Knows which parts of shared memory something in this process refers to."""

    def used(self) -> Iterable[tuple[int, int]]:
        """Return addresses and lengths."""


def hold(holder: Holder) -> None:
    """Have a child of a fork keep the bytes that a holder names."""
    _holders.add(holder)


def disown(processes: Iterable[Any]) -> None:
    """Have multiprocessing, in a child of a fork, not end the processes of its parent when the child exits."""
    from multiprocessing import process

    for each in processes:
        process._children.discard(each)  # type: ignore[attr-defined]


def leave_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes to a program in a fork of its parent, without the bytes that wait in their buffers, and never wait for
    its end.
    """
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.raw.close()  # type: ignore[attr-defined]
    process.returncode = 0


#: How many forks there were from the first process to this process.
_forks = 0
_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_memory: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_holders: weakref.WeakSet[Any] = weakref.WeakSet()
#: The shared memory at a fork, and addresses of whole pages of it with their contents, by the thread that forks: a signal may come then, whose
#: handler forks, too. Memory that is garbage would be unmapped if it were collected in the child before its pages are written there.
_kept: dict[int, list[tuple[list[mmap.mmap], list[tuple[int, bytes]]]]] = {}


def _before() -> None:
    """Copy what is held: other processes write to it once the parent has dropped its batches."""
    pages: dict[int, int] = {}
    memory = list(_memory)
    if memory:
        import ctypes
    for holder in list(_holders) if memory else ():
        for address, n in holder.used():
            first = address // mmap.PAGESIZE * mmap.PAGESIZE
            end = -(-(address + n) // mmap.PAGESIZE) * mmap.PAGESIZE
            pages[first] = max(pages.get(first, 0), end - first)
    _kept.setdefault(threading.get_ident(), []).append((memory, [(first, ctypes.string_at(first, n)) for first, n in pages.items() if n]))


def _in_parent() -> None:
    mine = _kept[threading.get_ident()]
    mine.pop()
    if not mine:
        del _kept[threading.get_ident()]


def _in_child() -> None:
    global _forks
    _forks += 1
    for each in list(_locks):
        each._at_fork_reinit()
    mapped, kept = _kept[threading.get_ident()].pop()
    _kept.clear()
    for memory in mapped:
        with contextlib.suppress(ValueError):  # it was closed
            _make_private(memory)
    _memory.clear()
    if kept:
        import ctypes
    for first, data in kept:
        ctypes.memmove(first, data, len(data))
    for finalizer in list(Finalizer.known):
        finalizer.let_go()


def _make_private(memory: mmap.mmap) -> None:
    """Put new memory in the place of shared memory; where there is not enough, memory that cannot be used."""
    import ctypes

    call = ctypes.CDLL(None).mmap
    call.restype, call.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    how = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE | MAP_FIXED
    if call(address, len(memory), mmap.PROT_READ | mmap.PROT_WRITE, how, -1, 0) != address:
        call(address, len(memory), 0, how, -1, 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
