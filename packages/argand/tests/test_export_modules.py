"""Exported modules of argand.nn against the modules."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import argand
import argand.nn.functional as F
from argand import nn
from argand.export import Dim, ExportedProgram, InputKind, export


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        self.register_buffer("calls", argand.zeros(1))
        self.table = argand.arange(3)

    def forward(self, x: Any, scale: float = 1.0, *, mask: Any = None) -> Any:
        self.calls.add_(1)
        y = self.body(x) * scale + self.table
        if mask is not None:
            y = y * mask
        return {"y": y, "pair": (y.mean(), "text"), "x": x}


def make(**fields: Any) -> nn.Module:
    """A module of a forward function."""
    return type("Made", (nn.Module,), fields)()


def test_results_and_buffers_are_the_modules() -> None:
    net = Net()
    reference = copy.deepcopy(net)
    program = export(
        net, (argand.randn(5, 4),), {"scale": 0.5}, dynamic_shapes={"x": {0: Dim("n")}}
    )
    for n in (2, 5, 9):
        x = argand.randn(n, 4)
        found, wanted = program(x, scale=0.5), reference(x, scale=0.5)
        assert argand.equal(found["y"], wanted["y"])
        assert argand.equal(found["pair"][0], wanted["pair"][0]) and found["pair"][1] == "text"
        assert found["x"] is x
        for (name, a), (_, b) in zip(net.named_buffers(), reference.named_buffers(), strict=True):
            assert argand.equal(a, b), name


def test_signature() -> None:
    program = export(Net(), (argand.randn(5, 4),))
    signature = program.graph_signature
    assert signature.parameters == (
        "body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias", "body.3.weight", "body.3.bias",
    )  # fmt: skip
    assert set(signature.buffers_to_mutate.values()) == {
        "calls", "body.1.running_mean", "body.1.running_var", "body.1.num_batches_tracked",
    }  # fmt: skip
    assert signature.lifted_tensor_constants == ("table",)
    assert signature.user_inputs == ("x",)
    placeholders = [n.name for n in program.graph.nodes if n.op == "placeholder"]
    assert placeholders == [s.arg for s in signature.input_specs]
    assert not any(getattr(n.target, "is_inplace", False) for n in program.graph.nodes), (
        "the graph is functional"
    )
    assert [s.kind for s in signature.input_specs][-1] is InputKind.USER_INPUT


def test_module_has_the_old_names_and_trains() -> None:
    net = Net().eval()
    module = export(net, (argand.randn(5, 4),)).module()
    assert set(module.state_dict()) == set(net.state_dict())
    x = argand.randn(5, 4)
    assert argand.equal(module(x)["y"], net(x)["y"])
    module(x)["y"].sum().backward()
    assert all(p.grad is not None for p in module.parameters())
    with pytest.raises(RuntimeError, match="cannot change a program"):
        module.train()


def test_run_decompositions_keeps_results() -> None:
    def forward(self: Any, x: Any) -> Any:
        return F.silu(x) + F.hardswish(x), x.square()

    program = export(make(forward=forward), (argand.randn(8),))
    lower = program.run_decompositions()
    assert isinstance(lower, ExportedProgram)
    x = argand.randn(8)
    for a, b in zip(program(x), lower(x), strict=True):
        assert argand.equal(a, b)


def test_random_programs_draw_as_eager() -> None:
    drop = nn.Dropout(0.5)
    program = export(drop, (argand.ones(64),))
    argand.manual_seed(3)
    wanted = drop(argand.ones(64))
    argand.manual_seed(3)
    assert argand.equal(program(argand.ones(64)), wanted)


def test_transformer_with_a_varying_length() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    n = Dim("length", min=2, max=64)
    program = export(layer, (argand.randn(2, 7, 16),), dynamic_shapes=({1: n},))
    for length in (2, 7, 33):
        x = argand.randn(2, length, 16)
        assert argand.allclose(program(x), layer(x), rtol=1e-5, atol=1e-6)


class Counting(nn.Module):
    """A changing buffer, a container, a size, a number that is part of the program."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("calls", argand.zeros(()))

    def forward(self, x: argand.Tensor, more: dict[str, argand.Tensor], *, k: int = 2) -> Any:
        self.calls.add_(1)
        return {"y": self.layer(x) * k + more["b"], "rows": (x.shape[0], self.calls * 1)}


