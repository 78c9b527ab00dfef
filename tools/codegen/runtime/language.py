"""The registry language's built-ins in Python, for generated shape functions, composites and gradients.

Sizes may be symbolic integers: functions here only add, multiply, compare and test them. Tensors are anything with
`shape`, `dtype`, `ndim` and, where asked for, strides and a storage offset. Written by hand, emitted by tools/codegen
beside the modules that use it; in C++ the same functions are in packages/aten/csrc/core/builtins.h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import argand_c10 as _c10

from .dtype_rules import (  # noqa: F401  (some for generated modules)
    accumulate_dtype,
    accumulate_float_dtype,
    arange_dtype,
    bfloat16,
    bool_,
    cat_dtype,
    category,
    complex64,
    complex128,
    complex_dtype,
    default_dtype,
    finfo_eps,
    finfo_max,
    finfo_min,
    fits,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    has_imaginary_part,
    int8,
    int16,
    int32,
    int64,
    is_complex,
    is_floating,
    is_integral,
    is_tensor,
    pointwise_dtype,
    promote_types,
    real_dtype,
    result_type,
    scalar_dtype,
    truth_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)

inf, nan = math.inf, math.nan
sqrt_float = math.sqrt
IndexError, TypeError, ValueError = IndexError, TypeError, ValueError  # raised by generated code
NotImplementedError = NotImplementedError
ShapeError = _c10.errors.ShapeError
DTypeError = _c10.errors.DTypeError
DataDependentError = _c10.errors.DataDependentError


class Strided(NamedTuple):
    """A view's geometry: strides and offset in elements."""

    sizes: list[Any]
    strides: list[Any]
    offset: Any


def differentiable(args: list[int], results: list[int]) -> Any:
    """Notes at a rule which arguments it has gradients for, and which results gradients flow in from."""

    def mark(rule: Any) -> Any:
        rule.differentiable = (tuple(args), tuple(results))
        return rule

    return mark


# ---- lists and attributes ------------------------------------------------------------------------------------------


def ints(x: Any, size: int | None = None) -> Any:
    """A list argument as a list; one number stands for `size` copies."""
    if x is None:
        return None
    if isinstance(x, (list, tuple)):
        return list(x)
    return [x] * (size or 1)


def shape(t: Any) -> list[Any]:
    return list(t.shape)


def strides(t: Any) -> list[Any]:
    found = getattr(t, "strides", None)
    return list(found) if isinstance(found, (list, tuple)) else list(t.stride())


def offset(t: Any) -> Any:
    found = getattr(t, "offset", None)
    return found if found is not None and not callable(found) else t.storage_offset()


def numel(t: Any) -> Any:
    return prod(t.shape)


def shapes(tensors: Any) -> list[list[Any]]:
    return [shape(t) for t in tensors]


def prod(xs: Any) -> Any:
    found: Any = 1
    for x in xs:
        found = found * x
    return found


# ---- dims and shapes -----------------------------------------------------------------------------------------------


def wrap_dim(d: int, ndim: int) -> int:
    n = max(ndim, 1)
    if not -n <= d < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})"
        )
    return d + n if d < 0 else d


def broadcast_shapes(a: list[Any], b: list[Any]) -> list[Any]:
    n = max(len(a), len(b))
    found = []
    for i in range(n):
        x = a[i - n + len(a)] if i - n + len(a) >= 0 else 1
        y = b[i - n + len(b)] if i - n + len(b) >= 0 else 1
        if isinstance(x, int) and x == 1:
            found.append(y)
        elif (isinstance(y, int) and y == 1) or x == y:
            found.append(x)
        elif x == 1:
            found.append(y)
        elif y == 1:
            found.append(x)
        else:
            raise ShapeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}"
            )
    return found


def contiguous_strides(sizes: list[Any]) -> list[Any]:
    """Row-major strides; without elements (a symbolic size that turns out to be 0) strides do not matter."""
    found = [1] * len(sizes)
    for i in range(len(sizes) - 2, -1, -1):
        size = sizes[i + 1]
        found[i] = found[i + 1] * (max(size, 1) if isinstance(size, int) else size)
    return found


