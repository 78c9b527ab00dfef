"""The CPU kernels of Fourier transforms: pocketfft's (Reinecke 2019) in the precision of the input, as SciPy has it, vectorized and in threads,
or as NumPy has it where SciPy is not installed."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import itertools
import os
import re
from collections.abc import Sequence
from typing import Any

import argand_c10
from argand_aten._operators import ops
from argand_c10 import Tensor

# pocketfft's name of each transform, and its functions' arguments.
_FUNCTION = {"fftn": "c2c", "ifftn": "c2c", "rfftn": "r2c", "irfftn": "c2r"}
_ARGUMENTS = {
    "c2c": ["a", "axes", "forward", "inorm", "out", "nthreads"],
    "r2c": ["a", "axes", "forward", "inorm", "out", "nthreads"],
    "c2r": ["a", "axes", "lastsize", "forward", "inorm", "out", "nthreads"],
}
# NumPy's names of the normalizations none, by sqrt(n) and by n in either direction.
_FORWARD = ("backward", "ortho", "forward")
_BACKWARD = ("forward", "ortho", "backward")
_WORTH_THREADS = 1 << 15  # elements


def _has_arguments(module: Any) -> bool:
    """Whether the extension's functions are as `_transform` calls them: it is not of SciPy's public interface."""
    return all(
        re.findall(r"(\w+): ", (getattr(module, name, None).__doc__ or "").partition(") ->")[0])
        == arguments
        for name, arguments in _ARGUMENTS.items()
    )


@functools.cache
def _library() -> Any:
    """SciPy's extension by itself: importing scipy.fft takes a third of a second and 20 MB, calls through it longer than a small transform."""
    scipy = importlib.util.find_spec("scipy")
    for folder in (scipy.submodule_search_locations or ()) if scipy else ():
        place = [os.path.join(folder, "fft", "_pocketfft")]
        spec = importlib.machinery.PathFinder.find_spec("pypocketfft", place)
        if spec and spec.loader:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            if _has_arguments(module):
                return module
    try:
        import numpy.fft
    except ImportError:
        raise ImportError(
            "fft: transforms on the CPU are SciPy's or NumPy's, none of which is installed; pip install numpy"
        ) from None
    return numpy.fft


def _transform(name: str, x: Tensor, dim: Sequence[int], normalization: int, result: Any) -> None:
    """Writes a transform of x into an array."""
    library, values, forward = _library(), x.detach().numpy(), name[0] != "i"
    if library.__name__ == "numpy.fft":
        sizes = [result.shape[d] for d in dim] if name == "irfftn" else None
        norm = (_FORWARD if forward else _BACKWARD)[normalization]
        result[...] = getattr(library, name)(values, sizes, tuple(dim), norm)
        return
    workers = argand_c10.get_num_threads() if x.numel() >= _WORTH_THREADS else 1
    size = (result.shape[dim[-1]],) if name == "irfftn" else ()
    transform = getattr(library, _FUNCTION[name])
    transform(values, dim, *size, forward, normalization, result, workers)


@functools.lru_cache(maxsize=1024)
def _strides(
    shape: tuple[int, ...], strides: tuple[int, ...], dim: tuple[int, ...], last: bool
) -> list[int]:
    from argand_aten.generated import _language  # a program without transforms never loads it

    strided: list[int] = _language.transform_strides(list(shape), list(strides), list(dim), last)
    return strided


def _empty(x: Tensor, dim: Sequence[int], last: bool, dtype: Any, size: int) -> Tensor:
    """The result of a transform of x, whose last dimension has `size` then."""
    shape = list(x.shape)
    shape[dim[-1]] = size
    strides = _strides(tuple(shape), tuple(x.stride()), tuple(dim), last)
    return ops.empty_strided(shape, strides, dtype=dtype, device=x.device)


def _c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    out = _empty(self, dim, False, self.dtype, self.shape[dim[-1]])
    _transform("fftn" if forward else "ifftn", self, dim, normalization, out.numpy())
    return out


def _r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    n = self.shape[dim[-1]]
    half = n // 2 + 1
    out = _empty(self, dim, onesided, self.dtype.to_complex(), half if onesided else n)
    last = dim[-1]
    _transform("rfftn", self, dim, normalization, out.narrow(last, 0, half).numpy())
    if onesided or n < 3:
        return out
    # The other half mirrors it. pocketfft writes that in one thread, slowly, and turns the sign of zeros that mirror themselves.
    # In other dimensions entry 0 mirrors itself, and the rest is turned around.
    turned_around = {d % self.ndim for d in dim}
    backwards = tuple(slice(None, None, -1 if d in turned_around else 1) for d in range(self.ndim))
    for turned in itertools.product((False, True), repeat=len(dim) - 1):
        there, here = out.narrow(last, half, n - half), out.narrow(last, 1, n - half)
        for d, turn in zip(dim, turned, strict=False):
            start, length = (1, out.shape[d] - 1) if turn else (0, 1)
            there, here = there.narrow(d, start, length), here.narrow(d, start, length)
        if self.numel() < _WORTH_THREADS:
            there.numpy()[...] = here.numpy()[backwards].conj()
        else:
            ops.conj_physical(ops.flip(here, list(dim)), out=there)
    return out


def _c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    out = _empty(self, dim, True, self.dtype.to_real(), last_dim_size)
    values = self.detach().narrow(dim[-1], 0, last_dim_size // 2 + 1)
    _transform("irfftn", values, dim, normalization, out.numpy())
    return out


def install() -> None:
    """Registers the kernels."""
    for name, kernel in (("_fft_c2c", _c2c), ("_fft_r2c", _r2c), ("_fft_c2r", _c2r)):
        argand_c10.register_kernel(name, "CPU", kernel)
