"""Cross entropy over many classes keeps its scores and two numbers a row, and no log-probabilities.

`nll_loss(log_softmax(x), target)` needs one log-probability a row, which is picked from x; its gradient is elementwise in x once
the row's maximum m and l = log(sum(exp(x - m))) are known. Every value is rounded where the operators round theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_c10 import Operator, float32
from argand_fx import Node
from argand_fx.shapes import FakeTensor
from argand_inductor.codegen.backend import backend_class
from argand_inductor.loop_ir import HALF
from argand_inductor.lowering.tensors import dtype_name

if TYPE_CHECKING:
    from argand_aot.joint import Joint

_MEAN, _NONE = 1, 0  # values of `reduction`


def fuse_cross_entropy(joint: Joint) -> None:
    """Rewrite each log-softmax of rows too long for a kernel that only losses of class numbers and their gradients read."""
    for node in list(joint.graph.nodes):
        if _is(node, "log_softmax"):
            users = _users_of(joint, node)
            if users is not None:
                _Rewrite(joint, node).run(*users)


def _is(node: Node, name: str) -> bool:
    return isinstance(node.target, Operator) and node.target.name == name


def _argument(node: Node, place: int, name: str, default: Any = None) -> Any:
    return node.args[place] if place < len(node.args) else node.kwargs.get(name, default)


def _users_of(joint: Joint, softmax: Node) -> tuple[list[Node], list[Node]] | None:
    """(losses, gradients with respect to the scores) of a log-softmax that can be rewritten."""
    scores, made = softmax.args[0].meta["val"], softmax.meta["val"]
    target = backend_class(str(made.device))
    if target is None or not target.rows_fuse or len(made.shape) != 2 or made.dtype != scores.dtype:
        return None
    classes = made.shape[1]
    if type(classes) is not int or classes <= target.longest_row or softmax.args[1] not in (1, -1):
        return None
    if not dtype_name(made.dtype).startswith(("float", "bfloat")) or softmax in joint.result_set:
        return None
    losses = [n for n in softmax.users if _is(n, "nll_loss_forward") and n.args[0] is softmax]
    inner = [n for n in softmax.users if _is(n, "nll_loss_backward") and n.args[1] is softmax]
    outer = [n for n in softmax.users if _is(n, "log_softmax_backward") and n.args[1] is softmax]
    if not losses or len(losses) + len(inner) + len(outer) != len(softmax.users):
        return None
    plain = all(_argument(n, 2, "weight") is None for n in losses)
    plain &= all(_argument(n, 3, "weight") is None for n in inner)
    paired = all(n.args[0] in inner and n.args[3] == made.dtype for n in outer)
    paired &= all(len(n.users) == 1 and next(iter(n.users)) in outer for n in inner)
    return (losses, outer) if plain and paired else None


class _Rewrite:
    """The rewriting of one log-softmax."""

    def __init__(self, joint: Joint, softmax: Node) -> None:
        self.joint, self.softmax = joint, softmax
        self.ops = joint.builder.ops
        self.scores: FakeTensor = softmax.args[0].meta["val"]
        self.dtype = softmax.meta["val"].dtype
        self.narrow = dtype_name(self.dtype) in HALF

    def run(self, losses: list[Node], gradients: list[Node]) -> None:
        self.locate(self.softmax)
        with self.joint.graph.inserting_before(self.softmax):
            ops, x = self.ops, self.widened(self.scores)
            self.largest = ops.amax(x, [1], True)
            total = ops.sum(ops.exp(ops.sub(x, self.largest)), [1], True)
            self.log_total = ops.log(total)
        for node in losses:
            self.locate(node)
            with self.joint.graph.inserting_before(node):
                self.loss(node)
        for node in gradients:
            self.locate(node)
            with self.joint.graph.inserting_before(node):
                before = set(self.joint.graph.nodes)
                made = self.gradient(node)
                for n in set(self.joint.graph.nodes) - before:
                    n.meta["recompute"] = True
                self.replace(node, made)

    def replace(self, old: Node, made: FakeTensor) -> None:
        assert made.node is not None
        self.joint.replace(old, made.node)

    def locate(self, node: Node) -> None:
        builder = self.joint.builder
        builder.location, builder.stack = node.meta.get("location"), node.meta.get("stack")

    def widened(self, x: FakeTensor) -> FakeTensor:
        """In the dtype of sums."""
        wide: FakeTensor = self.ops._to_copy(x, dtype=float32) if self.narrow else x
        return wide

    def narrowed(self, x: FakeTensor) -> FakeTensor:
        """Rounded to the operators' dtype."""
        made: FakeTensor = self.ops._to_copy(x, dtype=self.dtype) if self.narrow else x
        return made

    def log_probability(self, x: FakeTensor) -> FakeTensor:
        """Of scores with a column for each class, or one."""
        ops = self.ops
        return self.narrowed(ops.sub(ops.sub(self.widened(x), self.largest), self.log_total))

    def loss(self, node: Node) -> None:
        """The losses of the rows; the operator itself picks the scores, and reports what is no class."""
        ops, target = self.ops, node.args[1].meta["val"]
        reduction, ignored = node.args[3], node.args[4]
        rows = self.scores.shape[0]
        picked, _ = ops.nll_loss_forward(self.scores, target, None, _NONE, ignored)
        logs = self.log_probability(ops.view(ops.neg(picked), [rows, 1]))
        skipped = ops.eq(target, ignored)
        each = ops.masked_fill(ops.neg(ops.view(logs, [rows])), skipped, 0.0)
        count = ops.sum(self.widened(ops._to_copy(ops.logical_not(skipped), dtype=self.dtype)))
        loss = each
        if reduction != _NONE:
            total = ops.sum(self.widened(each))
            loss = self.narrowed(ops.div(total, count) if reduction == _MEAN else total)
        results = {0: loss, 1: self.narrowed(count)}
        for user in list(node.users):
            self.replace(user, results[user.args[1]])

    def gradient(self, node: Node) -> FakeTensor:
        """one-hot * g - softmax * g, g being each row's gradient with respect to its log-probability."""
        ops, inner = self.ops, node.args[0]
        grad, target = inner.args[0].meta["val"], inner.args[2].meta["val"]
        reduction, ignored, counted = inner.args[4], inner.args[5], inner.args[6].meta["val"]
        rows, classes = self.scores.shape
        g = ops.neg(self.widened(grad))
        if reduction == _MEAN:
            g = ops.div(g, self.widened(counted))
        g = ops.expand(self.narrowed(g), [rows])
        g = self.widened(ops.view(ops.masked_fill(g, ops.eq(target, ignored), 0.0), [rows, 1]))
        other = ops.ne(ops.arange(classes, device=self.scores.device), ops.view(target, [rows, 1]))
        chosen = ops.masked_fill(ops.expand(g, [rows, classes]), other, 0.0)
        softmax = ops.exp(self.widened(self.log_probability(self.scores)))
        return self.narrowed(ops.sub(chosen, ops.mul(softmax, g)))
