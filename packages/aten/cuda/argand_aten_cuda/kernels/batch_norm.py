"""Batch normalisation of (batch, channel, space) data, dense, with gradients.

A channel's batch * space elements are cut into `splits` parts of `each`; a part's mean and sum of squared deviations are kept as
partial[2, splits, channels] and put together in a fixed order (Chan, Golub and LeVeque, 1979). Tiles are [elements, channels]:
one channel where space is long, many where it is short, so that neighbouring threads read neighbouring memory."""

from collections.abc import Mapping
from typing import Any

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import widen
from argand_aten_cuda.kernels.norm import inverse_root


@triton.jit
def positions(element, channel, channels, space):
    """Where [element, channel] lies: element counts batch * space."""
    return (
        (element // space).to(tl.int64)[:, None] * channels * space
        + channel[None, :].to(tl.int64) * space
        + (element % space)[:, None]
    )


@triton.jit
def batch_norm_sums(
    x, partial, count, channels, space, each, BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr
):
    """Grid: (tiles of channels, splits)."""
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    begin = tl.program_id(1) * each
    end = tl.minimum(begin + each, count)
    mean = widen(tl.zeros([BLOCK_E, BLOCK_C], x.dtype.element_ty))
    squares = tl.zeros_like(mean)
    steps = 0
    for start in range(
        begin, end, BLOCK_E
    ):  # a running mean and sum of squared deviations in each lane
        element = start + tl.arange(0, BLOCK_E)
        inside = (element[:, None] < end) & (channel[None, :] < channels)
        value = widen(
            tl.load(x + positions(element, channel, channels, space), mask=inside, other=0.0)
        )
        steps += 1
        d = tl.where(inside, value - mean, 0.0)
        mean += d / steps
        squares += d * tl.where(inside, value - mean, 0.0)
    lane = tl.arange(0, BLOCK_E)
    n = tl.maximum(end - begin, 1)
    seen = ((end - begin + BLOCK_E - 1 - lane) // BLOCK_E).to(mean.dtype)[:, None]
    m = tl.sum(mean * seen, 0) / n
    d = mean - m[None, :]
    at = tl.program_id(1).to(tl.int64) * channels + channel
    tl.store(partial + at, m, mask=channel < channels)
    tl.store(
        partial + tl.num_programs(1).to(tl.int64) * channels + at,
        tl.sum(squares + seen * d * d, 0),
        mask=channel < channels,
    )


@triton.jit
def update(running, channel, keep, batch, momentum):
    old = widen(tl.load(running + channel, mask=keep, other=0.0))
    factor = tl.cast(momentum, old.dtype)
    tl.store(
        running + channel,
        ((1.0 - factor) * old + factor * batch).to(running.dtype.element_ty),
        mask=keep,
    )


@triton.jit
def batch_norm_statistics(
    partial, mean, rstd, running_mean, running_var, splits, count, channels, each, momentum, eps,
    RUNNING: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """A channel's mean and reciprocal standard deviation; new running statistics (RUNNING: 1 mean, 2 variance, 3 both). Grid: tiles of channels."""
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    keep = channel < channels
    total = tl.zeros([BLOCK_S, BLOCK_C], partial.dtype.element_ty)
    for start in range(0, splits, BLOCK_S):
        part = start + tl.arange(0, BLOCK_S)[:, None]
        inside = (part < splits) & keep[None, :]
        n = tl.minimum(each, count - part * each).to(total.dtype)
        total += (
            tl.load(
                partial + part.to(tl.int64) * channels + channel[None, :], mask=inside, other=0.0
            )
            * n
        )
    m = tl.sum(total, 0) / count
    total = tl.zeros_like(total)
    for start in range(0, splits, BLOCK_S):
        part = start + tl.arange(0, BLOCK_S)[:, None]
        inside = (part < splits) & keep[None, :]
        at = part.to(tl.int64) * channels + channel[None, :]
        n = tl.minimum(each, count - part * each).to(total.dtype)
        d = tl.load(partial + at, mask=inside, other=0.0) - m[None, :]
        squares = tl.load(partial + splits.to(tl.int64) * channels + at, mask=inside, other=0.0)
        total += tl.where(inside, squares + n * d * d, 0.0)
    squares = tl.sum(total, 0)
    tl.store(mean + channel, m, mask=keep)
    tl.store(rstd + channel, inverse_root(squares / count, eps), mask=keep)
    if RUNNING & 1:
        update(running_mean, channel, keep, m, momentum)
    if RUNNING & 2:
        update(running_var, channel, keep, squares / (count - 1), momentum)


@triton.jit
def batch_norm_apply(
    x, mean, spread, w, b, y, numel, channels, space, eps,
    TRAINING: tl.constexpr, HAS_W: tl.constexpr, HAS_B: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """(x - mean) * rstd * w + b; `spread` is rstd (TRAINING) or the variance. Grid: tiles of the elements."""
    at = tl.program_id(0).to(numel.dtype) * BLOCK + tl.arange(0, BLOCK)
    inside = at < numel
    c = at // space % channels
    scale = tl.load(spread + c, mask=inside, other=1.0)
    if not TRAINING:
        scale = inverse_root(scale, eps)
    if HAS_W:
        scale *= widen(tl.load(w + c, mask=inside, other=0.0))
    value = (
        widen(tl.load(x + at, mask=inside, other=0.0)) - tl.load(mean + c, mask=inside, other=0.0)
    ) * scale
    if HAS_B:
        value += widen(tl.load(b + c, mask=inside, other=0.0))
    tl.store(y + at, value.to(y.dtype.element_ty), mask=inside)


@triton.jit
def batch_norm_backward_sums(
    grad,
    x,
    mean,
    partial,
    count,
    channels,
    space,
    each,
    BLOCK_E: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """partial[0] = sums of grad * (x - mean), partial[1] = sums of grad; grid: (tiles of channels, splits)."""
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    begin = tl.program_id(1) * each
    end = tl.minimum(begin + each, count)
    m = tl.load(mean + channel, mask=channel < channels, other=0.0)[None, :]
    acc = widen(tl.zeros([BLOCK_E, BLOCK_C], x.dtype.element_ty))
    acc_x = acc
    for start in range(begin, end, BLOCK_E):
        element = start + tl.arange(0, BLOCK_E)
        inside = (element[:, None] < end) & (channel[None, :] < channels)
        at = positions(element, channel, channels, space)
        g = widen(tl.load(grad + at, mask=inside, other=0.0))
        acc += g
        acc_x += g * (widen(tl.load(x + at, mask=inside, other=0.0)) - m)
    at = tl.program_id(1).to(tl.int64) * channels + channel
    tl.store(partial + at, tl.sum(acc_x, 0), mask=channel < channels)
    tl.store(
        partial + tl.num_programs(1).to(tl.int64) * channels + at,
        tl.sum(acc, 0),
        mask=channel < channels,
    )


@triton.jit
def batch_norm_backward_statistics(
    partial,
    spread,
    dw,
    db,
    sums,
    splits,
    channels,
    eps,
    TRAINING: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """dw and db, and sums[2, channels]: of grad * normalised x, and of grad. Grid: tiles of channels."""
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    keep = channel < channels
    acc = tl.zeros([BLOCK_S, BLOCK_C], partial.dtype.element_ty)
    acc_x = acc
    for start in range(0, splits, BLOCK_S):
        part = start + tl.arange(0, BLOCK_S)[:, None]
        inside = (part < splits) & keep[None, :]
        at = part.to(tl.int64) * channels + channel[None, :]
        acc_x += tl.load(partial + at, mask=inside, other=0.0)
        acc += tl.load(partial + splits.to(tl.int64) * channels + at, mask=inside, other=0.0)
    r = tl.load(spread + channel, mask=keep, other=1.0)
    if not TRAINING:
        r = inverse_root(r, eps)
    slope = tl.sum(acc_x, 0) * r
    center = tl.sum(acc, 0)
    tl.store(sums + channel, slope, mask=keep)
    tl.store(sums + channels + channel, center, mask=keep)
    tl.store(dw + channel, slope.to(dw.dtype.element_ty), mask=keep)
    tl.store(db + channel, center.to(db.dtype.element_ty), mask=keep)


@triton.jit
def batch_norm_backward(
    grad, x, mean, spread, w, sums, dx, numel, channels, space, count, eps,
    TRAINING: tl.constexpr, HAS_W: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Grid: tiles of the elements."""
    at = tl.program_id(0).to(numel.dtype) * BLOCK + tl.arange(0, BLOCK)
    inside = at < numel
    c = at // space % channels
    r = tl.load(spread + c, mask=inside, other=1.0)
    if not TRAINING:
        r = inverse_root(r, eps)
    result = widen(tl.load(grad + at, mask=inside, other=0.0))
    if TRAINING:
        value = (
            widen(tl.load(x + at, mask=inside, other=0.0))
            - tl.load(mean + c, mask=inside, other=0.0)
        ) * r
        slope = tl.load(sums + c, mask=inside, other=0.0) / count
        center = tl.load(sums + channels + c, mask=inside, other=0.0) / count
        result -= center + value * slope
    if HAS_W:
        r *= widen(tl.load(w + c, mask=inside, other=0.0))
    tl.store(dx + at, (result * r).to(dx.dtype.element_ty), mask=inside)


_T = {"T": ["float32", "bfloat16", "float16", "float64"], "A": ["float32", "float64"]}
_W = {"W": _T["T"]}
_I = {"I": ["i32", "i64"]}
_USUAL = {"A": ["float32"], "I": ["i32"], "R": ["float32"]}
_SUMS = {"count": "i32", "channels": "i32", "space": "i32", "each": "i32"}
_TILES = {"BLOCK_E": [32, 1024], "BLOCK_C": [1, 32]}
_FINISH = {"BLOCK_S": [16], "BLOCK_C": [16]}


def _tile(v: Mapping[str, Any]) -> bool:
    return bool(v["BLOCK_E"] * v["BLOCK_C"] == 1024)


def _same(v: Mapping[str, Any]) -> bool:
    return bool(v["T"] == v["W"] and v["HAS_W"] == v.get("HAS_B", v["HAS_W"]))


KERNELS = [
    Kernel(batch_norm_sums, {"x": "*T", "partial": "*A", **_SUMS}, _T, _TILES, _USUAL, divisible=("x", "partial"), wheel=_tile),
    Kernel(
        batch_norm_statistics,
        {
            "partial": "*A", "mean": "*A", "rstd": "*A", "running_mean": "*R", "running_var": "*R",
            "splits": "i32", "count": "i32", "channels": "i32", "each": "i32", "momentum": "fp64", "eps": "fp64",
        },
        {"A": _T["A"], "R": _T["T"]}, {"RUNNING": [0, 1, 2, 3], **_FINISH}, _USUAL, wheel=lambda v: v["RUNNING"] in (0, 3),
    ),
    Kernel(
        batch_norm_apply,
        {
            "x": "*T", "mean": "*A", "spread": "*A", "w": "*W", "b": "*W", "y": "*T",
            "numel": "I", "channels": "i32", "space": "i32", "eps": "fp64",
        },
        {**_T, **_W, **_I}, {"TRAINING": [0, 1], "HAS_W": [0, 1], "HAS_B": [0, 1], "BLOCK": [1024]}, _USUAL,
        divisible=("x", "y"), wheel=_same,
    ),
    Kernel(
        batch_norm_backward_sums, {"grad": "*T", "x": "*T", "mean": "*A", "partial": "*A", **_SUMS}, _T, _TILES, _USUAL,
        divisible=("grad", "x", "partial"), wheel=_tile,
    ),
    Kernel(
        batch_norm_backward_statistics,
        {
            "partial": "*A", "spread": "*A", "dw": "*W", "db": "*W", "sums": "*A",
            "splits": "i32", "channels": "i32", "eps": "fp64",
        },
        {"A": _T["A"], **_W}, {"TRAINING": [0, 1], **_FINISH}, _USUAL,
    ),
    Kernel(
        batch_norm_backward,
        {
            "grad": "*T", "x": "*T", "mean": "*A", "spread": "*A", "w": "*W", "sums": "*A", "dx": "*T",
            "numel": "I", "channels": "i32", "space": "i32", "count": "i32", "eps": "fp64",
        },
        {**_T, **_W, **_I}, {"TRAINING": [0, 1], "HAS_W": [0, 1], "BLOCK": [1024]}, _USUAL, divisible=("grad", "x", "dx"), wheel=_same,
    ),
]  # fmt: skip
