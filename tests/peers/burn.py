# SPDX-License-Identifier: Apache-2.0
"""burn.py VERSION: files between our Burn program of that version (burn/*.rs) and Ballast, in both directions.

Tensors, and what a model of twelve kinds of layers computes, are compared bit for bit where Burn alone computes. Where PyTorch or another Burn
computes the other side, outputs are the same within 1e-6 of the largest.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import torch
from torch import nn

import ballast
import places
from exchange import Direction

TOLERANCE = 1e-6
LAYERS = ["--layers", "attention$=multihead_attention"]  # Burn has four Linears there; PyTorch packs three of them
NOT_ADAPTED = ["lstm", "gru", "attention"]


class Net(nn.Module):
    """The model of burn/shared.rs."""

    def __init__(self):
        super().__init__()
        self.square, self.fc, self.head = nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(3, 4, bias=False)
        self.embedding, self.conv = nn.Embedding(6, 3), nn.Conv2d(2, 4, 3)
        self.batch, self.layer, self.group = nn.BatchNorm2d(4), nn.LayerNorm(4), nn.GroupNorm(2, 4)
        self.lstm, self.gru = nn.LSTM(3, 4, batch_first=True), nn.GRU(3, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.layers = nn.ModuleList([nn.Linear(4, 3), nn.Linear(3, 3)])

    def outputs(self):
        x, image, sequence, tokens = ramp(2, 3), self.conv(ramp(1, 2, 4, 4)), ramp(2, 5, 3), ramp(1, 3, 4)
        found = {
            "square": self.square(x), "fc": self.fc(x), "head": self.head(x), "embedding": self.embedding(torch.tensor([[1, 4, 5]])),
            "conv": image, "batch": self.batch(image), "group": self.group(image), "layer": self.layer(ramp(2, 4)),
            "lstm": self.lstm(sequence)[0], "gru": self.gru(sequence)[0], "attention": self.attention(tokens, tokens, tokens)[0],
            "layers": self.layers[1](self.layers[0](ramp(2, 4))),
        }  # fmt: skip
        return {name: value.detach().flatten().tolist() for name, value in found.items()}


def ramp(*shape):
    count = torch.Size(shape).numel()
    return torch.tensor([i * 7 % 13 / 16 - 0.375 for i in range(count)]).reshape(shape)


def random_net():
    torch.manual_seed(22)
    net = Net().eval()
    for parameter in net.parameters():
        parameter.data.normal_()
    net.batch.running_mean.normal_()
    net.batch.running_var.uniform_(0.5, 2)
    return net


def values(words):
    return [struct.unpack(">f", bytes.fromhex(word))[0] for word in words]


def run(version, *words):
    """file → {layer: floats, or tensor name: (shape, floats), or "error": text}"""
    done = subprocess.run([str(places.burn_program(version)), *map(str, words)], capture_output=True, text=True, check=True)
    files = {}
    for line in done.stdout.splitlines():
        kind, *rest = line.split(" ")
        if kind == "file":
            said_of = files.setdefault(pathlib.Path(rest[0]).name, {})
        elif kind == "error":
            said_of["error"] = " ".join(rest)
        elif kind == "tensor":
            said_of[rest[0]] = (tuple(int(n) for n in rest[1].split("x")), values(rest[2:]))
        else:
            said_of[kind] = values(rest)
    return files


def older_burn(version):
    """Booleans have another form up to 0.20."""
    return ["--burn", ".".join(map(str, places.numbers(version)[:2]))] if places.numbers(version) < (0, 21) else []


def convert(source, target, *words):
    subprocess.run([places.tool(), "convert", str(source), str(target), *words], check=True, capture_output=True, text=True)
    return target


def is_near(found, wanted):
    return len(found) == len(wanted) and max(abs(a - b) for a, b in zip(found, wanted)) <= TOLERANCE * max(1, max(map(abs, wanted)))


def compare(direction, what, found, wanted, near=False):
    """Every layer or tensor of both."""
    if "error" in found:
        direction.different.append(f"{what}: {found['error']}")
        return
    for name, value in wanted.items():
        same = name in found and (is_near(found[name], value) if near else found[name] == value)
        direction.same += same
        if not same:
            direction.different.append(f"{what}: {name}")


def attempt(direction, what, step):
    try:
        return step()
    except subprocess.CalledProcessError as error:
        direction.different.append(f"{what}: {error.stderr.strip().splitlines()[-1:]}")
    except Exception as error:
        direction.failed(what, error)
    return None


def plain_by_ballast(path):
    """What Burn stores in any precision, as the floats it means."""
    return {name: (tuple(tensor.shape), tensor.numpy().astype("float32").flatten().tolist()) for name, tensor in ballast.open(path).items()}


def torch_of(path, folder):
    state = convert(path, folder / f"{path.name}.pt", "--layout", "pytorch", *LAYERS)
    net = Net().eval()
    net.load_state_dict(torch.load(state), strict=False)
    return net.outputs()


def to_ballast(version, own, written, folder):
    """Burn's files: every tensor read, every layer computed by PyTorch."""
    for path in written:
        direction = Direction("to Ballast", path.name)
        if path.name.startswith(("plain", "quantized")):
            tensors = {name: value for name, value in own[path.name if path.name in own else "own"].items() if isinstance(value, tuple)}
            compare(direction, path.name, attempt(direction, path.name, lambda: plain_by_ballast(path)) or {}, tensors)
        else:
            outputs = run(version, "load", path)[path.name]  # in half precision they are those of the file
            for name in NOT_ADAPTED if path.name.startswith("torch") else []:
                direction.refused["BurnToPyTorchAdapter leaves it as Burn has it"] += 1
                del outputs[name]
            compare(direction, path.name, attempt(direction, path.name, lambda: torch_of(path, folder)) or {}, outputs, near=True)
        yield direction


