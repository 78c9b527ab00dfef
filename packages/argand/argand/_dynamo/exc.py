"""Exceptions of the tracer, where PyTorch has them."""

from __future__ import annotations

from argand_dynamo import GraphBreak, RecompileLimitError

__all__ = ["FailOnRecompileLimitHit", "RecompileLimitExceeded", "Unsupported"]

Unsupported = GraphBreak
RecompileLimitExceeded = FailOnRecompileLimitHit = RecompileLimitError
