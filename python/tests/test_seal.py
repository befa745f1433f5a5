# SPDX-License-Identifier: Apache-2.0
"""Files encrypted with age, from Python: opened, written, and refused without a key."""
import pathlib

import ballast
import numpy
import pytest

# Made by age-keygen, for tests alone.
IDENTITY = "AGE-SECRET-KEY-1EEG2W90H3P4A4JKCV2PECU8SX9ZJ6JHJZM3CP7Y9PLC68542L8ESWKXUC3"
RECIPIENT = "age13rx8xzcg3us35n58jlt4uhgtlsckpfhramnchct40cfq9nqfmfaqemrets"
WEIGHTS = {"w": numpy.arange(100_000, dtype="float32"), "b": numpy.ones(3, dtype="int64")}


@pytest.fixture
def key(tmp_path: pathlib.Path):
    path = tmp_path / "key.txt"
    path.write_text(f"# mine\n{IDENTITY}\n")
    yield path
    ballast.set_identities()


def test_what_is_saved_for_a_recipient_is_opened_by_its_identity(tmp_path, key):
    for extension in ("safetensors", "pt", "npz"):
        path = tmp_path / f"model.{extension}.age"
        ballast.save(path, WEIGHTS, recipients=[RECIPIENT])
        assert path.read_bytes().startswith(b"age-encryption.org/v1\n")
        for identities in ([key], [str(key)], key, [IDENTITY]):
            opened = ballast.open(path, identities=identities)
            numpy.testing.assert_array_equal(opened["w"].numpy(), WEIGHTS["w"])
            numpy.testing.assert_array_equal(opened["w"][500:510:3].numpy(), WEIGHTS["w"][500:510:3])


def test_without_a_key_the_error_says_what_to_give(tmp_path, key):
    path = tmp_path / "model.safetensors.age"
    ballast.save(path, WEIGHTS, recipients=[RECIPIENT])
    with pytest.raises(ballast.Error, match="encrypted with age: give an identity") as caught:
        ballast.open(path)
    assert caught.value.code == "cannot-decrypt"


def test_identities_of_the_process_serve_every_function(tmp_path, key):
    path = tmp_path / "model.pt.age"
    ballast.save(path, WEIGHTS, recipients=[RECIPIENT])
    ballast.set_identities([key])
    assert ballast.scan(path).verdict == "clean"
    assert [finding.kind for finding in ballast.verify(path).findings] == []
    assert ballast.diff(path, ballast.checkpoint(WEIGHTS)).same
    ballast.convert(path, tmp_path / "plain.safetensors")
    assert ballast.hash(path).root == ballast.hash(tmp_path / "plain.safetensors").root


def test_a_passphrase_closes_and_opens(tmp_path, key):
    phrase = tmp_path / "phrase.txt"
    phrase.write_text("correct horse\n")
    path = tmp_path / "model.safetensors.age"
    ballast.convert(_plain(tmp_path), path, passphrase_file=phrase)
    numpy.testing.assert_array_equal(ballast.open(path, passphrase_file=phrase)["w"].numpy(), WEIGHTS["w"])


def test_the_name_of_an_encrypted_file_never_holds_an_open_one(tmp_path, key):
    with pytest.raises(ballast.Error):
        ballast.save(tmp_path / "a.safetensors.age", WEIGHTS)
    with pytest.raises(ballast.Error):
        ballast.save(tmp_path / "a.safetensors", WEIGHTS, recipients=[RECIPIENT])
    assert not list(tmp_path.glob("a.*"))


def _plain(folder):
    path = folder / "plain_input.safetensors"
    ballast.save(path, WEIGHTS)
    return path
