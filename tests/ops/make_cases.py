#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases for every operation, with the results of this machine's torch.

    make_cases.py OUT.safetensors             60 cases each, for the tests of a machine with torch
    make_cases.py --small OUT.safetensors     3 small ones each: tests/ops/cases.safetensors, committed, for machines without

Without torch it removes OUT and does nothing else: the tests then use the committed cases.
"""
import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--count", type=int)
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        options.out.unlink(missing_ok=True)
        print("no torch: the committed cases serve")
        return
    torch.set_num_threads(1)
    import casekit
    import cases_elementwise  # noqa: F401 (each registers its operations)
    import cases_layers  # noqa: F401
    import cases_movement  # noqa: F401
    import cases_reduce  # noqa: F401
    bundle = casekit.Bundle()
    casekit.make(bundle, options.count or (3 if options.small else 60), options.small, options.only)
    unfinished = options.out.with_suffix(f".{os.getpid()}.tmp")
    bundle.write(unfinished)
    unfinished.replace(options.out)
    print(f"{len(bundle.cases)} operations, {sum(map(len, bundle.cases.values()))} cases, {options.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
