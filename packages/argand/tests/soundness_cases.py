"""Functions, and changes of single facts that they rely on, by name: for test_compile_soundness.py."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import argand as torch
from argand import nn

CASES: dict[str, Callable[[], Case]] = {}


@dataclass
class Case:
    """`run` is compiled and run as plain Python with what `args` makes; `changes` of what it reads."""

    run: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    changes: list[Callable[[], Any]]


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def x4() -> tuple[Any, ...]:
    return (torch.arange(4, dtype=torch.float32),)


def setter(owner: Any, name: str, *values: Any) -> list[Callable[[], Any]]:
    return [lambda v=v: setattr(owner, name, v) for v in values]


class Holder:
    """An object with attributes."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


# -- names -----------------------------------------------------------------------------------------

SCALE: Any = 2.0
TABLE: dict[Any, Any] = {}
SEQUENCE: list[Any] = []


def helper(x: Any) -> Any:
    return x + 1


def other_helper(x: Any) -> Any:
    return x * 5


def set_global(name: str, value: Any) -> Callable[[], Any]:
    return lambda: globals().__setitem__(name, value)


@case
def global_number() -> Case:
    values = (2.0, 3.0, 3, True, -0.0, 0.0, None, "text", float("nan"), float("inf"))

    def run(x: Any) -> Any:
        return (x * SCALE if isinstance(SCALE, float) else x - 1), SCALE, type(SCALE).__name__

    return Case(run, x4, [set_global("SCALE", v) for v in values])


@case
def global_tensor() -> Case:
    def run(x: Any) -> Any:
        return x + SCALE

    values = (
        torch.ones(4),
        torch.zeros(4),
        torch.ones(4, dtype=torch.float64),
        torch.ones(2, 4),
        3,
        2.5,
    )
    return Case(run, x4, [set_global("SCALE", v) for v in values])


@case
def global_function() -> Case:
    def run(x: Any) -> Any:
        return helper(x)

    def local(scale: Any) -> Any:
        return lambda x: x * scale

    values = (
        helper,
        other_helper,
        torch.sin,
        local(2.0),
        local(3.0),
        partial(torch.add, 3),
        len,
        str,
    )
    return Case(run, x4, [set_global("helper", v) for v in values])


@case
def global_that_hides_a_builtin() -> Case:
    def run(x: Any) -> Any:
        return x * max(1, 2)

    def forget() -> None:
        globals().pop("max", None)

    return Case(run, x4, [set_global("max", min), forget, set_global("max", lambda a, b: 7)])


@case
def code_of_a_global_function() -> Case:
    def run(x: Any) -> Any:
        return changing(x)

    def set_code(function: Any) -> Callable[[], Any]:
        return lambda: setattr(changing, "__code__", function.__code__)

    return Case(
        run, x4, [set_code(lambda x, y=1: x + y), set_code(lambda x, y=1: x * y - 4),
                  *setter(changing, "__defaults__", (3.0,), (4.0,), (torch.ones(4),))],
    )  # fmt: skip


def changing(x: Any, y: Any = 1) -> Any:
    return x - y


@case
def keyword_defaults() -> Case:
    def inner(x: Any, *, scale: Any = 2.0, shift: Any = 0) -> Any:
        return x * scale + shift

    def run(x: Any) -> Any:
        return inner(x)

    values = (
        {"scale": 2.0, "shift": 1},
        {"scale": 3.0, "shift": 1},
        {"scale": torch.ones(4), "shift": 2.5},
    )
    return Case(run, x4, setter(inner, "__kwdefaults__", *values))


@case
def own_defaults() -> Case:
    def run(x: Any, scale: Any = 2.0, *, shift: Any = 1) -> Any:
        return x * scale + shift

    return Case(
        run, x4, [*setter(run, "__defaults__", (2.0,), (3.0,), (torch.ones(4),)),
                  *setter(run, "__kwdefaults__", {"shift": 1}, {"shift": 2.0})],
    )  # fmt: skip


@case
def closure_cell() -> Case:
    scale: Any = 2.0

    def inner(x: Any) -> Any:
        return x * scale

    def run(x: Any) -> Any:
        return inner(x), scale if isinstance(scale, float) else None

    def change(value: Any) -> Callable[[], None]:
        def do() -> None:
            nonlocal scale
            scale = value

        return do

    return Case(run, x4, [change(v) for v in (2.0, 3.0, 3, torch.ones(4), torch.zeros(4), True)])


