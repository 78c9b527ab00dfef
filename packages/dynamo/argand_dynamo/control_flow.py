"""`cond`: a branch whose condition is a tensor. Compiled, both branches run, and `where` takes the elements of one.

So every backend, export and derivatives of every order have it without a node of its own. It asks that a branch which is not
taken does nothing: branches that draw random numbers or may fail by what elements are, make a node that runs one of them, which export
refuses; those that write are left to plain Python.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from argand_autograd.graph_ops import set_grad_mode
from argand_c10 import Operator, Tensor
from argand_dynamo.builtins import FUNCTION_HANDLERS
from argand_dynamo.control_graphs import build, check_alike, fill, flatten, get_graph, own_graph
from argand_dynamo.control_nodes import run_branch, run_loop
from argand_dynamo.exceptions import BreakTrace, Raised, break_trace
from argand_dynamo.variables.base import Variable, reachable
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.dicts import DictVariable
from argand_dynamo.variables.functions import CellVariable
from argand_dynamo.variables.sequences import ListVariable, SequenceVariable, TupleVariable
from argand_dynamo.variables.tensor import TensorVariable
from argand_fx import Node
from argand_fx.effects import checks_values, draws_random
from argand_fx.shapes import FakeTensor

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["cond", "run_function"]


def cond(
    pred: bool | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    Compiled and exported, a graph computes both and chooses between their results. Their tensors have to be alike in shape
    and dtype, and the branches must not write to what they are given: where they do, the graph ends there. Of branches that draw
    random numbers, or call what may fail by the elements (indices, factorizations, division of integers), compiled programs run one, and
    programs that are exported cannot have them.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn: one branch.
        false_fn: the other, with results of the same structure.
        operands: the branches' arguments.

    Raises:
        RuntimeError: the arguments are not those.
    """
    if not isinstance(pred, bool | Tensor) or (isinstance(pred, Tensor) and pred.numel() != 1):
        got = f"shape {list(pred.shape)}" if isinstance(pred, Tensor) else type(pred).__name__
        raise RuntimeError(f"cond: got pred of {got}, expected a bool or a tensor of one element")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("cond: got branches that cannot be called, expected functions")
    if not isinstance(operands, tuple | list):
        raise RuntimeError(
            f"cond: got operands of type {type(operands).__name__}, expected a tuple or list"
        )
    return true_fn(*operands) if pred else false_fn(*operands)


_SIGNATURE = inspect.signature(cond)


