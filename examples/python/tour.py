#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch checkpoint without PyTorch: look into it, take a part of it, convert it, see that nothing changed.

    python3 examples/python/tour.py examples/import_weights/net.pt
"""
import pathlib
import sys
import tempfile

import ballast
from ballast import safe_open


def main(path):
    file = ballast.open(path)  # a map of the file; nothing is run, nothing is copied
    print(f"{file.format}: {len(file)} tensors, {file.nbytes} bytes")
    for name, tensor in list(file.items())[:3]:
        print(f"  {name} {tensor.dtype} {list(tensor.shape)}")
    print("epoch", file.value("epoch"), "config", file.value("config"))

    weights = file.root().filter(exclude="running_|num_batches")  # the state dict, found by itself
    print("norm of the head:", round(float((weights["head.weight"].numpy() ** 2).sum() ** 0.5), 4))

    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "net.safetensors")
        done = ballast.convert(path, out, dtype="f16", progress=lambda done, total: None)
        print(f"converted: {len(done.tensors)} tensors, {done.cast} to half precision, {done.overflowed} values lost")
        with safe_open(out, framework="np") as f:  # as with the package safetensors
            print("head.bias starts with", f.get_slice("head.bias")[:2])
        print("the same within 1e-3:", ballast.diff(path, out, tolerance=1e-3).same)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tour.py NET.pt (examples/import_weights/net.pt)")
    main(sys.argv[1])
