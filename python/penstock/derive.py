"""Fields that are computed from others by an expression: see ``Dataset.derive``.

The program parses expressions, by package loader/expr of Go, which computes the same.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._values import floats
from .errors import Error
from .field import Field
from .ragged import RaggedRecords
from .reader import shared
from .records import Derived, Records

_OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "minimum": np.minimum, "maximum": np.maximum}
_COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "=": np.equal, "!=": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
}  # fmt: skip
_FUNCTIONS = {"negate": np.negative, "abs": np.abs, "sqrt": np.sqrt}
#: Functions that are computed in float64, as in Go, and rounded.
_ROUNDED = {"exp": np.exp, "log": np.log, "log1p": np.log1p}

#: How many expressions may be computed for a field, those of its own fields included.
MAX_WORK = 1 << 12

#: Types that float32 has all numbers of.
_SMALL = {"bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "float32"}


def formulas(expressions: Sequence[Mapping[str, Any]]) -> list[Formula]:
    """Return expressions, each of which has a name. Raise Error for one that is not of the language."""
    for e in expressions:
        if not isinstance(e["name"], str) or not e["name"]:
            raise Error(f"derive: the name of a field is {e['name']!r}; it is a str, such as 'ndvi'")
        if not isinstance(e["expression"], str):
            raise Error(f"derive: {e['name']!r} is {e['expression']!r:.60}; it is an expression, such as '(nir - red) / (nir + red)'")
    parsed = shared().ask({"formulas": [e["expression"] for e in expressions]})["formulas"]
    return [Formula(e["name"], e["expression"], p) for e, p in zip(expressions, parsed)]


class Formula:
    """An expression over fields, as the program has parsed it."""

    def __init__(self, name: str, text: str, parsed: Mapping[str, Any]) -> None:
        self._name, self._text = name, text
        if "error" in parsed:
            raise Error(f"derive: {name!r}: {parsed['error']}")
        self.names: list[str] = parsed["names"]
        self._columns: list[int] = parsed["columns"]
        self._truth = parsed.get("truth", False)
        self._tree = parsed["tree"]

    def _missing(self, name: str, column: int, fields: Mapping[str, Field]) -> Error:
        reason = f"column {column}: there is no field {name!r}; there are: {', '.join(fields)}"
        return Error(f"derive: {self._name!r}: {reason}\n  {self._text}\n  {' ' * (column - 1)}^")

    def field(self, fields: Mapping[str, Field]) -> Field:
        """Return the field that the results are."""
        shape: tuple[int, ...] = ()
        for name, column in zip(self.names, self._columns):
            if name not in fields:
                raise self._missing(name, column, fields)
            if fields[name].ragged:
                raise Error(f"derive: {self._name!r}: records of {name!r} have lengths of their own; pad or pack them first")
            try:
                shape = np.broadcast_shapes(shape, fields[name].shape)
            except ValueError:
                raise Error(f"derive: {self._name!r}: field {name!r}: shapes {shape} and {fields[name].shape} cannot be broadcast") from None
        dims = next((fields[n].dims for n in self.names if fields[n].shape == shape and fields[n].dims), ())
        return Field(self._name, "bool" if self._truth else self._type(fields), shape, dims=dims)

    def _type(self, fields: Mapping[str, Field]) -> str:
        return "float32" if all(fields[n].dtype in _SMALL for n in self.names) else "float64"

    def compute(self, fields: Mapping[str, Field], values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the results for records, whose fields have these values."""
        dtype, field = np.dtype(self._type(fields)), self.field(fields)
        known = {}
        for name in self.names:
            f, x = fields[name], values[name]
            x = floats(x, dtype)
            known[name] = x.reshape(len(x), *[1] * (len(field.shape) - len(f.shape)), *f.shape)
        with np.errstate(all="ignore"):
            out = _evaluated(self._tree, known, dtype)
        shape = (len(next(iter(known.values()))), *field.shape)
        return np.broadcast_to(out, shape).astype(field.numpy)


def _evaluated(node: Any, known: Mapping[str, np.ndarray], dtype: np.dtype) -> Any:
    """Return the values of a part of an expression: see expr.Formula.Tree of Go."""
    if isinstance(node, dict):
        return known[node["field"]]
    if not isinstance(node, list):
        return dtype.type(float(node))
    name, args = node[0], [_evaluated(a, known, dtype) for a in node[1:]]
    if name in _OPERATORS:
        return _OPERATORS[name](*args)
    if name in _COMPARISONS:
        return _COMPARISONS[name](*args).astype(dtype)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*args)
    if name in _ROUNDED:
        return _ROUNDED[name](np.float64(args[0])).astype(dtype)
    if name == "**":
        x, y = np.float64(args[0]), np.float64(args[1])
        # Some versions of NumPy take the root in np.power too, others in the operator only.
        return np.asarray(np.where(y == 0.5, np.sqrt(x), np.power(x, y))).astype(dtype)
    if name == "in":
        same = [(args[0] == x) | ((args[0] != args[0]) & (x != x)) for x in args[1:]]
        return functools.reduce(np.logical_or, same).astype(dtype) if same else np.zeros_like(args[0])
    if name == "where":
        return np.where(args[0] != 0, args[1], args[2])
    return np.minimum(np.maximum(args[0], args[1]), args[2])


class Computed(Derived):
    """A field that an expression computes."""

    mapped = False

    def __init__(self, formula: Formula, fields: Mapping[str, Field], records: Mapping[str, Records | RaggedRecords], count: int) -> None:
        field = formula.field(fields)
        super().__init__(field, field.numpy, field.shape, count)
        self._formula, self._fields, self._bases = formula, fields, records
        self.work = 1 + sum(records[name].work for name in formula.names)
        if self.work > MAX_WORK:
            raise Error(
                f"derive: {field.name!r} needs more than {MAX_WORK} expressions to be computed for each record, those of its fields included; "
                "write these into a dataset: penstock preprocess VIEW DEST"
            )

    def _fill(self, records: np.ndarray, out: np.ndarray) -> None:
        out[...] = self._formula.compute(self._fields, {n: np.asarray(self._bases[n].take(records)) for n in self._formula.names})

    def _range(self, start: int, stop: int) -> np.ndarray:
        return self._formula.compute(self._fields, {n: np.asarray(self._bases[n][start:stop]) for n in self._formula.names})
