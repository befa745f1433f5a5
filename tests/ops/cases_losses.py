# SPDX-License-Identifier: Apache-2.0
"""Losses: every reduction, weights, classes to ignore, smoothed labels, margins. Where a mean could come out near 0, ranges are chosen so that it does not."""
import torch
import torch.nn.functional as F

from casekit import op, plain
from cases_more import WIDE, wide


def reduction(r):
    return r.pick(["mean", "sum", "none"])


def pair(name, function, options=lambda r: {}, x=(-3, 3), target=(-3, 3), made=None, spread=True):
    """A loss of x and a target of the same shape; made(r, shape, dtype): the target."""
    def case(r, i):
        shape, dtype = r.shape(), r.pick(WIDE)
        given = r.operand(shape, dtype, *x, spread=spread)
        wanted = made(r, shape, dtype) if made else r.operand(shape, dtype, *target)
        a = {"reduction": reduction(r), **options(r)}
        return [given, wanted], a, wide(lambda u, v: function(u, v, **a), given.value, wanted.value)
    op(name)(case)


def real(r, values, dtype):
    """F64 where the case is computed again in it."""
    return values.double() if getattr(r, "replayed", None) is not None and dtype.is_floating_point else values.to(dtype)


def signs(r, shape, dtype=torch.float32):
    return r.laid_out(real(r, r.values(shape, torch.int64, 0, 1) * 2 - 1, dtype))


def zeros_and_ones(r, shape, dtype):
    return r.laid_out(real(r, r.values(shape, torch.int64, 0, 1), dtype))


pair("mse_loss", F.mse_loss)
pair("l1_loss", F.l1_loss)
pair("smooth_l1_loss", F.smooth_l1_loss, lambda r: {"beta": r.pick([1.0, 0.5, 0.0])})
pair("huber_loss", F.huber_loss, lambda r: {"delta": r.pick([1.0, 0.5])})
pair("soft_margin_loss", F.soft_margin_loss, made=signs)
pair("hinge_embedding_loss", F.hinge_embedding_loss, lambda r: {"margin": r.pick([1.0, 4.0])}, x=(0.2, 3), made=signs)
pair("poisson_nll_loss", F.poisson_nll_loss, lambda r: {"log_input": r.chance(2), "full": r.chance(2)}, x=(0.2, 3), target=(0, 2))


@op("kl_div")
def kl_div_case(r, i):
    shape, dtype, log_target = r.shape(r.int(1, 3)), r.pick(WIDE), r.chance(2)
    x = r.operand(shape, dtype, -6, -3)
    values = r.values(shape, dtype, -2, 0) if log_target else r.values(shape, dtype, -0.2, 1)
    target = r.laid_out(values if log_target else values * (values > 0))
    a = {"reduction": r.pick(["mean", "sum", "none", "batchmean"]), "log_target": log_target}
    return [x, target], a, wide(lambda u, v: F.kl_div(u, v, **a), x.value, target.value)


def factor(r, shape, dtype):
    """Of each element, or spread over them."""
    return r.operand([1 if r.chance(4) else n for n in shape], dtype, 0.1, 2) if r.chance(2) else None


def value(operand):
    return None if operand is None else operand.value


@op("binary_cross_entropy")
def bce_case(r, i):
    shape, dtype = r.shape(), r.pick(WIDE)
    x = zeros_and_ones(r, shape, dtype) if i % 5 == 4 else r.operand(shape, dtype, 0.02, 0.98)
    target = r.operand(shape, dtype, 0, 1)
    weight, how = factor(r, shape, dtype), reduction(r)
    return [x, target, weight], {"reduction": how}, wide(lambda u, v, w: F.binary_cross_entropy(u, v, w, reduction=how), x.value, target.value, value(weight))


@op("binary_cross_entropy_with_logits")
def bce_with_logits_case(r, i):
    shape, dtype = r.shape(), r.pick(WIDE)
    x, target = r.operand(shape, dtype, -9, 9), r.operand(shape, dtype, 0, 1)
    weight, positive, how = factor(r, shape, dtype), factor(r, shape, dtype), reduction(r)
    result = wide(lambda u, v, w, p: F.binary_cross_entropy_with_logits(u, v, w, reduction=how, pos_weight=p), x.value, target.value, value(weight), value(positive))
    return [x, target, weight, positive], {"reduction": how}, result


