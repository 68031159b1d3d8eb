#!/usr/bin/env python3
"""Compiles libdeflate and libzstd for a target of .ci/release, and says how Go links them: by zig cc, in out/native.

    eval "$(.ci/native.py linux-amd64)"     # CC and others for go build, with CODECS, the tags

Nothing of the system is used, so that the same commit gives the same bytes on any machine. PyPI has zig and the sources, and
.ci/native.txt their sums. What was fetched and compiled is kept.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True  # of environments.py, next to it
import environments  # noqa: E402
from environments import Missing  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / ".ci/native.txt"

# Targets of .ci/release by zig's names. manylinux2014 promises glibc 2.17. zig has no frameworks of macOS, which Go links there.
TARGETS = {
    "linux-amd64": "x86_64-linux-gnu.2.17",
    "linux-arm64": "aarch64-linux-gnu.2.17",
    "linux-static-amd64": "x86_64-linux-musl",
    "linux-static-arm64": "aarch64-linux-musl",
}

# Go's own resolver and user lookup, as without C; libhdf5 stays out.
TAGS = ["libdeflate", "libzstd", "nolibhdf5", "netgo", "osusergo"]

# pip asks the build backend of a source for its metadata, which runs the source's setup.py, gcc and cmake. METADATA takes the place of these
# backends (PEP 517) and returns what the archive has in PKG-INFO: nothing of a source runs.
BACKENDS = ["setuptools/build_meta.py", "scikit_build_core/build.py"]
METADATA = """
import pathlib, re
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    text = pathlib.Path("PKG-INFO").read_text("utf-8")
    name, version = (re.search(rf"^{key}: (.+)$", text, re.MULTILINE)[1].strip() for key in ("Name", "Version"))
    folder = pathlib.Path(metadata_directory, f"{name}-{version}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(text, "utf-8")
    return folder.name
"""

# Found in PATH, since Go splits names at spaces.
COMPILER, PKG_CONFIG = "penstock-cc", "penstock-pkg-config"

# -g0: debug information would have the name of this folder.
CFLAGS = ["-O3", "-g0", "-DNDEBUG", "-fvisibility=hidden"]


def folder():
    """Return the folder of what .ci/native.txt names now."""
    return ROOT / "out/native" / digest(PACKAGES)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def fetch(home):
    """Fetch and unpack what .ci/native.txt names."""
    if (home / "zig").exists():
        return
    part = home.with_suffix(f".{os.getpid()}")
    try:
        backend = part / "backend"
        for module in BACKENDS:
            path = backend / module
            path.parent.mkdir(parents=True)
            (path.parent / "__init__.py").touch()
            path.write_text(METADATA, "utf-8")
        with environments.pip() as pip:
            done = subprocess.run([*pip, "download", "--disable-pip-version-check", "--timeout", "15", "--retries", "1", "--no-deps",
                                   "--no-build-isolation", "--use-pep517", "--require-hashes", "--dest", str(part), "--requirement", str(PACKAGES)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                  env={**os.environ, "PYTHONPATH": str(backend)})
        if done.returncode != 0:
            raise Missing("pip cannot fetch .ci/native.txt from PyPI:\n" + "\n".join(done.stdout.splitlines()[-10:]))
        shutil.rmtree(backend)
        unpack(part)
        try:
            part.rename(home)
        except OSError:  # another one was faster
            if not (home / "zig").exists():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def unpack(part):
    for path in part.glob("*.tar.gz"):
        with tarfile.open(path) as t:
            t.extractall(part)
        path.unlink()
    for path in part.glob("*.whl"):
        with zipfile.ZipFile(path) as z:
            z.extractall(part / "wheel")
        path.unlink()
    next(part.glob("deflate-*/libdeflate")).rename(part / "libdeflate")
    next(part.glob("zstandard-*/zstd")).rename(part / "zstd")
    (part / "wheel/ziglang").rename(part / "zig")
    (part / "zig/zig").chmod(0o755)


def write_script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def compile_libraries(home, target):
    """Compile both libraries for a target; return the folder of headers, archives and the programs that Go asks."""
    made = home / f"{target}-{digest(Path(__file__))}"
    if made.exists():
        return made
    part = made.with_suffix(f".{os.getpid()}")
    (part / "include").mkdir(parents=True)
    for header in [home / "libdeflate/libdeflate.h", *home.glob("zstd/*.h")]:
        shutil.copy(header, part / "include")
    # Neither names a folder, so that a repository can be moved.
    write_script(part / COMPILER, 'home=$(dirname "$(dirname "$0")")\n'
                 'export ZIG_GLOBAL_CACHE_DIR="$home/cache" ZIG_LOCAL_CACHE_DIR="$home/cache"\n'
                 f'exec "$home/zig/zig" cc -target {TARGETS[target]} "$@"\n')
    write_script(part / PKG_CONFIG, "case \" $* \" in *' --cflags '*) ;; *) echo -ldeflate -lzstd ;; esac\n")
    try:
        archive(home, part, "deflate", sorted((home / "libdeflate/lib").rglob("*.c")))
        # clang unrolls the loop that decodes sequences, and the result decodes a quarter slower than gcc's.
        archive(home, part, "zstd", [home / "zstd/zstd.c"], "-fno-unroll-loops")
        part.rename(made)
    except OSError:  # another one was faster
        if not made.exists():
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


def call(*command, cwd):
    try:
        subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise Missing(f"{shlex.join(command)}: {str(getattr(e, 'stdout', '') or e).strip()}") from None


def archive(home, part, name, sources, *flags):
    """Compile sources into lib<name>.a."""
    objects = []
    for i, source in enumerate(sources):
        objects.append(f"{name}{i}.o")
        call(str(part / COMPILER), *CFLAGS, *flags, "-c", str(source), "-o", objects[-1], cwd=part)
    call(str(home / "zig/zig"), "ar", "rcsD", f"lib{name}.a", *objects, cwd=part)
    for path in objects:
        (part / path).unlink()


def environment(target):
    """Return the variables with which go build links the libraries into the program of a target."""
    home = folder()
    fetch(home)
    made = compile_libraries(home, target)
    # The folder is here, and not in what pkg-config prints: Go's cache sees these variables only, and would keep the flags of
    # another clone. Go takes either quote, and nothing to escape it.
    quote = '"' if "'" in str(made) else "'"
    return {"CGO_ENABLED": "1", "PATH": f"{made}:{os.environ['PATH']}", "CC": COMPILER, "PKG_CONFIG": PKG_CONFIG,
            "CGO_CFLAGS": f"-O2 -g0 {quote}-I{made}/include{quote}", "CGO_LDFLAGS": f"-O2 -g0 {quote}-L{made}{quote}"}


def linking(target):
    """Return the flags of Go's linker."""
    return " -linkmode external" + (" -extldflags -static" if target.startswith("linux-static") else "")


def licenses(target):
    """Return the licenses of the libraries in a program, by their names in packages."""
    home = folder()
    found = {"LICENSE.libdeflate": home / "libdeflate/COPYING", "LICENSE.zstd": home / "zstd/LICENSE", "LICENSE.zig": home / "zig/LICENSE"}
    if target.startswith("linux-static"):
        found["LICENSE.musl"] = home / "zig/lib/libc/musl/COPYRIGHT"
    return {name: path.read_bytes() for name, path in found.items()}


def components():
    """Return names and versions of the libraries, as the SBOM has them."""
    home = folder()
    deflate = re.search(r'LIBDEFLATE_VERSION_STRING\s+"([^"]+)"', (home / "libdeflate/libdeflate.h").read_text())
    zstd = [re.search(rf"define ZSTD_VERSION_{part}\s+(\d+)", (home / "zstd/zstd.h").read_text())[1] for part in ("MAJOR", "MINOR", "RELEASE")]
    return [("libdeflate", deflate[1], f"pkg:github/ebiggers/libdeflate@v{deflate[1]}"),
            ("zstd", ".".join(zstd), f"pkg:github/facebook/zstd@v{'.'.join(zstd)}")]


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in TARGETS:
        raise SystemExit(f"usage: .ci/native.py {'|'.join(TARGETS)}")
    try:
        found = environment(sys.argv[1])
    except Missing as e:
        raise SystemExit(f"native: {e}") from None
    for name, value in [*found.items(), ("CODECS", ",".join(TAGS))]:
        print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
