"""The spectrum of real signals from its half."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel

SIGN = tl.constexpr(-(1 << 63))


@triton.jit
def fourier_mirror(out, half, n0, n1, n, kept, tiles, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows (..., n0, n1) of n complex numbers: the first `kept` lie in `half`, others are the conjugates of what lies opposite. A program takes a tile of a row.

    A number has PARTS words of 64 bits; the sign of its imaginary part is that of the last one.
    """
    row = (tl.program_id(0) // tiles).to(tl.int64)
    word = (tl.program_id(0) % tiles) * BLOCK + tl.arange(0, BLOCK)
    k = word // PARTS
    part = word % PARTS
    i1 = row % n1
    i0 = (row // n1) % n0
    opposite = row - i0 * n1 - i1 + (n0 - i0) % n0 * n1 + (n1 - i1) % n1
    beyond = k >= kept
    at = tl.where(beyond, opposite * kept + (n - k), row * kept + k) * PARTS + part
    inside = word < n * PARTS
    value = tl.load(half + at, mask=inside, other=0)
    value ^= tl.where(beyond & (part == PARTS - 1), SIGN, 0).to(tl.int64)
    tl.store(out + row * (n * PARTS) + word, value, mask=inside)


KERNELS = [
    Kernel(
        fourier_mirror,
        {"out": "*i64", "half": "*i64", **dict.fromkeys("n0 n1 n kept tiles".split(), "i32")},
        constants={"PARTS": [1, 2], "BLOCK": [1024, 64]},
        wheel=lambda v: v["PARTS"] == 1,
    ),
]
