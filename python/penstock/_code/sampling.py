"""Which records the batches of an epoch have: torch's samplers, or penstock's order.

``of`` returns sampler and batch_sampler as torch's DataLoader would have them. SamplerEpoch is one epoch of any sampler, and has a state to go
on from: the sampler's own, if it has state_dict, and otherwise the generators' state before the epoch and how much was drawn since. ArrayEpoch
is an epoch of torch's own BatchSampler over its own samplers as arrays, with the same draws; subclasses take SamplerEpoch, as they may do
anything.
"""

from __future__ import annotations

import copy
import itertools
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import order, samplers
from .._base.errors import Error, UnsupportedError
from .._engine.request import ranks, seed_of
from .._engine.signature import Signature
from .._engine.wire import Malformed, number
from . import randomness
from .fetch import stateful


def of(signature: Signature, source: Any, torch: bool) -> tuple[Any, Any]:
    """Return sampler and batch_sampler as torch's DataLoader has them over a source; torch says whether they are to be torch's classes."""
    batched: Any = Batched
    random: Any = _Random
    sequential: Any = _Sequential
    endless: Any = _Endless
    if torch:
        from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler
        from torch.utils.data.dataloader import _InfiniteConstantSampler

        batched, random, sequential, endless = BatchSampler, RandomSampler, SequentialSampler, _InfiniteConstantSampler
    sampler, batches = signature.sampler, signature.batch_sampler
    if sampler is None:
        if signature.iterable:
            sampler = endless()
        elif signature.shuffle:
            sampler = random(source, generator=signature.generator)
        else:
            sampler = sequential(source)
    if batches is None and signature.batch_size is not None:
        batches = batched(sampler, signature.batch_size, signature.drop_last)
    return sampler, batches


class _Sequential:
    """The records in their order."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self._dataset)))

    def __len__(self) -> int:
        return len(self._dataset)


class _Random(_Sequential):
    """The records in an order that is drawn from numpy.random, or from a numpy.random.Generator."""

    def __init__(self, dataset: Any, generator: Any = None) -> None:
        super().__init__(dataset)
        if len(dataset) == 0:
            raise ValueError("num_samples should be a positive integer value, but got num_samples=0")
        self._generator = generator

    def __iter__(self) -> Iterator[int]:
        draw = np.random if self._generator is None else self._generator
        return iter(draw.permutation(len(self._dataset)).tolist())


class _Endless:
    """None, without end."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class Batched:
    """The records of another sampler, as lists."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        records = iter(self.sampler)
        while batch := list(itertools.islice(records, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)


def _plainly_batches(sampler: Any) -> bool:
    """Return whether an object puts the records of a sampler together as torch's BatchSampler does: subclasses may do anything."""
    data = sys.modules.get("torch.utils.data")
    return type(sampler) in (Batched, getattr(data, "BatchSampler", Batched))


#: Stands for the same random numbers as before iter(), in a state.
_SAME = "begun"


def owners(index_sampler: Any) -> list[Any]:
    """Return the sampler that holds the state of the order, if a sampler does."""
    return [s for s in (index_sampler, getattr(index_sampler, "sampler", None)) if stateful(s)][:1]


def generator_of(index_sampler: Any, generator: Any = None) -> Any:
    """Return the generator that a sampler, or the sampler it wraps, draws from; else the loader's. None means the global generators."""
    at = index_sampler
    while at is not None:
        own = getattr(at, "generator", None)
        if hasattr(own, "bit_generator") or hasattr(own, "get_state"):
            return own
        at = getattr(at, "sampler", None)
    return generator


def makes_generator(index_sampler: Any) -> bool:
    """Return whether a sampler that is not torch's own has a generator, or makes one in its first epoch, as Accelerate's does."""
    at = index_sampler
    while at is not None:
        if hasattr(at, "generator") and not type(at).__module__.startswith(("torch.utils.data", "penstock.")):
            return True
        at = getattr(at, "sampler", None)
    return False


