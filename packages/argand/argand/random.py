"""The default random generator."""

from __future__ import annotations

from argand_c10 import default_generator, get_rng_state, manual_seed, set_rng_state

__all__ = ["default_generator", "get_rng_state", "manual_seed", "set_rng_state"]
