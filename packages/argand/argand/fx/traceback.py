"""What nodes are told of where they come from: PyTorch's `torch.fx.traceback`."""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from argand_fx import Node

__all__ = [
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_grad_fn_seq_nr",
    "set_stack_trace",
]

P = ParamSpec("P")
R = TypeVar("R")


class _State(threading.local):
    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.custom: dict[str, Any] = {}
        self.preserves = False


_state = _State()


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Gives the nodes that `make_fx` records inside these entries in `meta["custom"]`, besides those around."""
    before, _state.custom = _state.custom, {**_state.custom, **annotation_dict}
    try:
        yield
    finally:
        _state.custom = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: each call of the function runs in `annotate`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return run

    return decorate


def current_annotation() -> dict[str, Any]:
    """What a node that is recorded now has in its `meta`."""
    kept = dict(_state.meta) if _state.preserves else {}
    return {**kept, "custom": dict(_state.custom)} if _state.custom else kept


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Whether nodes that are recorded inside take over what `set_current_meta` has set."""
    before = _state.preserves, _state.meta
    _state.preserves, _state.meta = enable, dict(_state.meta)
    try:
        yield
    finally:
        _state.preserves, _state.meta = before


def has_preserved_node_meta() -> bool:
    """Whether `preserve_node_meta` is in force."""
    return _state.preserves


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Where what nodes are told is preserved: nodes that are recorded inside are told what `node` was."""
    before = _state.meta
    if _state.preserves and node.meta:
        _state.meta = {key: value for key, value in node.meta.items() if key != "val"}
        _state.meta["from_node"] = [*node.meta.get("from_node", []), (node.name, node.target)]
    try:
        yield
    finally:
        _state.meta = before


def get_current_meta() -> dict[str, Any]:
    """What nodes are told."""
    return _state.meta


def set_stack_trace(stack: list[str]) -> None:
    """The stack that nodes are told, if it is preserved."""
    if _state.preserves and stack:
        _state.meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The stack that nodes are told, else that of the caller."""
    if _state.preserves:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """The number of the gradient's node that nodes are told, if it is preserved."""
    if _state.preserves:
        _state.meta["grad_fn_seq_nr"] = [*_state.meta.get("grad_fn_seq_nr", []), seq_nr]


def reset_grad_fn_seq_nr() -> None:
    """Takes back the last `set_grad_fn_seq_nr`."""
    if _state.preserves and _state.meta.get("grad_fn_seq_nr"):
        _state.meta["grad_fn_seq_nr"] = _state.meta["grad_fn_seq_nr"][:-1]
