"""Functions that get several records at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

#: The most records that a function gets at a time.
AT_ONCE = 64
#: Records by which functions show the types of their results, and which results have any number of rows: mostSamples in Go.
SETTLING = 16

_F = TypeVar("_F", bound=Callable[..., Any])


def batched(function: _F) -> _F:
    """Mark a function that gets the values of up to 64 records as a list, and returns a list with the result of each.

    ::

        @penstock.batched
        def tokenize(texts: list[str]):
            return tokenizer(texts)["input_ids"]

        penstock.DataLoader("notes", 64, transforms={"text": [tokenize]})

    The results and their order are the same as for a function of one value: how many records a call gets has no meaning. If it
    raises an exception, it is called with one record at a time, and the error names the record. A function of records gets a list of dicts:
    ``def f(records: list[dict])``; one that is named fields by ``transforms.Record`` gets a list of each field. Random numbers
    are seeded by the first record of a list.

    Args:
        function: It takes a list, or several of the same length, and returns a list of the same length.
    """
    try:
        function.__penstock_batched__ = True  # type: ignore[attr-defined]
    except AttributeError:  # of a method, or a function of C
        return batched(functools.partial(function))  # type: ignore[return-value]
    return function


def is_batched(function: Any) -> bool:
    """Return whether a function gets several records at a time."""
    return getattr(function, "__penstock_batched__", False) is True


def together(function: Callable[..., Any], number: int, *lists: Sequence[Any]) -> list[Any]:
    """Return the results of a batched function for a number of records, one for each."""
    made = function(*lists)
    if isinstance(made, (str, bytes, dict)) or not hasattr(made, "__len__") or len(made) != number:
        of = getattr(function, "func", function)
        size = f" of {len(made)}" if hasattr(made, "__len__") else ""
        raise TypeError(
            f"{getattr(of, '__qualname__', type(of).__name__)} is batched, and has returned {type(made).__name__}{size} for {number} records; "
            "have it return a list of one result for each"
        )
    return list(made)
