"""Seeds and states of random numbers on CUDA devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from argand_c10 import _C
from argand_c10.cuda._device import device_count, index_of, is_available

__all__ = [
    "default_generators",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


class _Generators(Sequence[_C.Generator]):
    """The default generator of each device."""

    def __len__(self) -> int:
        return device_count()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"default_generators: got index {index}, expected one below {len(self)}"
            )
        return _C._cuda_default_generator(index % len(self))


default_generators = _Generators()


def manual_seed(seed: int) -> None:
    """Start the current device's random numbers from a seed; nothing where there is no device."""
    seed = int(seed)
    if is_available():
        _C._cuda_default_generator(index_of(None)).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all devices from a seed; nothing where there is no device."""
    seed = int(seed)
    for generator in default_generators:
        generator.manual_seed(seed)


def seed() -> None:
    """Seed the current device from the operating system's entropy."""
    if is_available():
        _C._cuda_default_generator(index_of(None)).seed()


def seed_all() -> None:
    """Seed all devices with one number from the operating system's entropy."""
    if is_available():
        manual_seed_all(default_generators[0].seed())


def initial_seed() -> int:
    """The seed of the current device."""
    return _C._cuda_default_generator(index_of(None)).initial_seed()


def get_rng_state(device: Any = "cuda") -> _C.Tensor:
    """The state of a device's random numbers, a uint8 tensor on the CPU."""
    return _C._cuda_default_generator(index_of(device)).get_state()


def get_rng_state_all() -> list[_C.Tensor]:
    """The states of all devices."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state(new_state: _C.Tensor, device: Any = "cuda") -> None:
    """Continue from a state of `get_rng_state`."""
    _C._cuda_default_generator(index_of(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[_C.Tensor]) -> None:
    """Continue from the states of `get_rng_state_all`."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
