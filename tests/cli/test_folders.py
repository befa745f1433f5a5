# SPDX-License-Identifier: Apache-2.0
"""Folders of a training, and files that hold no model."""
import json
import shutil
import unittest

from cli_testing import SOURCE, CliTest, floats, safetensors

TORCH = SOURCE / "tests/fixtures/torch/files"
OPTIMIZER = TORCH / "optim_adam_alone.pt"


class Folders(CliTest):
    def put(self, name, content=OPTIMIZER):
        shutil.copy(content, self.path(name))

    def model(self, name="model.safetensors"):
        return self.file(name, safetensors([("fc.weight", "F32", [2], floats(1, 2))]))

    def test_a_model_beside_what_its_training_left_is_meant_and_that_is_said(self):
        model = self.model()
        beside = ["lr_scheduler.bin", "optimizer.bin", "optimizer.pt", "rng_state.pth", "rng_state_0.pth", "scaler.pt", "scheduler.pt", "training_args.bin"]
        for name in beside:
            self.put(name)
            out, err = self.run_tool("ls", str(self.folder))
            self.assertIn("fc.weight", out)
            self.assertIn('of the folder "model.safetensors" is taken', err)
            self.assertIn(f'"{name}"', err) if len(list(self.folder.iterdir())) < 5 else None
        self.run_tool("diff", model, str(self.folder))
        self.run_tool("verify", str(self.folder))
        self.run_tool("convert", str(self.folder), self.path("../" + self.folder.name + "/out.npz"), "-q")

    def test_two_models_are_still_a_question(self):
        self.model()
        for name in ("pytorch_model.bin", "opt-125m.pt", "optimus.pt", "schedulers_model.pt"):
            self.put(name)
            _, err = self.run_tool("ls", str(self.folder), code=2)
            self.assertIn("name the one you mean", err)
            self.assertIn(name, err)
            (self.folder / name).unlink()

    def test_files_of_a_training_alone_are_taken_as_before(self):
        self.put("optimizer.pt")
        self.assertIn("state.0.exp_avg", self.run_tool("ls", str(self.folder))[0])
        self.put("scheduler.pt")
        self.run_tool("ls", str(self.folder), code=2)


class Names(CliTest):
    """What loaders of a folder take by its name, whatever file of weights it leads to."""

    # An array of one number, and Python that says so: a text that opens a longer one, and one that ends it.
    PICKLE = (b"V=print('run');X=\'\'\'\n0(dVw\ncnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntc_codecs\nencode\n(Vb\nVlatin1\ntRtR(I1\n(I1\nt"
              b"cnumpy\ndtype\n(Vf4\nI00\nI01\ntR(I3\nV<\nNNNI-1\nI-1\nI0\ntbI00\nc_codecs\nencode\n(Vabcd\nVlatin1\ntRtbsV\'\'\'\n0.")

    def expect(self, verdict, path):
        self.assertEqual(self.run_json("scan", str(path), code=int(verdict != "clean"))["verdict"], verdict, path)

    def test_a_shard_that_is_called_like_a_program_is_one_wherever_its_link_leads(self):
        compile(self.PICKLE, "hubconf.py", "exec")
        weights = self.file("weights.bin", self.PICKLE)
        self.expect("clean", weights)
        for name in ("hubconf.py", "model.so", "setup.SH", "requirements.txt", "chat.json"):
            for link in (True, False):
                folder = self.folder / f"{name}-{link}"
                folder.mkdir()
                (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
                if link:
                    (folder / "blob").write_bytes(self.PICKLE)
                    (folder / name).symlink_to("blob")
                else:
                    (folder / name).write_bytes(self.PICKLE)
                for path in (folder / "model.safetensors.index.json", folder):
                    self.expect("unknown", path)
        honest = self.folder / "honest"
        honest.mkdir()
        (honest / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "pytorch_model.bin"}}))
        (honest / "blob").write_bytes(self.PICKLE)
        (honest / "pytorch_model.bin").symlink_to("blob")
        self.expect("clean", honest / "model.safetensors.index.json")
        self.expect("clean", honest)


class Optimizers(CliTest):
    def test_the_state_of_an_optimizer_alone_is_called_that(self):
        said = "it is the state of an optimizer, and no model"
        alone = sorted(TORCH.glob("optim_*_alone.pt"))
        self.assertGreater(len(alone), 3)
        for path in alone:
            for command in (["ls", str(path)], ["verify", str(path), "--allow-zeros"], ["convert", str(path), self.path("o.npz"), "-f", "--root", ""]):
                self.assertIn(said, self.run_tool(*command)[1], command)
        for path in (TORCH / "optim_adam.pt", SOURCE / "examples/data/net.pt"):  # beside a model
            self.assertNotIn(said, self.run_tool("ls", str(path))[1])


if __name__ == "__main__":
    unittest.main()
