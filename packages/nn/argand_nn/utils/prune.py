"""Pruning: parameters times masks of 0 and 1.

A pruned parameter `name` becomes the parameter `<name>_orig` and the buffer `<name>_mask`; their
product is computed before each call of the module.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import argand_aten as aten
from argand_c10 import Module, Tensor

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """A way to choose what is pruned: a subclass sets `PRUNING_TYPE` and defines `compute_mask`.

    Objects are forward pre-hooks of the module that they prune.
    """

    PRUNING_TYPE: str  # unstructured, structured or global
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What is kept (1) of `t` or of its importance, where `default_mask` is what was kept so far."""

    def apply_mask(self, module: Module) -> Tensor:
        """The masked parameter."""
        mask: Tensor = getattr(module, self._tensor_name + "_mask")
        original: Tensor = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune a parameter of `module`, further if it is pruned already.

        Args:
            module: is changed.
            name: of the parameter.
            args: of the method's constructor.
            importance_scores: by which to choose; the parameter itself by default.
            kwargs: of the method's constructor.

        Returns:
            The hook.
        """
        known = _hook_of(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        hook = method
        if known is not None:
            key, old = known
            del module._forward_pre_hooks[key]
            hook = PruningContainer()
            hook._tensor_name = name
            for part in [*(old if isinstance(old, PruningContainer) else [old]), method]:
                hook.add_pruning_method(part)
        value = getattr(module, name)
        scores = value if importance_scores is None else importance_scores
        if scores.shape != value.shape:
            raise AssertionError(
                f"prune: got importance_scores of shape {list(scores.shape)}, expected "
                f"{list(value.shape)}"
            )
        if known is None:
            delattr(module, name)
            module.register_parameter(name + "_orig", value)
            default = aten.ones_like(value.detach())
        else:
            default = getattr(module, name + "_mask").detach().clone()
        try:
            mask = hook.compute_mask(scores.detach(), default)
        except Exception:
            if known is None:
                delattr(module, name + "_orig")
                module.register_parameter(name, value)
            else:
                module.register_forward_pre_hook(known[1])
            raise
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """`t` pruned, without a module.

        Args:
            t: any tensor.
            default_mask: what was kept so far; all by default.
            importance_scores: by which to choose; `t` by default.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                f"prune: got importance_scores of shape {list(scores.shape)}, expected "
                f"{list(t.shape)}"
            )
        default = aten.ones_like(t.detach()) if default_mask is None else default_mask
        return t * self.compute_mask(scores.detach(), default)

    def remove(self, module: Module) -> None:
        """Make the masked values the parameter for good."""
        name = self._tensor_name
        value = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        assert original is not None
        original.data = value.detach()
        del module._buffers[name + "_mask"]
        module.register_parameter(name, original)


def _hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


class PruningContainer(BasePruningMethod):
    """Pruning methods that followed one another; the last one acts on what the others left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            if not self._pruning_methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Append a method for the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(
                f"add_pruning_method: got {type(method).__name__}, expected a BasePruningMethod"
            )
        if method is None:
            return
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"add_pruning_method: got a method for {method._tensor_name!r}, expected one for "
                f"{self._tensor_name!r}"
            )
        self._pruning_methods = (*self._pruning_methods, method)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype).clone()
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask)
        if method.PRUNING_TYPE == "structured":
            dim: int = method.dim  # type: ignore[attr-defined]
            others = [i for i in range(t.dim()) if i != dim % t.dim()]
            kept = aten.nonzero(aten.sum(mask, others) > 0).squeeze(1)
            part = method.compute_mask(
                aten.index_select(t, dim, kept), aten.index_select(default_mask, dim, kept)
            )
            return aten.index_copy(mask, dim, kept, part.to(dtype=mask.dtype))
        if method.PRUNING_TYPE != "unstructured":
            raise ValueError(
                f"prune: got PRUNING_TYPE {method.PRUNING_TYPE!r}, expected 'unstructured', "
                "'structured' or 'global'"
            )
        places = aten.nonzero(mask.reshape(-1) == 1).squeeze(1)
        flat = mask.reshape(-1)
        part = method.compute_mask(
            aten.index_select(t.reshape(-1), 0, places), aten.index_select(flat, 0, places)
        )
        return aten.index_copy(flat, 0, places, part.to(dtype=flat.dtype)).reshape(mask.shape)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"custom_from_mask: got a mask of shape {list(self.mask.shape)}, expected "
                f"{list(default_mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


class _ByAmount(BasePruningMethod):
    """A method that prunes `amount` elements or slices: a number, or a share in [0, 1]."""

    def __init__(self, amount: float) -> None:
        given: object = amount
        if not isinstance(given, numbers.Real):
            raise TypeError(f"prune: got amount {amount!r}, expected a number")
        if amount < 0 or (not isinstance(given, numbers.Integral) and float(amount) > 1.0):
            raise ValueError(
                f"prune: got amount {amount}, expected an integer from 0 or a share in [0, 1]"
            )
        self.amount = amount

    def count(self, size: int) -> int:
        """How many of `size` are pruned."""
        given: object = self.amount
        if not isinstance(given, numbers.Integral):
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(f"prune: got amount {self.amount}, expected at most {size}")
        return int(self.amount)


def _without(mask: Tensor, dim: int, places: Tensor) -> Tensor:
    """`mask` with 0 in these slices of dimension `dim`."""
    return aten.index_fill(mask, dim, places, 0)


class RandomUnstructured(_ByAmount):
    """Prunes elements at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        chosen = _lowest(aten.rand(t.numel(), device=t.device), self.count(t.numel()))
        return _without(default_mask.reshape(-1), 0, chosen).reshape(default_mask.shape)


