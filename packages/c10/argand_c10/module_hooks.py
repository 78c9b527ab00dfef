"""Hooks of `Module`: handles, the hooked call, and the seam through which autograd takes part."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from argand_c10._C import Tensor

if TYPE_CHECKING:
    from argand_c10.module import Module

__all__ = ["GradientBarrier", "RemovableHandle", "set_gradient_barrier"]

# barrier(on_backward, tensors) returns aliases of `tensors` joined by one autograd node, whose
# backward replaces the tuple of incoming gradients by on_backward(gradients).
GradientBarrier = Callable[
    [Callable[[tuple[Any, ...]], tuple[Any, ...]], tuple[Tensor, ...]], tuple[Tensor, ...]
]

_gradient_barrier: GradientBarrier | None = None


def set_gradient_barrier(barrier: GradientBarrier) -> None:
    """Register the autograd node that module backward hooks are built on."""
    global _gradient_barrier
    _gradient_barrier = barrier


class RemovableHandle:
    """Removes a hook: call `remove()`, or use it as a context manager."""

    _next_id = itertools.count()

    def __init__(self, *hook_dicts: dict[int, Any]) -> None:
        self.id = next(RemovableHandle._next_id)
        self._hook_dicts = tuple(ref(hooks) for hooks in hook_dicts)

    def remove(self) -> None:
        for reference in self._hook_dicts:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class HookDict(OrderedDict[int, Any]):
    """Hooks by handle id, in call order; weakly referable and deep-copied as is."""


def add_hook(
    hooks: HookDict, hook: Any, *, prepend: bool = False, flags: HookDict | None = None
) -> RemovableHandle:
    handle = RemovableHandle(hooks) if flags is None else RemovableHandle(hooks, flags)
    hooks[handle.id] = hook
    if flags is not None:
        flags[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `module.forward` with all of its hooks.

    Forward hooks marked `always_call` also run when a hook or `forward` raises; what they raise
    then is dropped, so that the first error is the one seen.
    """
    pending = {
        key: hook
        for key, hook in module._forward_hooks.items()
        if key in module._forward_hooks_always_called
    }
    try:
        args, kwargs = _run_forward_pre_hooks(module, args, kwargs)
        on_backward = _BackwardHooks(module) if has_backward_hooks(module) else None
        if on_backward is not None:
            args = on_backward.wrap_inputs(args)
        result = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            pending.pop(key, None)
            changed = _run_forward_hook(module, key, hook, args, kwargs, result)
            if changed is not None:
                result = changed
        return result if on_backward is None else on_backward.wrap_outputs(result)
    except Exception:
        for key, hook in pending.items():
            try:
                _run_forward_hook(module, key, hook, args, kwargs, None)
            except Exception:
                continue
        raise


def has_backward_hooks(module: Module) -> bool:
    return bool(module._backward_hooks or module._backward_pre_hooks)


def _run_forward_pre_hooks(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for key, hook in list(module._forward_pre_hooks.items()):
        if key in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"forward_pre_hook: got {type(changed).__name__}, expected None or a tuple "
                    "(args, kwargs)"
                )
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _run_forward_hook(
    module: Module, key: int, hook: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    if key in module._forward_hooks_with_kwargs:
        return hook(module, args, kwargs, result)
    return hook(module, args, result)


class _BackwardHooks:
    """The backward hooks of one call: gradients of outputs are seen before those of inputs."""

    def __init__(self, module: Module) -> None:
        if _gradient_barrier is None:
            raise RuntimeError(
                "register_full_backward_hook: got no gradient barrier, expected an autograd package to "
                "have registered one; import it before calling modules with backward hooks"
            )
        self._barrier = _gradient_barrier
        self._module = module
        self._pre_hooks = list(module._backward_pre_hooks.values())
        self._hooks = list(module._backward_hooks.values())
        self._grad_outputs: tuple[Any, ...] | None = None
        self._inputs_need_grad = False
        self._input_count = 0

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self._input_count = len(args)
        places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        self._inputs_need_grad = any(args[i].requires_grad for i in places)
        if not self._inputs_need_grad:
            return args

        def on_backward(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            spread: list[Any] = [None] * len(args)
            for place, grad in zip(places, grads, strict=True):
                spread[place] = grad
            changed = self._call_hooks(tuple(spread))
            return tuple(changed[place] for place in places)

        aliases = self._barrier(on_backward, tuple(args[i] for i in places))
        wrapped = list(args)
        for place, alias in zip(places, aliases, strict=True):
            wrapped[place] = alias
        return tuple(wrapped)

    def wrap_outputs(self, result: Any) -> Any:
        outputs = result if isinstance(result, tuple) else (result,)
        places = [i for i, out in enumerate(outputs) if isinstance(out, Tensor)]
        if not any(outputs[i].requires_grad for i in places):
            return result

        def on_backward(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            spread: list[Any] = [None] * len(outputs)
            for place, grad in zip(places, grads, strict=True):
                spread[place] = grad
            current = tuple(spread)
            for hook in self._pre_hooks:
                changed = hook(self._module, current)
                if changed is not None:
                    current = _as_tuple(changed, len(current), "full_backward_pre_hook")
            self._grad_outputs = current
            if not self._inputs_need_grad:
                self._call_hooks((None,) * self._input_count)
            return tuple(current[place] for place in places)

        aliases = self._barrier(on_backward, tuple(outputs[i] for i in places))
        wrapped = list(outputs)
        for place, alias in zip(places, aliases, strict=True):
            wrapped[place] = alias
        return tuple(wrapped) if isinstance(result, tuple) else wrapped[0]

    def _call_hooks(self, grad_inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self._hooks:
            changed = hook(self._module, grad_inputs, self._grad_outputs)
            if changed is not None:
                if not self._inputs_need_grad:
                    raise RuntimeError(
                        "full_backward_hook: got new input gradients, expected None, because no "
                        "input of the module requires a gradient"
                    )
                grad_inputs = _as_tuple(changed, len(grad_inputs), "full_backward_hook")
        return grad_inputs


def _as_tuple(value: Any, length: int, name: str) -> tuple[Any, ...]:
    result = value if isinstance(value, tuple) else (value,)
    if len(result) != length:
        raise RuntimeError(f"{name}: got {len(result)} gradients, expected {length}")
    return result
