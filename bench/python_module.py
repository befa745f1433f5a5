# SPDX-License-Identifier: Apache-2.0
"""The Python module's jobs beside torch's own, and beside the safetensors package where that can be imported."""
import sys

from measure import BUILD
from workloads import llama_like, tiny

sys.path.insert(0, str(BUILD / "python"))


def touched(tensors):
    import torch
    return None if sum(int(tensor.contiguous().view(torch.int16).view(-1)[::2048].sum()) for tensor in tensors.values()) else None


def job_python(table, folder):
    import ballast
    import ballast.torch
    import torch
    try:
        import safetensors.torch
    except ImportError:
        safetensors = None
    many, many_pt = folder / "many.safetensors", folder / "many.pt"
    state = {name: torch.ones(8) for name, *_ in tiny(100_000)}
    torch.save(state, many_pt)
    ballast.torch.save_file(state, many)
    load = ballast.torch.load_file

    def against_torch(job, ours, path, aim):
        table.compare(job, lambda: ours() and None, lambda: torch.load(path, weights_only=True) and None, f"torch {torch.__version__} load", aim)

    against_torch("ballast.open and list a .pt of 100,000 tensors", lambda: len(list(ballast.open(many_pt))), many_pt, "≤ 0.02")
    against_torch("load_file of that .pt", lambda: load(many_pt), many_pt, "≤ 0.1")
    against_torch("load_file of the same as Safetensors", lambda: load(many), many_pt, "≤ 0.1")
    table.compare("save_file, 100,000 tensors, durable", lambda: ballast.torch.save_file(state, folder / "a.safetensors"), lambda: torch.save(state, folder / "a.pt"), "torch.save", "≤ 0.25")
    large, large_pt = folder / "model.safetensors", folder / "model.pt"
    llama_like(folder, 2)
    ballast.convert(large_pt, large)
    against_torch("load_file of a .pt of 2 GB, a value in each page read", lambda: touched(load(large_pt)), large_pt, "≤ 0.5")
    against_torch("the same into memory of its own", lambda: load(large_pt, backend="pread"), large_pt, "≤ 0.5")
    if safetensors:
        for name, path in (("100,000 tensors", many), ("2 GB", large)):
            table.compare(f"load_file, {name}, a value in each page read", lambda: touched(load(path)), lambda: touched(safetensors.torch.load_file(path)), f"safetensors {safetensors.__version__}", "≤ 1.0")
