"""`backward` and `grad`: the engine's front doors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import argand_aten as aten
from argand_autograd import _C
from argand_autograd.batching import run_entries, runs_at_once
from argand_autograd.graph import GradientEdge
from argand_c10 import Tensor

__all__ = ["backward", "grad"]


class _Kept(threading.local):
    """How many functions inside of each other this thread runs over what one graph gave them."""

    depth = 0


_kept = _Kept()


def run_keeping_graphs(run: Callable[[int], Any], i: int) -> Any:
    """`run(i)`, in which `grad` frees nothing: the next run needs it."""
    _kept.depth += 1
    try:
        return run(i)
    finally:
        _kept.depth -= 1


def begin_history(t: Tensor) -> Tensor:
    """A new tensor without a history, as a leaf that requires grad."""
    return t.requires_grad_()


TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
Places: TypeAlias = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, Tensor | GradientEdge) else tuple(value)


def _recorded(place: Any) -> Any:
    """What the graph knows of a tensor: of a sparse one its values."""
    return place._values() if isinstance(place, Tensor) and place.is_sparse else place


def _gradients(given: Any, count: int, name: str) -> tuple[Tensor | None, ...]:
    if given is None:
        return (None,) * count
    gradients = _as_tuple(given)
    if len(gradients) != count:
        raise RuntimeError(
            f"{name}: got {len(gradients)} gradients for {count} outputs, expected one for each"
        )
    return gradients


def backward(
    tensors: Places,
    grad_tensors: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: TensorOrTensors | None = None,
    inputs: Places | None = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of the leaves they were made from.

    Args:
        tensors: what to differentiate, tensors or edges of the graph (`graph.get_gradient_edge`).
        grad_tensors: the gradient of each (its shape); None for tensors of one element.
        retain_graph: whether what the graph saved is kept for another backward. Default: `create_graph`.
        create_graph: whether the gradients are recorded themselves.
        grad_variables: an old name of `grad_tensors`.
        inputs: the tensors whose `.grad` to fill. Default: all leaves.

    Raises:
        RuntimeError: if a tensor has no history, a shape does not match, or the graph was already freed.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "backward: got both grad_tensors and grad_variables, expected grad_tensors alone"
            )
        grad_tensors = grad_variables
    outputs = _as_tuple(tensors)
    wanted = None if inputs is None else _as_tuple(inputs)
    if wanted is not None and not wanted:
        raise RuntimeError("inputs argument to backward() cannot be empty")
    _C._run_backward(
        outputs,
        _gradients(grad_tensors, len(outputs), "backward"),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        wanted,
        True,
    )


def grad(
    outputs: Places,
    inputs: Places,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The sum of gradients of `outputs` with respect to `inputs`; `.grad` stays as it is.

    Args:
        outputs: what to differentiate, tensors or edges of the graph (`graph.get_gradient_edge`).
        inputs: tensors that require grad, or edges, of the graph of `outputs`.
        grad_outputs: the gradient of each output (its shape); None for outputs of one element.
        retain_graph: whether what the graph saved is kept for another call. Default: `create_graph`.
        create_graph: whether the gradients are recorded themselves.
        only_inputs: accepted for compatibility; must be True.
        allow_unused: whether inputs that no output depends on give None instead of an error.
        is_grads_batched: whether `grad_outputs` have one dimension more in front; so have the results then.
        materialize_grads: whether unused inputs give zeros instead of None.

    Raises:
        RuntimeError: as `backward`, and for unused inputs unless allowed.
    """
    if not only_inputs:
        raise ValueError(
            "grad: got only_inputs=False, expected True; use backward() to accumulate into leaves"
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "grad: got allow_unused=False with materialize_grads=True, expected allow_unused to be "
            "True or not passed"
        )
    results, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("grad: got no inputs, expected at least one tensor")
    retain = (create_graph if retain_graph is None else retain_graph) or _kept.depth > 0
    given = _gradients(grad_outputs, len(results), "grad")
    if is_grads_batched:
        gradients = _batched(results, given, retain, create_graph, wanted)
    else:
        recorded = tuple(_recorded(x) for x in wanted)
        found = _C._run_backward(results, given, retain, create_graph, recorded, False) or ()
        gradients = tuple(
            g if g is None or x is known else x._gradient(g)
            for g, x, known in zip(found, wanted, recorded, strict=True)
        )
    if materialize_grads:
        if any(
            g is None and isinstance(x, GradientEdge)
            for g, x in zip(gradients, wanted, strict=True)
        ):
            raise RuntimeError(
                "grad: materialize_grads cannot be used when the given input is a GradientEdge that no output depends on"
            )
        return tuple(
            aten.zeros_like(x) if g is None else g for g, x in zip(gradients, wanted, strict=True)
        )
    if not allow_unused and any(g is None for g in gradients):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    return gradients


def _batched(
    outputs: tuple[Any, ...],
    gradients: tuple[Tensor | None, ...],
    retain_graph: bool,
    create_graph: bool,
    inputs: tuple[Any, ...],
) -> tuple[Tensor | None, ...]:
    """One run for all entries of the batch where that can be, else one per entry; results are stacked."""
    sizes = {g.shape[0] for g in gradients if g is not None}
    if len(sizes) != 1:
        raise RuntimeError(
            f"grad: got grad_outputs with batch sizes {sorted(sizes)}, expected one size; every "
            "gradient needs a batch dimension in front"
        )
    (size,) = sizes
    if size and runs_at_once([*gradients, *inputs]):

        def run(row: list[Any]) -> Any:
            found = _C._run_backward(outputs, tuple(row), retain_graph, create_graph, inputs, False)
            return found or ()

        return tuple(
            run_entries(run, list(gradients), [None if g is None else 0 for g in gradients], size)
        )
    rows = []
    for i in range(size):
        row = tuple(None if g is None else g[i] for g in gradients)
        keep = retain_graph or i + 1 < size
        rows.append(_C._run_backward(outputs, row, keep, create_graph, inputs, False) or ())
    return tuple(
        None if any(g is None for g in column) else aten.stack(list(column))
        for column in zip(*rows, strict=True)
    )
