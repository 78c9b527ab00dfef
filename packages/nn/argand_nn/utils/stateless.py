"""Calls of modules with other parameters than their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import argand_aten as aten
from argand_c10 import Module, Tensor

__all__ = ["functional_call", "stack_module_state"]


def _places(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """Every parameter and buffer by dotted name: the dict that holds it, and its name there."""
    places: dict[str, tuple[dict[str, Any], str]] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for entries in (part._parameters, part._buffers):
            for name, value in entries.items():
                if value is not None:
                    places[f"{path}.{name}" if path else name] = (entries, name)
    return places


@contextmanager
def _replaced(
    module: Module, tensors: dict[str, Tensor], tie_weights: bool, strict: bool
) -> Iterator[None]:
    places = _places(module)
    unknown = [name for name in tensors if name not in places]
    missing = [name for name in places if name not in tensors]
    chosen = {name: value for name, value in tensors.items() if name in places}
    if tie_weights:
        given: dict[int, str] = {}
        for name, value in chosen.items():
            entries, key = places[name]
            tied = given.setdefault(id(entries[key]), name)
            if chosen[tied] is not value:
                raise ValueError(
                    f"functional_call: got several values for {[tied, name]}, which are tied in "
                    f"{type(module).__name__}; pass one value, or tie_weights=False"
                )
        for name in missing:
            entries, key = places[name]
            source = given.get(id(entries[key]))
            if source is not None:
                chosen[name] = tensors[source]
        missing = [name for name in missing if name not in chosen]
    if strict and (missing or unknown):
        raise RuntimeError(
            f"functional_call: got no {missing}, and unexpected {unknown}, expected all parameters and "
            f"buffers of {type(module).__name__} alone with strict=True"
        )
    kept = []
    try:
        for name, value in chosen.items():
            entries, key = places[name]
            kept.append((entries, key, entries[key]))
            entries[key] = value
        yield
    finally:
        for name in tensors.keys() & places.keys():  # what the module put in their place
            entries, key = places[name]
            tensors[name] = entries[key]
        for entries, key, value in reversed(kept):
            entries[key] = value


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with the given tensors in the place of its parameters and buffers.

    Args:
        module: is as before afterwards.
        parameter_and_buffer_dicts: tensors by dotted name, or several such mappings. Buffers that
            the module replaces are replaced there; names that it does not know are left alone.
        args: of the call; a value that is no tuple is the only argument.
        kwargs: of the call.
        tie_weights: replace a shared parameter under all of its names.
        strict: require a tensor for every parameter and buffer, and for nothing else.

    Raises:
        ValueError: for other things than mappings, a name in several of them, or several values for a shared parameter that is tied.
        RuntimeError: with `strict`, for names that are missing or unknown.
    """
    if isinstance(parameter_and_buffer_dicts, Mapping):
        tensors = parameter_and_buffer_dicts
    else:
        if not isinstance(parameter_and_buffer_dicts, (list, tuple)) or not all(
            isinstance(part, Mapping) for part in parameter_and_buffer_dicts
        ):
            raise ValueError(
                f"functional_call: got {parameter_and_buffer_dicts!r}, expected a mapping of names to tensors, or a list of such"
            )
        tensors = {}
        for part in parameter_and_buffer_dicts:
            twice = sorted(tensors.keys() & part.keys())
            if twice:
                raise ValueError(
                    f"functional_call: got {twice} in several mappings, expected in one"
                )
            tensors.update(part)
    given: tuple[Any, ...] = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, tensors, tie_weights, strict):
        return module(*given, **(kwargs or {}))


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of models of one kind, each stacked along a new dimension 0.

    The results serve `functional_call` under `vmap`. Parameters are leaves that need gradients where
    those of the models do.
    """
    if not models:
        raise RuntimeError("stack_module_state: got no models, expected at least one")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: got models of several classes, expected one class")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: got models in different modes, expected one mode")

    def stack(kind: str) -> dict[str, Tensor]:
        members: list[dict[str, Tensor]] = [dict(getattr(m, kind)()) for m in models]
        result = {}
        for name, first in members[0].items():
            value = aten.stack([part[name].detach() for part in members])
            result[name] = value.requires_grad_(first.requires_grad)
        return result

    return stack("named_parameters"), stack("named_buffers")
