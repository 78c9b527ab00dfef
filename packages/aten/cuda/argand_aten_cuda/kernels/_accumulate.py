"""What the kernels of rows share: the type they compute in, sums of partial results, and reports of bad indices."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel


@triton.jit
def widen(x):
    """float64 stays; every other floating dtype is computed in float32."""
    if x.dtype == tl.float64:
        return x
    else:
        return x.to(tl.float32)


@triton.jit
def narrow(x, pointer):
    """float64 rounded to what `pointer` points to, by way of float32."""
    if pointer.dtype.element_ty == tl.float64:
        return x
    else:
        return x.to(tl.float32).to(pointer.dtype.element_ty)


@triton.jit
def report(index, bad, error, op, info):
    """Writes indices that are out of range into the device's error record (docs/notes/cuda_kernels.md); the operator last, which marks it as full."""
    zero = tl.zeros(index.shape, tl.int32)
    tl.store(error + 1 + zero, index, mask=bad)
    tl.store(error + 2 + zero, zero + info, mask=bad)
    tl.store(error + zero, zero + op, mask=bad)


@triton.jit
def sum_partials(
    partial,
    first,
    second,
    parts,
    n,
    BOTH: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """first[j] = sum of partial[0, :, j]; second[j] = sum of partial[1, :, j] (if BOTH). partial[2, parts, n]; grid: (tiles of n, 1 + BOTH)."""
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = column[None, :] < n
    base = partial + tl.program_id(1).to(tl.int64) * parts * n
    acc = tl.zeros([BLOCK_P, BLOCK_N], partial.dtype.element_ty)
    for start in range(0, parts, BLOCK_P):
        row = start + tl.arange(0, BLOCK_P)
        at = row[:, None].to(tl.int64) * n + column[None, :]
        acc += tl.load(base + at, mask=(row[:, None] < parts) & inside, other=0.0)
    total = tl.sum(acc, 0)
    keep = column < n
    if BOTH:
        if tl.program_id(1) == 0:
            tl.store(first + column, total.to(first.dtype.element_ty), mask=keep)
        else:
            tl.store(second + column, total.to(second.dtype.element_ty), mask=keep)
    else:
        tl.store(first + column, total.to(first.dtype.element_ty), mask=keep)


KERNELS = [
    Kernel(
        sum_partials, {"partial": "*A", "first": "*T", "second": "*T", "parts": "i32", "n": "i32"},
        {"T": ["float32", "bfloat16", "float16", "float64"], "A": ["float32", "float64"]}, {"BOTH": [0, 1], "BLOCK_P": [32], "BLOCK_N": [32]},
        {"A": ["float32"]}, divisible=("partial", "first", "second"),
    ),
]  # fmt: skip
