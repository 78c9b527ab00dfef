"""The logic of generated operator tests: a `check_*` function per property; what is called is in optest_calls.py.

References work on float64 (or the integer dtype itself) and are compared after rounding to the result's dtype.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest

from tools.codegen import dtypes as dt
from tools.codegen.runtime.optest_calls import (
    Call,
    Case,
    Value,
    mixed_calls,
    pointwise_calls,
    rounded,
    sample_calls,
    tensors,
    with_tensors,
)
from tools.codegen.runtime.under_test import (
    DEVICE,
    array_of,
    aten,
    c10,
    dtype_name,
    dtype_object,
    make,
    on_device,
)
from tools.codegen.samples import FLOAT_TENSORS

Array: TypeAlias = Any  # a NumPy array


TOLERANCE = {
    "float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-9, "complex64": 3e-5, "complex128": 1e-9,
}  # fmt: skip
_COMPUTE = {
    "bfloat16": "float64",
    "float16": "float64",
    "float32": "float64",
    "complex64": "complex128",
    **dict.fromkeys(dt.INTEGRAL, "int64"),
}
_BY_VALUE = ("sort", "topk")  # where equal elements are, is not defined
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 30.0, -30.0, 1e30, -1e30, np.inf, -np.inf, np.nan)


# ---- the operator under test ---------------------------------------------------------------------------------------


def operator(case: Case) -> Callable[..., Any]:
    return getattr(aten().ops, case.parsed.name)  # type: ignore[no-any-return]


def run(case: Case, call: Call, seed: int = 0) -> Any:
    """The operator's results; where it has none, the tensors that it changed."""
    given = on_device(case.parsed, call.args, call.kwargs)
    found = drawn(case, operator(case), *call.args, seed=seed, **given)
    return found if case.parsed.results else changed(case, call)


def drawn(
    case: Case, function: Callable[..., Any], *args: Any, seed: int = 0, **kwargs: Any
) -> Any:
    """What the function returns, its random numbers from the start of `seed`: so are forms of one operator comparable."""
    if case.random:
        c10().manual_seed(seed)
    return function(*args, **kwargs)


def changed(case: Case, call: Call) -> list[Any]:
    """The tensors of the call that the operator writes to."""
    given = zip(case.parsed.arguments, call.args, strict=False)
    return [t for a, x in given if a.type.mutable for t in as_list(x)]


# ---- comparing -----------------------------------------------------------------------------------------------------


def wide(v: Value) -> Array:
    """The values in the type that references compute in."""
    return v.array.astype(_COMPUTE.get(v.dtype, v.dtype))


def reference_result(case: Case, call: Call, exact: bool = True) -> Any:
    """The reference on wide types (integers wrap when they are rounded back). Not `exact`: on the dtype itself, which
    overflows where the operator's own arithmetic does."""
    assert case.reference is not None

    inputs = with_tensors(call, wide if exact else lambda v: v.array.astype(v.dtype))
    with np.errstate(all="ignore"):
        return case.reference(*inputs.args, **inputs.kwargs)


def as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def compare(case: Case, actual: Any, expected: Any, dtype: str) -> None:
    """Shapes and values of all results, after rounding the expected ones."""
    actual, expected = as_list(actual), as_list(expected)
    if dtype == "bool" and case.name in _BY_VALUE:
        actual, expected = actual[:1], expected[:1]
    assert len(actual) == len(expected), (
        f"{case.name}: {len(actual)} results, expected {len(expected)}"
    )
    for got, want in zip(actual, expected, strict=True):
        name = dtype_name(got)
        want = np.asarray(want)
        assert tuple(got.shape) == want.shape, (
            f"{case.name}: shape {tuple(got.shape)}, expected {want.shape}"
        )
        values = array_of(got)
        with np.errstate(all="ignore"):
            rounded_want = rounded(want, name) if name in dt.FLOATING else want.astype(name)
        if name not in TOLERANCE:
            np.testing.assert_array_equal(values, rounded_want, err_msg=case.name)
            continue
        tolerance = case.tolerance.get(name, case.tolerance.get(dtype, TOLERANCE.get(name, 0.0)))
        if name == "float64" and dtype in ("float32", "complex64"):
            tolerance = TOLERANCE["float32"]
        np.testing.assert_allclose(
            values, rounded_want, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=case.name
        )


