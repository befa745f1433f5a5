# SPDX-License-Identifier: Apache-2.0
"""One vocabulary: docs/options.md, the public headers, the command's help and the Python package name the same steps."""
import ast
import itertools
import json
import re
import unittest

from cli_testing import SOURCE, CliTest, floats, safetensors

STRUCTS = {"Steps": "steps.h", "LoadOptions": "load.h", "ConvertOptions": "convert.h", "VerifyOptions": "verify.h"}
COMMANDS = ("convert", "diff", "hash", "verify", "stats")


def table():
    """[(step, C++, flag, keyword)] of the document."""
    rows = re.findall(r"^\| (\d) \| `(\w+)` \| `(--[\w-]+)` \| `(\w+)` \|", (SOURCE / "docs/options.md").read_text(), re.M)
    return [(int(step), field, flag, keyword) for step, field, flag, keyword in rows]


def fields(struct):
    """{field: type} of a struct, in its order."""
    text = re.sub(r"//[^\n]*", "", (SOURCE / "include/ballast" / STRUCTS[struct]).read_text())
    body = re.search(r"\bstruct %s \{(.*?)\n\};" % struct, text, re.S).group(1)
    return {name: re.sub(r"\s+", " ", type_).strip() for type_, name in re.findall(r"([\w:<>, \n]+?)\s+(\w+)\s*=[^;]*;", body)}


