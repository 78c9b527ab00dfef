"""What generated reductions and scans share.

A reduction's program takes Y outputs and walks the elements that are reduced to them, X at a time. Constants of its kernel: STAGE 0: all
elements, to the result; 1: a part of them, to accumulators; 2: accumulators, to the result. LAYOUT 0: neighbours in memory are reduced
together; 1: neighbouring outputs are neighbours in memory; 2: neither. D: dimensions, at most, of outputs and of what is reduced.
ALIGNED: the address, the strides but the one of 1, and the size of the dimension of that stride (where outputs run along it, or it is not
the only reduced one) are multiples of 16 bytes, so that whole vectors are loaded.

A scan's program takes Y rows, X elements of each at a time; LAYOUT and ALIGNED are said of input and output. STAGE 0: whole rows; 1: the
totals of chunks, to `part`; 2: chunks, each from the totals of those before it, which are at most 2048 // Y.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel, Variant
from argand_aten_cuda.usual import is_usual

_COUNTS = ("bool", "int64")  # of the wheel only along rows
# LAYOUT -> (Y, X) that are compiled into the wheel.
TILES: Mapping[int, tuple[tuple[int, int], ...]] = {
    0: ((1, 2048), (1, 8192), (16, 64), (64, 32), (256, 8)),
    1: ((64, 16),),
    2: ((32, 32),),
}
SCAN_TILES: Mapping[int, tuple[tuple[int, int], ...]] = {
    0: ((1, 2048), (1, 8192), (16, 64)),
    1: ((64, 16),),
    2: ((1, 2048), (16, 64)),
}


@triton.jit
def rows(outputs, count, chunk, Y: tl.constexpr):
    """This program's outputs, which of them exist, and the range of elements that it takes in."""
    y = tl.program_id(0).to(outputs.dtype) * Y + tl.arange(0, Y)
    begin = tl.program_id(1).to(outputs.dtype) * chunk
    # begin + chunk may be beyond what the type of sizes holds
    return y, y < outputs, begin, begin + tl.minimum(chunk, count - begin)


