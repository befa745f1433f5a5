# SPDX-License-Identifier: Apache-2.0
"""What a release job leans on: damage is not passed on, no output destroys an input, and what was not looked at is not called fine."""
import bz2
import gzip
import io
import json
import lzma
import os
import pathlib
import struct
import unittest
import zipfile
import zlib

from cli_testing import SOURCE, CliTest, floats, quantized, safetensors, tied


class Folders(CliTest):
    """A folder is what loaders take from it, whatever open() takes."""

    EVIL = b"cposix\nsystem\n(S'true'\ntR."

    def model(self, **beside):
        (self.folder / "f/sub/deeper").mkdir(parents=True, exist_ok=True)
        clean = safetensors([("w", "F32", [1], floats(1))])
        self.file("f/m.safetensors", clean)
        self.file("f/m.safetensors.index.json", json.dumps({"weight_map": {"w": "m.safetensors"}}).encode())
        self.file("f/config.json", b'{"a": 1}')
        self.file("f/README.md", b"# A model\n")
        for name, data in beside.items():
            self.file("f/" + name, data)
        return self.path("f")

    def test_a_folder_of_shards_and_text_is_clean(self):
        self.run_tool("scan", self.model())

    def test_every_file_that_a_loader_could_load_is_looked_at_whatever_it_is_called(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("archive/data.pkl", self.EVIL)
        for name in ("pytorch_model.bin", "model.pkl", "x", "notes.txt", ".hidden", "z.safetensors", "sub/x.bin", "sub/deeper/x"):
            for data in (self.EVIL, b"\x80\x02" + self.EVIL, packed.getvalue(), *self.joblibs(), zlib.compress(b"") + zlib.compress(self.EVIL), *(pack(self.EVIL) for pack in (gzip.compress, zlib.compress, bz2.compress, lzma.compress))):
                folder = self.model(**{name: data})
                out, _ = self.run_tool("scan", folder, code=1)
                self.assertIn(name, out)
                os.remove(os.path.join(folder, name))

    @classmethod
    def joblibs(cls):
        """As joblib packed files once, and unpacks them still: int() reads many spellings of their size."""
        size = "%x" % len(cls.EVIL)
        for spelling in ("0x" + size, size, "0X" + size.upper(), " " + size, "\t0x" + size, "+" + size, "0" * 10 + size, "0_" + size, "\n" + size + "\n"):
            yield b"ZF" + spelling.encode().ljust(19) + zlib.compress(cls.EVIL)

    def test_a_model_of_onnx_that_joblib_would_unpack_is_none(self):
        onnx = (SOURCE / "tests/fixtures/onnx/files/raw.onnx").read_bytes()
        self.run_tool("scan", self.file("honest.onnx", onnx))
        for packed in self.joblibs():
            field = packed.ljust(2 + ord("F"), b"\0")           # "ZF" is field 11, of 70 bytes, which no model has
            self.assertEqual(len(field), 72)
            self.run_tool("scan", self.file("zf.onnx", field + onnx), code=2)
        for lead in range(0x50, 0x60):                          # a frame of zstd's that is passed over
            self.run_tool("scan", self.file("skip.onnx", bytes([lead]) + b"\x2a\x4d\x18" + bytes(3) + onnx), code=2)

    def test_a_model_of_onnx_that_may_be_another_message_of_protobuf_is_not_clean(self):
        """TensorFlow reads a model whose producer is a message as a SavedModel, and runs what is in it."""
        onnx = (SOURCE / "tests/fixtures/onnx/files/raw.onnx").read_bytes()
        start = b"\x08\x08" + onnx[onnx.index(b"\x3a"):]        # ir_version and the graph alone: no texts yet
        self.assertEqual(onnx[0], 0x08)
        field = lambda number, content: bytes([number << 3 | 2, len(content)]) + content  # noqa: E731
        for extra in (b"", field(2, b"pytorch"), field(6, b"two\n\tlines"), field(2, b"a") + field(3, b"2.15") + field(4, b"ai.x") + b"\x28\x07" + field(14, b"\x0a\x01k\x12\x01v")):
            self.run_tool("scan", self.file("m.onnx", start + extra))
        graph = field(2, b"\x0a\x04\x12\x02Op")                # GraphDef in a MetaGraphDef
        for extra in (field(2, graph), field(2, b"\x12\x00"), field(2, b"a\x7f"), field(2, b"x" * 127 + b"") + field(2, b"y"), field(3, b"1\n2"), field(4, b"\x01"), field(6, b"\x00"),
                      b"\x12\x83\x00abc", b"\x92\x00\x03abc", field(9, b"x"), b"\xa2\x06\x03abc", b"\x11" + bytes(8), b"\x18\x01", b"\x08\x08", b"\x28\x87\x00", b"\x12\x82\x04" + b"x" * 514):  # fmt: skip
            out, _ = self.run_tool("scan", self.file("m.onnx", start + extra), code=1)
            self.assertIn("protobuf", out, extra)
        self.run_tool("scan", self.file("saved_model.pb", onnx), code=1)

    def test_what_loaders_of_folders_run_is_never_clean(self):
        """torch.hub runs hubconf.py, sentence-transformers what modules.json names, transformers what auto_map names, Hydra what _target_ names, …"""
        (self.folder / "f/code").mkdir(parents=True, exist_ok=True)
        for name, data in {
            "hubconf.py": b"import os\n", "code/evil.py": b"", "x.pyc": b"\xcb\r\r\n" + bytes(12), "sub/op.so": b"\x7fELF" + bytes(60), "lib.so.6": b"\x7fELF", "a.dll": b"MZ", "run.ipynb": b"{}",
            "modules.json": b'[{"idx": 0, "name": "0", "path": "", "type": "torch.jit"}]', "sub/modules.json": b'["x"]', "sub/deeper/modules.json": b'[{"path": "../../x", "type": "sentence_transformers.models.Dense"}]', "tokenizer_config.json": b'{"a": {"auto_map": {"AutoTokenizer": "e.E"}}}',
            "model_index.json": b'{"custom_pipelines": {}}', "train_config.json": b'{"model": [{"_target_": "os_system"}]}', "unheard_of.json": b"{}", "adapter_config.json": b'{"auto_mapping": {"parent_library": "__main__"}}',
            "broken.json": b"{", "MLmodel": b"flavors: {}", "conda.yaml": b"a: !!python/object/apply:os.system []", "saved_model.pb": b"\x08\x01\x12\x04test", "config.cfg": b"[a]\n",
            "strange": b"\x01\x02\x03\x04" * 9, "requirements.txt": b"evil\n", "readme.joblib": b"text", "LICENSE.h5": b"x", "authors.yaml": b"a: 1", "copying.sh": b"#!/bin/sh\n",
            "chat_template.jinja": b"{{ cycler.__init__.__globals__ }}", "hubconf.py.": b"x", "hubconf.py ": b"x", "pre-requirements.txt": b"evil\n", "serve.sh": safetensors([("w", "F32", [1], floats(1))]), "x.whl": b"PK",
            "tokenizer.json": b'{"module": "os", "class_name": "system", "config": {}}', "sub/vocab.json": b'{"class_name": ["x"]}', "sub/pytorch_model.bin.index.json": b'{"weight_map": {"a": "pytorch_model.bin", "b": "../evil.bin"}}',
            "sub/x.index.json": b'{"weight_map": {"a": "/tmp/evil.bin"}}', "sub/config.json": b'{"model_file": "../a folder/evil.py"}', "sub/deeper/config.json": b'{"attn_implementation": {"text_config": [{"": "someone/kernel"}]}}',
        }.items():  # fmt: skip
            folder = self.model(**{name: data})
            out, _ = self.run_tool("scan", folder, code=1)
            self.assertIn(os.path.basename(name), out)
            os.remove(os.path.join(folder, name))
        for name, data in {
            "unet_config.json": b'{"_class_name": "UNet2DConditionModel", "sample_size": 64}', "modules.json": b'[{"type": "sentence_transformers.models.Pooling"}]', "vocab.json": b'{"auto": 1, "module": 2, "class_name": 3.0}',
            "tokenizer.json": b'{"version": "1.0", "model": {"type": "BPE", "vocab": {"class_name": 1, "os.system": 2}}}', "sub/pytorch_model.bin.index.json": b'{"metadata": {}, "weight_map": {"a": "pytorch_model.bin"}}',
            "adapter_config.json": b'{"auto_mapping": {"parent_library": "transformers.models.gpt2"}}', "merges.txt": b"a b\n", "LICENSE": b"x", "LICENSE.apache": b"x", "Readme.MD": b"# x",
            ".gitattributes": b"*.bin lfs\n", "chat_template.jinja": b"{{ x }}", "tokenizer.model": b"\x0a\x0e\x0a\x05<unk>", "a.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20), "empty": b"", "model.sig": b"{}",
        }.items():  # fmt: skip
            folder = self.model(**{name: data})
            self.run_tool("scan", folder)
            os.remove(os.path.join(folder, name))

    def test_json_that_names_code_anywhere_is_not_clean(self):
        """sentence-transformers' Dense calls what "activation_function" names, and no list of keys is ever whole."""
        def wraps(value):
            yield value
            yield {"activation_function": value}
            yield {"a": [{"b": [1, value]}]}
            yield {"types": {"query_0": value}}

        code = ["os.abort", " os.abort\n", "posix:system", "a.b:c", "torch.hub.load", "torch.load", "torch.jit", "torch.nn.functional.relu", "torch.nn.modules.activation.F", "transformers.utils.import_utils", "sentence_transformers.util.torch",
                "e.E", "builtins.exec", "ünï.côde", "_x._y", "timm.create_model", "__main__.Tanh"]  # fmt: skip
        words = ["torch.float32", "torch.bfloat16", "torch.nn.modules.activation.Tanh", "torch.nn.Tanh", "sentence_transformers.models.Dense", "transformers.BertModel", "model.safetensors", "pytorch_model.bin", "4.31.0", "apache-2.0", "gelu",
                 "org/name.v2", "a.b c", "{{ x.y }}", "layers.0.weight", ".", "a.", ".b", "", "https://x.y/z", "e.g. this"]  # fmt: skip
        for name in ("config.json", "sub/config.json", "tokenizer_config.json", "Generation_Config.JSON", "trainer_state.json", "model_index.json"):
            for value in (json.dumps(v) for text in code for v in wraps(text)):
                out, _ = self.run_tool("scan", self.model(**{name: value.encode()}), code=1)
                self.assertIn("import and call", out, value)
            self.run_tool("scan", self.model(**{name: json.dumps([list(wraps(text)) for text in words]).encode()}))
            os.remove(os.path.join(self.path("f"), name))
        for name in ("tokenizer.json", "vocab.json", "added_tokens.json"):  # words of a language
            self.run_tool("scan", self.model(**{name: json.dumps([code, dict.fromkeys(code, 1)]).encode()}))

    def test_a_pickle_that_is_called_as_programs_are_is_not_clean(self):
        """A pickle may be Python as well: torch.hub runs hubconf.py, whatever an index calls it."""
        pickle = b"V=r'''\n0(dp0\n(V''';print('ran')\n1."  # a dict with nothing in it
        for name in ("hubconf.py", "HubConf.PY", "x.pyc", "x.pyw", "x.so", "x.so.1", "a.dll", "hubconf.py."):
            (self.folder / "f").mkdir(exist_ok=True)
            alone = self.file("f/" + name, pickle)
            self.assertIn("is called as", self.run_tool("scan", alone, code=1)[0])
            os.remove(alone)
            out, _ = self.run_tool("scan", self.model(**{name: pickle}), code=1)
            self.assertIn("is called as", out)
            os.remove(alone)
            self.model(**{name: safetensors([("w", "F32", [1], floats(1))])})
            self.file("f/m.safetensors.index.json", json.dumps({"weight_map": {"w": name}}).encode())
            os.remove(self.path("f/m.safetensors"))
            self.assertIn("is called as", self.run_tool("scan", self.path("f"), code=1)[0])
            os.remove(alone)
        self.run_tool("scan", self.file("x.pkl", pickle))

    def test_a_pipeline_takes_its_parts_from_known_packages(self):
        for pair, is_clean in ((["diffusers", "UNet2DConditionModel"], True), (["transformers", "CLIPTextModel"], True), (["stable_diffusion", "StableDiffusionSafetyChecker"], True), ([None, None], True),
                               (["os", "abort"], False), (["my_unet", "MyUNet"], False), (["transformers", "pipeline"], False), (["diffusers", None], False), (["diffusers", 1], False)):  # fmt: skip
            folder = self.model(**{"model_index.json": json.dumps({"_class_name": "StableDiffusionPipeline", "part": pair}).encode()})
            self.run_tool("scan", folder, code=0 if is_clean else 1)
        for key, value, is_clean in (("_attn_implementation", "sdpa", True), ("attn_implementation", "someone/kernel", False), ("parent_library", "transformers.models.gpt2", True), ("parent_library", "os", False),
                                     ("parent_library", ["os"], False), ("parent_library", None, True), ("megatron_core", "megatron.core", True), ("megatron_core", "evil", False), ("trust_remote_code", False, True), ("trust_remote_code", True, False),
                                     ("tokenizer_kwargs", {"trust_remote_code": True}, False), ("trust_remote_code", 1, False), ("chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}", True),
                                     ("chat_template", "{{ cycler.__init__.__globals__.os.popen('id') }}", False), ("chat_template", "{{ x|attr('\\x5f\\x5finit\\x5f\\x5f') }}", False)):  # fmt: skip
            self.run_tool("scan", self.model(**{"model_index.json": json.dumps({key: value}).encode()}), code=0 if is_clean else 1)

    def test_a_template_asks_by_no_name_that_it_made(self):
        """Jinja takes an attribute where it finds no item, and a generator leads to Python's modules as a dunder does."""
        made = ["'_'~'_class_'~'_'", "'_' '_class_' '_'", "u+u+'class'", "v*2", "'%c%cclass'|format(95,95)", "(lipsum|string)[18]", "bos_token", "unheard", "l[0]", "d.k", "block", "loop.cycle('_'~'_a')", "messages|batch(1)|string", "'\\x5f\\x5finit'",
                "'\\N{LOW LINE}x'", "'\\137'", "'\\u005f'"]  # fmt: skip
        before = "{% set u='_' %}{% set v=u %}{% set l=[] %}{% set _ = l.append('_'+'_class') %}{% set d={'k': '_'~'_class'} %}{% set block %}_{% endset %}"
        reaching = [before + "{{ ()[" + name + "] }}" for name in made] + [before + "{% macro m(a, k) %}{{ a[k] }}{% endmacro %}{{ m((), " + name + ") }}" for name in made[:4]]
        reaching += [before + "{{ messages|map(attribute=" + name + ")|list }}" for name in made] + ["{% for k in ['_'~'_class'] %}{{ ()[k] }}{% endfor %}", "{% macro m(k) %}{{ ()[k] }}{% endmacro %}{% set n = m %}{{ n(1) }}"]
        reaching += ["{{ ([1]|map('int')).gi_frame.f_builtins.eval('1') }}", "{{ x.mro() }}", "{{ ()|attr\t('x') }}", "{{ x|map('attr', 'a') }}", "{% filter attr('x') %}{% endfilter %}", "{{ x|map(attribute='a.gi_frame') }}", "{{ x|join('', '_'~'_a') }}",
                     "{% raw %}{{ ' {% endraw %}{{ ().__class__ }}{{ ' }}", "{# ' #}{{ ().__class__ }}{# ' #}", "{{ \"'\" }}{{ ().__class__ }}{{ \"'\" }}", "{% include 'x' %}", "{{ '" + "x" * (1 << 20) + "' }}", "{{ '" + "[" * 99]  # fmt: skip
        reaching += ["{{ (messages|first).append('_'~'_c') }}{{ ()[(messages|first)[0]] }}", "{% macro m(" + ",".join("k%d" % i for i in range(30000)) + ") %}{% endmacro %}" + "{{ m }}" * 30000]
        # str.format takes the names in its text.
        reaching += ["{{ ('{0.' + '_'*2 + 'class}').format(messages) }}", "{{ ('{0.' ~ '_' ~ '_class}').format_map(messages) }}", "{% set f = '{0.' + '_'*2 + 'class}' %}{{ f.format(messages) }}",
                     "{{ ('{' ~ x)['format'](messages) }}", "{{ [('{' ~ x)]|map(attribute='format')|list }}", "{% set ns = namespace(f='{0.' ~ '_') %}{{ ns.f.format(messages) }}",
                     "{% set l = ['{0.' ~ '_'] %}{{ l[0].format(messages) }}", "{% set l = ['{0.' ~ '_'] %}{{ l[0]['format'](messages) }}", "{% set g = ('{' ~ x).format %}{{ g(messages) }}"]  # fmt: skip
        confined = ["{{ '{}: {}'.format(message.role, message.content) }}", "{% for p in tools %}{{ p.format }}{{ p['format'] }}{% endfor %}", "{% set f = '{} {}' %}{{ f.format(messages, tools) }}", "{{ '%s'|format(messages) }}",
                    "{{ messages[0]['content'].format }}", "{% for m in messages %}{{ m.content }}{% endfor %}", "{{ messages[0]['role'] }}", "{{ messages[loop.index0 + 1].content }}", "{%- set index = (messages|length - 1) - loop.index0 %}{{ messages[index]['role'] }}",
                    "{{ content.split('</think>')[-1].lstrip('\\n') }}", "{{ messages | selectattr('role', 'equalto', 'system') | list }}", "{{ messages|map(attribute='content')|join('\\n') }}", "{{ bos_token + '<|im_start|>' + message['role'] + '\\n' }}",
                    "{%- if messages[0]['role'] == 'system' -%}{% set loop_messages = messages[1:] %}{{ loop_messages[0].content }}{% endif %}", "{{ raise_exception('roles must alternate user/assistant/...') }}", "{{ tool | tojson(indent=4) }}", "{{ '<\\u2581>' }}",
                    "{%- macro render(d, keys) %}{%- for k in d if k not in keys %}{{ d[k] | string }}{% endfor %}{% endmacro %}{%- for t in tools %}{{ render(t.function, ['type', 'name']) }}{% endfor %}", "no template: __x__ {", "{% set r = 'role' %}{{ messages[0][r] }}",
                    "{%- set ns = namespace(found=false, last=messages|length - 1) %}{% for m in messages[::-1] %}{% if ns.found and m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"]  # fmt: skip
        for text in reaching:
            out, _ = self.run_tool("scan", self.model(**{"tokenizer_config.json": json.dumps({"chat_template": text}).encode()}), code=1)
            self.assertIn("a template that reaches into Python", out, text[:200])
        self.run_tool("scan", self.model(**{"tokenizer_config.json": json.dumps({"chat_template": confined[:1], "others": confined}).encode()}))

    def test_what_is_no_file_is_not_passed_over(self):
        folder = self.model()
        os.mkfifo(os.path.join(folder, "hubconf.py"))
        self.assertIn("is no file and no folder", self.run_tool("scan", folder, code=1)[0])

    def test_a_clean_file_beside_stays_clean(self):
        self.run_tool("scan", self.model(**{"other.safetensors": safetensors([("v", "F32", [1], floats(2))]), "a.pkl": b"\x80\x02}."}))


class KeysOfStorage(CliTest):
    """Metadata by which readers tell packed and encrypted files: only their writers say it."""

    KEYS = ("ballast.packed", "ballast.packed.version", "__crypto_keys__", "__encryption__")

    def test_such_a_key_of_another_format_is_left_out_and_the_tensors_stay_what_they_are(self):
        tensor = bytes([0x08, 2, 0x10, 1, 0x42, 1]) + b"w" + bytes([0x4A, 8]) + floats(1, 2)
        graph = bytes([0x2A, len(tensor)]) + tensor + bytes([0x12, 1]) + b"g"
        onnx = bytes([0x08, 8, 0x3A, len(graph)]) + graph + bytes([0x42, 2, 0x10, 13])

        def entry(key, value):  # metadata_props of onnx.ModelProto
            fields = b"".join(bytes([tag, len(text)]) + text for tag, text in ((0x0A, key), (0x12, value)))
            return bytes([0x72, len(fields)]) + fields

        for key in self.KEYS:
            for value in (b"x", b"1", b"{}"):
                source = self.file("m.onnx", onnx + entry(key.encode(), value) + entry(b"kept", b"yes"))
                for command, out in (("convert", "o.safetensors"), ("convert", "o.record"), ("shard", "s.safetensors")):
                    _, said = self.run_tool(command, source, self.path(out), "-f")
                    made = self.path(out + ".index.json" if command == "shard" else out)
                    self.run_tool("diff", source, made)
                    self.run_tool("verify", made)
                self.assertIn(f'metadata "{key}" is left out', self.run_tool("ls", source)[1])
                self.assertEqual(self.run_json("ls", self.path("o.safetensors"))["metadata"]["kept"], "yes")

    def test_such_a_key_is_never_set(self):
        source = self.file("s.safetensors", safetensors([("w", "U8", [3], b"abc")]))
        before = pathlib.Path(source).read_bytes()
        for key in self.KEYS:
            for command in (["meta", source, "set", f"{key}=x"], ["convert", source, self.path("o.safetensors"), "--meta", f"{key}=x"], ["shard", source, self.path("o.safetensors"), "--meta", f"{key}=x"]):
                self.run_tool(*command, code=2)
        self.assertEqual(pathlib.Path(source).read_bytes(), before)
        self.assertEqual(os.listdir(self.folder), ["s.safetensors"])


class Damage(CliTest):
    """One byte of a weight is changed; the checksum beside it says so."""

    def damaged(self, path):
        blob = bytearray(pathlib.Path(path).read_bytes())
        at = blob.rindex(floats(1.25, 2.5, 3.75))
        blob[at] ^= 1
        pathlib.Path(path).write_bytes(blob)
        return path

    def setUp(self):
        super().setUp()
        self.source = self.file("s.safetensors", safetensors([("w", "F32", [3], floats(1.25, 2.5, 3.75)), ("v", "F32", [1], floats(4))]))

    def test_damage_that_a_checksum_tells_is_not_passed_on(self):
        for suffix in ("pt", "record", "npz"):
            self.run_tool("convert", self.source, self.path(f"d.{suffix}"))
            bad = self.damaged(self.path(f"d.{suffix}"))
            for command in (
                ["convert", bad, self.path("o.safetensors")],
                ["convert", bad, self.path("o.safetensors"), "--dtype", "f16"],
                ["convert", bad, self.path("o.pt"), "--receipt", self.path("r.json")],
                ["convert", bad, self.path("o.safetensors"), "--shard-size", "1KB"],
                ["merge", bad, self.path("o.record")],
                ["shard", bad, self.path("o.safetensors")],
            ):
                _, err = self.run_tool(*command, code=2)
                self.assertIn("[bad-crc]", err, command)
                self.assertEqual([n for n in os.listdir(self.folder) if n.startswith(("o", "r.", "."))], [], command)
            self.run_tool("convert", bad, self.path("sound.safetensors"), "--include", "^v$", "-f")  # the other one is

    def test_no_check_rescues_and_the_receipt_says_so(self):
        self.run_tool("convert", self.source, self.path("d.pt"))
        bad = self.damaged(self.path("d.pt"))
        self.run_tool("convert", bad, self.path("o.safetensors"), "--no-check", "--receipt", self.path("r.json"))
        self.assertEqual(json.loads(pathlib.Path(self.path("r.json")).read_text())["steps"]["unchecked"], True)
        self.run_tool("merge", bad, self.path("m.safetensors"), "--no-check")
        self.run_tool("shard", bad, self.path("s.safetensors"), "--no-check")

    def test_an_archive_whose_checksums_are_zero_has_none(self):
        self.run_tool("convert", self.source, self.path("d.npz"))
        with zipfile.ZipFile(self.path("d.npz")) as archive:
            entry = archive.getinfo("w.npy")
            offset, crc = entry.header_offset, struct.pack("<I", entry.CRC)
        blob = pathlib.Path(self.path("d.npz")).read_bytes().replace(crc, b"\0\0\0\0")
        pathlib.Path(self.path("d.npz")).write_bytes(blob)
        self.run_tool("convert", self.damaged(self.path("d.npz")), self.path("o.safetensors"))


class Apart(CliTest):
    """No output is an input or another output, whatever names lead there; said before anything is written."""

    def test_no_output_takes_the_place_of_an_input_or_of_another_output(self):
        source = self.small("a.safetensors")
        content = pathlib.Path(source).read_bytes()
        os.link(source, self.path("hard.safetensors"))
        os.symlink(source, self.path("soft.safetensors"))
        os.mkdir(self.path("sub"))
        os.symlink(self.path("new.safetensors"), self.path("dangling.safetensors"))
        rules = self.file("rules.json", b'{"rules": []}')
        before = sorted(os.listdir(self.folder))
        out = self.path("o.safetensors")
        for command in (
            ["convert", source, source],
            ["convert", source, self.path("hard.safetensors")],
            ["convert", source, self.path("soft.safetensors")],
            ["convert", source, self.path("sub/../a.safetensors")],
            ["convert", self.path("soft.safetensors"), source],
            ["convert", source, out, "--receipt", source],
            ["convert", source, out, "--receipt", out],
            ["convert", source, out, "--receipt", self.path("./sub/../o.safetensors")],
            ["convert", source, self.path("dangling.safetensors"), "--receipt", self.path("new.safetensors")],
            ["convert", source, out, "--rules", rules, "--receipt", rules],
            ["convert", source, out, "--rules", source, "--receipt", source],
            ["merge", source, self.path("soft.safetensors")],
            ["new", source, "-o", source],
            ["new", source, "-o", self.path("hard.safetensors")],
            ["meta", source, "set", "a=b", "-o", self.path("hard.safetensors")],
        ):
            _, err = self.run_tool(*command, "-f", code=2)
            self.assertIn("different files", err, command)
            self.assertEqual(sorted(os.listdir(self.folder)), before, command)
            self.assertEqual(pathlib.Path(source).read_bytes(), content, command)

    def test_shards_do_not_replace_the_set_they_are_made_from(self):
        source = self.small("a.safetensors")
        os.mkdir(self.path("set"))
        self.run_tool("shard", source, self.path("set"), "--size", "10")
        before = {name: pathlib.Path(self.path("set/" + name)).read_bytes() for name in os.listdir(self.path("set"))}
        first = sorted(name for name in before if name.endswith("rs"))[0]
        for given in ("set", "set/model.safetensors.index.json", "set/" + first):
            for command in (["shard", self.path(given), self.path("set"), "-f"], ["convert", self.path(given), self.path("set"), "--shard-size", "1MB", "-f"]):
                _, err = self.run_tool(*command, code=2)
                self.assertIn("different files", err, command)
        self.assertEqual({name: pathlib.Path(self.path("set/" + name)).read_bytes() for name in os.listdir(self.path("set"))}, before)

    def test_a_side_output_that_cannot_be_written_is_said_before_the_work(self):
        source = self.small("a.safetensors")
        for receipt, word in ((self.path("nowhere/r.json"), "folder"), (self.path("r" * 300), "name of 300 bytes")):
            _, err = self.run_tool("convert", source, self.path("o.safetensors"), "--receipt", receipt, code=2)
            self.assertIn(word, err)
            self.assertFalse(os.path.exists(self.path("o.safetensors")))


class Gates(CliTest):
    """What a release job leans on says no where it has not looked, and before it has done half of its work."""

    def test_patterns_that_leave_nothing_are_no_clean_bill(self):
        source = self.file("a.safetensors", tied())
        for command in (["ls"], ["verify"], ["stats"], ["hash"]):
            for pattern in (["--include", "^typo"], ["--exclude", "."]):
                _, err = self.run_tool(*command, source, *pattern, code=2)
                self.assertIn("tensors is left by", err)
        self.run_tool("diff", source, source, "--include", "^typo", code=2)

    def test_metadata_that_makes_tensors_what_they_are_is_changed_by_force_alone(self):
        hub = safetensors([("a.weight", "F32", [2], floats(1, 2))], {"b.weight": "a.weight", "format": "pt"})
        for name, data, words in (("t", tied(), ("rm", "ballast.ties")), ("q", quantized(), ("rm", "ballast.quantized")), ("s", quantized(), ("set", "ballast.ties={}")), ("h", hub, ("rm", "b.weight"))):
            source = self.file(name + ".safetensors", data)
            self.run_tool("meta", source, *words, code=2)
            self.assertEqual(pathlib.Path(source).read_bytes(), data)
            self.run_tool("meta", source, *words, "-f")
        self.run_tool("meta", self.file("f.safetensors", hub), "set", "format=np", "epoch=3")

    def test_a_receipt_that_cannot_be_written_is_said_before_the_work(self):
        os.mkdir(self.path("folder"))
        self.run_tool("convert", self.file("a.safetensors", tied()), self.path("o.pt"), "-f", "--receipt", self.path("folder"), code=2)
        self.assertFalse(os.path.exists(self.path("o.pt")))

    def test_verify_finds_damage_in_an_archive_of_arrays(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }".ljust(117) + b"\n"
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("a.npy", b"\x93NUMPY\1\0" + struct.pack("<H", 118) + header + floats(1, 2, 3, 4))
        data = bytearray(made.getvalue())
        self.run_tool("verify", self.file("good.npz", bytes(data)))
        data[data.index(floats(3, 4))] ^= 1
        out, _ = self.run_tool("verify", self.file("bad.npz", bytes(data)), code=1)
        self.assertIn("checksum", out)

    def test_arrays_that_are_one_name_to_numpy_are_neither_read_nor_written(self):
        array = b"\x93NUMPY\1\0" + struct.pack("<H", 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n" + floats(1)
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for name in ("a.npy", "a.npy.npy"):
                archive.writestr(name, array)
        self.run_tool("ls", self.file("two.npz", made.getvalue()), code=2)
        both = safetensors([("a", "F32", [1], floats(1)), ("a.npy", "F32", [1], floats(2))])
        self.run_tool("convert", self.file("both.safetensors", both), self.path("o.npz"), code=2)

    def test_whole_numbers_that_do_not_fit_are_reported_when_a_rule_casts_to_them(self):
        source = self.file("v.safetensors", safetensors([("f", "F32", [5], floats(70000, -3.7, 1e-8, 5, float("nan"))), ("i", "I64", [3], struct.pack("<3q", 300, -1, 7))]))
        def convert(match, dtype, code):
            rules = self.file("r.json", json.dumps({"rules": [{"match": match, "cast": dtype}]}).encode())
            return self.run_tool("convert", source, self.path("o.safetensors"), "-f", "--rules", rules, code=code)[1]
        self.assertIn("2 values were too large", convert("f", "int8", 1))
        self.assertIn("3 values were too large", convert("f", "uint8", 1))
        self.assertIn("1 value was too large", convert("i", "int8", 1))
        convert("i", "int32", 0)
        for dtype in ("i8", "u8"):
            self.assertIn("64 to NumPy", convert("i", dtype, 2))

    def test_rules_make_no_more_of_a_file_than_it_has(self):
        source = self.file("a.safetensors", tied())
        for rule in ({"match": "(.*)", "to": "$1$1"}, {"match": "(.*)", "alias": "$1.a"}):
            rules = self.file("r.json", json.dumps({"rules": [rule] * 40}).encode())
            self.assertIn("[too-many]", self.run_tool("convert", source, self.path("o.safetensors"), "-f", "--rules", rules, code=2)[1])


if __name__ == "__main__":
    unittest.main()
