"""backward() and grad(): values, options and errors."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from helpers import close, leaf, random_leaf

import argand_aten as aten
import argand_autograd as autograd
import argand_c10


def test_leaves_accumulate():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x * y + x).sum().backward()
    assert close(x.grad, [4, 5]) and close(y.grad, [1, 2])
    (x * x).sum().backward()
    assert close(x.grad, [6, 9])
    assert x.grad.requires_grad is False and x.grad.grad_fn is None


def test_broadcast_gradients_are_reduced():
    x, row, number = random_leaf(2, 3), random_leaf(3), leaf(2.0)
    (x * row * number).sum().backward()
    assert row.grad.shape == (3,) and number.grad.shape == ()
    assert close(row.grad, ((x.detach() * 2).sum(0)).tolist())


def test_counts_have_no_gradient():
    x = leaf([1.0, 0.0, 2.0])
    for dim in (None, 0):
        aten.norm(x * 2, 0, dim).backward()
        assert x.grad is None
    (aten.norm(x, 0) + x.sum()).backward()
    assert close(x.grad, [1.0, 1.0, 1.0])


def test_gradient_has_the_leafs_dtype():
    x = argand_c10.tensor([1.0, 2.0], requires_grad=True)
    y = leaf([3.0, 4.0])
    (x * y).sum().backward()
    assert x.grad.dtype == argand_c10.float32 and y.grad.dtype == argand_c10.float64


def test_grad_dtype_casts_the_gradients_of_a_leaf():
    f32, f64, bf16 = argand_c10.float32, argand_c10.float64, argand_c10.bfloat16
    x = argand_c10.tensor([1.0, 2.0], requires_grad=True)
    assert x.grad_dtype == f32 and x.detach().grad_dtype == f32
    early = (x * 3).sum()  # recorded before the setting
    x.grad_dtype = f64
    for n in (1, 2):
        (early if n == 1 else (x.to(f64) * 3).sum()).backward()
        assert x.grad.dtype == f64 and x.grad.tolist() == [3.0 * n, 3.0 * n]
    with pytest.raises(RuntimeError, match="already a gradient of dtype float64"):
        x.grad_dtype = f32
    assert x.grad_dtype == f64
    x.grad = None
    x.grad_dtype = bf16
    assert autograd.grad((x * 3).sum(), x)[0].dtype == bf16
    with pytest.raises(RuntimeError, match="got float32, expected bfloat16"):
        x.grad = aten.ones([2])
    x.grad = aten.ones([2], dtype=bf16)
    assert x.requires_grad_(False).grad_dtype == bf16


def test_grad_dtype_none_keeps_the_dtype_of_gradients():
    class Wide(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return aten.clone(x)

        @staticmethod
        def backward(ctx, grad):
            return grad.to(argand_c10.float64)

    x = argand_c10.tensor([1.0, 2.0], requires_grad=True)
    Wide.apply(x).sum().backward()
    assert x.grad.dtype == argand_c10.float32
    x.grad = x.grad_dtype = None
    assert x.grad_dtype is None
    Wide.apply(x).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.dtype == argand_c10.float64 and x.grad.tolist() == [3.0, 3.0]
    x.grad = aten.ones([2], dtype=argand_c10.float16)


def test_grad_dtype_belongs_to_leaves():
    x = argand_c10.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="only be accessed on leaf tensors"):
        _ = (x * 2).grad_dtype
    with pytest.raises(RuntimeError, match="only be set on leaf tensors"):
        (x * 2).grad_dtype = argand_c10.float64
    for wrong in ("float32", float, 1):
        with pytest.raises(RuntimeError, match="must be a dtype or None"):
            x.grad_dtype = wrong
    assert x.grad_dtype == argand_c10.float32


def test_explicit_gradient():
    x = leaf([1.0, 2.0])
    (x * x).backward(argand_c10.tensor([1.0, 10.0], dtype=argand_c10.float64))
    assert close(x.grad, [2, 40])
    x.grad = None
    autograd.backward([x * 2, x * 3], [x.detach(), x.detach()])
    assert close(x.grad, [5, 10])


def test_gradient_in_a_list():
    x = leaf([1.0, 2.0])
    (x * 2).backward([leaf([1.0, 3.0]).detach()])
    assert close(x.grad, [2.0, 6.0])
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        (x * 2).backward([x, x])


def test_a_thread_in_backward_ends_with_the_interpreter():
    code = """
