"""Pickles of all protocols by a grammar: valid ones of every opcode, and mutants of them.

A Writer emits opcodes that leave one value on the stack, and keeps the memo as CPython would. Odd choices (two PROTOs, marks that
are popped, frames of wrong sizes, numbers spelled strangely) are part of the grammar with a small share each; mutate() then works
on whole opcodes and on bytes.
"""
import _compat_pickle
import random
import struct

TEXT_INTEGERS = ["0", "1", "-1", "7", "255", "65536", "-2147483649", "9223372036854775807", "9223372036854775808", "18446744073709551616",
                 "00", "01", "010", "-0", "+1", " 1", "1 ", "0x10", "0X1f", "1_000", "_1", "1__0", "", "0b101", "0o17", "1e3", "1.0", "--1", "- 1",
                 "007", "-00", "00 ", " 01", "01\r", "1\r", "\t5", "1\x00", "1\x0b", "1L", "\u0663", "0x", "00x1", "-01", "True"]
TEXT_LONGS = ["0L", "12L", "-5L", "12", "L", "", "0x10L", "1_0L", " 7L", "7 L", "007L", "12l", "1LL", "-L", "+3L", "99999999999999999999999L", "0b1L", "010", "0L\r"]
TEXT_FLOATS = ["0.0", "1.5", "-0.0", "1e400", "-1e400", "1e-400", "-1e-400", "nan", "-nan", "NaN", "inf", "-inf", "Infinity", "+inf", "infinite", "1", "1.", ".5",
               "1_000.5", "0x1p3", " 2.5", "2.5 ", "1e5", "1E+5", "1e", "", "+2.5", "1d5", "5e-324", "2.4703282292062327e-324", "1.7976931348623159e308", "nan(12)",
               "9007199254740993", "0.1", "1e-5\r", "1,5", "--1", "1.5f"]
STRINGS = [b"'a'", b'"a"', b"''", b"'", b"a", b"'a\"", b"'a'b'", b"'it''s'", b"'\\x41'", b"'\\x4'", b"'\\101'", b"'\\777'", b"'\\8'", b"'\\n\\t\\\\'", b"'\\q'", b"'\\'", b"'\\u00e9'",
           b"'\xff'", b"'\xc3\xa9'", b"'a' ", b" 'a'", b"'a'\r", b"'a'\x00", b"'\\\n'", b"u'a'", b"'\\N{DASH}'", b"'\\\\'", b"'\\'a'", b"'\\0'", b"'\x00'", b"\"'\"", b"'\\e\\z'", b"'\\xzz'"]
UNICODES = [b"a", b"", b"\\u00e9", b"\\u0041", b"\\U0001f6a2", b"\\ud83d\\ude00", b"\\ud800", b"\\udc80", b"\xe9", b"\\\\u0041", b"\\\\\\u0041", b"\\u12", b"\\U00110000", b"\\Uffffffff",
            b"\\x41", b"\\n", b"\\", b"\\u000a", b"a\r", b"\\u005cu0041", b"\x00", b"\\u\\u", b"\xc3\xa9", b"\\u00E9", b" a "]
TEXTS = ["", "a", "b", "weight", "1", "True", "caf\u00e9", "\U0001f6a2", "x" * 300, "a.b", "\u0000", "__dict__", "name", "latin1", "utf-8"]
RAW_TEXTS = [b"\xed\xa0\x80", b"\xed\xb2\x80", b"\xff", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xed\xa0\xbd\xed\xb8\x80", b"\xef\xbb\xbfa", b"\xf0\x9f\x9a\xa2"]
INTEGERS = [0, 1, -1, 2, 3, 5, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, -2**31, 2**31, 2**53, 2**53 + 1, 2**62, 2**62 - 1, -2**62, -2**62 - 1, 2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64, 2**70,
            10**30, -10**30, 2**1023, 2**1024]
FLOATS = [0.0, -0.0, 1.0, 2.0, 1.5, -1.0, 255.0, 2.0**31, 2.0**53, 2.0**62, 2.0**63, 2.0**64, 2.0**70, 1e30, 1e300, float("inf"), float("-inf"), float("nan"), 5e-324, 2.0**1023]
FLOAT_BITS = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FF8DEADBEEF0000, 0x8000000000000000]

