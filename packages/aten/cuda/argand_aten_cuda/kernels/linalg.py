"""Factorizations of many small matrices and what solves with them: one program a matrix, which it keeps in registers.

Matrices are at most N x N; the rest of a tile is zero and stays out of every result. `row` and `column` are strides in elements.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel, Variant
from argand_aten_cuda.math import argand_div


@triton.jit
def _load(x, each, row, column, rows, columns, R: tl.constexpr, C: tl.constexpr):
    """This program's matrix as a tile, its addresses, the numbers of its rows and columns and its mask."""
    i = tl.arange(0, R)[:, None]
    j = tl.arange(0, C)[None, :]
    at = x + tl.program_id(0).to(tl.int64) * each + i * row + j * column
    inside = (i < rows) & (j < columns)
    return tl.load(at, mask=inside, other=0.0), i, j, inside


@triton.jit
def _row_of(a, i, k):
    """Row k of a tile, as a tile of one row."""
    return tl.sum(tl.where(i == k, a, 0.0), 0)[None, :]


@triton.jit
def _column_of(a, j, k):
    return tl.sum(tl.where(j == k, a, 0.0), 1)[:, None]


@triton.jit
def lu_factor(out, pivots, info, x, each, row, column, rows, columns, N: tl.constexpr):
    """L and U of P^T A by partial pivoting to `out`, column by column; pivots and info are LAPACK's."""
    a, i, j, inside = _load(x, each, row, column, rows, columns, N, N)
    steps = tl.minimum(rows, columns)
    pivots += tl.program_id(0).to(tl.int64) * steps
    singular = tl.zeros([1, 1], tl.int32)
    for k in range(0, steps):
        candidates = _column_of(a, j, k)
        size = tl.where(candidates == candidates, tl.abs(candidates), float("inf"))
        size = tl.where((i >= k) & (i < rows), size, -1.0)
        p = tl.min(tl.where(size == tl.max(size), i, N))
        tl.store(pivots + k, p + 1)
        upper = _row_of(a, i, p)
        a = tl.where(i == p, _row_of(a, i, k), a)
        a = tl.where(i == k, upper, a)
        pivot = _column_of(upper, j, k)
        singular = tl.where((singular == 0) & (pivot == 0), k + 1, singular)
        below = _column_of(a, j, k)
        factor = tl.where(pivot == 0, below, argand_div(below, pivot))
        later = tl.where(j > k, a - factor * upper, tl.where(j == k, factor, a))
        a = tl.where(i > k, later, a)
    out += tl.program_id(0).to(tl.int64) * rows * columns
    tl.store(out + j * rows + i, a, mask=inside)
    tl.store(info + tl.program_id(0) + tl.zeros([1, 1], tl.int32), singular)


@triton.jit
def lu_panel(a, pivots, source, target, info, n, first, width, R: tl.constexpr, C: tl.constexpr):
    """L and U of columns `first` to first + width (C at most), from row `first` on, of matrices of n rows that lie column by column.

    Pivots and info (0 before) are LAPACK's. Other columns have their rows exchanged by `exchange_rows`: counted from `first`, row `source[s]` comes
    to row s, of the first C, and what was there goes to row `target[s]`.
    """
    matrix = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, R)[:, None]
    j = tl.arange(0, C)[None, :]
    rows = n - first
    inside = (i < rows) & (j < width)
    a += (matrix * n + first + j) * n + first
    x = tl.load(a + i, mask=inside, other=0.0)
    place = i  # rows stay in their registers, and only their places are exchanged
    singular = tl.zeros([1, 1], tl.int32)
    for k in range(0, width):
        below = _column_of(x, j, k)
        size = tl.where(below == below, tl.abs(below), float("inf"))
        size = tl.where((place >= k) & (i < rows), size, -1.0)
        p = tl.min(tl.where(size == tl.max(size), place, R))
        tl.store(pivots + matrix * n + first + k, first + p + 1)
        upper = _row_of(x, place, p)
        place = tl.where(place == p, k, tl.where(place == k, p, place))
        pivot = _column_of(upper, j, k)
        singular = tl.where((singular == 0) & (pivot == 0), first + k + 1, singular)
        factor = tl.where(pivot == 0, below, argand_div(below, pivot))
        later = tl.where(j > k, x - factor * upper, tl.where(j == k, factor, x))
        x = tl.where(place > k, later, x)
    tl.debug_barrier()
    tl.store(a + place, x, mask=inside)
    tl.store(source + matrix * C + place, i, mask=place < C)
    tl.store(target + matrix * C + i, place, mask=i < C)
    to_info = info + matrix + tl.zeros([1, 1], tl.int32)
    before = tl.load(to_info)
    tl.store(to_info, tl.where(before == 0, singular, before))


