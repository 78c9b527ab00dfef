"""Shapes of kernels: blocks along the axes, warps, stages; the first one by rule, others for autotuning."""

from __future__ import annotations

from dataclasses import dataclass

# Streaming multiprocessors of the devices that these rules are for: enough programs for each of them count.
PROCESSORS = 132
WARP = 32
# Elements of a row up to which a program holds it whole.
PERSISTENT = 8192


@dataclass(frozen=True, slots=True)
class Config:
    """Elements a program handles along x, y and the reduced axis r; `persistent`: r covers all that is reduced."""

    x: int = 1
    y: int = 1
    r: int = 1
    persistent: bool = False
    num_warps: int = 4
    num_stages: int = 1


def power_of_two(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(0, n - 1).bit_length()


def _clamp(n: int, low: int, high: int) -> int:
    return max(low, min(high, n))


def warps_for(elements: int, each: int = 8) -> int:
    """Warps of which every thread handles `each` elements."""
    return _clamp(power_of_two(elements // (WARP * each)), 1, 16)


def pointwise(numel: int, itemsize: int) -> list[Config]:
    """Of a kernel without reductions over `numel` elements; `itemsize`: of the widest operand in bytes."""
    block = 1024 if itemsize >= 4 else 2048
    while block > 128 and numel < block * PROCESSORS:
        block //= 2
    chosen = [Config(x=block, num_warps=warps_for(block, 8 if itemsize >= 4 else 16))]
    for x, warps in ((512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 8)):
        chosen.append(Config(x=x, num_warps=warps))
    return chosen


def tiled(rows: int, columns: int, itemsize: int) -> list[Config]:
    """Of a kernel that reads along both of two dimensions."""
    side = 32 if itemsize >= 4 else 64
    y, x = min(side, power_of_two(rows)), min(side, power_of_two(columns))
    chosen = [Config(x=x, y=y, num_warps=warps_for(x * y, 8))]
    for y, x in ((32, 32), (64, 32), (32, 64), (64, 64), (16, 128)):
        chosen.append(Config(x=x, y=y, num_warps=4))
        chosen.append(Config(x=x, y=y, num_warps=8))
    return chosen


def rows(kept: int, length: int, known: bool, transposed: bool, itemsize: int) -> list[Config]:
    """Of a reduction along the innermost dimension; `known`: its length is a number. `transposed`: something lies along a kept one."""
    width = power_of_two(length)
    if known and width <= PERSISTENT:
        x = _clamp(1024 // width, 1, 64)
        if transposed:
            x = max(x, 16 if width <= 1024 else 4)
        while x > 1 and kept < x * PROCESSORS * 2:
            x //= 2
        chosen = [_persistent(x, width)]
        chosen += [_persistent(n, width) for n in (1, 2, 4, 8) if n * width <= 16384]
        return [*chosen, *_looped(1, min(width, 2048), itemsize)]
    if transposed:
        return _looped(16, 128, itemsize)
    return _looped(1, _clamp(width, 64, 8192), itemsize)


def _persistent(x: int, width: int) -> Config:
    warps = warps_for(x * width, 8 if width < 4096 else 16)
    return Config(x=x, r=width, persistent=True, num_warps=warps)


def _looped(x: int, r: int, itemsize: int) -> list[Config]:
    first = Config(x=x, r=r, num_warps=warps_for(x * r, 32 if itemsize < 4 else 16))
    others = ((1024, 4), (2048, 8), (4096, 8), (4096, 16), (8192, 8), (8192, 16))
    return [first, *(Config(x=x, r=n, num_warps=w) for n, w in others if x == 1)]


def columns(kept: int, length: int, known: bool, itemsize: int) -> list[Config]:
    """Of a reduction along outer dimensions."""
    x = min(power_of_two(kept), 64 if itemsize < 4 else 32)
    r = min(power_of_two(length), 4096 // x)
    persistent = known and power_of_two(length) <= r
    chosen = [Config(x=x, r=r, persistent=persistent, num_warps=warps_for(x * r, 16))]
    for x, r in ((32, 32), (32, 128), (64, 32), (64, 64), (128, 32), (16, 256)):
        chosen.append(Config(x=x, r=r, num_warps=8))
    return chosen
