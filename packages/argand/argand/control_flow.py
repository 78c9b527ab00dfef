"""Branches whose condition is a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argand_c10 import Tensor

__all__ = ["cond"]


def cond(
    pred: bool | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    The branch is chosen where the program runs: compiled, a condition that only the run decides ends a graph.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn: one branch.
        false_fn: the other, with results of the same structure.
        operands: the branches' arguments.

    Raises:
        RuntimeError: the arguments are not those.
    """
    if not isinstance(pred, bool | Tensor) or (isinstance(pred, Tensor) and pred.numel() != 1):
        got = f"shape {list(pred.shape)}" if isinstance(pred, Tensor) else type(pred).__name__
        raise RuntimeError(f"cond: got pred of {got}, expected a bool or a tensor of one element")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("cond: got branches that cannot be called, expected functions")
    if not isinstance(operands, tuple | list):
        raise RuntimeError(
            f"cond: got operands of type {type(operands).__name__}, expected a tuple or list"
        )
    return true_fn(*operands) if pred else false_fn(*operands)
