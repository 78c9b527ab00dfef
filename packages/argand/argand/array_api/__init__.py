"""The Python array API standard, version 2025.12, over Argand's tensors: what `Tensor.__array_namespace__()` gives.

Names, arguments and dtypes are the standard's; tensors are Argand's own. What differs from it lies in the tensors: `Tensor.size` is PyTorch's method (the
number of elements is `numel()`).

Source: Consortium for Python Data API Standards, Python array API standard 2025.12.
"""

from __future__ import annotations

from argand.array_api import fft as fft
from argand.array_api import linalg as linalg
from argand.array_api.constants import *  # noqa: F403
from argand.array_api.constants import __all__ as _constants
from argand.array_api.creation import *  # noqa: F403
from argand.array_api.creation import __all__ as _creation
from argand.array_api.data_types import *  # noqa: F403
from argand.array_api.data_types import __all__ as _data_types
from argand.array_api.elementwise import *  # noqa: F403
from argand.array_api.elementwise import __all__ as _elementwise
from argand.array_api.inspection import __array_namespace_info__ as __array_namespace_info__
from argand.array_api.linalg import matmul as matmul
from argand.array_api.linalg import matrix_transpose as matrix_transpose
from argand.array_api.linalg import tensordot as tensordot
from argand.array_api.linalg import vecdot as vecdot
from argand.array_api.manipulation import *  # noqa: F403
from argand.array_api.manipulation import __all__ as _manipulation
from argand.array_api.reductions import *  # noqa: F403
from argand.array_api.reductions import __all__ as _reductions
from argand.array_api.searching import *  # noqa: F403
from argand.array_api.searching import __all__ as _searching

__array_api_version__ = "2025.12"
_VERSIONS = ("2022.12", "2023.12", "2024.12", "2025.12")

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "fft", "linalg", "matmul", "matrix_transpose", "tensordot", "vecdot", *_constants, *_creation, *_data_types, *_elementwise, *_manipulation,
    *_reductions, *_searching,
]  # fmt: skip


def check_version(api_version: str | None) -> None:
    """Raises ValueError for versions of the standard that this namespace does not follow."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"__array_namespace__: got api_version={api_version!r}, expected one of {', '.join(_VERSIONS)}"
        )
