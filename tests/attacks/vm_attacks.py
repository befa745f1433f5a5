"""Abuse of the pickle machine: lengths, memo, frames, stack, operand kinds, text arguments."""
import struct

from pickle_asm import (ADDITEMS, APPEND, APPENDS, BINPERSID, BUILD, DICT, DUP, EMPTY_DICT, EMPTY_LIST, EMPTY_SET,
                        FROZENSET, LIST, MARK, MEMOIZE, NEWOBJ, NEWOBJ_EX, NEXT_BUFFER, NONE, OBJ, POP, POP_MARK,
                        READONLY_BUFFER, REDUCE, SETITEM, SETITEMS, STACK_GLOBAL, STOP, TUPLE, TUPLE1, TUPLE2, TUPLE3,
                        call, code, frame, get, glob, new, pickle, proto, short_str, stack_glob, val)
from torch_parts import Sample, nested_bytes, storage, tensor, torch_zip

INERT = glob("mynet.layers", "Block")


def u32(n):
    return struct.pack("<I", n & 0xFFFFFFFF)


def u64(n):
    return struct.pack("<Q", n)


def lengths():
    """Whole files that ask for far more than they have."""
    rest = b"ab"
    for name, op, text in (("binbytes", b"B", "bytes"), ("binunicode", b"X", "text")):
        yield ("ask-" + name, "truncated", code(proto(3), op, u32(0xFFFFFFFF), rest),
               "9 bytes that ask for 4 GB of %s" % text)
    yield ("ask-binstring", "truncated", code(proto(2), b"T", u32(0x7FFFFFFF), rest),
           "9 bytes that ask for 2 GB of Python 2 text")
    yield "ask-binstring-negative", "bad-pickle", code(proto(2), b"T", u32(-1), rest), "Python 2 string of length -1"
    yield ("ask-long4", "truncated", code(proto(2), b"\x8b", u32(0x7FFFFFFF), rest),
           "9 bytes that ask for an integer of 2 GB")
    yield "ask-long4-negative", "bad-pickle", code(proto(2), b"\x8b", u32(-4), b"abcd", STOP), "integer of -4 bytes"
    yield "ask-long1", "truncated", code(proto(2), b"\x8a\xff\x01\x02"), "integer of 255 bytes, 2 present"
    for name, op in (("binbytes8", b"\x8e"), ("binunicode8", b"\x8d"), ("bytearray8", b"\x96")):
        yield "ask-" + name, "truncated", code(proto(5), op, u64(1 << 40), rest), "%s of 2^40 bytes" % name.upper()
        yield ("ask-%s-max" % name, "truncated", code(proto(5), op, u64(2**64 - 1), rest),
               "%s of 2^64-1 bytes" % name.upper())
        yield "ask-%s-sign" % name, "truncated", code(proto(5), op, u64(2**63), rest), "%s of 2^63 bytes" % name.upper()
    yield "ask-short", "truncated", code(proto(4), b"\x8c\x10abc", STOP), "short text of 16 bytes, 4 present"
    yield "ask-exact", "truncated", code(proto(3), b"C\x03ab", STOP), "bytes value swallows STOP"
    yield "ask-frame", "truncated", code(proto(4), b"\x95", u64(1 << 40), b"N."), "FRAME of 2^40 bytes"
    yield "ask-frame-max", "truncated", code(proto(4), b"\x95", u64(2**64 - 1), b"N."), "FRAME of 2^64-1 bytes"
    yield "ask-frame-one", "truncated", code(proto(4), frame(b"N.", 3)), "FRAME one byte longer than the file"
    yield ("memo-put-huge", "memo-range", code(proto(2), b"]r", u32(0xFFFFFFFF), STOP),
           "9 bytes that ask for a memo of 4 G slots")
    yield "memo-put-plain", "refused-any", b"]replace.", "the same without PROTO, as plain letters"
    yield "memo-put-large", "memo-range", code(proto(2), b"]r", u32(100000000), STOP), "memo slot 10^8"
    yield "memo-put-text", "memo-range", code(proto(2), b"]p999999999999\n", STOP), "text PUT of slot 10^12"
    yield "memo-put-negative", "refused-any", code(proto(2), b"]p-1\n", STOP), "text PUT of slot -1"
    yield "memo-put-junk", "bad-pickle", code(proto(2), b"]pabc\n", STOP), "text PUT of letters"
    yield "memo-get-unset", "memo-range", code(proto(2), get(0), STOP), "BINGET of an unset slot"
    yield "memo-get-long", "memo-range", code(proto(2), b"j", u32(0xFFFFFFFF), STOP), "LONG_BINGET of slot 2^32-1"
    yield "memo-get-text", "memo-range", code(proto(2), b"g42\n", STOP), "text GET of an unset slot"
    yield ("memo-get-text-huge", "memo-range", code(proto(2), b"g99999999999999999999999\n", STOP),
           "text GET of slot 10^23")
    yield ("memo-get-next", "memo-range", code(proto(4), EMPTY_LIST, MEMOIZE, get(1), STOP),
           "BINGET of the slot after the last")
    yield ("memo-many", "memo-range", code(proto(2), *[code(b"]r", u32(i << 12), POP) for i in range(2000)], NONE,
           STOP), "2,000 puts spread over 8 M slots")