@triton.jit
def place(index, size1, size2, s0, s1, s2, D: tl.constexpr, UNIT: tl.constexpr):
    """The offset of flat indices over up to three dimensions, of which size1 and size2 are the inner ones; UNIT: s0 is 1."""
    if D == 1:
        if UNIT:
            return index
        else:
            return index * s0
    else:
        i0 = index % size1
        rest = index // size1
        outer = (rest % size2) * s1 + (rest // size2) * s2
        if UNIT:
            return i0 + outer
        else:
            return i0 * s0 + outer


@triton.jit
def tile(base, steps, live, inside, LAYOUT: tl.constexpr, VECTOR: tl.constexpr):
    """Offsets of a tile (rows, elements) and which are inside; VECTOR neighbours in memory are aligned and all inside or none."""
    at = base[:, None] + steps[None, :]
    mask = live[:, None] & inside[None, :]
    if VECTOR > 1:
        if LAYOUT == 0:
            at = tl.max_contiguous(tl.multiple_of(at, [1, VECTOR]), [1, VECTOR])
            mask = tl.max_constancy(mask, [1, VECTOR])
        else:
            at = tl.max_contiguous(tl.multiple_of(at, [VECTOR, 1]), [VECTOR, 1])
            mask = tl.max_constancy(mask, [VECTOR, 1])
    return at, mask


@triton.jit
def vector_end(begin, end, LAYOUT: tl.constexpr, VECTOR: tl.constexpr):
    """Where the last whole vector ends."""
    if LAYOUT == 0 and VECTOR > 1:
        end -= (end - begin) % VECTOR
    return end


@triton.jit
def start(init: tl.constexpr, ACC: tl.constexpr):
    """The accumulator's start value."""
    if init == "lowest":
        if ACC.is_floating():
            return tl.full((), float("-inf"), ACC)
        elif ACC.is_int_unsigned():
            return tl.full((), 0, ACC)
        else:
            return tl.full((), -(2 ** (ACC.primitive_bitwidth - 1)), ACC)
    elif init == "highest":
        if ACC.is_floating():
            return tl.full((), float("inf"), ACC)
        elif ACC.is_int_unsigned():
            return tl.full((), 2**ACC.primitive_bitwidth - 1, ACC)
        else:
            return tl.full((), 2 ** (ACC.primitive_bitwidth - 1) - 1, ACC)
    else:
        return tl.full((), init, ACC)


@triton.jit
def element(x, ACC: tl.constexpr):
    """A loaded element as `map` wants it: of the accumulator's dtype, or as it is where that is bool (int8 here)."""
    if ACC == tl.int8 and x.dtype != tl.int8:
        if x.dtype == tl.float16 or x.dtype == tl.bfloat16:
            return x.to(tl.float32)
        elif x.dtype == tl.int1:
            return x.to(tl.int8)
        else:
            return x
    else:
        return x.to(ACC)


@triton.jit
def accumulated(x, ACC: tl.constexpr):
    return x.to(ACC)


@triton.jit
def last(x, X: tl.constexpr):
    """The last column of a tile of X."""
    return tl.sum(tl.where(tl.arange(0, X)[None, :] == X - 1, x, 0), 1).to(x.dtype)


@triton.jit
def store(pointers, x, mask):
    if pointers.dtype.element_ty == tl.int1:
        tl.store(pointers, x != 0, mask=mask)
    else:
        tl.store(pointers, x.to(pointers.dtype.element_ty), mask=mask)


def _types(accumulators: Mapping[str, tuple[str, str]]) -> Any:
    def derived(variant: Variant) -> dict[str, str]:
        acc, out = accumulators[variant["T"]]
        # Bools are accumulated as bytes of 0 or 1.
        return {"A": "int8" if acc == "bool" else acc, "O": out}

    return derived


def _warps(v: Variant) -> int:
    return 8 if v["X"] == 8192 else 4


def _divisible(v: Variant) -> tuple[str, ...]:
    return ("x",) if v["ALIGNED"] else ()


def _defaults(accumulators: Mapping[str, tuple[str, str]]) -> dict[str, Sequence[str]]:
    """What the wheel holds: masks where the result is one, else the usual floats, and where bools are counted those and int64."""
    if all(out == "bool" for dtype, (_, out) in accumulators.items() if dtype != "uint8"):
        return {"T": ("bool",), "I": ("i32",)}
    counts = _COUNTS if accumulators.get("bool", ("", ""))[1] == "int64" else ()
    return {"T": [d for d in ("float32", "bfloat16", *counts) if d in accumulators], "I": ("i32",)}


def _reduction_in_wheel(v: Variant) -> bool:
    tiles = TILES[v["LAYOUT"]]
    if (v["Y"], v["X"]) not in tiles or v["LAYOUT"] == 2:
        return False
    if (
        v["T"] in _COUNTS
        and (v["LAYOUT"] or v["D"] > 1)
        or (v["D"] > 1 and v["ALIGNED"] and v["LAYOUT"])
    ):
        return False
    if v["STAGE"] == 0:
        return bool(v["X"] != 8192)
    if v["STAGE"] == 1:
        return bool(v["D"] == 1 and (v["Y"], v["X"]) in tiles[:2] and v["ALIGNED"])
    return bool(
        v["D"] == 1 and v["LAYOUT"] == 0 and (v["Y"], v["X"]) == (1, 2048) and not v["ALIGNED"]
    )


def kernel(function: Any, accumulators: Mapping[str, tuple[str, str]]) -> Kernel:
    """A reduction's kernel; `accumulators`: dtype -> (accumulator's, result's)."""
    signature = {
        "out": "*O",
        "part": "*A",
        "x": "*T",
        "outputs": "I",
        "count": "I",
        "chunk": "I",
        "total": "fp64",
    }
    signature |= dict.fromkeys("k1 k2 kx0 kx1 kx2 ko0 ko1 ko2 r1 r2 rx0 rx1 rx2".split(), "I")
    return Kernel(
        function,
        {**signature, "ACC": "!A"},
        {"T": tuple(accumulators), "I": ("i32", "i64")},
        {
            "STAGE": (0, 1, 2),
            "LAYOUT": (0, 1, 2),
            "D": (1, 3),
            "Y": sorted({y for t in TILES.values() for y, _ in t}),
            "X": sorted({x for t in TILES.values() for _, x in t}),
            "ALIGNED": (False, True),
        },
        _defaults(accumulators),
        _types(accumulators),
        num_warps=_warps,
        divisible=_divisible,
        wheel=lambda v: is_usual(function.__name__) and _reduction_in_wheel(v),
    )


def _scan_in_wheel(v: Variant) -> bool:
    if v["STAGE"] or v["LAYOUT"] == 2 or (v["T"] in _COUNTS and (v["LAYOUT"] or v["T"] == "bool")):
        return False
    return (v["Y"], v["X"]) in SCAN_TILES[v["LAYOUT"]] and v["X"] != 8192


def scan_kernel(function: Any, accumulators: Mapping[str, tuple[str, str]]) -> Kernel:
    """A scan's kernel; `accumulators` as above."""
    signature = {"out": "*O", "part": "*A", "x": "*T", "rows": "I", "count": "I", "chunk": "I"}
    signature |= dict.fromkeys("k1 k2 kx0 kx1 kx2 ko0 ko1 ko2 rx ro".split(), "I")
    return Kernel(
        function,
        {**signature, "ACC": "!A"},
        {"T": tuple(accumulators), "I": ("i32", "i64")},
        {
            "STAGE": (0, 1, 2),
            "LAYOUT": (0, 1, 2),
            "Y": sorted({y for t in SCAN_TILES.values() for y, _ in t}),
            "X": sorted({x for t in SCAN_TILES.values() for _, x in t}),
            "ALIGNED": (False, True),
        },
        _defaults(accumulators),
        _types(accumulators),
        num_warps=_warps,
        divisible=lambda v: ("x", "out") if v["ALIGNED"] else (),
        wheel=lambda v: is_usual(function.__name__) and _scan_in_wheel(v),
    )
