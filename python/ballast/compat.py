# SPDX-License-Identifier: Apache-2.0
"""``ballast.compat.install()``: from then on ``import safetensors`` gives Ballast, so that other people's programs run unchanged.

Slices are exactly the reference's then: what it refuses and NumPy allows (a stop beyond the end, lists) is refused.
"""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
from typing import Any, Iterable, List, Optional

from . import _safetensors, _serialize
from ._errors import SafetensorError

#: The version of ``safetensors`` whose interface this is.
REFERENCE_VERSION = "0.8.0"

_PARTS = ("numpy", "torch", "tensorflow", "flax", "mlx", "paddle")
_CORE = ("_safetensors_rust",)


class safe_open(_safetensors.safe_open):
    __doc__ = _safetensors.safe_open.__doc__
    __slots__ = ()
    _exact_slices = True


class _safe_open_handle(_safetensors._safe_open_handle):
    __doc__ = _safetensors._safe_open_handle.__doc__
    __slots__ = ()
    _exact_slices = True


def _core_names() -> dict:
    return {
        "SafetensorError": SafetensorError, "TensorSpec": _serialize.TensorSpec, "__version__": REFERENCE_VERSION,
        "deserialize": _safetensors.deserialize, "safe_open": safe_open, "_safe_open_handle": _safe_open_handle,
        "serialize": _serialize.serialize, "serialize_file": _serialize.serialize_file,
    }  # fmt: skip


class _Distribution(importlib.metadata.Distribution):
    """What importlib.metadata says of safetensors: programs ask it for the version."""

    def read_text(self, filename: str) -> Optional[str]:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: safetensors\nVersion: {REFERENCE_VERSION}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return path


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """``safetensors`` and what lies below it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        top, _, part = fullname.partition(".")
        if top != "safetensors" or (part and part not in _PARTS + _CORE):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin="ballast", is_package=not part)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[types.ModuleType]:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        part = module.__name__.partition(".")[2]
        if part in _PARTS:
            ours = importlib.import_module(f"ballast.{part}")
            names = {name: value for name, value in vars(ours).items() if not name.startswith("__")}
            names.update({name: value for name, value in _core_names().items() if name in names})
            if isinstance(names.get("numpy"), types.ModuleType):  # what the parts share is safetensors.numpy
                names["numpy"] = importlib.import_module("safetensors.numpy")
            module.__doc__ = ours.__doc__
        else:
            names = _core_names()
        vars(module).update(names)
        if not part:  # the published one has it after a plain import
            importlib.import_module("safetensors._safetensors_rust")

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        return [_Distribution()] if getattr(context, "name", None) == "safetensors" else []


_finder = _Finder()


def _loaded() -> List[str]:
    return [name for name in sys.modules if name == "safetensors" or name.startswith("safetensors.")]


def install(force: bool = False) -> None:
    """``import safetensors`` means Ballast. RuntimeError when the real one is imported already, unless ``force``."""
    if _finder in sys.meta_path:
        return
    if _loaded() and not force:
        raise RuntimeError("safetensors is imported already; call ballast.compat.install() before that, or with force=True")
    for name in _loaded():
        del sys.modules[name]
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Undoes install()."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
        for name in _loaded():
            del sys.modules[name]
