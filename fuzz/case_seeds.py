"""Seeds by the grammars that other readers are compared with (tests/containers)."""
import importlib
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests/containers"), str(ROOT / "tests/attacks")]


def write(cases, folder, count=200):
    """Files of the module `cases`, the same every time."""
    make = importlib.import_module(cases).make
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (out / f"{number:03}").write_bytes(make(random.Random(number)))
