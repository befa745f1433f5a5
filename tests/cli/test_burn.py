# SPDX-License-Identifier: Apache-2.0
"""Burn's files through the command: whose layout they get, what of them survives, and what is said. Written and read back by MessagePack and CBOR of our own (tests/fixtures/burn)."""
import gzip
import itertools
import json
import math
import pathlib
import shutil
import struct
import sys
import unittest

from cli_testing import SOURCE, CliTest, floats, read_safetensors, safetensors

sys.path.insert(0, str(SOURCE / "tests/fixtures/burn"))
sys.dont_write_bytecode = True
from burn_files import QUANT_SCALES, QUANT_VALUES, aligned, burnpack, cb_read, mp, mp_read, param, quantized, record  # noqa: E402

NET = [
    ("fc.weight", "F32", [2, 3], floats(*range(6))),
    ("fc.bias", "F32", [2], floats(7, 8)),
    ("norm.weight", "F32", [2], floats(1, 2)),
    ("norm.bias", "F32", [2], floats(3, 4)),
    ("norm.running_mean", "F32", [2], floats(5, 6)),
    ("norm.running_var", "F32", [2], floats(7, 8)),
    ("norm.num_batches_tracked", "I64", [], struct.pack("<q", 9)),
]
TRANSPOSED = floats(0, 3, 1, 4, 2, 5)


def read_mpk(path):
    with open(path, "rb") as file:
        return mp_read(file.read())[0]


def read_bpk(path):
    """{name: (dtype, shape, data)} and the metadata."""
    with open(path, "rb") as file:
        data = file.read()
    tree, end = cb_read(data, 10)
    start = aligned(end)
    return {n: (t["dtype"], t["shape"], data[start + t["data_offsets"][0] : start + t["data_offsets"][1]]) for n, t in tree["tensors"].items()}, tree.get("metadata", {})


def ids_of(path):
    tree, _ = cb_read(pathlib.Path(path).read_bytes(), 10)
    return {name: tensor["param_id"] for name, tensor in tree["tensors"].items()}