class L1Unstructured(_ByAmount):
    """Prunes the elements of smallest size."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        chosen = _lowest(aten.abs(t).reshape(-1), self.count(t.numel()))
        return _without(default_mask.reshape(-1), 0, chosen).reshape(default_mask.shape)


def _lowest(scores: Tensor, count: int) -> Tensor:
    places: Tensor = aten.topk(scores, count, largest=False)[1]
    return places


class _Structured(_ByAmount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def scores(self, t: Tensor) -> Tensor:
        """The importance of each slice of dimension `dim`."""
        raise NotImplementedError(f"{type(self).__name__}.scores: not defined; define it")

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() < 2:
            raise ValueError(
                f"prune: got a tensor of shape {list(t.shape)}, expected at least 2 dimensions for "
                "structured pruning"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(
                f"prune: got dim {self.dim}, expected one from {-t.dim()} to {t.dim() - 1}"
            )
        chosen = _lowest(self.scores(t), self.count(t.shape[self.dim]))
        return _without(default_mask, self.dim, chosen)


class RandomStructured(_Structured):
    """Prunes slices of dimension `dim` at random."""

    def scores(self, t: Tensor) -> Tensor:
        return aten.rand(t.shape[self.dim], device=t.device)


class LnStructured(_Structured):
    """Prunes the slices of dimension `dim` with the smallest n-norm."""

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def scores(self, t: Tensor) -> Tensor:
        return aten.norm(t, self.n, [i for i in range(t.dim()) if i != self.dim % t.dim()])


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask that keeps all of it."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune `amount` elements (a number or a share) of a parameter at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the `amount` elements (a number or a share) of smallest size."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune `amount` slices (a number or a share) of dimension `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: float | str,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the `amount` slices (a number or a share) of dimension `dim` with the smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter by a given mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    Args:
        parameters: pairs (module, name).
        pruning_method: an unstructured one.
        importance_scores: by pair; the parameters themselves by default.
        kwargs: of the method's constructor.
    """
    pairs = list(parameters)
    if importance_scores is not None and not isinstance(importance_scores, Mapping):
        raise TypeError(
            f"global_unstructured: got importance_scores of type "
            f"{type(importance_scores).__name__}, expected a mapping"
        )
    known = importance_scores or {}
    scores = [known.get(pair, getattr(*pair)).detach() for pair in pairs]
    masks = [
        getattr(module, name + "_mask", aten.ones_like(score))
        for (module, name), score in zip(pairs, scores, strict=True)
    ]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"global_unstructured: got a method of type {method.PRUNING_TYPE!r}, expected "
            "'unstructured'"
        )
    joint = container.compute_mask(
        aten.cat([score.reshape(-1) for score in scores]),
        aten.cat([mask.reshape(-1) for mask in masks]),
    )
    sizes = [score.numel() for score in scores]
    for (module, name), part, score in zip(pairs, aten.split(joint, sizes), scores, strict=True):
        custom_from_mask(module, name, part.reshape(score.shape))


def remove(module: Module, name: str) -> Module:
    """Make the masked values of a parameter the parameter for good."""
    known = _hook_of(module, name)
    if known is None:
        raise ValueError(f"prune.remove: {name!r} of {type(module).__name__} is not pruned")
    known[1].remove(module)
    del module._forward_pre_hooks[known[0]]
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of `module` or of a module inside is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook in part._forward_pre_hooks.values()
    )
