"""Pickles through tests/oracle/pickle_probe, files through file_probe, in batches."""
import atexit
import collections
import pathlib
import shutil
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
Answer = collections.namedtuple("Answer", "verdict used globals calls text")      # refused: verdict "!", text the error code


def own_copy(path=None):
    """A copy of the probe (the newest under build/ unless named): a long run outlives a build."""
    folder = tempfile.mkdtemp(prefix="pickle_probe.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return shutil.copy(path or find_probe(), folder)


def find_probe(name="pickle_probe"):
    found = sorted(ROOT.glob(f"build/*/tests/oracle/{name}"), key=lambda p: p.stat().st_mtime)
    if not found:
        raise SystemExit(f"no {name} under build/ (cmake --build --preset dev --target {name})")
    return str(found[-1])


def parse(line):
    words = line.split(" ")
    if words[0] == "!":
        return Answer("!", None, None, None, words[1])
    return Answer(words[0], int(words[1]), *words[2:5])


def ask_lines(probe, inputs):
    """A line for each input; one at which the probe dies is "! crash"."""
    answers = []
    while len(answers) < len(inputs):
        rest = inputs[len(answers):]
        done = subprocess.run([probe], input=b"".join(struct.pack("<I", len(p)) + p for p in rest), capture_output=True, timeout=600)
        lines = done.stdout.decode().splitlines()
        answers += lines
        if len(lines) < len(rest):
            answers.append("! crash")
    return answers


def ask(probe, pickles):
    """An Answer for each pickle."""
    return [parse(line) for line in ask_lines(probe, pickles)]
