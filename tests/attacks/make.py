#!/usr/bin/env python3
"""Writes the hostile (and the odd but legal) files: python3 make.py OUTDIR

Output: OUTDIR/<name>.<ext> and OUTDIR/expect.tsv with the columns file, code, category, description.
The same bytes every time; standard library only; nothing is ever loaded or unpickled.
"""
import sys
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True                  # a test run leaves nothing in the source tree

import exec_attacks
import file_attacks
import hide_attacks
import key_attacks
import legal
import numpy_attacks
import onnx_attacks
import shape_attacks
import state_attacks
import stream_attacks
import tensor_attacks
import trust_attacks
import vm_attacks
import zip_attacks

GROUPS = (exec_attacks, hide_attacks, zip_attacks, tensor_attacks, vm_attacks, shape_attacks, stream_attacks,
          file_attacks, onnx_attacks, trust_attacks, numpy_attacks, state_attacks, key_attacks, legal)

CODES = set("""
unknown-format truncated trailing-data header-too-large bad-json duplicate-key bad-name bad-dtype
size-overflow size-mismatch offset-out-of-range overlap gap forbidden-global forbidden-opcode bad-pickle
frame-violation type-mismatch memo-range too-deep too-many expansion-limit expanded-view bad-zip zip-ambiguous
name-mismatch duplicate-entry encrypted-flag unsupported-method bad-crc bad-tar path-escape not-regular-file
file-changed missing-shard index-mismatch no-space io-error ok refused-any missing-storage not-found
unsupported bad-onnx bad-utf8 not-clean
""".split())


def deny_rules():
    """The paths of globals.txt; a trailing `.*` is dropped, since every rule also covers what lies below it."""
    lines = (Path(__file__).parent / "globals.txt").read_text(encoding="utf-8").splitlines()
    return {line[:-2] if line.endswith(".*") else line for line in lines if line and not line.startswith("#")}


def denied(module, name, rules):
    """Does globals.txt refuse this global? (Rules 1 to 4 of its head.)"""
    parts = name.split(".")
    paths = [module + "." + name] + [".".join(parts[i:]) for i in range(len(parts) - 1)]
    for path in paths:
        steps = path.split(".")
        if any(".".join(steps[:i]) in rules for i in range(1, len(steps) + 1)):
            return True
    return len(parts) > 1 and any(p.startswith("__") and p.endswith("__") for p in parts)


def collect():
    """All samples, checked for unique names, known codes and one-line descriptions."""
    seen, out = set(), []
    for group in GROUPS:
        for sample in group.samples():
            file = "%s.%s" % (sample.name, sample.ext)
            assert file.lower() not in seen, "two samples named " + file
            assert sample.code in CODES, "%s: unknown code %s" % (file, sample.code)
            assert (sample.code == "ok") == (sample.category == "legal"), file + ": code and category disagree"
            text = sample.text.encode("unicode_escape").decode("ascii")
            seen.add(file.lower())
            out.append((file, sample.code, sample.category, text, bytes(sample.data)))
    rules = deny_rules()
    for rows in exec_attacks.TABLE.values():
        for module, name, _ in rows:
            assert denied(module, name, rules), "globals.txt lacks %s.%s" % (module, name)
    return out


def main(argv):
    if len(argv) != 2:
        print("usage: make.py OUTDIR", file=sys.stderr)
        return 2
    out = Path(argv[1])
    out.mkdir(parents=True, exist_ok=True)
    rows = collect()
    for file, _, _, _, data in rows:
        (out / file).write_bytes(data)
    table = [("file", "code", "category", "description")] + [row[:4] for row in rows]
    (out / "expect.tsv").write_bytes("".join("\t".join(row) + "\n" for row in table).encode("ascii"))
    counts = Counter(row[2] for row in rows)
    print("%d files, %.1f MB: %s" % (len(rows), sum(len(row[4]) for row in rows) / 1e6,
                                     ", ".join("%s %d" % pair for pair in sorted(counts.items()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
