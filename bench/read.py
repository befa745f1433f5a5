# SPDX-License-Identifier: Apache-2.0
"""Opening, reading and loading into memory, inside one process, against the machine's own limits and against torch."""
import os

from measure import BALLAST, BENCH, Served, forget, run, timed
from workloads import legacy, llama_like, nested, one_tensor, tiny, write_safetensors


def job_read(table, folder):
    """4 GB: a decoder's matrices in bf16 as .pt, as Safetensors and as 16 shards; one tensor of 4 GB. Warm, one thread and two."""
    import torch
    files = folder / "files"
    files.mkdir()
    llama_like(files, 4, "layers.pt")
    run(BALLAST, "convert", files / "layers.pt", files / "layers.safetensors")
    run(BALLAST, "shard", files / "layers.safetensors", files / "shards", "--size", "270MB")
    one_tensor(files / "one.safetensors", 4)
    for threads in (1, 2):
        served = Served([BENCH / "read_bench", "--serve", "--threads", threads, "--seconds", "0"], env={**os.environ, "BALLAST_BENCH_FOLDER": str(files)})
        ask = lambda line: served.ask(line)[0]  # noqa: E731
        for name in ("layers.safetensors", "layers.pt", "one.safetensors"):
            table.compare(f"open and read every byte in place, {name}, {threads} thr.", lambda: ask(f"read in place {name}"), lambda: ask(f"bare map {name}"),
                          "bare mmap and sum", "≤ 1.15")
            table.compare(f"load into memory, {name}, {threads} thr.", lambda: ask(f"bring into memory {name}"), lambda: ask(f"bare reads {name}"),
                          "bare reads into new memory", "≤ 1.11")
        table.compare(f"load into memory, 16 shards, {threads} thr.", lambda: ask("bring into memory shards"), lambda: ask("bare reads layers.safetensors"),
                      "bare reads of one file into new memory", "≤ 1.11")
        torch.set_num_threads(threads)
        table.compare(f"load into memory, layers.pt, {threads} thr.", lambda: ask("bring into memory layers.pt"),
                      lambda: torch.load(files / "layers.pt", weights_only=True) and None, f"torch {torch.__version__} load", "≤ 0.5")
        served.close()


def job_cold(table, folder):
    """2 GB that are not in the page cache, whole processes."""
    llama_like(folder, 2)
    source = folder / "model.pt"

    def cold(*command):
        forget(source)
        return timed(lambda: run(*command))

    table.compare("verify, 2 GB, cold", lambda: cold(BALLAST, "verify", source), lambda: cold("cat", source), "cat", "")
    for way in ("map", "read", "direct"):
        table.compare(f"hash --io {way}, 2 GB, cold", lambda: cold(BALLAST, "hash", "--io", way, source), lambda: cold("dd", f"if={source}", "of=/dev/null", "bs=4M", "iflag=direct", "status=none"),
                      "dd iflag=direct, one thread", "")
    files = folder / "files"
    files.mkdir()
    (files / "model.pt").symlink_to(source)
    served = Served([BENCH / "read_bench", "--serve", "--threads", 2, "--seconds", "0"], env={**os.environ, "BALLAST_BENCH_FOLDER": str(files)})

    def cold_case(name):
        forget(source)
        return served.ask(name + " model.pt")[0]

    table.compare("read every byte in place, 2 GB, cold", lambda: cold_case("read in place"), lambda: cold_case("bare map"), "bare mmap and sum", "≤ 1.15")
    table.compare("load into memory, 2 GB, cold", lambda: cold_case("bring into memory"), lambda: cold_case("bare reads"), "bare reads into new memory", "≤ 1.11")
    served.close()
    table.compare("ls, 2 GB, cold", lambda: cold(BALLAST, "ls", source), lambda: cold("head", "-c", "65536", source), "head -c 65536", "")


def job_list(table, folder):
    """Open and list inside one process: many tensors, deep nesting, a legacy file."""
    import torch
    files = folder / "files"
    files.mkdir()
    for count in (1_000, 10_000, 100_000):
        torch.save({name: torch.ones(8) for name, *_ in tiny(count)}, files / f"{count}.pt")
        write_safetensors(files / f"{count}.safetensors", tiny(count), count * 32)
    nested(files / "nested.pt")
    legacy(files / "legacy.pt", 10_000)
    served = Served([BENCH / "read_bench", "--serve", "--threads", 1], env={**os.environ, "BALLAST_BENCH_FOLDER": str(files)})
    ask = lambda line: served.ask(line)[0]  # noqa: E731
    for name in ("1000.pt", "10000.pt", "100000.pt", "nested.pt", "legacy.pt"):
        safe = name != "nested.pt"  # torch 1.13's own weights_only does not know Python's floats
        table.compare(f"open + list {name}", lambda: ask(f"list {name}"), lambda: torch.load(files / name, weights_only=safe) and None,
                      f"torch {torch.__version__} load(weights_only={safe})", "≤ 0.01")
    try:
        import safetensors
    except ImportError:
        safetensors = None
    for count in (1_000, 10_000, 100_000):
        name = f"{count}.safetensors"
        if safetensors:
            table.compare(f"open + list {name}", lambda: ask(f"list {name}"), lambda: len(safetensors.safe_open(files / name, "np").keys()) and None,
                          f"safetensors {safetensors.__version__}", "≤ 0.1")
        table.compare(f"open {name}, look up one tensor", lambda: ask(f"look up {name}"), lambda: ask(f"list {name}"), "open and list all", "")
    served.close()
