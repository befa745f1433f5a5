# SPDX-License-Identifier: Apache-2.0
"""models.py: the examples that load folders of the Hugging Face world, beside their originals: the same names, the same numbers.

Every form of every family in examples/models/originals.py is written by its own library and given to the example: whole, in shards, in BF16.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "examples/models"))

import originals  # noqa: E402
import torch  # noqa: E402

WAY = "examples beside their originals"
WAYS = {"whole": {}, "shards": {"max_shard_size": "8KB"}, "bf16": {"half": True}}


def program_of(family):
    tool = pathlib.Path(os.environ["BALLAST_TOOL"]).resolve()
    return tool.parents[1] / "examples" / f"example_{family}"


def compare(program, folder, case):
    """What the example says where it does not agree with the case, else None; and how far apart they are."""
    done = subprocess.run([program, str(folder), str(case)], capture_output=True, text=True)
    errors = [float(number) for number in re.findall(r"relative error (\S+)", done.stdout)]
    wrong = (done.stdout + done.stderr).strip()[-300:] if done.returncode or not errors else None
    return wrong, max(errors, default=float("nan"))


def run_family(family, folder):
    name, same, different, errors = family.__name__, 0, [], []
    if not program_of(name).exists():
        return {"way": WAY, "what": name, "same": 0, "different": [], "refused": {"the examples are not built": 1}}
    for number, (model, make_case) in enumerate(family()):
        for way, how in WAYS.items():
            place = folder / f"{name}-{number}-{way}"
            wrong, error = compare(program_of(name), place, originals.write(place, model, make_case, seed=number + 1, **how))
            errors.append(error)
            same += wrong is None
            different += [f"{name}, form {number}, {way}: {wrong}"] if wrong is not None else []
    what = f"{name.replace('_', ' ')} (relative error up to {max(errors):.2g})"
    return {"way": WAY, "what": what, "same": same, "different": different, "refused": {}}


def main():
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for family in originals.FAMILIES:
            if not wanted or family.__name__ in wanted:
                print(json.dumps(run_family(family, pathlib.Path(folder))), flush=True)


if __name__ == "__main__":
    main()
