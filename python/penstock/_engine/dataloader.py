"""The DataLoader: torch's parameters, and what makes its batches.

A DataLoader over a dataset that preprocess made starts the command feed, or connects to one, and says in a first message which
datasets, order, transforms and batches it wants. The feeding process writes batches to memory
that both processes map, and sends a few numbers for each: no byte of a batch is copied or
pickled on its way. Memory is in slots, one a batch; a slot is given back when nothing in this
process refers to its batch any more. The messages are in docs/feed.md.

A dataset of the user's own code runs in worker processes of Python, and arrays in memory are gathered in this process.

Module signature checks the parameters that torch has too, subject recognizes datasets, and request has what is asked of a
feeding process; feeding and workers have the two engines, and this module their common part.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from .. import samplers
from .._base.errors import Error
from .._base.limits import cores
from .._base.options import Align, OnError, Output, Prepare, Verify, choice, count
from .._read.dataset import SampleDataset, has_type, open_dataset, open_prepared
from .._read.formats import with_records
from ..samplers import MAX_SEED, Sampler
from . import frameworks, launcher, subject
from .attributes import PROTECTED, Attribute
from .feeding import FeedLoader
from .pack import Pack
from .request import Request, ranks, seed_of
from .signature import Signature, context, drawn

if TYPE_CHECKING:
    import jax
    import numpy as np
    import torch
    from torch.utils.data import DataLoader as TorchDataLoader
    from typing_extensions import Self, Unpack
    from typing_extensions import TypeVar as TypeVarWithDefault

    from .._typing import Keywords, Options, Prepared
    from .batch import BatchDict, BatchTuple

    #: What a loop yields.
    B = TypeVarWithDefault("B", covariant=True, default=Any)

    class _Base(TorchDataLoader[Any], Generic[B]):
        """What a DataLoader of tensors becomes when it is made: see frameworks.torch_class."""

else:
    B = TypeVar("B", covariant=True)

    class _Base:
        __class_getitem__ = classmethod(GenericAlias)


_T = TypeVar("_T")


class DataLoader(_Base[B]):
    """An iterable over the batches of a dataset, as torch.utils.data.DataLoader is.

    ::

        loader = penstock.DataLoader("photos", 256, shuffle=True, transforms=train)
        for epoch in range(10):
            for images, labels in loader:
                train_step(images, labels)

    Parameters of torch's DataLoader and StatefulDataLoader have their order, meaning and errors; docs/from-torch.md has the
    differences. "Prepared data" below are datasets and raw samples; "own" are a user's datasets of Python code.

    Args:
        dataset: A path or URL of a dataset that preprocess made, of raw samples (a folder of images, an archive, a table, HDF5), a
            penstock.Dataset or View, torch's Subset or ConcatDataset of these, or a list of several; arrays or tensors
            in memory, a tuple or dict of them, a data frame; or own: any object with ``__getitem__``, ``__getitems__`` or ``__iter__``.

        Torch's, as in ``DataLoader(ds, 64, shuffle=True, num_workers=4, drop_last=True)``:

        batch_size: Records of a batch of this process; None yields single samples.
        shuffle: Visit every record once an epoch, in another order each time.
        sampler: One of penstock.samplers or torch's, or any iterable of record numbers. Draws follow ``seed``.
        batch_sampler: Lists of record numbers, one a batch.
        num_workers: Of prepared data, threads: None finds the fastest number. Of own, processes: None is 0, or one a core with ``seed``.
        collate_fn: Makes a batch of a list of samples, in ``num_workers`` processes.
        pin_memory: Page-lock the shared memory, for copies with ``non_blocking=True``; ``device`` does it itself.
        drop_last: Leave out a last batch that is not full; otherwise see LoaderBatch.mask.
        timeout: Seconds to wait for a batch; 0 is no limit.
        worker_init_fn: Called with its number in each worker process of own datasets.
        multiprocessing_context: "fork", "spawn", "forkserver" or a context.
        generator: A torch.Generator from which the order is drawn; of prepared data, ``seed``, once.
        prefetch_factor: Batches for each worker that wait, ready; of prepared data, in all.
        persistent_workers: Keep worker processes from one epoch to the next.
        pin_memory_device: Ignored, as in torch.
        in_order: False yields batches as they are ready.
        snapshot_every_n_steps: How often workers of own datasets send their state.
        concurrency: Records that each process of own datasets makes at a time, by threads, or by tasks if ``__getitem__`` is async:
            for code that waits.
        memory: The most bytes that batches take, the loop's among them, such as "4GiB": fewer are made ahead.

        What is done to records, as in ``DataLoader("photos", 64, transforms=[Resize((224, 224)), ToTensor()])``:

        transforms: Steps of penstock.transforms, a torchvision Compose, functions: for the image fields, or a dict of lists by field.
            Masks, boxes and keypoints move with their image.
        contents: What fields are that do not say so: {"boxes": "boxes", "seg": "mask", "x": "hwc"}.
        independent: Fields that do not lie on what the other images show, such as a second camera.
        batch_transforms: MixUp, CutMix, LabelSmoothing, RandomChoice, PadToLargest.
        pack: A Pack: several records of variable length in each row.
        device: "cuda", "cuda:1", "mps", "xpu", "hpu" or a torch.device that batches are on: copied while the device works.
        output: "torch", "numpy" or "jax". Fields of variable length are Jagged or Ragged: ``batch["boxes"][0]`` are the
            rows of record 0. Text is a list of str.
        batch_type: tuple or dict; see LoaderBatch.

        Which records, as in ``DataLoader("demos.hdf5", 64, records="data/*[:]", split="mask/train")``:

        fields, split: Names to load; None is all.
        splits: Shares of raw samples, by their names: {"train": 0.8, "val": 0.2}.
        records: Where the records of grouped arrays are: "data/*" groups, "data/*[:]" their rows. None finds out, or its error asks.
        align: "start" or "end" of arrays of several lengths; "intersection" or "union" of the genes of several files of cells.
        filters: Records to keep: an expression, as of Dataset.filter, or a list of (field, op, value).
        verify: Compare records with checksums: "off", "first", "always", or a part from 0 to 1.
        on_error: "fail", "backfill" (another record in its place) or "blank" (zeros) for records that cannot be read; ``mask`` is
            False for them.

        Ranks and seeds, as in ``DataLoader(ds, 64, shuffle=True, rank="auto", seed=1)``:

        rank, world_size: The slice of the global batch of this process; "auto" asks torch.distributed or the launcher.
        seed: Of the order and all random choices. None is 0 for prepared data; otherwise torch's generators decide.

        Caches and processes:

        prepare: Raw samples become a dataset in the cache while they are read: "auto", "encoded" (files), "pixels", or "off".
        cache_dir, cache_size: Its folder, and the most bytes ("500GiB"); of URLs, too.
        socket: Where ``penstock feed DATASET --socket PATH`` listens, for processes that share it.
        command: The program feed.

    Each loop is an epoch; ``set_epoch`` says which. ``state_dict`` is the place after the batch that was yielded last, and a
    DataLoader that loads it continues with the next batch, with other workers, or other ranks of the same global batch, too. A
    pickled one starts its own process at the same place. It is for one thread. Errors are penstock.Error, ValueError and TypeError.
    To type checkers a batch has tensors, or arrays with output="numpy"; ``batch: LoaderBatch[Any]`` leaves it open.
    """

    _last = "equal"  # how the last global batch is divided: see loader.Last
    _drawn: Any = None  # by Accelerate
    _named: Sequence[np.ndarray] = ()  # record numbers and weights that a prepared dataset's engine was made with: see _renew
    _warned = False
    __initialized = False  # _DataLoader__initialized, by which programs make torch's DataLoader take another batch_sampler

    @overload
    def __init__(
        self: DataLoader[BatchTuple[torch.Tensor]],
        dataset: Prepared = ...,
        batch_size: int = ...,
        shuffle: bool | None = ...,
        sampler: Any = ...,
        *,
        output: Literal["torch"] = ...,
        batch_type: type[tuple[Any, ...]] = ...,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[BatchDict[torch.Tensor]],
        dataset: Prepared = ...,
        batch_size: int = ...,
        shuffle: bool | None = ...,
        sampler: Any = ...,
        *,
        output: Literal["torch"] = ...,
        batch_type: type[dict[Any, Any]],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[BatchTuple[np.ndarray]],
        dataset: Prepared = ...,
        batch_size: int = ...,
        shuffle: bool | None = ...,
        sampler: Any = ...,
        *,
        output: Literal["numpy"],
        batch_type: type[tuple[Any, ...]] = ...,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[BatchDict[np.ndarray]],
        dataset: Prepared = ...,
        batch_size: int = ...,
        shuffle: bool | None = ...,
        sampler: Any = ...,
        *,
        output: Literal["numpy"],
        batch_type: type[dict[Any, Any]],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[BatchTuple[jax.Array]],
        dataset: Prepared = ...,
        batch_size: int = ...,
        shuffle: bool | None = ...,
        sampler: Any = ...,
        *,
        output: Literal["jax"],
        batch_type: type[tuple[Any, ...]] = ...,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[BatchDict[jax.Array]],
        dataset: Prepared = ...,
        batch_size: int = ...,
        shuffle: bool | None = ...,
        sampler: Any = ...,
        *,
        output: Literal["jax"],
        batch_type: type[dict[Any, Any]],
        **options: Unpack[Options],
    ) -> None: ...
    @overload  # what a function makes of records
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = ...,
        shuffle: bool | None = ...,
        sampler: Any = ...,
        *,
        collate_fn: Callable[[Any], B],
        batch_sampler: Any = ...,
        output: Output = ...,
        **options: Unpack[Options],
    ) -> None: ...
    @overload  # what torch collates of samples
    def __init__(
        self: DataLoader[Any],
        dataset: object = ...,
        batch_size: int | None = ...,
        shuffle: bool | None = ...,
        sampler: Any = ...,
        batch_sampler: Any = ...,
        num_workers: int | None = ...,
        collate_fn: Callable[[Any], Any] | None = ...,
        pin_memory: bool = ...,
        drop_last: bool = ...,
        timeout: float = ...,
        worker_init_fn: Callable[[int], None] | None = ...,
        multiprocessing_context: Any = ...,
        generator: Any = ...,
        *,
        output: Output = ...,
        batch_type: type[tuple[Any, ...]] | type[dict[Any, Any]] = ...,
        **options: Unpack[Keywords],
    ) -> None: ...
    def __init__(
        self,
        dataset: Any = None,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int | None = None,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        snapshot_every_n_steps: int = 1,
        concurrency: int = 1,
        memory: str | int | None = None,
        transforms: Any = None,
        independent: Iterable[str] = (),
        contents: Mapping[str, str] | None = None,
        batch_transforms: Any = None,
        rank: int | Literal["auto"] | None = None,
        world_size: int | None = None,
        seed: int | None = None,
        device: Any = None,
        output: Output = "torch",
        batch_type: type[tuple[Any, ...]] | type[dict[Any, Any]] = tuple,
        fields: Iterable[str] | None = None,
        split: str | None = None,
        splits: Mapping[str, float] | None = None,
        records: str | None = None,
        align: Align | None = None,
        prepare: Prepare = "auto",
        filters: str | Iterable[tuple[str, str, Any]] | None = None,
        pack: Pack | None = None,
        verify: Verify = "off",
        on_error: OnError = "fail",
        cache_dir: str | os.PathLike[str] | None = None,
        cache_size: str | int | None = None,
        socket: str | os.PathLike[str] | None = None,
        command: str | os.PathLike[str] | None = None,
    ) -> None:
        if isinstance(dataset, subject.Unopened):  # of another DataLoader, as Lightning makes one with its sampler
            dataset = dataset.given
        dataset = with_records(dataset, records, align)
        arguments = {name: value for name, value in locals().items() if name not in ("self", "records", "align")}
        self._arguments = arguments
        if pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated and ignored, as in torch; device= puts batches on a device", DeprecationWarning, stacklevel=2
            )
        self._prefetcher: Any = None
        self._progress: frameworks.Preparation | None = None  # by Accelerate
        self._kind = subject.engine(arguments)
        self._engine: Any = self._made()
        if output == "jax" and device is not None:
            self._check_sharding()
        self.__initialized = True

    dataset, sampler, batch_sampler, fields, collate_fn, num_workers = (
        Attribute(),
        Attribute(),
        Attribute(),
        Attribute(),
        Attribute(),
        Attribute(),
    )
    rank, world_size, seed, drop_last = Attribute(), Attribute(), Attribute(), Attribute()
    generator, prefetch_factor, persistent_workers, timeout, pin_memory = (
        Attribute(),
        Attribute(),
        Attribute(),
        Attribute(),
        Attribute(),
    )

    def _made(self) -> Any:
        """Return the engine."""
        return {"feed": self._prepared, "lists": self._listed, "arrays": self._own, "code": self._own}[self._kind]()

    def _listed(self) -> Any:
        """Return the engine for datasets that a feeding process reads, in batches that a batch_sampler lists."""
        from .listed import ListedLoader

        given = self._arguments
        signature = Signature.of({**given, "dataset": None}, iterable=False)
        request = Request.of(given, signature, self._last)
        self._take_class()
        engine = self._of_functions(request, lambda request: ListedLoader(request, signature, given["output"] == "torch"))
        self._signature = signature = engine.signature
        self._paths, self._split, self._given = request.subject.paths, request.subject.split, None
        if request.subject.records is not None and not isinstance(given["dataset"], (list, tuple)):
            self._given = given["dataset"]
        dataset = self._opened(given["dataset"], engine)
        self._in_effect = {"rank": 0, "world_size": 1, "fields": engine.fields, "dataset": dataset}
        self._shown(signature, engine)
        self._place = self._resolved(given["device"])
        return engine

    def _prepared(self) -> FeedLoader:
        """Return the engine for datasets that a feeding process reads."""
        signature = Signature.of({**self._arguments, "dataset": None}, iterable=False)  # the feeding process knows how many records it has
        request = Request.of(self._arguments, signature, self._last)
        self._take_class()
        options = request.options
        self._signature = signature
        #: Values in effect where an argument was left out or resolved; attributes show these.
        self._in_effect = {name: options[name] for name in ("rank", "world_size", "seed", "drop_last")}
        if signature.num_workers is None:
            self._in_effect["num_workers"] = _cores()
        if signature.generator is not None:
            self._arguments |= {"seed": options["seed"], "generator": None}
        self._public(
            {**self._arguments, "sampler": request.sampler, "batch_size": options["batch_size"], "prefetch_factor": signature.prefetch_factor}
        )
        self.__multiprocessing_context = signature.multiprocessing_context
        self._paths, self._split, several = request.subject.paths, request.subject.split, isinstance(self._arguments["dataset"], (list, tuple))
        self._given = None if request.subject.records is None or several else self._arguments["dataset"]  # an object that says what it has
        # A pickled copy gets rank, world_size and seed as they are resolved here, so that its order is the same.
        self._arguments |= {name: options[name] for name in ("rank", "world_size", "seed")}
        engine = self._of_functions(request, self._fed)
        self._named = subject.named(self._arguments)
        self._in_effect["fields"] = engine.session.fields
        if self._of_torch and signature.collate_fn is None:
            self._in_effect["collate_fn"] = frameworks.not_collated
        return engine

    @staticmethod
    def _of_functions(request: Request, make: Callable[[Request], _T]) -> _T:
        """Return the engine that make returns, of a request whose functions may have to be called by record or before the order is known."""
        if request.recording is None:
            return make(request)
        from .results import engine

        made: _T = engine(request, make)
        return made

    def _fed(self, request: Request) -> FeedLoader:
        """Return the engine of a request, which may have functions of whole records."""
        if request.recording is None or not request.recording.used:
            return FeedLoader(request)
        from .recording import RecordLoader

        return RecordLoader(request)

    def _own(self) -> Any:
        """Return the engine for arrays in memory, or for the user's own code."""
        given, arrays = self._arguments, self._kind == "arrays"
        choice("output", given["output"], Output)
        seed = None if given["seed"] is None else count("seed", given["seed"], 0, MAX_SEED)
        if isinstance(given["sampler"], Sampler):
            samplers.check_for_own(given["sampler"], seed)
        dataset = self._own_dataset()
        rank, world_size = (0, 1) if given["rank"] is None and given["world_size"] is None else ranks(given["rank"], given["world_size"], {})
        signature = Signature.of({**given, "dataset": dataset}, 0 if seed is None or arrays else _cores(), False if arrays else None)
        if seed is None and signature.sampler is None and signature.batch_sampler is None and subject.is_prepared(given["dataset"]):
            seed = seed_of(None, {}) if signature.generator is None else drawn(None, signature.generator)  # the order that transforms would have
        self._take_class()
        if given["collate_fn"] is None and signature.batched and type(dataset).__name__ == "TorchDataset" and self._of_torch:
            from ..torch import TorchDataset, collate  # of whole batches, and of records of variable length

            signature = replace(signature, collate_fn=collate) if type(dataset) is TorchDataset else signature
        if world_size > 1 and seed is None:
            signature = replace(signature, sampler=self._distributed(signature, rank, world_size), shuffle=False)
        output = "torch" if given["output"] == "torch" else "numpy"
        from .._code.gather import Gather
        from .._code.loader import UserLoader

        if arrays:
            if given["on_error"] != "fail":
                raise ValueError(f"on_error is {given['on_error']!r}; it is for records that may fail, and arrays in memory have none: leave it out")
            threads = _cores() if given["num_workers"] is None else signature.num_workers or 1
            signature = replace(signature, dataset=Gather(dataset, output, threads))
            if seed is None and output == "numpy" and signature.sampler is None and signature.batch_sampler is None:
                seed = 0 if signature.generator is None else drawn(None, signature.generator)
        else:
            _warn_of_many(signature.num_workers)
        engine = UserLoader(signature, seed=seed, rank=rank, world_size=world_size, last=self._last, on_error=given["on_error"], output=output)
        rank, world_size = engine.part
        self._signature = signature
        self._in_effect = {"rank": rank, "world_size": world_size}
        if isinstance(dataset, SampleDataset):
            self._in_effect["dataset"] = dataset.of
        self._shown(signature, engine)
        self._place = self._resolved(given["device"])
        return engine

    def _shown(self, signature: Signature, engine: Any) -> None:
        """Set the attributes that torch's DataLoader has, for an engine that runs Python."""
        given = self._arguments
        checked = {f.name: getattr(signature, f.name) for f in fields_of(Signature) if f.name in given}
        order = {"sampler": engine.sampler, "batch_sampler": engine.batch_sampler}
        self._public({**given, **checked, "dataset": given["dataset"], **order, "collate_fn": self._collation(signature)})
        self.__multiprocessing_context = signature.multiprocessing_context
        self._dataset_kind, self._IterableDataset_len_called = int(signature.iterable), None

    @property
    def _ordered(self) -> bool:
        """Whether the order is penstock's, which is divided by rank and world size, and not torch's."""
        return isinstance(self._engine, FeedLoader) or (self._arguments["seed"] is not None and self._kind in ("arrays", "code"))

    def _divide(self, rank: int, world_size: int, batch_size: int, last: str) -> None:
        """Take a part of each global batch from the next loop on, from where this DataLoader is."""
        state = self.state_dict()
        self._engine.close()
        self._arguments |= {"rank": rank, "world_size": world_size, "batch_size": batch_size}
        object.__setattr__(self, "_last", last)
        self._engine = self._made()
        if state["step"] or state.get("done"):
            self.load_state_dict(state)
        elif state["epoch"] or state.get("finished"):
            self.set_epoch(state["epoch"] + bool(state.get("finished")))

    def _rest(self, step: int) -> Iterator[Any]:
        """Return an iterator over the rest of the next epoch, from a batch on."""
        if not step:
            return iter(self)
        if not self._ordered:
            return self._after(step)
        state = {name: value for name, value in self.state_dict().items() if name not in ("done", "workers")}
        state |= {"epoch": self._engine.begins()["epoch"], "step": step}
        self.load_state_dict({**state, **({"finished": False} if "finished" in state else {})})
        return iter(self)

    def _after(self, step: int) -> Iterator[Any]:
        """Yield the batches of the next epoch after its first batches. Of the first batches only the records are asked of the
        batch sampler.
        """
        from accelerate.data_loader import SkipBatchSampler

        mine, batches = vars(self), self.batch_sampler
        mine["batch_sampler"] = SkipBatchSampler(batches, step)
        try:
            yield from self
        finally:
            mine["batch_sampler"] = batches

    def _own_dataset(self) -> Any:
        """Return the dataset as an object that has records: a path is opened."""
        given = self._arguments
        dataset, fields, split = given["dataset"], given["fields"], given["split"]
        if isinstance(dataset, (list, tuple)) and dataset and all(isinstance(d, (str, bytes, os.PathLike)) for d in dataset):
            raise ValueError(
                f"a list of {len(dataset)} paths with a function of Python; give torch.utils.data.ConcatDataset of penstock.open of each"
            )
        if not isinstance(dataset, (str, bytes, os.PathLike)):
            for name in ("fields", "split"):
                if given[name] is not None:
                    raise ValueError(f"{name} is for the path of a dataset; here, give penstock.open(path, {name}=...) as the dataset")
            if not subject.is_prepared(dataset) or isinstance(dataset, (list, tuple)):
                return dataset
            default = given["collate_fn"] is None
            # torch makes no tensors of arrays of bfloat16, nor of numbers of uint64, and none that may be written to of arrays of files.
            wanted = has_type(dataset, ("bfloat16", "uint64") if default else ("bfloat16",)) or (default and given["batch_size"] is None)
            tensors = wanted and given["output"] == "torch"
            return SampleDataset(dataset, tensors) if tensors or (not default and hasattr(dataset, "__getitems__")) else dataset
        opened: Any
        if given["output"] == "torch":
            from ..torch import TorchDataset

            opened = TorchDataset(os.fsdecode(dataset), fields, split)
        else:
            opened = open_dataset(os.fsdecode(dataset), fields, split)
        return opened if given["collate_fn"] is None else SampleDataset(opened, tensors=False)

    def _distributed(self, signature: Signature, rank: int, world_size: int) -> Any:
        """Return the sampler of a rank where there is no seed: torch's."""
        if signature.iterable or signature.sampler is not None or signature.batch_sampler is not None or self._arguments["output"] != "torch":
            raise ValueError(
                f"rank is {rank} of {world_size}, and the order is not one that can be divided: give seed=, or a DistributedSampler; an iterable "
                "dataset divides itself, by torch.distributed.get_rank()"
            )
        from torch.utils.data import DistributedSampler

        return DistributedSampler(signature.dataset, world_size, rank, shuffle=signature.shuffle, drop_last=signature.drop_last)

    def _take_class(self) -> None:
        """Become an instance of torch's DataLoader, too, where tensors are wanted."""
        self._of_torch = self._arguments["output"] == "torch"
        if not self._of_torch:
            return
        try:
            self.__class__ = frameworks.torch_class(type(self))
        except ImportError as e:
            raise Error(f'output="torch" needs PyTorch, which cannot be imported ({e}); install it, or take output="numpy"') from e

    def _public(self, values: Mapping[str, Any]) -> None:
        """Set the attributes that a DataLoader has for its parameters; torch's DataLoader has no attributes for these two."""
        vars(self).update({name: v for name, v in values.items() if name not in ("shuffle", "multiprocessing_context")})

    def _collation(self, signature: Signature) -> Any:
        """Return the collate function that is given, or torch's where it is in use."""
        if signature.collate_fn is not None or not self._of_torch:
            return signature.collate_fn
        from .._code.collate import default

        return default(signature.batched, torch=True)

    def _check_sharding(self) -> None:
        """Refuse a device of JAX that does not take every batch."""
        from ..jax import check

        size, last = self.batch_size, 0
        if isinstance(self._engine, FeedLoader) and not self.drop_last and self._arguments["sampler"] is None and self._arguments["pack"] is None:
            last = -(-(self._engine.records % (size * self.world_size)) // self.world_size)
        elif self._arguments["sampler"] is None and self._arguments["batch_sampler"] is None and size and not self.drop_last:
            last = len(self.dataset) % size if hasattr(self.dataset, "__len__") else 0
        try:
            check(self._arguments["device"], size or 0, last)
        except BaseException:
            self.close()
            raise

    def _resolved(self, device: Any) -> Any:
        """Return what puts batches of own datasets on a device; None if nothing does."""
        if device is None:
            return None
        if self._arguments["output"] == "numpy":
            raise ValueError('device is for output="torch" and "jax": NumPy has no arrays on devices')
        if self._arguments["output"] == "jax":
            return None
        from .device import resolve

        found = resolve(device)
        return None if found.type == "cpu" else found

    def _show(self, name: str, given: Any) -> Any:
        """Return what an attribute shows whose argument is given."""
        if self._of_torch and name in _OF_TORCH and (self._ordered or self._progress) and frameworks.accelerate_asks():
            if self._drawn is None:
                object.__setattr__(self, "_drawn", frameworks.SkippingParts(self))
            return self._drawn.part(name)
        if not isinstance(self._engine, FeedLoader):
            return self._in_effect.get(name, given)
        if name == "dataset":
            return self._opened(given, self._engine)
        if name == "sampler" and self._of_torch:
            if "sampler" not in self._in_effect:
                self._in_effect["sampler"] = frameworks.sampler_of(self, given, self.rank, self.world_size)
            return self._in_effect["sampler"]
        return self._in_effect.get(name, given)

    def _opened(self, given: Any, engine: Any) -> Any:
        """Return the dataset that was given or, of a path, opened in this process too: for its length, its classes or single records."""
        if self._given is not None:
            return self._given
        if len(self._paths) != 1 or "://" in self._paths[0]:
            return subject.Unopened(given, engine.records)
        try:
            if self._arguments["prepare"] == "off":
                self._given = open_prepared(self._paths[0], split=self._split)
            else:
                self._given = open_dataset(self._paths[0], split=self._split, cache_dir=self._arguments["cache_dir"])
        except Error:
            return subject.Unopened(given, engine.records)
        return self._given

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and (name in PROTECTED or (name in self._arguments and isinstance(self._engine, FeedLoader))):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        if self.__initialized and name == "collate_fn" and value is not self.collate_fn and getattr(self._engine, "gathers", False):
            raise ValueError(
                "collate_fn of a DataLoader over arrays cannot be set, as whole batches are gathered; give it when the DataLoader is made"
            )
        object.__setattr__(self, name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context in which worker processes are started; None for the default."""
        given = self.__multiprocessing_context
        return given if given is None else self._show("multiprocessing_context", given)

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        self.__multiprocessing_context = context(value, self.num_workers)

    @property
    def shuffle(self) -> bool:
        """Whether records come in another order in each epoch."""
        return self._signature.shuffle

    @property
    def _iterator(self) -> Any:
        """The iterator of persistent workers, as torch's DataLoader has it; frameworks set it to None to end them."""
        return getattr(self._engine, "_iterator", None)

    @_iterator.setter
    def _iterator(self, value: Any) -> None:
        if hasattr(self._engine, "_iterator"):
            self._engine._iterator = value

    @property
    def _is_accelerate_prepared(self) -> bool:
        """Whether Accelerate's prepare takes this DataLoader as it is; it asks before it would make a DataLoader of torch of it."""
        if self._progress is None:
            self._progress = frameworks.prepared(self)
        return self._progress is not None

    @_is_accelerate_prepared.setter
    def _is_accelerate_prepared(self, value: bool) -> None:
        """Take what Accelerate notes, which changes nothing."""

    @property
    def use_stateful_dataloader(self) -> bool:
        """Whether Accelerate's save_state and load_state keep the state of this DataLoader: where it was asked for stateful ones."""
        return self._progress is not None and bool(self._progress.accelerator.use_stateful_dataloader)

    @property
    def step(self) -> int:
        """The number of the batch with which the next loop begins."""
        return int(self._engine.epochs.next["step"])

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next batch is of."""
        return int(self._engine.epoch)

    @property
    def records(self) -> int:
        """Records of the dataset, or rows if they are packed."""
        return int(self._engine.records) if hasattr(self._engine, "records") else len(self._engine.signature.dataset)

    def classes(self, field: str = "labels") -> tuple[str, ...]:
        """Return the names of the values 0, 1, ... of a label field; none if it has no names.

        Raw samples are not prepared for it, as they are for ``dataset``, and a dataset at a URL is not fetched. Of a Dataset of your own
        these are its ``classes``, as torchvision's datasets have them.
        """
        if isinstance(self._engine, FeedLoader):
            return self._engine.classes(field)
        named = getattr(self.dataset, "classes", None) or ()
        return tuple(named(field) if callable(named) else named)

    @property
    def pid(self) -> int | None:
        """The feeding process, if this process started it."""
        return getattr(self._engine, "pid", None)

    def __repr__(self) -> str:
        return repr(self._engine) if isinstance(self._engine, FeedLoader) else f"<penstock DataLoader of a {type(self.dataset).__name__}>"

    def __len__(self) -> int:
        self._assign()
        if isinstance(self._engine, FeedLoader) and not subject.still_named(self._arguments, self._named, lengths=True):
            self._renew(self._engine)
        return len(self._engine)

    if not TYPE_CHECKING:  # where it has none

        def __getitem__(self, key: object) -> Any:
            raise TypeError("a DataLoader makes whole batches in its own order, and has no items: for batch in loader: ...")

    def __iter__(self) -> Iterator[B]:  # type: ignore[override] # torch names the class of its iterator
        self._assign()
        if isinstance(self._engine, FeedLoader) and not subject.still_named(self._arguments, self._named):
            self._renew(self._engine)
        self._warn_of_others()
        if self._progress is None:
            return self._batches()
        self._progress.begin()
        step = self.step
        return self._progress.follow(self._batches(), step, self)

    def _warn_of_others(self) -> None:
        """Warn, once, in a process that is one of several, of a loop over all of the data that nobody asked for."""
        mine = vars(self)
        if not self._warned and isinstance(self._engine, FeedLoader) and self.world_size == 1 and mine["rank"] is None and mine["world_size"] is None:
            object.__setattr__(self, "_warned", True)
            launcher.warn_of_others()

    def _batches(self) -> Iterator[Any]:
        """Return an iterator over an epoch."""
        if isinstance(self._engine, FeedLoader) and (self._arguments["output"] != "jax" or not self._engine.collates):
            return iter(self._engine)
        if self._arguments["output"] == "jax":
            from ..jax import placed

            return placed(iter(self._engine), self._arguments["device"])
        if self._place is None:
            return iter(self._engine)
        from .device import Prefetcher

        self._prefetcher = Prefetcher(self._engine, self._place)
        return iter(self._prefetcher)

    def _renew(self, engine: FeedLoader) -> None:
        """Read the records that a Subset or a sampler of torch names by now: torch reads indices and weights at iter()."""
        begins = engine.begins()
        if begins["step"]:
            raise Error(
                f"a state was loaded that begins at batch {begins['step']}, and the indices or weights have changed since; "
                "change them before load_state_dict, or begin the epoch anew: set_epoch"
            )
        before = dict(vars(self))
        try:
            self._engine = self._prepared()
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        self._engine.set_epoch(begins["epoch"])
        engine.close()

    def _assign(self) -> None:
        """Have the engine know what was assigned to attributes, which holds from the next loop on, as in torch."""
        if isinstance(self._engine, FeedLoader):
            return
        mine = vars(self)
        for name in ("sampler", "batch_sampler"):
            if getattr(self._engine, name) is not mine[name]:
                setattr(self._engine, name, mine[name])
        now = {name: mine[name] for name in _ASSIGNABLE}
        if (
            any(getattr(self._signature, name) is not value for name, value in now.items())
            or self.__multiprocessing_context is not self._signature.multiprocessing_context
        ):
            self._signature = self._engine.signature = replace(self._signature, **now, multiprocessing_context=self.__multiprocessing_context)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next loop is. A position in that epoch that was loaded stays as it is.

        If the order is torch's (no ``seed``, and not a prepared dataset), set_epoch of the sampler and the dataset is called, if they have it.
        """
        self._engine.set_epoch(epoch)
        if self._progress is not None:
            self._progress.made.iteration = epoch

    def state_dict(self) -> dict[str, Any]:
        """Return where the run is: after the batch that was yielded last. Of a prepared dataset it is JSON, about 300 bytes."""
        self._assign()
        source = self._engine if self._prefetcher is None else self._prefetcher
        state: dict[str, Any] = source.state_dict()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where state_dict was taken: the next loop yields the rest of that epoch.

        Raise Error, with what differs, if it is of another dataset, order, seed, global batch or
        transforms; this DataLoader then is where it was.
        """
        self._assign()
        self._prefetcher = None
        self._engine.load_state_dict(state_dict)
        if self._progress is not None:
            self._progress.made.iteration = self.epoch

    def set_weights(self, weights: Sequence[float], *, step: int) -> None:
        """Have ``samplers.Mix`` draw by other weights from a step on.

        Steps count batches over epochs: batch b in epoch e is step ``e * len(loader) + b``. The state has the weights, so that a
        resumed run draws the same. All ranks must set the same weights for the same step, and none may have made that batch: with
        ``device=`` some batches are made in advance.

        Args:
            weights: One number for each dataset.
            step: The first step with these weights; weights that were set for later ones are forgotten.

        Example:
            ``loader.set_weights([0.5, 0.5], step=10_000)``
        """
        if not isinstance(self._engine, FeedLoader):
            raise Error("set_weights is for a prepared dataset with samplers.Mix; the order of this one is drawn in Python")
        self._engine.set_weights(samplers.row_of(weights), step)

    def stats(self) -> dict[str, Any]:
        """Return what the loader did since it was made. Times are nanoseconds.

        Of a prepared dataset,
        ``loader`` has the numbers of Go's loader.Stats, such as ``Workers``, ``Cores`` (this process's
        share) and ``LocalSize`` (processes of this host that share its cores, as torchrun, MPI or
        Slurm say), ``diagnose`` says in a sentence what limits
        the loop, ``viewed`` counts batches that are mappings of files, ``copied`` those that were
        copied because the others were still referred to, ``skipped`` those records that on_error passed over, and ``pinned`` says whether memory
        is page-locked, or why not.
        With ``samplers.Mix``, ``mixed`` has of each dataset its ``Records`` (rows, with ``pack=``), how many were ``Drawn`` by all
        ranks since the run began, before a resume too, and the quotient as ``Epochs``.
        Of raw samples, ``prepared`` says what the cache stores of each source, and why.
        """
        stats: dict[str, Any] = self._engine.stats()
        return stats

    def diagnose(self) -> str:
        """Return a sentence that says what limits the loop over this DataLoader, and what to do."""
        sentence: str = self.stats()["diagnose"]
        return sentence

    def metrics(self, **labels: str) -> str:
        """Return the numbers of ``stats`` in the text format of Prometheus, for a handler of /metrics: counters and gauges, times in seconds.

        Args:
            labels: What all numbers get, such as ``job="train", rank="0"``.
        """
        for name, value in labels.items():
            if not re.fullmatch(r"(?!__|field$)[a-zA-Z_][a-zA-Z0-9_]*", name) or not isinstance(value, str):
                raise ValueError(
                    f"label {name!r} is {value!r:.60}; a name is of ASCII letters, digits and _, begins with neither a digit nor __, and is not "
                    "field; a value is a str"
                )
        if not isinstance(self._engine, FeedLoader):
            raise Error("metrics is for a prepared dataset or raw samples; stats() has the numbers of the code of this dataset")
        return self._engine.metrics(labels)

    def explain(self) -> str:
        """Return a table of the steps of ``transforms``: which run in the engine, in Python workers and on the device, and their cost.

        Costs are microseconds a record, measured since the DataLoader was made.
        """
        if not hasattr(self._engine, "session"):
            raise Error("explain is for a prepared dataset with transforms; the code of this dataset runs in its own workers")
        text: str = self._engine.explain()
        return text

    def close(self) -> None:
        """End the processes. Batches that are still referred to stay as they are."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        written = getattr(type(self), "_written", type(self))
        if isinstance(self._engine, FeedLoader):
            state: Any = self._engine.state_dict()
            mine = {
                name: value for name, value in vars(self).items() if name not in _KEPT and name not in self._arguments and not name.startswith("_")
            }
        else:
            state = None if self._arguments["seed"] is None else self.state_dict()
            mine = {name: value for name, value in vars(self).items() if name not in _KEPT}
        return _again, (written, self._arguments, self._last, state, mine)


#: Attributes that a copy makes for itself.
_KEPT = frozenset(
    ("_arguments", "_engine", "_signature", "_prefetcher", "_progress", "_in_effect", "_of_torch", "_paths", "_split", "_given", "_place",
     "_last", "_kind", "_drawn", "_warned")
)  # fmt: skip

#: Parameters of torch's DataLoader that Accelerate gives to the DataLoader of torch that it makes of this DataLoader.
_OF_TORCH = frozenset(
    ("dataset", "batch_sampler", "collate_fn", "generator", "num_workers", "prefetch_factor", "persistent_workers", "timeout", "pin_memory",
     "multiprocessing_context")
)  # fmt: skip

#: Parameters of own datasets that may be assigned, and hold from the next loop on.
_ASSIGNABLE = (
    "num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "generator", "prefetch_factor", "persistent_workers", "in_order",
    "snapshot_every_n_steps", "concurrency", "memory",
)  # fmt: skip


def _again(cls: type[DataLoader], arguments: dict[str, Any], last: str, state: dict[str, Any] | None, mine: dict[str, Any]) -> DataLoader:
    """Make a DataLoader that was pickled or copied."""
    loader = cls.__new__(cls)
    loader._last = last
    DataLoader.__init__(loader, **arguments)
    vars(loader).update(mine)
    if state is not None:
        loader.load_state_dict(state)
    return loader


def _warn_of_many(workers: int | None) -> None:
    """Warn, in torch's words, of more processes than cores."""
    if workers is not None and workers > (most := cores()):
        warnings.warn(
            f"This DataLoader will create {workers} worker processes in total. Our suggested max number of worker in current system is "
            f"{most}, which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might "
            "get DataLoader running slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
            stacklevel=4,
        )


def _cores() -> int:
    """Return the number of cores for this process, if all processes that its launcher started on this host share them evenly."""
    local = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, cores() // int(local)) if local.isdecimal() and int(local) else cores()
