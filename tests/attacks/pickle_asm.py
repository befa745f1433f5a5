"""A tiny pickle assembler.

Every function returns opcode bytes. Nothing here ever builds, loads or calls an object:
the output is text for a machine we distrust. `Code` marks bytes that already are opcodes;
plain `bytes` given to `val` mean a bytes *value* to be written.
"""
import struct


class Code(bytes):
    """Opcodes, ready to be placed in a stream."""


def code(*parts):
    """Join opcode fragments."""
    return Code(b"".join(parts))


MARK, STOP, POP, POP_MARK, DUP = Code(b"("), Code(b"."), Code(b"0"), Code(b"1"), Code(b"2")
NONE, TRUE, FALSE = Code(b"N"), Code(b"\x88"), Code(b"\x89")
EMPTY_LIST, EMPTY_DICT, EMPTY_TUPLE, EMPTY_SET = Code(b"]"), Code(b"}"), Code(b")"), Code(b"\x8f")
APPEND, APPENDS, SETITEM, SETITEMS, ADDITEMS = Code(b"a"), Code(b"e"), Code(b"s"), Code(b"u"), Code(b"\x90")
TUPLE, TUPLE1, TUPLE2, TUPLE3 = Code(b"t"), Code(b"\x85"), Code(b"\x86"), Code(b"\x87")
LIST, DICT, FROZENSET = Code(b"l"), Code(b"d"), Code(b"\x91")
REDUCE, BUILD, OBJ, NEWOBJ, NEWOBJ_EX = Code(b"R"), Code(b"b"), Code(b"o"), Code(b"\x81"), Code(b"\x92")
STACK_GLOBAL, MEMOIZE, BINPERSID = Code(b"\x93"), Code(b"\x94"), Code(b"Q")
NEXT_BUFFER, READONLY_BUFFER = Code(b"\x97"), Code(b"\x98")


def proto(version):
    return code(b"\x80", bytes([version]))


def put(index):
    """BINPUT or LONG_BINPUT."""
    return code(b"q", bytes([index])) if index < 256 else code(b"r", struct.pack("<I", index))


def get(index):
    """BINGET or LONG_BINGET."""
    return code(b"h", bytes([index])) if index < 256 else code(b"j", struct.pack("<I", index))


def raw(text):
    return text.encode("utf-8") if isinstance(text, str) else text


def short_str(text):
    """SHORT_BINUNICODE (protocol 4)."""
    data = raw(text)
    return code(b"\x8c", bytes([len(data)]), data)


def py2_str(text):
    """SHORT_BINSTRING, the string of Python 2."""
    data = raw(text)
    return code(b"U", bytes([len(data)]), data)


def integer(number):
    if 0 <= number < 256:
        return code(b"K", bytes([number]))
    if 0 <= number < 65536:
        return code(b"M", struct.pack("<H", number))
    if -2**31 <= number < 2**31:
        return code(b"J", struct.pack("<i", number))
    data = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return code(b"\x8a", bytes([len(data)]), data)


def binbytes(data):
    """Bytes value as protocol 3 writes it."""
    if len(data) < 256:
        return code(b"C", bytes([len(data)]), data)
    return code(b"B", struct.pack("<I", len(data)), data)


def tuple_of(items):
    items = [val(item) for item in items]
    if len(items) < 4:
        return code(*items, (EMPTY_TUPLE, TUPLE1, TUPLE2, TUPLE3)[len(items)])
    return code(MARK, *items, TUPLE)


def val(thing):
    """Opcodes that push a Python value; Code is passed through."""
    if isinstance(thing, Code):
        return thing
    if thing is None:
        return NONE
    if isinstance(thing, bool):
        return TRUE if thing else FALSE
    if isinstance(thing, int):
        return integer(thing)
    if isinstance(thing, float):
        return code(b"G", struct.pack(">d", thing))
    if isinstance(thing, str):
        data = raw(thing)
        return code(b"X", struct.pack("<I", len(data)), data)
    if isinstance(thing, bytes):
        return binbytes(thing)
    if isinstance(thing, tuple):
        return tuple_of(thing)
    if isinstance(thing, list):
        return code(EMPTY_LIST, MARK, *[val(item) for item in thing], APPENDS)
    if isinstance(thing, dict):
        pairs = [val(part) for pair in thing.items() for part in pair]
        return code(EMPTY_DICT, MARK, *pairs, SETITEMS)
    raise TypeError("cannot assemble %r" % (thing,))


def glob(module, name):
    """GLOBAL: two text lines."""
    return code(b"c", raw(module), b"\n", raw(name), b"\n")


def stack_glob(module, name):
    """STACK_GLOBAL over two short strings (protocol 4)."""
    return code(short_str(module), short_str(name), STACK_GLOBAL)


def call(target, *args):
    """target(*args) by REDUCE."""
    return code(target, tuple_of(args), REDUCE)


def new(target, *args):
    """target.__new__(target, *args) by NEWOBJ."""
    return code(target, tuple_of(args), NEWOBJ)


def inst(module, name, *args):
    """INST: mark, arguments, then the two name lines."""
    return code(MARK, *[val(a) for a in args], b"i", raw(module), b"\n", raw(name), b"\n")


def obj(target, *args):
    """OBJ: mark, class, arguments."""
    return code(MARK, target, *[val(a) for a in args], OBJ)


def persistent(pid):
    """BINPERSID of any value."""
    return code(val(pid), BINPERSID)


def frame(body, length=None):
    """FRAME with its true length, or with a lie."""
    return code(b"\x95", struct.pack("<Q", len(body) if length is None else length), body)


def pickle(body, version=2):
    """A whole pickle: PROTO, body, STOP."""
    return code(proto(version), val(body), STOP)


def latin1_bytes(data):
    """Bytes as protocol 2 writes them: _codecs.encode(text, 'latin1')."""
    return call(glob("_codecs", "encode"), data.decode("latin1"), "latin1")
