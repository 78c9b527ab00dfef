"""Connectionist temporal classification (Graves et al. 2006) by the forward-backward algorithm, in logarithms.

States of a target of n labels: blank, label 0, blank, label 1, ..., blank. A program takes one of the batch, a lane each state, and step after step: what a
step gives the next one's neighbouring lanes goes through memory. Log probabilities are (steps, count, classes), dense.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from argand_aten_cuda.kernel import FLOATING, Kernel, Variant
from argand_aten_cuda.kernels._accumulate import report, widen
from argand_aten_cuda.math import argand_maximum

NEVER = tl.constexpr(float("-inf"))


@triton.jit
def _log_add(a, b):
    high = argand_maximum(a, b)
    return tl.where(high == NEVER, high, high + libdevice.log1p(libdevice.exp(-tl.abs(a - b))))


@triton.jit
def _lengths(inputs, targets, b, steps, width, total, BLOCK: tl.constexpr):
    """Where one's labels begin, how many there are, and its steps, within bounds; `width`: labels a row, or -1 where all stand in one row of `total`."""
    first = b * width
    limit = width.to(tl.int64)
    if width < 0:
        before = tl.zeros([BLOCK], tl.int64)
        for start in range(0, b, BLOCK):
            i = start + tl.arange(0, BLOCK)
            before += tl.load(targets + i, mask=i < b, other=0)
        first = tl.minimum(tl.maximum(tl.sum(before, 0), 0), total)
        limit = total - first
    n = tl.minimum(tl.maximum(tl.load(targets + b), 0), limit)
    length = tl.minimum(tl.maximum(tl.load(inputs + b), 0), steps)
    return first, n.to(tl.int32), length.to(tl.int32), limit


