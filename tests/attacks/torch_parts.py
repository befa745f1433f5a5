"""Pieces of torch files: storages, tensors and the five containers, honest unless told to lie."""
import struct
from collections import namedtuple

import tar_forge as tar
import zip_forge as zf
from pickle_asm import call, code, glob, pickle, persistent, val

Sample = namedtuple("Sample", "name ext code category text data")

MAGIC = 0x1950A86A20F9469CFC6C
FLOATS = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)
ORDERED_DICT = call(glob("collections", "OrderedDict"))
ECHO = "echo ballast attack sample"             # harmless even if a broken reader ran it
PRINT = "print('ballast attack sample')"


def cls(name, module="torch"):
    return glob(module, name)


def storage(key="0", kind="FloatStorage", numel=4, location="cpu", *more):
    """Persistent id of a storage; `kind` is a torch storage name or ready opcodes."""
    kind = cls(kind) if isinstance(kind, str) else kind
    return persistent(("storage", kind, key, location, numel) + more)


def tensor(store=None, offset=0, size=(4,), stride=(1,), hooks=ORDERED_DICT, grad=False):
    """_rebuild_tensor_v2 of a storage."""
    store = storage() if store is None else store
    return call(glob("torch._utils", "_rebuild_tensor_v2"), store, offset, size, stride, grad, hooks)


def tensor_v3(store, offset, size, stride, dtype="float8_e4m3fn"):
    return call(glob("torch._utils", "_rebuild_tensor_v3"), store, offset, size, stride, False, ORDERED_DICT,
                cls(dtype))


def parameter(inner):
    return call(glob("torch._utils", "_rebuild_parameter"), inner, True, ORDERED_DICT)


def qtensor(size, stride, qparams, numel=4):
    return call(glob("torch._utils", "_rebuild_qtensor"), storage(kind="QInt8Storage", numel=numel), 0, size, stride,
                qparams, False, ORDERED_DICT)


def layout(name):
    return call(glob("torch.serialization", "_get_layout"), "torch." + name)


def sparse(indices, values, size, kind="sparse_coo"):
    return call(glob("torch._utils", "_rebuild_sparse_tensor"), layout(kind), (indices, values, size))


def longs(*numbers):
    return struct.pack("<%dq" % len(numbers), *numbers)


def record(name, data, prefix=b"archive", **more):
    return zf.Entry(prefix + b"/" + name, data, **more)


def entries(data_pkl, storages=None, prefix=b"archive", byteorder=b"little", pkl=None, extra=()):
    """The records of a torch.save zip, in torch's order. `pkl` overrides fields of the data.pkl entry."""
    storages = {"0": FLOATS} if storages is None else storages
    out = [record(b"data.pkl", data_pkl, prefix, **(pkl or {}))]
    if byteorder is not None:
        out.append(record(b"byteorder", byteorder, prefix))
    for key, data in storages.items():
        out.append(record(b"data/" + key.encode(), data, prefix))
    return out + list(extra) + [record(b"version", b"3\n", prefix)]


def torch_zip(root, storages=None, version=2, **more):
    """torch.save zip of a root object (opcodes or a plain value)."""
    return zf.build(entries(pickle(root, version), storages, **more))


def script_zip(root, constants=(), storages=None, extra=()):
    """TorchScript archive: data.pkl, code, constants.pkl."""
    more = [record(b"code/__torch__.py", b"class Net(Module):\n  __parameters__ = [\"weight\", ]\n"),
            record(b"constants.pkl", pickle(constants))]
    return zf.build(entries(pickle(root), storages, byteorder=None, extra=more + list(extra)))


def script_module(state):
    """The root object of a TorchScript archive."""
    return code(glob("__torch__", "Net"), b")\x81", val(state), b"b")


SYS_INFO = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


def legacy_storage(key="0", kind="FloatStorage", numel=4, view=None):
    return storage(key, kind, numel, "cpu", view)


def legacy_tensor(**more):
    return tensor(legacy_storage(**more))


def legacy(root=None, keys=("0",), blobs=None, magic=MAGIC, protocol=1001, info=None, version=2):
    """The five pickles of a legacy stream and its storages."""
    root = {"weight": legacy_tensor()} if root is None else root
    keys = list(keys) if isinstance(keys, tuple) else keys
    info = SYS_INFO if info is None else info
    blobs = [longs(4) + FLOATS] if blobs is None else blobs
    heads = [pickle(part, version) for part in (magic, protocol, info, root, keys)]
    return b"".join(heads) + b"".join(blobs)


def nested_bytes(stream):
    """torch.storage._load_from_bytes(stream), the stream as a protocol 3 bytes value."""
    return call(glob("torch.storage", "_load_from_bytes"), stream)


def tar_parts(count=1, store=(1, "cpu", cls("FloatStorage")), numel=4, data=FLOATS, views=(), tensors=1,
              entry=(2, 1, cls("FloatTensor")), ndim=1, dims=(4,), strides=(1,), offset=0, root=None):
    """The four members of a torch 0.1 tar, as a dictionary name -> bytes."""
    root = {"weight": persistent("2")} if root is None else root
    storages = pickle(count) + pickle(store) + longs(numel) + data + pickle(list(views))
    tens = pickle(tensors) + pickle(entry) + struct.pack("<i4x", ndim) + longs(*dims) + longs(*strides) + longs(offset)
    return {"sys_info": pickle(SYS_INFO), "pickle": pickle(root), "storages": storages, "tensors": tens}


def torch_tar(parts=None, **more):
    parts = tar_parts(**more) if parts is None else parts
    return tar.archive(*[tar.member(name.encode(), data) for name, data in parts.items()])
