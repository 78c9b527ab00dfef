"""`GraphModule`: a module whose `forward` is generated from a graph."""

from __future__ import annotations

import builtins
import copy
import itertools
import linecache
import types
import weakref
from collections.abc import Mapping
from typing import Any, NoReturn

from argand_c10 import Module, Parameter, Tensor
from argand_c10.module_hooks import GLOBAL_CALL_HOOKS, call_with_hooks
from argand_fx.codegen import PythonCode
from argand_fx.graph import Graph

__all__ = ["GraphModule"]

_number = itertools.count()


class GraphModule(Module):
    """A module made of a graph.

    `code` is its generated source. It is made at the first call or look; after changing the graph later, call `recompile`.

    Args:
        root: a module, or a dictionary by dotted path, that holds what the graph's `get_attr` and
            `call_module` nodes name. What is named is shared, not copied.
        graph: the graph; the module becomes its `owning_module`.
        class_name: shown in `repr` and in tracebacks.
    """

    def __init__(
        self,
        root: Module | Mapping[str, Any] | None = None,
        graph: Graph | None = None,
        class_name: str = "GraphModule",
    ) -> None:
        super().__init__()
        fields = self.__dict__
        fields["meta"] = {}
        fields["_class_name"] = class_name
        fields["_python_code"] = None
        fields["_function"] = None
        if isinstance(root, Module):
            fields["training"] = root.training
        graph = Graph() if graph is None else graph
        for path in _paths(graph):
            if isinstance(root, Mapping):
                if path not in root:
                    raise RuntimeError(
                        f"GraphModule: the graph names {path!r}, which the root dictionary lacks; "
                        f"it has {', '.join(map(repr, root)) or 'nothing'}"
                    )
                _assign(self, path, root[path])
            elif root is not None:
                _copy_path(root, self, path)
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; assigning another one regenerates the code."""
        graph: Graph = self.__dict__["_graph"]
        return graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"GraphModule.graph: got {type(graph).__name__}, expected a Graph")
        graph.owning_module = self
        self.__dict__["_graph"] = graph
        self._forget_code()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("graph", "forward"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    # Code ------------------------------------------------------------------------------------

    def recompile(self) -> PythonCode:
        """Generate the code again, after a change of the graph."""
        self._forget_code()
        self._compile()
        generated: PythonCode = self.__dict__["_python_code"]
        return generated

    def _forget_code(self) -> None:
        self.__dict__["_python_code"] = None
        self.__dict__["_function"] = None

    def _compile(self) -> types.FunctionType:
        fields = self.__dict__
        generated = self.graph.python_code("self")
        name = f"<{fields['_class_name']} {next(_number)}>"
        scope: dict[str, Any] = {"__builtins__": builtins, **generated.globals}
        exec(compile(generated.src, name, "exec"), scope)
        function: types.FunctionType = scope.pop("forward")  # not left in its own globals: no cycle
        # Tracebacks show the generated line; the text goes when the function goes.
        linecache.cache[name] = (
            len(generated.src),
            None,
            generated.src.splitlines(keepends=True),
            name,
        )
        weakref.finalize(function, linecache.cache.pop, name, None)
        fields["_python_code"] = generated
        fields["_function"] = function
        return function

    @property
    def code(self) -> str:
        """The generated source of `forward`."""
        if self.__dict__["_python_code"] is None:
            self._compile()
        source: str = self.__dict__["_python_code"].src
        return source

    @property
    def forward(self) -> Any:
        """The generated function, bound to this module."""
        own = self.__dict__.get("_forward")
        if own is not None:
            return own
        return types.MethodType(self.__dict__["_function"] or self._compile(), self)

    @forward.setter
    def forward(self, function: Any) -> None:
        self.__dict__["_forward"] = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fields = self.__dict__
        if (
            fields["_forward_hooks"]
            or fields["_forward_pre_hooks"]
            or fields["_backward_hooks"]
            or fields["_backward_pre_hooks"]
            or GLOBAL_CALL_HOOKS
        ):
            return call_with_hooks(self, args, kwargs)
        own = fields.get("_forward")
        if own is not None:
            return own(*args, **kwargs)
        return (fields["_function"] or self._compile())(self, *args, **kwargs)

    # Content ---------------------------------------------------------------------------------

    def add_attribute(self, target: str, value: Any) -> None:
        """Put a tensor, parameter, module or other value at the dotted path `target`, for `get_attr` nodes to fetch."""
        _assign(self, target, value)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add `m` at the dotted path `target`; False if something that is no module is in the way."""
        try:
            _assign(self, target, m)
        except TypeError:
            return False
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at the dotted path `target`; False if there is none."""
        path, _, name = target.rpartition(".")
        try:
            owner = self.get_submodule(path)
        except AttributeError:
            return False
        if name not in owner._modules:
            return False
        del owner._modules[name]
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that no node of the graph names."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    module = self.get_submodule(node.target)
                    used.update(f"{node.target}.{name}" for name, _ in module.named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # Other forms -----------------------------------------------------------------------------

    def print_readable(self, print_output: bool = True, *, include_nested: bool = True) -> str:
        """The code with the dtypes and shapes of all results, nested graphs included; printed and returned."""
        source = self.graph.python_code("self", annotate=True).src
        lines = [f"class {self._class_name}(Module):"]
        lines += ["    " + line if line else "" for line in source.splitlines()]
        if include_nested:
            for name, child in self.named_children():
                if isinstance(child, GraphModule):
                    nested = child.print_readable(False).splitlines()
                    lines += ["", f"    # self.{name}", *("    " + n if n else "" for n in nested)]
        result = "\n".join(lines) + "\n"
        if print_output:
            print(result, end="")
        return result

    def to_text(self, *, comments: bool = True) -> str:
        """The graph's text form, nested graphs included."""
        return self.graph.to_text(comments=comments)

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n{self.code}"

    def _get_name(self) -> str:
        return str(self.__dict__["_class_name"])

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, copy.deepcopy(self.graph), self._class_name)
        copied.meta = dict(self.meta)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        root = Module()
        for kind in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            root.__dict__[kind] = copy.deepcopy(self.__dict__[kind], memo)
        for path in _paths(self.graph):
            name = path.partition(".")[0]
            if name in self.__dict__:
                root.__dict__[name] = copy.deepcopy(self.__dict__[name], memo)
        copied = GraphModule(root, copy.deepcopy(self.graph), self._class_name)
        memo[id(self)] = copied
        for kind in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            copied.__dict__[kind] = root.__dict__[kind]  # also what no node names
        copied.__dict__["training"] = self.training
        copied.meta = dict(self.meta)
        return copied

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "GraphModule: cannot be pickled; keep its text (to_text, argand_fx.parse) and its state_dict"
        )


