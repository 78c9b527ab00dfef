"""Checks of gradients against finite differences.

A complex tensor counts as pairs of real numbers: its gradient is dL/dRe + i dL/dIm, so that one comparison covers real
and complex functions.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import argand_aten as aten
import argand_c10
from argand_autograd.differentiate import grad
from argand_autograd.grad_mode import enable_grad, no_grad
from argand_c10 import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Matrix = list[list[float]]  # [real numbers of the output][real numbers of the input]


class GradcheckError(RuntimeError):
    """A gradient does not agree with finite differences, or is not reproducible."""


@dataclass(frozen=True)
class _Tolerances:
    eps: float
    atol: float
    rtol: float
    nondet_tol: float


def _reals(t: Tensor) -> list[float]:
    """The tensor's numbers in row-major order; a complex one gives its real and imaginary part."""
    flat = aten.reshape(t.detach(), [-1]).tolist()
    if not t.is_complex():
        return [float(v) for v in flat]
    return [part for v in flat for part in (v.real, v.imag)]


def _from_reals(values: Sequence[float], like: Tensor) -> Tensor:
    """A tensor of the shape, dtype and device of `like`."""
    if like.is_complex():
        data: list[Any] = [complex(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    else:
        data = list(values)
    flat = argand_c10.tensor(data, dtype=like.dtype, device=like.device)
    return aten.reshape(flat, list(like.shape))


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _wants_gradient(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _differentiable(value: Any) -> tuple[Tensor, ...]:
    return tuple(t for t in _as_tuple(value) if isinstance(t, Tensor) and t.requires_grad)


def _differentiable_places(value: Any) -> tuple[int, ...]:
    return tuple(i for i, t in enumerate(_as_tuple(value)) if _wants_gradient(t))


def _checked_inputs(inputs: Any) -> tuple[Any, ...]:
    as_tuple = _as_tuple(inputs)
    wanted = [t for t in as_tuple if _wants_gradient(t)]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them "
            "have requires_grad=True."
        )
    for i, t in enumerate(as_tuple):
        if not _wants_gradient(t):
            continue
        if t.dtype not in (argand_c10.float64, argand_c10.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double precision.",
                stacklevel=4,
            )
        if t.is_leaf:
            t.grad = None
    return as_tuple


def _evaluate(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    place: int,
    replacement: Tensor,
    outputs: tuple[int, ...],
) -> list[list[float]]:
    """Real numbers of the chosen outputs, with one input replaced."""
    arguments = list(inputs)
    arguments[place] = replacement.requires_grad_()
    with enable_grad():
        results = _as_tuple(func(*arguments))
    return [_reals(results[i]) for i in outputs]


def _numerical(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    place: int,
    outputs: tuple[int, ...],
    eps: float,
) -> list[Matrix]:
    """Central differences with respect to one input, for each output."""
    x = inputs[place]
    values = _reals(x)
    columns: list[list[list[float]]] = []
    for k, value in enumerate(values):
        sides = []
        for step in (eps, -eps):
            values[k] = value + step
            sides.append(_evaluate(func, inputs, place, _from_reals(values, x), outputs))
        values[k] = value
        columns.append(
            [
                [(a - b) / (2 * eps) for a, b in zip(p, m, strict=True)]
                for p, m in zip(*sides, strict=True)
            ]
        )
    jacobians: list[Matrix] = []
    for i in range(len(outputs)):
        rows = len(columns[0][i]) if columns else 0
        jacobians.append([[column[i][r] for column in columns] for r in range(rows)])
    return jacobians


def _analytical(output: Tensor, inputs: Sequence[Tensor]) -> list[Matrix]:
    """Rows by backward, one for each real number of the output; for each input."""
    jacobians: list[Matrix] = [[] for _ in inputs]
    size = len(_reals(output))
    for k in range(size):
        seed = _from_reals([1.0 if i == k else 0.0 for i in range(size)], output)
        gradients = grad(output, list(inputs), seed, retain_graph=True, allow_unused=True)
        for matrix, x, g in zip(jacobians, inputs, gradients, strict=True):
            if g is not None and (g.shape != x.shape or g.dtype != x.dtype):
                raise GradcheckError(
                    f"gradcheck: got a gradient of shape {tuple(g.shape)} and dtype {g.dtype}, "
                    f"expected those of the input, {tuple(x.shape)} and {x.dtype}"
                )
            matrix.append(_reals(g) if g is not None else [0.0] * len(_reals(x)))
    return jacobians


def _close(a: float, b: float, rtol: float, atol: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= atol + rtol * abs(b)


def _matrices_close(a: Matrix, b: Matrix, rtol: float, atol: float) -> bool:
    return all(
        _close(x, y, rtol, atol)
        for r, s in zip(a, b, strict=True)
        for x, y in zip(r, s, strict=True)
    )


def _format(matrix: Matrix) -> str:
    shown = [
        " ".join(f"{v:12.6g}" for v in row[:10]) + (" ..." if len(row) > 10 else "")
        for row in matrix[:20]
    ]
    return "\n".join(f"  [{row}]" for row in shown) + ("\n  ..." if len(matrix) > 20 else "")


def _worst(numerical: Matrix, analytical: Matrix) -> str:
    differences = [
        (abs(n - a), r, c)
        for r, (ns, xs) in enumerate(zip(numerical, analytical, strict=True))
        for c, (n, a) in enumerate(zip(ns, xs, strict=True))
    ]
    if not differences:
        return ""
    worst, r, c = max(differences, key=lambda d: math.inf if math.isnan(d[0]) else d[0])
    return f"largest difference {worst:.3g} at output element {r}, input element {c}\n"


def _compare(
    numerical: Matrix, analytical: Matrix, output: int, place: int, t: _Tolerances
) -> None:
    if _matrices_close(analytical, numerical, t.rtol, t.atol):
        return
    raise GradcheckError(
        f"Jacobian mismatch for output {output} with respect to input {place},\n"
        f"numerical:\n{_format(numerical)}\nanalytical:\n{_format(analytical)}\n"
        + _worst(numerical, analytical)
    )


def _check_without_gradients(
    func: Callable[..., Any], inputs: tuple[Any, ...], t: _Tolerances
) -> None:
    """Outputs that do not require grad must not depend on the inputs."""
    results = _as_tuple(func(*inputs))
    floating = tuple(
        i
        for i, r in enumerate(results)
        if isinstance(r, Tensor) and (r.is_floating_point() or r.is_complex())
    )
    for place in _differentiable_places(inputs):
        for i, jacobian in zip(
            floating, _numerical(func, inputs, place, floating, t.eps), strict=True
        ):
            if any(abs(v) > t.atol for row in jacobian for v in row):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero: output {i} does not require "
                    f"grad, but depends on input {place}\nnumerical:\n{_format(jacobian)}"
                )


def _slow_check(func: Callable[..., Any], inputs: tuple[Any, ...], t: _Tolerances) -> None:
    with enable_grad():
        results = _as_tuple(func(*inputs))
    places = _differentiable_places(inputs)
    outputs = tuple(i for i in _differentiable_places(results))
    tensors = [inputs[p] for p in places]
    analytical = {i: _analytical(results[i], tensors) for i in outputs}
    for i in outputs:
        again = _analytical(results[i], tensors)
        for place, first, second in zip(places, analytical[i], again, strict=True):
            if not _matrices_close(first, second, 0.0, t.nondet_tol):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output "
                    f"multiple times gives different values, although analytical gradient matches "
                    f"numerical gradient. The tolerance for nondeterminism was {t.nondet_tol} "
                    f"(output {i}, input {place})."
                )
    for n, place in enumerate(places):
        for i, numerical in zip(
            outputs, _numerical(func, inputs, place, outputs, t.eps), strict=True
        ):
            _compare(numerical, analytical[i][n], i, place, t)


def _fast_check(func: Callable[..., Any], inputs: tuple[Any, ...], t: _Tolerances) -> None:
    """Compares v.J.u for one random v and u for each pair of output and input."""
    chance = random.Random(0)
    with enable_grad():
        results = _as_tuple(func(*inputs))
    outputs = _differentiable_places(results)
    for place in _differentiable_places(inputs):
        x = inputs[place]
        values = _reals(x)
        u = [chance.uniform(0.5, 1.5) for _ in values]
        sides = []
        for step in (t.eps, -t.eps):
            moved = [a + step * b for a, b in zip(values, u, strict=True)]
            sides.append(_evaluate(func, inputs, place, _from_reals(moved, x), outputs))
        for n, i in enumerate(outputs):
            v = [chance.uniform(0.5, 1.5) for _ in sides[0][n]]
            plus, minus = sides[0][n], sides[1][n]
            numerical = sum(
                w * (a - b) / (2 * t.eps) for w, a, b in zip(v, plus, minus, strict=True)
            )
            (g,) = grad(
                results[i], [x], _from_reals(v, results[i]), retain_graph=True, allow_unused=True
            )
            analytical = 0.0 if g is None else sum(a * b for a, b in zip(_reals(g), u, strict=True))
            scale = max(1.0, math.sqrt(len(u) * len(v)))
            if not _close(analytical, numerical, t.rtol, t.atol * scale):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {place} along a random "
                    f"direction: numerical {numerical:.6g}, analytical {analytical:.6g}; run without "
                    "fast_mode to see the whole Jacobian"
                )


