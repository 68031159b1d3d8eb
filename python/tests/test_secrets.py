"""Secrets of URLs: a login and options are in no command line, no file and no text."""

from __future__ import annotations

import base64
import contextlib
import http.server
import io
import json
import os
import pickle
import shutil
import subprocess
import tempfile
import threading
import traceback
import unittest
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import penstock
from penstock._base import files, urls

from . import data

LOGIN, WORD, TOKEN = "s3cretuser", "s3cretword", "s3crettoken"
SECRETS = (LOGIN, WORD, TOKEN, base64.b64encode(f"{LOGIN}:{WORD}".encode()).decode())


def setUpModule() -> None:
    data.name_programs()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ranges of files to those who know the login and the options."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        known = query == f"zz={TOKEN}" and self.headers.get("Authorization") == "Basic " + SECRETS[3]
        file = os.path.join(self.server.folder, path.lstrip("/"))  # type: ignore[attr-defined]
        if not known or not os.path.isfile(file):
            self.send_response(404 if known else 403)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        with open(file, "rb") as f:
            body = f.read()
        size, code = len(body), 200
        if (asked := self.headers.get("Range", "")).startswith("bytes="):
            first, last = asked[6:].split("-")
            begin, end = (int(first), min(int(last or size - 1), size - 1)) if first else (size - int(last), size - 1)
            body, code = body[begin : end + 1], 206
        self.send_response(code)
        if code == 206:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("ETag", f'"{size}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class SecretsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.base = tempfile.mkdtemp(prefix="penstock-python-")
        self.addCleanup(shutil.rmtree, self.base)
        self.folder, self.tmp, self.log = (os.path.join(self.base, name) for name in ("served", "tmp", "log"))
        os.mkdir(self.tmp)
        os.mkdir(self.folder)
        shutil.copytree(data.path("images"), os.path.join(self.folder, "images"))
        with open(os.path.join(self.folder, "t.csv"), "w") as f:
            f.write("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(50)))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.folder = self.folder  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.host = f"127.0.0.1:{server.server_address[1]}"
        self.said: list[str] = []
        env = {name: self.recording(os.environ[name]) for name in ("PENSTOCK_FEED", "PENSTOCK_PREPROCESS", "PENSTOCK_PROGRAM")}
        patch = mock.patch.dict(os.environ, {**env, "TMPDIR": self.tmp, "XDG_CACHE_HOME": os.path.join(self.base, "cache"), "HOME": self.base})
        patch.start()
        self.addCleanup(patch.stop)
        for target, name, value in ((tempfile, "tempdir", self.tmp), (files, "_own", None)):
            patched = mock.patch.object(target, name, value)
            patched.start()
            self.addCleanup(patched.stop)

    def url(self, name: str, scheme: str = "http") -> str:
        return f"{scheme}://{LOGIN}:{WORD}@{self.host}/{name}?zz={TOKEN}"

    def recording(self, program: str) -> str:
        """Return a program that notes its command line, and that of the process that it becomes."""
        path = os.path.join(self.base, os.path.basename(program))
        with open(path, "w") as f:
            f.write(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {self.log}\nexec {program} "$@"\n')
        os.chmod(path, 0o755)
        return path

    def said_by(self, act: Callable[[], Any]) -> Any:
        """Call a function, and note what it says: its result, its exception, its warnings, what it prints."""
        out = io.StringIO()
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            warnings.simplefilter("always")
            try:
                result = act()
                self.said.append(repr(result) + str(result))
            except Exception:
                result = None
                self.said.append(traceback.format_exc())
        self.said += [out.getvalue(), *(str(w.message) for w in warned)]
        return result

    def run_program(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of a user, who gives the URL as its argument."""
        done = subprocess.run([data.penstock(), *arguments], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=60)
        self.said += [f"penstock {urls.redacted(str(arguments))} {stream}: {text}" for stream, text in (("out", done.stdout), ("err", done.stderr))]
        return done

    def told(self) -> list[str]:
        """Return what has a secret."""
        found = [text for text in self.said if any(s in text for s in SECRETS)]
        for folder, _, names in os.walk(self.base):
            if folder.startswith(self.folder):
                continue
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    content = f.read() + os.path.join(folder, name).encode()
                for s in SECRETS:
                    at = content.find(s.encode())
                    if at >= 0:
                        found.append(f"{folder}/{name}: {content[max(0, at - 100) : at + 100]!r}")
        return found

    def use(self, scheme: str, url: str) -> None:
        ds = self.said_by(lambda: penstock.open(url))
        self.assertIsNotNone(ds, self.said[-2:])
        said = self.said_by
        said(lambda: ds["none"])
        said(lambda: ds.select([1]))
        said(lambda: ds[3]["labels"])
        said(ds.verify)
        said(lambda: penstock.open(url, ["none"]))
        said(lambda: penstock.open(url, split="none"))
        said(lambda: penstock.open(url, generation=7))
        said(lambda: penstock.open(self.url("missing", scheme)))
        said(lambda: penstock.open(self.url("images", "ftp")))
        said(lambda: penstock.open(url + "'x y"))
        said(lambda: ds.add_column("x", np.zeros(len(ds))))
        said(lambda: ds.delete([1]))
        view = ds.select([5, 3])
        said(lambda: view.save(os.path.join(self.base, "v.view.json")))
        said(lambda: view["none"])
        said(lambda: ds.filter("nothing > 1"))
        said(lambda: len(ds.filter("labels > 0")))
        self.assertIsNotNone(said(lambda: penstock.open(view.path)[0]["labels"]), self.said)
        self.assertEqual(len(pickle.loads(pickle.dumps(view))), 2)
        for dataset in (url, ds, view, [ds, ds]):
            loader = said(lambda dataset=dataset: penstock.DataLoader(dataset, 200, output="numpy"))
            self.assertIsNotNone(loader, self.said)
            said(lambda loader=loader: [len(b.indices) for b in loader])
            said(loader.stats)
            said(loader.diagnose)
            said(loader.explain)
            said(lambda loader=loader: json.dumps(loader.state_dict()))
            said(lambda dataset=dataset: penstock.DataLoader(dataset, 200, fields=["none"]))
            said(lambda dataset=dataset: penstock.DataLoader(dataset, 200, filters="none > 1"))
            said(lambda loader=loader: penstock.loadbench(loader, 0.0, epochs=1))
            loader.close()
        said(lambda: penstock.DataLoader([url, self.url("missing", scheme)], 2))
        said(lambda: penstock.DataLoader([ds, penstock.open(url, split="none")], 2))
        said(lambda: penstock.preprocess(url, os.path.join(self.base, f"copy-{scheme}")))
        said(lambda: penstock.preprocess(self.url("t.csv", scheme), os.path.join(self.base, f"table-{scheme}")))
        said(lambda: penstock.DataLoader(self.url("t.csv", scheme), 5, output="numpy"))
        said(lambda: penstock.preprocess(self.url("none.csv", scheme), os.path.join(self.base, "none")))

    def test_python(self) -> None:
        for scheme in ("http", "HTTP"):
            self.use(scheme, self.url("images", scheme))
        self.assertFalse(self.told(), "\n".join(self.told()))
        with open(self.log) as f:
            self.assertGreater(len(f.readlines()), 20)

    def test_commands(self) -> None:
        url, table, missing = self.url("images"), self.url("t.csv"), self.url("missing")
        self.assertEqual(self.run_program("inspect", url).returncode, 0, self.said)
        for scheme in ("HTTP", "htps"):
            at = self.url("images", scheme)
            self.run_program("inspect", at)
            self.run_program("inspect", "--json", at)
            self.run_program("preprocess", at, os.path.join(self.base, f"copy-{scheme}"))
            self.run_program("preprocess", self.url("t.csv", scheme), os.path.join(self.base, f"table-{scheme}"))
        for command in ("show", "stats", "report", "preview", "verify", "layout", "view", "hist", "tree", "diff"):
            self.run_program("inspect", command, url)
            self.run_program("inspect", command, "--json", *[url] * (1 + (command == "diff")))
            self.run_program("inspect", command, missing)
        for words in ("log @", "tag @ x", "restore @", "prune @", "column drop @ x", "delete --where true @", "cache pin @", "cache list"):
            self.run_program(*(url if w == "@" else w for w in words.split()))
        for at in (url, missing, table):
            self.run_program("loadbench", "--epochs", "1", "--batches", "4", "--train-step", "0s", *["--json"] * (at == url), at)
            self.run_program("inspect", "filter", at, "labels > 0", "-o", os.path.join(self.base, "f.view.json"))
            self.run_program("inspect", "select", at, "-o", os.path.join(self.base, "s.view.json"))
            self.run_program("inspect", "join", at, at, "--on", "labels", "-o", os.path.join(self.base, "j.view.json"))
            self.run_program("preprocess", "cache", at)
        self.run_program("preprocess", self.folder, url)
        for json_ in ([], ["--json"]):
            self.run_program("cache", "list", *json_)
        self.run_program("preprocess", "--json", table, os.path.join(self.base, "json"))
        self.run_program("inspect", os.path.join(self.base, "json"))
        self.run_program("doctor")
        self.assertFalse(self.told(), "\n".join(self.told()))

    def test_redacted_as_in_go(self) -> None:
        with open(os.path.join(data.HERE, "redacted.json"), encoding="utf-8") as f:
            cases = json.load(f)
        self.assertGreater(len(cases), 50)
        for case in cases:
            self.assertEqual(urls.redacted(case["text"]), case["want"], case["text"])
