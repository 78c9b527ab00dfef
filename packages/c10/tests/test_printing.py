"""Printing, as PyTorch prints: the expected texts were recorded from it, with its name replaced."""

import pytest

import argand_c10 as c10
from argand_c10 import _C
from argand_c10.printing import PrintOptions, get_printoptions

T = c10


@pytest.fixture(autouse=True)
def default_options():
    yield
    c10.set_printoptions(profile="default")


# fmt: off
RECORDED = [
    (
        'T.tensor([[1.0, 2.0], [3.0, 4.0]])',
        """tensor([[1., 2.],
        [3., 4.]])""",
    ),
    (
        'T.tensor([[1.5, 2.25], [3.0, 4.0]])',
        """tensor([[1.5000, 2.2500],
        [3.0000, 4.0000]])""",
    ),
    (
        'T.tensor(1)',
        """tensor(1)""",
    ),
    (
        'T.tensor(2.5)',
        """tensor(2.5000)""",
    ),
    (
        'T.tensor(True)',
        """tensor(True)""",
    ),
    (
        'T.tensor(1 + 2j)',
        """tensor(1.+2.j)""",
    ),
    (
        'T.tensor([])',
        """tensor([])""",
    ),
    (
        'T.tensor([[]])',
        """tensor([], size=(1, 0))""",
    ),
    (
        'T.tensor([], dtype=T.int64)',
        """tensor([], dtype=argand.int64)""",
    ),
    (
        'T.tensor([[], []], dtype=T.int32)',
        """tensor([], size=(2, 0), dtype=argand.int32)""",
    ),
    (
        'T.tensor([True, False])',
        """tensor([ True, False])""",
    ),
    (
        'T.tensor([1, -20, 300])',
        """tensor([  1, -20, 300])""",
    ),
    (
        'T.tensor([1, 2], dtype=T.int32)',
        """tensor([1, 2], dtype=argand.int32)""",
    ),
    (
        'T.tensor([1.0], dtype=T.float64)',
        """tensor([1.], dtype=argand.float64)""",
    ),
    (
        'T.tensor([1.0, 0.1], dtype=T.bfloat16)',
        """tensor([1.0000, 0.1001], dtype=argand.bfloat16)""",
    ),
    (
        'T.tensor([1.0, 0.1], dtype=T.float16)',
        """tensor([1.0000, 0.1000], dtype=argand.float16)""",
    ),
    (
        "T.tensor([0.0, float('nan'), 1.0])",
        """tensor([0., nan, 1.])""",
    ),
    (
        "T.tensor([float('inf'), -float('inf')])",
        """tensor([inf, -inf])""",
    ),
    (
        "T.tensor([0.5, float('nan'), -float('inf')])",
        """tensor([0.5000,    nan,   -inf])""",
    ),
    (
        'T.tensor([1e-5, 1.0])',
        """tensor([1.0000e-05, 1.0000e+00])""",
    ),
    (
        'T.tensor([1e-3, 1.5])',
        """tensor([1.0000e-03, 1.5000e+00])""",
    ),
    (
        'T.tensor([1e9, 1.0])',
        """tensor([1.0000e+09, 1.0000e+00])""",
    ),
    (
        'T.tensor([1e3, 1.0])',
        """tensor([1000.,    1.])""",
    ),
    (
        'T.tensor([1001.0, 1.0])',
        """tensor([1.0010e+03, 1.0000e+00])""",
    ),
    (
        'T.tensor([1.5, 1600.0])',
        """tensor([1.5000e+00, 1.6000e+03])""",
    ),
    (
        'T.tensor([123456789.0])',
        """tensor([1.2346e+08])""",
    ),
    (
        'T.tensor([0.0001])',
        """tensor([1.0000e-04])""",
    ),
    (
        'T.tensor([0.00009])',
        """tensor([9.0000e-05])""",
    ),
    (
        'T.tensor([-1.5, 22.25])',
        """tensor([-1.5000, 22.2500])""",
    ),
    (
        'T.tensor(1e-7)',
        """tensor(1.0000e-07)""",
    ),
    (
        'T.tensor([1e38, 1e-38])',
        """tensor([1.0000e+38, 1.0000e-38])""",
    ),
    (
        'T.tensor([1 + 2j, -3.5 - 0.25j])',
        """tensor([ 1.0000+2.0000j, -3.5000-0.2500j])""",
    ),
    (
        'T.tensor([10 + 2j, -3 - 4j])',
        """tensor([10.+2.j, -3.-4.j])""",
    ),
    (
        "T.tensor([complex('nan'), 1 + 1j])",
        """tensor([nan+0.j, 1.+1.j])""",
    ),
    (
        'T.tensor([1e-6 + 1j])',
        """tensor([1.0000e-06+1.j])""",
    ),
    (
        'T.tensor([1j], dtype=T.complex128)',
        """tensor([0.+1.j], dtype=argand.complex128)""",
    ),
    (
        'T.tensor(list(range(1001)))',
        """tensor([   0,    1,    2,  ...,  998,  999, 1000])""",
    ),
    (
        'T.tensor([float(i) for i in range(1001)])',
        """tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])""",
    ),
    (
        'T.tensor([[i * 100.0 + j for j in range(50)] for i in range(30)])',
        """tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 4.7000e+01, 4.8000e+01,
         4.9000e+01],
        [1.0000e+02, 1.0100e+02, 1.0200e+02,  ..., 1.4700e+02, 1.4800e+02,
         1.4900e+02],
        [2.0000e+02, 2.0100e+02, 2.0200e+02,  ..., 2.4700e+02, 2.4800e+02,
         2.4900e+02],
        ...,
        [2.7000e+03, 2.7010e+03, 2.7020e+03,  ..., 2.7470e+03, 2.7480e+03,
         2.7490e+03],
        [2.8000e+03, 2.8010e+03, 2.8020e+03,  ..., 2.8470e+03, 2.8480e+03,
         2.8490e+03],
        [2.9000e+03, 2.9010e+03, 2.9020e+03,  ..., 2.9470e+03, 2.9480e+03,
         2.9490e+03]])""",
    ),
    (
        'T.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])',
        """tensor([[[1, 2],
         [3, 4]],

        [[5, 6],
         [7, 8]]])""",
    ),
    (
        'T.tensor([0.1] * 20)',
        """tensor([0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000,
        0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000, 0.1000,
        0.1000, 0.1000])""",
    ),
    (
        'T.tensor(list(range(60)))',
        """tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
        36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53,
        54, 55, 56, 57, 58, 59])""",
    ),
    (
        'T.tensor([1.0, 2.0], requires_grad=True)',
        """tensor([1., 2.], requires_grad=True)""",
    ),
    (
        'T.tensor([0.125] * 8, requires_grad=True)',
        """tensor([0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250],
       requires_grad=True)""",
    ),
    (
        'T.tensor([0.125] * 7, dtype=T.float64, requires_grad=True)',
        """tensor([0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250],
       dtype=argand.float64, requires_grad=True)""",
    ),
]
# fmt: on


