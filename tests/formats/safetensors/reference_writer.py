#!/usr/bin/env python3
"""The rules for writing a Safetensors file, once more and independently of the library, for the tests to compare bytes with.

Usage: reference_writer.py CASES OUT. CASES holds one JSON object a line: {"tensors": [[name, dtype, shape, hex data]…], "metadata": {…} or null};
OUT gets, for each, the file's length as eight little-endian bytes and the file.
"""
import json
import struct
import sys

# The format's dtypes in the order of its enumeration; files list them in descending order.
DTYPES = ["BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "F16",
          "BF16", "I32", "U32", "F32", "C64", "F64", "I64", "U64"]
SHORT = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def quoted(text):
    return '"' + "".join(SHORT.get(c, "\\u%04x" % ord(c) if c < " " else c) for c in text) + '"'


def file_bytes(tensors, metadata):
    members, data = [], b""
    if metadata is not None:
        members.append('"__metadata__":{' + ",".join(quoted(k) + ":" + quoted(metadata[k]) for k in sorted(metadata, key=lambda k: k.encode())) + "}")
    for name, dtype, shape, content in sorted(tensors, key=lambda t: (-DTYPES.index(t[1]), t[0].encode())):
        begin = len(data)
        data += bytes.fromhex(content)
        members.append('%s:{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}' % (quoted(name), dtype, ",".join(map(str, shape)), begin, len(data)))
    header = ("{" + ",".join(members) + "}").encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as cases, open(sys.argv[2], "wb") as out:
        for line in cases:
            case = json.loads(line)
            content = file_bytes(case["tensors"], case["metadata"])
            out.write(struct.pack("<Q", len(content)) + content)
