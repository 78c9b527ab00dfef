"""How often the function of a `vmap` runs, what it leaves behind beside its results, and what its entries refuse."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import argand_aten as aten
import argand_autograd as autograd
import argand_c10 as c10
from argand_autograd.batching import networks, rules
from argand_autograd.func import grad, vmap


def numbers(*shape):
    return c10.tensor(np.random.default_rng(sum(shape)).standard_normal(shape))


def rows(count=3, width=2):
    return aten.arange(float(count * width)).view(count, width) - 2


# ---- what is written and done beside results --------------------------------------------------------------------------
@pytest.mark.parametrize("reads", [False, True], ids=["at once", "one by one"])
@pytest.mark.parametrize("chunk_size", [None, 2])
def test_what_a_function_does_beside_its_results_is_done_as_in_a_loop(reads, chunk_size):
    x, counter, called = rows(4), aten.zeros([]), []

    def f(a):
        called.append(len(called))
        counter.add_(1)
        return a * 2 if reads and a.sum() > 0 else a + 0

    found = vmap(f, chunk_size=chunk_size)(x)
    runs = 4 if reads else 1 if chunk_size is None else 2
    assert counter.item() == len(called) == runs
    want = aten.where(x.sum(1, keepdim=True) > 0, x * 2, x) if reads else x
    assert found.tolist() == want.tolist()


def test_entries_are_added_to_what_they_share_once():
    x, total = rows(), aten.zeros([2])

    def f(a):
        total.add_(a)
        return a * 1

    assert vmap(f)(x).tolist() == x.tolist() and total.tolist() == x.sum(0).tolist()


def test_arguments_are_written_once():
    x = rows()

    def f(a):
        a.mul_(2)
        a[0].add_(1)
        return a * 10 if a.sum() > 0 else a * 1

    want = aten.stack([f(row.clone()) for row in x])
    written = x.clone()
    assert vmap(f)(written).tolist() == want.tolist()
    expected = x * 2
    expected[:, 0] += 1
    assert written.tolist() == expected.tolist()


def test_gradients_of_arguments_that_are_written():
    leaf = rows().requires_grad_()
    vmap(lambda a: a.mul_(a) * 3)(leaf * 1).sum().backward()
    assert leaf.grad.tolist() == (6 * rows()).tolist()
    with pytest.raises(RuntimeError, match="changed an argument with gradients in place"):
        vmap(lambda a: a.mul_(a) if a.sum() > 5 else a.mul_(2) * a.sum().item())(leaf * 1)


def test_gradients_after_elements_are_read():
    x, w = numbers(4, 3), numbers(3).requires_grad_()

    def f(row):
        y = (row * w).sin()
        return y.sum() * 2 if y.sum() > 0 else (y * row).sum()

    vmap(f)(x).sum().backward()
    found, w.grad = w.grad, None
    aten.stack([f(row) for row in x]).sum().backward()
    np.testing.assert_allclose(found.numpy(), w.grad.numpy(), rtol=1e-12)
    w.grad = None
    derived = vmap(grad(f))(x)
    expected = aten.stack([grad(f)(row) for row in x])
    np.testing.assert_allclose(derived.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


def test_out_arguments_and_backward_inside():
    x, out = rows(), aten.zeros([2])

    def f(a):
        assert aten.add(a, 1, out=out) is out
        return out * 2

    assert vmap(f)(x).tolist() == ((x + 1) * 2).tolist() and out.tolist() == (x[-1] + 1).tolist()
    w = aten.ones([2]).requires_grad_()

    def g(a):
        (a * w).sum().backward()
        return a * 1

    vmap(g)(x)
    assert w.grad.tolist() == x.sum(0).tolist()


def test_nested_runs():
    x, called = rows(3, 2), []

    def inner(b):
        called.append(0)
        return b * 2 if b > 0 else b * 1

    want = aten.where(x > 0, x * 2, x)
    assert vmap(vmap(inner))(x).tolist() == want.tolist()
    assert len(called) == 5  # of the first two entries each is not positive
    called.clear()
    found = vmap(lambda a: vmap(lambda i: inner(a.sum() * i))(aten.ones([4])))(x)
    sums = x.sum(1, keepdim=True).expand(3, 4)
    assert found.tolist() == aten.where(sums > 0, sums * 2, sums).tolist()
    assert len(called) == 3  # an inner run, which is at once, for each of the outer entries


def test_errors_of_some_entries_can_be_caught():
    def f(a):
        try:
            return aten.inverse(a)
        except RuntimeError:
            return a - 1

    found = vmap(f)(aten.stack([aten.eye(2), aten.zeros([2, 2])]))
    assert found.tolist() == [[[1, 0], [0, 1]], [[-1, -1], [-1, -1]]]


def test_errors_are_those_of_one_entry_and_the_function_runs_once():
    called = []

    def f(a):
        called.append(0)
        return a @ aten.zeros([5])

    with pytest.raises(RuntimeError, match=r"\[4, 2\]"):
        vmap(f)(aten.zeros([3, 4, 2]))
    assert len(called) == 1

    def g(a):
        called.append(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        vmap(g)(rows())
    assert len(called) == 2


def test_results_of_different_sizes_inside():
    x = c10.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 4.0, 5.0]])
    assert vmap(lambda a: aten.nonzero(a).sum())(x).tolist() == [2, 0, 3]
    assert vmap(lambda a: a[a > 1].sum())(x).tolist() == [2, 0, 12]


def test_hooks_that_read_run_for_each_row_of_a_jacobian():
    seen = []

    class Doubled(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad.sum().item() + grad[0].item())
            return grad * 2

    jacobian = autograd.functional.jacobian(lambda x: Doubled.apply(x), aten.ones([3]))
    assert jacobian.tolist() == (aten.eye(3) * 2).tolist() and seen == [2, 1, 1]


# ---- random numbers ---------------------------------------------------------------------------------------------------
PROGRAMS = {
    "new": lambda a, g: a * 0 + aten.rand([2], generator=g),
    "of entries": lambda a, g: aten.bernoulli(a * 0 + 0.5, generator=g) + a * 0,
    "in place": lambda a, g: (a * 1).uniform_(generator=g),
    "in place of what is shared": lambda a, g: aten.zeros([2]).uniform_(generator=g) + a * 0,
    "before reading": lambda a, g: aten.rand([2], generator=g) + 0 * a.sum().item(),
    "after reading": lambda a, g: 0 * a.sum().item() + aten.rand([2], generator=g),
    "permutations": lambda a, g: aten.randperm(50, generator=g),
}


@pytest.mark.parametrize("own", [False, True], ids=["default generator", "own generator"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_randomness(name, own):
    generator = c10.Generator() if own else None
    x = rows(12)

    def run(randomness, chunk_size=None):
        c10.manual_seed(3)
        if generator is not None:
            generator.manual_seed(3)
        mapped = vmap(
            lambda a: PROGRAMS[name](a, generator), randomness=randomness, chunk_size=chunk_size
        )
        return {tuple(row) for row in mapped(x).tolist()}

    with pytest.raises(RuntimeError, match="randomness error mode"):
        run("error")
    assert len(run("same")) == len(run("same", 5)) == 1
    assert len(run("different")) > (1 if name == "of entries" else 11)
    assert run("same") == run("same")


def test_randomness_of_nested_vmaps():
    x = rows(3, 4)

    def nested(outer, inner):
        draw = vmap(lambda b: b * 0 + aten.rand([]), randomness=inner)
        return vmap(draw, randomness=outer)(x)

    assert len({tuple(row) for row in nested("same", "different").tolist()}) == 1
    assert len(set(nested("same", "different")[0].tolist())) == 4
    per_row = nested("different", "same").tolist()
    assert all(len(set(row)) == 1 for row in per_row) and len({row[0] for row in per_row}) == 3
    for outer, inner in (("error", "same"), ("different", "error")):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            nested(outer, inner)


def test_draws_of_other_threads_are_not_looked_at():
    x, states = rows(), []

    def f(a):
        other = threading.Thread(target=lambda: states.append(aten.rand([1]).item()))
        other.start()
        other.join()
        return a + 0 * a.sum().item()

    assert vmap(f)(x).tolist() == x.tolist()
    assert len(set(states)) == 3  # nor rewound


# ---- entries ----------------------------------------------------------------------------------------------------------
READERS = {
    "item": lambda t: t.sum().item(),
    "first item": lambda t: t[0].item(),
    "tolist": lambda t: t.tolist(),
    "numpy": lambda t: t.numpy(),
    "memoryview": memoryview,
    "data_ptr": lambda t: t.data_ptr(),
    "storage": lambda t: t.untyped_storage(),
    "dlpack": lambda t: t.__dlpack__(),
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "tensor": lambda t: c10.tensor(t),
    "share_memory_": lambda t: t.share_memory_(),
    "set_": lambda t: aten.zeros([2]).set_(t),
    "data": lambda t: setattr(aten.zeros([2]), "data", t),
    "an operator": lambda t: t + 1,
    "random numbers": lambda t: aten.bernoulli(t),
}


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("name", READERS)
def test_entries_that_outlive_their_vmap_are_not_read(name):
    kept = []
    vmap(lambda a: (kept.append(a), a * 1)[1])(rows())
    with pytest.raises(RuntimeError, match="entries of a vmap that has returned"):
        READERS[name](kept[0])


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("name", READERS)
def test_entries_are_not_read_in_other_threads(name):
    errors = []

    def f(a):
        def read():
            try:
                READERS[name](a)
            except RuntimeError as error:
                errors.append(str(error))

        other = threading.Thread(target=read)
        other.start()
        other.join()
        return a * 1

    vmap(f)(rows())
    (error,) = errors
    assert "entries of a vmap in another thread" in error


COPIES = {
    "numpy": lambda a: c10.tensor(a.numpy()),
    "memoryview": lambda a: c10.tensor(memoryview(a).tolist()),
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
    "deepcopy": copy.deepcopy,
    "tensor": lambda a: c10.tensor(a),
    "tensor of elements": lambda a: c10.tensor([a[0], a[1]]),
    "set_": lambda a: aten.zeros([2]).set_(a),
    "data": lambda a: a.data,
    "item": lambda a: c10.tensor([a[0].item(), a[1].item()]),
}


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("name", COPIES)
def test_readers_of_memory_get_each_entry(name):
    x = rows()
    assert vmap(lambda a: COPIES[name](a) * 1)(x).tolist() == x.tolist()


def test_texts_show_all_entries():
    texts, x = [], rows()
    vmap(lambda a: vmap(lambda b: (texts.append(repr(b)), b * 1)[1])(a))(x)
    assert len(texts) == 1 and texts[0].startswith("BatchedTensor(lvl=2, bdim=0, value=")
    assert "BatchedTensor(lvl=1" in texts[0] and all(f"{n:.0f}." in texts[0] for n in (-2, 3))
    kept, alone = [], []

    def f(a):
        kept.append(a)
        if a.sum() > 0:
            alone.append(f"{a}")
        else:
            alone.append(repr(a))
        return a * 1

    vmap(f)(x)
    assert alone == [repr(row) for row in x]
    assert "3." in repr(kept[0])


def test_views_in_place_and_sizes():
    x = aten.arange(24.0).view(3, 4, 2)

    def changed(change):
        def f(a):
            b = a * 1
            assert change(b) is b
            return b * 1

        return vmap(f)(x).tolist(), aten.stack([f(row) for row in x]).tolist()

    for change in (
        lambda b: b.t_(),
        lambda b: b.unsqueeze_(0),
        lambda b: b.transpose_(0, 1).mul_(2),
        lambda b: b.as_strided_((2, 2), (1, 2), b.storage_offset() + 1),
        lambda b: b.resize_(3),
        lambda b: b.resize_(9)[8:].zero_() is not None and b,
        lambda b: b.resize_as_(aten.zeros([2, 2])),
        lambda b: b.detach_(),
    ):
        found, want = changed(change)
        assert found == want
    with pytest.raises(RuntimeError, match="resize_: got a view"):
        vmap(lambda a: a.t().resize_(2))(x)
    with pytest.raises(RuntimeError, match="set_: got a tensor that stands for the entries"):
        vmap(lambda a: a.set_(aten.zeros([1])))(x)

    def assigned(a):
        a.data = aten.zeros([1])

    with pytest.raises(RuntimeError, match=r"Tensor\.data: got a tensor that stands"):
        vmap(assigned)(x)


def test_what_is_detached_in_place_passes_no_gradients():
    x = rows().requires_grad_()
    vmap(lambda a: (a * 2).detach_() + a)(x).sum().backward()
    assert x.grad.unique().tolist() == [1]


@pytest.mark.parametrize("f", [lambda a: a * 2, lambda a: a * a.sum().item(), lambda a: -a])
def test_results_that_differ_need_a_dimension(f):
    with pytest.raises(ValueError, match="out_dims None for a result that differs"):
        vmap(f, out_dims=None)(rows())
    y = numbers(2)
    assert vmap(lambda a: y if a.sum() > 0 else y * 1, out_dims=None)(rows()).tolist() == y.tolist()


def test_running_statistics():
    def run(f, x, *batched, dims):
        mean, var, count = aten.zeros([3]), aten.ones([3]), aten.zeros([], dtype=c10.int64)

        def norm(a, mean, var, count):
            count.add_(1)
            return aten.batch_norm(a, None, None, mean, var, True, 0.1, 1e-5)

        state = [
            aten.stack([t] * len(x)) if b else t
            for t, b in zip((mean, var, count), batched, strict=True)
        ]
        return f(norm, dims)(x, *state), state

    def loop(norm, dims):
        def all_of(x, *state):
            parts = (
                [t[i] if d == 0 else t for t, d in zip(state, dims[1:], strict=True)]
                for i in range(len(x))
            )
            return aten.stack([norm(a, *part) for a, part in zip(x, parts, strict=True)])

        return all_of

    x = numbers(4, 5, 3).float()
    for batched in ((True, True, True), (False, False, False), (True, False, False)):
        dims = (0, *(0 if b else None for b in batched))
        found, state = run(vmap, x, *batched, dims=dims)
        want, expected = run(loop, x, *batched, dims=dims)
        np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
        for a, b in zip(state, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_networks_run_at_once(monkeypatch):
    one_by_one = []

    def by_entries(level, op, args, kwargs, run=rules.by_entries):
        one_by_one.append(op.name)
        return run(level, op, args, kwargs)

    monkeypatch.setattr(rules, "_chosen", {})
    monkeypatch.setattr(rules, "by_entries", by_entries)
    monkeypatch.setattr(networks, "by_entries", by_entries)
    ops = aten.ops

    def attend(a, mask):
        return ops.attention(a, a, a, mask, False, 0.5)[0].square().sum()

    def group_norm(a, v):
        return ops.native_group_norm(a, v, v, 2, 4, 6, 2, 1e-5)[0].square().sum()

    def batch_norm(a, v):
        return (ops.native_batch_norm(a, v, v, None, None, True, 0.1, 1e-5)[0] ** 3).sum()

    def rms_norm(a, v):
        return ops.fused_rms_norm(a, [6], v, 1e-5)[0].square().sum()

    x, count = numbers(5, 2, 4, 6).float(), 5
    channels, features = numbers(5, 4).float(), numbers(5, 6).float()
    heads = numbers(5, 2, 3, 4, 6).float()
    for f, batch in (
        (attend, (heads, numbers(5, 4, 4).float())),
        (attend, (heads, numbers(5, 2, 1, 4, 4) > 0)),
        (group_norm, (x, channels)),
        (batch_norm, (x, channels)),
        (rms_norm, (x, features)),
    ):
        wanted = tuple(range(len([t for t in batch if t.is_floating_point() and f is not attend])))
        derived = grad(f, argnums=wanted or (0,))
        found = vmap(derived)(*batch)
        assert not one_by_one
        by_row = [derived(*(t[i] for t in batch)) for i in range(count)]
        for got, column in zip(found, zip(*by_row, strict=True), strict=True):
            want = aten.stack(list(column)).numpy()
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_inside(reentrant):
    x = numbers(4, 3)

    def f(a):
        return autograd.checkpoint(lambda b: (b.sin() * b).sum(), a, use_reentrant=reentrant)

    expected = grad(lambda t: (t.sin() * t).sum())(x)
    np.testing.assert_allclose(vmap(grad(f))(x).numpy(), expected.numpy(), rtol=1e-12)
