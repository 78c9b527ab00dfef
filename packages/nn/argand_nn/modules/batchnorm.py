"""Normalization modules with running statistics."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import argand_aten as aten
from argand_c10 import Module, Parameter, Tensor, int64
from argand_nn import functional as F
from argand_nn import init

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
]


class _NormBase(Module):
    """Settings, parameters and running statistics; subclasses say which inputs they take."""

    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    _version = 2
    input_dims: tuple[int, ...]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(aten.empty(num_features, **options))
        if affine and bias:
            self.bias = Parameter(aten.empty(num_features, **options))
        track = track_running_stats
        self.register_buffer("running_mean", aten.zeros(num_features, **options) if track else None)
        self.register_buffer("running_var", aten.ones(num_features, **options) if track else None)
        self.register_buffer(
            "num_batches_tracked",
            aten.tensor(0, dtype=int64, device=device) if track else None,
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget all batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget all batches seen; weight 1, bias 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input(self, input: Tensor) -> None:
        if input.dim() not in self.input_dims:
            dims = " or ".join(f"{d}-d" for d in self.input_dims)
            raise ValueError(
                f"{type(self).__name__}: got input of shape {list(input.shape)}, expected {dims}"
            )

    def _update_factor(self) -> float | Tensor:
        """Weight of the present batch in the running statistics; counts the batch in training.

        Of a cumulative average it is a 0-d tensor, so that the count need not be read.
        """
        if not (self.training and self.track_running_stats):
            return 0.0 if self.momentum is None else self.momentum
        count: Tensor = self.num_batches_tracked
        count.add_(1)
        if self.momentum is None:
            return 1.0 / count.to(dtype=self.running_mean.dtype)
        return self.momentum

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

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
        key = prefix + "num_batches_tracked"
        if local_metadata.get("version", 1) < 2 and self.track_running_stats:
            # States without versions (plain files) may lack the count.
            if key not in state_dict:
                state_dict = {**state_dict, key: self.num_batches_tracked}
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class _BatchNorm(_NormBase):
    """Normalise each channel (dimension 1) over the batch.

    Args:
        num_features: number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None: cumulative average.
        affine: whether to scale each channel by a learned number, and shift it if also `bias`.
        track_running_stats: whether to keep running statistics for evaluation.
    """

    def forward(self, input: Tensor) -> Tensor:
        self._check_input(input)
        factor = self._update_factor()
        if isinstance(factor, Tensor):
            return self._cumulative(input, factor)
        use_batch = self.training or self.running_mean is None
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            use_batch,
            factor,
            self.eps,
        )

    def _cumulative(self, input: Tensor, share: Tensor) -> Tensor:
        """A step in training whose batch enters the running statistics with a share that is a tensor."""
        mean, variance = aten.zeros_like(self.running_mean), aten.zeros_like(self.running_var)
        result = F.batch_norm(input, mean, variance, self.weight, self.bias, True, 1.0, self.eps)
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)
        return result


class BatchNorm1d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    input_dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    input_dims = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    input_dims = (5,)


class _InstanceNorm(_NormBase):
    """Normalise each channel of each sample over its places.

    Running statistics are off by default, and so are weights.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input(input)
        batched = input.dim() == self.input_dims[-1]
        self._check_features(input.shape[1 if batched else 0])
        result = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result if batched else result.squeeze(0)

    def _check_features(self, features: int) -> None:
        if features == self.num_features:
            return
        problem = f"{type(self).__name__}: got {features} channels, expected num_features={self.num_features}"
        if self.affine:
            raise ValueError(problem)
        warnings.warn(f"{problem}; without affine=True it is not used", stacklevel=3)


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    input_dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    input_dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    input_dims = (4, 5)
