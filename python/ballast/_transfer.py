# SPDX-License-Identifier: Apache-2.0
"""All tensors of a file to a CUDA device: several threads fill pinned slots from the mapped file while the one before is on its way.

Each tensor has memory of its own on the device. The copies are ordered on the current stream, as PyTorch's own are.
"""
from __future__ import annotations

from typing import Any, Dict, List, Tuple, Union

import torch

from . import _native
from ._frameworks import NAMES, torch_tools

SLOT_BYTES = 32 << 20
SLOTS = 3


class _Slot:
    """Pinned memory that is filled, sent, and free again when the device has read it."""

    def __init__(self, size: int, cuda: bool) -> None:
        self.bytes = torch.empty(size, dtype=torch.uint8, pin_memory=cuda)
        self.event = torch.cuda.Event() if cuda else None
        self.sent = False
        self.used = 0
        self.copies: List[Tuple[int, int, int]] = []
        self.pieces: List[Tuple[torch.Tensor, int, int, int]] = []

    def add(self, source: int, target: torch.Tensor, at: int, size: int) -> None:
        self.copies.append((self.bytes.data_ptr() + self.used, source, size))
        self.pieces.append((target, at, self.used, size))
        self.used += size

    def send(self) -> None:
        if self.sent and self.event is not None:
            self.event.synchronize()
        _native.copy_bytes(self.copies)
        for target, at, begin, size in self.pieces:
            target[at : at + size].copy_(self.bytes[begin : begin + size], non_blocking=True)
        if self.event is not None:
            self.event.record()
        self.sent, self.used, self.copies, self.pieces = True, 0, [], []


def _shaped(flat: torch.Tensor, code: str, shape: Tuple[int, ...]) -> torch.Tensor:
    if code == "F4":
        shape = shape[:-1] + (shape[-1] // 2,)
    return flat.view(getattr(torch, NAMES[code])).view(shape)


def to_device(checkpoint: Any, device: Union[str, int]) -> Dict[str, torch.Tensor]:
    """name → tensor on the device, in the file's order."""
    target = torch.device(device)
    plan = checkpoint._addresses()
    cuda = target.type == "cuda"
    total = sum(size for _, _, _, address, size in plan if address)
    size = max(1, min(SLOT_BYTES, total))
    slots = [_Slot(size, cuda) for _ in range(SLOTS if total > size else 1)]
    result: Dict[str, torch.Tensor] = {}
    turn = 0
    with torch.cuda.device(target) if cuda else torch.no_grad():
        for name, code, shape, address, length in plan:
            if not address or not hasattr(torch, NAMES.get(code, "?")):  # strided, empty or odd: by the plain way
                result[name] = checkpoint._tensor(name)._torch(*torch_tools()).to(target)
                continue
            flat = torch.empty(length, dtype=torch.uint8, device=target)
            done = 0
            while done < length:
                slot = slots[turn % len(slots)]
                part = min(length - done, size - slot.used)
                slot.add(address + done, flat, done, part)
                done += part
                if slot.used == size:
                    slot.send()
                    turn += 1
            result[name] = _shaped(flat, code, shape)
        last = slots[turn % len(slots)]
        if last.used:
            last.send()
    return result
