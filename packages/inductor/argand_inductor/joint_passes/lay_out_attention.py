"""Attention with the layout that its kernels give results: as their operands lie, where positions are outside of heads."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from argand_fx import Node
from argand_inductor.codegen.backend import backend_class
from argand_inductor.joint_passes.layouts import can_follow, lay_out

if TYPE_CHECKING:
    from argand_aot.joint import Joint

# operator: for each result the operand that it is laid out like (`result_like` of the kernels)
_LIKE = {"attention": {0: 0}, "attention_backward": {0: 1, 1: 2, 2: 3}}


def lay_out_attention(joint: Joint) -> None:
    """Say where results lie as (batch, position, head, feature), so that joining the heads is no copy."""
    for node in list(joint.graph.nodes):
        likes = _LIKE.get(getattr(node.target, "name", ""))
        if likes is None:
            continue
        values = list(node.meta["val"])
        for user in list(node.users):
            if user.target is not operator.getitem or user.args[1] not in likes:
                continue
            strides = _strides(user, node.args[likes[user.args[1]]])
            if strides is not None and can_follow(joint, user):
                values[user.args[1]] = lay_out(joint, user, strides)
        node.meta["val"] = tuple(values)


def _strides(node: Node, like: Node) -> tuple[int, ...] | None:
    result, operand = node.meta["val"], like.meta["val"]
    target = backend_class(str(result.device))
    if target is None or not target.rows_fuse or not result.is_contiguous():
        return None
    sizes = (*result.shape, *operand.shape, *operand.stride())
    if any(type(s) is not int for s in sizes) or operand.stride()[1] >= operand.stride()[2]:
        return None
    _, heads, positions, features = result.shape
    return heads * positions * features, features, heads * features, 1
