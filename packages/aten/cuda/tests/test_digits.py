"""The stable order of a block's digits: what its PTX computes, on a machine of 256 threads in NumPy, and its plain form in Triton's interpreter."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import interpreter
import numpy as np
import pytest
import triton
import triton.language as tl

from argand_aten_cuda.kernels import _digits

RNG = np.random.default_rng(5)
WARPS, LANES = 8, 32


def _popc(x: np.ndarray) -> np.ndarray:
    return np.array([int(v).bit_count() for v in x], "uint32")


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add.u32": operator.add, "sub.u32": operator.sub, "mul.lo.u32": operator.mul, "and.b32": operator.and_, "or.b32": operator.or_,
    "shl.b32": operator.lshift, "shr.u32": operator.rshift,
    "setp.ne.u32": operator.ne, "setp.eq.u32": operator.eq, "setp.gt.u32": operator.gt, "setp.lt.u32": operator.lt,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {
    "mov.u32": np.copy, "mov.b32": np.copy, "not.b32": np.invert, "popc.b32": _popc,
}  # fmt: skip


class Warp:
    """Lanes in step, with the block's shared memory."""

    def __init__(self, number: int, memory: np.ndarray, symbols: dict[str, int]) -> None:
        lane = np.arange(LANES, dtype="uint32")
        self.memory, self.symbols = memory, symbols
        self.registers: dict[str, np.ndarray] = {
            "%tid.x": lane + np.uint32(LANES * number),
            "%lanemask_lt": (np.uint32(1) << lane) - np.uint32(1),
        }

    def value(self, text: str) -> np.ndarray:
        if text in self.registers:
            return self.registers[text]
        number = self.symbols.get(text, int(text) if text.lstrip("-").isdigit() else None)
        assert number is not None, text
        return np.full(LANES, number & 0xFFFFFFFF, "uint32")

    def place(self, text: str) -> np.ndarray:
        base, _, offset = text.strip("[]").partition("+")
        address = self.value(base) + np.uint32(int(offset or 0))
        assert (address % 4 == 0).all()
        return address // 4

    def step(self, line: str) -> None:
        mask = np.ones(LANES, bool)
        if line.startswith("@"):
            guard, line = line.split(" ", 1)
            mask = self.registers[guard.lstrip("@!")] ^ ("!" in guard)
        name, rest = line.split(" ", 1)
        o = [x.strip() for x in rest.split(",")]
        if name == "ld.shared.b32":
            result = self.memory[np.where(mask, self.place(o[1]), 0)]
        elif name == "st.shared.b32":
            self.memory[self.place(o[0])[mask]] = self.value(o[1])[mask]
            return
        elif name == "red.shared.add.u32":
            np.add.at(self.memory, self.place(o[0])[mask], self.value(o[1])[mask])
            return
        elif name == "vote.sync.ballot.b32":
            assert o[2] == "-1" and mask.all()
            bits = np.packbits(self.registers[o[1]], bitorder="little").view("uint32")
            result = np.repeat(bits, LANES)
        elif name == "shfl.sync.up.b32":
            assert o[3:] == ["0", "-1"] and mask.all()
            to, inside = o[0].split("|")
            distance = int(o[2])
            source = self.value(o[1])
            self.registers[inside] = np.arange(LANES) >= distance
            self.registers[to] = np.where(self.registers[inside], np.roll(source, distance), source)
            return
        elif name in _UNARY:
            result = _UNARY[name](self.value(o[1]))
        else:
            result = _BINARY[name](self.value(o[1]), self.value(o[2]))
        old = self.registers.get(o[0], np.zeros_like(result))
        self.registers[o[0]] = np.where(mask, result, old)


def run_ptx(text: str, items: int, digits: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Runs it by one block whose thread t has the elements spread[t]; warps take turns in any order between barriers."""
    lines = [x.strip().rstrip(";") for x in text.strip("{}\n").splitlines()]
    symbols: dict[str, int] = {}
    size = 0
    for line in lines:
        if found := re.match(r"\.shared \.align 16 \.b32 (\w+)\[(\d+)\]", line):
            symbols[found[1]] = size * 4
            size += int(found[2])
    memory = RNG.integers(0, 1 << 32, size, "uint32")
    warps = [Warp(w, memory, symbols) for w in range(WARPS)]
    for w, warp in enumerate(warps):
        own = spread[w * LANES : (w + 1) * LANES].astype("uint32")
        for k in range(items):
            warp.registers[f"${items + k}"] = own[:, k]
            warp.registers[f"${2 * items + k}"] = digits[own[:, k]].astype("uint32")
    body = [x for x in lines if not x.startswith(".") and not x.startswith("bar.warp.sync")]
    segments: list[list[str]] = [[]]
    for line in body:
        segments.append([]) if line.startswith("bar.sync") else segments[-1].append(line)
    for segment in segments:
        for w in RNG.permutation(WARPS):
            for line in segment:
                warps[w].step(line)
    out = np.zeros(digits.size, "int32")
    for w, warp in enumerate(warps):
        for k in range(items):
            out[spread[w * LANES : (w + 1) * LANES, k]] = warp.registers[f"${k}"].view("int32")
    return out


def cases(size: int) -> list[np.ndarray]:
    return [RNG.integers(0, high, size) for high in (256, 3, 1)] + [np.arange(size) // 7 % 256]


def expected(digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(digits, kind="stable")
    counts = np.bincount(digits, minlength=256)
    return order, np.arange(digits.size) - (np.cumsum(counts) - counts)[digits[order]]


@pytest.mark.parametrize("items", [4, 8, 16])
def test_order_in_ptx(items: int) -> None:
    size = WARPS * LANES * items
    for digits in cases(size):
        spread = RNG.permutation(size).reshape(-1, items)
        both = run_ptx(_digits._order_in_ptx(items), items, digits, spread)
        order, among = expected(digits)
        np.testing.assert_array_equal(both & 0xFFFF, order)
        np.testing.assert_array_equal(both >> 16, among)


def test_counts_in_ptx() -> None:
    size = WARPS * LANES * 16
    for digits in [*cases(size), RNG.integers(0, 257, size)]:
        spread = RNG.permutation(size).reshape(-1, 16)
        found = run_ptx(_digits._counts_in_ptx(16), 16, digits, spread)
        np.testing.assert_array_equal(found[:256], np.bincount(digits, minlength=257)[:256])


@triton.jit
def orders(order, among, counts, digits, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    found, count = _digits.stable_order(tl.load(digits + i), SIZE)
    tl.store(order + i, found)
    tl.store(among + i, count)
    if SIZE == 4096:
        tl.store(counts + i, _digits.digit_counts(tl.load(digits + i), SIZE), mask=i < 256)


@pytest.mark.parametrize("size", [1024, 4096])
def test_plain_form(size: int) -> None:
    for digits in cases(size):
        order, among = np.zeros(size, "int32"), np.zeros(size, "int32")
        counts = np.zeros(256, "int32")
        interpreter.run(orders, (1,), order, among, counts, digits.astype("int32"), SIZE=size)
        for got, want in zip((order, among), expected(digits), strict=True):
            np.testing.assert_array_equal(got, want)
        if size == 4096:
            np.testing.assert_array_equal(counts, np.bincount(digits, minlength=256))
