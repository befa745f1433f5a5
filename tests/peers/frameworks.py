# SPDX-License-Identifier: Apache-2.0
"""How each framework makes a tensor of bits and shows the bits of one. Nothing here is Ballast's: it is the other side of the comparison."""
import ctypes
import importlib

import numpy as np

# Safetensors' code: (bytes of an element, the name frameworks use).
DTYPES = {
    "BOOL": (1, "bool"), "U8": (1, "uint8"), "I8": (1, "int8"), "U16": (2, "uint16"), "I16": (2, "int16"), "U32": (4, "uint32"),
    "I32": (4, "int32"), "U64": (8, "uint64"), "I64": (8, "int64"), "F16": (2, "float16"), "BF16": (2, "bfloat16"), "F32": (4, "float32"),
    "F64": (8, "float64"), "C64": (8, "complex64"), "F8_E4M3": (1, "float8_e4m3fn"), "F8_E5M2": (1, "float8_e5m2"),
    "F8_E8M0": (1, "float8_e8m0fnu"), "F8_E4M3FNUZ": (1, "float8_e4m3fnuz"), "F8_E5M2FNUZ": (1, "float8_e5m2fnuz"),
}  # fmt: skip
CODES = {name: code for code, (_, name) in DTYPES.items()}
_UNSIGNED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


class Framework:
    dies_of_empty_tensors = False


class Numpy(Framework):
    name, part = "numpy", "numpy"

    def __init__(self):
        import ml_dtypes

        self.small = ml_dtypes

    def dtype(self, code):
        name = DTYPES[code][1]
        return np.dtype(getattr(self.small, name) if hasattr(self.small, name) else name)

    def array(self, raw, code, shape):
        return np.frombuffer(bytearray(raw), self.dtype(code)).reshape(shape)

    make = array

    def code(self, tensor):
        return CODES[str(tensor.dtype)]

    def bits(self, tensor):
        return np.ascontiguousarray(tensor).tobytes()


class Torch(Framework):
    name, part = "torch", "torch"

    def __init__(self):
        self.torch = importlib.import_module("torch")

    def make(self, raw, code, shape):
        dtype = getattr(self.torch, DTYPES[code][1])
        if not raw:
            return self.torch.empty(shape, dtype=dtype)
        return self.torch.frombuffer(bytearray(raw), dtype=self.torch.uint8).view(dtype).reshape(shape)

    def code(self, tensor):
        return CODES[str(tensor.dtype).split(".")[-1]]

    def bits(self, tensor):
        flat = tensor.detach().reshape(-1)
        return flat.new_empty(flat.shape).copy_(flat).view(self.torch.uint8).numpy().tobytes() if flat.numel() else b""


class Jax(Numpy):
    name, part = "jax", "flax"

    def __init__(self):
        super().__init__()
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jnp = importlib.import_module("jax.numpy")

    def make(self, raw, code, shape):
        return self.jnp.asarray(self.array(raw, code, shape))

    def bits(self, tensor):
        return np.asarray(tensor).tobytes()


class Tensorflow(Numpy):
    name, part = "tensorflow", "tensorflow"

    def __init__(self):
        super().__init__()
        self.tf = importlib.import_module("tensorflow")

    def make(self, raw, code, shape):
        return self.tf.convert_to_tensor(self.array(raw, code, shape))

    def code(self, tensor):
        return CODES[tensor.dtype.name]

    def bits(self, tensor):
        return tensor.numpy().tobytes()


class Paddle(Framework):
    name, part = "paddle", "paddle"
    dies_of_empty_tensors = True  # loading one fails in the published package, and Paddle aborts the process for it later

    def __init__(self):
        self.paddle = importlib.import_module("paddle")

    def make(self, raw, code, shape):
        dtype = getattr(self.paddle, DTYPES[code][1])
        if not raw:
            return self.paddle.empty(shape, dtype=dtype)
        return self.paddle.base.core.frombuffer(bytearray(raw), dtype).reshape(shape).clone()

    def code(self, tensor):
        return CODES[str(tensor.dtype).split(".")[-1]]

    def bits(self, tensor):
        tensor = tensor.contiguous()
        count = int(np.prod(tensor.shape))
        return ctypes.string_at(tensor.data_ptr(), count * tensor.element_size()) if count else b""


class Mlx(Framework):
    name, part = "mlx", "mlx"

    def __init__(self):
        self.mx = importlib.import_module("mlx.core")

    def make(self, raw, code, shape):
        size, name = DTYPES[code]
        dtype = getattr(self.mx, "bool_" if name == "bool" else name)
        if code in ("BOOL", "C64", "F64"):
            return self.mx.array(np.frombuffer(bytearray(raw), name).reshape(shape), dtype)
        return self.mx.array(np.frombuffer(bytearray(raw), _UNSIGNED[size]).reshape(shape)).view(dtype)

    def code(self, tensor):
        name = str(tensor.dtype).split(".")[-1]
        return CODES["bool" if name == "bool_" else name]

    def bits(self, tensor):
        code = self.code(tensor)
        if code in ("BOOL", "C64", "F64"):
            return np.array(tensor).tobytes()
        return np.array(tensor.view(getattr(self.mx, _UNSIGNED[DTYPES[code][0]]))).tobytes()


FRAMEWORKS = {kind.name: kind for kind in (Numpy, Torch, Jax, Tensorflow, Paddle, Mlx)}
