# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations and activations."""
import torch
import torch.nn.functional as F

from casekit import ANY, FLOATS, op, plain

INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def broadcast_pair(r, dtypes=ANY, low=-3.0, high=3.0, special=False):
    shape = r.shape()
    operands = []
    for _ in range(2):
        own = [1 if r.chance(5) else n for n in shape][r.int(0, len(shape)) if r.chance(3) else 0:]
        operands.append(r.operand(own, r.pick(dtypes), low, high, special))
    return operands


def unary_case(function, dtypes=FLOATS + [torch.float64], low=-4.0, high=4.0, special=True, args=None):
    def case(r, i):
        shape = r.pick([[0, 3], [], [2, 0]]) if i == 4 else r.shape()
        if i in (7, 8) and not r.small:
            shape = [r.int(3000, 9000)] if i == 7 else [5, r.int(20, 40), r.int(20, 40)]
        a = args(r) if args else {}
        x = r.operand(shape, r.pick(dtypes), low, high, special and r.chance(3))
        return [x], a, function(x.value, **a)
    return case


def in_float(function):
    """torch 1.13 has no F16 for most functions on the CPU: computed in F32, rounded at the end, which is what Ballast promises."""
    def compute(x, *rest, **options):
        if x.dtype in (torch.float16, torch.bfloat16):
            return function(x.float(), *rest, **options).to(x.dtype)
        return function(x, *rest, **options)
    return compute


def log1p(x):
    """torch 1.13's vectorised kernel says infinity from 1e38 on; its F64 does not."""
    return torch.log1p(x.double()).float() if x.dtype == torch.float32 else torch.log1p(x)


for name, function in {"exp": torch.exp, "expm1": torch.expm1, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal,
                       "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "erf": torch.erf, "log1p": log1p, "sigmoid": torch.sigmoid,
                       "tanh": torch.tanh}.items():
    op(name)(unary_case(in_float(function), FLOATS + [torch.float64, torch.int64, torch.uint8, torch.bool]))
