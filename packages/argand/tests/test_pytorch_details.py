"""Small matters in which PyTorch 2.13 has its own rules: each call gives the dtype, the values or the kind of error that were recorded from it."""

import numpy as np
import pytest

import argand as torch
import argand.nn.functional as F
from argand import inf, nan, tensor

U8 = torch.uint8
RESULTS = [
    (lambda: torch.div(tensor([-3.0, 7.1, -22.7]).bfloat16(), tensor(0.1).bfloat16(), rounding_mode="trunc"), torch.bfloat16, [-29.0, 70.0, -227.0]),
    (lambda: torch.div(tensor([-3.0, 7.1, -22.7]).bfloat16(), tensor([0.1]), rounding_mode="trunc"), torch.float32, [-30.0, 70.0, -227.0]),
    (lambda: torch.div(tensor([9.3, 7.1]).half(), tensor(0.1), rounding_mode="trunc"), torch.float16, [92.0, 71.0]),
    (lambda: torch.nansum(tensor([1, 2]), dtype=torch.complex64), torch.complex64, 3 + 0j),
    (lambda: torch.any(tensor([1, 0], dtype=U8)), U8, 1),
    (lambda: torch.all(tensor([[1, 0]], dtype=U8), dim=1), U8, [0]),
    (lambda: tensor([[1, 0]], dtype=U8).all(dim=(0, 1)), U8, 0),
    (lambda: torch.any(tensor([1, 0], dtype=torch.int8)), torch.bool, True),
    (lambda: torch.any(tensor([[1, 0], [0, 0]]), dim=[]), torch.bool, [[True, False], [False, False]]),
    (lambda: torch.all(tensor([[1, 0], [0, 0]]), dim=(), keepdim=True), torch.bool, [[True, False], [False, False]]),
    (lambda: torch.any(tensor([[1, 0], [0, 0]], dtype=U8), dim=()), U8, [[1, 0], [0, 0]]),
    (lambda: torch.lerp(tensor([1 + 1j, 2.0]), tensor([3 + 1j, 4.0]), 0.25 + 1j), torch.complex64, [1.5 + 3j, 2.5 + 2j]),
    (lambda: torch.lerp(tensor([1 + 1j, 2.0]), tensor([3 + 1j, 4.0]), tensor([0.25 + 1j, 0.75])), torch.complex64, [1.5 + 3j, 3.5 + 0j]),
    (
        lambda: torch.logcumsumexp(tensor([1 + 1j, 2.0, 3 - 2j]), 0),
        torch.complex64,
        [1 + 1j, 2.2135701179504395 + 0.25271138548851013j, 2.7715988159179688 - 1.539559245109558j],
    ),
    (lambda: torch.nextafter(tensor([1.0, 0.0, -2.0, inf]).bfloat16(), tensor([2.0, 1.0, 0.0, 0.0]).bfloat16()), torch.bfloat16, [1.0078125, 9.183549615799121e-41, -1.9921875, 3.3895313892515355e38]),
    (lambda: torch.nextafter(tensor([1.0, 0.0, -2.0, 0.0]).half(), tensor([2.0, 1.0, 0.0, -1.0]).half()), torch.float16, [1.0009765625, 5.960464477539063e-08, -1.9990234375, -5.960464477539063e-08]),
    (lambda: torch.nextafter(tensor([1.0, -inf]).half(), tensor(1.0).half()), torch.float16, [1.0, -65504.0]),
    (lambda: torch.norm(torch.arange(6.0).reshape(2, 3), "nuc"), torch.float32, 8.348468780517578),
    (lambda: torch.norm(torch.arange(24.0).reshape(2, 3, 4), "nuc", dim=(0, 2)), torch.float32, [29.246044158935547, 38.25351333618164, 48.242427825927734]),
    (lambda: torch.special.laguerre_polynomial_l(tensor([0.3, 1.5]), tensor([1e30, 3.0])), torch.float32, [0.0, -0.6875]),
    (lambda: torch.special.hermite_polynomial_h(tensor([0.3, 1.5]), tensor([1e30, 3.0])), torch.float32, [0.0, 9.0]),
    (lambda: torch.special.legendre_polynomial_p(tensor([0.3]), tensor([1e15])).isnan(), torch.bool, [True]),
    (lambda: 2 ** tensor([-1, 2, -3]), torch.int64, [0, 4, 0]),
    (lambda: torch.pdist(tensor([[inf, 1.0], [inf, 0.2], [0.0, 1.0]]), 0).nan_to_num(-1), torch.float32, [-1.0, 1.0, 2.0]),
    (lambda: torch.func.grad(lambda x: torch.pdist(x, 0).sum())(tensor([[1.0], [2.0]])), torch.float32, [[0.0], [0.0]]),
    (lambda: tensor([2, 1, -1]) ** tensor([-1]), torch.int64, [0, 1, -1]),
    (lambda: tensor([2, 4]) ** -1.0, torch.float32, [0.5, 0.25]),
    (lambda: torch.add(tensor([True]), tensor([True]), alpha=True), torch.bool, [True]),
    (lambda: torch.logdet(tensor([[-1.0, 0.0], [0.0, 1.0]])).isnan(), torch.bool, True),
    (lambda: torch.linspace(tensor(1.0, requires_grad=True), 3, 3), torch.float32, [1.0, 2.0, 3.0]),
    (lambda: torch.linspace(tensor(3.7), tensor(-1.2, dtype=torch.float64), 4, dtype=torch.int32), torch.int32, [3, 1, 0, -1]),
    (lambda: torch.linspace(1j, 3, 3), torch.complex64, [1j, 1.5 + 0.5j, 3 + 0j]),
    (lambda: torch.linspace(tensor(1j), 3, 3), torch.complex64, [1j, 1.5 + 0.5j, 3 + 0j]),
    (lambda: torch.logspace(tensor(1.0, requires_grad=True), 3, 3), torch.float32, [10.0, 100.0, 1000.0]),
    (lambda: torch.logspace(tensor(0.0, requires_grad=True), 3.9, 4, 2, dtype=torch.int64), torch.int64, [1, 2, 4, 8]),
    (lambda: torch.logspace(1j, 3, 3, 2), torch.complex64, [0.7692389 + 0.6389613j, 2.660255 + 0.9607515j, 8 + 0j]),
    (lambda: torch.sort(tensor([3, 1, 2]), stable=None)[1], torch.int64, [1, 2, 0]),
    (lambda: torch.baddbmm(torch.ones(1, 1, 1), torch.ones(1, 1, 2), torch.ones(1, 2, 1), alpha=1 + 0j, beta=2 + 0j), torch.float32, [[[4.0]]]),
    (lambda: torch.addr(torch.ones(1, 1), torch.ones(1), torch.ones(1), alpha=1 + 0j, beta=2 + 0j), torch.float32, [[3.0]]),
    (lambda: torch.func.grad(lambda x: torch.renorm(x, 2, 0, 1.0).sum())(tensor([[nan, 1.0], [0.0, 0.0], [0.1, 0.2]])), torch.float32, [[1.0, 1.0]] * 3),
    (lambda: torch.hann_window(4), torch.float32, [0.0, 0.5, 1.0, 0.5]),
    (lambda: torch.hamming_window(4, periodic=False), torch.float32, [0.08, 0.77, 0.77, 0.08]),
    (lambda: torch.bartlett_window(5), torch.float32, [0.0, 0.4, 0.8, 0.8, 0.4]),
    (lambda: torch.kaiser_window(5, False, 8.0), torch.float32, [0.002338829915970564, 0.36897262930870056, 1.0, 0.36897262930870056, 0.002338829915970564]),
    (lambda: torch.Tensor(data=[1, 2]), torch.float32, [1.0, 2.0]),
    (lambda: torch.Tensor(size=(2, 0)).sum(1), torch.float32, [0.0, 0.0]),
    (lambda: torch.fft.fft(tensor([-1.0, -2.0, 0.5, 0.5])).angle()[0], torch.float32, torch.pi),
    (lambda: torch.fft.fft2(-torch.arange(9.0).reshape(3, 3)).angle()[0, 0], torch.float32, torch.pi),
    (lambda: torch.fft.fftn(tensor([[[1.0, 2.0, 4.0]], [[0.0, -1.0, 3.0]]])).real, torch.float32, [[[9.0, -3.0, -3.0]], [[5.0, -1.0, -1.0]]]),
    (lambda: torch.istft(torch.stft(torch.arange(16.0), 8, window=torch.hann_window(8), return_complex=True), 8, window=torch.hann_window(8))[2:5], torch.float32, [2.0, 3.0, 4.0]),
    (lambda: torch.ldexp(tensor([1e-30, 1.401298464324817e-45, 0.0]), tensor([140, 276, 2000])), torch.float32, [1393796538368.0, 1.7014118346046923e38, 0.0]),
    (lambda: torch.ldexp(tensor([1e38, 3.0]), tensor([-276, -150])), torch.float32, [1.401298464324817e-45, 2.802596928649634e-45]),
    (lambda: torch.ldexp(tensor([1e-300], dtype=torch.float64), tensor([2000])), torch.float64, [1.1481306952742546e302]),
    (lambda: torch.ldexp(tensor([1e-5, 1.0]).half(), tensor([20, -30], dtype=torch.int8)), torch.float16, [10.5, 0.0]),
    (lambda: torch.ldexp(tensor([0.0627, 0.0003626]).half(), tensor([-21, -12])), torch.float16, [2.0**-24, 2.0**-24]),
    (lambda: torch.ldexp(tensor(1j, dtype=torch.complex128), tensor([True, False])), torch.complex128, [2j, 1j]),
    (lambda: torch.ldexp(tensor([1j]), tensor([0.3]).bfloat16()), torch.complex64, [1.231811285018921j]),
    (lambda: torch.nextafter(torch.ones(2).half(), tensor(2.0)), torch.float16, [1.0009765625] * 2),
    (lambda: torch.nextafter(tensor(1.0), torch.zeros(2).bfloat16()), torch.bfloat16, [0.99609375] * 2),
    (lambda: torch.movedim(tensor(1.5), 0, -1), torch.float32, 1.5),
    (lambda: tensor(1.5).moveaxis([0], [0]), torch.float32, 1.5),
    (lambda: tensor(1.5).mT, torch.float32, 1.5),
    (lambda: torch.searchsorted(tensor([1, 2]), tensor([True, False])), torch.int64, [0, 0]),
    (lambda: torch.searchsorted(tensor([False, True]), tensor([1.0, 0.0])), torch.int64, [1, 0]),
    (lambda: torch.searchsorted(tensor([False, True]), 2), torch.int64, 2),
    (lambda: torch.bucketize(1, tensor([False, True])), torch.int64, 1),
    (lambda: torch.bucketize(2.5, tensor([1, 2, 3])), torch.int64, 2),
    (lambda: torch.searchsorted(tensor([1, 2, 3]), 2.5), torch.int64, 2),
    (lambda: torch.searchsorted(tensor([1, 2, 3], dtype=torch.int8), -1.5), torch.int64, 0),
    (lambda: torch.gradient(tensor([[0.0, 1.0, 4.0]]), dim=np.int64(1))[0], torch.float32, [[1.0, 2.0, 3.0]]),
    (lambda: tensor([1 + 1j, 2.0]).scatter_reduce(0, tensor([0, 0, 1]), tensor([1j, 2.0, 1 - 1j]), "sum"), torch.complex64, [3 + 2j, 3 - 1j]),
    (lambda: tensor([1 + 1j, 2.0]).scatter_reduce(0, tensor([0, 0, 1]), tensor([1j, 2.0, 1 - 1j]), "prod"), torch.complex64, [-2 + 2j, 2 - 2j]),
    (lambda: tensor([1 + 1j, 2.0]).scatter_reduce(0, tensor([0, 0]), tensor([1j, 2.0]), "prod", include_self=False), torch.complex64, [2j, 2 + 0j]),
    (lambda: tensor([1 + 1j, 2.0]).scatter_reduce(0, tensor([0, 0]), tensor([1j, 2.0]), "mean"), torch.complex64, [1 + 2j / 3, 2 + 0j]),
    (lambda: tensor([1 + 1j, 2.0]).index_reduce(0, tensor([0, 0]), tensor([1j, 2.0]), "mean", include_self=False), torch.complex64, [1 + 0.5j, 2 + 0j]),
    (lambda: tensor([1 + 1j, 2.0]).scatter(0, tensor([0]), 2j, reduce="multiply"), torch.complex64, [-2 + 2j, 2 + 0j]),
    (lambda: torch.std(tensor([1e30, 0.0])), torch.float32, 7.071067811865476e29),
    (lambda: torch.std(tensor([[1e-30, 0.0], [1e30, 1e30]]), 1), torch.float32, [7.071067811865476e-31, 0.0]),
    (lambda: torch.std_mean(tensor([60000.0, 0.0]).half(), 0)[0], torch.float16, 42432.0),
    (lambda: torch.linalg.vector_norm(tensor([[1e30], [-1e-30], [0.0]]), 3, 1), torch.float32, [1e30, 1e-30, 0.0]),
    (lambda: torch.norm(tensor(-3e38)), torch.float32, 3e38),
    (lambda: torch.linalg.vector_norm(tensor(-3e38), 3, dim=-1), torch.float32, 3e38),
    (lambda: F.pairwise_distance(tensor([[1e30]]), tensor([[0.0]])), torch.float32, [1e30]),
    (lambda: torch.linalg.eigvalsh(tensor([[1.0, nan], [2.0, 3.0]])), torch.float32, [-0.23606797749978969, 4.23606797749979]),
    (lambda: torch.linalg.eigvalsh(tensor([[1.0, 2.0], [inf, 3.0]]), UPLO="U"), torch.float32, [-0.23606797749978969, 4.23606797749979]),
    (lambda: torch.linalg.eigh(tensor([[1.0, 2.0], [nan, 3.0]]))[1].isnan(), torch.bool, [[True, True], [True, True]]),
    (lambda: torch.linalg.eigvalsh(tensor([[inf]])), torch.float32, [inf]),
    (lambda: F.gaussian_nll_loss(tensor([0.0]), tensor([1.0]), tensor([inf])), torch.float32, inf),
    (lambda: torch.round(tensor([1.25, 0.0]), decimals=2**40).isnan(), torch.bool, [True, True]),
]  # fmt: skip
ERRORS = [
    (
        lambda: F.adaptive_avg_pool2d(torch.ones(4, 4), 2),
        RuntimeError,
        "^adaptive_avg_pool2d: Expected 3D or 4D",
    ),
    (
        lambda: F.adaptive_avg_pool2d(torch.ones(1, 1, 1, 4, 4), 2),
        RuntimeError,
        "^adaptive_avg_pool2d: Expected 3D or 4D",
    ),
    (lambda: F.max_pool2d(torch.ones(0, 4, 4), 2), RuntimeError, "^max_pool2d: Expected 3D or 4D"),
    (lambda: F.max_pool1d(torch.ones(4), 2), RuntimeError, "^max_pool1d: Expected"),
    (lambda: F.max_pool3d(torch.ones(4), 2), RuntimeError, "^max_pool3d: Expected"),
    (lambda: F.unfold(torch.ones(4, 4), 2), IndexError, "^unfold: Expected"),
    (lambda: F.unfold(torch.ones(1, 0, 4, 4), 2), RuntimeError, "^unfold: Expected"),
    (lambda: F.unfold(torch.ones(1, 4, 4), 5), RuntimeError, "^unfold: Given input"),
    (lambda: F.fold(torch.ones(4), 4, 2), RuntimeError, "^fold: Expected"),
    (lambda: F.fold(torch.ones(1, 4, 0), 4, 2), RuntimeError, "^fold: Expected"),
    (lambda: F.nll_loss(torch.ones(1, 2), tensor([2])), IndexError, "^nll_loss: Target 2"),
    (
        lambda: F.nll_loss(torch.ones(1, 2), tensor([1]), torch.ones(3)),
        RuntimeError,
        "^nll_loss: weight",
    ),
    (lambda: torch.linspace(0, 1, 3, dtype=torch.bool), NotImplementedError, "bool"),
    (lambda: torch.logspace(0, 1, 3, dtype=torch.bool), NotImplementedError, "bool"),
    (
        lambda: torch.nanmean(torch.ones(3), dtype=torch.bool),
        RuntimeError,
        "^nanmean: got dtype=bool",
    ),
    (
        lambda: torch.mean(torch.ones(3), dtype=torch.float64, out=torch.ones(()).half()),
        RuntimeError,
        "float64, but got float16",
    ),
    (
        lambda: torch.sum(torch.ones(2, 3), 1, dtype=torch.float64, out=torch.ones(2).half()),
        RuntimeError,
        "float64, but got float16",
    ),
    (
        lambda: torch.nansum(torch.ones(2, 3), 1, dtype=torch.float64, out=torch.ones(2)),
        RuntimeError,
        "float64, but got float32",
    ),
    (lambda: torch.lobpcg(torch.eye(9), k=0), RuntimeError, "^lobpcg: got k=0"),
    (lambda: torch.compile(5), AssertionError, "^compile: got int"),
    (lambda: torch.compile(torch.abs, options={"foo": 1}), RuntimeError, "^options: got 'foo'"),
    (
        lambda: torch.compile(torch.abs, mode="default", options={}),
        RuntimeError,
        "^compile: got both",
    ),
    (
        lambda: torch.ones(2).set_(torch.ones(2, dtype=torch.float64)),
        RuntimeError,
        "expected the same",
    ),
    (lambda: torch.meshgrid(tensor([1]), tensor([1.0])), RuntimeError, "of one dtype"),
    (lambda: torch.nn.functional.one_hot(tensor([1]), -4), RuntimeError, "num_classes"),
    (
        lambda: torch.nn.functional.one_hot(tensor([], dtype=torch.int64), 0),
        RuntimeError,
        "num_classes",
    ),
    (lambda: torch.histogram(tensor([1]), 4), NotImplementedError, "histogram"),
    (
        lambda: tensor([1j]).scatter_reduce(0, tensor([0]), tensor([1j]), "amax"),
        NotImplementedError,
        "real dtype",
    ),
    (lambda: torch.ones(3).mT, RuntimeError, "at least 2"),
    (
        lambda: torch.nn.functional.scaled_dot_product_attention(
            torch.ones(2, 3, 4), torch.ones(2, 3, 5), torch.ones(2, 3, 4)
        ),
        RuntimeError,
        r"got query of shape \[2, 3, 4\], key of shape \[2, 3, 5\]",
    ),
    (lambda: torch.ones(2).requires_grad_(1), TypeError, "bool"),
    (lambda: torch.ones(2).numpy(force=1), TypeError, "bool"),
    (lambda: tensor([1.0], requires_grad=1), TypeError, "bool"),
    (lambda: torch.nn.Parameter(torch.ones(2), requires_grad=1), TypeError, "bool"),
    (lambda: torch.set_grad_enabled(1), TypeError, "bool"),
    (lambda: torch.unique(torch.ones(2), 0), TypeError, "must be bool"),
    (lambda: torch.ones(2).unique_consecutive(2), TypeError, "must be bool"),
    (lambda: "x" in torch.ones(2), RuntimeError, "in: got str"),
    (lambda: None in torch.ones(2), RuntimeError, "in: got NoneType"),
    (lambda: complex(torch.ones(2)), ValueError, "only one element"),
    (lambda: torch.meshgrid(), RuntimeError, "non-empty"),
    (lambda: torch.Tensor(2.5), TypeError, "must be a sequence"),
    (lambda: torch.from_numpy(np.arange(3, dtype=">i4")), ValueError, "byte order"),
    (
        lambda: torch.nn.functional.affine_grid(torch.ones(1, 2, 3), (1, 1, 2)),
        NotImplementedError,
        "expected 4 sizes",
    ),
    (lambda: torch.sub(tensor([1, 2]), tensor([1, 1]), alpha=0.5), RuntimeError, "alpha"),
    (lambda: torch.rsub(tensor([1, 2]), 1, alpha=0.5), RuntimeError, "alpha"),
    (lambda: tensor([1]).add_(1, alpha=0.5), RuntimeError, "alpha"),
    (lambda: torch.add(tensor([1.0]), tensor([1.0]), alpha=1j), RuntimeError, "complex number"),
    (lambda: torch.add(tensor([1]), tensor([1]), alpha=True), RuntimeError, "alpha"),
    (lambda: tensor([2, 1]) ** -1, RuntimeError, "exponent"),
    (lambda: tensor([True]) ** tensor(True), NotImplementedError, "bool"),
    (lambda: torch.ones(3).sum(0, keepdim=tensor(True)), TypeError, "must be bool, not Tensor"),
    (lambda: tensor([2, 1]).pow_(-1), RuntimeError, "exponent"),
    (lambda: torch.linspace(tensor([1.0]), 3, 3), RuntimeError, "without dimensions"),
    (lambda: torch.linspace(1j, 3, 3, dtype=torch.float32), RuntimeError, "complex"),
    (lambda: torch.linspace(tensor(1j), 3, 3, dtype=torch.float32), RuntimeError, "complex"),
    (
        lambda: torch.nn.functional.batch_norm(
            torch.ones(3, 2), torch.zeros(2), torch.ones(2, requires_grad=True)
        ),
        RuntimeError,
        "running_var that requires grad",
    ),
    (lambda: torch.amax(torch.empty(0)), RuntimeError, "amax"),
    (lambda: torch.amax(torch.empty(0, 3), 0), IndexError, "amax"),
    (lambda: torch.kthvalue(torch.empty(0, 2), 1, 0), IndexError, "kthvalue"),
    (lambda: torch.norm(torch.ones(2, 2), "fancy"), RuntimeError, "norm"),
    (lambda: torch.norm(torch.ones(2), "nuc"), RuntimeError, "matrix"),
    (
        lambda: torch.zeros(1, 3).expand(3, 3).index_add_(0, tensor([0]), torch.ones(1, 3)),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: torch.zeros(1, 3).expand(3, 3).index_copy_(0, tensor([0]), torch.ones(1, 3)),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: torch.zeros(1).expand(3).scatter_(0, tensor([0]), torch.ones(1)),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: torch.zeros(1).expand(3).scatter_(0, tensor([0]), 1.0),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: torch.zeros(1).expand(3).scatter_add_(0, tensor([0]), torch.ones(1)),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: torch.zeros(1).expand(3).put_(tensor([0]), torch.ones(1)),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: (x := torch.zeros(4))[1:].index_add_(0, tensor([0, 1, 2]), x[:3]),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: (x := torch.zeros(4)).index_add_(0, tensor([0, 1, 2, 3]), x),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: (x := torch.arange(4)).scatter_(0, x, torch.ones(4, dtype=torch.int64)),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: (x := torch.zeros(4)).scatter_reduce_(0, tensor([0, 1]), x[:2], "sum"),
        RuntimeError,
        "single memory location",
    ),
    (
        lambda: (x := torch.zeros(4)).index_put_((tensor([0, 1]),), x[1:3]),
        RuntimeError,
        "single memory location",
    ),
    (lambda: torch.empty(3, dtype=U8).random_(0, 300), RuntimeError, "out of bounds"),
    (lambda: torch.randint(-1, 3, (2,), dtype=U8), RuntimeError, "out of bounds"),
    (lambda: torch.empty(3, dtype=torch.bool).random_(3), RuntimeError, "out of bounds"),
    (lambda: torch.empty(3, dtype=torch.int8).random_(-129, 1), RuntimeError, "out of bounds"),
    (lambda: torch.empty(3, dtype=torch.float16).random_(0, 2**17), RuntimeError, "out of bounds"),
    (lambda: torch.empty(3, dtype=torch.complex64).random_(0, 3), RuntimeError, "real dtype"),
    (lambda: torch.randperm(300, dtype=U8), RuntimeError, "out of bounds"),
    (lambda: torch.empty(3, dtype=torch.float16).uniform_(0, 1e6), RuntimeError, "holds"),
    (lambda: torch.empty(3).uniform_(-3e38, 3e38), RuntimeError, "distance"),
    (lambda: torch.var(torch.ones(3).to(torch.float8_e5m2)), NotImplementedError, "var"),
    (lambda: torch.argmin(torch.ones(3).to(torch.float8_e5m2)), NotImplementedError, "argmin"),
    (lambda: torch.min(torch.ones(3).to(torch.float8_e5m2), 0), NotImplementedError, "min"),
    (lambda: torch.normal(torch.zeros(2), tensor([1.0, -1.0])), RuntimeError, "std >= 0"),
    (lambda: torch.normal(0.0, tensor([1.0, -1.0])), RuntimeError, "std >= 0"),
    (lambda: torch.abs(tensor([True])), NotImplementedError, "abs"),
    (lambda: torch.argmax(tensor([True])), NotImplementedError, "argmax"),
    (lambda: torch.argmin(tensor([[True]]), 0), NotImplementedError, "argmin"),
    (lambda: torch.topk(tensor([True]), 1), NotImplementedError, "topk"),
    (
        lambda: torch.searchsorted(tensor([False, True]), tensor([True])),
        NotImplementedError,
        "searchsorted",
    ),
    (lambda: torch.isin(tensor([False, True]), tensor([True])), NotImplementedError, "isin"),
    (
        lambda: torch.nn.functional.max_pool2d(torch.ones(1, 2, 2, dtype=torch.bool), 2),
        NotImplementedError,
        "max_pool2d",
    ),
    (lambda: torch.nn.functional.one_hot(tensor([3]), 2), RuntimeError, "^one_hot: "),
    (
        lambda: torch.nn.functional.cross_entropy(torch.ones(1, 2), tensor([2])),
        IndexError,
        "^cross_entropy: ",
    ),
    (
        lambda: torch.nn.functional.binary_cross_entropy(tensor([2.0]), tensor([1.0])),
        RuntimeError,
        "between 0 and 1",
    ),
    (
        lambda: torch.ormqr(torch.ones(3, 3, requires_grad=True), torch.ones(3), torch.ones(4, 2)),
        RuntimeError,
        "^ormqr: got reflectors",
    ),
    (
        lambda: torch.linalg.householder_product(
            torch.ones(2, 3, requires_grad=True), torch.ones(2)
        ),
        RuntimeError,
        "^linalg_householder_product: got input",
    ),
    (
        lambda: torch.empty(3, dtype=torch.float8_e4m3fn).random_(0, 1000),
        RuntimeError,
        "out of bounds",
    ),
    (lambda: torch.logit(tensor([0.5 + 1j])), NotImplementedError, "logit: not implemented for"),
    (lambda: torch.ones(2)["a"], TypeError, "only integers.*got str"),
    (lambda: torch.ones(2).__setitem__((None, "a"), 1), TypeError, "only integers.*got str"),
    (lambda: torch.compile(lambda x: x["a"])(torch.ones(2)), TypeError, "only integers.*got str"),
    (lambda: torch.ones(2)[object()], IndexError, "only integers.*got object"),
    (
        lambda: torch.baddbmm(*[torch.ones(2, 2)] * 3),
        IndexError,
        "^baddbmm: got matrices of shapes",
    ),
    (
        lambda: torch.ormqr(torch.ones(3, 3), torch.ones(3), torch.ones(3)),
        RuntimeError,
        "^ormqr: got shapes",
    ),
    (
        lambda: torch.repeat_interleave(torch.ones(2), tensor([1.0, 2.0])),
        NotImplementedError,
        "^repeat_interleave: ",
    ),
    (
        lambda: torch.nn.utils.rnn.pad_sequence(None),
        RuntimeError,
        "^pad_sequence: got sequences of type NoneType",
    ),
    (
        lambda: torch.nn.utils.rnn.pad_sequence([torch.ones(2), 1]),
        TypeError,
        "^pad_sequence.*must be Tensor, not int",
    ),
    (
        lambda: torch.nn.utils.rnn.pad_sequence([torch.ones(2)], padding_side="up"),
        RuntimeError,
        "^pad_sequence: got padding_side",
    ),
    (
        lambda: torch.nn.TransformerEncoderLayer(4, 2, activation="foo"),
        RuntimeError,
        "got activation 'foo'",
    ),
    (
        lambda: torch.nn.Sequential(torch.nn.ReLU()).insert(2, torch.nn.ReLU()),
        IndexError,
        "^Sequential.insert: got index 2",
    ),
    (
        lambda: torch.nn.functional.mse_loss(torch.ones(2, 3), torch.ones(4)),
        RuntimeError,
        r"^mse_loss: got input of shape \[2, 3\] and target",
    ),
    (lambda: 2 @ torch.ones(3), TypeError, "int"),
    (lambda: torch.ones(3) @ 2, TypeError, "int"),
]
ERRORS_AT_THE_ENDS = [
    (lambda: F.max_pool2d(torch.zeros(0, 4, 4), 2, return_indices=True), RuntimeError, "^max_pool2d"),
    (lambda: F.fractional_max_pool2d(torch.zeros(2, 0, 4, 4), 2, 2), RuntimeError, "only the batch to be empty"),
    (lambda: F.fractional_max_pool3d(torch.zeros(2, 0, 4, 4, 4), 2, 2), RuntimeError, "only the batch to be empty"),
    (lambda: F.max_unpool2d(torch.zeros(2, 0, 4, 4), torch.zeros(2, 0, 4, 4, dtype=torch.int64), 2), RuntimeError, "only the batch to be empty"),
    (lambda: F.pad(torch.zeros(0), (-1, 3)), RuntimeError, "takes more than the 0 elements"),
    (lambda: F.pad(torch.zeros(2), (3, -3)), RuntimeError, "takes more than the 2 elements"),
    (lambda: F.embedding(tensor([0]), torch.ones(0, 2)), RuntimeError, "^embedding: index out of range"),
    (lambda: F.embedding_bag(tensor([5]), torch.ones(3, 2), tensor([0])), RuntimeError, "index out of range"),
    (lambda: F.embedding_bag(tensor([-1]), torch.ones(3, 2), tensor([0]), mode="max"), RuntimeError, "index out of range"),
    (lambda: torch.index_select(torch.ones(3, 2), 1, tensor([2])), RuntimeError, "index out of range"),
    (lambda: torch.index_select(torch.ones(3, 2), 0, tensor([3])), IndexError, "index out of range"),
    (lambda: F.multilabel_margin_loss(torch.ones(1, 3), tensor([[0, -2, 1]])), RuntimeError, "-2"),
    (lambda: torch.cdist(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.float64)), RuntimeError, "one dtype"),
    (lambda: F.layer_norm(torch.ones(2), (2,), torch.ones(2, dtype=torch.float64)), RuntimeError, "^layer_norm: got parameters of float64"),
    (lambda: F.group_norm(torch.ones(1, 2), 1, torch.ones(2), torch.ones(2).half()), RuntimeError, "^group_norm: got weight and bias of two dtypes"),
    (lambda: torch.ones(3).copy_(torch.ones(1, 3)), RuntimeError, "broadcasts to"),
    (lambda: torch.softmax(torch.ones(2), 0, out=torch.empty(2, device="meta")), RuntimeError, "another device"),
    (lambda: F.soft_margin_loss(torch.ones(2, 1), torch.ones(1, 2)), RuntimeError, "broadcasts to"),
    (lambda: torch.scatter(torch.ones(2, 2), 0, tensor([[0, 1]]), tensor([1.0, 2.0])), IndexError, "^scatter: got index"),
    (lambda: torch.isin(tensor([1.0]), True), RuntimeError, "^isin: not implemented for dtype bool"),
]  # fmt: skip


