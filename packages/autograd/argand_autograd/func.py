"""Functional transforms: functions that return gradients of functions. They nest."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_autograd import functional
from argand_autograd._tree import flatten, map_tree, unflatten
from argand_autograd.differentiate import grad as _gradients
from argand_autograd.grad_mode import enable_grad
from argand_autograd.vmap import vmap
from argand_c10 import Tensor

__all__ = [
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
    "vmap",
]


class _Levels(threading.local):
    """How many transforms are running in this thread; the outermost gives results without history."""

    depth = 0


_levels = _Levels()


def _enter(t: Any) -> Any:
    """A tensor of this level: it requires grad, and keeps the history of an outer level."""
    if not isinstance(t, Tensor):
        return t
    return aten.ops.alias(t) if t.requires_grad else t.detach().requires_grad_()


def _leave(t: Any, outer: bool) -> Any:
    return t.detach() if isinstance(t, Tensor) and not outer else t


def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that returns `func`'s value and its gradient.

    Args:
        func: returns a tensor with one element, or with `has_aux` a pair of it and anything else.
        argnums: the position, or positions, of the arguments to differentiate: tensors, or dicts, lists and tuples of
            tensors.
        has_aux: whether `func` returns such a pair.

    Returns:
        A function with `func`'s arguments that returns `(value, gradient)`, or `((value, aux), gradient)`.
    """
    places = argnums if isinstance(argnums, tuple) else (argnums,)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        arguments = list(args)
        for place in places:
            if not -len(args) <= place < len(args):
                raise ValueError(
                    f"grad: got argnums {argnums} for {len(args)} positional arguments, expected positions of them"
                )
        # Differentiable again when a transform around this one is at work, or the caller records.
        differentiate_again = _levels.depth > 0 or any(
            isinstance(t, Tensor) and t.requires_grad for t in flatten((args, kwargs))[0]
        )
        _levels.depth += 1
        try:
            with enable_grad():
                for place in places:
                    arguments[place] = map_tree(_enter, arguments[place])
                result = func(*arguments, **kwargs)
                value, aux = result if has_aux else (result, None)
                if not isinstance(value, Tensor) or value.numel() != 1:
                    got = (
                        f"shape {tuple(value.shape)}"
                        if isinstance(value, Tensor)
                        else type(value).__name__
                    )
                    raise RuntimeError(
                        f"grad: got a function result of {got}, expected a tensor with one element"
                    )
                leaves, structure = flatten(tuple(arguments[place] for place in places))
                tensors = [t for t in leaves if isinstance(t, Tensor)]
                made: tuple[Any, ...] = (None,) * len(tensors)
                if value.requires_grad:
                    made = _gradients(
                        value,
                        tensors,
                        retain_graph=True,
                        create_graph=differentiate_again,
                        allow_unused=True,
                    )
                made = tuple(
                    aten.zeros_like(x) if g is None else g
                    for g, x in zip(made, tensors, strict=True)
                )
        finally:
            _levels.depth -= 1
        by_tensor = iter(made)
        gradients = unflatten(
            structure,
            [
                _leave(next(by_tensor), differentiate_again) if isinstance(t, Tensor) else None
                for t in leaves
            ],
        )
        value = _leave(value, differentiate_again)
        aux = map_tree(lambda t: _leave(t, differentiate_again), aux)
        gradient = gradients if isinstance(argnums, tuple) else gradients[0]
        return ((value, aux) if has_aux else value), gradient

    return wrapper


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """As `value_and_grad`, with the gradient first."""
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return wrapper


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns `func`'s gradient; with `has_aux` the pair of it and what else `func` returned.

    Args:
        func: returns a tensor with one element, or with `has_aux` a pair of it and anything else.
        argnums: the position, or positions, of the arguments to differentiate.
        has_aux: whether `func` returns such a pair.
    """
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def _outer(*values: Any) -> bool:
    """Whether results keep their history: a transform around this one is at work, or the caller records."""
    leaves = flatten(values)[0]
    return _levels.depth > 0 or any(isinstance(t, Tensor) and t.requires_grad for t in leaves)


def vjp(func: Callable[..., Any], *primals: Tensor, has_aux: bool = False) -> tuple[Any, ...]:
    """`func`'s results, and a function from their gradients to those of the arguments; with `has_aux` also what else `func` returned.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors, or with `has_aux` a pair of that and anything else.
        primals: where to differentiate.
        has_aux: whether `func` returns such a pair.
    """
    outer = _outer(*primals)
    with enable_grad():
        arguments = tuple(_enter(p) for p in primals)
        results = func(*arguments)
    results, aux = results if has_aux else (results, None)

    def pull_back(*gradients: Any) -> tuple[Tensor, ...]:
        given = gradients[0] if len(gradients) == 1 else gradients
        outputs = results if isinstance(results, tuple) else (results,)
        vectors = given if isinstance(given, tuple) else (given,)
        made = _gradients(
            outputs,
            arguments,
            vectors,
            retain_graph=True,
            create_graph=outer,
            materialize_grads=True,
        )
        return tuple(g for g in made if g is not None)

    value = map_tree(lambda t: _leave(t, outer), results)
    return (
        (value, pull_back, map_tree(lambda t: _leave(t, outer), aux))
        if has_aux
        else (value, pull_back)
    )


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """`func`'s results and their derivatives along `tangents`; with `has_aux` also what else `func` returned.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors, or with `has_aux` a pair of that and anything else.
        primals: a tuple of tensors, where to differentiate.
        tangents: a tuple of tensors, the direction.
        strict: whether independent inputs or outputs are an error instead of zeros.
        has_aux: whether `func` returns such a pair.
    """
    outer, aux = _outer(primals, tangents), []

    def value_of(*arguments: Tensor) -> Any:
        found = func(*arguments)
        if not has_aux:
            return found
        aux.append(found[1])
        return found[0]

    _levels.depth += 1
    try:
        value, made = functional.jvp(
            value_of, tuple(primals), tuple(tangents), create_graph=outer, strict=strict
        )
    finally:
        _levels.depth -= 1
    return (value, made, map_tree(lambda t: _leave(t, outer), aux[0])) if has_aux else (value, made)


def linearize(func: Callable[..., Any], *primals: Tensor) -> tuple[Any, Callable[..., Any]]:
    """`func`'s results at `primals`, and the function from tangents to its derivatives there."""

    def push_forward(*tangents: Tensor) -> Any:
        return jvp(func, primals, tangents)[1]

    return func(*primals), push_forward


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns `func`'s Jacobian; with `has_aux` the pair of it and what else `func` returned.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors, or with `has_aux` a pair of that and anything else.
        argnums: the position of the argument to differentiate, or several: then there is a tuple over them.
        has_aux: whether `func` returns such a pair.
        chunk_size: accepted; rows are made one by one.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        aux = []

        def value_of(*chosen: Tensor) -> Any:
            arguments = list(args)
            for place, x in zip(
                argnums if isinstance(argnums, tuple) else (argnums,), chosen, strict=True
            ):
                arguments[place] = x
            found = func(*arguments, **kwargs)
            if not has_aux:
                return found
            aux.append(found[1])
            return found[0]

        inputs = tuple(args[i] for i in argnums) if isinstance(argnums, tuple) else args[argnums]
        outer = _outer(inputs)
        _levels.depth += 1
        try:
            found = functional.jacobian(value_of, inputs, create_graph=outer)
        finally:
            _levels.depth -= 1
        return (found, map_tree(lambda t: _leave(t, outer), aux[0])) if has_aux else found

    return wrapper


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """As `jacrev`: the tape runs backwards only. `randomness` is accepted, without effect."""
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns `func`'s second derivatives with respect to the arguments at `argnums`."""
    return jacrev(jacrev(func, argnums), argnums)