class SamplerEpoch:
    """One epoch of a sampler: what it gives, one after the other, and a state from which it can go on.

    A sampler, batch sampler or iterator with state_dict and load_state_dict is asked for its state after each batch. Others are
    iterated over again from the same random numbers: the state has the generators' state before the epoch. What they draw after that
    goes on from there, whatever the program draws meanwhile.
    """

    def __init__(self, index_sampler: Any, generator: Any = None) -> None:
        self._sampler, self._generator = index_sampler, generator_of(index_sampler, generator)
        self._private: Any = None  # the global generators after a state was loaded, for this sampler alone
        self._iterator: Any = None
        # The random numbers before iter(), and before the first next(): the same object where they are equal.
        self._begun: Any = None
        self._first: Any = None
        self._owners = owners(index_sampler)
        self.given = 0
        self._initial: dict[str, Any] = {}  # the states that iterator and sampler had then
        self._drawn: list[Any] = []  # what comes next, if it had to be asked for before
        # Whether the sampler is exhausted: its state may then already belong to its next epoch.
        self._ended = False

    @property
    def begun(self) -> bool:
        """Whether iter() was called."""
        return self._iterator is not None

    def begin(self) -> None:
        """Call iter() of the sampler."""
        self._begun, self._first, self.given, self._drawn, self._ended = self._random(), None, 0, [], False
        self._private = None
        self._iterator = iter(self._sampler)
        self._initial = self._own()

    def next(self) -> Any:
        """Return what the sampler gives next; raise StopIteration after the last."""
        if self._first is None:
            now = self._random()
            self._first = self._begun if now == self._begun else now
        found = self._drawn.pop() if self._drawn else self._drawn_next()
        self.given += 1
        self._ended = self._cut_short(found)
        return found

    def _drawn_next(self) -> Any:
        if self._private is not None and self._private == randomness.state():
            self._private = None  # the program restored the global generators itself: they go on as in an unbroken run
        if self._private is None:
            return next(self._iterator)
        with randomness.undisturbed():
            randomness.restore(self._private)
            try:
                return next(self._iterator)
            finally:
                self._private = randomness.state()

    def _cut_short(self, batch: Any) -> bool:
        """Return whether a batch is shorter than other batches, so that the batch sampler has seen the end of its sampler."""
        batches = self._sampler
        return _plainly_batches(batches) and not batches.drop_last and len(batch) < batches.batch_size

    def state(self, given: int | None = None) -> dict[str, Any]:
        """Return the state after the batch that was given last, or, with 0, before the first batch."""
        own = self._own() if given is None else self._initial
        found: dict[str, Any] = {"given": self.given if given is None else given, **own}
        if not own or given == 0:
            first = self._random() if self._first is None else self._first
            found["begun"], found["first"] = self._begun, _SAME if first == self._begun else first
        if own and given is None and self._ended:
            found["ended"] = True
        return found

    def _own(self) -> dict[str, Any]:
        """Return the states that the iterator and the sampler have themselves."""
        found = {}
        if stateful(self._iterator):
            found["iterator"] = self._iterator.state_dict()
        if self._owners:
            found["sampler"] = self._owners[0].state_dict()
        return found

    def load(self, state: Mapping[str, Any]) -> None:
        """Go to a state, in an epoch that is begun here."""
        given, begun, first = int(state["given"]), state.get("begun"), state.get("first")
        first = begun if first == _SAME else first
        with randomness.undisturbed():
            if begun is not None:
                self._restore(begun)
            if "sampler" in state:
                self._owners[0].load_state_dict(state["sampler"])
            self.begin()
            if "iterator" in state:
                if not stateful(self._iterator):
                    raise Error("the state is of a sampler whose iterator has load_state_dict, and this one has none")
                self._iterator.load_state_dict(state["iterator"])
            if first is not None:
                self._restore(first)
            if begun is not None:
                passed = sum(1 for _ in itertools.islice(self._iterator, given))
                if passed < given:
                    raise Error(f"the state is after {given} batches, and the sampler has {passed}: it is another one")
            if first is not None and not given and self._generator is not None:
                self._drawn = list(itertools.islice(self._iterator, 1))  # now, with those random numbers
            if begun is not None or first is not None:
                self._private = randomness.state()
            if state.get("ended"):
                self._iterator, self._ended = iter(()), True
        self._begun, self._first, self.given = begun or self._begun, first, given

    def pass_over(self, state: Mapping[str, Any]) -> None:
        """Have a generator that is not global draw what it drew in an epoch that has ended: the next epoch goes on from there."""
        if self._generator is None or "generator" not in (state.get("begun") or ()):
            return
        self.load(state)
        with randomness.undisturbed():
            for _ in self._iterator:
                pass

    def _random(self) -> Any:
        own = self._generator
        if own is None:
            return randomness.encode(randomness.state())
        return {**randomness.encode(randomness.state()), "generator": _generator_state(own)}

    def _restore(self, encoded: Mapping[str, Any]) -> None:
        randomness.restore(randomness.decode(encoded))
        if self._generator is not None and "generator" in encoded:
            _set_generator_state(self._generator, encoded["generator"])


