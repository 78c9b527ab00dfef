"""Collectives as operators: functions of tensors that change nothing, which graphs hold, derive and compile.

The operators come from `registry/collectives.yaml`. Their kernels start the operation on a copy of the input; `collective_wait` gives the
complete result. Every rank must call them in the same order, so a compiled program's order of operators is its order of calls; compiled ranks
compare what they will call before they do.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import argand_c10 as c10
from argand_aten import cat, empty
from argand_autograd import Function, no_grad
from argand_c10 import Tensor, rules
from argand_distributed import collectives
from argand_distributed.agreement import compare_plans, parameters, write_plans
from argand_distributed.collectives import ReduceOp
from argand_distributed.work import Work
from argand_distributed.world import ProcessGroup, find_group, resolve

_pending: dict[int, Work] = {}  # by the address of the result


# ---- kernels -----------------------------------------------------------------------------------------------------------
def _started(result: Tensor, work: Work | None) -> Tensor:
    if work is not None and result.numel():
        _pending[result.data_ptr()] = work
    return result


def _op(name: str) -> Any:
    found = getattr(ReduceOp, name.upper(), None)
    if found is None:
        raise ValueError(
            f"collective: got reduce_op {name!r}, expected SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR"
        )
    return found


def _group_for(input: Tensor, group: str, plan: str, size: int | None = None) -> ProcessGroup:
    """The group of this name, when the ranks' programs have been found alike."""
    pg = find_group(group)
    if size is not None and pg.size() != size:
        raise ValueError(f"collective: got group_size {size}, expected {pg.size()} as in {pg}")
    if plan:
        compare_plans(pg, pg.backend_for(input, "collective"), plan)
    return pg


def _all_reduce(input: Tensor, reduce_op: str, group: str, plan: str = "") -> Tensor:
    result = input.clone().contiguous()
    pg = _group_for(input, group, plan)
    return _started(result, collectives.all_reduce(result, _op(reduce_op), pg, async_op=True))


def _broadcast(input: Tensor, src: int, group: str, plan: str = "") -> Tensor:
    result = input.clone().contiguous()
    pg = _group_for(input, group, plan)
    return _started(result, collectives.broadcast(result, group=pg, group_src=src, async_op=True))


def _result(input: Tensor, rows: int) -> Tensor:
    return empty([rows, *input.shape[1:]], dtype=input.dtype, device=input.device)


def _all_gather(input: Tensor, group_size: int, group: str, plan: str = "") -> Tensor:
    pg = _group_for(input, group, plan, group_size)
    result = _result(input, input.shape[0] * group_size)
    work = collectives.all_gather_into_tensor(result, input.clone().contiguous(), pg, async_op=True)
    return _started(result, work)


