"""Progress of long work: a bar of tqdm where that is installed, in a notebook as well, and lines elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Union

from .dataclass import dataclass


@dataclass(frozen=True)
class Progress:
    """How far work is. A stage, such as "writing", ends with ``ended``, and another may follow."""

    stage: str
    done: int
    #: How many there will be, None if that is not known.
    total: int | None
    #: Samples are called so, such as "images".
    unit: str
    #: Seconds since the stage began.
    seconds: float
    ended: bool = False

    @property
    def rate(self) -> float:
        """How many were done each second, over the stage."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end of the stage at this rate, None if that cannot be said."""
        if self.total is None or self.done == 0:
            return None
        return self.seconds * (self.total - self.done) / self.done

    def __str__(self) -> str:
        if self.total is None:
            return f"{self.stage}: {self.done:,} {self.unit}, {self.rate:,.0f}/s"
        left = self.seconds_left
        to_go = f", {left:.0f} s left" if left else ""
        share = f" ({100 * self.done // self.total} %)" if self.total else ""
        return f"{self.stage}: {self.done:,} of {self.total:,} {self.unit}{share}, {self.rate:,.0f}/s{to_go}"


#: The parameter ``progress``: None shows it where someone waits, True and False always and never.
Wanted = Union[bool, Callable[[Progress], object], None]


class Display:
    """Shows Progress. It is closed at the end of the work."""

    def show(self, progress: Progress) -> object:
        """Show it."""

    def say(self, text: str) -> None:
        """Print lines next to the progress that is shown, unless a function of the user's has that: notes are for people."""

    def close(self) -> None:
        """Let go of the screen."""


def display(wanted: Wanted) -> Display | None:
    """Return what shows progress; None if that is nobody's wish."""
    if wanted is None:
        wanted = sys.stderr is not None and (sys.stderr.isatty() or in_notebook())
    if callable(wanted):
        shown = Display()
        shown.show = wanted  # type: ignore[assignment,method-assign] # whose exceptions end the work
        return shown
    if not isinstance(wanted, bool):
        raise TypeError(f"progress is {wanted!r:.100}; it must be True, False, None, or a function of a penstock.Progress")
    if not wanted:
        return None
    import importlib.util

    return _Bar() if importlib.util.find_spec("tqdm") else _Lines()


def follow(lines: Iterable[bytes], shown: Display | None, other: Callable[[bytes], object], warn: Callable[[str], object]) -> None:
    """Show each event among the lines of a program; its warnings and its other lines go to functions."""
    began, stage = time.monotonic(), ""
    for line in lines:
        if not line.startswith(b"{"):
            other(line)
            continue
        event = json.loads(line)
        if "warning" in event:
            warn(event["warning"])
        elif "note" in event and shown is not None:
            shown.say(event["note"])
        elif "stage" in event and shown is not None:
            if event["stage"] != stage:
                began, stage = time.monotonic(), event["stage"]
            total = event["total"] if event["total"] >= 0 else None
            shown.show(Progress(stage, event["done"], total, event["unit"], time.monotonic() - began, event.get("ended", False)))


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


class _Bar(Display):
    """A bar of tqdm for each stage."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        self._make: Any = tqdm
        self._bar: Any = None
        self._stage = ""

    def show(self, progress: Progress) -> None:
        if self._bar is None or self._stage != progress.stage:
            self.close()
            self._stage = progress.stage
            self._bar = self._make(desc=progress.stage, total=progress.total, unit=f" {progress.unit}", leave=False)
        self._bar.update(progress.done - self._bar.n)
        if progress.ended:
            self.close()

    def say(self, text: str) -> None:
        self._make.write(text, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Lines(Display):
    """A line every ten seconds, or sooner at each tenth of the whole, and one at the end, as the commands print."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._tenth = 0

    def show(self, progress: Progress) -> None:
        since = time.monotonic() - self._last
        tenth = 10 * progress.done // progress.total if progress.total else 0
        if (progress.ended and progress.done > 0) or since >= 10 or (since >= 2 and tenth != self._tenth):
            self._last, self._tenth = time.monotonic(), tenth
            self.say(str(progress))

    def say(self, text: str) -> None:
        print(*(f"penstock: {line}" for line in text.splitlines()), sep="\n", file=sys.stderr, flush=True)