class ArrayEpoch:
    """One epoch of torch's BatchSampler over its RandomSampler or SequentialSampler, as arrays: the same draws, without a list of integers.

    Its state has the seed, or the state of the sampler's generator, that the epoch is drawn from.
    """

    def __init__(self, batches: Any) -> None:
        self._batches = batches
        self._drawn: Any = None
        self._iterator: Iterator[Any] | None = None
        self.given = 0
        self._n = len(batches.sampler.data_source)
        #: All record numbers are below it, and the first batch alone draws; None if each batch has to be asked for when it is due.
        self.below = self._n if getattr(batches.sampler, "generator", None) is None else None

    @staticmethod
    def takes(batches: Any) -> bool:
        """Return whether an object is of the very classes of torch: a subclass may do anything."""
        data: Any = sys.modules.get("torch.utils.data")
        return type(batches) is getattr(data, "BatchSampler", None) and type(batches.sampler) in (data.RandomSampler, data.SequentialSampler)

    @property
    def begun(self) -> bool:
        return self._iterator is not None

    def begin(self, given: int = 0, drawn: Any = None) -> None:
        self._drawn, self.given, self._iterator = drawn, given, self._from(given)

    def load(self, state: Mapping[str, Any]) -> None:
        self.begin(int(state["given"]), state["drawn"])

    def pass_over(self, state: Mapping[str, Any]) -> None:
        """Have a generator that is not global draw what it drew in an epoch that has ended: the next epoch goes on from there."""
        if isinstance(state["drawn"], bytes):
            self.load(state)
            for _ in self.rest():
                pass

    def next(self) -> Any:
        found = next(self.rest())
        self.given += 1
        return found

    def rest(self) -> Iterator[Any]:
        """Return an iterator over all batches that come next."""
        assert self._iterator is not None
        return self._iterator

    def state(self, given: int | None = None) -> dict[str, Any]:
        return {"given": self.given if given is None else given, "drawn": self._drawn}

    def _from(self, step: int) -> Iterator[Any]:
        """Yield the batches after some, and draw where torch's sampler does."""
        sampler, size, drop_last = self._batches.sampler, self._batches.batch_size, self._batches.drop_last
        n, generator = self._n, None
        if not hasattr(sampler, "generator"):
            order = np.arange(n)
        else:
            import torch

            generator = self._generator(sampler.generator)
            if sampler.replacement or sampler.num_samples != n:
                again = copy.copy(sampler)
                again.generator = generator
                yield from map(np.asarray, itertools.islice(type(self._batches)(again, size, drop_last), step, None))
                return
            order = torch.randperm(n, generator=generator).numpy()
        for at in range(step * size, n - size + 1, size):
            yield order[at : at + size]
        if generator is not None and generator is sampler.generator:  # whose end BatchSampler looks for
            torch.randperm(n, generator=generator)
        if n % size and not drop_last and step * size < n:
            yield order[n - n % size :]

    def _generator(self, own: Any) -> Any:
        """Return the generator of the epoch, at the state with which it begins."""
        import torch

        if own is None:
            self._drawn = int(torch.empty((), dtype=torch.int64).random_().item()) if self._drawn is None else self._drawn
            return torch.Generator().manual_seed(self._drawn)
        if self._drawn is None:
            self._drawn = _generator_state(own)
        else:
            _set_generator_state(own, self._drawn)
        return own

    def check(self, state: Mapping[str, Any]) -> None:
        """Raise Malformed for a value that is not the state of such an epoch."""
        drawn, random = state.get("drawn"), hasattr(self._batches.sampler, "generator")
        if drawn is None and (not random or not state["given"]):
            return
        if random and self._batches.sampler.generator is None:
            number(state, "drawn")
        elif random:
            randomness.check_torch(drawn)
        else:
            raise Malformed("drawn is of another order")


