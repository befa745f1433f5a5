"""What pickles are made of: spellings of numbers and text that readers may disagree about, and names.

Module names that are aliases in Ballast alone (torch.tensor, numpy._core, pathlib._local) are left out: CPython does not know them.
"""
import _compat_pickle

TEXT_INTEGERS = [
    '0', '1', '-1', '7', '255', '65536', '-2147483649', '9223372036854775807', '9223372036854775808', '18446744073709551616', '00', '01', '010',
    '-0', '+1', ' 1', '1 ', '0x10', '0X1f', '1_000', '_1', '1__0', '', '0b101', '0o17', '1e3', '1.0', '--1', '- 1', '007', '-00', '00 ', ' 01',
    '01\r', '1\r', '\t5', '1\x00', '1\x0b', '1L', '\u0663', '0x', '00x1', '-01', 'True']
TEXT_LONGS = [
    '0L', '12L', '-5L', '12', 'L', '', '0x10L', '1_0L', ' 7L', '7 L', '007L', '12l', '1LL', '-L', '+3L', '99999999999999999999999L', '0b1L', '010',
    '0L\r']
TEXT_FLOATS = [
    '0.0', '1.5', '-0.0', '1e400', '-1e400', '1e-400', '-1e-400', 'nan', '-nan', 'NaN', 'inf', '-inf', 'Infinity', '+inf', 'infinite', '1', '1.',
    '.5', '1_000.5', '0x1p3', ' 2.5', '2.5 ', '1e5', '1E+5', '1e', '', '+2.5', '1d5', '5e-324', '2.4703282292062327e-324', '1.7976931348623159e308',
    'nan(12)', '9007199254740993', '0.1', '1e-5\r', '1,5', '--1', '1.5f']
STRINGS = [
    b"'a'", b'"a"', b"''", b"'", b'a', b'\'a"', b"'a'b'", b"'it''s'", b"'\\x41'", b"'\\x4'", b"'\\101'", b"'\\777'", b"'\\8'", b"'\\n\\t\\\\'",
    b"'\\q'", b"'\\'", b"'\\u00e9'", b"'\xff'", b"'\xc3\xa9'", b"'a' ", b" 'a'", b"'a'\r", b"'a'\x00", b"'\\\n'", b"u'a'", b"'\\N{DASH}'", b"'\\\\'",
    b"'\\'a'", b"'\\0'", b"'\x00'", b'"\'"', b"'\\e\\z'", b"'\\xzz'"]
UNICODES = [
    b'a', b'', b'\\u00e9', b'\\u0041', b'\\U0001f6a2', b'\\ud83d\\ude00', b'\\ud800', b'\\udc80', b'\xe9', b'\\\\u0041', b'\\\\\\u0041', b'\\u12',
    b'\\U00110000', b'\\Uffffffff', b'\\x41', b'\\n', b'\\', b'\\u000a', b'a\r', b'\\u005cu0041', b'\x00', b'\\u\\u', b'\xc3\xa9', b'\\u00E9',
    b' a ']
TEXTS = ["", "a", "b", "weight", "1", "True", "caf\u00e9", "\U0001f6a2", "x" * 300, "a.b", "\0", "__dict__", "name", "latin1", "utf-8"]
RAW_TEXTS = [
    b'\xed\xa0\x80', b'\xed\xb2\x80', b'\xff', b'\xc0\x80', b'\xf4\x90\x80\x80', b'\xe2\x82', b'\xed\xa0\xbd\xed\xb8\x80', b'\xef\xbb\xbfa',
    b'\xf0\x9f\x9a\xa2']
INTEGERS = [
    0, 1, -1, 2, 3, 5, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, -2**31, 2**31, 2**53, 2**53 + 1, 2**62, 2**62 - 1, -2**62, -2**62 - 1,
    2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64, 2**70, 10**30, -10**30, 2**1023, 2**1024]
FLOATS = [
    0.0, -0.0, 1.0, 2.0, 1.5, -1.0, 255.0, 2.0**31, 2.0**53, 2.0**62, 2.0**63, 2.0**64, 2.0**70, 1e30, 1e300, float("inf"), float("-inf"),
    float("nan"), 5e-324, 2.0**1023]
