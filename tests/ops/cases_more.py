# SPDX-License-Identifier: Apache-2.0
"""Operations made of others, and those asked for seldom: choice by value, patches, sums by equation, angles, spectra."""
import torch
import torch.nn.functional as F

from casekit import ANY, CODES, FLOATS, op, plain
from cases_elementwise import broadcast_pair, in_float, unary_case

WIDE = FLOATS + [torch.float64]
ALL = ANY + [torch.bool, torch.int8, torch.int16]
HALF = (torch.float16, torch.bfloat16)


def wide(function, *tensors):
    """In F32 where torch 1.13 has no F16, rounded to the first one's dtype."""
    dtype = tensors[0].dtype
    if dtype not in HALF:
        return function(*tensors)
    return function(*[t.float() if t is not None and t.dtype in HALF else t for t in tensors]).to(dtype)


@op("remainder")
def remainder_case(r, i):
    a, b = broadcast_pair(r, ANY + [torch.int8], -9, 9)
    divisor = b.value.contiguous()
    b = r.laid_out(torch.where(divisor == 0, torch.full_like(divisor, 3), divisor))
    if i % 5 == 4:
        number = r.pick([2, 3, 0.5, 1.75])
        return [a], {"number": number, "first": False}, wide(lambda x: torch.remainder(x, number), a.value)
    dtype = torch.result_type(a.value, b.value)
    if dtype in HALF:
        return [a, b], {}, torch.remainder(a.value.float(), b.value.float()).to(dtype)
    return [a, b], {}, torch.remainder(a.value, b.value)


@op("atan2")
def atan2_case(r, i):
    y, x = broadcast_pair(r, ANY, special=i % 3 == 0)
    dtype = torch.result_type(y.value, x.value)
    if dtype in HALF:
        return [y, x], {}, torch.atan2(y.value.float(), x.value.float()).to(dtype)
    return [y, x], {}, torch.atan2(y.value, x.value)


op("log2")(unary_case(in_float(torch.log2), WIDE + [torch.int64], low=0.01, high=50))
op("isfinite")(unary_case(torch.isfinite, WIDE + [torch.int64], -2, 2))
op("tanhshrink")(unary_case(in_float(F.tanhshrink), WIDE, low=0.5, special=False))
op("celu")(unary_case(in_float(lambda x, alpha: F.celu(x, alpha)), WIDE, special=False, args=lambda r: {"alpha": r.pick([1, 0.5, 2])}))
op("hardshrink")(unary_case(in_float(lambda x, lam: F.hardshrink(x, lam)), WIDE, special=False, args=lambda r: {"lam": r.pick([0.5, 1])}))
op("softshrink")(unary_case(in_float(lambda x, lam: F.softshrink(x, lam)), WIDE, special=False, args=lambda r: {"lam": r.pick([0.5, 1])}))
op("threshold")(unary_case(in_float(lambda x, threshold, value: F.threshold(x, threshold, value)), WIDE, special=False,
                           args=lambda r: {"threshold": r.pick([0.5, -1]), "value": r.pick([0, 2])}))


@op("glu")
def glu_case(r, i):
    shape = r.shape(r.int(1, 4))
    dim = r.int(-len(shape), len(shape) - 1)
    shape[dim] *= 2
    x = r.operand(shape, r.pick(FLOATS))
    return [x], {"dim": dim}, wide(lambda v: F.glu(v, dim), x.value)


@op("softmin")
def softmin_case(r, i):
    shape = r.shape(r.int(1, 4))
    dim = r.int(-len(shape), len(shape) - 1)
    x = r.operand(shape, r.pick(FLOATS))
    return [x], {"dim": dim}, wide(lambda v: F.softmin(v, dim), x.value)


@op("lerp")
def lerp_case(r, i):
    shape, dtype = r.shape(), r.pick(WIDE)
    start, end = r.operand(shape, dtype), r.operand(shape, dtype)
    if i % 2 == 0:
        weight = r.pick([0.25, 0.5, 0.75, 1, 0, -1, 2])
        return [start, end], {"weight": weight}, wide(lambda a, b: torch.lerp(a, b, weight), start.value, end.value)
    weight = r.operand([1 if r.chance(4) else n for n in shape], dtype, -1, 2)
    return [start, end, weight], {}, wide(torch.lerp, start.value, end.value, weight.value)