BUILTINS = "dict list set frozenset tuple bytes bytearray complex int float str bool slice range object".split()
CONTAINERS = "OrderedDict Counter defaultdict deque".split()
DATES = "date time datetime timedelta timezone".split()
NAMES = ([("builtins", n) for n in BUILTINS] + [("collections", n) for n in CONTAINERS] + [("datetime", n) for n in DATES]
         + [("copyreg", "_reconstructor"), ("copyreg", "__newobj__"), ("copyreg", "__newobj_ex__"), ("_codecs", "encode"), ("builtins", "getattr")])
PYTHON2 = ([("__builtin__", n) for n in BUILTINS + ["long", "unicode", "xrange", "basestring", "getattr", "reduce", "apply"]] + [("copy_reg", n) for n in ("_reconstructor", "__newobj__")]
           + sorted(_compat_pickle.NAME_MAPPING) + [(m, n) for m in sorted(_compat_pickle.IMPORT_MAPPING) for n in ("x", "dict", "OrderedDict", "system")])
FOREIGN = [("mynet", "Net"), ("mynet.blocks", "Block"), ("mynet", "Outer.Inner"), ("__main__", "Net"), ("os", "system"), ("posix", "system"), ("builtins", "eval"), ("subprocess", "Popen"),
           ("caf\u00e9", "\u00c9t\u00e9"), ("a b", "c d"), ("", "x"), ("x", ""), ("x", "."), ("x", "a..b"), ("x", "<locals>.y"), ("collections", "OrderedDict.fromkeys"), ("builtins", "dict.get"),
           ("collections.abc", "x"), ("builtins.dict", "x"), ("x", "y\r"), (" builtins", "dict"), ("builtins", "dict "), ("functools", "partial"), ("builtins", "map"), ("enum", "Enum"),
           ("torch", "float32"), ("torch", "FloatStorage"), ("torch", "Size"), ("torch", "device"), ("torch._utils", "_rebuild_tensor_v2"), ("torch", "_utils._rebuild_tensor_v2"),
           ("torch._utils", "_rebuild_parameter"), ("torch._tensor", "_rebuild_from_type_v2"), ("torch.storage", "_load_from_bytes"), ("torch.nn.parameter", "Parameter"),
           ("numpy", "dtype"), ("numpy", "ndarray"), ("numpy.core.multiarray", "_reconstruct"), ("numpy.core.multiarray", "scalar"), ("pathlib", "PosixPath"), ("uuid", "UUID"),
           ("argparse", "Namespace"), ("types", "SimpleNamespace"), ("torch", "contiguous_format"), ("torch", "x_format"), ("omegaconf.nodes", "AnyNode")]
MOST_PLACES = 40                                   # values in one pickle
SCALARS = ("none", "bool", "int", "float", "str", "bytes", "class", "complex")


def le(number, size):
    return (number & (256**size - 1)).to_bytes(size, "little")


