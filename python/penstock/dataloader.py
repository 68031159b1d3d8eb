"""The DataLoader: batches that the Go loader makes, in a process of its own.

A DataLoader starts the command feed, or connects to one, and says in a first message which
datasets, order, transforms and batches it wants. The feeding process writes batches to memory
that both processes map, and sends a few numbers for each: no byte of a batch is copied or
pickled on its way. Memory is in slots, one a batch; a slot is given back when nothing in this
process refers to its batch any more. The messages are in docs/feed.md.

The order of records, random crops and everything else that batches hold are functions of the
options, and of nothing else: not of num_workers, prefetch_factor, or where a run was resumed.

Module request checks parameters, session speaks with the feeding process, and here is what a loop is: which batch
comes next, and which epoch.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .attributes import Fixed, Missing
from .batch import LoaderBatch
from .dataset import Dataset, open_dataset
from .errors import Error
from .field import Field
from .options import count
from .pack import Pack
from .request import Request
from .session import POSITION, Session, position
from .wire import Malformed


class DataLoader:
    """An iterable over the batches of a dataset, as torch.utils.data.DataLoader is.

    ::

        loader = penstock.DataLoader("photos", 256, shuffle=True, transforms=train, num_workers=4)
        for epoch in range(10):
            for batch in loader:
                train_step(batch["images"], batch["labels"])

    Parameters that torch's DataLoader has too mean the same, but for ``num_workers``, where 0 finds the number, and for
    ``shuffle``, whose order is the same in each run until ``seed`` is another. Batches are dicts.

    Args:
        dataset: The path or URL (s3://, gs://, azblob://, hdfs://, https://, hf://) of a dataset that
            preprocess made, or a penstock.Dataset; or several with the same fields and classes,
            whose records follow each other: see samplers.Mix. Of torch's, it may be a Subset, what
            random_split returns, or a ConcatDataset of these, and a TorchDataset without transform:
            its records alone are loaded, in its order or, with ``shuffle``, in another one each time.
            The feeding process reads the files: a Dataset with mode="c" is refused, as what is
            written to its arrays is not there.
        batch_size: Records of a batch of this process.
        shuffle: Visit every record once an epoch, in another order each time.
        sampler: One of penstock.samplers, of torch.utils.data, or a sequence of record numbers. Those
            of torch say which records are visited, and how they are drawn; the draws are those of
            ``seed``. The rank, world size and seed of a DistributedSampler are taken where they are not
            given, and so is the epoch of its set_epoch.
        num_workers: Threads of the feeding process that make batches. 0 finds the number with which the
            loop is fastest, and gives cores back that training needs.
        prefetch_factor: Batches for each worker that wait here, ready; None means 2 in all.
        pin_memory: Page-lock the shared memory, so that ``.to("cuda", non_blocking=True)`` does not
            block. Copies that were queued on the current stream of any device before the next batch was
            asked for are awaited before memory is used again, also where a batch was dropped at once.
            ``device`` does it automatically.
        drop_last: Leave out a last batch that is not full. Otherwise, with several ranks, it repeats
            records from the start of the epoch where it cannot be divided evenly: see LoaderBatch.mask.
        timeout: The longest wait for a batch, in seconds, that the loader takes before it reports what
            it waits for; 0 means no limit. A feeding process that is silent for 10 seconds more is
            given up.
        in_order: False yields batches as they are ready.
        transforms: A penstock.transforms.Compose, a torchvision Compose, or JSON, for all image fields;
            or a dict of those by field. Image files that a dataset keeps are decoded by it. Boxes, points
            and masks do not follow an image: a field that may be one of these is an error next to an
            image that is resized, cropped or flipped. Masks with a pipeline of their own, of the same
            geometry before all else that is random, are moved alike.
        independent: Names of fields that do not lie on what other image fields show: numbers that are
            not boxes or points, the picture of another camera.
        batch_transforms: MixUp, CutMix, LabelSmoothing or RandomChoice of penstock.transforms, or a
            list of them.
        rank, world_size: Which slice of the global batch, ``batch_size * world_size`` records, this
            process gets: what a DistributedSampler is for. ``rank="auto"`` takes both from
            torch.distributed, if it is initialized, or from the environment of the launcher (torchrun,
            Accelerate, Slurm, MPI, Kubernetes); without either, it is rank 0 of 1. None is rank 0 of 1,
            all of the data, with a warning where a launcher started several processes.
        seed: Of the order and of all random choices: 64 bits. None means 0.
        device: "cuda", "cuda:1" or a torch.device: batches are on that device, as tensors for the
            current stream. Two batches are copied there, by a stream of their own, while the device
            works on an earlier one. Transforms that make floats of images at the end of ``transforms``
            (ToTensor, ToDtype, Normalize) are done there, so that bytes are copied, with the same
            results to the last bit. With output="jax" it is a jax.Device, a Sharding or "cuda". Without
            a CUDA device, batches are those of the CPU, and the logger "penstock" says so once.
        output: "torch", "numpy" or "jax". Fields of variable length are penstock.torch.Jagged,
            penstock.Ragged or penstock.jax.Jagged: ``batch["boxes"][0]`` are the rows of record 0,
            ``len`` is the number of records, and ``values`` and ``offsets`` are all of them. Texts are
            lists of str.
        fields, split: The fields and the split to load; None means all.
        filters: Records to keep: a list of (field, op, value) that must all hold, with one of ==, !=,
            <, <=, >, >=, "in" and "not in", on fields of single numbers; classes may be named. Integers
            compare exactly. On a field of floats the value is rounded to the field's type, as NumPy does.
            NaN equals nothing, but "in" finds it, as isin of pandas does.
        pack: A Pack: several records of variable length in each row.
        verify: Compare records with their checksums: "off", "first" (when a block is read for the first
            time), "always", or the part of the blocks, from 0 to 1.
        on_error: Treatment of a record that cannot be read or decoded: "fail" raises Error, "backfill"
            puts another one in its place, "blank" zeros that no transform changes (an error with MixUp and
            CutMix, which would mix them into others). Those that were passed over are logged (logger
            "penstock") and counted in stats(), and ``mask`` is False for them.
        cache_dir, cache_size: Where records of a URL are kept that were fetched, and how many bytes of
            them ("500GiB").
        socket: The path where a ``penstock feed DATASET --socket PATH`` listens, in place of a dataset:
            processes of one host share it.
        command: The program feed; by default $PENSTOCK_FEED, or feed or penstock in PATH.

    Each loop over it is an epoch; ``set_epoch`` says which, and without it they count up. A loop
    begins when its first batch is asked for. It ends an older one, and is the next epoch if that
    one was left early. Ctrl-C leaves the DataLoader as it is after the last batch. ``state_dict``
    is where the run is, after the batch that was yielded last, in a loop and after it; a
    DataLoader with the same options that has loaded it yields the batches that come next. It may
    have another num_workers and prefetch_factor, and other ranks if ``batch_size * world_size`` is
    the same.

    One that is pickled starts a feeding process of its own, at the same place. A DataLoader is
    for one thread. Errors are penstock.Error, ValueError and TypeError. It needs Linux.
    """

    def __init__(
        self,
        dataset: str | os.PathLike[str] | Dataset | Sequence[Any] | None = None,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        *,
        transforms: Any = None,
        independent: Iterable[str] = (),
        batch_transforms: Any = None,
        drop_last: bool = False,
        num_workers: int = 0,
        prefetch_factor: int | None = None,
        pin_memory: bool = False,
        timeout: float = 0,
        in_order: bool = True,
        rank: int | str | None = None,
        world_size: int | None = None,
        seed: int | None = None,
        device: Any = None,
        output: str = "torch",
        fields: Iterable[str] | None = None,
        split: str | None = None,
        filters: Iterable[tuple[str, str, Any]] | None = None,
        pack: Pack | None = None,
        verify: str | float = "off",
        on_error: str = "fail",
        cache_dir: str | os.PathLike[str] | None = None,
        cache_size: str | int | None = None,
        socket: str | os.PathLike[str] | None = None,
        command: str | os.PathLike[str] | None = None,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        request = Request.of(self._arguments)
        options, of = request.options, request.subject
        # Python's pickle, and frameworks that look at the DataLoader, get the values that hold.
        self._arguments |= {name: options[name] for name in ("rank", "world_size", "seed")}
        self._fixed = {
            **self._arguments,
            "sampler": request.order if sampler is None else sampler,
            "drop_last": options["drop_last"],
            "batch_sampler": None,
        }
        self._distributed: Any
        self._distributed, self._said = (sampler, 0) if "rank" in request.implied else (None, 0)
        self._paths, self._split = of.paths, of.split
        self._given = None if of.records is None or isinstance(dataset, (list, tuple)) else dataset  # an object that says what it has
        self._pinning = request.pinning
        self._loop: object = None  # the one that is under way
        self._wanted: int | None = None  # the epoch of the next loop, said during one
        self._session = Session(request)
        self._stage, self._ahead = self._session.stage, request.ahead
        #: The fields by name, as batches have them.
        self.fields: dict[str, Field] = self._session.fields
        #: Records of the dataset, or rows if they are packed.
        self.records: int = self._session.records
        self._at = position(0, 0)  # of the batch that comes next
        self._resumed = True  # whether the next loop begins at _at, and not with another epoch

    batch_size, shuffle, sampler, transforms, batch_transforms, drop_last = Fixed(), Fixed(), Fixed(), Fixed(), Fixed(), Fixed()
    num_workers, prefetch_factor, pin_memory, timeout, in_order = Fixed(), Fixed(), Fixed(), Fixed(), Fixed()
    rank, world_size, seed, device, output, split, filters, pack = Fixed(), Fixed(), Fixed(), Fixed(), Fixed(), Fixed(), Fixed(), Fixed()
    verify, on_error, cache_dir, cache_size, socket, command = Fixed(), Fixed(), Fixed(), Fixed(), Fixed(), Fixed()
    batch_sampler = Fixed()  # None, as frameworks ask for it
    collate_fn, worker_init_fn, generator, multiprocessing_context, persistent_workers = Missing(), Missing(), Missing(), Missing(), Missing()

    @property
    def dataset(self) -> Any:
        """The dataset that was given or, of a path, opened in this process too: for its length, its classes or single records."""
        if self._given is not None:
            return self._given
        if len(self._paths) != 1:
            raise AttributeError(f"a DataLoader of {len(self._paths)} datasets has no one dataset")
        try:
            return open_dataset(self._paths[0], split=self._split)
        except Error as e:  # of a URL, for example, which frameworks ask for by hasattr
            raise AttributeError(f"the dataset cannot be opened in this process: {e}") from e

    @dataset.setter
    def dataset(self, value: object) -> None:
        raise AttributeError("dataset of a DataLoader cannot be set; make a new DataLoader")

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next batch is of."""
        epoch: int = self._at["epoch"]
        return epoch

    @property
    def pid(self) -> int | None:
        """The feeding process, if this one started it."""
        child = self._session.child
        return None if child is None else child.pid

    def __repr__(self) -> str:
        return f"<penstock DataLoader of {self.records} records: batch {self._at['step']} of {self._session.batches} in epoch {self.epoch}>"

    def __len__(self) -> int:
        return self._session.batches

    def __getitem__(self, key: object) -> LoaderBatch:
        raise TypeError("a DataLoader makes whole batches in its own order, and has no items: for batch in loader: ...")

    def __iter__(self) -> Iterator[LoaderBatch]:
        return self.staged(self._stage, self._ahead)

    def staged(self, stage: Any, ahead: int) -> Iterator[LoaderBatch]:
        """Return an iterator over the next epoch whose batches go through a Stage: what a Prefetcher is."""
        return self._iterate(stage, ahead)

    def _begin(self) -> dict[str, Any]:
        """Return where a loop begins."""
        if self._distributed is not None and self._distributed.epoch != self._said:
            self._said = self._distributed.epoch
            self.set_epoch(self._said)
        if self._wanted is not None:
            return position(self._wanted, 0)
        if self._resumed:
            return self._at
        return position(self.epoch + (self._at["step"] > 0), 0)

    def _iterate(self, stage: Any, ahead: int) -> Iterator[LoaderBatch]:
        self._session.alive()
        at, self._loop = self._begin(), (loop := object())
        epoch, waiting, received = at["epoch"], deque[tuple[Any, dict[str, Any]]](), 0
        failure: Error | None = None
        begun = False
        try:
            if self._session.stream is not None:
                self._session.give_back()
            self._session.staged = stage is not None
            while True:
                self._session.alive()
                while failure is None and at["step"] < self._session.batches and self._wants(len(waiting), ahead):
                    received += 1
                    if received > self._session.batches:
                        self._session.refuse(Malformed(f"more than {self._session.batches} batches of epoch {epoch}"))
                    try:
                        batch, at = self._session.next_batch(at)
                        waiting.append((batch if stage is None else stage.put(batch), at))
                        del batch
                    except Error as e:
                        failure = e  # comes after the batches before it
                if not waiting:
                    break
                batch, after = waiting.popleft()
                if stage is not None:
                    batch = stage.take(batch)
                if not begun:
                    begun, self._resumed, self._wanted = True, False, None
                self._at = after
                yield batch
                del batch  # so that the caller alone keeps it
                if self._loop is not loop:
                    raise Error("this loop was ended by a new one over the same DataLoader, or by load_state_dict; make a DataLoader for each loop")
            if failure is not None:
                raise failure
            if not begun:
                self._resumed, self._wanted = False, None
            self._at = position(epoch + 1, 0)
        finally:
            failure = None  # whose traceback has this frame
            if self._loop is loop:
                self._loop = None

    def _wants(self, waiting: int, ahead: int) -> bool:
        """Return whether to receive a batch now: the one that the loop needs, or one ahead of it that is there."""
        return waiting == 0 or (waiting <= ahead and self._session.has_next())

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next loop is. A position in that epoch that was loaded stays as it is."""
        epoch = count("epoch", epoch)
        if self._loop is not None:
            self._wanted = epoch
        elif not (self._resumed and epoch == self.epoch):
            self._at, self._resumed = position(epoch, 0), True

    def state_dict(self) -> dict[str, Any]:
        """Return where the run is: after the batch that was yielded last. It is JSON, some 300 bytes."""
        return {**self._session.identity, **self._at}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where state_dict was taken: the next loop yields the rest of that epoch.

        Raise Error, with what differs, if it is of another dataset, order, seed, global batch or
        transforms; this DataLoader then is where it was.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"state_dict is {state_dict!r:.60}; it must be what state_dict() returned")
        if not {"epoch", "step", "v"} <= state_dict.keys():
            raise ValueError(f"this is not what state_dict() returned: it has {', '.join(map(repr, state_dict)) or 'nothing'}")
        state = dict(state_dict)
        self._session.start(state)
        self._at = {name: state[name] for name in POSITION if name in state}
        self._resumed, self._loop, self._wanted = True, None, None

    def stats(self) -> dict[str, Any]:
        """Return what the loader did since it was made. Times are nanoseconds.

        ``loader`` has the numbers of Go's loader.Stats, such as ``Workers``, ``Cores`` (this process's
        share) and ``LocalSize`` (processes of this host that share its cores, as torchrun, MPI or
        Slurm say), ``diagnose`` says in a sentence what limits
        the loop, ``copied`` counts batches that were copied because the others were still referred
        to, ``skipped`` those records that on_error passed over, and ``pinned`` says whether memory
        is page-locked, or why not.
        """
        pinned = "not asked for" if self._pinning is None else self._pinning.state
        session = self._session
        return {**session.stats(), "copied": session.copied, "skipped": session.skipped, "pinned": pinned}

    def diagnose(self) -> str:
        """Return a sentence that says what limits the loop over this DataLoader, and what to do."""
        sentence: str = self.stats()["diagnose"]
        return sentence

    def close(self) -> None:
        """End the feeding process. Batches that are still referred to stay as they are."""
        self._session.close()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._arguments, self.state_dict(), self._resumed)


def _again(arguments: dict[str, Any], state: dict[str, Any], resumed: bool) -> DataLoader:
    """Make a DataLoader that was pickled."""
    loader = DataLoader(**arguments)
    loader.load_state_dict(state)
    loader._resumed = resumed
    return loader
