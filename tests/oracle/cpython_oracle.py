"""What CPython's own unpickler (the C one) makes of a pickle, without running anything of it.

Names are resolved by CPython's find_class itself, with its Python 2 mappings, but modules are stand-ins that only write down
which attribute was asked for. A name then is a harmless real class (REAL), a class whose arguments the real one checks
(CHECKED, TIMES), one of pickle's helpers (HELPERS), or a fresh type that records what is done to it (Inert).
"""
import codecs
import collections
import copyreg
import datetime
import io
import pickle
import struct
import sys

LONGEST = 65536                                    # of a text: as in canonical_text.h
DEEPEST = 60

sys.set_int_max_str_digits(0)                      # older Pythons had no limit: a longer integer is no difference


class Foreign(Exception):
    """Only the real class of a foreign object could say what happens next."""


class TooLong(Exception):
    pass


def foreign(*_arguments, **_keywords):
    raise Foreign


class RecordingType(type):
    __setstate__ = property(foreign)               # BUILD on the class itself

    def __getattr__(cls, name):
        if name == "__getinitargs__":              # the unpickler looks for it on every class
            raise AttributeError(name)
        raise Foreign


class Inert(metaclass=RecordingType):
    __slots__ = ("args", "kwargs", "state", "items", "pairs")
    path = "object"

    def __new__(cls, *args, **kwargs):
        self = object.__new__(cls)
        self.args, self.kwargs, self.state, self.items, self.pairs = args, kwargs, None, [], {}
        return self

    def __init__(self, *_args, **_kwargs):
        pass

    def __setstate__(self, state):
        """Like an object without a __setstate__ of its own: a second dict adds to the first."""
        if type(self.state) is dict and type(state) is dict:
            self.state = {**self.state, **state}
        else:
            self.state = state if self.state is None else (self.state, state)

    def append(self, item):
        self.items.append(item)

    def extend(self, items):
        self.items.extend(items)

    def __setitem__(self, key, value):
        self.pairs[key] = value

    __getattr__ = __iter__ = __len__ = __call__ = __getitem__ = __contains__ = foreign
    __index__ = __int__ = __float__ = __complex__ = __bytes__ = __str__ = __bool__ = foreign


def recording_type(path, base=Inert, **members):
    return RecordingType("recorded", (base,), {"path": path, "__slots__": (), **members})


class Function:
    """A function by name: called it gives an object of its name; it is no class, so NEWOBJ refuses it."""

    def __init__(self, path):
        self.path = path
        self.result = recording_type(path)

    def __call__(self, *args, **kwargs):
        return self.result(*args, **kwargs)


def is_checked(value):
    return isinstance(value, Checked)


class Checked(Inert):
    """Holds its arguments, which the real class has accepted; compares as the real value does."""
    __slots__ = ("value",)
    real = object

    def __new__(cls, *args, **kwargs):
        value = cls.real(*[a.value if is_checked(a) else a for a in args], **kwargs)
        self = Inert.__new__(cls, *args, **kwargs)
        self.value = value
        return self

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return is_checked(other) and self.value == other.value

    def __call__(self, *_args, **_kwargs):
        raise TypeError("not callable")

    def __iter__(self):
        if type(self.value) is range and len(self.value) <= 10000:
            return iter(self.value)
        raise Foreign


REAL = {"builtins." + t.__name__: t for t in (dict, list, set, frozenset, tuple, bytes, bytearray, complex, int, float, str, bool)}
REAL |= {"collections." + t.__name__: t for t in (collections.OrderedDict, collections.Counter, collections.defaultdict, collections.deque)}
CHECKED = {"builtins.range": range, "builtins.slice": slice, "builtins.object": object}
TIMES = {"datetime." + t.__name__: t for t in (datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone)}
PATHS = {t: path for path, t in REAL.items()}
CODECS = {"latin1", "latin-1", "latin_1", "iso-8859-1", "iso8859-1", "utf-8", "utf8", "utf_8", "ascii", "us-ascii"}
# Functions of the table of roles whose names alone do not say that they are none.
FUNCTION_MODULES = ("torch._utils", "torch._tensor", "torch.serialization", "torch.jit._pickle", "numpy.core.multiarray", "numpy.core.numeric")


def get_attribute(target, name, *default):
    if type(name) is not str or len(default) > 1:
        raise TypeError("getattr")
    if not isinstance(target, (type, Inert, Function)):
        getattr(target, name, *default)
    return recording_type(f"{getattr(target, 'path', 'x')}.{name}")