def sampled(index_sampler: Any, generator: Any, arrays: bool) -> Any:
    """Return an epoch of a sampler: of arrays, whose batches need no lists, where its draws are known."""
    return ArrayEpoch(index_sampler) if arrays and ArrayEpoch.takes(index_sampler) else SamplerEpoch(index_sampler, generator)


def check_random(encoded: Any, generator: Any, made: bool = False) -> None:
    """Raise Error if the global generators, and the loader's own generator, if it has one, cannot go back to this state.

    ``made`` says that the sampler makes a generator of torch itself, when it is iterated over: then its state is no use before.
    """
    randomness.decode(encoded)
    if made and not hasattr(generator, "bit_generator"):
        if "generator" in encoded:
            randomness.check_torch(encoded["generator"])
        return
    if (generator is not None) != ("generator" in encoded):
        raise Malformed("generator= is given to one of the two DataLoaders only")
    if generator is not None and hasattr(generator, "bit_generator"):
        state = _unplain(encoded["generator"], generator.bit_generator.state)
        try:
            type(generator.bit_generator)().state = state
        except (ValueError, TypeError, OverflowError):
            raise Malformed("generator is not a state of such a generator") from None
    elif generator is not None:
        randomness.check_torch(encoded["generator"])


def _generator_state(generator: Any) -> Any:
    return _plain(generator.bit_generator.state) if hasattr(generator, "bit_generator") else generator.get_state().numpy().tobytes()


