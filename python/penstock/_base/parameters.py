"""Messages of programs in the words of this package: flags as parameters."""

from __future__ import annotations

import json
import re

#: Flags without a value, for sentences.
_SWITCHES = "append|dedup|keep-encoded|outside|overwrite|resume|stratify|view"

#: Flags with a word as their value, for sentences, and words that look like flags but are not.
_CHOICES = "align|alpha|cmyk|exif-orientation|from-|missing|names|normalize|on-error|sixteen-bit"
_NO_CHOICE = r"(?:and|false|for|is|leaves|of|or|out|says|takes|to|true)\b"
#: A value that is no word, such as a,b or x:label.
_VALUE = r"[^\s;]+,[^\s;]*[^\s;,:)]|[^\s;,]*[:\[*][^\s;,)]*[^\s;,:)]"

#: An entry of --fields, whose commas in brackets or quotes divide no entries.
_ENTRY = r'(?:"(?:[^"]|"")*"|\[[^\]]*\]|[^,"\[])+'


def in_python(text: str) -> str:
    """Return the message of a program with flags as parameters; commands to type stay as they are."""
    parts = re.split(r"(: (?:penstock|preprocess|inspect|tar) [^;]*)", text)
    return "".join(part if i % 2 else _parameters(part) for i, part in enumerate(parts))


def _parameters(text: str) -> str:
    """Return a text with flags of preprocess as parameters, and their values as strings."""
    text = re.sub(r"--stratify=([\w-]+)", r'stratify="\1"', text)
    text = re.sub(rf"--({_SWITCHES})\b", lambda m: m[1].replace("-", "_") + "=True", text)
    text = re.sub(r"--from\b", "--from-", text)
    text = re.sub(rf"(--fields) ([^\s;,]+)(?=;|$)|(--[a-z][a-z-]*) ('[^']*'|{_VALUE})", _assigned, text)
    text = re.sub(rf"--({_CHOICES}) (?!{_NO_CHOICE})([a-z][\w-]*)", r'--\1="\2"', text)
    return re.sub(r"(?<!tar )--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), text)


def _assigned(m: re.Match[str]) -> str:
    """Return a flag with its value: a list of entries of --fields, and a string of another flag."""
    flag, value = m[1] or m[3], (m[2] or m[4]).strip("'")
    if flag != "--fields":
        return f'{flag}="{value}"'
    return f"{flag}=[{', '.join(json.dumps(entry, ensure_ascii=False) for entry in re.findall(_ENTRY, value))}]"
