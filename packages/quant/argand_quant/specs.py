"""What is to be quantized, and how: specs of tensors, the annotations that a quantizer puts on nodes, and a quantizer's settings."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from argand_c10 import Tensor, dtype, iinfo
from argand_fx import Node

__all__ = [
    "DerivedQuantizationSpec",
    "EdgeOrNode",
    "FixedQParamsQuantizationSpec",
    "QScheme",
    "QuantizationAnnotation",
    "QuantizationConfig",
    "QuantizationSpec",
    "QuantizationSpecBase",
    "SharedQuantizationSpec",
    "annotation_of",
    "dtype_range",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
]

ANNOTATION = "quantization_annotation"  # of Node.meta


class QScheme(enum.Enum):
    """How real numbers map to integers: one scale or one a channel; zero anywhere in the range or in its middle."""

    PER_TENSOR_AFFINE = "per_tensor_affine"
    PER_TENSOR_SYMMETRIC = "per_tensor_symmetric"
    PER_CHANNEL_AFFINE = "per_channel_affine"
    PER_CHANNEL_SYMMETRIC = "per_channel_symmetric"

    @property
    def per_channel(self) -> bool:
        """Whether each channel has a scale and zero point of its own."""
        return self in (QScheme.PER_CHANNEL_AFFINE, QScheme.PER_CHANNEL_SYMMETRIC)

    @property
    def symmetric(self) -> bool:
        """Whether zero lies in the middle of the range."""
        return self in (QScheme.PER_TENSOR_SYMMETRIC, QScheme.PER_CHANNEL_SYMMETRIC)


per_tensor_affine = QScheme.PER_TENSOR_AFFINE
per_tensor_symmetric = QScheme.PER_TENSOR_SYMMETRIC
per_channel_affine = QScheme.PER_CHANNEL_AFFINE
per_channel_symmetric = QScheme.PER_CHANNEL_SYMMETRIC

# The value that a node uses (producer, user), or a node's own result.
EdgeOrNode: TypeAlias = tuple[Node, Node] | Node


def dtype_range(name: str, dtype: dtype, low: int | None, high: int | None) -> tuple[int, int]:
    """The integers that a quantized tensor of `dtype` may hold, within (`low`, `high`) where those are given.

    Raises:
        ValueError: `dtype` is no integer type, or the range is empty or beyond it.
    """
    if dtype.is_floating_point or dtype.is_complex:
        raise ValueError(f"{name}: got dtype {dtype.name}, expected an integer type")
    limits = iinfo(dtype)
    if (low is None) != (high is None):
        raise ValueError(f"{name}: got quant_min={low}, quant_max={high}, expected both or neither")
    if low is None or high is None:
        return int(limits.min), int(limits.max)
    if not limits.min <= low < high <= limits.max:
        raise ValueError(
            f"{name}: got the range {low} to {high}, expected a part of {dtype.name}'s {limits.min} to {limits.max}"
        )
    return low, high


class QuantizationSpecBase:
    """Any spec of a tensor."""


@dataclass(frozen=True, eq=True)
class QuantizationSpec(QuantizationSpecBase):
    """A tensor whose scale and zero point an observer finds.

    Attributes:
        dtype: of the integers.
        observer_or_fake_quant_ctr: makes the observer; called without arguments (`MinMaxObserver.with_args(...)`), or with what this spec says.
        quant_min, quant_max: the integers used; by default all of `dtype`.
        qscheme: see `QScheme`.
        ch_axis: the dimension of the channels, where the scheme is per channel.
        is_dynamic: scale and zero point are found anew from each value when the program runs.
    """

    dtype: dtype
    observer_or_fake_quant_ctr: Callable[..., Any]
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: QScheme | None = None
    ch_axis: int | None = None
    is_dynamic: bool = False

    def __post_init__(self) -> None:
        dtype_range("QuantizationSpec", self.dtype, self.quant_min, self.quant_max)
        if self.ch_axis is not None and self.ch_axis < 0:
            raise ValueError(f"QuantizationSpec: got ch_axis={self.ch_axis}, expected 0 or more")


@dataclass(frozen=True)
class FixedQParamsQuantizationSpec(QuantizationSpecBase):
    """A tensor whose range is known beforehand, as that of softmax or sigmoid.

    Attributes:
        scale, zero_point: of the whole tensor.
        dtype, quant_min, quant_max, qscheme, is_dynamic: as in `QuantizationSpec`.
    """

    dtype: dtype
    scale: float
    zero_point: int
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: QScheme | None = None
    is_dynamic: bool = False

    def __post_init__(self) -> None:
        low, high = dtype_range(
            "FixedQParamsQuantizationSpec", self.dtype, self.quant_min, self.quant_max
        )
        if not self.scale > 0 or not low <= self.zero_point <= high:
            raise ValueError(
                f"FixedQParamsQuantizationSpec: got scale {self.scale} and zero_point {self.zero_point}, "
                f"expected a positive scale and a zero_point from {low} to {high}"
            )


@dataclass(frozen=True)
class SharedQuantizationSpec(QuantizationSpecBase):
    """A tensor that has the scale and zero point of another edge or node: one observer sees both."""

    edge_or_node: EdgeOrNode


@dataclass(frozen=True)
class DerivedQuantizationSpec(QuantizationSpecBase):
    """A tensor whose scale and zero point follow from those of others, as a bias's from its activation's and weight's.

    Attributes:
        derived_from: edges and nodes with specs of their own.
        derive_qparams_fn: from their observers, in order, to (scale, zero_point) tensors.
        dtype, quant_min, quant_max, qscheme, ch_axis, is_dynamic: as in `QuantizationSpec`.
    """

    derived_from: Sequence[EdgeOrNode]
    derive_qparams_fn: Callable[[list[Any]], tuple[Tensor, Tensor]]
    dtype: dtype
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: QScheme | None = None
    ch_axis: int | None = None
    is_dynamic: bool = False


@dataclass
class QuantizationAnnotation:
    """What a quantizer says of a node, in `node.meta["quantization_annotation"]`.

    Attributes:
        input_qspec_map: specs of the values that it uses, by their nodes; None leaves one as it is.
        output_qspec: spec of its result.
        allow_implicit_sharing: equal specs of one value share an observer.
        custom_annotation: for the quantizer's own use.
        _annotated: the node belongs to a quantized pattern, also where it has no specs itself.
    """

    input_qspec_map: dict[Node, QuantizationSpecBase | None] = field(default_factory=dict)
    output_qspec: QuantizationSpecBase | None = None
    allow_implicit_sharing: bool = True
    custom_annotation: dict[str, Any] = field(default_factory=dict)
    _annotated: bool = False


def annotation_of(node: Node) -> QuantizationAnnotation | None:
    """The node's annotation, if it has one."""
    found: QuantizationAnnotation | None = node.meta.get(ANNOTATION)
    return found


@dataclass(frozen=True)
class QuantizationConfig:
    """A quantizer's settings for a kind of layer; None leaves that part as it is.

    Attributes:
        input_activation, output_activation, weight, bias: specs.
        is_qat: made for training with fake quantization.
    """

    input_activation: QuantizationSpec | None
    output_activation: QuantizationSpec | None
    weight: QuantizationSpec | None
    bias: QuantizationSpec | None = None
    is_qat: bool = False
