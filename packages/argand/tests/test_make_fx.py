"""`make_fx`, what its nodes are told, pictures of graphs."""

from __future__ import annotations

from typing import Any

import pytest

import argand as torch
import argand.fx.traceback as traceback
from argand.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from argand.fx.passes.graph_drawer import FxGraphDrawer

F = torch.nn.functional
X = torch.arange(6.0).reshape(2, 3) / 7
LINEAR = torch.nn.Linear(3, 3)


def loss(x: Any) -> Any:
    return (x.sin() * x).sum()


def gradient(x: Any) -> Any:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(loss(x), x)[0]


def written(x: Any) -> Any:
    y = x.clone()
    y[0].fill_(3)
    return y.add_(1) * x


PROGRAMS: dict[str, Any] = {
    "pointwise": lambda x: x.sin() + 1,
    "gradient": gradient,
    "grad": torch.func.grad(loss),
    "grad_and_value": torch.func.grad_and_value(loss),
    "reused": torch.func.grad(lambda v: (v**2).sum() + (v * v.sum()).sum()),
    "saved result": lambda x: torch.func.vjp(lambda v: v.exp(), x)[1](x)[0],
    "hessian": lambda x: torch.func.hessian(loss)(x[0]),
    "jacobian": lambda x: torch.func.jacrev(lambda y: y.sin())(x[0]),
    "vmap": torch.vmap(lambda row: row * row.sum()),
    "written": written,
    "parameters": lambda x: LINEAR(x),
    "by argument": torch.func.grad(lambda v: LINEAR(v).sum()),
    "constant": lambda x: x + torch.tensor([1.0, 2.0, 3.0]),
    "several": lambda x: x.max(1),
    "list": lambda x: x.split(1)[1],
    "structure": lambda x: {"a": [x, (x + 1,)]},
    "data": lambda x: x.data * x.data.T.sum(),
    "random": lambda x: F.dropout(x, 0.5) * torch.rand(3),
    "nothing": lambda x: x,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["real", "fake"])
def test_graphs_compute_what_functions_do(name: str, mode: str) -> None:
    module = make_fx(PROGRAMS[name], tracing_mode=mode)(X)
    module.graph.lint()
    for x in (X, X * 2 - 1):
        results = []
        for call in (module, PROGRAMS[name]):
            torch.manual_seed(0)
            results.append(torch.utils._pytree.tree_leaves(call(x.clone())))
        assert len(results[0]) == len(results[1]) > 0
        assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_nodes() -> None:
    aten = torch.ops.aten
    module = make_fx(lambda x: (x + 1).sin() * LINEAR.weight)(X[:1])
    nodes = list(module.graph.nodes)
    assert [n.op for n in nodes][0] == "placeholder" and nodes[0].name == "x_1"
    calls = [n.target for n in nodes if n.op == "call_function"]
    assert calls == [aten.add.Tensor, aten.sin.default, aten.mul.Tensor]
    assert nodes[1].meta["val"].shape == (1, 3)
    assert nodes[1].meta["original_aten"] is aten.add.Tensor
    assert [name for name, _ in module.named_parameters()] == ["_param_constant0"]


def test_arguments_in_containers() -> None:
    module = make_fx(lambda d, n: d["a"] + d["b"] * n)({"a": X, "b": X}, 2)
    assert torch.equal(module({"a": X, "b": X * 2}, 2), X * 5)


def test_decompositions() -> None:
    aten = torch.ops.aten
    table = {aten.sin.default: lambda x: x.cos() + 1}
    module = make_fx(lambda x: x.sin() * 2, decomposition_table=table)(X)
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert calls == [aten.cos.default, aten.add.Tensor, aten.mul.Tensor]


