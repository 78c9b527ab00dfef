"""Modules that learn the sizes of their inputs from the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argand_c10 import Module, Tensor
from argand_nn.modules import conv
from argand_nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from argand_nn.modules.linear import Linear
from argand_nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    *[f"Lazy{name}" for name in conv.__all__],
]


def _initialize(module: LazyModuleMixin, args: Any, kwargs: Any) -> None:
    """Forward pre-hook: give the parameters their shapes, and turn into the ordinary module."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"{type(module).__name__}: initialize_parameters left a parameter without a shape"
        )
    for key in [k for k, hook in module._forward_pre_hooks.items() if hook is _initialize]:
        del module._forward_pre_hooks[key]
        module._forward_pre_hooks_with_kwargs.pop(key, None)
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become  # type: ignore[assignment]  # no longer a LazyModuleMixin


class LazyModuleMixin(Module):
    """Base class, before the module's own, of modules with `UninitializedParameter`s.

    A subclass defines `initialize_parameters(*args)`, which gets the arguments of the first call and
    materializes the parameters. Until then the module can be moved, saved and loaded.
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_forward_pre_hook(_initialize, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters by the arguments of the first call."""
        raise NotImplementedError(
            f"{type(self).__name__}.initialize_parameters: not defined; a lazy module must define it"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this module has no shape yet."""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

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
        both_lazy = set()
        for name, value in {**self._parameters, **self._buffers}.items():
            given = state_dict.get(prefix + name)
            if is_lazy(value) and is_lazy(given):
                both_lazy.add(prefix + name)
            elif is_lazy(value) and isinstance(given, Tensor):
                value.materialize(given.shape)  # type: ignore[union-attr]
        super()._load_from_state_dict(
            {key: value for key, value in state_dict.items() if key not in both_lazy},
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )
        missing_keys[:] = [key for key in missing_keys if key not in both_lazy]


class _LazySized(LazyModuleMixin):
    """A lazy module one of whose settings, `size_name`, is the size of an input's dimension."""

    size_name: str
    weight: Any
    bias: Any

    def _forget_shapes(self) -> None:
        """Replace weight and bias by parameters without shapes."""
        for name in ("weight", "bias"):
            value = getattr(self, name)
            if value is not None:
                lazy = UninitializedParameter(device=value.device, dtype=value.dtype)
                setattr(self, name, lazy)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, once they have shapes."""
        if getattr(self, self.size_name) != 0 and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def input_size(self, input: Tensor) -> int:
        """The size that the module takes from its first input."""
        raise NotImplementedError(f"{type(self).__name__}.input_size: not defined; define it")

    def loaded_size(self) -> int:
        """The same from parameters that were loaded."""
        raise NotImplementedError(f"{type(self).__name__}.loaded_size: not defined; define it")

    def parameter_shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """Shapes of parameters and buffers for that size."""
        raise NotImplementedError(f"{type(self).__name__}.parameter_shapes: not defined; define it")

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the size from `input`, or from parameters that were loaded."""
        if not self.has_uninitialized_params():
            setattr(self, self.size_name, self.loaded_size())
            return
        size = self.input_size(input)
        setattr(self, self.size_name, size)
        for name, shape in self.parameter_shapes(size).items():
            value = getattr(self, name)
            if is_lazy(value):
                value.materialize(shape)
        self.reset_parameters()


class LazyLinear(_LazySized, Linear):
    """A `Linear` that takes `in_features` from its first input.

    Args:
        out_features: size of the last dimension of the output.
        bias: whether to add a learned vector.
    """

    cls_to_become = Linear
    size_name = "in_features"

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, bias, device, dtype)
        self.out_features = out_features
        self._forget_shapes()

    def input_size(self, input: Tensor) -> int:
        return input.shape[-1]

    def loaded_size(self) -> int:
        size: int = self.weight.shape[1]
        return size

    def parameter_shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_features, size), "bias": (self.out_features,)}


class _LazyConv(_LazySized):
    """A convolution that takes `in_channels` from its first input.

    Args:
        out_channels: C of the output.

    The others are those of the convolution, from `kernel_size` on.
    """

    size_name = "in_channels"
    transposed = False
    spatial: int
    groups: int
    kernel_size: tuple[int, ...]

    def __init__(self, out_channels: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(0, 0, *args, **kwargs)
        self.out_channels = out_channels
        if out_channels % self.groups:
            raise ValueError(
                f"{type(self).__name__}: got {out_channels} output channels, expected a multiple of "
                f"groups {self.groups}"
            )
        self._forget_shapes()

    def input_size(self, input: Tensor) -> int:
        if input.dim() not in (self.spatial + 1, self.spatial + 2):
            raise RuntimeError(
                f"{type(self).__name__}: got input of shape {list(input.shape)}, expected "
                f"{self.spatial + 1} or {self.spatial + 2} dimensions"
            )
        return input.shape[-self.spatial - 1]

    def loaded_size(self) -> int:
        size: int = self.weight.shape[0 if self.transposed else 1]
        return size if self.transposed else size * self.groups

    def parameter_shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        first, second = (size, self.out_channels) if self.transposed else (self.out_channels, size)
        if size % self.groups:
            raise ValueError(
                f"{type(self).__name__}: got {size} input channels, expected a multiple of groups "
                f"{self.groups}"
            )
        weight = (first, second // self.groups, *self.kernel_size)
        return {"weight": weight, "bias": (self.out_channels,)}


def _lazy_conv(kind: type[Module]) -> type[Module]:
    """The lazy form of a convolution."""
    fields = {"__doc__": _LazyConv.__doc__, "__module__": __name__, "cls_to_become": kind}
    return type(f"Lazy{kind.__name__}", (_LazyConv, kind), fields)


_LAZY_CONVS = {f"Lazy{name}": _lazy_conv(getattr(conv, name)) for name in conv.__all__}
globals().update(_LAZY_CONVS)


class _LazyNorm(_LazySized):
    """A normalization that takes `num_features` from its first input; arguments as the others."""

    size_name = "num_features"
    running_mean: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self._forget_shapes()
        for name in ("running_mean", "running_var"):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, UninitializedBuffer(device=value.device, dtype=value.dtype))

    def input_size(self, input: Tensor) -> int:
        self._check_input(input)
        places = self.input_dims
        unbatched = self.cls_to_become in _INSTANCE_NORMS and input.dim() == places[0]
        return input.shape[0 if unbatched else 1]

    def loaded_size(self) -> int:
        known = self.weight if self.weight is not None else self.running_mean
        return known.shape[0] if known is not None else self.num_features  # type: ignore[no-any-return]

    def parameter_shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (size,))


_INSTANCE_NORMS = (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    __doc__ = _LazyNorm.__doc__
    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    __doc__ = _LazyNorm.__doc__
    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    __doc__ = _LazyNorm.__doc__
    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    __doc__ = _LazyNorm.__doc__
    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    __doc__ = _LazyNorm.__doc__
    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    __doc__ = _LazyNorm.__doc__
    cls_to_become = InstanceNorm3d
