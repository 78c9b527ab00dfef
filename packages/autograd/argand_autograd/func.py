"""Functional transforms: functions that return gradients of functions. They nest."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_autograd import _C, functional
from argand_autograd._C import is_grad_enabled
from argand_autograd._tree import flatten, flatten_as, map_tree, unflatten
from argand_autograd.batching import is_entry
from argand_autograd.differentiate import begin_history
from argand_autograd.differentiate import grad as _gradients
from argand_autograd.grad_mode import enable_grad
from argand_autograd.vmap import detached, stack_as_they_lie, vmap
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
    """How many transforms are running in this thread."""

    depth = 0


_levels = _Levels()
# Key in the metadata of the nodes of leaves that stand for a transform's arguments.
_ENTERED = "argand_autograd.func"


def transforms_are_active() -> bool:
    """Whether a function whose gradients are being taken runs in this thread, not whether `vmap` does."""
    return _levels.depth > 0


def change_depth(by: int) -> int:
    """One transform more (1) or less (-1) runs in this thread; returns how many then do."""
    _levels.depth += by
    return _levels.depth


def as_argument(t: Tensor) -> Tensor:
    """A tensor with the memory of `t` and a history of its own, which begins with a leaf that stands for the argument."""
    argument = aten.ops.alias(begin_history(detached(t)))
    argument.grad_fn.next_functions[0][0].metadata[_ENTERED] = True
    return argument


class _Level:
    """Context manager in which one transform runs: operations are recorded, and a result keeps its history if the caller records
    and the history is of more than the transform's own arguments."""

    def __enter__(self) -> _Level:
        self._caller_records, self._is_outermost = is_grad_enabled(), change_depth(1) == 1
        self._recording = enable_grad()
        self._recording.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        change_depth(-1)
        self._recording.__exit__(*exc)

    def enter(self, t: Any) -> Any:
        """A tensor of this level: it requires grad, and keeps the history of an outer level."""
        if not isinstance(t, Tensor):
            return t
        return aten.ops.alias(t) if t.requires_grad else as_argument(t)

    def keeps(self, *tensors: Any) -> bool:
        """Whether one of these keeps its history outside. Inside of another transform all do: that one decides at its end."""
        return self._caller_records and (
            not self._is_outermost or any(reaches_beyond_arguments(t) for t in tensors)
        )

    def leave(self, t: Any) -> Any:
        """A result as the caller gets it."""
        if isinstance(t, Tensor) and (t.requires_grad or is_entry(t)) and not self.keeps(t):
            return t.detach()
        return t


def reaches_beyond_arguments(t: Tensor) -> bool:
    """Whether a leaf that stands for no argument of a transform is in a tensor's history, or in that of what it is an entry of."""
    if is_entry(t) and reaches_beyond_arguments(_C._whole(t)):
        return True
    if t.grad_fn is None:
        return t.requires_grad
    waiting = [t.grad_fn]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        edges = node.next_functions
        if not edges and _ENTERED not in node.metadata:
            return True
        for following, _ in edges:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return False


def _places(name: str, argnums: int | tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions among `args` that `argnums` names, from 0."""
    places = argnums if isinstance(argnums, tuple) else (argnums,)
    if not places:
        raise RuntimeError(f"{name}: argnums must be non-empty")
    for place in places:
        if not -len(args) <= place < len(args):
            raise RuntimeError(
                f"{name}: Got argnum={place}, but only {len(args)} positional inputs"
            )
    found = tuple(place % len(args) for place in places)
    if len(set(found)) < len(found):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums}")
    return found


def _value_and_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """What a function returned, and with `has_aux` what it returned beside that, else None."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True, "
            f"got {type(result).__name__}"
        )
    return result


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

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        arguments = list(args)
        places = _places("grad", argnums, args)
        with _Level() as level:
            for place in places:
                arguments[place] = map_tree(level.enter, arguments[place])
            result = func(*arguments, **kwargs)
            value, aux = _value_and_aux("grad", result, has_aux)
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
                    create_graph=level.keeps(value),
                    allow_unused=True,
                )
            made = tuple(
                aten.zeros_like(x) if g is None else g for g, x in zip(made, tensors, strict=True)
            )
        by_tensor = iter(made)
        gradients = unflatten(
            structure,
            [level.leave(next(by_tensor)) if isinstance(t, Tensor) else None for t in leaves],
        )
        value, aux = level.leave(value), map_tree(level.leave, aux)
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


