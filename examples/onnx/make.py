#!/usr/bin/python3
"""Writes what the examples start from, with PyTorch: net.pth as torch.save(model.state_dict()) makes it, checkpoint.pth.tar as the
ImageNet training script does (DataParallel's "module." before every name, optimizer and epoch beside the weights), and an input with
PyTorch's output for it, for scripts/check-onnx."""
import json
import pathlib
import struct

import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if inputs != outputs or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.shortcut(x))


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(Block(8, 8, 1))
        self.layer2 = nn.Sequential(Block(8, 16, 2))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


def save_safetensors(path, name, tensor):
    data = tensor.contiguous().numpy().tobytes()
    header = json.dumps({name: {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [0, len(data)]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def main():
    torch.manual_seed(7)
    model = SmallResNet()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    model.train()
    for _ in range(3):  # so that the running statistics are not the first ones
        loss = model(torch.randn(4, 3, 32, 32)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    torch.save(model.state_dict(), HERE / "net.pth")
    torch.save({"epoch": 3, "arch": "small_resnet", "state_dict": nn.DataParallel(model).state_dict(), "best_acc1": 71.5,
                "optimizer": optimizer.state_dict()}, HERE / "checkpoint.pth.tar")
    image = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        logits = model(image)
    save_safetensors(HERE / "image.safetensors", "image", image)
    save_safetensors(HERE / "logits.safetensors", "logits", logits)


main()
