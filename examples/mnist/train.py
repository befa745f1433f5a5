# SPDX-License-Identifier: Apache-2.0
"""train.py FOLDER: trains the digit classifier on MNIST and writes, beside this script, what the example needs.

FOLDER holds MNIST's four files, as `fetch.py FOLDER --train` leaves them. Written are:
  mnist.pt            the state dict, as anybody would save it
  torch_answers.txt   the digit PyTorch sees in each of the 10,000 test images, 100 to a line
  digits.idx3         the first 60 test images and their labels, in MNIST's own format: small enough to be kept
  digits.idx1
A minute or two on one core. Run with Debian's python3-torch.
"""
import pathlib
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
EPOCHS = 3
BUNDLED = 60


class Mnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3)
        self.norm2 = nn.BatchNorm2d(32)
        self.fc1 = nn.Linear(32 * 5 * 5, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, images):
        x = (images.unsqueeze(1).float() / 255 - 0.1307) / 0.3081
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.fc2(F.dropout(F.relu(self.fc1(x.flatten(1))), 0.25, self.training))


def read_idx(path):
    data = path.read_bytes()
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(shape)).reshape(shape).copy())


def write_idx(path, values):
    header = bytes([0, 0, 8, values.dim()]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    path.write_bytes(header + values.numpy().tobytes())


def train(model, images, labels):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    batches = len(images) // 100
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, EPOCHS * batches)
    for epoch in range(EPOCHS):
        model.train()
        for batch in torch.randperm(len(images)).view(batches, 100):
            loss = F.cross_entropy(model(images[batch]), labels[batch].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1} of {EPOCHS}: loss {loss.item():.4f}", flush=True)


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Mnist()
    train(model, read_idx(folder / "train-images-idx3-ubyte"), read_idx(folder / "train-labels-idx1-ubyte"))

    model.eval()
    images, labels = read_idx(folder / "t10k-images-idx3-ubyte"), read_idx(folder / "t10k-labels-idx1-ubyte")
    with torch.no_grad():
        logits = torch.cat([model(part) for part in images.split(500)])
    answers = logits.argmax(1)
    best = logits.topk(2).values
    print(f"right: {(answers == labels).sum().item()} of {len(labels)};"
          f" closest call: {(best[:, 0] - best[:, 1]).min().item():.2g}")

    torch.save(model.state_dict(), HERE / "mnist.pt")
    digits = "".join(str(answer) for answer in answers.tolist())
    (HERE / "torch_answers.txt").write_text("".join(digits[i:i + 100] + "\n" for i in range(0, len(digits), 100)))
    write_idx(HERE / "digits.idx3", images[:BUNDLED])
    write_idx(HERE / "digits.idx1", labels[:BUNDLED])


if __name__ == "__main__":
    main()
