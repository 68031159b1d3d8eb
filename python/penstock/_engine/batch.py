"""Several records at once: of a dataset, and of a DataLoader."""

from __future__ import annotations

import copy
import functools
import keyword
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from .._base.urls import line
from .shared import Rows, Slot

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_keys, dict_values
    from collections.abc import ItemsView
    from typing import SupportsIndex

    from typing_extensions import Self
    from typing_extensions import TypeVar as TypeVarWithDefault

    #: The value of a field: a tensor, an array. It varies as the items of a tuple and of a dict do.
    V = TypeVarWithDefault("V", covariant=True, default=Any)
    W = TypeVarWithDefault("W", default=Any)
else:
    V, W = TypeVar("V", covariant=True), TypeVar("W")

INT64 = Rows(np.dtype(np.int64))
BOOL = Rows(np.dtype(np.bool_))


class Batch(Generic[V]):
    """Records of a dataset: an array for every field.

    ``b["images"]`` is the array of a field, and ``b.arrays`` has all of them. ``b[i]`` and
    iteration yield single records as dicts, as ``dataset[i]`` does. So torch's collate functions
    take a Batch as a list of samples, while penstock's own collate uses its arrays as they are.
    In a Batch of ``penstock.torch``, tensors take the place of arrays.
    """

    __slots__ = ("_count", "arrays")

    def __init__(self, arrays: Mapping[str, V], count: int) -> None:
        #: The fields by name: np.ndarray or Ragged; torch.Tensor, Jagged or a list of str.
        self.arrays: Mapping[str, V] = dict(arrays)
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, key: str) -> V: ...
    @overload
    def __getitem__(self, key: SupportsIndex) -> dict[str, Any]: ...
    def __getitem__(self, key: str | SupportsIndex) -> V | dict[str, Any]:
        if isinstance(key, str):
            if key not in self.arrays:
                raise KeyError(f"no field {key!r}; there are: {', '.join(self.arrays)}")
            return self.arrays[key]
        if not isinstance(key, (int, np.integer)):
            raise TypeError(f"a batch is indexed by the name of a field or the number of a record, not by {key!r}")
        if not -self._count <= key < self._count:
            raise IndexError(f"record {key} is out of range: there are {self._count}")
        record = operator.index(key) % self._count
        arrays: Mapping[str, Any] = self.arrays
        return {name: values[record] for name, values in arrays.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(self._count))

    def __repr__(self) -> str:
        return f"<penstock batch of {self._count} records: {', '.join(map(line, self.arrays))}>"


