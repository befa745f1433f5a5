# SPDX-License-Identifier: Apache-2.0
"""Layers with random options, their state dicts, inputs and torch's results. A case's inputs are its parameters, named by args["state"], and
then what forward gets; the other args are the layer's options under PyTorch's names. Every fourth case is F16: the parameters and inputs are rounded to
it, the result is computed in F32 (torch 1.13 has no F16 on the CPU) and rounded once.
"""
import torch
from torch import nn

from casekit import op, plain

DTYPES = [torch.float32, torch.float16, torch.float32, torch.float32]


def layer(name):
    """Registers function(rng, i) → (module, inputs, args); inputs of None are absent."""
    def register(function):
        def case(r, i):
            torch.manual_seed(r.int(0, 10 ** 6))
            module, inputs, args, *call = function(r, i)
            module.eval()
            dtype = DTYPES[i % 4]
            rounded = lambda t: t.to(dtype) if t is not None and t.dtype == torch.float32 else t  # noqa: E731
            state = {key: rounded(value) for key, value in module.state_dict().items()}
            inputs = [rounded(t) for t in inputs]
            module.load_state_dict({key: value.float() if value.dtype == torch.float16 else value for key, value in state.items()})
            wide = [t.float() if t is not None and t.dtype == torch.float16 else t for t in inputs]
            with torch.no_grad():
                result = call[0](module, *wide) if call else module(*wide)
            outputs = [rounded(t.contiguous()) for t in (result if isinstance(result, (tuple, list)) else [result])]
            operands = [plain(t) for t in state.values()] + [None if t is None else plain(t) for t in inputs]
            return operands, {"state": list(state), **args}, outputs
        op(name)(case)
        return function
    return register


def randomise(r, module):
    """Buffers and norms' parameters start as constants, which hide mistakes."""
    for key, value in module.state_dict().items():
        if value.dtype == torch.float32:
            low = 0.3 if key.endswith("running_var") else -1.0
            value.copy_(r.values(list(value.shape), low=low, high=2.0))
    return module