def _rebuilt(
    func: Callable[..., Any], structure: Any, has_aux: bool
) -> tuple[Callable[..., Any], list[Any], list[Any]]:
    """`func` from the tensors of its arguments to those of its result, what it returns beside them, and the result's structure."""
    structures: list[Any] = []
    aux: list[Any] = []

    def of_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
        found, beside = _value_and_aux("func", func(*unflatten(structure, list(tensors))), has_aux)
        aux[:] = [beside]
        leaves, of_result = flatten(found)
        structures[:] = [of_result]
        return tuple(leaves)

    return of_tensors, structures, aux


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """`func`'s results, and a function from their gradients to those of the arguments; with `has_aux` also what else `func` returned.

    Args:
        func: takes and returns tensors, or dicts, lists and tuples of tensors; with `has_aux` it returns a pair of that and anything else.
        primals: where to differentiate.
        has_aux: whether `func` returns such a pair.
    """
    leaves, structure = flatten(primals)
    of_tensors, structures, aux = _rebuilt(func, structure, has_aux)
    with _Level() as level:
        arguments = tuple(level.enter(p) for p in leaves)
        outputs = of_tensors(*arguments)

    def pull_back(*gradients: Any) -> Any:
        vectors = flatten_as(structures[0], gradients[0] if len(gradients) == 1 else gradients)
        if vectors is None:
            raise RuntimeError(
                f"vjp: got gradients of another structure than the function's result, expected {len(outputs)} tensors as it has"
            )
        with _Level() as level:
            made = _gradients(
                outputs,
                arguments,
                vectors,
                retain_graph=True,
                create_graph=level.keeps(*outputs, *vectors),
                materialize_grads=True,
            )
        return unflatten(structure, [level.leave(t) for t in made])

    value = unflatten(structures[0], [level.leave(t) for t in outputs])
    return (value, pull_back, map_tree(level.leave, aux[0])) if has_aux else (value, pull_back)


def _require_derivable(name: str, inputs: list[Any]) -> None:
    for x in inputs:
        if isinstance(x, Tensor) and not (x.is_floating_point() or x.is_complex()):
            raise ValueError(
                f"{name}: got an input of {x.dtype}, expected floating-point or complex numbers; convert it first"
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
        func: takes and returns tensors, or dicts, lists and tuples of tensors; with `has_aux` it returns a pair of that and anything else.
        primals: the tuple of arguments, where to differentiate.
        tangents: the direction, of the primals' structure.
        strict: whether independent inputs or outputs are an error instead of zeros.
        has_aux: whether `func` returns such a pair.

    Raises:
        ValueError: for primals of integers.
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple):
            raise RuntimeError(f"jvp: got {name} of type {type(given).__name__}, expected a tuple")
    inputs, structure = flatten(primals)
    _require_derivable("jvp", inputs)
    vectors = flatten_as(structure, tangents)
    if vectors is None:
        raise RuntimeError(
            "jvp: got tangents of another structure than the primals, expected a tensor for each of theirs"
        )
    of_tensors, structures, aux = _rebuilt(func, structure, has_aux)
    with _Level() as level:
        xs = tuple(level.enter(x) for x in inputs)
        _, ys = functional.call(of_tensors, xs, strict, "jvp")
        made = functional.push_forward(ys, xs, tuple(vectors), level.keeps(*ys, *vectors), strict)
    value, derivative = (
        unflatten(structures[0], [level.leave(t) for t in tensors]) for tensors in (ys, made)
    )
    if has_aux:
        return value, derivative, map_tree(level.leave, aux[0])
    return value, derivative


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
        func: takes and returns tensors, or dicts, lists and tuples of tensors; with `has_aux` it returns a pair of that and anything else.
        argnums: the position of the argument to differentiate, or several: then there is a tuple over them.
        has_aux: whether `func` returns such a pair.
        chunk_size: how many rows are made at once at most. Default: all.

    Returns:
        A function with `func`'s arguments whose result has the structure of `func`'s, with, for each tensor y, the structure of the
        arguments, with a tensor of shape `y.shape + x.shape` for each x.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = _places("jacobian", argnums, args)

        def of_chosen(*chosen: Any) -> Any:
            arguments = list(args)
            for place, x in zip(places, chosen, strict=True):
                arguments[place] = x
            return func(*arguments, **kwargs)

        inputs, structure = flatten(tuple(args[place] for place in places))
        of_tensors, structures, aux = _rebuilt(of_chosen, structure, has_aux)
        with _Level() as level:
            xs = tuple(level.enter(x) for x in inputs)
            _, ys = functional.call(of_tensors, xs, False, "jacobian")
            rows = functional.jacobian_rows(
                ys, xs, level.keeps(*ys), False, stack_as_they_lie, chunk_size
            )
        by_input = [unflatten(structure, [level.leave(t) for t in row]) for row in rows]
        found = unflatten(
            structures[0], by_input if isinstance(argnums, tuple) else [row[0] for row in by_input]
        )
        return (found, map_tree(level.leave, aux[0])) if has_aux else found

    return wrapper


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """As `jacrev`: the tape runs backwards only; in memory columns are outermost, as forward passes would make them.

    `randomness` is accepted, without effect.
    """
    rows = jacrev(func, argnums, has_aux=has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        inputs = [args[i] for i in _places("jacfwd", argnums, args)]
        _require_derivable("jacfwd", flatten(inputs)[0])
        found = rows(*args, **kwargs)
        if has_aux:
            return _by_columns(found[0], inputs), found[1]
        return _by_columns(found, inputs)

    return wrapper


def _by_columns(jacobians: Any, inputs: Any) -> Any:
    """Each Jacobian with the dimensions of its input outermost in memory."""
    made, (leaves, structure) = [], flatten(jacobians)
    for t, x in zip(leaves, itertools.cycle(flatten(inputs)[0]), strict=False):
        split = t.ndim - x.ndim
        columns = t.permute([*range(split, t.ndim), *range(split)]).contiguous()
        made.append(columns.permute([*range(x.ndim, t.ndim), *range(x.ndim)]))
    return unflatten(structure, made)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns `func`'s second derivatives with respect to the arguments at `argnums`."""
    return jacfwd(jacrev(func, argnums), argnums)
