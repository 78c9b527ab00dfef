"""Recording Python code into graphs: `Tracer` and `symbolic_trace`."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from argand_c10 import Module, Tensor
from argand_fx.graph import Graph
from argand_fx.graph_module import GraphModule
from argand_fx.leaf_functions import places
from argand_fx.proxy import ParameterProxy, Proxy, TraceError, TracerBase, is_traced

__all__ = ["Tracer", "TracerBase", "symbolic_trace", "wrap"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Tracer(TracerBase):
    """Records a module or function.

    Override `is_leaf_module` to choose which modules stay single calls, `create_node`, `create_arg`,
    `to_bool` and `call_module` for more.

    Args:
        autowrap_modules: modules whose functions become one node each when called with proxies.
        autowrap_functions: functions for which the same holds.
        param_shapes_constant: proxies of parameters answer `shape`, `dtype` and the like with constants.
    """

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = True,
    ) -> None:
        self.autowrap_modules = autowrap_modules
        self.autowrap_functions = autowrap_functions
        self.param_shapes_constant = param_shapes_constant
        self.root: Module = Module()
        self.submodule_paths: dict[Module, str] = {}
        self._parameters: dict[int, str] = {}
        self._parameter_proxies: dict[str, Proxy] = {}
        self._constants: dict[int, str] = {}

    # What users override ---------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of `m` become `call_module` nodes instead of being traced through.

        By default the library's own modules, except containers.
        """
        package = type(m).__module__
        return (
            package.partition(".")[0].startswith("argand")
            and not isinstance(m, GraphModule)
            and not package.endswith(".container")
        )

    def path_of_module(self, mod: Module) -> str:
        """The dotted path of a module below the root."""
        path = self.submodule_paths.get(mod)
        if path is None:
            raise TraceError(
                f"path_of_module: got a {type(mod).__name__} that is no submodule of the traced module; "
                "assign it to an attribute"
            )
        return path

    def call_module(
        self,
        m: Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Called for each call of a module: a node for a leaf, else `forward`."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    # Tracing ---------------------------------------------------------------------------------

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._path_of_tensor(a), (), {})
        if isinstance(a, Module) and a in self.submodule_paths:
            return self.create_node("get_attr", self.submodule_paths[a], (), {})
        return super().create_arg(a)

    def _path_of_tensor(self, tensor: Tensor) -> str:
        path = self._parameters.get(id(tensor)) or self._constants.get(id(tensor))
        if path is None:
            number = len(self._constants)
            while hasattr(self.root, f"_tensor_constant{number}"):
                number += 1
            path = f"_tensor_constant{number}"
            self.root.register_buffer(path, tensor, persistent=False)
            self._constants[id(tensor)] = path
        return path

    def getattr(self, value: Any) -> Any:
        """What reading an attribute of a module gives while tracing: a proxy for its tensors."""
        path = self._parameters.get(id(value)) if isinstance(value, Tensor) else None
        if path is None:
            return value
        if path not in self._parameter_proxies:
            make = (
                (lambda node: ParameterProxy(node, self, path, value))
                if self.param_shapes_constant
                else None
            )
            self._parameter_proxies[path] = self.create_proxy(
                "get_attr", path, (), {}, proxy_factory_fn=make
            )
        return self._parameter_proxies[path]

    def trace(
        self,
        root: Module | Callable[..., Any],
        concrete_args: dict[str, Any] | None = None,
    ) -> Graph:
        """The graph of a module or function.

        Args:
            root: what to trace.
            concrete_args: arguments, by name, that are constants instead of inputs.

        Raises:
            TraceError: if the program needs a value that is not known while tracing.
        """
        function: Any
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
            if isinstance(root, GraphModule):
                function = root.forward.__func__
        else:
            self.root, function = Module(), root
        self.graph = Graph(owning_module=self.root)
        self.submodule_paths = {m: name for name, m in self.root.named_modules()}
        self._constants = {}
        self._parameter_proxies = {}
        self._tensor_paths()
        function, args = self._inputs(function, isinstance(root, Module), concrete_args or {})
        with _patched(self, function):
            result = function(*args)
            self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _tensor_paths(self) -> None:
        """Learn where the tensors lie: parameters and buffers, and tensors that are plain attributes."""
        self._parameters = {id(t): name for name, t in self.root.named_buffers()}
        self._parameters.update({id(t): name for name, t in self.root.named_parameters()})
        for module, path in self.submodule_paths.items():
            for name, value in module.__dict__.items():
                if isinstance(value, Tensor):
                    self._constants[id(value)] = f"{path}.{name}" if path else name

    def _inputs(
        self, function: Any, bound: bool, concrete: dict[str, Any]
    ) -> tuple[Callable[..., Any], list[Any]]:
        """What to call with which positional arguments: proxies, constants, and the root for `self`.

        A function with `*args` or `**kwargs` is called in a form in which those are ordinary parameters.
        """
        parameters = inspect.signature(function).parameters
        unknown = set(concrete) - set(parameters)
        if unknown:
            raise TypeError(
                f"symbolic_trace: concrete_args names {', '.join(sorted(unknown))}, expected parameters of "
                f"{getattr(function, '__name__', 'the function')}: {', '.join(parameters)}"
            )
        values: dict[str, Any] = {}
        for i, (name, parameter) in enumerate(parameters.items()):
            if bound and i == 0:
                values[name] = self.root
            elif name in concrete:
                values[name] = self._concrete(concrete[name])
            elif parameter.kind is parameter.VAR_POSITIONAL:
                values[name] = self._placeholder("*" + name, ())
            elif parameter.kind is parameter.VAR_KEYWORD:
                values[name] = self._placeholder("**" + name, ())
            else:
                default = () if parameter.default is parameter.empty else (parameter.default,)
                values[name] = self._placeholder(name, default)
        if all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values()):
            return function, list(values.values())
        flat = _all_positional(function)
        return flat, [values[name] for name in flat.__code__.co_varnames[: len(values)]]

    def _placeholder(self, target: str, default: tuple[Any, ...]) -> Proxy:
        return self.create_proxy("placeholder", target, default, {})  # type: ignore[no-any-return]

    def _concrete(self, value: Any) -> Any:
        """A constant; `PH` inside of it, at any depth, becomes an input."""
        if value is PH:
            return self._placeholder(f"ph_{self.graph._count}", ())
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return type(value)(self._concrete(item) for item in value)
        if isinstance(value, dict):
            return {key: self._concrete(item) for key, item in value.items()}
        return value


