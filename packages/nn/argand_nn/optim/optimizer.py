"""`Optimizer`: parameter groups, state, hooks, and saving and loading of all that."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from argand_autograd import enable_grad
from argand_c10 import Tensor
from argand_c10.module_hooks import HookDict, RemovableHandle, add_hook
from argand_c10.profiler import record_function

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]


class _Required:
    """Marks a default that a parameter group must override."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

# Hooks of the steps of all optimizers, which run before an optimizer's own.
_STEP_PRE_HOOKS = HookDict()
_STEP_POST_HOOKS = HookDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(optimizer, args, kwargs)` before each step of every optimizer."""
    return add_hook(_STEP_PRE_HOOKS, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return add_hook(_STEP_POST_HOOKS, hook)


Closure = Callable[[], Any]
ParamsT = Iterable[Any]


class Optimizer:
    """Base class of optimizers: a subclass calls `super().__init__` and defines `step`.

    Args:
        params: tensors, pairs (name, tensor), or dicts with "params" and options of a group.
        defaults: options of groups that do not set them.
    """

    state: defaultdict[Any, dict[str, Any]]
    param_groups: list[dict[str, Any]]
    # Set by a gradient scaler during a fused step, which unscales gradients and skips itself.
    grad_scale: Tensor | None = None
    found_inf: Tensor | None = None

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: got one Tensor, expected an iterable of tensors or dicts; "
                "pass [tensor]"
            )
        for other in ("foreach", "differentiable"):
            if defaults.get("fused") and defaults.get(other):
                raise RuntimeError(
                    f"{type(self).__name__}: got fused=True and {other}=True, expected at most one of them"
                )
        self._patch_step_function()
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._optimizer_step_pre_hooks = HookDict()
        self._optimizer_step_post_hooks = HookDict()
        self._optimizer_state_dict_pre_hooks = HookDict()
        self._optimizer_state_dict_post_hooks = HookDict()
        self._optimizer_load_state_dict_pre_hooks = HookDict()
        self._optimizer_load_state_dict_post_hooks = HookDict()
        self._opt_called = False
        groups = list(params)
        if not groups:
            raise ValueError(
                f"{type(self).__name__}: got no parameters, expected at least one; "
                "was the generator of parameters used up before?"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _patch_step_function(self) -> None:
        """Have steps of the class run the hooks, and counted. Not at its definition: wrappers of optimizers have no hooks."""
        cls = type(self)
        if not hasattr(cls.step, "hooked"):
            cls.step = _with_step_hooks(cls.step)  # type: ignore[method-assign]

    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters by their gradients.

        Args:
            closure: clears gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            What `closure` returned, or None.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.step: not defined; an Optimizer subclass must define step"
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is None:
                        continue
                    if set_to_none:
                        parameter.grad = None
                    else:
                        parameter.grad = parameter.grad.detach()
                        parameter.grad.zero_()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters: a dict with "params" and any options that differ from the defaults."""
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(
                f"{name}: got a group of type {type(param_group).__name__}, expected dict"
            )
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(f"{name}: got a set of parameters, expected an ordered collection")
        members = [params] if isinstance(params, Tensor) else list(params)
        named = sum(isinstance(member, tuple) for member in members)
        others = any(
            "param_names" not in g if named else "param_names" in g for g in self.param_groups
        )
        if others or named not in (0, len(members)):
            raise ValueError(
                f"{name}: got parameters with names and parameters without, expected names for all "
                "parameters of all groups, or for none"
            )
        if named:
            group["param_names"] = [pair[0] for pair in members]
            members = [pair[1] for pair in members]
        for member in members:
            if not isinstance(member, Tensor):
                raise TypeError(
                    f"{name}: got {type(member).__name__}, expected parameters (Tensors)"
                )
            if not (member.is_leaf or member.retains_grad or self.defaults.get("differentiable")):
                raise ValueError(
                    f"{name}: got a tensor computed from others, expected a leaf; optimize what it "
                    "was computed from"
                )
        known = {id(p) for existing in self.param_groups for p in existing["params"]}
        own = {id(p) for p in members}
        if own & known:
            raise ValueError(
                f"{name}: a parameter occurs in more than one group; pass each only once"
            )
        if len(own) != len(members):
            warnings.warn(
                f"{name}: a parameter occurs more than once in a group and is changed as often; "
                "pass each only once",
                stacklevel=3,
            )
        group["params"] = members
        for option, value in self.defaults.items():
            if value is required and option not in group:
                raise ValueError(f"{name}: option {option!r} is missing; give it for the group")
            group.setdefault(option, value)
        self.param_groups.append(group)

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Whether steps take `grad_scale` and `found_inf`: those that were asked to be fused."""
        return all(group.get("fused") for group in self.param_groups)

    # State -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter number, and the groups' options with parameter numbers."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of an optimizer over the same parameters returned.

        Raises:
            ValueError: if groups or their sizes differ; the optimizer is unchanged then.
        """
        name = type(self).__name__
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError(
                f"{name}.load_state_dict: got {len(saved)} parameter groups, expected "
                f"{len(self.param_groups)}"
            )
        for i, (old, new) in enumerate(zip(self.param_groups, saved, strict=True)):
            if len(old["params"]) != len(new["params"]):
                raise ValueError(
                    f"{name}.load_state_dict: got {len(new['params'])} parameters in group {i}, "
                    f"expected {len(old['params'])}"
                )
        parameters = {
            number: parameter
            for old, new in zip(self.param_groups, saved, strict=True)
            for number, parameter in zip(new["params"], old["params"], strict=True)
        }
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in parameters:
                state[parameters[key]] = _adapt_state(value, parameters[key])
            else:
                state[key] = value
        groups = []
        for old, new in zip(self.param_groups, saved, strict=True):
            # States of older versions lack options, which are the defaults then.
            group = {**self.defaults, **new, "params": old["params"]}
            groups.append({k: v if k == "params" else deepcopy(v) for k, v in group.items()})
        self.state, self.param_groups = state, groups
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
            "_opt_called": self._opt_called,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._patch_step_function()
        self.__dict__.update(state)
        for hooks in _HOOK_DICTS:
            self.__dict__.setdefault(hooks, HookDict())

    # Hooks -----------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(optimizer, args, kwargs)` before each step; it may return (args, kwargs)."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(optimizer, args, kwargs)` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Run `hook(optimizer)` before `state_dict`."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` after `state_dict`; it may return another one."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Run `hook(optimizer, state_dict)` before loading; it may return another state."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Run `hook(optimizer)` after loading."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)

    def __repr__(self) -> str:
        groups = []
        for i, group in enumerate(self.param_groups):
            lines = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            groups.append(f"Parameter Group {i}\n" + "".join(lines))
        return f"{type(self).__name__} (\n" + "\n".join(groups) + ")"


_HOOK_DICTS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def _with_step_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` with the hooks around it, and counted."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        args = (self, *args)
        for hook in [*_STEP_PRE_HOOKS.values(), *self._optimizer_step_pre_hooks.values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"step_pre_hook: got {type(changed).__name__}, expected None or "
                        "(args, kwargs)"
                    )
                args, kwargs = changed
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            result = step(*args, **kwargs)
        self._opt_called = True
        for hook in [*_STEP_POST_HOOKS.values(), *self._optimizer_step_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


def _adapt_state(value: Any, parameter: Tensor, key: str | None = None) -> Any:
    """A copy of loaded state in the parameter's dtype and place; step counts keep both, and state
    of complex parameters, whose scalars are real, its dtype."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.detach().clone()
        if not (value.is_floating_point() and parameter.is_floating_point()):
            return value.detach().to(device=parameter.device, copy=True)
        return value.detach().to(device=parameter.device, dtype=parameter.dtype, copy=True)
    if isinstance(value, dict):
        return {k: _adapt_state(v, parameter, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_adapt_state(v, parameter, key) for v in value)
    return deepcopy(value)


def run_closure(closure: Closure | None) -> Any:
    """The loss of `closure`, computed with gradients on."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def check_options(name: str, **limits: tuple[object, bool, str]) -> None:
    """Raise ValueError naming every option (value, holds, expected) that does not hold."""
    wrong = [
        f"got {option}={value}, expected {expected}"
        for option, (value, holds, expected) in limits.items()
        if not holds
    ]
    if wrong:
        raise ValueError(f"{name}: " + "; ".join(wrong))


def refuse_sparse_gradients(params: list[Tensor], optimizer: type[Optimizer]) -> None:
    """Raise RuntimeError where a parameter's gradient is sparse."""
    if any(p.grad is not None and p.grad.is_sparse for p in params):
        adam = optimizer.__name__ in ("Adam", "AdamW")
        raise RuntimeError(
            "Adam does not support sparse gradients, please consider SparseAdam instead"
            if adam
            else f"{optimizer.__name__} does not support sparse gradients"
        )


def split_for_fused(
    params: list[Tensor], fused: bool | None, name: str
) -> tuple[list[Tensor], list[Tensor]]:
    """Parameters for one fused step and parameters for the loop.

    Fused steps take dense floating-point CPU and CUDA tensors with gradients of their own dtype.
    """
    together: list[Tensor] = []
    loop: list[Tensor] = []
    for parameter in params:
        fits = (
            parameter.is_floating_point()
            and parameter.device.type in ("cpu", "cuda")
            and (grad := parameter.grad) is not None
            and grad.dtype == parameter.dtype
            and not grad.is_sparse
        )
        if fits and fused is not False:
            together.append(parameter)
        elif fused:
            raise RuntimeError(
                f"{name}: got fused=True with a {parameter.dtype} parameter on "
                f"{parameter.device}, expected floating-point CPU or CUDA tensors; pass fused=None"
            )
        else:
            loop.append(parameter)
    return together, loop
