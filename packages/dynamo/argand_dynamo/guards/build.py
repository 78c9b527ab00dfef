"""Guards made from the values that were seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import argand_c10
from argand_autograd import is_grad_enabled, is_inference_mode_enabled
from argand_c10 import Tensor
from argand_dynamo._C import storage_id, thread_keys

if TYPE_CHECKING:
    from argand_fx.shapes import FakeTensor

Source = tuple[tuple[Any, ...], ...]

# Bits of ArgandTensor.flags (packages/c10/csrc/abi/argand.h).
CONTIGUOUS = 1
INFERENCE = 8


class Guard(NamedTuple):
    """One fact; see the package for the kinds and their values."""

    source: Source
    kind: str
    value: Any


class TensorFacts(NamedTuple):
    """What a TENSOR guard compares. None in `sizes` and `strides` stands for any value.

    Attributes:
        type: the exact type, or its "module:qualname".
        flags: `CONTIGUOUS | INFERENCE`, as the tensor has them.
    """

    type: Any
    dtype: Any
    device: Any
    requires_grad: bool
    ndim: int
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    flags: int


def tensor_facts(tensor: Tensor, like: FakeTensor | None = None) -> TensorFacts:
    """The facts of `tensor`, leaving open the sizes and strides that are symbolic in its fake `like`.

    Of those, a symbol of its own may have any value; let `shape_guard` say what other symbolic strides are.
    """
    sizes, strides = (tensor.shape, tensor.stride()) if like is None else (like.shape, like.strides)
    flags = CONTIGUOUS if tensor.is_contiguous() else 0
    return TensorFacts(
        type(tensor),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        len(sizes),
        tuple([n if type(n) is int else None for n in sizes]),
        tuple([n if type(n) is int else None for n in strides]),
        flags | (INFERENCE if tensor.is_inference() else 0),
    )


def tensor_guard(source: Source, tensor: Tensor, like: FakeTensor | None = None) -> Guard:
    """The TENSOR guard of `tensor`."""
    return Guard(source, "TENSOR", tensor_facts(tensor, like))


def alias_guards(tensors: Sequence[tuple[Source, Tensor]]) -> list[Guard]:
    """Which sources lead to one tensor object, and that the others lead to different ones."""
    first: dict[int, Source] = {}
    guards: list[Guard] = []
    for source, tensor in tensors:
        known = first.setdefault(id(tensor), source)
        if known is not source:
            guards.append(Guard(source, "ALIAS", known))
    if len(first) > 1:
        guards.append(Guard((), "DISTINCT", tuple(first.values())))
    return guards


def storage_guards(tensors: Sequence[tuple[Source, Tensor]]) -> list[Guard]:
    """Which of the tensors share a storage; those that do keep their offsets.

    With `alias_guards`, all that a program may assume about writing to one of its tensors and reading another.
    """
    guards = alias_guards(tensors)
    seen: set[int] = set()
    distinct = []
    for source, tensor in tensors:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            distinct.append((source, tensor))
    if len(distinct) < 2:
        return guards
    groups: dict[int, int] = {}
    pattern = tuple([groups.setdefault(storage_id(t), len(groups)) for _, t in distinct])
    sources = tuple([source for source, _ in distinct])
    if len(groups) == len(distinct):
        guards.append(Guard((), "STORAGE", (sources, pattern)))
        return guards
    offsets = tuple(
        [
            t.storage_offset() if pattern.count(number) > 1 else None
            for (_, t), number in zip(distinct, pattern, strict=True)
        ]
    )
    guards.append(Guard((), "STORAGE", (sources, pattern, offsets)))
    return guards


def state_guards() -> list[Guard]:
    """The thread's modes as they are now, on which every traced program depends."""
    keys = thread_keys()
    return [
        Guard((), "GRAD_MODE", is_grad_enabled()),
        Guard((), "INFERENCE_MODE", is_inference_mode_enabled()),
        Guard((), "DEFAULT_DTYPE", argand_c10.get_default_dtype()),
        Guard((), "MODES", keys),
    ]


def device_guards(devices: Iterable[argand_c10.device]) -> list[Guard]:
    """Where tensors go that are made on "cuda", for a program with tensors on these devices."""
    native = argand_c10._C
    if all(d.type != "cuda" for d in devices) or native._cuda_device_count() < 2:
        return []
    return [Guard((), "CUDA_DEVICE", native._cuda_get_device())]


def shape_guard(
    expressions: Iterable[Any], bindings: Mapping[str, tuple[Source, str, int]]
) -> Guard:
    """Expressions over symbols, such as `("<=", ("+", ("*", 2, "s0"), 3), 10)`, that must all be true."""
    return Guard((), "SHAPE", (tuple(expressions), dict(bindings)))
