"""What libraries on top of Argand need to take part in `__torch_function__`: `torch.overrides`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from argand_c10 import _C, Tensor
from argand_c10.function_mode import BaseTorchFunctionMode, TorchFunctionMode

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is entered, or the type of one of the objects takes over calls in which it appears, by a `__torch_function__` of its own."""
    return _C._has_override(*relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """`has_torch_function((obj,))`"""
    return _C._has_override(obj)


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function(relevant_args)`"""
    return _C._has_override(*relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the innermost mode, or else the first of the objects' types answers to `public_api(*args, **kwargs)`: subclasses before their bases, else from the left.

    Raises:
        TypeError: none of them answers.
    """
    return _C._handle_override(public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function whose arguments, those that `dispatcher` gives for them, may take over its calls."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or an object with `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")
