"""What compilers know of operators: shapes, dtypes, bodies, derivatives and lowerings, by overload name.

Packages that bring operators register a provider of their rules; packages that compile ask `rules_of`. A provider is
called at the first look-up after its registration, so that importing a package costs nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from argand_c10._C import Operator, _named_overload
from argand_c10.fork import renew_in_child

__all__ = [
    "Definition",
    "Rules",
    "attribute_of",
    "called_overload",
    "definitions",
    "graph_passes",
    "named_overload",
    "names_of",
    "operator_attributes",
    "overload_names",
    "register_graph_pass",
    "register_overload_chooser",
    "register_overload_names",
    "register_rules",
    "rules_of",
]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one overload; what an operator has no rule for is None.

    Attributes:
        kind: as in its registry: "pointwise", "reduction", "scan", "view", "index", "factory", "random",
            "contraction", "composite" or "opaque".
        shape: `shape(*args, **kwargs)` -> the result's sizes, or an object with `sizes`, `strides` and `offset`;
            a tuple of such for several results. Sizes may be symbolic.
        dtype: `dtype(*args, **kwargs)` -> the result's dtype; a tuple for several results.
        fake: in place of `shape` and `dtype`: `fake(*args, **kwargs)` -> the results themselves, of a compiler's tensors; what
            it makes without a tensor is such, too.
        composite: `composite(ops, *args, **kwargs)` -> the results, made of calls of the attributes of `ops`.
        kernels: types of devices where a kernel takes the composite's place.
        derivative: `derivative(ops, grads, args, results, needs)` -> a gradient or None per argument.
        derivative_body: like `composite`; the operator is derived by deriving this body in its place.
        differentiable: whether floating results of floating inputs carry gradients.
        autocast: what autocast does with the tensors on the CPU, and on other devices: "lower" casts them to the region's
            dtype, "float32" to that, "promote" to the widest of theirs, "none" leaves them, also inside of a body.
        lowering: how a code generator makes loops of it; defined by the code generator.
        host_work: a call does something on the host that matters each time, so that a recording of its device's work cannot stand for it.
    """

    kind: str
    shape: Callable[..., Any] | None = None
    dtype: Callable[..., Any] | None = None
    fake: Callable[..., Any] | None = None
    composite: Callable[..., Any] | None = None
    kernels: frozenset[str] = frozenset()
    derivative: Callable[..., Any] | None = None
    derivative_body: Callable[..., Any] | None = None
    differentiable: bool = True
    autocast: tuple[str, str] | None = None
    lowering: Any = None
    host_work: bool = False


class Definition(Protocol):
    """An operator that a program has defined, and may define anew.

    Attributes:
        operator: the operator.
        tags: what the program says of it.
        version: changes with what compiled programs hold of it.
        has_formula: whether `recorded` gives it gradients.
        regions: what is called in its place in autocast regions of a device type, by its name.
    """

    operator: Operator
    tags: tuple[Any, ...]
    version: str
    has_formula: bool
    regions: dict[str, Callable[..., Any]]

    def recorded(self, *args: Any, **kwargs: Any) -> Any:
        """Call it so that gradients flow: in Python, which tracers follow."""


Provider = Callable[[], Mapping[str, Rules]]
# Changes arguments of a package's own operators in a graph: anything with `nodes`, each with `op`, `target`, `args` and `meta`.
GraphPass = Callable[[Any], Any]

_lock = threading.RLock()
renew_in_child(_lock)  # another thread may hold it
_pending: list[Provider] = []
_rules: dict[str, Rules] = {}
_graph_passes: list[GraphPass] = []
_pending_names: list[Callable[[], Mapping[str, str]]] = []
_names: dict[str, str] = {}
_named: dict[tuple[Operator, str], Operator] = {}
_choose: Callable[..., Operator] | None = None
definitions: dict[str, Definition] = {}  # by the operator's name
# What operators have besides their own attributes and their overloads.
operator_attributes: dict[str, Callable[[Operator], Any]] = {}


def register_rules(provider: Provider) -> None:
    """Add the rules that `provider()` returns, by overload name; later providers win."""
    with _lock:
        _pending.append(provider)


