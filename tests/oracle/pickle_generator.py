"""Pickles of all protocols by a grammar: valid ones of every opcode, and mutants of them.

A Writer emits opcodes that leave one value on the stack, and keeps the memo as CPython would. Odd choices (two PROTOs, marks that
are popped, frames of wrong sizes, numbers spelled strangely) are part of the grammar with a small share each; mutate() then works
on whole opcodes and on bytes.
"""
import random

from pickle_leaves import LeafWriter, le
from pickle_material import FILES, FOREIGN, NAMES, PATH_PARTS, PYTHON2
from pickle_mutants import mutate

MOST_PLACES = 40                                   # values in one pickle
SCALARS = ("none", "bool", "int", "float", "str", "bytes", "class", "complex")


class Writer(LeafWriter):
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

    def persistent(self, depth):
        if self.chance(0.4):
            self.put(b"P" + self.rng.choice((b"0", b"storage", b"", b"caf\xc3\xa9", b"a b", b"'q'")) + b"\n")
        else:
            self.value(depth + 1)
            self.put(b"Q")
        return "obj"

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
        """Emits one argument that `name` may like."""
        wants = {"dict": self.dict, "list": self.list, "set": self.list, "frozenset": self.set, "tuple": self.list, "deque": self.list,
                 "OrderedDict": self.pair_list, "Counter": self.pick(self.dict, self.list), "bool": self.value}
        leaves = {"bytes": self.raw, "bytearray": self.raw, "complex": self.floating, "int": self.integer, "float": self.floating, "str": self.text,
                  "range": lambda: self.integer(3), "slice": self.integer, "date": self.raw, "time": self.raw, "datetime": self.raw, "encode": self.text}
        name = name.rpartition(".")[2]
        if name in leaves:
            leaves[name]()
        else:
            wants.get(name, self.value)(depth + 1)

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
        elif name in FILES and self.chance(0.9):
            for _ in range(r.randrange(4)):
                self.text(r.choice(PATH_PARTS))
        elif name in ("UUID", "Namespace", "SimpleNamespace") and self.chance(0.8):
            pass                                   # their state comes by BUILD
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
            kind = self.rng.randrange(11)
            if kind == 10:
                self.put(b"}")
                self.text("int")
                self.integer(self.rng.choice((0, 1, 2**127, 2**128 - 1, 2**128, -1)))
                self.put(b"s")
            elif kind < 5:
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
        nested = ([self.tuple] * 2 + [self.list] * 3 + [self.dict] * 4 + [self.set] * 2 + [self.call] * 4 + [self.build] * 2
                  + [self.filled, self.persistent])
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


def pickle_number(seed, number):
    """The pickle of this number of this seed: its bytes."""
    rng = random.Random(f"{seed}/{number}")
    writer = Writer(rng)
    writer.value()
    ops = writer.ops
    if rng.random() < 0.3:
        ops = mutate(rng, ops)
    return finish(rng, ops, writer.proto)