def _trace_cond(tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    try:
        bound = _SIGNATURE.bind(*args, **kwargs)
    except TypeError as error:
        raise break_trace("operator_error", f"cond: {error}", error) from None
    bound.arguments.setdefault("operands", TupleVariable([]))
    pred, true_fn, false_fn, given = map(tx.realize, bound.arguments.values())
    if not isinstance(given, SequenceVariable):
        raise break_trace("operator_error", "cond: operands that are no tuple or list")
    operands = [tx.realize(operand) for operand in given.items]
    if isinstance(pred, Constant) and isinstance(pred.value, bool):
        return tx.realize((true_fn if pred.value else false_fn).call(tx, operands, {}))
    if not isinstance(pred, TensorVariable) or pred.fake.numel() != 1:
        raise break_trace("operator_error", f"cond: {pred.describe()} as pred")
    holds = tx.operate("reshape", pred.fake, [])
    holds = tx.operate("ne", holds, 0)
    if not tx.exporting:
        chosen = _trace_node(tx, (true_fn, false_fn), operands, holds)
        if chosen is not None:
            return chosen
    results = [
        _trace_branch(tx, function, operands, holds, taken)
        for function, taken in ((true_fn, True), (false_fn, False))
    ]
    return _choose(tx, holds, *results)


def _trace_node(
    tx: Tracer, functions: Sequence[Variable], operands: list[Variable], holds: FakeTensor
) -> Variable | None:
    """One node for branches of which one alone may run, None for others."""
    structures, results, builders, both = [], [], [], True
    for function in functions:
        leaves: list[TensorVariable] = []
        with own_graph(tx) as builder:
            structures.append(
                flatten(tx, run_function(tx, function, operands, free=True)[0], leaves)
            )
        results.append([leaf.fake for leaf in leaves])
        builders.append(builder)
        try:
            assert builder.graph is not None
            _check(_calls(builder.graph.nodes))
        except BreakTrace:
            both = False
    if both:
        return None
    if structures[0] is None or structures[0] != structures[1]:
        raise break_trace("branches", "results of other structures")
    for a, b in zip(*results, strict=True):
        check_alike(a, b)
    graphs = [get_graph(tx, *pair, "branch") for pair in zip(builders, results, strict=True)]
    args = [holds, *(node for node, _ in graphs), *(reads for _, reads in graphs)]
    flows = [a.requires_grad or b.requires_grad for a, b in zip(*results, strict=True)]
    return build(structures[0], iter(fill(tx, run_branch, args, results[0], flows)))


def _calls(nodes: Iterable[Node]) -> list[Node]:
    return [n for n in nodes if n.op not in ("placeholder", "get_attr", "output")]


def _trace_branch(
    tx: Tracer, function: Variable, operands: list[Variable], holds: FakeTensor, taken: bool
) -> Variable:
    """The branch's results, with gradients that reach what it reads only if it is taken.

    Zeros that flow back into a branch can leave it as NaN (through 1 / x at 0, say). So it reads its tensors through a `where`
    whose other side carries no gradient; which tensors it reads is known once it has been traced.
    """
    found, read = run_function(tx, function, operands)
    if not tx.builder.grad_enabled:
        return found
    variables = []
    for fake in read:
        if fake.requires_grad:
            if fake not in tx.tensors:
                raise break_trace("branches", "a branch reads a tensor that only the graph has")
            variables.append(tx.tensors[fake])
    if not variables:
        return found
    fakes = [variable.fake for variable in variables]
    try:
        for variable in variables:
            fixed = tx.operate("detach", variable.fake)
            sides = (variable.fake, fixed) if taken else (fixed, variable.fake)
            variable.fake = tx.operate("where", holds, *sides)
            tx.tensors[variable.fake] = variable
        return run_function(tx, function, operands)[0]
    finally:
        for variable, fake in zip(variables, fakes, strict=True):
            tx.tensors.pop(variable.fake)
            variable.fake, tx.tensors[fake] = fake, variable


def run_function(
    tx: Tracer, function: Variable, operands: list[Variable], free: bool = False
) -> tuple[Variable, list[FakeTensor]]:
    """Trace a branch into the graph; returns its results, and the tensors that it reads. `free`: it runs where it is taken only."""
    graph = tx.builder.graph
    assert graph is not None
    before = set(graph.nodes)
    stored = [value for _, value in tx.global_stores.values()]
    outside = reachable([function, *operands, *stored])
    contents = [(v, v.content) for v in outside.values() if isinstance(v, CellVariable)]
    state = (tx.builder.grad_enabled, dict(tx.global_stores))
    kept, tx.unchangeable = tx.unchangeable, {**(tx.unchangeable or {}), **outside}
    if not free:
        tx.autocast.clear()  # what a branch casts is the branch's
    try:
        found = tx.realize(function.call(tx, list(operands), {}))
        _realize(tx, found)
    except Raised as raised:
        raise break_trace("branches", f"a branch raises {raised.variable.cls.__name__}") from raised
    finally:
        tx.unchangeable = kept
        if not free:
            tx.autocast.clear()
    changed = any(v.content is not content for v, content in contents)
    if changed or state != (tx.builder.grad_enabled, tx.global_stores):
        raise break_trace("branches", "a branch changes variables or modes that outlive it")
    return found, _check(_calls(n for n in graph.nodes if n not in before), free)


def _check(nodes: list[Node], free: bool = False) -> list[FakeTensor]:
    """That a branch does nothing but compute; returns the tensors that it reads. `free`: it may fail, or draw random numbers."""
    own = set(nodes)
    entering = dict.fromkeys(m for n in nodes for m in n.all_input_nodes if m not in own)
    values = [m.meta.get("val") for m in entering]
    read = [value for value in values if isinstance(value, FakeTensor)]
    memory = {id(fake.storage) for fake in read}
    for node in nodes:
        op: Any = node.target
        if not isinstance(op, Operator):
            if (
                op is not set_grad_mode
                and not (free and op in (run_loop, run_branch))
                and getattr(operator, getattr(op, "__name__", ""), 0) is not op
            ):
                raise break_trace("branches", f"a branch calls {getattr(op, '__name__', op)}")
            continue
        if not free and draws_random(op):
            raise break_trace("branches", f"a branch draws random numbers by {op.name}")
        value = node.meta.get("val")
        whole = isinstance(value, FakeTensor) and not (
            value.dtype.is_floating_point or value.dtype.is_complex
        )
        if not free and checks_values(op, whole):
            raise break_trace("branches", f"{op.name} may fail in a branch that is not taken")
        writes = any("!" in schema for schema in op.schemas)
        inputs = [m.meta.get("val") for m in node.all_input_nodes]
        if writes and any(id(x.storage) in memory for x in inputs if isinstance(x, FakeTensor)):
            raise break_trace("branches", f"a branch writes to what it is given, by {op.name}")
    return read


def _realize(tx: Tracer, found: Variable) -> None:
    """Look at lazy results while the branch's tensors stand."""
    if isinstance(found, SequenceVariable):
        found.items[:] = found.realized(tx)
        for item in found.items:
            _realize(tx, item)
    elif isinstance(found, DictVariable):
        found.entries.update({k: (a, tx.realize(b)) for k, (a, b) in found.entries.items()})
        for _, item in found.entries.values():
            _realize(tx, item)


def _choose(tx: Tracer, holds: FakeTensor, a: Variable, b: Variable) -> Variable:
    """The results of one of the branches."""
    if isinstance(a, TensorVariable) and isinstance(b, TensorVariable):
        x, y = a.fake, b.fake
        if (x.dtype, x.device) != (y.dtype, y.device) or tuple(x.shape) != tuple(y.shape):
            raise break_trace(
                "branches", f"{x.dtype} {list(x.shape)} beside {y.dtype} {list(y.shape)}"
            )
        return tx.from_raw(tx.operate("where", holds, x, y))
    if a.python_type() is b.python_type():
        if isinstance(a, SequenceVariable) and isinstance(b, SequenceVariable):
            if len(a.items) == len(b.items):
                pairs = zip(a.items, b.items, strict=True)
                items = [_choose(tx, holds, *pair) for pair in pairs]
                kind = a.python_type()
                return ListVariable(items) if kind is list else TupleVariable(items, kind)
        elif isinstance(a, DictVariable) and isinstance(b, DictVariable):
            if list(a.entries) == list(b.entries):
                entries = {
                    key: (name, _choose(tx, holds, value, b.entries[key][1]))
                    for key, (name, value) in a.entries.items()
                }
                return DictVariable(entries, a.cls)
        elif isinstance(a, Constant) and isinstance(b, Constant) and a.value == b.value:
            return a
    raise break_trace("branches", f"{a.describe()} beside {b.describe()}")


FUNCTION_HANDLERS[cond] = _trace_cond
