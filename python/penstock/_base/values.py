"""Values on their way between Python and a dataset: the one place where they become arrays of an element type, and back.

A value stays what it is, or is refused. Where a field has another type than a value, the value is stored if the type has exactly this
value; NumPy's casts, which round and wrap around, are for the user to call by name. What becomes of each kind of value:

=============================================  =============================================================================
bool, int, float of Python                     bool, int64, float64; in a field of another type exact, but floats are rounded,
                                               as they have no type of their own
arrays and scalars of NumPy                    as they are: also read-only, not contiguous, big-endian, 0-d, float16
tensors of torch                               as they are, detached, from any device: also bfloat16 and uint16 to uint64
bfloat16 of torch, JAX and ml_dtypes           ``penstock.bfloat16.dtype()``, and torch.bfloat16 where the output is torch
uint16 in a field of bfloat16                  refused: they may be numbers, or the bits of some
lists and tuples                               the array that NumPy makes of them, unless that rounds an integer
lists and tuples of any of these               stacked; refused if a value in them is refused
masked arrays                                  refused if a value is masked
columns of pandas, polars and Arrow            as NumPy has them; refused if a value is missing, and Categorical, which is numbers and names
images of PIL                                  their pixels, of shape (H, W) or (H, W, C); those with a palette, its indices
complex, float8, int4, quantized, sparse and   refused, with what to write instead
nested tensors, text, dates, objects, records
=============================================  =============================================================================
"""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import bfloat16
from .._read.field import STORAGE, numpy_type

if TYPE_CHECKING:
    import torch

_NATIVE = {np.dtype(stored): name for name, stored in STORAGE.items() if name != "bfloat16"}

#: What to write instead of a value, by the kind of its type.
_INSTEAD = {
    "c": "store its .real and its .imag as two fields",
    "M": "store .astype('int64') of it, and its unit in the name of the field",
    "m": "store .astype('int64') of it, and its unit in the name of the field",
    "U": "text is a field of its own, a str for each record; store class numbers, or join the strings to one",
    "S": "text is a field of its own, a str for each record; store class numbers, or join the strings to one",
}
_INSTEAD_OF_TENSORS = {"float8": "give .float() of it", "float4": "give .float() of it", "complex": "give torch.view_as_real(x) of it"}


def element_type(dtype: np.dtype) -> str:
    """Return the name of the element type that a NumPy type has; "" for none."""
    found = _NATIVE.get(dtype) or _NATIVE.get(dtype.newbyteorder("<"))
    return found or ("bfloat16" if bfloat16.is_bfloat16(dtype) else "")


def kind_of(dtype: np.dtype) -> str:
    """Return the kind of a NumPy type as NumPy has it, and "f" for bfloat16."""
    return "f" if bfloat16.is_bfloat16(dtype) else dtype.kind


def is_typed(value: Any) -> bool:
    """Return whether a value has a NumPy or torch type of its own, unlike Python's numbers, whose type the field decides."""
    return isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "dtype")


def array(value: Any) -> np.ndarray:
    """Return a value as an array, which may be over its memory; bfloat16 as ``penstock.bfloat16.dtype()``.

    Raise TypeError for a value that NumPy would take for another value. The result may be of a type that datasets do not have:
    see element_type.
    """
    if type(value) is np.ndarray:
        found = value
    else:
        try:
            found = np.asarray(_checked(value))
        except ValueError as e:
            if "inhomogeneous" not in str(e):
                raise
            raise ValueError("its rows differ in shape, which no field has; pad them, or make one list of them") from None
        if isinstance(value, (list, tuple)) and found.dtype == np.float64 and found.size and np.abs(found).max() >= 1 << 63:
            listed = np.asarray(value, object)  # NumPy takes integers above 2**63 and below for floats
            if all(type(v) is int for v in listed.flat):
                found = np.array(listed, np.uint64) if min(listed.flat) >= 0 else listed
    if bfloat16.is_bfloat16(found.dtype):
        return found.view(bfloat16.dtype())
    return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


#: Types of elements that _checked returns as they are.
_PLAIN = {bool, int, float, str, bytes, np.ndarray, *np.sctypeDict.values()}