@case
def module_of_python() -> Case:
    module = types.ModuleType("somewhere")
    module.scale = 2.0
    module.helper = helper
    globals()["somewhere"] = module

    def run(x: Any) -> Any:
        return somewhere.helper(x) * somewhere.scale  # type: ignore[name-defined]  # noqa: F821

    return Case(
        run,
        x4,
        [
            *setter(module, "scale", 2.0, 3.0, torch.ones(4)),
            *setter(module, "helper", helper, other_helper),
        ],
    )


@case
def function_of_a_library() -> Case:
    """Monkeypatching a public function of the library itself."""
    real = torch.nn.functional.relu

    def run(x: Any) -> Any:
        return torch.nn.functional.relu(x - 2)

    yield_back = setter(torch.nn.functional, "relu", lambda x: x * 10, real)
    return Case(run, x4, yield_back)


# -- objects and containers ----------------------------------------------------------------------------


@case
def list_entries() -> Case:
    items: list[Any] = [1.0, 2.0]

    def run(x: Any) -> Any:
        for item in items:
            x = x * item + 1
        return x, len(items)

    return Case(
        run, x4, [lambda: items.append(3.0), lambda: items.clear(), lambda: items.extend([1.0, 2.0]),
                  lambda: items.__setitem__(slice(0, 1), [5]), lambda: items.insert(0, torch.ones(4)),
                  lambda: items.reverse()],
    )  # fmt: skip


@case
def list_of_lists() -> Case:
    inner = [1.0]
    outer = [inner, [1.0]]

    def run(x: Any) -> Any:
        return sum([sum(part) for part in outer], 0) * x, outer[0] is outer[1]

    return Case(
        run, x4, [lambda: inner.append(2.0), lambda: outer.__setitem__(1, inner), lambda: outer.__setitem__(1, [4.0]),
                  lambda: inner.pop() if len(inner) > 1 else None],
    )  # fmt: skip


@case
def tuple_argument() -> Case:
    state: dict[str, Any] = {"value": (1, 2.0)}
    Pair = namedtuple("Pair", "a b")

    def run(x: Any, pair: Any) -> Any:
        return x * pair[0] + pair[1], len(pair), type(pair).__name__

    values = ((1, 2.0), (1, 3.0), (2, 3.0), (1, 2.0, 3.0), [1, 2.0], Pair(1, 2.0), Pair(4, 2.0))
    return Case(
        run, lambda: (*x4(), state["value"]), [lambda v=v: state.update(value=v) for v in values]
    )


@case
def dict_keys_and_values() -> Case:
    table: dict[Any, Any] = {"a": 1.0, "b": 2.0}

    def run(x: Any) -> Any:
        for key, value in table.items():
            x = x * value + len(key)
        return x, "c" in table, table.get("a", -1), list(table)

    return Case(
        run, x4, [lambda: table.update(a=3.0), lambda: table.update(c=1.5), lambda: table.pop("c", None),
                  lambda: table.update(a=table.pop("a")), lambda: table.update(b=torch.ones(4)),
                  lambda: table.update({"long name": 1})],
    )  # fmt: skip


@case
def kinds_of_dict() -> Case:
    def run(x: Any, table: Any) -> Any:
        return x * table["a"] + ("b" in table), type(table).__name__

    state: list[Any] = [{"a": 1.0}]
    values: list[Any] = [
        {"a": 1.0}, {"a": 2.0}, {"b": 1, "a": 2.0}, OrderedDict(a=1.0), OrderedDict(b=3, a=1.0),
        defaultdict(lambda: 7.0), defaultdict(lambda: 8.0),
    ]  # fmt: skip

    def args() -> tuple[Any, ...]:
        return (*x4(), state[0].copy())

    return Case(run, args, [lambda v=v: state.__setitem__(0, v) for v in values])


@case
def missing_key_then_present() -> Case:
    table: dict[Any, Any] = {}

    def run(x: Any) -> Any:
        if "a" in table and "b" not in table:
            return x + table["a"]
        return x * table.get("b", 3.0)

    return Case(
        run, x4, [lambda: table.update(a=1.0), lambda: table.update(b=2.0), lambda: table.pop("a", None),
                  lambda: table.clear()],
    )  # fmt: skip


