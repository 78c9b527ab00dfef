"""Where a compiled graph's backward graphs come from: the joint graph, or what an earlier process kept of it.

What derives is imported when it is needed: a process that finds all of its programs on disk never does.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from argand_autograd.graph_ops import keep_grad_mode
from argand_c10 import debug_trace, logs, metrics
from argand_c10.collection import gc_paused
from argand_c10.disk_cache import DiskCache
from argand_c10.source_digest import source_digest

if TYPE_CHECKING:
    from argand_aot.joint import Joint
    from argand_aot.partition import Partition
    from argand_fx import GraphModule

    # Changes nodes of a joint graph between its inputs and results.
    JointPass = Callable[[Joint], None]

__all__ = ["FORMAT", "Source"]

# What derives and partitions: rules of derivatives and of shapes lie in the packages below.
_PACKAGES = ("argand_c10", "argand_aten", "argand_autograd", "argand_fx", "argand_aot")
# Of what is kept; what other versions, sources or libraries made is compiled again.
FORMAT = " ".join(["4", *(source_digest(name) for name in _PACKAGES)])
_cache = DiskCache("aot")


class Source:
    """The joint graph of a traced graph, built when it is needed.

    Args:
        module, example_inputs: the traced graph; None where it lies in the disk cache.
        joint: its joint graph, if that is there already.
        joint_passes: rewrite the joint graph before it is partitioned.
    """

    def __init__(
        self,
        module: GraphModule | None = None,
        example_inputs: Sequence[Any] = (),
        joint: Joint | None = None,
        joint_passes: Sequence[JointPass] = (),
    ) -> None:
        self._module = module
        self._example_inputs = example_inputs
        self._joint = joint
        self._joint_passes = joint_passes
        self._chosen: Partition | None = None
        self._key: str | None = None
        self._load_program: Callable[[dict[str, Any]], Any] | None = None

    @classmethod
    def stored(
        cls,
        key: str | None,
        load_program: Callable[[dict[str, Any]], Any],
        joint_passes: Sequence[JointPass] = (),
    ) -> Source:
        """A source in the disk cache."""
        made = cls(joint_passes=joint_passes)
        made._key = key
        made._load_program = load_program
        return made

    def partitioned(self) -> tuple[Joint, Partition | None]:
        """The joint graph, and what is kept for backward; None without gradients.

        Raises:
            RuntimeError: if the disk cache has lost it.
        """
        from argand_aot.joint import build_joint
        from argand_aot.partition import partition

        stored = self._joint is None
        if self._joint is None:
            self._joint = build_joint(*self._read())
        joint = self._joint
        if self._chosen is None and joint.has_backward:
            with metrics.timed("derive"):
                everything = joint.widest()
                for rewrite in self._joint_passes:
                    rewrite(joint)
                joint.note_forward()
            _show_joint(joint)
            with metrics.timed("partition"):
                self._chosen = partition(joint, everything)
        if stored and joint.builder.shape_env is not None:
            joint.builder.shape_env.freeze()  # the process that traced the graph has taken the guards
        return joint, self._chosen

    def backward_graph(
        self, pattern: bytes, symbols: Sequence[str], early: bool = False
    ) -> GraphModule:
        """The backward graph for a pattern of gradients; its first inputs are these symbols. `early`: it tells of gradients that are
        ready."""
        from argand_aot.partition import extract_backward

        with gc_paused():
            joint, chosen = self.partitioned()
            assert chosen is not None, "only graphs with gradients have a backward graph"
            derived = joint.backward([bool(b) for b in pattern])
            return extract_backward(joint, chosen, derived, symbols, early)

    def functional_graph(self) -> GraphModule:
        """The functional forward graph that keeps nothing."""
        from argand_aot.partition import extract_forward

        return extract_forward(self.partitioned()[0], None)

    def run_traced(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the traced graph itself, operator by operator."""
        if self._module is None:
            self._module, self._example_inputs = self._read()
        found = keep_grad_mode(self._module)(*inputs)
        return tuple(found) if isinstance(found, (list, tuple)) else (found,)

    def cuts_history(self) -> bool:
        """Whether the traced graph has a place that gradients do not pass: detached tensors, or gradients turned off."""
        from argand_aot.view_steps import detaches
        from argand_c10 import Operator

        return any(
            not node.meta.get("grad_enabled", True)
            or (isinstance(node.target, Operator) and node.target.is_view and detaches(node.target))
            for node in self._read()[0].graph.nodes
        )

    def location(self) -> tuple[str | None, int]:
        """The user's first line in the graph."""
        for node in self._module.graph.nodes if self._module is not None else ():
            place = node.meta.get("location")
            if place is not None:
                return place[0], place[1]
        return None, 0

    def _read(self) -> tuple[GraphModule, Sequence[Any]]:
        if self._module is not None:
            return self._module, self._example_inputs
        entry = _cache.get(self._key) if self._key is not None else None
        if entry is None:
            raise RuntimeError(
                "backward: got a compiled graph from the disk cache whose derivative has since been removed from it; "
                "clear the cache (ARGAND_CACHE_DIR) and run the program again"
            )
        from argand_aot.stored_graph import graph_from_files

        return graph_from_files(entry.contents.__getitem__)

    def store(self, program: str) -> str | None:
        """Keep the traced graph on disk; its key, or None where that was not possible.

        Args:
            program: text that tells forward programs apart.
        """
        if self._key is None and self._module is not None:
            from argand_aot.stored_graph import graph_to_files

            files = graph_to_files(self._module, self._example_inputs)
            digest = hashlib.sha256(f"{FORMAT} {program}".encode())
            for name, content in sorted(files.items()):
                digest.update(f" {name} {len(content)} ".encode() + content)
            key = digest.hexdigest()[:40]
            if _cache.get(key) is None and _cache.put(key, files, {}) is None:
                return None
            self._key = key
        return self._key

    def load_backward(self, pattern: bytes, early: bool) -> Callable[..., Any] | None:
        """A backward program that an earlier process has kept."""
        if self._key is None or self._load_program is None:
            return None
        entry = _cache.get(self._backward_key(pattern, early))
        found: Callable[..., Any] | None = (
            None if entry is None else self._load_program(entry.manifest["program"])
        )
        return found

    def _backward_key(self, pattern: bytes, early: bool) -> str:
        return f"{self._key}-{pattern.hex()}{'-early' if early else ''}"

    def store_backward(self, pattern: bytes, early: bool, program: dict[str, Any]) -> None:
        """Keep a backward program, if the graph itself is kept."""
        if self._key is not None:
            _cache.put(self._backward_key(pattern, early), {}, {"program": program})


def _show_joint(joint: Joint) -> None:
    channel = logs.channel("joint_graph")
    if channel.isEnabledFor(logging.INFO):
        channel.info("%s", joint.graph)
    if debug_trace.enabled():
        from argand_fx import Graph, GraphModule

        whole = Graph()
        whole.graph_copy(joint.graph, {})
        debug_trace.add("joint_graph", GraphModule(joint.root, whole))