class Layout(CliTest):
    def net(self, metadata=None):
        return self.file("net.safetensors", safetensors(NET, metadata))

    def test_burns_files_get_burns_layout_and_it_is_said(self):
        for out in ("net.mpk", "net.bpk"):
            _, err = self.run_tool("convert", self.net(), self.path(out), "-f")
            self.assertIn("the layout was pytorch and is burn: 1 batch_norm, 1 linear; 1 that burn has no place for left out", err)
        item = read_mpk(self.path("net.mpk"))["item"]
        self.assertEqual((item["fc"]["weight"]["param"]["bytes"], item["fc"]["weight"]["param"]["shape"]), (TRANSPOSED, [3, 2]))
        self.assertEqual(sorted(item["norm"]), ["beta", "gamma", "running_mean", "running_var"])
        tensors, metadata = read_bpk(self.path("net.bpk"))
        self.assertEqual(tensors["fc.weight"][1:], ([3, 2], TRANSPOSED))
        self.assertNotIn("norm.num_batches_tracked", tensors)  # Module::load_file refuses what it has no place for
        self.assertEqual(metadata["ballast.layout"], "burn")

    def test_a_layer_below_one_that_is_made_of_layers_is_one_of_its_own(self):
        attention = [("a.in_proj_weight", "F32", [6, 2], floats(*range(12))), ("a.in_proj_bias", "F32", [6], floats(*range(6))), ("a.out_proj.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("a.out_proj.bias", "F32", [2], floats(5, 6))]
        gate = [("a.gate.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("a.gate.bias", "F32", [2], floats(5, 6))]
        source = self.file("a.safetensors", safetensors(attention + gate))
        self.run_tool("convert", source, self.path("a.bpk"))
        tensors, _ = read_bpk(self.path("a.bpk"))
        self.assertEqual(tensors["a.gate.weight"][2], floats(1, 3, 2, 4))
        self.assertEqual(tensors["a.output.weight"][2], floats(1, 3, 2, 4))
        source = self.file("b.safetensors", safetensors(attention + [("a.lora", "F32", [2, 2], floats(1, 2, 3, 4))]))
        _, err = self.run_tool("convert", source, self.path("b.bpk"), code=2)
        self.assertIn('"a.lora" [2, 2]: no tensor of a multihead_attention that is known', err)
        # Two gates of four are no LSTM.
        parts = (("weight", [2, 2], floats(1, 2, 3, 4)), ("bias", [2], floats(5, 6)))
        gates = [(f"c.{gate}.input_transform.{field}", "F32", shape, data) for gate in ("input_gate", "forget_gate") for field, shape, data in parts]
        source = self.file("c.safetensors", safetensors(gates))
        self.run_tool("convert", source, self.path("c.bpk"))
        self.run_tool("convert", self.path("c.bpk"), self.path("d.safetensors"), "--layout", "pytorch")
        self.run_tool("diff", source, self.path("d.safetensors"))

    def test_what_the_whole_file_shows_of_its_layout_no_step_loses(self):
        # As Burn's own adapter to PyTorch writes it: the producer is Burn, the layout PyTorch's, and only e shows it.
        shown = [("e.weight", "F32", [3, 2], floats(*range(6))), ("e.bias", "F32", [3], floats(7, 8, 9)), ("fc.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("fc.bias", "F32", [2], floats(5, 6))]
        source = self.file("p.safetensors", safetensors(shown, {"producer": "burn"}))
        for steps in (["--include", "^fc"], ["--exclude", r"^e\."], ["--rename", r"^e\.=x.y"], ["--include", "^gc", "--rename", "fc=gc"]):
            for out in ("o.safetensors", "o.pt", "o.npz", "o.record"):
                self.run_tool("convert", source, self.path(out), "-f", *steps)
                self.run_tool("convert", self.path(out), self.path("back.safetensors"), "-f", "--layout", "pytorch")
                self.run_tool("diff", source, self.path("back.safetensors"), *steps)

    def test_a_like_file_must_have_the_layout_that_is_asked_for(self):
        source = self.file("k.safetensors", safetensors([("x.foo.weight", "F32", [3, 2], floats(*range(6)))]))
        _, err = self.run_tool("convert", source, self.path("k.bpk"), "--like", source, code=2)
        self.assertIn("has the layout pytorch", err)

    def test_layout_pytorch_keeps_it_and_marks_it(self):
        self.run_tool("convert", self.net(), self.path("net.bpk"), "--layout", "pytorch")
        tensors, metadata = read_bpk(self.path("net.bpk"))
        self.assertEqual((tensors["fc.weight"][1], metadata["ballast.layout"]), ([2, 3], "pytorch"))
        self.run_tool("convert", self.path("net.bpk"), self.path("again.safetensors"))
        self.assertEqual(read_safetensors(self.path("again.safetensors"))[0]["fc.weight"][2], floats(*range(6)))

    def test_there_and_back_is_the_same_through_every_format_that_says_whose_it_is(self):
        for way in itertools.product(("net.mpk", "net.bpk"), ("x.safetensors", "x.pt", "x.record"), ("y.bpk", "y.mpk")):
            at = self.net()
            for step in way:
                self.run_tool("convert", at, self.path(step), "-f")
                at = self.path(step)
            self.run_tool("convert", at, self.path("back.safetensors"), "-f", "--layout", "pytorch")
            back = read_safetensors(self.path("back.safetensors"))[0]
            self.assertEqual({n: t for n, t in back.items()}, {n: (d, s, b) for n, d, s, b in NET if "tracked" not in n}, way)

    def test_merge_lays_out_as_convert_does(self):
        for name in ("net.bpk", "net.mpk"):
            self.run_tool("convert", self.net(), self.path(name))
            _, err = self.run_tool("merge", self.net(), self.path("m-" + name))
            self.assertIn("the layout was pytorch and is burn", err)
            self.run_tool("diff", self.path(name), self.path("m-" + name))

    def test_words_of_the_metadata_may_go_and_the_layout_stays(self):
        parts = [("fc.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("fc.bias", "F32", [2], bytes(8))]
        words = ({"producer": "burn"}, {"format": "pt"}, {})
        for there, wanted in itertools.product(words, words):
            old = self.file("old.safetensors", safetensors(parts, there))
            shutil.copy(old, self.path("new.safetensors"))
            for key in there:
                self.run_tool("meta", self.path("new.safetensors"), "rm", key)
            for key, value in wanted.items():
                self.run_tool("meta", self.path("new.safetensors"), "set", f"{key}={value}")
            for file, out in ((old, "a"), (self.path("new.safetensors"), "b")):
                self.run_tool("convert", file, self.path(f"{out}.safetensors"), "-f", "--layout", "native", "--layers", "fc=linear")
            self.assertEqual(*(read_safetensors(self.path(f"{out}.safetensors"))[0] for out in "ab"), (there, wanted))
        flax = self.file("flax.safetensors", safetensors(parts, {"format": "flax"}))
        self.run_tool("meta", flax, "rm", "format")
        self.assertEqual(read_safetensors(flax)[1], {"ballast.layout": "flax"})

    def test_ids_and_kinds_follow_the_names_of_their_tensors(self):
        pack = self.file("ids.bpk", burnpack([(f"{layer}.weight", "F32", [2], bytes(8), number) for layer, number in (("fc", 11), ("fd", 21))]))
        for renames, ids in ((("^fc=tmp", "^fd=fc", "^tmp=fd"), {"fd.weight": 11, "fc.weight": 21}), (("^fc=x",), {"x.weight": 11, "fd.weight": 21})):
            self.run_tool("convert", pack, self.path("o.bpk"), "-f", *itertools.chain.from_iterable(("--rename", rule) for rule in renames))
            self.assertEqual(ids_of(self.path("o.bpk")), ids)
        self.run_tool("convert", pack, self.path("o.bpk"), "-f", "--exclude", "fc")
        self.assertEqual(ids_of(self.path("o.bpk")), {"fd.weight": 21})

    def test_a_format_that_cannot_say_it_refuses(self):
        self.run_tool("convert", self.net(), self.path("net.bpk"))
        _, err = self.run_tool("convert", self.path("net.bpk"), self.path("net.npz"), code=2)
        self.assertIn("[not-representable]", err)
        self.run_tool("convert", self.path("net.bpk"), self.path("net.npz"), "--layout", "pytorch")
        self.run_tool("diff", self.path("net.npz"), self.net(), "--exclude", "tracked")

    def test_what_names_and_shapes_leave_open_is_listed_and_refused(self):
        open_ = self.file("open.safetensors", safetensors([("shared.weight", "F32", [2, 2], floats(*range(4))), ("x.weight", "F32", [3], floats(1, 2, 3))]))
        _, err = self.run_tool("convert", open_, self.path("o.bpk"), code=2)
        self.assertIn('"shared.weight" [2, 2]', err)
        self.assertIn('"x.weight" [3]', err)
        for kind, data in (("linear", floats(0, 2, 1, 3)), ("embedding", floats(*range(4))), ("none", floats(*range(4)))):
            self.run_tool("convert", open_, self.path("o.bpk"), "-f", "--layers", f"^shared$={kind}", "--layers", "^x$=rms_norm")
            tensors, _ = read_bpk(self.path("o.bpk"))
            self.assertEqual((tensors["shared.weight"][2], sorted(tensors)), (data, ["shared.weight", "x.gamma"]))
        _, err = self.run_tool("convert", open_, self.path("o.bpk"), "-f", "--layers", "shared=linear", "--layers", "x=none", "--layers", "zzz=none")
        self.assertIn('"zzz" matched nothing', err)
        _, err = self.run_tool("convert", open_, self.path("o.bpk"), "-f", "--layers", "shared=lineal", code=2)
        self.assertIn("lineal", err)

    def test_what_could_be_a_layer_and_is_not_known_is_refused(self):
        deep = ".".join("x" * 62)
        for layer in (".fc", "a.", "a..b", deep):
            for weight in ([2, 2], [3, 2]):
                net = self.file("net.safetensors", safetensors([(f"{layer}.weight", "F32", weight, bytes(4 * math.prod(weight))), (f"{layer}.bias", "F32", weight[:1], bytes(4 * weight[0])), ("fc.weight", "F32", [2, 2], bytes(16)), ("fc.bias", "F32", [2], bytes(8))]))
                _, err = self.run_tool("convert", net, self.path("o.bpk"), code=2)
                self.assertIn("a part of its name is empty, or there are more than 60", err, layer)
        for names in (("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1"), ("weight_ih", "weight_hh")):
            net = self.file("net.safetensors", safetensors([(f"fc.{name}", "F32", [2, 2], bytes(16)) for name in names] + [("fc.bias", "F32", [2], bytes(8))]))
            _, err = self.run_tool("convert", net, self.path("o.bpk"), "-f", code=2)
            self.assertIn("of a weight norm or a recurrent cell", err, names)
            self.run_tool("convert", net, self.path("o.bpk"), "-f", "--layers", "fc=none")

    def test_attention_with_sizes_of_its_own_goes_there_and_back(self):
        parts = [(f"a.{x}_proj_weight", "F32", [4, size], floats(*range(4 * size))) for x, size in (("q", 4), ("k", 3), ("v", 2))]
        parts += [("a.in_proj_bias", "F32", [12], floats(*range(12))), ("a.out_proj.weight", "F32", [4, 4], floats(*range(16))), ("a.out_proj.bias", "F32", [4], floats(*range(4)))]
        self.run_tool("convert", self.file("net.safetensors", safetensors(parts)), self.path("o.bpk"))
        tensors, _ = read_bpk(self.path("o.bpk"))
        self.assertEqual({n: t[1] for n, t in tensors.items() if "weight" in n}, {"a.query.weight": [4, 4], "a.key.weight": [3, 4], "a.value.weight": [2, 4], "a.output.weight": [4, 4]})

    def test_what_is_said_must_fit_what_lies_there(self):
        layers = {"linear": [2, 3], "embedding": [2, 3], "conv": [2, 3, 1, 1], "layer_norm": [2], "rms_norm": [2], "prelu": [2]}
        for lies, shape in layers.items():
            net = self.file("net.safetensors", safetensors([("fc.0.weight", "F32", shape, bytes(4 * math.prod(shape))), ("fc.0.bias", "F32", [2], bytes(8))]))
            for said, fitting in layers.items():
                fits = len(shape) == len(fitting)
                _, err = self.run_tool("convert", net, self.path("o.bpk"), "-f", "--layers", f"fc={said}", code=0 if fits else 2)
                self.assertEqual(f"is said to be a {said}" in err, not fits, (lies, said))
                self.assertEqual(f"1 {said}" in err, fits, (lies, said))

    def test_a_file_of_burns_own_decides(self):
        open_ = self.file("open.safetensors", safetensors([("shared.weight", "F32", [2, 3], floats(*range(6))), ("x.weight", "F32", [3], floats(1, 2, 3))]))
        for shape, data in (([3, 2], TRANSPOSED), ([2, 3], floats(*range(6)))):
            like = self.file("like.bpk", burnpack([("shared.weight", "F32", shape, bytes(24), 1), ("x.alpha", "F32", [3], bytes(12), 2)]))
            self.run_tool("convert", open_, self.path("o.bpk"), "-f", "--like", like)
            tensors, _ = read_bpk(self.path("o.bpk"))
            self.assertEqual((tensors["shared.weight"][2], sorted(tensors)), (data, ["shared.weight", "x.alpha"]))

    def test_new_makes_layers_of_burns_files(self):
        self.run_tool("convert", self.net(), self.path("net.bpk"))
        out, _ = self.run_tool("new", self.path("net.bpk"))
        self.assertIn("nn::Linear fc{3, 2};", out)
        self.assertIn("nn::BatchNorm2d norm{2};", out)
        # Square ones too, which a PyTorch file leaves open, and recurrent layers.
        layers = [("a.weight", [3, 3]), ("a.bias", [3]), ("rms.weight", [4])]
        layers += [(f"{name}.{part}_{side}_l0", [gates * 4, *columns]) for name, gates in (("gru", 3), ("lstm", 4)) for part, side, columns in (("weight", "ih", [3]), ("weight", "hh", [4]), ("bias", "ih", []), ("bias", "hh", []))]
        source = self.file("all.safetensors", safetensors([(name, "F32", shape, bytes(4 * math.prod(shape))) for name, shape in layers]))
        for name in ("all.bpk", "all.mpk"):
            self.run_tool("convert", source, self.path(name))
            out, _ = self.run_tool("new", self.path(name))
            for member in ("nn::Linear a{3, 3};", "nn::RMSNorm rms{4};", "nn::GRU gru{3, 4};", "nn::LSTM lstm{3, 4};"):
                self.assertIn(member, out)


class Records(CliTest):
    def gru(self, variant="HardSigmoid"):
        gate = {f"{t}_transform": {"weight": param(1, "F32", [2, 2], floats(1, 2, 3, 4)), "bias": None} for t in ("input", "hidden")}
        layer = {g: gate for g in ("update_gate", "reset_gate", "new_gate")}
        if variant:
            layer["gate_activation"] = {variant: {"alpha": None}}
        return {**layer, "d_hidden": None}

    def test_configuration_survives_and_is_written_for_recurrent_layers(self):
        item = {"gru": self.gru(), "plain": self.gru(None), "acts": [{"Relu": None}, None, {"Lin": {"weight": param(2, "F32", [1], floats(1))}}], "pool": {"stride": [None, None]}}
        source = self.file("in.mpk", mp(record(item)))
        self.run_tool("convert", source, self.path("out.mpk"))
        out = read_mpk(self.path("out.mpk"))["item"]
        self.assertEqual(out["gru"]["gate_activation"], {"HardSigmoid": {"alpha": None}})
        self.assertEqual(out["plain"]["gate_activation"], {"Sigmoid": None})
        self.assertEqual(out["plain"]["hidden_activation"], {"Tanh": None})
        self.assertEqual(out["acts"][:2], [{"Relu": None}, None])
        self.assertEqual(out["pool"], {"stride": [None, None]})
        self.run_tool("convert", source, self.path("a.bpk"))  # and through a format that has no place but text
        self.run_tool("convert", self.path("a.bpk"), self.path("b.mpk"))
        self.assertEqual(read_mpk(self.path("b.mpk"))["item"]["gru"]["gate_activation"], {"HardSigmoid": {"alpha": None}})

    def test_json_records_are_read_and_bincode_is_named(self):
        source = self.file("in.mpk", mp(record({"gru": self.gru(), "layers": [{"weight": param(3, "F32", [1], floats(2))}]})))

        def plain(value):  # as serde_json writes bytes
            if isinstance(value, bytes):
                return list(value)
            if isinstance(value, dict):
                return {key: plain(each) for key, each in value.items()}
            return [plain(each) for each in value] if isinstance(value, list) else value

        tree = plain(mp_read(pathlib.Path(source).read_bytes())[0])
        for indent in (None, 2):
            text = json.dumps(tree, indent=indent).encode()
            for name, data in (("r.json", text), ("r.json.gz", gzip.compress(text))):
                self.run_tool("convert", self.file(name, data), self.path("out.mpk"), "-f")
                self.run_tool("diff", source, self.path("out.mpk"))
                self.assertEqual(read_mpk(self.path("out.mpk"))["item"]["gru"]["gate_activation"], {"HardSigmoid": {"alpha": None}})
        for bad in (text[:-9], text.replace(b'"bytes": [\n', b'"bytes": [300,\n', 1), text.replace(b'"bytes": [\n', b'"bytes": [-1,\n', 1)):
            self.run_tool("ls", self.file("bad.json", bad), code=2)
        words = ["f32", "i32", "burn_core::record::file::BinFileRecorder<burn_core::record::settings::FullPrecisionSettings>", "0.18.0", "FullPrecisionSettings"]
        packed = b"".join(bytes([len(w)]) + w.encode() for w in words) + bytes(100)
        for name, data in (("r.bin", packed), ("r.bin.gz", gzip.compress(packed))):
            _, err = self.run_tool("ls", self.file(name, data), code=2)
            self.assertIn("BinFileRecorder", err)

    def test_precision_is_that_of_the_tensors(self):
        source = self.file("in.safetensors", safetensors([("fc.weight", "F32", [2, 3], floats(*range(6))), ("fc.bias", "F32", [2], floats(1, 2))]))
        for dtype, settings, number in (("f16", "HalfPrecisionSettings", "i16"), ("f64", "DoublePrecisionSettings", "i64"), ("f32", "FullPrecisionSettings", "i32")):
            self.run_tool("convert", source, self.path(f"{dtype}.mpk"), "--dtype", dtype)
            self.run_tool("convert", self.path(f"{dtype}.mpk"), self.path("again.mpk"), "-f")
            for out in (f"{dtype}.mpk", "again.mpk"):
                metadata = read_mpk(self.path(out))["metadata"]
                self.assertEqual((metadata["float"], metadata["int"], metadata["settings"]), (dtype, number, settings))
                self.assertIn(settings, metadata["format"])

    def test_booleans_are_spelled_as_the_burn_asked_for_reads_them(self):
        source = self.file("in.safetensors", safetensors([("mask", "BOOL", [2], b"\1\0")]))
        for version, spelled in ((None, {"Bool": "Native"}), ("0.21", {"Bool": "Native"}), ("0.20.1", "Bool")):
            flags = [] if version is None else ["--burn", version]
            for out, read in (("o.mpk", lambda p: read_mpk(p)["item"]["mask"]["param"]["dtype"]), ("o.bpk", lambda p: read_bpk(p)[0]["mask"][0])):
                _, err = self.run_tool("convert", source, self.path(out), "-f", *flags)
                self.assertEqual(read(self.path(out)), spelled, (version, out))
                self.assertEqual("0.21" in err, version is None, err)
        for wrong in (["--burn", "new"], ["--burn", "0.9"]):
            self.run_tool("convert", source, self.path("o.mpk"), "-f", *wrong, code=2)
        self.run_tool("convert", source, self.path("o.bpk"), "-f", "--burn", "0.19", code=2)
        self.run_tool("convert", source, self.path("o.safetensors"), "-f", "--burn", "0.20", code=2)

    def test_dtypes_that_only_burn_has_stay_what_they_are(self):
        tensors = [("a", "Flex32", [1], floats(1), 1), ("b", {"Bool": "U8"}, [2], b"\1\0", 2), ("c", {"Bool": "U32"}, [1], b"\1\0\0\0", 3), ("d", {"Bool": "Native"}, [1], b"\1", 4)]
        source = self.file("in.bpk", burnpack(tensors))
        for out in ("out.bpk", "out.mpk"):
            self.run_tool("convert", source, self.path(out))
        self.assertEqual({n: t[0] for n, t in read_bpk(self.path("out.bpk"))[0].items()}, {n: d for n, d, *_ in tensors})
        item = read_mpk(self.path("out.mpk"))["item"]
        self.assertEqual({n: item[n]["param"]["dtype"] for n in "abcd"}, {n: d for n, d, *_ in tensors})

    def test_quantized_tensors_are_named_and_hide_no_others(self):
        data = struct.pack("<4b", -127, 0, 1, 127) + floats(0.5)
        old = {"QFloat": {"level": "Tensor", "mode": "Symmetric", "value": "Q8S", "store": "Native", "param": "F32"}}
        new = {"QFloat": {"value": "Q8F", "store": {"PackedU32": 0}, "mode": "Symmetric", "tensor": "F32", "block": None}}
        usual = {"QFloat": {"value": "Q8S", "store": "Native", "mode": "Symmetric", "tensor": None, "block": None}}  # as Burn 0.22 writes it
        strange = {"QFloat": {"value": "Q4S", "store": {"PackedU32": 0}, "mode": "Lookup", "tensor": "F32", "block": None}}
        tensors = [("new", new, [4], data), ("old", old, [2, 2], data), ("plain", "F32", [1], floats(3)), ("strange", strange, [8], data), ("usual", usual, [4], data)]
        pack = self.file("q.bpk", burnpack([(*t, 1) for t in tensors]))
        rec = self.file("q.mpk", mp(record({n: param(1, d, s, b) for n, d, s, b in tensors})))
        for file in (pack, rec):
            listed = self.run_json("ls", file)
            self.assertEqual([(t["name"], t["dtype"], t["shape"]) for t in listed["tensors"]], [("new", "F32", [4]), ("old", "F32", [2, 2]), ("plain", "F32", [1]), ("strange", "U8", [8]), ("usual", "F32", [4])])
            self.assertEqual(len([note for note in listed["notes"] if "quantized by Burn" in note]), 4)
            self.run_tool("convert", file, self.path("q.safetensors"), "-f")
            out = read_safetensors(self.path("q.safetensors"))[0]
            self.assertEqual((out["new"][2], out["usual"][2]), (floats(-63.5, 0, 0.5, 63.5),) * 2)
            self.assertEqual((out["old"][2], out["strange"][2]), (floats(-63.5, 0, 0.5, 63.5), data))

    def test_every_scheme_of_quantization_is_computed_back(self):
        stores = ("Native", ("PackedU32", 0), ("PackedU32", 1), ("PackedNative", 0), ("PackedNative", 1))
        levels = [(block, scale, False) for block in (None, [1, 4], [5, 2]) for scale in QUANT_SCALES] + [([1, 4], "UE4M3", True), ([5, 2], "F16", True)]
        made = {f"t{i:04}": (*quantized(value, store, dims, *level), dims) for i, (value, store, level, dims) in enumerate(itertools.product(QUANT_VALUES, stores, levels, ([20, 16], [7, 9])))}
        pack = self.file("q.bpk", burnpack([(name, dtype, dims, data, None) for name, (dtype, data, _, dims) in made.items()]))
        rec = self.file("q.mpk", mp(record({name: param(1, dtype, dims, data) for name, (dtype, data, _, dims) in made.items()})))
        for file in (pack, rec):
            self.run_tool("convert", file, self.path("q.safetensors"), "-f")
            out = read_safetensors(self.path("q.safetensors"))[0]
            wrong = [made[name][0] for name, (dtype, shape, data) in out.items() if (dtype, shape, data) != ("F32", made[name][3], floats(*made[name][2]))]
            self.assertEqual((len(out), wrong[:3]), (len(made), []))

    def test_blocks_of_old_are_computed_back_where_they_mean_one_thing(self):
        def scheme(block, scale="F32"):
            level = {"Block": {"storage": [*block, *[1] * (5 - len(block))], "len": len(block)}} if block else "Tensor"
            return {"QFloat": {"value": "Q8S", "param": scale, "store": "Native", "level": level, "mode": "Symmetric"}}

        codes, scales = bytes(range(24)), (0.5, 2.0, 4.0, 1.0, 0.25, 8.0)
        numbers = floats(*(code * scales[code // 4] for code in codes))
        for block, shape, kept in (([4], [3, 8], True), ([1, 4], [3, 8], True), ([4], [4, 6], False), ([2, 2], [4, 6], False), ([0], [3, 8], False), ([4, 4, 4], [3, 8], False)):
            for scale in ("F32", "BF16"):  # in the file it is F32 all the same
                pack = self.file("q.bpk", burnpack([("q", scheme(block, scale), shape, codes + floats(*scales), None)]))
                self.run_tool("convert", pack, self.path("q.safetensors"), "-f")
                found = read_safetensors(self.path("q.safetensors"))[0]["q"]
                self.assertEqual(found, ("F32", shape, numbers) if kept else ("U8", [48], codes + floats(*scales)), block)


if __name__ == "__main__":
    unittest.main()
