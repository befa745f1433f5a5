# SPDX-License-Identifier: Apache-2.0
"""What the case generators share: random tensors in random layouts, and the bundle they are written to.

A bundle is one Safetensors file. Its metadata maps each operation to a JSON list of cases
    {"in": [{"t": name, "view": [[step, ...], ...], "offset": bytes}, ...], "args": {...}, "out": [name, ...], "exact": bool}
where the view steps (permute, slice, flip, expand) make the operand from the stored tensor, so that operands have strides; "offset", where it is
given, is how far from an address that suits every type the operand's first byte is to be put.
"""
import json
import struct
import zlib

import torch

CODES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
         torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
FLOATS = [torch.float32] * 6 + [torch.float16, torch.bfloat16]
ANY = FLOATS + [torch.float64, torch.int64, torch.int32, torch.uint8]
SPECIAL = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-40, 3e38, -2e38, 88.9, -104.5]

OPS = {}  # name: function(Rng) → (inputs, args, outputs)


def op(name, exact=False):
    def register(function):
        OPS[name] = (function, exact)
        return function
    return register


class Operand:
    """A stored tensor and the steps that make `value`, the view torch computes with."""
    def __init__(self, stored, view, value, offset=None):
        self.stored, self.view, self.value, self.offset = stored, view, value, offset


class Rng:
    def __init__(self, seed, small):
        self.generator = torch.Generator().manual_seed(seed)
        self.small = small

    def int(self, low, high):
        """Both ends included."""
        return int(torch.randint(low, high + 1, (1,), generator=self.generator))

    def chance(self, one_in):
        return self.int(1, one_in) == 1

    def pick(self, values):
        return values[self.int(0, len(values) - 1)]

    def size(self, low=1, high=9):
        return self.int(low, min(high, low + 2) if self.small else high)

    def shape(self, rank=None, low=1, high=7):
        rank = self.int(0, 3 if self.small else 6) if rank is None else rank
        if rank > 4:
            high = min(high, 4)
        return [self.size(low, high) for _ in range(rank)]

    def values(self, shape, dtype=torch.float32, low=-3.0, high=3.0):
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self.generator).bool()
        if not dtype.is_floating_point:
            if dtype == torch.uint8:
                low, high = max(low, 0), max(high, 1)
            return torch.randint(int(low), int(high) + 1, shape, generator=self.generator).to(dtype)
        return (torch.rand(shape, generator=self.generator, dtype=torch.float64) * (high - low) + low).to(dtype)

    def with_special(self, tensor):
        if tensor.dtype.is_floating_point and tensor.numel() > 0:
            flat = tensor.reshape(-1)
            for i in range(min(len(SPECIAL), flat.numel())):
                flat[self.int(0, flat.numel() - 1)] = torch.tensor(SPECIAL[i], dtype=torch.float64).to(tensor.dtype)
        return tensor

    def operand(self, shape, dtype=torch.float32, low=-3.0, high=3.0, special=False, values=None, spread=True):
        value = self.values(shape, dtype, low, high) if values is None else values
        if special:
            value = self.with_special(value)
        return self.laid_out(value, spread)

    def laid_out(self, value, spread=True):
        """The same values, stored so that a view makes them; with `spread` perhaps those of one slice, expanded."""
        rank = value.dim()
        kind = self.pick(["plain", "plain", "permute", "slice", "flip", "expand"]) if rank > 0 else "plain"
        if kind == "permute":
            order = torch.randperm(rank, generator=self.generator).tolist()
            back = [order.index(i) for i in range(rank)]
            stored = value.permute(order).contiguous()
            return Operand(stored, [["permute", back]], stored.permute(back))
        dim = self.int(0, rank - 1) if rank else 0
        if kind == "slice":
            step, start = self.int(1, 3), self.int(0, 2)
            length = start + step * value.shape[dim]
            stored = torch.zeros([length if i == dim else n for i, n in enumerate(value.shape)], dtype=value.dtype)
            stored.narrow(dim, start, length - start)[tuple([slice(None)] * dim + [slice(None, None, step)])] = value
            view = stored[tuple([slice(None)] * dim + [slice(start, None, step)])]
            return Operand(stored, [["slice", dim, start, step]], view)
        if kind == "flip":
            return Operand(value.flip(dim), [["flip", dim]], value)
        if kind == "expand" and spread and value.numel() > 0:
            stored = value.narrow(dim, 0, 1).contiguous()
            return Operand(stored, [["expand", list(value.shape)]], stored.expand(value.shape))
        return Operand(value.contiguous(), [], value.contiguous())


def plain(value):
    return Operand(value.contiguous(), [], value)


class Bundle:
    def __init__(self):
        self.tensors, self.cases = {}, {}

    def add(self, name, inputs, args, outputs, exact):
        cases = self.cases.setdefault(name, [])
        prefix = f"{name}.{len(cases)}"
        case = {"in": [], "args": args, "out": [], "exact": exact}
        for i, operand in enumerate(inputs):
            if operand is None:
                case["in"].append(None)
                continue
            self.tensors[f"{prefix}.i{i}"] = operand.stored
            case["in"].append({"t": f"{prefix}.i{i}", "view": operand.view})
            if operand.offset is not None:
                case["in"][-1]["offset"] = operand.offset
        for i, tensor in enumerate(outputs):
            self.tensors[f"{prefix}.o{i}"] = tensor.detach().contiguous()
            case["out"].append(f"{prefix}.o{i}")
        cases.append(case)

    def write(self, path):
        header = {"__metadata__": {name: json.dumps(cases, separators=(",", ":")) for name, cases in self.cases.items()}}
        data, offset = [], 0
        for name, tensor in sorted(self.tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
            raw = tensor.view(torch.int16) if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
            raw = raw.numpy().tobytes()
            header[name] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(raw)]}
            data.append(raw)
            offset += len(raw)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def make(bundle, count, small, only=None):
    for name, (function, exact) in OPS.items():
        if only and name not in only:
            continue
        for i in range(count):
            rng = Rng(zlib.crc32(name.encode()) + i * 7919, small)
            result = function(rng, i)
            inputs, args, outputs = result[:3]
            outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            integral = all(not t.dtype.is_floating_point for t in outputs)
            bundle.add(name, inputs, args, outputs, exact or integral)
