"""PyTorch files whose tensors are written as torch.save writes them, opcode by opcode with everything in the memo, and a few things changed.

Ballast reads such a tensor at once (decision 0027): what was changed must be seen all the same. So slots are fetched and set again, numbers
are spelled in every way, and opcodes are left out, repeated and exchanged, in zip archives and legacy streams. file_number() gives the same
file for the same numbers. Nothing is named but PyTorch's own rebuild functions and storages, and OrderedDict.
"""
import random

import zip_forge as zf
from pickle_asm import pickle
from torch_parts import MAGIC, SYS_INFO, entries, longs

ITEMS = {"FloatStorage": 4, "IntStorage": 4, "DoubleStorage": 8, "LongStorage": 8, "HalfStorage": 2, "BFloat16Storage": 2, "ByteStorage": 1,
         "ComplexFloatStorage": 8, "CharStorage": 1, "ShortStorage": 2}
HELD = 96                                           # bytes of a storage: sizes of all items divide it
BYTES = {key: bytes((i * 7 + place * 31) % 64 for i in range(HELD)) for place, key in enumerate("012")}
VIEWS = [((2, 3), (3, 1)), ((2, 3), (1, 2)), ((), ()), ((4,), (1,)), ((4,), (0,)), ((1, 2, 3), (6, 3, 1)), ((1, 2, 1, 3), (6, 3, 3, 1)),
         ((1, 1, 2, 1, 2), (4, 4, 2, 2, 1)), ((2, 1, 1, 1, 1, 1), (1,) * 6), ((0, 3), (3, 1)), ((2, 2), (1, 1)),
         ((3,), (2,)), ((0, 1 << 30), (1, 1)), ((1,), (1 << 30,))]
REBUILD, REBUILD_OLD, PARAMETER = (b"ctorch._utils\n_rebuild_" + name + b"\n" for name in (b"tensor_v2", b"tensor", b"parameter"))
ORDERED_DICT = b"ccollections\nOrderedDict\n"
ANY_OP = [bytes([op]) for op in b"02(1)t]}ldeasuRbQN\x88\x89\x81\x85\x86\x87\x94o\x8f"] + [
    b"K\0", b"K\1", b"M\1\0", b"J\xff\xff\xff\xff", b"I01\n", b"h\0", b"h\1", b"h\5", b"h\x09",
    b"q\0", b"q\7", b"q\x20", b"\x8c\0010", b"C\0010", b"\x8a\1\1", b"G" + bytes(8)]


