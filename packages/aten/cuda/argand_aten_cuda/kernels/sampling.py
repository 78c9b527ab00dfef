"""Sampling by weights. `flag` becomes 1 where a weight is negative or not finite, 2 where a row's weights do not suffice."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.random import draw_at, stream, uniform64


@triton.jit
def _target(seed, first, at, total):
    """A number in [0, total)."""
    target = uniform64(draw_at(seed, first, at)) * total
    return tl.where(target < total, target, total * 0.9999999999999999)


@triton.jit
def cumulate_weights(x, sums, flag, n, BLOCK: tl.constexpr):
    """sums[row, i] = x[row, 0] + ... + x[row, i] in float64."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([], tl.float64)
    invalid = tl.zeros([], tl.int32)
    for k in range(0, n, BLOCK):
        inside = lane < n - k
        weight = tl.load(x + row * n + k + lane, mask=inside, other=0.0).to(tl.float64)
        invalid = tl.maximum(
            invalid, tl.max(((weight >= 0) & (weight < float("inf"))).to(tl.int32) ^ 1, axis=0)
        )
        tl.store(sums + row * n + k + lane, total + tl.cumsum(weight, 0), mask=inside)
        total += tl.sum(weight, axis=0)
    if invalid != 0:
        tl.store(flag, 1)
    elif total == 0:
        tl.store(flag, 2)


@triton.jit
def draw_with_replacement(sums, out, seed, first, state, n, samples, BLOCK: tl.constexpr):
    """The first index whose sum exceeds a random part of the total."""
    row = tl.program_id(1).to(tl.int64)
    sample = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = row * samples + sample
    seed, first = stream(seed, first, state)
    target = _target(seed, first, at, tl.load(sums + row * n + n - 1))
    low = tl.zeros([BLOCK], tl.int64)
    high = low + (n - 1)
    left = n - 1
    while left > 0:  # halves [low, high]
        middle = (low + high) // 2
        beyond = tl.load(sums + row * n + middle) > target
        high = tl.where(beyond, middle, high)
        low = tl.where(beyond, low, tl.minimum(middle + 1, high))
        left = left // 2
    tl.store(out + at, low, mask=sample < samples)


@triton.jit
def draw_without_replacement(
    x, weights, out, flag, seed, first, state, n, samples, BLOCK: tl.constexpr
):
    """As above for one sample after the other, which loses its weight; `weights` is room for a float64 copy of x."""
    row = tl.program_id(0).to(tl.int64)
    weights += row * n
    seed, first = stream(seed, first, state)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([], tl.float64)
    invalid = tl.zeros([], tl.int32)
    for k in range(0, n, BLOCK):
        inside = lane < n - k
        weight = tl.load(x + row * n + k + lane, mask=inside, other=0.0).to(tl.float64)
        invalid = tl.maximum(
            invalid, tl.max(((weight >= 0) & (weight < float("inf"))).to(tl.int32) ^ 1, axis=0)
        )
        tl.store(weights + k + lane, weight, mask=inside)
        total += tl.sum(weight, axis=0)
    for sample in range(0, samples):
        tl.debug_barrier()  # weights are read by other threads than wrote them
        if invalid == 0 and total == 0:
            invalid += 2
        target = _target(seed, first, row * samples + sample, total)
        chosen = n
        last = tl.zeros([], tl.int32)
        before = tl.zeros([], tl.float64)
        for k in range(0, n, BLOCK):
            weight = tl.load(weights + k + lane, mask=lane < n - k, other=0.0)
            beyond = (before + tl.cumsum(weight, 0) > target) & (weight > 0)
            chosen = tl.minimum(chosen, tl.min(tl.where(beyond, k + lane, n), axis=0))
            last = tl.maximum(last, tl.max(tl.where(weight > 0, k + lane, 0), axis=0))
            before += tl.sum(weight, axis=0)
        chosen = tl.where(
            chosen < n, chosen, last
        )  # rounding may leave the target just above the sum
        tl.store(out + row * samples + sample, chosen.to(tl.int64))
        tl.store(weights + chosen, tl.zeros([], tl.float64))
        tl.debug_barrier()
        total = tl.zeros([], tl.float64)
        for k in range(0, n, BLOCK):
            total += tl.sum(tl.load(weights + k + lane, mask=lane < n - k, other=0.0), axis=0)
    if invalid != 0:
        tl.store(flag, tl.minimum(invalid, 2))


_DRAWS = {"seed": "i64", "first": "i64", "state": "i64"}
_WEIGHTS = ("float32", "bfloat16", "float16", "float64")

KERNELS = [
    Kernel(
        cumulate_weights,
        signature={"x": "*T", "sums": "*float64", "flag": "*int32", "n": "i32"},
        types={"T": _WEIGHTS},
        constants={"BLOCK": [2048]},
        num_warps=8,
    ),
    Kernel(
        draw_with_replacement,
        signature={"sums": "*float64", "out": "*int64", **_DRAWS, "n": "i32", "samples": "i32"},
        constants={"BLOCK": [256]},
    ),
    Kernel(
        draw_without_replacement,
        signature={
            "x": "*T",
            "weights": "*float64",
            "out": "*int64",
            "flag": "*int32",
            **_DRAWS,
            "n": "i32",
            "samples": "i32",
        },  # fmt: skip
        types={"T": _WEIGHTS},
        constants={"BLOCK": [2048]},
        num_warps=8,
    ),
]
