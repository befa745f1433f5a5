# SPDX-License-Identifier: Apache-2.0
"""Does what a tutorial says, in its order, in a folder of its own: tutorials.py PAGE.md FOLDER --prefix PREFIX --python-path PATH [--like OTHER.md]

- A code block below a line that is a file's name (`main.cpp`:) is written to that file.
- A console block is run by bash: a line after "$ " is a command (a backslash at its end: it goes on in the next line), those below it are what it prints.
  A line of nothing but "…" stands for any number of lines, "…" within a line for any text.
- A command that fails is followed by `$ echo $?`.
- Other blocks (text, json, yaml, a snippet of C++ without a name) are for the reader.

OTHER is the page in another language, which is run itself: where the two differ in nothing but comments, that is enough. PREFIX is where Ballast was installed, as a stranger finds it: find_package and the command; PATH has the Python package. Files that Ballast bundles are
reached as $BALLAST. Exit 77 where a page needs what is not here: PyTorch, ONNX Runtime, the Python package.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "-- end of command"
BLOCK = re.compile(r"^(?:`([\w./-]+)`[:：]\n\n?)?^```(\w*)\n(.*?)^```$", re.M | re.S)


def commands(body):
    """[(line in the block, command, lines it prints)]"""
    found, goes_on = [], False
    for number, line in enumerate(body.splitlines()):
        if goes_on:
            found[-1][1] += "\n" + line
        elif line.startswith("$ "):
            found.append([number, line[2:], []])
        else:
            assert found, f"output without a command: {line}"
            found[-1][2].append(line)
        goes_on = (goes_on or line.startswith("$ ")) and line.endswith("\\")
    return found


def pattern(lines):
    """What an output must match as a whole, with … for what varies."""
    parts = []
    for line in lines:
        parts.append(r"(?:[^\n]*\n)*?" if line.strip() == "…" else ".*?".join(map(re.escape, line.rstrip().split("…"))) + r"[ \t]*\n")
    return re.compile("".join(parts))


def run_block(body, folder, environment):
    """What is wrong with the block, as (line in it, text); nothing when all is as it says."""
    steps = commands(body)
    script = "".join(f"{command}\nset -- $?; printf '\\n{MARK} %s\\n' $1; (exit $1)\n" for _, command, _ in steps)
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=300)
    outputs = re.split(rf"\n{MARK} (\d+)\n", done.stdout)
    for index, (line, command, expected) in enumerate(steps):
        if 2 * index + 1 >= len(outputs):
            return line, f"$ {command}\nended the shell:\n{outputs[-1]}"
        printed, code = outputs[2 * index], outputs[2 * index + 1]
        printed = printed + "\n" if printed and not printed.endswith("\n") else printed
        told = index + 1 < len(steps) and steps[index + 1][1] == "echo $?"
        if code != "0" and not told:
            return line, f"$ {command}\nfailed with {code}, and the page does not say so:\n{printed}"
        if not pattern(expected).fullmatch(printed):
            return line, f"$ {command}\nprints\n{printed}\nwhich is not\n" + "\n".join(expected)
    return None


def without_comments(page):
    """What would be written and run, and what it must print."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(name, language, re.sub(r"(^|[ \t])[ \t]*(//|#) .*$", r"\1", body, flags=re.M)) for name, language, body in blocks if name or language == "console"]


def lacks(text, environment):
    """What the page needs and this machine has not."""
    python = environment["PYTHON"]
    for module in ("torch", "torchvision", "ballast"):
        if re.search(rf"^(?:import|from) {module}\b", text, re.M) and subprocess.run([python, "-c", f"import {module}"], env=environment, capture_output=True).returncode:
            return module
    if "check-onnx" in text and subprocess.run([ROOT / "scripts/check-onnx", "--version"], env=environment, capture_output=True).returncode:
        return "ONNX Runtime"
    return None


def surroundings(arguments):
    """The environment of a reader who installed Ballast: its command, python3 and check-onnx in the PATH."""
    tools = arguments.folder / ".bin"
    tools.mkdir(parents=True)
    for name, target in (("python3", arguments.python), ("check-onnx", ROOT / "scripts/check-onnx")):
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(str(target))} "$@"\n')
        (tools / name).chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "NINJA_STATUS", "CLICOLOR_FORCE")}
    environment.update(PATH=f"{tools}:{arguments.prefix / 'bin'}:{os.environ['PATH']}", CMAKE_PREFIX_PATH=str(arguments.prefix), PYTHONPATH=str(arguments.python_path),
                       CMAKE_GENERATOR="Ninja", CXX=arguments.compiler, PYTHON=arguments.python, BALLAST=str(ROOT), PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore", LC_ALL="C.UTF-8", OMP_NUM_THREADS="1")
    return environment


def walk(page, folder, environment):
    """(blocks run and written, what is wrong)"""
    text = page.read_text(encoding="utf-8")
    count = {"written": 0, "run": 0}
    for match in BLOCK.finditer(text):
        name, language, body = match.groups()
        line = text.count("\n", 0, match.start(3)) + 1
        if name:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body, encoding="utf-8")
            count["written"] += 1
        elif language == "console":
            wrong = run_block(body, folder, environment)
            if wrong:
                return count, f"{page.name}:{line + wrong[0]}: {wrong[1]}"
            count["run"] += 1
    return count, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--python-path", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--like", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.like and without_comments(arguments.page) == without_comments(arguments.like):
        print(f"{arguments.page.name}: {len(without_comments(arguments.page))} blocks, as in {arguments.like.name} but for comments")
        return 0
    shutil.rmtree(arguments.folder, ignore_errors=True)
    environment = surroundings(arguments)
    missing = lacks(arguments.page.read_text(encoding="utf-8"), environment)
    if missing:
        print(f"{arguments.page.name}: not run: there is no {missing} here")
        return 77
    work = arguments.folder / "work"
    work.mkdir()
    count, wrong = walk(arguments.page, work, environment)
    if wrong:
        print(wrong)
        return 1
    assert count["run"], f"{arguments.page}: nothing to run"
    print(f"{arguments.page.name}: {count['written']} files written, {count['run']} console blocks run, all as the page says")
    shutil.rmtree(arguments.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