# ---- which tests -----------------------------------------------------------------------------------------------------


def parameters(cases: Sequence[Case], check: str) -> list[Any]:
    """pytest parameters: (case, dtype) for every operator that the check applies to."""
    found = []
    for case in cases:
        for dtype in _dtypes_for(case, check):
            reason = case.skips.get("all") or case.skips.get(check)
            marks = [pytest.mark.skip(reason=reason)] if reason else []
            found.append(pytest.param(case, dtype, id=f"{case.name}-{dtype}", marks=marks))
    return found


def each(cases: Sequence[Case], check: str) -> Callable[[Callable[..., None]], Any]:
    """Decorates the test of a check, which is run with each of its parameters; where there are none it is no test."""
    found = parameters(cases, check)
    return pytest.mark.parametrize("case,dtype", found) if found else lambda test: None


def _first(case: Case, *wanted: str) -> tuple[str, ...]:
    return next(((d,) for d in wanted if d in case.dtypes), case.dtypes[:1])


def _dtypes_for(case: Case, check: str) -> tuple[str, ...]:
    one = _first(case, "float32", "float64", "complex64", "int64", "bool")
    has_calls = case.pointwise or bool(case.samples) or "all" in case.skips
    if check == "reference":
        return case.dtypes if case.reference is not None and has_calls else ()
    if check in ("broadcast", "empty", "zero_dim"):
        return one if case.pointwise and case.reference is not None else ()
    if check == "special":
        floats = tuple(d for d in case.dtypes if d in ("float32", "float64"))
        return floats if case.pointwise and case.reference is not None else ()
    if check == "noncontiguous":
        return one if has_calls and case.kind != "factory" else ()
    if check == "out":
        return one if "out" in case.variants and has_calls else ()
    if check == "inplace":
        return one if ("inplace" in case.variants or case.inplace) and has_calls else ()
    if check == "promotion":
        return one if case.pointwise and case.promote != "self" else ()
    if check in ("meta", "errors", "shapes"):
        return one if has_calls else ()
    if check == "composite":
        return one if case.kind == "composite" and has_calls else ()
    if check == "seeds":
        return case.dtypes if case.random and has_calls and case.reference is None else ()
    if check == "moments":
        return one if case.moments is not None else ()
    if not has_calls or not _differentiates(case):
        return ()
    return tuple(
        d
        for d in ("float64", "complex128")
        if d in case.dtypes and (d == "float64" or case.pointwise)
    ) or (("float64",) if not case.pointwise and "float32" in case.dtypes else ())


def _differentiates(case: Case) -> bool:
    """Has it a differentiable argument that is a tensor of floats in some sample?"""
    if case.pointwise or "all" in case.skips:
        return bool(case.differentiable)
    positional = [a.name for a in case.parsed.arguments if not a.kwonly]
    return any(
        name in case.differentiable and isinstance(text, str) and text[:2] in FLOAT_TENSORS
        for args, kwargs in case.samples
        for name, x in [*zip(positional, args, strict=False), *kwargs.items()]
        for text in as_list(x)
    )


# ---- the checks --------------------------------------------------------------------------------------------------------


def check_reference(case: Case, dtype: str) -> None:
    """Values, shapes and dtypes of every sample; functions and methods agree."""
    for call in sample_calls(case, dtype):
        actual = run(case, tensors(call))
        compare(case, actual, reference_result(case, call), dtype)
        if case.pointwise:
            expected = result_dtype(case, dtype)
            assert dtype_name(actual) == expected, (
                f"{case.name}: {dtype_name(actual)}, expected {expected}"
            )
        first = tensors(call)
        if "method" in case.variants and first.args and isinstance(call.args[0], Value):
            method = getattr(first.args[0], case.parsed.name)
            by_method = (
                drawn(case, method, *first.args[1:], **first.kwargs) if callable(method) else method
            )
            for a, b in zip(as_list(array_of(by_method)), as_list(array_of(actual)), strict=True):
                np.testing.assert_array_equal(a, b)


