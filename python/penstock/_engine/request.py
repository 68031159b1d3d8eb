"""The parameters of a DataLoader: their checks, and what the first message to the feeding process says of them.

signature.py checks the parameters that torch has too, in torch's words.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .. import samplers
from .._base.dataclass import dataclass
from .._base.errors import Error
from .._base.limits import cores
from .._base.options import Output, Prepare, Verify, choice, count
from .._base.options import size as in_bytes
from .._read import generations
from .._read.field import chosen
from .._read.filters import to_text
from .._read.formats import may_be_raw
from .._read.ragged import Ragged
from . import frameworks, launcher, subject
from .batch import BatchDict, BatchTuple
from .pack import Pack
from .signature import Signature, drawn

if TYPE_CHECKING:
    from .pinned import Pinning, Unpinned

# Limits of options, the same as in package loader.
_MAX_BATCH = 1 << 30
_MAX_WORLD = 1 << 20
_MAX_WORKERS = 1 << 12
_MAX_FUNCTION_WORKERS = 512
MAX_SLOTS = 256

ADVICE = "pack what is stored: penstock.map(FUNCTION, penstock.open(DATASET), NEW), where FUNCTION takes and returns a dict of fields"


class ManyRows(Error):
    """Functions of fields return any number of rows, which the engine does not have room for."""

    def __init__(self, text: str, fields: Sequence[str]) -> None:
        super().__init__(text)
        self.fields = fields


@dataclass(frozen=True)
class Request:
    """The batches that a DataLoader asks for."""

    subject: subject.Subject
    order: samplers.Sampler
    pack: Pack | None
    options: dict[str, Any]  # of the first message, without the order and the pack, which have arrays
    exact: int | None  # how many records the datasets must have; None if any number will do
    convert: Any  # converts a batch's arrays to the output that the caller asked for
    each: Any  # returns what converts an array of a field of fixed size, None if nothing has to; None if convert takes all of them at once
    device: Any  # where tensors go; None for the host
    ahead: int  # how many batches are copied ahead of the loop
    pinning: Pinning | Unpinned | None
    copies: Any  # knows when copies are done that are not the DataLoader's own
    socket: str | None  # where a feed listens; None to start one
    flags: list[str]  # of the feeding process
    cache_dir: Any  # None for the user's
    command: str | None
    timeout: float
    viewing: bool  # whether batches may be views of a dataset's files, which are mapped here
    kind: type  # of batches: BatchTuple or BatchDict
    sampler: Any  # as given, or the penstock sampler that stands for the other arguments
    distributed: Any  # the DistributedSampler that says the epoch; None if no sampler does
    functions: Any  # of transforms, which the engine has called; None if there are none
    recording: Any  # functions of whole records, which come after the engine's steps, and who calls all functions; None if there are none

    @classmethod
    def of(cls, arguments: Mapping[str, Any], signature: Signature, last: str) -> Request:
        """Check the arguments of a DataLoader over prepared datasets. Those that torch has too were checked by signature.

        ``last`` is how the last global batch is divided: a loader.Last of Go, by its name in docs/feed.md.
        """
        given = SimpleNamespace(**arguments)
        if given.pack is not None and not isinstance(given.pack, Pack):
            raise TypeError(f"pack is {given.pack!r:.60}; it must be a penstock.Pack, such as penstock.Pack(length)")
        if (given.dataset is None) == (given.socket is None):
            raise ValueError("a DataLoader needs either a dataset or the socket of a feed")
        convert, each, device, ahead = _converter(given.output, given.device)
        of = subject.resolve(given.dataset, chosen(given.fields), given.split)
        narrowed = given.filters is not None or given.pack is not None
        if narrowed and of.indices is not None:
            raise ValueError(
                "filters and pack renumber the records, and the dataset is a Subset; give the path, and sampler= one of penstock.samplers"
            )
        batch_size, drop_last = 1 if signature.batch_size is None else count("batch_size", signature.batch_size, 1, _MAX_BATCH), signature.drop_last
        order, implied = _order(signature, of, narrowed, batch_size, drop_last)
        rank, world_size = ranks(given.rank, given.world_size, implied)
        workers = None if signature.num_workers is None else count("num_workers", signature.num_workers, 0, _MAX_WORKERS)
        seed = seed_of(given.seed if signature.generator is None else drawn(given.seed, signature.generator), implied)
        pipelines, functions, recording = _functions(_normalizing(of, given.transforms), given, signature)
        _valid(signature, recording is not None)
        choice("prepare", given.prepare, Prepare)
        options: dict[str, Any] = {
            "batch_size": batch_size, "num_workers": 0 if workers is None else max(1, workers), "slots": _slots(given.prefetch_factor, workers or 1),
            "rank": rank, "world_size": world_size, "last": last,
            "seed": seed, "fields": of.fields, "split": of.split or "", "splits": _shares(given.splits, of.split),
            "prepare": given.prepare,
            "drop_last": implied.get("drop_last", drop_last), "in_order": signature.in_order,
            "where": to_text(given.filters), "timeout": float(signature.timeout),
            "transforms": pipelines, "batch_transforms": _of_batches(given.batch_transforms),
            "contents": _contents(given.contents, given.independent), "memory": signature.memory or 0,
            "verify": _verify(given.verify), "on_error": given.on_error,
        }  # fmt: skip
        if recording is not None:
            options["num_workers"] = 0  # as many as suit the workers of functions
            options["memory"] //= 2  # the workers have the other half
        if device is not None:
            options["as_bytes"] = True
        exact = of.records if given.pack is None and (given.sampler is not None or of.indices is not None) else None
        pinning, copies = _pinning(signature.pin_memory, given.output, device)
        fetched = any("://" in path or may_be_raw(path) or not os.path.lexists(generations.split(path)[0]) for path in of.paths)
        if given.cache_dir is not None or given.cache_size is not None:
            if given.socket is not None:
                raise ValueError(
                    "cache_dir and cache_size belong to the feed that listens: penstock feed URL --socket PATH --cache-dir FOLDER --cache-size BYTES"
                )
            kept = recording is not None and (given.pack is not None or samplers.of_lengths(order)) and given.cache_size is None
            if not (fetched or kept):
                raise ValueError(f"cache_dir and cache_size are for the URL of a dataset: nothing of {of.paths[0]} is fetched; leave them out")
        cache_dir = _cache_dir(of.opened) if given.cache_dir is None and given.socket is None else given.cache_dir
        flags, socket, command = _cache(cache_dir, given.cache_size) if fetched else [], given.socket, given.command
        return cls(
            subject=of,
            order=of.ordered(order),
            pack=given.pack,
            options=options,
            exact=exact,
            convert=convert,
            each=each,
            device=device,
            ahead=ahead,
            pinning=pinning,
            copies=copies,
            socket=None if socket is None else os.fspath(socket),
            flags=flags,
            cache_dir=cache_dir,
            command=None if command is None else os.fspath(command),
            timeout=given.timeout,
            viewing=pinning is None and device is None and recording is None,
            kind=batch_kind(given.batch_type),
            sampler=order if given.sampler is None else given.sampler,
            distributed=given.sampler if "rank" in implied else None,
            functions=functions,
            recording=recording,
        )

    def by_record(self, fields: Sequence[str]) -> Request:
        """Return the request with functions that make any number of rows of fields as functions of whole records."""
        from ..functions.plan import Plan

        plan, steps = Plan(self.options["transforms"], self.functions.calls).parted(fields)
        _last(f"functions that make any number of rows ({steps[0].label})", batch_transforms=self.options["batch_transforms"])
        functions = replace(self.functions, calls=plan.calls) if plan.calls else None
        recording = replace(self.recording, steps=(*steps, *self.recording.steps))
        return replace(self, options={**self.options, "transforms": plan.pipelines}, functions=functions, recording=recording)


def _cache_dir(opened: Iterable[Any]) -> Any:
    """Return the cache of the datasets in buckets that were opened in this process; None is the default, or there are several."""
    datasets = [d for of in opened for d in of.datasets()]
    known = {os.fsdecode(d._cache_dir) for d in datasets if "://" in d.path and d._cache_dir is not None}
    return known.pop() if len(known) == 1 else None


def _contents(given: Any, independent: Any) -> dict[str, str]:
    """Return the contents of fields by their names, "independent" for fields that lie on no image."""
    none = dict.fromkeys(chosen(independent, "independent") or (), "independent")
    if given is None:
        return none
    if not isinstance(given, Mapping) or not all(isinstance(k, str) and isinstance(v, str) for k, v in given.items()):
        raise TypeError(f"contents is {given!r:.60}; it is a dict of fields, such as {{'boxes': 'boxes', 'seg': 'mask'}}")
    return {**given, **none}


def _valid(signature: Signature, python: bool) -> None:
    """Refuse parameters that need a process of Python where none is used, and numbers that make no sense."""
    if signature.worker_init_fn is not None and not python:
        raise ValueError(
            "worker_init_fn is called in worker processes of Python, and this dataset is read by a feeding process, which has none; leave it out: "
            "random choices of transforms follow seed="
        )
    if signature.concurrency > 1:
        raise ValueError(
            f"concurrency is {signature.concurrency}; it is for datasets of your own whose __getitem__ waits. The engine reads this one, as many "
            "records at a time as suit it: leave concurrency out"
        )
    if signature.prefetch_factor == 0:
        raise ValueError("prefetch_factor is 0; it must be from 1 to 256")
    if math.isnan(signature.timeout):
        raise ValueError(f"timeout is {signature.timeout!r}; it must be 0 or more seconds")


def batch_kind(given: Any) -> type:
    """Return the class of batches that batch_type names."""
    if given not in (tuple, dict):
        raise TypeError(f"batch_type is {given!r:.60}; it is tuple, whose batches unpack and have names, or dict")
    return BatchTuple if given is tuple else BatchDict


def _order(signature: Signature, of: subject.Subject, narrowed: bool, batch_size: int, drop_last: bool) -> tuple[samplers.Sampler, Mapping[str, Any]]:
    """Return the order of the records that were asked for, and what torch's sampler says besides."""
    if signature.sampler is not None:
        return samplers.translate(signature.sampler, of.count, not narrowed, batch_size, drop_last)
    return samplers.Shuffle() if signature.shuffle else samplers.Sequential(), {}


