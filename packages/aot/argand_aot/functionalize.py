"""Functionalization: a program with views and in-place changes becomes a graph of pure operators.

Every storage has a functional value for its root. A view is replayed from it; an in-place change of a view makes a new
value of the root, and the other views are replayed from that when they are next read. What happens is reported to a
`Tape`, so that derivation sees the history that eager execution would have made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import argand_c10 as c10
from argand_aot import view_steps
from argand_aot.emitter import Emitter
from argand_aot.tape import Tape, is_differentiable
from argand_aot.values import (
    Geometry,
    Storage,
    UnsupportedGraph,
    Value,
    ViewStep,
    fresh_value,
    geometry_of,
    kept_value,
    map_values,
)
from argand_c10 import Operator
from argand_c10.rules import Rules, rules_of
from argand_fx.schema import bind, overload, schema_of

__all__ = ["Functionalizer"]

_RANDOM_FILLS = {"uniform_", "normal_", "exponential_", "bernoulli_", "random_"}


def _multiply_each(ops: Any, tensors: Sequence[Value], other: Value) -> None:
    for x in tensors:
        ops.mul_(x, other if other.dtype == x.dtype else ops._to_copy(other, dtype=x.dtype))


# Operators that change every tensor of a list, as what they do to one after the other.
_EACH: dict[str, Callable[..., None]] = {"_foreach_mul_": _multiply_each}


class _Operators:
    """`ops.mul(a, b)` on values."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call, op = self._call, c10.find_operator(name)

        def operator(*args: Any, **kwargs: Any) -> Any:
            return call(op, args, kwargs)

        setattr(self, name, operator)
        return operator


