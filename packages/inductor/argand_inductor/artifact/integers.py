"""The integers of a program: known ones, runs of them, and what is computed from symbols when it runs."""

from __future__ import annotations

from collections.abc import Sequence

from argand_inductor.artifact.expressions import fold, names_in, to_c
from argand_inductor.program import Expr


class Integers:
    """The one array of integers of a program in the making. Equal runs are stored once."""

    def __init__(self) -> None:
        self._entries: list[int] = []  # what is computed is 0 until then
        self._runs: dict[tuple[Expr, ...], int] = {}
        self._symbols: dict[
            str, tuple[int, int]
        ] = {}  # where it lies, and at which stage it is known
        self._computed: list[tuple[int, int, str]] = []  # stage, index, C text
        self.stages = 0

    @property
    def computed(self) -> bool:
        return bool(self._symbols)

    def __len__(self) -> int:
        return len(self._entries)

    def symbol(self, name: str) -> int:
        """Make room for a symbol that is known from now on; its index."""
        index = len(self._entries)
        self._entries.append(0)
        self._symbols[name] = (index, self.stages)
        self._runs[(name,)] = index
        return index

    def knows(self, name: str) -> bool:
        return name in self._symbols

    def next_stage(self) -> int:
        """Symbols made after this are known only when the program has run that far."""
        self.stages += 1
        return self.stages

    def run(self, exprs: Sequence[Expr]) -> int:
        """Where these lie one after the other.

        Raises:
            ValueError: if one uses a name that nothing before it binds.
        """
        key = tuple(map(fold, exprs))
        if (found := self._runs.get(key)) is not None:
            return found
        start = len(self._entries)
        self._runs[key] = start
        for expr in key:
            index = len(self._entries)
            if isinstance(expr, int):
                self._entries.append(int(expr))
            else:
                self._entries.append(0)
                self._computed.append((self._stage(expr), index, to_c(expr)))
            self._runs.setdefault((expr,), index)
        return start

    def bytes(self, constant: int, factors: Sequence[str]) -> int:
        """Index of a product that saturates instead of overflowing."""
        text, stage = str(constant), 0
        for factor in factors:
            stage = max(stage, self._stage(factor))
            text = f"argand_mul({text}, {to_c(factor)})"
        index = len(self._entries)
        self._entries.append(0)
        self._computed.append((stage, index, text))
        return index

    def _stage(self, expr: str) -> int:
        names = names_in(expr)
        if unknown := sorted(name for name in names if name not in self._symbols):
            raise ValueError(
                f"program: {expr!r} uses {', '.join(unknown)}, which nothing binds; "
                "give it as an input"
            )
        return max((self._symbols[name][1] for name in names), default=0)

    def source(self) -> list[str]:
        """The C array `integers`, and the function `compute` that completes a copy of it."""
        entries = ", ".join(to_c(entry) for entry in self._entries) or "0"
        lines = [f"static const int64_t integers[] = {{{entries}}};"]
        if not self.computed:
            return lines
        lines.append("static void compute(int64_t* e, int32_t stage) {")
        for stage in range(self.stages + 1):
            known = [(n, i) for n, (i, at) in self._symbols.items() if at <= stage]
            texts = [(i, text) for at, i, text in self._computed if at == stage]
            if not texts:
                continue
            lines.append(f"  if (stage == {stage}) {{")
            lines += [f"    const int64_t {name} = e[{index}];" for name, index in known]
            lines += [f"    e[{index}] = {text};" for index, text in texts]
            lines.append("  }")
        return [*lines, "}"]
