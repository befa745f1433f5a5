# SPDX-License-Identifier: Apache-2.0
"""More layers: padding, shuffles, patches, bags, cells, stacks of transformer layers."""
import torch
from torch import nn

from layer_cases import activation, layer, randomise, transformer

activation("CELU", lambda r: {"alpha": r.pick([1.0, 0.5])})
activation("Hardshrink", lambda r: {"lambd": r.pick([0.5, 1.0])})
activation("Softshrink", lambda r: {"lambd": r.pick([0.5, 1.0])})
activation("Tanhshrink")
activation("Threshold", lambda r: {"threshold": r.pick([0.5, -1.0]), "value": r.pick([0.0, 2.0])})
activation("Softmin", lambda r: {"dim": r.pick([-1, 0])})


@layer("GLU")
def glu(r, i):
    return nn.GLU(1), [r.values([r.int(1, 3), 2 * r.int(1, 4)] + r.shape(r.int(0, 2)))], {"dim": 1}


def padding(kind, n):
    def case(r, i):
        amounts = [r.int(0, 3) for _ in range(2 * n)]
        value = r.pick([0.0, 1.5])
        x = r.values(([] if r.chance(4) else [r.int(1, 3)]) + [r.int(1, 3)] + [r.int(4, 6) for _ in range(n)])
        name = f"{kind}Pad{n}d"
        if kind == "Constant":
            module = nn.__dict__[name](tuple(amounts), value)
        elif hasattr(nn, name):
            module = getattr(nn, name)(tuple(amounts))
        elif kind == "Zero":  # PyTorch has those of 1 and 3 dimensions since 2.1
            module = getattr(nn, f"ConstantPad{n}d")(tuple(amounts), 0.0)
        else:
            module = Circular(amounts)
            x = x if x.dim() == n + 2 else x.unsqueeze(0)
        return module, [x], {"padding": amounts, "value": value}
    return case


class Circular(nn.Module):
    def __init__(self, amounts):
        super().__init__()
        self.amounts = amounts

    def forward(self, x):
        return nn.functional.pad(x, self.amounts, mode="circular")


for rank in (1, 2, 3):
    for mode in ("Constant", "Zero", "Reflection", "Replication", "Circular"):
        layer(f"{mode}Pad{rank}d")(padding(mode, rank))


@layer("PixelShuffle")
def pixel_shuffle(r, i):
    factor = r.int(1, 3)
    return nn.PixelShuffle(factor), [r.values([r.int(1, 2), r.int(1, 3) * factor * factor, r.int(1, 4), r.int(1, 4)])], {"factor": factor}


@layer("PixelUnshuffle")
def pixel_unshuffle(r, i):
    factor = r.int(1, 3)
    return nn.PixelUnshuffle(factor), [r.values([r.int(1, 2), r.int(1, 3), r.int(1, 3) * factor, r.int(1, 3) * factor])], {"factor": factor}


@layer("ChannelShuffle")
def channel_shuffle(r, i):
    groups = r.int(1, 3)
    return nn.ChannelShuffle(groups), [r.values([r.int(1, 2), groups * r.int(1, 3), r.int(1, 4), r.int(1, 4)])], {"groups": groups}


@layer("Unflatten")
def unflatten(r, i):
    return nn.Unflatten(1, (2, 3)), [r.values([r.int(1, 3), 6, r.int(1, 4)])], {"dim": 1, "sizes": [2, 3]}


def patches(r):
    pair = lambda low, high: [r.int(low, high), r.int(low, high)]  # noqa: E731
    return {"kernel_size": pair(1, 3), "dilation": pair(1, 2), "padding": pair(0, 2), "stride": pair(1, 3)}


@layer("Unfold")
def unfold(r, i):
    options = patches(r)
    return nn.Unfold(**{k: tuple(v) for k, v in options.items()}), [r.values([r.int(1, 2), r.int(1, 3), r.int(5, 8), r.int(5, 8)])], options


@layer("Fold")
def fold(r, i):
    options, size = patches(r), [r.int(5, 8), r.int(5, 8)]
    places = 1
    for n, k, d, p, s in zip(size, options["kernel_size"], options["dilation"], options["padding"], options["stride"]):
        places *= (n + 2 * p - d * (k - 1) - 1) // s + 1
    x = r.values([r.int(1, 2), r.int(1, 3) * options["kernel_size"][0] * options["kernel_size"][1], places])
    return nn.Fold(tuple(size), **{k: tuple(v) for k, v in options.items()}), [x], {**options, "output_size": size}


