"""symbolic_trace on models as users write them: the traced module is the model."""

from __future__ import annotations

import copy
import math
from typing import Any

import models
import pytest

import argand as torch
from argand import fx, nn
from argand.nn.functional import silu as imported_silu


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


def with_tensor(*shape: int) -> torch.Tensor:
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape) / 7


LIBRARY_FUNCTIONS: dict[str, tuple[Any, torch.Tensor]] = {
    "einsum": (lambda x: torch.einsum("...ij,...kj->...ik", x, x), with_tensor(2, 4, 3)),
    "tensordot": (lambda x: torch.tensordot(x, x, dims=2), with_tensor(3, 3)),
    "mse_loss": (lambda x: nn.functional.mse_loss(x, x + 1), with_tensor(2, 3)),
    "interpolate": (
        lambda x: nn.functional.interpolate(x, size=(5, 7), mode="bilinear"),
        with_tensor(1, 2, 3, 4),
    ),
    "batch_norm": (
        lambda x: nn.functional.batch_norm(x, None, None, training=True),
        with_tensor(4, 3),
    ),
    "imported": (lambda x: imported_silu(x), with_tensor(4)),
}


@pytest.mark.parametrize("name", LIBRARY_FUNCTIONS)
def test_functions_made_of_operators_are_single_nodes(name: str) -> None:
    function, x = LIBRARY_FUNCTIONS[name]
    gm = fx.symbolic_trace(function)
    assert torch.equal(gm(x), function(x))
    targets = [node.target for node in gm.graph.find_nodes(op="call_function")]
    assert getattr(nn.functional, name, getattr(torch, name, imported_silu)) in targets
    assert torch.equal(torch.compile(gm, fullgraph=True, backend="eager")(x), function(x))
    parsed = fx.parse(gm.to_text())
    assert torch.equal(fx.GraphModule({}, parsed)(x), function(x))


def test_assertions_are_nodes_that_stay() -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        torch._assert(x.shape[0] == 4, "expected four rows")
        torch._assert(x.sum() > 0, "expected a positive sum")
        return x * 2

    gm = fx.symbolic_trace(checked)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    assert gm(torch.ones(4)).tolist() == [2.0] * 4
    with pytest.raises(AssertionError, match="four rows"):
        gm(torch.ones(3))
    with pytest.raises(AssertionError, match="positive sum"):
        gm(-torch.ones(4))


def test_functions_of_proxies_outside_of_a_trace() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    torch._assert(x.shape[0] == 2, "expected two rows")
    graph.output(torch.einsum("ij,kj->ik", x, x).node)
    gm = fx.GraphModule({}, graph)
    value = with_tensor(2, 3)
    assert torch.equal(gm(value), value @ value.T)
    with pytest.raises(AssertionError, match="two rows"):
        gm(with_tensor(3, 3))