def check_broadcast(case: Case, dtype: str) -> None:
    n = len(case.operands)
    shapes: list[list[tuple[int, ...]]] = [
        [(2, 1, 4)] + [(3, 1)] * (n - 1),
        [(4,)] + [(3, 4)] * (n - 1),
        [(3, 4)] + [()] * (n - 1),
    ]
    if n == 1:
        shapes = [[(2, 3, 4)], [(1,)], [(5, 1, 2)]]
    for chosen in shapes:
        for call in pointwise_calls(case, dtype, chosen):
            compare(case, run(case, tensors(call)), reference_result(case, call), dtype)


def check_empty(case: Case, dtype: str) -> None:
    for shape in ((0,), (2, 0, 3)):
        for call in pointwise_calls(case, dtype, [shape] * len(case.operands)):
            result = run(case, tensors(call))
            assert tuple(result.shape) == shape


def check_zero_dim(case: Case, dtype: str) -> None:
    for call in pointwise_calls(case, dtype, [()] * len(case.operands)):
        compare(case, run(case, tensors(call)), reference_result(case, call), dtype)


def layouts(v: Value) -> list[Callable[[], Any]]:
    """Ways to hold the same values in memory that is not contiguous: transposed, strided, with an offset."""

    def transposed() -> Any:
        return make(v.array.T, v.dtype).permute(list(range(v.array.ndim))[::-1])

    def strided() -> Any:
        wide = np.zeros((*v.array.shape, 2), v.array.dtype)
        wide[..., 0] = v.array
        return make(wide, v.dtype).select(v.array.ndim, 0)

    def shifted() -> Any:
        padded = np.concatenate([np.zeros(3, v.array.dtype), v.array.reshape(-1)])
        return make(padded, v.dtype).narrow(0, 3, v.array.size).view(list(v.array.shape))

    return [transposed, strided, shifted]


def check_noncontiguous(case: Case, dtype: str) -> None:
    """The layout of the arguments does not change the values."""
    for call in sample_calls(case, dtype)[:3]:
        if case.parsed.name in ("as_strided", "view", "is_contiguous"):
            return  # the meaning depends on the layout
        expected = run(case, tensors(call))
        for kind in range(3):
            held = with_tensors(call, lambda v, k=kind: layouts(v)[k]())  # type: ignore[misc]
            try:
                actual = run(case, held)
            except RuntimeError as e:
                if "view" in case.traits and re.search("not compatible|stride|offset", str(e)):
                    continue  # such a layout has no view
                raise
            for a, b in zip(as_list(array_of(actual)), as_list(array_of(expected)), strict=True):
                np.testing.assert_allclose(
                    a,
                    b,
                    rtol=TOLERANCE.get(dtype, 0),
                    atol=TOLERANCE.get(dtype, 0),
                    err_msg=case.name,
                )


def check_special(case: Case, dtype: str) -> None:
    """NaN, infinities, signed zeros and huge numbers, in every combination of two operands."""
    n = len(case.operands)
    grid = list(itertools.product(_SPECIAL, repeat=min(n, 2)))
    columns = [np.array([row[min(i, 1)] for row in grid]) for i in range(n)]
    call = pointwise_calls(case, dtype, [(len(grid),)] * n, plain=True)[0]
    values = iter(columns)

    def special(v: Value) -> Value:
        column = next(values)
        if v.array.ndim == 0:
            return v
        return Value(column.astype(bool) if v.dtype == "bool" else column.astype(v.dtype), v.dtype)

    replaced = with_tensors(call, special)
    with np.errstate(all="ignore"):
        expected = np.asarray(reference_result(case, replaced, exact=False))
        actual = array_of(run(case, tensors(replaced)))
        if dtype == "float32" and expected.dtype.kind == "f":
            expected = expected.astype(np.float32)
    bad = (
        np.isnan(actual) != np.isnan(expected)
        if actual.dtype.kind == "f"
        else np.zeros(actual.shape, bool)
    )
    assert not bad.any(), (
        f"{case.name}: NaN where none is expected (or none where one is) for {[grid[i] for i in np.flatnonzero(bad)[:5]]}"
    )
    np.testing.assert_allclose(
        actual,
        expected,
        rtol=1e-3 if dtype == "float32" else 1e-6,
        atol=1e-6,
        equal_nan=True,
        err_msg=case.name,
    )


