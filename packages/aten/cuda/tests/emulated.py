"""A CUDA device that computes without a GPU: the stand-in for the driver hands every launch to Triton's interpreter.

Import it before anything of argand: `import emulated`, or skip where `emulated.missing` says why there is none. Device memory is host
memory, so the operators run as they are, C++ and Triton, only slowly. ARGAND_CUDA_DRIVER names the stand-in (packages/c10/tests/fake_cuda).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # read when kernels are decorated
os.environ.setdefault("FAKE_CUDA_DEVICES", "1")

DRIVER = os.environ.get("ARGAND_CUDA_DRIVER", "")
missing = ""
if importlib.util.find_spec("triton") is None:
    missing = "needs triton"
elif not DRIVER:
    missing = "ARGAND_CUDA_DRIVER does not name the stand-in for the driver"

_SCALARS: dict[str, Any] = {
    "i1": ctypes.c_int8, "i8": ctypes.c_int8, "u8": ctypes.c_uint8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "fp32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip

errors: list[BaseException] = []  # raised by kernels; a launch cannot fail with them
launches: list[str] = []


class _Pointer:
    """An address as the interpreter takes tensors."""

    def __init__(self, address: int, dtype: str) -> None:
        self.address = address
        self.dtype = dtype

    def data_ptr(self) -> int:
        return self.address


def run_kernel(name: str, grid: tuple[int, int, int], params: Any) -> None:
    """Runs a specialization with the parameters that the driver was given."""
    import triton.language as tl

    from argand_aten_cuda import provider

    kernel = provider._kernels()[name.split(";")[0]][0]
    variant = kernel.parse(name)
    dtypes = {
        n: getattr(tl, "int1" if d == "bool" else d) for n, d in kernel.dtypes(variant).items()
    }
    arguments: dict[str, Any] = {**{n: variant[n] for n in kernel.constants}, **dtypes}
    types = kernel.parameters(variant)
    order = [n for n in kernel.function.arg_names if n in types]
    for i, parameter in enumerate(order):
        text = types[parameter]
        if text.startswith("*"):
            arguments[parameter] = _Pointer(ctypes.c_uint64.from_address(params[i]).value, text[1:])
        else:
            arguments[parameter] = _typed(text, _SCALARS[text].from_address(params[i]).value)
    positional = [arguments[n] for n in kernel.function.arg_names]
    kernel.function[grid](*positional)


def _typed(text: str, value: Any) -> Any:
    """A scalar of the signature's type, where the interpreter would guess another from its value."""
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle, _get_np_dtype

    dtype = tl.str_to_ty(text, None)
    return tl.tensor(TensorHandle(np.array([value], dtype=_get_np_dtype(dtype)), dtype), dtype)


_NAMES: list[str] = []


def _provide(name: str, architecture: int) -> tuple[bytes, str, int, int]:
    _NAMES.append(name)
    return b"\0", str(len(_NAMES) - 1), 128, 0


@ctypes.CFUNCTYPE(
    None,
    ctypes.c_char_p,
    ctypes.c_uint,
    ctypes.c_uint,
    ctypes.c_uint,
    ctypes.POINTER(ctypes.c_void_p),
)
def _launch(name: bytes, x: int, y: int, z: int, params: Any) -> None:
    kernel = _NAMES[int(name)]
    launches.append(kernel)
    try:
        run_kernel(kernel, (x, y, z), params)
    except BaseException as e:
        errors.append(e)


def start() -> None:
    """From now on kernels run in the interpreter."""
    import device_library
    import interpreter  # noqa: F401 (patches Triton's)

    import argand_aten_cuda

    device_library.install()
    argand_aten_cuda._C.set_provider(_provide)
    ctypes.CDLL(DRIVER).fakeRunKernels(_launch)


def check() -> None:
    """Raises what went wrong in a kernel."""
    if errors:
        first = errors[0]
        errors.clear()
        raise first