FLOAT_BITS = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FF8DEADBEEF0000, 0x8000000000000000]
# Dates, times and others as datetime pickles them.
RAW_BYTES = [
    b"", b"a", b"\xff\x00", b"weight", b"x" * 300, b"\x07\xe4\x01\x02", b"\x07\xe4\x01\x02\x03\x04\x05\x00\x00\x00", b"\x03\x04\x05\x00\x00\x07",
    b"\xff\xff\xff\xff", b"\x07\xe4\x0d\x02", b"\x00\x00\x01\x01", b"\x18\x00\x00\x00\x00\x00", b"\x07\xe4\x81\x02\x83\x04\x05\x00\x00\x07",
    b"\x83\x04\x05\x00\x00\x07"]

PATH_PARTS = ["", "a", "/", "//", "///", "a/b", "a//b", "./a", "..", "../a/.", "/a", "//a/b", "a/", "C:", "C:\\a", "c:a/b", "\\\\host\\share\\x", "a\\b", "\\a", "."]

BUILTINS = "dict list set frozenset tuple bytes bytearray complex int float str bool slice range object".split()
CONTAINERS = "OrderedDict Counter defaultdict deque".split()
DATES = "date time datetime timedelta timezone".split()
FILES = "Path PosixPath PurePosixPath PureWindowsPath WindowsPath".split()
NAMES = (
    [("builtins", n) for n in BUILTINS] + [("collections", n) for n in CONTAINERS] + [("datetime", n) for n in DATES]
    + [("pathlib", n) for n in FILES] + [("types", "SimpleNamespace"), ("argparse", "Namespace"), ("uuid", "UUID")] + [("copyreg", "_reconstructor"), ("copyreg", "__newobj__"), ("copyreg", "__newobj_ex__"), ("_codecs", "encode"), ("builtins", "getattr")])
PYTHON2 = (
    [("__builtin__", n) for n in BUILTINS + ["long", "unicode", "xrange", "basestring", "getattr", "reduce", "apply"]]
    + [("copy_reg", n) for n in ("_reconstructor", "__newobj__")] + sorted(_compat_pickle.NAME_MAPPING)
    + [(m, n) for m in sorted(_compat_pickle.IMPORT_MAPPING) for n in ("x", "dict", "OrderedDict", "system")])
FOREIGN = [
    ('mynet', 'Net'), ('mynet.blocks', 'Block'), ('mynet', 'Outer.Inner'), ('__main__', 'Net'), ('os', 'system'), ('posix', 'system'),
    ('builtins', 'eval'), ('subprocess', 'Popen'), ('caf\xe9', '\xc9t\xe9'), ('a b', 'c d'), ('', 'x'), ('x', ''), ('x', '.'), ('x', 'a..b'),
    ('x', '<locals>.y'), ('collections', 'OrderedDict.fromkeys'), ('builtins', 'dict.get'), ('collections.abc', 'x'), ('builtins.dict', 'x'),
    ('x', 'y\r'), (' builtins', 'dict'), ('builtins', 'dict '), ('functools', 'partial'), ('builtins', 'map'), ('enum', 'Enum'),
    ('torch', 'float32'), ('torch', 'FloatStorage'), ('torch', 'Size'), ('torch', 'device'), ('torch._utils', '_rebuild_tensor_v2'),
    ('torch', '_utils._rebuild_tensor_v2'), ('torch._utils', '_rebuild_parameter'), ('torch._tensor', '_rebuild_from_type_v2'),
    ('torch.storage', '_load_from_bytes'), ('torch.nn.parameter', 'Parameter'), ('numpy', 'dtype'), ('numpy', 'ndarray'),
    ('numpy.core.multiarray', '_reconstruct'), ('numpy.core.multiarray', 'scalar'), 
    ('torch', 'contiguous_format'), ('torch', 'x_format'), ('omegaconf.nodes', 'AnyNode')]
