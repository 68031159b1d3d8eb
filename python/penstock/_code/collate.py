"""Default collation in a worker: torch's, but into the slot, and the same rules without torch.

In a worker, torch's functions for leaves (its default_collate_fn_map) are replaced by ones with the same results, which write them
into the slot that the batch will lie in. Entries that a user has put in the map hold, and all else is torch's own code; so a user's
collate_fn that calls default_collate writes there, too.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Callable

import numpy as np

from .._base.values import array
from .memory import Room

#: The slot of the batch that this process, a worker, makes now.
room: Room | None = None


def empty(nbytes: int) -> np.ndarray | None:
    """Return memory of the slot; None if there is no slot, or the slot has too little memory."""
    return None if room is None or not nbytes else room.take(nbytes)


def empty_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an array, in the slot if there is room."""
    n = dtype.itemsize
    for side in shape:
        n *= side
    memory = empty(n)
    return np.empty(shape, dtype) if memory is None else memory.view(dtype).reshape(shape)


def stacked(batch: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return arrays of one type and shape as one array, in the slot; None if they are not that.

    Concatenating along the first axis and viewing the result with one more axis is a stack without a call for each item.
    """
    first = batch[0]
    shape: tuple[int, ...] = first.shape
    if not shape or set(map(type, batch)) != {np.ndarray} or set(map(len, batch)) != {shape[0]}:
        return None
    out = empty_array((len(batch), *shape), first.dtype)
    try:
        np.concatenate(batch, out=out.reshape(len(batch) * shape[0], *shape[1:]), casting="no")
    except (TypeError, ValueError):  # of several types or shapes
        return None
    return out


def scalars(batch: Sequence[Any]) -> np.ndarray | None:
    """Return scalars of NumPy of one type as one array, in the slot; None if they are not that."""
    first = batch[0]
    if set(map(type, batch)) != {type(first)}:
        return None
    out = empty_array((len(batch),), first.dtype)
    out[:] = batch
    return out


def into_slot() -> None:
    """Have torch's default_collate write into ``room`` from now on. This process must be a worker."""
    module: Any = sys.modules.get("torch.utils.data._utils.collate")
    torch = sys.modules.get("torch")
    table = getattr(module, "default_collate_fn_map", None)
    if torch is None or table is None:
        return
    for name, make in _REPLACED:
        original: Any = getattr(module, name, None)
        for key in [k for k, f in table.items() if f is original and original is not None]:
            table[key] = make(torch, original)
    module.collate = _containers(module.collate)


def _tensors(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    layouts = {getattr(torch, name) for name in ("sparse_coo", "sparse_csr", "sparse_bsr", "sparse_csc", "sparse_bsc")}

    def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
        elem = batch[0]
        if elem.is_nested or elem.layout in layouts or elem.device.type != "cpu":
            return original(batch, collate_fn_map=collate_fn_map)
        memory = empty(len(batch) * elem.numel() * elem.element_size()) if type(elem) is torch.Tensor else None
        if memory is not None:
            out = torch.frombuffer(memory, dtype=elem.dtype).view(len(batch), *elem.shape)
        else:  # torch takes a file in /dev/shm here
            out = elem.new().resize_(len(batch), *elem.size())
        return torch.stack(batch, 0, out=out)

    return collate_tensor_fn


def _arrays(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    known = _convertible(torch)

    def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
        found = stacked(batch) if batch[0].dtype in known else None
        return original(batch, collate_fn_map=collate_fn_map) if found is None else torch.from_numpy(found)

    return collate_numpy_array_fn


def _scalars(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    known = _convertible(torch)

    def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
        found = scalars(batch) if getattr(batch[0], "dtype", None) in known else None
        return original(batch, collate_fn_map=collate_fn_map) if found is None else torch.from_numpy(found)

    return collate_numpy_scalar_fn


def _numbers(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    types = {int: np.dtype(np.int64), float: np.dtype(np.float64), bool: np.dtype(np.bool_)}

    def collate_number_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
        kind = type(batch[0])
        if kind in types and set(map(type, batch)) == {kind}:
            out = empty_array((len(batch),), types[kind])
            try:
                out[:] = batch
            except OverflowError:  # which torch has words for
                return original(batch, collate_fn_map=collate_fn_map)
            return torch.from_numpy(out)
        return original(batch, collate_fn_map=collate_fn_map)

    return collate_number_fn


def _containers(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return torch's collate, quicker for tuples, lists and dicts: the checks and the transposing are done by C code."""

    def collate(batch: Any, *, collate_fn_map: Any = None) -> Any:
        kind = type(batch[0])
        if (kind is tuple or kind is list) and not _claimed(kind, collate_fn_map):
            if len(set(map(len, batch))) == 1:
                return [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]
        elif kind is dict and not _claimed(kind, collate_fn_map):
            return {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in batch[0]}
        return original(batch, collate_fn_map=collate_fn_map)

    return collate


def _claimed(kind: type, table: Any) -> bool:
    """Return whether a map of collate functions has a function for a type."""
    return table is not None and any(issubclass(kind, key) for key in table)


def _convertible(torch: Any) -> set[np.dtype]:
    """Return the types of which torch makes tensors."""
    found = set()
    for name in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ):
        try:
            torch.from_numpy(np.empty(0, name))
        except TypeError:
            continue
        found.add(np.dtype(name))
    return found


_REPLACED = (
    ("collate_tensor_fn", _tensors),
    ("collate_numpy_array_fn", _arrays),
    ("collate_numpy_scalar_fn", _scalars),
    ("collate_int_fn", _numbers),
    ("collate_float_fn", _numbers),
)


def default(batched: bool, torch: bool) -> Callable[[Any], Any]:
    """Return the function that collates samples, or converts single samples, where the user gives none: torch's function, or a
    function of this module.
    """
    if not torch:
        return default_collate if batched else default_convert
    from torch.utils import data

    return data.default_collate if batched else data.default_convert


def default_collate(batch: Sequence[Any]) -> Any:
    """Return samples as a batch, by the rules of torch's default_collate, with arrays of NumPy for tensors.

    Arrays are stacked, and numbers become arrays of their type: Python's int64, float64 and bool. Mappings, named tuples and sequences
    are collated member by member, strings and bytes stay as they are.
    """
    first = batch[0]
    kind = type(first)
    if isinstance(first, np.ndarray) or (kind.__module__.partition(".")[0] == "torch" and hasattr(first, "numpy")):
        return _stack([b if type(b) is np.ndarray else array(b) for b in batch])
    if isinstance(first, (np.bool_, np.number)):
        found = scalars(batch)
        return np.asarray(batch) if found is None else found
    if isinstance(first, float):
        return np.array(batch, np.float64)
    if isinstance(first, int):
        return _integers(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        members = {key: default_collate([b[key] for b in batch]) for key in first}
        return _mapping(first, members)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(b) != len(first) for b in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(samples) for samples in zip(*batch)]
        return columns if isinstance(first, tuple) else _sequence(first, columns)
    raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}")


def default_convert(data: Any) -> Any:
    """Return a sample as it is without batches, by the rules of torch's default_convert: tensors become arrays, tuples lists."""
    kind = type(data)
    if kind.__module__.partition(".")[0] == "torch" and hasattr(data, "numpy"):
        return array(data)
    if kind.__module__ == "numpy" and isinstance(data, (np.bool_, np.number)):
        return np.asarray(data)
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence(data, [default_convert(d) for d in data])
    return data


def _stack(batch: list[np.ndarray]) -> np.ndarray:
    first = batch[0]
    if first.dtype.kind in "SUO":
        raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {first.dtype}")
    for i, b in enumerate(batch):
        if b.shape != first.shape:
            raise RuntimeError(f"stack expects each array to be equal size, but got {list(first.shape)} at entry 0 and {list(b.shape)} at entry {i}")
    found = stacked(batch)
    return np.stack(batch) if found is None else found


def _integers(batch: Sequence[Any]) -> np.ndarray:
    kinds = set(map(type, batch))
    if kinds == {bool}:
        return np.array(batch, np.bool_)
    if any(issubclass(kind, float) for kind in kinds):
        return np.array(batch, np.float32)  # as torch.tensor has it
    try:
        return np.array(batch, np.int64)
    except OverflowError:
        raise ValueError(f"default_collate: {max(batch, key=abs)} is not an integer of 64 bits") from None


def _mapping(of: Any, members: dict[Any, Any]) -> Any:
    """Return a mapping of the same type, attributes and default as another mapping, with other members."""
    try:
        if isinstance(of, MutableMapping):
            clone = copy.copy(of)
            clone.update(members)
            return clone
        return type(of)(members)
    except TypeError:
        return members


def _sequence(of: Any, members: list[Any]) -> Any:
    """Return a sequence of the same type as another sequence, with other members."""
    try:
        if isinstance(of, MutableSequence):
            clone = copy.copy(of)
            for i, member in enumerate(members):
                clone[i] = member
            return clone
        return type(of)(members)
    except TypeError:
        return members
