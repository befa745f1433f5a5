#!/usr/bin/env python3
"""Seeds for zip_fuzz: small archives of every kind Python's zipfile writes, one laid out as PyTorch does, and the hostile ones of tests/attacks."""
import io
import pathlib
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/attacks"))
import zip_attacks  # noqa: E402

LARGEST = 1536


class Pipe(io.RawIOBase):
    """Cannot seek, so that zipfile writes descriptors."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def writable(self):
        return True

    def write(self, data):
        return self.out.write(data)


def archive(method, streamed, zip64, comment):
    out = io.BytesIO()
    with zipfile.ZipFile(Pipe(out) if streamed else out, "w", method) as z:
        for name, data in (("a/data.pkl", b"pickle" * 9), ("a/e", b""), ("a/data/0", bytes(16))):
            with z.open(name, "w", force_zip64=zip64) as entry:
                entry.write(data)
        z.comment = comment
    return out.getvalue()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [(m, s, z, c) for m in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for s in (False, True) for z in (False, True) for c in (b"", b"note")]
    for number, kind in enumerate(kinds):
        (folder / f"zipfile_{number}").write_bytes(archive(*kind))
    for sample in zip_attacks.samples():
        if len(sample.data) <= LARGEST:
            (folder / sample.name).write_bytes(sample.data)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
