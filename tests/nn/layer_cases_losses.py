# SPDX-License-Identifier: Apache-2.0
"""Losses as layers, pools with indices and back, and the rare ones."""
import torch
from torch import nn

from layer_cases import activation, layer, randomise


class Made(nn.Module):
    """A loss made and called with what forward gets: its weight is no part of a state then."""
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *inputs):
        return self.call(*inputs)


def pair(name, options=lambda r: {}, x=(-3, 3), target=(-3, 3), signs=False):
    def case(r, i):
        shape, a = r.shape(r.int(1, 3)), {**options(r), "reduction": r.pick(["mean", "sum", "none"])}
        wanted = (r.values(shape, torch.int64, 0, 1) * 2 - 1).float() if signs else r.values(shape, low=target[0], high=target[1])
        return getattr(nn, name)(**a), [r.values(shape, low=x[0], high=x[1]), wanted], a
    layer(name)(case)


pair("MSELoss")
pair("L1Loss")
pair("SmoothL1Loss", lambda r: {"beta": r.pick([1.0, 0.5])})
pair("HuberLoss", lambda r: {"delta": r.pick([1.0, 0.5])})
pair("KLDivLoss", lambda r: {"log_target": r.chance(2)}, (-6, -3), (0.1, 1))
pair("PoissonNLLLoss", lambda r: {"log_input": r.chance(2), "full": r.chance(2)}, (0.2, 3), (0, 2))
pair("HingeEmbeddingLoss", lambda r: {"margin": r.pick([1.0, 4.0])}, (0.2, 3), signs=True)
pair("SoftMarginLoss", signs=True)


def weighted(name, x, target, extra=lambda r: {}, weights=1, of_classes=True):
    """A loss with weights, which are its last inputs."""
    def case(r, i):
        count, batch = r.int(2, 6), r.int(2, 5)
        a = {**extra(r), "reduction": r.pick(["mean", "sum", "none"])}
        names = ["weight", "pos_weight"][:weights]
        factors = [r.values([count] if of_classes else [1, count], low=0.1, high=2.0) if r.chance(2) else None for _ in names]
        given = [r.values([batch, count], low=x[0], high=x[1]), target(r, batch, count)]
        module = Made(lambda u, v, *w: getattr(nn, name)(**a, **dict(zip(names, w)))(u, v))
        return module, given + factors, a
    layer(name)(case)


def one_class(r, batch, count):
    return r.values([batch], torch.int64, 0, count - 1)


def shares(r, batch, count):
    return r.values([batch, count], low=0, high=1)


weighted("NLLLoss", (-5, -1), one_class, lambda r: {"ignore_index": r.pick([-100, 1])})
weighted("CrossEntropyLoss", (-3, 3), one_class, lambda r: {"ignore_index": -100, "label_smoothing": r.pick([0.0, 0.1])})
weighted("BCELoss", (0.05, 0.95), shares, of_classes=False)
weighted("BCEWithLogitsLoss", (-5, 5), shares, weights=2)
weighted("MultiMarginLoss", (-3, 3), one_class, lambda r: {"p": r.pick([1, 2]), "margin": r.pick([1.0, 2.5])})
weighted("MultiLabelSoftMarginLoss", (-3, 3), shares)


@layer("MultiLabelMarginLoss")
def multilabel_margin(r, i):
    count, how = r.int(2, 6), r.pick(["mean", "sum", "none"])
    target = torch.stack([torch.randperm(count, generator=r.generator) for _ in range(3)])
    target[:, r.int(1, count - 1)] = -1
    return nn.MultiLabelMarginLoss(reduction=how), [r.values([3, count]), target], {"reduction": how}


@layer("GaussianNLLLoss")
def gaussian_nll(r, i):
    shape, a = r.shape(2), {"full": r.chance(2), "reduction": r.pick(["mean", "sum", "none"])}
    return nn.GaussianNLLLoss(**a), [r.values(shape), r.values(shape), r.values(shape, low=1, high=4)], a


def embedding(name, margins):
    def case(r, i):
        shape = [r.int(1, 5)] if name == "MarginRankingLoss" else [r.int(1, 5), r.int(3, 7)]
        a = {"margin": r.pick(margins), "reduction": r.pick(["mean", "sum", "none"])}
        return getattr(nn, name)(**a), [r.values(shape), r.values(shape), (r.values(shape[:1], torch.int64, 0, 1) * 2 - 1).float()], a
    layer(name)(case)


