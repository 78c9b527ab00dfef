"""Histories: in-place changes, views, detach, versions, modes."""

from __future__ import annotations

import copy
import pickle

import pytest
from helpers import close, leaf

import argand_aten as aten
import argand_autograd as autograd
import argand_c10


def test_attributes():
    x = leaf([1.0, 2.0])
    y = x * x
    assert x.is_leaf and x.requires_grad and x.grad_fn is None
    assert (
        not y.is_leaf
        and y.requires_grad
        and y.grad_fn.name() == "MulBackward0"
        and y.output_nr == 0
    )
    assert y.grad_fn is y.grad_fn
    ((accumulate, nr), _) = y.grad_fn.next_functions
    assert accumulate.name() == "AccumulateGrad" and nr == 0
    assert accumulate.variable is x and not hasattr(y.grad_fn, "variable")
    assert "grad_fn=<MulBackward0>" in repr(y) and "requires_grad=True" in repr(x)
    y.grad_fn.metadata["key"] = 1
    assert y.grad_fn.metadata == {"key": 1}


def test_names_of_nodes():
    """Overloads are numbered as PyTorch numbers them; a letter after a digit is a capital."""
    x = leaf([[1.0, 2.0]])
    names = {
        "SumBackward0": x.sum(),
        "SumBackward1": x.sum(0),
        "MeanBackward0": x.mean(),
        "MeanBackward1": x.mean(1, True),
        "MaxBackward0": x.max(1)[0],
        "MaxBackward1": x.max(),
        "ProdBackward1": x.prod(0),
        "SqueezeBackward0": x.squeeze(),
        "SqueezeBackward1": x.squeeze(0),
        "PowBackward0": x.square(),
        "PowBackward1": x**x,
        "ClampBackward1": x.clamp(0, 1),
        "Log1PBackward0": x.log1p(),
        "MmBackward0": aten.linear(x, x),
        "AddmmBackward0": aten.linear(x, x, x[0, :1]),
        "AdaptiveAvgPool2DBackward0": aten.adaptive_avg_pool2d(x[None], 1),
    }
    assert {name: y.grad_fn.name() for name, y in names.items()} == {name: name for name in names}


def test_gradient_of_places_that_are_seen_twice():
    for dtype in (argand_c10.float32, argand_c10.complex64):
        x = aten.zeros(3, 6, dtype=dtype)[:, ::2].detach().requires_grad_()
        seen = aten.as_strided(x, (2, 2), (2, 2), 0)  # x[0, 1] in both rows
        aten.real((seen * aten.tensor([[1.0, 2.0], [3.0, 4.0]])).sum()).backward()
        assert x.grad.tolist() == [[1, 5, 4], [0, 0, 0], [0, 0, 0]]


def test_grad_attribute():
    x = leaf([1.0, 2.0])
    x.grad = argand_c10.tensor([1.0, 1.0], dtype=argand_c10.float64)
    x.sum().backward()
    assert close(x.grad, [2, 2])
    x.grad = None
    assert x.grad is None
    with pytest.raises(RuntimeError, match="different size"):
        x.grad = argand_c10.tensor([1.0], dtype=argand_c10.float64)
    with pytest.raises(RuntimeError, match="different type"):
        x.grad = argand_c10.tensor([1.0, 2.0])
    with pytest.raises(TypeError, match="Tensor or None but got grad of type float"):
        x.grad = 1.0
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x
    with pytest.warns(UserWarning, match="not a leaf"):
        assert (x * 2).grad is None


def test_in_place_on_values():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = x * y
    z.mul_(y)
    z += x
    z.sum().backward()
    assert close(x.grad, [10, 17]) and close(y.grad, [6, 16])
    square = x * 1
    square.mul_(square)
    (g,) = autograd.grad(square.sum(), x)
    assert close(g, [2, 4])


def test_in_place_on_leaves_is_refused():
    x = leaf([1.0, 2.0])
    with pytest.raises(
        RuntimeError,
        match=r"^\w+: a leaf Variable that requires grad is being used in an in-place operation; do it inside no_grad",
    ):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0] = 3.0
    with autograd.no_grad():
        x.add_(1)
        x[0] = 7.0
    assert close(x, [7, 3]) and x.is_leaf and x.requires_grad


