"""`scan`, under the name of a module of its own."""

from argand._higher_order_ops.loops import scan as scan

__all__ = ["scan"]
