"""Forms of calls and kinds of errors that were recorded from PyTorch 2.13: keywords, one value for a list, named results, wrong arguments."""

import warnings

import numpy as np
import pytest

import argand as torch
import argand.nn.functional as F
from argand import nn, tensor

M = torch.arange(9.0).reshape(3, 3)
K = torch.arange(3)
ONE = torch.ones(1, 1, dtype=torch.int64)
EIGHT = torch.ones(1, 1, 8, 2)
INF, NAN = float("inf"), float("nan")


def gradient(f, x, grad=None):
    x = x if x.requires_grad else x.clone().requires_grad_()
    y = f(x)
    return torch.autograd.grad(
        y, x, torch.ones_like(y) if grad is None else grad, create_graph=True
    )[0]


def assigned(x, index, value):
    x[index] = value
    return x


RESULTS = [
    (lambda: torch.split(tensor=M, split_size_or_sections=[1, 2])[1], [[3, 4, 5], [6, 7, 8]]),
    (lambda: M.split(split_size=2)[1], [[6, 7, 8]]),
    (lambda: M.count_nonzero(0, 1), 8),
    (lambda: torch.zeros(3).uniform_(**{"from": 2.0, "to": 2.0}), [2, 2, 2]),
    (lambda: torch.zeros(3).random_(**{"from": 4, "to": 5}), [4, 4, 4]),
    (lambda: torch.norm(M, dtype=None), 14.282856),
    (lambda: M.norm("fro", dim=0, keepdim=False, dtype=torch.float64), [6.70820393, 8.1240384, 9.64365076]),
    (lambda: torch.view_copy(tensor([1.0]), torch.int32), [1065353216]),
    (lambda: torch.view_copy(input=M, size=(9,))[4], 4),
    (lambda: F.one_hot(input=K, num_classes=3), np.eye(3)),
    (lambda: torch.stft(torch.ones(6), 4, 2, 2, center=False, return_complex=True, align_to_window=True).real[0], [2, 2, 2]),
    (lambda: torch.unravel_index(tensor([5], dtype=torch.uint8), (3, 3))[0], [1]),
    (lambda: torch.meshgrid(K, K, indexing=None)[0][2], [2, 2, 2]),
    (lambda: torch.sort(M[0], descending=True).values, [2, 1, 0]),
    (lambda: torch.func.functional_call(nn.Linear(1, 1), {"weight": torch.ones(1, 1), "bias": torch.ones(1)}, tensor([2.0])), [3]),
    (lambda: nn.Parameter(), []),
    (lambda: nn.Sequential(nn.ReLU()).extend(sequential=[nn.Identity()])(M[1]), [3, 4, 5]),
    (lambda: nn.RMSNorm(2)(x=tensor([3.0, 3.0])), [1, 1]),
    (lambda: torch.sum(a=M, axis=1, keepdims=True), [[3], [12], [21]]),
    (lambda: torch.softmax(x=M[0] * 0, axis=0), [1 / 3] * 3),
    (lambda: torch.sub(x1=M[1], x2=M[0], alpha=2), [3, 2, 1]),
    (lambda: torch.matmul(x1=M[0], x2=M[1]), 14),
    (lambda: M[0].mul(x2=2), [0, 2, 4]),
    (lambda: torch.compile(lambda m: torch.add(x1=m, x2=m))(M[0]), [0, 2, 4]),
    (lambda: K.clone().copy_(2.5), [2, 2, 2]),
    (lambda: torch.zeros(2).copy_(True), [1, 1]),
    (lambda: torch.zeros(2).copy_(other=np.float32(1.5)), [1.5, 1.5]),
    (lambda: F.scaled_dot_product_attention(torch.full((1, 1, 1, 2), NAN), EIGHT, EIGHT)[0, 0], [[NAN, NAN]]),
    (lambda: F.scaled_dot_product_attention(torch.full((1, 1, 1, 2), NAN), EIGHT, EIGHT, torch.arange(8).reshape(1, 8) < 5)[0, 0], [[NAN, NAN]]),
    (lambda: F.scaled_dot_product_attention(EIGHT, EIGHT, EIGHT, torch.zeros(8, 8).bool())[0, 0, 0], [0, 0]),
    (lambda: torch.distributions.Gamma(tensor(INF), tensor(1.0)).sample(), INF),
    (lambda: F.cross_entropy(tensor([[0, -INF], [1, 2]]), tensor([-100, 1]), label_smoothing=0.1), 0.36326167),
    (lambda: F.max_pool2d(torch.ones(1, 2, 2), 2, dilation=3, padding=1), [[[-INF]]]),
    (lambda: F.max_pool2d(torch.ones(1, 2, 2).double(), 2, dilation=3, padding=1), [[[-INF]]]),
    (lambda: F.max_pool2d(torch.ones(1, 2, 2, dtype=torch.int64), 2, dilation=3, padding=1), [[[-(2**63)]]]),
    (lambda: F.max_pool3d(torch.ones(1, 2, 2, 2), 2, dilation=3, padding=1), [[[[-INF]]]]),
    (lambda: gradient(lambda v: torch.index_fill(torch.ones(3), 0, tensor([1]), v), tensor(1.0), tensor([INF, 2, 3])), 2),
    (lambda: gradient(lambda x: gradient(lambda x: x.expand(3).as_strided((3,), (0,)) ** 3, x), tensor([1.0])), [18]),
    (lambda: gradient(lambda x: gradient(lambda x: x.as_strided((2, 2), (1, 1)) ** 3, x), tensor([1.0, 2, 3])), [6, 24, 18]),
    (lambda: torch.tril(M[:2], 2**63 - 1), [[0, 1, 2], [3, 4, 5]]),
    (lambda: torch.triu(M[:2], 2**63 - 1), np.zeros((2, 3))),
    (lambda: torch.triu(M[:2], -(2**63)), [[0, 1, 2], [3, 4, 5]]),
    (lambda: torch.tril_indices(2, 2, 2**62), [[0, 0, 1, 1], [0, 1, 0, 1]]),
    (lambda: torch.triu_indices(2, 2, -(2**62)), [[0, 0, 1, 1], [0, 1, 0, 1]]),
    (lambda: torch.addmm(ONE, ONE, ONE, alpha=2**53 + 1) - 2**53, [[2]]),
    (lambda: torch.addmm(ONE, ONE, ONE - 1, beta=2**53 + 1) - 2**53, [[1]]),
    (lambda: tensor([torch.ones(1).to(d).is_signed() for d in (torch.uint8, torch.uint16, torch.uint64, torch.int8)]), [0, 0, 0, 1]),
    (lambda: torch.tensor(np.ones(2), dtype=torch.float8_e4m3fn).float(), [1, 1]),
    (lambda: torch.tensor(np.ones(2), dtype=torch.float8_e5m2).float(), [1, 1]),
    (lambda: tensor([torch.empty(0).is_set_to(torch.empty(0)), M.is_set_to(M.view(3, 3)), M[1:].is_set_to(M[:2])]), [0, 1, 0]),
    (lambda: tensor(torch.ones(6).resize_(1, 2, 3, 1, memory_format=torch.channels_last).stride()), [6, 1, 2, 2]),
    (lambda: tensor(torch.ones(6).resize_as_(torch.ones(1, 2, 3, 1), memory_format=torch.channels_last).stride()), [6, 1, 2, 2]),
    (lambda: torch.view_as_real(torch.exp(tensor([89 + 1j, 90 + 3j, 1000 + 0j]))), [[2.425748e38, INF], [-INF, 1.7222331e38], [INF, 0]]),
    (lambda: torch.view_as_real(torch.sinh(tensor([90 + 3j, -90 + 3j]))), [[-INF, 8.611166e37], [INF, 8.611166e37]]),
    (lambda: torch.view_as_real(torch.cosh(tensor([90 + 3j, -90 + 3j]))), [[-INF, 8.611166e37], [-INF, -8.611166e37]]),
    (lambda: torch.view_as_real(torch.sin(tensor([3 + 90j, 3 - 90j]))), [[8.611166e37, -INF], [8.611166e37, INF]]),
    (lambda: torch.view_as_real(torch.tanh(tensor([20 + 1j]))), [[1, 7.726034e-18]]),
    (lambda: torch.var_mean(torch.full((3, 4), 3e38), 1)[1], np.full(3, np.float32(3e38))),
    (lambda: torch.std_mean(tensor([3e38, -3e38, 3e38, 3e38]))[1], 1.5e38),
    (lambda: F.layer_norm(tensor([[1e30, 1.0], [1.0, -1.0]]), (2,)), [[NAN, NAN], [0.999995, -0.999995]]),
    (lambda: F.instance_norm(tensor([[[1e30, 1.0]]])), [[[0, 0]]]),
    (lambda: F.instance_norm(M[None], torch.zeros(3).double(), torch.ones(3).double(), use_input_stats=False)[0, 2], [5.99997, 6.999965, 7.99996]),
    (lambda: gradient(lambda x: x.cumprod(0), tensor([1.0, INF, 2.0])), [INF, NAN, INF]),
    (lambda: gradient(lambda x: x.cumprod(0), tensor([2.0, 0.0, 3.0, 0.0, 5.0])), [1, 8, 0, 0, 0]),
    (lambda: gradient(lambda x: gradient(lambda x: x.cumprod(0), x), tensor([2.0, 3.0, 4.0])), [8, 7, 5]),
    (lambda: gradient(lambda x: gradient(lambda x: F.softmax(x, 0, dtype=torch.float64) ** 2, x), tensor([0.0, 0.0])), [0, 0]),
    (lambda: assigned(torch.ones(2), False, torch.ones(5)), [1, 1]),
]  # fmt: skip
ERRORS = [
    (lambda: torch.bincount(tensor([2**63 - 1])), RuntimeError, "overflow"),
    (lambda: torch.cat([torch.ones(1).expand(2**62)] * 2), RuntimeError, "overflow"),
    (lambda: F.conv1d(ONE, ONE[None], tensor([0.5])), RuntimeError, "dtype"),
    (lambda: F.conv1d(ONE.int(), ONE[None].int(), tensor([0.5])), RuntimeError, "dtype"),
    (lambda: torch.quantile(M, tensor([0.5, 1.5])), RuntimeError, r"range \[0, 1\]"),
    (lambda: torch.quantile(M, tensor(NAN)), RuntimeError, r"range \[0, 1\]"),
    (lambda: torch.nanquantile(M, tensor(-0.5)), RuntimeError, r"range \[0, 1\]"),
    (lambda: torch.histc(tensor([1, INF]), 2), RuntimeError, "not finite"),
    (lambda: torch.histc(tensor([1, NAN]), 2), RuntimeError, "not finite"),
    (lambda: torch.histc(M, 2, 0, INF), RuntimeError, "not finite"),
    (lambda: torch.histogram(tensor([1, INF]), 2), RuntimeError, "not finite"),
    (lambda: K[np.ones((3, 2), bool)], IndexError, "too many indices"),
    (lambda: M[np.ones((3, 3), bool), 0], IndexError, "too many indices"),
    (lambda: torch.ones(6).resize_(2, 3, memory_format=torch.channels_last), RuntimeError, "rank 4"),
    (lambda: torch.add(M, M, out=(torch.zeros(3, 3),)), TypeError, "out"),
    (lambda: M.add(M, out=torch.zeros(3, 3)), TypeError, "unexpected keyword"),
    (lambda: torch.zeros(2, pin_memory="yes"), TypeError, "pin_memory"),
    (lambda: torch.randint(0, 5, 3), TypeError, "randint"),
    (lambda: M.unflatten(1, 3, 1), TypeError, "unflatten"),
    (lambda: torch.linalg.inv(torch.eye(2).half()), NotImplementedError, "float16"),
    (lambda: torch.linalg.inv(torch.eye(2).half()), RuntimeError, "float16"),
    (lambda: F.avg_pool2d(torch.zeros(1, 4, 4, dtype=torch.complex64), 2), NotImplementedError, "complex64"),
    (lambda: torch.div(M, M, rounding_mode="up"), RuntimeError, "rounding_mode"),
    (lambda: torch.round(K, decimals=1), NotImplementedError, "decimals"),
    (lambda: torch.split(tensor(1.0), 1), RuntimeError, "1-dimensional"),
    (lambda: torch.chunk(tensor(1.0), 1), RuntimeError, "1-dimensional"),
    (lambda: torch.index_fill(M, 0, K.reshape(1, 3), 1.0), RuntimeError, "vector"),
    (lambda: torch.dropout(M, 1.5, True), RuntimeError, "probability"),
    (lambda: F.dropout(M, 1.5), ValueError, "probability"),
    (lambda: F.rms_norm(M[0], (3, 3)), ValueError, "at least 2"),
    (lambda: F.dropout1d(M[0]), RuntimeError, "dropout1d"),
    (lambda: F.dropout2d(M[0]), RuntimeError, "dropout2d"),
    (lambda: F.max_pool2d(M[None], (2, 2, 2)), RuntimeError, "2 ints, not 3 ints"),
    (lambda: F.conv2d(M[None], torch.ones(1, 1, 1, 1), stride=(1, 1, 1)), RuntimeError, "2 ints, not 3 ints"),
    (lambda: torch.zeros(3).index_add(0, tensor([3]), torch.ones(1)), IndexError, "out of range"),
    (lambda: M.index_add(0, tensor([3]), M[:1]), RuntimeError, "out of range"),
    (lambda: torch.norm(M.double(), dtype=torch.float32), RuntimeError, "not narrower"),
    (lambda: M.double().norm("fro", dtype=torch.float32), RuntimeError, "not narrower"),
    (lambda: torch.linalg.matrix_norm(M.double(), dtype=torch.float32), RuntimeError, "not narrower"),
    (lambda: torch.norm(K, dtype=torch.float32), RuntimeError, "floating point"),
    (lambda: F.dropout3d(M[0, 0]), RuntimeError, "dropout3d"),
    (lambda: F.batch_norm(M, None, None), RuntimeError, "no running statistics"),
    (lambda: F.instance_norm(M[None], M[0], None), ValueError, "expected both or neither"),
    (lambda: F.instance_norm(M[None], M[0], None, use_input_stats=False), RuntimeError, "no running statistics"),
    (lambda: F.group_norm(M[None, :, :1], 2), ValueError, "more than 1 value per group"),
    (lambda: F.avg_pool1d(M, 2, stride=(2, 1)), RuntimeError, "one int"),
    (lambda: torch.repeat_interleave(M, 2, dim=0, output_size=2), RuntimeError, "output_size=6"),
    (lambda: torch.histogram(M, torch.zeros(2, 2)), RuntimeError, "bins"),
    (lambda: torch.lu_unpack(torch.eye(3), torch.ones(5, 7, dtype=torch.int32)), RuntimeError, "LU_pivots"),
    (lambda: torch.native_batch_norm(torch.zeros(0), None, None, None, None, True, 0.1, 1e-5), RuntimeError, "at least 2"),
    (lambda: torch.stft(torch.ones(8), 4, align_to_window=True, return_complex=True), RuntimeError, "align_to_window"),
    (lambda: F.cross_entropy(M, K, label_smoothing=2), RuntimeError, "label_smoothing"),
    (lambda: F.cross_entropy("a", K), TypeError, "argument 'input'"),
    (lambda: F.nll_loss(M, [0, 1, 2]), TypeError, "argument 'target'"),
    (lambda: F.embedding(K, "a"), TypeError, "argument 'weight'"),
    (lambda: F.silu("a"), TypeError, "Tensor"),
    (lambda: F.soft_margin_loss(2, M), TypeError, "argument 'input'"),
    (lambda: F.triplet_margin_loss(M[0], M, M), RuntimeError, "dimensions"),
    (lambda: F.margin_ranking_loss(M[0], M, M), RuntimeError, "dimensions"),
    (lambda: torch.is_nonzero(None), TypeError, "must be Tensor"),
    (lambda: torch.gradient("a"), TypeError, "must be Tensor"),
    (lambda: M.dim_order(ambiguity_check="a"), TypeError, "ambiguity_check"),
    (lambda: M[:1].dim_order(ambiguity_check=True), RuntimeError, "several orders"),
    (lambda: torch.set_autocast_enabled("cpu", 2), TypeError, "bool"),
    (lambda: torch.result_type(M, third=M), TypeError, "third"),
    (lambda: torch.permute(K, 0), TypeError, "tuple of ints, not int"),
    (lambda: torch.flip(M, 0, 1), TypeError, "dims"),
    (lambda: torch.tile(M, 2), TypeError, "tuple of ints, not int"),
    (lambda: M.index_copy(0, tensor([-1]), M[:1]), IndexError, "negative"),
    (lambda: M.index_reduce(0, tensor([3]), M[:1], "amax"), IndexError, "out of range"),
    (lambda: M.index_reduce(0, tensor([-1]), M[:1], "amax"), IndexError, "out of range"),
    (lambda: F.binary_cross_entropy(M / 9, M), RuntimeError, "elements of target"),
    (lambda: torch.tril_indices(2, 2, dtype=torch.float32), NotImplementedError, "int64"),
    (lambda: torch.autograd.backward(M, grad_tensors=M, grad_variables=M), RuntimeError, "both"),
    (lambda: torch.autograd.grad([], []), RuntimeError, "^grad: got no inputs"),
    (lambda: torch.arange(2, dtype=torch.bool), NotImplementedError, "^arange: not implemented for dtype bool"),
    (lambda: F.max_pool2d(M[None], 5), RuntimeError, "^max_pool2d: "),
    (lambda: torch.manual_seed(2**70), ValueError, "^manual_seed: got"),
    (lambda: torch.Generator().manual_seed(-(2**63) - 1), ValueError, "^manual_seed: got"),
    (lambda: torch.Generator().manual_seed(1.5), RuntimeError, "^manual_seed: got a float"),
    (lambda: torch.set_rng_state(torch.zeros(3, dtype=torch.uint8)), RuntimeError, "^set_state: got"),
    (lambda: torch.set_rng_state(torch.zeros(16)), TypeError, "^set_state: got"),
    (lambda: torch.func.jvp(torch.abs, (K,), (K,)), ValueError, "^jvp: got an input of argand.int64"),
    (lambda: torch.func.jacfwd(torch.abs)(K), ValueError, "^jacfwd: got an input of argand.int64"),
    (lambda: torch.func.hessian(torch.sum)(K), ValueError, "^jacfwd: got an input of argand.int64"),
    (lambda: M.type(5), TypeError, "^type: got 5"),
    (lambda: M.type(float), ValueError, "^type: got <class 'float'>"),
    (lambda: torch.nn.Sequential(torch.nn.ReLU())["a"], TypeError, "str"),
    (lambda: torch.nn.Sequential(torch.nn.ReLU())["0"], TypeError, "str"),
    (lambda: torch.nn.ModuleList([torch.nn.ReLU()])[0.5], TypeError, "float"),
    (lambda: torch.nn.ParameterList([M]).__setitem__("0", M), TypeError, "str"),
    (lambda: torch.func.functional_call(torch.nn.Linear(3, 1), "a", M), ValueError, "^functional_call: got 'a'"),
    (lambda: torch.func.functional_call(torch.nn.Linear(3, 1), 5, M), ValueError, "^functional_call: got 5"),
    (lambda: torch.func.functional_call(torch.nn.Linear(3, 1), ["a"], M), ValueError, "^functional_call: got"),
    (lambda: torch.autocast(5), ValueError, "^autocast: got device_type 5"),
    (lambda: torch.compile(torch.abs, mode="foo"), RuntimeError, "^compile: got mode 'foo'"),
    (lambda: torch.compile(torch.abs, backend="foo"), RuntimeError, "^compile: got backend 'foo'"),
    (lambda: torch.compile(torch.abs, mode="default", options={"a": 1}), RuntimeError, "^compile: got both"),
    *(
        (call, RuntimeError, "without overflow")
        for call in (
            lambda: M.half().pow(1e5), lambda: M.half().pow_(70000), lambda: M.bfloat16() ** 1e300, lambda: M.half().scatter(0, ONE, 1e5), lambda: M[0].half().scatter_(0, ONE[0], 1e300, reduce="add"),
            lambda: M.half().index_fill_(0, K, 1e5), lambda: M[:1, 0].half().index_fill(0, K[:1], 1e300), lambda: torch.arange(1j),
        )
    ),
    (lambda: F.softmax(K, 5), IndexError, "^softmax: Dimension out of range"),
    (lambda: torch.log_softmax(K, -2), IndexError, "^log_softmax: Dimension out of range"),
    (lambda: torch.median(K > 0), NotImplementedError, "^median: not implemented for bool"),
    (lambda: torch.nanmedian(K > 0), NotImplementedError, "^nanmedian: not implemented for bool"),
    (lambda: F.embedding_bag(K, M, tensor([0, -2])), IndexError, "negative offsets"),
    (lambda: torch.arange(3, dtype=torch.complex64), NotImplementedError, "^arange: not implemented for complex64"),
    (lambda: (K > 0).index_fill(0, K[:1], 1j), RuntimeError, "^index_fill: Converting complex Scalar"),
    (lambda: F.prelu(M.half(), torch.ones(1)), RuntimeError, "^prelu: got self of float16 and weight of float32"),
    (lambda: torch.ones(()).index_select(0, K), RuntimeError, "^index_select: got 3 indices for a 0-d tensor"),
    (lambda: torch.take_along_dim(torch.ones(()), ONE, 1), RuntimeError, "^take_along_dim: input and indices"),
    (lambda: torch.svd(M[0], compute_uv=False), RuntimeError, "^svd: input should have at least 2"),
    (lambda: torch.addr(M[None], M[0], M[0]), RuntimeError, "^addr: expected self of at most 2"),
    (lambda: torch.chain_matmul(M[0], M[0]), RuntimeError, "^chain_matmul: expected matrices"),
    (lambda: torch.linalg.vector_norm(M, 1j), RuntimeError, "non-complex scalar"),
    (lambda: torch.broadcast_shapes((-1,), (3,)), ValueError, "none below 0"),
    (lambda: F.cross_entropy(torch.ones(()), K), IndexError, "^cross_entropy"),
    (lambda: F.interpolate(M[0], 2), NotImplementedError, "interpolate"),
    (lambda: F.interpolate(M[0], scale_factor=2), NotImplementedError, "interpolate"),
    (lambda: F.gelu(M, "tanh"), TypeError, "gelu"),
    *((lambda mode=mode: F.interpolate(torch.ones(1, 0, 4, 4), (3, 3), mode=mode), RuntimeError, "only the batch to be empty") for mode in ("nearest", "bilinear", "bicubic")),
    *((lambda shape=shape: F.pad(torch.ones(shape), (1, 1), "reflect"), RuntimeError, "only the batch to be empty") for shape in ((0, 4), (1, 0, 4))),
    (lambda: F.conv1d(torch.ones(1, 1, 4), torch.ones(0, 1, 2)), RuntimeError, "kernel of positive sizes"),
    (lambda: F.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 0)), RuntimeError, "kernel of positive sizes"),
]  # fmt: skip