def _converter(output: str, device: Any) -> tuple[Any, Any, Any, int]:
    """Return the function that converts a batch's arrays, the function that picks the converter of a field, the CUDA device that tensors
    go to, and the number of batches to copy ahead.
    """
    choice("output", output, Output)
    if output == "numpy":
        if device is not None:
            raise ValueError('device is for output="torch" and "jax": NumPy has no arrays on devices')
        return in_arrays, lambda _: None, None, 0
    if output == "jax":
        from ..jax import AHEAD, converter

        return converter(device), None, None, 0 if device is None else AHEAD
    try:
        from ..torch import convert, converter_of
    except ImportError as e:
        raise Error(f'output="torch" needs PyTorch, which cannot be imported ({e}); install it, or take output="numpy"') from e
    if device is None:
        return convert, converter_of, None, 0
    from . import device as devices

    found = devices.resolve(device)
    return convert, converter_of, *((None, 0) if found.type == "cpu" else (found, devices.AHEAD if found.type == "cuda" else 0))


def in_arrays(_: object, values: dict[str, Any]) -> dict[str, Any]:
    """Return NumPy arrays as they are, text as lists of str, and image files of which records have any number as lists of lists."""
    return {name: list(v) if isinstance(v, Ragged) and (v.is_text or v.is_images) else v for name, v in values.items()}