def infer_size(sizes: list[Any], numel: Any) -> list[Any]:
    """Fills in one -1."""
    unknown = [i for i, s in enumerate(sizes) if isinstance(s, int) and s == -1]
    if len(unknown) > 1:
        raise ShapeError("only one dimension can be inferred")
    if any(s < -1 for s in sizes):
        raise ShapeError(f"invalid shape dimension in {list(sizes)}")
    known = prod(s for i, s in enumerate(sizes) if i not in unknown)
    if not unknown:
        if known != numel:
            raise ShapeError(f"shape '{list(sizes)}' is invalid for input of size {numel}")
        return list(sizes)
    if known == 0:
        raise ShapeError(
            f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if numel % known != 0:
        raise ShapeError(f"shape '{list(sizes)}' is invalid for input of size {numel}")
    return [numel // known if i in unknown else s for i, s in enumerate(sizes)]


def _view_strides(old: list[Any], old_strides: list[Any], new: list[Any]) -> list[Any] | None:
    """Sizes may be symbolic: they are compared only where no other way is left, and what is found is right for all sizes for which the
    comparisons that hold in the example do; where they do not, there is no view."""
    if prod(old) == 0:
        return contiguous_strides(new) if old != new else list(old_strides)
    chunks: list[
        tuple[Any, Any]
    ] = []  # (elements, stride) of runs of dimensions that lie together, innermost first
    for size, stride in zip(reversed(old), reversed(old_strides), strict=True):
        if chunks and (_holds(stride == chunks[-1][0] * chunks[-1][1]) or _holds(size == 1)):
            chunks[-1] = (chunks[-1][0] * size, chunks[-1][1])
        else:
            chunks.append((size, stride))
    if len(chunks) < 2:
        step = chunks[0][1] if chunks else 1
        return [s * step for s in contiguous_strides(new)]
    found = [1] * len(new)
    at = len(new) - 1
    for size, stride in chunks:
        viewed: Any = 1
        while at >= 0 and (
            _fills(viewed * new[at], size) or _likely(viewed < size) or _likely(new[at] == 1)
        ):
            found[at] = viewed * stride
            viewed = viewed * new[at]
            at -= 1
        if not _holds(viewed == size):
            return None
    while at >= 0:
        found[at] = viewed * stride
        at -= 1
    return found


def _likely(condition: Any) -> bool:
    """As in the example."""
    return bool(condition.of_example() if hasattr(condition, "of_example") else condition)


def _holds(condition: Any) -> bool:
    """Whether it holds, which is guarded, or does not in the example."""
    return _likely(condition) and bool(condition)


def _fills(viewed: Any, size: Any) -> bool:
    """Are these equal without a decision?"""
    return (viewed == size) is True


def view_strides(old: list[Any], old_strides: list[Any], new: list[Any]) -> list[Any]:
    found = _view_strides(old, old_strides, new)
    if found is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces): got shape {old} with strides {old_strides}, expected one that can be seen as {new}. "
            "Use .reshape(...) instead."
        )
    return found


def can_view(t: Any, sizes: list[Any]) -> bool:
    return _view_strides(shape(t), strides(t), sizes) is not None


def is_contiguous(t: Any) -> bool:
    expected = contiguous_strides(shape(t))
    if numel(t) == 0:
        return True
    return all(
        _holds(s == 1) or _holds(have == want)
        for s, have, want in zip(shape(t), strides(t), expected, strict=True)
    )


def strided(sizes: list[Any], strides: list[Any], offset: Any) -> Strided:
    return Strided(list(sizes), list(strides), offset)


def _channels_last_order(n: int) -> list[int]:
    """Dimensions from the innermost to the outermost."""
    return [1, *range(n - 1, 1, -1), 0]


