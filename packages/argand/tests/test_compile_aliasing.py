"""Compiled programs treat memory as Python does: strides, sharing, versions, writes that the caller sees. ARGAND_FUZZ_PROGRAMS sets their number."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import compile_harness as harness
import pytest
from alias_fuzz import AliasProgram, Call, alias_programs
from hypothesis import HealthCheck, given, settings

import argand as torch

COUNT = int(os.environ.get("ARGAND_FUZZ_PROGRAMS", "40"))
BACKENDS = ["eager", "aot_eager", "inductor"]


def facts(tensor: torch.Tensor, everything: list[torch.Tensor]) -> dict[str, Any]:
    """What a program can see of a tensor besides its elements."""
    memory = tensor.untyped_storage().data_ptr()
    base = tensor._base
    sharing = [
        i
        for i, t in enumerate(everything)
        if t.numel() and tensor.numel() and t.untyped_storage().data_ptr() == memory
    ]
    return {
        "strides": [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1],
        "offset": tensor.storage_offset() - everything[sharing[0]].storage_offset()
        if sharing
        else 0,
        "requires_grad": tensor.requires_grad,
        "is_leaf": attempt(lambda: tensor.is_leaf),  # refused where a history was lost
        "is": next(i for i, t in enumerate(everything) if t is tensor),
        "shares memory with": sharing,
        "is a view of": next((i for i, t in enumerate(everything) if t is base), None),
    }


def packed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def attempt(fn: Any, *args: Any) -> Any:
    try:
        return fn(*args)
    except Exception as error:  # what a program raises is part of what it does
        return type(error)


def run_backward(outputs: list[torch.Tensor]) -> None:
    weights = harness.seeded_weights(outputs)
    sum((x * w).sum() for x, w in zip(outputs, weights, strict=True)).backward()


def observe(fn: Any, call: Call) -> dict[str, Any]:
    """Everything that a caller can see of a call, in the order of a program that goes on with the results."""
    args, leaves = call.arguments()
    versions = [x._version for x in args]
    results = attempt(fn, *args)
    raised = isinstance(results, type)
    everything = [*args, *(() if raised else results)]
    seen = {
        "raises": results if raised else None,
        "values": [packed(x) for x in everything],
        "facts": [facts(x, everything) for x in everything],
        "written": [x._version > old for x, old in zip(args, versions, strict=True)],
    }
    outputs = [x for x in everything if x.requires_grad]
    if outputs:
        seen["backward"] = attempt(run_backward, outputs)
        seen["gradients"] = [leaf.grad for leaf in leaves]
    seen["later writes"] = []
    with torch.no_grad():
        for k, x in enumerate(everything):
            seen["later writes"].append(isinstance(attempt(x.add_, k + 1), type))
    seen["values after"] = [packed(x) for x in everything]
    return seen


def same(want: Any, got: Any, name: str) -> None:
    """`want` and `got` as observed."""
    if name == "gradients":
        for u, v in zip(want, got, strict=True):
            assert (u is None) == (v is None), f"gradient {v}, expected {u}"
            if u is not None:
                harness.compare(u, v, name, 1e-6)
    elif name in ("values", "values after"):
        for k, (u, v) in enumerate(zip(want, got, strict=True)):
            harness.compare(u, v, f"{name}, tensor {k}", None)
    elif name == "facts":
        for k, (u, v) in enumerate(zip(want, got, strict=True)):
            for fact in u:
                assert v[fact] == u[fact], f"tensor {k}: {fact}: got {v[fact]}, expected {u[fact]}"
    else:
        assert got == want, f"{name}: got {got}, expected {want}"


def check(program: AliasProgram, backend: str, dynamic: bool | None = None) -> None:
    torch.compiler.reset()
    plain = program.function()
    compiled = torch.compile(program.function(), backend=backend, dynamic=dynamic)
    for call in program.calls:
        want, got = observe(plain, call), observe(compiled, call)
        try:
            assert list(got) == list(want), f"got {got}, expected {want}"
            for name in want:
                same(want[name], got[name], name)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{call}\n{program.source}") from None


def many(count: int) -> Any:
    return settings(
        max_examples=count,
        derandomize=os.environ.keys().isdisjoint(("ARGAND_FUZZ_PROGRAMS", "ARGAND_TEST_SEED")),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


@pytest.mark.parametrize("backend", BACKENDS)
@many(COUNT)
@given(alias_programs())
def test_memory_is_treated_as_in_python(backend: str, program: AliasProgram) -> None:
    check(program, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_view_that_lost_its_history_is_refused_as_in_python(backend: str) -> None:
    source = "def f(a, b, v):\n    with torch.no_grad():\n        x1 = a.t()\n    v.add_(0)\n    return x1,\n"
    call = Call(2, 3, ("rows", "columns"), "vector", "derived")
    check(AliasProgram(source, (call, call)), backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_strides_that_one_dimension_alone_may_have(backend: str) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x * 2
        return y, y.stride(), y.relu().neg()

    for x in (
        torch.ones(1, 4).t(),
        torch.ones(7).as_strided((1, 4), (77, 1)),
        torch.ones(4, 0).t(),
    ):
        torch.compiler.reset()
        (y, strides, z), (u, traced, v) = f(x), torch.compile(f, backend=backend)(x)
        assert strides == y.stride() == traced == u.stride() and z.stride() == v.stride()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", [
    torch.zeros_like, torch.ones_like, torch.rand_like, torch.clone, torch.Tensor.double, lambda x: x.to(torch.float32, copy=True),
    lambda x: torch.full_like(x, 2.0), lambda x: x.sort(1)[0],
])  # fmt: skip
def test_strides_of_dimensions_of_one(backend: str, make: Callable[..., torch.Tensor]) -> None:
    for x in (
        torch.ones(3, 1, 2).permute(2, 1, 0),
        torch.ones(15).as_strided((1, 3, 5), (7, 5, 1)),
        torch.ones(2, 1, 3, 5).permute(0, 3, 1, 2),
    ):
        torch.compiler.reset()
        assert torch.compile(make, backend=backend)(x).stride() == make(x).stride() == x.stride()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("make", [
    lambda x: x.t().clone(memory_format=torch.contiguous_format), lambda x: x.t() + 1, lambda x: (x.t() + 1).sum(), lambda x: x.t().relu(),
])  # fmt: skip
def test_strides_of_gradients(
    backend: str, dynamic: bool, make: Callable[..., torch.Tensor]
) -> None:
    x = torch.rand(3, 4, requires_grad=True)
    found = []
    for f in (make, torch.compile(make, backend=backend, dynamic=dynamic)):
        y = f(x)
        found.append(torch.autograd.grad(y, x, torch.ones_like(y) if y.ndim else None)[0])
    assert torch.equal(*found)
    assert 0 in found[0].stride() or found[1].stride() == found[0].stride()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_and_layouts_change_together(backend: str, dynamic: bool | None) -> None:
    def f(x: torch.Tensor) -> Any:
        return x * x.stride(0), x.t() + x.stride(1), x.view_as(x)

    compiled = torch.compile(f, backend=backend, dynamic=dynamic)
    layouts = (
        lambda r, c: torch.rand(r, 1).expand(r, c),
        lambda r, c: torch.rand(r + c - 1).unfold(0, c, 1),
        lambda r, c: torch.rand(c).expand(r, c),
        lambda r, c: torch.rand(c, r).t(),
        lambda r, c: torch.rand(r, 2 * c)[:, ::2],
    )
    for sizes in ((3, 2), (2, 3), (4, 3), (3, 3)):
        for lay_out in layouts:
            x = lay_out(*sizes)
            for u, v in zip(f(x), compiled(x), strict=True):
                assert torch.equal(u, v) and u.stride() == v.stride()


@pytest.mark.parametrize("backend", BACKENDS)
def test_offsets_that_the_program_reads_are_guarded(backend: str) -> None:
    def f(x: torch.Tensor) -> Any:
        x.as_strided((2,), (1,), x.storage_offset()).add_(1)
        return x.as_strided((2,), (1,)) * 1, x.storage_offset()

    compiled = torch.compile(f, backend=backend)
    for offset in (2, 3, 0, 3):
        memory, other = torch.zeros(9), torch.zeros(9)
        want = f(memory[offset : offset + 4])
        got = compiled(other[offset : offset + 4])
        assert torch.equal(memory, other) and torch.equal(want[0], got[0]) and want[1] == got[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_copies_lie_where_copies_do(backend: str) -> None:
    """Not where what was copied lies, whose offset changes."""

    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        z, w = torch.empty_like(x), torch.empty(3, 2)
        z.copy_(x), w.copy_(x.t()), y.copy_(x)
        return z.as_strided((2,), (2,)), w.as_strided((2, 2), (1, 2), 1), y.as_strided((2,), (1,))

    compiled = torch.compile(f, backend=backend)
    x, y = torch.arange(24.0).view(4, 2, 3), torch.zeros(4, 2, 3)
    for k in (0, 2, 1):
        for u, v in zip(f(x[k], y[k]), compiled(x[k], y[k]), strict=True):
            assert torch.equal(u, v)


OVERLAPPING: list[Any] = [
    lambda x: torch.add(x[:-1], 1, out=x[1:]),
    lambda x: torch.neg(x.t(), out=x),
    lambda x: torch.sum(x, 0, out=x[0]),
    lambda x: torch.cat([x[:1], x[1:]], out=x),
    lambda x: torch.neg(torch.ones(3, 3), out=x[:1].expand(3, 3)),
    lambda x: x[1:].add_(x[:-1]),
    lambda x: x.t().add_(x),
    lambda x: x.index_add_(0, torch.tensor([0, 1]), x[:2]),
    lambda x: x.copy_(x.t()),
    lambda x: torch.neg(x, out=x),
    lambda x: torch.mm(x, x, out=x),
    lambda x: torch.cumsum(x, 0, out=x),
    lambda x: x[0].add_(x[1]),
    lambda x: x[:, 0].add_(x[:, 1]),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("number", range(len(OVERLAPPING)))
def test_memory_that_is_read_and_written(backend: str, number: int) -> None:
    f = OVERLAPPING[number]
    for start in (torch.arange(9.0).view(3, 3), torch.arange(9.0).view(3, 3).t()):
        x, y = start.clone(), start.clone()
        want, got = attempt(f, x), attempt(torch.compile(f, backend=backend), y)
        assert torch.equal(x, y)
        assert got is want if isinstance(want, type) else torch.equal(got, want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_copy_of_itself_changes_nothing(backend: str) -> None:
    compiled = torch.compile(lambda x: x.copy_(x), backend=backend)
    for x in (torch.ones(1, 4).expand(3, 4), torch.ones(2, 3), torch.ones(()).expand(2)):
        before = x._version
        assert compiled(x) is x and x._version > before
    x = torch.ones(1, 4).expand(3, 4)
    x.copy_(x[:]), x.copy_(x.detach())
    with pytest.raises(RuntimeError, match="more than one element"):
        x.copy_(x[:1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_views_of_a_detached_result(backend: str) -> None:
    def f(x: torch.Tensor) -> Any:
        d, e = x.detach(), (x + 1).detach()
        return d[0], d, e, e[0], d[0], d

    compiled = torch.compile(f, backend=backend)
    r = compiled(torch.ones(2, 3).requires_grad_())
    assert r[1]._base is None and r[0]._base is r[1] and r[4]._base is r[5] is r[1]
    assert r[3]._base is r[2] and r[0] is not r[4]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.relu().mul_(2),
        lambda x: x.exp().view(-1)[:1].zero_(),
        lambda x: [y := x * 1, y.sin(), y.add_(1)][1],
        lambda x: [y := x * 1, y.exp_().sub_(1)][1],
        lambda x: [y := x * 1, y * y.add_(1)][1],
    ],
)
def test_gradients_that_need_what_was_changed_are_refused(backend: str, f: Any) -> None:
    compiled = torch.compile(f, backend=backend)
    y = compiled(torch.ones(2, 3).requires_grad_())
    want = attempt(f(torch.ones(2, 3).requires_grad_()).sum().backward)
    assert attempt(y.sum().backward) is want
    with torch.no_grad():
        assert torch.equal(f(torch.ones(2, 3)), compiled(torch.ones(2, 3)))


def scaled_in_silence(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    y = x * v
    with torch.no_grad():
        y.mul_(3)
    return y * y.detach()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, v: torch.fill(x, v) * 2,
        lambda x, v: (x * 1).fill_(v) * 3,
        lambda x, v: (x * 1).zero_() + v,
        lambda x, v: x.clone().copy_(v) * v,
        lambda x, v: x.detach() * v,
        lambda x, v: x * x.detach() * v,
        lambda x, v: torch.no_grad()(torch.exp)(x) * x * v,
        scaled_in_silence,
        lambda x, v: (x * v).view(3, 1),
    ],
)
def test_gradients_that_do_not_flow(backend: str, create_graph: bool, f: Any) -> None:
    """Through what is overwritten, detached, or made while gradients are off; in the gradients' gradients neither."""
    found: list[list[Any]] = []
    for g in (f, torch.compile(f, backend=backend)):
        given = torch.ones(3).mul(1.5).requires_grad_(), torch.tensor(2.0).requires_grad_()
        y = g(*given).square().sum()
        first = torch.autograd.grad(y, given, create_graph=create_graph, allow_unused=True)
        found.append(list(first))
        again = [u.square().sum() for u in first if u is not None and u.requires_grad]
        if again:
            found[-1] += torch.autograd.grad(sum(again), given, allow_unused=True)
    for u, w in zip(*found, strict=True):
        assert w is None if u is None else torch.allclose(u, w)


