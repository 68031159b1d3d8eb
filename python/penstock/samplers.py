"""The order in which a DataLoader visits records.

Samplers are descriptions: the feeding process computes the order, which is a function of the seed,
the epoch and the position, and the same in Go. All but Sequential give another order in every
epoch.

A sampler of torch.utils.data is translated where it has a counterpart; see ``translate``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from ._base.dataclass import dataclass
from ._base.errors import UnsupportedError
from ._base.options import count, finite, size

__all__ = ["Block", "Bucket", "ChunkShuffle", "ClassBalanced", "Mix", "Regions", "Sampler", "Sequential", "Shuffle", "Split", "Subset", "Weighted"]


MAX_SEED = (1 << 64) - 1


class Arrays(Protocol):
    """Where the arrays of samplers go, on their way to the feeding process."""

    def add(self, values: np.ndarray) -> dict[str, int]:
        """Take an array, and return the entry that says where it is."""


class Sampler:
    """A sampler: a dataclass."""

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Sequential(Sampler):
    """The order of the dataset.

    It has no parameters.

    Example:
        ``Sequential()``
    """

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        return {"kind": "sequential"}


@dataclass(frozen=True)
class Shuffle(Sampler):
    """Every record once, in random order.

    It takes no memory, and has no parameters.

    Example:
        ``Shuffle()``
    """

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        return {"kind": "shuffle"}


@dataclass(frozen=True)
class Block(Sampler):
    """Shuffle blocks of consecutive records, and leave each in the dataset's order.

    Reads are fewer and larger. Neighbors in the dataset stay neighbors: if it is in the order of its classes, batches have one
    class. Store records in random order for it (``penstock preprocess --shuffle SEED``).

    Args:
        size: Records of a block, at least 1.

    Example:
        ``Block(1024)``
    """

    size: int

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        return {"kind": "block", "size": count("size", self.size, 1)}


@dataclass(frozen=True)
class ChunkShuffle(Sampler):
    """Windows over HDF5 or Zarr in a random order that decodes each chunk about once an epoch.

    ``Shuffle`` decodes the chunks of a window for that window alone, unless all chunks fit into memory. This one walks through the chunks in
    lanes, each of which takes chunks at random and shuffles the windows of a chunk; every batch has windows of many lanes.
    Of several datasets, each batch has their shares, and each has lanes of its own.
    ``DataLoader.stats()["loader"]["Order"]`` has the plan: how many lanes, how often a chunk is decoded, and how random batches are.

    Args:
        memory: Decoded chunks that a process keeps, in bytes or like "2GiB".
        lanes: Lanes of a process; None means as many as the memory holds, up to twice the batch.
        run: Chunks that a lane takes in their order, where windows reach into the next chunks; None means as many chunks as
            cost 1/16 more decodes.
        ranks: Processes with lanes of their own: the world size, or a multiple of it; None means the world size.

    Example:
        ``ChunkShuffle("2GiB")``
    """

    memory: int | str = "1GiB"
    lanes: int | None = None
    run: int | None = None
    ranks: int | None = None

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        given = (("lanes", self.lanes), ("run", self.run), ("ranks", self.ranks))
        numbers = {name: count(name, value, 1) for name, value in given if value is not None}
        return {"kind": "chunk_shuffle", "memory": str(size("memory", self.memory)), **numbers}


@dataclass(frozen=True)
class Weighted(Sampler):
    """Draw records in proportion to weights: torch's WeightedRandomSampler.

    Args:
        weights: One number for each record, not negative.
        num_samples: Draws of an epoch; None means one for each weight.
        replacement: False draws no record twice in an epoch.

    Example:
        ``Weighted([1.0, 1.0, 4.0], 300)``
    """

    weights: Any
    num_samples: int | None = None
    replacement: bool = True

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        return {
            "kind": "weighted",
            "weights": arrays.add(_weights("Weighted", self.weights)),
            "once": not self.replacement,
            **_draws(self.num_samples),
        }


@dataclass(frozen=True)
class ClassBalanced(Sampler):
    """Draw records with replacement, every class of a label as often.

    Args:
        field: A field of one number.
        num_samples: Draws of an epoch; None means one for each record.

    Example:
        ``ClassBalanced()``
    """

    field: str = "labels"
    num_samples: int | None = None

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        return {"kind": "balanced", "field": self.field, **_draws(self.num_samples)}


@dataclass(frozen=True)
class Mix(Sampler):
    """Draw from several datasets in proportion to weights, which may follow a schedule.

    Every batch of all ranks has the share of each dataset, rounded up or down, and so has the part of each rank, to a few records. The
    records of a dataset come in shuffled passes, which continue over epochs. ``DataLoader.set_weights`` changes weights while training.

    Args:
        weights: One number for each dataset, or ``{step: weights}`` from step 0 on; None means their numbers of records.
            Steps count batches over epochs.
        num_samples: Draws of an epoch, rounded up to whole batches; None means one for each record.
        interpolate: Change weights linearly between the steps of a schedule, and not at once.
        temperature: Raises weights to the power of ``1 / temperature``: above 1 they become more alike.
        per_batch: Fill each batch from one dataset.
        ends: What follows the last record of a dataset: "repeat" begins its next pass, "stop" ends the epoch before a batch that lacks
            records, "rescale" goes on with the others until each record came once.

    Example:
        ``Mix({0: [0.9, 0.1], 10_000: [0.5, 0.5]}, interpolate=True)``
    """

    weights: Sequence[float] | Mapping[int, Sequence[float]] | None = None
    num_samples: int | None = None
    interpolate: bool = False
    temperature: float = 1.0
    per_batch: bool = False
    ends: Literal["repeat", "stop", "rescale"] = "repeat"

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        rows = {} if self.weights is None else self.weights if isinstance(self.weights, Mapping) else {0: self.weights}
        schedule = [{"step": count("step", step), "weights": row_of(row)} for step, row in sorted(rows.items())]
        temperature = finite("temperature", self.temperature)
        if temperature <= 0:
            raise ValueError(f"temperature is {temperature}; it must be positive")
        of = {"schedule": schedule, "linear": self.interpolate, "temperature": temperature, "per_batch": self.per_batch}
        return {"kind": "mix", **of, "ends": self.ends, **_draws(self.num_samples)}


@dataclass(frozen=True)
class Bucket(Sampler):
    """Batches of records that are alike: in length, size, aspect or any other number.

    Every record comes once an epoch, the batches of all buckets in random order. Each bucket has at most one batch that is not full, and all
    ranks have a part of the same bucket's batch at a step.

    Args:
        buckets: How many buckets, between bounds that pad least, or ascending bounds: [128, 512] makes three, of less than 128, less than
            512, and the rest.
        field: A field of one number, or a field of variable length, whose lengths count; None means the only field of variable
            length. ``derive`` makes such a field of other fields. Of a field that functions of ``transforms`` make, they are computed once.
        budget: The most that the records of a batch of this rank may cost if each costs as much as the largest of its bucket, such as
            tokens after padding. Batches have fewer records than batch_size where it says so.
        multiple: What sizes of batches of all ranks are a multiple of, where a budget makes them smaller; None means the world size. To
            continue on other numbers of ranks, give a multiple of all.

    Example:
        ``Bucket(8)``
    """

    buckets: int | Sequence[float]
    field: str | None = None
    budget: float | None = None
    multiple: int | None = None

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        of = {"field": self.field or "", "budget": finite("budget", self.budget or 0), "multiple": count("multiple", self.multiple or 0)}
        if isinstance(self.buckets, (Sequence, np.ndarray)):
            return {"kind": "bucket", "bounds": [finite("a bound", x) for x in self.buckets], **of}
        return {"kind": "bucket", "buckets": count("buckets", self.buckets, 1), **of}


@dataclass(frozen=True)
class Regions(Sampler):
    """Shuffle regions of the dataset one by one; every global batch has equally many records of each.

    With a region for each host, a host reads one region only.

    Args:
        count: Number of regions, at least 1.
        inner: Sampler of a region; None means Shuffle.

    Example:
        ``Regions(4)``
    """

    count: int
    inner: Sampler | None = None

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        return {"kind": "regions", "count": count("count", self.count, 1), **_inner(self.inner, arrays)}


@dataclass(frozen=True)
class Subset(Sampler):
    """Some of the records.

    Args:
        indices: Numbers of records, one array; a number comes as often as it is in there.
        ranges: In place of indices, pairs (first, end) without the end.
        inner: Sampler of these records; None means the order in which they are given.

    Example:
        ``Subset(ranges=[(0, 1000)], inner=Shuffle())``
    """

    indices: Any = None
    ranges: Sequence[tuple[int, int]] | None = None
    inner: Sampler | None = None

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        if (self.indices is None) == (self.ranges is None):
            raise ValueError("Subset: give indices or ranges")
        if self.ranges is not None:
            ranges = [[count("first", a), count("end", b)] for a, b in self.ranges]
            return {"kind": "subset", "ranges": ranges, **_inner(self.inner, arrays)}
        indices = np.asarray(self.indices)
        if indices.ndim != 1:
            raise TypeError(f"Subset: indices are whole numbers, one a record, and not of shape {indices.shape}; of batches, give batch_size")
        if indices.size and not np.issubdtype(indices.dtype, np.integer):
            raise TypeError(f"Subset: indices are whole numbers, not {indices.dtype}")
        return {"kind": "subset", "indices": arrays.add(np.ascontiguousarray(indices, np.int64)), **_inner(self.inner, arrays)}


@dataclass(frozen=True)
class Split(Sampler):
    """A random part of the records, the same in every epoch.

    ``Split(0, 0.9)`` and ``Split(0.9, 1)`` with one seed have no record in common.

    Args:
        start: The start of the part in a permutation of the records, from 0 to 1.
        stop: Its end, from 0 to 1.
        seed: Seed of the permutation.
        inner: Sampler of the part; None means the permutation's order.

    Example:
        ``Split(0, 0.9, inner=Shuffle())``
    """

    start: float
    stop: float
    seed: int = 0
    inner: Sampler | None = None

    def to_json(self, arrays: Arrays) -> dict[str, Any]:
        part = {"start": finite("start", self.start), "stop": finite("stop", self.stop), "seed": count("seed", self.seed, 0, MAX_SEED)}
        return {"kind": "split", **part, **_inner(self.inner, arrays)}


def translate(
    sampler: Any, records: int | None = None, whole: bool = True, batch_size: int = 1, drop_last: bool = False
) -> tuple[Sampler, Mapping[str, Any]]:
    """Return a sampler as one of this module, and options of the DataLoader that it implies.

    It may be one of this module, a sequence of record numbers, or of torch.utils.data:
    SequentialSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler
    or DistributedSampler, whose draws become penstock's own. They may be over fewer
    than the ``records`` of the dataset (None: unknown): then they visit the first records alone, as in torch. ``whole`` is
    False if records are renumbered, so that this is impossible. ``batch_size`` and ``drop_last`` are the DataLoader's. Raise
    UnsupportedError for any other sampler.
    """
    if isinstance(sampler, Sampler):
        return sampler, {}
    name, module = type(sampler).__name__, type(sampler).__module__
    if isinstance(known := getattr(sampler, "penstock_order", None), Sampler):  # as penstock's DataLoader shows it
        return known, {} if name != "DistributedSampler" else {"rank": sampler.rank, "world_size": sampler.num_replicas}
    if isinstance(known := getattr(getattr(getattr(sampler, "dataset", None), "_sampler", None), "penstock_order", None), Sampler):
        return known, _wrapped(sampler)  # Lightning's DistributedSamplerWrapper of it
    if module.startswith("torch.utils.data"):
        over = _Over(name, records, whole)
        if getattr(sampler, "generator", None) is not None:
            raise UnsupportedError(
                f"{name} has a generator, whose numbers the feeding process cannot draw: leave it out, and give the DataLoader seed=, "
                "such as seed=generator.initial_seed()"
            )
        if name == "SequentialSampler":
            return over.first(len(sampler.data_source)), {}
        if name == "RandomSampler" and not sampler.replacement and sampler.num_samples == len(sampler.data_source):
            return over.first(sampler.num_samples, Shuffle()), {}
        if name == "SubsetRandomSampler":
            return Subset(list(sampler.indices), inner=Shuffle()), {}
        if name == "WeightedRandomSampler":
            return over.weighted(sampler), {}
        if name == "DistributedSampler":
            return over.distributed(sampler, batch_size, drop_last)
    elif isinstance(sampler, (Sequence, np.ndarray, range)) and not isinstance(sampler, str):
        return Subset(sampler), {}
    raise UnsupportedError(
        f"{module}.{name} draws in Python, one record at a time; take a sampler of penstock.samplers, or give the record "
        "numbers of an epoch: sampler=list(sampler)"
    )


#: The replacements of samplers that only the feeding process draws, for a dataset of Python code or arrays in memory.
_OF_TORCH = {
    "Sequential": "leave sampler out",
    "Shuffle": "give shuffle=True",
    "ClassBalanced": "give torch.utils.data.WeightedRandomSampler(weights, num_samples), without seed=",
    "Weighted": "give torch.utils.data.WeightedRandomSampler(weights, num_samples), without seed=",
    "Mix": "give torch.utils.data.ConcatDataset with a WeightedRandomSampler of a weight for each record, without seed=",
    "Subset": "give the numbers: sampler=[...], without seed=",
    "Split": "give torch.utils.data.random_split",
    "ChunkShuffle": "give the windows of a file: penstock.open(PATH).windows(...)",
    "Regions": "give a torch.utils.data.Subset for each rank",
    "Bucket": "give a batch_sampler that yields lists of records of similar length, without seed=",
}


def of_lengths(sampler: Sampler | None) -> bool:
    """Return whether a sampler, or a sampler in it, orders records by their lengths."""
    return sampler is not None and (isinstance(sampler, Bucket) or of_lengths(getattr(sampler, "inner", None)))


def check_for_own(sampler: Sampler, seed: int | None) -> None:
    """Raise UnsupportedError if a sampler is not for a dataset of Python code or arrays in memory, or not without a seed."""
    name = type(sampler).__name__
    if seed is not None and isinstance(sampler, (Sequential, Shuffle, Block, Split, Subset)):
        return
    if isinstance(sampler, (Sequential, Shuffle, Block, Split, Subset)):
        how = f"for a dataset of Python code or arrays it needs seed=; without, {_OF_TORCH.get(name, 'give the numbers: sampler=[...]')}"
    else:
        how = f"for a dataset of Python code or arrays, {_OF_TORCH.get(name, 'give a sampler of torch')}"
    raise UnsupportedError(f"{name} of penstock.samplers is drawn in the feeding process, for datasets that preprocess made; {how}")


def _wrapped(sampler: Any) -> Mapping[str, Any]:
    """Return the options that a DistributedSampler over a sampler implies."""
    if type(sampler).__name__.startswith("Unrepeated"):
        if sampler.num_replicas > 1:
            raise UnsupportedError(
                "predictions of several processes repeat no record in Lightning, and here the last batch repeats some: see LoaderBatch.mask; "
                "predict with Trainer(devices=1), or give rank= and leave out where mask is False"
            )
        return {}
    return {"rank": sampler.rank, "world_size": sampler.num_replicas}


def row_of(weights: Sequence[float]) -> list[float]:
    """Return the weights of datasets."""
    return [finite("a weight", w) for w in weights]


def _weights(what: str, weights: Any) -> np.ndarray:
    """Return weights as float64, one a record."""
    found = np.asarray(weights)
    if found.ndim != 1 or (
        found.size and found.dtype.kind not in "biuf" and not (found.dtype.kind == "O" and all(isinstance(w, (int, float)) for w in found))
    ):
        raise TypeError(f"{what}: weights are numbers, one a record, and not {found.dtype} of shape {found.shape}")
    return np.ascontiguousarray(found, np.float64)


def _draws(num_samples: int | None) -> dict[str, int]:
    """Return the option for how many records an epoch draws, none if they are as many as there are."""
    return {} if num_samples is None else {"num_samples": count("num_samples", num_samples, 1)}


@dataclass(frozen=True)
class _Over:
    """The records that samplers of torch are for."""

    name: str
    records: int | None
    whole: bool

    def first(self, n: int, inner: Sampler | None = None) -> Sampler:
        """Return the sampler of the first n records that visits them in the order of another sampler."""
        if n == self.records:
            return inner or Sequential()
        if not self.whole:
            raise UnsupportedError(
                f"{self.name} is over {n} records, and filters and pack renumber them; "
                "take one of penstock.samplers, which are over those that are left"
            )
        if self.records is not None and n > self.records:
            raise IndexError(f"{self.name} is over {n} records, and the dataset has {self.records}")
        return Subset(ranges=[(0, n)], inner=inner) if n else Subset([])

    def weighted(self, sampler: Any) -> Sampler:
        """Return a Weighted sampler. Its weights may cover the first records alone."""
        weights = _weights(self.name, sampler.weights)
        more = 0 if self.records is None else self.records - len(weights)
        if more < 0:
            raise IndexError(f"{self.name} has {len(weights)} weights, and the dataset has {self.records} records")
        return Weighted(np.pad(weights, (0, more)) if more else weights, sampler.num_samples, sampler.replacement)

    def distributed(self, sampler: Any, batch_size: int, drop_last: bool) -> tuple[Sampler, Mapping[str, Any]]:
        """Return what a DistributedSampler implies: all ranks together have its records."""
        if isinstance(sampler.dataset, (str, os.PathLike)):
            raise TypeError(
                "a DistributedSampler over a path counts the letters of its name: give rank= and world_size= to the DataLoader in its place"
            )
        n, replicas = len(sampler.dataset), sampler.num_replicas
        options = {"rank": sampler.rank, "world_size": replicas, "drop_last": drop_last}
        if sampler.shuffle:
            options["seed"] = sampler.seed
        left = n % replicas if sampler.drop_last and not drop_last else 0
        if left and sampler.shuffle:
            raise UnsupportedError(
                f"DistributedSampler(drop_last=True) leaves out {left} of {n} records, so that {replicas} ranks have as many; "
                "give drop_last=True to the DataLoader, which leaves out the last batch, or leave it out of the sampler"
            )
        if not sampler.drop_last and -(-n // replicas) % batch_size == 0:
            options["drop_last"] = False  # the records that the sampler repeats fill the last batch
        return self.first(n - left, Shuffle() if sampler.shuffle else None), options


class _SeenEpoch(int):
    """An epoch of a DistributedSampler that was looked at: one that is assigned later is another object, though it may be equal."""


class EpochAnnouncements:
    """A DistributedSampler of torch, whose set_epoch says the epoch of the next loop, also if it is the number of the last
    epoch.
    """

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self._seen: Any = None
        if sampler.epoch == 0:  # as it is made: epochs are counted until set_epoch is called
            self.said()

    def said(self) -> int | None:
        """Return the epoch that was set since the last call; None if no epoch was set."""
        epoch = self._sampler.epoch
        if epoch is self._seen:
            return None
        if type(epoch) is not _SeenEpoch:  # another DataLoader with this sampler may have looked first
            epoch = self._sampler.epoch = _SeenEpoch(epoch)
        self._seen = epoch
        return int(epoch)


def _inner(inner: Sampler | None, arrays: Arrays) -> dict[str, Any]:
    if inner is None:
        return {}
    if not isinstance(inner, Sampler):
        raise TypeError(f"inner is {inner!r}; it is a sampler of penstock.samplers")
    return {"inner": inner.to_json(arrays)}