@pytest.mark.parametrize("call, expected", RESULTS)
def test_forms_are_taken(call, expected):
    np.testing.assert_allclose(call().detach().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("call, error, text", ERRORS)
def test_errors_are_of_the_recorded_kind(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_dtypes_by_keyword():
    assert torch.promote_types(type1=torch.int64, type2=torch.float32) == torch.float32
    assert torch.result_type(tensor=M, other=1j) == torch.complex64
    assert torch.can_cast(from_=torch.int64, to=torch.float32)


def test_flags_may_be_none():
    assert not torch.zeros(2, requires_grad=None).requires_grad
    assert not torch.arange(3.0, requires_grad=None, pin_memory=None).requires_grad


def test_asarray_and_its_history():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    assert torch.asarray(x) is x
    plain = torch.asarray(x, requires_grad=False)
    assert not plain.requires_grad and plain.data_ptr() == x.data_ptr()
    assert torch.asarray(y, requires_grad=True) is y and y.requires_grad
    assert not torch.asarray(x * 2, dtype=torch.float64, requires_grad=False).requires_grad


def test_dimension_order():
    image = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert image.dim_order() == image.dim_order(ambiguity_check=True) == (0, 2, 3, 1)
    formats = [torch.contiguous_format, torch.channels_last]
    assert M[:1].dim_order(ambiguity_check=[torch.contiguous_format]) == (0, 1)
    with pytest.raises(RuntimeError, match="name one"):
        torch.zeros(1, 1, 4, 4).dim_order(ambiguity_check=formats)


def test_softmax_chooses_a_dimension_with_a_warning():
    for shape, dim in (((4,), 0), ((3, 4), 1), ((2, 3, 4), 0), ((2, 2, 3, 4), 1)):
        x = torch.rand(shape)
        with pytest.warns(UserWarning, match="dim=None"):
            assert F.softmax(x).tolist() == F.softmax(x, dim).tolist()


@pytest.mark.parametrize(
    "dropout, shape, kept",
    [(F.dropout1d, (40, 5), 1), (F.dropout1d, (8, 9, 5), 2), (F.dropout2d, (8, 9, 5), 2), (F.dropout2d, (8, 9, 3, 5), 2),
     (F.dropout3d, (40, 2, 3, 5), 1), (F.dropout3d, (8, 9, 2, 3, 5), 2)],
)  # fmt: skip
def test_dropout_of_channels(dropout, shape, kept):
    found = dropout(torch.ones(shape), 0.5).numpy().reshape(*shape[:kept], -1)
    assert (found == found[..., :1]).all()
    assert set(np.unique(found)) == {0.0, 2.0}


def test_gradients_by_the_old_name():
    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward([x * 2], grad_variables=[tensor([1.0, 3.0])])
    assert x.grad.tolist() == [2, 6]


def test_scaler_of_cuda_takes_its_scale_first():
    assert torch.cuda.amp.GradScaler(16.0, enabled=False).get_scale() == 1.0
    assert issubclass(torch.cuda.amp.GradScaler, torch.amp.GradScaler)


def test_autocast_is_set_by_keyword():
    try:
        torch.set_autocast_enabled(enabled=True)
        assert torch.is_autocast_enabled()
    finally:
        torch.set_autocast_enabled(False)
    assert not torch.is_autocast_enabled()


def test_copies_of_tensors_and_gradients_with_history_warn() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="clone"):
        assert not torch.tensor(x).requires_grad
    with pytest.warns(UserWarning, match="create_graph"):
        (x * x).sum().backward(create_graph=True)
    with pytest.warns(UserWarning, match="create_graph"):
        torch.autograd.backward((x * x).sum(), create_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.asarray(x, copy=True).requires_grad
        torch.as_tensor(x)
        torch.autograd.grad((x * x).sum(), x, create_graph=True)


def test_arrays_over_tensors() -> None:
    quotient = np.array([1.0, 6.0]) / tensor([2.0, 3.0])
    assert isinstance(quotient, torch.Tensor)
    np.testing.assert_allclose(quotient.numpy(), [0.5, 2.0])
    with pytest.raises(TypeError):
        np.ones(2) - tensor([1.0, 2.0])


def test_gradients_of_extremes_at_nan() -> None:
    for operator in (torch.max, torch.min):
        t = tensor([1.0, np.nan, np.nan], requires_grad=True)
        operator(t).backward()
        assert t.grad.tolist() == [0, 0.5, 0.5]


def test_gradients_of_the_biases_of_norms_are_functions_of_the_input() -> None:
    weight, bias = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    for norm in (
        lambda x: F.layer_norm(x, (3,), weight, bias),
        lambda x: F.batch_norm(x, None, None, weight, bias, training=True),
        lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3), weight, bias),
    ):
        x = M.clone().requires_grad_()
        (slope,) = torch.autograd.grad(norm(x).sum(), bias, create_graph=True)
        assert slope.requires_grad and slope.tolist() == [3.0, 3.0, 3.0]
        assert not torch.autograd.grad(slope.sum(), x)[0].any()


