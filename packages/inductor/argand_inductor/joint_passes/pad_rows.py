"""Layouts with aligned rows for what matrix products make and read: the libraries' fast kernels want rows of 16 bytes, or multiples.

A tensor of 50,257 columns then lies in memory with 50,304 a row, from the product that makes it to the products that read its
gradient, and nothing is copied. What lies behind the rows holds zeros: products are of the padded sizes, for which the fast kernels
are, whatever the strides (50,257 columns with a stride of 50,304 take 7 times as long on an H200 as 50,304 columns).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from argand_c10 import Operator
from argand_c10.rules import rules_of
from argand_fx import Node
from argand_fx.shapes import FakeTensor
from argand_inductor.codegen.backend import backend_class
from argand_inductor.joint_passes.layouts import SAME_ROWS, TURNED, can_follow, lay_out
from argand_inductor.loop_ir import HALF
from argand_inductor.lowering import matrix
from argand_inductor.lowering.tensors import dtype_name

if TYPE_CHECKING:
    from argand_aot.joint import Joint

_ROW = 64  # elements of which rows become multiples: 128 bytes, a line of the cache; as the kernels' masks (codegen/triton/reads.py)
_PRODUCTS = {"mm": (0, 1), "linear": (0, 1)}  # operator: places of its operands


def pad_rows(joint: Joint) -> None:
    """Give aligned rows to results of large products, and to elementwise operands of such."""
    for node in list(joint.graph.nodes):
        places = _PRODUCTS.get(getattr(node.target, "name", ""))
        if places is None or not _is_large(node, places):
            continue
        if _is_plain(node):
            _pad(joint, node)
        for place in places:
            source = _source(node.args[place])
            if source.op == "call_function" and _is_pointwise(source.target):
                _pad(joint, source)


def _is_large(node: Node, places: tuple[int, ...]) -> bool:
    values = [node.meta["val"], *(node.args[p].meta["val"] for p in places)]
    if dtype_name(values[0].dtype) not in HALF or backend_class(str(values[0].device)) is None:
        return False
    if values[0].device.type == "cpu" or any(type(s) is not int for v in values for s in v.shape):
        return False
    multiplications: int = math.prod(values[0].shape) * values[1].shape[-1]
    return multiplications >= matrix.WORTH


def _is_plain(node: Node) -> bool:
    """Whether it is lowered to one product of matrices (`lowering/matrix.py`)."""
    if node.target.name == "mm":
        return True
    bias = node.args[2] if len(node.args) > 2 else node.kwargs.get("bias")
    x, weight = (a.meta["val"] for a in node.args[:2])
    return bias is None and len(x.shape) > 1 and len(weight.shape) == 2 and x.is_contiguous()


def _source(node: Node) -> Node:
    """What a chain of views is a view of."""
    while getattr(node.target, "name", "") in (*SAME_ROWS, *TURNED):
        node = node.args[0]
    return node


def _is_pointwise(target: Any) -> bool:
    rules = rules_of(target) if isinstance(target, Operator) else None
    return rules is not None and (rules.kind == "pointwise" or target.name == "_to_copy")


def _pad(joint: Joint, node: Node) -> None:
    """Lay a row-major tensor out with aligned rows, where all that sees its layout can follow."""
    old: FakeTensor = node.meta["val"]
    if not old.shape or old.shape[-1] % matrix.UNIT == 0 or not old.is_contiguous():
        return
    if dtype_name(old.dtype) not in HALF or not can_follow(joint, node, old.shape[-1]):
        return
    row = -(-old.shape[-1] // _ROW) * _ROW
    strides, step = [1], row
    for size in reversed(old.shape[1:-1]):
        strides.append(step)
        step *= size
    strides += [step] * (len(old.shape) > 1)
    node.meta["zero_gaps"] = True
    lay_out(joint, node, strides[::-1])
