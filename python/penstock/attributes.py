"""Attributes of a DataLoader that say what it was made with."""

from __future__ import annotations

from typing import Any, NoReturn


class Fixed:
    """An attribute that says what a DataLoader was made with, and cannot be set."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, loader: Any, _: type) -> Any:
        return self if loader is None else loader._fixed[self._name]

    def __set__(self, _: object, value: object) -> NoReturn:
        raise AttributeError(
            f"{self._name} of a DataLoader cannot be set: the feeding process works with the one that it was made with. Make a new DataLoader with another "
            f"{self._name}; load_state_dict(loader.state_dict()) has it continue where this one is, if the order is the same"
        )


class Missing(Fixed):
    """A parameter of torch's DataLoader that this one does not have."""

    def __get__(self, loader: Any, _: type) -> Any:
        if loader is None:
            return self
        raise AttributeError(f"a DataLoader of penstock has no {self._name}")

    def __set__(self, _: object, value: object) -> NoReturn:
        raise AttributeError(f"a DataLoader of penstock has no {self._name}: a feeding process, which runs no Python, makes its batches")
