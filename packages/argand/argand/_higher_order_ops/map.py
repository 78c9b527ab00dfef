"""`map`, under the name of a module of its own."""

from argand._higher_order_ops.loops import map as map

__all__ = ["map"]
