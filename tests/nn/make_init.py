#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch draws for the parameters of new layers: mean, standard deviation and largest magnitude of each, in init.json.

    make_init.py > init.json
"""
import json

import torch
from torch import nn

LAYERS = {
    "Linear": nn.Linear(300, 200),
    "Bilinear": nn.Bilinear(20, 50, 60),
    "Conv2d": nn.Conv2d(32, 64, 3, groups=2),
    "ConvTranspose2d": nn.ConvTranspose2d(32, 64, 3, groups=2),
    "BatchNorm2d": nn.BatchNorm2d(50),
    "LayerNorm": nn.LayerNorm(50),
    "GroupNorm": nn.GroupNorm(5, 50),
    "Embedding": nn.Embedding(300, 100, padding_idx=-1),
    "PReLU": nn.PReLU(40, init=0.4),
    "LSTM": nn.LSTM(100, 90, proj_size=40),
    "GRU": nn.GRU(100, 90, bidirectional=True),
    "RNN": nn.RNN(100, 90),
    "MultiheadAttention": nn.MultiheadAttention(120, 4, add_bias_kv=True),
    "MultiheadAttentionOfSizes": nn.MultiheadAttention(120, 4, kdim=60, vdim=30),
}


def of(tensor):
    values = tensor.detach().double()
    return {"shape": list(tensor.shape), "mean": values.mean().item(), "std": values.std(unbiased=False).item(), "largest": values.abs().max().item()}


def main():
    print(json.dumps({name: {key: of(value) for key, value in layer.state_dict().items()} for name, layer in LAYERS.items()}, indent=1))


torch.manual_seed(0)
for each in LAYERS.values():
    if hasattr(each, "reset_parameters"):
        each.reset_parameters()
    elif isinstance(each, nn.MultiheadAttention):
        each._reset_parameters()
main()
