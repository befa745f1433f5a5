# SPDX-License-Identifier: Apache-2.0
"""Movement, choice by index, resizing."""
import torch
import torch.nn.functional as F

from casekit import ANY, op, plain

ALL = ANY + [torch.bool, torch.int8, torch.int16]


@op("concat", exact=True)
def concat_case(r, i):
    shape = r.shape(r.int(1, 5))
    dim, dtype = r.int(-len(shape), len(shape) - 1), r.pick(ALL)
    parts = []
    for _ in range(r.int(1, 4)):
        own = list(shape)
        own[dim] = r.int(0, 4)
        parts.append(r.operand(own, dtype))
    return parts, {"dim": dim}, torch.cat([p.value for p in parts], dim)


@op("stack", exact=True)
def stack_case(r, i):
    shape, dtype = r.shape(r.int(0, 4)), r.pick(ALL)
    parts = [r.operand(shape, dtype) for _ in range(r.int(1, 4))]
    dim = r.int(-len(shape) - 1, len(shape))
    return parts, {"dim": dim}, torch.stack([p.value for p in parts], dim)


@op("split", exact=True)
def split_case(r, i):
    x = r.operand(r.shape(r.int(1, 5)), r.pick(ALL))
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    whole = x.value.shape[dim]
    if r.chance(2):
        size = r.int(1, whole + 1)
        return [x], {"dim": dim, "size": size}, torch.split(x.value, size, dim)
    first = r.int(0, whole)
    sizes = [first, whole - first]
    return [x], {"dim": dim, "sizes": sizes}, torch.split(x.value, sizes, dim)


@op("chunk", exact=True)
def chunk_case(r, i):
    x = r.operand(r.shape(r.int(1, 5)), r.pick(ALL))
    dim, count = r.int(-x.value.dim(), x.value.dim() - 1), r.int(1, 5)
    return [x], {"dim": dim, "count": count}, torch.chunk(x.value, count, dim)


@op("flatten", exact=True)
def flatten_case(r, i):
    x = r.operand(r.shape(r.int(1, 6)), r.pick(ALL))
    start = r.int(0, x.value.dim() - 1)
    end = r.int(start, x.value.dim() - 1)
    return [x], {"start": start, "end": end}, torch.flatten(x.value, start, end)


@op("pad", exact=True)
def pad_case(r, i):
    mode = r.pick(["constant", "constant", "reflect", "replicate", "circular"])
    if mode == "constant":
        x = r.operand(r.shape(r.int(1, 5), low=3), r.pick(ANY))
        pads = [r.int(-1, 3) for _ in range(2 * r.int(1, x.value.dim()))]
        value = r.pick([0, 2])
        return [x], {"pads": pads, "mode": mode, "value": value}, F.pad(x.value, pads, mode, value)
    spatial = r.int(1, 3)
    x = r.operand(r.shape(spatial + 2, low=4), torch.float32)
    pads = [r.int(0, 3) for _ in range(2 * spatial)]
    return [x], {"pads": pads, "mode": mode, "value": 0}, F.pad(x.value, pads, mode)


def index_for(r, x, dim):
    shape = [r.int(1, n) for n in x.value.shape]
    shape[dim] = r.int(0, 6)
    return torch.randint(0, x.value.shape[dim], shape, generator=r.generator)


@op("gather", exact=True)
def gather_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick(ALL))
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    index = r.laid_out(index_for(r, x, dim))
    return [x, index], {"dim": dim}, torch.gather(x.value, dim, index.value)


@op("scatter", exact=True)
def scatter_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick(ALL))
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    shape = [r.int(1, n) for n in x.value.shape]
    index = torch.argsort(torch.rand(shape[:dim % len(shape)] + [x.value.shape[dim]] + shape[dim % len(shape) + 1:], generator=r.generator), dim)
    index = index.narrow(dim, 0, shape[dim]).contiguous()  # no place twice: torch does not say which write wins
    if i % 3 == 0:
        return [x, plain(index)], {"dim": dim, "number": 2}, torch.scatter(x.value.contiguous(), dim, index, 2)
    source = r.operand([n + r.int(0, 1) for n in shape], x.value.dtype)
    return [x, plain(index), source], {"dim": dim}, torch.scatter(x.value.contiguous(), dim, index, source.value)


@op("index_select", exact=True)
def index_select_case(r, i):
    x = r.operand(r.shape(r.int(1, 5)), r.pick(ALL))
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    index = r.laid_out(torch.randint(0, x.value.shape[dim], [r.int(0, 7)], generator=r.generator).to(r.pick([torch.int64, torch.int32])))
    return [x, index], {"dim": dim}, torch.index_select(x.value, dim, index.value)


@op("embedding", exact=True)
def embedding_case(r, i):
    weight = r.operand([r.int(1, 30), r.int(1, 20)], r.pick([torch.float32, torch.float16, torch.bfloat16]))
    index = r.laid_out(torch.randint(0, weight.value.shape[0], r.shape(r.int(0, 3)), generator=r.generator).to(r.pick([torch.int64, torch.int32])))
    return [index, weight], {}, F.embedding(index.value, weight.value)


