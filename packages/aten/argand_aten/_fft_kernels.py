"""The CPU kernels of Fourier transforms: NumPy's, which are pocketfft's (Reinecke 2019), in the precision of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import argand_c10
from argand_c10 import Tensor

# NumPy's names of the normalizations none, by sqrt(n) and by n, in either direction.
_FORWARD = ("backward", "ortho", "forward")
_BACKWARD = ("forward", "ortho", "backward")


def _numpy(x: Tensor) -> tuple[Any, Any]:
    try:
        import numpy
    except ImportError:
        raise ImportError(
            "fft: transforms on the CPU are NumPy's, which is not installed; pip install numpy"
        ) from None
    return numpy, x.detach().numpy()


def _tensor(numpy: Any, values: Any, x: Tensor, dim: Sequence[int], last: bool) -> Tensor:
    from argand_aten.generated import _language  # a program without transforms never loads it

    strides = _language.transform_strides(list(values.shape), list(x.stride()), list(dim), last)
    order = sorted(range(values.ndim), key=lambda d: strides[d], reverse=True)
    dense = argand_c10.from_numpy(numpy.ascontiguousarray(values.transpose(order)))
    return dense.as_strided(values.shape, strides)


def _c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    numpy, x = _numpy(self)
    if forward:
        values = numpy.fft.fftn(x, axes=tuple(dim), norm=_FORWARD[normalization])
    else:
        values = numpy.fft.ifftn(x, axes=tuple(dim), norm=_BACKWARD[normalization])
    return _tensor(numpy, values, self, dim, False)


def _r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    numpy, x = _numpy(self)
    transform = numpy.fft.rfftn if onesided else numpy.fft.fftn
    values = transform(x, axes=tuple(dim), norm=_FORWARD[normalization])
    return _tensor(numpy, values, self, dim, onesided)


def _c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    numpy, x = _numpy(self)
    sizes = [*(x.shape[d] for d in dim[:-1]), last_dim_size]
    values = numpy.fft.irfftn(x, sizes, axes=tuple(dim), norm=_BACKWARD[normalization])
    return _tensor(numpy, values, self, dim, True)


def install() -> None:
    """Registers the kernels."""
    for name, kernel in (("_fft_c2c", _c2c), ("_fft_r2c", _r2c), ("_fft_c2r", _c2r)):
        argand_c10.register_kernel(name, "CPU", kernel)
