"""An element's result depends on its value only: not on the length, the offset, the strides, or where it falls in a vector."""

from __future__ import annotations

import pytest

import argand_aten as torch
import argand_c10 as c10

LENGTHS = range(131)
OFFSETS = range(0, 66)
BITS = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}
PARTS = {"complex64": "float32", "complex128": "float64"}

OPERATORS = {
    "exp": lambda x, y: torch.exp(x),
    "log": lambda x, y: torch.log(x),
    "tanh": lambda x, y: torch.tanh(x),
    "erf": lambda x, y: torch.erf(x),
    "sin": lambda x, y: torch.sin(x),
    "cos": lambda x, y: torch.cos(x),
    "sigmoid": lambda x, y: torch.sigmoid(x),
    "gelu": lambda x, y: torch.gelu(x),
    "rsqrt": lambda x, y: torch.rsqrt(x),
    "pow": lambda x, y: torch.pow(x, y),
    "pow of a number": lambda x, y: torch.pow(x, 2.7),
    "number to a pow": lambda x, y: torch.pow(1.3, x),
    "div": lambda x, y: torch.div(x, y),
    "div by a number": lambda x, y: torch.div(x, 0.7),
    "reciprocal": lambda x, y: torch.reciprocal(x),
    "atan2": lambda x, y: torch.atan2(x, y),
    "mul": lambda x, y: torch.mul(x, y),
    "sqrt": lambda x, y: torch.sqrt(x),
}  # fmt: skip

REAL = ("erf", "gelu", "atan2")
CASES = [(n, d) for n in OPERATORS for d in (*BITS, *PARTS) if not (n in REAL and d in PARTS)]

COUNT = LENGTHS[-1] + OFFSETS[-1]


def bits(tensor):
    """The elements' bits; every NaN is the same."""
    if tensor.is_complex():
        return bits(torch.real(tensor)) * 1000003 + bits(torch.imag(tensor))
    dtype = getattr(c10, BITS[str(tensor.dtype).split(".")[-1]])
    same = torch.where(torch.isnan(tensor), torch.full_like(tensor, 7.0), tensor).contiguous()
    return same.view(dtype)


def make_values(dtype, seed):
    """Ordinary, large, tiny and special values, none of them in the order of its size."""
    if dtype in PARTS:
        return torch.complex(*(make_values(PARTS[dtype], s) for s in (seed, seed + 11)))
    special = [
        0.0,
        -0.0,
        float("inf"),
        float("-inf"),
        float("nan"),
        1.0,
        -1.0,
        1e-40,
        88.7,
        -103.9,
        3e38,
        1e-5,
        709.7,
        -745.0,
    ]
    generator = c10.Generator()
    generator.manual_seed(seed)
    normal = torch.randn(COUNT, generator=generator, dtype=c10.float64) * 3
    values = [
        special[i // 5 % len(special)] if i % 5 == seed % 5 else v
        for i, v in enumerate(normal.tolist())
    ]
    return c10.tensor(values, dtype=c10.float64).to(getattr(c10, dtype))


def equal(a, b):
    return a.shape == b.shape and bool(torch.all(a == b))


@pytest.mark.parametrize("name, dtype", CASES)
def test_every_length_and_offset(name, dtype):
    operator = OPERATORS[name]
    x, y = make_values(dtype, 1), make_values(dtype, 2)
    alone = torch.stack([bits(operator(x[i], y[i])) for i in range(COUNT)])
    for length in LENGTHS:
        for offset in OFFSETS:
            part = slice(offset, offset + length)
            assert equal(bits(operator(x[part], y[part])), alone[part]), (
                f"length {length}, offset {offset}"
            )


@pytest.mark.parametrize("name, dtype", CASES)
def test_every_layout(name, dtype):
    operator = OPERATORS[name]
    x, y = make_values(dtype, 3)[:192], make_values(dtype, 4)[:192]
    alone = torch.stack([bits(operator(x[i], y[i])) for i in range(192)])
    for step in (2, 3, 7):
        assert equal(bits(operator(x[::step], y[::step])), alone[::step]), f"step {step}"
    for shape in ((12, 16), (16, 12), (3, 64), (64, 3), (192, 1)):
        a, b = x.reshape(shape), y.reshape(shape)
        expected = alone.reshape(shape)
        assert equal(bits(operator(a, b)), expected), f"shape {shape}"
        assert equal(bits(operator(a.t(), b.t())), expected.t()), f"shape {shape}, transposed"
        # Operands of different layouts, and one that is not contiguous at all.
        assert equal(bits(operator(a, b.t().contiguous().t())), expected), f"shape {shape}, mixed"
    wide = x.unsqueeze(1).expand(192, 5)
    assert equal(bits(operator(wide, y.unsqueeze(1))), alone.unsqueeze(1).expand(192, 5)), (
        "expanded"
    )


@pytest.mark.parametrize("dtype", sorted(BITS))
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "gelu"])
def test_many_threads(name, dtype):
    """A range long enough to be divided among threads, at lengths that no chunk divides."""
    operator = OPERATORS[name]
    x = make_values(dtype, 5)
    alone = bits(operator(x, x))
    for repeats, extra in ((1500, 0), (1500, 1), (2111, 77)):
        long = torch.cat([x.repeat(repeats), x[:extra]])
        expected = torch.cat([alone.repeat(repeats), alone[:extra]])
        assert equal(bits(operator(long, long)), expected), f"{repeats} times, and {extra}"


@pytest.mark.parametrize("dtype", sorted(BITS | PARTS))
@pytest.mark.parametrize("name", ["exp_", "log_", "tanh_", "sqrt_", "sin_", "div_", "pow_"])
def test_in_place_and_out(name, dtype):
    x, y = make_values(dtype, 6), make_values(dtype, 7)
    arguments = (y,) if name in ("div_", "pow_") else ()
    function = getattr(torch, name[:-1])
    expected = bits(function(x, *arguments))
    for length in (1, 15, 16, 17, 33, 130):
        for offset in (0, 1, 7, 40):
            part = slice(offset, offset + length)
            others = tuple(a[part] for a in arguments)
            target = x.clone()
            getattr(target[part], name)(*others)
            assert equal(bits(target[part]), expected[part])
            # Nothing beside the part is touched.
            assert equal(bits(target[: part.start]), bits(x[: part.start]))
            assert equal(bits(target[part.stop :]), bits(x[part.stop :]))
            out = torch.zeros_like(x)
            function(x[part], *others, out=out[part])
            assert equal(bits(out[part]), expected[part])
            assert not bool(torch.any(bits(out[part.stop :]) != 0))