def frames():
    yield ("frame-straddle", "frame-violation", code(proto(4), frame(code(b"\x8c\x05po"), 4), b"six", STOP),
           "text argument crosses the end of a FRAME")
    yield ("frame-straddle-int", "frame-violation", code(proto(4), b"\x95", u64(2), b"J\x01", b"\0\0\0", STOP),
           "integer argument crosses the end of a FRAME")
    yield ("frame-straddle-line", "frame-violation", code(proto(4), b"\x95", u64(3), b"I12", b"34\n", STOP),
           "text line crosses the end of a FRAME")
    yield ("frame-straddle-global", "frame-violation", code(proto(4), b"\x95", u64(4), b"cmyn", b"et\nNet\n", STOP),
           "GLOBAL line crosses the end of a FRAME")
    yield ("frame-straddle-length", "frame-violation", code(proto(4), b"\x95", u64(3), b"X\x01\0", b"\0\0a", STOP),
           "length field crosses the end of a FRAME")
    yield "frame-nested", "frame-violation", code(proto(4), frame(frame(code(NONE, STOP)))), "FRAME inside a FRAME"
    yield "frame-nested-many", "frame-violation", code(proto(4), nested_frames(200)), "200 FRAMEs inside each other"
    yield ("frame-header-cut", "frame-violation", code(proto(4), b"\x95", u64(4), b"N0\x95\x01", b"\0\0\0\0\0\0\0N",
           STOP), "a FRAME opcode crosses the end of a FRAME")
    yield ("frame-after-stop", "refused-any", code(proto(4), frame(code(NONE, STOP, b"hidden"))),
           "FRAME goes on behind STOP")


def nested_frames(depth):
    body = code(NONE, STOP)
    for _ in range(depth):
        body = frame(body)
    return body


def underflow():
    """Every opcode that takes something from the stack, on an empty stack."""
    ops = {"append": APPEND, "appends": APPENDS, "setitem": SETITEM, "setitems": SETITEMS, "additems": ADDITEMS,
        "tuple": TUPLE, "tuple1": TUPLE1,
           "tuple2": TUPLE2, "tuple3": TUPLE3, "list": LIST, "dict": DICT, "frozenset": FROZENSET, "reduce": REDUCE,
               "build": BUILD, "obj": OBJ,
           "inst": code(b"imynet\nBlock\n"), "newobj": NEWOBJ, "newobj-ex": NEWOBJ_EX, "stack-global": STACK_GLOBAL,
               "pop": POP, "pop-mark": POP_MARK,
           "dup": DUP, "memoize": MEMOIZE, "binput": code(b"q\0"), "long-binput": code(b"r\0\0\0\0"),
               "put": code(b"p0\n"), "binpersid": BINPERSID, "stop": code()}
    for name, op in ops.items():
        yield "empty-" + name, "bad-pickle", code(proto(4), op, STOP), "%s on an empty stack" % name
    yield ("empty-readonly-buffer", "refused-any", code(proto(5), READONLY_BUFFER, STOP),
           "READONLY_BUFFER on an empty stack")
    one = {"append": APPEND, "setitem": code(NONE, SETITEM), "tuple2": TUPLE2, "tuple3": code(NONE, TUPLE3),
        "reduce": REDUCE, "build": BUILD, "newobj": NEWOBJ,
           "newobj-ex": code(NONE, NEWOBJ_EX), "stack-global": STACK_GLOBAL}
    for name, op in one.items():
        yield "short-" + name, "bad-pickle", code(proto(4), EMPTY_DICT, op, STOP), "%s with one operand too few" % name
    marked = {"append": APPEND, "setitem": code(NONE, SETITEM), "tuple1": TUPLE1, "tuple2": TUPLE2, "reduce": REDUCE,
        "build": BUILD, "newobj": NEWOBJ,
              "dup": DUP, "memoize": MEMOIZE, "stop": code(), "binpersid": BINPERSID, "stack-global": STACK_GLOBAL}
    for name, op in marked.items():
        yield ("mark-" + name, "bad-pickle", code(proto(4), EMPTY_LIST, MARK, op, STOP),
               "%s takes a MARK for a value" % name)
    yield "mark-obj-empty", "bad-pickle", code(proto(2), MARK, OBJ, STOP), "OBJ with nothing after the MARK"
    yield "mark-unused", "bad-pickle", code(proto(2), MARK, NONE, STOP), "STOP while a MARK is open"
    yield "mark-many", "refused-any", code(proto(2), MARK * 1900000, NONE, STOP), "1.9 million MARKs"
    yield ("appends-no-list", "bad-pickle", code(proto(2), MARK, NONE, APPENDS, STOP),
           "APPENDS with nothing under the MARK")
    yield ("setitems-no-dict", "bad-pickle", code(proto(2), MARK, NONE, NONE, SETITEMS, STOP),
           "SETITEMS with nothing under the MARK")


