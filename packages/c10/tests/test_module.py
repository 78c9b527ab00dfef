"""Module, Parameter and Buffer: what needs no operators. The rest is tested with the modules."""

from __future__ import annotations

import copy
import pickle

import pytest

import argand_c10 as c10
from argand_c10 import Buffer, Module, Parameter


class Affine(Module):
    def __init__(self, size=2):
        super().__init__()
        self.size = size
        self.weight = Parameter(c10.tensor([1.0] * size))
        self.register_parameter("bias", None)
        self.register_buffer("count", c10.tensor(0))
        self.register_buffer("scratch", c10.tensor([0.0]), persistent=False)

    def forward(self, x, scale=1):
        return (x, scale)

    def extra_repr(self):
        return f"size={self.size}"


class Pair(Module):
    def __init__(self):
        super().__init__()
        self.first = Affine()
        self.second = Affine(3)
        self.weight = Parameter(c10.tensor([5.0]), requires_grad=False)


def names(pairs):
    return [name for name, _ in pairs]


def test_parameter_shares_memory_and_is_a_leaf():
    data = c10.tensor([1.0, 2.0])
    parameter = Parameter(data)
    assert parameter.requires_grad
    assert not data.requires_grad
    assert parameter.is_leaf
    assert parameter.data_ptr() == data.data_ptr()
    assert not Parameter(data, requires_grad=False).requires_grad
    assert repr(parameter).startswith("Parameter containing:\ntensor([1., 2.]")
    with pytest.raises(TypeError, match="got data of type list"):
        Parameter([1.0])
    with pytest.raises(TypeError, match="got data of type int"):
        Buffer(3)


def test_parameters_are_copied_and_pickled_as_parameters():
    parameter = Parameter(c10.tensor([1.0, 2.0]), requires_grad=False)
    for other in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert type(other) is Parameter
        assert other.tolist() == [1.0, 2.0]
        assert not other.requires_grad
        assert other.data_ptr() != parameter.data_ptr()
    buffer = copy.deepcopy(Buffer(c10.tensor([1.0]), persistent=False))
    assert type(buffer) is Buffer
    assert not buffer.persistent


def test_registration_by_assignment():
    model = Pair()
    assert names(model.named_parameters()) == ["weight", "first.weight", "second.weight"]
    assert names(model.named_parameters(recurse=False)) == ["weight"]
    own = model._named_members(lambda module: [("kind", type(module))], prefix="m")
    assert dict(own)["m.first.kind"] is type(model.first)
    assert names(model.named_buffers()) == [
        "first.count",
        "first.scratch",
        "second.count",
        "second.scratch",
    ]
    assert names(model.named_modules()) == ["", "first", "second"]
    assert names(model.named_children()) == ["first", "second"]
    assert list(model.children()) == [model.first, model.second]
    assert model.first.bias is None
    model.late = Buffer(c10.tensor([1.0]), persistent=False)
    assert "late" in model._buffers
    assert "late" in model._non_persistent_buffers_set
    assert "first" in dir(model)


def test_shared_members_come_once():
    model = Pair()
    model.second.weight = model.first.weight
    model.third = model.first
    assert names(model.named_parameters()) == ["weight", "first.weight"]
    assert names(model.named_modules()) == ["", "first", "second"]
    both = names(model.named_parameters(remove_duplicate=False))
    assert both == ["weight", "first.weight", "second.weight", "third.weight"]
    assert names(model.named_modules(remove_duplicate=False)) == ["", "first", "second", "third"]


def test_a_name_changes_its_meaning():
    model = Pair()
    model.thing = 3
    model.thing = Affine()
    assert names(model.named_children())[-1] == "thing"
    model.thing = Parameter(c10.tensor([1.0]))
    assert "thing" not in model._modules
    assert "thing" in model._parameters
    del model.thing
    assert not hasattr(model, "thing")
    model.first = None
    assert model.first is None
    assert list(model.children()) == [model.second]


def test_wrong_assignments():
    model = Affine()
    with pytest.raises(TypeError, match="Affine.weight: got int, expected a Parameter or None"):
        model.weight = 3
    with pytest.raises(TypeError, match="expected a Parameter or None"):
        model.weight = c10.tensor([1.0])
    with pytest.raises(TypeError, match="Affine.count: got int, expected a Tensor or None"):
        model.count = 3
    pair = Pair()
    with pytest.raises(TypeError, match="Pair.first: got str, expected a Module or None"):
        pair.first = "x"
    with pytest.raises(AttributeError, match="'Pair' object has no attribute 'absent'"):
        _ = pair.absent
    with pytest.raises(AttributeError, match="absent"):
        del pair.absent


