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
}  # fmt: skip


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **_: Any) -> Any:
        import triton.language as tl
        from triton.runtime.interpreter import TensorHandle

        dtype, block = args[0].dtype, next((a.type for a in args if a.type.is_block()), args[0].type)
        arrays = np.broadcast_arrays(*(a.handle.data for a in args))
        with np.errstate(all="ignore"):
            # In float64, then rounded: the library's error is at most a few units in the last place.
            result = np.asarray(function(*(a.astype(np.float64) for a in arrays))).astype(arrays[0].dtype)
        return tl.tensor(TensorHandle(result, dtype), block)

    return call


def install() -> None:
    """Gives the interpreter the functions."""
    from triton.language.extra import libdevice

    for name, function in _FUNCTIONS.items():
        setattr(libdevice, name, _elementwise(function))
