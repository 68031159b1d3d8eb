"""Random programs over the model: what a user could write, and what it yields."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import numpy as np

from . import data, order, pixels, views

#: Kinds of sources, and how their records reach the loader.
SOURCES = ["npz", "hdf5", "csv", "jsonl", "parquet", "images", "memory", "own"]


@dataclasses.dataclass
class Program:
    """A program: make a source, choose records of it, load them, stop and go on.

    Args:
        number: The seed of all that follows.
        source: One of SOURCES.
        container: "raw" loads the source itself; "flat", "hdf5" and "zarr" preprocess it first.
        records: About how many records the source has.
        views: Steps of views.
        sampler: A sampler as ``order.epoch_of`` takes it.
        seed, epoch: Of the order.
        batch, rank, world, drop_last: The division of an epoch.
        workers: num_workers.
        where: A condition as ``filters=`` takes it, over records after the views; None for none.
        transforms: Steps on images.
        stop: After how many batches of the epoch a state is taken; None for never. Weights of a mix are set then: ``sampler["set"]`` is how many
            steps later they count from, and which.
        again: (rank, world, workers) of the loader that goes on.
        parts: How often the dataset is given to the loader, as a list.
    """

    number: int
    source: str
    container: str
    records: int
    views: list[dict[str, Any]]
    sampler: dict[str, Any]
    seed: int
    epoch: int
    batch: int
    rank: int
    world: int
    drop_last: bool
    workers: int
    where: list[Any] | None
    transforms: list[dict[str, Any]]
    stop: int | None
    again: tuple[int, int, int]
    parts: int
    columns: data.Columns = dataclasses.field(repr=False)  # of the source
    path: str = dataclasses.field(repr=False)


def draw(number: int, folder: str) -> Program:
    """Return the program of a number; its source is written to the folder."""
    rng = random.Random(number)
    source = rng.choice(SOURCES)
    n = rng.choice(
        [
            1,
            2,
            7,
            rng.randint(1, 40),
            rng.randint(1, 40),
            rng.randint(40, 300),
            4096 if rng.random() < 0.02 else 5,
            5000 if rng.random() < 0.02 else 9,
        ]
    )
    python_code = source in ("memory", "own")
    path = ""
    if python_code:
        columns = data.arrays(rng, n)
    else:
        path, columns = data.make(source, f"{folder}/source", n, rng)
    container = "python" if python_code else rng.choice(["raw", "flat", "flat", "hdf5", "zarr"])
    seen, steps = columns, []
    if container not in ("raw", "python"):
        for _ in range(rng.choice([0, 0, 1, 2, 3])):
            if step := views.draw(rng, seen):
                steps.append(step)
                seen = views.apply(step, seen)
    where = None
    if container not in ("python", "raw") and rng.random() < 0.2:
        numbers = [name for name, c in seen.items() if c.kind == data.FIXED and not c.shape]
        where = views.condition(rng, seen, numbers)
        if where and not any(views.holds(where, seen)):
            where = None
    if where:
        kept = [i for i, keep in enumerate(views.holds(where, seen)) if keep]
        seen = views.picked(seen, kept)
    transforms: list[dict[str, Any]] = []
    if "images" in seen and source == "images":
        transforms = pixels.draw(rng, *seen["images"].shape[1:])
        if container == "raw" and not transforms:
            transforms = [{"name": "ToTensor"}]
    world = rng.choice([1, 1, 1, 2, 3, 4])
    rank = rng.randrange(world)
    batch = rng.choice([1, 2, 3, 4, 8, 16, rng.randint(1, 64)])
    n = views.size(seen)
    sampler = _sampler(rng, n, batch * world, python_code)
    measured = [name for name, c in seen.items() if c.kind == data.RAGGED or (c.kind == data.FIXED and not c.shape and c.dtype.kind in "iuf")]
    if measured and not python_code and rng.random() < 0.2:
        sampler = _bucket(rng, rng.choice(measured), seen, world)
    parts = 1
    if container in ("flat", "hdf5", "zarr") and where is None and rng.random() < 0.15:
        parts = rng.randint(2, 3)
        sampler = _mix(rng, [n] * parts)
    divided = [w for w in range(1, 7) if batch * world % w == 0]
    again = rng.choice(divided) if not python_code else world
    return Program(
        number, source, container, n, steps, sampler, rng.choice([0, 1, rng.getrandbits(64)]), rng.choice([0, 0, 1, 7]), batch, rank, world,
        rng.random() < 0.3, rng.choice([0, 1, 2, 3]) if not python_code else rng.choice([0, 0, 2]), where, transforms,
        rng.choice([None, 0, 1, 2, 3]), (rng.randrange(again), again, rng.choice([0, 1, 2])), parts, columns, path,
    )  # fmt: skip


def costs(column: data.Column) -> list[float]:
    """Return the number of each record: of a field of one number, or the length of its list."""
    return [float(len(v)) if column.kind == data.RAGGED else float(v) for v in column.values]


def _bucket(rng: random.Random, field: str, columns: data.Columns, world: int) -> dict[str, Any]:
    values = [v for v in costs(columns[field]) if v == v]
    bounds = sorted(filter(math.isfinite, {rng.choice(values), rng.choice(values)})) or None if values and rng.random() < 0.5 else None
    most = max([1, *values]) * world
    budget = 60 * round(most * rng.choice([0.5, 1, 3, 20]) / 60) if most < 1e9 and rng.random() < 0.4 else None  # of all ranks: 1 to 6 divide it
    return {"kind": "bucket", "field": field, "bounds": bounds, "buckets": rng.randint(1, 6), "budget": budget, "multiple": world}


def _mix(rng: random.Random, sizes: list[int]) -> dict[str, Any]:
    def weights() -> list[float]:
        return [rng.choice([0, 1, 2, 0.5, rng.random() + 0.01]) for _ in sizes[1:]] + [rng.choice([1, 2, rng.random() + 0.01])]

    schedule = rng.choice([None, {0: weights()}, {0: weights()}, {0: weights(), **{rng.randint(1, 40): weights() for _ in range(rng.randint(1, 3))}}])
    ends = rng.choice(["repeat", "repeat", "stop", "rescale"])
    return {
        "kind": "mix", "sizes": sizes, "schedule": schedule and dict(sorted(schedule.items())), "interpolate": rng.random() < 0.5,
        "temperature": rng.choice([1, 1, 2]), "per_batch": rng.random() < 0.2, "ends": ends,
        "num_samples": rng.choice([None, rng.randint(1, 3 * sum(sizes))]) if ends == "repeat" else None,
        "set": (rng.choice([0, 0, 1, 5]), weights()) if ends == "repeat" and rng.random() < 0.5 else None,
    }  # fmt: skip


def _sampler(rng: random.Random, n: int, global_batch: int, python_code: bool, depth: int = 0) -> dict[str, Any]:
    kinds = ["sequential", "shuffle", "shuffle", "block", "subset", "split"]
    if not python_code and not depth:
        kinds += ["weighted", "regions"]
    kind = rng.choice(kinds)
    found: dict[str, Any] = {"kind": kind}
    if kind == "block":
        found["size"] = rng.randint(1, 20)
    elif kind == "subset" and rng.random() < 0.5:
        most = n if rng.random() < 0.95 else n + 1  # one that does not exist
        found["indices"] = [rng.randrange(most) for _ in range(rng.randint(1, 2 * n))]
    elif kind == "subset":
        found["ranges"] = []
        for _ in range(rng.randint(1, 3)):
            start = rng.randrange(n)
            found["ranges"].append([start, rng.randint(start + 1, n)])
    elif kind == "split":
        start, stop = sorted((round(rng.random(), 2), round(rng.random(), 2)))
        found |= {"start": start, "stop": stop if start < stop else min(1.0, start + 0.5), "seed": rng.randrange(100)}
        if found["start"] >= found["stop"]:
            found["start"] = 0.0
    elif kind == "weighted":
        found["weights"] = [rng.choice([0, 1, 1, 2.5, rng.random()]) for _ in range(n if rng.random() < 0.95 else n + 1)]
        found["num_samples"] = rng.choice([None, rng.randint(1, 2 * n)])
        found["once"] = rng.random() < 0.5
        if found["once"] and rng.random() < 0.9:
            found["num_samples"] = rng.randint(1, max(1, sum(w > 0 for w in found["weights"])))
    elif kind == "regions":
        found["count"] = rng.choice([1, 2, 3, global_batch])
        found["inner"] = rng.choice([None, {"kind": "sequential"}, {"kind": "block", "size": rng.randint(1, 9)}, {"kind": "shuffle"}])
    if kind in ("subset", "split") and depth < 2 and rng.random() < 0.5:
        m = n
        if kind == "subset":
            m = len(found["indices"]) if "indices" in found else sum(b - a for a, b in found["ranges"])
        elif kind == "split":
            m = round(n * found["stop"]) - round(n * found["start"])
        if m:
            found["inner"] = _sampler(rng, m, global_batch, python_code, depth + 1)
    return found


def picked(program: Program) -> data.Columns:
    """Return the dataset after the views."""
    columns = program.columns
    for step in program.views:
        columns = views.apply(step, columns)
    return columns


def final(program: Program) -> tuple[data.Columns, list[int]]:
    """Return the records that the sampler chooses from, before transforms, and their numbers in the dataset."""
    columns = picked(program)
    columns = views.picked(columns, list(range(views.size(columns))) * program.parts)
    numbers = list(range(views.size(columns)))
    if program.where:
        numbers = [i for i in numbers if views.holds(program.where, columns)[i]]
    return views.picked(columns, numbers), numbers


@dataclasses.dataclass
class Step:
    """A batch: its records' numbers in the dataset, which of them are no repetition, and its fields."""

    records: list[int]
    mask: list[bool]
    fields: dict[str, Any]


