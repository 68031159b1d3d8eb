"""Functions of whole records: the fields that they take, and the fields of their results.

The feeding process makes a batch (RecordBatch), workers call the functions for its records (Recorder) and put the
results (RecordResult) together (Collate). _engine/recording.py and _engine/listed.py have the loops.
"""

from __future__ import annotations

import contextlib
import functools
import io
import pickle
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, get_origin

import numpy as np

from .._base.batched import AT_ONCE, is_batched, together
from .._base.dataclass import dataclass
from .._base.errors import UnsupportedError
from .._base.values import array, element_type, fitted, floats, is_texts, tensor, text_of
from .._code.randomness import MASK, seed_random, state, undisturbed
from .._read.field import STORAGE, Field
from .call import ROWS, Call, Value, WrongOutput, annotation_of, library_of, name_of, seeding
from .ends import Ends

#: The place of functions of records in a pipeline, for record_seed: after every function of a field.
PLACE = 1 << 16

#: Why the results of some functions may not differ from one epoch to the next.
FIXED = "pack= and Bucket need lengths of results before there are records, so that results are computed once; draw in the training step"

#: Parameters of a pipeline of albumentations, by the content of the fields that it takes.
_ALBUMENTATIONS = {"image": "image", "mask": "mask", "boxes": "bboxes", "keypoints": "keypoints"}
_FORMATS = {"bboxes": "pascal_voc", "keypoints": "xy"}


