# SPDX-License-Identifier: Apache-2.0
"""Where the peers are and which versions are wanted: what scripts/peers and run.py both know."""
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = pathlib.Path(os.environ.get("BALLAST_PEERS", ROOT / ".peers")).resolve()
PYTHON = os.environ.get("BALLAST_PYTHON", "/usr/bin/python3")  # Debian's: the module is built for it


def pins():
    """group → ["package==version", …]"""
    lines = (HERE / "versions.txt").read_text().splitlines()
    rows = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {group: [word for word in words.split() if not word.startswith("(")] for group, _, words in rows}


def below(group):
    """The group whose packages this one sees, too: the large ones are there once."""
    found = re.search(rf"^{group}: \((\w+)\)", (HERE / "versions.txt").read_text(), re.M)
    return found.group(1) if found else None


def numbers(version):
    return tuple(int(n) for n in re.findall(r"\d+", version.partition("-")[0]))


def burn_program(version):
    return FOLDER / "burn/target/debug" / ("burn-" + version.replace(".", "-"))


def burn_files():
    """Our program around Burn's readers."""
    return FOLDER / "burnfiles/target/debug/burn-files"


def suite_tests():
    """Where the published safetensors package has its own tests, once its source distribution lies unpacked."""
    version = pins()["suite"][0].partition("==")[2]
    return FOLDER / f"suite/safetensors-{version}/bindings/python/tests"


def python_of(group):
    return FOLDER / group / "bin/python"


_VERSIONS = """
import importlib.metadata, sys
for name in sys.argv[1:]:
    try: print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError: print(name, "-")
"""


def installed(group):
    """package → version, of what is there; Burn's versions are packages of their own."""
    wanted = pins()[group]
    if group == "burn":
        versions = [pin.partition("==")[2] for pin in wanted]
        return {f"burn {version}": version for version in versions if burn_program(version).exists()}
    if group == "burnfiles":
        return dict(pin.split("==") for pin in wanted) if burn_files().exists() else {}
    if group == "suite":
        return dict([wanted[0].split("==")]) if suite_tests().is_dir() else {}
    if not python_of(group).exists():
        return {}
    names = [pin.partition("==")[0].partition("[")[0] for pin in wanted]
    said = subprocess.run([python_of(group), "-c", _VERSIONS, *names], capture_output=True, text=True, check=True).stdout
    return {name: version for name, version in (line.split() for line in said.splitlines()) if version != "-"}


def missing(group):
    """Pins that are not there in their version."""
    there = installed(group)
    if group == "burn":
        return [pin for pin in pins()[group] if pin.replace("==", " ") not in there]
    return [pin for pin in pins()[group] if there.get(pin.partition("==")[0].partition("[")[0]) != pin.partition("==")[2]]


def tool():
    """The ballast command that is tried."""
    return os.environ.get("BALLAST_TOOL", "ballast")
