# SPDX-License-Identifier: Apache-2.0
"""Ballast beside its peers, in one run.

Every job runs ours and the peer's in turn, `--rounds` times after one round that does not count, and prints the medians and their ratio. Files
are made in a temporary folder (or --dir) and removed. Numbers of different runs are not comparable on a shared machine; ratios are.
"""
import argparse
import importlib
import json
import os
import pathlib
import platform
import shutil
import sys
import tempfile

import glance
from document import document
from measure import Table

# job: the module that has job_<name>
JOBS = {"open": "files", "list": "read", "open-pt": "files", "big": "files", "read": "read", "cold": "read", "python": "python_module", "load": "load", "load-cast": "load", "load-big": "load", "save": "files",
        "convert": "files", "proof": "files", "cast": "compute", "packed": "compute", "seal": "seal", "ops": "compute", "forward": "forward", "threads": "threads", "peers": "peers", "memory": "memory", "grow": "grow"}


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.release().split('-')[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--peers", action="store_true", help="models beside today's PyTorch, ONNX Runtime and OpenVINO, which `scripts/peers core run` installs; not part of a run of all jobs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir")
    parser.add_argument("--json")
    parser.add_argument("--markdown", help="the table as a document, with the machine, the command and bench/remarks.md")
    parser.add_argument("--from", dest="taken", nargs="*", default=[], metavar="JSON", help="rows of earlier runs on this machine, in front")
    options = parser.parse_args()
    unknown = [job for job in options.jobs if job not in JOBS]
    if unknown:
        parser.error(f"no job {unknown[0]}; there are {', '.join(JOBS)}")
    table = Table(options.rounds)
    for path in options.taken:
        table.rows += json.loads(pathlib.Path(path).read_text())["rows"]
    print(Table.HEAD)
    jobs = options.jobs or [job for job in JOBS if job != "peers" and not options.peers]
    for job in jobs + ["peers"] * (options.peers and "peers" not in jobs):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ballast-bench-", dir=options.dir))
        try:
            table.section(job)
            getattr(importlib.import_module(JOBS[job]), "job_" + job.replace("-", "_"))(table, folder)
        finally:
            shutil.rmtree(folder)
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps({"schema": 1, "machine": machine(), "rounds": options.rounds, "rows": table.rows}, indent=1) + "\n")
    if options.markdown:
        page = pathlib.Path(options.markdown)
        page.write_text(document(table.rows, machine(), "scripts/bench"))
        glance.write(page)


if __name__ == "__main__":
    sys.exit(main())