@dataclass(frozen=True)
class Record:
    """A function of a whole record as a step of a pipeline: of an image and its boxes, of two fields, of all of them.

    ::

        def function(record: dict):           # the annotation says that it takes records
            record["image"] = record["image"][:, ::-1]
            return record

        transforms=[Resize((256, 256)), function]
        transforms=[Resize((256, 256)), Record(lambda image, label: (image // 2, label), takes=("image", "label"))]
        transforms=[Record(albumentations.Compose([...], bbox_params=...))]
        transforms=[Record(tokenizer.encode, takes=["text"])]     # a list of numbers: a field of any number of rows

    A list has any number of rows, as in a Writer, and so have bytes. An array has its shape in all records, unless its first axis differs
    in the first 16. A field that had any number of rows before keeps that.

    Args:
        function: Takes values of a record, and returns what takes their place: arrays, tensors, PIL images, numbers, lists, bytes or strings.
        takes: None for a dict of all fields: the dict that is returned is the record from then on. A list of fields for as many positional
            arguments, and as many results. A dict of parameters by name, {"image": "photos", "bboxes": "boxes"}, for keyword arguments
            and a dict of results. Of a pipeline of albumentations, None takes the image, mask, boxes and keypoints that the
            pipeline has parameters for, and fields by the names of its label_fields.
        name: Its name in errors.
        makes: Fields of the results, which have these types and shapes then: [Field("ids", "int32", ragged=True)].
    """

    function: Callable[..., Any]
    takes: Sequence[str] | Mapping[str, str] | None = None
    name: str | None = None
    makes: Sequence[Field] = ()

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function is {self.function!r:.60}; it must be callable")
        if isinstance(self.takes, str):
            raise TypeError(f"takes is {self.takes!r}; it is a list of fields: [{self.takes!r}]")
        if isinstance(self.makes, Field) or not all(isinstance(f, Field) for f in self.makes):
            raise TypeError(f"makes is {self.makes!r:.60}; it is a list of fields: [penstock.Field('ids', 'int32', ragged=True)]")

    def __call__(self, *values: Any, **named: Any) -> Any:
        return self.function(*values, **named)

    @property
    def label(self) -> str:
        """Its name in errors and tables."""
        return self.name or name_of(self.function)

    @property
    def batched(self) -> bool:
        """Whether it gets several records at a time: see penstock.batched."""
        return is_batched(self.function)

    def names(self, field: str) -> bool:
        """Return whether it takes a field by name."""
        return self.takes is not None and field in _names(self.takes)

    def of(self, fields: Mapping[str, Field]) -> Record:
        """Return the Record with the values that it takes of records of these fields."""
        if self.takes is None and library_of(self.function) == "albumentations":
            return replace(self, takes=_of_albumentations(self.function, fields))
        if self.takes is None:
            return self
        missing = [name for name in _names(self.takes) if name not in fields]
        if missing:
            raise ValueError(f"{self.label} takes the field {missing[0]!r}, and there are {', '.join(fields)}")
        return self

    def apply(self, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return records, several if it is batched, with the function's results."""
        takes, of = self.takes, (lambda name: [record[name] for record in records]) if self.batched else records[0].__getitem__
        if takes is None:
            call = functools.partial(self.function, records if self.batched else records[0])
        elif isinstance(takes, Mapping):
            call = functools.partial(self.function, **{parameter: of(name) for parameter, name in takes.items()})
        else:
            call = functools.partial(self.function, *map(of, takes))
        return [self._with(record, made) for record, made in zip(records, together(call, len(records)) if self.batched else [call()])]

    def _with(self, record: dict[str, Any], made: Any) -> dict[str, Any]:
        """Return a record with the results for it."""
        takes = self.takes
        if takes is None:
            return dict(self._checked(made, Mapping, "a dict of fields"))
        if isinstance(takes, Mapping):
            self._checked(made, Mapping, "a dict of its parameters")
            return {**record, **{name: made[parameter] for parameter, name in takes.items() if parameter in made}}
        if len(takes) == 1:
            made = (made,)
        if len(self._checked(made, (tuple, list), f"a tuple of {len(takes)} values")) != len(takes):
            raise WrongOutput(f"{self.label} returns {len(made)} values, and takes {len(takes)}: {', '.join(takes)}; have it return as many")
        return {**record, **dict(zip(takes, made))}

    def _checked(self, made: Any, kinds: Any, wanted: str) -> Any:
        if not isinstance(made, kinds):
            raise WrongOutput(f"{self.label} returns {type(made).__name__}; have it return {wanted}")
        return made


@dataclass(frozen=True)
class OfField:
    """Functions of one field whose results are not of one shape: they are called as functions of records are.

    ``place`` seeds their random numbers: see record_seed. ``decodes`` says that they take image files as pixels.
    """

    field: str
    call: Call
    place: int
    makes: Sequence[Field] = ()

    @property
    def label(self) -> str:
        return self.call.name

    @property
    def decodes(self) -> bool:
        return self.call.steps[0].takes != "bytes"

    @property
    def batched(self) -> bool:
        return self.call.steps[0].batched

    def names(self, field: str) -> bool:
        return field == self.field

    def of(self, fields: Mapping[str, Field]) -> OfField:
        return self


def is_record(f: Any) -> bool:
    """Return whether a step of a pipeline is a function of whole records: it, or its annotation, says so."""
    if isinstance(f, Record):
        return True
    if library_of(f) == "albumentations":
        return bool(getattr(f, "processors", None))  # of boxes and keypoints
    annotation = annotation_of(f)
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].partition("[")[0] in ("dict", "Dict", "Mapping", "MutableMapping")
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, Mapping)


def _names(takes: Sequence[str] | Mapping[str, str]) -> Iterable[str]:
    return takes.values() if isinstance(takes, Mapping) else takes


def _of_albumentations(pipeline: Any, fields: Mapping[str, Field]) -> dict[str, str]:
    """Return the parameters of a pipeline of albumentations, each with the field that it takes."""
    processors = getattr(pipeline, "processors", {})
    found: dict[str, str] = {}
    for f in fields.values():
        parameter = _ALBUMENTATIONS.get("image" if f.layout or f.content == "image" else f.content)
        if parameter is None or (parameter in _FORMATS and parameter not in processors):
            continue
        if parameter in found:
            raise ValueError(
                f"the fields {found[parameter]!r} and {f.name!r} may both be {parameter}; give Record(pipeline, takes={{{parameter!r}: {f.name!r}}})"
            )
        found[parameter] = f.name
    for parameter, processor in processors.items():
        has, wanted = getattr(processor.params, "format", ""), _FORMATS.get(parameter, "")
        if parameter in found and has != wanted:
            raise ValueError(
                f"the pipeline has {parameter} in the format {has!r}, and fields of {parameter} are {wanted!r}; give it format={wanted!r}"
            )
        for label in processor.params.label_fields or ():
            if label not in fields:
                raise ValueError(f"the pipeline has the label field {label!r}, and there are {', '.join(fields)}; name one of these")
            found[label] = label
    return found


