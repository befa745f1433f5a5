# SPDX-License-Identifier: Apache-2.0
"""ballast.compat.install(): programs written for safetensors."""
import subprocess
import sys

import pytest

PROGRAM = """
import ballast.compat
ballast.compat.install()
import importlib.metadata, importlib.util, pickle
import numpy as np
import safetensors
from safetensors import SafetensorError, TensorSpec, safe_open, serialize, serialize_file, deserialize, _safe_open_handle, __version__
from safetensors._safetensors_rust import SafetensorError as Same
from safetensors.numpy import save, load, save_file, load_file
assert Same is SafetensorError and importlib.import_module(SafetensorError.__module__)
assert __version__ == importlib.metadata.version("safetensors") == safetensors.__version__
assert importlib.util.find_spec("safetensors") and importlib.util.find_spec("safetensors.torch")
assert load(save({"a": np.ones(2)}))["a"].tolist() == [1, 1]
save_file({"a": np.ones(2)}, "x.safetensors")
with safe_open("x.safetensors", framework="numpy") as f:
    try:
        f.get_slice("a")[:20]
    except SafetensorError as error:
        assert "index 19 out of bounds for tensor dimension #0 of size 2" in str(error)
    else:
        raise AssertionError
try:
    import safetensors.nothing
except ImportError:
    pass
else:
    raise AssertionError
ballast.compat.install()
ballast.compat.uninstall()
assert "safetensors" not in __import__("sys").modules
print("fine")
"""


def run(program, folder):
    done = subprocess.run([sys.executable, "-B", "-c", program], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_programs_for_safetensors_run_unchanged(tmp_path):
    assert run(PROGRAM, tmp_path) == "fine\n"


def test_programs_for_safetensors_torch_run_unchanged(tmp_path):
    pytest.importorskip("torch")
    program = """
import ballast.compat; ballast.compat.install()
import torch, safetensors.torch
from safetensors.torch import save_file, load_file, save_model, load_model, _find_shared_tensors, _is_complete, storage_ptr, storage_size, _SIZE, _TYPES, _getdtype, _view2torch, _to_ndarray, _flatten_as_ptr, _filter_shared_not_shared, _remove_duplicate_names, _end_ptr
from safetensors import serialize, deserialize
data = {"a": torch.ones(2, 3), "b": torch.arange(4, dtype=torch.bfloat16)}
keep = []
assert serialize(_flatten_as_ptr(data, keep)) == safetensors.torch.save(data)
again = _view2torch(deserialize(safetensors.torch.save(data)))
assert all(torch.equal(again[k], data[k]) for k in data)
assert _to_ndarray(data["a"])[0].nbytes == 24
print("fine")
"""
    assert run(program, tmp_path) == "fine\n"


def test_a_real_safetensors_is_not_replaced_by_surprise(tmp_path):
    (tmp_path / "safetensors.py").write_text("real = True\n")
    program = """
import sys; sys.path.insert(0, "")
import safetensors, ballast.compat
try:
    ballast.compat.install()
except RuntimeError as error:
    assert "imported already" in str(error)
ballast.compat.install(force=True)
import safetensors
assert not hasattr(safetensors, "real")
print("fine")
"""
    assert run(program, tmp_path) == "fine\n"


@pytest.mark.parametrize("name", ["tensorflow", "flax", "mlx", "paddle"])
def test_other_frameworks(name, tmp_path):
    framework = {"tensorflow": "tensorflow", "flax": "jax", "mlx": "mlx.core", "paddle": "paddle"}[name]
    pytest.importorskip(framework)
    program = f"""
import numpy as np, importlib
part = importlib.import_module("ballast.{name}")
from ballast.numpy import save, save_file
save_file({{"a": np.arange(6, dtype=np.float32).reshape(2, 3)}}, "x.safetensors")
loaded = part.load_file("x.safetensors")
assert part.save(loaded) == save({{"a": np.arange(6, dtype=np.float32).reshape(2, 3)}})
assert part.load(part.save(loaded))["a"].shape == loaded["a"].shape
print("fine")
"""
    assert run(program, tmp_path) == "fine\n"