def text(what):
    return b"X" + len(what).to_bytes(4, "little") + what.encode()


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.is_legacy = rng.random() < 0.25
        self.ops, self.slot, self.known, self.first_slots, self.class_of = [], 0, {}, [], {}
        self.is_wide, self.memoizes, self.puts = rng.random() < 0.15, rng.random() < 0.1, rng.random() < 0.85

    def op(self, *ops):
        self.ops += ops

    def usual(self, honest, *others, share):
        return honest if self.rng.random() < share else self.rng.choice(others)

    def at(self, slot, narrow, wide):
        return narrow + bytes([slot]) if slot < 256 and not self.is_wide else wide + slot.to_bytes(4, "little")

    def put(self):
        if self.puts:
            self.op(b"\x94" if self.memoizes else self.at(self.slot, b"q", b"r"))
            self.slot += 1

    def once(self, what):
        """Written the first time, then fetched."""
        if what in self.known and self.rng.random() < 0.98:
            return self.op(self.at(self.known[what], b"h", b"j"))
        self.known[what] = self.slot
        self.op(what, self.at(self.slot, b"q", b"r"))
        self.slot += 1

    def number(self, value):
        odd = self.rng.random()
        if odd < 0.02:
            return self.rng.choice((b"\x88", b"I%d\n" % value, b"L%dL\n" % value, b"\x8a\5" + value.to_bytes(5, "little", signed=True)))
        for letter, size in ((b"K", 1), (b"M", 2)):
            if 0 <= value < 256**size and odd < 0.97:
                return letter + value.to_bytes(size, "little")
        return b"J" + value.to_bytes(4, "little", signed=True)

    def numbers(self, values):
        odd = self.rng.random()
        if not values:
            return self.op(b")")
        numbers = [self.number(value) for value in values]
        if odd < 0.02:
            return self.op(b"]", b"(", *numbers, b"e")
        is_marked = len(values) > 3 or odd < 0.05
        self.op(*[b"("] * is_marked, *numbers, b"t" if is_marked else bytes([0x84 + len(values)]))
        self.put()

    def storage(self):
        key = self.usual(self.rng.choice("012"), "00", "7", "a", "", "0 ", share=0.99)
        kind = self.class_of.setdefault(key, self.usual("FloatStorage", *ITEMS, share=0.6))
        if self.rng.random() < 0.03:
            kind = self.rng.choice(list(ITEMS))
        self.op(b"(", b"(")
        self.once(self.usual(text("storage"), b"C\7storage", b"U\7storage", share=0.997))
        self.once(b"ctorch\n%s\n" % kind.encode())
        self.op(self.usual(text(key), b"K\0", b"C\0010", b"U\0010", share=0.997))
        self.put()
        self.once(self.usual(text("cpu"), *map(text, ("meta", "meta:0", "foo")), b"C\3cpu", b"C\4meta", b"U\3cpu", b"U\4meta", b"N", b"K\1", b")", share=0.98))
        self.op(self.number(HELD // ITEMS[kind] if self.rng.random() < 0.98 else self.rng.randrange(100)))
        if self.is_legacy == (self.rng.random() < 0.997):
            view = (b"(", text("v" + key), self.number(self.rng.randrange(3)), self.number(6), b"t")
            self.op(*self.usual((b"N",), view, share=0.9))
        self.op(b"t")
        self.put()
        self.op(b"Q")

    def no_hooks(self):
        self.once(ORDERED_DICT)
        self.op(b")", b"R")
        self.put()

    def tensor(self, name):
        self.op(text(name))
        self.put()
        is_parameter = self.rng.random() < 0.15
        if is_parameter:
            self.once(PARAMETER)
        function = self.usual(REBUILD, REBUILD_OLD, share=0.98)
        self.once(function)
        self.first_slots.append(self.slot)
        self.storage()
        self.op(self.number(self.usual(0, *range(1, 8), share=0.7)))
        for numbers in self.rng.choice(VIEWS):
            self.numbers(tuple(self.usual(number, -1, number + 1, 1 << 30, share=0.99) for number in numbers))
        if function == REBUILD:
            self.op(self.usual(b"\x89", b"\x88", b"K\0", b"N", b"I00\n", b"I01\n", share=0.97))
            self.no_hooks() if self.rng.random() < 0.99 else self.op(self.rng.choice((b"N", b"}", b"]", b")")))
        self.op(b"t")
        self.put()
        self.op(b"R")
        self.put()
        if is_parameter:
            self.op(b"\x88")
            self.no_hooks()
            self.op(b"\x87")
            self.put()
            self.op(b"R")
            self.put()

    def some_slot(self):
        near = self.first_slots and self.rng.random() < 0.7
        slot = self.rng.choice(self.first_slots) + self.rng.randrange(8) if near else self.rng.randrange(self.slot + 2)
        return self.at(slot, b"h", b"j")

    def trick(self):
        """What is behind the opcodes of a tensor is fetched, filled, called, or set again."""
        a, b = self.some_slot(), self.some_slot()
        self.op(*self.rng.choice([
            (text("v"), a), (text("v"), b"]", b"(", a, b, a, b"e"), (text("w"), a, b"K\1", b"K\2", b"s"), (text("z"), a, b, b"R"), (a, b"0"),
            (text("y"), b"N", a.replace(b"h", b"q", 1) if a[:1] == b"h" else a.replace(b"j", b"r", 1)),
            (text("z"), a, self.rng.choice((b"\x88", b"\x89")), b"N", b"N", b"\x87", b"b"), (text("z"), a, b"\x89", b"N", b, b"\x87", b"b")]))

    def mutate(self):
        place, what = self.rng.randrange(len(self.ops)), self.rng.randrange(5)
        other = self.rng.randrange(len(self.ops))
        if what == 0:
            del self.ops[place]
        elif what == 1:
            self.ops.insert(place, self.rng.choice((self.ops[other], self.rng.choice(ANY_OP))))
        elif what == 2:
            self.ops[place] = self.rng.choice(ANY_OP)
        elif what == 3:
            self.ops[place], self.ops[other] = self.ops[other], self.ops[place]
        else:                                       # not of a name, which would be a stranger's
            number = bytearray(self.ops[place])
            if number[:1] != b"c" and len(number) > 1:
                number[-1] = self.rng.randrange(256)
            self.ops[place] = bytes(number)

    def pickle(self):
        self.op(b"\x80" + bytes([self.rng.choice((2, 2, 2, 3, 4, 5))]))
        if self.rng.random() < 0.2:                 # numbers of slots beyond a byte
            count = self.rng.randrange(1, 300)
            self.op(b"N" * count, b"0" * count)
            self.slot = self.rng.choice((0, count))
        self.op(self.usual(b"}", ORDERED_DICT + b")R", share=0.6), self.at(self.slot, b"q", b"r"), b"(")
        self.slot += 1
        for name in "abcde"[:self.rng.randint(1, 5)]:
            self.tensor(name)
            while self.rng.random() < 0.12:
                self.trick()
        if self.rng.random() < 0.3:
            self.mutate()
        if self.rng.random() < 0.9:                 # nothing is read at once near the end
            self.op(text("x" * 200), b"N")
        return b"".join(self.ops) + b"u."

    def file(self):
        root = self.pickle()
        used = [key for key in BYTES if text(key) in root]
        if not self.is_legacy:
            return zf.build(entries(root, {key: BYTES[key] for key in used}))
        counts = [HELD // ITEMS[self.class_of.get(key, "FloatStorage")] for key in used]
        heads = [pickle(part) for part in (MAGIC, 1001, SYS_INFO)]
        return b"".join(heads) + root + pickle(used) + b"".join(longs(count) + BYTES[key] for key, count in zip(used, counts))


def file_number(seed, number):
    return bytes(Maker(random.Random(f"run {seed}/{number}")).file())
