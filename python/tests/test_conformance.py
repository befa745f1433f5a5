# SPDX-License-Identifier: Apache-2.0
"""The reference's verdicts on small files, and the hostile files of the C++ tests, through Python."""
import os
import pathlib

import numpy as np
import pytest
from conftest import SOURCE

import ballast
import ballast._native
from ballast import SafetensorError, deserialize, safe_open

CASES = [line.split("\t") for line in (SOURCE / "tests/formats/safetensors/cases.tsv").read_text(encoding="utf-8").splitlines()[2:]]

# Stricter than the reference, which takes the last of two: docs/formats/safetensors.md.
STRICTER = {"duplicate-key", "bad-name", "size-overflow"}


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_verdicts_and_messages(case, written):
    _, text, verdict, detail = case[:4]
    data = bytes.fromhex(text)
    try:
        found = deserialize(data)
    except SafetensorError as error:
        assert error.code and error.where
        if error.code in ("duplicate-key", "bad-name"):
            return  # whatever else is wrong with it, we see that first
        if verdict == "OK":
            assert error.code in STRICTER
            return
        prefix = "Error while deserializing: "
        assert str(error).startswith(prefix)
        said = str(error)[len(prefix) :]
        if detail.startswith("invalid JSON in header: "):
            assert said.startswith("invalid JSON in header: ")
        elif detail.startswith("invalid UTF-8 in header: "):
            assert said.startswith("invalid UTF-8 in header: ")
        elif case[0] == "same_range":  # the reference names either of the two
            assert said in (detail, detail.replace("`a`", "`b`"))
        else:
            assert said == detail
        with pytest.raises(SafetensorError) as caught:
            safe_open(written(data), "np")
        assert str(caught.value) == "Error while deserializing header: " + said.replace("bytes in memory", str(caught.value.where))
        return
    assert verdict == "OK"
    with safe_open(written(data), "np") as f:
        assert f.offset_keys() == [name for name, _ in found]


ATTACKS = os.environ.get("BALLAST_ATTACKS", "")


def touch(value, seen, budget):
    """Walks everything there is; every tensor's bytes are read."""
    stack = [value]
    while stack and budget[0] > 0:
        budget[0] -= 1
        item = stack.pop()
        if isinstance(item, ballast.Tensor):
            if item.has_data and item.nbytes < 1 << 26:
                item.tobytes()
            continue
        if not isinstance(item, (dict, list, tuple, set, ballast.Object)) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            stack += list(item.keys()) + list(item.values())
        elif isinstance(item, ballast.Object):
            stack += [item.args, item.kwargs, item.state, item.items, item.pairs, item.attributes]
        else:
            stack += list(item)


def read_all(path):
    checkpoint = ballast.open(path)
    for tensor in checkpoint.values():
        if tensor.has_data and tensor.nbytes < 1 << 26:
            tensor.tobytes()
            if tensor.size and tensor.dtype in ("F32", "I64", "U8"):
                np.asarray(tensor)
    if checkpoint.has_values:
        touch(checkpoint.value(), set(), [200_000])


@pytest.mark.skipif(not ATTACKS or not pathlib.Path(ATTACKS, "expect.tsv").exists(), reason="the hostile files are not built here")
def test_hostile_files_end_in_their_code():
    rows = [line.split("\t") for line in pathlib.Path(ATTACKS, "expect.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    assert len(rows) > 1000
    wrong = []
    for name, code, category, *_ in rows:
        path = pathlib.Path(ATTACKS, name)
        if code == "not-clean":  # read or refused, as the reader likes
            assert ballast.scan(path).verdict != "clean", name
            continue
        try:
            read_all(path)
            if category == "zip":  # what opening has no need to look at
                ballast._native.check_integrity(path)
            found = "ok"
        except SafetensorError as error:
            found = error.code
            str(error), repr(error)
        # Of these the C++ tests know which code it is in detail; here it is enough that they are refused.
        loose = code == "refused-any" or category in ("safetensors", "index")
        if found != code and not (loose and found != "ok" and code != "ok"):
            wrong.append((name, code, found))
    assert not wrong
