# SPDX-License-Identifier: Apache-2.0
"""The operations of layers: products, convolutions, pooling, norms, attention, recurrence."""
import torch
import torch.nn.functional as F

from casekit import FLOATS, op, plain

HALF = (torch.float16, torch.bfloat16)


def computed(function, *tensors):
    """In F32, rounded to the first one's dtype: torch 1.13 cannot compute F16 on the CPU."""
    dtype = tensors[0].dtype
    return function(*[t.float() if t is not None and t.dtype in HALF else t for t in tensors]).to(dtype)


@op("matmul")
def matmul_case(r, i):
    m, k, n = r.size(1, 12), r.size(1, 12), r.size(1, 12)
    if i % 10 == 9 and not r.small:
        m, k, n = r.int(30, 120), r.int(30, 120), r.int(30, 120)
    if i == 3:
        k = 0
    batch = r.shape(r.int(0, 3), high=3)
    dtype = r.pick(FLOATS + [torch.float64])
    kind = r.pick(["full", "full", "matrix", "broadcast", "vectors"])
    a, b = batch + [m, k], batch + [k, n]
    if kind == "matrix":
        b = [k, n]
    elif kind == "broadcast":
        a = [1 if r.chance(2) else s for s in batch] + [m, k]
    elif kind == "vectors":
        a, b = r.pick([([k], [k]), ([k], batch + [k, n]), (batch + [m, k], [k])])
    x, y = r.operand(a, dtype), r.operand(b, dtype)
    return [x, y], {}, computed(torch.matmul, x.value, y.value)


