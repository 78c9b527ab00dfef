"""Random programs: control flow, mutation, closures, views, in-place changes, breaks in the middle of expressions, blocks and loops.

`source(seed)` is the text of a function `f(x, y, o, n)`; `outcome(f)` runs it on fresh arguments and gives all that can be seen of the run: the result,
what `note` logged, the object's attributes, gradients, or the exception with its line.
"""

from __future__ import annotations

import gc
import random
import traceback
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tracing import torch

FILE = "<random program>"
log: list[Any] = []


def note(value: Any) -> Any:
    """Logs a value; a break wherever it is called from."""
    gc.isenabled()  # a native function that the tracer does not know
    log.append(value.detach().tolist() if isinstance(value, torch.Tensor) else value)
    return value


class Manager:
    """Logs how its block ends, and may swallow exceptions."""

    def __init__(self, name: int, swallow: bool = False) -> None:
        self.name = name
        self.swallow = swallow

    def __enter__(self) -> int:
        log.append(("enter", self.name))
        return self.name

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        log.append(("exit", self.name, kind and kind.__name__))
        return self.swallow


class Base:
    """An object with state."""

    def __init__(self, value: int) -> None:
        self.value = value

    def method(self, t: Any, *rest: Any, k: int = 1, **others: Any) -> Any:
        return t * self.value + k + len(rest)


