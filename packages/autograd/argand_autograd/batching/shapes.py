"""Rules of views, and of operators along dimensions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import argand_aten as aten
import argand_c10 as c10
from argand_autograd import _C
from argand_autograd.batching.level import Level, NotForEntries, ask_before_reading
from argand_autograd.batching.rules import (
    Rule,
    Shared,
    by_entries,
    mapped,
    named,
    pointwise,
    register,
    tensors_of,
)
from argand_c10 import Tensor
from argand_c10.modes import find_operator

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["fronted", "shifted"]

ops = aten.ops
_FORMATS = (None, c10.contiguous_format, c10.preserve_format, 0, 1)


def shifted(dim: int, ndim: int) -> int:
    """A dimension of an entry with `ndim` of them, in its whole."""
    if not -max(ndim, 1) <= dim < max(ndim, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but got {dim})"
        )
    return dim % max(ndim, 1) + 1


# ---- views ------------------------------------------------------------------------------------------------------------
register(pointwise, "alias", "_tied", "detach", "copy_", "zero_", "view_as_real", "view_as_complex", "empty_like",
         "zeros_like", "ones_like")  # fmt: skip


@named("clone")
def _clone(level: Level, op: Any, self: Tensor, *, memory_format: Any = None) -> Any:
    if memory_format in _FORMATS:
        return op(level.of(self), memory_format=memory_format)
    return by_entries(level, op, (self,), {"memory_format": memory_format})


@named("_to_copy")
def _to_copy(level: Level, op: Any, self: Tensor, **kwargs: Any) -> Any:
    given = {name: value for name, value in kwargs.items() if value is not None}
    read = given.get("dtype") == c10.int64 and "device" in given and self.numel() == 1
    if read and self.is_cpu:  # how bodies come by a number
        ask_before_reading(self, "the elements")
        return Shared(op(level.of(self).detach()[0], **given))
    if given.get("memory_format") not in _FORMATS:
        return by_entries(level, op, (self,), given)
    return op(level.of(self), **given)


@named("fill_")
def _fill(level: Level, op: Any, self: Tensor, value: Any) -> Any:
    if isinstance(value, Tensor):
        return ops.copy_(level.of(self), level.aligned(value, self.ndim))
    return op(level.of(self), value)


@named("masked_fill", "masked_fill_")
def _masked_fill(level: Level, op: Any, self: Tensor, mask: Tensor, value: Any) -> Any:
    if not level.has(value):
        return pointwise(level, op, (self, mask, value), {})
    ndim = max(self.ndim, mask.ndim)
    chosen = ops.where(
        level.aligned(mask, ndim),
        level.aligned(value, ndim).to(self.dtype),
        level.aligned(self, ndim),
    )
    return ops.copy_(level.of(self), chosen) if op.is_inplace else chosen


@named("full_like")
def _full_like(level: Level, op: Any, self: Tensor, fill_value: Any, **kwargs: Any) -> Any:
    if not level.has(self):
        return by_entries(level, op, (self, fill_value), kwargs)
    return op(level.of(self), fill_value, **kwargs)


@named("new_empty", "new_zeros", "new_ones")
def _new(level: Level, op: Any, self: Tensor, size: Sequence[int], **kwargs: Any) -> Any:
    return op(level.of(self), [level.size, *size], **kwargs)


@named("new_full")
def _new_full(
    level: Level, op: Any, self: Tensor, size: Sequence[int], fill_value: Any, **kwargs: Any
) -> Any:
    return op(level.of(self), [level.size, *size], fill_value, **kwargs)


@named("new_empty_strided")
def _new_strided(
    level: Level, op: Any, self: Tensor, size: Sequence[int], stride: Sequence[int], **kwargs: Any
) -> Any:
    span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    return op(level.of(self), [level.size, *size], [span, *stride], **kwargs)


@named("as_strided")
def _as_strided(
    level: Level,
    op: Any,
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Any:
    whole = level.of(self)
    offset = self.storage_offset() if storage_offset is None else storage_offset
    return op(whole, [level.size, *size], [whole.stride(0), *stride], offset)


@named("as_strided_")
def _as_strided_in_place(
    level: Level,
    op: Any,
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> None:
    _C._turn_entry(self, _as_strided(level, ops.as_strided, self, size, stride, storage_offset))


def _resized(level: Level, self: Tensor, size: Sequence[int]) -> None:
    count = math.prod(size)
    if self._is_view() or not self.is_contiguous():
        raise NotForEntries(
            "resize_: got a view or a permuted tensor that stands for the entries of a vmap, expected one that is contiguous by itself; call clone() first, or use view() or narrow()"
        )
    whole = level.of(self)
    rows = ops.reshape(whole, [level.size, self.numel()])
    if count > self.numel():
        new = ops.new_empty(whole, [level.size, count])
        ops.copy_(ops.slice(new, 1, 0, self.numel()), rows)
        rows = new
    _C._turn_entry(
        self, ops.as_strided(rows, [level.size, *size], [rows.stride(0), *contiguous(size)])
    )


def contiguous(size: Sequence[int]) -> list[int]:
    """The strides of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for n in reversed(size):
        strides.insert(0, step)
        step *= max(n, 1)
    return strides


