"""Files whose objects get a state: NumPy's dtypes and arrays, Python's containers with attributes, PyTorch's tensors and parameters.

Each starts from what the libraries themselves write and differs from it in a few places, so that many are still read; file_number() gives
the same file for the same numbers. Nothing of a stranger is named: what Python makes of such a file is safe to find out in a child.
"""
import random
import struct

from numpy_attacks import RECONSTRUCT, dtype
from pickle_asm import BUILD, MARK, SETITEMS, call, code, get, glob, new, pickle, put, val
from state_attacks import CALLABLE, HOLDERS, METHODS
from torch_parts import ORDERED_DICT, cls, legacy, legacy_storage, longs, storage, torch_zip

ITEMS = {"f2": 2, "f4": 4, "f8": 8, "i1": 1, "i2": 2, "i4": 4, "i8": 8, "u1": 1, "u2": 2, "u4": 4, "u8": 8, "b1": 1, "c8": 8, "c16": 16,
         "S3": 3, "S0": 0, "U2": 8, "O8": 8, "V4": 4, "M8": 8}
TAILS = {"S3": (3, 1, 0), "S0": (0, 1, 0), "U2": (8, 4, 8), "O8": (-1, -1, 63), "V4": (4, 1, 0)}
STORAGES = {"FloatStorage": 4, "IntStorage": 4, "DoubleStorage": 8, "LongStorage": 8, "HalfStorage": 2, "BFloat16Storage": 2, "ByteStorage": 1,
            "BoolStorage": 1, "CharStorage": 1, "ShortStorage": 2, "ComplexFloatStorage": 8}
