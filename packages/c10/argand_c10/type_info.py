"""`finfo` and `iinfo`: the limits of dtypes."""

from __future__ import annotations

from argand_c10 import _C
from argand_c10._C import dtype as DType

__all__ = ["finfo", "iinfo"]

# (mantissa bits without the leading one, least exponent, greatest exponent, decimal digits)
_FLOATS = {
    "float16": (10, -14, 15, 3),
    "bfloat16": (7, -126, 127, 2),
    "float32": (23, -126, 127, 6),
    "float64": (52, -1022, 1023, 15),
    "float8_e4m3fn": (3, -6, 8, 0),
    "float8_e5m2": (2, -14, 15, 0),
}
_INTEGERS = {
    f"{'' if signed else 'u'}int{bits}": (bits, signed)
    for bits in (8, 16, 32, 64)
    for signed in (True, False)
}


class finfo:
    """The limits of a floating-point dtype; of a complex one those of its parts.

    Args:
        type: the dtype; the default one if it is left out.

    Raises:
        TypeError: if the dtype is not floating or complex.
    """

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str

    def __init__(self, type: DType | type[float] | type[complex] | None = None) -> None:
        if type is None:
            type = _C.get_default_dtype()
        if type is float or type is complex:
            type = _C.promote_types(type, type)
        if not isinstance(type, DType) or not (type.is_floating_point or type.is_complex):
            raise TypeError(
                f"finfo(): got {type!r}, expected a floating-point dtype; use iinfo for integers"
            )
        self.dtype = type.to_real().name
        mantissa, least, greatest, digits = _FLOATS[self.dtype]
        self.bits = type.to_real().itemsize * 8
        self.eps = 2.0**-mantissa
        highest = (
            1.75 if self.dtype == "float8_e4m3fn" else 2.0 - self.eps
        )  # its last number is NaN
        self.max = highest * 2.0**greatest
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**least
        self.resolution = float(f"1e-{digits}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(("finfo", self.dtype))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype.

    Raises:
        TypeError: if the dtype is not an integer one.
    """

    bits: int
    max: int
    min: int
    dtype: str

    def __init__(self, type: DType) -> None:
        if not isinstance(type, DType) or type.name not in _INTEGERS:
            raise TypeError(
                f"iinfo(): got {type!r}, expected an integer dtype; use finfo for floats"
            )
        self.dtype = type.name
        self.bits, signed = _INTEGERS[self.dtype]
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(("iinfo", self.dtype))

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
