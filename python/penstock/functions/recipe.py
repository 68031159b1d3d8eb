"""Recipes of functions: digests of all that their results depend on, by which a function that changed is found."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import sysconfig
from types import CodeType, ModuleType
from typing import Any

from .._base.errors import UnsupportedError
from .._code.digest import Digest

#: Folders of Python's own modules and of installed packages, whose versions stand for their code.
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def recipe(function: Any) -> str:
    """Return a digest of a function: of its code, the values that it refers to, and the versions of the packages that these are of.

    Raises:
        UnsupportedError: It refers to an object that pickle cannot keep, so that a change of that object would not be noticed.
    """
    d = _Recipe()
    d.add(function)
    return d.hash.hexdigest()


class _Recipe(Digest):
    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[int, Any]] = {}  # functions and classes that were added, by their addresses

    def _object(self, value: Any) -> None:
        kind = type(value)
        if isinstance(value, ModuleType):
            self.add([value.__name__, _version(value.__name__)])
        elif isinstance(value, CodeType):
            self.add([value.co_code, value.co_names, value.co_varnames, value.co_consts])
        elif isinstance(value, functools.partial):
            self.add([value.func, value.args, value.keywords])
        elif inspect.ismethod(value) or (inspect.isbuiltin(value) and not isinstance(value.__self__, (ModuleType, type(None)))):
            self.add([value.__name__, value.__self__, getattr(value, "__func__", None)])
        elif hasattr(value, "__qualname__"):
            self._named(value)
        else:
            self.add(kind)
            try:
                reduced = value.__reduce_ex__(4)
            except Exception as e:
                raise UnsupportedError(f"a {kind.__qualname__} cannot be pickled, so that a change of it would not be noticed ({e})") from None
            reduced = reduced if isinstance(reduced, tuple) else (reduced,)
            self.add([*reduced[:3], *(None if items is None else list(items) for items in reduced[3:5])])

    def _named(self, value: Any) -> None:
        """Add a function or a class: by name and version if it is of a package, otherwise with its code."""
        module = getattr(value, "__module__", None) or ""
        number, _ = self._known.setdefault(id(value), (len(self._known), value))
        self.add([number, module, value.__qualname__, _version(module)])
        if _is_installed(module) or number < len(self._known) - 1:
            return
        if inspect.isfunction(value):
            names = sorted(_names(value.__code__) & value.__globals__.keys())
            self.add([value.__code__, value.__defaults__, value.__kwdefaults__, [(name, value.__globals__[name]) for name in names]])
            self.add([_content(cell) for cell in value.__closure__ or ()])
        elif isinstance(value, type):
            parts = {name: getattr(part, "__func__", getattr(part, "fget", part)) for name, part in vars(value).items()}
            self.add([value.__bases__, {name: parts[name] for name in sorted(parts) if inspect.isfunction(parts[name])}])


def _names(code: CodeType) -> set[str]:
    """Return the names of globals that code refers to, in functions within it too."""
    found = {of.argval for of in dis.get_instructions(code) if of.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found.union(*(_names(part) for part in code.co_consts if isinstance(part, CodeType)))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a name that has no value yet
        return None


def _is_installed(module: str) -> bool:
    file = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    return module != "__main__" and (file is None or file.startswith(_INSTALLED))


def _version(module: str) -> str:
    top = module.partition(".")[0]
    return str(getattr(sys.modules.get(top), "__version__", "")) or (sys.version if _is_installed(top) else "")
