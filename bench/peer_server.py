# SPDX-License-Identifier: Apache-2.0
"""peer_server.py PEER THREADS FOLDER: forward_bench's models in torch (eager or compiled), ONNX Runtime or OpenVINO, run by the peers' own Python.

The first line it writes is the peer's name and version. Then it reads names of models and answers each with wall and CPU seconds: medians of as many runs as
fit into a tenth of a second, three at least. `export` writes the models as ONNX files into FOLDER, for the other two, and ends. `memory MODEL FOLDER` says what ONNX Runtime takes for one of them.
"""
import pathlib
import statistics
import sys
import time

SECONDS = 0.1


def measured(call):
    wall, cpu = [], []
    call()
    while sum(wall) < SECONDS or len(wall) < 3:
        start, cpu_start = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    return statistics.median(wall), statistics.median(cpu)


def models():
    import forward_peers
    return forward_peers.peers() | forward_peers.more_peers()


def file_of(folder, name):
    return folder / ("".join(c if c.isalnum() else "_" for c in name) + ".onnx")


def export(folder):
    import forward_peers
    for name, (module, inputs) in models().items():
        if "not fused" not in name:
            forward_peers.export(module, inputs, file_of(folder, name))


def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


def memory(name, folder):
    """What ONNX Runtime grows by for a model and three passes: its own memory, pages of files, and the process's peak."""
    server = OnnxRuntime(1, folder)
    own, mapped = status("RssAnon"), status("RssFile")
    call = server.call(name)
    for _ in range(3):
        call()
    print(status("RssAnon") - own, status("RssFile") - mapped, status("VmHWM"))


class Torch:
    def __init__(self, threads, folder, compiled=False):
        import torch
        torch.set_num_threads(threads)
        self.torch, self.compiled, self.models, self.calls = torch, compiled, models(), {}
        self.version = f"torch {torch.__version__.partition('+')[0]}" + (" compile" if compiled else "")

    def call(self, name):
        if name not in self.calls:
            module, inputs = self.models[name]
            self.calls[name] = (self.torch.compile(module) if self.compiled else module, inputs)
        module, inputs = self.calls[name]

        def run():
            with self.torch.inference_mode():
                module(*inputs)
        return run


class Graphs:
    """What runs ONNX files: inputs are zeros or a sine, as the names and shapes in the file ask for."""

    def __init__(self, threads, folder):
        self.threads, self.folder, self.calls = threads, folder, {}

    def call(self, name):
        if name not in self.calls:
            self.calls[name] = self.made(str(file_of(self.folder, name)))
        return self.calls[name]

    @staticmethod
    def values(shape, kind):
        import numpy
        if "float" in kind:
            return numpy.sin(numpy.arange(numpy.prod(shape), dtype=numpy.float32)).reshape(shape)
        return numpy.full(shape, "bool" in kind, bool if "bool" in kind else numpy.int64)


class OnnxRuntime(Graphs):
    def __init__(self, threads, folder):
        super().__init__(threads, folder)
        import onnxruntime
        self.onnxruntime, self.version = onnxruntime, f"ONNX Runtime {onnxruntime.__version__}"

    def made(self, path):
        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        session = self.onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feeds = {given.name: self.values(given.shape, given.type) for given in session.get_inputs()}
        return lambda: session.run(None, feeds)


class OpenVino(Graphs):
    def __init__(self, threads, folder):
        super().__init__(threads, folder)
        import openvino
        self.openvino, self.core = openvino, openvino.Core()
        self.version = f"OpenVINO {openvino.__version__.partition('-')[0]}"

    def made(self, path):
        how = {"INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        compiled = self.core.compile_model(path, "CPU", how)
        inputs = [self.values(list(given.shape), str(given.element_type).replace("boolean", "bool").replace("f32", "float")) for given in compiled.inputs]
        request = compiled.create_infer_request()
        return lambda: request.infer(inputs)


PEERS = {"torch": Torch, "compile": lambda threads, folder: Torch(threads, folder, compiled=True), "onnxruntime": OnnxRuntime, "openvino": OpenVino}


def main(peer, threads, folder):
    if peer == "export":
        return export(pathlib.Path(folder))
    if peer == "memory":
        return memory(threads, pathlib.Path(folder))
    server = PEERS[peer](int(threads), pathlib.Path(folder))
    print(server.version, flush=True)
    for line in sys.stdin:
        try:
            print(*measured(server.call(line.rstrip("\n"))), flush=True)
        except Exception as error:  # one model that a peer cannot run leaves the others
            print(f"{peer}: {line.strip()}: {error}", file=sys.stderr)
            print("nan nan", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
