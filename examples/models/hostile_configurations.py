# SPDX-License-Identifier: Apache-2.0
"""hostile_configurations.py CASES FOLDER PROGRAMS: every number in every config.json becomes one that no model has; the example says so, or computes as if it did not matter.

Never a crash, never a gigabyte, never minutes: the address space is limited to 2 GiB, the time to 60 s.
"""
import copy
import json
import pathlib
import resource
import shutil
import subprocess
import sys

NUMBERS = (0, -1, 7, 2**31, 2**63 - 1, -(2**63), 10**30)


def numbers(value, path=()):
    """Where the numbers are: paths of keys and positions."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, (*path, key))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from numbers(part, (*path, i))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def changed(config, path, number):
    config = copy.deepcopy(config)
    part = config
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = number
    return config


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def main(cases, folder, programs):
    shutil.rmtree(folder, ignore_errors=True)
    bad = tried = 0
    for original in sorted(path for path in pathlib.Path(cases).iterdir() if path.is_dir()):
        model = pathlib.Path(folder) / original.name
        shutil.copytree(original, model)
        config = json.loads((original / "config.json").read_text())
        known = (original.parent.parent / f"{original.name}.h").read_text()
        for path in numbers(config):
            name = next(key for key in reversed(path) if isinstance(key, str))
            if name not in known:
                continue  # nothing that the example asks for
            for number in NUMBERS:
                (model / "config.json").write_text(json.dumps(changed(config, path, number)))
                done = subprocess.run([f"{programs}/example_{original.name}", model, f"{original}_case.safetensors"], capture_output=True, text=True, timeout=60, preexec_fn=limit)
                tried += 1
                if done.returncode not in (0, 1, 2) or (done.returncode == 2 and not done.stderr.strip()):
                    bad += 1
                    print(f"{original.name}: {path} = {number}: {done.returncode} {done.stderr.strip()[:200]}")
    print(f"{tried} configurations, {bad} of them did harm")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
