"""What NumPy and PyTorch make of a file, in a child of this process: some of these files end the process that loads them."""
import collections
import io
import os
import pickle
import warnings

import numpy
import torch

import canonical_text

Outcome = collections.namedtuple("Outcome", "kind text")        # accepted (text), refused (why), crash (signal)
BATCH = 25                                          # files of one child
INTEGER_OF = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Canonical(canonical_text.Canonical):
    """The text of canonical_text.h, of real arrays and tensors."""

    def number(self, value):
        item = value.item()
        self.write(item, 0)

    def array(self, value, depth):
        if value.dtype.kind in "OSUVMm":
            if not self.enter(value):
                return
            state = value.__reduce__()[2]
            self.put("Onumpy.ndarray(Gnumpy.ndarray,(i0),b62)|")
            self.write(state, depth + 1)
            if value.dtype.kind == "O" and state[4]:
                self.put("[")
                self.elements(state[4], depth)
                self.put("]")
        elif value.shape == ():
            self.put("<numpy.ndarray>")
            self.number(value)
        else:
            self.bytes_of("numpy.ndarray", value.dtype.name, False, value.shape, value.astype(value.dtype.newbyteorder("<")).tobytes())

    def tensor(self, value, depth):
        plain = value.detach()
        if plain.is_quantized:                      # and what turns them back into numbers
            self.channels(plain)
            plain = plain.int_repr()
        if plain.layout != torch.strided:
            plain = plain.to_dense()
        plain = plain.resolve_conj().resolve_neg()
        data = None
        if plain.device.type != "meta":
            plain = plain.contiguous()
            data = b"" if plain.numel() == 0 else plain.view(INTEGER_OF[plain.element_size()]).numpy().tobytes()
        name = "torch.nn.parameter.Parameter" if isinstance(value, torch.nn.Parameter) else "torch.Tensor"
        self.bytes_of(name, str(value.dtype).partition(".")[2], value.requires_grad, value.shape, data)
        attributes = {key: held for key, held in vars(value).items()}
        if value._backward_hooks:
            attributes["hooks"] = dict(value._backward_hooks)
        if attributes:
            self.put("@")
            self.pairs(attributes, depth)

    def channels(self, value):
        """PyTorch computes with them: those that lay in memory when they were copied are other numbers."""
        if value.qscheme() in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
            numbers = [number for part in (value.q_per_channel_scales(), value.q_per_channel_zero_points()) for number in part.tolist()]
            self.put("" if set(numbers) <= {0.5, 1} else "<other channels>")

    def bytes_of(self, name, dtype, wants_gradient, shape, data):
        self.put(f"t<{name}>{dtype}{'g' if wants_gradient else ''}[{''.join(f'{dim},' for dim in shape)}]" + ("meta" if data is None else data.hex()))

    def write(self, value, depth):
        if isinstance(value, numpy.ndarray):
            self.array(value, depth)
        elif isinstance(value, numpy.dtype):
            self.put("<numpy.dtype>s" + value.str.encode().hex())
        elif isinstance(value, numpy.generic):
            self.put(f"<numpy.{type(value).__name__}>")
            self.number(value)
        elif isinstance(value, torch.Tensor):
            self.tensor(value, depth)
        elif isinstance(value, type) and value.__module__ == "numpy":
            self.put(f"Gnumpy.{value.__name__}")
        else:
            super().write(value, depth)


def load(data):
    if data.startswith(b"PK") or b"l\xfc\x9cF\xf9 j\xa8P\x19" in data[:20]:
        return torch.load(io.BytesIO(data), **({"weights_only": False} if torch.__version__ >= "1.13" else {}))
    return pickle.loads(data)


def answer(data):
    warnings.simplefilter("ignore")
    text = Canonical([canonical_text.LONGEST])
    try:
        text.write(load(data), 0)
        return "accepted " + "".join(text.out)
    except Exception as error:                      # whatever it raises, it does not read it
        return f"refused {type(error).__name__}: {error}"


def in_child(files):
    """The answers of a child, a line each, and the signal that ended it before the last, or 0."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8", errors="backslashreplace") as out:
            for data in files:
                print(" ".join(answer(data).splitlines()), file=out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as said:
        lines = said.read().splitlines()
    _, status = os.waitpid(child, 0)
    return lines, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def outcomes(files):
    """Of each file. Where a child dies, its files get one each: what one did to the memory may only have hit the next."""
    for first in range(0, len(files), BATCH):
        batch = files[first:first + BATCH]
        lines, signal = in_child(batch)
        for place, data in enumerate(batch):
            line, died = "" if signal else lines[place], 0
            if signal:
                alone, died = in_child([data])
                line = "".join(alone)
            yield Outcome("crash", f"signal {died}") if died else Outcome(*line.split(" ", 1))
