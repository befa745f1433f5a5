# SPDX-License-Identifier: Apache-2.0
"""Jobs on whole files by the command: ls, convert, save, diff, hash; and how their cost grows."""
import os
import shutil
import statistics
import subprocess

from measure import BALLAST, BENCH, process, report_pairs, run, timed
from workloads import llama_like, tiny, write_safetensors


def use_of(done):
    return f"peak {done.peak_mb:.0f} MB, {done.faults:,} page faults"


def job_open(table, folder):
    path = folder / "tiny.safetensors"
    write_safetensors(path, tiny(100_000), 100_000 * 32)
    done = min(process(BALLAST, "ls", path) for _ in range(table.rounds))
    run(BENCH / "open_bench", "--benchmark_min_time=0.2", f"--benchmark_repetitions={table.rounds}", "--benchmark_out=" + str(folder / "open.json"),
        "--benchmark_out_format=json", env={**os.environ, "BALLAST_BENCH_FOLDER": str(folder)})
    report_pairs(table, folder / "open.json")
    plain = statistics.median(timed(lambda: path.read_bytes()) for _ in range(table.rounds))
    table.add("ballast ls, 100,000 tensors, whole process", done.seconds, plain, "plain read of the file", "", 0, use_of(done))


def job_open_pt(table, folder):
    import torch
    path = folder / "tiny.pt"
    torch.save({name: torch.ones(8) for name, *_ in tiny(100_000)}, path)
    table.compare("open + list .pt, 100,000 tensors, whole process", lambda: run(BALLAST, "ls", path), lambda: torch.load(path, weights_only=True) and None,
                  "torch.load(weights_only=True), import not counted", "≤ 0.01")


def job_big(table, folder):
    path = folder / "big.safetensors"
    size = 64 << 20
    write_safetensors(path, [(f"layer.{i}", "BF16", [size // 2], i * size, (i + 1) * size) for i in range(160)], 160 * size)
    done = min(process(BALLAST, "ls", path) for _ in range(table.rounds))
    table.add("ballast ls, 10 GB file, whole process", done.seconds, process("/bin/true").seconds, "starting a process that does nothing", "< 10 ms", 0, use_of(done) + " (aim < 50 MB)")


def job_convert(table, folder):
    llama_like(folder, 2)
    source, target = folder / "model.pt", folder / "model.safetensors"

    def copy():
        # To a new file, as ours does: to overwrite one would use its memory again, which is faster than new memory.
        run("cp", "--reflink=never", source, folder / "copy.new")
        run("sync", folder / "copy.new")
        os.replace(folder / "copy.new", folder / "copy.pt")

    table.compare("convert .pt → safetensors, 2 GB, durable", lambda: run(BALLAST, "convert", "-f", source, target), copy, "cp and sync", "≤ 1.0")
    table.compare("convert .pt → safetensors as f32 → 4 GB, durable", lambda: run(BALLAST, "convert", "-f", "--dtype", "f32", source, folder / "wide.safetensors"), copy,
                  "cp and sync of the 2 GB", "")
    (folder / "wide.safetensors").unlink()
    done = process(BALLAST, "convert", "-f", source, target)
    table.add("the first of these, once more", done.seconds, 0, "-", "< 50 MB", 0, use_of(done))
    for way in ("pt", "npz", "bpk", "mpk"):
        table.compare(f"convert safetensors → {way}, 2 GB, durable", lambda: run(BALLAST, "convert", "-f", target, folder / f"out.{way}"), copy, "cp and sync", "")
        (folder / f"out.{way}").unlink()


def job_save(table, folder):
    import torch
    state = llama_like(folder, 1)
    run(BALLAST, "convert", "-f", folder / "model.pt", folder / "model.safetensors")
    table.compare("write .pt, 1 GB (ours: from a file, durable)", lambda: run(BALLAST, "convert", "-f", folder / "model.safetensors", folder / "out.pt"),
                  lambda: torch.save(state, folder / "peer.pt"), "torch.save from memory, not durable", "≤ 0.25")


def job_proof(table, folder):
    """diff and hash of 2 GB in 30 tensors: equal files, files where every tensor differs in one value, and a record's checksums."""
    size, count = 64 << 20, 30
    entries = [(f"layer.{i}", "F32", [size // 4], i * size, (i + 1) * size) for i in range(count)]
    block, other = (bytes(b & 0x3F if i % 4 == 3 else b for i, b in enumerate(os.urandom(1 << 16))) * (size >> 16) for _ in range(2))
    a, b, c, d = (folder / f"{name}.safetensors" for name in "abcd")
    write_safetensors(a, entries, 0, (block for _ in entries))
    shutil.copyfile(a, b)
    write_safetensors(c, entries, 0, (block[:-4] + b"\0\0\0\0" for _ in entries))
    write_safetensors(d, entries, 0, (other for _ in entries))
    run("sync", a, b, c, d)

    def read(*paths):
        for path in paths:
            run("dd", f"if={path}", "of=/dev/null", "bs=256K", stderr=subprocess.DEVNULL)

    def differ(file):
        subprocess.run([str(BALLAST), "diff", str(a), str(file)], stdout=subprocess.DEVNULL)

    table.compare("diff of two equal files of 2 GB", lambda: run(BALLAST, "diff", a, b), lambda: run("cmp", a, b), "cmp", "≤ 0.67")
    table.compare("diff of two equal files of 2 GB", lambda: run(BALLAST, "diff", a, b), lambda: read(a, b), "dd of both, one thread", "≤ 1.1")
    table.compare("diff of 2 GB where every tensor differs in a value", lambda: differ(c), lambda: run("cmp", a, b), "cmp of equal files", "")
    table.compare("diff of 2 GB where every value differs", lambda: differ(d), lambda: run("cmp", a, b), "cmp of equal files", "")
    table.compare("hash of 2 GB, two threads", lambda: run(BALLAST, "hash", a), lambda: run("sha256sum", a), "sha256sum", "≤ 0.55")
    table.compare("the same, one thread", lambda: run(BALLAST, "hash", "-j", "1", a), lambda: run("openssl", "dgst", "-sha256", a), "openssl dgst -sha256", "≤ 1.1")
    table.compare("verify of 2 GB, two threads", lambda: run(BALLAST, "verify", a), lambda: read(a), "dd, one thread", "")
    table.compare("stats of 2 GB, two threads", lambda: run(BALLAST, "stats", a), lambda: read(a), "dd, one thread", "")
    for name, *files in (("diff", a, b), ("diff", a, d), ("hash", a), ("verify", a), ("stats", a)):
        done = process(BALLAST, name, *files, expect=(0, 1))
        table.add(f"{name} {' '.join(file.stem for file in files)}, once more", done.seconds, 0, "-", "< 50 MB", 0, use_of(done))
