"""symbolic_trace on models as users write them: the traced module is the model."""

from __future__ import annotations

import copy
import math
from typing import Any

import models
import pytest

import argand as torch
from argand import fx, nn


def gpt2() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    model = models.define_gpt2(torch)()
    return model, (torch.randint(0, 61, (2, 11)),), {"targets": None}


def resnet() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    return models.define_resnet(torch)(), (torch.randn(2, 3, 32, 32),), {}


def perceptron() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    layers = [nn.Linear(5, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(dim=-1)]
    return nn.Sequential(*layers), (torch.randn(4, 5),), {}


def everything_inline(graph_of: nn.Module, concrete: dict[str, Any]) -> fx.GraphModule:
    class Inline(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return isinstance(m, nn.BatchNorm2d | nn.Embedding)

    return fx.GraphModule(graph_of, Inline().trace(graph_of, concrete))


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return a is b if a is None else torch.equal(a, b)


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("make", [gpt2, resnet, perceptron])
def test_traced_models_compute_the_same(make: Any, inline: bool):
    torch.manual_seed(0)
    model, inputs, concrete = make()
    twin = copy.deepcopy(model)
    gm = everything_inline(twin, concrete) if inline else fx.symbolic_trace(twin, concrete)
    gm.graph.lint()
    expected = model(*inputs)
    assert equal(gm(*inputs), expected)
    assert dict(gm.named_parameters()).keys() == dict(model.named_parameters()).keys()

    loss = (expected[0] if isinstance(expected, tuple) else expected).square().sum()
    loss.backward()
    result = gm(*inputs)
    (result[0] if isinstance(result, tuple) else result).square().sum().backward()
    if make is not resnet:  # whose running statistics have moved since
        for name, parameter in model.named_parameters():
            assert torch.equal(gm.get_parameter(name).grad, parameter.grad), name


@pytest.mark.parametrize("make", [gpt2, resnet, perceptron])
def test_every_form_of_a_traced_model_computes_the_same(make: Any):
    torch.manual_seed(0)
    model, inputs, concrete = make()
    model.eval()
    expected = model(*inputs)
    gm = everything_inline(model, concrete)
    parsed = fx.parse(gm.to_text(), resolve_target)
    forms = {
        "interpreter": fx.Interpreter(gm).run,
        "transformer": fx.Transformer(gm).transform(),
        "copy": copy.deepcopy(gm),
        "text": fx.GraphModule(gm, parsed),
        "again": fx.symbolic_trace(gm),
    }
    passes = [fx.passes.eliminate_common_subexpressions, fx.passes.eliminate_dead_code]
    cleaned = copy.deepcopy(gm)
    fx.passes.run(passes, cleaned, check=True)
    forms["passes"] = cleaned
    for name, form in forms.items():
        assert equal(form(*inputs), expected), name


def resolve_target(name: str) -> Any:
    """What the text of these models names, besides operators."""
    known = {"math.sqrt": math.sqrt, "builtins.getattr": getattr}
    return known[name] if name in known else fx.resolve_target(name)


def test_fusing_convolutions_with_batch_norm():
    """The classic use: fold a batch norm into the convolution before it."""
    torch.manual_seed(0)
    model = models.define_resnet(torch)()
    x = torch.randn(2, 3, 32, 32)
    model(x)  # running statistics that differ from the initial ones
    model.eval()
    expected = model(x)
    gm = fx.symbolic_trace(copy.deepcopy(model))
    modules = dict(gm.named_modules())
    folded = 0
    for node in gm.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        before = node.args[0]
        if before.op != "call_module" or len(before.users) > 1:
            continue
        conv, norm = modules[before.target], modules[node.target]
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        with torch.no_grad():
            conv.weight.copy_(conv.weight * scale.reshape(-1, 1, 1, 1))
            conv.bias = nn.Parameter(norm.bias - norm.running_mean * scale)
        node.replace_all_uses_with(before)
        gm.graph.erase_node(node)
        folded += 1
    gm.recompile()
    gm.delete_all_unused_submodules()
    assert folded >= 5 and not any(isinstance(m, nn.BatchNorm2d) for m in gm.modules())
    torch.testing.assert_close(gm(x), expected, rtol=1e-4, atol=1e-4)


def test_branches_on_values_say_what_to_do():
    with pytest.raises(fx.TraceError, match="control flow at .*models.py:.*concrete_args"):
        fx.symbolic_trace(models.define_llama(torch)())