class LoaderBatch(Generic[V]):
    """A batch of a DataLoader: its fields, as torch tensors, NumPy or JAX arrays.

    By default it is a named tuple that takes names in brackets, too::

        for images, labels in loader:
        for batch in loader:
            batch["images"], batch.images, batch[0]

    ``keys()``, ``values()``, ``items()``, ``get`` and ``in`` work as on a dict, so ``model(**batch)`` works. It iterates as a tuple, over its
    values, and so is no Mapping, whose consumers iterate over names. With ``batch_type=dict`` it is a dict, for programs that take fields out of it.
    A field whose name is no identifier, or the name of an attribute below, is in brackets only.

    Arrays are over memory that is shared with the feeding process or, in order, over a private
    mapping of the dataset's files. They may be written to, which changes no file and no other batch. The
    memory is theirs for as long as something refers to it: the batch, an array or a tensor over
    it. Copies (``copy.deepcopy``, pickle, a forked child's) have memory of their own.

    ``epoch`` and ``step`` number the batch. They, ``indices`` and ``mask`` stay the values of the
    DataLoader's batch also in copies, and after ``to`` and ``_replace``. A batch built from
    other items, as by ``type(batch)(*items)``, has none of the four.
    """

    __slots__ = ()

    _message: Mapping[str, Any]  # epoch, step, indices, mask: the last two as arrays, or where they are in the slot
    _slot: Slot | None

    if TYPE_CHECKING:  # of both kinds

        def __getitem__(self, key: str) -> V: ...
        def keys(self) -> Iterable[str]: ...
        def values(self) -> Iterable[V]: ...

    @property
    def epoch(self) -> int:
        """The number of the epoch."""
        return int(self._known("epoch"))

    @property
    def step(self) -> int:
        """The number of the batch in its epoch."""
        return int(self._known("step"))

    @property
    def indices(self) -> np.ndarray:
        """The numbers of the records in the dataset or its split, or of the rows that were packed."""
        return self._array("indices", INT64)

    @property
    def mask(self) -> np.ndarray:
        """False for records that only fill up a batch: see drop_last, and on_error. Evaluations leave them out."""
        return self._array("mask", BOOL)

    def to(self, device: Any, non_blocking: bool = False) -> Self:
        """Return the same batch with its tensors on a device; other values stay as they are."""
        moved: Self = self.holding({name: v.to(device, non_blocking=non_blocking) if hasattr(v, "to") else v for name, v in self.items()})
        return moved

    def holding(self, values: Mapping[str, Any]) -> Any:
        """Return the same batch with other values, and no part of the shared memory."""
        if not hasattr(self, "_message"):
            return self._of(values)
        message = {"epoch": self.epoch, "step": self.step, "indices": self.indices.copy(), "mask": self.mask.copy()}
        return made(type(self), values, message)

    def copy(self) -> Self:
        """Return a batch with the same arrays, over the same memory."""
        values = dict(self.items())
        copied: Self = made(type(self), values, self._message, self._slot) if hasattr(self, "_message") else self._of(values)
        return copied

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.holding({name: copy.deepcopy(v, memo) for name, v in self.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        values = dict(self.items())
        return _unpickled, (isinstance(self, dict), values, getattr(self.holding(values), "_message", None))

    def items(self) -> Any:
        raise NotImplementedError

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> Any:
        """Return a batch of these fields that has no number."""
        raise NotImplementedError

    def _known(self, name: str) -> Any:
        try:
            return self._message[name]
        except AttributeError:
            raise AttributeError(_unknown(name)) from None

    def _array(self, name: str, rows: Rows) -> np.ndarray:
        value = self._known(name)
        if self._slot is None:
            values: np.ndarray = value
            return values
        return self._slot.array(value, rows, self._message["count"])


def _unknown(name: str) -> str:
    return (
        f"a batch built from other items, as by type(batch)(*items), has no {name}; use the {name} of the DataLoader's batch. "
        "batch.to(device) and copies keep it"
    )


class BatchDict(LoaderBatch[W], dict[str, W]):
    """A LoaderBatch that is a dict."""

    __slots__ = ("_message", "_slot")

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> BatchDict[Any]:
        return cls(values)

    @classmethod
    def builder(cls, names: tuple[str, ...]) -> Callable[[Sequence[Any]], BatchDict[Any]]:
        """Return the function that makes the batch that _of makes, of values in the order of the given names."""
        return lambda values: cls(zip(names, values))

    # Those of dict, not of LoaderBatch.
    if TYPE_CHECKING:

        def keys(self) -> dict_keys[str, W]: ...
        def values(self) -> dict_values[str, W]: ...
        def items(self) -> dict_items[str, W]: ...

    else:
        items = dict.items

    def __missing__(self, name: object) -> Any:
        raise KeyError(f"no field {name!r}; there are: {', '.join(self)}")


class BatchTuple(LoaderBatch[V], tuple[V, ...]):
    """A LoaderBatch that is a named tuple; each set of names has a class of its own."""

    _fields: tuple[str, ...] = ()
    _field_defaults: Mapping[str, Any] = {}
    _places: Mapping[str, int] = {}

    def __new__(cls, *values: Any) -> BatchTuple[Any]:
        if len(values) == 1 and isinstance(values[0], Mapping) and values[0].keys() == set(cls._fields):
            return cls._of(values[0])  # as a dict is made
        if len(values) == 1 and isinstance(values[0], (Iterator, BatchTuple) if len(cls._fields) == 1 else Iterable):
            values = tuple(values[0])  # as a tuple is made
        if len(values) != len(cls._fields):
            raise TypeError(f"a batch of {len(cls._fields)} fields ({', '.join(cls._fields)}) of {len(values)} values")
        return tuple.__new__(cls, values)

    @classmethod
    def _make(cls, values: Iterable[Any]) -> BatchTuple[Any]:
        """Return a batch of the same fields with other values, and no numbers."""
        return cls(*values)

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> BatchTuple[Any]:
        names = tuple(values)
        return tuple.__new__(cls if names == cls._fields else _class(names), values.values())

    @classmethod
    def builder(cls, names: tuple[str, ...]) -> Callable[[Sequence[Any]], BatchTuple[Any]]:
        """Return the function that makes the batch that _of makes, of values in the order of the given names."""
        return functools.partial(tuple.__new__, _class(names))

    def _replace(self, **values: Any) -> BatchTuple[Any]:
        """Return the same batch with other values of some fields."""
        if unknown := [name for name in values if name not in self._places]:
            raise ValueError(f"no field {unknown[0]!r}; there are: {', '.join(self._fields)}")
        replaced: BatchTuple[Any] = self.holding({**self._asdict(), **values})
        return replaced

    def _asdict(self) -> dict[str, V]:
        """Return the fields by name."""
        return dict(zip(self._fields, self))

    def keys(self) -> tuple[str, ...]:
        """Return the names of the fields."""
        return self._fields

    def values(self) -> tuple[V, ...]:
        """Return the fields without their names."""
        return tuple(self)

    def items(self) -> ItemsView[str, V]:
        """Return the names and the values, as of a dict."""
        return self._asdict().items()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or the default if no field has that name."""
        return self[name] if name in self._places else default

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> V: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[V, ...]: ...
    def __getitem__(self, key: str | SupportsIndex | slice) -> Any:
        if not isinstance(key, str):
            return tuple.__getitem__(self, key)
        if key not in self._places:
            raise KeyError(f"no field {key!r}; there are: {', '.join(self._fields)}")
        return tuple.__getitem__(self, self._places[key])

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __getattr__(self, name: str) -> V:
        if name in ("epoch", "step", "indices", "mask"):  # whose properties found nothing
            raise AttributeError(_unknown(name))
        if hasattr(dict, name):
            raise AttributeError(f"a batch is a named tuple, and has no {name!r} of dicts; give the DataLoader batch_type=dict")
        raise AttributeError(f"a batch has no attribute {name!r}; its fields are: {', '.join(self._fields)}")

    def __repr__(self) -> str:
        shown = (f"{line(name)} {getattr(v, 'dtype', type(v).__name__)}{list(getattr(v, 'shape', ()))}" for name, v in self.items())
        number = f" {self.step} of epoch {self.epoch}" if hasattr(self, "_message") else ""
        return f"<penstock batch{number}: {', '.join(shown)}>"


@functools.cache
def _class(names: tuple[str, ...]) -> type[BatchTuple[Any]]:
    """Return the class of named tuples of these names."""
    places = {name: i for i, name in enumerate(names)}
    reserved = set(dir(LoaderBatch)) | {"keys", "values", "items", "get"}
    named = [name for name in names if name.isidentifier() and not keyword.iskeyword(name) and name not in reserved and not name.startswith("_")]
    members = {name: property(operator.itemgetter(places[name])) for name in named}
    return type(
        "LoaderBatch", (BatchTuple,), {**members, "_fields": names, "_places": places, "__match_args__": tuple(named), "__module__": __name__}
    )


def made(kind: type, values: Mapping[str, Any], message: Mapping[str, Any], slot: Slot | None = None) -> Any:
    """Return a batch of a kind, BatchDict or BatchTuple, with its numbers; ``indices`` and ``mask`` are arrays, or where they are in the slot."""
    batch = kind._of(values)  # type: ignore[attr-defined]
    batch._slot, batch._message = slot, message
    return batch


def _unpickled(is_dict: bool, values: dict[str, Any], message: Mapping[str, Any] | None) -> Any:
    kind = BatchDict if is_dict else BatchTuple
    return kind._of(values) if message is None else made(kind, values, message)
