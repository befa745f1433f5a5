"""Ballast beside its peers, in one run.

Every job runs ours and the peer's in turn, `--rounds` times after one round that does not count, and prints the medians and their ratio. Files
are made in a temporary folder (or --dir) and removed. Numbers of different runs are not comparable on a shared machine; ratios are.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BALLAST = ROOT / "build/release/bin/ballast"
BENCH = ROOT / "build/release/bench"


class Table:
    def __init__(self, rounds):
        self.rounds, self.rows = rounds, []

    def compare(self, job, ours, peer, peer_name, aim=""):
        """Runs both in turn; each is a function that does the work and may return its own seconds."""
        times = ([], [])
        for number in range(self.rounds + 1):
            for side, work in enumerate((ours, peer)):
                start = time.perf_counter()
                seconds = work()
                seconds = time.perf_counter() - start if seconds is None else seconds
                if number > 0:
                    times[side].append(seconds)
        mine, theirs = map(statistics.median, times)
        spread = (max(times[0]) - min(times[0])) / mine
        self.add(job, mine, theirs, peer_name, aim, spread)

    def add(self, job, mine, theirs, peer_name, aim="", spread=0.0, note=""):
        row = {"job": job, "ours_ms": mine * 1e3, "peer": peer_name, "peer_ms": theirs * 1e3,
               "ours_over_peer": mine / theirs if theirs else None, "spread": spread, "aim": aim, "note": note}
        self.rows.append(row)
        ratio = f"{row['ours_over_peer']:.3f}" if theirs else "-"
        print(f"| {job} | {mine * 1e3:.2f} ms | {peer_name} | {theirs * 1e3:.2f} ms | {ratio} | ±{spread / 2:.0%} | {aim} | {note} |", flush=True)


def run(*command, **options):
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL, **options)


# A child counts its parent's memory as its own peak until it runs its program: this parent is small.
MEASURE = """
import json, os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), time.perf_counter() - start, usage.ru_maxrss / 1024]))
"""


def seconds_and_rss(*command):
    """Wall time and peak resident set (MB) of one process."""
    done = subprocess.run(["/usr/bin/python3", "-ES", "-c", MEASURE, *map(str, command)], check=True, capture_output=True, text=True)
    code, seconds, rss = json.loads(done.stdout)
    if code != 0:
        raise SystemExit(f"{command} exited with {code}: {done.stderr}")
    return seconds, rss


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


def job_open(table, folder):
    path = folder / "tiny.safetensors"
    write_safetensors(path, tiny(100_000), 100_000 * 32)
    seconds, rss = min(seconds_and_rss(BALLAST, "ls", path) for _ in range(table.rounds))
    run(BENCH / "open_bench", "--benchmark_min_time=0.2", f"--benchmark_repetitions={table.rounds}", "--benchmark_out=" + str(folder / "open.json"),
        "--benchmark_out_format=json", env={**os.environ, "BALLAST_BENCH_FOLDER": str(folder)})
    report_pairs(table, folder / "open.json")
    plain = statistics.median(timed(lambda: path.read_bytes()) for _ in range(table.rounds))
    table.add("ballast ls, 100,000 tensors, whole process", seconds, plain, "plain read of the file", "", 0, f"peak {rss:.0f} MB")


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def job_big(table, folder):
    path = folder / "big.safetensors"
    size = 64 << 20
    write_safetensors(path, [(f"layer.{i}", "BF16", [size // 2], i * size, (i + 1) * size) for i in range(160)], 160 * size)
    seconds, rss = min(seconds_and_rss(BALLAST, "ls", path) for _ in range(table.rounds))
    table.add("ballast ls, 10 GB file, whole process", seconds, seconds_and_rss("/bin/true")[0], "starting a process that does nothing", "< 10 ms", 0, f"peak {rss:.0f} MB (aim < 50)")


def job_open_pt(table, folder):
    import torch
    path = folder / "tiny.pt"
    torch.save({name: torch.ones(8) for name, *_ in tiny(100_000)}, path)
    table.compare("open + list .pt, 100,000 tensors, whole process", lambda: run(BALLAST, "ls", path), lambda: torch.load(path, weights_only=True) and None,
                  "torch.load(weights_only=True), import not counted", "≤ 0.01")


def llama_like(folder, gigabytes):
    """A .pt of bf16 matrices by torch, and the same tensors as safetensors by us."""
    import torch
    torch.manual_seed(0)
    rows = 4096
    count = int(gigabytes * 1e9 / (rows * 4096 * 2))
    state = {f"layers.{i}.weight": torch.randint(-30000, 30000, (rows, 4096), dtype=torch.int16).view(torch.bfloat16) for i in range(count)}
    torch.save(state, folder / "model.pt")
    return state


def job_convert(table, folder):
    llama_like(folder, 2)
    source, target = folder / "model.pt", folder / "model.safetensors"

    def copy():
        run("cp", "--reflink=never", source, folder / "copy.pt")
        run("sync", folder / "copy.pt")

    table.compare("convert .pt → safetensors, 2 GB, durable", lambda: run(BALLAST, "convert", "-f", source, target), copy, "cp and sync", "≤ 1.0")
    table.compare("convert .pt → safetensors as f32 → 4 GB, durable", lambda: run(BALLAST, "convert", "-f", "--dtype", "f32", source, target), copy, "cp and sync of the 2 GB", "")
    _, rss = seconds_and_rss(BALLAST, "convert", "-f", source, target)
    table.add("peak memory of that conversion", rss / 1e3, 0, "-", "< 50 MB", 0, f"{rss:.0f} MB")


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
    for name, *command in (("diff", a, b), ("diff, all different", a, d), ("hash", a)):
        # From a small process: a child's peak counts from what its parent had when it was born.
        script = "import os, subprocess, sys; child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL); print(os.wait4(child.pid, 0)[2].ru_maxrss)"
        rss = int(subprocess.check_output([sys.executable, "-c", script, str(BALLAST), name.split(",")[0], *map(str, command)])) / 1024
        table.add(f"peak memory of that {name}", rss / 1e3, 0, "-", "< 50 MB", 0, f"{rss:.0f} MB")


def report_pairs(table, path):
    """Google Benchmark results named JOB/ours and JOB/<peer>: one row a pair."""
    medians = {}
    for result in json.loads(path.read_text())["benchmarks"]:
        if result.get("aggregate_name") == "median":
            name = result["run_name"].replace("/real_time", "")
            scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[result["time_unit"]]
            medians[name] = result["real_time"] * scale
    for name, mine in medians.items():
        job, _, side = name.rpartition("/")
        if side != "ours":
            continue
        for other, theirs in medians.items():
            if other != name and other.rpartition("/")[0] == job:
                table.add(job, mine, theirs, other.rpartition("/")[2])


def job_cast(table, folder):
    out = folder / "cast.json"
    run(BENCH / "cast_bench", f"--benchmark_repetitions={table.rounds}", "--benchmark_min_time=0.2", "--benchmark_out=" + str(out), "--benchmark_out_format=json")
    report_pairs(table, out)


def torch_operations():
    """What the cases of ops_bench are in torch, eager."""
    import torch
    import torch.nn.functional as F
    torch.manual_seed(0)
    cases = {}

    def conv(name, inside, size, out, kernel, stride=1, groups=1):
        x, w, b = torch.randn(1, inside, size, size), torch.randn(out, inside // groups, kernel, kernel), torch.randn(out)
        run = lambda: F.relu(F.conv2d(x, w, b, stride, kernel // 2, 1, groups))  # noqa: E731
        cases[name], cases[name + " alone"] = run, run

    conv("conv 3-64 7x7/2 @224", 3, 224, 64, 7, 2)
    conv("conv 64-64 3x3 @56", 64, 56, 64, 3)
    conv("conv 128-128 3x3 @28", 128, 28, 128, 3)
    conv("conv 256-256 3x3 @14", 256, 14, 256, 3)
    conv("conv 512-512 3x3 @7", 512, 7, 512, 3)
    conv("conv 64-256 1x1 @56", 64, 56, 256, 1)
    conv("conv 1024-256 1x1 @14", 1024, 14, 256, 1)
    conv("conv 144-144 3x3 depthwise @56", 144, 56, 144, 3, 1, 144)
    x, w, b = torch.randn(128, 768), torch.randn(3072, 768), torch.randn(3072)
    y, w2, b2 = torch.randn(128, 3072), torch.randn(768, 3072), torch.randn(768)
    cases["linear 128x768x3072 gelu"] = lambda: F.gelu(F.linear(x, w, b), approximate="tanh")
    cases["linear 128x3072x768"] = lambda: F.linear(y, w2, b2)
    cases["linear 1x768x3072"] = lambda: F.linear(x[:1], w, b)
    cases["matmul 128x768x3072"] = lambda: x @ w2
    q, k, v = torch.randn(1, 128, 3, 12, 64).permute(2, 0, 3, 1, 4)
    mask = torch.full((128, 128), float("-inf")).triu(1)
    cases["attention 12x128x64 causal"] = lambda: torch.softmax(q @ k.transpose(-1, -2) * 0.125 + mask, -1) @ v
    scores, hidden, gamma = torch.randn(1536, 1024), torch.randn(1024, 768), torch.randn(768)
    cases["softmax 1536x1024"] = lambda: torch.softmax(scores, -1)
    cases["layer_norm 1024x768"] = lambda: F.layer_norm(hidden, (768,), gamma, gamma)
    cases["gelu 1024x768"] = lambda: F.gelu(hidden)
    cases["add 1024x768"] = lambda: hidden + hidden
    return cases


def job_ops(table, folder):
    """Operations against torch in turn, with one thread and with two."""
    import torch
    for threads in (1, 2):
        torch.set_num_threads(threads)
        ours = subprocess.Popen([str(BENCH / "ops_bench"), "--serve", "--threads", str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def ask(name):
            ours.stdin.write(name + "\n")
            ours.stdin.flush()
            return float(ours.stdout.readline().split()[0])

        def median_of(run):
            times = []
            while sum(times) < 0.1 or len(times) < 3:
                times.append(timed(run))
            return statistics.median(times)

        with torch.no_grad():
            for name, run in torch_operations().items():
                run()
                table.compare(f"{name}, {threads} thread{'s' * (threads > 1)}", lambda: ask(name), lambda: median_of(run), f"torch {torch.__version__}")
        ours.stdin.close()
        ours.wait()


def job_forward(table, folder):
    import forward
    forward.job(table, folder, BENCH, ROOT)


def job_load(table, folder):
    import load
    load.job(table, folder, BENCH, ROOT)


def job_load_big(table, folder):
    import load
    load.job_big(table, folder, BENCH, write_safetensors)


JOBS = {"ops": job_ops, "forward": job_forward, "open": job_open, "open-pt": job_open_pt, "big": job_big, "convert": job_convert, "save": job_save, "cast": job_cast, "proof": job_proof,
        "load": job_load, "load-big": job_load_big}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir")
    parser.add_argument("--json")
    options = parser.parse_args()
    unknown = [job for job in options.jobs if job not in JOBS]
    if unknown:
        parser.error(f"no job {unknown[0]}; there are {', '.join(JOBS)}")
    table = Table(options.rounds)
    print("| job | ours | against | its time | ours / its | spread | aim | note |\n|---|---|---|---|---|---|---|---|")
    for job in options.jobs or JOBS:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ballast-bench-", dir=options.dir))
        try:
            JOBS[job](table, folder)
        finally:
            shutil.rmtree(folder)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"schema": 1, "rows": table.rows}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
