"""Saving and loading the state of `Module`s: what `state_dict` and `load_state_dict` are made of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from argand_c10._C import Tensor
from argand_c10.parameter import Parameter

if TYPE_CHECKING:
    from argand_c10.module import Module

__all__ = ["EXTRA_STATE_KEY", "IncompatibleKeys"]

EXTRA_STATE_KEY = "_extra_state"
# Key of the local metadata under which load_own_state leaves its writes for the end.
_WRITES = "pending_writes"


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found: keys that the module lacks data for, and keys it does not know."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class StateDict(OrderedDict[str, Any]):
    """A module's state by dotted name; `_metadata` holds each module's version by prefix."""

    _metadata: OrderedDict[str, dict[str, Any]]

    def __repr__(self) -> str:
        return repr(OrderedDict(self))

    def copy(self) -> StateDict:
        result = StateDict(self)
        if hasattr(self, "_metadata"):
            result._metadata = self._metadata
        return result


def collect_state(module: Module, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Write the state of `module` and its children into `destination` and return it."""
    if destination is None:
        destination = StateDict()
        destination._metadata = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in module._state_dict_pre_hooks.values():
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    for hook in module._state_dict_hooks.values():
        changed = hook(module, destination, prefix, metadata)
        if changed is not None:
            destination = changed
    return destination


def save_own_state(module: Module, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Write the parameters, persistent buffers and extra state of `module` alone."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            destination[prefix + name] = parameter if keep_vars else parameter.detach()
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            destination[prefix + name] = buffer if keep_vars else buffer.detach()
    if module._overrides("get_extra_state"):
        destination[prefix + EXTRA_STATE_KEY] = module.get_extra_state()


def load_state(
    module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Load `state_dict` into `module`; every problem is reported in one error."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            f"load_state_dict: got {type(state_dict).__name__}, expected a mapping of names to "
            "tensors; load files with argand.load first"
        )
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    state = StateDict(state_dict)
    if metadata is not None:
        state._metadata = metadata

    writes: list[Callable[[], None]] = []
    parts: list[Module] = []

    def visit(part: Module, local_state: Any, prefix: str) -> None:
        local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        local_metadata[_WRITES] = writes
        if assign:
            local_metadata["assign_to_params_buffers"] = True
        part._load_from_state_dict(
            local_state, prefix, local_metadata, True, missing, unexpected, errors
        )
        for name, child in part._modules.items():
            if child is not None:
                child_prefix = f"{prefix}{name}."
                child_state = {k: v for k, v in local_state.items() if k.startswith(child_prefix)}
                visit(child, child_state, child_prefix)
        parts.append(part)

    visit(module, state, "")
    keys = IncompatibleKeys(missing, unexpected)
    if errors or not any(part._load_state_dict_post_hooks for part in parts):
        # Nothing is written unless everything fits; post hooks may still settle key errors.
        _raise_problems(module, keys, errors, strict)
    for write in writes:
        write()
    for part in parts:
        for hook in list(part._load_state_dict_post_hooks.values()):
            if hook(part, keys) is not None:
                raise TypeError(
                    "load_state_dict post hook: got a return value, expected None; change the lists "
                    "of incompatible keys in place instead"
                )
    _raise_problems(module, keys, errors, strict)
    return keys


def _raise_problems(
    module: Module, keys: IncompatibleKeys, errors: list[str], strict: bool
) -> None:
    problems = list(errors)
    if strict and keys.missing_keys:
        problems.append(f"missing keys: {_quoted(keys.missing_keys)}")
    if strict and keys.unexpected_keys:
        problems.append(f"unexpected keys: {_quoted(keys.unexpected_keys)}")
    if problems:
        raise RuntimeError(
            f"load_state_dict: the state does not fit {type(module).__name__}:\n    "
            + "\n    ".join(problems)
            + ("\n  Keys may differ if strict=False is passed; shapes may not." if strict else "")
        )


def load_own_state(
    module: Module,
    state_dict: Mapping[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Load the parameters, persistent buffers and extra state of `module` alone."""
    for hook in module._load_state_dict_pre_hooks.values():
        hook(
            module,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )
    assign = local_metadata.get("assign_to_params_buffers", False)
    writes = local_metadata.get(_WRITES)
    buffers = {
        name: buffer
        for name, buffer in module._buffers.items()
        if name not in module._non_persistent_buffers_set
    }
    own = {k: v for k, v in {**module._parameters, **buffers}.items() if v is not None}
    for name, current in own.items():
        key = prefix + name
        if key not in state_dict:
            missing_keys.append(key)
            continue
        value = state_dict[key]
        if isinstance(value, Tensor) and value.shape == (1,) and current.ndim == 0:
            value = value[0]  # as PyTorch's versions before 0.4 wrote numbers
        problem = _mismatch(key, current, value)
        if problem is not None:
            error_msgs.append(problem)
            continue
        write = partial(_write_tensor, module, name, current, value, assign)
        if writes is None:
            write()
        else:
            writes.append(write)

    extra_key = prefix + EXTRA_STATE_KEY
    if module._overrides("set_extra_state"):
        if extra_key in state_dict:
            set_extra_state = partial(module.set_extra_state, state_dict[extra_key])
            if writes is None:
                set_extra_state()
            else:
                writes.append(set_extra_state)
        else:
            missing_keys.append(extra_key)
    elif extra_key in state_dict:
        unexpected_keys.append(extra_key)

    unexpected_keys += _unknown_keys(module, state_dict, prefix, own)


def _unknown_keys(
    module: Module, state_dict: Mapping[str, Any], prefix: str, own: Container[str]
) -> Iterator[str]:
    """Keys below a prefix that neither `own` nor a submodule has."""
    for key in state_dict:
        if key.startswith(prefix) and key != prefix + EXTRA_STATE_KEY:
            first, dot, _ = key[len(prefix) :].partition(".")
            if first not in (module._modules if dot else own):
                yield key


def _write_tensor(module: Module, name: str, current: Tensor, value: Tensor, assign: bool) -> None:
    if not assign:
        # The elements of a sparse tensor are its object's.
        target = current if current.is_sparse else current.detach()
        target.copy_(value.detach())
        return
    if isinstance(current, Parameter) and not isinstance(value, Parameter):
        value = Parameter(value, requires_grad=current.requires_grad)
    elif isinstance(current, Parameter):
        value.requires_grad_(current.requires_grad)
    setattr(module, name, value)


def _mismatch(key: str, current: Tensor, value: Any) -> str | None:
    if not isinstance(value, Tensor):
        return f"{key}: got {type(value).__name__}, expected a Tensor"
    if value.shape != current.shape:
        return f"{key}: got shape {list(value.shape)}, expected {list(current.shape)}"
    return None


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
