"""Other strides for what a node of a joint graph makes: its views are made again, and copies that only changed the layout go away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from argand_c10 import Operator
from argand_fx import Node
from argand_fx.shapes import FakeTensor

if TYPE_CHECKING:
    from argand_aot.joint import Joint

SAME_ROWS = ("view", "_unsafe_view")  # views that may keep rows whole
TURNED = ("transpose", "t", "permute")


def is_view(node: Node) -> bool:
    return isinstance(node.target, Operator) and node.target.is_view


def can_follow(joint: Joint, node: Node, columns: int | None = None) -> bool:
    """Whether no result of the graph depends on the layout, and every view can be made of another one: those that only order the
    dimensions anew, and those that keep rows of so many columns."""
    if node in joint.result_set:
        return False
    for user in filter(is_view, node.users):
        name = user.target.name
        if name in TURNED and not any(map(is_view, user.users)):
            if user in joint.result_set:
                return False
        elif name not in SAME_ROWS or user.meta["val"].shape[-1:] != (columns,):
            return False
        elif not can_follow(joint, user, columns):
            return False
    return True


def lay_out(joint: Joint, node: Node, strides: Sequence[int]) -> FakeTensor:
    """Give what a node makes other strides; its new value."""
    old: FakeTensor = node.meta["val"]
    made = FakeTensor(
        old.shape, strides, 0, old.dtype, old.device, node=node, builder=joint.builder
    )
    node.meta["val"] = made
    rebuild_views(joint, node)
    return made


def rebuild_views(joint: Joint, node: Node) -> None:
    """Views again, with the strides that they now have."""
    builder = joint.builder
    for user in filter(is_view, list(node.users)):
        builder.location, builder.stack = user.meta.get("location"), user.meta.get("stack")
        values = [a.meta["val"] if isinstance(a, Node) else a for a in user.args]
        with joint.graph.inserting_before(user):
            made = builder.call(user.target, values, user.kwargs)
        if "zero_gaps" in node.meta and user.target.name in SAME_ROWS:
            made.node.meta["zero_gaps"] = True
        joint.replace(user, made.node)
        _drop_copies(joint, made.node)
        rebuild_views(joint, made.node)


def _drop_copies(joint: Joint, node: Node) -> None:
    """Let the tensor stand for copies of it that have its layout."""
    strides = node.meta["val"].stride()
    for user in list(node.users):
        if getattr(user.target, "name", "") == "clone" and user not in joint.result_set:
            if user.meta["val"].stride() == strides:
                joint.replace(user, node)
