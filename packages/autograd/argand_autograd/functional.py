"""Jacobians, Hessians and their products with vectors, by reverse mode.

`func` takes and returns a tensor or a tuple of tensors; results have the structure of its inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_autograd.batching import run_entries, runs_at_once
from argand_autograd.differentiate import begin_history, grad
from argand_autograd.grad_mode import enable_grad
from argand_autograd.vmap import stack_as_they_lie, stacked_memory
from argand_c10 import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]


def _as_tuple(value: Any, what: str, caller: str) -> tuple[bool, Tensors]:
    is_tuple = isinstance(value, tuple | list)
    tensors = tuple(value) if is_tuple else (value,)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            where = f" at position {i}" if is_tuple else ""
            raise TypeError(
                f"{caller}: got {type(t).__name__}{where} as {what}, expected a Tensor or a tuple of Tensors"
            )
    return is_tuple, tensors


def _prepare(inputs: Tensors, create_graph: bool) -> Tensors:
    """Leaves of a graph of their own, or aliases that keep the inputs' history."""
    if create_graph:
        return tuple(
            aten.ops.alias(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs
        )
    return tuple(x.detach().requires_grad_() for x in inputs)


def _finish(values: Any, create_graph: bool) -> Any:
    if isinstance(values, tuple):
        return tuple(_finish(v, create_graph) for v in values)
    return values if create_graph else values.detach()


def _run(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, caller: str
) -> tuple[bool, Tensors, bool, Tensors]:
    is_tuple, originals = _as_tuple(inputs, "inputs", caller)
    arguments = _prepare(originals, create_graph)
    return is_tuple, arguments, *call(func, arguments, strict, caller)


def call(
    func: Callable[..., Any], arguments: Tensors, strict: bool, caller: str
) -> tuple[bool, Tensors]:
    """Whether `func` returns a tuple, and its results as one."""
    outputs_are_tuple, outputs = _as_tuple(func(*arguments), "the result of func", caller)
    if strict:
        for i, y in enumerate(outputs):
            if not y.requires_grad:
                raise RuntimeError(
                    f"{caller}: output {i} is independent of all inputs; this is not allowed with strict=True"
                )
    return outputs_are_tuple, outputs


def _grad(
    outputs: Tensors,
    inputs: Tensors,
    gradients: tuple[Tensor | None, ...],
    create_graph: bool,
    strict: bool,
    caller: str,
    retain_graph: bool = True,
) -> Tensors:
    """Gradients, with zeros for inputs that have none (an error when strict)."""
    pairs = [(y, g) for y, g in zip(outputs, gradients, strict=True) if y.requires_grad]
    if pairs:
        made: tuple[Tensor | None, ...] = grad(
            [y for y, _ in pairs],
            inputs,
            [g for _, g in pairs],
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    else:
        made = (None,) * len(inputs)
    if strict and any(g is None for g in made):
        place = next(i for i, g in enumerate(made) if g is None)
        raise RuntimeError(
            f"{caller}: the output is independent of input {place}; this is not allowed with strict=True"
        )
    return tuple(aten.zeros_like(x) if g is None else g for g, x in zip(made, inputs, strict=True))


def _vectors(v: Any, like: Tensors, caller: str) -> Tensors:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"{caller}: got v=None, expected a vector for every tensor; v may only be left out for "
                "one tensor with one element"
            )
        return (aten.ones_like(like[0]),)
    _, vectors = _as_tuple(v, "v", caller)
    if len(vectors) != len(like) or any(
        a.shape != b.shape for a, b in zip(vectors, like, strict=True)
    ):
        raise RuntimeError(
            f"{caller}: got v with shapes {[tuple(a.shape) for a in vectors]}, expected "
            f"{[tuple(b.shape) for b in like]}"
        )
    return vectors


def _one_output(outputs: Tensors, caller: str) -> None:
    if len(outputs) != 1 or outputs[0].numel() != 1:
        raise RuntimeError(
            f"{caller}: got {len(outputs)} outputs of shapes {[tuple(y.shape) for y in outputs]}, "
            "expected func to return one tensor with one element"
        )


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of a vector and `func`'s Jacobian.

    Args:
        func: the function.
        inputs: where to differentiate.
        v: the vector, of the outputs' shapes; may be left out for one output with one element.
        create_graph: whether the results can be differentiated.
        strict: whether independent inputs or outputs are an error instead of zeros.

    Returns:
        The outputs, and the products, of the inputs' structure.
    """
    with enable_grad():
        is_tuple, xs, outputs_are_tuple, ys = _run(func, inputs, create_graph, strict, "vjp")
        made = _grad(
            ys, xs, _vectors(v, ys, "vjp"), create_graph, strict, "vjp", retain_graph=create_graph
        )
    ys, made = _finish(ys, create_graph), _finish(made, create_graph)
    return ys if outputs_are_tuple else ys[0], made if is_tuple else made[0]


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of `func`'s Jacobian and a vector, by differentiating the vector-Jacobian product.

    Args:
        func: the function.
        inputs: where to differentiate.
        v: the vector, of the inputs' shapes; may be left out for one input with one element.
        create_graph: whether the results can be differentiated.
        strict: whether independent inputs or outputs are an error instead of zeros.

    Returns:
        The outputs, and the products, of the outputs' structure.
    """
    with enable_grad():
        _, xs, outputs_are_tuple, ys = _run(func, inputs, create_graph, strict, "jvp")
        made = push_forward(ys, xs, _vectors(v, xs, "jvp"), create_graph, strict)
    ys, made = _finish(ys, create_graph), _finish(made, create_graph)
    return (ys, made) if outputs_are_tuple else (ys[0], made[0])


def push_forward(
    ys: Tensors, xs: Tensors, vectors: Tensors, create_graph: bool, strict: bool
) -> Tensors:
    """The derivatives along `vectors` of results `ys` of arguments `xs`, which are in their graph."""
    # J'u is linear in u: its derivative along v is Jv, whatever u is.
    dummies = tuple(begin_history(aten.zeros_like(y)) for y in ys)
    products = _grad(ys, xs, dummies, True, strict, "jvp")
    return _grad(products, dummies, vectors, create_graph, strict, "jvp", retain_graph=create_graph)


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of a vector and the Hessian of a function with one number as its result.

    Args:
        func: the function.
        inputs: where to differentiate.
        v: the vector, of the inputs' shapes; may be left out for one input with one element.
        create_graph: whether the results can be differentiated.
        strict: whether independent inputs are an error instead of zeros.

    Returns:
        The output, and the products, of the inputs' structure.
    """
    with enable_grad():
        is_tuple, xs, outputs_are_tuple, ys = _run(func, inputs, create_graph, strict, "vhp")
        _one_output(ys, "vhp")
        vectors = _vectors(v, xs, "vhp")
        first = _grad(ys, xs, (aten.ones_like(ys[0]),), True, strict, "vhp")
        made = _grad(first, xs, vectors, create_graph, strict, "vhp", retain_graph=create_graph)
    ys, made = _finish(ys, create_graph), _finish(made, create_graph)
    return ys if outputs_are_tuple else ys[0], made if is_tuple else made[0]


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The product of the Hessian and a vector: as `vhp`, differentiated along the vector.

    Args and results as in `vhp`; where second derivatives are continuous the two are equal and `vhp` is faster.
    """
    with enable_grad():
        is_tuple, xs, outputs_are_tuple, ys = _run(func, inputs, create_graph, strict, "hvp")
        _one_output(ys, "hvp")
        vectors = _vectors(v, xs, "hvp")
        first = _grad(ys, xs, (aten.ones_like(ys[0]),), True, strict, "hvp")
        dummies = tuple(aten.zeros_like(x).requires_grad_() for x in xs)
        products = _grad(first, xs, dummies, True, strict, "hvp")
        made = _grad(
            products, dummies, vectors, create_graph, strict, "hvp", retain_graph=create_graph
        )
    ys, made = _finish(ys, create_graph), _finish(made, create_graph)
    return ys if outputs_are_tuple else ys[0], made if is_tuple else made[0]


def _check_strategy(caller: str, strategy: str) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"{caller}: got strategy {strategy!r}, expected 'reverse-mode' or 'forward-mode'"
        )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """All partial derivatives of `func`.

    Args:
        func: the function.
        inputs: where to differentiate.
        create_graph: whether the result can be differentiated.
        strict: whether independent inputs or outputs are an error instead of zeros.
        vectorize: whether rows keep the order of dimensions in memory that each has by itself.
        strategy: "reverse-mode" or "forward-mode", which changes nothing.

    Returns:
        For output y and input x a tensor of shape `y.shape + x.shape`; tuples over outputs, then inputs, where `func`
        has several.
    """
    _check_strategy("jacobian", strategy)
    stack = stack_as_they_lie if vectorize else aten.stack
    with enable_grad():
        is_tuple, xs, outputs_are_tuple, ys = _run(func, inputs, create_graph, strict, "jacobian")
        rows = jacobian_rows(ys, xs, create_graph, strict, stack)
    result = _finish(rows, create_graph)
    if not is_tuple:
        result = tuple(row[0] for row in result)
    return result if outputs_are_tuple else result[0]