def from_ballast(version, own, written, folder):
    """Burn's files rewritten by Ballast, in every format this Burn reads: it computes the same bits of them. Quantized tensors, which 0.22 cannot load all again
    itself, are no longer quantized then, and are the numbers they stood for."""
    suffixes = [".mpk", ".mpk.gz"] if places.numbers(version) < (0, 22) else [".bpk", ".safetensors"]
    for suffix in suffixes:
        direction = Direction("from Ballast", f"Burn's files as {suffix}")
        for path in written:
            target = folder / f"{path.name.split('.')[0]}-again-{path.name.replace('.', '-')}{suffix}"
            if path.name.startswith("torch") and suffix == ".bpk":
                continue  # half in PyTorch's layout: Burn's adapter knows norms and Linears alone
            if attempt(direction, target.name, lambda: convert(path, target, *older_burn(version))):
                wanted = own[path.name] if path.name in own else run(version, "load", path)[path.name]
                compare(direction, target.name, run(version, "load", target)[target.name], wanted)
        yield direction


def from_pytorch(version, folder):
    net, state = random_net(), folder / "state.pt"
    torch.save(net.state_dict(), state)
    for suffix in [".mpk", ".mpk.gz"] if places.numbers(version) < (0, 22) else [".bpk"]:
        target, direction = folder / f"net-of-torch{suffix}", Direction("PyTorch to Burn through Ballast", suffix)
        if attempt(direction, target.name, lambda: convert(state, target, *LAYERS)):
            compare(direction, target.name, run(version, "load", target)[target.name], net.outputs(), near=True)
        yield direction


def from_older(version, folder):
    """Records of Burns that had them, for one that has none."""
    for older in places.installed("burn").values() if places.numbers(version) >= (0, 22) else []:
        if places.numbers(older) < (0, 22):
            place = folder / older
            place.mkdir()
            outputs = {name: value for name, value in run(older, "save", place)["own"].items() if not isinstance(value, tuple)}
            target, direction = place / "net.bpk", Direction("older Burn to Burn through Ballast", f".mpk of {older}")
            if attempt(direction, target.name, lambda: convert(place / "net-full.mpk", target)):
                compare(direction, target.name, run(version, "load", target)[target.name], outputs, near=True)
            yield direction


def main():
    version = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        burns, ours = folder / "burn", folder / "ballast"
        burns.mkdir(), ours.mkdir()
        own = run(version, "save", burns)
        written = sorted(burns.iterdir())
        for part in (to_ballast(version, own, written, ours), from_ballast(version, own, written, ours), from_pytorch(version, ours), from_older(version, folder)):
            for direction in part:
                print(json.dumps(direction.line()))


if __name__ == "__main__":
    main()
