#!/usr/bin/env python3
"""compare_torch.py IN OUT: what torch reads from IN, and from the copies rewrite_torch made of it in OUT.

Tensors must be equal bit for bit, with the same dtype, shape, strides and sharing; everything else must be equal and of the same
class. Files torch itself cannot read are not compared. Exit 0 when all agree, 1 when not, 2 without torch.
"""
import collections
import os
import sys
import warnings

try:
    import torch
except ImportError:
    print("compare_torch: no torch in", sys.executable, file=sys.stderr)
    sys.exit(2)

warnings.simplefilter("ignore")


# This PyTorch reads big-endian files as if they were little-endian, and compressed sparse tensors by a function later ones do not have.
IS_OLD = int(torch.__version__.split(".")[0]) < 2


def beyond_old_torch(name):
    return IS_OLD and name.startswith(("big_endian_", "sparse_csr"))


class Differs(Exception):
    pass


def row_major_bytes(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.numel() == 0:
        return b""
    if tensor.dtype == torch.complex128:
        tensor = torch.view_as_real(tensor)
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.contiguous().view(integer).numpy().tobytes()


def same_quantizer(a, b, path):
    if a.qscheme() != b.qscheme():
        raise Differs(f"{path}: {a.qscheme()} became {b.qscheme()}")
    if a.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        if (a.q_scale(), a.q_zero_point()) != (b.q_scale(), b.q_zero_point()):
            raise Differs(f"{path}: another scale or zero point")
    elif (a.q_per_channel_axis() != b.q_per_channel_axis() or a.q_per_channel_scales().tolist() != b.q_per_channel_scales().tolist()
          or a.q_per_channel_zero_points().tolist() != b.q_per_channel_zero_points().tolist()):
        raise Differs(f"{path}: other scales, zero points or axis")


def same_tensor(a, b, path, storages):
    for what in ("dtype", "layout", "shape", "requires_grad"):
        if getattr(a, what) != getattr(b, what):
            raise Differs(f"{path}: {what} {getattr(a, what)} became {getattr(b, what)}")
    if a.layout != torch.strided:
        return same_tensor(a.to_dense(), b.to_dense(), path, {})
    if a.is_meta != b.is_meta:
        raise Differs(f"{path}: meta {a.is_meta} became {b.is_meta}")
    if a.is_meta:
        return                                      # a shape without data has no strides in Ballast
    if a.stride() != b.stride() and not (a.is_conj() or a.is_neg()):
        raise Differs(f"{path}: strides {a.stride()} became {b.stride()}")
    if a.is_quantized:
        same_quantizer(a, b, path)
        a, b = a.int_repr(), b.int_repr()
    elif a.numel() and not (a.is_conj() or a.is_neg()):
        mine = b.storage().data_ptr()
        if storages.setdefault(a.storage().data_ptr(), mine) != mine:
            raise Differs(f"{path}: shared its storage before")
    if row_major_bytes(a) != row_major_bytes(b):
        raise Differs(f"{path}: other bytes")


def compare(a, b):
    storages, seen = {}, {}
    stack = [(a, b, "")]
    while stack:
        a, b, path = stack.pop()
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            same_tensor(a, b, path, storages)
            continue
        if type(a) is not type(b):
            raise Differs(f"{path}: {type(a).__name__} became {type(b).__name__}")
        if isinstance(a, (dict, list, tuple)):
            if seen.setdefault(id(a), b) is not b and not isinstance(a, tuple):
                raise Differs(f"{path}: was one object in two places")
            if len(a) != len(b):
                raise Differs(f"{path}: {len(a)} items became {len(b)}")
            if path.count(".") > 400 or len(path) > 20000:
                continue                            # cycles
        if isinstance(a, dict):
            if list(map(repr, a)) != list(map(repr, b)) and not any(isinstance(k, torch.Tensor) for k in a):
                raise Differs(f"{path}: other keys")
            stack += [(x, y, f"{path}.{k}") for (k, x), y in zip(a.items(), b.values())]
            if isinstance(a, collections.OrderedDict):
                stack.append((vars(a), vars(b), path + ".__dict__"))
        elif isinstance(a, (list, tuple)):
            stack += [(x, y, f"{path}.{i}") for i, (x, y) in enumerate(zip(a, b))]
        elif a != b and not (a != a and b != b):
            raise Differs(f"{path}: {a!r} became {b!r}")


def main():
    folder, copies = sys.argv[1:3]
    counts = collections.Counter()
    bad = 0
    with open(os.path.join(copies, "outcome.tsv"), encoding="utf-8") as outcome:
        for line in outcome:
            name, state, *why = line.rstrip("\n").split("\t")
            if state != "ok":
                counts[state] += 1
                if "-v" in sys.argv:
                    print(f"{state}: {name}: {' '.join(why)}")
                continue
            if beyond_old_torch(name):
                counts["beyond this torch"] += 1
                continue
            try:
                original = torch.load(os.path.join(folder, name.removesuffix(".legacy")), map_location="cpu")
            except Exception as error:
                counts["not readable by torch"] += 1
                if "-v" in sys.argv:
                    print(f"torch cannot: {name}: {type(error).__name__} {str(error)[:100]}")
                continue
            try:
                compare(original, torch.load(os.path.join(copies, name), map_location="cpu"))
                counts["equal"] += 1
            except Exception as error:
                bad += 1
                print(f"DIFFERS {name}: {type(error).__name__}: {error}")
    print(", ".join(f"{n} {what}" for what, n in counts.most_common()), f"{bad} different")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
