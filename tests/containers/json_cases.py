# SPDX-License-Identifier: Apache-2.0
"""JSON documents by grammar, broken ones among them, and Python's json as their other reader. Both verdicts must agree, but for what RFC 8259 leaves open."""
import json
import math
import re

SPACE = ["", "", "", " ", "\n", "\t \r\n", "\f", "\u00a0", "//x\n"]
NUMBERS = ["0", "-0", "1", "-1", "00", "01", "1.", ".5", "1.5", "1e5", "1E+5", "1e-5", "1e", "+1", "18446744073709551615", "18446744073709551616", "9223372036854775808", "1e308", "1e309", "-1e400",
           "1.7976931348623157e308", "1.7976931348623159e308", "123456789012345678901234567890", "0.1e1", "0x10", "1_0", "NaN", "Infinity", "-Infinity", "1e99999999999", "0e99999999999", "1" * 400, "-"]
TEXTS = ["", "a", "weight", "\\n", "\\u0041", "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\ud83dx", "\\u00zz", "\\x", "\\", "é", "😀", "\u0000", "\n", "\x7f", "\\/", "\\b\\f\\r\\t", '\\"', "dtype", "\\u0000", "x" * 50, "\\uD834\\uDD1E", "\ufeff"]
WORDS = ["true", "false", "null", "True", "nul", "truex", "undefined"]


def space(rng):
    return rng.choice(SPACE[:6]) if rng.random() < 0.98 else rng.choice(SPACE)


def text(rng):
    # Faults are rare: a document has many texts, and one fault hides everything behind it.
    parts = [rng.choice(TEXTS if rng.random() < 0.05 else ["a", "b", "\\n", "é", "\\u00e9", "\\ud83d\\ude00", "key"]) for _ in range(rng.randint(0, 3))]
    return '"' + "".join(parts) + ('"' if rng.random() < 0.99 else "")


def value(rng, depth):
    kind = rng.random()
    if depth > 0 and kind < 0.25:
        members = [text(rng) + space(rng) + (":" if rng.random() < 0.99 else "") + space(rng) + value(rng, depth - 1) for _ in range(rng.randint(0, 4))]
        if members and rng.random() < 0.3:
            members.append(rng.choice(members))
        return "{" + space(rng) + ("," + space(rng)).join(members) + space(rng) + rng.choice(["}"] * 40 + [",}", "]", ""])
    if depth > 0 and kind < 0.5:
        return "[" + space(rng) + ("," + space(rng)).join(value(rng, depth - 1) for _ in range(rng.randint(0, 4))) + space(rng) + rng.choice(["]"] * 40 + [",]", "}", ""])
    if kind < 0.7:
        return text(rng)
    if kind < 0.9:
        return rng.choice(NUMBERS) if rng.random() < 0.15 else str(rng.choice([rng.randint(-5, 5), rng.random(), rng.randrange(1 << 70), rng.randrange(1 << 64)]))
    return rng.choice(WORDS if rng.random() < 0.05 else WORDS[:3])


def make(rng):
    if rng.random() < 0.01:
        depth = rng.choice([1, 126, 127, 128, 129, 400])
        return rng.choice([b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth])
    data = (space(rng) + value(rng, rng.randint(0, 5)) + space(rng) + ("x" if rng.random() < 0.02 else "")).encode("utf-8", "surrogatepass")
    if rng.random() < 0.1 and data:
        changed = bytearray(data)
        changed[rng.randrange(len(changed))] = rng.choice([0, 0x22, 0x5C, 0x7B, 0x80, 0xFF, rng.randrange(256)])
        data = bytes(changed)
    return data


class Raw(str):
    """A number as it is written."""


def shown(value):
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return "." + value.encode("utf-8").hex()
    if isinstance(value, list):
        return "[" + "".join(shown(item) + "," for item in value) + "]"
    if isinstance(value, tuple):
        return "{" + "".join(shown(key) + ":" + shown(item) + "," for key, item in value) + "}"
    return {True: "true", False: "false", None: "null"}[value]


def refuse(word):
    raise ValueError(word)


def by_json(data):
    return shown(json.loads(data.decode("utf-8"), object_pairs_hook=tuple, parse_int=Raw, parse_float=Raw, parse_constant=refuse))


def differs(data, fields):
    try:
        theirs = by_json(data)
    except Exception as error:
        return f"json refuses it ({error}), Ballast reads {fields[0]}"
    return None if theirs == fields[0] else f"json:    {theirs}\nBallast: {fields[0]}"


def refused_wrongly(data, code):
    try:
        by_json(data)
    except Exception:  # halves of surrogate pairs are among them
        return None
    if len(re.findall(rb"[\[{]", data)) > 127:
        return None
    if any(math.isinf(float(number)) for number in re.findall(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", data)):
        return None  # beyond the range of double, as the reference of Safetensors has it
    return f"json reads it, Ballast says {code}: {data!r}"