def format_strides(sizes: list[Any], format: int) -> list[Any]:
    """Strides of a memory format by PyTorch's number: 0 row-major, 2 channels_last, 3 channels_last_3d."""
    if format == 0:
        return contiguous_strides(sizes)
    n = format + 2
    if len(sizes) != n:
        name = "channels_last" if n == 4 else "channels_last_3d"
        raise RuntimeError(f"required rank {n} tensor to use {name} format, got shape {sizes}")
    found: list[Any] = [1] * n
    step: Any = 1
    for d in _channels_last_order(n):
        found[d] = step
        step = step * sizes[d]
    return found


def has_format(sizes: list[Any], strides: list[Any], format: int) -> bool:
    if len(sizes) != format + 2:
        return False
    return all(
        _holds(s == 1) or _holds(have == want)
        for s, have, want in zip(sizes, strides, format_strides(sizes, format), strict=True)
    )


def _is_one(x: Any) -> bool:
    return type(x) is int and x == 1


def suggested_format(sizes: list[Any], strides: list[Any]) -> int:
    """The format that results take over from a tensor: channels last where its strides rise from C over W, H (and D) to N."""
    n = len(sizes)
    if n not in (4, 5) or strides[1] == 0:
        return 0
    if _is_one(strides[-1]) and not (_is_one(strides[1]) and _is_one(sizes[1])):
        return 0  # as row-major tensors are, without comparing symbols
    least: Any = 0
    for d in _channels_last_order(n):
        if _holds(sizes[d] == 0) or _holds(strides[d] < least):
            return 0
        if d == 0 and _holds(least == strides[1]):
            return 0
        least = strides[d] * sizes[d]
    return n - 2


def common_format(tensors: Any) -> int:
    """The format that all suggest; row-major where they differ."""
    found = {suggested_format(shape(t), strides(t)) for t in tensors}
    return found.pop() if len(found) == 1 else 0


def column_major(sizes: list[Any]) -> Strided:
    """Dense matrices (the last two dimensions) that lie column by column; of one dimension as they are."""
    found = contiguous_strides(sizes)
    if len(sizes) >= 2:
        found[-2:] = [1, max(sizes[-2], 1)]
    return Strided(list(sizes), found, 0)


def transform_strides(
    sizes: list[Any], old_strides: list[Any], dims: list[int], last: bool
) -> list[Any]:
    """Strides of a Fourier transform's result: dimensions left as they are outside, transformed ones inside, either in the
    order of the input's strides; `last` keeps the last of `dims` innermost."""
    outer = [d for d in range(len(sizes)) if d not in dims]
    inner = [d for d in range(len(sizes)) if d in dims and not (last and d == dims[-1])]
    order = [
        d
        for part in (outer, inner)
        for d in sorted(part, key=lambda d: old_strides[d], reverse=True)
    ]
    found: list[Any] = [1] * len(sizes)
    step: Any = 1
    for d in reversed([*order, dims[-1]] if last else order):
        found[d] = step
        step = step * max(sizes[d], 1)
    return found


def clone_shape(sizes: list[Any], old_strides: list[Any], memory_format: int | None) -> Strided:
    if memory_format is not None:
        return Strided(list(sizes), format_strides(sizes, memory_format), 0)
    dense = _is_dense(sizes, old_strides)
    return Strided(
        list(sizes), list(old_strides) if dense else _dense_strides(sizes, old_strides), 0
    )


def _is_dense(sizes: list[Any], old_strides: list[Any]) -> bool:
    if all(map(_fills, old_strides, contiguous_strides(sizes))):
        return True
    expected: Any = 1
    for stride, size in sorted(
        ((st, s) for st, s in zip(old_strides, sizes, strict=True) if s != 1), key=lambda p: p[0]
    ):
        if stride != expected:
            return False
        expected = expected * size
    return True


