"""Operators of users: eager, differentiated and compiled they run as the function that they were made of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import argand as torch
from argand import Tensor
from argand.library import custom_op, infer_schema
from argand_c10 import rules


@custom_op("library_test::scaled", mutates_args=())
def scaled(x: Tensor, factor: float = 2.0, *, shift: float = 0.0) -> Tensor:
    """On arrays."""
    return torch.from_numpy(x.numpy() * np.float32(factor) + np.float32(shift))


def keep(ctx, inputs, keyword_only_inputs, output):
    x, ctx.factor = inputs
    assert output.shape == x.shape and set(keyword_only_inputs) == {"shift"}


scaled.register_fake(lambda x, factor=2.0, *, shift=0.0: torch.empty_like(x))
scaled.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=keep)


@custom_op("library_test::parts", mutates_args=())
def parts(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    return x * n, x.double().sum(0)


@torch.library.register_fake("library_test::parts")
def _(x, n):
    return torch.empty_like(x), x.new_empty(x.shape[1:], dtype=torch.float64)


@custom_op("library_test::fill", mutates_args={"x"})
def fill(x: Tensor, value: float) -> Tensor:
    x.numpy().fill(value)
    return x + 1


fill.register_fake(lambda x, value: torch.empty_like(x))


def test_calls():
    x = torch.arange(3.0)
    assert scaled(x).tolist() == [0, 2, 4] and scaled(x, shift=1.0, factor=3.0).tolist() == [
        1,
        4,
        7,
    ]
    assert (
        scaled.__name__ == "scaled"
        and scaled.__doc__ == "On arrays."
        and "library_test::scaled" in repr(scaled)
    )
    assert scaled(torch.empty(2, 3, device="meta")).shape == (2, 3)
    with pytest.raises(TypeError):
        scaled(x, other=1)
    with pytest.raises(TypeError):
        scaled()


def test_gradients():
    x = torch.arange(3.0, requires_grad=True)
    scaled(x.sin(), 3.0, shift=1.0).sum().backward()
    assert torch.allclose(x.grad, 3 * x.detach().cos())
    product, total = parts(x, 2)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        (product.sum() + total.sum()).backward()
    with pytest.raises(RuntimeError, match="non-functional operator"):
        fill.register_autograd(lambda ctx, grad: grad)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic):
    def program(x):
        product, total = parts(x.detach() + 1, 3)
        written = product * 2
        after = fill(written, 0.5)
        return (scaled(x.sin(), 3.0, shift=1.0) * product).relu() + total.float() + written + after

    compiled = torch.compile(program, fullgraph=True, dynamic=dynamic)
    for shape in ((2, 3), (5, 4)):
        x, y = (
            torch.arange(float(np.prod(shape))).reshape(shape).requires_grad_() for _ in range(2)
        )
        found, expected = compiled(x), program(y)
        assert torch.equal(found, expected)
        found.sum().backward()
        expected.sum().backward()
        assert torch.equal(x.grad, y.grad)


def test_writing_where_gradients_are_recorded():
    leaf = torch.ones(2, requires_grad=True)
    after = fill(leaf, 3.0)
    assert leaf.tolist() == [3, 3] and after.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        after.sum().backward()

    @custom_op("library_test::add_one", mutates_args={"x"})
    def add_one(x: Tensor) -> None:
        x.add_(1)

    x = torch.ones(2, requires_grad=True)
    inner = x * 3
    add_one(inner)
    assert inner.tolist() == [4, 4]
    inner.sum().backward()
    assert x.grad.tolist() == [3, 3]
    plain = torch.ones(2)
    torch.compile(lambda x: add_one(x), fullgraph=True)(plain)  # needs no fake
    assert plain.tolist() == [2, 2]


def test_without_a_fake():
    @custom_op("library_test::bare", mutates_args=())
    def bare(x: Tensor) -> Tensor:
        return x.clone()

    assert bare(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="register_fake"):
        bare(torch.ones(2, device="meta"))
    with pytest.raises(Exception, match="register_fake"):
        torch.compile(lambda x: bare(x) + 1, fullgraph=True)(torch.ones(2))
    with torch.compiler.collect_records() as records:
        assert torch.compile(lambda x: bare(x) + 1)(torch.ones(2)).tolist() == [2, 2]
    assert records and all("register_fake" in str(record) for record in records), records
    bare.register_fake(lambda x: x.new_empty(7))
    with pytest.raises(RuntimeError, match="fake of a custom operator"):
        torch.compile(lambda x: bare(x) + 1)(torch.ones(2))


def test_what_is_refused():
    @custom_op("library_test::same", mutates_args=(), schema="(Tensor x) -> Tensor")
    def same(x):
        return x[:1]

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torch.ones(2))
    for name in ("scaled", "::x", "a::", "a::b.c"):
        with pytest.raises(ValueError, match="namespace"):
            custom_op(name, lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="library_test::missing"):
        torch.library.register_kernel("library_test::missing", "cpu")


def everything(
    x: Tensor, a: int, b: float | None = None, c: list[Tensor] | None = None, *, d: bool = True,
    e: list[int], s: str = "q", k: torch.dtype = torch.float32,
) -> tuple[Tensor, int]: ...  # fmt: skip


def test_schemas():
    plain = '(Tensor x, SymInt a, float? b=None, Tensor[]? c=None, *, bool d=True, SymInt[] e, str s="q", ScalarType k=float32) -> (Tensor, SymInt)'
    assert infer_schema(everything, mutates_args=()) == plain
    written = plain.replace("Tensor x", "Tensor(a0!) x")
    assert infer_schema(everything, mutates_args=["x"], op_name="a::b") == "a::b" + written
    written = written.replace("Tensor[]? c", "Tensor(a3!)[]? c")
    assert infer_schema(everything, mutates_args="unknown") == written
    for function, mutated, message in (
        (everything, "x", "sequence of the names"),
        (everything, {"zz"}, "were not found"),
        (everything, {"a"}, "only Tensors"),
        (lambda x: x, (), "must have a type annotation"),
        (lambda *x: x, (), "varargs"),
    ):
        with pytest.raises(ValueError, match=message):
            infer_schema(function, mutates_args=mutated)


@custom_op("library_test::pieces", mutates_args=())
def pieces(x: Tensor, n: int) -> list[Tensor]:
    return [x[i] * 2 for i in range(n)]


pieces.register_fake(lambda x, n: [torch.empty(x.shape[1]) for _ in range(n)])


def test_lists_as_results():
    x = torch.arange(6.0).reshape(2, 3)
    for run in (pieces, torch.compile(lambda x, n: pieces(x, n), fullgraph=True)):
        found = run(x, 2)
        assert type(found) is list and [t.tolist() for t in found] == [[0, 2, 4], [6, 8, 10]]
        assert run(x, 0) == []


def test_calls_without_results_stay_in_their_order():
    seen = []

    @custom_op("library_test::note", mutates_args=())
    def note(x: Tensor, text: str) -> None:
        seen.append((text, x.sum().item()))

    def program(x):
        note(x, "first")
        y = x * 2
        note(y, "second")
        note(x, "first")
        return y + 1

    compiled = torch.compile(program, fullgraph=True)
    x = torch.ones(2, requires_grad=True)
    for run in (program, compiled, compiled):
        seen.clear()
        found = run(x)
        assert found.tolist() == [3, 3] and seen == [("first", 2), ("second", 4), ("first", 2)]
        found.sum().backward()
    torch.compile(lambda x: note(x, "alone"), fullgraph=True)(x.detach())
    assert seen[3:] == [("alone", 2)]


def test_operators_have_the_tags_of_their_definition():
    @custom_op("library_test::tagged", mutates_args=(), tags=(torch.Tag.core,))
    def tagged(x: Tensor) -> Tensor:
        return x.clone()

    torch.library.define(
        "library_test::fixed", "(Tensor x) -> Tensor", tags=torch.Tag.needs_fixed_stride_order
    )
    torch.library.define("library_test::untagged", "(Tensor x) -> Tensor")
    ops = torch.ops.library_test
    assert ops.tagged.default.tags == [torch.Tag.pt2_compliant_tag, torch.Tag.core]
    assert ops.fixed.tags == [torch.Tag.needs_fixed_stride_order]
    assert ops.untagged.default.tags == torch.ops.add.tags == []


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_written_is_returned(compiled):
    @custom_op("library_test::double_", mutates_args={"x"}, tags=torch.Tag.inplace)
    def double_(x: Tensor) -> Tensor:
        x.mul_(2)
        return x

    @custom_op("library_test::twice", mutates_args={"low", "high"}, tags=torch.Tag.out)
    def twice(x: Tensor, *, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        low.copy_(x - 1)
        high.copy_(x + 1)
        return low, high

    def program(x, low, high):
        same = double_(x)
        return same, *twice(same, low=low, high=high)

    x, low, high = torch.ones(2), torch.zeros(2), torch.zeros(2)
    run = torch.compile(program, fullgraph=True) if compiled else program
    found = run(x, low, high)
    assert all(a is b for a, b in zip(found, (x, low, high), strict=True))
    assert [t.tolist() for t in found] == [[2, 2], [1, 1], [3, 3]]


def keeps(x: Tensor, y: Tensor) -> Tensor:
    return x.add_(1)


def makes(x: Tensor, y: Tensor) -> Tensor:
    return x + 1


def fills(x: Tensor, *, out: Tensor) -> Tensor:
    return out.copy_(x)


def returns_none(x: Tensor, *, out: Tensor) -> None:
    out.copy_(x)


@pytest.mark.parametrize("fn, written, tag, message", [
    (keeps, (), "inplace", "exactly the first"), (keeps, {"y"}, "inplace", "exactly the first"), (keeps, {"x", "y"}, "inplace", "exactly the first"),
    (keeps, "unknown", "inplace", "exactly the first"), (fills, (), "out", "at least one mutable"), (fills, {"x"}, "out", "to be keyword-only"),
    (fills, "unknown", "out", "to be keyword-only"), (returns_none, {"out"}, "out", "return annotation to match"),
])  # fmt: skip
def test_tags_that_the_schema_contradicts(fn, written, tag, message):
    with pytest.raises(ValueError, match=message):
        custom_op("library_test::odd", fn, mutates_args=written, tags=torch.Tag[tag])


def test_what_is_returned_must_be_what_is_written():
    op = custom_op("library_test::makes_", makes, mutates_args={"x"}, tags=torch.Tag.inplace)
    with pytest.raises(RuntimeError, match="must return what it writes"):
        op(torch.ones(2), torch.ones(2))
    with pytest.raises(AssertionError, match="mutually exclusive"):
        custom_op(
            "library_test::both", keeps, mutates_args={"x"}, tags=(torch.Tag.inplace, torch.Tag.out)
        )


def test_equal_calls_are_not_one():
    drawn = []

    @custom_op("library_test::draw", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
    def draw(x: Tensor) -> Tensor:
        drawn.append(torch.rand_like(x))
        return drawn[-1].clone()

    draw.register_fake(torch.empty_like)

    def program(x):
        draw(x)  # unused
        return draw(x) - draw(x)

    x = torch.ones(4, requires_grad=True)
    found = torch.compile(program, fullgraph=True)(x)
    assert len(drawn) == 3 and found.tolist() == (drawn[1] - drawn[2]).tolist()


@pytest.mark.parametrize(
    ("returned", "value", "message"),
    [
        (Tensor, 3, "Unable to cast 3, which its kernel returned, to Tensor"),
        (list[Tensor], torch.ones(1), r"to Tensor\[\]"),
        (tuple[Tensor, Tensor], torch.ones(2), "expected a tuple of 2 results"),
        (int, 3.5, "to int"),
        (bool, 1, "to bool"),
    ],
)
def test_results_of_other_types_are_refused(returned, value, message):
    def typed(x: Tensor):
        return value

    typed.__annotations__["return"] = returned
    op = custom_op("library_test::typed", typed, mutates_args=())
    with pytest.raises((RuntimeError, TypeError), match=message):
        op(torch.ones(2))


def test_numbers_as_results():
    @custom_op("library_test::number", mutates_args=())
    def number(x: Tensor) -> int:
        return x.sum()

    assert number(torch.ones(2)) == 2 and type(number(torch.ones(2))) is int


def test_fakes_run_once_a_call():
    calls = []

    @custom_op("library_test::counted", mutates_args=())
    def counted(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2

    @counted.register_fake
    def _(x):
        calls.append(type(x).__name__)
        return torch.zeros(x.shape[0]), torch.empty_like(x)

    compiled = torch.compile(
        lambda x: counted(x)[0] + 1, fullgraph=True, dynamic=True, backend="eager"
    )
    assert compiled(torch.ones(3)).tolist() == [3, 3, 3]
    assert calls == ["FakeTensor"]


def test_sizes_that_elements_tell():
    @custom_op("library_test::positive", mutates_args=())
    def positive(x: Tensor) -> Tensor:
        return x[x > 0]

    positive.register_fake(
        lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size(min=0, max=9))
    )

    def program(x):
        return positive(x + 1) * 2

    x = torch.tensor([-3.0, 0.0, 2.0])
    assert torch.compile(program)(x).tolist() == program(x).tolist() == [2, 6]
    with pytest.raises(Exception, match="new_dynamic_size"):
        torch.compile(program, fullgraph=True)(x)


def test_fakes_that_return_something_else():
    @custom_op("library_test::wrong", mutates_args=())
    def wrong(x: Tensor) -> Tensor:
        return x + 1

    for fake, message in (
        (lambda x: [x, x], "which is not what"),
        (lambda x: 3, "int as a result"),
    ):
        wrong.register_fake(fake)
        with pytest.raises(Exception, match=message):
            torch.compile(lambda x: wrong(x) * 2, fullgraph=True)(torch.ones(2))


def test_a_name_may_be_defined_anew():
    def define(*parameters, mutates=(), times=1):
        def function(x, n=times):
            if not mutates:
                return x * n + 1
            x.add_(1)
            return None

        schema = f"({', '.join(parameters)}) -> {'()' if mutates else 'Tensor'}"
        found = custom_op("library_test::anew", function, mutates_args=mutates, schema=schema)
        found.register_fake(lambda x, n=1: None if mutates else torch.empty_like(x))
        return found

    first = define("Tensor x")
    run = torch.compile(lambda x: torch.ops.library_test.anew(x), fullgraph=True)
    assert run(torch.ones(2)).tolist() == [2, 2]
    second = define("Tensor x", "int n=3", times=3)
    assert run(torch.ones(2)).tolist() == [4, 4] and second(torch.ones(2), n=5).tolist() == [6, 6]
    assert first(torch.ones(2)).tolist() == [2, 2]
    define("Tensor(a!) x", mutates=("x",))
    x = torch.ones(2)
    assert run(x) is None and x.tolist() == [2, 2]
    assert torch.ops.library_test.anew.default is torch.ops.library_test.anew
    assert not hasattr(torch.ops.library_test, "anew_functional")


def test_kernels_of_devices():
    @custom_op("library_test::where", mutates_args=())
    def where(x: Tensor) -> Tensor:
        return torch.zeros(1)

    where.register_kernel("cpu")(lambda x: torch.ones(1))
    x = torch.ones(2)
    assert where(x).item() == 1
    with where.set_kernel_enabled("cpu", False):
        assert where(x).item() == 0
    assert where(x).item() == 1
    where.register_kernel(None, lambda x: torch.full((1,), 2.0))
    assert where(x).item() == 1
    with pytest.raises(ValueError, match="device"):
        custom_op(
            "library_test::no_device", lambda n: torch.ones(n),
            mutates_args=(), device_types="cpu", schema="(int n) -> Tensor",
        )  # fmt: skip
    with pytest.raises(ValueError, match="consistent"):
        custom_op("library_test::w", abs, mutates_args=("x",), schema="(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="kwarg-only"):
        custom_op("library_test::w", abs, mutates_args=(), schema="(*, Tensor x) -> Tensor")


def test_formulas_with_another_number_of_gradients():
    for found in ((None,), (None, None, torch.ones(2))):
        parts.register_autograd(lambda ctx, first, second, found=found: found)
        with pytest.raises(RuntimeError, match=f"expected 2, got {len(found)}"):
            parts(torch.ones(2, requires_grad=True), 2)[0].sum().backward()
    rules.definitions["library_test::parts"].backward = None
    rules.definitions["library_test::parts"].renew()


def test_vmap_and_functional_gradients():
    x = torch.arange(4.0).reshape(2, 2)
    assert torch.equal(torch.vmap(scaled)(x), x * 2)
    assert torch.equal(torch.compile(torch.vmap(scaled), fullgraph=True)(x), x * 2)
    grad = torch.func.vmap(torch.func.grad(lambda x: scaled(x.sin(), 3.0).sum()))
    assert torch.allclose(grad(x), 3 * x.cos())


def test_rules_of_vmap():
    seen = []

    @custom_op("library_test::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(x.shape))
        return x * 2

    x = torch.arange(6.0).reshape(3, 2)
    assert torch.equal(torch.vmap(doubled)(x), x * 2) and seen == [(2,)] * 3
    seen.clear()

    @doubled.register_vmap
    def rule(info, in_dims, x):
        assert (info.batch_size, info.randomness, in_dims) == (3, "error", (0,))
        return doubled(x).t(), 1

    assert torch.equal(torch.vmap(doubled)(x), x * 2) and seen == [(3, 2)]
    with pytest.raises(ValueError, match="expected the name of an operator"):
        torch.library.register_vmap("library_test::unknown", rule)


def test_exported():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return scaled(x * self.weight, 3.0, shift=1.0).relu()

    dim = torch.export.Dim("rows")
    found = torch.export.export(Model(), (torch.ones(2, 3),), dynamic_shapes=({0: dim},))
    targets = [n.target for n in found.graph.nodes if n.op == "call_function"]
    assert torch.ops.library_test.scaled.default in targets
    x = torch.arange(12.0).reshape(4, 3)
    assert torch.equal(found.module()(x), Model()(x))


def test_operators_defined_apart():
    library = torch.library.Library("library_test_apart", "DEF")
    name = library.define("twice(Tensor x) -> Tensor")
    library.impl(name, lambda x: x * 2, "CPU")
    library.impl(name, torch.empty_like, "Meta")
    twice = torch.ops.library_test_apart.twice
    x = torch.ones(2)
    for run in (twice, torch.compile(lambda x: twice(x), fullgraph=True)):
        assert run(x).tolist() == [2, 2]
    assert twice(torch.empty(2, device="meta")).is_meta

    @torch.library.define(library, "thrice(Tensor x) -> Tensor")
    def thrice(x):
        return x * 3

    y = torch.ones(2, requires_grad=True)
    torch.compile(torch.ops.library_test_apart.thrice, fullgraph=True)(y).sum().backward()
    assert y.grad.tolist() == [3, 3] and thrice(torch.empty(2, device="meta")).is_meta
    with pytest.raises(RuntimeError, match="multiple times"):
        library.define("twice(Tensor x, int n) -> Tensor")
    with pytest.raises(ValueError, match="reserved"):
        torch.library.Library("prim", "DEF")
    with pytest.raises(RuntimeError, match="dispatch key 'CPUs'"):
        library.impl(name, lambda x: x * 2, "CPUs")
    with pytest.raises(ValueError, match="expected schema"):
        torch.library.define("library_test_apart::w", "w(Tensor x) -> Tensor")
    with pytest.raises(AttributeError, match="library_test_apart"):
        _ = torch.ops.library_test_apart.missing


def test_compiled_programs_notice_another_fake():
    times = 1

    @custom_op("library_test::repeated", mutates_args=())
    def repeated(x: Tensor) -> Tensor:
        return torch.cat([x] * times)

    repeated.register_fake(lambda x: torch.empty_like(x))
    compiled = torch.compile(lambda x: repeated(x) + 1, fullgraph=True)
    assert compiled(torch.ones(3)).tolist() == [2] * 3
    for times in (2, 3):
        repeated.register_fake(lambda x, n=times: x.new_empty(x.shape[0] * n))
        assert compiled(torch.ones(3)).tolist() == [2] * (3 * times)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_written_keeps_its_history(compiled):
    @custom_op("testlib::times_into", mutates_args=("y",))
    def times_into(x: Tensor, y: Tensor) -> None:
        y.mul_(x)

    def run(w):
        y = w * 1
        times_into(torch.full((2,), 3.0), y)
        return y * 2

    w = torch.ones(2, requires_grad=True)
    y = (torch.compile(run) if compiled else run)(w)
    y.sum().backward()
    assert (y.tolist(), w.grad.tolist()) == ([6.0, 6.0], [2.0, 2.0])


@pytest.mark.parametrize("compiled", [False, True])
def test_written_arguments_may_share_memory(compiled):
    @custom_op("testlib::both_into", mutates_args=("a", "b"))
    def both_into(a: Tensor, b: Tensor) -> None:
        a.add_(1)
        b.mul_(2)

    def run(x):
        both_into(x[:3], x[1:])
        return x * 1

    assert (torch.compile(run) if compiled else run)(torch.arange(4.0)).tolist() == [1, 4, 6, 6]


def test_an_operator_that_was_replaced_stays_itself():
    def plus(n):
        @custom_op("testlib::plus_n", mutates_args=())
        def operator(x: Tensor) -> Tensor:
            return x + n

        operator.register_fake(torch.empty_like)
        return operator

    first, second = plus(1), plus(100)
    first.register_autograd(lambda ctx, grad: grad * 7)
    assert torch.compile(lambda x: first(x) * 1)(torch.ones(1)).tolist() == [2]
    assert torch.compile(lambda x: second(x) * 1)(torch.ones(1)).tolist() == [101]
    x = torch.ones(1, requires_grad=True)
    assert not rules.definitions["testlib::plus_n"].has_formula
    first(x).sum().backward()
    assert x.grad.tolist() == [7]


def test_a_new_body_is_compiled_anew():
    torch.library.define("testlib::body", "(Tensor x) -> Tensor")
    torch.library.impl("testlib::body", "CompositeImplicitAutograd", lambda x: x * 2)
    run = torch.compile(lambda x: torch.ops.testlib.body(x) + 1)
    assert run(torch.ones(1)).tolist() == [3]
    torch.library.impl("testlib::body", "CompositeImplicitAutograd", lambda x: x * 5)
    assert run(torch.ones(1)).tolist() == [6]


def test_contexts_know_which_arguments_need_gradients():
    seen = []

    @custom_op("testlib::scaled", mutates_args=())
    def scaled(x: Tensor, y: Tensor, n: int) -> Tensor:
        return x * y * n

    def setup(ctx, inputs, output):
        seen.append(tuple(ctx.needs_input_grad))
        ctx.save_for_backward(inputs[1])

    def backward(ctx, grad):
        seen.append(tuple(ctx.needs_input_grad))
        return grad * ctx.saved_tensors[0] * 2, None, None

    scaled.register_autograd(backward, setup_context=setup)
    scaled(torch.ones(2, requires_grad=True), torch.ones(2), 2).sum().backward()
    assert seen == [(True, False, False)] * 2


def autocast_operator(name):
    seen = []

    @custom_op(f"testlib::{name}", mutates_args=())
    def operator(x: Tensor, ys: list[Tensor], n: Tensor, k: float = 1.0) -> Tensor:
        seen.append((x.dtype, ys[0].dtype, n.dtype, torch.is_autocast_enabled("cpu")))
        return x * k

    operator.register_fake(lambda x, ys, n, k=1.0: torch.empty_like(x))

    def setup(ctx, inputs, output):
        ctx.k = inputs[3]

    operator.register_autograd(lambda ctx, g: (g * ctx.k, [None], None, None), setup_context=setup)
    return operator, seen


@pytest.mark.parametrize("compiled", [False, True])
def test_arguments_are_cast_in_autocast_regions(compiled):
    operator, seen = autocast_operator(f"cast_{compiled}")

    def run(x, y):
        with torch.autocast("cpu", torch.float16):
            return operator(x, [x], torch.ones(2, dtype=torch.int64), 3.0), operator(y, [x], x)

    if compiled:
        call = torch.compile(run, backend="aot_eager", fullgraph=True)
        assert call(torch.ones(2), torch.ones(2))[0].dtype == torch.float32
    else:
        call = run
    operator.register_autocast("cpu", torch.bfloat16)
    seen.clear()
    x = torch.ones(2, requires_grad=True)
    a, b = call(x, x.double())
    lower = torch.bfloat16
    assert seen == [(lower, lower, torch.int64, False), (torch.float64, lower, lower, False)]
    assert (a.dtype, b.dtype) == (lower, torch.float64)
    (a.sum().float() + b.sum()).backward()
    assert x.grad.tolist() == [4, 4]
    assert operator(torch.ones(2), [x], x).dtype == torch.float32  # outside of regions


def test_regions_of_other_devices_cast_nothing():
    operator, seen = autocast_operator("cast_elsewhere")
    torch.library.register_autocast(operator, "cuda", torch.float16)
    with torch.autocast("cpu"):
        assert operator(torch.ones(2), [torch.ones(2)], torch.ones(2)).dtype == torch.float32
    assert seen == [(torch.float32,) * 3 + (True,)]
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        operator.register_autocast(0, torch.float16)
    with pytest.raises(ValueError, match="Unknown device type: tpu"):
        operator.register_autocast("tpu", torch.float16)


@pytest.mark.parametrize("compiled", [False, True])
def test_kernels_of_keys_before_those_of_devices(compiled):
    library = torch.library.Library("testlib", "FRAGMENT")
    name = library.define(f"keyed_{compiled}(Tensor x) -> Tensor")
    operator = getattr(torch.ops.testlib, name)
    library.impl(name, lambda x: x + 1, "CPU")
    library.impl(name, torch.empty_like, "Meta")

    def lower(x):
        with torch.autocast("cpu", enabled=False):
            return operator(x.bfloat16())

    library.impl(name, lower, "AutocastCPU")

    def run(x):
        with torch.autocast("cpu"):
            y = operator(x)
        return y, operator(x)

    call = torch.compile(run, fullgraph=True) if compiled else run
    with torch.no_grad():
        assert [t.dtype for t in call(torch.ones(2))] == [torch.bfloat16, torch.float32]

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.no_grad():
                return operator(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    library.impl(name, Recorded.apply, "Autograd")
    x = torch.ones(2, requires_grad=True)
    y, z = call(x)
    assert y.tolist() == z.tolist() == [2, 2]
    (y.sum().float() + z.sum()).backward()
    assert x.grad.tolist() == [10, 10]


def test_overloads_are_objects_of_their_own():
    aten, x = torch.ops.aten, torch.ones(2)
    assert aten.add.Tensor is aten.add.Tensor and aten.add.Tensor == aten.add.Tensor
    assert aten.add.Tensor != aten.add.Scalar and aten.add.Tensor != aten.sub.Tensor
    assert len({aten.add.Tensor, aten.add.Scalar, aten.add.out, aten.add.Scalar_out}) == 4
    assert aten.add.Scalar(x, 1).tolist() == aten.add.Tensor(x, x).tolist() == [2, 2]
    assert (str(aten.add.Scalar), aten.add.Scalar.__name__) == ("aten.add.Scalar", "add.Scalar")
    assert aten.add.Scalar.name() == "aten::add.Scalar" and aten.mm.default.name() == "aten::mm"
    assert aten.add.Scalar.overloadpacket is aten.add and aten.add.Scalar.namespace == "aten"
    assert aten.add.Scalar._overloadname == "Scalar" and aten.mm.default._overloadname == "default"
    assert (
        str(aten.add.Tensor._schema)
        == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )
    assert "Scalar other" in str(aten.add.Scalar._schema)
    assert not hasattr(aten.add, "nothing")


def test_overloads_are_pickled_by_their_names():
    aten = torch.ops.aten
    for op in (aten.add.Scalar, aten.add.Tensor, aten.mm.default, aten.max.dim, aten.add):
        copy = pickle.loads(pickle.dumps(op))
        assert copy is op and copy.shown == op.shown


def test_overloads_are_equal_to_what_graphs_hold():
    aten = torch.ops.aten
    graph = torch.export.export(_Sum(), (torch.ones(2),)).graph
    (target,) = [n.target for n in graph.nodes if n.op == "call_function"]
    assert target is aten.add.Tensor and target != aten.add.Scalar and target != aten.sub.Tensor
    assert {aten.add.Tensor: 1}[target] == 1


class _Sum(torch.nn.Module):
    def forward(self, x):
        return x + x


def test_overload_of_all_convolutions():
    convolution = torch.ops.aten.convolution.default
    x, w = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)
    y = convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    assert y.tolist() == [[[[9.0, 9.0], [9.0, 9.0]]]]
    assert convolution(y, w, None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1).shape == x.shape
