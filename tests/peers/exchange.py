# SPDX-License-Identifier: Apache-2.0
"""exchange.py FRAMEWORK: files from the framework to Ballast and back, every dtype × shape × format, bit for bit.

Each tensor is random bits, NaNs and all; a file holds a dtype in every shape. A direction is one line of JSON: how many tensors came out with the same
dtype, shape and bits, which did not, and how many the framework (or the published safetensors package) refused by itself.
"""
import collections
import importlib
import json
import pathlib
import random
import struct
import sys
import tempfile

import ballast
import frameworks

SHAPES = [(), (0,), (1,), (7,), (64,), (3, 5), (2, 0, 3), (2, 3, 4), (1, 1, 1, 1), (2, 1, 3, 2), (2, 2, 1, 3, 2)]
NPZ_LACKS = {"BF16", *(code for code in frameworks.DTYPES if code.startswith("F8"))}  # ml_dtypes' arrays are raw bytes in NumPy's files
LEGACY_LACKS = {"U16", "U32", "U64", *(code for code in frameworks.DTYPES if code.startswith("F8"))}  # dtypes younger than the format


class Direction:
    """``refused``: what the peer cannot do by itself, whoever wrote the file. ``named``: what differs on purpose, by its reason."""

    def __init__(self, way, what):
        self.way, self.what, self.same, self.different, self.refused, self.named = way, what, 0, [], collections.Counter(), collections.Counter()

    def compare(self, what, found, wanted):
        """(dtype, shape, bits) of both."""
        if found == wanted:
            self.same += 1
        else:
            fields = [f"{a} instead of {b}" for a, b in zip(found[:2], wanted[:2]) if a != b] or ["other bits"]
            self.different.append(f"{what}: {', '.join(fields)}")

    def compare_all(self, what, found, held):
        for name, (_, *wanted) in held.items():
            self.compare(f"{name}{what}", list(found.get(name, ("nothing", "-", b""))), wanted)

    def failed(self, what, error):
        self.different.append(f"{what}: {said(error)}")

    def line(self):
        return {"way": self.way, "what": self.what, "same": self.same, "different": self.different, "refused": self.refused, "named": self.named}


def said(error):
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def tensors_of(framework, code):
    """name → [tensor, code, shape, bits] of what the framework holds of a dtype."""
    chance, held, size = random.Random(code), {}, frameworks.DTYPES[code][0]
    for shape in SHAPES:
        count = size
        for n in shape:
            count *= n
        raw = bytes(chance.getrandbits(8) & (1 if code == "BOOL" else 255) for _ in range(count))
        try:
            tensor = framework.make(raw, code, shape)
            if (framework.code(tensor), tuple(tensor.shape), framework.bits(tensor)) == (code, shape, raw):
                held[f"{code}.{'x'.join(map(str, shape)) or 'scalar'}"] = [tensor, code, shape, raw]
        except Exception:
            continue  # no such dtype there, or none of this shape
    return held


# How a format is written and read, there and here: functions of (path, {name: tensor}) and of (path).
Format = collections.namedtuple("Format", "name suffix write read ours_write ours_read lacks", defaults=[frozenset()])


def opened(path):
    """By ballast.open, without the framework: name → (code, shape, bits)"""
    return {name: (tensor.dtype, tuple(tensor.shape), tensor.tobytes()) for name, tensor in ballast.open(path).items()}


def saved(path, tensors, format=None):
    ballast.save(path, tensors, format=format, overwrite=True)


def formats_of(framework):
    ours, theirs = importlib.import_module(f"ballast.{framework.part}"), importlib.import_module(f"safetensors.{framework.part}")

    def shown(tensors):
        return {name: (framework.code(tensor), tuple(tensor.shape), framework.bits(tensor)) for name, tensor in tensors.items()}

    def ours_write(path, tensors):
        ours.save_file(tensors, path)

    yield Format("safetensors", ".safetensors", lambda p, t: theirs.save_file(t, p), lambda p: shown(theirs.load_file(p)), ours_write, lambda p: shown(ours.load_file(p)))
    yield Format("safetensors (memory)", ".safetensors", lambda p, t: p.write_bytes(theirs.save(t)), lambda p: shown(theirs.load(p.read_bytes())),
                 lambda p, t: p.write_bytes(ours.save(t)), lambda p: shown(ours.load(p.read_bytes())))  # fmt: skip
    if framework.name == "torch":
        torch = framework.torch
        read = lambda p: shown(torch.load(p, weights_only=True))  # noqa: E731
        yield Format(".pt", ".pt", lambda p, t: torch.save(t, p), read, saved, lambda p: shown(ours.load_file(p)))
        yield Format(".pt (mapped)", ".pt", lambda p, t: torch.save(t, p), lambda p: shown(torch.load(p, weights_only=True, mmap=True)), saved, lambda p: shown(ours.load_file(p, backend="pread")))
        yield Format(".pt (legacy)", ".pt", lambda p, t: torch.save(t, p, _use_new_zipfile_serialization=False), read, lambda p, t: saved(p, t, "torch-legacy"), opened, LEGACY_LACKS)
    if framework.name == "numpy":
        np = importlib.import_module("numpy")
        read = lambda p: shown(dict(np.load(p)))  # noqa: E731
        yield Format(".npz", ".npz", lambda p, t: np.savez(p, **t), read, saved, opened, NPZ_LACKS)
        yield Format(".npz (deflated)", ".npz", lambda p, t: np.savez_compressed(p, **t), read, saved, opened, NPZ_LACKS)
    if framework.name == "mlx":
        mx = framework.mx
        yield Format("mlx.core's safetensors", ".safetensors", lambda p, t: mx.save_safetensors(str(p), t), lambda p: shown(mx.load(str(p))), ours_write, opened)