@layer("Linear")
def linear(r, i):
    sizes = [r.size(1, 40), r.size(1, 40)] if i % 5 else [r.int(64, 200), r.int(64, 200)]
    bias = not r.chance(3)
    batch = r.shape(r.int(0, 3), low=0 if i == 7 else 1) if i % 3 == 0 or i == 7 else [i // 3 % 9 + 1]
    return nn.Linear(*sizes, bias=bias), [r.values(batch + [sizes[0]])], {"sizes": sizes, "bias": bias}


@layer("Bilinear")
def bilinear(r, i):
    sizes = [r.size(), r.size(), r.size()]
    batch = r.shape(r.int(1, 2))
    bias = not r.chance(3)
    return nn.Bilinear(*sizes, bias=bias), [r.values(batch + [sizes[0]]), r.values(batch + [sizes[1]])], {"sizes": sizes, "bias": bias}


def per_dimension(r, n, low, high):
    return [r.int(low, high) for _ in range(n)] if n > 1 else [r.int(low, high)]


def convolution(n):
    def case(r, i):
        groups = r.pick([1, 1, 1, 2, 3])
        channels = [groups * r.int(1, 4), groups * r.int(1, 4)]
        kernel, dilation = per_dimension(r, n, 1, 3), per_dimension(r, n, 1, 2)
        mode = r.pick(["zeros", "zeros", "zeros", "reflect", "replicate", "circular"])
        same = r.chance(5)
        stride = [1] * n if same else per_dimension(r, n, 1, 3)
        padding = "same" if same else per_dimension(r, n, 0, 2)
        bias = not r.chance(3)
        module = getattr(nn, f"Conv{n}d")(*channels, tuple(kernel), stride=tuple(stride), padding=padding if same else tuple(padding), dilation=tuple(dilation),
                                          groups=groups, bias=bias, padding_mode=mode)
        size = [max(5, 2 * (k - 1) + 3) + r.int(0, 3) for k in kernel]
        batch = [] if r.chance(5) and mode == "zeros" else [0 if i == 5 else i % 9 + 1]
        args = {"channels": channels, "kernel": kernel, "stride": stride, "padding": [0] * n if same else padding, "same": same, "dilation": dilation,
                "groups": groups, "bias": bias, "mode": mode}
        return module, [r.values(batch + [channels[0]] + size)], args
    return case


def transposed(n):
    def case(r, i):
        groups = r.pick([1, 1, 2])
        channels = [groups * r.int(1, 3), groups * r.int(1, 3)]
        kernel, dilation, stride = per_dimension(r, n, 1, 3), per_dimension(r, n, 1, 2), per_dimension(r, n, 1, 3)
        padding = [r.int(0, min(1, d * (k - 1))) for k, d in zip(kernel, dilation)]
        extra = [r.int(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
        bias = not r.chance(3)
        module = getattr(nn, f"ConvTranspose{n}d")(*channels, tuple(kernel), stride=tuple(stride), padding=tuple(padding), output_padding=tuple(extra),
                                                   groups=groups, bias=bias, dilation=tuple(dilation))
        batch = [] if r.chance(5) else [i // 3 % 9 + 1]
        args = {"channels": channels, "kernel": kernel, "stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation, "groups": groups,
                "bias": bias}
        return module, [r.values(batch + [channels[0]] + per_dimension(r, n, 2, 4))], args
    return case


for rank in (1, 2, 3):
    layer(f"Conv{rank}d")(convolution(rank))
    layer(f"ConvTranspose{rank}d")(transposed(rank))


def running_norm(kind, n):
    def case(r, i):
        features = r.int(1, 6)
        options = {"eps": r.pick([1e-5, 1e-3]), "affine": not r.chance(3), "track_running_stats": r.chance(2) if kind == "InstanceNorm" else not r.chance(4)}
        module = randomise(r, getattr(nn, f"{kind}{n}d")(features, **options))
        spatial = [r.int(2, 5) for _ in range(n)]
        batch = [i % 9 + 1 if options["track_running_stats"] else r.int(2, 4)]
        if kind == "BatchNorm" and n == 1 and r.chance(3):
            spatial = []
        if kind == "InstanceNorm" and r.chance(4):
            batch = []
        return module, [r.values(batch + [features] + spatial)], {"features": features, **options}
    return case


for rank in (1, 2, 3):
    layer(f"BatchNorm{rank}d")(running_norm("BatchNorm", rank))
    layer(f"InstanceNorm{rank}d")(running_norm("InstanceNorm", rank))


@layer("LayerNorm")
def layer_norm(r, i):
    shape = r.shape(r.int(1, 2), low=2)
    options = {"eps": r.pick([1e-5, 1e-3]), "elementwise_affine": not r.chance(3)}
    return randomise(r, nn.LayerNorm(shape, **options)), [r.values(r.shape(r.int(0, 3)) + shape)], {"shape": shape, **options}


@layer("GroupNorm")
def group_norm(r, i):
    groups = r.int(1, 3)
    channels = groups * r.int(1, 3)
    options = {"eps": r.pick([1e-5, 1e-3]), "affine": not r.chance(3)}
    x = r.values([r.int(1, 3), channels] + r.shape(r.int(1, 3), low=2))
    return randomise(r, nn.GroupNorm(groups, channels, **options)), [x], {"groups": groups, "channels": channels, **options}


class RMSNorm(nn.Module):
    """PyTorch has it since 2.4."""
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


@layer("RMSNorm")
def rms_norm(r, i):
    size, eps = r.int(2, 30), r.pick([1e-6, 1e-3])
    return randomise(r, RMSNorm(size, eps)), [r.values(r.shape(r.int(0, 3)) + [size])], {"size": size, "eps": eps}


@layer("Embedding")
def embedding(r, i):
    sizes = [r.int(1, 20), r.int(1, 20)]
    index = r.values(r.shape(r.int(0, 3)), torch.int64, 0, sizes[0] - 1)
    return nn.Embedding(*sizes), [index], {"sizes": sizes}


@layer("PReLU")
def prelu(r, i):
    count = r.pick([1, r.int(2, 5)])
    return randomise(r, nn.PReLU(count)), [r.values([r.int(1, 3), count if count > 1 else r.int(1, 4)] + r.shape(r.int(0, 2)))], {"count": count}


def activation(name, options=lambda r: {}):
    def case(r, i):
        given = options(r)
        return getattr(nn, name)(**given), [r.values(r.shape(r.int(1, 4)), low=-6, high=6)], given
    layer(name)(case)


for plain_name in ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Sigmoid", "LogSigmoid", "Tanh", "Softsign", "Hardswish", "Hardsigmoid", "Dropout", "Identity"):
    activation(plain_name)
activation("GELU", lambda r: {"approximate": r.pick(["none", "tanh"])})
activation("LeakyReLU", lambda r: {"negative_slope": r.pick([0.01, 0.2])})
activation("ELU", lambda r: {"alpha": r.pick([1.0, 0.5])})
activation("Hardtanh", lambda r: {"min_val": r.pick([-1.0, -2.5]), "max_val": r.pick([1.0, 0.5])})
activation("Softplus", lambda r: {"beta": r.pick([1.0, 2.0]), "threshold": r.pick([20.0, 3.0])})
activation("Softmax", lambda r: {"dim": r.pick([-1, 0])})
activation("LogSoftmax", lambda r: {"dim": r.pick([-1, 0])})


def pooling(kind, n):
    def case(r, i):
        kernel = per_dimension(r, n, 1, 3)
        options = {"kernel_size": kernel, "stride": per_dimension(r, n, 1, 3), "padding": [r.int(0, k // 2) for k in kernel], "ceil_mode": r.chance(3)}
        if kind == "Max":
            options["dilation"] = per_dimension(r, n, 1, 2)
        else:
            options["count_include_pad"] = r.chance(2)
        module = getattr(nn, f"{kind}Pool{n}d")(**options)
        return module, [r.values(([] if r.chance(5) else [r.int(1, 3)]) + [r.int(1, 4)] + [r.int(5, 8) for _ in range(n)])], options
    return case


def adaptive(kind, n):
    def case(r, i):
        size = [None if r.chance(5) and n > 1 else r.int(1, 4) for _ in range(n)]
        module = getattr(nn, f"Adaptive{kind}Pool{n}d")(tuple(size) if n > 1 else size[0])
        return module, [r.values([r.int(1, 3), r.int(1, 4)] + [r.int(4, 8) for _ in range(n)])], {"size": size}
    return case


for rank in (1, 2, 3):
    for which in ("Max", "Avg"):
        layer(f"{which}Pool{rank}d")(pooling(which, rank))
        layer(f"Adaptive{which}Pool{rank}d")(adaptive(which, rank))


@layer("Flatten")
def flatten(r, i):
    start, end = r.pick([(1, -1), (0, 1), (0, -1), (2, 2)])
    return nn.Flatten(start, end), [r.values(r.shape(r.int(3, 5)))], {"start": start, "end": end}


@layer("Upsample")
def upsample(r, i):
    mode, n = r.pick([("nearest", 1), ("nearest", 2), ("nearest", 3), ("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3)])
    corners = mode != "nearest" and r.chance(2)
    given = {"size": [r.int(2, 9) for _ in range(n)]} if r.chance(2) else {"scale_factor": r.pick([2.0, 1.5, 3.0])}
    module = nn.Upsample(mode=mode, align_corners=corners if mode != "nearest" else None,
                         **{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
    return module, [r.values([r.int(1, 2), r.int(1, 3)] + [r.int(2, 5) for _ in range(n)])], {"mode": mode, "align_corners": corners, **given}


def recurrent(kind):
    def case(r, i):
        options = {"num_layers": r.int(1, 3), "bias": not r.chance(4), "batch_first": r.chance(2), "bidirectional": r.chance(2)}
        sizes = [r.size(1, 10), r.int(2, 20)]
        if kind == "LSTM":
            options["proj_size"] = r.int(1, sizes[1] - 1) if r.chance(3) else 0
        if kind == "RNN":
            options["nonlinearity"] = r.pick(["tanh", "relu"])
        module = getattr(nn, kind)(*sizes, **options)
        steps, batch, alone = r.int(1, 6), i % 9 + 1, r.chance(5)
        shape = [steps, sizes[0]] if alone else [batch, steps, sizes[0]] if options["batch_first"] else [steps, batch, sizes[0]]
        inputs = [r.values(shape), None, None]
        if r.chance(2):
            cells = [options["num_layers"] * (2 if options["bidirectional"] else 1)] + ([] if alone else [batch])
            inputs[1] = r.values(cells + [options.get("proj_size") or sizes[1]])
            inputs[2] = r.values(cells + [sizes[1]]) if kind == "LSTM" else None

        def call(m, x, hidden, cell):
            given = [] if hidden is None else [(hidden, cell) if kind == "LSTM" else hidden]
            output, last = m(x, *given)
            return [output, *last] if kind == "LSTM" else [output, last]
        return module, inputs, {"sizes": sizes, **options}, call
    return case


for cell_kind in ("LSTM", "GRU", "RNN"):
    layer(cell_kind)(recurrent(cell_kind))


def masks(r, batch, heads, queries, keys):
    """Attention and padding mask, or None each; every query may look at something."""
    attention = padding = None
    if r.chance(2):
        shape = [queries, keys] if r.chance(2) else [batch * heads, queries, keys]
        attention = r.values(shape, torch.bool) if r.chance(2) else r.values(shape)
        if attention.dtype == torch.bool:
            attention[..., 0] = False
    if r.chance(3):
        padding = r.values([batch, keys], torch.bool)
        padding[:, 0] = False
    return attention, padding


@layer("MultiheadAttention")
def multihead_attention(r, i):
    heads = r.int(1, 4)
    embed, batch, queries, keys = heads * r.int(1, 5), i % 9 + 1, r.int(1, 7), r.int(1, 7)
    options = {"bias": not r.chance(4), "add_bias_kv": r.chance(4), "add_zero_attn": r.chance(4), "batch_first": r.chance(2)}
    if r.chance(3):
        options.update(kdim=r.int(1, 9), vdim=r.int(1, 9))
    module = randomise(r, nn.MultiheadAttention(embed, heads, **options))
    own = r.chance(3) and "kdim" not in options
    attention, padding = masks(r, batch, heads, queries, queries if own else keys)
    sized = lambda n, width: r.values([batch, n, width] if options["batch_first"] else [n, batch, width])  # noqa: E731
    q = sized(queries, embed)
    k, v = (None, None) if own else (sized(keys, options.get("kdim", embed)), sized(keys, options.get("vdim", embed)))

    def call(m, *given):
        query, key, value, attn_mask, key_padding_mask = given
        key, value = (query, query) if key is None else (key, value)
        with torch.enable_grad():  # 1.13's fast path stays out, which fails without bias
            return m(query, key, value, key_padding_mask=key_padding_mask, attn_mask=attn_mask, need_weights=False)[0].detach()
    return module, [q, k, v, attention, padding], {"embed": embed, "heads": heads, **options}, call


def transformer(kind):
    def case(r, i):
        heads = r.int(1, 3)
        model, batch, length, memory_length = heads * r.int(2, 5), r.int(1, 3), r.int(1, 6), r.int(1, 6)
        options = {"dim_feedforward": r.int(1, 20), "activation": r.pick(["relu", "gelu"]), "batch_first": r.chance(2), "norm_first": r.chance(2)}
        module = randomise(r, getattr(nn, f"Transformer{kind}Layer")(model, heads, dropout=0.1, **options))
        sized = lambda n: r.values([batch, n, model] if options["batch_first"] else [n, batch, model])  # noqa: E731
        causal = torch.ones(length, length).triu(1).bool()
        attention = r.pick([None, causal])
        inputs = [sized(length)] + ([sized(memory_length)] if kind == "Decoder" else []) + [attention]

        def call(m, *given):
            with torch.enable_grad():  # no fast path
                if kind == "Decoder":
                    return m(given[0], given[1], tgt_mask=given[2]).detach()
                return m(given[0], src_mask=given[1]).detach()
        return module, inputs, {"model": model, "heads": heads, **options}, call
    return case


layer("TransformerEncoderLayer")(transformer("Encoder"))
layer("TransformerDecoderLayer")(transformer("Decoder"))
