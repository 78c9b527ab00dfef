"""Optimizers and learning-rate schedulers."""

from __future__ import annotations

from argand_nn.optim import lr_scheduler
from argand_nn.optim.adam import Adam, AdamW
from argand_nn.optim.optimizer import Optimizer
from argand_nn.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