@pytest.mark.parametrize("code, text", RECORDED, ids=[code[:40] for code, _ in RECORDED])
def test_recorded(code, text):
    assert repr(eval(code)) == text
    assert str(eval(code)) == text


def test_options():
    x = c10.tensor([1.23456789, 100.0])
    c10.set_printoptions(precision=2)
    assert repr(x) == "tensor([  1.23, 100.00])"
    c10.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.23e+00, 1.00e+02])"
    assert repr(c10.tensor([0.0, -0.0])) == "tensor([0., -0.])"
    c10.set_printoptions(profile="default", sci_mode=False)
    assert repr(c10.tensor([1e-6, 1.0])) == "tensor([0.0000, 1.0000])"
    c10.set_printoptions(profile="default", threshold=4, edgeitems=1)
    assert repr(c10.tensor([1, 2, 3, 4, 5])) == "tensor([1,  ..., 5])"
    assert (
        repr(c10.tensor([[1, 2, 3], [4, 5, 6]])) == "tensor([[1,  ..., 3],\n        [4,  ..., 6]])"
    )
    c10.set_printoptions(profile="full")
    assert "..." not in repr(c10.tensor(list(range(1200))))
    c10.set_printoptions(profile="default", linewidth=30)
    assert (
        repr(c10.tensor(list(range(12))))
        == "tensor([ 0,  1,  2,  3,  4,\n         5,  6,  7,  8,  9,\n        10, 11])"
    )
    assert get_printoptions().linewidth == 30
    c10.set_printoptions(profile="short")
    assert get_printoptions() == PrintOptions(precision=2, edgeitems=2)
    with pytest.raises(ValueError, match="profile 'tiny'"):
        c10.set_printoptions(profile="tiny")


def test_summary_reads_the_corners():
    x = c10.tensor([[i * 100 + j for j in range(100)] for i in range(100)])
    assert repr(x) == (
        "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
        "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
        "        ...,\n"
        "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
        "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
        "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])"
    )
    assert _C._edge_list(x, 1) == [[0, 99], [9900, 9999]]


def test_meta():
    assert (
        repr(_C._empty_strided((2, 3), None, c10.float32, "meta"))
        == "tensor(..., device='meta', size=(2, 3))"
    )
    assert repr(_C._empty_strided((2,), None, c10.int64, "meta")) == (
        "tensor(..., device='meta', size=(2,), dtype=argand.int64)"
    )


def test_default_dtype_is_left_out():
    c10.set_default_dtype(c10.float64)
    try:
        assert repr(c10.tensor([1.5])) == "tensor([1.5000])"
        assert (
            repr(c10.tensor([1.5], dtype=c10.float32)) == "tensor([1.5000], dtype=argand.float32)"
        )
        assert repr(c10.tensor([1j])) == "tensor([0.+1.j])"
    finally:
        c10.set_default_dtype(c10.float32)


def test_subclasses_and_parameters():
    class Sub(c10.Tensor):
        pass

    assert repr(c10.tensor([1]).as_subclass(Sub)) == "Sub([1])"
    assert repr(c10.Parameter(c10.tensor([1.0]))) == (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    )
    assert str(c10.Parameter(c10.tensor([1.0]))) == repr(c10.Parameter(c10.tensor([1.0])))


def test_named_results():
    op = c10.define("print::pair(Tensor self) -> (Tensor values, Tensor indices)")
    c10.register_kernel("print::pair", "cpu", lambda x: (x, c10.tensor(0)))
    assert repr(op(c10.tensor([1.5]))) == (
        "argand.return_types.print::pair(\nvalues=tensor([1.5000]),\nindices=tensor(0))"
    )


def test_strided_views_print_their_elements():
    base = c10.tensor([[1, 2, 3], [4, 5, 6]])
    assert (
        repr(_C._as_strided(base, (3, 2), (1, 3)))
        == "tensor([[1, 4],\n        [2, 5],\n        [3, 6]])"
    )
    assert repr(_C._as_strided(base, (2,), (2,), 1)) == "tensor([2, 4])"


def test_format():
    assert f"{c10.tensor(3)}" == "3" and f"{c10.tensor(3):>4}" == "   3"
    assert f"{c10.tensor([1, 2])}" == "tensor([1, 2])"