def _refuse(caller: str, **unsupported: bool) -> None:
    for name, value in unsupported.items():
        if value:
            raise ValueError(
                f"{caller}: got {name}=True, expected False; gradients are made in reverse mode and "
                "without batching over them"
            )


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare gradients with central finite differences.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors. It must not change its inputs.
        inputs: its arguments; those that require grad are checked and should be float64 or complex128.
        eps: the step of the differences.
        atol, rtol: how far apart the two may be.
        raise_exception: whether a mismatch raises instead of returning False.
        nondet_tol: how far apart two runs of backward may be.
        check_undefined_grad, check_grad_dtypes: always done: each output is differentiated alone, with none for the
            others, and every gradient must have its input's shape and dtype.
        check_backward_ad: False checks nothing.
        fast_mode: compare along one random direction instead of all elements.
        masked: accepted for compatibility; tensors are dense.

    Returns:
        True if all agree.

    Raises:
        GradcheckError: with both Jacobians, if they do not agree.
        ValueError: if no input requires grad, or forward-mode checks are asked for.
    """
    _refuse(
        "gradcheck",
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad,
    )
    arguments = _checked_inputs(inputs)
    if not check_backward_ad:
        return True
    tolerances = _Tolerances(eps, atol, rtol, nondet_tol)
    try:
        with enable_grad():
            outputs = _differentiable(func(*arguments))
        if not outputs:
            _check_without_gradients(func, arguments, tolerances)
        elif fast_mode:
            _fast_check(func, arguments, tolerances)
        else:
            _slow_check(func, arguments, tolerances)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare gradients of gradients with central finite differences.

    Args:
        func: as in `gradcheck`.
        inputs: as in `gradcheck`.
        grad_outputs: the gradients of `func`'s results. Default: random ones.
        gen_non_contig_grad_outputs: whether random gradients are non-contiguous.
        Others as in `gradcheck`.

    Returns:
        True if all agree.
    """
    _refuse(
        "gradgradcheck",
        check_batched_grad=check_batched_grad,
        check_fwd_over_rev=check_fwd_over_rev,
    )
    arguments = _checked_inputs(inputs)
    if not check_rev_over_rev:
        return True
    with enable_grad():
        outputs = _differentiable(func(*arguments))
    if not outputs:
        raise ValueError("gradgradcheck: got no output that requires grad, expected at least one")
    if grad_outputs is None:
        gradients = tuple(_random_like(t, gen_non_contig_grad_outputs) for t in outputs)
    else:
        gradients = _as_tuple(grad_outputs)
        if len(gradients) != len(outputs):
            raise ValueError(
                f"gradgradcheck: got {len(gradients)} grad_outputs, expected one for each of the "
                f"{len(outputs)} outputs that require grad"
            )
    places = _differentiable_places(arguments)

    def first_gradients(*values: Any) -> tuple[Tensor, ...]:
        own, given = values[: len(arguments)], values[len(arguments) :]
        # Aliases: a value that func returns as it is would else be its own gradient's input.
        own = tuple(aten.ops.alias(v) if _wants_gradient(v) else v for v in own)
        wanted = [own[p] for p in places]
        results = _differentiable(func(*own))
        made = grad(results, wanted, list(given), create_graph=True, allow_unused=True)
        return tuple(g for g in made if g is not None)

    return gradcheck(
        first_gradients,
        (*arguments, *gradients),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        fast_mode=fast_mode,
    )


def _random_like(t: Tensor, non_contiguous: bool) -> Tensor:
    chance = random.Random(1)
    made = _from_reals([chance.gauss(0.0, 1.0) for _ in _reals(t)], t)
    if non_contiguous and made.ndim:
        with no_grad():
            made = aten.stack([made, made], -1).select(-1, 0)
    result: Tensor = made.requires_grad_()
    return result
