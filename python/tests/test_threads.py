# SPDX-License-Identifier: Apache-2.0
"""Several threads at once: loading, slicing, saving; an error stays in its own."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import ballast
from ballast import SafetensorError, safe_open
from ballast.numpy import load_file, save_file


def together(work, count=8):
    """Runs work(i) in threads and gives what they returned; the first exception is raised here."""
    results, failures, start = [None] * count, [], threading.Barrier(count)

    def run(i):
        try:
            start.wait()
            results[i] = work(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


@pytest.fixture
def path(tmp_path):
    save_file({f"w{i}": np.full((50, 20), i, np.float32) for i in range(40)}, tmp_path / "x")
    return tmp_path / "x"


def test_one_handle_for_all(path):
    with safe_open(path, "np") as f:

        def work(i):
            total = 0.0
            for round in range(50):
                name = f"w{(i + round) % 40}"
                total += f.get_tensor(name).sum() - 20 * f.get_slice(name)[round % 50 :: 1, 0].sum() * 50 / (50 - round % 50)
            return total

        assert together(work) == [0.0] * 8


def test_each_its_own(path, tmp_path):
    def work(i):
        for round in range(10):
            tensors = load_file(path, backend="pread" if round % 2 else "mmap")
            save_file(tensors, tmp_path / f"copy{i}")
        return (tmp_path / f"copy{i}").read_bytes() == path.read_bytes()

    assert all(together(work))


def test_all_save_to_one_name(tmp_path):
    def work(i):
        for _ in range(10):
            save_file({"x": np.full(1000, i)}, tmp_path / "x")

    together(work)
    assert len(set(load_file(tmp_path / "x")["x"].tolist())) == 1 and len(list(tmp_path.iterdir())) == 1


def test_errors_stay_in_their_thread(path, tmp_path):
    (tmp_path / "bad").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{")

    def work(i):
        seen = 0
        for _ in range(50):
            if i % 2:
                assert len(load_file(path)) == 40
                continue
            with pytest.raises(SafetensorError) as caught:
                load_file(tmp_path / "bad")
            seen += str(caught.value) == "Error while deserializing header: invalid header length"
        return seen

    assert together(work) == [50, 0] * 4


def test_progress_in_several_threads(tmp_path, path):
    def work(i):
        calls = []
        ballast.convert(path, tmp_path / f"{i}.safetensors", progress=lambda done, total: calls.append(done))
        return bool(calls)

    assert all(together(work, 4))


def test_lazy_tensors_are_made_once(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(200_000))
    tensor = ballast.open(tmp_path / "x.npz")["a"]
    assert together(lambda i: int(tensor.numpy().sum())) == [19999900000] * 8


CONVERT = "ballast.convert(path, f'{path}.{threading.get_ident()}.safetensors', overwrite=True, progress=lambda *_: %s)"
WORKS = {
    "in C++": "ballast.hash(path)",
    "in short calls": "ballast.open(path)['x'].numpy()",
    "in short callbacks": CONVERT % "None",
    "in callbacks that give the GIL away": CONVERT % "[i * i for i in range(300_000)]",
}


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
def test_the_process_ends_well_while_a_daemon_thread_is_at_work(tmp_path, work):
    path = str(tmp_path / "x.safetensors")
    ballast.save(path, {"x": np.zeros(1 << 20, np.float32)})
    program = f"""if True:
        import ballast, sys, threading, time
        path = {path!r}
        def loop():
            while True:
                {work}
        for _ in range(4):
            threading.Thread(target=loop, daemon=True).start()
        time.sleep(0.2)
        sys.exit(7)
    """
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (7, "")


def test_a_second_interpreter_is_refused_and_the_first_one_works_on(tmp_path):
    program = """
import importlib, ballast
for name in ("_interpreters", "_xxsubinterpreters"):
    try:
        module = importlib.import_module(name)
        break
    except ImportError:
        pass
other = module.create()
said = module.run_string(other, "try:\\n import ballast\\nexcept ImportError as error:\\n print(error)\\nelse:\\n print('imported')")
module.destroy(other)
try:
    ballast.open("gone")
except FileNotFoundError as error:
    print(type(error).__name__, isinstance(error, ballast.Error))
"""
    done = subprocess.run([sys.executable, "-B", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "imported" not in done.stdout.splitlines() and done.stdout.endswith("MissingFileError True\n"), done.stdout + done.stderr
