"""Programs that must do the same eager and compiled, each with the inputs of its calls.

A program is a function that makes a fresh callable (with its own state) and a list of calls, each a tuple of arguments.
`exact`: results, gradients and changed inputs are equal bit for bit; else float32 results are within `tolerance` of
those in float64.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import argand as torch
import argand.nn as nn
import argand.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Program:
    """One program: `make()` gives the callable, `calls()` the arguments of its calls in order."""

    name: str
    make: Callable[[], Any]
    calls: Callable[[], list[tuple[Any, ...]]]
    exact: bool = True
    tolerance: float = 1e-5
    gradients: bool = True


PROGRAMS: list[Program] = []


def x(*shape: int, grad: bool = False, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(*shape) * scale).requires_grad_(grad)


def program(
    calls: Callable[[], list[tuple[Any, ...]]],
    *,
    exact: bool = True,
    tolerance: float = 1e-5,
    gradients: bool = True,
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS.append(
            Program(
                make.__name__, make, calls, exact=exact, tolerance=tolerance, gradients=gradients
            )
        )
        return make

    return register


# ---- elementwise ------------------------------------------------------------------------------------------------------
@program(lambda: [(x(4, 5, grad=True), x(5)), (x(7, 5, grad=True), x(5))])
def add_relu() -> Any:
    return lambda a, b: (a + b).relu()


# The row's gradient is a sum, whose order is not eager's.
@program(
    lambda: [(x(4, 5, grad=True), x(5, grad=True)), (x(7, 5, grad=True), x(5, grad=True))],
    exact=False,
)
def add_relu_row() -> Any:
    return lambda a, b: (a + b).relu()


@program(lambda: [(x(3, 33, grad=True),)])
def activations() -> Any:
    def f(a):
        return F.gelu(a) + F.silu(a) * torch.sigmoid(a) - torch.tanh(a) / (1 + a.abs()), F.softplus(
            a
        )

    return f


@program(lambda: [(x(6, 9, grad=True), x(6, 1, grad=True), x(9, grad=True))], exact=False)
def broadcast_chain() -> Any:
    return lambda a, b, c: (
        torch.exp(-((a - b) ** 2) / (c * c + 0.5)).clamp(min=0.1) * torch.where(a > 0, b, c)
    )


@program(lambda: [(x(5, 7, grad=True), 0.5), (x(5, 7, grad=True), 0.25), (x(5, 7, grad=True), 2)])
def scalar_argument() -> Any:
    return lambda a, s: a * s + torch.pow(a.abs() + 1, s)


@program(lambda: [(x(8, grad=True), x(8, grad=True))])
def shared_value() -> Any:
    def f(a, b):
        c = torch.exp(a) * b
        return c * a + c * b + c, c

    return f


@program(lambda: [(torch.arange(12).reshape(3, 4), torch.randint(1, 5, (3, 4)))], gradients=False)
def integer_logic() -> Any:
    def f(a, b):
        return (a * 3 + b) // b - (a % b), (a > b) & (b < 4), (a ^ b) << 1

    return f


# ---- reductions, matrices, networks ---------------------------------------------------------------------------------------
@program(lambda: [(x(6, 40, grad=True),), (x(9, 40, grad=True),)], exact=False)
def normalise_rows() -> Any:
    return lambda a: (a - a.mean(-1, keepdim=True)) / (a.var(-1, keepdim=True) + 1e-5).sqrt()


@program(lambda: [(x(6, 40, grad=True),)], exact=False)
def softmax_entropy() -> Any:
    def f(a):
        p = torch.softmax(a, -1)
        return -(p * torch.log(p + 1e-9)).sum(-1), a.max(-1).values, a.argmax(-1)

    return f


@program(lambda: [(x(8, 16),), (x(8, 16),), (x(5, 16),)], exact=False)
def mlp() -> Any:
    return nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4)
    )


class Block(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, h):
        b, t, c = h.shape
        q, k, v = self.qkv(self.norm1(h)).split(c, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.out(y.transpose(1, 2).contiguous().view(b, t, c))
        return h + self.down(F.gelu(self.up(self.norm2(h))))


class TinyGPT(nn.Module):
    def __init__(
        self, vocabulary: int = 23, width: int = 32, layers: int = 2, length: int = 16
    ) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids, targets=None):
        h = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            h = block(h)
        logits = self.head(self.norm(h))
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


@program(
    lambda: [
        (torch.randint(0, 23, (2, 12)), torch.randint(0, 23, (2, 12))),
        (torch.randint(0, 23, (2, 9)), torch.randint(0, 23, (2, 9))),
    ],
    exact=False,
    tolerance=2e-5,
)
def tiny_gpt() -> Any:
    return TinyGPT()


@program(lambda: [(x(4, 3, 8, 8),), (x(4, 3, 8, 8),)], exact=False, tolerance=2e-5)
def conv_net_training() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 5),
    )


@program(lambda: [(x(4, 3, 8, 8),), (x(2, 3, 8, 8),)], exact=False, tolerance=2e-5)
def conv_net_inference() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2)
    ).eval()


@program(lambda: [(x(64, 10, grad=True),), (x(64, 10, grad=True),)])
def dropout_same_seed() -> Any:
    return lambda a: F.dropout(a * 2, 0.3, training=True) + F.dropout(a, 0.5, training=True)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(3))
        self.scale = nn.Parameter(torch.ones(12))
        self.register_buffer("steps", torch.zeros(1))
        self.calls = 0

    def forward(self, h):
        self.calls += 1
        self.steps += 1
        for i, layer in enumerate(self.layers):
            h = h + torch.tanh(layer(h)) * self.scale * (i + 1)
        return h * self.calls


@program(lambda: [(x(3, 12),), (x(3, 12),), (x(3, 12),)], exact=False)
def module_with_state() -> Any:
    return Residual()


# ---- mutation and aliasing -------------------------------------------------------------------------------------------------
@program(lambda: [(x(4, 5), x(4, 5))], gradients=False)
def mutated_input() -> Any:
    def f(a, b):
        a.add_(b)
        b.mul_(2)
        return a * b

    return f


@program(lambda: [(x(4, 6), x(6))], gradients=False)
def mutated_through_view() -> Any:
    def f(a, b):
        row = a[1]
        row.mul_(b)
        a[:, 2] = 7
        return row + 1, a.sum()

    return f


@program(lambda: [(x(4, 6),)])
def aliased_outputs() -> Any:
    return lambda a: (a, a.view(-1), a.t(), a[1:3], a + 0)


@program(lambda: [(x(4, 6, grad=True),)])
def output_views_of_one_result() -> Any:
    def f(a):
        b = a * 2
        return b, b.t(), b[0]

    return f


@program(lambda: [(x(5, 4, grad=True),)])
def in_place_on_intermediate() -> Any:
    def f(a):
        b = a * 3
        b.sub_(1)
        b[0] = b[1] * 2
        c = b.transpose(0, 1)
        c.add_(1)
        return b * a

    return f


@program(lambda: [(x(3, 4), [])], gradients=False)
def list_argument_grows() -> Any:
    def f(a, history):
        history.append(a + 1)
        history.extend([a * 2, a.sum()])
        return len(history), history[-1]

    return f


@program(lambda: [(x(3, 4), {"w": x(4), "n": 0}), (x(3, 4), {"w": x(4), "n": 5})], gradients=False)
def dictionary_changes() -> Any:
    def f(a, state):
        state["n"] += 1
        state["out"] = a * state["w"] * state["n"]
        return state["out"] + 1

    return f


_totals = {"calls": 0}


@program(lambda: [(x(3),), (x(3),)], gradients=False)
def closure_and_global_state() -> Any:
    count = 0
    seen: list[int] = []

    def f(a):
        nonlocal count
        count += 1
        seen.append(count)
        _totals["calls"] += 1
        return a * count + len(seen)

    return f


# ---- Python ----------------------------------------------------------------------------------------------------------------
@program(lambda: [(x(4, 3, grad=True), 1), (x(4, 3, grad=True), 4), (x(4, 3, grad=True), 0)])
def loop_of_argument() -> Any:
    def f(a, n):
        out = a
        for i in range(n):
            if i % 2 == 0:
                out = out * a + i
            else:
                out = torch.sin(out)
        return out

    return f


@program(lambda: [(x(2, 3, grad=True), x(2, 3, grad=True))])
def containers_and_comprehensions() -> Any:
    def f(*args, **kwargs):
        named = {f"t{i}": a for i, a in enumerate(args)}
        doubled = [v * 2 for k, v in named.items() if k != "t9"]
        total = sum(doubled[1:], doubled[0])
        first, *rest = (total, *doubled)
        return {"first": first, "rest": rest, "text": f"{len(rest)} of {len(named)}"}

    return f


class Point(NamedTuple):
    u: Any
    v: Any


@dataclasses.dataclass
class Settings:
    scale: float = 2.0
    layers: tuple[int, ...] = (1, 2)


@program(lambda: [(x(2, 3, grad=True),)])
def namedtuples_and_dataclasses() -> Any:
    settings = Settings()

    def f(a):
        p = Point(a * settings.scale, v=a - len(settings.layers))
        s = Settings(scale=3.0)
        return Point(p.u + p.v, p.u * s.scale)

    return f


@program(lambda: [(x(6, grad=True),), (x(6, grad=True),)])
def higher_order_functions() -> Any:
    def compose(*fs):
        return functools.reduce(lambda g, h: lambda z: h(g(z)), fs)

    def f(a):
        g = compose(torch.sin, functools.partial(torch.add, other=1), lambda z: z * math.pi)
        return g(a), max(map(lambda k: k * 2, (1, 2, 3))), [i for i, _ in zip(range(3), "ab")]  # noqa: B905

    return f


class Accumulator:
    limit = 3

    def __init__(self, start):
        self.value = start
        self.log = {}

    @property
    def doubled(self):
        return self.value * 2

    def push(self, a):
        self.value = self.value + a
        self.log["last"] = a
        return self


@program(lambda: [(x(4), x(4))], gradients=False)
def user_objects() -> Any:
    shared = Accumulator(1.5)

    def f(a, b):
        local = Accumulator(a).push(b)
        shared.push(b.sum())
        return local.doubled, shared.value, local.limit, local.log["last"]

    return f


@program(
    lambda: [
        (x(3, 4, grad=True),),
        (x(5, 4, grad=True),),
        (x(6, 4, grad=True),),
        (x(0, 4, grad=True),),
    ]
)
def changed_shapes() -> Any:
    def f(a):
        n = a.shape[0]
        if n > 4:
            a = a * 2
        return a.reshape(n * 2, 2) / max(n, 1) + torch.arange(2)

    return f


@program(lambda: [(x(4, 3, grad=True),), (x(4, 3),)])
def no_grad_region() -> Any:
    def f(a):
        b = a * 2
        with torch.no_grad():
            c = b * a
            flag = torch.is_grad_enabled()
        return b * c, c.requires_grad, flag, b.detach() + a

    return f


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, factor):
        ctx.save_for_backward(a)
        ctx.factor = factor
        return a * a * a * factor

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * 3 * a * a * ctx.factor, None


@program(lambda: [(x(4, grad=True),)])
def custom_function() -> Any:
    return lambda a: Cube.apply(a * 2, 0.5) + a


# ---- graph breaks -------------------------------------------------------------------------------------------------------------
@program(lambda: [(x(3, 4, grad=True),)])
def break_by_print() -> Any:
    def f(a):
        b = a * 2
        print("shape", tuple(b.shape), end="")
        return b + a

    return f


@program(lambda: [(x(5),), (-x(5).abs(),)], gradients=False)
def branch_on_data() -> Any:
    def f(a):
        b = a + 1
        if b.sum() > 0:
            return b * 2
        c = b - 1
        return c * 3

    return f


@program(lambda: [(x(4, grad=True),), (x(4, grad=True),)])
def item_in_the_middle() -> Any:
    def f(a):
        s = a.detach().abs().sum().item()
        return a * s + (1 if s > 2 else 2)

    return f


@program(lambda: [(x(3, grad=True), 4)])
def break_in_a_loop() -> Any:
    def f(a, n):
        trace = []
        for i in range(n):
            a = a * 1.5 + i
            if float(a.detach().sum()) > 1e9:
                break
            trace.append(i)
        return a, trace

    return f


@program(lambda: [(x(3, 2, grad=True),)])
def break_inside_with() -> Any:
    def f(a):
        with torch.no_grad():
            b = a * 3
            print(end="")
            c = b + a
        return c * a, c.requires_grad

    return f


@program(lambda: [(x(3, grad=True),)])
def break_in_an_inlined_function() -> Any:
    def inner(a):
        b = torch.sin(a)
        print(end="")
        return torch.cos(b)

    def f(a):
        return inner(a * 2) + inner(a)

    return f


@program(lambda: [(x(4), 1), (x(4), 0)], gradients=False)
def exceptions() -> Any:
    def f(a, divisor):
        try:
            k = 4 // divisor
        except ZeroDivisionError:
            k = -1
        return a * k

    return f


@program(lambda: [(x(2, 6, grad=True), 3), (x(2, 6, grad=True), 2)], exact=False)
def views_and_matmul() -> Any:
    def f(a, heads):
        b = a.view(2, heads, -1).transpose(0, 1).contiguous()
        c = torch.matmul(b, b.transpose(-1, -2)).softmax(-1)
        return torch.cat([c.flatten(), b.mean((0, 1))]), torch.stack([a, a], 1)[:, 1]

    return f


@program(lambda: [(x(6, 5, grad=True), torch.tensor([0, 2, 2]))])
def indexing() -> Any:
    def f(a, index):
        picked = a[index]
        return picked * 2, a[1:5:2, -1], a[..., None].shape, a[a.shape[0] // 2]

    return f


@program(lambda: [(x(3, 4),), (x(3, 4),)], gradients=False)
def random_numbers() -> Any:
    def f(a):
        return a + torch.rand(3, 4), torch.randn(2) * 2, torch.randint(0, 9, (3,))

    return f
