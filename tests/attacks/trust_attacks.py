"""What a reader must not be talked into: writing somebody's opcodes, calling a stranger clean, paying much for little.

The code `not-clean` says that a file may be read or refused as the reader likes, but that a scan must not call it clean.
"""
from pickle_asm import (BUILD, MARK, MEMOIZE, POP, REDUCE, SETITEMS, STACK_GLOBAL, TUPLE, TUPLE1, TUPLE2, call, code, get,
                        glob, inst, new, obj, pickle, put, short_str, val)
from torch_parts import (ECHO, ORDERED_DICT, Sample, cls, layout, legacy, legacy_tensor, nested_bytes, sparse, storage,
                         tensor, torch_zip)

FROM_TYPE = glob("torch._tensor", "_rebuild_from_type_v2")
NEWOBJ_EX_FUNCTION = glob("copyreg", "__newobj_ex__")
INJECTION = "float32\ncposix\nsystem\n(X\x05\x00\x00\x00echo tR0ctorch\nfloat32"


def rows_writer():
    """Texts that become opcodes when a writer puts them into a line."""
    yield "constant-newline", 4, code(short_str("torch"), short_str(INJECTION[:200]), STACK_GLOBAL), "a constant's name with opcodes in it"
    yield ("constant-format", 4, code(short_str("torch"), short_str("x\ncposix\nsystem\n_format"), STACK_GLOBAL),
           "a memory format's name with opcodes in it")
    for kind in ("dtype", "layout", "qscheme", "memory_format", "device", "Size"):
        yield ("from-type-" + kind.lower(), 2, call(FROM_TYPE, glob("builtins", "str"), cls(kind), (INJECTION,), {}),
               "text that is made a torch.%s by _rebuild_from_type_v2" % kind)
    yield "device-text", 2, call(cls("device"), "cuda:0\ncposix\nsystem\n"), "a device's name with opcodes in it"
    yield "device-index", 2, call(cls("device"), "cuda", -7), "a device with a negative index"


def rows_callables():
    """Calls that no prefix may vouch for."""
    names = (("torch.fx.graph_module", "reduce_graph_module"), ("numpy.lib._datasource", "open"), ("numpy", "savez"),
             ("numpy", "load"), ("numpy", "fromfile"), ("pathlib", "Path.unlink"), ("pathlib", "PosixPath.write_text"),
             ("torch", "load"), ("torch", "save"), ("torch.hub", "load"), ("torch", "classes"), ("builtins", "map"),
             ("builtins", "filter"), ("builtins", "type"), ("builtins", "open"), ("functools", "partial"),
             ("functools", "reduce"), ("collections", "namedtuple"), ("collections.abc", "Callable"),
             ("datetime", "datetime.strptime"), ("commands", "getoutput"), ("UserDict", "UserDict"), ("torch.jit", "load"),
             ("torch.storage", "UntypedStorage.from_file"), ("torch", "UntypedStorage.from_file"),
             ("torch._utils", "_rebuild_tensor_v2.__globals__"), ("numpy.core.multiarray", "fromfile"), ("torch", "_C"),
             ("mynet", "Net"), ("torch.nn.modules.linear", "Linear"), ("torch._utils", "_import_dotted_name"),
             ("types", "FunctionType"), ("uuid", "_load_system_functions"), ("copyreg", "add_extension"),
             ("_codecs", "register"), ("argparse", "FileType"), ("types", "ModuleType"), ("torch", "os"))
    for module, name in names:
        slug = (module + "-" + name).replace(".", "-").replace("_", "-").lower()
        made = glob(module, name)
        yield "named-" + slug, 4, made, "%s.%s is named" % (module, name)
        yield "called-" + slug, 4, call(made, ECHO), "%s.%s is called" % (module, name)
        yield "made-" + slug, 4, new(made, ECHO), "%s.%s is made" % (module, name)
        if "." not in name:
            yield "inst-" + slug, 2, inst(module, name, ECHO), "%s.%s by INST" % (module, name)
            yield "obj-" + slug, 2, obj(made, ECHO), "%s.%s by OBJ" % (module, name)
            yield ("getattr-" + slug, 2, call(call(glob("builtins", "getattr"), glob("torch", "nn"), name), ECHO),
                   "%s reached by getattr" % name)
    yield "factory", 2, call(glob("collections", "defaultdict"), glob("torch", "load")), "a default factory that loads"
    yield "factory-call", 2, call(glob("collections", "defaultdict"), glob("torch._utils", "_rebuild_tensor")), "a rebuild function as a default factory"
    yield ("hooks", 2, tensor(hooks=code(ORDERED_DICT, MARK, val(0), glob("torch", "Size"), SETITEMS)),
           "hooks that call something when gradients flow")
    yield "np-object-scalar", 2, call(glob("numpy.core.multiarray", "scalar"), call(glob("numpy", "dtype"), "O8"), "x"), "a NumPy scalar of objects"
    yield "encode-codec", 2, call(glob("_codecs", "encode"), "x", "idna"), "a codec that is imported"
    yield "str-object", 2, call(glob("builtins", "str"), new(glob("mynet", "Net"))), "str() of a stranger"
    yield "set-object", 2, call(glob("builtins", "set"), new(glob("mynet", "Net"))), "set() of a stranger"
    yield "tensor-size", 2, call(cls("FloatTensor"), 1 << 40), "torch.FloatTensor(2^40)"
    yield "storage-size", 2, call(cls("FloatStorage"), 1 << 40), "torch.FloatStorage(2^40)"
    yield "bytes-size", 2, call(glob("builtins", "bytes"), 1 << 40), "bytes(2^40)"
    yield "reconstruct-shape", 2, call(glob("numpy.core.multiarray", "_reconstruct"), glob("numpy", "ndarray"), (1 << 40,), "b"), "an array of 2^40"


