#!/usr/bin/env python3
"""Seeds for bundle_fuzz: the reference's signatures of tests/fixtures/signatures, and the statements in them by themselves."""
import base64
import json
import pathlib
import sys

FILES = pathlib.Path(__file__).resolve().parents[1] / "tests/fixtures/signatures/files"


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(FILES.glob("*.sig")):
        (folder / path.name).write_bytes(path.read_bytes())
        envelope = json.loads(path.read_text()).get("dsseEnvelope")
        if envelope:
            (folder / f"{path.stem}.statement").write_bytes(base64.b64decode(envelope["payload"]))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