def test_what_is_refused() -> None:
    for f in (
        lambda x: x * 2 if x.sum() > 0 else x,
        lambda x: x * x.sum().item(),
        lambda x: x.tolist(),
        lambda x: x * int(x.data[0, 1]),
    ):
        with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
            make_fx(f)(X)
    assert X.sum().item() > 0 and get_proxy_mode() is None
    with pytest.raises(ValueError, match="got tracing_mode='never'"):
        make_fx(loss, tracing_mode="never")
    with pytest.raises(NotImplementedError, match="use export"):
        make_fx(loss, tracing_mode="symbolic")
    seen: list[Any] = []
    make_fx(lambda x: seen.append(get_proxy_mode()) or x + 1)(X)
    assert seen[0] is not None


def test_annotations() -> None:
    @traceback.annotate_fn({"part": "inner"})
    def inner(x: Any) -> Any:
        return x.sin()

    def f(x: Any) -> Any:
        with traceback.annotate({"a": 1}):
            y = inner(x)
            with traceback.annotate({"a": 2}):
                y = y + 1
        return y * 2

    sin, add, mul = list(make_fx(f)(X).graph.nodes)[1:4]
    assert sin.meta["custom"] == {"a": 1, "part": "inner"} and add.meta["custom"] == {"a": 2}
    assert "custom" not in mul.meta
    assert not traceback.has_preserved_node_meta() and traceback.get_current_meta() == {}
    assert "test_make_fx" in "".join(traceback.format_stack())
    sin.meta["stack_trace"] = "line\n"
    with traceback.preserve_node_meta(), traceback.set_current_meta(sin):
        assert traceback.has_preserved_node_meta() and traceback.format_stack() == ["line\n"]
        traceback.set_grad_fn_seq_nr(3)
        (node,) = make_fx(lambda x: x.cos())(X).graph.find_nodes(
            op="call_function", target=torch.ops.aten.cos.default
        )
        traceback.reset_grad_fn_seq_nr()
    assert node.meta["grad_fn_seq_nr"] == [3] and node.meta["from_node"][0][0] == "sin"
    assert traceback.get_current_meta() == {}


def test_pictures(tmp_path: Any) -> None:
    drawer = FxGraphDrawer(make_fx(lambda x: x.sin())(X), "sine")
    picture = drawer.get_dot_graph()
    text = picture.to_string()
    assert text.startswith('digraph "sine"') and '"x_1" -> "sin";' in text and "target=sin" in text
    assert picture.write_svg(tmp_path / "graph.svg") and picture.write(tmp_path / "graph.dot")
    assert (tmp_path / "graph.svg").read_text().startswith("<svg")
    assert (tmp_path / "graph.dot").read_text() == text
    assert list(drawer.get_all_dot_graphs()) == ["sine"]
    with pytest.raises(ValueError, match="expected 'raw', 'dot' or 'svg'"):
        picture.write(tmp_path / "graph.png", format="png")


def test_conversions_of_modules() -> None:
    future = torch.__future__
    assert not future.get_overwrite_module_params_on_conversion()
    for overwrites in (False, True):
        module = torch.nn.Linear(2, 2)
        before = module.weight
        module(torch.ones(1, 2)).sum().backward()
        future.set_overwrite_module_params_on_conversion(overwrites)
        try:
            module.double()
        finally:
            future.set_overwrite_module_params_on_conversion(False)
        assert (module.weight is before) != overwrites and module.weight.dtype == torch.float64
        assert isinstance(module.weight, torch.nn.Parameter) and module.weight.requires_grad
        assert module.weight.grad.dtype == torch.float64
        assert before.dtype == (torch.float32 if overwrites else torch.float64)
    future.set_swap_module_params_on_conversion(True)
    assert future.get_swap_module_params_on_conversion()
    future.set_swap_module_params_on_conversion(False)


def test_triton_operators() -> None:
    @torch.library.triton_op("make_fx_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    compiled = torch.compile(lambda x: twice(x) + 1, fullgraph=True)
    assert torch.equal(compiled(X), X * 2 + 1)
    with pytest.raises(RuntimeError, match="annotated with triton.jit"):
        torch.library.wrap_triton(lambda x: x)
