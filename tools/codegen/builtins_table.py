"""The built-in functions of the body language, with their types.

In C++ they are in packages/aten/csrc/core/builtins.h, in Python in runtime/language.py (emitted beside the generated
modules), under the same names. A new one is a line here and a function there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tools.codegen.body import LType, list_of


@dataclass(frozen=True)
class BuiltinFunction:
    name: str
    args: tuple[LType, ...]
    result: LType


_TEXT: Final = """
wrap_dim(int, int) -> int
broadcast_shapes(int[], int[]) -> int[]
contiguous_strides(int[]) -> int[]
infer_size(int[], int) -> int[]
view_strides(int[], int[], int[]) -> int[]
can_view(Tensor, int[]) -> bool
is_contiguous(Tensor) -> bool
inverse_permutation(int[]) -> int[]
is_reduced(int, int[]?, int) -> bool
reduced_shape(int[], int[]?, bool) -> int[]
full_reduced_shape(int[], bool) -> int[]
reduced_count(int[], int[]?) -> int
all_dims(int) -> int[]
cat_shape(Tensor[], int) -> int[]
cat_dtype(Tensor[]) -> dtype
index_shape(Tensor, Tensor?[]) -> strided
clone_shape(int[], int[], int?) -> strided
column_major(int[]) -> strided
format_strides(int[], int) -> int[]
has_format(int[], int[], int) -> bool
suggested_format(int[], int[]) -> int
common_format(Tensor[]) -> int
transform_strides(int[], int[], int[], bool) -> int[]
strided(int[], int[], int) -> strided
view_dtype_shape(int[], dtype, dtype) -> int[]
to_float(Scalar) -> float
to_int(Scalar) -> int
is_tensor(Operand) -> bool
is_exact(Operand) -> bool
fits(dtype, Operand) -> bool
dtype_of(Operand) -> dtype
is_complex(dtype) -> bool
is_floating(dtype) -> bool
is_integral(dtype) -> bool
real_dtype(dtype) -> dtype
complex_dtype(dtype) -> dtype
accumulate_dtype(dtype) -> dtype
truth_dtype(dtype) -> dtype
default_dtype() -> dtype
promote_types(dtype, dtype) -> dtype
scalar_dtype(Scalar) -> dtype
finfo_max(dtype) -> float
finfo_min(dtype) -> float
finfo_eps(dtype) -> float
sqrt_float(float) -> float
item_int(Tensor) -> int
holds(Tensor) -> bool
is_on_cpu(Tensor) -> bool
is_on_cuda(Tensor) -> bool
is_one(int) -> bool
pool2d_shape(int[], int[], int[], int[], int[], bool) -> int[]
with_geometry(Tensor, int[], int[], int) -> Tensor
same_device(Tensor, device?) -> bool
device_of(Tensor) -> device?
arange_length(Scalar, Scalar, Scalar) -> int
arange_dtype(Scalar, Scalar, Scalar) -> dtype
accumulate_float_dtype(dtype) -> dtype
attention_is_fused(Tensor, Tensor, Tensor, Tensor?) -> bool
"""

_BASES: Final = {
    "device",
    "dtype",
    "Tensor",
    "Operand",
    "Scalar",
    "int",
    "float",
    "bool",
    "str",
    "strided",
    "generator",
}


def parse_type(text: str) -> LType:
    """int, int[], int[]?, Tensor?[] ..."""
    if text.endswith("?"):
        return parse_type(text[:-1]).maybe()
    if text.endswith("[]"):
        return list_of(parse_type(text[:-2]))
    assert text in _BASES, text
    return LType(text)


def _read() -> dict[str, BuiltinFunction]:
    found = {}
    for line in _TEXT.strip().splitlines():
        head, result = line.split(" -> ")
        name, args = head.rstrip(")").split("(")
        types = tuple(parse_type(a.strip()) for a in args.split(",") if a.strip())
        found[name] = BuiltinFunction(name, types, parse_type(result.strip()))
    return found


BUILTINS: Final[dict[str, BuiltinFunction]] = _read()

# Functions of numbers, as their namesakes in <cmath> and Python's math: int or float -> float.
MATH: Final = frozenset(
    {"sqrt", "exp", "log", "log2", "log1p", "sin", "cos", "tanh", "erf", "erfc"}
)
