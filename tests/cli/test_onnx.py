# SPDX-License-Identifier: Apache-2.0
"""ONNX models on the command line: onnx info, and the commands that take them like any file. The models are tests/fixtures/onnx/make.py's."""
import collections
import hashlib
import json
import shutil
import unittest

from cli_testing import SOURCE, CliTest, read_safetensors

try:
    import onnx
except ImportError:
    onnx = None
try:
    import torch
except ImportError:
    torch = None

FOLDER = SOURCE / "tests/fixtures/onnx"


def model(name):
    return str(FOLDER / "files" / name)


def expected(name):
    return {tensor["name"]: tensor for tensor in json.loads((FOLDER / "expect.json").read_text())[name]}


class Info(CliTest):
    def test_inputs_outputs_and_the_rest_of_an_export(self):
        info = self.run_json("onnx", "info", model("torch.onnx"))
        self.assertEqual(info["file"], model("torch.onnx"))
        self.assertEqual(info["inputs"], [{"name": "image", "type": "F32", "shape": ["batch", 2, "height", 5]}])
        self.assertEqual(info["outputs"], [{"name": "logits", "type": "F32", "shape": ["batch", 4]}])
        self.assertEqual(info["opsets"], [{"domain": "", "version": 13}])
        self.assertEqual(info["ir_version"], 7)
        self.assertEqual(info["producer"]["name"], "pytorch")
        self.assertEqual(info["metadata"], {"author": "somebody", "classes": '["a"]'})
        self.assertEqual(info["initializers"]["tensors"], 8)
        self.assertEqual(info["external_files"], [])

    def test_inputs_that_are_initializers_are_no_inputs(self):
        info = self.run_json("onnx", "info", model("torch_old.onnx"))
        self.assertEqual(info["ir_version"], 3)
        self.assertEqual([value["name"] for value in info["inputs"]], ["image"])

    def test_subgraphs_functions_and_domains(self):
        info = self.run_json("onnx", "info", model("subgraphs.onnx"))
        self.assertEqual((info["subgraphs"], info["nodes"]), (8, 11))
        self.assertEqual(info["operators"], [{"domain": "", "name": "Identity", "count": 7}, {"domain": "", "name": "If", "count": 4}])
        self.assertEqual(info["initializers"], {"tensors": 11, "bytes": 44})
        info = self.run_json("onnx", "info", model("functions.onnx"))
        self.assertEqual(info["functions"], [{"domain": "test.domain", "name": "AddThree", "nodes": 2}])
        self.assertIn({"domain": "test.domain", "name": "AddThree", "count": 1}, info["operators"])
        self.assertEqual(info["opsets"], [{"domain": "", "version": 17}, {"domain": "test.domain", "version": 1}])

    def test_constants_and_what_is_not_read_are_counted(self):
        info = self.run_json("onnx", "info", model("constants.onnx"))
        self.assertEqual(info["constants"]["tensors"], 2)
        self.assertEqual(self.run_json("onnx", "info", model("small_types.onnx"))["skipped"], 5)

    def test_external_files_are_named_whether_they_are_there_or_not(self):
        file = {"location": "external.bin", "tensors": 3, "bytes": 142}
        self.assertEqual(self.run_json("onnx", "info", model("external.onnx"))["external_files"], [{**file, "file_bytes": 142}])
        shutil.copy(model("external.onnx"), self.folder)
        alone = self.path("external.onnx")
        self.assertEqual(self.run_json("onnx", "info", alone)["external_files"], [{**file, "file_bytes": None}])
        self.assertIn("not there", self.run_tool("onnx", "info", alone)[0])
        self.assertIn("external.bin", self.run_tool("ls", alone, code=2)[1])

    def test_counts_are_those_of_the_onnx_package(self):
        if onnx is None:
            self.skipTest("this Python has no onnx")

        def nodes_of(graph):
            for node in graph.node:
                yield node
                for attribute in node.attribute:
                    for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                        yield from nodes_of(inner)

        for path in sorted((FOLDER / "files").glob("*.onnx")):
            made = onnx.load(str(path), load_external_data=False)
            info = self.run_json("onnx", "info", str(path))
            counted = collections.Counter((node.domain, node.op_type) for node in nodes_of(made.graph))
            for function in made.functions:
                counted.update((node.domain, node.op_type) for node in function.node)
            for training in made.training_info:
                counted.update((node.domain, node.op_type) for graph in (training.initialization, training.algorithm) for node in nodes_of(graph))
            self.assertEqual({(o["domain"], o["name"]): o["count"] for o in info["operators"]}, dict(counted), path.name)
            self.assertEqual(info["producer"], {"name": made.producer_name, "version": made.producer_version})
            self.assertEqual(info["graph"], made.graph.name)

    def test_text_for_people(self):
        out, err = self.run_tool("onnx", "info", model("torch.onnx"))
        self.assertEqual(err, "")
        for words in ("F32 [batch, 2, height, 5]", "ai.onnx 13", "pytorch", "8 initializers", "Conv 1", "author = somebody"):
            self.assertIn(words, out)

    def test_several_files_and_files_that_are_none(self):
        text = self.file("page.onnx", b"<html>404</html>")
        result = self.run_json("onnx", "info", model("raw.onnx"), text, code=2)
        self.assertEqual(result["files"][1]["error"]["code"], "unknown-format")
        self.assertIn("HTML", result["files"][1]["error"]["message"])
        self.assertIn("is no ONNX model", self.run_tool("onnx", "info", self.small(), code=2)[1])
        self.assertIn("ACTION", self.run_tool("onnx", code=2)[1])
        self.run_tool("onnx", "nonsense", text, code=2)