class Writer:
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
            line = r.choice(TEXT_INTEGERS[:8] if self.chance(0.7) else TEXT_INTEGERS)
            self.put(b"I" + line.encode() + b"\n" if self.chance(0.7) else b"L" + r.choice(TEXT_LONGS[:3] if self.chance(0.7) else TEXT_LONGS).encode() + b"\n")
            return "int"
        value = r.choice(INTEGERS) if value is None else value
        fits = [f for f, ok in ((b"K" + le(value, 1), 0 <= value < 256), (b"M" + le(value, 2), 0 <= value < 65536), (b"J" + le(value, 4), -2**31 <= value < 2**31)) if ok]
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
        raw = r.choice(RAW_TEXTS) if value is None and self.chance(0.05) else (r.choice(TEXTS) if value is None else value).encode("utf-8", "surrogatepass")
        forms = [b"X" + le(len(raw), 4), b"T" + le(len(raw), 4)] + [b"\x8d" + le(len(raw), 8)] * (self.proto > 3 or self.chance(0.1))
        if len(raw) < 256:
            forms += [b"\x8c" + le(len(raw), 1)] * 4 * (self.proto > 3 or self.chance(0.1)) + [b"U" + le(len(raw), 1)]
        self.put(r.choice(forms) + raw)
        return "str"

    def raw(self):
        r = self.rng
        data = r.choice((b"", b"a", b"\xff\x00", b"weight", b"x" * 300, b"\x07\xe4\x01\x02", b"\x07\xe4\x01\x02\x03\x04\x05\x00\x00\x00", b"\x03\x04\x05\x00\x00\x07", b"\xff\xff\xff\xff"))
        if self.chance(0.15):
            self.put(b"\x96" + le(len(data), 8) + data)
            return "bytearray"
        forms = [b"B" + le(len(data), 4), b"\x8e" + le(len(data), 8)] + [b"C" + le(len(data), 1)] * 3 * (len(data) < 256)
        self.put(r.choice(forms) + data)
        return "bytes"

    def persistent(self, depth):
        if self.chance(0.4):
            self.put(b"P" + self.rng.choice((b"0", b"storage", b"", b"caf\xc3\xa9", b"a b", b"'q'")) + b"\n")
        else:
            self.value(depth + 1)
            self.put(b"Q")
        return "obj"

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
            self.put(b"p" + (r.choice((b"+1", b" 1", b"-1", b"01", b"x", b"1L", b"")) if self.chance(0.03) else str(index).encode()) + b"\n")
        elif index < 256 and form != 9:
            self.put(b"q" + le(index, 1))
        else:
            self.put(b"r" + le(index, 4))
        self.memo[index] = tag

    def fetch(self, tags=None):
        """A GET of something with one of the tags; False when there is none."""
        fitting = [i for i, tag in self.memo.items() if tags is None or tag in tags]
        if not fitting:
            return False
        index = self.rng.choice(fitting)
        form = self.rng.randrange(6)
        if self.proto == 0 or form == 5:
            self.put(b"g" + str(index).encode() + b"\n")
        elif index < 256 and form != 4:
            self.put(b"h" + le(index, 1))
        else:
            self.put(b"j" + le(index, 4))
        return self.memo[index]

    # Containers

    def sequence_of(self, count, depth, make=None):
        for _ in range(count):
            (make or self.value)(depth + 1)

    def tuple(self, depth, count=None, make=None):
        count = self.rng.choice((0, 1, 1, 2, 2, 3, 4)) if count is None else count
        if count == 0 and self.proto > 0 and self.chance(0.8):
            self.put(b")")
        elif 0 < count < 4 and self.chance(0.6):
            self.sequence_of(count, depth, make)
            self.put(bytes([0x84 + count]))
        else:
            self.put(b"(")
            self.sequence_of(count, depth, make)
            self.put(b"t")
        return "tuple" if make is None else "key"

    def add_items(self, depth):
        if self.chance(0.4):
            self.value(depth + 1)
            self.put(b"a")
        else:
            self.put(b"(")
            self.sequence_of(self.rng.randrange(4), depth)
            self.put(b"e")

    def list(self, depth):
        if self.chance(0.2):
            self.put(b"(")
            self.sequence_of(self.rng.randrange(4), depth)
            self.put(b"l")
            return "list"
        self.put(b"]")
        self.early_memo("list")
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            self.add_items(depth)
        return "list"

    def early_memo(self, tag):
        if self.chance(0.5):                       # what goes in may then refer to it: cycles
            self.memoize(tag)

    def key(self, depth=0):
        kind = self.rng.randrange(20)
        if kind < 5:
            return self.text(self.rng.choice(("a", "b", "1")))
        if kind < 9:
            return self.integer(self.rng.choice((0, 1, 2, 2**53, 2**53 + 1, 2**62, 2**63, 2**64, 10**30, -1)))
        if kind < 11:
            return self.floating()
        if kind < 12:
            return self.boolean()
        if kind < 14 and depth < 4:
            return self.tuple(depth, self.rng.randrange(3), self.key)
        if kind < 15:
            return self.raw()
        if kind < 16 and self.memo:
            tag = self.fetch(SCALARS + ("obj", "key", "frozenset"))
            if tag:
                return tag
        if kind < 17:
            self.put(b"N")
            return "none"
        if kind < 18 and depth < 3:
            self.put(b"(")
            self.sequence_of(self.rng.randrange(3), depth, self.key)
            self.put(b"\x91")
            return "frozenset"
        if kind < 19 and depth < 3:
            return self.call(depth + 1)
        return self.value(depth + 1) if self.chance(0.2) else self.integer(1)

    def set_pairs(self, depth):
        if self.chance(0.4):
            self.key(depth)
            self.value(depth + 1)
            self.put(b"s")
        else:
            self.put(b"(")
            self.pairs(depth)
            self.put(b"u")

    def pairs(self, depth):
        for _ in range(self.rng.choice((0, 1, 2, 2, 3))):
            self.key(depth)
            self.value(depth + 1)
        if self.chance(0.02):
            self.key(depth)                        # a key without a value

    def dict(self, depth):
        if self.chance(0.2):
            self.put(b"(")
            self.pairs(depth)
            self.put(b"d")
            return "dict"
        self.put(b"}")
        self.early_memo("dict")
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            self.set_pairs(depth)
        return "dict"

    def set(self, depth):
        if self.chance(0.4):
            self.put(b"(")
            self.sequence_of(self.rng.randrange(4), depth, self.key)
            self.put(b"\x91")
            return "frozenset"
        self.put(b"\x8f")
        self.early_memo("set")
        if self.chance(0.8):
            self.put(b"(")
            self.sequence_of(self.rng.randrange(4), depth, self.key)
            self.put(b"\x90")
        return "set"

    # Objects

    def name(self):
        share = self.rng.random()
        return self.rng.choice(NAMES if share < 0.6 else FOREIGN if share < 0.85 else PYTHON2)

    def push_name(self, module, name):
        if self.chance(0.7 if self.proto >= 4 else 0.05):
            self.text(module)
            self.text(name)
            self.put(b"\x93")
        else:
            self.put(b"c" + module.encode() + b"\n" + name.encode() + b"\n")
        return "class"

    def push_class(self):
        return self.fetch(("class",)) if self.chance(0.1) and "class" in self.memo.values() else self.push_name(*self.name())

    def fitting_arguments(self, name, depth):
        """Emits one argument that `name` may like; False when it wants none."""
        wants = {"dict": self.dict, "list": self.list, "set": self.list, "frozenset": self.set, "tuple": self.list, "OrderedDict": self.pair_list, "Counter": self.pick(self.dict, self.list),
                 "deque": self.list, "bytes": lambda d: self.raw(), "bytearray": lambda d: self.raw(), "complex": lambda d: self.floating(), "int": lambda d: self.integer(),
                 "float": lambda d: self.floating(), "str": lambda d: self.text(), "bool": self.value, "range": lambda d: self.integer(3), "slice": lambda d: self.integer(),
                 "date": lambda d: self.raw(), "time": lambda d: self.raw(), "datetime": lambda d: self.raw(), "encode": lambda d: self.text()}
        wants.get(name.rpartition(".")[2], self.value)(depth + 1)

    def pair_list(self, depth):
        self.put(b"]")
        self.put(b"(")
        for _ in range(self.rng.randrange(3)):
            self.tuple(depth, 2, self.key)
        self.put(b"e")
        return "list"

    def arguments(self, name, depth):
        """Emits arguments one by one."""
        r = self.rng
        if name in ("__newobj__", "_reconstructor", "__newobj_ex__") and self.chance(0.9):
            module, inner = self.name()
            self.push_name(module, inner)
            if name == "__newobj__":
                self.arguments(inner, depth + 1)
            elif name == "_reconstructor":
                base = r.choice(("object", "dict", "list", "tuple", "int", "str"))
                self.push_name(self.pick("builtins", "__builtin__"), base)
                self.fitting_arguments(base, depth) if base != "object" or self.chance(0.1) else self.put(b"N")
            else:
                self.tuple(depth)
                self.dict(depth)
        elif name == "getattr" and self.chance(0.9):
            self.push_class()
            self.text()
        elif name == "defaultdict" and self.chance(0.8):
            self.push_name("builtins", "list") if self.chance(0.7) else self.put(b"N")
            if self.chance(0.5):
                self.dict(depth)
        elif name == "encode" and self.chance(0.9):
            self.text(r.choice(("a", "caf\u00e9", "\u20ac", "")))
            self.text(r.choice(("latin1", "utf-8", "ascii", "LATIN1", "utf8", "iso-8859-1", "latin-1", "utf_8", "hex")))
        elif name == "deque" and self.chance(0.3):
            self.list(depth)
            self.integer(2)
        elif self.chance(0.75):
            if self.chance(0.85):
                self.fitting_arguments(name, depth)
                if self.chance(0.1):
                    self.value(depth + 1)
        else:
            self.sequence_of(r.randrange(4), depth)

    def call(self, depth):
        module, name = self.name()
        form = self.rng.randrange(20)
        if form < 2:
            self.put(b"(")
            self.arguments(name, depth)
            self.put(b"i" + module.encode() + b"\n" + name.encode() + b"\n")
            return "obj"
        if form < 4:
            self.put(b"(")
            self.push_name(module, name)
            self.arguments(name, depth)
            self.put(b"o")
            return "obj"
        if self.chance(0.04):
            self.value(depth + 1)                  # a callee that is none
        else:
            self.push_name(module, name)
            if self.chance(0.1):
                self.memoize("class")
        if self.chance(0.04):
            self.value(depth + 1)                  # arguments that are no tuple
        else:
            self.put(b"(")
            self.arguments(name, depth)
            self.put(b"t")
        if form < 14:
            self.put(b"R")
        elif form < 18:
            self.put(b"\x81")
        else:
            self.put(b"}") if self.chance(0.6) else self.dict(depth)
            self.put(b"\x92")
        return "obj"

    def build(self, depth):
        self.call(depth) if self.chance(0.7) else self.value(depth + 1)
        if self.chance(0.3):
            self.memoize("obj")
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            kind = self.rng.randrange(10)
            if kind < 5:
                self.dict(depth)
            elif kind < 6:
                self.put(b"N")
            elif kind < 8:
                self.tuple(depth, 2, lambda d: self.put(b"N") if self.chance(0.3) else self.dict(d))
            else:
                self.value(depth + 1)
            self.put(b"b")
        return "obj"

    def filled(self, depth):
        """APPEND, SETITEM or ADDITEMS on any target."""
        self.call(depth) if self.chance(0.6) else self.value(depth + 1)
        for _ in range(self.rng.choice((1, 1, 2))):
            what = self.rng.randrange(3)
            if what == 0:
                self.add_items(depth)
            elif what == 1:
                self.set_pairs(depth)
            else:
                self.put(b"(")
                self.sequence_of(self.rng.randrange(3), depth, self.key)
                self.put(b"\x90")
        return "obj"

    def noise(self, depth):
        what = self.rng.randrange(9)
        if what == 0:
            self.value(depth + 1)
            self.put(b"0")
        elif what == 1:
            self.put(b"(")
            self.put(b"0")
        elif what == 2:
            self.put(b"(")
            self.sequence_of(self.rng.randrange(3), depth)
            self.put(b"1")
        elif what == 3:
            self.put(b"\x80" + le(self.rng.choice((0, 1, 2, 3, 4, 5, 6)), 1))
        elif what == 4:
            self.put(b"\x95" + le(self.rng.choice((0, 1, 2, 5, 9, 30, 2**63)), 8))
        elif what == 5:
            self.put(self.pick(b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00", b"\x97", b"\x98"))
        elif what == 6:
            self.value(depth + 1)
            self.put(b"2")
            self.put(b"0")
            self.put(b"0")
        elif what == 7 and self.memo:
            self.fetch()
            self.put(b"0")
        else:
            self.put(b"N")
            self.memoize("none")
            self.put(b"0")

    def value(self, depth=0):
        self.places += 1
        if self.chance(0.02):
            self.noise(depth + 1)
        tag = self.plain_value(depth)
        if self.chance(0.25):
            self.memoize(tag)
        return tag

    def plain_value(self, depth):
        if depth > 6 or self.places > MOST_PLACES:
            self.put(b"N")
            return "none"
        kind = self.rng.randrange(32)
        if kind == 0:
            self.put(b"N")
            return "none"
        makers = {1: self.boolean, 2: self.integer, 3: self.integer, 4: self.floating, 5: self.text, 6: self.text, 7: self.raw}
        if kind in makers:
            return makers[kind]()
        if kind == 8:
            return self.push_class()
        if kind < 13:
            return self.fetch() or self.integer()
        nested = ([self.tuple] * 2 + [self.list] * 3 + [self.dict] * 4 + [self.set] * 2 + [self.call] * 4 + [self.build] * 2 + [self.filled] + [self.persistent])
        return nested[kind - 13](depth) if kind - 13 < len(nested) else self.key(depth)


def finish(rng, ops, proto):
    body = b"".join(ops) + b"."
    if proto >= 4 and rng.random() < 0.7:
        size = len(body) if rng.random() < 0.9 else rng.choice((0, 1, 3, max(0, len(body) - 1), len(body) + 1, 2**64 - 1))
        body = b"\x95" + le(size, 8) + body
    head = b"\x80" + bytes([proto]) if proto >= 2 or rng.random() < 0.1 else b""
    if rng.random() < 0.02:
        head = rng.choice((b"", b"\x80\x00", b"\x80\x06", head * 2, b"\x80\x02\x80\x04"))
    tail = b"" if rng.random() < 0.95 else rng.choice((b".", b"N.", b"\0", b"\x80\x02]."))
    return head + body + tail


ANY_OP = [b"(", b")", b"]", b"}", b"0", b"1", b"2", b"N", b"R", b"a", b"b", b"d", b"e", b"l", b"o", b"s", b"t", b"u", b"Q", b".", b"\x81", b"\x85", b"\x86", b"\x87", b"\x8f", b"\x90", b"\x91",
          b"\x92", b"\x93", b"\x94", b"q\0", b"q\1", b"h\0", b"h\1", b"p0\n", b"g0\n", b"r\2\0\0\0", b"j\1\0\0\0", b"\x98", b"\x97", b"K\1", b"\x8c\1a"]


def mutate(rng, ops):
    ops = list(ops)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(ops)) if ops else 0
        what = rng.randrange(7)
        if what == 0 and ops:
            del ops[at]
        elif what == 1 and ops:
            ops.insert(at, ops[rng.randrange(len(ops))])
        elif what == 2:
            ops.insert(at, rng.choice(ANY_OP))
        elif what == 3 and ops:
            ops[at] = rng.choice(ANY_OP)
        elif what == 4 and ops:
            other = rng.randrange(len(ops))
            ops[at], ops[other] = ops[other], ops[at]
        elif what == 5 and ops:
            raw = bytearray(ops[at])
            raw[rng.randrange(len(raw))] = rng.randrange(256)
            ops[at] = bytes(raw)
        elif ops:
            memo = [i for i, op in enumerate(ops) if op[:1] in b"qrhjpg\x94" and op]
            if memo:
                ops[rng.choice(memo)] = rng.choice((b"q", b"h")) + le(rng.randrange(8), 1)
    return ops


def pickle_number(seed, number):
    """The pickle of this number of this seed, as its opcodes (the last without STOP and frame)."""
    rng = random.Random(f"{seed}/{number}")
    writer = Writer(rng)
    writer.value()
    ops = writer.ops
    if rng.random() < 0.3:
        ops = mutate(rng, ops)
    return finish(rng, ops, writer.proto)
