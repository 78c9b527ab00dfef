"""Activation checkpointing: what a part of the forward would save is computed again in backward.

Without re-entrance (the default) the part runs once with hooks on everything it saves. They keep placeholders; the first
one that backward asks for runs the part again and fills all of them.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import argand_c10
from argand_autograd import _C
from argand_autograd._tree import map_tree
from argand_autograd.amp import autocast_as, autocast_state
from argand_autograd.differentiate import backward
from argand_autograd.function import Function
from argand_autograd.grad_mode import enable_grad, no_grad
from argand_autograd.graph import saved_tensors_hooks
from argand_c10 import Tensor, random

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_early_stop",
]

ContextFunction = Callable[[], tuple[Any, Any]]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first."""


class _StopRecomputation(Exception):
    """Everything that backward needs has been computed."""


class _Placeholder:
    """Stands for one saved tensor; the graph owns it."""

    __slots__ = ("__weakref__", "facts", "index")

    def __init__(self, index: int, t: Tensor) -> None:
        self.index = index
        self.facts = (tuple(t.shape), t.dtype, t.device)


def noop_context_fn() -> tuple[Any, Any]:
    """Two context managers that do nothing: the default of `context_fn`."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def _detached(value: Any) -> Any:
    """Arguments for the second run: the same values, cut from the outer graph."""
    if not isinstance(value, Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


class _Frame:
    """One checkpointed call: how to run it again, and what the second run saved."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        preserve_rng: bool,
        early_stop: bool,
        check: bool,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.early_stop, self.check = early_stop, check
        self.rng_state = random.get_rng_states() if preserve_rng else None
        self.autocast = autocast_state()
        self.placeholders: list[weakref.ref[_Placeholder]] = []
        # By placeholder: an entry goes when the graph lets go of its placeholder.
        self.values: weakref.WeakKeyDictionary[_Placeholder, Tensor] = weakref.WeakKeyDictionary()
        self.recompute_context: Any = contextlib.nullcontext()
        self.first_run_ended = False

    def run(self) -> Any:
        """The first run. A gradient that the function takes inside needs second runs up to there: what they saved is dropped."""
        with saved_tensors_hooks(self.pack, self.unpack):
            result = self.function(*self.args, **self.kwargs)
        self.first_run_ended = True
        self.values.clear()
        return result

    def pack(self, t: Tensor) -> _Placeholder:
        placeholder = _Placeholder(len(self.placeholders), t)
        self.placeholders.append(weakref.ref(placeholder))
        return placeholder

    def unpack(self, placeholder: _Placeholder) -> Tensor:
        if placeholder not in self.values:
            self.recompute()
        value = self.values.get(placeholder)
        if value is None:
            raise CheckpointError(
                f"checkpoint: the second run saved fewer tensors than the first ({len(self.placeholders)}), expected "
                "the same; the function must do the same when it is called again"
            )
        return value

    def _store(self, index: int, t: Tensor) -> None:
        if index >= len(self.placeholders):
            if not self.first_run_ended:
                return
            raise CheckpointError(
                f"checkpoint: the second run saved more tensors than the first ({len(self.placeholders)}), expected "
                "the same; the function must do the same when it is called again"
            )
        placeholder = self.placeholders[index]()
        if placeholder is not None:
            facts = (tuple(t.shape), t.dtype, t.device)
            if self.check and facts != placeholder.facts:
                raise CheckpointError(
                    f"checkpoint: the second run saved tensor {index} with shape, dtype and device {facts}, expected "
                    f"those of the first, {placeholder.facts}; the function must do the same when it is called again"
                )
            self.values[placeholder] = t.detach()
        if self.early_stop and index + 1 == len(self.placeholders):
            raise _StopRecomputation

    def recompute(self) -> None:
        count = 0

        def pack(t: Tensor) -> Tensor:
            nonlocal count
            count += 1
            self._store(count - 1, t)
            return t

        args, kwargs = map_tree(_detached, (self.args, self.kwargs))
        restore = argand_c10.fork_rng(enabled=self.rng_state is not None)
        with (
            restore,
            enable_grad(),
            autocast_as(self.autocast),
            self.recompute_context,
            saved_tensors_hooks(pack, lambda t: t),
        ):
            if self.rng_state is not None:
                random.set_rng_states(self.rng_state)
            with contextlib.suppress(_StopRecomputation):
                self.function(*args, **kwargs)


