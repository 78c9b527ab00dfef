"""A run of a model as a graph of TensorFlow's: operators in the modules that call them."""

from __future__ import annotations

from typing import Any

from argand.utils.tensorboard.messages import integer, message
from argand_c10 import Module, Operator, Tensor
from argand_c10.modes import ArgandDispatchMode

__all__ = ["graph_of"]


class _Recording(ArgandDispatchMode):
    """Makes a node of every call.

    Attributes:
        nodes: as messages.
        scopes: the modules that run, as "Net/Linear[first]".
    """

    def __init__(self, verbose: bool) -> None:
        self.nodes: list[bytes] = []
        self.scopes: list[str] = []
        self._verbose = verbose
        self._made: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._alive: list[Tensor] = []  # a tensor's id is its own while it lives

    def add(
        self, name: str, kind: str, inputs: list[str], results: list[Tensor], text: str
    ) -> None:
        """A node whose results these tensors are."""
        count = self._counts[name] = self._counts.get(name, -1) + 1
        unique = f"{name}_{count}" if count else name
        for i, t in enumerate(results):
            self._alive.append(t)
            self._made[id(t)] = f"{unique}:{i}" if i else unique
        shapes = b"".join(message(7, _shape(t)) for t in results)
        attributes = (("_output_shapes", message(1, shapes)), ("attr", message(2, text)))
        node = message(1, unique) + message(2, kind) + b"".join(message(3, x) for x in inputs)
        node += b"".join(message(5, message(1, k) + message(2, v)) for k, v in attributes)
        self.nodes.append(node)
        if self._verbose:
            print(f"{unique} = {kind}({', '.join(inputs)})")

    def __argand_dispatch__(
        self,
        op: Operator,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = op(*args, **(kwargs or {}))
        given = [*args, *(kwargs or {}).values()]
        inputs = [self._made[id(t)] for t in _tensors(given) if id(t) in self._made]
        name = op.name.partition(".")[0].replace("::", "_")
        kind = op.name if "::" in op.name else f"aten::{op.name}"
        settings = ", ".join(str(x) for x in given if not any(True for _ in _tensors(x)))
        self.add("/".join([*self.scopes, name]), kind, inputs, [*_tensors(result)], settings)
        return result


def _shape(t: Tensor) -> bytes:
    return b"".join(message(2, integer(1, n)) for n in t.shape)


def _tensors(tree: Any) -> Any:
    if isinstance(tree, Tensor):
        yield tree
    for part in (
        tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ()
    ):
        yield from _tensors(part)


def graph_of(model: Module, inputs: Any, verbose: bool) -> bytes:
    """A GraphDef of `model(*inputs)`; the parameters and inputs are nodes."""
    given = inputs if isinstance(inputs, tuple | list) else (inputs,)
    recording = _Recording(verbose)
    top = type(model).__name__
    names = {
        module: f"{type(module).__name__}[{path.rpartition('.')[2]}]" if path else top
        for path, module in model.named_modules()
    }
    places = {path: names[module] for path, module in model.named_modules()}
    for path, parameter in model.named_parameters():
        owners = path.split(".")[:-1]
        scope = [top, *(places[".".join(owners[: i + 1])] for i in range(len(owners)))]
        name = "/".join([*scope, path.rpartition(".")[2]])
        recording.add(name, "Parameter", [], [parameter], "")
    for i, t in enumerate(_tensors(given)):
        recording.add(f"input/input_{i}", "IO Node", [], [t], "")

    def enter(module: Module, args: Any) -> None:
        recording.scopes.append(names[module])

    def leave(module: Module, args: Any, result: Any) -> None:
        recording.scopes.pop()

    hooks = []
    for module in names:
        hooks.append(module.register_forward_pre_hook(enter))
        hooks.append(module.register_forward_hook(leave, always_call=True))
    try:
        with recording:
            result = model(*given)
    finally:
        for hook in hooks:
            hook.remove()
    for i, t in enumerate(_tensors(result)):
        made = recording._made.get(id(t))
        recording.add(f"output/output_{i}", "IO Node", [made] if made else [], [], "")
    versions = integer(1, 22)
    return b"".join(message(1, node) for node in recording.nodes) + message(4, versions)
