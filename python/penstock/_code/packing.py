"""Results of a worker on their way to the loader: a small message, and bytes in a slot.

A result is any Python object. It goes by pickle, protocol 5, but the memory of its arrays and tensors, and other buffers that
pickle leaves out of its stream, goes to a slot, if it is not there already. In the loader they are arrays and tensors over the slot.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
from typing import Any, Callable, NamedTuple

import numpy as np

from .memory import Reader, Room, Writer

#: Longer streams go to the slot, too: the sockets between the processes are for small messages.
_INLINE = 8192


class Packed(NamedTuple):
    """A result in parts, which is itself to be pickled.

    ``slots`` are (number, offset, size, end) of slots, ``end`` being the end of the worker's mapped memory, ``buffers`` (index of the
    slot, offset, length) of buffers in them, and ``body`` the stream of pickle, or the number of the buffer that has it.
    """

    slots: tuple[tuple[int, int, int, int], ...]
    buffers: tuple[tuple[int, int, int], ...]
    body: Any


def pack(value: Any, room: Room | None, writer: Writer) -> Packed:
    """Put the memory of a result into slots: into room, as far as it has space, or into another slot."""
    stream, buffers = io.BytesIO(), list[np.ndarray]()

    def keep(buffer: pickle.PickleBuffer) -> None:
        raw = buffer.raw()
        buffers.append(np.frombuffer(raw, np.uint8) if len(raw) else np.empty(0, np.uint8))

    _Pickler(stream, 5, buffer_callback=keep).dump(value)
    body: Any = stream.getbuffer()
    if len(body) > _INLINE:
        buffers.append(np.frombuffer(body, np.uint8))
        body = len(buffers) - 1
    else:
        body = bytes(body)
    return Packed(*_placed(buffers, room, writer), body)


def _placed(buffers: list[np.ndarray], room: Room | None, writer: Writer) -> tuple[Any, Any]:
    """Return slots, and where in them buffers are, after copying what is not there."""
    begins = [b.__array_interface__["data"][0] for b in buffers]
    there = [room is not None and room.start <= at < room.start + room.size for at in begins]
    rooms = [] if room is None else [room]
    outside = sum(-(-b.nbytes // 64) * 64 for b, inside in zip(buffers, there) if not inside)
    if outside > (0 if room is None else room.size - room.used):
        rooms.append(writer.room(outside))
    places = []
    for b, at, inside in zip(buffers, begins, there):
        if inside and room is not None:
            places.append((0, at - room.start, b.nbytes))
            continue
        to = rooms[-1].take(b.nbytes) if b.nbytes else b
        assert to is not None
        to[:] = b
        places.append((len(rooms) - 1, to.__array_interface__["data"][0] - rooms[-1].start if b.nbytes else 0, b.nbytes))
    used = {slot for slot, _, n in places if n}
    writer.give_back([r.number for i, r in enumerate(rooms) if i not in used])
    kept = [i for i in range(len(rooms)) if i in used]
    slots = tuple((rooms[i].number, rooms[i].at, rooms[i].size, writer.end) for i in kept)
    return slots, tuple((kept.index(slot) if n else 0, at, n) for slot, at, n in places)


def unpack(packed: Packed, reader: Reader) -> Any:
    """Return a result, over the slots."""
    slots = [reader.slot(*slot) for slot in packed.slots]
    arrays = [slots[slot](at, n) if n else np.empty(0, np.uint8) for slot, at, n in packed.buffers]
    body = packed.body if isinstance(packed.body, bytes) else arrays.pop(packed.body).data
    return pickle.loads(body, buffers=arrays)


class _Pickler(pickle.Pickler):
    """Takes the memory of arrays and tensors out of the stream."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is np.ndarray:
            return NotImplemented if value.dtype.hasobject else _reduced_array(value)
        torch = sys.modules.get("torch")
        tensor = getattr(torch, "Tensor", None)  # it may be under import
        if torch is None or tensor is None:
            return NotImplemented
        if isinstance(value, tensor):
            return NotImplemented if value.is_nested else _reduced_tensor(torch, value)
        if kind is torch.UntypedStorage:
            return _storage, (_storage_bytes(torch, value), None)
        if kind is torch.storage.TypedStorage:
            return _storage, (_storage_bytes(torch, value._untyped_storage), _name(value.dtype))
        return NotImplemented


def _reduced_array(value: np.ndarray) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    dtype: Any = value.dtype
    if dtype.names is None and dtype.subdtype is None:
        dtype = dtype.str if dtype.kind != "V" else dtype
    if value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous:
        return _transposed, _reduced_array(value.T)[1]
    if not (value.flags.c_contiguous and value.flags.writeable):
        value = np.array(value, order="C")
    return _array, (pickle.PickleBuffer(value.reshape(-1).view(np.uint8).data if value.size else b""), dtype, value.shape)


def _array(buffer: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(buffer, dtype).reshape(shape) if len(buffer) else np.empty(shape, dtype)


def _transposed(buffer: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    return _array(buffer, dtype, shape).T


@functools.cache
def _name(dtype: Any) -> str:
    """Return the name of a torch.dtype."""
    return str(dtype).rsplit(".", 1)[1]


def _reduced_tensor(torch: Any, value: Any) -> Any:
    if value.requires_grad and not value.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process boundaries.  "
            "If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    if value.device.type != "cpu" and value.device.type != "meta":
        raise RuntimeError(f"a worker returned a tensor on {value.device}; return tensors on the CPU, and move batches in the training loop")
    if (
        type(value) is not torch.Tensor
        or value.layout is not torch.strided
        or value.requires_grad
        or value.is_quantized
        or value.is_conj()
        or value.is_neg()
        or value.device.type != "cpu"
        or value.__dict__
    ):
        return NotImplemented  # torch's own way, which comes back for the storages
    shape, strides = tuple(value.shape), None
    if not value.numel():
        return _empty, (_name(value.dtype), shape)
    if not value.is_contiguous():
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, value.stride()))
        if extent <= value.numel():
            strides, value = value.stride(), value.as_strided((extent,), (1,))
        else:
            value = value.contiguous()
    return _tensor, (pickle.PickleBuffer(_bytes(torch, value).data), _name(value.dtype), shape, strides)


def _bytes(torch: Any, value: Any) -> np.ndarray:
    """Return the memory of a contiguous tensor."""
    flat = value.as_strided((value.numel(),), (1,))  # reshape would keep the stride of a single element, whatever it is
    found: np.ndarray = flat.view(torch.uint8).numpy()
    return found


def _storage_bytes(torch: Any, storage: Any) -> pickle.PickleBuffer:
    if not storage.nbytes():
        return pickle.PickleBuffer(b"")
    return pickle.PickleBuffer(torch.empty(0, dtype=torch.uint8).set_(storage).numpy())


def _tensor(buffer: Any, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> Any:
    import torch

    flat = torch.frombuffer(buffer, dtype=getattr(torch, dtype))
    return flat.view(shape) if strides is None else flat.as_strided(shape, strides)


def _empty(dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    return torch.empty(shape, dtype=getattr(torch, dtype))


def _storage(buffer: Any, dtype: str | None) -> Any:
    import torch

    flat = torch.frombuffer(buffer, dtype=torch.uint8) if len(buffer) else torch.empty(0, dtype=torch.uint8)
    untyped, typed = flat.untyped_storage(), torch.storage.TypedStorage  # type: Any, Any
    return untyped if dtype is None else typed(wrap_storage=untyped, dtype=getattr(torch, dtype), _internal=True)
