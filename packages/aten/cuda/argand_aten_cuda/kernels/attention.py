"""Scaled dot-product attention in tiles, forward and backward (T. Dao, "FlashAttention-2", 2023).

Operands are (batch, head, position, feature) with unit stride along features; `group` query heads share a head of
key and value. Scores are kept in base 2 and the scale is positive: `s = q @ k.T * scale * log2(e)`. `logsumexp` is natural, -inf for a row that sees no key.
The backward pass recomputes the scores: one kernel walks the keys of a tile of queries (gradient of the query, and
`delta = sum(grad * out)` of each row), the other walks the queries of a tile of keys. No atomics: results are always the same.
Row strides are given in units of ALIGN elements, so that ALIGN = 16 tells the compiler that rows are aligned.
"""

from collections.abc import Mapping
from typing import Any

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels.attention_tiles import TILES

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.constexpr_function
def precision_of(pointer):
    """How float32 is multiplied: in three parts of the tensor cores' 19-bit format, which keeps float32's precision."""
    return "tf32x3" if pointer.dtype.element_ty == tl.float32 else "ieee"


@triton.jit
def program_place(rows, heads, BLOCK: tl.constexpr, REVERSED: tl.constexpr):
    """(number of its head, batch, head in the batch, tile of rows) of a program; REVERSED: the last rows first, which see the most keys."""
    tiles = tl.cdiv(rows, BLOCK)
    tile = tl.program_id(0) % tiles
    head = tl.program_id(0) // tiles
    if REVERSED:
        tile = tiles - 1 - tile
    return head, (head // heads).to(tl.int64), head % heads, tile


@triton.jit
def key_ranges(first, keys, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """What a tile of queries sees: keys up to the first bound in whole tiles, then keys up to the second one."""
    if CAUSAL:
        end = tl.minimum(keys, first + BLOCK_M)
        return tl.minimum(keys, first) // BLOCK_N * BLOCK_N, end
    else:
        return keys // BLOCK_N * BLOCK_N, keys


@triton.jit
def load_rows(
    base, first, rows, stride, width,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr, PAD: tl.constexpr,
):  # fmt: skip
    """ROWS rows from `first` on, zero beyond `rows` (unless EVEN) and beyond `width` features (if PAD)."""
    base += tl.cast(first, tl.int64) * stride
    left = rows - first
    row = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    pointers = base + row[:, None] * stride + column[None, :]
    inside = row[:, None] < left
    if EVEN:
        if PAD:
            return tl.load(pointers, mask=column[None, :] < width, other=0.0)
        else:
            return tl.load(pointers)
    else:
        if PAD:
            return tl.load(pointers, mask=inside & (column[None, :] < width), other=0.0)
        else:
            return tl.load(pointers, mask=inside, other=0.0)


@triton.jit
def store_rows(
    base, first, rows, stride, width, tile, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    base += tl.cast(first, tl.int64) * stride
    left = rows - first
    row = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    keep = (row[:, None] < left) & (column[None, :] < width)
    pointers = base + row[:, None] * stride + column[None, :]
    tl.store(pointers, tile.to(base.dtype.element_ty), mask=keep)


@triton.jit
def add_mask(s, mask, row, column, row_stride, column_stride, rows, columns, MASK: tl.constexpr):
    """Scores with the caller's mask: MASK 1 is boolean (false hides the key), 2 is added. `row` and `column` have the shapes that broadcast to s."""
    inside = (row < rows) & (column < columns)
    m = tl.load(
        mask + row.to(tl.int64) * row_stride + column.to(tl.int64) * column_stride,
        mask=inside,
        other=0,
    )
    if MASK == 1:
        return tl.where(m != 0, s, float("-inf"))
    return s + m.to(tl.float32) * LOG2E


@triton.jit
def forward_tiles(
    acc, total, top, q, k, v, mask, row, begin, end, queries, keys, k_s, v_s, m_q, m_k, width, v_width, scale,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, EVEN: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    PAD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Folds keys [begin, end) into the running maximum, sum and weighted values of a tile of queries."""
    for start in range(begin, end, BLOCK_N):
        column = start + tl.arange(0, BLOCK_N)
        keys_tile = load_rows(k, start, keys, k_s, width, BLOCK_N, BLOCK_D, EVEN, PAD)
        s = tl.dot(q, tl.trans(keys_tile), input_precision=PRECISION)
        if MASK != 0:
            s = add_mask(
                s * scale, mask, row[:, None], column[None, :], m_q, m_k, queries, keys, MASK
            )
        if not EVEN:
            s = tl.where(column[None, :] < keys, s, float("-inf"))
        if CAUSAL:
            s = tl.where(row[:, None] >= column[None, :], s, float("-inf"))
        if MASK != 0:
            new_top = tl.maximum(top, tl.max(s, 1))
            shift = tl.where(
                new_top == float("-inf"), 0.0, new_top
            )  # a row that has seen no key yet
            p = tl.exp2(s - shift[:, None])
        else:  # scaled here, as one operation with the subtraction
            new_top = tl.maximum(top, tl.max(s, 1) * scale)
            shift = new_top
            p = tl.exp2(s * scale - shift[:, None])
        keep = tl.exp2(top - shift)
        total = total * keep + tl.sum(p, 1)
        acc = acc * keep[:, None]
        values_tile = load_rows(v, start, keys, v_s, v_width, BLOCK_N, BLOCK_D, EVEN, PAD)
        acc = tl.dot(p.to(values_tile.dtype), values_tile, acc, input_precision=PRECISION)
        top = new_top
    return acc, total, top


@triton.jit
def attention_forward(
    q, k, v, mask, out, lse, scale, heads, group, queries, keys, width, v_width,
    q_b, q_h, q_s, k_b, k_h, k_s, v_b, v_h, v_s, m_b, m_h, m_q, m_k, o_b, o_h, o_s,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    PAD: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """One tile of BLOCK_M queries of one head; grid: tiles * batch * heads. out and lse[batch, heads, queries]."""
    PRECISION: tl.constexpr = precision_of(q)
    head, b, h, tile = program_place(queries, heads, BLOCK_M, CAUSAL)
    k_s = k_s * ALIGN
    v_s = v_s * ALIGN
    q += b * q_b + h * q_h
    k += b * k_b + (h // group) * k_h
    v += b * v_b + (h // group) * v_h
    out += b * o_b + h * o_h
    if MASK != 0:
        mask += b * m_b + h * m_h
    first = tile * BLOCK_M
    row = first + tl.arange(0, BLOCK_M)
    q_tile = load_rows(q, first, queries, q_s * ALIGN, width, BLOCK_M, BLOCK_D, False, PAD)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    whole, end = key_ranges(first, keys, CAUSAL, BLOCK_M, BLOCK_N)
    log_scale = scale * LOG2E
    acc, total, top = forward_tiles(
        acc, total, top, q_tile, k, v, mask, row, 0, whole, queries, keys, k_s, v_s, m_q, m_k, width, v_width, log_scale,
        False, MASK, True, BLOCK_N, BLOCK_D, PAD, PRECISION,
    )  # fmt: skip
    acc, total, top = forward_tiles(
        acc, total, top, q_tile, k, v, mask, row, whole, end, queries, keys, k_s, v_s, m_q, m_k, width, v_width, log_scale,
        CAUSAL, MASK, False, BLOCK_N, BLOCK_D, PAD, PRECISION,
    )  # fmt: skip
    if MASK != 0:
        acc = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    else:
        acc = acc / total[:, None]
    at = head.to(tl.int64) * queries + row
    tl.store(lse + at, (top + tl.log2(total)) * LN2, mask=row < queries)
    store_rows(out, first, queries, o_s * ALIGN, v_width, acc, BLOCK_M, BLOCK_D)


@triton.jit
def query_tiles(
    acc, q, grad, k, v, mask, row, lse, delta, begin, end, queries, keys, k_s, v_s, m_q, m_k, width, v_width, scale,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, EVEN: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    PAD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds to the query's gradient (before scaling) what keys [begin, end) give."""
    for start in range(begin, end, BLOCK_N):
        column = start + tl.arange(0, BLOCK_N)
        keys_tile = load_rows(k, start, keys, k_s, width, BLOCK_N, BLOCK_D, EVEN, PAD)
        values_tile = load_rows(v, start, keys, v_s, v_width, BLOCK_N, BLOCK_D, EVEN, PAD)
        s = tl.dot(q, tl.trans(keys_tile), input_precision=PRECISION) * scale
        if MASK != 0:
            s = add_mask(s, mask, row[:, None], column[None, :], m_q, m_k, queries, keys, MASK)
        p = tl.exp2(s - lse[:, None])
        if not EVEN:
            p = tl.where(column[None, :] < keys, p, 0.0)
        if CAUSAL:
            p = tl.where(row[:, None] >= column[None, :], p, 0.0)
        dp = tl.dot(grad, tl.trans(values_tile), input_precision=PRECISION)
        ds = (p * (dp - delta[:, None])).to(keys_tile.dtype)
        acc = tl.dot(ds, keys_tile, acc, input_precision=PRECISION)
    return acc


@triton.jit
def attention_backward_query(
    grad, q, k, v, mask, out, lse, delta, grad_q, scale, heads, group, queries, keys, width, v_width,
    g_b, g_h, g_s, q_b, q_h, q_s, k_b, k_h, k_s, v_b, v_h, v_s, m_b, m_h, m_q, m_k, o_b, o_h, o_s, gq_b, gq_h, gq_s,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    PAD: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """The query's gradient, and delta[batch, heads, queries]; grid: tiles of BLOCK_M queries * batch * heads."""
    PRECISION: tl.constexpr = precision_of(q)
    head, b, h, tile = program_place(queries, heads, BLOCK_M, CAUSAL)
    k_s = k_s * ALIGN
    v_s = v_s * ALIGN
    q += b * q_b + h * q_h
    k += b * k_b + (h // group) * k_h
    v += b * v_b + (h // group) * v_h
    grad += b * g_b + h * g_h
    out += b * o_b + h * o_h
    if MASK != 0:
        mask += b * m_b + h * m_h
    first = tile * BLOCK_M
    row = first + tl.arange(0, BLOCK_M)
    q_tile = load_rows(q, first, queries, q_s * ALIGN, width, BLOCK_M, BLOCK_D, False, PAD)
    g_tile = load_rows(grad, first, queries, g_s * ALIGN, v_width, BLOCK_M, BLOCK_D, False, PAD)
    o_tile = load_rows(out, first, queries, o_s * ALIGN, v_width, BLOCK_M, BLOCK_D, False, PAD)
    sums = tl.sum(g_tile.to(tl.float32) * o_tile.to(tl.float32), 1)
    at = head.to(tl.int64) * queries + row
    tl.store(delta + at, sums, mask=row < queries)
    logs = tl.load(lse + at, mask=row < queries, other=float("inf")) * LOG2E
    if MASK != 0:
        logs = tl.where(logs == float("-inf"), float("inf"), logs)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    whole, end = key_ranges(first, keys, CAUSAL, BLOCK_M, BLOCK_N)
    log_scale = scale * LOG2E
    acc = query_tiles(
        acc, q_tile, g_tile, k, v, mask, row, logs, sums, 0, whole, queries, keys, k_s, v_s, m_q, m_k, width, v_width, log_scale,
        False, MASK, True, BLOCK_N, BLOCK_D, PAD, PRECISION,
    )  # fmt: skip
    acc = query_tiles(
        acc, q_tile, g_tile, k, v, mask, row, logs, sums, whole, end, queries, keys, k_s, v_s, m_q, m_k, width, v_width, log_scale,
        CAUSAL, MASK, False, BLOCK_N, BLOCK_D, PAD, PRECISION,
    )  # fmt: skip
    grad_q += b * gq_b + h * gq_h
    store_rows(grad_q, first, queries, gq_s * ALIGN, width, acc * scale, BLOCK_M, BLOCK_D)


@triton.jit
def key_tiles(
    acc_k, acc_v, k, v, q, grad, mask, column, lse, delta, head, begin, queries, keys,
    q_h, q_s, g_h, g_s, m_h, m_q, m_k, width, v_width, scale,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
    PAD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds to the gradients of a tile of keys (before scaling) and values what the queries of `head` from `begin` on give; scores are transposed."""
    q += head * q_h
    grad += head * g_h
    lse += head.to(tl.int64) * queries
    delta += head.to(tl.int64) * queries
    if MASK != 0:
        mask += head * m_h
    for start in range(begin, queries, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        q_tile = load_rows(q, start, queries, q_s, width, BLOCK_M, BLOCK_D, False, PAD)
        logs = tl.load(lse + row, mask=row < queries, other=float("inf")) * LOG2E
        sums = tl.load(delta + row, mask=row < queries, other=0.0)
        if MASK != 0:
            logs = tl.where(logs == float("-inf"), float("inf"), logs)
        s = tl.dot(k, tl.trans(q_tile), input_precision=PRECISION) * scale
        if MASK != 0:
            s = add_mask(s, mask, row[None, :], column[:, None], m_q, m_k, queries, keys, MASK)
        p = tl.exp2(s - logs[None, :])
        if CAUSAL:
            p = tl.where(row[None, :] >= column[:, None], p, 0.0)
        g_tile = load_rows(grad, start, queries, g_s, v_width, BLOCK_M, BLOCK_D, False, PAD)
        acc_v = tl.dot(p.to(g_tile.dtype), g_tile, acc_v, input_precision=PRECISION)
        dp = tl.dot(v, tl.trans(g_tile), input_precision=PRECISION)
        ds = (p * (dp - sums[None, :])).to(q_tile.dtype)
        acc_k = tl.dot(ds, q_tile, acc_k, input_precision=PRECISION)
    return acc_k, acc_v


@triton.jit
def attention_backward_key(
    grad, q, k, v, mask, lse, delta, grad_k, grad_v, scale, kv_heads, group, queries, keys, width, v_width,
    g_b, g_h, g_s, q_b, q_h, q_s, k_b, k_h, k_s, v_b, v_h, v_s, m_b, m_h, m_q, m_k, gk_b, gk_h, gk_s, gv_b, gv_h, gv_s,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    PAD: tl.constexpr, ALIGN: tl.constexpr, GROUPED: tl.constexpr,
):  # fmt: skip
    """The gradients of key and value; grid: tiles of BLOCK_N keys * batch * kv_heads. BLOCK_N is a multiple of BLOCK_M."""
    PRECISION: tl.constexpr = precision_of(q)
    _, b, h, tile = program_place(keys, kv_heads, BLOCK_N, False)
    q_s = q_s * ALIGN
    g_s = g_s * ALIGN
    k += b * k_b + h * k_h
    v += b * v_b + h * v_h
    first = tile * BLOCK_N
    column = first + tl.arange(0, BLOCK_N)
    k_tile = load_rows(k, first, keys, k_s * ALIGN, width, BLOCK_N, BLOCK_D, False, PAD)
    v_tile = load_rows(v, first, keys, v_s * ALIGN, v_width, BLOCK_N, BLOCK_D, False, PAD)
    acc_k = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    acc_v = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    log_scale = scale * LOG2E
    start = 0
    if CAUSAL:
        start = first
    q += b * q_b
    grad += b * g_b
    if MASK != 0:
        mask += b * m_b
    line = b * (kv_heads * group) * queries
    if GROUPED:
        for member in range(0, group):
            acc_k, acc_v = key_tiles(
                acc_k, acc_v, k_tile, v_tile, q, grad, mask, column, lse + line, delta + line, h * group + member, start, queries, keys,
                q_h, q_s, g_h, g_s, m_h, m_q, m_k, width, v_width, log_scale, CAUSAL, MASK, BLOCK_M, BLOCK_D, PAD, PRECISION,
            )  # fmt: skip
    else:  # a loop around the loop would cost registers
        acc_k, acc_v = key_tiles(
            acc_k, acc_v, k_tile, v_tile, q, grad, mask, column, lse + line, delta + line, h, start, queries, keys,
            q_h, q_s, g_h, g_s, m_h, m_q, m_k, width, v_width, log_scale, CAUSAL, MASK, BLOCK_M, BLOCK_D, PAD, PRECISION,
        )  # fmt: skip
    grad_k += b * gk_b + h * gk_h
    grad_v += b * gv_b + h * gv_h
    store_rows(grad_k, first, keys, gk_s * ALIGN, width, acc_k * scale, BLOCK_N, BLOCK_D)
    store_rows(grad_v, first, keys, gv_s * ALIGN, v_width, acc_v, BLOCK_N, BLOCK_D)


_HEAD = {"scale": "fp32"}
_SIZES = {"group": "i32", "queries": "i32", "keys": "i32", "width": "i32", "v_width": "i32"}
_MASK = {"m_b": "i64", "m_h": "i64", "m_q": "i32", "m_k": "i32"}
_POINTERS = ("grad", "q", "k", "v", "mask", "out", "lse", "delta", "grad_q", "grad_k", "grad_v")


def _strides(*names: str) -> dict[str, str]:
    return {f"{n}_{d}": "i32" if d == "s" else "i64" for n in names for d in "bhs"}


def _kernel(
    function: Any,
    pointers: Mapping[str, str],
    heads: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    **constants: list[int],
) -> Kernel:
    tiles = TILES[function.__name__]

    def tile(v: Mapping[str, Any]) -> tuple[int, int, int, int]:
        return tiles[4 if v["T"] == "float32" else 2, v["BLOCK_D"]]

    def divisible(v: Mapping[str, Any]) -> list[str]:
        strides = [n for n in (*before, *after) if n[-1] in "bh"]
        return [n for n in pointers if n in _POINTERS] + strides if v["ALIGN"] == 16 else []

    def wheel(v: Mapping[str, Any]) -> bool:
        usual = (
            v["ALIGN"] == 16
            and not v["PAD"]
            and v["BLOCK_D"] in ((64,) if v["T"] == "float32" else (64, 128))
            and not v["MASK"]
        )
        return (
            usual
            and v["M"] == "float32"
            and (v["BLOCK_M"], v["BLOCK_N"]) == tile(v)[:2]
            and not v.get("GROUPED")
        )

    return Kernel(
        function,
        signature={**pointers, **_HEAD, heads: "i32", **_SIZES, **before, **_MASK, **after},
        types={"T": ["float32", "bfloat16", "float16"], "M": ["float32", "uint8"]},
        default={"M": ["float32", "uint8"]},
        constants={
            "CAUSAL": [0, 1], "MASK": [0, 1, 2], "BLOCK_M": sorted({t[0] for t in tiles.values()}), "BLOCK_N": sorted({t[1] for t in tiles.values()}),
            "BLOCK_D": [16, 32, 64, 128, 256], "PAD": [0, 1], "ALIGN": [1, 16], **constants,
        },
        num_warps=lambda v: tile(v)[2],
        num_stages=lambda v: tile(v)[3],
        divisible=divisible,
        fp_fusion=True,
        wheel=wheel,
    )  # fmt: skip


_T = "*T"
KERNELS = [
    _kernel(
        attention_forward,
        {"q": _T, "k": _T, "v": _T, "mask": "*M", "out": _T, "lse": "*fp32"}, "heads", _strides("q", "k", "v"), _strides("o"),
    ),
    _kernel(
        attention_backward_query,
        {"grad": _T, "q": _T, "k": _T, "v": _T, "mask": "*M", "out": _T, "lse": "*fp32", "delta": "*fp32", "grad_q": _T},
        "heads", _strides("g", "q", "k", "v"), _strides("o", "gq"),
    ),
    _kernel(
        attention_backward_key,
        {"grad": _T, "q": _T, "k": _T, "v": _T, "mask": "*M", "lse": "*fp32", "delta": "*fp32", "grad_k": _T, "grad_v": _T},
        "kv_heads", _strides("g", "q", "k", "v"), _strides("gk", "gv"), GROUPED=[0, 1],
    ),
]  # fmt: skip
