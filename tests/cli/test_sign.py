# SPDX-License-Identifier: Apache-2.0
"""Signatures of OpenSSF Model Signing: what every version of the reference's tool made is verified, what sign makes is checked by the openssl tool, and files are judged as the
reference judges them (tests/peers/sign.py asks it itself)."""
import base64
import hashlib
import json
import os
import shutil
import socket
import subprocess
import unittest

from cli_testing import SOURCE, CliTest

FIXTURES = SOURCE / "tests/fixtures/signatures"
FILES = FIXTURES / "files"
CURVES = {"p256": "sha256", "p384": "sha384", "p521": "sha512"}
OPENSSL = shutil.which("openssl")


def encoded(payload):
    return b"DSSEv1 28 application/vnd.in-toto+json %d " % len(payload) + payload


class Signing(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        shutil.copytree(FIXTURES / "model", self.model)
        self.signature = self.folder / "model.sig"
        self.key, self.public = FILES / "key-p256.pem", FILES / "pub-p256.pem"

    def sign(self, *more, model=None, signature=None):
        self.run_tool("sign", model or self.model, "--key", self.key, "-o", signature or self.signature, "-f", *more)

    def verify(self, code=0, *more, model=None, signature=None):
        return self.run_tool("verify", model or self.model, "--signature", signature or self.signature, "--key", self.public, *more, code=code)

    def findings(self, *more, model=None, signature=None):
        document = self.run_json("verify", model or self.model, "--signature", signature or self.signature, "--key", self.public, *more, code=1)
        return sorted(f"{finding['kind']} {finding['name']}" for finding in document["findings"])

    def statement(self, signature=None):
        bundle = json.loads((signature or self.signature).read_text())
        return json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"], validate=True))


class Fixtures(Signing):
    def test_every_signature_of_the_reference_has_the_verdict_it_should(self):
        expect = json.loads((FIXTURES / "expect.json").read_text())
        self.assertGreaterEqual(len(expect), 28)
        for name, row in expect.items():
            by = ["--key", FILES / row["key"]] if "key" in row else [word for file in row["trust"] for word in ("--certificate-chain", FILES / file)]
            command = ["verify", self.model, "--signature", FILES / f"{name}.sig", *by]
            if row["verdict"] == "ok":
                document = self.run_json(*command)
                self.assertEqual((document["clean"], document["files"]), (True, 6), name)
            else:
                document = self.run_json(*command, code=2)
                self.assertEqual(document["error"]["code"], row["verdict"], name)

    def test_every_signature_of_the_reference_finds_one_changed_byte(self):
        expect = json.loads((FIXTURES / "expect.json").read_text())
        (self.model / "weights.bin").write_bytes(bytes(255) + b"\0")
        for name, row in expect.items():
            if row["verdict"] == "ok" and "key" in row:
                self.public = FILES / row["key"]
                self.assertEqual(self.findings(signature=FILES / f"{name}.sig"), ["changed weights.bin"], name)

    def test_another_key_and_another_root_are_refused(self):
        by_key, by_certificate = FILES / "1.1.1-key-p256.sig", FILES / "1.1.1-certificate-p256.sig"
        self.run_tool("verify", self.model, "--signature", by_key, "--key", self.public)
        for curve in ("p384", "p521"):
            self.assertIn("signed with another key", self.run_tool("verify", self.model, "--signature", by_key, "--key", FILES / f"pub-{curve}.pem", code=2)[1])
        said = self.run_tool("verify", self.model, "--signature", by_certificate, "--certificate-chain", FILES / "other.pem", code=2)[1]
        self.assertIn("does not lead to one that is trusted", said)
        # What lies between is not a root, whoever names it.
        self.run_tool("verify", self.model, "--signature", by_certificate, "--certificate-chain", FILES / "between.pem", code=2)

    def test_a_key_that_was_given_for_its_path_is_not_shown(self):
        text = self.key.read_text()
        secret = text.splitlines()[2]
        signature = FILES / "1.1.1-key-p256.sig"
        for command in (["sign", self.model, "--key", text, "-o", self.signature], ["sign", self.model, "--key", self.key, "--cert", text, "-o", self.signature],
                        ["verify", self.model, "--signature", signature, "--key", text], ["verify", self.model, "--signature", FILES / "1.1.1-certificate-p256.sig", "--certificate-chain", text]):
            said = self.run_tool(*command, code=2)[1]
            self.assertNotIn(secret, said)
            self.assertIn("the path of its file is wanted", said, command)

    def test_a_keyless_signature_is_named_with_who_made_it(self):
        said = self.verify(2, signature=FILES / "keyless.sig")[1]
        for words in ("keyless, by Sigstore", "someone@example.com", "not checked"):
            self.assertIn(words, said)


@unittest.skipUnless(OPENSSL, "the openssl tool")
class Openssl(Signing):
    def openssl(self, *words, text=b""):
        return subprocess.run([OPENSSL, *map(str, words)], input=text, check=True, capture_output=True).stdout

    def test_a_new_signature_fits_the_public_key_on_each_curve(self):
        for curve, digest in CURVES.items():
            self.key, self.public = FILES / f"key-{curve}.pem", FILES / f"pub-{curve}.pem"
            self.sign()
            bundle = json.loads(self.signature.read_text())
            envelope = bundle["dsseEnvelope"]
            self.file("text", encoded(base64.b64decode(envelope["payload"])))
            self.file("sig", base64.b64decode(envelope["signatures"][0]["sig"]))
            said = self.openssl("dgst", f"-{digest}", "-verify", self.public, "-signature", self.path("sig"), self.path("text"))
            self.assertIn(b"Verified OK", said)
            hint = hashlib.sha256(self.openssl("pkey", "-pubin", "-in", self.public, "-pubout")).hexdigest()
            self.assertEqual(bundle["verificationMaterial"], {"publicKey": {"hint": hint}, "tlogEntries": []})
            self.verify()

    def test_a_signature_of_openssls_is_verified(self):
        self.sign()
        bundle = json.loads(self.signature.read_text())
        self.file("text", encoded(base64.b64decode(bundle["dsseEnvelope"]["payload"])))
        bundle["dsseEnvelope"]["signatures"][0]["sig"] = base64.b64encode(self.openssl("dgst", "-sha256", "-sign", self.key, self.path("text"))).decode()
        self.signature.write_text(json.dumps(bundle, indent=3))
        self.verify()

    def test_certificates_travel_with_the_signature_and_lead_to_the_root(self):
        for curve in CURVES:
            self.key = FILES / f"key-{curve}.pem"
            self.sign("--cert", FILES / f"leaf-{curve}.pem", "--chain", FILES / "between.pem")
            document = self.run_json("verify", self.model, "--signature", self.signature, "--certificate-chain", FILES / "root.pem")
            self.assertEqual(document["signer"], f"CN=leaf-{curve},O=Ballast tests")
            self.sign("--cert", FILES / f"leaf-{curve}.pem")
            self.run_tool("verify", self.model, "--signature", self.signature, "--certificate-chain", FILES / "root.pem", code=2)
            both = ["--certificate-chain", FILES / "root.pem", "--certificate-chain", FILES / "between.pem"]
            self.run_tool("verify", self.model, "--signature", self.signature, *both)
        self.assertIn("certificate of another key", self.run_tool("sign", self.model, "--key", FILES / "key-p256.pem", "--cert", FILES / "leaf-p384.pem", "-o", self.path("x"), code=2)[1])

    def test_an_encrypted_key_is_opened_with_its_passphrase(self):
        self.openssl("pkey", "-in", self.key, "-aes256", "-passout", "pass:secret words", "-out", self.path("locked.pem"))
        self.key = self.path("locked.pem")
        self.file("phrase", b"secret words\n")
        self.assertIn("give its passphrase", self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, code=2)[1])
        self.sign("--passphrase-file", self.path("phrase"))
        self.verify()
        self.file("phrase", b"other words\n")
        self.assertIn("does not open it", self.run_tool("sign", self.model, "--key", self.key, "-o", self.path("x"), "--passphrase-file", self.path("phrase"), code=2)[1])

    def test_keys_of_other_kinds_are_named(self):
        for words in (["-algorithm", "RSA"], ["-algorithm", "ED25519"], ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"]):
            self.openssl("genpkey", *words, "-out", self.path("other.pem"))
            said = self.run_tool("sign", self.model, "--key", self.path("other.pem"), "-o", self.path("x"), code=2)[1]
            self.assertIn("EC keys on the curves P-256, P-384 and P-521", said)


class Models(Signing):
    """What the reference says of the same folders, in its words: mismatch, extra, missing."""

    def test_the_statement_is_the_references(self):
        self.sign()
        ours, theirs = self.statement(), self.statement(FILES / "1.1.1-key-p256.sig")
        theirs["predicate"]["serialization"]["ignore_paths"] = sorted(theirs["predicate"]["serialization"]["ignore_paths"])
        ours["predicate"]["serialization"]["ignore_paths"] = sorted(ours["predicate"]["serialization"]["ignore_paths"])
        self.assertEqual(ours, theirs)

    def test_files_that_changed_came_went_or_moved_are_found(self):
        self.sign()
        (self.model / "a/new").write_bytes(b"")
        (self.model / "config.json").unlink()
        (self.model / "a/b.txt").rename(self.model / "a/c.txt")
        (self.model / "weights.bin").write_bytes(bytes(range(255)) + b"\0")
        self.assertEqual(self.findings(), ["added a/c.txt", "added a/new", "changed weights.bin", "missing a/b.txt", "missing config.json"])
        out, _ = self.verify(1)
        self.assertIn("not what was signed", out)
        self.assertEqual(self.findings("--ignore-unsigned"), ["changed weights.bin", "missing a/b.txt", "missing config.json"])

    def test_a_folder_under_another_name_is_the_same_model(self):
        self.sign()
        shutil.copytree(self.model, self.folder / "copy")
        self.verify(model=self.folder / "copy")
        (self.folder / "copy/empty folder").mkdir()
        self.verify(model=self.folder / "copy")

    def test_the_signature_itself_git_and_what_is_ignored_do_not_count(self):
        inside = self.model / "model.sig"
        self.sign("--ignore", self.model / "a/c", signature=inside)
        self.assertEqual(self.statement(inside)["predicate"]["serialization"]["ignore_paths"], ["model.sig", "a/c", ".git", ".gitattributes", ".github", ".gitignore"])
        (self.model / ".git/objects").mkdir(parents=True)
        for name in (".git/objects/x", ".gitignore", "a/c/more", "a/c/empty"):
            (self.model / name).write_bytes(b"anything")
        _, said = self.verify(signature=inside)
        self.assertIn("not signed, and not looked at: model.sig, .git", said)
        (self.model / "a/cc").write_bytes(b"")  # another name, though it begins with an ignored one
        (self.model / "a/.gitignore").write_bytes(b"")  # not at the top
        self.assertEqual(self.findings(signature=inside), ["added a/.gitignore", "added a/cc"])

    def test_git_files_count_where_that_is_asked_for(self):
        (self.model / ".gitignore").write_bytes(b"x")
        self.sign("--no-ignore-git")
        self.assertIn(".gitignore", [resource["name"] for resource in self.statement()["predicate"]["resources"]])
        self.verify(0, "--no-ignore-git")
        self.assertEqual(self.findings(), ["missing .gitignore"])

    def test_links_are_refused_unless_they_are_allowed(self):
        (self.folder / "blob").write_bytes(b"blob")
        (self.model / "link").symlink_to(self.folder / "blob")
        said = self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, code=2)[1]
        self.assertIn("is a symbolic link to", said)
        self.sign("--allow-symlinks")
        self.assertIn("is a symbolic link to", self.verify(2)[1])
        self.verify(0, "--allow-symlinks")
        (self.folder / "blob").write_bytes(b"blub")
        self.assertEqual(self.findings("--allow-symlinks"), ["changed link"])
        (self.folder / "blob").unlink()
        self.verify(2, "--allow-symlinks")

    def test_links_to_folders_are_not_followed_and_links_in_ignored_folders_are_looked_at(self):
        (self.folder / "else").mkdir()
        (self.folder / "else/file").write_bytes(b"")
        (self.model / "there").symlink_to(self.folder / "else")
        _, said = self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, "--allow-symlinks")
        self.assertIn("there is a link to a folder", said)
        self.assertEqual(len(self.statement()["predicate"]["resources"]), 6)
        (self.model / "there").unlink()
        (self.model / ".git").mkdir()
        (self.model / ".git/link").symlink_to(self.folder / "else/file")
        self.verify(2)
        (self.folder / "way").symlink_to(self.model)
        self.verify(2, model=f"{self.folder}/way/")

    def test_what_is_no_file_is_refused(self):
        os.mkfifo(self.model / "pipe")
        self.assertIn("neither a file nor a folder", self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, code=2)[1])
        (self.model / "pipe").unlink()
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(self.model / "s"))
            self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, code=2)
        (self.model / "s").unlink()
        with open(os.fsencode(self.model) + b"/\xff", "wb"):
            self.assertIn("not UTF-8", self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, code=2)[1])

    def test_one_file_is_a_model_too(self):
        file = self.model / "weights.bin"
        self.sign(model=file)
        self.assertEqual([resource["name"] for resource in self.statement()["predicate"]["resources"]], ["."])
        self.verify(model=file)
        self.verify(1)
        file.write_bytes(b"")
        self.assertEqual(self.findings(model=file), ["changed ."])

    def test_a_folder_without_files_is_not_signed(self):
        (self.folder / "nothing/.git").mkdir(parents=True)
        (self.folder / "nothing/.git/x").write_bytes(b"")
        self.assertIn("no file that could be signed", self.run_tool("sign", self.folder / "nothing", "--key", self.key, "-o", self.signature, code=2)[1])

    def test_a_signature_is_not_overwritten_unless_asked_for(self):
        self.sign()
        before = self.signature.read_bytes()
        self.assertIn("-f overwrites it", self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, code=2)[1])
        self.assertEqual(self.signature.read_bytes(), before)

    def test_nothing_but_a_signature_is_overwritten(self):
        for target in (self.model / "config.json", self.model / "weights.bin"):
            before = target.read_bytes()
            said = self.run_tool("sign", self.model, "--key", self.key, "-o", target, "-f", code=2)[1]
            self.assertIn("is there and no signature", said)
            self.run_tool("sign", target, "--key", self.key, "-o", target, "-f", code=2)
            self.assertEqual(target.read_bytes(), before)
        shutil.copy(self.key, self.path("key.pem"))
        self.run_tool("sign", self.model, "--key", self.path("key.pem"), "-o", self.path("key.pem"), "-f", code=2)
        shutil.copy(FILES / "keyless.sig", self.signature)
        self.sign()
        self.verify()

    def test_names_that_are_not_text_are_refused_unless_they_are_ignored(self):
        name = os.fsencode(self.model) + b"/\xff"
        with open(name, "wb"):
            self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, code=2)
        self.run_tool("sign", self.model, "--key", self.key, "-o", self.signature, "--ignore", name, code=2)
        os.rename(name, os.fsencode(self.model) + b"/a/c/\xff")
        self.sign("--ignore", self.model / "a/c")
        os.rename(self.model, os.fsencode(self.folder) + b"/\xff")
        self.run_tool("sign", os.fsencode(self.folder) + b"/\xff", "--key", self.key, "-o", self.path("x"), code=2)

    def test_options_of_the_two_questions_do_not_mix(self):
        self.sign()
        self.run_tool("verify", self.model, "--key", self.public, code=2)
        self.verify(2, "--max-abs", "1")
        self.verify(2, "--include", "x")
        self.run_tool("verify", self.model, self.model, "--signature", self.signature, "--key", self.public, code=2)
        self.assertIn("give one of them", self.run_tool("verify", self.model, "--signature", self.signature, code=2)[1])


if __name__ == "__main__":
    unittest.main()
