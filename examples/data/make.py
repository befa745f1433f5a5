"""Makes net.pt, the file the examples and the README open: a training checkpoint as people save it. Run with Debian's torch."""
import pathlib

import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
net(torch.randn(2, 1, 28, 28)).sum().backward()
optimizer.step()
torch.save({"epoch": 3, "loss": 0.25, "arch": "tiny", "state_dict": net.state_dict()},
           pathlib.Path(__file__).with_name("net.pt"))
