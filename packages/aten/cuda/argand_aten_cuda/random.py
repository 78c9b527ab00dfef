"""Random numbers on Philox 4x32-10 for kernels of this package and for generated programs (docs/notes/random.md).

The element at row-major position i draws word i % 4 of counter first + i // 4; 64-bit draws take two words, high before low, of
counter first + i // 2. `seed` and `first` are 64-bit integers. float32 numbers are made of additions, multiplications and square
roots that are rounded one by one, so compile with `enable_fp_fusion=False`: they then have the bits of every other device.

J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import triton
import triton.language as tl


@triton.jit
def philox(seed, counter, above=0):
    """The four uint32 words of each 64-bit counter under one seed; `above`: the third of Philox's four counter words, of another stream."""
    c0 = counter.to(tl.uint32)
    c1 = (counter >> 32).to(tl.uint32)
    c2 = tl.zeros_like(c0) + above
    c3 = tl.zeros_like(c0)
    k0 = seed.to(tl.uint32)
    k1 = (seed >> 32).to(tl.uint32)
    for _ in tl.static_range(10):
        p0 = c0.to(tl.uint64) * 0xD2511F53
        p1 = c2.to(tl.uint64) * 0xCD9E8D57
        c0 = (p1 >> 32).to(tl.uint32) ^ c1 ^ k0
        c1 = p1.to(tl.uint32)
        c2 = (p0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c3 = p0.to(tl.uint32)
        k0 = (k0.to(tl.uint64) + 0x9E3779B9).to(tl.uint32)
        k1 = (k1.to(tl.uint64) + 0xBB67AE85).to(tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def stream(seed, first, state):
    """The seed and the first counter; in a captured graph those of the replay, {seed, added to the counter} at address `state`."""
    if state != 0:
        replay = state.to(tl.int64).to(tl.pointer_type(tl.int64))
        seed = tl.load(replay)
        first += tl.load(replay + 1)
    return seed, first


# ---- words of elements ---------------------------------------------------------------------------------------------------
@triton.jit
def interleave4(a, b, c, d):
    """[a0, b0, c0, d0, a1, ...]."""
    return tl.interleave(tl.interleave(a, c), tl.interleave(b, d))


@triton.jit
def block_counters(first, start, COUNT: tl.constexpr, PER_COUNTER: tl.constexpr):
    """COUNT counters from the one of element `start` on, a multiple of PER_COUNTER."""
    return first + start // PER_COUNTER + tl.arange(0, COUNT)


@triton.jit
def block_words(seed, first, start, BLOCK: tl.constexpr):
    """The words of elements start to start + BLOCK; both multiples of 4."""
    w0, w1, w2, w3 = philox(seed, block_counters(first, start, BLOCK // 4, 4))
    return interleave4(w0, w1, w2, w3)


@triton.jit
def wide(high, low):
    """A 64-bit draw of two words."""
    return (high.to(tl.uint64) << 32) | low.to(tl.uint64)


@triton.jit
def block_draws(seed, first, start, BLOCK: tl.constexpr):
    """The 64-bit draws of elements start to start + BLOCK; both multiples of 2."""
    w0, w1, w2, w3 = philox(seed, block_counters(first, start, BLOCK // 2, 2))
    return tl.interleave(wide(w0, w1), wide(w2, w3))


@triton.jit
def word_at(seed, first, index):
    """The word of the element at any position; four times the work of `block_words`."""
    index = index.to(tl.int64)
    w0, w1, w2, w3 = philox(seed, first + index // 4)
    low = tl.where(index % 2 == 0, w0, w1)
    high = tl.where(index % 2 == 0, w2, w3)
    return tl.where(index % 4 < 2, low, high)


@triton.jit
def draw_at(seed, first, index):
    """The 64-bit draw of the element at any position."""
    index = index.to(tl.int64)
    w0, w1, w2, w3 = philox(seed, first + index // 2)
    return tl.where(index % 2 == 0, wide(w0, w1), wide(w2, w3))


# ---- distributions -------------------------------------------------------------------------------------------------------
@triton.jit
def uniform(word):
    """float32 in [0, 1): the upper 24 bits."""
    return (word >> 8).to(tl.int32).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def open_uniform(word):
    """float32 in (0, 1]."""
    return ((word >> 8).to(tl.int32).to(tl.float32) + 1.0) * 5.9604644775390625e-08


@triton.jit
def uniform64(draw):
    """float64 in [0, 1): the upper 53 bits."""
    return (draw >> 11).to(tl.int64).to(tl.float64) * 1.1102230246251565e-16


@triton.jit
def open_uniform64(draw):
    """float64 in (0, 1]."""
    return ((draw >> 11).to(tl.int64).to(tl.float64) + 1.0) * 1.1102230246251565e-16


@triton.jit
def log_unit(u):
    """log of u in [2^-24, 1]: u = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), and a minimax polynomial."""
    bits = u.to(tl.int32, bitcast=True)
    e = (bits >> 23) - 126
    m = ((bits & 0x7FFFFF) | 0x3F000000).to(tl.float32, bitcast=True)
    small = m < 0.70710678
    m = tl.where(small, m + m, m)
    e = tl.where(small, e - 1, e)
    f = m - 1.0
    z = f * f
    p = f * 0.067466244 - 0.116756462
    p = p * f + 0.118881665
    p = p * f - 0.12405590
    p = p * f + 0.142195523
    p = p * f - 0.16667996
    p = p * f + 0.200021192
    p = p * f - 0.25000009
    p = p * f + 0.333333135
    return (f - 0.5 * z) + f * z * p + e.to(tl.float32) * 0.69314718


@triton.jit
def cos_turns(t):
    """cos(2 pi t) of t in [-1/4, 1): folded to |t| <= 1/4, then a minimax polynomial."""
    t = tl.where(t > 0.5, t - 1.0, t)
    a = tl.where(t < 0, -t, t)
    far = a > 0.25
    a = tl.where(far, 0.5 - a, a)
    s = a * a
    p = s * -25.0067978 + 60.1482048
    p = p * s - 85.4538345
    p = p * s + 64.9393540
    p = p * s - 19.7392082
    c = 1.0 + s * p
    return tl.where(far, -c, c)


@triton.jit
def normal_pair(word, neighbour):
    """Two float32 normal numbers of the words of an even element and the next: G. Box, M. Muller, 1958."""
    r = tl.sqrt_rn(-2.0 * log_unit(open_uniform(word)))
    v = uniform(neighbour)
    return r * cos_turns(v), r * cos_turns(v - 0.25)


@triton.jit
def normal_pair64(draw, neighbour):
    """Two float64 normal numbers of two 64-bit draws."""
    r = tl.sqrt(-2.0 * tl.log(open_uniform64(draw)))
    a = 6.283185307179586 * uniform64(neighbour)
    return r * tl.cos(a), r * tl.sin(a)


@triton.jit
def normal_at(seed, first, index):
    """The float32 normal number of the element at any position."""
    index = index.to(tl.int64)
    w0, w1, w2, w3 = philox(seed, first + index // 4)
    head = index % 4 < 2
    r = tl.sqrt_rn(-2.0 * log_unit(open_uniform(tl.where(head, w0, w2))))
    v = uniform(tl.where(head, w1, w3))
    return r * cos_turns(tl.where(index % 2 == 0, v, v - 0.25))


@triton.jit
def below(draw, span):
    """Integers in [0, span) of 64-bit draws: the high half of the product."""
    return tl.umulhi(draw, span)