def test_a_program_compiles_as_one_graph() -> None:
    arguments = (argand.randn(4, 4), {"b": argand.ones(3)})
    shapes = {"x": {0: Dim("rows", max=64)}, "more": None}
    plain = Counting()
    program = export(plain, arguments, {"k": 3}, dynamic_shapes=shapes)
    compiled = argand.compile(program.module(), fullgraph=True)
    with argand.no_grad():
        for calls, rows in enumerate((4, 5, 9)):
            x = argand.randn(rows, 4)
            got = compiled(x, {"b": argand.ones(3)}, k=3)
            assert got["rows"][0] == rows and got["rows"][1].item() == calls + 1
            assert argand.allclose(got["y"], plain.layer(x) * 3 + 1, atol=1e-6)


def test_gradients_through_a_program_with_batch_normalisation() -> None:
    """The program's module shares the parameters, and computes their gradients as the module does."""
    argand.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    x = argand.randn(6, 3)
    program = export(module, (x,)).module()
    for training in (module, program):
        training.zero_grad()
        training(x).pow(2).sum().backward()
        grads = [p.grad.clone() for p in module.parameters()]
        if training is module:
            want = grads
    for g, w in zip(grads, want, strict=True):
        assert argand.allclose(g, w, rtol=1e-5, atol=1e-6) and g.abs().sum() > 0
    assert int(module[1].num_batches_tracked) == 2


def test_gradients_stop_in_a_program_where_they_do_in_the_module() -> None:
    class Quantizer(nn.Module):
        """A straight-through estimate, weights made under no_grad, and a detached result."""

        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            q = self.a(x)
            with argand.no_grad():
                weights = F.softmax(self.b(x), -1)
                top, _ = self.b(x).max(1)
            y = x + (q.round() - q).detach() + q.detach() * weights * q + top[:, None] * self.b(x)
            return y, q.detach()

    module, x = Quantizer(), argand.randn(4, 3)
    exported = export(module, (x,))
    made = []
    for training in (module, exported.module(), argand.compile(exported.module())):
        module.zero_grad()
        y, q = training(x)
        assert y.requires_grad and not q.requires_grad
        y.pow(2).sum().backward()
        made.append([y.detach(), q, *[p.grad for p in module.parameters()]])
    for got in made[1:]:
        for g, w in zip(got, made[0], strict=True):
            assert argand.allclose(g, w, rtol=1e-5, atol=1e-6)
    assert argand.allclose(exported.run_decompositions()(x)[0], made[0][0], rtol=1e-5)


def check_training(module: Any, x: Any) -> None:
    """The program and its compiled form give the results and gradients of the module."""
    state = {name: t.clone() for name, t in module.state_dict().items()}
    exported = export(module, (x,))
    made = []
    for training in (module, exported.module(), argand.compile(exported.module())):
        module.load_state_dict(state)
        module.zero_grad()
        y = training(x)
        y.pow(2).sum().backward()
        made.append([y.detach(), *[p.grad for p in module.parameters()]])
    for got in made[1:]:
        for g, w in zip(got, made[0], strict=True):
            assert argand.allclose(g, w, rtol=1e-5, atol=1e-6)


def test_gradients_stop_at_what_is_written_or_viewed_without_them() -> None:
    class Averages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.register_buffer("mean", argand.zeros(3))

        def forward(self, x: Any) -> Any:
            y = self.layer(x)
            with argand.no_grad():
                self.mean.mul_(0.5).add_(y.mean(0), alpha=0.5)
                kept = argand.empty_like(y)
                kept[1:].copy_(y[1:])
                kept[0] = 1
                first, waves = y[0], argand.fft.fft(y)
                normal = F.batch_norm(y, self.mean.clone(), argand.ones(3), training=True)
            return y * (kept + self.mean + first + waves.real + normal)

    check_training(Averages(), argand.randn(4, 3))


def test_gradients_through_a_custom_function() -> None:
    """A program has the operators of its forward, whose gradients are the Function's."""

    class Square(argand.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    class Squared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return Square.apply(self.layer(x))

    check_training(Squared(), argand.randn(4, 3))
