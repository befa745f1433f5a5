# SPDX-License-Identifier: Apache-2.0
"""Files of PyTorch 2.15 that are no plain state dicts are read as far as they can be, and called what they are."""
import json
import pathlib
import unittest
import zipfile

from cli_testing import SOURCE, CliTest, read_safetensors

FILES = SOURCE / "tests/fixtures/torch_strangers"
EXPECT = json.loads((FILES / "expect.json").read_text())


class Strangers(CliTest):
    def tensors(self, name, *options):
        _, notes = self.run_tool("convert", str(FILES / name), self.path("o.safetensors"), "-f", *options)
        return {key: data for key, (_, _, data) in read_safetensors(self.path("o.safetensors"))[0].items()}, notes

    def test_weights_of_a_frozen_program_are_its_constants(self):
        tensors, notes = self.tensors("frozen.pt")
        self.assertEqual(sorted(data.hex() for data in tensors.values()), EXPECT["frozen"])
        self.assertEqual(sorted(tensors), [f"constants.{i}" for i in range(4)])
        self.assertIn("frozen program", notes)
        self.assertEqual(self.run_json("scan", str(FILES / "frozen.pt"), code=1)["verdict"], "unknown")

    def test_a_tensor_of_an_unknown_dtype_hides_no_others(self):
        tensors, notes = self.tensors("bcomplex.pt")
        self.assertEqual({name: data.hex() for name, data in tensors.items()}, EXPECT["bcomplex"])
        self.assertRegex(notes, r'near "z": a tensor \[3\] of the unknown dtype torch\.bcomplex32, in a storage of 12 bytes')
        self.assertIn('1 value is left out, which no tensor is: "z"', notes)
        self.assertEqual(self.run_json("scan", str(FILES / "bcomplex.pt"), code=1)["verdict"], "unknown")

    def test_a_dtensor_is_called_one_process_part(self):
        listed = self.run_json("ls", str(FILES / "dtensor.pt"))
        self.assertIn("one process (rank)", " ".join(listed["notes"]))
        self.assertRegex(" ".join(listed["notes"]), r'near "_?[a-z]+": a part of a tensor \[4, 3\] by Shard\(0\)')
        tensors, _ = self.tensors("dtensor.pt", "--root", "")
        self.assertIn(EXPECT["dtensor"], [data.hex() for data in tensors.values()])

    def test_checkpoints_of_dcp_are_called_that_and_never_danger(self):
        for path in (FILES / "dcp", FILES / "dcp/__0_0.distcp"):
            _, said = self.run_tool("ls", str(path), code=2)
            self.assertIn("torch.distributed.checkpoint (DCP)", said)
            self.assertIn("dcp_to_torch", said)
        self.assertIn("(DCP)", " ".join(self.run_json("ls", str(FILES / "dcp/.metadata"))["notes"]))
        # One tensor's part is a zip archive of PyTorch's, whatever it is called; the table of contents has classes of PyTorch's own.
        self.assertEqual(self.run_json("scan", str(FILES / "dcp/__0_0.distcp"))["verdict"], "clean")
        self.assertEqual(self.run_json("scan", str(FILES / "dcp/.metadata"), code=1)["verdict"], "unknown")

    def test_a_package_of_aotinductor_is_a_compiled_program(self):
        path = self.path("compiled.pt2")
        with zipfile.ZipFile(path, "w") as package:
            package.writestr("compiled/archive_format", "pt2")
            package.writestr("compiled/data/aotinductor/model/code.wrapper.so", b"\x7fELF")
        _, said = self.run_tool("ls", path, code=2)
        self.assertIn("compiled program (AOTInductor)", said)

    def test_files_of_keras_and_tensorflow_are_called_that(self):
        with zipfile.ZipFile(self.path("m.keras"), "w") as model:
            model.writestr("config.json", "{}")
            model.writestr("model.weights.h5", b"\x89HDF\r\n\x1a\n")
        # The end of LevelDB's tables, which TensorFlow's indexes are.
        pathlib.Path(self.path("model.ckpt.index")).write_bytes(bytes(40) + 0xDB4775248B80FB57.to_bytes(8, "little"))
        pathlib.Path(self.path("model.ckpt.data-00000-of-00001")).write_bytes(b"\1\2\3\4" * 20)
        for name, words in {"m.keras": "is a model of Keras", "model.ckpt.index": "is the index of a TensorFlow checkpoint",
                            "model.ckpt.data-00000-of-00001": "by its name the data of a TensorFlow checkpoint"}.items():
            _, said = self.run_tool("ls", self.path(name), code=2)
            self.assertIn(words, said)


if __name__ == "__main__":
    unittest.main()
