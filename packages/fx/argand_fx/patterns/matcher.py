"""`SubgraphMatcher`: where a pattern occurs in a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from argand_fx.graph import Graph
from argand_fx.node import Node
from argand_fx.symbolic import SymbolicValue

__all__ = ["Match", "SubgraphMatcher"]


@dataclass
class Match:
    """One occurrence of a pattern.

    Attributes:
        anchor: the node matched by what the pattern returns (its first result).
        nodes_map: for each node of the pattern what it matched: a node, or a constant for a placeholder.
        placeholders: what the pattern's placeholders matched, in order.
        returning_nodes: what the pattern's results matched, in order.
    """

    anchor: Node
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholders: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)

    @property
    def internal_nodes(self) -> list[Node]:
        """The matched nodes that are neither inputs nor constants."""
        return [
            node
            for pattern, node in self.nodes_map.items()
            if pattern.op not in ("placeholder", "output") and isinstance(node, Node)
        ]


class SubgraphMatcher:
    """Finds a pattern: a graph whose placeholders stand for any value and whose other nodes for equal calls.

    Args:
        pattern: the graph; its output names the results.
        match_placeholder: a placeholder also matches constants.
        ignore_literals: constants among the arguments need not be equal.
        allow_internal_uses: nodes inside of an occurrence, other than its results, may have users outside of it.
    """

    def __init__(
        self,
        pattern: Graph,
        *,
        match_placeholder: bool = True,
        ignore_literals: bool = False,
        allow_internal_uses: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_placeholder = match_placeholder
        self.ignore_literals = ignore_literals
        self.allow_internal_uses = allow_internal_uses
        self.placeholders = pattern.find_nodes(op="placeholder")
        value = pattern.output_node().args[0]
        results = value if isinstance(value, list | tuple) else (value,)
        if not results or not all(isinstance(r, Node) and r.op != "placeholder" for r in results):
            raise ValueError(
                f"SubgraphMatcher: the pattern returns {value!r}, expected calls; "
                "return what is to be replaced"
            )
        self.results: list[Node] = list(results)
        self._check_reachable()

    def _check_reachable(self) -> None:
        reached: set[Node] = set()
        stack = list(self.results)
        while stack:
            node = stack.pop()
            if node not in reached:
                reached.add(node)
                stack.extend(node._inputs)
        for node in self.pattern.nodes:
            if node.op not in ("placeholder", "output") and node not in reached:
                raise ValueError(
                    f"SubgraphMatcher: no result of the pattern uses %{node.name}; remove it from the pattern"
                )

    def match(self, graph: Graph, *, overlapping: bool = False) -> list[Match]:
        """The occurrences in `graph`, in its order; of those that share nodes only the first, unless `overlapping`."""
        found: list[Match] = []
        taken: set[Node] = set()
        for node in graph.nodes:
            for match in self._matches_at(node):
                internal = match.internal_nodes
                if overlapping or taken.isdisjoint(internal):
                    taken.update(internal)
                    found.append(match)
                    break
        return found

    def _matches_at(self, node: Node) -> list[Match]:
        """Occurrences whose first result is `node`; further results are searched among its relatives."""
        partial: list[dict[Node, Any]] = []
        start: dict[Node, Any] = {}
        if self._same(self.results[0], node, start):
            partial.append(start)
        for result in self.results[1:]:
            grown = []
            for nodes_map in partial:
                if result in nodes_map:
                    grown.append(nodes_map)
                    continue
                for candidate in self._candidates(result, nodes_map, node.graph):
                    attempt = dict(nodes_map)
                    if self._same(result, candidate, attempt):
                        grown.append(attempt)
                        break
            partial = grown
        matches = []
        for nodes_map in partial:
            if self.allow_internal_uses or self._closed(nodes_map):
                results = [nodes_map[result] for result in self.results]
                inputs = [nodes_map.get(p) for p in self.placeholders]
                matches.append(Match(node, nodes_map, inputs, results))
        return matches

    def _candidates(self, result: Node, nodes_map: dict[Node, Any], graph: Graph) -> list[Node]:
        """Where a further result may lie: users of a matched input of it, if there is one."""
        for used in result._inputs:
            matched = nodes_map.get(used)
            if isinstance(matched, Node):
                return list(matched.users)
        return list(graph.nodes)

    def _same(self, pattern: Any, value: Any, nodes_map: dict[Node, Any]) -> bool:
        """Whether `value` matches; `nodes_map` is extended."""
        if isinstance(pattern, Node):
            return self._same_node(pattern, value, nodes_map)
        if isinstance(value, Node):
            return False
        if isinstance(pattern, list | tuple) and isinstance(value, list | tuple):
            return len(pattern) == len(value) and all(
                self._same(p, v, nodes_map) for p, v in zip(pattern, value, strict=True)
            )
        if isinstance(pattern, dict) and isinstance(value, dict):
            return pattern.keys() == value.keys() and all(
                self._same(item, value[key], nodes_map) for key, item in pattern.items()
            )
        if isinstance(pattern, slice) and isinstance(value, slice):
            ends = (pattern.start, pattern.stop, pattern.step)
            return self._same(ends, (value.start, value.stop, value.step), nodes_map)
        if self.ignore_literals:
            return True
        if isinstance(pattern, SymbolicValue) or isinstance(value, SymbolicValue):
            return str(pattern) == str(value)
        return type(pattern) is type(value) and bool(pattern == value)

    def _same_node(self, pattern: Node, value: Any, nodes_map: dict[Node, Any]) -> bool:
        if pattern in nodes_map:
            known = nodes_map[pattern]
            if isinstance(known, Node) or isinstance(value, Node):
                return known is value
            return type(known) is type(value) and bool(known == value)
        if pattern.op == "placeholder":
            if not isinstance(value, Node) and not self.match_placeholder:
                return False
            nodes_map[pattern] = value
            return True
        if (
            not isinstance(value, Node)
            or pattern.op != value.op
            or pattern.op == "output"
            or not self._same_target(pattern, value)
            or len(pattern.args) != len(value.args)
            or pattern.kwargs.keys() != value.kwargs.keys()
        ):
            return False
        nodes_map[pattern] = value
        return self._same(pattern.args, value.args, nodes_map) and self._same(
            pattern.kwargs, value.kwargs, nodes_map
        )

    def _same_target(self, pattern: Node, value: Node) -> bool:
        """Attributes and modules match by what they are, where both graphs say; else by path."""
        if pattern.target == value.target:
            return True
        if (
            pattern.op == "call_module"
            and pattern.graph.owning_module
            and value.graph.owning_module
        ):
            mine = pattern.graph.owning_module.get_submodule(pattern.target)
            return type(mine) is type(value.graph.owning_module.get_submodule(value.target))
        return False

    def _closed(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether only results are used outside of the occurrence."""
        inside = {n for p, n in nodes_map.items() if isinstance(n, Node) and p.op != "placeholder"}
        results = {nodes_map[result] for result in self.results}
        return all(user in inside for node in inside if node not in results for user in node.users)
