"""The job "forward": whole models against torch (eager) and ONNX Runtime, in turn, with one thread and with two."""
import json
import os
import shutil
import statistics
import subprocess
import time

import torch

import forward_peers
from measure import BENCH, ROOT, Served, turns

ORT = "onnxruntime-node@1.17.3"


def torch_seconds(module, inputs):
    """Wall and CPU seconds: medians of as many runs as fit into a tenth of a second, three at least unless they take seconds."""
    wall, cpu = [], []
    module(*inputs)
    while sum(wall) < 0.1 or (len(wall) < 3 and sum(wall) < 1):
        start, cpu_start = time.perf_counter(), time.process_time()
        module(*inputs)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    return statistics.median(wall), statistics.median(cpu)


def onnxruntime_folder(cache):
    """Where node finds ONNX Runtime; None, with a line that says why, when it does not. Its binaries are in the package; --ignore-scripts because
    installing it would fetch those for GPUs."""
    if not shutil.which("npm"):
        print("ONNX Runtime left out: no npm", flush=True)
        return None
    cache.mkdir(parents=True, exist_ok=True)
    if not (cache / "node_modules/onnxruntime-node").is_dir():
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", ORT], cwd=cache, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    tried = subprocess.run(["node", "-e", "require('onnxruntime-node')"], cwd=cache, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        print(f"ONNX Runtime left out: node cannot load {ORT}: {(tried.stderr.strip().splitlines() or ['?'])[-1]}", flush=True)
        return None
    return cache


def written_for_onnx(folder, peers):
    """name: the line ort.js takes. One model's export serves all names that share it and its inputs' shapes."""
    lines = {}
    for number, (name, (module, inputs)) in enumerate(peers.items()):
        model, given = folder / f"{number}.onnx", folder / f"{number}.json"
        forward_peers.export(module, inputs, model)
        given.write_text(json.dumps([{"dtype": "int64" if t.dtype == torch.int64 else "float32", "shape": list(t.shape)} for t in inputs]))
        lines[name] = f"{model} {given}"
    return lines


def job_forward(table, folder):
    peers = forward_peers.peers()
    ort_folder = onnxruntime_folder(ROOT / "build/onnxruntime")
    lines = written_for_onnx(folder, peers) if ort_folder else {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        ours = Served([BENCH / "forward_bench", "--serve", "--threads", threads])
        ort = Served(["node", ROOT / "bench/ort.js", threads], env={**os.environ, "NODE_PATH": str(ort_folder / "node_modules")}) if ort_folder else None
        with torch.no_grad():
            for name, (module, inputs) in peers.items():
                sides = [lambda: ours.ask(name), lambda: torch_seconds(module, inputs)] + ([lambda: ort.ask(lines[name])] if ort else [])
                mine, *others = turns(table.rounds, sides)
                label = f"{name}, {threads} thread{'s' * (threads > 1)}"
                for other, peer, aim in zip(others, (f"torch {torch.__version__}", "ONNX Runtime 1.17.3"), ("≤ 0.8", "≤ 1.0")):
                    table.add(label, mine[0], other[0], peer, aim, 0, f"CPU seconds: {mine[1] / other[1]:.3f}")
        ours.close()
        if ort:
            ort.close()