class _Reentrant(Function):
    @staticmethod
    def forward(ctx: Any, run: Any, preserve_rng: bool, *args: Any) -> Any:
        ctx.run = run
        ctx.rng_state = random.get_rng_states() if preserve_rng else None
        ctx.autocast = autocast_state()
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        arguments = list(ctx.others)
        for place, t in zip(ctx.places, ctx.saved_tensors, strict=True):
            arguments[place] = _detached(t)
        with argand_c10.fork_rng(enabled=ctx.rng_state is not None):
            if ctx.rng_state is not None:
                random.set_rng_states(ctx.rng_state)
            with enable_grad(), autocast_as(ctx.autocast):
                outputs = ctx.run(*arguments)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (y, g)
            for y, g in zip(outputs, grads, strict=True)
            if isinstance(y, Tensor) and y.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "checkpoint: none of the outputs has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([y for y, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in arguments))


# What `set_checkpoint_early_stop` says, over the arguments of calls.
_early_stop: ContextVar[bool | None] = ContextVar("checkpoint_early_stop", default=None)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Context manager inside of which `checkpoint` is called with `early_stop=enable`, whatever its calls say."""
    token = _early_stop.set(enable)
    try:
        yield
    finally:
        _early_stop.reset(token)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: ContextFunction = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function(*args, **kwargs)` without keeping what it saves; backward computes it again.

    Args:
        function: must do the same when it is called again.
        use_reentrant: True runs a backward inside the backward (arguments must be positional, and one of them must
            require grad); False, the default, does not.
        context_fn: returns two context managers, for the first and the second run.
        determinism_check: "default" compares shapes, dtypes and devices of the two runs; "none" does not.
        debug: accepted for compatibility; errors always name the tensor that differs.
        early_stop: whether the second run ends as soon as backward has all it needs.
        preserve_rng_state: whether the second run draws the random numbers of the first.

    Raises:
        CheckpointError: if the second run saves other tensors than the first.
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint: got determinism_check {determinism_check!r}, expected 'default' or 'none'"
        )
    if use_reentrant:
        if kwargs or context_fn is not noop_context_fn:
            raise ValueError(
                f"checkpoint: got keyword arguments {sorted(kwargs)} or context_fn with use_reentrant=True, expected "
                "neither; use use_reentrant=False"
            )
        return _Reentrant.apply(function, preserve_rng_state, *args)
    first, second = context_fn()
    if not _C.is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    enabled = _early_stop.get()
    early_stop = early_stop if enabled is None else enabled
    frame = _Frame(
        function, args, kwargs, preserve_rng_state, early_stop, determinism_check == "default"
    )
    frame.recompute_context = second
    with first:
        return frame.run()


def checkpoint_sequential(
    functions: Iterable[Callable[[Any], Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Apply functions one after the other in checkpointed segments; the last segment is not checkpointed.

    Args:
        functions: a Sequential or a list of callables.
        segments: how many parts to divide them into.
        input: the first function's argument.
        use_reentrant, preserve_rng_state: as in `checkpoint`.
    """
    chain = list(functions)
    if not 1 <= segments <= len(chain):
        raise ValueError(
            f"checkpoint_sequential: got {segments} segments for {len(chain)} functions, expected 1 to {len(chain)}"
        )

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def part(value: Any) -> Any:
            for function in chain[start:end]:
                value = function(value)
            return value

        return part

    size = len(chain) // segments
    for k in range(segments - 1):
        part = run(k * size, (k + 1) * size)
        input = checkpoint(
            part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state
        )
    return run((segments - 1) * size, len(chain))(input)
