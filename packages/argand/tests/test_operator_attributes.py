"""What programs ask of operators besides calling them, and of the calls that others make."""

from __future__ import annotations

import pytest

import argand as torch
from argand._ops import OpOverload, OpOverloadPacket
from argand.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


@pytest.mark.parametrize(
    "op, text",
    [
        (aten.mm.default, "aten::mm(Tensor self, Tensor mat2) -> Tensor"),
        (aten.add.Tensor, "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
        (aten.le_.Scalar, "aten::le_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"),
        (aten.max.dim, "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"),
        (aten.view.default, "aten::view(Tensor(a) self, int[] size) -> Tensor(a)"),
        (aten.cat.default, "aten::cat(Tensor[] tensors, int dim=0) -> Tensor"),
        (
            aten.max_pool2d.default,
            "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=[1, 1], bool ceil_mode=False) -> Tensor",
        ),
        (aten.index.Tensor, "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"),
    ],
)  # fmt: skip
def test_schemas_are_those_of_the_peer(op, text):
    assert str(op._schema) == text


def test_parts_of_schemas():
    schema = aten.add.Tensor._schema
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add", "Tensor", False)
    alpha = schema.arguments[2]
    assert (alpha.name, str(alpha.type), alpha.default_value) == ("alpha", "number", 1)
    assert alpha.has_default_value() and alpha.kwarg_only and alpha.alias_info is None
    written = aten.relu_.default._schema
    assert written.is_mutable and written.arguments[0].alias_info.is_write
    assert [str(r.type) for r in aten.split.Tensor._schema.returns] == ["List[Tensor]"]
    weight = aten.layer_norm.default._schema.arguments[2]
    assert str(weight.type) == "Optional[Tensor]" and weight.type.kind() == "OptionalType"
    assert str(weight.type.getElementType()) == "Tensor"


def test_overloads_know_their_operators():
    assert aten.add.Tensor.overloadpacket is aten.add and aten.max.dim.overloadpacket is aten.max
    assert aten.mm.default._overloadname == "default" and aten.max.dim._overloadname == "dim"
    assert aten.mm.default.namespace == "aten" and aten.max.dim._qualified_op_name == "aten::max"
    assert isinstance(aten.mm.default, OpOverload) and not isinstance(
        aten.mm.default, OpOverloadPacket
    )
    assert isinstance(aten.mm, OpOverloadPacket) and not isinstance(aten.mm, OpOverload)
    assert not isinstance(torch.nn.Linear, OpOverload)
    torch.library.define("attributes_test::op", "(Tensor x, int n=3) -> Tensor")
    op = torch.ops.attributes_test.op
    assert (op.namespace, op.default._overloadname) == ("attributes_test", "default")
    assert str(op.default._schema) == "attributes_test::op(Tensor x, int n=3) -> Tensor"
    assert isinstance(op.default, OpOverload)
    assert (aten.max.dim._opname, aten.max.dim._overloadpacket) == ("max", aten.max)
    assert aten.max.dim.op(torch.ones(2), 0)[0].item() == 1 and aten.mm.op is aten.mm
    for name in ("_overloadname", "_schema", "_opname", "namespace", "overloadpacket"):
        assert not hasattr(aten.add, name) and not hasattr(aten.mm, name)
    for name in ("missing", "_missing", "__missing__"):
        assert not hasattr(aten.mm, name)


def test_dispatch_modes_see_calls_and_take_them_over():
    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(func)
            if func.overloadpacket is aten.exp:
                return args[0] * 0
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2, requires_grad=True)
    with Log() as log:
        assert torch.exp(x).tolist() == [[0, 0], [0, 0]]
        (x @ x).sum().backward()
    assert log.seen[:3] == [aten.exp.default, aten.matmul.default, aten.sum.default]
    assert aten.mm.default in log.seen  # in backward
    assert len(log.seen) == len([op for op in log.seen if op._schema.name.startswith("aten::")])
    assert torch.exp(x.detach() * 0).tolist() == [[1, 1], [1, 1]]


def test_overloads_are_equal_to_themselves_alone():
    overloads = [aten.add.variants[0], aten.add.Tensor, aten.add.Scalar, aten.gt.Tensor, aten.add]
    for a in overloads:
        assert [a == b for b in overloads] == [a is b for b in overloads]
    assert len(set(overloads)) == len(overloads)
    assert torch.Tensor.add == torch.Tensor.add


class _Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name().removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


_CALLS = [
    (lambda x: x + 1, "add.Tensor"),
    (lambda x: x + x, "add.Tensor"),
    (lambda x: x // 2, "floor_divide"),
    (lambda x: x > 0, "gt.Scalar"),
    (lambda x: x > x, "gt.Tensor"),
    (lambda x: x**2, "pow.Tensor_Scalar"),
    (lambda x: x**x, "pow.Tensor_Tensor"),
    (lambda x: x.clamp(0, 1), "clamp"),
    (lambda x: x.clamp(x, x), "clamp.Tensor"),
    (lambda x: x.sum(), "sum"),
    (lambda x: x.sum(0), "sum.dim_IntList"),
    (lambda x: x.div(2, rounding_mode="floor"), "div.Tensor_mode"),
    (lambda x: torch.where(x, x, x), "where.self"),
    (lambda x: x.split(1), "split.Tensor"),
    (lambda x: x.max(0)[0], "max.dim"),
    (lambda x: x.all(0), "all.dim"),
    (lambda x: x.std(), "std.correction"),
    (lambda x: x.masked_fill(x > 0, 1.0), "masked_fill.Scalar"),
]


# Graphs have other operators in their place.
_WITHOUT_NODES = (
    "clamp",
    "clamp.Tensor",
    "div.Tensor_mode",
    "split.Tensor",
    "all.dim",
    "std.correction",
)


def test_dispatch_modes_and_graphs_know_overloads():
    for call, name in _CALLS:
        x = torch.ones(3).bool() if name.startswith("where") else torch.ones(3)
        with _Names() as mode:
            call(x)
        assert mode.names[-1] == name

        class Program(torch.nn.Module):
            def forward(self, x, call=call):
                return call(x)

        nodes = torch.export.export(Program(), (x,)).graph.find_nodes(op="call_function")
        names = [n.target.name() for n in nodes if isinstance(n.target, OpOverload)]
        assert f"aten::{name}" in names or name in _WITHOUT_NODES


def test_policies_of_checkpoints_know_overloads():
    checkpoint = torch.utils.checkpoint
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append(op)
        return checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    for kept in ([aten.pow.Tensor_Scalar, aten.mm.default], policy):
        x = torch.ones(2, 2, requires_grad=True)
        y = checkpoint.checkpoint(
            lambda x: (x**2 @ x).sum(0) * 3,
            x,
            use_reentrant=False,
            context_fn=lambda kept=kept: checkpoint.create_selective_checkpoint_contexts(kept),
        )
        y.sum().backward()
        assert x.grad.tolist() == [[18, 18], [18, 18]]
    assert {aten.pow.Tensor_Scalar, aten.mm.default, aten.sum.dim_IntList} <= set(asked)
    assert aten.mul.Tensor in asked and aten.mul.Scalar not in asked


def test_dispatch_modes_see_calls_of_compiled_functions():
    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(func)
            return args[0] * 0 if func == aten.exp.default else func(*args, **(kwargs or {}))

    f = torch.compile(lambda x: torch.exp(x) + 1)
    x = torch.ones(2)
    plain = f(x)
    for _ in range(2):
        with Log() as log:
            assert f(x).tolist() == [1, 1]
        assert log.seen == [aten.exp.default, aten.add.Tensor]
        assert torch.equal(f(x), plain)