def ranks(rank: Any, world_size: Any, implied: Mapping[str, Any]) -> tuple[int, int]:
    """Return rank and world size: as given, as a sampler implies, or as the launcher says."""
    world_size = None if world_size is None else count("world_size", world_size, 1, _MAX_WORLD)
    if isinstance(rank, str):
        if rank != "auto":
            raise ValueError(f'rank is {rank!r}; it must be an integer or "auto"')
        rank, world_size = launcher.automatic(world_size)
    for name, value in (("rank", rank), ("world_size", world_size)):
        if name in implied and value not in (None, implied[name]):
            raise ValueError(f"{name} is {value}, and {name} of the DistributedSampler is {implied[name]}; leave one of the two out")
    if "rank" in implied:
        rank, world_size = implied["rank"], implied["world_size"]
    if rank is None and world_size not in (None, 1):
        raise ValueError(f'world_size is {world_size}: give rank, too, or rank="auto"')
    world_size = world_size or 1
    return count("rank", rank or 0, 0, world_size - 1, f", as world_size is {world_size}"), world_size


def seed_of(seed: Any, implied: Mapping[str, Any]) -> int:
    """Return the given seed, or the seed of a DistributedSampler, or of Lightning's seed_everything, or 0.

    Lightning gives its seed to the samplers that it puts in for several devices, and on one device it puts in none: the order is the same on both.
    """
    lightnings = os.environ.get("PL_GLOBAL_SEED", "")
    if seed is None:
        known = int(lightnings) if lightnings.isdecimal() and not frameworks.LIGHTNING.isdisjoint(sys.modules) else 0
        return count("seed", implied.get("seed", known), 0, samplers.MAX_SEED)
    given = count("seed", seed, 0, samplers.MAX_SEED)
    if implied.get("seed", 0) not in (0, given) and lightnings != str(implied["seed"]):
        raise ValueError(f"seed is {given}, and seed of the DistributedSampler is {implied['seed']}; leave one of the two out")
    return given


def _normalizing(of: subject.Subject, transforms: Any) -> Any:
    """Return the given transforms, or the transforms of a TorchDataset that normalizes."""
    if of.transforms is not None and transforms is not None:
        raise ValueError(
            "the TorchDataset normalizes, and transforms= are given; leave normalize out, and end transforms with ToTensor and Normalize"
        )
    return of.transforms if transforms is None else transforms