@op("gaussian_nll_loss")
def gaussian_nll_case(r, i):
    shape, dtype = r.shape(r.int(1, 4), low=2), r.pick(WIDE)
    x, target = r.operand(shape, dtype), r.operand(shape, dtype)
    shapes = [shape, shape[:-1] + [1]] + ([shape[:-1]] if len(shape) > 1 else [])
    variance = r.operand(r.pick(shapes), dtype, 1 if i % 5 else 0, 4 if i % 5 else 1e-7)
    a = {"full": r.chance(2), "reduction": reduction(r)}
    return [x, target, variance], a, wide(lambda u, v, w: F.gaussian_nll_loss(u, v, w, **a), x.value, target.value, variance.value)


def classes(r, shape, count, ignored=None):
    target = r.values(shape, torch.int64, 0, count - 1)
    if ignored is not None and target.numel() > 1:  # one at least counts
        flat = target.view(-1)
        flat[r.int(1, flat.numel() - 1)] = ignored
    return r.laid_out(target, spread=False)


def class_weight(r, count, dtype):
    return r.operand([count], dtype, 0.1, 2) if r.chance(2) else None


def samples(r):
    """The shape of x, and that of its targets."""
    count = r.int(2, 7)
    if r.chance(6):
        return count, [count], []
    rest = r.shape(r.int(0, 2), high=4)
    batch = r.int(2, 5)
    return count, [batch, count] + rest, [batch] + rest


@op("nll_loss")
def nll_loss_case(r, i):
    count, shape, samples_shape = samples(r)
    dtype, ignored = r.pick(WIDE), r.pick([-100, 1])
    x = r.operand(shape, dtype, -5, -1)
    target = classes(r, samples_shape, count, ignored if r.chance(2) else None)
    weight, how = class_weight(r, count, dtype), reduction(r)
    result = wide(lambda u, w: F.nll_loss(u, target.value, w, ignore_index=ignored, reduction=how), x.value, value(weight))
    return [x, target, weight], {"reduction": how, "ignore_index": ignored}, result


@op("cross_entropy")
def cross_entropy_case(r, i):
    count, shape, samples_shape = samples(r)
    dtype, ignored = r.pick(WIDE), r.pick([-100, 1])
    smoothing, how = r.pick([0.0, 0.0, 0.1, 1.0]), reduction(r)
    x = r.operand(shape, dtype)
    weight = class_weight(r, count, dtype)
    if i % 3 == 2:
        target, ignored = r.operand(shape, dtype, 0.1, 1), -100
    else:
        target = classes(r, samples_shape, count, ignored if r.chance(2) else None)
    call = lambda u, w, t: F.cross_entropy(u, t, w, ignore_index=ignored, reduction=how, label_smoothing=smoothing)  # noqa: E731
    return [x, target, weight], {"reduction": how, "ignore_index": ignored, "label_smoothing": smoothing}, wide(call, x.value, value(weight), target.value)


@op("multi_margin_loss")
def multi_margin_case(r, i):
    count, dtype = r.int(2, 7), r.pick(WIDE)
    batch = [] if r.chance(5) else [r.int(1, 5)]
    x, target = r.operand(batch + [count], dtype), classes(r, batch, count)
    weight = class_weight(r, count, dtype)
    a = {"p": r.pick([1, 2]), "margin": r.pick([1.0, 2.5]), "reduction": reduction(r)}
    call = lambda u, w: F.multi_margin_loss(u.contiguous(), target.value.contiguous(), weight=None if w is None else w.contiguous(), **a)  # noqa: E731
    return [x, target, weight], a, wide(call, x.value, value(weight))


@op("multilabel_margin_loss")
def multilabel_margin_case(r, i):
    count, dtype, how = r.int(2, 7), r.pick(WIDE), reduction(r)
    batch = [] if r.chance(5) else [r.int(1, 5)]
    x = r.operand(batch + [count], dtype, spread=False)
    rows = []
    for _ in range(batch[0] if batch else 1):
        order = torch.randperm(count, generator=r.generator)
        order[r.int(1, count - 1)] = -1  # what follows does not count
        rows.append(order)
    target = r.laid_out(torch.stack(rows) if batch else rows[0], spread=False)
    return [x, target], {"reduction": how}, wide(lambda u: F.multilabel_margin_loss(u.contiguous(), target.value.contiguous(), reduction=how), x.value)


