"""Pipelines with functions: which part the engine does, and which a function.

The JSON of a pipeline has a step "Function" with a number where a Call comes: the feeding process sends the values to
workers there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import transforms as T
from .._base.errors import UnsupportedError
from .._read.field import Field
from .call import Call, Function, Step, after, name_of, stated, step_of
from .record import OfField, Record, is_record

#: Steps at the end of a pipeline of torchvision which the engine does alike, if they begin with an image of bytes.
_ENDS = {"ToTensor", "PILToTensor", "ToImage", "ToDtype", "ConvertImageDtype", "Normalize"}
_TO_TENSORS = {"ToTensor", "PILToTensor", "ToImage"}


@dataclass
class Plan:
    """Pipelines by field, as JSON for feed, and the functions that they have, by number."""

    pipelines: dict[str, list[dict[str, Any]] | None]  # None has no steps, which "" would have
    calls: list[Call] = field(default_factory=list)

    def parted(self, names: Sequence[str]) -> tuple[Plan, list[OfField]]:
        """Return the plan without the last functions of fields, which make any number of rows, and these as steps of whole records."""
        pipelines, steps = dict(self.pipelines), list[OfField]()
        for name in names:
            *entries, last = pipelines.get(name) or pipelines[""] or [{}]
            output, call = last.get("output"), self.calls[last["function"]]
            makes = (Field(name, output["dtype"], tuple(output["shape"][1:]), ragged=True),) if output else ()
            calls = [Call((step,)) for step in call.steps] if any(step.batched for step in call.steps) else [call]
            steps += [OfField(name, one, sum(e["op"] == "Function" for e in entries), makes) for one in calls]
            pipelines[name] = entries
        used = sorted({e["function"] for entries in pipelines.values() for e in entries or () if e["op"] == "Function"})
        numbered = {
            name: [{**e, "function": used.index(e["function"])} if e["op"] == "Function" else e for e in entries or ()]
            for name, entries in pipelines.items()
        }
        return Plan({name: e or None for name, e in numbered.items()}, [self.calls[i] for i in used]), steps


def plan(transforms: Any) -> Plan:
    """Return the pipelines of a DataLoader's transforms: of a pipeline for all image fields, under "", or of a dict by field."""
    found = Plan({})
    if transforms is None:
        return found
    if isinstance(transforms, Mapping) and "op" not in transforms:
        for name, t in transforms.items():
            found.pipelines[name] = _pipeline(t, found.calls)
    else:
        found.pipelines[""] = _pipeline(transforms, found.calls)
    return found


def divided(transforms: Any) -> tuple[Any, tuple[Record, ...], list[dict[str, Any]]]:
    """Return the transforms before functions of whole records, these, and the steps after them as JSON.

    They are steps of a list, of a Compose, or of the entry "" of a dict, which is for all image fields.
    """
    if isinstance(transforms, Mapping) and "op" not in transforms:
        for name, t in transforms.items():
            if name and (of_records := [step for step, _ in T.steps_of(t) if is_record(step)]):
                raise UnsupportedError(
                    f"transforms of {name!r}: {_said(of_records[0])} takes whole records; put it in the list of all fields: transforms={{'': [...]}}"
                )
        before, records, after = divided(transforms.get(""))
        if not records:
            return transforms, (), []
        others = {name: t for name, t in transforms.items() if name}
        return (others if before is None else {"": before, **others}) or None, records, after
    if transforms is None or not any(is_record(step) for step, _ in T.steps_of(transforms)):
        return transforms, (), []
    steps = [step for step, _ in T.steps_of(transforms)]
    places = [i for i, step in enumerate(steps) if is_record(step)]
    first, last = places[0], places[-1] + 1
    if len(places) < last - first:
        between = next(step for i, step in enumerate(steps[first:last], first) if i not in places)
        raise UnsupportedError(f"{_said(between)} stands between functions of whole records; put it before them, or call it in one of them")
    records = tuple(step if isinstance(step, Record) else Record(step) for step in steps[first:last])
    for step in steps[last:]:
        if _is_function(step):
            raise UnsupportedError(f"{_said(step)} follows a function of whole records; call it there, or put it before it")
    return steps[:first] or None, records, T.translate(steps[last:])


