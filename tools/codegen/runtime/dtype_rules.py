"""What the registry language's built-ins know of dtypes and of numbers' dtypes; emitted beside language.py, which gives these names on."""

from __future__ import annotations

import math
from typing import Any

import argand_c10 as _c10

bool_, uint8, int8 = _c10.bool, _c10.uint8, _c10.int8
int16, int32, int64 = _c10.int16, _c10.int32, _c10.int64
uint16, uint32, uint64 = _c10.uint16, _c10.uint32, _c10.uint64
float16, bfloat16, float32, float64 = _c10.float16, _c10.bfloat16, _c10.float32, _c10.float64
complex64, complex128 = _c10.complex64, _c10.complex128
float8_e4m3fn, float8_e5m2 = _c10.float8_e4m3fn, _c10.float8_e5m2

DTypeError = _c10.errors.DTypeError

_INTEGRAL = (uint8, int8, int16, int32, int64, uint16, uint32, uint64)
_FLOATING = (float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2)
_COMPLEX = (complex64, complex128)


def category(dtype: Any) -> int:
    """0 for bools, 1 integers, 2 floating-point numbers, 3 complex ones."""
    return 3 if dtype in _COMPLEX else 2 if dtype in _FLOATING else 1 if dtype in _INTEGRAL else 0


def is_complex(dtype: Any) -> bool:
    return dtype in _COMPLEX


def is_floating(dtype: Any) -> bool:
    return dtype in _FLOATING


def is_integral(dtype: Any) -> bool:
    return dtype in _INTEGRAL


def real_dtype(dtype: Any) -> Any:
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_dtype(dtype: Any) -> Any:
    return complex128 if dtype in (float64, complex128) else complex64


def accumulate_dtype(dtype: Any) -> Any:
    return int64 if dtype == bool_ or dtype in _INTEGRAL else dtype


def truth_dtype(dtype: Any) -> Any:
    return dtype if dtype == uint8 else bool_


def accumulate_float_dtype(dtype: Any) -> Any:
    return float32 if dtype in (float16, bfloat16) else dtype


def default_dtype() -> Any:
    return _c10.get_default_dtype()


def promote_types(a: Any, b: Any) -> Any:
    return _c10.promote_types(a, b)


def scalar_dtype(s: Any) -> Any:
    if isinstance(s, float):
        return default_dtype()
    if isinstance(s, bool):
        return bool_
    return (
        complex_dtype(default_dtype()) if isinstance(s, complex) else int64
    )  # also symbolic integers


def fits(dtype: Any, number: Any) -> bool:
    """Whether an element can hold a number, as number.h has it; what is no known number may."""
    if not isinstance(number, (int, float, complex)) or dtype == bool_:
        return True
    if dtype not in _FLOATING and dtype not in _COMPLEX:
        ends = _c10.iinfo(dtype)
        if isinstance(number, int):
            return bool((ends.min or -ends.max) <= number <= ends.max)
        return bool(ends.min <= number.real <= ends.max)
    if dtype in (float64, complex128) or dtype.itemsize == 1:
        return True
    most = _c10.finfo(dtype).max
    return all(not abs(x) > most or math.isinf(x) for x in (number.real, number.imag))


def _promoted(known: Any, dtype: Any) -> Any:
    return dtype if known is None or known is dtype else _c10.promote_types(known, dtype)


def _combined(higher: Any, lower: Any) -> Any:
    """Tensors with dimensions decide, then 0-d tensors, then numbers: lower ones matter only by being of a higher kind."""
    if higher is None:
        return lower
    if lower is None or higher in _COMPLEX:
        return higher
    if higher in _FLOATING:
        return complex_dtype(higher) if lower in _COMPLEX else higher
    if higher == bool_ or lower in _FLOATING or lower in _COMPLEX:
        return _c10.promote_types(higher, lower)
    return higher


def result_type(operands: Any) -> Any:
    """As argand_c10.result_type, for whatever stands for tensors and numbers."""
    dim: Any = None
    zero: Any = None
    number: Any = None
    large = False  # an int that only uint64 holds is among the numbers
    for x in operands:
        dtype = getattr(x, "dtype", None)
        if dtype is None:
            number = _promoted(number, scalar_dtype(x))
            large = large or (type(x) is int and x >= 2**63)
        elif x.ndim:
            dim = _promoted(dim, dtype)
        else:
            zero = _promoted(zero, dtype)
    if zero is None and number is None:
        return dim
    found = _combined(dim, _combined(zero, number))
    return uint64 if large and found is int64 and _combined(dim, zero) in (None, bool_) else found


def arange_dtype(start: Any, end: Any, step: Any) -> Any:
    return default_dtype() if any(isinstance(x, float) for x in (start, end, step)) else int64


def cat_dtype(tensors: Any) -> Any:
    return result_type(tensors) if tensors else float32


