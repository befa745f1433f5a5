# SPDX-License-Identifier: Apache-2.0
"""pip makes a wheel that holds all it needs, from the module that is built already."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
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
    assert "ballast/_bin/ballast" in names and "ballast/__main__.py" in names and "ballast/_licenses/LICENSE" in names
    if shutil.which("dpkg-query"):
        assert any(re.fullmatch(r"ballast/_licenses/libre2.*\.txt", name) for name in names)
    (entry,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    assert "ballast = ballast.__main__:main" in zipfile.ZipFile(wheel).read(entry).decode()
    assert not any("test" in name or "setup" in name for name in names)


def test_it_works_where_it_is_unpacked(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = "import ballast, ballast.numpy as n, numpy; print(ballast.__file__, ballast.__version__, n.load(n.save({'a': numpy.ones(2)}))['a'].sum())"
    environment = dict(os.environ, PYTHONPATH=str(tmp_path / "site"))
    done = subprocess.run([sys.executable, "-B", "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "site") in done.stdout and done.stdout.endswith(" 2.0\n")
    (tmp_path / "site/ballast/_bin/ballast").chmod(0o755)  # what pip does and unzipping does not
    said = subprocess.run([sys.executable, "-B", "-m", "ballast", "--version"], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and said.stdout.startswith("ballast "), said.stderr


def test_a_source_distribution_has_the_librarys_sources(tmp_path):
    shutil.copytree(SOURCE / "python", tmp_path / "python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    environment = dict(os.environ, BALLAST_SOURCE=str(SOURCE), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, "setup.py", "--quiet", "sdist", "-d", str(tmp_path / "out")], cwd=tmp_path / "python", env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (tmp_path / "out").iterdir()
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path / "unpacked")
    assert {"setup.py", "pyproject.toml", "packaging/backend.py", "library/CMakeLists.txt", "library/src/CMakeLists.txt", "library/python/src/module.cpp",
            "library/include/ballast/tensor.h", "library/tools/ballast/main.cpp", "library/LICENSE"} <= names  # fmt: skip
    (folder,) = (tmp_path / "unpacked").iterdir()
    environment.pop("BALLAST_SOURCE")
    asked = subprocess.run([sys.executable, "setup.py", "--version"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert asked.stdout.split()[-1] in made.name, asked.stderr
    configured = subprocess.run(["cmake", "-S", "library", "-B", "configured", "-DBALLAST_BUILD_PYTHON=ON", "-DBALLAST_BUILD_TESTS=OFF", "-DBALLAST_BUILD_EXAMPLES=OFF",
                                 "-DBALLAST_BUILD_BENCH=OFF"], cwd=folder, capture_output=True, text=True, timeout=200)  # fmt: skip
    assert configured.returncode == 0, configured.stderr
