"""Autocast: regions in which operators choose their dtype.

What happens to an operator's tensors is said by its `autocast:` entry in the registry; the casts are made by the kernels of the
dispatch key AUTOCAST, and gradients flow through them as through `Tensor.to`.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import argand_c10
from argand_aten import _C
from argand_autograd.grad_mode import _Mode
from argand_c10 import Tensor

__all__ = [
    "autocast",
    "clear_autocast_cache",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])

# Of ArgandThreadState.autocast (packages/c10/csrc/abi/argand.h).
_ON = 0x80
_CACHE_BYTE = 7
# Positions in ArgandDType of the dtypes that a region may have.
_DTYPES = {6: argand_c10.float16, 7: argand_c10.bfloat16, 8: argand_c10.float32}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_LOWER = (argand_c10.bfloat16, argand_c10.float16)
# Device types that programs ask about besides those that there are.
_OTHER_DEVICES = frozenset({"hpu", "ipu", "maia", "mps", "mtia", "xla", "xpu"})


def _byte_of(device_type: str) -> int:
    """The number of a device type (ArgandDeviceType), which is its byte of the state."""
    if not isinstance(device_type, str):
        raise ValueError(
            f"autocast: got device_type {device_type!r}, expected a string such as 'cuda' or 'cpu'"
        )
    if device_type == "meta":
        raise RuntimeError(
            "autocast: got device_type 'meta', whose tensors have no elements to cast"
        )
    number: int = _C.device_type_number(device_type)
    return number


def _read(state: int, byte: int) -> int:
    return state >> 8 * byte & 0xFF


def _written(state: int, byte: int, value: int) -> int:
    return state & ~(0xFF << 8 * byte) | value << 8 * byte


_ALL_ON = int.from_bytes([_ON] * _CACHE_BYTE, "little")


def without_regions(state: int) -> int:
    """A state in which nothing is cast."""
    return state & ~_ALL_ON


def dtype_in_region(state: int, byte: int) -> argand_c10.dtype | None:
    """The region's dtype of lower precision for a device type, given by its number; None outside of regions."""
    value = _read(state, byte)
    return _DTYPES[value & ~_ON] if value & _ON else None


def keeps_casts(state: int) -> bool:
    """Whether cast weights are kept."""
    return bool(_read(state, _CACHE_BYTE))


def is_autocast_available(device_type: str) -> bool:
    """Whether there can be regions for the device type."""
    try:
        _byte_of(device_type)
    except RuntimeError:
        return False
    return True


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on tensors of this device type are cast in this thread; of types that are not here, none are."""
    if device_type in _OTHER_DEVICES:
        return False
    return bool(_read(_C.autocast_state(), _byte_of(device_type)) & _ON)


def set_autocast_enabled(
    device_type: str | bool | None = None, enabled: bool | None = None
) -> None:
    """Turn autocast on or off for a device type in this thread (for "cuda" with one argument)."""
    if enabled is None:
        device_type, enabled = None, device_type
    device_type = "cuda" if device_type is None else device_type
    if not isinstance(device_type, str) or not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled: got {device_type!r} and {enabled!r}, expected a device type and a bool"
        )
    state, byte = _C.autocast_state(), _byte_of(device_type)
    value = _read(state, byte)
    _C.set_autocast_state(_written(state, byte, value | _ON if enabled else value & ~_ON))


def get_autocast_dtype(device_type: str) -> argand_c10.dtype:
    """The dtype of lower precision for a device type in this thread, whether or not autocast is on."""
    return _DTYPES[_read(_C.autocast_state(), _byte_of(device_type)) & ~_ON]


def set_autocast_dtype(device_type: str, dtype: argand_c10.dtype) -> None:
    """Set the dtype of lower precision for a device type in this thread.

    Raises:
        TypeError: if it is no dtype.
        ValueError: if the dtype is not float16, bfloat16 or float32.
    """
    if not isinstance(dtype, argand_c10.dtype):
        raise TypeError(f"set_autocast_dtype: got {dtype!r}, expected a dtype")
    code = _CODES.get(dtype)
    if code is None:
        raise ValueError(f"set_autocast_dtype: got {dtype}, expected float16, bfloat16 or float32")
    state, byte = _C.autocast_state(), _byte_of(device_type)
    _C.set_autocast_state(_written(state, byte, _read(state, byte) & _ON | code))


def is_autocast_cache_enabled() -> bool:
    """Whether regions of this thread keep the weights that they have cast."""
    return keeps_casts(_C.autocast_state())


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Choose whether regions of this thread keep the weights that they have cast."""
    _C.set_autocast_state(_written(_C.autocast_state(), _CACHE_BYTE, _ON if enabled else 0))


