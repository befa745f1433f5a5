# SPDX-License-Identifier: Apache-2.0
"""What hostile files may do to Python: nothing that takes long, and nothing that never ends."""
import os
import resource
import socket
import struct
import subprocess
import sys
import time

import pytest

import ballast

PRIME = 2**61 - 1  # what Python's hash of a number is a remainder of


def pickled(*parts):
    return b"\x80\x02" + b"".join(parts) + b"."


def number(value):
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def put(slot):
    return b"r" + struct.pack("<I", slot) + b"0"


def get(slot):
    return b"j" + struct.pack("<I", slot)


def pair(first, second):
    return get(first) + get(second) + b"\x86"


def dict_of(keys):
    return b"}(" + b"".join(key + b"N" for key in keys) + b"u"


def lists_of(key_groups, make):
    return b"](" + b"".join(make(keys) for keys in key_groups) + b"e"


def equal_hashes(count):
    """Numbers that all have the hash 0."""
    return [number(PRIME * (i + 1)) for i in range(count)]


def tuples_of_one_hash():
    """65,536 tuples: hash(-1) is hash(-2), and so the hashes of all pairs of these, of pairs of those, …"""
    parts, level, slot = [number(-1) + put(0), number(-2) + put(1)], [0, 1], 2
    for _ in range(4):
        above = []
        for first in level:
            for second in level:
                parts.append(pair(first, second) + put(slot))
                above.append(slot)
                slot += 1
        level = above
    return b"".join(parts), [get(place) for place in level]


def set_of(keys):
    return b"cbuiltins\nset\n(](" + b"".join(keys) + b"etR"


def large_tuples(count):
    """(a tuple of 8,192 parts, i): each is hashed whole."""
    parts = number(7) + put(0)
    for slot in range(1, 14):
        parts += pair(slot - 1, slot - 1) + put(slot)
    return parts, [get(13) + number(i) + b"\x86" for i in range(count)]


def hostile_pickles():
    numbers = equal_hashes(60_000)
    yield "numbers", pickled(dict_of(numbers))
    yield "numbers-set", pickled(set_of(numbers))
    yield "numbers-in-many-dicts", pickled(lists_of([numbers[i : i + 4000] for i in range(0, len(numbers), 4000)], dict_of))
    parts, tuples = tuples_of_one_hash()
    yield "tuples", pickled(parts, dict_of(tuples))
    parts, tuples = large_tuples(60_000)
    yield "large-tuples", pickled(parts, dict_of(tuples))


@pytest.mark.parametrize(("name", "data"), hostile_pickles(), ids=lambda given: given if isinstance(given, str) else "")
def test_keys_that_are_costly_for_pythons_dicts_are_refused_in_time(name, data):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with pytest.raises(ballast.Error) as caught:
        ballast.open(data).value()
    assert caught.value.code == "expansion-limit"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 5


def test_very_many_plain_keys_are_taken():
    keys = [*range(50_000), *(2**70 + i for i in range(50_000)), *((i, -i) for i in range(20_000)), *(i + 0.5 for i in range(20_000)), *("k%d" % i for i in range(9))]

    def opcodes(key):
        if isinstance(key, int):
            return number(key)
        if isinstance(key, float):
            return b"G" + struct.pack(">d", key)
        if isinstance(key, str):
            return b"X" + struct.pack("<I", len(key)) + key.encode()
        return number(key[0]) + number(key[1]) + b"\x86"

    assert list(ballast.open(pickled(dict_of(map(opcodes, keys)))).value()) == keys
    same = [number(2**61 * PRIME**i) for i in range(1, 9)]
    assert len(ballast.open(pickled(dict_of(same))).value()) == 8


WAITS = """
import sys, ballast, ballast.numpy
path = sys.argv[1]
calls = {
    "open": lambda: ballast.open(path), "read": lambda: ballast.open(path, io="read"), "direct": lambda: ballast.open(path, io="direct"),
    "open_value": lambda: ballast.open_value(path), "scan": lambda: ballast.scan(path), "verify": lambda: ballast.verify(path),
    "hash": lambda: ballast.hash(path), "stats": lambda: ballast.stats(path), "diff": lambda: ballast.diff(path, path),
    "convert": lambda: ballast.convert(path, path + ".out.safetensors"), "load_file": lambda: ballast.numpy.load_file(path),
    "pread": lambda: ballast.numpy.load_file(path, backend="pread"), "safe_open": lambda: ballast.safe_open(path, "np"),
    "identities": lambda: ballast.open(path, identities=[path]), "passphrase": lambda: ballast.open(path, passphrase_file=path),
}
for name, call in calls.items():
    print(name, flush=True)
    try:
        call()
    except (ballast.Error, OSError, ValueError):
        continue
    raise SystemExit(f"{name} took it")
"""


@pytest.mark.parametrize("kind", ["pipe", "socket", "endless", "terminal"])
def test_what_is_no_file_is_refused_and_not_waited_for(kind, tmp_path):
    path = str(tmp_path / "model.safetensors")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(path)
    else:
        os.symlink({"endless": "/dev/zero", "terminal": "/dev/tty"}[kind], path)
    before = time.monotonic()
    done = subprocess.run([sys.executable, "-c", WAITS, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - before < 30


@pytest.mark.parametrize("size", [-1, -(10**30), 2**63, 10**400, "-1", "1e5", "1..2GB", ".", "9" * 400, "5XB", "99999999999999999TB"])
def test_sizes_of_shards_that_mean_nothing_are_refused(size, tmp_path):
    with pytest.raises(ValueError, match="is no size"):
        ballast.save(tmp_path / "x.safetensors", ballast.open(safetensors_of(b"")), shard_size=size)
    assert list(tmp_path.iterdir()) == []


def safetensors_of(data):
    header = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (len(data), len(data))
    return struct.pack("<Q", len(header)) + header + data


def test_numbers_in_json_are_pythons_or_refused(tmp_path):
    path = tmp_path / "config.json"
    for text in ("1.7976931348623157e308", "4.9e-324", "2e-324", "-1e-400", "0.1", "-0.0"):
        path.write_text('{"x": %s}' % text)
        assert repr(ballast.open_value(path, "x")) == repr(float(text))
    for text in ("1.797693134862315808e308", "-1.797693134862315808e308", "1e309"):
        path.write_text('{"x": %s}' % text)
        with pytest.raises(ballast.Error) as caught:
            ballast.open_value(path, "x")
        assert caught.value.code == "bad-json"
