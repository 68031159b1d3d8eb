"""Records that a program finds: those for which an expression holds."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import numpy as np

from ._program import commands
from .errors import Error


def found(base: Any, where: str) -> np.ndarray:
    """Return the numbers of the records of a Dataset or a View for which an expression holds, in ascending order."""
    base.check_place()
    view = base if hasattr(base, "parts_of") else base.select()
    bits = _output([f"--where={where}", "--", view.path])
    return np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), count=len(base), bitorder="little"))


def _output(arguments: list[str]) -> bytes:
    """Return what the command feed writes."""
    named = os.environ.get("PENSTOCK_FEED")
    for program in [[named]] if named else commands("feed"):
        try:
            done = subprocess.run([*program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except FileNotFoundError:
            continue
        except OSError as e:
            raise Error(f"{program[0]}: cannot be started: {e.strerror}; PENSTOCK_FEED names the program feed") from None
        if done.returncode:
            raise Error(done.stderr.decode("utf-8", "replace").strip().removeprefix("penstock ").removeprefix("feed: "))
        return done.stdout
    raise Error(
        f"there is no command {named or 'feed'!r}, which finds records: install the wheel, which has it (make wheel, in a clone), or build it "
        "(make build) and put it in PATH, or name it in PENSTOCK_FEED"
    )