def test_gradients_of_running_products_take_linear_time() -> None:
    x = torch.ones(200_000, requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad is not None and x.grad[:2].tolist() == [200_000.0, 199_999.0]


@pytest.mark.parametrize("zeros", [(), (1,), (1, 3), (0,), (4,)])
def test_gradients_of_running_products_at_zeros(zeros) -> None:
    x = torch.arange(1.0, 11.0, dtype=torch.float64).reshape(2, 5) / 4
    x[0, list(zeros)] = 0.0
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: x.cumprod(1), (x,))
    assert torch.autograd.gradgradcheck(lambda x: x.cumprod(1), (x,))
    weight = torch.arange(10.0, dtype=torch.float64).reshape(2, 5) - 3.3

    def loss(x):
        return (x.cumprod(1) * weight).sum()

    grads = []
    for f in (loss, torch.compile(loss, backend="aot_eager")):
        y = x.detach().clone().requires_grad_()
        f(y).backward()
        grads.append(y.grad.tolist())
    assert grads[0] == grads[1]


@pytest.mark.parametrize(
    "call, x, expected",
    [
        (torch.std, [1e30, 0.0], [0.5**0.5, -(0.5**0.5)]),
        (torch.linalg.vector_norm, [1e30], [1.0]),
        (lambda x: torch.linalg.vector_norm(x.reshape(2, 1), dim=1), [-1e-30, 0.0], [-1.0, 0.0]),
        (torch.logit, [0.0, -0.0, 0.5, 1.0, -1.0], [INF, INF, 4.0, INF, NAN]),
        (lambda x: torch.logit(x, 0.1), [-0.0, 0.5, NAN], [0.0, 4.0, NAN]),
        (lambda x: torch.div(x.bfloat16(), tensor([2.0, 0.0, 0.0]).bfloat16(), rounding_mode="trunc"), [0.0, 0.0, -2.0], [0.0, 0.0, 0.0]),
        (lambda x: F.gaussian_nll_loss(x, tensor([1.0, 1.0]), tensor([INF, 1.0]), reduction="sum"), [0.0, 0.0], [0.0, -1.0]),
        (lambda x: F.gaussian_nll_loss(tensor([1.0]), tensor([1.0]), x, eps=0.5), [0.25], [1.0]),
    ],
)  # fmt: skip
def test_gradients_at_the_ends_are_as_recorded(call, x, expected):
    x = tensor(x, requires_grad=True)
    torch.autograd.backward(call(x).sum())
    torch.testing.assert_close(x.grad, tensor(expected), equal_nan=True)


