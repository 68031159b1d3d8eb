"""Exceptions of user code on their way from a worker, and workers that ended: what is said, and of which type."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Failure(NamedTuple):
    """An exception in a worker: its class, pickled, its name, its traceback, and where it was raised."""

    kind: bytes
    name: str
    text: str
    where: str
    note: str

    def reraise(self) -> None:
        """Raise it again, by torch's rules: the same type, with the worker's traceback in the text."""
        message = f"Caught {self.name} {self.where}.\nOriginal {self.text}{self.note}"
        try:
            kind = pickle.loads(self.kind)
        except Exception:  # of a module that is not here
            raise RuntimeError(message) from None
        if kind is KeyError:
            raise KeyError(_Text(message))
        if getattr(kind, "message", None):
            raise kind(message=message)
        try:
            exception = kind(message)
        except Exception:
            raise RuntimeError(message) from None
        raise exception


class _Text(str):
    """A string that repr leaves as it is, as KeyError shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def caught(e: BaseException, where: str, note: str = "") -> Failure:
    """Return what is reported to the loader of an exception. The frames of the engine before user code are left out of its traceback."""
    kind = type(e)
    try:
        pickled = pickle.dumps(kind)
    except Exception:  # a class within a function
        pickled = b""
    place = e.__traceback__
    while place is not None and place.tb_next is not None and os.path.dirname(place.tb_frame.f_code.co_filename) == os.path.dirname(__file__):
        place = place.tb_next
    text = "".join(traceback.format_exception(kind, e, place))
    return Failure(pickled, kind.__name__, text, where, f"({note})" if note else "")


def unpicklable(e: BaseException, where: str, note: str) -> Failure:
    """Return what is reported to the loader of a result that cannot be sent."""
    report = caught(e, where, note)
    advice = (
        "what the dataset and collate_fn return goes from a worker to this process by pickle: return arrays, tensors, or objects that pickle "
        "can copy, or use num_workers=0"
    )
    return report._replace(note=f"{report.note}\n{advice}" if report.note else advice)


def ended(pid: int | None, code: int | None, doing: str, more: str = "") -> RuntimeError:
    """Return the error of a worker that exited unexpectedly, in torch's words, with the work that it was doing."""
    tail = f" It was in {doing}.{more}" if doing else more
    if code is not None and code < 0:
        try:
            name = signal.strsignal(-code) or f"signal {-code}"
        except ValueError:
            name = f"signal {-code}"
        return RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {name}. {tail.strip()}")
    return RuntimeError(
        f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. Rerunning with "
        f"num_workers=0 may give better error trace.{tail}"
    )


def out_of_memory_kills() -> int:
    """Return how many processes the kernel has ended in this control group because memory ran out; 0 if the kernel does not say."""
    try:
        with open("/proc/self/cgroup") as file:
            group = next((line.rstrip("\n").split(":", 2)[2] for line in file if line.startswith("0::")), "/")
        for directory in (f"/sys/fs/cgroup{group}", "/sys/fs/cgroup"):
            path = os.path.join(directory, "memory.events")
            if os.path.exists(path):
                with open(path) as file:
                    return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
        with open("/sys/fs/cgroup/memory/memory.oom_control") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
    except (OSError, ValueError, IndexError):
        return 0


def records(numbers: Any, most: int = 8) -> str:
    """Return record numbers for a message."""
    if isinstance(numbers, Sequence) and not isinstance(numbers, (str, bytes)):
        shown = ", ".join(map(_shown, numbers[:most]))
        return f"records {shown}{', ...' if len(numbers) > most else ''}"
    return record(numbers)


def record(number: Any) -> str:
    """Return a record's number, or what else a dataset is asked with, for a message."""
    return f"record {_shown(number):.100}"


def _shown(number: Any) -> str:
    return repr(number.item() if isinstance(number, np.generic) else number)
