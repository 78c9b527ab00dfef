"""softmax, normalisation, losses, attention and the embedding's gradient on an emulated CUDA device against the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10

emulated.start()

RNG = np.random.default_rng(0)
TOLERANCE = {"float64": 1e-12, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
DTYPES = ["float32", "bfloat16", "float64"]


def tensor(*shape: int, dtype: str = "float32", scale: float = 1.0) -> Any:
    return aten.tensor(RNG.standard_normal(shape) * scale).to(getattr(c10, dtype))


def indices(*shape: int, limit: int) -> Any:
    return aten.tensor(RNG.integers(0, limit, shape))


def to_device(x: Any) -> Any:
    return x.to("cuda") if isinstance(x, c10.Tensor) else x


def as_numpy(x: Any) -> np.ndarray:
    return x.to("cpu").to(c10.float64).numpy()


def agree(function: Callable[..., Any], *args: Any, tolerance: float | None = None) -> Any:
    """The function gives the same on both devices; returns the CPU's results."""
    moved = [to_device(a) for a in args]
    expected, got = function(*args), function(*moved)
    emulated.check()
    pairs = (
        [(expected, got)]
        if isinstance(expected, c10.Tensor)
        else list(zip(expected, got, strict=True))
    )
    for a, b in pairs:
        if a is None:
            assert b is None
            continue
        assert a.shape == b.shape and a.dtype == b.dtype and str(b.device).startswith("cuda")
        x, y = as_numpy(a), as_numpy(b)
        finite = np.abs(x[np.isfinite(x)])
        limit = (tolerance or TOLERANCE[str(args[0].dtype).split(".")[-1]]) * max(
            1.0, finite.max(initial=0)
        )
        np.testing.assert_allclose(y, x, rtol=0, atol=limit)
    for a, b in zip(args, moved, strict=True):  # and changes its arguments in the same way
        if isinstance(a, c10.Tensor):
            np.testing.assert_allclose(as_numpy(b), as_numpy(a), rtol=1e-6, atol=1e-6)
    return expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "dim"), [((5, 7), 1), ((3, 80), -1), ((2, 9, 5), 1), ((1, 9001), 1), ((6,), 0), ((0, 4), 1), ((), 0)]
)  # fmt: skip
def test_softmax(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    x, grad = tensor(*shape, dtype=dtype, scale=3), tensor(*shape, dtype=dtype)
    for name in ("softmax", "log_softmax"):
        y = agree(lambda x, name=name: getattr(aten, name)(x, dim), x)
        backward = getattr(aten, name + "_backward")
        agree(lambda g, y, backward=backward: backward(g, y, dim, g.dtype), grad, y)


@pytest.mark.parametrize("shape", [(1, (1 << 31) - 10), (1, 1, 1 << 31)])
def test_softmax_refuses_rows_that_do_not_fit_32_bits(shape: tuple[int, ...]) -> None:
    driver = ctypes.CDLL(emulated.DRIVER)
    driver.fakeCapacity(ctypes.c_size_t(16 << 30))  # of memory that nobody touches
    try:
        x = aten.empty(list(shape), dtype=c10.float16, device="cuda")
        with pytest.raises(RuntimeError, match=r"expected less than 2\^31 - 2\^15"):
            aten.softmax(x, 1)
    finally:
        driver.fakeCapacity(ctypes.c_size_t(4 << 30))


def test_softmax_converts_and_takes_strided_input() -> None:
    agree(
        lambda x: aten.softmax(x.transpose(0, 1), 1, c10.float32),
        tensor(6, 8, dtype="bfloat16"),
        tolerance=1e-5,
    )
    agree(lambda x: aten.softmax(x[:, 1:], 1), tensor(4, 33))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "n"), [(7, 5), (3, 64), (2, 1101), (0, 8)])
def test_layer_and_rms_norm(rows: int, n: int, dtype: str) -> None:
    x, grad = tensor(rows, n, dtype=dtype), tensor(rows, n, dtype=dtype)
    w, b = tensor(n, dtype=dtype), tensor(n, dtype=dtype)
    _, mean, rstd = agree(lambda x, w, b: aten.ops.native_layer_norm(x, [n], w, b, 1e-5), x, w, b)
    agree(
        lambda g, x, m, r, w, b: aten.native_layer_norm_backward(g, x, [n], m, r, w, b, [True, True, True]), grad, x, mean, rstd, w, b
    )  # fmt: skip
    _, rrms = agree(lambda x, w: aten.fused_rms_norm(x, [n], w, 1e-5), x, w)
    agree(
        lambda g, x, r, w: aten.fused_rms_norm_backward(g, x, [n], r, w, [True, True]), grad, x, rrms, w
    )  # fmt: skip


