# SPDX-License-Identifier: Apache-2.0
"""A tensor's bits as any framework's tensor. NumPy carries them: what it has no dtype for (bfloat16, 8-bit floats) as integers of the same size."""
from __future__ import annotations

import functools
from typing import Any, Tuple, Union

from ._errors import SafetensorError
from ._frameworks import NAMES, SMALL_FLOATS, _NumpyDtypes, code_of, numpy_tools


class _Carriers(_NumpyDtypes):
    def __missing__(self, code: str) -> Any:
        if code not in SMALL_FLOATS:
            return super().__missing__(code)
        import numpy

        self[code] = numpy.dtype("int16" if code == "BF16" else "uint8")  # not uint16: Paddle takes that for bfloat16
        return self[code]


@functools.lru_cache(maxsize=None)
def carrying_tools() -> Tuple[Any, Any]:
    """(numpy.ndarray, dtypes that carry a code's bits), for a Tensor's ``_numpy``."""
    return numpy_tools()[0], _Carriers()


def adopt(array: Any, code: str, framework: str, device: Union[str, int] = "cpu") -> Any:
    """The framework's tensor of an array that carries ``code``; memory of its own unless the framework is NumPy or PyTorch."""
    if framework == "numpy":
        return _as_itself(array, code)
    if framework == "tensorflow":
        import tensorflow

        try:
            return tensorflow.convert_to_tensor(_as_itself(array, code))
        except (TypeError, ValueError):
            raise _unknown("tensorflow", code) from None
    if framework == "flax":
        import jax.numpy

        return jax.numpy.array(_as_itself(array, code))
    is_plain = array.flags.c_contiguous and array.flags.writeable and all(stride >= 0 for stride in array.strides)  # one element may go backwards
    plain = array if is_plain else array.copy(order="C")
    return {"pytorch": _as_torch, "mlx": _as_mlx, "paddle": _as_paddle}[framework](plain, code, device)


def from_numpy(array: Any, framework: str, device: Union[str, int] = "cpu") -> Any:
    """The framework's tensor of an array that is what it says; of what is no array, what the framework makes of it."""
    if not hasattr(array, "dtype"):
        return _made_of(array, framework, device)
    code = code_of(array.dtype.name)
    return adopt(array.view(carrying_tools()[1][code]) if code in SMALL_FLOATS else array, code, framework, device)


def _made_of(value: Any, framework: str, device: Union[str, int]) -> Any:
    if framework == "tensorflow":
        import tensorflow

        return tensorflow.convert_to_tensor(value)
    if framework == "flax":
        import jax.numpy

        return jax.numpy.array(value)
    if framework == "mlx":
        import mlx.core

        return mlx.core.array(value)
    import paddle

    return paddle.to_tensor(value, place=device)


def _as_itself(array: Any, code: str) -> Any:
    return array.view(numpy_tools()[1][code]) if code in SMALL_FLOATS else array


def _unknown(framework: str, code: str) -> SafetensorError:
    return SafetensorError(f"Dtype not understood: {code} ({framework} has no {NAMES.get(code, code)})", "bad-dtype")


def _as_torch(array: Any, code: str, device: Union[str, int]) -> Any:
    import torch

    if not hasattr(torch, NAMES.get(code, "?")):
        raise _unknown("torch", code)
    tensor = torch.from_numpy(array).view(getattr(torch, NAMES[code]))
    return tensor if device == "cpu" else tensor.to(device)


def _as_mlx(array: Any, code: str, device: Union[str, int]) -> Any:
    import mlx.core

    dtype = getattr(mlx.core, "bool_" if code == "BOOL" else NAMES.get(code, "?"), None)
    if dtype is None:
        raise _unknown("mlx", code)
    if code == "BF16":
        return mlx.core.array(array).view(dtype)
    return mlx.core.array(array, dtype)  # said, since float64 would become float32


def _as_paddle(array: Any, code: str, device: Union[str, int]) -> Any:
    import paddle

    if code in ("U16", "U32", "U64") or not hasattr(paddle, NAMES.get(code, "?")):  # its uint16 is bfloat16, the larger ones can do nothing
        raise _unknown("paddle", code)
    name, _, number = ("cuda", ":", device) if isinstance(device, int) else device.partition(":")
    tensor = paddle.to_tensor(array, place=paddle.CPUPlace() if name == "cpu" else paddle.CUDAPlace(int(number or 0)))
    return tensor.view(NAMES[code]) if code in SMALL_FLOATS else tensor
