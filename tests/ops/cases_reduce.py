# SPDX-License-Identifier: Apache-2.0
"""Reductions, running sums and order; factories."""
import torch

from casekit import ANY, CODES, FLOATS, op

WIDE = ANY + [torch.bool, torch.int16]


def some_dims(r, shape):
    if not shape or r.chance(4):
        return []
    count = r.int(1, len(shape))
    dims = torch.randperm(len(shape), generator=r.generator).tolist()[:count]
    return [d - len(shape) if r.chance(2) else d for d in dims]


def reduced_shape(r, i):
    if i == 5 and not r.small:
        return [3, r.int(5000, 20000)]
    return r.pick([[0, 3], [2, 0, 2]]) if i == 6 else r.shape()


def reduction(function, dtypes, empty=True, low=-2.0, high=2.0, extra=None, special=False, spread=True):
    def case(r, i):
        shape = reduced_shape(r, i)
        if not empty and 0 in shape:
            shape = r.shape()
        x = r.operand(shape, r.pick(dtypes), low, high, special and r.chance(4), spread=spread)
        dims, keepdim = some_dims(r, shape), r.chance(2)
        args = extra(r) if extra else {}
        every = dims if dims else list(range(len(shape)))
        half = x.value.dtype in (torch.float16, torch.bfloat16)
        result = function(x.value.float() if half else x.value, every, keepdim, **args)
        args = {key: ("inf" if v == float("inf") else "-inf" if v == float("-inf") else v) for key, v in args.items()}
        return [x], {"dims": dims, "keepdim": keepdim, **args}, result.to(x.value.dtype) if half and result.dtype.is_floating_point else result
    return case


def prod(x, dims, keepdim):
    for d in sorted((d % max(x.dim(), 1) for d in dims), reverse=True):
        x = torch.prod(x, d, keepdim)
    return x if x.dtype.is_floating_point else x.to(torch.int64)


def fold(function):
    def all_dims(x, dims, keepdim):
        for d in sorted((d % max(x.dim(), 1) for d in dims), reverse=True):
            x = function(x, d, keepdim)
        return x.bool()
    return all_dims


def in_double(function):
    """Squares and sums that leave F32 on the way to a result that does not: torch's own F32 gives up there."""
    return lambda x, *rest, **options: function(x.double(), *rest, **options).to(x.dtype)


@in_double
def variance(x, dims, keepdim, correction):
    return torch.var(x, dim=dims, keepdim=keepdim, correction=correction)


@in_double
def deviation(x, dims, keepdim, correction):
    return torch.std(x, dim=dims, keepdim=keepdim, correction=correction)


@in_double
def p_norm(x, dims, keepdim, p):
    return torch.linalg.vector_norm(x, p, dims, keepdim)


op("sum")(reduction(lambda x, d, k: torch.sum(x, d, k) if d else x.sum(), WIDE, special=True))
op("prod")(reduction(prod, WIDE, low=-1.5, high=1.5))
op("mean")(reduction(lambda x, d, k: torch.mean(x, d, k) if d else x.mean(), FLOATS + [torch.float64]))
# Not of expanded tensors: the variance of equal values is nothing but rounding.
op("var")(reduction(variance, FLOATS + [torch.float64], spread=False, special=True, extra=lambda r: {"correction": r.pick([0, 1])}))
op("stddev")(reduction(deviation, FLOATS + [torch.float64], spread=False, special=True, extra=lambda r: {"correction": r.pick([0, 1])}))
op("norm")(reduction(p_norm, FLOATS + [torch.float64], empty=False, special=True,
                     extra=lambda r: {"p": r.pick([2, 2, 1, 0, 3, 0.5, float("inf"), float("-inf")])}))
op("logsumexp")(reduction(lambda x, d, k: torch.logsumexp(x, d, k) if d else x.logsumexp(0), FLOATS + [torch.float64], low=-30, high=30, empty=False))
op("max", exact=True)(reduction(lambda x, d, k: torch.amax(x, d, k), ANY + [torch.bool], empty=False, special=True))
op("min", exact=True)(reduction(lambda x, d, k: torch.amin(x, d, k), ANY + [torch.bool], empty=False, special=True))
op("any")(reduction(fold(torch.any), WIDE, low=-1, high=1))
op("all")(reduction(fold(torch.all), WIDE, low=-1, high=1))


