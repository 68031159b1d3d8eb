"""Functions of the user: the values that they take, and how they are called.

A Step is one function, with the kind of value that its annotation or library says; a Call is several that follow each
other.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np

from .._base.batched import is_batched, together
from .._base.dataclass import dataclass
from .._base.values import array, tensor

#: The kinds of values that functions take, with the annotations of parameters that say so.
KINDS = {
    "array": ("numpy.ndarray", "ndarray", "np.ndarray"),
    "tensor": ("torch.Tensor", "Tensor"),
    "pil": ("PIL.Image.Image", "Image.Image"),
    "tv_tensor": ("torchvision.tv_tensors._image.Image", "torchvision.tv_tensors.Image", "tv_tensors.Image"),
    "bytes": ("builtins.bytes", "bytes"),
    "str": ("builtins.str", "str"),
}


#: Results that have any number of rows, or are text.
ROWS = (list, tuple, str, bytes, bytearray)

#: Of a step of torchvision that follows another step.
_AS_IT_IS = "as it is"


class WrongOutput(TypeError):
    """A function has returned a value that cannot be a record of a batch."""


@dataclass(frozen=True)
class Function:
    """A function of yours as a step of a pipeline, and the values that it takes and returns.

    ::

        transforms=[RandomResizedCrop(224), Function(f, takes="tensor"), Normalize(mean, std)]

    Args:
        function: Takes a record's value, and returns another one. A callable in a pipeline needs no Function around it.
        takes: "array", "tensor" (C, H, W), "pil", "tv_tensor", "bytes" (image files as they are stored) or "str". None takes the
            annotation of the first parameter, or else an array.
        layout: "HWC" or "CHW", the axes of the images that it takes as arrays. None means as they are at that place.
        output: The type and shape that it returns, as (dtype, shape) or (dtype, shape, layout): ("int32", (None,)) is any number of numbers.
            None has it called with up to 16 records at the start.
        name: Its name in errors.
    """

    function: Callable[..., Any]
    takes: str | None = None
    layout: str | None = None
    output: tuple[Any, ...] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function is {self.function!r:.60}; it must be callable")
        if self.takes is not None and self.takes not in KINDS:
            raise ValueError(f"takes is {self.takes!r}; it is one of {', '.join(map(repr, KINDS))}")
        if self.layout not in (None, "HWC", "CHW"):
            raise ValueError(f'layout is {self.layout!r}; it is "HWC" or "CHW"')
        if self.layout is not None and self.takes not in (None, "array"):
            raise ValueError(f"layout is for arrays, and the function takes {self.takes!r}; leave it out")

    def __call__(self, value: Any) -> Any:
        return self.function(value)


@dataclass(frozen=True)
class Step:
    """One function that a worker calls."""

    call: Callable[[Any], Any]
    takes: str
    layout: str | None  # of arrays; None as they are
    dense: bool  # arrays must be contiguous
    name: str
    seed: Callable[[int], None] | None = None  # of random numbers of its own
    batched: bool = False

    def of(self, values: Sequence[Value]) -> list[Value]:
        """Return the results for the values of some records."""
        given = [value.as_taken(self) for value in values]
        layouts = [value.layout if self.takes not in ("tensor", "tv_tensor") or not value.layout else "CHW" for value in values]
        made = together(self.call, len(given), given) if self.batched else map(self.call, given)
        return [Value(result, layout_of(result, layout)) for result, layout in zip(made, layouts)]


@dataclass(frozen=True)
class Call:
    """Functions that a worker calls one after the other, and the type of the last function's result, if it was stated."""

    steps: tuple[Step, ...]
    output: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return ", ".join(step.name for step in self.steps)

    def seed(self, key: int) -> None:
        """Seed the random numbers that functions have of their own."""
        for step in self.steps:
            if step.seed is not None:
                step.seed(key)

    def through(self, values: Sequence[Value]) -> Sequence[Value]:
        """Return what the last function makes of the values of some records."""
        for step in self.steps:
            values = step.of(values)
        return values


