"""Datasets that are made of others: some of the records, some of the fields, records by a condition, fields side by side."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from .data import FIXED, RAGGED, TEXT, Column, Columns, stack


def size(columns: Columns) -> int:
    return len(next(iter(columns.values())).values)


def filler(c: Column) -> Any:
    """Return what stands for a field in records that lack it: 1, or 0 where no value is larger, as a label has to be one of the classes."""
    return {FIXED: lambda: int(bool(np.max(c.values) >= 1)), RAGGED: list, TEXT: lambda: "filled"}[c.kind]()


def filled(c: Column, fill: Any) -> Any:
    """Return a record of a column that it lacks."""
    return fill if c.kind == TEXT else np.full(c.shape, fill, c.dtype) if c.kind == FIXED else np.zeros((0, *c.shape), c.dtype)


def picked(columns: Columns, records: list[int]) -> Columns:
    return {name: c.pick(records) for name, c in columns.items()}


def draw(rng: random.Random, columns: Columns) -> dict[str, Any] | None:
    """Return one step of a view over a dataset with these fields, as plain values; None if none fits."""
    n = size(columns)
    kind = rng.choice(["slice", "numbers", "mask", "fields", "rename", "filter", "concat", "derive"])
    numbers = [name for name, c in columns.items() if c.kind == FIXED and not c.shape]
    if n == 0 or not columns:
        return None
    if kind == "slice":
        start = rng.randrange(n)
        return {"kind": kind, "slice": [start, rng.randint(start + 1, n), rng.choice([1, 1, 2, 3])]}
    if kind == "numbers":
        return {"kind": kind, "numbers": [rng.randrange(n) for _ in range(rng.randint(1, 2 * n))]}
    if kind == "mask":
        mask = [rng.random() < 0.7 for _ in range(n)]
        mask[rng.randrange(n)] = True
        return {"kind": kind, "mask": mask}
    if kind == "fields":
        return {"kind": kind, "fields": rng.sample(list(columns), rng.randint(1, len(columns)))}
    if kind == "rename":
        old = rng.choice(list(columns))
        return {"kind": kind, "rename": {old: f"r{rng.randrange(1000)}"}} if not any(name.startswith("r") for name in columns) else None
    if kind == "filter":
        where = condition(rng, columns, numbers)
        return {"kind": kind, "where": where} if where and sum(holds(where, columns)) else None
    if kind == "concat":
        start = rng.randrange(n)
        step = {"kind": kind, "slice": [start, rng.randint(start + 1, n), 1]}
        if len(columns) > 1 and rng.random() < 0.5:
            step["fill"] = {name: filler(columns[name]) for name in rng.sample(list(columns), rng.randint(1, len(columns) - 1))}
        return step
    small = [name for name in numbers if columns[name].dtype in ("int8", "int16", "uint8", "uint16", "float16", "float32")]
    if not small or "derived" in columns:
        return None
    a, b = rng.choice(small), rng.choice(small)
    return {"kind": "derive", "derived": [rng.choice("+-*"), a, b, rng.choice([0.5, 2, 3, -1.25])]}


def condition(rng: random.Random, columns: Columns, numbers: list[str], depth: int = 0) -> list[Any] | None:
    """Return a condition on single numbers and texts as a tree of lists."""
    texts = [name for name, c in columns.items() if c.kind == TEXT]
    integers = [name for name in numbers if columns[name].dtype.kind in "iu"]  # type: ignore[union-attr]
    if depth < 2 and rng.random() < 0.4:
        parts = [condition(rng, columns, numbers, depth + 1) for _ in range(2)]
        return [rng.choice(["and", "or"]), *parts] if all(parts) else None
    if depth < 2 and rng.random() < 0.2:
        part = condition(rng, columns, numbers, depth + 1)
        return ["not", part] if part else None
    if texts and rng.random() < 0.4:
        name = rng.choice(texts)
        return [rng.choice(["=", "!=", "in"]), name, [rng.choice(columns[name].values) for _ in range(2)]]
    if integers:
        name = rng.choice(integers)
        return [rng.choice(["=", "!=", "<", "<=", ">", ">=", "in"]), name, [int(rng.choice(columns[name].values)) for _ in range(2)]]
    return None


def written(tree: list[Any]) -> str:
    """Return a condition in the language of filters."""
    op = tree[0]
    if op in ("and", "or"):
        return f"({written(tree[1])}) {op} ({written(tree[2])})"
    if op == "not":
        return f"not ({written(tree[1])})"
    name, values = tree[1], [repr(v) if isinstance(v, int) else "'" + v.replace("'", "''") + "'" for v in tree[2]]
    return f"{name} in ({', '.join(values)})" if op == "in" else f"{name} {op} {values[0]}"


def holds(tree: list[Any], columns: Columns) -> list[bool]:
    """Return for which records a condition holds."""
    op = tree[0]
    if op in ("and", "or"):
        both = zip(holds(tree[1], columns), holds(tree[2], columns))
        return [a and b if op == "and" else a or b for a, b in both]
    if op == "not":
        return [not a for a in holds(tree[1], columns)]
    column, want = columns[tree[1]], tree[2]
    values = column.values if column.kind == TEXT else [int(v) for v in column.values]
    compare = {
        "=": lambda v: v == want[0],
        "!=": lambda v: v != want[0],
        "<": lambda v: v < want[0],
        "<=": lambda v: v <= want[0],
        ">": lambda v: v > want[0],
        ">=": lambda v: v >= want[0],
        "in": lambda v: v in want,
    }[op]
    return [compare(v) for v in values]


def apply(step: dict[str, Any], columns: Columns) -> Columns:
    """Return the dataset that a step makes of one with these fields."""
    n, kind = size(columns), step["kind"]
    if kind == "slice":
        return picked(columns, list(range(n))[slice(*step["slice"])])
    if kind == "numbers":
        return picked(columns, step["numbers"])
    if kind == "mask":
        return picked(columns, [i for i, keep in enumerate(step["mask"]) if keep])
    if kind == "fields":
        return {name: columns[name] for name in step["fields"]}
    if kind == "rename":
        return {step["rename"].get(name, name): c for name, c in columns.items()}
    if kind == "filter":
        return picked(columns, [i for i, keep in enumerate(holds(step["where"], columns)) if keep])
    if kind == "concat":
        both = picked(columns, list(range(n)) + list(range(n))[slice(*step["slice"])])
        for name, fill in step.get("fill", {}).items():  # which the second part lacks
            c = both[name]
            c.values[n:] = [filled(c, fill)] * (len(c.values) - n)
        return both
    op, a, b, number = step["derived"]
    left, right = (stack(columns[name]).astype(np.float32) for name in (a, b))
    with np.errstate(all="ignore"):
        value = {"+": left + right, "-": left - right, "*": left * right}[op] * np.float32(number)
    return columns | {"derived": Column(FIXED, list(value), np.dtype(np.float32))}


def expression(step: dict[str, Any]) -> str:
    op, a, b, number = step["derived"]
    return f"({a} {op} {b}) * {number}"


def batch(columns: Columns, records: list[int]) -> dict[str, Any]:
    """Return what a batch of these records has: arrays, (values, offsets) of a ragged field, lists of str."""
    found: dict[str, Any] = {}
    for name, c in picked(columns, records).items():
        if c.kind == TEXT:
            found[name] = c.values
        elif c.kind == RAGGED:
            ends = np.cumsum([0] + [len(v) for v in c.values])
            found[name] = (np.concatenate([np.zeros((0, *c.shape), c.dtype), *c.values]), ends)
        else:
            found[name] = stack(c)
    return found
