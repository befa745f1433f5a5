# SPDX-License-Identifier: Apache-2.0
"""Every endpoint of `ballast view`, asked once with the token: each answer has these members of these types, and no others."""
import re
import struct
import unittest

from cli_testing import SOURCE, CliTest
from view_testing import View

FIXTURES = SOURCE / "tests/fixtures"
NUMBER = (int, float, str, type(None))  # "NaN", "Inf" and "-Inf" are text
NONE = type(None)
TENSOR = {"kind": str, "path": str, "label": str, "n": int, "dtype": str, "shape": [int], "parameters": int, "bytes": int, "tied": [str]}
GROUP = {"kind": str, "path": str, "label": str, "count": int, "tensors": int, "parameters": int, "bytes": int, "dtypes": dict}
PLANE = {"rows": int, "cols": int, "levels": int, "axes": [int], "at": [int], "fold": (int, NONE)}
JOB = {"job": int, "kind": str, "done": int, "total": int, "state": str, "error": (dict, NONE)}
VALUES = {"x": int, "y": int, "rows": [[str]]}
SUMMARY = {"exact": bool, "sampled": int, "elements": int, **{key: NUMBER for key in ("min", "max", "mean", "std", "l2")}, "nan": int, "pos_inf": int, "neg_inf": int, "zeros": int, "quantiles": [list],
           "histogram": {"edges": [NUMBER], "counts": [int], "below": int, "above": int}}  # fmt: skip
CHANGE = {"i": int, "name": str, "name_b": (str, NONE), "kind": str, "rel_l2": NUMBER, "cosine": NUMBER, "max_abs": NUMBER, "differing": (int, NONE), "sampled": bool, "elements": int, "n_a": (int, NONE), "n_b": (int, NONE),
          "dtype_a": (str, NONE), "dtype_b": (str, NONE), "shape_a": (list, NONE), "shape_b": (list, NONE), "layer": (int, NONE), "role": str}  # fmt: skip
DIFF = {"total": int, "changed": int, "equal": int, "only_a": int, "only_b": int, "renamed": int, "sampled": bool, "bytes": int, "rows": [CHANGE]}
FILE = {"name": str, "format": str, "bytes": int, "tensors": int, "parameters": int, "tensor_bytes": int, "dtypes": [{"dtype": str, "tensors": int, "parameters": int, "bytes": int}], "metadata": [list], "metadata_total": int,
        "notes": [str], "verdict": str, "has_objects": bool, "has_pickle": bool, "has_onnx": bool}  # fmt: skip
SCAN = {"verdict": str, "findings": [{"level": str, "what": str, "where": str, "entry": (int, NONE), "offset": (int, NONE)}], "entries": [{"name": str, "bytes": int}]}
PICKLE = {"entry": int, "total_bytes": int, "next": (int, NONE), "rows": [{"offset": int, "opcode": str, "argument": str, "finding": (int, NONE)}]}


class Schema(CliTest):
    def check(self, answer, schema, where):
        """A type or several, a list of one schema, or an object with exactly these members."""
        if isinstance(schema, dict):
            self.assertIsInstance(answer, dict, where)
            self.assertEqual(set(answer), set(schema), where)
            for key, of in schema.items():
                self.check(answer[key], of, f"{where}.{key}")
        elif isinstance(schema, list):
            self.assertIsInstance(answer, list, where)
            for i, each in enumerate(answer):
                self.check(each, schema[0], f"{where}[{i}]")
        else:
            self.assertIsInstance(answer, schema, where)
            self.assertFalse(isinstance(answer, bool) and schema is int, where)

    def test_every_answer_has_the_members_of_its_schema_and_no_others(self):
        a, b = FIXTURES / "import/layers.pt", FIXTURES / "import/autoencoder.pt"
        asked = set()
        with View(a, b) as view:
            def get(path, schema, method="GET", **query):
                asked.add((method, re.sub(r"\b\d+\b", "*", path)))
                answer = view.api(path, method, **query)
                if schema is not None:
                    self.check(answer, schema, path)
                return answer

            get("files", {"version": str, "heartbeat_s": int, "files": [FILE]})
            for row in get("files/0/tree", {"path": str, "total": int, "rows": [dict]}, limit=200)["rows"]:
                self.check(row, TENSOR if row["kind"] == "tensor" else GROUP, "row")
            get("files/0/find", {"total": int, "rows": [TENSOR]}, q="weight")
            content = get("files/0/treemap", None, w=400, h=300)
            self.assertEqual((len(content) - 4 - struct.unpack("<I", content[:4])[0]) % 28, 0)
            view.done(get("files/0/t/0/exact", {"job": int}, "POST")["job"])
            view.done(view.api("files/0/measures", status=202)["job"])
            get("files/0/measures", {"total": int, "odd": [{"n": int, "path": str, "kind": str, "value": (int, float, str, NONE), "elements": int}]})
            about = get("files/0/t/0", None)
            self.assertLessEqual({"name", "dtype", "shape", "strides", "parameters", "bytes", "offset", "tied", "note"}, set(about))
            get("files/0/t/0/plane", PLANE)
            get("files/0/t/0/values", VALUES)
            self.assertEqual(len(get("files/0/t/0/tile", None)) % 4, 0)
            self.assertEqual(len(get("files/0/t/0/lines", None)) % 4, 0)
            get("files/0/t/0/summary", SUMMARY)
            self.assertTrue(get("files/0/t/0/npy", None).startswith(b"\x93NUMPY"))
            self.assertIn(b"\n", get("files/0/t/0/csv", None))
            get("files/0/objects", {"path": str, "kind": str, "text": str, "total": int, "rows": [dict]})
            get("files/0/scan", SCAN)
            get("files/0/pickle", PICKLE, entry=0)
            get("files/0/layout", None)
            view.diff()
            rows = get("diff", DIFF)["rows"]
            both = next(row["i"] for row in rows if row["n_a"] is not None and row["n_b"] is not None)
            get(f"diff/t/{both}/plane", PLANE)
            get(f"diff/t/{both}/values", VALUES)
            self.assertEqual(len(get(f"diff/t/{both}/tile", None)) % 4, 0)
            self.assertEqual(len(get(f"diff/t/{both}/lines", None)) % 4, 0)
            job = get(f"diff/t/{both}/exact", {"job": int}, "POST")["job"]
            view.done(job)
            get(f"jobs/{job}", JOB)
            get(f"jobs/{job}", JOB, "DELETE")
            get("alive", {}, "POST")
            error = view.api("files/9/tree", status=404)
            self.check(error, {"error": {"code": str, "where": str, "message": str}}, "error")
            get("quit", {}, "POST")
        with View(FIXTURES / "onnx/files/torch.onnx") as view:
            answer = view.api("files/0/onnx")
            self.assertLessEqual({"operators", "nodes", "total", "inputs", "outputs"}, set(answer))
            asked.add(("GET", "files/*/onnx"))
        text = (SOURCE / "tools/ballast/view/router.cpp").read_text()
        routes = {({"get": "GET", "post": "POST", "remove": "DELETE"}[method], pattern) for method, pattern in re.findall(r'Route\{Method::(\w+), "([^"]+)"', text)}
        self.assertEqual(routes - asked, set(), "every endpoint was asked")


if __name__ == "__main__":
    unittest.main()
