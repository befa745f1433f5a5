# SPDX-License-Identifier: Apache-2.0
"""What load_bench does, by PyTorch: torch_load.py MODEL FILE [f16|bf16] prints {"seconds", "rss_mb", …} of torch.load and load_state_dict, imports not counted."""
import json
import os
import pathlib
import resource
import sys
import time

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/fixtures/models"))
import make  # noqa: E402


def resident_mb():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


torch.set_num_threads(2)
before, start = resident_mb(), time.perf_counter()
model = make.MODELS[sys.argv[1]]()
built, built_at = time.perf_counter() - start, resident_mb()
model.load_state_dict(torch.load(sys.argv[2], weights_only=True))
if len(sys.argv) > 3:
    model.to({"f16": torch.float16, "bf16": torch.bfloat16}[sys.argv[3]])
print(json.dumps({"seconds": time.perf_counter() - start - built, "build_seconds": built, "rss_mb": resident_mb() - built_at, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6 - before}))
