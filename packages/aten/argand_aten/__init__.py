"""Operators: the registry's functions and Tensor methods, with CPU and meta kernels, without gradients.

Every operator is a callable in `argand_aten.ops` (also those without a public name); the public ones are attributes of
this module, named, ordered and defaulted as in PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import argand_c10
from argand_c10 import Tensor, as_tensor, from_numpy, tensor

argand_c10.check_abi("argand-aten", built_for=2)

from argand_aten import _C, _backends, _blas  # noqa: E402  (the ABI is checked first)
from argand_aten._operators import ops  # noqa: E402

_C.set_blas(_blas.library_path())
_C.set_cuda_loader(_backends.load_cuda)
globals().update({name: op for name, op in _C.functions.items() if not name.startswith("_")})

from argand_aten import (  # noqa: E402  (use the operators)
    _fft_kernels,
    _functions,
    _low_rank,
    _native,
    _rules,
    _statistics,
    _tensor_methods,
    _tensor_types,
    _typed_storage,
)

for _module in (_functions, _low_rank, _native, _statistics, _tensor_types, _typed_storage):
    globals().update({name: getattr(_module, name) for name in _module.__all__})

_tensor_methods.install(_C.set_tensor_attribute)
_typed_storage.install(_C.set_tensor_attribute)
_rules.install(_C.operators)
_fft_kernels.install()

if TYPE_CHECKING:
    from argand_aten._functions import *  # noqa: F403
    from argand_aten._low_rank import *  # noqa: F403
    from argand_aten._native import *  # noqa: F403
    from argand_aten._statistics import *  # noqa: F403
    from argand_aten._tensor_types import *  # noqa: F403
    from argand_aten._typed_storage import *  # noqa: F403
    from argand_aten.generated._ops import *  # type: ignore[assignment,no-redef]  # noqa: F403  # the functions above take the place of operators

__version__ = "0.1.0"
__all__ = [
    "Tensor", "as_tensor", "from_numpy", "ops", "tensor", *_functions.__all__, *_low_rank.__all__, *_native.__all__, *_statistics.__all__, *_tensor_types.__all__,
    *_typed_storage.__all__,
    *(n for n in _C.functions if not n.startswith("_")),
]  # fmt: skip
