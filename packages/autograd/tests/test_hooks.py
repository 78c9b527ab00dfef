"""Hooks of tensors, nodes and saved tensors; anomaly detection."""

from __future__ import annotations

import gc
import weakref

import pytest
from helpers import close, leaf

import argand_autograd as autograd
import argand_c10
from argand_autograd import graph


def test_tensor_hooks_replace_gradients():
    x = leaf([1.0, 2.0])
    y = x * x
    seen = []
    first = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 3)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward(retain_graph=True)
    assert seen == [[1, 1], [3, 3]] and close(x.grad, [6, 12])
    first.remove()
    x.grad = None
    y.sum().backward()
    assert seen == [[1, 1], [3, 3], [3, 3]]


def test_leaf_hooks():
    x = leaf([1.0, 2.0])
    handle = x.register_hook(lambda g: g + 1)
    order = []
    x.register_post_accumulate_grad_hook(lambda p: order.append(p.grad.tolist()))
    (x * 2).sum().backward()
    assert close(x.grad, [3, 3]) and order == [[3, 3]]
    (g,) = autograd.grad((x * 2).sum(), x)
    assert close(g, [3, 3]) and len(order) == 1
    handle.remove()
    (x * 2).sum().backward()
    assert close(x.grad, [5, 5]) and len(order) == 2


def test_errors_of_hooks():
    x, plain = leaf([1.0]), argand_c10.tensor([1.0])
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        plain.register_hook(print)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError, match="expected a callable"):
        x.register_hook(3)
    y = x * 2
    y.register_hook(lambda g: 1)
    with pytest.raises(TypeError, match="got int from the hook, expected None or a Tensor"):
        y.sum().backward()
    z = x * 2
    z.register_hook(lambda g: argand_c10.tensor([1.0, 2.0], dtype=argand_c10.float64))
    with pytest.raises(RuntimeError, match=r"gradient of shape \[2\]"):
        z.sum().backward()


def test_retain_grad():
    x = leaf([1.0, 2.0])
    y = x * x
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    y.register_hook(lambda g: g * 2)
    (y * 3).sum().backward()
    assert close(y.grad, [6, 6])
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        argand_c10.tensor([1.0]).retain_grad()
    z = x * 1
    z.retain_grad()
    z.mul_(5)
    z.sum().backward()
    assert close(z.grad, [1, 1])


def test_retained_gradients_have_memory_of_their_own():
    y = leaf([1.0, 2.0]) * 2
    z = y + 0
    y.retain_grad()
    z.retain_grad()
    z.sum().backward()
    z.grad.add_(1)
    assert close(z.grad, [2, 2]) and close(y.grad, [1, 1])


def test_retained_gradients_add_up():
    y = leaf([1.0, 2.0]) * 3
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    first = y.grad
    z.backward()
    assert close(y.grad, [12, 24]) and close(first, [6, 12])


def test_hooks_that_refer_to_their_tensor_are_collected():
    class Owner:
        def __init__(self, register):
            self.tensor = leaf([1.0])
            self.handle = register(self)

        def hook(self, *args):
            return None

    class Keeps(autograd.Function):
        @staticmethod
        def forward(ctx, x, owner):
            ctx.owner, ctx.result = owner, x * 1
            return ctx.result

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    def result_hook(owner):
        owner.result = owner.tensor * 2
        return owner.result.register_hook(owner.hook)

    makers = (
        lambda o: o.tensor.register_hook(o.hook),
        lambda o: o.tensor.register_post_accumulate_grad_hook(o.hook),
        result_hook,
    )
    for make in makers:
        owner = Owner(make)
        dead = weakref.ref(owner)
        del owner
        gc.collect()
        assert dead() is None
    owner = Owner(lambda o: Keeps.apply(o.tensor, o))
    dead = weakref.ref(owner)
    del owner
    gc.collect()
    assert dead() is None


def test_hooks_of_tensors_that_only_a_graph_holds_stay():
    seen = []
    x = leaf([1.0])
    x.register_hook(lambda grad: seen.append(float(grad)))
    y = x * 2
    gc.collect()
    del x
    gc.collect()
    y.sum().backward()
    assert seen == [2.0]
    leaf_again = y.grad_fn.next_functions[0][0].variable
    assert gc.is_tracked(leaf_again)


def test_node_hooks():
    x = leaf([1.0, 2.0])
    y = x * x
    calls = []
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda made, given: calls.append((len(made), given[0].tolist())))
    y.grad_fn.register_hook(lambda made, given: tuple(g * 10 for g in made))
    y.sum().backward()
    assert calls == [(2, [2, 2])] and close(x.grad, [40, 80])


def test_backward_inside_a_hook():
    x, w = leaf([1.0]), leaf([2.0])
    y = x * 2

    def hook(g):
        with autograd.enable_grad():
            (w * w).sum().backward()
        return g

    y.register_hook(hook)
    y.sum().backward()
    assert close(x.grad, [2]) and close(w.grad, [4])