def name_of(f: Any) -> str:
    """Return what errors call a function."""
    name = getattr(f, "__qualname__", None)
    if name is None and hasattr(f, "func"):  # functools.partial
        return name_of(f.func)
    return type(f).__name__ if name is None else name.rpartition("<locals>.")[2]


def after(f: Any) -> Step:
    """Return how a step of torchvision is called that follows another step which runs in Python."""
    return Step(f.function if isinstance(f, Function) else f, _AS_IT_IS, None, False, name_of(f))


def step_of(f: Any, kind: str | None = None) -> Step:
    """Return how a function is called; ``kind`` is its argument's kind if neither it nor its annotation states one."""
    given = f if isinstance(f, Function) else Function(f)
    f, takes, name = given.function, given.takes, given.name or name_of(given.function)
    library = library_of(f)
    if library == "albumentations":
        return Step(functools.partial(_of_image, f, "image"), "array", "HWC", True, name, seeding(f))
    if library == "imgaug":
        return Step(functools.partial(_of_image, f, None), "array", "HWC", True, name, _seed_imgaug)
    if library == "kornia":
        return Step(functools.partial(_of_batch, f), "tensor", None, False, name)
    if takes is None:
        takes = _annotated(f) or kind or ("tensor" if library == "torch.nn" else "array")
    return Step(f, takes, given.layout, False, name, batched=is_batched(f))


def stated(output: Any) -> dict[str, Any] | None:
    """Return what a function makes as feed takes it."""
    if output is None:
        return None
    if not isinstance(output, (tuple, list)) or len(output) not in (2, 3):
        raise TypeError(f"output is {output!r:.60}; it is (dtype, shape) or (dtype, shape, layout)")
    dtype = str(output[0]).rpartition(".")[2] if "torch" in str(output[0]) else output[0]
    dtype = dtype if dtype == "bfloat16" else np.dtype(dtype).name
    shape = (output[1],) if isinstance(output[1], int) else output[1]
    return {"dtype": dtype, "shape": [-1 if n is None else int(n) for n in shape], "layout": output[2] if len(output) == 3 else ""}


def library_of(f: Any) -> str:
    """Return whose function f is, where that says how it is called."""
    for base in type(f).__mro__:
        for library in ("albumentations", "imgaug", "kornia", "torch.nn"):
            if base.__module__ == library or base.__module__.startswith(library + "."):
                return library
    return ""


def annotation_of(f: Any) -> Any:
    """Return the annotation of a function's first parameter, or of the list's elements for a batched function; None without an
    annotation.
    """
    given = f
    if not (inspect.isfunction(f) or inspect.ismethod(f)):
        f = getattr(f, "func", None) or (type(f).__call__ if callable(f) and not isinstance(f, type) else f)
    try:
        parameters = [p for p in inspect.signature(f).parameters.values() if p.name != "self"]
    except (TypeError, ValueError):  # of a function of C
        return None
    if not parameters or parameters[0].annotation is inspect.Parameter.empty:
        return None
    annotation = parameters[0].annotation
    if not isinstance(annotation, str):
        return next(iter(get_args(annotation)), None) if is_batched(given) else annotation
    if is_batched(given):
        annotation = annotation.partition("[")[2][:-1]
    found = getattr(f, "__globals__", {}).get(annotation.partition(".")[0])  # a name that was imported
    for part in annotation.split(".")[1:]:
        found = getattr(found, part, None)
    return annotation if found is None else found


def _annotated(f: Any) -> str | None:
    """Return what the annotation of a function's first parameter says that it takes."""
    annotation = annotation_of(f)
    text = annotation if isinstance(annotation, str) else f"{getattr(annotation, '__module__', '')}.{getattr(annotation, '__qualname__', '')}"
    return next((kind for kind, names in KINDS.items() if text in names or (text.startswith(("numpy.typing.", "npt.")) and kind == "array")), None)


def _of_image(pipeline: Any, key: str | None, image: np.ndarray) -> Any:
    """Call a pipeline of albumentations or imgaug, which takes image=, and may return a dict."""
    made = pipeline(image=image)
    return made if key is None else made[key]