import threading, time
import argand_c10, argand_autograd
x = argand_c10.tensor([1.0] * 1000, requires_grad=True)
started = threading.Event()
def work():
    while True:
        y = x
        for _ in range(50):
            y = y * 1.01
        y.sum().backward()
        started.set()
threading.Thread(target=work, daemon=True).start()
started.wait()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_errors_of_backward():
    x = leaf([1.0, 2.0])
    with pytest.raises(
        RuntimeError,
        match="^backward: grad can be implicitly created only for scalar outputs",
    ):
        (x * x).backward()
    with pytest.raises(
        RuntimeError,
        match=r"Mismatch in shape: grad_output\[0\] has a shape of \[3\] and output\[0\] has a shape of \[2\]",
    ):
        (x * x).backward(argand_c10.tensor([1.0, 2.0, 3.0], dtype=argand_c10.float64))
    with pytest.raises(
        RuntimeError,
        match=r"^backward: element 0 of tensors does not require grad and does not have a grad_fn; compute it from a tensor with requires_grad=True",
    ):
        argand_c10.tensor(1.0).backward()
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])
    with pytest.raises(
        RuntimeError,
        match=r"One of the differentiated Tensors does not require grad; call requires_grad_\(\) on input 0",
    ):
        x.sum().backward(inputs=[argand_c10.tensor([1.0])])
    with pytest.raises(TypeError, match="unexpected keyword argument 'graph'"):
        x.sum().backward(graph=True)
    with pytest.raises(TypeError, match="Tensors or None, but got int"):
        x.sum().backward(1)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    assert close(x.grad, [2, 4])


def test_retain_graph():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert close(x.grad, [4, 8])


def test_grad_function():
    x, y, unused = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([1.0])
    z = (x * x * y).sum()
    gx, gy = autograd.grad(z, [x, y], retain_graph=True)
    assert close(gx, [6, 16]) and close(gy, [1, 4])
    assert x.grad is None and y.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        autograd.grad(z, [x, unused], retain_graph=True)
    assert autograd.grad(z, [x, unused], retain_graph=True, allow_unused=True)[1] is None
    assert close(autograd.grad(z, [x, unused], materialize_grads=True)[1], [0])
    with pytest.raises(RuntimeError, match="no inputs"):
        autograd.grad(x.sum(), [])


def test_what_nodes_save():
    """By PyTorch's names: arguments and results that derivatives read, the sizes of tensors of which they read no more."""
    x, y = leaf([[1.0, 2.0]]), leaf([[3.0, 4.0]])

    def saved(t):
        return {n for n in dir(t.grad_fn) if n.startswith("_saved_")}

    product, total, joined = x * y, aten.sum(x, 1), aten.cat([x, y], 1)
    assert saved(product) == {"_saved_self", "_saved_other"}
    assert product.grad_fn._saved_other is y
    assert (x * y.detach()).grad_fn._saved_self is None
    assert aten.exp(x).grad_fn._saved_result.tolist() == aten.exp(x).tolist()
    assert saved(aten.exp(x)) == {"_saved_result"}
    assert saved(total) == {"_saved_dim", "_saved_keepdim", "_saved_self_sym_sizes"}
    assert total.grad_fn._saved_dim == (1,) and total.grad_fn._saved_keepdim is False
    assert total.grad_fn._saved_self_sym_sizes == (1, 2)
    assert joined.grad_fn._saved_dim == 1
    assert aten.pow(x, 3).grad_fn._saved_exponent == 3
    assert aten.gelu(x).grad_fn._saved_approximate == "none"
    indices = x.new_zeros([1]).to(argand_c10.int64)
    assert x[indices].grad_fn._saved_indices[0] is indices
    assert not hasattr(product.grad_fn, "_saved_dim") and not hasattr(product.grad_fn, "_save")
    aten.sum(product).backward()
    with pytest.raises(RuntimeError, match="second time"):
        product.grad_fn._saved_self  # noqa: B018