def encode(text, encoding="utf-8", errors="strict"):
    if type(encoding) is str and encoding.lower() not in CODECS or errors != "strict":
        raise Foreign                              # another codec would be imported by its name
    return codecs.encode(text, encoding)


def reconstruct(cls, base, state):
    """copyreg._reconstructor; an object of a recording class keeps what its base class would have held."""
    if not (isinstance(cls, type) and issubclass(cls, Inert)):
        if isinstance(base, type) and issubclass(base, Inert):
            if base.path != "builtins.object":
                raise Foreign
            base = object
        return copyreg._reconstructor(cls, base, state)
    made = cls.__new__(cls)
    if isinstance(state, dict):
        made.pairs = dict(state)
    elif isinstance(state, list):
        made.items = list(state)
    elif isinstance(state, tuple):
        made.args = state
    elif state is not None:
        made.args = (state,)
    return made


HELPERS = {"builtins.getattr": get_attribute, "_codecs.encode": encode, "copyreg._reconstructor": reconstruct,
           "copyreg.__newobj__": copyreg.__newobj__, "copyreg.__newobj_ex__": copyreg.__newobj_ex__}


class Walk:
    """A stand-in for a module: writes down which attributes lead where."""
    __slots__ = ("parts",)

    def __init__(self, parts):
        object.__setattr__(self, "parts", parts)

    def __getattribute__(self, name):
        return Walk(object.__getattribute__(self, "parts") + (name,))


REPLACED = {}                                      # modules that a stand-in hides for a moment


def put_stand_in(name, *_rest):
    REPLACED[name] = sys.modules.get(name)
    sys.modules[name] = Walk((name,))


# CPython imports through the __import__ of the calling function's builtins: this function has its own.
RESOLVE = {"__builtins__": {"__import__": put_stand_in}, "find_class": pickle.Unpickler.find_class}
exec("def resolve(unpickler, module, name): return find_class(unpickler, module, name)", RESOLVE)


def resolve(unpickler, module, name):
    try:
        walk = RESOLVE["resolve"](unpickler, module, name)
    finally:
        for replaced, real in REPLACED.items():
            if real is None:
                del sys.modules[replaced]
            else:
                sys.modules[replaced] = real
        REPLACED.clear()
    return object.__getattribute__(walk, "parts")


class Recorder(pickle.Unpickler):
    def __init__(self, file):
        super().__init__(file, encoding="utf-8", errors="python2-bytes")
        self.globals = collections.Counter()
        self.made = {}

    def persistent_load(self, pid):
        return recording_type("persistent")(pid)

    def find_class(self, module, name):
        parts = resolve(self, module, name)
        path = ".".join(parts)
        self.globals[path] += 1
        known = path in REAL or path in CHECKED or path in TIMES or path in HELPERS
        if known and any("." in part for part in parts[1:]):
            raise AttributeError(path)             # below protocol 4 a dot is part of the name: no such attribute
        if path not in self.made:
            self.made[path] = self.make(path)
        return self.made[path]

    def make(self, path):
        for table in (REAL, HELPERS):
            if path in table:
                return table[path]
        for table in (CHECKED, TIMES):
            if path in table:
                return recording_type(path, Checked, real=staticmethod(table[path]))
        module, _, last = path.rpartition(".")
        if module in FUNCTION_MODULES and (last.startswith("_") or last == "scalar" or "_pickle" in module):
            return Function(path)
        return recording_type(path)


# Python 2's str that is not UTF-8 is bytes for Ballast. CPython is asked for UTF-8 as torch.load does; what is none keeps a mark.
MARK = 0x10FE00


def python2_bytes(error):
    return "".join(chr(MARK + b) for b in error.object[error.start:error.end]), error.end


codecs.register_error("python2-bytes", python2_bytes)


def text_of_str(text):
    if text.isascii() or not any(MARK <= ord(c) < MARK + 256 for c in text):
        return "s" + text.encode("utf-8", "surrogatepass").hex()
    return "b" + b"".join(bytes([ord(c) - MARK]) if MARK <= ord(c) < MARK + 256 else c.encode("utf-8", "surrogatepass") for c in text).hex()


def escaped_name(name):
    return "".join(c if c.isascii() and (c.isalnum() or c in "_.") else "".join(f"%{b:02x}" for b in c.encode("utf-8", "surrogatepass"))
                   for c in name)


def text_of_float(value):
    return "fnan" if value != value else "f" + struct.pack(">d", value).hex()


