"""Tar and zip archives against tarfile, zipfile and webdataset: random members in random orders."""

import io
import itertools
import os
import random
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import unittest
import warnings
import zipfile
import zlib

import numpy as np
import webdataset

import penstock
from tests.peers import cases

FIELDS = {"bin": "bin", "txt": "text", "cls": "labels", "json": "json", "npy": "npy", "left.txt": "left"}
IMAGES = ("png", "jpg")  # both are PNG files, as their content says
PIECES = "twice|with the extension|follow each other|in another archive of the file"
REQUIRED = ("cls", "npy", *IMAGES)  # the others may have no bytes, as in a sample without them


def png(value):
    """Return a PNG file of one gray pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes([0, value]))) + chunk(b"IEND", b"")


def content(rng, extension):
    """Return the bytes of a member."""
    if extension == "bin":
        return rng.randbytes(rng.randrange(1, 700))
    if extension in IMAGES:
        return png(rng.randrange(256))
    if extension == "cls":
        return b"%d" % rng.randrange(10)
    if extension == "npy":
        file = io.BytesIO()
        np.save(file, np.array([rng.random() for _ in range(3)], "f4"))
        return file.getvalue()
    return f"words {rng.randrange(1000)}".encode()


def members(rng):
    """Return names and bytes: mostly samples as they should be, and sometimes not."""
    folders = rng.choice([[""], ["cat/", "dog/"], ["a/b/"], ["x.y/", "z/"]])
    pool = rng.choice(
        [["bin", "cls"], ["png", "cls"], ["png", "jpg"], ["png"], ["bin", "txt", "json"], ["jpg", "txt", "left.txt"], ["npy", "cls", "bin"]]
    )
    keys = [rng.choice(folders) + f"{rng.choice('abs')}{i}" for i in range(rng.randrange(1, 6))]
    if rng.random() < 0.1:
        keys.append(rng.choice(keys) + "-1")
    if rng.random() < 0.05:
        keys.append("long/" * 30 + "k" if folders == [""] else folders[0] + "k" * 80)
    found = [(k, e) for k in keys for e in pool if rng.random() < 0.97]
    disorder = rng.random()
    if disorder < 0.08:
        rng.shuffle(found)
    elif disorder < 0.14:
        found.sort(key=lambda m: m[1])
    elif disorder < 0.2 and found:
        found.insert(rng.randrange(len(found) + 1), rng.choice(found))
    files, root = [], rng.choice(["", "", "", "./"])
    for k, e in found:
        files.append((root + k + "." + (e.upper() if rng.random() < 0.03 else e), content(rng, e)))
    for name in "README", ".hidden.txt":
        if rng.random() < 0.1:
            files.insert(rng.randrange(len(files) + 1), (name, b"not a sample"))
    return files


def write_tar(rng, files):
    """Return a tar file, not compressed, with folders and links between the members."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=rng.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])) as archive:
        for name, data in files:
            if "/" in name and rng.random() < 0.1:
                folder = tarfile.TarInfo(os.path.dirname(name))
                folder.type = tarfile.DIRTYPE
                archive.addfile(folder)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
            if rng.random() < 0.03:
                link = tarfile.TarInfo("link.bin")
                link.type, link.linkname = tarfile.SYMTYPE, name[:90]  # of what USTAR can hold
                archive.addfile(link)
    return file.getvalue()


class Refused(Exception):
    """The archive has to be refused, with an error that matches."""


def samples_of_tar(data):
    """Return the samples that webdataset reads of an archive."""
    files = webdataset.tariterators.tar_file_expander([{"stream": io.BytesIO(data), "url": "x.tar"}])
    try:
        samples = list(webdataset.tariterators.group_by_keys(files))
    except ValueError as error:
        raise Refused(PIECES) from error
    keys = [os.path.normpath(s["__key__"]) for s in samples]
    if len(set(keys)) < len(keys):  # which webdataset takes for samples of one name, each with a part of it
        raise Refused(PIECES)
    return [(k, {e: v for e, v in s.items() if not e.startswith("__")}) for k, s in zip(keys, samples)]


def samples_of_zip(data):
    """Return the samples of a zip archive, in the order of its names."""
    samples = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in sorted(archive.infolist(), key=lambda i: i.filename.encode()):
            key, extension = webdataset.tariterators.base_plus_ext(info.filename)
            if not key:
                continue
            sample = samples.setdefault(os.path.normpath(key), {})
            if extension.lower() in sample:
                raise Refused(PIECES)
            sample[extension.lower()] = archive.read(info)
    return list(samples.items())


