"""Operator calls replayed on both libraries: results, dtypes, shapes, gradients, changed inputs and kinds of errors agree."""

from __future__ import annotations

import re
import zlib
from types import ModuleType
from typing import Any

import network_calls
import numpy as np
import operator_calls
import pytest
import shape_calls
import torch
import window_calls

import argand

DTYPES = {
    "b": "bool", "u1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "f2": "float16",
    "bf": "bfloat16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
RTOL = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 2e-5,
    "float64": 1e-10,
    "complex64": 2e-5,
    "complex128": 1e-10,
}
DIFFERENTIABLE = ("f4", "f8", "c8", "c16", "f2", "bf")

# What the peer refuses for want of a kernel, a form or an overload, ours may have.
MAY_ACCEPT = re.compile(
    r"not implemented for|does not support|not supported|unsupported|derivative for"
    r"|unexpected keyword argument 'out'|INTERNAL ASSERT|Expected isFloatingType|must be Tensor, not (int|float|bool)|has no attribute '\w+[a-z]_'"
)

# What ours may refuse where the peer refuses it, too.
NO_DERIVATIVE = re.compile("the derivative of this operator is not implemented")

# Agreed differences, as patterns of "expression | inputs", with their reasons.
DIFFERENT = {
    r"torch\.pow\(x, -3\) \| x=[ib]": "integers to negative powers: the peer refuses, ours rounds to zero",
    r"(x|2) \*\* (x|y) \| x=c8": "gradients of complex powers",
    r"torch\.square\(x\) \| x=b:": "arithmetic on bool is refused",
    r"digamma\(.*x=f8": "the peer's trigamma, its gradient, has nine digits",
    r"torch\.atan2\(x, y\) \| x=u1": "the peer's gradient overflows in uint8",
    r"torch\.a(max|min)\(x, 0\) \| x=f8:0": "an empty range is a matter of shape, not of an index",
    r"x\['[ab]'\]": "an index of the wrong type is an IndexError",
    r"F\.batch_norm\(x, None, None\) ": "a missing argument is a ValueError",
    r"x\[\[\[": "the peer warns that nested lists will be tensors, as ours are",
    r"tensor_split\(torch\.tensor\(2, dtype=torch\.int32": "numbers in tensors are numbers",
    r"take_along_dim\(k \+ 5": "the peer reads out of bounds",
    r"index_put\(\(None": "None stands for a whole dimension",
    r"\] = ([\[(]1, 2|np\.)": "sequences and NumPy's values are taken as tensors",
    r"x\[:, 1:\] = x\[:, :-1\]": "overlapping copies: ours reads all before it writes",
    r"as_strided_scatter": "the peer's gradient is not that of its result",
    r"index_reduce\(0, torch\.tensor\(\[5\]": "a bad index is reported as by scatter_reduce",
    r"dtype='float32'": "names of dtypes stand for them",
    r"masked_fill\(x > 0, torch\.tensor\(2\.0\)\) \| x=i8": "values of a wider category are refused",
    r"grid_sample\(x, g, 'bicubic'.* s=f4": "gradients of cancelling terms, which float64 compares",
    r"torch\.norm\([xr], 0": "the peer has no gradient of counts, ours is zero",
    r"torch\.tensor\(\['a'\]\)": "text is of the wrong type: a TypeError",
}

ALL_CALLS = [
    *operator_calls.calls(),
    *shape_calls.calls(),
    *window_calls.calls(),
    *network_calls.calls(),
]


def array_of(spec: str) -> tuple[str, np.ndarray, bool]:
    """Values of `dtype:sizes@low..high~`, always the same for the same spec."""
    code, _, rest = spec.partition(":")
    strided = rest.endswith("~") or "~@" in rest
    sizes, _, bounds = rest.replace("~", "").partition("@")
    shape = [int(n) for n in sizes.split(",") if n]
    low, high = (float(x) for x in bounds.split("..")) if bounds else (-2.0, 2.0)
    generator = np.random.default_rng(zlib.crc32(spec.encode()))
    if code == "b":
        return code, generator.integers(0, 2, shape).astype(bool), strided
    if code[0] in "iu":
        low = max(low, 0) if code[0] == "u" else low
        return (
            code,
            generator.integers(int(np.ceil(low)), int(high) + 1, shape).astype(DTYPES[code]),
            strided,
        )
    values = generator.uniform(low, high, shape)
    if code[0] == "c":
        values = values + 1j * generator.uniform(low, high, shape)
    return code, np.asarray(values), strided


def make_input(library: ModuleType, spec: str, requires_grad: bool) -> Any:
    code, array, strided = array_of(spec)
    dtype = getattr(library, DTYPES[code])
    tensor = library.from_numpy(array).to(dtype).clone()
    if strided and tensor.ndim >= 2:
        tensor = tensor.transpose(0, 1).contiguous().transpose(0, 1)
    return tensor.requires_grad_() if requires_grad and code in DIFFERENTIABLE else tensor