def _checked(value: Any) -> Any:
    """Return a value that NumPy takes as it is, or refuse it. Values in lists and tuples are checked like single values."""
    if isinstance(value, (list, tuple)):
        return value if _PLAIN.issuperset(map(type, value)) else [_checked(v) for v in value]
    if hasattr(value, "detach"):
        return _of_tensor(value)
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise TypeError("a masked array, some values of which are masked: give .filled(x) of it")
        return value.data
    dtype = getattr(value, "dtype", None)
    if str(dtype) == "category":
        raise TypeError("categories are numbers and names: give .codes of them, or their names one by one")
    missing = getattr(value, "null_count", None)  # of polars and Arrow
    missing = missing() if callable(missing) else missing
    if missing is None and hasattr(value, "isna") and not isinstance(dtype, np.dtype):  # of pandas
        missing = int(value.isna().sum())
    if missing:
        raise TypeError(f"{missing} of its values are missing: give .fillna(x) of it, or .fill_null(x)")
    numbers = getattr(dtype, "numpy_dtype", None)
    return value if missing is None or numbers is None else value.to_numpy(dtype=numbers)


def _of_tensor(value: Any) -> np.ndarray:
    """Return a tensor as an array."""
    value = value.detach()
    for wrong, instead in (("is_nested", "give each of its tensors"), ("is_sparse", "give .to_dense()"), ("is_quantized", "give .dequantize()")):
        if getattr(value, wrong, False):
            raise TypeError(f"a tensor that {wrong.replace('_', ' ')}: {instead} of it")
    name = str(value.dtype).rpartition(".")[2]
    if name == "bfloat16":
        import torch

        bits: np.ndarray = value.cpu().contiguous().view(torch.int16).numpy()
        return bits.view(bfloat16.dtype())
    if name not in STORAGE and name not in ("complex64", "complex128"):
        instead = next((words for start, words in _INSTEAD_OF_TENSORS.items() if name.startswith(start)), "give .to(torch.int8) of it")
        raise TypeError(f"a tensor of {value.dtype}, which has no NumPy type: {instead}")
    made: np.ndarray = value.cpu().resolve_conj().resolve_neg().numpy()
    return made


def instead_of(dtype: np.dtype) -> str:
    """Return what to write instead of values of a type that datasets do not have."""
    if dtype.kind == "V":
        return "make a field of each of its members" if dtype.names else "give .astype('float32') of it, or .astype('int8')"
    return _INSTEAD.get(dtype.kind) or ("give .astype('float64') of it" if dtype.kind == "f" else "give numbers, or an array of numbers")


#: Characters that Go's encoding/json escapes, and Python's json does not.
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def is_texts(value: Any) -> bool:
    """Return whether a value is a list of texts, one at least."""
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(x, str) for x in value)


def text_of(texts: Any) -> str:
    """Return a list of texts as a text: its JSON array, as tables have lists of texts."""
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)


def fitted(value: Any, dtype: str) -> np.ndarray:
    """Return a value as an array of an element type, without a change of any number; Python's floats alone are rounded.

    Raise TypeError, or OverflowError if the type does not have a number, with what to write instead.
    """
    a, want = array(value), numpy_type(dtype)
    found, typed = element_type(a.dtype), is_typed(value)
    if found == dtype:
        return unrounded(value, a)
    if a.size == 0 and not typed:
        return np.empty(a.shape, want)
    if not found:
        raise TypeError(f"{called(value)} is not {dtype}; {instead_of(a.dtype)}" if typed else f"{called(value)} is not {dtype}")
    if (dtype, found, typed) == ("bfloat16", "uint16", True):
        raise TypeError(
            "uint16 is not bfloat16: of bits, give bits.view(penstock.bfloat16.dtype()); of numbers, penstock.bfloat16.from_float32(numbers)"
        )
    if kind_of(want) == "f":
        return unrounded(value, _as_floats(a, want, typed))
    if a.dtype.kind in "biu" and want.kind in "iu":
        low, high = np.iinfo(want).min, np.iinfo(want).max
        out = a.astype(want)
        if a.size and a.dtype.kind != "b" and (int(a.min()) < low or int(a.max()) > high):
            raise _inexact(a, (a < low) | (a > high), dtype)
        return out
    raise TypeError(f"{floats(a, np.dtype(np.float64)).flat[0] if a.size else called(value)} of {found} is not {dtype}")


def _as_floats(a: np.ndarray, want: np.dtype, typed: bool) -> np.ndarray:
    """Return numbers as floats of a type that has them, or Python's floats as the nearest ones."""
    whole, dtype = a.dtype.kind in "biu", element_type(want)
    exact = 1 << (_PRECISION[dtype])  # integers up to it are all there
    if whole and (a.dtype.kind == "b" or a.size == 0 or (-exact <= int(a.min()) and int(a.max()) <= exact)):
        return floats(a, want)
    out = floats(a, want)
    if whole:
        numbers = zip(floats(out, np.dtype(np.float64)).ravel().tolist(), a.ravel().tolist())
        wrong = np.array([not (math.isfinite(x) and int(x) == n) for x, n in numbers]).reshape(a.shape)
    elif typed:
        back, given = floats(out, np.dtype(np.float64)), floats(a, np.dtype(np.float64))
        wrong = (back != given) & ~np.isnan(given)
    else:
        wrong = np.isinf(floats(out, np.dtype(np.float64))) & ~np.isinf(a)
    if wrong.any():
        raise _inexact(a, wrong, dtype)
    return out