ACTIVATIONS = {"none": lambda x: x, "relu": F.relu, "relu6": F.relu6, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
               "sigmoid": torch.sigmoid, "tanh": torch.tanh, "leaky_relu": lambda x: F.leaky_relu(x, 0.1), "elu": lambda x: F.elu(x, 0.5),
               "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "mish": F.mish}


@op("add_activated")
def add_activated_case(r, i):
    shape = r.shape(r.int(1, 4)) if i % 10 or r.small else [r.int(2, 3), 17, 40, 40]
    activation = r.pick(list(ACTIVATIONS))
    x = r.operand(shape, r.pick(FLOATS), special=activation == "relu")  # others overflow in another order
    y = r.operand([1 if r.chance(4) else n for n in shape], x.value.dtype)
    return [x, y], {"activation": activation}, computed(lambda a, b: ACTIVATIONS[activation](a + b), x.value, y.value)


@op("linear")
def linear_case(r, i):
    inside, outside = r.size(1, 40), r.size(1, 40)
    if i % 10 == 9 and not r.small:
        inside, outside = r.int(50, 300), r.int(50, 300)
    x = r.operand(r.shape(r.int(0, 3), high=5) + [inside], r.pick(FLOATS + [torch.float64]))
    weight = r.operand([inside, outside], x.value.dtype)
    bias = plain(r.values([outside], x.value.dtype)) if r.chance(2) else None
    activation = r.pick(list(ACTIVATIONS))
    result = computed(lambda a, w, b: ACTIVATIONS[activation](F.linear(a, w.t(), b)), x.value, weight.value, bias.value if bias else None)
    return [x, weight, bias], {"activation": activation}, result


@op("bilinear")
def bilinear_case(r, i):
    batch = r.shape(r.int(1, 3), high=4)
    a, b = r.operand(batch + [r.size()]), r.operand(batch + [r.size()])
    weight = r.operand([r.size(), a.value.shape[-1], b.value.shape[-1]])
    bias = plain(r.values([weight.value.shape[0]])) if r.chance(2) else None
    return [a, b, weight, bias], {}, F.bilinear(a.value.contiguous(), b.value.contiguous(), weight.value.contiguous(), bias.value if bias else None)


def conv_numbers(r, spatial, low_stride=1):
    each = lambda low, high: [r.int(low, high) for _ in range(spatial)] if r.chance(2) else [r.int(low, high)]  # noqa: E731
    return each(low_stride, 3), each(0, 2), each(1, 2)


def full(numbers, spatial):
    return numbers if len(numbers) == spatial else numbers * spatial


@op("conv")
def conv_case(r, i):
    spatial = r.int(1, 3)
    stride, padding, dilation = conv_numbers(r, spatial)
    kernel = [r.int(1, 3) for _ in range(spatial)]
    groups = r.pick([1, 1, 2, 3])
    inside, outside = groups * r.size(1, 4), groups * r.size(1, 4)
    if i % 10 == 9 and not r.small:
        inside, outside = 16 * groups, 32 * groups
    if i % 10 == 8:  # depthwise
        groups = inside
        outside = inside * r.int(1, 2)
    same = i % 7 == 6
    if same:
        stride = [1]
    d = full(dilation, spatial)
    size = [d[k] * (kernel[k] - 1) + 1 + r.size(0, 8) for k in range(spatial)]
    batch = 0 if i == 5 else r.int(1, 3)
    mode = r.pick(["constant"] * 4 + ["reflect", "replicate", "circular"]) if batch else "constant"
    dtype = r.pick(FLOATS + [torch.float64])
    x = r.operand(([] if i % 9 == 7 and not same else [batch]) + [inside] + size, dtype)
    weight = r.operand([outside, inside // groups] + kernel, dtype)
    bias = plain(r.values([outside], dtype)) if r.chance(2) else None
    activation = r.pick(["none", "none", "relu", "silu", "leaky_relu"])

    def compute(a, w, b):
        function = [F.conv1d, F.conv2d, F.conv3d][spatial - 1]
        pads = full(padding, spatial)
        if same:
            total = [d[k] * (kernel[k] - 1) for k in range(spatial)]
            amounts = [n for t in reversed(total) for n in (t // 2, t - t // 2)]
        else:
            amounts = [n for p in reversed(pads) for n in (p, p)]
        if a.numel() == 0:
            return function(a, w, b, full(stride, spatial), "same" if same else pads, d, groups)
        lead = a if a.dim() == spatial + 2 else a.unsqueeze(0)
        lead = F.pad(lead, amounts, mode) if mode != "constant" else F.pad(lead, amounts)
        result = ACTIVATIONS[activation](function(lead, w, b, full(stride, spatial), 0, d, groups))
        return result if a.dim() == spatial + 2 else result.squeeze(0)

    if mode != "constant":  # these modes cannot pad by more than the size
        padding, same = [0 if s == 1 else 1 for s in size], False
        if x.value.dim() != spatial + 2:
            mode = "constant"
    args = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "same": same, "mode": mode, "activation": activation}
    return [x, weight, bias], args, computed(compute, x.value, weight.value, bias.value if bias else None)


@op("conv_transpose")
def conv_transpose_case(r, i):
    spatial = r.int(1, 3)
    stride, padding, dilation = conv_numbers(r, spatial)
    padding = [min(p, 1) for p in padding]
    kernel = [r.int(2, 3) for _ in range(spatial)]
    groups = r.pick([1, 1, 2, 3])
    inside, outside = groups * r.size(1, 4), groups * r.size(1, 4)
    if i % 10 == 9 and not r.small:
        inside, outside = 16 * groups, 32 * groups
    s, d = full(stride, spatial), full(dilation, spatial)
    extra = [r.int(0, max(s[k], d[k]) - 1) for k in range(spatial)]
    dtype = r.pick(FLOATS + [torch.float64])
    x = r.operand(([] if i % 9 == 7 else [r.int(1, 3)]) + [inside] + [r.size(2, 7) for _ in range(spatial)], dtype)
    weight = r.operand([inside, outside // groups] + kernel, dtype)
    bias = plain(r.values([outside], dtype)) if r.chance(2) else None
    function = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][spatial - 1]
    args = {"stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation, "groups": groups, "activation": "none"}
    result = computed(lambda a, w, b: function(a, w, b, s, full(padding, spatial), extra, groups, d), x.value, weight.value, bias.value if bias else None)
    return [x, weight, bias], args, result


def pool_input(r, i, spatial, low):
    shape = [r.int(1, 3)] * (0 if i % 5 == 4 else 1) + [r.size(1, 5)] + [r.size(low, low + 8) for _ in range(spatial)]
    return r.operand(shape, r.pick(FLOATS), special=False)


@op("max_pool")
def max_pool_case(r, i):
    spatial = r.int(1, 3)
    kernel = [r.int(1, 3) for _ in range(spatial)]
    padding, dilation = [r.int(0, k // 2) for k in kernel], [r.int(1, 2) for _ in kernel]
    stride = [] if r.chance(3) else [r.int(1, 3) for _ in kernel]
    ceil = r.chance(2)
    x = pool_input(r, i, spatial, 6)
    if i % 8 == 7:
        x = plain(r.with_special(x.value.contiguous().clone()))
    function = [F.max_pool1d, F.max_pool2d, F.max_pool3d][spatial - 1]
    result = computed(lambda a: function(a, kernel, stride or None, padding, dilation, ceil), x.value)
    return [x], {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil": ceil}, result


@op("avg_pool")
def avg_pool_case(r, i):
    spatial = r.int(1, 3)
    kernel = [r.int(1, 3) for _ in range(spatial)]
    padding = [r.int(0, k // 2) for k in kernel]
    stride = [] if r.chance(3) else [r.int(1, 3) for _ in kernel]
    ceil, include = r.chance(2), r.chance(2)
    divisor = r.int(1, 7) if spatial > 1 and r.chance(4) else None
    x = pool_input(r, i, spatial, 4)
    function = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][spatial - 1]
    rest = [divisor] if spatial > 1 else []
    result = computed(lambda a: function(a, kernel, stride or None, padding, ceil, include, *rest), x.value)
    args = {"kernel": kernel, "stride": stride, "padding": padding, "ceil": ceil, "include": include}
    return [x], {**args, "divisor": divisor} if divisor else args, result


def adaptive(functions):
    def case(r, i):
        spatial = r.int(1, 3)
        x = pool_input(r, i, spatial, 1)
        out = [None if r.chance(5) else r.int(1, 6) for _ in range(spatial)]
        if spatial == 1 and out == [None]:
            out = [2]
        result = computed(lambda a: functions[spatial - 1](a, out if spatial > 1 else out[0]), x.value)
        return [x], {"out": [-1 if n is None else n for n in out]}, result
    return case


op("adaptive_avg_pool")(adaptive([F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d]))
op("adaptive_max_pool")(adaptive([F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d]))


def over_space(function):
    def case(r, i):
        x = r.operand([r.int(1, 3), r.size(1, 5)] + [r.size() for _ in range(r.int(1, 3))], r.pick(FLOATS))
        return [x], {}, computed(lambda a: function(a, list(range(2, a.dim())), keepdim=True), x.value)
    return case


op("global_avg_pool")(over_space(torch.mean))
op("global_max_pool")(over_space(torch.amax))


def affine(r, shape, one_in=3):
    return tuple(None if r.chance(one_in) else plain(r.values(shape)) for _ in range(2))


def value(operand):
    return operand.value if operand else None


@op("batch_norm")
def batch_norm_case(r, i):
    x = r.operand([0 if i == 5 else r.int(1, 3), r.size(1, 20)] + r.shape(r.int(0, 3)), r.pick(FLOATS))
    channels = x.value.shape[1]
    mean, variance = plain(r.values([channels])), plain(r.values([channels], low=0.01, high=4))
    gamma, beta = affine(r, [channels])
    eps = r.pick([1e-5, 1e-3])
    result = computed(lambda a: F.batch_norm(a, mean.value, variance.value, value(gamma), value(beta), False, 0, eps), x.value)
    return [x, mean, variance, gamma, beta], {"eps": eps}, result


@op("layer_norm")
def layer_norm_case(r, i):
    normalized = r.shape(r.int(1, 3), low=2, high=12)
    if i % 10 == 9 and not r.small:
        normalized = [r.int(500, 2000)]
    x = r.operand(r.shape(r.int(0, 3)) + normalized, r.pick(FLOATS), spread=False)
    gamma, beta = affine(r, normalized)
    eps = r.pick([1e-5, 1e-12])
    result = computed(lambda a: F.layer_norm(a, normalized, value(gamma), value(beta), eps), x.value)
    return [x, gamma, beta], {"normalized": normalized, "eps": eps}, result


@op("rms_norm")
def rms_norm_case(r, i):
    normalized = r.shape(r.int(1, 2), low=2, high=40)
    shape = r.shape(r.int(0, 3)) + normalized
    dtype = r.pick(FLOATS)
    x = r.operand(shape, dtype)
    gamma = plain(r.values(normalized)) if r.chance(2) else None
    eps = r.pick([None, 1e-6, 1e-5])
    dims = list(range(-len(normalized), 0))
    added = torch.finfo(dtype).eps if eps is None else eps

    def compute(a):
        result = a * torch.rsqrt(a.pow(2).mean(dims, keepdim=True) + added)
        return result * gamma.value if gamma else result
    return [x, gamma], {"normalized": normalized, **({"eps": eps} if eps else {})}, computed(compute, x.value)


@op("group_norm")
def group_norm_case(r, i):
    groups = r.int(1, 4)
    channels = groups * r.int(1, 3)
    # Of two values that are nearly one the difference is mostly rounding, torch's too.
    x = r.operand([r.int(1, 3), channels] + r.shape(r.int(1, 3), low=3), r.pick(FLOATS), spread=False)
    gamma, beta = affine(r, [channels])
    return [x, gamma, beta], {"groups": groups, "eps": 1e-5}, computed(lambda a: F.group_norm(a, groups, value(gamma), value(beta), 1e-5), x.value)


@op("instance_norm")
def instance_norm_case(r, i):
    x = r.operand([r.int(1, 3), r.size(1, 6)] + r.shape(r.int(1, 3), low=3), r.pick(FLOATS), spread=False)
    gamma, beta = affine(r, [x.value.shape[1]])
    result = computed(lambda a: F.instance_norm(a, None, None, value(gamma), value(beta), True, 0, 1e-5), x.value)
    return [x, gamma, beta], {"eps": 1e-5}, result


@op("scaled_dot_product_attention")
def attention_case(r, i):
    batch = r.shape(r.int(0, 3), high=3)
    queries, keys, features, out = r.size(1, 9), r.size(1, 9), r.size(1, 9), r.size(1, 9)
    if i % 10 == 9 and not r.small:
        queries, keys, features = r.int(60, 150), r.int(60, 150), 64
    dtype = r.pick(FLOATS)
    q, k, v = r.operand(batch + [queries, features], dtype), r.operand(batch + [keys, features], dtype), r.operand(batch + [keys, out], dtype)
    kind = r.pick(["none", "bool", "added", "causal", "offset"])
    args, mask, added = {"causal": kind in ("causal", "offset"), "offset": 0}, None, torch.zeros(queries, keys)
    if r.chance(3):
        args["scale"] = 0.3
    if kind == "bool":
        allowed = r.values([1 if r.chance(3) else n for n in batch] + [queries, keys], torch.bool)
        allowed[..., 0] = True
        mask = r.laid_out(allowed)
        added = torch.zeros(mask.value.shape).masked_fill(~mask.value, float("-inf"))
    elif kind == "added":
        mask = r.operand([1 if r.chance(2) else queries, keys])
        added = mask.value
    elif kind in ("causal", "offset"):
        args["offset"] = r.int(0, keys) if kind == "offset" else 0
        added = added.masked_fill(~torch.ones(queries, keys).tril(args["offset"]).bool(), float("-inf"))

    def compute(a, b, c):
        scores = a @ b.transpose(-2, -1) * args.get("scale", features ** -0.5) + added
        return torch.softmax(scores, -1) @ c
    return [q, k, v, mask], args, computed(compute, q.value, k.value, v.value)


def recurrent(kind, gates):
    def case(r, i):
        layers, both, batch_first = r.int(1, 2), r.chance(2), r.chance(2)
        inside, hidden = r.size(1, 10), r.size(1, 20)
        projection = r.int(1, hidden - 1) if kind == "lstm" and hidden > 1 and r.chance(3) else 0
        bias = not r.chance(4)
        options = {"nonlinearity": r.pick(["tanh", "relu"])} if kind == "rnn" else {}
        sizes = {"proj_size": projection} if kind == "lstm" else {}
        torch.manual_seed(r.int(0, 10 ** 6))
        module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind](
            inside, hidden, layers, bias=bias, batch_first=batch_first, bidirectional=both, **sizes, **options)
        steps, batch = r.size(1, 6), r.size(1, 4)
        unbatched = i % 8 == 7
        shape = [steps, inside] if unbatched else ([batch, steps, inside] if batch_first else [steps, batch, inside])
        x = r.operand(shape)
        directions = 2 if both else 1
        state_shape = lambda n: [layers * directions] + ([] if unbatched else [batch]) + [n]  # noqa: E731
        states = []
        if r.chance(2):
            states = [plain(r.values(state_shape(projection or hidden)))] + ([plain(r.values(state_shape(hidden)))] if kind == "lstm" else [])
        given = tuple(s.value for s in states)
        with torch.no_grad():
            result = module.to(x.value.dtype)(x.value.contiguous(), *([given if kind == "lstm" else given[0]] if given else []))
        outputs = [result[0], *(result[1] if kind == "lstm" else [result[1]])]
        weights, named = [], dict(module.named_parameters())
        for layer in range(layers):
            for suffix in ([f"_l{layer}", f"_l{layer}_reverse"] if both else [f"_l{layer}"]):
                for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"):
                    tensor = named.get(part + suffix)
                    # Native layout is [in, out]: the transpose, as a view of what torch holds.
                    weights.append(None if tensor is None else plain(tensor.detach()))
                    if tensor is not None and tensor.dim() == 2:
                        weights[-1].view = [["permute", [1, 0]]]
        padded = states + [None] * (2 - len(states))
        args = {"bidirectional": both, "batch_first": batch_first, "layers": layers, **options}
        return [x, *padded, *weights], args, outputs
    return case


op("lstm")(recurrent("lstm", 4))
op("gru")(recurrent("gru", 3))
op("rnn")(recurrent("rnn", 1))
