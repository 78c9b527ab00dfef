"""`Module`: the base class of everything that holds parameters."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from argand_c10._C import Tensor, channels_last_3d, device, dtype, promote_types
from argand_c10.module_hooks import (
    BUFFER_REGISTRATION_HOOKS,
    GLOBAL_CALL_HOOKS,
    MODULE_REGISTRATION_HOOKS,
    PARAMETER_REGISTRATION_HOOKS,
    HookDict,
    RemovableHandle,
    add_hook,
    agreed_kind,
    call_with_hooks,
    compile_call,
    registered,
)
from argand_c10.module_state import (
    IncompatibleKeys,
    collect_state,
    load_own_state,
    load_state,
    save_own_state,
)
from argand_c10.parameter import Buffer, Parameter

__all__ = ["Module"]

ModuleType = TypeVar("ModuleType", bound="Module")
_DEVICE: Any = device
_DTYPE: Any = dtype


class _Conversion:
    """Whether conversions give modules other parameters; whether programs have asked to swap them."""

    overwrites = False
    swaps = False


conversion = _Conversion()


class Module:
    """Base class of all neural-network modules.

    A subclass calls `super().__init__()`, assigns parameters, buffers and child modules as
    attributes, and defines `forward`. Call the module itself, not `forward`, so that hooks run.
    """

    training: bool
    _version: int = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: HookDict
    _forward_pre_hooks: HookDict
    _backward_hooks: HookDict
    _backward_pre_hooks: HookDict
    # Set by `compile`: what calls go through.
    _compiled_call_impl: Callable[..., Any] | None = None
    # Which of the two kinds of backward hooks has been registered.
    _is_full_backward_hook: bool | None = None
    # Whether __init__ hands its arguments on, for classes with further bases.
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif args or kwargs:
            raise TypeError(
                f"{type(self).__name__}: got arguments for Module.__init__, expected none; take them "
                "in the subclass's own __init__"
            )
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = {}
        fields["_buffers"] = {}
        fields["_modules"] = {}
        fields["_non_persistent_buffers_set"] = set()
        for name in _HOOK_DICTS:
            fields[name] = HookDict()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}.forward: not defined; a Module subclass must define forward"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or GLOBAL_CALL_HOOKS
            or self._compiled_call_impl is not None
        ):
            return (self._compiled_call_impl or self._call_impl)(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """The call with its hooks, which `compile` compiles."""
        return call_with_hooks(self, args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile this module's calls in place; arguments are those of the front-end's `compile`."""
        compile_call(self, args, kwargs)

    # Attributes ------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Python calls this once the usual look-up has failed; parameters first, as hot code reads them.
        fields = self.__dict__
        if "_parameters" in fields:
            entries = fields["_parameters"]
            if name in entries:
                return entries[name]
            entries = fields["_buffers"]
            if name in entries:
                return entries[name]
            entries = fields["_modules"]
            if name in entries:
                return entries[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            self._forget(name, keep="_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._require_init("child modules")
            self._forget(name, keep="_modules")
            fields["_modules"][name] = registered(MODULE_REGISTRATION_HOOKS, self, name, value)
        elif isinstance(value, Buffer):
            self._forget(name, keep="_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in fields.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}.{name}: got {type(value).__name__}, expected a "
                    "Parameter or None, because the name is a registered parameter; delete it first"
                )
            fields["_parameters"][name] = None
        elif name in fields.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}.{name}: got {type(value).__name__}, expected a Module "
                    "or None, because the name is a registered child module; delete it first"
                )
            fields["_modules"][name] = None
        elif name in fields.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"{type(self).__name__}.{name}: got {type(value).__name__}, expected a Tensor "
                    "or None, because the name is a registered buffer; delete it first"
                )
            fields["_buffers"][name] = registered(BUFFER_REGISTRATION_HOOKS, self, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if name.isidentifier())

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)  # copies and files hold no compiled code
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_DICTS:
            self.__dict__.setdefault(name, HookDict())

    def _require_init(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: cannot assign {what} before Module.__init__() has run; "
                "call super().__init__() first"
            )

    def _forget(self, name: str, keep: str) -> None:
        """Drop what `name` meant so far, except an entry of the kind `keep` (its order stays)."""
        fields = self.__dict__
        fields.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep and name in fields.get(kind, ()):
                del fields[kind][name]
        if keep != "_buffers" and "_non_persistent_buffers_set" in fields:
            fields["_non_persistent_buffers_set"].discard(name)

    def _check_new_name(self, what: str, name: str, entries: Mapping[str, Any]) -> None:
        self._require_init(what)
        if not isinstance(name, str):
            raise TypeError(
                f"register {what}: got a name of type {type(name).__name__}, expected str"
            )
        if "." in name or name == "":
            raise KeyError(f"register {what}: got the name {name!r}, expected one without '.'")
        if name not in entries and hasattr(self, name):
            raise KeyError(f"register {what}: attribute {name!r} already exists; delete it first")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name."""
        self._check_new_name("parameters", name, self.__dict__.get("_parameters", {}))
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter: got {type(param).__name__} for {name!r}, expected a Parameter "
                "or None"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"register_parameter: {name!r} was computed by other tensors, expected a leaf; "
                "compute it in forward, or detach it"
            )
        if param is not None:
            param = registered(PARAMETER_REGISTRATION_HOOKS, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter; `persistent` puts it into `state_dict`."""
        self._check_new_name("buffers", name, self.__dict__.get("_buffers", {}))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer: got {type(tensor).__name__} for {name!r}, expected a Tensor or None"
            )
        self._buffers[name] = registered(BUFFER_REGISTRATION_HOOKS, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module; None reserves the name."""
        self._check_new_name("child modules", name, self.__dict__.get("_modules", {}))
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"add_module: got {type(module).__name__} for {name!r}, expected a Module or None"
            )
        self._modules[name] = registered(MODULE_REGISTRATION_HOOKS, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of `add_module`."""
        self.add_module(name, module)

    # Look-up ---------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """The descendant with the dotted name `target`; "" is the module itself."""
        module: Module = self
        for name in target.split(".") if target else ():
            child = getattr(module, name, None)
            if child is None:
                raise AttributeError(
                    f"get_submodule: {type(module).__name__} has no child {name!r} "
                    f"(looking for {target!r})"
                )
            if not isinstance(child, Module):
                raise AttributeError(
                    f"get_submodule: {name!r} of {target!r} is {type(child).__name__}, "
                    "expected a Module"
                )
            module = child
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the descendant named `target`; with `strict` it must exist already."""
        if not target:
            raise ValueError("set_submodule: got an empty target, expected a dotted name")
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: got {type(module).__name__}, expected a Module")
        parent, _, name = target.rpartition(".")
        owner = self.get_submodule(parent)
        if strict:
            owner.get_submodule(name)
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with the dotted name `target`."""
        path, _, name = target.rpartition(".")
        value = getattr(self.get_submodule(path), name, None)
        if not isinstance(value, Parameter):
            raise AttributeError(f"get_parameter: {target!r} is not a parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with the dotted name `target`."""
        path, _, name = target.rpartition(".")
        value = self.get_submodule(path)._buffers.get(name)
        if value is None:
            raise AttributeError(f"get_buffer: {target!r} is not a buffer")
        return value

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all descendants with dotted names, parents first."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                child_prefix = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(seen, child_prefix, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all descendants; a shared one comes once unless told otherwise."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct children by name, each once."""
        seen: set[Module] = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Module]:
        """The direct children, each once."""
        for _, child in self.named_children():
            yield child

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules: Any = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{module_prefix}.{name}" if module_prefix else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters with dotted names; a shared one comes once unless told otherwise."""
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with dotted names; a shared one comes once unless told otherwise."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # Conversion and modes --------------------------------------------------------------------

    def apply(self: ModuleType, fn: Callable[[Module], Any]) -> ModuleType:
        """Call `fn` on every descendant, children first, then on this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(
        self: ModuleType, fn: Callable[[Tensor], Tensor], recurse: bool = True
    ) -> ModuleType:
        """Replace the data of every parameter, gradient and buffer by `fn` of it.

        Parameters stay the same objects, unless `fn` moves them to the meta device or from it, or programs have asked for others.
        """
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            grad = parameter.grad
            data = fn(parameter.data)
            if data.is_meta == parameter.is_meta and not conversion.overwrites:
                parameter.data = data
            else:
                made = Tensor._make_subclass(type(parameter), data, parameter.requires_grad)
                self._parameters[name] = parameter = made
            if grad is not None:
                parameter.grad = None
                parameter.grad = fn(grad.detach()).requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def share_memory(self: ModuleType) -> ModuleType:
        """Let processes share parameters, buffers and the gradients that there are (`Tensor.share_memory_`)."""
        return self._apply(lambda t: t.share_memory_())

    def to(self: ModuleType, *args: Any, **kwargs: Any) -> ModuleType:
        """Convert in place: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)` or `to(memory_format=...)`.

        A dtype applies to floating-point and complex parameters and buffers only, a memory format to those of 4 (channels_last_3d: 5)
        dimensions.
        """
        device, dtype, _, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"Module.to: got {dtype}, expected a floating-point or complex dtype; "
                "convert single tensors with tensor.to(...)"
            )
        formatted = 5 if memory_format is channels_last_3d else 4
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                f"Module.to: got {dtype}; not every module works with complex parameters and buffers",
                stacklevel=2,
            )

        def convert(tensor: Tensor) -> Tensor:
            floating = tensor.is_floating_point() or tensor.is_complex()
            options: dict[str, Any] = {}
            if device is not None:
                options["device"] = device
            if dtype is not None and floating:
                options["dtype"] = dtype
            if memory_format is not None and tensor.ndim == formatted:
                options["memory_format"] = memory_format
            return tensor.to(**options) if options else tensor

        return self._apply(convert)

    def to_empty(self: ModuleType, *, device: Any, recurse: bool = True) -> ModuleType:
        """Move to a device without copying values: the new tensors are uninitialised."""
        return self._apply(
            lambda t: t.new_empty(t.shape, dtype=t.dtype, device=device), recurse=recurse
        )

    def _to_floating(self: ModuleType, name: str) -> ModuleType:
        return self._apply(lambda t: getattr(t, name)() if t.is_floating_point() else t)

    def float(self: ModuleType) -> ModuleType:
        """Convert floating-point parameters and buffers to float32."""
        return self._to_floating("float")

    def double(self: ModuleType) -> ModuleType:
        """Convert floating-point parameters and buffers to float64."""
        return self._to_floating("double")

    def half(self: ModuleType) -> ModuleType:
        """Convert floating-point parameters and buffers to float16."""
        return self._to_floating("half")

    def bfloat16(self: ModuleType) -> ModuleType:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._to_floating("bfloat16")

    def type(self: ModuleType, dst_type: Any) -> ModuleType:
        """Convert all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self: ModuleType) -> ModuleType:
        """Move all parameters and buffers to the CPU."""
        return self.to(device="cpu")

    def cuda(self: ModuleType, device: Any = None) -> ModuleType:
        """Move all parameters and buffers to a CUDA device, given as an index or a name (default: the current one)."""
        if device is None:
            return self.to(device="cuda")
        return self.to(device=f"cuda:{device}" if isinstance(device, int) else device)

    def train(self: ModuleType, mode: bool = True) -> ModuleType:
        """Set training mode here and below."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: got mode of type {type(mode).__name__}, expected bool")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: ModuleType) -> ModuleType:
        """Set evaluation mode here and below."""
        return self.train(False)

    def requires_grad_(self: ModuleType, requires_grad: bool = True) -> ModuleType:
        """Set whether the parameters need gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or fill them with zeros."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach()
                parameter.grad.zero_()

    # State -----------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """Override to add JSON-like values or tensors of your own to `state_dict`."""
        raise RuntimeError(
            f"{type(self).__name__}.get_extra_state: not defined; define it and set_extra_state"
        )

    def set_extra_state(self, state: Any) -> None:
        """Override to take back what `get_extra_state` returned."""
        raise RuntimeError(
            f"{type(self).__name__}.set_extra_state: not defined; define it and get_extra_state"
        )

    def _overrides(self, method: str) -> bool:
        cls = self.__class__
        return getattr(cls, method) is not getattr(Module, method)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        save_own_state(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        load_own_state(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Any]:
        """Parameters and persistent buffers by dotted name, sharing memory with the module.

        Args:
            destination: a mapping to fill; a new ordered one by default.
            prefix: put before every name.
            keep_vars: keep the parameters themselves instead of detached tensors.
            args: the three by position, which is deprecated.
        """
        if args:
            warnings.warn(
                "Module.state_dict: got arguments by position, which is deprecated; name them",
                FutureWarning,
                stacklevel=2,
            )
            given = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = given
        result: OrderedDict[str, Any] = collect_state(self, destination, prefix, keep_vars)
        return result

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy `state_dict` into the parameters and buffers.

        Args:
            state_dict: tensors by dotted name, as `state_dict()` gives.
            strict: whether missing and unexpected keys are errors.
            assign: put the given tensors into the module instead of copying their values.

        Returns:
            The missing and the unexpected keys.

        Raises:
            RuntimeError: naming every missing key, unexpected key and wrong shape; the module is
                unchanged then.
        """
        return load_state(self, state_dict, strict, assign)

    # Hooks -----------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args)` before `forward`; it may return new arguments.

        With `with_kwargs`, it is `hook(module, args, kwargs)` and may return (args, kwargs).
        """
        flags = self._forward_pre_hooks_with_kwargs if with_kwargs else None
        return add_hook(self._forward_pre_hooks, hook, prepend=prepend, flags=flags)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Run `hook(module, args, output)` after `forward`; it may return a new output.

        With `with_kwargs`, it is `hook(module, args, kwargs, output)`. With `always_call`, it also
        runs (with output None) when the call raises.
        """
        flags = self._forward_hooks_with_kwargs if with_kwargs else None
        handle = add_hook(self._forward_hooks, hook, prepend=prepend, flags=flags)
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` once the input gradients are known.

        It may return a new tuple of input gradients. The module's inputs and outputs must not be
        changed in place.

        Raises:
            RuntimeError: `register_backward_hook` has been called.
        """
        self._is_full_backward_hook = agreed_kind(
            self._is_full_backward_hook, True, "on a single Module"
        )
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """An older form of `register_full_backward_hook`, which a module has instead of it."""
        self._is_full_backward_hook = agreed_kind(
            self._is_full_backward_hook, False, "on a single Module"
        )
        return add_hook(self._backward_hooks, hook)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, grad_output)` before the module's backward; it may return new ones."""
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, prefix, keep_vars)` before the module's state is collected."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, state_dict, prefix, local_metadata)` on the collected state, which it may change in place."""

        def in_place(*args: Any) -> None:
            if hook(*args) is not None:
                raise RuntimeError(
                    "state_dict post hook: got a return value, expected None; change the state in place"
                )

        return add_hook(self._state_dict_hooks, in_place)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As `register_state_dict_post_hook`, for hooks that may return another state."""
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, state_dict, prefix, ...)` before the module's own state is loaded."""
        return add_hook(self._load_state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """As `register_load_state_dict_pre_hook`, for hooks that do not take the module."""
        if with_module:
            return self.register_load_state_dict_pre_hook(hook)
        return self.register_load_state_dict_pre_hook(lambda module, *args: hook(*args))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, incompatible_keys)` after loading; it may edit the lists of keys."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # Printing --------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Override to describe the module's own settings in `repr`."""
        return ""

    def _get_name(self) -> str:
        return self.__class__.__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): " + repr(child).replace("\n", "\n  ")
            for name, child in self._modules.items()
        ]
        lines = extra_lines + child_lines
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


_HOOK_DICTS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype (either may be None), whether to wait, and memory format of the arguments of `Module.to`."""
    device = kwargs.get("device")
    dtype = kwargs.get("dtype")
    non_blocking = kwargs.get("non_blocking", False)
    unknown = set(kwargs) - {"device", "dtype", "non_blocking", "memory_format", "copy"}
    if unknown:
        raise TypeError(f"Module.to: got unexpected keyword arguments {sorted(unknown)}")
    for position, arg in enumerate(args):
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, (_DTYPE, type)):
            dtype = arg
        elif isinstance(arg, bool):
            non_blocking = arg
            break
        elif arg is not None:
            if position != 0:
                raise TypeError(
                    f"Module.to: got {type(arg).__name__} as argument {position + 1}, expected a "
                    "dtype"
                )
            device = arg
    if device is not None:
        device = _DEVICE(device)
    if isinstance(dtype, type):
        dtype = promote_types(dtype, dtype)
    return device, dtype, non_blocking, kwargs.get("memory_format")
