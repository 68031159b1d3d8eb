"""The order of records: permutations, samplers, and the division of an epoch among steps and ranks."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
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


def reused(n: int, k: int) -> list[int]:
    """Return the permutation of [0, n) with a key: swap-or-not (Hoang, Morris and Rogaway, 2012) up to 4,096, a Feistel network beyond."""
    if n > 4096:
        return permutation(n, k, 0)
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


def epoch_of(sampler: dict[str, Any], n: int, seed: int, epoch: int, global_batch: int) -> list[int]:
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
        if sampler["once"]:
            return weighted_once(sampler["weights"], sampler.get("num_samples"), n, seed, epoch)
        return weighted(sampler["weights"], sampler.get("num_samples"), n, seed, epoch)
    if kind == "mix":
        return mix(sampler, n, seed, epoch, global_batch)
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


def weighted_once(weights: list[float], draws: int | None, n: int, seed: int, epoch: int) -> list[int]:
    """Return draws without replacement by random keys (Efraimidis and Spirakis, 2006)."""
    checked(weights)
    if len(weights) != n or (draws or n) > sum(w > 0 for w in weights):
        raise Refused("a weight for each record, and a draw for each positive one at most")
    k = key(seed, epoch, (1 << 16) + 6)
    keys = {i: math.log(((mix64(k + mix64(i)) >> 11) + 0.5) / 2**53) / w for i, w in enumerate(weights) if w}
    return sorted(keys, key=lambda i: -keys[i])[: draws or n]


TURN = 2654435769  # of the golden ratio, in units of 2**-32


def bounds_of(shares: list[float], slots: int) -> list[int]:
    """Return where the part of each source ends, in units of 2**-32 of a slot."""
    total, found = 0.0, []
    for share in shares:
        total += share
        found.append(min(1 << 32, round(total * (1 << 32))) * slots)
    last = max(i for i, share in enumerate(shares) if share)
    return found[:last] + [slots << 32] * (len(shares) - last)


def turn_of(n: int) -> int:
    """Return the distance of slots of a batch: coprime to n, with the smallest sum of quotients near the golden ratio."""
    golden = n * TURN >> 32
    best, least = 0, 1 << 64
    for d in range(max(1, golden - 32), max(1, min(n - 1, golden + 32)) + 1):
        a, b, total = n, d, 0
        while b:
            a, b, total = b, a % b, total + a // b
        if a == 1 and total < least:
            best, least = d, total
    return best


def tempered(weights: list[float], sizes: list[int], temperature: float) -> list[float]:
    """Return shares."""
    if len(weights) != len(sizes):
        raise Refused("weights of other sources")
    raised = [w ** (1 / temperature) if w > 0 and temperature != 1 else w for w in weights]
    total = checked(raised)
    if any(w > 0 and (not size or w / total < 2**-31) for w, size in zip(raised, sizes)):
        raise Refused("a source that is never drawn, or has no records")
    return [w / total for w in raised]


def mix_counts(s: dict[str, Any], batch: int) -> Iterator[list[int]]:
    """Return for each step how many slots of a batch each source has; a batch of one source has one."""
    sizes, ends, each = s["sizes"], s["ends"], batch if s["per_batch"] else 1
    rows = {step: tempered(row, sizes, s["temperature"]) for step, row in (s["schedule"] or {0: sizes}).items()}
    own = None if s.get("set") is None else (s["set"][0], tempered(s["set"][1], sizes, s["temperature"]))  # set while training

    def at(step: int) -> list[float]:
        if own is not None and step >= own[0]:
            return own[1]
        k = max(k for k in rows if k <= step)
        to = min((k for k in rows if k > step), default=None)
        if not s["interpolate"] or to is None:
            return rows[k]
        stairs = min(to - k, 256)
        stair = max(i for i in range(stairs) if (to - k) * i // stairs <= step - k)
        return [a + (b - a) * (stair / stairs) for a, b in zip(rows[k], rows[to])] if stair else rows[k]

    left = [size if share else 0 for size, share in zip(sizes, rows[0])]
    shares = rows[0]
    step = 0
    while True:
        if ends == "repeat":
            shares = at(step)
        u = (1 << 31) + step * TURN & (1 << 32) - 1
        until = [-((u - b) >> 32) if b > u else 0 for b in bounds_of(shares, batch // each)]
        counts = [b - a for a, b in zip([0, *until], until)]
        rescaled = False
        if ends != "repeat" and any(c > n // each for c, n in zip(counts, left)):
            if ends == "stop":
                return
            counts, rescaled = rest_of(shares, left, min(batch, sum(left))), True
        yield counts
        left = [n - c * each for n, c in zip(left, counts)]
        if ends == "rescale" and not any(left):
            return
        if rescaled:
            alive = [share if n else 0.0 for share, n in zip(rows[0], left)]
            total = 0.0
            for share in alive:
                total += share
            shares = [share / total for share in alive]
        step += 1


def rest_of(shares: list[float], left: list[int], n: int) -> list[int]:
    """Return what each source gives to a batch of n records, at most what it has left."""
    total, given, found = 0.0, 0, []
    for share, most in zip(shares, left):
        total += share
        found.append(min(most, max(0, round(total * n) - given)))
        given += found[-1]
    for i, most in enumerate(left):
        more = max(0, min(most - found[i], n - given))
        found[i] += more
        given += more
    return found


def mix(s: dict[str, Any], n: int, seed: int, epoch: int, batch: int) -> list[int]:
    """Return draws from several datasets by weights: each batch has its shares, and records come in shuffled passes."""
    sizes, repeats, alone = s["sizes"], s["ends"] == "repeat", s["per_batch"]
    k = key(seed, 0, (1 << 16) + 3)
    first = [sum(sizes[:i]) for i in range(len(sizes))]
    steps = -(-(s["num_samples"] or max(1, n)) // batch)
    if not repeats and (s["num_samples"] or len(s["schedule"] or ()) > 1 or (alone and s["ends"] == "rescale")):
        raise Refused("options of sources that repeat")
    drawn = [0] * len(sizes)
    passes: dict[tuple[int, int], list[int]] = {}
    found = []
    for step, counts in enumerate(mix_counts(s, batch)):
        if repeats and step == (epoch + 1) * steps:
            break
        if not repeats or step >= epoch * steps:
            slots = sum(counts)
            shift, turn = mix64(k + mix64(step)) * slots >> 64, turn_of(slots)
            owner = [i for i, c in enumerate(counts) for _ in range(c)]
            for place in range(batch if alone else slots):
                slot = 0 if alone else (place * turn + shift) % slots
                part = owner[slot]
                number = drawn[part] * batch + place if alone else drawn[part] + slot - sum(counts[:part])
                turns, within = divmod(number, sizes[part])
                turns += 0 if repeats else epoch
                if (part, turns) not in passes:
                    passes[part, turns] = reused(sizes[part], mix64(k + mix64((part << 40) + turns + 1)))
                found.append(first[part] + passes[part, turns][within])
        drawn = [a + b for a, b in zip(drawn, counts)]
    if not found:
        raise Refused("a source with fewer records than its share of a batch")
    return found


def divided(ordered: list[float], n: int, batch: int) -> list[float]:
    """Return bounds of at most n buckets whose records, padded to the largest of their bucket, cost least: of all bounds between cells."""
    cells = max(n, min(4096, len(ordered) // batch))
    edges = sorted({ordered[k * len(ordered) // cells] for k in range(1, cells)} - set(ordered[:1]))
    ends = [0, *(bisect.bisect_left(ordered, edge) for edge in edges), len(ordered)]
    largest = [max(-1e200, min(float(ordered[end - 1]), 1e200)) for end in ends]
    best: list[tuple[float, list[float]]] = [(float(end) * v, []) for end, v in zip(ends, largest)]  # up to each end: cost and bounds
    for k in range(1, min(n, len(edges) + 1)):
        last = best
        for j in range(len(ends) - 1, k, -1):
            costs = [last[a][0] + float(ends[j] - ends[a]) * largest[j] for a in range(k, j)]
            a = k + costs.index(min(costs))
            best = [*best[:j], (costs[a - k], [*last[a][1], ordered[ends[a]]]), *best[j + 1 :]]
    return best[-1][1]


def buckets(s: dict[str, Any], values: list[float], batch: int, seed: int, epoch: int, drop_last: bool) -> list[list[int]]:
    """Return batches of all ranks, each of records of one bucket, in random order."""
    bounds = s["bounds"]
    if bounds is None:
        bounds = divided(sorted(values), s["buckets"], batch) if values else []
    members: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
    for record, value in enumerate(values):
        members[sum(bound <= value for bound in bounds)].append(record)
    k = key(seed, epoch, (1 << 16) + 5)
    found = []
    for i, records in enumerate(members):
        largest = max([0, *(values[r] for r in records)])
        size = batch if not s["budget"] or largest <= 0 else min(batch, int(s["budget"] // largest))
        size -= size % s["multiple"]
        if not size:
            raise Refused("a record that costs more than the budget")
        if records:
            records = [records[at] for at in reused(len(records), k + mix64(i) & MASK)]
        batches = [records[at : at + size] for at in range(0, len(records), size)]
        found += [b for b in batches if len(b) == size or not drop_last]
    return [found[at] for at in permutation(len(found), seed, epoch)]


def parts_of(batch: list[int], rank: int, world: int) -> tuple[list[int], list[bool]]:
    """Return a rank's part of a batch, and which of its records are no repetition."""
    n = -(-len(batch) // world)
    positions = range(rank * n, rank * n + n)
    return [batch[p % len(batch)] for p in positions], [p < len(batch) for p in positions]


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
