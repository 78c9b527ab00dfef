"""Methods and properties of Tensor that are short forms of operators."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from typing import Any

import argand_c10
from argand_aten import _functions, _statistics, _tensor_types
from argand_aten._operators import ops
from argand_c10 import Tensor, memory_format
from argand_c10.errors import require_tensors


def _to(dtype: Any) -> Callable[..., Tensor]:
    def convert(self: Tensor, *, memory_format: Any = None) -> Tensor:
        return ops.to(self, dtype, memory_format=memory_format)

    convert.__doc__ = f"`self` as {dtype}."
    return convert


def _transposed(self: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    if self.ndim != 2 and self.ndim != 0:
        warnings.warn(
            f"Tensor.T: got {self.ndim} dimensions, expected 2; use .mT for matrices or .permute(...)",
            UserWarning,
            stacklevel=2,
        )
    return ops.permute(self, tuple(range(self.ndim - 1, -1, -1)))


def _matrix_transposed(self: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    if self.ndim == 1:
        raise RuntimeError("Tensor.mT: got 1 dimension, expected at least 2, or none")
    if self.ndim == 0:
        return self
    return ops.transpose(self, -2, -1)


def _adjoint(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self.ndim not in (0, 2):
        raise RuntimeError(
            f"Tensor.H: got {self.ndim} dimensions, expected 2; use .mH for batches of matrices"
        )
    return ops.conj(self) if self.ndim == 0 else ops.conj(ops.transpose(self, 0, 1))


def _set_real(self: Tensor, value: Tensor) -> None:
    ops.copy_(ops.real(self), value)


def _set_imag(self: Tensor, value: Tensor) -> None:
    ops.copy_(ops.imag(self), value)


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """`self` in another dtype, which may also be a class as LongTensor or its name; without one, the name of the tensor's type."""
    if dtype is None:
        return _tensor_types.type_name(self)
    dtype, device = _tensor_types.type_target(dtype)
    return (
        ops.to(self, dtype)
        if device is None
        else ops.to(self, device, dtype, non_blocking=non_blocking)
    )


def _to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """`self`, which is dense as every tensor is, in `dtype` if that is given."""
    return self if dtype is None else ops.to(self, dtype)


def _resize(self: Tensor, *sizes: Any) -> Tensor:
    """A view with other sizes of as many elements."""
    return ops.view(
        self, list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    )


def _resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """A view with the sizes of `tensor`, which has as many elements."""
    return ops.view(self, list(tensor.shape))


def _cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """`self` in host memory."""
    return ops.to(self, "cpu", memory_format=memory_format)


def _cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """`self` on a CUDA device (default: the current one); `self` itself if it is there.

    Args:
        device: an index, a name or a device.
        non_blocking: return before a copy from page-locked memory is done.
        memory_format: of the copy.
    """
    device = argand_c10.device("cuda" if device is None else device)
    return ops.to(self, device, non_blocking=non_blocking, memory_format=memory_format)


def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`self` where `condition` (bool) holds, `other` elsewhere."""
    return ops.where(condition, self, other)


def _lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """`lu` of `self`; a plain tuple with `get_infos`, too."""
    return tuple(_functions.lu(self, pivot, get_infos))


def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor from data, with the dtype and the device of `self`."""
    made = argand_c10.tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
    )
    if requires_grad:
        made.requires_grad_()
    return made


def _change_geometry(name: str) -> Callable[..., Tensor]:
    """The in-place form of the view operator `name`."""
    operator = getattr(ops, name)

    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        view = operator(self.detach(), *args, **kwargs)
        return ops.as_strided_(self, view.shape, view.stride(), view.storage_offset())

    change.__name__ = name + "_"
    change.__doc__ = f"`{name}` in place: the tensor itself gets the view's geometry."
    return change


def _nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements: one row each, or with `as_tuple` one tensor per dimension."""
    return _functions.nonzero(self, as_tuple=True) if as_tuple else _functions.nonzero(self)


def _refuse_history(self: Tensor, name: str) -> None:
    if self.requires_grad:
        raise RuntimeError(
            f"{name}: got a tensor that requires grad, expected one without; use .detach() first"
        )
    if not self.is_cpu:
        raise TypeError(
            f"{name}: got a tensor on {self.device}, expected one in host memory; use .cpu() first"
        )


def _apply(self: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replaces each element by `callable(element)`, one by one in Python."""
    return _mapped(self, (), callable, "apply_")


