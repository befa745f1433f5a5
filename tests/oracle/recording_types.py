"""Types that take the place of what a pickle names: nothing of it runs, and everything done to them is written down.

A name becomes a harmless real class (REAL), a class whose arguments the real one checks (CHECKED, TIMES, FILES), one of pickle's helpers
(HELPERS), or a fresh type that records what is done to it (Inert).
"""
import argparse
import codecs
import collections
import copyreg
import datetime
import pathlib
import types
import uuid


class Foreign(Exception):
    """Only the real class of a foreign object could say what happens next."""


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
        """Like an object without a __setstate__ of its own: dicts are copied, a second one adds to the first."""
        if isinstance(state, dict) and (self.state is None or type(self.state) is dict):
            self.state = {**(self.state or {}), **state}
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

    def __setstate__(self, state):
        if state is not None:                      # none of them has a place for it
            raise AttributeError("__dict__")

    def refuse(self, *_args, **_kwargs):
        raise TypeError("not callable, not a container")

    __call__ = append = extend = __setitem__ = refuse

    def __iter__(self):
        if type(self.value) is range and len(self.value) <= 10000:
            return iter(self.value)
        raise Foreign


REAL = {"builtins." + t.__name__: t for t in (dict, list, set, frozenset, tuple, bytes, bytearray, complex, int, float, str, bool)}
REAL |= {"collections." + t.__name__: t for t in (collections.OrderedDict, collections.Counter, collections.defaultdict, collections.deque)}
REAL |= {"types.SimpleNamespace": types.SimpleNamespace, "argparse.Namespace": argparse.Namespace, "uuid.UUID": uuid.UUID}
CHECKED = {"builtins.range": range, "builtins.slice": slice, "builtins.object": object}
TIMES = {"datetime." + t.__name__: t for t in (datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone)}
# Pure ones: they touch no file, and Windows' are there on every system.
FILES = {"pathlib." + n: pathlib.PureWindowsPath if "Windows" in n else pathlib.PurePosixPath
         for n in ("Path", "PurePath", "PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")}
PATHS = {t: path for path, t in REAL.items()}
CODECS = {"latin1", "latin-1", "latin_1", "iso-8859-1", "iso8859-1", "utf-8", "utf8", "utf_8", "ascii", "us-ascii"}
# Functions of the table of roles whose names alone do not say that they are none.
FUNCTION_MODULES = ("torch._utils", "torch._tensor", "torch.serialization", "torch.jit._pickle", "numpy.core.multiarray", "numpy.core.numeric")


def get_attribute(target, name, *default):
    if type(name) is not str or len(default) > 1:
        raise TypeError("getattr")
    if not isinstance(target, (type, Inert, Function)) and not callable(target):
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
KNOWN = {*REAL, *CHECKED, *TIMES, *FILES, *HELPERS}
# Those whose calls have a role and a value; the others only make what they are told to.
VALUES = KNOWN - {"builtins.getattr", "copyreg.__newobj__", "copyreg.__newobj_ex__"}
