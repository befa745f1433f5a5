# SPDX-License-Identifier: Apache-2.0
"""Every block of code in the documents is compiled or run, and what it prints is compared: blocks.py BALLAST EXAMPLES PYTHONPATH FOLDER DOCUMENT...

    ```cpp      compiled by extract.py and its tests (this script only counts it; <!-- compiled: why it is not run -->), or it stands in a file of the repository that is (<!-- path -->)
    ```cmake    stands in such a file
    ```console  every line "$ …" is run in a folder with the bundled files; the lines below it are what it prints, "…" stands for any lines
    ```python   run there
    ```text     what a program prints (<!-- printed by PROGRAM in FOLDER -->)
    ```json     parsed; ```rules likewise

"age1…" in a command or in Python is the recipient of key.txt. A program of others that is not installed is counted and passed over.
A block that cannot be run says so and why: <!-- not run: why -->. The count of all of them is printed, and a kind that is none of these is an error."""
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHERS = ("age", "openssl", "model_signing")  # programs that are not Ballast's
BLOCK = re.compile(r"^(?:<!-- (?P<mark>.*?) -->\n)?```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.M | re.S)


class RunsCode:
    def __reduce__(self):
        return (os.system, ("echo owned",))


def prepare(folder, ballast):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "examples/import_weights/net.pt", folder)
    shutil.copy(ROOT / "examples/mnist/mnist.pt", folder)
    (folder / "download.pkl").write_bytes(pickle.dumps({"weight": RunsCode()}, 2))
    subprocess.run([ballast, "convert", "net.pt", "tuned.safetensors", "--quiet", "--dtype", "bf16"], cwd=folder, check=True)


def prepare_own(folder, ballast, page):
    """Files that pages below the first ones take for the reader's own."""
    subprocess.run([sys.executable, "-B", pathlib.Path(__file__).with_name("files.py"), folder, ROOT], check=True)
    for words in (["convert", "model.pt", "after.safetensors"], ["convert", "t5.pt", "fresh.bpk", "--layers", "shared$=embedding", "--layers", "mix$=linear"]):
        subprocess.run([ballast, *words, "--quiet"], cwd=folder, check=True)
    if page != "python.md":  # which makes it itself, and is given keys
        subprocess.run([ballast, "convert", "model.pt", "model.safetensors", "--quiet"], cwd=folder, check=True)
    else:
        subprocess.run([ballast, "keygen", "-o", "key.txt", "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for name, fixture in (("key.pem", "key-p256.pem"), ("pub.pem", "pub-p256.pem")):
            shutil.copy(ROOT / "tests/fixtures/signatures/files" / fixture, folder / name)


def settled(text):
    return re.sub(r", in [\d.]+ m?s\b", "", text)


def matches(expected, printed):
    """Line by line; "…" is any number of lines."""
    if not expected:
        return not printed
    if expected[0] == "…":
        return any(matches(expected[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and expected[0].rstrip() == printed[0].rstrip() and matches(expected[1:], printed[1:])


class Runner:
    def __init__(self, ballast, examples, pythonpath, folder):
        self.ballast, self.folder, self.complaints, self.counts = ballast, folder, [], {}
        # no colour, no progress, and the width of a page
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("CLICOLOR", "BALLAST"))}
        self.env |= {"PATH": f"{pathlib.Path(ballast).parent}:{examples}:{os.environ['PATH']}", "PYTHONPATH": pythonpath, "COLUMNS": "120", "LC_ALL": "C.UTF-8"}

    def count(self, kind):
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def run(self, command, folder):
        return subprocess.run(["bash", "-c", command], cwd=folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)

    def filled(self, text):
        """With the recipient that stands in key.txt, where one is meant."""
        key = self.folder / "key.txt"
        return text.replace("age1…", re.search(r"age1\w+", key.read_text())[0]) if "age1…" in text and key.exists() else text

    def view(self, command):
        """Serves until it is ended: that it says where is what there is to see."""
        words = re.sub(r"^ballast view", f"exec {self.ballast} view --no-open", command)
        process = subprocess.Popen(["bash", "-c", words], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = process.stdout.readline()
        process.terminate()
        process.communicate(timeout=20)
        return "http://127.0.0.1" in line or "http://localhost" in line, line

    def console(self, where, body):
        parts = re.split(r"^\$ (.*)\n", body, flags=re.M)[1:]
        for typed, shown in zip(parts[0::2], parts[1::2]):
            command = self.filled(re.sub(r"\s+#.*", "", typed))
            if command.split()[0] in OTHERS and not shutil.which(command.split()[0]):
                self.count("of a program that is not here")
                continue
            if command.startswith("ballast view"):
                fine, printed = self.view(command)
                if not fine:
                    self.complaints.append(f"{where}: {command}: {printed}")
                continue
            done = self.run(command, self.folder)
            expected = shown.splitlines()
            if done.returncode not in (0, 1) and not expected:
                self.complaints.append(f"{where}: {command}: exit {done.returncode}\n{done.stdout}")
            elif expected and not matches(expected, settled(done.stdout).splitlines()):
                self.complaints.append(f"{where}: {command} prints\n{settled(done.stdout)}")

    def block(self, where, mark, kind, body):
        if mark and mark.startswith("not run: "):
            self.count("not run")
        elif mark and mark.startswith("compiled: ") and kind == "cpp":
            self.count("compiled")
        elif mark and mark.startswith("printed by "):
            program, _, folder = mark.removeprefix("printed by ").partition(" in ")
            shutil.copytree(ROOT / folder, self.folder / "printed", dirs_exist_ok=True)
            done = self.run(program, self.folder / "printed")
            if not matches(body.splitlines(), settled(done.stdout).splitlines()):
                self.complaints.append(f"{where}: {program} prints\n{done.stdout}")
            self.count("printed")
        elif mark and (ROOT / mark).is_file():
            if body not in (ROOT / mark).read_text():
                self.complaints.append(f"{where}: is not in {mark}")
            self.count("of a file")
        elif kind == "cpp":
            self.count("compiled")
        elif kind == "console":
            self.console(where, body)
            self.count("run")
        elif kind == "python":
            done = subprocess.run(["/usr/bin/env", sys.executable, "-B", "-c", self.filled(body)], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120)
            if done.returncode:
                self.complaints.append(f"{where}: {done.stderr}")
            self.count("run")
        elif kind == "json":
            json.loads(body)
            self.count("parsed")
        else:
            self.complaints.append(f"{where}: a block of {kind or 'no kind'} that nothing checks: say <!-- not run: why -->")


def main():
    ballast, examples, pythonpath, folder, *documents = sys.argv[1:]
    runner = Runner(str(pathlib.Path(ballast).resolve()), examples, pythonpath, pathlib.Path(folder))
    for name in documents:
        text = pathlib.Path(name).read_text(encoding="utf-8")
        prepare(runner.folder, runner.ballast)
        if not pathlib.Path(name).name.startswith(("README", "start", "guide", "run")):
            prepare_own(runner.folder, runner.ballast, pathlib.Path(name).name)
        for found in BLOCK.finditer(text):
            runner.block(f"{pathlib.Path(name).name}:{text.count(chr(10), 0, found.start()) + 1}", found["mark"], found["kind"], found["body"])
    print("\n".join(runner.complaints))
    print(", ".join(f"{count} {kind}" for kind, count in sorted(runner.counts.items())))
    sys.exit(1 if runner.complaints else 0)


if __name__ == "__main__":
    main()
