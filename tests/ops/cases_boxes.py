# SPDX-License-Identifier: Apache-2.0
"""Boxes, by torchvision; pooling with indices and back; what else of torch.nn.functional is made of others."""
import torch
import torch.nn.functional as F
import torchvision

from casekit import FLOATS, op, plain
from cases_more import WIDE, wide


def corners(r, count, size, dtype):
    """(x1, y1, x2, y2): some of them beyond the image. Sums are rounded to dtype, also where the case is computed again in F64."""
    low, length = r.values([count, 2], dtype, -2, size), r.values([count, 2], dtype, 0.3, size)
    return torch.cat([low, (low.to(dtype) + length.to(dtype)).to(low.dtype)], 1)


def scores_of(r, count, dtype):
    values = r.values([count], dtype, 0, 1)
    return (values * 8).round() / 8 if r.chance(2) else values  # some are equal


@op("nms")
def nms_case(r, i):
    count, dtype = 0 if i == 4 else r.int(1, 30), r.pick([torch.float32, torch.float64])
    boxes, scores = r.laid_out(corners(r, count, 8, dtype), spread=False), r.laid_out(scores_of(r, count, dtype), spread=False)
    threshold = r.pick([0.3, 0.5, 0.0, 0.9])
    return [boxes, scores], {"threshold": threshold}, torchvision.ops.nms(boxes.value, scores.value, threshold)


@op("batched_nms")
def batched_nms_case(r, i):
    count, dtype = r.int(1, 30), r.pick([torch.float32, torch.float64])
    boxes, scores = r.laid_out(corners(r, count, 8, dtype), spread=False), r.laid_out(scores_of(r, count, dtype), spread=False)
    kinds, threshold = r.values([count], torch.int64, -1, 2), r.pick([0.3, 0.5])
    kept = torch.zeros(count, dtype=torch.bool)
    for kind in kinds.unique():
        places = torch.nonzero(kinds == kind)[:, 0]
        kept[places[torchvision.ops.nms(boxes.value[places], scores.value[places], threshold)]] = True
    order = torch.sort(scores.value, descending=True, stable=True).indices
    return [boxes, scores, plain(kinds)], {"threshold": threshold}, order[kept[order]]


@op("box_iou")
def box_iou_case(r, i):
    dtype = r.pick(WIDE)
    a, b = (r.laid_out(corners(r, r.int(1, 9), 8, dtype), spread=False) for _ in range(2))
    return [a, b], {}, wide(torchvision.ops.box_iou, a.value, b.value)


@op("roi_align")
def roi_align_case(r, i):
    dtype, count, size = r.pick(WIDE), 0 if i == 4 else r.int(1, 6), [r.int(1, 9), r.int(1, 9)]
    x = r.operand([r.int(1, 3), r.int(1, 4)] + size, dtype)
    scale = r.pick([1.0, 0.5, 0.3])
    where = corners(r, count, max(size) / scale, dtype)
    images = r.values([count, 1], torch.int64, 0, x.value.shape[0] - 1)
    boxes = r.laid_out(torch.cat([images.to(where.dtype), where], 1), spread=False)
    a = {"output_size": [r.int(1, 4), r.int(1, 4)], "spatial_scale": scale, "sampling_ratio": r.pick([-1, 0, 1, 2, 3]), "aligned": r.chance(2)}
    return [x, boxes], a, wide(lambda u, v: torchvision.ops.roi_align(u.contiguous(), v.contiguous(), **a), x.value, boxes.value)


