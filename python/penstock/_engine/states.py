"""Checks of states that a DataLoader loads: whoever wrote the checkpoint, a value is compared with the values that the run can
have before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .._base.errors import Error
from .wire import Malformed, number, part, shown

#: Of any state.
POSITION = ("epoch", "step")

#: What a feeding process says of where it is: loader.State in Go.
_FED = {
    "v": int, "dataset": str, "gen": str, "n": int, "sampler": str, "seed": int, "batch": int, "drop": bool, "tf": str, "co": str,
    "epoch": int, "step": int, "done": str, "weights": list, "mix": dict,
}  # fmt: skip
_LONGEST = 1 << 16

#: Names of what a sampler, a dataset, or an iterator over a dataset returned as its own state.
_USERS = ("sampler", "dataset", "iterator")
_DEEPEST = 8


def seen(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return how often each dataset of ``samplers.Mix`` was drawn before a state, in the form of ``DataLoader.stats()["mixed"]``.

    Neither the datasets nor a DataLoader are needed. A state of very many datasets does not have the mixture, and is refused.

    Args:
        state: What ``DataLoader.state_dict`` returned.

    Example:
        ``penstock.seen(loader.state_dict())[0]["Epochs"]``
    """
    from .._write.changing import run

    check_mapping(state, "v")
    fed = {name: value for name, value in state.items() if name in _FED}
    with checking():
        check_fed(fed, (1 << 63) - 1)
    if not fed.get("mix"):
        raise Error(
            "the state has no mixture: its sampler is not samplers.Mix, or has more datasets than a small state holds; "
            'DataLoader.stats()["mixed"] has the counts'
        )
    mixed: list[dict[str, Any]] = run(["inspect", "state", "--json", "-"], json.dumps(fed).encode())["mixed"]
    return mixed


def check_mapping(state: Any, *names: str) -> None:
    """Raise Error if a state is not a result of a state_dict() of penstock, with the given names."""
    if not isinstance(state, Mapping):
        raise Error(f"the state is {shown(state)}; it must be what state_dict() returned")
    if not {*POSITION, *names} <= state.keys():
        raise Error(f"this is not what state_dict() returned: it has {', '.join(shown(name) for name in list(state)[:8]) or 'nothing'}")
    with checking():
        _check_plain(state)


def _check_plain(value: Any, depth: int = 0) -> None:
    """Raise Malformed for a value that is not a number, text, bytes, or a list or dict of these. States that objects of the
    user returned are exempt.
    """
    if isinstance(value, Mapping) if depth == 0 else type(value) is dict:
        for name in value:
            if type(name) is not str or depth > _DEEPEST:
                raise Malformed(f"it has a dict with {shown(name)}")
            if name not in _USERS:
                _check_plain(value[name], depth + 1)
    elif type(value) is list and depth <= _DEEPEST:
        for each in value:
            _check_plain(each, depth + 1)
    elif value is not None and type(value) not in (bool, int, float, str, bytes):
        raise Malformed(f"it has {shown(value)}")


def check_identity(state: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Raise Error if what does not change in a run is another value in a state."""
    for name, value in identity.items():
        given = state.get(name)
        if type(given) is not type(value) or given != value:
            raise Error(f"the state is of a DataLoader with {name} {shown(given)}, and this one has {shown(value)}; make it with the same")


def check_fed(state: Mapping[str, Any], batches: int) -> None:
    """Raise Malformed if a state cannot go to a feeding process, which compares its values with its datasets."""
    only(state, _FED)
    for name in state:
        if _FED[name] is int:
            number(state, name, 0, batches if name == "step" else (1 << 64) - 1 if name == "seed" else (1 << 63) - 1)
            continue
        try:
            text = json.dumps(part(state, name, _FED[name]), allow_nan=False)
        except (TypeError, ValueError):
            raise Malformed(f"{name} has bytes, or numbers that are not finite") from None
        if len(text) > _LONGEST:
            raise Malformed(f"{name} has {len(text)} characters")


@contextmanager
def checking() -> Iterator[None]:
    """Say that it is the state whose value is wrong."""
    try:
        yield
    except Malformed as e:
        raise Error(f"the state is not one of this DataLoader: {e}; load what its state_dict() returned") from None


def only(names: Any, known: Any) -> None:
    """Raise Malformed if there are names other than the known names."""
    more = [name for name in names if name not in known]
    if more:
        raise Malformed(f"it has {', '.join(map(shown, more[:4]))}")
