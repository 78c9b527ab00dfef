"""`Compare`: measurements side by side."""

from __future__ import annotations

from collections.abc import Iterable

from argand.utils.benchmark.measurement import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Compare"]

_BEST, _WORST, _END = "\033[92m", "\033[91m", "\033[0m"
_NOTABLE = 1.1  # times the best, from which a time is coloured


class Compare:
    """Tables of measurements: one a label, with sub-labels as rows and descriptions as columns.

    Args:
        results: the measurements; those of the same task are taken together.
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trimmed = self._warned = False
        self._colored: str | None = None
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        given = list(results)
        for result in given:
            if not isinstance(result, Measurement):
                raise ValueError(f"Compare: got {type(result).__name__}, expected a Measurement")
        self._results += given

    def trim_significant_figures(self) -> None:
        """Show no more figures than the spreads allow."""
        self._trimmed = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best and the worst times, of each column or row."""
        self._colored = "row" if rowwise else "column"

    def highlight_warnings(self) -> None:
        """Mark times that spread."""
        self._warned = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def __str__(self) -> str:
        results = Measurement.merge(self._results)
        titles = ordered_unique(m.task_spec.label or m.task_spec.stmt for m in results)
        return "\n".join(
            self._table(
                title, [m for m in results if (m.task_spec.label or m.task_spec.stmt) == title]
            )
            for title in titles
        )

    def _table(self, title: str, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.task_spec.description or "" for m in results)
        rows = ordered_unique(
            (m.task_spec.num_threads, m.task_spec.env, m.as_row_name) for m in results
        )
        places = {
            (
                (m.task_spec.num_threads, m.task_spec.env, m.as_row_name),
                m.task_spec.description or "",
            ): m
            for m in results
        }
        names = [f"({env}) {name}" if env else name for _, env, name in rows]
        first = max(len("1 threads:"), *(len(name) + 6 for name in names))
        texts = {place: self._text(m, scale) for place, m in places.items()}
        width = {c: max(len(c), *(len(texts.get((r, c), "")) for r in rows)) for c in columns}
        head = "  |  ".join([" " * first, *(f"{c:>{width[c]}}" for c in columns)])
        lines = [f"[{f' {title} ':-^{len(head) - 2}}]", head]
        threads = None
        for row, name in zip(rows, names, strict=True):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            cells = [
                self._colour(places, row, c, f"{texts.get((row, c), ''):>{width[c]}}")
                for c in columns
            ]
            lines.append("  |  ".join([f"      {name:<{first - 6}}", *cells]))
        return "\n".join([*lines, "", f"Times are in {unit_to_english(unit)}s ({unit}).", ""])

    def _text(self, m: Measurement, scale: float) -> str:
        value = m.median / scale
        if self._trimmed:
            value = trim_sigfig(value, m.significant_figures)
        text = f"{value:.1f}" if not self._trimmed or value < 10 else f"{value:.0f}"
        return f"(!) {text}" if self._warned and m.has_warnings else text

    def _colour(
        self,
        places: dict[tuple[tuple[int, str | None, str], str], Measurement],
        row: tuple[int, str | None, str],
        column: str,
        text: str,
    ) -> str:
        if self._colored is None or (row, column) not in places:
            return text
        by_row = self._colored == "row"
        peers = [m.median for (r, c), m in places.items() if (r == row if by_row else c == column)]
        mine = places[row, column].median
        if mine == min(peers):
            return f"{_BEST}{text}{_END}"
        return f"{_WORST}{text}{_END}" if mine >= max(peers) > _NOTABLE * min(peers) else text
