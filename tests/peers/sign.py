# SPDX-License-Identifier: Apache-2.0
"""sign.py: model_signing and ballast sign the same models and verify each other's signatures: the product of kinds of models, what happens to them, options of both, curves and methods.

Both must say the same of each: signed or not, verified or not. Prints a line of JSON for each direction.
"""
import contextlib
import io
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from click.testing import CliRunner
from model_signing import _cli

TOOL = os.environ["BALLAST_TOOL"]
FILES = pathlib.Path(__file__).resolve().parents[1] / "fixtures/signatures/files"
CURVES = ("p256", "p384", "p521")


def plain(model):
    for name in ("config.json", "weights.bin", "a/b.txt", "a-b.txt", "a/c/empty", "cache/x", ".hidden"):
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_text(name)


def with_git(model):
    plain(model)
    (model / ".git/objects").mkdir(parents=True)
    for name in (".git/objects/x", ".gitignore", ".gitattributes", "a/.gitignore", ".gitmodules"):
        (model / name).write_text(name)


def with_link(model):
    plain(model)
    (model / "link").symlink_to(model / "config.json")
    (model / "folder").symlink_to(model / "a")


def one_file(model):
    model.write_text("one file")


MODELS = {function.__name__: function for function in (plain, with_git, with_link, one_file)}


def inside(change):
    return lambda model: change(model) if model.is_dir() else model.write_text("another")


CHANGES = {
    "none": lambda model: None,
    "changed": inside(lambda model: (model / "weights.bin").write_text("weights.bim")),
    "added": inside(lambda model: (model / "a/new").write_text("")),
    "added_hidden": inside(lambda model: (model / ".new").write_text("")),
    "added_folder": inside(lambda model: (model / "empty folder").mkdir()),
    "removed": inside(lambda model: (model / "a/c/empty").unlink()),
    "renamed": inside(lambda model: (model / "a/b.txt").rename(model / "a/d.txt")),
    "moved": inside(lambda model: (model / "a/b.txt").rename(model / "b.txt")),
    "now_a_folder": inside(lambda model: ((model / "a-b.txt").unlink(), (model / "a-b.txt").mkdir())),
    "linked": inside(lambda model: ((model / "a-b.txt").rename(model.parent / "away"), (model / "a-b.txt").symlink_to(model.parent / "away"))),
    "link_added": inside(lambda model: (model / "more").symlink_to("config.json")),
    "link_to_nowhere": inside(lambda model: (model / "more").symlink_to("nowhere")),
    "link_in_git": inside(lambda model: ((model / ".git").mkdir(exist_ok=True), (model / ".git/link").symlink_to("../config.json"))),
    "git_added": inside(lambda model: ((model / ".git").mkdir(exist_ok=True), (model / ".git/new").write_text(""), (model / ".github").write_text(""))),
    "in_ignored": inside(lambda model: ((model / "cache/x").write_text("y"), (model / "cache/new").write_text(""))),
    "beside_ignored": inside(lambda model: (model / "cache2").write_text("")),
    "pipe": inside(lambda model: os.mkfifo(model / "pipe")),
}
# (ours, theirs) with {model} for its path
SIGNING = {
    "usual": ([], []),
    "ignore": (["--ignore", "{model}/cache", "--ignore", "{model}/../x"], ["--ignore-paths", "{model}/cache", "--ignore-paths", "{model}/../x"]),
    "git": (["--no-ignore-git"], ["--no-ignore-git-paths"]),
    "links": (["--allow-symlinks"], ["--allow_symlinks"]),
}
VERIFYING = {**SIGNING, "unsigned": (["--ignore-unsigned"], ["--ignore_unsigned_files"])}


def ours(*words):
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def theirs(*words):
    with contextlib.redirect_stdout(io.StringIO()):
        done = CliRunner().invoke(_cli.main, [str(word) for word in words])
    return done.exit_code == 0, done.output.strip()