def expect(program: Program, epoch: int, rank: int, world: int, start: int = 0, sampler: dict[str, Any] | None = None) -> list[Step]:
    """Return the batches of an epoch from a step on, for a rank, with another sampler if one is given; raise order.Refused for what is an error."""
    sampler = sampler or {**program.sampler, "set": None}
    columns, numbers = final(program)
    global_batch = program.batch * program.world
    if sampler["kind"] == "bucket":
        values = costs(columns[sampler["field"]])
        if any(v != v for v in values):
            raise order.Refused("a record that is in no bucket")
        batches = order.buckets(sampler, values, global_batch, program.seed, epoch, program.drop_last)
        divided = [order.parts_of(b, rank, world) for b in batches]
    else:
        records = order.epoch_of(sampler, views.size(columns), program.seed, epoch, global_batch)
        divided = order.steps_of(records, global_batch // world, rank, world, program.drop_last)
    if not divided and program.container != "python":
        raise order.Refused("an epoch without a batch")  # torch has an empty one, in which a program waits for what never comes
    found = []
    for chosen, mask in divided[start:]:
        fields = views.batch(columns, chosen)
        if program.transforms and "images" in fields:
            images = [pixels.apply(program.transforms, image) for image in fields["images"]]
            if program.container == "raw" and all(s["name"] != "ToTensor" for s in program.transforms):
                images = [np.moveaxis(image, 0, 2) for image in images]  # as Pillow's images are to NumPy
            fields["images"] = np.stack(images)
        found.append(Step([numbers[r] for r in chosen], mask, fields))
    return found