@layer("EmbeddingBag")
def embedding_bag(r, i):
    sizes, mode = [r.int(2, 9), r.int(1, 6)], r.pick(["sum", "mean", "max"])
    module = nn.EmbeddingBag(*sizes, mode=mode)
    if r.chance(2):
        return module, [r.values([r.int(1, 4), r.int(1, 4)], torch.int64, 0, sizes[0] - 1), None], {"sizes": sizes, "mode": mode}
    index = r.values([r.int(1, 8)], torch.int64, 0, sizes[0] - 1)
    offsets = torch.tensor(sorted([0] + [r.int(0, index.shape[0]) for _ in range(r.int(0, 3))]))
    return module, [index, offsets], {"sizes": sizes, "mode": mode}


@layer("LocalResponseNorm")
def local_response_norm(r, i):
    options = {"size": r.int(1, 5), "alpha": r.pick([1e-4, 0.5]), "beta": r.pick([0.75, 0.5]), "k": r.pick([1.0, 2.0])}
    return nn.LocalResponseNorm(**options), [r.values(r.shape(r.int(3, 5)))], options


def cell(kind):
    def case(r, i):
        sizes, bias = [r.size(1, 10), r.int(1, 12)], not r.chance(4)
        options = {"nonlinearity": r.pick(["tanh", "relu"])} if kind == "RNN" else {}
        batch = [] if r.chance(4) else [i % 5 + 1]
        inputs = [r.values(batch + [sizes[0]]), None, None]
        if r.chance(2):
            inputs[1] = r.values(batch + [sizes[1]])
            inputs[2] = r.values(batch + [sizes[1]]) if kind == "LSTM" else None

        def call(m, x, hidden, state):
            if hidden is None:
                return m(x)
            return m(x, (hidden, state) if kind == "LSTM" else hidden)
        return getattr(nn, f"{kind}Cell")(*sizes, bias=bias, **options), inputs, {"sizes": sizes, "bias": bias, **options}, call
    return case


for cell_kind in ("LSTM", "GRU", "RNN"):
    layer(f"{cell_kind}Cell")(cell(cell_kind))


def stacked(kind):
    def case(r, i):
        module, inputs, args, call = transformer(kind)(r, i)
        count, norm = r.int(1, 2), r.chance(2)
        stack = getattr(nn, f"Transformer{kind}")
        options = {"enable_nested_tensor": False} if kind == "Encoder" else {}
        whole = stack(module, count, nn.LayerNorm(args["model"]) if norm else None, **options)

        def forward(m, *given):
            with torch.enable_grad():  # no fast path
                if kind == "Decoder":
                    return m(given[0], given[1], tgt_mask=given[2]).detach()
                return m(given[0], mask=given[1]).detach()
        return randomise(r, whole), inputs, {**args, "layers": count, "norm": norm}, forward
    return case


layer("TransformerEncoder")(stacked("Encoder"))
layer("TransformerDecoder")(stacked("Decoder"))


@layer("Transformer")
def transformers(r, i):
    heads = r.int(1, 2)
    model, batch = heads * r.int(2, 4), r.int(1, 2)
    args = {"model": model, "heads": heads, "dim_feedforward": r.int(1, 12), "activation": r.pick(["relu", "gelu"]), "batch_first": r.chance(2),
            "norm_first": r.chance(2), "encoders": r.int(1, 2), "decoders": r.int(1, 2)}
    module = nn.Transformer(model, heads, args["encoders"], args["decoders"], args["dim_feedforward"], 0.1, args["activation"],
                            batch_first=args["batch_first"], norm_first=args["norm_first"])
    sized = lambda n: r.values([batch, n, model] if args["batch_first"] else [n, batch, model])  # noqa: E731

    def call(m, source, target):
        with torch.enable_grad():  # no fast path
            return m(source, target).detach()
    return randomise(r, module), [sized(r.int(1, 5)), sized(r.int(1, 5))], args, call


class Rotary(nn.Module):
    """As transformers computes it."""
    def __init__(self, dim, base):
        super().__init__()
        self.steps = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[-2]).float(), self.steps)
        angles = torch.cat([angles, angles], -1)
        first, second = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()


@layer("RotaryEmbedding")
def rotary(r, i):
    dim, base = 2 * r.int(1, 8), r.pick([10000.0, 500000.0])
    return Rotary(dim, base), [r.values([r.int(1, 2), r.int(1, 3), r.int(1, 9), dim])], {"dim": dim, "base": base}
