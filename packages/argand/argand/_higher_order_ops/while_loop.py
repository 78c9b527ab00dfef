"""`while_loop`, under the name of a module of its own."""

from argand._higher_order_ops.loops import while_loop as while_loop

__all__ = ["while_loop"]
