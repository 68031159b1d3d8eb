"""Attributes of a DataLoader that show more than its arguments.

Frameworks read the arguments from ``vars(loader)`` to make another DataLoader, and people read the attributes.
"""

from __future__ import annotations

from typing import Any

#: Attributes that torch's DataLoader refuses to set once it is made.
PROTECTED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))


class Attribute:
    """An attribute that is kept as the argument, and shown as the value that the argument stands for.

    ``vars(loader)`` has the argument, so that frameworks can make another DataLoader of it; ``loader.name`` returns
    the result of the loader's method ``_show`` for it.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, loader: Any, _: type) -> Any:
        if loader is None:
            return self
        if self._name not in vars(loader):
            raise AttributeError(f"{type(loader).__name__!r} object has no attribute {self._name!r}")
        return loader._show(self._name, vars(loader)[self._name])

    def __set__(self, loader: Any, value: object) -> None:
        vars(loader)[self._name] = value
