# SPDX-License-Identifier: Apache-2.0
"""stubs.py: mypy's stubtest over the package: what the stubs promise of the compiled module is what it has, and the other way round."""
import ast
import importlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import ballast
from exchange import Direction

HERE = pathlib.Path(ballast.__file__).parent
PARTS = ["ballast._native", "ballast._tensor", "ballast._checkpoint", "ballast._files", "ballast.numpy", "ballast.compat"]  # those that need no framework


def promised(part):
    """How many names its stub, or its source, has."""
    stub = HERE / (part.rpartition(".")[2] + ".pyi")
    source = stub if stub.exists() else pathlib.Path(importlib.import_module(part).__file__)
    return sum(isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign)) for node in ast.walk(ast.parse(source.read_text())))


def main():
    direction = Direction("stubs as the module is", ", ".join(PARTS))
    for part in PARTS:  # together they are one module under two names to it
        done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--concise", part], capture_output=True, text=True, cwd=tempfile.gettempdir())
        found = re.findall(r"^(ballast\..*)$", done.stdout, re.M)
        if done.returncode and not found:
            found = [(done.stdout + done.stderr).strip()[-300:]]
        direction.different += found
        direction.same += max(0, promised(part) - len(found))
    print(json.dumps(direction.line()))


if __name__ == "__main__":
    main()
