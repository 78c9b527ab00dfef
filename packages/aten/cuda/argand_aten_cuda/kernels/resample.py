"""Images at other places: resized, or sampled at a grid. One lane a place of the result; images are dense (batch * channels, h, w).

Sums are taken row by row in float32 (float64 for float64), in the order of the CPU's kernels of grids.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from argand_aten_cuda.kernel import FLOATING, Kernel
from argand_aten_cuda.kernels._accumulate import widen
from argand_aten_cuda.math import argand_div

NEAREST = tl.constexpr(0)
NEAREST_EXACT = tl.constexpr(1)
LINEAR = tl.constexpr(2)
CUBIC = tl.constexpr(3)
ZEROS = tl.constexpr(0)
BORDER = tl.constexpr(1)
REFLECTION = tl.constexpr(2)


@triton.jit
def _weight(t, K: tl.constexpr, MODE: tl.constexpr):
    """Of tap K at a distance t from the element below: linear, or cubic convolution (Keys 1981) with a = -0.75."""
    if MODE == LINEAR:
        weight = t if K == 1 else 1.0 - t
    elif MODE == CUBIC:
        x = t + 1.0 if K == 0 else t if K == 1 else 1.0 - t if K == 2 else 2.0 - t
        if K == 1 or K == 2:
            weight = (1.25 * x - 2.25) * x * x + 1.0
        else:
            weight = ((-0.75 * x + 3.75) * x - 6.0) * x + 3.0
    else:
        weight = tl.full(t.shape, 1.0, t.dtype)
    return weight


@triton.jit
def _within(x, low, high):
    """x in [low, high]; NaN stays."""
    x = tl.where(x < low, low, x)
    return tl.where(x > high, high, x)


# ---- grids ---------------------------------------------------------------------------------------------------------------
@triton.jit
def _padded(x, size, PADDING: tl.constexpr, ALIGN: tl.constexpr):
    """Places outside of [0, size) moved inside; NaN to 0."""
    if PADDING == BORDER:
        x = _within(tl.where(x == x, x, 0.0), 0.0, size - 1.0)
    elif PADDING == REFLECTION:
        low = 0.0 if ALIGN else -0.5
        span = size - 1.0 if ALIGN else size
        distance = tl.abs(x - low)
        divisor = tl.zeros_like(x) + tl.where(span == 0, 1.0, span).to(x.dtype)
        rest = libdevice.fmod(distance, divisor)
        turns = tl.floor(argand_div(distance, divisor))
        odd = turns - 2.0 * tl.floor(turns * 0.5) == 1.0
        inside = _within(tl.where(odd, span - rest, rest) + low, 0.0, size - 1.0)
        x = tl.where(span == 0, 0.0, inside)
        x = tl.where(x == x, x, 0.0)
    return x


@triton.jit
def _place(g, size, MODE: tl.constexpr, PADDING: tl.constexpr, ALIGN: tl.constexpr):
    """Where a number of the grid lies between elements."""
    if ALIGN:
        x = (g + 1.0) * ((size - 1.0) * 0.5)
    else:
        x = ((g + 1.0) * size - 1.0) * 0.5
    if MODE != CUBIC:
        x = _padded(x, size, PADDING, ALIGN)
    return x


@triton.jit
def _grid_tap(x, size, K: tl.constexpr, MODE: tl.constexpr, PADDING: tl.constexpr, ALIGN: tl.constexpr):  # fmt: skip
    """The element of tap K, whether it counts (it lies inside, or its weight is NaN), and its weight."""
    low = tl.floor(x)
    if MODE == NEAREST:
        at = libdevice.nearbyint(x)
    elif MODE == LINEAR:
        at = low + K
    else:
        at = _padded(low + (K - 1.0), size, PADDING, ALIGN)
    inside = (at >= 0) & (at <= size - 1.0)
    weight = _weight(x - low, K, MODE)
    return tl.where(inside, at, 0.0).to(tl.int32), inside | (weight != weight), weight


@triton.jit
def grid_sample_2d(
    out, x, grid, total, channels, places, h, w, group,
    MODE: tl.constexpr, PADDING: tl.constexpr, ALIGN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program takes BLOCK of the `total` places of all images and `group` channels. grid: (total, 2), x before y; padding ZEROS: nothing outside."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    image = e // places
    gx = widen(tl.load(grid + 2 * e, mask=live, other=0.0))
    gy = widen(tl.load(grid + 2 * e + 1, mask=live, other=0.0))
    width = w.to(gx.dtype)
    height = h.to(gx.dtype)
    px = _place(gx, width, MODE, PADDING, ALIGN)
    py = _place(gy, height, MODE, PADDING, ALIGN)
    TAPS: tl.constexpr = 4 if MODE == CUBIC else 2 if MODE == LINEAR else 1
    first = tl.program_id(1) * group
    for c in range(first, tl.minimum(first + group, channels)):
        plane = image * channels + c
        base = x + plane * h * w
        sums = tl.zeros([BLOCK], gx.dtype)
        for ky in tl.static_range(TAPS):
            row, row_inside, row_weight = _grid_tap(py, height, ky, MODE, PADDING, ALIGN)
            for kx in tl.static_range(TAPS):
                column, inside, weight = _grid_tap(px, width, kx, MODE, PADDING, ALIGN)
                weight = row_weight * weight
                inside = inside & row_inside & live
                value = widen(tl.load(base + row * w + column, mask=inside, other=0.0))
                sums = tl.where(inside | (weight != weight), sums + weight * value, sums)
        tl.store(
            out + plane * places + (e - image * places), sums.to(out.dtype.element_ty), mask=live
        )


# ---- sizes ---------------------------------------------------------------------------------------------------------------
@triton.jit
def _source(o, step, size, MODE: tl.constexpr, ALIGN: tl.constexpr):
    """The element below the place of element `o` of the result, and the distance from it."""
    if MODE == NEAREST or MODE == LINEAR and ALIGN or MODE == CUBIC and ALIGN:
        place = o * step
    elif MODE == NEAREST_EXACT:
        place = (o + 0.5) * step
    else:
        place = (o + 0.5) * step - 0.5
    if MODE == LINEAR:
        place = tl.maximum(place, 0.0)
    low = tl.floor(place)
    if MODE != CUBIC:
        low = tl.minimum(low, size - 1.0)
    return low.to(tl.int32), _within(place - low, 0.0, 1.0)


@triton.jit
def upsample_2d(
    out, x, total, h, w, oh, ow, step_y, step_x, MODE: tl.constexpr, ALIGN: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Images resized from (h, w) to (oh, ow), which lie step_y and step_x elements apart; beyond an edge lies the element there."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    q = e // ow
    plane = q // oh
    # Places of nearest elements are float32's in any case.
    ACC: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    PLACE: tl.constexpr = tl.float32 if MODE == NEAREST or MODE == NEAREST_EXACT else ACC
    row, ty = _source((q - plane * oh).to(PLACE), step_y.to(PLACE), h.to(PLACE), MODE, ALIGN)
    column, tx = _source((e - q * ow).to(PLACE), step_x.to(PLACE), w.to(PLACE), MODE, ALIGN)
    TAPS: tl.constexpr = 4 if MODE == CUBIC else 2 if MODE == LINEAR else 1
    BEFORE: tl.constexpr = 1 if MODE == CUBIC else 0
    base = x + plane * h * w
    if TAPS == 1:
        tl.store(out + e, tl.load(base + row * w + column, mask=live), mask=live)
    else:
        sums = tl.zeros([BLOCK], ACC)
        for ky in tl.static_range(TAPS):
            r = tl.minimum(tl.maximum(row + (ky - BEFORE), 0), h - 1)
            line = tl.zeros([BLOCK], ACC)
            for kx in tl.static_range(TAPS):
                c = tl.minimum(tl.maximum(column + (kx - BEFORE), 0), w - 1)
                line += widen(tl.load(base + r * w + c, mask=live, other=0.0)) * _weight(
                    tx, kx, MODE
                )
            sums += line * _weight(ty, ky, MODE)
        tl.store(out + e, sums.to(out.dtype.element_ty), mask=live)


KERNELS = [
    Kernel(
        grid_sample_2d,
        {"out": "*T", "x": "*T", "grid": "*T", "total": "i64", "channels": "i32", "places": "i64", "h": "i32", "w": "i32", "group": "i32"},
        {"T": FLOATING}, {"MODE": [2, 0, 3], "PADDING": [0, 1, 2], "ALIGN": [False, True], "BLOCK": [128]},
        {"T": ["float32"]}, wheel=lambda v: v["MODE"] == 2,
    ),
    Kernel(
        upsample_2d,
        {"out": "*T", "x": "*T", "total": "i64", "h": "i32", "w": "i32", "oh": "i32", "ow": "i32", "step_y": "fp64", "step_x": "fp64"},
        {"T": FLOATING}, {"MODE": [0, 1, 2, 3], "ALIGN": [False, True], "BLOCK": [256]},
        wheel=lambda v: v["MODE"] >= 2 or not v["ALIGN"],
    ),
]  # fmt: skip
