# SPDX-License-Identifier: Apache-2.0
"""sign, verify_signature: models as OpenSSF Model Signing signs them (docs/seal.md)."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional

from . import _native
from ._checkpoint import StrPath, _texts

Paths = Optional[Iterable[StrPath]]
Progress = Optional[Callable[[int, int], Any]]


@dataclass(frozen=True)
class SignatureFinding:
    """A file that is not as it was signed. ``kind``: changed, missing, added. ``name`` is "." where the model is one file."""

    name: str
    kind: str


@dataclass(frozen=True)
class SignatureReport:
    """``if verify_signature(path, signature, key=…).clean: …``"""

    model: str
    signer: str
    files: int
    bytes: int
    ignored: List[str]
    findings: List[SignatureFinding] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.findings


def _signature_report(report: Dict[str, Any]) -> SignatureReport:
    findings = [SignatureFinding(**finding) for finding in report.pop("findings")]
    return SignatureReport(**report, findings=findings)


def sign(
    path: StrPath,
    signature: StrPath,
    *,
    key: StrPath,
    passphrase_file: Optional[StrPath] = None,
    certificate: Optional[StrPath] = None,
    certificate_chain: Paths = None,
    ignore: Paths = None,
    ignore_git: bool = True,
    allow_symlinks: bool = False,
    overwrite: bool = False,
    progress: Progress = None,
) -> SignatureReport:
    """Signs all files of a folder, or one file, as OpenSSF Model Signing 1.0 does; ``key`` is a private EC key in a PEM file."""
    options = {
        "key": key, "passphrase_file": passphrase_file, "certificate": certificate, "certificate_chain": _texts(certificate_chain), "ignore": _texts(ignore),
        "ignore_git": ignore_git, "allow_symlinks": allow_symlinks, "overwrite": overwrite, "progress": progress,
    }  # fmt: skip
    return _signature_report(_native.sign(path, signature, options))


def verify_signature(
    path: StrPath,
    signature: StrPath,
    *,
    key: Optional[StrPath] = None,
    certificate_chain: Paths = None,
    ignore: Paths = None,
    ignore_git: bool = True,
    allow_symlinks: bool = False,
    ignore_unsigned: bool = False,
    progress: Progress = None,
) -> SignatureReport:
    """Is a folder or file what was signed? By a public key, or by certificates that are trusted; a signature that is not theirs is raised."""
    options = {
        "key": key, "certificate_chain": _texts(certificate_chain), "ignore": _texts(ignore), "ignore_git": ignore_git, "allow_symlinks": allow_symlinks,
        "ignore_unsigned": ignore_unsigned, "progress": progress,
    }  # fmt: skip
    return _signature_report(_native.verify_signature(path, signature, options))
