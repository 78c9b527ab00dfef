"""Python constructs: branches, loops, comprehensions, calls, closures, containers, text."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
import warnings
from typing import Any, NamedTuple

import pytest
from tracing import check, fresh, run, torch  # noqa: F401

import argand_dynamo as dynamo
from argand_c10 import Tensor

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7
Y = torch.ones(4) * 0.3
SCALE = 3


def test_straight_line() -> None:
    check(lambda x, y: (x + y).relu() * 2 - y / 3, X, Y)


def test_branches_on_constants_and_shapes() -> None:
    def f(x: Any, flag: bool, name: str) -> Any:
        if flag and x.shape[0] > 2:
            x = x + 1
        elif not flag:
            x = x - 1
        if name == "double":
            x = x * 2
        return x if x.dim() == 2 else None

    for flag in (True, False):
        for name in ("double", "other"):
            check(f, X, flag, name)


def test_warnings_are_given_while_the_function_is_traced() -> None:
    def told(x: Any, stacklevel: int) -> Any:
        warnings.warn(f"a row of {x.shape[0]}", DeprecationWarning, stacklevel=stacklevel)
        return x + 1

    def f(x: Any, stacklevel: int) -> Any:
        return told(x, stacklevel)

    compiled = dynamo.compile(f, backend=lambda module, inputs: module.forward, fullgraph=True)
    line = f.__code__.co_firstlineno
    for level, expected in ((1, line - 3), (2, line + 1)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                compiled(X, level)
        assert [(str(w.message), w.category, w.filename, w.lineno) for w in caught] == [
            ("a row of 3", DeprecationWarning, __file__, expected)
        ]


def test_warnings_that_are_errors_are_raised() -> None:
    def f(x: Any) -> Any:
        try:
            warnings.warn("mind this", stacklevel=1)
        except UserWarning as warning:
            return x + len(warning.args)
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(f, X)


def test_chained_comparisons_and_boolean_operators() -> None:
    def f(x: Any, n: int) -> Any:
        if 0 < n <= 5 < 10:
            x = x + 1
        y = n or 7
        z = n and x
        return x * y, z, not n, 1 < n != 3

    check(f, X, 4)
    check(f, X, 0)


def test_loops() -> None:
    def f(x: Any, n: int) -> Any:
        total = x
        for i in range(n):
            if i == 1:
                continue
            if i == 4:
                break
            total = total + i * x
        else:
            total = total - 100
        k = 0
        while k < 3:
            total = total * 1.5
            k += 1
        return total, k, i

    check(f, X, 3)
    check(f, X, 6)


def test_nested_loops_and_unpacking() -> None:
    def f(x: Any) -> Any:
        out = []
        for i, (a, b) in enumerate(zip([1, 2], ["u", "v"], strict=True), 1):
            for row in x:
                out.append((i, a, b, row * a))
        first, *middle, last = out
        (p, q), r = (1, 2), 3
        return first, len(middle), last, p + q + r

    check(f, X)


def test_comprehensions() -> None:
    def f(x: Any, names: list[str]) -> Any:
        scale = 2
        rows = [r * scale for r in x if r.dim() == 1]
        named = {n: x + i for i, n in enumerate(names)}
        lengths = {len(n) for n in names}
        nested = [[i * j for j in range(3)] for i in range(2)]
        return rows, named, sorted(lengths), nested, sum(v.shape[0] for v in named.values())

    check(f, X, ["a", "bb", "cc"])


def test_comprehensions_of_inlined_functions_keep_to_their_frame() -> None:
    def callee(x: Any) -> Any:
        i = 9
        z = [x * i for i in range(3)]

        def k() -> int:
            return i

        return z[1], k() + i

    def f(x: Any) -> Any:
        i = 3

        def k() -> int:
            return i

        y, n = callee(x)
        i = i + 1
        return y, k(), n

    check(f, X)


def test_comprehensions_whose_variables_inner_functions_capture() -> None:
    def f(x: Any) -> Any:
        first = [x + i for i in range(3)]
        later = [lambda: x * i for i in range(2)]  # noqa: B023
        i = 5

        def inner() -> int:
            return i

        again = [x - i for i in range(2)]
        return first, [g() for g in later], inner(), again, i

    check(f, X)


def test_closures_and_lambdas() -> None:
    def f(x: Any, n: int) -> Any:
        factor = n

        def scaled(y: Any, k: int = 2, *, shift: float = 0.5) -> Any:
            return y * factor * k + shift

        factor = factor + 1
        double = lambda y: scaled(y, 1, shift=1.0)  # noqa: E731
        return scaled(x), double(x), (lambda: factor)()

    check(f, X, 3)


def test_nonlocal() -> None:
    def f(x: Any) -> Any:
        count = 0

        def step(y: Any) -> Any:
            nonlocal count
            count += 1
            return y + count

        x = step(step(x))
        return x, count

    check(f, X)


def test_recursion() -> None:
    def power(x: Any, n: int) -> Any:
        return x if n <= 1 else x * power(x, n - 1)

    check(lambda x: power(x, 4), X)


def test_argument_kinds() -> None:
    def g(a: Any, b: Any = 2, *rest: Any, c: Any, d: Any = 4, **more: Any) -> Any:
        return a + b + c + d, rest, sorted(more.items())

    def f(x: Any) -> Any:
        options = {"c": 3, "z": 9}
        return g(x, c=1), g(x, 5, 6, 7, **options), g(*[x, 1], d=0, **options)

    check(f, X)


def test_arguments_of_the_compiled_function() -> None:
    def f(x: Any, *rest: Any, scale: float = 2.0, **more: Any) -> Any:
        return x * scale + sum(rest) + more.get("shift", 0)

    import argand_dynamo as dynamo

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    for args, kwargs in [((X,), {}), ((X, Y, 3), {"shift": 2}), ((X,), {"scale": 1.5})]:
        assert (compiled(*args, **kwargs) == f(*args, **kwargs)).all()


def test_wrong_calls_raise_as_in_python() -> None:
    def g(a: int, b: int) -> int:
        return a + b

    def missing(x: Any) -> Any:
        y = x + 1
        return g(y)  # type: ignore[call-arg]

    def surplus(x: Any) -> Any:
        return g(x, x, x)  # type: ignore[call-arg]

    for f in (missing, surplus, lambda x: g(x, c=3)):  # type: ignore[call-arg]
        assert run(f, (X,)).breaks == ["GB0008"]


def test_lists() -> None:
    def f(x: Any) -> Any:
        a = [x, 2, 3]
        a.append(4)
        a.extend([5, 6])
        a.insert(0, 0)
        popped = a.pop()
        a[1:3] = ["s", "t", "u"]
        a += [7]
        b = a[::-1] + a[-2:]
        del b[0]
        b.reverse()
        return (
            a,
            b,
            popped,
            a.index(7),
            5 in a,
            len(b),
            a.count("s"),
            [1, 2] * 2,
            [1, 2] < [1, 3],
            sorted([3, 1, 2], reverse=True),
            x * a[4],
        )

    check(f, X)


def test_dicts_and_sets() -> None:
    def f(x: Any) -> Any:
        d = {"a": x, "b": 2, 3: [1]}
        d["c"] = x + 1
        d.update(b=5, e=6)
        removed = d.pop("e")
        d.setdefault("f", []).append(9)
        merged = {**d, "g": 1} | {"h": 2}
        keys = list(d.keys())
        s = {1, 2, 3} & {2, 3, 4}
        s.add(9)
        return (
            d,
            removed,
            list(merged),
            keys,
            [k for k, v in d.items() if isinstance(v, int)],
            "zz" in d,
            d.get("zz", 7),
            len(s),
            sorted(s | {1}),
            s >= {2},
        )

    check(f, X)


def test_default_and_ordered_dicts() -> None:
    def f(x: Any) -> Any:
        groups: Any = collections.defaultdict(list)
        for i in range(4):
            groups[i % 2].append(x * i)
        ordered = collections.OrderedDict(b=1, a=2)
        ordered.move_to_end("b")
        return groups, list(ordered.items()), groups[1][0] + 1

    check(f, X)


def test_slices_and_indexing_of_tensors() -> None:
    def f(x: Any, k: int) -> Any:
        return (
            x[0],
            x[:, 1:3],
            x[..., -1],
            x[k:],
            x[None, k],
            x[:, [0, 2]],
            x[::2, ::3],
            x[slice(0, 2)],
        )

    check(f, X, 1)


class Point(NamedTuple):
    x: Any
    y: int = 3

    def scaled(self, k: int) -> Any:
        return self.x * k + self.y


def test_named_tuples() -> None:
    def f(x: Any, p: Point) -> Any:
        q = Point(x + 1, y=5)
        a, b = q
        return q, q._replace(y=8), p.x + p.y, p.scaled(2), q[0] + b, Point._fields, q._asdict()

    check(f, X, Point(Y))


def test_text() -> None:
    def f(x: Any, name: str) -> Any:
        key = f"{name}_{x.shape[0]:03d}_{3.14159:.2f}_{name!r}"
        parts, template = key.split("_"), "{} {k}"
        return (
            x * len(parts),
            key,
            "%s-%d" % (name, 3),  # noqa: UP031
            ",".join(parts),
            template.format(1, k=2),
            key.upper(),
        )

    check(f, X, "layer")


def test_builtin_functions() -> None:
    def f(x: Any, values: list[int]) -> Any:
        return (
            x * max(values) + min(*values) - sum(values),
            abs(-3), divmod(7, 2), round(2.567, 2), pow(2, 5), int("12"), float("2.5"), str(12), bool([]), isinstance(x, Tensor),
            isinstance(values, (tuple, list)), isinstance(values, str | list | None), isinstance(None, None | int), type(values) is list, callable(len), list(map(lambda v: v + 1, values)),
            list(filter(None, [0, 1, 2])), list(reversed(values)), any(v > 2 for v in values), all(values), tuple(range(3)), hasattr(x, "relu"),
            getattr(x, "nothing", 5), list(zip(values, "ab", strict=False)), dict(a=1), max(values, key=lambda v: -v), ord("a"), chr(98), next(iter(values)),
        )  # fmt: skip

    check(f, X, [3, 1, 2])


def test_library_functions() -> None:
    def f(x: Any) -> Any:
        add3 = functools.partial(operator.add, 3)
        return (
            add3(x), functools.reduce(lambda a, b: a * b, [x, 2, 3]), math.sqrt(16) * x, math.prod([2, 3]),
            list(itertools.chain([1], [2, 3])), list(itertools.product([1, 2], "ab")), list(itertools.islice(itertools.count(5), 3)),
            list(itertools.accumulate([1, 2, 3])), operator.itemgetter(1)([4, 5]), operator.attrgetter("ndim")(x),
            list(itertools.zip_longest([1, 2], [3], fillvalue=0)), list(itertools.repeat(1, 2)), math.pi * x, list(itertools.pairwise([1, 2, 3])),
        )  # fmt: skip

    check(f, X)


def test_generators() -> None:
    def numbers(n: int) -> Any:
        for i in range(n):
            got = yield i
            if got is not None:
                yield got
        return "end"

    def outer(n: int) -> Any:
        result = yield from numbers(n)
        yield result

    def f(x: Any) -> Any:
        g = numbers(3)
        first = next(g)
        sent = g.send(10)
        return x + first, sent, list(g), list(outer(2)), sum(x.sum() * i for i in numbers(3))

    check(f, X)


def test_exceptions_are_thrown_into_generators() -> None:
    def catching(x: Any, log: list[Any]) -> Any:
        scale = 1
        while True:
            try:
                yield x * scale
            except ValueError as error:
                scale += len(error.args)
            except KeyError:
                return "done"
            finally:
                log.append(scale)

    def f(x: Any) -> Any:
        log: list[Any] = []
        g = catching(x, log)
        found = [next(g), g.throw(ValueError), g.throw(ValueError("a", "b")), next(g)]
        found.append(g.throw(ValueError, "text"))
        try:
            g.throw(KeyError("k"))
        except StopIteration as end:
            found.append(end.value)
        try:
            g.throw(TypeError("over"))
        except TypeError as error:
            found.append(str(error))
        return found, log, list(g)

    check(f, X)

    def unhandled(x: Any) -> Any:
        log: list[Any] = []
        g, unused = catching(x, log), catching(x, log)
        next(g)
        for generator in (g, unused):
            try:
                generator.throw(IndexError("no handler"))
            except IndexError as error:
                log.append(str(error))
        return x + 1, log, list(g), list(unused)

    check(unhandled, X)

    def outer(x: Any) -> Any:
        yield from catching(x, [])

    def inside(x: Any) -> Any:
        g = outer(x)
        next(g)
        return g.throw(ValueError("a"))

    run(inside, (X,))  # as Python, by a break
    with pytest.raises(dynamo.GraphBreak, match="inside of yield from"):
        dynamo.compile(inside, backend="eager", fullgraph=True)(X)


def test_try_and_except() -> None:
    def f(x: Any, d: dict[str, int]) -> Any:
        try:
            x = x + d["missing"]
        except KeyError as error:
            x = x - 1
            kind = type(error).__name__
        else:
            kind = "none"
        finally:
            x = x * 2
        try:
            raise ValueError("a", 3)
        except (TypeError, ValueError) as error:
            args = error.args
        return x, kind, args

    check(f, X, {"a": 1})
    check(f, X, {"missing": 1})


def test_raise_leaves_the_function() -> None:
    def f(x: Any, n: int) -> Any:
        y = x + 1
        if n > 2:
            raise ValueError(f"n is {n}")
        return y

    outcome = run(f, (X, 1), (X, 3), (X, 1))
    assert outcome.breaks == ["GB0008"]


def test_assert() -> None:
    def f(x: Any, n: int) -> Any:
        assert n > 0, f"got {n}"
        return x * n

    check(f, X, 2)
    run(f, (X, -1))


def test_match() -> None:
    def f(x: Any, command: Any) -> Any:
        match command:
            case ["go", n] if n > 1:
                return x * n
            case {"op": "add", "by": by}:
                return x + by
            case int() | float():
                return x - command
            case _:
                return x

    for command in (["go", 2], ["go", 0], {"op": "add", "by": 3}, 4, "s"):
        check(f, X, command, graphs=None)


def test_globals() -> None:
    def f(x: Any) -> Any:
        return x * SCALE + math.e

    global SCALE
    check(f, X)
    SCALE = 5
    try:
        check(f, X)
    finally:
        SCALE = 3


def test_star_expressions_and_starred_calls() -> None:
    def f(x: Any) -> Any:
        a = [*range(2), *("u", "v")]
        t = (*a, x)
        s = {*a}
        return a, t, len(s), max(*[1, 2, 3])

    check(f, X, graphs=0)


def test_conditional_imports_and_delete() -> None:
    def f(x: Any) -> Any:
        import math as m
        from operator import mul

        y = x + 1
        del x
        return mul(y, m.floor(2.5))

    check(f, X)


def test_walrus_and_ternary() -> None:
    def f(x: Any) -> Any:
        if (n := x.shape[0]) > 2:
            x = x * n
        return x, n, "big" if n > 1 else "small"

    check(f, X)


@pytest.mark.parametrize(
    "value", [0, 1, -7, 2.5, True, None, "s", (1, 2), b"x", 1 + 2j, float("nan"), -0.0]
)
def test_constants_come_back(value: Any) -> None:
    check(lambda x, v: (x + 1, v), X, value)
    check(lambda x, v: (x + 1, [v, {"k": v}]), X, value)


def test_same_object_comes_back() -> None:
    import argand_dynamo as dynamo

    held = [1, 2]

    def f(x: Any, box: list[int]) -> Any:
        made = [x + 1]
        return box, made, made, held, x

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    box: list[int] = []
    result = compiled(X, box)
    assert result[0] is box and result[1] is result[2] and result[3] is held and result[4] is X
