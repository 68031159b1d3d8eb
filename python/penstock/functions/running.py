"""Functions of a DataLoader: who calls them, and which error a failure of a function becomes.

An exception of a function comes back as text with the name of its type; here it is an Error that is of that type,
too.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._base.errors import Error
from .call import Call
from .processes import InProcess, Processes


@dataclass(frozen=True)
class Functions:
    """Functions that a DataLoader asks for, and the workers that call them."""

    calls: Sequence[Call]
    workers: int  # 0 is none: this process
    context: Any = None  # of multiprocessing, or its name
    init: Callable[[int], object] | None = None

    def start(self) -> Processes | InProcess:
        """Start the workers."""
        if self.workers == 0:
            return InProcess(self.calls)
        return Processes(self.calls, self.workers, self.context, self.init)


def failure(said: str, raised: Any, workers: Processes | InProcess) -> Error:
    """Return the error of a batch that a function may be the reason of, which is also of the type that the function raised."""
    if not isinstance(raised, dict):
        return Error(said)
    number = int(raised.get("worker") or 0)
    if raised.get("ended"):
        return Error(f"{said}: {workers.ending(number)}; make a new DataLoader, and load_state_dict to continue where this one was")
    error = _typed(str(raised.get("type")))(said)
    if isinstance(workers, InProcess) and workers.exception is not None:
        error.__cause__, workers.exception = workers.exception, None
    return error


def _typed(name: str) -> type[Error]:
    """Return a type of errors that is an Error and a type of exceptions of that name, if this process knows that."""
    module, _, qualname = name.rpartition(".")
    found: Any = sys.modules.get(module) if module else builtins
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, Exception)):
        return Error
    if issubclass(found, Error) or issubclass(Error, found):
        return Error
    try:
        made = type(f"Error, {found.__name__}", (Error, found), {"__init__": _plain, "__str__": _said, "__reduce__": _reduced})
        made("")
    except Exception:  # some types cannot be combined, or take no string
        return Error
    return made


def _plain(self: Any, said: str) -> None:
    self.args = (said,)


def _said(self: Any) -> str:
    return str(self.args[0])


def _reduced(self: Any) -> Any:
    return Error, self.args