def filled(words, model):
    return [word.format(model=model) for word in words]


def sign(by, model, signature, options, curve="p256", leaf=False):
    key = FILES / f"key-{curve}.pem"
    if by == "ballast":
        return ours("sign", model, "-o", signature, "--key", key, *(["--cert", FILES / f"leaf-{curve}.pem", "--chain", FILES / "between.pem"] if leaf else []), *filled(options[0], model))
    chain = ["--signing_certificate", FILES / f"leaf-{curve}.pem", "--certificate_chain", FILES / "between.pem"] if leaf else []
    return theirs("sign", "certificate" if leaf else "key", model, "--signature", signature, "--private_key", key, *chain, *filled(options[1], model))


def verdicts(model, signature, options, curve="p256", leaf=False):
    by = ["--certificate-chain", FILES / "root.pem"] if leaf else ["--key", FILES / f"pub-{curve}.pem"]
    said = ours("verify", model, "--signature", signature, *by, *filled(options[0], model))
    by = ["certificate", model, "--certificate_chain", FILES / "root.pem"] if leaf else ["key", model, "--public_key", FILES / f"pub-{curve}.pem"]
    return said, theirs("verify", *by, "--signature", signature, *filled(options[1], model))


class Row:
    def __init__(self, way, what):
        self.line = {"way": way, "what": what, "same": 0, "different": [], "refused": {}}
        self.good = 0

    def add(self, case, mine, peer):
        self.good += mine[0] and peer[0]
        if mine[0] == peer[0]:
            self.line["same"] += 1
        else:
            self.line["different"].append(f"{case}: ballast {mine}, model_signing {peer}")

    def print(self):
        self.line["what"] += f" ({self.good} verified)"
        print(json.dumps(self.line), flush=True)


def judge(folder, by):
    """Every kind of model, signed by one of both, changed, and verified by both."""
    row, signing = Row(f"signed by {by}, verified by both", "models × changes × options"), Row(f"{by} signs", "models × options")
    for kind, place, how in itertools.product(MODELS, ("inside", "outside"), SIGNING):
        if place == "outside" and kind in ("with_git", "with_link"):
            continue
        source = folder / "source"
        shutil.rmtree(folder, ignore_errors=True)
        source.mkdir(parents=True)
        MODELS[kind](source / "model")
        if place == "inside" and kind == "one_file":
            continue
        name = "model/model.sig" if place == "inside" else "model.sig"
        done = sign(by, source / "model", source / name, SIGNING[how])
        if by == "ballast":
            shutil.copytree(source, folder / "other", symlinks=True)
            (folder / "other" / name).unlink(missing_ok=True)
            signing.add(f"{kind} {place} {how}", done, sign("model_signing", folder / "other/model", folder / "other" / name, SIGNING[how]))
        if not done[0]:
            continue
        for change, checking in itertools.product(CHANGES, VERIFYING):
            copy = folder / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy, symlinks=True)
            CHANGES[change](copy / "model")
            row.add(f"{kind} {place} {how} {change} {checking}", *verdicts(copy / "model", copy / name, VERIFYING[checking]))
    row.print()
    if by == "ballast":
        signing.line["way"] = "both sign"
        signing.print()


def curves_and_methods(folder):
    for by in ("ballast", "model_signing"):
        row = Row(f"signed by {by}, verified by both", "curves × methods × changes")
        for curve, leaf, change in itertools.product(CURVES, (False, True), ("none", "changed", "added")):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            plain(folder / "model")
            assert sign(by, folder / "model", folder / "model.sig", SIGNING["usual"], curve, leaf)[0]
            CHANGES[change](folder / "model")
            row.add(f"{curve} {leaf} {change}", *verdicts(folder / "model", folder / "model.sig", VERIFYING["usual"], curve, leaf))
        row.print()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        curves_and_methods(pathlib.Path(name) / "x")
        for who in ("ballast", "model_signing"):
            judge(pathlib.Path(name) / "x", who)
