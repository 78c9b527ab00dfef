"""The CPU kernels of Fourier transforms: pocketfft's (Reinecke 2019) in the precision of the input, as SciPy has it, vectorized and in threads,
or as NumPy has it where SciPy is not installed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import argand_c10
from argand_aten._operators import ops
from argand_c10 import Tensor

# NumPy's names of the normalizations none, by sqrt(n) and by n, in either direction.
_FORWARD = ("backward", "ortho", "forward")
_BACKWARD = ("forward", "ortho", "backward")
_WORTH_THREADS = 1 << 15  # elements


@functools.cache
def _library() -> Any:
    try:
        import scipy.fft  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        pass
    else:
        return scipy.fft
    try:
        import numpy.fft
    except ImportError:
        raise ImportError(
            "fft: transforms on the CPU are SciPy's or NumPy's, none of which is installed; pip install numpy"
        ) from None
    return numpy.fft


def _transform(
    name: str, x: Tensor, dim: Sequence[int], norm: str, sizes: Sequence[int] | None = None
) -> Any:
    library, values = _library(), x.detach().numpy()
    options: dict[str, Any] = {"norm": norm}
    if library.__name__ != "numpy.fft" and x.numel() >= _WORTH_THREADS:
        options["workers"] = argand_c10.get_num_threads()
    if len(dim) == 1:
        size = None if sizes is None else sizes[0]
        return getattr(library, name[:-1])(values, size, dim[0], **options)
    return getattr(library, name)(values, sizes, tuple(dim), **options)


def _tensor(
    values: Any, x: Tensor, dim: Sequence[int], last: bool, size: int | None = None
) -> Tensor:
    """The result of a transform of x. `size`: what its only dimension has once the symmetric half is there."""
    import numpy

    from argand_aten.generated import _language  # a program without transforms never loads it

    shape = list(values.shape)
    if size is not None:
        shape[dim[0]] = size
    strides = _language.transform_strides(shape, list(x.stride()), list(dim), last)
    order = sorted(range(values.ndim), key=lambda d: strides[d], reverse=True)
    dense = argand_c10.from_numpy(numpy.ascontiguousarray(values.transpose(order)))
    if size is not None:
        dense = ops._fft_mirrored(dense, size)
    return dense.as_strided(shape, strides)


def _c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    if forward:
        values = _transform("fftn", self, dim, _FORWARD[normalization])
    else:
        values = _transform("ifftn", self, dim, _BACKWARD[normalization])
    return _tensor(values, self, dim, False)


def _r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    if not onesided and len(dim) == 1 and self.shape[dim[0]] > 2:
        values = _transform("rfftn", self, dim, _FORWARD[normalization])
        return _tensor(values, self, dim, False, self.shape[dim[0]])
    values = _transform("rfftn" if onesided else "fftn", self, dim, _FORWARD[normalization])
    return _tensor(values, self, dim, onesided)


def _c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    sizes = [*(self.shape[d] for d in dim[:-1]), last_dim_size]
    values = _transform("irfftn", self, dim, _BACKWARD[normalization], sizes)
    return _tensor(values, self, dim, True)


def install() -> None:
    """Registers the kernels."""
    for name, kernel in (("_fft_c2c", _c2c), ("_fft_r2c", _r2c), ("_fft_c2r", _c2r)):
        argand_c10.register_kernel(name, "CPU", kernel)