@op("isclose")
def isclose_case(r, i):
    a = r.operand(r.shape(), torch.float32, special=i % 2 == 0)
    b = plain((a.value + (r.values(list(a.value.shape)) * 1e-4).to(a.value.dtype)).contiguous())
    args = {"relative": r.pick([1e-5, 1e-3, 0]), "absolute": r.pick([1e-8, 1e-4]), "equal_nan": r.chance(2)}
    x, y = a.value.double(), b.value.double()
    return [a, b], args, torch.isclose(x, y, args["relative"], args["absolute"], args["equal_nan"])


@op("cumprod")
def cumprod_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick(WIDE + [torch.int64, torch.int32]), -2, 2)
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    return [x], {"dim": dim}, wide(lambda v: torch.cumprod(v, dim), x.value)


@op("argsort")
def argsort_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick([torch.float32, torch.float64, torch.int64]), -2, 2)
    dim, descending = r.int(-x.value.dim(), x.value.dim() - 1), r.chance(2)
    return [x], {"dim": dim, "descending": descending}, torch.sort(x.value, stable=True, dim=dim, descending=descending).indices


@op("scatter_add")
def scatter_add_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick(WIDE + [torch.int64, torch.int32, torch.uint8]))
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    shape = [r.int(1, n) for n in x.value.shape]
    shape[dim] = r.int(0, 6)
    index = r.laid_out(torch.randint(0, x.value.shape[dim], shape, generator=r.generator))
    source = r.operand([n + r.int(0, 1) for n in shape], x.value.dtype)
    return [x, index, source], {"dim": dim}, wide(lambda v, s: v.contiguous().scatter_add(dim, index.value, s), x.value, source.value)


@op("index_add")
def index_add_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick(WIDE + [torch.int64]))
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    shape = list(x.value.shape)
    shape[dim] = r.int(0, 6)
    index = r.laid_out(torch.randint(0, x.value.shape[dim], [shape[dim]], generator=r.generator))
    source = r.operand(shape, x.value.dtype)
    return [x, index, source], {"dim": dim}, wide(lambda v, s: v.contiguous().index_add(dim, index.value, s), x.value, source.value)


@op("nonzero")
def nonzero_case(r, i):
    x = r.operand([0, 3] if i == 4 else r.shape(), r.pick([torch.bool, torch.int64, torch.float32]), -1, 1)
    return [x], {}, torch.nonzero(x.value)


@op("masked_select", exact=True)
def masked_select_case(r, i):
    x = r.operand(r.shape(), r.pick(ALL))
    mask = r.operand([1 if r.chance(4) else n for n in x.value.shape], torch.bool)
    return [x, mask], {}, torch.masked_select(x.value, mask.value)


@op("unbind", exact=True)
def unbind_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick(ALL))
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    return [x], {"dim": dim}, [t.contiguous() for t in torch.unbind(x.value, dim)]


@op("meshgrid", exact=True)
def meshgrid_case(r, i):
    dtype, xy = r.pick(ALL), r.chance(2)
    lists = [r.operand([r.int(1, 4)], dtype) for _ in range(r.int(1, 3))]
    return lists, {"xy": xy}, [t.contiguous() for t in torch.meshgrid(*[p.value for p in lists], indexing="xy" if xy else "ij")]


@op("diag", exact=True)
def diag_case(r, i):
    x = r.operand(r.shape(r.int(1, 2)), r.pick([torch.float32, torch.float64, torch.int64]))
    diagonal = r.int(-3, 3)
    if x.value.dim() == 2:
        diagonal = max(-x.value.shape[0], min(x.value.shape[1], diagonal))
    return [x], {"diagonal": diagonal}, torch.diag(x.value, diagonal)


@op("full_like", exact=True)
def full_like_case(r, i):
    x = r.operand(r.shape(), r.pick(ALL))
    value = r.pick([0, 1, 3])
    return [x], {"value": value}, torch.full_like(x.value, value)


@op("unflatten", exact=True)
def unflatten_case(r, i):
    shape = r.shape(r.int(1, 3))
    dim, sizes = r.int(-len(shape), len(shape) - 1), r.pick([[2, 3], [3, -1], [-1, 2, 1]])
    shape[dim] = 6
    x = r.operand(shape, r.pick(ALL))
    axis = dim % len(shape)
    return [x], {"dim": dim, "sizes": sizes}, x.value.reshape(shape[:axis] + [s if s > 0 else -1 for s in sizes] + shape[axis + 1:])


