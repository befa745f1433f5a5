# SPDX-License-Identifier: Apache-2.0
"""ballast convert: values, names, refusals, and nothing left behind."""
import os
import signal
import struct
import subprocess
import time
import unittest

from cli_testing import BALLAST, CliTest, environment, floats, read_safetensors, safetensors, write_hollow


def halves(*values):
    return struct.pack(f"<{len(values)}e", *values)


def bf16(value):
    """Round to nearest even by hand."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


class Convert(CliTest):
    def test_a_copy_holds_the_same_tensors_and_metadata(self):
        source = self.small()
        out, _ = self.run_tool("convert", source, self.path("copy.safetensors"))
        self.assertEqual(read_safetensors(source), read_safetensors(self.path("copy.safetensors")))
        self.assertIn("3 tensors", out)

    def test_dtype_casts_floating_tensors_and_leaves_the_others(self):
        values = [1.0, -2.5, 1 / 3, 65504.0, 1e-8, 3.1415927]
        source = self.file("s.safetensors", safetensors([("w", "F32", [2, 3], floats(*values)), ("n", "I64", [2], struct.pack("<2q", 5, -6))]))
        for word, dtype, expected in (("f16", "F16", halves(*values)), ("bf16", "BF16", b"".join(map(bf16, values))), ("float64", "F64", None)):
            target = self.path(f"{word}.safetensors")
            report = self.run_json("convert", source, target, "--dtype", word)
            tensors, _ = read_safetensors(target)
            if dtype == "F64":
                expected = struct.pack("<6d", *struct.unpack("<6f", floats(*values)))
            self.assertEqual(tensors["w"], (dtype, [2, 3], expected))
            self.assertEqual(tensors["n"], ("I64", [2], struct.pack("<2q", 5, -6)))
            self.assertEqual((report["cast"], report["overflowed"]), (1, 0))

    def test_values_too_large_for_the_dtype_are_counted_and_found(self):
        source = self.file("big.safetensors", safetensors([("w", "F32", [6], floats(1e5, -7e4, 65519, 65520, float("inf"), float("nan")))]))
        target = self.path("half.safetensors")
        report = self.run_json("convert", source, target, "--dtype", "f16", code=1)
        self.assertEqual(report["overflowed"], 3)
        self.assertEqual(read_safetensors(target)[0]["w"][2][:8], halves(float("inf"), float("-inf"), 65504, float("inf")))
        _, err = self.run_tool("convert", source, target, "-f", "--dtype", "f16", code=1)
        self.assertIn("3 values", err)

    def test_a_large_tensor_is_cast_piece_by_piece_and_right(self):
        count = 1_000_003
        source = self.file("l.safetensors", safetensors([("w", "F32", [count], struct.pack("<f", 0.1) * (count - 1) + floats(1e6))]))
        report = self.run_json("convert", source, self.path("o.safetensors"), "--dtype", "f16", code=1)
        self.assertEqual(report["overflowed"], 1)
        data = read_safetensors(self.path("o.safetensors"))[0]["w"][2]
        self.assertEqual(data, halves(0.1) * (count - 1) + halves(float("inf")))

    def test_names_can_be_changed_and_chosen(self):
        source = self.file("n.safetensors", safetensors([(f"model.{k}", "F32", [1], floats(i)) for i, k in enumerate(["enc.0.w", "enc.1.w", "dec.w", "steps"])]))
        names = lambda *a: sorted(read_safetensors(self.convert(source, *a))[0])
        self.assertEqual(names("--rename", "^model\\.="), ["dec.w", "enc.0.w", "enc.1.w", "steps"])
        self.assertEqual(names("--rename", r"^model\.enc\.(\d+)\.(.*)=encoder.$1.x.${2}"), ["encoder.0.x.w", "encoder.1.x.w", "model.dec.w", "model.steps"])
        self.assertEqual(names("--rename", r"model\.(?P<rest>.*)=${rest}", "--rename", "enc=e"), ["dec.w", "e.0.w", "e.1.w", "steps"])
        self.assertEqual(names("--root", "model", "--include", "^enc", "--exclude", r"\.1\."), ["enc.0.w"])
        _, err = self.run_tool("convert", source, self.path("x"), "--to", "safetensors", "--rename", r"enc\.\d=enc", code=2)
        self.assertIn("[duplicate-key]", err)
        _, err = self.run_tool("convert", source, self.path("y.safetensors"), "--rename", "zzz=a")
        self.assertIn("matched nothing", err)
        _, err = self.run_tool("convert", source, self.path("z.safetensors"), "--include", "zzz", code=2)
        self.assertFalse(os.path.exists(self.path("z.safetensors")))

    def test_a_rules_file_changes_tensors_and_names(self):
        source = self.file("r.safetensors", safetensors([("qkv", "F32", [3, 1], floats(1, 2, 3)), ("w", "F32", [2, 2], floats(1, 2, 3, 4))]))
        rules = self.file("rules.json", b'''{"rules": [{"match": "^qkv$", "split": {"to": ["q", "k", "v"], "dim": 0}},
                                                    {"match": "^w$", "transpose": [0, 1], "to": "wt"}]}''')
        tensors, _ = read_safetensors(self.convert(source, "--rules", rules))
        self.assertEqual({k: v[1:] for k, v in tensors.items()},
                         {"q": ([1, 1], floats(1)), "k": ([1, 1], floats(2)), "v": ([1, 1], floats(3)), "wt": ([2, 2], floats(1, 3, 2, 4))})

    def test_renames_come_before_rules(self):
        source = self.file("o.safetensors", safetensors([("a", "F32", [1, 2], floats(1, 2))]))
        rules = self.file("rules.json", b'{"rules": [{"match": "^b$", "transpose": [0, 1], "to": "c"}]}')
        tensors, _ = read_safetensors(self.convert(source, "--rules", rules, "--rename", "^a$=b"))
        self.assertEqual({k: v[1] for k, v in tensors.items()}, {"c": [2, 1]})

    def test_reindex_closes_gaps(self):
        source = self.file("g.safetensors", safetensors([(f"{p}.{i}.w", "F32", [1], floats(i)) for p in ("fc", "flows") for i in (0, 2, 4)]))
        names = lambda *a: sorted(read_safetensors(self.convert(source, *a))[0])
        self.assertEqual(names("--reindex", "^fc"), ["fc.0.w", "fc.1.w", "fc.2.w", "flows.0.w", "flows.2.w", "flows.4.w"])
        self.assertEqual(names("--reindex", ""), ["fc.0.w", "fc.1.w", "fc.2.w", "flows.0.w", "flows.1.w", "flows.2.w"])

    def test_debug_keys_shows_every_key_before_and_after(self):  # the form Burn's users know
        source = self.file("d.safetensors", safetensors([("conv.w", "F32", [2, 1], floats(1, 2)), ("n", "I64", [], struct.pack("<q", 1)), ("out", "F32", [1], floats(1))]))
        out, _ = self.run_tool("convert", source, self.path("no.safetensors"), "--rename", "^conv=z", "--exclude", "out", "--debug-keys", "--dry-run")
        self.assertTrue(out.startswith("Debug information of keys and tensor shapes:\n---\n"
                                       "Key: n\nShape: []\nDtype: I64\n---\n"
                                       "Original Key: conv.w\nRemapped Key: z.w\nShape: [2, 1]\nDtype: F32\n---\n"), out)
        self.assertFalse(os.path.exists(self.path("no.safetensors")))
        keys = self.run_json("convert", source, self.path("yes.safetensors"), "--rename", "^conv=z", "--debug-keys")["keys"]
        self.assertEqual(keys[0], {"original": "conv.w", "name": "z.w", "dtype": "F32", "shape": [2, 1]})

    def convert(self, source, *arguments):
        target = self.path("target.safetensors")
        self.run_tool("convert", source, target, "-f", *arguments)
        return target

    def test_an_existing_output_is_kept_without_force(self):
        source, target = self.small(), self.file("there.safetensors", b"precious")
        _, err = self.run_tool("convert", source, target, code=2)
        self.assertIn("[already-exists]", err)
        self.assertIn("-f", err)
        with open(target, "rb") as file:
            self.assertEqual(file.read(), b"precious")
        self.run_tool("convert", source, target, "-f")
        self.assertEqual(len(read_safetensors(target)[0]), 3)

    def test_dry_run_writes_nothing(self):
        out, _ = self.run_tool("convert", self.small(), self.path("no.safetensors"), "--dry-run", "--dtype", "bf16")
        self.assertIn("BF16", out)
        self.assertEqual(os.listdir(self.folder), ["small.safetensors"])

    def test_unknown_dtypes_and_formats_are_refused(self):
        for arguments in (["--dtype", "f17"], ["--dtype", "i8"], ["--to", "docx"]):
            self.run_tool("convert", self.small(), self.path("o.safetensors"), *arguments, code=2)
        self.run_tool("convert", self.small(), self.path("o.docx"), code=2)
        self.assertEqual(os.listdir(self.folder), ["small.safetensors"])

    def test_an_output_folder_that_is_not_there_is_an_error(self):
        _, err = self.run_tool("convert", self.small(), self.path("no/such/o.safetensors"), code=2)
        self.assertEqual(len(err.splitlines()), 1)


class Interrupted(CliTest):
    def test_a_signal_leaves_nothing_behind(self):
        source = write_hollow(self.path("large.safetensors"), 1_500_000_000)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGXCPU, signal.SIGALRM, signal.SIGUSR1):
            process = subprocess.Popen([BALLAST, "convert", source, self.path("o.safetensors"), "--dtype", "f16", "-j", "1", "--no-progress"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
            deadline = time.monotonic() + 30
            while len(os.listdir(self.folder)) < 2 and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.002)
            self.assertEqual(len(os.listdir(self.folder)), 2, "the temporary never appeared")
            process.send_signal(number)
            self.assertEqual(process.wait(30), -number)  # what a shell shows as 130 and 143
            self.assertEqual(process.stderr.read(), b"")
            process.stderr.close()
            self.assertEqual(os.listdir(self.folder), ["large.safetensors"])

    def test_progress_is_a_bar_on_a_terminal_and_goes_away(self):
        source = write_hollow(self.path("large.safetensors"), 600_000_000)
        seen, code = self.run_on_terminal("convert", source, self.path("o.safetensors"), "--dtype", "f16", columns=100)
        self.assertEqual(code, 0)
        self.assertIn("convert o.safetensors", seen)
        self.assertIn("/s", seen)
        self.assertIn("left", seen)
        os.remove(self.path("o.safetensors"))
        self.assertNotIn("\n", seen.split("wrote")[0])

    def test_progress_is_lines_in_a_log_where_the_work_lasts(self):
        source = write_hollow(self.path("large.safetensors"), 100_000_000)
        often = environment(BALLAST_PROGRESS="0")
        for command in (["convert", source, self.path("o.safetensors"), "-f", "--dtype", "f16"], ["verify", source, "--allow-zeros"], ["hash", source], ["diff", source, source]):
            _, err = self.run_tool(*command, env=often)
            self.assertRegex(err, rf"(?m)^{command[0]} \S+: +\d+ %  [\d.]+ [KMG]?i?B / [\d.]+ MiB", command)
            self.assertNotRegex(err, r"[\r\x1b]")
            self.assertEqual(self.run_tool(*command, "--no-progress", env=often)[1], "")
            self.assertEqual(self.run_tool(*command, "-q", env=often)[1], "")
        self.assertEqual(self.run_tool("hash", self.small())[1], "")  # five seconds are not over


if __name__ == "__main__":
    unittest.main()