@case
def object_attributes() -> Case:
    thing = Holder(scale=2.0, inner=Holder(shift=1.0))

    def run(x: Any) -> Any:
        x = x * thing.scale + thing.inner.shift
        return (x + thing.extra) if hasattr(thing, "extra") else x

    return Case(
        run, x4, [*setter(thing, "scale", 2.0, 3.0, torch.ones(4)), *setter(thing, "extra", 1.0, torch.ones(4)),
                  lambda: thing.__dict__.pop("extra", None), *setter(thing, "inner", Holder(shift=5.0)),
                  lambda: setattr(thing.inner, "shift", thing.inner.shift + 1)],
    )  # fmt: skip


@case
def slots_and_properties() -> Case:
    class Slotted:
        __slots__ = ("scale",)

        @property
        def twice(self) -> Any:
            return self.scale * 2

    thing = Slotted()
    thing.scale = 2.0

    def run(x: Any) -> Any:
        return x * thing.scale + thing.twice

    real = Slotted.twice
    return Case(
        run, x4, [*setter(thing, "scale", 2.0, 3.0, torch.ones(4)),
                  *setter(Slotted, "twice", property(lambda self: 100.0), real)],
    )  # fmt: skip


@case
def class_attributes_and_methods() -> Case:
    class Base:
        scale: Any = 2.0

        def method(self, x: Any) -> Any:
            return x * self.scale

        @staticmethod
        def static(x: Any) -> Any:
            return x + 1

        @classmethod
        def of_class(cls, x: Any) -> Any:
            return x * cls.scale

    class Derived(Base):
        pass

    thing = Derived()

    def run(x: Any) -> Any:
        return thing.method(x), thing.static(x), Derived.of_class(x)

    def drop(owner: Any, name: str) -> Callable[[], None]:
        return lambda: delattr(owner, name) if name in vars(owner) else None

    return Case(
        run, x4, [*setter(Base, "scale", 2.0, 3.0), *setter(Derived, "scale", 4.0, torch.ones(4)), drop(Derived, "scale"),
                  *setter(thing, "scale", 7.0), drop(thing, "scale"),
                  *setter(Derived, "method", lambda self, x: x - 1), drop(Derived, "method"),
                  *setter(thing, "method", lambda x: x - 3), drop(thing, "method"),
                  *setter(Base, "static", staticmethod(lambda x: x * 9), staticmethod(lambda x: x + 1)),
                  *setter(Derived, "of_class", classmethod(lambda cls, x: x * 11)), drop(Derived, "of_class")],
    )  # fmt: skip


@case
def class_of_an_object() -> Case:
    class A:
        def __call__(self, x: Any) -> Any:
            return x + 1

        def __len__(self) -> int:
            return 2

    class B:
        def __call__(self, x: Any) -> Any:
            return x * 3

        def __len__(self) -> int:
            return 0

    thing = A()

    def run(x: Any) -> Any:
        return thing(x) if thing else thing(x) - 1

    real = A.__len__
    return Case(
        run, x4, [*setter(thing, "__class__", B, A), *setter(A, "__len__", lambda self: 0, real)]
    )


@case
def fallback_for_attributes() -> Case:
    class Open:
        def __getattr__(self, name: str) -> Any:
            return 3.0 if name == "scale" else 1.0

    thing = Open()

    def run(x: Any) -> Any:
        return x * thing.scale + thing.shift

    real = Open.__getattr__
    return Case(
        run, x4, [*setter(thing, "scale", 5.0), lambda: thing.__dict__.pop("scale", None), *setter(Open, "shift", 9.0),
                  *setter(Open, "__getattr__", lambda self, name: 20.0, real)],
    )  # fmt: skip


@case
def base_classes() -> Case:
    class A:
        scale = 2.0

    class B:
        scale = 3.0

    class Middle(A):
        pass

    class Derived(Middle):
        pass

    thing = Derived()

    def run(x: Any) -> Any:
        return x * thing.scale

    return Case(run, x4, setter(Middle, "__bases__", (B,), (A,), (A, B), (B, A)))