def _map(self: Tensor, other: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replaces each element by `callable(element, element of other)`, one by one in Python."""
    return _mapped(self, (other,), callable, "map_")


def _map2(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replaces each element by `callable(element, element of x, element of y)`, one by one in Python."""
    return _mapped(self, (x, y), callable, "map2_")


def _mapped(
    self: Tensor, others: tuple[Tensor, ...], callable: Callable[..., Any], name: str
) -> Tensor:
    for t in (self, *others):
        _refuse_history(t, name)
        if t.dtype != self.dtype:
            raise TypeError(
                f"{name}: got tensors of {self.dtype} and {t.dtype}, expected the same dtype"
            )
    columns = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    values = [callable(*row) for row in zip(*columns, strict=True)]
    return self.copy_(argand_c10.tensor(values, dtype=self.dtype).reshape(self.shape))


def _reversed(self: Tensor) -> Tensor:
    """The tensor with its first dimension in reverse order."""
    return self if self.ndim == 0 else ops.flip(self, [0])


def _dim_order(
    self: Tensor, *, ambiguity_check: bool | list[memory_format] = False
) -> tuple[int, ...]:
    """The dimensions as they lie in memory, outermost first.

    Args:
        ambiguity_check: True refuses strides that fit several orders; a list refuses them unless exactly one of its
            memory formats fits.

    Raises:
        TypeError: if `ambiguity_check` is neither a bool nor a list of memory formats.
        RuntimeError: if the order is ambiguous.
    """
    formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if not isinstance(formats, list) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError(
            f"dim_order: got {ambiguity_check!r} for ambiguity_check, expected a bool or a list of memory formats"
        )
    strides = self.stride()
    several = 1 in self.shape or len(set(strides)) < len(strides)
    if ambiguity_check is not False and several:
        fitting = [f for f in formats if self.is_contiguous(memory_format=f)]
        if len(fitting) != 1:
            raise RuntimeError(
                f"dim_order: got shape {list(self.shape)} with strides {list(strides)}, which fit several orders, "
                "expected one; name one memory format that fits"
            )
    return tuple(sorted(range(self.ndim), key=lambda d: -strides[d]))


def _is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors are the same elements of the same memory in the same shape."""
    require_tensors("is_set_to", tensor=tensor)
    return (
        self.untyped_storage() == tensor.untyped_storage()
        and self.storage_offset() == tensor.storage_offset()
        and self.dtype == tensor.dtype
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def _new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """An uninitialised tensor of the given size, or one of the given data, with the dtype of `self`."""
    device = self.device if device is None else device
    if len(args) == 1 and isinstance(args[0], Tensor):
        return ops.alias(args[0])
    if (
        len(args) == 1
        and isinstance(args[0], (list, tuple))
        and not isinstance(args[0], argand_c10.Size)
    ):
        return argand_c10.tensor(args[0], dtype=self.dtype, device=device)
    return ops.new_empty(
        self,
        list(args[0]) if args and not isinstance(args[0], int) else list(args or (0,)),
        device=device,
    )


def _contains(self: Tensor, item: Any) -> bool:
    """Whether any element equals `item`; RuntimeError for what is neither a tensor nor a number."""
    if not issubclass(type(item), (Tensor, numbers.Number)):
        raise RuntimeError(
            f"in: got {type(item).__name__} to look for among a tensor's elements, expected a Tensor or a number"
        )
    return bool(ops.any(ops.eq(self, item)))


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order `n` of digamma."""
    return ops.polygamma(n, self)


def _polygamma_in_place(self: Tensor, n: int) -> Tensor:
    """`polygamma` in place."""
    result = ops.polygamma(n, self.clone() if self.requires_grad else self)
    if not self.is_floating_point():
        raise RuntimeError(
            f"polygamma_: result type {result.dtype} can't be cast to the desired output type {self.dtype}"
        )
    return self.copy_(result)


def install(add: Callable[[str, Any], None]) -> None:
    """Adds everything to Tensor."""
    for name, dtype in {
        "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
        "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64",
        "cdouble": "complex128",
    }.items():  # fmt: skip
        add(name, _to(getattr(argand_c10, dtype)))
    add("T", property(_transposed))
    add("mT", property(_matrix_transposed))
    add("H", property(_adjoint))
    add("mH", property(lambda self: ops.conj(_matrix_transposed(self))))
    add("real", property(lambda self: ops.real(self), _set_real))
    add("imag", property(lambda self: ops.imag(self), _set_imag))
    add("type", _type)
    add("to_dense", _to_dense)
    add("resize", _resize)
    add("resize_as", _resize_as)
    add("cpu", _cpu)
    add("cuda", _cuda)
    add("where", _where)
    add("equal", _functions.equal)
    add("lu", _lu)
    add("allclose", _functions.allclose)
    add("is_same_size", _functions.is_same_size)
    add("polygamma", _polygamma)
    add("polygamma_", _polygamma_in_place)
    add("unique", _statistics.unique)
    add("unique_consecutive", _statistics.unique_consecutive)
    add("new_tensor", _new_tensor)
    for name in ("transpose", "t", "swapaxes", "swapdims", "squeeze", "unsqueeze"):
        add(name + "_", _change_geometry(name))
    add("name", property(lambda self: None))
    add("is_distributed", lambda self: False)
    for name in ("is_conj", "is_neg", "is_nonzero"):
        add(name, getattr(_functions, name))
    for name in (
        "is_ipu",
        "is_maia",
        "is_mkldnn",
        "is_mps",
        "is_mtia",
        "is_nested",
        "is_sparse_csr",
        "is_vulkan",
        "is_xla",
        "is_xpu",
    ):
        add(name, property(lambda self: False))
    add("apply_", _apply)
    add("map_", _map)
    add("map2_", _map2)
    add("nonzero", _nonzero)
    for name in ("div", "idiv", "rdiv"):  # division's names of old
        add(f"__{name}__", getattr(argand_c10.Tensor, f"__{name.replace('div', 'truediv')}__"))
    add("__nonzero__", argand_c10.Tensor.__bool__)
    add("__long__", argand_c10.Tensor.__int__)
    add("dim_order", _dim_order)
    add("is_set_to", _is_set_to)
    add("new", _new)
    add("__reversed__", _reversed)
    add("__contains__", _contains)
