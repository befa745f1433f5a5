# SPDX-License-Identifier: Apache-2.0
"""Model weights: the interface of ``safetensors``, and every other format through ``ballast.open``.

Nothing of a file is ever run. docs/python.md tells the rest.
"""
from ._checkpoint import Checkpoint, Object, open, open_value, set_identities
from ._errors import SafetensorError
from ._files import Conversion, checkpoint, convert, save
from ._native import __version__, set_thread_count, thread_count
from ._proof import Difference, DiffReport, Distance, Finding, Manifest, ScanReport, VerifyReport, diff, hash, scan, stats, verify
from ._safetensors import _safe_open_handle, deserialize, safe_open
from ._serialize import TensorSpec, serialize, serialize_file
from ._signature import SignatureFinding, SignatureReport, sign, verify_signature
from ._tensor import Tensor

Error = SafetensorError

__all__ = [
    "Checkpoint", "Conversion", "DiffReport", "Difference", "Distance", "Error", "Finding", "Manifest", "Object", "SafetensorError",
    "ScanReport", "SignatureFinding", "SignatureReport", "Tensor", "TensorSpec", "VerifyReport", "__version__", "checkpoint", "convert", "deserialize", "diff", "hash", "open",
    "open_value", "safe_open", "save", "scan", "serialize", "serialize_file", "set_identities", "set_thread_count", "sign", "stats", "thread_count",
    "verify", "verify_signature",
]  # fmt: skip
