# SPDX-License-Identifier: Apache-2.0
"""pip makes a wheel that holds all it needs, from the module that is built already."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import SOURCE

BUILD = os.environ.get("BALLAST_BUILD", "")

pytestmark = [
    pytest.mark.skipif(not BUILD, reason="no build folder to take the module from"),
    pytest.mark.skipif(not all(importlib.util.find_spec(name) for name in ("pip", "setuptools", "wheel")), reason="pip, setuptools or wheel is not installed"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(SOURCE / "python", folder / "python", ignore=shutil.ignore_patterns("tests", "src", "build", "*.egg-info", "__pycache__"))
    environment = dict(os.environ, BALLAST_SOURCE=str(SOURCE), BALLAST_BUILD=BUILD, BALLAST_BACKEND="setuptools", PYTHONDONTWRITEBYTECODE="1")
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "-w", str(folder / "out"), str(folder / "python")],
        env=environment, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (folder / "out").iterdir()
    return made


def test_its_version_is_the_projects(wheel):
    version = re.search(r"project\(ballast VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
    tag = "cp311-abi3" if sys.version_info >= (3, 11) else "cp3"
    assert wheel.name.startswith(f"ballast-{version}-{tag}")


def test_it_holds_the_module_its_libraries_and_types(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert any(re.fullmatch(r"ballast/_native\..*so", name) for name in names)
    assert "ballast/py.typed" in names and "ballast/_native.pyi" in names and "ballast/torch.py" in names
    assert any(name.startswith("ballast/_libs/libre2.so.") for name in names)
    assert not any("test" in name or "setup" in name for name in names)


def test_it_works_where_it_is_unpacked(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = "import ballast, ballast.numpy as n, numpy; print(ballast.__file__, ballast.__version__, n.load(n.save({'a': numpy.ones(2)}))['a'].sum())"
    environment = dict(os.environ, PYTHONPATH=str(tmp_path / "site"))
    done = subprocess.run([sys.executable, "-B", "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "site") in done.stdout and done.stdout.endswith(" 2.0\n")