@pytest.mark.parametrize("call, dtype, expected", RESULTS)
def test_results_are_as_recorded(call, dtype, expected):
    found = call()
    assert found.dtype == dtype
    values = found.double() if found.is_floating_point() else found
    np.testing.assert_allclose(
        values.numpy(),
        np.array(expected),
        rtol=1e-5,
        atol=1e-6 if abs(np.max(np.abs(expected))) > 1e-3 else 0,
    )


@pytest.mark.parametrize("call, error, text", ERRORS + ERRORS_AT_THE_ENDS)
def test_errors_are_of_the_recorded_kind(call, error, text):
    with pytest.raises(error, match=text) as raised:
        call()
    assert raised.type is not IndexError or error is IndexError


def test_power_zero_of_a_matrix_has_a_gradient_of_zeros():
    x = torch.eye(2).requires_grad_()
    result = torch.linalg.matrix_power(x, 0)
    assert result.tolist() == [[1, 0], [0, 1]]
    result.sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]


def test_logdet_has_no_gradient_where_it_is_nan():
    x = tensor([[[-1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [1.0, 3.0]]]).requires_grad_()
    found = torch.logdet(x)
    assert found[0].isnan() and found[1].item() == pytest.approx(np.log(5))
    found.sum().backward()
    np.testing.assert_allclose(
        x.grad.numpy(), [[[0, 0], [0, 0]], [[0.6, -0.2], [-0.2, 0.4]]], atol=1e-6
    )


def test_complex_lerp_and_logcumsumexp_have_gradients():
    rng = np.random.default_rng(0)
    a, b, w = (
        tensor(rng.standard_normal(4) + 1j * rng.standard_normal(4)).requires_grad_()
        for _ in range(3)
    )
    assert torch.gradcheck(torch.lerp, (a, b, w))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_logcumsumexp_has_derivatives_of_both_modes_and_orders(dtype, dim):
    torch.manual_seed(0)
    x, tangent = (torch.randn(3, 4, dtype=dtype).requires_grad_() for _ in range(2))

    def f(x):
        return torch.logcumsumexp(x, dim)

    assert torch.gradcheck(f, (x,)) and torch.gradgradcheck(f, (x,))
    _, found = torch.func.jvp(f, (x.detach(),), (tangent.detach(),))
    step = 1e-6
    want = (f(x + step * tangent) - f(x - step * tangent)) / (2 * step)
    torch.testing.assert_close(found, want.detach(), rtol=1e-7, atol=1e-8)


def test_tangents_of_logcumsumexp_beside_infinite_elements():
    inf = float("inf")
    for x, want in (
        ([1.0, 2, -inf, 3], [1, 1, 1, -0.9957230]),
        ([-inf, -inf, 1, 2], [0, 0, 1, -1.1931757]),
        ([800.0, -800, 900, 5], [1, 1, 1, 1]),  # of the running total
        ([1.0, inf, 2, 3], [1, float("nan"), float("nan"), float("nan")]),
    ):
        tangent = tensor([1.0, 1, 1, -2], dtype=torch.float64)
        x = tensor(x, dtype=torch.float64)
        _, found = torch.func.jvp(lambda x: torch.logcumsumexp(x, 0), (x,), (tangent,))
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scattered_reductions_of_complex_numbers_have_gradients(reduce, include_self):
    rng = np.random.default_rng(0)
    x, src = (
        tensor(rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))).requires_grad_()
        for _ in range(2)
    )
    index = tensor([[0, 0, 1], [0, 1, 1]])

    def f(x, src):
        return x.scatter_reduce(0, index, src, reduce, include_self=include_self)

    assert torch.gradcheck(f, (x, src)) and torch.gradgradcheck(f, (x, src))


