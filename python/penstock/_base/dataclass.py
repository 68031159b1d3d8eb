"""dataclass for classes that are imported with the package.

The dataclass of the standard library compiles six methods of each frozen class, which takes half a millisecond. This dataclass
compiles __init__ alone, and classes share the other methods.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, *, frozen: bool = False) -> Any:
        """Do what dataclasses.dataclass does."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen)
        own = vars(cls)
        methods = {"__repr__": _repr, "__eq__": _eq, **({"__setattr__": _set_once, "__delattr__": _keep} if frozen else {})}
        for name, method in methods.items():
            if name not in own:
                setattr(cls, name, method)
        if own.get("__hash__") is None:
            cls.__hash__ = _hash if frozen else None
        return dataclasses.dataclass(repr=False, eq=False)(cls)


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, f.name) for f in dataclasses.fields(self) if f.compare)


def _eq(self: Any, other: object) -> bool:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _set_once(self: Any, name: str, value: Any) -> None:
    """Let __init__ set each field."""
    if name in vars(self) or name not in self.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _keep(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
