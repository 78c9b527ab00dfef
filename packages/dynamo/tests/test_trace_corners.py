"""Corners of the language: whatever is not traced must run as Python runs it."""

from __future__ import annotations

import abc
import collections
import contextlib
import copy
import functools
import math
import random
import typing
from collections.abc import Callable
from typing import Any

import pytest
from tracing import fresh, run, torch  # noqa: F401

from argand_autograd.vmap import vmap

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7
PROGRAMS: list[Callable[..., Any]] = []


def p(program: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(program)
    return program


S = {1, 2, 3}
D = collections.deque([1, 2])
MAP = {("a", 1): 2}


class Meta(type):
    def __call__(cls, *a):
        o = super().__call__(*a)
        o.tag = "m"
        return o


class WM(metaclass=Meta):
    def __init__(self, v):
        self.v = v


class Desc:
    def __get__(self, o, t=None):
        return 7 if o is None else o.base * 2

    def __set__(self, o, v):
        o.base = v


class HasDesc:
    d = Desc()

    def __init__(self):
        self.base = 3


class LazyP:
    @functools.cached_property
    def cp(self):
        return 5


class AB(abc.ABC):
    @abc.abstractmethod
    def f(self, x): ...


class AC(AB):
    def f(self, x):
        return x + 1


class NewC:
    def __new__(cls, *a):
        o = super().__new__(cls)
        o.made = len(a)
        return o

    def __init__(self, *a):
        self.a = a


class L(list):
    def total(self):
        return sum(self)


class MyDict(dict):
    pass


@functools.lru_cache
def cached(n):
    return n * 2


@functools.wraps(cached)
def wrapped(n):
    return n + 1


class Cnt:
    n = 0

    def __init__(self):
        Cnt.n += 1


gl = [0]


@p
def wraps_inside(x):
    def plain(t):
        return t + 1

    @functools.wraps(plain)
    def around(*args):
        return plain(*args) * 2

    return around(x), around.__name__


@p
def vmapped(x):
    return vmap(lambda t: (t * 2).sin().sum())(x)


@p
def sets(x):
    return x + len(S), 2 in S, sorted(S | {9})


@p
def dq(x):
    D.append(3)
    D.popleft()
    return x * D[-1], len(D)


@p
def tuplekey(x):
    return x * MAP[("a", 1)]


@p
def tensorkey(x):
    d = {x: 1}
    return d[x] + x


@p
def meta(x):
    o = WM(x)
    return o.tag, o.v + 1


@p
def desc(x):
    h = HasDesc()
    h.d = 4
    return x * h.d, HasDesc.d


@p
def cachedprop(x):
    o = LazyP()
    return x * o.cp + o.cp, o.__dict__


@p
def absclass(x):
    return AC().f(x)


@p
def newc(x):
    o = NewC(1, 2)
    return x * o.made, o.a


@p
def lsub(x):
    items = L([1, 2])
    items.append(3)
    return x * items.total(), items


@p
def dsub(x):
    d = MyDict(a=1)
    d["b"] = x
    return d["b"] + d["a"]


@p
def lru(x):
    return x * cached(3) + wrapped(2)


@p
def clsattr(x):
    Cnt()
    return x * 1


@p
def classdef(x):
    class T:
        def __init__(self):
            self.k = 2

    return x * T().k


@p
def rnd(x):
    random.seed(3)
    return x * random.random()


@p
def glist(x):
    gl[0] += 1
    gl.append(2)
    del gl[1:]
    return x + 0


@p
def delattr_(x):
    o = NewC()
    o.z = 1
    del o.z
    return x + 1, hasattr(o, "z")


@p
def gen_close(x):
    def g():
        try:
            yield 1
            yield 2
        finally:
            gl.append(5)
            gl.pop()

    for v in g():
        if v == 1:
            break
    return x + v


@p
def genexp_lazy(x):
    log = []

    def t(v):
        log.append(v)
        return v > 1

    r = any(t(v) for v in [1, 2, 3])
    return x + 1, log, r


@p
def exc_chain(x):
    try:
        try:
            {}["k"]
        except KeyError as e:
            raise ValueError("v") from e
    except ValueError as e:
        return x + 1, type(e.__cause__).__name__


@p
def exc_finally(x):
    log = []

    def g():
        try:
            return 1
        finally:
            log.append("f")

    return x + g(), log


@p
def exitstack(x):
    with contextlib.ExitStack() as st:
        st.enter_context(contextlib.nullcontext())
        y = x + 1
    return y


@p
def suppress(x):
    with contextlib.suppress(KeyError):
        {}["a"]
    return x + 1


@p
def unpackstar(x):
    a, *b = [1, x, 3]
    (c,), d = [[1], 2]
    return a, b, c, d


@p
def dictcomp(x):
    return {k: v for k, v in zip("ab", [x, x + 1], strict=True)}, {**{"a": 1}, "b": 2}


@p
def inplace_views(x):
    y = x.clone()
    y[0].add_(5)
    z = y.view(-1)
    z[1] = 9.0
    y += 1
    return y, z


@p
def strs(x):
    return (
        "a".join(["x", "y"]) + f"{3:>5}|{2.5!r:^9}|{'s':*<4}",
        x + 1,
        "abc"[::-1],
        "a,b".split(","),
        "x" in "xyz",
        b"ab"[0],
        "%(a)s" % {"a": 1},  # noqa: UP031
    )


@p
def ints(x):
    return (
        x + (7 // 2) + (-7 % 3) + (2**5) + (5 & 3 | 8 ^ 1) + (~2) + (1 << 3),
        int("7", 8),
        divmod(-7, 2),
        round(2.5),
        (10).bit_length(),
    )


@p
def slices(x):
    items = list(range(10))
    items[2:4] = []
    items[::2] = [0] * len(items[::2])
    return x + items[1], items, slice(1, 2).stop


@p
def sortk(x):
    return sorted([("b", 2), ("a", 2), ("c", 1)], key=lambda t: (t[1], t[0])), x + 1


@p
def printf(x):
    y = x + 1
    print("v", end="")
    return y


@p
def localscall(x):
    a = 1
    return sorted(locals()), x + a


@p
def isinst(x):
    return (
        isinstance(3, (int, str)),
        isinstance(x, collections.abc.Sequence),
        issubclass(bool, int),
        x + 1,
    )


@p
def typed(x):
    v: int | None = 3
    return x + typing.cast(int, v)


@p
def tensors_eq(x):
    return (x == x).all(), x is x, x.eq(x).sum(), x in [x]


@p
def nestedbreak(x):
    out = []
    for i in range(3):
        with torch.no_grad():
            y = x * i
            if i == 1:
                print(end="")
            out.append(y + 1)
    return out


@p
def whilebreak(x):
    i = 0
    while True:
        x = x + 1
        i += 1
        if i > 3:
            break
        if x.sum() > 1e9:
            return None
    return x, i


@p
def tryloop(x):
    for i in range(3):
        try:
            if i == 1:
                raise IndexError(i)
            x = x + i
            print(end="")
        except IndexError:
            x = x * 2
        finally:
            x = x - 1
    return x


@p
def closure_cells(x):
    fs = []
    for i in range(3):

        def f(y, i=i):
            return y * i

        fs.append(f)
    g = [lambda: i for i in range(2)]  # noqa: B023
    return [f(x) for f in fs], [h() for h in g]


@p
def returned_closure(x):
    k = x + 1

    def f(y):
        return y + k

    return f(x), f.__name__


@p
def weird(x):
    a = b = [x]
    a += [1]
    return a is b, len(b), x + 1


@p
def copyd(x):
    d = {"a": [1]}
    e = copy.copy(d)
    f = copy.deepcopy(d)
    e["a"].append(2)
    return d, f, x + 1


@p
def mth(x):
    return math.floor(2.7), math.isclose(1.0, 1.0), math.inf > 3, x * math.log(2)


@p
def nonetest(x, y=None):
    return x if y is None else y, (y or x) + 1


@p
def matmul_inplace(x):
    y = x.clone()
    y @= torch.ones(4, 4)
    y **= 2
    y //= 3
    return y


@p
def starred_kwargs(x):
    def f(*a, **k):
        return len(a), sorted(k)

    return f(*[1, 2], *(3,), a=1, **{"b": 2}), x + 1


@p
def chained(x):
    return (1 < 2 < 3) != (3 > 2 > 5), x + 1


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_corner(program: Callable[..., Any]) -> None:
    run(program, (X,))
    run(program, (X.clone(),), (X,))