def test_compiled_calls_refuse_and_agree_too():
    def f(x):
        return (
            torch.any(x, dim=[]),
            torch.all(x, 0),
            torch.nextafter(x.half(), torch.zeros(3).half()),
            torch.nextafter(x.half(), torch.zeros(())),
            torch.ldexp(x * 1e-30, tensor([140, -30, 100])),
            torch.movedim(x.sum(), 0, -1),
        )

    x = tensor([[1.0, 0.0, 2.0], [3.0, 4.0, 0.0]])
    for a, b in zip(torch.compile(f)(x), f(x), strict=True):
        assert a.dtype == b.dtype and a.tolist() == b.tolist()
    with pytest.raises(RuntimeError, match="alpha"):
        torch.compile(lambda x: torch.add(x, x, alpha=0.5))(tensor([1, 2]))


@pytest.mark.parametrize(
    "shape, dim", [((5, 37), 1), ((3, 20, 4), 1), ((2, 9, 1), 1), ((50,), 0), ((4, 1000), 1)]
)
def test_index_select_of_runs_and_of_single_elements(shape, dim):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    n = shape[dim]
    for index in (
        rng.integers(0, n, 2 * n + 3),
        np.arange(n),
        np.arange(n)[::-1].copy(),
        np.repeat(np.arange(n), 2),
        np.array([], int),
    ):
        found = torch.index_select(tensor(x), dim, tensor(index))
        np.testing.assert_array_equal(found.numpy(), np.take(x, index, axis=dim))


