"""Where the program penstock is, which wheels bring with them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from . import limits, urls
from .errors import Error

# The first call of sysconfig is not safe in several threads (CPython 3.11).
_lock = threading.Lock()

#: Bytes of address space that a program of Go reserves before it reads a file.
_SPACE = 800 << 20


def find() -> str | None:
    """Return the path of the program that was installed with this package, or None.

    pip puts it into the folder of scripts of this Python, into the user's folder of scripts, or next to the
    packages of ``pip install --target``.
    """
    windows = sys.platform == "win32"
    package = os.path.dirname(os.path.abspath(__file__))
    with _lock:
        folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", scheme="nt_user" if windows else "posix_user")]
    folders.append(os.path.join(os.path.dirname(package), "Scripts" if windows else "bin"))
    for folder in folders:
        path = os.path.join(folder, "penstock.exe" if windows else "penstock")
        if os.path.isfile(path):
            return path
    return None


def commands(name: str) -> list[list[str]]:
    """Return how a command, such as feed, can be started, the best way first."""
    path = find()
    return [*([[path, name]] if path else []), [name], ["penstock", name]]


def popen(command: Sequence[str], error: type[Error] = Error, **how: Any) -> subprocess.Popen[bytes]:
    """Start a program of Go as subprocess.Popen does, with its URLs where other users do not see them."""
    if sys.platform != "win32":
        import resource

        room = resource.getrlimit(resource.RLIMIT_AS)[0]
        if 0 <= room < _SPACE:
            raise error(
                f"{command[0]}: it needs {_SPACE >> 20} MiB of address space, and each process may have {room >> 20} MiB: run ulimit -v unlimited "
                "in the shell that starts Python"
            )
    arguments = urls.hidden(command)
    if limited := limits.environment():
        arguments["env"] = {**arguments.get("env", os.environ), **limited}
    return subprocess.Popen(**arguments, **how)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Have an interrupt (Ctrl-C) wait until the block ends: the processes it starts have an owner then. The second one does not wait."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[Any] = []

    def note(number: int, frame: Any) -> None:
        came.append(frame)
        if len(came) > 1:
            before(number, frame)

    try:
        signal.signal(signal.SIGINT, note)
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        before(signal.SIGINT, came[0])


def start(
    name: str, arguments: Sequence[str], does: str, command: str | None = None, option: str = "", error: type[Error] = Error, **how: Any
) -> subprocess.Popen[bytes]:
    """Start a program: ``command``, or the program that a variable such as PENSTOCK_FEED names, or the program installed with
    this package.

    Args:
        name: "feed" or "preprocess".
        arguments: Its arguments.
        does: Its purpose, to be said where it is not found.
        command: The one that is named.
        option: The caller's argument that names it, such as "command="; "" if there is none.
        error: The exception if it cannot be started.
        how: Arguments of subprocess.Popen.
    """
    variable = f"PENSTOCK_{name.upper()}"
    named = command or os.environ.get(variable)
    for program in [[named]] if named else commands(name):
        try:
            return popen([*program, *arguments], error, **how)
        except FileNotFoundError:
            continue
        except OSError as e:
            raise error(f"{program[0]}: cannot be started: {e.strerror}; {option or variable} names the program {name}") from None
    ways = f"name it in {variable} or with {option}" if option else f"or name it in {variable}"
    raise error(
        f"there is no command {named or name!r}, which {does}: install the wheel, which has it (make wheel, in a clone), or build it "
        f"(make build) and put it in PATH, {ways}"
    )
