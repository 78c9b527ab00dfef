"""The stable order of a block's elements by a digit of eight bits, and how often digits occur, as passes of a radix sort want them.

On NVIDIA's devices in PTX, which has what Triton's language lacks: counters in shared memory that lanes of a warp find together. A warp takes
consecutive elements, 32 at a time. Lanes with the same digit find each other by ballots, one a bit; how many elements of the digit came before is their
warp's counter of it, which the first of them raises. Then thread d adds the counters of digit d over warps, and a scan over threads those of smaller
digits. Elsewhere (other devices, Triton's interpreter) by sorting.
"""

from typing import Any

import triton
import triton.language as tl

DIGITS = tl.constexpr(256)
THREADS = tl.constexpr(256)  # of a block: one a digit
_WARPS = 8


def _declared(items: int) -> list[str]:
    """What the others use. own: this thread's digit, of the first warp's counters; counts: this warp's; mine: this thread's first element, the next ones are 32 apart."""
    held = ", ".join([*(f"d{k}, m{k}" for k in range(items)), *(f"c{w}" for w in range(_WARPS))])
    return [
        ".shared .align 16 .b32 counters[2048];",  # [warp][digit]
        f".shared .align 16 .b32 words[{_WARPS * 32 * items}];",
        ".shared .align 16 .b32 starts[256];",
        ".shared .align 16 .b32 sums[8];",
        f".reg .b32 tid, lane, warp, below, a, t, v, c, run, start, mine, digit, own, counts, base, word, {held};",
        ".reg .pred p;",
        "mov.u32 tid, %tid.x;",
        "and.b32 lane, tid, 31;",
        "shr.u32 warp, tid, 5;",
        "mov.u32 below, %lanemask_lt;",
        "mov.u32 base, counters;",
        "mov.u32 word, words;",
        "shl.b32 t, tid, 2;",
        "add.u32 own, base, t;",
        "shl.b32 t, warp, 10;",
        "add.u32 counts, base, t;",
        f"mul.lo.u32 mine, warp, {32 * items};",
        "add.u32 mine, mine, lane;",
    ]


def _read(items: int) -> list[str]:
    """The counters become zeros, and d0, d1, ... the digits of this thread's elements."""
    lines = ["mov.u32 t, 0;", "bar.sync 0;"]  # what another call left is read
    lines += [f"st.shared.b32 [own+{1024 * w}], t;" for w in range(_WARPS)]
    for k in range(items):
        lines += [
            f"shl.b32 a, ${items + k}, 2;",
            "add.u32 a, a, word;",
            f"st.shared.b32 [a], ${2 * items + k};",
        ]
    lines += ["bar.sync 0;", "shl.b32 a, mine, 2;", "add.u32 a, a, word;"]
    return lines + [f"ld.shared.b32 d{k}, [a+{128 * k}];" for k in range(items)]


def _counted(items: int) -> list[str]:
    """m0, m1, ...: the warp's lanes with the same digit, then how many elements of it came before in the warp."""
    lines = []
    for k in range(items):
        lines.append(f"mov.b32 m{k}, -1;")
        for bit in range(8):
            lines += [
                f"and.b32 t, d{k}, {1 << bit};",
                "setp.ne.u32 p, t, 0;",
                "vote.sync.ballot.b32 v, p, -1;",
                "@!p not.b32 v, v;",
                f"and.b32 m{k}, m{k}, v;",
            ]
    for k in range(items):
        lines += [
            f"shl.b32 a, d{k}, 2;",
            "add.u32 a, a, counts;",
            "ld.shared.b32 c, [a];",
            f"and.b32 t, m{k}, below;",
            "popc.b32 t, t;",
            "setp.eq.u32 p, t, 0;",
            f"popc.b32 v, m{k};",
            "add.u32 v, v, c;",
            f"add.u32 m{k}, t, c;",
            "bar.warp.sync -1;",
            "@p st.shared.b32 [a], v;",
            "bar.warp.sync -1;",
        ]
    return [*lines, "bar.sync 0;"]


def _summed() -> list[str]:
    """The counters become the places of each warp's first element of each digit, `starts` those of the block's."""
    lines = ["mov.u32 run, 0;"]
    for w in range(_WARPS):
        lines += [
            f"ld.shared.b32 t, [own+{1024 * w}];",
            f"mov.u32 c{w}, run;",
            "add.u32 run, run, t;",
        ]
    lines.append("mov.u32 start, run;")
    for distance in (1, 2, 4, 8, 16):
        lines += [
            f"shfl.sync.up.b32 t|p, start, {distance}, 0, -1;",
            "@p add.u32 start, start, t;",
        ]
    lines += [
        "mov.u32 c, sums;",
        "shl.b32 t, warp, 2;",
        "add.u32 t, t, c;",
        "setp.eq.u32 p, lane, 31;",
        "@p st.shared.b32 [t], start;",
        "sub.u32 start, start, run;",
        "bar.sync 0;",
    ]
    for w in range(_WARPS - 1):
        lines += [
            f"ld.shared.b32 t, [c+{4 * w}];",
            f"setp.gt.u32 p, warp, {w};",
            "@p add.u32 start, start, t;",
        ]
    for w in range(_WARPS):
        lines += [f"add.u32 t, c{w}, start;", f"st.shared.b32 [own+{1024 * w}], t;"]
    return [
        *lines,
        "mov.u32 base, starts;",
        "shl.b32 t, tid, 2;",
        "add.u32 t, t, base;",
        "st.shared.b32 [t], start;",
        "bar.sync 0;",
    ]


