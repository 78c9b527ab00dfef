"""What libraries on top of Argand need to take part in `__torch_function__`: `torch.overrides`."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from argand_c10 import _C, Operator, Tensor
from argand_c10.function_mode import BaseTorchFunctionMode, TorchFunctionMode
from argand_fx.schema import parse_schema

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is entered, or the type of one of the objects takes over calls in which it appears, by a `__torch_function__` of its own."""
    return _C._has_override(*relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """`has_torch_function((obj,))`"""
    return _C._has_override(obj)


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function(relevant_args)`"""
    return _C._has_override(*relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the innermost mode, or else the first of the objects' types answers to `public_api(*args, **kwargs)`: subclasses before their bases, else from the left.

    Raises:
        TypeError: none of them answers.
    """
    return _C._handle_override(public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function whose arguments, those that `dispatcher` gives for them, may take over its calls."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or an object with `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


_NAMESPACES = ("", ".functional", ".nn.functional", ".linalg", ".fft", ".special")


@functools.cache
def _namespaces() -> dict[Any, dict[str, Any]]:
    """The public callables of modules and of `Tensor` by name; of a method what `__torch_function__` gets for it."""
    found: dict[Any, dict[str, Any]] = {}
    for path in _NAMESPACES:
        module = importlib.import_module(f"argand{path}")
        names = getattr(module, "__all__", None) or dir(module)
        values = {name: getattr(module, name) for name in names if not name.startswith("_")}
        found[module] = {n: v for n, v in values.items() if callable(v) and not isinstance(v, type)}
    methods: dict[str, Any] = {}
    for name in dir(Tensor):
        method = inspect.getattr_static(Tensor, name)
        if isinstance(method, _C.OperatorMethod):
            methods[name] = _C._operator_by_name(method.name)
        elif name in ("__getitem__", "__setitem__"):
            methods[name] = method
    found[Tensor] = methods
    return found


def _asks(function: Any) -> bool:
    return isinstance(function, Operator) or inspect.ismethoddescriptor(function)


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions whose calls types and modes take over, as `__torch_function__` gets them, by module or class: the operators."""
    return {
        place: [function for function in named.values() if _asks(function)]
        for place, named in _namespaces().items()
    }


def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions whose calls nothing takes over; those that are made of operators ask by these."""
    return {f for named in _namespaces().values() for f in named.values() if not _asks(f)}


def resolve_name(f: Any) -> str | None:
    """The name by which a program finds a function that `get_overridable_functions` has, as "argand.add"; None for others."""
    for place, named in _namespaces().items():
        for name, function in named.items():
            if function is f and _asks(f):
                return f"{'argand.Tensor' if place is Tensor else place.__name__}.{name}"
    return None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is what `__torch_function__` gets for a method of tensors, or reads a property of theirs."""
    properties = (getattr(func, "__self__", None), getattr(func, "__objclass__", None))
    reads = getattr(func, "__name__", "") == "__get__" and any(
        isinstance(p, property) or inspect.isgetsetdescriptor(p) for p in properties
    )
    return reads or any(func is method for method in _namespaces()[Tensor].values())


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For every function that can be taken over one that takes its arguments, those of its first overload, and gives -1."""
    functions = {id(f): f for named in get_overridable_functions().values() for f in named}
    return {f: _dummy(f) for f in functions.values()}


def _dummy(function: Callable[..., Any]) -> Callable[..., int]:
    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    if isinstance(function, Operator):
        schema = parse_schema(function.schemas[0])
        override.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(
                    {"self": "input", "from": "from_"}.get(a.name, a.name),
                    inspect.Parameter.KEYWORD_ONLY
                    if a.kwonly
                    else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=a.default if a.has_default else inspect.Parameter.empty,
                )
                for a in schema.arguments
            ]
        )
    return override
