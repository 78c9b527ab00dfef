"""Recurrent layers: all steps of a layer in one launch.

A program takes one sequence of a batch, and reads the hidden states' weight in every step. What a step gives the next one goes through memory, where
the program's other threads read it.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import FLOATING, Kernel, Variant
from argand_aten_cuda.kernels._accumulate import widen
from argand_aten_cuda.math import argand_sigmoid, argand_tanh

LSTM = tl.constexpr(0)
GRU = tl.constexpr(1)
TANH = tl.constexpr(2)


@triton.jit
def _part(weight, gate, lane, inner, size, live):
    """A gate's rows of the weight, at the columns `inner`."""
    at = (gate * size + lane[:, None]) * size + inner[None, :]
    return widen(tl.load(weight + at, mask=live, other=0.0))


@triton.jit
def recurrent_layer(
    out, cells, gates, x, hidden, cell, weight, bias, steps, batch, size, first, step,
    MODE: tl.constexpr, BIAS: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr, ALIGNED: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """x and gates: (steps, batch, gates * size); out and cells: (steps, batch, size); hidden and cell: (batch, size); weight: (gates * size, size).

    Step i is at `first` + i * `step`. LSTM: gates are input, forget, candidate and output, of which `gates` takes the sums; GRU: reset, update and new, `gates`
    takes what the state gives them. Elman networks (TANH, or else relu) have one, which is not stored.
    """
    GATES: tl.constexpr = 4 if MODE == LSTM else 3 if MODE == GRU else 1
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    live = lane < size
    before = hidden + row * size
    if MODE == LSTM:
        c = widen(tl.load(cell + row * size + lane, mask=live, other=0.0))
    for i in range(steps):
        place = (first + i * step).to(tl.int64) * batch + row
        a0 = tl.zeros([BLOCK, DEPTH], ACC)
        if GATES > 1:
            a1 = tl.zeros([BLOCK, DEPTH], ACC)
            a2 = tl.zeros([BLOCK, DEPTH], ACC)
        if GATES > 3:
            a3 = tl.zeros([BLOCK, DEPTH], ACC)
        for k in range(0, size, DEPTH):
            inner = k + tl.arange(0, DEPTH)
            h = widen(tl.load(before + inner, mask=inner < size, other=0.0))[None, :]
            inside = live[:, None] & (inner < size)[None, :]
            a0 += _part(weight, 0, lane, inner, size, inside) * h
            if GATES > 1:
                a1 += _part(weight, 1, lane, inner, size, inside) * h
                a2 += _part(weight, 2, lane, inner, size, inside) * h
            if GATES > 3:
                a3 += _part(weight, 3, lane, inner, size, inside) * h
        given = x + place * (GATES * size) + lane
        kept = gates + place * (GATES * size) + lane
        x0 = widen(tl.load(given, mask=live, other=0.0))
        y0 = tl.sum(a0, 1)
        if GATES > 1:
            x1 = widen(tl.load(given + size, mask=live, other=0.0))
            x2 = widen(tl.load(given + 2 * size, mask=live, other=0.0))
            y1 = tl.sum(a1, 1)
            y2 = tl.sum(a2, 1)
        if MODE == LSTM:
            x3 = widen(tl.load(given + 3 * size, mask=live, other=0.0))
            g0 = widen((x0 + y0).to(gates.dtype.element_ty))
            g1 = widen((x1 + y1).to(gates.dtype.element_ty))
            g2 = widen((x2 + y2).to(gates.dtype.element_ty))
            g3 = widen((x3 + tl.sum(a3, 1)).to(gates.dtype.element_ty))
            c = argand_sigmoid(g1) * c + argand_sigmoid(g0) * argand_tanh(g2)
            c = widen(c.to(out.dtype.element_ty))
            new = argand_sigmoid(g3) * argand_tanh(c)
            tl.store(kept, g0.to(gates.dtype.element_ty), mask=live)
            tl.store(kept + size, g1.to(gates.dtype.element_ty), mask=live)
            tl.store(kept + 2 * size, g2.to(gates.dtype.element_ty), mask=live)
            tl.store(kept + 3 * size, g3.to(gates.dtype.element_ty), mask=live)
            tl.store(cells + place * size + lane, c.to(out.dtype.element_ty), mask=live)
        elif MODE == GRU:
            if BIAS:
                y0 += widen(tl.load(bias + lane, mask=live, other=0.0))
                y1 += widen(tl.load(bias + size + lane, mask=live, other=0.0))
                y2 += widen(tl.load(bias + 2 * size + lane, mask=live, other=0.0))
            y0 = widen(y0.to(gates.dtype.element_ty))
            y1 = widen(y1.to(gates.dtype.element_ty))
            y2 = widen(y2.to(gates.dtype.element_ty))
            candidate = argand_tanh(x2 + argand_sigmoid(x0 + y0) * y2)
            old = widen(tl.load(before + lane, mask=live, other=0.0))
            new = candidate + argand_sigmoid(x1 + y1) * (old - candidate)
            tl.store(kept, y0.to(gates.dtype.element_ty), mask=live)
            tl.store(kept + size, y1.to(gates.dtype.element_ty), mask=live)
            tl.store(kept + 2 * size, y2.to(gates.dtype.element_ty), mask=live)
        elif MODE == TANH:
            new = argand_tanh(x0 + y0)
        else:
            new = x0 + y0
            new = tl.where(new > 0, new, tl.where(new == new, 0.0, new))
        before = out + place * size
        tl.store(before + lane, new.to(out.dtype.element_ty), mask=live)
        tl.debug_barrier()  # the next step reads what other threads wrote


def _warps(v: Variant) -> int:
    """Measured on an H200: a thread keeps up to 128 sums of LSTMs."""
    if v["BLOCK"] == 256:
        return 16 if v["MODE"] >= 2 else 8
    return 4 if v["BLOCK"] == 128 else 8


KERNELS = [
    Kernel(
        recurrent_layer,
        {
            **dict.fromkeys("out cells gates x hidden cell weight bias".split(), "*T"),
            **dict.fromkeys("steps batch size first step".split(), "i32"),
            "ACC": "!A",
        },
        {"T": FLOATING},
        {"MODE": [0, 1, 2, 3], "BIAS": [False, True], "BLOCK": [64, 128, 256], "DEPTH": [32, 64], "ALIGNED": [True, False]},
        {"T": ["float32"]},
        derived=lambda v: {"A": "float64" if v["T"] == "float64" else "float32"},
        num_warps=_warps,
        num_stages=1,
        fp_fusion=True,
        divisible=lambda v: ("x", "hidden", "weight", "out", "gates", "cells", "cell", "size") if v["ALIGNED"] else (),
        wheel=lambda v: v["ALIGNED"] and v["MODE"] < 3 and v["BLOCK"] in (128, 256) and v["BIAS"] == (v["MODE"] == 1)
        and v["DEPTH"] == (64 if v["MODE"] == 2 and v["BLOCK"] == 128 else 32),
    ),
]  # fmt: skip
