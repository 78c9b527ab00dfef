"""`make_fx`: the operators that a call of a function runs, those of gradients included, as a graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from argand.fx.traceback import current_annotation
from argand.utils._pytree import tree_flatten, tree_map, tree_unflatten
from argand_aten import ops
from argand_c10 import _C, Operator, Parameter, Tensor
from argand_c10.modes import ArgandDispatchMode, current_modes
from argand_fx import Graph, GraphModule, Node
from argand_fx.called_overload import called_overload
from argand_fx.passes.dead_code import eliminate_dead_code
from argand_fx.shapes import FakeTensor

__all__ = ["get_proxy_mode", "make_fx"]

_MODES = ("real", "fake", "symbolic")


def get_proxy_mode() -> ArgandDispatchMode | None:
    """The mode of this thread that records every operator for `make_fx`, or None."""
    return next((mode for mode in current_modes() if isinstance(mode, _Recorder)), None)


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Operator, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    **options: Any,
) -> Callable[..., GraphModule]:
    """A function that runs `f` and returns what its call was made of.

    The graph holds operators as they ran, gradients and changes in place too; sizes and other numbers are those of the call.

    Args:
        f: takes tensors, or tuples, lists and dicts of tensors and other values, and returns such.
        decomposition_table: functions that are called in place of overloads.
        tracing_mode: "real" or "fake", which are the same here; sizes that stay variables ("symbolic") are `export`'s.
        options: taken, and change nothing.

    Returns:
        A function with `f`'s arguments. Its result is called with arguments of the same structure, whose other values are not looked at.

    Raises:
        ValueError: for another tracing mode.
        NotImplementedError: for symbolic sizes.
        RuntimeError: `f` makes numbers of elements, on which the graph would depend.
    """
    if tracing_mode not in _MODES:
        raise ValueError(f"make_fx: got tracing_mode={tracing_mode!r}, expected one of {_MODES}")
    if tracing_mode == "symbolic":
        raise NotImplementedError(
            "make_fx: got tracing_mode='symbolic', expected 'real' or 'fake'; use export with dynamic_shapes for sizes that vary"
        )

    def traced(*args: Any) -> GraphModule:
        return _Recorder(dict(decomposition_table or {})).trace(f, args)

    return traced


class _Traced(GraphModule):
    """Takes what the function takes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*tree_flatten(list(args))[0], **kwargs)


class _Recorder(ArgandDispatchMode):
    """Adds each call to a graph.

    Attributes:
        nodes: the tensors of the trace, which are kept, by their places in memory, and what makes them: what gradients read are
            other objects.
        memory: the storages of these tensors, and a tensor of each.
    """

    def __init__(self, table: dict[Operator, Callable[..., Any]]) -> None:
        self.table = table
        self.graph = Graph()
        self.nodes: dict[Any, tuple[Tensor, Node]] = {}
        self.memory: dict[int, Tensor] = {}
        self.constants: dict[str, Tensor] = {}

    def trace(self, f: Callable[..., Any], args: tuple[Any, ...]) -> GraphModule:
        leaves, structure = tree_flatten(list(args))
        names = [f"arg{i}_1" for i in range(len(leaves))]
        code = getattr(f, "__code__", None)
        if code is not None and len(leaves) == len(args) <= code.co_argcount:
            names = [f"{name}_1" for name in code.co_varnames[: len(args)]]
        for i, name in enumerate(names):
            node, leaf = self.graph.placeholder(name), leaves[i]
            if isinstance(leaf, Tensor):
                if _memory(leaf) in self.memory:  # each argument is an input of its own
                    leaf = leaves[i] = leaf.detach().clone().requires_grad_(leaf.requires_grad)
                self._made(leaf, node)
        before = _C._exchange_reader(self._refuse)
        try:
            with self:
                results = f(*tree_unflatten(leaves, structure))
        finally:
            _C._exchange_reader(before)
        self.graph.output(tree_map(self._argument, _plain(results)))
        module = _Traced(self.constants, self.graph, getattr(f, "__name__", "Traced"))
        eliminate_dead_code(module)
        module.recompile()
        return module

    def _refuse(self, tensor: Tensor) -> None:
        if _memory(tensor) in self.memory:
            raise RuntimeError(
                "make_fx: It appears that you're trying to get value out of a tracing tensor: the graph would depend on its elements; "
                "compute with tensors (where, cond) instead"
            )

    def __argand_dispatch__(
        self,
        op: Operator,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        func = called_overload(op, args, given)
        if func in self.table:
            with self:
                return self.table[func](*args, **given)
        tensor = args[0] if args and isinstance(args[0], Tensor) else None
        seed = op.name == "fill_" and tensor is not None and _memory(tensor) not in self.memory
        result = op(*args, **given)
        if result is tensor and not op.is_inplace:
            return result
        if seed and tensor is not None and tensor.numel() == 1:  # where a gradient begins
            node = self.graph.call_function(
                _overload("full"),
                (list(tensor.shape), args[1]),
                {"dtype": tensor.dtype, "device": tensor.device},
            )
        else:
            node = self.graph.call_function(
                func, tree_map(self._argument, args), tree_map(self._argument, given)
            )
        if isinstance(result, tuple | list):
            for i, part in enumerate(result):
                if isinstance(part, Tensor):
                    self._made(part, self.graph.call_function(operator.getitem, (node, i)))
        elif isinstance(result, Tensor):
            self._made(result, node)
        node.meta.update(current_annotation(), original_aten=func)
        return result

    def _made(self, tensor: Tensor, node: Node) -> None:
        self.nodes[_place(tensor)] = tensor, node
        self.memory.setdefault(_memory(tensor), tensor)
        node.meta["val"] = FakeTensor(
            tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.device
        )

    def _argument(self, value: Any) -> Any:
        """In a node: the node of a tensor, which is a constant if the trace has not made it."""
        if not isinstance(value, Tensor):
            return value
        place = _place(value)
        if (
            place not in self.nodes and _memory(value) in self.memory
        ):  # of a view that no operator made
            source = self.nodes[_place(self.memory[_memory(value)])][1]
            where = (list(value.shape), list(value.stride()), value.storage_offset())
            self._made(value, self.graph.call_function(_overload("as_strided"), (source, *where)))
        if place not in self.nodes:
            kind = "param" if isinstance(value, Parameter) else "tensor"
            number = sum(name.startswith(f"_{kind}") for name in self.constants)
            name = f"_{kind}_constant{number}"
            self.constants[name] = value
            self._made(value, self.graph.create_node("get_attr", name))
        return self.nodes[place][1]


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() or id(tensor)


def _place(tensor: Tensor) -> Any:
    where = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
    return _memory(tensor), *where


def _plain(value: Any) -> Any:
    """Named results of operators as tuples."""
    named = isinstance(value, tuple) and hasattr(type(value), "n_sequence_fields")
    return tuple(value) if named else value


def _overload(name: str) -> Operator:
    found: Operator = getattr(ops, name).default
    return found
