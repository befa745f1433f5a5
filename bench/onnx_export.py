"""onnx_export.py [FOLDER] [--rounds N]: exports torchvision's ResNet-50 by torch.onnx.export and by Ballast, one after the other in each
round, and prints medians and file sizes."""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
import warnings

import torch
import torchvision

ROOT = pathlib.Path(__file__).resolve().parent.parent


def export_by_torch(model, path):
    begin = time.perf_counter()
    torch.onnx.export(model, torch.randn(1, 3, 224, 224), path, opset_version=16, input_names=["image"], output_names=["logits"],
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})
    return (time.perf_counter() - begin) * 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--preset", default="release")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    folder = arguments.folder or tempfile.mkdtemp()
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(0)
    model = torchvision.models.resnet50().eval()
    weights = os.path.join(folder, "resnet50.pth")
    torch.save(model.state_dict(), weights)
    ours = {}
    for name, words in (("ballast", []), ("ballast, norms folded", ["fold"])):
        path = os.path.join(folder, name.replace(", ", "_").replace(" ", "_") + ".onnx")
        process = subprocess.Popen([ROOT / "build" / arguments.preset / "bench/onnx_bench", "resnet50", weights, path, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        ours[name] = (process, path)
    theirs = os.path.join(folder, "torch.onnx")
    times = {"torch.onnx.export": []}
    for _ in range(arguments.rounds):
        times["torch.onnx.export"].append(export_by_torch(model, theirs))
        for name, (process, _path) in ours.items():
            process.stdin.write("\n")
            process.stdin.flush()
            times.setdefault(name, []).append(float(process.stdout.readline()))
    base = statistics.median(times["torch.onnx.export"])
    for name, measured in times.items():
        path = theirs if name not in ours else ours[name][1]
        median = statistics.median(measured)
        print(f"{name:24} {median:8.0f} ms  {median / base:5.2f} of torch's  {os.path.getsize(path):12,} bytes")
    for process, _path in ours.values():
        process.stdin.close()
        process.wait()


main()
