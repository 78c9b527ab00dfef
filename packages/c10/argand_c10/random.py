"""Seeds and states of random numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from argand_c10 import _C
from argand_c10._C import Generator, Tensor, default_generator

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "get_rng_states",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "set_rng_states",
]


def _set_seed(seed: int) -> None:
    for generator in _C._default_generators():
        generator.manual_seed(seed)


def manual_seed(seed: int) -> Generator:
    """Start the default generators' streams of this seed from their beginning, on the CPU and on all devices.

    Args:
        seed: from -2**63 to 2**64 - 1; what `int` takes is converted.

    Raises:
        ValueError: for what is no number, or out of range.
    """
    seed = int(seed)
    default_generator.manual_seed(seed)
    _set_seed(seed)
    return default_generator


def seed() -> int:
    """Seed the default generators from the operating system's entropy; returns the seed."""
    number = default_generator.seed()
    _set_seed(number)
    return number


def initial_seed() -> int:
    """The seed of the CPU's default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the CPU's default generator, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor | bytes) -> None:
    """Continue from a state of `get_rng_state`."""
    default_generator.set_state(new_state)


def get_rng_states() -> list[tuple[Generator, Tensor]]:
    """The default generators of the CPU and of all devices in use, each with its state."""
    return [(generator, generator.get_state()) for generator in _C._default_generators()]


def set_rng_states(states: Iterable[tuple[Generator, Tensor]]) -> None:
    """Continue from the states of `get_rng_states`."""
    for generator, state in states:
        generator.set_state(state)


@contextmanager
def fork_rng(
    devices: Iterable[str | int | _C.device] | None = None,
    enabled: bool = True,
    *,
    device_type: str | None = None,
) -> Iterator[None]:
    """Context manager that puts the default generators' states back at its end.

    Args:
        devices: the devices besides the CPU whose states are kept (default: all in use).
        enabled: False: nothing is put back.
        device_type: which devices numbers among `devices` mean (default: CUDA's).
    """
    states = get_rng_states() if enabled else []
    if devices is not None:
        kind = device_type or "cuda"
        chosen = {str(_C.device(kind, d) if isinstance(d, int) else _C.device(d)) for d in devices}
        states = [s for s in states if s[0].device.type == "cpu" or str(s[0].device) in chosen]
    try:
        yield
    finally:
        set_rng_states(states)
