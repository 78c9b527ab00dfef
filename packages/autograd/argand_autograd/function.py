"""Custom differentiable functions in Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_autograd import _C
from argand_autograd._C import FunctionCtx
from argand_autograd.batching import is_entry, run_again, shares_history
from argand_autograd.batching.users import apply_by_rule
from argand_autograd.grad_mode import no_grad
from argand_c10 import Tensor

__all__ = ["Function", "FunctionCtx", "gradient_barrier", "once_differentiable"]


class Function:
    """A function with a backward of its own.

    Subclasses define static methods and are used through `apply`::

        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 2 * x * grad

        y = Square.apply(x)

    `forward` may also be written without `ctx`, together with `setup_context(ctx, inputs, output)`. It runs without
    gradients. `backward` gets one gradient per result and returns one per argument (None where there is none); written
    in differentiable operations, it can be differentiated again.
    """

    generate_vmap_rule = False
    _has_vmap = False
    _uses_setup_context = False
    _context_type: type[FunctionCtx] = FunctionCtx

    def __init__(self) -> None:
        raise RuntimeError(
            f"{type(self).__name__}: functions are not instantiated; call {type(self).__name__}.apply(...)"
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._has_vmap = hasattr(cls, "vmap") and not cls.generate_vmap_rule
        cls._uses_setup_context = cls.setup_context is not Function.setup_context
        cls._context_type = type(
            f"{cls.__name__}Backward", (FunctionCtx,), {"__module__": cls.__module__}
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results: `forward(ctx, *args)`, or `forward(*args)` with `setup_context`."""
        raise NotImplementedError(
            "Function: got no forward, expected the subclass to define the static method forward"
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what backward needs, where `forward` takes no `ctx`."""
        raise TypeError("Function: got no setup_context, expected the subclass to define it")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Turn the gradients of the results into those of the arguments."""
        raise NotImplementedError(
            "Function: got no backward, expected the subclass to define the static method backward "
            "(or vjp) to be differentiable"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` and record it."""
        if kwargs or cls._uses_setup_context:
            args = cls._bind(args, kwargs)
        if any(is_entry(x) for x in args):
            recorded = [x for x in args if isinstance(x, Tensor) and x.requires_grad]
            if cls._has_vmap and not recorded:
                return apply_by_rule(cls, args)
            if any(not is_entry(x) for x in recorded) or any(
                is_entry(x) and shares_history(x) for x in args
            ):
                run_again("a Function without vmap, and gradients from outside of it,")
        return _C._function_apply(cls, cls._context_type(), args)

    @classmethod
    def _bind(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Positional arguments with defaults filled in, as backward counts them."""
        signature = inspect.signature(cls.forward)
        leading = () if cls._uses_setup_context else (None,)
        bound = signature.bind(*leading, *args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{cls.__name__}.apply: got keyword-only arguments {sorted(bound.kwargs)}, expected "
                "positional ones; gradients are counted by position"
            )
        return bound.args[len(leading) :]


class _TwiceError(Function):
    """Passes gradients on; differentiating them raises."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Any) -> Any:
        return tuple(None if t is None else t.detach() for t in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `Function.backward` for one that works on raw values: differentiating its results is an error."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grad_outputs: Any) -> Any:
        with no_grad():
            results = backward(ctx, *grad_outputs)
        if not _C.is_grad_enabled():
            return results
        depends = any(isinstance(g, Tensor) and g.requires_grad for g in grad_outputs)
        depends = depends or any(
            isinstance(t, Tensor) and t.requires_grad for t in ctx.saved_tensors
        )
        if not depends:
            return results
        as_tuple = results if isinstance(results, tuple) else (results,)
        # A leaf that requires grad makes the results differentiable, so that the error comes when it should.
        trigger = aten.zeros([]).requires_grad_()
        wrapped = _TwiceError.apply(len(as_tuple), *as_tuple, trigger)
        return wrapped if isinstance(results, tuple) else wrapped[0]

    return wrapper


class _Barrier(Function):
    @staticmethod
    def forward(ctx: Any, on_backward: Any, *tensors: Tensor) -> Any:
        ctx.on_backward = on_backward
        ctx.set_materialize_grads(False)
        return tuple(aten.ops.alias(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return (None, *ctx.on_backward(grad_outputs))


def gradient_barrier(
    on_backward: Callable[[tuple[Any, ...]], tuple[Any, ...]], tensors: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Aliases of `tensors` joined by one node, whose backward replaces the tuple of gradients.

    Args:
        on_backward: gets the gradients of the aliases (None where none flowed), returns those of `tensors`.
        tensors: at least one of them requires grad.
    """
    aliases: tuple[Tensor, ...] = _Barrier.apply(on_backward, *tensors)
    return aliases
