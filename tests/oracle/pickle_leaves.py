"""The leaves of generated pickles, in every opcode and spelling, and their memo."""
import struct

from pickle_material import FLOAT_BITS, FLOATS, INTEGERS, RAW_BYTES, RAW_TEXTS, STRINGS, TEXT_FLOATS, TEXT_INTEGERS, TEXT_LONGS, TEXTS, UNICODES


def le(number, size):
    return (number & (256**size - 1)).to_bytes(size, "little")


class LeafWriter:
    """Numbers, text, bytes, and the memo, which knows what CPython's would hold."""

    def __init__(self, rng):
        self.rng, self.ops, self.memo, self.places = rng, [], {}, 0
        self.proto = rng.choice((0, 1, 2, 2, 3, 4, 4, 5))

    def put(self, op):
        self.ops.append(op if isinstance(op, bytes) else op.encode())

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, *choices):
        return self.rng.choice(choices)

    # Leaves

    def integer(self, value=None):
        r = self.rng
        if value is None and (self.proto == 0 or self.chance(0.1)):
            opcode, lines = (b"I", TEXT_INTEGERS) if self.chance(0.7) else (b"L", TEXT_LONGS)
            self.put(opcode + r.choice(lines[:3] if self.chance(0.6) else lines).encode() + b"\n")
            return "int"
        value = r.choice(INTEGERS) if value is None else value
        fits = [opcode + le(value, size) for opcode, size, least, most in ((b"K", 1, 0, 2**8), (b"M", 2, 0, 2**16), (b"J", 4, -2**31, 2**31))
                if least <= value < most]
        if not fits or self.chance(0.2):
            size = value.bit_length() // 8 + 1 + r.choice((0, 0, 1, 3))
            raw = value.to_bytes(size, "little", signed=True)
            fits = [b"\x8a" + le(size, 1) + raw if size < 256 else b"\x8b" + le(size, 4) + raw, b"\x8b" + le(size, 4) + raw]
            if value == 0:
                fits += [b"\x8a\0", b"\x8b\0\0\0\0"]
        self.put(r.choice(fits))
        return "int"

    def boolean(self):
        self.put(self.pick(b"I00\n", b"I01\n") if self.proto < 2 or self.chance(0.1) else self.pick(b"\x88", b"\x89"))
        return "bool"

    def floating(self):
        r = self.rng
        if self.proto == 0 or self.chance(0.15):
            self.put(b"F" + r.choice(TEXT_FLOATS).encode() + b"\n")
        elif self.chance(0.1):
            self.put(b"G" + struct.pack(">Q", r.choice(FLOAT_BITS)))
        else:
            self.put(b"G" + struct.pack(">d", r.choice(FLOATS)))
        return "float"

    def text(self, value=None):
        r = self.rng
        if value is None and (self.proto == 0 or self.chance(0.08)):
            self.put(b"S" + r.choice(STRINGS) + b"\n" if self.chance(0.5) else b"V" + r.choice(UNICODES) + b"\n")
            return "str"
        raw = (r.choice(TEXTS) if value is None else value).encode("utf-8", "surrogatepass")
        if value is None and self.chance(0.05):
            raw = r.choice(RAW_TEXTS)
        forms = [b"X" + le(len(raw), 4), b"T" + le(len(raw), 4)] + [b"\x8d" + le(len(raw), 8)] * (self.proto > 3 or self.chance(0.1))
        if len(raw) < 256:
            forms += [b"\x8c" + le(len(raw), 1)] * 4 * (self.proto > 3 or self.chance(0.1)) + [b"U" + le(len(raw), 1)]
        self.put(r.choice(forms) + raw)
        return "str"

    def raw(self):
        r = self.rng
        data = r.choice(RAW_BYTES)
        if self.chance(0.15):
            self.put(b"\x96" + le(len(data), 8) + data)
            return "bytearray"
        forms = [b"B" + le(len(data), 4), b"\x8e" + le(len(data), 8)] + [b"C" + le(len(data), 1)] * 3 * (len(data) < 256)
        self.put(r.choice(forms) + data)
        return "bytes"

    # Memo

    def memoize(self, tag):
        r = self.rng
        if self.chance(0.12):
            index = r.choice((r.randrange(6), r.randrange(300), len(self.memo) + 1, 2**32 - 1 if self.chance(0.05) else 3))
        else:
            index = len(self.memo)
        form = r.randrange(12)
        if (self.proto >= 4 and form < 8) or form == 11:
            index = len(self.memo)
            self.put(b"\x94")
        elif self.proto == 0 or form == 10:
            self.put(b"p" + self.slot(index) + b"\n")
        elif index < 256 and form != 9:
            self.put(b"q" + le(index, 1))
        else:
            self.put(b"r" + le(index, 4))
        self.memo[index] = tag

    def slot(self, index):
        """A slot as text: CPython takes any integer there is a spelling for."""
        text = str(index)
        return (self.pick("+" + text, " " + text, "-1", "0" + text, "x", text + "L", "", text + "_0", text + " ") if self.chance(0.03) else text).encode()

    def fetch(self, tags=None):
        """A GET of something with one of the tags; False when there is none."""
        fitting = [i for i, tag in self.memo.items() if tags is None or tag in tags]
        if not fitting:
            return False
        index = self.rng.choice(fitting)
        form = self.rng.randrange(6)
        if self.proto == 0 or form == 5:
            self.put(b"g" + self.slot(index) + b"\n")
        elif index < 256 and form != 4:
            self.put(b"h" + le(index, 1))
        else:
            self.put(b"j" + le(index, 4))
        return self.memo[index]