op("log")(unary_case(in_float(torch.log), FLOATS + [torch.float64, torch.int64], low=0.01, high=50))
for name, function in {"neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "square": torch.square}.items():
    op(name)(unary_case(in_float(function), FLOATS + [torch.float64] + INTEGERS))
for name, function in {"floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc}.items():
    op(name, exact=True)(unary_case(in_float(function), FLOATS + [torch.float64, torch.int32]))


def arithmetic(function, dtypes, **options):
    def case(r, i):
        a, b = broadcast_pair(r, dtypes, **options)
        if i % 6 == 5:  # with a number
            number = r.pick([2, -3, 0.5, 1.75, 1])
            number_first = r.chance(2)
            x = r.operand(r.shape(), r.pick(dtypes), special=options.get("special", False))
            half = x.value.dtype in (torch.float16, torch.bfloat16)
            value = x.value.float() if half else x.value
            result = function(number, value) if number_first else function(value, number)
            return [x], {"number": number, "first": number_first}, result.to(x.value.dtype) if half else result
        x, y = a.value, b.value
        dtype = torch.result_type(x, y)
        if dtype in (torch.float16, torch.bfloat16):
            return [a, b], {}, function(x.float(), y.float()).to(dtype)
        return [a, b], {}, function(x, y)
    return case


op("add")(arithmetic(lambda a, b: a + b, ANY + [torch.bool, torch.int8, torch.int16], special=True))
op("sub")(arithmetic(lambda a, b: a - b, ANY))
op("mul")(arithmetic(lambda a, b: a * b, ANY + [torch.bool, torch.int8], special=True))
op("div")(arithmetic(lambda a, b: a / b, ANY))


@op("pow")
def pow_case(r, i):
    if i % 3 == 0:
        x = r.operand(r.shape(), r.pick([torch.float32, torch.float64]), -3, 3, i % 6 == 0)
        exponent = r.pick([2, 3, 0.5, -0.5, -1, -2, 0, 1.5])
        return [x], {"number": exponent, "first": False}, torch.pow(x.value, exponent)
    if i % 3 == 1:
        a, b = broadcast_pair(r, [torch.int64, torch.int32], 0, 4)
        return [a, b], {}, torch.pow(a.value, b.value)
    a, b = broadcast_pair(r, [torch.float32, torch.float64], 0.1, 3)
    return [a, b], {}, torch.pow(a.value, b.value)


def extreme(function):
    def case(r, i):
        if i % 6 == 5:
            x = r.operand(r.shape(r.int(1, 4)), r.pick([torch.float32, torch.float64] + INTEGERS), 0, 9)
            number, first = r.pick([0, 2, 5, 1.75, 127]), r.chance(2)
            return [x], {"number": number, "first": first}, function(x.value, torch.tensor(number))
        # Not below 0 for integers: what an I64 without dimensions does to U8 torch leaves to its casts.
        a, b = broadcast_pair(r, FLOATS, special=True) if i % 2 == 0 else broadcast_pair(r, ANY + INTEGERS, 0, 5)
        return [a, b], {}, function(a.value, b.value)
    return case


op("minimum", exact=True)(extreme(torch.minimum))
op("maximum", exact=True)(extreme(torch.maximum))


def comparison(function):
    def case(r, i):
        a, b = broadcast_pair(r, ANY + [torch.bool], -2, 2, special=i % 2 == 0)
        x, y = a.value, b.value
        if not torch.result_type(x, y).is_floating_point:  # the numbers themselves: torch makes a -1 without dimensions 255 beside U8
            x, y = x.to(torch.int64), y.to(torch.int64)
        return [a, b], {}, function(x, y)
    return case


for name, function in {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge, "logical_and": torch.logical_and,
                       "logical_or": torch.logical_or, "logical_xor": torch.logical_xor}.items():
    op(name)(comparison(function))
for name, function in {"logical_not": torch.logical_not, "isnan": torch.isnan, "isinf": torch.isinf}.items():
    op(name)(unary_case(function, FLOATS + [torch.float64] + ([torch.bool, torch.int64] if name == "logical_not" else []), -2, 2))


@op("where", exact=True)
def where_case(r, i):
    dtype = r.pick(ANY)
    a, b = broadcast_pair(r, [dtype], special=True)
    shape = torch.broadcast_shapes(a.value.shape, b.value.shape)
    condition = r.operand([1 if r.chance(4) else n for n in shape], torch.bool)
    return [condition, a, b], {}, torch.where(condition.value, a.value, b.value)


@op("masked_fill", exact=True)
def masked_fill_case(r, i):
    x = r.operand(r.shape(), r.pick(ANY))
    mask = r.operand([1 if r.chance(4) else n for n in x.value.shape], torch.bool)
    value = r.pick([0, 2, float("-inf")]) if x.value.dtype.is_floating_point else 3
    args = {"value": "-inf" if value == float("-inf") else value}
    return [x, mask], args, x.value.masked_fill(mask.value, value)


@op("clamp", exact=True)
def clamp_case(r, i):
    x = r.operand(r.shape(), r.pick([torch.float32, torch.float64, torch.bfloat16] + INTEGERS), special=True)
    low, high = r.pick([(0, 2), (None, 1), (1, None), (0, 0), (2, 1), (0.5, 1.25), (None, 1.5), (0.75, None)])
    if x.value.dtype != torch.uint8 and r.chance(2):
        low, high = r.pick([(-1, 2), (-2, None), (2, -1), (-1.5, 1)])
    args = {key: value for key, value in (("low", low), ("high", high)) if value is not None}
    return [x], args, torch.clamp(x.value, low, high)


ACTIVATIONS = {"relu": F.relu, "relu6": F.relu6, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
               "log_sigmoid": F.logsigmoid, "softsign": F.softsign, "selu": F.selu, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "mish": F.mish}
for name, function in ACTIVATIONS.items():
    finite_only = name in ("gelu", "gelu_tanh", "silu", "mish", "softsign", "hardswish")  # at infinity torch's own kernels disagree with each other
    op(name)(unary_case(in_float(function), FLOATS + [torch.float64], -9, 9, special=not finite_only))
op("softplus")(unary_case(in_float(lambda x, beta, threshold: F.softplus(x, beta, threshold)), FLOATS, -30, 30,
                          args=lambda r: {"beta": r.pick([1, 2, 0.5]), "threshold": r.pick([20, 5])}))
op("elu")(unary_case(in_float(lambda x, alpha: F.elu(x, alpha)), FLOATS, args=lambda r: {"alpha": r.pick([1, 0.3, 2])}))
op("leaky_relu")(unary_case(in_float(lambda x, slope: F.leaky_relu(x, slope)), FLOATS, args=lambda r: {"slope": r.pick([0.01, 0.2, 0])}))
op("hardtanh")(unary_case(in_float(lambda x, low, high: F.hardtanh(x, low, high)), FLOATS, args=lambda r: {"low": r.pick([-1, -0.5]), "high": r.pick([1, 2.5])}))


@op("prelu")
def prelu_case(r, i):
    x = r.operand(r.shape(r.int(1, 5)), torch.float32, special=r.chance(3))
    count = x.value.shape[1] if x.value.dim() > 1 and r.chance(2) else 1
    alpha = plain(r.values([count]))
    return [x, alpha], {}, F.prelu(x.value, alpha.value)


def softmax_case(function):
    def case(r, i):
        shape = r.shape(r.int(1, 5), high=12) if i != 3 else [r.int(30, 60), r.int(100, 300)]
        if r.small:
            shape = shape[:3]
        dim = r.int(-len(shape), len(shape) - 1)
        x = r.operand(shape, r.pick(FLOATS + [torch.float64]), -20, 20)
        if i % 10 == 9:
            x.value.reshape(-1)[:1] = float("-inf")
            x = plain(x.value.contiguous())
        return [x], {"dim": dim}, in_float(function)(x.value, dim=dim)
    return case


op("softmax")(softmax_case(F.softmax))
op("log_softmax")(softmax_case(F.log_softmax))