def test_what_is_compared_in_place_has_gradients_of_zeros():
    for method in ("eq_", "ne_", "lt_", "ge_", "logical_and_"):
        x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
        y = getattr(x * 1, method)(torch.ones(3))
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [0, 0, 0]
        other = torch.ones(3, requires_grad=True)
        y = getattr(torch.zeros(3), method)(other)
        assert torch.autograd.grad(y.sum(), other)[0].tolist() == [0, 0, 0]
        base = x * 1
        getattr(base[1:], method)(torch.ones(2))
        assert torch.autograd.grad(base.sum(), x)[0].tolist() == [1, 0, 0]


def test_steps_that_refuse_gradients():
    x = torch.tensor([1.5, -2.5], requires_grad=True)
    for y in (x // 2, torch.heaviside(x, torch.zeros(2)), (x * 1).floor_divide_(2)):
        assert y.requires_grad
        with pytest.raises(RuntimeError, match="derivative"):
            y.sum().backward()
    y = torch.div(x, 2, rounding_mode="floor")
    assert y.grad_fn.name() == "DivBackward2"
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [0, 0]
    divisor = torch.tensor([2.0, 3.0], requires_grad=True)
    (first,) = torch.autograd.grad((x % divisor).sum(), divisor, create_graph=True)
    assert first.tolist() == [0, 1]
    assert torch.autograd.grad(first.sum(), divisor)[0].tolist() == [0, 0]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_polygamma_in_place_has_the_gradient_of_polygamma(n):
    x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    (got,) = torch.autograd.grad((x * 1).polygamma_(n).sum(), x)
    (wanted,) = torch.autograd.grad(torch.polygamma(n, x).sum(), x)
    assert got.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("shape", "bias"),
    [
        ((3, 4), (1, 5)),
        ((3, 4), (3, 5)),
        ((2, 3, 4), (1, 5)),
        ((2, 3, 4), (2, 3, 1)),
        ((4,), (1, 5)),
    ],
)
def test_biases_of_linear_are_broadcast(shape, bias):
    torch.manual_seed(0)
    x, w, b = torch.randn(shape), torch.randn(5, 4), torch.randn(bias, requires_grad=True)
    wanted = x @ w.T + (b if len(shape) > 1 else b[0])
    (gradient,) = torch.autograd.grad(wanted.sin().sum(), b)
    for f in (F.linear, torch.compile(F.linear)):
        got = f(x, w, b)
        torch.testing.assert_close(got, wanted)
        torch.testing.assert_close(torch.autograd.grad(got.sin().sum(), b)[0], gradient)
    with pytest.raises(RuntimeError):
        F.linear(x, w, torch.ones(1, 1, 1, 5))