class LikeAnyFile(CliTest):
    def test_ls_convert_diff_hash_verify_and_show(self):
        tensors = self.run_json("ls", model("torch.onnx"))
        self.assertEqual(tensors["format"], "onnx")
        self.assertEqual([t["name"] for t in tensors["tensors"]], list(expected("torch.onnx")))
        copy = self.path("copy.safetensors")
        self.run_tool("convert", model("torch.onnx"), copy)
        for name, (dtype, shape, data) in read_safetensors(copy)[0].items():
            want = expected("torch.onnx")[name]
            self.assertEqual((dtype, shape, hashlib.sha256(data).hexdigest()), (want["dtype"], want["shape"], want["sha256"]))
        self.run_tool("diff", model("torch.onnx"), copy)
        self.assertEqual(self.run_json("hash", model("torch.onnx"))["root"], self.run_json("hash", copy)["root"])
        self.run_tool("verify", model("torch.onnx"))
        self.assertIn("onnx", self.run_tool("show", model("torch.onnx"))[0])
        self.assertTrue(self.run_json("scan", model("torch.onnx"))["clean"])

    def test_external_data_is_converted_too(self):
        copy = self.path("copy.safetensors")
        self.run_tool("convert", model("external.onnx"), copy)
        want = expected("external.onnx")
        self.assertEqual({name: hashlib.sha256(data).hexdigest() for name, (_, _, data) in read_safetensors(copy)[0].items()},
                         {name: tensor["sha256"] for name, tensor in want.items()})

    def test_verify_compares_the_checksums_of_external_data(self):
        shutil.copytree(FOLDER / "files", self.folder / "files")
        shared, weights = self.path("files/shared.onnx"), self.folder / "files/data/w.safetensors"
        self.run_tool("verify", shared)
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
        finding = self.run_json("verify", shared, code=1)["findings"]
        self.assertEqual([f["kind"] for f in finding], ["checksum"])
        self.assertIn("SHA-1", finding[0]["message"])


