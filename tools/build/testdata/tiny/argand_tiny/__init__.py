"""A package as small as possible, to test the build rules with."""

from argand_tiny._C import dot, tiers, twice

__all__ = ["dot", "tiers", "twice"]
