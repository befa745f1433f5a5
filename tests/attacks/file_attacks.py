"""Things that are not checkpoints, hostile safetensors files, and shard indexes that point elsewhere."""
import gzip
import json
import struct
import zlib

from pickle_asm import pickle
from torch_parts import FLOATS, Sample, tensor, torch_zip

EIGHT = bytes(8)


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def one(data=EIGHT, **more):
    return safetensors({"a": entry(**more)}, data)


def wrong_files():
    """(name, extension, code, text, bytes): what users really hand to a checkpoint reader."""
    bad = "unknown-format"
    page = b"<!DOCTYPE html>\n<html><head><title>404</title></head><body>Entry not found</body></html>\n"
    lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 497774208\n"
    whole = torch_zip({"weight": tensor()})
    yield "html", "pt", bad, "HTML error page", page
    yield "html-lower", "bin", bad, "HTML page without doctype", b"<html><body>Sign in</body></html>"
    yield ("xml", "pt", bad, "XML error of an object store",
           b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>")
    yield "git-lfs", "pt", bad, "Git LFS pointer", lfs
    yield "git-lfs-safetensors", "safetensors", bad, "Git LFS pointer named .safetensors", lfs
    yield "gzip", "pt", bad, "gzip of a torch zip", b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + gzip.compress(whole, mtime=0)[10:]
    yield "bzip2", "pt", "refused-any", "bzip2 magic", b"BZh91AY&SY" + bytes(40)
    numbers = 20_000_000
    record = b"\x83\xa8metadata\x80\xa4item\x81\xa1a\xdd" + numbers.to_bytes(4, "big") + b"\7" * numbers + b"\xa2_b\x90"
    yield "burn-numbers", "mpk.gz", "expansion-limit", "20 million numbers of a byte, packed small", gzip.compress(record, 9, mtime=0)
    yield "xz", "pt", bad, "xz magic", b"\xfd7zXZ\0\0\4" + bytes(40)
    yield "zstd", "pt", "refused-any", "zstd magic", b"\x28\xb5\x2f\xfd" + bytes(40)
    yield "zlib", "pt", bad, "zlib stream of a pickle", zlib.compress(pickle({"a": 1}), 9)
    yield "7z", "pt", bad, "7z archive (nullifAI's container)", b"7z\xbc\xaf\x27\x1c\0\4" + bytes(56) + pickle({"a": 1})
    yield "rar", "pt", bad, "RAR archive", b"Rar!\x1a\x07\x01\0" + bytes(56)
    yield "png", "pt", bad, "PNG image", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(40)
    yield "jpeg", "pth", bad, "JPEG image", b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(40)
    yield "pdf", "pt", bad, "PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
    yield "gguf", "bin", bad, "GGUF model", b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(32)
    yield "ggml", "bin", "refused-any", "old GGML model", b"lmgg" + bytes(40)
    yield "hdf5", "bin", "refused-any", "HDF5 file", b"\x89HDF\r\n\x1a\n" + bytes(40)
    yield "onnx", "pt", bad, "ONNX protobuf", b"\x08\x08\x12\x07pytorch\x1a\x052.0.0" + bytes(20)
    yield "elf", "pt", bad, "ELF program", b"\x7fELF\x02\x01\x01" + bytes(57)
    yield "pe", "pt", "refused-any", "Windows program", b"MZ\x90\0" + bytes(60)
    yield "json", "pt", bad, "JSON configuration", b"{\"model_type\": \"bert\", \"hidden_size\": 768}\n"
    yield "text", "pt", bad, "plain text that starts with no opcode", b"Hello, this is not a model.\n"
    yield ("text-opcode", "pt", "refused-any", "plain text that starts with an opcode",
           b"This text starts like a Python 2 string opcode.\n")
    yield "python", "pt", "refused-any", "Python source", b"import torch\nprint('ballast attack sample')\n"
    yield "zeros", "pt", "refused-any", "4096 zero bytes (failed allocation or sparse download)", bytes(4096)
    yield "ones", "pt", bad, "4096 bytes 0xff", b"\xff" * 4096
    yield "empty", "pt", "refused-any", "no bytes at all", b""
    yield "one-byte", "pt", "refused-any", "one byte, the PROTO opcode", b"\x80"
    yield "one-byte-stop", "pt", "refused-any", "one byte, the STOP opcode", b"."
    yield "newline", "pt", "refused-any", "one newline", b"\n"
    yield "pytorch1", "pt", "refused-any", "container of a 1.0 preview", b"PYTORCH1" + bytes(56)
    yield "flatbuffer", "ptl", "refused-any", "mobile flatbuffer", b"\x18\0\0\0PTMF" + bytes(56)
    yield "executorch", "pte", "refused-any", "ExecuTorch program", b"\x18\0\0\0ET12" + bytes(56)
    yield "npy", "pt", "refused-any", "numpy file whose header is broken", b"\x93NUMPY\x01\0\x10\0{'descr': 'x"
    yield "base64", "pt", "refused-any", "base64 text of a pickle", b"gAJ9cQBYAQAAAGFxAUsBcy4=\n"
    yield "utf16", "pt", bad, "UTF-16 text with byte order mark", "model".encode("utf-16")
    yield ("safetensors-as-pt", "pt", "bad-json", "safetensors named .pt, header is not JSON",
           safetensors(b"{\"a\":{\"dtype\":\"F32\",]", EIGHT))


def safetensors_rows():
    yield "header-max", "header-too-large", struct.pack("<Q", 2**64 - 1) + b"{}", "header length 2^64-1"
    yield "header-sign", "header-too-large", struct.pack("<Q", 2**63) + b"{}", "header length 2^63"
    yield "header-wrap", "header-too-large", struct.pack("<Q", 2**64 - 8) + b"{}", "8 + length wraps to 0"
    yield "header-limit", "header-too-large", struct.pack("<Q", 100000001) + b"{}", "header length one above the limit"
    yield "header-cut", "truncated", safetensors(b"{\"a\":", length=4096), "header longer than the file"
    yield ("header-cut-one", "truncated", safetensors({"a": entry()}, b"",
           len(json.dumps({"a": entry()}, separators=(",", ":"))) + 1), "header one byte longer than the file")
    yield "data-cut", "truncated", one(bytes(4)), "half of the data is missing"
    yield "data-none", "truncated", one(b""), "all of the data is missing"
    yield "trailing", "trailing-data", one(bytes(12)), "four bytes behind the last tensor"
    yield "trailing-zip", "trailing-data", one() + torch_zip({"weight": tensor()}), "a torch zip behind the last tensor"
    yield "gap", "gap", safetensors({"a": entry(), "b": entry(offsets=(16, 24))}, bytes(24)), "hole between two tensors"
    yield "gap-start", "gap", safetensors({"a": entry(offsets=(8, 16))}, bytes(16)), "hole before the first tensor"
    yield ("overlap", "overlap", safetensors({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)),
           "two tensors share four bytes")
    yield "overlap-same", "overlap", safetensors({"a": entry(), "b": entry()}, EIGHT), "two tensors over the same bytes"
    same = b"".join(b",\"%05d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}" % i for i in range(100000))
    yield "overlap-100000", "overlap", safetensors(b"{" + same[1:] + b"}", b"\0"), "100,000 tensors over one byte"
    yield "offsets-reversed", "refused-any", one(offsets=(8, 0)), "end before begin"
    yield "offsets-far", "refused-any", one(offsets=(1 << 40, (1 << 40) + 8)), "offsets of 2^40"
    yield "offsets-wrap", "refused-any", one(offsets=(2**64 - 8, 0)), "offsets wrap over 2^64"
    yield "offsets-negative", "bad-json", one(offsets=(-8, 0)), "negative offset"
    yield "offsets-three", "bad-json", one(offsets=(0, 4, 8)), "three offsets"
    yield "offsets-float", "bad-json", one(offsets=(0.0, 8.0)), "offsets are floats"
    yield "size-more", "size-mismatch", one(shape=(3,)), "shape needs 12 bytes, offsets give 8"
    yield "size-less", "size-mismatch", one(shape=(1,)), "shape needs 4 bytes, offsets give 8"
    yield ("shape-wraps-0", "size-overflow", safetensors({"a": entry(shape=(1 << 32, 1 << 32), offsets=(0, 0))}),
           "2^32 x 2^32 elements: product wraps to 0")
    yield "shape-wraps-2", "size-overflow", one(shape=(2**63 + 1, 2)), "product wraps to 2"
    yield ("shape-bytes-wrap", "size-overflow", safetensors({"a": entry(shape=(1 << 62,), offsets=(0, 0))}),
           "2^62 floats: bytes wrap to 0")
    yield ("shape-bits-wrap", "refused-any", safetensors({"a": entry(shape=(1 << 61,), dtype="U8",
           offsets=(0, 1 << 61))}), "2^61 bytes: bits wrap to 0")
    yield ("shape-zero-last", "size-overflow", safetensors({"a": entry(shape=(1 << 40, 1 << 40, 0), offsets=(0, 0))}),
           "overflow before the zero, as the reference refuses it")
    yield "shape-negative", "bad-json", one(shape=(-2,)), "negative dimension"
    yield ("shape-huge-int", "bad-json",
           safetensors(b"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999999],\"data_offsets\":[0,8]}}",
           EIGHT), "dimension above 2^64")
    yield "shape-string", "bad-json", one(shape=("2",)), "dimension is a string"
    yield "rank-100000", "refused-any", one(shape=(1,) * 100000), "100,000 dimensions"
    yield "dtype-unknown", "bad-dtype", one(dtype="F33"), "dtype F33"
    yield "dtype-lower", "bad-dtype", one(dtype="f32"), "dtype in lower case"
    yield "dtype-int", "refused-any", one(dtype=7), "dtype is a number"
    yield ("dtype-bits", "refused-any", safetensors({"a": entry(dtype="F4", shape=(3,), offsets=(0, 1))}, b"\0"),
           "three F4 elements are not whole bytes")
    text = json.dumps(entry(), separators=(",", ":")).encode()
    yield ("dup-name", "duplicate-key", safetensors(b"{\"a\":" + text + b",\"a\":" + text + b"}", EIGHT),
           "one name twice, equal entries")
    yield ("dup-name-other", "duplicate-key",
           safetensors(b"{\"a\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[5,8]},\"a\":" + text + b"}", EIGHT),
           "one name twice, other entries")
    yield ("dup-name-escaped", "duplicate-key", safetensors(b"{\"a\":" + text + b",\"\\u0061\":" + text + b"}",
           EIGHT), "one name twice, once escaped")
    yield ("dup-field", "duplicate-key", safetensors(b"{\"a\":{\"dtype\":\"I32\"," + text[1:] + b"}", EIGHT),
           "dtype twice in one entry")
    yield ("dup-metadata", "duplicate-key",
           safetensors(b"{\"__metadata__\":{},\"__metadata__\":{},\"a\":" + text + b"}", EIGHT), "__metadata__ twice")
    yield "name-nul", "bad-name", safetensors({"a\0b": entry()}, EIGHT), "NUL inside a name"
    yield ("metadata-int", "refused-any", safetensors({"__metadata__": {"k": 1}, "a": entry()}, EIGHT),
           "metadata value is a number")
    yield "metadata-list", "refused-any", safetensors({"__metadata__": [], "a": entry()}, EIGHT), "metadata is a list"
    for depth in (5000, 200000):
        nest = b"[" * depth + b"]" * depth
        yield ("deep-%d" % depth, "too-deep", safetensors(b"{\"a\":" + text[:-1] + b",\"x\":" + nest + b"}}", EIGHT),
               "%d levels of JSON in an unknown field" % depth)
    yield ("deep-objects", "refused-any", safetensors(b"{\"a\":" * 50000 + b"1" + b"}" * 50000),
           "50,000 levels of JSON objects")
    yield "deep-open", "refused-any", safetensors(b"[" * 500000), "500,000 open brackets"
    for name, body in (("nan", b"{\"a\":NaN}"), ("array", b"[]"), ("null", b"null"), ("bom", b"\xef\xbb\xbf{}"),
        ("comma", b"{\"a\":1,}"), ("comment", b"{/*x*/}"), ("single", b"{'a':1}"),
                       ("cut", b"{\"a\":{\"dtype\""), ("tail", b"{}{}"), ("nul-tail", b"{}\0\0"),
                        ("utf8", b"{\"\xff\":1}"), ("surrogate", b"{\"\\ud800\":1}"), ("number", b"{\"a\":01}"),
                        ("empty", b"")):
        yield "json-" + name, "bad-json", safetensors(body), "header %r" % body.decode("latin1")


def index_rows():
    """Index files; the shard they may legally name is one of the legal samples."""
    def index(target, **more):
        return json.dumps(dict({"metadata": {"total_size": 8}, "weight_map": {"a": target}}, **more)).encode()

    for name, target in (("dotdot", "../outside.safetensors"), ("dotdot-deep", "x/../../outside.safetensors"),
        ("absolute", "/outside/model.safetensors"), ("backslash", "..\\outside.safetensors"),
                         ("drive", "C:\\outside.safetensors"), ("unc", "\\\\host\\share\\model.safetensors"),
                          ("folder", "sub/model.safetensors"), ("only-dotdot", "..")):
        yield "escape-" + name, "path-escape", index(target), "shard name " + target
    yield "url", "refused-any", index("https://example.org/model.safetensors"), "shard name is a URL"
    yield "nul", "refused-any", index("ok-shard.safetensors\0.txt"), "NUL inside a shard name"
    yield "empty-name", "refused-any", index(""), "empty shard name"
    yield "self", "refused-any", index("index-self.index.json"), "the index names itself as its shard"
    yield "missing", "missing-shard", index("index-no-such-file.safetensors"), "shard does not exist"
    yield ("absent-tensor", "index-mismatch", json.dumps({"weight_map": {"zzz": "ok-shard.safetensors"}}).encode(),
           "tensor zzz is not in its shard")
    yield "map-list", "refused-any", json.dumps({"metadata": {}, "weight_map": []}).encode(), "weight_map is a list"
    yield "name-int", "refused-any", index(7), "shard name is a number"
    yield "not-json", "refused-any", b"{\"weight_map\": {", "index cut short"
    pairs = b"{\"weight_map\":{\"a\":\"ok-shard.safetensors\",\"a\":\"index-no-such-file.safetensors\"}}"
    yield "dup-name", "duplicate-key", pairs, "one tensor in two shards"


def samples():
    for name, ext, say, text, data in wrong_files():
        yield Sample("wrong-" + name, ext, say, "wrong", text, bytes(data))
    for name, say, data, text in safetensors_rows():
        yield Sample("st-" + name, "safetensors", say, "safetensors", text, data)
    for name, say, data, text in index_rows():
        yield Sample("index-" + name, "index.json", say, "index", text, data)
    tiny = b"".join(b",\"%05d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}" % (i, i,
        i + 1) for i in range(100000))
    yield Sample("st-ok-100000", "safetensors", "ok", "legal", "100,000 tensors of one byte",
                 safetensors(b"{" + tiny[1:] + b"}", bytes(100000)))
    yield Sample("ok-shard", "safetensors", "ok", "legal", "the shard that index samples name", one(FLOATS[:8]))
    yield Sample("st-ok-zero-first", "safetensors", "ok", "legal",
                 "shape [0, 2^40, 2^40]: empty, as the reference reads it",
                 safetensors({"a": entry(shape=(0, 1 << 40, 1 << 40), offsets=(0, 0))}))
    yield Sample("st-ok-spaces", "safetensors", "ok", "legal", "spaces around the header",
                 safetensors(b"  {\"a\":" + json.dumps(entry()).encode() + b"}   ", EIGHT))
    end = b"PK\x05\x06" + bytes(18)
    yield Sample("st-ok-zip-tail", "safetensors", "ok", "legal", "the last tensor's bytes are a zip end record",
                 safetensors({"a": entry("U8", (22,), (0, 22))}, end))
    yield Sample("st-ok-control-name", "safetensors", "ok", "legal",
                 "terminal escape and bidi override in a name (to be shown escaped)",
                 safetensors({"a\x1b[2J\u202eb": entry()}, EIGHT))
    good = {"metadata": {"total_size": 8}, "weight_map": {"a": "ok-shard.safetensors"}}
    yield Sample("index-ok", "index.json", "ok", "legal", "an honest index", json.dumps(good).encode())
