"""NumPy in traced programs: what is known while tracing is computed then."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from tracing import check, fresh, run, torch  # noqa: F401

import argand_c10
import argand_dynamo as dynamo
from argand_c10.records import collect

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7
PERIODS = np.arange(4.0)


def test_functions_of_numbers() -> None:
    def f(x: Any) -> Any:
        parts = np.cumsum([1, 2, 1])
        rows = [x[i] * float(w) for i, w in enumerate(np.linspace(0, 1, 3))]
        y = x.reshape(int(np.prod(x.shape[:1])), -1)[:, : np.int32(2)] * np.sqrt(2.0)
        text = f"{np.float32(0.5)!r} {np.log(2.0):.3f}"
        kinds = isinstance(np.exp(1.0), float), type(np.int64(1) + 1), np.finfo(np.float16).bits
        return rows, y, text, kinds, np.floor(2.5), [int(p) for p in parts], x.sum(np.int64(1))

    outcome = check(f, X)
    assert not outcome.breaks


@pytest.mark.parametrize(
    "number",
    [np.float32(0.1), np.float64(0.1), np.int64(3), np.uint8(3), np.complex64(1j)],
    ids=repr,
)
def test_numbers_beside_tensors(number: Any) -> None:
    def f(x: Any, i: Any) -> Any:
        return x * number, number * x, i + number, i == number

    check(f, X, torch.arange(4, dtype=argand_c10.int64))


def test_arrays_of_the_trace() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[1] = 5
        b = a[1:]
        b += 1
        a.sort()
        kept = torch.tensor(a.tolist()) + argand_c10.from_numpy(np.asarray(a, np.float32).copy())
        y = x[:, np.array([0, 2])]
        y[np.array([1])] = 0
        return x[:, :3] * kept, y, float(a[-1]), a is np.asarray(a), int(np.argmax(a))

    check(f, X)


def test_arrays_leave_the_trace() -> None:
    def returned(x: Any) -> Any:
        return x + 1, np.arange(3).tolist(), np.arange(3)[1]

    def broken(x: Any) -> Any:
        a = np.arange(3)
        b = a[1:]
        if x.sum() > 0:
            b[0] = 7
        return x + 1, a.tolist()

    def shared(x: Any) -> Any:
        a = np.zeros(2, np.float32)
        t = argand_c10.from_numpy(a)
        a[0] = 9
        return x[0, :2] + t

    def written(x: Any) -> Any:
        a = np.zeros(2, np.float32)
        argand_c10.from_numpy(a).add_(1)
        return x * float(a.sum())

    def in_part(x: Any) -> Any:
        a = np.zeros(2, np.float32)
        b = a[:]
        t = argand_c10.from_numpy(a)
        b[0] = 9
        return x[0, :2] + t

    def outside(x: Any) -> Any:
        t = argand_c10.from_numpy(np.asarray(PERIODS)).add_(1)
        first = float(PERIODS[0])
        t.sub_(1)
        return x + first, np.asarray(PERIODS) is PERIODS

    check(returned, X)
    for f in (broken, shared, written, in_part, outside):
        run(f, (X,), (X,))


def test_arrays_from_outside_are_guarded() -> None:
    holder = types.SimpleNamespace(scale=np.sqrt(2.0), table=np.arange(4, dtype=np.float32))
    kind = types.SimpleNamespace(kind=np.dtype("float32"))

    def f(x: Any) -> Any:
        power = 2 if kind.kind == np.float32 else 3
        return x * holder.scale * float(holder.table[1:].sum()) ** power * PERIODS[2]

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)

    def same() -> None:
        assert torch.equal(compiled(X), f(X))

    same()
    holder.scale = np.float64(3)
    same()
    holder.table[2] += 1
    same()
    holder.table = holder.table.astype(np.float64)
    same()
    kind.kind = np.dtype("float64")
    same()


def test_arrays_from_outside_beside_tensors_on_their_memory() -> None:
    """`own` is an array's memory, `lent` that of a tensor."""
    own = np.arange(4, dtype=np.float32)
    holder = types.SimpleNamespace(
        own=own[1:3], tensor=argand_c10.from_numpy(own), lent=torch.zeros(3)
    )
    holder.array = holder.lent.numpy()[::2]

    def f(x: Any) -> Any:
        before = float(holder.own[0]) + float(holder.array[0])
        holder.tensor.add_(1)
        holder.lent.add_(1)
        return x * before, float(holder.own[0]), float(holder.array[0])

    compiled = dynamo.compile(f, backend="eager")
    one = torch.ones(1)
    for n in range(3):
        assert compiled(one) == (torch.ones(1) * (1 + 2 * n), 2 + n, 1 + n)


