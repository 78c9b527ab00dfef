"""Averages of models over training: equal weights (Izmailov et al., 2018) or exponential ones."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Module, Tensor, int64
from argand_nn.modules.batchnorm import _BatchNorm
from argand_nn.optim.lr_scheduler.base import LRScheduler, per_group
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

# (average, new value, number of values in the average) -> the new average
AverageFn = Callable[[Tensor, Tensor, Any], Tensor]
# The same for lists of tensors, in place.
MultiAverageFn = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def _check_decay(name: str, decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"{name}: got decay {decay}, expected one in [0, 1]")


def get_ema_avg_fn(decay: float = 0.999) -> AverageFn:
    """A function for `AveragedModel`: decay * average + (1 - decay) * value."""
    _check_decay("get_ema_avg_fn", decay)

    @no_grad()
    def ema_update(average: Tensor, value: Tensor, count: Any) -> Tensor:
        return decay * average + (1 - decay) * value

    return ema_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverageFn:
    """The same for lists of tensors, in place."""
    _check_decay("get_ema_multi_avg_fn", decay)

    @no_grad()
    def ema_update(averages: Sequence[Tensor], values: Sequence[Tensor], count: Any) -> None:
        for average, value in zip(averages, values, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(value.to(dtype=average.dtype), 1 - decay)
            else:
                average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_avg_fn() -> AverageFn:
    """A function for `AveragedModel`: the mean of all values."""

    @no_grad()
    def swa_update(average: Tensor, value: Tensor, count: Tensor | int) -> Tensor:
        return average + (value - average) / (count + 1)

    return swa_update


def get_swa_multi_avg_fn() -> MultiAverageFn:
    """The same for lists of tensors, in place."""

    @no_grad()
    def swa_update(averages: Sequence[Tensor], values: Sequence[Tensor], count: Any) -> None:
        for average, value in zip(averages, values, strict=True):
            average.copy_(average + (value - average) / (count + 1))

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those of the model in training.

    Args:
        model: the model; it is copied.
        device: where the copy lives; beside the model if None.
        avg_fn: (average, value, count) -> new average, a tensor at a time.
        multi_avg_fn: the same in place, for all tensors of a device at once.
        use_buffers: average the buffers too, instead of copying them.

    With neither function the mean is kept.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: AverageFn | None = None,
        multi_avg_fn: MultiAverageFn | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError(
                "AveragedModel: got avg_fn and multi_avg_fn, expected at most one of them"
            )
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", aten.tensor(0, dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of `model` into the averages; the first ones are copied."""
        averages, values = _averaged_tensors(self, model, self.use_buffers)
        count = int(self.n_averaged)
        if count == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value.to(device=average.device), count))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for place in {average.device for average in averages}:
                chosen = [i for i, average in enumerate(averages) if average.device == place]
                update(
                    [averages[i] for i in chosen],
                    [values[i].to(device=place) for i in chosen],
                    count,
                )
        if not self.use_buffers:
            for kept, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                kept.detach().copy_(buffer.detach())
        self.n_averaged.add_(1)


def _averaged_tensors(
    averaged: AveragedModel, model: Module, use_buffers: bool
) -> tuple[list[Tensor], list[Tensor]]:
    averages, values = list(averaged.module.parameters()), list(model.parameters())
    if use_buffers:
        averages += averaged.module.buffers()  # type: ignore[arg-type]
        values += model.buffers()  # type: ignore[arg-type]
    return [t.detach() for t in averages], [t.detach() for t in values]


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch norms anew, as means over the batches of `loader`.

    Of batches that are lists or tuples the first element is the model's input.
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # cumulative means
    for batch in loader:
        input = batch[0] if isinstance(batch, list | tuple) else batch
        model(input if device is None else input.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present rate to a constant one in `anneal_epochs` epochs.

    Args:
        optimizer: whose groups' rates are set.
        swa_lr: the constant rate, one or one a group.
        anneal_epochs: epochs until it is reached.
        anneal_strategy: cos or linear.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: got anneal_strategy {anneal_strategy!r}, expected 'cos' or 'linear'"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"SWALR: got anneal_epochs {anneal_epochs}, expected an integer from 0"
            )
        rates = per_group("swa_lr", swa_lr, len(optimizer.param_groups))
        for group, lr in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = lr
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        """How much of the way is done at `epoch`, from 0 to 1."""
        share = min(1.0, max(0.0, epoch / max(1, self.anneal_epochs)))
        return share if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        epoch = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch)
        before, now = self._share(max(0, epoch - 1)), self._share(epoch)
        rates = []
        for group in self.optimizer.param_groups:
            end, present = group["swa_lr"], float(group["lr"])
            # Where the way began, by the present rate, which other schedulers may have changed.
            start = end if before == 1 else (present - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
