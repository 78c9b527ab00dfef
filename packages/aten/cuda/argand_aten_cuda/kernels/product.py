"""Products of integer matrices, modulo 2 to the bits of their dtype: NVIDIA's libraries have none."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel


@triton.jit
def integer_product(
    out, a, b, c, m, n, k, a_batch, a_row, a_column, b_batch, b_row, b_column, c_batch, c_row, c_column, alpha, beta,
    BLOCK: tl.constexpr, DEPTH: tl.constexpr, ADD: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """out[i] = alpha * a[i] @ b[i], plus beta * c[i] where ADD; `out` is dense, the others have any strides.

    A program computes BLOCK x BLOCK elements, from DEPTH columns of a at a time.
    """
    down, across = tl.cdiv(m, BLOCK), tl.cdiv(n, BLOCK)
    program = tl.program_id(0).to(tl.int64)
    batch = program // (down * across)
    rows = (program // across % down) * BLOCK + tl.arange(0, BLOCK)
    columns = (program % across) * BLOCK + tl.arange(0, BLOCK)
    a += batch * a_batch
    b += batch * b_batch
    total = tl.zeros((BLOCK, BLOCK), ACC)
    for first in range(0, k, DEPTH):
        inner = first + tl.arange(0, DEPTH)
        left = tl.load(
            a + rows[:, None] * a_row + inner[None, :] * a_column,
            mask=(rows < m)[:, None] & (inner < k)[None, :],
            other=0,
        )
        right = tl.load(
            b + inner[:, None] * b_row + columns[None, :] * b_column,
            mask=(inner < k)[:, None] & (columns < n)[None, :],
            other=0,
        )
        total += tl.sum(left.to(ACC)[:, :, None] * right.to(ACC)[None, :, :], 1)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    total *= alpha.to(ACC)
    if ADD:
        added = tl.load(
            c + batch * c_batch + rows[:, None] * c_row + columns[None, :] * c_column,
            mask=inside,
            other=0,
        )
        total += added.to(ACC) * beta.to(ACC)
    at = batch * m * n + rows[:, None] * n + columns[None, :]
    tl.store(out + at, total.to(out.dtype.element_ty), mask=inside)


KERNELS = [
    Kernel(
        integer_product,
        {
            "out": "*T", "a": "*T", "b": "*T", "c": "*T",
            **dict.fromkeys("m n k a_batch a_row a_column b_batch b_row b_column c_batch c_row c_column alpha beta".split(), "i64"),
            "ACC": "!A",
        },
        {"T": ("uint8", "int8", "int16", "int32", "int64")},
        {"BLOCK": [32], "DEPTH": [8], "ADD": [False, True]},
        derived=lambda v: {"A": "int64" if v["T"] == "int64" else "int32"},
        wheel=lambda v: False,
    ),
]  # fmt: skip
