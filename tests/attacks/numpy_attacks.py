"""NumPy's dtypes and arrays whose state lies: flags that make bytes pointers, byte orders nobody applies, lists of another length.

NumPy believes what the state of a dtype says of its items. Each generator starts from what NumPy writes and changes one thing.
"""
from pickle_asm import BUILD, call, code, get, glob, pickle, put, val
from torch_parts import Sample

ARRAY = glob("numpy", "ndarray")
RECONSTRUCT = call(glob("numpy.core.multiarray", "_reconstruct"), ARRAY, (0,), b"b")
# name: (byte order, item size, alignment, flags), and the bytes of one item
TYPES = {"f4": ("<", -1, -1, 0, 4), "i8": ("<", -1, -1, 0, 8), "b1": ("|", -1, -1, 0, 1), "c8": ("<", -1, -1, 0, 8),
         "S3": ("|", 3, 1, 0, 3), "U2": ("<", 8, 4, 8, 8), "O8": ("|", -1, -1, 63, 8)}


def dtype(name, *more, args=(False, True)):
    """numpy.dtype(name, align, copy), with a BUILD for each state of `more`."""
    return code(call(glob("numpy", "dtype"), name, *args), *[code(val(state), BUILD) for state in more])


def state(name, version=3, order=None, tail=(), metadata=()):
    own = TYPES[name]
    return (version, order or own[0], None, None, None, *(tail or own[1:4]), *metadata)


def array(made, data, shape=(2,), order=False):
    return code(RECONSTRUCT, val((1, shape, made, order, data)), BUILD)


def honest(name, **more):
    """An array of two items; `more` changes its state."""
    size = TYPES[name][4]
    return array(dtype(name, state(name, **more)), [1, 2] if name == "O8" else bytes(2 * size))


def rows_tails():
    lies = ((-1, 0, 1, 4, 2**31 - 1, -2**31), (-1, 0, 1, 4, 3, 2**20), (0, 1, 2, 8, 16, 27, 63, -1))
    for name, own in TYPES.items():
        for part, (what, values) in enumerate(zip(("item-size", "alignment", "flags"), lies)):
            for value in values:
                tail = own[1:4][:part] + (value,) + own[1:4][part + 1:]
                if value != own[1 + part]:
                    yield "%s-%s-%d" % (name, what, value), honest(name, tail=tail), "a dtype %s with %s %d" % (name, what, value)
        for version in (-1, 0, 1, 2, 5):
            yield "%s-version-%d" % (name, version), honest(name, version=version), "a dtype %s of version %d" % (name, version)
        for metadata in (None, {}, {"x": 1}, 5):
            yield ("%s-metadata-%s" % (name, type(metadata).__name__ + str(bool(metadata))), honest(name, version=4, metadata=(metadata,)),
                   "a dtype %s with metadata" % name)
        for part in (2, 3, 4):
            lie = state(name)
            lie = lie[:part] + (("a", "b"),) + lie[part + 1:]
            yield "%s-part-%d" % (name, part), array(dtype(name, lie), bytes(2 * own[4])), "a dtype %s with fields of its own" % name


def uses(made):
    """What a dtype is for; each gives it the chance to be another one for Python than for us."""
    yield "array", array(made, bytes([1, 0, 0, 0, 2, 0, 0, 0]))
    yield "scalar", call(glob("numpy.core.multiarray", "scalar"), made, bytes([1, 0, 0, 0]))
    yield ("buffer", call(glob("numpy.core.numeric", "_frombuffer"), call(glob("builtins", "bytearray"), bytes([1, 0, 0, 0])), made,
                          (1,), "C"))


def rows_built():
    """A dtype of NumPy's own ignores its state; one that is in use changes what uses it."""
    for copies, args in (("absent", ()), ("align", (False,)), ("false", (False, False)), ("zero", (False, 0)), ("none", (False, None))):
        for order in "<>|=":
            for use, body in uses(dtype("i4", (3, order, None, None, None, -1, -1, 0), args=args)):
                yield "copy-%s-%d-%s" % (copies, "<>|=".index(order), use), body, "a dtype that is not a copy (%s) gets byte order %s" % (copies, order)
    swap = (3, ">", None, None, None, -1, -1, 0)
    plain = (3, "<", None, None, None, -1, -1, 0)
    for use, body in uses(dtype("i4", plain, swap)):
        yield "twice-" + use, body, "a dtype with two states"
    for kept in ((), (plain,)):
        for use, body in uses(code(dtype("i4", *kept), put(9))):
            yield "after-%s-%d" % (use, len(kept)), val([body, code(get(9), val(swap), BUILD)]), "a dtype that gets its state when it is in use"


def rows_arrays():
    flags = {"one": 1, "zero": 0, "none": None, "text": "x", "float": 1.0, "list": [1], "tuple": ()}
    for name in ("f4", "S3", "O8"):
        for what, flag in flags.items():
            data = [1, 2, 3, 4] if name == "O8" else bytes(range(4 * TYPES[name][4]))
            yield "order-%s-%s" % (name, what), array(dtype(name, state(name)), data, (2, 2), flag), "Fortran order is %r" % (flag,)
    objects = dtype("O8", state("O8"))
    for number, shape in enumerate(((3,), (1, 2), (0,), (), (2, 0, 2), (1000,))):
        count = 1
        for dim in shape:
            count *= dim
        for length in {0, 1, count - 1, count + 1, 2 * count} - {count, -1}:
            yield "objects-%d-%d" % (number, length), array(objects, [7] * length, shape), "%d objects for shape %s" % (length, shape)
        for what, data in (("bytes", b"A" * 8 * count), ("tuple", (7,) * count), ("text", "A" * count), ("dict", {}), ("none", None)):
            yield "objects-%d-%s" % (number, what), array(objects, data, shape), "%s where %d objects belong" % (what, count)
    for name in ("f4", "i8", "S3", "U2"):
        size = TYPES[name][4]
        for what, data in (("short", bytes(2 * size - 1)), ("long", bytes(2 * size + 1)), ("empty", b""), ("list", [1, 2]), ("none", None)):
            yield "data-%s-%s" % (name, what), array(dtype(name, state(name)), data), "%s data for two items of %s" % (what, name)
    for what, name in (("void", "V4"), ("date", "M8"), ("date-unit", "M8[s]"), ("time", "m8")):
        yield "kind-" + what, array(dtype(name), bytes(16)), "an array of %s" % name


def rows_again():
    """The state of an array is told once."""
    second = (1, (1,), dtype("i4"), False, bytes([2, 0, 0, 0]))
    for name in TYPES:
        yield "again-" + name.lower(), code(honest(name), val(second), BUILD), "an array of %s with a second state" % name


def samples():
    for rows in (rows_tails, rows_built, rows_arrays, rows_again):
        for name, root, text in rows():
            yield Sample("numpy-" + name, "pkl", "not-clean", "trust", text, pickle(root, 3))