def _load() -> None:
    with _lock:
        while _pending:
            _rules.update(_pending[0]())
            del _pending[0]


def rules_of(op: Operator | str) -> Rules | None:
    """The rules of an overload, given as Operator or by its name ("add", "max.dim"); None if it has none."""
    if _pending:
        _load()
    return _rules.get(op if isinstance(op, str) else op.name)


def register_overload_names(provider: Callable[[], Mapping[str, str]]) -> None:
    """Add the names that overloads have elsewhere: by operator a text as "Tensor Scalar=other", where Scalar stands for the overload "other"."""
    with _lock:
        _pending_names.append(provider)


def overload_names(op: Operator) -> list[str]:
    """The names of an operator's overloads."""
    return list(_overloads_by_name(op)[0])


def names_of(packet: Operator, op: Operator) -> tuple[str, ...]:
    """The names of one of an operator's overloads, but for those of calls that are given their results."""
    named = _overloads_by_name(packet)[0]
    return tuple(name for name, one in named.items() if one is op and "out" not in name.split("_"))


def attribute_of(op: Operator, name: str) -> Any:
    """What operators have under this name besides their own attributes; None if there is no such thing."""
    if name in operator_attributes:
        return operator_attributes[name](op)
    return None if name.startswith("_") else named_overload(op, name)


def named_overload(op: Operator, name: str) -> Operator | None:
    """The overload of a name; None if there is none."""
    if (op, name) in _named:
        return _named[op, name]
    named, own = _overloads_by_name(op)
    found = named.get(name) or own.get(name)
    if found is op and name == "default":  # an operator of one overload, or that overload
        return op
    if found is not None:
        alone = found is not op and [*named.values()].count(found) <= 1
        namespace, _, short = op.name.rpartition("::")
        shown = f"{namespace or 'aten'}.{short.partition('.')[0]}.{name}"
        found = _named[op, name] = _named_overload(found, shown, alone)
    return found


class ShownName(str):
    """An operator's name; called, the full name of an overload."""

    __slots__ = ("full",)
    full: str

    def __call__(self) -> str:
        return self.full


def full_name(shown: str) -> str:
    """aten::add.Scalar."""
    return shown.removesuffix(".default").replace(".", "::", 1)


def shown_name(name: str, shown: str) -> str:
    """The operator's name, which can be called."""
    given = ShownName(name)
    given.full = full_name(shown)
    return given


def short_name(_: Operator, shown: str) -> str:
    """add.Scalar."""
    return shown.partition(".")[2]


def _overloads_by_name(op: Operator) -> tuple[dict[str, Operator], dict[str, Operator]]:
    """By the names that are known elsewhere, and by those here."""
    with _lock:
        while _pending_names:
            _names.update(_pending_names[0]())
            del _pending_names[0]
    own = {v.name.partition(".")[2] or "default": v for v in op.variants}
    default = own.get("default", op.variants[0])
    if op.name not in _names:
        writes = op.is_view or op.is_inplace or op.name in definitions
        return (own if writes else {**own, "out": op}), own
    entries = [entry.partition("=") for entry in _names[op.name].split()]
    # All overloads together take `out`.
    return {
        name: op if "out" in name.split("_") else own.get(here or name, default)
        for name, _, here in entries
    }, own


def register_overload_chooser(choose: Callable[..., Operator]) -> None:
    """Have `choose(op, args, kwargs)` say which of the overloads that have names elsewhere a call is."""
    global _choose
    _choose = choose


def called_overload(op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Operator:
    """The overload that a call is, by its name elsewhere; the operator itself where nothing says that."""
    return op if _choose is None else _choose(op, args, kwargs)


def register_graph_pass(run: GraphPass) -> None:
    """Have `run(graph)` called with every functional graph before it is compiled; it may change what its package's operators
    are called with."""
    _graph_passes.append(run)


def graph_passes() -> tuple[GraphPass, ...]:
    """What packages with operators want to do with graphs that are to be compiled."""
    return tuple(_graph_passes)
