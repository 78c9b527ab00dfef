"""Minimum cuts of flow networks: Dinic's algorithm (E. Dinic, 1970)."""

from __future__ import annotations

from collections import deque

__all__ = ["INFINITE", "FlowNetwork"]

INFINITE = 1 << 60


class FlowNetwork:
    """A directed graph with capacities. Nodes are numbers from `add_node`; 0 is the source, 1 the sink."""

    def __init__(self) -> None:
        self._edges_of: list[list[int]] = [[], []]
        self._to: list[int] = []  # edge i and its reverse i ^ 1
        self._left: list[int] = []  # what still fits

    def add_node(self) -> int:
        """Add a node; returns its number."""
        self._edges_of.append([])
        return len(self._edges_of) - 1

    def add_edge(self, a: int, b: int, capacity: int) -> None:
        """Let up to `capacity` flow from `a` to `b`."""
        self._edges_of[a].append(len(self._to))
        self._to.append(b)
        self._left.append(capacity)
        self._edges_of[b].append(len(self._to))
        self._to.append(a)
        self._left.append(0)

    def source_side(self) -> list[bool]:
        """Per node, whether a minimum cut leaves it with the source; of several cuts, the one nearest to the sink."""
        while True:
            level = self._levels()
            if level[1] < 0:
                break
            self._augment(level)
        return [not reaches for reaches in self._reaching_sink()]

    def _levels(self) -> list[int]:
        level = [-1] * len(self._edges_of)
        level[0] = 0
        queue = deque([0])
        to, left = self._to, self._left
        while queue:
            a = queue.popleft()
            for e in self._edges_of[a]:
                b = to[e]
                if left[e] > 0 and level[b] < 0:
                    level[b] = level[a] + 1
                    queue.append(b)
        return level

    def _augment(self, level: list[int]) -> None:
        """A blocking flow in the level graph, without recursion."""
        to, left, edges_of = self._to, self._left, self._edges_of
        position = [0] * len(edges_of)
        path: list[int] = []
        a = 0
        while True:
            if a == 1:
                flow = min([left[e] for e in path])
                first = -1
                for i, e in enumerate(path):
                    left[e] -= flow
                    left[e ^ 1] += flow
                    if left[e] == 0 and first < 0:
                        first = i
                a = to[path[first] ^ 1]
                del path[first:]
                continue
            edges = edges_of[a]
            while position[a] < len(edges):
                e = edges[position[a]]
                if left[e] > 0 and level[to[e]] == level[a] + 1:
                    break
                position[a] += 1
            else:
                if not path:
                    return
                a = to[path.pop() ^ 1]
                position[a] += 1
                continue
            path.append(e)
            a = to[e]

    def _reaching_sink(self) -> list[bool]:
        """Which nodes the sink can still be reached from."""
        found = [False] * len(self._edges_of)
        found[1] = True
        queue = deque([1])
        while queue:
            b = queue.popleft()
            for e in self._edges_of[b]:
                a = self._to[e]
                if self._left[e ^ 1] > 0 and not found[a]:
                    found[a] = True
                    queue.append(a)
        return found
