"""Module: state, conversion, gradients and backward hooks."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn


def small():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2, bias=False))


def values(module):
    return {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}


def equal(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_state_dict_shares_memory_without_history():
    model = small()
    state = model.state_dict()
    assert list(state) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
        "2.weight",
    ]
    assert not any(tensor.requires_grad for tensor in state.values())
    state["0.bias"].fill_(3.0)
    assert model[0].bias.tolist() == [3.0] * 4


def test_load_copies_values():
    a, b = small(), small()
    b(aten.rand(5, 3))
    bias = a[0].bias
    result = a.load_state_dict(b.state_dict())
    assert str(result) == "<All keys matched successfully>"
    assert equal(values(a), values(b))
    assert a[0].bias is bias
    assert bias.data_ptr() != b[0].bias.data_ptr()
    assert int(a[1].num_batches_tracked) == 1


def test_load_with_assign_takes_the_tensors():
    a, b = small(), small()
    state = b.state_dict()
    a.load_state_dict(state, assign=True)
    assert isinstance(a[0].weight, nn.Parameter)
    assert a[0].weight.data_ptr() == state["0.weight"].data_ptr()


def test_load_reports_every_problem_and_changes_nothing():
    model = small()
    before = values(model)
    state = dict(small().state_dict())
    state["0.weight"] = aten.zeros(4, 5)
    state["2.weight"] = [1, 2]
    state["9.weight"] = aten.zeros(1)
    state["1.extra"] = aten.zeros(1)
    del state["0.bias"]
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    text = str(caught.value)
    assert "does not fit Sequential" in text
    assert "0.weight: got shape [4, 5], expected [4, 3]" in text
    assert "2.weight: got list, expected a Tensor" in text
    assert 'missing keys: "0.bias"' in text
    assert '"9.weight"' in text
    assert '"1.extra"' in text
    assert equal(values(model), before)
    with pytest.raises(TypeError, match="load_state_dict: got list"):
        model.load_state_dict([1])


def test_numbers_of_older_versions_have_a_dimension():
    layer = nn.BatchNorm1d(2)
    layer.load_state_dict({**layer.state_dict(), "num_batches_tracked": aten.tensor([7])})
    assert layer.num_batches_tracked.shape == () and layer.num_batches_tracked.item() == 7
    state = {**layer.state_dict(), "num_batches_tracked": aten.tensor([8])}
    layer.load_state_dict(state, assign=True)
    assert layer.num_batches_tracked.shape == () and layer.num_batches_tracked.item() == 8


def test_strict_false_reports_keys():
    model = small()
    state = dict(small().state_dict())
    del state["0.bias"]
    state["other"] = aten.zeros(1)
    result = model.load_state_dict(state, strict=False)
    assert result.missing_keys == ["0.bias"]
    assert result.unexpected_keys == ["other"]
    state["0.weight"] = aten.zeros(1)
    with pytest.raises(RuntimeError, match="0.weight: got shape"):
        model.load_state_dict(state, strict=False)


def test_non_persistent_buffers_are_left_out():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", aten.ones(2), persistent=False)

    assert list(Masked().state_dict()) == []
    with pytest.raises(RuntimeError, match="unexpected keys"):
        Masked().load_state_dict({"mask": aten.ones(2)})


def test_states_and_hooks_are_shown_as_dicts():
    layer = nn.Linear(1, 1, bias=False)
    assert repr(layer.state_dict()) == repr(OrderedDict(layer.state_dict()))
    assert repr(layer._forward_hooks) == "OrderedDict()"


def test_extra_state():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def get_extra_state(self):
            return {"calls": self.calls}

        def set_extra_state(self, state):
            self.calls = state["calls"]

    model = nn.Sequential(Counting())
    model[0].calls = 5
    other = nn.Sequential(Counting())
    other.load_state_dict(model.state_dict())
    assert other[0].calls == 5
    with pytest.raises(RuntimeError, match='missing keys: "0._extra_state"'):
        other.load_state_dict({})


def test_load_hooks():
    model, log = nn.Linear(2, 2), []
    model.register_load_state_dict_pre_hook(
        lambda m, state, prefix, *rest: state.update(
            {prefix + "bias": state.pop(prefix + "offset")}
        )
    )

    def forgive(module, keys):
        log.append((module.bias.detach().tolist(), list(keys.missing_keys)))
        keys.missing_keys.clear()

    model.register_load_state_dict_post_hook(forgive)
    model.load_state_dict({"offset": aten.ones(2)})
    assert log == [([1.0, 1.0], ["weight"])]


def test_batch_norm_states_without_a_count():
    model = nn.BatchNorm1d(2)
    state = {k: v for k, v in model.state_dict().items() if k != "num_batches_tracked"}
    model.load_state_dict(state)
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        versioned = model.state_dict()
        del versioned["num_batches_tracked"]
        model.load_state_dict(versioned)


def test_conversion_keeps_parameters_and_integer_buffers():
    model = small()
    weight = model[0].weight
    model(aten.rand(4, 3)).sum().backward()
    assert model.double() is model
    assert model[0].weight is weight
    assert weight.dtype == weight.grad.dtype == c10.float64
    assert model[1].running_mean.dtype == c10.float64
    assert model[1].num_batches_tracked.dtype == c10.int64
    assert model.to(c10.bfloat16)[2].weight.dtype == c10.bfloat16
    assert model.half().float()[0].weight.dtype == c10.float32
    assert model.to("cpu", c10.float64)[0].bias.dtype == c10.float64
    assert model.to(aten.zeros(1))[0].bias.dtype == c10.float32
    assert all(p.requires_grad for p in model.parameters())
    meta = model.to(device="meta")
    assert all(p.device.type == "meta" for p in meta.parameters())
    with pytest.raises(NotImplementedError, match=r"Cannot copy out of meta tensor.*to_empty"):
        meta.to("cpu")
    for call in (lambda t: t.cpu(), lambda t: t.to("cpu"), lambda t: t.to(aten.ones(1))):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            call(meta[0].weight)
    assert meta.to("meta", c10.float64)[0].weight.is_meta
    assert meta.to_empty(device="cpu")[0].weight.device.type == "cpu"
    with pytest.raises(TypeError, match="expected a floating-point or complex dtype"):
        model.to(c10.int32)
    with pytest.raises(TypeError, match="unexpected keyword"):
        model.to(colour="red")


def test_gradients():
    model = small()
    model(aten.rand(4, 3)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    model.zero_grad(set_to_none=False)
    assert all(float(p.grad.abs().sum()) == 0 for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_(False)
    assert not model(aten.rand(4, 3)).requires_grad


def test_computed_tensors_are_no_parameters():
    module = nn.Module()
    leaf = nn.Parameter(aten.ones(2))
    with pytest.raises(TypeError, match="expected a Parameter"):
        module.register_parameter("p", leaf * 2)
    assert type(leaf * 2) is c10.Tensor


def test_backward_hook_sees_and_changes_gradients():
    layer = nn.Linear(2, 1, bias=False)
    layer.weight.data.copy_(aten.tensor([[2.0, 3.0]]))
    seen = []

    def hook(module, grad_input, grad_output):
        seen.append((module is layer, grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    handle = layer.register_full_backward_hook(hook)
    x = aten.ones(1, 2, requires_grad=True)
    # x is used twice; the hook sees the gradient through the layer alone.
    (layer(x) + x.sum()).sum().backward()
    assert seen == [(True, [[2.0, 3.0]], [[1.0]])]
    assert x.grad.tolist() == [[21.0, 31.0]]
    handle.remove()
    layer(x).sum().backward()
    assert len(seen) == 1


def test_backward_pre_hook_and_several_inputs():
    class Product(nn.Module):
        def forward(self, a, b):
            return a * b

    module, seen = Product(), []
    module.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 2,))
    module.register_full_backward_hook(
        lambda m, gi, go: seen.append([g.tolist() for g in (*gi, *go)])
    )
    a, b = aten.tensor([3.0], requires_grad=True), aten.tensor([5.0], requires_grad=True)
    module(a, b).sum().backward()
    assert seen == [[[10.0], [6.0], [2.0]]]
    assert (a.grad.tolist(), b.grad.tolist()) == ([10.0], [6.0])


def test_backward_hook_without_input_gradients():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    layer(aten.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]
    assert layer.weight.grad.tolist() == [[1.0, 1.0]]


def test_wrong_backward_hook_results():
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    out = layer(aten.ones(1, 2, requires_grad=True))
    with pytest.raises(RuntimeError, match="got 2 gradients, expected 1"):
        out.sum().backward()


def test_assigned_parameters_need_gradients_where_the_modules_did():
    model = nn.Linear(2, 2)
    state = {"weight": nn.Parameter(aten.ones(2, 2), requires_grad=False), "bias": aten.ones(2)}
    model.load_state_dict(state, assign=True)
    assert model.weight is state["weight"] and model.weight.requires_grad
    assert model.bias.requires_grad


def test_post_hooks_of_the_state_change_it_in_place():
    model = nn.Linear(1, 1)
    handle = model.register_state_dict_post_hook(lambda m, state, prefix, meta: {"other": 1})
    with pytest.raises(RuntimeError, match="in place"):
        model.state_dict()
    handle.remove()
    model.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop("bias") and None)
    assert list(model.state_dict()) == ["weight"]
    model._register_state_dict_hook(lambda m, state, prefix, meta: {"other": 1})
    assert model.state_dict() == {"other": 1}


def test_types_by_name_and_submodules_that_are_modules():
    model = nn.Sequential(nn.Linear(1, 1), nn.CELU())
    assert model.type("argand.DoubleTensor")[0].weight.dtype == c10.float64
    with pytest.raises(ValueError, match="expected a Module"):
        model.set_submodule("0", 3)
    assert not isinstance(model[1], nn.ELU) and "alpha=1.0" in repr(model[1])
