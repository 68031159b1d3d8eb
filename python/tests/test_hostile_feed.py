import contextlib
import fcntl
import json
import os
import socket
import struct
import tempfile
import threading
import unittest
from unittest import mock

import penstock
from penstock._engine import process, session, wire

from . import data

SIZE = 1 << 16
STARTED = {"number": 1, "started": {"epoch": 0, "step": 0}}


def frame(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack("<I", len(body)) + body


def fill(fd):
    """Make shared memory of SIZE bytes: zeros, but for offsets at 4096 and 8192, and wrong ones at 12288."""
    os.ftruncate(fd, SIZE)
    os.pwrite(fd, struct.pack("<3q", 0, 3, 8), 4096)
    os.pwrite(fd, struct.pack("<3i", 0, 1, 8), 8192)
    os.pwrite(fd, struct.pack("<3q", 0, -3, 8), 12288)


def memfd(seals=None):
    fd = os.memfd_create("penstock-hostile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fill(fd)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK if seals is None else seals)
    return fd


def field(name="x", dtype="uint8", shape=(4,), **more):
    return {"name": name, "dtype": dtype, "storage": {"uint8": "|u1"}.get(dtype, dtype), "shape": list(shape), **more}


def welcome(**parts):
    fields = [field(), field("t", ragged=True, shape=())]
    return {"version": 4, "records": 4, "batches": 2, "slots": 4, "fields": fields, "state": {"v": 1, "epoch": 0, "step": 0}, **parts}


def batch(**parts):
    places = [{"at": 0}, {"at": 64, "rows": 8, "offsets": 4096}]
    return {"slot": 0, "count": 2, "epoch": 0, "step": 0, "next": [0, 1], "size": SIZE, "indices": 512, "mask": 1024, "fields": places, **parts}


def serve(test, act):
    """Return the argument of a DataLoader by which it gets a feed that does what a function says with its connection."""
    if data.NATIVE:
        return {"socket": Feed(test, act).path}

    def start(datasets, flags, command, files):
        ours, theirs = socket.socketpair()
        memory = os.dup(files["memory"].fd)

        def run():
            with theirs, contextlib.suppress(OSError):
                theirs.settimeout(10)
                act(Peer(theirs, memory))
            os.close(memory)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        test.addCleanup(thread.join, 10)
        return None, ours

    patch = mock.patch.object(process, "start", start)
    patch.start()
    test.addCleanup(patch.stop)
    return {"dataset": data.path("images")}


class Feed:
    """A feed that listens, and does what a function says with its connection."""

    def __init__(self, test, act):
        folder = tempfile.mkdtemp(prefix="penstock-hostile-")
        self.path = os.path.join(folder, "s")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._act = act
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        test.addCleanup(os.rmdir, folder)
        test.addCleanup(os.unlink, self.path)
        test.addCleanup(self.end)

    def end(self):
        self._listener.close()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _serve(self):
        connection, _ = self._listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(10)
            self._act(Peer(connection))


class Peer:
    """The client, as the feed sees it."""

    def __init__(self, connection, memory=None):
        self.connection, self.memory = connection, memory  # inherited, if there is one

    def hear(self):
        """Read a message."""
        (n,) = struct.unpack("<I", self.connection.recv(4, socket.MSG_WAITALL))
        return json.loads(self.connection.recv(n, socket.MSG_WAITALL))

    def say(self, *messages):
        for m in messages:
            self.connection.sendall(frame(m))

    def greet(self, message=None, fds=None):
        self.hear()
        answer = frame({"welcome": welcome()} if message is None else message)
        if self.memory is not None:
            fill(self.memory)
            self.connection.sendall(answer)
            return
        fds = [memfd()] if fds is None else fds
        socket.send_fds(self.connection, [answer], fds)
        for fd in fds:
            os.close(fd)

    def wait(self):
        """Wait until the client has gone."""
        while self.connection.recv(1 << 16):
            pass


def greeting(message=None, fds=None):
    """Return a feed that answers the hello so, and then nothing."""

    def act(peer):
        peer.greet(message, fds and fds())
        peer.wait()

    return act


def answering(*messages):
    """Return a feed that greets as it should, and answers the start with messages."""

    def act(peer):
        peer.greet()
        peer.hear()
        peer.say(*messages)
        peer.wait()

    return act


def batches(**parts):
    """Return a feed whose batch is another than it should be in some parts."""
    return answering(STARTED, {"batch": batch(**parts)})


def showing(ready=1 << 8, where=None, after=(), passed=list, **parts):
    """Return a feed that shows one batch by positions, and is wrong in some parts."""
    header = {"epoch": 0, "step": 0, "epoch_after": 0, "step_after": 1, "count": 2, "messages": 0, "size": SIZE}
    header |= {"indices": 512, "mask": 1024, "at": 0, "file": 0}
    places = {"at": 16384, "slots": 4, "headers": 256, "stride": 128, **(where or {})}

    def act(peer):
        fd = memfd() if peer.memory is None else peer.memory
        peer.greet({"welcome": welcome(fields=[field()], positions=places, size=SIZE)}, [os.dup(fd)] if peer.memory is None else None)
        with contextlib.suppress(struct.error):  # of a client that has refused the greeting
            peer.hear()
        os.pwrite(fd, struct.pack("<11q", *{**header, **parts}.values()), 16384 + 256)
        os.pwrite(fd, struct.pack("<Q", ready), 16384 + 8 * 24)
        if peer.memory is None:
            os.close(fd)
        peer.say(STARTED, *after)
        for fd in passed():
            socket.send_fds(peer.connection, [frame({"file": "x.npy", "number": 1})], [fd])
            os.close(fd)
        peer.wait()

    return act


def closing(data):
    """Return a feed that closes the connection after some bytes."""

    def act(peer):
        peer.hear()
        peer.connection.sendall(data)

    return act


def endless(peer):
    peer.hear()
    peer.connection.sendall(struct.pack("<I", 1 << 31))
    while True:
        peer.connection.sendall(bytes(1 << 16))


def dribble(peer):
    """Send a byte of a frame at a time, without end."""
    peer.hear()
    peer.connection.sendall(struct.pack("<I", 1 << 20))
    pause = threading.Event()
    while not pause.wait(0.01):
        peer.connection.sendall(b" ")


def shrinking(peer):
    """Pass memory without the seal, and shrink it once it may be mapped."""
    fd = memfd(seals=0)
    with os.fdopen(os.dup(fd), "rb+") as f:
        peer.greet(fds=[fd])
        f.truncate(0)
        peer.wait()


def deaf(peer):
    """Send batches that the client has to give back, and read nothing."""
    peer.greet()
    peer.hear()
    while True:
        peer.say({"batch": batch()})


def many_descriptors(peer):
    peer.hear()
    for byte in frame({"welcome": welcome()}):
        fd = memfd()
        socket.send_fds(peer.connection, [bytes([byte])], [fd])
        os.close(fd)
    peer.wait()


def after(*messages):
    return answering(STARTED, *messages)


def device():
    return [os.open("/dev/zero", os.O_RDWR)]


def plain_file():
    fd, name = tempfile.mkstemp()
    os.unlink(name)
    os.ftruncate(fd, SIZE)
    return [fd]


def sealed_for_writing():
    return [memfd(fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE)]


NESTED = b'{"welcome":' + b"[" * 200_000
FORMAT = "what answers there is not a feed|unexpected message from feed"
GONE = "the feeding process has ended"
SILENT = "no answer of the feeding process in time"
SHAPE = "is no shape|is not a whole number"

#: Attacks by what is passed as memory, and the client's errors.
PASSED = {
    "no memory": (greeting(fds=lambda: []), "passed no memory|what answers there"),
    "a device as memory": (greeting(fds=device), "sealed against shrinking"),
    "a file as memory": (greeting(fds=plain_file), "sealed against shrinking"),
    "memory that shrinks": (shrinking, "sealed against shrinking"),
    "memory that cannot be written": (
        lambda peer: (peer.greet(fds=sealed_for_writing()), peer.hear(), peer.say(STARTED, {"batch": batch()})),
        "cannot be mapped",
    ),
    "a descriptor with each byte": (many_descriptors, "several descriptors"),
    "a device as a file": (showing(passed=device, messages=3, file=1), "no plain file"),
    "two files of one number": (showing(passed=lambda: plain_file() + plain_file(), messages=4, file=1), "which is another one"),
    "a shown field beyond its file": (showing(passed=plain_file, messages=3, file=1, at=SIZE), "it was truncated"),
    "a shown field before its file": (showing(passed=plain_file, messages=3, file=1, at=-4), FORMAT),
    "another file": (showing(passed=plain_file, messages=3, file=2), FORMAT),
}

#: Other attacks of a hostile feed.
ATTACKS = {
    "frame of 4 GiB": (closing(struct.pack("<I", 0xFFFFFFFF)), FORMAT),
    "endless frame": (endless, FORMAT),
    "a byte at a time": (dribble, SILENT),
    "silence at the hello": (lambda peer: peer.wait(), SILENT),
    "silence at the start": (greeting(), SILENT),
    "silence after the start": (answering(STARTED), SILENT),
    "closed at once": (lambda peer: None, GONE),
    "closed in a length": (closing(b"\x10\0"), GONE),
    "closed in a frame": (closing(frame({"welcome": welcome()})[:40]), GONE),
    "closed in a batch": (lambda peer: (peer.greet(), peer.hear(), peer.connection.sendall(frame({"batch": batch()})[:40])), GONE),
    "empty frame": (closing(frame(b"")), FORMAT),
    "not UTF-8": (closing(frame(b"\xff" * 100)), FORMAT),
    "a list": (closing(frame(b"[]")), FORMAT),
    "nested lists": (closing(frame(NESTED)), FORMAT),
    "a number of 10,000 digits": (closing(frame(b'{"welcome":' + b"9" * 10_000 + b"}")), FORMAT),
    "another message": (greeting({"batch": batch()}), FORMAT),
    "unknown message": (greeting({"wecome": {}}), FORMAT),
    "welcome that is a list": (greeting({"welcome": []}), FORMAT),
    "welcome without parts": (greeting({"welcome": {}}), FORMAT),
    "negative records": (greeting({"welcome": welcome(records=-1)}), FORMAT),
    "2^70 batches": (greeting({"welcome": welcome(batches=1 << 70)}), FORMAT),
    "10^9 slots": (greeting({"welcome": welcome(slots=10**9)}), FORMAT),
    "slots that are true": (greeting({"welcome": welcome(slots=True)}), FORMAT),
    "state that is a list": (greeting({"welcome": welcome(state=[])}), FORMAT),
    "fields that are numbers": (greeting({"welcome": welcome(fields=[1])}), "not an object"),
    "field of Python objects": (greeting({"welcome": welcome(fields=[field(dtype="O")])}), "unknown dtype .* with storage"),
    "field of another size": (greeting({"welcome": welcome(fields=[{**field(), "storage": "<f8"}])}), "unknown dtype .* with storage"),
    "field with a name that leads out": (greeting({"welcome": welcome(fields=[field("../x")])}), "a name is"),
    "two fields of one name": (greeting({"welcome": welcome(fields=[field(), field()])}), FORMAT),
    "negative shape": (greeting({"welcome": welcome(fields=[field(shape=(-4,))])}), SHAPE),
    "shape of 2^80 values": (greeting({"welcome": welcome(fields=[field(shape=(1 << 40, 1 << 40))])}), SHAPE),
    "classes that are a number": (greeting({"welcome": welcome(fields=[field(classes=7)])}), "is not a list"),
    "started elsewhere": (answering({"number": 1, "started": {"epoch": 7, "step": 0}}, {"batch": batch(epoch=7)}), FORMAT),
    "started in words": (answering({"number": 1, "started": {"epoch": "x", "step": None}}), FORMAT),
    "batch that is a number": (after({"batch": 5}), FORMAT),
    "count too large": (batches(count=3), FORMAT),
    "count negative": (batches(count=-1), FORMAT),
    "count not a number": (after(json.dumps({"batch": batch()}).replace('"count": 2', '"count": NaN').encode()), FORMAT),
    "size beyond the memory": (batches(size=SIZE * 2), "cannot be mapped"),
    "size of 2^62": (batches(size=1 << 62), "cannot be mapped"),
    "size negative": (batches(size=-1), FORMAT),
    "size of nothing": (batches(size=0), FORMAT),
    "values beyond": (batches(fields=[{"at": SIZE}, {"at": 64, "rows": 8, "offsets": 4096}]), FORMAT),
    "values before": (batches(fields=[{"at": -64}, {"at": 64, "rows": 8, "offsets": 4096}]), FORMAT),
    "values in between": (batches(fields=[{"at": 1}, {"at": 64, "rows": 8, "offsets": 4096}]), FORMAT),
    "values at 0.5": (batches(fields=[{"at": 0.5}, {"at": 64, "rows": 8, "offsets": 4096}]), FORMAT),
    "place that is text": (batches(fields=["x", "y"]), FORMAT),
    "one array too few": (batches(fields=[{"at": 0}]), FORMAT),
    "one array too many": (batches(fields=[{"at": 0}] * 3), FORMAT),
    "rows beyond": (batches(fields=[{"at": 0}, {"at": 64, "rows": 1 << 40, "offsets": 4096}]), FORMAT),
    "offsets beyond the rows": (batches(fields=[{"at": 0}, {"at": 64, "rows": 7, "offsets": 4096}]), "offsets that do not go"),
    "offsets that go back": (batches(fields=[{"at": 0}, {"at": 64, "rows": 8, "offsets": 12288}]), "offsets that do not go"),
    "offsets beyond": (batches(fields=[{"at": 0}, {"at": 64, "rows": 8, "offsets": SIZE}]), FORMAT),
    "indices beyond": (batches(indices=SIZE), FORMAT),
    "mask beyond": (batches(mask=SIZE), FORMAT),
    "cu_seqlens beyond": (batches(cu_seqlens={"at": SIZE, "rows": 3}), FORMAT),
    "cu_seqlens that go back": (batches(cu_seqlens={"at": 12288, "rows": 3}), "offsets that do not go"),
    "cu_seqlens of 10^12": (batches(cu_seqlens={"at": 0, "rows": 10**12}), FORMAT),
    "slot negative": (batches(slot=-1), FORMAT),
    "slot beyond": (batches(slot=4), FORMAT),
    "next before": (batches(next=[0, -1]), FORMAT),
    "next far away": (batches(next=[0, 1 << 60]), FORMAT),
    "next in words": (batches(next=["x", {}]), FORMAT),
    "next of three": (batches(next=[0, 1, 2]), FORMAT),
    "the same batch again and again": (after(*[{"batch": batch(next=[0, 0], slot=i % 4)} for i in range(8)]), FORMAT),
    "batches without end": (deaf, FORMAT),
    "an answer to a request that comes": (answering({**STARTED, "number": 2}), FORMAT),
    "an answer without a number": (answering({"started": {"epoch": 0, "step": 0}}), FORMAT),
    "an answer that was not asked for": (after({"number": 0, "stats": {}}, {"number": 1, "stats": {}}), FORMAT),
    "error that is a number": (answering({"error": 5}), FORMAT),
    "error with what a terminal obeys": (answering({"error": "\x1b]0;owned\x07"}), r"\\x1b\]0;owned\\x07"),
    "failure that is a list": (after({"failed": []}), FORMAT),
    "skipped that is an object": (after({"skipped": {}}), FORMAT),
    "positions beyond": (showing(where={"at": SIZE}), FORMAT),
    "positions of no room": (showing(where={"slots": 3}), FORMAT),
    "headers in the rings": (showing(where={"headers": 64}), FORMAT),
    "headers that overlap": (showing(where={"stride": 64}), FORMAT),
    "positions that are a list": (greeting({"welcome": welcome(fields=[field()], positions=[], size=SIZE)}), FORMAT),
    "positions of lengths": (greeting({"welcome": welcome(positions={"at": 0, "slots": 4, "headers": 256, "stride": 128}, size=SIZE)}), FORMAT),
    "a shown slot beyond": (showing(ready=1 << 8 | 4), FORMAT),
    "a shown batch that is another": (showing(step=1), FORMAT),
    "a shown batch of another epoch": (showing(epoch=1), FORMAT),
    "a shown batch that nothing follows": (showing(step_after=0), FORMAT),
    "a shown batch of many records": (showing(count=3), FORMAT),
    "a shown batch of less than none": (showing(count=-1), FORMAT),
    "a shown field beyond": (showing(at=SIZE), FORMAT),
    "a shown field below": (showing(at=-64), FORMAT),
    "shown indices beyond": (showing(indices=SIZE), FORMAT),
    "a shown mask beyond": (showing(mask=SIZE - 1), FORMAT),
    "a shown size beyond": (showing(size=1 << 40), FORMAT),
    "messages that do not come": (showing(messages=1 << 40), "no answer"),
    "a batch that does not come": (showing(ready=0), "no answer"),
    "wakes without end": (showing(ready=0, after=[{"awake": True}] * 100), "no answer"),
    "a file that was not passed": (showing(file=1), FORMAT),
    "a file without a descriptor": (showing(messages=3, file=1, after=[{"file": "x", "number": 1}]), "passed no"),
    "done without end": (showing(ready=0, after=[{"done": "1", "number": i} for i in range(100)]), FORMAT),
}


@data.needs_proc
class TestHostileFeed(unittest.TestCase):
    def setUp(self):
        for module, name, value in ((session, "_OPENING", 0.3), (session, "_GRACE", 0.2), (wire, "_UNREAD", 0.3)):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def use(self, act):
        """Use what a feed sends, as a trainer does."""
        with penstock.DataLoader(**serve(self, act), batch_size=2, output="numpy", timeout=0.1) as loader:
            return [(b.indices.tolist(), b["x"].sum(), [len(r) for r in b["t"]]) for b in loader]

    def test_honest(self):
        """Messages without an attack are accepted."""
        second = batch(step=1, slot=1, next=[1, 0], cu_seqlens={"at": 8192, "rows": 3})
        with self.assertLogs("penstock", "WARNING"):
            got = self.use(after({"batch": batch()}, {"skipped": "record 7"}, {"batch": second}))
        self.assertEqual(got, [([0, 0], 0, [3, 5])] * 2)

    def test_honest_positions(self):
        with penstock.DataLoader(**serve(self, showing()), batch_size=2, output="numpy", timeout=0.1) as loader:
            first = next(iter(loader))
            self.assertEqual((first.indices.tolist(), first["x"].shape, first.step), ([0, 0], (2, 4), 0))

    def test_attacks(self):
        before = len(os.listdir("/proc/self/fd"))
        for name, (act, why) in {**ATTACKS, **(PASSED if data.NATIVE else {})}.items():
            with self.subTest(name), self.assertRaisesRegex(penstock.Error, why):
                self.use(act)
            self.doCleanups()
            self.setUp()
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before + 3, "descriptors stay open")


if __name__ == "__main__":
    unittest.main()