def _dense_strides(sizes: list[Any], *operands: list[Any]) -> list[Any]:
    """Strides without gaps, with dimensions in their order in memory, as results of pointwise operators on operands of these strides have them."""
    order = list(range(len(sizes)))[::-1]  # innermost first
    for i in range(1, len(order)):
        at = i
        for other in range(i - 1, -1, -1):
            a, b = order[other], order[at]
            outside = _order(sizes, operands, a, b)
            if outside is False:
                break
            if outside:
                order[other], order[at] = b, a
                at = other
    found: list[Any] = [1] * len(sizes)
    step: Any = 1
    for d in order:
        found[d] = step
        step = step * (max(sizes[d], 1) if isinstance(sizes[d], int) else sizes[d])
    return found


def _order(sizes: list[Any], operands: Sequence[list[Any]], a: int, b: int) -> bool | None:
    """Whether dimension a comes outside of b; None where the operands do not say."""
    for strides in operands:
        if _is_zero(strides[a]) or _is_zero(strides[b]):
            continue  # a broadcast dimension stays where it is
        if strides[a] < strides[b]:
            return False
        if strides[a] > strides[b] or sizes[a] > sizes[b]:
            return True
    return None


def row_major(sizes: list[Any]) -> Strided:
    return Strided(sizes, contiguous_strides(sizes), 0)


def _is_zero(x: Any) -> bool:
    return type(x) is int and x == 0


def inverse_permutation(dims: list[int]) -> list[int]:
    found = [0] * len(dims)
    for i, d in enumerate(dims):
        found[wrap_dim(d, len(dims))] = i
    return found


def is_reduced(i: int, dims: list[int] | None, ndim: int) -> bool:
    dims = ints(dims)
    return not dims or any(wrap_dim(d, ndim) == i for d in dims)


def reduced_shape(sizes: list[Any], dims: list[int] | None, keepdim: bool) -> list[Any]:
    dims = ints(dims)
    seen = [wrap_dim(d, len(sizes)) for d in dims or ()]
    if len(set(seen)) != len(seen):
        raise RuntimeError(
            f"dim {next(d for d in seen if seen.count(d) > 1)} appears multiple times in the list of dims"
        )
    found = []
    for i, s in enumerate(sizes):
        if not is_reduced(i, dims, len(sizes)):
            found.append(s)
        elif keepdim:
            found.append(1)
    return found


def full_reduced_shape(sizes: list[Any], keepdim: bool) -> list[Any]:
    return [1] * len(sizes) if keepdim else []


def reduced_count(sizes: list[Any], dims: list[int] | None) -> Any:
    return prod(s for i, s in enumerate(sizes) if is_reduced(i, dims, len(sizes)))


def all_dims(ndim: int) -> list[int]:
    return list(range(ndim))


def cat_shape(tensors: Any, dim: int) -> list[Any]:
    if not tensors:
        raise ValueError("expected a non-empty list of Tensors")
    skipped = [t.ndim == 1 and t.shape[0] == 0 for t in tensors]
    first = next((t for t, skip in zip(tensors, skipped, strict=True) if not skip), None)
    if first is None:
        return shape(tensors[0])
    if first.ndim == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    d = wrap_dim(dim, first.ndim)
    found = shape(first)
    total: Any = 0
    for k, (t, skip) in enumerate(zip(tensors, skipped, strict=True)):
        if skip:
            continue
        if t.ndim != first.ndim:
            raise ShapeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {t.ndim}"
            )
        for i in range(t.ndim):
            if i != d and t.shape[i] != found[i]:
                raise ShapeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {found[i]} but got size "
                    f"{t.shape[i]} for tensor number {k} in the list."
                )
        total = total + t.shape[d]
    found[d] = total
    return found


