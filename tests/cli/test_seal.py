# SPDX-License-Identifier: Apache-2.0
"""Encrypted files: every command reads them with an identity, convert writes them, keygen makes keys; age itself is the other side."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import unittest

from cli_testing import BALLAST, CliTest, environment, floats, safetensors

AGE = shutil.which("age")
CRYPTO = pathlib.Path(__file__).resolve().parent.parent / "fixtures/crypto_tensors/files"
MODEL = safetensors([("a.weight", "F32", [40, 600], floats(*range(1, 24001))), ("b", "F32", [2], floats(1, 2))], {"k": "v"})


class Sealed(CliTest):
    def setUp(self):
        super().setUp()
        self.key = self.folder / "key.txt"
        self.recipient = self.run_tool("keygen", "-o", self.key)[0].strip()
        self.plain = self.file("model.safetensors", MODEL)
        self.sealed = self.folder / "model.safetensors.age"

    def seal(self, out=None, *more):
        out = out or self.sealed
        self.run_tool("convert", self.plain, out, "--recipient", self.recipient, *more)
        return out

    def age(self, *arguments):
        return subprocess.run([AGE, *map(str, arguments)], check=True, capture_output=True).stdout


class Keys(Sealed):
    def test_a_new_key_is_a_file_of_ages_only_its_owner_can_read(self):
        lines = self.key.read_text().splitlines()
        self.assertRegex(lines[0], r"^# created: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(lines[1], f"# public key: {self.recipient}")
        self.assertRegex(lines[2], r"^AGE-SECRET-KEY-1[0-9A-Z]{58}$")
        self.assertEqual(stat.S_IMODE(self.key.stat().st_mode), 0o600)
        if shutil.which("age-keygen"):
            said = subprocess.run(["age-keygen", "-y", self.key], check=True, capture_output=True, text=True).stdout
            self.assertEqual(said.strip(), self.recipient)

    def test_without_a_file_the_key_is_printed(self):
        self.assertIn("\nAGE-SECRET-KEY-1", self.run_tool("keygen")[0])
        self.assertEqual(set(self.run_json("keygen")), {"schema", "recipient", "identity"})

    def test_a_key_is_never_replaced(self):
        before = self.key.read_text()
        self.assertIn("a key is never replaced", self.run_tool("keygen", "-o", self.key, code=2)[1])
        self.assertEqual(self.key.read_text(), before)


class Reading(Sealed):
    def test_every_command_reads_what_it_reads_of_the_plain_file(self):
        self.seal()
        for command in (["ls", "--plain"], ["ls", "-l"], ["hash"], ["stats"], ["show"], ["verify"], ["scan"], ["meta"], ["new"]):
            name, *options = command
            plain = self.run_tool(name, self.plain, *options)[0]
            sealed = self.run_tool(name, self.sealed, *options, "--identity", self.key)[0]
            self.assertEqual(sealed.replace(".safetensors.age", ".safetensors").splitlines()[-2:], plain.splitlines()[-2:], name)
        self.run_tool("diff", self.plain, self.sealed, "--identity", self.key)
        self.run_tool("convert", self.sealed, self.folder / "back.safetensors", "--identity", self.key)
        self.assertEqual((self.folder / "back.safetensors").read_bytes(), MODEL)

    def test_identities_come_from_the_environment_and_from_a_command(self):
        self.seal()
        self.run_tool("ls", self.sealed, env=environment(BALLAST_IDENTITY=str(self.key)))
        self.run_tool("ls", self.sealed, "--identity-command", f"cat '{self.key}'")
        self.assertIn("the command failed", self.run_tool("ls", self.sealed, "--identity-command", "echo no; false", code=2)[1])

    def test_without_the_right_identity_it_is_one_line_and_exit_2(self):
        self.seal()
        self.run_tool("keygen", "-o", self.folder / "other.txt")
        for command in ("ls", "show", "verify", "hash", "stats", "new", "scan", "meta"):
            message = self.run_tool(command, self.sealed, code=2)[1]
            self.assertIn("is encrypted with age: give an identity (--identity FILE", message, command)
            message = self.run_tool(command, self.sealed, "--identity", self.folder / "other.txt", code=2)[1]
            self.assertIn("none is of the 1 identity given", message, command)
            self.assertEqual(message.count("\n"), 1, message)

    def test_shards_may_be_encrypted(self):
        self.seal(self.folder / "one.safetensors.age")
        self.file("model.safetensors.index.json", b'{"weight_map":{"a.weight":"one.safetensors.age","b":"one.safetensors.age"}}')
        index = self.folder / "model.safetensors.index.json"
        self.assertEqual(len(self.run_json("ls", index, "--identity", self.key)["tensors"]), 2)

    def test_a_folder_with_one_encrypted_file_opens(self):
        folder = self.folder / "model"
        folder.mkdir()
        self.seal(folder / "model.safetensors.age")
        self.assertEqual(len(self.run_json("ls", folder, "--identity", self.key)["tensors"]), 2)

    def test_changing_metadata_in_place_is_refused(self):
        self.seal()
        before = self.sealed.read_bytes()
        self.assertIn("age", self.run_tool("meta", self.sealed, "set", "k=w", "--identity", self.key, code=2)[1])
        self.assertEqual(self.sealed.read_bytes(), before)


class Shards(Sealed):
    def setUp(self):
        super().setUp()
        self.shards = self.folder / "shards"
        self.index = self.shards / "model.safetensors.index.json.age"

    def shard(self, *more, command="shard", out=None):
        self.run_tool(command, self.plain, out or f"{self.shards}/", "--shard-size", "50KB", "--recipient", self.recipient, *more)

    def test_every_file_is_encrypted_and_the_names_in_the_index_too(self):
        self.shard()
        self.assertEqual(sorted(os.listdir(self.shards)), ["model-00001-of-00002.safetensors.age", "model-00002-of-00002.safetensors.age", self.index.name])
        for name in os.listdir(self.shards):
            data = (self.shards / name).read_bytes()
            self.assertTrue(data.startswith(b"age-encryption.org/v1\n"), name)
            self.assertNotIn(b"weight", data, name)

    def test_the_index_and_the_folder_open_as_the_plain_file_does(self):
        self.shard()
        for path in (self.index, self.shards):
            self.run_tool("diff", self.plain, path, "--identity", self.key)
            for command in ("ls", "hash", "stats", "verify", "scan", "show"):
                self.run_tool(command, path, "--identity", self.key)
                message = self.run_tool(command, path, code=2)[1]
                self.assertIn("is encrypted with age: give an identity", message, command)
        self.assertEqual(self.run_json("ls", self.index, "--identity", self.key)["format"], "sharded")

    def test_merge_gives_the_plain_file_again_and_may_encrypt_it(self):
        self.shard()
        back, sealed = self.folder / "back.safetensors", self.folder / "one.safetensors.age"
        self.run_tool("merge", self.index, back, "--identity", self.key)
        self.assertEqual(back.read_bytes(), MODEL)
        self.run_tool("merge", self.index, sealed, "--identity", self.key, "--recipient", self.recipient)
        self.run_tool("diff", back, sealed, "--identity", self.key)

    def test_convert_writes_them_packed_and_with_a_receipt(self):
        receipt = self.folder / "r.json"
        self.shards.mkdir()
        self.shard("--pack", "small", "--receipt", receipt, "--identity", self.key, command="convert", out=self.shards / "model.safetensors.age")
        self.run_tool("diff", self.plain, self.shards, "--identity", self.key)
        self.run_tool("verify", self.shards, "--receipt", receipt, "--identity", self.key)
        said = json.loads(receipt.read_text())
        self.assertEqual(said["steps"]["recipients"], [self.recipient])
        self.assertEqual(sorted(file["name"] for file in said["output"]["files"]), sorted(os.listdir(self.shards)))

    def test_a_receipt_of_shards_knows_each_of_their_files(self):
        receipt = self.folder / "r.json"
        self.shards.mkdir()
        self.shard("--receipt", receipt, "--identity", self.key, command="convert", out=self.shards / "model.safetensors.age")
        self.assertEqual(sorted(file["name"] for file in json.loads(receipt.read_text())["output"]["files"]), sorted(os.listdir(self.shards)))

    def test_a_new_set_takes_the_place_of_the_old_one_and_of_nothing_else(self):
        self.run_tool("shard", self.plain, f"{self.shards}/", "--shard-size", "50KB")
        plain = {name: (self.shards / name).read_bytes() for name in os.listdir(self.shards)}
        self.shard()
        self.assertIn("-f", self.run_tool("shard", self.plain, self.shards, "--recipient", self.recipient, code=2)[1])
        self.run_tool("shard", self.plain, self.shards, "--recipient", self.recipient, "-f", "--identity", self.key)
        sealed = sorted(set(os.listdir(self.shards)) - set(plain))
        self.assertEqual(sealed, ["model-00001-of-00001.safetensors.age", self.index.name])
        self.assertEqual({name: (self.shards / name).read_bytes() for name in plain}, plain)
        self.assertIn("several indices", self.run_tool("ls", self.shards, code=2)[1])

    def test_a_changed_or_exchanged_shard_is_refused(self):
        self.shard()
        first, second = (self.shards / f"model-0000{i}-of-00002.safetensors.age" for i in (1, 2))
        data = bytearray(first.read_bytes())
        data[-1] ^= 1
        first.write_bytes(data)
        self.assertIn("not what was encrypted", self.run_tool("hash", self.index, "--identity", self.key, code=2)[1])
        first.write_bytes(second.read_bytes())
        self.run_tool("hash", self.index, "--identity", self.key, code=2)

    def test_a_name_that_says_otherwise_is_refused(self):
        for out, options in (("a.safetensors", ["--recipient", self.recipient]), ("a.safetensors.age", [])):
            self.run_tool("shard", self.plain, self.folder / out, *options, code=2)
        self.assertEqual(sorted(os.listdir(self.folder)), ["key.txt", "model.safetensors"])


class CryptoTensors(CliTest):
    """Made by CryptoTensors itself: fixtures/crypto_tensors/make.py."""

    def test_without_its_key_every_command_says_what_it_is(self):
        for command in ("ls", "show", "verify", "hash", "stats", "new", "scan", "meta"):
            for name in ("default", "some"):
                message = self.run_tool(command, CRYPTO / f"{name}.cryptotensors", code=2)[1]
                self.assertIn("is encrypted with CryptoTensors: give its key \"aes256gcm\" as a JSON Web Key", message, command)
                self.assertEqual(message.count("\n"), 1, message)

    def test_with_its_key_every_command_reads_the_plain_file(self):
        keys = ["--identity", CRYPTO / "keys.json"]
        for command in ("ls", "show", "verify", "hash", "stats", "new", "scan", "meta"):
            plain = self.run_tool(command, CRYPTO / "plain.safetensors")[0]
            for name in ("default", "some", "aes128gcm-v1", "chacha20poly1305-v2"):
                sealed = self.run_tool(command, CRYPTO / f"{name}.cryptotensors", *keys)[0]
                self.assertEqual(sealed.replace(f"{name}.cryptotensors", "plain.safetensors").splitlines()[-2:], plain.splitlines()[-2:], (command, name))
        out = self.folder / "plain.safetensors"
        self.run_tool("convert", CRYPTO / "default.cryptotensors", out, *keys)
        self.assertEqual(out.read_bytes(), (CRYPTO / "plain.safetensors").read_bytes())

    def test_it_is_not_changed_in_place(self):
        copy = self.file("copy.cryptotensors", (CRYPTO / "default.cryptotensors").read_bytes())
        self.run_tool("meta", copy, "set", "k=v", "--identity", CRYPTO / "keys.json", code=2)
        self.assertEqual(pathlib.Path(copy).read_bytes(), (CRYPTO / "default.cryptotensors").read_bytes())


class Writing(Sealed):
    def test_what_is_inside_is_what_would_have_been_written(self):
        for extension in ("safetensors", "pt", "npz", "record", "bpk", "mpk", "mpk.gz"):
            plain, sealed, back = (self.folder / f"out.{extension}{end}" for end in ("", ".age", ".back"))
            layers = ["--layers", "^a$=linear"] if extension in ("bpk", "mpk", "mpk.gz") else []
            self.run_tool("convert", self.plain, plain, *layers)
            self.seal(sealed, *layers)
            self.assertTrue(sealed.read_bytes().startswith(b"age-encryption.org/v1\n-> X25519 "), extension)
            self.assertNotIn(b"a.weight", sealed.read_bytes(), extension)
            self.run_tool("diff", plain, sealed, "--identity", self.key)
            if AGE:
                self.age("-d", "-i", self.key, "-o", back, sealed)
                self.assertEqual(back.read_bytes(), plain.read_bytes(), extension)

    @unittest.skipUnless(AGE, "no age")
    def test_what_age_encrypts_opens(self):
        self.age("-r", self.recipient, "-o", self.sealed, self.plain)
        self.assertEqual(len(self.run_json("ls", self.sealed, "--identity", self.key)["tensors"]), 2)

    def test_each_recipient_opens_it(self):
        other = self.run_tool("keygen", "-o", self.folder / "other.txt")[0].strip()
        self.seal(self.sealed, "--recipient", other)
        for key in (self.key, self.folder / "other.txt"):
            self.run_tool("diff", self.plain, self.sealed, "--identity", key)

    def test_a_passphrase_closes_and_opens(self):
        phrase = self.file("phrase.txt", b"correct horse battery\n")
        self.run_tool("convert", self.plain, self.sealed, "--passphrase-file", phrase)
        self.assertIn("give a passphrase", self.run_tool("ls", self.sealed, code=2)[1])
        self.run_tool("diff", self.plain, self.sealed, "--passphrase-file", phrase)
        wrong = self.file("wrong.txt", b"correct horse\n")
        self.assertIn("is not the one", self.run_tool("ls", self.sealed, "--passphrase-file", wrong, code=2)[1])

    def test_the_name_and_the_recipients_must_agree(self):
        self.assertIn("for whom", self.run_tool("convert", self.plain, self.sealed, code=2)[1])
        plain = self.folder / "out.safetensors"
        self.assertIn("ends in .age", self.run_tool("convert", self.plain, plain, "--recipient", self.recipient, code=2)[1])
        self.assertFalse(plain.exists() or self.sealed.exists())

    def test_a_receipt_nobody_here_could_make_is_refused_before_anything_is_written(self):
        self.run_tool("convert", self.plain, self.sealed, "--recipient", self.recipient, "--receipt", self.folder / "r.json", code=2)
        self.assertEqual(sorted(os.listdir(self.folder)), ["key.txt", "model.safetensors"])

    def test_a_receipt_says_for_whom_and_how(self):
        receipt = self.folder / "r.json"
        self.seal(self.sealed, "--receipt", receipt, "--identity", self.key, "--pack", "small")
        steps = json.loads(receipt.read_text())["steps"]
        self.assertEqual((steps["recipients"], steps["pack"], steps.get("passphrase")), ([self.recipient], "small", None))
        self.assertNotIn("SECRET", receipt.read_text())
        self.run_tool("verify", self.sealed, "--receipt", receipt, "--identity", self.key)
        phrase = self.file("phrase.txt", b"correct horse battery\n")
        other = self.folder / "other.safetensors.age"
        self.run_tool("convert", self.plain, other, "--passphrase-file", phrase, "--receipt", receipt, "-f")
        steps = json.loads(receipt.read_text())["steps"]
        self.assertEqual((steps.get("recipients"), steps["passphrase"]), (None, True))
        self.assertNotIn("horse", receipt.read_text())
        self.run_tool("verify", other, "--receipt", receipt, "--passphrase-file", phrase)

    def test_a_recipient_that_is_none_leaves_nothing_behind(self):
        for bad in (self.recipient[:-1], "age1", "ssh-ed25519 AAAA", self.key.read_text().splitlines()[2]):
            message = self.run_tool("convert", self.plain, self.sealed, "--recipient", bad, code=2)[1]
            self.assertNotIn("SECRET-KEY-1", message)
        self.assertEqual(sorted(os.listdir(self.folder)), ["key.txt", "model.safetensors"])

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_no_plain_byte_is_written_anywhere(self):
        mark = b"PLAINTEXT-MARK-"
        data = mark * 20000
        plain = self.file("marked.safetensors", safetensors([("w", "U8", [len(data)], data)]))
        log = self.folder / "trace"
        subprocess.run(["strace", "-f", "-s", "4000", "-e", "trace=write,pwrite64,copy_file_range,sendfile,writev", "-o", log, BALLAST, "convert",
                        plain, self.sealed, "--recipient", self.recipient], check=True, capture_output=True)  # fmt: skip
        self.assertNotIn(mark, log.read_bytes())
        self.assertNotIn(b"copy_file_range", log.read_bytes())
        self.run_tool("diff", plain, self.sealed, "--identity", self.key)


if __name__ == "__main__":
    unittest.main()