def keywords(function):
    """{keyword: default} of a function of the package, in its order."""
    trees = [ast.parse((SOURCE / "python/ballast" / module).read_text()) for module in ("_files.py", "_proof.py")]
    definition = next(node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return {arg.arg: ast.unparse(default) for arg, default in zip(definition.args.kwonlyargs, definition.args.kw_defaults)}


class Vocabulary(CliTest):
    def test_the_document_has_the_steps_in_the_order_of_work(self):
        steps = table()
        self.assertEqual([field for _, field, _, _ in steps], [field for field in fields("Steps") if field != "quantized"])
        self.assertEqual([step for step, *_ in steps], sorted(step for step, *_ in steps))

    def test_a_field_has_one_name_and_one_type_in_all_options(self):
        steps = fields("Steps")
        for struct in ("LoadOptions", "ConvertOptions", "VerifyOptions"):
            for _, field, _, _ in table():
                self.assertEqual(fields(struct).get(field), steps[field], f"{struct}::{field}")

    def test_every_command_that_takes_the_steps_takes_all_of_them(self):
        for command in COMMANDS:
            text = self.run_tool(command, "--help")[0]
            for _, _, flag, _ in table():
                self.assertRegex(text, r"(?m)^\s+(-\w,\s*)?%s\b" % flag, command)

    def test_every_function_that_takes_the_steps_takes_all_of_them_with_one_default(self):
        for function in COMMANDS:
            found = keywords(function)
            for _, _, _, keyword in table():
                self.assertEqual(found.get(keyword), keywords("convert")[keyword], f"{function}({keyword})")

    def test_a_keyword_is_the_field_and_the_flag_is_the_keyword(self):
        for _, field, flag, keyword in table():
            self.assertEqual(keyword, field)
            self.assertEqual(flag.removeprefix("--").removeprefix("no-"), keyword.replace("_", "-"))


STEPS = {
    "rename": ["--rename", r"^net\.=", "--rename", "fc=head"],
    "rules": ["--rules", "rules.json"],
    "strip_prefixes": ["--strip-prefixes"],
    "include": ["--include", "weight"],
    "exclude": ["--exclude", "bias$"],
    "reindex": ["--reindex", "layers"],
    "keep_positions": ["--reindex", ".", "--keep-positions", "other"],
    "dtype": ["--dtype", "bf16"],
    "keep_dtype": ["--dtype", "bf16", "--keep-dtype", "fc"],
    "keep_statistics": ["--dtype", "bf16", "--no-keep-statistics"],
}


class OnePipeline(CliTest):
    """What convert wrote is what diff, hash and the others see of its input after the same steps."""

    def source(self):
        names = ["net.layers.1.fc.weight", "net.layers.3.fc.weight", "net.layers.3.fc.bias", "net.other.2.weight", "net.bn.running_mean", "net.bn.running_var", "net.bn.weight"]
        tensors = [("module." + name, "F32", [2], floats(1 + i / 7, -3 - i / 3)) for i, name in enumerate(names)]
        self.file("rules.json", json.dumps({"rules": [{"match": "layers", "reshape": [2, 1]}, {"match": "other", "drop": True}]}).encode())
        return self.file("in.safetensors", safetensors(tensors))

    def steps(self, *names):
        where = {"rules.json": self.path("rules.json")}
        return [where.get(word, word) for name in names for word in STEPS[name]]

    def test_a_release_equals_its_source_after_the_steps_that_made_it(self):
        source, seen = self.source(), set()
        for names in itertools.chain([[name] for name in STEPS], itertools.combinations(STEPS, 2)):
            steps, out = self.steps(*names), self.path("out.safetensors")
            if steps.count("--dtype") > 1 or steps.count("--reindex") > 1:
                continue
            self.run_tool("convert", source, out, "-f", *steps)
            self.run_tool("diff", source, out, "--no-renames", *steps)
            made, _ = self.run_tool("hash", source, "--root-only", *steps)
            written, _ = self.run_tool("hash", out, "--root-only")
            self.assertEqual(made.split()[0], written.split()[0], steps)
            seen.add(written.split()[0])
        self.assertGreater(len(seen), 20)

    def test_a_slip_in_the_steps_is_a_difference(self):
        source, out = self.source(), self.path("out.safetensors")
        self.run_tool("convert", source, out, "--rename", "fc=head", "--dtype", "bf16")
        self.run_tool("diff", source, out, "--rename", "fc=hand", "--dtype", "bf16", "--no-renames", code=1)
        self.run_tool("diff", source, out, "--rename", "fc=head", "--dtype", "f16", "--no-renames", code=1)

    def test_a_release_of_one_of_two_state_dicts_is_compared_by_the_root_that_made_it(self):
        both = [(f"{part}.w", "F32", [1], floats(value)) for part, value in (("ema", 1), ("model", 2))]
        source, out, other = self.file("two.safetensors", safetensors(both)), self.path("ema.safetensors"), self.path("model.safetensors")
        self.run_tool("convert", source, out, "--root", "ema")
        self.run_tool("convert", source, other, "--root", "model")
        _, said = self.run_tool("diff", source, out, "--root", "ema")
        self.assertIn('has nothing under "ema", compared as a whole', said)
        self.run_tool("diff", source, other, "--root", "ema", code=1)
        _, said = self.run_tool("diff", source, source, "--root", "ema")
        self.assertNotIn("as a whole", said)
        self.run_tool("diff", out, source, "--root", "ema", code=2)  # the steps are A's

    def test_a_pattern_that_matches_in_one_of_two_files_is_no_slip(self):
        source, out = self.source(), self.path("out.safetensors")
        self.run_tool("convert", source, out, "--exclude", "bias")
        for a, b in ((source, out), (out, source)):
            _, said = self.run_tool("diff", a, b, "--exclude", "bias")
            self.assertNotIn("matched nothing", said)
        _, said = self.run_tool("diff", source, out, "--exclude", "bias", "--exclude", "zzz")
        self.assertEqual(said.count("matched nothing"), 1)

    def test_a_dtype_is_a_word(self):
        source = self.source()
        self.run_tool("convert", source, self.path("o.safetensors"), "--dtype", "", code=2)
        self.run_tool("convert", source, self.path("o.safetensors"), "--dtype", "keep")
        self.run_tool("diff", source, self.path("o.safetensors"))

    def test_stats_and_verify_look_at_what_the_steps_leave(self):
        big = self.file("big.safetensors", safetensors([("a.w", "F32", [1], floats(70000)), ("a.v", "F32", [2], floats(1, 2))]))
        self.run_tool("verify", big)
        found = self.run_json("verify", big, "--dtype", "f16", code=1)["findings"]
        self.assertEqual([(f["name"], f["kind"]) for f in found], [("a.w", "inf")])
        stats = self.run_json("stats", big, "--rename", "^a=b", "--dtype", "f16", "--include", "v$")["tensors"]
        self.assertEqual([(t["name"], t["dtype"]) for t in stats], [("b.v", "F16")])

    def test_a_pattern_of_any_step_that_matches_nothing_is_said(self):
        source = self.source()
        for flag in ("--include", "--exclude", "--reindex", "--rename", "--keep-dtype"):
            pattern = "zzz=y" if flag == "--rename" else "zzz"
            more = ["--dtype", "bf16"] if flag == "--keep-dtype" else ["--include", "fc"] if flag == "--include" else []
            for command in (["convert", source, self.path("o.safetensors"), "-f"], ["hash", source], ["stats", source]):
                _, err = self.run_tool(*command, flag, pattern, *more)
                self.assertIn('"zzz" matched nothing', err, [flag, *command])


if __name__ == "__main__":
    unittest.main()