def place(function):
    def case(r, i):
        shape = r.shape()
        x = r.operand(shape, r.pick([torch.float32, torch.float64, torch.int64, torch.uint8]), -5, 5, r.chance(4))
        keepdim = r.chance(2)
        if not shape or r.chance(4):
            return [x], {"keepdim": False}, function(x.value.contiguous())
        dim = r.int(-len(shape), len(shape) - 1)
        return [x], {"dim": dim, "keepdim": keepdim}, function(x.value.contiguous(), dim, keepdim)
    return case


def first_of(best):
    """torch does not promise which of several equal elements it names; the first is what Ballast promises."""
    def find(x, dim=None, keepdim=False):
        if dim is None:
            return find(x.reshape(-1), 0) if x.dim() else torch.tensor(0)
        nan = torch.isnan(x) if x.dtype.is_floating_point else torch.zeros_like(x, dtype=torch.bool)
        hit = torch.where(nan.any(dim, True), nan, x == best(torch.where(nan, torch.zeros_like(x), x), dim, True))
        return first_true(hit, dim, keepdim)
    return find


def first_true(hit, dim, keepdim):
    places = torch.arange(hit.shape[dim]).reshape([-1 if i == dim % hit.dim() else 1 for i in range(hit.dim())])
    return torch.amin(torch.where(hit, places, hit.shape[dim]), dim, keepdim)


op("argmax")(place(first_of(torch.amax)))
op("argmin")(place(first_of(torch.amin)))


@op("cumsum")
def cumsum_case(r, i):
    x = r.operand(r.shape(r.int(1, 5)), r.pick([torch.float32] * 4 + [torch.float64, torch.int64, torch.uint8, torch.bool]))
    dim = r.int(-x.value.dim(), x.value.dim() - 1)
    return [x], {"dim": dim}, torch.cumsum(x.value, dim)


@op("sort", exact=True)
def sort_case(r, i):
    x = r.operand(r.shape(r.int(1, 4)), r.pick([torch.float32, torch.float64, torch.int64, torch.uint8]), -4, 4, r.chance(4))
    dim, descending = r.int(-x.value.dim(), x.value.dim() - 1), r.chance(2)
    return [x], {"dim": dim, "descending": descending}, torch.sort(x.value, dim=dim, descending=descending, stable=True)


@op("topk", exact=True)
def topk_case(r, i):
    shape = r.shape(r.int(1, 4))
    count = 1
    for n in shape:
        count *= n
    # No two equal, so not expanded either: torch's order of ties is not defined.
    x = r.operand(shape, values=torch.randperm(count, generator=r.generator).float().reshape(shape), spread=False)
    dim = r.int(-len(shape), len(shape) - 1)
    k, largest = r.int(0, shape[dim]), r.chance(2)
    return [x], {"k": k, "dim": dim, "largest": largest}, torch.topk(x.value, k, dim, largest)


@op("arange")
def arange_case(r, i):
    if i % 2 == 0:
        start, stop, step = r.int(-20, 20), r.int(-20, 20), r.pick([1, 2, 3, -1, -4])
        if (stop - start) * step < 0:
            start, stop = stop, start
        return [], {"start": start, "stop": stop, "step": step, "float": False}, torch.arange(start, stop, step)
    start, stop, step = r.int(-9, 0) / 2, r.int(1, 30) / 4, r.pick([0.25, 0.5, 1.5])
    return [], {"start": start, "stop": stop, "step": step, "float": True}, torch.arange(start, stop, step, dtype=torch.float32)


@op("linspace")
def linspace_case(r, i):
    start, stop, steps = r.int(-50, 50) / 7, r.int(-50, 50) / 3, r.int(0, 40)
    return [], {"start": start, "stop": stop, "steps": steps}, torch.linspace(start, stop, steps)


@op("full")
def full_case(r, i):
    shape, value, dtype = r.shape(r.int(0, 4)), r.int(0, 100), r.pick([torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8])
    return [], {"shape": list(shape), "value": value, "dtype": CODES[dtype]}, torch.full(list(shape), value, dtype=dtype)


@op("eye")
def eye_case(r, i):
    rows, columns, dtype = r.int(0, 6), r.int(0, 6), r.pick([torch.float32, torch.float16, torch.int64, torch.bool])
    return [], {"rows": rows, "columns": columns, "dtype": CODES[dtype]}, torch.eye(rows, columns).to(dtype)
