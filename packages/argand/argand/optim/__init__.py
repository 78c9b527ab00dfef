"""Optimizers and learning-rate schedulers."""

from __future__ import annotations

from argand_nn.optim import SGD, Adam, AdamW, Optimizer

from argand.optim import lr_scheduler

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