@case
def methods_and_partials_as_values() -> Case:
    a, b = Holder(k=2.0), Holder(k=5.0)

    class Box:
        def __init__(self, k: float) -> None:
            self.k = k

        def scale(self, x: Any) -> Any:
            return x * self.k

        def shift(self, x: Any) -> Any:
            return x + self.k

    first, second = Box(2.0), Box(5.0)
    holder = Holder(f=first.scale)

    def run(x: Any) -> Any:
        return holder.f(x)

    return Case(
        run, x4, [*setter(holder, "f", first.scale, second.scale, first.shift, partial(torch.mul, 3.0),
                          partial(torch.mul, 4.0), partial(torch.add, 4.0), torch.sin, torch.cos),
                  *setter(first, "k", 2.0, 2.5), *setter(a, "k", 1.0), *setter(b, "k", 1.0)],
    )  # fmt: skip


# -- tensors -------------------------------------------------------------------------------------------


def of_argument(values: list[Callable[[], Any]], run: Callable[..., Any]) -> Case:
    state = [values[0]]
    return Case(run, lambda: state[0](), [lambda v=v: state.__setitem__(0, v) for v in values])


class Marked(torch.Tensor):
    """A subclass."""


@case
def facts_of_a_tensor() -> Case:
    base = torch.arange(24, dtype=torch.float32)

    def run(x: Any) -> Any:
        y = x * 2 + 1
        return (
            y,
            x.dtype,
            x.dim(),
            tuple(x.shape),
            x.stride(),
            x.requires_grad,
            x.is_contiguous(),
            type(x).__name__,
        )

    def as_marked() -> Any:
        return (base.reshape(4, 6).as_subclass(Marked),)

    return of_argument(
        [
            lambda: (base.reshape(4, 6),),
            lambda: (base.reshape(6, 4),),
            lambda: (base.reshape(6, 4).t(),),
            lambda: (base.reshape(4, 6).clone().requires_grad_(),),
            lambda: (base.reshape(4, 6).to(torch.float64),),
            lambda: (base.reshape(4, 6).to(torch.int64),),
            lambda: (base.reshape(2, 2, 6),),
            lambda: (base.reshape(4, 6)[:, :3],),
            lambda: (base.reshape(4, 6)[::2],),
            lambda: (base[:6].expand(4, 6),),
            lambda: (base[:0].reshape(0, 6),),
            lambda: (base[5],),
            lambda: (nn.Parameter(base.reshape(4, 6).clone()),),
            as_marked,
            lambda: (base.reshape(4, 6)[0:1],),
            lambda: (base.reshape(1, 24),),
        ],
        run,
    )


@case
def aliases_that_are_written() -> Case:
    def run(x: Any, y: Any) -> Any:
        x.add_(1)
        y.mul_(2)
        return x + y

    def views(f: Callable[[Any], tuple[Any, Any]]) -> Callable[[], Any]:
        return lambda: f(torch.arange(8, dtype=torch.float32))

    return of_argument(
        [
            views(lambda b: (b[:4], b[4:].clone())),
            views(lambda b: (b[:4], b[:4])),
            views(lambda b: (b[:4], b[2:6])),
            views(lambda b: (b[:4], b[4:])),
            views(lambda b: (lambda v: (v, v))(b[:4])),
            views(lambda b: (b[4:], b[:4])),
            views(lambda b: (b[1:5], b[0:4])),
        ],
        run,
    )


@case
def same_tensor_twice() -> Case:
    def run(x: Any, y: Any) -> Any:
        return x * y, x is y

    a, b = torch.arange(4, dtype=torch.float32), torch.ones(4)
    return of_argument(
        [lambda: (a, b), lambda: (a, a), lambda: (b, b), lambda: (b, a), lambda: (a, a[:])], run
    )


@case
def a_list_that_holds_the_argument() -> Case:
    held: list[Any] = [torch.ones(4)]

    def run(x: Any) -> Any:
        held[0].add_(1)
        return x * 2, held[0] is x

    x = torch.arange(4, dtype=torch.float32)
    return Case(
        run, lambda: (x,), [lambda: held.__setitem__(0, x), lambda: held.__setitem__(0, torch.zeros(4)),
                            lambda: held.__setitem__(0, x[:])],
    )  # fmt: skip


@case
def modes() -> Case:
    weight = torch.ones(4).requires_grad_()

    def run(x: Any) -> Any:
        y = x * weight
        return y, y.requires_grad, torch.is_grad_enabled(), torch.zeros(2).dtype

    return Case(
        run, x4, [lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True),
                  lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32),
                  lambda: weight.requires_grad_(False), lambda: weight.requires_grad_(True),
                  lambda: torch.set_num_threads(1), lambda: torch.set_num_threads(2)],
    )  # fmt: skip


