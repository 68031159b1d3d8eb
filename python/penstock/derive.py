"""Fields that are computed from others by an expression: see ``Dataset.derive``. package loader/internal/formula has the same in Go."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._values import floats
from .errors import Error
from .field import Field
from .ragged import RaggedRecords
from .records import Derived, Records

#: The number of arguments of each function.
_FUNCTIONS = {"sqrt": 1, "exp": 1, "log": 1, "log1p": 1, "abs": 1, "minimum": 2, "maximum": 2, "where": 3, "clip": 3}
_OPERATORS = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}
_COMPARISONS = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal, ast.NotEq: np.not_equal}
#: Functions that are computed in float64, as in Go, and rounded.
_ROUNDED = {"exp": np.exp, "log": np.log, "log1p": np.log1p}

#: How many expressions may be computed for a field, those of its own fields included.
MAX_WORK = 1 << 12

_MAX_DEPTH = 100
_MAX_TEXT = 1 << 16
_CHARACTERS = re.compile(r"[^ \t0-9A-Za-z_+\-*/().,<>=!]")
_NUMBER = re.compile(r"(0|[1-9][0-9]*|([0-9]+\.[0-9]*|\.[0-9]+)|[0-9]+(?=[eE]))([eE][+-]?[0-9]+)?")

#: Types that float32 has all numbers of.
_SMALL = {"bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "float32"}


class Formula:
    """An expression over fields."""

    def __init__(self, name: str, text: Any) -> None:
        self._name, self._text = name, text
        self.names: list[str] = []
        if not isinstance(name, str) or not name:
            raise Error(f"derive: the name of a field is {name!r}; it is a str, such as 'ndvi'")
        if not isinstance(text, str):
            raise Error(f"derive: {name!r} is {text!r:.60}; it is an expression, such as '(nir - red) / (nir + red)'")
        if len(text) > _MAX_TEXT:
            raise Error(f"derive: {name!r}: an expression of {len(text)} characters; it may have {_MAX_TEXT}")
        wrong = _CHARACTERS.search(text)
        if wrong:
            raise self._error(wrong.start(), f"{wrong.group()!r} cannot stand in an expression")
        self._indent = len(text) - len(text.lstrip())
        try:
            self.root = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as e:
            raise self._error(self._indent + e.offset - 1 if e.offset else len(text), f"not an expression: {e.msg}") from None
        except (MemoryError, RecursionError):
            raise Error(f"derive: {name!r}: more than {_MAX_DEPTH} operations in each other; derive it in two steps") from None
        self._check(self.root, 1)
        if not self.names:
            raise Error(f"derive: {name!r}: it names no field")

    def _error(self, at: int, reason: str) -> Error:
        return Error(f"derive: {self._name!r}: column {at + 1}: {reason}\n  {self._text}\n  {' ' * at}^")

    def _check(self, node: Any, depth: int) -> None:
        """Raise Error if a part is not of the language."""

        def error(reason: str) -> Error:
            return self._error(self._indent + node.col_offset, reason)

        if depth > _MAX_DEPTH:
            raise Error(f"derive: {self._name!r}: more than {_MAX_DEPTH} operations in each other; derive it in two steps")
        parts: list[Any] = []
        if isinstance(node, ast.Constant):
            text = ast.get_source_segment(self._text.strip(), node) or ""
            if not _NUMBER.fullmatch(text):
                raise error(f"{text} is not a number")
            if math.isinf(float(text)):
                raise error(f"{text} is too large for float64")
        elif isinstance(node, ast.Name):
            if node.id not in self.names:
                self.names.append(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id not in _FUNCTIONS:
                raise error(f"there is no function {node.func.id}; there are: {', '.join(sorted(_FUNCTIONS))}")
            if len(node.args) != _FUNCTIONS[node.func.id]:
                raise error(f"{node.func.id} has {len(node.args)} arguments, and takes {_FUNCTIONS[node.func.id]}")
            parts = node.args
        elif isinstance(node, ast.BinOp) and (type(node.op) in _OPERATORS or isinstance(node.op, ast.Pow)):
            parts = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            parts = [node.operand]
        elif isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
            if len(node.ops) > 1:
                raise error("a comparison cannot go on; write where(a < b, b < c, 0)")
            parts = [node.left, *node.comparators]
        else:
            raise error(
                f"this is not of the language: {', '.join(sorted(_FUNCTIONS))}, + - * / **, comparisons, numbers and fields; "
                "where(a > 0, b, 0) is a condition"
            )
        for part in parts:
            self._check(part, depth + 1)

    def field(self, fields: Mapping[str, Field]) -> Field:
        """Return the field that the results are."""
        shape: tuple[int, ...] = ()
        for name in self.names:
            if name not in fields:
                at = next(n.col_offset for n in ast.walk(self.root) if isinstance(n, ast.Name) and n.id == name)
                raise self._error(self._indent + at, f"there is no field {name!r}; there are: {', '.join(fields)}")
            if fields[name].ragged:
                raise Error(f"derive: {self._name!r}: records of {name!r} have lengths of their own; pad or pack them first")
            try:
                shape = np.broadcast_shapes(shape, fields[name].shape)
            except ValueError:
                raise Error(f"derive: {self._name!r}: field {name!r}: shapes {shape} and {fields[name].shape} cannot be broadcast") from None
        dims = next((fields[n].dims for n in self.names if fields[n].shape == shape and fields[n].dims), ())
        return Field(self._name, "bool" if _is_truth(self.root) else self._type(fields), shape, dims=dims)

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
            out = self._of(self.root, known, dtype)
        shape = (len(next(iter(known.values()))), *field.shape)
        return np.broadcast_to(out, shape).astype(field.numpy)

    def _of(self, node: Any, known: Mapping[str, np.ndarray], dtype: np.dtype) -> Any:
        if isinstance(node, ast.Constant):
            return dtype.type(float(ast.get_source_segment(self._text.strip(), node) or ""))
        if isinstance(node, ast.Name):
            return known[node.id]
        if isinstance(node, ast.UnaryOp):
            x = self._of(node.operand, known, dtype)
            return -x if isinstance(node.op, ast.USub) else x
        if isinstance(node, ast.BinOp):
            x, y = self._of(node.left, known, dtype), self._of(node.right, known, dtype)
            if isinstance(node.op, ast.Pow):
                x, y = np.float64(x), np.float64(y)
                # Some versions of NumPy take the root in np.power too, others in the operator only.
                return np.asarray(np.where(y == 0.5, np.sqrt(x), np.power(x, y))).astype(dtype)
            return _OPERATORS[type(node.op)](x, y)
        if isinstance(node, ast.Compare):
            return _COMPARISONS[type(node.ops[0])](self._of(node.left, known, dtype), self._of(node.comparators[0], known, dtype)).astype(dtype)
        name, args = node.func.id, [self._of(a, known, dtype) for a in node.args]
        if name in _ROUNDED:
            return _ROUNDED[name](np.float64(args[0])).astype(dtype)
        if name == "where":
            return np.where(args[0] != 0, args[1], args[2])
        if name == "clip":
            return np.minimum(np.maximum(args[0], args[1]), args[2])
        return getattr(np, name)(*args)


def _is_truth(node: Any) -> bool:
    """Return whether results are true or false, and not numbers."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd):
        return _is_truth(node.operand)
    if isinstance(node, ast.Call):
        return node.func.id == "where" and _is_truth(node.args[1]) and _is_truth(node.args[2])  # type: ignore[attr-defined]
    return isinstance(node, ast.Compare)


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
