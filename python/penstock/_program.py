"""Where the program penstock is, which wheels bring with them."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading

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
