# SPDX-License-Identifier: Apache-2.0
"""fixtures.py: the files that Burn's readers are tested with, through ballast convert and back into those readers: the same names, dtypes, shapes, bits.

They are part of the crate pytorch-reader and are read where cargo has unpacked it. What the reader refuses by itself is counted in its own column.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import places
from exchange import Direction

# To what each is converted: extension, words for convert.
TARGETS = {
    ".pt": [],
    ".pt (legacy)": ["--to", "torch-legacy"],
    ".bpk": ["--layout", "pytorch"],  # as they lie: Burn's adapter turns them when a model is loaded
}


def fixtures():
    version = places.installed("burnfiles")["pytorch-reader"]
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    return sorted(home.glob(f"registry/src/*/pytorch-reader-{version}/src/tests/test_data/*.pt"))


def found_in(files):
    """file → {name: (dtype, dims, bits)}, or the text of the reader's error"""
    done = subprocess.run([str(places.burn_files()), *map(str, files)], capture_output=True, text=True, check=True)
    answers = {}
    for line in done.stdout.splitlines():
        if line.startswith("file "):
            rows = answers[line[5:]] = {}
            current = line[5:]
        elif line.startswith("error "):
            answers[current] = line[6:]
        else:
            _, name, dtype, dims, bits = line.split("\t")
            rows[name] = (dtype.partition("(")[0], dims, bits)  # Bool(Native) is Bool
    return answers


def main():
    files = fixtures()
    if not files:
        sys.exit("cargo has no pytorch-reader with its fixtures")
    own = found_in(files)
    for suffix, words in TARGETS.items():
        direction = Direction("Burn's own fixtures through convert", f"as {suffix}")
        with tempfile.TemporaryDirectory() as folder:
            made = {}
            for file in files:
                rows = own[str(file)]
                if isinstance(rows, str):
                    direction.refused[rows] += 1
                    continue
                target = pathlib.Path(folder) / (file.stem + suffix.partition(" ")[0])
                done = subprocess.run([places.tool(), "convert", str(file), str(target), "--root", "", *words], capture_output=True, text=True)
                if done.returncode:
                    direction.different.append(f"{file.name}: {done.stderr.strip().splitlines()[-1:]}")
                else:
                    made[str(target)] = rows
            answers = found_in(made)
            for target, rows in made.items():
                if isinstance(answers[target], str):
                    direction.different.append(f"{pathlib.Path(target).name}: {answers[target]}")
                    continue
                direction.same += sum(answers[target].get(name) == row for name, row in rows.items())
                direction.different += [f"{pathlib.Path(target).name}: {name}" for name, row in rows.items() if answers[target].get(name) != row]
                direction.different += [f"{pathlib.Path(target).name}: {name} is new" for name in answers[target] if name not in rows]
        print(json.dumps(direction.line()))


if __name__ == "__main__":
    main()
