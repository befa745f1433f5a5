# SPDX-License-Identifier: Apache-2.0
"""Packed files, from Python: written by save() and convert(), and read by everything as if they were plain."""
import ballast
import numpy
import pytest

RANDOM = numpy.random.RandomState(3)
WEIGHTS = {
    "w": RANDOM.normal(0, 0.02, (300, 700)).astype("float32"),
    "h": RANDOM.normal(0, 0.02, 100_000).astype("float16"),
    "steps": numpy.arange(3),
}


@pytest.mark.parametrize("pack", ["fast", "small"])
def test_what_is_saved_packed_is_smaller_and_reads_as_it_was(tmp_path, pack):
    plain, packed = tmp_path / "plain.safetensors", tmp_path / "packed.safetensors"
    ballast.save(plain, WEIGHTS)
    ballast.save(packed, WEIGHTS, pack=pack)
    assert packed.stat().st_size < 0.93 * plain.stat().st_size
    for io in ("map", "read"):
        opened = ballast.open(packed, io=io)
        for name, array in WEIGHTS.items():
            numpy.testing.assert_array_equal(opened[name].numpy(), array)
        numpy.testing.assert_array_equal(opened["w"][7:200:3, 5].numpy(), WEIGHTS["w"][7:200:3, 5])
    assert any("packed" in note for note in ballast.open(packed).notes)
    assert "ballast.packed" not in (ballast.open(packed).metadata or {})
    with ballast.safe_open(str(packed), "np") as file:
        numpy.testing.assert_array_equal(file.get_tensor("w"), WEIGHTS["w"])
        assert file.get_tensor("w").flags.writeable
        numpy.testing.assert_array_equal(file.get_slice("w")[10:20], WEIGHTS["w"][10:20])
    assert ballast.hash(packed).root == ballast.hash(plain).root
    assert ballast.diff(plain, packed).same
    ballast.verify(packed)


def test_convert_packs_and_unpacks(tmp_path):
    plain, packed, back = (tmp_path / f"{name}.safetensors" for name in ("plain", "packed", "back"))
    ballast.save(plain, WEIGHTS)
    ballast.convert(plain, packed, pack="small")
    ballast.convert(packed, back)
    assert back.read_bytes() == plain.read_bytes()


def test_a_word_that_is_no_way_of_packing_is_refused(tmp_path):
    with pytest.raises(ballast.Error, match="none of none, fast, small"):
        ballast.save(tmp_path / "x.safetensors", WEIGHTS, pack="tiny")
    with pytest.raises(ballast.Error, match="only Safetensors files and records are packed"):
        ballast.save(tmp_path / "x.npz", WEIGHTS, pack="fast")
