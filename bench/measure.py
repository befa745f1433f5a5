# SPDX-License-Identifier: Apache-2.0
"""Ours and a peer's in turn: medians, spread, ratio; time and memory of whole processes."""
import json
import os
import pathlib
import statistics
import subprocess
import time
from collections import namedtuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BALLAST_BENCH_BUILD", "build/release")  # another one to try a job out; its times mean nothing
BALLAST = BUILD / "bin/ballast"
BENCH = BUILD / "bench"


class Table:
    HEAD = "| job | ours | against | its time | ours / its | spread | aim | note |\n|---|---|---|---|---|---|---|---|"

    def __init__(self, rounds):
        self.rounds, self.rows, self.job = rounds, [], ""

    def section(self, job):
        self.job = job

    def compare(self, job, ours, peer, peer_name, aim="", note=""):
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
        self.add(job, mine, theirs, peer_name, aim, spread, note)

    def add(self, job, mine, theirs, peer_name, aim="", spread=0.0, note="", unit="ms"):
        """Seconds, or with another unit thousands of it."""
        self.rows.append({"section": self.job, "job": job, "ours_ms": mine * 1e3, "peer": peer_name, "peer_ms": theirs * 1e3,
                          "ours_over_peer": mine / theirs if theirs else None, "spread": spread, "aim": aim, "note": note, "rounds": self.rounds, "unit": unit})
        print(self.line(self.rows[-1]), flush=True)

    @staticmethod
    def reached(row):
        """Whether its aim is; None where there is none that can be computed."""
        if not row["aim"].startswith("≤ ") or not row["peer_ms"]:
            return None
        return row["ours_over_peer"] <= float(row["aim"].removeprefix("≤ "))

    @staticmethod
    def line(row):
        unit = row.get("unit", "ms")
        ratio, theirs = (f"{row['ours_over_peer']:.3g}", f"{row['peer_ms']:.2f} {unit}") if row["peer_ms"] else ("–", "–")
        aim = row["aim"] + {True: " ✓", False: " **missed**", None: ""}[Table.reached(row)]
        return f"| {row['job']} | {row['ours_ms']:.2f} {unit} | {row['peer']} | {theirs} | {ratio} | ±{row['spread'] / 2:.0%} | {aim} | {row['note']} |"


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(*command, **options):
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL, **options)


# A child counts its parent's memory as its own peak until it runs its program: this parent is small.
MEASURE = """
import json, os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), time.perf_counter() - start, usage.ru_maxrss / 1024, usage.ru_minflt + usage.ru_majflt]))
"""


Process = namedtuple("Process", "seconds peak_mb faults")


def process(*command, expect=(0,)):
    """Wall time, peak resident set (MB) and page faults of one process."""
    done = subprocess.run(["/usr/bin/python3", "-ES", "-c", MEASURE, *map(str, command)], check=True, capture_output=True, text=True)
    code, *measured = json.loads(done.stdout)
    if code not in expect:
        raise SystemExit(f"{command} exited with {code}: {done.stderr}")
    return Process(*measured)


def forget(*paths):
    """The files leave the page cache, as after a restart; what was not written yet is written first."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


class Served:
    """A benchmark program that answers each line with wall and CPU seconds."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.process.args[0]} ended")
        return tuple(map(float, answer.split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def turns(rounds, sides):
    """(wall, CPU) medians of each side, which take turns; the first round does not count."""
    times = [[] for _ in sides]
    for number in range(rounds + 1):
        for side, work in enumerate(sides):
            seconds = work()
            if number > 0:
                times[side].append(seconds)
    return [tuple(map(statistics.median, zip(*each))) for each in times]


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
