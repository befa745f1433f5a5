"""Object graphs that are small on disk and enormous when walked: billion laughs and 200,000 levels."""
from pickle_asm import (APPEND, APPENDS, BINPERSID, BUILD, DUP, EMPTY_DICT, EMPTY_LIST, EMPTY_TUPLE, FROZENSET,
                        MARK, NEWOBJ, NONE, POP, REDUCE, SETITEM, SETITEMS, STOP, TUPLE, TUPLE1, TUPLE2, call, code, get, glob, new,
                        pickle, proto, put, tuple_of, val)
from torch_parts import Sample, legacy, nested_bytes, tensor, torch_zip

DEEP = 200000
BLOCK = glob("mynet.layers", "Block")


def laughs():
    """Each level refers to the one below ten times or more; the lowest holds a tensor."""
    def grow(level, levels=24):
        parts = [tensor(), put(0), POP]
        for i in range(levels):
            parts += [level(get(i)), put(i + 1), POP]
        return code(*parts, get(levels))

    ten = [str(i) for i in range(10)]
    yield "list", grow(lambda below: val([below] * 10)), "10^24 tensors by lists of BINGET"
    yield "tuple", grow(lambda below: tuple_of([below] * 10)), "10^24 tensors by tuples"
    yield "dict", grow(lambda below: val({key: below for key in ten})), "10^24 tensors by dicts"
    yield ("ordereddict", grow(lambda below: call(glob("collections", "OrderedDict"), [[key, below] for key in ten])),
           "10^24 tensors by OrderedDicts")
    yield ("object", grow(lambda below: code(new(BLOCK), val({key: below for key in ten}), BUILD)),
           "10^24 tensors by states of inert objects")
    yield ("modules", grow(lambda below: code(new(BLOCK),
           val({"_parameters": {}, "_buffers": {}, "_modules": {key: below for key in ten}}), BUILD)),
           "10^24 submodules by nn.Module states")
    yield "arguments", grow(lambda below: call(BLOCK, *[below] * 10)), "10^24 tensors by call arguments"
    yield ("mixed", grow(lambda below: val([{"a": below, "b": (below, below)}, [below] * 6])),
           "lists, dicts and tuples in turn")
    yield "binary", grow(lambda below: tuple_of([below, below]), 200), "2^200 tensors by pairs, 200 levels"
    level = code(EMPTY_LIST, MARK, get(0), DUP * 89, APPENDS, put(0), POP)
    dup = code(tensor(), put(0), POP, level * 10, get(0))
    yield "dup", dup, "90^10 tensors, with DUP and overwritten memo slots"


def deep():
    """Whole bare pickles, one kind of nesting each."""
    n = DEEP
    yield "tuple1", code(EMPTY_TUPLE, TUPLE1 * n), "TUPLE1"
    yield "tuple2", code(EMPTY_TUPLE, code(b"N", TUPLE2) * n), "TUPLE2"
    yield "tuple-mark", code(MARK * n, TUPLE * n), "MARK and TUPLE"
    yield "list", code(EMPTY_LIST * n, APPEND * (n - 1)), "lists by APPEND"
    yield "list-mark", code(MARK * n, b"l" * n), "lists by MARK and LIST"
    yield "dict", code(val("k"), put(0), POP, code(EMPTY_DICT, get(0)) * n, EMPTY_DICT, SETITEM * n), "dicts by SETITEM"
    yield ("dict-mark", code(val("k"), put(0), POP, code(MARK, get(0)) * n, EMPTY_DICT, b"d" * n),
           "dicts by MARK and DICT")
    yield "frozenset", code(MARK * n, EMPTY_TUPLE, FROZENSET * n), "frozensets"
    yield "key", code(EMPTY_DICT, EMPTY_TUPLE, TUPLE1 * n, b"N", SETITEM), "nesting inside a dict key"
    yield ("call", code(BLOCK, put(0), POP, get(0) * n, EMPTY_TUPLE, REDUCE, code(TUPLE1, REDUCE) * (n - 1)),
           "arguments of calls")
    yield ("new", code(BLOCK, put(0), POP, get(0) * n, EMPTY_TUPLE, NEWOBJ, code(TUPLE1, NEWOBJ) * (n - 1)),
           "arguments of NEWOBJ")
    yield ("state", code(BLOCK, EMPTY_TUPLE, put(0), POP, POP, code(BLOCK, get(0), NEWOBJ) * 60000, b"N",
           BUILD * 60000), "states of objects (here 60,000)")


def deep_topdown():
    """Containers are linked from the outside in: nobody sees the depth when a level is made."""
    parts = [EMPTY_LIST, put(0), POP]
    for i in range(150000):
        parts += [get(i), EMPTY_LIST, put(i + 1), APPEND, POP]
    return code(*parts, get(0))


