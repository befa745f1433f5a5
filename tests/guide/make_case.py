# SPDX-License-Identifier: Apache-2.0
"""Writes case.pt: an input, and what PyTorch makes of it with the model of docs/run.md and its weights: make_case.py NET.pt case.pt"""
import sys

import torch
from torch.nn import functional as F

torch.manual_seed(2)
w = torch.load(sys.argv[1])["model"]
x = torch.randn(1, 3, 16, 16)
y = F.relu(F.conv2d(x, w["stem.weight"], w["stem.bias"]))
for i in range(2):
    p = f"blocks.{i}."
    h = F.conv2d(y, w[p + "conv.weight"], padding=1)
    h = F.batch_norm(h, w[p + "norm.running_mean"], w[p + "norm.running_var"], w[p + "norm.weight"], w[p + "norm.bias"])
    y = F.relu(h + y)
torch.save({"x": x, "y": F.linear(y.mean((2, 3)), w["head.weight"], w["head.bias"])}, sys.argv[2])
