"""Optimizers as functions of lists of tensors, where PyTorch has them."""

from __future__ import annotations

from argand_nn.optim.adadelta import adadelta
from argand_nn.optim.adagrad import adagrad
from argand_nn.optim.adam import adam, adamw
from argand_nn.optim.adamax import adamax
from argand_nn.optim.asgd import asgd
from argand_nn.optim.nadam import nadam
from argand_nn.optim.radam import radam
from argand_nn.optim.rmsprop import rmsprop
from argand_nn.optim.rprop import rprop
from argand_nn.optim.sgd import sgd
from argand_nn.optim.sparse_adam import sparse_adam

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]
