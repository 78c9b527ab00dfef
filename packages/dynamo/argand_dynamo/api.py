"""`compile` and what users call beside it."""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from argand_c10 import Module
from argand_dynamo import _C
from argand_dynamo._C import CompiledFunction
from argand_dynamo.backends import check_backend, check_options
from argand_dynamo.convert_frame import Owner, Settings, compiled_function, reset_code
from argand_dynamo.marks import ALLOWED, DISABLED

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "compile",
    "disable",
    "get_default_backend",
    "graph_break",
    "reset",
    "set_default_backend",
]

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


_default_backend: str | Callable[..., Any] = "inductor"


def get_default_backend() -> str | Callable[..., Any]:
    """What `compile` takes where it is given no backend."""
    return _default_backend


def set_default_backend(backend: str | Callable[..., Any]) -> None:
    """Let `compile` take another backend where it is given none; "inductor" is the first.

    Raises:
        RuntimeError: if there is no backend of that name.
    """
    global _default_backend
    check_backend(backend)
    _default_backend = backend


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function, method or module at its first call; also a decorator, with or without arguments.

    Args:
        model: the function or module to compile. A `Module` gives an `OptimizedModule` that shares its parameters; the module stays as it is.
        fullgraph: raise `GraphBreak` where the function is not one graph, instead of running parts of it as plain Python.
        dynamic: True: sizes are symbolic from the start; False: never; None: a size becomes symbolic when it has changed.
        backend: a name in `list_backends()`, or `backend(graph_module, example_inputs, **options)` that returns a callable
            from the graph's inputs to a tuple; by default `get_default_backend()`.
        mode: "default", "reduce-overhead", "max-autotune" or "max-autotune-no-cudagraphs".
        options: for the backend; not together with `mode`.
        disable: return `model` as it is.

    Raises:
        RuntimeError: if the backend or mode does not exist, or both a mode and options are given; for options that the backend "inductor" does not know.
        AssertionError: if `model` cannot be called.
    """
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )  # fmt: skip
    if disable:
        return model
    if not callable(model):
        raise AssertionError(
            f"compile: got {type(model).__name__}, expected a function or a Module"
        )
    chosen = get_default_backend() if backend is None else backend
    settings = _settings(fullgraph, dynamic, chosen, mode, options)
    if isinstance(model, Module):
        return model if isinstance(model, OptimizedModule) else OptimizedModule(model, settings)
    return _compiled(model, settings)


def _settings(
    fullgraph: bool,
    dynamic: bool | None,
    backend: Any,
    mode: str | None,
    options: Mapping[str, Any] | None,
) -> Settings:
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"compile: got mode {mode!r}, expected one of {', '.join(_MODES)}")
    if mode is not None and options is not None:
        raise RuntimeError(
            "compile: got both mode and options, expected one of them; a mode is a set of options"
        )
    check_backend(backend)
    given = dict(options or {})
    check_options(backend, given)
    if mode is not None and mode != "default":
        given["mode"] = mode
    return Settings(backend, fullgraph, dynamic, tuple(sorted(given.items())))


def _compiled(fn: Any, settings: Settings) -> Any:
    if isinstance(fn, CompiledFunction):
        inner: Any = fn.__wrapped__
        return compiled_function(inner, settings)
    if isinstance(fn, types.MethodType) and isinstance(fn.__func__, types.FunctionType):
        return types.MethodType(compiled_function(fn.__func__, settings), fn.__self__)
    if isinstance(fn, types.FunctionType):
        return compiled_function(fn, settings)
    call = getattr(type(fn), "__call__", None)  # noqa: B004  (the function itself is wanted)
    if isinstance(call, types.FunctionType):
        return types.MethodType(compiled_function(call, settings), fn)

    def run(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper: Any = functools.update_wrapper(run, fn, updated=())
    return compiled_function(wrapper, settings)


class OptimizedModule(Module):
    """A module whose calls are compiled. Attributes, parameters and state are those of the module inside."""

    _orig_mod: Module

    def __init__(self, module: Module, settings: Settings) -> None:
        super().__init__()
        fields = self.__dict__
        fields["_modules"]["_orig_mod"] = module
        own = replace(settings, owner=Owner(_structure(module)))
        fields["_settings"] = own
        fields["_compiled_call"] = _module_call(module, own)
        fields["training"] = module.training

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled_call"](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled_call"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self.__dict__["_modules"]["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "forward":
            object.__setattr__(self, name, value)
            return
        if name == "training":
            self.__dict__["training"] = value
        setattr(self.__dict__["_modules"]["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_modules"]["_orig_mod"], name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *dir(self._orig_mod)})

    def __len__(self) -> int:
        inner: Any = self._orig_mod
        return len(inner)

    def __getitem__(self, key: Any) -> Any:
        inner: Any = self._orig_mod
        return inner[key]

    def __iter__(self) -> Iterator[Any]:
        inner: Any = self._orig_mod
        return iter(inner)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._orig_mod, memo), self.__dict__["_settings"])

    def __reduce__(self) -> Any:
        raise TypeError(
            "OptimizedModule: cannot be pickled; pickle the module inside (`_orig_mod`) or its state_dict"
        )

    def __repr__(self) -> str:
        inner = repr(self._orig_mod).replace("\n", "\n  ")
        return f"OptimizedModule(\n  (_orig_mod): {inner}\n)"


def _structure(module: Module) -> str:
    """A hash of a module's classes, names and parameter sizes: equal for equal models in every process."""
    digest = hashlib.sha256()
    for name, part in module.named_modules():
        digest.update(f"{name}:{type(part).__module__}.{type(part).__qualname__};".encode())
    for name, parameter in module.named_parameters():
        digest.update(f"{name}:{tuple(parameter.shape)};".encode())
    return digest.hexdigest()