embedding("CosineEmbeddingLoss", [0.0, -0.5])
embedding("MarginRankingLoss", [1.0, 4.0])


def triplet(name, options):
    def case(r, i):
        shape = [r.int(1, 4), r.int(2, 6)]
        a = {"margin": 5.0, "swap": r.chance(2), "reduction": r.pick(["mean", "sum", "none"]), **options(r)}
        return getattr(nn, name)(**a), [r.values(shape) for _ in range(3)], a
    layer(name)(case)


triplet("TripletMarginLoss", lambda r: {"p": r.pick([1.0, 2.0])})
triplet("TripletMarginWithDistanceLoss", lambda r: {})


@layer("CTCLoss")
def ctc(r, i):
    a = {"blank": r.int(0, 2), "zero_infinity": r.chance(2), "reduction": r.pick(["mean", "sum", "none"])}
    targets = r.values([2, 3], torch.int64, 0, 2)
    inputs = [torch.log_softmax(r.values([8, 2, 4]), -1), targets + (targets >= a["blank"]).long(), torch.tensor([8, 7]), torch.tensor([3, r.int(1, 3)])]
    return nn.CTCLoss(**a), inputs, a


@layer("AdaptiveLogSoftmaxWithLoss")
def adaptive(r, i):
    features, cutoffs, classes = r.int(16, 20), r.pick([[3], [2, 5]]), r.int(7, 9)
    a = {"features": features, "cutoffs": cutoffs, "classes": classes, "div_value": r.pick([2.0, 4.0]), "head_bias": r.chance(2)}
    module = randomise(r, nn.AdaptiveLogSoftmaxWithLoss(features, classes, cutoffs, a["div_value"], a["head_bias"]))
    x, target = r.values([4, features]), r.values([4], torch.int64, 0, classes - 1)
    if i % 4 == 3:
        x, target = x[0], target[0]
        return module, [x, target], a, lambda m, u, t: list(m(u, t)) + [m.log_prob(u.unsqueeze(0))[0]]
    return module, [x, target], a, lambda m, u, t: list(m(u, t)) + [m.log_prob(u)]


activation("RReLU", lambda r: {"lower": r.pick([0.125, 0.0]), "upper": 0.5})


@layer("CrossMapLRN2d")
def cross_map(r, i):
    a = {"size": r.int(1, 6), "alpha": 0.5, "beta": 0.75, "k": 1.0}
    return nn.CrossMapLRN2d(a["size"], a["alpha"], a["beta"], a["k"]), [r.values([r.int(1, 2), r.int(1, 7), r.int(1, 4), r.int(1, 4)])], a


def unpool(n):
    def case(r, i):
        kernel = [r.int(2, 3) for _ in range(n)]
        stride = [r.int(k, 3) for k in kernel]
        x = r.values([2, 2] + [r.int(6, 9) for _ in range(n)])
        pool = getattr(nn, f"MaxPool{n}d")(tuple(kernel), tuple(stride), return_indices=True)
        back = getattr(nn, f"MaxUnpool{n}d")(tuple(kernel), tuple(stride))
        return Made(lambda u: back(*pool(u), output_size=list(x.shape[2:]))), [x], {"kernel": kernel, "stride": stride, "size": list(x.shape[2:])}
    layer(f"MaxUnpool{n}d")(case)


def lp_pool(n):
    def case(r, i):
        kernel, stride = [r.int(1, 3) for _ in range(n)], [r.int(1, 3) for _ in range(n)]
        a = {"norm_type": r.pick([1.0, 2.0, 3.0]), "ceil_mode": r.chance(2)}
        single = lambda sizes: sizes[0] if n == 1 else tuple(sizes)  # noqa: E731
        module = getattr(nn, f"LPPool{n}d")(a["norm_type"], single(kernel), single(stride), a["ceil_mode"])
        return module, [r.values([2, 2] + [r.int(6, 9) for _ in range(n)], low=0.1)], {**a, "kernel": kernel, "stride": stride}
    layer(f"LPPool{n}d")(case)


for dimensions in (1, 2, 3):
    unpool(dimensions)
for dimensions in (1, 2):
    lp_pool(dimensions)
