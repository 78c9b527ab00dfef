"""Hooks of all modules, and compilation in place."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import argand_aten as aten
import argand_nn as nn
from argand_c10 import module_hooks
from argand_nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)


def test_hooks_of_all_calls_come_before_a_modules_own():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seen = []
    x = aten.ones(1, 2)
    model[0].register_forward_pre_hook(lambda m, args: seen.append("own pre"))
    model[0].register_forward_hook(lambda m, args, out: seen.append("own"))
    before = register_module_forward_pre_hook(
        lambda m, args: seen.append(f"pre {type(m).__name__}")
    )
    after = register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__))
    model(x)
    assert seen == ["pre Sequential", "pre Linear", "own pre", "Linear", "own", "pre ReLU", "ReLU",
                    "Sequential"]  # fmt: skip
    before.remove()
    after.remove()
    seen.clear()
    model(x)
    assert seen == ["own pre", "own"] and not module_hooks.GLOBAL_CALL_HOOKS


def test_hooks_of_all_calls_change_values():
    layer = nn.Identity()
    with register_module_forward_pre_hook(lambda m, args: args[0] + 1):
        assert layer(aten.zeros(1)).item() == 1
        with register_module_forward_hook(
            lambda m, args, kwargs, out: out * 10 + len(kwargs), with_kwargs=True
        ):
            assert layer(aten.zeros(1)).item() == 10
    assert layer(aten.zeros(1)).item() == 0


def test_hooks_that_always_run():
    class Broken(nn.Module):
        def forward(self, x):
            raise ArithmeticError("broken")

    seen = []
    with register_module_forward_hook(lambda m, args, out: seen.append(out), always_call=True):
        with pytest.raises(ArithmeticError, match="broken"):
            Broken()(aten.ones(1))
    assert seen == [None]


def test_backward_hooks_of_all_modules():
    model = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Identity())
    seen = []
    with (
        register_module_full_backward_hook(
            lambda m, grad_in, grad_out: seen.append((type(m).__name__, grad_out[0].numpy().copy()))
        ),
        register_module_full_backward_pre_hook(
            lambda m, grad_out: (grad_out[0] * 2,) if isinstance(m, nn.Identity) else None
        ),
    ):
        model(aten.ones(1, 2)).sum().backward()
    assert [name for name, _ in seen] == ["Sequential", "Identity", "Linear"]
    np.testing.assert_array_equal(seen[2][1], 2 * np.ones((1, 3)))
    np.testing.assert_array_equal(model[0].weight.grad.numpy(), 2 * np.ones((3, 2)))
    layer = nn.Linear(2, 2)
    layer.register_backward_hook(lambda m, grad_in, grad_out: seen.clear())
    layer(aten.ones(1, 2)).sum().backward()
    assert not seen


def test_hooks_of_registration():
    names = []
    with (
        register_module_parameter_registration_hook(lambda m, name, p: names.append(name)),
        register_module_buffer_registration_hook(
            lambda m, name, buffer: None if buffer is None else buffer + 5
        ),
        register_module_module_registration_hook(
            lambda m, name, child: nn.Tanh() if isinstance(child, nn.ReLU) else None
        ),
    ):
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        model.act = nn.ReLU()
        model.register_buffer("count", aten.zeros(1))
        model.plain = nn.Parameter(aten.zeros(1))
    assert names == ["weight", "bias", "plain"] and model.count.item() == 5
    assert isinstance(model[1], nn.Tanh) and isinstance(model.act, nn.Tanh)
    assert isinstance(nn.Sequential(nn.ReLU())[0], nn.ReLU)


def test_compile_in_place(monkeypatch):
    compiled = []

    def compiler(function, mode=None):
        compiled.append(mode)

        def run(*args, **kwargs):
            compiled.append("call")
            return function(*args, **kwargs)

        return run

    model = nn.Sequential(nn.Linear(2, 2))
    monkeypatch.setattr(module_hooks, "_module_compiler", None)
    with pytest.raises(RuntimeError, match="Module.compile: got no compiler"):
        model.compile()
    monkeypatch.setattr(module_hooks, "_module_compiler", compiler)
    x = aten.ones(1, 2)
    plain = model(x)
    assert model.compile(mode="max") is None and compiled == ["max"]
    model.register_forward_hook(lambda m, args, out: out + 1)
    np.testing.assert_allclose(model(x).detach().numpy(), plain.detach().numpy() + 1)
    assert compiled == ["max", "call"]
    twin = copy.deepcopy(model)  # a copy is not compiled
    np.testing.assert_allclose(twin(x).detach().numpy(), plain.detach().numpy() + 1)
    assert compiled == ["max", "call"] and "_compiled_call_impl" not in twin.__dict__


def test_arguments_of_further_bases():
    class Named:
        def __init__(self, name):
            self.name = name

    class Both(nn.Module, Named):
        call_super_init = True

    assert Both("a").name == "a" and Both("a").training
    with pytest.raises(TypeError, match="Linear: got arguments for Module.__init__"):
        nn.Module.__init__(nn.Linear(1, 1), 3)


def test_reserved_names_of_parameters_are_not_registered():
    seen = []
    handle = register_module_parameter_registration_hook(lambda m, name, p: seen.append(name))
    nn.Linear(1, 1, bias=False)
    handle.remove()
    assert seen == ["weight"]


def test_backward_hooks_are_of_one_kind(monkeypatch):
    def nothing(*args):
        return None

    for first, second in ((0, 1), (1, 0)):
        layer = nn.ReLU()
        kinds = (layer.register_backward_hook, layer.register_full_backward_hook)
        kinds[first](nothing)
        kinds[first](nothing)
        with pytest.raises(RuntimeError, match="on a single Module"):
            kinds[second](nothing)
    monkeypatch.setattr(module_hooks, "_global_hooks_are_full", None)
    module_hooks.register_module_backward_hook(nothing).remove()
    with pytest.raises(RuntimeError, match="as a global Module hook"):
        module_hooks.register_module_full_backward_hook(nothing)