@case
def resized_and_replaced_data() -> Case:
    held = Holder(t=torch.ones(4), flag=None)

    def run(x: Any) -> Any:
        return (held.t * 2).sum() + x, held.t.shape[0], held.t.grad is None

    def grad(value: Any) -> Callable[[], None]:
        def do() -> None:
            held.t = torch.ones(4).requires_grad_()
            held.t.grad = value

        return do

    return Case(
        run, x4, [*setter(held, "t", torch.ones(6), torch.ones(2, 3), torch.ones(1)), grad(None), grad(torch.ones(4)),
                  lambda: setattr(held.t, "data", torch.zeros(3)), lambda: held.t.data.fill_(4)],
    )  # fmt: skip


# -- modules ---------------------------------------------------------------------------------------------


class Net(nn.Module):
    """A bit of everything that a module holds."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)])
        self.drop = nn.Dropout(0.5)
        self.register_buffer("shift", torch.ones(4))
        self.scale: Any = 2.0
        self.extra: Any = None
        self.function: Any = torch.relu

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        x = self.function(x) * self.scale + self.shift
        if self.extra is not None:
            x = self.extra(x)
        return self.drop(x) if self.training else x


@case
def a_module() -> Case:
    torch.manual_seed(3)
    net = Net()
    handles: list[Any] = []
    layers = net.layers

    def hook(register: str, function: Any) -> Callable[[], None]:
        return lambda: handles.append(getattr(layers[0], register)(function))

    def unhook() -> None:
        if handles:
            handles.pop().remove()

    def parameter(size: int) -> Callable[[], None]:
        return lambda: setattr(layers[2], "weight", nn.Parameter(torch.ones(4, size)))

    def run(x: Any) -> Any:
        return net(x)

    return Case(
        run, lambda: (torch.ones(2, 4),),
        [
            net.train, net.eval, lambda: net.drop.eval(), *setter(net.drop, "p", 0.25, 0.5),
            *setter(net, "scale", 2.0, 3.0, torch.ones(4)), *setter(net, "extra", nn.Sigmoid(), nn.Tanh(), None), *setter(net, "function", torch.sin, torch.cos),
            lambda: setattr(net, "shift", torch.zeros(4)), lambda: setattr(net, "shift", torch.ones(2, 4)),
            parameter(4), lambda: setattr(layers[0], "bias", None),
            lambda: setattr(layers[0], "bias", nn.Parameter(torch.zeros(4))),
            lambda: layers.__setitem__(1, nn.Tanh()), lambda: layers.__setitem__(1, nn.ReLU()),
            lambda: layers.append(nn.Sigmoid()), lambda: layers.__delitem__(-1) if len(layers) > 3 else None,
            lambda: layers[0].weight.requires_grad_(False), lambda: layers[0].weight.requires_grad_(True),
            hook("register_forward_hook", lambda m, a, out: out * 2), unhook,
            hook("register_forward_pre_hook", lambda m, a: (a[0] + 1,)), unhook,
            lambda: net.double(), lambda: net.float(),
            *setter(layers[0], "forward", lambda x: x * 3), lambda: layers[0].__dict__.pop("forward", None),
        ],
    )  # fmt: skip


@case
def forward_of_a_class() -> Case:
    class Small(nn.Module):
        factor = 2.0

        def forward(self, x: Any) -> Any:
            return x * self.factor

    net = Small()
    real = Small.forward

    def run(x: Any) -> Any:
        return net(x)

    return Case(
        run, x4, [*setter(Small, "forward", lambda self, x: x + 1, real), *setter(Small, "factor", 3.0, 4.0),
                  *setter(Small, "__call__", lambda self, x: x * 100),
                  lambda: delattr(Small, "__call__") if "__call__" in vars(Small) else None],
    )  # fmt: skip


@case
def forward_of_a_library_class() -> Case:
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    for parameter in net.parameters():
        parameter.data.fill_(0.5)
    real = nn.Tanh.forward

    def run(x: Any) -> Any:
        return net(x)

    return Case(run, x4, setter(nn.Tanh, "forward", lambda self, x: x * 2, real))
