"""Comparing tensors in tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# (rtol, atol) by dtype name; other dtypes must be equal.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}

Message = str | Callable[[str], str] | None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Assert |actual - expected| <= atol + rtol * |expected| everywhere.

    Args:
        actual: a tensor, a NumPy array or scalar, a number, or sequences and mappings of those.
        expected: the same kind of thing.
        allow_subclasses: whether tensor types may differ.
        rtol: relative tolerance; together with `atol`, by dtype if None.
        atol: absolute tolerance.
        equal_nan: whether NaN equals NaN.
        check_device: whether devices must be equal.
        check_dtype: whether dtypes must be equal.
        check_layout: whether layouts must be equal.
        check_stride: whether strides must be equal.
        msg: the message, or a function of the usual message.

    Raises:
        AssertionError: if they are not close.
        ValueError: if only one of rtol and atol is given.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"assert_close: got rtol={rtol} and atol={atol}, expected both or neither")
    checks = {
        "type": not allow_subclasses,
        "device": check_device,
        "dtype": check_dtype,
        "layout": check_layout,
        "stride": check_stride,
    }
    problem = _compare(actual, expected, rtol, atol, equal_nan, checks, "")
    if problem is None:
        return
    if callable(msg):
        problem = msg(problem)
    elif msg is not None:
        problem = msg
    raise AssertionError(problem)


def _compare(
    actual: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    checks: dict[str, bool],
    place: str,
) -> str | None:
    """What is wrong, or None; `place` leads from the outermost container to these values."""
    where = f" (at {place})" if place else ""
    rest = (rtol, atol, equal_nan, checks)
    if _is_array(actual) and _is_array(expected):
        actual, expected = aten.as_tensor(actual), aten.as_tensor(expected)
    if _are_tensors(actual, expected, checks["type"]):
        return _compare_tensors(actual, expected, *rest, where)
    if _is_number(actual) and _is_number(expected):
        if checks["dtype"] and type(actual) is not type(expected):
            return f"The (d)types differ{where}: {type(actual)} != {type(expected)}"
        checks = {**checks, "dtype": False}
        return _compare_tensors(
            _number(actual), _number(expected), rtol, atol, equal_nan, checks, where
        )
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            missing = sorted(map(str, set(expected) - set(actual)))
            extra = sorted(map(str, set(actual) - set(expected)))
            return f"The keys of the mappings differ{where}: missing {missing}, unexpected {extra}"
        for key in expected:
            problem = _compare(actual[key], expected[key], *rest, f"{place}[{key!r}]")
            if problem is not None:
                return problem
        return None
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The lengths of the sequences differ{where}: {len(actual)} != {len(expected)}"
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            problem = _compare(a, e, *rest, f"{place}[{i}]")
            if problem is not None:
                return problem
        return None
    if actual is None and expected is None:
        return None
    raise TypeError(
        f"assert_close: got {type(actual).__name__} and {type(expected).__name__}{where}, expected "
        "tensors, arrays, numbers, or sequences or mappings of those"
    )


def _are_tensors(actual: Any, expected: Any, same_type: bool) -> bool:
    """Whether both are tensors of one class, or of a class and a subclass of it."""
    if not (isinstance(actual, Tensor) and isinstance(expected, Tensor)):
        return False
    a, e = type(actual), type(expected)
    return a is e or (not same_type and (issubclass(a, e) or issubclass(e, a)))


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and not _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _number(value: complex) -> Tensor:
    if isinstance(value, bool):
        return aten.tensor(value)
    if isinstance(value, int):
        return aten.tensor(value, dtype=c10.int64)
    dtype = c10.complex128 if isinstance(value, complex) else c10.float64
    return aten.tensor(value, dtype=dtype)


def _dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _compare_tensors(
    actual: Tensor,
    expected: Tensor,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    checks: dict[str, bool],
    where: str,
) -> str | None:
    if tuple(actual.shape) != tuple(expected.shape):
        return f"The shapes differ{where}: {list(actual.shape)} != {list(expected.shape)}"
    facts = {
        "device": (actual.device, expected.device),
        "dtype": (actual.dtype, expected.dtype),
        "layout": (actual.layout, expected.layout),
        "stride": (tuple(actual.stride()), tuple(expected.stride())),
    }
    for name, (a, e) in facts.items():
        if checks[name] and a != e:
            return f"The values of {name} differ{where}: {a} != {e}"
    if rtol is None or atol is None:
        pairs = [_TOLERANCES.get(_dtype_name(t), (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(p[0] for p in pairs), max(p[1] for p in pairs)
    if actual.layout is not expected.layout:
        actual, expected = actual.to_dense(), expected.to_dense()
    if actual.is_sparse:
        return _compare_sparse(actual, expected, rtol, atol, equal_nan, where)
    return _compare_values(actual, expected, rtol, atol, equal_nan, where)


def _values(tensor: Tensor) -> Any:
    """The elements in the widest NumPy dtype of their kind."""
    tensor = tensor.detach()
    if tensor.is_complex():
        return tensor.to(c10.complex128).numpy()
    if tensor.is_floating_point():
        return tensor.to(c10.float64).numpy()
    return tensor.numpy()


def _compare_sparse(
    actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool, where: str
) -> str | None:
    """Of tensors in coordinates the lists of elements, doubles included."""
    counts = actual._nnz(), expected._nnz()
    if counts[0] != counts[1]:
        return (
            f"The numbers of elements of sparse tensors differ{where}: {counts[0]} != {counts[1]}"
        )
    at = actual._indices(), expected._indices()
    return _compare_values(*at, 0.0, 0.0, False, f"{where} (coordinates)") or _compare_values(
        actual._values(), expected._values(), rtol, atol, equal_nan, f"{where} (values)"
    )


def _compare_values(
    actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool, where: str
) -> str | None:
    a, e = _values(actual), _values(expected)
    if (a.dtype.kind in "fc") != (e.dtype.kind in "fc") or a.dtype.kind == "b":
        a, e = a.astype(np.float64), e.astype(np.float64)
    with np.errstate(all="ignore"):
        if a.dtype.kind in "iu":
            # Exact where float64 is not: differences of wide integers are taken as Python ints.
            wide = a.astype(object) - e.astype(object)
            difference = np.abs(wide).astype(np.float64)
        else:
            difference = np.abs(a - e)
        magnitude = np.abs(e.astype(np.float64) if e.dtype.kind in "iub" else e)
        equal = a == e
        if equal_nan:
            equal |= np.isnan(a) & np.isnan(e)
        close = equal | (np.isfinite(difference) & (difference <= atol + rtol * magnitude))
        if bool(close.all()):
            return None
        relative = np.where(equal, 0.0, difference / magnitude)
        difference = np.where(close, 0.0, difference)
        relative = np.where(close, 0.0, relative)
    wrong = int((~close).sum())
    if close.ndim == 0:
        return (
            f"Scalars are not close{where}!\n\nExpected {e.item()} but got {a.item()}.\n"
            f"Absolute difference: {float(difference):.6g} (up to {atol:g} allowed)\n"
            f"Relative difference: {float(relative):.6g} (up to {rtol:g} allowed)"
        )
    at_absolute = _place_of_greatest(difference)
    at_relative = _place_of_greatest(relative)
    return (
        f"Tensors are not close{where}!\n\n"
        f"Mismatched elements: {wrong} / {close.size} ({100 * wrong / close.size:.1f}%)\n"
        f"Greatest absolute difference: {float(difference[at_absolute]):.6g} at index {at_absolute} "
        f"(up to {atol:g} allowed)\n"
        f"Greatest relative difference: {float(relative[at_relative]):.6g} at index {at_relative} "
        f"(up to {rtol:g} allowed)"
    )


def _place_of_greatest(values: Any) -> tuple[int, ...]:
    """Index of the greatest value; NaN is greater than all."""
    flat = np.where(np.isnan(values), np.inf, values).argmax()
    return tuple(int(i) for i in np.unravel_index(flat, values.shape))


def make_tensor(
    *shape: Any,
    dtype: c10.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random values from [low, high), by default from -9 to 9 (bool: both; unsigned: from 0).

    Args:
        shape: the sizes, one by one or as one sequence.
        dtype: of the values; complex ones have such parts.
        device: where it lies.
        low: the least value.
        high: above the greatest value.
        requires_grad: whether it collects a gradient.
        noncontiguous: leave a gap between elements, where there is more than one.
        exclude_zero: zeros become the smallest number that the dtype tells from zero.
        memory_format: contiguous_format or channels_last.

    Raises:
        ValueError: when low is not below high, or for a memory format of a tensor that is to have gaps.
    """
    sizes = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "make_tensor: got noncontiguous and a memory format, expected one of the two"
        )
    whole = not dtype.is_floating_point and not dtype.is_complex
    least: float
    limit: float
    if dtype == c10.bool:
        least, limit = 0, 2
    else:
        least = (-9 if dtype.is_signed else 0) if low is None else low
        limit = (10 if whole else 9) if high is None else high
    if least >= limit:
        raise ValueError(f"make_tensor: got low={least} and high={limit}, expected low below high")
    if whole:
        made = aten.randint(int(least), int(limit), sizes, dtype=dtype, device=device)
    else:
        parts = [
            aten.rand(sizes, dtype=dtype.to_real(), device=device) * (limit - least) + least
            for _ in range(2 if dtype.is_complex else 1)
        ]
        made = aten.complex(*parts) if dtype.is_complex else parts[0]
    if exclude_zero:
        smallest = 1 if whole else c10.finfo(dtype).tiny
        made = aten.where(made == 0, aten.full([], smallest, dtype=dtype, device=device), made)
    if noncontiguous and made.numel() > 1:
        made = aten.repeat_interleave(made, 2, -1)[..., ::2]
    elif memory_format in (c10.channels_last, c10.channels_last_3d):
        made = aten.movedim(aten.movedim(made, 1, -1).contiguous(), -1, 1)
    return made.requires_grad_() if requires_grad else made


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: Message = "",
) -> None:
    """`assert_close` under its old name, which compares no dtypes and warns."""
    warnings.warn(
        "testing.assert_allclose is deprecated; use assert_close", FutureWarning, stacklevel=2
    )
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )
