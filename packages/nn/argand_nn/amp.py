"""`GradScaler`: keeps small gradients of float16 losses from vanishing."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Tensor, cuda, device, float16, float32, int32
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["GradScaler"]


class _Stage(enum.Enum):
    """How far an optimizer has come since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Progress:
    """An optimizer's stage, and by device whether its gradients had infinite or NaN elements."""

    def __init__(self) -> None:
        self.stage = _Stage.READY
        self.found_inf: dict[device, Tensor] = {}


class GradScaler:
    """Multiplies losses, so that gradients that float16 cannot hold are not lost, and divides gradients before steps.

    Steps with infinite or NaN gradients are skipped, and the scale is then reduced; after `growth_interval` steps in a
    row without them it grows (Micikevicius et al., "Mixed precision training", 2018):

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    Args:
        device: the device type of the losses; tensors decide where the scale lives. For CUDA where there is no such device the scaler is disabled.
        init_scale: the first scale.
        growth_factor: what the scale is multiplied by after `growth_interval` steps without infinite gradients.
        backoff_factor: what it is multiplied by after a step with them.
        growth_interval: how many steps without them make it grow.
        enabled: False makes every method pass its work on unscaled.

    Raises:
        AssertionError: if growth_factor is not above 1 or backoff_factor not below 1.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn(
                "GradScaler: got the device cuda, but CUDA is not available; the scaler is disabled",
                UserWarning,
                stacklevel=2,
            )
            enabled = False
        self._device = device
        self._enabled = enabled
        if not enabled:
            return
        if not growth_factor > 1:
            raise AssertionError(f"GradScaler: got growth_factor={growth_factor}, expected above 1")
        if not backoff_factor < 1:
            raise AssertionError(
                f"GradScaler: got backoff_factor={backoff_factor}, expected below 1"
            )
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._progress: dict[int, _Progress] = {}

    # Scaling ---------------------------------------------------------------------------------

    def scale(self, outputs: Tensor | Iterable[Any]) -> Any:
        """The outputs times the scale; lists and tuples of tensors keep their type."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(x) for x in outputs]
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        if isinstance(outputs, Iterable):
            return map(self.scale, outputs)
        raise ValueError(
            f"GradScaler.scale: got {type(outputs).__name__}, expected a Tensor or an iterable of Tensors"
        )

    def _scale_on(self, place: device) -> Tensor:
        if self._scale is None:
            self._scale = aten.full((), self._init_scale, dtype=float32, device=place)
            self._growth_tracker = aten.full(
                (), self._init_growth_tracker, dtype=int32, device=place
            )
        return self._scale.to(device=place)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide an optimizer's gradients by the scale: before they are clipped or looked at, at most once a step.

        Raises:
            RuntimeError: if they were unscaled before, or `step` was called, since the last `update`.
            ValueError: if gradients are float16.
        """
        if not self._enabled:
            return
        progress = self._progress_of(optimizer)
        if progress.stage is _Stage.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if progress.stage is _Stage.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        scale = self._known_scale("unscale_")
        inverse = 1.0 / scale
        progress.found_inf = self._unscale(optimizer, inverse, allow_float16=False)
        progress.stage = _Stage.UNSCALED

    def _progress_of(self, optimizer: Optimizer) -> _Progress:
        return self._progress.setdefault(id(optimizer), _Progress())

    def _known_scale(self, method: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"GradScaler.{method}: nothing has been scaled yet; call scale(loss).backward() first"
            )
        return self._scale

    @no_grad()
    def _unscale(
        self, optimizer: Optimizer, factor: Tensor, allow_float16: bool
    ) -> dict[device, Tensor]:
        """Multiply gradients by `factor`; by device, 1 where one was infinite or NaN."""
        groups: dict[tuple[device, Any], list[Tensor]] = {}
        for parameter in _parameters(optimizer):
            grad = parameter.grad
            if grad is None:
                continue
            if grad.dtype is float16 and not allow_float16:
                raise ValueError("Attempting to unscale FP16 gradients.")
            if grad.is_sparse:
                if not grad.is_coalesced():  # a sum of doubles may be infinite, not they
                    grad = parameter.grad = grad.coalesce()
                grad = grad._values()
            groups.setdefault((grad.device, grad.dtype), []).append(grad)
        found: dict[device, Tensor] = {}
        for (place, _), grads in groups.items():
            if place not in found:
                found[place] = aten.full((), 0.0, dtype=float32, device=place)
            aten.ops._amp_foreach_non_finite_check_and_unscale_(
                grads, found[place], factor.to(device=place)
            )
        return found

    # Steps -----------------------------------------------------------------------------------

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale the optimizer's gradients, unless that was done, and take its step if they are finite.

        Returns:
            What `optimizer.step(*args, **kwargs)` returned; None for a step that was skipped.

        Raises:
            RuntimeError: if it is the second step since the last `update`, or for a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or any(callable(a) for a in args):
            raise RuntimeError(
                "GradScaler.step: closures are not supported; compute the loss before the step"
            )
        progress = self._progress_of(optimizer)
        if progress.stage is _Stage.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_that_unscales(optimizer, progress, args, kwargs)
        else:
            if progress.stage is _Stage.READY:
                self.unscale_(optimizer)
            self._check_found(progress)
            skip = any(float(found) for found in progress.found_inf.values())
            result = None if skip else optimizer.step(*args, **kwargs)
        progress.stage = _Stage.STEPPED
        return result

    def _step_that_unscales(
        self, optimizer: Any, progress: _Progress, args: Any, kwargs: Any
    ) -> Any:
        """A fused step divides gradients itself and skips itself: the CPU need not wait to know."""
        scale = self._known_scale("step")
        if progress.stage is _Stage.READY:
            one = aten.full((), 1.0, dtype=float32, device=scale.device)
            progress.found_inf = self._unscale(optimizer, one, allow_float16=True)
            optimizer.grad_scale = scale
        else:
            optimizer.grad_scale = None
        self._check_found(progress)
        optimizer.found_inf = _sum([f.to(device=scale.device) for f in progress.found_inf.values()])
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    @staticmethod
    def _check_found(progress: _Progress) -> None:
        if not progress.found_inf:
            raise AssertionError(
                "GradScaler.step: got an optimizer without gradients, expected at least one; call "
                "scale(loss).backward() first"
            )

    @no_grad()
    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Settle the next scale, once all optimizers have taken their steps.

        Args:
            new_scale: the scale to go on with; None: by what the steps have met.
        """
        if not self._enabled:
            return
        scale = self._known_scale("update")
        assert self._growth_tracker is not None
        if new_scale is not None:
            if isinstance(new_scale, Tensor):
                scale.copy_(new_scale)
            else:
                scale.fill_(new_scale)
        else:
            found = [
                f.to(device=scale.device)
                for progress in self._progress.values()
                for f in progress.found_inf.values()
            ]
            if not found:
                raise AssertionError(
                    "GradScaler.update: no optimizer has taken a step since the last update; call step first"
                )
            aten.ops._amp_update_scale_(
                scale,
                self._growth_tracker,
                _sum(found),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._progress = {}

    # Values ----------------------------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale; 1 where scaling is not enabled. Waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is reduced by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is reduced by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many good steps make the scale grow."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker)

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and what decides the next one; empty where scaling is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned.

        Raises:
            RuntimeError: if it is empty: scaling was not enabled where it comes from.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler.load_state_dict: got an empty state, expected one of an enabled scaler; "
                "make this one with enabled=False"
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(state_dict["scale"])
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._enabled:
            if self._progress:
                raise AssertionError(
                    "GradScaler: got pickled in the middle of a step; do so before scale() or after update()"
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state


def _parameters(optimizer: Optimizer) -> Iterator[Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _sum(values: list[Tensor]) -> Tensor:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