def test_saved_tensors_hooks():
    x = leaf([1.0, 2.0])
    packed, unpacked = [], []

    def pack(t):
        assert not autograd.is_grad_enabled()
        packed.append(t)
        return len(packed) - 1

    def unpack(i):
        unpacked.append(i)
        return packed[i].clone()

    with graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    z = y * 3  # outside: not packed
    assert len(packed) == 3
    assert packed[0] is x and packed[1] is x and not packed[2].requires_grad
    (g,) = autograd.grad(z.sum(), x, create_graph=True)
    e = x.detach() * x.detach()
    assert close(g, (6 * x.detach() * e.exp()).tolist())
    assert len(unpacked) >= 3
    (second,) = autograd.grad(g.sum(), x)
    assert close(second, (6 * e.exp() * (1 + 2 * e)).tolist())


def test_saved_leaves_outlive_their_node():
    x = leaf([1.0, 2.0])
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    saved = y.grad_fn._saved_self
    del y
    others = [leaf([3.0]) * 2 for _ in range(20)]
    (saved * 2).sum().backward()
    assert close(x.grad, [2, 2]) and others[0].requires_grad


def test_pack_hooks_record_nothing_and_change_nothing():
    x = leaf([1.0, 2.0])
    kept = []
    with graph.saved_tensors_hooks(lambda t: kept.append(t * 2) or t, lambda t: t):
        (x * x).sum().backward()
    assert close(x.grad, [2, 4]) and not any(t.requires_grad for t in kept)
    with (
        graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t),
        pytest.raises(RuntimeError, match="pack hook is modifying its input"),
    ):
        x.detach() * x


def test_saved_tensors_may_be_changed_where_it_is_allowed():
    a = leaf([1.0, 2.0])
    with graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        out = (b * b).sum()
        b.sin_()
        out.backward()
    assert close(a.grad, [2, 4])
    b = a.clone()
    out = (b * b).sum()
    b.sin_()
    with pytest.raises(RuntimeError, match="modified"):
        out.backward()


def test_saved_tensors_hooks_are_refused_where_they_are_disabled():
    x = leaf([3.0])
    with graph.disable_saved_tensors_hooks("no hooks here"):
        with graph.disable_saved_tensors_hooks("nor here"):
            with pytest.raises(RuntimeError, match="nor here"):
                graph.save_on_cpu().__enter__()
        with pytest.raises(RuntimeError, match="no hooks here"):
            graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()
        y = x * x
    y.backward()
    with graph.save_on_cpu():
        z = x * x
    z.backward()
    assert close(x.grad, [12])


def test_save_on_cpu_moves_tensors_of_its_device_and_back():
    moves = []

    class Recorded(graph.save_on_cpu):
        def __enter__(self):
            unpack = self.unpack_hook
            self.unpack_hook = lambda packed: moves.append(packed) or unpack(packed)
            super().__enter__()

    x = leaf([3.0])
    with Recorded(device_type="cpu"):
        y = (x * x).sum()
    y.backward()
    assert close(x.grad, [6])
    assert len(moves) == 2
    for device, saved in moves:
        assert device.type == "cpu" and close(saved, [3])


def test_unpack_errors_arrive():
    x = leaf([1.0])
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 5):
        y = x * x
    with pytest.raises(TypeError, match="got int from unpack_hook, expected a Tensor"):
        y.sum().backward()


def test_multi_grad_hook():
    x, y = leaf([1.0]), leaf([2.0])
    calls = []
    handle = graph.register_multi_grad_hook(
        [x, y], lambda grads: calls.append([g.item() for g in grads])
    )
    (x * y).sum().backward()
    assert calls == [[2, 1]]
    handle.remove()
    (x * y).sum().backward()
    assert len(calls) == 1
    with pytest.raises(ValueError, match="expected 'all' or 'any'"):
        graph.register_multi_grad_hook([x], print, mode="some")


def test_multi_grad_hook_waits_for_what_a_call_makes():
    x, y = leaf([1.0]), leaf([2.0])
    product, other = x * y, x * y
    tensors = (x, y, product, other)
    all_, any_ = [], []
    graph.register_multi_grad_hook(tensors, lambda gs: all_.append([g is not None for g in gs]))
    graph.register_multi_grad_hook(tensors, lambda g: any_.append(g.item()), mode="any")
    product.sum().backward(retain_graph=True)
    product.sum().backward(inputs=(x,), retain_graph=True)
    (product + other * 3).sum().backward()
    (x * y * 5).sum().backward()  # another graph of the same leaves
    assert all_ == [
        [True, True, True, False],
        [True, False, True, False],
        [True, True, True, True],
        [True, True, False, False],
    ]
    assert any_ == [1, 1, 3, 10]


def test_anomaly_detection():
    x = leaf([0.0, 1.0])
    with (
        pytest.warns(UserWarning, match="Anomaly Detection has been enabled"),
        autograd.detect_anomaly(),
    ):
        assert autograd.is_anomaly_enabled()
        y = (x / x) * 1  # 0 / 0
        with (
            pytest.warns(
                UserWarning, match="Error detected in DivBackward(.|\n)*test_anomaly_detection"
            ),
            pytest.raises(
                RuntimeError, match="Function 'DivBackward0' returned nan values in its 1th output"
            ),
        ):
            y.sum().backward()
    assert not autograd.is_anomaly_enabled()
    (x / x).sum().backward()
