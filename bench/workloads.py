# SPDX-License-Identifier: Apache-2.0
"""The files that are measured: made when they are needed, never committed."""
import json
import struct


def write_safetensors(path, entries, data_size, fill=None):
    """Header for (name, dtype, shape, begin, end) entries; the data is a hole in the file unless `fill` makes bytes."""
    header = {name: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]} for name, dtype, shape, begin, end in entries}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        if fill is None:
            out.truncate(8 + len(text) + data_size)
        else:
            for piece in fill:
                out.write(piece)


def tiny(count):
    return [(f"model.layers.{i // 10}.block.{i % 10}.weight", "F32", [8], i * 32, i * 32 + 32) for i in range(count)]


def llama_like(folder, gigabytes, name="model.pt"):
    """A .pt of bf16 matrices, by torch."""
    import torch
    torch.manual_seed(0)
    rows = 4096
    count = int(gigabytes * 1e9 / (rows * 4096 * 2))
    state = {f"layers.{i}.weight": torch.randint(0, 30000, (rows, 4096), dtype=torch.int16).view(torch.bfloat16) for i in range(count)}
    torch.save(state, folder / name)
    return state


def one_tensor(path, gigabytes):
    """A single tensor with bytes in it."""
    size = int(gigabytes * 1e9) // (1 << 20) * (1 << 20)
    block = bytes(range(256)) * (1 << 12)
    write_safetensors(path, [("weight", "U8", [size], 0, size)], 0, (block for _ in range(size >> 20)))


def matrices(path, megabytes):
    """Matrices of 4 MB and no bytes on the disk: the file is a hole."""
    size = 4_000_000
    count = max(1, megabytes // 4)
    write_safetensors(path, [(f"layers.{i}.weight", "F32", [1000, 1000], i * size, (i + 1) * size) for i in range(count)], count * size)


def nested(path):
    """A training checkpoint: the optimizer's state by number, lists in dicts in lists, numbers and text among them."""
    import torch
    state = {i: {"step": torch.tensor(float(i)), "exp_avg": torch.ones(4), "exp_avg_sq": torch.ones(4)} for i in range(5_000)}
    history = [[{"epoch": epoch, "loss": [0.5] * 20, "notes": {"a": {"b": {"c": "text"}}}} for epoch in range(50)] for _ in range(100)]
    torch.save({"model": {f"layers.{i}.weight": torch.ones(4) for i in range(5_000)}, "optimizer": {"state": state, "param_groups": [{"lr": 1e-3, "params": list(range(5_000))}]},
                "history": history}, path)


def legacy(path, count):
    import torch
    torch.save({name: torch.ones(8) for name, *_ in tiny(count)}, path, _use_new_zipfile_serialization=False)
