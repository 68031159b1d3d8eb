"""The command preprocess: how it is started, its flags as parameters, and its messages in terms of this package."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base.errors import Error
from .._base.parameters import in_python
from .._base.program import start as start_program

#: Exit codes of preprocess that are not a failure: done, and done with some samples left out.
DONE = (0, 3)

#: The exit code of arguments that are refused.
USAGE = 2

#: F_SETPIPE_SZ of Linux, and what any user may ask for.
_SET_PIPE_SIZE, PIPE = 1031, 1 << 20


class NoProgramError(Error):
    """The program is not installed, or cannot be started."""


def start(arguments: Sequence[str], command: str | None, **pipes: Any) -> subprocess.Popen[bytes]:
    """Start preprocess: ``command``, or the program that PENSTOCK_PREPROCESS names, or the program installed with this package.

    It does not get the signals of a terminal, so that it can keep what it has when this process ends.
    """
    return start_program("preprocess", arguments, "writes datasets", command, "command=", NoProgramError, start_new_session=True, **pipes)


def flags(options: Mapping[str, Any]) -> list[str]:
    """Return options as flags of preprocess."""
    given = []
    for name, value in options.items():
        if value is None:
            continue
        flag = "--" + name.rstrip("_").replace("_", "-")
        if isinstance(value, (bool, np.bool_)):  # with its value, as a flag that needs one takes the next argument for it
            given.append(f"{flag}={str(value).lower()}")
        elif isinstance(value, Mapping):
            given.append(f"{flag}=" + ",".join(f"{k}={v}" for k, v in value.items()))
        elif name == "normalize" and isinstance(value, (list, tuple)):  # mean and std, a number a channel
            given.append(f"{flag}=" + "/".join(",".join(map(str, np.atleast_1d(numbers))) for numbers in value))
        elif isinstance(value, (list, tuple)):
            given.append(f"{flag}=" + ("x" if name in ("resize", "crop") else ",").join(map(str, value)))
        else:
            given.append(f"{flag}={value}")
    return given


def failure(stderr: bytes) -> str:
    """Return the error that preprocess printed, in the words of this package; "" if it printed none."""
    text = stderr.decode("utf-8", "replace").strip()
    text = re.sub(r"^(preprocess|penstock|merge|cache): ", "", text)
    text = re.sub(r"\nRun '.*' for usage\.$", "", text)
    return in_python(text)


def widen(pipe: int) -> None:
    """Let a pipe hold more, where that is possible: fewer changes between the two processes."""
    try:
        import fcntl

        fcntl.fcntl(pipe, _SET_PIPE_SIZE, PIPE)
    except (ImportError, OSError):
        pass
