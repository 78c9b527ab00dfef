"""Autocast on the CPU: dtypes by policy, regions, the weight cache, custom functions."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest

import argand_aten as aten
from argand_autograd import (
    Function,
    autocast,
    checkpoint,
    get_autocast_dtype,
    grad,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    no_grad,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from argand_autograd.amp import custom_bwd, custom_fwd
from argand_c10 import Tensor, bfloat16, float16, float32, float64, tensor


def _matrix(seed: int = 0, dtype: Any = float32, requires_grad: bool = False) -> Tensor:
    values = [((i * 37 + seed * 11) % 19) / 7.0 - 1.0 for i in range(16)]
    made = aten.tensor(values, dtype=dtype).reshape(4, 4).clone()
    return made.requires_grad_() if requires_grad else made


@pytest.mark.parametrize("dtype", [bfloat16, float16])
def test_policies(dtype: Any) -> None:
    x = _matrix()
    with autocast("cpu", dtype=dtype):
        y = aten.mm(x, x)
        assert y.dtype is dtype  # lower
        assert (y + 1).dtype is dtype  # no policy: as it is
        assert aten.mse_loss(y, y).dtype is float32  # float32
        assert aten.mv(x, x[0]).dtype is float32  # "none" reaches into the composite's body
        assert aten.mm(x.to(float64), x.to(float64)).dtype is float64  # never cast
    assert aten.mm(x, x).dtype is float32


def test_values_are_those_of_the_casts() -> None:
    x, w = _matrix(1), _matrix(2)
    with autocast("cpu"):
        got = aten.linear(x, w, w[0])
    want = aten.linear(x.to(bfloat16), w.to(bfloat16), w[0].to(bfloat16))
    assert aten.equal(got, want)


def test_cross_entropy_is_computed_in_float32() -> None:
    scores = tensor([[1.0, 0.333], [0.1, 2.7]], dtype=bfloat16)
    target = tensor([0, 1])
    with autocast("cpu", dtype=bfloat16):
        found = aten.cross_entropy_loss(scores, target)
    assert found.item() == aten.cross_entropy_loss(scores.float(), target).item()


def test_lists_and_promotion_leave_other_devices_and_integers() -> None:
    x = _matrix()
    with autocast("cuda"):
        assert aten.mm(x, x).dtype is float32  # the region is about CUDA tensors
    with autocast("cpu"):
        assert aten.cat([x, x.to(bfloat16)]).dtype is float32
        assert aten.sum(aten.ones(3).long()).dtype is aten.ones(1).long().dtype


def test_out_and_in_place_forms_are_left() -> None:
    x, out = _matrix(), aten.empty(4, 4)
    with autocast("cpu"):
        aten.mm(x, x, out=out)
        y = x.clone()
        y.mul_(2)
    assert out.dtype is float32 and aten.equal(out, aten.mm(x, x)) and y.dtype is float32


def test_regions_nest_and_end() -> None:
    x = _matrix()
    with autocast("cpu", dtype=bfloat16):
        with autocast("cpu", enabled=False):
            assert not is_autocast_enabled("cpu")
            assert aten.mm(x, x).dtype is float32
            with autocast("cpu", dtype=float16):
                assert aten.mm(x, x).dtype is float16
                assert get_autocast_dtype("cpu") is float16
        assert aten.mm(x, x).dtype is bfloat16 and get_autocast_dtype("cpu") is bfloat16
    assert not is_autocast_enabled("cpu")
    with pytest.raises(ZeroDivisionError), autocast("cpu"):
        raise ZeroDivisionError
    assert not is_autocast_enabled("cpu")


def test_decorator_and_reuse() -> None:
    region = autocast("cpu")
    x = _matrix()

    @region
    def run() -> Any:
        return aten.mm(x, x).dtype

    assert run() is bfloat16 and aten.mm(x, x).dtype is float32
    for _ in range(2):
        with region:
            assert aten.mm(x, x).dtype is bfloat16


def test_settings() -> None:
    assert get_autocast_dtype("cpu") is bfloat16 and get_autocast_dtype("cuda") is float16
    set_autocast_dtype("cpu", float16)
    try:
        set_autocast_enabled("cpu", True)
        assert aten.mm(_matrix(), _matrix()).dtype is float16
    finally:
        set_autocast_enabled("cpu", False)
        set_autocast_dtype("cpu", bfloat16)
    assert is_autocast_cache_enabled()
    with autocast("cpu", cache_enabled=False):
        assert not is_autocast_cache_enabled()
    assert is_autocast_cache_enabled()
    set_autocast_cache_enabled(True)
    assert is_autocast_available("cuda") and not is_autocast_available("toaster")


def test_errors() -> None:
    with pytest.raises(RuntimeError, match="toaster"):
        autocast("toaster")
    with pytest.raises(ValueError, match="expected a string"):
        autocast(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected float16, bfloat16 or float32"):
        set_autocast_dtype("cpu", float64)
    with pytest.warns(UserWarning, match="casts nothing"):
        region = autocast("cpu", dtype=float64)
    with region:
        assert aten.mm(_matrix(), _matrix()).dtype is float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        autocast("cpu", dtype=float16)


def test_a_region_counts_for_its_thread() -> None:
    seen = []
    with autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(aten.mm(_matrix(), _matrix()).dtype))
        thread.start()
        thread.join()
    assert seen == [float32]


def test_gradients_have_the_weights_dtype() -> None:
    w = _matrix(requires_grad=True)
    x = _matrix(3)
    with autocast("cpu"):
        y = aten.mm(aten.mm(x, w), w)
    y.float().sum().backward()
    assert w.grad is not None and w.grad.dtype is float32
    half = w.detach().to(bfloat16).requires_grad_()
    z = aten.mm(aten.mm(x.to(bfloat16), half), half)
    z.float().sum().backward()
    assert aten.equal(w.grad, half.grad.float())  # one cast: the gradients are summed in bfloat16


def test_the_cache_keeps_one_cast_a_weight() -> None:
    w, x = _matrix(requires_grad=True), _matrix(3)

    def casts(**options: Any) -> int:
        with autocast("cpu", **options):
            first, second = aten.mm(x, w), aten.mm(x, w)
        nodes = [
            next(n for n, _ in y.grad_fn.next_functions if n is not None) for y in (first, second)
        ]
        return 1 if nodes[0] is nodes[1] else 2

    assert casts() == 1
    assert casts(cache_enabled=False) == 2


def test_the_cache_sees_changes_and_recording() -> None:
    w, x = _matrix(requires_grad=True), _matrix(3)
    with autocast("cpu"):
        with no_grad():
            silent = aten.mm(x, w)
        recorded = aten.mm(x, w)
        assert not silent.requires_grad and recorded.requires_grad
        (g,) = grad(recorded.float().sum(), [w])
        assert g.dtype is float32
        with no_grad():
            w.zero_()
        assert float(aten.mm(x, w).float().abs().sum()) == 0.0


def test_custom_function() -> None:
    seen: list[Any] = []

    class Product(Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=float32)
        def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
            seen.append((a.dtype, is_autocast_enabled("cpu")))
            ctx.save_for_backward(a, b)
            return aten.mm(a, b)

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
            a, b = ctx.saved_tensors
            seen.append(is_autocast_enabled("cpu"))
            return aten.mm(g, b.t()), aten.mm(a.t(), g)

    a = _matrix(dtype=bfloat16).requires_grad_()
    with autocast("cpu"):
        y = Product.apply(a, _matrix(1))
    assert y.dtype is float32
    y.sum().backward()
    assert seen == [(float32, False), False] and a.grad.dtype is bfloat16
    Product.apply(_matrix(requires_grad=True), _matrix(1))  # outside of regions nothing is cast
    assert seen[-1] == (float32, False)


def test_custom_function_in_the_regions_dtype() -> None:
    class Product(Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx: Any, a: Tensor) -> Tensor:
            ctx.save_for_backward(a)
            return aten.mm(a, a)

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (a,) = ctx.saved_tensors
            product = aten.mm(g, a.t())
            assert product.dtype is bfloat16
            return product.float()

    a = _matrix(requires_grad=True)
    with autocast("cpu"):
        y = Product.apply(a)
    assert y.dtype is bfloat16
    y.sum().backward()
    assert a.grad.dtype is float32


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_are_computed_again_with_the_same_casts(use_reentrant: bool) -> None:
    seen: list[Any] = []
    w = _matrix(requires_grad=True)

    def part(x: Tensor) -> Tensor:
        y = aten.mm(x, w)
        seen.append(y.dtype)
        return y * y

    x = _matrix(1).requires_grad_()
    with autocast("cpu"):
        total = checkpoint(part, x, use_reentrant=use_reentrant).float().sum()
    total.backward()
    assert seen == [bfloat16, bfloat16] and not is_autocast_enabled("cpu")


def test_nothing_is_cast_on_devices_that_are_not_here() -> None:
    assert not any(is_autocast_enabled(kind) for kind in ("cuda", "mps", "xpu", "hpu"))
    with pytest.raises(RuntimeError, match="nothing"):
        is_autocast_enabled("nothing")


def test_learned_slopes_are_multiplied_in_the_regions_dtype() -> None:
    with autocast("cpu"):
        assert aten.prelu(_matrix(), aten.ones(1)).dtype is bfloat16


def test_subclasses_decorate() -> None:
    class Region(autocast):
        def __init__(self, dtype: Any = bfloat16) -> None:
            super().__init__("cpu", dtype)

    def product(x: Tensor) -> Any:
        return aten.mm(x, x).dtype

    decorated = Region(float16)(product)
    assert [decorated(_matrix()), decorated(_matrix()), product(_matrix())] == [
        float16,
        float16,
        float32,
    ]
