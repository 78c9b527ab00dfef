"""Sampling by weights, and samplers that reject, in float64. `flag` becomes 1 where a weight is negative or not finite, 2 where a row's weights do not suffice."""

import triton
import triton.language as tl

from argand_aten_cuda.conversion import convert
from argand_aten_cuda.device_functions import argand_cos, argand_exp, argand_lgamma, argand_log
from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.random import draw_at, philox, stream, uniform64, wide


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


@triton.jit
def _number(seed, counter, k):
    """The k-th number in [0, 1) of each element, which has a counter of its own, two numbers a stream."""
    w0, w1, w2, w3 = philox(seed, counter, (k // 2).to(tl.uint32))
    return uniform64(tl.where(k % 2 == 0, wide(w0, w1), wide(w2, w3)))


@triton.jit
def _positive(seed, counter, k):
    """The same in (0, 1]."""
    return _number(seed, counter, k) + 1.1102230246251565e-16


@triton.jit
def _elements(x, n, seed, first, state, BLOCK: tl.constexpr):
    """A program's elements in float64, where they are, which exist, the seed and their counters."""
    seed, first = stream(seed, first, state)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=1.0).to(tl.float64)
    return value, at, at < n, seed, first + at


@triton.jit
def _store_numbers(out, at, value, live):
    if out.dtype.element_ty != tl.float64:
        value = value.to(tl.float32)
    tl.store(out + at, convert(value, out.dtype.element_ty, False), mask=live)


@triton.jit
def sample_gamma(x, out, n, seed, first, state, least, BLOCK: tl.constexpr):
    """Gamma-distributed numbers of the shapes x, at least `least` (G. Marsaglia, W. Tsang, "A simple method for generating gamma variables", 2000)."""
    shape, at, live, seed, counter = _elements(x, n, seed, first, state, BLOCK)
    going = live & (shape > 0) & (shape < float("inf"))
    value = tl.where(live & (shape == float("inf")), shape, 0.0)  # 0 where there is no such shape
    k = tl.zeros([BLOCK], tl.int32)
    raised = shape < 1
    safe = tl.where(going, shape, 1.0)
    scale = tl.where(raised, argand_exp(argand_log(_positive(seed, counter, k)) / safe), 1.0)
    k = raised.to(tl.int32)
    d = tl.where(raised, safe + 1, safe) - 0.3333333333333333
    c = 1 / tl.sqrt(9 * d)
    while tl.max(going.to(tl.int32), 0) != 0:
        turn = 6.283185307179586 * _number(seed, counter, k + 1)
        normal = tl.sqrt(-2 * argand_log(_positive(seed, counter, k))) * argand_cos(turn)
        y = 1 + c * normal
        v = tl.where(y > 0, y * y * y, 1.0)
        bound = 0.5 * normal * normal + d - d * v + d * argand_log(v)
        taken = going & (y > 0) & (argand_log(_positive(seed, counter, k + 2)) < bound)
        value = tl.where(taken, d * v * scale, value)
        going = going & (taken == 0)
        k += 3
    value = tl.where((shape > 0) & (value < least), least, value)
    _store_numbers(out, at, value, live)


@triton.jit
def sample_poisson(x, out, flag, n, seed, first, state, BLOCK: tl.constexpr):
    """Poisson-distributed numbers of the rates x: products of uniform numbers (D. Knuth) below 10, W. Hoermann's transformed rejection (1993) from there."""
    rate, at, live, seed, counter = _elements(x, n, seed, first, state, BLOCK)
    good = rate >= 0
    if tl.min(good.to(tl.int32), 0) == 0:
        tl.store(flag, 1)
    few = live & good & (rate > 0) & (rate < 10)
    many = live & (rate >= 10) & (rate < float("inf"))
    value = tl.where(rate == float("inf"), rate, 0.0)
    k = tl.zeros([BLOCK], tl.int32)
    limit = argand_exp(-tl.where(few, rate, 1.0))
    product = tl.full([BLOCK], 1.0, tl.float64)
    while tl.max(few.to(tl.int32), 0) != 0:
        product *= _number(seed, counter, k)
        few = few & (product > limit)
        value = tl.where(few, value + 1, value)
        k += 1
    k = tl.zeros([BLOCK], tl.int32)
    rate = tl.where(many, rate, 10.0)
    log_rate = argand_log(rate)
    b = 0.931 + 2.53 * tl.sqrt(rate)
    a = -0.059 + 0.02483 * b
    log_alpha = argand_log(1.1239 + 1.1328 / (b - 3.4))
    squeeze = 0.9277 - 3.6224 / (b - 2)
    while tl.max(many.to(tl.int32), 0) != 0:
        u = _number(seed, counter, k) - 0.5
        v = _positive(seed, counter, k + 1)
        us = 0.5 - tl.abs(u)
        found = tl.floor((2 * a / us + b) * u + rate + 0.43)
        inside = (found >= 0) & ((us >= 0.013) | (v <= us))
        counted = tl.where(inside, found, 0.0)
        bound = counted * log_rate - rate - argand_lgamma(counted + 1)
        below = argand_log(v) + log_alpha - argand_log(a / (us * us) + b) <= bound
        taken = many & (((us >= 0.07) & (v <= squeeze)) | (inside & below))
        value = tl.where(taken, found, value)
        many = many & (taken == 0)
        k += 2
    _store_numbers(out, at, value, live)


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
    Kernel(
        sample_gamma,
        signature={"x": "*T", "out": "*T", "n": "i64", **_DRAWS, "least": "fp64"},
        types={"T": _WEIGHTS},
        constants={"BLOCK": [256]},
        default={"T": ["float32"]},
    ),
    Kernel(
        sample_poisson,
        signature={"x": "*T", "out": "*T", "flag": "*int32", "n": "i64", **_DRAWS},
        types={"T": _WEIGHTS},
        constants={"BLOCK": [256]},
        default={"T": ["float32"]},
    ),
]
