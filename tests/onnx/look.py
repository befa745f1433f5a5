"""look.py FILE: checks an ONNX file with the official package and prints what is in it, a line for each thing."""
import hashlib
import json
import os
import struct
import sys

import onnx
from onnx import numpy_helper


def dims(shape):
    return "[" + ", ".join(d.dim_param or str(d.dim_value) for d in shape.dim) + "]"


def value(kind, info):
    tensor = info.type.tensor_type
    print(f"{kind} {info.name} {onnx.TensorProto.DataType.Name(tensor.elem_type)} {dims(tensor.shape)}")


def safetensors_bytes(path, name):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        begin, end = json.loads(file.read(size))[name]["data_offsets"]
        file.seek(8 + size + begin)
        return file.read(end - begin)


def weight(one, folder):
    external = {entry.key: entry.value for entry in one.external_data}
    where = f" in {external['location']}" if external else ""
    print(f"weight {one.name} {onnx.TensorProto.DataType.Name(one.data_type)} {list(one.dims)}{where}")
    if external:
        path = os.path.join(folder, external["location"])
        array = numpy_helper.to_array(one, base_dir=folder)
        assert list(array.shape) == list(one.dims)
        if "checksum" in external:
            with open(path, "rb") as file:
                print(f"checksum {one.name} {'right' if hashlib.sha1(file.read()).hexdigest() == external['checksum'] else 'wrong'}")
        if path.endswith(".safetensors") and array.tobytes() == safetensors_bytes(path, one.name):
            print(f"equal {one.name}")


def main(path):
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path, load_external_data=False)
    main_opset = next(o.version for o in model.opset_import if o.domain == "")
    print(f"ir {model.ir_version} opset {main_opset} producer {model.producer_name}")
    for o in model.opset_import:
        if o.domain:
            print(f"domain {o.domain} {o.version}")
    print(f"doc {model.doc_string}")
    for entry in model.metadata_props:
        print(f"meta {entry.key}={entry.value}")
    for info in model.graph.input:
        value("input", info)
    for info in model.graph.output:
        value("output", info)
    for info in model.graph.value_info:
        value("value", info)
    taken = {name for node in model.graph.node for name in node.input}
    for one in model.graph.initializer:
        weight(one, os.path.dirname(path))
        if one.name not in taken:
            print(f"unused {one.name}")
    for node in model.graph.node:
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        text = " ".join(f"{a.name}={a.f:g}" for a in node.attribute if a.type == onnx.AttributeProto.FLOAT)
        print(f"node {name} {text}".rstrip())
        print(f"name {node.name}")


main(sys.argv[1])
