"""Errors of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .verify import Corruption


class Error(ValueError):
    """A dataset cannot be used. The text says where, what, and what to do."""


class NotFoundError(Error, FileNotFoundError):
    """There is nothing at the path of a dataset."""


class CorruptError(Error):
    """Bytes are not what the format or the manifest says.

    ``corruptions`` are the rows that Dataset.verify found to be wrong, as penstock.verify.Corruption.
    """

    def __init__(self, text: str, corruptions: Sequence[Corruption] = ()) -> None:
        super().__init__(text)
        self.corruptions = list(corruptions)


class UnsupportedError(Error):
    """A dataset that may be valid, but not for this reader."""