def test_in_place_operators_are_functions_where_pytorch_has_them():
    assert torch.abs_ is torch.ops.abs_ and torch.clamp_(torch.ones(1), max=0).item() == 0
    assert not hasattr(torch, "add_") and "add_" not in dir(torch) and "abs_" in dir(torch)
    assert torch.ops.add_(torch.ones(1), 1).item() == 2


def test_out_that_is_the_only_view_of_its_memory_grows():
    x = torch.arange(6.0)
    out = torch.zeros(4).reshape(2, 2)
    assert torch.sin(x, out=out) is out and out.tolist() == x.sin().tolist()
    out = torch.zeros(2)[:]
    torch.cat([x, x], out=out)
    assert out.tolist() == [*x.tolist(), *x.tolist()]
    whole = torch.zeros(4)
    out = whole.reshape(2, 2)
    with pytest.raises(RuntimeError, match="share"):
        torch.sin(x, out=out)
    assert whole.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "f", [lambda x: x.prod(dtype=torch.float64), lambda x: x.prod(0, dtype=torch.float64)]
)
def test_products_of_the_real_parts_of_complex_numbers(f):
    x = torch.tensor([2 + 1j, 3 - 2j])
    assert gradient(f, x).tolist() == [3, 2]


def test_weights_of_losses_are_tensors():
    scores, classes = torch.ones(3, 4), torch.tensor([0, 1, 2])
    for f in (F.nll_loss, F.cross_entropy):
        with pytest.raises(TypeError):
            f(scores, classes, weight=0.3)
    with pytest.raises(TypeError):
        F.binary_cross_entropy_with_logits(scores, scores, weight=0.3)


def test_cross_entropy_of_one_score():
    with pytest.raises(RuntimeError):
        F.cross_entropy(tensor(1.0), tensor(0))
    for target in (tensor([0]), tensor(1.0)):
        with pytest.raises(IndexError):
            F.cross_entropy(tensor(1.0), target)


def test_vecdot_of_16_bits_sums_exact_products():
    x = torch.linspace(-2, 3, 999).half()
    assert torch.linalg.vecdot(x, x).equal(torch.dot(x, x))
    with pytest.raises(RuntimeError):
        torch.linalg.vecdot(x, x[:1])


def test_vecdot_takes_one_dtype():
    with pytest.raises(RuntimeError):
        torch.linalg.vecdot(torch.ones(3), torch.ones(3, dtype=torch.float64))


def test_scatter_of_a_source_with_too_few_dimensions():
    for f in (M.scatter, M.scatter_add):
        with pytest.raises(RuntimeError):
            f(0, torch.tensor([[0]]), tensor(1.0))
        with pytest.raises(IndexError):
            f(0, torch.tensor([[0]]), torch.ones(1))