def deep_modules(levels=20000):
    """nn.Module chain: the state-dict walk is what goes deep."""
    names = code(val("_modules"), put(0), POP, val("m"), put(1), POP, BLOCK, put(2), POP)
    return code(names, code(get(2), EMPTY_TUPLE, NEWOBJ, EMPTY_DICT, get(0), EMPTY_DICT, get(1)) * levels, tensor(),
                code(SETITEM, SETITEM, BUILD) * levels)


def nested_streams(depth):
    """_load_from_bytes inside _load_from_bytes, each a legacy stream."""
    stream = legacy({"weight": 1}, keys=[], blobs=[], version=3)
    for _ in range(depth):
        stream = legacy({"w": nested_bytes(stream)}, keys=[], blobs=[], version=3)
    return pickle({"w": nested_bytes(stream)}, 3)


def named_often():
    """(name, extension, text, data): one text of a megabyte, hashed or compared wherever it is named."""
    text, twin = "l" * (1 << 20), "l" * ((1 << 20) - 1) + "m"
    named = lambda pid: code(EMPTY_LIST, MARK, val(pid), put(1), BINPERSID, (get(1) + BINPERSID + POP) * 60_000, APPENDS)
    parts = lambda key, location, *more: ("storage", glob("torch", "FloatStorage"), key, location, 4) + more
    yield "location", "pt", "the location of a storage", torch_zip(named(parts("0", text)))
    yield "storage-key", "pth", "the key of a storage", legacy(named(parts(text, "cpu", None)), [text])
    kept = code(val(text), put(1), POP, val(twin), put(2), POP)
    pairs = code(EMPTY_DICT, MARK, code(get(1), NONE) * 60_000, SETITEMS)
    yield "dict-key", "pkl", "the key of 60,000 pairs", pickle(code(kept, pairs))
    dicts = code(EMPTY_LIST, MARK, code(EMPTY_DICT, MARK, get(1), NONE, get(2), NONE, SETITEMS) * 20_000, APPENDS)
    yield "dict-keys", "pkl", "two that differ in their last letter, the keys of 20,000 dicts", pickle(code(kept, dicts))


def samples():
    for name, extension, text, data in named_often():
        yield Sample("often-" + name, extension, "expansion-limit", "often", "a megabyte of text named very often: " + text, data)
    for name, body, text in laughs():
        yield Sample("laughs-" + name, "pt", "expansion-limit", "laughs", text,
                     torch_zip({"weight": tensor(), "x": body}))
    for name, body, text in deep():
        yield Sample("deep-" + name, "pkl", "too-deep", "deep", "200,000 levels: " + text, pickle(body, 4))
    yield Sample("deep-topdown", "pkl", "too-deep", "deep", "150,000 lists linked from the outside in",
                 pickle(deep_topdown()))
    yield Sample("deep-in-zip", "pt", "too-deep", "deep", "200,000 levels of TUPLE1 beside a tensor",
                 torch_zip({"weight": tensor(), "x": code(EMPTY_TUPLE, TUPLE1 * DEEP)}))
    yield Sample("deep-around-tensor", "pt", "too-deep", "deep", "a tensor under 200,000 lists",
                 torch_zip(code(EMPTY_LIST * DEEP, tensor(), APPEND * DEEP)))
    yield Sample("deep-in-legacy", "pth", "too-deep", "deep", "200,000 levels in a legacy file",
                 legacy(code(EMPTY_LIST * DEEP, APPEND * (DEEP - 1))))
    yield Sample("deep-in-sysinfo", "pth", "too-deep", "deep", "200,000 levels in sys_info of a legacy file",
                 legacy(info=code(EMPTY_TUPLE, TUPLE1 * DEEP)))
    yield Sample("deep-modules", "pt", "too-deep", "deep", "20,000 nn.Modules inside each other",
                 torch_zip(deep_modules()))
    yield Sample("deep-streams", "pkl", "too-deep", "deep", "500 streams inside each other by _load_from_bytes",
                 nested_streams(500))
    yield Sample("deep-cut", "pkl", "refused-any", "deep", "200,000 levels, then the file ends",
                 bytes(code(proto(2), EMPTY_LIST * DEEP, APPEND * (DEEP // 2))))
    odd = code(EMPTY_DICT * DEEP, val("k"), SETITEMS, STOP)
    yield Sample("deep-open", "pkl", "bad-pickle", "deep", "200,000 open dicts, then SETITEMS without a MARK",
                 bytes(code(proto(2), odd)))