def windows(r, spatial):
    kernel = [r.int(1, 3) for _ in range(spatial)]
    return kernel, [r.int(0, k // 2) for k in kernel], [] if r.chance(3) else [r.int(1, 3) for _ in kernel]


def images(r, i, spatial, dtype):
    return r.operand([r.int(1, 3)] * (0 if i % 5 == 4 else 1) + [r.size(1, 4)] + [r.size(6, 10) for _ in range(spatial)], dtype)


@op("max_pool_with_indices")
def max_pool_with_indices_case(r, i):
    spatial = r.int(1, 3)
    kernel, padding, stride = windows(r, spatial)
    dilation, ceil, x = [r.int(1, 2) for _ in kernel], r.chance(2), images(r, i, spatial, r.pick(FLOATS))
    function = [F.max_pool1d, F.max_pool2d, F.max_pool3d][spatial - 1]
    values = x.value.double() if x.value.dtype == torch.float64 else x.value.float()
    pooled, places = function(values, kernel, stride or None, padding, dilation, ceil, return_indices=True)
    return [x], {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil": ceil}, [pooled.to(x.value.dtype), places]


@op("max_unpool", exact=True)
def max_unpool_case(r, i):
    spatial = r.int(1, 3)
    kernel, padding, stride = windows(r, spatial)
    x = images(r, i, spatial, torch.float32)
    pool, back = [(F.max_pool1d, F.max_unpool1d), (F.max_pool2d, F.max_unpool2d), (F.max_pool3d, F.max_unpool3d)][spatial - 1]
    values, places = pool(x.value, kernel, stride or None, padding, return_indices=True)
    size = list(x.value.shape[-spatial:])
    steps = stride or kernel
    small = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(values.shape[-spatial:], steps, padding, kernel)]
    sized = small != size or r.chance(2)
    given = r.laid_out(r.values(list(values.shape), r.pick([torch.float32, torch.float64])), spread=False)
    flat = places.flatten(-spatial).unsqueeze(-1) == places.flatten(-spatial).unsqueeze(-2)
    if flat.sum() > places.numel():  # one place twice: both get its value
        given = plain(values)
    args = {"kernel": kernel, "stride": stride, "padding": padding, **({"output_size": size} if sized else {})}
    result = back(given.value.contiguous(), places, kernel, stride or None, padding, size if sized else None)
    return [given, plain(places)], args, result


@op("lp_pool")
def lp_pool_case(r, i):
    spatial = r.int(1, 2)
    kernel, _, stride = windows(r, spatial)
    power, ceil, x = r.pick([1.0, 2.0, 3.0]), r.chance(2), r.operand([r.int(1, 3), r.int(1, 4)] + [r.size(6, 10) for _ in range(spatial)], r.pick(FLOATS), 0.1, 3)
    if spatial == 1:
        result = wide(lambda v: F.lp_pool1d(v, power, kernel[0], stride[0] if stride else None, ceil), x.value)
    else:
        result = wide(lambda v: F.lp_pool2d(v, power, kernel, stride or None, ceil), x.value)
    return [x], {"norm_type": power, "kernel": kernel, "stride": stride, "ceil": ceil}, result


@op("conv_tbc")
def conv_tbc_case(r, i):
    inside, outside, kernel, dtype = r.int(1, 5), r.int(1, 5), r.int(1, 3), r.pick(WIDE)
    x, weight, bias = r.operand([r.int(3, 9), r.int(1, 4), inside], dtype), r.operand([kernel, inside, outside], dtype), r.operand([outside], dtype)
    pad = r.int(0, 2)
    return [x, weight, bias], {"pad": pad}, wide(lambda v, w, b: torch.conv_tbc(v.contiguous(), w.contiguous(), b.contiguous(), pad), x.value, weight.value, bias.value)


@op("pdist")
def pdist_case(r, i):
    x, p = r.operand([r.int(2, 6), r.int(1, 6)], r.pick(WIDE)), r.pick([2.0, 1.0, 3.0])
    return [x], {"p": p}, wide(lambda v: F.pdist(v.contiguous(), p), x.value)


@op("rrelu")
def rrelu_case(r, i):
    x, lower = r.operand(r.shape(), r.pick(WIDE)), r.pick([1 / 8, 0.0])
    return [x], {"lower": lower, "upper": 1 / 3}, wide(lambda v: F.rrelu(v, lower, 1 / 3), x.value)