def test_parameters_in_containers_are_described():
    """The lines, their margins too; a dict of one parameter stands on one line."""
    parameters = {"a": torch.nn.Parameter(torch.ones(2)), "b": torch.ones(2, 3)}
    assert repr(torch.nn.ParameterDict(parameters)) == (
        "ParameterDict(\n    (a): Parameter containing: [argand.FloatTensor of size 2]\n"
        "    (b): Parameter containing: [argand.FloatTensor of size 2x3]\n)"
    )
    assert repr(torch.nn.ParameterDict({"a": torch.ones(1)})) == (
        "ParameterDict(  (a): Parameter containing: [argand.FloatTensor of size 1])"
    )
    assert repr(torch.nn.ParameterList([torch.ones(2), 3])) == (
        "ParameterList(\n    (0): Parameter containing: [argand.float32 of size 2]\n"
        "    (1): Object of type: int\n)"
    )


def test_what_pytorch_asserts_is_an_assertion_error():
    x = torch.ones(2, 3, 5)
    for call in (
        lambda: torch.nn.MultiheadAttention(10, 3),
        lambda: torch.nn.MultiheadAttention(4, 2)(x, x, x),
        lambda: torch.utils.data.TensorDataset(torch.ones(2), torch.ones(3)),
        lambda: torch.utils.data.ConcatDataset([]),
        lambda: torch.amp.GradScaler("cpu").update(),
        lambda: torch.nn.Embedding(3, 2, padding_idx=3),
        lambda: torch.nn.Embedding.from_pretrained(torch.ones(2)),
        lambda: torch.nn.Hardtanh(1, 0),
        lambda: torch.nn.Embedding(3, 2, _weight=torch.ones(2, 2)),
        lambda: torch.nn.EmbeddingBag(3, 2, _weight=torch.ones(6)),
        lambda: torch.lobpcg(torch.ones(9, 5)),
        lambda: torch.lobpcg(torch.eye(9), B=torch.eye(3)),
        lambda: torch.lobpcg(torch.eye(9), X=torch.ones(3, 1)),
    ):
        with pytest.raises(AssertionError):
            call()


