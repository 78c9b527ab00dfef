"""Attributes by which functions tell the tracer how to treat them."""

DISABLED = "_argand_disabled"
ALLOWED = "_argand_allowed_in_graph"
