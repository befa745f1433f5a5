# SPDX-License-Identifier: Apache-2.0
"""The job "memory": what a process grows by for a model and its forward pass, beside the size of its weights and beside ONNX Runtime (scripts/peers core run)."""
import os
import subprocess

from measure import BENCH, ROOT
from peers import python

MODELS = {"ResNet-50": "ResNet-50, batch 1", "BERT base, 128 tokens": "BERT base, 128 tokens", "GPT-2 small, prefill 128": "GPT-2 small, prefill 128", "GPT-2 small, prefill 128 and words": None}


def answer(*command, **options):
    return [int(word) for word in subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout.split()]


def job_memory(table, folder):
    """Three passes with one thread. "Own" memory is anonymous; pages of a mapped file can be given back by the system at any time, and every process that maps it shares them."""
    exported = folder / "onnx"
    if os.access(python(), os.X_OK):
        exported.mkdir()
        subprocess.run([str(python()), str(ROOT / "bench/peer_server.py"), "export", "1", str(exported)], check=True, stdout=subprocess.DEVNULL)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for model, exported_as in MODELS.items():
        theirs = 0
        if exported_as and exported.is_dir():
            own, mapped, _ = answer(python(), ROOT / "bench/peer_server.py", "memory", exported_as, exported, env=environment)
            theirs = own + mapped
        for extension in ("safetensors", "record"):
            path = folder / f"model.{extension}"
            subprocess.run([str(BENCH / "memory_bench"), "save", model, str(path)], check=True)
            weights, own, mapped, peak = answer(BENCH / "memory_bench", "run", model, path, env=environment)
            path.unlink()
            note = f"own memory {own / 1e6:.0f} MB, pages of the file {mapped / 1e6:.0f}, the process at its peak {peak / 1e6:.0f}"
            for size, name, aim in ((weights, "its weights", "≤ 1.1"), (theirs, "ONNX Runtime", "≤ 1.0")):
                if size:
                    table.add(f"{model}, .{extension}, memory", (own + mapped) / 1e9, size / 1e9, name, aim, 0, note, "MB")
