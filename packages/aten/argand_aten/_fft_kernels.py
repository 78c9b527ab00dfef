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


def _tensor(numpy: Any, values: Any) -> Tensor:
    return argand_c10.from_numpy(numpy.ascontiguousarray(values))


def _c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    numpy, x = _numpy(self)
    if forward:
        return _tensor(numpy, numpy.fft.fftn(x, axes=tuple(dim), norm=_FORWARD[normalization]))
    return _tensor(numpy, numpy.fft.ifftn(x, axes=tuple(dim), norm=_BACKWARD[normalization]))


def _r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    numpy, x = _numpy(self)
    transform = numpy.fft.rfftn if onesided else numpy.fft.fftn
    return _tensor(numpy, transform(x, axes=tuple(dim), norm=_FORWARD[normalization]))


def _c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    numpy, x = _numpy(self)
    sizes = [*(x.shape[d] for d in dim[:-1]), last_dim_size]
    return _tensor(
        numpy, numpy.fft.irfftn(x, sizes, axes=tuple(dim), norm=_BACKWARD[normalization])
    )


def install() -> None:
    """Registers the kernels."""
    for name, kernel in (("_fft_c2c", _c2c), ("_fft_r2c", _r2c), ("_fft_c2r", _c2r)):
        argand_c10.register_kernel(name, "CPU", kernel)