def test_parts_of_complex_tensors_are_assigned():
    z = tensor([1 + 2j, 3 - 4j])
    z.real, z.imag = torch.zeros(2), tensor([5, 6])
    assert z.tolist() == [5j, 6j]
    x = torch.ones(2)
    x.real = tensor([2.0, 3.0])
    assert x.tolist() == [2, 3]
    with pytest.raises(RuntimeError):
        x.imag = torch.ones(2)
    w = torch.zeros(1, dtype=torch.complex64).requires_grad_() * 1
    y = torch.ones(1, requires_grad=True)
    w.imag = y * 2
    w.abs().sum().backward()
    assert y.grad.item() == 2


def test_tensors_of_inference_mode_do_not_change_outside():
    with torch.inference_mode():
        x = torch.ones(3)
        x.add_(1)
    for change in (
        lambda: x.add_(1),
        lambda: x.zero_(),
        lambda: x.__setitem__(0, 2),
        lambda: x.index_add_(0, tensor([0]), torch.ones(1)),
        lambda: x.clamp_(max=0),
        lambda: torch.add(torch.ones(3), 1, out=x),
    ):
        with pytest.raises(RuntimeError, match="inference"):
            change()
    assert x.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="do not track version"):
        _ = x._version


def test_one_value_is_written_to_elements_in_one_place():
    """`fill_` and `zero_` ask for no memory of each element's own."""
    x = torch.ones(1)
    x.expand(4).fill_(3)
    assert x.item() == 3
    x.expand(4).zero_()
    assert x.item() == 0


