"""Losses against closed forms in NumPy, and their error texts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
import argand_nn.functional as F
from argand_autograd import no_grad
from argand_nn.functional.linear_loss import rows_of_chunk

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5)).astype(np.float32)
Y = RNG.standard_normal((6, 5)).astype(np.float32)
CLASSES = np.array([0, 2, 1, 4, 3, 2])
WEIGHT = np.float32([0.5, 1.0, 2.0, 0.1, 0.7])


def tensor(array):
    return aten.tensor(np.asarray(array).tolist())


def log_softmax(x):
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def close(ours, expected, rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=rtol, atol=atol)


D = np.abs(X - Y)
P = 1 / (1 + np.exp(-X))
T = 1 / (1 + np.exp(-Y))
SIGNS = np.sign(Y)
ELEMENTWISE = {
    "MSELoss": (X, Y, (X - Y) ** 2),
    "L1Loss": (X, Y, D),
    "SmoothL1Loss": (X, Y, np.where(D < 1, D * D / 2, D - 0.5)),
    "HuberLoss": (X, Y, np.where(D <= 1, D * D / 2, D - 0.5)),
    "BCELoss": (P, T, -(T * np.log(P) + (1 - T) * np.log(1 - P))),
    "BCEWithLogitsLoss": (X, T, -(T * np.log(P) + (1 - T) * np.log(1 - P))),
    "KLDivLoss": (X, T, T * (np.log(T) - X)),
    "HingeEmbeddingLoss": (X, SIGNS, np.where(SIGNS == 1, X, np.maximum(0, 1 - X))),
    "SoftMarginLoss": (X, SIGNS, np.log1p(np.exp(-SIGNS * X))),
    "PoissonNLLLoss": (X, T, np.exp(X) - T * X),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_elementwise(name, reduction):
    x, y, expected = ELEMENTWISE[name]
    if reduction != "none":
        expected = getattr(expected, reduction)()
    close(getattr(nn, name)(reduction=reduction)(tensor(x), tensor(y)), expected, 1e-4, 1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("ignored", [-100, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(reduction, ignored, weighted, smoothing):
    log_probs = log_softmax(X.astype(np.float64))
    weight = WEIGHT.astype(np.float64) if weighted else np.ones(5)
    own = weight[CLASSES] * (CLASSES != ignored)
    picked = -log_probs[np.arange(6), CLASSES] * own
    even = -(log_probs * weight).sum(1) * (CLASSES != ignored) / 5
    loss = (1 - smoothing) * picked + smoothing * even
    expected = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / own.sum()}[reduction]
    ours = F.cross_entropy(
        tensor(X),
        tensor(CLASSES),
        tensor(WEIGHT) if weighted else None,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=smoothing,
    )
    close(ours, expected, 1e-4, 1e-5)
    if smoothing == 0.0:
        module = nn.NLLLoss(
            tensor(WEIGHT) if weighted else None, ignore_index=ignored, reduction=reduction
        )
        close(module(tensor(log_probs), tensor(CLASSES)), expected, 1e-4, 1e-5)


def test_cross_entropy_shapes():
    maps = RNG.standard_normal((2, 4, 3, 3)).astype(np.float32)
    target = RNG.integers(0, 4, (2, 3, 3))
    rows = maps.transpose(0, 2, 3, 1).reshape(-1, 4)
    expected = -log_softmax(rows)[np.arange(18), target.reshape(-1)]
    close(F.cross_entropy(tensor(maps), tensor(target)), expected.mean(), 1e-4)
    none = F.cross_entropy(tensor(maps), tensor(target), reduction="none")
    close(none, expected.reshape(2, 3, 3), 1e-4, 1e-5)
    single = F.cross_entropy(tensor(X[0]), aten.tensor(3))
    close(single, -log_softmax(X)[0, 3], 1e-4)
    probabilities = np.exp(log_softmax(Y))
    expected = -(log_softmax(X) * probabilities).sum(1)
    close(F.cross_entropy(tensor(X), tensor(probabilities)), expected.mean(), 1e-4)


def test_cross_entropy_gradient():
    x = tensor(X).requires_grad_()
    F.cross_entropy(x, tensor(CLASSES)).backward()
    expected = np.exp(log_softmax(X)) - np.eye(5)[CLASSES]
    close(x.grad, expected / 6, 1e-4, 1e-6)


def test_extreme_values():
    zero_one = aten.tensor([0.0, 1.0])
    close(F.binary_cross_entropy(zero_one, 1 - zero_one, reduction="none"), [100.0, 100.0])
    huge = aten.tensor([-500.0, 500.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(huge, aten.tensor([1.0, 0.0]), reduction="none")
    close(loss, [500.0, 500.0])
    loss.sum().backward()
    close(huge.grad, [-1.0, 1.0])
    close(F.kl_div(aten.tensor([-1.0]), aten.tensor([0.0])), 0.0)


def test_weights_and_reductions():
    w = np.abs(Y)
    close(F.mse_loss(tensor(X), tensor(Y), weight=tensor(w)), (w * D**2).sum() / w.sum(), 1e-4)
    close(F.l1_loss(tensor(X), tensor(Y), weight=tensor(w)), (w * D).sum() / w.sum(), 1e-4)
    ours = F.binary_cross_entropy_with_logits(tensor(X), tensor(T), pos_weight=aten.tensor(3.0))
    expected = -(3 * T * np.log(P) + (1 - T) * np.log(1 - P)).mean()
    close(ours, expected, 1e-4)
    batch = F.kl_div(tensor(X), tensor(T), reduction="batchmean")
    close(batch, (T * (np.log(T) - X)).sum() / 6, 1e-4)


def test_margins_of_nan_count_nothing():
    x = aten.tensor([[1.0, float("nan"), 0.5]]).requires_grad_()
    F.multi_margin_loss(x, aten.tensor([0])).backward()
    np.testing.assert_allclose(x.grad.tolist(), [[-1 / 3, 0, 1 / 3]], rtol=1e-6)
    x.grad = None
    F.multilabel_margin_loss(x, aten.tensor([[0, -1, 1]])).backward()
    np.testing.assert_allclose(x.grad.tolist(), [[-1 / 3, 0, 1 / 3]], rtol=1e-6)


def test_losses_of_pairs():
    near = np.linalg.norm(X - Y + 1e-6, axis=1)
    far = np.linalg.norm(X - X[::-1] + 1e-6, axis=1)
    ours = F.triplet_margin_loss(tensor(X), tensor(Y), tensor(X[::-1].copy()))
    close(ours, np.maximum(near - far + 1, 0).mean(), 1e-4)
    cosine = (X * Y).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1)
    sign = np.float32([1, -1, 1, -1, 1, -1])
    expected = np.where(sign == 1, 1 - cosine, np.maximum(cosine, 0)).mean()
    close(F.cosine_embedding_loss(tensor(X), tensor(Y), tensor(sign)), expected, 1e-4)
    with pytest.raises(RuntimeError, match="a row of targets"):
        F.cosine_embedding_loss(tensor(X[0]), tensor(Y[0]), tensor(sign))
    expected = np.maximum(-sign * (X[:, 0] - Y[:, 0]) + 0.5, 0).mean()
    ours = F.margin_ranking_loss(tensor(X[:, 0]), tensor(Y[:, 0]), tensor(sign), 0.5)
    close(ours, expected, 1e-4)
    expected = 0.5 * (np.log(T) + (X - Y) ** 2 / T).mean()
    close(F.gaussian_nll_loss(tensor(X), tensor(Y), tensor(T)), expected, 1e-4)
    with pytest.raises(ValueError, match="negative variance"):
        F.gaussian_nll_loss(tensor(X), tensor(Y), -1.0)


def margins(x, y, p, margin, weight):
    rows = [
        sum(max(0.0, margin - row[t] + v) ** p for c, v in enumerate(row) if c != t) * weight[t]
        for row, t in zip(x, y, strict=True)
    ]
    return np.array(rows) / x.shape[1]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margins(reduction):
    reduce = {"none": lambda v: v, "mean": np.mean, "sum": np.sum}[reduction]
    for p, weight in ((1, None), (2, WEIGHT)):
        loss = nn.MultiMarginLoss(
            p, 0.7, None if weight is None else tensor(weight), reduction=reduction
        )
        expected = margins(X, CLASSES, p, 0.7, np.ones(5) if weight is None else weight)
        close(loss(tensor(X), tensor(CLASSES)), reduce(expected))
    labels = np.array([[3, 0, -1, 1, 2], [-1] * 5, [4, 2, 1, 0, 3], [1, -1, 1, -1, 1], [0, 1, -1, 0, 0],
                       [2, 2, -1, 3, 3]])  # fmt: skip
    rows = []
    for row, label in zip(X, labels, strict=True):
        end = list(label).index(-1) if -1 in label else 5
        others = [c for c in range(5) if c not in label[:end]]
        rows.append(sum(max(0.0, 1 - row[t] + row[c]) for t in label[:end] for c in others) / 5)
    loss = nn.MultiLabelMarginLoss(reduction=reduction)
    close(loss(tensor(X), tensor(labels)), reduce(np.array(rows)))
    expected = -(T * np.log(P) + (1 - T) * np.log(1 - P)) * WEIGHT
    loss = nn.MultiLabelSoftMarginLoss(tensor(WEIGHT), reduction=reduction)
    close(loss(tensor(X), tensor(T)), reduce(expected.mean(1)))


def test_margins_that_are_just_kept_have_no_gradient():
    x = tensor(np.float32([[2.0, 1.0, 1.5]])).requires_grad_(True)
    F.multi_margin_loss(x, aten.tensor([0])).backward()
    close(x.grad, np.float32([[-1, 0, 1]]) / 3, 1e-6)
    x.grad = None
    F.multilabel_margin_loss(x, aten.tensor([[0, -1, 0]])).backward()
    close(x.grad, np.float32([[-1, 0, 1]]) / 3, 1e-6)


def test_triplets_with_a_distance():
    def distance(a, b):
        return (a - b).abs().amax(-1)

    d = [np.abs(a - b).max(-1) for a, b in ((X, Y), (X, T), (Y, T))]
    loss = nn.TripletMarginWithDistanceLoss(distance_function=distance, margin=0.5, swap=True)
    expected = np.maximum(d[0] - np.minimum(d[1], d[2]) + 0.5, 0).mean()
    close(loss(tensor(X), tensor(Y), tensor(T)), expected)
    with pytest.raises(ValueError, match="got margin 0, expected a positive one"):
        nn.TripletMarginWithDistanceLoss(margin=0)


def test_linear_cross_entropy():
    loss = nn.LinearCrossEntropyLoss(5, 4, out_features=(2,), bias=True, ignore_index=3)
    target = np.array([[0, 3], [1, 2], [3, 3], [2, 0], [1, 1], [0, 2]])
    scores = X @ loss.linear.weight.detach().numpy().T + loss.linear.bias.detach().numpy()
    logs = np.log(np.exp(scores.reshape(6, 4, 2)) / np.exp(scores.reshape(6, 4, 2)).sum(1)[:, None])
    chosen = [logs[i, t, j] for i, row in enumerate(target) for j, t in enumerate(row) if t != 3]
    close(loss(tensor(X), tensor(target)), -np.mean(chosen))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("rows", [1, 2, 4, 9])
def test_linear_cross_entropy_in_chunks(reduction, rows):
    """The same losses and gradients, of scores of no more than `rows` rows at a time."""
    settings = {"weight": tensor(WEIGHT), "ignore_index": 2, "reduction": reduction}
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=rows)
    found = []
    for chunks in (None, options):
        x, weight, bias = (tensor(v).requires_grad_() for v in (X, Y[:5], Y[5]))
        loss = F.linear_cross_entropy(
            x, weight, tensor(CLASSES), linear_bias=bias, options=chunks, **settings
        )
        aten.sum(loss * loss).backward()
        found.append([loss.detach(), x.grad, weight.grad, bias.grad])
    for plain, chunked in zip(*found, strict=True):
        close(chunked, plain.numpy())


def test_rows_of_a_chunk():
    options = nn.LinearCrossEntropyOptions
    assert rows_of_chunk(options(batch_chunk_size=3), 10, 4, 100) == 3
    assert rows_of_chunk(options(chunking_method=None), 10, 4, 100) == 10
    # Scores (32, 1024) are as many numbers as the input (1024, 32).
    assert rows_of_chunk(options(), 1024, 32, 1024) == 32
    assert rows_of_chunk(options(chunking_method="aspect_ratio:2"), 1024, 32, 1024) == 64
    with pytest.raises(ValueError, match="got chunking_method 'best'"):
        rows_of_chunk(options(chunking_method="best"), 8, 8, 8)


def test_adaptive_softmax_is_a_distribution():
    module = nn.AdaptiveLogSoftmaxWithLoss(5, 9, [2, 5], div_value=2.0, head_bias=True)
    logs = module.log_prob(tensor(X)).detach().numpy()
    np.testing.assert_allclose(np.exp(logs).sum(1), np.ones(6), rtol=1e-5)
    target = np.array([8, 0, 3, 4, 1, 5])
    output, loss = module(tensor(X), tensor(target))
    close(output, logs[np.arange(6), target])
    close(loss, -logs[np.arange(6), target].mean())
    assert module.predict(tensor(X)).tolist() == logs.argmax(1).tolist()
    loss.backward()
    assert all(abs(p.grad.numpy()).max() > 0 for p in module.parameters())
    with pytest.raises(RuntimeError, match="got targets from 0 to 9, expected class numbers"):
        module(tensor(X), tensor(np.array([0, 9, 1, 1, 1, 1])))
    with pytest.raises(ValueError, match=r"got cutoffs \[5, 2\]"):
        nn.AdaptiveLogSoftmaxWithLoss(5, 9, [5, 2])


def test_deprecated_reductions():
    squares = (X - Y) ** 2
    for average, reduce, expected in (
        (True, None, squares.mean()),
        (False, None, squares.sum()),
        (0, None, squares.sum()),
        (None, False, squares),
        (1, 0, squares),
    ):
        with pytest.warns(UserWarning, match="size_average and reduce are deprecated"):
            close(F.mse_loss(tensor(X), tensor(Y), average, reduce), expected)
        with pytest.warns(UserWarning, match="deprecated"):
            close(nn.MSELoss(average, reduce)(tensor(X), tensor(Y)), expected)


def test_errors():
    with pytest.raises(ValueError, match="reduction 'avg'"):
        F.mse_loss(tensor(X), tensor(X), reduction="avg")
    with pytest.raises(ValueError, match="MSELoss: got reduction 'avg'"):
        nn.MSELoss(reduction="avg")
    with pytest.raises(ValueError, match=r"cross_entropy: got input of shape \[6, 5\] and target"):
        F.cross_entropy(tensor(X), tensor(CLASSES[:5]))
    with pytest.raises(RuntimeError, match="label_smoothing 2"):
        F.cross_entropy(tensor(X), tensor(CLASSES), label_smoothing=2)
    with pytest.raises(RuntimeError, match="beta -1"):
        F.smooth_l1_loss(tensor(X), tensor(Y), beta=-1)
    for loss in (F.mse_loss, F.l1_loss, F.huber_loss):
        with pytest.raises(ValueError, match=r"got weight of shape \[6, 1\]"):
            loss(tensor(X), tensor(Y), weight=aten.ones(6, 1))
    with pytest.raises(ValueError, match="expected equal shapes"):
        F.binary_cross_entropy(tensor(P), tensor(T[:1]))
    with pytest.raises(RuntimeError, match="delta 0"):
        F.huber_loss(tensor(X), tensor(Y), delta=0)
    with pytest.warns(UserWarning, match="broadcast"):
        F.mse_loss(tensor(X), tensor(Y[:1]))


def test_kl_div_warns_of_the_mean_over_elements():
    x, p = tensor(X), tensor(P)
    with pytest.warns(UserWarning, match="'batchmean' divides only by the batch size"):
        F.kl_div(x, p)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for reduction in ("batchmean", "sum", "none"):
            F.kl_div(x, p, reduction=reduction)


def test_targets_and_settings_that_do_not_fit():
    x, classes = tensor(X), tensor(CLASSES)
    for target, options, error in [
        (tensor(Y[:, 0]), {}, "got a target of dtype"),
        (classes.int(), {}, "got a target of dtype"),
        (aten.zeros([6, 5], dtype=classes.dtype), {}, "in the shape of the input"),
        (tensor(T), {"ignore_index": 1}, "got ignore_index 1 and probabilities"),
    ]:
        with pytest.raises(RuntimeError, match=error):
            F.cross_entropy(x, target, **options)
    with pytest.raises(RuntimeError, match="got a target of dtype"):
        F.nll_loss(x, classes.int())
    for make in (lambda: nn.HuberLoss(delta=1j), lambda: F.huber_loss(x, x, delta=1j)):
        with pytest.raises(TypeError, match="got delta of type complex"):
            make()
    for options in ({"weight": aten.ones(3)}, {"label_smoothing": 2.0}):
        with pytest.raises(RuntimeError, match="LinearCrossEntropyLoss: got"):
            nn.LinearCrossEntropyLoss(3, 2, **options)


def test_kl_div_of_targets_that_are_no_probabilities():
    loss = F.kl_div(tensor([-1.0, -1.0, 2.0]), tensor([0.0, -0.5, 0.5]), reduction="none")
    np.testing.assert_allclose(loss.numpy(), [0.0, np.nan, 0.5 * np.log(0.5) - 1.0], rtol=1e-6)


def test_stirlings_term_of_counts_below_zero():
    loss = F.poisson_nll_loss(tensor([0.0, 0.0]), tensor([0.0, 2.0]), full=True, reduction="none")
    np.testing.assert_allclose(loss.numpy(), [1.0, 1 + np.log(4) - 2 + np.log(4 * np.pi) / 2], 1e-6)
    target = tensor([-0.5, -2.0]).requires_grad_()
    loss = F.poisson_nll_loss(target.detach(), target, full=True, reduction="none")
    np.testing.assert_allclose(loss.detach().numpy(), np.exp([-0.5, -2.0]) - [0.25, 4.0], 1e-6)
    loss.sum().backward()
    assert target.grad.isnan().all()  # 0 times the gradient of its logarithm


def test_hinges_of_integers_are_integers():
    x, target = aten.tensor([2, -2, -2]), aten.tensor([1, 1, -1])
    loss = F.hinge_embedding_loss(x, target, 1.5, reduction="none")
    assert loss.dtype == c10.int64 and loss.tolist() == [2, -2, 3]
    with pytest.raises(RuntimeError, match="mean"):
        F.hinge_embedding_loss(x, target)


def test_probabilities_have_the_dtype_of_the_targets():
    with pytest.raises(RuntimeError, match="Found dtype float64 but expected float32"):
        F.binary_cross_entropy(aten.ones(2), aten.ones(2, dtype=c10.float64))


def test_weights_have_the_dtype_of_the_input():
    weight = aten.ones(5, dtype=c10.float64)
    for x, classes in ((X, CLASSES), (X[:0], CLASSES[:0])):
        classes = aten.tensor(classes.tolist(), dtype=c10.int64)
        with pytest.raises(RuntimeError, match="a weight of dtype"):
            F.nll_loss(tensor(x).reshape(-1, 5), classes, weight)


def test_losses_of_mixed_dtypes():
    x, double = tensor([0.5, 2.0]), aten.tensor([1.0, 0.5], dtype=c10.float64)
    assert F.mse_loss(x, double[0]).dtype == c10.float64  # a broadcast tensor's dtype counts
    assert F.mse_loss(x, double > 0.7, reduction="none").tolist() == [0.25, 4.0]
    assert F.huber_loss(x, double).dtype == c10.float32
    assert F.soft_margin_loss(x, double).dtype == c10.float32
    assert F.binary_cross_entropy_with_logits(x, double).dtype == c10.float64
    assert F.binary_cross_entropy_with_logits(double, x).dtype == c10.float32
    whole = aten.tensor([1, 2])
    for loss in (F.huber_loss, F.soft_margin_loss):
        with pytest.raises(RuntimeError, match="float"):
            loss(whole, x)
    with pytest.raises(RuntimeError, match="cast"):
        F.binary_cross_entropy_with_logits(x, whole)
    with pytest.raises(NotImplementedError, match="mse_loss"):
        F.mse_loss(whole, whole, reduction="none")


def test_losses_of_nothing():
    nothing = aten.zeros(0, 3)
    assert F.cross_entropy(nothing, nothing).isnan()
    assert F.cross_entropy(nothing, nothing, reduction="sum").tolist() == 0
    images, classes = aten.zeros(2, 0, 1, 0), aten.zeros(2, 1, 0, dtype=c10.int64)
    assert F.cross_entropy(images, classes, reduction="none").shape == (2, 1, 0)


def test_weights_have_no_gradient():
    x, classes = aten.full([2, 3], 0.5), aten.tensor([0, 2])
    weight = aten.ones(3, requires_grad=True)
    calls = [
        lambda: F.nll_loss(x, classes, weight),
        lambda: F.cross_entropy(x, classes, weight),
        lambda: F.multi_margin_loss(x, classes, weight=weight),
        lambda: F.binary_cross_entropy(x, x, weight),
        lambda: F.binary_cross_entropy_with_logits(x, x, weight),
        lambda: F.binary_cross_entropy_with_logits(x, x, pos_weight=weight),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="weight that requires a gradient"):
            call()
        with no_grad():
            assert call().numel() == 1
    assert F.cross_entropy(x, x, weight).requires_grad
