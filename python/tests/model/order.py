"""The order of records: permutations, samplers, and the division of an epoch among steps and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


class Refused(Exception):
    """The program asks for something that is an error."""


def mix64(x: int) -> int:
    """Return the finalizer of SplitMix64 (Stafford's variant 13)."""
    x &= MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def key(seed: int, epoch: int, number: int) -> int:
    """Return one of the independent 64-bit keys of a seed and an epoch."""
    s = mix64(seed + (2 * number + 1) * GOLDEN)
    e = mix64(epoch + (2 * number + 2) * GOLDEN)
    return mix64(s + (e << 32 | e >> 32) + GOLDEN)


class SplitMix:
    """The SplitMix64 generator (Steele, Lea and Flood, 2014)."""

    def __init__(self, state: int) -> None:
        self.state = state

    def below(self, m: int) -> int:
        """Return a number in [0, m), each with the same probability (Lemire, 2019)."""
        while True:
            self.state = self.state + GOLDEN & MASK
            product = mix64(self.state) * m
            if product & MASK >= m or product & MASK >= (1 << 64) % m:
                return product >> 64


def feistel(n: int, seed: int, epoch: int) -> Callable[[int], int]:
    """Return the permutation of [0, n), for n beyond 4,096, as a function: a Feistel network (Black and Rogaway, 2002, section 5)."""
    a = math.isqrt(n)
    b = -(-n // a)
    keys = [key(seed, epoch, i) for i in range(8)]

    def once(x: int) -> int:
        high, low = divmod(x, b)
        for i in range(0, 8, 2):
            high = (high + (mix64(low + keys[i]) * a >> 64)) % a
            low = (low + (mix64(high + keys[i + 1]) * b >> 64)) % b
        return high * b + low

    def image(x: int) -> int:
        x = once(x)
        while x >= n:
            x = once(x)
        return x

    return image


def permutation(n: int, seed: int, epoch: int) -> list[int]:
    """Return the permutation of [0, n) for a seed and an epoch: Fisher and Yates up to 4,096, a Feistel network beyond."""
    if n > 4096:
        return list(map(feistel(n, seed, epoch), range(n)))
    table: list[int] = []
    random = SplitMix(key(seed, epoch, 1 << 16))
    for i in range(n):
        j = random.below(i + 1)
        table.append(i)
        table[i], table[j] = table[j], i
    return table


def swap_or_not(n: int, k: int) -> list[int]:
    """Return the permutation of [0, n) by swap-or-not (Hoang, Morris and Rogaway, 2012) with a key."""
    x = np.arange(n, dtype=np.uint64)
    for r in range(1, 6 * n.bit_length() + 1):
        h = mix64(k + r * GOLDEN)
        other = (np.uint64((h * n >> 64) + n) - x) % np.uint64(n)
        with np.errstate(over="ignore"):
            bits = np.maximum(x, other) + np.uint64(h)
            bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        x = np.where((bits ^ bits >> np.uint64(31)) & np.uint64(1) == 1, other, x)
    return x.tolist()  # type: ignore[no-any-return]


def epoch_of(sampler: dict[str, Any], n: int, seed: int, epoch: int, global_batch: int, lengths: list[int] | None = None) -> list[int]:
    """Return the records of an epoch, of all ranks, in the order of a sampler; raise Refused for a sampler that does not fit."""
    kind, inner = sampler["kind"], sampler.get("inner")

    def inside(m: int) -> list[int]:
        return list(range(m)) if inner is None else epoch_of(inner, m, seed, epoch, global_batch)

    if kind == "sequential":
        return list(range(n))
    if kind == "shuffle":
        return permutation(n, seed, epoch)
    if kind == "block":
        return block(sampler["size"], n, seed, epoch)
    if kind == "subset":
        chosen = sampler["indices"] if "indices" in sampler else [r for a, b in sampler["ranges"] for r in range(a, b)]
        if any(not 0 <= r < n for r in chosen) or any(a >= b for a, b in sampler.get("ranges", ())):
            raise Refused("records that do not exist")
        return [chosen[i] for i in inside(len(chosen))]
    if kind == "split":
        start, stop = round(n * sampler["start"]), round(n * sampler["stop"])  # Python rounds halves to even, as the engine does
        if start == stop and n:
            raise Refused("a part without records")
        places = permutation(n, sampler["seed"], -(1 << 62))
        return [places[start + i] for i in inside(stop - start)]
    if kind == "regions":
        return regions(sampler, n, seed, epoch, global_batch)
    if kind == "weighted":
        return weighted(sampler["weights"], sampler.get("num_samples"), n, seed, epoch)
    if kind == "mix":
        return mix(sampler["sizes"], sampler["weights"], sampler.get("num_samples") or n, seed, epoch)
    if kind == "length_buckets":
        assert lengths is not None
        return length_buckets(lengths, sampler["buckets"], global_batch, seed, epoch)
    raise AssertionError(kind)


def block(size: int, n: int, seed: int, epoch: int) -> list[int]:
    """Return blocks of consecutive records in random order; a shorter block, cut out at a random place, comes last."""
    if size <= 1:
        return permutation(n, seed, epoch)
    blocks, rest = divmod(n, size)
    cut = SplitMix(key(seed, epoch, (1 << 16) + 1)).below(blocks + 1) * size
    found = []
    for k in permutation(blocks, seed, epoch):
        first = k * size + (rest if k * size >= cut else 0)
        found += range(first, first + size)
    return found + list(range(cut, cut + rest))


def regions(sampler: dict[str, Any], n: int, seed: int, epoch: int, global_batch: int) -> list[int]:
    """Return batches that have as many records of each region; what is left of each follows, then what no region has."""
    count = sampler["count"]
    if count > n or global_batch < count or global_batch % count:
        raise Refused("a global batch that cannot be divided among regions")
    size, each = n // count, global_batch // count
    orders = []
    for i in range(count):
        inner = sampler.get("inner") or {"kind": "shuffle"}
        order = epoch_of(inner, size, mix64(seed + (i + 1) * GOLDEN), epoch, global_batch)
        if sorted(order) != list(range(size)):
            raise Refused("an inner sampler that does not visit each record once")
        orders.append([i * size + r for r in order])
    found = []
    whole = size // each
    for step in range(whole):
        for order in orders:
            found += order[step * each : (step + 1) * each]
    for order in orders:
        found += order[whole * each :]
    return found + list(range(count * size, n))


def checked(weights: list[float]) -> float:
    """Return the sum of weights."""
    total = 0.0
    for w in weights:
        if not 0 <= w < math.inf:
            raise Refused("a weight that is none")
        total += w
    if not 0 < total < math.inf:
        raise Refused("weights without a sum")
    return total


def weighted(weights: list[float], draws: int | None, n: int, seed: int, epoch: int) -> list[int]:
    """Return draws with replacement by an alias table (Walker, 1977; Vose, 1991)."""
    total = checked(weights)
    if len(weights) != n:
        raise Refused("a weight for each record")
    share = [w / total * n for w in weights]
    small, large = [i for i in range(n) if share[i] < 1], [i for i in range(n) if share[i] >= 1]
    keep, other = [0] * n, [0] * n
    while small and large:
        s, big = small.pop(), large[-1]
        keep[s], other[s] = min(int(share[s] * (1 << 32)), (1 << 32) - 1), big
        share[big] -= 1 - share[s]
        if share[big] < 1:
            small.append(large.pop())
    for i in small + large:
        keep[i], other[i] = ((1 << 32) - 1, i) if weights[i] else (0, weights.index(max(weights)))
    k = key(seed, epoch, (1 << 16) + 2)
    found = []
    for position in range(draws or n):
        h = mix64(k + mix64(position))
        at = h * n >> 64
        found.append(at if mix64(h) & 0xFFFFFFFF < keep[at] else other[at])
    return found


def mix(sizes: list[int], weights: list[float], draws: int, seed: int, epoch: int) -> list[int]:
    """Return draws from several datasets: in each 4,096 positions each has its share, and its records come in shuffled passes."""
    total = checked(weights)
    exact = [w / total * 4096 for w in weights]
    share = [math.floor(e) for e in exact]
    rest = [e - s for e, s in zip(exact, share)]
    for _ in range(4096 - sum(share)):
        i = rest.index(max(rest))
        share[i] += 1
        rest[i] = -1
    if any(w > 0 and (s == 0 or not size) for w, s, size in zip(weights, share, sizes)):
        raise Refused("a source that is never drawn, or has no records")
    owner = [i for i, s in enumerate(share) for _ in range(s)]
    first = [sum(sizes[:i]) for i in range(len(sizes))]
    start = [sum(share[:i]) for i in range(len(sizes))]
    k = key(seed, epoch, (1 << 16) + 3)
    passes: dict[tuple[int, int], list[int]] = {}
    found = []
    for b in range(-(-draws // 4096)):
        places = swap_or_not(4096, k + mix64(b) & MASK)
        for slot in places[: draws - b * 4096]:
            part = owner[slot]
            number, within = divmod(b * share[part] + slot - start[part], sizes[part])
            if (part, number) not in passes:
                passes[part, number] = swap_or_not(sizes[part], mix64(k + mix64((part << 40) + number + 1)))
            found.append(first[part] + passes[part, number][within])
    return found


def length_buckets(lengths: list[int], buckets: int, batch: int, seed: int, epoch: int) -> list[int]:
    """Return batches of records of similar length, in random order."""
    by_length = sorted(range(len(lengths)), key=lambda r: lengths[r])
    width = max(1, len(lengths) // batch // buckets) * batch
    last = max(1, len(lengths) // width) - 1
    k = key(seed, epoch, (1 << 16) + 5)
    shuffled: list[int] = []
    for b in range(last + 1):
        part = by_length[b * width : (b + 1) * width if b < last else None]
        if part:
            shuffled += [part[i] for i in swap_or_not(len(part), k + mix64(b) & MASK)]
    whole = len(lengths) // batch
    found = []
    for b in permutation(whole, seed, epoch):
        found += shuffled[b * batch : (b + 1) * batch]
    return found + shuffled[whole * batch :]


def steps_of(records: list[int], batch: int, rank: int, world: int, drop_last: bool) -> list[tuple[list[int], list[bool]]]:
    """Return, for each step of a rank, the records and whether each is its own, not a repetition that fills the last batch.

    The last global batch is divided so that all ranks have as many records; what is missing is repeated from the start.
    """
    found = []
    for start in range(0, len(records), batch * world):
        left = min(batch * world, len(records) - start)
        if left < batch * world and drop_last:
            break
        n = -(-left // world)
        positions = range(start + rank * n, start + rank * n + n)
        found.append(([records[p % len(records)] for p in positions], [p < start + left for p in positions]))
    return found