def _turned(items: int) -> list[str]:
    """Each element's number and digit go to its place, from where the results are made."""
    lines = []
    for k in range(items):
        lines += [
            f"shl.b32 a, d{k}, 2;",
            "add.u32 a, a, counts;",
            "ld.shared.b32 t, [a];",
            f"add.u32 t, t, m{k};",
            "shl.b32 t, t, 2;",
            "add.u32 t, t, word;",
            f"shl.b32 digit, d{k}, 16;",
            f"add.u32 v, mine, {32 * k};",
            "or.b32 v, v, digit;",
            "st.shared.b32 [t], v;",
        ]
    lines.append("bar.sync 0;")
    for k in range(items):
        lines += [
            f"shl.b32 a, ${items + k}, 2;",
            "add.u32 a, a, word;",
            "ld.shared.b32 v, [a];",
            "shr.u32 t, v, 16;",
            "shl.b32 t, t, 2;",
            "add.u32 t, t, base;",
            "ld.shared.b32 t, [t];",
            f"sub.u32 t, ${items + k}, t;",
            "shl.b32 t, t, 16;",
            "and.b32 v, v, 65535;",
            f"or.b32 ${k}, v, t;",
        ]
    return lines


def _order_in_ptx(items: int) -> str:
    """Operands: `items` results, then as many places in the block, then the digits there. A result: which element comes at its place, and in the upper half how many of its digit come before it."""
    lines = [*_declared(items), *_read(items), *_counted(items), *_summed(), *_turned(items)]
    return "{\n" + "\n".join(lines) + "\n}"


def _counts_in_ptx(items: int) -> str:
    """Operands as above. A result: how often the digit that is its place in the block occurs, at places below 256; digit 256 is none."""
    lines = [
        ".shared .align 16 .b32 counters[257];",
        ".reg .b32 a, t, base;",
        ".reg .pred p;",
        "mov.u32 base, counters;",
        "mov.u32 a, %tid.x;",
        "shl.b32 a, a, 2;",
        "add.u32 a, a, base;",
        "mov.u32 t, 0;",
        "bar.sync 0;",
        "st.shared.b32 [a], t;",
        "bar.sync 0;",
    ]
    for k in range(items):
        lines += [
            f"shl.b32 a, ${2 * items + k}, 2;",
            "add.u32 a, a, base;",
            "red.shared.add.u32 [a], 1;",
        ]
    lines.append("bar.sync 0;")
    for k in range(items):
        lines += [
            f"setp.lt.u32 p, ${items + k}, 256;",
            f"shl.b32 a, ${items + k}, 2;",
            "add.u32 a, a, base;",
            f"mov.u32 ${k}, 0;",
            f"@p ld.shared.b32 ${k}, [a];",
        ]
    return "{\n" + "\n".join(lines) + "\n}"


def _operands(items: int) -> str:
    return ",".join(["=&r"] * items + ["r"] * 2 * items)


_PTX_4, _OPERANDS_4 = tl.constexpr(_order_in_ptx(4)), tl.constexpr(_operands(4))
_PTX_8, _OPERANDS_8 = tl.constexpr(_order_in_ptx(8)), tl.constexpr(_operands(8))
_PTX_16, _OPERANDS_16 = tl.constexpr(_order_in_ptx(16)), tl.constexpr(_operands(16))
_COUNTS_16 = tl.constexpr(_counts_in_ptx(16))


def on_nvidia(_semantic: Any = None) -> Any:
    """Whether a kernel is compiled for NVIDIA's devices; a builtin function of kernels."""
    options = getattr(_semantic, "builder", None) and _semantic.builder.options
    return tl.constexpr(getattr(options, "backend_name", "") == "cuda")


on_nvidia.__triton_builtin__ = True  # type: ignore[attr-defined]


@triton.jit
def stable_order(digit, BLOCK: tl.constexpr):
    """Of BLOCK digits (1024, 2048 or 4096; of THREADS threads): which element comes at each place in a stable order, and how many of its digit come before it."""
    place = tl.arange(0, BLOCK)
    if on_nvidia():
        if BLOCK == 4096:
            both = tl.inline_asm_elementwise(
                _PTX_16, _OPERANDS_16, [place, digit], tl.int32, is_pure=False, pack=16
            )
        elif BLOCK == 2048:
            both = tl.inline_asm_elementwise(
                _PTX_8, _OPERANDS_8, [place, digit], tl.int32, is_pure=False, pack=8
            )
        else:
            tl.static_assert(BLOCK == 1024)
            both = tl.inline_asm_elementwise(
                _PTX_4, _OPERANDS_4, [place, digit], tl.int32, is_pure=False, pack=4
            )
        return both & 0xFFFF, both >> 16
    else:
        both = tl.sort(digit * BLOCK + place)
        found = tl.histogram(digit, DIGITS)
        starts = tl.cumsum(found, 0) - found
        return both % BLOCK, place - tl.gather(starts, both // BLOCK, 0)


@triton.jit
def digit_counts(digit, BLOCK: tl.constexpr):
    """Of BLOCK = 4096 digits, of THREADS threads, how often each occurs: at the digit's place. Digit 256 is none."""
    tl.static_assert(BLOCK == 4096)
    place = tl.arange(0, BLOCK)
    if on_nvidia():
        return tl.inline_asm_elementwise(
            _COUNTS_16, _OPERANDS_16, [place, digit], tl.int32, is_pure=False, pack=16
        )
    else:
        found = tl.histogram(tl.where(digit < DIGITS, digit, 0), DIGITS, mask=digit < DIGITS)
        return tl.gather(found, place % DIGITS, 0)
