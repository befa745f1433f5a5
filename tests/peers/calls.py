# SPDX-License-Identifier: Apache-2.0
"""calls.py FRAMEWORK: every call of the published safetensors package and of its part for the framework, with good and bad arguments, and the same
call under ballast.compat. Results, classes of errors and their texts are compared one by one.

A result is the same when its kind, dtypes, shapes and bits are. An error is the same when whoever catches the published one catches ours, and its text is
the published one's. What differs on purpose stands in call_reasons.py, is counted under its reason, and is written into docs/compatibility.md.
"""
import importlib
import json
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np

import ballast.compat
import call_core
import call_parts
import frameworks
from call_reasons import OTHER_CLASSES, REASONS
from exchange import Direction

class Side:
    """One of the two packages, with files of its own."""

    def __init__(self, core, part, framework, folder):
        self.core, self.part, self.framework, self.folder = core, part, framework, folder
        folder.mkdir()
        for name, data in call_core.FILES.items():
            (folder / name).write_bytes(data)
        (folder / "folder").mkdir()

    def path(self, name):
        return str(self.folder / name)

    def tensor(self, code, shape=(2, 3), seed=0):
        size = frameworks.DTYPES[code][0]
        count = size * int(np.prod(shape, dtype=np.int64))
        return self.framework.make(bytes((i * 37 + seed) % (2 if code == "BOOL" else 120) for i in range(count)), code, shape)

    def spec(self, **changed):
        """A TensorSpec of memory that stays."""
        return self.core.TensorSpec(**{"dtype": "float32", "shape": [2, 3], "data_ptr": call_core.MEMORY.ctypes.data, "data_len": 24, **changed})


def shown_file(data):
    """A Safetensors file without the order of its metadata, which the published package draws by lot."""
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        return ["file", size, sorted(header.pop("__metadata__", {}).items()), list(header.items()), data[8 + size :].hex()]
    except (ValueError, AttributeError):
        return ["bytes", data.hex()]


def shown(value, framework):
    """Anything a call gives, as text that two packages can be compared by."""
    if isinstance(value, pathlib.Path):
        return shown_file(value.read_bytes())
    if isinstance(value, bytes):
        return shown_file(value)
    if isinstance(value, dict):  # the order of names is the published one's of a moment
        return [type(value).__name__, sorted(([shown(k, framework), shown(v, framework)] for k, v in value.items()), key=repr)]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [shown(item, framework) for item in value]]
    if isinstance(value, (set, frozenset)):
        return ["set", sorted(map(repr, value))]
    if isinstance(value, bytearray):
        return ["bytearray", value.hex()]
    if isinstance(value, np.ndarray):
        return ["array", str(value.dtype), list(value.shape), np.ascontiguousarray(value).tobytes().hex()]
    if type(value).__name__ == "TensorSpec":
        return ["TensorSpec", value.dtype, value.shape, value.data_len]
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type):
        return [type(value).__name__, framework.code(value), list(value.shape), framework.bits(value).hex()]
    if isinstance(value, type):
        return ["class", value.__name__]
    return [type(value).__name__, repr(value)]


def plain(text, folder):
    text = text.replace(str(folder), "FOLDER")
    return re.sub(r"0x[0-9a-f]+", "0x…", text)  # where something lies


def answer(call, side):
    """("gives", …) or ("raises", class, text)"""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ("gives", plain(json.dumps(shown(call(side), side.framework)), side.folder), None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        return ("raises", plain(str(error), side.folder), error)


def catches(theirs, ours):
    """Whoever catches the one catches the other."""
    if type(theirs).__name__ == "SafetensorError":
        return type(ours).__name__ == "SafetensorError" or any(base.__name__ == "SafetensorError" for base in type(ours).__mro__)
    return isinstance(ours, type(theirs))


def short(found):
    text = found[1] if len(found[1]) < 300 else found[1][:300] + "…"
    return f"{type(found[2]).__name__}: {text}" if found[0] == "raises" else text


def judge(direction, name, theirs, ours):
    if theirs[:2] == ours[:2] and (theirs[0] == "gives" or catches(theirs[2], ours[2])):
        direction.same += 1
        return
    is_caught = theirs[0] != "raises" or ours[0] != "raises" or catches(theirs[2], ours[2])
    for calls, their_answer, our_answer, why in REASONS:
        if not is_caught and why not in OTHER_CLASSES:
            continue
        if re.search(calls, name) and re.search(their_answer, short(theirs)) and re.search(our_answer, short(ours)):
            direction.named[why] += 1
            return
    direction.different.append(f"{name}: {short(ours)} instead of {short(theirs)}")


def main():
    framework = frameworks.FRAMEWORKS[sys.argv[1]]()
    places = ["safetensors", f"safetensors.{framework.part}"]
    theirs = [importlib.import_module(place) for place in places]
    ballast.compat.install(force=True)
    ours = [importlib.import_module(place) for place in places]
    if any(a is b for a, b in zip(theirs, ours)):
        raise SystemExit("ballast.compat did not take its place")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        published, mine = Side(*theirs, framework, folder / "published"), Side(*ours, framework, folder / "ballast")
        for what, calls in (("safetensors", call_core.calls(framework)), (f"safetensors.{framework.part}", call_parts.calls(framework))):
            direction = Direction("calls one by one", what)
            for label, call in calls:
                judge(direction, label, answer(call, published), answer(call, mine))
            print(json.dumps(direction.line()), flush=True)


if __name__ == "__main__":
    main()
