"""Products that NVIDIA's libraries do not have, or compute slowly.

Of integer matrices, modulo 2 to the bits of their dtype; and of few rows in float32, for which cuBLASLt's first choice takes up to ten times as long.
"""

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


@triton.jit
def rows_product(
    out, a, b, bias, m, n, k, a_row, b_line, has_bias,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr, TURNED: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """out = a @ b + bias (where has_bias is 1) of m <= ROWS dense rows, a program BLOCK columns; lines of b are its rows, or, TURNED, its columns."""
    row = tl.arange(0, ROWS)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < n
    total = tl.zeros([ROWS, BLOCK, DEPTH], tl.float32)
    for first in range(0, k, DEPTH):
        inner = first + tl.arange(0, DEPTH)
        live = inner < k
        left = tl.load(
            a + row[:, None] * a_row + inner[None, :],
            mask=(row < m)[:, None] & live[None, :],
            other=0.0,
        )
        if TURNED:
            at = column[:, None] * b_line + inner[None, :]
        else:
            at = inner[None, :] * b_line + column[:, None]
        right = tl.load(b + at, mask=inside[:, None] & live[None, :], other=0.0)
        total += left[:, None, :] * right[None, :, :]
    result = tl.sum(total, 2)
    result += tl.load(bias + column, mask=inside & (has_bias != 0), other=0.0)[None, :]
    tl.store(
        out + row[:, None] * n + column[None, :], result, mask=(row < m)[:, None] & inside[None, :]
    )


KERNELS = [
    Kernel(
        rows_product,
        {
            **dict.fromkeys("out a b bias".split(), "*float32"),
            **dict.fromkeys("m n k a_row b_line has_bias".split(), "i32"),
        },
        {},
        {"ROWS": [1, 8, 16, 32, 64], "BLOCK": [4, 8], "DEPTH": [32, 64], "TURNED": [True, False], "ALIGNED": [True, False]},
        fp_fusion=True,
        divisible=lambda v: ("a", "b", "out", "a_row", "b_line", "k") if v["ALIGNED"] else (),
        wheel=lambda v: (v["DEPTH"] == 64) == (v["ROWS"] <= 8) and (v["ROWS"] > 8 or v["BLOCK"] == 4),
    ),
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
