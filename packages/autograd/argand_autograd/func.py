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
from argand_c10 import Tensor

__all__ = ["grad", "grad_and_value", "hessian", "jacrev", "value_and_grad", "vjp"]


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


def vjp(
    func: Callable[..., Any], *primals: Tensor
) -> tuple[Any, Callable[..., tuple[Tensor, ...]]]:
    """`func`'s results, and a function from their gradients to those of the arguments.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        primals: where to differentiate.
    """
    with enable_grad():
        arguments = tuple(_enter(p) for p in primals)
        results = func(*arguments)
    outer = any(p.requires_grad for p in primals)

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

    return map_tree(lambda t: _leave(t, outer), results), pull_back


def jacrev(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that returns `func`'s Jacobian with respect to one argument.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        argnums: the position of the argument.
    """

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        def of_one(x: Tensor) -> Any:
            return func(*args[:argnums], x, *args[argnums + 1 :])

        _levels.depth += 1
        try:
            again = _levels.depth > 1 or args[argnums].requires_grad
            return functional.jacobian(of_one, args[argnums], create_graph=again)
        finally:
            _levels.depth -= 1

    return wrapper


def hessian(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that returns `func`'s second derivatives with respect to one argument."""
    return jacrev(jacrev(func, argnums), argnums)
