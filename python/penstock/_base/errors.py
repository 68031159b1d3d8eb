"""Errors of datasets."""

from __future__ import annotations

from collections.abc import Sequence

from .dataclass import dataclass
from .urls import bounded, redacted, shown


@dataclass(frozen=True)
class Corruption:
    """Records [first, end) have values in an array that are not what was written. ``path`` is the file, ``reason`` the first of the reasons."""

    column: str
    path: str
    first: int
    end: int
    reason: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.path}: {self.column}: records {self.first} to {self.end - 1} are not what was written{reason}"


class Error(ValueError):
    """A dataset cannot be used. The text says where, what, and what to do. It has no secrets of URLs.

    Names in it may be a stranger's: characters that a terminal obeys are escaped, and the lines after the first are indented.
    The middle of a text of more than 8,000 characters is left out.
    """

    def __init__(self, *text: object) -> None:
        super().__init__(*(shown(redacted(bounded(t))) if isinstance(t, str) else t for t in text))


class NotFoundError(Error, FileNotFoundError):
    """There is nothing at the path of a dataset."""


class MissingError(Error, KeyError):
    """A dataset has no field, or no split, of that name."""

    __str__ = Exception.__str__  # KeyError's is the text in quotes


class CorruptError(Error):
    """Bytes are not what the format or the manifest says.

    ``corruptions`` are the rows that Dataset.verify found to be wrong, each a Corruption.
    """

    def __init__(self, text: str, corruptions: Sequence[Corruption] = ()) -> None:
        super().__init__(text)
        self.corruptions = list(corruptions)


class UnsupportedError(Error):
    """A dataset that may be valid, but not for this reader."""


for _public in (Error, NotFoundError, CorruptError, UnsupportedError):
    _public.__module__ = "penstock"  # as tracebacks and pickles name them