def test_arrays_from_outside_are_written_to_by_python() -> None:
    table = np.arange(4.0)

    def f(x: Any) -> Any:
        part = table[1:]
        part[0] += 1
        return x * float(table[1])

    compiled = dynamo.compile(f, backend="eager")
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [2, 3, 4]


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_the_trace_are_returned(order: Any) -> None:
    def f(x: Any) -> Any:
        a = np.arange(6.0)
        a[0] = 7
        b = a.reshape(2, 3, order=order)
        d = {"b": b, "again": b}
        return (
            x + 1,
            d["b"] is d["again"],
            b.tolist(),
            np.array(3),
            np.array([True]),
            np.array([], np.int8),
            d,
        )

    def results(function: Any) -> Any:
        *found, d = function(X)
        arrays = [*found[3:], d["b"]]
        assert d["b"] is d["again"] and all(a.flags.writeable for a in arrays)
        return [found[1:3], *[(a.tolist(), a.dtype, a.shape, a.strides) for a in arrays]]

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    assert results(compiled) == results(f)
    compiled(X)[-1]["b"][:] = 0
    assert results(compiled) == results(f)

    def shared(x: Any) -> Any:
        a = np.arange(4)
        return x, a, a[1:], np.asarray(PERIODS)[1:]

    _, a, part, periods = dynamo.compile(shared, backend="eager")(X)
    a[1] = 9
    assert part[0] == 9 and np.shares_memory(periods, PERIODS)


def tensors_of(x: Any, a: Any) -> Any:
    shared, double = argand_c10.as_tensor(a), argand_c10.as_tensor(a, dtype=argand_c10.float32)
    return (
        x.sum() + argand_c10.from_numpy(a),
        shared,
        double,
        torch.tensor(a),
        a.dtype == np.float64,
        a.ndim,
    )


def test_tensors_of_arrays_from_outside_are_inputs() -> None:
    calls = [(X, np.full(n, 0.5 + n)) for n in (3, 3, 3, 4, 5, 6, 7, 8, 9, 10)]
    assert run(tensors_of, *calls, fullgraph=True).recompiles == 1
    holder = types.SimpleNamespace(table=np.zeros(3))

    def f(x: Any) -> Any:
        return x.sum() * argand_c10.from_numpy(holder.table)

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    with collect() as records:
        for n in range(12):
            holder.table = holder.table + n
            assert torch.equal(compiled(X), f(X))
    assert not records
    table = np.zeros(3)
    dynamo.compile(tensors_of, backend="eager", fullgraph=True)(X, table)[1][0] = 5
    assert table[0] == 5


def test_tensors_of_arrays_from_outside_that_are_written_to() -> None:
    def f(x: Any, a: Any) -> Any:
        t = argand_c10.from_numpy(a)
        t.add_(1)
        return x.sum() * t, float(argand_c10.from_numpy(a).sum()), a

    arrays = [np.arange(3.0), np.arange(3.0)]
    compiled = dynamo.compile(f, backend="eager")
    for _ in range(3):
        want, got = f(X, arrays[0]), compiled(X, arrays[1])
        assert torch.equal(want[0], got[0]) and want[1] == got[1] and got[2] is arrays[1]
        assert arrays[0].tolist() == arrays[1].tolist()
    fixed = np.ones(3)
    fixed.setflags(write=False)
    assert dynamo.compile(lambda a: argand_c10.as_tensor(a) * 2, backend="eager")(
        fixed
    ).tolist() == [2, 2, 2]


def test_values_of_arrays_that_change() -> None:
    holder = types.SimpleNamespace(table=np.zeros(3))
    compiled = dynamo.compile(lambda x: x * float(holder.table.sum()) + 1, backend="eager")
    with collect() as records:
        for n in range(12):
            holder.table = holder.table + n
            assert compiled(torch.ones(1)).item() == float(holder.table.sum()) + 1
    codes = [record.code for record in records]
    assert "GB0019" in codes and "RC0002" not in codes


def test_products_of_symbolic_sizes() -> None:
    def f(x: Any) -> Any:
        n = np.prod(x.shape)
        kinds = (
            type(n),
            type(3 * n),
            type(x.shape[0] + n),
            type(int(n)),
            isinstance(n, int),
            type(-n),
        )
        return (
            x.reshape(n) * n,
            2 * n + x.shape[0],
            -n,
            x.reshape(int(n)),
            torch.zeros(n - 1),
            kinds,
        )

    calls = [(torch.ones(n, 3),) for n in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11)]
    assert run(f, *calls, fullgraph=True).recompiles == 1


def test_what_numpy_raises() -> None:
    def f(x: Any) -> Any:
        try:
            return np.arange(3).reshape(2, 2)
        except ValueError as error:
            return x + 1, str(error)

    check(f, X)


def test_random_numbers_and_given_arrays_are_left_to_python() -> None:
    generator = np.random.RandomState(0)

    def f(x: Any, a: Any) -> Any:
        return x * a.mean() + np.sin(x.numpy()).sum()

    compiled = dynamo.compile(f, backend="eager")
    with collect() as records:
        for a in (np.ones(3), np.zeros(3), np.arange(3)):
            assert torch.equal(compiled(X, a), f(X, a))
    assert {record.code for record in records} <= {"GB0003", "GB0019"}
    compiled = dynamo.compile(lambda x: x * generator.rand(), backend="eager")
    one = torch.ones(1)
    assert compiled(one).item() != compiled(one).item()