def test_a_plain_tensor_gets_a_history_in_place():
    x, y = argand_c10.tensor([1.0, 2.0, 3.0], dtype=argand_c10.float64), leaf([5.0])
    other = x[1:]
    x[0] = y[0] * 2
    assert x.requires_grad and not x.is_leaf
    x.sum().backward()
    assert close(y.grad, [2])
    assert other.requires_grad


def test_in_place_through_views():
    x, w = leaf([1.0, 2.0, 3.0, 4.0]), leaf([10.0, 20.0])
    y = x * x
    early = y[1:]
    y[2:].mul_(w)
    assert y.grad_fn.name() == "CopySlices"
    gx, gw = autograd.grad((y * y).sum(), [x, w], create_graph=True)
    assert close(gx, [4, 32, 10800, 102400]) and close(gw, [1620, 10240])
    (second,) = autograd.grad(gw.sum(), x, retain_graph=True)
    assert close(second, [0, 0, 2160, 10240])
    gx, gw = autograd.grad(early.sum(), [x, w])
    assert close(gx, [0, 4, 60, 160]) and close(gw, [9, 16])


def test_views_follow_their_base():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    v = y.view(3, 1)
    y.mul_(x)
    (g,) = autograd.grad(v.sum(), x)
    assert close(g, [2, 4, 6])


def test_in_place_on_transposed_and_selected_views():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    y.t()[0].mul_(3)
    y.select(0, 1).exp_()
    (g,) = autograd.grad(y.sum(), x)
    e = [argand_c10.tensor(v, dtype=argand_c10.float64).exp().item() for v in (9.0, 4.0)]
    assert close(g, [[3, 1], [3 * e[0], e[1]]])


def test_fill_and_copy():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = x * 2
    z.copy_(y)
    gx, gy = autograd.grad(z.sum(), [x, y], allow_unused=True)
    assert gx is None or close(gx, [0, 0])
    assert close(gy, [1, 1])
    z = x * 2
    z[0] = 5.0
    (g,) = autograd.grad(z.sum(), x)
    assert close(g, [0, 2])
    z = x * 2
    z.zero_()
    (g,) = autograd.grad((z + x).sum(), x)
    assert close(g, [1, 1])


def test_version_errors():
    x = leaf([1.0, 2.0])
    y = x * x
    z = y * y
    y.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[Double \[2\]\], which is output 0 of AddBackward0, is at version 1; expected version 0",
    ):
        z.sum().backward()
    e = x.exp()
    e.mul_(2)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        e.sum().backward()
    with autograd.no_grad():
        w = leaf([1.0])
        factor = argand_c10.tensor([3.0], dtype=argand_c10.float64)
    out = w * factor
    factor.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_set_is_a_change():
    """Though the version of the memory that a tensor looks at from then on may be the saved one."""
    x, factor, other = leaf([1.0, 2.0]), leaf([3.0, 4.0]).detach(), leaf([5.0, 6.0]).detach()
    y = x * factor
    factor.set_(other)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*set_"):
        y.sum().backward()
    z = x * other
    factor.set_(other)  # no change of `other`
    factor.data = other * 2
    z.sum().backward()
    assert close(x.grad, [5.0, 6.0])
    with pytest.raises(RuntimeError, match="set_: a leaf Variable that requires grad"):
        x.set_(other)
    with autograd.no_grad():
        x.set_(other)
    assert x.is_leaf and x.requires_grad and close(x.detach(), [5.0, 6.0])
    for result in ((x * 2).set_(factor), factor.set_(x)):
        with pytest.raises(NotImplementedError, match="set_: the derivative"):
            result.sum().backward()


def test_unneeded_data_is_not_saved():
    x, constant = leaf([1.0]), argand_c10.tensor([2.0], dtype=argand_c10.float64)
    y = x * constant  # only the constant is read in backward
    with autograd.no_grad():
        x.add_(1)
    y.sum().backward()
    assert close(x.grad, [2])


