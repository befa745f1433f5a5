#!/usr/bin/env python3
"""Seeds for pickle_fuzz: the pickles inside the torch fixtures, and the hostile ones of tests/attacks."""
import pathlib
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/attacks"))
import hide_attacks  # noqa: E402
import vm_attacks  # noqa: E402

LARGEST = 1024


def pickles():
    for path in sorted((ROOT / "tests/fixtures/torch/files").iterdir()):
        data = path.read_bytes()
        if data[:4] == b"PK\3\4" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.lower().endswith("data.pkl"):
                        try:
                            yield archive.read(name)
                        except zipfile.BadZipFile:  # a CRC that was left out, or is wrong on purpose
                            continue
        elif path.suffix == ".pkl":
            yield data
    for group in (hide_attacks, vm_attacks):
        for sample in group.samples():
            if sample.ext == "pkl":
                yield bytes(sample.data)


def main(folder):
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(sorted({d for d in pickles() if 0 < len(d) <= LARGEST})):
        (out / f"{i:04}").write_bytes(data)


main(sys.argv[1])