def _of_batch(module: Any, image: Any) -> Any:
    """Call a module of Kornia, which takes and returns batches: of one image here."""
    if not image.is_floating_point():
        raise TypeError("Kornia works on floats, and this image is of bytes; put ToTensor() before it")
    return module(image.unsqueeze(0)).squeeze(0)


def seeding(pipeline: Any) -> Callable[[int], None] | None:
    """Return what seeds a pipeline of albumentations, which has random numbers of its own since 1.4.19."""
    return functools.partial(_seed_albumentations, pipeline) if hasattr(pipeline, "set_random_seed") else None


def _seed_albumentations(pipeline: Any, key: int) -> None:
    pipeline.set_random_seed(key & 0xFFFFFFFF)


def _seed_imgaug(key: int) -> None:
    sys.modules["imgaug"].seed(key & 0x7FFFFFFF)


class Value:
    """A record's value between functions: an array, a tensor or a PIL image, and the axes of images."""

    __slots__ = ("layout", "value")

    def __init__(self, value: Any, layout: str) -> None:
        self.value, self.layout = value, layout

    def as_taken(self, step: Step) -> Any:
        """Return the value as a function takes it."""
        takes = step.takes
        if takes == _AS_IT_IS:
            return self.value
        if isinstance(self.value, str):
            return self.value.encode() if takes == "bytes" else self.value
        if takes == "array":
            x = self.array()
            if step.layout is not None and self.layout and step.layout != self.layout:
                x, self.layout = x.transpose((1, 2, 0) if step.layout == "HWC" else (2, 0, 1)), step.layout
            return np.ascontiguousarray(x) if step.dense else x
        if takes == "tensor" or takes == "tv_tensor":
            return self._tensor(takes)
        if takes == "pil":
            return self._pil()
        return self.array().tobytes() if takes == "bytes" else bytes(self.array()).decode()

    def array(self) -> np.ndarray:
        """Return the value as an array."""
        value = self.value
        if value is None:
            raise WrongOutput('it has returned None, which is no value; on_error="backfill" puts another record in the place of such ones')
        if type(value).__module__.partition(".")[0] == "PIL":
            x = np.array(value)  # which may be written to
            return x[:, :, None] if x.ndim == 2 else x
        return array(value)

    def _tensor(self, takes: str) -> Any:
        import torch

        x = self.value
        if not isinstance(x, torch.Tensor):
            x = tensor(self.array())
        if self.layout == "HWC":
            x, self.layout = x.permute(2, 0, 1), "CHW"
        if takes == "tensor":
            return x
        from torchvision.tv_tensors import Image

        if isinstance(x, Image):
            return x
        if x.ndim == 3 and x.is_contiguous():  # torchvision's ToImage leaves pixels as they lie in a PIL image, in which order randn_like fills them
            x = x.permute(1, 2, 0).contiguous().permute(2, 0, 1)
        return Image(x)

    def _pil(self) -> Any:
        from PIL import Image

        if isinstance(self.value, Image.Image):
            return self.value
        x = self.array()
        if self.layout == "CHW":
            x = x.transpose(1, 2, 0)
        self.layout = "HWC"
        if x.dtype != np.uint8:
            raise TypeError(f"the function takes PIL images, and this is {x.dtype}; put it before ToTensor, ToDtype and Normalize")
        return Image.fromarray(x[:, :, 0] if x.shape[2] == 1 else np.ascontiguousarray(x))


def layout_of(value: Any, given: str) -> str:
    """Return the axes of a function's result. The function was given an image with axes ``given``; "" if the result is not an
    image.
    """
    if not given:
        return ""
    if type(value).__module__.partition(".")[0] == "PIL":
        return "HWC"
    shape = getattr(value, "shape", ())
    if len(shape) != 3:
        return ""
    layout = "CHW" if hasattr(value, "detach") else given
    return layout if shape[0 if layout == "CHW" else 2] in (1, 3) else ""
