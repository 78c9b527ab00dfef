"""Runs functions plain and compiled on equal inputs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

import argand_aten
import argand_autograd
import argand_c10
import argand_dynamo as dynamo
from argand_c10 import Module, Tensor
from argand_c10.records import Record, collect
from argand_dynamo import config

__all__ = ["Outcome", "check", "equal", "fresh", "run", "torch"]


class _Names:
    """The public names of the layers below, as users see them."""

    def __getattr__(self, name: str) -> Any:
        for layer in (argand_c10, argand_autograd, argand_aten):
            if hasattr(layer, name):
                return getattr(layer, name)
        raise AttributeError(name)


torch: Any = _Names()


class Outcome:
    """What compiled calls came to: graphs and records."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.records: list[Record] = []

    def kinds(self, kind: str) -> list[Record]:
        return [record for record in self.records if record.kind == kind]

    @property
    def breaks(self) -> list[str]:
        """Codes of graph breaks."""
        return [record.code for record in self.kinds("graph_break")]

    @property
    def recompiles(self) -> int:
        return len(self.kinds("recompile"))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No compiled code of other tests; errors of the tracer are errors."""
    dynamo.reset()
    with config.patch(suppress_errors=False):
        yield
    dynamo.reset()


def equal(a: Any, b: Any) -> bool:
    """Same types, structure and values; tensors bit for bit, with layout and requires_grad."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return (
            type(a) is type(b)
            and a.shape == b.shape
            and a.dtype == b.dtype
            and a.stride() == b.stride()
            and a.requires_grad == b.requires_grad
            and (a.detach().numpy().tobytes() == b.detach().numpy().tobytes())
        )
    if type(a) is not type(b):
        return False
    if type(a).__name__ == "ndarray":
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if (
        hasattr(a, "__dict__")
        and not isinstance(a, type | FunctionType | Module)
        and type(a).__eq__ in (object.__eq__, type(b).__eq__)
    ):
        return equal(vars(a), vars(b))
    return bool(a == b or (a != a and b != b))


def run(
    fn: Callable[..., Any],
    *calls: tuple[Any, ...],
    fullgraph: bool = False,
    dynamic: bool | None = None,
) -> Outcome:
    """Call `fn` plain and compiled with copies of the arguments; results and arguments afterwards must be equal.

    What a call raises must be of the same type and text.
    """
    outcome = Outcome()

    def backend(module: Any, inputs: Any) -> Any:
        outcome.graphs.append(module)
        return module.forward

    compiled = dynamo.compile(fn, backend=backend, fullgraph=fullgraph, dynamic=dynamic)
    with collect() as records:
        for number, args in enumerate(calls):
            plain, traced = copy.deepcopy(args), copy.deepcopy(args)
            want = _outcome(fn, plain)
            got = _outcome(compiled, traced)
            if isinstance(got, Exception) and not isinstance(want, Exception):
                raise got
            if isinstance(want, Exception):
                assert type(got) is type(want) and str(got) == str(want), (
                    f"call {number}: {got!r}, expected {want!r}"
                )
            else:
                assert equal(got, want), f"call {number}: {got!r}, expected {want!r}"
            assert equal(traced, plain), (
                f"arguments of call {number}: {traced!r}, expected {plain!r}"
            )
    outcome.records = records
    return outcome


def _outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return fn(*args)
    except Exception as error:
        return error


def check(fn: Callable[..., Any], *args: Any, graphs: int | None = 1) -> Outcome:
    """`run` with one call that must be traced as a whole."""
    outcome = run(fn, args, args, fullgraph=True)
    assert outcome.recompiles == 0
    if graphs is not None:
        assert len(outcome.graphs) == graphs
    return outcome
