#!/usr/bin/env python3
"""Seeds for torch_fuzz: the small files among the torch fixtures and the hostile ones of tests/attacks."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/attacks"))
import legal  # noqa: E402
import stream_attacks  # noqa: E402
import tensor_attacks  # noqa: E402

LARGEST = 2048


def files():
    for path in sorted((ROOT / "tests/fixtures/torch/files").iterdir()):
        yield path.read_bytes()
    for group in (legal, stream_attacks, tensor_attacks):
        for sample in group.samples():
            yield bytes(sample.data)


def main(folder):
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(sorted({d for d in files() if 0 < len(d) <= LARGEST})):
        (out / f"{i:04}").write_bytes(data)


main(sys.argv[1])
