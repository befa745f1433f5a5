# SPDX-License-Identifier: Apache-2.0
"""net.pt, and what PyTorch computes with it: python3 export.py (which is kept, because not every machine has PyTorch)"""
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(2, 2, 2)
        self.conv2 = torch.nn.Conv2d(2, 2, 2, bias=False)

    def forward(self, x):
        return self.conv2(torch.relu(self.conv1(x)))


torch.manual_seed(1)
net = Net()
torch.save(net.state_dict(), "net.pt")
print(net(torch.ones(1, 2, 4, 4)).detach())