@named("resize_")
def _resize(
    level: Level, op: Any, self: Tensor, size: Sequence[int], *, memory_format: Any = None
) -> None:
    _resized(level, self, size)


@named("resize_as_")
def _resize_as(
    level: Level, op: Any, self: Tensor, the_template: Tensor, *, memory_format: Any = None
) -> None:
    _resized(level, self, the_template.shape)


@named("view")
def _view(level: Level, op: Any, self: Tensor, size: Sequence[int]) -> Any:
    sizes = list(size)
    if -1 in sizes:  # which the sizes of no elements leave open
        at = sizes.index(-1)
        others = 1
        for i, n in enumerate(sizes):
            others *= n if i != at else 1
        if others and self.numel() % others == 0 and others > 0:
            sizes[at] = self.numel() // others
    return op(level.of(self), [level.size, *sizes])


@named("view.dtype")
def _view_dtype(level: Level, op: Any, self: Tensor, dtype: Any) -> Any:
    if not self.ndim:
        return ops.squeeze(op(ops.unsqueeze(level.of(self), 1), dtype), [1])
    return op(level.of(self), dtype)


@named("permute")
def _permute(level: Level, op: Any, self: Tensor, dims: Sequence[int]) -> Any:
    return op(level.of(self), [0, *(shifted(d, self.ndim) for d in dims)])


@named("transpose")
def _transpose(level: Level, op: Any, self: Tensor, dim0: int, dim1: int) -> Any:
    if not self.ndim:
        return ops.alias(level.of(self))
    return op(level.of(self), shifted(dim0, self.ndim), shifted(dim1, self.ndim))


@named("expand")
def _expand(
    level: Level, op: Any, self: Tensor, size: Sequence[int], implicit: bool = False
) -> Any:
    return op(level.aligned(self, len(size)), [level.size, *size])


@named("squeeze")
def _squeeze(level: Level, op: Any, self: Tensor) -> Any:
    return ops.squeeze(level.of(self), [i + 1 for i, n in enumerate(self.shape) if n == 1])


@named("squeeze.dims")
def _squeeze_dims(level: Level, op: Any, self: Tensor, dim: Any) -> Any:
    dims = [dim] if isinstance(dim, int) else dim
    if not self.ndim:
        return ops.alias(level.of(self))
    return op(level.of(self), [shifted(d, self.ndim) for d in dims])


@named("unsqueeze")
def _unsqueeze(level: Level, op: Any, self: Tensor, dim: int) -> Any:
    return op(level.of(self), shifted(dim, self.ndim + 1))


@named("select", "slice", "unfold", "_select_at")
def _along(level: Level, op: Any, self: Tensor, dim: int = 0, *args: Any, **kwargs: Any) -> Any:
    if not self.ndim or not level.has(self) or (args and level.has(args[0])):
        return by_entries(level, op, (self, dim, *args), kwargs)
    return op(level.of(self), shifted(dim, self.ndim), *args, **kwargs)