def _paths(graph: Graph) -> list[str]:
    return list(dict.fromkeys(n.target for n in graph.nodes if n.op in ("get_attr", "call_module")))


def _assign(owner: Module, path: str, value: Any) -> None:
    """Put `value` at a dotted path; modules on the way are made."""
    *parents, name = path.split(".")
    for parent in parents:
        child = getattr(owner, parent, None)
        if child is None:
            child = Module()
            owner.add_module(parent, child)
        if not isinstance(child, Module):
            raise TypeError(
                f"GraphModule: {parent!r} of {path!r} is {type(child).__name__}, expected a module"
            )
        owner = child
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        owner.__dict__.pop(name, None)
        owner._buffers[name] = value
    else:
        setattr(owner, name, value)


def _copy_path(source: Module, owner: Module, path: str) -> None:
    """Share what lies at a dotted path of `source` with `owner`."""
    *parents, name = path.split(".")
    for parent in parents:
        child: Any = getattr(source, parent, None)
        mine = owner._modules.get(parent)
        if mine is child and child is not None:
            return
        if mine is None:
            mine = Module()
            if isinstance(child, Module):
                mine.training = child.training
            owner.add_module(parent, mine)
        source, owner = child, mine
    if not hasattr(source, name):
        raise RuntimeError(
            f"GraphModule: the graph names {path!r}, which the root does not have; "
            "assign it to the root first"
        )
    value = getattr(source, name)
    if name in source.__dict__.get("_buffers", ()):
        owner._buffers[name] = value
        if name in source._non_persistent_buffers_set:
            owner._non_persistent_buffers_set.add(name)
    elif isinstance(value, Tensor) and not isinstance(value, Parameter):
        owner._buffers[name] = value
        owner._non_persistent_buffers_set.add(name)
    else:
        setattr(owner, name, value)
