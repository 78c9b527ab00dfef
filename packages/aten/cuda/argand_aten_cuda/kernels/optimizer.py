"""Kernels over lists of tensors: optimizer steps, unscaling of gradients, norms. One launch serves all tensors of a dtype.

`table` holds ROW words for each tensor: up to six addresses, then the number of elements. `chunks` says what each program does:
tensor << 32 | chunk, a chunk being CHUNK elements. Parameters named like_* give the types that addresses point to, and are never read."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import widen

ROW = tl.constexpr(8)
_N = tl.constexpr(6)  # the word with the number of elements


@triton.jit
def address(table, tensor, word: tl.constexpr, like, ALIGNED: tl.constexpr):
    """The address in a word of a tensor's row, as a pointer of like's type."""
    pointer = tl.load(table + tensor * ROW + word).to(like.dtype)
    if ALIGNED:
        pointer = tl.multiple_of(pointer, [16])
    return pointer


@triton.jit
def read(pointer, at, left, FULL: tl.constexpr):
    if FULL:
        return widen(tl.load(pointer + at))
    else:
        return widen(tl.load(pointer + at, mask=at < left, other=0.0))


@triton.jit
def write(pointer, at, value, left, FULL: tl.constexpr):
    if FULL:
        tl.store(pointer + at, value.to(pointer.dtype.element_ty))
    else:
        tl.store(pointer + at, value.to(pointer.dtype.element_ty), mask=at < left)


@triton.jit
def chunk_of(table, chunks, CHUNK: tl.constexpr):
    """This program's tensor, the offset of its chunk, and the number of elements from there to the tensor's end."""
    word = tl.load(chunks + tl.program_id(0))
    tensor = word >> 32
    start = (word & 0xFFFFFFFF) * CHUNK
    return tensor, start, tl.load(table + tensor * ROW + _N) - start


@triton.jit
def adam_prepare(
    table,
    corrections,
    like_step,
    found,
    lr,
    log_beta1,
    log_beta2,
    n,
    FOUND: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Counts every tensor's step up, and computes lr / (1 - beta1^step) and 1 / sqrt(1 - beta2^step)."""
    tensor = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = tensor < n
    take = True
    if FOUND:
        take = tl.load(found) == 0.0
    if take:
        at = tl.load(table + tensor * ROW + 5, mask=inside, other=0).to(like_step.dtype)
        step = tl.load(at, mask=inside, other=1.0) + 1.0
        tl.store(at, step, mask=inside)
        step = step.to(tl.float64)
        tl.store(corrections + 2 * tensor, lr / (1.0 - tl.exp(step * log_beta1)), mask=inside)
        tl.store(
            corrections + 2 * tensor + 1, 1.0 / tl.sqrt(1.0 - tl.exp(step * log_beta2)), mask=inside
        )


@triton.jit
def adam_block(
    p,
    g,
    m,
    v,
    top,
    at,
    left,
    rate,
    scale,
    divisor,
    beta1,
    rest1,
    beta2,
    rest2,
    shrink,
    decay,
    eps,
    AMSGRAD: tl.constexpr,
    MAXIMIZE: tl.constexpr,
    SCALED: tl.constexpr,
    FULL: tl.constexpr,
):
    x = read(p, at, left, FULL)
    grad = read(g, at, left, FULL)
    if SCALED:
        grad = grad / divisor
        write(g, at, grad, left, FULL)
    if MAXIMIZE:
        grad = -grad
    grad = grad + decay * x
    mean = beta1 * read(m, at, left, FULL) + rest1 * grad
    square = beta2 * read(v, at, left, FULL) + rest2 * grad * grad
    write(m, at, mean, left, FULL)
    write(v, at, square, left, FULL)
    if AMSGRAD:
        square = tl.maximum(read(top, at, left, FULL), square)
        write(top, at, square, left, FULL)
    write(p, at, x * shrink - rate * mean / (tl.sqrt(square) * scale + eps), left, FULL)


