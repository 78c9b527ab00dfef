"""`GraphBuilder`: calls of operators on fake tensors, as nodes of a graph."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import argand_c10 as c10
from argand_c10 import Operator, Tensor, protocol
from argand_c10._C import OperatorMethod
from argand_c10.errors import DataDependentError, UnsupportedError
from argand_c10.rules import Rules, rules_of
from argand_fx import schema
from argand_fx.graph import Graph
from argand_fx.node import Node
from argand_fx.shapes.fake_tensor import (
    FakeStorage,
    FakeTensor,
    identical,
    pointwise_layout,
    says_format,
)
from argand_fx.shapes.layout import reinterpreted
from argand_fx.shapes.overlap import check_overlap, tensors_of
from argand_fx.shapes.overload import Spec
from argand_fx.shapes.results import as_results, results_of_fake
from argand_fx.symbolic import UNKNOWN, SymbolicValue

__all__ = ["FakeTensorMode", "GraphBuilder"]


class Operators:
    """The operators by public name, as functions that call the builder."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            op = c10.find_operator(name)
        except LookupError as error:
            raise AttributeError(str(error)) from None
        call = self._builder.call

        def function(*args: Any, **kwargs: Any) -> Any:
            return call(op, args, kwargs)

        setattr(self, name, function)
        return function


_specs: dict[Operator, Spec] = {}
_SWITCHES = frozenset((bool, str, c10.dtype))  # types of arguments whose values may say the dtype
# Views whose offset does not move along with that of their tensor.
_OFFSET_READERS = frozenset(("as_strided", "view.dtype", "view_as_complex"))
_FAST = frozenset((FakeTensor, int, float, bool, type(None), str, c10.dtype))