@op("channel_shuffle", exact=True)
def channel_shuffle_case(r, i):
    groups = r.int(1, 3)
    x = r.operand([r.int(1, 3), groups * r.int(1, 3)] + r.shape(2), torch.float32)
    return [x], {"groups": groups}, F.channel_shuffle(x.value.contiguous(), groups)


def patch_options(r):
    pair = lambda low, high: [r.int(low, high), r.int(low, high)]  # noqa: E731
    return {"kernel": pair(1, 3), "dilation": pair(1, 2), "padding": pair(0, 2), "stride": pair(1, 3)}


def places(size, a, d):
    return (size + 2 * a["padding"][d] - a["dilation"][d] * (a["kernel"][d] - 1) - 1) // a["stride"][d] + 1


@op("unfold", exact=True)
def unfold_case(r, i):
    a = patch_options(r)
    x = r.operand(([] if r.chance(5) else [r.int(1, 2)]) + [r.int(1, 3), r.int(5, 8), r.int(5, 8)], r.pick([torch.float32, torch.float64]))
    return [x], a, F.unfold(x.value, a["kernel"], a["dilation"], a["padding"], a["stride"])


@op("fold")
def fold_case(r, i):
    a = patch_options(r)
    size = [r.int(5, 8), r.int(5, 8)]
    shape = [r.int(1, 2), r.int(1, 3) * a["kernel"][0] * a["kernel"][1], places(size[0], a, 0) * places(size[1], a, 1)]
    x = r.operand(shape, r.pick([torch.float32, torch.float64]))
    return [x], {**a, "output": size}, F.fold(x.value, size, a["kernel"], a["dilation"], a["padding"], a["stride"])


@op("embedding_bag")
def embedding_bag_case(r, i):
    count, mode = r.int(2, 9), r.pick(["sum", "mean", "max"])
    weight = r.operand([count, r.int(1, 6)], r.pick([torch.float32, torch.float64, torch.float16]))
    padding = r.int(0, count - 1) if r.chance(3) else None
    listed, last = r.chance(2), False
    offsets = factors = None
    if listed:
        index = r.values([r.int(1, 8)], torch.int64, 0, count - 1)
        starts = sorted([0] + [r.int(0, index.shape[0]) for _ in range(r.int(0, 3))])
        last = r.chance(3)
        offsets = torch.tensor(starts + ([index.shape[0]] if last else []))
    else:
        index = r.values([r.int(1, 4), r.int(1, 4)], torch.int64, 0, count - 1)
    if mode == "sum" and r.chance(2):
        factors = r.operand(list(index.shape), weight.value.dtype)
    args = {"mode": mode, "last": last, **({"padding_idx": padding} if padding is not None else {})}
    result = wide(lambda w, f: F.embedding_bag(index, w.contiguous(), offsets, mode=mode, per_sample_weights=None if f is None else f.contiguous(),
                                               include_last_offset=last, padding_idx=padding), weight.value, factors.value if factors else None)
    return [plain(index), weight, plain(offsets) if listed else None, factors], args, result


@op("normalize")
def normalize_case(r, i):
    shape = r.shape(r.int(1, 4))
    dim, p = r.int(-len(shape), len(shape) - 1), r.pick([2, 1, 3])
    x = r.operand(shape, r.pick(WIDE))
    return [x], {"dim": dim, "p": p, "eps": 1e-12}, wide(lambda v: F.normalize(v, p, dim), x.value)


@op("cosine_similarity")
def cosine_similarity_case(r, i):
    shape, dtype = r.shape(r.int(1, 4)), r.pick(WIDE)
    dim = r.int(-len(shape), len(shape) - 1)
    a, b = r.operand(shape, dtype), r.operand([1 if r.chance(5) else n for n in shape], dtype)
    return [a, b], {"dim": dim}, wide(lambda x, y: F.cosine_similarity(x, y, dim), a.value, b.value)


