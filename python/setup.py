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
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
# In a source distribution the library's own sources lie beside this file.
SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE") or (HERE / "library" if (HERE / "library").is_dir() else HERE.parent))
LIBRARY = ("CMakeLists.txt", "LICENSE", "cmake", "docs/man", "include", "python", "src", "tools")
# The buffer protocol is part of the stable ABI since then: one wheel for every Python that follows.
STABLE = sys.version_info >= (3, 11) and not sysconfig.get_config_var("Py_GIL_DISABLED")


def version():
    return re.search(r"project\(ballast VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        build = os.environ.get("BALLAST_BUILD")
        if not build:
            build = str(pathlib.Path(self.build_temp).resolve())
            self.configure(build)
        subprocess.run(["cmake", "--build", build, "--target", "ballast_python", "ballast_tool", "-j", str(os.cpu_count() or 1)], check=True)
        stage = pathlib.Path(self.build_temp).resolve() / "stage"
        shutil.rmtree(stage, ignore_errors=True)
        subprocess.run(["cmake", "--install", build, "--component", "python", "--prefix", str(stage), "--strip"], check=True)
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).parent
        target.mkdir(parents=True, exist_ok=True)
        for module in (stage / "ballast").glob("_native*"):
            if module.suffix == ".so":
                shutil.copy2(module, target)
        self.copy_libraries(stage / "ballast" / "_libs", target / "_libs")
        for folder in ("_bin", "_licenses"):
            shutil.rmtree(target / folder, ignore_errors=True)
            shutil.copytree(stage / "ballast" / folder, target / folder)
        self.copy_licenses(stage / "ballast" / "_libs", target / "_licenses")

    def configure(self, build):
        options = {"BUILD_PYTHON": "ON", "BUILD_TESTS": "OFF", "BUILD_TOOLS": "ON", "BUILD_EXAMPLES": "OFF", "BUILD_BENCH": "OFF"}
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run(
            ["cmake", "-S", str(SOURCE), "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release", f"-DPython3_EXECUTABLE={sys.executable}"]
            + [f"-DBALLAST_{name}={value}" for name, value in options.items()],
            check=True,
        )

    @staticmethod
    def copy_licenses(libraries, target):
        """What Debian says of the libraries that are carried along; elsewhere there is nobody to ask."""
        if not libraries.is_dir() or not shutil.which("dpkg-query"):
            return
        for library in sorted(libraries.iterdir()):
            asked = subprocess.run(["dpkg-query", "--search", f"*/{library.resolve().name}"], capture_output=True, text=True, check=False).stdout
            package = asked.partition(":")[0]
            text = pathlib.Path("/usr/share/doc") / package / "copyright"
            if package and text.is_file():
                shutil.copyfile(text, target / f"{package}.txt")

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


class SourceDist(sdist):
    """With the library's sources, so that it builds anywhere."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        target = pathlib.Path(base_dir) / "library"
        skip = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", "tests", "library", ".*")
        for name in LIBRARY:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if (SOURCE / name).is_dir():
                shutil.copytree(SOURCE / name, target / name, ignore=skip)
            else:
                shutil.copyfile(SOURCE / name, target / name)
        shutil.copytree(SOURCE / "python/packaging", pathlib.Path(base_dir) / "packaging", ignore=skip, dirs_exist_ok=True)


setup(
    version=version(),
    ext_modules=[Extension("ballast._native", sources=[], py_limited_api=STABLE)],
    cmdclass={"build_ext": CMakeBuild, "sdist": SourceDist},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
