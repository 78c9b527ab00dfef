"""Backends by name: what turns a graph into a callable."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "Backend",
    "check_backend",
    "check_options",
    "has_loader",
    "list_backends",
    "load_artifact",
    "lookup_backend",
    "register_backend",
]

# backend(graph_module, example_inputs, **options) -> callable(*inputs) -> tuple
Backend = Callable[..., Callable[..., Any]]

_GROUP = "argand.backends"
_backends: dict[str, Any] = {"eager": "argand_dynamo.backends.eager:eager"}
_loaders: dict[str, Any] = {}
_checks: dict[str, Any] = {}


def register_backend(
    name: str, backend: Backend | str, *, load: Any = None, check: Any = None
) -> None:
    """Give a backend a name for `compile(..., backend=name)`.

    Args:
        backend: `backend(graph_module, example_inputs, **options)` returns a callable that takes the graph's inputs and
            returns a tuple; or "module:attribute", imported at first use.
        load: `load(data)` makes an artifact from what its `serialize` gave, or None; may also be "module:attribute".
        check: `check(options)` raises for options that the backend does not take, before anything is compiled; may also be
            "module:attribute".
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"register_backend: got the name {name!r}, expected a str")
    if not callable(backend) and not (isinstance(backend, str) and ":" in backend):
        raise TypeError(
            f"register_backend: got {backend!r}, expected a callable or 'module:attribute'"
        )
    _backends[name] = backend
    if load is not None:
        _loaders[name] = load
    if check is not None:
        _checks[name] = check


def _entry_points() -> dict[str, Any]:
    import importlib.metadata  # a quarter of a warm start, for what is seldom asked

    return {point.name: point for point in importlib.metadata.entry_points(group=_GROUP)}


def list_backends() -> list[str]:
    """The names that `compile(..., backend=...)` takes, in alphabetical order."""
    return sorted({*_backends, *_entry_points()})


def check_backend(backend: str | Backend) -> None:
    """Refuse what `lookup_backend` refuses, without importing the backend."""
    if not isinstance(backend, str) or not (backend in _backends or backend in _entry_points()):
        lookup_backend(backend)


def check_options(backend: str | Backend, options: Mapping[str, Any]) -> None:
    """Refuse options, if there are any, that the backend said it does not take."""
    if options and isinstance(backend, str) and backend in _checks:
        _resolve(_checks[backend])(options)


def _resolve(target: Any) -> Any:
    if not isinstance(target, str):
        return target
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def lookup_backend(backend: str | Backend) -> Backend:
    """The backend of a name; callables are backends themselves.

    Raises:
        RuntimeError: if no backend has the name.
    """
    if not isinstance(backend, str):
        if not callable(backend):
            raise TypeError(f"compile: got backend {backend!r}, expected a name or a callable")
        return backend
    if backend not in _backends:
        point = _entry_points().get(backend)
        if point is None:
            raise RuntimeError(
                f"compile: got backend {backend!r}, expected one of {', '.join(list_backends())}"
            )
        _backends[backend] = point.load()
    found: Backend = _resolve(_backends[backend])
    _backends[backend] = found
    return found


def load_artifact(backend: str, data: dict[str, Any]) -> Any:
    """The compiled graph that a backend stored, None if it is gone."""
    loader = _resolve(_loaders.get(backend))
    return None if loader is None else loader(data)


def has_loader(backend: str) -> bool:
    """Whether graphs of the backend can be kept on disk."""
    return backend in _loaders