class GraphBuilder:
    """Appends operator calls to a graph and computes what they return.

    Without a graph it only computes (see `FakeTensorMode`). Composites without a derivative of their own are expanded into
    what they are made of; every other call is one node whose `meta["val"]` is its result.

    Attributes:
        graph: the graph, or None.
        shape_env: where symbolic sizes and their guards live, or None.
        ops: the operators as attributes: `builder.ops.add(x, 1)`.
        constants: tensors that the graph reads through `get_attr` nodes, by name; they belong into its module.
        autocast: None, or `autocast(builder, policies, arguments)`, called for operators with `Rules.autocast`: gives the
            arguments cast, or None where they and the operators of the body are as without it.
        grad_enabled: whether results carry gradients; nodes made while False say so in their meta.
        location, stack: where the user's code is, for the meta of new nodes: `(file, line, function)`, and a tuple of
            those, outermost first.
    """

    def __init__(self, graph: Graph | None = None, shape_env: Any = None) -> None:
        self.graph = graph
        self.shape_env = shape_env
        self.ops = Operators(self)
        self.constants: dict[str, Tensor] = {}
        # Names of those that nothing else holds, so that their elements stay.
        self.literals: set[str] = set()
        self.grad_enabled = True
        self.autocast: Callable[[GraphBuilder, tuple[str, str], list[Any]], list[Any] | None] | None
        self.autocast = None
        self.location: tuple[str, int, str] | None = None
        self.stack: tuple[tuple[str, int, str], ...] | None = None
        self._bound: dict[Any, tuple[Spec, tuple[Any, ...]]] = {}
        self._constant_nodes: dict[int, FakeTensor] = {}
        self._storages: dict[Any, FakeStorage] = {}
        self._computing: GraphBuilder | None = None
        self._dtypes: dict[Any, c10.dtype] = {}

    # Inputs and outputs ------------------------------------------------------------------------

    def placeholder(self, name: str, value: Any) -> Any:
        """Add an input that has `value` (a fake tensor, or a symbolic number); returns it with its node set."""
        if self.graph is None:
            raise ValueError(
                f"placeholder: got {name!r} for a builder without a graph; give it one"
            )
        node = self.graph.placeholder(name)
        node.meta["val"] = value
        if self.location is not None:
            self._locate(node)
        if isinstance(value, FakeTensor):
            value.node = node
            value.builder = self
        return value

    def output(self, values: Any) -> Node:
        """End the graph with these results: fake tensors and numbers, in tuples, lists and dicts."""
        if self.graph is None:
            raise ValueError("output: got results for a builder without a graph; give it one")
        node = self.graph.output(self.arguments(values))
        node.meta["val"] = values
        return node

    def from_tensor(
        self,
        tensor: Tensor,
        *,
        source: Any = None,
        dynamic_dims: Sequence[int] = (),
    ) -> FakeTensor:
        """The fake of a real tensor, without a node; tensors that share memory get fakes that share storage.

        Args:
            source: where the tensor comes from; symbols get `(source, "size", dim)`.
            dynamic_dims: dimensions whose sizes become symbols, unless they are 0 or 1.
        """
        from argand_fx.shapes.from_tensor import from_tensor

        fake = from_tensor(
            tensor,
            self.shape_env,
            source=source,
            dynamic_dims=dynamic_dims,
            storages=self._storages,
        )
        fake.builder = self
        return fake

    def forget_storages(self) -> None:
        """Let go of the memory of the real tensors given so far, which fakes and graphs would keep."""
        self._storages.clear()

    def fake(
        self,
        shape: Sequence[Any],
        dtype: c10.dtype = c10.float32,
        *,
        strides: Sequence[Any] | None = None,
        device: Any = "cpu",
        requires_grad: bool = False,
    ) -> FakeTensor:
        """A new fake tensor of this builder, without a node."""
        return FakeTensor(shape, strides, 0, dtype, device, requires_grad, builder=self)

    def constant(self, tensor: Tensor, literal: bool = False) -> FakeTensor:
        """The fake of a tensor that is part of the graph; read through a `get_attr` node. `literal`: nothing else holds the tensor."""
        known = self._constant_nodes.get(id(tensor))
        if known is not None:
            return known
        fake = self.from_tensor(tensor)
        name = f"_tensor_constant{len(self.constants)}"
        if literal:
            self.literals.add(name)
        self.constants[name] = tensor  # also keeps its id from being used again
        if self.graph is not None:
            node = self.graph.create_node("get_attr", name)
            node.meta["val"] = fake
            self._locate(node)
            fake.node = node
        self._constant_nodes[id(tensor)] = fake
        return fake

    # Nodes -------------------------------------------------------------------------------------

    def _locate(self, node: Node) -> None:
        meta = node.meta
        if self.location is not None:
            meta["location"] = self.location
        if self.stack is not None:
            meta["stack"] = self.stack
        if not self.grad_enabled:
            meta["grad_enabled"] = False

    def create(
        self, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], value: Any
    ) -> Any:
        """Append a call of `target` whose result is `value`; returns `value` with the nodes of its tensors set.

        Args:
            target: an operator or another function that may stand in a graph.
            args, kwargs: fake tensors, numbers, nodes, and lists and tuples of those.
            value: what it returns: a fake tensor, a number, None, or a tuple or list of those.
        """
        graph = self.graph
        if graph is None:
            self._adopt(value, None)
            return value
        node = graph.create_node(
            "call_function",
            target,
            tuple([self.argument(x) for x in args]),
            {k: self.argument(x) for k, x in kwargs.items()},
        )
        node.meta["val"] = value
        self._locate(node)
        self._adopt(value, node)
        return value

    def _adopt(self, value: Any, node: Node | None) -> None:
        """Set builder and node of the tensors of a result; those of several get `getitem` nodes."""
        if type(value) is FakeTensor:
            value.builder = self
            value.node = node
        elif isinstance(value, (tuple, list)):
            for i, x in enumerate(value):
                item = None
                if node is not None and (isinstance(x, (FakeTensor, tuple, list))):
                    item = node.graph.create_node("call_function", operator.getitem, (node, i))
                    item.meta["val"] = x
                    self._locate(item)
                self._adopt(x, item)

    def argument(self, value: Any) -> Any:
        """The value as a node's argument: tensors become their nodes."""
        if type(value) is FakeTensor:
            node = value.node
            if node is None or node.graph is not self.graph:
                raise UnsupportedError(
                    f"GraphBuilder: got {value!r}, which is no value of this graph; make it a placeholder first"
                )
            return node
        if isinstance(value, (list, tuple)):
            items = [self.argument(x) for x in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, Tensor):
            return self.constant(value).node
        return value

    def arguments(self, values: Any) -> Any:
        """`argument`, also through dicts."""
        if isinstance(values, dict):
            return {k: self.arguments(v) for k, v in values.items()}
        if isinstance(values, (list, tuple)) and not isinstance(values, c10.Size):
            items = [self.arguments(v) for v in values]
            return items if isinstance(values, list) else tuple(items)
        return self.argument(values)

    # Calls -------------------------------------------------------------------------------------

    def syntax(self, method: str, *args: Any) -> Any:
        """What a special method of Tensor does, as `syntax("__getitem__", x, 0)`."""
        entry = protocol.operator_of(method)
        if entry is None:
            raise TypeError(
                f"{method}: tensors do not support it; import the package with the operators"
            )
        return self.call(entry, args) if isinstance(entry, Operator) else entry(self.ops, *args)

    def call(
        self, op: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call an operator on fake tensors.

        Args:
            op: a callable operator, a method of Tensor, or `Tensor.__getitem__` and its like.
            args, kwargs: as in a Python call. Real tensors become constants of the graph.

        Returns:
            A fake tensor, or a tuple of them, with names where the operator's results have them.

        Raises:
            TypeError: if no overload fits.
            DataDependentError: if the result's shape, or a number that it needs, depends on elements.
            UnsupportedError: if the operator has no rules.
        """
        if kwargs:
            return self._call_slowly(op, args, kwargs)
        key = (op, *map(type, args))
        bound = self._bound.get(key)
        if bound is not None:
            spec, rest = bound
            return self._apply(spec, [*args, *rest])
        return self._call_slowly(op, args, {})

    def call_bound(self, overload: Operator, values: Sequence[Any]) -> Any:
        """As `call`, with an overload and its arguments in schema order, as `argand_fx.schema.bind` gives them."""
        spec = _specs.get(overload)
        if spec is None:
            spec = _specs[overload] = Spec(overload)
        return self._apply(spec, list(values))

    def _call_slowly(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if not isinstance(op, (Operator, OperatorMethod)):
            name = getattr(op, "__name__", "")
            if protocol.operator_of(name) is None:
                raise UnsupportedError(f"GraphBuilder: got {op!r}, expected an operator")
            return self.syntax(name, *args)
        if self._has_real(args) or (kwargs and self._has_real(list(kwargs.values()))):
            args = [self._lifted(x) for x in args]
            kwargs = {k: self._lifted(x) for k, x in kwargs.items()}
        overload, values = schema.bind(op, args, kwargs)
        spec = _specs.get(overload)
        if spec is None:
            spec = _specs[overload] = Spec(overload)
        if not kwargs and all(
            type(x) in _FAST and x is v for x, v in zip(args, values, strict=False)
        ):
            rest = values[len(args) :]
            if not any(type(v) is list for v in rest):
                self._bound[(op, *map(type, args))] = (spec, tuple(rest))
        return self._apply(spec, values)

    @staticmethod
    def _has_real(values: Sequence[Any]) -> bool:
        for x in values:
            if isinstance(x, Tensor):
                return True
            if isinstance(x, (list, tuple)) and any(isinstance(y, Tensor) for y in x):
                return True
        return False

    def _lifted(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return self.constant(x)
        if isinstance(x, (list, tuple)):
            return type(x)(self._lifted(y) for y in x) if type(x) in (list, tuple) else x
        return x

    def _apply(self, spec: Spec, values: list[Any]) -> Any:
        if spec.out_of is not None and self.grad_enabled:
            _check_out(spec, values)
        if spec.inplace and spec.composite is None:
            if spec.out_of is not None and "out" in spec.schema.index:
                return self._apply_out(spec, values)
            return self._apply_inplace(spec, values)
        if self.autocast is not None and spec.autocast is not None:
            cast = self.autocast(self, spec.autocast, values)
            if cast is not None:
                return self._apply_without_autocast(spec, cast)
        if spec.composite is not None:
            n = spec.positional
            try:
                result = spec.composite(self.ops, *values[:n], **spec.keywords(values))
            except DataDependentError as error:
                if str(error).startswith(f"{spec.name}: "):
                    raise
                raise DataDependentError(f"{spec.name}: {error}") from None
            except IndexError as error:
                raise _in_name_of(spec, error) from None
            for i in spec.schema.written:  # what the body wrote into was a view of it
                for t in tensors_of(values[i]):
                    if t.base is not None and t.base.requires_grad:
                        _set_requires_grad(t)
            return as_results(spec.schema, result) if type(result) is not FakeTensor else result
        result = self._elementwise(spec, values) if spec.pointwise else None
        if result is None:
            result = self._results(spec, values)
        graph = self.graph
        if graph is None:
            return result
        node = self._append(graph, spec, values)
        node.meta["val"] = result
        if type(result) is FakeTensor:
            result.node = node
        else:
            self._adopt(result, node)
        return result

    def _twin(self) -> GraphBuilder:
        """A builder that only computes, with the same symbols."""
        if self._computing is None:
            self._computing = GraphBuilder(None, self.shape_env)
        return self._computing

    def _apply_without_autocast(self, spec: Spec, values: list[Any]) -> Any:
        autocast, self.autocast = self.autocast, None
        try:
            return self._apply(spec, values)
        finally:
            self.autocast = autocast

    def _elementwise(self, spec: Spec, values: list[Any]) -> FakeTensor | None:
        """The result of a pointwise operator on contiguous tensors of one shape, and numbers; None: not so simple."""
        first: FakeTensor | None = None
        grad = False
        key: list[Any] = [spec]
        for v in values:
            kind = type(v)
            if kind is FakeTensor:
                if first is None:
                    first = v
                    if not v._contiguous or not v.shape:
                        return None
                elif v is not first and (not v._contiguous or not identical(v.shape, first.shape)):
                    return None
                grad = grad or v.requires_grad
                key.append(v.dtype)
            elif kind is list:
                return None
            else:
                key.append(v if kind in _SWITCHES else kind)
        if first is None or first.device.type != "cpu" or says_format(spec.operands(values)):
            return None
        key.append(c10.get_default_dtype())
        known = tuple(key)
        dtype = self._dtypes.get(known)
        if dtype is None:
            assert spec.dtype is not None
            dtype = spec.dtype(*values[: spec.positional], **spec.keywords(values))
            self._dtypes[known] = dtype
        if grad:
            grad = (
                self.grad_enabled
                and spec.differentiable
                and (dtype.is_floating_point or dtype.is_complex)
                and (spec.arg_mask is None or self._any_grad(spec, values))
                and (spec.result_mask is None or 0 in spec.result_mask)
            )
        result = first.fresh(dtype, grad)
        result.builder = self
        return result

    def _append(self, graph: Graph, spec: Spec, values: list[Any]) -> Node:
        """A node for the call; trailing positional defaults and keyword defaults are left out."""
        s = spec.schema
        arguments = s.arguments
        n = spec.positional
        last = n
        while (
            last > 0
            and arguments[last - 1].has_default
            and _same(values[last - 1], arguments[last - 1].default)
        ):
            last -= 1
        args = []
        for v in values[:last]:
            if type(v) is FakeTensor:
                node = v.node
                if node is None or node.graph is not graph:
                    node = self.argument(v)  # which a subclass may know
                args.append(node)
            elif type(v) is list:
                args.append(self.argument(v))
            else:
                args.append(v)
        kwargs = {}
        for i in range(n, len(values)):
            a, v = arguments[i], values[i]
            if not (a.has_default and _same(v, a.default)):
                kwargs[a.name] = self.argument(v)
        node = graph.create_node("call_function", spec.op, tuple(args), kwargs)
        self._locate(node)
        return node

    def _apply_inplace(self, spec: Spec, values: list[Any]) -> Any:
        if spec.shape is not None:
            raise UnsupportedError(
                f"{spec.name}: changes the sizes of its tensor, which graphs do not hold; use the form that returns a new tensor"
            )
        written = [x for i in spec.schema.written for x in tensors_of(values[i])]
        self._check_inplace(spec, values, written)
        if spec.dtype is not None:
            spec.dtype(*values[: spec.positional], **spec.keywords(values))
        grad = self.grad_enabled and spec.differentiable and self._any_grad(spec, values)
        if grad and any(t.storage.no_grad_view for t in written):
            raise UnsupportedError(
                f"{spec.name}: a view of its tensor was made in no_grad mode and is forbidden to use once gradients flow through the change; "
                "put both the view and the change inside the no_grad block, or both outside"
            )
        if self.graph is not None:
            node = self._append(self.graph, spec, values)
        for t in written:
            t.storage.version += 1
            if grad and not t.requires_grad and (t.dtype.is_floating_point or t.dtype.is_complex):
                _set_requires_grad(t)
        result = values[0] if spec.schema.results else None
        if self.graph is not None:
            node.meta["val"] = result
        return result

    def _check_inplace(self, spec: Spec, values: list[Any], written: list[FakeTensor]) -> None:
        """The shape and dtype rules of the functional form, where there is one."""
        if self.grad_enabled:
            for t in written:
                for what, leaf in (("a leaf", t), ("a view of a leaf", t.base)):
                    if leaf is not None and leaf.requires_grad and leaf._leaf:
                        raise RuntimeError(
                            f"{spec.name}: {what} Variable that requires grad is being used in an in-place operation; "
                            "do it inside no_grad(), or on a clone()"
                        )
        base, dot, rest = spec.name.partition(".")
        name = base.removesuffix("_") + dot + rest
        functional = rules_of(name)
        if functional is None or functional.kind != "pointwise" or not spec.schema.results:
            if base != "copy_" and len(written) == 1:
                check_overlap(spec.name, False, written[0], values[1:])
            return
        assert functional.shape is not None and functional.dtype is not None
        other = schema.overload(name)
        n = schema.schema_of(other).positional
        names = schema.schema_of(other).arguments
        keywords = {a.name: v for a, v in zip(names[n:], values[n:], strict=False)}
        found = functional.shape(*values[:n], **keywords)
        shape = found.sizes if hasattr(found, "strides") else found
        target = values[0]
        if len(shape) != target.ndim or any(
            a is not b and a != b for a, b in zip(shape, target.shape, strict=True)
        ):
            raise c10.ShapeError(
                f"{spec.name}: output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}"
            )
        dtype = functional.dtype(*values[:n], **keywords)
        if _category(dtype) > _category(target.dtype):
            raise c10.DTypeError(
                f"{spec.name}: result type {dtype.name} can't be cast to the desired output type {target.dtype.name}"
            )
        check_overlap(spec.name, True, target, values[1:])

    def _apply_out(self, spec: Spec, values: list[Any]) -> Any:
        """`out=`: the functional result, copied into the targets."""
        assert spec.out_of is not None
        functional = schema.overload(spec.out_of)
        n = len(schema.schema_of(functional).arguments)
        first = _specs.get(functional) or Spec(functional)
        _specs[functional] = first
        results = self._apply_without_autocast(first, values[:n])
        outs = values[n:]
        for target in outs:
            check_overlap(spec.name, first.pointwise, target, values[:n])
        for target, result in zip(
            outs, results if isinstance(results, (tuple, list)) else (results,), strict=True
        ):
            if tuple(target.shape) != tuple(result.shape):
                raise UnsupportedError(
                    f"{spec.name}: got out of shape {list(target.shape)}, expected {list(result.shape)}: "
                    "resizing it is not possible in a graph"
                )
            if _category(result.dtype) > _category(target.dtype):
                raise c10.DTypeError(
                    f"{spec.name}: result type {result.dtype.name} can't be cast to the desired output type {target.dtype.name}"
                )
            self.ops.copy_(target, result)
        return outs[0] if len(outs) == 1 else tuple(outs)

    # Results -----------------------------------------------------------------------------------

    def _any_grad(self, spec: Spec, values: list[Any]) -> bool:
        mask = spec.arg_mask
        for i, v in enumerate(values):
            if type(v) is FakeTensor:
                if v.requires_grad and (mask is None or i in mask):
                    return True
            elif type(v) is list and (mask is None or i in mask):
                for x in v:
                    if type(x) is FakeTensor and x.requires_grad:
                        return True
        return False

    def _results(self, spec: Spec, values: list[Any]) -> Any:
        """The fakes that the call returns, without nodes."""
        keywords = spec.keywords(values)
        if spec.fake is not None:
            grad = self.grad_enabled and spec.differentiable and self._any_grad(spec, values)
            return results_of_fake(self, self._twin(), spec, values, keywords, grad)
        if spec.shape is None:
            return self._results_of_body(spec, values, keywords)
        n = spec.positional
        args = values[:n]
        try:
            shapes = spec.shape(*args, **keywords)
        except IndexError as error:
            raise _in_name_of(spec, error) from None
        dtypes = spec.dtype(*args, **keywords) if spec.dtype is not None else None
        grad = self.grad_enabled and spec.differentiable and self._any_grad(spec, values)
        if spec.schema.results == 1 and not spec.schema.list_result:
            return self._result(spec, values, keywords, shapes, dtypes, grad, 0)
        several = dtypes if isinstance(dtypes, tuple) else (dtypes,) * len(shapes)
        made = [
            self._result(spec, values, keywords, s, d, grad, i)
            for i, (s, d) in enumerate(zip(shapes, several, strict=True))
        ]
        return as_results(spec.schema, made)

    def _result(
        self,
        spec: Spec,
        values: list[Any],
        keywords: dict[str, Any],
        shape: Any,
        dtype: Any,
        grad: bool,
        index: int,
    ) -> FakeTensor:
        first = _first_tensor(values)
        if dtype is None:
            dtype = c10.get_default_dtype() if first is None else first.dtype
        device = keywords.get("device") or _device_of(first, values)
        grad = (
            grad
            and (dtype.is_floating_point or dtype.is_complex)
            and (spec.result_mask is None or index in spec.result_mask)
        )
        offset: Any = 0
        sizes = getattr(shape, "sizes", None)
        if sizes is not None:
            strides, offset = shape.strides, shape.offset
        else:
            sizes = shape
            strides = pointwise_layout(sizes, spec.operands(values)) if spec.pointwise else None
        if spec.view:
            assert first is not None
            if spec.name in _OFFSET_READERS:
                first.storage.offset_read = True
            if strides is None:
                strides, offset = reinterpreted(
                    spec.name,
                    sizes,
                    first.strides,
                    first.offset,
                    first.dtype.itemsize,
                    dtype.itemsize,
                )
            offset = UNKNOWN if spec.placed else offset  # another tensor's elements say it
            base: FakeTensor | None = first.base if first.base is not None else first
            if (
                not spec.differentiable
            ):  # shares memory, but is no view where histories are concerned
                base = None
            elif not self.grad_enabled:
                first.storage.no_grad_view = True
            return FakeTensor(
                sizes, strides, offset, dtype, first.device, grad, first.storage,
                base=base, builder=self,
            )  # fmt: skip
        return FakeTensor(sizes, strides, offset, dtype, device, grad, builder=self)

    def _results_of_body(self, spec: Spec, values: list[Any], keywords: dict[str, Any]) -> Any:
        rules: Rules | None = spec.rules
        body = rules.composite if rules is not None else None
        if body is None:
            raise UnsupportedError(
                f"{spec.name}: got an operator without a shape function; give it one with argand_c10.rules.register_rules"
            )
        twin = self._twin()
        twin.grad_enabled = self.grad_enabled
        result = body(twin.ops, *values[: spec.positional], **keywords)
        self._adopt(result, None)
        if self.grad_enabled and spec.differentiable and self._any_grad(spec, values):
            # The derivative is the operator's own: its results depend on its arguments whatever the body says.
            for i, t in enumerate((result,) if type(result) is FakeTensor else result):
                if type(t) is FakeTensor and (spec.result_mask is None or i in spec.result_mask):
                    if t.dtype.is_floating_point or t.dtype.is_complex:
                        _set_requires_grad(t)
        return result if type(result) is FakeTensor else as_results(spec.schema, result)


class FakeTensorMode(GraphBuilder):
    """A builder without a graph: operators on its tensors only compute shapes."""

    def __init__(self, shape_env: Any = None) -> None:
        super().__init__(None, shape_env)


def _in_name_of(spec: Spec, error: IndexError) -> IndexError:
    """A dimension's error as of the operator that was called, which shape functions do not know, and not of one in its body."""
    name = spec.name.partition(".")[0]
    return IndexError(re.sub(r"^(\w+: )?(?=Dimension )", f"{name}: ", str(error)))


def _same(value: Any, default: Any) -> bool:
    """Whether an argument has its default, of the same type."""
    if value is default:
        return True
    if type(value) is not type(default) or isinstance(value, (FakeTensor, SymbolicValue)):
        return False
    if type(value) is list:
        return len(value) == len(default) and all(map(_same, value, default))
    return bool(value == default)


def _first_tensor(values: Sequence[Any]) -> FakeTensor | None:
    for v in values:
        if type(v) is FakeTensor:
            return v
        if type(v) is list:
            for x in v:
                if type(x) is FakeTensor:
                    return x
    return None


def _device_of(first: FakeTensor | None, values: Sequence[Any]) -> c10.device:
    """Where results are: with the first tensor, unless that is a number on the CPU among tensors of a device."""
    if first is None:
        return c10.device("cpu")
    if not first.shape and first.device.type == "cpu":
        for v in values:
            for x in v if type(v) is list else (v,):
                if type(x) is FakeTensor and x.device.type != "cpu":
                    return x.device
    return first.device


def _check_out(spec: Spec, values: Sequence[Any]) -> None:
    carries = any(
        _category(t.dtype) > 1 for i in spec.schema.written for t in tensors_of(values[i])
    )
    if carries and any(t.requires_grad for v in values for t in tensors_of(v)):
        raise RuntimeError(
            f"{spec.name}: functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )


def _category(dtype: c10.dtype) -> int:
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype == c10.bool else 1


def _set_requires_grad(t: FakeTensor) -> None:
    """An in-place change gives the tensor, and what it is a view of, a history; the nodes' values keep what they were."""
    for x in [t] if t.base is None else [t, t.base]:
        if not x.requires_grad:
            if x.node is not None and x.node.meta.get("val") is x:
                x.node.meta["val"] = x.snapshot()
            x.requires_grad = True
            x._leaf = False