def _pinning(asked: bool, output: str, device: Any) -> tuple[Pinning | Unpinned | None, Any]:
    """Return what page-locks memory, and what knows when copies from it are done that are not the DataLoader's own."""
    if not asked and device is None:
        return None, None
    from .pinned import Pinning, Unpinned

    if output != "torch":
        return Pinning(0), None
    import torch

    if not torch.cuda.is_available() or (device is not None and device.type != "cuda"):
        return Unpinned("torch finds no CUDA device" if device is None else "batches are copied to no CUDA device"), None
    from .device import PendingCopies

    if device is None:
        return Pinning(torch.cuda.current_device()), PendingCopies()
    return Pinning(device.index), None


def _functions(transforms: Any, given: Any, signature: Signature) -> tuple[Mapping[str, Any], Any, Any]:
    """Return pipelines by the name of the field, "" for all image fields, the functions of fields in them, and the functions of whole records.

    Without functions, the last two are None.
    """
    collated = signature.collate_fn is not None or signature.batch_size is None
    if transforms is None and not collated:
        return {}, None, None
    from ..functions.ends import Ends
    from ..functions.plan import divided, plan
    from ..functions.record import Recording
    from ..functions.running import Functions

    before, steps, after = divided(transforms)
    found = plan(before)
    if not (steps or found.calls or collated):
        return found.pipelines, None, None
    if found.calls and given.socket is not None:
        raise ValueError("functions need a feed that this process starts; give the dataset in place of socket=")
    if steps or collated:
        what = f"functions of whole records ({steps[0].label})" if steps else "collate_fn, batch_sampler or batch_size=None"
        _last(what, pack=given.pack if collated else None, batch_transforms=given.batch_transforms)
    workers = cores() if signature.num_workers is None else count("num_workers", signature.num_workers, 0, _MAX_FUNCTION_WORKERS)
    recording = Recording(
        steps, Ends(after), workers, signature.multiprocessing_context, signature.worker_init_fn, signature.pin_memory, signature.prefetch_factor,
        _samples(given, signature) if collated else None,
    )  # fmt: skip
    functions = Functions(found.calls, workers, recording.context, recording.init) if found.calls else None
    return found.pipelines, functions, recording


def _last(what: str, **options: Any) -> None:
    """Refuse options that come before something else."""
    for name, value in options.items():
        if value:
            how = "apply it to the batches that the DataLoader yields"
            if name == "pack":  # which needs the lengths of records before they are made
                how = ADVICE
            raise ValueError(f"{name} comes before {what}; {how}")


def _samples(given: Any, signature: Signature) -> Any:
    """Return how the user's code, or torch's default, makes batches of records."""
    from .._code import collate
    from ..functions.record import Collation

    function = signature.collate_fn or collate.default(signature.batched, given.output == "torch")
    return Collation(function, batch_kind(given.batch_type), given.output == "torch", signature.batched)


def _of_batches(transforms: Any) -> list[dict[str, Any]]:
    """Return transforms of batches as JSON."""
    if transforms is None:
        return []
    from ..transforms import BATCH, translate

    return translate(transforms, BATCH)


def _cache(folder: str | os.PathLike[str] | None, size: int | str | None) -> list[str]:
    """Return the flags of feed for where, and how much of, what it fetched is kept."""
    flags = [] if folder is None else ["--cache-dir", os.fspath(folder)]
    if size is None:
        return flags
    return [*flags, "--cache-size", str(in_bytes("cache_size", size))]


def _verify(verify: Verify) -> float:
    """Return the part of blocks that are compared; -1 is when they are first read."""
    named = {"off": 0.0, "first": -1.0, "always": 1.0}
    if isinstance(verify, str):
        if verify not in named:
            raise ValueError(f'verify is {verify!r}; it is "off", "first", "always" or a number from 0 to 1')
        return named[verify]
    if not 0 <= verify <= 1:
        raise ValueError(f"verify is {verify}; it must be from 0 to 1")
    return float(verify)


def _shares(splits: Mapping[str, float] | None, split: str | None) -> str:
    """Return shares of splits as text."""
    if splits is None:
        return ""
    if not isinstance(splits, Mapping):
        raise TypeError(f'splits is {splits!r:.60}; it is a dict of shares: {{"train": 0.8, "val": 0.2}}')
    if split is None:
        raise ValueError(f"splits is {splits!r:.60} and split is None, which is all samples; give split= one of its names as well")
    return ",".join(f"{name}={share}" for name, share in splits.items())


def _slots(prefetch_factor: Any, workers: int) -> int:
    """Return how many batches this process may have at a time: two in use, and the batches that wait; with 0 the feeding
    process chooses the number.
    """
    if prefetch_factor is None:
        return 0
    return min(2 + count("prefetch_factor", prefetch_factor, 1, MAX_SLOTS) * max(1, workers), MAX_SLOTS)
