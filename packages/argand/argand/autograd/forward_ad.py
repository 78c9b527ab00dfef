"""Tangents that go forward with tensors: inside of a level, every operator takes those of its arguments on to its results.

An operator's derivative along them is that of `argand.func.jvp`, and gradients may be taken of it. The tangent of a view is the view of its
base's tangent, so that what changes one in place changes the other. The engine takes none along: what `backward` and `grad` make has no tangents.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any, NamedTuple

from argand.utils._pytree import tree_flatten, tree_unflatten
from argand_autograd import enable_grad, is_inference_mode_enabled
from argand_autograd.func import jvp
from argand_c10 import Operator, Tensor, preserve_format
from argand_c10.fork import renew_in_child
from argand_c10.modes import ArgandDispatchMode, find_operator
from argand_fx.schema import schema_of

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_TANGENT = "_forward_tangent"
_CONSTANT = frozenset(
    {"detach", "detach_", "fill_", "zero_"}
)  # their results have no tangents, or zeros


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


class _Tangent(NamedTuple):
    """Of a tensor in a level; an attribute of it. None is known to be none, whatever its base has."""

    level: _Level
    value: Tensor | None


class _NoTangents(Exception):
    """The results, which are no floating-point tensors."""


class _Level(ArgandDispatchMode):
    """Takes tangents from arguments to results."""

    def tangent_of(self, t: Any) -> Tensor | None:
        found: _Tangent | None = getattr(t, "__dict__", {}).get(_TANGENT)
        if found is not None and found.level is self:
            return found.value
        if not isinstance(t, Tensor) or not t._is_view():
            return None
        base: Any = t._base
        whole = self.tangent_of(base)
        if whole is None or t.dtype != base.dtype:
            return None
        value = _part(whole, t, base)
        self.give(t, value)
        return value

    def give(self, t: Tensor, tangent: Tensor | None) -> None:
        t.__dict__[_TANGENT] = _Tangent(self, tangent)

    def _own(self, t: Tensor) -> Tensor:
        """The tangent, zeros if there is none, in memory of its own that the views of `t` see."""
        own = self.tangent_of(t)
        if own is not None:
            if not (own.is_leaf and own.requires_grad):
                return own
            own = _like(t).copy_(own)
        elif (base := t._base) is not None and t.dtype == base.dtype:
            own = _part(self._own(base), t, base)
        else:
            own = _like(t)
        self.give(t, own)
        return own

    def __argand_dispatch__(
        self, op: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        leaves, structure = tree_flatten((args, dict(kwargs or {})))
        places = [i for i, leaf in enumerate(leaves) if self.tangent_of(leaf) is not None]
        if not places or op.name in _CONSTANT or is_inference_mode_enabled():
            result = op(*args, **(kwargs or {}))
            if places and op.name in ("fill_", "zero_"):
                with enable_grad():
                    self._own(args[0]).zero_()
            elif places and (op.is_inplace or op.name == "detach"):
                self.give(args[0] if op.is_inplace else result, None)
            return result
        if op.is_inplace:
            return self._change(op, args, kwargs, leaves, structure, places)
        if _is_alias(op):
            return self._view(op, args, kwargs)
        try:
            values, tangents, rest, shape = self._push(op, leaves, structure, places)
        except _NoTangents as found:
            return found.args[0]
        taken = {_memory(self.tangent_of(leaves[i])) for i in places}
        for value, tangent in zip(values, tangents, strict=True):
            if tangent.stride() != value.stride() or _memory(tangent) in taken:
                with enable_grad():  # it is changed with the result alone
                    tangent = _like(value).copy_(tangent)
            taken.add(_memory(tangent))
            self.give(value, tangent)
        made = iter(values)
        return tree_unflatten([next(made) if leaf is _push_mark else leaf for leaf in rest], shape)

    def _push(
        self,
        op: Operator,
        leaves: list[Any],
        structure: Any,
        places: list[int],
        changes: bool = False,
    ) -> Any:
        """The floating-point results, their tangents, and the others in their structure; `changes`: one of the arguments will be overwritten."""

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
            directions: Any = [self.tangent_of(dual) for dual in duals]
            if changes and any(
                isinstance(t, Tensor) and t.requires_grad for t in (*leaves, *directions)
            ):
                # Gradients of the new tangents need what is overwritten.
                duals = tuple(dual.clone() for dual in duals)
                directions = [t.clone() for t in directions]
            values, tangents, (rest, shape) = jvp(run, duals, tuple(directions), has_aux=True)
        return values, tangents, rest, shape

    def _change(
        self, op: Operator, args: Any, kwargs: Any, leaves: Any, structure: Any, places: Any
    ) -> Any:
        """The same for what changes its first argument."""
        target = args[0]
        if op.is_random or not isinstance(target, Tensor):
            raise NotImplementedError(f"forward_ad: {op.name} changes a tensor with a tangent")
        if op.name == "copy_":
            source = self.tangent_of(args[1])
            tangent = target.new_zeros(()) if source is None else source
        else:
            name, dot, overload = op.name.partition(".")
            try:
                made = find_operator(name[:-1] + dot + overload)
            except LookupError as error:
                raise NotImplementedError(
                    f"forward_ad: {op.name} changes a tensor with a tangent; use an operator that makes a new one"
                ) from error
            if _is_alias(made):  # sizes and strides are changed, no elements
                with enable_grad():
                    tangent = made(self.tangent_of(target), *args[1:], **(kwargs or {}))
                result = op(*args, **(kwargs or {}))
                self.give(target, tangent)
                return result
            _, (tangent, *_), _, _ = self._push(made, leaves, structure, places, True)
        result = op(*args, **(kwargs or {}))
        with enable_grad():
            self._own(target).copy_(tangent)
        return result

    def _view(self, op: Operator, args: Any, kwargs: Any) -> Any:
        """The same for what gives a part of its first argument's memory, or a copy of the part: it does that with the tangent."""
        result = op(*args, **(kwargs or {}))
        tangent = self.tangent_of(args[0])
        if tangent is not None:
            with enable_grad():
                tangents = op(tangent, *args[1:], **(kwargs or {}))
            values, found = tree_flatten(result)[0], tree_flatten(tangents)[0]
            for value, one in zip(values, found, strict=True):
                if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
                    self.give(value, one)
        return result


def _memory(t: Any) -> int:
    address: int = t.untyped_storage().data_ptr()
    return address


def _like(t: Tensor) -> Tensor:
    """Zeros of the sizes and strides of `t`; of other strides where its elements share memory."""
    return t.detach().clone(memory_format=preserve_format).zero_()


def _part(whole: Tensor, t: Tensor, base: Tensor) -> Tensor:
    """The part of `whole` that `t` is of `base`, whose strides it has."""
    offset = t.storage_offset() - base.storage_offset() + whole.storage_offset()
    with enable_grad():
        return whole.as_strided(t.shape, t.stride(), offset)


@functools.cache
def _is_alias(op: Operator) -> bool:
    """Whether the result may lie in the first argument's memory."""
    first = schema_of(op).arguments[:1]
    return bool(first) and first[0].alias and not first[0].written and not first[0].is_list


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
    if tangent.stride() != tensor.stride():  # views of the one are to be views of the other
        tangent = _like(tensor).copy_(tangent)
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
