# SPDX-License-Identifier: Apache-2.0
"""Files to a GPU: gpu_load beside safetensors and torch, taking turns, the file in the page cache; and beside bare pinned copies.

    python3 bench/gpu/gpu.py PATH/TO/gpu_load [--gigabytes 7] [--rounds 7] [--dir FOLDER]

Needs a CUDA build of torch; safetensors is measured where it is installed.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch


class Ours:
    """One running gpu_load."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ring_seconds = float(self.process.stdout.readline().split()[1])

    def ask(self, verb, what):
        self.process.stdin.write(f"{verb} {what}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"gpu_load stopped at {verb} {what}")
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    kept = work()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    del kept
    torch.cuda.empty_cache()
    return seconds


def llama_like(gigabytes):
    """Shapes of a decoder in bf16, random bits that are finite numbers."""
    block = {"self_attn.q_proj": (4096, 4096), "self_attn.k_proj": (1024, 4096), "self_attn.v_proj": (1024, 4096), "self_attn.o_proj": (4096, 4096),
             "mlp.gate_proj": (14336, 4096), "mlp.up_proj": (14336, 4096), "mlp.down_proj": (4096, 14336), "input_layernorm": (4096,)}
    state, size, layer = {}, 0, 0
    while size < gigabytes * 1e9:
        for name, shape in block.items():
            tensor = torch.randint(-16000, 16000, shape, dtype=torch.int16).view(torch.bfloat16)
            state[f"model.layers.{layer}.{name}.weight"] = tensor
            size += tensor.nbytes
        layer += 1
    return state, size


def in_turn(rounds, works):
    """Medians; the first round does not count."""
    times = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            seconds = work()
            if number > 0:
                times[name].append(seconds)
    return {name: statistics.median(all_of) for name, all_of in times.items()}


def settings_of(program, path, size, rounds):
    """The rates of several rings, and the best of them."""
    best = None
    for io in ("map", "read"):
        for threads, piece in ((4, 4), (8, 1), (8, 2), (8, 4), (12, 1), (12, 2), (16, 1), (16, 2)):
            options = ("--threads", str(threads), "--piece", str(piece << 20), "--io", io)
            ours = Ours(program, *options)
            load, limit = in_turn(rounds, {"load": lambda: ours.ask("load", path), "limit": lambda: ours.ask("limit", size)}).values()
            print(f"| {io}, {threads} threads, pieces of {piece} MiB, ring {threads * 2 * piece} MiB made in {ours.ring_seconds * 1e3:.0f} ms "
                  f"| {size / load / 1e9:.1f} GB/s | pinned copies {size / limit / 1e9:.1f} GB/s | {limit / load:.2f} |", flush=True)
            ours.close()
            if best is None or load < best[0]:
                best = (load, options)
    return best[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--gigabytes", type=float, default=7)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ballast-gpu-", dir=options.dir))
    state, size = llama_like(options.gigabytes)
    pt = folder / "model.pt"
    torch.save(state, pt)
    files = {"pt": pt}
    try:
        import safetensors.torch
        files["safetensors"] = folder / "model.safetensors"
        safetensors.torch.save_file(state, files["safetensors"])
    except ImportError:
        print("safetensors is not installed: not measured")
    del state
    print(f"{torch.cuda.get_device_name()}, {os.cpu_count()} cores, torch {torch.__version__}, {size / 1e9:.2f} GB\n")
    print("| ring | load | limit | load / limit |\n|---|---|---|---|")
    ours = Ours(options.program, *settings_of(options.program, files.get("safetensors", pt), size, 3))
    for path in files.values():
        ours.ask("check", path)
    print("\nevery byte on the device equals the file's\n\n| job | GB/s | against | GB/s | faster |\n|---|---|---|---|---|")
    for name, path in files.items():
        works = {"ours": lambda: ours.ask("load", path), "pinned copies alone": lambda: ours.ask("limit", size)}
        if name == "safetensors":
            works["safetensors.torch.load_file(device='cuda')"] = lambda: timed(lambda: safetensors.torch.load_file(path, device="cuda"))
        else:
            works["torch.load(map_location='cuda')"] = lambda: timed(lambda: torch.load(path, map_location="cuda", weights_only=True))
            works["the same, mmap=True"] = lambda: timed(lambda: torch.load(path, map_location="cuda", weights_only=True, mmap=True))
        medians = in_turn(options.rounds, works)
        mine = medians.pop("ours")
        for peer, theirs in medians.items():
            print(f"| .{name} to the GPU | {size / mine / 1e9:.1f} | {peer} | {size / theirs / 1e9:.1f} | {theirs / mine:.2f} x |", flush=True)
    ours.close()
    for path in files.values():
        path.unlink()
    folder.rmdir()


if __name__ == "__main__":
    main()
