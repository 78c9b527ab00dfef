"""Sequences of unequal lengths in one tensor, and padded ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import argand_aten as aten
from argand_c10 import Tensor, contiguous_format, int64
from argand_c10.errors import require_tensors

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences of unequal lengths without padding: all first elements, then all second ones...

    Sequences stand in order of falling length. `pack_padded_sequence` and `pack_sequence` make them.

    Args:
        data: (sum of lengths, *).
        batch_sizes: how many sequences have an element at each place, int64 on the CPU.
        sorted_indices: the order in which the caller's sequences were put, or None if unchanged.
        unsorted_indices: the inverse; computed if absent.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            raise ValueError("PackedSequence: got no batch_sizes, expected them")
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                f"PackedSequence: got batch_sizes on {batch_sizes.device}, expected the CPU"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on another device or in another dtype, as `Tensor.to`; sizes stay on the CPU."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order = None if self.sorted_indices is None else self.sorted_indices.to(device=data.device)
        inverse = (
            None if self.unsorted_indices is None else self.unsorted_indices.to(device=data.device)
        )
        return type(self)(data, self.batch_sizes, order, inverse)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on a CUDA device."""
        place = self.data.new_empty([0]).cuda(*args, **kwargs).device
        return self.to(device=place)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def pin_memory(self) -> PackedSequence:
        """The same in page-locked memory."""
        order, inverse = (
            None if t is None else t.pin_memory()
            for t in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(self.data.pin_memory(), self.batch_sizes, order, inverse)

    def _in_dtype(self, name: str) -> PackedSequence:
        data = getattr(self.data, name)()
        return self if data is self.data else type(self)(data, *self[1:])

    def double(self) -> PackedSequence:
        """The same in float64."""
        return self._in_dtype("double")

    def float(self) -> PackedSequence:
        """The same in float32."""
        return self._in_dtype("float")

    def half(self) -> PackedSequence:
        """The same in float16."""
        return self._in_dtype("half")

    def long(self) -> PackedSequence:
        """The same in int64."""
        return self._in_dtype("long")

    def int(self) -> PackedSequence:
        """The same in int32."""
        return self._in_dtype("int")

    def short(self) -> PackedSequence:
        """The same in int16."""
        return self._in_dtype("short")

    def char(self) -> PackedSequence:
        """The same in int8."""
        return self._in_dtype("char")

    def byte(self) -> PackedSequence:
        """The same in uint8."""
        return self._in_dtype("byte")

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a CUDA device."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Whether the data lie in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation of 0, 1, ..., as int64; None of None."""
    if permutation is None:
        return None
    places = aten.arange(permutation.numel(), dtype=int64, device=permutation.device)
    return aten.empty_like(places).index_copy_(0, permutation.to(dtype=int64), places)


def _lengths(name: str, lengths: Tensor | Sequence[int]) -> list[int]:
    if isinstance(lengths, Tensor):
        if lengths.device.type != "cpu":
            raise RuntimeError(
                f"{name}: got lengths on {lengths.device}, expected the CPU; pass lengths.cpu()"
            )
        result: list[int] = lengths.tolist()
        return result
    return [int(length) for length in lengths]


def _kept_places(lengths: list[int], steps: int, like: Tensor) -> Tensor:
    """Where (steps, batch) has an element of a sequence, as places of the flattened tensor."""
    kept = aten.arange(steps, dtype=int64).unsqueeze(1) < aten.tensor(lengths, dtype=int64)
    return aten.nonzero(kept.reshape(-1)).squeeze(1).to(like.device)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Take the padding out of (steps, batch, *).

    Args:
        input: padded sequences; (batch, steps, *) with `batch_first`.
        lengths: of the sequences, on the CPU.
        batch_first: see `input`.
        enforce_sorted: require falling lengths, instead of sorting the sequences.

    Raises:
        RuntimeError: if a length is 0, above the steps, or out of order.
    """
    name = "pack_padded_sequence"
    if input.dim() < 2:
        raise RuntimeError(f"{name}: got input of shape {list(input.shape)}, expected 2 dimensions")
    input = input.transpose(0, 1) if batch_first else input
    steps, batch = input.shape[:2]
    ends = _lengths(name, lengths)
    if len(ends) != batch:
        raise RuntimeError(f"{name}: got {len(ends)} lengths, expected {batch}, one a sequence")
    order: Tensor | None = None
    if not enforce_sorted:
        places = sorted(range(batch), key=lambda i: -ends[i])
        ends = [ends[i] for i in places]
        order = aten.tensor(places, dtype=int64, device=input.device)
        input = aten.index_select(input, 1, order)
    if any(a < b for a, b in zip(ends, ends[1:], strict=False)):
        raise RuntimeError(
            f"{name}: got lengths {ends}, expected falling ones; pass enforce_sorted=False"
        )
    if ends[-1] <= 0 or ends[0] > steps:
        raise RuntimeError(f"{name}: got lengths {ends}, expected ones from 1 to {steps}")
    flat = input.reshape(steps * batch, *input.shape[2:])
    data = aten.index_select(flat, 0, _kept_places(ends, steps, input))
    sizes = [sum(end > step for end in ends) for step in range(ends[0])]
    return PackedSequence(data, aten.tensor(sizes, dtype=int64), order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The inverse of `pack_padded_sequence`.

    Args:
        sequence: of a batch.
        batch_first: return (batch, steps, *) instead of (steps, batch, *).
        padding_value: what padding consists of.
        total_length: steps of the result; those of the longest sequence by default.

    Returns:
        The padded sequences in the caller's order, and their lengths (int64, on the CPU).

    Raises:
        ValueError: if `total_length` is below the longest sequence.
    """
    sizes: list[int] = sequence.batch_sizes.tolist()
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ValueError(
            f"pad_packed_sequence: got total_length {steps}, expected at least {len(sizes)}, the "
            "length of the longest sequence"
        )
    data, batch = sequence.data, sizes[0]
    ends = [sum(size > i for size in sizes) for i in range(batch)]
    flat = data.new_full([steps * batch, *data.shape[1:]], padding_value)
    flat = aten.index_copy(flat, 0, _kept_places(ends, steps, data), data)
    padded = flat.reshape(steps, batch, *data.shape[1:])
    if batch_first:
        padded = padded.transpose(0, 1)
    lengths = aten.tensor(ends, dtype=int64)
    if sequence.unsorted_indices is not None:
        padded = aten.index_select(padded, 0 if batch_first else 1, sequence.unsorted_indices)
        lengths = aten.index_select(lengths, 0, sequence.unsorted_indices.cpu())
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences (length, *) into (steps, batch, *), padded to the longest.

    Args:
        sequences: the sequences.
        batch_first: return (batch, steps, *).
        padding_value: what padding consists of.
        padding_side: right (after a sequence) or left.
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: got padding_side {padding_side!r}, expected 'left' or 'right'"
        )
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: got sequences of type {type(sequences).__name__}, expected an iterable of tensors"
        )
    parts = list(sequences)
    for part in parts:
        require_tensors("pad_sequence", sequences=part)
    if not parts:
        raise RuntimeError("pad_sequence: got no sequences, expected at least one")
    steps = max(part.shape[0] for part in parts)
    padded = []
    for part in parts:
        padding = part.new_full([steps - part.shape[0], *part.shape[1:]], padding_value)
        padded.append(aten.cat([part, padding] if padding_side == "right" else [padding, part]))
    return aten.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """Copies of the sequences of (steps, batch, *), without their padding."""
    padded = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    ends = _lengths("unpad_sequence", lengths)
    return [padded[i, :end].clone(memory_format=contiguous_format) for i, end in enumerate(ends)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (length, *); see `pack_padded_sequence`."""
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