@pytest.mark.parametrize("compiled", [False, True])
def test_a_condition_chooses_a_branch(compiled):
    def choose(x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,)).square()

    run = torch.compile(choose, fullgraph=True) if compiled else choose
    for values, result, slope in [
        ([1.0, 2.0], [4.0, 16.0], [8.0, 16.0]),
        ([-1.0, -2.0], [4.0, 9.0], [-4.0, -6.0]),
    ]:
        x = tensor(values, requires_grad=True)
        y = run(x)
        y.sum().backward()
        assert (y.tolist(), x.grad.tolist()) == (result, slope)
    assert torch.cond(False, lambda: 1, lambda: 2) == 2
    for arguments in [
        (torch.ones(2), abs, abs, (1,)),
        ("yes", abs, abs, (1,)),
        (True, abs, 1, (1,)),
        (True, abs, abs, 1),
    ]:
        with pytest.raises(RuntimeError, match="cond: got"):
            torch.cond(*arguments)


def test_nothing_in_rows():
    x = torch.ones(0, 2)
    assert torch.roll(x, 1) is not x
    assert torch.fft.fftshift(x.requires_grad_()).grad_fn is not None
    places = torch.ones(3, 0)
    assert torch.cdist(places, torch.ones(2, 0), p=inf).tolist() == [[0.0] * 2] * 3
    assert torch.nn.functional.pdist(places, inf).tolist() == [0.0] * 3


