"""The front-end: lazy imports, names, and a program written for it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import argand as torch
import argand.autograd
import argand.nn as nn
import argand.nn.functional as F
import argand.optim
import argand_nn
from argand.nn.parameter import Parameter
from argand.nn.utils import clip_grad_norm_
from argand.nn.utils.clip_grad import clip_grad_value_
from argand.optim.lr_scheduler import StepLR
from argand.utils.data import DataLoader, TensorDataset


def test_submodules_are_the_layers_own_objects():
    assert nn.Linear is argand_nn.Linear is torch.nn.Linear
    assert nn.Parameter is Parameter
    assert F.relu is argand_nn.functional.relu
    assert torch.nn.functional is F
    assert torch.optim.AdamW is argand.optim.AdamW
    assert torch.optim.lr_scheduler.StepLR is StepLR
    assert torch.utils.data.DataLoader is DataLoader
    assert torch.nn.utils.clip_grad_norm_ is clip_grad_norm_
    assert torch.nn.utils.clip_grad_value_ is clip_grad_value_
    assert torch.autograd is argand.autograd
    assert callable(torch.autograd.grad)
    assert torch.nn.init.zeros_ is argand_nn.init.zeros_


def test_names_of_all_layers():
    for name in (
        "Tensor", "float32", "bfloat16", "int64", "bool", "device", "Size", "Generator", "finfo",
        "manual_seed", "get_default_dtype", "set_num_threads", "get_num_threads", "zeros", "tensor",
        "from_numpy", "arange", "cat", "matmul", "no_grad", "enable_grad", "inference_mode",
        "is_grad_enabled", "save", "load", "is_tensor", "promote_types", "randn", "einsum",
    ):  # fmt: skip
        assert getattr(torch, name) is not None
        assert name in dir(torch)
    assert torch.__version__
    assert torch.sin(torch.tensor(torch.pi / 2)) == 1 and torch.e > 2.7
    assert torch.tensor([-torch.inf, torch.nan]).isfinite().sum() == 0
    assert torch.newaxis is None
    with pytest.raises(AttributeError, match="module 'argand' has no attribute 'absent'"):
        _ = torch.absent
    assert not hasattr(torch, "_private")
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0


def test_named_tuples_of_results():
    found = torch.tensor([[1.0, 3.0]]).max(1)
    assert type(found) is torch.return_types.max
    copied = pickle.loads(pickle.dumps(found))
    assert type(copied) is type(found) and copied.indices.item() == 1
    histogram = torch.histogramdd(torch.ones(3, 2), 1)
    assert type(histogram) is torch.return_types.histogramdd
    assert repr(histogram).startswith(
        "argand.return_types.histogramdd(\nhist=tensor([[3.]]),\nbin_"
    )
    with pytest.raises(AttributeError, match="no attribute 'sin'"):
        _ = torch.return_types.sin


def test_precision():
    assert torch.get_float32_matmul_precision() == "highest"
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    with pytest.raises(ValueError, match="got 'low'"):
        torch.set_float32_matmul_precision("low")


def test_importing_loads_no_layer():
    code = (
        "import sys, argand\n"
        "heavy = [m for m in sys.modules if m.startswith('argand_')]\n"
        "heavy += {'numpy', 'safetensors'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "argand.float32\n"
        "assert 'argand_nn' not in sys.modules\n"
        "assert 'safetensors' not in sys.modules\n"
        "assert 'multiprocessing' not in sys.modules\n"
        "argand.fx.symbolic_trace(lambda x: argand._assert(x.sum() > 0, 'sum'))\n"
        "assert not {'argand_dynamo', 'argand_inductor'} & set(sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert result.returncode == 0, result.stderr


def test_a_program():
    torch.manual_seed(0)
    x = torch.randn(256, 4)
    y = (x.sum(dim=1) > 0).to(torch.int64)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = StepLR(optimizer, 10, gamma=0.5)
    for _ in range(15):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).to(torch.float32).mean().item()
    assert accuracy > 0.95
    np.testing.assert_allclose(schedule.get_last_lr(), [0.005])
