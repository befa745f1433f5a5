"""ONNX models that lie: about lengths, shapes, places, names, depth. The numbers of fields are onnx.proto's."""
import pathlib
import sys

from torch_parts import FLOATS, Sample

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "fixtures/onnx"))
from wire import block, number, varint  # noqa: E402


def tensor(data=b"", name="w", code=1, dims=(4,)):
    return b"".join(number(1, d) for d in dims) + number(2, code) + (block(8, name) if name is not None else b"") + data


def raw(content=FLOATS):
    return block(9, content)


def external(location, **more):
    entries = {"location": location, **more} if location is not None else more
    return b"".join(block(13, block(1, k) + block(2, str(v))) for k, v in entries.items()) + number(14, 1)


def graph(*tensors, nodes=b""):
    return nodes + b"".join(block(5, t) for t in tensors)


def model(content, more=b""):
    return number(1, 8) + block(2, "attack") + block(7, content) + block(8, number(2, 17)) + more


def one(data=None, **more):
    return model(graph(tensor(raw() if data is None else data, **more)))


def nested(depth, inner=b""):
    """Ifs inside each other."""
    content = inner
    for _ in range(depth):
        content = block(1, block(2, "y") + block(4, "If") + block(5, block(1, "then_branch") + block(6, content)))
    return content


