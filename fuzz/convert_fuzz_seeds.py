#!/usr/bin/env python3
"""Seeds for convert_fuzz: the small files among the fixtures of every format, the legal and the hostile ones of tests/attacks, and pickles."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/attacks"))
import legal  # noqa: E402
import stream_attacks  # noqa: E402
import tensor_attacks  # noqa: E402
import vm_attacks  # noqa: E402

LARGEST = 4096


def files():
    for folder in ("torch/files", "burn/files", "onnx/files", "import"):
        for path in sorted((ROOT / "tests/fixtures" / folder).iterdir()):
            if path.is_file() and path.suffix not in (".py", ".json"):
                yield path.read_bytes()
    for line in (ROOT / "tests/formats/safetensors/cases.tsv").read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if not line.startswith("#") and fields[0] != "case":
            yield bytes.fromhex(fields[1])
    for group in (legal, stream_attacks, tensor_attacks, vm_attacks):
        for sample in group.samples():
            yield bytes(sample.data)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(sorted({data for data in files() if 0 < len(data) <= LARGEST})):
        (folder / f"{number:04}").write_bytes(data)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
