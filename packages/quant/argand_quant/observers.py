"""Observers: modules that watch values go by and say what scale and zero point suit them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_c10 import Module, Tensor, dtype, finfo, float32, float64, int64, uint8
from argand_quant.specs import (
    QScheme,
    dtype_range,
    per_channel_affine,
    per_tensor_affine,
)

__all__ = [
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "UniformQuantizationObserverBase",
]

_EPS = float(finfo(float32).eps)


class ObserverBase(Module):
    """What `prepare_pt2e` puts on a value: gives it on as it is, and remembers what it needs.

    Attributes:
        dtype: of the quantized tensor.
        quant_min, quant_max: the integers used.
        qscheme: see `QScheme`.
        ch_axis: the dimension of the channels.
        is_dynamic: scale and zero point are found anew whenever the converted program runs.
        eps: the least scale.
    """

    def __init__(
        self,
        dtype: dtype = uint8,
        qscheme: QScheme = per_tensor_affine,
        quant_min: int | None = None,
        quant_max: int | None = None,
        ch_axis: int = 0,
        is_dynamic: bool = False,
        eps: float = _EPS,
    ) -> None:
        super().__init__()
        self.quant_min, self.quant_max = dtype_range(
            type(self).__name__, dtype, quant_min, quant_max
        )
        self.dtype, self.qscheme, self.ch_axis = dtype, qscheme, ch_axis
        self.is_dynamic, self.eps = is_dynamic, eps

    @classmethod
    def with_args(cls, **arguments: Any) -> Callable[..., Any]:
        """A constructor with these arguments given, for `QuantizationSpec`."""
        return functools.partial(cls, **arguments)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scales (float32) and zero points (int64): one element, or one a channel."""
        raise TypeError(f"{type(self).__name__}: gives no scale; it has no calculate_qparams")

    def extra_repr(self) -> str:
        return f"dtype={self.dtype.name}, qscheme={self.qscheme.value}, range={self.quant_min}..{self.quant_max}"


class PlaceholderObserver(ObserverBase):
    """Watches nothing: for values whose scale is found when the program runs (`is_dynamic=True`)."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class FixedQParamsObserver(ObserverBase):
    """A scale and zero point that are known beforehand.

    Args:
        scale: positive.
        zero_point: within the range.
        dtype, qscheme, quant_min, quant_max: see `ObserverBase`.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: dtype = uint8,
        qscheme: QScheme = per_tensor_affine,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, qscheme, quant_min, quant_max, is_dynamic=is_dynamic)
        self.register_buffer("scale", aten.tensor([scale], dtype=float32))
        self.register_buffer("zero_point", aten.tensor([zero_point], dtype=int64))

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        return self.scale, self.zero_point


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of a range, `min_val` to `max_val`, that is mapped linearly to the integers.

    The range is first widened to hold zero, which must be exact. Affine: scale = (max - min) / (quant_max - quant_min) and
    zero_point = quant_min - round(min / scale), clamped. Symmetric: scale = max(|min|, |max|) / ((quant_max - quant_min) / 2), and the
    zero point is 0 for signed integers, the middle for unsigned ones. Rounding is half to even, arithmetic float32
    (as in Krishnamoorthi, "Quantizing deep convolutional networks for efficient inference", 2018).
    """

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        dtype: dtype = uint8,
        qscheme: QScheme = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        ch_axis: int = 0,
    ) -> None:
        """`reduce_range` uses a bit less of the integers, for processors whose 8-bit products saturate."""
        super().__init__(dtype, qscheme, quant_min, quant_max, ch_axis, is_dynamic, eps)
        if reduce_range and quant_min is None:
            self.quant_min, self.quant_max = self.quant_min // 2, self.quant_max // 2
        self.register_buffer("min_val", aten.tensor(math.inf))
        self.register_buffer("max_val", aten.tensor(-math.inf))

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val, self.max_val = aten.tensor(math.inf), aten.tensor(-math.inf)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        if self.min_val.numel() == 0 or bool((self.min_val > self.max_val).any()):
            raise RuntimeError(
                f"{type(self).__name__}: has seen no values; run the prepared program on calibration data first"
            )
        if not bool((aten.isfinite(self.min_val) & aten.isfinite(self.max_val)).all()):
            raise ValueError(
                f"{type(self).__name__}: got values from {self.min_val.min().item()} to {self.max_val.max().item()}, expected finite ones"
            )
        return self.qparams_of(self.min_val, self.max_val)

    def qparams_of(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Scales and zero points of ranges: tensors of one element or of one a channel."""
        low = aten.minimum(low, aten.zeros_like(low)).reshape(-1)
        high = aten.maximum(high, aten.zeros_like(high)).reshape(-1)
        steps = self.quant_max - self.quant_min
        if self.qscheme.symmetric:
            scale = aten.clamp(aten.maximum(-low, high) / (steps / 2), min=self.eps)
            return scale, aten.full(scale.shape, self._middle(), dtype=int64)
        scale = aten.clamp((high - low) / steps, min=self.eps)
        zero = self.quant_min - aten.round(low / scale).to(int64)
        return scale, aten.clamp(zero, self.quant_min, self.quant_max)

    def _middle(self) -> int:
        if self.quant_min < 0:
            return 0
        return 128 if self.quant_max == 255 else (self.quant_min + self.quant_max) // 2

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *rest: Any, **keywords: Any
    ) -> None:
        # Shapes follow from what was seen: as many elements as there were channels.
        for name in ("min_val", "max_val"):
            if (found := state_dict.get(prefix + name)) is not None:
                setattr(self, name, aten.empty(found.shape, dtype=found.dtype))
        super()._load_from_state_dict(state_dict, prefix, *rest, **keywords)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, min_val={self.min_val.tolist()}, max_val={self.max_val.tolist()}"