def test_autocast_of_the_cpu_decorates():
    product = torch.cpu.amp.autocast(dtype=torch.float16)(torch.mm)
    assert product(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.float16


@pytest.mark.parametrize("lead", [(2,), (1, 2)])
@pytest.mark.parametrize("size", [0, (3, 0, 1), (0, 2, 2)])
def test_pooling_of_volumes_to_nothing(lead, size):
    x = torch.ones(*lead, 4, 4, 4, requires_grad=True)
    shape = (*lead, *((size,) * 3 if size == 0 else size))
    mean = torch.nn.functional.adaptive_avg_pool3d(x, size)
    largest, indices = torch.nn.functional.adaptive_max_pool3d(x, size, return_indices=True)
    assert mean.shape == largest.shape == indices.shape == shape and indices.dtype == torch.int64
    assert not torch.autograd.grad(mean.sum() + largest.sum(), x)[0].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("lead", [(0, 1), (0, 3), (2, 3), (3,)])
def test_means_of_windows_of_volumes_without_a_batch(lead, dtype):
    x = torch.ones(*lead, 4, 5, 4, dtype=dtype, requires_grad=dtype.is_floating_point)
    mean = torch.nn.functional.avg_pool3d(x, (2, 3, 1), (2, 1, 2))
    assert mean.shape == (*lead, 2, 3, 2) and mean.dtype is dtype and mean.eq(1).all()
    if dtype.is_floating_point:
        assert torch.autograd.grad(mean.sum(), x)[0].shape == x.shape


def test_steps_of_lbfgs_keep_their_weights():
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.LBFGS([p], max_iter=3, history_size=2)

    def loss():
        optimizer.zero_grad()
        value = (p**4).sum()
        value.backward()
        return value

    optimizer.step(loss)
    weights = optimizer.state_dict()["state"][0]["al"]
    assert weights == [pytest.approx(1 / 7, rel=1e-4), None]


def test_an_encoder_layer_tells_its_activation():
    def code(activation):
        return torch.nn.TransformerEncoderLayer(4, 2, activation=activation).activation_relu_or_gelu

    assert [code("relu"), code(F.relu), code(torch.nn.ReLU())] == [1, 1, 1]
    assert [code("gelu"), code(F.gelu), code(torch.nn.GELU())] == [2, 2, 2]
    assert code(torch.tanh) == 0


def test_sequences_are_packed_without_data():
    x = torch.zeros(3, 2, device="meta")
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [3, 2])
    assert packed.data.shape == (5,) and packed.data.is_meta
    assert packed.batch_sizes.tolist() == [2, 2, 1]


def test_tensors_of_the_default_type():
    assert torch.ones(2).double().type(torch.Tensor).dtype == torch.float32