def there_then_here(direction, framework, format, path, held):
    try:
        format.write(path, {name: row[0] for name, row in held.items()})
    except Exception as error:
        if len(held) == 1:
            direction.refused[said(error)] += 1
        else:  # one of them is refused: which?
            for name, row in held.items():
                there_then_here(direction, framework, format, path, {name: row})
        return
    for how, read in (("", format.ours_read), (" by open()", opened)):
        try:
            direction.compare_all(how, read(path), held)
        except Exception as error:
            direction.failed(path.name + how, error)


def here_then_there(direction, framework, format, path, held):
    try:
        format.ours_write(path, {name: row[0] for name, row in held.items()})
        direction.compare_all(" by open()", opened(path), held)
    except Exception as error:
        direction.failed(path.name, error)
        return
    if framework.dies_of_empty_tensors:
        whole = {name: row for name, row in held.items() if 0 not in row[2]}
        direction.refused["an empty tensor"] += len(held) - len(whole)
        held = whole
        format.ours_write(path, {name: row[0] for name, row in held.items()})
    answer = answer_of(format, path)
    if isinstance(answer, dict) and all(list(answer.get(name, ())) == row[1:] for name, row in held.items()):
        direction.compare_all("", answer, held)
        return
    own = answer_of(format, path, {name: row[0] for name, row in held.items()})
    if own == answer or not isinstance(answer, dict) and not isinstance(own, dict):
        direction.refused[answer if isinstance(answer, str) else "changed by the peer, in its own files too"] += len(held)
    elif isinstance(answer, dict):
        direction.compare_all("", answer, held)
    else:
        direction.different += [f"{name}: the peer reads its own file, and of ours says {answer}" for name in held]


def answer_of(format, path, tensors=None):
    """What the peer reads of the file, or of one it writes itself first; the text of its error where it reads nothing."""
    try:
        if tensors is not None:
            format.write(path, tensors)
        return format.read(path)
    except Exception as error:
        return said(error)


def packed(framework, folder):
    """A packed file is a Safetensors file to the published package: every name is there, and what is packed as the bytes it is packed in."""
    theirs, chance, direction = importlib.import_module(f"safetensors.{framework.part}"), random.Random("packed"), Direction("from Ballast", "packed")
    weights = {f"w{i}": framework.make(struct.pack("<30000f", *(chance.gauss(0, 0.02) for _ in range(30000))), "F32", (100, 300)) for i in range(3)}
    steps = framework.make(struct.pack("<3i", 1, 2, 3), "I32", (3,))
    for how in ("fast", "small"):
        path = folder / f"{how}.safetensors"
        ballast.save(path, {**weights, "steps": steps}, pack=how)
        blob = path.read_bytes()
        start = 8 + int.from_bytes(blob[:8], "little")
        header = json.loads(blob[8:start])
        names = json.loads(header.pop("__metadata__")["ballast.packed"])
        found = theirs.load_file(path)
        for name, said_of_it in header.items():
            begin, end = (start + offset for offset in said_of_it["data_offsets"])
            wanted = (["U8", (end - begin,)] if name in names else ["I32", (3,)]) + [blob[begin:end]]
            direction.compare(f"{name}, {how}", [framework.code(found[name]), tuple(found[name].shape), framework.bits(found[name])], wanted)
        direction.compare(f"names, {how}", [sorted(found), sorted(names)], [sorted([*weights, "steps"]), sorted(weights)])
    return direction


def main():
    framework = frameworks.FRAMEWORKS[sys.argv[1]]()
    every = {code: tensors_of(framework, code) for code in frameworks.DTYPES}
    with tempfile.TemporaryDirectory() as name:
        for number, format in enumerate(formats_of(framework)):
            for way, text in ((there_then_here, "to Ballast"), (here_then_there, "from Ballast")):
                direction = Direction(text, format.name)
                for code, held in every.items():
                    if held and code not in format.lacks:
                        way(direction, framework, format, pathlib.Path(name) / f"{number}-{way.__name__}-{code}{format.suffix}", held)
                print(json.dumps(direction.line()))
        print(json.dumps(packed(framework, pathlib.Path(name)).line()))


if __name__ == "__main__":
    main()
