# SPDX-License-Identifier: Apache-2.0
"""The job "peers": whole models beside today's PyTorch (eager, compiled), ONNX Runtime and OpenVINO, which scripts/peers installs (core, run), in turn.

BALLAST_BENCH_PYTHON: another Python that has them; those it has not are left out. BALLAST_BENCH_THREADS: counts of threads, "1,2,16"; else 1, 2 and all cores.
"""
import math
import os
import subprocess
import sys

from measure import BENCH, ROOT, Served, turns
from threads import plural

sys.path.insert(0, str(ROOT / "tests/peers"))
import places  # noqa: E402

AIMS = {"torch": "≤ 0.7", "compile": "≤ 0.9", "onnxruntime": "≤ 0.95", "openvino": "≤ 0.95"}
MODELS = ("ResNet-18, batch 1", "ResNet-18, batch 8", "ResNet-50, batch 1", "ResNet-50, batch 8", "MobileNet-v2, batch 1", "MobileNet-v2, batch 8", "ViT-B/16, batch 1",
          "BERT base, 128 tokens", "GPT-2 small, prefill 128", "GPT-2 small, one token after 128", "GPT-2 small, one token after 128, batch 8",
          "U-Net, 256 x 256, batch 1", "U-Net, 256 x 256, batch 8", "LSTM tagger, 64 words", "LSTM tagger, 64 words, batch 8")  # fmt: skip


def python():
    return os.environ.get("BALLAST_BENCH_PYTHON", places.python_of("run"))


def counts():
    said = os.environ.get("BALLAST_BENCH_THREADS")
    cores = len(os.sched_getaffinity(0))
    return [int(count) for count in said.split(",")] if said else sorted({1, min(2, cores), cores})


def started(peer, threads, folder):
    """A peer that runs, and its name; None, with a line, where it is not installed."""
    wanted = os.environ.get("BALLAST_BENCH_PEERS")
    if wanted and peer not in wanted.split(","):
        return None
    served = Served([python(), ROOT / "bench/peer_server.py", peer, threads, folder], env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    name = served.process.stdout.readline().strip()
    if name:
        return served, name
    print(f"{peer} left out: {python()} cannot run it", flush=True)
    served.process.wait()
    return None


def job_peers(table, folder):
    if not os.access(python(), os.X_OK):
        raise SystemExit("bench: PyTorch, ONNX Runtime and OpenVINO are not installed: scripts/peers core run")
    subprocess.run([str(python()), str(ROOT / "bench/peer_server.py"), "export", "1", str(folder)], check=True, stdout=subprocess.DEVNULL)
    for threads in counts():
        ours = Served([BENCH / "forward_bench", "--serve", "--threads", threads])
        servers = {peer: found for peer in AIMS if (found := started(peer, threads, folder))}
        for name in MODELS:
            mine, *others = turns(table.rounds, [lambda: ours.ask(name)] + [lambda served=served: served.ask(name) for served, _ in servers.values()])
            for (peer, (_, version)), theirs in zip(servers.items(), others):
                if not math.isnan(theirs[0]):
                    table.add(f"{name}, {plural(threads, 'thread')}", mine[0], theirs[0], version, AIMS[peer], 0, f"CPU seconds: {mine[1] / theirs[1]:.2f}")
        for served, _ in servers.values():
            served.close()
        ours.close()
