"""Attention's kernels in Triton's interpreter against NumPy in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from interpreter import run

from argand_aten_cuda.kernels import attention as kernels

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    width: int
    v_width: int
    causal: bool
    mask: str = ""
    tile: tuple[int, int] = (32, 32)
    transposed: bool = False  # (batch, position, head, feature) in memory
    dtype: str = "float32"


CASES = [
    Case(1, 2, 2, 33, 65, 16, 16, False),
    Case(1, 2, 2, 70, 70, 16, 16, True, tile=(32, 64)),
    Case(2, 4, 2, 40, 50, 20, 12, True),
    Case(2, 4, 1, 40, 50, 20, 12, False, transposed=True),
    Case(1, 2, 2, 50, 20, 16, 16, True),
    Case(1, 2, 2, 20, 50, 16, 16, True, "bool"),
    Case(1, 2, 1, 50, 40, 16, 16, False, "float"),
    Case(1, 2, 1, 50, 40, 16, 16, True, "float", tile=(64, 32)),
    Case(1, 1, 1, 1, 1, 16, 16, False),
    Case(1, 1, 1, 70, 70, 64, 64, True, tile=(64, 32), dtype="float16"),
]


def reference(case: Case, q, k, v, grad, mask) -> list[np.ndarray]:
    """out, logsumexp and the gradients of query, key and value."""
    group = case.heads // case.kv_heads
    q, k, v, grad = (x.astype("float64") for x in (q, k, v, grad))
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = q @ k.swapaxes(-1, -2) * 0.3
    if case.causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask.astype("float64")
    with np.errstate(all="ignore"):
        top = s.max(-1, keepdims=True)
        top = np.where(top == -np.inf, 0, top)
        total = np.exp(s - top).sum(-1, keepdims=True)
        p = np.exp(s - top) / np.where(total == 0, 1, total)
        lse = (top + np.log(total))[..., 0]
    out = p @ v
    ds = p * (grad @ v.swapaxes(-1, -2) - (grad * out).sum(-1, keepdims=True)) * 0.3
    gk, gv = ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ grad
    shared = (gk, gv)
    gk, gv = (x.reshape(case.batch, case.kv_heads, group, case.keys, -1).sum(2) for x in shared)
    return [out, lse, ds @ k, gk, gv]


def strides(x: np.ndarray, n: int = 3) -> tuple[int, ...]:
    return tuple(s // x.itemsize for s in x.strides[:n])


def mask_of(case: Case) -> np.ndarray | None:
    """With a row that sees no key."""
    if case.mask == "bool":
        mask = RNG.random((case.batch, 1, case.queries, case.keys)) > 0.4
        mask[:, :, 2, :] = False
        return mask
    if case.mask == "float":
        mask = RNG.standard_normal((case.heads, case.queries, case.keys)).astype("float32")
        mask[:, 0, :] = -np.inf
        return mask
    return None


def close(got: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    tolerance = 2e-5 if dtype == "float32" else 4e-3
    finite = expected[np.isfinite(expected)]
    scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    np.testing.assert_allclose(got.astype("float64"), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention_and_gradients(case: Case) -> None:
    def operand(heads: int, positions: int, width: int) -> np.ndarray:
        if case.transposed:
            x = RNG.standard_normal((case.batch, positions, heads, width)).astype(case.dtype)
            return x.transpose(0, 2, 1, 3)
        return RNG.standard_normal((case.batch, heads, positions, width)).astype(case.dtype)

    q = operand(case.heads, case.queries, case.width)
    k = operand(case.kv_heads, case.keys, case.width)
    v = operand(case.kv_heads, case.keys, case.v_width)
    grad = operand(case.heads, case.queries, case.v_width)
    mask = mask_of(case)
    full = (case.batch, case.heads, case.queries, case.keys)
    wide = None if mask is None else np.broadcast_to(mask, full)
    expected = reference(case, q, k, v, grad, wide)

    lse = np.full(full[:3], np.nan, "float32")
    delta = np.full_like(lse, np.nan)
    out = np.full((*full[:3], case.v_width), np.nan, case.dtype)
    gq, gk, gv = (np.full(x.shape, np.nan, case.dtype) for x in (q, k, v))
    bits = lse if mask is None else mask.view("uint8") if mask.dtype == bool else mask
    m = (0, 0, 0, 0) if wide is None else strides(wide, 4)
    sizes = (case.queries, case.keys, case.width, case.v_width)
    group = case.heads // case.kv_heads
    block = max(16, 1 << (max(case.width, case.v_width) - 1).bit_length())
    rows, columns = case.tile
    constants = {
        "CAUSAL": int(case.causal), "MASK": {"": 0, "bool": 1, "float": 2}[case.mask], "BLOCK_M": rows, "BLOCK_N": columns,
        "BLOCK_D": block, "PAD": int(not case.width == case.v_width == block), "ALIGN": 1,
    }  # fmt: skip
    grid = (-(-case.queries // rows) * case.batch * case.heads,)
    run(
        kernels.attention_forward, grid, q, k, v, bits, out, lse, 0.3, case.heads, group, *sizes,
        *strides(q), *strides(k), *strides(v), *m, *strides(out), **constants,
    )  # fmt: skip
    close(out, expected[0], case.dtype)
    close(lse, expected[1], case.dtype)
    run(
        kernels.attention_backward_query, grid, grad, q, k, v, bits, out, lse, delta, gq, 0.3, case.heads, group, *sizes,
        *strides(grad), *strides(q), *strides(k), *strides(v), *m, *strides(out), *strides(gq), **constants,
    )  # fmt: skip
    close(gq, expected[2], case.dtype)
    constants["BLOCK_M"] = min(rows, columns)
    grid = (-(-case.keys // columns) * case.batch * case.kv_heads,)
    run(
        kernels.attention_backward_key, grid, grad, q, k, v, bits, lse, delta, gk, gv, 0.3, case.kv_heads, group, *sizes,
        *strides(grad), *strides(q), *strides(k), *strides(v), *m, *strides(gk), *strides(gv), GROUPED=int(group > 1), **constants,
    )  # fmt: skip
    close(gk, expected[3], case.dtype)
    close(gv, expected[4], case.dtype)