class _Placeholder:
    """See `PH`."""

    def __repr__(self) -> str:
        return "PH"


PH = _Placeholder()  # marks, inside concrete_args, the places of inputs


def _all_positional(function: Any) -> types.FunctionType:
    """The function with `*args`, `**kwargs` and keyword-only parameters as ordinary ones, in the order of its locals."""
    plain = inspect.unwrap(function)
    if not isinstance(plain, types.FunctionType):
        raise TraceError(
            f"symbolic_trace: {function!r} is not a Python function; trace a function that calls it"
        )
    code = plain.__code__
    variable = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    flat = code.replace(
        co_argcount=count,
        co_kwonlyargcount=0,
        co_posonlyargcount=0,
        co_flags=code.co_flags & ~variable,
    )
    return types.FunctionType(flat, plain.__globals__, plain.__name__, None, plain.__closure__)


# Patches ---------------------------------------------------------------------------------------

_wrapped: dict[tuple[int, str], tuple[dict[str, Any], str]] = {}
_patch_lock = threading.RLock()


def wrap(fn_or_name: _Function | str) -> _Function | str:
    """Let calls of a function become single nodes instead of being traced through.

    Call it at the top level of the module that calls the function, with its name, or as a decorator.

    Args:
        fn_or_name: the function, or the name by which the module calls it (also a builtin's: `wrap("len")`).
    """
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise RuntimeError(
            f"wrap: called inside of a function, expected the top level of a module ({name!r})"
        )
    _wrapped[(id(frame.f_globals), name)] = (frame.f_globals, name)
    return fn_or_name


@contextmanager
def _patched(tracer: Tracer, function: Any) -> Iterator[None]:
    """While open, modules called and read by this thread go through the tracer."""
    thread = threading.get_ident()
    call, read = Module.__call__, Module.__getattr__
    graph_call = GraphModule.__call__

    def traced_call(self: Module, *args: Any, **kwargs: Any) -> Any:
        original: Any = graph_call if isinstance(self, GraphModule) else call
        if threading.get_ident() != thread or self not in tracer.submodule_paths:
            if threading.get_ident() == thread and is_traced((args, kwargs)):
                tracer.path_of_module(self)
            return original(self, *args, **kwargs)
        return tracer.call_module(self, functools.partial(original, self), args, kwargs)

    def traced_read(self: Module, name: str) -> Any:
        value = read(self, name)
        return tracer.getattr(value) if threading.get_ident() == thread else value

    with _patch_lock:
        undo: list[tuple[dict[str, Any], str, Any]] = []
        targets = {(id(scope), name): (scope, name) for scope, name in _wrapped.values()}
        for scope, name in _automatic(tracer, function):
            targets.setdefault((id(scope), name), (scope, name))
        for scope, name in targets.values():
            undo.append((scope, name, scope.get(name, _ABSENT)))
            original = scope[name] if name in scope else getattr(builtins, name)
            scope[name] = _single_node(tracer, original)
        Module.__call__, Module.__getattr__ = traced_call, traced_read  # type: ignore[method-assign]
        GraphModule.__call__ = traced_call  # type: ignore[method-assign]
        try:
            yield
        finally:
            Module.__call__, Module.__getattr__ = call, read  # type: ignore[method-assign]
            GraphModule.__call__ = graph_call  # type: ignore[method-assign]
            for scope, name, original in reversed(undo):
                if original is _ABSENT:
                    del scope[name]
                else:
                    scope[name] = original


_ABSENT = object()


def _automatic(tracer: Tracer, function: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Where functions of the tracer's autowrap lists are called from: their modules, and the traced function's globals."""
    functions = set(tracer.autowrap_functions)
    for scope, name in places():
        functions.add(scope[name])
        yield scope, name
    for module in tracer.autowrap_modules:
        for name, value in list(vars(module).items()):
            if callable(value) and not name.startswith("_"):
                functions.add(value)
                yield vars(module), name
    callers = [function, *(type(m).forward for m in tracer.submodule_paths)]
    scopes = [getattr(inspect.unwrap(caller), "__globals__", {}) for caller in callers]
    for scope in {id(scope): scope for scope in scopes}.values():
        for name, value in list(scope.items()):
            try:
                if value in functions:
                    yield scope, name
            except TypeError:
                continue  # cannot be hashed, is no function


def _single_node(tracer: Tracer, original: Any) -> Any:
    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        if is_traced((args, kwargs)):
            return tracer.create_proxy("call_function", original, args, kwargs)
        return original(*args, **kwargs)

    return recorded


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """The GraphModule of a module or function, recorded by calling it with proxies.

    Args:
        root: what to trace; its control flow may depend on constants and on concrete arguments only.
        concrete_args: arguments, by name, that are constants instead of inputs.

    Raises:
        TraceError: if the program needs a value that is not known while tracing, with what to do.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = (
        type(root).__name__
        if isinstance(root, Module)
        else getattr(root, "__name__", "GraphModule")
    )
    gm = GraphModule(tracer.root, graph, name)
    return gm