class Functionalizer:
    """Runs operators on values, which may be views and change, by adding pure operators to a graph.

    Args:
        emitter: where the functional operators go.
        tape: what records the history of values; None where no gradients are wanted.
        decompositions: bodies that take the place of operators, by overload name.
        stops: whether `detach` stays in the graph where gradients stop, for a graph that is differentiated later.

    Attributes:
        recording: are gradients recorded at this place of the program.
        deriving: whether it runs derivatives, of values that were kept for them.
        ops: the operators as attributes.
    """

    def __init__(
        self,
        emitter: Emitter,
        tape: Tape | None = None,
        decompositions: Mapping[str, Callable[..., Any]] | None = None,
        stops: bool = False,
    ) -> None:
        self.emitter = emitter
        self.tape = tape
        self.stops = stops
        self.decompositions = decompositions or {}
        self.recording = tape is not None
        self.deriving = False
        self.ops = _Operators(self.call)

    # ---- contents ------------------------------------------------------------------------------

    def read(self, value: Value) -> Any:
        """The functional value that `value` has now.

        Raises:
            UnsupportedGraph: in a derivative, for what was changed in place since it was kept: eager execution refuses that.
        """
        if self.deriving and value.kept is not None and value.kept[0].version != value.kept[1]:
            raise UnsupportedGraph(
                "got a derivative that needs a tensor which was modified by an inplace operation",
                "clone the tensor before it is changed",
            )
        storage = value.storage
        found = storage.current.get(value.steps)
        if found is None:
            previous = Value(self._before(value), storage, value.steps[:-1])
            found = storage.current[value.steps] = self._view_of(
                value, self.read(previous), previous.geometry, storage.initial
            )
        return found

    def _view_of(self, view: Value, content: Any, source: Geometry, initial: Any = None) -> Any:
        """The last step of a view, from the functional value before it."""
        step = view.steps[-1]
        found = view_steps.apply(self, step, content, source, initial)
        if step.recorded or not self.stops or self.tape is None:
            return found
        return found if self.tape.edge_of(view.storage.root) is None else self._detached(found)

    def _before(self, value: Value) -> Geometry:
        return value.steps[-2].result if len(value.steps) > 1 else value.storage.root.geometry

    def write(self, value: Value, content: Any) -> None:
        """Give `value`, and so every view of its memory, new content (a fake tensor of its shape and dtype)."""
        storage = value.storage
        if content is self.read(
            value
        ):  # its own: nothing to put back, where that might not be possible
            storage.version += 1
            return
        root = self.read(storage.root)
        updated = view_steps.put(self, root, storage.root.geometry, value.steps, content)
        storage.version += 1
        storage.current = {(): updated, value.steps: content}

    def frozen(self, value: Value) -> Value:
        """A value that stays what `value` is now."""
        return kept_value(value, self.read(value))

    def kept(self, value: Value) -> Value:
        """What a derivative keeps of `value`: it stays what that is now, with the history that it has now."""
        frozen = self.frozen(value)
        return frozen if self.tape is None else self.tape.remember(value, frozen)

    # ---- operators -----------------------------------------------------------------------------

    def call(self, op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call an operator by its public name, as Python code does."""
        return self.run(*bind(op, args, kwargs))

    def run(self, op: Operator, bound: Sequence[Any], like: Any = None) -> Any:
        """Call an overload.

        Args:
            bound: the arguments in schema order; tensors are values.
            like: what the results look like in eager execution: a fake tensor, or a list or tuple of them.

        Returns:
            A value, or a list or tuple of values.
        """
        body = self.decompositions.get(op.name) or _EACH.get(op.name)
        if body is not None:
            return self._expand(op, body, bound)
        schema = schema_of(op)
        if schema.written:
            return self._write(op, bound)
        rules = rules_of(op)
        if rules is None:
            raise UnsupportedGraph(
                f"{op.name}: got an operator without a shape function",
                "give it one, or keep it out of compiled code",
            )
        if (
            rules.composite is not None
            and rules.derivative is None
            and not _has_kernel(rules, bound)
        ):
            return self._expand(op, rules.composite, bound)
        if rules.derivative_body is not None and self._records(rules, bound):
            return self._expand(op, rules.derivative_body, bound)
        if op.is_view:
            return self._view(op, rules, bound, like)
        if op.name == "native_batch_norm" and bound[5] and bound[3] is not None:
            return self._batch_norm(op, rules, bound, like)
        return self._plain(op, rules, bound, like)

    def _expand(self, op: Operator, body: Callable[..., Any], bound: Sequence[Any]) -> Any:
        schema = schema_of(op)
        keywords = {a.name: x for a, x in zip(schema.arguments, bound, strict=True) if a.kwonly}
        return body(self.ops, *bound[: schema.positional], **keywords)

    def _records(self, rules: Rules | None, bound: Sequence[Any]) -> list[bool] | None:
        """Per argument, whether the tape wants its gradient; None if it wants none."""
        if self.tape is None or not self.recording:
            return None
        return self.tape.needed(rules, bound)

    def _plain(self, op: Operator, rules: Rules, bound: Sequence[Any], like: Any) -> Any:
        needed = self._records(rules, bound)
        before = [map_values(x, self.kept) for x in bound] if needed else None
        made = self.emitter.call(op, [map_values(x, self.read) for x in bound])
        if made is not None and self._stopping(rules, bound):
            made = self._detached(made)
        results = self._wrap(made, like)
        if needed and made is not None and before is not None and self.tape is not None:
            self.tape.record(op, rules, bound, before, results, needed)
        return results

    def _stopping(self, rules: Rules | None, bound: Sequence[Any]) -> list[bool] | None:
        """Per argument, whether its gradient stops here and the graph has to say so; None if none does."""
        if self.recording or not self.stops or self.tape is None:
            return None
        return self.tape.needed(rules, bound)

    def _detached(self, made: Any) -> Any:
        if isinstance(made, (list, tuple)):
            return [self._detached(x) for x in made]
        return self.emitter.named("detach", made) if is_differentiable(made.dtype) else made

    def _wrap(self, results: Any, like: Any) -> Any:
        if results is None:
            return None
        if isinstance(results, (list, tuple)):
            likes = like if isinstance(like, (list, tuple)) else [None] * len(results)
            return (
                type(results)([self._wrap(r, g) for r, g in zip(results, likes, strict=True)])
                if type(results) in (list, tuple)
                else tuple(self._wrap(r, g) for r, g in zip(results, likes, strict=True))
            )
        return fresh_value(results, None if like is None else geometry_of(like))

    # ---- views ---------------------------------------------------------------------------------

    def _view(self, op: Operator, rules: Rules, bound: Sequence[Any], like: Any) -> Value:
        source: Value = bound[0]
        needed = self._records(rules, bound)
        geometry = geometry_of(like) if like is not None else view_steps.geometry(op, rules, bound)
        args = tuple(map_values(x, self.frozen) for x in bound[1:])
        step = ViewStep(op, args, geometry, self.recording)
        steps = (step,) if op.name == "as_strided" else (*source.steps, step)
        detached = view_steps.detaches(op)
        base = None if detached else source.base or source
        result = Value(geometry, source.storage, steps, base)
        if op.name != "as_strided":  # that is relative to the storage's root
            source.storage.current[steps] = self._view_of(
                result, self.read(source), source.geometry
            )
        self.read(result)  # refuses now what could not be replayed
        if detached or self.tape is None:
            return result
        if needed:
            self.tape.record(op, rules, bound, [self.kept(source), *args], result, needed)
        elif not self.recording or source.no_grad_view:
            result.no_grad_view = True
        return result

    # ---- in-place changes ------------------------------------------------------------------------

    def _write(self, op: Operator, bound: Sequence[Any]) -> Any:
        schema = schema_of(op)
        if schema.written != (0,) or schema.arguments[0].is_list:
            return self._write_out(op, bound)
        target: Value = bound[0]
        rules = rules_of(op)
        functional = _functional_form(op)
        if rules is None or rules.derivative is None and rules.kind == "composite":
            pure = None if functional is None else rules_of(functional)
            if pure is None or pure.derivative is None:
                if rules is not None and rules.composite is not None:
                    return self._expand(op, rules.composite, bound)
                if functional is None:
                    raise _no_functional_form(op)
                if pure is not None and pure.composite is not None:
                    result = self.run(functional, self._functional_arguments(functional, bound))
                    return self.ops.copy_(target, result)
            rules = pure or rules
        before = self._begin_write(op, rules, bound)
        content = self._changed(op, functional, bound)
        stopping = self._stopping(rules, bound)
        if stopping and not stopping[0]:  # the target keeps the history that it has
            content = self._detached(content)
        self.write(target, self._conformed(content, target))
        if before is not None and self.tape is not None:
            self.tape.rebase(target, before)
        return target

    def _functional_arguments(self, functional: Operator, bound: Sequence[Any]) -> list[Any]:
        return list(bound[: len(schema_of(functional).arguments)])

    def _begin_write(self, op: Operator, rules: Rules | None, bound: Sequence[Any]) -> Any:
        """What the tape keeps from before an in-place change; None if it records none."""
        if self.tape is None or not self.recording:
            return None
        return self.tape.begin_in_place(op, rules, bound, self.kept)

    def _changed(self, op: Operator, functional: Operator | None, bound: Sequence[Any]) -> Any:
        """The functional value of the first argument after the change."""
        target: Value = bound[0]
        name, emit = op.name, self.emitter
        given = [map_values(x, self.read) for x in bound]
        if name == "copy_":
            return given[1]
        if name in ("zero_", "fill_"):
            value = given[1] if name == "fill_" else 0
            if isinstance(bound[-1], Value) and name == "fill_":
                return value
            return self._constant(target, value)
        if name in _RANDOM_FILLS:
            pure = overload(name + "functional")
            return emit.new(pure, given)
        if functional is None:
            raise _no_functional_form(op)
        rules = rules_of(functional)
        if rules is not None and rules.composite is not None and rules.derivative is None:
            return emit.unexpanded(
                functional.name, given, target.shape, target.dtype, target.device
            )
        return emit.call(functional, self._functional_arguments(functional, given))

    def _constant(self, target: Value, number: Any) -> Any:
        op, bound = bind(
            overload("full"),
            (list(target.shape), number),
            {"dtype": target.dtype, "device": target.device},
        )
        return self.emitter.unexpanded(op.name, bound, target.shape, target.dtype, target.device)

    def _conformed(self, content: Any, target: Value) -> Any:
        """`content` in the dtype and shape of `target`, on its device."""
        if content.device != target.device:
            content = self.emitter.named(
                "_to_copy", content, dtype=target.dtype, device=target.device
            )
        elif content.dtype != target.dtype:
            content = self.emitter.named("_to_copy", content, dtype=target.dtype)
        if tuple(content.shape) != target.shape:
            content = self.emitter.named("expand", content, list(target.shape))
        return content

    def _write_out(self, op: Operator, bound: Sequence[Any]) -> Any:
        """`op(..., out=...)`: the functional form, copied."""
        schema = schema_of(op)
        first = len(schema.arguments) - len(schema.written)
        functional = _base_of_out(op)
        if functional is None or schema.written != tuple(range(first, len(schema.arguments))):
            raise _no_functional_form(op)
        targets = list(bound[first:])
        if self.tape is not None and self.recording:
            wanted = self.tape.needed(None, bound)
            if wanted:
                raise UnsupportedGraph(
                    f"{op.name}: got out= and an argument that requires grad, expected no gradients"
                )
        results = self.run(functional, list(bound[:first]))
        for target, result in zip(targets, results if len(targets) > 1 else [results], strict=True):
            if target.shape != result.shape:
                raise UnsupportedGraph(
                    f"{op.name}: got out= of shape {list(target.shape)} for a result of shape {list(result.shape)}",
                    "give out= the result's shape",
                )
            self.write(target, self._conformed(self.read(result), target))
        return tuple(targets) if len(targets) > 1 else targets[0]

    def _batch_norm(self, op: Operator, rules: Rules, bound: Sequence[Any], like: Any) -> Any:
        """In training it changes its running statistics, which its schema does not say."""
        running: list[Value] = [bound[3], bound[4]]
        needed = self._records(rules, bound)
        before = [map_values(x, self.kept) for x in bound]
        before[3] = before[4] = None  # not read by the gradient in training
        pure = overload("native_batch_norm_functional")
        made = self.emitter.call(pure, [map_values(x, self.read) for x in bound])
        *results, mean, var = self._detached(made) if self._stopping(rules, bound) else made
        values = self._wrap(tuple(results), like)
        for target, content in zip(running, (mean, var), strict=True):
            self.write(target, self._conformed(content, target))
        if needed and self.tape is not None:
            self.tape.record(op, rules, bound, before, values, needed)
        return values


def _has_kernel(rules: Rules, bound: Sequence[Any]) -> bool:
    """Whether a kernel takes the place of the operator's body on the device of its first tensor."""
    first = next((x for x in bound if isinstance(x, Value)), None)
    return first is not None and first.device.type in rules.kernels


def _functional_form(op: Operator) -> Operator | None:
    """`mul` of `mul_`, `max.dim` of `max_.dim`."""
    base, dot, rest = op.name.partition(".")
    if not base.endswith("_"):
        return None
    name = base[:-1] + dot + rest
    return overload(name) if name in _names() else None


def _base_of_out(op: Operator) -> Operator | None:
    base, _, rest = op.name.partition(".")
    if rest == "out":
        name = base
    elif rest.endswith("_out"):
        name = f"{base}.{rest[:-4]}"
    else:
        return None
    return overload(name) if name in _names() else None


_known: frozenset[str] = frozenset()


def _names() -> frozenset[str]:
    global _known
    if not _known:
        _known = frozenset(c10.operator_names())
    return _known


def _no_functional_form(op: Operator) -> UnsupportedGraph:
    return UnsupportedGraph(
        f"{op.name}: got an in-place operator that has no functional form",
        "call it outside of compiled code",
    )


def input_value(functional: Any, index: int) -> Value:
    """The value of a graph's input: its storage is known by the input's number."""
    value = fresh_value(functional)
    storage: Storage = value.storage
    storage.input = index
    storage.initial = functional
    return value
