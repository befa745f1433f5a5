# SPDX-License-Identifier: Apache-2.0
"""What a check has found nothing wrong with, remembered from run to run and from clone to clone, as a compiler cache remembers objects.

A file is remembered by everything its verdict hangs on: its text and that of all headers of the house below it, the check itself, its flags and
tools, and the installed packages. What differs in any of them is looked at again; what was complained about always is.
BALLAST_CHECK_ALL=1 looks at everything; $XDG_CACHE_HOME/ballast (~/.cache/ballast) is the memory, to be deleted at will."""
import functools
import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = [ROOT / folder for folder in ("include", "src", "tools/ballast", "python/src", ".")]
PACKAGES = pathlib.Path("/var/lib/dpkg/status")


@functools.cache
def read(path):
    return path.read_bytes()


@functools.cache
def house_includes(path):
    """Files of the house that `path` may include. Of a name in several folders all count, as does what a macro or a condition hides: too much is
    looked at, never too little."""
    names = map(os.fsdecode, re.findall(rb'^\s*#\s*include\s*["<]([^">]+)[">]', read(path), re.M))
    candidates = [folder / name for name in names for folder in (path.parent, *FOLDERS)]
    return {candidate.resolve() for candidate in candidates if candidate.is_file()}


def below(path):
    seen, todo = {path}, [path]
    while todo:
        for file in house_includes(todo.pop()) - seen:
            seen.add(file)
            todo.append(file)
    return sorted(seen)


class Passed:
    """passed = Passed("tidy", tool, flags…); passed.has(file); passed.add(file); passed.save()"""

    def __init__(self, check, *tools_and_flags):
        self.file = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ballast" / check
        told = hashlib.sha256(read(pathlib.Path(sys.argv[0]).resolve()) + read(pathlib.Path(__file__).resolve()))
        told.update(PACKAGES.read_bytes() if PACKAGES.exists() else os.urandom(16))
        for word in tools_and_flags:
            told.update(str(word).replace(str(ROOT), ".").encode() + b"\0")
        self.told = told
        old = [] if os.environ.get("BALLAST_CHECK_ALL") or not self.file.exists() else self.file.read_text().split()
        self.keys = set(old) if len(old) < 100_000 else set()

    def key(self, file, flags=()):
        told = self.told.copy()
        for word in (pathlib.Path(file).relative_to(ROOT), *flags):
            told.update(str(word).replace(str(ROOT), ".").encode() + b"\0")
        for path in below(pathlib.Path(file)):
            told.update(hashlib.sha256(read(path)).digest())
        return told.hexdigest()

    def has(self, file, flags=()):
        return self.key(file, flags) in self.keys

    def add(self, file, flags=()):
        self.keys.add(self.key(file, flags))

    def save(self):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        temporary.write_text("\n".join(sorted(self.keys)))
        temporary.replace(self.file)


def version_of(tool):
    return subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
