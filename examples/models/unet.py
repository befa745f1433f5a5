# SPDX-License-Identifier: Apache-2.0
"""A U-Net in PyTorch: what unet.h is compared with."""
import torch
from torch import nn
from torch.nn import functional as F


def double_conv(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class UpLevel(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.conv = double_conv(2 * outputs, outputs)

    def forward(self, x, from_the_way_down):
        return self.conv(torch.cat([from_the_way_down, self.up(x)], 1))


class UNet(nn.Module):
    def __init__(self, channels, classes, width, levels):
        super().__init__()
        widths = [width << i for i in range(levels + 1)]
        self.down = nn.ModuleList(double_conv(a, b) for a, b in zip([channels] + widths, widths[:-1]))
        self.bottom = double_conv(widths[-2], widths[-1])
        self.up = nn.ModuleList(UpLevel(widths[i], widths[i - 1]) for i in range(levels, 0, -1))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        seen = []
        for level in self.down:
            seen.append(level(x))
            x = F.max_pool2d(seen[-1], 2)
        x = self.bottom(x)
        for level in self.up:
            x = level(x, seen.pop())
        return self.head(x)