@triton.jit
def _symbols(labels, first, n, classes, blank, BLOCK: tl.constexpr):
    """States, their symbols as they are given, and which are labels."""
    s = tl.arange(0, BLOCK)
    is_label = (s % 2 == 1) & (s < 2 * n + 1)
    return s, tl.load(labels + first + s // 2, mask=is_label, other=blank), is_label


@triton.jit
def _valid(symbol, classes, blank):
    return tl.where((symbol >= 0) & (symbol < classes), symbol, blank)


@triton.jit
def ctc_forward(
    out, alpha, x, labels, inputs, targets, error, op, steps, count, classes, blank, width, total, KEEP: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Losses. alpha[b, step, state]: log probabilities of the beginnings that are in a state at a step; not KEEP: of two steps by turns."""
    b = tl.program_id(0).to(tl.int64)
    first, n, length, limit = _lengths(inputs, targets, b, steps, width, total, BLOCK)
    s, given, is_label = _symbols(labels, first, n, classes, blank, BLOCK)
    symbol = _valid(given, classes, blank)
    report(given, given != symbol, error, op, classes.to(tl.int64) << 6 | 2)
    wanted = tl.load(targets + b) + tl.zeros([BLOCK], tl.int64)
    report(wanted, (s == 0) & (wanted != n), error, op, -1 - ((limit + 1) << 6 | 1))
    wanted = tl.load(inputs + b) + tl.zeros([BLOCK], tl.int64)
    report(wanted, (s == 0) & (wanted != length), error, op, -1 - ((steps.to(tl.int64) + 1) << 6))
    live = s < 2 * n + 1
    previous = _valid(
        tl.load(labels + first + s // 2 - 1, mask=is_label & (s > 1), other=blank), classes, blank
    )
    skips = is_label & (s > 1) & (symbol != previous)
    x += b * classes
    rows = steps if KEEP else 2
    alpha += b * rows * BLOCK
    p = widen(tl.load(x + symbol, mask=live & (length > 0), other=NEVER))
    now = tl.where(s < 2, p, NEVER)
    tl.store(alpha + s, now, mask=live & (length > 0))
    tl.debug_barrier()  # the next step reads what other threads wrote
    line = tl.full((), BLOCK, tl.int64)
    for t in range(1, length):
        before = alpha + ((t - 1) if KEEP else (t - 1) % 2) * line
        one = tl.load(before + s - 1, mask=live & (s > 0), other=NEVER)
        two = tl.load(before + s - 2, mask=skips, other=NEVER)
        p = widen(tl.load(x + t * count.to(tl.int64) * classes + symbol, mask=live, other=NEVER))
        now = tl.where(live, _log_add(_log_add(now, one), two) + p, NEVER)
        tl.store(alpha + (t if KEEP else t % 2) * line + s, now, mask=live)
        tl.debug_barrier()
    last = tl.max(tl.where(s == 2 * n, now, NEVER), 0)
    other = tl.max(tl.where(s == 2 * n - 1, now, NEVER), 0)
    poisoned = tl.max(((now != now) & live & (s >= 2 * n - 1)).to(tl.int32), 0) > 0
    loss = -_log_add(last, other)
    loss = tl.where(
        length > 0, tl.where(poisoned, float("nan"), loss), tl.where(n == 0, 0.0, float("inf"))
    )
    tl.store(out + b, loss.to(out.dtype.element_ty))


@triton.jit
def ctc_occupancy(
    alpha, turns, losses, x, labels, inputs, targets, steps, count, classes, blank, width, total, BLOCK: tl.constexpr
):  # fmt: skip
    """alpha becomes the log probability of being in a state at a step, given the target; `turns` takes two steps by turns."""
    b = tl.program_id(0).to(tl.int64)
    first, n, length, _ = _lengths(inputs, targets, b, steps, width, total, BLOCK)
    s, given, is_label = _symbols(labels, first, n, classes, blank, BLOCK)
    symbol = _valid(given, classes, blank)
    live = s < 2 * n + 1
    follows = is_label & (s + 2 < 2 * n + 1)
    following = _valid(
        tl.load(labels + first + s // 2 + 1, mask=follows, other=blank), classes, blank
    )
    skips = follows & (symbol != following)
    x += b * classes
    alpha += b * steps * BLOCK
    turns += b * 2 * BLOCK
    loss = tl.load(losses + b)
    ends = tl.where(live & (s + 2 >= 2 * n + 1), 0.0, NEVER).to(loss.dtype)
    line = tl.full((), BLOCK, tl.int64)
    for k in range(0, length):
        t = length - 1 - k
        at = alpha + t * line + s
        tl.store(at, tl.load(at, mask=live, other=NEVER) + ends + loss, mask=live)
        p = widen(tl.load(x + t * count.to(tl.int64) * classes + symbol, mask=live, other=NEVER))
        now = ends + p
        turn = turns + (k % 2) * BLOCK + s
        tl.store(turn, now, mask=live)
        tl.debug_barrier()  # what other threads wrote; the turn before the last is read no more
        one = tl.load(turn + 1, mask=s + 1 < 2 * n + 1, other=NEVER)
        two = tl.load(turn + 2, mask=skips, other=NEVER)
        ends = tl.where(live, _log_add(_log_add(now, one), two), NEVER)


@triton.jit
def ctc_gradient(
    out, grad, occupancy, losses, x, labels, inputs, targets, steps, count, classes, blank, width, total, tiles, states,
    ZERO: tl.constexpr, BS: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """grad * (probability of a class - that of being in its states); grid: steps * count * tiles of classes. ZERO: infinite losses have no gradient."""
    row = (tl.program_id(0) // tiles).to(tl.int64)
    t = row // count
    b = row % count
    column = (tl.program_id(0) % tiles) * BC + tl.arange(0, BC)
    first, n, length, _ = _lengths(inputs, targets, b, steps, width, total, BS)
    inside = column < classes
    loss = tl.load(losses + b)
    p = widen(tl.load(x + row * classes + column, mask=inside, other=0.0))
    occupancy += (b * steps + t) * states
    sums = tl.zeros([BC], p.dtype)
    many = 2 * n + 1
    if t >= length:
        many *= 0
    for start in range(0, many, BS):
        s = start + tl.arange(0, BS)
        symbol = tl.load(labels + first + s // 2, mask=(s % 2 == 1) & (s < many), other=blank)
        chance = libdevice.exp(tl.load(occupancy + s, mask=s < many, other=NEVER))
        hit = _valid(symbol, classes, blank)[:, None] == column[None, :]
        sums += tl.sum(tl.where(hit, chance[:, None], 0.0), 0)
    value = widen(tl.load(grad + b)) * (libdevice.exp(p) - sums)
    value = tl.where(loss == float("inf"), 0.0 if ZERO else float("nan"), value)
    value = tl.where(t < length, value, 0.0)
    tl.store(out + row * classes + column, value.to(out.dtype.element_ty), mask=inside)


def _accumulates(v: Variant) -> dict[str, str]:
    return {"A": "float64" if v["T"] == "float64" else "float32"}


def _warps(v: Variant) -> int:
    return int(min(max(v["BLOCK"] // 128, 1), 8))


_PROBLEM = {"x": "*T", "labels": "*i64", "inputs": "*i64", "targets": "*i64"}
_SIZES = {"steps": "i32", "count": "i32", "classes": "i32", "blank": "i32", "width": "i32", "total": "i64"}  # fmt: skip
_BLOCKS = [32, 128, 512, 2048]
_DEFAULT = {"T": ["float32"]}


def _usual(v: Variant) -> bool:
    return bool(v["BLOCK"] <= 512)


KERNELS = [
    Kernel(
        ctc_forward,
        signature={"out": "*A", "alpha": "*A", **_PROBLEM, "error": "*i64", "op": "i64", **_SIZES},
        types={"T": FLOATING},
        constants={"KEEP": [False, True], "BLOCK": _BLOCKS},
        default=_DEFAULT,
        derived=_accumulates,
        num_warps=_warps,
        num_stages=1,
        wheel=_usual,
    ),
    Kernel(
        ctc_occupancy,
        signature={"alpha": "*A", "turns": "*A", "losses": "*A", **_PROBLEM, **_SIZES},
        types={"T": FLOATING},
        constants={"BLOCK": _BLOCKS},
        default=_DEFAULT,
        derived=_accumulates,
        num_warps=_warps,
        num_stages=1,
        wheel=_usual,
    ),
    Kernel(
        ctc_gradient,
        signature={
            "out": "*T",
            "grad": "*T",
            "occupancy": "*A",
            "losses": "*A",
            **_PROBLEM,
            **_SIZES,
            "tiles": "i32",
            "states": "i32",
        },  # fmt: skip
        types={"T": FLOATING},
        constants={"ZERO": [False, True], "BS": [32], "BC": [128]},
        default=_DEFAULT,
        derived=_accumulates,
    ),
]
