# SPDX-License-Identifier: Apache-2.0
"""Cases of the same operations in wilder layouts, for scripts/check-ops: several steps each, channels last, any byte offset, NaN between the elements,
every dtype as likely as the next; with results that torch computed in F64.
"""
import zlib

import torch

import casekit
from casekit import Operand


class WildRng(casekit.Rng):
    """`replayed`: the values a first run drew; this one gives them again, in F64, to the same case."""
    def __init__(self, seed, replayed=None):
        super().__init__(seed, small=False)
        self.layouts = torch.Generator().manual_seed(seed ^ 0x5EED)  # apart: both runs draw the same arguments
        self.drawn, self.replayed = [], iter(replayed) if replayed is not None else None

    def pick(self, values):
        return super().pick(list(dict.fromkeys(values)) if all(isinstance(v, torch.dtype) for v in values) else values)

    def noted(self, tensor):
        if self.replayed is None:
            self.drawn.append(tensor.clone())
            return tensor
        first = next(self.replayed)
        return first.double() if first.dtype.is_floating_point else first.clone()

    def values(self, *args, **options):
        return self.noted(super().values(*args, **options))

    def with_special(self, tensor):
        return self.noted(super().with_special(tensor))

    def below(self, count):
        return int(torch.randint(0, count, (1,), generator=self.layouts))

    def laid_out(self, value, spread=True):
        rank, steps, stored = value.dim(), [], value
        if rank and spread and value.numel() > 0 and self.below(8) == 0:
            dim = self.below(rank)
            stored = value.narrow(dim, 0, 1)
            value = stored.expand(value.shape)
            steps = [["expand", list(value.shape)]]
        for _ in range(self.below(4) if rank else 0):
            kind = ["permute", "slice", "flip", "channels last"][self.below(4)]
            dim = self.below(rank)
            if kind == "flip":
                stored, step = stored.flip(dim), ["flip", dim]
            elif kind == "slice":
                start, by = self.below(3), self.below(3) + 1
                stored, step = self.spaced(stored, dim, start, by), ["slice", dim, start, by]
            else:
                order = torch.randperm(rank, generator=self.layouts).tolist() if kind == "permute" or rank < 3 else [0, *range(2, rank), 1]
                stored, step = stored.permute(order), ["permute", [order.index(i) for i in range(rank)]]
            steps.insert(0, step)
        return Operand(stored.contiguous(), steps, value, self.below(64))

    def spaced(self, value, dim, start, by):
        shape = list(value.shape)
        shape[dim] = start + by * shape[dim]
        between = float("nan") if value.dtype.is_floating_point else True if value.dtype == torch.bool else 99
        stored = torch.full(shape, between, dtype=value.dtype)
        stored[tuple([slice(None)] * dim + [slice(start, None, by)])] = value
        return stored


def finished(operand, rng):
    if operand is not None and operand.offset is None:
        operand.offset = rng.below(64)
    return operand


def add_case(bundle, name, seed, i):
    function, exact = casekit.OPS[name]
    first = WildRng(seed)
    inputs, args, outputs = function(first, i)[:3]
    wide_outputs = function(WildRng(seed, first.drawn), i)[2]
    as_list = lambda given: list(given) if isinstance(given, (list, tuple)) else [given]  # noqa: E731
    outputs = as_list(outputs)
    wide = [w.to(t.dtype) for w, t in zip(as_list(wide_outputs), outputs)]
    integral = all(not t.dtype.is_floating_point for t in outputs)
    bundle.add(name, [finished(operand, first) for operand in inputs], args, outputs if integral else wide, exact or integral)


def make(bundle, count, seed, only=None):
    for name in casekit.OPS:
        if only and name not in only:
            continue
        for i in range(count):
            add_case(bundle, name, zlib.crc32(f"{name} {seed} {i}".encode()), 10 + (seed * count + i) % 1000)
