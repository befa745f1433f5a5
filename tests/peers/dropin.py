# SPDX-License-Identifier: Apache-2.0
"""dropin.py FRAMEWORK: every name of the published safetensors package is there under ballast.compat, and takes the calls it takes.

Functions: the same parameters, in the same order, of the same kind and with the same defaults; ours may have more, which must be given by name and
need not be given. Classes: the same for their methods. Tables: the same keys, and the same values under them.
"""
import importlib
import inspect
import json
import sys
import types

import ballast.compat
import frameworks
from exchange import Direction

# What differs for a reason.
REASONS = {
    "SafetensorError.add_note": "every Exception has it",
    "SafetensorError.with_traceback": "every Exception has it",
}


def names_of(module):
    """What a program may import: all but dunders and the modules it uses itself, save numpy, which upstream's parts share."""
    return {name: value for name, value in vars(module).items() if not name.startswith("__") and not (isinstance(value, types.ModuleType) and name != "numpy")}


def parameters(thing):
    try:
        return list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return None


def takes_the_same(theirs, ours):
    """A complaint, or nothing."""
    wanted, found = parameters(theirs), parameters(ours)
    if wanted is None or found is None:
        return ""
    by_name, extra = {p.name: p for p in found}, [p for p in found if p.name not in {q.name for q in wanted}]
    for theirs_one in wanted:
        our_one = by_name.get(theirs_one.name)
        if our_one is None:
            return f"no parameter {theirs_one.name}: {inspect.signature(ours)} for {inspect.signature(theirs)}"
        if our_one.kind != theirs_one.kind and not (theirs_one.kind == theirs_one.POSITIONAL_ONLY and our_one.kind == our_one.POSITIONAL_OR_KEYWORD):
            return f"parameter {theirs_one.name} is {our_one.kind.description}, not {theirs_one.kind.description}"
        if our_one.default is not theirs_one.default and our_one.default != theirs_one.default and theirs_one.default is not Ellipsis:
            return f"parameter {theirs_one.name} is {our_one.default!r} by default, not {theirs_one.default!r}"
    if [p.name for p in found if p.name in {q.name for q in wanted}] != [p.name for p in wanted]:
        return f"another order: {inspect.signature(ours)} for {inspect.signature(theirs)}"
    wrong = [p.name for p in extra if p.kind != p.KEYWORD_ONLY and p.default is p.empty]
    return f"must be given: {', '.join(wrong)}" if wrong else ""


def compare(direction, where, theirs, ours):
    for name, value in names_of(theirs).items():
        what = f"{where}.{name}"
        if not hasattr(ours, name):
            direction.different.append(f"{what} is not there")
        elif isinstance(value, type) and value.__module__.startswith("safetensors"):
            direction.same += 1
            compare_class(direction, what, value, getattr(ours, name))
        elif isinstance(value, dict):
            mine = getattr(ours, name)
            missing = [key for key in value if key is not None and (key not in mine or mine[key] != value[key])]
            judge(direction, what, f"other entries: {missing}" if missing else "")
        elif callable(value):
            judge(direction, what, takes_the_same(value, getattr(ours, name)))
        else:
            direction.same += 1


def compare_class(direction, what, theirs, ours):
    judge(direction, what, takes_the_same(theirs, ours))
    for name, value in vars(theirs).items():
        if name.startswith("__") and name not in ("__enter__", "__exit__", "__getitem__"):
            continue
        if not hasattr(ours, name):
            judge(direction, f"{what}.{name}", "is not there")
        elif callable(value) and not name.startswith("__"):
            judge(direction, f"{what}.{name}", takes_the_same(value, getattr(ours, name)))
        else:
            direction.same += 1


def judge(direction, what, complaint):
    if complaint and what.partition(".")[2] not in REASONS:
        direction.different.append(f"{what}: {complaint}")
    else:
        direction.same += 1


def main():
    part = frameworks.FRAMEWORKS[sys.argv[1]].part
    places = ["safetensors", f"safetensors.{part}"]
    theirs = {place: importlib.import_module(place) for place in places}
    ballast.compat.install(force=True)
    direction = Direction("names and signatures", f"safetensors, safetensors.{part}")
    ours = {place: importlib.import_module(place) for place in places}
    for place in places:
        if ours[place] is theirs[place]:
            raise SystemExit("ballast.compat did not take its place")
        compare(direction, place, theirs[place], ours[place])
    print(json.dumps(direction.line()))


if __name__ == "__main__":
    main()
