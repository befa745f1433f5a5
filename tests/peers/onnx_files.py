# SPDX-License-Identifier: Apache-2.0
"""onnx_files.py: initializers written by the onnx package, of every dtype and shape, in each of the ways a file can hold them, read by Ballast.

raw bytes; the typed fields (float_data and its like); external data; Constant nodes. What they hold is what onnx.numpy_helper says.
"""
import json
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import frameworks
from exchange import SHAPES, Direction, opened, said

TYPES = {
    "BOOL": TensorProto.BOOL, "U8": TensorProto.UINT8, "I8": TensorProto.INT8, "U16": TensorProto.UINT16, "I16": TensorProto.INT16, "U32": TensorProto.UINT32,
    "I32": TensorProto.INT32, "U64": TensorProto.UINT64, "I64": TensorProto.INT64, "F16": TensorProto.FLOAT16, "BF16": TensorProto.BFLOAT16, "F32": TensorProto.FLOAT,
    "F64": TensorProto.DOUBLE, "C64": TensorProto.COMPLEX64, "F8_E4M3": TensorProto.FLOAT8E4M3FN, "F8_E5M2": TensorProto.FLOAT8E5M2,
    "F8_E4M3FNUZ": TensorProto.FLOAT8E4M3FNUZ, "F8_E5M2FNUZ": TensorProto.FLOAT8E5M2FNUZ, "F8_E8M0": TensorProto.FLOAT8E8M0,
}  # fmt: skip


def raw(name, code, array):
    return helper.make_tensor(name, TYPES[code], array.shape, array.tobytes(), raw=True)


def typed(name, code, array):
    return helper.make_tensor(name, TYPES[code], array.shape, array.flatten())


def model_of(tensors, as_nodes):
    nodes = [helper.make_node("Constant", [], [tensor.name], name=tensor.name, value=tensor) for tensor in tensors] if as_nodes else []
    graph = helper.make_graph(nodes, "peers", [], [], [] if as_nodes else tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])


def tensors_of(code, make):
    """[(TensorProto, (code, shape, bits))] of every shape, by onnx's own account of it."""
    dtype, chance, made = frameworks.Numpy().dtype(code), np.random.default_rng(22), []
    for shape in SHAPES:
        bits = chance.integers(0, 2 if code == "BOOL" else 256, (int(np.prod(shape)), dtype.itemsize), np.uint8)
        tensor = make(f"{code}.{'x'.join(map(str, shape)) or 'scalar'}", code, bits.view(dtype).reshape(shape))
        made.append((tensor, (code, shape, numpy_helper.to_array(tensor).tobytes())))
    return made


def exchange(direction, code, make, path, external=False, as_nodes=False):
    try:
        made = tensors_of(code, make)
        model = model_of([tensor for tensor, _ in made], as_nodes)
        onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data" if external else None, size_threshold=0)
    except Exception as error:
        direction.refused[said(error)] += len(SHAPES)
        return
    try:
        found = opened(path)
    except Exception as error:
        direction.failed(f"{code} {direction.what}", error)
        return
    for tensor, wanted in made:
        direction.compare(f"{tensor.name} {direction.what}", found.get(tensor.name, ("nothing", "-", b"")), wanted)


def main():
    ways = {"raw bytes": (raw, {}), "typed fields": (typed, {}), "external data": (raw, {"external": True}), "Constant nodes": (raw, {"as_nodes": True})}
    with tempfile.TemporaryDirectory() as folder:
        for what, (make, how) in ways.items():
            direction = Direction("to Ballast", what)
            for code in TYPES:
                exchange(direction, code, make, pathlib.Path(folder) / f"{what.replace(' ', '-')}-{code}.onnx", **how)
            print(json.dumps(direction.line()))


if __name__ == "__main__":
    main()