def _set_generator_state(generator: Any, state: Any) -> None:
    if hasattr(generator, "bit_generator"):
        generator.bit_generator.state = _unplain(state, generator.bit_generator.state)
        return
    import torch

    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _plain(state: Any) -> Any:
    """Return the state of a bit generator with bytes in the place of arrays."""
    if isinstance(state, Mapping):
        return {name: _plain(value) for name, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state if isinstance(state, str) else int(state)


#: The largest values of parts of states of bit generators that are places in other parts, or flags.
_PLACES = {"pos": 624, "buffer_pos": 4, "has_uint32": 1, "has_gauss": 1, "uinteger": (1 << 32) - 1}


def _unplain(state: Any, like: Any, name: str = "generator") -> Any:
    """Return a state that ``_plain`` was given; raise Error if it does not have the parts of another state of the same bit generator."""
    if isinstance(like, Mapping):
        if not isinstance(state, Mapping) or state.keys() != like.keys():
            raise Malformed(f"{name} is not a state of such a generator")
        return {key: _unplain(state[key], like[key], key) for key in like}
    if isinstance(like, np.ndarray):
        if not isinstance(state, bytes) or len(state) != like.nbytes:
            raise Malformed(f"{name} is not {like.nbytes} bytes")
        return np.frombuffer(state, like.dtype).reshape(like.shape)
    if isinstance(like, str):
        if state != like:
            raise Malformed(f"{name} is another one")
        return like
    return number({name: state}, name, 0, _PLACES.get(name, (1 << 128) - 1 if name in ("state", "inc") else (1 << 64) - 1))


#: How many of the first records of an order are compared to distinguish it from another order.
_COMPARED = 4096


class Ordered(order.Batches):
    """Penstock's order: batches of the records that a sampler of penstock.samplers names, for one rank."""

    def __init__(self, sampler: samplers.Sampler, n: int, batch_size: int, seed: int, drop_last: bool, rank: int, world_size: int) -> None:
        self._sampler, self.records = sampler, n
        first = permutation(sampler, n, seed, 0)
        super().__init__(len(first), batch_size, seed, drop_last=drop_last, rank=rank, world_size=world_size)
        begins = np.ascontiguousarray(first[np.arange(min(len(first), _COMPARED))], np.int64)
        #: The value that distinguishes orders.
        self.name = f"{type(sampler).__name__} of {len(first)}, {zlib.crc32(begins.tobytes()):08x}"

    def permutation(self) -> Any:
        return permutation(self._sampler, self.records, self.seed, self.epoch)


def permutation(sampler: samplers.Sampler | None, n: int, seed: int, epoch: int) -> Any:
    """Return the record numbers of an epoch, to be indexed with arrays: what the loader in Go has for the same sampler."""
    if sampler is None or isinstance(sampler, samplers.Sequential):
        return order.Permutation(n)
    if isinstance(sampler, samplers.Shuffle):
        return order.shuffle(n, seed, epoch)
    if isinstance(sampler, samplers.Block):
        return order.shuffle(n, seed, epoch, sampler.size)
    if isinstance(sampler, samplers.Split):
        part = order.split(n, sampler.seed, sampler.start, sampler.stop)
        return _Part(part, permutation(sampler.inner, len(part), seed, epoch))
    if isinstance(sampler, samplers.Subset):
        named = (
            np.asarray(sampler.indices) if sampler.ranges is None else np.concatenate([np.arange(0), *(np.arange(a, b) for a, b in sampler.ranges)])
        )
        if named.size and (named.min() < 0 or named.max() >= n):
            raise IndexError(f"Subset: record {named.max() if named.max() >= n else named.min()}, and the dataset has {n}")
        return _Part(named.astype(np.int64), permutation(sampler.inner, len(named), seed, epoch))
    raise UnsupportedError(
        f"with seed=, the order of a dataset of Python code is Sequential, Shuffle, Block, Split or Subset of penstock.samplers, and not "
        f"{type(sampler).__name__}; without seed=, any sampler of torch or of yours is used as torch's DataLoader uses it"
    )


class _Part(order.Permutation):
    """The numbers of a part, in an order of their places."""

    def __init__(self, part: Any, places: Any) -> None:
        super().__init__(len(places))
        self._part, self._places = part, places

    def _at(self, positions: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._part[self._places[positions]]
        return found


def seeded(signature: Signature, seed: int, rank: int, world_size: int) -> Ordered:
    """Return the order of a loader with a seed; raise ValueError or UnsupportedError for a sampler with its own random numbers.

    A DistributedSampler says which part of the order this rank reads, unless rank and world size were given.
    """
    if signature.batch_sampler is not None:
        raise ValueError("seed= with batch_sampler: a batch sampler draws its own random numbers; leave seed out, or give batch_size and sampler")
    n, size, drop_last = len(signature.dataset), signature.batch_size or 1, signature.drop_last
    sampler: Any = signature.sampler
    if sampler is not None:
        sampler, implied = samplers.translate(sampler, n, batch_size=size, drop_last=drop_last)
        seed_of(seed, implied)  # which refuses another state
        if "rank" in implied:
            given = (rank, world_size) if world_size > 1 else (None, None)
            rank, world_size = ranks(given[0], given[1], implied)
        drop_last = implied.get("drop_last", drop_last)
    elif signature.shuffle:
        sampler = samplers.Shuffle()
    else:
        sampler = samplers.Sequential()
    return Ordered(sampler, n, size, seed, drop_last, rank, world_size)