def samples_of_tars(parts):
    """Return the samples of archives that follow each other in a file."""
    samples = [samples_of_tar(p) for p in parts]
    for some, others in itertools.combinations(samples, 2):
        for key, sample in others:
            if any(key == k and not set(sample) & set(s) for k, s in some):
                raise Refused(PIECES)
    return [entry for sample in samples for entry in sample]


def only_images(samples):
    """Return whether there are images and no samples of several members, so that folders are classes and other files are left out."""
    return all(len(s) == 1 for _, s in samples) and any(set(s) <= set(IMAGES) for _, s in samples)


def expected(samples):
    """Return the field of each extension, the samples that are usable, and their labels by folder or None."""
    if only_images(samples):
        samples = [(k, s) for k, s in samples if set(s) <= set(IMAGES)]
    extensions = {e for _, s in samples for e in s}
    if not extensions:
        raise Refused("holds no files")
    images = [e for e in IMAGES if e in extensions]
    several = any(all(e in s for e in IMAGES) for _, s in samples)
    fields = {e: FIELDS.get(e, e if several else "images") for e in extensions}
    usable = []
    for key, s in samples:
        missing = [e for e in extensions if e in REQUIRED and e not in s]
        if not several and images and any(e in s for e in images):
            missing = [e for e in missing if e not in images]
        if not missing:
            usable.append((key, s))
    labels = None
    if only_images(samples):
        folders = sorted({os.path.dirname(k) for k, _ in samples})
        if len(folders) > 1:
            if "" in folders:
                raise Refused("images next to folders")
            labels = [folders.index(os.path.dirname(k)) for k, _ in usable]
    return fields, usable, labels


class Archives(unittest.TestCase):
    def check(self, name, data, read):
        """Compare the dataset of an archive with what read returns: its samples."""
        folder = tempfile.mkdtemp(prefix="penstock-peers-")
        try:
            path, dest = os.path.join(folder, name), os.path.join(folder, "out")
            with open(path, "wb") as f:
                f.write(data)
            run = [os.environ["PENSTOCK_TEST_PREPROCESS"], "--quiet", "--on-error", "skip", "--names", "on", path, dest]
            try:
                samples = read()
                fields, usable, labels = expected(samples)
                if any(e in IMAGES for e in fields):
                    run.insert(1, "--keep-encoded")
                if not usable:
                    raise Refused("no usable sample")
            except Refused as refused:
                error = subprocess.run(run, capture_output=True, text=True)
                self.assertRegex(error.stderr, str(refused))
                self.assertFalse(os.path.exists(dest))
                return
            error = subprocess.run(run, capture_output=True, text=True)
            self.assertIn(error.returncode, (0, 3), error.stderr)
            with penstock.open(dest) as ds:
                self.compare(ds, fields, usable, labels, only_images(samples))
        finally:
            shutil.rmtree(folder)

    def compare(self, ds, fields, usable, labels, images):
        self.assertEqual(len(ds), len(usable))
        self.assertEqual(set(ds.fields) - {"source_name", "labels"}, set(fields.values()) - {"labels"})
        for i, (key, sample) in enumerate(usable):
            name = re.sub(r"^x\.tar\S*@\d+/", "", ds.source_name(i))
            self.assertEqual(os.path.splitext(name)[0] if images else name, key)
            if labels is not None:
                self.assertEqual(int(ds["labels"][i]), labels[i])
            for field in set(fields.values()):
                want = next((sample[e] for e, f in fields.items() if f == field and e in sample), b"")
                got = ds[field][i]
                if field == "labels":
                    self.assertEqual(int(got), int(want))
                elif field == "npy":
                    np.testing.assert_array_equal(got, np.load(io.BytesIO(want)))
                else:
                    self.assertEqual(got.encode() if isinstance(got, str) else bytes(got), want)

    @cases(100)
    def test_tar(self, rng: random.Random) -> None:
        parts = [write_tar(rng, members(rng)) for _ in range(2 if rng.random() < 0.15 else 1)]
        ending, packed = rng.choice([("", bytes), (".gz", __import__("gzip").compress), (".bz2", __import__("bz2").compress)])
        data = b"".join(packed(p) for p in parts) if rng.random() < 0.5 else packed(b"".join(parts))
        self.check("x.tar" + ending, data, lambda: samples_of_tars(parts))

    @cases(100)
    def test_zip(self, rng: random.Random) -> None:
        file = io.BytesIO()
        with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(file, "w") as archive:  # of a name that comes twice
            for name, data in members(rng):
                archive.writestr(name, data, rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))
        self.check("x.zip", file.getvalue(), lambda: samples_of_zip(file.getvalue()))


if __name__ == "__main__":
    unittest.main()