def operands():
    """The stack holds enough, but of the wrong kind. Put in a zip so that the tensor's own checks are near."""
    key = val("k")
    yield "setitems-odd", "bad-pickle", code(EMPTY_DICT, MARK, key, SETITEMS), "SETITEMS with an odd count"
    yield "setitems-odd-3", "bad-pickle", code(EMPTY_DICT, MARK, key, NONE, key, SETITEMS), "SETITEMS with three items"
    yield "dict-odd", "bad-pickle", code(MARK, key, DICT), "DICT with an odd count"
    yield "setitem-list", "type-mismatch", code(EMPTY_LIST, val(0), NONE, SETITEM), "SETITEM on a list"
    yield "setitem-int", "type-mismatch", code(val(5), key, NONE, SETITEM), "SETITEM on an int"
    yield "setitem-tuple", "type-mismatch", code(val((1,)), val(0), NONE, SETITEM), "SETITEM on a tuple"
    yield ("setitem-tensor", "type-mismatch", code(tensor(), val(0), val(1.0), SETITEM),
           "SETITEM on a tensor (CVE-2026-24747)")
    yield ("setitem-storage", "type-mismatch", code(storage(), val(1 << 40), val(65), SETITEM),
           "SETITEM on a storage, far outside")
    yield "setitems-tensor", "type-mismatch", code(tensor(), MARK, val(0), val(1.0), SETITEMS), "SETITEMS on a tensor"
    yield "setitem-class", "type-mismatch", code(INERT, key, NONE, SETITEM), "SETITEM on a class, not an object"
    yield "append-dict", "type-mismatch", code(EMPTY_DICT, NONE, APPEND), "APPEND on a dict"
    yield "append-tuple", "type-mismatch", code(val(()), NONE, APPEND), "APPEND on a tuple"
    yield "append-text", "type-mismatch", code(key, key, APPEND), "APPEND on a string"
    yield "append-tensor", "type-mismatch", code(tensor(), NONE, APPEND), "APPEND on a tensor"
    yield "appends-dict", "type-mismatch", code(EMPTY_DICT, MARK, NONE, APPENDS), "APPENDS on a dict"
    yield "appends-none", "type-mismatch", code(NONE, MARK, NONE, APPENDS), "APPENDS on None"
    yield "additems-list", "type-mismatch", code(EMPTY_LIST, MARK, NONE, ADDITEMS), "ADDITEMS on a list"
    yield "additems-dict", "type-mismatch", code(EMPTY_DICT, MARK, NONE, ADDITEMS), "ADDITEMS on a dict"
    yield "build-int", "type-mismatch", code(val(5), EMPTY_DICT, BUILD), "BUILD on an int"
    yield "build-none", "type-mismatch", code(NONE, EMPTY_DICT, BUILD), "BUILD on None"
    yield "build-list", "type-mismatch", code(EMPTY_LIST, EMPTY_DICT, BUILD), "BUILD on a list"
    yield "build-text", "type-mismatch", code(key, EMPTY_DICT, BUILD), "BUILD on a string"
    yield "reduce-int", "type-mismatch", code(val(5), val(()), REDUCE), "REDUCE of an int"
    yield "reduce-text", "type-mismatch", code(val("posix.system"), val(("x",)), REDUCE), "REDUCE of a string"
    yield "reduce-tensor", "type-mismatch", code(tensor(), val(()), REDUCE), "REDUCE of a tensor"
    yield "reduce-list-args", "type-mismatch", code(INERT, val([1]), REDUCE), "REDUCE with a list of arguments"
    yield "reduce-int-args", "type-mismatch", code(INERT, val(1), REDUCE), "REDUCE with an int for arguments"
    yield "newobj-text", "type-mismatch", code(key, val(()), NEWOBJ), "NEWOBJ of a string"
    yield "newobj-list-args", "type-mismatch", code(INERT, val([]), NEWOBJ), "NEWOBJ with a list of arguments"
    yield ("newobj-ex-kwargs", "type-mismatch", code(INERT, val(()), val([]), NEWOBJ_EX),
           "NEWOBJ_EX with a list of keywords")
    yield "obj-int", "type-mismatch", code(MARK, val(5), OBJ), "OBJ of an int"
    yield "stack-global-int", "type-mismatch", code(val(1), val(2), STACK_GLOBAL), "STACK_GLOBAL of two ints"
    yield ("stack-global-bytes", "type-mismatch", code(val(b"posix"), val(b"system"), STACK_GLOBAL),
           "STACK_GLOBAL of two bytes values")
    yield ("stack-global-list", "type-mismatch", code(short_str("posix"), EMPTY_LIST, STACK_GLOBAL),
           "STACK_GLOBAL with a list for a name")
    yield "key-list", "type-mismatch", code(EMPTY_DICT, EMPTY_LIST, NONE, SETITEM), "a list as dict key"
    yield "key-dict", "type-mismatch", code(EMPTY_DICT, EMPTY_DICT, NONE, SETITEM), "a dict as dict key"
    yield "key-set", "type-mismatch", code(EMPTY_DICT, EMPTY_SET, NONE, SETITEM), "a set as dict key"
    yield ("key-deep", "type-mismatch", code(EMPTY_DICT, val((1, (2, [3]))), NONE, SETITEM),
           "a tuple holding a list as dict key")
    yield "set-of-list", "type-mismatch", code(EMPTY_SET, MARK, EMPTY_LIST, ADDITEMS), "a list as set item"
    yield ("ordereddict-pairs", "refused-any", call(glob("collections", "OrderedDict"), [[1, 2, 3]]),
           "OrderedDict pair of three")
    yield "bytes-not-legacy", "refused-any", nested_bytes(b"not a torch stream"), "_load_from_bytes of junk"
    yield ("bytes-of-int", "type-mismatch", call(glob("torch.storage", "_load_from_bytes"), 5),
           "_load_from_bytes of an int")
    yield "next-buffer", "forbidden-opcode", code(NEXT_BUFFER), "out-of-band buffer that does not exist"
    yield "readonly-buffer", "forbidden-opcode", code(val(b"x"), READONLY_BUFFER), "READONLY_BUFFER"