def wires():
    cut = "truncated"
    bad = "bad-onnx"
    whole = one()
    yield "cut-half", cut, "half of a model", whole[: len(whole) // 2]
    yield "cut-in-data", cut, "the last byte of the graph is missing", model(graph(tensor(raw())))[: -(len(block(8, number(2, 17))) + 1)]
    yield "graph-too-long", cut, "a graph of 2^40 bytes", number(1, 8) + block(2, "attack") + block(7, graph(tensor(raw())), 2**40)
    yield "length-wraps", cut, "a length that wraps around when it is added", number(1, 8) + block(2, "attack") + block(7, graph(tensor(raw())), 2**64 - 1)
    yield "inner-too-long", bad, "a tensor longer than its graph", model(block(5, tensor(raw()), 1000))
    yield "raw-too-long", bad, "raw_data of 2^62 bytes", one(block(9, FLOATS, 2**62))
    yield "varint-long", bad, "a number of eleven bytes", one(raw() + number(14, 0)[:1] + b"\x80" * 10 + b"\1")
    yield "varint-65-bits", bad, "a number of 65 bits", one(raw() + number(14, 0)[:1] + b"\xff" * 9 + b"\2")
    yield "varint-cut", bad, "a number that ends with its message", one(raw() + number(14, 0)[:1] + b"\xff")
    yield "field-zero", bad, "field number 0", one(raw() + b"\0\0")
    yield "field-huge", bad, "a field number beyond 2^29", one(raw() + varint(2**40 << 3) + b"\0")
    yield "group", bad, "a group, which ONNX has not", one(raw() + b"\x0b\x0c")
    yield "wire-7", bad, "wire type 7", one(raw() + b"\x0f")
    yield "raw-is-number", bad, "raw_data as a varint", one(number(9, 7))
    yield "no-graph", bad, "a model without a graph, called .onnx", number(1, 8) + block(2, "attack")
    yield "two-graphs", bad, "two graphs: readers would merge them, or take one", model(graph(tensor(raw()))) + block(7, graph(tensor(raw())))
    other = graph(tensor(raw(), name="v"))
    for op, field, what in (("If", 6, graph(tensor(raw()))), ("Constant", 5, tensor(raw(), name=None)), ("Constant", 22, b"")):
        twice = block(1, block(2, "c") + block(4, op) + block(5, block(1, "value") + block(field, what) + block(field, what if field != 6 else other)))
        yield "attribute-twice-%s-%d" % (op.lower(), field), bad, "an attribute with two messages in field %d: readers would merge them" % field, model(graph(tensor(raw()), nodes=twice))
    for field in (1, 2):
        training = block(20, block(field, other) + block(field, other))
        yield "training-twice-%d" % field, bad, "a training_info with two graphs of one kind", model(graph(tensor(raw())), training)
    yield "utf8", "bad-utf8", "a name that is not UTF-8", one(name=b"\xff\xfe")


def shapes():
    size, over = "size-mismatch", "size-overflow"
    yield "raw-short", size, "raw_data one byte short", one(raw(FLOATS[:-1]))
    yield "raw-long", size, "raw_data one byte too long", one(raw(FLOATS + b"\0"))
    yield "no-data", size, "four floats and no data", one(b"")
    yield "scalar-no-data", size, "a scalar without data", one(b"", dims=())
    yield "dims-huge", size, "2^58 elements, 16 bytes", one(dims=(2**58,))
    yield "dims-product", over, "a product of 2^64", one(dims=(2**32, 2**32))
    yield "dims-product-zero", over, "a product that wraps to 0", one(b"", dims=(2**32, 2**32, 4))
    yield "dims-bits", over, "elements that fit into 64 bits, and bits that do not", one(dims=(2**62,))
    yield "dim-negative", over, "a negative dimension", one(dims=(-4,))
    yield "rank-65", "too-many", "65 dimensions", one(raw(b"abcd"), dims=(1,) * 65)
    yield "rank-packed", "too-many", "10,000 dimensions in one field", one(raw(b"abcd") + block(1, b"\1" * 10000), dims=())
    yield "dtype-0", "bad-dtype", "data type 0, undefined", one(code=0)
    yield "dtype-99", "bad-dtype", "data type 99", one(code=99)
    yield "dtype-huge", "bad-dtype", "data type 2^63", one(code=2**63)
    yield "numbers-short", size, "three floats for four", one(block(4, FLOATS[:12]))
    yield "numbers-many", size, "five varints for four", one(block(5, b"\1\2\3\4\5"), code=6)
    yield "numbers-odd", "bad-onnx", "packed floats that end inside one", one(block(4, FLOATS[:-1]))
    yield "numbers-range", "bad-onnx", "300 as UINT8", one(number(5, 300), code=2, dims=(1,))
    yield "numbers-wrong", "bad-onnx", "floats in int64_data", one(block(7, b"\1\2\3\4"))
    yield "numbers-two", "bad-onnx", "data in float_data and in int32_data", one(block(4, FLOATS) + block(5, b"\1"))
    yield "raw-and-numbers", "bad-onnx", "data raw and in numbers", one(raw() + block(4, FLOATS))
    yield "raw-twice", "bad-onnx", "raw_data twice: readers would take one", one(raw() + raw())
    yield "type-twice", "bad-onnx", "data_type twice", one(raw() + number(2, 7))
    yield "segment", "unsupported", "a tensor in segments", one(raw() + block(3, number(1, 0)))


def names():
    yield "name-empty", "bad-name", "an initializer without a name", one(name=None)
    yield "name-nul", "bad-name", "a NUL in a name", one(name="a\0b")
    yield "name-long", "header-too-large", "a name of 100,000 bytes", one(name="n" * 100_000)
    yield "name-twice", "duplicate-key", "two initializers of one name", model(graph(tensor(raw()), tensor(raw())))
    constant = block(1, block(2, "w") + block(4, "Constant") + block(5, block(1, "value") + block(5, tensor(raw(), name=None))))
    yield "name-constant", "duplicate-key", "an initializer and a Constant of one name", model(graph(tensor(raw()), nodes=constant))
    prop = block(14, block(1, "k") + block(2, "v"))
    yield "metadata-twice", "duplicate-key", "a key of metadata_props twice", model(graph(tensor(raw())), prop + prop)
    many = b"".join(block(5, tensor(b"", name="%x" % i, dims=(0,))) for i in range(1500))
    long = block(1, block(3, "s" * 60_000) + block(4, "If") + block(5, block(1, "then_branch") + block(6, many)))
    yield "name-expansion", "expansion-limit", "1500 tensors below a node with a name of 60,000 bytes", model(long)


def deep():
    yield "deep-33", "too-deep", "33 graphs inside each other", model(nested(33))
    content = nested(3000)
    yield "deep-3000", "too-deep", "3000 graphs inside each other", model(content)
    many = block(1, block(4, "If") + block(5, block(6, b"")) * 100_001)
    yield "many-graphs", "too-many", "100,001 empty subgraphs", model(many)
    kind = number(1, 1)
    for _ in range(200):
        kind = block(4, block(1, kind))
    yield "deep-type", "too-deep", "an input that is a sequence of sequences, 200 deep", model(block(11, block(1, "x") + block(2, kind)) + graph(tensor(raw())))


def places():
    escape, missing = "path-escape", "missing-storage"
    me = lambda name, **more: model(graph(tensor(external("onnx-%s.onnx" % name, **more))))
    for name, where in (("absolute", "/etc/passwd"), ("parent", "../../../../etc/passwd"), ("hidden-parent", "a/../../etc/passwd"), ("dots", ".."),
                        ("backslash", "..\\secret"), ("nul", "w.bin\0.txt"), ("long", "a/" * 4000)):
        yield "external-" + name, escape, "external data at " + where[:40], one(external(where))
    yield "external-absent", missing, "external data that is not there", one(external("absent.bin"))
    yield "external-url", missing, "external data at a URL", one(external("http://example.invalid/w.bin"))
    yield "external-folder", "not-regular-file", "external data that is the folder", one(external("."))
    yield "external-none", "bad-onnx", "external data without a location", one(external(None, offset=0))
    yield "external-twice", "bad-onnx", "two locations", one(external("a") + external("b"))
    yield "external-and-raw", "bad-onnx", "external data and raw_data", one(raw() + external("w.bin"))
    yield "external-location-9", "bad-onnx", "data_location 9", one(raw() + number(14, 9))
    # The model itself is a file in its folder.
    yield "external-past", "offset-out-of-range", "an offset behind the end", me("external-past", offset=10**6)
    yield "external-wrap", "offset-out-of-range", "offset + length wraps around", me("external-wrap", offset=2**64 - 8)
    yield "external-overflow", "size-overflow", "an offset of 65 bits", me("external-overflow", offset=2**64)
    yield "external-negative", "bad-onnx", "a negative offset", me("external-negative", offset=-1)
    yield "external-blank", "bad-onnx", "an offset with a blank", me("external-blank", offset=" 1")
    yield "external-length", "size-mismatch", "a length that is not the shape's", me("external-length", offset=0, length=12)
    pair = [tensor(external("onnx-external-overlap.onnx", offset=o), name=n) for n, o in (("a", 0), ("b", 8))]
    yield "external-overlap", "overlap", "two tensors on parts of each other", model(graph(*pair))


def sparse(values=None, indices=None, dims=(4,)):
    values = tensor(raw(b"\1\2"), code=2, dims=(2,)) if values is None else values
    indices = tensor(block(7, b"\0\3"), name=None, code=7, dims=(2,)) if indices is None else indices
    return model(block(15, (block(1, values) if values else b"") + (block(2, indices) if indices else b"") + b"".join(number(3, d) for d in dims)))


def sparses():
    yield "sparse-index", "offset-out-of-range", "an index behind the end", sparse(dims=(3,))
    yield "sparse-negative", "offset-out-of-range", "a negative index", sparse(indices=tensor(block(7, varint(-1) + b"\0"), name=None, code=7, dims=(2,)))
    yield "sparse-count", "size-mismatch", "three indices for two values", sparse(indices=tensor(block(7, b"\0\1\2"), name=None, code=7, dims=(3,)))
    yield "sparse-rank", "size-mismatch", "indices of two dimensions for a tensor of one", sparse(indices=tensor(block(7, b"\0\1\2\3"), name=None, code=7, dims=(2, 2)))
    yield "sparse-type", "bad-dtype", "indices that are floats", sparse(indices=tensor(raw(FLOATS[:8]), name=None, dims=(2,)))
    yield "sparse-huge", "expansion-limit", "2^40 elements from two", sparse(dims=(2**40,))
    yield "sparse-overflow", "size-overflow", "a dense size of 2^66", sparse(dims=(2**33, 2**33))
    yield "sparse-twice", "bad-onnx", "one index for two values", sparse(indices=tensor(block(7, b"\1\1"), name=None, code=7, dims=(2,)))
    yield "sparse-order", "bad-onnx", "indices that do not ascend", sparse(indices=tensor(block(7, b"\2\1"), name=None, code=7, dims=(2,)))
    yield "sparse-bare", "bad-onnx", "sparse without indices", sparse(indices=b"")


def legal():
    yield "plain", "one tensor", one()
    yield "deep-32", "32 graphs inside each other", model(nested(32, graph(tensor(raw()))))
    yield "itself", "data in the model's own bytes", model(graph(tensor(external("onnx-legal-itself.onnx", offset=0, length=16))))
    yield "shared", "two tensors on the same bytes", model(graph(*(tensor(external("onnx-legal-shared.onnx"), name=n) for n in "ab")))
    yield "unknown-fields", "fields of a later version", one(raw() + number(1000, 5) + block(2000, "text") + varint(77 << 3 | 5) + bytes(4))
    yield "empty-huge", "no elements, however large the other dimensions are", one(b"", dims=(0, 2**62, 2**62))
    yield "order", "data before name, type and shape", model(graph(raw() + block(8, "w") + number(2, 1) + number(1, 4)))
    yield "long-form", "numbers in more bytes than they need", one(raw() + b"\x70\x80\x80\0")
    yield "sparse", "two values of four", sparse()
    yield "wrong-name", "an ONNX model called .pt", one()


def samples():
    for make in (wires, shapes, names, deep, places, sparses):
        for name, code, text, data in make():
            yield Sample("onnx-" + name, "onnx", code, "onnx", text, data)
    for name, text, data in legal():
        yield Sample("onnx-legal-" + name, "pt" if name == "wrong-name" else "onnx", "ok", "legal", text, data)