def test_grad_of_an_intermediate_value():
    x = leaf([1.0, 2.0])
    y = x * x
    z = (y * y).sum()
    assert close(autograd.grad(z, y, retain_graph=True)[0], [2, 8])
    assert close(autograd.grad(z, [y, x])[1], [4, 32])


def test_batched_gradients():
    x = leaf([1.0, 2.0, 3.0])
    eye = argand_c10.tensor(
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], dtype=argand_c10.float64
    )
    (jacobian,) = autograd.grad(x * x, x, eye, is_grads_batched=True)
    assert close(jacobian, [[2, 0, 0], [0, 4, 0], [0, 0, 6]])


def test_second_and_third_order():
    x = leaf([0.5, 2.0])
    (g,) = autograd.grad((x**3).sum(), x, create_graph=True)
    assert close(g, [0.75, 12]) and g.requires_grad
    (g2,) = autograd.grad(g.sum(), x, create_graph=True)
    assert close(g2, [3, 12])
    (g3,) = autograd.grad(g2.sum(), x)
    assert close(g3, [6, 6])


def test_create_graph_in_backward():
    x = leaf([3.0])
    (x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    penalty = (x.grad * x.grad).sum()
    (g,) = autograd.grad(penalty, x)
    assert close(g, [24])
    x.grad = None


def test_chosen_inputs():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = x * y
    z.sum().backward(inputs=[y], retain_graph=True)
    assert x.grad is None and close(y.grad, [1, 2])
    z.sum().backward(inputs=z)
    assert close(z.grad, [1, 1]) and x.grad is None


def test_deep_graph():
    x = leaf([1.0])
    y = x
    for _ in range(20_000):
        y = y + 0.0
    y.sum().backward()
    assert close(x.grad, [1])
    del y


def test_graph_is_freed_with_its_result():
    x = leaf([1.0, 2.0])
    saved = x * 2
    gone = weakref.ref(saved)
    y = saved.exp().sum()
    del saved
    y.backward()
    del y
    gc.collect()
    assert gone() is None


def test_threads():
    x = leaf([1.0, 2.0])
    shared = (x * x).sum()
    failures = []

    def work() -> None:
        try:
            for _ in range(50):
                shared.backward(retain_graph=True)
                (x * 3).sum().backward()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert close(x.grad, [200 * 5.0, 200 * 7.0])


def test_modes_belong_to_a_thread():
    seen = []
    with autograd.no_grad():
        t = threading.Thread(target=lambda: seen.append(autograd.is_grad_enabled()))
        t.start()
        t.join()
        assert not autograd.is_grad_enabled()
    assert seen == [True]


def test_integers_do_not_require_grad():
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        argand_c10.tensor([1, 2]).requires_grad_()
    x = leaf([1.0, -1.0])
    assert not (x > 0).requires_grad
    assert not (x * 2).to(argand_c10.int64).requires_grad


def test_wrong_type_of_requires_grad():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1
    y = x * 2
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf variables"):
        y.requires_grad = False


def test_out_forms_are_refused():
    x = leaf([1.0])
    out = argand_c10.tensor([0.0], dtype=argand_c10.float64)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        aten.add(x, x, out=out)
    with autograd.no_grad():
        aten.add(x, x, out=out)
    assert close(out, [2])


def test_out_forms_may_write_what_carries_no_gradient():
    x = leaf([1.0, 3.0])
    where = argand_c10.tensor([True, True])
    assert aten.gt(x, 2.0, out=where).tolist() == [False, True] and not where.requires_grad
    place = argand_c10.tensor(7)
    assert aten.argmax(x, 0, out=place).item() == 1
    values = argand_c10.tensor(0.0, dtype=argand_c10.float64)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        aten.max(x, 0, out=(values, place))


def test_order_of_additions_is_reverse_order_of_use():
    big = 1e16
    x = leaf([1.0])
    one, plus, minus = x * 1.0, x * big, x * -big
    (g,) = autograd.grad(((one + plus) + minus).sum(), x)
    assert close(g, [1])  # (-big + big) + 1
    minus, one, plus = x * -big, x * 1.0, x * big
    (g,) = autograd.grad(((one + plus) + minus).sum(), x)
    assert close(g, [0])  # (big + 1) - big


def test_errors_leave_the_graph_usable():
    x = leaf([1.0, 2.0])
    y = x * x
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward(retain_graph=True)
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert close(x.grad, [2, 4])


INF, NAN, TINY = float("inf"), float("nan"), 1.1754944e-38
EDGES = [
    ("maximum", [[1.0, NAN, 2.0, 3.0], [NAN, 1.0, 2.0, 4.0]], [[1, 1, 0.5, 0], [1, 1, 0.5, 1]]),
    ("minimum", [[1.0, NAN, 2.0, 3.0], [NAN, 1.0, 2.0, 4.0]], [[1, 1, 0.5, 1], [1, 1, 0.5, 0]]),
    ("sinc", [[TINY, -TINY, 0.0]], [[0, 0, 0]]),
    ("smooth_l1_loss", [[INF, 1.0, 0.5], [1.0, -INF, 0.25]], [[1, 1, 0.25], [-1, -1, -0.25]]),
    ("huber_loss", [[INF, 1.0, 0.5], [1.0, -INF, 0.25]], [[1, 1, 0.25], [-1, -1, -0.25]]),
    ("smooth_l1_loss", [[NAN], [1.0]], [[NAN], [NAN]]),
    ("relu", [[0.0, NAN, -INF, INF]], [[0, 1, 0, 1]]),
    ("elu", [[0.0, NAN, -INF, INF]], [[1, 1, 0, 1]]),
    ("hardtanh", [[-1.0, 1.0, NAN, -INF, 0.5]], [[0, 0, 1, 0, 1]]),
    ("hardshrink", [[-0.5, 0.5, NAN, INF, 0.0]], [[0, 0, 1, 1, 0]]),
    ("softshrink", [[-0.5, 0.5, NAN, INF, 0.0]], [[0, 0, 1, 1, 0]]),
    ("entr", [[0.0, -1.0, 1.0, NAN]], [[INF, NAN, -1, NAN]]),
    ("logit", [[0.5, NAN, 1.5]], [[4, NAN, NAN]]),
    ("logit eps", [[0.5, NAN, 1.5]], [[4, NAN, 0]]),
    ("rrelu", [[NAN, 2.0]], [[1, 1]]),
    ("_cdist", [[[1.0], [NAN]], [[0.0]]], [[[1], [NAN]], [[NAN]]]),
    ("_pdist largest", [[[1.0, 3.0], [NAN, 1.0]]], [[[NAN, NAN], [NAN, NAN]]]),
    ("_pdist largest", [[[1.0, 3.0], [3.0, 1.0]]], [[[-1, 1], [1, -1]]]),
    ("_pdist root", [[[INF, 3.0], [1.0, 3.0], [1.0, 2.0]]], [[[NAN, INF], [NAN, 1], [NAN, -INF]]]),
]
OPTIONS = {
    "logit eps": {"eps": 0.1},
    "rrelu": {"training": True},
    "_cdist": {"p": 1.0, "multiply": False},
    "_pdist largest": {"p": INF},
    "_pdist root": {"p": 0.5},
}


@pytest.mark.parametrize("name, arguments, expected", EDGES)
def test_gradients_at_nan_infinities_and_ties(name, arguments, expected):
    leaves = [leaf(values) for values in arguments]
    options = {"reduction": 0} if name.endswith("_loss") else OPTIONS.get(name, {})
    result = getattr(aten.ops, name.split()[0])(*leaves, **options)
    for found, numbers in zip(autograd.grad(result.sum(), leaves), expected, strict=True):
        np.testing.assert_array_equal(found.numpy(), numbers)


def test_gradients_beside_complex_numbers_keep_their_precision():
    x, number = leaf([1.0, 2j], argand_c10.complex128), 0.1 + 0.3j
    for y, wanted in (
        (x * number, number.conjugate()),
        (x / number, 1 / number.conjugate()),
        (aten.lerp(x, x.detach() * 2, number), 1 - number.conjugate()),
    ):
        (g,) = autograd.grad(y, [x], aten.ones_like(y))
        np.testing.assert_allclose(g.numpy(), [wanted] * 2, rtol=1e-15)


def test_the_complex_gradient_of_acosh_is_that_of_its_side_of_the_cut():
    x = leaf([complex(-2.0, 0.0), complex(-2.0, -0.0), complex(0.5, -0.0)], argand_c10.complex128)
    aten.acosh(x).sum().backward(aten.tensor(1 + 0j, dtype=argand_c10.complex128))
    np.testing.assert_allclose(x.grad.numpy(), [-(3**-0.5), -(3**-0.5), -1j * 0.75**-0.5])


def test_the_complex_gradient_of_acosh_vanishes_at_infinity():
    x = leaf([complex(INF, 0.0), complex(-INF, 2.0), 2.0], argand_c10.complex128)
    (g,) = autograd.grad(aten.ops.acosh(x), x, aten.ops.ones_like(x))
    assert g.tolist()[:2] == [0, 0] and abs(g[2].item() - 3**-0.5) < 1e-15


@pytest.mark.parametrize("name", ["atan", "asin", "acos"])
def test_complex_gradients_vanish_where_squares_overflow(name):
    x = leaf([-501 - 1e20j, 3e25 + 1j, 0.25j], argand_c10.complex64)
    (g,) = autograd.grad(getattr(aten.ops, name)(x), x, aten.ops.ones_like(x))
    assert g.tolist()[:2] == [0, 0] and abs(g[2].item()) > 0.5


def test_addr_without_self_has_gradients_of_zeros():
    x, u, v = leaf([[NAN, 1.0]]), leaf([2.0]), leaf([3.0, 4.0])
    result = aten.ops.addr(x, u, v, beta=0, alpha=2)
    assert result.tolist() == [[12, 16]]
    assert [g.tolist() for g in autograd.grad(result.sum(), (x, u, v))] == [[[0, 0]], [14], [4, 4]]


STRAIGHT = {
    "relu": aten.ops.relu,
    "relu in place": lambda x: aten.ops.relu_(x * 1),
    "relu6": lambda x: aten.ops.hardtanh(x, 0.0, 6.0),
    "leaky_relu": aten.ops.leaky_relu,
    "threshold": lambda x: aten.ops.threshold(x, 0.3, 5.0),
    "hardshrink": aten.ops.hardshrink,
    "softshrink": aten.ops.softshrink,
    "prelu": lambda x: aten.ops.prelu(x, leaf([0.25]).detach()),
    "rrelu": aten.ops.rrelu,
    "rrelu in training": lambda x: aten.ops.rrelu(x, training=True),
}


KINKS = {
    "elu": (lambda x: aten.ops.elu(x), [0.0, -0.0], [-1.0, 1.0], [np.exp(-1), 0]),
    "selu": (lambda x: aten.ops.selu(x), [0.0], [1.0], [0]),
    "celu": (lambda x: aten.ops.celu(x, 0.5), [0.0], [-1.0], [2 * np.exp(-2)]),
    "softplus": (lambda x: aten.ops.softplus(x, 2, 3), [1.5], [0.5, 2.0], [0.3932239, 0]),
    "huber": (lambda x: aten.ops.huber_loss(x, x.detach() * 0, 0, 0.5), [0.5, -0.5, NAN], [0.4, 0.6], [1, 0]),
    "smooth_l1": (lambda x: aten.ops.smooth_l1_loss(x, x.detach() * 0, 0, 0.5), [0.5, -0.5, NAN], [0.4, 0.6], [2, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_second_derivatives_at_kinks_are_zeros(name):
    function, kinks, others, expected = KINKS[name]
    x = leaf([*kinks, *others])
    (g,) = autograd.grad(function(x).sum(), x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x)
    assert h[: len(kinks)].tolist() == [0.0] * len(kinks)
    assert close(h[len(kinks) :], expected, 1e-6)


CHOOSING = {
    "max_pool1d": lambda x: aten.ops.max_pool1d(x[0], 2),
    "max_pool2d": lambda x: aten.ops.max_pool2d(x, 2),
    "max_pool3d": lambda x: aten.ops.max_pool3d(x, 2),
    "avg_pool1d": lambda x: aten.ops.avg_pool1d(x[0], 2),
    "avg_pool2d": lambda x: aten.ops.avg_pool2d(x, 2),
    "avg_pool3d": lambda x: aten.ops.avg_pool3d(x, 2),
    "adaptive_avg_pool2d": lambda x: aten.ops.adaptive_avg_pool2d(x, [2, 1]),
    "adaptive_max_pool2d": lambda x: aten.ops.adaptive_max_pool2d(x, [2, 1])[0],
    "fractional_max_pool2d": lambda x: aten.ops.fractional_max_pool2d(
        x, 2, [2, 1], aten.ops.full([2, 2, 2], 0.5, dtype=x.dtype)
    )[0],
    "reflect": lambda x: aten.ops.pad(x[0], [1, 1], "reflect"),
    "reflect planes": lambda x: aten.ops.pad(x, [1, 1, 1, 0], "reflect"),
    "replicate": lambda x: aten.ops.pad(x[0], [1, 1], "replicate"),
    "nll_loss": lambda x: aten.ops.nll_loss(x[0, 0], argand_c10.tensor([1, 0, 1, 2])),
}


@pytest.mark.parametrize("name", CHOOSING)
def test_second_derivatives_of_choices_and_means_are_zeros(name):
    """They are there, beside those of a gradient that has a history of its own, and of what comes before."""
    x = random_leaf(2, 2, 4, 3)
    (g,) = autograd.grad(CHOOSING[name](x).sum(), x, create_graph=True)
    assert g.requires_grad and g.grad_fn.name().endswith("Backward0")
    assert not autograd.grad(g.sum(), x)[0].any()
    w = leaf([2.0])
    (g,) = autograd.grad((CHOOSING[name](x * x) * w).sum(), x, create_graph=True)
    by_x, by_w = autograd.grad(g.sum(), [x, w])
    assert close(by_x * x, g.detach(), 1e-12) and close(by_w * 2, [g.sum().item()], 1e-9)
    (g,) = autograd.grad(CHOOSING[name](x).sum(), x)
    assert not g.requires_grad


def test_a_tied_gradients_node():
    x = random_leaf(1, 1, 4, 4)
    (g,) = autograd.grad(aten.ops.max_pool2d(x, 2).sum(), x, create_graph=True)
    assert g.grad_fn.name() == "MaxPool2DWithIndicesBackwardBackward0"
    w = leaf([0.25])
    (g,) = autograd.grad(aten.ops.prelu(x, w).sum(), w, create_graph=True)
    assert autograd.grad(g.sum(), w)[0].tolist() == [0]


@pytest.mark.parametrize("name", STRAIGHT)
def test_second_derivatives_of_straight_pieces_are_zeros(name):
    x = leaf([-7.0, -0.2, 0.0, 0.3, 7.0])
    (g,) = autograd.grad(STRAIGHT[name](x).sum(), x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x)
    assert h.tolist() == [0.0] * 5


def test_gradients_that_are_not_finite_stay_out_of_flat_pieces():
    x = leaf([-7.0, 7.0])
    for name in ("relu", "threshold"):
        result = STRAIGHT[name](x)
        (g,) = autograd.grad(result, x, argand_c10.tensor([NAN, INF], dtype=result.dtype))
        assert g.tolist() == [0.0, INF]


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "median", "nanmedian"])
def test_gradients_of_chosen_elements_stay_with_them(name):
    x = leaf([2.0, 1.0, 3.0, 2.0, 1.0, 3.0, 2.0])
    result = getattr(aten.ops, name)(x)
    (g,) = autograd.grad(result, x, argand_c10.tensor(NAN, dtype=x.dtype))
    np.testing.assert_array_equal(g.isnan().numpy(), (x == result).numpy())
    assert (g.isnan() | (g == 0)).all()


def test_second_derivatives_where_the_first_ends():
    x = leaf([0.0, -1.0, 2.0])
    (g,) = autograd.grad(aten.ops.entr(x).sum(), x, create_graph=True)
    assert autograd.grad(g.sum(), x)[0].tolist() == [-INF, 1, -0.5]
    x = leaf([-30.0, 0.0, 20.0, 100.0])
    (g,) = autograd.grad(aten.ops.log_ndtr(x).sum(), x, create_graph=True)
    assert close(autograd.grad(g.sum(), x)[0], [-0.9988962, -2 / np.pi, 0, 0], 1e-6)
    for dtype, exact in ((argand_c10.float32, 1e-5), (argand_c10.float64, 1e-12)):
        x = leaf([-1e4, -9.5, -8.5, -6.0], dtype)
        (g,) = autograd.grad(aten.ops.log_ndtr(x).sum(), x, create_graph=True)
        expected = [
            -0.9999999900000006,
            -0.9895951797788887,
            -0.9871923088077279,
            -0.9760123632108332,
        ]
        assert close(autograd.grad(g.sum(), x)[0], expected, exact)


def test_a_norm_of_the_largest_has_gradients_beside_nan():
    x = leaf([[1.0, NAN, 2.0], [1.0, 3.0, 3.0]])
    (g,) = autograd.grad(aten.ops.linalg_vector_norm(x, INF, 1).sum(), x)
    np.testing.assert_array_equal(g.numpy(), [[0, 0, 0], [0, 0.5, 0.5]])


def test_mantissas_of_the_largest_have_gradients():
    for dtype, x, power in (
        ("float16", [40000.0, 3.0], -16),
        ("float32", [3e38, 3.0], -128),
        ("float64", [1e308, 3.0], -1024),
    ):
        x = leaf(x).detach().to(getattr(argand_c10, dtype)).requires_grad_()
        aten.frexp(x)[0].sum().backward()
        assert x.grad.tolist() == [2.0**power, 0.25]


def test_gradients_have_the_dtype_that_a_leaf_has_now():
    """An older graph, which keeps the leaf's accumulator alive, was made for another dtype and shape."""
    x = leaf([1.0, 2.0], argand_c10.float32)
    older = x * 2
    x.data = argand_c10.tensor([1.0, 2.0, 3.0], dtype=argand_c10.float64)
    (x * 3).sum().backward()
    assert x.grad.dtype is argand_c10.float64 and x.grad.tolist() == [3, 3, 3]
    assert older.grad_fn is not None


def test_edges_stand_for_tensors():
    x = leaf([0.0, 1.0, 2.0])
    y = x * 2
    z = (y * y).sum()
    edge_of = autograd.graph.get_gradient_edge
    inside, out = edge_of(y), edge_of(z)
    assert inside.node is y.grad_fn and inside.output_nr == 0 and edge_of(x).node.variable is x
    del y
    found = autograd.grad(out, [inside, x], retain_graph=True)
    assert close(found[0], [0, 4, 8]) and close(found[1], [0, 8, 16])
    autograd.backward(out, inputs=[edge_of(x)], retain_graph=True)
    assert close(x.grad, [0, 8, 16])
    z.backward(inputs=edge_of(x), retain_graph=True)
    assert close(x.grad, [0, 16, 32])
    batched = autograd.grad(inside, x, aten.eye(3), is_grads_batched=True, retain_graph=True)
    assert close(batched[0], 2 * np.eye(3))


def test_errors_of_edges():
    x, other = leaf([1.0, 2.0]), leaf([1.0])
    y = x * 2
    graph = autograd.graph
    edge = graph.get_gradient_edge(y)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(aten.ones(2))
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        autograd.grad(edge, x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        autograd.grad(edge, x, aten.ones(3))
    with pytest.raises(RuntimeError, match="which takes 1"):
        autograd.grad(graph.GradientEdge(edge.node, 3), x, aten.ones(2))
    with pytest.raises(RuntimeError, match="materialize_grads"):
        autograd.grad(
            y.sum(), graph.get_gradient_edge(other), materialize_grads=True, retain_graph=True
        )
    with pytest.raises(TypeError, match="Tensor"):
        autograd.grad(y.sum(), [edge.node])


def test_a_version_is_incremented():
    x = leaf([1.0, 2.0])
    y = x.exp()
    autograd.graph.increment_version([y, y])
    assert y._version == 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