def small_network():
    """Weights of all sizes, one number among them, and operators that want shapes, axes, bounds and numbers."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(2, 6, 3, padding=1, bias=False)
            self.fc, self.one = torch.nn.Linear(7, 5), torch.nn.Linear(5, 1)
            self.norm, self.embedding = torch.nn.LayerNorm(5), torch.nn.Embedding(9, 5)
            self.scale = torch.nn.Parameter(torch.tensor(1.5))
            self.register_buffer("position_ids", torch.arange(6).expand(1, -1).clone())

        def forward(self, x):
            y = self.conv(x)[:, :, ::2, 1:8]
            y = y.reshape(y.shape[0], y.shape[1], -1, 7).mean(2)
            y = self.norm(self.fc(y) * 2.5 + self.embedding(self.position_ids)).clamp(-3, 3)
            y = torch.nn.functional.pad(y, (1, 1)).unsqueeze(1)[..., 1:-1]
            return self.one(torch.nn.functional.interpolate(y, scale_factor=(2.0, 1.0)) ** 2 * self.scale.exp())

    return Net().eval()


class WeightsApartFromConstants(CliTest):
    def constants_of(self, path):
        return {t["name"] for t in self.run_json("ls", path)["tensors"] if t.get("constant")}

    def test_those_of_torch_are_its_constant_nodes(self):
        if torch is None or onnx is None:
            self.skipTest("this Python has no torch, or no onnx")
        path = self.path("net.onnx")
        for opset in (11, 13, 16):
            for folding in (False, True):
                torch.onnx.export(small_network(), torch.randn(2, 2, 8, 9), path, opset_version=opset, do_constant_folding=folding,
                                  input_names=["x"], dynamic_axes={"x": {0: "batch", 2: "height"}})
                graph = onnx.load(path).graph
                self.assertEqual(self.constants_of(path), {node.output[0] for node in graph.node if node.op_type == "Constant"}, (opset, folding))
        # The weights with their sum come first, then the others with theirs.
        lines = self.run_tool("ls", path)[0].splitlines()
        heading = lines.index("constants of the exporter, no weights:")
        self.assertEqual({line.split()[0] for line in lines[1:heading - 2]}, {one.name for one in graph.initializer})
        self.assertTrue(lines[heading - 2].startswith(f"{len(graph.initializer)} tensors, "))
        self.assertEqual(self.run_tool("ls", path, "--include", "Constant_1_output_0")[0].splitlines()[0], "constants of the exporter, no weights:")
        self.assertNotIn("constants", self.run_tool("ls", path, "--include", "^fc")[0])

    def test_what_only_says_how_a_node_works_is_no_weight_wherever_it_lies(self):
        if onnx is None:
            self.skipTest("this Python has no onnx")
        from onnx import TensorProto, helper
        numbers = {"shape": (TensorProto.INT64, [2], [2, 3]), "both": (TensorProto.INT64, [2], [2, 3]), "pads": (TensorProto.INT64, [4], [0, 1, 0, 1]),
                   "low": (TensorProto.FLOAT, [], [0.0]), "weight": (TensorProto.FLOAT, [2, 3], [1.0] * 6), "bias": (TensorProto.FLOAT, [1], [1.0]),
                   "ids": (TensorProto.INT64, [1, 2], [0, 1]), "quantized": (TensorProto.INT8, [1], [3]), "flag": (TensorProto.BOOL, [1], [True])}
        nodes = [helper.make_node("Reshape", ["x", "shape"], ["a"]), helper.make_node("Reshape", ["a", "both"], ["b"]), helper.make_node("Pad", ["b", "pads"], ["c"]),
                 helper.make_node("Clip", ["c", "low"], ["d"]), helper.make_node("Gemm", ["d", "weight", "bias"], ["y"]), helper.make_node("Add", ["both", "ids"], ["z"]),
                 helper.make_node("Gather", ["weight", "ids"], ["g"]), helper.make_node("Cast", ["quantized"], ["q"], to=1), helper.make_node("Not", ["flag"], ["f"])]
        made = {name: helper.make_tensor(name, *rest) for name, rest in numbers.items()}
        value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "y")]
        for inside, others in ((False, set()), (True, {"both", "ids", "bias", "quantized"})):
            before = [helper.make_node("Constant", [], [name], value=tensor) for name, tensor in made.items()] if inside else []
            graph = helper.make_graph(before + nodes, "g", value[:1], value[1:], [] if inside else list(made.values()))
            path = self.file("made.onnx", helper.make_model(graph).SerializeToString())
            self.assertEqual(self.constants_of(path), {"shape", "pads", "low", "flag"} | others, inside)


if __name__ == "__main__":
    unittest.main()