@dataclass(frozen=True)
class Recording:
    """Functions of records that a DataLoader asks for, and the workers that call functions."""

    steps: Sequence[Record | OfField]
    ends: Ends
    workers: int  # 0 is none: this process
    context: Any = None  # of multiprocessing, or its name
    init: Any = None
    pin_memory: bool = False
    prefetch_factor: int | None = None
    samples: Collation | None = None  # how the user's code makes a batch of records; None makes one as the engine does
    fixed: bool = False  # whether functions that draw random numbers are refused

    @property
    def names(self) -> list[str]:
        return [step.label for step in self.steps]

    @property
    def used(self) -> bool:
        """Whether records go through code of the user after the engine's steps."""
        return bool(self.steps) or self.samples is not None

    @property
    def places(self) -> list[int]:
        """The places of functions, for their random numbers."""
        return [PLACE, *(step.place for step in self.steps if isinstance(step, OfField))]


@dataclass(frozen=True)
class Collation:
    """Batches that the user's code makes of records: the result of collate_fn or torch's default_collate for a list of records."""

    collate: Callable[[Any], Any]
    kind: type  # of records: BatchTuple or BatchDict
    torch: bool  # whether records have tensors, and not arrays
    batched: bool = True  # whether collate takes a list of records, and not one

    def batch(self, made: Sequence[RecordResult]) -> Any:
        records = [self._record(m) for m in made]
        seed_random(sum(m.sent.key() for m in made) & MASK)
        return self.collate(records if self.batched else records[0])

    def _record(self, m: RecordResult) -> Any:
        of: Any = self.kind
        values = {name: np.zeros(0) if x is UNTYPED else x for name, x in m.values.items()}
        return of._of({name: tensor(np.asarray(x)) if self.torch and not isinstance(x, (str, list)) else x for name, x in values.items()})


class RecordBatch:
    """Records of a batch on their way to functions. Those for a worker are pickled at once, so that their slot is free.

    ``keys`` are the seeds of their random numbers, by the place of a function. ``results`` are the fields that functions make
    of the records; None if that is asked for, or if the user's code makes the batch.
    """

    def __init__(
        self, values: Mapping[str, Any], fields: Mapping[str, Field], indices: Sequence[int], keys: Mapping[int, Sequence[int]], pickled: bool
    ) -> None:
        self.fields, self.indices, self.keys = fields, indices, keys
        self.results: Mapping[str, Field] | None = None
        self._values: Mapping[str, Any] | None = None if pickled else values
        self.pickled = pickle.dumps(values, 5) if pickled else b""  #: what goes to a worker

    @property
    def values(self) -> Mapping[str, Any]:
        """The fields of the batch."""
        values = self._values
        if values is None:
            values = self._values = pickle.loads(self.pickled)
            self.pickled = b""
        return values

    def records(self) -> list[BatchRecord]:
        return [BatchRecord(self, place) for place in range(len(self.indices))]


class BatchRecord:
    """A record of a RecordBatch."""

    def __init__(self, given: RecordBatch, place: int) -> None:
        self.given, self.place = given, place

    def key(self, of: int = PLACE) -> int:
        """The seed of its random numbers, for a function at a place."""
        return self.given.keys[of][self.place]

    def __repr__(self) -> str:
        return str(self.given.indices[self.place])


#: The rows of a list without elements, which has no type.
UNTYPED = np.zeros(0, "V1")


class RecordResult:
    """The results of functions for a record, and the names of the results that have any number of rows; ``why`` says that they
    failed.
    """

    def __init__(self, sent: BatchRecord, values: dict[str, Any], rows: Set[str], error: Exception | None = None) -> None:
        self.sent, self.values, self.rows, self.error = sent, values, rows, error
        self.why = "" if error is None else f"{type(error).__name__}: {error}"