def test_joining_keeps_only_the_lengths_of_its_tensors():
    x = leaf([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    y = aten.mul(x, 1)
    joined = aten.cat([y, aten.stack([y, y])[0]], 1)
    with autograd.no_grad():
        y.zero_()
    joined.sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_detach():
    x = leaf([1.0, 2.0])
    y = x * x
    d = y.detach()
    assert not d.requires_grad and d.is_leaf and d.data_ptr() == y.data_ptr()
    d.add_(1)
    assert y._version == 1
    y.detach_()
    assert y.is_leaf and not y.requires_grad
    plain = argand_c10.tensor([1.0, 2.0], dtype=argand_c10.float64)
    other = plain.detach()
    plain.mul_(x)
    assert plain.requires_grad and not other.requires_grad
    with pytest.raises(RuntimeError, match="expected a tensor that is no view"):
        (x * x)[:1].detach_()


def test_no_grad():
    x = leaf([1.0, 2.0])
    with autograd.no_grad():
        assert not autograd.is_grad_enabled()
        y = x * 2
        v = x[:1]
        with autograd.enable_grad():
            assert (x * 2).requires_grad
        with autograd.set_grad_enabled(True):
            assert (x * 2).requires_grad
    assert autograd.is_grad_enabled()
    assert not y.requires_grad and not v.requires_grad and v.is_leaf
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        v.mul_(2)

    @autograd.no_grad()
    def decorated(t):
        return t * 2

    @autograd.no_grad
    def bare(t):
        return t * 2

    assert not decorated(x).requires_grad and not bare(x).requires_grad
    autograd.set_grad_enabled(False)
    assert not autograd.is_grad_enabled()
    autograd.set_grad_enabled(True)


def test_views_of_no_grad_do_not_lose_gradients():
    x = leaf([1.0, 2.0])
    for change_a_view in (False, True):
        base = x * 1
        with autograd.no_grad():
            view, seen = base[:1], base[1:]
            base.mul_(2)
            assert not view.requires_grad  # the change is in no history
        (base[:1] if change_a_view else base).mul_(2)
        assert view.requires_grad and "grad_fn=<Invalid>" in repr(view)
        assert view.tolist() == [4.0] and close(seen.detach(), [4.0 if change_a_view else 8.0])
        with autograd.no_grad():
            assert (view * 3).tolist() == [12.0]
        for use in (lambda v: v * 3, lambda v: v.grad_fn, lambda v: v[0]):
            with pytest.raises(
                RuntimeError, match="its base or another view of its base has been modified inplace"
            ):
                use(view)
    base = argand_c10.tensor([1.0, 1.0], dtype=argand_c10.float64)
    with autograd.no_grad():
        view = base[:1]
    base.mul_(x)  # had no history when the view was made: the view follows
    view.sum().backward()
    assert close(x.grad, [1.0, 0.0])


def test_modes_are_left_on_errors():
    with pytest.raises(ZeroDivisionError), autograd.no_grad():
        1 / 0  # noqa: B018
    assert autograd.is_grad_enabled()


def test_decorated_generators():
    @autograd.no_grad()
    def generator():
        seen = []
        while True:
            seen.append(autograd.is_grad_enabled())
            try:
                if (yield len(seen)) == "stop":
                    return seen
            except ValueError:
                seen.append("caught")

    g = generator()
    assert next(g) == 1 and autograd.is_grad_enabled()
    assert g.throw(ValueError()) == 3
    with pytest.raises(StopIteration) as stopped:
        g.send("stop")
    assert stopped.value.value == [False, "caught", False]
    assert autograd.is_grad_enabled()


def test_inference_mode():
    x = leaf([1.0, 2.0])
    with autograd.inference_mode():
        assert autograd.is_inference_mode_enabled() and not autograd.is_grad_enabled()
        y = x * 2
        with autograd.inference_mode(False):
            assert not autograd.is_inference_mode_enabled() and (x * 2).requires_grad
    assert not autograd.is_inference_mode_enabled() and autograd.is_grad_enabled()
    assert y.is_inference() and not y.requires_grad and not x.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="inference tensor outside"):
        y.requires_grad_()
    assert (x + y).requires_grad  # saves nothing
    clone = y.clone()
    assert (x * clone).requires_grad

    @autograd.inference_mode()
    def decorated(t):
        return t * 2

    assert decorated(x).is_inference()


def test_lists_of_results():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    first, second = x.unbind(0)
    (first * second * second).sum().backward()
    assert close(x.grad, [[9, 16], [6, 16]])
    x.grad = None
    joined = aten.cat([first.detach(), second * 2])
    joined.sum().backward()
    assert close(x.grad, [[0, 0], [2, 2]])


def test_indexing():
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    index = argand_c10.tensor([0, 0, 2])
    (g,) = autograd.grad(x[:, index].sum(), x)
    assert close(g, [[2, 0, 1], [2, 0, 1]])
    (g,) = autograd.grad(x[x > 2.5].sum(), x)
    assert close(g, [[0, 0, 1], [1, 1, 1]])
    y = x * 1
    y[0, index[1:]] = x[1, 0] * 2  # columns 0 and 2 of row 0
    (g,) = autograd.grad(y.sum(), x)
    assert close(g, [[0, 1, 0], [5, 1, 1]])


def test_one_element_fills_where_a_mask_holds():
    """A value of one element takes part in its own dtype beside one mask and views, and only there."""
    x, mask = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), argand_c10.tensor([True, False, True])
    value = argand_c10.tensor([[7.0]], dtype=argand_c10.float32, requires_grad=True)
    y = x * 1
    y[1, mask] = value
    gx, gv = autograd.grad(y.sum(), [x, value])
    assert close(y, [[1, 2, 3], [7, 5, 7]]) and close(gx, [[1, 1, 1], [0, 1, 0]])
    assert gv.dtype is argand_c10.float32 and close(gv, [[2]])
    z = aten.index_put(x, [argand_c10.tensor([False, True])], argand_c10.tensor([3]))
    assert close(z, [[1, 2, 3], [3, 3, 3]])
    for index in (argand_c10.tensor([0]), (argand_c10.tensor([True, False]), mask[:1].long())):
        with pytest.raises(RuntimeError, match="expected the same dtype"):
            y[index] = value