@op("multilabel_soft_margin_loss")
def multilabel_soft_margin_case(r, i):
    shape, dtype, how = r.shape(r.int(1, 3)), r.pick(WIDE), reduction(r)
    x, target, weight = r.operand(shape, dtype), zeros_and_ones(r, shape, dtype), factor(r, shape, dtype)
    call = lambda u, v, w: F.multilabel_soft_margin_loss(u, v, w, reduction=how)  # noqa: E731
    return [x, target, weight], {"reduction": how}, wide(call, x.value, target.value, value(weight))


@op("cosine_embedding_loss")
def cosine_embedding_case(r, i):
    batch, dtype = [] if r.chance(5) else [r.int(1, 5)], r.pick(WIDE)
    shape = batch + [r.int(3, 8)]
    a, b = r.operand(shape, dtype, spread=False), r.operand(shape, dtype, spread=False)
    target = signs(r, batch)
    args = {"margin": r.pick([0.0, -0.5]), "reduction": reduction(r)}
    return [a, b, target], args, wide(lambda u, v: F.cosine_embedding_loss(u, v, target.value, **args), a.value, b.value)


@op("margin_ranking_loss")
def margin_ranking_case(r, i):
    shape, dtype = r.shape(), r.pick(WIDE)
    a, b, target = r.operand(shape, dtype), r.operand(shape, dtype), signs(r, shape, torch.int64)
    args = {"margin": r.pick([1.0, 4.0]), "reduction": reduction(r)}
    return [a, b, target], args, wide(lambda u, v: F.margin_ranking_loss(u, v, target.value, **args), a.value, b.value)


def triple(r):
    shape, dtype = [r.int(1, 4), r.int(2, 6)], r.pick(WIDE)
    return [r.operand(shape, dtype) for _ in range(3)]


@op("triplet_margin_loss")
def triplet_margin_case(r, i):
    given = triple(r)
    a = {"margin": r.pick([2.0, 5.0]), "p": r.pick([2, 1, 3]), "swap": r.chance(2), "reduction": reduction(r)}
    return given, a, wide(lambda u, v, w: F.triplet_margin_loss(u, v, w, **a), *[t.value for t in given])


@op("triplet_margin_with_distance_loss")
def triplet_margin_with_distance_case(r, i):
    given, own = triple(r), r.chance(2)
    a = {"margin": r.pick([2.0, 5.0]), "swap": r.chance(2), "reduction": reduction(r)}
    distance = (lambda u, v: (u - v).abs().amax(-1)) if own else None
    result = wide(lambda u, v, w: F.triplet_margin_with_distance_loss(u, v, w, distance_function=distance, **a), *[t.value for t in given])
    return given, {**a, "own": own}, result


@op("ctc_loss")
def ctc_loss_case(r, i):
    time, batch, count = r.int(3, 9), r.int(1, 4), r.int(2, 6)
    dtype, blank = r.pick([torch.float32, torch.float64]), r.int(0, count - 1)
    logs = r.laid_out(torch.log_softmax(r.values([time, batch, count], dtype), -1), spread=False)
    lengths = [r.int(1, 3) for _ in range(batch)]
    targets = r.values([batch, 3], torch.int64, 0, count - 2)
    targets = targets + (targets >= blank).long()
    a = {"blank": blank, "zero_infinity": r.chance(2), "reduction": reduction(r)}
    times = torch.tensor([r.int(max(1, time - 4), time) for _ in range(batch)])
    if i % 5 == 4 and batch == 1:
        result = F.ctc_loss(logs.value[:, 0].contiguous(), targets[0, :lengths[0]], times[0], torch.tensor(lengths[0]), **a)
        return [plain(logs.value[:, 0].contiguous().to(dtype)), plain(targets[0, :lengths[0]]), plain(times[0]), plain(torch.tensor(lengths[0]))], a, result
    listed = torch.cat([targets[k, :n] for k, n in enumerate(lengths)]) if r.chance(2) else targets
    return [logs, plain(listed), plain(times), plain(torch.tensor(lengths))], a, F.ctc_loss(logs.value.contiguous(), listed, times, torch.tensor(lengths), **a)
