"""YAML with places: scalars, lists and mappings that know where they stand, and where a character inside them stands."""

from __future__ import annotations

from typing import Any

import yaml

from tools.codegen.errors import Diagnostics
from tools.codegen.expr import suggest
from tools.codegen.model import Location


class Node:
    """One YAML value of a file."""

    def __init__(self, node: yaml.Node, file: str, lines: list[str]) -> None:
        self.node = node
        self.file = file
        self.lines = lines

    @property
    def location(self) -> Location:
        mark = self.node.start_mark
        return Location(self.file, mark.line + 1, mark.column + 1)

    def locate(self, offset: int, line: int = 1) -> Location:
        """The place of a character of this scalar's text: `offset` in its line number `line`."""
        start, end = self.node.start_mark, self.node.end_mark
        style = getattr(self.node, "style", None)
        if style in ("|", ">"):
            row = start.line + line
            first = self.lines[start.line + 1] if start.line + 1 < len(self.lines) else ""
            indent = len(first) - len(first.lstrip())
            return Location(self.file, row + 1, indent + offset + 1)
        if start.line != end.line:
            return self.location
        return Location(self.file, start.line + 1, start.column + 1 + offset + (1 if style else 0))

    @property
    def is_scalar(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def text(self) -> str:
        return str(self.node.value) if self.is_scalar else ""

    def value(self) -> Any:
        """As plain Python data (dates and the like stay text)."""
        if isinstance(self.node, yaml.ScalarNode):
            tag = self.node.tag.rsplit(":", 1)[-1]
            if tag in ("int", "float", "bool", "null"):
                if self.text in ("None", "none"):
                    return None
                return yaml.safe_load(self.text)
            return None if self.text == "None" and not self.node.style else self.text
        if self.is_list:
            return tuple(n.value() for n in self.items())
        return {k.text: v.value() for k, v in self.pairs()}

    def items(self) -> list[Node]:
        return [Node(n, self.file, self.lines) for n in self.node.value] if self.is_list else [self]

    def pairs(self) -> list[tuple[Node, Node]]:
        if not self.is_mapping:
            return []
        return [
            (Node(k, self.file, self.lines), Node(v, self.file, self.lines))
            for k, v in self.node.value
        ]

    def fields(
        self, known: tuple[str, ...], what: str, diagnostics: Diagnostics
    ) -> dict[str, Node]:
        """A mapping's entries; unknown and repeated keys are reported."""
        found: dict[str, Node] = {}
        for key, value in self.pairs():
            if known and key.text not in known:
                hint = suggest(key.text, known) or "; known are " + ", ".join(known)
                diagnostics.add(
                    key.location, f"unknown key '{key.text}' in {what}{hint}", len(key.text)
                )
            elif key.text in found:
                diagnostics.add(
                    key.location, f"key '{key.text}' is given twice in {what}", len(key.text)
                )
            else:
                found[key.text] = value
        return found


def read_file(path: str, file: str, diagnostics: Diagnostics) -> list[Node]:
    """The entries of a registry file: a list of mappings. `file` is its name in messages."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    lines = text.splitlines()
    diagnostics.sources[file] = lines
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        place = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file, 1, 1)
        diagnostics.add(
            place, f"not YAML: {e.problem}; texts with ': ', '#', '{{' or '*' in front need quotes"
        )
        return []
    if root is None:
        return []
    node = Node(root, file, lines)
    if not node.is_list:
        diagnostics.add(
            node.location, "a registry file is a list of operators: - op: name(...) -> ..."
        )
        return []
    found = []
    for item in node.items():
        if item.is_mapping:
            found.append(item)
        else:
            diagnostics.add(item.location, "an operator is a mapping that starts with `op:`")
    return found
