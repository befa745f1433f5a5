# SPDX-License-Identifier: Apache-2.0
"""README.md's table names tests that exist."""
import pathlib
import re

HERE = pathlib.Path(__file__).parent


def test_every_test_of_the_table_exists():
    named = set(re.findall(r"`(test_\w+)`", (HERE / "README.md").read_text(encoding="utf-8")))
    there = set()
    for file in HERE.glob("test_*.py"):
        there.update(re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), re.M))
    assert len(named) > 40 and not named - there
