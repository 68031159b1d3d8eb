"""The expected content of a source: expect(NAME, FIELDS, ROWS) writes NAME.expected.json beside the source NAME, with each value as the hex of
its bytes, or the reason why a row is bad; refuse(NAME, TEXT) says that it must be refused with that text."""
import json, os, sys
import numpy as np

count = 0


def hexed(value):
    if isinstance(value, str):
        value = value.encode()
    return bytes(value).hex() if isinstance(value, (bytes, bytearray)) else np.ascontiguousarray(value).tobytes().hex()


def write(name, **what):
    global count
    assert os.path.exists(name), name
    count += 1
    with open(name.rstrip("/") + ".expected.json", "w") as f:
        json.dump(what, f)


def expect(name, fields, rows, flag="", kind="", classes=None):
    """fields are texts such as "x int64(3,)", "t uint8()* utf-8"; a row is a list of values or the reason why it is bad."""
    write(name, fields=fields, rows=[r if isinstance(r, str) else "|".join(hexed(v) for v in r) for r in rows], flag=flag, kind=kind, classes=classes or [])


def refuse(name, text, flag="", kind=""):
    write(name, refused=text, flag=flag, kind=kind)


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)
