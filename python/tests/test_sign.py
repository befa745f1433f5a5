# SPDX-License-Identifier: Apache-2.0
"""Signatures of OpenSSF Model Signing, from Python: made, verified, and refused."""
import pathlib
import shutil

import ballast
import pytest

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/signatures"
FILES = FIXTURES / "files"


@pytest.fixture
def model(tmp_path: pathlib.Path):
    return pathlib.Path(shutil.copytree(FIXTURES / "model", tmp_path / "model"))


@pytest.mark.parametrize("curve", ["p256", "p384", "p521"])
def test_what_is_signed_is_verified_and_a_change_is_found(model, tmp_path, curve):
    seen = []
    made = ballast.sign(model, tmp_path / "x.sig", key=FILES / f"key-{curve}.pem", ignore=[model / "a/c"], progress=lambda done, total: seen.append((done, total)))
    assert (made.files, made.model, made.signer.split()[0], made.ignored[0]) == (5, "model", "key", "a/c")
    assert seen[-1] == (made.bytes, made.bytes)
    report = ballast.verify_signature(model, tmp_path / "x.sig", key=FILES / f"pub-{curve}.pem")
    assert report.clean and report.signer == made.signer
    (model / "config.json").write_bytes(b"[]")
    (model / "new").write_bytes(b"")
    (model / "weights.bin").unlink()
    report = ballast.verify_signature(model, tmp_path / "x.sig", key=FILES / f"pub-{curve}.pem")
    assert sorted((finding.kind, finding.name) for finding in report.findings) == [("added", "new"), ("changed", "config.json"), ("missing", "weights.bin")]


def test_certificates_lead_to_the_root(model, tmp_path):
    ballast.sign(model, tmp_path / "x.sig", key=FILES / "key-p384.pem", certificate=FILES / "leaf-p384.pem", certificate_chain=[FILES / "between.pem"])
    assert ballast.verify_signature(model, tmp_path / "x.sig", certificate_chain=[FILES / "root.pem"]).signer == "CN=leaf-p384,O=Ballast tests"
    with pytest.raises(ballast.Error, match="does not lead to one that is trusted") as caught:
        ballast.verify_signature(model, tmp_path / "x.sig", certificate_chain=[FILES / "other.pem"])
    assert caught.value.code == "wrong-signature"


def test_what_the_reference_signed_is_verified_and_other_kinds_are_refused(model):
    assert ballast.verify_signature(model, FILES / "1.1.1-key-p256.sig", key=FILES / "pub-p256.pem").clean
    for kind in ("keyless", "shards", "blob"):
        with pytest.raises(ballast.Error) as caught:
            ballast.verify_signature(model, FILES / f"{kind}.sig", key=FILES / "pub-p256.pem")
        assert caught.value.code == "unsupported"