def _pipeline(t: Any, calls: list[Call]) -> list[dict[str, Any]]:
    """Return a pipeline as JSON. Functions are added to calls."""
    steps = list(T.steps_of(t))
    if not any(_is_function(step) for step, _ in steps):
        try:
            return T.translate(t)
        except UnsupportedError:
            if not any(_is_torchvision(step) for step, _ in steps):
                raise
    kinds = T.Kinds([step for step, _ in steps])
    entries = kinds.first()
    run: list[Step] = []
    output: Any = None

    def end() -> None:
        nonlocal run, output
        if run:
            entry: dict[str, Any] = {"op": "Function", "function": len(calls), "name": Call(tuple(run)).name}
            if len(run) == 1 and run[0].takes == "bytes":
                entry["stored"] = True
            if output is not None:
                entry["output"] = output
            if (output and -1 in output["shape"][:1]) or any(step.batched for step in run):
                entry["rows"] = True
            calls.append(Call(tuple(run), output))
            entries.append(entry)
        run, output = [], None

    i = 0
    while i < len(steps):
        step, inside = steps[i]
        translated = None if _is_function(step) else _translated(step, kinds)
        if translated is not None:
            end()
            entries += translated
            kinds.after(step)
            i += 1
            continue
        takes = _taken(kinds.kind)
        stop = _rest(steps, i, kinds.kind) if inside else i + 1
        for one, _ in steps[i:stop]:
            if isinstance(one, (T.Transform, Mapping)):
                raise UnsupportedError(
                    f"a Compose of torchvision has {_said(step)}, which runs in Python, and {type(one).__name__} of penstock after it; "
                    "write the pipeline as a list: transforms=[...]"
                )
            if inside and one is not step:
                run.append(after(one))
            else:
                run.append(step_of(one, takes if inside or _is_torchvision(one) else None))
            takes = _taken(kinds.after(one))
            output = stated(one.output) if isinstance(one, Function) else None
        i = stop
    end()
    return entries


def _is_torchvision(t: Any) -> bool:
    return type(t).__module__.startswith("torchvision.transforms")


def _is_function(t: Any) -> bool:
    """Return whether a step is neither one of penstock nor one of torchvision that may be translated."""
    if isinstance(t, (Function, Record)):
        return True
    if isinstance(t, (T.Transform, Mapping)) or not callable(t) or isinstance(t, type):
        return False
    return not _is_torchvision(t) or type(t).__name__ == "Lambda"


def _translated(step: Any, kinds: T.Kinds) -> list[dict[str, Any]] | None:
    """Return what the engine does for a step; None for a step of torchvision that the engine cannot do."""
    try:
        return kinds.entries(step)
    except UnsupportedError:
        if not _is_torchvision(step) or isinstance(step, type):
            raise
        return None


def _taken(kind: str) -> str:
    """Return what a function of torchvision takes where images are of a kind."""
    return {"PIL images": "pil", "images": "pil", "Image": "tv_tensor", "tensors": "tv_tensor", "Tensor": "tensor"}[kind]


def _said(step: Any) -> str:
    return step.label if isinstance(step, Record) else type(step).__name__ if _is_torchvision(step) else name_of(step)


def _rest(steps: Sequence[tuple[Any, bool]], i: int, kind: str) -> int:
    """Return where the engine goes on after a step i that it cannot do, in a Compose of torchvision.

    It goes on where its result is surely the result of torchvision: with the conversion of an image of bytes to a tensor that
    ends the Compose.
    """
    last = next((k for k in range(i, len(steps)) if not steps[k][1]), len(steps))
    end = last
    while end > i + 1 and type(steps[end - 1][0]).__name__ in _ENDS and _is_torchvision(steps[end - 1][0]):
        end -= 1
    if end == last or kind not in ("PIL images", "images") or type(steps[end][0]).__name__ not in _TO_TENSORS:
        return last
    return end