@named("diagonal")
def _diagonal(
    level: Level, op: Any, self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    return op(level.of(self), offset, shifted(dim1, self.ndim), shifted(dim2, self.ndim))


# ---- along dimensions -------------------------------------------------------------------------------------------------
@named(
    "sum",
    "mean",
    "nansum",
    "amax",
    "amin",
    "_any_dim",
    "_all_dim",
    "_xor_sum",
    "norm2",
    "var",
    "std",
)
def _reduction(
    level: Level, op: Any, self: Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any
) -> Any:
    whole, keepdim = level.of(self), kwargs.pop("keepdim", keepdim)
    if not self.ndim:
        for d in [dim] if isinstance(dim, int) else dim or ():
            shifted(d, 0)
        return op(ops.unsqueeze(whole, 1), [1], keepdim=False, **kwargs)
    given = [dim] if isinstance(dim, int) else dim
    dims = [shifted(d, self.ndim) for d in given] if given else list(range(1, self.ndim + 1))
    return op(whole, dims, keepdim=keepdim, **kwargs)


def _of_all(overload: str) -> Callable[..., Any]:
    def rule(level: Level, op: Any, self: Tensor, **kwargs: Any) -> Any:
        flat = ops.reshape(level.of(self), [level.size, self.numel()])
        return find_operator(overload)(flat, 1, **kwargs)

    return rule


named("prod")(_of_all("prod.dim"))
named("any")(_of_all("_any_dim"))
named("all")(_of_all("_all_dim"))


@named("argmax", "argmin")
def _arg_extreme(
    level: Level, op: Any, self: Tensor, dim: int | None = None, keepdim: bool = False
) -> Any:
    if dim is None and not keepdim:
        return op(ops.reshape(level.of(self), [level.size, self.numel()]), 1)
    if dim is None or not self.ndim:
        return by_entries(level, op, (self, dim, keepdim), {})
    return op(level.of(self), shifted(dim, self.ndim), keepdim)


def fronted(*dims: str) -> Rule:
    """Of operators whose tensors all have the same dimensions up to those named: every tensor gets the entries' dimension."""

    def rule(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ndim = max(t.ndim for t in tensors_of(args, kwargs))
        given = {**_defaults(op), **dict(zip(_defaults(op), args, strict=False)), **kwargs}
        if dims and any(not t.ndim for t in tensors_of(args, kwargs)):
            return by_entries(level, op, args, kwargs)
        for name in dims:
            value = given[name]
            given[name] = (
                [shifted(d, ndim) for d in value]
                if isinstance(value, list | tuple)
                else shifted(value, ndim)
            )
        found = op(**{name: mapped(level.front, x) for name, x in given.items()})
        if not isinstance(found, tuple):
            return found
        # What was not asked for has no elements, and no dimensions but one.
        return tuple(t.new_empty([level.size, 0]) if tuple(t.shape) == (0,) else t for t in found)

    return rule


def _defaults(op: Any) -> dict[str, Any]:
    """The names of an operator's arguments, in order, with the values that stand where a call leaves them out."""
    if op.name not in _SCHEMAS:
        schema = next(s for s in op.schema.split("\n") if s.startswith(op.name + "("))
        inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
        inside = re.sub(r"\(\w+!?\)", "", inside)
        found: dict[str, Any] = {}
        for part in _split(inside):
            if part == "*":
                continue
            name, _, default = part.rpartition(" ")[2].partition("=")
            found[name] = _VALUES[default] if default in _VALUES else _literal(default)
        _SCHEMAS[op.name] = found
    return _SCHEMAS[op.name]


def _split(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",\s*(?![^\[]*\])", text) if part.strip()]


def _literal(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text.strip("\"'")


_SCHEMAS: dict[str, dict[str, Any]] = {}
_VALUES: dict[str, Any] = {"": None, "None": None, "True": True, "False": False, "[]": []}

register(fronted("dim"), "prod.dim", "cumsum", "cumprod", "logcumsumexp", "running_max", "running_min", "_latest_extreme", "max.dim", "min.dim",
         "sort", "topk", "_order_statistic", "softmax", "softmax_backward", "log_softmax", "log_softmax_backward", "_fft_c2c", "_fft_r2c",
         "_fft_c2r")  # fmt: skip
register(fronted("dims"), "flip")
register(fronted(), "tril", "triu", "_standard_gamma_grad", "_dirichlet_grad")


@named("cat")
def _cat(level: Level, op: Any, tensors: Sequence[Tensor], dim: int = 0) -> Any:
    ndim = max(t.ndim for t in tensors)
    kept = [t for t in tensors if ndim == 1 or tuple(t.shape) != (0,)]
    if not any(level.has(t) for t in kept):
        return by_entries(level, op, (tensors, dim), {})
    return op([level.front(t) for t in kept], shifted(dim, ndim))


@named("_resample", "_resample_backward")
def _resample(
    level: Level, op: Any, self: Tensor, starts: Tensor, weights: Tensor, dim: int, *size: int
) -> Any:
    if level.has(starts) or level.has(weights):
        return by_entries(level, op, (self, starts, weights, dim, *size), {})
    return op(level.of(self), starts, weights, shifted(dim, self.ndim), *size)
