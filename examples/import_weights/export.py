# SPDX-License-Identifier: Apache-2.0
"""Writes net.pt: a small convolutional net and its configuration, as a training script would save them.

    export.py net.pt
"""
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)


class Net(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(depth))
        self.head = nn.Linear(channels, 10)


torch.manual_seed(1)
config = {"channels": 8, "depth": 2, "labels": ["digit"]}
model = Net(config["channels"], config["depth"])
torch.save({"model": model.state_dict(), "config": config, "epoch": 3}, sys.argv[1])
