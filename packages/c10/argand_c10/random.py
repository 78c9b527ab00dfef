"""Seeds and states of random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argand_c10._C import Generator, Tensor, default_generator

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: int) -> Generator:
    """Start the default generator's stream of this seed from its beginning.

    Args:
        seed: from -2**63 to 2**64 - 1.
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor | bytes) -> None:
    """Continue from a state of `get_rng_state`."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(enabled: bool = True) -> Iterator[None]:
    """Context manager that puts the default generator's state back at its end."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
