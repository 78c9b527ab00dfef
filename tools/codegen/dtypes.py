"""Dtypes as the registry names them: the ABI's order, named sets, and PyTorch's promotion between tensors' dtypes."""

from __future__ import annotations

from collections.abc import Iterable

WIDE_UNSIGNED = ("uint16", "uint32", "uint64")

# In the order of the ABI's `ArgandDType`.
_ABI = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "float8_e4m3fn", "float8_e5m2", *WIDE_UNSIGNED,
)  # fmt: skip
DTYPES = tuple(d for d in _ABI if not d.startswith("float8"))  # those of computations

BOOLEAN = ("bool",)
INTEGRAL = ("uint8", "int8", "int16", "int32", "int64", *WIDE_UNSIGNED)
FLOATING = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")

# Names that `dtypes:` understands besides single dtypes.
DTYPE_SETS: dict[str, tuple[str, ...]] = {
    "all": DTYPES,
    "boolean": BOOLEAN,
    "integral": INTEGRAL,
    "floating": FLOATING,
    "complex": COMPLEX,
    "numeric": INTEGRAL + FLOATING + COMPLEX,
    "real": INTEGRAL + FLOATING,
    "ordered": BOOLEAN + INTEGRAL + FLOATING,
    "integral_boolean": BOOLEAN + INTEGRAL,
    "floating_complex": FLOATING + COMPLEX,
}


def expand(names: list[str]) -> tuple[str, ...]:
    """The dtypes of a list of dtypes and set names, in the ABI's order."""
    chosen: set[str] = set()
    for name in names:
        chosen.update(DTYPE_SETS.get(name, (name,)))
    return tuple(d for d in DTYPES if d in chosen)


def mask(found: Iterable[str]) -> str:
    """A set of dtypes as C reads it: bit d stands for the dtype d of the ABI."""
    return hex(sum(1 << _ABI.index(d) for d in found))


def enum(dtype: str) -> str:
    """The C name of a dtype: float32 -> ARGAND_FLOAT32."""
    return "ARGAND_" + dtype.upper()


def real_dtype(dtype: str) -> str:
    """Of the parts of a complex dtype; real ones are their own."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def is_differentiable(dtype: str) -> bool:
    return dtype in FLOATING or dtype in COMPLEX


def category(dtype: str) -> int:
    """0 bool, 1 integral, 2 floating, 3 complex: a number only changes a tensor's dtype to a higher category."""
    if dtype in BOOLEAN:
        return 0
    if dtype in INTEGRAL:
        return 1
    return 2 if dtype in FLOATING else 3


def promote_integers(a: str, b: str) -> str:
    """The narrowest integer dtype that holds both.

    Raises:
      ValueError: for uint64 and a signed one.
    """
    unsigned, signed = sorted((a, b), key=lambda d: not d.startswith("u"))
    bits = max(int(d.lstrip("uint")) for d in (a, b))
    if a.startswith("u") == b.startswith("u"):
        return f"{'u' * a.startswith('u')}int{bits}"
    needed = max(int(signed.lstrip("int")), 2 * int(unsigned.lstrip("uint")))
    if needed > 64:
        raise ValueError(f"got {a} and {b}, expected integers that one dtype holds both of")
    return f"int{needed}"


def promote_types(a: str, b: str) -> str:
    """The smallest dtype that holds both."""
    if a == b:
        return a
    if category(a) != category(b):
        low, high = (a, b) if category(a) < category(b) else (b, a)
        if high == "complex64" and low == "float64":
            return "complex128"
        return high
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if category(a) == 1:
        return promote_integers(a, b)
    return a if DTYPES.index(a) > DTYPES.index(b) else b
