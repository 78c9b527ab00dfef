"""Batch norm over the batches of all ranks."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Module, Tensor, float64
from argand_distributed.functional import all_gather_tensor
from argand_distributed.world import get_world_size, is_initialized
from argand_nn.modules.batchnorm import _BatchNorm

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """Normalise each channel (dimension 1) over the batches of all ranks of a group.

    Ranks may have batches of different sizes. In evaluation, and without a group, it is as `BatchNorm`.

    Args:
        num_features: number of channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None: cumulative average.
        affine: whether to scale each channel by a learned number and shift it by another.
        track_running_stats: whether to keep running statistics for evaluation.
        process_group: the ranks; all by default.
        bias: whether an affine layer has the shift too.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(
                f"SyncBatchNorm: got input of shape {list(input.shape)}, expected at least 2 dimensions"
            )

    def forward(self, input: Tensor) -> Tensor:
        if not (self.training and is_initialized() and get_world_size(self.process_group) > 1):
            return super().forward(input)
        self._check_input(input)
        factor = self._update_factor()
        x = input if input.dtype == float64 else input.float()
        mean, variance, count = self._statistics(x)
        if self.track_running_stats:
            with no_grad():
                unbiased = variance * (count / aten.clamp(count - 1, min=1.0))
                self.running_mean.lerp_(mean.to(dtype=self.running_mean.dtype), factor)
                self.running_var.lerp_(unbiased.to(dtype=self.running_var.dtype), factor)
        shape = [1, -1] + [1] * (input.dim() - 2)
        scale = aten.rsqrt(variance + self.eps)
        if self.weight is not None:
            scale = scale * self.weight
        result = (x - mean.reshape(shape)) * scale.reshape(shape)
        if self.bias is not None:
            result = result + self.bias.reshape(shape)
        return result.to(dtype=input.dtype)

    def _statistics(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of each channel over all ranks, and the number of values of a channel.

        One gathering of every rank's mean, sum of squared deviations and count, which are then joined
        (Chan et al., 1979).
        """
        channels = x.shape[1]
        dims = [i for i in range(x.dim()) if i != 1]
        own = x.numel() // channels
        mean = aten.sum(x, dims) / max(own, 1)
        deviations = x - mean.reshape([1, -1] + [1] * (x.dim() - 2))
        squares = aten.sum(deviations * deviations, dims)
        sent = aten.cat([mean, squares, mean.new_full([1], own)]).unsqueeze(0)
        gathered = all_gather_tensor(sent, 0, self.process_group)
        means, counts = gathered[:, :channels], gathered[:, -1:]
        total = aten.sum(counts)
        mean = aten.sum(means * counts, 0) / total
        apart = means - mean
        squares = aten.sum(gathered[:, channels:-1] + counts * apart * apart, 0)
        return mean, squares / total, total

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every `BatchNorm` of `module` by a `SyncBatchNorm` with its parameters and statistics."""
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
            result = made
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
