"""A small S3 server for tests: one bucket in memory, with conditional writes and ranges."""

import hashlib
import http.server
import threading
import urllib.parse
from xml.sax.saxutils import escape


class Bucket:
    """A server with the bucket "lab". ``objects`` are by key; ``requests`` is a list of the requests."""

    def __init__(self):
        self.objects, self.requests, self.lock = {}, [], threading.Lock()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"bucket": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def url(self, key):
        host, port = self._server.server_address[:2]
        return f"s3://lab/{key}?region=us-east-1&use_path_style=true&endpoint=http://{host}:{port}"

    def web(self, key):
        host, port = self._server.server_address[:2]
        return f"http://{host}:{port}/lab/{key}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Say nothing of clients that leave before the answer is complete."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _key(self):
        parsed = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(parsed.query, keep_blank_values=True))
        key = urllib.parse.unquote(parsed.path).removeprefix("/lab").removeprefix("/")
        with self.bucket.lock:
            self.bucket.requests.append((self.command, key))
        return key

    def _answer(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _failed(self, code, what):
        self._answer(code, f"<Error><Code>{what}</Code><Message>{what}</Message></Error>".encode(), Content_Type="application/xml")

    def do_HEAD(self):
        key = self._key()
        data = self.bucket.objects.get(key)
        if data is None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        for name, value in {**_headers(data), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self):
        key = self._key()
        if not key:
            self._list()
            return
        data = self.bucket.objects.get(key)
        if data is None:
            self._failed(404, "NoSuchKey")
        elif self.headers.get("If-Match", _tag(data)) != _tag(data):
            self._failed(412, "PreconditionFailed")
        elif "Range" in self.headers:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            first, last = int(first), min(int(last) if last else len(data), len(data) - 1)
            if first >= len(data):
                self._failed(416, "InvalidRange")
                return
            self._answer(206, data[first : last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}", ETag=_tag(data), Last_Modified=_TIME)
        else:
            self._answer(200, data, ETag=_tag(data), Last_Modified=_TIME)

    def _list(self):
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        with self.bucket.lock:
            found = sorted((key, data) for key, data in self.bucket.objects.items() if key.startswith(prefix))
        folders, entries = set(), []
        for key, data in found:
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                entries.append(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{escape(_tag(data))}</ETag>"
                    f"<Size>{len(data)}</Size></Contents>"
                )
        entries += [f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders)]
        body = f'<?xml version="1.0"?><ListBucketResult><Name>lab</Name><IsTruncated>false</IsTruncated>{"".join(entries)}</ListBucketResult>'
        self._answer(200, body.encode(), Content_Type="application/xml")

    def do_PUT(self):
        key, data = self._key(), self.rfile.read(int(self.headers["Content-Length"]))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            data = _chunks(data)
        with self.bucket.lock:
            there = key in self.bucket.objects
            if not (there and self.headers.get("If-None-Match") == "*"):
                self.bucket.objects[key] = data
                there = False
        if there:
            self._failed(412, "PreconditionFailed")
        else:
            self._answer(200, ETag=_tag(data))

    def do_DELETE(self):
        with self.bucket.lock:
            self.bucket.objects.pop(self._key_unlocked(), None)
        self._answer(204)

    def _key_unlocked(self):
        return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).removeprefix("/lab/")


_TIME = "Thu, 01 Jan 2026 00:00:00 GMT"


def _tag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def _headers(data):
    return {"ETag": _tag(data), "Last-Modified": _TIME}


def _chunks(data):
    """Return the content of a body in chunks: a length in hexadecimal digits and a signature, a line, and the bytes."""
    out, at = b"", 0
    while True:
        end = data.index(b"\r\n", at)
        size = int(data[at:end].split(b";")[0], 16)
        if size == 0:
            return out
        out += data[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
