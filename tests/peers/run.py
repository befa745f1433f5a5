#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [group…]: exchanges files with every peer that scripts/peers has installed, and writes what came of it to docs/compatibility.md.

Peers that are not installed are named and left out; their rows stay what they were. Exit 1 when something differs, 0 else.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

import places

PAGE = places.ROOT / "docs/compatibility.md"
BEGIN, END = "<!-- peers: written by scripts/test --peers -->\n", "<!-- end of peers -->\n"
HEAD = "| peer | direction | what | same | different | named | refused by the peer | day |\n|---|---|---|---|---|---|---|---|\n"
NAMED_BEGIN, NAMED_END = "<!-- named: written by scripts/test --peers -->\n", "<!-- end of named -->\n"
NAMED_HEAD = "| what differs, and why | calls |\n|---|---|\n"


def with_framework(name):
    return [["exchange.py", name], ["dropin.py", name], ["calls.py", name], ["indices.py", name], ["suite.py", name]]


# group: (the peer as rows call it, its package, its programs and their words); Burn's versions have a program each
PROGRAMS = {
    "core": [("NumPy", "numpy", with_framework("numpy")), ("PyTorch", "torch", with_framework("torch"))],
    "jax": [("JAX", "jax", with_framework("jax"))],
    "tensorflow": [("TensorFlow", "tensorflow-cpu", with_framework("tensorflow"))],
    "paddle": [("Paddle", "paddlepaddle", with_framework("paddle"))],
    "mlx": [("MLX", "mlx", with_framework("mlx"))],
    "hub": [("transformers", "transformers", [["hub.py"], ["models.py"]])],
    "onnx": [("onnx", "onnx", [["onnx_files.py"]])],
    "sign": [("model_signing", "model_signing", [["sign.py"]])],
    "stubs": [("mypy", "mypy", [["stubs.py"]])],
    "suite": [],  # part of the others
    "burnfiles": [("pytorch-reader", "pytorch-reader", [["fixtures.py"], ["packs.py"]])],
    "burn": [],
}


def build_folder():
    """The one that was built last, of those with the Python package."""
    found = [path for path in places.ROOT.glob("build/*/python/ballast/_native*.so") if (path.parents[2] / "bin/ballast").exists()]
    if not found:
        sys.exit("tests/peers: nothing is built: cmake --preset dev && cmake --build --preset dev")
    return max(found, key=lambda path: path.stat().st_mtime).parents[2]


def programs_of(group):
    """(peer, version, commands) of each peer that is there."""
    there = places.installed(group)
    if group == "burn":
        oracle = places.python_of("core")  # whose PyTorch computes, too; else Debian's does
        oracle = str(oracle) if oracle.exists() else places.PYTHON
        return [("Burn", version, [[oracle, "-B", str(places.HERE / "burn.py"), version]]) for version in there.values()]
    python = str(places.python_of(group)) if group != "burnfiles" else places.PYTHON
    command = lambda program, *words: [python, "-B", str(places.HERE / program), *words]  # noqa: E731
    can_run = lambda program: program != "suite.py" or places.installed("suite")  # noqa: E731
    return [(peer, there[package], [command(*words) for words in programs if can_run(words[0])]) for peer, package, programs in PROGRAMS[group] if package in there]


def lines_of(command, build):
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "GLOG_minloglevel": "3", "PYTHONWARNINGS": "ignore"}
    if os.path.isdir("/dev/shm"):
        quiet["TMPDIR"] = "/dev/shm"  # hundreds of files, each of which Ballast would wait for
    environment = {**os.environ, **quiet, "PYTHONPATH": str(build / "python"), "BALLAST_TOOL": str(build / "bin/ballast")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        lines.append({"way": "the program", "what": pathlib.Path(command[2]).name, "same": 0, "different": [f"ended with {done.returncode}: {last}"], "refused": {}})
    return lines


def rows_of(peer, version, lines):
    """A row a direction; what was exchanged in it stands in one cell."""
    day = datetime.date.today().isoformat()
    for way in dict.fromkeys(line["way"] for line in lines):
        part = [line for line in lines if line["way"] == way]
        counts = (sum(count(line) for line in part) for count in (lambda x: x["same"], lambda x: len(x["different"]), named_in, lambda x: sum(x["refused"].values())))
        yield f"| {peer} {version} | {way} | {', '.join(line['what'] for line in part)} | {' | '.join(map(str, counts))} | {day} |"


def named_in(line):
    return sum(line.get("named", {}).values())


def write_named(named):
    """A peer's counts take the place of those it had."""
    before, rest = PAGE.read_text().split(NAMED_BEGIN)
    old, after = rest.split(NAMED_END)
    table = {}
    for row in old.splitlines()[2:]:
        why, counts = row.strip("| ").split(" | ")
        table[why] = dict(re.fullmatch(r"(.*) (\d+)", part).groups() for part in counts.split(", "))
    for peer, reasons in named.items():
        for why in [*table, *(why for why in reasons if why not in table)]:
            counts = table.setdefault(why, {})
            counts.pop(peer, None)
            if why in reasons:
                counts[peer] = reasons[why]
    lines = [f"| {why} | {', '.join(f'{peer} {count}' for peer, count in sorted(counts.items()))} |\n" for why, counts in sorted(table.items()) if counts]
    PAGE.write_text(before + NAMED_BEGIN + NAMED_HEAD + "".join(lines) + NAMED_END + after)


def write_page(rows):
    """A peer's rows take the place of those it had, whatever their version; other peers' stay. Of Burn there are several versions: those that are pinned."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    kept = {}
    for row in old.splitlines()[2:]:
        kept.setdefault(row.split("|")[1].strip(), []).append(row)
    burns = {pin.replace("burn==", "Burn ") for pin in places.pins()["burn"]}
    renewed = {peer.rpartition(" ")[0] for peer in rows} - {"Burn"}
    stays = lambda peer: peer in burns if peer.startswith("Burn ") else peer.rpartition(" ")[0] not in renewed  # noqa: E731
    kept = {**{peer: old_rows for peer, old_rows in kept.items() if stays(peer)}, **rows}
    lines = [row for peer in sorted(kept) for row in kept[peer]]
    PAGE.write_text(before + BEGIN + HEAD + "".join(line + "\n" for line in lines) + END + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", nargs="*", help=", ".join(PROGRAMS))
    parser.add_argument("--no-write", action="store_true", help="leave docs/compatibility.md alone")
    arguments = parser.parse_args()
    build, rows, named, different = build_folder(), {}, {}, 0
    for group in arguments.group or PROGRAMS:
        programs = programs_of(group)
        if not programs and not (group == "suite" and places.installed(group)):
            print(f"{group}: not installed (scripts/peers {group})")
        for peer, version, commands in programs:
            lines = [line for command in commands for line in lines_of(command, build)]
            for line in lines:
                print(f"{peer} {version}: {line['way']}: {line['what']}: {line['same']} the same, {len(line['different'])} different, {named_in(line)} named, {sum(line['refused'].values())} refused by the peer", flush=True)
                for text in line["different"][:20]:
                    print(f"  DIFFERENT {text}")
                for reason, count in list(line["refused"].items())[:6]:
                    print(f"  refused: {count} × {reason}")
                different += len(line["different"])
                if line["way"] == "calls one by one":
                    named.setdefault(peer, collections.Counter()).update(line["named"])
            rows.setdefault(f"{peer} {version}", []).extend(rows_of(peer, version, lines))
    if rows and not arguments.no_write:
        write_page(rows)
        write_named(named)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