def check_out(case: Case, dtype: str) -> None:
    """out= gives the same values into the given tensor, which is returned and resized; a wrong dtype is refused, where there is one."""
    call = sample_calls(case, dtype)[0]
    ready = tensors(call)
    expected = as_list(run(case, ready))
    outs = [aten().empty([0], dtype=e.dtype, device=e.device) for e in expected]
    given = outs[0] if len(outs) == 1 else tuple(outs)
    returned = as_list(drawn(case, operator(case), *ready.args, **ready.kwargs, out=given))
    for out, got, want in zip(outs, returned, expected, strict=True):
        assert got is out
        assert tuple(out.shape) == tuple(want.shape)
        if DEVICE == "cpu":
            np.testing.assert_array_equal(array_of(out), array_of(want))
        else:  # sums by atomic additions: their last bits differ from run to run
            np.testing.assert_allclose(array_of(out), array_of(want), rtol=1e-5, atol=1e-6)
    # Factories, scans, sums and products compute in the dtype of out.
    makes = case.parsed.argument("dtype") is not None and (
        case.parsed.argument("device") is not None
        or case.kind == "scan"
        or (case.kind == "reduction" and case.result == "accumulate")
    )
    refuses = not makes and "any_out" not in case.traits
    if dtype_name(expected[0]) in dt.FLOATING and len(outs) == 1 and refuses:
        with pytest.raises((RuntimeError, TypeError)):
            operator(case)(
                *ready.args, **ready.kwargs, out=aten().empty([0], dtype=c10().int64, device=DEVICE)
            )


def check_inplace(case: Case, dtype: str) -> None:
    """x.op_() changes x to the functional result, returns x and counts a version; a result that is too large is refused."""
    if case.inplace:
        _check_changes(case, dtype)
        return
    call = sample_calls(case, dtype)[0]
    ready = tensors(call)
    expected = array_of(run(case, ready))
    x = ready.args[0]
    version = x._version
    returned = drawn(case, getattr(x, case.parsed.name + "_"), *ready.args[1:], **ready.kwargs)
    assert returned is x
    assert x._version == version + 1
    np.testing.assert_array_equal(array_of(x), expected.astype(array_of(x).dtype))
    if (
        case.pointwise
        and len(case.operands) > 1
        and all(a.type.base != "bool" for a in case.operands)
    ):
        small = tensors(
            pointwise_calls(case, dtype, [(1,)] + [(3,)] * (len(case.operands) - 1), plain=True)[0]
        )
        before = array_of(small.args[0]).copy()
        with pytest.raises(RuntimeError):
            getattr(small.args[0], case.parsed.name + "_")(*small.args[1:], **small.kwargs)
        np.testing.assert_array_equal(array_of(small.args[0]), before)


def _check_changes(case: Case, dtype: str) -> None:
    """An operator that is in-place itself returns its first argument, counts versions, and leaves what it only reads."""
    for call in sample_calls(case, dtype):
        ready = tensors(call)
        written = changed(case, ready)
        given = [t for x in (*ready.args, *ready.kwargs.values()) for t in as_list(x)]
        inputs = [t for t in given if isinstance(t, c10().Tensor)]
        read = [t for t in inputs if not any(t is w for w in written)]
        versions, before = [w._version for w in written], array_of(read)
        returned = drawn(case, operator(case), *ready.args, **ready.kwargs)
        assert returned is (written[0] if case.parsed.results else None)
        assert all(w._version > v for w, v in zip(written, versions, strict=True)), case.name
        for a, b in zip(array_of(read), before, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=case.name)


_PAIRS = (
    ("float32", "float64"), ("int64", "float32"), ("int32", "int64"), ("uint8", "int8"), ("bool", "int64"),
    ("float16", "bfloat16"), ("float32", "complex64"), ("bool", "bool"), ("int64", "int64"), ("float64", "complex64"),
    ("float32", "float32"), ("complex64", "complex64"),
)  # fmt: skip


def expected_dtype(case: Case, computation: str) -> str | None:
    """The result's dtype; None where the operator does not take the computation's."""
    if case.promote == "float" and dt.category(computation) < 2:
        computation = "float32"
    if computation not in case.dtypes:
        return None
    return result_dtype(case, computation)