@pytest.mark.parametrize("backend", ["plain", *BACKENDS])
def test_bytes_have_no_history(backend: str) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x.view(torch.int32).view(torch.float32)
        return x.view(torch.int32), y, y[0], x.view(torch.float16)

    x = torch.ones(2, 3).requires_grad_() * 1
    i, y, row, half = (f if backend == "plain" else torch.compile(f, backend=backend))(x)
    assert not any(t.requires_grad for t in (i, y, row, half))
    assert i._base is y._base is half._base is None and row._base is y
    y.zero_()
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]] and x._version == i._version == 1


def raises_and_records(f: Any, backend: str) -> None:
    """Compiled, `f` refuses the expanded tensor that it changes, and leaves recording on."""
    compiled = torch.compile(f, backend=backend)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="more than one element"):
            compiled(torch.ones(1, 3).expand(2, 3))
        assert torch.is_grad_enabled()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_inside_of_no_grad_leaves_the_mode(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x[:, 0] *= 2
        return x

    raises_and_records(f, backend)


def test_a_backend_of_the_user_leaves_the_mode_too() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x[:, 0] *= 2
        return x

    compiled = torch.compile(f, backend=lambda module, inputs: module.forward)
    with pytest.raises(RuntimeError, match="more than one element"):
        compiled(torch.ones(1, 3).expand(2, 3))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("backend", BACKENDS)
def test_out_takes_no_part_in_gradients(backend: str) -> None:
    compiled = torch.compile(lambda x, y: torch.neg(x, out=y), backend=backend)
    x, y = torch.ones(3).requires_grad_(), torch.zeros(3)
    with pytest.raises(RuntimeError, match="neg.out: functions with out="):
        compiled(x, y)
    with torch.no_grad():
        compiled(x, y)
    assert y.tolist() == [-1, -1, -1]
    above = torch.zeros(3, dtype=torch.bool)  # carries no gradient
    torch.compile(lambda x, y: torch.gt(x, 0, out=y), backend=backend)(x, above)
    assert above.tolist() == [True, True, True]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_mask_fills_an_expanded_tensor(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x[x > 1] = 0
        return x + 1

    x = torch.tensor([[1.0], [2.0]]).expand(2, 2)
    assert torch.compile(f, backend=backend)(x).tolist() == [[2, 2], [1, 1]]
    assert x.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_behind_a_block_that_was_broken_leaves_the_outer_mode(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            torch.compiler.graph_break()
        x[:, 0] *= 2
        return x

    raises_and_records(f, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_that_is_a_symbol_may_count_from_the_end(backend: str) -> None:
    def f(x: torch.Tensor, i: int) -> torch.Tensor:
        y = x.clone()
        y.select(0, i).fill_(7)
        return y * 1 + x.select(0, i)

    compiled = torch.compile(f, backend=backend, dynamic=True)
    for n, i in ((3, -1), (4, -2), (5, 2), (4, -3)):
        x, z = (torch.ones(n, 3).requires_grad_() for _ in range(2))
        u, v = f(x, i), compiled(z, i)
        (u * u).sum().backward()
        (v * v).sum().backward()
        assert torch.equal(u, v) and torch.equal(x.grad, z.grad)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    yield
    torch.compiler.reset()
    torch.set_grad_enabled(True)


def uses(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = x[1:]
    x.mul_(2)
    return y + 1


def uses_and_forgets(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = x[1:]
    x[:1].mul_(2)
    y.t()
    return x * 2


def returns(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = x.t()
    x.mul_(2)
    return y


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [uses, uses_and_forgets, returns])
def test_views_of_no_grad_lose_no_gradients(function: Any, backend: str) -> None:
    """Views of what is then changed where gradients are recorded."""
    compiled = torch.compile(function, backend=backend)
    for grad in (False, True):
        want, got = (
            attempt(f, torch.ones(2, 3).requires_grad_(grad) * 1) for f in (function, compiled)
        )
        if isinstance(want, type):
            assert got is want
        else:
            assert torch.equal(got.detach(), want.detach())
            assert got.requires_grad == want.requires_grad
            assert attempt(lambda t=got: t.is_leaf) == attempt(lambda t=want: t.is_leaf)
