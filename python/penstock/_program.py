"""Where the program penstock is, which wheels bring with them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Sequence
from typing import Any

from .errors import Error

# The first call of sysconfig is not safe in several threads (CPython 3.11).
_lock = threading.Lock()


def find() -> str | None:
    """Return the path of the program that was installed with this package, or None.

    pip puts it into the folder of scripts of this Python, into that of the user, or next to the
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


def start(
    name: str, arguments: Sequence[str], does: str, command: str | None = None, option: str = "", error: type[Error] = Error, **how: Any
) -> subprocess.Popen[bytes]:
    """Start a command: the one that is named, that of PENSTOCK_FEED or so, or the one that was installed with this package.

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
            return subprocess.Popen([*program, *arguments], **how)
        except FileNotFoundError:
            continue
        except OSError as e:
            raise error(f"{program[0]}: cannot be started: {e.strerror}; {option or variable} names the program {name}") from None
    ways = f"name it in {variable} or with {option}" if option else f"or name it in {variable}"
    raise error(
        f"there is no command {named or name!r}, which {does}: install the wheel, which has it (make wheel, in a clone), or build it "
        f"(make build) and put it in PATH, {ways}"
    )
