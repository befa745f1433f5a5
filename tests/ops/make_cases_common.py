# SPDX-License-Identifier: Apache-2.0
"""What the two make_cases.py (operations here, layers in tests/nn) do with their case generators."""
import argparse
import importlib
import os
import pathlib


def main(description, generators, many, few):
    """Without torch it removes OUT and does nothing else: the tests then use the committed cases."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    for generator in generators:
        importlib.import_module(generator)  # each registers its operations or layers
    bundle = casekit.Bundle()
    casekit.make(bundle, options.count or (few if options.small else many), options.small, options.only)
    unfinished = options.out.with_suffix(f".{os.getpid()}.tmp")
    bundle.write(unfinished)
    unfinished.replace(options.out)
    print(f"{len(bundle.cases)} kinds, {sum(map(len, bundle.cases.values()))} cases, {options.out.stat().st_size / 1e6:.1f} MB")
