"""Custom Functions."""

from __future__ import annotations

import gc
import weakref

import pytest
from helpers import close, leaf

import argand_autograd as autograd
import argand_c10
from argand_autograd import Function, once_differentiable


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        assert not autograd.is_grad_enabled()
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Exp(Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[0] * grad


class Scale(Function):
    """The style with setup_context; an argument that is no tensor."""

    @staticmethod
    def forward(x, factor=2.0):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


def test_values_and_second_order():
    x = leaf([1.0, 2.0])
    y = Square.apply(x)
    assert y.grad_fn.name() == "SquareBackward" and close(y, [1, 4])
    (g,) = autograd.grad(y.sum(), x, create_graph=True)
    (g2,) = autograd.grad(g.sum(), x)
    assert close(g, [2, 4]) and close(g2, [2, 2])
    assert autograd.gradcheck(Square.apply, x) and autograd.gradgradcheck(Square.apply, x)
    assert autograd.gradcheck(Exp.apply, x) and autograd.gradgradcheck(Exp.apply, x)


def test_setup_context_and_defaults():
    x = leaf([1.0, 2.0])
    (g,) = autograd.grad(Scale.apply(x).sum(), x)
    assert close(g, [2, 2])
    (g,) = autograd.grad(Scale.apply(x, factor=5.0).sum(), x)
    assert close(g, [5, 5])
    (g,) = autograd.grad(Scale.apply(x, 7.0).sum(), x)
    assert close(g, [7, 7])


def test_without_gradients_nothing_is_recorded():
    assert not Square.apply(argand_c10.tensor([1.0])).requires_grad
    with autograd.no_grad():
        assert not Square.apply(leaf([1.0])).requires_grad


def test_several_arguments_and_results():
    class F(Function):
        @staticmethod
        def forward(ctx, x, name, y):
            ctx.save_for_backward(x, y)
            ctx.needed = ctx.needs_input_grad
            return x * y, name, (x > 1)

        @staticmethod
        def backward(ctx, grad, *others):
            x, y = ctx.saved_tensors
            assert ctx.needed == (True, False, False) == ctx.needs_input_grad
            assert others[0] is None
            return grad * y, None, None

    x, y = leaf([1.0, 2.0]), argand_c10.tensor([3.0, 4.0], dtype=argand_c10.float64)
    product, name, mask = F.apply(x, "name", y)
    assert name == "name" and not mask.requires_grad and product.requires_grad
    product.sum().backward()
    assert close(x.grad, [3, 4])


def test_materialized_and_undefined_gradients():
    seen = []

    class Two(Function):
        materialize = True

        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return a if b is None else a + 2 * b, None

    x = leaf([1.0])
    for materialize in (True, False):
        Two.apply(x, materialize)[0].sum().backward()
    assert seen == [(False, False), (False, True)]
    assert close(x.grad, [2])


def test_mark_dirty():
    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = leaf([1.0, 2.0])
    y = x * 2
    z = AddOne.apply(y)
    assert z is y
    y.sum().backward()
    assert close(x.grad, [20, 20])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        AddOne.apply(x)
    w = x * 2
    AddOne.apply(w[:1])
    (g,) = autograd.grad(w.sum(), x)
    assert close(g, [20, 2])


def test_non_differentiable_results():
    class Top(Function):
        @staticmethod
        def forward(ctx, x):
            other = x * 0.5
            ctx.mark_non_differentiable(other)
            return x * 2, other

        @staticmethod
        def backward(ctx, grad, _):
            return grad * 2

    y, other = Top.apply(leaf([1.0]))
    assert y.requires_grad and not other.requires_grad


def test_argument_returned_as_it_is():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = leaf([1.0])
    y = Identity.apply(x)
    assert y is not x and x.is_leaf
    y.sum().backward()
    assert close(x.grad, [3])
    z = Identity.apply(x * 2)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        z.mul_(2)


def test_errors():
    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError, match="got no forward"):
        Empty.apply(leaf([1.0]))

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad

    x, y = leaf([1.0]), leaf([2.0])
    with pytest.raises(
        RuntimeError,
        match=r"WrongBackward returned an incorrect number of gradients \(expected 2, got 1\)",
    ):
        Wrong.apply(x, y).sum().backward()

    class NotATensor(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return "grad", grad

    with pytest.raises(TypeError, match="returned str at position 1, expected Tensor or None"):
        NotATensor.apply(x, 3).sum().backward()

    class ForConstant(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    with pytest.raises(RuntimeError, match="gradient different from None at position 2"):
        ForConstant.apply(x, 3).sum().backward()

    class WrongShape(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return argand_c10.tensor([1.0, 2.0, 3.0], dtype=argand_c10.float64)

    with pytest.raises(
        RuntimeError,
        match=r"invalid gradient at index 0 - got \[3\] but expected shape compatible with \[2\]",
    ):
        WrongShape.apply(leaf([1.0, 2.0])).sum().backward()

    class SavesNumbers(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_backward: got int at position 1"):
        SavesNumbers.apply(x)
    with pytest.raises(
        NotImplementedError, match="expected the subclass to define the static method backward"
    ):

        class NoBackward(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

        NoBackward.apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="functions are not instantiated"):
        Square()
    with pytest.raises(ZeroDivisionError):

        class Raises(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                1 / 0  # noqa: B018

        Raises.apply(x).sum().backward()


def test_saved_tensors_are_checked_and_freed():
    x = leaf([1.0, 2.0])
    y = x * 1
    z = Square.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = Square.apply(x)
    z.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        z.grad_fn.saved_tensors  # noqa: B018


def test_once_differentiable():
    class Raw(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not autograd.is_grad_enabled()
            return 2 * ctx.saved_tensors[0] * grad

    x = leaf([3.0])
    (g,) = autograd.grad(Raw.apply(x).sum(), x)
    assert close(g, [6])
    (g,) = autograd.grad(Raw.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_results_do_not_keep_themselves():
    x = leaf([1.0])
    y = Exp.apply(x)
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


def test_node_gives_access_to_the_context():
    y = Scale.apply(leaf([1.0]), 4.0)
    assert y.grad_fn.factor == 4.0
    with pytest.raises(AttributeError):
        y.grad_fn.unknown  # noqa: B018


def test_gradient_barrier():
    x, y = leaf([1.0]), leaf([2.0])
    seen = []

    def on_backward(grads):
        seen.append(tuple(g is not None for g in grads))
        return tuple(None if g is None else g * 2 for g in grads)

    a, b = autograd.function.gradient_barrier(on_backward, (x, y))
    (a * 3).sum().backward()
    assert seen == [(True, False)] and close(x.grad, [6]) and y.grad is None


def test_old_name_of_saved_tensors():
    class Old(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            with pytest.warns(DeprecationWarning, match="saved_tensors"):
                (x,) = ctx.saved_variables
            return 2 * x * grad

    x = leaf([3.0])
    Old.apply(x).sum().backward()
    assert close(x.grad, [6.0])


def test_save_for_forward_keeps_nothing():
    class Product(Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(inputs[0], None)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y, grad * x

        @staticmethod
        def jvp(ctx, x, y):
            raise AssertionError("derivatives along a direction are made of backward")

    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    autograd.backward(Product.apply(x, y).sum())
    assert (x.grad.tolist(), y.grad.tolist()) == ([3.0, 4.0], [1.0, 2.0])
    along = autograd.func.jvp(Product.apply, (x.detach(), y.detach()), (y.detach(), x.detach()))[1]
    assert along.tolist() == [10.0, 20.0]
