"""Access to the backward graph: nodes, and hooks on what it saves."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from argand_autograd import _C
from argand_autograd._C import Node, RemovableHandle
from argand_c10 import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "RemovableHandle",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor enters the graph; `backward` and `grad` take it in the tensor's place, which need not be kept.

    Args:
        node: the node that gets the gradient.
        output_nr: which of the node's gradients it is.
        ownership_token: accepted for compatibility; the edge keeps its node.
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that the gradient of a tensor goes along; for a leaf that of the node that adds to its `.grad`.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    edge = _C._gradient_edge(tensor)
    if edge is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(*edge)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Say that tensors were changed in place in a way that is not seen, so that a backward that needs them as they were is an error."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(t)


class _Refusal(threading.local):
    """Why hooks are refused, while this thread is inside of `disable_saved_tensors_hooks`."""

    message: str | None = None


_refusal = _Refusal()


class _Entered(threading.local):
    """The hooks that this thread is inside of, innermost last."""

    def __init__(self) -> None:
        self.hooks: list[saved_tensors_hooks] = []


_entered = _Entered()


def current_hooks() -> saved_tensors_hooks | None:
    """The hooks that see what this thread's operations save."""
    return _entered.hooks[-1] if _entered.hooks else None


class saved_tensors_hooks:
    """Context manager: what operations save inside is handed to `pack_hook`, and `unpack_hook` gives it back.

    Args:
        pack_hook: gets an argument as it is, or a result without its history, and returns any object. Nothing is recorded in it.
        unpack_hook: gets that object, returns a tensor equal to the one that was packed.

    Raises:
        RuntimeError: when it is entered inside of `disable_saved_tensors_hooks`.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _refusal.message is not None:
            raise RuntimeError(_refusal.message)
        _C._push_saved_tensor_hooks(self.pack_hook, self.unpack_hook)
        _entered.hooks.append(self)

    def __exit__(self, *exc: object) -> None:
        _C._pop_saved_tensor_hooks()
        _entered.hooks.pop()


class save_on_cpu(saved_tensors_hooks):
    """Context manager: what operations save inside waits for backward in the CPU's memory.

    Args:
        pin_memory: whether that memory is page-locked, so that copies from and to a device are asynchronous.
        device_type: the device whose tensors move; those of others stay where they are.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            if tensor.device.type != device_type:
                return tensor.device, tensor
            copy = tensor.cpu()
            return tensor.device, copy.pin_memory() if pin_memory else copy

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Context manager: operations save copies inside, so that what they read may be changed in place before backward."""

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.clone(), lambda tensor: tensor)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context manager inside of which `saved_tensors_hooks` is refused, for what does not work with it.

    Args:
        error_message: of the RuntimeError that entering `saved_tensors_hooks` raises, in this thread.
    """
    before, _refusal.message = _refusal.message, error_message
    try:
        yield
    finally:
        _refusal.message = before


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


def _leaf_key(leaf: weakref.ref[Tensor]) -> int:
    tensor = leaf()
    return 0 if tensor is None else _C._node_key(tensor)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> _Handles:
    """Call `fn` once the gradients of several tensors are there.

    Args:
        tensors: tensors that require grad.
        fn: with mode "all", gets the list of all gradients once the last that a backward call makes has come, None for those
            that it does not make; with "any", the first one alone, once a call.
        mode: "all" or "any".
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: got mode {mode!r}, expected 'all' or 'any'")
    lock = threading.Lock()
    # A leaf's node goes with the graph, another's stays while its hook is there; neither may be kept by the hook.
    nodes = [weakref.ref(t) if t.is_leaf else _C._node_key(t) for t in tensors]
    calls: dict[int, tuple[int, list[Tensor | None]]] = {}  # how many are awaited, and what came
    last_fired = -1

    def first() -> tuple[int, list[Tensor | None]]:
        keys = [_leaf_key(n) if isinstance(n, weakref.ref) else n for n in nodes]
        return sum(map(_C._will_execute, keys)), [None] * len(nodes)

    def hook_for(index: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            nonlocal last_fired
            call = _C._current_call()
            with lock:
                if mode == "any":
                    if call == last_fired:
                        return
                    last_fired = call
                    found: Any = grad
                else:
                    left, found = calls.pop(call) if call in calls else first()
                    found[index] = grad
                    if left > 1:
                        calls[call] = left - 1, found
                        return
            fn(found)

        return hook

    return _Handles([t.register_hook(hook_for(i)) for i, t in enumerate(tensors)])
