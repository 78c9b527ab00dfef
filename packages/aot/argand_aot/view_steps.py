"""Replaying view operators on functional values, and putting a changed view back into what it is a view of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import argand_c10 as c10
from argand_aot.emitter import same_strides
from argand_aot.values import Geometry, UnsupportedGraph, ViewStep
from argand_c10 import Operator
from argand_c10.rules import Rules, rules_of
from argand_fx.schema import schema_of

if TYPE_CHECKING:
    from argand_aot.functionalize import Functionalizer

__all__ = ["apply", "detaches", "geometry", "put"]


def geometry(op: Operator, rules: Rules, bound: Sequence[Any]) -> Geometry:
    """What a view operator's result looks like in eager execution."""
    source = bound[0]
    assert rules.shape is not None
    schema = schema_of(op)
    n = schema.positional
    keywords = {a.name: x for a, x in zip(schema.arguments[n:], bound[n:], strict=True)}
    found = rules.shape(*bound[:n], **keywords)
    if hasattr(found, "strides"):
        return Geometry(
            tuple(found.sizes), tuple(found.strides), found.offset, source.dtype, source.device
        )
    dtype = rules.dtype(*bound[:n], **keywords) if rules.dtype is not None else source.dtype
    strides, offset = tuple(source.strides), source.offset
    if op.name == "view_as_real":
        strides, offset = (*(2 * s for s in strides), 1), 2 * offset
    elif op.name == "view_as_complex":
        strides, offset = tuple(s // 2 for s in strides[:-1]), offset // 2
    elif dtype.itemsize != source.dtype.itemsize:  # view.dtype of a tensor whose last stride is 1
        have, want = source.dtype.itemsize, dtype.itemsize
        strides, offset = (
            tuple(s * have // want for s in strides[:-1]) + strides[-1:],
            offset * have // want,
        )
    return Geometry(tuple(found), strides, offset, dtype, source.device)


def apply(
    f: Functionalizer, step: ViewStep, content: Any, source: Geometry, initial: Any = None
) -> Any:
    """The view's functional value.

    Args:
        content: the functional value of what it is a view of.
        source: how that is laid out in eager execution.
        initial: the functional value that lies in memory as in eager execution, if there is one.
    """
    emit, name = f.emitter, step.op.name
    if name in ("alias", "_tied", "_gradient_in_format") or (name == "detach" and not f.stops):
        return content
    if name == "_select_at":
        return emit.named("index", content, _place(f, content, step))
    if name == "view":
        return emit.named("reshape", content, list(step.result.shape))
    if name == "as_strided":
        size, stride, _ = step.args
        offset = step.result.offset
        if content is not initial:  # a copy begins where it is known to
            _check_within(source, step.result)
            content = emit.laid_out(emit.named("clone", content, memory_format=0), source)
        elif not same_strides(content.shape, content.stride(), source.strides):
            raise UnsupportedGraph("as_strided: got an input laid out otherwise than traced")
        start = offset - source.offset + content.storage_offset()
        return emit.named("as_strided", content, list(size), list(stride), start)
    if name in ("view_as_complex", "view.dtype") and not content.is_contiguous():
        content = emit.named("clone", content, memory_format=0)
    return emit.call(step.op, [content, *step.args])


def _check_within(source: Geometry, view: Geometry) -> None:
    """Elements outside of the source are not part of its functional value."""
    last = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
    end = source.offset + sum(
        (n - 1) * s for n, s in zip(source.shape, source.strides, strict=True)
    )
    if not (view.offset >= source.offset and last <= end):
        raise UnsupportedGraph(
            "as_strided: got a view of memory outside of the tensor that the compiled code got or made",
            "give as_strided a view of the tensor's own elements",
        )


def put(
    f: Functionalizer, content: Any, source: Geometry, steps: tuple[ViewStep, ...], new: Any
) -> Any:
    """`content` with the elements that `steps` select replaced by `new`; the functional inverse of writing to a view."""
    if not steps:
        return new
    step = steps[0]
    if len(steps) > 1:
        inner = apply(f, step, content, source)
        new = put(f, inner, step.result, steps[1:], new)
    if step.op.name == "as_strided":
        return _put_strided(f, content, source, step, new)
    inverse = _INVERSES.get(step.op.name)
    if inverse is None:
        raise UnsupportedGraph(
            f"{step.op.name}: got an in-place change of such a view, expected a view that can be put back",
            "change the tensor that it is a view of",
        )
    return inverse(f, content, step, new)


def _reshaped(f: Functionalizer, content: Any, step: ViewStep, new: Any) -> Any:
    return f.emitter.named("reshape", new, list(content.shape))


def _permuted(f: Functionalizer, content: Any, step: ViewStep, new: Any) -> Any:
    dims = [d % len(content.shape) for d in step.args[0]]
    inverse = [dims.index(i) for i in range(len(dims))]
    return f.emitter.named("permute", new, inverse)


def _expanded(f: Functionalizer, content: Any, step: ViewStep, new: Any) -> Any:
    if len(content.shape) > len(new.shape) or any(
        a != b for a, b in zip(reversed(content.shape), reversed(new.shape), strict=False)
    ):
        raise UnsupportedGraph(
            "expand: got an in-place change of an expanded view, whose elements share memory",
            "clone it first",
        )
    return f.emitter.named("reshape", new, list(content.shape))


def _where_placed(f: Functionalizer, content: Any, new: Any, place: Any) -> Any:
    """`place(t)` is zeros of the whole's shape with `t` where the view is."""
    emit = f.emitter
    ones = f.ops.new_ones(_wrap(new), list(new.shape), dtype=c10.bool)
    mask = place(f.read(ones))
    return emit.named("where", mask, place(new), content)


def _wrap(tensor: Any) -> Any:
    from argand_aot.values import fresh_value

    return fresh_value(tensor)


def _selected(f: Functionalizer, content: Any, step: ViewStep, new: Any) -> Any:
    dim, index = step.args
    if content.shape[dim] == 1:
        return f.emitter.named("reshape", new, list(content.shape))
    shape = list(content.shape)
    return _where_placed(
        f, content, new, lambda t: f.emitter.named("select_backward", t, shape, dim, index)
    )


def _place(f: Functionalizer, content: Any, step: ViewStep) -> list[Any]:
    """The indices by which `index` reads what `_select_at` shows."""
    dim, index = step.args
    return [None] * (dim % len(content.shape)) + [f.read(index)]


def _selected_at(f: Functionalizer, content: Any, step: ViewStep, new: Any) -> Any:
    given = [content, _place(f, content, step), new, False]
    return f.emitter.unexpanded(
        "index_put", given, list(content.shape), content.dtype, content.device
    )


def _sliced(f: Functionalizer, content: Any, step: ViewStep, new: Any) -> Any:
    dim, start, end, stride = step.args
    if content.shape[dim] == new.shape[dim]:
        return new
    shape = list(content.shape)
    return _where_placed(
        f,
        content,
        new,
        lambda t: f.emitter.named("slice_backward", t, shape, dim, start, end, stride),
    )


def _diagonal(f: Functionalizer, content: Any, step: ViewStep, new: Any) -> Any:
    shape = list(content.shape)
    return _where_placed(
        f, content, new, lambda t: f.emitter.named("diagonal_backward", t, shape, *step.args)
    )


def _unfolded(f: Functionalizer, content: Any, step: ViewStep, new: Any) -> Any:
    dim, size, stride = step.args
    if size > stride:
        raise UnsupportedGraph(
            "unfold: got an in-place change of windows that overlap", "clone them first"
        )
    emit, shape = f.emitter, list(content.shape)
    ones = f.read(f.ops.new_ones(_wrap(new), list(new.shape), dtype=c10.float32))
    covered = emit.named("gt", emit.named("unfold_backward", ones, shape, dim, size, stride), 0)
    placed = emit.named("unfold_backward", new, shape, dim, size, stride)
    return emit.named("where", covered, placed, content)


def _put_strided(
    f: Functionalizer, content: Any, source: Geometry, step: ViewStep, new: Any
) -> Any:
    _check_within(source, step.result)
    emit, view = f.emitter, step.result

    def place(t: Any) -> Any:
        return emit.named(
            "as_strided_backward", t, list(source.shape), list(source.strides), source.offset,
            list(view.shape), list(view.strides), view.offset,
        )  # fmt: skip

    ones = f.read(f.ops.new_ones(_wrap(new), list(new.shape), dtype=c10.float32))
    return emit.named("where", emit.named("gt", place(ones), 0), place(new), content)


_INVERSES: dict[str, Callable[..., Any]] = {
    "alias": lambda f, content, step, new: new,
    "_tied": lambda f, content, step, new: new,
    "_gradient_in_format": lambda f, content, step, new: new,
    "detach": lambda f, content, step, new: new,
    "view": _reshaped,
    "squeeze": _reshaped,
    "squeeze.dims": _reshaped,
    "unsqueeze": _reshaped,
    "expand": _expanded,
    "permute": _permuted,
    "transpose": lambda f, content, step, new: f.emitter.named("transpose", new, *step.args),
    "select": _selected,
    "_select_at": _selected_at,
    "slice": _sliced,
    "diagonal": _diagonal,
    "unfold": _unfolded,
    "view_as_real": lambda f, content, step, new: f.emitter.named(
        "view_as_complex", f.emitter.named("clone", new, memory_format=0)
    ),
    "view_as_complex": lambda f, content, step, new: f.emitter.named("view_as_real", new),
    "view.dtype": lambda f, content, step, new: f.emitter.call(
        step.op, [f.emitter.named("clone", new, memory_format=0), content.dtype]
    ),
}


def detaches(op: Operator) -> bool:
    """Whether a view operator's result has the memory of its source, but is no view of it where histories are concerned."""
    rules = rules_of(op)
    return rules is not None and not rules.differentiable


def derivative(step: ViewStep) -> Any:
    """The gradient rule of a step's operator, or None."""
    rules = rules_of(step.op)
    return None if rules is None else rules.derivative