def _module_call(module: Module, settings: Settings) -> Any:
    call: Any = type(module).__call__
    if isinstance(call, types.FunctionType):
        return types.MethodType(compiled_function(call, settings), module)
    return _compiled(module, settings)


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Have a function run as plain Python, also where compiled functions call it; also a decorator.

    Args:
        fn: a function, or a Module, whose calls are disabled then.
        recursive: whether functions that it calls stay plain too; if not, they are compiled on their own.
        reason: for readers of the program.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive)
    if isinstance(fn, CompiledFunction):
        fn = fn.__wrapped__
    if isinstance(fn, OptimizedModule):
        return fn._orig_mod
    if isinstance(fn, Module):
        object.__setattr__(fn, "forward", disable(fn.forward, recursive))
        return fn
    if not callable(fn):
        raise TypeError(f"disable: got {type(fn).__name__}, expected a function or a Module")

    def run(*args: Any, **kwargs: Any) -> Any:
        if not recursive:
            return fn(*args, **kwargs)
        was_on = _C.set_hook(False)
        try:
            return fn(*args, **kwargs)
        finally:
            _C.set_hook(was_on)

    if not inspect.isclass(fn):
        functools.update_wrapper(run, fn)
    setattr(run, DISABLED, True)
    _C.skip_code(run.__code__)
    return run


def allow_in_graph(fn: Any) -> Any:
    """Let compiled functions call `fn` on traced tensors instead of tracing its bytecode; returns `fn`.

    `fn` must depend on its arguments only and use operators on tensors only: its operators become part of the graph.
    A class is taken too, and what it makes is traced as ever.
    """
    if isinstance(fn, list | tuple):
        return [allow_in_graph(item) for item in fn]
    if isinstance(fn, type):
        return fn
    if not isinstance(fn, types.FunctionType):
        raise TypeError(f"allow_in_graph: got {type(fn).__name__}, expected a Python function")
    setattr(fn, ALLOWED, True)
    return fn


def graph_break() -> None:
    """End the graph here, where a compiled function is traced; does nothing otherwise."""


def reset() -> None:
    """Forget everything that was compiled in this process."""
    reset_code()