def test_wrong_registrations():
    model = Affine()
    with pytest.raises(KeyError, match="without '.'"):
        model.register_parameter("a.b", None)
    with pytest.raises(KeyError, match="already exists"):
        model.register_parameter("forward", None)
    with pytest.raises(KeyError, match="already exists"):
        model.register_buffer("size", None)
    with pytest.raises(TypeError, match="got Tensor for 'p', expected a Parameter"):
        model.register_parameter("p", c10.tensor([1.0]))
    with pytest.raises(TypeError, match="got int for 'b', expected a Tensor"):
        model.register_buffer("b", 3)
    with pytest.raises(TypeError, match="got int for 'm', expected a Module"):
        model.add_module("m", 3)

    class Forgetful(Module):
        def __init__(self):
            self.weight = Parameter(c10.tensor([1.0]))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) has run"):
        Forgetful()


def test_look_up():
    model = Pair()
    assert model.get_submodule("") is model
    assert model.get_submodule("first") is model.first
    assert model.get_parameter("first.weight") is model.first.weight
    assert model.get_buffer("second.count") is model.second.count
    with pytest.raises(AttributeError, match="no child 'third'"):
        model.get_submodule("third.x")
    with pytest.raises(AttributeError, match="expected a Module"):
        model.get_submodule("first.size")
    with pytest.raises(AttributeError, match="not a parameter"):
        model.get_parameter("first.count")
    with pytest.raises(AttributeError, match="not a buffer"):
        model.get_buffer("first.weight")
    replacement = Affine(7)
    model.set_submodule("first", replacement)
    assert model.first is replacement
    with pytest.raises(AttributeError, match="no child"):
        model.set_submodule("first.new", Affine(), strict=True)
    model.set_submodule("first.new", Pair())
    assert isinstance(model.first.new, Pair)


def test_modes_and_apply():
    model = Pair()
    assert model.training
    assert model.eval() is model
    assert not any(m.training for m in model.modules())
    model.first.train()
    assert model.first.training
    assert not model.training
    with pytest.raises(ValueError, match="got mode of type str"):
        model.train("yes")
    seen = []
    assert model.apply(lambda m: seen.append(type(m).__name__)) is model
    assert seen == ["Affine", "Affine", "Pair"]


def test_call_and_hooks_in_order():
    model = Affine()
    assert model(1, scale=2) == (1, 2)
    log = []
    first = model.register_forward_pre_hook(lambda m, args: log.append("pre") or (args[0] + 1,))
    model.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"scale": kwargs["scale"] * 10}), with_kwargs=True
    )
    model.register_forward_hook(lambda m, args, out: log.append(("post", args, out)))
    last = model.register_forward_hook(lambda m, args, kwargs, out: [out, kwargs], with_kwargs=True)
    assert model(1, scale=2) == [(2, 20), {"scale": 20}]
    assert log == ["pre", ("post", (2,), (2, 20))]
    first.remove()
    last.remove()
    last.remove()
    assert model(1, scale=2) == (1, 20)
    assert not model._forward_hooks_with_kwargs


def test_hooks_prepend_and_context():
    model = Affine()
    order = []
    model.register_forward_hook(lambda *_: order.append("a"))
    with model.register_forward_hook(lambda *_: order.append("b"), prepend=True):
        model(1)
    model(1)
    assert order == ["b", "a", "a"]


def test_always_called_hooks_run_when_forward_raises():
    class Broken(Module):
        def forward(self):
            raise ValueError("broken forward")

    model = Broken()
    seen = []
    model.register_forward_hook(lambda m, args, out: seen.append("usual"))
    model.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(ValueError, match="broken forward"):
        model()
    assert seen == [None]


def test_wrong_hook_results():
    model = Affine()
    model.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward_pre_hook: got int"):
        model(1)
    with pytest.raises(NotImplementedError, match="Module.forward: not defined"):
        Module()(1)


def test_repr():
    assert repr(Affine()) == "Affine(size=2)"
    assert repr(Module()) == "Module()"
    assert repr(Pair()) == "Pair(\n  (first): Affine(size=2)\n  (second): Affine(size=3)\n)"
    outer = Module()
    outer.pair = Pair()
    assert repr(outer).splitlines()[2] == "    (first): Affine(size=2)"


def test_state_dict_names():
    model = Pair()
    state = model.state_dict(keep_vars=True)
    assert list(state) == [
        "weight",
        "first.weight",
        "first.count",
        "second.weight",
        "second.count",
    ]
    assert state["first.weight"] is model.first.weight
    assert state._metadata["first"] == {"version": 1}
    target = {}
    assert model.first.state_dict(destination=target, prefix="net.", keep_vars=True) is target
    assert list(target) == ["net.weight", "net.count"]


def test_modules_are_pickled_and_copied():
    model = Pair()
    model.register_forward_hook(print)
    other = copy.deepcopy(model)
    assert names(other.named_parameters()) == names(model.named_parameters())
    assert other.first.weight is not model.first.weight
    assert len(other._forward_hooks) == 1
    model._forward_hooks.clear()
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.second.weight.tolist() == [1.0, 1.0, 1.0]