def run_call(library: ModuleType, expression: str, inputs: str) -> tuple[Any, dict[str, Any]]:
    """The result, and everything else that can be seen: inputs after the call, gradients of leaves."""
    changes = bool(
        re.search(r"(?<![=<>!])=(?![=])", re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", expression))
    ) or bool(re.search(r"\w_\(", expression))
    with_gradient = "out=" not in expression
    leaves = {
        name.rstrip("!"): make_input(library, spec, with_gradient and not name.endswith("!"))
        for name, _, spec in (item.partition("=") for item in inputs.split())
    }
    names = {name: leaf.clone() if changes else leaf for name, leaf in leaves.items()}
    scope = {"torch": library, "F": library.nn.functional, "np": np, **names}
    if changes and not re.match(r"[\w.\[\], :]+\(", expression):
        exec(expression, scope)
        result = scope["x"]
    else:
        result = eval(expression, scope)
    seen = (
        {f"{name} after": scope[name] for name in leaves} if changes or "out=" in expression else {}
    )
    try:
        differentiate(library, result, with_gradient)
    except (NotImplementedError, RuntimeError) as error:
        may_refuse = MAY_ACCEPT if library is torch else NO_DERIVATIVE
        if may_refuse.search(str(error)):
            return result, seen
        raise
    grads = {f"gradient of {name}": leaf.grad for name, leaf in leaves.items()}
    return result, {**seen, **grads}


def differentiate(library: ModuleType, result: Any, wanted: bool) -> None:
    """Adds up all differentiable results with fixed weights and runs backward."""
    tensors = result if isinstance(result, tuple | list) else [result]
    total = None
    for tensor in tensors:
        if (
            not isinstance(tensor, library.Tensor)
            or not wanted
            or not tensor.requires_grad
            or not tensor.numel()
        ):
            continue
        if library is torch:
            tensor = tensor.resolve_conj()
        real = library.view_as_real(tensor) if tensor.is_complex() else tensor
        weights = np.linspace(0.5, 1.5, real.numel()).reshape(tuple(real.shape))
        part = (real.to(library.float64) * library.from_numpy(weights)).sum()
        total = part if total is None else total + part
    if total is not None:
        total.backward()


def dtype_name(value: Any) -> str:
    return str(value).split(".")[-1]


def assert_same(ours: Any, theirs: Any, where: str, least_rtol: float = 0.0) -> None:
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, argand.Tensor), f"{where}: got {type(ours)}"
        assert dtype_name(ours.dtype) == dtype_name(theirs.dtype), where
        assert tuple(ours.shape) == tuple(theirs.shape), where
        assert ours.requires_grad == theirs.requires_grad, f"{where}: requires_grad"
        if theirs.device.type == "meta":
            return
        name = dtype_name(theirs.dtype)
        a, b = (as_array(t, name) for t in (ours, theirs))
        rtol = max(RTOL.get(name, 0.0), least_rtol)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 2 if rtol else 0, err_msg=where)
    elif isinstance(theirs, torch.dtype | torch.device):
        assert dtype_name(ours) == dtype_name(theirs), where
    elif isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_array_equal(ours, theirs)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-5, nan_ok=True), where
    else:
        assert ours == theirs, where


def as_array(tensor: Any, dtype: str) -> np.ndarray:
    tensor = tensor.detach()
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.resolve_conj()
    # NumPy has no bfloat16.
    return (tensor.float() if dtype == "bfloat16" else tensor).numpy()


def attempt(library: ModuleType, expression: str, inputs: str) -> tuple[Any, Exception | None]:
    try:
        return run_call(library, expression, inputs), None
    except Exception as error:
        return None, error


def builtin_kind(error: Exception) -> type:
    """The nearest class of the error that Python itself defines."""
    return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


@pytest.mark.parametrize(
    ("expression", "inputs"), ALL_CALLS, ids=[f"{e} | {i}"[:120] for e, i in ALL_CALLS]
)
@pytest.mark.filterwarnings("ignore")
def test_call(expression, inputs):
    for pattern, reason in DIFFERENT.items():
        if re.search(pattern, f"{expression} | {inputs}"):
            pytest.skip(reason)
    theirs, their_error = attempt(torch, expression, inputs)
    ours, our_error = attempt(argand, expression, inputs)
    if their_error is not None:
        if our_error is None:
            assert MAY_ACCEPT.search(str(their_error)), (
                f"ours accepts what the peer refuses: {their_error}"
            )
            return
        kind = builtin_kind(their_error)
        if not MAY_ACCEPT.search(str(their_error)):
            assert isinstance(our_error, kind), f"{our_error!r}; the peer raises {their_error!r}"
        assert str(our_error)
        return
    if our_error is not None:
        raise our_error
    assert_same(ours[0], theirs[0], "result")
    # A gradient is as exact as the coarsest operand of the computation.
    names = [DTYPES[code] for code in re.findall(r"=(\w+):", inputs)]
    if isinstance(theirs[0], torch.Tensor):
        names.append(dtype_name(theirs[0].dtype))
    coarsest = max((RTOL.get(name, 0.0) for name in names), default=0.0)
    for key, value in theirs[1].items():
        if ours[1][key] is None and value is not None and key.startswith("gradient"):
            assert not value.any(), f"{key} is missing"  # no gradient is a gradient of zeros
        else:
            assert_same(ours[1][key], value, key, coarsest)


@pytest.mark.parametrize("expression", operator_calls.TWICE)
def test_second_derivatives(expression):
    found = []
    for library in (torch, argand):
        x = make_input(library, "f8:2,3,4,4", True)
        result = eval(expression, {"torch": library, "F": library.nn.functional, "x": x})
        (g,) = library.autograd.grad(result.sum(), x, create_graph=True)
        found.append((g, library.autograd.grad(g.sum(), x)[0]))
    (their_g, their_h), (our_g, our_h) = found
    assert_same(our_g, their_g, "gradient")
    assert_same(our_h, their_h, "second derivative")


def test_the_table_is_broad():
    assert len(ALL_CALLS) > 2000
