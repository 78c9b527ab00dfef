"""Sizes as C expressions of type long."""

from __future__ import annotations

from collections.abc import Callable

from argand_inductor.sizes import Poly, Size


def c_size(size: Size, parameter: Callable[[Size], str]) -> str:
    """An int as a literal; anything symbolic as a parameter of the kernel."""
    if isinstance(size, Poly):
        return parameter(size)
    return f"{size}L" if abs(size) >= 2**31 else str(size)


def c_sum(terms: list[str]) -> str:
    kept = [t for t in terms if t != "0"]
    return " + ".join(kept) or "0"


def c_product(a: str, b: str) -> str:
    if "0" in (a, b):
        return "0"
    if a == "1":
        return b
    if b == "1":
        return a
    return f"{a} * {b}"
