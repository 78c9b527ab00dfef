"""Datasets, samplers and the `DataLoader`."""

from __future__ import annotations

import importlib
from typing import Any

import argand_nn.data
from argand.import_paths import publish
from argand_nn.data import *  # noqa: F403
from argand_nn.data import collate, dataloader, dataset, sampler

__all__ = [*argand_nn.data.__all__, "DistributedSampler"]  # noqa: F405  (by `__getattr__`)

publish(
    __name__,
    {"_utils": argand_nn.data, "dataloader": dataloader, "dataset": dataset, "sampler": sampler},
)
publish(f"{__name__}._utils", {"collate": collate})


def __getattr__(name: str) -> Any:
    # Of a layer that is loaded when it is used.
    if name == "DistributedSampler":
        return importlib.import_module("argand.distributed").DistributedSampler
    if name == "distributed":
        return importlib.import_module("argand.utils.data.distributed")
    raise AttributeError(f"module 'argand.utils.data' has no attribute {name!r}")