class Canonical:
    """The text of canonical_text.h."""

    def __init__(self, budget):
        self.out, self.numbers, self.budget = [], {}, budget

    def put(self, text):
        self.budget[0] -= len(text)
        if self.budget[0] <= 0:
            raise TooLong
        self.out.append(text)

    def enter(self, value):
        first = id(value) not in self.numbers
        number = self.numbers.setdefault(id(value), len(self.numbers))
        self.put(f"#{number}=" if first else f"#{number}")
        return first

    def elements(self, values, depth):
        for i, value in enumerate(values):
            if i:
                self.put(",")
            self.write(value, depth + 1)

    def pairs(self, pairs, depth):
        self.put("{")
        for key, value in pairs.items():
            self.write(key, depth + 1)
            self.put(":")
            self.write(value, depth + 1)
            self.put(",")
        self.put("}")

    def set(self, values, depth):
        texts = []
        for value in values:
            one = Canonical(self.budget)
            one.write(value, depth + 1)
            texts.append("".join(one.out))
        self.put("{" + ",".join(sorted(texts, key=lambda t: t.encode())) + "}")

    def object(self, value, depth):
        if isinstance(value, Checked) and type(value).path in TIMES and value.args and type(value.args[0]) in (bytes, str) \
                and hasattr(value.value, "isoformat"):
            return self.put(f"<{value.path}>s{value.value.isoformat().encode().hex()}")
        if not self.enter(value):
            return None
        self.put("O" + escaped_name(value.path) + "(")
        self.elements(value.args, depth)
        self.put(")")
        if value.kwargs:
            self.pairs(value.kwargs, depth)
        if value.state is not None:
            self.put("|")
            self.write(value.state, depth + 1)
        if value.items:
            self.put("[")
            self.elements(value.items, depth)
            self.put("]")
        if value.pairs:
            self.pairs(value.pairs, depth)
        return None

    def write(self, value, depth):
        kind = type(value)
        if depth > DEEPEST:
            self.put("^")
        elif value is None:
            self.put("N")
        elif kind is bool:
            self.put("T" if value else "F")
        elif kind is int:
            self.put(f"i{value}")
        elif kind is float:
            self.put(text_of_float(value))
        elif kind is complex:
            self.put(f"c({text_of_float(value.real)},{text_of_float(value.imag)})")
        elif kind is str:
            self.put(text_of_str(value))
        elif kind is bytes:
            self.put("b" + value.hex())
        elif kind is bytearray:
            if self.enter(value):
                self.put("B" + value.hex())
        elif kind is tuple:
            self.put("(")
            self.elements(value, depth)
            self.put(")")
        elif kind is frozenset:
            self.put("<frozenset>")
            self.set(value, depth)
        elif isinstance(value, Inert):
            self.object(value, depth)
        else:
            self.container_or_name(value, kind, depth)

    def container_or_name(self, value, kind, depth):
        if kind in PATHS:
            if not self.enter(value):
                return
            path = PATHS[kind]
            self.put("<set>" if kind is set else "" if path.startswith("builtins.") else f"<{path}>")
            if isinstance(value, dict):
                self.pairs(value, depth)
            elif kind is set:
                self.set(value, depth)
            else:
                self.put("[")
                self.elements(value, depth)
                self.put("]")
            attributes = getattr(value, "__dict__", None)
            if attributes:
                self.put("@")
                self.pairs(attributes, depth)
        elif isinstance(value, (type, Function)) or value in HELPERS.values():
            path = PATHS.get(value) if isinstance(value, type) else None
            path = path or next((p for p, f in HELPERS.items() if f is value), None) or value.path
            self.put("G" + escaped_name(path))
        else:
            self.put(f"?{kind.__name__}")


def canonical(value):
    one = Canonical([LONGEST])
    try:
        one.write(value, 0)
    except TooLong:
        return "~"
    return "".join(one.out)


class Outcome:
    """accepted (used, globals, text), refused (why) or foreign."""
    __slots__ = ("kind", "used", "globals", "text", "why", "names")

    def __init__(self, data):
        file = io.BytesIO(data)
        recorder = Recorder(file)
        self.used = self.globals = self.text = self.why = None
        self.names = recorder.globals
        try:
            value = recorder.load()
            self.kind = "accepted"
            self.used = file.tell()
            self.globals = ",".join(f"{escaped_name(n)}*{c}" for n, c in sorted(recorder.globals.items(), key=lambda i: escaped_name(i[0]))) or "-"
            self.text = canonical(value)
        except (Foreign, MemoryError) as error:
            self.kind, self.why = "foreign", type(error).__name__
        except Exception as error:                 # an unpickler may raise anything
            self.kind, self.why = "refused", f"{type(error).__name__}: {error}"
