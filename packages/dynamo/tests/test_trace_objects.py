"""Objects of user classes: attributes, properties, methods, construction, operators, context managers, modules."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import typing
from typing import Any

import pytest
from tracing import check, equal, fresh, run, torch  # noqa: F401

import argand_dynamo as dynamo
from argand_c10 import Module, Parameter

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7


class Base:
    kind = "base"
    table = {"a": 1}

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.calls = 0

    @property
    def double(self) -> float:
        return self.scale * 2

    @double.setter
    def double(self, value: float) -> None:
        self.scale = value / 2

    @staticmethod
    def twice(x: Any) -> Any:
        return x * 2

    @classmethod
    def make(cls, scale: float) -> Any:
        return cls(scale)

    def apply(self, x: Any) -> Any:
        self.calls += 1
        return x * self.scale

    def __call__(self, x: Any) -> Any:
        return self.apply(x) + 1


class Derived(Base):
    kind = "derived"

    def __init__(self, scale: float, shift: Any = 1) -> None:
        super().__init__(scale)
        self.shift = shift

    def apply(self, x: Any) -> Any:
        return super().apply(x) + self.shift

    def __getattr__(self, name: str) -> Any:
        if name.startswith("dyn_"):
            return len(name)
        raise AttributeError(name)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Any:
        return self.shift * i

    def __contains__(self, item: int) -> bool:
        return item == 7

    def __add__(self, other: Any) -> Any:
        return Derived(self.scale + 1, self.shift)

    def __radd__(self, other: Any) -> Any:
        return other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derived) and other.scale == self.scale

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Any:
        return iter([1, 2])

    def __bool__(self) -> bool:
        return self.scale > 0

    def __lt__(self, other: Any) -> bool:
        return self.scale < other.scale


def test_attributes_and_methods() -> None:
    def f(x: Any, o: Any) -> Any:
        return o(x), o.double, o.kind, o.twice(x), type(o).kind, o.table["a"], o.apply(x)

    check(f, X, Base(2.0))
    check(f, X, Derived(2.0, 5))


def test_special_methods() -> None:
    def f(x: Any, o: Any) -> Any:
        p = o + 1
        return (
            len(o), o[2], 7 in o, 8 in o, list(o), x * p.scale, 5 + o, o == Derived(o.scale), o != p, bool(o), o < p, o.dyn_abc,
            hasattr(o, "missing"), getattr(o, "missing", 3), isinstance(o, Base), o.__class__.__name__, [v for v in o],
        )  # fmt: skip

    check(f, X, Derived(2.0, 5))


def test_changes_of_attributes_are_replayed() -> None:
    def f(x: Any, o: Any) -> Any:
        o.last = o(x)
        o.double = 10.0
        o.names = ["n"]
        o.names.append(o.last)
        del o.calls
        return o.last + o.scale

    run(f, (X, Base(2.0)), (X, Derived(3.0)), fullgraph=True)


def test_new_objects_escape() -> None:
    def f(x: Any) -> Any:
        made = Derived.make(2.0)
        made.value = x + 1
        pair = [made, made]
        return pair, made.apply(x), made

    outcome = run(f, (X,), (X,), fullgraph=True)
    assert len(outcome.graphs) == 1
    result = dynamo.compile(f, backend="eager")(X)
    assert result[0][0] is result[0][1] is result[2] and type(result[2]) is Derived


def test_objects_that_hold_each_other() -> None:
    class Node:
        def __init__(self, value: Any) -> None:
            self.value = value
            self.next: Any = None

    def f(x: Any) -> Any:
        a, b = Node(x + 1), Node(x + 2)
        a.next, b.next = b, a
        held: list[Any] = [a]
        held.append(held)
        return a, held

    a, held = dynamo.compile(f, backend="eager", fullgraph=True)(X)
    assert a.next.next is a and (a.next.value == X + 2).all() and held[1] is held and held[0] is a


@dataclasses.dataclass
class Settings:
    size: int
    rate: float = 0.5
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: int = 2


def test_dataclasses() -> None:
    def f(x: Any, s: Settings) -> Any:
        made = Settings(3, extra={"x": x * s.rate})
        made.size += s.size
        frozen = Frozen(x + 1)
        return made, s.extra.get("k", 1), Settings(3) == Settings(3, 0.5), frozen, frozen.b

    check(f, X, Settings(2, 0.25, {"k": 4}))


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


def test_slots() -> None:
    def f(x: Any, s: Slots) -> Any:
        s.b = x * s.a
        made = Slots(x)
        made.b = 3
        return s.b + 1, made.a, made.b

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    s, t = Slots(2), Slots(2)
    assert equal(compiled(X, s), f(X, t)) and equal(s.b, t.b)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Flag(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Noted(property):
    """A property with something of its own, read from the class."""

    note = "noted"


class Loud(property):
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else 2 * super().__get__(instance, owner)


class Measured:
    def __init__(self, n: float) -> None:
        self.n = n

    @Noted
    def size(self) -> float:
        return self.n + 1

    @size.setter
    def size(self, value: float) -> None:
        self.n = value - 1

    @Loud
    def weight(self) -> float:
        return self.n


class Smaller(Measured):
    @Noted
    def size(self) -> float:
        return super().size - 0.5


def test_subclasses_of_property() -> None:
    def f(x: Any, of: Measured) -> Any:
        return x * of.size

    run(f, (X, Measured(2.0)), (X, Smaller(3.0)), fullgraph=True)

    def stored(x: Any) -> Any:
        made = Measured(1.0)
        made.size = 5.0
        return x * made.size, made.n

    run(stored, (X,), fullgraph=True)
    # What does not get as properties do is not taken for one.
    run(lambda x, of: x * of.weight, (X, Measured(2.0)))


def test_enumerations() -> None:
    def f(x: Any, c: Color) -> Any:
        scale = {Color.RED: 2, Color.BLUE: 3}[c]
        return (
            x * scale,
            c.name,
            c is Color.RED,
            c == Color.BLUE,
            Color(2),
            Color["RED"].value,
            x * Flag.HIGH,
            Flag.LOW < Flag.HIGH,
            [m.value for m in Color],
        )

    check(f, X, Color.RED)
    outcome = run(f, (X, Color.RED), (X, Color.BLUE))
    assert outcome.recompiles == 1


class Scope:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __enter__(self) -> Scope:
        self.log.append("enter")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.log.append("exit" if kind is None else kind.__name__)
        return kind is KeyError


@contextlib.contextmanager
def scope(log: list[str]) -> Any:
    log.append("begin")
    try:
        yield 5
    finally:
        log.append("end")


def test_context_managers() -> None:
    def f(x: Any, log: list[str]) -> Any:
        with Scope(log) as s, scope(log) as n:
            x = x + n + len(s.log)
        with Scope(log):
            x = x * 2
            raise KeyError("dropped")
        with contextlib.nullcontext(3) as k:
            return x * k

    check(f, X, [])


def test_gradient_modes() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        with torch.no_grad():
            z = y * 3
            with torch.enable_grad():
                w = y * 4
            inside = torch.is_grad_enabled()
        with torch.set_grad_enabled(False):
            v = y + 1
        return y, z, w, v, inside, torch.is_grad_enabled()

    check(f, X.clone().requires_grad_())

    @torch.no_grad()
    def g(x: Any) -> Any:
        return x * 2

    check(lambda x: g(x) + x, X.clone().requires_grad_())


def test_set_grad_enabled_stays() -> None:
    def f(x: Any) -> Any:
        torch.set_grad_enabled(False)
        return x * 2

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    x = X.clone().requires_grad_()
    try:
        assert not compiled(x).requires_grad and not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


class Square(torch.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any, k: float) -> Any:
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x * 2.5 * ctx.k, None


def test_custom_functions() -> None:
    def f(x: Any) -> Any:
        return Square.apply(x.sin(), 3.0) + x

    check(f, X)
    a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
    f(a).sum().backward()
    dynamo.compile(f, backend="eager", fullgraph=True)(b).sum().backward()
    assert equal(a.grad, b.grad)


class Linear(Module):
    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.weight = Parameter(torch.linspace(-1, 1, n * m).reshape(m, n))
        self.bias = Parameter(torch.zeros(m))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.seen += 1
        return torch.linear(x, self.weight, self.bias)


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Linear(4, 5)
        self.layers = {"second": Linear(5, 2)}
        self.second = self.layers["second"]
        self.calls = 0

    def forward(self, x: Any, *, double: bool = False) -> Any:
        self.calls += 1
        x = self.second(self.first(x).relu())
        for name, p in self.named_parameters():
            if name.endswith("first.bias"):
                x = x + p.sum()
        self.last = x
        return x * 2 if double else x


def test_modules() -> None:
    net = Net()
    plain = copy.deepcopy(net)
    compiled = dynamo.compile(net, backend="eager", fullgraph=True)
    assert isinstance(compiled, Module)
    for options in ({}, {}, {"double": True}):
        assert equal(compiled(X, **options), plain(X, **options))
    assert net.calls == plain.calls == 3 and equal(net.first.seen, plain.first.seen)
    compiled.eval()
    plain.eval()
    assert equal(compiled(X), plain(X)) and equal(net.first.seen, plain.first.seen)
    compiled(X).sum().backward()
    plain(X).sum().backward()
    assert all(
        equal(a.grad, b.grad) for a, b in zip(net.parameters(), plain.parameters(), strict=True)
    )
    assert list(compiled.state_dict()) == [f"_orig_mod.{k}" for k in net.state_dict()]
    assert compiled.first is net.first and len(list(compiled.parameters())) == len(
        list(net.parameters())
    )


def test_module_hooks_run() -> None:
    net = Net()
    seen: list[Any] = []
    compiled = dynamo.compile(net, backend="eager")
    before = compiled(X)
    handle = net.first.register_forward_hook(lambda module, args, out: out + 1)
    net.second.register_forward_pre_hook(lambda module, args: seen.append(len(args)))
    assert not equal(compiled(X), before) and seen == [1]
    assert equal(compiled(X), net(X)) and len(seen) == 3
    handle.remove()
    assert equal(compiled(X), before)


def test_methods_can_be_compiled() -> None:
    class Model(Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = Linear(4, 3)

        @dynamo.compile(backend="eager", fullgraph=True)
        def forward(self, x: Any) -> Any:
            return self.linear(x) + 1

    model = Model()
    assert equal(model(X), model.linear(X) + 1)
    bound = dynamo.compile(model.linear.forward, backend="eager", fullgraph=True)
    assert equal(bound(X), model.linear(X))


def test_module_made_in_the_function() -> None:
    def f(x: Any) -> Any:
        box = Module()
        box.size = 3
        return x * box.size, box.training

    check(f, X)


@pytest.mark.parametrize("name", ["real", "imag", "T", "mT"])
def test_tensor_properties(name: str) -> None:
    if name == "imag":
        pytest.skip("real tensors have none")
    check(lambda x: getattr(x, name) + 1, X)


def test_tensor_facts_and_methods() -> None:
    def f(x: Any) -> Any:
        y = x.float().view(-1, 2)
        return (
            y, x.shape, x.size(), x.size(-1), x.dtype, x.device, x.ndim, x.numel(), len(x), x.is_floating_point(), x.requires_grad, x.stride(),
            x.shape[0] * 2, list(x.shape), x.shape.numel(), x.new_zeros(2), x.T.is_contiguous(), x.dtype == torch.float32, x.mean(dim=1), x.max(dim=0),
            x.split(2), torch.stack([x, x]), x.to(torch.float64), torch.zeros(2, dtype=x.dtype), x.sum(0, keepdim=True), x @ x.T, -x, ~(x > 1), 2 - x, 1 / (x + 1),
        )  # fmt: skip

    check(f, X)


def test_tensors_made_in_the_function() -> None:
    def f(x: Any) -> Any:
        y = torch.tensor([1.0, 2.0, 3.0, 4.0])
        y += x[0]
        return x + y, torch.arange(3), torch.tensor(2) * x, torch.ones_like(x), y

    check(f, X)


def test_inference_mode_around_and_inside() -> None:
    def f(x: Any) -> Any:
        with torch.inference_mode():
            y = x * 2
        return y, torch.is_inference_mode_enabled()

    def g(x: Any) -> Any:
        return (x + 1).relu()

    run(f, (X,), (X,))
    compiled = dynamo.compile(g, backend="eager", fullgraph=True)
    with torch.inference_mode():
        made = torch.ones(3)
        result = compiled(made)
        assert result.is_inference() and (result == 2).all()
    assert not compiled(torch.ones(3)).is_inference()


class Unset:
    limit = None


class Defaults(Unset):
    scale = None

    def inherited(self) -> Any:
        return super().limit


def test_class_attributes_that_are_none() -> None:
    defaults = Defaults()

    def f(x: Any) -> Any:
        known = [defaults.scale, defaults.limit, Defaults.scale, defaults.inherited()]
        known += [getattr(defaults, "scale", 3), hasattr(defaults, "limit"), hasattr(defaults, "x")]
        return x if defaults.scale is None else x + defaults.scale, known

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    for scale in (None, 2.0, None):
        Defaults.scale = scale
        equal(compiled(X), f(X))
    defaults.scale = 3.0
    equal(compiled(X), f(X))


def test_names_of_typing_in_isinstance() -> None:
    kinds = typing.Union[int, typing.Sequence]  # noqa: UP007

    def f(x: Any, n: Any) -> Any:
        if isinstance(n, typing.Iterable):
            return x * sum(n)
        return x * n if isinstance(n, kinds) else x

    run(f, (X, 2), (X, (1, 2)), (X, None), fullgraph=True)


def test_parts_of_complex_tensors_are_assigned() -> None:
    def f(z: Any, x: Any) -> Any:
        z = z * 2
        z.imag *= -1
        z.real = x
        return z, z.imag

    check(f, torch.complex(X, X + 1), X)
