# SPDX-License-Identifier: Apache-2.0
"""The wheel with setuptools: CMake builds the module, this puts it and the libraries it needs into the package.

BALLAST_SOURCE: where CMakeLists.txt is, when this folder was copied elsewhere. BALLAST_BUILD: a build folder to take the module from.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE") or HERE.parent)
# The buffer protocol is part of the stable ABI since then: one wheel for every Python that follows.
STABLE = sys.version_info >= (3, 11)


def version():
    return re.search(r"project\(ballast VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        build = os.environ.get("BALLAST_BUILD")
        if not build:
            build = str(pathlib.Path(self.build_temp).resolve())
            self.configure(build)
        subprocess.run(["cmake", "--build", build, "--target", "ballast_python", "-j", str(os.cpu_count() or 1)], check=True)
        stage = pathlib.Path(self.build_temp).resolve() / "stage"
        shutil.rmtree(stage, ignore_errors=True)
        subprocess.run(["cmake", "--install", build, "--component", "python", "--prefix", str(stage), "--strip"], check=True)
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).parent
        target.mkdir(parents=True, exist_ok=True)
        for module in (stage / "ballast").glob("_native*"):
            if module.suffix == ".so":
                shutil.copy2(module, target)
        self.copy_libraries(stage / "ballast" / "_libs", target / "_libs")

    def configure(self, build):
        options = {"BUILD_PYTHON": "ON", "BUILD_TESTS": "OFF", "BUILD_TOOLS": "OFF", "BUILD_EXAMPLES": "OFF", "BUILD_BENCH": "OFF"}
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run(
            ["cmake", "-S", str(SOURCE), "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release", f"-DPython3_EXECUTABLE={sys.executable}"]
            + [f"-DBALLAST_{name}={value}" for name, value in options.items()],
            check=True,
        )

    @staticmethod
    def copy_libraries(source, target):
        """Each once, under the name the module looks for: wheels hold no links."""
        shutil.rmtree(target, ignore_errors=True)
        if not source.is_dir():
            return
        target.mkdir(parents=True)
        linked = {library.resolve() for library in source.iterdir() if library.is_symlink()}
        for library in source.iterdir():
            if library.is_symlink() or library.resolve() not in linked:
                shutil.copy2(library.resolve(), target / library.name)


setup(
    version=version(),
    ext_modules=[Extension("ballast._native", sources=[], py_limited_api=STABLE)],
    cmdclass={"build_ext": CMakeBuild},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
