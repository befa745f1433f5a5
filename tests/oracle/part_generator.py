"""Tensors that are made of others: sparse ones and quantized ones by channel, in zip archives and legacy streams.

PyTorch goes by the strides, the dtypes and the flags of their parts, and copies some of them while the pickle is read, which in a legacy
stream is before their numbers come. Most are honest; a few things differ in some. file_number() gives the same file for the same numbers.
Sums are of small whole numbers, so that their order does not matter.
"""
import random
import struct

from pickle_asm import call, glob, val
from torch_parts import ORDERED_DICT, cls, layout, legacy, legacy_storage, longs, storage, tensor, torch_zip

FORMATS = {"FloatStorage": "f", "DoubleStorage": "d", "HalfStorage": "e", "LongStorage": "q", "IntStorage": "i", "ShortStorage": "h", "CharStorage": "b"}
UTILS = "torch._utils"


def row_major(shape):
    strides, step = [], 1
    for dim in reversed(shape):
        strides.insert(0, step)
        step *= max(dim, 1)
    return tuple(strides)


class Maker:
    def __init__(self, rng):
        self.rng, self.is_legacy, self.held, self.counts = rng, rng.random() < 0.4, {}, {}

    def usual(self, honest, *others, share=0.9):
        return honest if self.rng.random() < share else self.rng.choice(others)

    def storage(self, kind, data, count):
        key = str(len(self.held))
        self.held[key], self.counts[key] = data, count
        return legacy_storage(key, kind, count) if self.is_legacy else storage(key, kind, count)

    def numbers(self, kind, numbers, shape, gap=1):
        """A tensor of these; `gap`: they lie so far apart. Where a dimension is 1, its stride says nothing."""
        spread = [numbers[at // gap] if at % gap == 0 else 0 for at in range(len(numbers) * gap)]
        strides = [self.usual(step * gap, 0, 1, 5, share=0.8) if dim == 1 else step * gap for dim, step in zip(shape, row_major(shape))]
        made = self.storage(kind, struct.pack(f"<{len(spread)}{FORMATS[kind]}", *spread), len(spread))
        return tensor(made, 0, tuple(shape), tuple(strides))

    def values(self, shape):
        count = 1
        for dim in shape:
            count *= dim
        return self.numbers(self.rng.choice(list(FORMATS)), [self.rng.choice((0, 1, 2, -3)) for _ in range(count)], shape)

    def coo(self):
        count, dense = self.rng.choice((0, 1, 1, 2, 4)), self.rng.choice(((), (), (2,)))
        size = tuple(self.rng.choice((1, 2, 3)) for _ in range(self.rng.choice((1, 2))))
        rows = [[self.rng.randrange(dim) for _ in range(count)] for dim in size]
        indices = self.numbers(self.usual("LongStorage", "IntStorage"), sum(rows, []), (len(size), count))
        flag = self.usual((), (True,), (False,), share=0.7)
        return call(glob(UTILS, "_rebuild_sparse_tensor"), layout("sparse_coo"), (indices, self.values((count, *dense)), size + dense, *flag))

    def compressed(self):
        kind, (high, wide) = self.rng.choice(("csr", "csc", "bsr", "bsc")), self.rng.choice(((1, 1), (2, 1), (1, 2), (2, 2)))
        block = (high, wide) if kind[0] == "b" else (1, 1)
        lines, across = self.rng.choice(((1, 1), (2, 2), (1, 3), (3, 2)))
        pointers, plain = [0], []
        for _ in range(lines):
            plain += sorted(self.rng.sample(range(across), self.rng.randint(0, across)))
            pointers.append(len(plain))
        rows, columns = (lines, across) if kind.endswith("sr") else (across, lines)
        index = self.usual("LongStorage", "IntStorage", share=0.7)
        values = self.values((len(plain), *block) if kind[0] == "b" else (len(plain),))
        parts = (self.numbers(index, pointers, (len(pointers),)), self.numbers(index, plain, (len(plain),)), values, (rows * block[0], columns * block[1]))
        return call(glob(UTILS, "_rebuild_sparse_tensor"), layout("sparse_" + kind), parts)

    def quantized(self):
        channels, axis = self.rng.choice((1, 2, 3)), self.rng.choice((0, 1))
        shape = (channels, 2) if axis == 0 else (2, channels)
        kind = self.rng.choice(("QInt8Storage", "QUInt8Storage"))
        gap = self.usual(1, 2)
        scales = self.numbers(self.usual("DoubleStorage", "FloatStorage"), [0.5] * channels, (channels,), gap)
        points = self.numbers(self.usual("LongStorage", "IntStorage", "FloatStorage"), [1] * channels, (channels,), gap)
        return call(glob(UTILS, "_rebuild_qtensor"), self.storage(kind, self.rng.randbytes(2 * channels), 2 * channels), 0, shape, row_major(shape),
                    (cls("per_channel_affine"), scales, points, axis), False, ORDERED_DICT)

    def file(self):
        made = self.rng.choice((self.coo, self.coo, self.compressed, self.quantized))()
        if self.rng.random() < 0.2:
            made = call(glob(UTILS, "_rebuild_parameter"), made, False, ORDERED_DICT)
        root = val({"w": made})
        if not self.is_legacy:
            return torch_zip(root, self.held, 3)
        return legacy(root, tuple(self.held), [longs(self.counts[key]) + data for key, data in self.held.items()])


def file_number(seed, number):
    return bytes(Maker(random.Random(f"part {seed}/{number}")).file())