def texts():
    """Text arguments and junk; bare pickles."""
    for name, say, body, text in (
            ("int-junk", "bad-pickle", b"Iabc\n", "INT of letters"),
             ("int-empty", "bad-pickle", b"I\n", "INT of nothing"),
             ("int-float", "bad-pickle", b"I1e3\n", "INT in exponent form"),
            ("int-hex", "bad-pickle", b"I0x10\n", "INT in hex"),
             ("int-nul", "bad-pickle", b"I12\x0034\n", "INT with a NUL"),
             ("int-open", "truncated", b"I12", "INT without line end"),
            ("long-junk", "bad-pickle", b"L12xL\n", "LONG with a letter"),
             ("long-empty", "bad-pickle", b"LL\n", "LONG of nothing"),
             ("long-open", "truncated", b"L12", "LONG without line end"),
            ("long-million", "refused-any", b"L" + b"9" * 1000000 + b"L\n", "LONG of a million digits"),
             ("float-junk", "bad-pickle", b"Fabc\n", "FLOAT of letters"),
            ("float-hex", "bad-pickle", b"F0x1p3\n", "FLOAT in hex"),
             ("float-empty", "bad-pickle", b"F\n", "FLOAT of nothing"),
             ("float-comma", "bad-pickle", b"F1,5\n", "FLOAT with a comma"),
            ("float-cut", "truncated", b"G\0\0\0", "BINFLOAT cut"),
             ("string-bare", "bad-pickle", b"Sabc\n", "STRING without quotes"),
             ("string-open", "bad-pickle", b"S'abc\n", "STRING with one quote"),
            ("string-endless", "truncated", b"S'abc", "STRING without line end"),
             ("unicode-escape", "bad-pickle", b"V\\uZZZZ\n", "UNICODE with a broken escape"),
            ("unicode-endless", "truncated", b"Vabc", "UNICODE without line end"),
             ("utf8-bad", "bad-pickle", b"X\x02\0\0\0\xff\xfe", "text that is not UTF-8"),
            ("utf8-overlong", "bad-pickle", b"X\x02\0\0\0\xc0\xaf", "overlong UTF-8"),
             ("utf8-cut", "bad-pickle", b"\x8c\x02\xe2\x82", "UTF-8 sequence cut short"),
            ("global-cut", "truncated", b"cmynet\nNet", "GLOBAL without its second line end"),
             ("global-half", "truncated", b"cmynet", "GLOBAL with half a line"),
            ("global-utf8", "bad-pickle", b"cmy\xffnet\nNet\n", "GLOBAL that is not UTF-8"),
            ("opcode-unknown", "bad-pickle", b"\xff", "unknown opcode 0xff"),
             ("opcode-nul", "bad-pickle", b"\0", "unknown opcode 0x00"),
             ("opcode-space", "bad-pickle", b" ", "unknown opcode 0x20"),
            ("proto-twice", "refused-any", b"N0\x80\x09N", "second PROTO names protocol 9")):
        end = b"" if say == "truncated" else STOP
        yield name, say, code(proto(2), body, end), text
    yield "proto-9", "refused-any", code(proto(9), NONE, STOP), "protocol 9"
    yield "proto-255", "refused-any", code(proto(255), NONE, STOP), "protocol 255"
    yield "no-stop", "truncated", code(proto(2), val({"a": 1})), "no STOP"
    yield "only-proto", "truncated", proto(2), "PROTO and nothing else"
    yield "trailing", "trailing-data", pickle({"a": 1}) + b"tail", "bytes behind STOP"
    yield "trailing-zeros", "trailing-data", pickle({"a": 1}) + bytes(4096), "zeros behind STOP"


