"""Fake tensors and the builder, with operators and rules of this test: this layer knows none by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import argand_c10 as c10
from argand_c10 import rules
from argand_fx.effects import has_effect
from argand_fx.graph import Graph
from argand_fx.shapes import (
    DataDependentError,
    FakeStorage,
    FakeTensor,
    FakeTensorMode,
    GraphBuilder,
    ShapeEnv,
    SymSize,
    UnsupportedError,
    from_tensor,
)  # fmt: skip
from argand_fx.shapes.layout import contiguous_strides, is_contiguous, pointwise_strides


class Strided(NamedTuple):
    sizes: list[Any]
    strides: list[Any]
    offset: Any


def op(schema: str) -> Any:
    return c10.define(f"fakes::{schema}")


SCALE = op("scale(Tensor self, Scalar factor=2, *, bool wide=False) -> Tensor")
FLIP = op("flip(Tensor(a) self) -> Tensor(a)")
SCALE_ = op("scale_(Tensor(a!) self, Scalar factor=2) -> Tensor(a!)")
EXTREMES = op("extremes(Tensor self, int dim) -> (Tensor values, Tensor indices)")
TWICE = op("twice(Tensor self) -> Tensor")
OPAQUE = op("opaque(Tensor self) -> Tensor")
FIND = op("find(Tensor self) -> Tensor")


def find_shape(self: Any) -> Any:
    raise DataDependentError("fakes::find: the result's shape depends on data")


def derivative(*args: Any) -> Any:
    return (None,)


RULES = {
    "fakes::scale": rules.Rules(
        "pointwise",
        shape=lambda self, factor=2, *, wide=False: list(self.shape),
        dtype=lambda self, factor=2, *, wide=False: c10.float64 if wide else self.dtype,
        derivative=derivative,
    ),
    "fakes::flip": rules.Rules(
        "view", shape=lambda self: Strided(list(self.shape[::-1]), list(self.strides[::-1]), self.offset),
        dtype=lambda self: self.dtype, derivative=derivative,
    ),
    "fakes::extremes": rules.Rules(
        "opaque", shape=lambda self, dim: (list(self.shape[1:]), list(self.shape[1:])),
        dtype=lambda self, dim: (self.dtype, c10.int64), derivative=derivative,
    ),
    "fakes::twice": rules.Rules("composite", composite=lambda ops, self: ops.__getattr__("fakes::scale")(self, 2)),
    "fakes::find": rules.Rules("index", shape=find_shape),
}  # fmt: skip
rules.register_rules(lambda: RULES)


def test_rules_are_asked_for_once() -> None:
    calls = []

    def provide() -> dict[str, rules.Rules]:
        calls.append(1)
        return {"fakes::late": rules.Rules("opaque")}

    rules.register_rules(provide)
    assert not calls
    assert (
        rules.rules_of("fakes::late") is rules.rules_of("fakes::late") is not None
        and len(calls) == 1
    )
    assert (
        rules.rules_of("fakes::nothing") is None and rules.rules_of(SCALE) is RULES["fakes::scale"]
    )


def test_results_that_a_fake_makes() -> None:
    several = c10.define(
        "fakes::several(Tensor self, *, int rows) -> (Tensor, Tensor[])", custom=True
    )

    def fake(self: Any, *, rows: int) -> Any:
        assert self.builder.graph is None  # what it calls is not recorded
        return FakeTensor((rows, *self.shape)), [self, FakeTensor((2,), dtype=c10.int64)]

    rules.register_rules(lambda: {"fakes::several": rules.Rules("opaque", fake=fake)})
    builder = GraphBuilder(Graph())
    x = builder.placeholder("x", FakeTensor((3, 4), (1, 3)))
    first, (second, third) = builder.call(several, (x,), {"rows": 5})
    assert first.shape == (5, 3, 4) and second.strides == (1, 3) and third.dtype == c10.int64
    assert second is not x and second.storage is not x.storage
    assert [n.op for n in builder.graph.nodes].count("call_function") == 5


def test_operators_without_results_stay() -> None:
    tell = c10.define("fakes::tell(Tensor self) -> ()", custom=True)
    rules.register_rules(lambda: {"fakes::tell": rules.Rules("opaque", fake=lambda self: None)})
    builder = GraphBuilder(Graph())
    x = builder.placeholder("x", FakeTensor((3,)))
    assert builder.call(tell, (x,)) is None
    builder.output((x,))
    assert not builder.graph.eliminate_dead_code() and has_effect(tell)


def test_geometry() -> None:
    x = FakeTensor((2, 3, 4), dtype=c10.float16)
    assert (
        x.shape == c10.Size([2, 3, 4])
        and type(x.shape) is c10.Size
        and x.strides == x.stride() == (12, 4, 1)
    )
    assert (
        x.ndim == x.dim() == 3
        and x.numel() == 24
        and x.size(-1) == 4
        and x.stride(0) == 12
        and len(x) == 2
    )
    assert (
        x.nbytes == 48
        and x.storage.nbytes == 48
        and x.is_contiguous()
        and x.is_floating_point()
        and not x.is_complex()
    )
    assert (
        x.is_cpu
        and not x.is_meta
        and x.device == c10.device("cpu")
        and x.is_leaf
        and x.element_size() == 2
    )
    with pytest.raises(IndexError, match="range of \\[-3, 2\\]"):
        x.size(3)
    y = FakeTensor((3, 2), (1, 3), 4)
    assert not y.is_contiguous() and y.storage.nbytes == 4 * (4 + 6) and "strides=[1, 3]" in repr(y)
    env = ShapeEnv()
    n = env.create_symbol(5, "n")
    z = FakeTensor((n, 3))
    assert (
        type(z.shape) is SymSize
        and z.numel() is 3 * n
        and z.shape.numel() is 3 * n
        and z.strides == (3, 1)
    )
    assert str(z.storage.nbytes) == "12*s0" and repr(z.shape) == "argand.Size([s0, 3])"


def test_needs_data() -> None:
    x = FakeTensor(())
    for f in (
        x.item,
        x.tolist,
        x.numpy,
        x.data_ptr,
        x.__bool__,
        x.__int__,
        x.__float__,
        x.__complex__,
        x.__index__,
    ):
        with pytest.raises(DataDependentError, match="without data"):
            f()
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(FakeTensor((2,)))
    with pytest.raises(UnsupportedError, match="without a builder"):
        SCALE(x)
    with pytest.raises(AttributeError):
        x.nothing  # noqa: B018


def test_calls_become_nodes() -> None:
    builder = GraphBuilder(Graph())
    x = builder.placeholder("x", builder.fake((2, 3), requires_grad=True))
    y = SCALE(x)
    z = builder.call(SCALE, (y, 3), {"wide": True})
    values, indices = pair = builder.call(EXTREMES, (z, 0))
    assert z.dtype == c10.float64 and pair.values is values and indices.dtype == c10.int64
    assert (
        y.requires_grad
        and values.requires_grad
        and not indices.requires_grad
        and not values.is_leaf
    )
    twice = builder.call(TWICE, (values,))
    builder.output((twice, indices))
    assert builder.graph is not None
    assert [str(n.target) for n in builder.graph.nodes if n.op == "call_function"][:3] == [
        str(o.variants[0]) for o in (SCALE, SCALE, EXTREMES)
    ]
    first, second = [n for n in builder.graph.nodes if n.target is SCALE.variants[0]][:2]
    assert (
        first.args == (x.node,) and second.args == (y.node, 3) and second.kwargs == {"wide": True}
    )
    assert first.meta["val"] is y and twice.node.args == (values.node,)
    builder.graph.lint()


def test_views_share_and_inplace_counts() -> None:
    builder = GraphBuilder(Graph())
    x = builder.placeholder("x", builder.fake((2, 3)))
    v = FLIP(x)
    w = FLIP(v)
    assert (
        v.storage is x.storage
        and v.base is x
        and w.base is x
        and v.strides == (1, 3)
        and v._is_view()
    )
    assert builder.call(SCALE_, (v,)) is v and x._version == v._version == 1
    leaf = builder.from_tensor(c10.tensor([1.0], requires_grad=True))
    with pytest.raises(RuntimeError, match="leaf Variable"):
        builder.call(SCALE_, (leaf,))


def test_without_a_graph() -> None:
    mode = FakeTensorMode()
    x = mode.fake((4, 2))
    assert SCALE(x).node is None and mode.call(TWICE, (x,)).shape == (4, 2)


def test_what_is_unsupported() -> None:
    builder = GraphBuilder(Graph())
    x = builder.placeholder("x", builder.fake((2,)))
    with pytest.raises(UnsupportedError, match="fakes::opaque.*register_rules"):
        OPAQUE(x)
    with pytest.raises(DataDependentError, match="fakes::find"):
        FIND(x)
    with pytest.raises(UnsupportedError, match="expected an operator"):
        builder.call(len, (x,))
    with pytest.raises(TypeError, match="must be Number, not str"):
        SCALE(x, "a")
    assert [n.op for n in builder.graph.nodes] == ["placeholder"]  # type: ignore[union-attr]


def test_real_tensors_are_constants() -> None:
    builder = GraphBuilder(Graph())
    real = c10.tensor([1.0, 2.0])
    y = builder.call(SCALE, (real,))
    z = builder.call(SCALE, (real, 3))
    assert builder.constants["_tensor_constant0"] is real and len(builder.constants) == 1
    assert y.node.args[0] is z.node.args[0] and y.node.args[0].op == "get_attr"


def test_from_tensor() -> None:
    env = ShapeEnv()
    storages: dict[Any, FakeStorage] = {}
    base = c10._C._empty_strided((6, 4), None, c10.float32, "cpu")
    turned = c10._C._as_strided(base, (4, 6), (1, 4), 0)
    a = from_tensor(base, env, source="a", dynamic_dims=[0], storages=storages)
    b = from_tensor(turned, env, source="b", dynamic_dims=[0, 1], storages=storages)
    assert a.storage is b.storage and str(a.shape) == "argand.Size([s0, 4])" and a.strides == (4, 1)
    assert (
        [str(s) for s in b.shape] == ["s1", "s2"]
        and b.strides[0] == 1
        and b.strides[1] is b.shape[0]
    )
    assert env.sources == {"s0": ("a", "size", 0), "s1": ("b", "size", 0), "s2": ("b", "size", 1)}
    apart = c10._C._as_strided(base, (2, 3), (12, 2), 1)
    c = from_tensor(apart, env, source="c", dynamic_dims=[1])
    assert (
        c.offset == 1 and c.strides[1] == 2 and env.sources[str(c.strides[0])] == ("c", "stride", 0)
    )
    assert not [g for g in env.guards if not g.is_range]


def test_layouts() -> None:
    assert contiguous_strides((2, 0, 3)) == (3, 3, 1) and contiguous_strides(()) == ()
    assert (
        is_contiguous((1, 3), (7, 1))
        and is_contiguous((0, 3), (1, 9))
        and not is_contiguous((2, 3), (1, 2))
    )
    plain, turned = ((2, 3), (3, 1)), ((2, 3), (1, 2))
    assert pointwise_strides((2, 3), [turned, plain]) == (1, 2) and pointwise_strides(
        (2, 3), [plain, turned]
    ) == (3, 1)
    assert pointwise_strides((2, 3), [((3,), (1,)), turned]) == (1, 2)