def index_shape(t: Any, indices: Any) -> Strided:
    """Advanced indexing by integer tensors; the indexed dimensions go in front unless they are adjacent. The result lies as that of a pointwise
    operator on `t`, with a stride of 0 along the indexed dimensions, and then the indices."""
    given = [i for i, x in enumerate(indices) if x is not None]
    if any(indices[i].dtype in (bool_, uint8) for i in given):  # of as many dimensions as it has
        raise DataDependentError("index: a mask's result shape depends on its values")
    if len(indices) > t.ndim:
        raise IndexError(f"too many indices for tensor of dimension {t.ndim}")
    picked: list[Any] = []
    try:
        for i in given:
            picked = broadcast_shapes(picked, shape(indices[i]))
    except ShapeError:
        shapes_given = ", ".join(str(shape(indices[i])) for i in given)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes_given}"
        ) from None
    rest = [i for i in range(t.ndim) if i not in given]
    adjacent = bool(given) and given[-1] - given[0] + 1 == len(given)
    at = given[0] if adjacent else 0
    found = [t.shape[i] for i in rest]
    found[at:at] = picked
    own = [strides(t)[i] for i in rest]
    own[at:at] = [0] * len(picked)
    operands = [own]
    for i in given:
        row: list[Any] = [0] * len(found)
        end = at + len(picked) - indices[i].ndim
        for d, (size, step) in enumerate(zip(shape(indices[i]), strides(indices[i]), strict=True)):
            if not (_is_one(size) and not _is_one(found[end + d])):
                row[end + d] = step
        operands.append(row)
    return Strided(found, _dense_strides(found, *operands), 0)