def result_dtype(case: Case, computation: str) -> str:
    """Of a pointwise operator."""
    if case.result == "real":
        return dt.real_dtype(computation)
    return "bool" if case.result == "bool" else computation


def check_promotion(case: Case, dtype: str) -> None:
    """Result dtypes of mixed operands, of numbers, and of 0-d tensors."""
    n = len(case.operands)
    checked = 0
    for a, b in _PAIRS:
        computed = a if n == 1 else dt.promote_types(a, b)
        expected = expected_dtype(case, computed)
        if expected is None or (case.promote == "none" and a != b):
            continue
        if case.promote == "numbers" and "bool" in (a, b):
            continue
        call = pointwise_calls(case, a, [(3,)] * n, plain=True)[0]
        other = pointwise_calls(case, b, [(3,)] * n, plain=True)[0]
        args = tuple(
            y if i and isinstance(x, Value) else x
            for i, (x, y) in enumerate(zip(call.args, other.args, strict=True))
        )
        if case.operands[0].name == "condition":
            args = (call.args[0], call.args[1], *other.args[2:])
            if n == 1:
                continue
        result = run(case, tensors(Call(args, call.kwargs)))
        assert dtype_name(result) == expected, (
            f"{case.name}({a}, {b}): {dtype_name(result)}, expected {expected}"
        )
        checked += 1
    assert checked
    takes_number = (
        n == 2 and case.operands[1].type.is_operand and case.operands[0].name != "condition"
    )
    for tensor_dtype, number in (
        ("int64", 2),
        ("int64", 2.5),
        ("float16", 2),
        ("float32", 2.5),
        ("float64", 2),
        ("bool", 2),
    ):
        if not takes_number:
            break
        if case.promote == "numbers" and tensor_dtype == "bool":
            continue
        kind = "float32" if isinstance(number, float) else "int64"
        weak = kind if dt.category(kind) > dt.category(tensor_dtype) else tensor_dtype
        expected = expected_dtype(case, weak)
        if expected is None:
            continue
        call = pointwise_calls(case, tensor_dtype, [(3,)] * n, plain=True)[0]
        result = run(case, tensors(Call((call.args[0], number, *call.args[2:]), call.kwargs)))
        assert dtype_name(result) == expected, (
            f"{case.name}({tensor_dtype}, {number}): {dtype_name(result)}, expected {expected}"
        )


def check_meta(case: Case, dtype: str) -> None:
    """On the meta device: the same shapes, dtypes and (for views) strides, without data; of tensors of two dtypes too, where they are taken."""
    plain = sample_calls(case, dtype)
    for call in plain + [m for c in plain for m in mixed_calls(c)]:
        try:
            real = as_list(run(case, tensors(call)))
        except RuntimeError:
            if any(call is c for c in plain):
                raise
            continue
        if not sizes(call):
            if case.parsed.argument("device") is None:
                return
            meta = as_list(operator(case)(*call.args, **call.kwargs, device="meta"))
        else:
            held = with_tensors(
                call,
                lambda v: aten().empty(
                    list(v.array.shape), dtype=dtype_object(v.dtype), device="meta"
                ),
            )
            meta = as_list(run(case, held))
        assert len(meta) == len(real)
        for m, r in zip(meta, real, strict=True):
            assert m.is_meta
            assert tuple(m.shape) == tuple(r.shape), (
                f"{case.name}: meta {tuple(m.shape)}, real {tuple(r.shape)}"
            )
            assert m.dtype == r.dtype, f"{case.name}: meta {m.dtype}, real {r.dtype}"
            if case.kind == "view":
                assert m.stride() == r.stride()


def check_errors(case: Case, dtype: str) -> None:
    """Wrong calls raise typed errors that name the operator or the argument."""
    call = tensors(sample_calls(case, dtype)[0])
    function = operator(case)
    with pytest.raises(TypeError):
        function(*call.args, **call.kwargs, no_such_argument=1)
    with pytest.raises(TypeError):
        function(*([object()] * max(len(call.args), 1)))
    if case.pointwise and len(case.operands) > 1:
        wrong = tensors(
            pointwise_calls(case, dtype, [(2, 3)] + [(4,)] * (len(case.operands) - 1), plain=True)[
                0
            ]
        )
        with pytest.raises(RuntimeError, match="size|shape|broadcast"):
            function(*wrong.args, **wrong.kwargs)