def cuts():
    whole = pickle({"weight": [1, 2.5, "text", b"bytes", (1, 2), call(INERT, 1), new(INERT), 1 << 40]}, 4)
    for at in (2, 3, 5, 9, 15, 20, 25, 33, 40, len(whole) - 12, len(whole) - 2, len(whole) - 1):
        yield "at-%d" % at, "truncated", whole[:at], "protocol 4 pickle cut at byte %d of %d" % (at, len(whole))
    framed = code(proto(4), frame(code(stack_glob("mynet", "Net"), val((1,)), REDUCE, STOP)))
    yield "framed", "truncated", framed[:-3], "framed pickle cut"
    yield "frame-length", "truncated", framed[:7], "cut inside the FRAME length"


def first_tensors():
    """The first tensor of a file, as torch.save writes it, of values that nobody has put anywhere: None, or nothing."""
    rebuild, none = code(glob("torch._utils", "_rebuild_tensor_v2"), b"q\0", POP), code(NONE, b"q\1", POP)
    for name, slot, say in (("none", 1, "type-mismatch"), ("unset", 9, "memo-range")):
        run = code(get(0), MARK, MARK, get(slot), get(slot), b"X\1\0\0\0" b"0", get(slot), b"K\x10", TUPLE, BINPERSID, b"K\0", b"K\4", TUPLE1,
                   b"K\1", TUPLE1, b"\x89", get(slot), b")", REDUCE, TUPLE, REDUCE)
        body = code(rebuild, none, EMPTY_DICT, MARK, val("weight"), run, val("x" * 200), NONE, b"u")
        yield "tensor-of-" + name, say, torch_zip(body, {"0": bytes(16)}), "a tensor whose class, kind, place and hooks are slot %d" % slot


def samples():
    for group, prefix, kind in ((lengths, "vm-", "vm"), (frames, "vm-", "vm"), (underflow, "vm-", "underflow"),
        (texts, "vm-", "vm"), (cuts, "cut-pickle-", "cut")):
        for name, say, data, text in group():
            yield Sample(prefix + name, "pkl", say, kind, text, bytes(data))
    for name, say, data, text in first_tensors():
        yield Sample("vm-" + name, "pt", say, "operand", text, data)
    for name, say, body, text in operands():
        yield Sample("vm-" + name, "pt", say, "operand", text, torch_zip({"weight": tensor(), "x": body}, version=5))
