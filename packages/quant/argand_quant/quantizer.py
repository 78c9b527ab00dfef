"""`Quantizer`: what decides which values of a graph become integers."""

from __future__ import annotations

import abc

from argand_fx import GraphModule

__all__ = ["Quantizer"]


class Quantizer(abc.ABC):
    """Says what is to be quantized by annotating the nodes of a program's graph (`QuantizationAnnotation`).

    `prepare_pt2e` calls `transform_for_annotation`, `annotate` and `validate`, in this order. Parameters are placeholders of the graph;
    the name under which the module holds one is the placeholder's `meta["parameter"]`.
    """

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Change the graph before it is annotated; gives it back as it is."""
        return model

    @abc.abstractmethod
    def annotate(self, model: GraphModule) -> GraphModule:
        """Put annotations on the nodes."""

    @abc.abstractmethod
    def validate(self, model: GraphModule) -> None:
        """Raise where the annotated graph is not what the target can run."""