def _rows_at_once(
    y: Tensor, xs: Tensors, create_graph: bool, stack: Callable[..., Tensor], chunk_size: int
) -> Tensors:
    """The derivatives of every element of `y`, by a backward for many of them."""
    count = y.numel()
    units = aten.reshape(aten.eye(count, dtype=y.dtype, device=y.device), [count, *y.shape])

    def row(leaves: list[Any]) -> Tensors:
        return _grad((y,), xs, (leaves[0],), create_graph, False, "jacobian")

    chunks = []
    for start in range(0, count, chunk_size):
        size = min(chunk_size, count - start)
        chunks.append(run_entries(row, [units.narrow(0, start, size)], [0], size))
    wholes = (
        aten.cat(list(parts)) if len(parts) > 1 else parts[0] for parts in zip(*chunks, strict=True)
    )
    lying = (
        stacked_memory(g, xs) if stack is stack_as_they_lie else g.contiguous() for g in wholes
    )
    return tuple(aten.reshape(g, [*y.shape, *x.shape]) for g, x in zip(lying, xs, strict=True))


def jacobian_rows(
    ys: Tensors,
    xs: Tensors,
    create_graph: bool,
    strict: bool,
    stack: Callable[..., Tensor],
    chunk_size: int | None = None,
) -> tuple[Tensors, ...]:
    """For each of the results `ys` its derivatives by each of the arguments `xs`, which are in their graph: at once, where
    one backward can, `chunk_size` rows at most."""
    rows: list[Tensors] = []
    for y in ys:
        if (
            runs_at_once([y, *xs])
            and y.requires_grad
            and y.is_floating_point()
            and y.numel() > 1
            and not strict
        ):
            rows.append(_rows_at_once(y, xs, create_graph, stack, chunk_size or y.numel()))
            continue
        flat = aten.reshape(y, [-1])
        columns: list[list[Tensor]] = [[] for _ in xs]
        for k in range(flat.numel()):
            made = _grad((flat[k],), xs, (None,), create_graph, strict, "jacobian")
            for column, g in zip(columns, made, strict=True):
                column.append(g)
        rows.append(
            tuple(
                aten.reshape(stack(c), [*y.shape, *x.shape])
                if c
                else aten.zeros([*y.shape, *x.shape], dtype=x.dtype, device=x.device)
                for c, x in zip(columns, xs, strict=True)
            )
        )
    return tuple(rows)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """All second derivatives of a function with one number as its result.

    Args:
        func: the function.
        inputs: where to differentiate.
        create_graph: whether the result can be differentiated.
        strict: whether independent inputs are an error instead of zeros.
        vectorize: accepted for compatibility.
        outer_jacobian_strategy: "reverse-mode" or "forward-mode", which changes nothing.

    Returns:
        For inputs x and z a tensor of shape `x.shape + z.shape`; a tuple of tuples where there are several inputs.
    """
    _check_strategy("hessian", outer_jacobian_strategy)
    is_tuple, _ = _as_tuple(inputs, "inputs", "hessian")

    def first_derivative(*xs: Tensor) -> Any:
        _, ys = _as_tuple(func(*xs), "the result of func", "hessian")
        _one_output(ys, "hessian")
        made = _grad(ys, xs, (aten.ones_like(ys[0]),), True, strict, "hessian")
        return made if is_tuple else made[0]

    return jacobian(first_derivative, inputs, create_graph, strict)
