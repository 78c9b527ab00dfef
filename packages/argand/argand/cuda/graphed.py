"""Callables whose forward and backward are CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import argand_aten
import argand_autograd
from argand_autograd._tree import flatten, unflatten
from argand_c10 import Module, Tensor, cuda

__all__ = ["make_graphed_callables"]


class _Recorded:
    """A callable's graphs with the memory that they read and write."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args
        (self.inputs, _) = flatten(args)
        for x in self.inputs:
            if not isinstance(x, Tensor) or not x.is_cuda:
                raise TypeError(
                    f"make_graphed_callables: got {type(x).__name__} among the sample arguments, expected CUDA tensors only"
                )
        parameters = list(function.parameters()) if isinstance(function, Module) else []
        self.parameters = [p for p in parameters if p.requires_grad]
        (self.forward, self.backward) = (cuda.CUDAGraph(), cuda.CUDAGraph())
        self.outputs: list[Tensor] = []
        self.structure: Any = None
        self.grad_outputs: list[Tensor | None] = []
        self.grads: list[Tensor | None] = []

    @property
    def leaves(self) -> list[Tensor]:
        """What gradients are wanted for, in the order in which the function takes it."""
        return [x for x in self.inputs if x.requires_grad] + self.parameters

    def warm_up(self, allow_unused: bool) -> None:
        (outputs, _) = flatten(self.function(*self.args))
        outputs = [y for y in outputs if y.requires_grad]
        if outputs and self.leaves:
            grads = [argand_aten.empty_like(y) for y in outputs]
            argand_autograd.grad(outputs, self.leaves, grads, allow_unused=allow_unused)

    def capture_forward(self, pool: tuple[int, int]) -> None:
        with cuda.graph(self.forward, pool=pool):
            result = self.function(*self.args)
        (self.outputs, self.structure) = flatten(result)

    def capture_backward(self, pool: tuple[int, int], allow_unused: bool) -> None:
        outputs = [y for y in self.outputs if y.requires_grad]
        self.grad_outputs = [
            argand_aten.empty_like(y) if y.requires_grad else None for y in self.outputs
        ]
        if not outputs or not self.leaves:
            return
        given = [g for g in self.grad_outputs if g is not None]
        with cuda.graph(self.backward, pool=pool):
            grads = argand_autograd.grad(outputs, self.leaves, given, allow_unused=allow_unused)
        left = iter(grads)
        self.grads = [
            next(left) if x.requires_grad else None for x in (*self.inputs, *self.parameters)
        ]

    def replayed(self) -> Callable[..., Any]:
        """The callable that copies its arguments in and launches the graphs."""
        recorded, n_inputs = self, len(self.inputs)

        class Graphed(argand_autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
                for own, given in zip(recorded.inputs, inputs[:n_inputs], strict=True):
                    if own.data_ptr() != given.data_ptr():
                        own.detach().copy_(given.detach())
                recorded.forward.replay()
                return tuple(y.detach() for y in recorded.outputs)

            @staticmethod
            def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
                for own, given in zip(recorded.grad_outputs, grads, strict=True):
                    if own is None:
                        continue
                    if given is None:
                        own.zero_()
                    elif own.data_ptr() != given.data_ptr():
                        own.copy_(given)
                recorded.backward.replay()
                return tuple(None if g is None else g.detach() for g in recorded.grads)

        def call(*args: Any) -> Any:
            (inputs, _) = flatten(args)
            outputs = Graphed.apply(*inputs, *recorded.parameters)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            return unflatten(recorded.structure, list(outputs))

        return call


def _install(function: Callable[..., Any], graphed: Callable[..., Any]) -> Callable[..., Any]:
    """A module keeps its identity: its forward takes the graphs in the mode in which they were recorded."""
    if not isinstance(function, Module):
        return graphed
    (training, plain) = (function.training, function.forward)

    def forward(*args: Any, **kwargs: Any) -> Any:
        if function.training == training and not kwargs:
            return graphed(*args)
        return plain(*args, **kwargs)

    function.forward = forward  # type: ignore[method-assign]  # of this module alone
    return function


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Versions of functions or modules that run as CUDA graphs, forward and backward.

    Args:
        callables: a function or module, or a tuple of them in the order in which they will run.
        sample_args: a tuple of CUDA tensors (or nested containers of them), or one for each callable: later arguments
            must have the same shapes, dtypes and `requires_grad`.
        num_warmup_iters: ordinary runs before recording.
        allow_unused_input: whether arguments may get no gradient.
        pool: memory to share, see `cuda.graph`.

    Returns:
        As many callables; modules are changed in place and take the graphs in the training mode that they have now.

    Raises:
        TypeError: for sample arguments that are not CUDA tensors.
    """
    single = not isinstance(callables, tuple)
    functions: Sequence[Callable[..., Any]] = (callables,) if single else callables
    arguments = (sample_args,) if single else sample_args
    if len(functions) != len(arguments):
        raise ValueError(
            f"make_graphed_callables: got {len(functions)} callables and {len(arguments)} tuples of arguments, expected as many"
        )
    recorded = [_Recorded(f, tuple(args)) for f, args in zip(functions, arguments, strict=True)]
    pool = cuda.graph_pool_handle() if pool is None else pool
    cuda.synchronize()
    side = cuda.Stream()
    with cuda.stream(side):
        for r in recorded:
            for _ in range(num_warmup_iters):
                r.warm_up(allow_unused_input)
    cuda.synchronize()
    for r in recorded:
        r.capture_forward(pool)
    for r in reversed(recorded):
        r.capture_backward(pool, allow_unused_input)
    graphed = [_install(r.function, r.replayed()) for r in recorded]
    return graphed[0] if single else tuple(graphed)
