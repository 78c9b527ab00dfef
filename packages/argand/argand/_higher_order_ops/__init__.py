"""Functions of functions: PyTorch's private module, which programs use nevertheless."""

from argand._higher_order_ops.associative_scan import associative_scan as associative_scan
from argand._higher_order_ops.map import map as map
from argand._higher_order_ops.scan import scan as scan
from argand._higher_order_ops.while_loop import while_loop as while_loop
from argand_dynamo.control_flow import cond as cond

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
