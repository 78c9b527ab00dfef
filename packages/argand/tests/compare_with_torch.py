"""Compares operators with the peer on many inputs and dtypes, by hand: `python compare_with_torch.py [pattern] [-v]`.

A call is an expression over `torch`, `F` and operands by name: `x`, `y`, `z` of the dtype under test (any values), `p` positive, `u` in (0, 1), `i`
and `n` int64 (`n` not negative), `b` bool. Every call runs on all dtypes and layouts of `LAYOUTS`; values, dtypes, shapes, gradients and kinds of
errors have to agree. Each disagreement is printed once an expression and kind. Needs the peer's environment.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch
from compared_calls import CALLS
from peer_test_operators import MAY_ACCEPT, builtin_kind

import argand

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128",
)  # fmt: skip
MIXED = (
    ("float32", "float64"), ("float32", "int64"), ("int32", "int64"), ("uint8", "int8"), ("float16", "bfloat16"), ("bool", "float32"),
    ("int64", "float16"), ("float64", "complex64"),
)  # fmt: skip
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.7, -3.7, 10.0, -12.5, 30.0, -30.0, 100.25, -100.25, 1e-3, -1e-6, 1e-30, 1e4, -1e4, 1e30,
         np.inf, -np.inf, np.nan)  # fmt: skip
RTOL = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 1e-5,
    "float64": 1e-11,
    "complex64": 2e-5,
    "complex128": 1e-11,
}
OPERANDS = "xyzpuinb"
SHAPES = {
    "random": {name: (3, 4) for name in OPERANDS},
    "broadcast": {
        "x": (2, 1, 4),
        "y": (3, 1),
        "z": (4,),
        "p": (3, 1),
        "u": (2, 1, 4),
        "i": (3, 1),
        "n": (3, 1),
        "b": (4,),
    },
    "scalar": {name: () for name in OPERANDS},
    "empty": {name: (0, 3) for name in OPERANDS},
    "strided": {name: (4, 3) for name in OPERANDS},
    "vector": {name: (7,) for name in OPERANDS},
    "cube": {name: (2, 3, 4) for name in OPERANDS},
}
LAYOUTS = (*SHAPES, "edge")


def values(name: str, dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if name in "in":
        return rng.integers(-3 if name == "i" else 0, 5, shape)
    low, high = {"p": (0.1, 3.0), "u": (0.02, 0.98)}.get(name, (-3.0, 3.0))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return rng.integers(0 if dtype == "uint8" or name in "pu" else -4, 9, shape)
    found = np.asarray(rng.uniform(low, high, shape))
    return found + 1j * rng.uniform(low, high, shape) if dtype.startswith("complex") else found


def edges(names: list[str], dtypes: dict[str, str]) -> dict[str, np.ndarray]:
    """Every combination of special values of the first two operands, in one dimension."""
    chosen = {}
    columns = [
        EDGES if not re.search("int|bool", dtypes[n]) else (0, 1, 2, 3, 5, 100) if dtypes[n] == "uint8" else (0, 1, -1, 2, -2, 7, -7, 127, -128)
        for n in names[:2]
    ]  # fmt: skip
    grid = list(itertools.product(*columns))
    for k, name in enumerate(names):
        chosen[name] = np.array([row[min(k, len(row) - 1)] for row in grid])
        if name in "in":
            chosen[name] = np.arange(len(grid)) % 5
    return chosen


def tensor(
    library: ModuleType, array: np.ndarray, dtype: str, strided: bool, requires_grad: bool
) -> Any:
    with np.errstate(all="ignore"):
        made = library.from_numpy(np.array(array)).to(getattr(library, dtype))
    if strided and made.ndim > 1:
        made = made.transpose(0, 1).contiguous().transpose(0, 1)
    return made.requires_grad_() if requires_grad else made


def inputs(
    expression: str, layout: str, first: str, second: str, rng: np.random.Generator
) -> dict[str, tuple[np.ndarray, str]]:
    names = [n for n in OPERANDS if re.search(rf"\b{n}\b", expression)]
    dtypes = {
        n: "bool" if n == "b" else "int64" if n in "in" else first if n == names[0] else second
        for n in names
    }
    if layout == "edge":
        return {n: (a, dtypes[n]) for n, a in edges(names, dtypes).items()}
    return {n: (values(n, dtypes[n], SHAPES[layout][n], rng), dtypes[n]) for n in names}


def arrays(result: Any) -> Any:
    """A result as comparable data: tensors as (dtype, shape, values)."""
    if isinstance(result, (tuple, list)):
        return [arrays(r) for r in result]
    if isinstance(result, (torch.Tensor, argand.Tensor)):
        name = str(result.dtype).split(".")[-1]
        plain = result.detach()
        if isinstance(plain, torch.Tensor):
            plain = plain.resolve_conj().resolve_neg()
        return (
            name,
            tuple(result.shape),
            (plain.float() if name == "bfloat16" else plain.clone()).numpy(),
        )
    return result


def run(
    library: ModuleType, expression: str, given: dict[str, tuple[np.ndarray, str]], layout: str
) -> tuple[Any, Any]:
    """(result and changed operands, gradients)."""
    differentiable = layout == "random" and "out=" not in expression
    leaves = {
        n: tensor(
            library, a, d, layout == "strided", differentiable and ("float" in d or "complex" in d)
        )
        for n, (a, d) in given.items()
    }
    changes = re.search(r"\w_\(|_\w_\(", expression) is not None
    operands = {n: t.clone() if changes else t for n, t in leaves.items()}
    scope = {
        "torch": library,
        "F": library.nn.functional,
        "np": np,
        "inf": float("inf"),
        "nan": float("nan"),
        **operands,
    }
    result = eval(expression, scope)
    seen = [arrays(result)]
    if changes:
        seen.append([arrays(t) for t in operands.values()])
    if not differentiable:
        return seen, None
    return seen, gradients(library, result, leaves)


def gradients(library: ModuleType, result: Any, leaves: dict[str, Any]) -> Any:
    results = [
        r
        for r in (result if isinstance(result, (tuple, list)) else [result])
        if isinstance(r, library.Tensor) and r.requires_grad
    ]
    if not results:
        return []
    total = None
    for r in results:
        if r.is_complex():
            r = library.view_as_real(r.resolve_conj() if library is torch else r)
        part = (
            r.to(library.float64)
            * library.from_numpy(
                np.linspace(0.5, 1.5, max(r.numel(), 1))[: r.numel()].reshape(tuple(r.shape))
            )
        ).sum()
        total = part if total is None else total + part
    try:
        total.backward()
    except (RuntimeError, NotImplementedError) as error:
        return f"no gradient: {error}" if library is torch else f"{type(error).__name__}: {error}"
    return [None if t.grad is None else arrays(t.grad) for t in leaves.values()]


def difference(ours: Any, theirs: Any, loosest: float) -> str | None:
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return f"structure: got {ours!r:.80}, expected {theirs!r:.80}"
        return next(
            (d for a, b in zip(ours, theirs, strict=True) if (d := difference(a, b, loosest))), None
        )
    if isinstance(theirs, tuple):
        if not isinstance(ours, tuple):
            return (
                None
                if ours is None and not np.any(theirs[2])
                else f"value: got {ours!r:.80}, expected {theirs!r:.80}"
            )
        if ours[0] != theirs[0]:
            return f"dtype: got {ours[0]}, expected {theirs[0]}"
        if ours[1] != theirs[1]:
            return f"shape: got {ours[1]}, expected {theirs[1]}"
        return values_differ(ours[2], theirs[2], max(RTOL.get(theirs[0], 0.0), loosest))
    if theirs is None and isinstance(ours, tuple):
        return None if not np.any(ours[2]) else "a gradient where none is expected"
    if isinstance(theirs, float) and isinstance(ours, float):
        return values_differ(np.asarray(ours), np.asarray(theirs), max(1e-6, loosest))
    return None if ours == theirs else f"value: got {ours!r:.80}, expected {theirs!r:.80}"


def values_differ(ours: np.ndarray, theirs: np.ndarray, rtol: float) -> str | None:
    if ours.dtype.kind not in "fc":
        bad = ours != theirs
    else:
        with np.errstate(all="ignore"):
            bad = ~np.isclose(ours, theirs, rtol=rtol, atol=rtol, equal_nan=True)
    if not bad.any():
        return None
    at = tuple(int(k) for k in np.argwhere(np.atleast_1d(bad))[0])
    return f"values: {bad.sum()} of {bad.size}, at {at} got {np.atleast_1d(ours)[at]!r}, expected {np.atleast_1d(theirs)[at]!r}"


def attempt(library: ModuleType, *arguments: Any) -> tuple[Any, Exception | None]:
    try:
        return run(library, *arguments), None
    except Exception as error:
        return None, error


def compare(expression: str, layout: str, first: str, second: str) -> tuple[str, str] | None:
    """(kind, details) of a disagreement."""
    rng = np.random.default_rng(len(expression) * 31 + len(layout))
    given = inputs(expression, layout, first, second, rng)
    theirs, their_error = attempt(torch, expression, given, layout)
    ours, our_error = attempt(argand, expression, given, layout)
    if their_error is not None:
        if our_error is None:
            return (
                None
                if MAY_ACCEPT.search(str(their_error))
                else ("accepts", f"the peer raises {their_error!r:.150}")
            )
        if MAY_ACCEPT.search(str(their_error)) or isinstance(our_error, builtin_kind(their_error)):
            return None
        return "error kind", f"got {our_error!r:.120}, the peer raises {their_error!r:.120}"
    if our_error is not None:
        return "refuses", f"{our_error!r:.200}"
    used = [d for _, d in given.values()]
    loosest = max((RTOL.get(d, 0.0) for d in used), default=0.0)
    found = difference(ours[0], theirs[0], loosest)
    if found:
        return found.split(":")[0], found
    if isinstance(theirs[1], str):  # the peer has no gradient
        return None
    found = difference(ours[1], theirs[1], max(loosest, 1e-9))
    return None if found is None else ("gradient", found)


def cases(expression: str) -> Iterator[tuple[str, str, str]]:
    two = len([n for n in "xyzpu" if re.search(rf"\b{n}\b", expression)]) > 1
    for layout in LAYOUTS:
        for dtype in DTYPES:
            if layout != "edge" or not dtype.startswith("complex"):
                yield layout, dtype, dtype
    if two:
        for a, b in MIXED:
            for layout in ("random", "broadcast"):
                yield layout, a, b
                yield layout, b, a


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "pattern", nargs="?", default="", help="calls that match this regular expression"
    )
    parser.add_argument("-v", action="store_true", help="every disagreement, not one a kind")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    argand.zeros(1)  # a broken environment shows here, not as thousands of disagreements
    faults = runs = 0
    for expression in CALLS:
        if not re.search(options.pattern, expression):
            continue
        shown: dict[str, list[str]] = {}
        for layout, first, second in cases(expression):
            runs += 1
            found = compare(expression, layout, first, second)
            if found:
                shown.setdefault(found[0], []).append(
                    f"{layout} {first}{'' if first == second else '/' + second}: {found[1]}"
                )
        for kind, lines in shown.items():
            faults += 1
            print(f"{expression}  [{kind}, {len(lines)}]")
            for line in lines if options.v else lines[:1]:
                print(f"    {line}")
    print(f"{runs} calls, {faults} disagreements")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
