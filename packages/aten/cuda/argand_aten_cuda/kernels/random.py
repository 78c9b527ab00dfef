"""Random fills, dropout and sampling. A program fills BLOCK elements of a dense result; see docs/notes/random.md for the draws."""

import triton
import triton.language as tl

from argand_aten_cuda.conversion import convert
from argand_aten_cuda.kernel import FLOATING, REAL, Kernel
from argand_aten_cuda.random import (
    below,
    block_counters,
    block_draws,
    block_words,
    draw_at,
    interleave4,
    log_unit,
    normal_pair,
    normal_pair64,
    open_uniform,
    open_uniform64,
    philox,
    stream,
    uniform,
    uniform64,
    wide,
)


@triton.jit
def _first_element(BLOCK: tl.constexpr):
    return tl.program_id(0).to(tl.int64) * BLOCK


@triton.jit
def _store(out, value, start, n, BLOCK: tl.constexpr, TO_BOOL: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    result = convert(value, out.dtype.element_ty, TO_BOOL)
    if start + BLOCK <= n:  # without a mask the stores are wide, whatever n
        tl.store(out + start + lane, result)
    else:
        tl.store(out + start + lane, result, mask=lane < n - start)


@triton.jit
def _below(value, base, to, T: tl.constexpr):
    """`value` as T in [base, to), a range of float64 numbers."""
    wide = tl.float64 if T == tl.float64 else tl.float32
    result = convert(value, T, False)
    low, high = convert(tl.cast(base, wide), T, False), convert(tl.cast(to, wide), T, False)
    return tl.where(result.to(wide) < high.to(wide), result, low)


@triton.jit
def uniform_fill(out, n, seed, first, state, base, span, to, BLOCK: tl.constexpr):
    """base + span * u, u in [0, 1); what rounds to `to` or beyond becomes `base`."""
    start = _first_element(BLOCK)
    seed, first = stream(seed, first, state)
    if out.dtype.element_ty == tl.float64:
        value = base + span * uniform64(block_draws(seed, first, start, BLOCK))
    else:
        value = tl.cast(base, tl.float32) + tl.cast(span, tl.float32) * uniform(
            block_words(seed, first, start, BLOCK)
        )
    _store(out, _below(value, base, to, out.dtype.element_ty), start, n, BLOCK, False)


@triton.jit
def normal_fill(out, n, seed, first, state, mean, std, BLOCK: tl.constexpr):
    """mean + std * z, z normally distributed."""
    start = _first_element(BLOCK)
    seed, first = stream(seed, first, state)
    if out.dtype.element_ty == tl.float64:
        w0, w1, w2, w3 = philox(seed, block_counters(first, start, BLOCK // 2, 2))
        a, b = normal_pair64(wide(w0, w1), wide(w2, w3))
        value = mean + std * tl.interleave(a, b)
    else:
        w0, w1, w2, w3 = philox(seed, block_counters(first, start, BLOCK // 4, 4))
        a, b = normal_pair(w0, w1)
        c, d = normal_pair(w2, w3)
        value = tl.cast(mean, tl.float32) + tl.cast(std, tl.float32) * interleave4(a, b, c, d)
    _store(out, value, start, n, BLOCK, False)


@triton.jit
def _exponential(word, scale):
    return scale * log_unit(tl.minimum(open_uniform(word), 1 - 2.0**-24))


@triton.jit
def exponential_fill(out, n, seed, first, state, rate, scale, BLOCK: tl.constexpr):
    """-log(u) / rate, u in (0, 1); scale is -1 / rate."""
    start = _first_element(BLOCK)
    seed, first = stream(seed, first, state)
    if out.dtype.element_ty == tl.float64:
        u64 = open_uniform64(block_draws(seed, first, start, BLOCK))
        value = tl.maximum(-tl.log(u64), 2.0**-53) / rate
    else:
        scale = tl.cast(scale, tl.float32)
        a, b, c, d = philox(seed, block_counters(first, start, BLOCK // 4, 4))
        value = interleave4(  # of what is done: words are exchanged through shared memory
            _exponential(a, scale), _exponential(b, scale), _exponential(c, scale), _exponential(d, scale)
        )  # fmt: skip
    _store(out, value, start, n, BLOCK, False)


@triton.jit
def bernoulli_fill(out, n, seed, first, state, p, BLOCK: tl.constexpr):
    """1 with probability p, else 0."""
    start = _first_element(BLOCK)
    seed, first = stream(seed, first, state)
    value = (uniform(block_words(seed, first, start, BLOCK)) < tl.cast(p, tl.float32)).to(tl.int32)
    _store(out, value, start, n, BLOCK, False)


@triton.jit
def bernoulli_each(out, probabilities, n, seed, first, state, BLOCK: tl.constexpr):
    """1 with each element's own probability, else 0."""
    start = _first_element(BLOCK)
    seed, first = stream(seed, first, state)
    lane = tl.arange(0, BLOCK)
    p = tl.load(probabilities + start + lane, mask=lane < n - start, other=0.0).to(tl.float32)
    value = (uniform(block_words(seed, first, start, BLOCK)) < p).to(tl.int32)
    _store(out, value, start, n, BLOCK, False)


@triton.jit
def integer_fill(
    out, n, seed, first, state, base, span, BLOCK: tl.constexpr, TO_BOOL: tl.constexpr
):
    """base + an integer in [0, span), computed in 64 bits; span is unsigned."""
    start = _first_element(BLOCK)
    seed, first = stream(seed, first, state)
    value = base + below(block_draws(seed, first, start, BLOCK), span.to(tl.uint64)).to(tl.int64)
    _store(out, value, start, n, BLOCK, TO_BOOL)


@triton.jit
def shuffle_equal(order, keys, n, seed, first, state, BLOCK: tl.constexpr):
    """Shuffles `order` within each run of equal keys (sorted ones), from its front on as R. Fisher and F. Yates do, 1938: place i changes with one by its draw's lower word."""
    seed, first = stream(seed, first, state)
    at = _first_element(BLOCK) + tl.arange(0, BLOCK)
    key = tl.load(keys + at, mask=at < n, other=0)
    before = tl.load(keys + at - 1, mask=(at > 0) & (at < n), other=0)
    after = tl.load(keys + at + 1, mask=at + 1 < n, other=0)
    going = ((at == 0) | (before != key)) & (at + 1 < n) & (after == key)
    done = tl.full([], 1, tl.int64)  # elements of each run, whose first one's lane shuffles it
    while tl.max(going.to(tl.int32), 0) != 0:
        word = draw_at(seed, first, at + done) & 0xFFFFFFFF
        other = at + ((word * (done + 1).to(tl.uint64)) >> 32).to(tl.int64)
        a = tl.load(order + at + done, mask=going, other=0)
        b = tl.load(order + other, mask=going, other=0)
        tl.debug_barrier()
        tl.store(order + at + done, b, mask=going)
        tl.store(order + other, a, mask=going)
        tl.debug_barrier()
        done += 1
        more = going & (at + done < n)
        going = more & (tl.load(keys + at + done, mask=more, other=0) == key)


@triton.jit
def dropout_forward(x, out, mask, n, seed, first, state, threshold, scale, BLOCK: tl.constexpr):
    """mask = word >= threshold (of 2^32), out = x * (mask ? scale : 0)."""
    start = _first_element(BLOCK)
    seed, first = stream(seed, first, state)
    lane = tl.arange(0, BLOCK)
    keep = block_words(seed, first, start, BLOCK).to(tl.int64) >= threshold
    if x.dtype.element_ty == tl.float64:
        factor = tl.where(keep, scale, 0.0)
    else:
        factor = tl.where(keep, tl.cast(scale, tl.float32), 0.0)
    if start + BLOCK <= n:
        value = tl.load(x + start + lane)
        tl.store(out + start + lane, (value.to(factor.dtype) * factor).to(x.dtype.element_ty))
        tl.store(mask + start + lane, keep.to(tl.uint8))
    else:
        inside = lane < n - start
        value = tl.load(x + start + lane, mask=inside)
        tl.store(
            out + start + lane,
            (value.to(factor.dtype) * factor).to(x.dtype.element_ty),
            mask=inside,
        )
        tl.store(mask + start + lane, keep.to(tl.uint8), mask=inside)


_DRAWS = {"n": "i64", "seed": "i64", "first": "i64", "state": "i64"}


def _fill(function: object, parameters: tuple[str, ...]) -> Kernel:
    signature = {"out": "*T", **_DRAWS, **dict.fromkeys(parameters, "fp64")}
    return Kernel(
        function, signature, types={"T": FLOATING}, constants={"BLOCK": [1024]}, divisible=("out",)
    )


KERNELS = [
    _fill(uniform_fill, ("base", "span", "to")),
    _fill(normal_fill, ("mean", "std")),
    _fill(exponential_fill, ("rate", "scale")),
    Kernel(
        bernoulli_fill,
        signature={"out": "*T", **_DRAWS, "p": "fp64"},
        types={"T": REAL},
        constants={"BLOCK": [1024]},
        default={"T": ["float32", "bfloat16", "uint8"]},
        divisible=("out",),
    ),
    Kernel(
        bernoulli_each,
        signature={"out": "*T", "probabilities": "*T", **_DRAWS},
        types={"T": FLOATING},
        constants={"BLOCK": [1024]},
        divisible=("out", "probabilities"),
    ),
    Kernel(
        integer_fill,
        signature={"out": "*T", **_DRAWS, "base": "i64", "span": "i64"},
        types={"T": REAL},
        constants={"BLOCK": [1024], "TO_BOOL": [False]},
        default={"T": ["int64", "int32"]},
        divisible=("out",),
    ),
    Kernel(
        shuffle_equal,
        signature={"order": "*i64", "keys": "*i32", **_DRAWS},
        constants={"BLOCK": [256]},
        num_warps=2,
    ),
    Kernel(
        dropout_forward,
        signature={
            "x": "*T",
            "out": "*T",
            "mask": "*uint8",
            **_DRAWS,
            "threshold": "i64",
            "scale": "fp64",
        },
        types={"T": FLOATING},
        constants={"BLOCK": [2048]},
        divisible=("x", "out", "mask"),
    ),
]
