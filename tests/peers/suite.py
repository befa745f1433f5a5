# SPDX-License-Identifier: Apache-2.0
"""suite.py FRAMEWORK: the published safetensors package's own tests, from its source distribution, with that package and again under ballast.compat.

    suite.py FRAMEWORK                              both, and the comparison
    suite.py FRAMEWORK published|ballast DONE       the tests that the file DONE does not name; a line of JSON when one begins and when it ends

A test that passes there must pass here. What the published package skips or fails itself is counted in its own column.
"""
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile
import traceback
import unittest

import places

MODULES = {
    "numpy": ["test_simple", "test_handle", "test_threadable", "test_multithreaded", "test_pread_backend"],
    "torch": ["test_pt_comparison", "test_pt_model"],
    "jax": ["test_flax_comparison"],
    "tensorflow": ["test_tf_comparison"],
    "paddle": ["test_paddle_comparison"],
    "mlx": ["test_mlx_comparison"],
}


class Said(unittest.TestResult):
    """Every test's end: passed, skipped or failed, and why."""

    def end(self, test, how, why=""):
        print("RESULT " + json.dumps([name_of(test), how, why]), flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.end(test, "failed", "it ended the process")  # unless another line follows

    def addSuccess(self, test):
        self.end(test, "passed")

    def addSkip(self, test, reason):
        self.end(test, "skipped", reason)

    def addError(self, test, error):
        self.end(test, "failed", traceback.format_exception_only(error[0], error[1])[-1].strip().splitlines()[0])

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.addError(test, error)  # and no success follows

    def addExpectedFailure(self, test, error):
        self.end(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.end(test, "failed", "passed unexpectedly")


def name_of(test):
    return test.id() if not isinstance(test, unittest.FunctionTestCase) else test.shortDescription()


def single(tests):
    return (one for test in tests for one in (single(test) if isinstance(test, unittest.TestSuite) else [test]))


def tests_of(name):
    module = importlib.import_module(name)
    functions = [value for key, value in vars(module).items() if key.startswith("test_") and callable(value)]
    return [*single(unittest.defaultTestLoader.loadTestsFromModule(module)), *(unittest.FunctionTestCase(f, description=f"{name}.{f.__name__}") for f in functions)]


def run_once(framework, which, done):
    if which == "ballast":
        import ballast.compat

        ballast.compat.install()
    if framework == "mlx":  # they think that it is for the Mac alone
        import platform

        platform.system = lambda: "Darwin"
    sys.path.insert(0, str(places.suite_tests()))
    tests = [test for name in MODULES[framework] for test in tests_of(name) if name_of(test) not in done]
    unittest.TestSuite(tests).run(Said())


def ends_of(framework, which):
    """test → (how it ended, why); a test that ends the process is one, and the others are run again without it."""
    ends, said = {}, ""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "tests/data").mkdir(parents=True)  # where they write
        done = pathlib.Path(folder) / "done"
        while True:
            done.write_text("\n".join(ends))
            run = subprocess.run([sys.executable, "-B", __file__, framework, which, str(done)], capture_output=True, text=True, cwd=folder)
            rows = [json.loads(line[7:]) for line in run.stdout.splitlines() if line.startswith("RESULT ")]
            ends.update({name: (how, why) for name, how, why in rows})
            said = run.stderr[-300:]
            if run.returncode == 0 or not rows:
                return ends, said


def main():
    framework = sys.argv[1]
    if len(sys.argv) > 2:
        run_once(framework, sys.argv[2], pathlib.Path(sys.argv[3]).read_text().splitlines())
        return
    from exchange import Direction

    published, said = ends_of(framework, "published")
    ours, our_said = ends_of(framework, "ballast")
    direction = Direction("the published package's own tests", ", ".join(MODULES[framework]))
    if not published:
        direction.different.append(f"no test ran: {said}")
    for test, (how, why) in published.items():
        found = ours.get(test, ("failed", f"it ended: {our_said}"))
        if how != "passed":
            direction.refused[f"{how}: {why}"] += 1
        elif found[0] == "passed":
            direction.same += 1
        else:
            direction.different.append(f"{test}: {found[0]}: {found[1]}")
    print(json.dumps(direction.line()))


if __name__ == "__main__":
    main()
