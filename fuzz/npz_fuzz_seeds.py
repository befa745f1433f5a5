#!/usr/bin/env python3
"""Seeds for npz_fuzz: arrays and archives of them, made by hand: stored, deflated, streamed, of either byte order."""
import io
import pathlib
import struct
import sys
import zipfile


def npy(descr, fortran, shape, data, version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"a": npy("<f4", False, "(2,)", bytes(8)), "b.c": npy(">i8", True, "(1, 2)", bytes(16)), "e": npy("|b1", False, "(0, 3)", b"", 2), "s": npy("<c8", False, "()", bytes(8), 3)}
    for name, array in arrays.items():
        (folder / f"array_{name}").write_bytes(array)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for zip64 in (False, True):
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", method) as archive:
                for name, array in arrays.items():
                    with archive.open(name + ".npy", "w", force_zip64=zip64) as entry:
                        entry.write(array)
            (folder / f"archive_{method}_{zip64}").write_bytes(out.getvalue())
    (folder / "empty").write_bytes(b"PK\5\6" + bytes(18))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
