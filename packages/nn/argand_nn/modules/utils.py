"""One number for all dimensions, or one for each: as tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """The function that repeats a number `n` times, and makes a tuple of anything else."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The last entry `n` times, then the one before it, and so on: paddings of dimensions as `pad` takes them."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> list[int] | int:
    """Output sizes; where they are None, those of the input, the last ones of `defaults`."""
    if isinstance(out_size, int | float):
        return int(out_size)
    if len(defaults) <= len(out_size):
        raise ValueError(
            f"output_size: got {len(out_size)} sizes for an input of {len(defaults)} dimensions"
        )
    ends = defaults[len(defaults) - len(out_size) :]
    return [d if v is None else v for v, d in zip(out_size, ends, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes `prefix` off the names of a state dict, and off those of its metadata, in place.

    Args:
        state_dict: names that begin otherwise stay.
        prefix: such as "module.", with which DistributedDataParallel's names begin.
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        if key and (key.startswith(prefix) or key == prefix.rstrip(".")):
            metadata[key[len(prefix) :]] = metadata.pop(key)
