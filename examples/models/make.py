# SPDX-License-Identifier: Apache-2.0
"""What the examples of this folder load and are compared with, by PyTorch and torchvision.

make.py FOLDER              writes <model>.pt (a state dict, random) and <model>_case.pt (inputs, and PyTorch's outputs)
make.py --keep WRITE_CASE   writes outputs.pt beside this script: PyTorch's outputs for the weights and inputs that the program
                            WRITE_CASE (write_case.cpp) makes. They stand in for the former where there is no PyTorch.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile
import unittest.mock

import torch
import torchvision
from torch import nn

from bert import BertForSequenceClassification
from gpt2 import Gpt2
from lstm_tagger import LstmTagger
from random_weights import randomize
from unet import UNet

HERE = pathlib.Path(__file__).parent
GENERATED = 24  # tokens


def config(name):
    return json.loads((HERE / f"{name}.json").read_text())


def images(size):
    return {"images": torch.randn(1, 3, size, size)}


def sentences():
    words = torch.ones(2, 12, dtype=torch.bool)
    words[1, 8:] = False
    types = torch.zeros(2, 12, dtype=torch.int64)
    types[:, 5:] = 1
    return {"tokens": torch.randint(0, 211, (2, 12)), "types": types, "words": words}


# name: the model, its inputs
MODELS = {
    "resnet18": (torchvision.models.resnet18, lambda: images(224)),
    "resnet50": (torchvision.models.resnet50, lambda: images(224)),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, lambda: images(224)),
    "vit_b_16": (torchvision.models.vit_b_16, lambda: images(224)),
    "gpt2": (lambda: Gpt2(config("gpt2")), lambda: {"prompt": torch.randint(0, 211, (1, 8))}),
    "bert": (lambda: BertForSequenceClassification(config("bert")), sentences),
    "unet": (lambda: UNet(3, 4, 8, 3), lambda: images(32)),
    "lstm_tagger": (lambda: LstmTagger(100, 32, 24, 7), lambda: {"words": torch.randint(0, 100, (2, 10))}),
}


def leave(tensor, *_, **__):
    return tensor


def build_model(build):
    """The model without PyTorch's and torchvision's first values, which take longer than everything else here."""
    slow = ("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "trunc_normal_", "normal_")
    with unittest.mock.patch.multiple(nn.init, **{name: leave for name in slow}):
        return build().eval()


def outputs(name, model, inputs):
    with torch.no_grad():
        if name == "gpt2":
            tokens, logits = model.generate(inputs["prompt"], GENERATED)
            return {"tokens": tokens, "logits": logits}
        return {"logits": model(*inputs.values())}


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (build, make_inputs) in MODELS.items():
        torch.manual_seed(1)
        model = build_model(build)
        randomize(model)
        inputs = make_inputs()
        torch.save(model.state_dict(), folder / f"{name}.pt")
        torch.save({**inputs, **outputs(name, model, inputs)}, folder / f"{name}_case.pt")


def keep(write_case):
    kept = {}
    for name, (build, make_inputs) in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([write_case, name, HERE, folder], check=True)
            state = torch.load(pathlib.Path(folder) / f"{name}.pt")
            case = torch.load(pathlib.Path(folder) / f"{name}_case.pt")
        model = build_model(build)
        renamed = {re.sub(r"^encoder\.layers\.(\d+)", r"encoder.layers.encoder_layer_\1", key): value for key, value in state.items()}
        loaded = model.load_state_dict(renamed, strict=False)
        # GPT-2's masks are no weights, and lm_head is the embedding: saved once.
        assert not loaded.unexpected_keys and all(key.endswith((".attn.bias", "lm_head.weight")) for key in loaded.missing_keys)
        for what, value in outputs(name, model, {key: case[key] for key in make_inputs()}).items():
            kept[f"{name}.{what}"] = value.clone()
    torch.save(kept, HERE / "outputs.pt")


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--keep", metavar="WRITE_CASE")
    arguments = parser.parse_args()
    if arguments.keep:
        keep(arguments.keep)
    else:
        make(arguments.folder)
