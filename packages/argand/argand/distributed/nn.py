"""Collectives through which gradients flow. Every rank takes part in the backward, too."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import argand_aten as aten
from argand.import_paths import publish
from argand_autograd import no_grad
from argand_c10 import Tensor
from argand_c10 import bool as bool_
from argand_distributed import functional as _collectives
from argand_distributed.collectives import ReduceOp
from argand_distributed.world import ProcessGroup, get_group_rank, resolve

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

publish(__name__, {"functional": sys.modules[__name__]})


def _without_gradient(tensor: Tensor, joined: Tensor) -> Tensor:
    """The values of `tensor`; its gradient is zeros, which keeps this rank in the backward of `joined`."""
    return aten.where(aten.zeros_like(joined, dtype=bool_), joined, tensor.detach())


def _name(op: Any) -> str:
    return str(op.name)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """The ranks' tensors combined element by element.

    Args:
        tensor: of the same shape and dtype on all ranks; it stays as it is.
        op: SUM and AVG have gradients.
        group: the process group; None: the default one.
    """
    return _collectives.all_reduce(tensor, _name(op), group)


def reduce(
    tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """On the rank `dst` the ranks' tensors combined; elsewhere the rank's own values, without gradients."""
    pg = resolve(group)
    combined = _collectives.all_reduce(tensor, _name(op), pg)
    return combined if pg.rank() == get_group_rank(pg, dst) else _without_gradient(tensor, combined)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """The ranks' tensors, which have one shape."""
    whole = _collectives.all_gather_tensor(tensor.unsqueeze(0), 0, group)
    return tuple(whole.unbind(0))


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """The tensor of the rank `src`, of the same shape on all ranks; its gradient is the sum of the ranks'."""
    pg = resolve(group)
    return all_gather(tensor, pg)[get_group_rank(pg, src)]


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """On the rank `dst` the ranks' tensors, of one shape; elsewhere zeros."""
    pg = resolve(group)
    parts = all_gather(tensor, pg)
    if pg.rank() == get_group_rank(pg, dst):
        return parts
    return tuple(_without_gradient(aten.zeros_like(part), part) for part in parts)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """This rank's one of the tensors of the rank `src`, of which there is one a rank; all have one shape.

    Args:
        tensors: on every rank; those of other ranks than `src` give the shape alone.
        src: the rank whose tensors are handed out.
        group: the process group; None: the default one.
    """
    pg = resolve(group)
    return _collectives.all_to_all_single(aten.stack(list(tensors)), group=pg)[
        get_group_rank(pg, src)
    ]


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
) -> Tensor:
    """The ranks' tensors for this rank, combined; its values are written into `output`, gradients flow from the result."""
    stacked = aten.stack(list(input_list))
    return _written(output, _collectives.reduce_scatter_tensor(stacked, _name(op), 0, group)[0])


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
) -> tuple[Tensor, ...]:
    """Tensor i goes to rank i; what comes from the ranks, of the shapes of `output_tensor_list`, into which the values are written."""
    sizes = [t.numel() for t in output_tensor_list]
    flat = aten.cat([t.reshape(-1) for t in input_tensor_list])
    received = _collectives.all_to_all_single(
        flat, sizes, [t.numel() for t in input_tensor_list], group
    )
    parts = zip(output_tensor_list, received.split(sizes), strict=True)
    return tuple(_written(output, part.view(output.shape)) for output, part in parts)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Part i of `input` goes to rank i; what comes is written into `output`, gradients flow from the result."""
    return _written(
        output,
        _collectives.all_to_all_single(input, output_split_sizes, input_split_sizes, group),
    )


def _written(output: Tensor, result: Tensor) -> Tensor:
    with no_grad():
        output.copy_(result)
    return result
