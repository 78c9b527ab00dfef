"""HTML of the report's pages."""

from __future__ import annotations

import html
import linecache
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from argand_c10.debug_trace import Compilation
from argand_c10.records import Record
from argand_fx.draw import draw_svg

_GRAPHS = {
    "graph": "Traced graph",
    "joint_graph": "Joint graph",
    "forward_graph": "Forward graph",
    "backward_graph": "Backward graph",
}
_TEXTS = {
    "loop_ir": "Loops before fusion",
    "memory_plan": "Memory plan",
    "bytecode": "Replacement bytecode",
}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1.5rem; color: #1b1f24; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #d0d7de; }
code, pre { font: 12.5px/1.45 ui-monospace, monospace; } pre { background: #f6f8fa; padding: .8rem; overflow: auto; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top; }
.bar { display: inline-block; height: .8rem; background: #4c8bf5; border-radius: 2px; vertical-align: middle; }
.graph { overflow: auto; max-height: 44rem; border: 1px solid #d0d7de; } summary { cursor: pointer; }
.beside { display: grid; grid-template-columns: minmax(24rem, 2fr) 3fr; gap: 1rem; } .beside > div { overflow: auto; }
.used { background: #fff3bf; } .fix { color: #1a7f37; } .none { color: #656d76; } a { color: #0b57d0; }
"""


def _escape(value: Any) -> str:
    return html.escape(str(value))


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>{_escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>\n" for row in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>"


def render_index(rows: Sequence[tuple[str, Compilation]]) -> str:
    """The list of all compilations with their times and what went less well."""
    cells = [
        (
            f'<a href="{_escape(file)}">{_escape(c.name)}</a>',
            f"<code>{_escape(PurePath(c.file).name)}:{c.line}</code>",
            f"{c.seconds * 1e3:.1f} ms",
            str(sum(1 for stage, _ in c.items if stage == "output_code")),
            ", ".join(_escape(f"{r.kind} {r.code}") for r in c.records) or "none",
        )
        for file, c in rows
    ]
    total = sum(c.seconds for _, c in rows)
    head = f"<p>{len(rows)} compilations, {total:.2f} s together.</p>"
    return _document(
        "Compilations",
        head + _table(["function", "line", "time", "programs", "breaks and fallbacks"], cells),
    )


def render_compilation(compilation: Compilation) -> str:
    """Everything about one compilation, in the order of the pipeline."""
    graphs = [payload for stage, payload in compilation.items if stage in _GRAPHS]
    places = _node_places(graphs)
    parts = [
        f"<p><code>{_escape(compilation.file)}:{compilation.line}</code>, "
        f'{compilation.seconds * 1e3:.1f} ms. <a href="index.html">All compilations</a></p>',
        "<h2>Times</h2>" + _phases(compilation),
        "<h2>Breaks, recompilations and fallbacks</h2>" + _records(compilation.records),
    ]
    for stage, payload in compilation.items:
        if stage in _GRAPHS:
            parts.append(_graph(_GRAPHS[stage], payload))
        elif stage == "guards":
            parts.append(_list("Guards", payload))
        elif stage == "schedule":
            parts.append("<h2>Fusion groups</h2>" + _schedule(payload))
        elif stage == "output_code":
            parts.append("<h2>Generated code</h2>" + _beside(compilation, payload, places))
        elif stage in _TEXTS:
            parts.append(_fold(_TEXTS[stage], f"<pre>{_escape(payload)}</pre>"))
    return _document(compilation.name, "\n".join(parts))


def _phases(compilation: Compilation) -> str:
    if not compilation.phases:
        return '<p class="none">none measured</p>'
    longest = max(compilation.phases.values())
    return _table(
        ["phase", "ms", ""],
        [
            (
                _escape(name),
                f"{spent * 1e3:.1f}",
                f'<span class="bar" style="width: {max(1, round(300 * spent / longest))}px"></span>',
            )
            for name, spent in compilation.phases.items()
        ],
    )


def _records(found: Sequence[Record]) -> str:
    if not found:
        return '<p class="none">none</p>'
    return _table(
        ["what", "where", "why", "fix"],
        [
            (
                _escape(f"{r.kind} {r.code}"),
                f"<code>{_escape(r.file)}:{r.line}</code>" if r.file else "",
                _escape(r.message),
                f'<span class="fix">{_escape(r.fix)}</span>',
            )
            for r in found
        ],
    )


def _fold(title: str, body: str, is_open: bool = False) -> str:
    return f"<h2>{_escape(title)}</h2><details{' open' if is_open else ''}><summary>show</summary>{body}</details>"


def _list(title: str, entries: Sequence[Any]) -> str:
    items = "".join(f"<li><code>{_escape(entry)}</code></li>" for entry in entries)
    return _fold(f"{title} ({len(entries)})", f"<ul>{items}</ul>")


# Above this many nodes a picture takes longer than the compilation; the text says as much.
_LARGEST_PICTURE = 400


def _graph(title: str, module: Any) -> str:
    nodes = list(module.graph.nodes)
    text = f"<pre>{_escape(module.graph.to_text())}</pre>"
    if len(nodes) <= _LARGEST_PICTURE:
        text = f'<div class="graph">{draw_svg(module.graph)}</div>' + text
    return _fold(f"{title} ({len(nodes)} nodes)", text)


def _node_places(graphs: Sequence[Any]) -> dict[str, tuple[str, int]]:
    """The user's file and line of each node, by its name."""
    places: dict[str, tuple[str, int]] = {}
    for module in graphs:
        for node in module.graph.nodes:
            location = node.meta.get("location")
            if location:
                places[node.name] = (location[0], location[1])
    return places


def _schedule(groups: Sequence[Any]) -> str:
    rows = [
        (
            f"<code>{_escape(name)}</code>",
            f"<code>{_escape(', '.join(map(str, operators)))}</code>",
            " ".join(f'<a href="#line-{line}">{line}</a>' for _, line in places),
        )
        for name, operators, places in groups
    ]
    return _table(["step", "operators", "lines"], rows)


def _beside(
    compilation: Compilation, sources: Sequence[Any], places: dict[str, tuple[str, int]]
) -> str:
    """The user's function on the left, the generated source on the right."""
    code = "".join(
        f"<h3><code>{_escape(name)}</code></h3><pre>{_escape(text)}</pre>" for name, text in sources
    )
    return (
        f'<div class="beside"><div>{_user_lines(compilation, places)}</div><div>{code}</div></div>'
    )


def _user_lines(compilation: Compilation, places: dict[str, tuple[str, int]]) -> str:
    by_file: dict[str, set[int]] = {compilation.file: {compilation.line}}
    for file, line in places.values():
        by_file.setdefault(file, set()).add(line)
    parts = []
    for file, used in by_file.items():
        rows = []
        for line in _with_context(used):
            text = linecache.getline(file, line).rstrip("\n")
            mark = ' class="used"' if line in used else ""
            rows.append(f'<span id="line-{line}"{mark}>{line:5d}  {_escape(text)}</span>')
        parts.append(f"<h3>{_escape(PurePath(file).name)}</h3><pre>" + "\n".join(rows) + "</pre>")
    return "".join(parts)


def _with_context(used: set[int], around: int = 3) -> list[int]:
    near = {line + k for line in used for k in range(-around, around + 1)}
    return sorted(line for line in near if line > 0)
