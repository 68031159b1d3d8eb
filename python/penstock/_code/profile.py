"""Where user code spends its time: the stack of a worker, looked at a few times a second."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

#: The functions that are being executed, from that which the loader called to the innermost: "name (file.py:line)".
Stack = tuple[str, ...]

#: How often a stack is looked at, in seconds.
EVERY = 0.1
_DEEPEST = 64
_PACKAGE = os.path.dirname(__file__) + os.sep


class Profile:
    """The stacks of the main thread of this process."""

    def __init__(self) -> None:
        self._thread = threading.main_thread().ident or 0
        self._seen: Counter[Stack] = Counter()

    def look(self) -> None:
        """Note what the main thread does, if it is in user code."""
        stack = stack_of(sys._current_frames().get(self._thread))
        if stack:
            self._seen[stack] += 1

    def take(self) -> dict[Stack, int]:
        """Return how often each stack was seen since the last call."""
        if not self._seen:
            return {}
        seen, self._seen = self._seen, Counter()
        return dict(seen)


def stack_of(frame: Any) -> Stack:
    """Return the user code that a frame is in; nothing if this package did not call any."""
    found: list[str] = []
    while frame is not None and not frame.f_code.co_filename.startswith(_PACKAGE):
        code = frame.f_code
        found.append(f"{getattr(code, 'co_qualname', code.co_name)} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})")
        frame = frame.f_back
    return tuple(found[: -_DEEPEST - 1 : -1]) if frame is not None else ()


def hottest(seen: Mapping[Stack, int], least: float = 0.5) -> tuple[str, float] | None:
    """Return the innermost function in which user code is at least that share of its time, and the share; None if nothing was seen."""
    total, depth = sum(seen.values()), 0
    found: tuple[str, float] | None = None
    within = dict(seen)
    while within:
        names: Counter[str] = Counter()
        for stack, n in within.items():
            if len(stack) > depth:
                names[stack[depth]] += n
        if not names:
            break
        name, n = names.most_common(1)[0]
        if n < least * total:
            break
        found = name, n / total
        within = {stack: n for stack, n in within.items() if len(stack) > depth and stack[depth] == name}
        depth += 1
    return found