def finfo_max(dtype: Any) -> float:
    return float(_c10.finfo(dtype if dtype in _FLOATING else float64).max)


def finfo_min(dtype: Any) -> float:
    return -finfo_max(dtype)


def finfo_eps(dtype: Any) -> float:
    return float(_c10.finfo(dtype).eps)


# ---- results of pointwise operators ------------------------------------------------------------------------------------


def is_tensor(x: Any) -> bool:
    return hasattr(x, "shape")


def has_imaginary_part(x: Any) -> bool:
    """Whether it is a complex number that cannot stand for a real one."""
    return isinstance(x, complex) and x.imag != 0


def _computation_dtype(promote: str, name: str, given: list[Any]) -> Any:
    if promote == "self" and is_tensor(given[0]):
        dtype = given[0].dtype
        for x in given[1:]:
            found = is_complex(x.dtype) if is_tensor(x) else has_imaginary_part(x)
            if found and not is_complex(dtype):
                raise RuntimeError(
                    f"{name}: value cannot be converted to type {dtype.name} without overflow; expected a real value, or convert self first"
                )
        return dtype
    if promote == "none":
        tensors = [x for x in given if is_tensor(x)]
        for i, x in enumerate(given):
            if is_tensor(x) and x.dtype != tensors[0].dtype and (i < 2 or x.ndim > 0):
                raise DTypeError(
                    f"{name}: got tensors of dtypes {tensors[0].dtype.name} and {x.dtype.name}, expected one dtype"
                )
        dtype = result_type(tensors) if tensors else float32
        if any(has_imaginary_part(x) for x in given) and not is_complex(dtype):
            raise RuntimeError(
                f"{name}: got a complex number with tensors of {dtype.name}, expected a real one; convert the tensors first"
            )
        return dtype
    if promote == "numbers" and any(
        x.dtype == bool_ if is_tensor(x) else x is True or x is False for x in given
    ):
        raise DTypeError(
            f"{name}: got a bool, expected numbers; use ~ or logical_xor, or convert it first"
        )
    dtype = result_type(given)
    return (
        default_dtype() if promote == "float" and (is_integral(dtype) or dtype == bool_) else dtype
    )


def _check_numbers(name: str, dtype: Any, rule: str, given: Any, scalars: Any, chosen: Any) -> None:
    """As pointwise_rules.h has it."""
    computed = accumulate_float_dtype(dtype)
    if rule == "kExponent" and category(dtype) == 1:
        if type(given[-1]) is int and given[-1] < 0:
            raise RuntimeError(
                f"{name}: got the exponent {given[-1]} for integers, expected none that is negative; convert the tensor to a floating-point dtype first"
            )
        chosen = given[1:] if type(given[-1]) is int else ()
    if rule == "kChosen" or (rule == "kChosenWide" and computed is dtype):
        chosen = (*chosen, *given)
    if rule == "kComputed":
        scalars = given
    if not all(fits(dtype, x) for x in chosen) or not all(fits(computed, x) for x in scalars):
        raise RuntimeError(
            f"{name}: value cannot be converted to type {dtype.name} without overflow"
        )


def pointwise_dtype(
    promote: str,
    result: Any,
    *operands: Any,
    name: str = "",
    dtypes: tuple[str, ...] = (),
    numbers: tuple[Any, ...] = (),
    factor: Any = 1,
    scalars: tuple[Any, ...] = (),
    chosen: tuple[Any, ...] = (),
    rule: str = "",
) -> Any:
    """The dtype of a pointwise operator's result: `result` if given ("real": of complex numbers' parts), else that of the computation, one of
    `dtypes`. `numbers` that scale operands are of its category or a lower one; a `factor` is only not complex where the computation is not.
    `scalars` fit the dtype that elements are computed in, `chosen` ones that of elements; `rule` is asked of numbers among the operands."""
    given = [x for x in operands if x is not None]
    dtype = _computation_dtype(promote, name, given)
    if dtypes and dtype.name not in dtypes:
        raise NotImplementedError(
            f"{name}: not implemented for dtype {dtype.name}; expected one of {', '.join(dtypes)}"
        )
    for x in numbers:
        if (
            category(scalar_dtype(x)) > max(category(dtype), 1)
            or (x is True or x is False)
            and dtype != bool_
        ):
            raise RuntimeError(
                f"{name}: got alpha={x}, expected a number of the result's kind, {dtype.name}; convert the tensors first"
            )
    _check_numbers(name, dtype, rule, given, scalars, (*chosen, *numbers))
    if has_imaginary_part(factor) and not is_complex(dtype):
        raise RuntimeError(
            f"{name}: got a complex number with tensors of {dtype.name}, expected a real one; convert the tensors first"
        )
    if result == "real":
        return real_dtype(dtype)
    return dtype if result is None else result
