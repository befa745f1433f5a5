# SPDX-License-Identifier: Apache-2.0
"""The module comes from PYTHONPATH (the build folder) or from where it is installed."""
import os
import pathlib
import struct

import pytest

SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE", pathlib.Path(__file__).resolve().parents[2]))


def safetensors_bytes(header, data=b""):
    """A Safetensors file with this very header text."""
    text = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(text)) + text + data


@pytest.fixture
def written(tmp_path):
    """Writes bytes to a file and gives its path."""

    def write(data, name="file.safetensors"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write
