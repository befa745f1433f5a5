#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The models of examples/models in their full size: PyTorch's weights, exported by Ballast, run by ONNX Runtime, compared with PyTorch's outputs for
two sizes of every dimension that has a name.

    tests/onnx/whole_models.py [--build build/dev] [MODEL...]        exit 0: all agree; takes minutes and gigabytes, so no test runs it
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/models"))
sys.dont_write_bytecode = True
import make  # noqa: E402

CODES = {torch.float32: "F32", torch.int64: "I64", torch.bool: "BOOL"}


def save_tensors(path, tensors):
    header, offset, data = {}, 0, b""
    for name, tensor in tensors.items():
        content = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(content)]}
        offset, data = offset + len(content), data + content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def inputs_of(name, batch, large):
    if name == "unet":
        return {"images": torch.randn(batch, 3, 48 if large else 32, 32 if large else 64)}
    if name in ("gpt2", "bert"):
        tokens = torch.randint(0, 211, (batch, 11 if large else 7))
        if name == "gpt2":
            return {"tokens": tokens}
        words = torch.ones_like(tokens, dtype=torch.bool)
        words[-1, 5:] = False
        return {"tokens": tokens, "types": torch.randint(0, 2, tokens.shape), "words": words}
    if name == "lstm_tagger":
        return {"words": torch.randint(0, 100, (batch, 13 if large else 6))}
    return {"images": torch.randn(batch, 3, 224, 224)}


def cases_of(name, folder, program):
    torch.manual_seed(1)
    model = make.build_model(make.MODELS[name][0])
    make.randomize(model)
    torch.save(model.state_dict(), folder / f"{name}.pt")
    subprocess.run([program, name, folder, ROOT / "examples/models"], check=True)
    for batch, large in ((1, False), (3, True)):
        inputs = inputs_of(name, batch, large)
        with torch.no_grad():
            save_tensors(folder / f"{name}.{batch}.out", {"logits": model(*inputs.values())})
        save_tensors(folder / f"{name}.{batch}.in", inputs)
        for opset in (11, 13, 17):
            yield {"name": f"{name}, opset {opset}, batch {batch}", "model": f"{name}.{opset}.onnx", "inputs": f"{name}.{batch}.in", "expected": f"{name}.{batch}.out"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(make.MODELS))
    parser.add_argument("--build", default=str(ROOT / "build/dev"))
    arguments = parser.parse_args()
    program = pathlib.Path(arguments.build).resolve() / "tests/onnx/export_onnx_model"
    worst = 0
    for name in arguments.models or make.MODELS:
        with tempfile.TemporaryDirectory() as folder:
            cases = list(cases_of(name, pathlib.Path(folder), program))
            (pathlib.Path(folder) / "cases.json").write_text(json.dumps(cases))
            worst = max(worst, subprocess.run([ROOT / "scripts/check-onnx", os.path.join(folder, "cases.json")], check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
