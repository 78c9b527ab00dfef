"""`FakeQuantize`: values rounded to what the integers can hold, in float32, with gradients that pass through."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_c10 import Module, Tensor, dtype, int32
from argand_quant.observers import MovingAverageMinMaxObserver, ObserverBase
from argand_quant.operators import operators
from argand_quant.specs import QScheme

__all__ = [
    "FakeQuantize",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
]

_per_channel = operators["fake_quantize_per_channel_affine"]
_per_tensor = operators["fake_quantize_per_tensor_affine"]
_per_tensor_of_tensors = operators["fake_quantize_per_tensor_affine_tensor_qparams"]


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """Values as integers would hold them: (clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale.

    Args:
        input: floating-point numbers.
        scale, zero_point: numbers, or tensors of one element each.
        quant_min, quant_max: the integers used.

    The gradient is passed on where nothing was clamped, and zero elsewhere.

    Raises:
        RuntimeError: for a zero point (a number) outside of the range, or an empty range.
    """
    if isinstance(scale, Tensor) and isinstance(zero_point, Tensor):
        found: Tensor = _per_tensor_of_tensors(input, scale, zero_point, quant_min, quant_max)
    else:
        found = _per_tensor(input, scale, zero_point, quant_min, quant_max)
    return found


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, with a scale (float32) and a zero point for each position along `axis`.

    Zero points are int32, or float32 or float16: clamp(input / scale + zero_point, quant_min, quant_max) is rounded then.
    """
    found: Tensor = _per_channel(input, scale, zero_point, axis, quant_min, quant_max)
    return found


class FakeQuantize(Module):
    """Observes a value and gives it on as the integers will hold it: (clamp(round(x / scale) + zero_point) - zero_point) * scale.

    The gradient is that of the identity where nothing was clamped, and zero elsewhere.

    Args:
        observer: makes the observer.
        quant_min, quant_max: the integers used; by default the observer's.
        observer_kwargs: arguments of `observer`.

    Attributes:
        activation_post_process: the observer.
        scale, zero_point: what was used last.
    """

    scale: Tensor
    zero_point: Tensor
    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(
        self,
        observer: Callable[..., Any] = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        self.activation_post_process: ObserverBase = observer(
            quant_min=quant_min, quant_max=quant_max, **observer_kwargs
        )
        self.register_buffer("fake_quant_enabled", aten.tensor([1], dtype=int32))
        self.register_buffer("observer_enabled", aten.tensor([1], dtype=int32))
        self.register_buffer("scale", aten.ones(1))
        self.register_buffer("zero_point", aten.zeros(1, dtype=int32))

    @classmethod
    def with_args(cls, **arguments: Any) -> Callable[..., Any]:
        """A constructor with these arguments given, for `QuantizationSpec`."""
        return functools.partial(cls, **arguments)

    # What convert asks an observer for.
    @property
    def dtype(self) -> dtype:
        return self.activation_post_process.dtype

    @property
    def qscheme(self) -> QScheme:
        return self.activation_post_process.qscheme

    @property
    def quant_min(self) -> int:
        return self.activation_post_process.quant_min

    @property
    def quant_max(self) -> int:
        return self.activation_post_process.quant_max

    @property
    def ch_axis(self) -> int:
        return self.activation_post_process.ch_axis

    @property
    def is_dynamic(self) -> bool:
        return self.activation_post_process.is_dynamic

    @property
    def eps(self) -> float:
        return self.activation_post_process.eps

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The observer's scales and zero points."""
        return self.activation_post_process.calculate_qparams()

    def enable_observer(self, enabled: bool = True) -> None:
        """Whether scale and zero point follow what is seen."""
        self.observer_enabled.fill_(int(enabled))

    def disable_observer(self) -> None:
        """Keep scale and zero point as they are."""
        self.enable_observer(False)

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Whether values are rounded."""
        self.fake_quant_enabled.fill_(int(enabled))

    def disable_fake_quant(self) -> None:
        """Give values on as they are."""
        self.enable_fake_quant(False)

    def forward(self, x: Tensor) -> Tensor:
        if self.observer_enabled.item():
            self.activation_post_process(x.detach())
            scale, zero_point = self.activation_post_process.calculate_qparams()
            self.scale, self.zero_point = scale, zero_point.to(int32)
        if not self.fake_quant_enabled.item():
            return x
        if self.qscheme.per_channel:
            rounded: Tensor = _per_channel(
                x, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max
            )
            return rounded
        rounded = _per_tensor(
            x, self.scale.item(), int(self.zero_point.item()), self.quant_min, self.quant_max
        )
        return rounded

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *rest: Any, **keywords: Any
    ) -> None:
        for name in ("scale", "zero_point"):
            if (found := state_dict.get(prefix + name)) is not None:
                setattr(self, name, aten.empty(found.shape, dtype=found.dtype))
        super()._load_from_state_dict(state_dict, prefix, *rest, **keywords)
