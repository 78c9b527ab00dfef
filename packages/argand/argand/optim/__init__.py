"""Optimizers and learning-rate schedulers."""

from __future__ import annotations

from argand.optim import lr_scheduler
from argand_nn.optim import SGD, Adam, AdamW, Optimizer

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
