"""The text of canonical_text.h, written from Python's objects."""
import argparse
import codecs
import struct
import types
import uuid

from recording_types import FILES, HELPERS, PATHS, TIMES, Checked, Function, Inert

LONGEST = 65536                                    # of a text: as in canonical_text.h
DEEPEST = 60


class TooLong(Exception):
    pass


# Python 2's str that is not UTF-8 is bytes for Ballast. CPython is asked for UTF-8 as torch.load does; what is none keeps a mark.
MARK = 0x10FE00
PYTHON2_BYTES = "python2-bytes"                     # the name of this way to decode


def python2_bytes(error):
    return "".join(chr(MARK + b) for b in error.object[error.start:error.end]), error.end


codecs.register_error(PYTHON2_BYTES, python2_bytes)


def text_of_str(text):
    if text.isascii() or not any(MARK <= ord(c) < MARK + 256 for c in text):
        return "s" + text.encode("utf-8", "surrogatepass").hex()
    return "b" + b"".join(bytes([ord(c) - MARK]) if MARK <= ord(c) < MARK + 256 else c.encode("utf-8", "surrogatepass") for c in text).hex()


def escaped_name(name):
    return "".join(c if c.isascii() and (c.isalnum() or c in "_.") else "".join(f"%{b:02x}" for b in c.encode("utf-8", "surrogatepass"))
                   for c in name)


def text_of_float(value):
    return "fnan" if value != value else "f" + struct.pack(">d", value).hex()


class Canonical:
    """The text of canonical_text.h."""

    def __init__(self, budget):
        self.out, self.numbers, self.budget = [], {}, budget

    def put(self, text):
        self.budget[0] -= len(text)
        if self.budget[0] <= 0:
            raise TooLong
        self.out.append(text)

    def enter(self, value):
        first = id(value) not in self.numbers
        number = self.numbers.setdefault(id(value), len(self.numbers))
        self.put(f"#{number}=" if first else f"#{number}")
        return first

    def elements(self, values, depth):
        for i, value in enumerate(values):
            if i:
                self.put(",")
            self.write(value, depth + 1)

    def pairs(self, pairs, depth):
        self.put("{")
        for key, value in pairs.items():
            self.write(key, depth + 1)
            self.put(":")
            self.write(value, depth + 1)
            self.put(",")
        self.put("}")

    def set(self, values, depth):
        texts = []
        for value in values:
            one = Canonical(self.budget)
            one.write(value, depth + 1)
            texts.append("".join(one.out))
        self.put("{" + ",".join(sorted(texts, key=lambda t: t.encode())) + "}")

    def object(self, value, depth):
        if isinstance(value, Checked) and type(value).path in TIMES and value.args and type(value.args[0]) in (bytes, str) \
                and hasattr(value.value, "isoformat"):
            return self.put(f"<{value.path}>s{value.value.isoformat().encode().hex()}")
        if type(value).path in FILES:
            return self.put(f"<{value.path}>{text_of_str(str(value.value))}")
        if not self.enter(value):
            return None
        self.put("O" + escaped_name(value.path) + "(")
        self.elements(value.args, depth)
        self.put(")")
        if value.kwargs:
            self.pairs(value.kwargs, depth)
        if value.state is not None:
            self.put("|")
            self.write(value.state, depth + 1)
        if value.items:
            self.put("[")
            self.elements(value.items, depth)
            self.put("]")
        if value.pairs:
            self.pairs(value.pairs, depth)
        return None

    def write(self, value, depth):
        kind = type(value)
        if depth > DEEPEST:
            self.put("^")
        elif value is None:
            self.put("N")
        elif kind is bool:
            self.put("T" if value else "F")
        elif kind is int:
            self.put(f"i{value}")
        elif kind is float:
            self.put(text_of_float(value))
        elif kind is complex:
            self.put(f"c({text_of_float(value.real)},{text_of_float(value.imag)})")
        elif kind is str:
            self.put(text_of_str(value))
        elif kind is bytes:
            self.put("b" + value.hex())
        elif kind is bytearray:
            if self.enter(value):
                self.put("B" + value.hex())
        elif kind is tuple:
            self.put("(")
            self.elements(value, depth)
            self.put(")")
        elif kind is frozenset:
            self.put("<frozenset>")
            self.set(value, depth)
        elif isinstance(value, Inert):
            self.object(value, depth)
        else:
            self.container_or_name(value, kind, depth)

    def uuid(self, value):
        number = getattr(value, "int", None)
        if number is None:                         # made, but its state never came
            if self.enter(value):
                self.put("Ouuid.UUID()")
        elif type(number) is int and 0 <= number < 2**128:
            self.put(f"<uuid.UUID>s{str(value).encode().hex()}")
        else:
            self.put("?UUID")

    def container_or_name(self, value, kind, depth):
        if kind is uuid.UUID:
            self.uuid(value)
        elif kind in (types.SimpleNamespace, argparse.Namespace):
            if self.enter(value):
                self.put(f"<{PATHS[kind]}>")
                self.pairs(vars(value), depth)
        elif kind in PATHS:
            if not self.enter(value):
                return
            path = PATHS[kind]
            self.put("<set>" if kind is set else "" if path.startswith("builtins.") else f"<{path}>")
            if isinstance(value, dict):
                self.pairs(value, depth)
            elif kind is set:
                self.set(value, depth)
            else:
                self.put("[")
                self.elements(value, depth)
                self.put("]")
            attributes = getattr(value, "__dict__", None)
            if attributes:
                self.put("@")
                self.pairs(attributes, depth)
        elif isinstance(value, (type, Function)) or value in HELPERS.values():
            path = PATHS.get(value) if isinstance(value, type) else None
            path = path or next((p for p, f in HELPERS.items() if f is value), None) or value.path
            self.put("G" + escaped_name(path))
        else:
            self.put(f"?{kind.__name__}")


def canonical(value):
    one = Canonical([LONGEST])
    try:
        one.write(value, 0)
    except TooLong:
        return "~"
    return "".join(one.out)
