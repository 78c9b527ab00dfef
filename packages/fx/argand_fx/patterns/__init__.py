"""Finding and replacing subgraphs."""

from argand_fx.patterns.matcher import Match, SubgraphMatcher
from argand_fx.patterns.subgraph_rewriter import replace_pattern, replace_pattern_with_filters

__all__ = ["Match", "SubgraphMatcher", "replace_pattern", "replace_pattern_with_filters"]
