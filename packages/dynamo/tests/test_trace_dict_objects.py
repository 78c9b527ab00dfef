"""Objects of classes that derive from dict, objects that find attributes by themselves, sets and dicts from outside, signatures, caches."""

from __future__ import annotations

import collections.abc
import copy
import dataclasses
import enum
import functools
import inspect
import types
from collections import OrderedDict, defaultdict
from typing import Any

from tracing import check, fresh, run, torch  # noqa: F401

import argand_dynamo as dynamo

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7


class Record(OrderedDict):
    """Fields that are entries too, as results of networks are in well-known libraries."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = self.__dict__.get(field.name)
            if value is not None:
                self[field.name] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in {field.name for field in dataclasses.fields(self)} and value is not None:  # type: ignore[arg-type]
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __getitem__(self, key: Any) -> Any:
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def update(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("no update")

    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(self[key] for key in self.keys())


@dataclasses.dataclass
class Found(Record):
    loss: Any = None
    logits: Any = None
    states: Any = None


class Counts(dict):
    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


class Renamed(dict):
    def __iter__(self) -> Any:
        return iter(["y", "y"])


def test_made_and_returned() -> None:
    def f(x: Any) -> Any:
        found = Found(logits=x * 2)
        found.loss = x.sum()
        found["states"] = (x, x + 1)
        return found, found[0], found["states"], list(found), len(found), "loss" in found

    outcome = check(f, X)
    made = outcome.graphs and f(X)[0]
    assert list(made) == ["logits", "loss", "states"]


def test_attributes_and_entries_of_the_result() -> None:
    compiled = torch_compile(lambda x: Found(logits=x * 2, states=[x]))
    found = compiled(X)
    assert type(found) is Found and list(found.keys()) == ["logits", "states"]
    assert found.loss is None and found.logits is found["logits"] and found.states[0] is X


def torch_compile(f: Any) -> Any:
    return dynamo.compile(f, backend="eager", fullgraph=True)


def test_given_and_changed() -> None:
    def f(found: Any, x: Any) -> Any:
        last = found[0] + x
        found["states"] = last
        found.loss = last.mean()
        return {**found}, found.get("loss"), [k for k, _ in found.items()]

    outcome = run(f, (Found(logits=X), X), (Found(logits=X), X), fullgraph=True)
    assert outcome.recompiles == 0
    assert run(f, (Found(logits=X), X), (Found(logits=X, loss=X), X)).recompiles == 1


def test_missing_keys_and_plain_copies() -> None:
    def f(counts: Any, x: Any) -> Any:
        first = counts["a"]
        return x + first + counts["b"], dict(counts), counts == {"a": 0, "b": 1}, counts.pop("a")

    run(f, (Counts(), X), (Counts(), X), (Counts(a=3), X))
    check(lambda x: (Counts({"a": 2}, b=x)["c"], x + Counts()["c"]), X)
    run(lambda c, x: (x + len(c), list(c), dict(c)), (Renamed(y=1), X))


class Mapped:
    """Names that stand for others."""

    names = {"size": "hidden"}

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def __getattribute__(self, name: str) -> Any:
        if name != "names" and name in super().__getattribute__("names"):
            name = super().__getattribute__("names")[name]
        if name == "lost":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        if name == "lost":
            return 5
        raise AttributeError(f"none such: {name}")

    @property
    def half(self) -> int:
        return self.absent


class Fallback:
    @property
    def broken(self) -> Any:
        return self.nothing

    def __getattr__(self, name: str) -> Any:
        if name == "broken":
            return 4
        raise AttributeError(name)


def test_getattribute() -> None:
    def f(m: Any, x: Any) -> Any:
        m.count = m.size + 1
        return x * m.size + m.lost, hasattr(m, "absent"), getattr(m, "half", 3), vars(m)

    outcome = run(f, (Mapped(2), X), (Mapped(2), X), (Mapped(3), X), fullgraph=True)
    assert outcome.recompiles == 1


def test_a_property_that_lacks_an_attribute_is_asked_of_getattr() -> None:
    check(lambda x: (x * Fallback().broken, hasattr(Fallback(), "nothing")), X)


WORDS = {"sum", "mean"}


def test_sets_from_outside() -> None:
    def f(s: Any, x: Any) -> Any:
        return (x.sum() if "sum" in s else x), len(s), s | {"more"}, s == {"sum"}

    calls = [({"sum", "b"}, X), ({"b", "sum"}, X), ({"a", "b"}, X), (frozenset({"sum"}), X)]
    assert run(f, *calls, fullgraph=True).recompiles == 2
    assert run(lambda s, x: x + (1 in s), ({1}, X), ({True}, X), ({2}, X)).recompiles == 2

    def changes(s: Any, x: Any) -> Any:
        s.add("new")
        s.discard("b")
        return x + len(s)

    check(changes, {"a", "b"}, X)
    check(lambda x: x * 2 if "sum" in WORDS else x, X)


def test_the_order_of_sets_of_text_is_pythons() -> None:
    names = ["sliding", "full", "chunked", "full", "local", "none"]

    def f(x: Any) -> Any:
        seen = {name: x + i for i, name in enumerate(set(names))}
        more = {name[::-1] for name in names}
        more.add("last")
        return seen, list(more), [*frozenset(names)]

    check(f, X)


class Chosen:
    def any(*args: Any, scale: int = 1) -> int:
        return scale

    def some(self, a: int, *, b: int = 2, **rest: int) -> int:
        return a + b


def test_signatures_follow_defaults() -> None:
    def scaled(a: int, b: int = 1, *, c: int = 1) -> int:
        return a * b * c

    def f(x: Any) -> Any:
        found = inspect.signature(scaled).parameters.values()
        with_default = [(p.name, p.default) for p in found if p.default is not p.empty]
        kinds = [p.kind == p.KEYWORD_ONLY for p in found]
        bound = [list(inspect.signature(m).parameters) for m in (Chosen().any, Chosen().some)]
        return with_default, kinds, bound, x + 1

    compiled = torch_compile(f)
    defaults: list[tuple[int, ...] | None] = [(1,), (1, 1), None, (2,)]
    for held in defaults:
        scaled.__defaults__ = held
        assert compiled(X)[:3] == f(X)[:3]
    scaled.__kwdefaults__ = None  # type: ignore[assignment]
    assert compiled(X)[:3] == f(X)[:3]


def test_a_default_is_found_by_its_place() -> None:
    def scaled(a: Any, b: int = 1) -> Any:
        return a * b

    compiled = torch_compile(lambda x: scaled(x))
    for held in ((1,), (1, 5), (2,)):
        scaled.__defaults__ = held
        assert (compiled(X) == X * held[-1]).all()


def grown(*members: Any) -> set[Any]:
    made: set[Any] = set()
    for member in members:
        made.add(member)
    return made


def test_the_order_of_sets_follows_from_their_histories() -> None:
    def listed(s: Any, x: Any) -> Any:
        return [x + member for member in s]

    calls = [(grown(8, 0), X), (grown(0, 8), X), (frozenset([8, 0]), X), (frozenset([0, 8]), X)]
    assert run(listed, *calls).recompiles == 3

    def computed(x: Any) -> Any:
        s = set(range(20))
        s -= set(range(3, 19))
        s.update([32, 3], (33,))
        s.discard(1)
        keys = dict.fromkeys([64, 3, 0, 32, 99]).keys()
        others: list[Any] = [keys & s, s - keys, keys ^ {8, 0}, keys | {11: 1, 3: 2}.keys()]
        others += [s ^ {3, 40}, s - {2}, s.union([64, 0]), s.copy(), frozenset(s) & {33, 0}]
        return x + 1, list(s), *map(list, others), [name for name in {"b", "a", "d", "c"}]

    assert not check(computed, X).breaks

    def changed(s: Any, x: Any) -> Any:
        s.discard(5)
        return [x + member for member in s]

    large = set(range(100))
    large -= set(range(100)) - {0, 5, 8, 16}
    assert run(changed, (large, X), (grown(16, 8, 0, 5), X)).breaks


def test_views_of_new_objects_show_what_comes_later() -> None:
    class Held(dict[str, Any]):
        pass

    def f(x: Any) -> Any:
        made = Held(a=x)
        return made.values(), made

    values, made = torch_compile(f)(X)
    made["later"] = 1
    assert len(values) == 2 and list(values)[1] == 1


def wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Chunked:
    @wrapping
    def apply(self, x: Any, scale: Any = 2, *rest: Any, key: Any = None, **more: Any) -> Any:
        return x * scale


def test_signatures_and_codes() -> None:
    chunked = Chunked()

    def f(x: Any) -> Any:
        parameters = inspect.signature(chunked.apply).parameters
        kinds = [p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in parameters.values()]
        empty = parameters["x"].default is inspect.Parameter.empty
        names = wrapping.__code__.co_varnames
        return chunked.apply(x), len(parameters), list(parameters), kinds, empty, names

    check(f, X)


def test_a_code_comes_back() -> None:
    found, _ = torch_compile(lambda x: (wrapping.__code__, x + 1))(X)
    assert found is wrapping.__code__


class Size(enum.Enum):
    SMALL = 1
    LARGE = 2


SCALES: dict[Any, Any] = {Counts: 2.0, check: [3.0], Size.LARGE: 4.0, len: 5.0, "text": 6.0}


def test_dicts_by_classes_functions_and_enum_members() -> None:
    def f(d: Any, kind: Any, x: Any) -> Any:
        d["seen"] = kind
        return x * d[kind] + d[len] * d[check][0], list(d), int in d, [type(v) for v in d.values()]

    calls = [(dict(SCALES), Counts, X), (dict(SCALES), Size.LARGE, X), ({**SCALES, int: 1}, int, X)]
    run(f, *calls, fullgraph=True)
    compiled = torch_compile(lambda x: x * SCALES[Counts])
    try:
        for SCALES[Counts] in (2.0, 7.0):
            assert compiled(torch.ones(1)).item() == SCALES[Counts]
    finally:
        SCALES[Counts] = 2.0
    assert run(lambda d, x: x + len(d), ({int: 1}, X), ({float: 1}, X)).recompiles == 1


TABLE = {"a": 1, "b": 2}
PROXY = types.MappingProxyType(TABLE)
ORDERED = OrderedDict(a=1, b=2)


def test_mapping_proxies() -> None:
    def f(x: Any) -> Any:
        reads = (
            PROXY["b"],
            "a" in PROXY,
            PROXY.get("z"),
            len(PROXY),
            bool(PROXY),
            isinstance(PROXY, dict),
        )
        made = (
            dict(PROXY),
            {**PROXY},
            PROXY | {"c": 3},
            list(PROXY),
            [v for _, v in PROXY.items()],
            PROXY.copy(),
        )
        try:
            PROXY["c"] = 1  # type: ignore[index]
        except TypeError as error:
            return x * PROXY["a"], reads, made, PROXY == TABLE, str(error), PROXY is PROXY
        return x

    check(f, X)
    compiled = dynamo.compile(
        lambda x: x * PROXY["a"] + len(PROXY), backend="eager", fullgraph=True
    )
    one, found = torch.ones(1), []
    for change in ({}, {"a": 5}, {"c": 1}):
        TABLE.update(change)
        found.append(compiled(one).item())
    assert found == [3, 7, 8]


def test_mapping_proxies_of_what_changes() -> None:
    table, holder = {"a": 1}, types.SimpleNamespace(a=1)
    shown, fields = types.MappingProxyType(table), types.MappingProxyType(vars(holder))

    def before(x: Any) -> Any:
        table["b"] = 2
        holder.a = 5
        return x * len(shown) + fields["a"]

    def between(x: Any) -> Any:
        n = len(shown) + fields["a"]
        table["b"] = 2
        holder.a = 5
        return x * n + len(shown) + fields["a"]

    for f in (before, between):
        results = []
        for call in (f, dynamo.compile(f, backend="eager")):
            table.pop("b", None)
            holder.a = 1
            results.append([call(torch.ones(1)).item() for _ in range(2)])
        assert results[0] == results[1]


def test_views_of_ordered_dicts() -> None:
    def f(x: Any) -> Any:
        d = OrderedDict(a=1, b=2)
        views = d.keys(), d.values(), d.items()
        d.move_to_end("a")
        d["z"] = 3
        shown = (
            [list(view) for view in views],
            list(reversed(d.items())),
            ORDERED.keys() == {"a", "b"},
        )
        kinds = (
            isinstance(views[0], collections.abc.KeysView),
            views[0].mapping["z"],
            views[0].isdisjoint({"q"}),
        )
        return (
            x * len(views[0]),
            shown,
            kinds,
            sorted(ORDERED.keys() | {"c"}),
            d.popitem(last=False),
        )

    check(f, X)


class Point:
    def __init__(self, at: Any) -> None:
        self.at = at
        self.parts = [1]


@dataclasses.dataclass
class Pair:
    first: int
    second: list[int]


class Counted(Point):
    def __copy__(self) -> Counted:
        return Counted(self.at + 1)


class Slotted:
    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


def test_copies() -> None:
    point, pair, rows, counted = Point(3), Pair(1, [2]), [1, [2]], Counted(1)
    counts = defaultdict(int, a=1)

    def f(x: Any) -> Any:
        other, items, table, counting = (
            copy.copy(point),
            copy.copy(rows),
            copy.copy(ORDERED),
            copy.copy(counts),
        )
        other.at = x + 1
        items.append(3)
        table["c"] = counting["z"] = 3
        same = other.parts is point.parts, items[1] is rows[1], type(other) is Point
        made = (
            copy.copy(Point(x)),
            copy.copy(pair),
            copy.copy(counted),
            copy.copy((1, x)),
            copy.copy({1}),
        )
        deep = copy.deepcopy(rows), copy.deepcopy({"a": [1.5, "b"]}), copy.deepcopy(pair)
        return x * point.at, other, items, table, counting, same, made, deep, deep[0][1] is rows[1]

    outcome = check(f, X)
    assert not outcome.breaks
    slotted = Slotted(2)
    assert dynamo.compile(lambda x: (x, copy.copy(slotted)), backend="eager")(X)[1].at == 2