def _differentiable_call(case: Case, call: Call) -> tuple[Callable[..., Any], list[Any]]:
    """The operator as a function of the tensors that have gradients, and these."""
    inputs: list[Any] = []
    hermitian: set[int] = set()
    positional = [a.name for a in case.parsed.arguments if not a.kwonly]
    written = [a.name for a in case.parsed.arguments if a.type.mutable]

    def place(name: str, x: Any) -> Any:
        if isinstance(x, Value):
            t = make(x.array, x.dtype)
            if name in case.differentiable and (x.dtype in dt.FLOATING or x.dtype in dt.COMPLEX):
                t.requires_grad_(True)
                inputs.append(t)
                if x.hermitian:
                    hermitian.add(len(inputs) - 1)
                return len(inputs) - 1, t, name in written
            return t
        return [place(name, v) for v in x] if isinstance(x, list) else x

    args = [place(positional[i], x) for i, x in enumerate(call.args)]
    kwargs = {k: place(k, v) for k, v in call.kwargs.items()}

    def pick(x: Any, given: Sequence[Any]) -> Any:
        if isinstance(x, tuple):
            t = given[x[0]].clone() if x[2] else given[x[0]]
            return (t + aten().conj(t.transpose(-2, -1))) * 0.5 if x[0] in hermitian else t
        return [pick(v, given) for v in x] if isinstance(x, list) else x

    def function(*given: Any) -> Any:
        results = as_list(
            run(
                case,
                Call(
                    tuple(pick(a, given) for a in args),
                    {k: pick(v, given) for k, v in kwargs.items()},
                ),
            )
        )
        floating = [
            r for r in results if dtype_name(r) in dt.FLOATING + dt.COMPLEX and r.requires_grad
        ]
        return floating[0] if len(floating) == 1 else tuple(floating)

    return function, inputs


def _gradient_calls(case: Case, dtype: str) -> list[Call]:
    if case.pointwise:
        shapes = [(2, 3)] * len(case.operands)
        broadcast = [(2, 1)] + [(3,)] * (len(case.operands) - 1)
        return pointwise_calls(case, dtype, shapes) + pointwise_calls(
            case, dtype, broadcast, plain=True
        )
    return [c for c in sample_calls(case, dtype) if sum(sizes(c)) <= 300]


def sizes(call: Call) -> list[int]:
    """Numbers of elements of the tensors."""
    found: list[int] = []
    with_tensors(call, lambda v: found.append(v.array.size))
    return found


def _check_gradients(case: Case, dtype: str, check: Callable[..., Any]) -> None:
    checked = 0
    for call in _gradient_calls(case, dtype):
        function, inputs = _differentiable_call(case, call)
        if not inputs or 0 in sizes(call):
            continue
        outputs = as_list(function(*inputs))
        if any(o.numel() == 0 for o in outputs):
            continue
        if outputs:
            assert check(function, tuple(inputs))
        else:
            assert case.kind == "composite", f"{case.name}: nothing was differentiated"
            _check_constant(case, call)
        checked += 1
    assert checked, f"{case.name}: no sample was differentiated"


def _check_constant(case: Case, call: Call) -> None:
    """Results without a gradient do not change with the arguments: no gradient is zero."""

    def moved(v: Value) -> Value:
        changes = v.dtype in dt.FLOATING or v.dtype in dt.COMPLEX
        return Value(v.array + 1e-6, v.dtype) if changes else v

    before, after = (
        array_of(as_list(run(case, tensors(c)))) for c in (call, with_tensors(call, moved))
    )
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=case.name)


def check_gradcheck(case: Case, dtype: str) -> None:
    from argand_autograd import gradcheck

    _check_gradients(case, dtype, gradcheck)


def check_gradgradcheck(case: Case, dtype: str) -> None:
    from argand_autograd import gradgradcheck

    _check_gradients(case, dtype, gradgradcheck)