@op("pairwise_distance")
def pairwise_distance_case(r, i):
    shape, dtype = r.shape(r.int(1, 3)), r.pick(WIDE)
    a, b, p, keep = r.operand(shape, dtype), r.operand(shape, dtype), r.pick([2, 1, 3]), r.chance(2)
    return [a, b], {"p": p, "keepdim": keep}, wide(lambda x, y: F.pairwise_distance(x, y, p, 1e-6, keep), a.value, b.value)


@op("local_response_norm")
def local_response_norm_case(r, i):
    x = r.operand(r.shape(r.int(3, 5)), r.pick(FLOATS))
    args = {"size": r.int(1, 5), "alpha": r.pick([1e-4, 0.5]), "beta": r.pick([0.75, 0.5]), "k": r.pick([1, 2])}
    return [x], args, wide(lambda v: F.local_response_norm(v.contiguous(), **args), x.value)


EQUATIONS = ["ij,jk->ik", "ij,jk", "bij,bjk->bik", "bhqd,bhkd->bhqk", "...ij,...jk->...ik", "i,j->ij", "ij->ji", "ij->", "ij->j", "ii->i", "ii", "iij->j", "ij,ij->",
             "ij,kj,il->kl", "bi,ij,bj->b", "...i,ij", "i...,i", "abc,cd,b->ad", "ab,ab->ab", "aB,Ba", "bn,anm,bm->ba", "ijk,jil->kl"]


@op("einsum")
def einsum_case(r, i):
    equation = EQUATIONS[i % len(EQUATIONS)] if i < 2 * len(EQUATIONS) else r.pick(EQUATIONS)
    sizes = {letter: r.int(1, 4) for letter in "abcdefghijklmnopqrstuvwxyzB"}
    dots, dtype = r.shape(r.int(0, 2), high=3), r.pick(FLOATS + [torch.float64, torch.int64])
    operands = []
    for text in equation.split("->")[0].split(","):
        shape = []
        for part in text.replace("...", "."):
            shape += [1 if r.chance(4) else n for n in dots] if part == "." else [sizes[part]]
        operands.append(r.operand(shape, dtype))
    values = [o.value for o in operands]
    if dtype in HALF and values[0].dtype in HALF:
        return operands, {"equation": equation}, torch.einsum(equation, *[v.float() for v in values]).to(dtype)
    return operands, {"equation": equation}, torch.einsum(equation, *values)


