#!/usr/bin/env python3
"""Seeds for onnx_fuzz: the models of tests/fixtures/onnx and the smaller hostile ones of tests/attacks."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/attacks"))
import onnx_attacks  # noqa: E402


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in (ROOT / "tests/fixtures/onnx/files").glob("*.onnx"):
        (folder / path.name).write_bytes(path.read_bytes())
    for sample in onnx_attacks.samples():
        if len(sample.data) <= 1024:
            (folder / sample.name).write_bytes(sample.data)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