class Recorder:
    """The dataset of workers that call functions of records: ``recorder[sent]`` is the result for one record."""

    def __init__(self, steps: Sequence[Record | OfField], ends: Ends, on_error: str, here: bool, fixed: bool = False) -> None:
        self._steps, self._ends, self._on_error, self._here, self._fixed = steps, ends, on_error, here, fixed
        self._resolved: list[Record | OfField] | None = None
        self._declared = {f.name: f for step in steps for f in step.makes}
        self._files: set[str] = set()  # fields of image files that no function takes as pixels
        self._batched = any(step.batched for step in steps)
        self._given: weakref.ref[RecordBatch] | None = None  # whose records are made
        self._ahead: dict[int, tuple[dict[str, Any], Set[str]]] = {}  # of them, results before they are due, by place
        self._alone = 0  # the place up to which no others are made together

    def check(self, fields: Mapping[str, Field]) -> None:
        """Raise ValueError if the first function takes a field that does not exist."""
        for step in self._steps[:1]:
            step.of(fields)

    def __getitem__(self, sent: BatchRecord) -> RecordResult:
        if self._here:
            with undisturbed():
                return self._made(sent)
        return self._made(sent)

    def _made(self, sent: BatchRecord) -> RecordResult:
        """Return the results for a record, which may have been made together with the results of other records."""
        given, place = sent.given, sent.place
        if not self._batched:
            self._alone = len(given.indices)
        elif place == 0 or self._given is None or self._given() is not given:
            self._given, self._ahead, self._alone = weakref.ref(given), {}, 0
        if place not in self._ahead and place >= self._alone:
            self._alone = min(place + AT_ONCE, len(given.indices))
            with contextlib.suppress(Exception):  # of a record, which is found one by one
                self._ahead.update(zip(range(place, self._alone), self._values([BatchRecord(given, p) for p in range(place, self._alone)])))
        try:
            return RecordResult(sent, *(self._ahead.pop(place, None) or self._values([sent])[0]))
        except Exception as e:
            if self._on_error == "fail" and not isinstance(sent, ProbeRecord):
                raise
            return RecordResult(sent, {}, frozenset(), e)

    def _values(self, sents: Sequence[BatchRecord]) -> list[tuple[dict[str, Any], Set[str]]]:
        """Return the results for records of a batch, and the names of the values that have any number of rows."""
        given = sents[0].given
        if not self._steps:  # a record is as the engine made it
            rows = {name for name in given.values if is_rows(given.fields.get(name))}
            return [({name: values[sent.place] for name, values in given.values.items()}, rows) for sent in sents]
        if self._resolved is None:
            self._resolved = [step.of(given.fields) for step in self._steps]
            self._files = self._stored(given.fields)
        images = {f.name: f.layout or "HWC" for f in given.fields.values() if f.layout or (f.content == "image" and f.name not in self._files)}
        layouts = [dict(images) for _ in sents]
        return [self._finished(*each) for each in zip(sents, self._called(self._resolved, sents, layouts), layouts)]

    def _finished(self, sent: BatchRecord, record: dict[str, Any], layouts: Mapping[str, str]) -> tuple[dict[str, Any], Set[str]]:
        """Return results as a batch takes them, and the names of the results that have any number of rows."""
        given, rows = sent.given, set[str]()
        results, own = given.results or {}, {step.field for step in self._steps if isinstance(step, OfField)}
        for name, x in record.items():
            f = self._declared.get(name) or (None if name in own else given.fields.get(name))
            several = f is not None and f.content == "images" and getattr(x, "ndim", 0) > 0
            if is_rows(f) or several or name in self._files or (isinstance(x, ROWS) and not isinstance(x, str) and (f is None or f.is_bytes)):
                rows.add(name)
            record[name] = self._plain(sent, name, x, f, results.get(name) or f, layouts.get(name, ""))
        if given.results is not None:
            self._check(sent, given.results, record)
        return record, rows

    def _stored(self, fields: Mapping[str, Field]) -> set[str]:
        """Return the fields of image files that no function takes as pixels."""
        files = {f.name for f in fields.values() if f.ragged and f.is_bytes and f.content != "utf-8"}
        if any(isinstance(step, Record) for step in self._steps):
            files &= {step.field for step in self._steps if isinstance(step, OfField)}
        return files - {step.field for step in self._steps if isinstance(step, OfField) and step.decodes}

    def _called(self, steps: Sequence[Record | OfField], sents: Sequence[BatchRecord], layouts: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
        """Return what functions make of records: of each one by one, unless a function is batched."""
        given = sents[0].given
        records = [
            {name: x[sent.place] if name in self._files else _decoded(given.fields.get(name), x[sent.place]) for name, x in given.values.items()}
            for sent in sents
        ]
        seeded = False
        for step in steps:
            for group in [slice(None)] if step.batched else [slice(i, i + 1) for i in range(len(sents))]:
                first = sents[group][0]
                if isinstance(step, OfField):
                    seed_random(first.key(step.place))
                    step.call.seed(first.key(step.place))
                elif self._batched or not seeded:
                    seed_random(first.key())
                    seeded = True
                before = state() if self._fixed else ()
                if isinstance(step, OfField):
                    made = step.call.through([Value(r[step.field], axes.get(step.field, "")) for r, axes in zip(records[group], layouts[group])])
                    for record, axes, value in zip(records[group], layouts[group], made):
                        record[step.field], axes[step.field] = value.value, value.layout
                else:
                    records[group] = self._of_records(step, first, records[group], layouts[group])
                if self._fixed and state() != before:
                    raise WrongOutput(f"record {first!r}: {step.label} draws random numbers: {FIXED}")
        return records

    def _of_records(self, step: Record, first: BatchRecord, records: list[dict[str, Any]], layouts: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
        if library_of(step.function) != "albumentations":
            return step.apply(records)
        own, fields, before = seeding(step.function), first.given.fields, records[0]
        if own is not None:
            own(first.key())
            records = [{name: _rows_last(x, layouts[0], name) for name, x in before.items()}]
        return [{name: _retyped(x, before.get(name), fields.get(name)) for name, x in step.apply(records)[0].items()}]

    def _check(self, sent: BatchRecord, results: Mapping[str, Field], record: dict[str, Any]) -> None:
        """Refuse results that are not of the fields that the first records, or declarations, say."""
        if record.keys() != results.keys():
            raise WrongOutput(
                f"record {sent!r}: {self._functions} returns {', '.join(record) or 'no fields'}, and for the first records {', '.join(results)}; "
                "have it return the same fields for all records"
            )
        for name, f in results.items():
            x = record[name]
            if f.ragged and not isinstance(x, str) and len(x.shape) > 0 and len(x) == 0 and f.content != "utf-8":
                record[name] = np.zeros((0, *f.shape), f.numpy)  # without rows, it has no numbers that a type could change
            elif not fits(x, f):
                said = "makes says" if name in self._declared else "the first records have"
                rows = "" if f.ragged or isinstance(x, str) or x.dtype != f.numpy else f"[penstock.Field({name!r}, {f.dtype!r}, ragged=True)]"
                raise WrongOutput(
                    f"record {sent!r}: {self._functions}: {name} is {_said(x)}, and {said} {_described(f)}; have it return one type and shape for "
                    f"all records: resize, crop or pad before it, or in it{'; or declare any number of rows: makes=' * bool(rows)}{rows}"
                )

    @property
    def _functions(self) -> str:
        return ", ".join(step.label for step in self._steps)

    def settled(self, first: Sequence[RecordResult]) -> dict[str, Field]:
        """Return the fields of results, as the first records have them. They have any number of rows if they are lists, or differ in that."""
        good = [m.values for m in first if not m.why]
        if self._on_error == "fail" and first[0].error is not None:
            raise first[0].error
        if not good:
            raise UnsupportedError(f"record {first[0].sent!r}: {first[0].why}; the first {len(first)} records failed, so that none says what comes")
        return {name: self._declared.get(name) or self._settled(name, [v[name] for v in good if name in v], first) for name in good[0]}

    def _settled(self, name: str, values: Sequence[Any], first: Sequence[RecordResult]) -> Field:
        if isinstance(next((x for x in values if x is not UNTYPED), None), str):
            return Field(name, "uint8", ragged=True, content="utf-8")
        arrays = [x for x in values if not isinstance(x, str)]
        rows = any(name in m.rows for m in first)
        of = next((x for x in arrays if x.size), next((x for x in arrays if x is not UNTYPED), None))
        if of is None:
            say = f"makes=[penstock.Field({name!r}, 'int64', ragged=True)]"
            raise WrongOutput(f"{self._functions}: {name} is an empty list in the first {len(values)} records, which has no type; say it: {say}")
        before = first[0].sent.given.fields.get(name)
        is_image = of.ndim == 3 and before is not None and bool(before.layout or before.content == "image")
        rows = rows or (not is_image and of.ndim > 0 and (len({x.shape[:1] for x in arrays}) > 1 or not len(of)))
        return Field(name, element_type(of.dtype), of.shape[1:] if rows else of.shape, ragged=rows)

    def _plain(self, sent: BatchRecord, name: str, x: Any, f: Field | None, of: Field | None, layout: str) -> Any:
        """Return a result as a batch takes it: an array, or a string. ``f`` is the field before, and ``of`` the type that lists have."""
        if isinstance(x, str):
            return x
        known = (sent.given.results or self._declared).get(name)
        if is_texts(x) or (known is not None and known.content == "utf-8" and isinstance(x, (list, tuple)) and not x):
            return text_of(x)
        if isinstance(x, (bytes, bytearray)):
            return np.frombuffer(x, np.uint8)
        if isinstance(x, (list, tuple)) and not x and (f is None or f.is_bytes):
            return UNTYPED
        of_torch = hasattr(x, "detach")
        try:
            # Numbers in a list have no type of their own, as in a Writer.
            x = fitted(x, of.dtype) if of is not None and not of.is_bytes and isinstance(x, (list, tuple)) else Value(x, "").array()
        except WrongOutput as e:
            raise WrongOutput(f"record {sent!r}: {self._functions}: {name}: {e}") from None
        except (TypeError, OverflowError) as e:
            found = f", and the first records have {_described(of)}" if of is not None and of is (sent.given.results or {}).get(name) else ""
            raise WrongOutput(
                f"record {sent!r}: {self._functions}: {name}: {e}{found}; have the function return an array of the type that it wants: "
                "numpy.asarray(x, 'float64')"
            ) from None
        except ValueError as e:
            raise WrongOutput(f"record {sent!r}: {name}: {e}") from None
        if layout and x.ndim == 3:
            x = self._ends(x, "CHW" if of_torch else layout, f)
        elif f is not None and is_rows(f) and x.size == 0:
            x = x.reshape(0, *f.shape)
        if not element_type(x.dtype):
            raise WrongOutput(
                f"record {sent!r}: {name} is {x.dtype}, which batches cannot have; give arrays of {', '.join(STORAGE)}, str, or lists of str"
            )
        return x


class ProbeRecord(BatchRecord):
    """A record that says what functions make. If a function fails for a record other than the first, that is an error of the
    record's batch.
    """


def fits(x: Any, f: Field) -> bool:
    """Return whether a result is a record of a field."""
    if isinstance(x, str) or f.content == "utf-8":
        return isinstance(x, str) and f.content == "utf-8"
    skip = int(f.ragged)
    return bool(x.dtype == f.numpy and x.ndim >= skip and x.shape[skip:] == f.shape)


def _said(x: Any) -> str:
    return "a string" if isinstance(x, str) else "an empty list" if x is UNTYPED else f"{x.dtype} {x.shape}"


def _described(f: Field) -> str:
    rows = " of any number of rows" * f.ragged
    return "a string" if f.content == "utf-8" else f"{f.dtype} {f.shape}{rows}"


def _retyped(x: Any, before: Any, f: Field | None) -> Any:
    """Return rows in the type that they had before albumentations put boxes and labels into one array of their common type."""
    if f is None or not is_rows(f) or not isinstance(before, np.ndarray):
        return x
    return floats(array(x), before.dtype) if f.content in ("boxes", "keypoints") else fitted(x, element_type(before.dtype))


def _decoded(f: Field | None, value: Any) -> Any:
    """Return a value of a record as functions take it: image files as pixels."""
    if f is not None and f.content == "images":
        return [_pixels(file) for file in value]
    return _pixels(value) if f is not None and f.content == "image" else value


def _pixels(value: np.ndarray) -> np.ndarray:
    from PIL import Image

    with Image.open(io.BytesIO(value.tobytes())) as image:
        return np.array(image.convert("RGB"))


def _rows_last(x: Any, layouts: dict[str, str], name: str) -> Any:
    """Return an image as albumentations takes it: (H, W, C)."""
    if layouts.get(name) != "CHW" or not isinstance(x, np.ndarray) or x.ndim != 3:
        return x
    layouts[name] = "HWC"
    return np.ascontiguousarray(x.transpose(1, 2, 0))


def is_rows(f: Field | None) -> bool:
    """Return whether records of a field have any number of rows of numbers."""
    return f is not None and f.ragged and not f.is_bytes


def _complete(made: Sequence[RecordResult], on_error: str) -> tuple[Sequence[RecordResult], list[tuple[int, str]]]:
    """Return the records of a batch, with other records in the place of failed records, and the places of the failed records,
    with the reasons.
    """
    failed = [(place, m.why) for place, m in enumerate(made) if m.why]
    good = [m for m in made if not m.why]
    if not good:
        raise UnsupportedError(
            f"record {made[0].sent!r}: {failed[0][1]}; all records of the batch failed, so that none can take the place of another"
        )
    if failed:
        made = [_other(m, good, on_error) if m.why else m for m in made]
    return made, failed


def _other(failed: RecordResult, good: Sequence[RecordResult], on_error: str) -> RecordResult:
    """Return the replacement of a record that failed: another record of its batch, which its random numbers choose, or zeros."""
    sent = failed.sent
    other = good[sent.key() % len(good)]
    if on_error == "backfill":
        return other
    return RecordResult(sent, {name: _zeros(x, name in other.rows) for name, x in other.values.items()}, other.rows)


def _zeros(x: Any, rows: bool) -> Any:
    if isinstance(x, str):
        return ""
    return x[:0] if rows else np.zeros_like(x)


def _together(f: Field, values: list[Any]) -> Any:
    """Return the values of a batch."""
    if f.content == "utf-8":
        return values
    if not f.ragged:
        return np.stack(values)
    return np.concatenate(values), np.cumsum([0, *map(len, values)], dtype=np.int64)


class Collate:
    """The collate function of the workers: it returns a batch, and the places of records that failed, with the reasons.

    A batch is the result of the user's code, or a dict of fields: each an array, a pair of rows and offsets, or a list of
    strings. For the first records, it is the fields of their results.
    """

    def __init__(self, on_error: str, samples: Collation | None, here: bool, recorder: Recorder) -> None:
        self._on_error, self._samples, self._here, self._recorder = on_error, samples, here, recorder

    def __call__(self, made: Sequence[RecordResult]) -> tuple[Any, list[tuple[int, str]]]:
        if isinstance(made[0].sent, ProbeRecord):
            return self._recorder.settled(made), []
        made, failed = _complete(made, self._on_error)
        if self._samples is not None:
            with undisturbed() if self._here else contextlib.nullcontext():
                return self._samples.batch(made), failed
        results = made[0].sent.given.results
        assert results is not None
        return {name: _together(f, [m.values[name] for m in made]) for name, f in results.items()}, failed


class CollateAlone(Collate):
    """A Collate that returns a batch alone, and keeps the numbers of records that failed, with the reasons, until the next
    batch.
    """

    def __call__(self, made: Sequence[RecordResult]) -> Any:
        batch, failed = super().__call__(made)
        self.skipped = [(made[place].sent.given.indices[made[place].sent.place], why) for place, why in failed]
        return batch