def rows_memo():
    """Python counts the slots that are filled, not the highest."""
    yield ("memoize-holes", 4, code(val("collections"), put(2), POP, val("posix"), MEMOIZE, POP, val("OrderedDict"), put(3),
           POP, val("system"), MEMOIZE, POP, get(1), get(3), STACK_GLOBAL, val((ECHO,)), REDUCE),
           "forbidden-global", "MEMOIZE behind slots that were left out")
    yield ("memoize-again", 4, code(val("a"), put(0), put(0), POP, val("posix"), MEMOIZE, POP, val("system"), MEMOIZE, POP,
           get(1), get(2), STACK_GLOBAL, val((ECHO,)), REDUCE), "forbidden-global", "MEMOIZE behind a slot that was filled twice")


def rows_objects():
    member = call(glob("builtins", "getattr"), glob("mynet", "Color"), "RED")
    yield "member-built", 2, code(member, val(5), BUILD, val((ECHO,)), REDUCE), "refused-any", "a getattr object whose state is replaced"
    yield "member-dict", 2, code(member, val({"name": 7}), BUILD), "type-mismatch", "a getattr object whose name is replaced"
    yield ("member-from-type", 2, call(FROM_TYPE, glob("builtins", "getattr"), glob("mynet", "T"),
           (glob("mynet", "Color"), "RED"), 5), "not-clean", "a getattr object made by _rebuild_from_type_v2")
    deep = val(())
    for _ in range(4000):
        deep = code(MARK, FROM_TYPE, glob("mynet", "T"), deep, val({}), TUPLE)
    yield "from-type-deep", 2, code(FROM_TYPE, deep, REDUCE), "refused-any", "4,000 calls that call each other"
    deep = val(())
    for _ in range(4000):
        deep = code(MARK, NEWOBJ_EX_FUNCTION, deep, val({}), TUPLE)
    yield "newobj-ex-deep", 2, code(NEWOBJ_EX_FUNCTION, deep, REDUCE), "refused-any", "4,000 makers that make each other"
    yield "tensor-replaced", 2, code(tensor(), val((storage("1"), 0, (1,), (1,))), BUILD), "type-mismatch", "a tensor whose numbers are replaced by BUILD"
    yield ("data-attribute", 2, call(glob("torch._utils", "_rebuild_parameter_with_state"), tensor(), False, ORDERED_DICT,
           {"data": tensor(storage("1"))}), "unsupported", "a parameter whose data is replaced by its state")
    yield ("bits-later", 2, code(val({"k%d" % i: True for i in range(20)}), put(7), POP, val({"a": call(
        glob("torch._utils", "_rebuild_tensor_v2"), storage(), 0, (4,), (1,), False, ORDERED_DICT, get(7))}), put(8), POP, get(7),
        val("neg"), val(True), b"s", POP, get(8)), "not-clean", "metadata that learns of the minus sign later")
    yield ("storage-two-classes", 2, val({"a": tensor(), "b": tensor(storage(kind="IntStorage"))}), "bad-dtype",
           "one storage named with two classes: some releases of PyTorch go by the first, others by each")
    yield "storage-two-sizes", 2, val({"a": tensor(), "b": tensor(storage(kind="DoubleStorage"))}), "size-mismatch", "one storage named with two sizes"