#: The bits of the mantissas of floats, the implicit one included, and the largest numbers.
_PRECISION = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
_LARGEST = {"bfloat16": 3.3895313892515355e38, **{name: float(np.finfo(name).max) for name in ("float16", "float32", "float64")}}


def _inexact(a: np.ndarray, wrong: np.ndarray, dtype: str) -> Exception:
    """Return the error for numbers that a type does not have."""
    number = (floats(a, np.dtype(np.float64)) if kind_of(a.dtype) == "f" else a)[wrong].ravel()[0].item()
    if dtype in _LARGEST and abs(number) > _LARGEST[dtype]:
        return OverflowError(f"{number} does not fit {dtype}, whose largest number is {_LARGEST[dtype]:.6g}")
    named = "penstock.bfloat16.from_float32(x)" if dtype == "bfloat16" else f".astype({dtype!r})"
    rounds = f"; to have it rounded, give {named}" if isinstance(number, float) else ""
    return OverflowError(f"{number} does not fit {dtype}, which would make another number of it{rounds}")


def unrounded(value: Any, a: np.ndarray) -> np.ndarray:
    """Return floats that NumPy has converted from Python lists, unless it has rounded an integer among them."""
    if isinstance(value, (list, tuple)) and kind_of(a.dtype) == "f":
        numbers = floats(a, np.dtype(np.float64))
        large = np.abs(numbers) >= 1 << _PRECISION[element_type(a.dtype)]
        if (large & np.isfinite(numbers)).any():
            _check_integers(value, numbers, element_type(a.dtype))
    return a


def _check_integers(value: Any, a: np.ndarray, dtype: str) -> None:
    for v, x in zip(value, a):
        if isinstance(v, (list, tuple)):
            _check_integers(v, x, dtype)
        elif not isinstance(v, (float, np.floating)):
            whole = array(v)
            if whole.dtype.kind in "iu" and not all(math.isfinite(p) and int(p) == n for p, n in zip(np.ravel(x).tolist(), whole.ravel().tolist())):
                raise OverflowError(f"{called(v)} among floats does not fit {dtype}, which would make another number of it")


def floats(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return numbers as floats of a type, the nearest ones: for calculations."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinity, and a NaN that signals
        if bfloat16.is_bfloat16(dtype):
            return a if bfloat16.is_bfloat16(a.dtype) else bfloat16.from_float32(a)
        return (bfloat16.to_float32(a) if bfloat16.is_bfloat16(a.dtype) else a).astype(dtype, copy=False)


def full(shape: tuple[int, ...], number: Any, dtype: np.dtype) -> np.ndarray:
    """Return an array of one number, as numpy.full does."""
    return bfloat16.from_float32(np.full(shape, number, np.float32)) if bfloat16.is_bfloat16(dtype) else np.full(shape, number, dtype)


def stored(a: np.ndarray) -> np.ndarray:
    """Return an array as it is in files: contiguous, and bfloat16 as the bits."""
    a = np.ascontiguousarray(a)
    return a.view(STORAGE["bfloat16"]) if bfloat16.is_bfloat16(a.dtype) else a


def tensor(a: np.ndarray) -> torch.Tensor:
    """Return a tensor over the memory of an array."""
    library: Any = sys.modules.get("torch")  # an import statement would take a third of the time of a small record
    if library is None:
        import torch as library
    bits = bfloat16.is_bfloat16(a.dtype)
    found: torch.Tensor = library.from_numpy(a.view(np.int16) if bits else a)
    return found.view(library.bfloat16) if bits else found


def number(value: Any) -> Any:
    """Return a scalar of NumPy or a tensor of one number as a number of Python, and any other value as it is."""
    if getattr(value, "shape", None) != () or getattr(value, "dtype", None) is None:
        return value
    a = array(value)
    if kind_of(a.dtype) not in "biufU":
        return value
    return (floats(a, np.dtype(np.float64)) if kind_of(a.dtype) == "f" else a).item()


def called(value: Any) -> str:
    """Describe a value in a few words."""
    text = repr(value) if isinstance(value, (int, float, str, bytes, bool, type(None))) else ""
    return text if text and len(text) < 60 else f"a value of type {type(value).__name__}"
