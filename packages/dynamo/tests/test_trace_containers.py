"""Deques, counters, heaps, keys that are dataclasses, and what else of the standard library is traced as a whole."""

from __future__ import annotations

import bisect
import collections
import contextlib
import dataclasses
import functools
import heapq
import itertools
import operator
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import pytest
from tracing import equal, fresh, run, torch  # noqa: F401  (a fixture)

import argand_dynamo as dynamo

PROGRAMS: list[Callable[..., Any]] = []


def p(program: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(program)
    return program


@dataclasses.dataclass(frozen=True)
class Key:
    size: int
    name: str = "x"
    note: Any = dataclasses.field(default=None, compare=False)


TABLE = {Key(1): 2.0, Key(2, "y"): 3.0, "plain": 4.0}
QUEUE: Any = collections.deque([1, 2], maxlen=3)


@p
def keys(x):
    table = {Key(1): 2, Key(2): 3}
    table[Key(1, note=7)] += 1
    return x * table[Key(1)] + len({Key(1), Key(1), Key(2)}) + ((Key(1), 0) in {(Key(1), 0): 1})


@p
def kept_keys(x):
    return x * {Key(3): 1}[Key(3)], {Key(4): x}, Key(1) == Key(1), Key(1) != Key(1, "y")


@p
def keys_from_outside(x):
    return x * TABLE[Key(1)] + TABLE[Key(2, "y")] + TABLE["plain"], Key(3) in TABLE


@p
def queues(x):
    q = collections.deque([x, x + 1], maxlen=2)
    q.append(x * 2)
    q.appendleft(x)
    total = x
    while q:
        total = total + q.popleft()
    return total


@p
def returned_queue(x):
    q = collections.deque([1, 2, 3, 4])
    q.rotate(1)
    q.extendleft([7, 8])
    q.remove(3)
    q.insert(1, 9)
    q[0], q[-1] = 5, 0
    q += [6]
    q.reverse()
    return x, q, q.maxlen, q.count(9), list(q)[1:3], 9 in q, len(q), q.copy() == q, q + q


@p
def limited_queues(x):
    q = collections.deque(range(5), 3)
    left = collections.deque("ab", maxlen=2)
    left.extendleft("cde")
    return x, q, left, q > collections.deque([1]), collections.deque(maxlen=0)


@p
def queue_from_outside(x):
    QUEUE.append(x)
    first = QUEUE.popleft()
    QUEUE.appendleft(first + 1)
    return x * first, len(QUEUE)


@p
def queue_errors(x):
    found = []
    for act in (
        lambda: collections.deque().pop(),
        lambda: collections.deque([1])[3],
        lambda: collections.deque([1], 1).insert(0, 2),
        lambda: {collections.deque(): 1},
        lambda: collections.deque([], -1),
        lambda: collections.deque([1]).remove(2),
        lambda: collections.deque([1]).nothing,
    ):
        try:
            act()
        except (IndexError, TypeError, ValueError, AttributeError) as error:
            found.append((type(error), str(error)))
    return x, found


@p
def counters(x):
    counts = collections.Counter("hello")
    counts.update([1, 2, 2])
    counts["l"] += 1
    return x * counts["l"], counts["nothing"], counts.most_common(1), dict(counts)


@p
def places(x):
    items = [1, 3, 5]
    bisect.insort(items, 4)
    bisect.insort_left(items, 4)
    by_key = bisect.bisect([(1, "a"), (2, "b")], 1, key=operator.itemgetter(0))
    unbounded = bisect.bisect_left(items, 4, hi=-1)  # as None, to the C function
    return x, items, bisect.bisect_left(items, 4), bisect.bisect(items, 4), by_key, unbounded


@p
def heaps(x):
    heap = [5, 3, 8, 1, 9, 2, 7]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    least = [heapq.heappop(heap), heapq.heapreplace(heap, 4), heapq.heappushpop(heap, 6)]
    return x, heap, least, heapq.nlargest(2, [1, 5, 3]), heapq.nsmallest(2, heap)


@p
def filters(x):
    below = itertools.takewhile(lambda v: v < 3, itertools.count())
    above = itertools.dropwhile(lambda v: v < 3, [1, 4, 1])
    return x, list(below), list(above), list(itertools.compress("abcd", [1, 0, 1]))


@p
def groups(x):
    pairs = [(key, list(items)) for key, items in itertools.groupby([1, 1, 2, 3, 3, 1])]
    nan = float("nan")
    by_key = itertools.groupby("aAbB", key=str.upper)
    lengths = [(key, len(list(items))) for key, items in by_key]
    first, kept = next(it := itertools.groupby([x, x + 1, x[:1]], key=len))
    one = next(kept)
    second, rest = next(it)  # the first group is over
    return (
        x, pairs, lengths, first, one, list(kept), second, list(rest), next(it, None),
        [len(list(items)) for _, items in itertools.groupby([nan, nan])], list(itertools.groupby([])),
    )  # fmt: skip


@p
def tees(x):
    def numbers():
        for i in range(3):
            log.append(i)
            yield x * i

    log = []
    a, b = itertools.tee(numbers())
    first = next(a)
    both = [p + q for p, q in zip(b, a)]  # noqa: B905
    seen = list(log)
    c, d, e = itertools.tee("abc", 3)
    next(d)
    return first, both, seen, list(b), log, list(c), list(d), list(e), itertools.tee([], 0)


@p
def negative_tees(x):
    try:
        itertools.tee([x], -1)
    except ValueError as error:
        return x, str(error)


@p
def deques_that_change_while_they_are_read(x):
    messages = []
    for change in (
        lambda queue: queue.append(x),
        lambda queue: queue.popleft(),
        lambda queue: queue.rotate(1),
        lambda queue: queue.reverse(),  # no change to Python, but seen
        lambda queue: queue.__setitem__(-1, x * 7),
        lambda queue: queue.extend([]),
    ):
        queue, seen = collections.deque([x, x + 1, x + 2]), []
        try:
            for item in queue:
                seen.append(item)
                change(queue)
        except RuntimeError as error:
            messages.append(str(error))
        messages.append(seen)
    return messages


@p
def heaps_are_lists(x):
    messages = []
    for call in (
        lambda queue: heapq.heappush(queue, 2),
        heapq.heappop,
        heapq.heapify,
        lambda queue: heapq.heappushpop(queue, 2),
        lambda queue: heapq.heapreplace(queue, 2),
    ):
        queue = collections.deque([3, 1])
        try:
            call(queue)
        except TypeError as error:
            messages.append((str(error), list(queue)))
    return x, messages


@p
def namespaces(x):
    space = types.SimpleNamespace(a=1)
    space.b = x
    return space, space.b * space.a


class Attributes(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


@p
def attributes_of_a_dict(x):
    made = Attributes(a=2)
    made.b = 3
    del made.a
    return x * made.b, made.nothing, dict(made)


class Doubling:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name, 0)

    def __set__(self, instance, value):
        setattr(instance, self.name, value * 2)


class Described:
    value = Doubling()


@p
def descriptors(x):
    made = Described()
    made.value = 3
    return x * made.value, made


T = TypeVar("T")


class Box(Generic[T]):
    def __init__(self, held: T) -> None:
        self.held = held


@p
def generic_classes(x):
    return x * Box[int](2).held


@dataclasses.dataclass
class Shown:
    a: int
    b: Any = None


@p
def shown(x):
    return x, repr(Shown(1, Shown(2)))


@p
def patterns(x):
    found = []
    for subject in (Shown(3), {"a": 1}, [1, 2], "text", None, collections.deque([4])):
        match subject:
            case {"a": a}:
                found.append(("mapping", a))
            case [a, *_]:
                found.append(("sequence", a))
            case Shown(a=a):
                found.append(("object", a))
            case _:
                found.append(("other", subject))
    return x, found


class Refused(ValueError):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


@p
def exceptions(x):
    try:
        raise Refused("no", 3)
    except ValueError as error:
        return x * error.code, str(error), error.args


@contextlib.contextmanager
def noted(n: int, log: list[int]) -> Iterator[int]:
    log.append(n)
    try:
        yield n
    finally:
        log.append(-n)


@p
def stacks_of_contexts(x):
    log: list[int] = []
    with contextlib.ExitStack() as stack:
        for n in (1, 2):
            x = x * stack.enter_context(noted(n, log))
        stack.callback(log.append, 9)
    return x, log


@p
def wrapped(x):
    def twice(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args) * 2

        return inner

    def plain(v):
        """What it does."""
        return v + 1

    plain.kind = "simple"
    made = twice(plain)
    return made(x), made.__doc__, made.__module__, made.__name__, made.kind, twice.__doc__


@p
def method_callers(x):
    return operator.methodcaller("mul", 2)(x), operator.methodcaller("count", "a")("banana")


class Deleting:
    log = 0

    @property
    def value(self):
        return self.held

    @value.setter
    def value(self, new):
        self.held = new

    @value.deleter
    def value(self):
        self.log = self.log + self.held
        del self.held


@p
def deleters(x):
    made = Deleting()
    made.value = 3
    del made.value
    return x * made.log, made


class Doubled:
    def __class_getitem__(cls, item):
        return item * 2


@p
def subscripts_of_classes(x):
    return x * Doubled[3]


@p
def errors(x):
    found = []
    for act in (
        lambda: max([]),
        lambda: min(()),
        lambda: min(),
        lambda: next(3),
        lambda: next([]),
        lambda: x.shape[9],
        lambda: (1, 2)[5],
    ):
        try:
            act()
        except (ValueError, TypeError, IndexError) as error:
            found.append((type(error), str(error)))
    return x, found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_containers(program: Callable[..., Any]) -> None:
    global QUEUE
    x = torch.ones(3)
    QUEUE = collections.deque([1, 2], maxlen=3)
    want, after = program(x), QUEUE
    QUEUE = collections.deque([1, 2], maxlen=3)
    got = dynamo.compile(program, backend="eager", fullgraph=True)(x)
    assert equal(
        list(got) if type(got) is tuple else got, list(want) if type(want) is tuple else want
    )
    assert [str(v) for v in QUEUE] == [str(v) for v in after] and QUEUE.maxlen == 3


def test_a_longer_queue_and_other_keys_are_noticed() -> None:
    def of_queue(x: Any, q: Any) -> Any:
        return x * sum(q), q.maxlen

    calls = [collections.deque([1, 2]), collections.deque([1, 2, 3]), collections.deque([1, 2], 2)]
    assert run(of_queue, *[(torch.ones(2), q) for q in calls]).breaks == []

    def of_table(x: Any, table: Any) -> Any:
        return x * table[Key(1)]

    tables: list[dict[Any, Any]] = [{Key(1): 2}, {Key(1): 3}, {Key(2): 5, Key(1): 4}, {Key(2): 1}]
    assert "GB0008" in run(of_table, *[(torch.ones(2), t) for t in tables]).breaks  # a KeyError


def test_threads_have_names_of_their_own() -> None:
    fast = dynamo.compile(lambda x: (x + 1, repr(Shown(1))), backend="eager", fullgraph=True)
    assert fast(torch.ones(2))[1] == repr(Shown(1))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(fast, torch.ones(2)).result()[1] == repr(Shown(1))


def test_a_small_cache_forgets_what_was_used_last() -> None:
    @functools.lru_cache(maxsize=2)
    def made(i: int) -> list[int]:
        return [i]

    def f(x: Any) -> Any:
        a, b, c = made(1), made(2), made(1)
        made(3)
        return x, a is c, a is made(1), b is made(2)

    want = f(torch.ones(2))
    for _ in range(2):
        made.cache_clear()
        assert equal(dynamo.compile(f, backend="eager")(torch.ones(2)), want)
