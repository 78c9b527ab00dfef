"""Parameters that are computed from others: their values are functions of what is learned.

A parametrized module belongs to a class of its own, `Parametrized<Class>`, whose properties compute
the parametrized tensors. What is learned lies in `module.parametrizations.<name>`.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from argand_autograd import no_grad
from argand_c10 import Buffer, Module, Parameter, Tensor
from argand_nn.modules.container import ModuleDict, ModuleList

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, every parametrized tensor is computed once, at its first use."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _like(value: Tensor, kind: Tensor) -> Tensor:
    """`value` as a parameter or buffer, as `kind` is."""
    if isinstance(kind, Parameter):
        return Parameter(value.detach(), kind.requires_grad and _differentiable(value))
    return Buffer(value.detach())


def _differentiable(value: Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order of their application, and what they act on.

    `original` holds what is learned; `original0`, `original1`... where the first parametrization takes
    several tensors. These are the results of the parametrizations' `right_inverse`, last one first.

    Args:
        modules: the parametrizations.
        original: the tensor before.
        unsafe: accept that shapes or dtypes change, and do not check.
    """

    original: Any

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList: got no parametrizations, expected at least one")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            start: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    start = module.right_inverse(start)
        if not isinstance(start, Tensor | Sequence):
            raise ValueError(
                f"right_inverse: got {type(start).__name__}, expected a tensor or a sequence of them"
            )
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            if not unsafe and (start.dtype != original.dtype or start.shape != original.shape):  # type: ignore[union-attr]
                raise ValueError(
                    f"right_inverse: got {list(start.shape)} in {start.dtype}, expected "  # type: ignore[union-attr]
                    f"{list(original.shape)} in {original.dtype}; pass unsafe=True if that is meant"
                )
            # The parameter object stays: an optimizer may know it.
            original.data = start.detach()  # type: ignore[union-attr]
            if isinstance(original, Parameter):
                self.original = original
            else:
                self.register_buffer("original", original)
        else:
            for i, part in enumerate(start):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"right_inverse: got {type(part).__name__} in the sequence, expected tensors"
                    )
                setattr(self, f"original{i}", _like(part, original))
        if not unsafe:
            self._check(original.dtype, list(self().shape), list(original.shape))

    def _check(self, dtype: Any, found: list[int], expected: list[int]) -> None:
        value = self()
        if not isinstance(value, Tensor):
            raise ValueError(f"parametrization: got {type(value).__name__}, expected a tensor")
        if value.dtype != dtype or found != expected:
            raise ValueError(
                f"parametrization: got {found} in {value.dtype}, expected {expected} in {dtype}; "
                "pass unsafe=True if that is meant"
            )

    def originals(self) -> list[Tensor]:
        """The tensors that are learned."""
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals such that the parametrized tensor becomes `value`."""
        with no_grad():
            start: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"{type(module).__name__}: got an assignment to the parametrized tensor, "
                        "expected none; define right_inverse to allow it"
                    )
                start = module.right_inverse(start)
            parts = [start] if self.is_tensor else list(start)
            if len(parts) != self.ntensors:
                raise ValueError(
                    f"right_inverse: got {len(parts)} tensors, expected {self.ntensors}"
                )
            for original, part in zip(self.originals(), parts, strict=True):
                if original.dtype != part.dtype:
                    raise ValueError(
                        f"right_inverse: got a tensor in {part.dtype}, expected {original.dtype}"
                    )
                original.data = part.detach().clone()

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        first, *others = self
        value: Tensor = first(*self.originals())
        for module in others:
            value = module(value)
        return value


def _parametrized_class(module: Module) -> None:
    """Give `module` a class of its own, where its parametrized tensors become properties."""
    base = type(module)

    def deepcopy(self: Module, memo: dict[int, Any]) -> Module:
        made = type(self)  # properties come and go, so that a copy needs a class of its own
        own = {k: v for k, v in made.__dict__.items() if k not in ("__dict__", "__weakref__")}
        result: Module = object.__new__(type(made.__name__, made.__bases__, own))
        memo[id(self)] = result
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def refuse(self: Module, *args: Any) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: cannot be pickled; save its state_dict, or remove the "
            "parametrizations first"
        )

    fields: dict[str, Any] = {"__reduce_ex__": refuse}
    if "__deepcopy__" not in base.__dict__:
        fields["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), fields)


def _add_property(module: Module, name: str) -> None:
    def get(self: Any) -> Tensor:
        if not _cache_depth:
            value: Tensor = self.parametrizations[name]()
            return value
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, assign))


def _check_kept(parametrization: Any, before: Tensor) -> None:
    """That a parametrization, and its inverse where it has one, keep shape and dtype."""
    after = [parametrization(before)]
    if hasattr(parametrization, "right_inverse"):
        with contextlib.suppress(NotImplementedError):
            after.append(parametrization.right_inverse(after[0]))
    for t in after:
        if not isinstance(t, Tensor) or t.dtype != before.dtype or t.shape != before.shape:
            found = f"{list(t.shape)} in {t.dtype}" if isinstance(t, Tensor) else type(t).__name__
            raise ValueError(
                f"register_parametrization: got {found}, expected "
                f"{list(before.shape)} in {before.dtype}; pass unsafe=True if that is meant"
            )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer of `module` be `parametrization` of what is learned instead.

    A parametrization's `right_inverse(tensor)`, where it has one, gives where learning starts, and
    allows assignment. A second one for the same tensor acts on the result of the first, whose start stays.

    Args:
        module: whose tensor it is; it is changed.
        tensor_name: the name.
        parametrization: a module from tensor to tensor (or from what its `right_inverse` returns).
        unsafe: accept that the tensor's shape or dtype changes.

    Returns:
        `module`.

    Raises:
        ValueError: if the tensor does not exist, or its shape or dtype would change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known: Any = module.parametrizations[tensor_name]
        if not unsafe:
            _check_kept(parametrization, getattr(module, tensor_name))
        known.append(parametrization)
        known.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"register_parametrization: {type(module).__name__} has no parameter or buffer "
            f"{tensor_name!r}; expected the name of one"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _parametrized_class(module)
        module.parametrizations = ModuleDict()
    _add_property(module, tensor_name)
    module.parametrizations[tensor_name] = made
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether `module`, or its tensor of this name, is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Turn a parametrized tensor back into a parameter or buffer.

    Args:
        module: whose tensor it is; it is changed.
        tensor_name: the name.
        leave_parametrized: keep its present value instead of what was learned (which must be one
            tensor).

    Returns:
        `module`.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"remove_parametrizations: {tensor_name!r} of {type(module).__name__} is not parametrized"
        )
    parametrizations: Any = module.parametrizations[tensor_name]
    originals = parametrizations.originals()
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
        if len(originals) == 1 and value.shape == originals[0].shape:
            result = originals[0]  # the object that an optimizer may know
            result.data = value.detach()
        else:
            result = _like(value, originals[0])
    elif len(originals) == 1:
        result = originals[0]
    else:
        raise ValueError(
            f"remove_parametrizations: got leave_parametrized=False for {tensor_name!r}, expected "
            "True, because what is learned are several tensors"
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(result, Parameter):
        module.register_parameter(tensor_name, result)
    else:
        module.register_buffer(tensor_name, result)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type_before_parametrizations(module)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that `module` had before its first parametrization."""
    kind = type(module)
    made = kind.__name__.startswith("Parametrized") and "__reduce_ex__" in kind.__dict__
    return kind.__bases__[0] if made else kind


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Copy parametrizations, and what they act on, to a module of the same kind.

    Args:
        from_module: a parametrized module.
        to_module: is changed.
        tensor_name: only this tensor's; all by default.

    Returns:
        `to_module`.
    """
    if not is_parametrized(from_module):
        raise ValueError(
            "transfer_parametrizations_and_params: got a module without, expected some"
        )
    parametrizations: Any = from_module.parametrizations
    for name in [tensor_name] if tensor_name is not None else list(parametrizations):
        source = parametrizations[name]
        if not hasattr(to_module, name):
            value = getattr(from_module, name).detach().clone()
            kind = source.originals()[0]
            if isinstance(kind, Parameter):
                to_module.register_parameter(name, Parameter(value, kind.requires_grad))
            else:
                to_module.register_buffer(name, value)
        for part in source:
            register_parametrization(to_module, name, copy.deepcopy(part), unsafe=True)
        target: Any = to_module.parametrizations[name]
        for mine, other in zip(target.originals(), source.originals(), strict=True):
            mine.data = other.detach().clone()
    return to_module