BYTES = bytes(range(1, 65))                         # of a storage: sizes of all items divide it


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def usual(self, honest, *others, share=0.85):
        """The honest thing mostly."""
        return honest if self.rng.random() < share else self.rng.choice(others)

    def count(self, shape):
        total = 1
        for dim in shape:
            total *= dim
        return total

    # NumPy

    def dtype(self, name):
        args = self.usual((False, True), (), (False,), (False, False), (False, 1), (False, 0), (0, 1), (True, True), (False, None))
        spelled = self.usual("", "<", ">", "|", "=") + name
        states = []
        for _ in range(self.usual(1, 0, 2)):
            tail = list(TAILS.get(name, (-1, -1, 0)))
            if self.rng.random() < 0.15:
                tail[self.rng.randrange(3)] = self.rng.choice((-1, 0, 1, 2, 4, 8, 16, 63, ITEMS[name]))
            states.append((self.usual(3, 4, 2, 1), self.usual("|" if name in ("b1", "S3", "O8") else "<", *"<>|="), None, None, None, *tail,
                           *self.usual((), (None,), ({},), share=0.95)))
        return dtype(spelled, *states, args=args)

    def data(self, name, count):
        if name == "O8":
            return self.usual([1, "a", None, 2.5, 5, 6][:count], [1] * (count + 1), [], b"A" * 8 * count, (1,) * count)
        size = ITEMS[name] * count
        raw = "".join(self.rng.choice("ab\0é€") for _ in range(size // 4)).encode("utf-32-le") if name == "U2" else self.rng.randbytes(size)
        text = "x" * size if name[0] not in "SU" else None          # text is Latin-1 to NumPy, and stays text to Ballast
        return self.usual(raw, raw + b"\0", raw[:-1], [1], text, share=0.93)

    def array(self, made, name):
        shape = self.rng.choice(((), (1,), (2,), (0,), (2, 3), (3, 2), (1, 2, 2)))
        order = self.usual(self.rng.choice((False, len(shape) > 1)), 1, 0, None, share=0.9)
        state = (self.usual(1, 0, 2), shape, made, order, self.data(name, self.count(shape)))
        return code(RECONSTRUCT, val(state), BUILD)

    def numpy(self):
        name = self.rng.choice(list(ITEMS))
        made = self.dtype(name)
        later = self.rng.random() < 0.1             # a state that comes when the dtype is in use
        made = code(made, put(7)) if later else made
        use = self.rng.randrange(6)
        if use == 0:
            out = call(glob("numpy.core.multiarray", "scalar"), made, self.data(name, 1))
        elif use == 1:
            count = self.rng.randrange(3)
            buffer = call(glob("builtins", "bytearray"), self.rng.randbytes(ITEMS[name] * count))
            out = call(glob("numpy.core.numeric", "_frombuffer"), buffer, made, (count,), self.usual("C", "F", "A", "K"))
        elif use == 2:
            out = made
        else:
            out = self.array(made, name)
        if later:
            out = val([out, code(get(7), val((3, self.rng.choice("<>|"), None, None, None, *TAILS.get(name, (-1, -1, 0)))), BUILD)])
        return pickle(out, 3)

    # Python's containers

    def holder(self):
        name = self.rng.choice(list(HOLDERS.values()))
        out = call(glob(*name))
        for _ in range(self.rng.randint(1, 3)):
            if name[0] == "collections" and self.rng.random() < 0.4:
                out = code(out, MARK, val(self.rng.choice("abc")), val(self.rng.randrange(5)), SETITEMS)
            else:
                attribute = self.usual("lr", *METHODS, share=0.5)
                out = code(out, val({attribute: self.rng.choice((5, "x", [1], None, CALLABLE, glob("builtins", "str"), {"a": 1}))}), BUILD)
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            out = call(glob(*self.rng.choice((("builtins", "dict"), ("collections", "OrderedDict"), ("collections", "Counter"), ("builtins", "list"),
                                              ("builtins", "bool")))), out)
        return pickle(val([out]), 3)

    # PyTorch

    def storage(self, is_legacy):
        kind = self.usual("FloatStorage", *STORAGES, share=0.4)
        count = len(BYTES) // STORAGES[kind]
        key = self.rng.choice("01")
        if not is_legacy:
            return storage(key, kind, count, self.usual("cpu", "meta", share=0.95))
        self.keys.add(key)
        self.counts.setdefault(key, count)
        return legacy_storage(key, kind, count, self.usual(None, ("v" + key, self.rng.randrange(4), 2)))

    def view(self, is_legacy):
        """The arguments of _rebuild_tensor_v2."""
        bits = self.usual((), ({},), ({self.rng.choice(("neg", "conj")): self.rng.choice((True, False, 1, None))},), share=0.8)
        return (self.storage(is_legacy), self.usual(0, 1, 2), *self.rng.choice((((1,), (1,)), ((2,), (1,)), ((1, 2), (2, 1)), ((), ()), ((0,), (1,)))),
                self.usual(False, True, 1), self.usual(ORDERED_DICT, val({}), val({0: CALLABLE}), val(None), share=0.9), *bits)

    def attributes(self):
        return {self.usual("tag", "_grad", "_backward_hooks", "data", "requires_grad", "tolist", "__class__", "_x", "real", share=0.6): self.rng.choice((5, CALLABLE, {}, None))}

    def cast(self):
        name, pack = self.rng.choice((("f8", "d"), ("f4", "f"), ("f2", "e"), ("i8", "q"), ("u1", "B")))
        ties = (0.1, 1.5, 65519.99, 65520.0, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-30, 3e38, 1e-45, 2.0**-25, -0.0, float("nan"))
        to = self.rng.choice(("float16", "bfloat16", "float32", "float64", "int64", "uint8"))
        if to == "bfloat16":                        # which NaN it becomes depends on the vectors PyTorch's machine has
            ties = ties[:-1]
        numbers = [self.rng.choice((0, 1, 200)) if pack in "qB" else self.rng.choice(ties[:2] if pack == "e" else ties) for _ in range(2)]
        made = code(RECONSTRUCT, val((1, (2,), dtype(name), False, struct.pack("<2" + pack, *numbers))), BUILD)
        return call(glob("torch._utils", "_rebuild_device_tensor_from_numpy"), made,
                    cls(to), "cpu", False)

    def tensor(self, is_legacy):
        view = self.view(is_legacy)
        made = call(glob("torch._utils", "_rebuild_tensor_v2"), *view)
        use = self.rng.randrange(9)
        hooks = self.usual(ORDERED_DICT, val({0: CALLABLE}), val(None), share=0.9)
        if use == 0:
            return call(glob("torch._utils", "_rebuild_parameter"), made, self.usual(True, False, 1), hooks)
        if use == 1:
            return call(glob("torch._utils", "_rebuild_parameter_with_state"), made, self.usual(True, False), hooks, self.attributes())
        if use == 2:
            function = self.rng.choice(("_rebuild_from_type", "_rebuild_from_type_v2"))
            return call(glob("torch._tensor", function), glob("torch._utils", "_rebuild_tensor_v2"), cls("Tensor"), view,
                        # Releases differ in whether a plain tensor keeps them from the newer function.
                        self.usual({}, None if function.endswith("v2") else self.attributes(), None))
        if use == 3:
            parts = (made, None, hooks, self.usual(True, False, 1), False)
            return code(new(glob("torch.nn.parameter", "Parameter")), val(parts[:self.usual(5, 2, 3, 4)]), BUILD)
        if use == 4:
            return code(call(glob("torch.nn.parameter", "Parameter"), made, self.usual(True, False)), val((self.usual(True, False, 1), None, hooks)), BUILD)
        if use == 5:
            return self.cast()
        return made

    def torch(self, is_legacy):
        self.keys, self.counts = set(), {}
        root = val({"k%d" % i: self.tensor(is_legacy) for i in range(self.rng.randint(1, 3))})
        if not is_legacy:
            used = [key for key in "01" if b"\x01\0\0\0" + key.encode() in root]
            return torch_zip(root, {key: BYTES if key == "0" else BYTES[::-1] for key in used}, 3)
        keys = sorted(self.keys)
        return legacy(root, tuple(keys), [longs(self.counts[key]) + BYTES for key in keys])

    def file(self):
        kind = self.rng.randrange(8)
        if kind < 4:
            return self.numpy()
        return self.holder() if kind < 6 else self.torch(kind == 7)


def file_number(seed, number):
    return bytes(Maker(random.Random(f"{seed}/{number}")).file())
