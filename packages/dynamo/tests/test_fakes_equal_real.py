"""What operators return for fake tensors is what they return for real ones: sizes, strides, offset, dtype, memory, gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import operator_cases
import pytest

import argand_aten as aten
import argand_autograd  # noqa: F401  (requires_grad of results)
import argand_c10 as c10
from argand_c10.errors import UnsupportedError
from argand_c10.rules import rules_of
from argand_fx.shapes import DataDependentError, GraphBuilder, ShapeEnv
from tools.codegen.runtime import optest, optest_calls

CASES = operator_cases.cases()
SYMBOLIC_SIZES = (False, True)


def hint(x: Any) -> int:
    return getattr(x, "hint", x)


class Twins:
    """Fakes of real tensors, made on first sight."""

    def __init__(self, symbolic: bool) -> None:
        self.env = ShapeEnv()
        self.builder = GraphBuilder(None, self.env)
        self.symbolic = symbolic
        self.pairs: list[tuple[Any, Any]] = []

    def fake(self, x: Any) -> Any:
        if isinstance(x, c10.Tensor):
            for real, fake in self.pairs:
                if real is x:
                    return fake
            dims = range(x.ndim) if self.symbolic else ()
            fake = self.builder.from_tensor(x, source=len(self.pairs), dynamic_dims=dims)
            self.pairs.append((x, fake))
            return fake
        if isinstance(x, (list, tuple)):
            return type(x)(self.fake(y) for y in x)
        if isinstance(x, slice):
            return slice(self.fake(x.start), self.fake(x.stop), self.fake(x.step))
        return x

    def check(self, real: Any, fake: Any, what: object) -> None:
        if isinstance(real, (list, tuple)):
            assert isinstance(fake, tuple) and len(real) == len(fake), what
            fields = [
                n
                for n in dir(real)
                if not n.startswith("_") and n not in dir(tuple) and not n.startswith("n_")
            ]
            assert fields == sorted(getattr(fake, "_fields", ())), what
            for r, f in zip(real, fake, strict=True):
                self.check(r, f, what)
            return
        if real is None:
            assert fake is None, what
            return
        assert tuple(real.shape) == tuple(map(hint, fake.shape)), what
        assert real.dtype == fake.dtype, what
        assert real.requires_grad == fake.requires_grad, what
        assert hint(fake.offset) == real.storage_offset(), what
        if real.numel():
            steps = [s for s, n in zip(real.stride(), real.shape, strict=True) if n != 1]
            assert steps == [
                hint(s) for s, n in zip(fake.strides, real.shape, strict=True) if n != 1
            ], what
            assert real.is_contiguous() == fake.is_contiguous(), what
            shared = [
                i
                for i, (r, _) in enumerate(self.pairs)
                if r.untyped_storage() == real.untyped_storage()
            ]
            assert shared == [
                i for i, (_, f) in enumerate(self.pairs) if f.storage is fake.storage
            ], what
        guard = self.env.check_guards(self.env.hints)
        assert guard is None, (what, guard)


def leaves(x: Any, grad: bool) -> Any:
    if isinstance(x, c10.Tensor):
        return (
            x.detach().requires_grad_() if grad and (x.is_floating_point() or x.is_complex()) else x
        )
    return [leaves(y, grad) for y in x] if isinstance(x, list) else x


def outcome(f: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return f(*args, **kwargs)
    except Exception as e:  # compared by the caller
        return e


@pytest.mark.parametrize("symbolic", SYMBOLIC_SIZES)
@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.name != "_select_at"],  # whose offset is data
    ids=lambda c: c.name,
)
def test_operator(case: optest_calls.Case, symbolic: bool) -> None:
    op = optest.operator(case)
    dtype = optest._first(case, "float32", "float64", "complex64", "int64", "bool")[0]
    for layout, grad in itertools.product((0, 1, 2), (False, True)):
        for call in operator_cases.calls(case, dtype, layout):
            args = [leaves(x, grad) for x in call.args]
            kwargs = {k: leaves(v, grad) for k, v in call.kwargs.items()}
            twins = Twins(symbolic)
            fake_args = [twins.fake(x) for x in args]
            fake_kwargs = {k: twins.fake(v) for k, v in kwargs.items()}
            real = outcome(op, *args, **kwargs)
            fake = outcome(twins.builder.call, op, fake_args, fake_kwargs)
            if isinstance(fake, DataDependentError):
                continue
            if isinstance(real, Exception):
                assert isinstance(fake, Exception) and issubclass(type(real), type(fake)), (
                    case.name,
                    real,
                    fake,
                )
                continue
            assert not isinstance(fake, Exception), (case.name, fake)
            twins.check(real, fake, (case.name, layout, grad))


@pytest.mark.parametrize("dtype", ["complex64", "int64"])
def test_dtypes_of_results(dtype: str) -> None:
    """Whatever dtypes an operator declares, it says the dtypes of the results that it gives."""
    compared = 0
    for case in CASES:
        if case.name == "attention" or case.name.startswith(
            "_"
        ):  # called with what has been checked
            continue
        op = optest.operator(case)
        for call in operator_cases.calls(case, dtype):
            twins = Twins(False)
            args, kwargs = (
                twins.fake(list(call.args)),
                {k: twins.fake(v) for k, v in call.kwargs.items()},
            )
            real = outcome(op, *call.args, **call.kwargs)
            fake = outcome(twins.builder.call, op, args, kwargs)
            if isinstance(real, Exception) or isinstance(fake, DataDependentError):
                continue
            assert not isinstance(fake, Exception), (case.name, fake)
            several = (real, fake) if isinstance(real, (list, tuple)) else ((real,), (fake,))
            for r, f in zip(*several, strict=True):
                if isinstance(r, c10.Tensor):
                    assert r.dtype == f.dtype and tuple(r.shape) == tuple(f.shape), case.name
                    compared += 1
    assert compared > 500


def resizes(name: str) -> bool:
    rules = rules_of(name)
    return rules is not None and rules.shape is not None


INPLACE = sorted(
    n
    for n, op in aten.ops.__dict__.items()
    if op.is_inplace and op.variants[0].name == n and not n.startswith("fused") and not resizes(n)
)


def test_a_fake_tensor_keeps_its_sizes() -> None:
    twins = Twins(False)
    x = twins.fake(aten.zeros(2, 3))
    for args in ([(3, 2), (2, 1)], [(6,), (1,), 0]):
        with pytest.raises(UnsupportedError, match="sizes"):
            twins.builder.call(aten.ops.as_strided_, [x, *args], {})
    assert tuple(x.shape) == (2, 3)


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_operator(name: str) -> None:
    """The object itself is returned, its version raised, and a history is given to it and to what it views."""
    op = getattr(aten.ops, name)
    found = [c for c in CASES if c.name == name.removesuffix("_")]
    if not found:
        return
    case = found[0]
    dtype = optest._first(case, "float32", "float64", "int64", "bool")[0]
    for call in operator_cases.calls(case, dtype):
        if not isinstance(call.args[0], c10.Tensor):
            continue
        base = call.args[0]
        others = [leaves(x, True) for x in call.args[1:]]
        twins = Twins(False)
        fake_base = twins.fake(base)
        view, fake_view = base.view(base.shape), fake_base.view(base.shape)
        fake_others = [twins.fake(x) for x in others]
        real = outcome(op, view, *others, **call.kwargs)
        fake = outcome(twins.builder.call, op, [fake_view, *fake_others], call.kwargs)
        if isinstance(real, Exception):
            continue  # of values or dtypes that the functional form has not either
        assert fake is fake_view, (name, fake)
        assert fake_base._version == fake._version == 1
        twins.check(real, fake, name)
        assert base.requires_grad == fake_base.requires_grad, name


WRITES: list[tuple[str, list[Any]]] = [
    ("copy_", [aten.randn(3, 4)]), ("fill_", [2.0]), ("fill_", [aten.randn(())]), ("zero_", []),
    ("index_put_", [[aten.tensor([0, 1])], aten.randn(2, 4)]), ("index_add_", [0, aten.tensor([0, 1]), aten.randn(2, 4)]),
    ("scatter_", [1, aten.tensor([[0, 1]]), aten.randn(1, 2)]), ("scatter_", [1, aten.tensor([[0, 1]]), 1.0]),
    ("scatter_add_", [1, aten.tensor([[0, 1]]), aten.randn(1, 2)]), ("masked_fill_", [aten.randn(3, 4) > 0, 1.0]),
    ("uniform_", []), ("normal_", []), ("exponential_", []), ("bernoulli_", []), ("random_", [0, 5]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), WRITES)
@pytest.mark.parametrize("self_grad", [False, True])
@pytest.mark.parametrize("others_grad", [False, True])
def test_writing_operator(name: str, args: list[Any], self_grad: bool, others_grad: bool) -> None:
    op = getattr(aten.ops, name)
    x = leaves(aten.randn(3, 4), self_grad)
    others = [leaves(y, others_grad) for y in args]
    twins = Twins(False)
    fake = twins.fake(x) * 1
    found = twins.builder.call(op, [fake, *[twins.fake(y) for y in others]])
    assert found is fake and fake._version == 1
    assert op(x * 1, *others).requires_grad == fake.requires_grad


def random_index(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    items: list[Any] = []
    ellipsis = False
    for n in shape:
        kind = rng.integers(0, 9)
        if kind == 0 and n:
            items.append(int(rng.integers(-n, n)))
        elif kind in (1, 2):
            low, high = (
                int(v) if rng.integers(0, 3) else None for v in rng.integers(-n - 1, n + 2, 2)
            )
            items.append(slice(low, high, int(rng.integers(1, 4)) if rng.integers(0, 2) else None))
        elif kind == 3:
            items += [None, slice(None)]
        elif kind == 4 and not ellipsis:
            ellipsis = True
            items.append(...)
            break
        elif kind == 5 and n:
            items.append(aten.tensor(rng.integers(0, n, (2, 3) if rng.integers(0, 2) else (4,))))
        elif kind == 6 and n:
            items.append([int(v) for v in rng.integers(-n, n, 3)])
        elif kind == 7:
            items.append(slice(None))
        else:
            break
    return items[0] if len(items) == 1 and rng.integers(0, 2) else tuple(items)


@pytest.mark.parametrize("symbolic", SYMBOLIC_SIZES)
def test_indexing(symbolic: bool) -> None:
    rng = np.random.default_rng(3)
    for number in range(600):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(0, 4)))
        x = aten.randn(shape)
        index = random_index(rng, shape)
        twins = Twins(symbolic)
        fake = twins.fake(x)
        fake_index = twins.fake(index)
        real, got = outcome(lambda: x[index]), outcome(lambda: fake[fake_index])  # noqa: B023
        if isinstance(real, Exception):
            assert type(got) is type(real) and (symbolic or str(got) == str(real)), (shape, index)
            continue
        assert not isinstance(got, Exception), (shape, index, got)
        twins.check(real, got, (number, shape, index))
        value = aten.randn(real.shape[1:]) if real.ndim and rng.integers(0, 2) else 2.0
        fake[fake_index] = twins.fake(value)
        assert fake._version == 1, (shape, index)


def test_what_needs_data() -> None:
    builder = GraphBuilder()
    x = builder.fake((3, 4))
    mask = x > 0
    for f in (
        lambda: x.item(), lambda: x.tolist(), lambda: bool(x.sum()), lambda: float(x.sum()), lambda: x.nonzero(),
        lambda: x[mask], lambda: x.masked_select(mask), lambda: aten.where(mask), lambda: aten.bincount(x),
        lambda: [1, 2][x.sum().long()], lambda: x.numpy(), lambda: x.add(x, alpha=x.sum()), lambda: 1.0 in x,
    ):  # fmt: skip
        with pytest.raises(DataDependentError):
            f()
    with pytest.raises(DataDependentError, match="^masked_select: index"):
        x.masked_select(mask)


def test_tensor_methods_of_python() -> None:
    x = aten.randn(3, 4)
    for name in ("T", "mT", "H", "mH"):
        twins = Twins(True)
        twins.check(getattr(x, name), getattr(twins.fake(x), name), name)
    calls = [
        ("float", ()), ("half", ()), ("long", ()), ("to", (c10.float64,)), ("to", ("cpu",)), ("to", (aten.ones(2).long(),)),
        ("type_as", (aten.ones(2).double(),)), ("new_zeros", (2, 3)), ("new_full", ((2,), 1)), ("new_ones", ((2, 2),)),
        ("new_empty", (3,)), ("view", (2, 6)), ("view", (-1,)), ("reshape", ((4, 3),)), ("permute", (1, 0)), ("expand", (2, 3, 4)),
        ("repeat", (2, 1)), ("sum", ((0, 1),)), ("where", (aten.ones(3, 4).bool(), 0.0)), ("flatten", ()), ("size", (1,)),
        ("contiguous", ()), ("t", ()), ("unsqueeze", (0,)), ("chunk", (2, 1)), ("split", (1,)), ("max", (1,)),
        ("clamp", (-1, 1)), ("masked_fill", (aten.ones(4).bool(), 0)),
    ]  # fmt: skip
    for name, args in calls:
        twins = Twins(False)
        real = getattr(x, name)(*args)
        fake = getattr(twins.fake(x), name)(*[twins.fake(a) for a in args])
        if isinstance(real, int):
            assert real == fake
        else:
            twins.check(real, fake, name)


# What guards an operation leaves when all sizes of 2 and more are symbols.
@pytest.mark.parametrize(
    ("program", "shapes", "expected"),
    [
        (lambda x: (x * 2 + 1).relu(), [(4, 6)], []),
        (lambda x, y: x + y, [(4, 6), (4, 6)], [("==", "s0", "s2"), ("==", "s1", "s3")]),
        (lambda x, y: x * 2 + y, [(4, 6, 5), (6, 5)], [("==", "s1", "s3"), ("==", "s2", "s4")]),
        (lambda x, y: x @ y, [(4, 6), (6, 3)], [("==", "s1", "s2")]),
        (lambda x: x.view(-1), [(4, 6)], []),
        (lambda x: x.view(x.shape[0], 1, x.shape[1]).expand(-1, 5, -1).sum(1), [(4, 6)], []),
        (lambda x: x.transpose(0, 1).contiguous().view(-1), [(4, 6, 2)], []),
        (lambda x: x.reshape(x.shape[0] * x.shape[1], -1), [(4, 6, 2)], []),
        (lambda x: x[:, 1:], [(4, 6)], []),
        (lambda x: x[:, : x.shape[1] - 1].softmax(-1), [(4, 6)], []),
        (lambda x: x.flatten(1).mean(0), [(4, 6, 3)], []),
        (lambda x, y: aten.cat([x, y], 1), [(4, 6), (4, 3)], [("==", "s2", "s0")]),
        (lambda x: x.view(*x.shape[:-1], 3, x.shape[-1] // 3).transpose(1, 2), [(4, 6, 9)], [("==", ("*", 3, ("//", "s2", 3)), "s2")]),
    ],
)  # fmt: skip
def test_guards(program: Any, shapes: list[tuple[int, ...]], expected: list[Any]) -> None:
    reals = [aten.randn(s) for s in shapes]
    twins = Twins(True)
    fakes = [twins.fake(x) for x in reals]
    twins.check(program(*reals), program(*fakes), expected)
    assert [g.expr for g in twins.env.guards if not g.is_range] == expected


def test_symbolic_numbers_as_arguments() -> None:
    env = ShapeEnv()
    builder = GraphBuilder(None, env)
    n = env.create_symbol(5, "n")
    ops = builder.ops
    assert [str(f) for f in (ops.arange(n).shape[0], ops.arange(1, 2 * n, 2).shape[0], ops.full([n, 2], n).shape[0])] == [
        "s0", "s0", "s0",
    ]  # fmt: skip
    x = ops.zeros([n, 3])
    assert (
        (x + n).dtype == c10.float32 and (x.long() * n).dtype == c10.int64 and (n * x).shape[0] is n
    )
    assert ops.arange(n).dtype == c10.int64 and ops.full([2], n).dtype == c10.int64
    assert not [g for g in env.guards if not g.is_range]