@triton.jit
def adam_step(
    table, chunks, corrections, like_p, like_state, grad_scale, found,
    beta1, rest1, beta2, rest2, shrink, decay, eps,
    AMSGRAD: tl.constexpr, MAXIMIZE: tl.constexpr, SCALED: tl.constexpr, FOUND: tl.constexpr, ALIGNED: tl.constexpr,
    CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adam (Kingma and Ba, 2014), AdamW (Loshchilov and Hutter, 2017). Words: parameter, gradient, means, squares, largest squares."""
    take = True
    if FOUND:
        take = tl.load(found) == 0.0
    if take:
        tensor, start, left = chunk_of(table, chunks, CHUNK)
        p = address(table, tensor, 0, like_p, ALIGNED) + start
        g = address(table, tensor, 1, like_p, ALIGNED) + start
        m = address(table, tensor, 2, like_state, ALIGNED) + start
        v = address(table, tensor, 3, like_state, ALIGNED) + start
        top = m
        if AMSGRAD:
            top = address(table, tensor, 4, like_state, ALIGNED) + start
        rate = tl.load(corrections + 2 * tensor).to(beta1.dtype)
        scale = tl.load(corrections + 2 * tensor + 1).to(beta1.dtype)
        divisor = beta1
        if SCALED:
            divisor = tl.load(grad_scale).to(beta1.dtype)
        if left >= CHUNK:
            for offset in range(0, CHUNK, BLOCK):
                at = offset + tl.arange(0, BLOCK)
                adam_block(
                    p, g, m, v, top, at, left, rate, scale, divisor, beta1, rest1, beta2, rest2, shrink, decay, eps,
                    AMSGRAD, MAXIMIZE, SCALED, True,
                )  # fmt: skip
        else:
            for offset in range(0, CHUNK, BLOCK):
                if offset < left:
                    at = offset + tl.arange(0, BLOCK)
                    adam_block(
                        p, g, m, v, top, at, left, rate, scale, divisor, beta1, rest1, beta2, rest2, shrink, decay, eps,
                        AMSGRAD, MAXIMIZE, SCALED, False,
                    )  # fmt: skip


@triton.jit
def sgd_block(
    p, g, buffer, at, left, divisor, lr, decay, momentum, keep,
    MOMENTUM: tl.constexpr, NESTEROV: tl.constexpr, FIRST: tl.constexpr, MAXIMIZE: tl.constexpr, SCALED: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    x = read(p, at, left, FULL)
    grad = read(g, at, left, FULL)
    if SCALED:
        grad = grad / divisor
        write(g, at, grad, left, FULL)
    if MAXIMIZE:
        grad = -grad
    grad = grad + decay * x
    if MOMENTUM:
        velocity = grad
        if not FIRST:
            velocity = momentum * read(buffer, at, left, FULL) + keep * grad
        write(buffer, at, velocity, left, FULL)
        if NESTEROV:
            grad = grad + momentum * velocity
        else:
            grad = velocity
    write(p, at, x - lr * grad, left, FULL)


@triton.jit
def sgd_step(
    table, chunks, like_p, grad_scale, found, lr, decay, momentum, keep,
    MOMENTUM: tl.constexpr, NESTEROV: tl.constexpr, FIRST: tl.constexpr, MAXIMIZE: tl.constexpr,
    SCALED: tl.constexpr, FOUND: tl.constexpr, ALIGNED: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Stochastic gradient descent with momentum (Sutskever et al., 2013). Words: parameter, gradient, momentum buffer."""
    take = True
    if FOUND:
        take = tl.load(found) == 0.0
    if take:
        tensor, start, left = chunk_of(table, chunks, CHUNK)
        p = address(table, tensor, 0, like_p, ALIGNED) + start
        g = address(table, tensor, 1, like_p, ALIGNED) + start
        buffer = g
        if MOMENTUM:
            buffer = address(table, tensor, 2, like_p, ALIGNED) + start
        divisor = lr
        if SCALED:
            divisor = tl.load(grad_scale).to(lr.dtype)
        if left >= CHUNK:
            for offset in range(0, CHUNK, BLOCK):
                at = offset + tl.arange(0, BLOCK)
                sgd_block(
                    p, g, buffer, at, left, divisor, lr, decay, momentum, keep, MOMENTUM, NESTEROV, FIRST, MAXIMIZE, SCALED, True,
                )  # fmt: skip
        else:
            for offset in range(0, CHUNK, BLOCK):
                if offset < left:
                    at = offset + tl.arange(0, BLOCK)
                    sgd_block(
                        p, g, buffer, at, left, divisor, lr, decay, momentum, keep, MOMENTUM, NESTEROV, FIRST, MAXIMIZE, SCALED, False,
                    )  # fmt: skip


@triton.jit
def scale_block(p, at, left, factor, MARK: tl.constexpr, FULL: tl.constexpr):
    """Multiplies elements; 1 if one of them was infinite or NaN (where MARK asks)."""
    value = read(p, at, left, FULL)
    write(p, at, value * factor, left, FULL)
    bad = 0
    if MARK:
        bad = tl.max(tl.where(tl.abs(value) < float("inf"), 0, 1), 0)
    return bad


@triton.jit
def scale_all(
    table,
    chunks,
    like_p,
    factor,
    found,
    MARK: tl.constexpr,
    ALIGNED: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Multiplies all elements by factor[0]. MARK: found[0] becomes 1 if one of them was infinite or NaN."""
    tensor, start, left = chunk_of(table, chunks, CHUNK)
    p = address(table, tensor, 0, like_p, ALIGNED) + start
    by = widen(tl.load(factor).to(like_p.dtype.element_ty)) if not MARK else widen(tl.load(factor))
    bad = 0
    if left >= CHUNK:
        for offset in range(0, CHUNK, BLOCK):
            bad += scale_block(p, offset + tl.arange(0, BLOCK), left, by, MARK, True)
    else:
        for offset in range(0, CHUNK, BLOCK):
            if offset < left:
                bad += scale_block(p, offset + tl.arange(0, BLOCK), left, by, MARK, False)
    if MARK:
        if bad > 0:
            tl.store(found, 1.0)


@triton.jit
def measured(value, KIND: tl.constexpr):
    """What is added up (KIND 1: absolute values, 2: squares) or whose largest is taken (0)."""
    if KIND == 2:
        return value * value
    else:
        return tl.abs(value)


@triton.jit
def larger(a, b):
    """The larger of two; NaN if one of them is."""
    return tl.where(a != a, a, tl.where(b != b, b, tl.maximum(a, b)))


@triton.jit
def norm_chunks(
    table,
    chunks,
    like_p,
    partial,
    KIND: tl.constexpr,
    ALIGNED: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """partial[i]: the sum of absolute values (KIND 1) or squares (2), or the largest absolute value (0), of chunk i."""
    tensor, start, left = chunk_of(table, chunks, CHUNK)
    p = address(table, tensor, 0, like_p, ALIGNED) + start
    acc = tl.zeros([BLOCK], partial.dtype.element_ty)
    if left >= CHUNK:
        for offset in range(0, CHUNK, BLOCK):
            value = measured(read(p, offset + tl.arange(0, BLOCK), left, True), KIND)
            acc = larger(acc, value) if KIND == 0 else acc + value
    else:
        for offset in range(0, CHUNK, BLOCK):
            if offset < left:
                value = measured(read(p, offset + tl.arange(0, BLOCK), left, False), KIND)
                acc = larger(acc, value) if KIND == 0 else acc + value
    total = tl.reduce(acc, 0, larger) if KIND == 0 else tl.sum(acc, 0)
    tl.store(partial + tl.program_id(0), total)


@triton.jit
def norm_total(partial, result, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """The norm from its chunks; one program."""
    acc = tl.zeros([BLOCK], partial.dtype.element_ty)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(partial + at, mask=at < n, other=0.0)
        acc = larger(acc, value) if KIND == 0 else acc + value
    total = tl.reduce(acc, 0, larger) if KIND == 0 else tl.sum(acc, 0)
    if KIND == 2:
        total = tl.sqrt(total)
    tl.store(result, total.to(result.dtype.element_ty))


@triton.jit
def scale_update(scale, tracker, found, growth, backoff, interval):
    """A gradient scaler's next scale and its count of good steps; one program."""
    value = tl.load(scale)
    good = tl.load(tracker) + 1
    grown = value * growth
    if tl.load(found) != 0.0:
        tl.store(scale, value * backoff)
        tl.store(tracker, 0)
    else:
        if good >= interval:
            if tl.abs(grown) < float("inf"):
                tl.store(scale, grown)
            good = 0
        tl.store(tracker, good)


_FLOATS = ["float32", "bfloat16", "float16", "float64"]
_WORDS = {"table": "*int64", "chunks": "*int64"}
_SIZES = {"CHUNK": [32768], "BLOCK": [1024]}
_BOTH = [0, 1]


def _usual_adam(v):
    plain = not v["AMSGRAD"] and not v["MAXIMIZE"] and v["SCALED"] == v["FOUND"] and v["ALIGNED"]
    return plain and (v["S"] == v["T"] or v["S"] == "float32")


def _usual_sgd(v):
    plain = not v["MAXIMIZE"] and v["SCALED"] == v["FOUND"] and v["ALIGNED"]
    return plain and not v["NESTEROV"] and v["MOMENTUM"] >= v["FIRST"]


KERNELS = [
    Kernel(
        adam_prepare,
        {"table": "*int64", "corrections": "*float64", "like_step": "*float32", "found": "*float32", "lr": "fp64",
         "log_beta1": "fp64", "log_beta2": "fp64", "n": "i32"},
        {}, {"FOUND": _BOTH, "BLOCK": [128]},
    ),
    Kernel(
        adam_step,
        {**_WORDS, "corrections": "*float64", "like_p": "*T", "like_state": "*S", "grad_scale": "*float32", "found": "*float32",
         **dict.fromkeys(("beta1", "rest1", "beta2", "rest2", "shrink", "decay", "eps"), "=T")},
        {"T": _FLOATS, "S": _FLOATS},
        {"AMSGRAD": _BOTH, "MAXIMIZE": _BOTH, "SCALED": _BOTH, "FOUND": _BOTH, "ALIGNED": _BOTH, **_SIZES},
        wheel=_usual_adam,
    ),
    Kernel(
        sgd_step,
        {**_WORDS, "like_p": "*T", "grad_scale": "*float32", "found": "*float32",
         **dict.fromkeys(("lr", "decay", "momentum", "keep"), "=T")},
        {"T": _FLOATS},
        {"MOMENTUM": _BOTH, "NESTEROV": _BOTH, "FIRST": _BOTH, "MAXIMIZE": _BOTH, "SCALED": _BOTH, "FOUND": _BOTH, "ALIGNED": _BOTH,
         **_SIZES},
        wheel=_usual_sgd,
    ),
    Kernel(
        scale_all, {**_WORDS, "like_p": "*T", "factor": "*F", "found": "*float32"}, {"T": _FLOATS, "F": _FLOATS},
        {"MARK": _BOTH, "ALIGNED": _BOTH, **_SIZES}, wheel=lambda v: v["ALIGNED"] and v["F"] in ("float32", v["T"]),
    ),
    Kernel(
        norm_chunks, {**_WORDS, "like_p": "*T", "partial": "*A"}, {"T": _FLOATS, "A": ["float32", "float64"]},
        {"KIND": [0, 1, 2], "ALIGNED": _BOTH, **_SIZES}, {"A": ["float32"]},
        wheel=lambda v: v["KIND"] == 2 and v["ALIGNED"] == 1,
    ),
    Kernel(
        norm_total, {"partial": "*A", "result": "*T", "n": "i32"}, {"T": _FLOATS, "A": ["float32", "float64"]},
        {"KIND": [0, 1, 2], "BLOCK": [1024]}, {"A": ["float32"]}, wheel=lambda v: v["KIND"] == 2,
    ),
    Kernel(
        scale_update,
        {"scale": "*float32", "tracker": "*int32", "found": "*float32", "growth": "fp32", "backoff": "fp32", "interval": "i32"},
        num_warps=1,
    ),
]  # fmt: skip
