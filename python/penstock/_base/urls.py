"""Secrets of URLs: what is shown of a URL, and how a program gets one that other users of the machine do not see."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

# The patterns are the same as in remote.RedactURLs in Go: both programs log URLs, and both must hide the same secrets.
_LOGIN = re.compile(r"(://)(?:[^/?#\s\"'@:]*:[^\s\"']*|[^/?#\s\"'@]*)@")
_QUERY = re.compile(r"\b([a-z][a-z0-9+.-]*)(://[^?\s\"'<>`]*\?)([^\s\"'<>`]+)", re.IGNORECASE | re.ASCII)
_OPEN = re.compile(r"(?:region|endpoint|profile|anonymous|use_path_style|storage_account|domain|protocol|localemu)=[\w.:/+-]*", re.ASCII)
_CLOSING = re.compile(r"[.,;:!?)\]}\\]*\Z")


_LONGEST = 8000
_UNINDENTED = re.compile(r"\n(?=[^\s])")


def line(text: str) -> str:
    """Return text for one line of a terminal: characters that cannot be printed are escaped, line breaks too."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable(text: str) -> str:
    """Return text for a terminal: ``line`` of each of its lines."""
    return "\n".join(map(line, text.split("\n")))


def bounded(text: str) -> str:
    """Return the text of an error without its middle, if it is too long to read."""
    if len(text) <= _LONGEST:
        return text
    first, last = text[: _LONGEST // 2], text[-_LONGEST // 4 :]
    return f"{first} ... ({len(text) - len(first) - len(last)} characters are left out) ... {last}"


def shown(text: str) -> str:
    """Return text for a terminal: ``printable``, and with each line after the first indented."""
    return _UNINDENTED.sub("\n  ", printable(text))


def redacted(text: str) -> str:
    """Return text without the users, passwords and options of URLs, but for options of buckets that everybody may see, such as a region."""
    if "://" not in text:
        return text
    return _QUERY.sub(_options, _LOGIN.sub(r"\1REDACTED@", text))


def _options(found: re.Match[str]) -> str:
    scheme, middle, options = found.groups()
    closing = _CLOSING.search(options)
    end = closing[0] if closing else ""
    bucket = scheme.lower() in ("s3", "gs", "azblob")
    shown: list[str] = []
    for part in options[: len(options) - len(end)].split("&"):
        part = part if not part or (bucket and _OPEN.fullmatch(part)) else "REDACTED"
        if [part] != shown[-1:]:
            shown.append(part)
    return scheme + middle + "&".join(shown) + end


#: URLs in temporary files for programs, by the name of a variable of the environment that stands for each.
_hidden: dict[str, str] = {}


def hold(url: str, names: list[str]) -> str:
    """Return a name by which programs that are started from now on know a URL, and add it to the names that are to be released."""
    names.append(f"PENSTOCK_URL_{os.urandom(8).hex()}")
    _hidden[names[-1]] = url
    return names[-1]


def value(name: str) -> str:
    """Return the URL of a name of ``hold``, which may have a folder in front; another text is returned as it is."""
    return _hidden.get(os.path.basename(name), name)


def release(names: list[str]) -> None:
    """Forget names of ``hold``."""
    for name in names:
        _hidden.pop(name, None)


def hidden(command: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of subprocess.Popen for a command, whose URLs are in the environment: all users see command lines.

    The twin in Go is package shell.
    """
    names = {f"PENSTOCK_URL_{i}": argument for i, argument in enumerate(command) if i and "://" in argument}
    arguments = [name if (name := f"PENSTOCK_URL_{i}") in names else argument for i, argument in enumerate(command)]
    return {"args": arguments, **({"env": {**os.environ, **_hidden, **names}} if names or _hidden else {})}