def view_dtype_shape(sizes: list[Any], old: Any, new: Any) -> list[Any]:
    if old.itemsize == new.itemsize:
        return list(sizes)
    if not sizes:
        raise RuntimeError("self.dim() cannot be 0 to view as a dtype of another size")
    if (sizes[-1] * old.itemsize) % new.itemsize != 0:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {new.itemsize // old.itemsize} to view {old} as {new}, got {sizes[-1]}"
        )
    return [*sizes[:-1], sizes[-1] * old.itemsize // new.itemsize]


def pool2d_shape(
    sizes: list[Any],
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> list[Any]:
    """Of (channels, height, width) or a batch of such; an empty stride is the kernel's size."""
    if len(sizes) not in (3, 4):
        raise ShapeError(f"expected 3D or 4D input, got shape {sizes}")
    found = list(sizes[:-2])
    kernel, padding, dilation = ints(kernel, 2), ints(padding, 2), ints(dilation, 2)
    stride = ints(stride, 2) or kernel
    kernel, padding, dilation, stride = (
        x * 2 if len(x) == 1 else x for x in (kernel, padding, dilation, stride)
    )
    for i in range(2):
        size, step = sizes[len(sizes) - 2 + i], stride[i]
        if min(kernel[i], step, dilation[i]) <= 0:
            raise RuntimeError(
                f"kernel size, stride and dilation should be greater than zero, but got {kernel}, {stride}, {dilation}"
            )
        if not 0 <= padding[i] <= kernel[i] // 2:
            raise RuntimeError(
                f"pad should be at most half of kernel size, but got pad={padding[i]} and kernel_size={kernel[i]}"
            )
        span = size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1
        n = (span + (step - 1 if ceil_mode else 0)) // step + 1
        if ceil_mode and (n - 1) * step >= size + padding[i]:
            n = n - 1
        if n < 1:
            raise ShapeError(f"Given input size {sizes}, calculated output size is too small")
        found.append(n)
    return found


# ---- numbers ---------------------------------------------------------------------------------------------------------


def to_float(s: Any) -> float:
    return s.real if isinstance(s, complex) else float(s)


def to_int(s: Any) -> Any:
    return int(to_float(s)) if isinstance(s, (bool, float, complex)) else s  # symbols stay


def arange_length(start: Any, end: Any, step: Any) -> Any:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    span = end - start
    if (span > 0 and step < 0) or (span < 0 and step > 0):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        if not math.isfinite(span):
            raise RuntimeError(f"unsupported range: {start} -> {end}")
        return math.ceil(span / step)
    return (span + step - (1 if step > 0 else -1)) // step


# ---- tensors ---------------------------------------------------------------------------------------------------------


def is_exact(x: Any) -> bool:
    """Of what pointwise kernels of the CPU do not round to a 16-bit dtype: numbers, and the one element of a tensor."""
    return not is_tensor(x) or (x.device.type == "cpu" and is_one(prod(x.shape)))


def dtype_of(x: Any) -> Any:
    return x.dtype if is_tensor(x) else scalar_dtype(x)


def as_tensor(ops: Any, x: Any) -> Any:
    """An operand where a tensor is needed; a number becomes a 0-d tensor that keeps its precision."""
    if is_tensor(x):
        return x
    wide = (
        complex128
        if isinstance(x, complex)
        else float64
        if isinstance(x, float)
        else scalar_dtype(x)
    )
    return ops.scalar_tensor(x, dtype=wide)


def conj(ops: Any, x: Any) -> Any:
    """The conjugate of an operand; of a number it is one, which does not take part in promotion as a tensor does."""
    if is_tensor(x):
        return ops.conj(x)
    return x.conjugate() if isinstance(x, complex) else x


def same_device(t: Any, device: Any) -> bool:
    if device is None:
        return True
    (wanted, own) = (_c10.device(device), t.device)
    same_index = wanted.index is None or own.index is None or wanted.index == own.index
    return bool(str(wanted.type) == str(own.type) and same_index)


def device_of(t: Any) -> Any:
    return t.device


def item_int(t: Any) -> int:
    return int(t.item())


def holds(t: Any) -> bool:
    """Of one bool; where its value is not known, it is taken to be true."""
    return not isinstance(t, _c10.Tensor) or t.is_meta or bool(t.item())


def is_one(n: Any) -> bool:
    """Without a decision: false of a size that is not known."""
    return type(n) is int and n == 1


def is_on_cpu(t: Any) -> bool:
    """With values: false of what stands for a tensor in a graph."""
    return isinstance(t, _c10.Tensor) and t.device.type == "cpu"


def is_on_cuda(t: Any) -> bool:
    return bool(t.device.type == "cuda")


def attention_is_fused(query: Any, key: Any, value: Any, mask: Any) -> bool:
    """Can the fused kernel take these (batch, heads, length, width) tensors? Else attention is composed of products."""
    q, k, v = query.shape, key.shape, value.shape
    same = query.dtype == key.dtype == value.dtype and is_floating(query.dtype)
    heads = k[1] > 0 and q[1] % k[1] == 0 and k[1] == v[1]
    sizes = q[0] == k[0] and k[0] == v[0] and k[2] == v[2] and q[3] == k[3]
    return bool(
        same
        and heads
        and sizes
        and not (mask is not None and getattr(mask, "requires_grad", False))
    )


def with_geometry(ops: Any, t: Any, sizes: list[Any], strides: list[Any], offset: Any) -> Any:
    """A tensor with these strides and the elements of `t`, in storage that begins with `offset` unused places."""
    span = 1 + sum((s - 1) * st for s, st in zip(sizes, strides, strict=True)) if prod(sizes) else 0
    flat = ops.new_zeros(t, [offset + span])
    found = ops.as_strided(flat, sizes, strides, offset)
    ops.copy_(found, t)
    return found


def grad_or_zeros(ops: Any, grad: Any, result: Any) -> Any:
    """The gradient of a result; zeros when nothing flowed into it."""
    return ops.zeros_like(result) if grad is None else grad


# ---- shapes and dtypes by kind -----------------------------------------------------------------------------------------


def pointwise_shape(name: str, *operands: Any) -> list[Any]:
    found: list[Any] = []
    for x in operands:
        if x is not None and is_tensor(x):
            try:
                found = broadcast_shapes(found, shape(x))
            except ShapeError as e:
                raise ShapeError(f"{name}: {e}") from None
    return found


def check_condition(name: str, condition: Any, bytes_too: bool = False) -> None:
    if not is_tensor(condition) or not (
        condition.dtype == bool_ or (bytes_too and condition.dtype == uint8)
    ):
        got = condition.dtype.name if is_tensor(condition) else "of a number"
        raise DTypeError(
            f"{name}: expected condition to be a boolean tensor, but got a tensor with dtype {got}; compare it with 0 first"
        )
