#!/usr/bin/env python3
"""Seeds for index_fuzz: honest indexes, and the hostile ones of tests/attacks."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/attacks"))
import file_attacks  # noqa: E402


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plain").write_bytes(b'{"metadata": {"total_size": 12}, "weight_map": {"a.b": "model-00001-of-00002.safetensors", "c": "sub/x.bin"}}')
    for sample in file_attacks.samples():
        if sample.category == "index" and len(sample.data) < 2048:
            (folder / sample.name).write_bytes(sample.data)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
