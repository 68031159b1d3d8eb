"""What files of JSON are expected to hold, as tables, and the one function that compares a file with its table."""

from __future__ import annotations

import json
import reprlib
from typing import Any

from .errors import CorruptError

#: Whole numbers from 0 on that a signed integer of 64 bits holds.
WHOLE = range(1 << 63)


def parse(text: str | bytes, expected: Any, where: str, what: str) -> Any:
    """Return the value of a JSON text that is as expected: see ``checked``. Raise CorruptError otherwise."""
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as e:
        reason = "nested too deep" if isinstance(e, RecursionError) else e
        raise CorruptError(f"{where}: not {what}: {reason}") from None
    return checked(value, expected, where)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def checked(value: Any, expected: Any, where: str) -> Any:
    """Return a value of JSON that is as expected, or raise CorruptError, which names the place.

    Args:
        value: What json.loads returned.
        expected: ``str``, ``bool`` or ``float`` (any number); a range, for whole numbers; ``object``, for anything; a list of one,
            for a list of such; a tuple, for a list of that length; a dict of keys, for an object, where a key with "?" at its end
            may be missing or null, and ``...`` is each other key.
        where: The file, and the place in it.
    """
    ok = True
    if isinstance(expected, range):
        ok = type(value) is int and value in expected
    elif expected is float:
        ok = type(value) in (int, float) and abs(value) <= 1.7e308
    elif isinstance(expected, type):
        ok = expected is object or type(value) is expected
    elif isinstance(expected, (list, tuple)):
        ok = isinstance(value, list) and (isinstance(expected, list) or len(value) == len(expected))
        one = expected[0] if isinstance(expected, list) else None
        for i, element in enumerate(value if ok and one is not object else ()):
            checked(element, expected[i] if one is None else one, f"{where}: element {i}")
    else:
        ok = isinstance(value, dict)
        if ok:
            _check_keys(value, expected, where)
    if not ok:
        raise CorruptError(f"{where}: {reprlib.repr(value)} is not {_words(expected)}")
    return value


def _check_keys(value: dict[str, Any], expected: dict[Any, Any], where: str) -> None:
    known = set()
    for key, of in expected.items():
        if key is ...:
            continue
        name, optional = (key[:-1], True) if key.endswith("?") else (key, False)
        known.add(name)
        found = value.get(name)
        if found is None and not optional:
            raise CorruptError(f"{where}: {name!r} is missing")
        if found is not None:
            checked(found, of, f"{where}: {name!r}")
    for name in value if ... in expected else ():
        if name not in known:
            checked(value[name], expected[...], f"{where}: {name[:60]!r}")


def _words(expected: Any) -> str:
    if isinstance(expected, range):
        return f"a whole number from {expected.start} to {expected.stop - 1}" if expected != WHOLE else "a whole number"
    if isinstance(expected, tuple):
        return f"a list of {len(expected)}"
    names: dict[Any, str] = {str: "text", bool: "true or false", float: "a number"}
    return names.get(expected, "") if isinstance(expected, type) else "a list" if isinstance(expected, list) else "an object"
