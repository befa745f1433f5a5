# SPDX-License-Identifier: Apache-2.0
"""scripts/check-onnx: the gate itself. What ONNX Runtime must compute is computed here, by numpy or by hand."""
import json
import shutil
import subprocess
import sys
import unittest

from cli_testing import SOURCE, CliTest, safetensors

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError:
    onnx = None

SCRIPT = SOURCE / "scripts/check-onnx"
CODES = {"float32": "F32", "float64": "F64", "float16": "F16", "int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}


def why_not():
    if onnx is None:
        return "this Python has no onnx"
    if not shutil.which("node"):
        return "no node"
    done = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True, timeout=120)
    return done.stderr.strip() if done.returncode == 77 else None


def tensors(**arrays):
    return safetensors([(name, CODES[str(a.dtype)], list(a.shape), a.tobytes()) for name, a in arrays.items()])


def model(nodes, inputs, outputs, initializers=()):
    info = lambda name, array: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype) if hasattr(helper, "np_dtype_to_tensor_dtype")
                                                             else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype], array.shape)
    graph = helper.make_graph(nodes, "g", [info(n, a) for n, a in inputs.items()], [info(n, a) for n, a in outputs.items()],
                              [numpy_helper.from_array(a, n) for n, a in dict(initializers).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    onnx.checker.check_model(made)
    return made


class CheckOnnx(CliTest):
    def check(self, *arguments, code=0, stdin=None):
        done = subprocess.run([SCRIPT, *arguments], input=stdin, capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def case(self, name, nodes, inputs, outputs, initializers=()):
        """The three files of a case, as arguments."""
        return [self.file(f"{name}.onnx", model(nodes, inputs, outputs, initializers).SerializeToString()),
                self.file(f"{name}.in.safetensors", tensors(**inputs)), self.file(f"{name}.out.safetensors", tensors(**outputs))]

    def matmul(self, name="mm", off=0.0):
        rng = np.random.default_rng(7)
        x, w = rng.standard_normal((3, 4), dtype=np.float32), rng.standard_normal((4, 5), dtype=np.float32)
        y = x @ w
        y[1, 2] += np.float32(off) * np.abs(y).max()
        return self.case(name, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, {"y": y}, {"w": w})

    def test_agrees_with_numpy(self):
        self.assertIn("1 of 1 agree", self.check(*self.matmul()))

    def test_a_difference_over_the_tolerance_is_found_and_told(self):
        case = self.matmul(off=1e-3)
        said = self.check(*case, code=1)
        self.assertIn("DIFFERS", said)
        self.assertRegex(said, r"y: error (9\.99|1\.00)e-[34]")
        self.assertIn("at element 7", said)
        self.check("--tolerance", "2e-3", *case)
        self.check("--tolerance=1e-4", *case, code=1)

    def test_every_dtype_goes_in_and_comes_out(self):
        case = []
        for dtype in CODES:
            value = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
            case += self.case(dtype, [helper.make_node("Identity", ["x"], ["y"])], {"x": value}, {"y": value})
        self.assertIn("7 of 7 agree", self.check(*case))

    def test_integers_and_bools_are_equal_or_differ(self):
        x, y = np.array([5, 2**60], np.int64), np.array([5, 2**60 + 1], np.int64)
        self.assertIn("expected 1152921504606846977", self.check(*self.case("i", [helper.make_node("Identity", ["x"], ["y"])], {"x": x}, {"y": y}), code=1))

    def test_half_precision_is_compared_as_numbers(self):
        x = np.array([1.0, -2.5, 6e-8, 65504], np.float16)
        near = x.copy()
        near[1] = np.nextafter(near[1], np.float16(0))
        node = [helper.make_node("Identity", ["x"], ["y"])]
        self.check(*self.case("near", node, {"x": x}, {"y": near}))
        self.check("--tolerance", "1e-9", *self.case("near", node, {"x": x}, {"y": near}), code=1)

    def test_nan_and_infinity_agree_with_themselves_only(self):
        node = [helper.make_node("Identity", ["x"], ["y"])]
        odd = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
        self.check(*self.case("same", node, {"x": odd}, {"y": odd}))
        for at, value in ((0, 0), (1, -np.inf), (3, np.nan)):
            other = odd.copy()
            other[at] = value
            self.check("--tolerance", "1e9", *self.case(f"other{at}", node, {"x": odd}, {"y": other}), code=1)

    def test_shapes_and_dtypes_must_be_the_expected_ones(self):
        node = [helper.make_node("Identity", ["x"], ["y"])]
        x = np.ones((2, 3), np.float32)
        model_file, inputs, _ = self.case("shape", node, {"x": x}, {"y": x})
        said = self.check(model_file, inputs, self.file("flat.safetensors", tensors(y=np.ones(6, np.float32))), code=1)
        self.assertIn("is float32 [2, 3], expected float32 [6]", said)
        self.check(model_file, inputs, self.file("double.safetensors", tensors(y=x.astype(np.float64))), code=1)

    def test_external_data_is_found_beside_the_model(self):
        x, w = np.ones((1, 300), np.float32), np.arange(300 * 2, dtype=np.float32).reshape(300, 2) / 600
        made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, {"y": x @ w}, {"w": w})
        onnx.save_model(made, self.path("e.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0)
        self.assertLess((self.folder / "e.onnx").stat().st_size, 400)
        self.check(self.path("e.onnx"), self.file("i.safetensors", tensors(x=x)), self.file("o.safetensors", tensors(y=x @ w)))

    def test_many_cases_run_in_one_process(self):
        good, bad = self.matmul("good"), self.matmul("bad", off=1e-2)
        cases = [dict(zip(("model", "inputs", "expected"), (p.rsplit("/", 1)[1] for p in files)), name=name, **more)
                 for name, files, more in (("first", good, {}), ("second", bad, {}), ("third", bad, {"tolerance": 0.1}))]
        listed = self.file("cases.json", json.dumps(cases).encode())
        said = self.check(listed, code=1)
        self.assertIn("ok      first: y", said)
        self.assertIn("DIFFERS second: y", said)
        self.assertIn("ok      third: y", said)
        self.assertIn("2 of 3 agree, 1 differ", said)
        self.assertNotIn("first", self.check("--quiet", listed, code=1))
        absolute = json.dumps([dict(c, **{k: self.path(c[k]) for k in ("model", "inputs", "expected")}) for c in cases])
        self.assertEqual(self.check("-", code=1, stdin=absolute), said)

    def test_what_cannot_be_run_is_named_and_the_others_still_run(self):
        good = self.matmul("good")
        broken = self.file("broken.onnx", b"\x08\x07junk")
        said = self.check(broken, good[1], good[2], *good, code=2)
        self.assertIn("broken.onnx", said)
        self.assertIn("1 of 2 agree, 1 could not be run", said)
        self.assertIn('lacks the model\'s input "x"', self.check(good[0], good[2], good[2], code=2))
        self.assertIn('lacks the model\'s output "y"', self.check(good[0], good[1], good[1], code=2))
        self.assertIn("ENOENT", self.check(self.path("absent.onnx"), good[1], good[2], code=2))

    def test_wrong_arguments_are_refused(self):
        self.assertIn("usage", self.check("--help"))
        for arguments in ([], ["a.onnx"], ["--wrong"], ["--tolerance", "much", "a", "b", "c"]):
            self.assertIn("--help", self.check(*arguments, code=2))


if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