@op("flip", exact=True)
def flip_case(r, i):
    x = r.operand(r.shape(r.int(1, 5)), r.pick(ALL))
    dims = torch.randperm(x.value.dim(), generator=r.generator).tolist()[:r.int(0, x.value.dim())]
    return [x], {"dims": dims}, torch.flip(x.value, dims)


@op("roll", exact=True)
def roll_case(r, i):
    x = r.operand(r.shape(r.int(1, 5)), r.pick(ALL))
    if r.chance(4):
        shift = r.int(-20, 20)
        return [x], {"shifts": [shift], "dims": []}, torch.roll(x.value, shift)
    dims = torch.randperm(x.value.dim(), generator=r.generator).tolist()[:r.int(1, x.value.dim())]
    shifts = [r.int(-9, 9) for _ in dims]
    return [x], {"shifts": shifts, "dims": dims}, torch.roll(x.value, shifts, dims)


def triangle(function):
    def case(r, i):
        x = r.operand(r.shape(r.int(2, 5)), r.pick(ALL))
        diagonal = r.int(-4, 4)
        return [x], {"diagonal": diagonal}, function(x.value, diagonal)
    return case


op("tril", exact=True)(triangle(torch.tril))
op("triu", exact=True)(triangle(torch.triu))


@op("repeat", exact=True)
def repeat_case(r, i):
    x = r.operand(r.shape(r.int(0, 3), high=4), r.pick(ALL))
    repeats = [r.int(0 if r.chance(6) else 1, 3) for _ in range(x.value.dim() + r.int(0, 2))]
    return [x], {"repeats": repeats}, x.value.repeat(*repeats) if repeats else x.value.clone()


@op("repeat_interleave", exact=True)
def repeat_interleave_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick(ALL))
    dim, repeats = r.int(-x.value.dim(), x.value.dim() - 1), r.int(1, 4)
    return [x], {"dim": dim, "repeats": repeats}, torch.repeat_interleave(x.value, repeats, dim)


@op("pixel_shuffle", exact=True)
def pixel_shuffle_case(r, i):
    factor = r.int(1, 3)
    x = r.operand(r.shape(r.int(0, 2)) + [r.int(1, 3) * factor * factor, r.size(), r.size()], r.pick([torch.float32, torch.float64, torch.uint8]))
    return [x], {"factor": factor}, F.pixel_shuffle(x.value, factor)


@op("pixel_unshuffle", exact=True)
def pixel_unshuffle_case(r, i):
    factor = r.int(1, 3)
    x = r.operand(r.shape(r.int(0, 2)) + [r.int(1, 3), r.size() * factor, r.size() * factor], r.pick([torch.float32, torch.float64, torch.uint8]))
    return [x], {"factor": factor}, F.pixel_unshuffle(x.value, factor)


@op("one_hot", exact=True)
def one_hot_case(r, i):
    index = r.laid_out(torch.randint(0, 6, r.shape(r.int(1, 3)), generator=r.generator))
    classes = r.pick([-1, 6, 9])
    return [index], {"classes": classes}, F.one_hot(index.value, classes)


@op("resize")
def resize_case(r, i):
    mode = r.pick(["nearest", "linear", "linear", "cubic"])
    spatial = 2 if mode == "cubic" else r.int(1, 3)
    # 1.13 takes one channel for channels last, where it answers differently.
    shape = [r.int(1, 2), r.int(2 if mode == "nearest" and spatial == 3 else 1, 3)] + [r.size(1, 9) for _ in range(spatial)]
    x = r.operand(shape, torch.float32)
    names = {"nearest": "nearest", "linear": ["linear", "bilinear", "trilinear"][spatial - 1], "cubic": "bicubic"}
    align = None if mode == "nearest" else r.chance(2)
    args = {"mode": mode, "align": bool(align)}
    if r.chance(2):
        size = [r.size(1, 15) for _ in range(spatial)]
        return [x], {**args, "size": size}, F.interpolate(x.value, size=size, mode=names[mode], align_corners=align)
    scale = [r.pick([0.5, 2.0, 1.5, 3.0, 0.7, 1.0, 1.1, 1.3, 2.3]) for _ in range(spatial)]
    scale = [s if int(n * s) > 0 else 2.0 for s, n in zip(scale, shape[2:])]
    if mode == "nearest" and spatial == 2:  # 1.13 alone answers differently for two layouts where a size stays; later ones give this for both
        channels_last = x.value.contiguous(memory_format=torch.channels_last)
        return [x], {**args, "scale": scale}, F.interpolate(channels_last, scale_factor=scale, mode="nearest")
    return [x], {**args, "scale": scale}, F.interpolate(x.value, scale_factor=scale, mode=names[mode], align_corners=align)
