"""The generations of a dataset in a folder, flat or Zarr: manifests by number, and the lock that keeps one while it is open."""

from __future__ import annotations

import errno
import os
import re
import weakref
from collections.abc import Callable
from typing import Any

from .._base.errors import CorruptError, Error, NotFoundError
from .._base.expected import WHOLE, parse
from .._base.files import open_in
from .._base.urls import redacted
from .column import explained, reserve
from .layout import ZARR_MANIFEST

try:
    import fcntl
except ImportError:  # Windows keeps files that are open
    fcntl = None  # type: ignore[assignment]

FOLDER = "generations"

_NUMBER = re.compile(r"(\d{8})\.json\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}\Z")

#: The most bytes of the file of a tag.
_MAX_TAG = 1 << 16

#: How often a generation is locked again that got its own name just then.
_ATTEMPTS = 2

Manifest = dict[str, Any]


def split(path: str) -> tuple[str, str | None]:
    """Take a path such as ds@3 or ds@baseline apart, where nothing has that path and ds exists."""
    folder, at, generation = path.rpartition("@")
    if not at or not folder or not _TAG.match(generation) or os.path.lexists(path) or not os.path.exists(folder):
        return path, None
    return folder, generation


def options(url: str) -> tuple[str, str]:
    """Take the options off a URL. A path has no options."""
    if "://" not in url:
        return url, ""
    address, query, rest = url.partition("?")
    return address.rstrip("/"), query + rest


def at(path: str, generation: int | str) -> str:
    """Return the path or the URL of a generation of the dataset with this path or URL."""
    address, rest = options(path)
    return f"{address}@{generation}{rest}"


def _url(url: str, generation: int | str) -> str:
    """Return the URL of a dataset without the generation that it names, which must be the given generation."""
    address, rest = options(url)
    base, named = address.rpartition("@")[::2]
    if not base or not _TAG.match(named):
        return url
    if named != str(generation):
        raise ValueError(f"the URL {redacted(url)} names another generation than generation={generation!r}")
    return base + rest


def named_by(url: str, of: str) -> str | None:
    """Return the generation that a URL names, of the dataset in that folder; None if it names none."""
    address = options(url)[0]
    name = address.rpartition("@")[2]
    return name if address.endswith(f"{of.rpartition('/')[2]}@{name}") else None


def chosen(path: str, generation: int | str | None) -> tuple[str, int | str | None]:
    """Return the path of a dataset without its generation, and the generation; None is the newest."""
    folder, named = split(path)
    if generation is None:
        return folder, named
    if isinstance(generation, bool) or not isinstance(generation, (int, str)):
        raise TypeError(f"generation is {generation!r:.60}; it is the number of a generation, or a tag")
    if isinstance(generation, int) and generation < 1:
        raise ValueError(f"generation is {generation}; the first one is 1")
    if "://" in path:
        return _url(path, generation), generation
    if named is not None and named != str(generation):
        raise ValueError(f"the path says generation {named}, and generation={generation!r} another one")
    return folder, generation


def newest_name(path: str) -> str | None:
    """Return the name, inside the folder of a dataset, of the manifest of its newest generation; None if it is not one."""
    return next((n for n in ("manifest.json", ZARR_MANIFEST) if os.path.isfile(os.path.join(path, n))), None)


def name(number: int) -> str:
    """Return the name of the manifest of a generation inside the folder of its dataset."""
    return os.path.join(FOLDER, f"{number:08d}.json")


def numbers(path: str, newest: int) -> list[int]:
    """Return the numbers of the generations that a dataset keeps, in ascending order."""
    try:
        entries = os.listdir(os.path.join(path, FOLDER))
    except FileNotFoundError:
        entries = []
    found = [int(m[1]) for m in map(_NUMBER.match, entries) if m]
    return sorted({n for n in found if 0 < n < newest} | {newest})


def tags(path: str) -> dict[str, int]:
    """Return the numbers of generations by tag."""
    folder, found = os.path.join(path, FOLDER, "tags"), {}
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        tag, ending = os.path.splitext(entry)
        if ending != ".json" or not _TAG.match(tag):
            continue
        with open_in(path, os.path.join(folder, entry)) as f:
            text = f.read(_MAX_TAG)
        found[tag] = parse(text, {"generation": WHOLE}, f"{path}: tag {tag!r}", "the name of a generation")["generation"]
    return found


def read(path: str, generation: int | str | None, manifest: Callable[[str, str], Manifest]) -> Manifest:
    """Read the manifest of a generation, by its number or a tag; None is the newest."""
    newest = _newest(path, manifest)
    if generation is None:
        return newest
    number = _number(path, generation)
    if number == newest.get("generation"):
        return newest
    if not os.path.exists(os.path.join(path, name(number))):
        raise missing(path, number, numbers(path, newest.get("generation") or 0))
    return _checked(path, number, manifest(path, name(number)))


def _newest(path: str, manifest: Callable[[str, str], Manifest]) -> Manifest:
    """Read the manifest in the folder, or a later generation whose writer ended before it could replace that."""
    m = manifest(path, newest_name(path) or "manifest.json")
    while os.path.lexists(os.path.join(path, name((m.get("generation") or 0) + 1))):
        number = (m.get("generation") or 0) + 1
        m = _checked(path, number, manifest(path, name(number)))
    return m


def _checked(path: str, number: int, m: Manifest) -> Manifest:
    if m.get("generation") != number:
        raise CorruptError(f"{path}: {name(number)} is of generation {m.get('generation')!r:.20}")
    return m


def missing(path: str, number: int, kept: list[int]) -> Error:
    """Return the error for a generation that a dataset does not keep."""
    return NotFoundError(f"{path}: it keeps no generation {number}; it has {_joined(kept)}")


def _joined(numbers: list[int]) -> str:
    """Write numbers in ascending order: 1, 3 to 7, 9."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _number(path: str, generation: int | str) -> int:
    if isinstance(generation, int) or generation.isdecimal():
        return int(generation)
    known = tags(path)
    if generation not in known:
        raise NotFoundError(f"{path}: it has no tag {generation!r}; it has {', '.join(known) or 'none'}")
    return known[generation]


class GenerationLock:
    """The lock of a generation, until this object is collected."""

    def __init__(self, path: str, generation: int) -> None:
        descriptor = _lease(path, generation)
        if descriptor is not None:
            weakref.finalize(self, os.close, descriptor)


def _descriptor(folder: str, path: str) -> int:
    with open_in(folder, path) as f:
        return os.dup(f.fileno())


def _lease(path: str, generation: int) -> int | None:
    """Lock the generation of a dataset, so that no prune removes its files, and return the descriptor that holds the lock.

    None is returned on a system without locks. Raise Error if the generation was removed since it was read.
    """
    if fcntl is None:
        return None
    own = os.path.join(path, name(generation))
    for _ in range(_ATTEMPTS):
        try:
            try:
                descriptor = _descriptor(path, own)
            except FileNotFoundError:
                descriptor = _descriptor(path, os.path.join(path, newest_name(path) or "manifest.json"))
        except OSError as e:
            raise explained(path, e) from e
        reserve(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                os.close(descriptor)
                break
        if not os.path.exists(own) or os.path.samestat(os.stat(own), os.fstat(descriptor)):
            return descriptor
        os.close(descriptor)
    raise Error(f"{path}: generation {generation} was removed while it was being opened")
