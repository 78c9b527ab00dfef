"""CUDA's device library in NumPy and SciPy, for Triton's interpreter, which has no functions of its own for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as special

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{n: getattr(np, n) for n in "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh floor ceil trunc hypot fmod".split()},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "nearbyint": np.rint, "rint": np.rint, "pow": np.power, "erf": special.erf, "erfc": special.erfc, "lgamma": special.gammaln, "erfinv": special.erfinv,
    "erfcx": special.erfcx, "normcdfinv": special.ndtri, "cyl_bessel_i0": special.i0, "cyl_bessel_i1": special.i1, "j0": special.j0, "j1": special.j1,
    "ilogb": lambda x: np.where((x == 0) | ~np.isfinite(x), -(2**31), np.frexp(x)[1] - 1), "ldexp": lambda x, n: np.ldexp(x, n.astype(int)), "y0": special.y0, "y1": special.y1,
}  # fmt: skip


def _elementwise(
    function: Callable[..., Any], computation: type | None = np.float64
) -> Callable[..., Any]:
    def call(*args: Any, **_: Any) -> Any:
        import triton.language as tl
        from triton.runtime.interpreter import TensorHandle

        dtype, block = (
            args[0].dtype,
            next((a.type for a in args if a.type.is_block()), args[0].type),
        )
        arrays = np.broadcast_arrays(*(a.handle.data for a in args))
        with np.errstate(all="ignore"):
            # In float64, then rounded: the library's error is at most a few units in the last place.
            result = np.asarray(
                function(*(a.astype(computation or a.dtype) for a in arrays))
            ).astype(arrays[0].dtype)
        if function is np.power and result.dtype == np.float32:  # as on the device, 2**-126 too
            result = np.where(abs(result) <= np.finfo("float32").tiny, result * 0, result)
        return tl.tensor(TensorHandle(result, dtype), block)

    return call


def install() -> None:
    """Gives the interpreter the functions."""
    from triton.language.extra import libdevice

    for name, function in _FUNCTIONS.items():
        setattr(libdevice, name, _elementwise(function))
    libdevice.nextafter = _elementwise(np.nextafter, None)
