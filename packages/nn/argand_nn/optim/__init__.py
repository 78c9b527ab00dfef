"""Optimizers and learning-rate schedulers."""

from __future__ import annotations

from argand_nn.optim import lr_scheduler, swa_utils
from argand_nn.optim.adadelta import Adadelta
from argand_nn.optim.adafactor import Adafactor
from argand_nn.optim.adagrad import Adagrad
from argand_nn.optim.adam import Adam, AdamW
from argand_nn.optim.adamax import Adamax
from argand_nn.optim.asgd import ASGD
from argand_nn.optim.lbfgs import LBFGS
from argand_nn.optim.muon import Muon
from argand_nn.optim.nadam import NAdam
from argand_nn.optim.optimizer import Optimizer
from argand_nn.optim.radam import RAdam
from argand_nn.optim.rmsprop import RMSprop
from argand_nn.optim.rprop import Rprop
from argand_nn.optim.sgd import SGD
from argand_nn.optim.sparse_adam import SparseAdam
from argand_nn.optim.swap import swap_in_optimizer_params_and_state

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swap_in_optimizer_params_and_state",
    "swa_utils",
]
