"""Access to the backward graph: nodes, and hooks on what it saves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from argand_autograd import _C
from argand_autograd._C import Node, RemovableHandle
from argand_c10 import Tensor

__all__ = ["Node", "RemovableHandle", "register_multi_grad_hook", "saved_tensors_hooks"]


class saved_tensors_hooks:
    """Context manager: what operations save inside is handed to `pack_hook`, and `unpack_hook` gives it back.

    Args:
        pack_hook: gets a tensor without history, returns any object.
        unpack_hook: gets that object, returns a tensor equal to the one that was packed.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensor_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: object) -> None:
        _C._pop_saved_tensor_hooks()


class _Handles:
    """Removes several hooks together."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = tuple(handles)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> _Handles:
    """Call `fn` once the gradients of several tensors are there.

    Args:
        tensors: tensors that require grad.
        fn: with mode "all", gets the list of all gradients once the last has come; with "any", the first one alone.
        mode: "all" or "any".
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: got mode {mode!r}, expected 'all' or 'any'")
    lock = threading.Lock()
    arrived: list[Tensor | None] = [None] * len(tensors)
    fired = False

    def hook_for(index: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            nonlocal arrived, fired
            with lock:
                if mode == "any":
                    if fired:
                        return
                    fired = True
                    call: tuple[Any, ...] = (grad,)
                else:
                    arrived[index] = grad
                    if any(g is None for g in arrived):
                        return
                    call = (arrived,)
                    arrived = [None] * len(tensors)
            fn(*call)

        return hook

    return _Handles([t.register_hook(hook_for(i)) for i, t in enumerate(tensors)])
