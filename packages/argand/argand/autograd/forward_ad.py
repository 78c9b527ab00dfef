"""Tangents that go forward with tensors: inside of a level, every operator takes those of its arguments on to its results.

An operator's derivative along them is that of `argand.func.jvp`, and gradients may be taken of it. The engine takes none along: what `backward`
and `grad` make has no tangents.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any, NamedTuple

from argand.utils._pytree import tree_flatten, tree_unflatten
from argand_autograd import enable_grad, is_inference_mode_enabled
from argand_autograd.func import jvp
from argand_c10 import Operator, Tensor
from argand_c10.fork import renew_in_child
from argand_c10.modes import ArgandDispatchMode, find_operator

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_TANGENT = "_forward_tangent"
_CONSTANT = frozenset({"detach", "detach_", "fill_", "zero_"})  # their results have no tangents


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


class _Tangent(NamedTuple):
    """Of a tensor as it is in one version; an attribute of it."""

    level: _Level
    value: Tensor
    version: int


class _NoTangents(Exception):
    """The results, which are no floating-point tensors."""


class _Level(ArgandDispatchMode):
    """Takes tangents from arguments to results."""

    def tangent_of(self, t: Any) -> Tensor | None:
        found: _Tangent | None = getattr(t, "__dict__", {}).get(_TANGENT)
        if found is None or found.level is not self:
            return None
        if found.version != t._version:
            raise RuntimeError(
                "forward_ad: got a tensor with a tangent that was changed in place through another that shares its memory; "
                "change it itself, or a clone"
            )
        return found.value

    def give(self, t: Tensor, tangent: Tensor | None) -> None:
        if tangent is None:
            t.__dict__.pop(_TANGENT, None)
        else:
            t.__dict__[_TANGENT] = _Tangent(self, tangent, t._version)

    def __argand_dispatch__(
        self, op: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        leaves, structure = tree_flatten((args, dict(kwargs or {})))
        places = [i for i, leaf in enumerate(leaves) if self.tangent_of(leaf) is not None]
        if not places or op.name in _CONSTANT or is_inference_mode_enabled():
            result = op(*args, **(kwargs or {}))
            for target in tree_flatten(args[0])[0] if op.is_inplace else ():
                self.give(target, None)
            return result
        if op.is_inplace:
            return self._change(op, args, kwargs, leaves, structure, places)
        try:
            values, tangents, rest, shape = self._push(op, leaves, structure, places)
        except _NoTangents as found:
            return found.args[0]
        for value, tangent in zip(values, tangents, strict=True):
            self.give(value, tangent)
        made = iter(values)
        return tree_unflatten([next(made) if leaf is _push_mark else leaf for leaf in rest], shape)

    def _push(self, op: Operator, leaves: list[Any], structure: Any, places: list[int]) -> Any:
        """The floating-point results, their tangents, and the others in their structure."""

        def run(*duals: Tensor) -> Any:
            given = list(leaves)
            for place, dual in zip(places, duals, strict=True):
                given[place] = dual
            args, kwargs = tree_unflatten(given, structure)
            result = op(*args, **kwargs)
            results, shape = tree_flatten(result)
            floating = [
                isinstance(r, Tensor) and (r.is_floating_point() or r.is_complex()) for r in results
            ]
            if not any(floating):
                raise _NoTangents(result)
            rest = [_push_mark if f else r for f, r in zip(floating, results, strict=True)]
            kept = tuple(r for f, r in zip(floating, results, strict=True) if f)
            return kept, (rest, shape)

        with enable_grad():
            duals = tuple(leaves[i] for i in places)
            directions = tuple(self.tangent_of(dual) for dual in duals)
            values, tangents, (rest, shape) = jvp(run, duals, directions, has_aux=True)
        return values, tangents, rest, shape

    def _change(
        self, op: Operator, args: Any, kwargs: Any, leaves: Any, structure: Any, places: Any
    ) -> Any:
        """The same for what changes its first argument."""
        target = args[0]
        if op.is_random or not isinstance(target, Tensor):
            raise NotImplementedError(f"forward_ad: {op.name} changes a tensor with a tangent")
        own = self.tangent_of(target)
        if own is None and target._is_view():
            raise NotImplementedError(
                f"forward_ad: got a view without a tangent that {op.name} gives one, which its base can't have; use an operator "
                "that makes a new tensor"
            )
        if op.name == "copy_":
            source = self.tangent_of(args[1])
            tangent = None if source is None else source.to(target).expand_as(target)
        else:
            name, dot, overload = op.name.partition(".")
            try:
                made = find_operator(name[:-1] + dot + overload)
            except LookupError as error:
                raise NotImplementedError(
                    f"forward_ad: {op.name} changes a tensor with a tangent; use an operator that makes a new one"
                ) from error
            _, (tangent, *_), _, _ = self._push(made, leaves, structure, places)
        result = op(*args, **(kwargs or {}))
        self.give(target, tangent)
        return result


_push_mark = object()


class _Active(threading.local):
    level: _Level | None = None


class _Plain:
    """Compiled functions run as they are while a thread has a level; what they do is the same for all threads."""

    def __init__(self) -> None:
        self._lock, self._levels, self._stance = threading.Lock(), 0, None
        renew_in_child(self._lock)

    def begin(self) -> None:
        dynamo = sys.modules.get("argand_dynamo")
        with self._lock:
            self._levels += 1
            if self._levels == 1 and dynamo is not None:
                self._stance = dynamo.set_stance("force_eager")

    def end(self) -> None:
        with self._lock:
            self._levels -= 1
            if self._levels == 0 and self._stance is not None:
                self._stance.__exit__(None, None, None)
                self._stance = None


_active = _Active()
_plain = _Plain()


def enter_dual_level() -> int:
    """Begin the level of this thread, in which tensors have tangents; returns its number, 0.

    Compiled functions run as they are meanwhile.

    Raises:
        RuntimeError: there is one.
    """
    if _active.level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _plain.begin()
    _active.level = _Level()
    _active.level.__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level; the tensors have no tangents any more.

    Raises:
        RuntimeError: there is none, or none of this number.
    """
    if _active.level is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    entered, _active.level = _active.level, None
    entered.__exit__(None, None, None)
    _plain.end()


class dual_level:
    """Context manager in which tensors have tangents."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level(level=0)

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return function(*args, **kwargs)

        return run


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that has a tangent, which operators take on to their results.

    Args:
        tensor: of floating-point or complex numbers.
        tangent: of its shape and dtype.
        level: 0, or None.

    Raises:
        RuntimeError: outside of a level, or the tangent is of another shape.
        ValueError: the tensors are of integers.
    """
    if _active.level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, t in (("Primal", tensor), ("Tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(
                f"Expected {name.lower()} to be floating point or complex, but got: {t.dtype}"
            )
    if tangent.shape != tensor.shape or tangent.dtype != tensor.dtype:
        raise RuntimeError(
            f"make_dual: got a tangent of shape {list(tangent.shape)} and {tangent.dtype}, expected those of the tensor, "
            f"{list(tensor.shape)} and {tensor.dtype}"
        )
    dual = tensor.view_as(tensor)
    _active.level.give(dual, tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor without its tangent, and the tangent, None where it has none."""
    tangent = None if _active.level is None else _active.level.tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    assert _active.level is not None
    primal = tensor.view_as(tensor)
    _active.level.give(primal, None)
    return UnpackedDualTensor(primal, tangent)