def rows_cost():
    """Little that asks for much."""
    text = val("x" * 1000000)
    big = 1 << 27
    wide = tensor(storage("1", "LongStorage", 2), 0, (1, big), (0, 0))
    yield "sparse-indices", sparse(wide, tensor(size=(big,), stride=(0,)), (16,)), "2^27 indices that are one number"
    yield "sparse-count", {str(i): sparse(tensor(storage("1", "LongStorage", 2), 0, (1, 1 << 21), (0, 0)),
           tensor(size=(1 << 21,), stride=(0,)), (16,)) for i in range(40)}, "40 sparse tensors of 2^21 indices that are one number"
    yield "expanded-often", {str(i): tensor(size=(1 << 22,), stride=(0,)) for i in range(40)}, "40 views of 16 MB of one number"
    yield ("one-tensor-many-names", code(tensor(storage(numel=4), 0, (1 << 20,), (0,)), put(0), POP,
           val({"k%d" % i: get(0) for i in range(2000)})), "2,000 names of a tensor of 4 MB that is one number")
    yield "streams-again", code(val(pickle(val("y" * 1000000), 3)), put(0), POP, MARK, *[code(glob("torch.storage", "_load_from_bytes"),
           get(0), TUPLE1, REDUCE)] * 300, TUPLE), "one stream of a megabyte, read 300 times"
    nested = val(1)
    for _ in range(6):
        nested = nested_bytes(pickle(code(MARK, nested, *[b"N"] * 20000, TUPLE), 3))
    yield "streams-deep", nested, "streams inside streams, each with 20,000 values"
    named = tensor()
    for _ in range(500):
        named = code(b"}", get(0), named, b"s")
    yield "long-name", code(text, put(0), POP, named), "a tensor's name of 500 MB"
    yield ("path-parts", code(text, put(0), POP, glob("pathlib", "PurePosixPath"), MARK, *[get(0)] * 5000, TUPLE, REDUCE),
           "a path of 5,000 parts of a megabyte")
    yield ("encode-again", code(text, put(0), POP, glob("_codecs", "encode"), put(1), POP, val("latin1"), put(2), POP, MARK,
           *[code(get(1), get(0), get(2), TUPLE2, REDUCE)] * 20000, TUPLE), "a megabyte encoded 20,000 times")
    pyramid = val(tuple(range(30)))
    wide_tuple = code(pyramid, put(10), POP)
    for level in range(11, 15):
        wide_tuple = code(wide_tuple, MARK, *[get(level - 1)] * 30, TUPLE, put(level), POP)
    yield "tuple-keys", code(wide_tuple, val({}), MARK, *[code(get(14), val(i), TUPLE2, tensor()) for i in range(40)], b"u"), "keys of 24 million parts"
    yield ("hidden-buffers", code(glob("mynet", "Net"), b")\x81", val({"_parameters": {}, "_modules": {}, "_buffers": {
           "b%d" % i: tensor() for i in range(3000)}, "_non_persistent_buffers_set": call(glob("builtins", "set"),
           ["c%d" % i for i in range(20000)])}), BUILD), "3,000 buffers looked for among 20,000 names")
    yield "depth-shared", code(MARK, *depth_blocks(), TUPLE), "lists that are deeper than they look at first"


def depth_blocks():
    """Each block is 600 deep and ends in the one before it, which was met already."""
    out = [code(b"]" * 600, b"a" * 599, put(100))]
    for block in range(1, 5):
        out.append(code(b"]" * 600, get(99 + block), b"a" * 600, put(100 + block)))
    return out


def rows_sizes():
    huge = (0, 1 << 62, 1 << 62)
    yield "zero-strided", tensor(size=huge, stride=(1, 1, 1)), "size-overflow", "sizes whose product wraps but for a zero"
    yield ("zero-meta", call(glob("torch._utils", "_rebuild_meta_tensor_no_storage"), cls("float32"), huge, (1, 1, 1), False),
           "size-overflow", "the same without data")
    yield ("zero-numpy", code(call(glob("numpy.core.multiarray", "_reconstruct"), glob("numpy", "ndarray"), (0,), b"b"), val(
        (1, huge, call(glob("numpy", "dtype"), "f4"), True, b"")), BUILD), "size-overflow", "the same in a NumPy array")
    yield "zero-sparse", sparse(tensor(storage("1", "LongStorage", 2), 0, (3, 0), (1, 1)), tensor(size=(0,)), huge), "size-overflow", "the same in a sparse tensor"
    yield "zero-float4", call(glob("torch._utils", "_rebuild_tensor_v3"), storage(kind=cls("UntypedStorage", "torch.storage"), numel=16), 0,
                              (0, (1 << 62) + 1), (1, 1), False, ORDERED_DICT, cls("float4_e2m1fn_x2")), "size-overflow", "pairs of numbers that wrap"


STORAGES = {"0": bytes(16), "1": bytes(16)}


def samples():
    for name, version, root, text in rows_writer():
        yield Sample("writer-" + name, "pkl", "not-clean", "trust", text, pickle(root, version))
    for name, version, root, text in rows_callables():
        yield Sample("callable-" + name, "pt", "not-clean", "trust", text, torch_zip(val({"w": tensor(), "x": root}), STORAGES, version))
    for name, version, root, say, text in rows_memo():
        yield Sample("trust-" + name, "pkl", say, "trust", text, pickle(root, version))
    for name, version, root, say, text in rows_objects():
        category = "legal" if say == "ok" else "trust"
        yield Sample("trust-" + name, "pt", say, category, text, torch_zip(root, STORAGES, version))
    for name, root, text in rows_cost():
        yield Sample("cost-" + name, "pt", "refused-any", "cost", text, torch_zip(root if isinstance(root, bytes) else val(root), STORAGES, 3))
    for name, root, say, text in rows_sizes():
        yield Sample("size-" + name, "pt", say, "tensor", text, torch_zip(root, STORAGES, 3))
    evil = legacy({"w": legacy_tensor(), "x": call(glob("posix", "system"), ECHO)})
    yield Sample("legacy-second-stream", "pth", "not-clean", "trust", "a harmless object, and behind it one that runs code", legacy() + evil)
    yield Sample("legacy-third-stream", "pth", "not-clean", "trust", "two harmless objects, and behind them one that runs code", legacy() * 2 + evil)