def clear_autocast_cache() -> None:
    """Let go of the cast weights that this thread keeps."""
    _C.clear_autocast_cache()


class autocast(_Mode):
    """A region in which operators choose the dtype that suits them; a context manager and a decorator.

    Matrix products, convolutions and attention run in the region's dtype; operators that need the range or the
    precision run in float32 (which ones depends on the device type, as in PyTorch); float64 tensors and in-place and
    `out=` forms are left as they are. Regions nest, and count for their thread only. Run the forward pass and the loss
    in one, backward outside of it: gradients have the dtypes of the forward's operators.

    Args:
        device_type: whose tensors are cast: "cuda", "cpu", "hip" or the name of an out-of-tree backend.
        dtype: float16 or bfloat16; None: `get_autocast_dtype(device_type)`.
        enabled: False makes a region without casts.
        cache_enabled: whether the cast of a weight (a float32 leaf that requires grad) is kept until the outermost
            region ends; None: as before.

    Raises:
        RuntimeError: if the device type is unknown.
    """

    def __init__(
        self,
        device_type: str,
        dtype: argand_c10.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _byte_of(device_type)
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = bool(enabled)
        if self._enabled and self.fast_dtype not in _LOWER:
            warnings.warn(
                f"autocast: got dtype {self.fast_dtype} for {device_type!r}, expected bfloat16 or float16; the region "
                "casts nothing",
                stacklevel=2,
            )
            self._enabled = False
        self._cache_enabled = cache_enabled
        self._outer: list[int] = []

    def clone(self) -> autocast:
        same = object.__new__(type(self))  # subclasses have other constructors
        for name, value in vars(self).items():
            setattr(same, name, value)
        same._outer = []
        return same

    def __enter__(self) -> None:
        state = _C.autocast_state()
        self._outer.append(state)
        byte = _byte_of(self.device)
        if self._enabled:
            state = _written(state, byte, _CODES[self.fast_dtype] | _ON)
        else:
            state = _written(state, byte, _read(state, byte) & ~_ON)
        if self._cache_enabled is not None:
            state = _written(state, _CACHE_BYTE, _ON if self._cache_enabled else 0)
        _C.set_autocast_state(state)

    def __exit__(self, *exc: object) -> None:
        outer = self._outer.pop()
        _C.set_autocast_state(outer)
        if not outer & _ALL_ON:
            _C.clear_autocast_cache()


def autocast_state() -> int:
    """All of this thread's autocast state, for `autocast_as`."""
    state: int = _C.autocast_state()
    return state


@contextlib.contextmanager
def autocast_as(state: int) -> Iterator[None]:
    """The state of another time for a block."""
    outer = _C.autocast_state()
    _C.set_autocast_state(state)
    try:
        yield
    finally:
        _C.set_autocast_state(outer)
        if not outer & _ALL_ON:
            _C.clear_autocast_cache()


def _cast(value: Any, device_type: str, dtype: argand_c10.dtype) -> Any:
    """Floating-point tensors of the device type in `dtype`, also inside of lists, tuples and dicts."""
    if isinstance(value, Tensor):
        eligible = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype is not argand_c10.float64
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, dict):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        items = [_cast(v, device_type, dtype) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def custom_fwd(
    fwd: F | None = None,
    *,
    device_type: str = "cuda",
    cast_inputs: argand_c10.dtype | None = None,
) -> Any:
    """Decorates `forward` of a custom `Function` that is called in autocast regions; goes with `custom_bwd`.

    Args:
        device_type: the device type of the regions.
        cast_inputs: the dtype of the floating-point inputs of that device inside of a region, where `forward` then runs
            without autocast; None: `forward` runs with the region's autocast and gets its inputs as they are.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function: Callable[..., Any] = fwd

    @functools.wraps(function)
    def forward(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        if cast_inputs is None or not enabled:
            args[0]._fwd_used_autocast = enabled
            return function(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return function(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return cast(F, forward)


def custom_bwd(bwd: F | None = None, *, device_type: str = "cuda") -> Any:
    """Decorates `backward` of a custom `Function` with `custom_fwd`: it runs with the autocast state of `forward`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function: Callable[..., Any] = bwd

    @functools.wraps(function)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return function(*args, **kwargs)

    return cast(F, backward)
