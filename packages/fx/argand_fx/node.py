"""`Node`: one operation of a graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from argand_c10 import Module, Operator
from argand_fx.called_overload import called_overload
from argand_fx.effects import has_effect
from argand_fx.immutable import immutable_dict, immutable_list
from argand_fx.operator_schemas import ArgsKwargsPair, normalize_function, normalize_module
from argand_fx.symbolic import SymbolicValue

if TYPE_CHECKING:
    from argand_fx.graph import Graph

__all__ = ["OPCODES", "Node", "has_side_effect", "map_aggregate", "map_arg", "target_name"]

Target = Any  # a callable (call_function) or a string (all other opcodes)
Argument = Any  # a Node, a constant, a symbolic value, or a list, tuple, dict or slice of those
_Function = TypeVar("_Function", bound=Callable[..., Any])

OPCODES = frozenset(
    ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
)
_ATOMS = frozenset((int, float, bool, str, type(None), complex))
_IN_PLACE = "add and concat floordiv lshift mod mul matmul or pow rshift sub truediv xor"
_IMPURE: set[Any] = {operator.setitem, operator.delitem, setattr, delattr, print}
_IMPURE.update(getattr(operator, "i" + name) for name in _IN_PLACE.split())


def has_side_effect(fn: _Function) -> _Function:
    """Mark a function whose calls must stay in a graph though nothing uses their results; returns it."""
    _IMPURE.add(fn)
    return fn


def map_aggregate(value: Argument, function: Callable[[Any], Any]) -> Any:
    """A copy of `value` whose leaves (whatever is no list, tuple, dict or slice) are mapped by `function`."""
    kind = type(value)
    if kind is tuple:
        return tuple([map_aggregate(item, function) for item in value])
    if kind is list or kind is immutable_list:
        return immutable_list([map_aggregate(item, function) for item in value])
    if isinstance(value, dict):
        return immutable_dict({key: map_aggregate(item, function) for key, item in value.items()})
    if kind is slice:
        return slice(
            map_aggregate(value.start, function),
            map_aggregate(value.stop, function),
            map_aggregate(value.step, function),
        )
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*[map_aggregate(item, function) for item in value])
    if isinstance(value, list):
        return immutable_list([map_aggregate(item, function) for item in value])
    return function(value)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Any:
    """A copy of `a` in which each Node is replaced by `fn(node)`."""
    if type(a) is Node:
        return fn(a)
    if type(a) in _ATOMS:
        return a
    return map_aggregate(a, lambda item: fn(item) if isinstance(item, Node) else item)


def target_name(target: Target) -> str:
    """How a target is written in dumps: a string as it is, an operator by its name, a function by its path."""
    if isinstance(target, str):
        return target
    if isinstance(target, Operator):
        return str(target.name)
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    if name is None:
        return repr(target)
    module = getattr(target, "__module__", None)
    if module == "_operator":
        module = "operator"
    return name if module is None else f"{module}.{name}"


def _is_number(a: Argument) -> bool:
    value = a.meta.get("val") if type(a) is Node else a
    return isinstance(value, int | float | complex | SymbolicValue)


class Node:
    """One operation of a `Graph`.

    `op` is one of six opcodes, which say what `target`, `args` and `kwargs` mean:

    * `placeholder`: an input of the graph. `target` is the argument's name (`*args` and `**kwargs` with
      their stars); `args` is empty, or holds the default value.
    * `get_attr`: fetches a parameter, buffer, constant or nested GraphModule of the module that owns the
      graph. `target` is the dotted path; no arguments.
    * `call_function`: applies the free function or operator `target` to `args` and `kwargs`.
    * `call_method`: calls the method named `target` of `args[0]` with the other arguments.
    * `call_module`: calls the child module at the dotted path `target`.
    * `output`: the result of the graph, `args[0]`; the last node of each graph.

    Attributes:
        name: unique in its graph; a legal Python name.
        args, kwargs: arguments; a Node among them, at any depth of lists, tuples, dicts and slices, means
            its value. Assign to change them; containers inside refuse changes.
        users: the nodes that use this node's value, as keys in the order of first use.
        meta: what passes know of the node: "val" (its result, as fake tensor, number, symbolic number or
            tuples and lists of them), "location" (file, line, function of the user's code), "stack"
            (tuple of locations, outermost first), "grad_enabled".
        type: annotation of the result, or None.
    """

    __slots__ = (
        "__dict__",  # passes of libraries leave their own marks
        "__weakref__",
        "_args",
        "_erased",
        "_inputs",
        "_kwargs",
        "_next",
        "_prev",
        "graph",
        "meta",
        "name",
        "op",
        "target",
        "type",
        "users",
    )

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        self.graph = graph
        self.name = name
        self.op = op
        if type(target) is Operator and op == "call_function":
            target = called_overload(target, args, kwargs, _is_number)
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._erased = False
        self._prev: Node = self
        self._next: Node = self
        self._inputs: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        if args or kwargs:
            self._set_arguments(args, kwargs)

    def __repr__(self) -> str:
        return self.name

    def __copy__(self) -> Node:
        raise TypeError("Node: cannot be copied by itself; use Graph.node_copy")

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise TypeError("Node: cannot be pickled; keep the graph's text (Graph.to_text)")

    # Arguments -------------------------------------------------------------------------------

    def _set_arguments(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        inputs: dict[Node, None] = {}
        frozen_args: Any = args
        for item in args:
            kind = type(item)
            if kind is Node:
                inputs[item] = None
            elif kind not in _ATOMS:
                frozen_args = tuple([_freeze(item, inputs) for item in args])
                break
        frozen_kwargs = (
            immutable_dict({key: _freeze(item, inputs) for key, item in kwargs.items()})
            if kwargs
            else kwargs
        )
        if self._inputs:
            for node in self._inputs:
                if node not in inputs:
                    node.users.pop(self, None)
        for node in inputs:
            node.users[self] = None
        self._inputs = inputs
        self._args = frozen_args
        self._kwargs = frozen_kwargs

    @property
    def args(self) -> tuple[Argument, ...]:
        return self._args

    @args.setter
    def args(self, value: Iterable[Argument]) -> None:
        self._set_arguments(tuple(value), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict[str, Argument]) -> None:
        self._set_arguments(self._args, value)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The distinct nodes among the arguments, in order of first occurrence."""
        return list(self._inputs)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace `args[idx]`."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put `arg` before `args[idx]`."""
        if not 0 <= idx <= len(self._args):
            raise ValueError(
                f"insert_arg: got index {idx} for {self.name} with {len(self._args)} arguments, "
                f"expected one from 0 to {len(self._args)}"
            )
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set `kwargs[key]`."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Argument) -> None:
        """Put `new_input` wherever `old_input` stands among this node's arguments."""
        self._set_arguments(
            tuple([_substitute(item, old_input, new_input) for item in self._args]),
            {key: _substitute(item, old_input, new_input) for key, item in self._kwargs.items()},
        )

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node use `replace_with` instead; returns the users that were changed.

        Args:
            replace_with: a node of the same graph.
            delete_user_cb: chooses the users to change; all by default.
            propagate_meta: also copy this node's meta to `replace_with`, whose meta must be empty.
        """
        if propagate_meta:
            if replace_with.meta:
                raise ValueError(
                    f"replace_all_uses_with: {replace_with.name} has meta of its own, expected none; "
                    "call it without propagate_meta"
                )
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb is None or delete_user_cb(user):
                user.replace_input_with(self, replace_with)
                changed.append(user)
        return changed

    # Position --------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The node after this one; after the last comes the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; before the first stands the graph's root."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move `x` to just before this one."""
        if x is self:
            return
        if x.graph is not self.graph:
            raise ValueError(
                f"Node.prepend: {x.name} belongs to another graph than {self.name}; "
                "copy it with Graph.node_copy"
            )
        x._unlink()
        before = self._prev
        before._next = x
        x._prev = before
        x._next = self
        self._prev = x

    def append(self, x: Node) -> None:
        """Move `x` to just after this one."""
        if x is not self._next:
            self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next = self._next
        self._next._prev = self._prev

    # What it is ------------------------------------------------------------------------------

    def is_impure(self) -> bool:
        """Whether the node must stay though nothing uses it.

        Inputs and outputs, operators that write an argument or draw random numbers, functions marked by
        `has_side_effect`, methods named like in-place ones, and calls of modules in training mode.
        """
        op, target = self.op, self.target
        if op == "call_function":
            if isinstance(target, Operator):
                return has_effect(target)
            return target in _IMPURE
        if op == "call_method":
            return target.endswith("_") and not target.endswith("__") or target == "__setitem__"
        if op == "call_module":
            return self._calls_impure_module()
        return op in ("placeholder", "output")

    def _calls_impure_module(self) -> bool:
        owner = self.graph.owning_module
        if owner is None:
            return True
        try:
            module = owner.get_submodule(self.target)
        except AttributeError:
            return True
        graph = getattr(module, "graph", None)
        if isinstance(module, Module) and graph is not None and hasattr(graph, "nodes"):
            return any(n.is_impure() for n in graph.nodes if n.op.startswith("call"))
        return bool(module.training)

    def normalized_arguments(
        self,
        root: Module,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments of a call of an operator, a function or a module of `root` with defaults filled in; None of other nodes.

        Args:
            arg_types, kwarg_types, normalize_to_only_use_kwargs: as for `operator_schemas.normalize_function`.
        """
        args, kwargs = self._args, dict(self._kwargs)
        by_keyword = normalize_to_only_use_kwargs
        if self.op == "call_function":
            return normalize_function(self.target, args, kwargs, arg_types, kwarg_types, by_keyword)
        if self.op == "call_module":
            return normalize_module(root, self.target, args, kwargs, by_keyword)
        return None

    @property
    def stack_trace(self) -> str | None:
        """Where the user's code made this node, one line a frame, outermost first."""
        stack = self.meta.get("stack") or (
            (self.meta["location"],) if "location" in self.meta else ()
        )
        if not stack:
            return None
        return "\n".join(
            f'File "{file}", line {line}, in {function}' for file, line, function in stack
        )

    def format_node(self) -> str:
        """The node as one line."""
        arguments = [repr(item) for item in self._args]
        arguments += [f"{key}={item!r}" for key, item in self._kwargs.items()]
        if self.op == "output":
            return f"return {arguments[0] if arguments else ''}"
        return (
            f"%{self.name} : [num_users={len(self.users)}] = {self.op}"
            f"[target={target_name(self.target)}]({', '.join(arguments)})"
        )


def _freeze(value: Argument, inputs: dict[Node, None]) -> Argument:
    """The value with read-only containers; nodes met on the way are added to `inputs`."""
    kind = type(value)
    if kind is Node:
        inputs[value] = None
        return value
    if kind in _ATOMS:
        return value
    if kind is list or kind is immutable_list:
        return immutable_list([_freeze(item, inputs) for item in value])
    if kind is tuple:
        return tuple([_freeze(item, inputs) for item in value])

    def leaf(item: Any) -> Any:
        if isinstance(item, Node):
            inputs[item] = None
        return item

    return map_aggregate(value, leaf)


def _substitute(value: Argument, old: Node, new: Argument) -> Argument:
    if value is old:
        return new
    if type(value) in _ATOMS or type(value) is Node:
        return value
    return map_aggregate(value, lambda item: new if item is old else item)
