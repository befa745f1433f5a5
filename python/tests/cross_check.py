#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ballast beside the real ``safetensors`` and a current PyTorch, in one run: are files and answers the same, and how fast are the two?

    PYTHONPATH=<where ballast is unpacked> python3 cross_check.py [--gigabytes 2] [--rounds 7] [--json out.json]

Needs torch and safetensors; CUDA is checked where there is some. Exit status 1 when something differs. ``--stand-in`` lets Ballast play
safetensors too: a rehearsal for machines that do not have it.
"""
import argparse
import gc
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import torch

import ballast
import ballast.numpy
import ballast.torch

SOURCE = pathlib.Path(__file__).resolve().parents[2]


class Report:
    """What was compared, and what differed."""

    def __init__(self):
        self.passed, self.failed, self.speed = 0, [], []
        self.orders = 0  # dicts with the same names in another order

    def check(self, what, good, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed.append(f"{what}: {detail}" if detail else what)
            print(f"DIFFERS  {self.failed[-1]}")

    def same_tensors(self, what, a, b):
        self.check(what + " (names)", set(a) == set(b), f"{sorted(a)[:5]} {sorted(b)[:5]}")
        if list(a) != list(b) and set(a) == set(b):
            self.orders += 1
        for name in set(a) & set(b):
            x, y = a[name], b[name]
            good = x.dtype == y.dtype and x.shape == y.shape and x.device == y.device
            self.check(f"{what} {name}", good and same_bytes(x, y), f"{x.dtype} {x.shape} {x.device} / {y.dtype} {y.shape} {y.device}")


def same_bytes(x, y):
    if x.numel() == 0:
        return True
    return torch.equal(x.contiguous().reshape(-1).view(torch.uint8).cpu(), y.contiguous().reshape(-1).view(torch.uint8).cpu())


def every_dtype(device="cpu"):
    names = "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64 float8_e4m3fn float8_e5m2 float8_e8m0fnu float8_e4m3fnuz float8_e5m2fnuz float4_e2m1fn_x2"
    tensors = {}
    generator = torch.Generator().manual_seed(8)
    for name in names.split():
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        size = torch.empty(0, dtype=dtype).element_size()
        data = torch.randint(0, 2 if name == "bool" else 256, (6, 4 * size), dtype=torch.uint8, generator=generator)
        try:
            tensors[f"t.{name}"] = data.view(dtype).to(device)
        except (RuntimeError, NotImplementedError) as error:
            print(f"{name} on {device}: {error}")
    tensors["scalar"] = torch.tensor(3.5, device=device)
    tensors["empty"] = torch.empty(0, 3, device=device)
    tensors["one"] = torch.ones(1, dtype=torch.int8, device=device)
    tensors["name with \"quotes\" \\ \n and ünïcode"] = torch.arange(5, device=device)
    return tensors


def check_files(report, reference, folder, device):
    ours, theirs, data = ballast.torch, reference.torch, every_dtype(device)
    for metadata in (None, {}, {"format": "pt"}):
        a, b = folder / "ours.safetensors", folder / "theirs.safetensors"
        ours.save_file(data, a, metadata=metadata)
        theirs.save_file(data, b, metadata=metadata)
        report.check(f"files are byte-identical, {device}, metadata {metadata}", a.read_bytes() == b.read_bytes())
        report.check(f"save() is byte-identical, {device}, metadata {metadata}", ours.save(data, metadata) == theirs.save(data, metadata))
    # safetensors 0.8 gives a float4 tensor the file's shape, in which torch counts pairs: it cannot load what it saves.
    plain = {k: v for k, v in data.items() if v.dtype != getattr(torch, "float4_e2m1fn_x2", 0)}
    ours.save_file(plain, a)
    theirs.save_file(plain, b)
    for name, path in (("ours", a), ("theirs", b)):
        for target in {"cpu", device}:
            for backend in ("mmap", "pread"):
                report.same_tensors(f"load_file {name} {target} {backend}", ours.load_file(path, device=target, backend=backend), theirs.load_file(path, device=target, backend=backend))
    loadable = {k: v for k, v in data.items() if v.dtype not in (getattr(torch, "float8_e8m0fnu", 0), getattr(torch, "float4_e2m1fn_x2", 0))}
    raw = theirs.save(loadable)  # the reference's load() lacks two dtypes
    mine, its = ours.load(raw), theirs.load(raw)
    report.same_tensors("load", mine, {name: its[name] for name in mine})
    ours.save_file(data, a)
    report.same_tensors("load, all dtypes", ours.load(ours.save(data)), {name: value.cpu() for name, value in ours.load_file(a).items()})
    check_handles(report, reference, a, device)


def check_handles(report, reference, path, device):
    for backend in ("mmap", "pread"):
        with ballast.safe_open(path, "pt", device=device, backend=backend) as f, reference.core.safe_open(path, "pt", device=device, backend=backend) as g:
            for method in ("keys", "offset_keys", "metadata"):
                report.check(f"{method} {backend}", getattr(f, method)() == getattr(g, method)())
            name = "t.float32"
            x, y = f.get_slice(name), g.get_slice(name)
            report.check("get_shape, get_dtype", (list(x.get_shape()), x.get_dtype()) == (list(y.get_shape()), y.get_dtype()))
            for index in (0, -1, slice(2), slice(1, 4), (slice(None), slice(1, 3)), (2, slice(None)), (slice(1, 3), -1)):
                report.check(f"slice {index} {backend} {device}", same_bytes(x[index], y[index]) and x[index].shape == y[index].shape and x[index].device == y[index].device)


def check_numpy(report, reference, folder):
    data = {name: np.arange(24).reshape(4, 6).astype(name) for name in ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64"]}
    report.check("numpy save() is byte-identical", ballast.numpy.save(data) == reference.numpy.save(data))
    ballast.numpy.save_file(data, folder / "n.safetensors")
    a, b = ballast.numpy.load_file(folder / "n.safetensors"), reference.numpy.load_file(folder / "n.safetensors")
    report.check("numpy load_file", set(a) == set(b) and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype and b[k].flags.writeable == a[k].flags.writeable for k in a))
    with ballast.safe_open(folder / "n.safetensors", "np") as f, reference.core.safe_open(folder / "n.safetensors", "np") as g:
        for index in (0, -1, slice(2), (slice(None), slice(1, 3)), (slice(1, None), -1), (), []):
            x, y = f.get_slice("float32")[index], g.get_slice("float32")[index]
            report.check(f"numpy slice {index}", np.array_equal(x, y) and x.shape == y.shape)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(16, 16)
        self.b = self.a
        self.c = torch.nn.Linear(16, 4)


def check_models(report, reference, folder):
    for name, save, load in (("ours to theirs", ballast.torch, reference.torch), ("theirs to ours", reference.torch, ballast.torch)):
        model, other = Tied(), Tied()
        save.save_model(model, str(folder / "m.safetensors"))
        result = load.load_model(other, str(folder / "m.safetensors"))
        report.check(f"load_model {name}", result == (set(), []) and all(torch.equal(x, y) for x, y in zip(model.state_dict().values(), other.state_dict().values())), str(result))
    ballast.torch.save_model(model, str(folder / "x"))
    reference.torch.save_model(model, str(folder / "y"))
    with ballast.safe_open(folder / "x", "pt") as f, ballast.safe_open(folder / "y", "pt") as g:
        report.check("save_model metadata and names", f.metadata() == g.metadata() and f.keys() == g.keys())


def check_messages(report, reference, folder):
    """Every small file of the conformance set: who accepts it, and what is said. Invalid JSON is said in other words."""
    table = SOURCE / "tests/formats/safetensors/cases.tsv"
    if not table.exists():
        print("no conformance cases here")
        return
    stricter = other_words = 0
    for line in table.read_text(encoding="utf-8").splitlines()[2:]:
        name, text = line.split("\t")[:2]
        path = folder / "case.safetensors"
        path.write_bytes(bytes.fromhex(text))
        said = []
        for library in (ballast, reference.core):
            try:
                with library.safe_open(path, "np") as f:
                    said.append(("ok", f.keys()))
            except Exception as error:
                said.append((type(error).__name__, str(error)))
        ours, theirs = said
        if ours == theirs:
            report.passed += 1
        elif "invalid JSON" in ours[1] and theirs[0] == "ok":
            stricter += 1
        elif "invalid JSON" in ours[1] or "invalid UTF-8" in ours[1] or name == "same_range":
            other_words += 1
        elif theirs[0] == "ok" and "overflow" in str(ours[1]):
            stricter += 1
        else:
            report.check(f"message of {name}", False, f"{ours} / {theirs}")
    print(f"conformance: {stricter} refused here alone (duplicate keys, NUL in names, dimensions beyond 63 bits), {other_words} refused by both in other words")


def check_pytorch(report, folder):
    data = {name: tensor for name, tensor in every_dtype().items()}
    data["strided"] = torch.arange(12.0).reshape(3, 4).t()
    torch.save(data, folder / "x.pt")
    for backend in ("mmap", "pread"):
        report.same_tensors(f".pt {backend}", ballast.torch.load_file(folder / "x.pt", backend=backend), data)
    writable = {name: tensor for name, tensor in data.items() if "float4" not in name}
    ballast.save(folder / "y.pt", writable)
    report.same_tensors("our .pt by torch.load", torch.load(folder / "y.pt", weights_only=True), writable)


# Speed: both in turns, so that a change of the machine's mood meets both; medians.


def touch(tensors):
    """Reads every byte."""
    total = 0
    for tensor in tensors.values():
        flat = tensor.reshape(-1).view(torch.uint8)
        whole = flat.numel() // 8 * 8
        total += int(flat[:whole].view(torch.int64).sum()) if whole else 0
    return total


def measure(report, what, rounds, **jobs):
    times = {name: [] for name in jobs}
    for _ in range(rounds + 1):
        for name, job in jobs.items():
            gc.collect()
            begin = time.perf_counter()
            result = job()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            times[name].append(time.perf_counter() - begin)
            del result
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    ours = medians["ballast"]
    text = "   ".join(f"{name} {seconds * 1e3:.2f} ms ({seconds / ours:.2f}x)" for name, seconds in medians.items())
    print(f"{what:52} {text}", flush=True)
    report.speed.append({"what": what, "milliseconds": {name: round(seconds * 1e3, 4) for name, seconds in medians.items()}})


def speed_of_large(report, reference, folder, gigabytes, rounds):
    shapes = [(4096, 4096)] * 4 + [(11008, 4096)] * 3 + [(4096,)] * 2
    layer = sum(2 * int(np.prod(shape)) for shape in shapes)
    count = max(1, round(gigabytes * 1e9 / layer))
    tensors = {f"layers.{i}.{j}": torch.full(shape, i % 7 + 0.5, dtype=torch.bfloat16) for i in range(count) for j, shape in enumerate(shapes)}
    path, pt = folder / "large.safetensors", folder / "large.pt"
    ballast.torch.save_file(tensors, path)
    size = f"{path.stat().st_size / 1e9:.1f} GB"
    ours, theirs = ballast.torch.load_file, reference.torch.load_file
    measure(report, f"load_file {size}, nothing touched", rounds, ballast=lambda: ours(path), safetensors=lambda: theirs(path))
    measure(report, f"load_file {size}, every byte touched", rounds, ballast=lambda: touch(ours(path)), safetensors=lambda: touch(theirs(path)), **{"ballast.open, prefetched": lambda: touch(prefetched(path))})
    measure(report, f"load_file {size}, pread", rounds, ballast=lambda: ours(path, backend="pread"), safetensors=lambda: theirs(path, backend="pread"))
    measure(report, f"numpy load_file {size}, every byte touched", min(rounds, 3), ballast=lambda: touch_numpy(ballast.numpy.load_file, path, "BF16"), safetensors=lambda: touch_numpy(reference.numpy.load_file, path, "BF16"))
    if torch.cuda.is_available():
        measure(report, f"load_file {size} to CUDA", rounds, ballast=lambda: ours(path, device="cuda"), safetensors=lambda: theirs(path, device="cuda"))
    few = min(rounds, 5)
    measure(report, f"save_file {size}, ballast waits for the disk", few, ballast=lambda: ballast.torch.save_file(tensors, folder / "a"), safetensors=lambda: reference.torch.save_file(tensors, folder / "b"))
    measure(report, f"save_file {size}, both wait for the disk", few, ballast=lambda: synced(ballast.torch.save_file, tensors, folder / "a"), safetensors=lambda: synced(reference.torch.save_file, tensors, folder / "b"))
    relaxed = lambda: ballast.torch.save_file(tensors, folder / "a", durable=False)  # noqa: E731
    measure(report, f"save_file {size}, neither waits for the disk", few, ballast=relaxed, safetensors=lambda: reference.torch.save_file(tensors, folder / "b"))
    for name in ("a", "b"):
        (folder / name).unlink()
    speed_of_slices(report, reference, path, rounds)
    torch.save(tensors, pt)
    del tensors
    mapped = {"torch mmap": lambda: touch(torch.load(pt, mmap=True))} if "mmap" in torch.load.__code__.co_varnames else {}
    measure(report, f".pt {size}, every byte touched", few, ballast=lambda: touch(ours(pt)), **{"torch.load": lambda: touch(torch.load(pt))}, **mapped)
    measure(report, f".pt {size}, in memory of its own", few, ballast=lambda: ours(pt, backend="pread"), **{"torch.load": lambda: torch.load(pt)})
    path.unlink()
    pt.unlink()


def prefetched(path):
    file = ballast.open(path, writable=True)
    file.prefetch()
    return file.torch()


def touch_numpy(load, path, code):
    try:
        return sum(int(array.reshape(-1).view(np.int64).sum()) for array in load(path).values())
    except TypeError:  # no ml_dtypes
        return 0


def synced(save, tensors, path):
    save(tensors, path)
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def speed_of_slices(report, reference, path, rounds):
    def rows(library):
        with library.safe_open(path, "pt") as f:
            part = f.get_slice("layers.0.0")
            return [part[i * 4 : i * 4 + 2, 16:48].clone() for i in range(1000)]

    def arrays(library):
        with library.safe_open(path, "np") as f:
            part = f.get_slice("layers.0.0")
            return [part[i * 4 : i * 4 + 2, 16:48] for i in range(1000)]

    def names(library):
        with library.safe_open(path, "pt") as f:
            return [f.get_slice(name)[:1] for name in f.keys()]

    measure(report, "get_slice, 1000 pieces of 2 x 32, pt", rounds, ballast=lambda: rows(ballast), safetensors=lambda: rows(reference.core))
    try:
        measure(report, "get_slice, 1000 pieces of 2 x 32, np", rounds, ballast=lambda: arrays(ballast), safetensors=lambda: arrays(reference.core))
    except TypeError as error:
        print(f"get_slice, np: {error}")
    measure(report, "get_slice of every tensor, one row", rounds, ballast=lambda: names(ballast), safetensors=lambda: names(reference.core))


def speed_of_many(report, reference, folder, count, rounds):
    path, pt = folder / "many.safetensors", folder / "many.pt"
    tensors = {f"model.layers.{i // 10}.block.{i % 10}.weight": torch.full((16, 16), float(i)) for i in range(count)}
    ballast.torch.save_file(tensors, path)
    ours, theirs = ballast.torch.load_file, reference.torch.load_file
    measure(report, f"open and list {count:,} tensors", rounds, ballast=lambda: ballast.safe_open(path, "pt").keys(), safetensors=lambda: reference.core.safe_open(path, "pt").keys())
    measure(report, f"load_file {count:,} tensors", rounds, ballast=lambda: ours(path), safetensors=lambda: theirs(path))
    measure(report, f"load_file {count:,} tensors, every byte touched", min(rounds, 3), ballast=lambda: touch(ours(path)), safetensors=lambda: touch(theirs(path)))
    measure(report, f"numpy load_file {count:,} tensors", rounds, ballast=lambda: ballast.numpy.load_file(path), safetensors=lambda: reference.numpy.load_file(path))
    measure(report, f"save_file {count:,} tensors", min(rounds, 3), ballast=lambda: ballast.torch.save_file(tensors, folder / "a"), safetensors=lambda: reference.torch.save_file(tensors, folder / "b"))
    if torch.cuda.is_available() and count <= 10_000:
        measure(report, f"load_file {count:,} tensors to CUDA", min(rounds, 3), ballast=lambda: ours(path, device="cuda"), safetensors=lambda: theirs(path, device="cuda"))
    torch.save(tensors, pt)
    measure(report, f".pt of {count:,} tensors", min(rounds, 3), ballast=lambda: ours(pt), **{"torch.load": lambda: torch.load(pt)})
    path.unlink()
    pt.unlink()


class Reference:
    def __init__(self, stand_in):
        if stand_in:
            import ballast.compat

            ballast.compat.install(force=True)
        import safetensors
        import safetensors.numpy
        import safetensors.torch

        self.core, self.numpy, self.torch = safetensors, safetensors.numpy, safetensors.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--counts", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--only", choices=["check", "speed"])
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--folder", help="where the files go; memory (/dev/shm) or a disk")
    parser.add_argument("--json", help="the figures, for machines")
    arguments = parser.parse_args()

    reference = Reference(arguments.stand_in)
    cuda = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
    print(f"ballast {ballast.__version__}, safetensors {reference.core.__version__}{' (ballast itself)' if arguments.stand_in else ''}, torch {torch.__version__}, numpy {np.__version__}, Python {sys.version.split()[0]}, CUDA {cuda}, {os.cpu_count()} cores")
    report = Report()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        if arguments.only != "speed":
            for device in ["cpu"] + (["cuda:0"] if torch.cuda.is_available() else []):
                check_files(report, reference, folder, device)
            check_numpy(report, reference, folder)
            check_models(report, reference, folder)
            check_messages(report, reference, folder)
            check_pytorch(report, folder)
            print(f"{report.passed} comparisons the same, {len(report.failed)} not; {report.orders} dicts in another order")
        if arguments.only != "check":
            for count in arguments.counts:
                speed_of_many(report, reference, folder, count, arguments.rounds)
            if arguments.gigabytes > 0:
                speed_of_large(report, reference, folder, arguments.gigabytes, arguments.rounds)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"passed": report.passed, "failed": report.failed, "speed": report.speed}, indent=1))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