def test_layer_norm_of_mixed_dtypes_and_without_weights() -> None:
    x, w, b = tensor(5, 48, dtype="bfloat16"), tensor(48), tensor(48)
    agree(lambda x, w, b: aten.ops.native_layer_norm(x, [48], w, b, 1e-5), x, w, b)
    _, mean, rstd = agree(lambda x: aten.ops.native_layer_norm(x, [48], None, None, 1e-5), x)
    agree(
        lambda g, x, m, r: aten.native_layer_norm_backward(g, x, [48], m, r, None, None, [True, False, False]), x, x, mean, rstd
    )  # fmt: skip
    agree(
        lambda g, x, m, r, w: aten.native_layer_norm_backward(g, x, [48], m, r, w, None, [False, True, False]), x, x, mean, rstd, w
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_group_norm(dtype: str) -> None:
    x, grad = tensor(2, 6, 4, 4, dtype=dtype), tensor(2, 6, 4, 4, dtype=dtype)
    w, b = tensor(6, dtype=dtype), tensor(6, dtype=dtype)
    _, mean, rstd = agree(
        lambda x, w, b: aten.ops.native_group_norm(x, w, b, 2, 6, 16, 3, 1e-5), x, w, b
    )
    agree(
        lambda g, x, m, r, w: aten.native_group_norm_backward(g, x, m, r, w, 2, 6, 16, 3, [True, True, True]), grad, x, mean, rstd, w
    )  # fmt: skip


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(4, 6, 3, 3), (40, 37), (2, 3, 90)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_batch_norm(dtype: str, shape: tuple[int, ...], training: bool) -> None:
    x, grad, channels = tensor(*shape, dtype=dtype), tensor(*shape, dtype=dtype), shape[1]
    w, b = tensor(channels, dtype=dtype), tensor(channels, dtype=dtype)
    running = tensor(channels), aten.abs(tensor(channels)) + 0.5
    _, mean, rstd = agree(
        lambda x, w, b, m, v: aten.ops.native_batch_norm(x, w, b, m, v, training, 0.1, 1e-5), x, w, b, *running
    )  # fmt: skip
    agree(
        lambda g, x, w, m, v, sm, sr: aten.native_batch_norm_backward(g, x, w, m, v, sm, sr, training, 1e-5, [True, True, True]),
        grad, x, w, *running, mean if training else None, rstd if training else None,
    )  # fmt: skip
    agree(lambda x, w, b, m, v: aten.native_batch_norm_functional(x, w, b, m, v, training, 0.1, 1e-5), x, w, b, *running)  # fmt: skip


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nll_loss(dtype: str, reduction: int) -> None:
    x, y = tensor(30, 9, dtype=dtype), indices(30, limit=9)
    weight = aten.abs(tensor(9, dtype=dtype)) + 0.1
    for w in (None, weight):
        out, total = agree(lambda x, y, w: aten.nll_loss_forward(x, y, w, reduction, 4), x, y, w)
        agree(
            lambda g, x, y, w, t: aten.nll_loss_backward(g, x, y, w, reduction, 4, t), aten.ones_like(out), x, y, w, total
        )  # fmt: skip


def test_nll_loss_of_rows_with_gaps() -> None:
    x, y = tensor(30, 16), indices(30, limit=9)
    agree(lambda x, y: aten.nll_loss_forward(aten.slice(x, 1, 2, 11), y, None, 0, 4)[0], x, y)
    one = indices(limit=9)
    agree(lambda x, y: aten.nll_loss_forward(aten.select(x, 1, 3), y, None, 2, -100)[0], x, one)


def test_a_bad_class_is_an_error_when_the_device_is_waited_for() -> None:
    x, y = tensor(3, 5).to("cuda"), aten.tensor([1, 7, 2]).to("cuda")
    out, _ = aten.nll_loss_forward(x, y, None, 1, -100)
    emulated.check()
    with pytest.raises(
        IndexError, match="nll_loss: index 7 is out of bounds for dimension 1 with size 5"
    ):
        out.to("cpu")


@pytest.mark.parametrize("by_count", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_embedding_backward(dtype: str, by_count: bool) -> None:
    grad, index = tensor(2, 5, 7, dtype=dtype), indices(2, 5, limit=6)
    agree(lambda g, i: aten.embedding_backward(g, i, 8, 2, by_count), grad, index)
    agree(lambda g, i: aten.embedding_backward(g, i, 8, -1, by_count), grad[:0], index[:0])


@pytest.mark.parametrize("width", [48, 50, 300, 320])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_embedding_bag(dtype: str, width: int) -> None:
    """Bags of no rows, of one, and of more than a program takes at a time."""
    weight, index = tensor(7, width, dtype=dtype), indices(21, limit=7)
    begins = aten.tensor([0, 0, 1, 1, 10, 21])
    for mode in (0, 1):
        agree(lambda w, i, o, m=mode: aten.embedding_bag(w, i, o, mode=m)[0], weight, index, begins)
    agree(lambda w, i, o: aten.embedding_bag(w, i, o)[0], weight, index[:0], begins[:2])


ATTENTION = [
    # batch, heads, heads of key and value, queries, keys, width, width of value, causal, mask
    (2, 2, 2, 20, 33, 16, 16, False, None),
    (1, 4, 2, 70, 70, 16, 16, True, None),
    (1, 2, 1, 9, 40, 20, 12, True, "bool"),
    (1, 2, 2, 5, 7, 4, 4, False, "float"),
]


@pytest.mark.parametrize("case", ATTENTION, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_attention(dtype: str, case: tuple[Any, ...]) -> None:
    batch, heads, kv_heads, queries, keys, width, v_width, causal, kind = case
    q = tensor(batch, queries, heads, width, dtype=dtype).transpose(1, 2)
    k, v = (tensor(batch, keys, kv_heads, w, dtype=dtype).transpose(1, 2) for w in (width, v_width))
    mask = {
        "bool": aten.tensor(RNG.random((queries, keys)) > 0.3), "float": tensor(heads, 1, keys), None: None
    }[kind]  # fmt: skip
    out, lse = agree(lambda q, k, v, m: aten.attention(q, k, v, m, causal, 0.4), q, k, v, mask)
    if keys:
        grad = tensor(*out.shape, dtype=dtype)
        agree(
            lambda g, q, k, v, m, o, s: aten.attention_backward(g, q, k, v, m, o, s, causal, 0.4), grad, q, k, v, mask, out, lse
        )  # fmt: skip


def test_attention_to_no_keys_is_zero() -> None:
    q, k = tensor(1, 2, 3, 4).to("cuda"), tensor(1, 2, 0, 4).to("cuda")
    out, lse = aten.attention(q, k, k, None, False, 0.5)
    assert not as_numpy(out).any()
    assert np.isneginf(as_numpy(lse)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 7), (3, 16), (2, 2100), (2, 2048), (1, 1), (0, 4)])
def test_multi_margin(shape: tuple[int, int], dtype: str) -> None:
    x, target = tensor(*shape, dtype=dtype), indices(shape[0], limit=shape[1])
    if x.numel() > 9:
        x[1, 3] = np.nan  # counts nothing
    for p, margin in ((1, 1.0), (2, 0.3)):
        agree(
            lambda x, t, p=p, m=margin: aten.ops._multi_margin(x, t, p, m),
            x,
            target,
            tolerance=1e-5,
        )
    wide = tensor(shape[0], 2 * shape[1], dtype=dtype)
    agree(lambda x, t: aten.ops._multi_margin(x[:, ::2], t, 1, 1.0), wide, target, tolerance=1e-5)
    agree(
        lambda x, t: aten.ops._multi_margin(x[:, : shape[1]], t, 1, 1.0),
        wide,
        target,
        tolerance=1e-5,
    )


def test_multi_margin_names_a_target_that_is_no_class() -> None:
    x, target = tensor(3, 4).to("cuda"), aten.tensor([0, 4, 1]).to("cuda")
    loss = aten.ops._multi_margin(x, target, 1, 1.0)
    with pytest.raises(
        RuntimeError,
        match="multi_margin_loss: index 4 is out of bounds for dimension 1 with size 4",
    ):
        loss.to("cpu")


def _lengths(*n: int) -> Any:
    return aten.tensor(np.array(n, "int64"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    ("targets", "inputs", "lengths"),
    [((3, 4), (9, 6, 0), (4, 2, 0)), ((3, 4), (9, 2, 1), (3, 4, 0)), ((7,), (9, 8, 5), (4, 0, 3)), ((3, 0), (9, 0, 4), (0, 0, 0)), ((3, 20), (9, 9, 9), (3, 4, 4))],
)  # fmt: skip
def test_ctc_loss(
    targets: tuple[int, ...], inputs: tuple[int, ...], lengths: tuple[int, ...], dtype: str
) -> None:
    """Targets in rows and in one, repeated labels, none, and too many for the steps."""
    x = aten.log_softmax(tensor(9, 3, 5), -1).to(getattr(c10, dtype))
    labels = indices(*targets, limit=3) + 1
    grad = tensor(3, dtype=dtype)
    for zero in (False, True):
        agree(
            lambda *a, z=zero: aten.ops._ctc_loss(*a, 0, z),
            x,
            labels,
            _lengths(*inputs),
            _lengths(*lengths),
        )
        agree(
            lambda *a, z=zero: aten.ops._ctc_loss_backward(*a, 0, z),
            grad,
            x,
            labels,
            _lengths(*inputs),
            _lengths(*lengths),
        )


@pytest.mark.parametrize(
    ("label", "inputs", "lengths", "message"),
    [(5, 4, 2, "index 5 is out of bounds for dimension 2 with size 5"), (1, 6, 2, "index 6 is out of bounds for dimension 0 with size 6"),
     (1, 4, 3, "index 3 is out of bounds for dimension 1 with size 3")],
)  # fmt: skip
def test_ctc_loss_names_what_is_out_of_range(
    label: int, inputs: int, lengths: int, message: str
) -> None:
    x = aten.log_softmax(tensor(5, 1, 5), -1).to("cuda")
    loss = aten.ops._ctc_loss(
        x, aten.tensor([[1, label]]).to("cuda"), _lengths(inputs).to("cuda"), _lengths(lengths).to("cuda"), 0, False
    )  # fmt: skip
    with pytest.raises((IndexError, RuntimeError), match="ctc_loss: " + message):
        loss.to("cpu")