def rotated(x, cos, sin, interleaved):
    """As transformers computes it: cos and sin of every feature, and the other half of the pair with its sign."""
    spread = (lambda t: t.repeat_interleave(2, -1)) if interleaved else (lambda t: torch.cat([t, t], -1))
    rotary = 2 * cos.shape[-1]
    turned, rest = x[..., :rotary], x[..., rotary:]
    if interleaved:
        other = torch.stack([-turned[..., 1::2], turned[..., ::2]], -1).flatten(-2)
    else:
        other = torch.cat([-turned[..., rotary // 2:], turned[..., :rotary // 2]], -1)
    return torch.cat([turned * spread(cos) + other * spread(sin), rest], -1)


@op("rotary_embedding")
def rotary_embedding_case(r, i):
    length, half = r.int(1, 6), r.int(1, 5)
    x = r.operand(r.shape(r.int(0, 2)) + [length, 2 * half + r.pick([0, 0, 1, 3])], r.pick(WIDE))
    cos, sin = plain(r.values([length, half], low=-1, high=1)), plain(r.values([length, half], low=-1, high=1))
    interleaved = r.chance(2)
    return [x, cos, sin], {"interleaved": interleaved}, wide(lambda v: rotated(v, cos.value.to(v.dtype), sin.value.to(v.dtype), interleaved), x.value)


@op("rotary_tables")
def rotary_tables_case(r, i):
    args = {"length": r.int(1, 20), "features": 2 * r.int(1, 16), "base": r.pick([10000, 500000]), "first": r.pick([0, 3, 1000])}
    steps = 1.0 / (args["base"] ** (torch.arange(0, args["features"], 2).float() / args["features"]))
    angles = torch.outer(torch.arange(args["first"], args["first"] + args["length"]).float(), steps)
    return [], args, [angles.cos(), angles.sin()]


@op("grid_sample")
def grid_sample_case(r, i):
    spatial = 3 if r.chance(4) else 2
    mode = r.pick(["bilinear", "nearest"] + (["bicubic"] if spatial == 2 else []))
    args = {"mode": mode, "padding": r.pick(["zeros", "border", "reflection"]), "align": r.chance(2)}
    batch, dtype = r.int(1, 3), r.pick([torch.float32, torch.float64])
    x = r.operand([batch, r.int(1, 3)] + [r.int(1, 6) for _ in range(spatial)], dtype)
    grid = r.operand([batch] + [r.int(1, 5) for _ in range(spatial)] + [spatial], dtype, -1.6, 1.6, spread=False)
    return [x, grid], args, F.grid_sample(x.value, grid.value, mode, args["padding"], args["align"])


@op("affine_grid")
def affine_grid_case(r, i):
    spatial = 3 if r.chance(4) else 2
    size = [r.int(1, 3), r.int(1, 3)] + [r.int(1, 6) for _ in range(spatial)]
    theta, align = r.operand([size[0], spatial, spatial + 1]), r.chance(2)
    return [theta], {"size": size, "align": align}, F.affine_grid(theta.value.contiguous(), size, align)


def signal_length(r, i):
    return r.int(1, 40) if i % 3 else r.pick([1, 2, 8, 16, 31, 100, 128])


def as_complex(x):
    return torch.view_as_complex(x.contiguous())


def transform(function):
    def case(r, i):
        x = r.operand(r.shape(r.int(0, 2)) + [signal_length(r, i), 2], r.pick([torch.float32, torch.float64]))
        return [x], {}, torch.view_as_real(function(as_complex(x.value.double()))).to(x.value.dtype)
    return case


op("fft")(transform(torch.fft.fft))
op("ifft")(transform(torch.fft.ifft))


@op("rfft")
def rfft_case(r, i):
    x = r.operand(r.shape(r.int(0, 2)) + [signal_length(r, i)], r.pick([torch.float32, torch.float64]))
    return [x], {}, torch.view_as_real(torch.fft.rfft(x.value.double())).to(x.value.dtype)


@op("irfft")
def irfft_case(r, i):
    count = r.int(2, 20)
    x = r.operand(r.shape(r.int(0, 2)) + [count, 2], r.pick([torch.float32, torch.float64]))
    n = r.pick([None, 2 * count - 1, 2 * count + 3, count, 1])
    return [x], {} if n is None else {"n": n}, torch.fft.irfft(as_complex(x.value.double()), n).to(x.value.dtype)


def framing(r):
    n_fft = r.int(4, 12)
    win = r.int(2, n_fft) if r.chance(3) else n_fft
    window = None if r.chance(3) else plain(r.values([win], low=0.3, high=1.0))
    return n_fft, {"n_fft": n_fft, "hop": r.int(1, max(1, win // 2)), "win": win, "normalized": r.chance(2)}, window


@op("stft")
def stft_case(r, i):
    n_fft, args, window = framing(r)
    x = r.operand(([] if r.chance(3) else [r.int(1, 3)]) + [r.int(n_fft + 2, 40)], r.pick([torch.float32, torch.float64]))
    args.update(center=r.chance(2), onesided=not r.chance(4))
    spectra = torch.stft(x.value.double(), n_fft, args["hop"], args["win"], window.value.double() if window else None, center=args["center"], pad_mode="reflect",
                         normalized=args["normalized"], onesided=args["onesided"], return_complex=True)
    return [x, window], args, torch.view_as_real(spectra).to(x.value.dtype)


@op("istft")
def istft_case(r, i):
    n_fft, args, window = framing(r)
    args.update(center=args["win"] == n_fft and r.chance(2) or args["win"] < n_fft)
    frames = r.int(4, 9)
    x = r.operand(([] if r.chance(3) else [r.int(1, 3)]) + [n_fft // 2 + 1, frames, 2], r.pick([torch.float32, torch.float64]))
    length = r.pick([None, None, r.int(3, args["hop"] * (frames - 1))])
    signal = torch.istft(as_complex(x.value.double()), n_fft, args["hop"], args["win"], window.value.double() if window else None, center=args["center"],
                         normalized=args["normalized"], length=length)
    return [x, window], {**args, **({} if length is None else {"length": length})}, signal.to(x.value.dtype)


@op("hann_window")
def hann_window_case(r, i):
    length = r.int(1, 60)
    return [], {"length": length}, torch.hann_window(length)
