# SPDX-License-Identifier: Apache-2.0
"""packs.py: tensors of every dtype that Burn has, in every shape, between Ballast and the crates that Burn reads files with: bit for bit.

From Ballast: Safetensors through convert to .bpk (burn-pack reads it) and to .pt, both kinds (pytorch-reader does). To Ballast: what burn-pack writes of
them itself, through convert to Safetensors. Safetensors is written and read here by hand.
"""
import json
import math
import pathlib
import random
import subprocess
import tempfile

import places
from exchange import SHAPES, Direction
from fixtures import TARGETS, found_in

# Safetensors' code: bytes, and the name that both crates have for it.
DTYPES = {
    "F64": (8, "F64"), "F32": (4, "F32"), "F16": (2, "F16"), "BF16": (2, "BF16"), "I64": (8, "I64"), "I32": (4, "I32"), "I16": (2, "I16"), "I8": (1, "I8"),
    "U64": (8, "U64"), "U32": (4, "U32"), "U16": (2, "U16"), "U8": (1, "U8"), "BOOL": (1, "Bool"),
}  # fmt: skip
LEGACY_LACKS = {"U16", "U32", "U64"}  # dtypes younger than the format


def tensors_of(code):
    """name → (code, shape, random bits)"""
    chance = random.Random(code)
    sizes = {shape: DTYPES[code][0] * math.prod(shape) for shape in SHAPES}
    return {f"{code}.{'x'.join(map(str, shape)) or 'scalar'}": (code, list(shape), bytes(chance.getrandbits(1 if code == "BOOL" else 8) for _ in range(size))) for shape, size in sizes.items()}


def write(path, tensors):
    header, data = {}, b""
    for name, (code, shape, bits) in tensors.items():
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    at = 8 + size
    return {name: (row["dtype"], row["shape"], data[at + row["data_offsets"][0] : at + row["data_offsets"][1]]) for name, row in header.items()}


def convert(source, target, *words):
    done = subprocess.run([places.tool(), "convert", str(source), str(target), "-f", *words], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1:] if done.returncode else None


def as_crates_say_it(tensors):
    return {name: (DTYPES[code][1], "x".join(map(str, shape)), bits.hex()) for name, (code, shape, bits) in tensors.items()}


def compare(direction, code, found, wanted):
    if isinstance(found, str):
        direction.refused[f"{code}: {found}"] += len(wanted)
        return
    direction.same += sum(found.get(name) == row for name, row in wanted.items())
    direction.different += [name for name, row in wanted.items() if found.get(name) != row]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for suffix, words in TARGETS.items():
            direction = Direction("every dtype and shape, from Ballast", f"as {suffix}")
            for code in DTYPES:
                if "legacy" in suffix and code in LEGACY_LACKS:
                    continue
                source, target = folder / f"{code}.safetensors", folder / f"{code}{suffix.partition(' ')[0]}"
                write(source, tensors_of(code))
                failed = convert(source, target, *words)
                if failed:
                    direction.different.append(f"{code}: {failed}")
                else:
                    compare(direction, code, found_in([target])[str(target)], as_crates_say_it(tensors_of(code)))
            print(json.dumps(direction.line()))
        direction = Direction("every dtype and shape, to Ballast", "burn-pack's .bpk")
        for code in DTYPES:
            pack, again, target = folder / f"{code}.bpk", folder / f"{code}-again.bpk", folder / f"{code}-again.safetensors"
            subprocess.run([str(places.burn_files()), "copy", str(pack), str(again)], check=True)
            failed = convert(again, target)
            if failed:
                direction.different.append(f"{code}: {failed}")
            else:
                compare(direction, code, read(target), tensors_of(code))
        print(json.dumps(direction.line()))


if __name__ == "__main__":
    main()
