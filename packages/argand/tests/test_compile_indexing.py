"""A 0-d integer tensor as an index is a view of what it names in compiled code too, and its value may change from call to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compile_harness as harness
import pytest

import argand as torch

BACKENDS = ["eager", "aot_eager", "inductor"]


def changed_through(x: Any, i: Any) -> Any:
    y = x.clone()
    y[i].add_(1)
    y[:, i, 1:].mul_(2)
    return y


def assigned(x: Any, i: Any) -> Any:
    y = x.clone()
    y[i, :, [0, 2]] = 5.0
    y[:, i] = y[:, 0]
    return y


def base_changed(x: Any, i: Any) -> Any:
    y = x * 1
    v = y[i]
    y.mul_(2)
    return v + 1, v.sin(), y


def index_changed(x: Any, i: Any) -> Any:
    j, y = i.clone(), x * 1
    v = y[j]
    j.add_(-1)
    v.mul_(3)
    return v, y, j


# The result has the place that eager gives it: an index that is an integer does not take part in gathering.
READS: dict[str, Callable[..., Any]] = {
    "first": lambda x, i: x[i],
    "second": lambda x, i: x[:, i],
    "twice": lambda x, i: x[i, 1:, i],
    "chained": lambda x, i: x[i][i],
    "with a gather": lambda x, i: x[i, :, [0, 1, 2]],
    "with a new dimension": lambda x, i: x[i, None, ..., -1],
    "computed": lambda x, i: x[x[0, 0].argmax() - 2],
    "of a result": lambda x, i: (x.transpose(0, 2) + 0)[i],
    "int32": lambda x, i: x[i.int()],
    "int16": lambda x, i: x[i.to(torch.int16)],
    "negative": lambda x, i: x[-i - 1],
}


def arguments(i: int) -> tuple[Any, Any]:
    return torch.arange(24.0).reshape(2, 3, 4).requires_grad_(), torch.tensor(i)


def check(f: Callable[..., Any], backend: str) -> None:
    torch.compiler.reset()
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    with torch.compiler.collect_records() as records:
        for i in (1, 0, 1):
            want = harness.run_once(f, arguments(i), 0, True)
            got = harness.run_once(compiled, arguments(i), 0, True)
            assert got.pop("aliases") == want.pop("aliases"), "tensors share memory otherwise"
            for name in want:
                harness.compare(want[name], got[name], f"{i}: {name}", None)
    # The gradient of index_changed needs the index that it changes: operator by operator it is refused as eager refuses it.
    allowed = ("FP", "AOT001") if f is index_changed else ("FP",)
    assert not [r for r in records if not r.code.startswith(allowed)], records


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", READS)
def test_a_read_is_a_view(name: str, backend: str) -> None:
    f = READS[name]
    check(f, backend)
    x, i = arguments(1)
    x = x.detach()
    view = torch.compile(f, backend=backend, fullgraph=True)(x, i)
    shares = view.untyped_storage() == x.untyped_storage()
    assert shares is (f(x, i).untyped_storage() == x.untyped_storage())
    if shares:  # what is written into the result is written into what was indexed
        other = x.clone()
        f(other, i).fill_(-1.0)
        view.fill_(-1.0)
        assert torch.equal(x, other)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f", [changed_through, assigned, base_changed, index_changed], ids=lambda f: f.__name__
)
def test_changes_and_their_gradients(f: Callable[..., Any], backend: str) -> None:
    check(f, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_is_changed_where_the_index_says(backend: str) -> None:
    def f(x: Any, i: Any) -> Any:
        v = x[i]
        v[0] = 9.0
        return v * 2

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for i in (0, 1):
        x, y = (torch.arange(24.0).reshape(2, 3, 4) for _ in range(2))
        assert torch.equal(compiled(x, torch.tensor(i)), f(y, torch.tensor(i)))
        assert torch.equal(x, y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_out_of_range(backend: str) -> None:
    compiled = torch.compile(lambda x, i: x[i] * 2, backend=backend)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 2"):
        compiled(torch.ones(2, 3), torch.tensor(5))


def test_the_offset_is_not_known_while_tracing() -> None:
    def f(x: Any, i: Any) -> Any:
        return x[i].view(torch.int16), x[i].as_strided((2,), (1,)), x[i].storage_offset()

    x, i = torch.arange(12.0).reshape(3, 4), torch.tensor(2)
    for backend in BACKENDS:
        torch.compiler.reset()
        got, want = torch.compile(f, backend=backend)(x, i), f(x, i)
        assert got[2] == want[2] == 8
        for u, v in zip(got[:2], want[:2], strict=True):
            assert torch.equal(u, v) and u.storage_offset() == v.storage_offset()


def test_copies_in_place_by_indices_in_derivatives() -> None:
    """index_copy_ has no derivative of its own: in graphs its body is."""

    def f(x: Any, i: Any, s: Any) -> Any:
        return x.clone().index_copy_(0, i, s), x.index_copy(0, i, s), x.index_fill(0, i, 2.0)

    torch.compiler.reset()
    args = (torch.ones(3, 2), torch.tensor([2, 0]), torch.zeros(2, 2))
    calls = [tuple(a.clone().requires_grad_(a.is_floating_point()) for a in args) for _ in "ab"]
    want = harness.run_once(f, calls[0], 0, True)
    got = harness.run_once(torch.compile(f, backend="aot_eager", fullgraph=True), calls[1], 0, True)
    for name in ("result", "gradients"):
        harness.compare(want[name], got[name], name, None)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_mask_breaks(shape: tuple[int, ...]) -> None:
    x, mask = torch.full(shape, 2.0), torch.ones(shape, dtype=torch.bool)
    torch.compiler.reset()
    with torch.compiler.collect_records() as records:
        got = torch.compile(lambda x, m: x.masked_select(m) * 2)(x, mask)
    assert torch.equal(got, x.masked_select(mask) * 2)
    assert [r.code for r in records] == ["GB0005"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_place_that_is_filled_twice_counts_once(backend: str) -> None:
    """The gradient of the value is that of index_fill, which its body's operators do not give."""
    torch.compiler.reset()
    f = lambda x, v, i: x.clone().index_fill_(1, i, v)  # noqa: E731
    for g in (f, torch.compile(f, backend=backend, fullgraph=True)):
        v = torch.tensor(2.0).requires_grad_()
        g(torch.zeros(3, 4).requires_grad_(), v, torch.tensor([2, 0, 2])).sum().backward()
        assert v.grad.item() == 6.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_elements_are_scattered_where_a_mask_is_true(backend: str) -> None:
    def scattered(x: Any, mask: Any, source: Any) -> Any:
        return x.masked_scatter(mask, source) * 2, x.masked_scatter(mask[0], source[:3])

    compiled = torch.compile(scattered, backend=backend, fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        mask = torch.randn(3, 4) > 0
        mask[0] = torch.tensor([True, False, seed > 0, False])
        given = [torch.randn(3, 4, requires_grad=True) for _ in "xs"]
        results = [f(given[0], mask, given[1]) for f in (scattered, compiled)]
        gradients = [torch.autograd.grad(u.sum() + (v * v).sum(), given) for u, v in results]
        for want, got in (results, gradients):
            assert all(torch.equal(w, g) for w, g in zip(want, got, strict=True))
    empty = compiled(torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.bool), torch.ones(4))
    assert torch.equal(empty[0], torch.full((2, 2), 2.0))
    nothing = torch.ones(0, requires_grad=True)  # takes part in the gradient all the same
    for f in (scattered, torch.compile(scattered, backend=backend)):
        result = f(torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.bool), nothing)[0]
        assert torch.autograd.grad(result.sum(), nothing)[0].shape == (0,)
    on_meta = torch.ones(4, device="meta").masked_scatter(
        mask.to("meta"), torch.ones(9, device="meta")
    )
    assert on_meta.shape == (3, 4) and on_meta.is_meta


class Indexed(torch.nn.Module):
    def forward(self, x: Any, i: Any) -> Any:
        y = x * 2
        y[i] = 0.0
        y[i].add_(1)
        return x[i] * 3, y, y[:, i], x[i]


def test_an_exported_program_indexes(tmp_path: Any) -> None:
    x, i = torch.arange(12.0).reshape(3, 4), torch.tensor(1)
    made = torch.export.export(Indexed(), (x, i))
    torch.export.save(made, tmp_path / "indexed.pt2")
    for program in (made, torch.export.load(tmp_path / "indexed.pt2")):
        for k in (1, 2):
            got, want = program.module()(x, torch.tensor(k)), Indexed()(x, torch.tensor(k))
            assert all(torch.equal(u, v) for u, v in zip(got, want, strict=True))


def test_a_stored_plan_indexes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path))
    for _ in range(2):  # the second time as another process does: from the disk
        check(READS["second"], "inductor")
        check(changed_through, "inductor")
    assert (
        torch.compiler.counters().get("plans_loaded") and "traces" not in torch.compiler.counters()
    )
