"""Hooks of `Module`: handles, the hooked call, and the seam through which autograd takes part."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from argand_c10._C import Tensor

if TYPE_CHECKING:
    from argand_c10.module import Module

__all__ = [
    "GradientBarrier",
    "RemovableHandle",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "set_gradient_barrier",
    "set_module_compiler",
]

# barrier(on_backward, tensors) returns aliases of `tensors` joined by one autograd node, whose
# backward replaces the tuple of incoming gradients by on_backward(gradients).
GradientBarrier = Callable[
    [Callable[[tuple[Any, ...]], tuple[Any, ...]], tuple[Tensor, ...]], tuple[Tensor, ...]
]

_gradient_barrier: GradientBarrier | None = None
# (function, options of compilation) -> the compiled function.
ModuleCompiler = Callable[..., Callable[..., Any]]

_module_compiler: ModuleCompiler | None = None


def set_gradient_barrier(barrier: GradientBarrier) -> None:
    """Register the autograd node that module backward hooks are built on."""
    global _gradient_barrier
    _gradient_barrier = barrier


def set_module_compiler(compiler: ModuleCompiler) -> None:
    """Register what `Module.compile` compiles with."""
    global _module_compiler
    _module_compiler = compiler


def compile_call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let later calls of `module` be compiled ones."""
    if _module_compiler is None:
        raise RuntimeError(
            "Module.compile: got no compiler, expected the front-end to have registered one; import "
            "it, or compile the module with the compiler's own function"
        )
    module.__dict__["_compiled_call_impl"] = _module_compiler(module._call_impl, *args, **kwargs)


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

    def __repr__(self) -> str:
        return repr(OrderedDict(self))


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


class _GlobalHook(NamedTuple):
    """A hook of all modules' calls."""

    kind: str  # forward_pre, forward, backward_pre or backward
    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


# Hooks of all modules' calls by handle id. `Module.__call__` looks whether there are any.
GLOBAL_CALL_HOOKS = HookDict()
# Hooks of registration in all modules: (module, name, value) -> None or another value.
MODULE_REGISTRATION_HOOKS = HookDict()
PARAMETER_REGISTRATION_HOOKS = HookDict()
BUFFER_REGISTRATION_HOOKS = HookDict()


def _global_hooks(kind: str) -> dict[int, _GlobalHook]:
    return {key: hook for key, hook in GLOBAL_CALL_HOOKS.items() if hook.kind == kind}


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, args)` before every module's forward; see `Module.register_forward_pre_hook`.

    Hooks of all modules run before a module's own.
    """
    return add_hook(GLOBAL_CALL_HOOKS, _GlobalHook("forward_pre", hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Run `hook(module, args, output)` after every module's forward; see `Module.register_forward_hook`."""
    return add_hook(GLOBAL_CALL_HOOKS, _GlobalHook("forward", hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, grad_output)` before every module's backward."""
    return add_hook(GLOBAL_CALL_HOOKS, _GlobalHook("backward_pre", hook))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, grad_input, grad_output)` after every module's backward.

    Raises:
        RuntimeError: `register_module_backward_hook` has been called.
    """
    return _add_global_backward_hook(hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """An older form of `register_module_full_backward_hook`, which a program calls instead of it."""
    return _add_global_backward_hook(hook, False)


def _add_global_backward_hook(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_hooks_are_full
    _global_hooks_are_full = agreed_kind(_global_hooks_are_full, full, "as a global Module hook")
    return add_hook(GLOBAL_CALL_HOOKS, _GlobalHook("backward", hook))


_global_hooks_are_full: bool | None = None


def agreed_kind(before: bool | None, full: bool, where: str) -> bool:
    """`full`, whether a backward hook is a full one, unless hooks of the other kind have been registered."""
    if before is not None and before != full:
        raise RuntimeError(
            f"Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them."
        )
    return full


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, name, child)` when a child is added; it may return another one."""
    return add_hook(MODULE_REGISTRATION_HOOKS, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, name, parameter)` when a parameter is added; it may return another one."""
    return add_hook(PARAMETER_REGISTRATION_HOOKS, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, name, buffer)` when a buffer is added; it may return another one."""
    return add_hook(BUFFER_REGISTRATION_HOOKS, hook)


def registered(hooks: HookDict, module: Module, name: str, value: Any) -> Any:
    """What is registered in place of `value` after the hooks of registration."""
    for hook in list(hooks.values()):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `module.forward` with all of its hooks; those of all modules come first.

    Forward hooks marked `always_call` also run when a hook or `forward` raises; what they raise
    then is dropped, so that the first error is the one seen.
    """
    everywhere = _global_hooks("forward") if GLOBAL_CALL_HOOKS else {}
    hooks = {**{key: hook.function for key, hook in everywhere.items()}, **module._forward_hooks}
    pending = {
        key: hook
        for key, hook in hooks.items()
        if (
            everywhere[key].always_call
            if key in everywhere
            else key in module._forward_hooks_always_called
        )
    }
    try:
        args, kwargs = _run_forward_pre_hooks(module, args, kwargs)
        on_backward = _BackwardHooks(module) if has_backward_hooks(module) else None
        if on_backward is not None:
            args = on_backward.wrap_inputs(args)
        result = module.forward(*args, **kwargs)
        for key, hook in hooks.items():
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
    if module._backward_hooks or module._backward_pre_hooks:
        return True
    return any(hook.kind.startswith("backward") for hook in GLOBAL_CALL_HOOKS.values())


def _run_forward_pre_hooks(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    everywhere = _global_hooks("forward_pre") if GLOBAL_CALL_HOOKS else {}
    hooks = {
        **{key: hook.function for key, hook in everywhere.items()},
        **module._forward_pre_hooks,
    }
    for key, hook in hooks.items():
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
    known = GLOBAL_CALL_HOOKS.get(key)
    if known.with_kwargs if known is not None else key in module._forward_hooks_with_kwargs:
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
        self._pre_hooks = [
            *[hook.function for hook in _global_hooks("backward_pre").values()],
            *module._backward_pre_hooks.values(),
        ]
        self._hooks = [
            *[hook.function for hook in _global_hooks("backward").values()],
            *module._backward_hooks.values(),
        ]
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