def _reduce_scatter(
    input: Tensor, reduce_op: str, group_size: int, group: str, plan: str = ""
) -> Tensor:
    pg = _group_for(input, group, plan, group_size)
    result = _result(input, input.shape[0] // group_size)
    given = input.clone().contiguous()
    work = collectives.reduce_scatter_tensor(result, given, _op(reduce_op), pg, async_op=True)
    return _started(result, work)


def _all_to_all(
    input: Tensor,
    output_split_sizes: list[int],
    input_split_sizes: list[int],
    group: str,
    plan: str = "",
) -> Tensor:
    pg = _group_for(input, group, plan)
    result = _result(input, sum(output_split_sizes))
    given = input.clone().contiguous()
    splits = (list(output_split_sizes), list(input_split_sizes))
    work = collectives.all_to_all_single(result, given, *splits, pg, async_op=True)
    return _started(result, work)


def _derivable(reduce_op: str) -> None:
    if reduce_op.upper() not in ("SUM", "AVG"):
        raise RuntimeError(
            f"collective: got a gradient through reduce_op {reduce_op}, which has no derivative here; expected SUM or AVG"
        )


def _reduce_gradient(input: Tensor, reduce_op: str, group: str, plan: str = "") -> Tensor:
    _derivable(reduce_op)
    return _all_reduce(input, reduce_op, group, plan)


def _gather_gradient(
    input: Tensor, reduce_op: str, group_size: int, group: str, plan: str = ""
) -> Tensor:
    _derivable(reduce_op)
    average = reduce_op.upper() == "AVG"
    return _all_gather(input / group_size if average else input, group_size, group, plan)


def _wait(input: Tensor) -> Tensor:
    work = _pending.pop(input.data_ptr(), None)
    if work is not None:
        work.wait()
    return input.clone()


_KERNELS: dict[str, Callable[..., Tensor]] = {
    "collective_all_reduce": _all_reduce,
    "collective_broadcast": _broadcast,
    "collective_all_gather": _all_gather,
    "collective_reduce_scatter": _reduce_scatter,
    "collective_all_to_all": _all_to_all,
    "collective_reduce_gradient": _reduce_gradient,
    "collective_gather_gradient": _gather_gradient,
    "collective_wait": _wait,
}


# ---- registration --------------------------------------------------------------------------------------------------------
def _provide() -> dict[str, rules.Rules]:
    from argand_distributed.generated import tables

    return {
        name: rules.Rules(
            kind=kind,
            shape=tables.SHAPES.get(name),
            dtype=tables.DTYPES.get(name),
            derivative=tables.DERIVATIVES.get(name),
            differentiable=name not in tables.NOT_DIFFERENTIABLE,
            host_work=True,
        )
        for name, kind in tables.KINDS.items()
    }


def _meta(name: str) -> Callable[..., Tensor]:
    def kernel(input: Tensor, *arguments: Any) -> Tensor:
        from argand_distributed.generated import tables

        sizes = tables.SHAPES[name](input, *arguments)
        return empty(sizes, dtype=input.dtype, device=input.device)

    return kernel


class _Derived(Function):
    """An operator whose backward is the registry's derivative."""

    @staticmethod
    def forward(ctx: Any, name: str, *arguments: Any) -> Any:
        ctx.name, ctx.arguments = name, arguments[1:]
        return getattr(operators, name)(*arguments)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        found = rules.rules_of(ctx.name)
        assert found is not None
        assert found.derivative is not None
        needs = [True] + [False] * len(ctx.arguments)
        given = found.derivative(operators, grads, [None, *ctx.arguments], [None], needs)
        return (None, *given)


def _with_history(name: str, schema: str, differentiable: bool) -> Callable[..., Tensor]:
    if not differentiable:

        def constant(*arguments: Any) -> Any:
            with no_grad():
                return getattr(operators, name)(arguments[0].detach(), *arguments[1:])

        return constant
    n = len(parameters(schema))

    def derived(*arguments: Any) -> Any:
        without = [""] * (n - len(arguments))  # plans are all that calls leave out
        return _Derived.apply(name, *arguments, *without)

    return derived


def _register() -> SimpleNamespace:
    text = (
        importlib.resources.files("argand_distributed.generated").joinpath("index.json").read_text()
    )
    made = {}
    for entry in json.loads(text)["operators"]:
        name = entry["schema"].partition("(")[0]
        made[name] = c10.define(entry["schema"])
        for key in ("cpu", "cuda"):
            c10.register_kernel(name, key, _KERNELS[name])
        c10.register_kernel(name, "meta", _meta(name))
        history = _with_history(name, entry["schema"], entry["differentiable"])
        c10.register_kernel(name, "autograd", history)
    rules.register_rules(_provide)
    rules.register_graph_pass(write_plans)
    return SimpleNamespace(**made)


operators = _register()


# ---- functions -----------------------------------------------------------------------------------------------------------
def all_reduce(tensor: Tensor, op: str = "SUM", group: ProcessGroup | None = None) -> Tensor:
    """The ranks' tensors combined element by element; differentiable for SUM and AVG."""
    name = resolve(group).group_name
    reduced: Tensor = operators.collective_wait(
        operators.collective_all_reduce(tensor, op.upper(), name)
    )
    return reduced


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """The tensor of the group's rank `src`."""
    name = resolve(group).group_name
    received: Tensor = operators.collective_wait(operators.collective_broadcast(tensor, src, name))
    return received


def all_gather_tensor(
    tensor: Tensor, gather_dim: int = 0, group: ProcessGroup | None = None
) -> Tensor:
    """The ranks' tensors, one after the other along `gather_dim`."""
    pg = resolve(group)
    size = pg.size()
    whole: Tensor = operators.collective_wait(
        operators.collective_all_gather(tensor, size, pg.group_name)
    )
    if gather_dim == 0:
        return whole
    return cat(whole.chunk(size, 0), gather_dim)


def reduce_scatter_tensor(
    tensor: Tensor, op: str = "SUM", scatter_dim: int = 0, group: ProcessGroup | None = None
) -> Tensor:
    """This rank's part, along `scatter_dim`, of the ranks' tensors combined."""
    pg = resolve(group)
    size = pg.size()
    if scatter_dim != 0:
        tensor = cat(tensor.chunk(size, scatter_dim), 0)
    part: Tensor = operators.collective_wait(
        operators.collective_reduce_scatter(tensor, op.upper(), size, pg.group_name)
    )
    return part


def all_to_all_single(
    tensor: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Part i of the tensor goes to rank i; what comes from the ranks, one after the other. Without sizes, equal parts."""
    pg = resolve(group)
    size = pg.size()
    even = [tensor.shape[0] // size] * size
    received = list(output_split_sizes or even)
    sent = list(input_split_sizes or even)
    whole: Tensor = operators.collective_wait(
        operators.collective_all_to_all(tensor, received, sent, pg.group_name)
    )
    return whole
