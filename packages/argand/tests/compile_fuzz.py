"""Random programs as source text: control flow, mutation, closures, views, in-place operators, containers, shapes.

Values are small whole numbers, so that sums are exact in any order and results can be compared bit for bit.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import argand as torch

HEADER = "def f(a, b, v, n, flag, items, state):"


@dataclass
class Writer:
    """Source under construction, with the names that are bound at this place, by kind."""

    draw: Any
    mutates_inputs: bool
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    matrices: list[str] = field(default_factory=lambda: ["a", "b"])
    vectors: list[str] = field(default_factory=lambda: ["v"])
    scalars: list[str] = field(default_factory=list)
    integers: list[str] = field(default_factory=lambda: ["n"])
    owned: list[str] = field(default_factory=list)
    fresh: int = 0
    in_loop: bool = False

    def pick(self, names: Any) -> Any:
        return self.draw(st.sampled_from(list(names)))

    def integer(self, low: int = -3, high: int = 3) -> int:
        return int(self.draw(st.integers(low, high)))

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # ---- expressions -----------------------------------------------------------------------------------------------------
    def operand(self) -> str:
        options = [
            *self.matrices,
            *self.vectors,
            *self.scalars,
            *self.integers,
            str(self.integer()),
        ]
        return str(self.pick(options))

    def matrix(self) -> str:
        m = self.pick(self.matrices)
        form = self.pick(
            [
                "binary",
                "binary",
                "binary",
                "unary",
                "where",
                "layout",
                "compare",
                "stack",
                "slice",
                "method",
            ]
        )
        if form == "binary":
            return f"({m} {self.pick('+-*')} {self.operand()}).clamp(-9, 9)"
        if form == "unary":
            return f"{self.pick(['torch.relu', 'torch.abs', 'torch.neg', 'torch.sign', 'F.relu'])}({m})"
        if form == "where":
            other = self.pick(self.matrices)
            return f"torch.where({m} > {self.operand()}, {m}, {other})"
        if form == "layout":
            return str(
                self.pick(
                    [
                        f"{m}.t().contiguous().t()",
                        f"{m}.reshape(-1).view({m}.shape)",
                        f"{m}.unsqueeze(0).squeeze(0)",
                        f"{m}.flip(0)",
                        f"{m}.t().t()",
                    ]
                )
            )
        if form == "compare":
            return f"({m} {self.pick(['<', '>=', '==', '!='])} {self.operand()}).float()"
        if form == "stack":
            other = self.pick(self.matrices)
            return str(
                self.pick(
                    [
                        f"torch.stack([{m}, {other}])[{self.integer(0, 1)}]",
                        f"torch.cat([{m}, {other}])[: {m}.shape[0]]",
                        f"sum([{m}, {other}], {self.integer()}).clamp(-9, 9)",
                    ]
                )
            )
        if form == "slice":
            return f"torch.cat([{m}[1:], {m}[:1]])"
        return f"{m}.mul({self.operand()}).add({self.pick(self.matrices)}).clamp(min=-9, max=9)"

    def vector(self) -> str:
        m = self.pick(self.matrices)
        return str(
            self.pick(
                [
                    f"{m}.sum(0).clamp(-9, 9)",
                    f"{m}[{self.integer(-1, 0)}]",
                    f"{m}.amax(dim=0)",
                    f"({self.pick(self.vectors)} * {self.integer()}).clamp(-9, 9)",
                    f"{m}.select(0, 0) - {self.pick(self.vectors)}",
                ]
            )
        )

    def scalar(self) -> str:
        m = self.pick(self.matrices)
        return str(
            self.pick(
                [
                    f"{m}.sum().clamp(-9, 9)",
                    f"{m}.max()",
                    f"{self.pick(self.vectors)}[0]",
                    f"{m}[0, -1]",
                ]
            )
        )

    def whole(self) -> str:
        m = self.pick(self.matrices)
        i = self.pick(self.integers)
        return str(
            self.pick(
                [
                    f"{i} + {self.integer()}",
                    f"{i} * {self.integer(1, 2)} - 1",
                    f"{m}.shape[{self.integer(0, 1)}]",
                    f"len(items) + {i}",
                    f"{m}.ndim",
                    f"max({i}, {self.integer()})",
                    f"{i} % 3",
                ]
            )
        )

    def condition(self) -> str:
        m = self.pick(self.matrices)
        return str(
            self.pick(
                [
                    "flag",
                    "not flag",
                    f"{self.pick(self.integers)} > {self.integer()}",
                    f"{m}.shape[0] > {self.integer(1, 5)}",
                    f"{m}.shape[0] == {m}.shape[1]",
                    f"len(items) > {self.integer(0, 2)} and flag",
                    "'k' in state",
                    f"{m}.sum() > {self.integer()}",
                    f"{self.pick(self.vectors)}[0].item() > {self.integer()}",
                    f"isinstance({m}, torch.Tensor) and n is not None",
                ]
            )
        )

    # ---- statements --------------------------------------------------------------------------------------------------------
    def bind(self, names: list[str], prefix: str, text: str, owned: bool = False) -> None:
        target = self.pick([*names, self.name(prefix)]) if names else self.name(prefix)
        if target in ("a", "b", "v", "n") and self.in_loop:
            target = self.name(prefix)
        self.emit(f"{target} = {text}")
        if target not in names:
            names.append(target)
        if target in self.owned:
            self.owned.remove(target)
        if owned:
            self.owned.append(target)

    def statement(self, budget: int) -> None:
        forms = ["matrix"] * 4 + [
            "vector",
            "scalar",
            "whole",
            "inplace",
            "inplace",
            "items",
            "state",
            "closure",
            "text",
        ]
        if budget > 1 and self.depth < 4:
            forms += ["if", "if", "for", "while", "no_grad", "comprehension", "try"]
        getattr(self, f"write_{self.pick(forms)}")(budget)

    def write_matrix(self, _: int) -> None:
        self.bind(self.matrices, "m", self.matrix())

    def write_vector(self, _: int) -> None:
        self.bind(self.vectors, "w", self.vector())

    def write_scalar(self, _: int) -> None:
        self.bind(self.scalars, "s", self.scalar())

    def write_whole(self, _: int) -> None:
        self.bind(self.integers, "i", self.whole())

    def write_inplace(self, _: int) -> None:
        if self.mutates_inputs and self.draw(st.booleans()):
            m = str(self.pick(["a", "b"]))
        else:
            m = self.name("c")
            self.emit(f"{m} = {self.pick(self.matrices)}.clone()")
            self.matrices.append(m)
        i = self.integer(-1, 0)
        self.emit(
            str(
                self.pick(
                    [
                        f"{m}.add_({self.operand()}).clamp_(-9, 9)",
                        f"{m}[{i}] = {self.pick(self.vectors)}",
                        f"{m}[:, {i}] *= {self.integer(-2, 2)}",
                        f"{m}[{i}].neg_()",
                        f"{m}.t()[0].fill_({self.integer()})",
                        f"{m}.relu_()",
                        f"{m} += {self.integer()}",
                        f"{m}.copy_({self.pick(self.matrices)})",
                        f"{m}.view(-1)[1:].zero_()",
                        f"{m}.masked_fill_({m} > 0, {self.integer()})",
                    ]
                )
            )
        )

    def write_items(self, _: int) -> None:
        m = self.pick(self.matrices)
        self.emit(
            str(
                self.pick(
                    [
                        f"items.append({m})",
                        f"items.insert(0, {self.pick(self.integers)})",
                        f"items[:] = [*items, {m} + 1]",
                        f"items += [{self.pick(self.vectors)}]",
                        "items.reverse()",
                    ]
                )
            )
        )

    def write_state(self, _: int) -> None:
        m = self.pick(self.matrices)
        self.emit(
            str(
                self.pick(
                    [
                        f"state['k'] = {m}",
                        f"state['count'] = state.get('count', 0) + {self.integer()}",
                        f"state.update(x={m}, y={self.pick(self.integers)})",
                        "state.pop('k', None)",
                        f"state.setdefault('d', {m})",
                    ]
                )
            )
        )

    def write_closure(self, _: int) -> None:
        g = self.name("g")
        m, i = self.pick(self.matrices), self.pick(self.integers)
        self.emit(f"def {g}(z, k={self.integer()}):")
        self.emit(f"    return (z * k + {m} - {i}).clamp(-9, 9)")
        self.bind(self.matrices, "m", f"{g}({self.pick(self.matrices)})")

    def write_text(self, _: int) -> None:
        self.emit(
            f"state[f'{{n}}-{{{self.pick(self.matrices)}.shape[1]}}'] = {self.pick(self.integers)}"
        )

    def block(self, head: str, budget: int) -> None:
        """Names bound inside are unknown after it, since it may not run."""
        saved = [list(x) for x in (self.matrices, self.vectors, self.scalars, self.integers)]
        self.emit(head)
        self.depth += 1
        for _ in range(self.integer(1, 2)):
            self.statement(budget - 1)
        self.depth -= 1
        self.matrices, self.vectors, self.scalars, self.integers = saved

    def write_if(self, budget: int) -> None:
        self.block(f"if {self.condition()}:", budget)
        if self.draw(st.booleans()):
            self.block("else:", budget)

    def write_for(self, budget: int) -> None:
        i = self.name("j")
        head = self.pick([f"for {i} in range({self.integer(0, 3)}):", f"for {i} in range(n % 3):"])
        self.integers.append(i)
        before, self.in_loop = self.in_loop, True
        self.block(head, budget)
        self.in_loop = before
        self.integers.remove(i)

    def write_while(self, budget: int) -> None:
        i = self.name("q")
        self.emit(f"{i} = {self.integer(0, 2)}")
        before, self.in_loop = self.in_loop, True
        self.block(f"while {i} > 0:", budget)
        self.in_loop = before
        self.emit(f"    {i} -= 1")

    def write_no_grad(self, budget: int) -> None:
        self.block("with torch.no_grad():", budget)

    def write_try(self, budget: int) -> None:
        self.block("try:", budget)
        self.emit("finally:")
        self.emit("    state['done'] = 1")

    def write_comprehension(self, _: int) -> None:
        parts = self.name("p")
        m = self.pick(self.matrices)
        self.emit(f"{parts} = [{m} * k for k in range({self.integer(1, 3)}) if k != 1]")
        self.emit(f"{parts} = {{k: t + {self.pick(self.integers)} for k, t in enumerate({parts})}}")
        self.bind(self.matrices, "m", f"{parts}[0].clamp(-9, 9)")


@dataclass(frozen=True)
class FuzzProgram:
    """Source of `f`, whether its tensors require grad, and the (rows, columns, n, flag) of each call."""

    source: str
    grad: bool
    calls: tuple[tuple[int, int, int, bool], ...]

    def function(self) -> Any:
        """A fresh `f`, with its source known to tracebacks."""
        file = f"<fuzz {hash(self.source)}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
        exec(compile(self.source, file, "exec"), scope)
        return scope["f"]

    def arguments(self, call: tuple[int, int, int, bool]) -> tuple[Any, ...]:
        rows, columns, n, flag = call
        torch.manual_seed(rows * 10 + columns)
        tensors = [
            torch.randint(-4, 5, shape).float().requires_grad_(self.grad)
            for shape in ((rows, columns), (rows, columns), (columns,))
        ]
        return (*tensors, n, flag, [], {})


@st.composite
def programs(draw: Any) -> FuzzProgram:
    grad = draw(st.booleans())
    writer = Writer(draw, mutates_inputs=not grad)
    for _ in range(draw(st.integers(2, 7))):
        writer.statement(3)
    results = [*writer.matrices, *writer.vectors, *writer.scalars, *writer.integers]
    writer.emit(f"return {', '.join(results)}")
    first = (
        draw(st.integers(2, 5)),
        draw(st.integers(2, 5)),
        draw(st.integers(0, 4)),
        draw(st.booleans()),
    )
    second = (draw(st.integers(1, 6)), first[1], draw(st.integers(0, 4)), draw(st.booleans()))
    return FuzzProgram("\n".join([HEADER, *writer.lines]) + "\n", grad, (first, first, second))
