# SPDX-License-Identifier: Apache-2.0
"""The files that pages speak of as the reader's own, made with PyTorch: files.py FOLDER REPOSITORY"""
import pathlib
import shutil
import sys

import torch
from torch import nn

folder, root = map(pathlib.Path, sys.argv[1:])
torch.manual_seed(0)


def save(name, what):
    torch.save(what, folder / name)


body = nn.ModuleDict({"fc": nn.Linear(20, 30), "norm": nn.LayerNorm(30)})
optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
save("model.pt", body.state_dict())
save("before.pt", body.state_dict())
save("checkpoint.pth.tar", {"state_dict": {f"module.{key}": value for key, value in body.state_dict().items()}
                            | {"module.layers.0.self_attn.weight": torch.ones(2, 3), "module.layers.0.self_attn.bias": torch.ones(2)},
                            "optimizer": optimizer.state_dict()})
# Nothing tells what these two are but the reader.
save("t5.pt", {"shared.weight": torch.ones(11, 8), "blocks.0.mix.weight": torch.ones(6, 8), "norm.weight": torch.ones(8), "norm.bias": torch.ones(8)})
(folder / "phrase.txt").write_text("correct horse battery staple\n")
(folder / "folder").mkdir()
save("folder/weights.pt", body.state_dict())
for name, fixture in (("model.mpk", "net.mpk"), ("old.bpk", "net.bpk")):
    shutil.copy(root / "tests/fixtures/burn/files" / fixture, folder / name)