def _values(x: Tensor) -> Tensor | None:
    """What an observer looks at, in float32; None where there is nothing."""
    return x.detach().to(float32) if x.numel() else None


def _channels(x: Tensor, axis: int) -> Tensor:
    """(channels, elements) of a tensor with its channels in dimension `axis`."""
    return aten.flatten(aten.movedim(x, axis, 0).unsqueeze(-1), 1)


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and greatest values seen."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        if self.qscheme.per_channel:
            raise ValueError(
                f"{type(self).__name__}: got qscheme {self.qscheme.value}, expected one per tensor; use PerChannelMinMaxObserver"
            )

    def forward(self, x: Tensor) -> Tensor:
        if (seen := _values(x)) is not None:
            low, high = aten.aminmax(seen)
            self.min_val = aten.minimum(self.min_val, low)
            self.max_val = aten.maximum(self.max_val, high)
        return x


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Moving averages of each value's least and greatest: m += averaging_constant * (new - m), from the first on."""

    def __init__(self, averaging_constant: float = 0.01, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.averaging_constant = averaging_constant

    def forward(self, x: Tensor) -> Tensor:
        if (seen := _values(x)) is not None:
            low, high = aten.aminmax(seen)
            self.min_val, self.max_val = _averages(
                self.min_val, self.max_val, low, high, self.averaging_constant
            )
        return x


def _averages(
    old_low: Tensor, old_high: Tensor, low: Tensor, high: Tensor, constant: float
) -> tuple[Tensor, Tensor]:
    if old_low.shape != low.shape or bool((old_low > old_high).any()):
        return low, high
    return old_low + constant * (low - old_low), old_high + constant * (high - old_high)


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and greatest values seen in each channel, dimension `ch_axis`."""

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: dtype = uint8,
        qscheme: QScheme = per_channel_affine,
        **keywords: Any,
    ) -> None:
        super().__init__(dtype, qscheme, ch_axis=ch_axis, **keywords)
        if not self.qscheme.per_channel:
            raise ValueError(
                f"{type(self).__name__}: got qscheme {self.qscheme.value}, expected one per channel; use MinMaxObserver"
            )
        if self.is_dynamic:
            raise ValueError(
                f"{type(self).__name__}: got is_dynamic=True, expected False: scales per channel are fixed"
            )
        self.reset_min_max_vals()

    def reset_min_max_vals(self) -> None:
        self.min_val, self.max_val = aten.empty(0), aten.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        if (seen := _values(x)) is not None:
            low, high = aten.aminmax(_channels(seen, self.ch_axis), dim=1)
            if self.min_val.shape == low.shape:
                low, high = self._joined(low, high)
            self.min_val, self.max_val = low, high
        return x

    def _joined(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return aten.minimum(self.min_val, low), aten.maximum(self.max_val, high)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Moving averages of the least and greatest values of each channel."""

    def __init__(self, averaging_constant: float = 0.01, ch_axis: int = 0, **keywords: Any) -> None:
        super().__init__(ch_axis, **keywords)
        self.averaging_constant = averaging_constant

    def _joined(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return _averages(self.min_val, self.max_val, low, high, self.averaging_constant)


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of all values, from which the range with the least expected squared error of quantization is taken.

    The histogram covers what was seen. When a value lies beyond, its range grows, and what each bin held is spread over the new bins that it overlaps.
    The error counts rounding inside and clipping outside, with values spread evenly in their bins; each end of the range is searched for in turn,
    coarsely over the whole histogram and then bin by bin.

    Args:
        bins: of the histogram.
    """

    histogram: Tensor

    def __init__(self, bins: int = 2048, **keywords: Any) -> None:
        super().__init__(**keywords)
        if self.qscheme.per_channel:
            raise ValueError(
                f"HistogramObserver: got qscheme {self.qscheme.value}, expected one per tensor"
            )
        self.bins = bins
        self.register_buffer("histogram", aten.zeros(bins))

    def reset_min_max_vals(self) -> None:
        super().reset_min_max_vals()
        self.histogram = aten.zeros(self.bins)

    def forward(self, x: Tensor) -> Tensor:
        if (seen := _values(x)) is None:
            return x
        low, high = (v.item() for v in aten.aminmax(seen))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"HistogramObserver: got values from {low} to {high}, expected finite ones"
            )
        old = (self.min_val.item(), self.max_val.item())
        new = (min(old[0], low), max(old[1], high))
        if old[0] <= old[1] and new != old:
            self.histogram = _spread(self.histogram, old, new)
        self.min_val, self.max_val = aten.tensor(new[0]), aten.tensor(new[1])
        self.histogram = self.histogram + _histogram(seen, self.bins, new)
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        if float(self.histogram.sum()) == 0:
            return super().calculate_qparams()  # which says so
        low, high = self.best_range()
        return self.qparams_of(aten.tensor(low), aten.tensor(high))

    def best_range(self) -> tuple[float, float]:
        """The range with the least expected squared error that the search finds."""
        low, high = self.min_val.item(), self.max_val.item()
        if low == high:
            return low, high
        first, last = 0, self.bins  # edges of bins
        wide = max(self.bins // 128, 1)
        for step, reach in ((wide, self.bins), (1, wide)):
            for _ in range(2):
                highest = min(last + reach, self.bins)
                last = self._best(first, range(highest, max(first, last - reach), -step), False)
                lowest = max(first - reach, 0)
                first = self._best(last, range(lowest, min(last, first + reach), step), True)
        width = (high - low) / self.bins
        return low + width * first, low + width * last

    def _best(self, other: int, ends: range, first: bool) -> int:
        """The edge among `ends` with the least error, the widest range of equals."""
        moved = aten.tensor(list(ends), dtype=float64)
        fixed = aten.full(moved.shape, float(other), dtype=float64)
        pair = (moved, fixed) if first else (fixed, moved)
        levels = self.quant_max - self.quant_min + 1
        return ends[int(_expected_errors(self.histogram, *pair, levels).argmin().item())]

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *rest: Any, **keywords: Any
    ) -> None:
        if (found := state_dict.get(prefix + "histogram")) is not None:
            self.bins = found.numel()
            self.histogram = aten.zeros(self.bins)
        super()._load_from_state_dict(state_dict, prefix, *rest, **keywords)


def _histogram(values: Tensor, bins: int, limits: tuple[float, float]) -> Tensor:
    low, high = limits
    if low == high:  # one value: all in the first bin
        return aten.cat([aten.tensor([float(values.numel())]), aten.zeros(bins - 1)])
    return aten.histc(values, bins, low, high)


def _spread(histogram: Tensor, old: tuple[float, float], new: tuple[float, float]) -> Tensor:
    """A histogram over `old` as one over `new`, which contains it."""
    bins = histogram.numel()
    mass = aten.cat([aten.zeros(1, dtype=float64), aten.cumsum(histogram.to(float64), 0)])
    edges = aten.linspace(new[0], new[1], bins + 1, dtype=float64)
    if old[0] == old[1]:  # one value, wherever it lies
        place = min(int((old[0] - new[0]) / (new[1] - new[0]) * bins), bins - 1)
        one = aten.arange(bins) == place
        return one.to(float32) * mass[-1].to(float32)
    at = aten.clamp((edges - old[0]) / (old[1] - old[0]) * bins, 0, bins)
    left = aten.clamp(at.to(int64), max=bins - 1)
    below = mass[left] + (at - left) * (mass[left + 1] - mass[left])
    return (below[1:] - below[:-1]).to(float32)


def _expected_errors(histogram: Tensor, low: Tensor, high: Tensor, levels: int) -> Tensor:
    """Squared errors, in squares of bins, when the bins between the edges `low` and `high` are divided among `levels` integers; for each pair.

    With values spread evenly in their bins it is the sum of count * (F(right) - F(left)), F the integral of the squared distance to the nearest level.
    """
    step = ((high - low) / levels).unsqueeze(1)
    edges = aten.arange(histogram.numel() + 1, dtype=float64) - low.unsqueeze(1)
    level = aten.clamp(aten.floor(edges / step), 0, levels - 1)
    distance = edges - (level + 0.5) * step
    integral = level * (step**3 / 12) + (distance**3 + (step / 2) ** 3) / 3
    return ((integral[:, 1:] - integral[:, :-1]) * histogram.to(float64)).sum(1)
