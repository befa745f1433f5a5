# SPDX-License-Identifier: Apache-2.0
"""Loading a model beside torch.load and load_state_dict."""
import json
import statistics
import subprocess

from measure import BENCH, ROOT
from workloads import write_safetensors


def answer(*command):
    return json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout)


def job_load(table, folder):
    """A struct loaded from a file of PyTorch's, a process each time, the file in the page cache; the process's start and imports are not counted."""
    make = ROOT / "tests/fixtures/models/make.py"
    subprocess.run(["/usr/bin/python3", "-B", str(make), "--weights", str(folder)], check=True)
    for model in ("resnet50", "vit_b_16", "gpt2"):
        path = folder / f"{model}.pt"
        ours, peers = [], []
        for number in range(table.rounds + 1):
            mine, theirs = answer(BENCH / "load_bench", model, path), answer("/usr/bin/python3", "-B", ROOT / "bench/torch_load.py", model, path)
            if number > 0:
                ours.append(mine)
                peers.append(theirs)
        middle = lambda rows, key: statistics.median(row[key] for row in rows)  # noqa: E731
        size = path.stat().st_size / 1e6
        spread = lambda key: (max(r[key] for r in ours) - min(r[key] for r in ours)) / middle(ours, key)  # noqa: E731
        theirs, grown = middle(peers, "seconds"), middle(peers, "rss_mb")
        table.add(f"load {model}, {size:.0f} MB", middle(ours, "seconds"), theirs, "torch.load + load_state_dict", "≤ 0.5", spread("seconds"),
                  f"grew by {middle(ours, 'rss_mb'):.0f} MB; torch by {grown:.0f} MB, {middle(peers, 'peak_mb'):.0f} MB at its peak with the model it needs first")
        table.add(f"load {model} and read every byte", middle(ours, "read_seconds"), theirs, "torch.load + load_state_dict", "", spread("read_seconds"),
                  f"grew by {middle(ours, 'read_rss_mb'):.0f} MB, pages of the file")


def job_load_cast(table, folder):
    """The same with another dtype, which needs every byte."""
    make = ROOT / "tests/fixtures/models/make.py"
    subprocess.run(["/usr/bin/python3", "-B", str(make), "--weights", str(folder)], check=True)
    for dtype in ("f16", "bf16"):
        ours, peers = [], []
        for number in range(table.rounds + 1):
            mine = answer(BENCH / "load_bench", "vit_b_16", folder / "vit_b_16.pt", dtype)["read_seconds"]
            theirs = answer("/usr/bin/python3", "-B", ROOT / "bench/torch_load.py", "vit_b_16", folder / "vit_b_16.pt", dtype)["seconds"]
            if number > 0:
                ours.append(mine)
                peers.append(theirs)
        middle = statistics.median(ours)
        table.add(f"load vit_b_16 as {dtype} and read every byte", middle, statistics.median(peers), "torch.load + load_state_dict + to", "≤ 0.5", (max(ours) - min(ours)) / middle)


def job_load_big(table, folder):
    """Eight GiB into a struct. The file is a hole: pages nobody wrote are zeros, which is all a load that reads no data needs."""
    path = folder / "wide.safetensors"
    size = 4096 * 4096 * 4
    write_safetensors(path, [(f"layers.{i}.weight", "F32", [4096, 4096], i * size, (i + 1) * size) for i in range(128)], 128 * size)
    rows = [answer(BENCH / "load_bench", "wide", path) for _ in range(2)]
    best = min(rows, key=lambda row: row["seconds"])
    table.add("load 8 GiB zero-copy (a sparse file)", best["seconds"], 0, "-", "", 0, f"grew by {best['rss_mb']:.1f} MB (aim < 100)")