def test_copies_and_histories():
    x = leaf([1.0, 2.0])
    y = x * 2
    for other in (copy.copy(y), pickle.loads(pickle.dumps(y))):
        assert other.is_leaf and other.requires_grad and close(other, [2, 4])
    with pytest.raises(RuntimeError, match="deepcopy protocol"):
        copy.deepcopy(y)
    parameter = argand_c10.Parameter(x)
    for tensor, kept in ((x, True), (parameter, False)):
        tensor.grad = aten.ones(2, dtype=tensor.dtype)
        assert (copy.deepcopy(tensor).grad is not None) == kept


def test_complex_gradients():
    z = argand_c10.tensor([1 + 2j, 3 - 1j], dtype=argand_c10.complex128, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert close(z.grad.real, [2, 6]) and close(z.grad.imag, [4, -2])
    y = z * 1
    aten.view_as_real(y)[0].mul_(3)
    (g,) = autograd.grad(aten.view_as_real(y).sum(), z)
    assert close(g.real, [3, 1]) and close(g.imag, [3, 1])


def test_real_leaf_in_a_complex_product():
    x = leaf([2.0])
    z = argand_c10.tensor([1 + 2j], dtype=argand_c10.complex128)
    (x * z).real.sum().backward()
    assert x.grad.dtype == argand_c10.float64 and close(x.grad, [1])


def test_parameters():
    p = argand_c10.Parameter(argand_c10.tensor([1.0, 2.0]))
    assert p.requires_grad and p.is_leaf
    (p * 3).sum().backward()
    assert close(p.grad, [3, 3])
    frozen = argand_c10.Parameter(argand_c10.tensor([1.0]), requires_grad=False)
    assert not (frozen * 2).requires_grad


def test_functions_keep_their_argument_where_it_tells_the_gradient():
    """So that what they give may be changed in place."""
    for function in (aten.logit, aten.erfinv):
        x, y = leaf([0.25, 0.5]), leaf([0.25, 0.5])
        function(x).mul_(2.0).sum().backward()
        (function(y) * 2.0).sum().backward()
        assert close(x.grad, y.grad.tolist())


def test_powers_by_a_number_keep_their_base_alone():
    """So that what they give may be changed in place."""
    x = leaf([2.0, 3.0])
    (x**2).mul_(2.0).sum().backward()
    assert x.grad.tolist() == [8.0, 12.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (2.0**x).add_(1.0).sum().backward()
