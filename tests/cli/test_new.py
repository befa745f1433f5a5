# SPDX-License-Identifier: Apache-2.0
"""ballast new: the header it writes. That it compiles and loads is tests/scaffold's to show."""
import os
import unittest

from cli_testing import SOURCE, CliTest, floats, safetensors

TORCH = SOURCE / "tests/fixtures/torch/files"


class New(CliTest):
    def net(self):
        return self.file("net.safetensors", safetensors([("fc.weight", "F32", [2, 3], floats(*range(6))), ("fc.bias", "F32", [2], floats(1, 2))]))

    def test_the_header_goes_to_standard_output(self):
        out, err = self.run_tool("new", self.net())
        self.assertIn("struct Model {\n  nn::Linear fc{3, 2};\n};\n", out)
        self.assertIn("of net.safetensors.", out)
        self.assertNotIn(str(self.folder), out)  # made on another machine it is the same header
        self.assertEqual(err, "")

    def test_name_namespace_and_output(self):
        out, _ = self.run_tool("new", self.net(), "--name", "Net", "--namespace", "app::models", "-o", self.path("net.h"))
        self.assertIn("2 tensors", out)
        with open(self.path("net.h")) as file:
            text = file.read()
        self.assertIn("namespace app::models {", text)
        self.assertIn("struct Net {", text)
        _, err = self.run_tool("new", self.net(), "-o", self.path("net.h"), code=2)
        self.assertIn("[already-exists]", err)
        self.run_tool("new", self.net(), "-o", self.path("net.h"), "-f", "-q")

    def test_json_has_the_header_and_where_the_weights_were(self):
        result = self.run_json("new", str(TORCH / "import_config.pt"))
        self.assertEqual((result["root"], result["tensors"], result["output"], result["name"]), ("my_model", 2, None, "Model"))
        self.assertIn("weight", result["header"])  # a square matrix alone says nothing of how it lies

    def test_wrappers_are_left_out_and_whole_models_named(self):
        _, err = self.run_tool("new", str(TORCH / "state_data_parallel.pt"))
        self.assertIn('"module."', err)
        out, err = self.run_tool("new", str(TORCH / "module_lstm.pt"))
        self.assertIn("whole model", err)
        self.assertIn("ballast::Flat<nn::LSTM> layer{{2, 2}};", out)

    def test_members_of_a_sequential_are_named_by_their_positions(self):
        out, _ = self.run_tool("new", str(SOURCE / "examples/data/net.pt"))
        self.assertIn("nn::Linear layer_4{2704, 10};", out)
        self.assertIn('visit("4", self.layer_4);', out)

    def test_names_that_are_none_are_refused(self):
        for arguments in (["--name", "class"], ["--name", "a b"], ["--name", ""], ["--namespace", "a b"], ["--namespace", "a::"], ["--namespace", "std"]):
            _, err = self.run_tool("new", self.net(), *arguments, code=2)
            self.assertIn("[invalid-argument]", err)
        _, err = self.run_tool("new", self.file("none.safetensors", safetensors([])), code=2)
        self.assertIn("no tensors", err)
        _, err = self.run_tool("new", str(TORCH / "import_config.pt"), "--root", "nowhere", code=2)
        self.assertIn("my_model", err)
        self.assertEqual(sorted(os.listdir(self.folder)), ["net.safetensors", "none.safetensors"])

    def test_a_name_is_refused_with_the_reason(self):
        reasons = {"GPT2": 'no lower-case letter; "Gpt2" could not', "class": "a word of C++", "a b": 'has " " in it', "": "is empty", "2x": "begins with a digit", "a__b": "reserves", "_X": "reserves", "x_": "ends with an underscore"}
        for name, reason in reasons.items():
            for option, kind in (("--name", "struct"), ("--namespace", "namespace")):
                if option == "--namespace" and not name:
                    continue
                err = self.run_tool("new", self.net(), option, name, code=2)[1]
                self.assertIn(reason, err)
                self.assertIn(f"is not the name of a C++ {kind}: ", err)
        self.assertIn('"2b" begins with a digit', self.run_tool("new", self.net(), "--namespace", "a::2b", code=2)[1])
        self.run_tool("new", self.net(), "--name", "Gpt2")

    def test_a_hundred_thousand_names_take_seconds_and_not_hours(self):
        many = self.file("many.safetensors", safetensors([(f"w{i}", "U8", [1], b"\1") for i in range(100_000)]))
        out, _ = self.run_tool("new", many)
        self.assertIn('visit("w99999", self.w99999);', out)


if __name__ == "__main__":
    unittest.main()