class Derived(Base):
    """Its methods break and change it."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.noted = note(value)

    def method(self, t: Any, *rest: Any, k: int = 2, **others: Any) -> Any:
        first = super().method(t, *rest, k=note(k))
        self.value += 1
        return first + super().method(t, *rest, **others)


class Writer:
    """Writes one program. Depth limits nesting; leaves are variables and small numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def often(self, part: float) -> bool:
        return self.random.random() < part

    def name(self) -> str:
        return self.pick("x", "y", "z")

    def tensor(self, depth: int = 0) -> str:
        if depth > 2 or self.often(0.25):
            return self.name()
        t, n, b = self.tensor, self.number, self.condition
        d = depth + 1
        return self.random.choice(
            (
                lambda: f"({t(d)} + {t(d)})",
                lambda: f"({t(d)} * {n(d)})",
                lambda: f"note({t(d)})",
                lambda: f"({t(d)} if {b(d)} else {t(d)})",
                lambda: f"o.method({t(d)}, {n(d)}, k={n(d)})",
                lambda: f"o.method({t(d)}, *[1, 2], **{{'k': {n(d)}}})",
                lambda: f"[{t(d)}, {t(d)}][{self.pick('0', '1', '-1')}]",
                lambda: f"(lambda q, r={n(d)}: q + r)({t(d)})",
                lambda: f"inner({t(d)})",
                lambda: f"sum([{t(d)} for q in range({self.random.randint(1, 3)})])",
                lambda: f"dict(a={t(d)}, b={n(d)})['a']",
                lambda: (
                    f"{t(d)}.{self.pick('relu()', 'clone()', 'exp()', 'detach()', 'neg()', 'abs()')}"
                ),
                lambda: (
                    f"{t(d)}.{self.pick('t().clone()', 'reshape(4).reshape(2, 2)', 'sum(0)[None].expand(2, 2)')}"
                ),
                lambda: f"{t(d)}[{self.pick('::1', '[1, 0]', ':, [0, 0]')}]",
            )
        )()

    def number(self, depth: int = 0) -> str:
        if depth > 2 or self.often(0.25):
            return self.pick("n", "k", "0", "1", "2", "3", "4")
        n, d = self.number, depth + 1
        return self.random.choice(
            (
                lambda: f"note({n(d)})",
                lambda: f"({n(d)} + {n(d)})",
                lambda: f"len([{n(d)}, *range({self.random.randint(0, 2)})])",
                lambda: f"({n(d)} if {self.condition(d)} else {n(d)})",
                lambda: f"(w := {n(d)})",
                lambda: f"sum(note(q) for q in range({self.random.randint(0, 3)}))",
                lambda: f"[note(q) for q in range(3)][{self.random.randint(0, 2)}]",
                lambda: f"int(f'{{{n(3)}:d}}')",
                lambda: f"max({n(d)}, {n(d)})",
                lambda: f"{self.name()}.shape[0]",
            )
        )()

    def condition(self, depth: int = 0) -> str:
        if depth > 2 or self.often(0.25):
            return f"n > {self.random.randint(0, 6)}"
        b, d = self.condition, depth + 1
        return self.random.choice(
            (
                lambda: f"{self.tensor(3)}.sum() > 0",
                lambda: f"not {b(d)}",
                lambda: f"({b(d)} and {b(d)})",
                lambda: f"({b(d)} or {b(d)})",
                lambda: f"0 < {self.number(d)} < {self.number(d)} + 2",
                lambda: f"note({self.number(d)}) in (1, 2, 3)",
                lambda: f"{self.name()} is {self.name()}",
            )
        )()

    def block(self, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            nested = depth < 3 and self.often(0.55)
            lines += self.compound(depth) if nested else [self.simple()]
        return ["    " + line for line in lines]

    def simple(self) -> str:
        v, t, n = self.name(), self.tensor, self.number
        return self.random.choice(
            (
                lambda: f"{v} = {t()}",
                lambda: f"{v} = {t()}",
                lambda: f"n = {n()} % 9",
                lambda: f"n += {n()} % 3",
                lambda: f"k += {n()} % 3",
                lambda: f"{v}, n = {t()}, {n()} % 7",
                lambda: f"values.append({n()}); values[0] = {n()}",
                lambda: f"o.value = {n()} % 5",
                lambda: f"o = Derived({n()} % 4)",
                lambda: f"a, *b = [{n()}, {n()}, n]; n = (a + len(b)) % 8",
                lambda: f"functions.append(lambda: (n, k, {t(2)}))",
                lambda: (
                    f"{v} = {v}.detach().clone(); {v}[0] += {t(1)}[1].detach(); {v}.mul_({n(2)})"
                ),
                lambda: f"{v} = {v}.detach().clone(); u = {v}.t(); u.add_({n(2)}); note(u)",
                lambda: f"o.tensor = {t()}",
                lambda: f"note(getattr(o, 'tensor', {n(2)}))",
                lambda: (
                    f"if {self.condition()}: raise {self.pick('ValueError', 'KeyError')}({n(2)})"
                    if self.often(0.3)
                    else "pass"
                ),
            )
        )()

    def compound(self, depth: int) -> list[str]:
        d, b = depth + 1, self.condition
        kind = self.random.randint(0, 5)
        if kind == 0:
            return [f"if {b()}:", *self.block(d), "else:", *self.block(d)]
        if kind == 1:
            over = self.pick("range(3)", "[1, note(2)]", "(x, y)", "list(enumerate([n, 1]))", "{1: 2}.items()", "zip([1, 2], values[:2])")  # fmt: skip
            lines = [f"for i{depth} in {over}:", *self.block(d)]
            if self.often(0.3):
                lines.append(f"    if {b()}: {self.pick('break', 'continue')}")
            return [*lines, "else:", *self.block(d)] if self.often(0.3) else lines
        if kind == 2:
            managers = f"Manager({self.number()}, {self.often(0.4)}) as c, torch.no_grad()"
            return [f"with {managers}:", *self.block(d)]
        if kind == 3:
            lines = ["try:", *self.block(d), f"    if {b()}: raise ValueError({self.number()})"]
            lines += ["except ValueError as error:", "    note(str(error))", *self.block(d)]
            return [*lines, "finally:", *self.block(d)] if self.often(0.5) else lines
        if kind == 4:
            return [f"m{depth} = 0", f"while m{depth} < 2:", f"    m{depth} += 1", *self.block(d)]
        return [f"if {b()}: return {self.tensor()}, n, k, values", *self.block(d - 1)[:1]][:1]

    def program(self) -> str:
        lines = [
            "def f(x, y, o, n):",
            "    z = x - y",
            "    k = 0; w = 0; values = [1, 2]; functions = []",
            "    def inner(t):",
            "        nonlocal k",
            "        k += 1",
            "        return t * k",
            *self.block(0),
            *self.block(0),
            *self.block(0),
            "    return x, y, z, n, k, w, values, functions, o",
        ]
        return "\n".join(lines) + "\n"


def source(seed: int) -> str:
    """The program of a seed."""
    return Writer(seed).program()


def function(text: str) -> FunctionType:
    """The program's function."""
    names: dict[str, Any] = {"torch": torch, "note": note, "Manager": Manager, "Derived": Derived}
    exec(compile(text, FILE, "exec"), names)
    found: FunctionType = names["f"]
    return found


def _seen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride(), value.detach().tolist(), value.requires_grad
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(_seen, value)]
    if isinstance(value, Base):
        return type(value).__name__, {k: _seen(v) for k, v in vars(value).items()}
    return _seen(value()) if isinstance(value, FunctionType) else value


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _tensors(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def outcome(called: Callable[..., Any]) -> str:
    """All that can be seen of a run, as text."""
    log.clear()
    x = torch.tensor([[1.5, -2.0], [0.25, 3.0]])
    y = torch.tensor([[0.5, 3.0], [-1.0, 2.0]], requires_grad=True)
    o = Base(2)
    try:
        result = called(x, y, o, 1)
        for tensor in _tensors(result):
            if tensor.requires_grad:
                tensor.sum().backward(retain_graph=True)
        seen = _seen(result)
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
        seen = (type(error).__name__, str(error), lines[-1:])
    return repr((seen, log, _seen(o), _seen(y.grad), torch.is_grad_enabled()))