@triton.jit
def exchange_rows(a, source, target, n, first, width, K: tl.constexpr, C: tl.constexpr):
    """Exchanges rows as `lu_panel` says in all columns but its own, C a program."""
    matrix = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, K)[:, None]
    column = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    column += tl.where(column >= first, width, 0)
    inside = (s < n - first) & (column < n)
    a += (matrix * n + column) * n + first
    to = tl.load(target + matrix * K + s)
    comes = tl.load(a + tl.load(source + matrix * K + s), mask=inside, other=0.0)
    goes = tl.load(a + s, mask=inside, other=0.0)
    tl.debug_barrier()
    tl.store(a + s, comes, mask=inside)
    tl.store(a + to, goes, mask=inside & (to >= K))


@triton.jit
def row_order(order, pivots, steps, n, N: tl.constexpr):
    """Which row comes to each of n rows by LAPACK's exchanges; a program a matrix."""
    pivots += tl.program_id(0).to(tl.int64) * steps
    i = tl.arange(0, N)
    row = i
    for k in range(0, steps):
        p = tl.load(pivots + k) - 1
        upper = tl.sum(tl.where(i == p, row, 0), 0)
        row = tl.where(i == p, tl.sum(tl.where(i == k, row, 0), 0), row)
        row = tl.where(i == k, upper, row)
    tl.store(order + tl.program_id(0).to(tl.int64) * n + i, row.to(tl.int64), mask=i < n)


@triton.jit
def cholesky_factor(out, info, x, each, row, column, out_row, out_column, n, N: tl.constexpr):
    """The lower factor of the lower triangle to `out`; info: the order of the first minor that is not positive, where it stops, or 0."""
    a, i, j, inside = _load(x, each, row, column, n, n, N, N)
    failed = tl.zeros([1, 1], tl.int32)
    for k in range(0, n):
        below = _column_of(a, j, k)
        pivot = tl.sum(tl.where(i == k, below, 0.0), 0)[None, :]
        failed = tl.where((failed == 0) & ~(pivot > 0), k + 1, failed)
        root = tl.sqrt(pivot) if pivot.dtype == tl.float64 else tl.sqrt_rn(pivot)
        factor = tl.where(i > k, argand_div(below, root), tl.where(i == k, root, 0.0))
        across = tl.sum(tl.where(i == j, factor, 0.0), 0)[None, :]
        next = tl.where(j == k, factor, tl.where(j > k, a - factor * across, a))
        a = tl.where(failed == 0, next, a)
    out += tl.program_id(0).to(tl.int64) * n * n
    tl.store(out + i * out_row + j * out_column, tl.where(i >= j, a, 0.0), mask=inside)
    tl.store(info + tl.program_id(0) + tl.zeros([1, 1], tl.int32), failed)


@triton.jit
def _solved(t, b, i, j, n, bi, BACKWARD: tl.constexpr, UNIT: tl.constexpr):
    """X of T X = B with a tile T that is lower triangular, or upper triangular (BACKWARD); the other triangle is not read."""
    for s in range(0, n):
        if BACKWARD:
            k = n - 1 - s
            later = i < k
        else:
            k = s
            later = i > k
        factors = _column_of(t, j, k)
        x = _row_of(b, bi, k)
        if not UNIT:
            x = argand_div(x, tl.sum(tl.where(i == k, factors, 0.0), 0)[None, :])
            b = tl.where(bi == k, x, b)
        b = tl.where(later, b - factors * x, b)
    return b


