"""What CPython's own unpickler (the C one) makes of a pickle, without running anything of it.

Names are resolved by CPython's find_class itself, with its Python 2 mappings, but modules are stand-ins that only write down
which attribute was asked for; recording_types.py says what a name becomes.
"""
import collections
import io
import pickle
import sys

import canonical_text
from recording_types import CHECKED, FILES, FUNCTION_MODULES, HELPERS, KNOWN, REAL, TIMES, Checked, Foreign, Function, recording_type

sys.set_int_max_str_digits(0)                      # older Pythons had no limit: a longer integer is no difference


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
        super().__init__(file, encoding="utf-8", errors=canonical_text.PYTHON2_BYTES)
        self.globals = collections.Counter()
        self.made = {}

    def persistent_load(self, pid):
        return recording_type("persistent")(pid)

    def find_class(self, module, name):
        parts = resolve(self, module, name)
        path = ".".join(parts)
        self.globals[path] += 1
        if path in KNOWN and any("." in part for part in parts[1:]):
            raise AttributeError(path)             # below protocol 4 a dot is part of the name: no such attribute
        if path not in self.made:
            self.made[path] = self.make(path, parts)
        return self.made[path]

    @staticmethod
    def make(path, parts):
        for table in (REAL, HELPERS):
            if path in table:
                return table[path]
        for table in (CHECKED, TIMES, FILES):
            if path in table:
                return recording_type(path, Checked, real=staticmethod(table[path]))
        module, last = parts[0], parts[-1]
        if len(parts) == 2 and module in FUNCTION_MODULES and (last.startswith("_") or last == "scalar" or "_pickle" in module):
            return Function(path)
        return recording_type(path)


class Outcome:
    """accepted (used, globals, text), refused (why), or foreign."""
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
            counts = sorted((canonical_text.escaped_name(name), count) for name, count in recorder.globals.items())
            self.globals = ",".join(f"{name}*{count}" for name, count in counts) or "-"
            self.text = canonical_text.canonical(value)
        except (Foreign, MemoryError) as error:
            self.kind, self.why = "foreign", type(error).__name__
        except Exception as error:                 # an unpickler may raise anything
            self.kind, self.why = "refused", f"{type(error).__name__}: {error}".encode("unicode_escape").decode()
