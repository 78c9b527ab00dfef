"""What is known while tracing: elements of literal tensors, regular expressions on constant text, installed packages, classes registered with abstract ones."""

from __future__ import annotations

import abc
import collections.abc
import datetime
import importlib.metadata
import importlib.util
import keyword
import re
import sys
import types
import typing
from typing import Any

import pytest
from tracing import check, fresh, run, torch  # noqa: F401

import argand_dynamo as dynamo

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7


def test_elements_of_literals() -> None:
    def f(x: Any) -> Any:
        counter, steps = torch.tensor(0), 0
        while counter < 3:
            counter, steps = counter + 1, steps + 1
        scales = [x * v.item() for v in torch.linspace(0, 1, 3)]
        dims = torch.arange(len(x.shape)).tolist()
        y = x.view(torch.tensor([2, 3]).prod(), -1)
        return x.sum(dims), scales, steps, y, int(counter), float(counter), range(counter)

    check(f, X)


def test_elements_that_are_written_drawn_or_given_are_not_known() -> None:
    def written(x: Any) -> Any:
        t = torch.tensor([1.0, 2.0])
        t[0] = x[0, 0]
        return x * t.sum().item()

    def drawn(x: Any) -> Any:
        return x + 0 * torch.rand(1).item()

    def given(x: Any) -> Any:
        return x * (torch.tensor(2.0) * x[0, 1]).item()

    for f in (written, drawn, given):
        assert run(f, (X,), (X,)).breaks
    compiled = dynamo.compile(written, backend="eager")
    for first in (1.0, 5.0):
        x = torch.ones(1, 1) * first
        assert torch.equal(compiled(x), written(x))


def test_installed_packages() -> None:
    def f(x: Any) -> Any:
        spec = importlib.util.find_spec("json")
        try:
            importlib.metadata.version("no-such-package")
        except importlib.metadata.PackageNotFoundError:
            x = x + 1
        missing = importlib.util.find_spec("no_such_package") is None
        return x, spec.name, spec is not None, missing, importlib.metadata.version("numpy")

    check(f, X)


def test_generics() -> None:
    def f(x: Any) -> Any:
        wanted = typing.Dict[str, int]  # noqa: UP006
        kind = typing.cast(list[torch.Tensor], [x + 1])
        origin = typing.get_origin(wanted) is dict, typing.get_origin(list[int]) is list
        return kind, origin, typing.get_args(wanted), isinstance([1], typing.List)  # noqa: UP006

    check(f, X)
    assert check(lambda x: (x + 1, keyword.iskeyword("if")), X).graphs


def test_modules_that_find_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy: Any = types.ModuleType("lazy_for_a_test")
    answers = {"answer": 42}

    def find(name: str) -> int:
        if name in answers:
            return answers[name]
        raise AttributeError(name)

    lazy.__getattr__ = find
    monkeypatch.setitem(sys.modules, lazy.__name__, lazy)

    def f(x: Any) -> Any:
        return x * lazy.answer, hasattr(lazy, "other"), getattr(lazy, "other", 3)

    check(f, X)
    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    for answers["answer"] in (1, 2):
        assert torch.equal(compiled(X)[0], X * answers["answer"])


class Shape(abc.ABC):  # noqa: B024
    pass


class Hooked(abc.ABC):  # noqa: B024
    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return True if hasattr(other, "area") else NotImplemented


def test_classes_are_registered_later() -> None:
    class Square:
        pass

    square: Any = Square()

    def f(x: Any, s: Any) -> Any:
        sized = isinstance(s, collections.abc.Sized)
        return x + 1 * isinstance(s, Shape) + 2 * issubclass(type(s), Hooked) + 4 * sized

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    one = torch.ones(1)
    assert compiled(one, square).item() == 1
    Shape.register(Square)
    assert compiled(one, square).item() == 2
    Square.area = 1  # type: ignore[attr-defined]
    Hooked.register(int)  # empties what the abstract class remembers
    assert compiled(one, square).item() == 4
    collections.abc.Sized.register(Square)
    assert compiled(one, square).item() == 8


def test_local_classes_are_registered_later() -> None:
    class Local(abc.ABC):  # noqa: B024
        pass

    kinds = [Local]

    def f(x: Any) -> Any:
        return x + isinstance(x, kinds[0])

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    one = torch.ones(1)
    assert compiled(one).item() == 1
    Local.register(type(one))
    try:
        assert compiled(one).item() == f(one).item() == 2
    finally:
        dynamo.reset()


def test_methods_of_native_classes_break() -> None:
    holder = type("Holder", (), {"day": datetime.date(2026, 1, 2)})()

    def f(x: Any) -> Any:
        return x + holder.day.replace(year=2027).toordinal() % 7

    for _ in range(2):
        run(f, (X,))
    with pytest.raises(dynamo.GraphBreak):
        dynamo.compile(f, backend="eager", fullgraph=True)(X)


LAYER = re.compile(r"(?P<name>\w+)\.(\d+)")


def test_regular_expressions() -> None:
    def f(x: Any, name: str) -> Any:
        match = LAYER.match(name)
        if not match:
            return x - 1, LAYER.search("zz")
        parts = (
            match.group(1),
            match["name"],
            match.groups(),
            match.span(),
            match.end(2),
            match.groupdict(),
        )
        texts = (
            LAYER.sub(r"\2", name),
            re.sub("a+", "b", name, count=1),
            re.split(r"\.", name),
            re.escape(name),
        )
        found = (
            re.findall(r"\w", name),
            [m.group() for m in re.finditer("a|l", name, re.IGNORECASE)],
        )
        same = LAYER is match.re, re.compile("a") == re.compile("a"), LAYER.pattern, LAYER.flags
        return (
            x * int(match.group(2)),
            parts,
            texts,
            found,
            same,
            match.string,
            LAYER,
            re.compile("b", re.I),
        )

    for name in ("layer.3", "layer"):
        outcome = check(f, X, name)
        assert not outcome.breaks

    def kept(x: Any) -> Any:
        return x + 1, LAYER.match("layer.1")

    assert dynamo.compile(kept, backend="eager")(X)[1].groups() == ("layer", "1")


def test_patterns_from_outside_are_guarded() -> None:
    holder = types.SimpleNamespace(pattern=re.compile("a"))
    compiled = dynamo.compile(
        lambda x: x * len(holder.pattern.findall("aAb")), backend="eager", fullgraph=True
    )
    found = []
    for pattern in (re.compile("a"), re.compile("a", re.I), re.compile("[ab]", re.I)):
        holder.pattern = pattern
        found.append(compiled(torch.ones(1)).item())
    assert found == [1, 2, 3]