@triton.jit
def triangular_solve(
    x, t, b, n, columns, t_each, t_row, t_column, b_each, b_row, b_column, x_each, x_row, x_column,
    UPPER: tl.constexpr, UNIT: tl.constexpr, N: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """X of T X = B, C columns a program."""
    tile, i, j, _ = _load(t, t_each, t_row, t_column, n, n, N, N)
    first = tl.program_id(1).to(tl.int64) * C
    b += first * b_column
    right, bi, bj, inside = _load(b, b_each, b_row, b_column, n, columns - first, N, C)
    right = _solved(tile, right, i, j, n, bi, UPPER, UNIT)
    x += tl.program_id(0).to(tl.int64) * x_each + first * x_column
    tl.store(x + bi * x_row + bj * x_column, right, mask=inside)


@triton.jit
def lu_solve(
    x, lu, pivots, b, n, columns, b_each, b_row, b_column, x_each, x_row, x_column,
    TRANSPOSED: tl.constexpr, N: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """X of A X = B, or A^T X = B, with what `lu_factor` wrote; C columns a program."""
    size = n.to(tl.int64) * n
    if TRANSPOSED:
        tile, i, j, _ = _load(lu, size, n, 1, n, n, N, N)
    else:
        tile, i, j, _ = _load(lu, size, 1, n, n, n, N, N)
    first = tl.program_id(1).to(tl.int64) * C
    b += first * b_column
    right, bi, bj, inside = _load(b, b_each, b_row, b_column, n, columns - first, N, C)
    pivots += tl.program_id(0).to(tl.int64) * n
    if TRANSPOSED:
        right = _solved(tile, right, i, j, n, bi, False, False)
        right = _solved(tile, right, i, j, n, bi, True, True)
    for s in range(0, n):
        k = s
        if TRANSPOSED:
            k = n - 1 - s
        p = tl.load(pivots + k) - 1
        upper = _row_of(right, bi, p)
        right = tl.where(bi == p, _row_of(right, bi, k), right)
        right = tl.where(bi == k, upper, right)
    if not TRANSPOSED:
        right = _solved(tile, right, i, j, n, bi, False, True)
        right = _solved(tile, right, i, j, n, bi, True, False)
    x += tl.program_id(0).to(tl.int64) * x_each + first * x_column
    tl.store(x + bi * x_row + bj * x_column, right, mask=inside)


@triton.jit
def _rotated(x, i, j, partner_i, partner_j, c, s, COLUMNS: tl.constexpr):
    """Columns, or rows, of pairs rotated in their planes; c and s are rows of the tile."""
    if COLUMNS:
        return x * c + tl.gather(x, partner_j + i * 0, 1) * s
    else:
        return x * tl.trans(c) + tl.gather(x, partner_i + j * 0, 0) * tl.trans(s)


@triton.jit
def eigh_jacobi(
    values, vectors, info, x, each, row, column, n, UPPER: tl.constexpr, VECTORS: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """Eigenvalues, the smallest first, and eigenvectors (column by column) of the symmetric matrix of which one triangle is given.

    Jacobi's method with N / 2 rotations at a time, in the order of a round-robin tournament (R. Brent, F. Luk, "The solution of singular-value and
    symmetric eigenvalue problems on multiprocessor arrays", 1985). info: 1 where it did not converge, as with NaN.
    """
    a, i, j, inside = _load(x, each, row, column, n, n, N, N)
    a = tl.where((i <= j) if UPPER else (i >= j), a, 0.0)
    a = a + tl.trans(tl.where(i == j, 0.0, a))
    largest = tl.max(tl.where(a == a, tl.abs(a), float("inf")))
    scale = tl.where((largest > 0) & (largest < float("inf")), largest, 1.0).to(a.dtype)
    a = a / scale
    v = tl.where(i == j, 1.0, 0.0).to(a.dtype)
    TINY: tl.constexpr = 1e-14
    total = tl.sum(a * a)
    rest = tl.sum(tl.where(i == j, 0.0, a * a))
    previous = rest * 2
    while (rest > total * TINY) & (rest < previous):  # until rounding errors are what is left
        previous = rest
        for r in range(0, N - 1):
            partner_j = (r - j + (N - 1)) % (N - 1)
            partner_j = tl.where(partner_j == j, N - 1, partner_j)
            partner_j = tl.where(j == N - 1, (r * (N // 2)) % (N - 1), partner_j)
            partner_i = tl.trans(partner_j)
            own = tl.sum(tl.where(i == j, a, 0.0), 0)[None, :]
            other = tl.sum(tl.where(i == partner_j, tl.trans(own), 0.0), 0)[None, :]
            between = tl.sum(tl.where(i == partner_j, a, 0.0), 0)[None, :]
            first = j < partner_j
            turns = between != 0
            slope = tl.where(first, other - own, own - other) / tl.where(turns, 2 * between, 1.0)
            t = tl.where(slope < 0, -1.0, 1.0) / (tl.abs(slope) + tl.sqrt(1.0 + slope * slope))
            t = tl.where(turns, t, 0.0).to(a.dtype)
            c = 1.0 / tl.sqrt(1.0 + t * t)
            s = tl.where(first, -t * c, t * c)
            a = _rotated(a, i, j, partner_i, partner_j, c, s, True)
            a = _rotated(a, i, j, partner_i, partner_j, c, s, False)
            if VECTORS:
                v = _rotated(v, i, j, partner_i, partner_j, c, s, True)
        rest = tl.sum(tl.where(i == j, 0.0, a * a))
    found = tl.sum(tl.where(i == j, a, 0.0), 0)[None, :]
    before = (tl.trans(found) < found) | ((tl.trans(found) == found) & (i < j))
    rank = tl.sum((before & (i < n)).to(tl.int32), 0)[None, :]
    matrix = tl.program_id(0).to(tl.int64)
    tl.store(values + matrix * n + rank, found * scale, mask=j < n)
    if VECTORS:
        tl.store(vectors + matrix * n * n + rank * n + i, v, mask=inside)
    bad = (largest == float("inf")) | (rest > total * (TINY * 10000))
    tl.store(info + matrix, bad.to(tl.int32))


@triton.jit
def svd_jacobi(
    values, left, right, info, x, each, row, column, left_row, left_vector, right_row, right_vector, rows, columns,
    VECTORS: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Singular values, the largest first, and vectors of a matrix with no more columns than rows.

    One-sided Jacobi (M. Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958) with `eigh_jacobi`'s rotations: columns are
    turned in pairs until all are orthogonal. info: 1 where that fails, as with NaN, and where vectors are wanted for a value of nearly 0.
    """
    a, i, j, inside = _load(x, each, row, column, rows, columns, N, N)
    largest = tl.max(tl.where(a == a, tl.abs(a), float("inf")))
    scale = tl.where((largest > 0) & (largest < float("inf")), largest, 1.0).to(a.dtype)
    a = a / scale
    v = tl.where(i == j, 1.0, 0.0).to(a.dtype)
    ORTHOGONAL: tl.constexpr = 4e-7  # cosines of rounding errors
    angle = tl.where(largest < float("inf"), 1.0, 0.0).to(a.dtype)
    sweeps = tl.zeros([], tl.int32)
    while (angle > ORTHOGONAL) & (sweeps < 20):
        sweeps += 1
        angle = angle * 0
        for r in range(0, N - 1):
            partner_j = (r - j + (N - 1)) % (N - 1)
            partner_j = tl.where(partner_j == j, N - 1, partner_j)
            partner_j = tl.where(j == N - 1, (r * (N // 2)) % (N - 1), partner_j)
            b = tl.gather(a, partner_j + i * 0, 1)
            own = tl.sum(a * a, 0)[None, :]
            other = tl.sum(b * b, 0)[None, :]
            between = tl.sum(a * b, 0)[None, :]
            lengths = tl.sqrt(own) * tl.sqrt(other)
            cosine = tl.where(
                lengths > 0, tl.abs(between) / tl.where(lengths > 0, lengths, 1.0), 0.0
            )
            angle = tl.maximum(angle, tl.max(cosine))
            first = j < partner_j
            turns = (cosine > ORTHOGONAL) & (between != 0)
            slope = tl.where(first, other - own, own - other) / tl.where(turns, 2 * between, 1.0)
            t = tl.where(slope < 0, -1.0, 1.0) / (tl.abs(slope) + tl.sqrt(1.0 + slope * slope))
            t = tl.where(turns, t, 0.0).to(a.dtype)
            c = 1.0 / tl.sqrt(1.0 + t * t)
            s = tl.where(first, -t * c, t * c)
            a = a * c + b * s
            if VECTORS:
                v = v * c + tl.gather(v, partner_j + i * 0, 1) * s
    found = tl.sqrt(tl.sum(a * a, 0))[None, :]
    before = (tl.trans(found) > found) | ((tl.trans(found) == found) & (i < j))
    rank = tl.sum(before.to(tl.int32), 0)[None, :]
    matrix = tl.program_id(0).to(tl.int64)
    tl.store(values + matrix * columns + rank, found * scale, mask=j < columns)
    bad = (largest == float("inf")) | (angle > 1e-5)
    if VECTORS:
        bad |= tl.min(tl.where(j < columns, found, 1.0)) < 1e-15  # of which squares may vanish
        unit = a / tl.where(found > 0, found, 1.0)
        left += matrix * rows * columns
        right += matrix * columns * columns
        tl.store(left + i * left_row + rank * left_vector, unit, mask=inside)
        square = (i < columns) & (j < columns)
        tl.store(right + i * right_row + rank * right_vector, v, mask=square)
    tl.store(info + matrix, bad.to(tl.int32))


def _is_usual(v: Variant) -> bool:
    return bool(v["N"] <= 32 and not v.get("UNIT"))


def _warps(v: Variant) -> int:
    return 1 if v["N"] <= 16 else 4


_T = {"T": ["float32", "float64"]}
_N = {"N": [8, 16, 32, 64]}
_MATRIX = {"each": "i64", "row": "i64", "column": "i64"}
_SIDES = {f"{side}_{s}": "i64" for side in ("b", "x") for s in ("each", "row", "column")}
_VECTORS = dict.fromkeys(("left_row", "left_vector", "right_row", "right_vector"), "i64")
_FACTOR = {f"t_{s}": "i64" for s in ("each", "row", "column")}

KERNELS = [
    Kernel(
        lu_factor,
        {"out": "*T", "pivots": "*i32", "info": "*i32", "x": "*T", **_MATRIX, "rows": "i32", "columns": "i32"},
        _T, _N, num_warps=_warps, wheel=_is_usual,
    ),
    Kernel(
        lu_panel, {"a": "*T", "pivots": "*i32", "source": "*i32", "target": "*i32", "info": "*i32", "n": "i32", "first": "i32", "width": "i32"},
        _T, {"R": [64, 128, 256, 512, 1024, 2048], "C": [16]}, {"T": ["float32"]}, num_warps=lambda v: max(4, v["R"] // 128),
    ),
    Kernel(
        exchange_rows, {"a": "*T", "source": "*i32", "target": "*i32", "n": "i32", "first": "i32", "width": "i32"},
        _T, {"K": [16], "C": [64]}, {"T": ["float32"]},
    ),
    Kernel(
        row_order, {"order": "*i64", "pivots": "*i32", "steps": "i32", "n": "i32"}, constants={"N": [64, 512, 2048, 8192]},
        num_warps=lambda v: 1 if v["N"] == 64 else 4,
    ),
    Kernel(
        cholesky_factor, {"out": "*T", "info": "*i32", "x": "*T", **_MATRIX, "out_row": "i64", "out_column": "i64", "n": "i32"}, _T, _N, num_warps=_warps, wheel=_is_usual,
    ),
    Kernel(
        triangular_solve, {"x": "*T", "t": "*T", "b": "*T", "n": "i32", "columns": "i64", **_FACTOR, **_SIDES},
        _T, {"UPPER": [False, True], "UNIT": [False, True], **_N, "C": [16]}, num_warps=_warps, wheel=_is_usual,
    ),
    Kernel(
        lu_solve, {"x": "*T", "lu": "*T", "pivots": "*i32", "b": "*T", "n": "i32", "columns": "i64", **_SIDES},
        _T, {"TRANSPOSED": [False, True], **_N, "C": [16]}, num_warps=_warps, wheel=_is_usual,
    ),
    Kernel(
        eigh_jacobi, {"values": "*T", "vectors": "*T", "info": "*i32", "x": "*T", **_MATRIX, "n": "i32"},
        {"T": ["float32"]}, {"UPPER": [False], "VECTORS": [False, True], "N": [8, 16, 32]}, num_warps=_warps, wheel=_is_usual,
    ),
    Kernel(
        svd_jacobi, {"values": "*T", "left": "*T", "right": "*T", "info": "*i32", "x": "*T", **_MATRIX, **_VECTORS, "rows": "i32", "columns": "i32"},
        {"T": ["float32"]}, {"VECTORS": [False, True], "N": [8, 16, 32]}, num_warps=_warps, wheel=_is_usual,
    ),
]  # fmt: skip