@pytest.mark.parametrize("turned", [False, True])
def test_mse_loss_beside_bools_has_a_gradient(turned):
    x, truth = torch.tensor([0.5, 2.0], requires_grad=True), torch.tensor([True, False])
    F.mse_loss(*((truth, x) if turned else (x, truth))).backward()
    assert x.grad.tolist() == [-0.5, 2.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_compiled_gradients_of_halves_are_chosen_as_in_eager(dtype):
    """Numbers that the dtype does not hold are compared in float32."""
    for f in (
        lambda x: F.hardshrink(x, 0.1),
        lambda x: F.softshrink(x, 0.3),
        lambda x: F.threshold(x, 0.1, 7.0),
        lambda x: F.hardtanh(x, -0.1, 0.3),
    ):
        grads = []
        for g in (f, torch.compile(f, backend="aot_eager")):
            x = torch.tensor([0.1, -0.1, 0.3, -0.3, 0.0, 1.0], dtype=dtype, requires_grad=True)
            g(x).sum().backward()
            grads.append(x.grad.tolist())
        assert grads[0] == grads[1]


def test_out_that_is_an_operand_is_not_resized():
    x = torch.ones(1, 3)
    with pytest.raises(RuntimeError, match="add: output with shape"):
        torch.add(x, torch.ones(2, 3), out=x)
    assert x.shape == (1, 3)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_copies_are_no_views(requires_grad):
    x = torch.ones(3, 4, requires_grad=requires_grad)
    for made in (x.t().reshape(12), x.t().flatten(), x.t().reshape(2, 6), x.t().ravel()):
        assert made._base is None and made.requires_grad == requires_grad and made._version == 0
        assert made.add_(1).sum().item() == 24 and made._version == 1
        made.detach_()
    assert x.sum().item() == 12
    assert x.reshape(12)._base is x and x[0].flatten()._base is x and torch.nonzero(x)._base is None
    with torch.no_grad():
        assert x.t().reshape(12)._base is None
    if requires_grad:
        y = x.t().reshape(12)
        y.mul_(3).sum().backward()
        assert x.grad.tolist() == [[3.0] * 4] * 3


def test_expanded_arrays_become_rows():
    row, column = np.arange(3.0), np.arange(2.0)[:, None]
    for array in (np.broadcast_to(row, (2, 3)), np.broadcast_to(column, (2, 3))):
        for made in (
            torch.tensor(array),
            torch.tensor(array, dtype=torch.float32),
            torch.asarray(array, copy=True),
        ):
            assert made.stride() == (3, 1) and made.tolist() == array.tolist()
    turned = torch.tensor(np.arange(6.0).reshape(2, 3).T)
    assert turned.stride() == (1, 3)
    assert torch.tensor(turned.numpy(), dtype=torch.int32).stride() == (1, 3)
    assert torch.tensor(row[::-1]).tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_where_takes_bytes(compiled):
    def choose(condition, x):
        return torch.where(condition, x * 2, 0.0)

    f = torch.compile(choose) if compiled else choose
    condition, x = torch.tensor([0, 1, 2], dtype=torch.uint8), torch.ones(3, requires_grad=True)
    y = f(condition, x)
    assert y.tolist() == [0.0, 2.0, 2.0]
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [0.0, 2.0, 2.0]
    assert x.detach().where(condition, 5.0).tolist() == [5.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="boolean"):
        torch.where(condition.to(torch.int32), x, 0.0)
    with pytest.raises(RuntimeError, match="boolean"):
        x.masked_fill(condition, 0.0)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("compiled", [False, True])
def test_places_that_are_nan_change_no_image(mode, compiled):
    def sample(image, grid):
        return torch.nn.functional.grid_sample(image, grid, mode, "zeros", False)

    f = torch.compile(sample) if compiled else sample
    image = torch.ones(1, 1, 3, 4, requires_grad=True)
    grid = torch.zeros(1, 1, 2, 2)
    (whole,) = torch.autograd.grad(f(image, grid)[..., 1].sum(), image)
    grid[0, 0, 0, 1] = float("nan")
    (part,) = torch.autograd.grad(f(image, grid).sum(), image)
    torch.testing.assert_close(part, whole)


def test_gradients_of_parts_are_views():
    x = torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad(torch.diag_embed(x), x, torch.ones(3, 3))
    assert g.stride() == (4,)
    base, part = torch.ones(4, 4, requires_grad=True), torch.ones(4, requires_grad=True)
    for made, stride in ((base.select_scatter(part, 1, 2), 4), (base.diagonal_scatter(part), 5)):
        a, b = torch.autograd.grad(made, (base, part), torch.ones(4, 4))
        assert b.stride() == (stride,) and a.sum().item() == 12
    rows = torch.ones(2, 4, requires_grad=True)
    a, b = torch.autograd.grad(base.slice_scatter(rows, 0, 0, 4, 2), (base, rows), torch.ones(4, 4))
    assert b.stride() == (8, 1) and a.tolist() == [[0.0] * 4, [1.0] * 4] * 2
    real = torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad(
        torch.complex(real, torch.zeros(3)), real, torch.ones(3, dtype=torch.complex64)
    )
    assert g.stride() == (2,) and g.tolist() == [1.0] * 3


def test_gradients_of_addbmm_lie_in_rows():
    x, a, b = (torch.ones(s, requires_grad=True) for s in ((3, 5), (2, 3, 4), (2, 4, 5)))
    grads = torch.autograd.grad(torch.addbmm(x, a, b, beta=2, alpha=3), (x, a, b), torch.ones(3, 5))
    assert [g.stride() for g in grads] == [(5, 1), (12, 4, 1), (20, 5, 1)]
    assert [g.unique().tolist() for g in grads] == [[2.0], [15.0], [9.0]]


def test_what_is_added_does_not_grow_a_product():
    with pytest.raises(RuntimeError, match="baddbmm: got self of shape"):
        torch.baddbmm(torch.ones(2, 3), torch.ones(4, 1, 1), torch.ones(4, 1, 1))


def test_kth_value_of_one_element():
    for value in (True, 1.5, 2j):
        values, indices = torch.kthvalue(torch.tensor(value), 1)
        assert values.item() == value and indices.item() == 0
    with pytest.raises(RuntimeError, match="kthvalue"):
        torch.kthvalue(torch.tensor([True]), 1)


def test_indices_of_other_dtypes_are_index_errors():
    x = torch.zeros(3)
    for index in (torch.tensor([0], dtype=torch.int16), torch.tensor([0.0])):
        with pytest.raises(IndexError, match="dtype"):
            x.index_put_((index,), torch.tensor(1.0))


def test_lu_as_a_method_gives_a_tuple():
    assert type(torch.eye(2).lu(True, True)) is tuple and len(torch.eye(2).lu()) == 2
    assert torch.lu(torch.eye(2), get_infos=True).info.item() == 0


def test_chunk_cat():
    joined = torch._chunk_cat([torch.arange(6.0).reshape(3, 2), torch.ones(2, 2)], 0, 2)
    assert joined.tolist() == [[0.0, 1.0, 2.0, 3.0, 1.0, 1.0], [4.0, 5.0, 0.0, 0.0, 1.0, 1.0]]
    out = torch.empty(0)
    assert torch._chunk_cat([torch.ones(3, 2)], 1, 2, out=out) is out and out.shape == (3, 2, 1)
    with pytest.raises(RuntimeError, match="expected the same sizes"):
        torch._chunk_cat([torch.ones(3, 2), torch.ones(2, 2)], 1, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_depthwise_volumes_of_depth_1_are_images(dtype: torch.dtype) -> None:
    x, weight = torch.randn(2, 16, 1, 6, 7, dtype=dtype), torch.randn(16, 1, 1, 3, 3, dtype=dtype)
    volumes = F.conv3d(x, weight, padding=(0, 1, 1), groups=16)
    images = F.conv2d(x[:, :, 0], weight[:, :, 0], padding=1, groups=16)
    torch.testing.assert_close(volumes[:, :, 0], images)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last])
def test_gradients_of_class_losses_lie_in_rows(compiled, format):
    def loss(x, target):
        return F.nll_loss(x, target)

    f = torch.compile(loss) if compiled else loss
    x = torch.ones(2, 3, 2, 2).contiguous(memory_format=format).requires_grad_()
    (g,) = torch.autograd.grad(f(x, torch.ones(2, 2, 2, dtype=torch.int64)), x)
    assert g.stride() == (12, 4, 2, 1) and g.unique().tolist() == [-0.125, 0.0]


def test_out_of_real_results_is_not_complex():
    x = torch.ones(4, dtype=torch.complex64)
    for transform in (torch.fft.irfft, torch.fft.hfft, torch.fft.irfftn, torch.fft.hfftn):
        assert transform(x, out=torch.empty(0, dtype=torch.float64)).dtype == torch.float64
        with pytest.raises(RuntimeError, match="expected a floating-point one"):
            transform(x, out=torch.empty(0, dtype=torch.complex64))


def test_out_of_nansum_is_of_the_category_of_the_sum():
    x = tensor([1.5, nan, 2.0])
    assert torch.nansum(x, out=torch.empty(0, dtype=torch.float64)).item() == 3.5
    for dtype in (torch.int64, torch.bool, torch.complex64):
        with pytest.raises(NotImplementedError, match="nansum: not implemented for out="):
            torch.nansum(x, out=torch.empty((), dtype=dtype))
    assert torch.nansum(tensor([1, 2]), out=torch.empty(())).item() == 3.0
    assert torch.nansum(tensor([1, 2]), out=torch.empty((), dtype=torch.bool)).item() is True
    with pytest.raises(NotImplementedError, match="nanmean: got dtype=int64"):
        torch.nanmean(x, out=torch.empty((), dtype=torch.int64))


def test_out_of_matrix_power_has_its_dtype():
    x = torch.eye(2)
    assert torch.linalg.matrix_power(x, 3, out=torch.empty(0)).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32"):
        torch.linalg.matrix_power(x, 3, out=torch.empty(2, 2, dtype=torch.float64))


def test_tensors_of_several_elements_are_no_numbers():
    several = tensor([1, 2])
    for data, dtype, error in (
        ([several], None, TypeError),
        ([several], torch.float32, ValueError),
        ([several.double()], None, ValueError),
        ([several.double()], torch.int64, TypeError),
        ([several.bool()], None, TypeError),
    ):
        with pytest.raises(error, match="only one element tensors"):
            tensor(data, dtype=dtype)


def test_elements_of_meta_tensors_are_not_implemented():
    for read in (torch.Tensor.tolist, torch.Tensor.item):
        with pytest.raises(NotImplementedError, match="they have no data"):
            read(torch.empty(1, device="meta"))
