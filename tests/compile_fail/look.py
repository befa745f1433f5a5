#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""look.py INCLUDE SOURCE COMPILER…: compiles a wrong program, and looks at what each compiler says.

Lines of the source: `// expect: REGEX` stands in its one error; `// names: WORD` (the struct or the member)
stands in it or in the lines that belong to it; `// flags: …` are given to the compiler besides; `// several: NAME`:
that compiler follows it by others.
"""
import pathlib
import re
import subprocess
import sys

# Files that include one another, and templates that call one another: what a reader scrolls past. Measured: 13.
MOST_LINES_BEFORE = 16


def wish(source, word):
    found = re.search(rf"^// {word}: (.*)$", source, re.MULTILINE)
    return found.group(1) if found else ""


def complaints(compiler, include, path):
    source = path.read_text()
    flags = ["-std=c++20", "-fsyntax-only", f"-I{include}", *wish(source, "flags").split()]
    done = subprocess.run([compiler, *flags, str(path)], capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    errors = [number for number, line in enumerate(lines) if re.search(r"(?<!fatal )error: ", line)]
    if done.returncode == 0 or not errors:
        yield "it compiles"
        return
    several = wish(source, "several")
    if len(errors) != 1 and not (several and several in compiler):
        yield f"{len(errors)} errors, not one"
    if errors[0] > MOST_LINES_BEFORE:
        yield f"{errors[0]} lines before the error, {MOST_LINES_BEFORE} at most"
    if not re.search(wish(source, "expect"), lines[errors[0]]):
        yield f"the error is not {wish(source, 'expect')!r}"
    if not re.search(rf"\b{wish(source, 'names')}\b", done.stderr.replace(str(path), "")):
        yield f"{wish(source, 'names')!r} is not named"


def main():
    include, path, *compilers = sys.argv[1:]
    failed = 0
    for compiler in compilers:
        found = list(complaints(compiler, include, pathlib.Path(path)))
        for complaint in found:
            print(f"{compiler}: {complaint}")
        failed |= bool(found)
    return failed


if __name__ == "__main__":
    sys.exit(main())
